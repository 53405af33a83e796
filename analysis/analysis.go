// Package analysis answers questions about a trace: one question per file, with
// its SQL beside it.
//
// It knows what the columns of a trace mean and which statistics may be trusted.
// It does not know how a trace was captured, nor how results are shown: results
// are typed structs (estimates with their interval and sample size, warnings
// that name the number needed) whose JSON form is the result itself.
package analysis

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strings"

	"tokentrace/analysis/internal/duck"
	"tokentrace/schema"
	"tokentrace/schema/tracedir"
)

// Confidence is the level of every interval.
const Confidence = 0.95

// A Trace is an open trace. Its methods must not be called concurrently.
type Trace struct {
	Dir      string
	Manifest schema.Manifest
	db       *duck.DB
}

// Open opens the trace in dir.
func Open(ctx context.Context, dir string) (*Trace, error) {
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist", dir)
	} else if err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is a file, not a trace directory", dir)
	}
	m, err := tracedir.ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	db, err := duck.Open(ctx, dir, m)
	if err != nil {
		return nil, err
	}
	return &Trace{Dir: dir, Manifest: m, db: db}, nil
}

// Close releases the trace.
func (t *Trace) Close() error { return t.db.Close() }

// Estimate is a number with what is known of its error. A missing Value is
// unknown; a missing end of the interval means that the data bound it on that
// side by nothing.
type Estimate struct {
	Value      *float64 `json:"value"`
	Lo         *float64 `json:"lo"`
	Hi         *float64 `json:"hi"`
	Unit       string   `json:"unit"`
	N          int64    `json:"n"` // observations behind it
	Confidence float64  `json:"confidence"`
}

// estimate turns NaN and infinities into missing numbers.
func estimate(value, lo, hi float64, unit string, n int64) Estimate {
	return Estimate{finite(value), finite(lo), finite(hi), unit, n, Confidence}
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// collect runs a query and turns each row into a T.
func collect[T any](ctx context.Context, t *Trace, query string, scan func(*sql.Rows) (T, error), args ...any) (out []T, err error) {
	rows, err := t.db.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// texts reads a list of text as the driver scans it.
func texts(v any) []string {
	values, _ := v.([]any)
	out := make([]string, 0, len(values))
	for _, v := range values {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// ModelName is what people call a model: the file's name where the server calls
// it by a path, else the name as it is.
func ModelName(model string) string {
	slashed := strings.ReplaceAll(model, `\`, "/")
	file := strings.HasPrefix(slashed, "/") || strings.HasPrefix(slashed, ".") || strings.Contains(slashed, ":/") || strings.Count(slashed, "/") > 1
	if base := path.Base(slashed); file && base != "/" && base != "." {
		return base
	}
	return model
}

func counts(v any) []int64 {
	values, _ := v.([]any)
	out := make([]int64, len(values))
	for i, v := range values {
		out[i], _ = v.(int64)
	}
	return out
}
