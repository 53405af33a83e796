// Package tracedir knows how a trace lies on disk: which files it is made of,
// when a file counts (sealed: written whole, synced, renamed, listed in the
// manifest) and how a run is added to it.
//
// It does not know what the rows mean. It is not safe for concurrent use, but
// encodes and writes on a goroutine of its own, behind a bounded queue.
package tracedir

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tokentrace/schema"
)

const manifestName = "manifest.json"

// ErrNotEmpty says that a directory that should become a trace holds something.
var ErrNotEmpty = errors.New("not empty")

// ErrNoTrace says that a directory holds no manifest.
var ErrNoTrace = errors.New("no trace here")

// VersionError says that a trace was written by a newer program.
type VersionError struct {
	Path   string
	Format int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s: this trace has format %d; this program reads 1 to %d: update", e.Path, e.Format, schema.FormatVersion)
}

// IsTrace reports whether dir holds a trace.
func IsTrace(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, manifestName))
	return err == nil && info.Mode().IsRegular()
}

// ReadManifest reads the manifest of the trace in dir. It fails with ErrNoTrace
// where there is none and with a VersionError where it is too new to read.
func ReadManifest(dir string) (schema.Manifest, error) {
	var m schema.Manifest
	path := filepath.Join(dir, manifestName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%s: %w (no %s)", dir, ErrNoTrace, manifestName)
	}
	if err != nil {
		return m, fmt.Errorf("read manifest: %w", err)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("read manifest %s: %w", path, err)
	}
	if m.Format > schema.FormatVersion {
		return m, &VersionError{path, m.Format}
	}
	if m.Format < 1 {
		return m, fmt.Errorf("read manifest %s: no format version: not a trace of this program", path)
	}
	for _, p := range m.Parts {
		if !filepath.IsLocal(filepath.FromSlash(p.Path)) {
			return m, fmt.Errorf("read manifest %s: part %q lies outside the trace", path, p.Path)
		}
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(p.Path)))
		if err != nil {
			return m, fmt.Errorf("trace %s is damaged: part %q is missing; capture it again: %w", dir, p.Path, err)
		}
		if !info.Mode().IsRegular() {
			return m, fmt.Errorf("trace %s is damaged: part %q is no file", dir, p.Path)
		}
	}
	return m, nil
}

// Parts returns the paths of the sealed parts of a table, under dir.
func Parts(dir string, m schema.Manifest, table string) []string {
	var paths []string
	for _, p := range m.Parts {
		if p.Table == table {
			paths = append(paths, filepath.Join(dir, filepath.FromSlash(p.Path)))
		}
	}
	return paths
}

// NewRunID returns an id for a run that no other run is likely to have.
func NewRunID() string {
	return strings.ToLower(rand.Text()[:8])
}

// checkRunID refuses an id that stands in the trace already or is not fit to be part
// of a file name.
func checkRunID(id string, runs []schema.Run) error {
	if id == "" || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		return fmt.Errorf("run id %q: use lower-case letters, digits, - and _", id)
	}
	for _, r := range runs {
		if r.ID == id {
			return fmt.Errorf("run id %q stands in the trace already", id)
		}
	}
	return nil
}

// prepare makes dir ready to take a run and returns the manifest it has so far.
func prepare(dir string, add bool) (schema.Manifest, error) {
	if IsTrace(dir) && add {
		return ReadManifest(dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return schema.Manifest{}, fmt.Errorf("make trace: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return schema.Manifest{}, fmt.Errorf("make trace: %w", err)
	}
	if len(entries) > 0 {
		return schema.Manifest{}, fmt.Errorf("trace %s is %w", dir, ErrNotEmpty)
	}
	return schema.Manifest{Format: schema.FormatVersion}, nil
}

// writeManifest replaces the manifest of dir.
func writeManifest(dir string, m schema.Manifest) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	tmp := filepath.Join(dir, "."+manifestName+".tmp")
	if err := writeSynced(tmp, append(data, '\n')); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	if err := os.Rename(tmp, filepath.Join(dir, manifestName)); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return syncDir(dir)
}

func writeSynced(path string, data []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir makes renames in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return errors.Join(d.Sync(), d.Close())
}
