package pcapgen

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// client opens a connection, sends some requests, closes it, and begins again.
type client struct {
	id    int
	rng   *rand.Rand
	conn  *conn // the last one opened
	open  bool
	left  int   // requests left on the connection
	now   int64 // ns, when the last planned packet is seen
	queue []packet
	pos   int // packets of queue that are written
	done  bool
}

// conn is one connection. Pairs are indexed by direction.
type conn struct {
	id       int
	clientIP [4]byte
	port     uint16
	rtt      int64 // ns between the capture point and the client and back
	next     [2]uint32
	clock    [2]uint32 // offset of the TCP timestamps, ms
	lastTS   [2]uint32
	ipID     [2]uint16
	dialect  int
}

// step plans what the client does next and says whether there is anything.
func (g *generator) step(c *client) (bool, error) {
	c.queue, c.pos = c.queue[:0], 0
	full := g.full()
	switch {
	case c.done || full && !c.open:
		return false, nil
	case c.open && (full || c.left == 0):
		g.disconnect(c)
		c.done = full
	default:
		if !c.open {
			g.connect(c)
		}
		if err := g.request(c); err != nil {
			return false, err
		}
		c.left--
	}
	slices.SortStableFunc(c.queue, func(a, b packet) int { return cmp.Compare(a.at, b.at) })
	c.now = max(c.now, c.queue[len(c.queue)-1].at)
	return true, nil
}

func (g *generator) request(c *client) error {
	var r *Request
	if c.rng.Float64() < g.Plain {
		r = g.plain(c)
	} else {
		r = g.chat(c)
	}
	if g.Truth == nil {
		return nil
	}
	return g.Truth(r)
}

// connect plans the handshake of a new connection.
func (g *generator) connect(c *client) {
	r := c.rng
	k := &conn{
		id:       g.sum.Connections,
		clientIP: [4]byte{10, 1, byte(c.id >> 8), byte(c.id)},
		port:     uint16(20000 + (g.sum.Connections*7+c.id)%40000),
		rtt:      int64(3e5 * math.Exp(r.NormFloat64())),
		next:     [2]uint32{r.Uint32(), r.Uint32()},
		clock:    [2]uint32{r.Uint32() >> 1, r.Uint32() >> 1},
		dialect:  r.IntN(2),
	}
	g.sum.Connections++
	c.conn, c.open = k, true
	c.left = 1 + int(r.ExpFloat64()*max(g.RequestsPerConn-1, 0)+0.5)
	t := c.now + int64(r.Float64()*2e8)
	g.control(c, t, toServer, flagSYN)
	g.control(c, t+20_000, toClient, flagSYN|flagACK)
	c.now = t + k.rtt + 20_000
	g.control(c, c.now, toServer, flagACK)
}

// disconnect plans the end of the connection, the client first.
func (g *generator) disconnect(c *client) {
	t := c.now + int64(c.rng.Float64()*1e9)
	g.control(c, t, toServer, flagFIN|flagACK)
	g.control(c, t+30_000, toClient, flagFIN|flagACK)
	t += 30_000 + c.conn.rtt
	g.control(c, t, toServer, flagACK)
	c.now = t + 1e6
	c.open = false
}

// control plans a packet without data.
func (g *generator) control(c *client, t int64, d dir, flags byte) {
	k := c.conn
	p := packet{at: g.round(t), dir: d, flags: flags, seq: k.next[d]}
	if flags&flagACK != 0 {
		p.ack = k.next[1-d]
	}
	c.queue = append(c.queue, p)
	if flags&(flagSYN|flagFIN) != 0 {
		k.next[d]++
	}
}

// clientHeap orders clients by the time of their next packet.
type clientHeap []*client

func (h clientHeap) Len() int { return len(h) }
func (h clientHeap) Less(i, j int) bool {
	a, b := h[i].queue[h[i].pos].at, h[j].queue[h[j].pos].at
	return a < b || a == b && h[i].id < h[j].id
}
func (h clientHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push appends a client.
func (h *clientHeap) Push(x any) { *h = append(*h, x.(*client)) }

// Pop removes the last client.
func (h *clientHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	*h = (*h)[:last]
	return c
}
