package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*max(1, math.Abs(want)) || math.IsNaN(got) != math.IsNaN(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// numpy.quantile([1, 2, 3, 4, 10], p), numpy 2.4.6.
func TestQuantile(t *testing.T) {
	values := []float64{1, 2, 3, 4, 10}
	for p, want := range map[float64]float64{0.5: 3, 0.9: 7.6, 0.95: 8.8, 0.99: 9.76, 0.999: 9.976, 0: 1, 1: 10} {
		near(t, "quantile", Quantile(values, p), want, 1e-12)
	}
	near(t, "of one", Quantile([]float64{7}, 0.99), 7, 0)
	near(t, "of none", Quantile(nil, 0.5), math.NaN(), 0)
}

func TestNeeded(t *testing.T) {
	for p, want := range map[float64]int64{0.5: 1, 0.9: 29, 0.95: 59, 0.99: 299, 0.999: 2995} {
		if got := Needed(p); got != want {
			t.Errorf("Needed(%v) = %d, want %d", p, got, want)
		}
	}
}

// scipy.stats.beta.ppf(.025, k, n-k+1) and beta.ppf(.975, k+1, n-k), scipy 1.17.1.
func TestClopperPearson(t *testing.T) {
	for _, c := range []struct{ k, n, lo, hi float64 }{
		{50, 100, 0.39832112950330095, 0.601678870496699},
		{99, 100, 0.9455406146079194, 0.9997468539670226},
		{9.5, 10, 0.6186852289333836, 0.9999521095668424},
		{285, 300, 0.9188726428292358, 0.9717487980315036},
		{0, 10, 0, 0.30849710781876083},
		{10, 10, 0.6915028921812392, 1},
	} {
		lo, hi := ClopperPearson(c.k, c.n, 0.95)
		near(t, "lo", lo, c.lo, 1e-9)
		near(t, "hi", hi, c.hi, 1e-9)
	}
}

func TestNEff(t *testing.T) {
	counts, even, clumped := make([]int64, Bins), make([]int64, Bins), make([]int64, Bins)
	for b := range counts {
		counts[b], even[b] = 100, 50
	}
	clumped[0], clumped[1] = 100, 100
	if got := NEff(0.5, counts, even); got != 2000 {
		t.Errorf("evenly spread: %v, want all 2000", got)
	}
	// By hand: share .1, d = 90 twice and -10 eighteen times, V = 20/19*18000/2000^2.
	near(t, "clumped", NEff(0.9, counts, clumped), 0.09/(20.0/19*18000/4e6), 1e-12)
	if got := NEff(0.5, nil, nil); got != 0 {
		t.Errorf("of none: %v", got)
	}
}

// The interval of the median of dependent observations covers: AR(1), phi .9.
func TestIntervalCoverage(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 2))
	covered, naive, trials := 0, 0, 300
	for range trials {
		const n = 1000
		values, x := make([]float64, n), source.NormFloat64()
		for i := range values {
			x = 0.9*x + math.Sqrt(1-0.81)*source.NormFloat64()
			values[i] = x
		}
		sorted := append([]float64(nil), values...)
		sortFloats(sorted)
		q := Quantile(sorted, 0.5)
		counts, exceed := make([]int64, Bins), make([]int64, Bins)
		for i, v := range values {
			counts[i*Bins/n]++
			if v > q {
				exceed[i*Bins/n]++
			}
		}
		lo, hi, bounded := OrderInterval(n, NEff(0.5, counts, exceed), 0.5, 0.95)
		if bounded && sorted[lo-1] <= 0 && sorted[hi-1] >= 0 {
			covered++
		}
		lo, hi, _ = OrderInterval(n, n, 0.5, 0.95)
		if sorted[lo-1] <= 0 && sorted[hi-1] >= 0 {
			naive++
		}
	}
	if share := float64(covered) / float64(trials); share < 0.88 || share > 0.99 {
		t.Errorf("coverage %.3f of a nominal .95", share)
	}
	if naive >= covered {
		t.Errorf("the plain interval covers as often: %d and %d", naive, covered)
	}
}

func sortFloats(v []float64) {
	for i := 1; i < len(v); i++ {
		for j := i; j > 0 && v[j] < v[j-1]; j-- {
			v[j], v[j-1] = v[j-1], v[j]
		}
	}
}

func TestOrderIntervalUnbounded(t *testing.T) {
	if _, hi, bounded := OrderInterval(100, 100, 0.99, 0.95); bounded || hi != 100 {
		t.Errorf("p99 of 100 has an upper bound: %v %v", hi, bounded)
	}
	if _, _, bounded := OrderInterval(400, 400, 0.99, 0.95); !bounded {
		t.Error("p99 of 400 has none")
	}
	if _, _, bounded := OrderInterval(0, 0, 0.5, 0.95); bounded {
		t.Error("nothing has a bound")
	}
}

// statsmodels 0.15.0: SurvfuncRight(t, e).quantile(p) and
// .quantile_ci(p, method="cloglog").
func TestKaplanMeier(t *testing.T) {
	times := []float64{1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	events := []int{1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 0, 1, 1, 0}
	var obs []Observation
	for i := range times {
		obs = append(obs, Observation{times[i], events[i] == 0})
	}
	s := KaplanMeier(obs)
	want := []float64{0.9375, 0.8125, 0.74479167, 0.67708333, 0.60185185, 0.52662037, 0.45138889, 0.36111111, 0.24074074, 0.12037037}
	for i, v := range s.survive {
		near(t, "survival", v, want[i], 1e-7)
	}
	for _, c := range []struct{ p, q, lo, hi float64 }{{0.25, 4, 1, 8}, {0.5, 9, 4, 14}} {
		q, ok := s.Quantile(c.p)
		lo, hi := s.Interval(c.p, 0.95)
		if !ok || q != c.q || lo != c.lo || hi != c.hi {
			t.Errorf("p %v: got %v [%v, %v], want %v [%v, %v]", c.p, q, lo, hi, c.q, c.lo, c.hi)
		}
	}
	if _, ok := s.Quantile(0.95); ok {
		t.Error("p95 is reached, though the last is censored")
	}
	if _, ok := KaplanMeier(nil).Quantile(0.5); ok {
		t.Error("nothing has a median")
	}
}

func design() (x, y []float64) {
	return []float64{100, 250, 400, 800, 1200, 1500, 2000, 3000, 3500, 4000, 5000, 8000},
		[]float64{31, 44, 52, 95, 130, 170, 210, 320, 900, 410, 520, 830}
}

// statsmodels 0.15.0: OLS(y, [1, x]).fit(cov_type="HC3", use_t=True), and with x^2.
func TestPolynomial(t *testing.T) {
	x, y := design()
	line, err := Polynomial(x, y, 1)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "intercept", line.Coef[0], 36.09994029, 1e-8)
	near(t, "slope", line.Coef[1], 0.11021179, 1e-7)
	near(t, "se", line.SE[1], 2.14650354e-02, 1e-9)
	near(t, "R2", line.R2, 0.744559017837719, 1e-12)
	lo, hi := line.Interval(1, 0.95)
	near(t, "lo", lo, 6.23847095e-02, 1e-9)
	near(t, "hi", hi, 1.58038868e-01, 1e-8)
	curve, err := Polynomial(x, y, 2)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "quadratic", curve.Coef[2], -8.26668875e-06, 1e-13)
	near(t, "quadratic se", curve.SE[2], 1.19367846e-05, 1e-12)
	if _, err := Polynomial([]float64{1, 1, 1, 1}, []float64{1, 2, 3, 4}, 1); err == nil {
		t.Error("a constant x determines a slope")
	}
}

// statsmodels 0.15.0: RLM(y, [1, x], M=HuberT()).fit(tol=1e-12).
func TestHuber(t *testing.T) {
	a, b, err := Huber(design())
	if err != nil {
		t.Fatal(err)
	}
	near(t, "intercept", a, 14.27004003, 1e-6)
	near(t, "slope", b, 0.10154156, 1e-7)
}

// scipy 1.17.1: linprog of the check loss, method "highs".
func TestQuantileLine(t *testing.T) {
	x, y := design()
	for _, c := range []struct{ tau, a, b float64 }{{0.5, 13.33333333, 0.10208333}, {0.85, 20.88607595, 0.10113924}} {
		for _, hint := range []float64{0, 0.1, -5, 100} {
			a, b, err := QuantileLine(x, y, c.tau, hint)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "intercept", a, c.a, 1e-7)
			near(t, "slope", b, c.b, 1e-7)
		}
	}
	var xs, ys []float64
	for i := range 400 { // i = arange(400); x = i*7919 % 4001 + 1; y = 20 + .1 x + (i*104729 % 997)/10
		xs = append(xs, float64(i*7919%4001)+1)
		ys = append(ys, 20+0.1*xs[i]+float64(i*104729%997)/10)
	}
	a, b, err := QuantileLine(xs, ys, 0.85, 0)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "loss", lossOf(xs, ys, a, b, 0.85), 2564.2772703835003, 1e-9)
	if _, _, err := QuantileLine([]float64{3, 3}, []float64{1, 2}, 0.85, 0); err == nil {
		t.Error("a constant x determines a line")
	}
}

func lossOf(x, y []float64, a, b, tau float64) (sum float64) {
	for i := range x {
		r := y[i] - a - b*x[i]
		sum += r * (tau - map[bool]float64{true: 1}[r < 0])
	}
	return sum
}

// Ties everywhere: no neighbour of the line found may lose less.
func TestQuantileLineTies(t *testing.T) {
	source := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var x, y []float64
		for range 60 {
			x = append(x, float64(source.IntN(5)))
			y = append(y, float64(source.IntN(6)))
		}
		a, b, err := QuantileLine(x, y, 0.85, 0)
		if err != nil {
			t.Fatal(err)
		}
		best := math.Inf(1)
		for i := range x {
			for j := range x {
				if x[i] != x[j] {
					s := (y[j] - y[i]) / (x[j] - x[i])
					best = min(best, lossOf(x, y, y[i]-s*x[i], s, 0.85))
				}
			}
		}
		near(t, "loss", lossOf(x, y, a, b, 0.85), best, 1e-9)
	}
}

func TestBlockBootstrap(t *testing.T) {
	var blocks []int64
	for i := range 200 {
		blocks = append(blocks, int64(i/10))
	}
	mean := func(rows []int) float64 {
		var s float64
		for _, r := range rows {
			s += float64(r)
		}
		return s / float64(len(rows))
	}
	lo, hi, ok := BlockBootstrap(blocks, 2000, 7, 0.95, mean)
	lo2, hi2, _ := BlockBootstrap(blocks, 2000, 7, 0.95, mean)
	if !ok || lo != lo2 || hi != hi2 {
		t.Errorf("not repeatable: %v %v, %v %v", lo, hi, lo2, hi2)
	}
	// Twenty block means 4.5, 14.5, ...: sd 57.66, so about 99.5 +- 1.96*57.66/sqrt(20).
	near(t, "lo", lo, 99.5-25.3, 0.05)
	near(t, "hi", hi, 99.5+25.3, 0.05)
	if _, _, ok := BlockBootstrap(blocks[:10], 100, 7, 0.95, mean); ok {
		t.Error("one block is enough")
	}
}

func BenchmarkQuantileLine(b *testing.B) {
	source := rand.New(rand.NewPCG(1, 1))
	var x, y []float64
	for range 5000 {
		x = append(x, 100+8000*source.Float64())
		y = append(y, 20+0.1*x[len(x)-1]*(1+source.ExpFloat64()))
	}
	for b.Loop() {
		if _, _, err := QuantileLine(x, y, 0.85, 0.1); err != nil {
			b.Fatal(err)
		}
	}
}
