package packet_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"tokentrace/capture/internal/packet"
	"tokentrace/capture/internal/pcapfile"
)

// TestAgainstGopacket compares every packet of the real captures with what
// gopacket's layers say.
func TestAgainstGopacket(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/pcaps/*/*.pcap*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := pcapfile.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		var pkt pcapfile.Packet
		for ; r.Next(&pkt) == nil; n++ {
			var s packet.Segment
			reason := packet.Decode(pkt.Link, pkt.Data, pkt.WireLen, &s)
			compare(t, name, pkt, reason, &s)
		}
		if err := f.Close(); err != nil || n == 0 {
			t.Fatalf("%s: %d packets, %v", name, n, err)
		}
	}
}

func compare(t *testing.T, name string, pkt pcapfile.Packet, reason packet.Reason, s *packet.Segment) {
	t.Helper()
	p := gopacket.NewPacket(pkt.Data, layers.LinkType(pkt.Link), gopacket.Default)
	tcp, _ := p.Layer(layers.LayerTypeTCP).(*layers.TCP)
	if (tcp != nil) != (reason == packet.TCP) {
		t.Fatalf("%s: reason %d, gopacket sees TCP: %v\n%s", name, reason, tcp != nil, hex.Dump(pkt.Data))
	}
	if tcp == nil {
		return
	}
	if s.Seq != tcp.Seq || s.Ack != tcp.Ack || s.SrcPort != uint16(tcp.SrcPort) || s.DstPort != uint16(tcp.DstPort) || s.Window != tcp.Window ||
		!bytes.Equal(s.Payload, tcp.Payload) || s.Flags&packet.FlagSYN != 0 != tcp.SYN || s.Flags&packet.FlagFIN != 0 != tcp.FIN || s.Flags&packet.FlagRST != 0 != tcp.RST || s.Flags&packet.FlagACK != 0 != tcp.ACK {
		t.Fatalf("%s: got %+v, gopacket %+v", name, s, tcp)
	}
}
