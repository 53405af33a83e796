package pcapgen

import (
	"bufio"
	"encoding/binary"
	"io"
)

const (
	recordHeader = 16 // bytes of a pcap record before its packet
	snapLen      = 262144
	linkEthernet = 1
)

// writer encodes packets as a pcap file.
type writer struct {
	w     *bufio.Writer
	buf   []byte
	unit  int64 // ns of one tick of the fraction of a second
	port  uint16
	bytes int64
}

func newWriter(w io.Writer, nano bool, port uint16) *writer {
	p := &writer{w: bufio.NewWriterSize(w, 1<<20), unit: 1000, port: port}
	magic := uint32(0xa1b2c3d4)
	if nano {
		magic, p.unit = 0xa1b23c4d, 1
	}
	le := binary.LittleEndian
	b := le.AppendUint32(nil, magic)
	b = le.AppendUint16(b, 2) // version 2.4
	b = le.AppendUint16(b, 4)
	b = append(b, make([]byte, 8)...) // zone, accuracy
	b = le.AppendUint32(b, snapLen)
	b = le.AppendUint32(b, linkEthernet)
	p.w.Write(b) // the error comes back from the next write or flush
	p.bytes = int64(len(b))
	return p
}

func (w *writer) flush() error { return w.w.Flush() }

// packet writes one packet of k.
func (w *writer) packet(k *conn, p *packet) error {
	b := append(w.buf[:0], make([]byte, recordHeader)...) // filled in last
	b = appendEthernet(b, p.dir)
	ip := len(b)
	b = w.appendIP(b, k, p.dir)
	tcp := len(b)
	b = w.appendTCP(b, k, p)
	b[tcp+12] = byte((len(b)-tcp)/4) << 4
	b = append(b, p.payload...)
	setChecksums(b, ip, tcp)

	n := uint32(len(b) - recordHeader)
	le := binary.LittleEndian
	le.PutUint32(b[0:], uint32(p.at/1e9))
	le.PutUint32(b[4:], uint32(p.at%1e9/w.unit))
	le.PutUint32(b[8:], n)
	le.PutUint32(b[12:], n)
	w.buf = b
	w.bytes += int64(len(b))
	_, err := w.w.Write(b)
	return err
}

// appendEthernet appends a header with made-up, locally administered addresses.
func appendEthernet(b []byte, d dir) []byte {
	return append(b, 2, 0, 0, 0, 0, byte(1-d), 2, 0, 0, 0, 0, byte(d), 8, 0)
}

// appendIP appends an IPv4 header without length and checksum.
func (w *writer) appendIP(b []byte, k *conn, d dir) []byte {
	src, dst, ttl := k.clientIP, [4]byte{10, 0, 0, 10}, byte(62)
	if d == toClient {
		src, dst, ttl = dst, src, 64
	}
	const dontFragment, protocolTCP = 0x40, 6
	k.ipID[d]++
	b = append(b, 0x45, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, k.ipID[d])
	b = append(b, dontFragment, 0, ttl, protocolTCP, 0, 0)
	b = append(b, src[:]...)
	return append(b, dst[:]...)
}

// appendTCP appends a TCP header without its length and checksum.
func (w *writer) appendTCP(b []byte, k *conn, p *packet) []byte {
	be := binary.BigEndian
	from, to := k.port, w.port
	if p.dir == toClient {
		from, to = to, from
	}
	b = be.AppendUint16(b, from)
	b = be.AppendUint16(b, to)
	b = be.AppendUint32(b, p.seq)
	b = be.AppendUint32(b, p.ack)
	b = append(b, 0, p.flags)
	b = be.AppendUint16(b, 502) // window
	b = append(b, 0, 0, 0, 0)   // checksum, urgent pointer
	if p.flags&flagSYN != 0 {   // options
		b = append(b, 2, 4, 0x05, 0xb4, 4, 2) // largest segment 1460, SACK permitted
	} else {
		b = append(b, 1, 1)
	}
	ts := k.clock[p.dir] + uint32(p.at/1e6)
	k.lastTS[p.dir] = ts
	b = append(b, 8, 10)
	b = be.AppendUint32(b, ts)
	b = be.AppendUint32(b, k.lastTS[1-p.dir])
	if p.flags&flagSYN != 0 {
		b = append(b, 1, 3, 3, 7) // window scale 128
	}
	if p.sackL != p.sackR {
		b = append(b, 1, 1, 5, 10)
		b = be.AppendUint32(b, p.sackL)
		b = be.AppendUint32(b, p.sackR)
	}
	return b
}

// setChecksums fills in the lengths and checksums of the IP and TCP headers.
func setChecksums(b []byte, ip, tcp int) {
	be := binary.BigEndian
	be.PutUint16(b[ip+2:], uint16(len(b)-ip))
	be.PutUint16(b[ip+10:], ^fold(sum(b[ip:tcp])))
	pseudo := sum(b[ip+12:tcp]) + uint64(b[ip+9]) + uint64(len(b)-tcp)
	be.PutUint16(b[tcp+16:], ^fold(pseudo+sum(b[tcp:])))
}

// sum adds big-endian words of 16 bits; fold makes it the Internet checksum's
// sum (RFC 1071: words of 32 bits may be added as well).
func sum(b []byte) (s uint64) {
	for ; len(b) >= 4; b = b[4:] {
		s += uint64(binary.BigEndian.Uint32(b))
	}
	if len(b) >= 2 {
		s += uint64(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		s += uint64(b[0]) << 8
	}
	return s
}

func fold(s uint64) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
