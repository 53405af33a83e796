package stats

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// ErrSingular says that a design does not determine its coefficients.
var ErrSingular = errors.New("the design does not determine the coefficients")

// Fit is a linear model y = b[0] + b[1] x + b[2] x^2 + ...
type Fit struct {
	Coef []float64
	SE   []float64 // HC3 standard errors
	R2   float64
	N    int
}

// Interval returns the confidence interval of coefficient i by Student's t.
func (f Fit) Interval(i int, confidence float64) (lo, hi float64) {
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(f.N - len(f.Coef))}.Quantile(1 - (1-confidence)/2)
	return f.Coef[i] - t*f.SE[i], f.Coef[i] + t*f.SE[i]
}

// Polynomial fits a polynomial of the degree by ordinary least squares, with
// standard errors that hold under unequal variances (HC3).
func Polynomial(x, y []float64, degree int) (Fit, error) {
	coef, gram, design, err := leastSquares(x, y, nil, degree)
	if err != nil {
		return Fit{}, err
	}
	n, k := len(x), degree+1
	meat := mat.NewSymDense(k, nil)
	mean := mean(y)
	var residual, total float64
	row := mat.NewVecDense(k, nil)
	for i := range n {
		row.CopyVec(design.RowView(i))
		e := y[i] - mat.Dot(row, coef)
		residual += e * e
		total += (y[i] - mean) * (y[i] - mean)
		leverage := min(mat.Inner(row, gram, row), 1-1e-9)
		meat.SymRankOne(meat, e*e/((1-leverage)*(1-leverage)), row)
	}
	var cov mat.Dense
	cov.Product(gram, meat, gram)
	fit := Fit{Coef: slices.Clone(coef.RawVector().Data), N: n, R2: math.NaN()}
	for j := range k {
		fit.SE = append(fit.SE, math.Sqrt(cov.At(j, j)))
	}
	if total > 0 {
		fit.R2 = 1 - residual/total
	}
	return fit, nil
}

// leastSquares returns the coefficients, the inverse of X'WX, and X.
func leastSquares(x, y, weights []float64, degree int) (*mat.VecDense, *mat.SymDense, *mat.Dense, error) {
	n, k := len(x), degree+1
	if n <= k {
		return nil, nil, nil, ErrSingular
	}
	design := mat.NewDense(n, k, nil)
	scaled, rhs := mat.NewDense(n, k, nil), mat.NewVecDense(n, nil)
	for i := range n {
		w := 1.0
		if weights != nil {
			w = math.Sqrt(weights[i])
		}
		v := 1.0
		for j := range k {
			design.Set(i, j, v)
			scaled.Set(i, j, v*w)
			v *= x[i]
		}
		rhs.SetVec(i, y[i]*w)
	}
	var qr mat.QR
	qr.Factorize(scaled)
	if c := qr.Cond(); math.IsInf(c, 0) || math.IsNaN(c) || c > 1e13 {
		return nil, nil, nil, ErrSingular
	}
	coef := mat.NewVecDense(k, nil)
	if err := qr.SolveVecTo(coef, false, rhs); err != nil {
		return nil, nil, nil, ErrSingular
	}
	var r, inverse, product mat.Dense
	qr.RTo(&r)
	if err := inverse.Inverse(r.Slice(0, k, 0, k)); err != nil {
		return nil, nil, nil, ErrSingular
	}
	product.Mul(&inverse, inverse.T())
	gram := mat.NewSymDense(k, nil)
	for i := range k {
		for j := i; j < k; j++ {
			gram.SetSym(i, j, product.At(i, j))
		}
	}
	return coef, gram, design, nil
}

// huberK is the tuning constant that keeps 95 % of the efficiency of least
// squares under normal errors.
const huberK = 1.345

// Huber fits a line that bounds the pull of outliers: Huber's weights, scale by
// the median absolute residual.
func Huber(x, y []float64) (intercept, slope float64, err error) {
	weights := make([]float64, len(x))
	for i := range weights {
		weights[i] = 1
	}
	size := make([]float64, len(x))
	for range 100 {
		coef, _, _, err := leastSquares(x, y, weights, 1)
		if err != nil {
			return 0, 0, err
		}
		a, b := coef.AtVec(0), coef.AtVec(1)
		moved := math.Abs(a-intercept) + math.Abs(b-slope)
		intercept, slope = a, b
		for i := range x {
			size[i] = math.Abs(y[i] - a - b*x[i])
		}
		sorted := slices.Sorted(slices.Values(size))
		scale := Quantile(sorted, 0.5) / distuv.UnitNormal.Quantile(0.75)
		if scale == 0 || moved <= 1e-10*(math.Abs(a)+math.Abs(b)) {
			break
		}
		for i := range weights {
			weights[i] = min(1, huberK*scale/max(size[i], 1e-300))
		}
	}
	return intercept, slope, nil
}

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
