package packet

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// tcp builds a TCP segment from 10.0.0.1:1000 to 10.0.0.2:80 in the given layers.
func build(t testing.TB, payload string, below ...gopacket.SerializableLayer) []byte {
	t.Helper()
	tcp := &layers.TCP{SrcPort: 1000, DstPort: 80, Seq: 7, Ack: 9, ACK: true, Window: 33, Options: []layers.TCPOption{{OptionType: layers.TCPOptionKindNop}}}
	all := append(below, tcp, gopacket.Payload(payload))
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true}, all...); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func ip4() *layers.IPv4 {
	return &layers.IPv4{Version: 4, IHL: 5, TTL: 1, Protocol: layers.IPProtocolTCP, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, 2}}
}

func ip6() *layers.IPv6 {
	return &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolTCP, SrcIP: bytes.Repeat([]byte{1}, 16), DstIP: bytes.Repeat([]byte{2}, 16)}
}

func ether(typ layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{SrcMAC: make([]byte, 6), DstMAC: make([]byte, 6), EthernetType: typ}
}

func TestLinks(t *testing.T) {
	raw4, raw6 := build(t, "hello", ip4()), build(t, "hello", ip6())
	hop := append([]byte{ipProtoTCP, 0}, make([]byte, 6)...) // hop-by-hop, before TCP
	ext := append(append(append([]byte{}, raw6[:40]...), hop...), raw6[40:]...)
	ext[6], ext[5] = extHopByHop, ext[5]+8
	frag4 := bytes.Clone(raw4)
	frag4[6] = 0x20
	frag6 := bytes.Clone(ext)
	frag6[6] = extFragment
	udp := bytes.Clone(raw4)
	udp[9] = 17
	tso := bytes.Clone(raw4)
	tso[2], tso[3] = 0, 0
	padded := append(build(t, "hello", ether(layers.EthernetTypeIPv4), ip4()), 0, 0, 0, 0)
	sll := func(typ uint16) []byte { return append(make([]byte, 14), byte(typ>>8), byte(typ)) }
	sll2 := func(typ uint16) []byte { return append([]byte{byte(typ >> 8), byte(typ)}, make([]byte, 18)...) }
	vlan := func(below ...gopacket.SerializableLayer) []byte { return build(t, "hello", append(below, ip4())...) }
	tests := []struct {
		name string
		link LinkType
		data []byte
		want Reason
	}{
		{"ethernet", 1, build(t, "hello", ether(layers.EthernetTypeIPv4), ip4()), TCP},
		{"ethernet, padded", 1, padded, TCP},
		{"ethernet, IPv6", 1, build(t, "hello", ether(layers.EthernetTypeIPv6), ip6()), TCP},
		{"VLAN", 1, vlan(ether(layers.EthernetTypeDot1Q), &layers.Dot1Q{Type: layers.EthernetTypeIPv4}), TCP},
		{"QinQ", 1, vlan(ether(layers.EthernetTypeQinQ), &layers.Dot1Q{Type: layers.EthernetTypeDot1Q}, &layers.Dot1Q{Type: layers.EthernetTypeIPv4}), TCP},
		{"ARP", 1, append(build(t, "", ether(layers.EthernetTypeARP)), make([]byte, 40)...), NotIP},
		{"SLL", 113, append(sll(0x0800), raw4...), TCP},
		{"SLL2, IPv6", 276, append(sll2(0x86dd), raw6...), TCP},
		{"loopback, little endian", 0, append([]byte{2, 0, 0, 0}, raw4...), TCP},
		{"loopback, big endian", 108, append([]byte{0, 0, 0, 30}, raw6...), TCP},
		{"raw", 101, raw4, TCP}, {"raw 12", 12, raw6, TCP}, {"IPv4", 228, raw4, TCP}, {"IPv6", 229, raw6, TCP},
		{"IPv6 extension", 101, ext, TCP},
		{"segmentation offload", 101, tso, TCP},
		{"fragment", 101, frag4, Fragment}, {"IPv6 fragment", 101, frag6, Fragment},
		{"UDP", 101, udp, NotTCP},
		{"no IP", 101, []byte{0x10}, NotIP},
		{"other link", 147, raw4, UnknownLink},
		{"empty", 1, nil, Malformed},
	}
	for _, tt := range tests {
		var s Segment
		got := Decode(tt.link, tt.data, len(tt.data), &s)
		if got != tt.want {
			t.Errorf("%s: reason %d, want %d", tt.name, got, tt.want)
			continue
		}
		if got == TCP && (string(s.Payload) != "hello" || s.PayloadLen != 5 || s.SrcPort != 1000 || s.DstPort != 80 || s.Seq != 7 || s.Ack != 9 || s.Window != 33 || s.Flags != FlagACK) {
			t.Errorf("%s: %+v", tt.name, s)
		}
		for n := range len(tt.data) { // cut by any snap length: no panic, and the wire length is kept
			var s Segment
			if Decode(tt.link, tt.data[:n], len(tt.data), &s) == TCP && (s.PayloadLen != 5 || !strings.HasPrefix("hello", string(s.Payload))) {
				t.Errorf("%s cut to %d: %d of %q", tt.name, n, s.PayloadLen, s.Payload)
			}
		}
	}
}

func TestAddr(t *testing.T) {
	var s Segment
	Decode(101, build(t, "", ip4()), 1000, &s)
	if s.Src.Netip().String() != "10.0.0.1" || s.Dst.Netip().String() != "10.0.0.2" {
		t.Errorf("%v to %v", s.Src.Netip(), s.Dst.Netip())
	}
	Decode(101, build(t, "", ip6()), 1000, &s)
	if s.Src.Netip().String() != "101:101:101:101:101:101:101:101" {
		t.Errorf("%v", s.Src.Netip())
	}
}

// FuzzDecode checks that no frame makes Decode panic or claim more than there is.
func FuzzDecode(f *testing.F) {
	f.Add(uint16(1), build(f, "hello", ether(layers.EthernetTypeIPv4), ip4()), uint16(0))
	f.Add(uint16(101), build(f, "hello", ip6()), uint16(3))
	f.Fuzz(func(t *testing.T, link uint16, data []byte, cut uint16) {
		var s Segment
		if Decode(LinkType(link), data, len(data)+int(cut), &s) == TCP && (len(s.Payload) > s.PayloadLen || len(s.Payload) > len(data)) {
			t.Errorf("%d bytes of a payload of %d in a frame of %d", len(s.Payload), s.PayloadLen, len(data))
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	frame := build(b, strings.Repeat("x", 260), ether(layers.EthernetTypeIPv4), ip4())
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	var s Segment
	for b.Loop() {
		Decode(1, frame, len(frame), &s)
	}
}
