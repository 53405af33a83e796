package schema

import (
	"slices"
	"strings"
)

// Kinds is the set of things that one record of a stream is. A record can be
// several at once: the last chunk of a vLLM answer is content and finish.
type Kinds uint16

// The kinds of a record, in the order in which they are written.
const (
	KindRole      Kinds = 1 << iota // says who speaks, before any token
	KindProgress                    // prompt progress (llama.cpp)
	KindContent                     // answer text
	KindReasoning                   // thinking text
	KindTool                        // tool-call name or arguments
	KindRefusal                     // refusal text
	KindHidden                      // no text, but the server's own count of tokens rose
	KindEmpty                       // a delta with nothing in it
	KindFinish                      // carries the finish reason
	KindUsage                       // carries token counts
	KindTimings                     // carries the server's own timings
	KindError                       // carries an error
	KindMeta                        // anything else that was framed (filters, ids, unreadable JSON)
	KindHeartbeat                   // an API-level ping
	KindDone                        // the API's terminal record, such as [DONE]
	KindComment                     // an SSE comment line
)

// TokenKinds are the kinds that make a record token-bearing.
const TokenKinds = KindContent | KindReasoning | KindTool | KindRefusal

// OutputKinds are the token-bearing kinds that are not reasoning.
const OutputKinds = KindContent | KindTool | KindRefusal

// TokenBearing reports whether the record bears at least one token's text.
func (k Kinds) TokenBearing() bool { return k&TokenKinds != 0 }

// Has reports whether k holds any kind of set.
func (k Kinds) Has(set Kinds) bool { return k&set != 0 }

func kindNames() []string {
	return []string{
		"role", "progress", "content", "reasoning", "tool", "refusal", "hidden", "empty",
		"finish", "usage", "timings", "error", "meta", "heartbeat", "done", "comment",
	}
}

// String joins the names of the kinds with "+", as the events table keeps them.
func (k Kinds) String() string {
	var names []string
	for i, name := range kindNames() {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// Words is a set of words joined by single spaces, as the flags column keeps it.
type Words string

// Add appends a word unless it is there already.
func (w *Words) Add(word string) {
	if w.Has(word) {
		return
	}
	if *w != "" {
		*w += " "
	}
	*w += Words(word)
}

// Has reports whether the word is in the set.
func (w Words) Has(word string) bool {
	for rest := string(w); rest != ""; {
		var first string
		first, rest, _ = strings.Cut(rest, " ")
		if first == word {
			return true
		}
	}
	return false
}

// ParseKinds reads what Kinds.String wrote. Words that it does not know are skipped.
func ParseKinds(text string) Kinds {
	var k Kinds
	for word := range strings.SplitSeq(text, "+") {
		if i := slices.Index(kindNames(), word); i >= 0 {
			k |= 1 << i
		}
	}
	return k
}
