package tcp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokentrace/capture/internal/packet"
	"tokentrace/capture/internal/stream"
	"tokentrace/schema"
)

// recorder writes down what a Table hands to one connection.
type recorder struct {
	lines []string
	dated [2][]dated
	lost  [2]int64
	tuple stream.Tuple
}

// dated is a delivered byte with its times, or, with b < 0, a hole.
type dated struct {
	b        int
	at, seen int64
}

func (r *recorder) Data(c *stream.Chunk) {
	r.lost[c.Dir] += c.Gap
	if c.Gap > 0 {
		r.lines = append(r.lines, fmt.Sprintf("%s gap %d", arrow(c.Dir), c.Gap))
	}
	if len(c.Data) > 0 {
		r.lines = append(r.lines, fmt.Sprintf("%s %s @%d", arrow(c.Dir), c.Data[:min(len(c.Data), maxDated)], c.At/second))
	}
	if len(r.dated[c.Dir]) > maxDated {
		return
	}
	for range min(c.Gap, maxDated) {
		r.dated[c.Dir] = append(r.dated[c.Dir], dated{b: -1})
	}
	for _, b := range c.Data {
		r.dated[c.Dir] = append(r.dated[c.Dir], dated{int(b), c.At, c.Seen})
	}
}

func (r *recorder) Close(d stream.Dir, at int64, why stream.CloseReason) {
	r.lines = append(r.lines, fmt.Sprintf("%s %s @%d", arrow(d), [...]string{"fin", "rst", "peer rst", "idle", "reuse", "end"}[why], at/second))
}

// maxDated bounds what a recorder dates byte by byte.
const maxDated = 1 << 10

func arrow(d stream.Dir) string { return [...]string{">", "<"}[d] }

// conversation feeds segments between two hosts to a Table.
type conversation struct {
	*Table
	handlers []*recorder
	facts    []stream.Facts
}

func newConversation() *conversation {
	c := &conversation{}
	c.Table = New(func(t stream.Tuple, _ int64) stream.Handler {
		c.handlers = append(c.handlers, &recorder{tuple: t})
		return c.handlers[len(c.handlers)-1]
	}, func(_ stream.Handler, f stream.Facts) { c.facts = append(c.facts, f) })
	return c
}

// segment feeds a segment at a time in seconds. dir ">" is from the client. Sequence
// numbers of both sides begin at 1000; ack 0 is none.
func (c *conversation) segment(at int64, dir string, seq uint32, flags uint8, payload string, ack uint32) {
	s := packet.Segment{Src: packet.Addr{15: 1}, Dst: packet.Addr{15: 2}, SrcPort: 40000, DstPort: 80, Seq: 1000 + seq, Flags: flags, Window: 100, Payload: []byte(payload), PayloadLen: len(payload)}
	if dir == "<" {
		s.Src, s.Dst, s.SrcPort, s.DstPort = s.Dst, s.Src, s.DstPort, s.SrcPort
	}
	if ack > 0 {
		s.Flags |= packet.FlagACK
		s.Ack = 1000 + ack
	}
	c.Segment(at*second, &s)
}

const (
	syn = packet.FlagSYN
	fin = packet.FlagFIN
	rst = packet.FlagRST
)

func (c *conversation) handshake() {
	c.segment(0, ">", 0, syn, "", 0)
	c.segment(1, "<", 0, syn, "", 1)
	c.segment(2, ">", 1, 0, "", 1)
}

func TestOrder(t *testing.T) {
	type call func(c *conversation)
	seg := func(at int64, dir string, seq uint32, flags uint8, payload string) call {
		return func(c *conversation) { c.segment(at, dir, seq, flags, payload, 0) }
	}
	ack := func(at int64, dir string, ack uint32) call {
		return func(c *conversation) { c.segment(at, dir, 1, 0, "", ack) }
	}
	tests := []struct {
		name  string
		calls []call
		want  string
		facts func(f stream.Facts) bool
	}{
		{"in order", []call{seg(3, ">", 1, 0, "ab"), seg(4, ">", 3, 0, "cd")}, "> ab @3, > cd @4, > end @4, < end @4", nil},
		{"swapped: both at the time of the later", []call{seg(3, ">", 3, 0, "cd"), seg(5, ">", 1, 0, "ab")}, "> ab @5, > cd @5, > end @5, < end @5", func(f stream.Facts) bool { return f.OutOfOrder == 1 }},
		{"repeated", []call{seg(3, ">", 1, 0, "ab"), seg(5, ">", 1, 0, "ab"), seg(6, ">", 3, 0, "c")}, "> ab @3, > c @6, > end @6, < end @6", func(f stream.Facts) bool { return f.Retransmitted == 1 }},
		{"overlap: the first seen counts", []call{seg(3, ">", 1, 0, "abc"), seg(5, ">", 2, 0, "XYd")}, "> abc @3, > d @5, > end @5, < end @5", nil},
		{"overlap with what waits", []call{seg(3, ">", 3, 0, "cd"), seg(4, ">", 1, 0, "abXYef")}, "> ab @4, > cd @4, > ef @4, > end @4, < end @4", nil},
		{"a hole, acknowledged", []call{seg(3, "<", 1, 0, "ab"), seg(4, "<", 5, 0, "ef"), ack(5, ">", 7), seg(7, "<", 7, 0, "gh")}, "< ab @3, < gap 2, < ef @4, < gh @7, > end @7, < end @7", func(f stream.Facts) bool { return f.Lost == 2 }},
		{"a hole, filled late", []call{seg(3, "<", 1, 0, "ab"), seg(4, "<", 5, 0, "ef"), ack(5, ">", 7), seg(5, "<", 3, 0, "cd")}, "< ab @3, < cd @5, < ef @5, > end @5, < end @5", func(f stream.Facts) bool { return f.Lost == 0 }},
		{"a hole that nobody acknowledged", []call{seg(3, "<", 1, 0, "ab"), seg(4, "<", 5, 0, "ef"), seg(20, "<", 7, 0, "gh"), seg(40, "<", 9, 0, "ij")}, "< ab @3, < gap 2, < ef @4, < gh @20, < ij @40, > end @40, < end @40", nil},
		{"a hole at the end", []call{seg(3, "<", 1, 0, "ab"), seg(4, "<", 5, 0, "ef")}, "< ab @3, > end @4, < gap 2, < ef @4, < end @4", nil},
		{"response captured before its request", []call{
			func(c *conversation) { c.segment(3, "<", 1, 0, "resp", 5) }, seg(4, ">", 1, 0, "requ"),
		}, "> requ @4, < resp @3, > end @4, < end @4", nil},
		{"request lost, responses go on", []call{
			func(c *conversation) { c.segment(3, "<", 1, 0, "r1", 5) }, func(c *conversation) { c.segment(4, ">", 5, 0, "q2", 3) },
			func(c *conversation) { c.segment(5, "<", 3, 0, "r2", 7) },
		}, "> gap 4, < r1 @3, > q2 @4, < r2 @5, > end @5, < end @5", nil},
		{"response lost, requests go on", []call{
			func(c *conversation) { c.segment(3, ">", 1, 0, "q1", 1) }, func(c *conversation) { c.segment(4, ">", 3, 0, "q2", 9) },
			func(c *conversation) { c.segment(6, "<", 9, 0, "r2", 5) },
		}, "> q1 @3, < gap 8, > q2 @4, < r2 @6, > end @6, < end @6", nil},
		{"each acknowledges what the other never sent", []call{
			func(c *conversation) { c.segment(3, ">", 1, 0, "ab", 50) }, func(c *conversation) { c.segment(4, "<", 1, 0, "cd", 50) },
		}, "> ab @3, > end @4, > gap 47, < cd @4, < end @4", nil},
		{"fin", []call{seg(3, ">", 1, fin, "ab"), seg(4, "<", 1, fin, "")}, "> ab @3, > fin @3, < fin @4", func(f stream.Facts) bool { return f.Close == "fin" && f.ClosedBy == "client" }},
		{"fin before its data", []call{seg(3, ">", 3, fin, ""), seg(4, ">", 1, 0, "ab"), seg(5, "<", 1, fin, "")}, "> ab @4, > fin @4, < fin @5", nil},
		{"data behind the fin", []call{seg(3, ">", 1, fin, "ab"), seg(4, ">", 3, 0, "cd")}, "> ab @3, > fin @3, < end @4", nil},
		{"rst; data crosses it", []call{seg(3, "<", 1, 0, "ab"), seg(4, ">", 1, rst, ""), seg(5, "<", 3, 0, "cd")}, "< ab @3, > rst @4, < cd @5, < peer rst @5", func(f stream.Facts) bool { return f.Close == "rst" && f.ClosedBy == "client" }},
		{"keep-alive probe", []call{seg(3, ">", 1, 0, "ab"), seg(9, ">", 2, 0, "b"), seg(9, ">", 2, 0, "")}, "> ab @3, > end @9, < end @9", func(f stream.Facts) bool { return f.Retransmitted == 0 }},
		{"stray sequence number", []call{seg(3, ">", 1, 0, "ab"), seg(4, ">", 1<<30, 0, "xx")}, "> ab @3, > end @4, < end @4", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newConversation()
			c.handshake()
			for _, call := range tt.calls {
				call(c)
			}
			c.Finish()
			if got := strings.Join(c.handlers[0].lines, ", "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if tt.facts != nil && !tt.facts(c.facts[0]) {
				t.Errorf("facts: %+v", c.facts[0])
			}
			checkCounts(t, c.Counts())
		})
	}
}

func checkCounts(t *testing.T, n Counts) {
	t.Helper()
	if sum := n.Delivered + n.Duplicate + n.AfterClose + n.OutOfWindow; sum != n.PayloadBytes {
		t.Errorf("%d payload bytes, %d accounted for: %+v", n.PayloadBytes, sum, n)
	}
}

func TestHandshake(t *testing.T) {
	c := newConversation()
	c.handshake()
	c.Finish()
	if f := c.facts[0]; f.RTT != schema.Some(2*second) || !f.SYN || f.Packets != 3 {
		t.Errorf("facts: %+v", f)
	}
	c = newConversation()
	c.segment(0, ">", 0, syn, "", 0)
	c.handshake() // the first SYN was repeated: which one was answered is not known
	c.Finish()
	if f := c.facts[0]; f.RTT.OK || len(c.facts) != 1 {
		t.Errorf("a repeated handshake is timed: %+v", c.facts)
	}
}

func TestJoinedMidway(t *testing.T) {
	c := newConversation()
	c.segment(0, "<", 500, 0, "cd", 0)
	c.segment(1, ">", 7, 0, "ab", 502)
	c.Finish()
	h := c.handlers[0]
	if want := "< cd @0, > ab @1, > end @1, < end @1"; strings.Join(h.lines, ", ") != want {
		t.Errorf("got %v", h.lines)
	}
	if !h.tuple.Guessed || h.tuple.Server.Port() != 80 {
		t.Errorf("tuple %+v", h.tuple)
	}
}

func TestPortsReused(t *testing.T) {
	c := newConversation()
	c.handshake()
	c.segment(3, ">", 1, fin, "ab", 0)
	c.segment(4, "<", 1, fin, "", 0)
	c.segment(5, ">", 1, 0, "ab", 0) // a late repeat
	c.segment(6, ">", 5000, syn, "", 0)
	c.segment(7, ">", 5001, 0, "xy", 0)
	c.segment(8, ">", 9000, syn, "", 0) // and again, without an end
	c.Finish()
	if len(c.handlers) != 3 || len(c.facts) != 3 {
		t.Fatalf("%d connections, %d ended", len(c.handlers), len(c.facts))
	}
	if want := "> xy @7, > reuse @7, < reuse @7"; strings.Join(c.handlers[1].lines, ", ") != want {
		t.Errorf("got %v", c.handlers[1].lines)
	}
	if n := c.Counts(); n.Duplicate != 2 || n.AfterClose != 0 {
		t.Errorf("counts: %+v", n)
	}
	checkCounts(t, c.Counts())
}

func TestZeroWindow(t *testing.T) {
	c := newConversation()
	c.handshake()
	for _, w := range []struct {
		at     int64
		window uint16
	}{{10, 0}, {12, 0}, {15, 5}, {20, 0}} {
		c.Segment(w.at*second, &packet.Segment{Src: packet.Addr{15: 1}, Dst: packet.Addr{15: 2}, SrcPort: 40000, DstPort: 80, Seq: 1001, Flags: packet.FlagACK, Ack: 1001, Window: w.window})
	}
	c.segment(23, "<", 1, 0, "x", 0)
	c.Finish()
	if got := c.facts[0].ZeroWindow; got != 8*second {
		t.Errorf("zero window for %d s, want 8", got/second)
	}
}

// TestSnapLength checks that bytes cut by the snap length become a gap.
func TestSnapLength(t *testing.T) {
	c := newConversation()
	c.handshake()
	c.Segment(3*second, &packet.Segment{Src: packet.Addr{15: 1}, Dst: packet.Addr{15: 2}, SrcPort: 40000, DstPort: 80, Seq: 1001, Payload: []byte("ab"), PayloadLen: 5})
	c.segment(4, ">", 6, 0, "fg", 0)
	c.Finish()
	if want := "> ab @3, > gap 3, > fg @4, > end @4, < end @4"; strings.Join(c.handlers[0].lines, ", ") != want {
		t.Errorf("got %v", c.handlers[0].lines)
	}
}

// TestIdle checks that connections without packets are forgotten.
func TestIdle(t *testing.T) {
	c := newConversation()
	c.handshake()
	c.segment(3, ">", 1, 0, "ab", 0)
	other := packet.Segment{Src: packet.Addr{15: 9}, Dst: packet.Addr{15: 2}, SrcPort: 1, DstPort: 80, Flags: packet.FlagACK}
	for i := range int64(2 * sweepPackets) {
		c.Segment((3000+i)*second, &other)
	}
	if want := "> ab @3, > idle @3, < idle @3"; strings.Join(c.handlers[0].lines, ", ") != want {
		t.Errorf("got %v", c.handlers[0].lines)
	}
	if len(c.flows) != 2 {
		t.Errorf("%d flows are kept, want the 2 of the live connection", len(c.flows))
	}
}

// TestBoundedQueue checks that what waits behind a hole has a limit.
func TestBoundedQueue(t *testing.T) {
	c := newConversation()
	c.handshake()
	big := strings.Repeat("x", 60000)
	for i := range uint32(400) {
		c.segment(3, ">", 100+i*60000, 0, big, 0)
	}
	if q := c.queued; q > maxQueuedHalf+60000 {
		t.Errorf("%d bytes wait", q)
	}
	c.Finish()
	checkCounts(t, c.Counts())
	if n := c.Counts(); n.Delivered != 400*60000 || n.Lost != 99 || c.queued != 0 {
		t.Errorf("counts: %+v, %d bytes wait", n, c.queued)
	}
}

// TestManySmallSegments checks that segments without captured payload count too, and
// that a long queue is not slow: this takes minutes where it is.
func TestManySmallSegments(t *testing.T) {
	c := newConversation()
	c.handshake()
	for i := range uint32(300_000) {
		c.Segment(3*second, &packet.Segment{Src: packet.Addr{15: 1}, Dst: packet.Addr{15: 2}, SrcPort: 40000, DstPort: 80, Seq: 1010 + 10*i, PayloadLen: 10})
		if c.queued > maxQueuedHalf+pendingCost {
			t.Fatalf("%d bytes wait after %d segments", c.queued, i)
		}
	}
	c.Finish()
	if c.queued != 0 {
		t.Errorf("%d bytes wait", c.queued)
	}
}

// TestStrayTime checks that one packet with a wrong clock ends no connection.
func TestStrayTime(t *testing.T) {
	c := newConversation()
	c.handshake()
	other := packet.Segment{Src: packet.Addr{15: 9}, Dst: packet.Addr{15: 2}, SrcPort: 1, DstPort: 80, Flags: packet.FlagACK}
	for i := range int64(3 * sweepPackets) {
		at := (3 + i/100) * second
		if i%500 == 7 {
			at += 1e6 * second
		}
		c.Segment(at, &other)
	}
	c.segment(40, ">", 1, 0, "ab", 0)
	c.Finish()
	if want := "> ab @40, > end @40, < end @40"; strings.Join(c.handlers[0].lines, ", ") != want {
		t.Errorf("got %v", c.handlers[0].lines)
	}
}

// TestFlood checks that a flood of connections is followed in bounded memory.
func TestFlood(t *testing.T) {
	table := New(func(stream.Tuple, int64) stream.Handler { return discard{} }, func(stream.Handler, stream.Facts) {})
	for i := range maxConnections + 1000 {
		s := packet.Segment{Dst: packet.Addr{15: 2}, DstPort: 80, Flags: syn}
		s.Src[0], s.Src[1], s.Src[2] = byte(i), byte(i>>8), byte(i>>16)
		table.Segment(int64(i), &s)
	}
	if len(table.flows) != 2*maxConnections || table.Counts().Evicted != 1000 {
		t.Errorf("%d flows, %d evicted", len(table.flows), table.Counts().Evicted)
	}
}

// sent is a segment of one direction as the network carried it.
type sent struct {
	off, n int
	at     int64
}

// model says by byte what a Table must deliver: the first sight of each byte, and
// the running maximum of first sights.
func model(length int, segments []sent) []dated {
	out := make([]dated, length)
	for i := range out {
		out[i].b = -1
	}
	for _, s := range segments {
		for i := s.off; i < s.off+s.n; i++ {
			if out[i].b < 0 {
				out[i] = dated{int(byteAt(i)), 0, s.at}
			}
		}
	}
	high := int64(0)
	for i := range out {
		if out[i].b >= 0 {
			high = max(high, out[i].seen)
			out[i].at = high
		}
	}
	return out
}

func byteAt(i int) byte { return byte(i*7 + i>>8) }

// TestAgainstModel cuts streams at random, loses, repeats, overlaps and reorders
// segments, and compares every byte and its times with the model.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		length := 1 + rng.IntN(600)
		loss := rng.IntN(3) == 0
		segments := randomSegments(rng, length, loss)
		c := newConversation()
		base := rng.Uint32() // sequence numbers wrap in some runs
		feed := func(s sent, flags uint8) {
			payload := make([]byte, s.n)
			for i := range payload {
				payload[i] = byteAt(s.off + i)
			}
			c.Segment(s.at, &packet.Segment{Src: packet.Addr{15: 1}, Dst: packet.Addr{15: 2}, SrcPort: 40000, DstPort: 80,
				Seq: base + uint32(s.off), Flags: flags, Payload: payload, PayloadLen: s.n})
		}
		feed(sent{off: -1, at: 1}, syn)
		for _, s := range segments {
			feed(s, 0)
		}
		c.Finish()
		want := model(length, segments)
		for len(want) > 0 && want[len(want)-1].b < 0 { // nothing tells of a hole at the end
			want = want[:len(want)-1]
		}
		if d := cmp.Diff(want, c.handlers[0].dated[stream.ToServer], cmp.AllowUnexported(dated{})); d != "" {
			t.Fatalf("seed %d: (-want +got):\n%s\nsegments %v", seed, d, segments)
		}
		checkCounts(t, c.Counts())
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func randomSegments(rng *rand.Rand, length int, loss bool) (segments []sent) {
	for off := 0; off < length; {
		n := 1 + rng.IntN(min(60, length-off))
		if !loss || rng.IntN(10) > 0 {
			segments = append(segments, sent{off: off, n: n})
		}
		if rng.IntN(5) == 0 { // a repeat, cut differently
			from := max(0, off-rng.IntN(80))
			segments = append(segments, sent{off: from, n: 1 + rng.IntN(min(120, length-from))})
		}
		off += n
	}
	for range rng.IntN(1 + len(segments)/2) {
		i := rng.IntN(len(segments))
		j := min(len(segments)-1, i+rng.IntN(6))
		segments[i], segments[j] = segments[j], segments[i]
	}
	for i := range segments {
		segments[i].at = int64(i+2) * 1000
	}
	if loss { // what one segment lost another may bring
		segments = slices.DeleteFunc(segments, func(sent) bool { return rng.IntN(20) == 0 })
	}
	return segments
}

// FuzzTable feeds segments with arbitrary numbers, flags and times.
func FuzzTable(f *testing.F) {
	f.Add([]byte("\x00\x02\x00\x00\x05abcde\x01\x12\x00\x00\x01xyzuv"))
	f.Fuzz(func(t *testing.T, script []byte) {
		c := newConversation()
		at := int64(0)
		for len(script) >= 5 {
			op, flags, seq, n := script[0], script[1], uint32(script[2])<<8|uint32(script[3]), int(script[4]%32)
			script = script[5:]
			n = min(n, len(script))
			s := packet.Segment{Src: packet.Addr{15: 1}, Dst: packet.Addr{15: 2}, SrcPort: 40000, DstPort: 80 + uint16(op>>6),
				Seq: seq * 257, Ack: seq, Flags: flags, Payload: script[:n], PayloadLen: n + int(op>>3&1)*3}
			if op&1 == 1 {
				s.Src, s.Dst, s.SrcPort, s.DstPort = s.Dst, s.Src, s.DstPort, s.SrcPort
			}
			at += int64(op>>1&3) * second / 2
			c.Segment(at, &s)
			script = script[n:]
		}
		c.Finish()
		checkCounts(t, c.Counts())
		if c.queued != 0 || len(c.flows) != 0 || len(c.facts) != len(c.handlers) {
			t.Errorf("%d bytes wait, %d flows, %d of %d ended", c.queued, len(c.flows), len(c.facts), len(c.handlers))
		}
	})
}

type discard struct{}

func (discard) Data(*stream.Chunk)                          {}
func (discard) Close(stream.Dir, int64, stream.CloseReason) {}

func BenchmarkSegment(b *testing.B) {
	for name, swapped := range map[string]bool{"in-order": false, "swapped": true} {
		b.Run(name, func(b *testing.B) {
			table := New(func(stream.Tuple, int64) stream.Handler { return discard{} }, func(stream.Handler, stream.Facts) {})
			segments := make([]packet.Segment, 64)
			payload := make([]byte, 260)
			for i := range segments {
				segments[i] = packet.Segment{Src: packet.Addr{15: 1}, Dst: packet.Addr{15: 2}, SrcPort: uint16(i), DstPort: 80, Flags: packet.FlagACK, Payload: payload, PayloadLen: len(payload)}
			}
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				s := &segments[i%64]
				n := uint32(i / 64)
				if swapped {
					n ^= 1
				}
				s.Seq = n * 260
				table.Segment(int64(i), s)
				i++
			}
		})
	}
}
