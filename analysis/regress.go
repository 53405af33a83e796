package analysis

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed" // regress.sql
	"fmt"
	"math"
	"slices"

	"tokentrace/analysis/internal/stats"
)

//go:embed regress.sql
var regressSQL string

// DefaultSeed seeds the bootstrap where nobody asks for another.
const DefaultSeed = 1

// What the x of a fit is.
const (
	XPrompt   = "prompt_tokens"
	XUncached = "uncached_prompt_tokens" // less those that the server took from its prefix cache
)

// How a headline slope was found.
const (
	MethodQuantile    = "q85_arrival_unqueued"
	MethodOLSUnqueued = "ols_arrival_unqueued"
	MethodOLS         = "ols_all_rows"
)

// Whether one line describes the requests of a fit.
const (
	VerdictSingle = "one_line"
	VerdictTwo    = "two_branches"
)

// What the fit of TTFT against prompt length asks of its rows.
const (
	fitRows     = 50             // rows below which no slope is identifiable
	fitSpread   = 4              // p95/p5 of the prompts, likewise
	fitTau      = 0.85           // the headline line has this share of the points below
	fitFrom     = 0.3            // it is fitted on prompts from this quantile up
	branchBelow = 0.65           // a point below this share of the line took another path
	branchShare = 0.08           // from this share of such points on there are two branches
	cachedKnown = 0.9            // share of rows with cached_tokens from which uncached tokens are used
	curvatureT  = 3              // HC3 t from which the quadratic term counts
	minFitRows  = 3              // rows of plain least squares
	unqueuedFit = 10             // arrival-unqueued rows from which least squares leaves the others out
	fitBlock    = 20_000_000_000 // ns of a bootstrap block

	fitWork      = 6_000_000 // rows times resamples, which bounds the time that the bootstrap takes
	maxResamples = 2000
	minResamples = 200

	figurePoints = 2000 // points of a fit that a result holds
	localSmall   = 1000 // tokens at which the curve's slope is told
	localLarge   = 8000
)

// Units of the fit.
const (
	tokensPerUnit = 1000
	nsPerMs       = 1e6
	fitSlopeUnit  = "ms/1000 tokens"
	fitRateUnit   = "tokens/s"
)

// Regression is TTFT against prompt tokens, per model.
type Regression struct {
	Seed     uint64     `json:"seed"` // of the bootstrap
	Models   []ModelFit `json:"models"`
	Warnings []string   `json:"warnings"`
}

// ModelFit is the fit of one model. The headline is Slope, by Method: the line
// that 85 % of the requests stay below, over requests that came while no other
// waited for its first token; or, where that is not identifiable, least squares
// over those requests, or over all where there are fewer than 10 of them, with a
// warning.
type ModelFit struct {
	Model    *string `json:"model"`
	X        string  `json:"x"`        // prompt_tokens, or uncached_prompt_tokens where the server tells cached ones
	Rows     int64   `json:"rows"`     // requests with a TTFT and known prompt tokens
	Unqueued int64   `json:"unqueued"` // of these arrival-unqueued
	XP5      float64 `json:"x_p5"`     // tokens
	XP95     float64 `json:"x_p95"`    // tokens

	Identifiable bool   `json:"identifiable"`
	Reason       string `json:"reason,omitempty"` // why not, with the number needed
	Method       string `json:"method"`

	Slope     Estimate `json:"slope"`     // ms per 1000 tokens
	Known     bool     `json:"known"`     // whether Slope has an interval, and 0 lies outside it
	Intercept Estimate `json:"intercept"` // ms
	Prefill   Estimate `json:"prefill"`   // implied rate, tokens/s, intercept excluded
	Below     Estimate `json:"below"`     // share of requests below 0.65 of the line
	Verdict   string   `json:"verdict,omitempty"`
	Resamples int64    `json:"resamples"` // of the bootstrap behind Slope's interval; 0: HC3

	OLS       *Line  `json:"ols,omitempty"`   // arrival-unqueued rows, HC3
	Huber     *Line  `json:"huber,omitempty"` // arrival-unqueued rows
	OLSAll    *Line  `json:"ols_all,omitempty"`
	Quadratic *Curve `json:"quadratic,omitempty"` // arrival-unqueued rows

	Points   []Point  `json:"points"` // what the fit rests on, thinned to 2000
	Warnings []string `json:"warnings"`
}

// Line is TTFT = intercept + slope * tokens.
type Line struct {
	Slope     Estimate `json:"slope"`     // ms per 1000 tokens
	Intercept Estimate `json:"intercept"` // ms
	R2        *float64 `json:"r2"`
}

// Curve is the fit with a quadratic term.
type Curve struct {
	Coef   []float64 `json:"coefficients"` // ms, ms per token, ms per token squared
	T      float64   `json:"t"`            // of the quadratic term, HC3
	Curved bool      `json:"curved"`       // |t| >= 3
	At1000 *float64  `json:"slope_at_1000"`
	At8000 *float64  `json:"slope_at_8000"` // ms per 1000 tokens; missing where no prompt is so long
	Unit   string    `json:"slope_unit"`    // ms/1000 tokens
}

// Point is one request of the fit.
type Point struct {
	Tokens   int64 `json:"tokens"`
	TTFT     int64 `json:"ttft_ns"`
	Unqueued bool  `json:"unqueued"`
}

type fitRow struct {
	model               *string
	start, ttft, prompt int64
	cached              *int64
	unqueued            bool
	x, y                float64 // tokens, ms
}

// Regress fits TTFT against prompt tokens for each model. The seed fixes the bootstrap.
func (t *Trace) Regress(ctx context.Context, seed uint64) (*Regression, error) {
	rows, err := collect(ctx, t, regressSQL, func(rows *sql.Rows) (fitRow, error) {
		var r fitRow
		err := rows.Scan(&r.model, &r.start, &r.ttft, &r.prompt, &r.cached, &r.unqueued)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("TTFT against prompt tokens: %w", err)
	}
	result := &Regression{Seed: seed, Models: []ModelFit{}, Warnings: []string{}}
	for _, group := range byModel(rows) {
		fit := fitModel(group, seed)
		result.Models = append(result.Models, fit)
		for _, w := range fit.Warnings {
			if fit.Model != nil {
				w = ModelName(*fit.Model) + ": " + w
			}
			result.Warnings = append(result.Warnings, w)
		}
	}
	if len(rows) == 0 {
		result.Warnings = append(result.Warnings, "no request with status ok has both a time to first token and known prompt tokens")
	}
	return result, nil
}

// byModel splits rows by model, most rows first.
func byModel(rows []fitRow) [][]fitRow {
	index := map[string]int{}
	var groups [][]fitRow
	for _, r := range rows {
		key := "-"
		if r.model != nil {
			key = "=" + *r.model
		}
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	slices.SortStableFunc(groups, func(a, b []fitRow) int { return cmp.Compare(len(b), len(a)) })
	return groups
}

func fitModel(rows []fitRow, seed uint64) ModelFit {
	fit := ModelFit{Model: rows[0].model, X: XPrompt, Points: []Point{}, Warnings: []string{}}
	rows = fit.chooseX(rows)
	var unqueued []fitRow
	for _, r := range rows {
		if r.unqueued {
			unqueued = append(unqueued, r)
		}
	}
	fit.Rows, fit.Unqueued = int64(len(rows)), int64(len(unqueued))
	fit.addPoints(rows)
	fit.OLSAll = olsLine(rows)
	fit.spread(unqueued)
	fit.identify()
	fit.OLS = olsLine(unqueued)
	if fit.Identifiable {
		fit.Huber, fit.Quadratic = huberLine(unqueued), curve(unqueued, fit.XP95)
		fit.headline(unqueued, seed)
	} else {
		fit.fallback()
	}
	fit.Known = excludesZero(fit.Slope)
	fit.Prefill = fit.prefillRate()
	return fit
}

// excludesZero tells whether an estimate has an interval that tells its sign.
func excludesZero(e Estimate) bool {
	return e.Value != nil && e.Lo != nil && e.Hi != nil && (*e.Lo > 0 || *e.Hi < 0)
}

// chooseX sets x of the rows to the tokens that the server had to compute,
// where it tells, and drops the rows that do not.
func (f *ModelFit) chooseX(rows []fitRow) []fitRow {
	known := 0
	for _, r := range rows {
		if r.cached != nil {
			known++
		}
	}
	useCached := float64(known) >= cachedKnown*float64(len(rows))
	if useCached {
		f.X = XUncached
	} else if known > 0 {
		f.warn("%d of %d requests tell their cached tokens, too few to take them off the prompt", known, len(rows))
	}
	kept := make([]fitRow, 0, len(rows))
	for _, r := range rows {
		r.x, r.y = float64(r.prompt), float64(r.ttft)/nsPerMs
		if useCached {
			if r.cached == nil {
				continue
			}
			r.x -= float64(*r.cached)
		}
		kept = append(kept, r)
	}
	if dropped := len(rows) - len(kept); dropped > 0 {
		f.warn("%d requests without cached tokens are left out", dropped)
	}
	return kept
}

func (f *ModelFit) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}

func (f *ModelFit) addPoints(rows []fitRow) {
	step := max(1, (len(rows)+figurePoints-1)/figurePoints)
	for i := 0; i < len(rows); i += step {
		f.Points = append(f.Points, Point{int64(rows[i].x), rows[i].ttft, rows[i].unqueued})
	}
}

func (f *ModelFit) spread(rows []fitRow) {
	x, _ := columnsOf(rows)
	slices.Sort(x)
	if len(x) > 0 {
		f.XP5, f.XP95 = stats.Quantile(x, 0.05), stats.Quantile(x, 0.95)
	}
}

func (f *ModelFit) identify() {
	switch {
	case f.Unqueued < fitRows:
		f.Reason = fmt.Sprintf("not identifiable: %d requests came while no other waited for its first token; %d are needed", f.Unqueued, fitRows)
	case f.XP95 < fitSpread*max(f.XP5, 1):
		f.Reason = fmt.Sprintf("not identifiable: prompts are nearly constant (p95/p5 of tokens = %.1f; %d is needed)", f.XP95/max(f.XP5, 1), fitSpread)
	default:
		f.Identifiable = true
	}
}

// fallback gives least squares, marked as what it is.
func (f *ModelFit) fallback() {
	f.Method = MethodOLS
	f.Slope.Unit, f.Intercept.Unit, f.Slope.Confidence, f.Intercept.Confidence = fitSlopeUnit, "ms", Confidence, Confidence
	f.Below = Estimate{Unit: "ratio", Confidence: Confidence}
	f.warn("%s", f.Reason)
	switch {
	case f.Unqueued >= unqueuedFit && f.OLS != nil:
		f.Method = MethodOLSUnqueued
		f.Slope, f.Intercept = f.OLS.Slope, f.OLS.Intercept
		f.warn("the slope shown is least squares over the %d requests that came while no other waited%s", f.Unqueued, f.hits(", cache hits included"))
	case f.OLSAll != nil:
		f.Slope, f.Intercept = f.OLSAll.Slope, f.OLSAll.Intercept
		f.warn("the slope shown is least squares over all %d rows, queueing%s included", f.Rows, f.hits(" and cache hits"))
	default:
		f.warn("no line either: %d rows with distinct prompts are needed", minFitRows)
	}
}

// hits returns the words about prefix-cache hits where x counts the tokens they save.
func (f *ModelFit) hits(words string) string {
	if f.X == XUncached {
		return ""
	}
	return words
}

// headline fits the 85 % line and counts what lies far below it.
func (f *ModelFit) headline(rows []fitRow, seed uint64) {
	f.Method = MethodQuantile
	x, _ := columnsOf(rows)
	slices.Sort(x)
	from := stats.Quantile(x, fitFrom)
	upper := slices.DeleteFunc(slices.Clone(rows), func(r fitRow) bool { return r.x < from })
	x, y := columnsOf(upper)
	a, b, err := stats.QuantileLine(x, y, fitTau, 0)
	if err != nil {
		f.Identifiable, f.Reason = false, "not identifiable: "+err.Error()
		f.fallback()
		return
	}
	resamples := min(maxResamples, max(minResamples, fitWork/len(upper)))
	slopeLo, slopeHi := bootstrapSlope(upper, b, resamples, seed)
	f.Slope = estimate(b*tokensPerUnit, slopeLo*tokensPerUnit, slopeHi*tokensPerUnit, fitSlopeUnit, int64(len(upper)))
	f.Intercept = estimate(a, math.NaN(), math.NaN(), "ms", int64(len(upper)))
	f.Resamples = int64(resamples)
	if f.Slope.Lo == nil {
		f.warn("no interval of the slope: the requests lie within two blocks of 20 s")
	}
	f.branches(upper, a, b)
}

// bootstrapSlope returns the interval of the line's slope by resampling 20-s blocks.
func bootstrapSlope(rows []fitRow, slope float64, resamples int, seed uint64) (lo, hi float64) {
	blocks := make([]int64, len(rows))
	for i, r := range rows {
		blocks[i] = r.start / fitBlock
	}
	x, y := make([]float64, 0, 2*len(rows)), make([]float64, 0, 2*len(rows))
	lo, hi, ok := stats.BlockBootstrap(blocks, resamples, seed, Confidence, func(sample []int) float64 {
		x, y = x[:0], y[:0]
		for _, i := range sample {
			x, y = append(x, rows[i].x), append(y, rows[i].y)
		}
		_, b, err := stats.QuantileLine(x, y, fitTau, slope)
		if err != nil {
			return math.NaN()
		}
		return b
	})
	if !ok {
		return math.NaN(), math.NaN()
	}
	return lo, hi
}

func (f *ModelFit) branches(rows []fitRow, a, b float64) {
	below := 0
	for _, r := range rows {
		if r.y < branchBelow*(a+b*r.x) {
			below++
		}
	}
	n := float64(len(rows))
	lo, hi := stats.ClopperPearson(float64(below), n, Confidence)
	f.Below = estimate(float64(below)/n, lo, hi, "ratio", int64(len(rows)))
	f.Verdict = VerdictSingle
	if float64(below) >= branchShare*n {
		f.Verdict = VerdictTwo
		f.warn("two branches: %.0f %% of the requests lie below 0.65 of the line, likely prefix-cache hits; no single slope describes them", 100*float64(below)/n)
	}
}

func columnsOf(rows []fitRow) (x, y []float64) {
	x, y = make([]float64, len(rows)), make([]float64, len(rows))
	for i, r := range rows {
		x[i], y[i] = r.x, r.y
	}
	return x, y
}

func olsLine(rows []fitRow) *Line {
	x, y := columnsOf(rows)
	fit, err := stats.Polynomial(x, y, 1)
	if err != nil {
		return nil
	}
	n := int64(fit.N)
	aLo, aHi := fit.Interval(0, Confidence)
	bLo, bHi := fit.Interval(1, Confidence)
	return &Line{
		Slope:     estimate(fit.Coef[1]*tokensPerUnit, bLo*tokensPerUnit, bHi*tokensPerUnit, fitSlopeUnit, n),
		Intercept: estimate(fit.Coef[0], aLo, aHi, "ms", n),
		R2:        finite(fit.R2),
	}
}

func huberLine(rows []fitRow) *Line {
	x, y := columnsOf(rows)
	a, b, err := stats.Huber(x, y)
	if err != nil {
		return nil
	}
	none, n := math.NaN(), int64(len(rows))
	return &Line{
		Slope:     estimate(b*tokensPerUnit, none, none, fitSlopeUnit, n),
		Intercept: estimate(a, none, none, "ms", n),
	}
}

// curve fits the quadratic in units of 1000 tokens, which keeps the powers of
// long prompts in one order of magnitude.
func curve(rows []fitRow, longest float64) *Curve {
	x, y := columnsOf(rows)
	for i := range x {
		x[i] /= tokensPerUnit
	}
	fit, err := stats.Polynomial(x, y, 2)
	if err != nil || fit.SE[2] == 0 {
		return nil
	}
	b, c := fit.Coef[1], fit.Coef[2]
	result := &Curve{
		Coef: []float64{fit.Coef[0], b / tokensPerUnit, c / tokensPerUnit / tokensPerUnit},
		T:    c / fit.SE[2],
		Unit: fitSlopeUnit,
	}
	result.Curved = math.Abs(result.T) >= curvatureT
	if longest >= localSmall {
		result.At1000 = finite(b + 2*c*localSmall/tokensPerUnit)
	}
	if longest >= localLarge {
		result.At8000 = finite(b + 2*c*localLarge/tokensPerUnit)
	}
	return result
}

// prefillRate turns ms per 1000 tokens into tokens per second; a slope that is
// not known, or not positive, implies none.
func (f *ModelFit) prefillRate() Estimate {
	slope := f.Slope
	rate := func(v *float64) float64 {
		if v == nil || *v <= 0 {
			return math.NaN()
		}
		return tokensPerUnit * 1000 / *v
	}
	if !f.Known || *slope.Value <= 0 {
		none := math.NaN()
		return estimate(none, none, none, fitRateUnit, slope.N)
	}
	return estimate(rate(slope.Value), rate(slope.Hi), rate(slope.Lo), fitRateUnit, slope.N)
}
