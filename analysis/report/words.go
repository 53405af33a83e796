package report

// wordTable says what the words of a report mean.
func wordTable() Table {
	t := Table{Columns: []Column{{"Word", false}, {"Meaning", false}}}
	for _, w := range [][2]string{
		{"TTFT", "Time to first token: from the request's first byte to the first record that bears text."},
		{"TTFT (server)", "The same from the request's last byte: without the upload."},
		{"TTFO", "Time to first output: to the first content, tool call or refusal, after any reasoning."},
		{"TPOT", "Time per output token: from the first token to the last, over the tokens after the first record."},
		{"ICL", "Inter-chunk latency: the gap between two token records of one choice."},
		{"E2E", "End to end: from the request's first byte to the last record, usage and [DONE] included."},
		{"n_eff", "Effective sample size: how many independent requests the sample is worth, as requests near in time resemble each other."},
		{"supported", "A quantile that n_eff suffices to bound from above: 29 for p90, 59 for p95, 299 for p99, 2995 for p99.9."},
		{"unqueued", "A request that came while no other to the same server waited for its first token."},
		{"below 0.65", "Share of the requests whose TTFT is less than 0.65 of the line: likely prefix-cache hits. From 8 % on, no single slope describes them."},
		{"implied prefill", "Prompt tokens per second that the slope amounts to, the intercept left out."},
		{"undecodable", "A request whose answer could not be read: an unknown API, an unknown content encoding or bad JSON."},
		{"buffered stream", "A stream whose records came in bursts: something on the way held them back. Not in TPOT and ICL."},
	} {
		t.Rows = append(t.Rows, []Cell{txt(w[0]), txt(w[1])})
	}
	return t
}
