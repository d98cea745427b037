package scenario_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestHang: a server that hangs costs the other nothing, and its own gap stays empty.
func TestHang(t *testing.T) {
	t.Parallel()
	eachKind(t, []string{"mariadb", "mysql-9.7"}, func(t *testing.T, kind string) {
		s := up(t, sandbox.Options{Name: "s", Servers: []string{kind, kind}})
		sick, well := s.Nodes[0], s.Nodes[1]
		r := serve(t, dataDir(t), "--no-host", "--dsn", "sick="+sick.DSN, "--dsn", "well="+well.DSN)
		r.awaitTicks(t, "sick", 3)
		begin := r.awaitTicks(t, "well", 1)

		stopped := time.Now().Unix()
		goOn := sandboxtest.Pause(t, sick)
		e := r.awaitEvent(t, "sick", fleet.EventDown, nil)
		if !strings.Contains(e.Text, "does not answer") {
			t.Errorf("the event says %q, not that it does not answer", e.Text)
		}
		if d := r.instance(t, "sick"); d.State != "down" || !strings.Contains(d.Words, "does not answer") {
			t.Errorf("while it hangs it is %q: %q; want d.State \"down\", \"does not answer\" in it", d.State, d.Words)
		}
		r.awaitTicks(t, "well", 4)
		resumed := time.Now().Unix()
		goOn()
		r.awaitEvent(t, "sick", fleet.EventUp, nil)
		r.awaitTicks(t, "sick", 3)
		end := r.awaitTicks(t, "well", 1)

		if m := missing(r.raw(t, of(questions, "well"), begin, end), begin, end); len(m) > 0 {
			t.Errorf("the other server misses the seconds %v while this one hung from %d to %d, want none", m, stopped, resumed)
		}
		// The second of the stop and that of the way back may go either way.
		for _, p := range r.raw(t, of(questions, "sick"), stopped+1, resumed-1) {
			t.Errorf("there is a value at %d, while the server hung from %d to %d", p.t, stopped, resumed)
		}
		for _, p := range r.steps(t, of(questions, "sick"), stopped+2, resumed-1) {
			t.Errorf("query_range invents %v at %d, while the server hung from %d to %d", p.v, p.t, stopped, resumed)
		}
		for _, p := range r.steps(t, of(questions, "sick"), begin, end) { // with both ends of the gap in the range
			if p.t > stopped+1 && p.t < resumed {
				t.Errorf("query_range over the gap invents %v at %d, while the server hung from %d to %d", p.v, p.t, stopped, resumed)
			}
		}
		for i, v := range r.rates(t, "sick", questions, stopped+1, resumed) {
			if !math.IsNaN(v) {
				t.Errorf("a rate of %v stands at %d, while the server hung from %d to %d", v, stopped+1+int64(i), stopped, resumed)
			}
		}
		noEvent(t, r, "sick", fleet.EventRestart, fleet.EventClock, fleet.EventReset, fleet.EventVersion)
		noEvent(t, r, "well", fleet.EventRestart, fleet.EventClock, fleet.EventReset, fleet.EventVersion, fleet.EventDown)
	})
}

// TestHungAtStart: of a server that hangs when Risso is started, it is told that it is down, and that it answers again, once each.
func TestHungAtStart(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	goOn := sandboxtest.Pause(t, n)
	r := serve(t, dataDir(t), "--no-host", "--dsn", "db="+n.DSN)
	r.awaitEvent(t, "db", fleet.EventDown, nil)
	goOn()
	r.awaitEvent(t, "db", fleet.EventUp, nil)
	r.awaitTicks(t, "db", 2)
	for _, kind := range []fleet.EventKind{fleet.EventDown, fleet.EventUp} {
		if got := len(r.events(t, "db", kind)); got != 1 {
			t.Errorf("got %d events %s, want 1", got, kind)
		}
	}
}

// TestShortHang: a pause of some seconds is a pause, and no jump of the clock.
func TestShortHang(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	r := serve(t, dataDir(t), "--no-host", "--dsn", "db="+n.DSN)
	r.awaitTicks(t, "db", 3)
	// Just before a second begins, so that the tick meets the pause immediately.
	await(t, "the end of a second", func() bool { return time.Now().Nanosecond() > 850e6 })
	begin := time.Now()
	goOn := sandboxtest.Pause(t, n)
	// The length of the pause is what is tested: longer than what counts as a jump, shorter than what counts as hung.
	time.Sleep(3200 * time.Millisecond)
	goOn()
	r.awaitTicks(t, "db", 4)
	noEvent(t, r, "db", fleet.EventRestart, fleet.EventClock, fleet.EventReset)
	if stalled(begin) == 0 { // else the machine made more of the pause than was meant
		noEvent(t, r, "db", fleet.EventDown)
	}
}

func noEvent(t *testing.T, r *risso, instance string, kinds ...fleet.EventKind) {
	t.Helper()
	for _, k := range kinds {
		for _, e := range r.events(t, instance, k) {
			t.Errorf("event %s of %s that did not happen: %s", k, instance, e.Text)
		}
	}
}

// TestRestart: a crash, an orderly restart and a stop are reported, and invent no rates.
func TestRestart(t *testing.T) {
	t.Parallel()
	eachKind(t, []string{"mariadb", "mysql-9.7", "mysql-5.7"}, func(t *testing.T, kind string) {
		s := up(t, sandbox.Options{Name: "s", Servers: []string{kind, kind}})
		n, other := s.Nodes[0], s.Nodes[1]
		r := serve(t, dataDir(t), "--no-host", "--dsn", "db="+n.DSN, "--dsn", "other="+other.DSN)
		busy(t, n, 300) // so that the counters have somewhere to fall from
		begin := r.awaitTicks(t, "db", 3)

		for i, how := range []string{"crash", "restart"} {
			down := time.Now().Unix()
			var err error
			if how == "crash" {
				err = n.Kill(syscall.SIGKILL)
			} else {
				err = n.Stop(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			await(t, "a down event after the "+how, func() bool { return len(r.events(t, "db", fleet.EventDown)) == i+1 })
			await(t, "the reason", func() bool { return strings.Contains(r.instance(t, "db").Words, "refuses connections") })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err = n.Start(ctx)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			backAt := time.Now().Unix()
			await(t, "an up event after the "+how, func() bool { return len(r.events(t, "db", fleet.EventUp)) == i+1 })
			at := r.awaitTicks(t, "db", 2)
			if got := r.events(t, "db", fleet.EventRestart); len(got) != i+1 {
				t.Errorf("%d restart events after the %s, not %d", len(got), how, i+1)
			}
			// One point at most is lost beyond the time that it was down; after ten attempts the pauses between them grow.
			lost := int64(1)
			if backAt-down > 9 {
				lost = 5
			}
			for _, m := range missing(r.raw(t, of(questions, "db"), backAt, at), backAt, at) {
				if m > backAt+lost {
					t.Errorf("%s: second %d is missing; the server was back at %d; want at most %d", how, m, backAt, backAt+lost)
				}
			}
			if down+2 < backAt-1 {
				for _, p := range r.steps(t, of(questions, "db"), down+2, backAt-2) {
					t.Errorf("%s: query_range invents a value at %d; it was down from %d to %d", how, p.t, down, backAt)
				}
			}
		}
		end := r.awaitTicks(t, "db", 1)
		checkRates(t, r, "db", begin, end, 200)
		noEvent(t, r, "db", fleet.EventClock, fleet.EventReset, fleet.EventVersion)
		noEvent(t, r, "other", fleet.EventRestart, fleet.EventDown, fleet.EventClock)
		// Two servers that start take both processors, which may cost a second; who waits for the dead one loses many.
		if m := missing(r.raw(t, of(questions, "other"), begin, end), begin, end); len(m) > 1 {
			t.Errorf("the other server misses the seconds %v, want at most 1", m)
		}
	})
}

// busy runs some statements on one connection.
func busy(t *testing.T, n *sandbox.Node, count int) {
	t.Helper()
	execSQL(t, n, strings.Repeat("DO 1;", count)+"DO 1")
}

// checkRates fails where a rate is negative or greater than what was going on.
func checkRates(t *testing.T, r *risso, instance string, from, to int64, limit float64) {
	t.Helper()
	for _, key := range []string{questions, "mysql_global_status_bytes_sent", "mysql_global_status_connections"} {
		most := limit
		if key == "mysql_global_status_bytes_sent" {
			most = limit * 10_000
		}
		for i, v := range r.rates(t, instance, key, from, to) {
			if v < 0 || v > most {
				t.Errorf("%s of %s: a rate of %v at %d, want from 0 to %v", key, instance, v, from+int64(i), most)
			}
		}
	}
	for _, p := range r.steps(t, fmt.Sprintf("rate(%s[5s])", of(questions, instance)), from, to) {
		if p.v < 0 || p.v > limit {
			t.Errorf("rate() of %s is %v at %d, want from 0 to %v", instance, p.v, p.t, limit)
		}
	}
}

// TestDroppedConnection: a killed connection costs a second at most and is no restart.
func TestDroppedConnection(t *testing.T) {
	t.Parallel()
	eachKind(t, []string{"mariadb", "mysql-9.7"}, func(t *testing.T, kind string) {
		n := single(t, kind)
		r := serve(t, dataDir(t), "--no-host", "--dsn", "db="+n.DSN)
		begin := r.awaitTicks(t, "db", 3)
		const kills = 3
		for range kills {
			killRisso(t, n)
			r.awaitTicks(t, "db", 3)
		}
		end := r.awaitTicks(t, "db", 1)
		if m := missing(r.raw(t, of(questions, "db"), begin, end), begin, end); len(m) > kills {
			t.Errorf("%d killed connections cost the seconds %v", kills, m)
		}
		noEvent(t, r, "db", fleet.EventRestart, fleet.EventClock, fleet.EventReset, fleet.EventVersion)
		checkRates(t, r, "db", begin, end, 200)
	})
}

// TestVariableAndReset: a changed variable and FLUSH STATUS are events.
func TestVariableAndReset(t *testing.T) {
	t.Parallel()
	eachKind(t, kinds, func(t *testing.T, kind string) {
		n := single(t, kind)
		r := serve(t, dataDir(t), "--no-host", "--dsn", "db="+n.DSN)
		busy(t, n, 300)
		begin := r.awaitTicks(t, "db", 3)
		old := value(t, n, "SELECT @@global.max_connections")
		await(t, "the variables", func() bool { return r.newest(t, "mysql_global_variables_max_connections", "db") > 0 })
		execSQL(t, n, "SET GLOBAL max_connections = 77")
		flush := "FLUSH STATUS"
		if kind == "mariadb-11.8" { // since 11.5 that is of the session alone (MDEV-33145)
			flush = "FLUSH GLOBAL STATUS"
		}
		execSQL(t, n, flush)
		r.awaitEvent(t, "db", fleet.EventReset, nil)
		end := r.awaitTicks(t, "db", 2)
		checkRates(t, r, "db", begin, end, 400)
		if !strings.HasPrefix(kind, "mariadb") { // one kind waits for the minute, the others are asked again by a new connection
			killRisso(t, n)
		}
		e := r.awaitEvent(t, "db", fleet.EventVariable, func(e fleet.Event) bool { return e.Subject == "max_connections" })
		if e.Old != old || e.New != "77" {
			t.Errorf("the event says %q → %q, not %q → 77; want e.Old %q, e.New \"77\"", e.Old, e.New, old, old)
		}
		if got := r.events(t, "db", fleet.EventVariable); len(got) != 1 {
			t.Errorf("%d variable events, one variable was changed: %+v; want 1", len(got), got)
		}
		noEvent(t, r, "db", fleet.EventRestart, fleet.EventClock)
	})
}

// killRisso cuts the connections that Risso has to a server.
func killRisso(t *testing.T, n *sandbox.Node) {
	t.Helper()
	cutSessions(t, n, "USER = 'root' AND COMMAND = 'Sleep'")
}

// cutSessions kills the sessions that fit a condition of the process list. Risso has several, and each may end by itself in the meantime.
func cutSessions(t *testing.T, n *sandbox.Node, where string) {
	t.Helper()
	rows := execSQL(t, n, "SELECT ID FROM information_schema.processlist WHERE ID <> CONNECTION_ID() AND "+where)[0].Rows
	if len(rows) == 0 {
		t.Fatalf("no session with %s is in the process list, want len(rows) not 0", where)
	}
	for _, row := range rows {
		if _, err := n.Query(t.Context(), "KILL "+*row[0]); err != nil && mysql.ErrorNumber(err) != 1094 { // no such thread
			t.Errorf("KILL %s: %v", *row[0], err)
		}
	}
}

// TestVersionChange: one address leads to another version, then to another flavour.
func TestVersionChange(t *testing.T) {
	t.Parallel()
	spec := []string{"mysql-8.0", "mysql-9.7", "mariadb"}
	for _, s := range spec {
		sandboxtest.Need(t, s)
	}
	s := up(t, sandbox.Options{Name: "s", Servers: spec})
	for _, n := range s.Nodes {
		if n.Program.Family == sandbox.FamilyMariaDB {
			execSQL(t, n, "CREATE USER w@'127.0.0.1' IDENTIFIED BY 'w'; GRANT ALL ON *.* TO w@'127.0.0.1'")
		} else {
			execSQL(t, n, "CREATE USER w@'%' IDENTIFIED BY 'w'; GRANT ALL ON *.* TO w@'%'")
		}
	}
	execSQL(t, s.Nodes[1], strings.Repeat("DO 1;", 20_000)+"DO 1") // its counters are far ahead: a rate over the change would be a spike
	p := newProxy(t, address(s.Nodes[0]))
	r := serve(t, dataDir(t), "--no-host", "--dsn", "db=w:w@tcp("+p.addr+")/")
	begin := r.awaitTicks(t, "db", 3)
	for i, n := range s.Nodes[1:] {
		p.to(address(n))
		r.awaitTicks(t, "db", 3)
		got := r.events(t, "db", fleet.EventVersion)
		if len(got) != i+1 {
			t.Fatalf("%d version events, not %d: %+v", len(got), i+1, got)
		}
		if e := got[len(got)-1]; i == 0 && (!strings.HasPrefix(e.Old, "8.0.") || !strings.HasPrefix(e.New, "9.7.")) {
			t.Errorf("the event says %s → %s", e.Old, e.New)
		}
		if v := r.instance(t, "db").Version; !strings.HasPrefix(v, n.Version) {
			t.Errorf("the version is %q, not %s", v, n.Version)
		}
	}
	end := r.awaitTicks(t, "db", 2)
	// PromQL itself cannot know that a counter that grew is another one; the charts' rates have the gap to go by.
	for i, v := range r.rates(t, "db", questions, begin, end) {
		if v < 0 || v > 500 {
			t.Errorf("a rate of %v at %d, want from 0 to 500", v, begin+int64(i))
		}
	}
	// What only the first one has is gone, what only the last one has is there.
	for _, l := range r.at(t, `{__name__=~"mysql_global_status_(aria_pagecache_reads|mysqlx_sessions)",instance="db"}`, end) {
		if l.labels["__name__"] != "mysql_global_status_aria_pagecache_reads" {
			t.Errorf("%s is still there, want l.labels[\"__name__\"] \"mysql_global_status_aria_pagecache_reads\"", l.key())
		}
	}
}

func address(n *sandbox.Node) string { return net.JoinHostPort(n.Host, fmt.Sprint(n.Port)) }

// TestBlackHoles: targets that accept and never answer do not delay the one that does.
func TestBlackHoles(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	hole := blackHole(t)
	args := []string{"--no-host"}
	for i := range 20 {
		args = append(args, "--dsn", fmt.Sprintf("hole%d=root:x@tcp(%s)/", i, hole))
	}
	start := time.Now()
	r := serve(t, dataDir(t), append(args, "--dsn", "db="+n.DSN)...)
	if d := time.Since(start); d > 30*time.Second+stalled(start) {
		t.Errorf("ready after %s: one attempt to connect to each server takes 3 s, one after the other 60 s, all at once no longer than one; want at most 30 s", d)
	}
	begin := r.awaitTicks(t, "db", 1)
	end := r.awaitTicks(t, "db", 10)
	if m := missing(r.raw(t, of(questions, "db"), begin, end), begin, end); len(m) > 0 {
		t.Errorf("the seconds %v of %d to %d are missing, want none", m, begin, end)
	}
	for i := range 20 {
		id := fmt.Sprintf("hole%d", i)
		if d := r.instance(t, id); d.State != "down" || !strings.Contains(d.Words, "does not answer") {
			t.Errorf("%s is %q: %q; want d.State \"down\", \"does not answer\" in it", id, d.State, d.Words)
		}
	}
}

func isReplication(f fleet.Finding) bool {
	return strings.Contains(f.ID, "repl") && f.Severity > fleet.SeverityInfo
}
