// Package exchange turns the HTTP messages of connections into rows: it pairs
// requests with responses, dates their boundaries, counts their tokens and says how
// each ended.
//
// It knows the definitions of the metrics (docs/metrics.md); it does not know how
// bytes were captured or how rows are stored. Rows go out as soon as they are
// known: events while the stream runs, the request when it has ended.
package exchange

import (
	"tokentrace/capture/internal/llmapi"
	"tokentrace/capture/internal/stream"
	"tokentrace/schema"
)

// Sink takes rows. It must not keep the pointers.
type Sink interface {
	Request(*schema.Request)
	Event(*schema.Event)
	Connection(*schema.Connection)
}

// Recorder makes the rows of all connections of a run. It is not safe for
// concurrent use.
type Recorder struct {
	sink        Sink
	connections int64
	requests    int64
	inFlight    int32
	counts      counts
	event       schema.Event // reused, so that a record costs no allocation
	nothing     llmapi.Delta // what a record says that is not JSON
	buffers     [][]byte     // for request bodies, to be used again
}

// counts are the Recorder's part of the ledger.
type counts struct {
	exchanges, recorded, notLLM, unsolicited        int64
	interim, brokenHeads                            int64
	records, decoded, comments, unknownAPI, badJSON int64
	oversized, dangling                             int64
	bytesHTTP, bytesUnsynced                        int64
	bytesTLS, bytesHTTP2, bytesOther                int64
}

// NewRecorder returns a Recorder that writes to sink.
func NewRecorder(sink Sink) *Recorder { return &Recorder{sink: sink} }

// Limits of the buffers that are kept: how many, and how large.
const (
	maxBuffers = 64
	maxBuffer  = 1 << 18
)

// buffer returns an empty buffer for a body.
func (r *Recorder) buffer() []byte {
	n := len(r.buffers)
	if n == 0 {
		return make([]byte, 0, 4<<10)
	}
	b := r.buffers[n-1]
	r.buffers = r.buffers[:n-1]
	return b
}

// recycle takes a buffer back.
func (r *Recorder) recycle(b []byte) {
	if b != nil && cap(b) <= maxBuffer && len(r.buffers) < maxBuffers {
		r.buffers = append(r.buffers, b[:0])
	}
}

// Open returns the handler of a new connection.
func (r *Recorder) Open(t stream.Tuple, _ int64) stream.Handler {
	r.connections++
	return newConn(r, r.connections, t)
}

// Done writes the row of a connection that has ended.
func (r *Recorder) Done(h stream.Handler, f stream.Facts) {
	c := h.(*Conn)
	c.countBytes()
	client, server := f.Tuple.Client, f.Tuple.Server
	toServer, toClient := f.Delivered[stream.ToServer], f.Delivered[stream.ToClient]
	closedBy, zeroWindow := f.ClosedBy, f.ZeroWindow
	if c.flip {
		client, server = server, client
		toServer, toClient = toClient, toServer
		switch closedBy {
		case "client":
			closedBy = "server"
		case "server":
			closedBy = "client"
		}
		zeroWindow = 0 // it was watched for the wrong side
	}
	r.sink.Connection(&schema.Connection{
		Connection: c.id,
		ClientAddr: client.Addr().String(), ClientPort: int32(client.Port()),
		ServerAddr: server.Addr().String(), ServerPort: int32(server.Port()),
		Protocol: c.protocolName(), TLS: c.protocol == protocolTLS,
		First: f.First, Last: f.Last, SYN: f.SYN, Close: f.Close, ClosedBy: closedBy, RTT: f.RTT,
		Packets: f.Packets, Requests: c.requests,
		ToServerBytes: toServer, ToClientBytes: toClient,
		Retransmitted: f.Retransmitted, OutOfOrder: f.OutOfOrder, LostBytes: f.Lost, ZeroWindow: zeroWindow,
	})
}

// Ledger returns what became of the bytes, messages and records that came in.
// Its byte counts are shares of tcp_bytes_delivered.
func (r *Recorder) Ledger() schema.Ledger {
	n := &r.counts
	info, loss, bad := schema.SeverityInfo, schema.SeverityLoss, schema.SeverityError
	return schema.Ledger{
		{Name: "bytes_http", Severity: info, Count: n.bytesHTTP, PartOf: "tcp_bytes_delivered", Doc: "bytes of HTTP/1.x messages"},
		{Name: "bytes_http_unsynced", Severity: loss, Count: n.bytesUnsynced, PartOf: "tcp_bytes_delivered", Doc: "bytes on HTTP connections that belong to no message: joined midway, after a loss, or after an upgrade"},
		{Name: "bytes_tls", Severity: info, Count: n.bytesTLS, PartOf: "tcp_bytes_delivered", Doc: "bytes of TLS, which cannot be read without keys"},
		{Name: "bytes_http2", Severity: info, Count: n.bytesHTTP2, PartOf: "tcp_bytes_delivered", Doc: "bytes of HTTP/2, which is not decoded yet"},
		{Name: "bytes_other", Severity: info, Count: n.bytesOther, PartOf: "tcp_bytes_delivered", Doc: "bytes of other protocols"},
		{Name: "http_exchanges", Severity: info, Count: n.exchanges, Doc: "HTTP requests, and responses without one"},
		{Name: "exchanges_recorded", Severity: info, Count: n.recorded, PartOf: "http_exchanges", Doc: "rows of the requests table"},
		{Name: "exchanges_not_llm", Severity: info, Count: n.notLLM, PartOf: "http_exchanges", Doc: "requests that ask for no generation: every method but POST (health checks, metrics, model lists)"},
		{Name: "responses_unsolicited", Severity: info, Count: n.unsolicited, PartOf: "http_exchanges", Doc: "responses on a connection seen whole that answer no request, such as 408 on an idle one"},
		{Name: "responses_interim", Severity: info, Count: n.interim, Doc: "1xx responses"},
		{Name: "heads_broken", Severity: loss, Count: n.brokenHeads, Doc: "message heads that were cut or are no HTTP"},
		{Name: "stream_records", Severity: info, Count: n.records, Doc: "framed records and comments in response streams"},
		{Name: "records_decoded", Severity: info, Count: n.decoded, PartOf: "stream_records", Doc: "records whose meaning was read"},
		{Name: "records_comment", Severity: info, Count: n.comments, PartOf: "stream_records", Doc: "SSE comment lines"},
		{Name: "records_unknown_api", Severity: loss, Count: n.unknownAPI, PartOf: "stream_records", Doc: "records of APIs that are not known: timed, not read"},
		{Name: "records_bad_json", Severity: bad, Count: n.badJSON, PartOf: "stream_records", Doc: "records that should be JSON and are not"},
		{Name: "records_oversized", Severity: bad, Count: n.oversized, Doc: "records beyond the size limit, passed over"},
		{Name: "bytes_dangling", Severity: loss, Count: n.dangling, Doc: "bytes at the end of streams that belong to no complete record"},
	}
}
