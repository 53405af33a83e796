package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tokentrace/analysis"
	"tokentrace/analysis/report"
	"tokentrace/internal/cli"
)

// formats are the values of --format.
func formats() []string { return []string{"text", "json", "csv", "markdown"} }

func formatFlag(fs *flag.FlagSet) *string {
	return fs.String("format", "text", "`how` to print: "+strings.Join(formats(), ", "))
}

func checkFormat(format string) error {
	if !slices.Contains(formats(), format) {
		return cli.Usagef("no format %q: choose from %s", format, strings.Join(formats(), ", "))
	}
	return nil
}

// show writes a result as JSON, or its document in another format.
func show(env cli.Env, format string, result any, document report.Document) error {
	switch format {
	case "json":
		return report.WriteJSON(env.Stdout, result)
	case "csv":
		return report.WriteCSV(env.Stdout, document)
	case "markdown":
		return report.WriteMarkdown(env.Stdout, document)
	default:
		return report.WriteText(env.Stdout, document)
	}
}

// question is a command that asks one open trace one thing.
type question func(ctx context.Context, t *analysis.Trace, env cli.Env, operands []string, format string) error

// ask returns what runs a question: it checks the command line, opens the trace and releases it.
func ask(format *string, operands string, n int, q question) func(context.Context, cli.Env, []string) error {
	return func(ctx context.Context, env cli.Env, args []string) (err error) {
		if err := checkFormat(*format); err != nil {
			return err
		}
		if len(args) != n {
			return cli.Usagef("want %s", operands)
		}
		t, done, err := openInput(ctx, env, args[0], "")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, done()) }()
		return q(ctx, t, env, args[1:], *format)
	}
}

func percentilesCommand() cli.Command {
	return cli.Command{
		Name: "percentiles", Operands: "TRACE|CAPTURE [--by COLUMN,...]",
		Summary: "Print TTFT, TPOT, inter-chunk and end-to-end latency with intervals",
		Help: "Quantiles of requests with status ok, each with a 95 % interval at the effective sample size.\n" +
			"A quantile that the sample cannot bound is printed as a lower bound with what it lacks.\n" +
			"Columns to group by: " + strings.Join(analysis.GroupColumns()[:7], ", ") + ",\n" +
			strings.Join(analysis.GroupColumns()[7:], ", ") + ".",
		Examples: []string{
			"analyze percentiles testdata/pcaps/llamacpp-chat/llamacpp-chat.pcap",
			"analyze percentiles testdata/pcaps/llamacpp-chat/llamacpp-chat.pcap --by model,path --format csv",
		},
		Setup: func(fs *flag.FlagSet) func(context.Context, cli.Env, []string) error {
			format := formatFlag(fs)
			by := fs.String("by", "", "group by `columns` of requests, joined by commas")
			return ask(format, "one TRACE", 1, func(ctx context.Context, t *analysis.Trace, env cli.Env, _ []string, format string) error {
				columns, err := groupColumns(*by)
				if err != nil {
					return err
				}
				p, err := t.Percentiles(ctx, columns)
				if err != nil {
					return err
				}
				return show(env, format, p, report.PercentileDocument(p, format))
			})
		},
	}
}

func groupColumns(by string) ([]string, error) {
	if by == "" {
		return nil, nil
	}
	columns := strings.Split(by, ",")
	for i, c := range columns {
		columns[i] = strings.TrimSpace(c)
		if columns[i] == "endpoint" {
			columns[i] = "path"
		}
		if columns[i] == "status" {
			return nil, cli.Usagef("cannot group by status: percentiles rest on status ok alone; 'analyze sql' counts the others")
		}
		if !slices.Contains(analysis.GroupColumns(), columns[i]) {
			return nil, cli.Usagef("cannot group by %q: choose from %s", c, strings.Join(analysis.GroupColumns(), ", "))
		}
	}
	return columns, nil
}

func regressCommand() cli.Command {
	return cli.Command{
		Name: "regress", Operands: "TRACE|CAPTURE",
		Summary: "Fit TTFT against prompt length: ms per 1000 tokens, per model",
		Help: "The headline is the line that 85 % of the requests stay below, over requests that came while\n" +
			"no other waited for its first token. Least squares (HC3), Huber and a quadratic stand beside it.",
		Examples: []string{
			"analyze regress testdata/pcaps/llamacpp-chat/llamacpp-chat.pcap",
			"analyze regress testdata/pcaps/llamacpp-chat/llamacpp-chat.pcap --seed 7 --format json",
		},
		Setup: func(fs *flag.FlagSet) func(context.Context, cli.Env, []string) error {
			format := formatFlag(fs)
			seed := fs.Uint64("seed", analysis.DefaultSeed, "`seed` of the bootstrap")
			return ask(format, "one TRACE", 1, func(ctx context.Context, t *analysis.Trace, env cli.Env, _ []string, format string) error {
				r, err := t.Regress(ctx, *seed)
				if err != nil {
					return err
				}
				return show(env, format, r, report.FitDocument(r, format))
			})
		},
	}
}

func timelineCommand() cli.Command {
	return cli.Command{
		Name: "timeline", Operands: "TRACE|CAPTURE REQUEST",
		Summary: "Show one request, record by record",
		Help: "REQUEST is a request_id or the x-request-id that the client sent.\n" +
			"'analyze sql TRACE \"select request_id from requests order by ttft_ns desc\"' lists them.",
		Examples: []string{
			"analyze timeline testdata/pcaps/llamacpp-chat/llamacpp-chat.pcap p-lo-openai-0022",
			"analyze timeline testdata/pcaps/llamacpp-chat/llamacpp-chat.pcap p-lo-openai-0022 --format json",
		},
		Setup: func(fs *flag.FlagSet) func(context.Context, cli.Env, []string) error {
			return ask(formatFlag(fs), "a TRACE and a REQUEST", 2, func(ctx context.Context, t *analysis.Trace, env cli.Env, args []string, format string) error {
				l, err := t.Timeline(ctx, args[0])
				if err != nil {
					return err
				}
				return show(env, format, l, report.TimelineDocument(l, format))
			})
		},
	}
}

func sqlCommand() cli.Command {
	return cli.Command{
		Name: "sql", Operands: "TRACE|CAPTURE 'select ...'",
		Summary: "Run any query over the trace's tables",
		Help: "Views: requests, events, connections, ledger, runs, trace_info; 'describe requests' lists columns.\n" +
			"SQL is DuckDB's; statements that write, and other files, are out of reach.",
		Examples: []string{
			"analyze sql testdata/pcaps/llamacpp-chat/llamacpp-chat.pcap 'select status, count(*) from requests group by 1'",
			"analyze sql testdata/pcaps/llamacpp-chat/llamacpp-chat.pcap 'from requests select ttft_ns' --format json",
		},
		Setup: func(fs *flag.FlagSet) func(context.Context, cli.Env, []string) error {
			return ask(formatFlag(fs), "a TRACE and one statement", 2, func(ctx context.Context, t *analysis.Trace, env cli.Env, args []string, format string) (err error) {
				rows, err := t.SQL(ctx, args[0])
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, rows.Close()) }()
				names := make([]string, len(rows.Columns))
				for i, c := range rows.Columns {
					names[i] = c.Name
				}
				return report.WriteRows(env.Stdout, format, names, rows.Next)
			})
		},
	}
}

func reportCommand() cli.Command {
	return cli.Command{
		Name: "report", Operands: "TRACE|CAPTURE [-o DIR] [--keep DIR]",
		Summary: "Report everything: one page, its figures and its numbers",
		Help: "Writes report.html (one file that needs no other), report.json and figures/ into DIR,\n" +
			"or into NAME.report beside the input, and prints a summary. '-' is a capture on standard input.",
		Examples: []string{
			"analyze report testdata/pcaps/llamacpp-chat/llamacpp-chat.pcap -o chat",
			"analyze report testdata/pcaps/llamacpp-chat/llamacpp-chat.pcap -o chat --keep chat.trace",
		},
		Setup: func(fs *flag.FlagSet) func(context.Context, cli.Env, []string) error {
			format := formatFlag(fs)
			out := fs.String("o", "", "write the report into `DIR`")
			keep := fs.String("keep", "", "keep the trace made of a capture file in `DIR`")
			return func(ctx context.Context, env cli.Env, args []string) error {
				if err := checkFormat(*format); err != nil {
					return err
				}
				if len(args) != 1 {
					return cli.Usagef("want one TRACE")
				}
				dir := *out
				if dir == "" && args[0] == stdinName {
					return cli.Usagef("say where the report of standard input goes: -o DIR")
				}
				if dir == "" {
					dir = reportDir(args[0])
				}
				return makeReport(ctx, env, args[0], dir, *keep, *format)
			}
		},
	}
}

// reportDir is NAME.report beside the input.
func reportDir(path string) string {
	path = filepath.Clean(path)
	if absolute, err := filepath.Abs(path); err == nil && filepath.Base(path) == "." {
		path = absolute
	}
	return filepath.Join(filepath.Dir(path), inputName(path)+".report")
}

// inputName is the input's name without the endings of captures and traces.
func inputName(path string) string {
	name := filepath.Base(filepath.Clean(path))
	for _, end := range []string{".gz", ".zst", ".pcap", ".pcapng", ".cap", ".trace"} {
		if short := strings.TrimSuffix(name, end); short != "" {
			name = short
		}
	}
	return name
}

// displayName is what the report calls its input.
func displayName(path string) string {
	if path == stdinName {
		return "standard input"
	}
	return filepath.Base(filepath.Clean(path))
}

func makeReport(ctx context.Context, env cli.Env, path, dir, keep, format string) (err error) {
	// Reading a capture takes long: what would fail at its end fails here.
	if _, err := os.Stat(path); err == nil || path == stdinName {
		if err := report.CheckDir(dir); err != nil {
			return err
		}
	}
	t, done, err := openInput(ctx, env, path, keep)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	results, err := report.Gather(ctx, t, displayName(path), "analyze "+cli.Version())
	if err != nil {
		return err
	}
	if err := report.Write(dir, results); err != nil {
		return err
	}
	document := results.Brief(filepath.Join(dir, report.PageName))
	if format == "csv" {
		document = results.Sheet()
	}
	return show(env, format, results, document)
}
