package pcapgen

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// half is what was captured of one direction of one connection.
type half struct {
	first uint32 // sequence number of the first data byte
	segs  []arrival
}

type arrival struct {
	at   int64
	off  int
	data []byte
}

// read decodes the capture with another library, checksums included.
func read(t *testing.T, file []byte) (map[string]*half, int64) {
	t.Helper()
	r, err := pcapgo.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	halves := make(map[string]*half)
	var packets, last int64
	for {
		data, info, err := r.ReadPacketData()
		if err == io.EOF {
			return halves, packets
		}
		if err != nil {
			t.Fatal(err)
		}
		packets++
		at := info.Timestamp.UnixNano()
		if at < last || info.CaptureLength != info.Length {
			t.Fatalf("packet %d: time %d after %d, %d of %d bytes", packets, at, last, info.CaptureLength, info.Length)
		}
		last = at
		p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.Default)
		if err := p.ErrorLayer(); err != nil {
			t.Fatalf("packet %d: %v", packets, err.Error())
		}
		if err := p.TransportLayer().(*layers.TCP).SetNetworkLayerForChecksum(p.NetworkLayer()); err != nil {
			t.Fatal(err)
		}
		err, wrong := p.VerifyChecksums()
		if err != nil || len(wrong) > 0 {
			t.Fatalf("packet %d: checksums: %v %v", packets, err, wrong)
		}
		add(halves, p, at)
	}
}

func add(halves map[string]*half, p gopacket.Packet, at int64) {
	ip := p.NetworkLayer().(*layers.IPv4)
	tcp := p.TransportLayer().(*layers.TCP)
	key := fmt.Sprintf("%s:%d>%s:%d", ip.SrcIP, tcp.SrcPort, ip.DstIP, tcp.DstPort)
	h := halves[key]
	if tcp.SYN {
		halves[key] = &half{first: tcp.Seq + 1}
		return
	}
	if len(tcp.Payload) > 0 {
		h.segs = append(h.segs, arrival{at, int(tcp.Seq - h.first), tcp.Payload})
	}
}

// stream puts the direction together. deliveredAt says of each byte when it and
// all before it had been captured.
func (h *half) stream(t *testing.T) (data []byte, deliveredAt []int64) {
	t.Helper()
	size := 0
	for _, s := range h.segs {
		size = max(size, s.off+len(s.data))
	}
	data, deliveredAt = make([]byte, size), make([]int64, size)
	slices.SortStableFunc(h.segs, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	for _, s := range h.segs {
		for i, c := range s.data {
			if deliveredAt[s.off+i] == 0 {
				data[s.off+i], deliveredAt[s.off+i] = c, s.at
			}
		}
	}
	for i, at := range deliveredAt {
		if at == 0 {
			t.Fatalf("byte %d was never captured", i)
		}
		if i > 0 {
			deliveredAt[i] = max(at, deliveredAt[i-1])
		}
	}
	return data, deliveredAt
}

func TestCaptureHoldsTheTruth(t *testing.T) {
	for name, o := range map[string]Options{"small": small(), "rough": rough()} {
		t.Run(name, func(t *testing.T) {
			file, truth, sum := generate(t, o)
			halves, packets := read(t, file)
			if packets != sum.Packets {
				t.Errorf("%d packets, the summary says %d", packets, sum.Packets)
			}
			server := fmt.Sprintf("10.0.0.10:%d", o.Port)
			var payload int64
			for _, requests := range byClient(truth) {
				client := requests[0].Client
				up, upAt := halves[client+">"+server].stream(t)
				down, downAt := halves[server+">"+client].stream(t)
				payload += int64(len(up) + len(down))
				checkRequests(t, requests, up, upAt)
				checkAnswers(t, requests, down, downAt)
			}
			if payload != sum.PayloadBytes {
				t.Errorf("%d bytes of payload, the summary says %d", payload, sum.PayloadBytes)
			}
		})
	}
}

// byClient groups requests by connection; ports are not used twice in so small a
// capture.
func byClient(truth []*Request) map[string][]*Request {
	m := make(map[string][]*Request)
	for _, r := range truth {
		m[r.Client] = append(m[r.Client], r)
	}
	return m
}

// position counts how much of a stream is read through a bufio.Reader.
type position struct {
	r    *bytes.Reader
	size int
	buf  *bufio.Reader
}

func newPosition(data []byte) *position {
	p := &position{r: bytes.NewReader(data), size: len(data)}
	p.buf = bufio.NewReader(p.r)
	return p
}

func (p *position) offset() int { return p.size - p.r.Len() - p.buf.Buffered() }

func checkRequests(t *testing.T, requests []*Request, data []byte, at []int64) {
	t.Helper()
	p := newPosition(data)
	for _, r := range requests {
		start := p.offset()
		req, err := http.ReadRequest(p.buf)
		if err != nil {
			t.Fatalf("request %d: %v", r.Index, err)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Fatalf("request %d: %v", r.Index, err)
		}
		want := map[Kind]string{KindChat: "POST /v1/chat/completions", KindHealth: "GET /health"}[r.Kind]
		if got := req.Method + " " + req.URL.Path; got != want {
			t.Errorf("request %d: %s, want %s", r.Index, got, want)
		}
		if r.Kind == KindChat && strings.Count(string(body), " ") < r.PromptTokens-1 {
			t.Errorf("request %d: fewer than %d words", r.Index, r.PromptTokens)
		}
		if end := at[p.offset()-1]; end != r.RequestEnd || at[start] != r.RequestStart {
			t.Errorf("request %d: captured %d to %d, truth %d to %d", r.Index, at[start], end, r.RequestStart, r.RequestEnd)
		}
	}
	if p.offset() != len(data) {
		t.Errorf("%d bytes after the last request", len(data)-p.offset())
	}
}

func checkAnswers(t *testing.T, requests []*Request, data []byte, at []int64) {
	t.Helper()
	p := newPosition(data)
	for _, r := range requests {
		start := p.offset()
		resp, err := http.ReadResponse(p.buf, nil)
		if err != nil {
			t.Fatalf("response %d: %v", r.Index, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("response %d: %v", r.Index, err)
		}
		message := data[start:p.offset()]
		head := bytes.Index(message, []byte("\r\n\r\n")) + 4
		if got := at[start+head-1]; got != r.Head {
			t.Errorf("response %d: head at %d, truth %d", r.Index, got, r.Head)
		}
		if got := at[p.offset()-1]; got != r.StreamEnd {
			t.Errorf("response %d: end at %d, truth %d", r.Index, got, r.StreamEnd)
		}
		checkEvents(t, r, body, message, at[start:])
	}
	if p.offset() != len(data) {
		t.Errorf("%d bytes after the last response", len(data)-p.offset())
	}
}

// checkEvents finds the end of each event in the body, and in the message the
// byte that it came with.
func checkEvents(t *testing.T, r *Request, body, message []byte, at []int64) {
	t.Helper()
	if got := bytes.Count(body, []byte("\n\n")); got != len(r.Events) {
		t.Fatalf("response %d: %d events, truth %d", r.Index, got, len(r.Events))
	}
	if r.Kind != KindChat {
		return
	}
	if !bytes.HasSuffix(body, []byte("data: [DONE]\n\n")) {
		t.Errorf("response %d does not end with [DONE]", r.Index)
	}
	offsets := bodyOffsets(t, message)
	end := 0
	for i, want := range r.Events {
		end += bytes.Index(body[end:], []byte("\n\n")) + 2
		if got := at[offsets[end-1]]; got != want {
			t.Errorf("response %d: event %d at %d, truth %d", r.Index, i, got, want)
		}
	}
}

// bodyOffsets says of each byte of a chunked body where in the message it is.
func bodyOffsets(t *testing.T, message []byte) (offsets []int) {
	t.Helper()
	pos := bytes.Index(message, []byte("\r\n\r\n")) + 4
	for {
		line := bytes.Index(message[pos:], []byte("\r\n"))
		size, err := strconv.ParseUint(string(message[pos:pos+line]), 16, 31)
		if err != nil {
			t.Fatal(err)
		}
		if size == 0 {
			return offsets
		}
		pos += line + 2
		for range size {
			offsets = append(offsets, pos)
			pos++
		}
		pos += 2
	}
}
