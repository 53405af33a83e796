package llmapi

import (
	"bytes"

	"tokentrace/schema"
)

// Stream reads the records of one response.
//
// Note: most records of a stream differ from the one before only inside one or two
// strings: the text, and padding. Where the bytes around those strings are the same,
// and no quote or backslash is in them, the JSON says the same but for the length of
// the text and need not be walked again. That costs a tenth.
type Stream struct {
	api   API
	last  []byte // the last record that was walked; empty where it is no pattern
	delta Delta  // what the last record said
}

// maxHoles is how many strings may differ between records of one pattern.
const maxHoles = 2

// pattern says which strings of a record may differ in the next one.
type pattern struct {
	holes [maxHoles]struct{ begin, end int } // what stands between their quotes, in order
	n     int
	texts int // how many of them are token-bearing
	text  int // which one is
}

// hole adds a string and returns its number.
func (p *pattern) hole(begin, end int) int {
	if p.n < maxHoles {
		p.holes[p.n].begin, p.holes[p.n].end = begin, end
	}
	p.n++
	return p.n - 1
}

// NewStream returns a reader for the records of an API.
func NewStream(api API) Stream { return Stream{api: api} }

// Record reads a record, which is not a terminal sentinel. The Delta is valid until the
// next call; ok is false, and it is empty, where data is not readable.
func (s *Stream) Record(data []byte) (d *Delta, ok bool) {
	d = &s.delta
	if n := s.same(data); n > 0 {
		d.Model = nil // named once
		d.TextBytes = int64(n)
		return d, true
	}
	s.last = s.last[:0]
	d.Reset()
	if !s.api.ParseRecord(data, d) {
		d.Reset() // half a record counts for nothing
		return d, false
	}
	s.learn(data, d)
	return d, true
}

// same returns the length of the text where data is the last record with other
// strings in its holes and some text, else 0.
func (s *Stream) same(data []byte) (text int) {
	if len(s.last) == 0 {
		return 0
	}
	at := 0
	p := &s.delta.pattern
	for i, hole := range p.holes[:p.n] {
		fixed := s.last[at:hole.begin]
		if !bytes.HasPrefix(data, fixed) {
			return 0
		}
		data = data[len(fixed):]
		n := bytes.IndexByte(data, '"')
		if n < 0 || bytes.IndexByte(data[:n], '\\') >= 0 {
			return 0
		}
		if i == p.text {
			text = n
		}
		data, at = data[n:], hole.end
	}
	if !bytes.Equal(data, s.last[at:]) {
		return 0
	}
	return text
}

// learn keeps a record as the pattern of the next ones, if it can be one: it bears
// one text and neither ends nor counts anything.
func (s *Stream) learn(data []byte, d *Delta) {
	p := &d.pattern
	if p.texts != 1 || p.n > maxHoles || d.Usage.Known() || d.Logprobs > 0 ||
		d.Kinds.Has(schema.KindFinish|schema.KindError|schema.KindTimings) {
		return
	}
	s.last = append(s.last, data...)
}
