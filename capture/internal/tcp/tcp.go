// Package tcp puts the segments of TCP connections in order and dates their bytes.
//
// It knows sequence numbers, retransmission, overlap, reordering, loss and how
// connections begin and end. It does not know what the bytes mean. A byte's
// delivery time is the running maximum of the first-seen times up to it: a byte
// that waited for an earlier one could not have been read before.
//
// The two directions are kept in step: bytes that acknowledge others are delivered
// after those, whatever order the capture has them in, so that a response does not
// come before its request.
//
// Where several segments hold the same byte the first one seen counts. A hole is
// declared lost when the receiver acknowledged it and it stays unfilled for a
// second, when it is 30 s old, or when too much waits behind it; then the next
// chunk says how many bytes are missing.
//
// Memory is bounded by the number of connections that are followed and by the bytes
// that wait behind holes, both of which have limits. A Table is not safe for
// concurrent use.
package tcp

import (
	"net/netip"

	"tokentrace/capture/internal/packet"
	"tokentrace/capture/internal/stream"
	"tokentrace/schema"
)

// Limits, in ns of packet time and in bytes.
const (
	second = int64(1e9)

	ackedHoleWait = 1 * second       // an acknowledged hole may still be filled by a late packet
	holeWait      = 30 * second      // an unacknowledged one, by a retransmission
	rstWait       = 5 * second       // data that crosses a reset
	lingerWait    = 60 * second      // repeats of a closed connection's segments
	idleWait      = 30 * 60 * second // a connection without any packet
	emptyWait     = 10 * 60 * second // one that never carried a byte: scans, floods of SYNs
	sweepEvery    = 1 * second
	sweepPackets  = 1024

	maxConnections = 1 << 16 // followed at once; beyond, the oldest of those silent longest goes
	maxQueuedHalf  = 8 << 20
	maxQueuedTable = 128 << 20
	maxAhead       = 1 << 27 // a sequence number further off belongs to no live connection
)

// Counts are totals over all connections. PayloadBytes is the sum of the other
// byte counts but Lost.
type Counts struct {
	Segments         int64
	PayloadBytes     int64 // captured
	Delivered        int64
	Duplicate        int64 // seen before
	AfterClose       int64 // of a direction that had ended
	OutOfWindow      int64 // with sequence numbers that belong to no live connection
	Lost             int64 // carried by a connection, not in the capture
	Connections      int64
	ConnectionsNoSYN int64 // of them, joined midway
	Evicted          int64 // of them, given up because too many were open
}

// Table follows all connections of a capture.
type Table struct {
	open stream.Open
	done func(stream.Handler, stream.Facts)

	flows  map[flowKey]flow
	first  *conn // in order of creation
	last   *conn
	counts Counts
	queued int // bytes that wait behind holes, all connections

	recent [recentFlows]recentFlow // flows seen lately, by their ports: cheaper than the map

	now        int64 // packet time, strays left out
	strays     int   // packets in a row whose time is far from now
	sweptAt    int64
	sinceSweep int
	chunk      stream.Chunk // reused, so that delivering costs no allocation
}

// flowKey names one direction of a connection.
type flowKey struct {
	src, dst         packet.Addr
	srcPort, dstPort uint16
}

func (k flowKey) reverse() flowKey {
	return flowKey{k.dst, k.src, k.dstPort, k.srcPort}
}

type flow struct {
	c   *conn
	dir stream.Dir
}

const recentFlows = 1 << 9

type recentFlow struct {
	key flowKey
	flow
}

// slot is where a flow stands among the recent ones.
func (k *flowKey) slot() int { return int(k.srcPort*3+k.dstPort) % recentFlows }

// conn is one connection.
type conn struct {
	key     flowKey // of the direction to the server
	handler stream.Handler
	facts   stream.Facts
	halves  [2]half // by direction

	prev, next *conn

	synSeq   uint32 // of the client's SYN. Valid iff facts.SYN
	synAgain bool   // the handshake was repeated, so that it times nothing
	synAck   bool   // the server's answer was seen
	rstAt    int64  // when the first RST was seen; 0 is never
	zeroAt   int64  // since when the client's window is closed; 0 is open
	closed   bool   // both directions have ended
}

// New returns a Table that opens a handler for each connection and calls done
// once with the handler and the facts of each that has ended.
func New(open stream.Open, done func(stream.Handler, stream.Facts)) *Table {
	return &Table{open: open, done: done, flows: map[flowKey]flow{}}
}

// Counts returns the totals so far.
func (t *Table) Counts() Counts { return t.counts }

// Segment takes the next segment of the capture, seen at the given time.
func (t *Table) Segment(at int64, s *packet.Segment) {
	t.counts.Segments++
	t.counts.PayloadBytes += int64(len(s.Payload))
	f := t.find(at, s)
	c, d := f.c, f.dir
	c.facts.Packets++
	c.facts.Last = max(c.facts.Last, at)
	t.sweep(at)
	if c.closed {
		t.late(c, d, s)
		return
	}
	c.observe(d, at, s)
	if s.Flags&packet.FlagACK != 0 && s.Flags&packet.FlagRST == 0 {
		c.halves[d.Other()].acknowledge(s.Ack, at)
	}
	t.place(c, d, at, s)
	if c.waits() {
		t.drain(c)
		t.age(c, at)
	}
	if s.Flags&packet.FlagRST != 0 {
		t.reset(c, d, at)
	}
}

// find returns the flow of a segment, opening a connection where it begins one.
func (t *Table) find(at int64, s *packet.Segment) flow {
	key := flowKey{s.Src, s.Dst, s.SrcPort, s.DstPort}
	recent := &t.recent[key.slot()]
	known := recent.c != nil && recent.key == key
	f := recent.flow
	if !known {
		f = t.flows[key]
	}
	if f.c != nil && s.Flags&packet.FlagSYN != 0 && f.c.begunAnew(s) {
		t.end(f.c, f.c.facts.Last, stream.Reuse)
		t.remove(f.c)
		f, known = flow{}, false
	}
	if f.c == nil {
		f = t.begin(at, key, s)
	}
	if !known {
		*recent = recentFlow{key, f}
	}
	return f
}

// begunAnew reports whether s is the SYN of another connection on the same ports.
func (c *conn) begunAnew(s *packet.Segment) bool {
	if s.Flags&packet.FlagSYN == 0 || s.Flags&packet.FlagACK != 0 {
		return false
	}
	return c.closed || !c.facts.SYN || s.Seq != c.synSeq
}

func (t *Table) begin(at int64, key flowKey, s *packet.Segment) flow {
	toServer, guessed := key, false
	switch {
	case s.Flags&packet.FlagSYN != 0 && s.Flags&packet.FlagACK != 0:
		toServer = key.reverse()
	case s.Flags&packet.FlagSYN != 0:
	default: // joined midway: servers mostly have the lower port
		guessed = true
		if key.srcPort < key.dstPort {
			toServer = key.reverse()
		}
	}
	c := &conn{key: toServer}
	c.facts = stream.Facts{
		Tuple: stream.Tuple{
			Client:  netip.AddrPortFrom(toServer.src.Netip(), toServer.srcPort),
			Server:  netip.AddrPortFrom(toServer.dst.Netip(), toServer.dstPort),
			Guessed: guessed,
		},
		First: at, Last: at, ClosedBy: "none",
	}
	if len(t.flows) >= 2*maxConnections {
		t.evict()
	}
	t.counts.Connections++
	if guessed {
		t.counts.ConnectionsNoSYN++
	}
	c.handler = t.open(c.facts.Tuple, at)
	t.flows[toServer] = flow{c, stream.ToServer}
	t.flows[toServer.reverse()] = flow{c, stream.ToClient}
	c.prev = t.last
	if t.last == nil {
		t.first = c
	} else {
		t.last.next = c
	}
	t.last = c
	return t.flows[key]
}

// evictAmong is how many of the oldest connections are looked at to evict one.
const evictAmong = 64

// evict ends the connection that was silent longest among the oldest.
func (t *Table) evict() {
	victim := t.first
	for c, n := t.first, 0; c != nil && n < evictAmong; c, n = c.next, n+1 {
		if c.facts.Last < victim.facts.Last {
			victim = c
		}
	}
	t.counts.Evicted++
	t.end(victim, victim.facts.Last, stream.Idle)
	t.remove(victim)
}

// observe notes what a segment says beside its payload: handshake and window.
func (c *conn) observe(d stream.Dir, at int64, s *packet.Segment) {
	syn, ack := s.Flags&packet.FlagSYN != 0, s.Flags&packet.FlagACK != 0
	switch {
	case syn && !ack:
		c.synAgain = c.synAgain || c.facts.SYN
		c.facts.SYN, c.synSeq = true, s.Seq
	case syn && ack:
		c.synAgain = c.synAgain || c.synAck
		c.synAck = true
	case ack && d == stream.ToServer && c.facts.SYN && c.synAck && !c.synAgain && !c.facts.RTT.OK:
		c.facts.RTT = schema.Some(at - c.facts.First)
	}
	if d == stream.ToServer && s.Flags&(packet.FlagSYN|packet.FlagRST) == 0 {
		c.window(at, s.Window == 0)
	}
}

// window follows the client's receive window.
func (c *conn) window(at int64, zero bool) {
	if zero && c.zeroAt == 0 {
		c.zeroAt = at
	}
	if !zero && c.zeroAt != 0 {
		c.facts.ZeroWindow += max(0, at-c.zeroAt)
		c.zeroAt = 0
	}
}

// reset ends the sender's direction. The other one may still hold data that
// crossed the reset on its way; it ends rstWait later.
func (t *Table) reset(c *conn, d stream.Dir, at int64) {
	if c.rstAt == 0 {
		c.rstAt = at
	}
	t.closeHalf(c, d, at, stream.RST)
}

// closeHalf ends a direction: what waits behind holes is delivered, the holes lost.
func (t *Table) closeHalf(c *conn, d stream.Dir, at int64, why stream.CloseReason) {
	h := &c.halves[d]
	if h.closed {
		return
	}
	for len(h.queue) > 0 && !h.closed {
		t.giveUp(c, d)
	}
	if h.closed { // a FIN was in the queue
		return
	}
	if h.lost > 0 {
		t.deliver(c, d, nil, 0, h.high)
	}
	h.closed = true
	c.ended(d, why)
	c.handler.Close(d, max(at, h.high), why)
	c.closed = c.halves[0].closed && c.halves[1].closed
}

// ended notes how the connection ends; the first reason stands.
func (c *conn) ended(d stream.Dir, why stream.CloseReason) {
	if c.facts.Close != "" {
		return
	}
	c.facts.Close = [...]string{"fin", "rst", "rst", "idle", "reuse", "capture_end"}[why]
	if why == stream.FIN || why == stream.RST {
		c.facts.ClosedBy = [...]string{"client", "server"}[d]
	}
}

// end closes both directions.
func (t *Table) end(c *conn, at int64, why stream.CloseReason) {
	if c.rstAt != 0 {
		at, why = c.rstAt, stream.PeerRST
	}
	t.closeHalf(c, stream.ToServer, at, why)
	t.closeHalf(c, stream.ToClient, at, why)
}

// remove reports a connection that has ended and forgets it.
func (t *Table) remove(c *conn) {
	if c.zeroAt != 0 {
		c.facts.ZeroWindow += max(0, c.facts.Last-c.zeroAt)
	}
	for _, key := range [...]flowKey{c.key, c.key.reverse()} {
		delete(t.flows, key)
		if recent := &t.recent[key.slot()]; recent.c == c {
			recent.flow = flow{}
		}
	}
	if c.prev == nil {
		t.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		t.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	t.done(c.handler, c.facts)
}

// sweep ends what time has ended: connections idle or closed for long, directions
// after a reset, old holes.
func (t *Table) sweep(at int64) {
	t.sinceSweep++
	if !t.tick(at) || t.sinceSweep < sweepPackets || t.now-t.sweptAt < sweepEvery && t.now >= t.sweptAt {
		return
	}
	t.sinceSweep, t.sweptAt = 0, t.now
	for c := t.first; c != nil; {
		next := c.next
		t.expire(c, t.now)
		c = next
	}
}

// A time further than strayTime from the packets before is believed when as many
// packets in a row agree: one with a wrong clock must not end every connection.
const (
	strayTime    = 60 * second
	strayPackets = 64
)

// tick follows packet time and reports whether at is to be believed.
func (t *Table) tick(at int64) bool {
	far := at-t.now > strayTime || t.now-at > strayTime
	if far && t.now != 0 && t.strays < strayPackets {
		t.strays++
		return false
	}
	t.strays = 0
	if far {
		t.now = at
	}
	t.now = max(t.now, at)
	return true
}

// expire ends what time has ended of a connection.
func (t *Table) expire(c *conn, at int64) {
	silent := at - c.facts.Last
	switch {
	case c.closed:
		if silent > lingerWait {
			t.remove(c)
		}
		return
	case silent > idleWait || silent > emptyWait && c.facts.Delivered == [2]int64{}:
		t.end(c, c.facts.Last, stream.Idle)
		t.remove(c)
		return
	case c.rstAt != 0 && at-c.rstAt > rstWait:
		t.end(c, c.rstAt, stream.PeerRST)
		return
	}
	t.age(c, at)
}

// Finish ends all connections at the end of the capture.
func (t *Table) Finish() {
	for t.first != nil {
		t.end(t.first, t.first.facts.Last, stream.CaptureEnd)
		t.remove(t.first)
	}
}
