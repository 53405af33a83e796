package analysis

import (
	"context"
	"database/sql"
	_ "embed" // slowest.sql
	"fmt"

	"tokentrace/schema"
)

//go:embed slowest.sql
var slowestSQL string

// SlowRequest is a request with its boundaries in ns since its start; those not seen are nil.
type SlowRequest struct {
	ID           string        `json:"request_id"`
	ClientID     *string       `json:"client_request_id"`
	Model        *string       `json:"model"`
	Status       schema.Status `json:"status"`
	PromptTokens *int64        `json:"prompt_tokens"`
	OutputTokens *int64        `json:"output_tokens"`
	Concurrency  int64         `json:"concurrency"` // at its start, itself included
	Start        int64         `json:"request_start_unix_ns"`
	Upload       *int64        `json:"upload_ns"`
	Head         *int64        `json:"head_ns"`
	TTFT         int64         `json:"ttft_ns"`
	LastToken    *int64        `json:"last_token_ns"`
	End          *int64        `json:"end_ns"`
	Ticks        []int64       `json:"ticks_ns"` // token records, thinned to about 200
}

// Slowest returns the n requests that waited longest for their first token.
func (t *Trace) Slowest(ctx context.Context, n int) ([]SlowRequest, error) {
	rows, err := collect(ctx, t, slowestSQL, func(rows *sql.Rows) (SlowRequest, error) {
		var r SlowRequest
		var ticks any
		err := rows.Scan(&r.ID, &r.ClientID, &r.Model, &r.Status, &r.PromptTokens, &r.OutputTokens, &r.Concurrency,
			&r.Start, &r.Upload, &r.Head, &r.TTFT, &r.LastToken, &r.End, &ticks)
		r.Ticks = counts(ticks)
		return r, err
	}, n)
	if err != nil {
		return nil, fmt.Errorf("slowest requests: %w", err)
	}
	if rows == nil {
		rows = []SlowRequest{}
	}
	return rows, nil
}
