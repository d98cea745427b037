package read_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestGlobalHolders: on a MariaDB without the plugin metadata_lock_info, which does not say who holds a lock of the whole server, the session that does is the first
// of those that may: by when it became idle, and surely by its statement where that was seen. With the plugin it is named.
func TestGlobalHolders(t *testing.T) {
	t.Parallel()
	n := sandboxtest.Up(t, "mariadb")
	db, err := n.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := t.Context()
	session := func(statements ...string) (c *sql.Conn, id int64) {
		t.Helper()
		c, err := db.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
			t.Fatal(err)
		}
		for _, s := range statements {
			if _, err := c.ExecContext(ctx, s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
		return c, id
	}
	session("CREATE DATABASE d", "CREATE TABLE d.t (a INT)", "INSERT INTO d.t VALUES (1)")
	for range 5 { // an idle pool
		session("DO 1")
	}
	time.Sleep(3 * time.Second) // its idle time must differ from that of the holder
	target, err := mysql.ParseTarget(n.DSN)
	if err != nil {
		t.Fatal(err)
	}
	own, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	reader := read.NewReader(new(mysql.Traffic))
	reader.Connected()
	waiting := func(f func() []read.LockWait) (list []read.LockWait) {
		t.Helper()
		await.Until(t, func() bool { list = f(); return len(list) > 0 }, "somebody waits")
		return list
	}
	ask := func() []read.LockWait {
		list, _, err := read.LockWaits(ctx, own, 0)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	write := func() (end func()) {
		c, _ := session()
		wctx, cancel := context.WithTimeout(ctx, time.Minute)
		done := make(chan error, 1)
		go func() { _, err := c.ExecContext(wctx, "UPDATE d.t SET a = a + 1"); done <- err }()
		return func() {
			defer cancel()
			if err := <-done; err != nil {
				t.Errorf("the write that waited: %v", err)
			}
		}
	}

	holder, id := session("FLUSH TABLES WITH READ LOCK")
	end := write()
	list := waiting(ask)
	if w := list[0]; !w.Maybe || w.Kind != read.LockGlobal || w.Blocker.ID != id || !strings.Contains(w.Sign, "became idle when the first") || len(list) > 3 {
		t.Errorf("got %+v, want connection %d first of 3 at most, because of when it became idle", list, id)
	}
	unlock(t, holder)
	end()

	// A lock that is waited for is seen: a statement of another session is in the way at first.
	busy, _ := session()
	began := make(chan error, 1)
	go func() { _, err := busy.ExecContext(ctx, "INSERT INTO d.t SELECT SLEEP(4)"); began <- err }()
	holder, id = session()
	locked := make(chan error, 1)
	await.Until(t, func() bool {
		var n int
		err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'").Scan(&n)
		return err == nil && n > 0
	}, "the long statement runs")
	go func() { _, err := holder.ExecContext(ctx, "FLUSH TABLES WITH READ LOCK"); locked <- err }()
	for tick, held := time.Now().Unix(), false; !held; tick++ {
		if err := reader.Read(ctx, own, tick); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-locked:
			if held = true; err != nil {
				t.Fatal(err)
			}
		case <-time.After(300 * time.Millisecond):
		}
	}
	if err := <-began; err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second) // so that the time at which it became idle says nothing
	end = write()
	tick := time.Now().Unix() + 100
	list = waiting(func() []read.LockWait {
		if err := reader.Read(ctx, own, tick); err != nil {
			t.Fatal(err)
		}
		tick++
		return reader.Locks
	})
	if w := list[0]; !w.Maybe || w.Blocker.ID != id || !strings.HasPrefix(w.Sign, "it ran FLUSH TABLES WITH READ LOCK at ") || !strings.HasSuffix(w.Sign, ", and nothing since") {
		t.Errorf("got %+v, want connection %d first, because of what it ran", list, id)
	}
	unlock(t, holder)
	end()

	if _, err := db.ExecContext(ctx, "INSTALL SONAME 'metadata_lock_info'"); err != nil {
		t.Fatal(err)
	}
	holder, id = session("FLUSH TABLES WITH READ LOCK")
	end = write()
	if list = waiting(ask); list[0].Maybe || list[0].Blocker.ID != id {
		t.Errorf("got %+v, want connection %d named for certain by the plugin", list, id)
	}
	unlock(t, holder)
	end()
}

func unlock(t *testing.T, c *sql.Conn) {
	t.Helper()
	if _, err := c.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
}
