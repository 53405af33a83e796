package llmapi

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"tokentrace/schema"
)

// walker steps through JSON without building values: per record of a stream a full
// decode costs more than everything else together. It checks the structure as far
// as it walks, not the grammar of every literal.
//
// After an error (bad) it stands at the end and every call returns at once.
type walker struct {
	b   []byte
	i   int
	bad bool
	// fresh is set between an opening bracket and the first member.
	fresh bool
}

func (w *walker) fail() {
	w.bad = true
	w.i = len(w.b)
}

// space passes over white space and returns the next byte, or 0 at the end.
func (w *walker) space() byte {
	for w.i < len(w.b) {
		switch c := w.b[w.i]; c {
		case ' ', '\t', '\n', '\r':
			w.i++
		default:
			return c
		}
	}
	return 0
}

// enter steps into an object or array and reports whether the value is one. A
// value of another type is passed over.
func (w *walker) enter(open byte) bool {
	if w.space() != open {
		w.skip()
		return false
	}
	w.i++
	w.fresh = true
	return true
}

// more reports whether a member or element follows; at the end it steps out.
func (w *walker) more(end byte) bool {
	c := w.space()
	fresh := w.fresh
	w.fresh = false
	switch {
	case c == end:
		w.i++
		return false
	case fresh && c != 0:
		return true
	case c == ',':
		w.i++
		if c := w.space(); c != end && c != 0 {
			return true
		}
	}
	w.fail()
	return false
}

// key reads the name of a member and the colon after it.
func (w *walker) key() []byte {
	k := w.str()
	if w.space() != ':' {
		w.fail()
		return nil
	}
	w.i++
	return k
}

// str reads a string and returns what stands between its quotes, escapes as they
// are. A value of another type is passed over and gives nil.
func (w *walker) str() []byte {
	if w.space() != '"' {
		w.skip()
		return nil
	}
	start := w.i + 1
	for at := start; ; {
		j := bytes.IndexByte(w.b[at:], '"')
		if j < 0 {
			w.fail()
			return nil
		}
		end := at + j
		slashes := 0
		for k := end - 1; k >= start && w.b[k] == '\\'; k-- {
			slashes++
		}
		if slashes%2 == 0 {
			w.i = end + 1
			return w.b[start:end]
		}
		at = end + 1
	}
}

// null reports whether the next value is null, and passes over it if so.
func (w *walker) null() bool {
	if w.space() == 'n' {
		w.literal()
		return true
	}
	return false
}

// integer reads a number, its fraction cut off. ok is false for any other value,
// which is passed over.
func (w *walker) integer() (n int64, ok bool) {
	c := w.space()
	if c != '-' && (c < '0' || c > '9') {
		w.skip()
		return 0, false
	}
	text := w.literal()
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || f > 1e18 || f < -1e18 {
		return 0, false
	}
	return int64(f), true
}

// maxCount is the largest number of tokens that is believed.
const maxCount = 1 << 40

// count reads a number of tokens. It is missing for any other value, and for numbers
// that no server can have counted.
func (w *walker) count() schema.Opt[int64] {
	n, ok := w.integer()
	if !ok || n < 0 || n > maxCount {
		return schema.None[int64]()
	}
	return schema.Some(n)
}

// number reads a number. ok is false for any other value, which is passed over.
func (w *walker) number() (f float64, ok bool) {
	c := w.space()
	if c != '-' && (c < '0' || c > '9') {
		w.skip()
		return 0, false
	}
	f, err := strconv.ParseFloat(string(w.literal()), 64)
	return f, err == nil
}

// boolean reads true or false. ok is false for any other value, which is passed over.
func (w *walker) boolean() (v, ok bool) {
	switch w.space() {
	case 't', 'f':
		return string(w.literal()) == "true", true
	}
	w.skip()
	return false, false
}

// literal reads a number, true, false or null.
func (w *walker) literal() []byte {
	start := w.i
	for w.i < len(w.b) {
		switch w.b[w.i] {
		case ',', '}', ']', ' ', '\t', '\n', '\r', ':', '"', '{', '[':
			return w.b[start:w.i]
		}
		w.i++
	}
	return w.b[start:w.i]
}

// skip passes over a value of any type.
func (w *walker) skip() {
	switch c := w.space(); {
	case c == '"':
		w.str()
	case c == '{' || c == '[':
		w.skipNested()
	case c == 't', c == 'f', c == 'n', c == '-', c >= '0' && c <= '9':
		w.literal()
	default:
		w.fail()
	}
}

// skipNested passes over an object or array by counting brackets.
func (w *walker) skipNested() {
	depth := 0
	for w.i < len(w.b) {
		switch w.b[w.i] {
		case '"':
			w.str()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				w.i++
				return
			}
		}
		w.i++
	}
	w.fail()
}

// done reports whether the text was walked to its end without an error.
func (w *walker) done() bool { return !w.bad && w.space() == 0 }

// Text returns a JSON string's text, given what stands between the quotes.
func Text(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	var text string
	if err := json.Unmarshal([]byte(`"`+string(raw)+`"`), &text); err != nil {
		return string(raw)
	}
	return text
}

// textLen returns the length in bytes of a JSON string's text in UTF-8, escapes
// resolved, given what stands between the quotes.
func textLen(raw []byte) int {
	if bytes.IndexByte(raw, '\\') < 0 {
		return len(raw)
	}
	n := 0
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 >= len(raw) {
			n++
			continue
		}
		i++
		if raw[i] != 'u' {
			n++
			continue
		}
		r := hex4(raw[i+1:])
		i += min(4, len(raw)-i-1)
		switch {
		case r >= 0xdc00 && r < 0xe000: // the second half of a pair, counted with the first
		case r >= 0xd800 && r < 0xdc00:
			n += 4
		default:
			n += max(1, utf8.RuneLen(r))
		}
	}
	return n
}

func hex4(b []byte) rune {
	v, err := strconv.ParseUint(string(b[:min(4, len(b))]), 16, 32)
	if err != nil {
		return utf8.RuneError
	}
	return rune(v)
}
