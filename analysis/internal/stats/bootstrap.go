package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// BlockBootstrap returns the percentile interval of a statistic under resampling
// of blocks of rows with replacement. blocks holds the block number of each row,
// ascending; statistic is given the indices of a resample and returns NaN where
// it is not defined. The same seed gives the same interval. ok is false where
// fewer than two blocks or too few defined resamples leave nothing to say.
func BlockBootstrap(blocks []int64, resamples int, seed uint64, confidence float64, statistic func(rows []int) float64) (lo, hi float64, ok bool) {
	var starts []int
	for i, b := range blocks {
		if i == 0 || b != blocks[i-1] {
			starts = append(starts, i)
		}
	}
	if len(starts) < 2 {
		return 0, 0, false
	}
	source := rand.New(rand.NewPCG(seed, 0))
	values := make([]float64, 0, resamples)
	rows := make([]int, 0, len(blocks))
	for range resamples {
		rows = rows[:0]
		for range starts {
			b := source.IntN(len(starts))
			end := len(blocks)
			if b+1 < len(starts) {
				end = starts[b+1]
			}
			for i := starts[b]; i < end; i++ {
				rows = append(rows, i)
			}
		}
		if v := statistic(rows); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	if len(values) < resamples/2 {
		return 0, 0, false
	}
	slices.Sort(values)
	tail := (1 - confidence) / 2
	return Quantile(values, tail), Quantile(values, 1-tail), true
}
