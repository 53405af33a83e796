// Command benchdecode compares what programs cost that read a capture.
//
// Usage:
//
//	benchdecode -capture bin/capture -rounds 7 s50.pcap s500.pcap
//	benchdecode -add 'tshark=tshark -n -r {f} -q' -add 'cp=cp {f} {tmp}/copy' s50.pcap
//
// In each round every program reads the file once, in an order that changes from
// round to round, so that a slow spell of the machine hits all of them. Each is
// charged the CPU time, user and system, of itself and of the children it waited
// for. The yardstick is the ratio of CPU times in the same round to
//
//	tcpdump -n -r FILE -w /dev/null
//
// which reads every packet and keeps none. Absolute figures depend on the machine
// and its load; wall times do even more.
//
// The peak of resident memory is that of a program's largest process. The
// operating system reports no less than what benchdecode itself uses when it
// starts one: a few megabytes, shown below the table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// config is what the command line asks for.
type config struct {
	rounds   int
	programs []program
	files    []string
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "benchdecode:", err)
		return 2
	}
	if err := measureAll(ctx, c, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "benchdecode:", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (config, error) {
	c := config{programs: []program{{name: base, command: "exec tcpdump -n -r {f} -w /dev/null"}}}
	fs := flag.NewFlagSet("benchdecode", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.IntVar(&c.rounds, "rounds", 5, "times that each program reads each file")
	capture := fs.String("capture", "bin/capture", "program that is measured as '`PROGRAM` pcap FILE -o DIR'; empty: none")
	var added []program
	fs.Func("add", "another program, as '`NAME=COMMAND`' for the shell; {f} stands for the file, {tmp} for an empty directory", func(s string) error {
		name, command, ok := strings.Cut(s, "=")
		if !ok || name == "" || command == "" {
			return errors.New("not NAME=COMMAND")
		}
		added = append(added, program{name, command})
		return nil
	})
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	c.files = fs.Args()
	if *capture != "" {
		path, err := filepath.Abs(*capture)
		if err != nil {
			return c, err
		}
		c.programs = append(c.programs, program{"capture", "exec " + quote(path) + " pcap {f} -o {tmp}/out"})
	}
	c.programs = append(c.programs, added...)
	switch {
	case len(c.files) == 0:
		return c, errors.New("no capture named; see 'benchdecode -h'")
	case c.rounds < 1:
		return c, fmt.Errorf("%d rounds", c.rounds)
	}
	return c, nil
}

func measureAll(ctx context.Context, c config, stdout, stderr io.Writer) error {
	if _, err := exec.LookPath("tcpdump"); err != nil {
		return errors.New("tcpdump is not installed, and it is the yardstick: apt-get install tcpdump")
	}
	for _, file := range c.files {
		b := bench{programs: c.programs, file: file, log: stderr}
		if err := b.run(ctx, c.rounds); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := b.print(stdout); err != nil {
			return err
		}
	}
	return nil
}
