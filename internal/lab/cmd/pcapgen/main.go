// Command pcapgen writes a synthetic capture of LLM serving traffic and, as JSON
// lines, the truth about each request in it.
//
// Usage:
//
//	pcapgen -size 50MB -seed 1 -o s50.pcap -truth s50.truth.jsonl
//	pcapgen -requests 20 -conc 4 -lost 0.01 -dup 0.01 -reorder 0.2 -o lossy.pcap
//
// The same flags give the same bytes. A summary goes to standard output.
// Package pcapgen says what the fields of the truth mean.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"tokentrace/internal/lab/pcapgen"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	opts := pcapgen.DefaultOptions()
	opts.Requests = 0
	fs := flag.NewFlagSet("pcapgen", flag.ContinueOnError)
	fs.SetOutput(stderr)
	out := fs.String("o", "", "capture to write, '-' for standard output")
	truth := fs.String("truth", "", "truth to write, JSON lines")
	addFlags(fs, &opts)
	if err := fs.Parse(args); err != nil {
		return 2
	}
	if *out == "" || fs.NArg() > 0 || opts.Size == 0 && opts.Requests == 0 {
		fmt.Fprintln(stderr, "pcapgen: -o FILE and one of -size and -requests are needed; see 'pcapgen -h'")
		return 2
	}
	sum, err := generate(*out, *truth, stdout, opts)
	if err != nil {
		fmt.Fprintln(stderr, "pcapgen:", err)
		return 1
	}
	if *out == "-" {
		stdout = stderr
	}
	enc := json.NewEncoder(stdout)
	enc.SetIndent("", "  ")
	if err := enc.Encode(sum); err != nil {
		fmt.Fprintln(stderr, "pcapgen:", err)
		return 1
	}
	return 0
}

// addFlags declares a flag for each option of the traffic.
func addFlags(fs *flag.FlagSet, o *pcapgen.Options) {
	fs.Func("size", "start no request once the capture has this size, such as 50MB or 2GB", func(s string) (err error) {
		o.Size, err = parseSize(s)
		return err
	})
	fs.IntVar(&o.Requests, "requests", o.Requests, "start no request after this many; 0: as many as -size asks for")
	fs.IntVar(&o.Conc, "conc", o.Conc, "concurrent clients")
	fs.Uint64Var(&o.Seed, "seed", o.Seed, "random seed")
	fs.Int64Var(&o.Start, "start", o.Start, "time of the begin, ns since the Unix epoch")
	port := uint(o.Port)
	fs.Func("port", fmt.Sprintf("server port (default %d)", port), func(s string) error {
		n, err := strconv.ParseUint(s, 10, 16)
		o.Port = uint16(n)
		return err
	})
	fs.BoolVar(&o.Nano, "nano", o.Nano, "write times in nanoseconds, not microseconds")
	fs.IntVar(&o.Tokens, "tokens", o.Tokens, "mean output tokens per answer")
	fs.Float64Var(&o.TokenSpread, "token-spread", o.TokenSpread, "relative spread of the output tokens")
	fs.IntVar(&o.PromptTokens, "prompt", o.PromptTokens, "median prompt tokens")
	fs.Float64Var(&o.RequestsPerConn, "reuse", o.RequestsPerConn, "mean requests per connection")
	fs.Float64Var(&o.Plain, "plain", o.Plain, "share of requests that are GET /health")
	fs.DurationVar(&o.TTFT, "ttft", o.TTFT, "time to first token of an empty prompt")
	fs.DurationVar(&o.TTFTPerPromptToken, "ttft-slope", o.TTFTPerPromptToken, "more of it per prompt token")
	fs.DurationVar(&o.ITL, "itl", o.ITL, "median time between tokens")
	fs.Float64Var(&o.ITLSigma, "itl-sigma", o.ITLSigma, "log-normal sigma of -itl")
	fs.Float64Var(&o.Stall, "stall", o.Stall, "chance that a token comes 5 to 30 times late")
	fs.Float64Var(&o.Coalesce, "coalesce", o.Coalesce, "chance that the server sends 2 to 8 events in one write")
	fs.Float64Var(&o.Rechunk, "rechunk", o.Rechunk, "share of responses whose HTTP chunks cut events in two")
	fs.Float64Var(&o.Lost, "lost", o.Lost, "chance that a data segment is captured only as its retransmission")
	fs.Float64Var(&o.Dup, "dup", o.Dup, "chance that a data segment is captured twice")
	fs.Float64Var(&o.Reorder, "reorder", o.Reorder, "chance that two back-to-back data segments are swapped")
	fs.IntVar(&o.AckEvery, "ack-every", o.AckEvery, "acknowledge each n-th data segment")
	fs.IntVar(&o.MSS, "mss", o.MSS, "largest TCP payload, bytes")
}

// parseSize reads a number of bytes with KB, MB or GB (powers of ten) behind it.
func parseSize(s string) (int64, error) {
	number, unit := strings.TrimRight(s, "KMGB"), 1.0
	switch s[len(number):] {
	case "", "B":
	case "KB":
		unit = 1e3
	case "MB":
		unit = 1e6
	case "GB":
		unit = 1e9
	default:
		return 0, fmt.Errorf("no unit %q: use KB, MB or GB", s[len(number):])
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || !(f > 0 && f*unit < 1<<62) {
		return 0, fmt.Errorf("not a size: %q", s)
	}
	return int64(f * unit), nil
}

// generate writes the capture and, if its name is not empty, the truth.
func generate(out, truth string, stdout io.Writer, o pcapgen.Options) (pcapgen.Summary, error) {
	if truth == "" {
		return generateCapture(out, stdout, o)
	}
	f, err := os.Create(truth)
	if err != nil {
		return pcapgen.Summary{}, err
	}
	lines := bufio.NewWriterSize(f, 1<<20)
	enc := json.NewEncoder(lines)
	o.Truth = func(r *pcapgen.Request) error { return enc.Encode(r) }
	sum, err := generateCapture(out, stdout, o)
	return sum, errors.Join(err, lines.Flush(), f.Close())
}

func generateCapture(out string, stdout io.Writer, o pcapgen.Options) (pcapgen.Summary, error) {
	if out == "-" {
		return pcapgen.Generate(stdout, o)
	}
	f, err := os.Create(out)
	if err != nil {
		return pcapgen.Summary{}, err
	}
	sum, err := pcapgen.Generate(f, o)
	return sum, errors.Join(err, f.Close())
}
