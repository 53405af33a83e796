package capture

import (
	"cmp"
	"context"
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
	damaged  int64 // files that end too early or make no sense
	segment  packet.Segment // reused for each packet
	stats    pcapfile.Stats // over the files that are read
	run      schema.Run
}

// pcapInput is one open file with its first packet read ahead.
type pcapInput struct {
	name   string
	closer io.Closer
	reader *pcapfile.Reader
	first  pcapfile.Packet
	err    error // of reading the first packet
}

// openPcap opens the files. One that is no capture is named in a warning where
// another can be read, and in the error where none can.
func openPcap(cfg Pcap) (*pcapSource, error) {
	s := &pcapSource{}
	if len(cfg.Files) == 0 {
		return nil, errors.New("no capture file is named")
	}
	var failed []error
	for _, name := range cfg.Files {
		in, size, err := openFile(name, cfg.Stdin)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		s.total += size
		s.files = append(s.files, in)
	}
	if len(s.files) == 0 {
		return nil, errors.Join(failed...)
	}
	for _, err := range failed {
		s.warn("%v; it is left out", err)
	}
	slices.SortStableFunc(s.files, func(a, b *pcapInput) int { return cmp.Compare(a.first.At, b.first.At) })
	return s, nil
}

func openFile(name string, stdin io.Reader) (*pcapInput, int64, error) {
	in := &pcapInput{name: name, closer: io.NopCloser(nil)}
	src, size := stdin, int64(0)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, 0, err
		}
		info, err := f.Stat()
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%s: is a directory, not a capture file", name)
		}
		if err != nil {
			return nil, 0, errors.Join(err, f.Close())
		}
		in.closer, src, size = f, f, info.Size()
	}
	if src == nil {
		return nil, 0, fmt.Errorf("%s: there is no standard input", name)
	}
	reader, err := pcapfile.NewReader(src)
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("%s: %w", name, err), in.closer.Close())
	}
	in.reader = reader
	in.err = reader.Next(&in.first)
	return in, size, nil
}

func (s *pcapSource) close() {
	for _, in := range s.files {
		_ = in.closer.Close() // opened for reading: nothing is lost
	}
}

func (s *pcapSource) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// read runs all packets through the pipeline.
func (s *pcapSource) read(ctx context.Context, recorder *exchange.Recorder, progress func(done, total int64)) (schema.Run, error) {
	s.recorder = recorder
	s.table = tcp.New(recorder.Open, recorder.Done)
	s.run = schema.Run{Source: "pcap", Clock: "packet time stamps", Precision: 1}
	var done int64
	for _, in := range s.files {
		s.run.Inputs = append(s.run.Inputs, filepath.Base(in.name))
		report := func(offset int64) {
			if progress != nil {
				progress(done+offset, s.total)
			}
		}
		if err := s.readFile(ctx, in, report); err != nil {
			return s.run, err
		}
		done += in.reader.Offset()
	}
	s.table.Finish()
	s.run.Warnings = s.warnings
	s.run.Ledger = s.ledger()
	return s.run, nil
}

// checkEvery is how many packets are read between looks at the context.
const checkEvery = 1 << 14

func (s *pcapSource) readFile(ctx context.Context, in *pcapInput, report func(offset int64)) error {
	pkt, err := &in.first, in.err
	for n := 0; err == nil; n++ {
		if n%checkEvery == 0 {
			if ctx.Err() != nil {
				return fmt.Errorf("read %s: %w", in.name, ctx.Err())
			}
			report(in.reader.Offset())
		}
		s.packet(pkt)
		err = in.reader.Next(pkt)
	}
	stats := in.reader.Stats()
	s.stats.Packets += stats.Packets
	s.stats.SkippedBlocks += stats.SkippedBlocks
	s.stats.BadBlocks += stats.BadBlocks
	s.stats.KernelDrops += stats.KernelDrops
	s.run.Precision = max(s.run.Precision, stats.Precision)
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
		{Name: "tcp_payload_bytes", Severity: info, Count: t.PayloadBytes, Doc: "captured payload of TCP segments"},
		{Name: "tcp_bytes_delivered", Severity: info, Count: t.Delivered, PartOf: "tcp_payload_bytes", Doc: "bytes put in order"},
		{Name: "tcp_bytes_duplicate", Severity: info, Count: t.Duplicate, PartOf: "tcp_payload_bytes", Doc: "bytes seen before: retransmissions and overlaps"},
		{Name: "tcp_bytes_after_close", Severity: info, Count: t.AfterClose, PartOf: "tcp_payload_bytes", Doc: "bytes of directions that had ended"},
		{Name: "tcp_bytes_out_of_window", Severity: bad, Count: t.OutOfWindow, PartOf: "tcp_payload_bytes", Doc: "bytes with sequence numbers that belong to no live connection"},
		{Name: "tcp_bytes_lost", Severity: loss, Count: t.Lost, Doc: "bytes that connections carried and the capture does not hold"},
	}
	return append(l, s.recorder.Ledger()...)
}
