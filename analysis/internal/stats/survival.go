package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Observation is a time until an event, or, where Censored, until the
// observation ended without it.
type Observation struct {
	Time     float64
	Censored bool
}

// Survival is a Kaplan-Meier curve. Censoring is taken to say nothing about the
// event; where people give up because they waited long, it errs high.
type Survival struct {
	times    []float64 // of events, ascending, distinct
	survive  []float64 // just after each
	variance []float64 // Greenwood's sum just after each
}

// KaplanMeier estimates the curve. It sorts obs.
func KaplanMeier(obs []Observation) Survival {
	slices.SortFunc(obs, func(a, b Observation) int { return cmp.Compare(a.Time, b.Time) })
	var s Survival
	survive, sum := 1.0, 0.0
	for i := 0; i < len(obs); {
		atRisk := float64(len(obs) - i)
		t, events := obs[i].Time, 0.0
		for ; i < len(obs) && obs[i].Time == t; i++ {
			if !obs[i].Censored {
				events++
			}
		}
		if events == 0 {
			continue
		}
		survive *= 1 - events/atRisk
		sum += events / (atRisk * (atRisk - events))
		s.times = append(s.times, t)
		s.survive = append(s.survive, survive)
		s.variance = append(s.variance, sum)
	}
	return s
}

// Quantile returns the earliest time by which a share p had the event; reached
// is false where the curve ends above it.
func (s Survival) Quantile(p float64) (t float64, reached bool) {
	for i, v := range s.survive {
		if v <= 1-p+1e-12 {
			return s.times[i], true
		}
	}
	return math.NaN(), false
}

// Interval returns the times between which the p-quantile lies, by inverting
// Greenwood's interval on the log(-log) scale. An end that the data do not reach is NaN.
func (s Survival) Interval(p, confidence float64) (lo, hi float64) {
	z := distuv.UnitNormal.Quantile(1 - (1-confidence)/2)
	target := math.Log(-math.Log(1 - p))
	lo, hi = math.NaN(), math.NaN()
	for i, v := range s.survive {
		if v <= 0 || v >= 1 {
			continue
		}
		se := math.Sqrt(s.variance[i]) / math.Abs(math.Log(v))
		if math.Abs(math.Log(-math.Log(v))-target) > z*se {
			continue
		}
		if math.IsNaN(lo) {
			lo = s.times[i]
		}
		hi = math.NaN() // still inside where the data end
		if i+1 < len(s.times) {
			hi = s.times[i+1]
		}
	}
	return lo, hi
}
