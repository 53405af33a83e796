package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tokentrace/analysis"
	"tokentrace/capture"
	"tokentrace/internal/cli"
	"tokentrace/schema/tracedir"
)

// openInput opens a trace, or makes one of a capture file on the way: in keep,
// or where that is empty in a temporary directory. done releases everything.
func openInput(ctx context.Context, env cli.Env, path, keep string) (t *analysis.Trace, done func() error, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("%s does not exist", path)
	case err != nil:
		return nil, nil, err
	case info.IsDir() && keep != "":
		return nil, nil, cli.Usagef("--keep keeps the trace made of a capture file; %s is a directory", path)
	case info.IsDir() && !tracedir.IsTrace(path):
		return nil, nil, fmt.Errorf("%s is a directory without a trace (no manifest.json)", path)
	}
	cleanup := func() error { return nil }
	dir := path
	if !info.IsDir() {
		if dir, cleanup, err = captureInput(ctx, env, path, keep); err != nil {
			return nil, nil, err
		}
	}
	t, err = analysis.Open(ctx, dir)
	if err != nil {
		return nil, nil, errors.Join(err, cleanup())
	}
	return t, func() error { return errors.Join(t.Close(), cleanup()) }, nil
}

// captureInput makes a trace of a capture file.
func captureInput(ctx context.Context, env cli.Env, path, keep string) (dir string, cleanup func() error, err error) {
	dir, cleanup = keep, func() error { return nil }
	if keep == "" {
		tmp, err := os.MkdirTemp("", "tokentrace-")
		if err != nil {
			return "", nil, fmt.Errorf("make a temporary trace: %w", err)
		}
		dir, cleanup = filepath.Join(tmp, "trace"), func() error { return os.RemoveAll(tmp) }
	}
	progress := cli.NewProgress(env.Stderr)
	_, err = capture.Run(ctx, capture.Config{
		Trace: dir,
		Tool:  "analyze " + cli.Version(),
		Pcap:  capture.Pcap{Files: []string{path}},
		Progress: func(done, total int64) {
			if total > 0 {
				progress.Report("reading %s: %d %%", filepath.Base(path), done*100/total)
			}
		},
	})
	progress.Done()
	if err != nil {
		return "", nil, errors.Join(err, cleanup())
	}
	return dir, cleanup, nil
}
