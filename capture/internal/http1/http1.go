// Package http1 cuts one direction of a connection into HTTP/1.x messages.
//
// It knows message framing (RFC 9112): heads, chunked, content-length and
// close-delimited bodies, interim responses, pipelining; and how to find the next
// message where the capture began midway or lost bytes. It does not know which
// response answers which request (package exchange) nor what bodies mean.
//
// HTTP is recognised by its bytes, never by a port. A Parser is pushed chunks and
// pushes what it finds; it gives the same for any cut of the same bytes.
package http1

import (
	"bytes"

	"tokentrace/capture/internal/stream"
)

// Kind is what a Parser reads: requests or responses.
type Kind uint8

// The kinds of messages.
const (
	Requests Kind = iota
	Responses
)

// Receiver takes what a Parser finds, in the order of the bytes. Slices are valid
// only during the call.
type Receiver interface {
	// Head is called at the end of each message head, interim responses included.
	// It returns true where no body follows whatever the head says: a response to HEAD.
	Head(h *Head) (noBody bool)
	// Body brings a piece of the body after transfer decoding; c tells its times.
	Body(data []byte, c *stream.Chunk)
	// Lost says that the capture lacks n bytes of the body before the next piece.
	Lost(n int64)
	// End is called when the message is complete, at the delivery of its last byte.
	End(at int64)
	// Broken says that the message cannot be followed further.
	Broken(at int64, why string)
}

// Why a message is broken.
const (
	WhyGap       = "gap"        // the capture lost bytes that frame it
	WhySyntax    = "bad_http"   // it is no HTTP
	WhyClosed    = "closed"     // its direction ended first
	WhyHeadLimit = "head_limit" // its head is too large
)

const maxHead = 256 << 10

type state uint8

const (
	seek        state = iota // looks for a message head at the start of a chunk
	between                  // after a message: a head comes, or nothing
	head                     // in a head
	lengthBody               // in a body of known length
	closeBody                // in a body that ends with the direction
	chunkSize                // in a line that tells the size of a chunk
	chunkData                // in the data of a chunk
	chunkEnd                 // in the line end after it
	trailer                  // in the trailer section
	chunkSeek                // in a chunked body after a loss: looks for a chunk at the start of a segment
	passthrough              // another protocol took over (101, CONNECT)
)

// Parser reads one direction.
type Parser struct {
	kind  Kind
	to    Receiver
	state state
	left  int64  // bytes left of the body or chunk
	buf   []byte // an incomplete head, line or probe
	first int64  // delivery of the first byte of the message
	lost  bool   // the place in the stream of messages is not known

	// Skipped counts bytes that belong to no message.
	Skipped int64
	// SawHTTP is set once a message head was read.
	SawHTTP bool
}

// New returns a Parser that begins at the first byte of a direction, or midway.
func New(kind Kind, to Receiver, midway bool) *Parser {
	return &Parser{kind: kind, to: to, lost: midway}
}

// Data takes the next chunk of the direction.
func (p *Parser) Data(c *stream.Chunk) {
	if c.Gap > 0 {
		p.gap(c)
	}
	data := c.Data
	switch p.state {
	case seek:
		data = p.probe(data, c)
	case chunkSeek:
		data = p.probeChunk(data, c)
	}
	for len(data) > 0 {
		data = p.step(data, c)
	}
}

// step reads on in the present state and returns what is left of data.
func (p *Parser) step(data []byte, c *stream.Chunk) []byte {
	switch p.state {
	case between:
		return p.begin(data, c)
	case head:
		return p.readHead(data, c)
	case lengthBody, chunkData:
		return p.readBody(data, c)
	case closeBody:
		p.to.Body(data, c)
		return nil
	case chunkSize:
		return p.readChunkSize(data, c)
	case chunkEnd:
		return p.readChunkEnd(data, c)
	case trailer:
		return p.readTrailer(data, c)
	default: // seek, chunkSeek, passthrough: nothing to read in the rest of the chunk
		p.Skipped += int64(len(data))
		return nil
	}
}

// probe looks for the start of a message in a chunk, which may hold just the
// beginning of one.
func (p *Parser) probe(data []byte, c *stream.Chunk) []byte {
	if len(p.buf) == 0 {
		p.first = c.At
	}
	held := len(p.buf)
	p.buf = append(p.buf, data[:min(len(data), maxStart-held)]...)
	switch Starts(p.kind, p.buf) {
	case Maybe:
		return nil
	case Yes:
		p.state, p.lost = head, false
		p.buf = p.buf[:held]
		return data
	default:
		p.Skipped += int64(held + len(data))
		p.buf = p.buf[:0]
		if !p.lost { // a message should begin here
			p.lost = true
			p.to.Broken(c.At, WhySyntax)
		}
		return nil
	}
}

// begin starts a message, or ends the direction's HTTP where none begins.
func (p *Parser) begin(data []byte, c *stream.Chunk) []byte {
	for len(data) > 0 && (data[0] == '\r' || data[0] == '\n') { // RFC 9112, 2.2
		data = data[1:]
	}
	if len(data) == 0 {
		return nil
	}
	p.state, p.first, p.buf = seek, c.At, p.buf[:0]
	return p.probe(data, c)
}

func (p *Parser) readHead(data []byte, c *stream.Chunk) []byte {
	held := len(p.buf)
	raw := data
	if held > 0 {
		p.buf = append(p.buf, data...)
		raw = p.buf
	}
	end := headEnd(raw, max(0, held-3)) // the empty line may have begun before
	switch {
	case end < 0 && len(raw) > maxHead:
		p.fail(c.At, WhyHeadLimit, len(raw))
		return nil
	case end < 0:
		if held == 0 {
			p.buf = append(p.buf, data...)
		}
		return nil
	}
	h, ok := parseHead(p.kind, raw[:end])
	if !ok {
		p.fail(c.At, WhySyntax, len(raw))
		return nil
	}
	h.First, h.At = p.first, c.At
	p.SawHTTP = true
	p.buf = p.buf[:0]
	p.startBody(h, p.to.Head(h))
	return data[end-held:]
}

// startBody decides how the body is framed (RFC 9112, 6.3).
func (p *Parser) startBody(h *Head, noBody bool) {
	switch {
	case h.Status == 101 || p.kind == Requests && h.Method == "CONNECT":
		p.state = passthrough
	case p.kind == Responses && h.Status < 200:
		p.state = between
	case noBody || h.Status == 204 || h.Status == 304:
		p.end(h.At)
	case h.chunked:
		p.state = chunkSize
	case h.length > 0:
		p.state, p.left = lengthBody, h.length
	case h.length == 0 || p.kind == Requests:
		p.end(h.At)
	default:
		p.state = closeBody
	}
}

func (p *Parser) readBody(data []byte, c *stream.Chunk) []byte {
	n := int(min(p.left, int64(len(data))))
	p.left -= int64(n)
	p.to.Body(data[:n], c)
	if p.left == 0 {
		p.bodyDone(c.At)
	}
	return data[n:]
}

// bodyDone ends a body of known length, or a chunk.
func (p *Parser) bodyDone(at int64) {
	if p.state == chunkData {
		p.state = chunkEnd
		return
	}
	p.end(at)
}

// maxLine bounds a line of chunked framing, its end left out.
const maxLine = 4096

// line returns the next line without its end, and what follows it. ok is false
// while the line is incomplete.
func (p *Parser) line(data []byte) (line, rest []byte, ok bool) {
	i := bytes.IndexByte(data, '\n')
	if i < 0 {
		room := maxLine + 2 - len(p.buf) // one more than a line may have, and a CR
		p.buf = append(p.buf, data[:min(len(data), room)]...)
		return nil, nil, false
	}
	line = data[:i]
	if len(p.buf) > 0 {
		p.buf = append(p.buf, line...)
		line = p.buf
	}
	p.buf = p.buf[:0]
	return bytes.TrimSuffix(line, []byte{'\r'}), data[i+1:], true
}

func (p *Parser) readChunkSize(data []byte, c *stream.Chunk) []byte {
	line, rest, ok := p.line(data)
	if !ok && len(p.buf) < maxLine+2 {
		return nil
	}
	size, valid := parseChunkSize(line)
	if !valid || len(line) > maxLine {
		p.fail(c.At, WhySyntax, len(data))
		return nil
	}
	if size == 0 {
		p.state = trailer
		return rest
	}
	p.state, p.left = chunkData, size
	return rest
}

func (p *Parser) readChunkEnd(data []byte, c *stream.Chunk) []byte {
	line, rest, ok := p.line(data)
	if ok && len(line) > 0 || len(p.buf) > 1 {
		p.fail(c.At, WhySyntax, len(data))
		return nil
	}
	if ok {
		p.state = chunkSize
	}
	return rest
}

func (p *Parser) readTrailer(data []byte, c *stream.Chunk) []byte {
	line, rest, ok := p.line(data)
	if ok && len(line) == 0 {
		p.end(c.At)
	}
	return rest
}

func (p *Parser) end(at int64) {
	p.state = between
	p.to.End(at)
}

// fail gives up the message and looks for the next one.
func (p *Parser) fail(at int64, why string, skipped int) {
	p.Skipped += int64(skipped)
	p.state, p.buf, p.lost = seek, p.buf[:0], true
	p.to.Broken(at, why)
}

// gap takes note of bytes that the capture lost. Inside a body whose framing tells
// where it ends the message goes on; else it is broken.
func (p *Parser) gap(c *stream.Chunk) {
	switch p.state {
	case seek, between:
		p.state, p.buf, p.lost = seek, p.buf[:0], true
	case passthrough:
	case closeBody:
		p.to.Lost(c.Gap)
	case lengthBody, chunkData:
		if c.Gap <= p.left {
			p.to.Lost(c.Gap)
			p.left -= c.Gap
			if p.left == 0 {
				p.bodyDone(c.At)
			}
			return
		}
		p.lostFraming(c)
	default:
		p.lostFraming(c)
	}
}

func (p *Parser) lostFraming(c *stream.Chunk) {
	p.buf = p.buf[:0]
	switch p.state {
	case chunkSize, chunkData, chunkEnd, trailer, chunkSeek:
		p.state = chunkSeek
		p.to.Lost(c.Gap)
	default:
		p.fail(c.At, WhyGap, 0)
	}
}

// probeChunk looks for the start of a chunk, or of the next message, at the start
// of a segment: servers that stream write them so.
func (p *Parser) probeChunk(data []byte, c *stream.Chunk) []byte {
	switch {
	case len(data) == 0:
	case Starts(p.kind, data) == Yes:
		p.fail(c.At, WhyGap, 0)
		return p.probe(data, c)
	case looksLikeChunk(data):
		p.state = chunkSize
		return data
	default:
		p.Skipped += int64(len(data))
	}
	return nil
}

// Detach makes the parser pass over the rest: another protocol took over.
func (p *Parser) Detach() { p.state = passthrough }

// Close ends the direction. clean says that its sender ended it in order, which
// completes a close-delimited body.
func (p *Parser) Close(at int64, clean bool) {
	switch p.state {
	case seek, between, passthrough:
		p.Skipped += int64(len(p.buf))
	case closeBody:
		if clean {
			p.end(at)
		} else {
			p.to.Broken(at, WhyClosed)
		}
	case head:
		p.Skipped += int64(len(p.buf))
		p.to.Broken(at, WhyClosed)
	default:
		p.to.Broken(at, WhyClosed)
	}
	p.state, p.buf = passthrough, nil
}
