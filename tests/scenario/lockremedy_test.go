package scenario_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/watch/rules"
)

// TestLockRemedies: the query in findings about locks names the session that holds the lock, whatever lock that is, on servers
// with default settings (MySQL with performance_schema, MariaDB without) and the other way round; the KILL of that session lets the other go on.
func TestLockRemedies(t *testing.T) {
	t.Parallel()
	// All of them side by side: one after the other, each would wait anew for its turn among all tests of this package.
	for _, spec := range slices.Concat(kinds, []string{"mariadb performance_schema=ON", "mysql-9.7 performance_schema=OFF"}) {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			kind, setting, _ := strings.Cut(spec, " ")
			sandboxtest.Need(t, kind)
			s := newLockServer(t, kind, strings.Fields(setting)...)
			for _, c := range lockCases {
				if (c.only == "" || strings.Contains(c.only, kind)) && c.kind != read.LockUser {
					t.Run(c.name, func(t *testing.T) { s.remedied(t, c) })
				}
			}
		})
	}
}

// remedied runs what the rules say while one session waits for another.
func (s *lockServer) remedied(t *testing.T, c lockCase) {
	r := lockReader(t, s.node, "root")
	s.wait(t, c, func() { s.kill(t, r) }, func() {
		id, waits := "mdl.blocker", "metadata_lock"
		if c.kind == read.LockRow {
			id, waits = "lock.blocker", "row_lock"
		} else {
			await(t, "the session waits", func() bool {
				return value(t, s.node, fmt.Sprintf("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = %d AND STATE LIKE 'Waiting for%%'", s.waiterID)) == "1"
			})
		}
		remedy := s.remedyOf(t, r, id, waits)
		// Where the server tells locks, the holder comes first.
		first := strings.Contains(remedy, "metadata_locks") && c.kind != read.LockFlush
		await(t, fmt.Sprintf("connection %d is named by %s", s.holderID, remedy), func() bool {
			if c.kind == read.LockRow {
				time.Sleep(lockCopy)
			}
			list := execSQL(t, s.node, remedy)[0]
			at := slices.IndexFunc(list.Columns, func(name string) bool { return slices.Contains([]string{"id", "ID", "holds", "blocking_pid"}, name) })
			i := slices.IndexFunc(list.Rows, func(row []*string) bool { return row[at] != nil && *row[at] == fmt.Sprint(s.holderID) })
			return i == 0 || i > 0 && !first
		})
	})
}

// remedyOf is what the rules say to ask about threads of this server that wait.
func (s *lockServer) remedyOf(t *testing.T, r *mysql.Conn, id, waits string) string {
	t.Helper()
	snap := &rules.Snapshot{Now: time.Unix(1_790_000_000, 0).UTC(), Up: true, Instance: fleet.Instance{Kind: fleet.KindServer, Flavour: r.Server.Flavour, Version: r.Server.Version},
		Value: func(key string) (float64, bool) { return 1, strings.Contains(key, `"`+waits+`"`) },
		Text: func(name string) string {
			for _, row := range execSQL(t, s.node, "SHOW GLOBAL VARIABLES LIKE '"+name+"'")[0].Rows {
				return *row[1]
			}
			return ""
		}}
	var judge rules.Judge
	for range 40 {
		snap.Now = snap.Now.Add(time.Second)
		for _, f := range judge.Judge(snap).Findings {
			if f.ID == id {
				return f.Remedy
			}
		}
	}
	t.Fatalf("%s is not found", id)
	return ""
}
