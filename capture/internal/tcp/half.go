package tcp

import (
	"slices"

	"tokentrace/capture/internal/packet"
	"tokentrace/capture/internal/stream"
)

// half is one direction of a connection.
type half struct {
	started bool   // whether next is known
	next    uint32 // sequence number of the next byte to deliver
	off     int64  // its offset in the direction
	high    int64  // running maximum of first-seen times
	lost    int64  // bytes lost since the last delivery
	segment int32  // of the next delivery
	closed  bool

	queue     []pending // out of order, by offset, without overlaps
	queued    int       // what it costs
	holeAt    int64     // when something first waited behind the present hole
	holeAcked int64     // when the receiver acknowledged it; 0 is not
}

// pending is a segment, or what is new in one, that waits for bytes before it.
type pending struct {
	off  int64
	n    int    // length on the wire
	data []byte // what was captured of it
	seen int64
	fin  bool // the direction ends after it
}

func (p *pending) end() int64 { return p.off + int64(p.n) }

// cost is what p takes while it waits, in bytes.
func (p *pending) cost() int { return len(p.data) + pendingCost }

const pendingCost = 64

// place puts the payload of a segment where it belongs.
func (t *Table) place(c *conn, d stream.Dir, at int64, s *packet.Segment) {
	h := &c.halves[d]
	seq, n, fin := s.Seq, s.PayloadLen, s.Flags&packet.FlagFIN != 0
	if s.Flags&packet.FlagSYN != 0 {
		seq++
		if !h.started {
			h.started, h.next = true, seq
		}
	}
	if n == 0 && !fin {
		return
	}
	if h.closed {
		t.late(c, d, s)
		return
	}
	if !h.started {
		h.started, h.next = true, seq
	}
	diff := int32(seq - h.next)
	if diff > maxAhead || diff < -maxAhead {
		t.counts.OutOfWindow += int64(len(s.Payload))
		return
	}
	p := pending{off: h.off + int64(diff), n: n, data: s.Payload, seen: at, fin: fin}
	if diff == 0 && len(h.queue) == 0 { // by far the most
		t.accept(c, d, &p)
		return
	}
	t.insert(c, d, p)
	t.ageHole(c, d, at)
}

// late counts the payload of a segment whose direction has ended: a repeat, or
// something that no receiver will have taken.
func (t *Table) late(c *conn, d stream.Dir, s *packet.Segment) {
	h := &c.halves[d]
	if s.PayloadLen > 0 && h.started && int32(s.Seq+uint32(s.PayloadLen)-h.next) <= 0 {
		c.facts.Retransmitted++
		t.counts.Duplicate += int64(len(s.Payload))
		return
	}
	t.counts.AfterClose += int64(len(s.Payload))
}

// accept delivers a segment that begins at the next byte.
func (t *Table) accept(c *conn, d stream.Dir, p *pending) {
	h := &c.halves[d]
	h.holeAt, h.holeAcked = 0, 0
	if p.n > 0 {
		t.deliver(c, d, p.data, p.n, p.seen)
	}
	if p.fin {
		t.discard(h)
		h.high = max(h.high, p.seen)
		t.closeHalf(c, d, h.high, stream.FIN)
	}
}

// discard drops what claims to stand behind the end of the direction.
func (t *Table) discard(h *half) {
	for _, p := range h.queue {
		t.counts.AfterClose += int64(len(p.data))
	}
	t.queued -= h.queued
	h.queue, h.queued = nil, 0
}

// deliver hands n bytes, of which data was captured, to the handler.
func (t *Table) deliver(c *conn, d stream.Dir, data []byte, n int, seen int64) {
	h := &c.halves[d]
	h.high = max(h.high, seen)
	h.off += int64(n)
	h.next += uint32(n)
	cut := int64(n - len(data)) // by the snap length
	if len(data) == 0 && cut > 0 {
		h.lose(t, c, cut)
		return
	}
	t.chunk = stream.Chunk{Dir: d, Gap: h.lost, Data: data, At: h.high, Seen: seen, Segment: h.segment}
	h.segment++
	h.lost = 0
	if cut > 0 {
		h.lose(t, c, cut)
	}
	t.counts.Delivered += int64(len(data))
	c.facts.Delivered[d] += int64(len(data))
	c.handler.Data(&t.chunk)
}

func (h *half) lose(t *Table, c *conn, n int64) {
	h.lost += n
	c.facts.Lost += n
	t.counts.Lost += n
}

// insert takes a segment that is late, early, or overlaps with what waits.
func (t *Table) insert(c *conn, d stream.Dir, p pending) {
	h := &c.halves[d]
	if !t.trim(c, h, &p) {
		return
	}
	if p.off > h.off {
		c.facts.OutOfOrder++
		if len(h.queue) == 0 {
			h.holeAt, h.holeAcked = p.seen, 0
		}
		t.enqueue(h, p)
		if h.queued > maxQueuedHalf || t.queued > maxQueuedTable {
			t.skipHole(c, d)
		}
		return
	}
	// It fills the hole: up to what waits already, which was seen first.
	if len(h.queue) > 0 && p.end() > h.queue[0].off {
		rest := p.split(h.queue[0].off)
		t.accept(c, d, &p)
		t.drain(c, d)
		if h.closed { // the end of the direction was waiting
			t.counts.Duplicate += int64(len(rest.data))
			return
		}
		t.insert(c, d, rest)
		return
	}
	t.accept(c, d, &p)
	t.drain(c, d)
}

// trim cuts off what was delivered before and reports whether anything is left.
func (t *Table) trim(c *conn, h *half, p *pending) bool {
	behind := h.off - p.off
	if behind <= 0 {
		return true
	}
	if p.end() <= h.off && !(p.fin && p.end() == h.off) {
		t.counts.Duplicate += int64(len(p.data))
		if keepAlive := p.n == 1 && behind == 1; p.n > 0 && !keepAlive {
			c.facts.Retransmitted++
		}
		return false
	}
	rest := p.split(h.off)
	t.counts.Duplicate += int64(len(p.data))
	*p = rest
	return true
}

// split shortens p to end at off and returns the rest.
func (p *pending) split(off int64) pending {
	k := int(off - p.off)
	rest := pending{off: off, n: p.n - k, data: p.data[min(k, len(p.data)):], seen: p.seen, fin: p.fin}
	p.n, p.data, p.fin = k, p.data[:min(k, len(p.data))], false
	return rest
}

// enqueue keeps the parts of p that do not wait yet.
func (t *Table) enqueue(h *half, p pending) {
	i := len(h.queue) // most come behind all that waits
	for i > 0 && h.queue[i-1].end() > p.off {
		i--
	}
	for ; ; i++ {
		if i == len(h.queue) || p.end() <= h.queue[i].off {
			t.keep(h, i, p)
			return
		}
		if p.off < h.queue[i].off { // the part before the queued one is new
			rest := p.split(h.queue[i].off)
			t.keep(h, i, p)
			p = rest
			i++
		}
		if h.queue[i].fin || p.end() <= h.queue[i].end() {
			h.queue[i].fin = h.queue[i].fin || p.fin && p.end() == h.queue[i].end()
			t.counts.Duplicate += int64(len(p.data))
			return
		}
		before := p
		p = before.split(h.queue[i].end())
		t.counts.Duplicate += int64(len(before.data))
	}
}

// keep copies p into the queue at position i.
func (t *Table) keep(h *half, i int, p pending) {
	p.data = slices.Clone(p.data)
	h.queue = slices.Insert(h.queue, i, p)
	h.queued += p.cost()
	t.queued += p.cost()
}

// drain delivers what waits no longer.
func (t *Table) drain(c *conn, d stream.Dir) {
	h := &c.halves[d]
	for len(h.queue) > 0 && h.queue[0].off == h.off && !h.closed {
		p := h.queue[0]
		h.queue = h.queue[1:]
		h.queued -= p.cost()
		t.queued -= p.cost()
		t.accept(c, d, &p)
	}
	if len(h.queue) == 0 {
		h.queue = nil
	} else {
		h.holeAt, h.holeAcked = h.queue[0].seen, 0
	}
}

// skipHole declares the bytes before the queue lost and goes on behind them.
func (t *Table) skipHole(c *conn, d stream.Dir) {
	h := &c.halves[d]
	hole := h.queue[0].off - h.off
	h.lose(t, c, hole)
	h.off += hole
	h.next += uint32(hole)
	t.drain(c, d)
}

// acknowledge notes what the receiver of direction d has.
func (t *Table) acknowledge(c *conn, d stream.Dir, ack uint32, at int64) {
	h := &c.halves[d]
	if !h.started { // joined midway: the first byte to come is known before it comes
		h.started, h.next = true, ack
		return
	}
	if len(h.queue) == 0 || h.closed {
		return
	}
	if h.holeAcked == 0 && h.off+int64(int32(ack-h.next)) >= h.queue[0].off {
		h.holeAcked = at
	}
	t.ageHole(c, d, at)
}

// ageHole gives up a hole that can hardly be filled any more.
func (t *Table) ageHole(c *conn, d stream.Dir, at int64) {
	h := &c.halves[d]
	if len(h.queue) == 0 || h.closed {
		return
	}
	if h.holeAcked != 0 && at-h.holeAcked > ackedHoleWait || at-h.holeAt > holeWait {
		t.skipHole(c, d)
	}
}
