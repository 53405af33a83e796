package main

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tokentrace/analysis"
	"tokentrace/capture"
	"tokentrace/internal/cli"
	"tokentrace/schema/tracedir"
)

// stdinName is the operand that stands for a capture on standard input.
const stdinName = "-"

// openInput opens a trace, or makes one of a capture file or of standard input on
// the way: in keep, or where that is empty in a temporary directory. done releases
// everything.
func openInput(ctx context.Context, env cli.Env, path, keep string) (t *analysis.Trace, done func() error, err error) {
	if path == stdinName {
		return openCapture(ctx, env, path, "", keep)
	}
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
	if !info.IsDir() {
		return openCapture(ctx, env, path, runID(info), keep)
	}
	t, err = analysis.Open(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	return t, t.Close, nil
}

// openCapture makes a trace of a capture and opens it.
func openCapture(ctx context.Context, env cli.Env, path, run, keep string) (t *analysis.Trace, done func() error, err error) {
	dir, cleanup, err := captureInput(ctx, env, path, run, keep)
	if err != nil {
		return nil, nil, err
	}
	t, err = analysis.Open(ctx, dir)
	if err != nil {
		return nil, nil, errors.Join(err, cleanup())
	}
	return t, func() error { return errors.Join(t.Close(), cleanup()) }, nil
}

// runID is derived from a capture file, so that a request has the same id in
// every trace that is made of the file on the way.
func runID(info fs.FileInfo) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%d", info.Name(), info.Size(), info.ModTime().UnixNano()))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
}

// captureInput makes a trace of a capture file or of standard input.
func captureInput(ctx context.Context, env cli.Env, path, run, keep string) (dir string, cleanup func() error, err error) {
	dir, cleanup = keep, func() error { return nil }
	if keep == "" {
		tmp, err := os.MkdirTemp("", "tokentrace-")
		if err != nil {
			return "", nil, fmt.Errorf("make a temporary trace: %w", err)
		}
		dir, cleanup = filepath.Join(tmp, "trace"), func() error { return os.RemoveAll(tmp) }
	}
	progress := cli.NewProgress(env.Stderr)
	manifest, err := capture.Run(ctx, capture.Config{
		Trace: dir,
		Tool:  "analyze " + cli.Version(),
		RunID: run,
		Pcap:  capture.Pcap{Files: []string{path}, Stdin: env.Stdin},
		Progress: func(done, total int64) {
			if total > 0 {
				progress.Report("reading %s: %d %%", filepath.Base(path), done*100/total)
			}
		},
	})
	progress.Done()
	if errors.Is(err, tracedir.ErrNotEmpty) {
		err = fmt.Errorf("%w: choose another name for --keep", err)
	}
	if err != nil {
		return "", nil, errors.Join(err, cleanup())
	}
	for _, w := range manifest.Runs[len(manifest.Runs)-1].Warnings {
		fmt.Fprintf(env.Stderr, "analyze: warning: %s\n", w)
	}
	return dir, cleanup, nil
}
