package exchange

import (
	"mime"
	"strings"

	"tokentrace/capture/internal/framing"
	"tokentrace/capture/internal/http1"
	"tokentrace/capture/internal/llmapi"
	"tokentrace/capture/internal/stream"
	"tokentrace/schema"
)

// Limits of what is held of a body that is read as a whole.
const (
	maxRequestBody  = 16 << 20
	maxResponseBody = 8 << 20
)

// exchange is a request and its response on their way to a row.
type exchange struct {
	rec    *Recorder
	row    schema.Request
	method string
	api    llmapi.API
	known  bool // an API of the table speaks on this path
	llm    bool // it gets a row
	opaque bool // the request's body is not read: compressed, or too large

	tainted  bool  // its response may lie in a hole
	answered bool  // the response ended before the request did
	endAt    int64 // when it ended. Valid iff answered
	midway   bool  // the capture began between request and response
	unpaired bool  // the request was lost

	body   []byte         // of the request, then of a response that is not streamed
	sse    *framing.SSE   // of a stream
	stream llmapi.Stream  // reads its records
	tally  tally          // of a stream's records
	asked  llmapi.Request // what the request asks for
}

func newExchange(r *Recorder, connection int64) *exchange {
	r.counts.exchanges++
	ex := &exchange{rec: r}
	ex.row.Connection = connection
	ex.row.Framing = "none"
	ex.row.FirstRecordTokens = 1
	return ex
}

// begin makes it a row.
func (ex *exchange) begin() {
	r := ex.rec
	ex.llm = true
	r.requests++
	r.inFlight++
	ex.row.Request = r.requests
	ex.row.Concurrency = r.inFlight
}

// requestHead takes the request's head. Only POST asks for a generation.
func (ex *exchange) requestHead(h *http1.Head) {
	ex.method = h.Method
	row := &ex.row
	row.Method, row.Path = text(h.Method), text(h.Path())
	row.HTTPVersion = h.Proto
	row.RequestStart = schema.Some(h.First)
	if id := h.Get("x-request-id"); id != "" {
		row.ClientRequestID = text(id)
	}
	ex.api, ex.known = llmapi.Match(h.Path())
	row.API = ex.api.Name
	if ex.method == "POST" {
		ex.begin()
	}
	if coded(h) {
		ex.opaque = true
		row.Flags.Add("request_coding")
	}
}

// coded reports whether a body is compressed.
func coded(h *http1.Head) bool {
	coding := h.Get("content-encoding")
	return coding != "" && !strings.EqualFold(coding, "identity")
}

// headless makes a row of a response whose request the capture does not hold.
func (ex *exchange) headless(midway bool, h *http1.Head) {
	ex.midway, ex.unpaired = midway, !midway
	ex.api, ex.known = llmapi.API{Name: llmapi.Unknown}, false
	ex.row.API = llmapi.Unknown
	ex.row.HTTPVersion = h.Proto
	ex.begin()
}

func (ex *exchange) requestBody(data []byte) {
	ex.row.RequestBytes += int64(len(data))
	switch {
	case !ex.llm || !ex.known || ex.opaque:
	case len(ex.body)+len(data) > maxRequestBody:
		ex.body, ex.opaque = nil, true
		ex.row.Flags.Add("request_too_large")
	default:
		if ex.body == nil {
			ex.body = ex.rec.buffer()
		}
		ex.body = append(ex.body, data...)
	}
}

func (ex *exchange) requestLost(n int64) {
	ex.row.LostBytes += n
	ex.row.RequestBytes += n
	ex.row.Flags.Add("request_gap")
}

// requestEnd reads the request's body.
func (ex *exchange) requestEnd(at int64) {
	row := &ex.row
	row.RequestEnd = schema.Some(at)
	if !ex.llm || !ex.known || ex.opaque {
		return
	}
	asked := &ex.asked
	if !ex.api.ParseRequest(ex.body, asked) {
		row.Flags.Add("bad_request_json")
	}
	ex.rec.recycle(ex.body)
	ex.body = nil
	if asked.Model != "" {
		row.Model = text(asked.Model)
	}
	row.MaxTokens, row.Temperature = asked.MaxTokens, asked.Temperature
	row.PromptBytes = schema.Some(asked.PromptBytes)
	row.StreamRequested = asked.Stream
}

func (ex *exchange) requestBroken(why string) {
	ex.body = nil
	if why == http1.WhyGap {
		ex.row.Flags.Add("request_gap")
		return
	}
	ex.row.Flags.Add("request_cut")
}

// responseHead decides how the body is read.
func (ex *exchange) responseHead(h *http1.Head) {
	row := &ex.row
	row.ResponseHead = schema.Some(h.At)
	row.HTTPStatus = schema.Some(int32(h.Status))
	row.HTTPVersion = h.Proto
	if !ex.llm {
		return
	}
	if coded(h) {
		ex.fail("content_encoding")
		return
	}
	kind, _, err := mime.ParseMediaType(h.Get("content-type"))
	if err != nil {
		kind, _, _ = strings.Cut(h.Get("content-type"), ";")
	}
	if strings.EqualFold(strings.TrimSpace(kind), "text/event-stream") {
		row.Stream, row.Framing = true, "sse"
		ex.sse = framing.NewSSE(ex.record)
		ex.stream = llmapi.NewStream(ex.api)
		row.OutputBytes.OK = ex.known
	}
}

// fail says why the response cannot be read. The first reason stands.
func (ex *exchange) fail(why string) { ex.row.StatusReason.SetOnce(why) }

func (ex *exchange) responseBody(data []byte, c *stream.Chunk) {
	row := &ex.row
	if !row.FirstBodyByte.OK {
		row.FirstBodyByte = schema.Some(c.At)
		ex.tally.firstSegment = c.Segment
	}
	row.ResponseBytes += int64(len(data))
	switch {
	case ex.sse != nil:
		ex.sse.Data(data, c)
	case ex.llm && ex.known && !row.StatusReason.OK:
		if len(ex.body)+len(data) > maxResponseBody {
			ex.body = nil
			ex.fail("body_too_large")
			return
		}
		ex.body = append(ex.body, data...)
	}
}

func (ex *exchange) responseLost(n int64) {
	ex.row.LostBytes += n
	ex.row.ResponseBytes += n
	ex.tally.lost = true
	if ex.sse != nil {
		ex.sse.Lost()
	}
}

// endStream takes what stands after the last complete record. At a clean end a
// record that lacks only its empty line counts, unless the stream was over.
func (ex *exchange) endStream(clean bool) {
	tail, dangling := ex.sse.End()
	if tail != nil && clean && !ex.tally.terminal() && ex.readable(tail.Data) {
		ex.record(tail)
		dangling = 0
	}
	ex.row.DanglingBytes = int64(dangling)
	ex.rec.counts.dangling += int64(dangling)
	ex.rec.counts.oversized += ex.sse.Oversized
	if ex.sse.Oversized > 0 {
		ex.row.Flags.Add("oversized_record")
	}
}

func (ex *exchange) readable(data []byte) bool {
	var d llmapi.Delta
	return llmapi.Done(data) || ex.known && ex.api.ParseRecord(data, &d)
}

// readBody reads a response that is not streamed.
func (ex *exchange) readBody() {
	d := &llmapi.Delta{}
	if !ex.api.ParseBody(ex.body, d) && ex.row.HTTPStatus.V < 400 {
		ex.fail("bad_json")
	}
	ex.body = nil
	ex.facts(d)
	ex.tally.failed = d.Kinds.Has(schema.KindError)
	ex.tally.finalOutput, ex.tally.finalKnown = d.Usage.Output, d.Usage.Known()
	ex.tally.choices = max(ex.tally.choices, d.Choices)
	ex.row.OutputBytes = schema.Some(d.TextBytes)
}
