package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokentrace/schema"
	"tokentrace/schema/tracedir"
)

const example = "../../testdata/pcaps/llamacpp-chat/llamacpp-chat.pcap"

// call runs the command and returns what it printed and its exit code.
func call(t *testing.T, stdin []byte, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, bytes.NewReader(stdin), &out, &errs)
	return out.String(), errs.String(), code
}

func TestPcap(t *testing.T) {
	raw, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"flags last":     {"pcap", example, "-o", "TRACE"},
		"flags first":    {"pcap", "-o", "TRACE", "--label", "x", example},
		"standard input": {"pcap", "-", "-o=TRACE"},
	} {
		dir := filepath.Join(t.TempDir(), "trace")
		for i := range args {
			args[i] = strings.Replace(args[i], "TRACE", dir, 1)
		}
		out, errs, code := call(t, raw, args...)
		if code != 0 || errs != "" || !strings.Contains(out, "42 requests, 856 stream records on 59 connections") {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errs)
		}
		if !tracedir.IsTrace(dir) {
			t.Errorf("%s: no trace", name)
		}
	}
}

func TestFormats(t *testing.T) {
	for format, check := range map[string]func(out string) bool{
		"json": func(out string) bool {
			var r schema.Run
			return json.Unmarshal([]byte(out), &r) == nil && r.Ledger.Check() == nil && r.Ledger.Get("packets") == 2240
		},
		"csv": func(out string) bool {
			rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
			return err == nil && len(rows) > 10 && rows[1][0] == "packets" && rows[1][2] == "2240"
		},
		"markdown": func(out string) bool { return strings.Contains(out, "| packets | 2240 |") },
	} {
		out, errs, code := call(t, nil, "pcap", example, "-o", filepath.Join(t.TempDir(), "trace"), "--format", format)
		if code != 0 || errs != "" || !check(out) {
			t.Errorf("%s: exit %d\n%s%s", format, code, out, errs)
		}
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pcap")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(dir, "trace")
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string // in stderr
	}{
		{"nothing", nil, 2, "Commands:"},
		{"unknown command", []string{"fly"}, 2, `no command "fly"`},
		{"unknown flag", []string{"pcap", "--fly", example}, 2, "fly"},
		{"no trace named", []string{"pcap", example}, 2, "-o TRACE"},
		{"no file named", []string{"pcap", "-o", trace}, 2, "name a capture file"},
		{"bad format", []string{"pcap", example, "-o", trace, "--format", "yaml"}, 2, `no format "yaml"`},
		{"missing file", []string{"pcap", "missing.pcap", "-o", trace}, 1, "missing.pcap"},
		{"empty file", []string{"pcap", empty, "-o", trace}, 1, "empty.pcap: the file is empty"},
		{"directory", []string{"pcap", dir, "-o", trace}, 1, "is a directory"},
		{"trace not empty", []string{"pcap", example, "-o", dir}, 1, "--append"},
	} {
		_, errs, code := call(t, nil, tt.args...)
		if code != tt.code || !strings.Contains(errs, tt.want) {
			t.Errorf("%s: exit %d, %q; want %d, %q", tt.name, code, errs, tt.code, tt.want)
		}
		if tt.code == 1 && strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: not one line: %q", tt.name, errs)
		}
		if tracedir.IsTrace(trace) {
			t.Fatalf("%s: made a trace", tt.name)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"--help"}, {"pcap", "--help"}, {"help", "pcap"}, {"version"}} {
		out, errs, code := call(t, nil, args...)
		if code != 0 || errs != "" || out == "" || strings.Count(out, "\n") > 24 {
			t.Errorf("%v: exit %d, %d lines\n%s%s", args, code, strings.Count(out, "\n"), out, errs)
		}
	}
	out, _, _ := call(t, nil, "pcap", "--help")
	for _, line := range strings.Split(out, "\n") {
		if len(line) > 100 {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
}
