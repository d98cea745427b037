package dump_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/snapshot"
)

// TestHeld alters tables while a backup runs, if the server does not keep schema changes waiting by itself: either the
// backup is right and the change waited, or the backup says so; and no other session waits for long.
func TestHeld(t *testing.T) {
	for _, flavour := range []string{"mariadb", "mysql-5.7"} { // MySQL 9.7 is in TestGuard, which has a server
		t.Run(flavour, func(t *testing.T) {
			node := lend(t, flavour)
			holds(t, target(t, node.DSN), target(t, node.DSN))
			if flavour == "mysql-5.7" {
				emptied(t, node.DSN)
			}
		})
	}
}

// holds takes backups with an account, and alters tables with root.
func holds(t *testing.T, to, root mysql.Target) {
	s := stream(t, root)
	exec(t, s, "DROP DATABASE IF EXISTS d", "CREATE DATABASE d", "CREATE TABLE d.n (n INT PRIMARY KEY)", "INSERT INTO d.n SELECT a.d + b.d * 10 + c.d * 100 FROM "+digits+" a, "+digits+" b, "+digits+" c",
		"CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(1000))", "INSERT INTO d.t (v) SELECT REPEAT('v', 900) FROM d.n, (SELECT n FROM d.n LIMIT 10) x",
		"CREATE TABLE d.u (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(1000))", "INSERT INTO d.u SELECT * FROM d.t LIMIT 5000",
		"CREATE TABLE d.w (id INT PRIMARY KEY, v INT)", "INSERT INTO d.w SELECT n, n FROM d.n", "ANALYZE TABLE d.n, d.t, d.u, d.w")
	h := held{to: to, s: s, root: root}
	t.Run("changes wait", h.changesWait)
	t.Run("others wait", h.othersWait)
	t.Run("others wait for what is read", h.othersWaitForReaders)
	t.Run("the session that holds is lost", h.reserveLost)
}

type held struct {
	to, root mysql.Target
	s        *mysql.Stream
}

// step is a statement of another session, begun when work passes for the nth time.
type step struct {
	at        int
	statement string
}

// backup runs a backup that is held up when it has passed the gate until times, until free is done; meanwhile other sessions run
// statements.
func (h held) backup(t *testing.T, o dump.Options, free func(waits time.Duration) bool, steps ...step) (*repo.Repo, dump.Result, []time.Duration, error) {
	t.Helper()
	var wg sync.WaitGroup
	took := make([]time.Duration, len(steps))
	n := 0
	var mu sync.Mutex
	o.Target, o.Name, o.Threads, o.ChunkAim = h.to, "s", 1, 64<<10
	o.Gate = gateFunc(func(ctx context.Context) error {
		mu.Lock()
		n++
		n := n
		mu.Unlock()
		began := time.Now()
		waits := false
		for i, p := range steps {
			if p.at != n {
				continue
			}
			waits = true
			st := stream(t, h.root)
			ended := make(chan struct{})
			wg.Add(1)
			go func() {
				defer wg.Done()
				defer close(ended)
				began := time.Now()
				if err := st.Exec(context.WithoutCancel(ctx), p.statement); err != nil {
					t.Errorf("%s: %v", p.statement, err)
				}
				took[i] = time.Since(began)
			}()
			h.until(ctx, t, p.statement, ended)
		}
		for waits && ctx.Err() == nil && !free(time.Since(began)) {
			time.Sleep(20 * time.Millisecond)
		}
		return context.Cause(ctx)
	})
	r := place(t)
	result, err := dump.Run(t.Context(), r, o)
	wg.Wait()
	return r, result, took, err
}

// until waits until a statement waits for a lock, or has ended.
func (h held) until(ctx context.Context, t *testing.T, statement string, ended chan struct{}) {
	t.Helper()
	for deadline := time.Now().Add(4 * time.Minute); ctx.Err() == nil && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		select {
		case <-ended:
			return
		default:
		}
		rows, err := h.s.QueryMaps(t.Context(), "SELECT STATE AS s FROM information_schema.PROCESSLIST WHERE INFO = "+mysql.Literal(statement))
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) > 0 && strings.HasPrefix(rows[0]["s"], "Waiting for") {
			return
		}
	}
	if ctx.Err() == nil {
		t.Errorf("%s does not wait, want ctx.Err() not nil", statement)
	}
}

type gateFunc func(ctx context.Context) error

func (g gateFunc) Pass(ctx context.Context, _ int64) error { return g(ctx) }

// changesWait alters a table that is read last: it is read next, and the change goes on long before the backup ends.
func (h held) changesWait(t *testing.T) {
	exec(t, h.s, "SET GLOBAL lock_wait_timeout = 600")
	var events []snapshot.GuardEvent
	o := dump.Options{Snapshot: snapshot.Options{Guard: snapshot.Guard{Said: func(e snapshot.GuardEvent) { events = append(events, e) }}}}
	wait := func(d time.Duration) bool { return d > 600*time.Millisecond } // until it was seen
	r, result, took, err := h.backup(t, o, wait, step{3, "ALTER TABLE d.w ADD COLUMN c INT NOT NULL DEFAULT 7"})
	if err != nil {
		t.Fatalf("%v, %+v", err, events)
	}
	if len(events) > 0 {
		t.Errorf("the guardian said: %+v, want none", events)
	}
	t.Logf("the change took %s, the backup %.2f s", took[0], result.Seconds)
	m, err := r.Manifest(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	err = m.Each(func(l repo.Line) error {
		if l.Table != nil && l.Table.Name == "w" && (l.Table.Rows != 1000 || len(l.Table.Columns) != 2) {
			t.Errorf("table w has %d rows of %d columns", l.Table.Rows, len(l.Table.Columns))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	exec(t, h.s, "ALTER TABLE d.w DROP COLUMN c")
}

// othersWait lets a session wait for the change of a table that is held: it waits until the table has been read.
func (h held) othersWait(t *testing.T) {
	wait := func(d time.Duration) bool { return d > 600*time.Millisecond }
	o := dump.Options{Snapshot: snapshot.Options{LockWait: 4 * time.Minute}} // a machine may be slow
	_, _, took, err := h.backup(t, o, wait, step{3, "ALTER TABLE d.w ADD COLUMN c INT NOT NULL DEFAULT 7"}, step{3, "INSERT INTO d.w (id, v) VALUES (5000, 1)"})
	if err != nil {
		t.Error(err)
	}
	t.Logf("the change took %s, who queued behind it %s", took[0], took[1])
	exec(t, h.s, "ALTER TABLE d.w DROP COLUMN c", "DELETE FROM d.w WHERE id = 5000")
}

// othersWaitForReaders lets a session wait for the change of the table that is being read: the backup ends itself.
func (h held) othersWaitForReaders(t *testing.T) {
	o := dump.Options{Snapshot: snapshot.Options{LockWait: time.Second}}
	never := func(time.Duration) bool { return false }
	_, _, took, err := h.backup(t, o, never, step{3, "ALTER TABLE d.t ADD COLUMN c INT NOT NULL DEFAULT 7"}, step{3, "INSERT INTO d.t (v) VALUES ('x')"})
	if !errors.Is(err, snapshot.ErrStalls) || !strings.Contains(err.Error(), "`d`.`t`") {
		t.Errorf("the backup is whole, or: %v; want snapshot.ErrStalls, \"`d`.`t`\" in the error", err)
	}
	t.Logf("the change took %s, who queued behind it %s", took[0], took[1])
	exec(t, h.s, "ALTER TABLE d.t DROP COLUMN c")
}

// reserveLost ends the session that holds tables. When somebody has a table for himself for a while it is waited for; when he
// alters one that has not been read, the backup says so, and what came before.
func (h held) reserveLost(t *testing.T) {
	o := dump.Options{Target: h.to, Name: "s", Threads: 1, ChunkAim: 64 << 10, Snapshot: snapshot.Options{LockWait: 4 * time.Minute}}
	other := stream(t, h.root)
	then := make(chan error, 1)
	n := 0
	o.Gate = gateFunc(func(context.Context) error {
		if n++; n != 3 {
			return nil
		}
		ids := h.sessions(t, other)
		if ids == nil {
			return errors.New("no sessions")
		}
		exec(t, h.s, "KILL CONNECTION "+ids[2])
		exec(t, other, "LOCK TABLES d.w WRITE")
		go func() {
			h.waited(t, other)
			then <- other.Exec(context.WithoutCancel(t.Context()), "UNLOCK TABLES")
		}()
		return nil
	})
	result, err := dump.Run(t.Context(), place(t), o)
	if n < 3 {
		t.Fatalf("%d times the gate was passed: %v, want at least 3", n, err)
	}
	if err != nil {
		t.Fatalf("while somebody locks a table: %v", err)
	}
	if err := <-then; err != nil {
		t.Error(err)
	}
	if !slices.ContainsFunc(result.Header.Notes, func(n string) bool { return strings.Contains(n, "the session that kept tables from being altered") }) {
		t.Errorf("it is not said: %v", result.Header.Notes)
	}
	n = 0
	o.Gate = gateFunc(func(context.Context) error {
		if n++; n == 3 {
			ids := h.sessions(t, other)
			if ids == nil {
				return errors.New("no sessions")
			}
			exec(t, h.s, "KILL CONNECTION "+ids[2], "TRUNCATE TABLE d.w")
		}
		return nil
	})
	_, err = dump.Run(t.Context(), place(t), o)
	if !errors.Is(err, dump.ErrChanged) || !strings.Contains(err.Error(), "`d`.`w`") || strings.Contains(err.Error(), "closed network") {
		t.Errorf("a table was emptied: %v; want dump.ErrChanged, \"`d`.`w`\" in the error, no \"closed network\" in the error", err)
	}
}

// sessions returns those of a backup in the order in which they were opened, all after another one: the first two read
// definitions and rows, the third holds tables, the fourth checks who waits.
func (h held) sessions(t *testing.T, behind *mysql.Stream) (ids []string) {
	t.Helper()
	for deadline := time.Now().Add(4 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		rows, err := h.s.QueryMaps(t.Context(), fmt.Sprintf("SELECT ID AS i FROM information_schema.PROCESSLIST WHERE ID > %d ORDER BY ID", behind.ID()))
		if err != nil {
			t.Error(err)
			return nil
		}
		if len(rows) == 4 { // a fifth that asked for the server's version is on its way out
			for _, r := range rows {
				ids = append(ids, r["i"])
			}
			return ids
		}
	}
	t.Error("the backup has not four sessions")
	return nil
}

// waited returns when a session of the backup has been refused a lock.
func (h held) waited(t *testing.T, behind *mysql.Stream) {
	for deadline := time.Now().Add(4 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		rows, err := h.s.QueryMaps(t.Context(), fmt.Sprintf("SELECT ID AS i FROM information_schema.PROCESSLIST WHERE ID > %d AND STATE = 'Waiting for table metadata lock'", behind.ID()))
		if err != nil {
			t.Error(err)
			return
		}
		if len(rows) > 0 {
			time.Sleep(1500 * time.Millisecond) // it waits for one second
			return
		}
	}
	t.Error("nobody waits for the table")
}

// emptied truncates a table that nothing holds, because the account needs PROCESS, on a server where that leaves no trace: the
// snapshot then sees no row of it.
func emptied(t *testing.T, dsn string) {
	s := stream(t, target(t, dsn))
	exec(t, s, "CREATE USER blind@localhost", "GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, RELOAD, LOCK TABLES, REPLICATION CLIENT ON *.* TO blind@localhost")
	o := dump.Options{Target: target(t, strings.Replace(dsn, "root", "blind", 1)), Name: "s", Threads: 1, ChunkAim: 64 << 10, Gate: &gate{at: 3, do: func() { exec(t, s, "TRUNCATE TABLE d.u") }}}
	if _, err := dump.Run(t.Context(), place(t), o); !errors.Is(err, dump.ErrChanged) {
		t.Errorf("a table was emptied: %v, want dump.ErrChanged", err)
	}
}
