package internal

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ownForms are the files that write numbers by other forms than digits', and why.
var ownForms = map[string]string{
	"mysql/takeover.go":                "seconds in statements",
	"mysql/repoint.go":                 "seconds in statements",
	"../ui/src/chart/plot.ts":          "the name of a month",
	"../ui/src/common/parts.tsx":       "coordinates of a drawing",
	"../ui/src/protect/Server.tsx":     "a width in CSS",
	"../ui/src/protect/parts.tsx":      "a width in CSS",
	"../ui/src/protect/timeline.ts":    "a place in CSS",
	"../ui/src/queries/Changes.tsx":    "a width in CSS",
	"store/state/password.go":          "the parameters of a hash, which are read",
	"avail/chaos/page.go":              "coordinates of a drawing",
	"sandbox/clock.go":                 "seconds for libfaketime",
	"avail/topology/picture/layout.go": "coordinates of a drawing",
	"explain/digest/filter/lex.go":     "units are read, not written",
	"explain/digest/report/csv.go":     "CSV is for programs",
	"explain/digest/report/html.go":    "a width in CSS",
	"explain/plan/sample.go":           "a value in SQL",
	"explain/size/treemap.go":          "coordinates of a drawing",
	"explain/trace/mapsvg.go":          "the width of a pen in Graphviz' language",
	"explain/trace/text.go":            "a moment on the time line, aligned with the others",
	"face/cli/bench/text.go":           "the number of a second in a column, as sysbench has it",
	"face/cli/check/backup.go":         "performance data of Nagios, for programs",
	"face/web/promwork.go":             "a limit that is a power of ten",
	"host/memory.go":                   "the kernel's unit is read, not written",
	"host/setup.go":                    "the kernel's unit is read, not written",
	"measure/bench/result.go":          "TpmC, as tpcc-mysql prints it",
	"measure/compare/scale/chart.go":   "coordinates of a drawing",
	"measure/compare/scale/text.go":    "CSV is for programs",
	"measure/environ/diff.go":          "the read-ahead as the kernel tells it",
	"measure/report/csv.go":            "CSV is for programs",
	"measure/report/svg.go":            "coordinates of a drawing",
	"mysql/read/plans.go":              "a value in SQL",
	"mysql/explain.go":                 "a value in SQL",
	"mysql/read/reached.go":            "a value in SQL",
	"watch/rules/innodb.go":            "a value in SQL",
	"watch/rules/server.go":            "a value in SQL and in a unit's settings",
	"watch/incident/page.go":           "coordinates of a drawing",
}

var (
	homeMade = regexp.MustCompile(`%[-+#0]*[0-9*]*\.[0-9*]+[fgeFGE]|%[-+#0]*[0-9*]*f\b|%[-+0-9.*]*[dsvg] ?(%%|[kKMGTP]i?B\b|(ns|µs|ms|min)\b)|%[-+0-9.*]*[dsvg] [smhd]\b|^ ?[kKMGTP]i?B$`)
	inPage   = regexp.MustCompile(`\.toFixed\(|\.toPrecision\(|\.toExponential\(|toLocaleString\(|Intl\.|\} ?([kKMGTP]i?B|ns|µs|ms|min)\b|\} %`)
	drawing  = regexp.MustCompile(`<\w+ [^>]*="`) // the coordinates of an SVG
)

// TestFormsAreDigits: numbers, sizes, durations, shares and rates are written by digits, and by its twin in the page, so that a
// quantity has one text.
func TestFormsAreDigits(t *testing.T) {
	found := map[string][]string{}
	for _, root := range []string{".", "../cmd", "../ui/src"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			name := filepath.ToSlash(filepath.Clean(path))
			switch {
			case err != nil || d.IsDir() || strings.HasPrefix(name, "digits/") || name == "../ui/src/common/format.ts":
			case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
				found[name] = goForms(t, path)
			case (strings.HasSuffix(name, ".ts") || strings.HasSuffix(name, ".tsx")) && !strings.HasSuffix(name, ".test.ts"):
				found[name] = pageForms(t, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if len(found[name]) > 0 && ownForms[name] == "" {
			t.Errorf("%s: use digits, or say in ownForms why not:\n\t%s", name, strings.Join(found[name], "\n\t"))
		}
	}
	for name := range ownForms {
		if len(found[name]) == 0 {
			t.Errorf("%s has no form of its own any more, want len(found[name]) not 0", name)
		}
	}
}

// goForms are the texts and calls of a Go file that write a number in a form of their own.
func goForms(t *testing.T, path string) (out []string) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	hit := func(n ast.Node, text string) { out = append(out, strconv.Itoa(files.Position(n.Pos()).Line)+": "+text) }
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && homeMade.MatchString(text) && !drawing.MatchString(text) {
				hit(n, text)
			}
		case *ast.CallExpr:
			if name := called(n); name == "strconv.FormatFloat" && len(n.Args) == 4 {
				if digits, ok := n.Args[2].(*ast.BasicLit); ok { // -1 is no literal: all digits, for programs
					hit(n, name+" with "+digits.Value+" digits")
				}
			} else if strings.HasPrefix(name, "fmt.") {
				for _, a := range n.Args {
					if c, ok := a.(*ast.CallExpr); ok && len(c.Args) == 1 && roundsTime(c) {
						hit(a, "a duration rounded for "+name)
					}
				}
			}
		}
		return true
	})
	return out
}

// called is the name of what is called, if it is a selector of a name.
func called(c *ast.CallExpr) string {
	if s, ok := c.Fun.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name + "." + s.Sel.Name
		}
	}
	return ""
}

func roundsTime(c *ast.CallExpr) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Round" && s.Sel.Name != "Truncate" {
		return false
	}
	unit := false
	ast.Inspect(c.Args[0], func(n ast.Node) bool {
		x, ok := n.(*ast.Ident)
		unit = unit || ok && x.Name == "time"
		return true
	})
	return unit
}

func pageForms(t *testing.T, path string) (out []string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range strings.Split(string(text), "\n") {
		if inPage.MatchString(l) {
			out = append(out, strconv.Itoa(i+1)+": "+strings.TrimSpace(l))
		}
	}
	return out
}

// TestFormsAreFound: the scan of TestFormsAreDigits sees what rooms once had.
func TestFormsAreFound(t *testing.T) {
	for _, form := range []string{"%.1f s", "%.0f %%", "%d ms", "%s GB", " GiB", "%d s", "%5.2f"} {
		if !homeMade.MatchString(form) {
			t.Errorf("%q passes, want homeMade.MatchString(form) true", form)
		}
	}
	for _, form := range []string{"%s left", "%d servers", "95%", "%d members", "%s since %s", "GiBBON"} {
		if homeMade.MatchString(form) {
			t.Errorf("%q is taken for a form", form)
		}
	}
	for _, form := range []string{"v.toFixed(1)", "`${n} ms`", "`${n} %`", "n.toLocaleString('en')"} {
		if !inPage.MatchString(form) {
			t.Errorf("%q passes, want inPage.MatchString(form) true", form)
		}
	}
}
