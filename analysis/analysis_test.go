package analysis

import (
	"encoding/json"
	"errors"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"tokentrace/analysis/internal/duck"
	"tokentrace/schema"
	"tokentrace/schema/schematest"
)

const (
	ms     = schematest.Millisecond
	second = schematest.Second
)

func openTrace(tb testing.TB, trace *schematest.Trace) *Trace {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "trace")
	trace.Write(tb, dir)
	t, err := Open(tb.Context(), dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := t.Close(); err != nil {
			tb.Error(err)
		}
	})
	return t
}

// planted is a server of known numbers: TTFT = 20 ms + .1 ms per prompt token
// and up to 2 ms more, tokens 10 ms apart, a request every 2 s.
func planted(n int) *schematest.Trace {
	source := rand.New(rand.NewPCG(1, 2))
	trace := schematest.New(int64(n) * 2 * second)
	for i := range n {
		prompt := 100 + source.Int64N(8000)
		trace.Add(schematest.Stream{
			Start: int64(i) * 2 * second, Upload: ms, Prompt: prompt,
			TTFT: 20*ms + prompt*ms/10 + source.Int64N(2*ms), Gap: 10 * ms, Tokens: 11,
		})
	}
	return trace
}

func TestPercentilesOfPlantedValues(t *testing.T) {
	trace := schematest.New(200 * second)
	for i := range int64(101) { // TTFT 100, 101, ..., 200 ms in an order without a trend
		trace.Add(schematest.Stream{Start: i * second, TTFT: (100 + i*37%101) * ms, Gap: 10 * ms, Tokens: 5})
	}
	trace.Add(schematest.Stream{Start: 150 * second, TTFT: 9 * second, Tokens: 1, Status: schema.StatusHTTPError})
	trace.Add(schematest.Stream{Start: 151 * second, TTFT: 150 * ms, Gap: 1, Tokens: 5, Flags: "buffered_stream"})
	p, err := openTrace(t, trace).Percentiles(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Population.Seen != 103 || p.Population.OK != 102 || p.Population.Buffered != 1 {
		t.Errorf("population %+v", p.Population)
	}
	g := p.Groups[0]
	ttft, icl, tpot := g.Metric("ttft"), g.Metric("icl"), g.Metric("tpot")
	if ttft.N != 102 || ttft.Max != float64(200*ms) || *ttft.Quantile(0.5).Value != float64(150*ms) {
		t.Errorf("ttft %+v", ttft)
	}
	// numpy.quantile(sorted([100..200] + [150]), .9): 189.9.
	if got := *ttft.Quantile(0.9).Value; got < 189.89e6 || got > 189.91e6 {
		t.Errorf("p90 %v", got)
	}
	if q := ttft.Quantile(0.99); q.Supported || q.Hi != nil || q.Needed != 299 {
		t.Errorf("p99 of 102 is supported: %+v", q)
	}
	if q := ttft.Quantile(0.5); !q.Supported || *q.Lo >= *q.Value || *q.Hi <= *q.Value {
		t.Errorf("median %+v", q)
	}
	if icl.N != 404 || icl.Min != float64(10*ms) || tpot.N != 101 {
		t.Errorf("buffered streams count: icl n %d min %v, tpot n %d", icl.N, icl.Min, tpot.N)
	}
	if g.Survival != nil {
		t.Error("a Kaplan-Meier line without a censored request")
	}
	for _, m := range g.Metrics {
		last := 0.0
		for _, q := range m.Quantiles {
			if *q.Value < last || *q.Value > m.Max {
				t.Errorf("%s: quantiles are out of order: %+v", m.Name, m.Quantiles)
			}
			last = *q.Value
		}
	}
}

func TestPercentilesGrouped(t *testing.T) {
	trace := schematest.New(10 * second)
	for i := range int64(9) {
		model := []string{"a", "<b>&\"", "a"}[i%3]
		trace.Add(schematest.Stream{Start: i * second, TTFT: (i%3 + 1) * ms, Gap: ms, Tokens: 3, Model: model})
	}
	r := trace.Add(schematest.Stream{Start: second, TTFT: 7 * ms, Gap: ms, Tokens: 3})
	r.Model = schema.None[string]()
	trace.Add(schematest.Stream{Start: second, TTFT: 7 * ms, Model: "<b>&\"", Status: schema.StatusCancelled})
	tr := openTrace(t, trace)
	p, err := tr.Percentiles(t.Context(), []string{"model", "framing"})
	if err != nil {
		t.Fatal(err)
	}
	var labels []string
	for _, g := range p.Groups {
		labels = append(labels, GroupLabel(p.By, g.Values))
	}
	want := []string{"model a, framing sse", "model <b>&\", framing sse", "model null, framing sse"}
	if !reflect.DeepEqual(labels, want) {
		t.Errorf("groups %q, want %q", labels, want)
	}
	if p.Groups[1].Survival == nil || p.Groups[1].Survival.Censored != 1 {
		t.Errorf("no Kaplan-Meier line of the group with a cancel: %+v", p.Groups[1])
	}
	if _, err := tr.Percentiles(t.Context(), []string{"nonsense"}); err == nil || !strings.Contains(err.Error(), "model") {
		t.Errorf("got %v", err)
	}
}

func TestNothingAtAll(t *testing.T) {
	tr := openTrace(t, schematest.New(0))
	ctx := t.Context()
	if s, err := tr.Summary(ctx); err != nil || s.Population.Seen != 0 || s.Info.OutputTokens != nil {
		t.Errorf("summary %+v, %v", s, err)
	}
	if p, err := tr.Percentiles(ctx, []string{"model"}); err != nil || len(p.Groups) != 0 {
		t.Errorf("percentiles %+v, %v", p, err)
	}
	if r, err := tr.Regress(ctx, DefaultSeed); err != nil || len(r.Models) != 0 || len(r.Warnings) != 1 {
		t.Errorf("regression %+v, %v", r, err)
	}
	if s, err := tr.Series(ctx); err != nil || len(s.Bins) != 0 {
		t.Errorf("series %+v, %v", s, err)
	}
	if s, err := tr.Slowest(ctx, 5); err != nil || len(s) != 0 {
		t.Errorf("slowest %+v, %v", s, err)
	}
	if d, err := tr.Distribution(ctx, "ttft"); err != nil || len(d.Models) != 0 {
		t.Errorf("distribution %+v, %v", d, err)
	}
	var missing *RequestError
	if _, err := tr.Timeline(ctx, "x"); !errors.As(err, &missing) {
		t.Errorf("timeline: %v", err)
	}
}

func TestAllCancelled(t *testing.T) {
	trace := schematest.New(100 * second)
	for i := range int64(20) {
		trace.Add(schematest.Stream{Start: i * second, TTFT: 10 * second, Status: schema.StatusCancelled})
	}
	p, err := openTrace(t, trace).Percentiles(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := p.Groups[0].Survival
	if len(p.Groups[0].Metrics) != 0 || s == nil || s.Censored != 20 || s.Quantiles[0].Value != nil {
		t.Errorf("got %+v", p.Groups[0])
	}
}

func TestOneRowAndHugeValues(t *testing.T) {
	trace := schematest.New(second)
	trace.Add(schematest.Stream{TTFT: 1 << 61, Gap: 1 << 40, Tokens: 2, Prompt: 1 << 50})
	tr := openTrace(t, trace)
	p, err := tr.Percentiles(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if m := p.Groups[0].Metric("ttft"); m.Max != 1<<61 || *m.Quantile(0.99).Value != 1<<61 || m.Quantile(0.99).Supported {
		t.Errorf("got %+v", m)
	}
	if _, err := tr.Regress(t.Context(), DefaultSeed); err != nil {
		t.Error(err)
	}
}

func TestRegressFindsPlantedSlope(t *testing.T) {
	tr := openTrace(t, planted(300))
	r, err := tr.Regress(t.Context(), DefaultSeed)
	if err != nil {
		t.Fatal(err)
	}
	fit := r.Models[0]
	if !fit.Identifiable || fit.Method != MethodQuantile || fit.X != XPrompt || fit.Unqueued != 300 {
		t.Fatalf("got %+v", fit)
	}
	if v := *fit.Slope.Value; v < 99.5 || v > 100.5 || *fit.Slope.Lo > 100 || *fit.Slope.Hi < 100 {
		t.Errorf("slope %v [%v, %v], planted 100", v, *fit.Slope.Lo, *fit.Slope.Hi)
	}
	if v := *fit.OLS.Slope.Value; v < 99.5 || v > 100.5 {
		t.Errorf("OLS %v", v)
	}
	if v := *fit.Prefill.Value; v < 9950 || v > 10050 {
		t.Errorf("prefill %v, planted 10000", v)
	}
	if fit.Verdict != VerdictSingle || fit.Quadratic.Curved {
		t.Errorf("verdict %s, curve %+v", fit.Verdict, fit.Quadratic)
	}
	again, err := tr.Regress(t.Context(), DefaultSeed)
	if err != nil || !reflect.DeepEqual(r, again) {
		t.Errorf("the same seed gives another result (%v)", err)
	}
}

func TestRegressTwoBranches(t *testing.T) {
	trace := planted(400)
	for i := range trace.Requests {
		if i%3 == 0 { // a hit that nobody reports
			r := &trace.Requests[i]
			r.TTFT = schema.Some(25 * ms)
		}
	}
	r, err := openTrace(t, trace).Regress(t.Context(), DefaultSeed)
	if err != nil {
		t.Fatal(err)
	}
	fit := r.Models[0]
	if fit.Verdict != VerdictTwo || *fit.Below.Value < 0.28 || *fit.Below.Value > 0.38 {
		t.Errorf("verdict %s, below %v", fit.Verdict, *fit.Below.Value)
	}
	if v := *fit.Slope.Value; v < 97 || v > 103 {
		t.Errorf("slope %v, planted 100", v)
	}
}

func TestRegressUsesUncachedTokens(t *testing.T) {
	trace := planted(100)
	for i := range trace.Requests {
		r := &trace.Requests[i]
		r.CachedTokens = schema.Some(r.PromptTokens.V)
		r.PromptTokens.V *= 2
	}
	r, err := openTrace(t, trace).Regress(t.Context(), DefaultSeed)
	if err != nil {
		t.Fatal(err)
	}
	if fit := r.Models[0]; fit.X != XUncached || *fit.Slope.Value < 99 || *fit.Slope.Value > 101 {
		t.Errorf("x %s, slope %v", fit.X, *fit.Slope.Value)
	}
}

func TestRegressFewRows(t *testing.T) {
	for n, method := range map[int]string{9: MethodOLS, 12: MethodOLSUnqueued} {
		r, err := openTrace(t, planted(n)).Regress(t.Context(), DefaultSeed)
		if err != nil {
			t.Fatal(err)
		}
		fit := r.Models[0]
		if fit.Identifiable || fit.Method != method || fit.Slope.Lo == nil || !strings.Contains(fit.Reason, strconv.Itoa(n)) {
			t.Errorf("%d rows: got %+v", n, fit)
		}
	}
}

func TestRegressQueuedRowsStayOut(t *testing.T) {
	trace := planted(120)
	for i := range int64(50) { // each comes while the one before still waits
		trace.Add(schematest.Stream{Start: i*4*second + ms, Prompt: 50, TTFT: 1500 * ms, Gap: ms, Tokens: 2})
	}
	r, err := openTrace(t, trace).Regress(t.Context(), DefaultSeed)
	if err != nil {
		t.Fatal(err)
	}
	fit := r.Models[0]
	if fit.Rows != 170 || fit.Unqueued != 170-50 || *fit.Slope.Value < 99 || *fit.Slope.Value > 101 {
		t.Errorf("rows %d, unqueued %d, slope %v", fit.Rows, fit.Unqueued, *fit.Slope.Value)
	}
}

func TestSeriesSums(t *testing.T) {
	trace := schematest.New(20 * second)
	trace.Add(schematest.Stream{TTFT: second, Gap: second, Tokens: 10})
	trace.Add(schematest.Stream{Start: 5 * second, TTFT: second, Gap: second, Tokens: 5})
	s, err := openTrace(t, trace).Series(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var tokens, flight float64
	var requests int64
	for _, b := range s.Bins {
		tokens += b.OutputTokens
		requests += b.Requests
		flight += b.Concurrency * float64(s.Width)
	}
	if tokens != 15 || requests != 2 || s.Width != 100*ms {
		t.Errorf("%v tokens, %d requests, bins of %d", tokens, requests, s.Width)
	}
	if got := flight / float64(second); got < 14.99 || got > 15.01 { // 10 s and 5 s in flight
		t.Errorf("%v request-seconds in flight, want 15", got)
	}
}

// TestSurvivalSupport: the Kaplan-Meier line claims no more than the quantiles
// beside it, and says why it is below them.
func TestSurvivalSupport(t *testing.T) {
	trace := schematest.New(200 * second)
	for i := range int64(40) {
		trace.Add(schematest.Stream{Start: i * 2 * second, TTFT: (500 + i*7%40) * ms, Tokens: 2, Gap: ms})
		if i%4 == 0 {
			trace.Add(schematest.Stream{Start: i * 2 * second, TTFT: 10 * ms, Tokens: 2, Gap: ms, Status: schema.StatusTruncated})
		}
	}
	trace.Add(schematest.Stream{Start: second, TTFT: 5 * second, Status: schema.StatusCancelled})
	trace.Add(schematest.Stream{Start: second, TTFT: 5 * second, Status: schema.StatusCancelled})
	p, err := openTrace(t, trace).Percentiles(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	line, ttft := p.Groups[0].Survival, p.Groups[0].Metric("ttft")
	if line.Observed != 50 || line.Unfinished != 10 || line.Censored != 2 || line.Max != float64(539*ms) {
		t.Errorf("got %+v", line)
	}
	for _, q := range line.Quantiles {
		if seen := ttft.Quantile(q.P); q.Supported != seen.Supported || q.Needed != seen.Needed || (seen.Hi == nil && q.Hi != nil) {
			t.Errorf("Kaplan-Meier %+v beside %+v", q, seen)
		}
	}
	if !strings.Contains(strings.Join(p.Warnings, "\n"), "also counts 10 first tokens of requests that did not end ok") {
		t.Errorf("warnings %q", p.Warnings)
	}
}

func TestGaps(t *testing.T) {
	trace := schematest.New(100 * second)
	for range 3 { // an engine that pauses for 2 s; the streams' tokens come 1 ms apart
		trace.Add(schematest.Stream{Start: int64(len(trace.Requests)) * ms, TTFT: second, Gaps: []int64{10 * ms, 2 * second, 10 * ms}})
	}
	trace.Add(schematest.Stream{Start: 50 * second, TTFT: second, Gaps: []int64{10 * ms, 5 * second}, ClientID: "stalled"})
	trace.Add(schematest.Stream{Start: 50 * second, TTFT: second, Gap: 100 * ms, Tokens: 80})
	trace.Add(schematest.Stream{Start: 60 * second, TTFT: second, Gaps: []int64{9 * second}, Flags: "buffered_stream"})
	gaps, err := openTrace(t, trace).Gaps(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	if g := gaps[0]; len(gaps) != 4 || g.Gap != 5*second || *g.ClientID != "stalled" || g.TokensBefore != 2 || g.OthersStreaming != 1 || g.OthersServed != 1 {
		t.Errorf("%d gaps, the stall is %+v", len(gaps), g)
	}
	for _, g := range gaps[1:] {
		if g.Gap != 2*second || g.OthersStreaming != 2 || g.OthersServed != 0 || g.Begin != schematest.Epoch+second+10*ms+(g.Begin-schematest.Epoch)%(10*ms) {
			t.Errorf("a pause of the engine is %+v", g)
		}
	}
}

func TestFailures(t *testing.T) {
	trace := schematest.New(100 * second)
	trace.Add(schematest.Stream{TTFT: ms, Tokens: 1})
	trace.Add(schematest.Stream{TTFT: ms}) // ok, without a token
	for range 3 {
		r := trace.Add(schematest.Stream{Start: second, TTFT: ms, Status: schema.StatusUndecodable})
		r.StatusReason, r.Path = schema.Some("unknown_api"), schema.Some("/v1/messages")
	}
	trace.Run.Ledger = schema.Ledger{{Name: notLLM, Count: 7}}
	s, err := openTrace(t, trace).Summary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f := s.Failures; len(f) != 1 || f[0].Count != 3 || *f[0].Reason != "unknown_api" || *f[0].Path != "/v1/messages" {
		t.Errorf("failures %+v", f)
	}
	if s.NotLLM != 7 || s.Population.Silent != 1 || s.Info.Counted != 1 {
		t.Errorf("%d not LLM, %d silent, %d counted", s.NotLLM, s.Population.Silent, s.Info.Counted)
	}
}

func TestPercentilesByNumber(t *testing.T) {
	trace := schematest.New(100 * second)
	for i := range int64(30) {
		trace.Add(schematest.Stream{Start: i * second, TTFT: ms, Tokens: 1}).Concurrency = int32(i % 12)
	}
	p, err := openTrace(t, trace).Percentiles(t.Context(), []string{"concurrency"})
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range p.Groups {
		if *g.Values[0] != strconv.Itoa(i) {
			t.Errorf("group %d is %s", i, *g.Values[0])
		}
		for _, m := range g.Metrics {
			for _, q := range m.Quantiles {
				if q.Has() < 1 {
					t.Errorf("n_eff of %s is %v", m.Name, q.NEff)
				}
			}
		}
	}
}

func TestModelNames(t *testing.T) {
	for name, want := range map[string]string{
		"/srv/models/a.gguf": "a.gguf", "meta-llama/Llama-3": "meta-llama/Llama-3", `C:\models\b.gguf`: "b.gguf", "./c": "c", "gpt": "gpt", "/": "/", "": "",
	} {
		if got := ModelName(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestSlopeThatIsNotKnown(t *testing.T) {
	trace := schematest.New(100 * second)
	for i := range int64(12) { // TTFT has nothing to do with the prompt
		trace.Add(schematest.Stream{Start: i * second, TTFT: (100 + i*7%12) * ms, Prompt: 100 + i*5%12, Tokens: 1})
	}
	r, err := openTrace(t, trace).Regress(t.Context(), DefaultSeed)
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Models[0]; f.Known || f.Slope.Lo == nil || f.Prefill.Value != nil {
		t.Errorf("got %+v", f)
	}
}

func TestTimeline(t *testing.T) {
	trace := schematest.New(20 * second)
	trace.Add(schematest.Stream{Upload: 2 * ms, TTFT: 20 * ms, Gaps: []int64{5 * ms, 7 * ms}, ClientID: "abc-1"})
	trace.Add(schematest.Stream{Start: second, TTFT: 20 * ms, Tokens: 1, ClientID: "twice"})
	trace.Add(schematest.Stream{Start: second, TTFT: 20 * ms, Tokens: 1, ClientID: "twice"})
	tr := openTrace(t, trace)
	for _, id := range []string{"run1.1", "abc-1"} {
		line, err := tr.Timeline(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if len(line.Records) != 3 || *line.Records[2].Since != 32*ms || *line.Records[2].Gap != 7*ms || line.Records[0].Gap != nil {
			t.Errorf("%s: %+v", id, line.Records)
		}
		if b := line.Boundaries[1]; b.Name != "request_end" || *b.Since != 2*ms {
			t.Errorf("%s: %+v", id, line.Boundaries)
		}
	}
	var e *RequestError
	if _, err := tr.Timeline(t.Context(), "twice"); !errors.As(err, &e) || !e.Ambiguous || len(e.Candidates) != 2 {
		t.Errorf("got %v", err)
	}
	if _, err := tr.Timeline(t.Context(), "abc"); !errors.As(err, &e) || e.Ambiguous || len(e.Candidates) != 1 {
		t.Errorf("got %v", err)
	}
}

func TestSQLValues(t *testing.T) {
	rows, err := openTrace(t, planted(1)).SQL(t.Context(),
		`SELECT 1::BIGINT a, sum(9::BIGINT) b, NULL c, [1, NULL] l, map {'k': 2} m, {'x': 1} s, 1.5 d, 'nan'::DOUBLE f,
		 true t, 'text' v, DATE '2026-01-02' AS d2, 1 a`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	v, err := rows.Next()
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if want := `[1,9,null,[1,null],{"k":2},{"x":1},1.5,"NaN",true,"text","2026-01-02",1]`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, ok := v[1].(*big.Int); !ok || rows.Columns[11].Name != "a_2" {
		t.Errorf("sum is %T, last column %q", v[1], rows.Columns[11].Name)
	}
	if v, err := rows.Next(); v != nil || err != nil {
		t.Errorf("after the last row: %v, %v", v, err)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "does not exist", dir: "no trace here", file: "not a trace",
	} {
		if _, err := Open(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestHeaders compares what the header of each .sql file declares with what the query returns.
func TestHeaders(t *testing.T) {
	tr := openTrace(t, planted(30))
	ctx := t.Context()
	if err := tr.db.Exec(ctx, "CREATE TEMP TABLE samples AS "+percentilesSamplesSQL, "model", 1); err != nil {
		t.Fatal(err)
	}
	args := map[string][]any{
		"percentiles_samples.sql": {"model", 1}, "percentiles.sql": {"[0.5]"},
		"percentiles_ranks.sql": {`[{"metric":"ttft","group_key":"[\"model-a\"]","p":0.5,"lo":1,"hi":2}]`},
		"survival.sql":          {"model"}, "series.sql": {schematest.Epoch, second, 5}, "distribution.sql": {"ttft", 10},
		"slowest.sql": {3}, "gaps.sql": {3}, "failures.sql": {3}, "timeline.sql": {"run1.1"}, "timeline_boundaries.sql": {"run1.1"}, "timeline_find.sql": {"run1.1", 3},
	}
	files, err := filepath.Glob("*.sql")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		header, err := duck.ParseHeader(string(text))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		rows, err := tr.db.Query(ctx, string(text), args[file]...)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		types, err := rows.ColumnTypes()
		if err != nil {
			t.Fatal(err)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		if len(types) != len(header.Columns) {
			t.Errorf("%s: %d columns, its header has %d", file, len(types), len(header.Columns))
			continue
		}
		for i, c := range types {
			if h := header.Columns[i]; h.Name != c.Name() || h.Type != c.DatabaseTypeName() {
				t.Errorf("%s: column %s %s, its header says %s %s", file, c.Name(), c.DatabaseTypeName(), h.Name, h.Type)
			}
		}
	}
}

func BenchmarkSummary10kRequests(b *testing.B) {
	trace := planted(10_000)
	dir := filepath.Join(b.TempDir(), "trace")
	trace.Write(b, dir)
	for b.Loop() {
		t, err := Open(b.Context(), dir)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := t.Summary(b.Context()); err != nil {
			b.Fatal(err)
		}
		if _, err := t.Percentiles(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		if err := t.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPercentiles10MRecords(b *testing.B) {
	t := tenMillion(b)
	for b.Loop() {
		if _, err := t.Percentiles(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGaps10MRecords(b *testing.B) {
	t := tenMillion(b)
	for b.Loop() {
		if _, err := t.Gaps(b.Context(), 10); err != nil {
			b.Fatal(err)
		}
	}
}

// tenMillion is a trace of 10 000 streams of 1000 records.
func tenMillion(b *testing.B) *Trace {
	b.Helper()
	source := rand.New(rand.NewPCG(1, 2))
	trace := schematest.New(10_000 * second)
	for i := range int64(10_000) {
		gaps := make([]int64, 1000)
		for j := range gaps {
			gaps[j] = 5*ms + int64(source.ExpFloat64()*float64(3*ms))
		}
		trace.Add(schematest.Stream{Start: i * second, TTFT: second, Gaps: gaps})
	}
	return openTrace(b, trace)
}
