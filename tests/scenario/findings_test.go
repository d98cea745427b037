package scenario_test

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/store/state"
)

// findings reads the findings of an instance that were kept.
func (r *risso) findings(t *testing.T, instance string) []state.FindingRecord {
	t.Helper()
	var a struct{ Findings []state.FindingRecord }
	r.get(t, "/api/findings", url.Values{"instance": {instance}}, &a)
	return a.Findings
}

// awaitFinding waits for a kept finding.
func (r *risso) awaitFinding(t *testing.T, instance, id string, fits func(state.FindingRecord) bool) (found state.FindingRecord) {
	t.Helper()
	await(t, fmt.Sprintf("finding %s of %q", id, instance), func() bool {
		list := r.findings(t, instance)
		i := slices.IndexFunc(list, func(f state.FindingRecord) bool { return f.First.ID == id && fits(f) })
		if i >= 0 {
			found = list[i]
		}
		return i >= 0
	})
	return found
}

// TestBlockersAreKept: a session that keeps others waiting is named by a finding, with the statement that ends it; what was found is
// kept with its begin over a kill of Risso, and with its end.
func TestBlockersAreKept(t *testing.T) {
	t.Parallel()
	settings := map[string][]string{"mysql-9.7": nil, "mariadb": {"performance_schema=ON", "performance_schema_instrument=wait/lock/metadata/sql/mdl=ON"}}
	ids := map[read.LockKind]string{read.LockRow: "lock.blocker", read.LockMetadata: "mdl.blocker", read.LockGlobal: "lock.global", read.LockUser: "lock.user"}
	eachKind(t, []string{"mysql-9.7", "mariadb"}, func(t *testing.T, kind string) {
		s := newLockServer(t, kind, settings[kind]...)
		data, whole := dataDir(t), t
		r := serve(t, data, "--no-host", "--dsn", "db="+s.node.DSN)
		r.awaitTicks(t, "db", 3)
		for _, c := range lockCases {
			if !slices.Contains([]string{"row", "metadata", "global read lock", "user lock"}, c.name) {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				kill := fmt.Sprintf("KILL %d", s.holderID)
				var open state.FindingRecord
				s.wait(t, c, func() {
					execSQL(t, s.node, open.First.Remedy)
					_ = s.holder.Raw(func(any) error { return sqldriver.ErrBadConn }) // so that it is not reused
					s.holder, s.holderID = s.session(t)
				}, func() {
					open = r.awaitFinding(t, "db", ids[c.kind], func(f state.FindingRecord) bool { return f.Ended.IsZero() && f.First.Remedy == kill })
					if !strings.Contains(open.First.What, c.words) || !strings.Contains(open.First.What, fmt.Sprintf("connection %d", s.holderID)) || strings.Contains(open.First.What, "'held'") {
						t.Errorf("got %q; want %q in it, the connection %d, and no value of a statement", open.First.What, c.words, s.holderID)
					}
					if c.kind != read.LockGlobal {
						return
					}
					r.kill(t)
					r = serve(whole, data, "--no-host", "--dsn", "db="+s.node.DSN)
					await(t, "the finding of before", func() bool {
						return slices.ContainsFunc(r.instance(t, "db").Findings, func(f fleet.Finding) bool { return f.ID == open.First.ID && f.Since.Equal(open.First.Since) })
					})
				})
				ended := r.awaitFinding(t, "db", ids[c.kind], func(f state.FindingRecord) bool { return f.ID == open.ID && !f.Ended.IsZero() })
				if ended.Unseen || !ended.Ended.After(ended.Began()) {
					t.Errorf("got %+v; want that its end was seen", ended)
				}
				n := 0
				for _, f := range r.findings(t, "db") {
					if f.First.ID == open.First.ID && f.First.Subject == open.First.Subject {
						n++
					}
				}
				if n != 1 {
					t.Errorf("it is kept %d times, want once", n)
				}
			})
		}
	})
}

// TestFlushBehindStatement: FLUSH TABLES WITH READ LOCK that waits for a long statement, and all that then waits for it, is told with the
// session that runs the statement, whose KILL ends it.
func TestFlushBehindStatement(t *testing.T) {
	t.Parallel()
	eachKind(t, []string{"mysql-9.7", "mysql-8.0", "mysql-5.7"}, func(t *testing.T, kind string) {
		s := newLockServer(t, kind, "performance_schema=ON", "performance_schema_instrument='wait/lock/metadata/sql/mdl=ON'")
		r := serve(t, dataDir(t), "--no-host", "--dsn", "db="+s.node.DSN)
		r.awaitTicks(t, "db", 3)
		c := lockCase{runs: "SELECT SLEEP(600) FROM shop.orders WHERE id = 1", waits: "FLUSH TABLES WITH READ LOCK", after: "UNLOCK TABLES"}
		var remedy string
		s.wait(t, c, func() {
			execSQL(t, s.node, remedy)
			_ = s.holder.Raw(func(any) error { return sqldriver.ErrBadConn }) // so that it is not reused
			s.holder, s.holderID = s.session(t)
		}, func() {
			for _, statement := range []string{"UPDATE shop.orders SET note = 'y' WHERE id = 3", "SELECT * FROM shop.orders"} {
				other, _ := s.session(t)
				go func() {
					defer other.Close()
					_, _ = other.ExecContext(context.WithoutCancel(t.Context()), statement)
				}()
			}
			f := r.awaitFinding(t, "db", "mdl.blocker", func(f state.FindingRecord) bool {
				return f.Ended.IsZero() && strings.Contains(f.First.What, fmt.Sprintf("connection %d ", s.holderID))
			})
			remedy = f.First.Remedy
			if want := fmt.Sprintf("KILL %d", s.holderID); remedy != want || !strings.Contains(f.First.What, "to be closed") {
				t.Errorf("got %q, remedy %q; want the table to be closed, and %s", f.First.What, remedy, want)
			}
		})
		r.awaitFinding(t, "db", "mdl.blocker", func(f state.FindingRecord) bool { return !f.Ended.IsZero() })
	})
}

// TestDownOnce: a server that is down while Risso is killed and started again is so once, since the same moment, and is back once; that it
// was restarted meanwhile is known.
func TestDownOnce(t *testing.T) {
	t.Parallel()
	eachKind(t, []string{"mariadb", "mysql-9.7"}, func(t *testing.T, kind string) {
		n, data := single(t, kind), dataDir(t)
		r := serve(t, data, "--no-host", "--dsn", "db="+n.DSN)
		r.awaitTicks(t, "db", 2)
		if err := n.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		isOpen := func(f state.FindingRecord) bool { return f.Ended.IsZero() }
		first := r.awaitFinding(t, "db", "server.down", isOpen)
		for range 2 {
			r.kill(t)
			r = serve(t, data, "--no-host", "--dsn", "db="+n.DSN)
			await(t, "it is down", func() bool { return r.instance(t, "db").State == "down" })
			if list := r.instance(t, "db").Findings; len(list) != 1 || !list[0].Since.Equal(first.First.Since) {
				t.Errorf("got %+v, want it down since %s", list, first.First.Since)
			}
		}
		if err := n.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.awaitFinding(t, "db", "server.down", func(f state.FindingRecord) bool { return f.ID == first.ID && !f.Ended.IsZero() })
		r.awaitFinding(t, "db", "server.restarted", isOpen)
		for _, kind := range []fleet.EventKind{fleet.EventDown, fleet.EventUp, fleet.EventRestart} {
			await(t, "the event "+string(kind), func() bool { return len(r.events(t, "db", kind)) > 0 })
			if list := r.events(t, "db", kind); len(list) != 1 {
				t.Errorf("got %+v, want one event %s", list, kind)
			}
		}
		down := 0
		for _, f := range r.findings(t, "db") {
			if f.First.ID == "server.down" {
				down++
			}
		}
		if down != 1 {
			t.Errorf("that it was down is kept %d times, want once", down)
		}
	})
}
