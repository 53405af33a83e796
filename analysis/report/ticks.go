package report

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// stepTicks marks a linear axis at steps of 1, 2 or 5 times a power of ten.
// Scale is what a value is divided by before it is written.
type stepTicks struct {
	scale float64
	most  int // labels
}

// Ticks implements plot.Ticker.
func (s stepTicks) Ticks(lo, hi float64) []plot.Tick {
	if !(hi > lo) {
		return []plot.Tick{{Value: lo, Label: tickLabel(lo/s.scale, 1)}}
	}
	step := roundStep((hi - lo) / s.scale / float64(max(s.most, 2)))
	var ticks []plot.Tick
	for i := math.Ceil(lo / s.scale / step * (1 - 1e-12)); i*step*s.scale <= hi*(1+1e-12); i++ {
		ticks = append(ticks, plot.Tick{Value: i * step * s.scale, Label: tickLabel(i*step, step)})
		if len(ticks) > 100 {
			break
		}
	}
	return ticks
}

// roundStep returns the smallest 1, 2 or 5 times a power of ten that is at least v.
func roundStep(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*unit >= v*(1-1e-9) {
			return m * unit
		}
	}
	return 10 * unit
}

// tickLabel writes v with as many decimals as the step needs.
func tickLabel(v, step float64) string {
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	if v == 0 {
		v = 0 // no negative zero
	}
	if math.Abs(v) >= 1e6 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(v, 'f', min(decimals, 9), 64)
}

// logTicks marks a logarithmic axis of ns at 1, 2 and 5 times powers of ten, or,
// where that is too much, at the powers alone.
type logTicks struct{}

// Ticks implements plot.Ticker.
func (logTicks) Ticks(lo, hi float64) []plot.Tick {
	decades := math.Log10(hi / lo)
	var ticks []plot.Tick
	for e := math.Floor(math.Log10(lo)); e <= math.Ceil(math.Log10(hi)); e++ {
		for m := 1.0; m < 10; m++ {
			v := m * math.Pow(10, e)
			if v < lo*(1-1e-9) || v > hi*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: v}
			if m == 1 || decades < 2.5 && (m == 2 || m == 5) {
				t.Label = shortDuration(v)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

func shortDuration(ns float64) string {
	unit, size := unitOf(ns)
	return strconv.FormatFloat(ns/size, 'g', 3, 64) + " " + unit
}
