package scenario_test

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestRouteFollowsFailover: the primary of a group is killed while clients write through risso route. risso serve fails it over, the router follows, clients that
// come meanwhile are held and none is refused, and a later write is on the new primary.
func TestRouteFollowsFailover(t *testing.T) {
	t.Parallel()
	box := sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{"mariadb"}, Topology: sandbox.TopologyReplication, Replicas: 2})
	primary := box.Primary()
	for _, q := range []string{"CREATE USER ops@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON *.* TO ops@'%' WITH GRANT OPTION", "CREATE USER app@'%' IDENTIFIED BY ''", "GRANT SELECT, INSERT ON *.* TO app@'%'",
		"CREATE DATABASE shop", "CREATE TABLE shop.t (id INT AUTO_INCREMENT PRIMARY KEY, port INT)"} {
		if _, err := primary.Query(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	data := tempDir(t)
	create := []string{"group", "create", "shop", "--data", data}
	for i, n := range box.Nodes {
		await(t, "the account and the table on "+n.Name, func() bool { _, err := n.Query(t.Context(), "SELECT id FROM shop.t"); return err == nil })
		create = append(create, "--dsn", fmt.Sprintf("db%d=ops:secret@tcp(127.0.0.1:%d)/", i+1, n.Port))
	}
	if r := launch(t, nil, create...); r.code(t) != 0 {
		t.Fatalf("group create: %s", r.err)
	}
	controller := serve(t, data, "--no-host", "--failover", "auto")
	router := launch(t, nil, "route", "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0,role=replica,max-lag=50s", "--group", "shop", "--url", controller.base, "--hold", "4m", "--drain", "1s")
	form, ofReads := regexp.MustCompile(`ready on (\S+) for the primary of group shop`), regexp.MustCompile(`ready on (\S+) for the replicas of group shop`)
	var address string
	var reads [2]*sql.Conn
	var readsAt [2]int
	await(t, "the router", func() bool {
		m, r := form.FindStringSubmatch(router.err.String()), ofReads.FindStringSubmatch(router.err.String())
		if m == nil || r == nil || !strings.Contains(router.err.String(), "the primary is db1") {
			return false
		}
		address = m[1]
		return readers(t, r[1], primary.Port, &reads, &readsAt)
	})
	var written, on atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { // a connection for each write, as an application without a pool
			for ctx.Err() == nil {
				port, began, err := writeOnce(ctx, address)
				switch {
				case err == nil:
					written.Add(1)
					on.Store(port)
				case !began && ctx.Err() == nil:
					t.Errorf("a new client was refused: %v", err)
					return
				}
			}
		})
	}
	more := func(what string, is func() bool) {
		t.Helper()
		from := written.Load()
		await(t, what, func() bool { return written.Load() > from+20 && is() })
	}
	more("writes to the first primary", func() bool { return on.Load() == int64(primary.Port) })
	if err := primary.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	more("writes to another primary", func() bool { return on.Load() != int64(primary.Port) })
	stop()
	all.Wait()
	for i, c := range reads { // who reads stays, though a replica does not say how far it is behind a primary that is dead
		var port int
		if int64(readsAt[i]) == on.Load() {
			continue
		}
		if err := c.QueryRowContext(t.Context(), "SELECT @@port").Scan(&port); err != nil || port != readsAt[i] {
			t.Errorf("a session that reads on port %d: got port %d, %v; want it to outlive the failover", readsAt[i], port, err)
		}
	}
	router.stop(t, syscall.SIGTERM)
}

// readers opens two sessions for reads by way of a router, and reports whether they are on two replicas.
func readers(t *testing.T, address string, primary int, conns *[2]*sql.Conn, ports *[2]int) bool {
	t.Helper()
	db, err := sql.Open("mysql", "app@tcp("+address+")/shop?timeout=4m&readTimeout=4m")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for i := range conns {
		if conns[i], err = db.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := conns[i].QueryRowContext(t.Context(), "SELECT @@port").Scan(&ports[i]); err != nil {
			t.Fatal(err)
		}
	}
	if ports[0] == ports[1] || ports[0] == primary || ports[1] == primary {
		db.Close()
		return false
	}
	return true
}

// writeOnce connects, writes and disconnects; began says that it was connected.
func writeOnce(ctx context.Context, address string) (port int64, began bool, err error) {
	db, err := sql.Open("mysql", "app@tcp("+address+")/shop?timeout=4m&readTimeout=4m")
	if err != nil {
		return 0, false, err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	c, err := db.Conn(ctx)
	if err != nil {
		return 0, strings.Contains(err.Error(), "invalid connection") || strings.Contains(err.Error(), "bad connection"), err // greeted, and cut in the login
	}
	defer c.Close()
	if err := c.QueryRowContext(ctx, "SELECT @@port").Scan(&port); err != nil {
		return 0, true, err
	}
	_, err = c.ExecContext(ctx, "INSERT INTO t (port) VALUES (@@port)")
	return port, true, err
}
