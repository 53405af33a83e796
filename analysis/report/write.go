package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Names of the files of a report.
const (
	PageName    = "report.html"
	ResultsName = "report.json"
	figuresDir  = "figures"
)

// ErrForeign says that a directory holds something that is none of our reports.
var ErrForeign = errors.New("is not empty and holds no report of ours")

// CheckDir returns an error unless a report may be written into dir: it is
// missing, empty, or holds an older report.
func CheckDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("report directory: %w", err)
	}
	data, err := os.ReadFile(filepath.Join(dir, ResultsName))
	var marker struct {
		Kind string `json:"kind"`
	}
	if err != nil || json.Unmarshal(data, &marker) != nil || marker.Kind != Kind {
		return fmt.Errorf("%s %w: choose another with -o", dir, ErrForeign)
	}
	return nil
}

// Write writes the report of the results into dir: report.html, report.json and
// the figures as PNG and SVG. It replaces an older report.
func Write(dir string, r *Results) error {
	if err := CheckDir(dir); err != nil {
		return err
	}
	figures, err := r.Figures()
	if err != nil {
		return fmt.Errorf("draw figures: %w", err)
	}
	sub := filepath.Join(dir, figuresDir)
	if err := errors.Join(os.RemoveAll(sub), os.MkdirAll(sub, 0o755)); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	// The results come first: they mark the directory as ours, should the rest fail.
	err = writeFile(filepath.Join(dir, ResultsName), func(w io.Writer) error { return WriteJSON(w, r) })
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	for id, f := range figures {
		err = errors.Join(err,
			os.WriteFile(filepath.Join(sub, id+".svg"), f.SVG, 0o644),
			os.WriteFile(filepath.Join(sub, id+".png"), f.PNG, 0o644))
	}
	err = errors.Join(err, writeFile(filepath.Join(dir, PageName), func(w io.Writer) error { return WriteHTML(w, r.Page(figures)) }))
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// writeFile writes a file whole or not at all.
func writeFile(path string, write func(io.Writer) error) error {
	tmp := path + ".tmp"
	f, err := os.Create(tmp)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return os.Rename(tmp, path)
}
