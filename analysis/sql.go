package analysis

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"tokentrace/analysis/internal/duck"
)

// Rows are the rows of a query that someone typed, read one by one.
type Rows struct {
	Columns []ResultColumn
	rows    *sql.Rows
	raw     []any
	targets []any
}

// ResultColumn is a column of a query's result. Names are made distinct.
type ResultColumn struct {
	Name string `json:"name"`
	Type string `json:"type"` // DuckDB's name of the type
}

// SQL runs one statement that reads, over the views of the trace: requests,
// events, connections, ledger, runs and trace_info. The caller closes the rows.
func (t *Trace) SQL(ctx context.Context, query string) (*Rows, error) {
	if err := t.db.CheckSelect(query); err != nil {
		return nil, fmt.Errorf("sql: %w", err)
	}
	rows, err := t.db.Query(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("sql: %w", err)
	}
	types, err := rows.ColumnTypes()
	if err != nil {
		_ = rows.Close() // the first error tells more
		return nil, fmt.Errorf("sql: %w", err)
	}
	r := &Rows{rows: rows, raw: make([]any, len(types)), targets: make([]any, len(types))}
	taken := map[string]bool{}
	for i, c := range types {
		name := c.Name()
		for n := 2; taken[name]; n++ {
			name = c.Name() + "_" + strconv.Itoa(n)
		}
		taken[name] = true
		r.Columns = append(r.Columns, ResultColumn{name, c.DatabaseTypeName()})
		r.targets[i] = &r.raw[i]
	}
	return r, nil
}

// Next reads the next row. It returns nil after the last one. Values are nil,
// bool, int64, uint64, *big.Int, float64, string, []any or map[string]any.
func (r *Rows) Next() ([]any, error) {
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return nil, fmt.Errorf("sql: %w", err)
		}
		return nil, nil
	}
	if err := r.rows.Scan(r.targets...); err != nil {
		return nil, fmt.Errorf("sql: %w", err)
	}
	values := make([]any, len(r.raw))
	for i, v := range r.raw {
		values[i] = duck.Value(v, r.Columns[i].Type)
	}
	return values, nil
}

// Close ends the query.
func (r *Rows) Close() error { return r.rows.Close() }
