package capture_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokentrace/capture"
	"tokentrace/schema"
	"tokentrace/schema/parquetfile"
	"tokentrace/schema/tracedir"
)

// trace is a trace read back from disk.
type trace struct {
	dir         string
	manifest    schema.Manifest
	requests    []schema.Request
	events      map[int64][]schema.Event // by request
	connections map[int64]schema.Connection
}

// record captures files into a trace in a temporary directory.
func record(t *testing.T, files ...string) *trace {
	t.Helper()
	tr := &trace{dir: filepath.Join(t.TempDir(), "trace")}
	if _, err := capture.Run(t.Context(), capture.Config{Trace: tr.dir, RunID: "run", Pcap: capture.Pcap{Files: files}}); err != nil {
		t.Fatal(err)
	}
	tr.read(t)
	return tr
}

func (tr *trace) read(t *testing.T) {
	t.Helper()
	var err error
	if tr.manifest, err = tracedir.ReadManifest(tr.dir); err != nil {
		t.Fatal(err)
	}
	tr.requests = readTable[schema.Request](t, tr, "requests")
	tr.events = map[int64][]schema.Event{}
	for _, e := range readTable[schema.Event](t, tr, "events") {
		tr.events[e.Request] = append(tr.events[e.Request], e)
	}
	tr.connections = map[int64]schema.Connection{}
	for _, c := range readTable[schema.Connection](t, tr, "connections") {
		tr.connections[c.Connection] = c
	}
	if err := tr.manifest.Ledger.Check(); err != nil {
		t.Error(err)
	}
}

func readTable[Row any](t *testing.T, tr *trace, table string) (rows []Row) {
	t.Helper()
	for _, path := range tracedir.Parts(tr.dir, tr.manifest, table) {
		part, err := parquetfile.ReadFile[Row](path)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, part...)
	}
	return rows
}

// ns is a time that JSON holds as a string.
type ns int64

func (n *ns) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	if s == "null" {
		return nil
	}
	v, err := strconv.ParseInt(s, 10, 64)
	*n = ns(v)
	return err
}

// reference is a line of reference.jsonl: what another decoder found.
type reference struct {
	Conn         string
	ID           *string
	Method, Path string
	ReqFirst     ns `json:"t_req_first"`
	ReqLast      ns `json:"t_req_last"`
	Status       *int32
	Complete     bool
	Records      int64 `json:"n_events"`
	Kinds        map[string]int64
	Usage        *struct {
		Completion int64 `json:"completion_tokens"`
		Prompt     int64 `json:"prompt_tokens"`
	}
	Content []ns `json:"content_times"`
	Any1    ns   `json:"t_any1"`
	AnyN    ns   `json:"t_anyN"`
	Seen1   ns   `json:"t_any1_seen"`
	LastEv  ns   `json:"t_last_ev"`
}

// truth is a line of truth.jsonl: what the client saw.
type truth struct {
	ID       string
	Meta     any
	API      string
	SDK      string
	Status   *int32
	Error    any
	Finish   *string
	AbsClock *bool `json:"abs_clock"`
	Chunks   [][]any
	Usage    *struct {
		Completion int64 `json:"completion_tokens"`
	}
	Send ns `json:"t_send_ns"`
}

func readLines[T any](t *testing.T, path string) (out []T) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, v)
	}
	return out
}

// apiOf names the API of a path, as far as it is decoded.
func apiOf(path string) string {
	return map[string]string{"/v1/chat/completions": "openai_chat", "/v1/completions": "openai_completions"}[path]
}

// TestGroundTruth holds the real captures against a decoder that shares no code
// with this one, to the nanosecond, and against what the client saw.
func TestGroundTruth(t *testing.T) {
	files, err := filepath.Glob("../testdata/pcaps/*/*.pcap*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			tr := record(t, file)
			tr.checkReference(t, readLines[reference](t, filepath.Join(dir, "reference.jsonl")))
			tr.checkTruth(t, readLines[truth](t, filepath.Join(dir, "truth.jsonl")))
		})
	}
}

// key names a request on the wire.
func (tr *trace) key(r *schema.Request) string {
	c := tr.connections[r.Connection]
	return fmt.Sprintf("%s:%d>%d at %d", c.ClientAddr, c.ClientPort, c.ServerPort, r.RequestStart.V)
}

func (tr *trace) checkReference(t *testing.T, refs []reference) {
	t.Helper()
	found := map[string]*schema.Request{}
	for i := range tr.requests {
		found[tr.key(&tr.requests[i])] = &tr.requests[i]
	}
	for _, ref := range refs {
		key := fmt.Sprintf("%s at %d", ref.Conn, ref.ReqFirst)
		r := found[key]
		delete(found, key)
		switch {
		case ref.Method != "POST":
			if r != nil {
				t.Errorf("%s %s became a request", ref.Method, ref.Path)
			}
		case r == nil:
			t.Errorf("request %s is missing", key)
		default:
			tr.compare(t, r, &ref)
		}
	}
	for key := range found {
		t.Errorf("request %s is invented", key)
	}
}

func (tr *trace) compare(t *testing.T, r *schema.Request, ref *reference) {
	t.Helper()
	id := "(none)"
	if ref.ID != nil {
		id = *ref.ID
	}
	if r.ClientRequestID.Or("(none)") != id || r.Path.V != ref.Path {
		t.Errorf("%s: id %v, path %s; want path %s", id, r.ClientRequestID, r.Path.V, ref.Path)
	}
	if ref.ReqLast != 0 && r.RequestEnd != schema.Some(int64(ref.ReqLast)) {
		t.Errorf("%s: request ends at %v, want %d", id, r.RequestEnd, ref.ReqLast)
	}
	if (ref.Status == nil) == r.HTTPStatus.OK || ref.Status != nil && *ref.Status != r.HTTPStatus.V {
		t.Errorf("%s: status %v, want %v", id, r.HTTPStatus, ref.Status)
	}
	if apiOf(ref.Path) == "" {
		want := schema.StatusUndecodable
		if ref.Status == nil {
			want = schema.StatusReset
		}
		if r.Status != want || !r.Flags.Has("unknown_api") {
			t.Errorf("%s: %s is %s (%s)", id, ref.Path, r.Status, r.Flags)
		}
		return
	}
	if r.API != apiOf(ref.Path) || ref.Complete && r.Status != schema.StatusOK {
		t.Errorf("%s: API %s, status %s", id, r.API, r.Status)
	}
	tr.compareStream(t, id, r, ref)
}

func (tr *trace) compareStream(t *testing.T, id string, r *schema.Request, ref *reference) {
	t.Helper()
	var tokens []ns
	for _, e := range tr.events[r.Request] {
		if e.TokenBearing {
			tokens = append(tokens, ns(e.At))
		}
	}
	if d := cmp.Diff(ref.Content, tokens); d != "" {
		t.Errorf("%s: times of token events (-reference +got):\n%.600s", id, d)
	}
	bearing := ref.Kinds["content"] + ref.Kinds["reasoning"] + ref.Kinds["tool"]
	if r.Records != ref.Records || r.TokenRecords != bearing {
		t.Errorf("%s: %d records, %d with tokens; want %d and %d", id, r.Records, r.TokenRecords, ref.Records, bearing)
	}
	if ns(r.FirstToken.V) != ref.Any1 || ns(r.LastToken.V) != ref.AnyN || r.Stream && ns(r.LastRecord.V) != ref.LastEv {
		t.Errorf("%s: first token %v, last %v, last record %v; want %d, %d, %d", id, r.FirstToken, r.LastToken, r.LastRecord, ref.Any1, ref.AnyN, ref.LastEv)
	}
	if ref.Any1 != 0 {
		for _, e := range tr.events[r.Request] {
			if e.TokenBearing {
				if seen := ns(e.At - e.SeenLead); seen != ref.Seen1 {
					t.Errorf("%s: first token seen at %d, want %d", id, seen, ref.Seen1)
				}
				break
			}
		}
	}
	if u := ref.Usage; u != nil && (r.OutputTokens.V != u.Completion || r.PromptTokens.V != u.Prompt) {
		t.Errorf("%s: %v output and %v prompt tokens, want %+v", id, r.OutputTokens, r.PromptTokens, *u)
	}
}

// checkTruth holds the trace against the client's own account: nothing is missing,
// and no token was on the wire later than the client got it.
func (tr *trace) checkTruth(t *testing.T, lines []truth) {
	t.Helper()
	byID := map[string]*schema.Request{}
	for i := range tr.requests {
		byID[tr.requests[i].ClientRequestID.V] = &tr.requests[i]
	}
	for _, line := range lines {
		if line.Meta != nil {
			continue
		}
		r := byID[line.ID]
		if r == nil {
			t.Errorf("%s: the client sent it, the trace lacks it", line.ID)
			continue
		}
		if apiOf(r.Path.V) == "" {
			continue
		}
		if line.Error == nil && r.Status != schema.StatusOK {
			t.Errorf("%s: the client was content, the trace says %s", line.ID, r.Status)
		}
		if line.Usage != nil && r.OutputTokens.V != line.Usage.Completion {
			t.Errorf("%s: %v tokens, the client was told %d", line.ID, r.OutputTokens, line.Usage.Completion)
		}
		if line.AbsClock == nil || *line.AbsClock {
			tr.notLater(t, &line, r)
		}
	}
}

// slack allows for the error of the client's clock, at most 12 µs by its calibration.
const slack = 12_000

func (tr *trace) notLater(t *testing.T, line *truth, r *schema.Request) {
	t.Helper()
	var got []int64
	for _, c := range line.Chunks {
		if c[1] == "content" || c[1] == "reasoning" {
			at, err := strconv.ParseInt(c[0].(string), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, at)
		}
	}
	if !r.Stream || len(got) == 0 {
		return
	}
	i := 0
	for _, e := range tr.events[r.Request] {
		if !e.TokenBearing || i == len(got) {
			continue
		}
		if e.At > got[i]+slack {
			t.Errorf("%s: token %d was delivered %d ns after the client had it", line.ID, i, e.At-got[i])
		}
		i++
	}
	if i != len(got) {
		t.Errorf("%s: %d token events, the client got %d", line.ID, i, len(got))
	}
}

// TestOneRunThreeWays checks that one run recorded in three formats is one run.
func TestOneRunThreeWays(t *testing.T) {
	const dir = "../testdata/pcaps/"
	ref := record(t, dir+"mixed-loopback/mixed-loopback.pcapng")
	for _, file := range []string{"mixed-sll1/mixed-sll1.pcap", "mixed-sll2/mixed-sll2.pcapng"} {
		tr := record(t, dir+file)
		if len(tr.requests) != len(ref.requests) {
			t.Fatalf("%s: %d requests, want %d", file, len(tr.requests), len(ref.requests))
		}
		for i, r := range tr.requests {
			want := ref.requests[i]
			if r.ClientRequestID != want.ClientRequestID || r.Status != want.Status || r.Records != want.Records || r.OutputTokens != want.OutputTokens {
				t.Errorf("%s: request %d: %+v, want %+v", file, i, r, want)
			}
			if d := r.TTFT.V - want.TTFT.V; r.TTFT.OK != want.TTFT.OK || d > 20_000 || d < -20_000 {
				t.Errorf("%s: request %d: TTFT %v, want %v", file, i, r.TTFT, want.TTFT)
			}
		}
	}
}

// TestSplitFiles checks that a capture cut into files, given in any order, is the
// capture: connections go on in the next file.
func TestSplitFiles(t *testing.T) {
	const file = "../testdata/pcaps/wan-client/wan-client.pcap"
	want := record(t, file)
	got := record(t, splitPcap(t, file, 3)...)
	if d := cmp.Diff(want.requests, got.requests); d != "" {
		t.Errorf("requests (-whole +split):\n%.2000s", d)
	}
	if d := cmp.Diff(want.events, got.events); d != "" {
		t.Errorf("events (-whole +split):\n%.2000s", d)
	}
}

func TestAppend(t *testing.T) {
	const file = "../testdata/pcaps/log-stall/log-stall.pcap"
	tr := record(t, file)
	cfg := capture.Config{Trace: tr.dir, RunID: "second", Pcap: capture.Pcap{Files: []string{file}}}
	if _, err := capture.Run(t.Context(), cfg); !errors.Is(err, tracedir.ErrNotEmpty) {
		t.Fatalf("a second run without Append: %v", err)
	}
	cfg.Append = true
	if _, err := capture.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	once := tr.requests
	tr.read(t)
	if w := tr.manifest.Runs[1].Warnings; len(w) != 1 || !strings.Contains(w[0], "counts every request twice") {
		t.Errorf("warnings %q", w)
	}
	if len(tr.manifest.Runs) != 2 || len(tr.requests) != 2*len(once) || tr.manifest.Ledger.Get("exchanges_recorded") != int64(2*len(once)) {
		t.Errorf("%d runs, %d requests, ledger says %d", len(tr.manifest.Runs), len(tr.requests), tr.manifest.Ledger.Get("exchanges_recorded"))
	}
}
