package mirror

import (
	"database/sql"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// address is one that servers share in turn, as with a proxy or a name that moves.
type address struct {
	ln net.Listener

	mu    sync.Mutex
	next  []string // sockets of servers; connections go to them in turn
	count int
	conns []net.Conn
}

func newAddress(t *testing.T, sockets ...string) *address {
	t.Helper()
	return addressAt(t, "127.0.0.1", sockets...)
}

func addressAt(t *testing.T, host string, sockets ...string) *address {
	t.Helper()
	ln, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	a := &address{ln: ln, next: sockets}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return // the listener was closed
			}
			wg.Go(func() { a.pass(c) })
		}
	})
	t.Cleanup(func() { ln.Close(); a.move(); wg.Wait() })
	return a
}

// move points the address at other servers, and cuts existing connections.
func (a *address) move(sockets ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = sockets
	for _, c := range a.conns {
		c.Close()
	}
	a.conns = nil
}

// came is how many connections came.
func (a *address) came() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count
}

func (a *address) pass(c net.Conn) {
	defer c.Close()
	a.mu.Lock()
	if len(a.next) == 0 {
		a.mu.Unlock()
		return
	}
	s, err := net.Dial("unix", a.next[a.count%len(a.next)])
	if err != nil {
		a.mu.Unlock()
		return
	}
	a.count++
	a.conns = append(a.conns, c, s)
	a.mu.Unlock()
	defer s.Close()
	done := make(chan struct{})
	go func() { defer close(done); io.Copy(s, c); s.Close() }() // ends when one of the two is closed
	io.Copy(c, s)
	c.Close()
	<-done
}

// TestFailover moves an address from a primary to its replica and back, while a mirror follows it. Both have logs of the same names, and
// each keeps its own series, with its own bytes. In between every connection goes to the other of the two: nothing is mixed.
func TestFailover(t *testing.T) {
	for _, spec := range []string{"mariadb"} { // MySQL does as well; its servers take longer to start
		t.Run(spec, func(t *testing.T) {
			old, young := pair(t, spec)
			sql1, sql2 := open(t, old), open(t, young)
			exec1(t, sql1, "CREATE TABLE test.t (id INT PRIMARY KEY, v TEXT)")
			load(t, sql1, 0, 40)
			caughtUp(t, sql1, sql2)

			at := newAddress(t, old.Socket)
			tg, err := mysql.ParseTarget("root@tcp(" + at.ln.Addr().String() + ")/") // to the servers it comes over the socket
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			stop := follow(t, Options{Target: tg, Dir: dir})
			mirrored(t, dir, old)
			// The failover.
			at.move(young.Socket)
			load(t, sql2, 100, 140)
			mirrored(t, dir, young)
			// There is no telling which is which, and both are written to. The mirror identifies the server over one connection; the next
			// but one, which compares the newest event, goes to the other server.
			load(t, sql1, 200, 240)
			load(t, sql2, 400, 440)
			at.move(old.Socket, young.Socket, young.Socket, old.Socket)
			came := at.came()
			await.Until(t, func() bool { return at.came() >= came+6 }, "tried and refused twice")
			// And back.
			at.move(old.Socket)
			mirrored(t, dir, old)
			at.move(young.Socket)
			mirrored(t, dir, young)
			stop()
			apart(t, dir, old, young)
		})
	}
}

// pair starts a primary and its replica.
func pair(t *testing.T, spec string) (primary, replica *sandbox.Node) {
	t.Helper()
	s := sandboxtest.Sandbox(t, sandbox.Options{Name: "f", Servers: []string{spec}, Topology: sandbox.TopologyReplication, Replicas: 1,
		Settings: []string{"max_binlog_size=64K", "sync_binlog=0", "innodb_flush_log_at_trx_commit=2", "read_only=OFF"}})
	return s.Nodes[0], s.Nodes[1]
}

// caughtUp waits until a replica has the table's rows, and ends the replication: two lives from here on.
func caughtUp(t *testing.T, primary, replica *sql.DB) {
	t.Helper()
	rows := func(db *sql.DB) (n int) {
		err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM test.t").Scan(&n)
		if err != nil {
			n = -1 // the table has not come yet
		}
		return n
	}
	await.Until(t, func() bool { return rows(replica) == rows(primary) }, "replicated")
	_, err := replica.ExecContext(t.Context(), "STOP REPLICA")
	_, err2 := replica.ExecContext(t.Context(), "SET GLOBAL read_only = OFF")
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
}

// apart compares each server's series with its files.
func apart(t *testing.T, dir string, nodes ...*sandbox.Node) {
	t.Helper()
	all, err := List(t.Context(), folder(dir), dir)
	if err != nil || len(all) != len(nodes) {
		t.Fatalf("%d series of %d servers: %v", len(all), len(nodes), err)
	}
	for _, n := range nodes {
		c, err := mysql.Connect(t.Context(), target(t, n), nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		found := false
		for _, s := range all {
			if s.Of(c.Server.ID) {
				found = true
				t.Logf("%s: %d logs", s.Key, sameSeries(t, s, folder(dir), dir, serverLogs(t, n)))
			}
		}
		if !found {
			t.Errorf("no series of %s", c.Server.ID)
		}
	}
}
