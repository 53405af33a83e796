package http1

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokentrace/capture/internal/stream"
)

// log writes down what a Parser finds, with times.
type log struct {
	lines []string
	body  []byte
}

func (l *log) note(format string, args ...any) {
	l.flush()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *log) flush() {
	if len(l.body) > 0 {
		l.lines = append(l.lines, fmt.Sprintf("body %q", l.body))
		l.body = nil
	}
}

func (l *log) Head(h *Head) bool {
	l.note("head %s%s %d first %d at %d", h.Method, h.Path(), h.Status, h.First, h.At)
	return false
}
func (l *log) Body(data []byte, _ *stream.Chunk) { l.body = append(l.body, data...) }
func (l *log) Lost(n int64)                      { l.note("lost %d", n) }
func (l *log) End(at int64)                      { l.note("end at %d", at) }
func (l *log) Broken(at int64, why string)       { l.note("broken %s at %d", why, at) }

// piece is a chunk; a gap stands before its data.
type piece struct {
	data string
	gap  int64
}

// run parses pieces, one a tick, and ends the direction.
func run(kind Kind, clean bool, pieces ...piece) []string {
	var l log
	p := New(kind, &l, false)
	for i, pc := range pieces {
		p.Data(&stream.Chunk{Data: []byte(pc.data), Gap: pc.gap, At: int64(i)})
	}
	p.Close(int64(len(pieces)), clean)
	l.flush()
	return l.lines
}

func TestMessages(t *testing.T) {
	tests := []struct {
		name string
		kind Kind
		data string
		want []string
	}{
		{"content-length", Responses, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", []string{"head  200 first 0 at 0", `body "hi"`, "end at 0"}},
		{"chunked, extension, trailer", Responses, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhi\r\n0\r\nA: b\r\n\r\n", []string{"head  200 first 0 at 0", `body "hi"`, "end at 0"}},
		{"bare LF", Responses, "HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n2\nhi\n0\n\n", []string{"head  200 first 0 at 0", `body "hi"`, "end at 0"}},
		{"chunked wins over length", Responses, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", []string{"head  200 first 0 at 0", `body "a"`, "end at 0"}},
		{"to the end", Responses, "HTTP/1.0 200 OK\r\n\r\nhi", []string{"head  200 first 0 at 0", `body "hi"`, "end at 1"}},
		{"no body", Responses, "HTTP/1.1 204 No\r\n\r\nHTTP/1.1 304 Not\r\ncontent-length: 5\r\n\r\n", []string{"head  204 first 0 at 0", "end at 0", "head  304 first 0 at 0", "end at 0"}},
		{"interim", Responses, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\na: b\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", []string{"head  100 first 0 at 0", "head  103 first 0 at 0", "head  200 first 0 at 0", "end at 0"}},
		{"pipelined requests", Requests, "POST /a?b=c HTTP/1.1\r\ncontent-length: 1\r\n\r\nx\r\nGET http://h/p HTTP/1.1\r\n\r\n", []string{"head POST/a 0 first 0 at 0", `body "x"`, "end at 0", "head GET/p 0 first 0 at 0", "end at 0"}},
		{"query with a URL", Requests, "GET /a?cb=http://h/secret HTTP/1.1\r\n\r\nGET http://h HTTP/1.1\r\n\r\n", []string{"head GET/a 0 first 0 at 0", "end at 0", "head GET/ 0 first 0 at 0", "end at 0"}},
		{"other secrets in a target", Requests, "GET //u:secret@h/a HTTP/1.1\r\n\r\nGET /a;key=secret HTTP/1.1\r\n\r\nGET /a#secret HTTP/1.1\r\n\r\n", []string{"head GET//h/a 0 first 0 at 0", "end at 0", "head GET/a 0 first 0 at 0", "end at 0", "head GET/a 0 first 0 at 0", "end at 0"}},
		{"long chunk extension", Responses, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;" + strings.Repeat("x", maxLine) + "\r\na\r\n0\r\n\r\n", []string{"head  200 first 0 at 0", "broken bad_http at 0"}},
		{"chunked request", Requests, "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n", []string{"head POST/ 0 first 0 at 0", `body "ab"`, "end at 0"}},
		{"length twice", Responses, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nhi", []string{"head  200 first 0 at 0", `body "hi"`, "end at 0"}},
		{"lengths differ", Responses, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi", []string{"broken bad_http at 0"}},
		{"length is no number", Responses, "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", []string{"broken bad_http at 0"}},
		{"chunk size is none", Responses, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", []string{"head  200 first 0 at 0", "broken bad_http at 0"}},
		{"chunk size overflows", Responses, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n", []string{"head  200 first 0 at 0", "broken bad_http at 0"}},
		{"no line end after a chunk", Responses, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc", []string{"head  200 first 0 at 0", `body "a"`, "broken bad_http at 0"}},
		{"another version", Responses, "HTTP/1.11 200 OK\r\n\r\n", []string{"broken bad_http at 0"}},
		{"upgrade", Responses, "HTTP/1.1 101 Switching\r\n\r\n\x81\x05HTTP/1.1 200 OK\r\n\r\n", []string{"head  101 first 0 at 0"}},
		{"garbage between messages", Responses, "HTTP/1.1 204 No\r\n\r\nrubbish", []string{"head  204 first 0 at 0", "end at 0", "broken bad_http at 0"}},
		{"no HTTP", Requests, "EHLO there\r\n", []string{"broken bad_http at 0"}},
		{"cut in the head", Responses, "HTTP/1.1 200 OK\r\ncont", []string{"broken closed at 1"}},
		{"cut in the body", Responses, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhi", []string{"head  200 first 0 at 0", `body "hi"`, "broken closed at 1"}},
		{"cut before the last chunk", Responses, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n", []string{"head  200 first 0 at 0", `body "hi"`, "broken closed at 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, run(tt.kind, true, piece{data: tt.data})); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			whole := timeless(run(tt.kind, true, piece{data: tt.data}))
			for i := range len(tt.data) {
				if d := cmp.Diff(whole, timeless(run(tt.kind, true, piece{data: tt.data[:i]}, piece{data: tt.data[i:]}))); d != "" {
					t.Fatalf("cut at %d (-whole +cut):\n%s", i, d)
				}
			}
			var bytes []piece
			for _, b := range strings.Split(tt.data, "") {
				bytes = append(bytes, piece{data: b})
			}
			if d := cmp.Diff(whole, timeless(run(tt.kind, true, bytes...))); d != "" {
				t.Errorf("byte by byte (-whole +cut):\n%s", d)
			}
		})
	}
}

// timeless removes the times, which do depend on the cut.
func timeless(lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		l, _, _ = strings.Cut(l, " first")
		l, _, _ = strings.Cut(l, " at ")
		out = append(out, l)
	}
	return out
}

func TestTimes(t *testing.T) {
	got := run(Responses, true, piece{data: "HTT"}, piece{data: "P/1.1 200 OK\r\ncontent-length: 2\r\n\r"}, piece{data: "\n"}, piece{data: "h"}, piece{data: "i"})
	want := []string{"head  200 first 0 at 2", `body "hi"`, "end at 4"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestGaps checks what a loss costs in each state.
func TestGaps(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
	const next = "HTTP/1.1 201 OK\r\ncontent-length: 0\r\n\r\n"
	tests := []struct {
		name   string
		pieces []piece
		want   []string
	}{
		{"inside a body", []piece{{data: "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nab"}, {gap: 2, data: "ef" + next}},
			[]string{"head  200", `body "ab"`, "lost 2", `body "ef"`, "end", "head  201", "end"}},
		{"to the end of a body", []piece{{data: "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nab"}, {gap: 4, data: next}},
			[]string{"head  200", `body "ab"`, "lost 4", "end", "head  201", "end"}},
		{"past a body", []piece{{data: "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nab"}, {gap: 9, data: next}},
			[]string{"head  200", `body "ab"`, "broken gap", "head  201", "end"}},
		{"inside a chunk", []piece{{data: chunked + "6\r\nab"}, {gap: 2, data: "ef\r\n0\r\n\r\n"}},
			[]string{"head  200", `body "ab"`, "lost 2", `body "ef"`, "end"}},
		{"whole chunks", []piece{{data: chunked + "2\r\nab\r\n"}, {gap: 14, data: "3\r\nxyz\r\n"}, {data: "0\r\n\r\n"}},
			[]string{"head  200", `body "ab"`, "lost 14", `body "xyz"`, "end"}},
		{"chunks, then the middle of one", []piece{{data: chunked + "2\r\nab\r\n"}, {gap: 14, data: "of text\r\n"}, {data: "2\r\nyz\r\n"}, {data: "0\r\n\r\n"}},
			[]string{"head  200", `body "ab"`, "lost 14", `body "yz"`, "end"}},
		{"chunks to the next message", []piece{{data: chunked + "2\r\nab\r\n"}, {gap: 14, data: next}},
			[]string{"head  200", `body "ab"`, "lost 14", "broken gap", "head  201", "end"}},
		{"inside a head", []piece{{data: "HTTP/1.1 200 OK\r\ncon"}, {gap: 14, data: "x: y\r\n\r\n"}, {data: next}},
			[]string{"broken gap", "head  201", "end"}},
		{"between messages", []piece{{data: next}, {gap: 40, data: "rest of something"}, {data: next}},
			[]string{"head  201", "end", "head  201", "end"}},
		{"in a body to the end", []piece{{data: "HTTP/1.0 200 OK\r\n\r\nab"}, {gap: 40, data: "cd"}},
			[]string{"head  200", `body "ab"`, "lost 40", `body "cd"`, "end"}},
	}
	for _, tt := range tests {
		if d := cmp.Diff(tt.want, timeless(run(Responses, true, tt.pieces...))); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// TestAgainstNetHTTP compares bodies and status codes with those that net/http
// reads from the same bytes.
func TestAgainstNetHTTP(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/http/*.bin")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want := netHTTP(raw)
		for seed := range uint64(50) {
			if got := bodies(cut(raw, rand.New(rand.NewPCG(seed, 0)))); !cmp.Equal(want, got) {
				t.Fatalf("%s, seed %d: got %q, want %q", filepath.Base(name), seed, got, want)
			}
		}
	}
}

// netHTTP returns the status and body of each final response, as far as they go.
func netHTTP(raw []byte) (out []string) {
	r := bufio.NewReader(bytes.NewReader(raw))
	for {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return out
		}
		body, _ := io.ReadAll(resp.Body) // a cut body gives what is there
		if resp.StatusCode >= 200 {
			out = append(out, fmt.Sprintf("%d %s", resp.StatusCode, body))
		}
	}
}

type collector struct{ out []string }

func (c *collector) Head(h *Head) bool {
	if h.Status >= 200 {
		c.out = append(c.out, fmt.Sprintf("%d ", h.Status))
	}
	return false
}
func (c *collector) Body(data []byte, _ *stream.Chunk) { c.out[len(c.out)-1] += string(data) }
func (c *collector) Lost(int64)                        {}
func (c *collector) End(int64)                         {}
func (c *collector) Broken(int64, string)              {}

func bodies(pieces [][]byte) []string {
	var c collector
	p := New(Responses, &c, false)
	for _, data := range pieces {
		p.Data(&stream.Chunk{Data: data})
	}
	p.Close(0, true)
	return c.out
}

func cut(raw []byte, rng *rand.Rand) (pieces [][]byte) {
	for len(raw) > 0 {
		n := 1 + rng.IntN(min(len(raw), 30))
		pieces = append(pieces, raw[:n])
		raw = raw[n:]
	}
	return pieces
}

// FuzzParser checks that what is found does not depend on how the bytes are cut,
// and that every byte is either part of a message or skipped.
func FuzzParser(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\nHTTP/1.1 100 C\r\n\r\n"), uint64(1))
	f.Add([]byte("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabcHTTP/1.0 200 OK\n\nrest"), uint64(2))
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		var whole, parts []string
		for i, pieces := range [][][]byte{{raw}, cut(raw, rand.New(rand.NewPCG(seed, 0)))} {
			var l log
			p := New(Responses, &l, false)
			for _, data := range pieces {
				p.Data(&stream.Chunk{Data: data})
			}
			p.Close(0, false)
			l.flush()
			if p.Skipped < 0 || p.Skipped > int64(len(raw)) {
				t.Fatalf("skipped %d of %d bytes", p.Skipped, len(raw))
			}
			if i == 0 {
				whole = timeless(l.lines)
			} else {
				parts = timeless(l.lines)
			}
		}
		// After an error the next message is looked for at the starts of chunks, which
		// depend on the cut; up to there they must agree.
		for i := range min(len(whole), len(parts)) {
			if strings.HasPrefix(whole[i], "broken") || strings.HasPrefix(parts[i], "broken") {
				return
			}
			if whole[i] != parts[i] {
				t.Fatalf("line %d: whole %q, cut %q", i, whole[i], parts[i])
			}
		}
	})
}

func BenchmarkParser(b *testing.B) {
	var body bytes.Buffer
	body.WriteString("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
	for range 300 {
		fmt.Fprintf(&body, "%x\r\n%s\r\n", 260, strings.Repeat("x", 260))
	}
	body.WriteString("0\r\n\r\n")
	p := New(Responses, nothing{}, false)
	chunk := &stream.Chunk{Data: body.Bytes()}
	b.SetBytes(int64(body.Len()))
	b.ReportAllocs()
	for b.Loop() {
		p.Data(chunk)
	}
}

type nothing struct{}

func (nothing) Head(*Head) bool            { return false }
func (nothing) Body([]byte, *stream.Chunk) {}
func (nothing) Lost(int64)                 {}
func (nothing) End(int64)                  {}
func (nothing) Broken(int64, string)       {}
