package alter

import (
	"strings"
	"testing"

	core "github.com/rissodb/risso/internal/explain/alter"
)

// TestShown: what a comment of a table holds does not reach the terminal as a command; lines and quotes stay.
func TestShown(t *testing.T) {
	var b strings.Builder
	p := core.Plan{Table: "`s`.`t`", Kind: core.KindCopy, Statement: "ALTER TABLE t ADD n INT COMMENT 'a \"b\" \x1b[2J'", Lines: []core.Line{{Head: "kind", Text: "copy\x1b[2J"}},
		Test: []core.DataTest{{Says: "x", Select: "SELECT '\x1b'"}}, Tools: []core.Tool{{Name: "gh-ost", Command: "gh-ost --alter='\x07'"}}}
	if err := writePlan(&b, p); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.ContainsAny(got, "\x1b\x07") || !strings.Contains(got, `'a "b" `) || strings.Count(got, "\n") < 5 {
		t.Errorf("got %q, want it in lines, without escapes", got)
	}
}
