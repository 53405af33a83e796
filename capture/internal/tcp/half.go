package tcp

import (
	"slices"
	"sort"

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

	queue  []*pending // what cannot be delivered yet, by offset, without overlaps
	queued int        // what it costs
	holeAt int64      // when something first waited for the next byte

	acked   int64 // offset up to which the receiver is known to have everything
	ackedAt int64 // when it was first known to have the next byte; 0 is not
}

// pending is a segment, or what is new in one, that waits: for bytes before it, or for
// bytes of the other direction that its sender had received.
type pending struct {
	off  int64
	n    int    // length on the wire
	data []byte // what was captured of it
	seen int64
	fin  bool   // the direction ends after it
	acks uint32 // what its sender had received of the other direction
	ack  bool   // whether it says so
}

func (p *pending) end() int64 { return p.off + int64(p.n) }

// cost is what p takes while it waits, in bytes.
func (p *pending) cost() int { return len(p.data) + pendingCost }

const pendingCost = 256

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
	p := pending{
		off: h.off + int64(diff), n: n, data: s.Payload, seen: at, fin: fin,
		acks: s.Ack, ack: s.Flags&packet.FlagACK != 0,
	}
	if diff == 0 && len(h.queue) == 0 && !c.early(d, &p) { // by far the most
		t.accept(c, d, &p)
		return
	}
	t.insert(c, d, p)
}

// early reports whether p acknowledges bytes of the other direction that have not been
// delivered: the capture has them later, or lost them.
func (c *conn) early(d stream.Dir, p *pending) bool {
	o := &c.halves[d.Other()]
	return p.ack && o.started && !o.closed && int32(p.acks-o.next) > 0
}

// waits reports whether anything of the connection waits.
func (c *conn) waits() bool {
	return len(c.halves[0].queue) > 0 || len(c.halves[1].queue) > 0
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
	h.ackedAt = 0
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
	if len(data) > 0 {
		h.segment++
	}
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
	}
	if len(h.queue) == 0 {
		h.holeAt = p.seen
	}
	t.enqueue(h, p)
	if h.queued > maxQueuedHalf || t.queued > maxQueuedTable {
		t.giveUp(c, d)
	}
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
	rest := *p
	rest.off, rest.n, rest.data = off, p.n-k, p.data[min(k, len(p.data)):]
	p.n, p.data, p.fin = k, p.data[:min(k, len(p.data))], false
	return rest
}

// enqueue keeps the parts of p that do not wait yet.
func (t *Table) enqueue(h *half, p pending) {
	i := sort.Search(len(h.queue), func(i int) bool { return h.queue[i].end() > p.off })
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
	h.queue = slices.Insert(h.queue, i, &p)
	h.queued += p.cost()
	t.queued += p.cost()
}

// drain delivers what waits no longer, in both directions. Where each waits for the
// other, the capture contradicts itself; what goes to the server comes first.
func (t *Table) drain(c *conn) {
	for {
		switch toServer, toClient := c.head(stream.ToServer), c.head(stream.ToClient); {
		case toServer == ready, toServer == blocked && toClient == blocked:
			t.deliverNext(c, stream.ToServer)
		case toClient == ready:
			t.deliverNext(c, stream.ToClient)
		default:
			return
		}
	}
}

// readiness says what the head of a queue waits for.
type readiness uint8

const (
	absent  readiness = iota // there is none, or it waits for bytes before it
	blocked                  // bytes of the other direction
	ready                    // nothing
)

func (c *conn) head(d stream.Dir) readiness {
	h := &c.halves[d]
	switch {
	case h.closed || len(h.queue) == 0 || h.queue[0].off != h.off:
		return absent
	case c.early(d, h.queue[0]):
		return blocked
	default:
		return ready
	}
}

// deliverNext delivers the head of the queue.
func (t *Table) deliverNext(c *conn, d stream.Dir) {
	h := &c.halves[d]
	p := h.queue[0]
	h.queue = h.queue[1:]
	h.queued -= p.cost()
	t.queued -= p.cost()
	if len(h.queue) == 0 {
		h.queue = nil
	} else {
		h.holeAt = h.queue[0].seen
	}
	t.accept(c, d, p)
}

// skip declares the bytes before off lost and says so at once: what is delivered next
// in the other direction may depend on it.
func (t *Table) skip(c *conn, d stream.Dir, off int64) {
	h := &c.halves[d]
	if hole := off - h.off; hole > 0 {
		h.lose(t, c, hole)
		h.off += hole
		h.next += uint32(hole)
		h.ackedAt = 0
		t.deliver(c, d, nil, 0, h.high)
	}
}

// acknowledge notes what the receiver of the direction has.
func (h *half) acknowledge(ack uint32, at int64) {
	if !h.started { // joined midway: the first byte to come is known before it comes
		h.started, h.next = true, ack
		return
	}
	ahead := int32(ack - h.next)
	if ahead <= 0 || ahead > maxAhead || h.closed {
		return
	}
	h.acked = max(h.acked, h.off+int64(ahead))
	if h.ackedAt == 0 {
		h.ackedAt = at
	}
}

// age gives up bytes that can hardly come any more.
func (t *Table) age(c *conn, at int64) {
	for d := range c.halves {
		h := &c.halves[d]
		late := h.ackedAt != 0 && at-h.ackedAt > ackedHoleWait
		if h.closed || !c.waits() || !late && (len(h.queue) == 0 || at-h.holeAt <= holeWait) {
			continue
		}
		t.giveUp(c, stream.Dir(d))
	}
}

// giveUp declares lost what a direction waits for: bytes before its queue, or bytes of
// the other direction, or, where it has no queue, bytes that its receiver has.
func (t *Table) giveUp(c *conn, d stream.Dir) {
	h := &c.halves[d]
	switch {
	case len(h.queue) == 0:
		t.skip(c, d, h.acked)
	case h.queue[0].off > h.off:
		t.skip(c, d, h.queue[0].off)
	default:
		o := &c.halves[d.Other()]
		to := o.off + int64(int32(h.queue[0].acks-o.next))
		if len(o.queue) > 0 {
			to = min(to, o.queue[0].off)
		}
		t.skip(c, d.Other(), to)
	}
	t.drain(c)
}
