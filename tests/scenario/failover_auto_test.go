package scenario_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
)

// TestFailoverAuto: what risso serve --failover auto takes for a death, and what not; it is killed amid a failover; an old primary comes back, and one thaws.
func TestFailoverAuto(t *testing.T) {
	eachKind(t, []string{"mariadb", "mysql-9.7"}, func(t *testing.T, kind string) {
		q := newSquad(t, sandbox.Options{Servers: []string{kind}, SemiSync: true}, "--semi-sync")
		first, one, two := q.box.Nodes[0], q.box.Nodes[1], q.box.Nodes[2]
		begin := func() *risso { return serve(t, q.data, "--failover", "auto", "--host-only", "--no-statements") }
		s := begin()
		q.whole()

		q.silenced(s)
		if kind != "mariadb" { // whose commits wait for one replica only
			q.waitsForTwo()
		}

		// Credentials that are wrong on one node, and connections that are all taken: the primary lives.
		password, err := q.box.Password()
		if err != nil {
			t.Fatal(err)
		}
		alter := func(password string) {
			execSQL(t, first, fmt.Sprintf("SET SESSION sql_log_bin = 0; ALTER USER '%s'@'%s' IDENTIFIED BY '%s'", q.box.User, value(t, first, "SELECT MAX(host) FROM mysql.user WHERE user = '"+q.box.User+"'"), password))
		}
		alter("wrong")
		q.lives(s, first)
		alter(password)
		await(t, "it answers again", func() bool { return q.heard(s, "answers again") > 0 })
		q.full(s, first)
		q.whole()

		// Killed amid a failover: the next one finishes it. Risso has asked the primary meanwhile whether it waits for replicas.
		q.stays(first)
		release := q.hold(one, two)
		q.mustWrite(5)
		if err := first.Kill(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		await(t, "it waits until a replica has applied all", func() bool {
			const waits = "SELECT COUNT(*) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND (info LIKE '%WAIT_FOR_EXECUTED_GTID_SET%' OR info LIKE '%MASTER_GTID_WAIT%')"
			return value(t, one, waits) != "0" || value(t, two, waits) != "0"
		})
		s.kill(t)
		release()
		if q.open(one) || q.open(two) {
			t.Fatal("somebody takes writes before the end of the failover")
		}
		s = begin()
		var p *sandbox.Node
		await(t, "another primary", func() bool { _, p = q.members(); return p != first && q.open(p) })
		var said string
		await(t, "a receipt", func() bool {
			said = mustCommand(t, "receipt", "--group", "g", "--data", q.data)
			return strings.Contains(said, "failover of g")
		})
		if !strings.Contains(said, "zero acknowledged transactions lost") {
			t.Errorf("the receipt: %s", said)
		}
		q.complete(one, two)

		// The old primary comes back, without anything of its own: it replicates.
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := first.Start(ctx); err != nil {
			t.Fatal(err)
		}
		q.whole()
		q.flaps(s)
	})
}

// silenced lets replicas be as after a restart with semi-sync off, while several write: all of that is acknowledged.
func (q *squad) silenced(s *risso) {
	q.Helper()
	_, p := q.members()
	for _, n := range q.others(p) {
		if p.Program.Family == sandbox.FamilyMariaDB {
			execSQL(q.T, n, "SET GLOBAL rpl_semi_sync_slave_enabled = OFF; STOP SLAVE IO_THREAD; START SLAVE IO_THREAD")
		} else {
			execSQL(q.T, n, "SET GLOBAL rpl_semi_sync_replica_enabled = OFF; STOP REPLICA IO_THREAD; START REPLICA IO_THREAD")
		}
	}
	var all sync.WaitGroup
	for range 4 {
		db := q.app(p)
		all.Go(func() {
			if err := q.write(db, patience); err != nil {
				q.Errorf("a write while nobody acknowledged: %v", err)
			}
		})
	}
	all.Wait()
	await(q.T, "it is told that members acknowledge again", func() bool { return q.heard(s, "acknowledges again") >= 2 })
	q.whole()
}

// waitsForTwo switches over while a commit waits for one replica more than there are: it does not hang, and what nobody was told of is not lost silently
// (orchestrator 1508).
func (q *squad) waitsForTwo() {
	q.Helper()
	_, old := q.members()
	others := q.others(old)
	count := func(n int) {
		for _, node := range q.box.Nodes {
			execSQL(q.T, node, fmt.Sprintf("SET GLOBAL rpl_semi_sync_source_wait_for_replica_count = %d", n))
		}
	}
	count(2)
	mustCommand(q.T, "switchover", "--group", "g", "--data", q.data, "--to", others[0].Name, "--yes")
	q.whole()
	mustCommand(q.T, "switchover", "--group", "g", "--data", q.data, "--to", old.Name, "--yes")
	q.whole()
	if err := others[1].Kill(syscall.SIGKILL); err != nil {
		q.Fatal(err)
	}
	db, done := q.app(old), make(chan error, 1)
	go func() { done <- q.write(db, patience) }()
	await(q.T, "a commit that waits for a replica", func() bool {
		return value(q.T, old, "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for semi-sync ACK%'") != "0"
	})
	code, said := command(q.T, "switchover", "--group", "g", "--data", q.data, "--to", others[0].Name, "--yes")
	if err := <-done; err == nil {
		q.Error("a commit was acknowledged that two replicas do not have")
	}
	_, p := q.members()
	if q.open(old) == q.open(others[0]) || !q.open(p) {
		q.Fatalf("after a switchover (exit code %d: %s) %s is the primary; open: %v, %v", code, said, p.Name, q.open(old), q.open(others[0]))
	}
	ctx, cancel := context.WithTimeout(q.Context(), patience)
	defer cancel()
	if err := others[1].Start(ctx); err != nil {
		q.Fatal(err)
	}
	await(q.T, "commits that wait for two replicas again, as there are two", func() bool {
		return value(q.T, p, "SELECT @@GLOBAL.rpl_semi_sync_source_wait_for_replica_count") == "2"
	})
	count(2)
	// A replica that got a transaction by way of another one does not acknowledge that one: the next one does it for both.
	await(q.T, "commits that two replicas acknowledge", func() bool { return q.write(q.app(p), 5*time.Second) == nil })
	q.whole()
	if p != old {
		mustCommand(q.T, "switchover", "--group", "g", "--data", q.data, "--to", old.Name, "--yes")
	}
	count(1)
	q.whole()
}

// heard is how often risso serve told of something that a group's failover is about.
func (q *squad) heard(s *risso, text string) (n int) {
	q.Helper()
	var a struct{ Events []fleet.Event }
	s.get(q.T, "/api/events", url.Values{"limit": {"5000"}}, &a)
	for _, e := range a.Events {
		if e.Kind == fleet.EventFailover && strings.Contains(e.Text, text) {
			n++
		}
	}
	return n
}

// cut ends Risso's sessions on a node, so that it has to log in again; replicas keep theirs.
func (q *squad) cut(n *sandbox.Node) {
	q.Helper()
	for _, row := range execSQL(q.T, n, "SELECT id FROM information_schema.processlist WHERE user = '"+q.box.User+"' AND command NOT LIKE 'Binlog Dump%' AND COALESCE(info, '') NOT LIKE '%SLEEP%'")[0].Rows {
		_, _ = n.Query(q.Context(), "KILL "+*row[0]) // it may be gone
	}
}

// full takes all connections of the primary, also the one that is kept for who may end sessions (orchestrator 1015).
func (q *squad) full(s *risso, primary *sandbox.Node) {
	q.Helper()
	before := q.heard(s, "cannot be asked")
	ctx, cancel := context.WithCancel(q.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	root, err := primary.DB()
	if err != nil {
		q.Fatal(err)
	}
	defer root.Close()
	root.SetMaxOpenConns(1)
	root.SetMaxIdleConns(1)
	ask := func(statement string) (out string) {
		if err := root.QueryRowContext(ctx, statement).Scan(&out); err != nil {
			q.Fatalf("%s: %v", statement, err)
		}
		return out
	}
	most := ask("SELECT @@GLOBAL.max_connections")
	set := func(most string) {
		if _, err := root.ExecContext(ctx, "SET GLOBAL max_connections = "+most); err != nil {
			q.Fatal(err)
		}
	}
	set("10")
	other, err := primary.DB()
	if err != nil {
		q.Fatal(err)
	}
	defer other.Close()
	app := q.app(primary)
	for i := range 12 {
		db := app
		if i == 0 {
			db = other
		}
		all.Go(func() {
			for ctx.Err() == nil {
				_, _ = db.ExecContext(ctx, "DO SLEEP(600)") // until there is room
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	await(q.T, "connections that are all taken", func() bool {
		ids := ask("SELECT COALESCE(GROUP_CONCAT(id), '') FROM information_schema.processlist WHERE user = '" + q.box.User + "' AND command NOT LIKE 'Binlog Dump%'")
		for _, id := range strings.Split(ids, ",") {
			_, _ = root.ExecContext(ctx, "KILL "+id) // it may be gone
		}
		time.Sleep(200 * time.Millisecond)
		return q.heard(s, "cannot be asked") > before
	})
	for range 16 {
		if _, p := q.members(); p != primary || ask("SELECT @@GLOBAL.read_only") != "0" {
			q.Fatalf("%s has no connection left, and is no primary any more", primary.Name)
		}
		time.Sleep(500 * time.Millisecond)
	}
	set(most)
}

// lives waits until it is said that the primary lives and cannot be asked, and makes sure that nothing is done.
func (q *squad) lives(s *risso, primary *sandbox.Node) {
	q.Helper()
	await(q.T, "it lives, but cannot be asked", func() bool {
		q.cut(primary)
		return q.heard(s, "cannot be asked") > 0
	})
	q.stays(primary)
}

// stays makes sure that a primary is not replaced for longer than it takes to believe in a death.
func (q *squad) stays(primary *sandbox.Node) {
	q.Helper()
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		if _, p := q.members(); p != primary || !q.open(primary) {
			q.Fatalf("%s lives, and is no primary any more", primary.Name)
		}
	}
}

// flaps freezes the primary of a group that was failed over: not again within the hour, but for a person. The thawed one takes no write.
func (q *squad) flaps(s *risso) {
	q.Helper()
	_, old := q.members()
	db := q.app(old)
	if err := q.write(db, patience); err != nil {
		q.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // an application that keeps its connection to it
		defer close(done)
		for end := time.Now().Add(patience); time.Now().Before(end) && q.Context().Err() == nil; time.Sleep(10 * time.Millisecond) {
			if err := q.write(db, patience); err != nil {
				return
			}
		}
	}()
	if err := old.Kill(syscall.SIGSTOP); err != nil {
		q.Fatal(err)
	}
	thaw := func() {
		if err := old.Kill(syscall.SIGCONT); err != nil {
			q.Error(err)
		}
	}
	defer thaw()
	await(q.T, "it is not failed over again", func() bool {
		return q.heard(s, "it is not failed over automatically again before") > 0
	})
	if _, p := q.members(); p != old {
		q.Fatalf("failed over automatically within the hour, to %s", p.Name)
	}
	mustCommand(q.T, "failover", "--group", "g", "--data", q.data, "--yes")
	_, p := q.members()
	if p == old {
		q.Fatal("it was not failed over")
	}
	q.mustWrite(1)
	thaw()
	await(q.T, "the old primary replicates, or is kept out with what only it has", func() bool {
		list, _ := q.members()
		for _, m := range list {
			if m.Name == old.Name {
				return !q.open(old) && (m.Status == "SECONDARY" || m.Status == "FAULTY" && m.Errant != "")
			}
		}
		return false
	})
	<-done
	q.mustWrite(1)
	for _, n := range q.others(old) {
		q.complete(n)
	}
	if list, now := q.members(); now != p {
		q.Errorf("the primary is %s, not %s: %+v", now.Name, p.Name, list)
	}
}
