package report

import "tokentrace/analysis"

// slowTable lists the requests that waited longest for their first token.
func slowTable(slow []analysis.SlowRequest) Table {
	ids := make([]*string, len(slow))
	for i, s := range slow {
		ids[i] = s.ClientID
	}
	t := withClientIDs(ids, Table{
		Columns: []Column{
			{"Request", false}, {"Start (UTC)", false}, {"TTFT", true}, {"Status", false}, {"Prompt tok.", true},
			{"Output tok.", true}, {"In flight", true}, {"Model", false},
		},
		Keys: []string{"request_id", "start_unix_ns", "ttft_ns", "status", "prompt_tokens", "output_tokens", "requests_in_flight", "model"},
	})
	for i, s := range slow {
		t.Rows[i] = append(t.Rows[i],
			txt(s.ID), Cell{Text: instant(s.Start), Value: s.Start, Raw: true}, nanoseconds(&s.TTFT), txt(string(s.Status)),
			optNumber(s.PromptTokens), optNumber(s.OutputTokens), number(s.Concurrency), modelCell(s.Model, 28))
	}
	return t
}

// withClientIDs puts the clients' ids in front of a table's rows to come, where
// there is any.
func withClientIDs(ids []*string, t Table) Table {
	t.Rows = make([][]Cell, len(ids))
	for _, id := range ids {
		if id == nil {
			continue
		}
		t.Columns = append([]Column{{"x-request-id", false}}, t.Columns...)
		t.Keys = append([]string{"client_request_id"}, t.Keys...)
		for i, id := range ids {
			t.Rows[i] = []Cell{name(id, 36)}
		}
		break
	}
	return t
}

func gapBlocks(gaps []analysis.TokenGap) []Block {
	if len(gaps) == 0 {
		return []Block{Paragraph{"No request has two token records to have a gap between."}}
	}
	return []Block{
		Paragraph{"Others streaming: requests that had tokens before the gap ended and after it began. Of them served: those that got one inside it, a tenth at either end left out. If others streamed and none was served, the whole engine paused; if all were, this stream alone stalled. Buffered streams are left out."},
		gapTable(gaps),
	}
}

// gapTable lists the longest gaps between tokens.
func gapTable(gaps []analysis.TokenGap) Table {
	ids := make([]*string, len(gaps))
	for i, g := range gaps {
		ids[i] = g.ClientID
	}
	t := withClientIDs(ids, Table{
		Columns: []Column{
			{"Request", false}, {"Gap began (UTC)", false}, {"Gap", true}, {"After tokens", true}, {"Others streaming", true},
			{"Of them served", true}, {"Status", false}, {"Model", false},
		},
		Keys: []string{"request_id", "begin_unix_ns", "gap_ns", "tokens_before", "requests_streaming", "requests_served", "status", "model"},
	})
	for i, g := range gaps {
		t.Rows[i] = append(t.Rows[i],
			txt(g.ID), Cell{Text: instant(g.Begin), Value: g.Begin, Raw: true}, nanoseconds(&g.Gap), number(g.TokensBefore),
			number(g.OthersStreaming), number(g.OthersServed), txt(string(g.Status)), modelCell(g.Model, 28))
	}
	return t
}
