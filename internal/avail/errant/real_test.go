package errant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// pair is a primary and its replica.
type pair struct {
	t      *testing.T
	nodes  [2]*sandbox.Node // the source, the replica
	c      [2]*mysql.Conn
	keeper Keeper
}

const (
	onSource  = 0
	onReplica = 1
)

func newPair(t *testing.T, spec string, settings ...string) *pair {
	t.Helper()
	s := sandboxtest.Pair(t, spec, settings...)
	p := &pair{t: t, nodes: [2]*sandbox.Node{s.Nodes[0], s.Nodes[1]}, keeper: Keeper{Dir: t.TempDir(), Command: "risso gtid back"}}
	for i, n := range p.nodes {
		p.c[i] = sandboxtest.Connect(t, n)
	}
	p.run(onSource, "CREATE DATABASE shop", "CREATE TABLE shop.o (id INT PRIMARY KEY, v INT)", "INSERT INTO shop.o VALUES (1, 1), (2, 2)")
	p.reach("1,2")
	p.run(onReplica, "SET GLOBAL read_only = 0")
	return p
}

func (p *pair) run(on int, statements ...string) {
	p.t.Helper()
	for _, s := range statements {
		if err := p.c[on].Exec(p.t.Context(), s); err != nil {
			p.t.Fatalf("%s: %v", s, err)
		}
	}
}

func (p *pair) text(on int, query string) string {
	p.t.Helper()
	s, err := p.c[on].Text(p.t.Context(), query)
	if err != nil {
		p.t.Fatalf("%s: %v", query, err)
	}
	return s
}

// reach waits until the replica has rows with these numbers.
func (p *pair) reach(ids string) {
	p.t.Helper()
	await.Until(p.t, func() bool {
		s, err := p.c[onReplica].Text(p.t.Context(), "SELECT GROUP_CONCAT(id ORDER BY id) FROM shop.o")
		return err == nil && s == ids
	}, "the replica has rows %s", ids)
}

// judge reads the replica, then its source.
func (p *pair) judge() (Verdict, Reading, Reading) {
	p.t.Helper()
	r, err := Read(p.t.Context(), "replica", p.c[onReplica])
	if err != nil {
		p.t.Fatal(err)
	}
	s, err := Read(p.t.Context(), "source", p.c[onSource])
	if err != nil {
		p.t.Fatal(err)
	}
	v, err := Judge(Question{Replica: r, Source: &s})
	if err != nil {
		p.t.Fatal(err)
	}
	return v, r, s
}

func (p *pair) plan(w Wanted) *Plan {
	p.t.Helper()
	v, r, s := p.judge()
	if err := s.AskGone(p.t.Context(), p.c[onSource]); err != nil {
		p.t.Fatal(err)
	}
	plan, err := MakePlan(&v, &r, &s, w, time.Now())
	if err != nil {
		p.t.Fatal(err)
	}
	return &plan
}

// equal says that rows were compared.
var equal = Wanted{RowsEqual: true}

func (p *pair) target(on int) mysql.Target { return sandboxtest.Target(p.t, p.nodes[on]) }

// carry carries a plan out; before is called before each step.
func (p *pair) carry(ctx context.Context, plan *Plan, before func(i int, s Step) error) (int, error) {
	p.t.Helper()
	noted := 0
	return plan.Carry(ctx, Doing{Replica: p.target(onReplica), Source: p.target(onSource), Note: func(any) error { noted++; return nil }, Patience: time.Minute, Keeper: p.keeper, Before: func(i int, s Step) error {
		if noted != i+1 {
			p.t.Errorf("step %d: %d lines of the journal are there, want %d", i, noted, i+1)
		}
		if before == nil {
			return nil
		}
		return before(i, s)
	}})
}

// sessions ends all sessions of repairs, which are those that are not p's.
func (p *pair) endSessions() {
	p.t.Helper()
	for _, c := range p.c {
		list, err := c.Maps(p.t.Context(), "SHOW PROCESSLIST")
		if err != nil {
			p.t.Fatal(err)
		}
		for _, row := range list {
			if row["User"] == "root" && row["Id"] != fmt.Sprint(c.Server.ConnectionID) && row["Command"] != "Binlog Dump GTID" && row["Command"] != "Binlog Dump" {
				_ = c.Exec(p.t.Context(), "KILL "+row["Id"]) // it may have ended
			}
		}
	}
}

// clean makes sure that nothing is errant, and that what the source writes arrives.
func (p *pair) clean(id int, ids string) {
	p.t.Helper()
	p.run(onSource, fmt.Sprintf("INSERT INTO shop.o VALUES (%d, 1)", id))
	p.reach(ids)
	if v, _, _ := p.judge(); len(v.Parts) > 0 || v.Unknown != "" {
		p.t.Errorf("after the repair: got %+v, want nothing", v)
	}
}

// TestRepairMySQL: errant transactions become empty ones on the primary; a connection that breaks in the midst leaves the rest to the next plan.
func TestRepairMySQL(t *testing.T) {
	for _, spec := range []string{"mysql-5.7", "mysql-8.0", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, spec)
			if v, _, _ := p.judge(); len(v.Parts) > 0 {
				t.Fatalf("before: got %+v, want nothing", v)
			}
			p.run(onReplica, "INSERT INTO shop.o VALUES (11, 1)", "INSERT INTO shop.o VALUES (12, 1)", "DELETE FROM shop.o WHERE id IN (11, 12)")
			uuid := p.text(onReplica, "SELECT @@server_uuid")
			v, r, _ := p.judge()
			if len(v.Parts) != 1 || v.Parts[0].GTIDs != uuid+":1-3" || v.Parts[0].Kind != KindErrant || v.Parts[0].Sure != Certain || v.Parts[0].Count != 3 {
				t.Fatalf("got %+v, want %s:1-3", v, uuid)
			}
			if down, err := Judge(Question{Replica: r}); err != nil || len(down.Parts) != 1 || down.Parts[0].GTIDs != uuid+":1-3" || down.Parts[0].Sure != Likely {
				t.Errorf("with the source down: got %+v, %v", down, err)
			}
			plan := p.plan(equal)
			if done, err := p.carry(t.Context(), plan, func(i int, _ Step) error {
				if i == 1 {
					p.endSessions()
				}
				return nil
			}); err == nil || done != 1 || !strings.Contains(err.Error(), "1 of 3 transactions are done") || !strings.Contains(err.Error(), "plan again") {
				t.Fatalf("killed in the midst: got %d, %v", done, err)
			}
			again := p.plan(equal)
			if len(again.Steps) != 2 || len(plan.Same(again)) == 0 {
				t.Fatalf("the plan after that: got %+v, which differs by %v", again, plan.Same(again))
			}
			p.held(again, uuid+":3")
			p.clean(3, "1,2,3")
			p.run(onReplica, "INSERT INTO shop.o VALUES (13, 1)", "DELETE FROM shop.o WHERE id = 13")
			if done, err := p.carry(t.Context(), p.plan(equal), nil); err != nil || done != 2 {
				t.Fatalf("got %d, %v", done, err)
			}
			p.clean(4, "1,2,3,4")
			p.race()
			p.run(onReplica, "INSERT INTO shop.o VALUES (14, 1)", "DELETE FROM shop.o WHERE id = 14")
			shown := p.plan(equal)
			p.run(onSource, "SET GLOBAL read_only = 1")
			if done, err := p.carry(t.Context(), shown, nil); !errors.Is(err, ErrSurprise) || done != 0 || !strings.Contains(err.Error(), "is no primary any more") {
				t.Errorf("a source that is read only since the plan was shown: got %d, %v", done, err)
			}
		})
	}
}

// held carries out a plan while another session holds the last of its transactions, and commits it with something in it: the repair's would be passed over without
// an error.
func (p *pair) held(plan *Plan, gtid string) {
	p.t.Helper()
	other := sandboxtest.Connect(p.t, p.nodes[onSource])
	do := func(statements ...string) {
		p.t.Helper()
		for _, s := range statements {
			if err := other.Exec(p.t.Context(), s); err != nil {
				p.t.Fatalf("%s: %v", s, err)
			}
		}
	}
	do("SET GTID_NEXT = '"+gtid+"'", "BEGIN", "INSERT INTO shop.o VALUES (90, 1)", "DELETE FROM shop.o WHERE id = 90")
	type result struct {
		done int
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		done, err := p.carry(context.WithoutCancel(p.t.Context()), plan, nil)
		ended <- result{done, err}
	}()
	await.Until(p.t, func() bool {
		list, err := p.c[onSource].Maps(p.t.Context(), "SHOW PROCESSLIST")
		return err == nil && slices.ContainsFunc(list, func(row map[string]string) bool {
			return strings.Contains(row["Info"], gtid) && row["Command"] == "Query"
		})
	}, "the repair waits for %s", gtid)
	do("COMMIT", "SET GTID_NEXT = 'AUTOMATIC'")
	if r := <-ended; !errors.Is(r.err, ErrSurprise) || r.done != 1 || !strings.Contains(r.err.Error(), "has "+gtid+" by now") {
		p.t.Errorf("committed by somebody else: got %d, %v", r.done, r.err)
	}
}

// race makes empty transactions of numbers that the source is about to give to its clients, which commit all the time: each is either empty, or refused.
func (p *pair) race() {
	p.t.Helper()
	uuid := p.text(onSource, "SELECT @@server_uuid")
	executed := func() uint64 {
		s, err := mysql.ParseGTIDSet(p.text(onSource, "SELECT @@GLOBAL.gtid_executed"))
		if err != nil {
			p.t.Fatal(err)
		}
		return s.Count()
	}
	before := executed()
	stop, ended := make(chan bool), make(chan uint64, 1)
	writer := sandboxtest.Connect(p.t, p.nodes[onSource])
	go func() {
		for n := uint64(0); ; n++ {
			select {
			case <-stop:
				ended <- n
				return
			default:
				if err := writer.Exec(context.WithoutCancel(p.t.Context()), "UPDATE shop.o SET v = v + 1 WHERE id = 1"); err != nil {
					p.t.Error(err)
				}
			}
		}
	}()
	empties, refusals := uint64(0), 0
	for round := 0; round < 200 && (empties < 5 || refusals < 5); round++ {
		s, _ := mysql.ParseGTIDSet(p.text(onSource, "SELECT @@GLOBAL.gtid_executed"))
		plan := Plan{Method: MethodEmpty, Replica: Pin{"replica", identity(p.c[onReplica].Server)}, Source: Pin{"source", identity(p.c[onSource].Server)}}
		g := mysql.GTID{Source: uuid, Number: 1}
		for s.Contains(g) {
			g.Number++
		}
		g.Number += uint64(round % 2 * 40) // the very next one, which the client may be faster to get, or one that it comes to soon
		plan.Steps = []Step{{Server: "source", Statement: append(p.c[onSource].Server.EmptyTransaction(g), p.c[onSource].Server.EndOfEmpty()), gtid: g, kind: stepEmpty}}
		switch done, err := p.carry(p.t.Context(), &plan, nil); {
		case err == nil && done == 1:
			empties++
		case errors.Is(err, ErrSurprise):
			refusals++
		default:
			p.t.Errorf("got %d, %v", done, err)
		}
	}
	close(stop)
	written := <-ended
	if got := executed() - before; got != written+empties || empties == 0 || refusals == 0 {
		p.t.Errorf("%d transactions more, by %d commits of a client and %d empty ones; %d were refused", got, written, empties, refusals)
	}
}

// TestRepairMariaDB: a replica forgets, and nothing that happens in the midst leaves it standing.
func TestRepairMariaDB(t *testing.T) {
	t.Parallel()
	p := newPair(t, "mariadb")
	p.run(onReplica, "SET GLOBAL gtid_strict_mode = OFF", "INSERT INTO shop.o VALUES (11, 1)", "DELETE FROM shop.o WHERE id = 11")
	p.run(onSource, "INSERT INTO shop.o VALUES (3, 1)", "INSERT INTO shop.o VALUES (4, 1)") // with the numbers that the replica used
	p.reach("1,2,3,4")
	id := p.text(onReplica, "SELECT @@server_id")
	v, r, _ := p.judge()
	if len(v.Parts) != 1 || !strings.HasPrefix(v.Parts[0].GTIDs, "0-"+id+"-") || v.Parts[0].Sure != Certain || !strings.Contains(strings.Join(v.Notes, " "), "gtid_strict_mode is OFF") {
		t.Fatalf("got %+v, want what server %s wrote", v, id)
	}
	if down, err := Judge(Question{Replica: r}); err != nil || len(down.Parts) != 1 || down.Parts[0].GTIDs != v.Parts[0].GTIDs || down.Parts[0].Sure != Likely {
		t.Errorf("with the source down: got %+v, %v", down, err)
	}
	plan := p.plan(equal)
	p.run(onSource, "INSERT INTO shop.o VALUES (5, 1)")
	p.reach("1,2,3,4,5")
	if now := p.plan(equal); len(plan.Same(now)) > 0 {
		t.Errorf("only positions have gone on: got %v", plan.Same(now))
	}
	stale := p.plan(equal)
	p.run(onReplica, "INSERT INTO shop.o VALUES (13, 1)", "DELETE FROM shop.o WHERE id = 13")
	if _, err := p.carry(t.Context(), stale, nil); !errors.Is(err, ErrSurprise) || !strings.Contains(err.Error(), "is as it was before") {
		t.Fatalf("another one since: got %v, want ErrSurprise", err)
	}
	p.run(onSource, "INSERT INTO shop.o VALUES (6, 1)")
	p.reach("1,2,3,4,5,6")
	if done, err := p.carry(t.Context(), p.plan(equal), nil); err != nil || done != len(plan.Steps) {
		t.Fatalf("got %d, %v", done, err)
	}
	p.clean(7, "1,2,3,4,5,6,7")
	p.run(onReplica, "SET GLOBAL gtid_strict_mode = ON", "CREATE DATABASE extra", "INSERT INTO shop.o VALUES (12, 1)", "DELETE FROM shop.o WHERE id = 12")
	p.run(onSource, "INSERT INTO shop.o VALUES (8, 1)")
	await.Until(t, func() bool {
		_, r, _ := p.judge()
		return len(r.Channels) == 1 && !r.Channels[0].SQLRunning
	}, "the replica stops at a number that it has used")
	if done, err := p.carry(t.Context(), p.plan(equal), nil); err != nil || done != len(plan.Steps) {
		t.Fatalf("got %d, %v", done, err)
	}
	p.clean(9, "1,2,3,4,5,6,7,8,9")
	p.run(onReplica, "STOP SLAVE", "INSERT INTO shop.o VALUES (14, 1)", "DELETE FROM shop.o WHERE id = 14") // somebody wants it to stand
	p.run(onSource, "INSERT INTO shop.o VALUES (10, 1)")
	if _, err := p.carry(t.Context(), p.plan(equal), nil); err != nil {
		t.Fatal(err)
	}
	if v, r, _ := p.judge(); len(v.Parts) > 0 || r.Channels[0].Status.IORunning != "No" || r.Channels[0].SQLRunning {
		t.Errorf("a replica that stood: got %+v, %+v, want it to stand, with nothing errant", v, r.Channels)
	}
	p.current()
	p.origins()
	p.acknowledges()
	p.deleted()
	p.purged()
}

// acknowledges: a replica is not stopped that the commits of its source wait for.
func (p *pair) acknowledges() {
	p.t.Helper()
	p.run(onSource, "SET GLOBAL rpl_semi_sync_master_timeout = 60000", "SET GLOBAL rpl_semi_sync_master_enabled = ON")
	p.run(onReplica, "STOP SLAVE IO_THREAD", "SET GLOBAL rpl_semi_sync_slave_enabled = ON", "START SLAVE IO_THREAD", "INSERT INTO shop.o VALUES (17, 1)", "DELETE FROM shop.o WHERE id = 17")
	await.Until(p.t, func() bool {
		v, r, s := p.judge()
		if !r.SemiSync.Replica.InForce || s.SemiSync.Source.Clients != 1 {
			return false
		}
		_, err := MakePlan(&v, &r, &s, equal, time.Now())
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "let another replica acknowledge first") {
			p.t.Errorf("got %v, want a refusal", err)
		}
		return true
	}, "the replica acknowledges")
	p.run(onReplica, "SET GLOBAL rpl_semi_sync_slave_enabled = OFF", "STOP SLAVE IO_THREAD", "START SLAVE IO_THREAD")
	p.run(onSource, "SET GLOBAL rpl_semi_sync_master_enabled = OFF")
	if _, err := p.carry(p.t.Context(), p.plan(equal), nil); err != nil {
		p.t.Fatal(err)
	}
}

// purge lets a server begin a new binary log, and removes the older ones.
func (p *pair) purge(on int) {
	p.t.Helper()
	await.Until(p.t, func() bool {
		p.run(on, "FLUSH BINARY LOGS")
		logs, err := mysql.Logs(p.t.Context(), p.c[on])
		if err != nil {
			p.t.Fatal(err)
		}
		p.run(on, "PURGE BINARY LOGS TO '"+logs[len(logs)-1].Name+"'")
		gone, err := mysql.GoneGTIDs(p.t.Context(), p.c[on])
		if err != nil {
			p.t.Fatal(err)
		}
		have, err := mysql.ParseGTIDSet(gone)
		now, nerr := mysql.ParseGTIDSet(p.text(on, "SELECT @@gtid_binlog_pos"))
		return err == nil && nerr == nil && have.Equal(now)
	}, "the older binary logs are gone")
}

// deleted: a domain that the source has deleted is not certainly errant on the replica, and goes there as it is told.
func (p *pair) deleted() {
	p.t.Helper()
	p.run(onSource, "SET gtid_domain_id = 5", "INSERT INTO shop.o VALUES (25, 1)", "SET gtid_domain_id = 0")
	await.Until(p.t, func() bool { return strings.Contains(p.text(onReplica, "SELECT @@gtid_binlog_state"), "5-") }, "the replica has the domain")
	p.purge(onSource)
	p.run(onSource, "FLUSH BINARY LOGS DELETE_DOMAIN_ID = (5)")
	p.purge(onSource)
	v, r, s := p.judge()
	if len(v.Parts) != 1 || v.Parts[0].Sure != Likely || !strings.HasPrefix(v.Parts[0].GTIDs, "5-") || !strings.Contains(v.Parts[0].Because, "DELETE_DOMAIN_ID") {
		p.t.Errorf("got %+v", v)
	}
	if _, err := MakePlan(&v, &r, &s, equal, time.Now()); !errors.Is(err, ErrRefused) {
		p.t.Errorf("got %v, want a refusal", err)
	}
	p.purge(onReplica)
	p.run(onReplica, "FLUSH BINARY LOGS DELETE_DOMAIN_ID = (5)")
	if v, _, _ := p.judge(); len(v.Parts) > 0 {
		p.t.Errorf("got %+v, want nothing", v)
	}
	p.run(onReplica, "STOP SLAVE", "SET GLOBAL gtid_slave_pos = '"+p.text(onReplica, "SELECT REGEXP_REPLACE(@@gtid_slave_pos, ',?5-[0-9]+-[0-9]+,?', '')")+"'", "START SLAVE")
}

// current: a replica that asks for what comes behind its own last transaction (MASTER_USE_GTID = current_pos), and which its source therefore refuses, replicates again.
func (p *pair) current() {
	p.t.Helper()
	p.run(onReplica, "CHANGE MASTER TO MASTER_USE_GTID = current_pos", "SET GLOBAL gtid_strict_mode = OFF", "INSERT INTO shop.o VALUES (18, 1)", "DELETE FROM shop.o WHERE id = 18", "START SLAVE")
	await.Until(p.t, func() bool {
		_, r, _ := p.judge()
		return len(r.Channels) == 1 && r.Channels[0].Status.IO.Number == errno.BinlogUnreadable
	}, "the source refuses the replica")
	if _, err := p.carry(p.t.Context(), p.plan(equal), nil); err != nil {
		p.t.Fatal(err)
	}
	p.clean(19, "1,2,3,4,5,6,7,8,9,10,19")
	p.run(onReplica, "STOP SLAVE", "CHANGE MASTER TO MASTER_USE_GTID = slave_pos")
}

// origins: after a repair the server says that it stands where it stands as a replica, though its log had transactions of another origin with a lower number.
func (p *pair) origins() {
	p.t.Helper()
	p.run(onReplica, "RESET MASTER", "SET GLOBAL gtid_binlog_state = '0-77-2,"+p.text(onReplica, "SELECT @@gtid_slave_pos")+"'", "START SLAVE")
	p.run(onSource, "RESET MASTER", "SET GLOBAL gtid_binlog_state = '0-77-2,"+p.text(onReplica, "SELECT @@gtid_slave_pos")+"'", "INSERT INTO shop.o VALUES (20, 1)")
	await.Until(p.t, func() bool { return p.text(onReplica, "SELECT COUNT(*) FROM shop.o WHERE id = 20") == "1" }, "the replica goes on")
	p.run(onReplica, "SET GLOBAL gtid_strict_mode = OFF", "INSERT INTO shop.o VALUES (15, 1)", "DELETE FROM shop.o WHERE id = 15")
	if _, err := p.carry(p.t.Context(), p.plan(equal), nil); err != nil {
		p.t.Fatal(err)
	}
	if log, stands := p.text(onReplica, "SELECT @@gtid_binlog_pos"), p.text(onReplica, "SELECT @@gtid_slave_pos"); log != stands || !strings.Contains(p.text(onReplica, "SELECT @@gtid_binlog_state"), "0-77-2") {
		p.t.Errorf("its log ends at %s, as a replica it is at %s, its state is %s", log, stands, p.text(onReplica, "SELECT @@gtid_binlog_state"))
	}
}

// purged: a replica whose source no longer has what it has received and not applied is not stopped, for it would have to fetch it again.
func (p *pair) purged() {
	p.t.Helper()
	p.run(onReplica, "STOP SLAVE SQL_THREAD", "INSERT INTO shop.o VALUES (16, 1)", "DELETE FROM shop.o WHERE id = 16")
	p.run(onSource, "INSERT INTO shop.o VALUES (30, 1)")
	await.Until(p.t, func() bool {
		_, r, s := p.judge()
		return len(r.Channels) == 1 && strings.Contains(s.Executed, r.Channels[0].Received) && r.Channels[0].Received != r.Position
	}, "the replica has received it")
	shown := p.plan(equal)
	if !strings.Contains(shown.Lost, "thrown away, and fetched again from source") {
		p.t.Errorf("got %q", shown.Lost)
	}
	p.purge(onSource)
	v, r, s := p.judge()
	if err := s.AskGone(p.t.Context(), p.c[onSource]); err != nil {
		p.t.Fatal(err)
	}
	if _, err := MakePlan(&v, &r, &s, equal, time.Now()); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "let it apply that first") {
		p.t.Errorf("got %v, want a refusal", err)
	}
	if _, err := p.carry(p.t.Context(), shown, nil); !errors.Is(err, ErrSurprise) {
		p.t.Errorf("a plan from before: got %v, want ErrSurprise", err)
	}
}

// TestAhead: a replica that has what its source is still committing, because another one has not acknowledged it, is ahead and not errant.
func TestAhead(t *testing.T) {
	t.Parallel()
	p := newPair(t, "mysql-9.7", "plugin_load_add=semisync_source.so")
	p.run(onSource, "SET GLOBAL rpl_semi_sync_source_timeout = 3600000", "SET GLOBAL rpl_semi_sync_source_wait_no_replica = ON", "SET GLOBAL rpl_semi_sync_source_enabled = ON")
	blocked := sandboxtest.Connect(t, p.nodes[onSource])
	ended := make(chan error, 1)
	go func() { ended <- blocked.Exec(context.WithoutCancel(t.Context()), "INSERT INTO shop.o VALUES (3, 3)") }()
	p.reach("1,2,3")
	v, _, _ := p.judge()
	uuid := p.text(onSource, "SELECT @@server_uuid")
	if len(v.Parts) != 1 || v.Parts[0].Kind != KindAhead || v.Parts[0].Sure != Certain || !strings.HasPrefix(v.Parts[0].GTIDs, uuid) {
		t.Errorf("got %+v, want one of %s that is ahead", v, uuid)
	}
	if plan := p.plan(equal); plan.Method != MethodNone || len(plan.Steps) > 0 {
		t.Errorf("got %+v, want nothing to repair", plan)
	}
	p.run(onSource, "SET GLOBAL rpl_semi_sync_source_enabled = OFF")
	if err := <-ended; err != nil {
		t.Errorf("the commit: %v", err)
	}
	if v, _, _ := p.judge(); len(v.Parts) > 0 {
		t.Errorf("when it is committed: got %+v, want nothing", v)
	}
}
