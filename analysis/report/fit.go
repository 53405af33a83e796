package report

import (
	"fmt"
	"strings"

	"tokentrace/analysis"
)

// FitSections shows the fit of TTFT against prompt tokens.
func FitSections(r *analysis.Regression) []Section {
	blocks := []Block{}
	if len(r.Models) > 0 {
		blocks = append(blocks, Paragraph{fitIntro(r)}, fitTable(r), estimatorTable(r))
	}
	return []Section{{Title: "TTFT against prompt length", Blocks: append(blocks, Warnings{r.Warnings})}}
}

func fitIntro(r *analysis.Regression) string {
	text := "The headline slope is the line that 85 % of the requests stay below, over requests that came while no other waited for its first token: queueing does not steepen it and prefix-cache hits do not flatten it. Where that is not identifiable, it is least squares, over those requests or over all, and the table says so. "
	switch commonX(r) {
	case analysis.XUncached:
		return text + "x is uncached prompt tokens: the prompt without what the server took from its prefix cache."
	case analysis.XPrompt:
		return text + "x is prompt tokens, cached ones included."
	}
	return text + "x is prompt tokens, or uncached prompt tokens where the server tells the cached ones."
}

// commonX is the x of all fits, or empty where they differ.
func commonX(r *analysis.Regression) string {
	for _, f := range r.Models {
		if f.X != r.Models[0].X {
			return ""
		}
	}
	return r.Models[0].X
}

// xWords names an x as people read it.
func xWords(x string) string {
	switch x {
	case analysis.XUncached:
		return "uncached prompt tokens"
	case analysis.XPrompt:
		return "prompt tokens"
	}
	return "tokens of x"
}

func methodWords(method string) string {
	return map[string]string{
		analysis.MethodQuantile:    "q85, unqueued",
		analysis.MethodOLSUnqueued: "least squares, unqueued",
		analysis.MethodOLS:         "least squares, all rows",
	}[method]
}

func fitTable(r *analysis.Regression) Table {
	x := commonX(r)
	t := Table{Columns: []Column{{"Model", false}}}
	if x == "" {
		t.Columns = append(t.Columns, Column{"x", false})
	}
	t.Columns = append(t.Columns, Column{"ms per 1000 " + xWords(x), true}, Column{"Intercept", true}, Column{"Implied prefill", true},
		Column{"Below 0.65 of it", true}, Column{"n", true}, Column{"Method", false})
	for _, f := range r.Models {
		row := []Cell{modelCell(f.Model, 28)}
		if x == "" {
			row = append(row, txt(xWords(f.X)))
		}
		t.Rows = append(t.Rows, append(row, plainCell(f.Slope, ""), plainCell(f.Intercept, " ms"), plainCell(f.Prefill, " tok/s"),
			shareCell(f.Below), number(f.Slope.N), txt(methodWords(f.Method))))
	}
	return t
}

func plainCell(e analysis.Estimate, unit string) Cell {
	if e.Value == nil {
		return Cell{Text: missing, Raw: true}
	}
	return Cell{Text: digits(*e.Value) + unit, Note: interval(e, 1, unit), Value: e.Value, Raw: true}
}

func shareCell(e analysis.Estimate) Cell {
	if e.Value == nil {
		return Cell{Text: missing, Raw: true}
	}
	return Cell{Text: percent(*e.Value), Value: e.Value, Raw: true}
}

// fitTile is the slope, where there is one to speak of.
func fitTile(f analysis.ModelFit) Tile {
	t := Tile{Label: "TTFT per 1000 " + xWords(f.X), Value: "not identifiable"}
	switch {
	case f.Known:
		t.Value, t.Note = digits(*f.Slope.Value)+" ms", interval(f.Slope, 1, " ms")
		if !f.Identifiable {
			t.Note += ", least squares"
		}
	case f.Slope.Lo != nil && f.Slope.Hi != nil:
		t.Note = "the interval, " + interval(f.Slope, 1, " ms") + ", holds 0"
	default:
		t.Note = "no interval"
	}
	return t
}

// estimatorTable sets the other estimators beside the headline; those that would
// repeat it, or each other, are left out.
func estimatorTable(r *analysis.Regression) Table {
	t := Table{Caption: "Other estimators, for comparison", Page: true, Columns: []Column{
		{"Model", false}, {"Estimator", false}, {"ms per 1000 " + xWords(commonX(r)), true}, {"Intercept", true}, {"R²", true}, {"n", true},
	}}
	add := func(f analysis.ModelFit, what string, l *analysis.Line) {
		if l == nil {
			return
		}
		r2 := Cell{Text: missing, Value: l.R2, Raw: true}
		if l.R2 != nil {
			r2.Text = digits(*l.R2)
		}
		t.Rows = append(t.Rows, []Cell{modelCell(f.Model, 40), txt(what), plainCell(l.Slope, ""), plainCell(l.Intercept, " ms"), r2, number(l.Slope.N)})
	}
	for _, f := range r.Models {
		if f.Method != analysis.MethodOLSUnqueued && f.Unqueued != f.Rows || f.Method == analysis.MethodQuantile {
			add(f, "least squares (HC3), arrival-unqueued", f.OLS)
		}
		add(f, "Huber, arrival-unqueued", f.Huber)
		if f.Method != analysis.MethodOLS && f.Unqueued != f.Rows {
			add(f, "least squares (HC3), all rows", f.OLSAll)
		}
		if q := f.Quadratic; q != nil {
			t.Rows = append(t.Rows, []Cell{
				modelCell(f.Model, 40), txt(fmt.Sprintf("quadratic: slope at 1000 and 8000 tokens (t of the square %s, %s)", digits(q.T), curvedWords(q.Curved))),
				txt(strings.Join([]string{optDigits(q.At1000), optDigits(q.At8000)}, ", ")), txt(digits(q.Coef[0]) + " ms"), txt(missing), number(f.Unqueued),
			})
		}
	}
	return t
}

func curvedWords(curved bool) string {
	if curved {
		return "curved"
	}
	return "straight"
}

func optDigits(v *float64) string {
	if v == nil {
		return missing
	}
	return digits(*v)
}
