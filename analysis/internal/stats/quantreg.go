package stats

import (
	"math"
	"slices"
)

// QuantileLine returns the line of which a share tau of the points lies below:
// the exact minimum of the check loss, found by walking along edges of the loss.
// hint is a line to start from; any will do, a near one is fast.
//
// A minimum runs through two points. With one of them held, the best slope is a
// weighted quantile of the slopes to all others; the point that gives it becomes
// the next one held, until the slope stays.
func QuantileLine(x, y []float64, tau, hint float64) (intercept, slope float64, err error) {
	w := newWalk(x, y, tau)
	pivot := w.nearest(hint)
	slope, next := w.best(pivot)
	if next < 0 {
		return 0, 0, ErrSingular
	}
	loss := w.loss(pivot, slope)
	for range 1000 { // the loss falls with every step; the bound is for rounding alone
		better := false
		for _, p := range w.onLine(pivot, next, slope) {
			s, n := w.best(p)
			if l := w.loss(p, s); l < loss*(1-1e-12) {
				pivot, slope, next, loss, better = p, s, n, l, true
				break
			}
		}
		if !better {
			break
		}
	}
	return y[pivot] - slope*x[pivot], slope, nil
}

type walk struct {
	x, y  []float64
	tau   float64
	slots []slot
}

type slot struct {
	slope, weight float64
	index         int
}

func newWalk(x, y []float64, tau float64) *walk {
	return &walk{x, y, tau, make([]slot, 0, len(x))}
}

// nearest returns the point that the line of slope hint with a share tau of the
// points below runs through.
func (w *walk) nearest(hint float64) int {
	order := make([]slot, len(w.x))
	for i := range w.x {
		order[i] = slot{w.y[i] - hint*w.x[i], 1, i}
	}
	return selectWeighted(order, w.tau*float64(len(order))).index
}

// best returns the slope through the point that loses least, and the point that gives it.
func (w *walk) best(pivot int) (slope float64, next int) {
	w.slots = w.slots[:0]
	var target float64
	px, py := w.x[pivot], w.y[pivot]
	for i := range w.x {
		dx := w.x[i] - px
		switch {
		case dx > 0:
			target += w.tau * dx
		case dx < 0:
			target -= (1 - w.tau) * dx
		default:
			continue
		}
		w.slots = append(w.slots, slot{(w.y[i] - py) / dx, math.Abs(dx), i})
	}
	if len(w.slots) == 0 {
		return 0, -1
	}
	s := selectWeighted(w.slots, target)
	return s.slope, s.index
}

func (w *walk) loss(pivot int, slope float64) float64 {
	var sum float64
	intercept := w.y[pivot] - slope*w.x[pivot]
	for i := range w.x {
		r := w.y[i] - intercept - slope*w.x[i]
		if r < 0 {
			sum += (w.tau - 1) * r
		} else {
			sum += w.tau * r
		}
	}
	return sum
}

// onLine lists points on the line, the two that define it first: only at ties
// are there more, and then any of them may lead further down.
func (w *walk) onLine(pivot, next int, slope float64) []int {
	points := []int{next, pivot}
	intercept := w.y[pivot] - slope*w.x[pivot]
	for i := range w.x {
		if len(points) == 16 {
			break
		}
		r := w.y[i] - intercept - slope*w.x[i]
		if i != pivot && i != next && math.Abs(r) <= 1e-9*math.Abs(w.y[i]) {
			points = append(points, i)
		}
	}
	return points
}

// selectWeighted returns the first slot, by slope, at which the running sum of
// weights reaches target. It reorders slots; the time is linear on average.
func selectWeighted(slots []slot, target float64) slot {
	for len(slots) > 32 {
		p := pivotOf(slots)
		below, i, j := 0.0, 0, len(slots)
		for k := 0; k < j; {
			switch s := slots[k]; {
			case s.slope < p:
				below += s.weight
				slots[i], slots[k] = slots[k], slots[i]
				i++
				k++
			case s.slope > p:
				j--
				slots[k], slots[j] = slots[j], slots[k]
			default:
				k++
			}
		}
		var same float64
		for _, s := range slots[i:j] {
			same += s.weight
		}
		switch {
		case i > 0 && below >= target:
			slots = slots[:i]
		case below+same >= target || j == len(slots):
			return slots[i]
		default:
			target -= below + same
			slots = slots[j:]
		}
	}
	slices.SortFunc(slots, func(a, b slot) int {
		switch {
		case a.slope < b.slope:
			return -1
		case a.slope > b.slope:
			return 1
		}
		return 0
	})
	var sum float64
	for _, s := range slots {
		if sum += s.weight; sum >= target {
			return s
		}
	}
	return slots[len(slots)-1]
}

// pivotOf is the median of three slopes.
func pivotOf(slots []slot) float64 {
	three := []float64{slots[0].slope, slots[len(slots)/2].slope, slots[len(slots)-1].slope}
	slices.Sort(three)
	return three[1]
}
