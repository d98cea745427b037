package ask

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/lag"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/channels"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// pair is a primary and a replica.
type pair struct {
	t                  *testing.T
	primary, replica   *sandbox.Node
	source, c          *mysql.Conn
	target, sourceAddr mysql.Target
}

func newPair(t *testing.T, spec string, settings ...string) *pair {
	t.Helper()
	s := sandboxtest.Pair(t, spec, settings...)
	p := &pair{t: t, primary: s.Nodes[0], replica: s.Nodes[1]}
	p.source, p.c = sandboxtest.Connect(t, p.primary), sandboxtest.Connect(t, p.replica)
	p.target, p.sourceAddr = sandboxtest.Target(t, p.replica), sandboxtest.Target(t, p.primary)
	return p
}

// run runs statements, separated by "; ".
func run(t *testing.T, c *mysql.Conn, statements string) {
	t.Helper()
	for s := range strings.SplitSeq(statements, "; ") {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// look looks at the replica for a while.
func (p *pair) look(long time.Duration, source bool) lag.Report {
	p.t.Helper()
	o := Options{Target: p.target, For: long, Patience: time.Minute}
	if source {
		o.Source = &p.sourceAddr
	}
	list, err := Replica(p.t.Context(), o)
	if err != nil || len(list) != 1 {
		p.t.Fatalf("got %d channels, %v, want 1", len(list), err)
	}
	return lag.Judge("r", list[0])
}

// seen looks until the first cause has a code.
func (p *pair) seen(code string) lag.Report {
	p.t.Helper()
	var r lag.Report
	await.Until(p.t, func() bool {
		r = p.look(500*time.Millisecond, true)
		return len(r.Causes) > 0 && r.Causes[0].Code == code
	}, "the cause %s: got %+v", code, &r)
	return r
}

// level waits until the replica has all that the source has.
func (p *pair) level() {
	p.t.Helper()
	var r lag.Report
	await.Until(p.t, func() bool { r = p.look(200*time.Millisecond, true); return r.State == lag.Level }, "a level replica: %+v", &r)
	if r.Seconds == nil || *r.Seconds != 0 || len(r.Causes) > 0 {
		p.t.Errorf("level: got %v, causes %v, want 0 seconds and none", r.Seconds, r.Causes)
	}
}

// carryOut runs the remedy that a cause names, as printed, on the replica.
func (p *pair) carryOut(c lag.Cause) {
	p.t.Helper()
	statements, _, _ := strings.Cut(c.Next, " (")
	run(p.t, sandboxtest.Connect(p.t, p.replica), statements)
}

// TestCauses makes on real pairs what keeps a replica, and carries out what is said against it.
func TestCauses(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, spec)
			run(t, p.source, "CREATE TABLE test.t (id INT PRIMARY KEY, v INT); INSERT INTO test.t VALUES (1, 1), (2, 2)")
			p.level()
			p.stopped()
			p.onPurpose()
			p.locked()
			p.duplicate()
			p.keyless(spec)
		})
	}
}

// stopped: threads that do not run are named, and the delay is known from the source's log even if the server says nothing.
func (p *pair) stopped() {
	t := p.t
	t.Helper()
	if p.c.Server.GTIDsByDomain() { // a write of its own does not make it level
		run(t, p.c, "SET GLOBAL read_only = OFF; SET GLOBAL gtid_strict_mode = OFF; SET gtid_seq_no = 100000; CREATE TABLE test.own (id INT)")
	}
	for _, c := range []struct{ thread, code string }{{"IO_THREAD", "receiver.stopped"}, {"SQL_THREAD", "applier.stopped"}} {
		run(t, p.c, "STOP "+word(p.c)+" "+c.thread)
		run(t, p.source, "INSERT INTO test.t SELECT MAX(id) + 1, 0 FROM test.t")
		r := p.seen(c.code)
		if r.State != lag.Stopped || r.Seconds == nil || r.Transactions == nil || *r.Transactions != 1 || r.Bytes == nil || *r.Bytes <= 0 || !r.Causes[0].Certain {
			t.Errorf("%s: got %+v, want one transaction, its bytes and its age", c.code, r)
		}
		run(t, p.c, r.Causes[0].Next)
		p.level()
	}
	if p.c.Server.GTIDsByDomain() {
		p.standing()
	}
	set, err := read.Variables(t.Context(), p.c, settings)
	if err != nil {
		t.Fatal(err)
	}
	if more := channels.MoreAppliers(p.c.Server, func(name string) string { return set[name] }); more != "" {
		run(t, p.c, more)
	}
	run(t, p.c, lag.CheapCommits)
	p.level()
	// The source is asked at the address that the replica knows: root has no password there, and is refused.
	if r := p.look(200*time.Millisecond, false); r.State != lag.Applied || len(r.Gaps) == 0 || !strings.Contains(r.Gaps[0].Why, "cannot be asked") {
		t.Errorf("a source that refuses: got %s, gaps %v, want that it is applied as far as was received, and that the source was not asked", r.State, r.Gaps)
	}
	list, err := Replica(t.Context(), Options{Target: p.target, Source: &p.sourceAddr, Alone: true, For: 200 * time.Millisecond})
	if err != nil || len(list) != 1 || list[0].Source != nil || list[0].NotAsked != "it was not asked" {
		t.Errorf("a source that is not to be asked: got %+v, %v", list, err)
	}
}

// standing: where a START throws away what was received, that is said; what the source still has comes again.
func (p *pair) standing() {
	t := p.t
	t.Helper()
	run(t, p.c, "STOP SLAVE SQL_THREAD")
	run(t, p.source, "INSERT INTO test.t SELECT MAX(id) + 1, 0 FROM test.t")
	await.Until(t, func() bool {
		list, err := read.ReplicaChannels(t.Context(), p.c)
		return err == nil && list[0].Status.Unapplied != 0
	}, "a transaction that is received")
	run(t, p.c, "STOP SLAVE IO_THREAD")
	start, caution, _ := strings.Cut(p.seen("applier.stopped").Causes[0].Next, " (")
	if !strings.Contains(caution, "START throws away what it received") {
		t.Errorf("got %q, want that START throws away what was received", caution)
	}
	run(t, p.c, start)
	p.level()
}

// word is the word for a replica in the server's statements.
func word(c *mysql.Conn) string { return strings.Fields(c.Server.StopReplica(""))[1] }

// onPurpose: a configured delay is no fault, and its end is tried.
func (p *pair) onPurpose() {
	t := p.t
	t.Helper()
	run(t, p.c, p.c.Server.SetReplicaDelay("", 3000))
	await.Until(t, func() bool { return p.look(200*time.Millisecond, true).State != lag.Stopped }, "both threads")
	run(t, p.source, "INSERT INTO test.t SELECT MAX(id) + 1, 0 FROM test.t")
	r := p.seen("delayed")
	await.Until(t, func() bool { r = p.look(200*time.Millisecond, true); return r.State == lag.Delayed }, "late on purpose: %+v", &r)
	if r.Delay != 3000 || *r.Seconds > 3000 || *r.Transactions != 1 {
		t.Errorf("delayed: got %+v, want a delay of 3000 and one transaction", r)
	}
	p.carryOut(r.Causes[0])
	p.level()
}

// locked: who holds the lock is named, and KILL ends the wait.
func (p *pair) locked() {
	t := p.t
	t.Helper()
	for _, hold := range []string{"LOCK TABLES test.t READ", "BEGIN; SELECT * FROM test.t WHERE id = 1 LOCK IN SHARE MODE"} {
		holder := sandboxtest.Connect(t, p.replica)
		run(t, holder, hold)
		run(t, p.source, "UPDATE test.t SET v = v + 1 WHERE id = 1")
		r := p.seen("lock")
		c := r.Causes[0]
		if want := fmt.Sprintf("connection %d", holder.Server.ConnectionID); c.Next != "" && strings.HasPrefix(c.Next, "KILL") && !strings.Contains(c.Words, want) {
			t.Errorf("%s: got %q, want %s", hold, c.Words, want)
		}
		switch {
		case strings.HasPrefix(c.Next, "KILL"):
			p.carryOut(c)
			await.Until(t, func() bool { // MySQL 5.7 has lost a KILL once: the session went on with its transaction
				r = p.look(200*time.Millisecond, true)
				if len(r.Causes) > 0 && r.Causes[0].Code == "lock" && r.Causes[0].Next == c.Next {
					p.carryOut(c)
				}
				return r.State == lag.Level
			}, "an end of the wait: %+v", &r)
		case strings.HasPrefix(hold, "LOCK") && (c.NotSeen != ""): // MySQL 5.7 and MariaDB do not say who holds it
			_ = holder.Close()
		default:
			t.Errorf("%s: got next %q, not seen %q, want a KILL, or that it is not seen who holds the lock", hold, c.Next, c.NotSeen)
			_ = holder.Close()
		}
		p.level()
	}
}

// duplicate: an error is told with its remedy, which is carried out.
func (p *pair) duplicate() {
	t := p.t
	t.Helper()
	run(t, p.c, "SET sql_log_bin = 0; SET GLOBAL "+p.c.Server.ReadOnlyVariable()+" = OFF; INSERT INTO test.t VALUES (5000, 5); SET sql_log_bin = 1")
	run(t, p.source, "INSERT INTO test.t VALUES (5000, 6)")
	r := p.seen("applier.error")
	if c := r.Causes[0]; r.State != lag.Stopped || !strings.Contains(c.Words, "error 1062") || !strings.Contains(c.Words, "test.t") {
		t.Errorf("error: got %q, want error 1062 on test.t", c.Words)
	}
	p.carryOut(r.Causes[0])
	p.level()
}

// keyless: the table without a key is named, with how far the transaction is; the key that is proposed can be had.
func (p *pair) keyless(spec string) {
	t := p.t
	t.Helper()
	rows := map[string]int{"mysql-9.7": 64000, "mysql-8.0": 64000}[spec] // they look for many rows at once
	if rows == 0 {
		rows = 16000
	}
	run(t, p.source, "CREATE TABLE test.keyless (a INT, v INT, w CHAR(100)); INSERT INTO test.keyless VALUES (1, 0, 'x')")
	for n := 1; n < rows; n *= 2 {
		run(t, p.source, fmt.Sprintf("INSERT INTO test.keyless SELECT a + %d, v, w FROM test.keyless", n))
	}
	everywhere := []string{"PROCESS", "REPLICATION SLAVE", p.c.Server.ReplicaPrivilege(), p.c.Server.LogsPrivilege()}
	run(t, p.source, "CREATE USER least@localhost IDENTIFIED BY 'Least-1-Pass'; GRANT "+strings.Join(everywhere, ", ")+" ON *.* TO least@localhost; GRANT SELECT ON test.* TO least@localhost")
	if p.c.Server.TimesTransactions() || !p.c.Server.GTIDsByDomain() {
		run(t, p.source, "GRANT SELECT ON performance_schema.* TO least@localhost")
	}
	p.level()
	id := 9000
	var r lag.Report
	await.Until(t, func() bool {
		if id == 9000 || r.State == lag.Level { // before it was looked at, it was through
			run(t, p.source, fmt.Sprintf("UPDATE test.keyless SET v = v + 1; INSERT INTO test.t VALUES (%d, 1)", id))
			id++
		}
		r = p.look(500*time.Millisecond, true)
		return len(r.Causes) > 0 && r.Causes[0].Code == "table.no_key"
	}, "the cause table.no_key: got %+v", &r)
	c := r.Causes[0]
	if !strings.Contains(c.Words, "test.keyless") || len(c.Evidence) == 0 || r.State != lag.Behind || r.Seconds == nil || *r.Transactions != 2 {
		t.Errorf("no key: got %+v", r)
	}
	p.least()
	await.Until(t, func() bool {
		r = p.look(2*time.Second, true)
		return r.State == lag.Level || strings.Contains(r.Forecast, "the transaction that it is in ends in about")
	}, "a forecast: %+v", &r)
	if r.State != lag.Level && (r.Course.Way != channels.StandsFast || !slices.ContainsFunc(r.Causes[0].Evidence, func(e string) bool { return strings.Contains(e, " rows of ") })) {
		t.Errorf("no key: got %+v, want how far the transaction is", r)
	}
	// The statement is tried on a small copy: on the large one it would wait for all that is behind.
	run(t, p.source, "CREATE TABLE test.small LIKE test.keyless")
	statement, _, _ := strings.Cut(c.Next, " (on the source")
	run(t, p.source, strings.ReplaceAll(statement, "`keyless`", "`small`"))
	if k, err := read.KeysOf(t.Context(), p.source, "test", "small"); err != nil || !k.Primary {
		t.Errorf("the key that is proposed: got %+v, %v", k, err)
	}
}

// least: the privileges that docs/lag.md names are enough to see the table without a key. The account was made before the replica was late.
func (p *pair) least() {
	t := p.t
	t.Helper()
	at := func(n *sandbox.Node) mysql.Target {
		target, err := mysql.ParseTarget("least:Least-1-Pass@unix(" + n.Socket + ")/")
		if err != nil {
			t.Fatal(err)
		}
		return target
	}
	source := at(p.primary)
	list, err := Replica(t.Context(), Options{Target: at(p.replica), Source: &source, For: 500 * time.Millisecond, Patience: time.Minute})
	if err != nil || len(list) != 1 {
		t.Fatalf("with few privileges: got %d channels, %v, want 1", len(list), err)
	}
	r := lag.Judge("r", list[0])
	if r.State != lag.Level && (len(r.Gaps) > 0 || len(r.Causes) == 0 || r.Causes[0].Code != "table.no_key" || r.Seconds == nil || r.Bytes == nil) {
		t.Errorf("with few privileges: got %+v, want table.no_key and no gaps", r)
	}
}

// TestHangs: a replica that hangs keeps nobody for long.
func TestHangs(t *testing.T) {
	p := newPair(t, "mariadb")
	goOn := sandboxtest.Pause(t, p.replica)
	defer goOn()
	if err := p.c.Exec(t.Context(), "DO 1"); mysql.ClassOf(err) != mysql.ClassTimeout || !strings.HasPrefix(err.Error(), "does not answer (within ") {
		t.Errorf("a statement to a server that hangs: got %v, %s, want that it does not answer", err, mysql.ClassOf(err))
	}
	for range 2 { // the connection is closed now, and its server answers no more than before
		if err := p.c.Exec(t.Context(), "DO 1"); mysql.ClassOf(err) != mysql.ClassTimeout {
			t.Errorf("the next one: got %v, %s", err, mysql.ClassOf(err))
		}
	}
	if _, err := mysql.Connect(t.Context(), p.target.WithPatience(time.Second), nil); err == nil || !strings.HasSuffix(err.Error(), ": does not answer (within 1 s)") {
		t.Errorf("a login at a server that hangs: got %v", err)
	}
	_, err := Replica(t.Context(), Options{Target: p.target, Source: &p.sourceAddr, For: 200 * time.Millisecond, Patience: 100 * time.Millisecond, Grace: 300 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "did not answer all within 1 s") {
		t.Errorf("got %v, want that it did not answer in time", err)
	}
}

// TestRelayFull: an applier that stands lets the relay logs grow to their limit. What keeps the applier comes first, and no network is blamed.
func TestRelayFull(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, spec, "relay_log_space_limit=1048576", "max_relay_log_size=262144")
			run(t, p.source, "CREATE TABLE test.t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)")
			p.level()
			holder := sandboxtest.Connect(t, p.replica)
			run(t, holder, "LOCK TABLES test.t READ")
			for range 20 {
				run(t, p.source, "INSERT INTO test.t (v) VALUES (REPEAT(UUID(), 5000))") // 176 KiB
			}
			var r lag.Report
			await.Until(t, func() bool {
				r = p.look(time.Second, true)
				return slices.ContainsFunc(r.Causes, func(c lag.Cause) bool { return c.Code == "relay.full" })
			}, "the cause relay.full: %+v", &r)
			if r.Causes[0].Code != "lock" || slices.ContainsFunc(r.Causes, func(c lag.Cause) bool { return c.Code == "receiver.silent" || c.Code == "network" }) || strings.Contains(r.Forecast, "source") {
				t.Errorf("got %q, causes %+v, want the lock first, and no network", r.Forecast, r.Causes)
			}
			run(t, holder, "UNLOCK TABLES")
			p.level()
		})
	}
}

// TestNetwork: a narrow network, one that is dead while the connection stands, and a source that is gone; the forecast is roughly right.
func TestNetwork(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, spec)
			link := sandboxtest.NewLink(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(p.primary.Port)))
			_, port, _ := net.SplitHostPort(link.Addr)
			change := "CHANGE MASTER TO MASTER_PORT = " + port
			if word(p.c) == "REPLICA" {
				change = "CHANGE REPLICATION SOURCE TO SOURCE_PORT = " + port
			}
			run(t, p.c, fmt.Sprintf("SET GLOBAL slave_net_timeout = 3600; STOP %[1]s; %[2]s; START %[1]s", word(p.c), change))
			run(t, p.source, "CREATE TABLE test.t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGBLOB)")
			p.level()

			const rate = 400 << 10
			link.Rate.Store(rate)
			for range 30 {
				run(t, p.source, "INSERT INTO test.t (v) VALUES (REPEAT(UUID(), 3640))") // 128 KiB
			}
			r := p.look(2*time.Second, true)
			if len(r.Causes) == 0 || r.Causes[0].Code != "network" || r.Course.Way != channels.CatchesUp {
				t.Fatalf("a narrow network: got %+v", r)
			}
			began := time.Now()
			p.level()
			took := time.Since(began).Seconds()
			p.carryOut(r.Causes[0])
			p.level()
			if took > 2.5*r.Course.Level+5 || took < 0.3*r.Course.Level-5 {
				t.Errorf("level after %.1f s, the forecast was %.1f s", took, r.Course.Level)
			} else {
				t.Logf("level after %.1f s, the forecast was %.1f s", took, r.Course.Level)
			}

			link.Rate.Store(-1)
			run(t, p.source, "INSERT INTO test.t (v) VALUES ('x')")
			r = p.look(time.Second, true)
			c := lag.Cause{}
			if len(r.Causes) > 0 {
				c = r.Causes[0]
			}
			if c.Code != "receiver.silent" || r.State != lag.Behind || r.Seconds == nil || r.Said == nil || *r.Said != 0 || *r.Transactions != 1 {
				t.Errorf("a dead network: got %+v, want receiver.silent, though Seconds_Behind_Source is 0", r)
			}
			link.Rate.Store(0)
			p.carryOut(c)
			p.level()

			if err := p.primary.Turn(t.Context(), sandbox.TurnKill); err != nil {
				t.Fatal(err)
			}
			await.Until(t, func() bool {
				r = p.look(200*time.Millisecond, true)
				return len(r.Causes) > 0 && strings.HasPrefix(r.Causes[0].Code, "receiver.")
			}, "a source that is gone: %+v", &r)
			if r.State != lag.Stopped || r.Causes[0].Code != "receiver.connecting" || len(r.Gaps) == 0 || r.Gaps[0].Remedy == "" {
				t.Errorf("a source that is gone: got %+v", r)
			}
		})
	}
}
