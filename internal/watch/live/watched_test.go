package live_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/watch/collect"
	"github.com/rissodb/risso/internal/watch/live"
)

// patience is how long a test waits for what must come; it says nothing of how fast that is.
const patience = 3 * time.Minute

// watched is a real server on a board.
type watched struct {
	*live.Board
	facts live.Facts

	mu     sync.Mutex
	events []fleet.Event
}

// watch looks at a server every second until the test ends.
func watch(t *testing.T, dsn string) *watched {
	t.Helper()
	return watchWith(t, dsn, collect.Options{})
}

func watchWith(t *testing.T, dsn string, o collect.Options) *watched {
	t.Helper()
	target, err := mysql.ParseTarget(dsn)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{Board: live.New(func() live.Self { return live.Self{} })}
	instance := fleet.Instance{ID: "s", Name: "s", Kind: fleet.KindServer, HostID: "here"}
	w.Add(instance)
	w.facts, _ = w.Facts("s")
	o.Sink, o.Recorder, o.Observer, o.Logger = w, w, w, slog.New(slog.DiscardHandler)
	c := collect.NewServer(target, instance, o)
	ctx, cancel := context.WithCancel(t.Context())
	var g collect.Group
	g.Go(ctx, c)
	t.Cleanup(func() { cancel(); g.Wait() })
	return w
}

// Append keeps nothing.
func (w *watched) Append(int64, []fleet.Metric, []float64, bool) error { return nil }

// Event keeps what happened.
func (w *watched) Event(e fleet.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// Variables keeps nothing.
func (w *watched) Variables(string, time.Time, map[string]string) {}

func (w *watched) told() live.Detail {
	d, _ := w.Detail("s")
	return d
}

// finding is the words of the findings of an id.
func (w *watched) finding(id string) (list []fleet.Finding) {
	for _, f := range w.told().Findings {
		if f.ID == id {
			list = append(list, f)
		}
	}
	return list
}

func (w *watched) await(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			d := w.told()
			t.Fatalf("%s did not come: %s, %+v, gaps %+v", what, d.Words, d.Findings, d.Gaps)
		}
	}
}

// awaitFinding waits for a finding whose words hold all of these.
func (w *watched) awaitFinding(t *testing.T, id string, words ...string) fleet.Finding {
	t.Helper()
	var found fleet.Finding
	w.await(t, id+" "+strings.Join(words, ", "), func() bool {
		for _, f := range w.finding(id) {
			if found = f; !slices.ContainsFunc(words, func(s string) bool { return !strings.Contains(f.What, s) }) {
				return true
			}
		}
		return false
	})
	return found
}

func (w *watched) awaitNone(t *testing.T, id string) {
	t.Helper()
	w.await(t, "the end of "+id, func() bool { return len(w.finding(id)) == 0 })
}

// seen is the newest tick of the server.
func (w *watched) awaitTicks(t *testing.T, n int64) {
	t.Helper()
	w.await(t, "a first tick", func() bool { return w.told().Seen != 0 })
	from := w.told().Seen
	w.await(t, "a tick", func() bool { return w.told().Seen >= from+n && w.told().State != "new" })
}

func open(t *testing.T, n *sandbox.Node) *sql.DB {
	t.Helper()
	db, err := n.DB()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func conn(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type execer interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}

func run(t *testing.T, db execer, statements ...string) {
	t.Helper()
	for _, q := range statements {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

func errorNumber(err error) int {
	if me, ok := errors.AsType[*driver.MySQLError](err); ok {
		return int(me.Number)
	}
	return 0
}

func rootDSN(n *sandbox.Node) string { return fmt.Sprintf("root@unix(%s)/", n.Socket) }

// killAll ends the connections of an account.
func killAll(t *testing.T, n *sandbox.Node, user string) {
	t.Helper()
	db := open(t, n)
	rows, err := db.QueryContext(t.Context(), "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = ?", user)
	if err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		_, _ = db.ExecContext(t.Context(), fmt.Sprintf("KILL %d", id)) // it may be gone
	}
}
