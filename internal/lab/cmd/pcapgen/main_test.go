package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokentrace/internal/lab/pcapgen"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	out, truth := filepath.Join(dir, "a.pcap"), filepath.Join(dir, "a.jsonl")
	var stdout, stderr bytes.Buffer
	args := []string{"-o", out, "-truth", truth, "-size", "200KB", "-conc", "2", "-tokens", "20", "-port", "9000"}
	if code := run(args, &stdout, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	var sum pcapgen.Summary
	if err := json.Unmarshal(stdout.Bytes(), &sum); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() != sum.Bytes || sum.Bytes < 200_000 {
		t.Errorf("file of %d bytes, summary %d", info.Size(), sum.Bytes)
	}
	lines, err := os.ReadFile(truth)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(lines, []byte("\n")); n != sum.Requests {
		t.Errorf("%d lines of truth for %d requests", n, sum.Requests)
	}
}

func TestRunToStdout(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run([]string{"-o", "-", "-requests", "2", "-conc", "1"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	if !bytes.HasPrefix(stdout.Bytes(), []byte{0xd4, 0xc3, 0xb2, 0xa1}) || !strings.Contains(stderr.String(), `"packets"`) {
		t.Errorf("no capture on stdout, or no summary on stderr: %q", stderr.String())
	}
}

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{{}, {"-o", "x"}, {"-o", "x", "-size", "5 parsecs"}, {"-o", "x", "-port", "70000", "-requests", "1"}} {
		var stdout, stderr bytes.Buffer
		if code := run(args, &stdout, &stderr); code != 2 || stderr.Len() == 0 {
			t.Errorf("%v: exit %d, %q", args, code, stderr.String())
		}
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{"50MB": 50e6, "2GB": 2e9, "1.5KB": 1500, "7": 7, "8B": 8} {
		if got, err := parseSize(s); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "MB", "-1MB", "5XB", "NaN"} {
		if got, err := parseSize(s); err == nil {
			t.Errorf("%q: accepted as %d", s, got)
		}
	}
}
