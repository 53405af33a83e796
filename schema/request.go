package schema

// Status says how a request ended.
type Status string

// The statuses of a request. Only StatusOK counts as success: it needs
// terminal evidence (a finish reason, the API's terminal event, [DONE], or a
// cleanly framed end where the API ends so) and no error record. HTTP 200 alone
// is not success.
const (
	StatusOK            Status = "ok"
	StatusHTTPError     Status = "http_error"     // the response's status is 400 or above
	StatusStreamError   Status = "stream_error"   // an error record inside a 200
	StatusTruncated     Status = "truncated"      // ended without a terminal record, or its framing was cut
	StatusCancelled     Status = "cancelled"      // the client went away first
	StatusReset         Status = "reset"          // the server went away
	StatusCensoredStart Status = "censored_start" // the capture began after the request
	StatusCensoredEnd   Status = "censored_end"   // the capture ended before the response
	StatusGap           Status = "gap"            // the capture lost bytes of the response
	StatusUndecodable   Status = "undecodable"    // see status_reason
)

// Request is one row of the requests table: a request and its response.
//
// Instants are nanoseconds since the Unix epoch on the capture's clock, durations
// nanoseconds. A missing boundary is NULL, and so is every duration that needs it.
type Request struct {
	Run        string `col:"run" doc:"Capture run that wrote the row. (run, request) is the key; the view's request_id joins the two with a dot."`
	Request    int64  `col:"request" doc:"Number of the request within its run, in order of first byte."`
	Connection int64  `col:"connection" doc:"Number of the connection within its run."`

	ClientRequestID Opt[string] `col:"client_request_id" doc:"The request's x-request-id header."`

	API         string      `col:"api" doc:"API spoken, recognised by the suffix of the path (openai_chat, openai_completions, unknown)."`
	Framing     string      `col:"framing" doc:"How the response is cut into records: sse, ndjson, json_array, eventstream, grpc or none."`
	HTTPVersion string      `col:"http_version" doc:"Version of HTTP on the wire, such as 1.1."`
	Method      Opt[string] `col:"method" doc:"Method of the request."`
	Path        Opt[string] `col:"path" doc:"Path of the request, without the query."`
	Model       Opt[string] `col:"model" doc:"Model that answered, as the response names it; else the one asked for."`

	Status       Status      `col:"status" doc:"How the request ended: ok, http_error, stream_error, truncated, cancelled, reset, censored_start, censored_end, gap or undecodable."`
	StatusReason Opt[string] `col:"status_reason" doc:"Why, where the status alone does not say it, such as unknown_api."`
	HTTPStatus   Opt[int32]  `col:"http_status" doc:"Status code of the final response head."`
	Stream       bool        `col:"stream" doc:"Whether the response came as a stream of records."`

	RequestStart   Opt[int64] `col:"request_start_unix_ns" unit:"unix_ns" doc:"First byte of this request delivered at the capture point (t0)."`
	RequestEnd     Opt[int64] `col:"request_end_unix_ns" unit:"unix_ns" doc:"Last byte of the request."`
	ResponseHead   Opt[int64] `col:"response_head_unix_ns" unit:"unix_ns" doc:"End of the final (non-1xx) response head."`
	FirstBodyByte  Opt[int64] `col:"first_body_byte_unix_ns" unit:"unix_ns" doc:"First byte of the response body."`
	FirstComment   Opt[int64] `col:"first_comment_unix_ns" unit:"unix_ns" doc:"First SSE comment line completed."`
	FirstEvent     Opt[int64] `col:"first_event_unix_ns" unit:"unix_ns" doc:"First framed record of any kind completed, comments apart."`
	FirstHidden    Opt[int64] `col:"first_hidden_unix_ns" unit:"unix_ns" doc:"First record without text whose cumulative server count rose."`
	FirstToken     Opt[int64] `col:"first_token_unix_ns" unit:"unix_ns" doc:"First token-bearing record completed, of any choice."`
	FirstReasoning Opt[int64] `col:"first_reasoning_unix_ns" unit:"unix_ns" doc:"First reasoning record completed."`
	FirstOutput    Opt[int64] `col:"first_output_unix_ns" unit:"unix_ns" doc:"First content, tool-call or refusal record completed."`
	SecondToken    Opt[int64] `col:"second_token_unix_ns" unit:"unix_ns" doc:"Second token-bearing record completed."`
	LastToken      Opt[int64] `col:"last_token_unix_ns" unit:"unix_ns" doc:"Last token-bearing record completed."`
	Finish         Opt[int64] `col:"finish_unix_ns" unit:"unix_ns" doc:"Record that carries the finish reason; with several choices, the last one."`
	Usage          Opt[int64] `col:"usage_unix_ns" unit:"unix_ns" doc:"Last record that carries token counts."`
	Done           Opt[int64] `col:"done_unix_ns" unit:"unix_ns" doc:"[DONE] or the API's terminal event."`
	LastRecord     Opt[int64] `col:"last_record_unix_ns" unit:"unix_ns" doc:"Last record of any kind, usage and [DONE] included."`
	StreamEnd      Opt[int64] `col:"stream_end_unix_ns" unit:"unix_ns" doc:"End of the response message, or the FIN or RST that cut it."`

	TTFB       Opt[int64] `col:"ttfb_ns" unit:"ns" doc:"response_head - request_start. A diagnostic; never called TTFT."`
	TTFE       Opt[int64] `col:"ttfe_ns" unit:"ns" doc:"first_event - request_start."`
	TTFT       Opt[int64] `col:"ttft_ns" unit:"ns" doc:"first_token - request_start: time to first token, the headline."`
	TTFTServer Opt[int64] `col:"ttft_server_ns" unit:"ns" doc:"first_token - request_end: TTFT without the upload."`
	TTFR       Opt[int64] `col:"ttfr_ns" unit:"ns" doc:"first_reasoning - request_start."`
	TTFO       Opt[int64] `col:"ttfo_ns" unit:"ns" doc:"first_output - request_start."`
	TTST       Opt[int64] `col:"ttst_ns" unit:"ns" doc:"second_token - first_token: the gap after the first token record."`
	TPOT       Opt[int64] `col:"tpot_ns" unit:"ns" doc:"(last - first_token) / (output_tokens - first_record_tokens), where last is max(last_token, finish) if stop_token_counted, else last_token. NULL when output_tokens <= first_record_tokens."`
	E2E        Opt[int64] `col:"e2e_ns" unit:"ns" doc:"last_record - request_start for a stream; end of body - request_start otherwise."`
	E2EToken   Opt[int64] `col:"e2e_token_ns" unit:"ns" doc:"last_token - request_start."`
	Normalized Opt[int64] `col:"normalized_latency_ns" unit:"ns" doc:"e2e_token / output_tokens."`
	Upload     Opt[int64] `col:"upload_ns" unit:"ns" doc:"request_end - request_start."`

	TPOTQuality       Opt[string] `col:"tpot_quality" doc:"exact (tokens of the first record known, or one token per record), approx_first (first record taken as one token), records (output_tokens counts records); NULL with tpot_ns."`
	PromptTokens      Opt[int64]  `col:"prompt_tokens" unit:"tokens" doc:"Prompt tokens as the server counted them, cached ones included."`
	CachedTokens      Opt[int64]  `col:"cached_tokens" unit:"tokens" doc:"Prompt tokens that the server took from its prefix cache."`
	OutputTokens      Opt[int64]  `col:"output_tokens" unit:"tokens" doc:"Output tokens (N), from the best source there is; see n_source."`
	ReasoningTokens   Opt[int64]  `col:"reasoning_tokens" unit:"tokens" doc:"Reasoning tokens among them, as the server counted them."`
	NSource           Opt[string] `col:"n_source" doc:"Where output_tokens comes from: usage (count on or after the finish record), native_final, cumulative (a count before it), logprobs, or records."`
	FirstRecordTokens int64       `col:"first_record_tokens" unit:"tokens" doc:"Tokens known at the first token record (c1), 1 where no counts are sent."`
	StopTokenCounted  bool        `col:"stop_token_counted" doc:"Whether output_tokens includes an invisible stop token, so that the finish record is a token's time."`
	TokenRecords      int64       `col:"token_records" unit:"count" doc:"Token-bearing records."`
	Records           int64       `col:"records" unit:"count" doc:"Framed records of any kind, comments apart."`
	Comments          int64       `col:"comments" unit:"count" doc:"SSE comment lines."`
	Bursts            int64       `col:"bursts" unit:"count" doc:"Distinct delivery times among the token-bearing records."`

	StreamRequested Opt[bool]    `col:"stream_requested" doc:"Whether the request asked for a stream; NULL where it does not say."`
	Choices         int32        `col:"choices" unit:"count" doc:"Answers in one response: n of the request, or as many as were seen."`
	MaxTokens       Opt[int64]   `col:"max_tokens" unit:"tokens" doc:"Limit of output tokens that the request asked for."`
	Temperature     Opt[float64] `col:"temperature" doc:"Sampling temperature that the request asked for."`
	FinishReason    Opt[string]  `col:"finish_reason" doc:"Finish reason as the server wrote it."`
	ErrorType       Opt[string]  `col:"error_type" doc:"Type or code of the error that the server wrote, never its text."`

	RequestBytes  int64      `col:"request_body_bytes" unit:"bytes" doc:"Bytes of the request body after transfer decoding."`
	ResponseBytes int64      `col:"response_body_bytes" unit:"bytes" doc:"Bytes of the response body after transfer decoding."`
	PromptBytes   Opt[int64] `col:"prompt_text_bytes" unit:"bytes" doc:"Bytes of prompt text in the request (UTF-8, JSON escapes resolved). The text itself is not kept."`
	OutputBytes   Opt[int64] `col:"output_text_bytes" unit:"bytes" doc:"Bytes of token-bearing text in the response (UTF-8, JSON escapes resolved)."`
	DanglingBytes int64      `col:"dangling_bytes" unit:"bytes" doc:"Bytes after the last complete record that belong to none."`
	LostBytes     int64      `col:"lost_bytes" unit:"bytes" doc:"Bytes of this request or response that the capture lost."`

	Concurrency int32 `col:"concurrency" unit:"count" doc:"LLM requests in flight when its head was read, itself included."`
	Flags       Words `col:"flags" doc:"What else is to be known, as words joined by spaces, such as buffered_stream or no_terminal_event; docs/metrics.md lists them. The view has a list."`
}

// SortKey is the request's start, or the first instant known of it.
func (r *Request) SortKey() int64 {
	for _, t := range []Opt[int64]{r.RequestStart, r.ResponseHead, r.FirstBodyByte, r.StreamEnd} {
		if t.OK {
			return t.V
		}
	}
	return 0
}
