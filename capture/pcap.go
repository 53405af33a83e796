package capture

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"tokentrace/capture/internal/exchange"
	"tokentrace/capture/internal/packet"
	"tokentrace/capture/internal/pcapfile"
	"tokentrace/capture/internal/tcp"
	"tokentrace/schema"
)

// Pcap is a source of packets: pcap and pcapng files, each of one or more
// interfaces. Several files are read in the order of their first packets, as one
// capture, so that a connection may go on in the next.
type Pcap struct {
	Files []string // "-" is Stdin
	Stdin io.Reader
}

// pcapSource is a Pcap on its way through its files.
type pcapSource struct {
	files    []*pcapInput
	warnings []string
	total    int64 // bytes of all files, 0 where unknown

	table    *tcp.Table
	recorder *exchange.Recorder
	reasons  [packet.NumReasons]int64
	untimed  int64
	damaged  int64          // files that end too early or make no sense
	segment  packet.Segment // reused for each packet
	stats    pcapfile.Stats // over the files that are read
	run      schema.Run
}

// pcapInput is one file. Files are looked into to find their order, and opened
// again when their turn comes, so that any number can be read; what cannot be
// opened twice stays open.
type pcapInput struct {
	name   string
	size   int64
	info   os.FileInfo // of a file; nil for standard input
	src    io.Reader   // valid while it is open
	close  func() error
	reader *pcapfile.Reader
	first  int64           // time of the first packet, unix ns
	packet pcapfile.Packet // the first one, while the file is open
	err    error           // of reading it
}

// openPcap finds the order of the files. One that is no capture is named in a
// warning where another can be read, and in the error where none can.
func openPcap(cfg Pcap) (*pcapSource, error) {
	s := &pcapSource{}
	if len(cfg.Files) == 0 {
		return nil, errors.New("no capture file is named")
	}
	var failed []error
	for _, name := range cfg.Files {
		in := &pcapInput{name: name}
		if err := in.look(cfg.Stdin); err != nil {
			failed = append(failed, err)
			continue
		}
		if slices.ContainsFunc(s.files, in.same) {
			s.warn("%s is named twice; it is read once", name)
			continue
		}
		s.total += in.size
		s.files = append(s.files, in)
	}
	if len(s.files) == 0 {
		return nil, errors.Join(failed...)
	}
	for _, err := range failed {
		s.warn("%v; it is left out", err)
	}
	slices.SortStableFunc(s.files, func(a, b *pcapInput) int { return cmp.Compare(a.first, b.first) })
	return s, nil
}

// same reports whether both are one file.
func (in *pcapInput) same(other *pcapInput) bool {
	return in.info != nil && other.info != nil && in.info.Mode().IsRegular() && os.SameFile(in.info, other.info)
}

// look opens the input, reads its first packet, and closes it if it can be opened again.
func (in *pcapInput) look(stdin io.Reader) error {
	again, err := in.open(stdin)
	if err != nil {
		return err
	}
	in.first = in.packet.At
	if !again {
		return nil
	}
	err = in.close()
	in.src, in.reader = nil, nil
	return err
}

// open opens the input and reads its first packet ahead. again says that it can be
// opened another time.
func (in *pcapInput) open(stdin io.Reader) (again bool, err error) {
	in.src, in.close = stdin, func() error { return nil }
	if in.name != "-" {
		if again, err = in.openFile(); err != nil {
			return false, err
		}
	}
	if in.src == nil {
		return false, fmt.Errorf("%s: there is no standard input", in.name)
	}
	reader, err := pcapfile.NewReader(in.src)
	if err != nil {
		return false, errors.Join(fmt.Errorf("%s: %w", in.name, err), in.close())
	}
	in.reader = reader
	in.err = reader.Next(&in.packet)
	return again, nil
}

func (in *pcapInput) openFile() (regular bool, err error) {
	f, err := os.Open(in.name)
	if err != nil {
		return false, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s: is a directory, not a capture file", in.name)
	}
	if err != nil {
		return false, errors.Join(err, f.Close())
	}
	in.src, in.close, in.size, in.info = f, f.Close, info.Size(), info
	return info.Mode().IsRegular(), nil
}

func (s *pcapSource) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// read runs all packets through the pipeline. stop is asked now and then whether to
// go on; where it says why not, what was read stands.
func (s *pcapSource) read(recorder *exchange.Recorder, stop func() error, progress func(done, total int64)) (schema.Run, error) {
	s.recorder = recorder
	s.table = tcp.New(recorder.Open, recorder.Done)
	s.run = schema.Run{Source: "pcap", Clock: "packet time stamps", Precision: 1}
	var done int64
	var err error
	for _, in := range s.files {
		s.run.Inputs = append(s.run.Inputs, filepath.Base(in.name))
		err = s.readFile(in, func(offset int64) error {
			if progress != nil {
				progress(done+offset, s.total)
			}
			return stop()
		})
		if err != nil {
			break
		}
		done += in.size
	}
	s.table.Finish()
	s.run.Warnings = s.warnings
	s.run.Ledger = s.ledger()
	return s.run, err
}

// checkEvery is how many packets are read between looks at the world.
const checkEvery = 1 << 14

func (s *pcapSource) readFile(in *pcapInput, check func(offset int64) error) error {
	if in.reader == nil {
		if _, err := in.open(nil); err != nil {
			return err
		}
	}
	defer func() {
		_ = in.close() // opened for reading: nothing is lost
		in.src, in.reader = nil, nil
	}()
	if err := check(0); err != nil {
		return fmt.Errorf("read %s: %w", in.name, err)
	}
	defer func() { s.addStats(in.reader.Stats()) }()
	pkt, err := &in.packet, in.err
	for n := 1; err == nil; n++ {
		s.packet(pkt)
		if n%checkEvery == 0 {
			if err := check(in.reader.Offset()); err != nil {
				return fmt.Errorf("read %s: %w", in.name, err)
			}
		}
		err = in.reader.Next(pkt)
	}
	var damage *pcapfile.DamageError
	switch {
	case err == io.EOF:
	case errors.As(err, &damage):
		s.damaged++
		s.warn("%s: %v; what stands before it was read", in.name, damage)
	default:
		return fmt.Errorf("read %s: %w", in.name, err)
	}
	return nil
}

func (s *pcapSource) addStats(stats pcapfile.Stats) {
	s.stats.Packets += stats.Packets
	s.stats.SkippedBlocks += stats.SkippedBlocks
	s.stats.BadBlocks += stats.BadBlocks
	s.stats.KernelDrops += stats.KernelDrops
	s.run.Precision = max(s.run.Precision, stats.Precision)
}

func (s *pcapSource) packet(pkt *pcapfile.Packet) {
	if !pkt.Timed {
		s.untimed++
		return
	}
	if s.run.Start == 0 || pkt.At < s.run.Start {
		s.run.Start = pkt.At
	}
	s.run.End = max(s.run.End, pkt.At)
	reason := packet.Decode(pkt.Link, pkt.Data, pkt.WireLen, &s.segment)
	s.reasons[reason]++
	if reason == packet.TCP {
		s.table.Segment(pkt.At, &s.segment)
	}
}

// ledger adds up what was read and what became of it.
func (s *pcapSource) ledger() schema.Ledger {
	info, loss, bad := schema.SeverityInfo, schema.SeverityLoss, schema.SeverityError
	t := s.table.Counts()
	l := schema.Ledger{
		{Name: "packets", Severity: info, Count: s.stats.Packets, Doc: "packets in the files"},
		{Name: "packets_tcp", Severity: info, Count: s.reasons[packet.TCP], PartOf: "packets", Doc: "TCP segments"},
		{Name: "packets_not_ip", Severity: info, Count: s.reasons[packet.NotIP], PartOf: "packets", Doc: "ARP and other non-IP packets"},
		{Name: "packets_not_tcp", Severity: info, Count: s.reasons[packet.NotTCP], PartOf: "packets", Doc: "UDP, ICMP and other IP packets"},
		{Name: "packets_fragment", Severity: loss, Count: s.reasons[packet.Fragment], PartOf: "packets", Doc: "fragments of IP packets, which are not put together yet"},
		{Name: "packets_unknown_link", Severity: loss, Count: s.reasons[packet.UnknownLink], PartOf: "packets", Doc: "packets of link types that are not read"},
		{Name: "packets_malformed", Severity: bad, Count: s.reasons[packet.Malformed], PartOf: "packets", Doc: "packets whose headers are cut or contradict themselves"},
		{Name: "packets_untimed", Severity: loss, Count: s.untimed, PartOf: "packets", Doc: "packets without a usable time stamp"},
		{Name: "file_blocks_skipped", Severity: info, Count: s.stats.SkippedBlocks, Doc: "pcapng blocks that hold no packet"},
		{Name: "file_blocks_bad", Severity: bad, Count: s.stats.BadBlocks, Doc: "pcapng blocks that contradict themselves"},
		{Name: "files_damaged", Severity: loss, Count: s.damaged, Doc: "files that are cut or damaged: what stands before it was read"},
		{Name: "kernel_drops", Severity: loss, Count: s.stats.KernelDrops, Doc: "packets that the capturing system says it dropped"},
		{Name: "tcp_connections", Severity: info, Count: t.Connections, Doc: "TCP connections"},
		{Name: "tcp_connections_joined", Severity: info, Count: t.ConnectionsNoSYN, Doc: "of them, begun before the capture"},
		{Name: "tcp_connections_evicted", Severity: loss, Count: t.Evicted, Doc: "of them, given up because too many were open at once"},
		{Name: "tcp_payload_bytes", Severity: info, Count: t.PayloadBytes, Doc: "captured payload of TCP segments"},
		{Name: "tcp_bytes_delivered", Severity: info, Count: t.Delivered, PartOf: "tcp_payload_bytes", Doc: "bytes put in order"},
		{Name: "tcp_bytes_duplicate", Severity: info, Count: t.Duplicate, PartOf: "tcp_payload_bytes", Doc: "bytes seen before: retransmissions and overlaps"},
		{Name: "tcp_bytes_after_close", Severity: info, Count: t.AfterClose, PartOf: "tcp_payload_bytes", Doc: "bytes of directions that had ended"},
		{Name: "tcp_bytes_out_of_window", Severity: bad, Count: t.OutOfWindow, PartOf: "tcp_payload_bytes", Doc: "bytes with sequence numbers that belong to no live connection"},
		{Name: "tcp_bytes_lost", Severity: loss, Count: t.Lost, Doc: "bytes that connections carried and the capture does not hold"},
	}
	return append(l, s.recorder.Ledger()...)
}
