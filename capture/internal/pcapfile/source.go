package pcapfile

import "io"

const bufferSize = 1 << 20

// source is a window on a file: what peek returns stays valid until the next peek,
// also when it has been passed over.
//
// Note: bufio.Reader keeps what it returned valid only until the bytes are passed over
// and grows no further than its buffer, so that a packet took two more calls.
type source struct {
	r          io.Reader
	buf        []byte
	start, end int   // of what is there and not passed over
	offset     int64 // of start in the file
}

// peek returns the next n bytes, or fewer with an error.
func (s *source) peek(n int) ([]byte, error) {
	if s.end-s.start >= n {
		return s.buf[s.start : s.start+n], nil
	}
	err := s.fill(n)
	return s.buf[s.start:min(s.start+n, s.end)], err
}

// fill reads until n bytes are there. The buffer grows with what the file holds,
// not with what a length field claims.
func (s *source) fill(n int) error {
	s.end = copy(s.buf, s.buf[s.start:s.end])
	s.start = 0
	for s.end < n {
		if s.end == len(s.buf) {
			s.buf = append(s.buf, make([]byte, len(s.buf))...)
		}
		k, err := s.r.Read(s.buf[s.end:])
		s.end += k
		if err != nil && s.end < n {
			return err
		}
	}
	return nil
}

// advance passes over n bytes that peek returned.
func (s *source) advance(n int) {
	s.start += n
	s.offset += int64(n)
}
