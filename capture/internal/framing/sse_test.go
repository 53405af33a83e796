package framing

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokentrace/capture/internal/stream"
)

// parse returns the records of a body cut into pieces, one a millisecond, and what
// stands after the last one.
func parse(pieces ...string) (records []string, tail string, dangling int) {
	s := NewSSE(func(r *Record) { records = append(records, show(r)) })
	for i, p := range pieces {
		s.Data([]byte(p), &stream.Chunk{At: int64(i), Seen: int64(i), Segment: int32(i)})
	}
	rec, dangling := s.End()
	if rec != nil {
		tail = show(rec)
	}
	return records, tail, dangling
}

func show(r *Record) string {
	switch {
	case r.Comment:
		return ":" + string(r.Data)
	case r.Bare:
		return "bare " + string(r.Data)
	case len(r.Event) > 0:
		return string(r.Event) + "|" + string(r.Data)
	default:
		return string(r.Data)
	}
}

// TestSSE holds the parser to the examples and rules of the HTML standard, 9.2.6.
func TestSSE(t *testing.T) {
	tests := []struct {
		name, body string
		want       []string
		tail       string
	}{
		{"standard example: stock", "data: YHOO\ndata: +2\ndata: 10\n\n", []string{"YHOO\n+2\n10"}, ""},
		{"standard example: comments, ids", ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
			[]string{": test stream", "first event", "second event", " third event"}, ""},
		{"standard example: empty data", "data\n\ndata\ndata\n\ndata:", []string{"", "\n"}, "\x00"},
		{"one space is dropped", "data:test\n\ndata: test\n\n", []string{"test", "test"}, ""},
		{"event type", "event: a\ndata: x\n\ndata: y\n\n", []string{"a|x", "y"}, ""},
		{"event without data", "event: a\n\ndata: y\n\n", []string{"y"}, ""},
		{"CR", "data: a\r\rdata: b\r\r", []string{"a", "b"}, ""},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}, ""},
		{"mixed", "data: a\r\n\ndata: b\n\rdata: c\r\r\n", []string{"a", "b", "c"}, ""},
		{"BOM", "\xef\xbb\xbfdata: a\n\n", []string{"a"}, ""},
		{"BOM only at the start", "data: a\n\n\xef\xbb\xbfdata: b\n\n", []string{"a"}, ""},
		{"other line ends are text", "data: a\u2028b\u0085c\vd\n\n", []string{"a\u2028b\u0085c\vd"}, ""},
		{"unknown fields", "foo: bar\nretry: 3\ndata: a\n\n", []string{"a"}, ""},
		{"colon in the value", "data: a: b\n\n", []string{"a: b"}, ""},
		{"unterminated", "data: a\n\ndata: b\n", []string{"a"}, "b"},
		{"unterminated line", "data: a\n\ndata: b", []string{"a"}, "b"},
		{"bare error", "data: a\n\n{\"error\":{}}\n", []string{"a", "bare {\"error\":{}}"}, ""},
		{"comment inside a record", "data: a\n:x\ndata: b\n\n", []string{":x", "a\nb"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.want
			for i := -1; i < len(tt.body); i++ {
				pieces := []string{tt.body}
				if i >= 0 {
					pieces = []string{tt.body[:i], tt.body[i:]}
				}
				records, tail, _ := parse(pieces...)
				if d := cmp.Diff(want, records); d != "" {
					t.Fatalf("cut at %d (-want +got):\n%s", i, d)
				}
				if tt.tail != "\x00" && tail != tt.tail {
					t.Fatalf("cut at %d: tail %q, want %q", i, tail, tt.tail)
				}
			}
			records, _, _ := parse(strings.Split(tt.body, "")...)
			if d := cmp.Diff(want, records); d != "" {
				t.Errorf("byte by byte (-want +got):\n%s", d)
			}
		})
	}
}

// TestRecordTimes checks that a record is dated by the byte that completes it.
func TestRecordTimes(t *testing.T) {
	type times struct{ first, at int64 }
	var got []times
	s := NewSSE(func(r *Record) { got = append(got, times{r.First, r.At}) })
	for i, piece := range []string{"da", "ta: a\n", "\nda", "ta: b\r\n\r", "\n", "data: c\n\ndata: d\n\n"} {
		s.Data([]byte(piece), &stream.Chunk{At: int64(i)})
	}
	want := []times{{0, 2}, {2, 3}, {5, 5}, {5, 5}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(times{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestLost checks that a loss costs the records it touches and no other.
func TestLost(t *testing.T) {
	for _, tt := range []struct {
		before, after string
		want          []string
	}{
		{"data: a\n\ndata: b", "b\n\ndata: c\n\n", []string{"a", "c"}},
		{"data: a\n\n", "data: c\n\n", []string{"a", "c"}},
		{"data: a\n\n", "middle\ndata: of b\n\ndata: c\n\n", []string{"a", "c"}},
		{"data: a\n", "\ndata: c\n\n", []string{"c"}},
		{"data: a\r", "\ndata: c\r\r", []string{"c"}},
	} {
		var got []string
		s := NewSSE(func(r *Record) { got = append(got, show(r)) })
		s.Data([]byte(tt.before), &stream.Chunk{})
		s.Lost()
		s.Data([]byte(tt.after), &stream.Chunk{})
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%q, loss, %q (-want +got):\n%s", tt.before, tt.after, d)
		}
	}
}

// TestOversized checks that a record beyond the limit is passed over in bounded memory.
func TestOversized(t *testing.T) {
	for name, piece := range map[string]string{"one line": strings.Repeat("x", 1<<20), "many lines": strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 1000)} {
		var got []string
		s := NewSSE(func(r *Record) { got = append(got, show(r)) })
		s.Data([]byte("data: "), &stream.Chunk{})
		for range 40 {
			s.Data([]byte(piece), &stream.Chunk{})
		}
		s.Data([]byte("\n\ndata: next\n\n"), &stream.Chunk{})
		if d := cmp.Diff([]string{"next"}, got); d != "" || s.Oversized != 1 {
			t.Errorf("%s: %d oversized, records (-want +got):\n%s", name, s.Oversized, d)
		}
		if n := cap(s.line) + cap(s.own); n > 3*maxRecord {
			t.Errorf("%s: holds %d bytes", name, n)
		}
	}
}

// FuzzSSE checks that the records do not depend on how the body is cut, and that
// they are those of a simple parser of whole bodies.
func FuzzSSE(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", ":c\r\rdata\r\n\r\n", "\xef\xbb\xbfdata: x\ndata:y\n\nevent: e\ndata: z", "{\"error\":1}\n\n", "data: [DONE]\n\ndata: {\"tr",
	} {
		f.Add([]byte(seed), uint64(1))
	}
	f.Fuzz(func(t *testing.T, body []byte, seed uint64) {
		want, wantTail, _ := parse(string(body))
		if d := cmp.Diff(reference(string(body)), want); d != "" {
			t.Fatalf("against the reference (-want +got):\n%s", d)
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		var pieces []string
		for rest := string(body); len(rest) > 0; {
			n := 1 + rng.IntN(len(rest))
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		got, tail, _ := parse(pieces...)
		if d := cmp.Diff(want, got); d != "" || tail != wantTail {
			t.Fatalf("cut into %q: tail %q, want %q; (-whole +cut):\n%s", pieces, tail, wantTail, d)
		}
	})
}

// reference is the grammar of the standard in the plainest code, on a whole body.
func reference(body string) (records []string) {
	body = strings.TrimPrefix(body, "\xef\xbb\xbf")
	lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n"), "\n")
	event, data, has := "", "", false
	for i, line := range lines {
		switch name, value, _ := strings.Cut(line, ":"); {
		case i == len(lines)-1: // not ended: no line
		case line == "":
			if has {
				records = append(records, show(&Record{Event: []byte(event), Data: []byte(data)}))
			}
			event, data, has = "", "", false
		case line[0] == ':':
			records = append(records, line)
		case name == "data" && has:
			data += "\n" + strings.TrimPrefix(value, " ")
		case name == "data":
			data, has = strings.TrimPrefix(value, " "), true
		case name == "event":
			event = strings.TrimPrefix(value, " ")
		case line[0] == '{':
			records = append(records, "bare "+line)
		}
	}
	return records
}

func BenchmarkSSE(b *testing.B) {
	body := benchBody(b)
	s := NewSSE(func(*Record) {})
	chunk := &stream.Chunk{}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		s.Data(body, chunk)
	}
}

// benchBody is a stream of chat completion chunks.
func benchBody(b *testing.B) []byte {
	b.Helper()
	var body strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&body, `data: {"id":"chatcmpl-%032x","object":"chat.completion.chunk","created":1750000000,"model":"some/Model-8B","choices":[{"index":0,"delta":{"content":" word%d"},"logprobs":null,"finish_reason":null}]}`+"\n\n", 7, i)
	}
	return []byte(body.String())
}
