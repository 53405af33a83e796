package pcapfile

import (
	"encoding/binary"
	"io"
	"math"
	"math/bits"

	"tokentrace/capture/internal/packet"
)

// Block types of pcapng (draft-ietf-opsawg-pcapng, section 4).
const (
	blockSection    = 0x0a0d0d0a
	blockInterface  = 1
	blockPacketOld  = 2
	blockSimple     = 3
	blockStatistics = 5
	blockPacket     = 6

	byteOrderMagic = 0x1a2b3c4d
)

// Options of the blocks that are read.
const (
	optEnd         = 0
	optTsresol     = 9
	optTsoffset    = 14
	optIfDrop      = 5
	optOsDrop      = 7
	maxInterfaces  = 1 << 16
	minBlock       = 12
	maxTsresolBits = 63
)

// unreadable is the link type of an interface that its block does not describe.
const unreadable = 0xffff

// iface is an interface of a pcapng section.
type iface struct {
	link    packet.LinkType
	snaplen uint32
	// Ticks per second are 10^exp, or 2^exp where binary.
	binary bool
	exp    uint8
	offset int64 // seconds to add
	drops  int64 // as the last statistics say
}

// nextNG reads blocks until one holds a packet.
func (p *Reader) nextNG(pkt *Packet) error {
	for {
		body, typ, err := p.nextBlock()
		if err != nil {
			return err
		}
		found := false
		switch typ {
		case blockSection:
			p.ifaces = p.ifaces[:0]
		case blockInterface:
			p.addInterface(body)
		case blockPacket, blockPacketOld:
			found = p.packetBlock(body, typ, pkt)
		case blockSimple:
			found = p.simpleBlock(body, pkt)
		case blockStatistics:
			p.statistics(body)
		default:
			p.stats.SkippedBlocks++
		}
		if found {
			return nil
		}
	}
}

// nextBlock returns the body of the next block, without its lengths.
func (p *Reader) nextBlock() (body []byte, typ uint32, err error) {
	h, err := p.peek(minBlock, "a block header")
	if err != nil {
		return nil, 0, err
	}
	typ = binary.LittleEndian.Uint32(h) // a section header reads the same in both orders
	if typ == blockSection {
		switch uint32(byteOrderMagic) {
		case binary.LittleEndian.Uint32(h[8:]):
			p.order = binary.LittleEndian
		case binary.BigEndian.Uint32(h[8:]):
			p.order = binary.BigEndian
		default:
			return nil, 0, p.damage("a section header has no byte-order magic")
		}
	} else {
		typ = p.order.Uint32(h)
	}
	n := int(p.order.Uint32(h[4:]))
	if n < minBlock || n%4 != 0 || n > maxPacket {
		return nil, 0, p.damage("a block of type %d claims %d bytes: the file is damaged from here", typ, n)
	}
	b, err := p.peek(n, "a block")
	if err == io.EOF {
		err = p.damage("the file is cut in a block")
	}
	if err != nil {
		return nil, 0, err
	}
	p.src.advance(n)
	return b[8 : n-4], typ, nil
}

func (p *Reader) addInterface(body []byte) {
	if len(p.ifaces) >= maxInterfaces {
		p.stats.BadBlocks++
		return
	}
	if len(body) < 8 { // it counts all the same: packets name interfaces by number
		p.stats.BadBlocks++
		p.ifaces = append(p.ifaces, iface{link: unreadable, exp: 6})
		return
	}
	i := iface{link: packet.LinkType(p.order.Uint16(body)), snaplen: p.order.Uint32(body[4:]), exp: 6}
	p.options(body[8:], func(code uint16, v []byte) {
		switch {
		case code == optTsresol && len(v) >= 1:
			i.binary, i.exp = v[0]&0x80 != 0, v[0]&0x7f
		case code == optTsoffset && len(v) >= 8:
			i.offset = int64(p.order.Uint64(v))
		}
	})
	p.ifaces = append(p.ifaces, i)
	p.stats.Precision = max(p.stats.Precision, i.precision())
}

// packetBlock reads an enhanced packet block, or the obsolete packet block, which
// has a drop count in the upper half of the interface number.
func (p *Reader) packetBlock(body []byte, typ uint32, pkt *Packet) bool {
	const head = 20
	if len(body) < head {
		p.stats.BadBlocks++
		return false
	}
	id := int(p.order.Uint32(body))
	if typ == blockPacketOld {
		id = int(p.order.Uint16(body))
	}
	captured, wire := p.order.Uint32(body[12:]), p.order.Uint32(body[16:])
	if id >= len(p.ifaces) || uint64(captured) > uint64(len(body)-head) {
		p.stats.BadBlocks++
		return false
	}
	ticks := uint64(p.order.Uint32(body[4:]))<<32 | uint64(p.order.Uint32(body[8:]))
	i := &p.ifaces[id]
	at, ok := i.time(ticks)
	*pkt = Packet{
		At: at, Timed: ok, Data: body[head : head+captured : head+captured],
		WireLen: max(int(min(wire, maxPacket)), int(captured)), Link: i.link,
	}
	return true
}

// simpleBlock reads a simple packet block: it has no time and belongs to interface 0.
func (p *Reader) simpleBlock(body []byte, pkt *Packet) bool {
	if len(body) < 4 || len(p.ifaces) == 0 {
		p.stats.BadBlocks++
		return false
	}
	wire := p.order.Uint32(body)
	captured := min(wire, uint32(len(body)-4))
	if s := p.ifaces[0].snaplen; s > 0 {
		captured = min(captured, s)
	}
	*pkt = Packet{Data: body[4 : 4+captured], WireLen: int(min(wire, maxPacket)), Link: p.ifaces[0].link}
	return true
}

// statistics takes the drops that the capturing system reports: totals of an
// interface since the start of the capture, of which the last word counts.
func (p *Reader) statistics(body []byte) {
	p.stats.SkippedBlocks++
	if len(body) < 12 {
		p.stats.BadBlocks++
		return
	}
	id := p.order.Uint32(body)
	if uint64(id) >= uint64(len(p.ifaces)) {
		p.stats.BadBlocks++
		return
	}
	var drops int64
	p.options(body[12:], func(code uint16, v []byte) {
		if (code == optIfDrop || code == optOsDrop) && len(v) >= 8 {
			if n := p.order.Uint64(v); n <= math.MaxInt32 {
				drops += int64(n)
			}
		}
	})
	p.stats.KernelDrops += drops - p.ifaces[id].drops
	p.ifaces[id].drops = drops
}

// options calls f for each option of a block.
func (p *Reader) options(b []byte, f func(code uint16, value []byte)) {
	for len(b) >= 4 {
		code, n := p.order.Uint16(b), int(p.order.Uint16(b[2:]))
		if code == optEnd || 4+n > len(b) {
			return
		}
		f(code, b[4:4+n])
		b = b[min(4+(n+3)&^3, len(b)):]
	}
}

// time turns ticks into ns since the Unix epoch.
func (i *iface) time(ticks uint64) (ns int64, ok bool) {
	if !i.binary {
		switch i.exp { // the two that occur, without a division
		case 6:
			return i.shift(ticks/1_000_000, ticks%1_000_000*1000)
		case 9:
			return i.shift(ticks/1_000_000_000, ticks%1_000_000_000)
		}
	}
	if i.exp > 19 && !i.binary || i.exp > maxTsresolBits {
		return 0, false
	}
	per := i.ticksPerSecond()
	hi, lo := bits.Mul64(ticks%per, 1_000_000_000)
	frac, _ := bits.Div64(hi, lo, per)
	return i.shift(ticks/per, frac)
}

func (i *iface) shift(sec, ns uint64) (int64, bool) {
	if sec > math.MaxInt64 {
		return 0, false
	}
	s := int64(sec) + i.offset
	if s < 0 {
		return 0, false
	}
	return toNs(uint64(s), ns, 1)
}

func (i *iface) ticksPerSecond() uint64 {
	if i.binary {
		return 1 << min(i.exp, maxTsresolBits)
	}
	per := uint64(1)
	for range min(i.exp, 19) {
		per *= 10
	}
	return per
}

// precision is the length of a tick in ns, at least 1.
func (i *iface) precision() int64 {
	return int64(max(1, 1_000_000_000/i.ticksPerSecond()))
}
