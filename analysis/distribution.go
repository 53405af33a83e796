package analysis

import (
	"context"
	"database/sql"
	_ "embed" // distribution.sql
	"fmt"
)

//go:embed distribution.sql
var distributionSQL string

// distributionPoints is about how many points an ECDF has.
const distributionPoints = 300

// Distribution is the ECDF of a latency, one per model, most requests first.
type Distribution struct {
	Metric string              `json:"metric"` // ttft or tpot
	Models []ModelDistribution `json:"models"`
}

// ModelDistribution holds points (Values[i], Shares[i]): that share of the
// requests took at most that many ns.
type ModelDistribution struct {
	Model  *string   `json:"model"`
	N      int64     `json:"n"`
	Values []int64   `json:"values_ns"`
	Shares []float64 `json:"shares"`
}

// Distribution returns the ECDF of ttft or tpot.
func (t *Trace) Distribution(ctx context.Context, metric string) (*Distribution, error) {
	result := &Distribution{Metric: metric, Models: []ModelDistribution{}}
	_, err := collect(ctx, t, distributionSQL, func(rows *sql.Rows) (struct{}, error) {
		var model *string
		var n, rank, value int64
		if err := rows.Scan(&model, &n, &rank, &value); err != nil {
			return struct{}{}, err
		}
		if k := len(result.Models); k == 0 || !sameText(result.Models[k-1].Model, model) {
			result.Models = append(result.Models, ModelDistribution{Model: model, N: n})
		}
		m := &result.Models[len(result.Models)-1]
		m.Values = append(m.Values, value)
		m.Shares = append(m.Shares, float64(rank)/float64(n))
		return struct{}{}, nil
	}, metric, distributionPoints)
	if err != nil {
		return nil, fmt.Errorf("distribution of %s: %w", metric, err)
	}
	return result, nil
}

func sameText(a, b *string) bool {
	return a == b || a != nil && b != nil && *a == *b
}
