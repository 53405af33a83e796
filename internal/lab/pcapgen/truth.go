package pcapgen

import "slices"

// Kind says what a request asks for.
type Kind string

// The kinds of requests.
const (
	KindChat   Kind = "chat"   // POST /v1/chat/completions, streamed
	KindHealth Kind = "health" // GET /health, not streamed
)

// Request is the truth about one request.
//
// Instants are capture times in nanoseconds since the Unix epoch, in the
// resolution of the capture. An item is delivered when each byte up to and
// including its last one has been captured at least once: the moment at which an
// in-order receiver at the capture point could have consumed it.
type Request struct {
	Index      int    `json:"index"`      // in the order of planning, from 0
	Connection int    `json:"connection"` // in the order of opening, from 0
	Client     string `json:"client"`     // address:port
	Kind       Kind   `json:"kind"`
	ID         string `json:"id,omitempty"` // that the answer gives itself; chat only

	PromptTokens int `json:"prompt_tokens"`
	OutputTokens int `json:"output_tokens"`

	RequestStart int64 `json:"request_start_unix_ns"` // first byte of the request captured
	RequestEnd   int64 `json:"request_end_unix_ns"`   // whole request captured
	Head         int64 `json:"response_head_unix_ns"` // response head delivered
	StreamEnd    int64 `json:"stream_end_unix_ns"`    // last byte of the response delivered

	// Events is when each event was delivered, in the order of the stream: the
	// role, one event for each output token, the finish reason, the usage and
	// [DONE]. Empty for KindHealth.
	Events []int64 `json:"events_unix_ns,omitempty"`
	// Seen is when the last byte of each event was first captured. Nil if that
	// is the same as Events, that is, without loss and reordering.
	Seen []int64 `json:"seen_unix_ns,omitempty"`
}

// Tokens is when the events that carry text were delivered.
func (r *Request) Tokens() []int64 {
	if len(r.Events) == 0 {
		return nil
	}
	return r.Events[1 : 1+r.OutputTokens]
}

// readTimes fills in when the answer was delivered.
func (r *Request) readTimes(segs []segment, a *answer) {
	k := clock{segs: segs}
	r.Head, _ = k.at(a.head)
	r.Events = make([]int64, len(a.events))
	seen := make([]int64, len(a.events))
	for i, e := range a.events {
		r.Events[i], seen[i] = k.at(e.end)
	}
	r.StreamEnd, _ = k.at(a.size)
	if !slices.Equal(r.Events, seen) {
		r.Seen = seen
	}
}

// clock answers, for ends of items asked in rising order, when all bytes before
// the end were captured and when the last of them was.
type clock struct {
	segs []segment
	i    int
	max  int64
}

func (k *clock) at(end int) (delivered, seen int64) {
	for {
		s := k.segs[k.i]
		k.max = max(k.max, s.at)
		if s.end >= end {
			return k.max, s.at
		}
		k.i++
	}
}

// countSplit counts the events that begin and end in different segments.
func countSplit(segs []segment, events []span) (n int64) {
	i := 0
	for _, e := range events {
		for segs[i].end < e.end {
			i++
		}
		if segs[i].off > e.off {
			n++
		}
	}
	return n
}
