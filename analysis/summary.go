package analysis

import (
	"context"
	"database/sql"
	_ "embed" // info.sql, population.sql, failures.sql
	"fmt"

	"tokentrace/schema"
)

//go:embed info.sql
var infoSQL string

//go:embed population.sql
var populationSQL string

//go:embed failures.sql
var failuresSQL string

// maxFailures bounds the kinds of failures that a summary lists.
const maxFailures = 50

// notLLM is the ledger's counter of requests that ask for no generation.
const notLLM = "exchanges_not_llm"

// Summary says what a trace holds.
type Summary struct {
	Info       Info          `json:"trace"`
	Population Population    `json:"population"`
	Failures   []Failure     `json:"failures"` // the 50 most frequent
	NotLLM     int64         `json:"not_llm"`  // HTTP requests with another method than POST, ignored
	Ledger     schema.Ledger `json:"ledger"`
	// LedgerError is set where the shares of a counter do not add up to it.
	LedgerError string   `json:"ledger_error,omitempty"`
	Warnings    []string `json:"warnings"`
}

// Info is what the trace says of itself. Missing instants and sums are nil.
type Info struct {
	Tool          string   `json:"tool"`
	Label         string   `json:"label,omitempty"`
	Runs          int64    `json:"runs"`
	Sources       []string `json:"sources"`
	Inputs        []string `json:"inputs"`
	CapturePoints []string `json:"capture_points"`
	Clocks        []string `json:"clocks"`
	Precision     *int64   `json:"clock_precision_ns"`
	Start         *int64   `json:"start_unix_ns"`
	End           *int64   `json:"end_unix_ns"`
	Requests      int64    `json:"requests"`
	Events        int64    `json:"events"`
	Connections   int64    `json:"connections"`
	Bytes         int64    `json:"bytes"`
	Models        []string `json:"models"`
	OutputTokens  *int64   `json:"output_tokens"`
	Counted       int64    `json:"counted_requests"` // those whose output tokens are known
	Retransmitted int64    `json:"retransmitted_segments"`
	LostBytes     int64    `json:"lost_bytes"`
}

// Population says which requests were seen and which of them the success
// statistics rest on.
type Population struct {
	Seen     int64         `json:"seen"`
	OK       int64         `json:"ok"`       // what success statistics rest on
	Streams  int64         `json:"streams"`  // ok and streamed
	Silent   int64         `json:"silent"`   // ok and streamed, without a single token
	Buffered int64         `json:"buffered"` // ok, streamed and flagged buffered_stream
	Status   []StatusCount `json:"by_status"`
}

// StatusCount counts the requests that ended one way. A request that is not ok
// is left out of success statistics for the reason its status names.
type StatusCount struct {
	Status     schema.Status `json:"status"`
	Count      int64         `json:"count"`
	FirstToken int64         `json:"with_first_token"`
	Excluded   bool          `json:"excluded"`
}

// Failure counts requests that ended in one way other than ok. What is not known is nil.
type Failure struct {
	Path       *string       `json:"path"`
	Status     schema.Status `json:"status"`
	Reason     *string       `json:"status_reason"`
	HTTPStatus *int64        `json:"http_status"`
	Count      int64         `json:"count"`
}

// Summary returns what the trace holds.
func (t *Trace) Summary(ctx context.Context) (*Summary, error) {
	info, captureWarnings, err := t.info(ctx)
	if err != nil {
		return nil, fmt.Errorf("read trace info: %w", err)
	}
	population, err := t.population(ctx)
	if err != nil {
		return nil, err
	}
	failures, err := t.failures(ctx)
	if err != nil {
		return nil, err
	}
	s := &Summary{Info: info, Population: population, Failures: failures, Ledger: t.Manifest.Ledger, Warnings: captureWarnings}
	s.NotLLM = s.Ledger.Get(notLLM)
	if err := s.Ledger.Check(); err != nil {
		s.LedgerError = err.Error()
		s.Warnings = append(s.Warnings, "the ledger does not add up: "+s.LedgerError)
	}
	for _, c := range s.Ledger {
		if c.Severity != schema.SeverityInfo && c.Count > 0 {
			s.Warnings = append(s.Warnings, fmt.Sprintf("%s: %s %d: %s", c.Severity, c.Name, c.Count, c.Doc))
		}
	}
	return s, nil
}

func (t *Trace) info(ctx context.Context) (Info, []string, error) {
	var captureWarnings []string
	infos, err := collect(ctx, t, infoSQL, func(rows *sql.Rows) (Info, error) {
		var i Info
		var label sql.NullString
		var sources, inputs, points, clocks, warnings, models any
		err := rows.Scan(&i.Tool, &label, &i.Runs, &sources, &inputs, &points, &clocks, &i.Precision,
			&i.Start, &i.End, &i.Requests, &i.Events, &i.Connections, &i.Bytes, &warnings,
			&models, &i.OutputTokens, &i.Counted, &i.Retransmitted, &i.LostBytes)
		i.Label, i.Sources, i.Inputs, i.CapturePoints = label.String, texts(sources), texts(inputs), texts(points)
		i.Clocks, i.Models, captureWarnings = texts(clocks), texts(models), texts(warnings)
		return i, err
	})
	if err != nil {
		return Info{}, nil, err
	}
	return infos[0], captureWarnings, nil
}

func (t *Trace) population(ctx context.Context) (Population, error) {
	p := Population{Status: []StatusCount{}}
	_, err := collect(ctx, t, populationSQL, func(rows *sql.Rows) (StatusCount, error) {
		var c StatusCount
		var streams, silent, buffered int64
		err := rows.Scan(&c.Status, &c.Count, &streams, &c.FirstToken, &silent, &buffered)
		c.Excluded = c.Status != schema.StatusOK
		p.Status = append(p.Status, c)
		p.Seen += c.Count
		if !c.Excluded {
			p.OK, p.Streams, p.Silent, p.Buffered = c.Count, streams, silent, buffered
		}
		return c, err
	})
	if err != nil {
		return p, fmt.Errorf("count requests: %w", err)
	}
	return p, nil
}

func (t *Trace) failures(ctx context.Context) ([]Failure, error) {
	failures, err := collect(ctx, t, failuresSQL, func(rows *sql.Rows) (Failure, error) {
		var f Failure
		err := rows.Scan(&f.Path, &f.Status, &f.Reason, &f.HTTPStatus, &f.Count)
		return f, err
	}, maxFailures)
	if err != nil {
		return nil, fmt.Errorf("count failures: %w", err)
	}
	if failures == nil {
		failures = []Failure{}
	}
	return failures, nil
}
