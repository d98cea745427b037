package load_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/load"
)

// TestOtherKind: a table, view or sequence replaces anything that has its name, and the plan says what is dropped.
func TestOtherKind(t *testing.T) {
	for _, spec := range servers {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := lend(t, spec)
			s := stream(t, node)
			kinds := map[string]string{"table": "CREATE TABLE k.%s (a INT PRIMARY KEY)", "view": "CREATE VIEW k.%s AS SELECT 1 AS a"}
			if strings.HasPrefix(spec, "mariadb") {
				kinds["sequence"] = "CREATE SEQUENCE k.%s"
			}
			var drops []string
			make := func(first bool) { // the kind before or after the _ of each name
				exec(t, s, "CREATE DATABASE k")
				for backup, mine := range kinds {
					for there, others := range kinds {
						name, create := backup+"_"+there, mine
						if !first {
							create = others
							shown := there + " `k`.`" + name + "`"
							if there != backup {
								shown += ", where the backup has a " + backup
							}
							drops = append(drops, shown)
						}
						exec(t, s, fmt.Sprintf(create, name))
					}
				}
			}
			make(true)
			const all = "SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'k' ORDER BY 1"
			want := ask(t, s, all)
			r := takeBackup(t, node, "k")
			exec(t, s, "DROP DATABASE k")
			make(false)
			exec(t, s, "CREATE TRIGGER k.goes BEFORE INSERT ON k.view_table FOR EACH ROW SET @a = 1")
			drops = append(drops, "trigger `k`.`goes`, with its table `view_table`")
			o := load.Options{Repo: r, Into: target(t, node)}
			if _, err := restore(t, o); !errors.Is(err, load.ErrExists) {
				t.Fatalf("over what is there: %v, want load.ErrExists", err)
			}
			var plan load.Plan
			o.Overwrite, o.Confirm = true, func(p load.Plan) error { plan = p; return nil }
			for _, o.DryRun = range []bool{true, false} {
				before := ask(t, s, all)
				if res, err := restore(t, o); err != nil {
					t.Fatalf("%v: %+v", err, res)
				}
				slices.Sort(plan.Drops)
				slices.Sort(drops)
				if !slices.Equal(plan.Drops, drops) || plan.DropsAll != int64(len(drops)) {
					t.Errorf("the plan drops %q, not %q; want plan.Drops %q, plan.DropsAll %v", plan.Drops, drops, drops, int64(len(drops)))
				}
				if now := ask(t, s, all); o.DryRun && now != before {
					t.Errorf("a plan changed something: %s", differ(before, now))
				}
			}
			if got := ask(t, s, all); got != want {
				t.Error(differ(want, got))
			}
			if res, err := restore(t, o); err != nil {
				t.Fatalf("over the same kinds: %v: %+v", err, res)
			}
			if got := ask(t, s, all); got != want {
				t.Error(differ(want, got))
			}
			// One that was cut off goes on over it, too.
			exec(t, s, "DROP DATABASE k")
			make(false)
			ctx, cut := context.WithCancel(t.Context())
			o.Progress = func(p load.Progress) {
				if p.Stage == "foreign keys" {
					cut()
				}
			}
			if _, err := load.Restore(ctx, o); err == nil {
				t.Fatal("it was not cut off")
			}
			o.Progress, o.Overwrite = nil, false
			if _, err := restore(t, o); !errors.Is(err, load.ErrExists) || !strings.Contains(err.Error(), "where the backup has a view") {
				t.Errorf("without --overwrite: got %v; want load.ErrExists, \"where the backup has a view\" in the error", err)
			}
			o.Overwrite = true
			if res, err := restore(t, o); err != nil || !res.Resumed {
				t.Fatalf("%v: got %+v; want Resumed true", err, res)
			}
			if got := ask(t, s, all); got != want {
				t.Error(differ(want, got))
			}
		})
	}
}
