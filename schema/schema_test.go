package schema

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the expected files")

// TestColumns holds every column to the rules of names and units.
func TestColumns(t *testing.T) {
	units := map[string]string{"_unix_ns": "unix_ns", "_ns": "ns", "_bytes": "bytes"}
	name := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	for _, table := range Tables() {
		seen := map[string]bool{}
		for _, c := range table.Columns {
			if !name.MatchString(c.Name) || seen[c.Name] {
				t.Errorf("%s.%s: bad or repeated name", table.Name, c.Name)
			}
			seen[c.Name] = true
			if !strings.HasSuffix(c.Doc, ".") {
				t.Errorf("%s.%s: its description is no sentence: %q", table.Name, c.Name, c.Doc)
			}
			for _, suffix := range []string{"_unix_ns", "_ns", "_bytes"} { // the longest that fits
				if strings.HasSuffix(c.Name, suffix) {
					if c.Unit != units[suffix] || c.Type != TypeInt64 && suffix != "_bytes" {
						t.Errorf("%s.%s: unit %q, type %s", table.Name, c.Name, c.Unit, c.Type)
					}
					break
				}
			}
		}
	}
}

// TestFormatDoc holds the tables of docs/format.md to the columns.
func TestFormatDoc(t *testing.T) {
	const path = "../docs/format.md"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- columns: begin -->\n", "<!-- columns: end -->"
	before, rest, ok := strings.Cut(string(data), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the columns", path)
	}
	want := before + begin + columnsMarkdown() + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(data) {
		t.Errorf("%s does not describe the columns: run go test ./schema -update", path)
	}
}

func columnsMarkdown() string {
	var b strings.Builder
	for _, table := range Tables() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| column | type | unit | meaning |\n|---|---|---|---|\n", table.Name, table.Doc)
		for _, c := range table.Columns {
			null := ""
			if c.Nullable {
				null = ", nullable"
			}
			fmt.Fprintf(&b, "| `%s` | %s%s | %s | %s |\n", c.Name, c.Type, null, c.Unit, strings.ReplaceAll(c.Doc, "|", "\\|"))
		}
	}
	b.WriteString("\n")
	return b.String()
}

func TestKinds(t *testing.T) {
	for k := range Kinds(1<<16 - 1) {
		if k%257 == 0 && ParseKinds(k.String()) != k {
			t.Fatalf("%b reads back as %b", k, ParseKinds(k.String()))
		}
	}
	if got := (KindFinish | KindContent).String(); got != "content+finish" {
		t.Errorf("got %q", got)
	}
	if KindRole.TokenBearing() || !KindTool.TokenBearing() || KindHidden.TokenBearing() {
		t.Error("which kinds bear tokens")
	}
}

func TestWords(t *testing.T) {
	var w Words
	for _, word := range []string{"b", "a", "b", "ab"} {
		w.Add(word)
	}
	if w != "b a ab" || !w.Has("ab") || w.Has("a ab") || w.Has("") || w.Has("c") {
		t.Errorf("%q", w)
	}
}

func TestOpt(t *testing.T) {
	var o Opt[int64]
	if o.OK || o.Or(7) != 7 || Since(Some[int64](5), o).OK || Since(o, Some[int64](5)).OK {
		t.Error("a missing value is there")
	}
	o.SetOnce(0)
	o.SetOnce(9)
	if o != Some[int64](0) || Since(Some[int64](5), Some[int64](7)) != Some[int64](-2) {
		t.Errorf("%v", o)
	}
	data, err := json.Marshal(map[string]any{"a": Some(1), "b": None[int]()})
	if string(data) != `{"a":1,"b":null}` || err != nil {
		t.Errorf("%s, %v", data, err)
	}
}

func TestLedger(t *testing.T) {
	l := Ledger{{Name: "in", Count: 3}, {Name: "a", Count: 1, PartOf: "in"}, {Name: "b", Count: 2, PartOf: "in"}, {Name: "alone", Count: 9}}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if l.Get("b") != 2 || l.Get("none") != 0 {
		t.Error("Get")
	}
	sum := l.Merge(append(Ledger{{Name: "new", Count: 4}}, l...))
	if err := sum.Check(); err != nil || sum.Get("in") != 6 || sum.Get("new") != 4 || l.Get("in") != 3 {
		t.Errorf("%v, %v", sum, err)
	}
	if l.Depth(l[0]) != 0 || l.Depth(l[1]) != 1 || (Ledger{{Name: "loop", PartOf: "loop"}}).Depth(Counter{PartOf: "loop"}) > 1 {
		t.Error("Depth")
	}
	l[1].Count = 0
	if err := l.Check(); err == nil || !strings.Contains(err.Error(), "in is 3, but its shares add up to 2") {
		t.Errorf("error %v", err)
	}
	if err := (Ledger{{Name: "a", PartOf: "nowhere"}}).Check(); err == nil {
		t.Error("a share of nothing passes")
	}
}
