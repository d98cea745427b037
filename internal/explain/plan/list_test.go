package plan

import (
	"slices"
	"testing"
)

// TestSplitList: lists in plans are cut where the servers' language has a comma, and not in strings, names or calls.
func TestSplitList(t *testing.T) {
	got := splitList(`t.a DESC, (case when (t.b = 'it\'s, (x') then 1 end), concat(t.c,', '), ` + "`odd``,`" + `, "say ""(,"`)
	want := []string{"t.a DESC", `(case when (t.b = 'it\'s, (x') then 1 end)`, "concat(t.c,', ')", "`odd``,`", `"say ""(,"`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := parenthesised(`Filter: (t.a = ')' and t.b = 'it\'s )(') (cost=1)`); got != `t.a = ')' and t.b = 'it\'s )('` {
		t.Errorf("got %q, want \"t.a = ')' and t.b = 'it\\\\'s )('\"", got)
	}
}
