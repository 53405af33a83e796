package analysis

import (
	"context"
	"database/sql"
	_ "embed" // gaps.sql
	"fmt"

	"tokentrace/schema"
)

//go:embed gaps.sql
var gapsSQL string

// TokenGap is a wait between two token records of one choice. Where others were
// streaming and none of them got a token, it is the engine that paused; where
// they did, this one stream stalled.
type TokenGap struct {
	ID              string        `json:"request_id"`
	ClientID        *string       `json:"client_request_id"`
	Model           *string       `json:"model"`
	Status          schema.Status `json:"status"`
	Begin           int64         `json:"begin_unix_ns"`
	Gap             int64         `json:"gap_ns"`
	TokensBefore    int64         `json:"tokens_before"`
	OthersStreaming int64         `json:"others_streaming"` // requests that had tokens before its end and after its begin
	OthersServed    int64         `json:"others_served"`    // of these, with a token inside it, a tenth at either end left out
}

// Gaps returns the n longest gaps between tokens.
func (t *Trace) Gaps(ctx context.Context, n int) ([]TokenGap, error) {
	rows, err := collect(ctx, t, gapsSQL, func(rows *sql.Rows) (TokenGap, error) {
		var g TokenGap
		err := rows.Scan(&g.ID, &g.ClientID, &g.Model, &g.Status, &g.Begin, &g.Gap, &g.TokensBefore, &g.OthersStreaming, &g.OthersServed)
		return g, err
	}, n)
	if err != nil {
		return nil, fmt.Errorf("longest gaps: %w", err)
	}
	if rows == nil {
		rows = []TokenGap{}
	}
	return rows, nil
}
