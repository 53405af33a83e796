package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokentrace/internal/cli"
	"tokentrace/schema/schematest"
)

// pcap is a capture of 42 chats.
const pcap = "../../testdata/pcaps/llamacpp-chat/llamacpp-chat.pcap"

func makeTrace(t *testing.T, n int64) string {
	t.Helper()
	trace := schematest.New(n * schematest.Second)
	for i := range n {
		trace.Add(schematest.Stream{
			Start: i * schematest.Second, TTFT: (100 + i) * schematest.Millisecond, Gap: schematest.Millisecond,
			Tokens: 4, Prompt: 100 + i*10, ClientID: "client-" + string(rune('a'+i%26)),
		})
	}
	dir := filepath.Join(t.TempDir(), "monday.trace")
	trace.Write(t, dir)
	return dir
}

func try(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestEveryCommandAndFormat(t *testing.T) {
	dir := makeTrace(t, 20)
	for _, args := range [][]string{
		{"report", dir}, {"percentiles", dir}, {"percentiles", dir, "--by", "model,endpoint"}, {"regress", "--seed", "3", dir},
		{"timeline", dir, "run1.1"}, {"timeline", dir, "client-b"}, {"sql", dir, "select request_id, flags, ttft_ns from requests"},
	} {
		for _, format := range formats() {
			code, out, errs := try(t, append(args, "--format", format)...)
			if code != cli.ExitOK || out == "" || errs != "" {
				t.Errorf("%v %s: exit %d, %q, stderr %q", args, format, code, out, errs)
			}
			if format == "json" && !json.Valid([]byte(out)) {
				t.Errorf("%v: no JSON: %s", args, out)
			}
		}
	}
}

func TestReportFiles(t *testing.T) {
	dir := makeTrace(t, 20)
	code, out, errs := try(t, "report", dir)
	if code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	report := filepath.Join(filepath.Dir(dir), "monday.report")
	if !strings.Contains(out, filepath.Join(report, "report.html")) {
		t.Errorf("the summary does not say where the report is: %s", out)
	}
	for _, f := range []string{"report.html", "report.json", "figures/ttft.png", "figures/ttft.svg", "figures/waterfall.png"} {
		if info, err := os.Stat(filepath.Join(report, f)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func TestSQLJSON(t *testing.T) {
	_, out, _ := try(t, "sql", makeTrace(t, 2), "select request_id, ttft_ns, cached_tokens, flags from requests order by request", "--format", "json")
	var rows []map[string]any
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || rows[0]["request_id"] != "run1.1" || rows[0]["ttft_ns"] != 1e8 || rows[0]["cached_tokens"] != nil {
		t.Errorf("got %v", rows)
	}
	if flags, ok := rows[0]["flags"].([]any); !ok || len(flags) != 0 {
		t.Errorf("flags %v", rows[0]["flags"])
	}
}

func TestFailures(t *testing.T) {
	dir := makeTrace(t, 2)
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(t.TempDir(), "garbage.pcap")
	if err := os.WriteFile(garbage, []byte("this is no capture at all, whatever its name"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"report", filepath.Join(full, "none")}, cli.ExitFailed, "does not exist"},
		{[]string{"report", full}, cli.ExitFailed, "without a trace"},
		{[]string{"report", garbage}, cli.ExitFailed, "garbage.pcap"},
		{[]string{"report", dir, "-o", full}, cli.ExitFailed, "-o"},
		{[]string{"report", dir, "--keep", full}, cli.ExitUsage, "--keep"},
		{[]string{"report", pcap, "-o", filepath.Join(full, "r"), "--keep", full}, cli.ExitFailed, "choose another name"},
		{[]string{"report", "-"}, cli.ExitUsage, "-o"},
		{[]string{"sql", dir, "select 1; select 2"}, cli.ExitFailed, "exactly one statement"},
		{[]string{"sql", dir, "select 1; drop table x"}, cli.ExitFailed, "exactly one statement"},
		{[]string{"report"}, cli.ExitUsage, "TRACE"},
		{[]string{"percentiles", dir, "--by", "colour"}, cli.ExitUsage, "colour"},
		{[]string{"percentiles", dir, "--format", "xml"}, cli.ExitUsage, "xml"},
		{[]string{"timeline", dir, "nobody"}, cli.ExitFailed, "nobody"},
		{[]string{"timeline", dir}, cli.ExitUsage, "REQUEST"},
		{[]string{"sql", dir, "drop view requests"}, cli.ExitFailed, "only one statement that reads"},
		{[]string{"sql", dir, "select nonsense"}, cli.ExitFailed, "nonsense"},
		{[]string{"sql", dir, "select * from read_csv('/etc/hostname')"}, cli.ExitFailed, "hostname"},
	} {
		code, _, errs := try(t, c.args...)
		if code != c.code || !strings.Contains(errs, c.says) || strings.Contains(errs, "--append") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, stderr %q; want %d and %q", c.args, code, errs, c.code, c.says)
		}
	}
}

// TestSameIDs: a trace made on the way from the same file has the same ids.
func TestSameIDs(t *testing.T) {
	ids := func() string {
		_, out, errs := try(t, "sql", pcap, "select request_id from requests order by request; -- all; of them", "--format", "csv")
		if errs != "" {
			t.Fatal(errs)
		}
		return out
	}
	first := ids()
	if first != ids() {
		t.Error("ids differ from one run to the next")
	}
	id := strings.Split(first, "\n")[1]
	if code, out, errs := try(t, "timeline", pcap, id); code != cli.ExitOK || !strings.Contains(out, id) {
		t.Errorf("timeline of %s: exit %d, %s", id, code, errs)
	}
}

func TestReportOfStandardInput(t *testing.T) {
	f, err := os.Open(pcap)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := filepath.Join(t.TempDir(), "r")
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"report", "-", "-o", dir}, f, &out, &errs); code != cli.ExitOK || !strings.Contains(out.String(), "42 seen") {
		t.Errorf("exit %d, %s%s", code, out.String(), errs.String())
	}
}

func TestEmptyTrace(t *testing.T) {
	dir := makeTrace(t, 0)
	for _, args := range [][]string{{"report", dir}, {"percentiles", dir}, {"regress", dir}, {"sql", dir, "from requests"}} {
		if code, out, errs := try(t, args...); code != cli.ExitOK || out == "" || errs != "" {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, errs)
		}
	}
}

func TestHelpFitsAScreen(t *testing.T) {
	for _, name := range []string{"report", "percentiles", "regress", "timeline", "sql"} {
		code, out, _ := try(t, name, "--help")
		lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
		if code != cli.ExitOK || len(lines) > 24 {
			t.Errorf("%s: exit %d, %d lines", name, code, len(lines))
		}
		for _, l := range lines[len(lines)-2:] {
			if !strings.HasPrefix(l, "  analyze "+name) {
				t.Errorf("%s: the last lines are no examples: %q", name, l)
			}
		}
		for _, l := range lines {
			if len(l) > 114 {
				t.Errorf("%s: a line of %d characters: %s", name, len(l), l)
			}
		}
	}
}

func TestInputNames(t *testing.T) {
	for path, want := range map[string]string{
		"a/b.pcap": "a/b.report", "a/b.pcapng.gz": "a/b.report", "x.trace/": "x.report", ".pcap": ".pcap.report", "plain": "plain.report",
	} {
		if got := reportDir(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
