package trial_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/differ/trial"
	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// planned are the plans of statements on a server.
func planned(t *testing.T, n *sandbox.Node, list []trial.Statement) map[string]string {
	t.Helper()
	c := sandboxtest.Connect(t, n)
	out := map[string]string{}
	for _, s := range list {
		p, err := plan.Take(t.Context(), c, plan.Request{SQL: s.SQL, Database: s.Database, Form: "table"})
		if err != nil {
			t.Fatalf("%s: %v", s.SQL, err)
		}
		out[s.Class] = plan.Shape(p.Plan)
	}
	return out
}

// sameAsReal compares what a trial without rows says of plans with what both versions do with the rows: real is a server of the new version
// that has them.
func sameAsReal(t *testing.T, old, real *sandbox.Node, a *trial.Answer) {
	t.Helper()
	was, now := planned(t, old, asked()), planned(t, real, asked())
	known := 0
	for _, s := range asked() {
		if i := slices.IndexFunc(a.Unknown, func(u trial.PlanUnknown) bool { return u.Class == s.Class }); i >= 0 {
			t.Logf("not known: %s: %s", s.SQL, a.Unknown[i].Why)
			continue
		}
		known++
		i := slices.IndexFunc(a.Plans, func(p trial.PlanChange) bool { return p.Class == s.Class })
		if changes := was[s.Class] != now[s.Class]; changes != (i >= 0) {
			told := "nothing"
			if i >= 0 {
				told = strings.Join(append(a.Plans[i].Before, a.Plans[i].After...), "\n") + a.Plans[i].Error
			}
			t.Errorf("%s: with the rows the plan changes: %t; the trial tells:\n%s\nwith the rows:\n%s\n%s", s.SQL, changes, told, was[s.Class], now[s.Class])
		}
	}
	t.Logf("%d of %d statements known, %d with another plan", known, len(asked()), len(a.Plans))
	if known < 20 || known != a.Compared {
		t.Errorf("got %d statements of %d that are known, compared %d; want 20 or more, and the same", known, len(asked()), a.Compared)
	}
	for _, class := range []string{"class 29", "class 30"} { // large ranges of rows that a trial does not have
		if !slices.ContainsFunc(a.Unknown, func(u trial.PlanUnknown) bool { return u.Class == class }) {
			t.Errorf("%s reads a range of rows that are not there: it counts as known", class)
		}
	}
}

// live is the server that a trial asks.
func live(t *testing.T, n *sandbox.Node) *mysql.Target {
	to := at(t, n)
	return &to
}
