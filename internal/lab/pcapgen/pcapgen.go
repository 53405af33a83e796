// Package pcapgen writes synthetic packet captures of LLM serving traffic
// together with their exact ground truth.
//
// A capture is a classic pcap file, Ethernet/IPv4/TCP with valid checksums:
// concurrent clients open connections, send OpenAI chat completions and get the
// answers as server-sent events over HTTP/1.1 chunked encoding. Handshakes, TCP
// timestamps, acknowledgements and keep-alive reuse are there, and so is a chosen
// share of duplicated, lost and retransmitted, merged and reordered segments.
// Texts are random words.
//
// The work is done step by step: a client plans one request (http.go composes
// its bytes, tcp.go cuts them into packets, truth.go reads off the times), and
// the earliest planned packet of all clients is written (frame.go) until none is
// left. Memory grows with the number of clients, not with the length of the
// capture.
//
// Output is a function of the Options, Seed included, on one architecture;
// another one may round a logarithm differently.
//
// The package knows nothing of how a capture is decoded: it is what decoders are
// measured against.
package pcapgen

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// Options says what traffic to write. DefaultOptions has a busy, healthy server.
//
// Shares and chances are in [0, 1].
type Options struct {
	// Size is the number of bytes of capture after which no request starts;
	// 0 sets no limit. Running requests are finished, so that the file is
	// somewhat larger.
	Size int64
	// Requests is the number of requests after which none starts; 0 sets no
	// limit. One of Size and Requests must be set.
	Requests int
	// Conc is the number of clients. A client has one request in flight at a
	// time. At most 65536.
	Conc int
	// Seed selects the random numbers.
	Seed uint64
	// Start is about when the capture begins, in nanoseconds since the Unix
	// epoch; clients start over the two seconds that follow.
	Start int64
	// Port is the server's TCP port.
	Port uint16
	// Nano writes times in nanoseconds instead of microseconds.
	Nano bool

	// Tokens is the mean number of output tokens of an answer, one per event.
	Tokens int
	// TokenSpread is the standard deviation of Tokens, relative to it.
	TokenSpread float64
	// PromptTokens is the median number of prompt tokens, one word each;
	// log-normal with sigma 0.9, at most 16000.
	PromptTokens int
	// RequestsPerConn is the mean number of requests on one connection, at
	// least 1.
	RequestsPerConn float64
	// Plain is the share of requests that are GET /health, not streamed.
	Plain float64

	// TTFT is the time from the end of the request to the response head with an
	// empty prompt; log-normal with sigma 0.15.
	TTFT time.Duration
	// TTFTPerPromptToken is what each prompt token adds to TTFT.
	TTFTPerPromptToken time.Duration
	// ITL is the median time between two tokens; log-normal.
	ITL time.Duration
	// ITLSigma is the sigma of the logarithm of ITL.
	ITLSigma float64
	// Stall is the chance that a token comes 5 to 30 times late.
	Stall float64
	// Coalesce is the chance that the server sends 2 to 8 events in one write.
	Coalesce float64
	// Rechunk is the share of responses whose HTTP chunks cut every event in
	// two, as some proxies do.
	Rechunk float64

	// Lost is the chance that a data segment is captured only as its
	// retransmission.
	Lost float64
	// Dup is the chance that a data segment is captured twice.
	Dup float64
	// Reorder is the chance that two back-to-back data segments are swapped.
	Reorder float64
	// AckEvery is the number of data segments that one acknowledgement answers.
	AckEvery int
	// MSS is the largest TCP payload, in bytes.
	MSS int

	// Truth is called with each request once it is planned, which is before its
	// packets are written; nil asks for none. The Request is not used
	// afterwards. An error ends the generation.
	Truth func(*Request) error
}

// DefaultOptions describes 1000 requests of 64 clients over a good network.
func DefaultOptions() Options {
	return Options{
		Requests: 1000, Conc: 64, Seed: 1, Start: 1_750_000_000_000_000_000, Port: 8000,
		Tokens: 300, TokenSpread: 0.3, PromptTokens: 400, RequestsPerConn: 8, Plain: 0.02,
		TTFT: 60 * time.Millisecond, TTFTPerPromptToken: 120 * time.Microsecond,
		ITL: 25 * time.Millisecond, ITLSigma: 0.18, Stall: 0.002, Coalesce: 0.01,
		Lost: 0.0005, Dup: 0.0005, Reorder: 0.02, AckEvery: 1, MSS: 1448,
	}
}

func (o *Options) check() error {
	for name, p := range map[string]float64{"plain": o.Plain, "stall": o.Stall, "coalesce": o.Coalesce,
		"rechunk": o.Rechunk, "lost": o.Lost, "dup": o.Dup, "reorder": o.Reorder} {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("%s is %v, not in [0, 1]", name, p)
		}
	}
	switch {
	case o.Size <= 0 && o.Requests <= 0:
		return errors.New("neither a size nor a number of requests is set")
	case o.Conc < 1 || o.Conc > 1<<16:
		return fmt.Errorf("%d clients, not 1 to 65536", o.Conc)
	case o.MSS < 1 || o.MSS > 65000:
		return fmt.Errorf("a largest payload of %d bytes, not 1 to 65000", o.MSS)
	case o.AckEvery < 1:
		return fmt.Errorf("an acknowledgement for every %d segments, not for 1 or more", o.AckEvery)
	case o.Port == 0:
		return errors.New("the port is 0")
	case o.Start < 0 || o.Start/1e9 >= 1<<32-1e6:
		return fmt.Errorf("a start at %d ns, which a capture file cannot express", o.Start)
	}
	return nil
}

// Summary counts what was written.
type Summary struct {
	Packets      int64 `json:"packets"`
	Bytes        int64 `json:"bytes"`         // size of the capture
	PayloadBytes int64 `json:"payload_bytes"` // TCP payload, retransmissions apart
	Connections  int   `json:"connections"`
	Requests     int   `json:"requests"`
	Streams      int   `json:"streams"`      // requests answered with a stream of events
	Events       int64 `json:"events"`       // server-sent events, [DONE] included
	TokenEvents  int64 `json:"token_events"` // those that carry text
	SplitEvents  int64 `json:"split_events"` // those that do not lie in one segment
	Duplicated   int   `json:"duplicated_segments"`
	Late         int   `json:"late_segments"`          // captured only as a retransmission
	Merged       int   `json:"merged_retransmissions"` // retransmissions of two segments in one
	Swapped      int   `json:"swapped_segments"`       // pairs captured in the wrong order
	First        int64 `json:"first_unix_ns"`          // time of the first packet
	Last         int64 `json:"last_unix_ns"`           // time of the last packet
}

// generator is the state of one Generate.
type generator struct {
	Options
	sum Summary
	out *writer
}

// Generate writes a capture to w.
func Generate(w io.Writer, o Options) (Summary, error) {
	if err := o.check(); err != nil {
		return Summary{}, fmt.Errorf("generate capture: %w", err)
	}
	g := &generator{Options: o, out: newWriter(w, o.Nano, o.Port)}
	if err := g.run(); err != nil {
		return g.sum, fmt.Errorf("generate capture: %w", err)
	}
	return g.sum, nil
}

func (g *generator) run() error {
	var clients clientHeap
	for i := range g.Conc {
		rng := rand.New(rand.NewPCG(g.Seed, uint64(i)+1))
		c := &client{id: i, rng: rng, now: g.Start + int64(rng.Float64()*2e9)}
		more, err := g.step(c)
		if err != nil {
			return err
		}
		if more {
			clients = append(clients, c)
		}
	}
	heap.Init(&clients)
	for len(clients) > 0 {
		if err := g.writeNext(&clients); err != nil {
			return err
		}
	}
	return g.out.flush()
}

// writeNext writes the earliest packet that is planned and, when it was its
// client's last one, has the client plan its next step.
func (g *generator) writeNext(clients *clientHeap) error {
	c := (*clients)[0]
	p := &c.queue[c.pos]
	if err := g.out.packet(c.conn, p); err != nil {
		return err
	}
	if g.sum.Packets == 0 {
		g.sum.First = p.at
	}
	g.sum.Last = p.at
	g.sum.Packets++
	g.sum.Bytes = g.out.bytes
	c.pos++
	if c.pos == len(c.queue) {
		more, err := g.step(c)
		if err != nil {
			return err
		}
		if !more {
			heap.Pop(clients)
			return nil
		}
	}
	heap.Fix(clients, 0)
	return nil
}

// full says that no further request may start.
func (g *generator) full() bool {
	return g.Requests > 0 && g.sum.Requests >= g.Requests || g.Size > 0 && g.out.bytes >= g.Size
}

// round gives t the resolution of the capture.
func (g *generator) round(t int64) int64 {
	if g.Nano {
		return t
	}
	return t / 1000 * 1000
}
