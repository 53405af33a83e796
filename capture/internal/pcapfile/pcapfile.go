// Package pcapfile reads the packets of pcap and pcapng files, block by block,
// without copying them.
//
// It knows file formats, time resolutions and link types by number; it does not
// look into packets. It reads on where it can and says where it cannot: a cut or
// damaged file gives what stands before the damage.
package pcapfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"tokentrace/capture/internal/packet"
)

// Packet is one captured packet.
type Packet struct {
	At      int64  // capture time, ns since the Unix epoch. Valid iff Timed
	Timed   bool   // whether the file gives the packet a time
	Data    []byte // captured bytes; valid until the next call of Next
	WireLen int    // length on the wire, >= len(Data)
	Link    packet.LinkType
}

// Stats counts what a Reader met beside packets.
type Stats struct {
	Packets       int64
	SkippedBlocks int64 // pcapng blocks that hold no packet (statistics, names, secrets, ...)
	BadBlocks     int64 // packet blocks that contradict themselves
	KernelDrops   int64 // packets that the capturing system says it dropped (pcapng statistics)
	Precision     int64 // coarsest time resolution met, ns
}

// DamageError says where a file stops making sense. What was read before it stands.
type DamageError struct {
	Offset int64
	Msg    string
}

func (e *DamageError) Error() string { return fmt.Sprintf("at byte %d: %s", e.Offset, e.Msg) }

// errFormat says that the input is no capture file at all.
var errFormat = errors.New("not a capture file")

// maxPacket bounds one packet or block; tcpdump's own bound is 256 KiB.
const maxPacket = 16 << 20

// Reader reads packets in the order of the file.
type Reader struct {
	src   source
	order binary.ByteOrder
	stats Stats
	next  func(*Packet) error
	err   error

	pcap   classic
	ifaces []iface // of the current section, pcapng
}

// NewReader recognises the format from the first bytes.
func NewReader(r io.Reader) (*Reader, error) {
	p := &Reader{src: source{r: r, buf: make([]byte, bufferSize)}}
	magic, err := p.src.peek(4)
	switch {
	case err != nil && err != io.EOF:
		return nil, err
	case len(magic) == 0:
		return nil, errors.New("the file is empty")
	case len(magic) < 4:
		return nil, fmt.Errorf("%w: it ends after %d bytes", errFormat, len(magic))
	}
	switch {
	case binary.LittleEndian.Uint32(magic) == blockSection:
		p.next = p.nextNG
	case p.classicMagic(magic):
		p.next = p.nextClassic
		if err := p.readClassicHeader(); err != nil {
			return nil, err
		}
	case magic[0] == 0x1f && magic[1] == 0x8b:
		return nil, fmt.Errorf("%w: it is gzip-compressed; unpack it first (gunzip)", errFormat)
	case string(magic) == "\x28\xb5\x2f\xfd":
		return nil, fmt.Errorf("%w: it is zstd-compressed; unpack it first (unzstd)", errFormat)
	default:
		return nil, fmt.Errorf("%w: it begins with % x, which is neither pcap nor pcapng", errFormat, magic)
	}
	return p, nil
}

// Stats returns the counts so far.
func (p *Reader) Stats() Stats { return p.stats }

// Offset returns how many bytes of the file were read.
func (p *Reader) Offset() int64 { return p.src.offset }

// Next reads the next packet. It returns io.EOF at the end, a *DamageError where
// the file is cut or makes no sense, and any other error of the source.
func (p *Reader) Next(pkt *Packet) error {
	if p.err != nil {
		return p.err
	}
	if p.err = p.next(pkt); p.err == nil {
		p.stats.Packets++
	}
	return p.err
}

// peek returns the next n bytes. It fails with io.EOF where nothing is left and
// with a DamageError where less than n is.
func (p *Reader) peek(n int, what string) ([]byte, error) {
	b, err := p.src.peek(n)
	switch {
	case err == nil || len(b) == 0 && err == io.EOF:
		return b, err
	case err == io.EOF:
		return nil, p.damage("the file is cut in %s: %d of %d bytes are there", what, len(b), n)
	default:
		return nil, fmt.Errorf("read at byte %d: %w", p.src.offset, err)
	}
}

func (p *Reader) damage(format string, args ...any) error {
	return &DamageError{p.src.offset, fmt.Sprintf(format, args...)}
}

// maxSeconds is the latest time that is believed, the year 2200: later ones come from
// clocks gone wrong, and leave no room in an int64 of ns to reckon with.
const maxSeconds = 7_258_118_400

// toNs returns a time in ns since the Unix epoch. ok is false where it is not believed.
func toNs(sec, frac uint64, fracNs int64) (ns int64, ok bool) {
	if sec > maxSeconds {
		return 0, false
	}
	return int64(sec)*1_000_000_000 + int64(frac)*fracNs, true
}
