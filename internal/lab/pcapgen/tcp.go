package pcapgen

import (
	"cmp"
	"slices"
)

// dir is a direction of travel.
type dir int

const (
	toServer dir = iota
	toClient
)

// TCP flags.
const (
	flagFIN = 1
	flagSYN = 2
	flagPSH = 8
	flagACK = 16
)

// packet is one captured packet of a connection, before encoding.
type packet struct {
	at           int64 // ns since the Unix epoch
	dir          dir
	flags        byte
	seq, ack     uint32
	sackL, sackR uint32 // one SACK block, if they differ
	payload      []byte
}

// write is one send of an endpoint.
type write struct {
	at   int64
	data []byte
}

// segment is bytes off to end of a transfer; at is when they were first captured.
type segment struct {
	at       int64
	off, end int
}

// transfer plans the packets of one direction's writes and of their
// acknowledgements, and returns the segments in the order of their bytes.
func (g *generator) transfer(c *client, d dir, writes []write) []segment {
	data, segs := g.cut(c, writes)
	base := c.conn.next[d]
	c.conn.next[d] += uint32(len(data))
	g.sum.PayloadBytes += int64(len(data))

	s := sender{dir: d, base: base, ack: c.conn.next[1-d], data: data, mss: g.MSS}
	g.send(c, &s, segs)
	for i := range s.out {
		s.out[i].at = g.round(s.out[i].at)
	}
	slices.SortStableFunc(s.out, func(a, b packet) int { return cmp.Compare(a.at, b.at) })
	for i := range segs {
		segs[i].at = g.round(segs[i].at)
		c.now = max(c.now, segs[i].at)
	}
	c.queue = append(c.queue, s.out...)
	g.acknowledge(c, base, s.out)
	return segs
}

// cut joins the writes and cuts them into segments of at most MSS bytes; none
// holds bytes of two writes.
func (g *generator) cut(c *client, writes []write) (data []byte, segs []segment) {
	for _, w := range writes {
		at := w.at
		for n := len(w.data); n > 0; {
			k := min(n, g.MSS)
			off := len(data) + len(w.data) - n
			segs = append(segs, segment{at, off, off + k})
			n -= k
			at += 4_000 + int64(c.rng.Float64()*8_000)
		}
		data = append(data, w.data...)
	}
	return data, segs
}

// sender makes the data packets of one transfer.
type sender struct {
	dir       dir
	base, ack uint32
	data      []byte
	mss       int
	out       []packet
}

func (s *sender) packet(at int64, off, end int) {
	flags := byte(flagACK)
	if end-off < s.mss || end == len(s.data) {
		flags |= flagPSH
	}
	s.out = append(s.out, packet{at: at, dir: s.dir, flags: flags,
		seq: s.base + uint32(off), ack: s.ack, payload: s.data[off:end]})
}

// send sends each segment through the network that the Options describe, and
// moves the times of those that it delays.
func (g *generator) send(c *client, s *sender, segs []segment) {
	const retransmissionTimeout = 200_000_000 // ns, Linux's smallest
	for i := 0; i < len(segs); i++ {
		this := &segs[i]
		switch x := c.rng.Float64(); {
		case x < g.Lost:
			if g.retransmit(c, s, segs[i:]) {
				i++
			}
		case x < g.Lost+g.Dup:
			g.sum.Duplicated++
			s.packet(this.at, this.off, this.end)
			s.packet(this.at+max(c.conn.rtt, 1e6)+retransmissionTimeout, this.off, this.end)
		case x < g.Lost+g.Dup+g.Reorder && i+1 < len(segs) && segs[i+1].at-this.at < 200_000:
			g.sum.Swapped++
			next := &segs[i+1]
			this.at, next.at = next.at, this.at
			s.packet(this.at, this.off, this.end)
			s.packet(next.at, next.off, next.end)
			i++
		default:
			s.packet(this.at, this.off, this.end)
		}
	}
}

// retransmit sends the first of segs late. It says whether the second was lost
// with it, so that one larger segment carries both.
func (g *generator) retransmit(c *client, s *sender, segs []segment) bool {
	g.sum.Late++
	this := &segs[0]
	wait := max(c.conn.rtt+200_000_000, 210_000_000)
	if len(segs) > 1 && c.rng.IntN(4) == 0 && segs[1].end-this.off <= g.MSS && segs[1].at < this.at+wait {
		g.sum.Merged++
		this.at += wait
		segs[1].at = this.at
		s.packet(this.at, this.off, segs[1].end)
		return true
	}
	if len(segs) > 4 && segs[4].at-this.at < 100_000_000 {
		wait = segs[4].at - this.at + c.conn.rtt // fast retransmission
	}
	this.at += wait
	s.packet(this.at, this.off, this.end)
	return false
}

// acknowledge plans the receiver's acknowledgements of the data packets sent, in
// the order that the capture saw them.
func (g *generator) acknowledge(c *client, base uint32, sent []packet) {
	if len(sent) == 0 {
		return
	}
	back := 1 - sent[0].dir
	delay := int64(15_000)
	if back == toServer {
		delay = c.conn.rtt
	}
	var rcv receiver
	pending := 0
	for i := range sent {
		off := int(sent[i].seq - base)
		early := rcv.take(off, off+len(sent[i].payload))
		pending++
		if pending < g.AckEvery && !early && i+1 < len(sent) {
			continue
		}
		pending = 0
		p := packet{at: g.round(sent[i].at + delay), dir: back, flags: flagACK,
			seq: c.conn.next[back], ack: base + uint32(rcv.next)}
		if early {
			p.sackL, p.sackR = sent[i].seq, sent[i].seq+uint32(len(sent[i].payload))
		}
		c.queue = append(c.queue, p)
		c.now = max(c.now, p.at)
	}
}

// receiver knows which bytes of a transfer have come.
type receiver struct {
	next  int       // all bytes before it have come
	early []segment // what has come beyond
}

// take notes bytes off to end and says whether they came before their turn.
func (r *receiver) take(off, end int) bool {
	if off > r.next {
		r.early = append(r.early, segment{0, off, end})
		return true
	}
	r.next = max(r.next, end)
	for n := -1; n != len(r.early); {
		n = len(r.early)
		r.early = slices.DeleteFunc(r.early, func(s segment) bool {
			if s.off > r.next {
				return false
			}
			r.next = max(r.next, s.end)
			return true
		})
	}
	return false
}
