package load

import (
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/repo"
)

// TestStages: what a restore says it will do follows from what the backup holds and what was asked for.
func TestStages(t *testing.T) {
	const journal, schemas, rows = "schema risso_restore: the journal, by which a restore that is cut off goes on", "schemas: 2", "rows: 3 tables with 1,200 rows (4 KiB)"
	looks := []string{"looking for orphans", "looking at tables in memory"}
	plan := Plan{Schemas: 2, Tables: 3, Rows: 1200, Bytes: 4096}
	rolls := plan
	rolls.Roll = &RollPlan{Transactions: 7}
	at := []ref{{}, {}}
	for _, c := range []struct {
		name string
		r    *run
		want []string
	}{
		{"tables alone", &run{plan: plan}, slices.Concat([]string{journal, schemas, rows, "foreign keys", "grants"}, looks, []string{"journal: it is removed"})},
		{"goes on", &run{plan: plan, resumed: true}, slices.Concat([]string{schemas, rows, "foreign keys", "grants"}, looks, []string{"journal: it is removed"})},
		{"all kinds, and binary logs", &run{plan: rolls, o: Options{SetGTID: true}, objects: map[repo.ObjectKind][]ref{repo.Account: at[:1], repo.Sequence: at, repo.Function: at[:1], repo.PackageBody: at[:1], repo.View: at, repo.Trigger: at, repo.Event: at}},
			slices.Concat([]string{journal, schemas, "accounts: 1", "sequences: 2", rows, "foreign keys", "routines: 2", "views: 2", "triggers: 2", "events: 2", "binary logs: 7 transactions", "events: 2", "grants", "looking at views: 2"}, looks, []string{"position", "journal: it is removed"})},
		{"events stay off", &run{plan: plan, o: Options{Hold: true}, objects: map[repo.ObjectKind][]ref{repo.Event: at}}, slices.Concat([]string{journal, schemas, rows, "foreign keys", "events: 2", "grants"}, looks, []string{"journal: it is removed"})},
	} {
		if got := c.r.stages(nil, nil).Words(); !slices.Equal(got, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}
