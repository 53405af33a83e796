package report

import (
	"fmt"
	"strings"

	"tokentrace/analysis"
)

// requestBlocks say which requests there are, and which of them count.
func requestBlocks(s *analysis.Summary) []Block {
	blocks := []Block{Paragraph{populationLine(s.Population)}}
	if s.NotLLM > 0 {
		blocks = append(blocks, Paragraph{plural(s.NotLLM, "other HTTP request", "other HTTP requests") + " (not POST) ignored."})
	}
	return append(blocks, failureTable(s))
}

func okNote(p analysis.Population) string {
	if p.Seen == 0 {
		return ""
	}
	return fmt.Sprintf("%s ok", percent(float64(p.OK)/float64(p.Seen)))
}

func populationLine(p analysis.Population) string {
	if p.Seen == 0 {
		return "No requests were seen."
	}
	parts := []string{}
	for _, s := range p.Status {
		parts = append(parts, fmt.Sprintf("%s %s", count(s.Count), s.Status))
	}
	line := fmt.Sprintf("%s seen = %s.", count(p.Seen), strings.Join(parts, " + "))
	if left := p.Seen - p.OK; left > 0 {
		line += fmt.Sprintf(" Success statistics rest on the %s ok and leave out %s.", count(p.OK), count(left))
	}
	if p.Silent > 0 {
		line += fmt.Sprintf(" %s bore no token: not in TTFT and TPOT.", plural(p.Silent, "ok request", "ok requests"))
	}
	if n := p.OK - p.Streams; n > 0 {
		line += fmt.Sprintf(" %s not streamed: in E2E, not in TTFT and TPOT.", plural(n, "ok request was", "ok requests were"))
	}
	if p.Buffered > 0 {
		line += fmt.Sprintf(" %s in one piece (buffered_stream): not in TPOT and ICL.", plural(p.Buffered, "stream came", "streams came"))
	}
	return line
}

// failureTable lists what is not decoded or not ok, and why.
func failureTable(s *analysis.Summary) Table {
	t := Table{
		Caption: "Not ok",
		Columns: []Column{{"Path", false}, {"Status", false}, {"Reason", false}, {"HTTP status", true}, {"Requests", true}},
		Keys:    []string{"path", "status", "status_reason", "http_status", "requests"},
	}
	left := s.Population.Seen - s.Population.OK
	for _, f := range s.Failures {
		left -= f.Count
		code := Cell{Text: optCount(f.HTTPStatus), Value: f.HTTPStatus, Raw: true}
		t.Rows = append(t.Rows, []Cell{name(f.Path, 60), txt(string(f.Status)), name(f.Reason, 40), code, number(f.Count)})
	}
	if left > 0 {
		t.Caption += fmt.Sprintf(" (the most frequent kinds; %s of rarer ones)", plural(left, "request is", "requests are"))
	}
	return t
}

func statusTable(p analysis.Population) Table {
	t := Table{
		Columns: []Column{{"Status", false}, {"Requests", true}, {"With first token", true}, {"In success statistics", false}},
		Keys:    []string{"status", "requests", "with_first_token", "in_success_statistics"},
	}
	for _, s := range p.Status {
		in := "yes"
		if s.Excluded {
			in = "no"
		}
		t.Rows = append(t.Rows, []Cell{txt(string(s.Status)), number(s.Count), number(s.FirstToken), txt(in)})
	}
	return t
}

// exclusionTable says what single metrics leave out; what all leave out is the
// failure table's.
func exclusionTable(p *analysis.Percentiles) Table {
	t := Table{Caption: "Ok, but left out of single metrics", Columns: []Column{{"Left out of", false}, {"Reason", false}, {"Requests", true}}}
	for _, e := range p.Exclusions {
		if e.From != "all" {
			t.Rows = append(t.Rows, []Cell{txt(e.From), txt(e.Reason), number(e.Count)})
		}
	}
	return t
}
