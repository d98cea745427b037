package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/chaos/ledger"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestDamaged: a MariaDB that does not start any more, as one does not whose disk was full, is filled again from the primary; the words of it are its own.
func TestDamaged(t *testing.T) {
	t.Parallel()
	b := boxed(t, sandbox.Options{Servers: []string{"mariadb"}, Topology: sandbox.TopologyReplication, Replicas: 1, SemiSync: true, Network: true})
	old, next := b.Sandbox.Nodes[0], b.Sandbox.Nodes[1]
	b.Where = func(context.Context) (ledger.Server, error) { return ledger.Server{Name: next.Name}, nil }
	root, replica := sandboxtest.Connect(t, old), sandboxtest.Connect(t, next)
	asRoot(t, replica, "STOP SLAVE")
	writer, done := sandboxtest.Connect(t, old), make(chan error, 1)
	go func() {
		done <- writer.Exec(context.WithoutCancel(t.Context()), "INSERT INTO risso_chaos.ledger (run, writer, number, server) VALUES (1, 1, 1, 'x')")
	}()
	await.Until(t, func() bool { return count(t, root, "STATE LIKE '%semi-sync ACK%'") > 0 }, "a commit that waits for a replica")
	asRoot(t, replica, "RESET SLAVE ALL", "SET GLOBAL read_only = OFF", "CREATE TABLE test.other (id INT PRIMARY KEY)", "FLUSH BINARY LOGS")
	logs, err := replica.Maps(t.Context(), "SHOW BINARY LOGS")
	if err != nil {
		t.Fatal(err)
	}
	asRoot(t, replica, "PURGE BINARY LOGS TO '"+logs[len(logs)-1]["Log_name"]+"'") // as one that was rebuilt has none of before
	if err := old.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-old.Ended()
	if err := <-done; err == nil {
		t.Error("a commit was acknowledged that no replica has")
	}
	closeLog(t, old)
	damage, err := b.Heal(t.Context(), Fault{Kind: Kill}, old.Name)
	if err != nil || !strings.Contains(damage, "did not start") {
		t.Fatalf("healed: %q, %v", damage, err)
	}
	again := sandboxtest.Connect(t, old)
	await.Until(t, func() bool {
		text, err := again.Text(t.Context(), "SELECT CONCAT((SELECT COUNT(*) FROM risso_chaos.ledger), ' ', (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'test' AND table_name = 'other'))")
		return err == nil && text == "0 1"
	}, "what the new primary has, and nothing else")
	if damage, err := b.Heal(t.Context(), Fault{Kind: Kill}, old.Name); err != nil || damage != "" {
		t.Errorf("healed twice: %q, %v", damage, err)
	}
}

// TestLogAgain: a MariaDB that stopped to write its binary log while its disk was full does so again once the fault is over, and keeps what it has.
func TestLogAgain(t *testing.T) {
	t.Parallel()
	b := boxed(t, sandbox.Options{Servers: []string{"mariadb"}, Network: true, Disk: 500 << 20})
	n := b.Sandbox.Primary()
	logs := func() string {
		c := sandboxtest.Connect(t, n)
		defer c.Close()
		text, err := c.Text(t.Context(), "SELECT COUNT(*) FROM test.unlogged")
		if err != nil {
			t.Fatal(err)
		}
		status, err := c.Maps(t.Context(), "SHOW MASTER STATUS")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(text, " ", len(status))
	}
	c := sandboxtest.Connect(t, n)
	asRoot(t, c, "CREATE DATABASE IF NOT EXISTS test", "CREATE TABLE test.unlogged (n INT)")
	mend := sandboxtest.CloseLog(t, n)
	asRoot(t, c, "INSERT INTO test.unlogged VALUES (1)")
	if got := logs(); got != "1 0" {
		t.Fatalf("got %q, want a server that takes writes and has no binary log", got)
	}
	mend()
	if damage, err := b.Heal(t.Context(), Fault{Kind: DiskFull}, n.Name); err != nil || damage != "" {
		t.Fatalf("healed: %q, %v", damage, err)
	}
	if got := logs(); got != "1 1" {
		t.Errorf("got %q, want that it logs again, with the row", got)
	}
}

// closeLog lets the last binary log of a server look as if it had been closed: the server does so when it cannot write it to its end.
func closeLog(t *testing.T, n *sandbox.Node) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(n.Datadir, "*bin*.0*"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("binary logs: %q, %v", logs, err)
	}
	f, err := os.OpenFile(logs[len(logs)-1], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const flags = 4 + 17 // of the first event: LOG_EVENT_BINLOG_IN_USE_F is the lowest
	if _, err := f.WriteAt([]byte{0}, flags); err != nil {
		t.Fatal(err)
	}
}

// TestFullThenSlow: commits that wait for room are told from those that wait for a slow disk, also soon after it was full.
func TestFullThenSlow(t *testing.T) {
	t.Parallel()
	b := boxed(t, sandbox.Options{Servers: []string{"mysql-9.7"}, Network: true, Disk: 500 << 20})
	n := b.Sandbox.Primary()
	for !fills(t, n) {
		restarted(t, n)
	}
	restarted(t, n)
	if err := n.Slow(1); err != nil {
		t.Fatal(err)
	}
	stop := writers(t, n)
	defer stop()
	c := sandboxtest.Connect(t, n)
	await.Until(t, func() bool { return count(t, c, "STATE = 'waiting for handler commit' AND TIME >= 4") > 0 }, "commits that wait for long")
	for range 20 {
		if waiting, err := mysql.CommitsWaitForRoom(t.Context(), c); err != nil || waiting > 0 {
			t.Fatalf("%d commits are said to wait for room (%v), and the disk is only slow", waiting, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err := n.Fast(); err != nil {
		t.Fatal(err)
	}
}

// writers write until the result is called, or they cannot.
func writers(t *testing.T, n *sandbox.Node) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			c, err := mysql.Connect(ctx, sandboxtest.Target(t, n), nil)
			if err != nil {
				return
			}
			defer c.Close()
			for ctx.Err() == nil && c.Exec(ctx, "UPDATE test.small SET n = n + 1") == nil {
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// fills fills the disk of a server that is written to, and reports whether commits wait for room; it may also end, or let them fail.
func fills(t *testing.T, n *sandbox.Node) bool {
	t.Helper()
	c := sandboxtest.Connect(t, n)
	asRoot(t, c, "CREATE DATABASE IF NOT EXISTS test", "CREATE TABLE IF NOT EXISTS test.small (n INT)", "INSERT INTO test.small VALUES (1)")
	if err := n.Fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop := writers(t, n)
	defer stop()
	for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(100 * time.Millisecond) {
		switch waiting, err := mysql.CommitsWaitForRoom(t.Context(), c); {
		case err != nil:
			t.Log(err)
			return false
		case waiting > 0:
			return true
		}
	}
	return false
}

// restarted kills a server whose disk is full, makes room, and starts it.
func restarted(t *testing.T, n *sandbox.Node) {
	t.Helper()
	if err := n.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-n.Ended()
	if err := n.Empty(); err != nil {
		t.Fatal(err)
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func asRoot(t *testing.T, c *mysql.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// count is how many sessions are in a state.
func count(t *testing.T, c *mysql.Conn, where string) int {
	t.Helper()
	text, err := c.Text(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE ID <> CONNECTION_ID() AND "+where)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, d := range text {
		n = 10*n + int(d-'0')
	}
	return n
}
