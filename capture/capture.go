package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"tokentrace/capture/internal/exchange"
	"tokentrace/schema"
	"tokentrace/schema/tracedir"
)

// Config says what to capture and where to put it.
type Config struct {
	Trace  string // directory of the trace; missing or empty unless Append
	Append bool   // add to the trace that stands there
	Label  string // name of the trace, for people
	Tool   string // program and version, for the manifest
	RunID  string // id of the run; made up where empty

	// CapturePoint says where the traffic was seen: client, server or between. Times
	// at the client hold the network's share, times at the server do not.
	CapturePoint string

	Pcap Pcap // the source

	// Progress is called now and then with the bytes read so far and in all. It may be nil.
	Progress func(done, total int64)
}

// Run captures into a trace and returns its manifest. It fails where nothing could
// be read or written; input that is damaged in part gives what can be read of it,
// and a warning on the run.
//
// Where ctx is done before the input is, what was read until then becomes the
// trace, with a warning, and Run returns its manifest together with ctx's error.
func Run(ctx context.Context, cfg Config) (schema.Manifest, error) {
	source, err := openPcap(cfg.Pcap)
	if err != nil {
		return schema.Manifest{}, err
	}
	writer, err := tracedir.Create(cfg.Trace, tracedir.Options{
		Run: cmp.Or(cfg.RunID, tracedir.NewRunID()), Append: cfg.Append, Tool: cmp.Or(cfg.Tool, "tokentrace"), Label: cfg.Label,
	})
	if err != nil {
		return schema.Manifest{}, err
	}
	run, err := source.read(exchange.NewRecorder(writer), func() error { return cmp.Or(ctx.Err(), writer.Err()) }, cfg.Progress)
	run.CapturePoint = cmp.Or(cfg.CapturePoint, "unknown")
	interrupted := err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err())
	if interrupted {
		run.Warnings = append(run.Warnings, "the capture was interrupted: what was read until then is in the trace")
	}
	if err == nil || interrupted {
		err = run.Ledger.Check()
	}
	if err != nil {
		return schema.Manifest{}, errors.Join(fmt.Errorf("capture: %w", err), writer.Abort())
	}
	if twin := writer.Twin(run); twin != "" {
		run.Warnings = append(run.Warnings, fmt.Sprintf("run %s of the trace begins and ends with packets of the same times: the same capture twice counts every request twice", twin))
	}
	manifest, err := writer.Commit(run)
	if err == nil && interrupted {
		err = ctx.Err()
	}
	return manifest, err
}
