package analysis

import (
	"context"
	"database/sql"
	_ "embed" // timeline*.sql
	"fmt"
	"strings"

	"tokentrace/schema"
)

//go:embed timeline_find.sql
var timelineFindSQL string

//go:embed timeline_boundaries.sql
var timelineBoundariesSQL string

//go:embed timeline.sql
var timelineSQL string

// maxCandidates bounds what is listed where an id names no request, or several.
const maxCandidates = 8

// Timeline is one request: its boundaries and its records.
type Timeline struct {
	Request    TimelineRequest `json:"request"`
	Boundaries []Boundary      `json:"boundaries"`
	Records    []Record        `json:"records"`
}

// TimelineRequest says which request it is and how it went. What is not known is nil.
type TimelineRequest struct {
	ID           string        `json:"request_id"`
	ClientID     *string       `json:"client_request_id"`
	Model        *string       `json:"model"`
	Path         *string       `json:"path"`
	Status       schema.Status `json:"status"`
	StatusReason *string       `json:"status_reason"`
	HTTPStatus   *int64        `json:"http_status"`
	Concurrency  int64         `json:"concurrency"`
	PromptTokens *int64        `json:"prompt_tokens"`
	OutputTokens *int64        `json:"output_tokens"`
	FinishReason *string       `json:"finish_reason"`
	Flags        []string      `json:"flags"`
	TTFT         *int64        `json:"ttft_ns"`
	TPOT         *int64        `json:"tpot_ns"`
	E2E          *int64        `json:"e2e_ns"`
	Start        *int64        `json:"request_start_unix_ns"`

	exact bool
}

// Boundary is an instant of a request; Since is in ns from the request's start.
type Boundary struct {
	Name  string `json:"name"`
	At    int64  `json:"at_unix_ns"`
	Since *int64 `json:"since_ns"`
}

// Record is one framed record of the response; durations are in ns.
type Record struct {
	Index        int64    `json:"index"`
	At           int64    `json:"at_unix_ns"`
	Since        *int64   `json:"since_ns"`
	Gap          *int64   `json:"gap_ns"`
	Waited       int64    `json:"waited_ns"` // its last byte, for bytes before it
	Kinds        []string `json:"kinds"`
	TokenBearing bool     `json:"token_bearing"`
	Choice       int64    `json:"choice"`
	Tokens       *int64   `json:"tokens"`
	TextBytes    int64    `json:"text_bytes"`
	Segment      int64    `json:"segment"`
}

// RequestError says that an id names no request, or more than one.
type RequestError struct {
	ID         string
	Ambiguous  bool
	Candidates []string // request ids, with the client's id where it has one
	More       bool     // whether there are others
}

func (e *RequestError) Error() string {
	what := "names no request"
	if e.Ambiguous {
		what = "names several requests"
	}
	text := fmt.Sprintf("%q %s", e.ID, what)
	if len(e.Candidates) == 0 {
		return text + "; 'analyze sql TRACE \"select request_id, client_request_id from requests\"' lists them"
	}
	text += "; candidates: " + strings.Join(e.Candidates, ", ")
	if e.More {
		text += ", ..."
	}
	return text
}

// Timeline returns the request that id names: its request_id, or its client's
// x-request-id. It fails with a RequestError where there is none or more than one.
func (t *Trace) Timeline(ctx context.Context, id string) (*Timeline, error) {
	request, err := t.findRequest(ctx, id)
	if err != nil {
		return nil, err
	}
	boundaries, err := collect(ctx, t, timelineBoundariesSQL, func(rows *sql.Rows) (Boundary, error) {
		var b Boundary
		err := rows.Scan(&b.Name, &b.At, &b.Since)
		return b, err
	}, request.ID)
	if err != nil {
		return nil, fmt.Errorf("boundaries of %s: %w", request.ID, err)
	}
	records, err := collect(ctx, t, timelineSQL, func(rows *sql.Rows) (Record, error) {
		var r Record
		var kinds any
		err := rows.Scan(&r.Index, &r.At, &r.Since, &r.Gap, &r.Waited, &kinds, &r.TokenBearing, &r.Choice,
			&r.Tokens, &r.TextBytes, &r.Segment)
		r.Kinds = texts(kinds)
		return r, err
	}, request.ID)
	if err != nil {
		return nil, fmt.Errorf("records of %s: %w", request.ID, err)
	}
	if records == nil {
		records = []Record{}
	}
	return &Timeline{request, boundaries, records}, nil
}

func (t *Trace) findRequest(ctx context.Context, id string) (TimelineRequest, error) {
	found, err := collect(ctx, t, timelineFindSQL, func(rows *sql.Rows) (TimelineRequest, error) {
		var r TimelineRequest
		var flags any
		err := rows.Scan(&r.ID, &r.ClientID, &r.exact, &r.Model, &r.Path, &r.Status, &r.StatusReason,
			&r.HTTPStatus, &r.Concurrency, &r.PromptTokens, &r.OutputTokens, &r.FinishReason, &flags,
			&r.TTFT, &r.TPOT, &r.E2E, &r.Start)
		r.Flags = texts(flags)
		return r, err
	}, id, maxCandidates+1)
	if err != nil {
		return TimelineRequest{}, fmt.Errorf("find request %q: %w", id, err)
	}
	exact := 0
	for _, r := range found {
		if r.exact {
			exact++
		}
	}
	if exact == 1 {
		return found[0], nil
	}
	e := &RequestError{ID: id, Ambiguous: exact > 1, More: len(found) > maxCandidates}
	for _, r := range found[:min(len(found), maxCandidates)] {
		name := r.ID
		if r.ClientID != nil {
			name += " (" + *r.ClientID + ")"
		}
		e.Candidates = append(e.Candidates, name)
	}
	return TimelineRequest{}, e
}
