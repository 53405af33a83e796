// Package duck opens a trace as views of an in-memory DuckDB.
//
// It knows which tables a trace has, how their columns become the names that
// people type, and how to keep a query inside the trace. It does not know what
// is asked of the views: that is package analysis.
package duck

import (
	"context"
	"database/sql"
	"database/sql/driver"
	_ "embed" // views.sql, manifest.sql
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"tokentrace/schema"
	"tokentrace/schema/tracedir"
)

//go:embed views.sql
var viewsSQL string

//go:embed manifest.sql
var manifestSQL string

// maxThreads bounds the threads of a query: beyond it the scans of a trace gain
// nothing and holistic aggregates only take more memory.
const maxThreads = 8

// DB is the views of one trace. It holds one connection, so that temporary
// tables last from one question to the next; its methods must not be called
// concurrently.
type DB struct {
	pool  *sql.DB
	conn  *sql.Conn
	links string // directory of links to parts, or empty
}

// Open makes the views of the trace in dir, whose manifest is m. Afterwards the
// database can read the trace's sealed parts and no other file, and write none.
func Open(ctx context.Context, dir string, m schema.Manifest) (*DB, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	connector, err := duckdb.NewConnector("?autoinstall_known_extensions=false&autoload_known_extensions=false", nil)
	if err != nil {
		return nil, fmt.Errorf("start DuckDB: %w", err)
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(1)
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start DuckDB: %w", err), pool.Close())
	}
	db := &DB{pool: pool, conn: conn}
	if err := db.prepare(ctx, dir, m); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// Close ends the database.
func (db *DB) Close() error {
	err := errors.Join(db.conn.Close(), db.pool.Close())
	if db.links != "" {
		err = errors.Join(err, os.RemoveAll(db.links))
	}
	return err
}

func (db *DB) prepare(ctx context.Context, dir string, m schema.Manifest) error {
	statements := []string{
		fmt.Sprintf("SET threads = %d", min(runtime.GOMAXPROCS(0), maxThreads)),
		"SET temp_directory = " + quote(filepath.Join(os.TempDir(), fmt.Sprintf("tokentrace-%d", os.Getpid()))),
		"SET parquet_metadata_cache = true",
		"CREATE SCHEMA disk",
	}
	var parts []string
	for _, t := range schema.Tables() {
		paths, err := db.plain(t.Name, tracedir.Parts(dir, m, t.Name))
		if err != nil {
			return fmt.Errorf("make the views of %s: %w", dir, err)
		}
		parts = append(parts, paths...)
		statements = append(statements, diskView(t, paths))
	}
	statements = append(statements, viewsSQL)
	for _, s := range statements {
		if err := db.Exec(ctx, s); err != nil {
			return fmt.Errorf("make the views of %s: %w", dir, err)
		}
	}
	manifest, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("make the views of %s: %w", dir, err)
	}
	for s := range strings.SplitSeq(manifestSQL, "\n;\n") {
		if err := db.Exec(ctx, s, string(manifest)); err != nil {
			return fmt.Errorf("make the views of %s: manifest: %w", dir, err)
		}
	}
	return db.lock(ctx, parts)
}

// lock denies every file but the parts: what people type must not reach others.
func (db *DB) lock(ctx context.Context, parts []string) error {
	for _, s := range []string{
		"SET allowed_paths = " + quoteList(parts),
		"SET enable_external_access = false",
		"SET lock_configuration = true",
	} {
		if err := db.Exec(ctx, s); err != nil {
			return fmt.Errorf("lock DuckDB: %w", err)
		}
	}
	return nil
}

// diskView is the statement that makes disk.TABLE: the columns of the sealed
// parts as they lie there, or no rows of the same types where there is no part.
func diskView(t schema.Table, paths []string) string {
	columns := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		columns[i] = `"` + c.Name + `"`
		if len(paths) == 0 {
			columns[i] = fmt.Sprintf(`NULL::%s AS "%s"`, sqlType(c.Type), c.Name)
		}
	}
	from := "(SELECT 1 WHERE false)"
	if len(paths) > 0 {
		from = "read_parquet(" + quoteList(paths) + ")"
	}
	return fmt.Sprintf("CREATE VIEW disk.%s AS SELECT %s FROM %s", t.Name, strings.Join(columns, ", "), from)
}

func sqlType(t schema.Type) string {
	switch t {
	case schema.TypeInt64:
		return "BIGINT"
	case schema.TypeInt32:
		return "INTEGER"
	case schema.TypeFloat64:
		return "DOUBLE"
	case schema.TypeBool:
		return "BOOLEAN"
	default:
		return "VARCHAR"
	}
}

// plain returns paths that DuckDB takes literally. It reads *, ? and [ in any
// path as a pattern, and no way of escaping them survives a backslash in the same
// path: files under such names are reached through links under plain ones.
func (db *DB) plain(table string, paths []string) ([]string, error) {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = p
		if !strings.ContainsAny(p, "*?[") {
			continue
		}
		if db.links == "" {
			links, err := os.MkdirTemp("", "tokentrace-")
			if err != nil {
				return nil, err
			}
			db.links = links
		}
		out[i] = filepath.Join(db.links, fmt.Sprintf("%s-%05d.parquet", table, i))
		if err := os.Symlink(p, out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// quote is the one way by which text becomes part of a statement: DuckDB takes
// no parameters in SET and CREATE VIEW.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

func quoteList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = quote(t)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// Exec runs a statement for its effect.
func (db *DB) Exec(ctx context.Context, statement string, args ...any) error {
	if _, err := db.conn.ExecContext(ctx, statement, args...); err != nil {
		return clean(err)
	}
	return nil
}

// Query runs a query. The caller closes the rows before the next call.
func (db *DB) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := db.conn.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, clean(err)
	}
	return rows, nil
}

// ErrNotSelect says that a statement is none that only reads.
var ErrNotSelect = errors.New("only one statement that reads (select, from, with, describe, explain, ...) is allowed")

// ErrNotOne says that a text holds several statements, or none.
var ErrNotOne = errors.New("want exactly one statement (a semicolon after it and comments are fine)")

// CheckSelect returns an error unless the text is one statement that only reads.
// It runs nothing.
func (db *DB) CheckSelect(query string) error {
	return db.conn.Raw(func(driverConn any) error {
		conn, ok := driverConn.(*duckdb.Conn)
		if !ok {
			return fmt.Errorf("unexpected driver connection %T", driverConn)
		}
		// PrepareContext would run all statements but the last; Prepare refuses them.
		stmt, err := conn.Prepare(query)
		if err != nil {
			return prepareError(err)
		}
		err = errors.Join(checkReads(stmt, query), stmt.Close())
		inner := explained(query)
		if err != nil || inner == "" {
			return err
		}
		// EXPLAIN ANALYZE runs what it explains: that must read, too.
		if stmt, err = conn.Prepare(inner); err != nil {
			return prepareError(err)
		}
		return errors.Join(checkReads(stmt, ""), stmt.Close())
	})
}

// explained returns what an EXPLAIN statement explains, or "".
func explained(query string) string {
	match := regexp.MustCompile(`(?is)^\s*explain\s*(?:analy[sz]e\b)?\s*(?:\([^()]*\))?\s*(.*)$`).FindStringSubmatch(query)
	if match == nil {
		return ""
	}
	return match[1]
}

// prepareError tells DuckDB's word on a statement from the driver's on their number.
func prepareError(err error) error {
	var duckErr *duckdb.Error
	if errors.As(err, &duckErr) {
		return clean(err)
	}
	return ErrNotOne
}

// checkReads returns an error unless the statement is a query, or an EXPLAIN whose text
// tells what it explains.
func checkReads(stmt driver.Stmt, text string) error {
	s, ok := stmt.(*duckdb.Stmt)
	if !ok {
		return fmt.Errorf("unexpected driver statement %T", stmt)
	}
	kind, err := s.StatementType()
	if err != nil {
		return err
	}
	explains := kind == duckdb.STATEMENT_TYPE_EXPLAIN && explained(text) != ""
	if kind != duckdb.STATEMENT_TYPE_SELECT && !explains {
		return ErrNotSelect
	}
	return nil
}

// clean drops the blank lines of DuckDB's messages; the position marker stays
// out, because it points into text that has been folded to one line by then.
func clean(err error) error {
	var duckErr *duckdb.Error
	if !errors.As(err, &duckErr) {
		return err
	}
	msg, _, _ := strings.Cut(duckErr.Msg, "\n\nLINE ")
	return &Error{strings.Join(strings.Fields(msg), " "), err}
}

// Error is DuckDB's word on a statement, on one line.
type Error struct {
	Msg string
	err error
}

func (e *Error) Error() string { return e.Msg }

// Unwrap returns the driver's error.
func (e *Error) Unwrap() error { return e.err }
