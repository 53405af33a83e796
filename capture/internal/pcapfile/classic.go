package pcapfile

import (
	"encoding/binary"
	"math/bits"

	"tokentrace/capture/internal/packet"
)

// Magic numbers of classic pcap: microseconds and nanoseconds
// (draft-ietf-opsawg-pcap, section 4).
const (
	magicMicro = 0xa1b2c3d4
	magicNano  = 0xa1b23c4d
)

const (
	classicHeaderLen = 24
	classicRecordLen = 16
)

type classic struct {
	big    bool // big-endian
	link   packet.LinkType
	fracNs int64
}

func (p *Reader) classicMagic(magic []byte) bool {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		switch order.Uint32(magic) {
		case magicMicro:
			p.order, p.pcap.fracNs, p.pcap.big = order, 1000, order == binary.BigEndian
			return true
		case magicNano:
			p.order, p.pcap.fracNs, p.pcap.big = order, 1, order == binary.BigEndian
			return true
		}
	}
	return false
}

// uint32 reads in the byte order of the file. It is called for every packet, where a
// binary.ByteOrder costs a call.
func (c *classic) uint32(b []byte) uint32 {
	v := binary.LittleEndian.Uint32(b)
	if c.big {
		return bits.ReverseBytes32(v)
	}
	return v
}

func (p *Reader) readClassicHeader() error {
	h, err := p.peek(classicHeaderLen, "its header")
	if err != nil {
		return err
	}
	// The upper bits of the link type tell the length of a frame check sequence.
	p.pcap.link = packet.LinkType(p.order.Uint32(h[20:]) & 0xffff)
	p.stats.Precision = p.pcap.fracNs
	p.src.advance(classicHeaderLen)
	return nil
}

func (p *Reader) nextClassic(pkt *Packet) error {
	h, err := p.peek(classicRecordLen, "a packet header")
	if err != nil {
		return err
	}
	sec, frac := p.pcap.uint32(h), p.pcap.uint32(h[4:])
	captured, wire := p.pcap.uint32(h[8:]), p.pcap.uint32(h[12:])
	if captured > maxPacket {
		return p.damage("packet %d claims %d bytes: the file is damaged from here", p.stats.Packets+1, captured)
	}
	n := classicRecordLen + int(captured)
	b, err := p.peek(n, "a packet")
	if err != nil {
		return err
	}
	p.src.advance(n)
	at, ok := toNs(uint64(sec), uint64(frac), p.pcap.fracNs)
	*pkt = Packet{
		At: at, Timed: ok, Data: b[classicRecordLen:n],
		WireLen: max(int(min(wire, maxPacket)), int(captured)), Link: p.pcap.link,
	}
	return nil
}
