package lab_test

import (
	"bytes"
	"encoding/json"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// run runs a command in the root of the module and returns what it prints.
func run(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return out
}

// dependencies lists the packages that the patterns depend on, themselves
// included.
func dependencies(t *testing.T, patterns ...string) []string {
	t.Helper()
	args := append([]string{"list", "-e", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}"}, patterns...)
	return strings.Fields(string(run(t, "go", args...)))
}

func TestArrows(t *testing.T) {
	const (
		duckdb   = "github.com/duckdb/"
		gopacket = "github.com/gopacket/"
	)
	for _, rule := range []struct {
		what      string
		patterns  []string
		forbidden []string
	}{
		{"capture is built without cgo and carries no statistics",
			[]string{"./capture/...", "./cmd/capture/..."},
			[]string{duckdb, "gonum.org/", "tokentrace/analysis", "tokentrace/internal/lab"}},
		{"analysis reads traces, not packets",
			[]string{"./analysis/..."},
			[]string{gopacket, "tokentrace/capture", "tokentrace/cmd", "tokentrace/internal/lab"}},
		{"cmd/analyze is not built from the lab",
			[]string{"./cmd/analyze/..."},
			[]string{"tokentrace/internal/lab"}},
		{"the packages under schema know neither side",
			[]string{"./schema/..."},
			[]string{duckdb, gopacket, "gonum.org/", "tokentrace/capture", "tokentrace/analysis", "tokentrace/internal"}},
	} {
		for _, dep := range dependencies(t, rule.patterns...) {
			for _, f := range rule.forbidden {
				if dep == f || strings.HasPrefix(dep, strings.TrimSuffix(f, "/")+"/") {
					t.Errorf("%s: %v depend on %s", rule.what, rule.patterns, dep)
				}
			}
		}
	}
}

func TestSchemaNeedsOnlyTheStandardLibrary(t *testing.T) {
	deps := dependencies(t, "./schema")
	if want := []string{"tokentrace/schema"}; !slices.Equal(deps, want) {
		t.Errorf("schema depends on %v, want only itself", deps)
	}
}

func TestNoReplace(t *testing.T) {
	var mod struct{ Replace []json.RawMessage }
	if err := json.Unmarshal(run(t, "go", "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	if len(mod.Replace) > 0 {
		t.Errorf("go.mod replaces modules: %s", mod.Replace)
	}
}

// TestPackageComments wants one file in each package to say what the package is.
func TestPackageComments(t *testing.T) {
	comments := make(map[string][]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		dir := filepath.Dir(path)
		comments[dir] = append(comments[dir], "")
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		if f.Doc != nil {
			comments[dir][len(comments[dir])-1] = path
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(comments) < 2 {
		t.Fatalf("found only %d packages", len(comments))
	}
	for dir, files := range comments {
		with := slices.DeleteFunc(files, func(f string) bool { return f == "" })
		if len(with) != 1 {
			t.Errorf("%s: %d package comments, want 1: %v", dir, len(with), with)
		}
	}
}
