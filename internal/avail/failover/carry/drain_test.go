package carry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/lag"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// asleep is how long a transaction takes to be applied by a replica that is slowed down: nearly all of that it sleeps, so that it is no faster and no slower on a machine that is busy.
const asleep = 20 * time.Millisecond

// slow makes a table whose rows, as they are logged as statements, take long to be inserted on replicas: each server calls a function of its own.
func (u *trio) slow() {
	u.Helper()
	_, p := u.primary()
	const pause = "CREATE FUNCTION test.pause() RETURNS INT DETERMINISTIC NO SQL RETURN SLEEP(%g)"
	u.sql(p, "SET GLOBAL log_bin_trust_function_creators = ON", "CREATE TABLE test.slow (id INT PRIMARY KEY, v INT)", "SET sql_log_bin = 0", fmt.Sprintf(pause, 0.0))
	for _, n := range u.box.Nodes[1:] {
		await.Until(u, func() bool { return u.has(n, p) }, "%s to have the table", n.Name)
		u.applied(n)
		u.sql(n, "SET GLOBAL log_bin_trust_function_creators = ON")
		u.unlogged(n, fmt.Sprintf(pause, asleep.Seconds()))
	}
}

// backlog writes so many transactions that replicas apply slowly.
func (u *trio) backlog(from, n int) {
	u.Helper()
	_, p := u.primary()
	c := sandboxtest.Connect(u, p)
	defer c.Close()
	list := []string{"SET SESSION binlog_format = 'STATEMENT'"}
	for i := range n {
		list = append(list, fmt.Sprintf("INSERT INTO test.slow VALUES (%d, test.pause())", from+i))
	}
	for _, s := range list {
		if err := c.Exec(u.Context(), s); err != nil {
			u.Fatalf("%s: %v", s, err)
		}
	}
}

// applied waits until a node has applied all that it received, and returns for how long.
func (u *trio) applied(n *sandbox.Node) time.Duration {
	u.Helper()
	began := time.Now()
	c := sandboxtest.Connect(u, n)
	defer c.Close()
	await.Until(u, func() bool {
		done, err := mysql.ReceivedAll(u.Context(), c, u.channel(n).Received)
		return err == nil && done
	}, "%s to apply what it received", n.Name)
	return time.Since(began)
}

// drains is the forecast of a failover to a node.
func (u *trio) drains(to *sandbox.Node) *Forecast {
	u.Helper()
	f, err := u.carrier().Forecast(u.Context(), Asked{Group: "g", To: to.Name, Drains: true})
	if err != nil {
		u.Fatal(err)
	}
	for _, line := range f.Words() {
		u.Log("   ", line)
	}
	return f
}

// near reports whether a forecast and what became of it are within a factor of three.
func near(forecast *float64, took time.Duration) bool {
	return forecast != nil && *forecast > took.Seconds()/3 && *forecast < took.Seconds()*3
}

// TestDrains: how long a replica takes to apply a backlog is forecast, for a failover and for a switchover, and comes true; one whose applier stands never does, one that stays behind on purpose
// takes at most as long as it does without that, and of one that finishes nothing it is not known.
func TestDrains(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{})
			first, to := u.box.Nodes[0], u.box.Nodes[1]
			c := sandboxtest.Connect(t, to)
			u.sql(first, "CREATE USER granted@'%' IDENTIFIED BY 'granted'")
			u.sql(first, c.Server.Grants("'granted'@'%'", "", mysql.JobFailover)...)
			u.slow()
			u.applied(to)
			if f := u.drains(to); f.Choice.Drain == nil || f.Choice.Drain.Seconds == nil || *f.Choice.Drain.Seconds != 0 || f.Choice.Handover == nil || *f.Choice.Handover.Seconds != 0 {
				t.Errorf("nothing to apply: got %+v, %+v", f.Choice.Drain, f.Choice.Handover)
			}

			stop, start := c.Server.StopThread("", mysql.Applier), c.Server.StartThread("", mysql.Applier)
			u.sql(to, stop)
			u.backlog(0, 600)
			await.Until(t, func() bool { return u.has(to, first) }, "%s to have received it", to.Name)
			f := u.drains(to)
			if k := f.Choice.Candidate(to.Name); k == nil || k.Drain == nil || !k.Drain.Stands || k.Drain.Seconds != nil || *k.Drain.Transactions < 600 {
				t.Errorf("its applier stands: got %+v", k)
			}

			u.sql(to, start)
			u.ran(first, "granted", func() { f = u.drains(to) }) // who has what risso grants --for failover prints sees all of it
			took := u.applied(to)
			t.Logf("%s: a drain of %g s, a handover of %g s were forecast, %s was taken", spec, value(f.Choice.Drain), value(f.Choice.Handover), took)
			if d := f.Choice.Drain; d == nil || d.AtMost || !near(d.Seconds, took) {
				t.Errorf("a failover: %+v was forecast, it took %s", d, took)
			}
			if d := f.Choice.Handover; d == nil || d.AtMost || !near(d.Seconds, took) {
				t.Errorf("a switchover: %+v was forecast, it took %s", d, took)
			}
			if words := strings.Join(f.Words(), "\n"); !strings.Contains(words, " transactions to apply: about ") || !strings.Contains(words, "in a switchover writes would stand still until "+to.Name+" has applied ") {
				t.Errorf("the words: %s", words)
			}
			u.unreceived(to)
			u.stuck(to)
			u.onPurpose(to)
		})
	}
}

// value is the seconds of a forecast; -1: there are none.
func value(d *lag.Drain) float64 {
	if d == nil || d.Seconds == nil {
		return -1
	}
	return *d.Seconds
}

// unreceived: what the primary has, and the one that follows has not received, counts for a switchover; and for a failover if another member received it, which applies it first.
func (u *trio) unreceived(to *sandbox.Node) {
	u.Helper()
	c := sandboxtest.Connect(u, to)
	defer c.Close()
	first, other := u.box.Nodes[0], u.box.Nodes[2]
	u.backlog(1000, 500)
	await.Until(u, func() bool { return u.has(to, first) }, "%s to have received it", to.Name)
	u.sql(to, c.Server.StopThread("", mysql.Receiver))
	u.backlog(2000, 150)
	await.Until(u, func() bool { return u.has(other, first) }, "%s to have received it", other.Name)
	f := u.drains(to)
	k, d, h := f.Choice.Candidate(to.Name), f.Choice.Drain, f.Choice.Handover
	if k == nil || value(k.Drain) <= 0 || value(h) <= value(k.Drain) || *h.Transactions != *k.Drain.Transactions+150 {
		u.Errorf("150 are not received: got %+v, a switchover waits %+v", k, h)
	}
	if f.Choice.From != other.Name || value(d) < value(h) || *d.Transactions != *h.Transactions {
		u.Errorf("another one received them: a failover waits %+v, and gets them from %q", d, f.Choice.From)
	}
	u.sql(to, c.Server.StartThread("", mysql.Receiver))
	await.Until(u, func() bool { return u.has(to, first) }, "%s to have received it", to.Name)
	u.applied(to)
}

// stuck: of one that finishes nothing it is not known how long it takes, and what keeps it is named where it is seen.
func (u *trio) stuck(to *sandbox.Node) {
	u.Helper()
	holder := sandboxtest.Connect(u, to)
	defer holder.Close()
	if err := holder.Exec(u.Context(), "LOCK TABLES test.slow READ"); err != nil {
		u.Fatal(err)
	}
	u.backlog(3000, 3)
	await.Until(u, func() bool { return u.has(to, u.box.Nodes[0]) }, "%s to have received it", to.Name)
	var d *lag.Drain
	await.Until(u, func() bool {
		d = u.drains(to).Choice.Drain
		return d != nil && d.Seconds == nil
	}, "an applier that waits: %+v", &d)
	if d.Stands || *d.Transactions != 3 || !strings.HasPrefix(d.Words, "it is not known how long: it finished nothing within ") || !strings.Contains(d.Words, "lock") {
		u.Errorf("it waits for a lock: got %+v", d)
	}
	holder.Close()
	u.applied(to)
}

// onPurpose: one that stays an hour behind on purpose is said to take at most as long as it does without that; a MariaDB as long as its delay, as it would throw away what it received.
func (u *trio) onPurpose(to *sandbox.Node) {
	u.Helper()
	u.delay(to, 3600)
	u.backlog(4000, 20)
	await.Until(u, func() bool { return u.has(to, u.box.Nodes[0]) }, "%s to have received it", to.Name)
	f := u.drains(to)
	k := f.Choice.Candidate(to.Name)
	if k == nil || k.Drain == nil || *k.Drain.Transactions != 20 {
		u.Fatalf("late on purpose: got %+v", k)
	}
	if sandboxtest.Connect(u, to).Server.DelaysWhileReceiving() {
		if k.Drain.Seconds != nil || !strings.Contains(k.Drain.Words, "how fast it is without its delay of 1 h was not seen") {
			u.Errorf("late on purpose, and nothing is due: got %+v", k.Drain)
		}
	} else if value(k.Drain) != 3600 || !k.Drain.AtMost {
		u.Errorf("late on purpose: got %+v", k.Drain)
	}
	if f.Choice.Winner == "" && f.Choice.Refusal("delayed") == nil {
		u.Errorf("got %+v", f.Choice.Refused)
	}
}

// TestDrainFrom: who gets what it lacks from another member has to apply that, too, and is given up after a while.
func TestDrainFrom(t *testing.T) {
	ten, twenty, hundred := lag.DrainAt(100, 10, 1), lag.DrainAt(200, 10, 1), lag.DrainAt(1000, 10, 1)
	unknown := lag.DrainUnknown(5, "it finished nothing within 1 s")
	for _, c := range []struct {
		what        string
		winner      lag.Drain
		from        *lag.Drain
		all         int64 // transactions that the winner has to apply in the end
		seconds     float64
		words, note string
	}{
		{"by itself", ten, nil, 100, 10, "about 10 s", ""},
		{"it lacks some", ten, &ten, 150, 15, "about 15 s", "until b has applied what it and c received: about 15 s"},
		{"the other one is slower", ten, &twenty, 150, 25, "about 25 s", "about 25 s"},
		{"the other one is not known", ten, &unknown, 150, -1, "c: it is not known how long", "c: it is not known how long"},
		{"it is given up", hundred, nil, 1000, 100, "about 100 s", "a failover waits 60 s for that, and gives b up then"},
	} {
		winner := failover.Candidate{Name: "b", Waiting: uint64(*c.winner.Transactions), Lacks: uint64(c.all - *c.winner.Transactions), Drain: &c.winner}
		ch := failover.Choice{Winner: "b", Candidates: []failover.Candidate{winner}}
		if c.from != nil {
			ch.From, ch.Candidates = "c", append(ch.Candidates, failover.Candidate{Name: "c", Drain: c.from})
		}
		ch.Drain = joined(&ch, &ch.Candidates[0], lag.DrainAt(c.all, 10, 1))
		if value(ch.Drain) != c.seconds || !strings.HasPrefix(ch.Drain.Words, c.words) {
			t.Errorf("%s: got %+v", c.what, ch.Drain)
		}
		if notes := strings.Join(drainNotes(&ch, DefaultLimits().Drain), "; "); !strings.Contains(notes, c.note) || (notes == "") != (c.note == "") {
			t.Errorf("%s: got %q, want %q", c.what, notes, c.note)
		}
	}
}
