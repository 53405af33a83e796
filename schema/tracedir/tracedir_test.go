package tracedir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tokentrace/schema"
	"tokentrace/schema/parquetfile"
)

// writeTrace makes a trace of n requests with two events each, out of order.
func writeTrace(t *testing.T, dir, run string, add bool, n int) schema.Manifest {
	t.Helper()
	w, err := Create(dir, Options{Run: run, Append: add, Tool: "test 1", Label: "label"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		at := int64(1e9) + int64((i*7919)%n)
		w.Request(&schema.Request{Request: int64(i), RequestStart: schema.Some(at)})
		w.Event(&schema.Event{Request: int64(i), At: at + 1})
		w.Event(&schema.Event{Request: int64(i), At: at + 5})
		w.Connection(&schema.Connection{Connection: int64(i), First: at})
	}
	m, err := w.Commit(schema.Run{Source: "test", Ledger: schema.Ledger{{Name: "rows", Count: int64(n)}}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTrace(t *testing.T) {
	for _, n := range []int{0, 1, 3 * eventBatch} {
		dir := filepath.Join(t.TempDir(), "trace")
		written := writeTrace(t, dir, "first", false, n)
		m, err := ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		if m.Tool != "test 1" || m.Label != "label" || m.Format != schema.FormatVersion || len(m.Runs) != 1 || m.Runs[0].ID != "first" || len(m.Parts) != len(written.Parts) {
			t.Errorf("manifest: %+v", m)
		}
		checkTable[schema.Event](t, dir, m, "events", 2*n)
		checkTable[schema.Request](t, dir, m, "requests", n)
		checkTable[schema.Connection](t, dir, m, "connections", n)
		checkNoLeftovers(t, dir)
	}
}

// checkTable checks the number of rows of a table, and that each part is sorted and
// as the manifest says.
func checkTable[Row any, P sortable[Row]](t *testing.T, dir string, m schema.Manifest, name string, want int) {
	t.Helper()
	total := 0
	for _, p := range m.Parts {
		if p.Table != name {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(p.Path))
		rows, err := parquetfile.ReadFile[Row](path)
		if err != nil {
			t.Fatal(err)
		}
		var keys []int64
		for i := range rows {
			keys = append(keys, P(&rows[i]).SortKey())
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(keys) || keys[0] != p.Start || keys[len(keys)-1] != p.End || int64(len(rows)) != p.Rows || info.Size() != p.Bytes {
			t.Errorf("part %+v: %d rows from %d to %d, sorted %v, %d bytes", p, len(rows), keys[0], keys[len(keys)-1], slices.IsSorted(keys), info.Size())
		}
		total += len(rows)
	}
	if total != want || len(Parts(dir, m, name)) == 0 && want > 0 {
		t.Errorf("%s: %d rows, want %d", name, total, want)
	}
}

func checkNoLeftovers(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "*", ".*"))
	more, err2 := filepath.Glob(filepath.Join(dir, ".*"))
	if left = append(left, more...); len(left) > 0 || err != nil || err2 != nil {
		t.Errorf("left over: %v", left)
	}
}

func TestAppend(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trace")
	writeTrace(t, dir, "first", false, 10)
	if _, err := Create(dir, Options{Run: "x"}); !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second run without Append: %v", err)
	}
	m := writeTrace(t, dir, "second", true, 10)
	if len(m.Runs) != 2 || m.Ledger.Get("rows") != 20 {
		t.Errorf("manifest: %+v", m)
	}
	checkTable[schema.Request](t, dir, m, "requests", 20)
}

func TestRunIDRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trace")
	writeTrace(t, dir, "first", false, 1)
	for _, id := range []string{"first", "", "../x", "a b", "A"} {
		if _, err := Create(dir, Options{Run: id, Append: true}); err == nil {
			t.Errorf("run id %q is taken", id)
		}
	}
}

func TestAppendToNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "trace")
	if m := writeTrace(t, dir, "first", true, 1); len(m.Runs) != 1 {
		t.Errorf("manifest: %+v", m)
	}
}

// TestAbort checks that an aborted run leaves the trace as it was.
func TestAbort(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trace")
	before := writeTrace(t, dir, "first", false, 10)
	w, err := Create(dir, Options{Run: "second", Append: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * eventBatch {
		w.Event(&schema.Event{At: int64(-i)}) // each batch begins a part
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	m, err := ReadManifest(dir)
	if err != nil || len(m.Runs) != 1 || len(m.Parts) != len(before.Parts) {
		t.Errorf("%+v, %v", m, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "events", "*"))
	if len(files) != 1 || err != nil {
		t.Errorf("files: %v, %v", files, err)
	}
	checkNoLeftovers(t, dir)
}

// TestWriteFails checks that a trace that cannot be written says so.
func TestWriteFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trace")
	w, err := Create(dir, Options{Run: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "events"), nil, 0o600); err != nil { // in the way of the directory
		t.Fatal(err)
	}
	w.Event(&schema.Event{})
	if _, err := w.Commit(schema.Run{}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %v", err)
	}
	if IsTrace(dir) {
		t.Error("a manifest was left")
	}
}

// TestKilled checks that a run that died leaves a trace that another can be added to.
func TestKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trace")
	w, err := Create(dir, Options{Run: "first"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * eventBatch {
		w.Event(&schema.Event{})
	}
	if m := writeTrace(t, dir, "second", true, 10); len(m.Runs) != 1 {
		t.Errorf("manifest: %+v", m)
	}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedParts checks that parts that are missing or no files are named.
func TestDamagedParts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trace")
	m := writeTrace(t, dir, "first", false, 1)
	part := Parts(dir, m, "events")[0]
	if err := os.Remove(part); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadManifest(dir); err == nil || !strings.Contains(err.Error(), filepath.Base(part)) {
		t.Errorf("a missing part: %v", err)
	}
	if err := os.Mkdir(part, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadManifest(dir); err == nil || !strings.Contains(err.Error(), "is no file") {
		t.Errorf("a directory for a part: %v", err)
	}
}

func TestReadManifestErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadManifest(dir); !errors.Is(err, ErrNoTrace) {
		t.Errorf("no manifest: %v", err)
	}
	for text, want := range map[string]string{
		"":   "read manifest",
		"{}": "no format version",
		fmt.Sprintf(`{"format":%d}`, schema.FormatVersion+1):              "update",
		`{"format":1,"parts":[{"table":"events","path":"../../secret"}]}`: "outside the trace",
		`{"format":1,"parts":[{"table":"events","path":"/etc/passwd"}]}`:  "outside the trace",
	} {
		if err := os.WriteFile(filepath.Join(dir, manifestName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadManifest(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	var newer *VersionError
	if err := os.WriteFile(filepath.Join(dir, manifestName), []byte(`{"format":99}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadManifest(dir); !errors.As(err, &newer) || newer.Format != 99 {
		t.Errorf("error %v", err)
	}
}

func TestRunIDs(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := NewRunID()
		if len(id) != 8 || id != strings.ToLower(id) || seen[id] {
			t.Fatalf("run id %q", id)
		}
		seen[id] = true
	}
}
