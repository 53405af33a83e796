package http1

import (
	"bytes"
	"strconv"
	"strings"
)

// Head is a message head.
type Head struct {
	First int64 // delivery of the message's first byte, unix ns
	At    int64 // delivery of the head's last byte, unix ns

	Method string // of a request
	Target string // of a request, as sent
	Status int    // of a response
	Proto  string // such as "1.1"

	fields  []field
	chunked bool
	length  int64 // content-length, -1 where there is none
}

type field struct{ name, value string }

// Get returns the value of the first field of that name (lower case), or "".
func (h *Head) Get(name string) string {
	for _, f := range h.fields {
		if strings.EqualFold(f.name, name) {
			return f.value
		}
	}
	return ""
}

// Path returns the path of a request's target, without scheme, host, user, query,
// fragment and parameters.
func (h *Head) Path() string {
	path := h.Target
	if i := strings.IndexAny(path, "?#;"); i >= 0 {
		path = path[:i]
	}
	if user, rest, ok := strings.Cut(path, "@"); ok && !strings.Contains(strings.TrimLeft(user, "/"), "/") {
		path = "//" + rest // the part before named a user
	}
	if strings.HasPrefix(path, "/") {
		return path
	}
	if _, rest, ok := strings.Cut(path, "://"); ok { // absolute form, as proxies get it
		_, rest, _ = strings.Cut(rest, "/")
		return "/" + rest
	}
	return path
}

// Answer is what Starts says.
type Answer uint8

// The answers: the bytes do not start a message, may when more come, or do.
const (
	No Answer = iota
	Maybe
	Yes
)

// maxStart is how many bytes Starts needs at most to decide.
const maxStart = 9

// Starts reports whether b starts a message of the kind.
func Starts(kind Kind, b []byte) Answer {
	if kind == Responses {
		return prefix(b, "HTTP/1.")
	}
	best := No
	for _, method := range [...]string{
		"GET ", "POST ", "PUT ", "HEAD ", "PATCH ", "DELETE ", "OPTIONS ", "TRACE ", "CONNECT ",
	} {
		best = max(best, prefix(b, method))
	}
	return best
}

func prefix(b []byte, want string) Answer {
	switch {
	case len(b) >= len(want) && string(b[:len(want)]) == want:
		return Yes
	case len(b) < len(want) && want[:len(b)] == string(b):
		return Maybe
	default:
		return No
	}
}

// headEnd returns where the head at the start of b ends, or -1. A head ends with
// an empty line; CRLF and bare LF both end lines. from is where to begin looking.
func headEnd(b []byte, from int) int {
	for at := from; ; {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			return -1
		}
		at += i + 1
		switch rest := b[at:]; {
		case len(rest) >= 1 && rest[0] == '\n':
			return at + 1
		case len(rest) >= 2 && rest[0] == '\r' && rest[1] == '\n':
			return at + 2
		}
	}
}

// parseHead reads a complete head.
func parseHead(kind Kind, raw []byte) (*Head, bool) {
	lines := strings.Split(string(raw), "\n")
	h := &Head{length: -1}
	start := strings.TrimSuffix(lines[0], "\r")
	if kind == Requests && !h.requestLine(start) || kind == Responses && !h.statusLine(start) {
		return nil, false
	}
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\r"), ":")
		if !ok || name == "" || name[0] == ' ' || name[0] == '\t' {
			continue // the empty line, a folded line, garbage: nothing that framing hangs on
		}
		h.fields = append(h.fields, field{strings.TrimSpace(name), strings.TrimSpace(value)})
	}
	return h, h.framing()
}

func (h *Head) requestLine(line string) bool {
	method, rest, ok := strings.Cut(line, " ")
	i := strings.LastIndexByte(rest, ' ')
	if !ok || i < 0 {
		return false
	}
	h.Method, h.Target = method, rest[:i]
	return h.proto(rest[i+1:])
}

func (h *Head) statusLine(line string) bool {
	proto, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(code)
	if err != nil || len(code) != 3 || n < 100 {
		return false
	}
	h.Status = n
	return h.proto(proto)
}

func (h *Head) proto(s string) bool {
	version, ok := strings.CutPrefix(s, "HTTP/1.")
	if !ok || len(version) != 1 {
		return false
	}
	h.Proto = "1." + version
	return true
}

// framing reads the fields that say where the body ends.
func (h *Head) framing() bool {
	for _, f := range h.fields {
		switch {
		case strings.EqualFold(f.name, "transfer-encoding"):
			coding := f.value[strings.LastIndexByte(f.value, ',')+1:]
			h.chunked = strings.EqualFold(strings.TrimSpace(coding), "chunked")
		case strings.EqualFold(f.name, "content-length"):
			value, _, _ := strings.Cut(f.value, ",") // a list of equal values is one (RFC 9110, 8.6)
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			if err != nil || n < 0 || h.length >= 0 && h.length != n {
				return false
			}
			h.length = n
		}
	}
	return true
}

// maxChunkDigits bounds a chunk size to what fits an int64.
const maxChunkDigits = 15

// parseChunkSize reads the line before a chunk; extensions are passed over.
func parseChunkSize(line []byte) (size int64, ok bool) {
	if i := bytes.IndexByte(line, ';'); i >= 0 {
		line = line[:i]
	}
	line = bytes.TrimSpace(line)
	for len(line) > 1 && line[0] == '0' {
		line = line[1:]
	}
	if len(line) == 0 || len(line) > maxChunkDigits {
		return 0, false
	}
	for _, d := range line {
		switch {
		case d >= '0' && d <= '9':
			d -= '0'
		case d >= 'a' && d <= 'f':
			d -= 'a' - 10
		case d >= 'A' && d <= 'F':
			d -= 'A' - 10
		default:
			return 0, false
		}
		size = size<<4 | int64(d)
	}
	return size, true
}

// looksLikeChunk reports whether data starts with a chunk: a size line, and the
// line end after the chunk's data where data reaches so far.
func looksLikeChunk(data []byte) bool {
	i := bytes.IndexByte(data, '\n')
	if i < 2 || data[i-1] != '\r' {
		return false
	}
	size, ok := parseChunkSize(data[:i-1])
	if !ok {
		return false
	}
	rest := data[i+1:]
	if size >= int64(len(rest)) {
		return true
	}
	return size == 0 || rest[size] == '\r'
}
