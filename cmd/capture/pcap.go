package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"

	"tokentrace/capture"
	"tokentrace/internal/cli"
	"tokentrace/schema"
	"tokentrace/schema/tracedir"
)

func pcapCommand() cli.Command {
	return cli.Command{
		Name:     "pcap",
		Operands: "FILE... -o TRACE",
		Summary:  "Decode capture files into a trace",
		Help: `Reads pcap and pcapng files ('-' is standard input), finds HTTP by its bytes on any
port, and writes requests, token events and connections as Parquet into the directory
TRACE. Prompts and answers are not stored, only their lengths and times.`,
		Examples: []string{
			"capture pcap testdata/pcaps/llamacpp-chat/llamacpp-chat.pcap -o morning.trace",
			"tcpdump -i eth0 -U -w - tcp port 8000 | capture pcap - -o live.trace",
		},
		Setup: setupPcap,
	}
}

func setupPcap(fs *flag.FlagSet) func(context.Context, cli.Env, []string) error {
	trace := fs.String("o", "", "write the trace to the directory `TRACE`, which must be missing or empty")
	add := fs.Bool("append", false, "add to the trace that stands there")
	label := fs.String("label", "", "call the trace `NAME` in its manifest")
	point := fs.String("capture-point", "", "the traffic was seen at the `PLACE`: client, server or between")
	format := fs.String("format", "text", "print the summary as `FORMAT`: text, json, csv or markdown")
	return func(ctx context.Context, env cli.Env, files []string) error {
		if *trace == "" {
			return cli.Usagef("say where the trace goes: -o TRACE")
		}
		if !slices.Contains([]string{"text", "json", "csv", "markdown"}, *format) {
			return cli.Usagef("no format %q: text, json, csv or markdown", *format)
		}
		if !slices.Contains([]string{"", "client", "server", "between"}, *point) {
			return cli.Usagef("no capture point %q: client, server or between", *point)
		}
		if len(files) == 0 {
			return cli.Usagef("name a capture file, or '-' for standard input")
		}
		progress := cli.NewProgress(env.Stderr)
		manifest, err := capture.Run(ctx, capture.Config{
			Trace: *trace, Append: *add, Label: *label, CapturePoint: *point,
			Tool: "capture " + cli.Version(),
			Pcap: capture.Pcap{Files: files, Stdin: env.Stdin},
			Progress: func(done, total int64) {
				if total > 0 {
					progress.Report("read %d of %d MB", done>>20, total>>20)
				} else {
					progress.Report("read %d MB", done>>20)
				}
			},
		})
		progress.Done()
		if errors.Is(err, tracedir.ErrNotEmpty) {
			return fmt.Errorf("%w: choose another name, or add to it with --append", err)
		}
		if err != nil && len(manifest.Runs) == 0 {
			return err
		}
		run := manifest.Runs[len(manifest.Runs)-1]
		for _, w := range run.Warnings {
			fmt.Fprintf(env.Stderr, "capture pcap: warning: %s\n", w)
		}
		return errors.Join(err, summarise(env.Stdout, *format, *trace, run))
	}
}

// summarise prints what the run saw: its ledger, zeros left out where people read it.
func summarise(w io.Writer, format, trace string, run schema.Run) error {
	switch format {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(run)
	case "csv":
		rows := csv.NewWriter(w)
		records := [][]string{{"name", "severity", "count", "part_of"}}
		for _, c := range run.Ledger {
			records = append(records, []string{c.Name, string(c.Severity), strconv.FormatInt(c.Count, 10), c.PartOf})
		}
		return rows.WriteAll(records)
	case "markdown":
		text := "| counter | count | meaning |\n|---|--:|---|\n"
		for _, c := range run.Ledger {
			text += fmt.Sprintf("| %s | %d | %s |\n", c.Name, c.Count, c.Doc)
		}
		_, err := io.WriteString(w, text)
		return err
	default:
		return summaryText(w, trace, run)
	}
}

func summaryText(w io.Writer, trace string, run schema.Run) error {
	_, err := fmt.Fprintf(w, "%s: %d requests, %d stream records on %d connections\n\n", trace,
		run.Ledger.Get("exchanges_recorded"), run.Ledger.Get("stream_records"), run.Ledger.Get("tcp_connections"))
	for _, c := range run.Ledger {
		if c.Count == 0 {
			continue
		}
		note := ""
		if c.Severity != schema.SeverityInfo {
			note = " (" + string(c.Severity) + ")"
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "%12d  %*s%s%s\n", c.Count, 2*run.Ledger.Depth(c), "", c.Doc, note)
		}
	}
	return err
}
