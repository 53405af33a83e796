package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
)

// echo returns a tool whose command prints its flags and operands, or fails with err.
func echo(err error) *Tool {
	return &Tool{Name: "tool", Summary: "does things", Commands: []Command{{
		Name: "echo", Operands: "WORD...", Summary: "Say it", Help: "More.", Examples: []string{"tool echo a"},
		Setup: func(fs *flag.FlagSet) func(context.Context, Env, []string) error {
			out := fs.String("o", "", "write to `FILE`")
			loud := fs.Bool("loud", false, "shout")
			return func(_ context.Context, env Env, operands []string) error {
				fmt.Fprintf(env.Stdout, "o=%s loud=%v %q", *out, *loud, operands)
				return err
			}
		},
	}}}
}

func call(t *testing.T, tool *Tool, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = tool.Run(t.Context(), Env{Stdout: &out, Stderr: &errs}, args)
	return out.String(), errs.String(), code
}

func TestFlagsAnywhere(t *testing.T) {
	for line, want := range map[string]string{
		"echo a b":                 `o= loud=false ["a" "b"]`,
		"echo -o x a b":            `o=x loud=false ["a" "b"]`,
		"echo a -o x b --loud":     `o=x loud=true ["a" "b"]`,
		"echo a --o=x -- b --loud": `o=x loud=false ["a" "b" "--loud"]`,
		"echo -":                   `o= loud=false ["-"]`,
		"echo -- -o":               `o= loud=false ["-o"]`,
		"echo":                     `o= loud=false []`,
	} {
		if out, errs, code := call(t, echo(nil), strings.Fields(line)...); out != want || errs != "" || code != ExitOK {
			t.Errorf("%s: exit %d, %s%s; want %s", line, code, out, errs, want)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, tt := range []struct {
		err  error
		line string
		code int
		want string
	}{
		{nil, "echo a", ExitOK, ""},
		{errors.Join(errors.New("one"), errors.New("two")), "echo a", ExitFailed, "tool echo: one; two\n"},
		{Usagef("no %s", "word"), "echo", ExitUsage, "tool echo: no word; see 'tool echo --help'\n"},
		{fmt.Errorf("read: %w", context.Canceled), "echo a", ExitInterrupted, "tool echo: interrupted\n"},
		{nil, "echo --fly", ExitUsage, "tool echo: flag provided but not defined: -fly; see 'tool echo --help'\n"},
		{nil, "sing", ExitUsage, "tool: no command \"sing\"; see 'tool help'\n"},
	} {
		if _, errs, code := call(t, echo(tt.err), strings.Fields(tt.line)...); code != tt.code || errs != tt.want {
			t.Errorf("%s: exit %d, %q; want %d, %q", tt.line, code, errs, tt.code, tt.want)
		}
	}
}

func TestHelp(t *testing.T) {
	for line, wants := range map[string][]string{
		"help":        {"tool: does things", "echo  Say it"},
		"echo --help": {"Usage: tool echo WORD...", "-o FILE", "write to FILE", "--loud", "Examples:\n  tool echo a"},
		"help echo":   {"Usage: tool echo WORD..."},
		"version":     {"tool "},
	} {
		out, errs, code := call(t, echo(nil), strings.Fields(line)...)
		for _, want := range wants {
			if !strings.Contains(out, want) || errs != "" || code != ExitOK {
				t.Errorf("%s: exit %d, no %q in\n%s%s", line, code, want, out, errs)
			}
		}
	}
	if out, errs, code := call(t, echo(nil)); out != "" || code != ExitUsage || !strings.Contains(errs, "echo  Say it") {
		t.Errorf("no arguments: exit %d, %s%s", code, out, errs)
	}
}

func TestProgressIsQuietOffATerminal(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out)
	p.Report("%d", 1)
	p.Done()
	if out.Len() > 0 {
		t.Errorf("printed %q", out.String())
	}
}
