package internal_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/rissodb/risso/"

// layer orders the house from the ground up; a package imports only what is lower, or in its own wing.
var layer = map[string]int{
	"internal/await":       -1,
	"internal/lack":        -1,
	"internal/pattern":     -1,
	"internal/delay":       -1,
	"internal/oneline":     -1,
	"internal/fleet":       -1,
	"internal/digits":      0,
	"internal/follow":      -1,
	"internal/byschema":    0,
	"internal/mysql":       1,
	"internal/host":        1,
	"internal/sqltext":     0,
	"internal/blockers":    2,
	"internal/channels":    2,
	"internal/change":      2,
	"internal/store":       2,
	"internal/throttle":    2,
	"internal/squeeze":     0,
	"internal/binlogevent": 2,
	"internal/explain":     4,
	"internal/watch":       4,
	"internal/measure":     4,
	"internal/data":        4,
	"internal/audit":       4,
	"internal/avail":       4,
	"internal/sandbox":     3,
	"internal/fault":       0,
	"internal/release":     -1,
	"internal/home":        0,
	"internal/serve":       5,
	"ui":                   4,
	"internal/face":        6,
	"cmd":                  7,
}

func roomOf(pkg string) string {
	path := strings.TrimPrefix(pkg, module)
	longest := ""
	for room := range layer {
		if (path == room || strings.HasPrefix(path, room+"/")) && len(room) > len(longest) {
			longest = room
		}
	}
	return longest
}

// TestImportsGoDown holds the direction in which packages may import each other.
func TestImportsGoDown(t *testing.T) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	seen := 0
	for {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		from := roomOf(p.ImportPath)
		if from == "" {
			continue
		}
		seen++
		for _, imp := range p.Imports {
			if sideways(p.ImportPath, imp) {
				t.Errorf("%s imports %s, its neighbour: what both need belongs into flags or screen", p.ImportPath, imp)
			}
			to := roomOf(imp)
			if to == "" || to == from {
				continue
			}
			if layer[to] >= layer[from] {
				t.Errorf("%s imports %s: %s may not know %s", p.ImportPath, imp, from, to)
			}
		}
	}
	if seen < 5 {
		t.Fatalf("only %d packages were looked at, want at least 5", seen)
	}
}

// alone has the folders whose rooms do not know each other, and in them those that all may know.
var alone = map[string][]string{"internal/face/cli": {"flags", "screen"}}

// sideways reports whether an import goes from one room of such a folder to its neighbour.
func sideways(from, to string) bool {
	for dir, shared := range alone {
		a, in := strings.CutPrefix(from, module+dir+"/")
		b, beside := strings.CutPrefix(to, module+dir+"/")
		a, _, _ = strings.Cut(a, "/")
		b, _, _ = strings.Cut(b, "/")
		if in && beside && a != b && !slices.Contains(shared, b) {
			return true
		}
	}
	return false
}

// TestSideways: the rule finds what it should.
func TestSideways(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"restore", "binlog", true}, {"screen", "restore", true}, {"bench/x", "backup", true}, {"restore", "flags", false}, {"flags", "screen", false}, {"bench", "bench/x", false},
	} {
		if got := sideways(module+"internal/face/cli/"+c.from, module+"internal/face/cli/"+c.to); got != c.want {
			t.Errorf("from %s to %s: got %t, want %t", c.from, c.to, got, c.want)
		}
	}
	if sideways(module+"internal/face/cli", module+"internal/face/cli/backup") {
		t.Error("from cli, which lists all: got true, want false")
	}
}

// TestLackFails: a test that needs what script/setup installs asks package lack for what to do without it: in script/test it fails.
func TestLackFails(t *testing.T) {
	skips := exec.Command("git", "grep", "-nE", `[.]Skip(f|Now)?[(].*(install|script/(setup|test))`, "--", "../*.go")
	if out, err := skips.Output(); len(out) > 0 {
		t.Errorf("skipped, not failed, in script/test for want of what script/setup installs:\n%s", out)
	} else if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Skipf("no git here: %v", err)
	}
}

// TestShortIsTold: a test that takes less of its data under go test -short says so in a line that begins "short: ", by which
// script/test finds those that it has to run with all of it.
func TestShortIsTold(t *testing.T) {
	list, err := exec.Command("git", "grep", "-l", "-F", "testing.Short()", "--", "../*_test.go").Output()
	if err != nil {
		t.Skipf("no git here: %v", err)
	}
	if len(strings.Fields(string(list))) < 5 {
		t.Errorf("only these were found: %s, want len(strings.Fields(string(list))) at least 5", list)
	}
	for _, file := range strings.Fields(string(list)) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if file != "layers_test.go" && strings.Count(string(text), "testing.Short()") != strings.Count(string(text), `("short: `) {
			t.Errorf("%s asks testing.Short() and does not say each time what is left out", file)
		}
	}
}

// TestPlainRooms: the rooms that script/test tests without the race detector start no goroutine and guard nothing against one.
func TestPlainRooms(t *testing.T) {
	list := exec.Command("bash", "-c", `. script/lib/race.sh && printf '%s\n' "${plain[@]}"`)
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	rooms := 0
	for _, dir := range strings.Fields(string(out)) {
		if !strings.HasPrefix(dir, "./internal") {
			continue
		}
		rooms++
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: got %d files, %v; want not 0", dir, len(files), err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				for _, words := range concurrent(t, file) {
					t.Errorf("%s: test its room with the race detector", words)
				}
			}
		}
	}
	if rooms < 15 {
		t.Errorf("only %d rooms were found in %s, want at least 15", rooms, out)
	}
}

// concurrent says what of a file starts a goroutine, or guards something against one.
func concurrent(t *testing.T, file string) (words []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, imp := range f.Imports {
		if path, _ := strconv.Unquote(imp.Path.Value); slices.Contains([]string{"sync", "sync/atomic", "golang.org/x/sync/errgroup"}, path) {
			words = append(words, file+" imports "+path)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			words = append(words, file+" starts a goroutine")
		case *ast.SelectorExpr:
			if n.Sel.Name == "AfterFunc" {
				words = append(words, file+" has something done by AfterFunc")
			}
		}
		return true
	})
	return words
}
