package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// base is the program that the others are compared with.
const base = "tcpdump"

// program is a command line for the shell, with {f} and {tmp} in it.
type program struct{ name, command string }

// cost is what one run of a program took.
type cost struct {
	cpu, wall time.Duration
	peak      int64 // bytes, largest resident set of its processes
}

// bench measures programs over one file.
type bench struct {
	programs []program
	file     string
	log      io.Writer

	size  int64
	costs map[string][]cost // by program, one a round
	floor int64             // peak of a program that does nothing, bytes
}

func (b *bench) run(ctx context.Context, rounds int) error {
	if err := b.prepare(ctx); err != nil {
		return err
	}
	order := rand.New(rand.NewPCG(1, 1))
	for round := range rounds {
		for _, i := range order.Perm(len(b.programs)) {
			p := b.programs[i]
			c, err := b.measure(ctx, p)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			b.costs[p.name] = append(b.costs[p.name], c)
			fmt.Fprintf(b.log, "round %d of %d  %-10s  cpu %.3f s  wall %.3f s\n",
				round+1, rounds, p.name, c.cpu.Seconds(), c.wall.Seconds())
		}
	}
	return nil
}

// prepare reads the file once, so that it is in the page cache for all.
func (b *bench) prepare(ctx context.Context) error {
	b.costs = make(map[string][]cost)
	path, err := filepath.Abs(b.file)
	if err != nil {
		return err
	}
	b.file = path
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if b.size, err = io.Copy(io.Discard, f); err != nil {
		return err
	}
	c, err := b.measure(ctx, program{"nothing", "exec true"})
	b.floor = c.peak
	return err
}

// measure runs a program once, in a directory of its own.
func (b *bench) measure(ctx context.Context, p program) (cost, error) {
	tmp, err := os.MkdirTemp("", "benchdecode")
	if err != nil {
		return cost{}, err
	}
	defer os.RemoveAll(tmp)
	command := strings.NewReplacer("{f}", quote(b.file), "{tmp}", quote(tmp)).Replace(p.command)
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Dir = tmp
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	start := time.Now()
	err = cmd.Run()
	wall := time.Since(start)
	if err != nil {
		return cost{}, fmt.Errorf("%w: %s", err, lastLine(stderr.String()))
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return cost{}, fmt.Errorf("the operating system does not report resource usage")
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	const unit = 1024 // of Maxrss on Linux, bytes
	return cost{cpu: cpu, wall: wall, peak: int64(usage.Maxrss) * unit}, nil
}

// quote makes s one word of the shell.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
