package analysis

import (
	"context"
	"database/sql"
	_ "embed" // survival.sql
	"fmt"
	"math"

	"tokentrace/analysis/internal/stats"
)

//go:embed survival.sql
var survivalSQL string

// censoredShare is the share of waits without a first token from which the
// Kaplan-Meier line stands beside the observed one.
const censoredShare = 0.01

// SurvivalLine is the Kaplan-Meier estimate of TTFT, in which requests that were
// cut before their first token count as having waited that long. Unlike the
// quantiles it rests on every first token, those of requests that failed later too.
type SurvivalLine struct {
	Observed   int64      `json:"observed"`        // first tokens
	Unfinished int64      `json:"observed_not_ok"` // of these, of requests that did not end ok
	Censored   int64      `json:"censored"`
	Max        float64    `json:"max_ns"`    // longest wait for a first token
	Quantiles  []Quantile `json:"quantiles"` // Value is missing where too many were cut; support is that of TTFT
}

// wait is how long a request waited for its first token.
type wait struct {
	stats.Observation
	ok bool // whether the request ended ok
}

func (t *Trace) addSurvival(ctx context.Context, result *Percentiles, by string) error {
	waits := map[string][]wait{}
	_, err := collect(ctx, t, survivalSQL, func(rows *sql.Rows) (struct{}, error) {
		var group string
		var w wait
		err := rows.Scan(&group, &w.Time, &w.Censored, &w.ok)
		waits[group] = append(waits[group], w)
		return struct{}{}, err
	}, by)
	if err != nil {
		return err
	}
	for i := range result.Groups {
		g := &result.Groups[i]
		g.Survival = survivalLine(waits[g.key], g.Metric("ttft"))
		result.explainSurvival(g)
	}
	if line := survivalLine(waits["[]"], nil); len(result.Groups) == 0 && line != nil {
		result.Groups = append(result.Groups, MetricsGroup{Values: []*string{}, Metrics: []Metric{}, Survival: line})
	}
	return nil
}

// survivalLine returns nil where too few waits are censored to matter. What the
// line supports is taken from the TTFT beside it: the requests are as dependent.
func survivalLine(waits []wait, ttft *Metric) *SurvivalLine {
	line := &SurvivalLine{}
	observations := make([]stats.Observation, len(waits))
	for i, w := range waits {
		observations[i] = w.Observation
		if w.Censored {
			line.Censored++
			continue
		}
		line.Observed++
		line.Max = max(line.Max, w.Time)
		if !w.ok {
			line.Unfinished++
		}
	}
	if float64(line.Censored) <= censoredShare*float64(len(waits)) {
		return nil
	}
	curve := stats.KaplanMeier(observations)
	for _, p := range Levels() {
		nEff := max(1, float64(line.Observed))
		if ttft != nil && ttft.Quantile(p) != nil {
			nEff = ttft.Quantile(p).NEff
		}
		line.Quantiles = append(line.Quantiles, survivalQuantile(curve, p, nEff, int64(len(waits))))
	}
	return line
}

func survivalQuantile(curve stats.Survival, p, nEff float64, n int64) Quantile {
	value, _ := curve.Quantile(p)
	lo, hi := curve.Interval(p, Confidence)
	if _, _, bounded := stats.OrderInterval(n, nEff, p, Confidence); !bounded {
		hi = math.Inf(1)
	}
	return Quantile{
		P: p, Estimate: estimate(value, lo, hi, "ns", n),
		NEff: nEff, Needed: stats.Needed(p), Supported: supported(p, nEff),
	}
}

// explainSurvival says why a Kaplan-Meier quantile is below the observed one,
// where cut requests alone would put it above.
func (r *Percentiles) explainSurvival(g *MetricsGroup) {
	ttft := g.Metric("ttft")
	if g.Survival == nil || ttft == nil {
		return
	}
	for _, q := range g.Survival.Quantiles {
		seen := ttft.Quantile(q.P)
		if q.Value == nil || seen == nil || seen.Value == nil || *q.Value >= *seen.Value {
			continue
		}
		label := GroupLabel(r.By, g.Values)
		if label != "" {
			label += ": "
		}
		why := "it takes values as they are, where a quantile lies between two"
		if n := g.Survival.Unfinished; n > 0 {
			why = fmt.Sprintf("it also counts %d first tokens of requests that did not end ok", n)
		}
		r.Warnings = append(r.Warnings, fmt.Sprintf("%sat %g %% the Kaplan-Meier line lies below the observed TTFT: %s", label, 100*q.P, why))
		return
	}
}
