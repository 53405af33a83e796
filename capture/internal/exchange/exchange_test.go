package exchange

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tokentrace/capture/internal/stream"
	"tokentrace/schema"
)

// rows collects what a Recorder writes.
type rows struct {
	requests    []schema.Request
	events      []schema.Event
	connections []schema.Connection
}

func (r *rows) Request(q *schema.Request)       { r.requests = append(r.requests, *q) }
func (r *rows) Event(e *schema.Event)           { r.events = append(r.events, *e) }
func (r *rows) Connection(c *schema.Connection) { r.connections = append(r.connections, *c) }

// times returns the delivery times of the token-bearing events of a request.
func (r *rows) times(request int64) (at []int64) {
	for _, e := range r.events {
		if e.Request == request && e.TokenBearing {
			at = append(at, e.At)
		}
	}
	return at
}

// kinds returns the kinds of the events of a request, comments left out.
func (r *rows) kinds(request int64) (kinds []string) {
	for _, e := range r.events {
		if e.Request == request && e.Kinds != schema.KindComment {
			kinds = append(kinds, e.Kinds.String())
		}
	}
	return kinds
}

// step is something that happens on a connection.
type step struct {
	dir  stream.Dir
	at   int64 // ms
	data string
	gap  int64
	end  bool // the direction ends, for the reason why
	why  stream.CloseReason
}

func toServer(at int64, data string) step { return step{dir: stream.ToServer, at: at, data: data} }
func toClient(at int64, data string) step { return step{dir: stream.ToClient, at: at, data: data} }
func ends(dir stream.Dir, at int64, why stream.CloseReason) step {
	return step{dir: dir, at: at, end: true, why: why}
}

const ms = int64(1e6)

// cutter says where to cut n bytes.
type cutter func(n int) []int

func whole(n int) []int { return []int{n} }

func byteByByte(n int) []int {
	cuts := make([]int, n)
	for i := range cuts {
		cuts[i] = 1
	}
	return cuts
}

func random(rng *rand.Rand) cutter {
	return func(n int) (cuts []int) {
		for n > 0 {
			k := 1 + rng.IntN(min(n, 1+rng.IntN(40)))
			cuts = append(cuts, k)
			n -= k
		}
		return cuts
	}
}

// play runs the steps of one connection, cut as cut says.
func play(t *testing.T, cut cutter, steps ...step) *rows {
	t.Helper()
	return playTuple(t, stream.Tuple{}, cut, steps...)
}

func playTuple(t *testing.T, tuple stream.Tuple, cut cutter, steps ...step) *rows {
	t.Helper()
	var out rows
	rec := NewRecorder(&out)
	tuple.Client, tuple.Server = netip.MustParseAddrPort("10.0.0.1:40000"), netip.MustParseAddrPort("10.0.0.2:8000")
	h := rec.Open(tuple, 0)
	var segment [2]int32
	var open = [2]bool{true, true}
	last := int64(0)
	for _, s := range steps {
		last = s.at * ms
		if s.end {
			h.Close(s.dir, last, s.why)
			open[s.dir] = false
			continue
		}
		at := 0
		gap := s.gap
		if s.data == "" {
			h.Data(&stream.Chunk{Dir: s.dir, Gap: gap, At: last, Seen: last})
		}
		for _, n := range cut(len(s.data)) {
			h.Data(&stream.Chunk{
				Dir: s.dir, Gap: gap, Data: []byte(s.data[at : at+n]), At: last, Seen: last, Segment: segment[s.dir],
			})
			segment[s.dir]++
			at += n
			gap = 0
		}
	}
	for d, isOpen := range open {
		if isOpen {
			h.Close(stream.Dir(d), last, stream.CaptureEnd)
		}
	}
	rec.Done(h, stream.Facts{Tuple: tuple})
	checkLedger(t, rec)
	if rec.inFlight != 0 {
		t.Errorf("%d requests in flight at the end", rec.inFlight)
	}
	return &out
}

// checkLedger checks that the Recorder's counters add up with the bytes it was given.
func checkLedger(t *testing.T, rec *Recorder) {
	t.Helper()
	ledger := rec.Ledger()
	var bytes int64
	for _, c := range ledger {
		if c.PartOf == "tcp_bytes_delivered" {
			bytes += c.Count
		}
	}
	ledger = append(ledger, schema.Counter{Name: "tcp_bytes_delivered", Count: bytes})
	if err := ledger.Check(); err != nil {
		t.Error(err)
	}
}

// request returns a POST of a chat completion.
func request(body string) string {
	return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nhost: s\r\nx-request-id: id-7\r\ncontent-length: %d\r\n\r\n%s", len(body), body)
}

const ask = `{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"h\u00e9llo"}]}`

// streamHead begins a chunked stream.
const streamHead = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"

// chunk frames data as one HTTP chunk.
func chunk(data string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(data), data) }

func content(text string) string {
	return chunk(`data: {"choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}]}` + "\n\n")
}

const (
	role   = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	stop   = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usage3 = `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}` + "\n\n"
	done   = "data: [DONE]\n\n"
)

// workedCase is the example of docs/metrics.md.
func workedCase() []step {
	return []step{
		toServer(0, request(ask)),
		toClient(1, streamHead),
		toClient(50, chunk(role)),
		toClient(400, content("Hello")),
		toClient(420, content(" world")),
		toClient(440, content("!")),
		toClient(445, chunk(stop)),
		toClient(446, chunk(usage3)),
		toClient(447, chunk(done)),
		toClient(448, "0\r\n\r\n"),
	}
}

func TestWorkedCase(t *testing.T) {
	got := play(t, whole, workedCase()...)
	if len(got.requests) != 1 {
		t.Fatalf("%d requests", len(got.requests))
	}
	r := got.requests[0]
	want := map[string]int64{
		"ttfb": 1, "ttfe": 50, "ttft": 400, "ttst": 20, "tpot": 20, "e2e": 447, "e2e_token": 440, "upload": 0, "ttft_server": 400, "ttfo": 400,
	}
	for name, v := range map[string]schema.Opt[int64]{
		"ttfb": r.TTFB, "ttfe": r.TTFE, "ttft": r.TTFT, "ttst": r.TTST, "tpot": r.TPOT, "e2e": r.E2E,
		"e2e_token": r.E2EToken, "upload": r.Upload, "ttft_server": r.TTFTServer, "ttfo": r.TTFO,
	} {
		if !v.OK || v.V != want[name]*ms {
			t.Errorf("%s = %v, want %d ms", name, v, want[name])
		}
	}
	if r.TTFR.OK {
		t.Errorf("ttfr = %v without reasoning", r.TTFR)
	}
	if r.Status != schema.StatusOK || r.OutputTokens != schema.Some[int64](3) || r.NSource != schema.Some("usage") ||
		r.StopTokenCounted || r.TPOTQuality != schema.Some("exact") || r.Concurrency != 1 {
		t.Errorf("row: %+v", r)
	}
	if r.ClientRequestID != schema.Some("id-7") || r.MaxTokens != schema.Some[int64](9) || r.PromptBytes.V != 6 || r.OutputBytes.V != 12 || r.StreamRequested != schema.Some(true) {
		t.Errorf("request facts: %+v", r)
	}
	if d := cmp.Diff([]string{"role", "content", "content", "content", "finish", "usage", "done"}, got.kinds(1)); d != "" {
		t.Errorf("kinds (-want +got):\n%s", d)
	}
}

// comparable returns what must not depend on how the bytes were cut.
func comparable(r *rows) ([]schema.Request, []schema.Event) {
	for i := range r.events {
		r.events[i].SegmentAhead = 0
	}
	return r.requests, r.events
}

func TestSegmentation(t *testing.T) {
	wantRequests, wantEvents := comparable(play(t, whole, workedCase()...))
	for i := range 300 {
		cut := random(rand.New(rand.NewPCG(1, uint64(i))))
		if i == 0 {
			cut = byteByByte
		}
		requests, events := comparable(play(t, cut, workedCase()...))
		if d := cmp.Diff(wantRequests, requests); d != "" {
			t.Fatalf("seed %d: requests (-whole +cut):\n%s", i, d)
		}
		if d := cmp.Diff(wantEvents, events); d != "" {
			t.Fatalf("seed %d: events (-whole +cut):\n%s", i, d)
		}
	}
}

func TestStatus(t *testing.T) {
	begun := []step{toServer(0, request(ask)), toClient(10, streamHead), toClient(20, content("a")), toClient(30, content("b"))}
	terminal := append(append([]step{}, begun...), toClient(40, chunk(stop+done)))
	complete := append(append([]step{}, terminal...), toClient(41, "0\r\n\r\n"))
	const text = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
	tests := []struct {
		name   string
		steps  []step
		status schema.Status
		reason string
		flags  string
	}{
		{"complete", complete, schema.StatusOK, "", ""},
		{"no final chunk, whatever it held", append(terminal[:len(terminal):len(terminal)], ends(stream.ToClient, 50, stream.FIN)), schema.StatusTruncated, "", ""},
		{"server ends midway", append(begun[:4:4], ends(stream.ToClient, 50, stream.FIN)), schema.StatusTruncated, "", "no_terminal_event"},
		{"server resets", append(begun[:4:4], ends(stream.ToClient, 50, stream.RST)), schema.StatusReset, "", "no_terminal_event"},
		{"client ends", append(begun[:4:4], ends(stream.ToServer, 45, stream.FIN), ends(stream.ToClient, 50, stream.RST)), schema.StatusCancelled, "", "no_terminal_event"},
		{"client resets", append(begun[:4:4], ends(stream.ToServer, 45, stream.RST), ends(stream.ToClient, 45, stream.PeerRST)), schema.StatusCancelled, "", "no_terminal_event"},
		{"client half-closes and waits", append([]step{begun[0], ends(stream.ToServer, 1, stream.FIN)}, complete[1:]...), schema.StatusOK, "", ""},
		{"capture ends", begun, schema.StatusCensoredEnd, "", "no_terminal_event"},
		{"capture loses framing", append(begun[:4:4], step{dir: stream.ToClient, at: 50, gap: 500, data: "garbage"}), schema.StatusGap, "", "no_terminal_event"},
		{"no answer", []step{begun[0], ends(stream.ToClient, 9, stream.FIN)}, schema.StatusReset, "", "no_response"},
		{"request crosses the server's end", []step{ends(stream.ToClient, 0, stream.FIN), toServer(1, request(ask)), ends(stream.ToServer, 2, stream.FIN)}, schema.StatusReset, "", "no_response"},
		{"http error", []step{begun[0], toClient(9, "HTTP/1.1 429 Too Many\r\ncontent-length: 45\r\n\r\n"+`{"error":{"type":"rate_limit","message":"no"}}`)}, schema.StatusHTTPError, "", ""},
		{"not streamed", []step{begun[0], toClient(9, "HTTP/1.1 200 OK\r\ncontent-length: 119\r\n\r\n"+`{"model":"m2","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"completion_tokens":2}, "x": 12}`+" ")}, schema.StatusOK, "", ""},
		{"not JSON", []step{begun[0], toClient(9, "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>")}, schema.StatusUndecodable, "bad_json", ""},
		{"compressed", []step{begun[0], toClient(9, "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-type: text/event-stream\r\ncontent-length: 3\r\n\r\nabc")}, schema.StatusUndecodable, "content_encoding", ""},
		{"error in the stream", append(begun[:4:4], toClient(40, chunk(`data: {"error":{"type":"engine","code":500}}`+"\n\n"+done)), toClient(41, "0\r\n\r\n")), schema.StatusStreamError, "", ""},
		{"bare error line", append(begun[:4:4], toClient(40, chunk(`{"error":{"code":503}}`+"\n")), toClient(41, "0\r\n\r\n")), schema.StatusStreamError, "", "no_terminal_event"},
		{"clean end without evidence", append(begun[:4:4], toClient(41, "0\r\n\r\n")), schema.StatusTruncated, "", "no_terminal_event"},
		{"close-delimited", []step{begun[0], toClient(9, text+"\r\n"+role), toClient(20, stop+done), ends(stream.ToClient, 30, stream.FIN)}, schema.StatusOK, "", ""},
		{"close-delimited, reset", []step{begun[0], toClient(9, text+"\r\n"+role), toClient(20, stop+done), ends(stream.ToClient, 30, stream.RST)}, schema.StatusReset, "", ""},
		{"unknown API", []step{toServer(0, "POST /v9/dream HTTP/1.1\r\ncontent-length: 0\r\n\r\n"), toClient(5, streamHead), toClient(6, chunk("data: x\n\n")), toClient(7, "0\r\n\r\n")}, schema.StatusUndecodable, "unknown_api", "unknown_api"},
		{"unreadable record", append(begun[:4:4], toClient(40, chunk("data: {\"choices\":[\n\n"+stop+done)), toClient(41, "0\r\n\r\n")), schema.StatusOK, "", "bad_json"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, cut := range []cutter{whole, byteByByte} {
				if strings.Contains(tt.name, "loses framing") {
					cut = whole // where a segment starts is what it goes by
				}
				got := play(t, cut, tt.steps...)
				if len(got.requests) != 1 {
					t.Fatalf("%d requests", len(got.requests))
				}
				r := got.requests[0]
				if r.Status != tt.status || r.StatusReason.V != tt.reason || string(r.Flags) != tt.flags {
					t.Errorf("status %q, reason %q, flags %q; want %q, %q, %q", r.Status, r.StatusReason.V, r.Flags, tt.status, tt.reason, tt.flags)
				}
			}
		})
	}
}

func TestNotStreamed(t *testing.T) {
	body := `{"model":"m2","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`
	got := play(t, byteByByte, toServer(0, request(ask)),
		toClient(9, fmt.Sprintf("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n", len(body))), toClient(30, body))
	r := got.requests[0]
	if r.TTFT.OK || r.TPOT.OK || r.TokenRecords != 0 || r.Stream {
		t.Errorf("a response that was not streamed has token times: %+v", r)
	}
	if r.E2E != schema.Some(30*ms) || r.OutputTokens != schema.Some[int64](2) || r.PromptTokens != schema.Some[int64](5) ||
		r.Model != schema.Some("m2") || r.FinishReason != schema.Some("stop") {
		t.Errorf("facts: %+v", r)
	}
}

// TestKeepAlive checks that requests on one connection are told apart, pipelined or not.
func TestKeepAlive(t *testing.T) {
	second := strings.Replace(request(ask), "id-7", "id-8", 1)
	answer := "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
	for name, steps := range map[string][]step{
		"in turn":           {toServer(0, request(ask)), toClient(5, answer), toServer(10, second), toClient(20, answer)},
		"pipelined":         {toServer(0, request(ask)), toServer(10, second), toClient(20, answer), toClient(20, answer)},
		"interim responses": {toServer(0, request(ask)), toClient(1, "HTTP/1.1 100 Continue\r\n\r\n"), toClient(5, answer), toServer(10, second), toClient(11, "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"), toClient(20, answer)},
		"blank line first":  {toServer(0, request(ask)), toClient(5, answer), toServer(10, "\r\n"+second), toClient(20, answer)},
	} {
		got := play(t, byteByByte, steps...)
		if len(got.requests) != 2 {
			t.Errorf("%s: %d requests", name, len(got.requests))
			continue
		}
		for i, id := range []string{"id-7", "id-8"} {
			if r := got.requests[i]; r.ClientRequestID.V != id || r.Status != schema.StatusOK || r.RequestStart != schema.Some(int64(i)*10*ms) {
				t.Errorf("%s: request %d: id %q, status %q, start %v", name, i, r.ClientRequestID.V, r.Status, r.RequestStart)
			}
		}
	}
}

// TestHoles checks that nothing is paired by guessing where the capture lost bytes.
func TestHoles(t *testing.T) {
	second := strings.Replace(request(ask), "id-7", "id-8", 1)
	answer := "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
	type row struct {
		id     string
		status schema.Status
	}
	tests := []struct {
		name  string
		steps []step
		want  []row
	}{
		{"a response is lost", []step{toServer(0, request(ask)), toServer(10, second), {dir: stream.ToClient, at: 20, gap: 44, data: answer}},
			// Two pipelined requests and one response behind a hole: which one it answers
			// cannot be known, so it answers neither.
			[]row{{"id-7", schema.StatusGap}, {"id-8", schema.StatusGap}, {"", schema.StatusGap}}},
		{"a response is lost, in turn", []step{toServer(0, request(ask)), {dir: stream.ToClient, at: 5, gap: 44}, toServer(10, second), toClient(20, answer)},
			[]row{{"id-7", schema.StatusGap}, {"id-8", schema.StatusOK}}},
		{"a response that cannot be read", []step{toServer(0, request(ask)), toClient(2, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}"), toServer(10, second), toClient(20, answer)},
			[]row{{"id-7", schema.StatusUndecodable}, {"id-8", schema.StatusOK}}},
		{"a response with stray bytes before it", []step{toServer(0, request(ask)), toClient(2, " "+answer), toServer(10, second), toClient(20, answer)},
			[]row{{"id-7", schema.StatusUndecodable}, {"id-8", schema.StatusOK}}},
		{"a request is lost", []step{toServer(0, request(ask)), toClient(2, answer), {dir: stream.ToServer, at: 5, gap: 200}, toClient(8, answer), toServer(10, second), toClient(20, answer)},
			[]row{{"id-7", schema.StatusOK}, {"", schema.StatusGap}, {"id-8", schema.StatusOK}}},
		{"a body loses bytes", []step{toServer(0, request(ask)), toClient(2, streamHead), toClient(3, chunk(role)), {dir: stream.ToClient, at: 4, gap: int64(len(content("x"))), data: content("y")}, toClient(5, chunk(stop+done)), toClient(6, "0\r\n\r\n"), toServer(10, second), toClient(20, answer)},
			[]row{{"id-7", schema.StatusGap}, {"id-8", schema.StatusOK}}},
	}
	for _, tt := range tests {
		got := play(t, whole, tt.steps...)
		var have []row
		for _, r := range got.requests {
			have = append(have, row{r.ClientRequestID.V, r.Status})
		}
		if d := cmp.Diff(tt.want, have, cmp.AllowUnexported(row{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// TestJoinedMidway checks a connection whose beginning the capture does not hold,
// with the server guessed right and wrong.
func TestJoinedMidway(t *testing.T) {
	answer := "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
	right := []step{toClient(0, "half an answer\r\n"), toClient(1, answer), toServer(10, request(ask)), toClient(20, answer)}
	wrong := make([]step, len(right))
	for i, s := range right {
		s.dir = s.dir.Other()
		wrong[i] = s
	}
	for name, steps := range map[string][]step{"guessed right": right, "guessed wrong": wrong} {
		got := playTuple(t, stream.Tuple{Guessed: true}, whole, steps...)
		if len(got.requests) != 2 || got.requests[0].Status != schema.StatusCensoredStart || got.requests[1].Status != schema.StatusOK {
			t.Errorf("%s: %+v", name, got.requests)
		}
		server := got.connections[0].ServerPort
		if want := map[string]int32{"guessed right": 8000, "guessed wrong": 40000}[name]; server != want {
			t.Errorf("%s: server port %d, want %d", name, server, want)
		}
	}
}

// TestOneSided checks that a capture of one direction only stays bounded.
func TestOneSided(t *testing.T) {
	var steps []step
	for i := range 3 * maxWaiting {
		steps = append(steps, toServer(int64(i), request(ask)))
	}
	got := play(t, whole, steps...)
	if len(got.requests) != len(steps) {
		t.Errorf("%d requests, want %d", len(got.requests), len(steps))
	}
	for _, r := range got.requests {
		if r.Concurrency > maxWaiting {
			t.Fatalf("%d requests in flight", r.Concurrency)
		}
	}
}

// TestNoSentences checks that what a server writes in place of a name is not kept.
func TestNoSentences(t *testing.T) {
	body := `{"error":{"type":"the user said hello","code":"x y"}}`
	got := play(t, whole, toServer(0, request(ask)), toClient(9, fmt.Sprintf("HTTP/1.1 400 Bad\r\ncontent-length: %d\r\n\r\n%s", len(body), body)))
	if r := got.requests[0]; r.ErrorType != schema.Some("other") {
		t.Errorf("error type %q", r.ErrorType.V)
	}
}

// TestDeepPipeline checks that responses stay with their requests where more requests
// wait than are kept.
func TestDeepPipeline(t *testing.T) {
	var steps []step
	n := maxWaiting + 50
	for i := range n {
		steps = append(steps, toServer(int64(i), strings.Replace(request(ask), "id-7", fmt.Sprintf("id-%d", i), 1)))
	}
	for i := range n {
		body := fmt.Sprintf(`{"model":"id-%d"}`, i)
		steps = append(steps, toClient(int64(n+i), fmt.Sprintf("HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s", len(body), body)))
	}
	got := play(t, whole, steps...)
	paired := 0
	for _, r := range got.requests {
		if r.Status == schema.StatusOK {
			paired++
			if r.Model != r.ClientRequestID {
				t.Fatalf("request %s got the answer to %s", r.ClientRequestID.V, r.Model.V)
			}
		}
	}
	if paired != maxWaiting || len(got.requests) != n {
		t.Errorf("%d of %d requests are paired", paired, len(got.requests))
	}
}

// TestStrangeText checks that names from the wire are fit for text columns.
func TestStrangeText(t *testing.T) {
	head := "POST /\xff\xfe/v1/chat/completions?key=secret HTTP/1.1\r\nx-request-id: \xc3\x28\r\ncontent-length: %d\r\n\r\n%s"
	body := `{"model":"a\/b` + strings.Repeat("\xf0x", 1000) + `"}`
	got := play(t, whole, toServer(0, fmt.Sprintf(head, len(body), body)))
	r := got.requests[0]
	for _, s := range []string{r.Path.V, r.ClientRequestID.V, r.Model.V} {
		if !utf8.ValidString(s) || len(s) > 4*maxText || s == "" || strings.Contains(s, "secret") {
			t.Errorf("%q", s)
		}
	}
	if !strings.HasPrefix(r.Model.V, "a/b") || r.API != "openai_chat" {
		t.Errorf("model %.20q, API %s", r.Model.V, r.API)
	}
}

// TestIgnored checks what becomes no request.
func TestIgnored(t *testing.T) {
	for name, steps := range map[string][]step{
		"GET":         {toServer(0, "GET /health HTTP/1.1\r\n\r\n"), toClient(1, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")},
		"HEAD":        {toServer(0, "HEAD / HTTP/1.1\r\n\r\n"), toClient(1, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")},
		"TLS":         {toServer(0, "\x16\x03\x01\x02\x00\x01")},
		"HTTP/2":      {toServer(0, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")},
		"SSH":         {toClient(0, "SSH-2.0-OpenSSH_9\r\n"), toServer(1, "SSH-2.0-x\r\n")},
		"nothing":     {},
		"unsolicited": {toClient(0, "HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")},
		"upgrade":     {toServer(0, "GET /ws HTTP/1.1\r\nupgrade: websocket\r\n\r\n"), toClient(1, "HTTP/1.1 101 Switching\r\n\r\n"), toClient(2, "\x81\x05POST "), toServer(3, "POST /v1/chat/completions HTTP/1.1\r\n\r\n")},
	} {
		got := play(t, whole, steps...)
		if len(got.requests) != 0 || len(got.events) != 0 || len(got.connections) != 1 {
			t.Errorf("%s: %d requests, %d events, %d connections", name, len(got.requests), len(got.events), len(got.connections))
		}
	}
}

// TestCounts checks the rules of output_tokens, c1 and the stop token on streams
// whose metrics were worked out by hand.
func TestCounts(t *testing.T) {
	usage := func(n int) string {
		if n == 0 {
			return `"usage":null`
		}
		return fmt.Sprintf(`"usage":{"prompt_tokens":21,"completion_tokens":%d,"total_tokens":%d}`, n, 21+n)
	}
	delta := func(d, finish string, n int) string {
		return fmt.Sprintf(`data: {"choices":[{"index":0,"delta":%s,"finish_reason":%s}],%s}`+"\n\n", d, finish, usage(n))
	}
	tests := []struct {
		name    string
		at      []int64
		records []string
		n, c1   int64
		source  string
		stop    bool
		tpotUs  int64 // µs
		quality string
		kinds   []string
	}{
		{
			name: "cumulative counts, hidden first token, stop token counted",
			at:   []int64{180, 180, 200, 220, 260, 280, 300, 320, 320},
			records: []string{
				delta(`{"role":"assistant","content":""}`, "null", 0), delta(`{}`, "null", 1),
				delta(`{"reasoning":"Add"}`, "null", 2), delta(`{"reasoning":" them"}`, "null", 3),
				delta(`{"content":"It"}`, "null", 5), delta(`{"content":" is five"}`, "null", 7), delta(`{"content":"."}`, "null", 8),
				delta(`{"content":""}`, `"stop"`, 9), `data: {"choices":[],` + usage(9) + "}\n\n",
			},
			n: 9, c1: 2, source: "usage", stop: true, tpotUs: 17142, quality: "exact",
			kinds: []string{"role", "hidden", "reasoning", "reasoning", "content", "content", "content", "hidden+finish+usage", "usage"},
		},
		{
			name: "usage before the finish record",
			at:   []int64{400, 430, 460, 461},
			records: []string{
				delta(`{"content":"A"}`, "null", 0), delta(`{"content":"B"}`, "null", 0),
				`data: {"choices":[],` + usage(2) + "}\n\n", delta(`{}`, `"stop"`, 0),
			},
			n: 2, c1: 1, source: "cumulative", tpotUs: 30000, quality: "exact",
			kinds: []string{"content", "content", "usage", "finish"},
		},
		{
			name:    "no counts at all",
			at:      []int64{100, 120, 140, 160},
			records: []string{delta(`{"content":"A"}`, "null", 0), delta(`{"content":"B"}`, "null", 0), delta(`{"content":"C"}`, "null", 0), delta(`{}`, `"stop"`, 0)},
			n:       3, c1: 1, source: "records", tpotUs: 20000, quality: "records",
			kinds: []string{"content", "content", "content", "finish"},
		},
		{
			name: "several tokens a record",
			at:   []int64{100, 150, 200, 200},
			records: []string{
				delta(`{"content":"A"}`, "null", 0), delta(`{"content":"BCDE"}`, "null", 0),
				delta(`{"content":"F"}`, `"length"`, 0), `data: {"choices":[],` + usage(6) + "}\n\n",
			},
			n: 6, c1: 1, source: "usage", tpotUs: 20000, quality: "approx_first",
			kinds: []string{"content", "content", "content+finish", "usage"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			steps := []step{toServer(0, request(ask)), toClient(5, streamHead)}
			for i, rec := range tt.records {
				steps = append(steps, toClient(tt.at[i], chunk(rec)))
			}
			got := play(t, byteByByte, append(steps, toClient(999, "0\r\n\r\n"))...)
			r := got.requests[0]
			if r.OutputTokens.V != tt.n || r.FirstRecordTokens != tt.c1 || r.NSource.V != tt.source || r.StopTokenCounted != tt.stop ||
				r.TPOT.V/1000 != tt.tpotUs || r.TPOTQuality.V != tt.quality {
				t.Errorf("N %v from %v, c1 %d, stop %v, TPOT %v ns (%v)", r.OutputTokens.V, r.NSource.V, r.FirstRecordTokens, r.StopTokenCounted, r.TPOT.V, r.TPOTQuality.V)
			}
			if d := cmp.Diff(tt.kinds, got.kinds(1)); d != "" {
				t.Errorf("kinds (-want +got):\n%s", d)
			}
		})
	}
}

// TestChoices checks that gaps are taken within a choice and TPOT is left out.
func TestChoices(t *testing.T) {
	rec := func(choice int) string {
		return chunk(fmt.Sprintf(`data: {"choices":[{"index":%d,"delta":{"content":"x"}}]}`+"\n\n", choice))
	}
	got := play(t, whole, toServer(0, request(`{"stream":true,"n":2}`)), toClient(1, streamHead),
		toClient(10, rec(0)), toClient(12, rec(1)), toClient(20, rec(0)), toClient(25, rec(1)), toClient(30, chunk(usage3+done)+"0\r\n\r\n"))
	if r := got.requests[0]; r.TPOT.OK || r.TPOTQuality.OK || r.Choices != 2 {
		t.Errorf("TPOT %v (%v) of %d choices", r.TPOT, r.TPOTQuality, r.Choices)
	}
	var gaps []int64
	for _, e := range got.events[:4] {
		gaps = append(gaps, e.Gap.Or(-ms)/ms)
	}
	if d := cmp.Diff([]int64{-1, -1, 10, 13}, gaps); d != "" {
		t.Errorf("gaps in ms (-want +got):\n%s", d)
	}
}

func TestBuffered(t *testing.T) {
	tests := []struct {
		name   string
		start  int64 // ms to the first
		bursts []int // records at each instant
		every  int64 // ms between instants
		want   bool
	}{
		{"one at a time", 500, []int{1, 1, 1, 1, 1, 1, 1, 1, 1}, 20, false},
		{"bursts of five", 500, []int{5, 5, 5, 5}, 100, true},
		{"all at the end", 500, []int{20}, 0, true},
		{"all at the end, one by one", 500, []int{1, 1, 1, 1, 1, 1, 1, 1, 1}, 1, true},
		{"a fast answer after a long wait", 5000, []int{1, 1, 1, 1, 1, 1, 1, 1, 1}, 3, false},
		{"short answer in one segment", 500, []int{5}, 0, false},
		{"one burst after a loss", 500, []int{1, 1, 1, 1, 9, 1, 1, 1, 1}, 20, false},
	}
	for _, tt := range tests {
		steps := []step{toServer(0, request(ask)), toClient(5, streamHead)}
		at := tt.start
		for _, n := range tt.bursts {
			steps = append(steps, toClient(at, strings.Repeat(content("x"), n)))
			at += tt.every
		}
		got := play(t, whole, append(steps, toClient(at, chunk(stop+done)+"0\r\n\r\n"))...)
		if flagged := got.requests[0].Flags.Has("buffered_stream"); flagged != tt.want {
			t.Errorf("%s: buffered %v, want %v", tt.name, flagged, tt.want)
		}
	}
}

// BenchmarkRecorder runs streams of 300 tokens, one record a segment, from stream
// chunks to rows.
func BenchmarkRecorder(b *testing.B) {
	const tokens = 300
	record := []byte(content(" word"))
	head, tail, ask := []byte(streamHead+chunk(role)), []byte(chunk(stop)+chunk(usage3)+chunk(done)+"0\r\n\r\n"), []byte(request(ask))
	rec := NewRecorder(nowhere{})
	h := rec.Open(stream.Tuple{}, 0)
	c := &stream.Chunk{}
	send := func(d stream.Dir, data []byte) {
		c.Dir, c.Data = d, data
		c.At++
		c.Segment++
		h.Data(c)
	}
	b.SetBytes(int64(tokens * len(record)))
	b.ReportAllocs()
	for b.Loop() {
		send(stream.ToServer, ask)
		send(stream.ToClient, head)
		for range tokens {
			send(stream.ToClient, record)
		}
		send(stream.ToClient, tail)
	}
	b.ReportMetric(float64(tokens)*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
}

type nowhere struct{}

func (nowhere) Request(*schema.Request)       {}
func (nowhere) Event(*schema.Event)           {}
func (nowhere) Connection(*schema.Connection) {}
