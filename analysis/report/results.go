package report

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"tokentrace/analysis"
	"tokentrace/schema"
)

// Kind marks report.json as one of our reports.
const Kind = "tokentrace report"

// slowRequests is how many of the slowest requests a report shows.
const slowRequests = 12

// longestGaps is how many of the longest gaps between tokens it shows.
const longestGaps = 10

// Results are the results that a report shows; report.json is this, as it stands.
type Results struct {
	Kind     string                     `json:"kind"`
	Version  int                        `json:"version"`
	Name     string                     `json:"name"` // what was analysed
	Tool     string                     `json:"tool"` // program that made the report
	Summary  *analysis.Summary          `json:"summary"`
	Overall  *analysis.Percentiles      `json:"percentiles"`
	ByModel  *analysis.Percentiles      `json:"percentiles_by_model"`
	ByPath   *analysis.Percentiles      `json:"percentiles_by_path"`
	Fit      *analysis.Regression       `json:"ttft_vs_prompt"`
	Series   *analysis.Series           `json:"series"`
	TTFT     *analysis.Distribution     `json:"ttft_distribution"`
	TPOT     *analysis.Distribution     `json:"tpot_distribution"`
	Slowest  []analysis.SlowRequest     `json:"slowest"`
	Gaps     []analysis.TokenGap        `json:"longest_gaps"`
	Glossary map[string][]schema.Column `json:"glossary"`
}

// Gather asks the trace everything that a report shows. name is what the trace
// is called in it, tool the program and version that makes it.
func Gather(ctx context.Context, t *analysis.Trace, name, tool string) (*Results, error) {
	r := &Results{Kind: Kind, Version: 1, Name: name, Tool: tool, Glossary: map[string][]schema.Column{}}
	for _, table := range schema.Tables() {
		r.Glossary[table.Name] = table.Columns
	}
	var err error
	if r.Summary, err = t.Summary(ctx); err != nil {
		return nil, err
	}
	if r.Overall, err = t.Percentiles(ctx, nil); err != nil {
		return nil, err
	}
	if r.ByModel, err = t.Percentiles(ctx, []string{"model"}); err != nil {
		return nil, err
	}
	if r.ByPath, err = t.Percentiles(ctx, []string{"path"}); err != nil {
		return nil, err
	}
	if r.Fit, err = t.Regress(ctx, analysis.DefaultSeed); err != nil {
		return nil, err
	}
	if r.Series, err = t.Series(ctx); err != nil {
		return nil, err
	}
	if r.TTFT, err = t.Distribution(ctx, "ttft"); err != nil {
		return nil, err
	}
	if r.TPOT, err = t.Distribution(ctx, "tpot"); err != nil {
		return nil, err
	}
	if r.Slowest, err = t.Slowest(ctx, slowRequests); err != nil {
		return nil, err
	}
	r.Gaps, err = t.Gaps(ctx, longestGaps)
	return r, err
}

// WriteJSON writes a result as indented JSON.
func WriteJSON(w io.Writer, result any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(result); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}
