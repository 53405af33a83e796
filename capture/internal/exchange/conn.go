package exchange

import (
	"slices"

	"tokentrace/capture/internal/http1"
	"tokentrace/capture/internal/stream"
)

// maxWaiting bounds the requests without a response on one connection: more are a
// capture that holds one direction only.
const maxWaiting = 1024

type protocol uint8

const (
	protocolNone protocol = iota // no payload yet
	protocolOpen                 // HTTP/1.x, or nothing that is known
	protocolTLS
	protocolHTTP2
)

// Conn follows one connection. It implements stream.Handler.
//
// Without losses, responses answer requests in their order (RFC 9112, 9.3.2).
// Across a hole that order proves nothing: a request whose response may lie in the
// hole is given up as soon as the client sends another, and a response that no
// request is known for stands alone. Nothing is paired by guessing.
type Conn struct {
	rec      *Recorder
	id       int64
	tuple    stream.Tuple
	protocol protocol
	flip     bool // the guess which side is the server was wrong
	settled  bool // it need not be doubted any more
	joined   bool // the capture does not hold all requests: it began midway or lost some

	parsers  [2]*http1.Parser // requests, responses: by direction to server, to client
	bytes    int64
	requests int64

	waiting []*exchange // requests without a complete response, oldest first
	owed    int         // responses to come before theirs, for requests that were let go
	up      *exchange   // its request is being received
	down    *exchange   // its response is being received

	clientGone int64 // when the client's FIN or RST came; 0 is not
	serverGone bool  // the server's direction has ended
	serverWhy  stream.CloseReason
}

func newConn(r *Recorder, id int64, t stream.Tuple) *Conn {
	c := &Conn{rec: r, id: id, tuple: t, settled: !t.Guessed, joined: t.Guessed}
	c.parsers[stream.ToServer] = http1.New(http1.Requests, requestSide{c}, t.Guessed)
	c.parsers[stream.ToClient] = http1.New(http1.Responses, responseSide{c}, t.Guessed)
	return c
}

// Data takes the next bytes of a direction.
func (c *Conn) Data(ch *stream.Chunk) {
	c.bytes += int64(len(ch.Data))
	if c.protocol == protocolNone && len(ch.Data) > 0 {
		c.recognise(ch.Data)
	}
	if !c.settled {
		c.settle(ch)
	}
	dir := ch.Dir
	if c.flip {
		dir = dir.Other()
	}
	if ch.Gap > 0 {
		c.taint(dir)
	}
	c.parsers[dir].Data(ch)
}

// recognise looks at the first bytes for protocols that are not HTTP/1.x.
func (c *Conn) recognise(b []byte) {
	const preface = "PRI * HTTP/2.0"
	switch {
	case len(b) >= 3 && b[0] >= 20 && b[0] <= 23 && b[1] == 3 && b[2] <= 4: // RFC 8446, 5.1
		c.protocol = protocolTLS
	case len(b) >= len(preface) && string(b[:len(preface)]) == preface: // RFC 9113, 3.4
		c.protocol = protocolHTTP2
	default:
		c.protocol = protocolOpen
		return
	}
	c.parsers[0].Detach()
	c.parsers[1].Detach()
}

// settle finds out which side is the server from the first message start.
func (c *Conn) settle(ch *stream.Chunk) {
	wrong := http1.Responses // what only the other side would send
	if ch.Dir == stream.ToClient {
		wrong = http1.Requests
	}
	right := 1 - wrong
	switch {
	case http1.Starts(right, ch.Data) == http1.Yes:
		c.settled = true
	case http1.Starts(wrong, ch.Data) == http1.Yes:
		c.settled, c.flip = true, true
	}
}

// taint marks what a hole in a direction makes uncertain.
func (c *Conn) taint(dir stream.Dir) {
	if dir == stream.ToServer {
		c.joined = true
		return
	}
	for _, ex := range c.waiting {
		ex.tainted = true
	}
}

// Close ends a direction.
func (c *Conn) Close(dir stream.Dir, at int64, why stream.CloseReason) {
	if c.flip {
		dir = dir.Other()
	}
	gone := why == stream.FIN || why == stream.RST
	if dir == stream.ToServer && gone {
		c.clientGone = at
	}
	if dir == stream.ToClient && why == stream.PeerRST && c.clientGone == 0 {
		c.clientGone = at
	}
	c.parsers[dir].Close(at, why == stream.FIN)
	if dir == stream.ToClient {
		c.serverGone, c.serverWhy = true, why
		c.cutAll(at)
	} else if c.serverGone { // requests that crossed the server's end on the wire
		c.clientGone = 0
		c.cutAll(at)
	}
}

// cutAll ends the exchanges whose responses will not be completed.
func (c *Conn) cutAll(at int64) {
	end := endServerFIN
	switch {
	case c.clientGone != 0 && c.clientGone <= at:
		end, at = endClientGone, c.clientGone
	case c.serverWhy == stream.RST:
		end = endServerRST
	case c.serverWhy != stream.FIN:
		end = endCapture
	}
	for len(c.waiting) > 0 {
		c.finish(c.waiting[0], end, at)
	}
}

// finish writes an exchange and forgets it.
func (c *Conn) finish(ex *exchange, end endCause, at int64) {
	c.waiting = slices.DeleteFunc(c.waiting, func(w *exchange) bool { return w == ex })
	if c.up == ex {
		c.up = nil
	}
	if c.down == ex {
		c.down = nil
	}
	ex.finish(end, at)
}

// countBytes adds the connection's bytes to the ledger.
func (c *Conn) countBytes() {
	n := &c.rec.counts
	skipped := c.parsers[0].Skipped + c.parsers[1].Skipped
	switch {
	case c.protocol == protocolTLS:
		n.bytesTLS += c.bytes
	case c.protocol == protocolHTTP2:
		n.bytesHTTP2 += c.bytes
	case c.sawHTTP():
		n.bytesUnsynced += skipped
		n.bytesHTTP += c.bytes - skipped
	default:
		n.bytesOther += c.bytes
	}
}

func (c *Conn) sawHTTP() bool { return c.parsers[0].SawHTTP || c.parsers[1].SawHTTP }

func (c *Conn) protocolName() string {
	switch {
	case c.protocol == protocolTLS:
		return "tls"
	case c.protocol == protocolHTTP2:
		return "http2"
	case c.sawHTTP():
		return "http1"
	case c.protocol == protocolNone:
		return "none"
	default:
		return "other"
	}
}

// requestSide receives the messages of the direction to the server.
type requestSide struct{ c *Conn }

func (s requestSide) Head(h *http1.Head) bool {
	c := s.c
	c.requests++
	c.giveUpTainted()
	if len(c.waiting) >= maxWaiting {
		c.letGo()
	}
	ex := newExchange(c.rec, c.id)
	ex.requestHead(h)
	c.waiting = append(c.waiting, ex)
	c.up = ex
	return false
}

// letGo ends the oldest request without its response, which will have to be passed over.
func (c *Conn) letGo() {
	ex := c.waiting[0]
	if ex != c.down {
		c.owed++
	}
	c.finish(ex, endGap, 0)
}

// giveUpTainted ends the requests whose responses lie in a hole: the client would
// not have sent another one before it had them.
func (c *Conn) giveUpTainted() {
	for i := 0; i < len(c.waiting); {
		if ex := c.waiting[i]; ex.tainted {
			c.finish(ex, endGap, 0)
			continue
		}
		i++
	}
}

func (s requestSide) Body(data []byte, _ *stream.Chunk) {
	if ex := s.c.up; ex != nil {
		ex.requestBody(data)
	}
}

func (s requestSide) Lost(n int64) {
	if ex := s.c.up; ex != nil {
		ex.requestLost(n)
	}
}

func (s requestSide) End(at int64) {
	ex := s.c.up
	s.c.up = nil
	if ex == nil {
		return
	}
	ex.requestEnd(at)
	if ex.answered {
		s.c.finish(ex, endMessage, ex.endAt)
	}
}

func (s requestSide) Broken(_ int64, why string) {
	ex := s.c.up
	s.c.up = nil
	if ex == nil {
		s.c.countBrokenHead()
		return
	}
	ex.requestBroken(why)
	if ex.answered {
		s.c.finish(ex, endMessage, ex.endAt)
	}
}

// countBrokenHead counts a head that cannot be read, on connections that speak HTTP.
func (c *Conn) countBrokenHead() {
	if c.sawHTTP() {
		c.rec.counts.brokenHeads++
	}
}

// brokenHead takes note of a response whose head cannot be read. It answers the oldest
// request all the same: the next response must not.
func (c *Conn) brokenHead(why string) {
	c.countBrokenHead()
	if why != http1.WhySyntax && why != http1.WhyHeadLimit {
		return
	}
	if c.owed > 0 {
		c.owed--
		return
	}
	for _, ex := range c.waiting {
		if !ex.answered {
			ex.fail(why)
			c.finish(ex, endSyntax, 0)
			return
		}
	}
}

// responseSide receives the messages of the direction to the client.
type responseSide struct{ c *Conn }

func (s responseSide) Head(h *http1.Head) bool {
	c := s.c
	if h.Status < 200 && h.Status != 101 {
		c.rec.counts.interim++
		return false
	}
	c.down = c.asker(h)
	if c.down == nil {
		c.rec.counts.exchanges++
		c.rec.counts.unsolicited++
		return false
	}
	c.down.responseHead(h)
	if h.Status == 101 {
		c.parsers[stream.ToServer].Detach()
	}
	return c.down.method == "HEAD"
}

// asker returns the exchange that a response belongs to: the oldest unanswered
// request. Where requests may be missing, a response that none is known for gets a
// row of its own; where none is missing it answers nothing.
func (c *Conn) asker(h *http1.Head) *exchange {
	if c.owed > 0 {
		c.owed--
		return nil
	}
	var unanswered []*exchange
	for _, ex := range c.waiting {
		if !ex.answered {
			unanswered = append(unanswered, ex)
		}
	}
	switch {
	case len(unanswered) > 1 && unanswered[0].tainted: // pipelined across a hole
		c.giveUpTainted()
		c.joined = true
	case len(unanswered) > 0:
		return unanswered[0]
	}
	if !c.joined {
		return nil
	}
	ex := newExchange(c.rec, c.id)
	ex.headless(c.tuple.Guessed && c.requests == 0, h)
	c.waiting = append(c.waiting, ex)
	return ex
}

func (s responseSide) Body(data []byte, ch *stream.Chunk) {
	if ex := s.c.down; ex != nil {
		ex.responseBody(data, ch)
	}
}

func (s responseSide) Lost(n int64) {
	if ex := s.c.down; ex != nil {
		ex.responseLost(n)
	}
}

func (s responseSide) End(at int64) {
	ex := s.c.down
	s.c.down = nil
	if ex == nil {
		return
	}
	if ex == s.c.up { // answered before the request was complete
		ex.answered, ex.endAt = true, at
		return
	}
	s.c.finish(ex, endMessage, at)
}

func (s responseSide) Broken(at int64, why string) {
	ex := s.c.down
	if ex == nil {
		s.c.brokenHead(why)
		return
	}
	switch {
	case why == http1.WhyGap:
		s.c.finish(ex, endGap, at)
	case why != http1.WhyClosed: // Close cuts the others
		ex.fail(why)
		s.c.finish(ex, endSyntax, at)
	}
}
