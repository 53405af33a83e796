package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func writeFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "it's a file")
	if err := os.WriteFile(path, make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMeasure(t *testing.T) {
	b := bench{file: writeFile(t), log: io.Discard, programs: []program{
		{base, "cat {f} > {tmp}/copy && cmp {f} {tmp}/copy"},
		{"spin", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"},
	}}
	if err := b.run(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	for _, c := range b.costs["spin"] {
		if c.cpu <= 0 || c.wall <= 0 || c.peak <= 0 {
			t.Errorf("cost %+v", c)
		}
	}
	var out bytes.Buffer
	if err := b.print(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "2 rounds") || !strings.Contains(out.String(), "spin") {
		t.Errorf("table: %s", out.String())
	}
}

func TestFailureNamesProgram(t *testing.T) {
	b := bench{file: writeFile(t), log: io.Discard, programs: []program{{"sad", "echo one >&2; echo no luck >&2; exit 3"}}}
	err := b.run(t.Context(), 1)
	if err == nil || err.Error() != "sad: exit status 3: no luck" {
		t.Errorf("got %v", err)
	}
}

func TestTable(t *testing.T) {
	cpu := func(ms ...int) (v []cost) {
		for _, m := range ms {
			d := time.Duration(m) * time.Millisecond
			v = append(v, cost{cpu: d, wall: 2 * d, peak: 5e6})
		}
		return v
	}
	b := bench{file: "x.pcap", size: 100e6, floor: 3e6, programs: []program{{name: base}, {name: "capture"}},
		costs: map[string][]cost{base: cpu(100, 200, 100), "capture": cpu(200, 300, 250)}}
	var out bytes.Buffer
	if err := b.print(&out); err != nil {
		t.Fatal(err)
	}
	const want = "capture 0.250 2.00 1.50..2.50 400 0.500 2.00 5.0"
	if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, want) {
		t.Errorf("no row %q in\n%s", want, out.String())
	}
}

func TestMedian(t *testing.T) {
	if m := median([]float64{3, 1, 2}); m != 2 {
		t.Errorf("odd: %v", m)
	}
	if m := median([]float64{4, 1, 2, 3}); m != 2.5 {
		t.Errorf("even: %v", m)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"-rounds", "0", "x"}, {"-add", "noname", "x"}} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, &stdout, &stderr); code != 2 || stderr.Len() == 0 {
			t.Errorf("%v: exit %d, %q", args, code, stderr.String())
		}
	}
}
