package pcapfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"tokentrace/capture/internal/packet"
)

// read returns what a Reader finds, one line a packet, and its error at the end.
func read(r io.Reader) (packets []string, err error) {
	p, err := NewReader(r)
	if err != nil {
		return nil, err
	}
	for {
		var pkt Packet
		if err := p.Next(&pkt); err != nil {
			return packets, err
		}
		packets = append(packets, show(pkt.At, pkt.Timed, pkt.Link, pkt.WireLen, pkt.Data))
	}
}

func show(at int64, timed bool, link packet.LinkType, wire int, data []byte) string {
	return fmt.Sprintf("%d %v link %d wire %d %q", at, timed, link, wire, data)
}

// classicFile builds a pcap of two packets in any byte order and precision.
func classicFile(order binary.AppendByteOrder, magic uint32) []byte {
	b := order.AppendUint32(nil, magic)
	b = order.AppendUint16(order.AppendUint16(b, 2), 4)
	b = append(b, make([]byte, 8)...)
	b = order.AppendUint32(order.AppendUint32(b, 262144), 113|0x14000000) // with a frame check sequence
	for i, data := range []string{"first", "second"} {
		b = order.AppendUint32(order.AppendUint32(b, 1700000000), uint32(i+7))
		b = order.AppendUint32(order.AppendUint32(b, uint32(len(data))), uint32(len(data)+3*i))
		b = append(b, data...)
	}
	return b
}

func TestClassic(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for magic, tick := range map[uint32]int64{magicMicro: 1000, magicNano: 1} {
			got, err := read(bytes.NewReader(classicFile(order, magic)))
			at := int64(1700000000e9)
			want := []string{show(at+7*tick, true, 113, 5, []byte("first")), show(at+8*tick, true, 113, 9, []byte("second"))}
			if d := cmp.Diff(want, got); d != "" || err != io.EOF {
				t.Errorf("%v %x: %v (-want +got):\n%s", order, magic, err, d)
			}
		}
	}
}

// block builds a pcapng block.
func block(order binary.AppendByteOrder, typ uint32, body []byte) []byte {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	n := uint32(len(body) + 12)
	b := order.AppendUint32(order.AppendUint32(nil, typ), n)
	return order.AppendUint32(append(b, body...), n)
}

// interfaceBlock describes an interface whose ticks are resol, shifted by offset seconds.
func interfaceBlock(order binary.AppendByteOrder, link uint16, resol byte, offset int64) []byte {
	body := order.AppendUint32(order.AppendUint16(order.AppendUint16(nil, link), 0), 0)
	body = append(order.AppendUint16(order.AppendUint16(body, optTsresol), 1), resol, 0, 0, 0)
	body = order.AppendUint64(order.AppendUint16(order.AppendUint16(body, optTsoffset), 8), uint64(offset))
	return block(order, blockInterface, append(body, 0, 0, 0, 0))
}

func packetBlock(order binary.AppendByteOrder, id uint32, ticks uint64, data string) []byte {
	body := order.AppendUint32(order.AppendUint32(order.AppendUint32(nil, id), uint32(ticks>>32)), uint32(ticks))
	body = order.AppendUint32(order.AppendUint32(body, uint32(len(data))), uint32(len(data)))
	return block(order, blockPacket, append(body, data...))
}

func section(order binary.AppendByteOrder) []byte {
	body := order.AppendUint32(nil, byteOrderMagic)
	body = order.AppendUint16(order.AppendUint16(body, 1), 0)
	return block(order, blockSection, order.AppendUint64(body, ^uint64(0)))
}

// TestNG reads several interfaces with resolutions of their own, in two sections of
// different byte order, among blocks that hold no packet.
func TestNG(t *testing.T) {
	var file []byte
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		file = append(file, section(order)...)
		file = append(file, interfaceBlock(order, 1, 6, 0)...)
		file = append(file, interfaceBlock(order, 276, 9, 10)...)
		file = append(file, interfaceBlock(order, 101, 0x80|10, 0)...) // 1/1024 s
		file = append(file, interfaceBlock(order, 101, 12, 0)...)      // ps
		file = append(file, interfaceBlock(order, 101, 3, 0)...)       // ms
		file = append(file, block(order, 0x0a, []byte("secrets"))...)
		file = append(file, packetBlock(order, 0, 1700000000_000001, "a")...)
		file = append(file, packetBlock(order, 1, 1700000000_000000002, "bcdef")...)
		file = append(file, packetBlock(order, 2, 1700000000<<10|512, "c")...)
		file = append(file, packetBlock(order, 3, 1700_000000007000, "d")...)
		file = append(file, packetBlock(order, 4, 1700000000_003, "e")...)
		file = append(file, packetBlock(order, 9, 0, "no such interface")...)
		file = append(file, block(order, blockSimple, append(order.AppendUint32(nil, 2), "hi"...))...)
		body := order.AppendUint32(order.AppendUint64(nil, 0), 0)[:12]
		body = order.AppendUint64(order.AppendUint16(order.AppendUint16(body, optIfDrop), 8), 3)
		file = append(file, block(order, blockStatistics, body)...)
	}
	got, err := read(bytes.NewReader(file))
	want := []string{
		show(1700000000_000001000, true, 1, 1, []byte("a")), show(1700000010_000000002, true, 276, 5, []byte("bcdef")),
		show(1700000000_500000000, true, 101, 1, []byte("c")), show(1700_000000007, true, 101, 1, []byte("d")),
		show(1700000000_003000000, true, 101, 1, []byte("e")), show(0, false, 1, 2, []byte("hi")),
	}
	want = append(want, want...)
	if d := cmp.Diff(want, got); d != "" || err != io.EOF {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	p, _ := NewReader(bytes.NewReader(file))
	for err = nil; err == nil; err = p.Next(&Packet{}) {
	}
	if s := p.Stats(); s.KernelDrops != 6 || s.BadBlocks != 2 || s.SkippedBlocks != 4 || s.Precision != 1_000_000 || s.Packets != 12 {
		t.Errorf("stats: %+v", s)
	}
}

// TestAgainstGopacket compares the packets of real captures with those that
// gopacket's readers find.
func TestAgainstGopacket(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/pcaps/*/*.pcap*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want := gopacketReads(t, name, raw)
		for _, src := range []io.Reader{bytes.NewReader(raw), iotest.HalfReader(bytes.NewReader(raw))} {
			got, err := read(src)
			if d := cmp.Diff(want, got); d != "" || err != io.EOF {
				t.Fatalf("%s: %v (-want +got):\n%.2000s", name, err, d)
			}
		}
	}
}

func gopacketReads(t *testing.T, name string, raw []byte) (packets []string) {
	t.Helper()
	var source gopacket.PacketDataSource
	var link func(gopacket.CaptureInfo) layers.LinkType
	if strings.HasSuffix(name, ".pcapng") {
		r, err := pcapgo.NewNgReader(bytes.NewReader(raw), pcapgo.NgReaderOptions{WantMixedLinkType: true})
		if err != nil {
			t.Fatal(err)
		}
		source = r
		link = func(ci gopacket.CaptureInfo) layers.LinkType { return ci.AncillaryData[0].(layers.LinkType) }
	} else {
		r, err := pcapgo.NewReader(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		source = r
		link = func(gopacket.CaptureInfo) layers.LinkType { return r.LinkType() }
	}
	for {
		data, ci, err := source.ReadPacketData()
		if err == io.EOF {
			return packets
		}
		if err != nil {
			t.Fatal(err)
		}
		packets = append(packets, show(ci.Timestamp.UnixNano(), true, packet.LinkType(link(ci)), ci.Length, data))
	}
}

// TestCut checks that a file cut anywhere gives the packets before the cut and
// says where it ends.
func TestCut(t *testing.T) {
	var ng []byte
	ng = append(ng, section(binary.LittleEndian)...)
	ng = append(ng, interfaceBlock(binary.LittleEndian, 1, 6, 0)...)
	ng = append(ng, packetBlock(binary.LittleEndian, 0, 1, "first")...)
	ng = append(ng, packetBlock(binary.LittleEndian, 0, 2, "second")...)
	for name, file := range map[string][]byte{"pcap": classicFile(binary.LittleEndian, magicMicro), "pcapng": ng} {
		whole, _ := read(bytes.NewReader(file))
		for n := range len(file) {
			got, err := read(bytes.NewReader(file[:n]))
			if err == nil {
				t.Fatalf("%s cut at %d: no error", name, n)
			}
			if len(got) > len(whole) || len(got) > 0 && !cmp.Equal(got, whole[:len(got)]) {
				t.Fatalf("%s cut at %d: %v", name, n, got)
			}
			var damage *DamageError
			if !errors.As(err, &damage) && err != io.EOF && n >= 4 {
				t.Fatalf("%s cut at %d: %v", name, n, err)
			}
		}
	}
}

func TestNotACapture(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "empty",
		"ab":                           "ends after 2 bytes",
		"hello there":                  "begins with 68 65 6c 6c",
		"\x1f\x8b\x08\x00":             "gunzip",
		"\x28\xb5\x2f\xfd":             "unzstd",
		"\x0a\x0d\x0d\x0a\x1c\x00\x00": "cut",
	} {
		_, err := read(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := read(iotest.ErrReader(errors.New("disk on fire"))); err == nil || !strings.Contains(err.Error(), "disk on fire") {
		t.Errorf("an error of the source gives %v", err)
	}
}

// TestLargePacket reads a packet that the buffer does not hold.
func TestLargePacket(t *testing.T) {
	for _, size := range []int{bufferSize - classicRecordLen, bufferSize, 3*bufferSize - classicRecordLen, 5*bufferSize + 17} {
		var file bytes.Buffer
		w := pcapgo.NewWriter(&file)
		if err := w.WriteFileHeader(1<<24, layers.LinkTypeRaw); err != nil {
			t.Fatal(err)
		}
		data := bytes.Repeat([]byte("0123456789abcdef!"), size/17+1)[:size]
		for _, d := range [][]byte{data, []byte("next")} {
			if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(d), Length: len(d)}, d); err != nil {
				t.Fatal(err)
			}
		}
		p, err := NewReader(&file)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range [][]byte{data, []byte("next")} {
			var pkt Packet
			if err := p.Next(&pkt); err != nil || !bytes.Equal(pkt.Data, want) {
				t.Errorf("size %d, packet %d: %d bytes, %v", size, i, len(pkt.Data), err)
			}
		}
	}
}

// FuzzReader checks that no input makes a Reader panic, loop or take more memory
// than the input warrants.
func FuzzReader(f *testing.F) {
	f.Add(classicFile(binary.BigEndian, magicNano))
	f.Add(append(append(section(binary.LittleEndian), interfaceBlock(binary.LittleEndian, 1, 9, 0)...), packetBlock(binary.LittleEndian, 0, 1, "x")...))
	f.Fuzz(func(t *testing.T, file []byte) {
		p, err := NewReader(bytes.NewReader(file))
		if err != nil {
			return
		}
		for {
			var pkt Packet
			if err := p.Next(&pkt); err != nil {
				break
			}
			if len(pkt.Data) > len(file) || pkt.WireLen < len(pkt.Data) {
				t.Fatalf("%d bytes of a packet of %d from a file of %d", len(pkt.Data), pkt.WireLen, len(file))
			}
		}
		if p.Offset() > int64(len(file)) || cap(p.src.buf) > 4*len(file)+2*bufferSize {
			t.Fatalf("offset %d, %d bytes held", p.Offset(), cap(p.src.buf))
		}
	})
}

func BenchmarkReader(b *testing.B) {
	for name, file := range map[string]string{"pcap": "mixed-sll1/mixed-sll1.pcap", "pcapng": "mixed-sll2/mixed-sll2.pcapng"} {
		b.Run(name, func(b *testing.B) {
			raw, err := os.ReadFile("../../../testdata/pcaps/" + file)
			if err != nil {
				b.Fatal(err)
			}
			long := bytes.Clone(raw)
			for len(long) < 32<<20 { // pcapng sections may follow each other; so may pcap records
				if name == "pcap" {
					long = append(long, raw[classicHeaderLen:]...)
				} else {
					long = append(long, raw...)
				}
			}
			b.SetBytes(int64(len(long)))
			b.ReportAllocs()
			for b.Loop() {
				p, err := NewReader(bytes.NewReader(long))
				if err != nil {
					b.Fatal(err)
				}
				var pkt Packet
				for err == nil {
					err = p.Next(&pkt)
				}
			}
		})
	}
}
