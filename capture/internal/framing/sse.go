// Package framing cuts response bodies into records and dates them.
//
// It knows how records are framed (server-sent events); it does not know what
// they say. A record's time is the delivery of the byte that completed it.
package framing

import (
	"bytes"

	"tokentrace/capture/internal/stream"
)

// Record is one framed record of a body.
type Record struct {
	Event []byte // event type, empty where none was named
	Data  []byte // what the record says; valid only during the call
	// Comment is set for an SSE comment line, which is no record. Data is its text.
	Comment bool
	// Bare is set for a line of JSON that stands outside any field: some servers
	// write errors so in mid-stream.
	Bare bool

	First   int64 // delivery of the record's first byte, unix ns
	At      int64 // delivery of the byte that completed it, unix ns
	Seen    int64 // first sight of that byte, unix ns
	Segment int32 // segment that holds that byte
	Bytes   int   // length on the wire after transfer decoding, line ends included
}

const maxRecord = 16 << 20

// SSE is an incremental parser of server-sent events as the HTML standard has them
// (section 9.2.6): lines end with CR, LF or CRLF and with nothing else, several
// data fields are joined by LF, a record ends with an empty line.
type SSE struct {
	emit func(*Record)

	line     []byte // an incomplete line
	data     []byte // the data of the record so far: a slice of the chunk, or of own
	own      []byte // holds data that must outlive a chunk
	event    []byte
	hasData  bool
	open     bool // a byte of the record, or of a comment, was seen
	begun    bool // the first line is read
	skipLF   bool // the last byte was a CR
	seeking  bool // after a loss: the next line may stand in the middle of a record
	skipping bool // after a loss or an oversized record: to the next empty line

	rec Record // the one under construction; emitted by reference

	// Oversized counts records beyond the size limit, which are passed over.
	Oversized int64
}

// NewSSE returns a parser that calls emit for each record and comment.
func NewSSE(emit func(*Record)) *SSE { return &SSE{emit: emit} }

// Data takes the next piece of the body, whose times c tells.
func (s *SSE) Data(data []byte, c *stream.Chunk) {
	if s.skipLF && len(data) > 0 {
		s.skipLF = false
		if data[0] == '\n' {
			data = data[1:]
		}
	}
	for len(data) > 0 {
		if !s.open {
			s.open = true
			s.rec.First = c.At
		}
		s.rec.At, s.rec.Seen, s.rec.Segment = c.At, c.Seen, c.Segment
		end := lineEnd(data)
		if end < 0 {
			s.rec.Bytes += len(data)
			s.hold(data)
			break
		}
		line, cr := data[:end], data[end] == '\r'
		s.rec.Bytes += end + 1
		data = data[end+1:]
		if cr && len(data) > 0 && data[0] == '\n' {
			data = data[1:]
		} else {
			s.skipLF = cr && len(data) == 0
		}
		s.readLine(line)
	}
	s.keep()
}

// lineEnd returns the position of the first CR or LF, or -1.
func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf < 0 {
		return bytes.IndexByte(b, '\r')
	}
	if cr := bytes.IndexByte(b[:lf], '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// hold keeps an incomplete line.
func (s *SSE) hold(data []byte) {
	if len(s.line)+len(s.data)+len(data) > maxRecord {
		s.drop()
		return
	}
	s.line = append(s.line, data...)
}

// drop passes over a record that is too large.
func (s *SSE) drop() {
	if !s.skipping {
		s.Oversized++
	}
	s.reset()
	s.open, s.skipping = true, true
}

// keep copies data that still points into the chunk, which is about to go.
func (s *SSE) keep() {
	if s.hasData && len(s.data) > 0 && (len(s.own) == 0 || &s.data[0] != &s.own[0]) {
		s.own = append(s.own[:0], s.data...)
		s.data = s.own
	}
}

// readLine takes a complete line, whose beginning may be in s.line.
func (s *SSE) readLine(line []byte) {
	if len(s.line) > 0 {
		s.keep()
		s.line = append(s.line, line...)
		line = s.line
		defer func() { s.line = s.line[:0] }()
	}
	if !s.begun {
		s.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	if s.seeking && len(line) > 0 {
		s.seeking = false
		s.skipping = !startsField(line)
	}
	switch {
	case len(line) == 0:
		s.dispatch()
	case s.skipping:
	case line[0] == ':':
		s.comment(line)
	default:
		s.field(line)
	}
}

// startsField reports whether a line is the start of a record, not its middle.
func startsField(line []byte) bool {
	for _, name := range [...]string{"data:", "event:", "id:", "retry:", ":"} {
		if len(line) >= len(name) && string(line[:len(name)]) == name {
			return true
		}
	}
	return false
}

func (s *SSE) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		s.addData(value, len(s.line) > 0)
	case "event":
		s.event = append(s.event[:0], value...)
	default:
		if line[0] == '{' {
			s.bare(line)
		}
	}
}

// addData adds a data field. transient says that value lies in a buffer that the
// next line overwrites.
func (s *SSE) addData(value []byte, transient bool) {
	if len(s.data)+len(value) > maxRecord {
		s.drop()
		return
	}
	switch {
	case s.hasData:
		s.keep()
		if len(s.data) == 0 {
			s.own = s.own[:0]
		}
		s.own = append(append(s.own, '\n'), value...)
		s.data = s.own
	case transient:
		s.own = append(s.own[:0], value...)
		s.data = s.own
	default:
		s.data = value
	}
	s.hasData = true
}

// dispatch ends a record at an empty line; without a data field it is none.
func (s *SSE) dispatch() {
	if s.hasData && !s.skipping {
		s.rec.Event, s.rec.Data = s.event, s.data
		s.emit(&s.rec)
	}
	s.reset()
}

// comment emits a comment line. It stands between the lines of a record or
// between records, and belongs to none.
func (s *SSE) comment(line []byte) {
	rec := s.rec
	rec.Comment, rec.Data, rec.Bytes = true, line[1:], len(line)+1
	s.emit(&rec)
	if !s.hasData && len(s.event) == 0 {
		s.open, s.rec.Bytes = false, 0
	}
}

func (s *SSE) bare(line []byte) {
	rec := s.rec
	rec.Bare, rec.Data, rec.Bytes = true, line, len(line)+1
	s.emit(&rec)
}

func (s *SSE) reset() {
	s.data, s.event, s.line = nil, s.event[:0], s.line[:0]
	s.hasData, s.open, s.skipping = false, false, false
	s.rec.Bytes = 0
}

// Lost says that bytes are missing before the next piece: the record under
// construction is lost, and the next line may stand in the middle of another.
func (s *SSE) Lost() {
	s.reset()
	s.skipLF, s.seeking = false, true
}

// End ends the body. The standard does not dispatch a record without an empty line
// after it; it is returned, for the caller to decide, with the number of bytes
// after the last complete record. The record is nil where no data field was begun.
func (s *SSE) End() (tail *Record, bytes int) {
	bytes = s.rec.Bytes
	if field := []byte("data:"); len(s.line) >= len(field) && string(s.line[:len(field)]) == string(field) {
		s.readLine(nil)
	}
	if !s.hasData || s.skipping {
		return nil, bytes
	}
	rec := s.rec
	rec.Event, rec.Data = s.event, s.data
	return &rec, bytes
}
