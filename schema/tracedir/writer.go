package tracedir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"tokentrace/schema"
)

// Rows per row group, chosen so that a full batch of any table stays under
// about 4 MB, and rows per part of the events table.
const (
	eventBatch      = 1 << 15
	requestBatch    = 1 << 13
	connectionBatch = 1 << 13
	partRows        = 1 << 24
)

// Writer adds one run to a trace; it fills in the run column of the rows. Its methods must be called from one goroutine.
type Writer struct {
	dir      string
	run      string
	manifest schema.Manifest
	fresh    bool // the trace was begun by this Writer

	events      batch[schema.Event]
	requests    batch[schema.Request]
	connections batch[schema.Connection]

	failed atomic.Pointer[error] // first error of the writing goroutine

	jobs chan func() error // full batches, to be written in order
	done chan error        // first error of the writing goroutine
	free chan []schema.Event

	eventTable      table[schema.Event, *schema.Event]
	requestTable    table[schema.Request, *schema.Request]
	connectionTable table[schema.Connection, *schema.Connection]
}

// batch collects rows until there are enough for a row group.
type batch[Row any] struct{ rows []Row }

// Options of Create.
type Options struct {
	Run    string // id of the run; see NewRunID
	Append bool   // add to the trace that stands there
	Tool   string // program and version
	Label  string // name of the trace
}

// Create begins a run in dir, which must be missing or empty unless opts.Append.
// Nothing counts as part of the trace before Commit.
func Create(dir string, opts Options) (*Writer, error) {
	manifest, err := prepare(dir, opts.Append)
	if err != nil {
		return nil, err
	}
	if err := checkRunID(opts.Run, manifest.Runs); err != nil {
		return nil, fmt.Errorf("trace %s: %w", dir, err)
	}
	if manifest.Tool == "" {
		manifest.Tool, manifest.Label = opts.Tool, opts.Label
		manifest.Created = time.Now().UnixNano()
	}
	w := &Writer{
		dir: dir, run: opts.Run, manifest: manifest,
		jobs: make(chan func() error, 1),
		done: make(chan error, 1),
		free: make(chan []schema.Event, 2),
	}
	if !IsTrace(dir) { // from the start it is a trace, if of nothing: what dies on the way can be added to
		w.fresh = true
		if err := writeManifest(dir, manifest); err != nil {
			return nil, err
		}
	}
	w.eventTable = table[schema.Event, *schema.Event]{name: "events", dir: dir, run: opts.Run, maxPartRows: partRows}
	w.requestTable = table[schema.Request, *schema.Request]{name: "requests", dir: dir, run: opts.Run, maxPartRows: partRows}
	w.connectionTable = table[schema.Connection, *schema.Connection]{name: "connections", dir: dir, run: opts.Run, maxPartRows: partRows}
	go w.write()
	return w, nil
}

// write runs the jobs until there are no more. After an error it drains them.
func (w *Writer) write() {
	var first error
	for job := range w.jobs {
		if first != nil {
			continue
		}
		if first = job(); first != nil {
			w.failed.Store(&first)
		}
	}
	w.done <- first
}

// Err returns the error that keeps the run from being written, as soon as it is
// known: a full disk need not be found at the end.
func (w *Writer) Err() error {
	if err := w.failed.Load(); err != nil {
		return fmt.Errorf("write trace %s: %w", w.dir, *err)
	}
	return nil
}

// Event adds a row to the events table.
func (w *Writer) Event(e *schema.Event) {
	if w.events.rows == nil {
		select {
		case w.events.rows = <-w.free:
		default:
			w.events.rows = make([]schema.Event, 0, eventBatch)
		}
	}
	w.events.rows = append(w.events.rows, *e)
	w.events.rows[len(w.events.rows)-1].Run = w.run
	if len(w.events.rows) == eventBatch {
		w.flushEvents()
	}
}

func (w *Writer) flushEvents() {
	rows := w.events.rows
	w.events.rows = nil
	w.jobs <- func() error {
		err := w.eventTable.write(rows)
		select {
		case w.free <- rows[:0]:
		default:
		}
		return err
	}
}

// Request adds a row to the requests table.
func (w *Writer) Request(r *schema.Request) {
	w.requests.rows = append(w.requests.rows, *r)
	w.requests.rows[len(w.requests.rows)-1].Run = w.run
	if len(w.requests.rows) == requestBatch {
		flush(w, &w.requests, w.requestTable.write)
	}
}

// Connection adds a row to the connections table.
func (w *Writer) Connection(c *schema.Connection) {
	w.connections.rows = append(w.connections.rows, *c)
	w.connections.rows[len(w.connections.rows)-1].Run = w.run
	if len(w.connections.rows) == connectionBatch {
		flush(w, &w.connections, w.connectionTable.write)
	}
}

func flush[Row any](w *Writer, b *batch[Row], write func([]Row) error) {
	rows := b.rows
	b.rows = nil
	w.jobs <- func() error { return write(rows) }
}

// finish writes what is collected and waits for the writing goroutine.
func (w *Writer) finish() error {
	w.flushEvents()
	flush(w, &w.requests, w.requestTable.write)
	flush(w, &w.connections, w.connectionTable.write)
	close(w.jobs)
	return <-w.done
}

// Commit seals the parts and then the manifest, run included: from here on the
// run is part of the trace. It returns the manifest. The Writer is spent.
func (w *Writer) Commit(run schema.Run) (schema.Manifest, error) {
	err := w.finish()
	if err == nil {
		err = errors.Join(w.eventTable.seal(), w.requestTable.seal(), w.connectionTable.seal())
	}
	if err != nil {
		return schema.Manifest{}, errors.Join(fmt.Errorf("write trace %s: %w", w.dir, err), w.abandon())
	}
	run.ID = w.run
	m := &w.manifest
	m.Runs = append(m.Runs, run)
	m.Ledger = m.Ledger.Merge(run.Ledger)
	for _, parts := range [][]schema.Part{w.requestTable.sealed, w.eventTable.sealed, w.connectionTable.sealed} {
		m.Parts = append(m.Parts, parts...)
	}
	if err := writeManifest(w.dir, *m); err != nil {
		return schema.Manifest{}, errors.Join(err, w.abandon())
	}
	return *m, nil
}

// Twin returns the id of a run in the trace that spans the same time to the
// nanosecond, or "".
func (w *Writer) Twin(run schema.Run) string {
	for _, other := range w.manifest.Runs {
		if run.End > 0 && other.Start == run.Start && other.End == run.End {
			return other.ID
		}
	}
	return ""
}

// Abort ends the run without making it part of the trace.
func (w *Writer) Abort() error {
	return errors.Join(w.finish(), w.abandon())
}

// abandon removes every file of the run, so that the same command can be tried again.
func (w *Writer) abandon() error {
	err := errors.Join(w.eventTable.abandon(), w.requestTable.abandon(), w.connectionTable.abandon())
	if w.fresh {
		err = errors.Join(err, os.Remove(filepath.Join(w.dir, manifestName)))
	}
	return err
}
