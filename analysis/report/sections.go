package report

import (
	"fmt"
	"strings"

	"tokentrace/analysis"
	"tokentrace/schema"
)

// Page returns the document of report.html. Figures stand where figures has them.
func (r *Results) Page(figures map[string]Figure) Document {
	d := Document{Title: r.Name, Subtitle: r.subtitle()}
	d.Sections = append(d.Sections,
		Section{ID: "summary", Title: "Summary", Blocks: append([]Block{r.tiles()}, r.notices()...)},
		Section{ID: "population", Title: "Requests", Blocks: append(requestBlocks(r.Summary), statusTable(r.Summary.Population), exclusionTable(r.Overall))},
	)
	matrix := latencyMatrix(r.Overall, analysis.Levels())
	latency := Section{ID: "latency", Title: "Latency", Blocks: []Block{
		Paragraph{"Requests with status ok. Under each quantile its 95 % interval, from order statistics at the effective sample size."},
		matrix,
	}}
	latency.Blocks = append(latency.Blocks, supportNote(matrix)...)
	latency.Blocks = append(latency.Blocks, survivalBlocks(r.Overall)...)
	latency.Blocks = append(latency.Blocks, pick(figures, "ttft", "tpot")...)
	latency.Blocks = append(latency.Blocks, Warnings{r.Overall.Warnings})
	d.Sections = append(d.Sections, latency)
	for _, g := range []struct {
		id, title string
		p         *analysis.Percentiles
	}{{"models", "Latency by model", r.ByModel}, {"paths", "Latency by endpoint", r.ByPath}} {
		if len(g.p.Groups) > 1 {
			d.Sections = append(d.Sections, Section{ID: g.id, Title: g.title, Blocks: []Block{latencyMatrix(g.p, analysis.Levels())}})
		}
	}
	prompt := append(FitSections(r.Fit)[0].Blocks, pick(figures, "prompt")...)
	d.Sections = append(d.Sections,
		Section{ID: "prompt", Title: "TTFT against prompt length", Blocks: prompt},
		Section{ID: "time", Title: "Over time", Blocks: append(pick(figures, "time"), seriesTable(r.Series))},
		Section{ID: "slowest", Title: "Slowest first tokens", Blocks: append(pick(figures, "waterfall"), slowTable(r.Slowest))},
		Section{ID: "gaps", Title: "Longest gaps between tokens", Blocks: gapBlocks(r.Gaps)},
		Section{ID: "ledger", Title: "Ledger", Blocks: ledgerBlocks(r.Summary)},
		Section{ID: "words", Title: "Words used here", Blocks: []Block{wordTable()}},
		Section{ID: "glossary", Title: "Columns", Blocks: glossaryBlocks()},
	)
	return d
}

// Brief returns the summary for a terminal. dir is where the report lies.
func (r *Results) Brief(dir string) Document {
	d := Document{Title: r.Name, Subtitle: r.subtitle()}
	d.Sections = append(d.Sections, Section{Title: "Requests", Blocks: requestBlocks(r.Summary)})
	if len(r.Overall.Groups) > 0 {
		matrix := latencyMatrix(headlines(r.Overall), []float64{0.5, 0.95, 0.99})
		blocks := append([]Block{matrix}, supportNote(matrix)...)
		blocks = append(blocks, survivalBlocks(r.Overall)...)
		d.Sections = append(d.Sections, Section{Title: "Latency (status ok, 95 % intervals)", Blocks: blocks})
	}
	if len(r.Fit.Models) > 0 {
		d.Sections = append(d.Sections, Section{Title: "TTFT against prompt length", Blocks: []Block{fitTable(r.Fit)}})
	}
	if len(r.Slowest) > 0 {
		slow := slowTable(r.Slowest[:min(5, len(r.Slowest))])
		d.Sections = append(d.Sections, Section{Title: "Slowest first tokens", Blocks: []Block{slow}})
	}
	if len(r.Gaps) > 0 {
		d.Sections = append(d.Sections, Section{Title: "Longest gaps between tokens", Blocks: []Block{gapTable(r.Gaps[:min(5, len(r.Gaps))])}})
	}
	if w := r.warnings(); len(w) > 0 {
		d.Sections = append(d.Sections, Section{Title: "Warnings", Blocks: []Block{Warnings{w}}})
	}
	if dir != "" {
		d.Sections = append(d.Sections, Section{Title: "Report", Blocks: []Block{Paragraph{dir}}})
	}
	return d
}

func (r *Results) subtitle() string {
	i := r.Summary.Info
	parts := []string{}
	if i.Start != nil && i.End != nil {
		parts = append(parts, instant(*i.Start)+" UTC, "+duration(float64(*i.End-*i.Start)))
	}
	parts = append(parts, plural(i.Requests, "request", "requests")+" on "+plural(i.Connections, "connection", "connections"))
	if len(i.Models) > 0 {
		names := make([]string, 0, 3)
		for _, m := range i.Models[:min(3, len(i.Models))] {
			names = append(names, shorten(analysis.ModelName(m), 40))
		}
		if n := len(i.Models) - len(names); n > 0 {
			names = append(names, fmt.Sprintf("%d more", n))
		}
		parts = append(parts, strings.Join(names, ", "))
	}
	if len(i.CapturePoints) > 0 {
		parts = append(parts, "capture point "+strings.Join(i.CapturePoints, ", "))
	}
	return strings.Join(parts, " · ")
}

// warnings are those of every result, the ledger's first.
func (r *Results) warnings() []string {
	var all []string
	for _, w := range [][]string{r.Summary.Warnings, r.Overall.Warnings, r.Fit.Warnings, r.Series.Warnings} {
		all = append(all, w...)
	}
	return all
}

func (r *Results) notices() []Block {
	return []Block{Warnings{r.Summary.Warnings}}
}

func (r *Results) tiles() Tiles {
	i, p := r.Summary.Info, r.Summary.Population
	tiles := []Tile{{"Requests", count(p.Seen), okNote(p)}}
	if len(r.Overall.Groups) > 0 {
		g := &r.Overall.Groups[0]
		for _, t := range []struct {
			metric, label string
			p             float64
		}{{"ttft", "TTFT p50", 0.5}, {"ttft", "TTFT p95", 0.95}, {"tpot", "TPOT p50", 0.5}, {"e2e", "E2E p95", 0.95}} {
			if m := g.Metric(t.metric); m != nil {
				c := quantileCell(m.Quantile(t.p), m.Max, missing)
				tiles = append(tiles, Tile{t.label, c.Text, c.Note})
			}
		}
	}
	if len(r.Fit.Models) > 0 {
		tiles = append(tiles, fitTile(r.Fit.Models[0]))
	}
	if i.OutputTokens != nil {
		tiles = append(tiles, Tile{"Output tokens", count(*i.OutputTokens), "of the " + plural(i.Counted, "request", "requests") + " with a count"})
	}
	return Tiles{tiles}
}

func number(n int64) Cell       { return Cell{Text: count(n), Value: n, Raw: true} }
func optNumber(n *int64) Cell   { return Cell{Text: optCount(n), Value: n, Raw: true} }
func nanoseconds(n *int64) Cell { return Cell{Text: optDuration(n), Value: n, Raw: true} }

// modelText names a model as people know it.
func modelText(s *string) string {
	if s == nil {
		return missing
	}
	return analysis.ModelName(*s)
}

// modelCell holds a model's short name and, for CSV, its whole one.
func modelCell(s *string, most int) Cell {
	return Cell{Text: shorten(modelText(s), most), Value: s, Raw: true}
}

// groupCells are the values of a group.
func groupCells(by []string, values []*string) []Cell {
	cells := make([]Cell, len(values))
	for i, v := range values {
		cells[i] = name(v, 40)
		if by[i] == "model" {
			cells[i] = modelCell(v, 40)
		}
	}
	return cells
}

func name(s *string, most int) Cell {
	return Cell{Text: shorten(optText(s), most), Value: s, Raw: true}
}

// quantileCell writes a quantile with its interval; one that the sample does not
// support stands as a lower bound with what it lacks. largest is the largest
// value seen, absent the words for a quantile that has none.
func quantileCell(q *analysis.Quantile, largest float64, absent string) Cell {
	switch {
	case q == nil:
		return Cell{Text: missing, Raw: true}
	case !q.Supported:
		return Cell{
			Text: "≥ " + duration(largest), Note: fmt.Sprintf("needs %d, has %d", q.Needed, q.Has()),
			Value: q.Value, Raw: true,
		}
	case q.Value == nil:
		return Cell{Text: absent, Raw: true}
	}
	return Cell{Text: duration(*q.Value), Note: span(q.Estimate), Value: q.Value, Raw: true}
}

// supportNote explains the lower bounds of a table, where it has any.
func supportNote(t Table) []Block {
	for _, row := range t.Rows {
		for _, c := range row {
			if strings.HasPrefix(c.Note, "needs ") {
				return []Block{Paragraph{"≥ is the largest value seen: nothing bounds the quantile from above. \"needs 59, has 40\" counts in n_eff, the independent requests that the sample is worth."}}
			}
		}
	}
	return nil
}

// latencyMatrix has a row per group and metric, and a column per quantile.
func latencyMatrix(p *analysis.Percentiles, levels []float64) Table {
	var t Table
	for _, by := range p.By {
		t.Columns = append(t.Columns, Column{by, false})
	}
	t.Columns = append(t.Columns, Column{"Metric", false}, Column{"n", true})
	for _, l := range levels {
		t.Columns = append(t.Columns, Column{levelName(l), true})
	}
	t.Columns = append(t.Columns, Column{"max", true})
	for i := range p.Groups {
		g := &p.Groups[i]
		for j := range g.Metrics {
			m := &g.Metrics[j]
			row := append(groupCells(p.By, g.Values), txt(m.Label), number(m.N))
			for _, l := range levels {
				row = append(row, quantileCell(m.Quantile(l), m.Max, missing))
			}
			t.Rows = append(t.Rows, append(row, Cell{Text: duration(m.Max), Value: m.Max, Raw: true}))
		}
	}
	return t
}

// headlines keeps the metrics that a terminal has room for.
func headlines(p *analysis.Percentiles) *analysis.Percentiles {
	short := *p
	short.Groups = nil
	for _, g := range p.Groups {
		kept := g
		kept.Metrics = nil
		for _, m := range g.Metrics {
			if m.Name != "ttft_server" && m.Name != "ttfo" {
				kept.Metrics = append(kept.Metrics, m)
			}
		}
		short.Groups = append(short.Groups, kept)
	}
	return &short
}

func survivalBlocks(p *analysis.Percentiles) []Block {
	t := Table{Caption: "TTFT with requests that were cut before their first token counted as having waited that long (Kaplan-Meier)"}
	for _, by := range p.By {
		t.Columns = append(t.Columns, Column{by, false})
	}
	t.Columns = append(t.Columns, Column{"first token seen", true}, Column{"cut before", true})
	for _, l := range analysis.Levels() {
		t.Columns = append(t.Columns, Column{levelName(l), true})
	}
	for _, g := range p.Groups {
		if g.Survival == nil {
			continue
		}
		row := append(groupCells(p.By, g.Values), number(g.Survival.Observed), number(g.Survival.Censored))
		for i := range g.Survival.Quantiles {
			row = append(row, survivalCell(g.Survival, i))
		}
		t.Rows = append(t.Rows, row)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return []Block{t}
}

// survivalCell writes a quantile of a Kaplan-Meier line, by the rules of any
// other; without a single first token there is no largest one.
func survivalCell(line *analysis.SurvivalLine, i int) Cell {
	if line.Observed == 0 {
		return Cell{Text: "not reached", Raw: true}
	}
	return quantileCell(&line.Quantiles[i], line.Max, "not reached")
}

// PercentileDocument shows percentiles: for reading as a matrix, as CSV in long form.
func PercentileDocument(p *analysis.Percentiles, format string) Document {
	if format == "csv" {
		return Document{Sections: []Section{{Blocks: []Block{quantileTable(p)}}}}
	}
	matrix := latencyMatrix(p, analysis.Levels())
	blocks := append([]Block{Paragraph{populationLine(p.Population)}, matrix}, supportNote(matrix)...)
	blocks = append(blocks, survivalBlocks(p)...)
	return Document{Sections: []Section{{Title: "Latency percentiles (status ok, 95 % intervals)", Blocks: append(blocks, Warnings{p.Warnings})}}}
}

func seriesTable(s *analysis.Series) Table {
	t := Table{Caption: fmt.Sprintf("Bins of %s", duration(float64(s.Width))), Fold: true, Columns: []Column{
		{"Start (UTC)", false}, {"Requests", true}, {"Failed", true}, {"Requests/s", true}, {"TTFT p50", true}, {"TTFT max", true},
		{"In flight", true}, {"Output tokens/s", true},
	}}
	nanos := func(v *float64) Cell {
		if v == nil {
			return Cell{Text: missing, Raw: true}
		}
		return Cell{Text: duration(*v), Value: *v, Raw: true}
	}
	plain := func(v float64) Cell { return Cell{Text: digits(v), Value: v, Raw: true} }
	for _, b := range s.Bins {
		t.Rows = append(t.Rows, []Cell{
			{Text: instant(b.Start), Value: b.Start, Raw: true}, number(b.Requests), number(b.Failed), plain(b.RequestRate),
			nanos(b.TTFTP50), nanoseconds(b.TTFTMax), plain(b.Concurrency), plain(b.TokenRate),
		})
	}
	return t
}

func ledgerBlocks(s *analysis.Summary) []Block {
	sum := "Counts in equal counts out: the shares of every counter add up to it."
	if s.LedgerError != "" {
		sum = "The ledger does not add up: " + s.LedgerError
	}
	t := Table{Columns: []Column{{"Counter", false}, {"Count", true}, {"Sum of shares", true}, {"Severity", false}, {"What it counts", false}}}
	sums, split := map[string]int64{}, map[string]bool{}
	for _, c := range s.Ledger {
		sums[c.PartOf] += c.Count
		split[c.PartOf] = true
	}
	for _, c := range orderLedger(s.Ledger) {
		share := txt("")
		if split[c.Name] {
			share = number(sums[c.Name])
		}
		t.Rows = append(t.Rows, []Cell{{Text: c.Name, Indent: s.Ledger.Depth(c)}, number(c.Count), share, txt(string(c.Severity)), txt(c.Doc)})
	}
	return []Block{Paragraph{sum}, t}
}

// orderLedger puts the shares of a counter under it.
func orderLedger(l schema.Ledger) schema.Ledger {
	var out schema.Ledger
	var add func(parent string, depth int)
	add = func(parent string, depth int) {
		for _, c := range l {
			if c.PartOf == parent && depth < len(l) {
				out = append(out, c)
				if c.Name != "" {
					add(c.Name, depth+1)
				}
			}
		}
	}
	add("", 0)
	return out
}

func glossaryBlocks() []Block {
	var blocks []Block
	for _, table := range schema.Tables() {
		t := Table{Caption: table.Name + ": " + table.Doc, Fold: true, Columns: []Column{{"Column", false}, {"Type", false}, {"Unit", false}, {"Meaning", false}}}
		for _, c := range table.Columns {
			typ := string(c.Type)
			if c.Nullable {
				typ += ", or null"
			}
			t.Rows = append(t.Rows, []Cell{txt(c.Name), txt(typ), txt(c.Unit), txt(c.Doc)})
		}
		blocks = append(blocks, t)
	}
	return blocks
}

func pick(figures map[string]Figure, ids ...string) []Block {
	var out []Block
	for _, id := range ids {
		if f, ok := figures[id]; ok {
			out = append(out, f)
		}
	}
	return out
}
