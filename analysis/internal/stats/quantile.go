// Package stats holds the statistics that the analyses use and that gonum does
// not have or defines otherwise.
//
// It knows numbers; it does not know latencies, requests or traces.
package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Bins is the number of equal time bins of the batch means.
const Bins = 20

// Quantile returns the p-quantile of sorted values by linear interpolation
// between order statistics (type 7 of Hyndman and Fan). It is NaN without values.
func Quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	i, frac := Rank(int64(len(sorted)), p)
	if frac == 0 {
		return sorted[i]
	}
	return sorted[i] + frac*(sorted[i+1]-sorted[i])
}

// Rank returns where the type-7 p-quantile of n sorted values lies: between the
// values at index i and i+1 (from 0), at a fraction of the way.
func Rank(n int64, p float64) (i int64, frac float64) {
	h := p * float64(n-1)
	i = int64(math.Floor(h))
	if i >= n-1 {
		return n - 1, 0
	}
	return i, h - float64(i)
}

// NEff returns the effective sample size for the p-quantile of dependent
// observations by batch means. Per equal time bin it takes the number of
// observations and how many of them exceed the sample quantile.
func NEff(p float64, counts, exceed []int64) float64 {
	var n, above float64
	for b := range counts {
		n += float64(counts[b])
		above += float64(exceed[b])
	}
	if n == 0 {
		return 0
	}
	share, sum := above/n, 0.0
	for b := range counts {
		d := float64(exceed[b]) - share*float64(counts[b])
		sum += d * d
	}
	k := float64(len(counts))
	variance := k / (k - 1) * sum / (n * n)
	if variance == 0 {
		return n
	}
	return min(n, p*(1-p)/variance)
}

// Fano returns the variance of counts over their mean: about 1 for Poisson
// arrivals, more where they come in bursts. It is NaN without counts.
func Fano(counts []int64) float64 {
	var sum, squares float64
	for _, c := range counts {
		sum += float64(c)
	}
	mean := sum / float64(len(counts))
	for _, c := range counts {
		squares += (float64(c) - mean) * (float64(c) - mean)
	}
	return squares / float64(len(counts)-1) / mean
}

// Needed returns the effective sample size from which a one-sided 95 % upper
// bound of the p-quantile exists: 29 for p90, 59, 299 and 2995 for p95, p99 and
// p99.9. The median is always supported.
func Needed(p float64) int64 {
	if p <= 0.5 {
		return 1
	}
	return int64(math.Ceil(math.Log(0.05) / math.Log(p)))
}

// ClopperPearson returns the equal-tailed interval of a proportion of which k of
// n trials were successes. Both may be fractional.
func ClopperPearson(k, n, confidence float64) (lo, hi float64) {
	tail := (1 - confidence) / 2
	lo, hi = 0, 1
	if k > 0 {
		lo = mathext.InvRegIncBeta(k, n-k+1, tail)
	}
	if k < n {
		hi = mathext.InvRegIncBeta(k+1, n-k, 1-tail)
	}
	return lo, hi
}

// OrderInterval returns the ranks (from 1) of the order statistics that bound
// the p-quantile of n observations worth nEff independent ones. bounded is false
// where no upper bound exists at this confidence.
func OrderInterval(n int64, nEff, p, confidence float64) (lo, hi int64, bounded bool) {
	if n == 0 || nEff <= 0 {
		return 1, n, false
	}
	l, u := ClopperPearson(p*nEff, nEff, confidence)
	lo = max(1, int64(math.Floor(l*float64(n))))
	hi = int64(math.Ceil(u*float64(n))) + 1
	bounded = 1-math.Pow(p, nEff) >= 1-(1-confidence)/2
	return lo, min(hi, n), bounded
}
