// Package schematest writes synthetic traces with planted values, for tests of
// what reads traces.
//
// It knows how a stream of tokens becomes rows; it does not know captures.
package schematest

import (
	"testing"

	"tokentrace/schema"
	"tokentrace/schema/tracedir"
)

// Epoch is the instant at which synthetic traces start: 2026-01-01T00:00:00Z.
const Epoch int64 = 1767225600 * Second

// Units of the ns columns.
const (
	Microsecond int64 = 1000
	Millisecond       = 1000 * Microsecond
	Second            = 1000 * Millisecond
)

// Stream is a streamed answer to be planted. Durations are in ns.
type Stream struct {
	Start    int64   // of the request, since Epoch
	Upload   int64   // request end - request start
	TTFT     int64   // first token - request start
	Gap      int64   // between token records, where Gaps is nil
	Gaps     []int64 // between token records
	Tokens   int64   // output tokens, one per record; with Gaps, len(Gaps)+1
	Prompt   int64   // prompt tokens; 0: the server did not say
	Cached   schema.Opt[int64]
	Model    string        // default "model-a"
	Status   schema.Status // default ok; any other ends after the last token record
	Flags    schema.Words
	ClientID string // x-request-id; empty: none
}

// Trace collects the rows of one synthetic run.
type Trace struct {
	Run         schema.Run
	Requests    []schema.Request
	Events      []schema.Event
	Connections []schema.Connection
}

// New returns an empty run that lasts the given ns from Epoch.
func New(span int64) *Trace {
	return &Trace{Run: schema.Run{
		Source: "pcap", Inputs: []string{"synthetic.pcap"}, CapturePoint: "server",
		Clock: "synthetic", Precision: 1, Start: Epoch, End: Epoch + span,
	}}
}

// Add plants a stream on a connection of its own and returns its row, to be changed at will.
func (t *Trace) Add(s Stream) *schema.Request {
	number := int64(len(t.Requests)) + 1
	r := s.request(number)
	t.Requests = append(t.Requests, r)
	t.Connections = append(t.Connections, schema.Connection{
		Connection: number, ClientAddr: "10.0.0.1", ClientPort: int32(10000 + number%50000),
		ServerAddr: "10.0.0.2", ServerPort: 8000, Protocol: "http1", Close: "fin", ClosedBy: "client",
		First: r.RequestStart.V, Last: r.StreamEnd.V, SYN: true, RTT: schema.Some(50 * Microsecond),
		Packets: 10, Requests: 1,
	})
	t.addEvents(s, &r)
	return &t.Requests[len(t.Requests)-1]
}

func (s Stream) gaps() []int64 {
	if s.Gaps != nil {
		return s.Gaps
	}
	gaps := make([]int64, max(s.Tokens-1, 0))
	for i := range gaps {
		gaps[i] = s.Gap
	}
	return gaps
}

func (s Stream) request(number int64) schema.Request {
	t0 := Epoch + s.Start
	model := s.Model
	if model == "" {
		model = "model-a"
	}
	status := s.Status
	if status == "" {
		status = schema.StatusOK
	}
	r := schema.Request{
		Request: number, Connection: number, API: "openai_chat", Framing: "sse", HTTPVersion: "1.1",
		Method: schema.Some("POST"), Path: schema.Some("/v1/chat/completions"), Model: schema.Some(model),
		Status: status, HTTPStatus: schema.Some[int32](200), Stream: true,
		RequestStart: schema.Some(t0), RequestEnd: schema.Some(t0 + s.Upload),
		ResponseHead: schema.Some(t0 + s.Upload + Millisecond/2), StreamEnd: schema.Some(t0 + s.TTFT),
		Choices: 1, FirstRecordTokens: 1, Concurrency: 1, CachedTokens: s.Cached, Flags: s.Flags,
	}
	if s.Prompt > 0 {
		r.PromptTokens = schema.Some(s.Prompt)
	}
	if s.ClientID != "" {
		r.ClientRequestID = schema.Some(s.ClientID)
	}
	if s.Tokens > 0 || s.Gaps != nil {
		s.addTokens(&r, t0)
	}
	r.TTFB, r.Upload = schema.Since(r.ResponseHead, r.RequestStart), schema.Some(s.Upload)
	return r
}

func (s Stream) addTokens(r *schema.Request, t0 int64) {
	first := t0 + s.TTFT
	last := first
	for i, g := range s.gaps() {
		last += g
		if i == 0 {
			r.SecondToken = schema.Some(last)
		}
	}
	n := int64(len(s.gaps())) + 1
	r.FirstEvent, r.FirstToken, r.FirstOutput = schema.Some(first), schema.Some(first), schema.Some(first)
	r.FirstBodyByte, r.LastToken, r.LastRecord = schema.Some(first), schema.Some(last), schema.Some(last)
	r.StreamEnd = schema.Some(last)
	r.TTFT, r.TTFO, r.TTFE = schema.Some(s.TTFT), schema.Some(s.TTFT), schema.Some(s.TTFT)
	r.TTFTServer, r.TTST = schema.Some(s.TTFT-s.Upload), schema.Since(r.SecondToken, r.FirstToken)
	r.E2E, r.E2EToken = schema.Some(last-t0), schema.Some(last-t0)
	r.OutputTokens, r.NSource = schema.Some(n), schema.Some("usage")
	r.TokenRecords, r.Records, r.Bursts = n, n, n
	if n > 1 {
		r.TPOT, r.TPOTQuality = schema.Some((last-first)/(n-1)), schema.Some("exact")
	}
	if r.Status == schema.StatusOK {
		r.Finish, r.Done, r.FinishReason = schema.Some(last), schema.Some(last), schema.Some("stop")
	}
}

func (t *Trace) addEvents(s Stream, r *schema.Request) {
	if !r.FirstToken.OK {
		return
	}
	at := r.FirstToken.V
	for i := range r.TokenRecords {
		e := schema.Event{
			Request: r.Request, Index: int32(i), At: at, Kinds: schema.KindContent, TokenBearing: true,
			Tokens: schema.Some[int32](1), TextBytes: 4,
		}
		if i > 0 {
			e.Gap = schema.Some(s.gaps()[i-1])
		}
		t.Events = append(t.Events, e)
		if i < r.TokenRecords-1 {
			at += s.gaps()[i]
		}
	}
}

// Write writes the run as a trace into dir, which must be missing or empty.
func (t *Trace) Write(tb testing.TB, dir string) {
	tb.Helper()
	w, err := tracedir.Create(dir, tracedir.Options{Run: "run1", Tool: "schematest 1", Label: "synthetic"})
	if err != nil {
		tb.Fatal(err)
	}
	for i := range t.Requests {
		w.Request(&t.Requests[i])
	}
	for i := range t.Events {
		w.Event(&t.Events[i])
	}
	for i := range t.Connections {
		w.Connection(&t.Connections[i])
	}
	if t.Run.Ledger == nil {
		t.Run.Ledger = t.ledger()
	}
	if _, err := w.Commit(t.Run); err != nil {
		tb.Fatal(err)
	}
}

func (t *Trace) ledger() schema.Ledger {
	requests := int64(len(t.Requests))
	return schema.Ledger{
		{Name: "packets", Severity: schema.SeverityInfo, Count: 10 * requests, Doc: "Packets read."},
		{Name: "packets_tcp", Severity: schema.SeverityInfo, Count: 10 * requests, Doc: "TCP packets.", PartOf: "packets"},
		{Name: "requests", Severity: schema.SeverityInfo, Count: requests, Doc: "Requests seen."},
	}
}
