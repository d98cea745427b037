package dump_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestHeld alters tables while a backup runs, where the server does not keep schema changes waiting by itself: either the
// backup is right and the change waited, or the backup says so; and nobody else waits for long.
func TestHeld(t *testing.T) {
	for _, flavour := range []string{"mariadb", "mysql-5.7", "mysql-9.7"} {
		t.Run(flavour, func(t *testing.T) {
			node := sandboxtest.Up(t, flavour, "log_bin=b")
			to := target(t, node.DSN)
			s := stream(t, to)
			exec(t, s, "CREATE DATABASE d", "CREATE TABLE d.n (n INT PRIMARY KEY)", "INSERT INTO d.n SELECT a.d + b.d * 10 + c.d * 100 FROM "+digits+" a, "+digits+" b, "+digits+" c",
				"CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(1000))", "INSERT INTO d.t (v) SELECT REPEAT('v', 900) FROM d.n, (SELECT n FROM d.n LIMIT 10) x",
				"CREATE TABLE d.u (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(1000))", "INSERT INTO d.u SELECT * FROM d.t LIMIT 5000",
				"CREATE TABLE d.w (id INT PRIMARY KEY, v INT)", "INSERT INTO d.w SELECT n, n FROM d.n", "ANALYZE TABLE d.n, d.t, d.u, d.w")
			if flavour == "mysql-9.7" { // LOCK INSTANCE FOR BACKUP needs BACKUP_ADMIN
				exec(t, s, "CREATE USER less@localhost", "GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, PROCESS, RELOAD, LOCK TABLES, REPLICATION CLIENT, SHOW_ROUTINE ON *.* TO less@localhost")
				to = target(t, strings.Replace(node.DSN, "root", "less", 1))
			}
			h := held{to: to, s: s, root: target(t, node.DSN)}
			t.Run("changes wait", h.changesWait)
			t.Run("others wait", h.othersWait)
			t.Run("others wait for what is read", h.othersWaitForReaders)
		})
	}
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

// backup runs one that is held up when it has passed the gate until times, until free is done; meanwhile other sessions run
// statements.
func (h held) backup(t *testing.T, o dump.Options, free func(waits time.Duration) bool, steps ...step) (*repo.Repo, dump.Result, error, []time.Duration) {
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
			wg.Add(1)
			go func() {
				defer wg.Done()
				began := time.Now()
				if err := st.Exec(context.WithoutCancel(ctx), p.statement); err != nil {
					t.Errorf("%s: %v", p.statement, err)
				}
				took[i] = time.Since(began)
			}()
			h.until(ctx, t, p.statement)
		}
		for waits && ctx.Err() == nil && !free(time.Since(began)) {
			time.Sleep(20 * time.Millisecond)
		}
		return context.Cause(ctx)
	})
	r := place(t)
	result, err := dump.Run(t.Context(), r, o)
	wg.Wait()
	return r, result, err, took
}

// until waits until a statement waits for a lock, or has come to its end.
func (h held) until(ctx context.Context, t *testing.T, statement string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ctx.Err() == nil && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		rows, err := h.s.QueryMaps(t.Context(), "SELECT STATE AS s FROM information_schema.PROCESSLIST WHERE INFO = "+mysql.Literal(statement))
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) > 0 && strings.HasPrefix(rows[0]["s"], "Waiting for") {
			return
		}
	}
	t.Errorf("%s does not wait", statement)
}

type gateFunc func(ctx context.Context) error

func (g gateFunc) Pass(ctx context.Context, _ int64) error { return g(ctx) }

// changesWait alters a table that is read last: it is read next, and the change goes on long before the backup ends.
func (h held) changesWait(t *testing.T) {
	exec(t, h.s, "SET GLOBAL lock_wait_timeout = 600")
	var events []mysql.GuardEvent
	o := dump.Options{Snapshot: mysql.SnapshotOptions{Guard: mysql.Guard{Said: func(e mysql.GuardEvent) { events = append(events, e) }}}}
	wait := func(d time.Duration) bool { return d > 600*time.Millisecond } // until it was seen
	r, result, err, took := h.backup(t, o, wait, step{3, "ALTER TABLE d.w ADD COLUMN c INT NOT NULL DEFAULT 7"})
	if err != nil {
		t.Fatalf("%v, %+v", err, events)
	}
	if len(events) > 0 {
		t.Errorf("the guardian said: %+v", events)
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

// othersWait lets somebody queue behind the change of a table that is held: that is over as soon as the table has been read.
func (h held) othersWait(t *testing.T) {
	wait := func(d time.Duration) bool { return d > 600*time.Millisecond }
	_, _, err, took := h.backup(t, dump.Options{}, wait, step{3, "ALTER TABLE d.w ADD COLUMN c INT NOT NULL DEFAULT 7"}, step{3, "INSERT INTO d.w (id, v) VALUES (5000, 1)"})
	if err != nil {
		t.Error(err)
	}
	t.Logf("the change took %s, who queued behind it %s", took[0], took[1])
	exec(t, h.s, "ALTER TABLE d.w DROP COLUMN c", "DELETE FROM d.w WHERE id = 5000")
}

// othersWaitForReaders lets somebody queue behind the change of the table that is being read: the backup ends itself.
func (h held) othersWaitForReaders(t *testing.T) {
	o := dump.Options{Snapshot: mysql.SnapshotOptions{LockWait: time.Second}}
	never := func(time.Duration) bool { return false }
	_, _, err, took := h.backup(t, o, never, step{3, "ALTER TABLE d.t ADD COLUMN c INT NOT NULL DEFAULT 7"}, step{3, "INSERT INTO d.t (v) VALUES ('x')"})
	if !errors.Is(err, mysql.ErrStalls) || !strings.Contains(err.Error(), "`d`.`t`") {
		t.Errorf("the backup is whole, or: %v", err)
	}
	t.Logf("the change took %s, who queued behind it %s", took[0], took[1])
	exec(t, h.s, "ALTER TABLE d.t DROP COLUMN c")
}
