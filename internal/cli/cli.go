// Package cli is what the two commands share: sub-commands with flags that may
// stand before or after operands, help that fits a screen, exit codes, progress.
//
// It knows nothing of captures or traces.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
)

// Exit codes of the commands.
const (
	ExitOK     = 0 // done
	ExitFailed = 1 // could not do it
	ExitUsage  = 2 // the command line is wrong

	ExitInterrupted = 130 // interrupted; what was done until then stands
)

// Env is what a command touches of the world.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer // results only
	Stderr io.Writer // progress, warnings, errors
}

// Main runs a program on the process's arguments and streams and exits with its code.
// The first SIGINT or SIGTERM ends the context, a second one the process. A reader that
// went away is an error of writing, not a signal.
func Main(run func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Command is one sub-command.
type Command struct {
	Name     string
	Operands string   // as the usage line shows them, such as "FILE... -o TRACE"
	Summary  string   // one line, without a full stop
	Help     string   // a few more lines; may be empty
	Examples []string // command lines that work
	// Setup declares flags and returns what runs once they are parsed.
	Setup func(*flag.FlagSet) func(ctx context.Context, env Env, operands []string) error
}

// Tool is a program made of sub-commands.
type Tool struct {
	Name     string
	Summary  string
	Commands []Command
}

// UsageError says that the command line is wrong.
type UsageError struct{ Msg string }

func (e *UsageError) Error() string { return e.Msg }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}

// Run runs the sub-command that args name and returns the exit code.
func (t *Tool) Run(ctx context.Context, env Env, args []string) int {
	if len(args) == 0 {
		t.usage(env.Stderr)
		return ExitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		if len(args) > 1 && t.find(args[1]) != nil {
			return t.runCommand(ctx, env, t.find(args[1]), []string{"--help"})
		}
		t.usage(env.Stdout)
		return ExitOK
	case "version", "-version", "--version":
		fmt.Fprintf(env.Stdout, "%s %s\n", t.Name, Version())
		return ExitOK
	}
	c := t.find(args[0])
	if c == nil {
		fmt.Fprintf(env.Stderr, "%s: no command %q; see '%s help'\n", t.Name, args[0], t.Name)
		return ExitUsage
	}
	return t.runCommand(ctx, env, c, args[1:])
}

func (t *Tool) find(name string) *Command {
	for i := range t.Commands {
		if t.Commands[i].Name == name {
			return &t.Commands[i]
		}
	}
	return nil
}

func (t *Tool) runCommand(ctx context.Context, env Env, c *Command, args []string) int {
	fs := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	run := c.Setup(fs)
	operands, err := parse(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		t.help(env.Stdout, c, fs)
		return ExitOK
	}
	if err == nil {
		err = run(ctx, env, operands)
	} else {
		err = Usagef("%v", err)
	}
	var usage *UsageError
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, syscall.EPIPE): // who reads has seen enough
		return ExitFailed
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(env.Stderr, "%s %s: interrupted\n", t.Name, c.Name)
		return ExitInterrupted
	case errors.As(err, &usage):
		fmt.Fprintf(env.Stderr, "%s %s: %v; see '%s %s --help'\n", t.Name, c.Name, usage, t.Name, c.Name)
		return ExitUsage
	default:
		fmt.Fprintf(env.Stderr, "%s %s: %v\n", t.Name, c.Name, oneLine(err))
		return ExitFailed
	}
}

// oneLine keeps a joined error on one line.
func oneLine(err error) string {
	return strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
}

// parse parses flags wherever they stand; "--" ends them, "-" is an operand.
func parse(fs *flag.FlagSet, args []string) (operands []string, err error) {
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		rest := fs.Args()
		if len(rest) == 0 {
			return operands, nil
		}
		if n := len(args) - len(rest); n > 0 && args[n-1] == "--" {
			return append(operands, rest...), nil
		}
		operands, args = append(operands, rest[0]), rest[1:]
	}
}

func (t *Tool) usage(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n\nCommands:\n", t.Name, t.Summary)
	width := 0
	for _, c := range t.Commands {
		width = max(width, len(c.Name))
	}
	for _, c := range t.Commands {
		fmt.Fprintf(w, "  %-*s  %s\n", width, c.Name, c.Summary)
	}
	fmt.Fprintf(w, "\n'%s COMMAND --help' explains a command.\n", t.Name)
}

func (t *Tool) help(w io.Writer, c *Command, fs *flag.FlagSet) {
	fmt.Fprintf(w, "%s.\n\nUsage: %s %s %s\n", c.Summary, t.Name, c.Name, c.Operands)
	if c.Help != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(c.Help))
	}
	flags := 0
	fs.VisitAll(func(f *flag.Flag) {
		if flags == 0 {
			fmt.Fprintf(w, "\nFlags:\n")
		}
		flags++
		printFlag(w, f)
	})
	if len(c.Examples) > 0 {
		fmt.Fprintf(w, "\nExamples:\n")
		for _, e := range c.Examples {
			fmt.Fprintf(w, "  %s\n", e)
		}
	}
}

func printFlag(w io.Writer, f *flag.Flag) {
	dashes := "--"
	if len(f.Name) == 1 {
		dashes = "-"
	}
	value, text := flag.UnquoteUsage(f)
	head := strings.TrimSpace(dashes + f.Name + " " + value)
	fmt.Fprintf(w, "  %-20s %s", head, text)
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" {
		fmt.Fprintf(w, " (default %s)", f.DefValue)
	}
	fmt.Fprintln(w)
}

// Version is the version that the program was built as.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
