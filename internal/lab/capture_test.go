package lab_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tokentrace/capture"
	"tokentrace/internal/lab/pcapgen"
	"tokentrace/schema"
	"tokentrace/schema/parquetfile"
	"tokentrace/schema/tracedir"
)

// generate writes a synthetic capture and returns its name and the truth by the
// client's address and the request's start.
func generate(t *testing.T, o pcapgen.Options) (string, map[string]pcapgen.Request) {
	t.Helper()
	truth := map[string]pcapgen.Request{}
	o.Truth = func(r *pcapgen.Request) error {
		truth[fmt.Sprintf("%s at %d", r.Client, r.RequestStart)] = *r
		return nil
	}
	path := filepath.Join(t.TempDir(), "synthetic.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pcapgen.Generate(f, o); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path, truth
}

// TestSyntheticCaptures checks every time of every event of generated captures,
// clean and with each kind of trouble.
func TestSyntheticCaptures(t *testing.T) {
	for name, change := range map[string]func(*pcapgen.Options){
		"clean":         func(*pcapgen.Options) {},
		"lost":          func(o *pcapgen.Options) { o.Lost = 0.05 },
		"repeated":      func(o *pcapgen.Options) { o.Dup = 0.1 },
		"reordered":     func(o *pcapgen.Options) { o.Reorder = 0.3 },
		"coalesced":     func(o *pcapgen.Options) { o.Coalesce = 0.3 },
		"cut elsewhere": func(o *pcapgen.Options) { o.Rechunk = 1 },
		"all, in ns": func(o *pcapgen.Options) {
			o.Lost, o.Dup, o.Reorder, o.Coalesce, o.Rechunk, o.Nano = 0.02, 0.02, 0.2, 0.1, 0.5, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := pcapgen.DefaultOptions()
			o.Requests, o.Conc, o.Plain = 200, 16, 0.1
			change(&o)
			path, truth := generate(t, o)
			checkTrace(t, path, truth)
		})
	}
}

func checkTrace(t *testing.T, path string, truth map[string]pcapgen.Request) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "trace")
	m, err := capture.Run(t.Context(), capture.Config{Trace: dir, Pcap: capture.Pcap{Files: []string{path}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Ledger.Check(); err != nil {
		t.Error(err)
	}
	clients := map[int64]string{}
	for _, c := range rowsOf[schema.Connection](t, dir, m, "connections") {
		clients[c.Connection] = fmt.Sprintf("%s:%d", c.ClientAddr, c.ClientPort)
	}
	events := map[int64][]schema.Event{}
	for _, e := range rowsOf[schema.Event](t, dir, m, "events") {
		events[e.Request] = append(events[e.Request], e)
	}
	chats := 0
	for _, r := range truth {
		if r.Kind == pcapgen.KindChat {
			chats++
		}
	}
	requests := rowsOf[schema.Request](t, dir, m, "requests")
	if len(requests) != chats {
		t.Errorf("%d requests, want %d", len(requests), chats)
	}
	for _, r := range requests {
		want, ok := truth[fmt.Sprintf("%s at %d", clients[r.Connection], r.RequestStart.V)]
		if !ok {
			t.Errorf("a request of %s at %d is invented", clients[r.Connection], r.RequestStart.V)
			continue
		}
		compareRequest(t, &r, events[r.Request], &want)
	}
}

func compareRequest(t *testing.T, r *schema.Request, events []schema.Event, want *pcapgen.Request) {
	t.Helper()
	var at, seen, tokens []int64
	for _, e := range events {
		at, seen = append(at, e.At), append(seen, e.At-e.SeenLead)
		if e.TokenBearing {
			tokens = append(tokens, e.At)
		}
	}
	wantSeen := want.Seen
	if wantSeen == nil {
		wantSeen = want.Events
	}
	if !slices.Equal(at, want.Events) || !slices.Equal(seen, wantSeen) || !slices.Equal(tokens, want.Tokens()) {
		t.Errorf("request %d: times of events differ", want.Index)
	}
	if r.Status != schema.StatusOK || r.OutputTokens.V != int64(want.OutputTokens) || r.PromptTokens.V != int64(want.PromptTokens) ||
		r.RequestEnd.V != want.RequestEnd || r.ResponseHead.V != want.Head || r.StreamEnd.V != want.StreamEnd {
		t.Errorf("request %d: got %+v, want %+v", want.Index, r, want)
	}
}

func rowsOf[Row any](t *testing.T, dir string, m schema.Manifest, table string) (rows []Row) {
	t.Helper()
	for _, path := range tracedir.Parts(dir, m, table) {
		part, err := parquetfile.ReadFile[Row](path)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, part...)
	}
	return rows
}
