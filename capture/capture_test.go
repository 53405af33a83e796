package capture_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokentrace/capture"
	"tokentrace/schema"
)

const example = "../testdata/pcaps/llamacpp-chat/llamacpp-chat.pcap"

// splitPcap cuts a little-endian pcap into files and returns them last first.
func splitPcap(t *testing.T, file string, n int) (files []string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest := raw[:24], raw[24:]
	dir := t.TempDir()
	for i := range n {
		size := 0
		for size < len(rest) && (size < len(raw)/n || i == n-1) {
			size += 16 + int(binary.LittleEndian.Uint32(rest[size+8:]))
		}
		name := filepath.Join(dir, fmt.Sprintf("part%d.pcap", i))
		if err := os.WriteFile(name, append(bytes.Clone(head), rest[:size]...), 0o600); err != nil {
			t.Fatal(err)
		}
		rest = rest[size:]
		files = append([]string{name}, files...)
	}
	return files
}

// TestNothingToRead checks that what cannot be read at all is one clear line and
// leaves nothing behind.
func TestNothingToRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, want := range map[string]string{
		write("empty.pcap", ""):                        "empty",
		write("text.pcap", "no capture here"):          "neither pcap nor pcapng",
		write("short.pcap", "\xd4\xc3"):                "ends after 2 bytes",
		dir:                                            "is a directory",
		filepath.Join(dir, "missing.pcap"):             "no such file",
		write("head.pcap", "\xd4\xc3\xb2\xa1\x02\x00"): "cut in its header",
	} {
		out := filepath.Join(dir, "trace")
		_, err := capture.Run(t.Context(), capture.Config{Trace: out, Pcap: capture.Pcap{Files: []string{path}}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want the path and %q", path, err, want)
		}
		if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a trace was begun", path)
		}
	}
}

// TestNoTraffic checks that captures without LLM traffic give a trace of nothing.
func TestNoTraffic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "udp.pcap")
	raw, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	udp := bytes.Clone(raw[:24+16+60])
	binary.LittleEndian.PutUint32(udp[24+8:], 60)
	udp[24+16+23] = 17 // the IP protocol
	for name, data := range map[string][]byte{"no packets": raw[:24], "no TCP": udp} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		tr := record(t, path)
		if len(tr.requests) != 0 || len(tr.manifest.Runs) != 1 {
			t.Errorf("%s: %d requests, %d runs", name, len(tr.requests), len(tr.manifest.Runs))
		}
	}
}

// TestCutFile checks that a file cut anywhere gives what stands before the cut, a
// warning, and counters that add up.
func TestCutFile(t *testing.T) {
	raw, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut.pcap")
	for _, n := range []int{25, 40, 41, 10_000, 100_001, 300_007, len(raw) - 1} {
		if err := os.WriteFile(path, raw[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		tr := record(t, path)
		if tr.manifest.Ledger.Get("files_damaged") != 1 || len(tr.manifest.Runs[0].Warnings) != 1 {
			t.Errorf("cut at %d: warnings %q", n, tr.manifest.Runs[0].Warnings)
		}
		for _, r := range tr.requests {
			if r.Status != schema.StatusOK && r.Status != schema.StatusCensoredEnd {
				t.Errorf("cut at %d: a request is %s", n, r.Status)
			}
		}
	}
}

// TestDamagedBytes flips bytes all over a capture: it costs records, never the run.
func TestDamagedBytes(t *testing.T) {
	raw, err := os.ReadFile("../testdata/pcaps/mixed-sll1/mixed-sll1.pcap")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bad.pcap")
	for seed := range 20 {
		bad := bytes.Clone(raw)
		for i := 24 + seed*13; i < len(bad); i += 997 + seed*101 {
			bad[i] ^= byte(i)
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		record(t, path)
	}
}

// TestSomeFilesUnreadable checks that one bad file costs itself alone.
func TestSomeFilesUnreadable(t *testing.T) {
	tr := record(t, example, filepath.Join(t.TempDir(), "missing.pcap"))
	if len(tr.requests) != 42 || len(tr.manifest.Runs[0].Warnings) != 1 {
		t.Errorf("%d requests, warnings %q", len(tr.requests), tr.manifest.Runs[0].Warnings)
	}
}

func TestSameFileTwice(t *testing.T) {
	tr := record(t, example, "../testdata/../testdata/pcaps/llamacpp-chat/llamacpp-chat.pcap")
	if len(tr.requests) != 42 || len(tr.manifest.Runs[0].Warnings) != 1 {
		t.Errorf("%d requests, warnings %q", len(tr.requests), tr.manifest.Runs[0].Warnings)
	}
}

func TestStdin(t *testing.T) {
	raw, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	cfg := capture.Config{Trace: filepath.Join(t.TempDir(), "trace"), Pcap: capture.Pcap{Files: []string{"-"}, Stdin: bytes.NewReader(raw)}}
	m, err := capture.Run(t.Context(), cfg)
	if err != nil || m.Ledger.Get("exchanges_recorded") != 42 {
		t.Errorf("%d requests, %v", m.Ledger.Get("exchanges_recorded"), err)
	}
}

// cancelAfter is input whose reader is interrupted after some bytes.
type cancelAfter struct {
	io.Reader
	left   int
	cancel func()
}

func (c *cancelAfter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.left -= n; c.left < 0 {
		c.cancel()
	}
	return n, err
}

// TestInterruptedMidway checks that the counters add up where reading stops in the
// middle, and that what was read is in the trace.
func TestInterruptedMidway(t *testing.T) {
	raw, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	long := append(bytes.Clone(raw), bytes.Repeat(raw[24:], 19)...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stdin := &cancelAfter{bytes.NewReader(long), len(long) / 2, cancel}
	dir := filepath.Join(t.TempDir(), "trace")
	m, err := capture.Run(ctx, capture.Config{Trace: dir, Pcap: capture.Pcap{Files: []string{"-"}, Stdin: stdin}})
	if !errors.Is(err, context.Canceled) || len(m.Runs) != 1 {
		t.Fatalf("error %v, manifest %+v", err, m)
	}
	if err := m.Ledger.Check(); err != nil {
		t.Error(err)
	}
	if n := m.Ledger.Get("packets"); n < 2240 || n >= 20*2240 || m.Ledger.Get("exchanges_recorded") < 42 {
		t.Errorf("%d packets, %d requests", n, m.Ledger.Get("exchanges_recorded"))
	}
}

// TestInterrupted checks that a run that is called off before it begins is a trace of
// nothing.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := filepath.Join(t.TempDir(), "trace")
	cfg := capture.Config{Trace: dir, Pcap: capture.Pcap{Files: []string{example}}}
	m, err := capture.Run(ctx, cfg)
	if !errors.Is(err, context.Canceled) || len(m.Runs) != 1 || len(m.Runs[0].Warnings) != 1 {
		t.Fatalf("error %v, manifest %+v", err, m)
	}
	if err := m.Ledger.Check(); err != nil {
		t.Error(err)
	}
}

// TestManyFiles reads more files than may be open at once.
func TestManyFiles(t *testing.T) {
	raw, err := os.ReadFile("../testdata/pcaps/log-stall/log-stall.pcap")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "none.pcap")
	files := make([]string, 1100)
	for i := range files {
		files[i] = fmt.Sprintf("%s.%d", path, i)
		if err := os.WriteFile(files[i], raw[:24], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tr := record(t, append(files, example)...)
	if len(tr.requests) != 42 || len(tr.manifest.Runs[0].Warnings) != 0 {
		t.Errorf("%d requests, warnings %q", len(tr.requests), tr.manifest.Runs[0].Warnings)
	}
}

// TestSealedFiles checks what lies on disk: sealed parts and the manifest, nothing else,
// and no text of prompts, answers or credentials.
func TestSealedFiles(t *testing.T) {
	tr := record(t, example)
	listed := map[string]bool{"manifest.json": true}
	for _, p := range tr.manifest.Parts {
		listed[filepath.FromSlash(p.Path)] = true
	}
	err := filepath.WalkDir(tr.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(tr.dir, path)
		if err != nil {
			return err
		}
		if !listed[name] {
			t.Errorf("%s is not listed", name)
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("sk-test")) || bytes.Contains(data, []byte("Bearer")) {
			t.Errorf("%s holds a credential", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range tr.requests {
		if r.PromptBytes.V == 0 {
			t.Errorf("request %d has no prompt length", r.Request)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	info, err := os.Stat(example)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		cfg := capture.Config{Trace: filepath.Join(b.TempDir(), fmt.Sprint(i)), Pcap: capture.Pcap{Files: []string{example}}}
		if _, err := capture.Run(b.Context(), cfg); err != nil {
			b.Fatal(err)
		}
	}
}
