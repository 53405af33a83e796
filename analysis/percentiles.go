package analysis

import (
	"context"
	"database/sql"
	_ "embed" // percentiles*.sql, survival.sql
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"tokentrace/analysis/internal/stats"
)

//go:embed percentiles_samples.sql
var percentilesSamplesSQL string

//go:embed percentiles.sql
var percentilesSQL string

//go:embed percentiles_ranks.sql
var percentilesRanksSQL string

//go:embed survival.sql
var survivalSQL string

// exactEvents is the number of records above which inter-chunk latency is
// counted by the microsecond instead of kept value by value.
const exactEvents = 1_000_000

// censoredShare is the share of waits without a first token from which the
// Kaplan-Meier line stands beside the observed one.
const censoredShare = 0.01

// Levels are the quantiles that the percentile tables have.
func Levels() []float64 { return []float64{0.5, 0.9, 0.95, 0.99, 0.999} }

// GroupColumns are the columns of requests that percentiles can be grouped by.
func GroupColumns() []string {
	return []string{
		"model", "api", "path", "status", "framing", "http_version", "http_status", "stream",
		"finish_reason", "run", "n_source", "tpot_quality", "concurrency",
	}
}

func metricLabels() [][2]string {
	return [][2]string{
		{"ttft", "TTFT"}, {"ttft_server", "TTFT (server)"}, {"ttfo", "TTFO"},
		{"tpot", "TPOT"}, {"icl", "ICL"}, {"e2e", "E2E"},
	}
}

// Percentiles are latency quantiles over requests with status ok.
type Percentiles struct {
	By         []string       `json:"by"`
	Population Population     `json:"population"`
	Exclusions []Exclusion    `json:"exclusions"`
	Groups     []MetricsGroup `json:"groups"`
	Warnings   []string       `json:"warnings"`
}

// Exclusion counts what a statistic leaves out, and why.
type Exclusion struct {
	From   string `json:"from"` // metrics
	Reason string `json:"reason"`
	Count  int64  `json:"count"` // requests
}

// MetricsGroup is one group of requests: one value per grouping column.
type MetricsGroup struct {
	Values   []*string     `json:"values"` // in the order of By; nil is NULL
	Metrics  []Metric      `json:"metrics"`
	Survival *SurvivalLine `json:"ttft_kaplan_meier,omitempty"`

	key string // Values as DuckDB writes them in JSON
}

// Metric is the distribution of one latency in ns.
type Metric struct {
	Name       string     `json:"name"`
	Label      string     `json:"label"`
	Unit       string     `json:"unit"`
	N          int64      `json:"n"`
	Min        float64    `json:"min"`
	Mean       float64    `json:"mean"`
	Max        float64    `json:"max"`
	Resolution int64      `json:"resolution_ns"` // values are cut down to a multiple of it
	Quantiles  []Quantile `json:"quantiles"`

	fano, tiny float64 // of the counts per time bin; share below 0.5 ms
}

// Quantile is an estimate of a quantile. Where it is not Supported, the sample
// cannot bound it from above: all that can be said is that it is large.
type Quantile struct {
	P float64 `json:"p"`
	Estimate
	NEff      float64 `json:"n_eff"`  // independent observations that the sample is worth
	Needed    int64   `json:"needed"` // n_eff from which it is supported
	Supported bool    `json:"supported"`
}

// SurvivalLine is the Kaplan-Meier estimate of TTFT, in which requests that were
// cut before their first token count as having waited that long.
type SurvivalLine struct {
	Observed  int64             `json:"observed"`
	Censored  int64             `json:"censored"`
	Quantiles []SurvivalLatency `json:"quantiles"`
}

// SurvivalLatency is a Kaplan-Meier quantile in ns; its Value is missing where
// too many were cut before so many had their first token.
type SurvivalLatency struct {
	P float64 `json:"p"`
	Estimate
}

// Metric returns the metric of a name, or nil.
func (g *MetricsGroup) Metric(name string) *Metric {
	for i := range g.Metrics {
		if g.Metrics[i].Name == name {
			return &g.Metrics[i]
		}
	}
	return nil
}

// Quantile returns the quantile at level p, or nil.
func (m *Metric) Quantile(p float64) *Quantile {
	for i := range m.Quantiles {
		if m.Quantiles[i].P == p {
			return &m.Quantiles[i]
		}
	}
	return nil
}

// Percentiles computes latency quantiles, grouped by columns of requests (see
// GroupColumns) or over all where by is empty.
func (t *Trace) Percentiles(ctx context.Context, by []string) (*Percentiles, error) {
	for _, column := range by {
		if !slices.Contains(GroupColumns(), column) {
			return nil, fmt.Errorf("cannot group by %q: choose from %s", column, strings.Join(GroupColumns(), ", "))
		}
	}
	population, err := t.population(ctx)
	if err != nil {
		return nil, err
	}
	result := &Percentiles{By: by, Population: population, Groups: []MetricsGroup{}, Warnings: []string{}}
	if by == nil {
		result.By = []string{}
	}
	result.Exclusions = exclusions(population)
	q := quantileQuery{trace: t, by: strings.Join(by, ","), resolution: 1}
	if t.rows("events") > exactEvents {
		q.resolution = 1000
	}
	rows, err := q.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("percentiles: %w", err)
	}
	if err := result.addRows(rows, q.resolution); err != nil {
		return nil, fmt.Errorf("percentiles: %w", err)
	}
	if err := t.addSurvival(ctx, result, q.by); err != nil {
		return nil, fmt.Errorf("Kaplan-Meier estimate: %w", err)
	}
	return result, nil
}

// rows is the number of rows of a table as the manifest has it.
func (t *Trace) rows(table string) (n int64) {
	for _, p := range t.Manifest.Parts {
		if p.Table == table {
			n += p.Rows
		}
	}
	return n
}

func exclusions(p Population) []Exclusion {
	out := []Exclusion{}
	for _, s := range p.Status {
		if s.Excluded {
			out = append(out, Exclusion{"all", "status " + string(s.Status), s.Count})
		}
	}
	if n := p.OK - p.Streams; n > 0 {
		out = append(out, Exclusion{"ttft, ttft_server, ttfo, tpot, icl", "not streamed", n})
	}
	if p.Buffered > 0 {
		out = append(out, Exclusion{"tpot, icl", "flag buffered_stream: the records came in one piece", p.Buffered})
	}
	return out
}

// quantileRow is one quantile of one metric of one group.
type quantileRow struct {
	Metric string  `json:"metric"`
	Group  string  `json:"group_key"`
	P      float64 `json:"p"`
	LoRank int64   `json:"lo"`
	HiRank int64   `json:"hi"`

	n, min, max     int64
	mean, tiny      float64
	value, lo, hi   float64
	counts, exceeds []int64
	nEff            float64
	bounded         bool
}

// quantileQuery computes quantiles in two rounds: the quantiles and what their
// effective sample sizes need, then the order statistics that bound them.
type quantileQuery struct {
	trace      *Trace
	by         string
	resolution int64
}

func (q quantileQuery) run(ctx context.Context) ([]quantileRow, error) {
	db := q.trace.db
	if err := db.Exec(ctx, "CREATE OR REPLACE TEMP TABLE samples AS "+percentilesSamplesSQL, q.by, q.resolution); err != nil {
		return nil, err
	}
	levels, err := json.Marshal(Levels())
	if err != nil {
		return nil, err
	}
	rows, err := collect(ctx, q.trace, percentilesSQL, scanQuantile, string(levels))
	if err != nil {
		return nil, err
	}
	weigh(rows)
	if err := q.bound(ctx, rows); err != nil {
		return nil, err
	}
	return rows, db.Exec(ctx, "DROP TABLE samples")
}

func scanQuantile(rows *sql.Rows) (quantileRow, error) {
	var r quantileRow
	var binCounts, binExceeds any
	err := rows.Scan(&r.Metric, &r.Group, &r.P, &r.n, &r.min, &r.max, &r.mean, &r.tiny, &r.value, &binCounts, &binExceeds)
	r.counts, r.exceeds = counts(binCounts), counts(binExceeds)
	return r, err
}

// weigh sets the effective sample sizes and the ranks that bound the quantiles.
// Where values are tied at the top nothing exceeds the quantile, and batch means
// have nothing to go by: it is then worth no more than the level below.
func weigh(rows []quantileRow) {
	for i := range rows {
		r := &rows[i]
		r.nEff = stats.NEff(r.P, r.counts, r.exceeds)
		if i > 0 && rows[i-1].Metric == r.Metric && rows[i-1].Group == r.Group && !slices.ContainsFunc(r.exceeds, func(n int64) bool { return n > 0 }) {
			r.nEff = min(r.nEff, rows[i-1].nEff)
		}
		r.LoRank, r.HiRank, r.bounded = stats.OrderInterval(r.n, r.nEff, r.P, Confidence)
	}
}

// bound sets lo and hi of the rows. Both queries return the rows in one order.
func (q quantileQuery) bound(ctx context.Context, rows []quantileRow) error {
	wanted, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	i := 0
	_, err = collect(ctx, q.trace, percentilesRanksSQL, func(r *sql.Rows) (struct{}, error) {
		var metric, group string
		var p float64
		var lo, hi int64
		if err := r.Scan(&metric, &group, &p, &lo, &hi); err != nil {
			return struct{}{}, err
		}
		if i >= len(rows) || rows[i].Metric != metric || rows[i].Group != group || rows[i].P != p {
			return struct{}{}, fmt.Errorf("no quantile %g of %s %s was asked for", p, metric, group)
		}
		rows[i].lo, rows[i].hi = float64(lo), float64(hi)
		if !rows[i].bounded {
			rows[i].hi = math.Inf(1)
		}
		i++
		return struct{}{}, nil
	}, string(wanted))
	if err == nil && i != len(rows) {
		err = fmt.Errorf("bounds of %d quantiles, %d were asked for", i, len(rows))
	}
	return err
}

func (r *Percentiles) addRows(rows []quantileRow, resolution int64) error {
	byGroup := map[string]int{}
	for _, row := range rows {
		i, ok := byGroup[row.Group]
		if !ok {
			i = len(r.Groups)
			byGroup[row.Group] = i
			g := MetricsGroup{key: row.Group}
			if err := json.Unmarshal([]byte(row.Group), &g.Values); err != nil {
				return err
			}
			r.Groups = append(r.Groups, g)
		}
		g := &r.Groups[i]
		if g.Metric(row.Metric) == nil {
			g.Metrics = append(g.Metrics, row.metric(resolution))
		}
		m := g.Metric(row.Metric)
		needed := stats.Needed(row.P)
		m.Quantiles = append(m.Quantiles, Quantile{
			P: row.P, Estimate: estimate(row.value, row.lo, row.hi, "ns", row.n),
			NEff: row.nEff, Needed: needed, Supported: row.P <= 0.5 || row.nEff >= float64(needed),
		})
	}
	order := map[string]int{}
	for i, m := range metricLabels() {
		order[m[0]] = i
	}
	for _, g := range r.Groups {
		slices.SortFunc(g.Metrics, func(a, b Metric) int { return order[a.Name] - order[b.Name] })
	}
	slices.SortStableFunc(r.Groups, func(a, b MetricsGroup) int { return int(b.size() - a.size()) })
	r.warn()
	return nil
}

func (g MetricsGroup) size() (n int64) {
	for _, m := range g.Metrics {
		if m.Name != "icl" {
			n = max(n, m.N)
		}
	}
	return n
}

func (r quantileRow) metric(resolution int64) Metric {
	m := Metric{
		Name: r.Metric, Label: r.Metric, Unit: "ns", N: r.n,
		Min: float64(r.min), Mean: r.mean, Max: float64(r.max), Resolution: 1,
		fano: stats.Fano(r.counts), tiny: r.tiny,
	}
	for _, l := range metricLabels() {
		if l[0] == r.Metric {
			m.Label = l[1]
		}
	}
	if r.Metric == "icl" {
		m.Resolution = resolution
	}
	return m
}

// Thresholds of the warnings.
const (
	tailLevel       = 0.99 // the quantile whose support is warned of
	approximateNEff = 50   // below it intervals are rough
	burstyFano      = 10   // above it 20 bins do not catch the bursts
	tinyGapShare    = 0.3  // from it most gaps are within one read
)

// warn says what keeps quantiles from being trusted: one warning per reason,
// with the metrics that it concerns.
func (r *Percentiles) warn() {
	var weak, approximate []string
	var other []string
	for i := range r.Groups {
		g := &r.Groups[i]
		label := GroupLabel(r.By, g.Values)
		for _, m := range g.Metrics {
			name := m.Label
			if label != "" {
				name += " of " + label
			}
			if q := m.Quantile(tailLevel); q != nil && !q.Supported {
				weak = append(weak, fmt.Sprintf("%s %.0f", name, math.Floor(q.NEff)))
			}
			if q := m.Quantile(0.5); q != nil && q.NEff < approximateNEff {
				approximate = append(approximate, fmt.Sprintf("%s %.0f", name, math.Floor(q.NEff)))
			}
			if m.fano > burstyFano && m.Name != "icl" {
				other = append(other, fmt.Sprintf("%s: arrivals come in bursts (variance over mean of the counts per time bin is %.0f; above %d intervals are approximate)", name, m.fano, burstyFano))
			}
			if m.Name == "icl" && m.tiny >= tinyGapShare {
				other = append(other, fmt.Sprintf("%s: %.0f %% of the gaps are below 0.5 ms: records that share a read, not tokens one by one", name, 100*m.tiny))
			}
		}
	}
	if len(weak) > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("p99 is not supported below an effective sample size of %d: %s", stats.Needed(tailLevel), listing(weak)))
	}
	if len(approximate) > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("intervals are approximate below an effective sample size of %d: %s", approximateNEff, listing(approximate)))
	}
	r.Warnings = append(r.Warnings, other...)
}

// listing joins a list and cuts it where it gets long.
func listing(items []string) string {
	const most = 12
	if n := len(items) - most; n > 0 {
		return strings.Join(items[:most], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(items, ", ")
}

// GroupLabel names a group: its values, each with its column.
func GroupLabel(by []string, values []*string) string {
	var parts []string
	for i, v := range values {
		text := "null"
		if v != nil {
			text = *v
		}
		if len(by) > 1 {
			text = by[i] + " " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func (t *Trace) addSurvival(ctx context.Context, result *Percentiles, by string) error {
	waits := map[string][]stats.Observation{}
	_, err := collect(ctx, t, survivalSQL, func(rows *sql.Rows) (struct{}, error) {
		var group string
		var o stats.Observation
		err := rows.Scan(&group, &o.Time, &o.Censored)
		waits[group] = append(waits[group], o)
		return struct{}{}, err
	}, by)
	if err != nil {
		return err
	}
	for i := range result.Groups {
		result.Groups[i].Survival = survivalLine(waits[result.Groups[i].key])
	}
	if line := survivalLine(waits["[]"]); len(result.Groups) == 0 && line != nil {
		result.Groups = append(result.Groups, MetricsGroup{Values: []*string{}, Metrics: []Metric{}, Survival: line})
	}
	return nil
}

// survivalLine returns nil where too few waits are censored to matter.
func survivalLine(waits []stats.Observation) *SurvivalLine {
	line := &SurvivalLine{}
	for _, w := range waits {
		if w.Censored {
			line.Censored++
		} else {
			line.Observed++
		}
	}
	if float64(line.Censored) <= censoredShare*float64(len(waits)) {
		return nil
	}
	curve := stats.KaplanMeier(waits)
	for _, p := range Levels() {
		value, _ := curve.Quantile(p)
		lo, hi := curve.Interval(p, Confidence)
		line.Quantiles = append(line.Quantiles, SurvivalLatency{p, estimate(value, lo, hi, "ns", int64(len(waits)))})
	}
	return line
}
