package exchange

import (
	"strings"

	"tokentrace/capture/internal/framing"
	"tokentrace/capture/internal/llmapi"
	"tokentrace/schema"
)

// tally is what the records of a stream add up to.
type tally struct {
	index        int32 // of the next record
	firstSegment int32 // that brought a piece of the body

	finished bool // a finish reason was seen
	done     bool // the terminal record was seen
	failed   bool // an error record was seen
	lost     bool // bytes of the response are missing

	cumulative  int64 // last count before the finish record; 0 where none was sent
	finalOutput int64 // last count on or after it
	finalKnown  bool  // one was sent, which may be 0
	firstKnown  bool  // the tokens of the first token record are known
	logprobs    int64
	capable     int64 // token records, and empty or hidden ones after the first token
	choices     int32 // highest index of a choice + 1
	last        []choiceTime

	// Token records by delivery time: how many came at the present instant, and how
	// many instants had 1, 2, ... records (the last slot: that many or more).
	burst     int64
	burstSize [burstSlots]int64
}

const burstSlots = 8

// choiceTime is when a choice last bore a token.
type choiceTime struct {
	choice int32
	at     int64
}

// maxChoices bounds the choices that are told apart.
const maxChoices = 128

// terminal reports whether the stream gave evidence of its end.
func (t *tally) terminal() bool { return t.finished || t.done }

// record takes one framed record, or comment, of the stream.
func (ex *exchange) record(rec *framing.Record) {
	n := &ex.rec.counts
	n.records++
	d := &ex.rec.nothing
	var kinds schema.Kinds
	switch {
	case rec.Comment:
		n.comments++
		kinds = schema.KindComment
	case llmapi.Done(rec.Data):
		n.decoded++
		kinds = schema.KindDone
	case !ex.known:
		n.unknownAPI++
		kinds = schema.KindMeta
	case len(rec.Data) == 0:
		n.decoded++
		kinds = schema.KindEmpty
	default:
		var ok bool
		if d, ok = ex.stream.Record(rec.Data); ok {
			n.decoded++
		} else {
			n.badJSON++
			ex.row.Flags.Add("bad_json")
		}
		kinds = ex.classify(d)
	}
	ex.add(rec, kinds, d)
}

// classify completes what the record says by what came before it.
func (ex *exchange) classify(d *llmapi.Delta) schema.Kinds {
	t, kinds := &ex.tally, d.Kinds
	finish := kinds.Has(schema.KindFinish)
	rose := d.Usage.Output > t.cumulative
	switch {
	case kinds.TokenBearing() || !d.HasDelta:
	case rose && (!finish || t.cumulative > 0):
		kinds |= schema.KindHidden
	case finish:
	case d.HasRole && !ex.row.FirstToken.OK:
		kinds |= schema.KindRole
	case kinds == 0 || kinds == schema.KindTimings:
		kinds |= schema.KindEmpty
	}
	final := finish || t.finished
	if d.Usage.Known() && (final || !d.HasChoice) {
		kinds |= schema.KindUsage
	}
	if kinds == 0 {
		kinds = schema.KindMeta
	}
	return kinds
}

// add enters a classified record into the row and writes its event.
func (ex *exchange) add(rec *framing.Record, kinds schema.Kinds, d *llmapi.Delta) {
	e := &ex.rec.event
	*e = schema.Event{
		Request: ex.row.Request, Index: ex.tally.index,
		At: rec.At, SeenLead: rec.At - rec.Seen, FirstByteLead: rec.At - rec.First,
		Kinds: kinds, TokenBearing: kinds.TokenBearing(), Choice: d.Choice,
		TextBytes:    int32(min(d.TextBytes, 1<<30)),
		SegmentAhead: rec.Segment - ex.tally.firstSegment - ex.tally.index,
	}
	ex.tally.index++
	e.Tokens = ex.count(kinds, d)
	ex.date(rec.At, kinds)
	if kinds.TokenBearing() {
		e.Gap = ex.token(rec.At, d)
	}
	ex.facts(d)
	ex.rec.sink.Event(e)
}

// count follows the server's counts and returns the record's tokens where they tell.
func (ex *exchange) count(kinds schema.Kinds, d *llmapi.Delta) (tokens schema.Opt[int32]) {
	t := &ex.tally
	silent := d.HasDelta && kinds.Has(schema.KindEmpty|schema.KindHidden) && !kinds.Has(schema.KindFinish)
	if kinds.TokenBearing() || silent && ex.row.FirstToken.OK {
		t.capable++
	}
	t.logprobs += int64(d.Logprobs)
	if d.Logprobs > 0 {
		tokens = schema.Some(d.Logprobs)
	}
	output := d.Usage.Output
	final := t.finished || kinds.Has(schema.KindFinish)
	t.finalKnown = t.finalKnown || final && d.Usage.Known()
	if output <= 0 {
		return tokens
	}
	if d.HasChoice && output >= t.cumulative && (t.cumulative > 0 || !kinds.Has(schema.KindFinish)) {
		tokens = schema.Some(int32(min(output-t.cumulative, 1<<30)))
	}
	if final {
		t.finalOutput = output
	} else {
		t.cumulative = output
	}
	return tokens
}

// date enters the record's time into the boundaries that it is.
func (ex *exchange) date(at int64, kinds schema.Kinds) {
	row, t := &ex.row, &ex.tally
	if kinds.Has(schema.KindComment) {
		row.Comments++
		row.FirstComment.SetOnce(at)
		return
	}
	row.Records++
	row.FirstEvent.SetOnce(at)
	row.LastRecord = schema.Some(at)
	if kinds.Has(schema.KindHidden) {
		row.FirstHidden.SetOnce(at)
	}
	if kinds.Has(schema.KindReasoning) {
		row.FirstReasoning.SetOnce(at)
	}
	if kinds.Has(schema.OutputKinds) {
		row.FirstOutput.SetOnce(at)
	}
	if kinds.Has(schema.KindFinish) {
		t.finished = true
		row.Finish = schema.Some(at)
	}
	if kinds.Has(schema.KindUsage) {
		row.Usage = schema.Some(at)
	}
	if kinds.Has(schema.KindDone) {
		t.done = true
		row.Done.SetOnce(at)
	}
	t.failed = t.failed || kinds.Has(schema.KindError)
}

// token enters a token-bearing record and returns the gap to the one before of the
// same choice.
func (ex *exchange) token(at int64, d *llmapi.Delta) (gap schema.Opt[int64]) {
	row, t := &ex.row, &ex.tally
	row.TokenRecords++
	row.OutputBytes.V += d.TextBytes
	if !row.FirstToken.OK {
		row.FirstToken = schema.Some(at)
		if n := max(t.cumulative, d.Usage.Output); n > 0 {
			row.FirstRecordTokens, t.firstKnown = n, true
		}
	} else {
		row.SecondToken.SetOnce(at)
	}
	if !row.LastToken.OK || at != row.LastToken.V {
		t.endBurst()
		row.Bursts++
	}
	t.burst++
	row.LastToken = schema.Some(at)
	return t.gap(at, d.Choice)
}

func (t *tally) gap(at int64, choice int32) (gap schema.Opt[int64]) {
	t.choices = max(t.choices, min(choice, maxChoices)+1)
	for i := range t.last {
		if t.last[i].choice == choice {
			gap = schema.Some(at - t.last[i].at)
			t.last[i].at = at
			return gap
		}
	}
	if len(t.last) < maxChoices {
		t.last = append(t.last, choiceTime{choice, at})
	}
	return gap
}

func (t *tally) endBurst() {
	if t.burst > 0 {
		t.burstSize[min(t.burst, burstSlots)-1]++
	}
	t.burst = 0
}

// facts keeps what a record or body says about the whole answer. The last word of
// the server stands, zeros and blanks apart.
func (ex *exchange) facts(d *llmapi.Delta) {
	row := &ex.row
	if d.Usage.Known() {
		ex.usage(&d.Usage)
	}
	if len(d.Finish) > 0 {
		row.FinishReason = word(llmapi.Text(d.Finish))
	}
	if len(d.ErrorType) > 0 {
		row.ErrorType = word(llmapi.Text(d.ErrorType))
	}
	if len(d.Model) > 0 && row.Model.V != string(d.Model) { // chunk after chunk names the same
		row.Model = text(llmapi.Text(d.Model))
	}
}

// usage keeps the counts of the last usage that holds any.
func (ex *exchange) usage(u *llmapi.Usage) {
	row := &ex.row
	if u.Prompt > 0 {
		row.PromptTokens = schema.Some(u.Prompt)
	}
	if u.Cached.OK {
		row.CachedTokens = u.Cached
	}
	if u.Reasoning.OK {
		row.ReasoningTokens = u.Reasoning
	}
}

// maxWord bounds what passes for the name of a reason or an error, in bytes.
const maxWord = 64

// word keeps a name that the server gave to a reason or an error. A server that
// writes a sentence there may quote the prompt: it is not kept.
func word(s string) schema.Opt[string] {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:/", r)
	}
	if len(s) > maxWord || strings.TrimFunc(s, plain) != "" {
		return schema.Some("other")
	}
	return schema.Some(s)
}

// maxText bounds the names that a row takes from the wire, in bytes.
const maxText = 512

// text makes a name from the wire fit for a text column: valid UTF-8, not too long.
func text(s string) schema.Opt[string] {
	if len(s) > maxText {
		s = s[:maxText] + "..."
	}
	return schema.Some(strings.ToValidUTF8(s, "\uFFFD"))
}
