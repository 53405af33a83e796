package exchange

import (
	"slices"

	"tokentrace/schema"
)

// endCause says what ended an exchange.
type endCause uint8

const (
	endMessage    endCause = iota // the response is complete
	endServerFIN                  // the server closed the connection
	endServerRST                  // the server reset it
	endClientGone                 // the client closed or reset it
	endCapture                    // the capture ended, or saw nothing more
	endGap                        // the capture lost the framing of the response
	endSyntax                     // the response is no HTTP
)

// finish completes the row at the end of the exchange and writes it.
func (ex *exchange) finish(end endCause, at int64) {
	if !ex.llm {
		ex.rec.counts.notLLM++
		return
	}
	ex.rec.counts.recorded++
	ex.rec.inFlight--
	row := &ex.row
	if end != endCapture && end != endGap && at != 0 {
		row.StreamEnd = schema.Some(at)
	}
	switch {
	case ex.sse != nil:
		ex.endStream(end == endMessage)
	case end == endMessage && ex.known && !row.StatusReason.OK && !ex.tally.lost:
		ex.readBody()
	}
	row.Choices = max(1, ex.asked.Choices, ex.tally.choices)
	ex.flag(end)
	row.Status = ex.status(end)
	ex.tokens()
	ex.durations(end)
	ex.rec.sink.Request(row)
}

// status says how the exchange ended, by the rules of docs/metrics.md.
func (ex *exchange) status(end endCause) schema.Status {
	row, t := &ex.row, &ex.tally
	failed := row.HTTPStatus.OK && row.HTTPStatus.V >= 400
	switch {
	case ex.midway:
		return schema.StatusCensoredStart
	case ex.unpaired:
		ex.fail("request_lost")
		return schema.StatusGap
	case failed:
		return schema.StatusHTTPError
	case !ex.known && row.HTTPStatus.OK:
		ex.fail("unknown_api")
		return schema.StatusUndecodable
	case end == endGap || t.lost:
		return schema.StatusGap
	case end == endSyntax || end == endMessage && row.StatusReason.OK:
		return schema.StatusUndecodable
	case t.failed:
		return schema.StatusStreamError
	case end == endClientGone:
		return schema.StatusCancelled
	case end == endCapture:
		return schema.StatusCensoredEnd
	case end == endServerRST || end == endServerFIN && !row.HTTPStatus.OK:
		return schema.StatusReset
	case end == endServerFIN:
		return schema.StatusTruncated
	case row.Stream && !t.terminal():
		return schema.StatusTruncated
	default:
		return schema.StatusOK
	}
}

// flag adds what the status does not say.
func (ex *exchange) flag(end endCause) {
	row := &ex.row
	if !ex.known {
		row.Flags.Add("unknown_api")
	}
	if !row.HTTPStatus.OK {
		row.Flags.Add("no_response")
	}
	if row.Stream && ex.known && !ex.tally.done {
		row.Flags.Add("no_terminal_event")
	}
	if ex.answered {
		row.Flags.Add("early_response")
	}
	if ex.buffered(end) {
		row.Flags.Add("buffered_stream")
	}
}

// Thresholds of a stream that something on the way held back: the token records
// come in bursts, or all at the end.
const (
	bufferedMinRecords = 8
	bufferedBurst      = 3                // median records per burst above this
	bufferedSpanParts  = 50               // or all tokens within 1/50 of the whole time,
	bufferedGap        = int64(2_000_000) // at less than this on average, in ns: few servers decode so fast
)

func (ex *exchange) buffered(end endCause) bool {
	row, t := &ex.row, &ex.tally
	t.endBurst()
	if row.TokenRecords < bufferedMinRecords {
		return false
	}
	if t.medianBurst() > bufferedBurst {
		return true
	}
	span := row.LastToken.V - row.FirstToken.V
	whole := schema.Since(row.LastRecord, row.RequestStart)
	return whole.OK && end == endMessage && span*bufferedSpanParts < whole.V && span < bufferedGap*(row.TokenRecords-1)
}

// medianBurst returns the lower median of records per burst, burstSlots for more.
func (t *tally) medianBurst() int {
	var bursts int64
	for _, n := range t.burstSize {
		bursts += n
	}
	seen := int64(0)
	for size, n := range t.burstSize {
		seen += n
		if 2*seen >= bursts {
			return size + 1
		}
	}
	return burstSlots
}

// tokens decides how many tokens came, and how well that is known.
func (ex *exchange) tokens() {
	row, t := &ex.row, &ex.tally
	n, source := t.finalOutput, "usage"
	switch {
	case n > 0:
	case t.cumulative > 0:
		n, source = t.cumulative, "cumulative"
	case t.logprobs > 0:
		n, source = t.logprobs, "logprobs"
	case row.TokenRecords > 0:
		n, source = row.TokenRecords, "records"
	case t.finalKnown:
	default:
		return
	}
	row.OutputTokens, row.NSource = schema.Some(n), schema.Some(source)
	row.StopTokenCounted = ex.stopCounted(n)
}

// stopReasons are the finish reasons after which a server may have counted a stop
// token that it never sent.
func stopReasons() []string {
	return []string{"stop", "eos", "eos_token", "end_turn", "stop_sequence", "STOP", "COMPLETE", "complete"}
}

// stopCounted reports whether n includes an invisible stop token.
func (ex *exchange) stopCounted(n int64) bool {
	t := &ex.tally
	if !ex.row.Stream || !ex.row.FinishReason.OK || !slices.Contains(stopReasons(), ex.row.FinishReason.V) {
		return false
	}
	if t.cumulative > 0 {
		return t.cumulative == n-1
	}
	return t.capable == n-1
}

// durations derives the metrics from the boundaries.
func (ex *exchange) durations(end endCause) {
	row := &ex.row
	t0 := row.RequestStart
	row.TTFB = schema.Since(row.ResponseHead, t0)
	row.TTFE = schema.Since(row.FirstEvent, t0)
	row.TTFT = schema.Since(row.FirstToken, t0)
	row.TTFTServer = schema.Since(row.FirstToken, row.RequestEnd)
	row.TTFR = schema.Since(row.FirstReasoning, t0)
	row.TTFO = schema.Since(row.FirstOutput, t0)
	row.TTST = schema.Since(row.SecondToken, row.FirstToken)
	row.E2EToken = schema.Since(row.LastToken, t0)
	row.Upload = schema.Since(row.RequestEnd, t0)
	switch {
	case row.Stream:
		row.E2E = schema.Since(row.LastRecord, t0)
	case end == endMessage:
		row.E2E = schema.Since(row.StreamEnd, t0)
	}
	if row.E2EToken.OK && row.OutputTokens.V > 0 {
		row.Normalized = schema.Some(row.E2EToken.V / row.OutputTokens.V)
	}
	ex.tpot()
}

// tpot is the mean time per output token after the first record. It is missing
// where the tokens that were counted are not those that were seen: reasoning that
// stayed hidden, or several choices under one count.
func (ex *exchange) tpot() {
	row := &ex.row
	hidden := row.ReasoningTokens.V > 0 && !row.FirstReasoning.OK
	if !row.FirstToken.OK || !row.OutputTokens.OK || hidden || row.Choices > 1 {
		return
	}
	n, c1 := row.OutputTokens.V, row.FirstRecordTokens
	if n <= c1 || row.TokenRecords == 1 && !row.StopTokenCounted { // all came in the first record
		return
	}
	last := row.LastToken.V
	if row.StopTokenCounted && row.Finish.OK {
		last = max(last, row.Finish.V)
	}
	row.TPOT = schema.Some((last - row.FirstToken.V) / (n - c1))
	row.TPOTQuality = schema.Some(ex.tpotQuality(n))
}

func (ex *exchange) tpotQuality(n int64) string {
	row := &ex.row
	stop := int64(0)
	if row.StopTokenCounted {
		stop = 1
	}
	switch {
	case row.NSource.V == "records":
		return "records"
	case ex.tally.firstKnown || row.TokenRecords == n-stop:
		return "exact"
	default:
		return "approx_first"
	}
}
