package cli

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// chain is a primary, a replica of it, and a replica of that one.
type chain struct {
	t     *testing.T
	dbs   [3]*sql.DB
	dsns  [3]string // over TCP
	state string
	row   int
}

func newChain(t *testing.T, spec string) *chain {
	t.Helper()
	box := sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{spec}, Topology: sandbox.TopologyReplication, Replicas: 2})
	password, err := box.Password()
	if err != nil {
		t.Fatal(err)
	}
	c := &chain{t: t, state: t.TempDir()}
	for i, n := range box.Nodes {
		c.dbs[i], c.dsns[i] = openNode(t, n), fmt.Sprintf("risso:%s@tcp(127.0.0.1:%d)/", password, n.Port)
	}
	c.run(0, "CREATE DATABASE shop", "CREATE TABLE shop.o (id INT PRIMARY KEY, v INT)", "INSERT INTO shop.o VALUES (1, 1), (2, 2), (3, 3)")
	c.arrives()
	c.risso(fault.OK, "replica", "move", "n2", "--below", "n1", "--yes", "--state", c.state, "--dsn", "n0="+c.dsns[0], "--dsn", "n1="+c.dsns[1], "--dsn", "n2="+c.dsns[2])
	for i := range c.dbs {
		c.run(i, "SET GLOBAL read_only = 0")
	}
	return c
}

func (c *chain) run(on int, statements ...string) {
	c.t.Helper()
	for _, s := range statements {
		mustExec(c.t, c.dbs[on], s)
	}
}

// arrives writes a row on the primary and waits until all have it.
func (c *chain) arrives() {
	c.t.Helper()
	c.row++
	c.run(0, fmt.Sprintf("INSERT INTO shop.o VALUES (%d, 0)", 100+c.row))
	for i := range c.dbs {
		await.Until(c.t, func() bool {
			n := 0
			err := c.dbs[i].QueryRow(fmt.Sprint("SELECT COUNT(*) FROM shop.o WHERE id = ", 100+c.row)).Scan(&n)
			return err == nil && n == 1
		}, "row %d is on server %d", 100+c.row, i)
	}
}

func (c *chain) risso(code int, args ...string) string {
	c.t.Helper()
	got, out, said := call(c.t, args...)
	if got != code {
		c.t.Fatalf("%v: got %d, %s%s; want %d", args, got, out, said, code)
	}
	return out + said
}

func (c *chain) repair(code int, replica, source int, more ...string) string {
	c.t.Helper()
	return c.risso(code, append([]string{"gtid", "repair", "--dsn", c.dsns[replica], "--source", c.dsns[source], "--state", c.state}, more...)...)
}

// clean makes sure that nothing is errant, anywhere.
func (c *chain) clean() {
	c.t.Helper()
	c.arrives()
	for i := 1; i < 3; i++ {
		c.risso(fault.OK, "gtid", "errant", "--dsn", c.dsns[i], "--source", c.dsns[0])
	}
}

func wants(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("got %s, want %q in it", text, w)
		}
	}
}

// TestRepairChain: a replica below a replica is repaired through the primary, whoever of the chain wrote. Of MariaDB's, which forget, the order that a plan tells is kept.
func TestRepairChain(t *testing.T) {
	t.Run("mysql-9.7", func(t *testing.T) {
		t.Parallel()
		c := newChain(t, "mysql-9.7")
		c.run(2, "DELETE FROM shop.o WHERE id = 1")
		wants(t, c.repair(fault.Failed, 2, 1, "--yes"), "name the primary by --source")
		wants(t, c.repair(fault.OK, 2, 0, "--yes"), "1 of 1 step done")
		c.clean()
		c.run(1, "INSERT INTO shop.o VALUES (50, 1)", "DELETE FROM shop.o WHERE id = 50")
		wants(t, c.repair(fault.Failed, 1, 0, "--forget", "--rows-equal", "--yes"), "has 1 session that read its binary log")
		wants(t, c.repair(fault.OK, 1, 0, "--yes"), "2 of 2 steps done", "what replicates from", "compare its rows as well")
		c.clean()
		c.run(2, "INSERT INTO shop.o VALUES (51, 1)", "DELETE FROM shop.o WHERE id = 51")
		wants(t, c.repair(fault.Failed, 2, 0, "--forget", "--yes"), "say so by --rows-equal")
		wants(t, c.repair(fault.OK, 2, 0, "--forget", "--rows-equal", "--yes"), "plan: forget", "gtid_purged", "steps done")
		c.clean()
		var executed, uuid string
		if err := c.dbs[0].QueryRow("SELECT @@gtid_executed").Scan(&executed); err != nil {
			t.Fatal(err)
		}
		if err := c.dbs[2].QueryRow("SELECT @@server_uuid").Scan(&uuid); err != nil || strings.Count(executed, uuid+":1") != 1 || strings.Contains(executed, uuid+":1-") {
			t.Errorf("the primary has had %s, %v; want of %s the first one, which was an empty one, and no other", executed, err, uuid)
		}
		c.risso(fault.OK, "gtid", "back", "--dsn", c.dsns[2], "--state", c.state)
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		c := newChain(t, "mariadb")
		c.run(1, "SET GLOBAL gtid_strict_mode = OFF")
		c.run(2, "SET GLOBAL gtid_strict_mode = OFF")
		c.run(1, "INSERT INTO shop.o VALUES (50, 1)", "DELETE FROM shop.o WHERE id = 50")
		c.arrives()
		told := c.repair(fault.Failed, 1, 0, "--yes")
		at := func(i int) string { return regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(c.dsns[i]) }
		named := func(i int) string { return "'risso@tcp(" + at(i) + ")/'" } // the password is in an option file
		wants(t, told, "plan: its replicas first", "risso gtid repair --dsn REPLICA --source "+named(0)+", then risso replica move REPLICA --below "+at(0)+" --dsn "+named(0), "then risso gtid repair --dsn "+named(1)+" --source "+named(0), "risso replica move REPLICA --below "+at(1)+" --dsn "+named(0))
		move := func(below int) {
			t.Helper()
			c.risso(fault.OK, "replica", "move", at(2), "--below", at(below), "--yes", "--state", c.state, "--dsn", c.dsns[0])
		}
		wants(t, c.repair(fault.OK, 2, 0, "--yes"), "plan: forget")
		c.arrives()
		move(0)
		await.Until(t, func() bool { // the session that it had there ends when something is sent to it
			c.arrives()
			code, _, _ := call(t, "gtid", "repair", "--dsn", c.dsns[1], "--source", c.dsns[0], "--dry-run")
			return code == fault.OK
		}, "the replica has left")
		wants(t, c.repair(fault.OK, 1, 0, "--yes"), "plan: forget")
		move(1)
		c.clean()
		c.risso(fault.OK, "gtid", "errant", "--dsn", c.dsns[2], "--source", c.dsns[1])
	})
}

// TestRepairUndone: rows that errant transactions changed are set back as a plan says, by a session that logs nothing; then a repair leaves servers that are equal.
func TestRepairUndone(t *testing.T) {
	for _, spec := range []string{"mysql-9.7", "mariadb"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			box := sandboxtest.Pair(t, spec)
			source, replica := openNode(t, box.Nodes[0]), openNode(t, box.Nodes[1])
			for _, s := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.o (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO shop.o VALUES (1, 'a'), (2, 'b;c'), (3, NULL)"} {
				mustExec(t, source, s)
			}
			rows := func(db *sql.DB) (text string) {
				t.Helper()
				if err := db.QueryRow("SELECT COALESCE(GROUP_CONCAT(id, '=', COALESCE(v, 'null') ORDER BY id), '') FROM shop.o").Scan(&text); err != nil {
					return err.Error()
				}
				return text
			}
			was := rows(source)
			await.Until(t, func() bool { return rows(replica) == was }, "the replica has the rows")
			for _, s := range []string{"SET GLOBAL read_only = 0", "UPDATE shop.o SET v = 'x' WHERE id < 3", "DELETE FROM shop.o WHERE id > 1", "INSERT INTO shop.o VALUES (4, 'd')"} {
				mustExec(t, replica, s)
			}
			repair := []string{"gtid", "repair", "--dsn", box.Nodes[1].DSN, "--source", box.Nodes[0].DSN, "--state", t.TempDir()}
			code, out, said := call(t, append(repair, "--dry-run")...)
			m := regexp.MustCompile(`the newest first \(([^)]*)\)`).FindStringSubmatch(out)
			if code != fault.OK || m == nil {
				t.Fatalf("got %d, %s%s; want how rows are set back", code, out, said)
			}
			wants(t, out, "risso binlog undo --dsn '"+box.Nodes[1].DSN+"' --gtid GTID", "SET sql_log_bin = 0")
			list := strings.Split(m[1], ", ")
			if len(list) != 3 {
				t.Fatalf("got %v, want three transactions", list)
			}
			session, err := replica.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			quiet := func(s string) {
				t.Helper()
				if _, err := session.ExecContext(context.WithoutCancel(t.Context()), s); err != nil {
					t.Fatalf("%s: %v", s, err)
				}
			}
			quiet("SET sql_log_bin = 0")
			for _, g := range list {
				code, out, said := call(t, "binlog", "undo", "--dsn", box.Nodes[1].DSN, "--gtid", g)
				if code != fault.OK {
					t.Fatalf("undo %s: got %d, %s%s", g, code, out, said)
				}
				for line := range strings.Lines(out) {
					if line = strings.TrimSuffix(strings.TrimSpace(line), ";"); line != "" && !strings.HasPrefix(line, "--") {
						quiet(line)
					}
				}
			}
			if got := rows(replica); got != was {
				t.Errorf("got %s, want %s", got, was)
			}
			if code, out, said := call(t, append(repair, "--rows-equal", "--yes")...); code != fault.OK {
				t.Errorf("repair: got %d, %s%s", code, out, said)
			}
			if code, out, said := call(t, "gtid", "errant", "--dsn", box.Nodes[1].DSN, "--source", box.Nodes[0].DSN); code != fault.OK {
				t.Errorf("errant: got %d, %s%s", code, out, said)
			}
		})
	}
}
