//go:build further

package lab_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tokentrace/capture"
	"tokentrace/schema"
)

// pyarrowScript prints rows and the sum of a column of each table, and the columns'
// types, as pyarrow reads them.
const pyarrowScript = `
import json, sys
import pyarrow.compute as pc, pyarrow.parquet as pq
out = {}
for table, column in (("requests", "ttft_ns"), ("events", "gap_ns"), ("connections", "to_client_bytes")):
    t = pq.read_table(sys.argv[1] + "/" + table)
    out[table] = {"rows": t.num_rows, "sum": pc.sum(t[column]).as_py(), "types": sorted({str(f.type) for f in t.schema})}
print(json.dumps(out))
`

func TestFurtherPyarrowReadsTheTrace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trace")
	m, err := capture.Run(t.Context(), capture.Config{Trace: dir, Pcap: capture.Pcap{Files: []string{"../../testdata/pcaps/wan-client/wan-client.pcap"}}})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]struct {
		Rows, Sum int64
		Types     []string
	}
	if err := json.Unmarshal(run(t, ".venv/bin/python", "-c", pyarrowScript, dir), &got); err != nil {
		t.Fatal(err)
	}
	var ttft, gap, bytes int64
	requests := rowsOf[schema.Request](t, dir, m, "requests")
	for _, r := range requests {
		ttft += r.TTFT.V
	}
	events := rowsOf[schema.Event](t, dir, m, "events")
	for _, e := range events {
		gap += e.Gap.V
	}
	connections := rowsOf[schema.Connection](t, dir, m, "connections")
	for _, c := range connections {
		bytes += c.ToClientBytes
	}
	for table, want := range map[string][2]int64{
		"requests": {int64(len(requests)), ttft}, "events": {int64(len(events)), gap}, "connections": {int64(len(connections)), bytes},
	} {
		if g := got[table]; g.Rows != want[0] || g.Sum != want[1] {
			t.Errorf("%s: pyarrow reads %d rows with sum %d, want %v", table, g.Rows, g.Sum, want)
		}
		for _, typ := range got[table].Types {
			if !strings.Contains("int64 int32 double bool string", typ) {
				t.Errorf("%s: a column is of type %s", table, typ)
			}
		}
	}
}

// TestFurtherChromiumShowsTheReport checks that a browser makes the whole page of a
// report, without a request to anywhere.
func TestFurtherChromiumShowsTheReport(t *testing.T) {
	dir := t.TempDir()
	report := filepath.Join(dir, "out")
	run(t, "go", "run", "./cmd/analyze", "report", "testdata/pcaps/llamacpp-chat/llamacpp-chat.pcap", "-o", report)
	cmd := exec.CommandContext(t.Context(), "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+filepath.Join(dir, "profile"),
		"--dump-dom", "file://"+filepath.Join(report, "report.html"))
	out, err := cmd.Output() // it writes about its own troubles to stderr
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
	page := string(out)
	if n := strings.Count(page, "<svg"); n < 5 {
		t.Errorf("%d figures", n)
	}
	for _, want := range []string{"TTFT against prompt length", "Longest gaps between tokens", "p-lo-openai-0022", "</html>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, outside := range []string{`src="http`, `href="http`, "url(http", "@import"} {
		if strings.Contains(page, outside) {
			t.Errorf("the page asks elsewhere: %s", outside)
		}
	}
}
