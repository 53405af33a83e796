// Package llmapi knows what the records of LLM serving APIs say: which bear
// tokens, which carry counts, finish reasons and errors.
//
// It knows one record or body at a time. What depends on the records before it
// (is an empty delta a role, a hidden token or nothing?) and on time is decided by
// package exchange. No text leaves this package, only lengths.
//
// An API is one row of the table that Match looks through, and one file.
package llmapi

import (
	"strings"

	"tokentrace/schema"
)

// API is one way of speaking to a server.
type API struct {
	Name string // as in the api column
	// ParseRequest reads a request body. It returns false where the body is no
	// JSON of the API; what could be read stands in r.
	ParseRequest func(body []byte, r *Request) bool
	// ParseRecord reads a record of a response stream; data is not a terminal
	// sentinel. It returns false where data is not readable; what could be read
	// stands in d.
	ParseRecord func(data []byte, d *Delta) bool
	// ParseBody reads the body of a response that is not streamed.
	ParseBody func(body []byte, d *Delta) bool
}

// Unknown is the name of the API that no row of the table describes.
const Unknown = "unknown"

// Request is what a request asks for.
type Request struct {
	Model       string
	Stream      schema.Opt[bool]
	Choices     int32 // n; 0 where it is not said
	MaxTokens   schema.Opt[int64]
	Temperature schema.Opt[float64]
	PromptBytes int64 // text of the prompt, bytes of UTF-8
}

// Usage holds token counts as the server sent them.
type Usage struct {
	// Prompt and Output are 0 where they are not known: servers write zeros on every
	// chunk before they have counted.
	Prompt, Output int64
	// Cached and Reasoning are shares of them, of which 0 says something.
	Cached, Reasoning schema.Opt[int64]
}

// Known reports whether the server had counted anything.
func (u *Usage) Known() bool { return u.Prompt > 0 || u.Output > 0 }

// Delta is what one record says. Slices are valid as long as the record.
type Delta struct {
	// Kinds holds what the record itself tells: content, reasoning, tool, refusal,
	// finish, progress, timings, error. The rest depends on the records before.
	Kinds     schema.Kinds
	HasChoice bool // there is an entry for some choice
	HasDelta  bool // with a delta or text in it, which may be empty
	HasRole   bool
	Choice    int32 // index of the first choice that bears tokens, else of the first one
	Choices   int32 // number of choices in the record
	TextBytes int64 // of token-bearing text
	Logprobs  int32 // entries of token ids or logprobs, 0 where none are sent
	Usage     Usage
	Finish    []byte // finish reason
	Model     []byte
	ErrorType []byte // type or code of the error

	pattern pattern
}

// Reset empties d for the next record.
func (d *Delta) Reset() { *d = Delta{} }

// Match returns the API that a request path belongs to. Gateways rewrite
// prefixes, so the suffix decides. ok is false where no API is known.
func Match(path string) (api API, ok bool) {
	for _, row := range table() {
		if strings.HasSuffix(path, row.suffix) {
			return row.api, true
		}
	}
	return API{Name: Unknown}, false
}

type row struct {
	suffix string
	api    API
}

func table() []row {
	return []row{
		{"/chat/completions", openAI("openai_chat")},
		{"/v1/completions", openAI("openai_completions")},
	}
}

// Done reports whether data is the sentinel that ends a stream. The SDKs of OpenAI
// test the beginning only.
func Done(data []byte) bool {
	const sentinel = "[DONE]"
	return len(data) >= len(sentinel) && string(data[:len(sentinel)]) == sentinel
}
