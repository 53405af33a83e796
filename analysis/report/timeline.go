package report

import (
	"fmt"
	"strings"

	"tokentrace/analysis"
)

// TimelineDocument shows one request.
func TimelineDocument(l *analysis.Timeline, format string) Document {
	r := l.Request
	title := "Request " + r.ID
	if r.ClientID != nil {
		title += " (" + *r.ClientID + ")"
	}
	boundaries := Table{
		Columns: []Column{{"Boundary", false}, {"since start (ms)", true}, {"At (UTC)", false}},
		Keys:    []string{"boundary", "since_start_ns", "at_unix_ns"},
	}
	for _, b := range l.Boundaries {
		boundaries.Rows = append(boundaries.Rows, []Cell{txt(b.Name), milliseconds(b.Since), {Text: fineInstant(b.At), Value: b.At, Raw: true}})
	}
	records := recordTable(l.Records)
	if format == "csv" {
		return Document{Sections: []Section{{Blocks: []Block{records}}}}
	}
	return Document{Title: title, Subtitle: timelineLine(r), Sections: []Section{
		{Blocks: []Block{Paragraph{othersLine(r.Concurrency)}}},
		{Title: "Boundaries", Blocks: []Block{boundaries}},
		{Title: plural(int64(len(l.Records)), "record", "records"), Blocks: []Block{records}},
	}}
}

func timelineLine(r analysis.TimelineRequest) string {
	line := fmt.Sprintf("%s · status %s · %s UTC · prompt %s, output %s tokens", modelText(r.Model), r.Status,
		optFineInstant(r.Start), optCount(r.PromptTokens), optCount(r.OutputTokens))
	if r.StatusReason != nil {
		line += " · " + *r.StatusReason
	}
	for _, m := range []struct {
		label string
		ns    *int64
	}{{"TTFT", r.TTFT}, {"TPOT", r.TPOT}, {"E2E", r.E2E}} {
		line += " · " + m.label + " " + optDuration(m.ns)
	}
	if len(r.Flags) > 0 {
		line += " · flags " + strings.Join(r.Flags, ", ")
	}
	return line
}

// othersLine says how many requests were in flight beside one; n includes it.
func othersLine(n int64) string {
	if n <= 1 {
		return "No other request was in flight at its start."
	}
	return plural(n-1, "other", "others") + " in flight at its start."
}

func recordTable(records []analysis.Record) Table {
	t := Table{
		Columns: []Column{
			{"index", true}, {"since start (ms)", true}, {"gap (ms)", true}, {"kinds", false}, {"tokens", true}, {"text bytes", true},
			{"segment", true}, {"choice", true},
		},
		Keys: []string{"index", "since_start_ns", "gap_ns", "kinds", "tokens", "text_bytes", "segment", "choice"},
	}
	for _, r := range records {
		t.Rows = append(t.Rows, []Cell{
			number(r.Index), milliseconds(r.Since), milliseconds(r.Gap), txt(strings.Join(r.Kinds, "+")),
			optNumber(r.Tokens), number(r.TextBytes), number(r.Segment), number(r.Choice),
		})
	}
	return t
}

func milliseconds(ns *int64) Cell { return Cell{Text: optMs(ns), Value: ns, Raw: true} }
