package plan_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rissodb/risso/internal/explain/plan"
)

const docs = "../../../docs"

// examples are the statements of docs/explain-examples.md, and the servers whose plans are there.
var examples = []struct{ name, title, sql string }{
	{"union", "A union with subqueries", unionSQL},
	{"buffer", "SQL_BUFFER_RESULT inside a GROUP BY", bufferSQL},
}

var exampleKinds = []struct{ kind, title string }{{"mysql-5.7", "MySQL 5.7"}, {"mysql-9.7", "MySQL 9.7"}, {"mariadb", "MariaDB 10.11"}}

// TestExamples: the plans of docs/explain-examples.md are those that servers produce today: the same steps and sentences,
// whatever the figures. RISSO_UPDATE_EXAMPLES=1 rewrites the page and its pictures.
func TestExamples(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	texts, pictures := map[string]string{}, map[string]string{}
	t.Run("servers", func(t *testing.T) {
		eachServer(t, func(s *server) {
			for _, x := range examples {
				e := s.explain(x.sql, false)
				e.Advice = nil
				mu.Lock()
				texts[x.name+" "+s.kind] = strings.Join(e.Lines(116), "\n")
				pictures[x.name+" "+s.kind] = plan.SVG(e)
				mu.Unlock()
			}
		})
	})
	page := filepath.Join(docs, "explain-examples.md")
	if os.Getenv("RISSO_UPDATE_EXAMPLES") != "" {
		writeExamples(t, page, texts, pictures)
	}
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range examples {
		for _, k := range exampleKinds {
			got, ok := texts[x.name+" "+k.kind]
			if !ok {
				continue // that server is not here: eachServer has said so
			}
			_, rest, found := strings.Cut(string(b), "<!-- "+x.name+" "+k.kind+" -->\n```\n")
			want, _, _ := strings.Cut(rest, "\n```")
			if !found || shapeOf(want) != shapeOf(got) {
				t.Errorf("%s on %s is not as the page has it; want found true, shapeOf(want) shapeOf(got):\n%s\nnow it is\n%s",
					x.name, k.kind, shapeOf(want), shapeOf(got))
			}
		}
	}
}

var (
	figures = regexp.MustCompile(`[0-9][0-9.,]*( (million|billion))?`)
	blanks  = regexp.MustCompile(`\s+`)
)

// shapeOf is an explanation without what statistics change from one server to the next: figures, how grave a sentence
// is, and where most of the cost is. The steps are left, and the sentences, sorted.
func shapeOf(text string) string {
	tree, said, _ := strings.Cut(text, "\nWhat it says")
	var steps []string
	for _, l := range strings.Split(tree, "\n")[1:] { // the first line has the plan's ID, which is of the shape
		l = blanks.ReplaceAllString(strings.TrimLeft(l, " 0123456789.,%"), " ") // without its columns
		if r := []rune(l); strings.HasSuffix(l, "…") {                          // how much of it there is depends on the columns before it
			l = string(r[:min(len(r), 40)])
		}
		if l != "" && !strings.HasPrefix(l, "#") {
			steps = append(steps, figures.ReplaceAllString(l, "N"))
		}
	}
	var sentences []string
	for _, l := range strings.Split(said, "\n")[1:] {
		if strings.HasPrefix(l, " ") && len(sentences) > 0 {
			sentences[len(sentences)-1] += " " + strings.TrimSpace(l)
		} else if l != "" {
			sentences = append(sentences, strings.TrimSpace(l))
		}
	}
	sentences = slices.DeleteFunc(sentences, func(s string) bool { return strings.Contains(s, "of the expected cost is here") })
	for i := range sentences {
		sentences[i] = strings.TrimLeft(sentences[i], "!· ")
		sentences[i] = figures.ReplaceAllString(sentences[i], "N")
	}
	slices.Sort(sentences)
	head, _, _ := strings.Cut(text, ",")
	return head + "\n" + strings.Join(steps, "\n") + "\n" + strings.Join(sentences, "\n")
}

func writeExamples(t *testing.T, page string, texts, pictures map[string]string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Plans of three servers\n\nWhat [risso explain](explain.md) says about two statements of which tabular EXPLAIN shows little. The tables have 1,000 customers and 10,000 orders; no\nstatement is run. A test repeats this on the same servers and compares steps and sentences.\n")
	for _, x := range examples {
		fmt.Fprintf(&b, "\n## %s\n```sql\n%s\n```\n", x.title, x.sql)
		for _, k := range exampleKinds {
			fmt.Fprintf(&b, "\n### %s\n<!-- %s %s -->\n```\n%s\n```\n", k.title, x.name, k.kind, texts[x.name+" "+k.kind])
			if k.kind == "mysql-9.7" {
				file := "explain-" + x.name + "-9.7.svg"
				fmt.Fprintf(&b, "\n![The same as a picture](%s)\n", file)
				if err := os.WriteFile(filepath.Join(docs, file), []byte(pictures[x.name+" "+k.kind]), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
