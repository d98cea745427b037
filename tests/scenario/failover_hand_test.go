package scenario_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/sandbox"
)

// TestFailoverByHand: what others lost, or did, in a switchover and a failover that somebody asks for.
func TestFailoverByHand(t *testing.T) {
	eachKind(t, []string{"mariadb", "mysql-9.7"}, func(t *testing.T, kind string) {
		q := newSquad(t, sandbox.Options{Servers: []string{kind}})
		first, one, two := q.box.Nodes[0], q.box.Nodes[1], q.box.Nodes[2]
		q.mustWrite(3)
		q.complete(q.box.Nodes...)

		// Who is not promoted, and that it is said.
		q.refusals(kind, first, one, two)

		// A step fails: it goes back, and no two take writes (orchestrator 854).
		release := q.hold(one)
		q.mustWrite(2)
		code, said := command(t, "switchover", "--group", "g", "--data", q.data, "--to", one.Name, "--drain", "3s", "--yes")
		if code == 0 || !strings.Contains(said, first.Name+" is the primary as before") {
			t.Fatalf("a switchover to one that does not apply: exit code %d: %s", code, said)
		}
		if n := strings.Count(said, one.Name+": applies what it received, for 3 s at most"); n != 1 {
			t.Errorf("it is said %d times that it applies: %s", n, said)
		}
		if _, p := q.members(); p != first || !q.open(first) || q.open(one) || q.open(two) {
			t.Fatalf("it went back: the primary is %s, open %v %v %v", p.Name, q.open(first), q.open(one), q.open(two))
		}
		release()
		q.whole()

		// There and back: a primary that was demoted replicates (orchestrator 1146).
		for _, to := range []*sandbox.Node{one, first, two, first} {
			mustCommand(t, "switchover", "--group", "g", "--data", q.data, "--to", to.Name, "--yes")
			if _, p := q.members(); p != to {
				t.Fatalf("the primary is %s, not %s", p.Name, to.Name)
			}
			q.whole()
		}

		// A replica of a replica: the one in between follows, and the other one gets what it has. What both received, and had not applied, is not lost (orchestrator
		// 1260 and 1363, Vitess 21092).
		mustCommand(t, "replica", "move", two.Name, "--below", one.Name, "--dsn", first.Name+"="+q.dsn(first), "--dsn", one.Name+"="+q.dsn(one), "--dsn", two.Name+"="+q.dsn(two), "--state", tempDir(t), "--yes")
		release = q.hold(one)
		q.mustWrite(20)
		await(t, "the replica has received all", func() bool { return q.received(one, first) })
		if err := first.Kill(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		r := launch(t, nil, "failover", "--group", "g", "--data", q.data, "--yes")
		await(t, "it waits until that is applied", func() bool { return strings.Contains(r.err.String(), "applies what it received") })
		if q.open(one) || q.open(two) {
			t.Error("somebody takes writes who has not applied what was received")
		}
		release()
		if code := r.code(t); code != 0 {
			t.Fatalf("failover: exit code %d: %s%s", code, r.out, r.err)
		}
		if said := r.out.String(); !strings.Contains(said, "nobody took writes for at least ") { // no risso serve saw it die
			t.Errorf("how long nobody took writes: %s", said)
		}
		if _, p := q.members(); p != one {
			t.Fatalf("the primary is %s, not %s, which had received all", p.Name, one.Name)
		}
		q.complete(one, two)
		q.mustWrite(1)
		q.complete(two)

		// All replicas lost: nobody is promoted, and it is said why (orchestrator 1061).
		if err := two.Kill(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if winner, refused := q.dryRun(); winner != "" || !slices.Contains(refused[""], "nobody") {
			t.Errorf("no replica is left: %q follows, refused %v", winner, refused)
		}
		q.mustWrite(1)
	})
}

// received reports whether a replica has received all that its source has written.
func (q *squad) received(n, source *sandbox.Node) bool {
	for _, names := range [][2]string{{"SHOW REPLICA STATUS", "Retrieved_Gtid_Set"}, {"SHOW SLAVE STATUS", "Gtid_IO_Pos"}} {
		maria := strings.Contains(value(q.T, n, "SELECT VERSION()"), "MariaDB")
		if maria != (names[1] == "Gtid_IO_Pos") {
			continue
		}
		r := execSQL(q.T, n, names[0])[0]
		if len(r.Rows) == 0 {
			return false
		}
		got := *r.Rows[0][slices.Index(r.Columns, names[1])]
		if maria {
			return got == value(q.T, source, "SELECT @@GLOBAL.gtid_binlog_pos")
		}
		return value(q.T, n, fmt.Sprintf("SELECT GTID_SUBSET('%s', CONCAT('%s,', @@GLOBAL.gtid_executed))", value(q.T, source, "SELECT @@GLOBAL.gtid_executed"), got)) == "1"
	}
	return false
}

// refusals makes replicas unfit, one way after the other.
func (q *squad) refusals(kind string, first, one, two *sandbox.Node) {
	q.Helper()
	maria := kind == "mariadb"
	stop, start, word, change := "STOP REPLICA", "START REPLICA", "SOURCE", "CHANGE REPLICATION SOURCE TO "
	if maria {
		stop, start, word, change = "STOP SLAVE", "START SLAVE", "MASTER", "CHANGE MASTER TO "
	}
	want := func(what string, n *sandbox.Node, code string) {
		q.Helper()
		await(q.T, what+": "+code, func() bool {
			winner, refused := q.dryRun()
			return winner == q.others(n)[1].Name && slices.Contains(refused[n.Name], code)
		})
		if _, refused := q.dryRun("--to", n.Name); code != "delayed" && !slices.Contains(refused[""], code) {
			q.Errorf("%s, by name: %v, not %s", what, refused, code)
		}
	}
	execSQL(q.T, one, stop+"; "+change+word+"_DELAY = 3600; "+start)
	want("delayed", one, "delayed")
	if winner, _ := q.dryRun("--to", one.Name); winner != one.Name {
		q.Errorf("a delayed one, by name: %q follows", winner)
	}
	execSQL(q.T, one, stop+"; "+change+word+"_DELAY = 0; "+start)

	filter, none := "CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = (x)", "CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = ()"
	if maria {
		filter, none = "SET GLOBAL replicate_ignore_db = 'x'", "SET GLOBAL replicate_ignore_db = ''"
	}
	execSQL(q.T, one, stop+"; "+filter+"; "+start)
	want("with a filter", one, "filter")
	execSQL(q.T, one, stop+"; "+none+"; "+start)

	extra := fmt.Sprintf("%sHOST = '127.0.0.1', %sPORT = 1, %sUSER = 'x', %sPASSWORD = 'x'", word+"_", word+"_", word+"_", word+"_")
	add, drop := change+extra+" FOR CHANNEL 'more'", "STOP REPLICA FOR CHANNEL 'more'; RESET REPLICA ALL FOR CHANNEL 'more'"
	if maria {
		add, drop = "CHANGE MASTER 'more' TO "+extra, "STOP SLAVE 'more'; RESET SLAVE 'more' ALL"
	}
	execSQL(q.T, one, add)
	want("with two sources", one, "channels")
	execSQL(q.T, one, drop)

	if !maria { // two replicas that cannot be compared: each has something of the old primary's that the other lacks
		uuid := value(q.T, first, "SELECT @@server_uuid")
		for i, n := range []*sandbox.Node{one, two} {
			execSQL(q.T, n, fmt.Sprintf("SET GLOBAL super_read_only = OFF; SET GTID_NEXT = '%s:%d'; BEGIN; COMMIT; SET GTID_NEXT = 'AUTOMATIC'; SET GLOBAL super_read_only = ON", uuid, 900+i))
		}
		if winner, refused := q.dryRun(); winner != "" || !slices.Contains(refused[""], "split_brain") {
			q.Errorf("two that cannot be compared: %q follows, refused %v", winner, refused)
		}
		if winner, refused := q.dryRun("--to", two.Name); winner != two.Name { // as its refusal says
			q.Errorf("one that was named: %q follows, refused %v", winner, refused)
		}
		execSQL(q.T, first, fmt.Sprintf("SET GTID_NEXT = '%s:900'; BEGIN; COMMIT; SET GTID_NEXT = '%s:901'; BEGIN; COMMIT; SET GTID_NEXT = 'AUTOMATIC'", uuid, uuid))
	}

	readOnly := "read_only"
	if !maria {
		readOnly = "super_read_only"
	}
	execSQL(q.T, one, "SET GLOBAL "+readOnly+" = OFF; SET GLOBAL read_only = OFF; CREATE DATABASE mine; SET GLOBAL read_only = ON; SET GLOBAL "+readOnly+" = ON")
	want("errant", one, "errant")
	// As docs/gtid.md repairs it: the primary gets it, too.
	if maria {
		execSQL(q.T, one, "SET GLOBAL read_only = OFF; DROP DATABASE mine; SET GLOBAL read_only = ON")
		execSQL(q.T, one, stop+"; RESET MASTER; SET GLOBAL gtid_binlog_state = '"+value(q.T, first, "SELECT @@GLOBAL.gtid_binlog_state")+"'; SET GLOBAL gtid_slave_pos = '"+value(q.T, first, "SELECT @@GLOBAL.gtid_binlog_pos")+"'; "+start)
	} else {
		uuid := value(q.T, one, "SELECT @@server_uuid")
		set := value(q.T, one, "SELECT GTID_SUBTRACT(@@GLOBAL.gtid_executed, '"+value(q.T, first, "SELECT @@server_uuid")+":1-100000')")
		if strings.TrimSpace(set) != uuid+":1" {
			q.Fatalf("errant are %s, not %s:1", set, uuid)
		}
		execSQL(q.T, first, "SET GTID_NEXT = '"+uuid+":1'; BEGIN; COMMIT; SET GTID_NEXT = 'AUTOMATIC'")
	}
	await(q.T, "all may follow again", func() bool {
		_, refused := q.dryRun()
		return len(refused[one.Name]) == 0 && len(refused[two.Name]) == 0
	})
}
