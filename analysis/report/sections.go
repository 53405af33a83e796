package report

import (
	"fmt"
	"math"
	"strings"

	"tokentrace/analysis"
	"tokentrace/schema"
)

// Page returns the document of report.html. Figures stand where figures has them.
func (r *Results) Page(figures map[string]Figure) Document {
	d := Document{Title: r.Name, Subtitle: r.subtitle()}
	d.Sections = append(d.Sections,
		Section{ID: "summary", Title: "Summary", Blocks: append([]Block{r.tiles()}, r.notices()...)},
		Section{ID: "population", Title: "Requests", Blocks: []Block{
			Paragraph{populationLine(r.Summary.Population)}, statusTable(r.Summary.Population), exclusionTable(r.Overall),
		}},
	)
	latency := Section{ID: "latency", Title: "Latency", Blocks: []Block{
		Paragraph{"Requests with status ok. Under each quantile its 95 % interval, from order statistics at the effective sample size; ≥ marks a quantile that so few independent requests cannot bound from above."},
		latencyMatrix(r.Overall, analysis.Levels()),
	}}
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
		Section{ID: "ledger", Title: "Ledger", Blocks: ledgerBlocks(r.Summary)},
		Section{ID: "glossary", Title: "Glossary", Blocks: glossaryBlocks()},
	)
	return d
}

// Brief returns the summary for a terminal. dir is where the report lies.
func (r *Results) Brief(dir string) Document {
	d := Document{Title: r.Name, Subtitle: r.subtitle()}
	d.Sections = append(d.Sections, Section{Title: "Requests", Blocks: []Block{Paragraph{populationLine(r.Summary.Population)}}})
	if len(r.Overall.Groups) > 0 {
		blocks := []Block{latencyMatrix(headlines(r.Overall), []float64{0.5, 0.95, 0.99})}
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
			names = append(names, shorten(m, 40))
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
				c := quantileCell(m, t.p)
				tiles = append(tiles, Tile{t.label, c.Text, c.Note})
			}
		}
	}
	if len(r.Fit.Models) > 0 && r.Fit.Models[0].Slope.Value != nil {
		f := r.Fit.Models[0]
		tiles = append(tiles, Tile{"TTFT per 1000 prompt tokens", digits(*f.Slope.Value) + " ms", fitNote(f)})
	}
	if i.OutputTokens != nil {
		tiles = append(tiles, Tile{"Output tokens", count(*i.OutputTokens), "of all requests"})
	}
	return Tiles{tiles}
}

func fitNote(f analysis.ModelFit) string {
	if !f.Identifiable {
		return "not identifiable; least squares"
	}
	return plainSpan(f.Slope)
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
	if p.Buffered > 0 {
		line += fmt.Sprintf(" %s came in one piece (buffered_stream) and are left out of TPOT and ICL.", plural(p.Buffered, "stream", "streams"))
	}
	return line
}

func statusTable(p analysis.Population) Table {
	t := Table{Columns: []Column{{"Status", false}, {"Requests", true}, {"With first token", true}, {"In success statistics", false}}}
	for _, s := range p.Status {
		in := "yes"
		if s.Excluded {
			in = "no"
		}
		t.Rows = append(t.Rows, []Cell{txt(string(s.Status)), number(s.Count), number(s.FirstToken), txt(in)})
	}
	return t
}

func exclusionTable(p *analysis.Percentiles) Table {
	t := Table{Caption: "Left out, and why", Columns: []Column{{"Left out of", false}, {"Reason", false}, {"Requests", true}}}
	for _, e := range p.Exclusions {
		t.Rows = append(t.Rows, []Cell{txt(e.From), txt(e.Reason), number(e.Count)})
	}
	return t
}

func number(n int64) Cell       { return Cell{Text: count(n), Value: n, Raw: true} }
func optNumber(n *int64) Cell   { return Cell{Text: optCount(n), Value: n, Raw: true} }
func nanoseconds(n *int64) Cell { return Cell{Text: optDuration(n), Value: n, Raw: true} }
func name(s *string, most int) Cell {
	return Cell{Text: shorten(optText(s), most), Value: s, Raw: true}
}

// quantileCell writes a quantile with its interval; one that the sample does not
// support stands as a lower bound with what it lacks.
func quantileCell(m *analysis.Metric, p float64) Cell {
	q := m.Quantile(p)
	if q == nil || q.Value == nil {
		return Cell{Text: missing, Raw: true}
	}
	if !q.Supported {
		return Cell{
			Text: "≥ " + duration(m.Max), Note: fmt.Sprintf("n_eff %.0f/%d", math.Floor(q.NEff), q.Needed),
			Value: q.Value, Raw: true,
		}
	}
	return Cell{Text: duration(*q.Value), Note: span(q.Estimate), Value: q.Value, Raw: true}
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
			var row []Cell
			for _, v := range g.Values {
				row = append(row, name(v, 40))
			}
			row = append(row, txt(m.Label), number(m.N))
			for _, l := range levels {
				row = append(row, quantileCell(m, l))
			}
			t.Rows = append(t.Rows, append(row, Cell{Text: duration(m.Max), Value: m.Max, Raw: true}))
		}
	}
	return t
}

// quantileTable has a row per group, metric and quantile, with everything known of it.
func quantileTable(p *analysis.Percentiles) Table {
	var t Table
	for _, by := range p.By {
		t.Columns = append(t.Columns, Column{by, false})
	}
	t.Columns = append(t.Columns, Column{"metric", false}, Column{"quantile", false}, Column{"value_ns", true},
		Column{"lo_ns", true}, Column{"hi_ns", true}, Column{"n", true}, Column{"n_eff", true},
		Column{"needed", true}, Column{"supported", false})
	for i := range p.Groups {
		for _, m := range p.Groups[i].Metrics {
			for _, q := range m.Quantiles {
				t.Rows = append(t.Rows, quantileRow(p.Groups[i], m, q))
			}
			largest := m.Max
			row := quantileRow(p.Groups[i], m, analysis.Quantile{P: 1, Estimate: analysis.Estimate{Value: &largest, N: m.N}, NEff: float64(m.N), Supported: true})
			row[len(p.By)+1] = txt("max")
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

func quantileRow(g analysis.MetricsGroup, m analysis.Metric, q analysis.Quantile) []Cell {
	var row []Cell
	for _, v := range g.Values {
		row = append(row, name(v, 40))
	}
	nanos := func(v *float64) Cell {
		c := Cell{Text: missing, Value: v, Raw: true}
		if v != nil {
			c.Text = duration(*v)
		}
		return c
	}
	return append(row, txt(m.Name), txt(levelName(q.P)), nanos(q.Value), nanos(q.Lo), nanos(q.Hi), number(q.N),
		Cell{Text: digits(q.NEff), Value: q.NEff, Raw: true}, number(q.Needed),
		Cell{Text: fmt.Sprint(q.Supported), Value: q.Supported, Raw: true})
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
		var row []Cell
		for _, v := range g.Values {
			row = append(row, name(v, 40))
		}
		row = append(row, number(g.Survival.Observed), number(g.Survival.Censored))
		for _, q := range g.Survival.Quantiles {
			c := Cell{Text: "not reached", Value: q.Value, Raw: true}
			if q.Value != nil {
				c.Text, c.Note = duration(*q.Value), span(q.Estimate)
			}
			row = append(row, c)
		}
		t.Rows = append(t.Rows, row)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return []Block{t}
}

// PercentileDocument shows percentiles: for reading as a matrix, as CSV in long form.
func PercentileDocument(p *analysis.Percentiles, format string) Document {
	if format == "csv" {
		return Document{Sections: []Section{{Blocks: []Block{quantileTable(p)}}}}
	}
	blocks := []Block{Paragraph{populationLine(p.Population)}, latencyMatrix(p, analysis.Levels())}
	blocks = append(blocks, survivalBlocks(p)...)
	return Document{Sections: []Section{{Title: "Latency percentiles (status ok, 95 % intervals)", Blocks: append(blocks, Warnings{p.Warnings})}}}
}

// FitSections shows the fit of TTFT against prompt tokens.
func FitSections(r *analysis.Regression) []Section {
	blocks := []Block{}
	if len(r.Models) > 0 {
		blocks = append(blocks,
			Paragraph{"The headline slope is the line that 85 % of the requests stay below, over requests that came while no other waited for its first token: queueing does not steepen it and prefix-cache hits do not flatten it. Where that is not identifiable, it is least squares, over those requests or over all, and the table says so."},
			fitTable(r), estimatorTable(r))
	}
	return []Section{{Title: "TTFT against prompt length", Blocks: append(blocks, Warnings{r.Warnings})}}
}

func fitTable(r *analysis.Regression) Table {
	t := Table{Columns: []Column{
		{"Model", false}, {"ms per 1000 tokens", true}, {"Intercept", true}, {"Implied prefill", true},
		{"Below 0.65 of it", true}, {"n", true}, {"Method", false},
	}}
	for _, f := range r.Models {
		method := map[string]string{
			analysis.MethodQuantile:    "q85, unqueued",
			analysis.MethodOLSUnqueued: "least squares, unqueued",
			analysis.MethodOLS:         "least squares, all rows",
		}[f.Method]
		t.Rows = append(t.Rows, []Cell{
			name(f.Model, 28), plainCell(f.Slope, ""), plainCell(f.Intercept, " ms"), plainCell(f.Prefill, " tok/s"),
			shareCell(f.Below), number(f.Slope.N), txt(method),
		})
	}
	return t
}

func plainCell(e analysis.Estimate, unit string) Cell {
	if e.Value == nil {
		return Cell{Text: missing, Raw: true}
	}
	return Cell{Text: digits(*e.Value) + unit, Note: plainSpan(e), Value: e.Value, Raw: true}
}

func shareCell(e analysis.Estimate) Cell {
	if e.Value == nil {
		return Cell{Text: missing, Raw: true}
	}
	return Cell{Text: percent(*e.Value), Value: e.Value, Raw: true}
}

// estimatorTable sets the other estimators beside the headline.
func estimatorTable(r *analysis.Regression) Table {
	t := Table{Caption: "Other estimators, for comparison", Page: true, Columns: []Column{
		{"Model", false}, {"Estimator", false}, {"ms per 1000 tokens", true}, {"Intercept", true}, {"R²", true}, {"n", true},
	}}
	add := func(f analysis.ModelFit, what string, l *analysis.Line) {
		if l == nil {
			return
		}
		r2 := Cell{Text: missing, Value: l.R2, Raw: true}
		if l.R2 != nil {
			r2.Text = digits(*l.R2)
		}
		t.Rows = append(t.Rows, []Cell{name(f.Model, 40), txt(what), plainCell(l.Slope, ""), plainCell(l.Intercept, " ms"), r2, number(l.Slope.N)})
	}
	for _, f := range r.Models {
		add(f, "least squares (HC3), arrival-unqueued", f.OLS)
		add(f, "Huber, arrival-unqueued", f.Huber)
		add(f, "least squares (HC3), all rows", f.OLSAll)
		if q := f.Quadratic; q != nil {
			t.Rows = append(t.Rows, []Cell{
				name(f.Model, 40), txt(fmt.Sprintf("quadratic: slope at 1000 and 8000 tokens (t of the square %.1f, curved: %t)", q.T, q.Curved)),
				txt(optDigits(q.At1000) + ", " + optDigits(q.At8000)), txt(digits(q.Coef[0]) + " ms"), txt(missing), number(f.Unqueued),
			})
		}
	}
	return t
}

func optDigits(v *float64) string {
	if v == nil {
		return missing
	}
	return digits(*v)
}

func seriesTable(s *analysis.Series) Table {
	t := Table{Caption: fmt.Sprintf("Bins of %s", duration(float64(s.Width))), Fold: true, Columns: []Column{
		{"Start (UTC)", false}, {"Requests", true}, {"Failed", true}, {"Requests/s", true}, {"TTFT p50", true}, {"TTFT p95", true},
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
			nanos(b.TTFTP50), nanos(b.TTFTP95), plain(b.Concurrency), plain(b.TokenRate),
		})
	}
	return t
}

func slowTable(slow []analysis.SlowRequest) Table {
	t := Table{Columns: []Column{
		{"Request", false}, {"Start (UTC)", false}, {"TTFT", true}, {"Status", false}, {"Prompt tok.", true},
		{"Output tok.", true}, {"In flight", true}, {"Model", false},
	}}
	for _, s := range slow {
		t.Rows = append(t.Rows, []Cell{
			txt(s.ID), {Text: instant(s.Start), Value: s.Start, Raw: true}, nanoseconds(&s.TTFT), txt(string(s.Status)),
			optNumber(s.PromptTokens), optNumber(s.OutputTokens), number(s.Concurrency), name(s.Model, 28),
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
		label := c.Name
		if c.PartOf != "" {
			label = "↳ " + label
		}
		t.Rows = append(t.Rows, []Cell{{Text: label, Value: c.Name, Raw: true}, number(c.Count), share, txt(string(c.Severity)), txt(c.Doc)})
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

// TimelineDocument shows one request.
func TimelineDocument(l *analysis.Timeline, format string) Document {
	r := l.Request
	title := "Request " + r.ID
	if r.ClientID != nil {
		title += " (" + *r.ClientID + ")"
	}
	line := fmt.Sprintf("%s · status %s · %s · prompt %s, output %s tokens · %d in flight at its start", optText(r.Model), r.Status,
		optInstant(r.Start)+" UTC", optCount(r.PromptTokens), optCount(r.OutputTokens), r.Concurrency)
	for _, m := range []struct {
		label string
		ns    *int64
	}{{"TTFT", r.TTFT}, {"TPOT", r.TPOT}, {"E2E", r.E2E}} {
		line += " · " + m.label + " " + optDuration(m.ns)
	}
	if len(r.Flags) > 0 {
		line += " · flags " + strings.Join(r.Flags, ", ")
	}
	boundaries := Table{Columns: []Column{{"Boundary", false}, {"Since start", true}, {"At (UTC)", false}}}
	for _, b := range l.Boundaries {
		boundaries.Rows = append(boundaries.Rows, []Cell{txt(b.Name), nanoseconds(b.Since), {Text: instant(b.At), Value: b.At, Raw: true}})
	}
	records := recordTable(l.Records)
	if format == "csv" {
		return Document{Sections: []Section{{Blocks: []Block{records}}}}
	}
	return Document{Title: title, Subtitle: line, Sections: []Section{
		{Title: "Boundaries", Blocks: []Block{boundaries}},
		{Title: plural(int64(len(l.Records)), "record", "records"), Blocks: []Block{records}},
	}}
}

func recordTable(records []analysis.Record) Table {
	t := Table{Columns: []Column{
		{"index", true}, {"since_start_ns", true}, {"gap_ns", true}, {"kinds", false}, {"tokens", true}, {"text_bytes", true},
		{"segment", true}, {"choice", true},
	}}
	for _, r := range records {
		t.Rows = append(t.Rows, []Cell{
			number(r.Index), nanoseconds(r.Since), nanoseconds(r.Gap), txt(strings.Join(r.Kinds, "+")),
			optNumber(r.Tokens), number(r.TextBytes), number(r.Segment), number(r.Choice),
		})
	}
	return t
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
