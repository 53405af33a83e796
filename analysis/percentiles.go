package analysis

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed" // percentiles*.sql
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tokentrace/analysis/internal/stats"
)

//go:embed percentiles_samples.sql
var percentilesSamplesSQL string

//go:embed percentiles.sql
var percentilesSQL string

//go:embed percentiles_ranks.sql
var percentilesRanksSQL string

// exactEvents is the number of records above which inter-chunk latency is
// counted by the microsecond instead of kept value by value.
const exactEvents = 1_000_000

// Levels are the quantiles that the percentile tables have.
func Levels() []float64 { return []float64{0.5, 0.9, 0.95, 0.99, 0.999} }

// GroupColumns are the columns of requests that percentiles can be grouped by.
func GroupColumns() []string {
	return []string{
		"model", "api", "path", "framing", "http_version", "http_status", "stream",
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

// Has is the effective sample size as a whole number, as it is set beside Needed.
func (q *Quantile) Has() int64 { return int64(math.Floor(q.NEff)) }

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
		r.nEff = max(1, r.nEff) // one observation is one, whatever the variance says
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
			NEff: row.nEff, Needed: needed, Supported: supported(row.P, row.nEff),
		})
	}
	order := map[string]int{}
	for i, m := range metricLabels() {
		order[m[0]] = i
	}
	for _, g := range r.Groups {
		slices.SortFunc(g.Metrics, func(a, b Metric) int { return order[a.Name] - order[b.Name] })
	}
	slices.SortStableFunc(r.Groups, r.compareGroups)
	r.warn()
	return nil
}

func supported(p, nEff float64) bool { return p <= 0.5 || nEff >= float64(stats.Needed(p)) }

// compareGroups puts groups of numbers in the order of the numbers, others by size.
func (r *Percentiles) compareGroups(a, b MetricsGroup) int {
	for i, column := range r.By {
		if !slices.Contains(numericColumns(), column) {
			return cmp.Compare(b.size(), a.size())
		}
		if c := cmp.Compare(number(a.Values[i]), number(b.Values[i])); c != 0 {
			return c
		}
	}
	return 0
}

// number reads a value of a numeric column; NULL comes last.
func number(v *string) float64 {
	if v == nil {
		return math.Inf(1)
	}
	n, err := strconv.ParseFloat(*v, 64)
	if err != nil {
		return math.Inf(1)
	}
	return n
}

// numericColumns are the GroupColumns that hold numbers.
func numericColumns() []string { return []string{"concurrency", "http_status"} }

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
	var weak, approximate, other []string
	for i := range r.Groups {
		label := GroupLabel(r.By, r.Groups[i].Values)
		if label != "" {
			label += ": "
		}
		var weakHere, approximateHere []string
		for _, m := range r.Groups[i].Metrics {
			if q := m.Quantile(tailLevel); q != nil && !q.Supported {
				weakHere = append(weakHere, fmt.Sprintf("%s %d", m.Label, q.Has()))
			}
			if q := m.Quantile(0.5); q != nil && q.NEff < approximateNEff {
				approximateHere = append(approximateHere, fmt.Sprintf("%s %d", m.Label, q.Has()))
			}
			other = append(other, m.warnings(label)...)
		}
		weak = addGroup(weak, label, weakHere)
		approximate = addGroup(approximate, label, approximateHere)
	}
	r.addWarning(fmt.Sprintf("p99 is not supported below an effective sample size of %d", stats.Needed(tailLevel)), weak)
	r.addWarning(fmt.Sprintf("intervals are approximate below an effective sample size of %d", approximateNEff), approximate)
	r.Warnings = append(r.Warnings, other...)
}

// warnings are those that concern one metric of the group that label names.
func (m *Metric) warnings(label string) []string {
	var out []string
	if m.fano > burstyFano && m.Name != "icl" {
		out = append(out, fmt.Sprintf("%s%s: arrivals come in bursts (variance over mean of the counts per time bin is %.0f; above %d intervals are approximate)", label, m.Label, m.fano, burstyFano))
	}
	if m.Name == "icl" && m.tiny >= tinyGapShare {
		out = append(out, fmt.Sprintf("%s%s: %.0f %% of the gaps are below 0.5 ms: records that share a read, not tokens one by one", label, m.Label, 100*m.tiny))
	}
	return out
}

// addGroup adds the items of a group behind its label.
func addGroup(all []string, label string, items []string) []string {
	if len(items) == 0 {
		return all
	}
	return append(all, label+strings.Join(items, ", "))
}

func (r *Percentiles) addWarning(what string, groups []string) {
	if len(groups) > 0 {
		r.Warnings = append(r.Warnings, what+": "+listing(groups))
	}
}

// listing joins a list and cuts it where it gets long.
func listing(items []string) string {
	const most = 6
	if n := len(items) - most; n > 0 {
		return strings.Join(items[:most], "; ") + fmt.Sprintf("; and %d groups more", n)
	}
	return strings.Join(items, "; ")
}

// GroupLabel names a group: its values, each with its column.
func GroupLabel(by []string, values []*string) string {
	var parts []string
	for i, v := range values {
		text := "null"
		if v != nil {
			text = *v
		}
		if v != nil && by[i] == "model" {
			text = ModelName(text)
		}
		if len(by) > 1 || slices.Contains(numericColumns(), by[i]) {
			text = by[i] + " " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
