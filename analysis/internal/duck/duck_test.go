package duck

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokentrace/schema"
	"tokentrace/schema/schematest"
	"tokentrace/schema/tracedir"
)

func open(t *testing.T, dir string) *DB {
	t.Helper()
	m, err := tracedir.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	db, err := Open(t.Context(), dir, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func one(t *testing.T, db *DB, query string, dest ...any) {
	t.Helper()
	rows, err := db.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() {
		t.Fatalf("%s: no row", query)
	}
	if err := rows.Scan(dest...); err != nil {
		t.Fatal(err)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

func writeTrace(t *testing.T, dir string, streams int) {
	trace := schematest.New(schematest.Second)
	for i := range streams {
		r := trace.Add(schematest.Stream{Start: int64(i), TTFT: 1000, Gap: 10, Tokens: 3, Prompt: 5})
		r.Flags = "buffered_stream unknown_api"
	}
	trace.Write(t, dir)
}

func TestPathsWithAnyCharacters(t *testing.T) {
	for _, name := range []string{"plain", "it's", "a*", "a?", "[x]", "{a,b}", `back\slash`, `"q"`, `*?[x]\y'`, "sp ace", "ünï", "a#b%20"} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			dir := filepath.Join(base, name)
			writeTrace(t, dir, 2)
			writeTrace(t, filepath.Join(base, "ab"), 5) // what a glob would match
			writeTrace(t, filepath.Join(base, "x"), 5)
			var n int64
			one(t, open(t, dir), "SELECT count(*) FROM requests", &n)
			if n != 2 {
				t.Errorf("requests of %q: %d, want 2", name, n)
			}
		})
	}
}

func TestViews(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trace")
	writeTrace(t, dir, 1)
	db := open(t, dir)
	var id, connection, flags string
	one(t, db, "SELECT request_id, connection_id, flags::VARCHAR FROM requests", &id, &connection, &flags)
	if id != "run1.1" || connection != "run1.c1" || flags != "[buffered_stream, unknown_api]" {
		t.Errorf("got %s %s %s", id, connection, flags)
	}
	var kinds string
	var seen, first, at int64
	one(t, db, "SELECT kinds::VARCHAR, seen_unix_ns, first_byte_unix_ns, at_unix_ns FROM events ORDER BY index", &kinds, &seen, &first, &at)
	if kinds != "[content]" || seen != at || first != at || at != schematest.Epoch+1000 {
		t.Errorf("got %s %d %d %d", kinds, seen, first, at)
	}
	var joined, info, ledger int64
	one(t, db, "SELECT count(*) FROM requests JOIN connections USING (connection_id)", &joined)
	one(t, db, "SELECT requests FROM trace_info", &info)
	one(t, db, "SELECT count FROM ledger WHERE name = 'packets'", &ledger)
	if joined != 1 || info != 1 || ledger != 10 {
		t.Errorf("got %d %d %d", joined, info, ledger)
	}
}

func TestEmptyTraceHasAllColumns(t *testing.T) {
	empty, full := filepath.Join(t.TempDir(), "empty"), filepath.Join(t.TempDir(), "full")
	schematest.New(0).Write(t, empty)
	writeTrace(t, full, 1)
	for _, view := range []string{"requests", "events", "connections", "ledger", "runs", "trace_info"} {
		var a, b string
		query := "SELECT string_agg(column_name || ' ' || column_type, ',') FROM (DESCRIBE " + view + ")"
		one(t, open(t, empty), query, &a)
		one(t, open(t, full), query, &b)
		if a != b || a == "" {
			t.Errorf("%s: columns without rows %s, with rows %s", view, a, b)
		}
	}
}

func TestHeaders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trace")
	writeTrace(t, dir, 1)
	db := open(t, dir)
	h, err := ParseHeader(manifestSQL)
	if err != nil {
		t.Fatal(err)
	}
	var described string
	one(t, db, "SELECT string_agg(column_name || ' ' || column_type, ',') FROM (DESCRIBE trace_info)", &described)
	var declared []string
	for _, c := range h.Columns {
		declared = append(declared, c.Name+" "+c.Type)
	}
	if got := strings.Join(declared, ","); got != described {
		t.Errorf("trace_info: header %s, DESCRIBE %s", got, described)
	}
	if _, err := ParseHeader(viewsSQL); err != nil {
		t.Error(err)
	}
	if _, err := ParseHeader("SELECT 1"); err == nil {
		t.Error("a file without a header passes")
	}
}

func TestNoOtherFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trace")
	writeTrace(t, dir, 1)
	secret := filepath.Join(t.TempDir(), "secret.csv")
	if err := os.WriteFile(secret, []byte("a\n1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	parts, err := filepath.Glob(filepath.Join(dir, "requests", "*.parquet"))
	if err != nil || len(parts) == 0 {
		t.Fatalf("no parts: %v", err)
	}
	db := open(t, dir)
	for _, q := range []string{
		"SELECT * FROM read_csv(" + quote(secret) + ")",
		"SELECT * FROM " + quote(secret),
		"SELECT * FROM glob('/*')",
	} {
		if _, err := db.Query(t.Context(), q); err == nil {
			t.Errorf("%s: no error", q)
		}
	}
	for _, q := range []string{"DROP VIEW requests", "CREATE TABLE x AS SELECT 1", "CALL pragma_version()",
		"COPY (SELECT 1) TO " + quote(parts[0]), "EXPLAIN ANALYZE COPY (SELECT 1) TO " + quote(parts[0]) + " (FORMAT csv, USE_TMP_FILE false)",
		"explain (analyze) drop view requests", "EXPLAIN DROP VIEW requests", "/* a */ EXPLAIN ANALYZE DROP VIEW requests"} {
		if err := db.CheckSelect(q); !errors.Is(err, ErrNotSelect) {
			t.Errorf("%s: %v", q, err)
		}
	}
	for _, q := range []string{"SELECT 1; SELECT 2", "SELECT 1; DROP VIEW requests", "DROP VIEW requests; SELECT 1", "", "-- nothing"} {
		if err := db.CheckSelect(q); !errors.Is(err, ErrNotOne) {
			t.Errorf("%s: %v", q, err)
		}
	}
	if err := db.Exec(t.Context(), "FROM requests"); err != nil {
		t.Errorf("a refused statement ran: %v", err)
	}
	for _, q := range []string{"SELECT 1", "SELECT 1;", "SELECT 1; -- one; only\n", "/* a; b */ SELECT ';' ;", "FROM requests", "DESCRIBE requests", "EXPLAIN SELECT 1", "explain analyze from requests", "WITH a AS (SELECT 1) FROM a"} {
		if err := db.CheckSelect(q); err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}
}

func TestErrorsAreOneLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trace")
	writeTrace(t, dir, 0)
	_, err := open(t, dir).Query(t.Context(), "SELECT nonsense FROM requests")
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("got %v", err)
	}
}

func TestMissingPart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trace")
	writeTrace(t, dir, 1)
	m, err := tracedir.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Parts = append(m.Parts, schema.Part{Table: "requests", Path: "requests/part-gone.parquet"})
	if err := os.Remove(tracedir.Parts(dir, m, "requests")[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), dir, m); err == nil {
		t.Error("a missing part is no error")
	}
}
