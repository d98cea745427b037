package scenario_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// TestLimitedAccount: an account without privileges sees what it may, and each remedy fixes its gap as printed.
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
		var gaps []fleet.Trouble
		await(t, "the gaps are told", func() bool {
			gaps = r.instance(t, "db").Gaps
			return has(gaps, "InnoDB metrics") && has(gaps, "replication status") && (kind != "mysql-9.7" || has(gaps, "quantiles"))
		})
		for round := 0; ; round++ {
			var todo []fleet.Trouble
			for _, g := range r.instance(t, "db").Gaps {
				if g.Remedy == "" {
					t.Errorf("no remedy for %q: got %s, want g.Remedy not \"\"", g.What, g.Why)
				} else {
					todo = append(todo, g)
				}
			}
			if len(todo) == 0 {
				break
			}
			if round > 3 {
				t.Fatalf("gaps are left: %+v, want round at most 3", todo)
			}
			for _, g := range todo {
				t.Logf("%s (%s): %s", g.What, g.Why, g.Remedy)
				execSQL(t, n, g.Remedy) // verbatim
			}
			// Its connections are cut, so that Risso asks again immediately and not after a minute.
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

func has(gaps []fleet.Trouble, word string) bool {
	for _, g := range gaps {
		if strings.Contains(g.What, word) {
			return true
		}
	}
	return false
}

// TestFewConnections: with an account that may have one connection, or two, the numbers are read as always, also after its connections were
// cut, though the server counts them for some time; that statements or sessions cannot be followed is a note, with a statement that fixes it.
func TestFewConnections(t *testing.T) {
	t.Parallel()
	eachKind(t, []string{"mariadb", "mysql-9.7"}, func(t *testing.T, kind string) {
		n := single(t, kind, "performance_schema=ON")
		for limit := 1; limit <= 2; limit++ {
			user := fmt.Sprintf("lim%d", limit)
			execSQL(t, n, fmt.Sprintf("CREATE USER '%s'@'127.0.0.1' IDENTIFIED BY 'x' WITH MAX_USER_CONNECTIONS %d", user, limit))
			execSQL(t, n, fmt.Sprintf("GRANT ALL ON *.* TO '%s'@'127.0.0.1'", user))
			p := newProxy(t, fmt.Sprintf("127.0.0.1:%d", n.Port))
			dsn := "db=" + user + ":x@tcp(" + p.addr + ")/"
			remedy := fmt.Sprintf("ALTER USER '%s'@'127.0.0.1' WITH MAX_USER_CONNECTIONS 5", user)
			r := serve(t, dataDir(t), "--no-host", "--dsn", dsn)
			r.awaitTicks(t, "db", 3)
			await(t, "it says what cannot be followed", func() bool {
				q := r.queries(t, "")
				if len(q.Sources) != 1 {
					return false
				}
				s := q.Sources[0]
				told := func(why, by string) bool {
					return strings.Contains(why, "because a second connection is missing") && by == remedy
				}
				return told(s.Why, s.Remedy) || s.Working && told(s.Activity.Why, s.Activity.Remedy)
			})
			for _, cut := range []func(){func() { cutSessions(t, n, "USER = '"+user+"'") }, func() { p.hangUp(700 * time.Millisecond) }} {
				cut()
				r.awaitTicks(t, "db", 2)
			}
			noEvent(t, r, "db", fleet.EventDown)
			if list := r.instance(t, "db").Findings; len(list) > 0 {
				t.Errorf("%s of one account with %d: %+v, want none", kind, limit, list)
			}
			r.stop(t, syscall.SIGTERM)
			says := func() string {
				out, errs, code := runRisso(t, nil, "doctor", "--no-host", "--dsn", dsn, "--data", dataDir(t), "--listen", "127.0.0.1:0")
				if code != 0 {
					t.Fatalf("doctor: got %d %s %s, want 0", code, out, errs)
				}
				return out
			}
			if out := says(); !strings.Contains(out, remedy) {
				t.Errorf("doctor: got %s, want %q in it", out, remedy)
			}
			execSQL(t, n, remedy)
			if out := says(); strings.Contains(out, "MAX_USER_CONNECTIONS") {
				t.Errorf("doctor with the remedy: got %s, want no \"MAX_USER_CONNECTIONS\" in it", out)
			}
			r = serve(t, dataDir(t), "--no-host", "--dsn", dsn)
			await(t, "with the remedy all is followed", func() bool {
				q := r.queries(t, "")
				return len(q.Sources) == 1 && q.Sources[0].Working && q.Sources[0].Activity.Working
			})
			r.stop(t, syscall.SIGTERM)
		}
	})
}
