package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tokentrace/analysis"
	"tokentrace/schema"
	"tokentrace/schema/schematest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	ms     = schematest.Millisecond
	second = schematest.Second
)

// hostile is what a model may call itself.
const hostile = `<script>alert("x")</script> & "=1+1"`

func gather(t *testing.T, trace *schematest.Trace) *Results {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "trace")
	trace.Write(t, dir)
	tr, err := analysis.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	r, err := Gather(t.Context(), tr, "test.trace", "test 1")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mixed is a trace of two models with failures of several kinds.
func mixed() *schematest.Trace {
	source := rand.New(rand.NewPCG(5, 6))
	trace := schematest.New(400 * second)
	for i := range int64(150) {
		s := schematest.Stream{
			Start: i * 2 * second, Upload: ms, Prompt: 100 + source.Int64N(6000), Gap: 10*ms + source.Int64N(ms), Tokens: 20, Model: "model-a",
		}
		s.TTFT = 30*ms + s.Prompt*ms/20 + source.Int64N(3*ms)
		switch {
		case i%10 == 3:
			s.Model = "model-b"
		case i%25 == 4:
			s.Status, s.Tokens, s.TTFT = schema.StatusCancelled, 0, 900*ms
		case i%50 == 6:
			s.Status, s.Tokens = schema.StatusHTTPError, 0
		case i%50 == 7:
			s.Flags = "buffered_stream"
		}
		trace.Add(s)
	}
	return trace
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (run with -update and look at the diff):\n%s", path, got)
	}
}

func TestGolden(t *testing.T) {
	r := gather(t, mixed())
	var b bytes.Buffer
	for name, write := range map[string]func(io.Writer) error{
		"brief.txt":       func(w io.Writer) error { return WriteText(w, r.Brief("out/report.html")) },
		"report.csv":      func(w io.Writer) error { return WriteCSV(w, r.Sheet()) },
		"brief.md":        func(w io.Writer) error { return WriteMarkdown(w, r.Brief("out/report.html")) },
		"percentiles.txt": func(w io.Writer) error { return WriteText(w, PercentileDocument(r.ByModel, "text")) },
		"percentiles.csv": func(w io.Writer) error { return WriteCSV(w, PercentileDocument(r.ByModel, "csv")) },
		"regress.txt":     func(w io.Writer) error { return WriteText(w, FitDocument(r.Fit, "text")) },
	} {
		b.Reset()
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
	}
}

func TestTimelineUnits(t *testing.T) {
	since, gap, start := int64(1_234_567), int64(40_000), int64(1_767_225_600_000_123_456)
	l := &analysis.Timeline{
		Request:    analysis.TimelineRequest{ID: "run1.1", Start: &start, Concurrency: 9},
		Boundaries: []analysis.Boundary{{Name: "first_token", At: start, Since: &since}},
		Records:    []analysis.Record{{Since: &since, Gap: &gap}},
	}
	var text, sheet bytes.Buffer
	if err := errors.Join(WriteText(&text, TimelineDocument(l, "text")), WriteCSV(&sheet, TimelineDocument(l, "csv"))); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"8 others in flight at its start", "since start (ms)", " 1.235 ", " 0.040 ", "2026-01-01 00:00:00.000123"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in %s", want, text.String())
		}
	}
	if !strings.Contains(sheet.String(), "since_start_ns,gap_ns") || !strings.Contains(sheet.String(), "0,1234567,40000,") {
		t.Errorf("CSV %s", sheet.String())
	}
}

// TestFitTile: a slope whose sign is not known is no headline.
func TestFitTile(t *testing.T) {
	value, lo, hi := 641.0, -48.1, 409.0
	f := analysis.ModelFit{X: analysis.XUncached, Slope: analysis.Estimate{Value: &value, Lo: &lo, Hi: &hi}}
	if got := fitTile(f); got.Value != "not identifiable" || got.Label != "TTFT per 1000 uncached prompt tokens" || !strings.Contains(got.Note, "−48.1 to 409") {
		t.Errorf("got %+v", got)
	}
	f.Known = true
	if got := fitTile(f); got.Value != "641 ms" || !strings.Contains(got.Note, "least squares") {
		t.Errorf("got %+v", got)
	}
}

func page(t *testing.T, r *Results) string {
	t.Helper()
	figures, err := r.Figures()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteHTML(&b, r.Page(figures)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPageStandsAlone(t *testing.T) {
	html := page(t, gather(t, mixed()))
	for _, id := range []string{"ttft", "tpot", "prompt", "time", "waterfall"} {
		if !strings.Contains(html, `<figure id="figure-`+id+`">`) {
			t.Errorf("no figure %s", id)
		}
	}
	if n := strings.Count(html, "<svg"); n != 5 {
		t.Errorf("%d SVGs", n)
	}
	if m := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9.-]+\.[a-z]+|<link|<script|@import|url\(`).FindString(html); m != "" {
		t.Errorf("the page reaches out: %q", m)
	}
	for _, want := range []string{`id="gaps"`, `id="words"`, "needs 299, has ", "n_eff", `style="padding-left: 1.2em"`} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, m := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if !strings.Contains(html, `id="`+m[1]+`"`) {
			t.Errorf("no anchor %s", m[1])
		}
	}
	wellFormed(t, html)
}

// wellFormed reads the page as XML, with what HTML may leave open.
func wellFormed(t *testing.T, html string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(html))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	depth := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page does not parse: %v", err)
		}
		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
	}
	if depth != 0 {
		t.Errorf("%d elements are left open", depth)
	}
}

func TestHostileNames(t *testing.T) {
	trace := schematest.New(100 * second)
	for i := range int64(30) {
		trace.Add(schematest.Stream{Start: i * second, TTFT: 10*ms + i, Gap: ms, Tokens: 5, Prompt: 10 + i, Model: hostile, ClientID: hostile})
	}
	for range 12 {
		trace.Add(schematest.Stream{Start: 40 * second, TTFT: ms, Gap: ms, Tokens: 5, Prompt: 10, Model: "=cmd|' /C calc'!A0" + strings.Repeat("m", 2000) + "\x1b[31m\n|"})
	}
	r := gather(t, trace)
	html := page(t, r)
	if strings.Contains(html, "<script") || strings.Contains(html, "alert(\"x\")") {
		t.Error("a model's name is markup in the page")
	}
	wellFormed(t, html)
	var text, sheet, md bytes.Buffer
	if err := errors.Join(WriteText(&text, r.Brief("x")), WriteCSV(&sheet, r.Page(nil)), WriteMarkdown(&md, r.Page(nil))); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "\x1b") {
		t.Error("an escape sequence reaches the terminal")
	}
	if strings.Contains(md.String(), "<script") {
		t.Error("markup in Markdown")
	}
	records := csv.NewReader(&sheet)
	records.FieldsPerRecord = -1
	all, err := records.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range all {
		for _, field := range record {
			if strings.HasPrefix(field, "=") || strings.HasPrefix(field, "@") {
				t.Errorf("a formula: %.40q", field)
			}
		}
	}
}

func TestManyModels(t *testing.T) {
	trace := schematest.New(1000 * second)
	for i := range int64(400) {
		trace.Add(schematest.Stream{Start: i * second, TTFT: (i + 1) * ms, Gap: ms, Tokens: 3, Prompt: 10 + i, Model: "m" + strings.Repeat("x", int(i%40))})
	}
	r := gather(t, trace)
	figures, err := r.Figures()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(figures["ttft"].Caption, "35 more") {
		t.Errorf("caption %q", figures["ttft"].Caption)
	}
}

func TestReportsOfLittle(t *testing.T) {
	one := schematest.New(second)
	one.Add(schematest.Stream{TTFT: ms, Tokens: 1})
	cancelled := schematest.New(100 * second)
	for i := range int64(20) {
		cancelled.Add(schematest.Stream{Start: i * second, TTFT: second, Status: schema.StatusCancelled})
	}
	null := schematest.New(second)
	r := null.Add(schematest.Stream{TTFT: ms, Tokens: 1, Gap: ms})
	*r = schema.Request{Request: 1, Connection: 1, Status: schema.StatusCensoredStart}
	huge := schematest.New(second)
	huge.Add(schematest.Stream{TTFT: 1 << 60, Gap: 1 << 50, Tokens: 3, Prompt: math.MaxInt32 * 1000})
	for name, trace := range map[string]*schematest.Trace{
		"nothing": schematest.New(0), "one": one, "cancelled": cancelled, "null": null, "huge": huge,
	} {
		t.Run(name, func(t *testing.T) {
			r := gather(t, trace)
			dir := filepath.Join(t.TempDir(), "report")
			if err := Write(dir, r); err != nil {
				t.Fatal(err)
			}
			if err := Write(dir, r); err != nil {
				t.Errorf("a second time: %v", err)
			}
			wellFormed(t, page(t, r))
			data, err := os.ReadFile(filepath.Join(dir, ResultsName))
			if err != nil || !json.Valid(data) || bytes.Contains(data, []byte("NaN")) {
				t.Errorf("report.json is bad: %v", err)
			}
			if err := WriteText(io.Discard, r.Brief(dir)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestForeignDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, gather(t, schematest.New(0))); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v", err)
	}
}

func TestFigureSizes(t *testing.T) {
	source := rand.New(rand.NewPCG(7, 8))
	trace := schematest.New(20_000 * second)
	for i := range int64(6000) {
		p := 50 + source.Int64N(20_000)
		trace.Add(schematest.Stream{Start: i * 3 * second, TTFT: p*ms/10 + int64(source.ExpFloat64()*float64(50*ms)), Gaps: make([]int64, 10), Prompt: p})
	}
	figures, err := gather(t, trace).Figures()
	if err != nil {
		t.Fatal(err)
	}
	for id, f := range figures {
		if len(f.SVG) > 300_000 || len(f.PNG) < 1000 {
			t.Errorf("%s: SVG of %d bytes, PNG of %d", id, len(f.SVG), len(f.PNG))
		}
		if m := regexp.MustCompile(`#[0-9A-F]{6}`).FindString(inlineSVG(f)); m != "" {
			t.Errorf("%s: colour %s does not follow the page", id, m)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi, scale float64
		want          string
	}{
		{0, 1000, 1, "0 200 400 600 800 1000"}, {0, 3.3e9, 1e9, "0 1 2 3"}, {0, 42, 1, "0 10 20 30 40"}, {0.1, 0.35, 1, "0.10 0.15 0.20 0.25 0.30 0.35"},
	} {
		var got []string
		for _, tick := range (stepTicks{c.scale, 5}).Ticks(c.lo, c.hi) {
			got = append(got, tick.Label)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v to %v: %q, want %q", c.lo, c.hi, got, c.want)
		}
	}
	if got := (stepTicks{1, 5}).Ticks(3, 3); len(got) != 1 {
		t.Errorf("no span: %v", got)
	}
	var got []string
	for _, tick := range (logTicks{}).Ticks(9e6, 1.1e9) {
		if tick.Label != "" {
			got = append(got, tick.Label)
		}
	}
	if want := "10 ms,20 ms,50 ms,100 ms,200 ms,500 ms,1 s"; strings.Join(got, ",") != want {
		t.Errorf("got %q", got)
	}
}

func TestFormats(t *testing.T) {
	for got, want := range map[string]string{
		duration(1.2345e9): "1.23 s", duration(999.6e6): "1000 ms", duration(0): "0 ns", duration(12345): "12.3 µs",
		duration(123e9): "123 s", duration(7.5e6): "7.50 ms", count(1234567): "1234567", count(-1234): "−1234", digits(-48.1): "−48.1",
		levelName(0.999): "p99.9", levelName(0.5): "p50", shorten("abcdefghij", 5): "ab…ij", shorten("a\x1bb", 9): "a b",
		csvText("-1+2"): "'-1+2", csvText("a"): "a",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRows(t *testing.T) {
	rows := func() Row {
		i := 0
		return func() ([]any, error) {
			i++
			if i > 2 {
				return nil, nil
			}
			return []any{int64(i), nil, []any{"a<b", nil}, "=x"}, nil
		}
	}
	for format, want := range map[string]string{
		"json": "[\n  {\"n\": 1, \"z\": null, \"l\": [\"a<b\",null], \"t\": \"=x\"},\n  {\"n\": 2, \"z\": null, \"l\": [\"a<b\",null], \"t\": \"=x\"}\n]\n",
		"csv":  "n,z,l,t\n1,,\"[\"\"a\\u003cb\"\",null]\",'=x\n2,,\"[\"\"a\\u003cb\"\",null]\",'=x\n",
	} {
		var b bytes.Buffer
		if err := WriteRows(&b, format, []string{"n", "z", "l", "t"}, rows()); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%s: got %q, want %q", format, b.String(), want)
		}
	}
	var b bytes.Buffer
	if err := WriteRows(&b, "json", []string{"n"}, func() ([]any, error) { return nil, nil }); err != nil || b.String() != "[]\n" {
		t.Errorf("no rows: %q, %v", b.String(), err)
	}
}

// BenchmarkReport10kRequests is a report of 10 000 requests of 100 tokens each.
func BenchmarkReport10kRequests(b *testing.B) {
	source := rand.New(rand.NewPCG(9, 10))
	trace := schematest.New(20_000 * second)
	for i := range int64(10_000) {
		p := 50 + source.Int64N(20_000)
		trace.Add(schematest.Stream{Start: i * 2 * second, TTFT: p*ms/20 + int64(source.ExpFloat64()*float64(50*ms)), Gap: 7*ms + source.Int64N(ms), Tokens: 100, Prompt: p})
	}
	dir := filepath.Join(b.TempDir(), "trace")
	trace.Write(b, dir)
	for b.Loop() {
		tr, err := analysis.Open(b.Context(), dir)
		if err != nil {
			b.Fatal(err)
		}
		r, err := Gather(b.Context(), tr, "bench", "bench")
		if err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(tr.Close(), Write(filepath.Join(b.TempDir(), "report"), r)); err != nil {
			b.Fatal(err)
		}
	}
}
