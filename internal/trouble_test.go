package internal

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ownWords are the files with structs that have their own reason or remedy, and why it is no fleet.Trouble.
var ownWords = map[string]string{
	"avail/health/verdict.go":           "the answer to whoever asks over HTTP, who gets no remedy",
	"avail/publish/ask.go":              "the answer to whoever asks over HTTP, who gets no remedy",
	"change/plan.go":                    "why a step is in a plan: nothing is wrong",
	"data/binlog/mirror/finish.go":      "why a log may go: nothing is wrong",
	"data/dump/list.go":                 "the server's own words within an error",
	"data/jobs/jobs.go":                 "a sentence for the log of the next run",
	"data/load/load.go":                 "the name that journals of earlier versions have",
	"data/physical/run.go":              "a table: by which words of a tool its remedy is known",
	"data/verdict/verdict.go":           "why a backup does not count, which its kind decides",
	"fleet/advice.go":                   "its remedy is a statement, with its undo and what it does",
	"explain/advise/settings.go":        "a table: the words of findings about settings",
	"explain/digest/filter/filter.go":   "what is wrong at a place of an expression",
	"explain/digest/wrap/unpack.go":     "a table: by which bytes a remedy is known",
	"explain/plan/block.go":             "why an index does not serve: a fact of a plan",
	"explain/plan/predicate.go":         "why an index does not serve: a fact of a plan",
	"face/cli/advise/kept.go":           "why somebody decided so about a finding: nothing is wrong",
	"face/cli/alert/alert.go":           "why somebody silences alerts: nothing is wrong",
	"face/cli/flags/running.go":         "the answer of face/web/answer.go, read",
	"face/cli/watch/past.go":            "the answer of /api/moment, read",
	"face/cli/restore/restore.go":       "a table: by which error a remedy is known",
	"face/web/answer.go":                "an answer in JSON, made of an error",
	"face/web/advice.go":                "why somebody decided so about a finding: nothing is wrong",
	"face/web/alerts.go":                "why somebody silences alerts: nothing is wrong",
	"fleet/trouble.go":                  "the two shapes themselves",
	"host/reader.go":                    "what would mend a file that may never fail",
	"measure/compare/compare.go":        "why a verdict is withheld: nothing is wrong",
	"measure/environ/environ.go":        "the name that results of earlier versions have",
	"store/aside/aside.go":              "what was wrong with a file that is set aside: nothing is to be mended",
	"store/state/advice.go":             "why somebody decided so about a finding: nothing is wrong",
	"store/state/state.go":              "what was wrong with a file that is set aside: nothing is to be mended",
	"watch/alert/policy.go":             "why somebody silenced alerts: nothing is wrong",
	"watch/incident/file.go":            "why an incident is kept, and why a second is missing: nothing to mend",
	"watch/rules/rules.go":              "a finding before its sentence is put together",
	"explain/differ/compare.go":         "why a difference matters: a fact, with nothing to mend",
	"explain/differ/meanings.go":        "why a variable matters: a fact, with nothing to mend",
	"face/cli/chaos/verify.go":          "why a certificate is not what it was: nothing to mend",
	"avail/topology/picture/picture.go": "the class of a failure, as topology.Failure has it",
	"serve/topology/topology.go":        "why what the topology looked like is not known: nothing to mend",
}

var wordOfTrouble = regexp.MustCompile(`(?i)^(hint|remedy|why|reason)$`)

// TestTroubleIsFleets: what is wrong, why, and its remedy is a fleet.Trouble, or an error with fleet.WithRemedy: no struct spells it
// by itself.
func TestTroubleIsFleets(t *testing.T) {
	found := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range s.Fields.List {
				if kind, ok := f.Type.(*ast.Ident); !ok || kind.Name != "string" {
					continue
				}
				for _, name := range f.Names {
					if wordOfTrouble.MatchString(name.Name) {
						found[filepath.ToSlash(path)] = append(found[filepath.ToSlash(path)], name.Name)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		if ownWords[path] == "" {
			t.Errorf("%s: fields %s: want a fleet.Trouble, or a reason in the list of this test", path, strings.Join(found[path], ", "))
		}
	}
	for path := range ownWords {
		if found[path] == nil {
			t.Errorf("%s is in the list of this test, and has no such field: want it out of the list", path)
		}
	}
}
