package schema

// Event is one row of the events table: one framed record of a response
// stream, or one SSE comment.
//
// An event is not a token and a segment is not an event: Tokens says how many
// tokens the record bears where the server counts them, Index + SegmentAhead which
// TCP segment of the response body completed it.
type Event struct {
	Run           string     `col:"run" doc:"Capture run that wrote the row."`
	Request       int64      `col:"request" doc:"Number of the request within its run."`
	Index         int32      `col:"index" doc:"Position of the record in its response, from 0, comments included."`
	At            int64      `col:"at_unix_ns" unit:"unix_ns" doc:"Delivery of the byte that completed the record, in TCP order."`
	SeenLead      int64      `col:"seen_lead_ns" unit:"ns" doc:"at - first sight of that byte: how long it waited for bytes before it. 0 unless packets were lost or reordered."`
	FirstByteLead int64      `col:"first_byte_lead_ns" unit:"ns" doc:"at - delivery of the record's first byte. 0 unless the record spans segments."`
	Gap           Opt[int64] `col:"gap_ns" unit:"ns" doc:"at - at of the previous token-bearing record of the same choice (inter-chunk latency). NULL for the first, and for records that bear no token."`
	Kinds         Kinds      `col:"kinds" doc:"What the record is, as words joined by +; the view has a list."`
	TokenBearing  bool       `col:"token_bearing" doc:"Whether the record bears non-empty content, reasoning, tool-call or refusal text."`
	Choice        int32      `col:"choice" doc:"Index of the choice that the record belongs to."`
	Tokens        Opt[int32] `col:"tokens" unit:"tokens" doc:"Tokens that the record bears, where the server's counts tell."`
	TextBytes     int32      `col:"text_bytes" unit:"bytes" doc:"Bytes of token-bearing text (UTF-8, JSON escapes resolved)."`
	SegmentAhead  int32      `col:"segment_ahead" doc:"Segment less index, where the segments that carry the response body are counted from 0: 0 while each brings one record, less where several came in one segment, more where one spans several."`
}

// SortKey is the event's delivery time.
func (e *Event) SortKey() int64 { return e.At }
