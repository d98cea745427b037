package scenario_test

import (
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

// TestLimitedAccount: an account without privileges sees what it may, and each remedy mends its gap as it stands.
func TestLimitedAccount(t *testing.T) {
	t.Parallel()
	eachKind(t, kinds, func(t *testing.T, kind string) {
		n := single(t, kind, "performance_schema=ON")
		execSQL(t, n, "CREATE USER 'lim-ited'@'localhost' IDENTIFIED BY 'x'")
		r := serve(t, dataDir(t), "--no-host", "--dsn", "db=lim-ited:x@unix("+n.Socket+")/")
		at := r.awaitTicks(t, "db", 2)
		if len(r.at(t, `{__name__=~"mysql_global_status_.+",instance="db"}`, at)) < 200 {
			t.Error("an account with USAGE only gets no status")
		}
		// What threads wait for is asked only while something runs, quantiles every ten seconds.
		stop := occupy(t, n.Config())
		defer stop()
		var gaps []fleet.Gap
		await(t, "the gaps are told", func() bool {
			gaps = r.instance(t, "db").Gaps
			return has(gaps, "InnoDB metrics") && has(gaps, "replication status") && (kind != "mysql-9.7" || has(gaps, "quantiles"))
		})
		for round := 0; ; round++ {
			var todo []fleet.Gap
			for _, g := range r.instance(t, "db").Gaps {
				if g.Remedy == "" {
					t.Errorf("no remedy for %q: %s", g.What, g.Reason)
				} else {
					todo = append(todo, g)
				}
			}
			if len(todo) == 0 {
				break
			}
			if round > 3 {
				t.Fatalf("gaps are left: %+v", todo)
			}
			for _, g := range todo {
				t.Logf("%s (%s): %s", g.What, g.Reason, g.Remedy)
				execSQL(t, n, g.Remedy) // verbatim
			}
			// Its connections are cut, so that Risso asks again at once and not after a minute.
			cutSessions(t, n, "USER = 'lim-ited'")
			r.awaitTicks(t, "db", 2)
			await(t, "the mended gaps vanish", func() bool {
				for _, g := range r.instance(t, "db").Gaps {
					for _, old := range todo {
						if g == old {
							return false
						}
					}
				}
				return true
			})
			r.awaitTicks(t, "db", 2)
		}
		end := r.awaitTicks(t, "db", 1)
		if len(r.at(t, `{__name__=~"mysql_info_schema_innodb_metrics_.+",instance="db"}`, end)) < 50 {
			t.Error("after the GRANT there are no InnoDB metrics")
		}
	})
}

func has(gaps []fleet.Gap, word string) bool {
	for _, g := range gaps {
		if strings.Contains(g.What, word) {
			return true
		}
	}
	return false
}
