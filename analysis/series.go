package analysis

import (
	"context"
	"database/sql"
	_ "embed" // series.sql, series_span.sql
	"fmt"
)

//go:embed series.sql
var seriesSQL string

//go:embed series_span.sql
var seriesSpanSQL string

// seriesBins is about how many bins a series has.
const seriesBins = 120

// Series is what happened over time, in bins of equal width.
type Series struct {
	Start    int64      `json:"start_unix_ns"` // of the first bin; 0 where there is none
	Width    int64      `json:"bin_ns"`
	Bins     []Interval `json:"bins"`
	Warnings []string   `json:"warnings"`
}

// Interval is one bin of a series.
type Interval struct {
	Start        int64    `json:"start_unix_ns"`
	Requests     int64    `json:"requests"` // that started in it
	Failed       int64    `json:"failed"`   // of these, status not ok
	TTFTCount    int64    `json:"ttft_n"`
	TTFTP50      *float64 `json:"ttft_p50_ns"`
	TTFTMax      *int64   `json:"ttft_max_ns"`              // few requests start in a bin: their p95 would be no other number
	Concurrency  float64  `json:"concurrency"`              // requests in flight, mean
	OutputTokens float64  `json:"output_tokens"`            // delivered in it
	RequestRate  float64  `json:"requests_per_second"`      // Requests over the width
	TokenRate    float64  `json:"output_tokens_per_second"` // OutputTokens over the width
}

// Series returns the trace in about 120 bins whose width is a round number.
func (t *Trace) Series(ctx context.Context) (*Series, error) {
	type span struct{ first, last *int64 }
	spans, err := collect(ctx, t, seriesSpanSQL, func(rows *sql.Rows) (span, error) {
		var s span
		err := rows.Scan(&s.first, &s.last)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("series: %w", err)
	}
	result := &Series{Bins: []Interval{}, Warnings: []string{}}
	if spans[0].first == nil {
		return result, nil
	}
	first, last := *spans[0].first, max(*spans[0].last, *spans[0].first)
	result.Start, result.Width = first, roundWidth((last-first)/seriesBins)
	bins := (last-first)/result.Width + 1
	result.Bins, err = collect(ctx, t, seriesSQL, func(rows *sql.Rows) (Interval, error) {
		var i Interval
		var bin int64
		err := rows.Scan(&bin, &i.Requests, &i.Failed, &i.TTFTCount, &i.TTFTP50, &i.TTFTMax, &i.Concurrency, &i.OutputTokens)
		i.Start = first + bin*result.Width
		seconds := float64(result.Width) / 1e9
		i.RequestRate, i.TokenRate = float64(i.Requests)/seconds, i.OutputTokens/seconds
		return i, err
	}, first, result.Width, bins)
	if err != nil {
		return nil, fmt.Errorf("series: %w", err)
	}
	return result, nil
}

// roundWidth returns the smallest 1, 2 or 5 times a power of ten ns that is at
// least the given width, and at least 1 ms.
func roundWidth(width int64) int64 {
	for unit := int64(1_000_000); ; unit *= 10 {
		for _, m := range []int64{1, 2, 5} {
			if m*unit >= width {
				return m * unit
			}
		}
	}
}
