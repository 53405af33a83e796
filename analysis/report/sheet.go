package report

import (
	"fmt"
	"math"

	"tokentrace/analysis"
)

// Sheet returns the document for CSV: bare values in long form, ns throughout,
// with the units in the heads.
func (r *Results) Sheet() Document {
	return Document{Sections: []Section{{Blocks: []Block{
		statusTable(r.Summary.Population), failureTable(r.Summary), quantileTable(r.Overall), fitSheet(r.Fit),
		slowTable(r.Slowest), gapTable(r.Gaps),
	}}}}
}

// FitDocument shows a regression: for reading as sections, as CSV in bare values.
func FitDocument(r *analysis.Regression, format string) Document {
	if format == "csv" {
		return Document{Sections: []Section{{Blocks: []Block{fitSheet(r)}}}}
	}
	return Document{Sections: FitSections(r)}
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
	for _, g := range p.Groups {
		group := groupCells(p.By, g.Values)
		for _, m := range g.Metrics {
			for _, q := range m.Quantiles {
				t.Rows = append(t.Rows, quantileRow(group, m.Name, levelName(q.P), q))
			}
			largest := analysis.Quantile{P: 1, Estimate: analysis.Estimate{Value: &m.Max, N: m.N}, NEff: float64(m.N), Supported: true}
			t.Rows = append(t.Rows, quantileRow(group, m.Name, "max", largest))
		}
		if g.Survival == nil {
			continue
		}
		for _, q := range g.Survival.Quantiles {
			t.Rows = append(t.Rows, quantileRow(group, "ttft_kaplan_meier", levelName(q.P), q))
		}
	}
	return t
}

func quantileRow(group []Cell, metric, level string, q analysis.Quantile) []Cell {
	row := append([]Cell(nil), group...)
	return append(row, txt(metric), txt(level), wholeCell(q.Value, 1), wholeCell(q.Lo, 1), wholeCell(q.Hi, 1), number(q.N),
		Cell{Text: digits(q.NEff), Value: math.Round(100*q.NEff) / 100, Raw: true}, number(q.Needed),
		Cell{Text: fmt.Sprint(q.Supported), Value: q.Supported, Raw: true})
}

// wholeCell holds a value times a factor as a whole number.
func wholeCell(v *float64, factor float64) Cell {
	if v == nil {
		return Cell{Text: missing, Raw: true}
	}
	n := int64(math.Round(*v * factor))
	return Cell{Text: count(n), Value: n, Raw: true}
}

func bareCell(v *float64) Cell {
	if v == nil {
		return Cell{Text: missing, Raw: true}
	}
	return Cell{Text: digits(*v), Value: *v, Raw: true}
}

// fitSheet has a row per model, with everything known of its headline.
func fitSheet(r *analysis.Regression) Table {
	var t Table
	for _, head := range []string{
		"model", "x", "method", "slope_ms_per_1000_tokens", "slope_lo_ms_per_1000_tokens", "slope_hi_ms_per_1000_tokens", "known",
		"intercept_ns", "intercept_lo_ns", "intercept_hi_ns",
		"prefill_tokens_per_second", "prefill_lo_tokens_per_second", "prefill_hi_tokens_per_second", "below_ratio", "n",
	} {
		t.Columns = append(t.Columns, Column{head, false})
	}
	for _, f := range r.Models {
		row := []Cell{modelCell(f.Model, 28), txt(f.X), txt(f.Method)}
		for _, v := range []*float64{f.Slope.Value, f.Slope.Lo, f.Slope.Hi} {
			row = append(row, bareCell(v))
		}
		row = append(row, Cell{Text: fmt.Sprint(f.Known), Value: f.Known, Raw: true})
		for _, v := range []*float64{f.Intercept.Value, f.Intercept.Lo, f.Intercept.Hi} {
			row = append(row, wholeCell(v, 1e6))
		}
		for _, v := range []*float64{f.Prefill.Value, f.Prefill.Lo, f.Prefill.Hi, f.Below.Value} {
			row = append(row, bareCell(v))
		}
		t.Rows = append(t.Rows, append(row, number(f.Slope.N)))
	}
	return t
}
