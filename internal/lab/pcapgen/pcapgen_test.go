package pcapgen

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
)

// small is a capture of a few hundred kilobytes.
func small() Options {
	o := DefaultOptions()
	o.Requests, o.Conc, o.Tokens, o.PromptTokens = 30, 4, 40, 300
	return o
}

// rough is the same over a bad network and behind a proxy that cuts events.
func rough() Options {
	o := small()
	o.Lost, o.Dup, o.Reorder, o.Coalesce, o.Rechunk, o.AckEvery, o.Nano = 0.03, 0.03, 0.3, 0.2, 0.5, 2, true
	o.Plain, o.RequestsPerConn, o.MSS = 0.2, 3, 900
	return o
}

func generate(t *testing.T, o Options) ([]byte, []*Request, Summary) {
	t.Helper()
	var out bytes.Buffer
	var truth []*Request
	o.Truth = func(r *Request) error {
		truth = append(truth, r)
		return nil
	}
	sum, err := Generate(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), truth, sum
}

func TestSameOptionsSameBytes(t *testing.T) {
	for name, o := range map[string]Options{"small": small(), "rough": rough()} {
		a, _, _ := generate(t, o)
		b, _, _ := generate(t, o)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: two runs differ", name)
		}
		o.Seed++
		if c, _, _ := generate(t, o); bytes.Equal(a, c) {
			t.Errorf("%s: another seed gives the same capture", name)
		}
	}
}

func TestTruthIsConsistent(t *testing.T) {
	for name, o := range map[string]Options{"small": small(), "rough": rough()} {
		file, truth, sum := generate(t, o)
		if sum.Bytes != int64(len(file)) || sum.Requests != o.Requests || len(truth) != o.Requests {
			t.Errorf("%s: %d bytes and %d truths, summary %+v", name, len(file), len(truth), sum)
		}
		var tokens int64
		for _, r := range truth {
			checkRequest(t, r)
			tokens += int64(len(r.Tokens()))
		}
		if tokens != sum.TokenEvents {
			t.Errorf("%s: truth has %d token events, the summary %d", name, tokens, sum.TokenEvents)
		}
	}
}

func checkRequest(t *testing.T, r *Request) {
	t.Helper()
	times := []int64{r.RequestStart, r.RequestEnd, r.Head}
	times = append(append(times, r.Events...), r.StreamEnd)
	if !slices.IsSorted(times) {
		t.Errorf("request %d: times go back: %v", r.Index, times)
	}
	wantEvents := 0
	if r.Kind == KindChat {
		wantEvents = r.OutputTokens + 4
	}
	if len(r.Events) != wantEvents || r.Seen != nil && len(r.Seen) != wantEvents {
		t.Errorf("request %d: %d events, %d seen, want %d", r.Index, len(r.Events), len(r.Seen), wantEvents)
	}
	for i, seen := range r.Seen {
		if seen > r.Events[i] {
			t.Errorf("request %d: event %d delivered before it was seen", r.Index, i)
		}
	}
}

func TestRoughHasEverything(t *testing.T) {
	_, truth, sum := generate(t, rough())
	if sum.Late == 0 || sum.Merged == 0 || sum.Duplicated == 0 || sum.Swapped == 0 || sum.SplitEvents == 0 {
		t.Errorf("an impairment never happened: %+v", sum)
	}
	if sum.Streams == sum.Requests || sum.Connections < 3 {
		t.Errorf("no health check, or no new connection: %+v", sum)
	}
	late := slices.ContainsFunc(truth, func(r *Request) bool { return r.Seen != nil })
	if !late {
		t.Error("no event was delivered later than seen")
	}
}

func TestSizeIsReached(t *testing.T) {
	o := small()
	o.Requests, o.Size = 0, 300_000
	file, _, sum := generate(t, o)
	if int64(len(file)) < o.Size || int64(len(file)) > 2*o.Size {
		t.Errorf("%d bytes with a size of %d", len(file), o.Size)
	}
	if sum.First >= sum.Last || sum.First < o.Start {
		t.Errorf("times %d to %d with a start at %d", sum.First, sum.Last, o.Start)
	}
}

func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	o := small()
	o.Truth = func(*Request) error { return broken }
	if _, err := Generate(io.Discard, o); !errors.Is(err, broken) {
		t.Errorf("truth fails: got %v", err)
	}
	if _, err := Generate(failingWriter{broken}, small()); !errors.Is(err, broken) {
		t.Errorf("writer fails: got %v", err)
	}
	for name, spoil := range map[string]func(*Options){
		"no end":       func(o *Options) { o.Requests = 0 },
		"no client":    func(o *Options) { o.Conc = 0 },
		"chance":       func(o *Options) { o.Lost = 1.5 },
		"no payload":   func(o *Options) { o.MSS = 0 },
		"no port":      func(o *Options) { o.Port = 0 },
		"no ack":       func(o *Options) { o.AckEvery = 0 },
		"before epoch": func(o *Options) { o.Start = -1 },
	} {
		o := small()
		spoil(&o)
		if _, err := Generate(io.Discard, o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestReceiver(t *testing.T) {
	var r receiver
	for _, c := range []struct {
		off, end int
		early    bool
		next     int
	}{{0, 10, false, 10}, {20, 30, true, 10}, {30, 40, true, 10}, {5, 10, false, 10}, {50, 60, true, 10}, {10, 20, false, 40}, {40, 50, false, 60}} {
		if early := r.take(c.off, c.end); early != c.early || r.next != c.next {
			t.Errorf("%d to %d: early %v, next %d; want %v, %d", c.off, c.end, early, r.next, c.early, c.next)
		}
	}
}
