// Package packet finds the TCP segment in a captured frame.
//
// It knows link, IP and TCP headers. It keeps no state: fragments are named, not
// put together, and no checksum is verified (captures on the sending host hold
// frames whose checksums the network card has yet to fill in).
package packet

import (
	"encoding/binary"
	"net/netip"
)

// LinkType is a link-layer type as numbered by tcpdump.org/linktypes.html.
type LinkType uint16

// Reason says what became of a frame.
type Reason uint8

// The reasons: TCP, or why not.
const (
	TCP         Reason = iota
	UnknownLink        // a link type that is not read
	NotIP              // ARP, LLDP and the like
	NotTCP             // UDP, ICMP and the like
	Fragment           // a piece of a fragmented IP packet
	Malformed          // headers that contradict themselves, or are cut by the snap length
	numReasons
)

// NumReasons is the number of reasons.
const NumReasons = int(numReasons)

// Addr is an IPv4 (mapped into IPv6, RFC 4291) or IPv6 address.
type Addr [16]byte

// Netip returns the address in the form of the standard library.
func (a Addr) Netip() netip.Addr { return netip.AddrFrom16(a).Unmap() }

// TCP flags.
const (
	FlagFIN = 1 << iota
	FlagSYN
	FlagRST
	flagPSH
	FlagACK
)

// Segment is a TCP segment.
type Segment struct {
	Src, Dst         Addr
	SrcPort, DstPort uint16
	Seq, Ack         uint32
	Flags            uint8
	Window           uint16 // unscaled
	// Payload is what was captured of the segment's PayloadLen bytes.
	Payload    []byte
	PayloadLen int
}

// EtherTypes.
const (
	etherIPv4   = 0x0800
	etherIPv6   = 0x86dd
	etherVLAN   = 0x8100
	etherQinQ   = 0x88a8
	etherQinQ91 = 0x9100
)

// Link types that are read.
const (
	linkNull     = 0
	linkEthernet = 1
	linkRawBSD   = 12
	linkRawOBSD  = 14
	linkRaw      = 101
	linkLoop     = 108
	linkSLL      = 113
	linkIPv4     = 228
	linkIPv6     = 229
	linkSLL2     = 276
)

const ipProtoTCP = 6

// Decode finds the TCP segment of a frame of wireLen bytes, of which data was
// captured. The payload of seg points into data. seg is set iff Decode returns TCP.
func Decode(link LinkType, data []byte, wireLen int, seg *Segment) Reason {
	missing := wireLen - len(data)
	switch link {
	case linkEthernet:
		if len(data) < 14 {
			return Malformed
		}
		return decodeEther(binary.BigEndian.Uint16(data[12:]), data[14:], missing, seg)
	case linkSLL:
		if len(data) < 16 {
			return Malformed
		}
		return decodeEther(binary.BigEndian.Uint16(data[14:]), data[16:], missing, seg)
	case linkSLL2:
		if len(data) < 20 {
			return Malformed
		}
		return decodeEther(binary.BigEndian.Uint16(data), data[20:], missing, seg)
	case linkNull, linkLoop:
		// The address family before the packet is in the byte order of the host that
		// captured, and IPv6's number differs by system: the IP version says more.
		if len(data) < 4 {
			return Malformed
		}
		return decodeIP(data[4:], missing, seg)
	case linkRaw, linkRawBSD, linkRawOBSD, linkIPv4, linkIPv6:
		return decodeIP(data, missing, seg)
	default:
		return UnknownLink
	}
}

// maxTags bounds nested VLAN tags.
const maxTags = 4

func decodeEther(ether uint16, data []byte, missing int, seg *Segment) Reason {
	for range maxTags {
		switch ether {
		case etherIPv4, etherIPv6:
			return decodeIP(data, missing, seg)
		case etherVLAN, etherQinQ, etherQinQ91:
			if len(data) < 4 {
				return Malformed
			}
			ether, data = binary.BigEndian.Uint16(data[2:]), data[4:]
		default:
			return NotIP
		}
	}
	return Malformed
}

// decodeIP reads an IP packet of which the last missing bytes were not captured.
func decodeIP(data []byte, missing int, seg *Segment) Reason {
	if len(data) < 1 {
		return Malformed
	}
	switch data[0] >> 4 {
	case 4:
		return decodeIPv4(data, missing, seg)
	case 6:
		return decodeIPv6(data, missing, seg)
	default:
		return NotIP
	}
}

func decodeIPv4(data []byte, missing int, seg *Segment) Reason {
	if len(data) < 20 {
		return Malformed
	}
	header := int(data[0]&0x0f) * 4
	total := int(binary.BigEndian.Uint16(data[2:]))
	if total == 0 { // segmentation is left to the network card: the frame tells
		total = len(data) + missing
	}
	if header < 20 || total < header || len(data) < header {
		return Malformed
	}
	if binary.BigEndian.Uint16(data[6:])&0x3fff != 0 { // more fragments, or an offset
		return Fragment
	}
	if data[9] != ipProtoTCP {
		return NotTCP
	}
	seg.Src, seg.Dst = mapped(data[12:16]), mapped(data[16:20])
	return decodeTCP(data[header:min(total, len(data))], total-header, seg)
}

func mapped(v4 []byte) Addr {
	return Addr{10: 0xff, 11: 0xff, 12: v4[0], 13: v4[1], 14: v4[2], 15: v4[3]}
}

// IPv6 extension headers that may stand before TCP (RFC 8200, section 4).
const (
	extHopByHop = 0
	extRouting  = 43
	extFragment = 44
	extAuth     = 51
	extDest     = 60
)

// maxExtensions bounds a chain of extension headers.
const maxExtensions = 8

func decodeIPv6(data []byte, missing int, seg *Segment) Reason {
	if len(data) < 40 {
		return Malformed
	}
	copy(seg.Src[:], data[8:24])
	copy(seg.Dst[:], data[24:40])
	total := int(binary.BigEndian.Uint16(data[4:]))
	next, rest := data[6], data[40:]
	if total == 0 { // a jumbogram, or segmentation is left to the network card
		total = len(rest) + missing
	}
	rest = rest[:min(total, len(rest))]
	for range maxExtensions {
		var n int
		switch next {
		case ipProtoTCP:
			return decodeTCP(rest, total, seg)
		case extHopByHop, extRouting, extDest:
			if len(rest) < 8 {
				return Malformed
			}
			n = 8 + int(rest[1])*8
		case extAuth:
			if len(rest) < 8 {
				return Malformed
			}
			n = 8 + int(rest[1])*4
		case extFragment:
			return Fragment
		default:
			return NotTCP
		}
		if n > len(rest) {
			return Malformed
		}
		next, rest, total = rest[0], rest[n:], total-n
	}
	return Malformed
}

// decodeTCP reads a segment of length bytes, of which data was captured.
func decodeTCP(data []byte, length int, seg *Segment) Reason {
	if len(data) < 20 {
		return Malformed
	}
	header := int(data[12]>>4) * 4
	if header < 20 || header > length {
		return Malformed
	}
	seg.SrcPort, seg.DstPort = binary.BigEndian.Uint16(data), binary.BigEndian.Uint16(data[2:])
	seg.Seq, seg.Ack = binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	seg.Flags = data[13]
	seg.Window = binary.BigEndian.Uint16(data[14:])
	seg.Payload = data[min(header, len(data)):]
	seg.PayloadLen = length - header
	return TCP
}
