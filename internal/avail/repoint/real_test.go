package repoint_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/diagnose"
	"github.com/rissodb/risso/internal/avail/repoint"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/avail/topology/look"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// ledger writes rows to a table of a node, one after the other, and remembers which were acknowledged.
type ledger struct {
	stop  context.CancelFunc
	wait  sync.WaitGroup
	acked int
	err   error
}

func (s *servers) write(node int, table string) *ledger {
	ctx, cancel := context.WithCancel(s.t.Context())
	l := &ledger{stop: cancel}
	target := s.target(node)
	l.wait.Go(func() {
		c, err := mysql.Connect(s.t.Context(), target, nil)
		if err != nil {
			l.err = err
			return
		}
		defer c.Close()
		for ctx.Err() == nil {
			if l.err = c.Exec(s.t.Context(), fmt.Sprintf("INSERT INTO %s VALUES (%d, REPEAT('x', 100))", table, l.acked+1)); l.err != nil {
				return
			}
			l.acked++
			_ = delay.For(ctx, s.pace)
		}
	})
	return l
}

// end stops it, and wants all that was acknowledged once on every node.
func (s *servers) end(l *ledger) {
	s.t.Helper()
	l.stop()
	l.wait.Wait()
	if l.err != nil || l.acked == 0 {
		s.t.Fatalf("%d were written: %v", l.acked, l.err)
	}
	s.level("d.ledger")
	for i, c := range s.conns {
		got, err := c.Text(s.t.Context(), "SELECT CONCAT(COUNT(*), ' ', MAX(id)) FROM d.ledger")
		if want := fmt.Sprintf("%d %d", l.acked, l.acked); err != nil || got != want {
			s.t.Errorf("node%d has %s, %v; acknowledged were %s", i, got, err, want)
		}
	}
	s.t.Logf("%d acknowledged, all of them everywhere once", l.acked)
}

// TestMove: by GTID, below a sibling and back, while the primary is written to; and what is refused.
func TestMove(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			s := up(t, 2, spec)
			s.do(0, "CREATE DATABASE d", "CREATE TABLE d.ledger (id INT PRIMARY KEY, v VARCHAR(200)) ENGINE=InnoDB")
			l := s.write(0, "d.ledger")
			m := s.move(2, 1)
			t.Log(strings.Join(m.Plan.Words(), "\n"), m.Notes)
			s.refused(1, 2, "ring")
			s.refused(2, 1, "there")
			if m := s.move(2, 0); m.Undo != "risso replica move node2 --below node1" {
				t.Errorf("undo is %q", m.Undo)
			}
			s.detached()
			s.end(l)
			s.notApplied()
			s.delayed()
			s.skipped()
			s.skippedAlone()
			s.purged()
			s.errant()
		})
	}
}

// detached: a replica that is detached receives nothing, and is attached again.
func (s *servers) detached() {
	top, index := s.look()
	m, err := s.r.Detach(s.t.Context(), top, index[2], nil)
	if err == nil {
		err = m.Do(s.t.Context())
	}
	if was, is := repoint.Attached(s.channel(2).Status.Source); err != nil || !is || was != s.address(0) {
		s.t.Fatalf("detach: %v, and it replicates from %s", err, s.channel(2).Status.Source)
	}
	s.nothingLeft()
	top, _ = s.look()
	marked := false
	for _, d := range diagnose.Diagnose(top) {
		marked = marked || d.Code == "repl.stopped:detached" && strings.Contains(d.Next, "risso replica attach node2")
		if d.Nodes[0] == "node2" && strings.Contains(d.Statements, "START ") || strings.Contains(d.What, ".invalid") {
			s.t.Errorf("of a detached replica: got %+v", d)
		}
	}
	if !marked {
		s.t.Error("a detached replica is not diagnosed as such")
	}
	if m := s.move(2, 0); m.Undo != "risso replica detach node2" {
		s.t.Errorf("undo is %q", m.Undo)
	}
}

// notApplied: what was received and not applied is not thrown away.
func (s *servers) notApplied() {
	s.stop(2, mysql.Applier)
	s.do(0, "CREATE TABLE d.later (id INT PRIMARY KEY)")
	s.awaits(2, "that it receives", func() bool { return s.channel(2).Status.Unapplied > 0 })
	s.refused(2, 1, "not_applied")
	s.start(2, mysql.Applier)
	s.level("d.later")
}

func (s *servers) awaits(node int, what string, is func() bool) {
	s.t.Helper()
	await.Until(s.t, is, "%s, node%d", what, node)
}

// delayed: a replica stays behind on purpose, and no longer; nothing is lost by it.
func (s *servers) delayed() {
	for _, seconds := range []int{3600, 0} {
		top, index := s.look()
		d, err := s.r.Delay(s.t.Context(), top, index[2], nil, seconds)
		if err == nil {
			err = d.Do(s.t.Context())
		}
		if ch := s.channel(2); err != nil || ch.Delay != seconds || !ch.SQLRunning || ch.Status.IORunning == "No" {
			s.t.Fatalf("delay of %d: %v, %+v", seconds, err, ch)
		}
		s.nothingLeft()
		if seconds == 0 {
			break
		}
		s.do(0, "INSERT INTO d.later VALUES (1)")
		s.awaits(2, "that it receives", func() bool { return s.channel(2).Status.Unapplied > 0 })
		s.refused(2, 1, "delayed")
	}
	s.level("d.later")
}

// skipped: one transaction is passed over, and said, and no more than one.
func (s *servers) skipped() {
	s.writable(2)
	s.stop(2, mysql.Applier)
	s.do(2, "SET sql_log_bin = 0", "INSERT INTO d.later VALUES (7), (8)", "SET sql_log_bin = 1")
	s.do(0, "INSERT INTO d.later VALUES (7)", "INSERT INTO d.later VALUES (8)", "INSERT INTO d.later VALUES (9)")
	s.start(2, mysql.Applier)
	for i := range 2 {
		s.awaits(2, "that it stops", func() bool { return s.channel(2).Status.SQL.Text != "" })
		s.refused(2, 1, "broken")
		if i == 1 {
			s.stop(2, mysql.Receiver) // on purpose: it stays so, or nothing is done
		}
		top, index := s.look()
		k, err := s.r.Skip(s.t.Context(), top, index[2], nil)
		if i == 1 && s.conns[2].Server.GTIDsByDomain() {
			if !errors.Is(err, repoint.ErrRefused) || !strings.Contains(err.Error(), "throws away") || s.channel(2).Status.IORunning != "No" {
				s.t.Errorf("a MariaDB of which nothing runs: got %v, want that it is refused", err)
			}
			s.start(2, mysql.Receiver) // as it advises
			s.start(2, mysql.Applier)
			s.awaits(2, "that it stops", func() bool { return s.channel(2).Status.SQL.Text != "" })
			top, index = s.look()
			k, err = s.r.Skip(s.t.Context(), top, index[2], nil)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if got := strings.Join(k.Would, "; "); got != "INSERT into d.later" {
			s.t.Errorf("it would have changed %q, %s; want INSERT into d.later", got, k.WouldWhy)
		}
		if err := k.Do(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		s.t.Logf("skipped %s: %s; %v", k.What, k.After, k.Plan.Words())
		if again := strings.Contains(k.After, "stopped again"); i == 1 && again {
			s.t.Errorf("after the %d.: %s", i+1, k.After)
		}
	}
	if got := s.channel(2).Status.IORunning; !s.conns[2].Server.GTIDsByDomain() && got != "No" {
		s.t.Errorf("receiving was stopped before, and is %s", got)
	}
	s.start(2, mysql.Receiver)
	top, index := s.look()
	if _, err := s.r.Skip(s.t.Context(), top, index[2], nil); !errors.Is(err, repoint.ErrRefused) {
		s.t.Errorf("nothing to skip: got %v, want ErrRefused", err)
	}
	s.level("d.later")
}

// skippedAlone: a MariaDB that applies two domains with several threads refuses to count; with one thread it stops at the same transaction, and passes over it
// and no more.
func (s *servers) skippedAlone() {
	replica := s.conns[2]
	if !replica.Server.GTIDsByDomain() {
		return
	}
	s.do(0, "SET gtid_domain_id = 7", "INSERT INTO d.later VALUES (120)", "SET gtid_domain_id = 0")
	s.level("d.later")
	s.do(2, "STOP SLAVE", "SET GLOBAL slave_parallel_threads = 4", "SET sql_log_bin = 0", "INSERT INTO d.later VALUES (121), (122)", "SET sql_log_bin = 1", "START SLAVE")
	s.do(0, "INSERT INTO d.later VALUES (121)", "SET gtid_domain_id = 7", "INSERT INTO d.later VALUES (130)", "SET gtid_domain_id = 0", "INSERT INTO d.later VALUES (122)", "INSERT INTO d.later VALUES (123)")
	stops := func() bool { ch := s.channel(2); return ch.Status.SQL.Text != "" && !ch.SQLRunning }
	s.awaits(2, "that it stops", stops)
	if err := replica.Exec(s.t.Context(), "SET GLOBAL sql_slave_skip_counter = 1"); mysql.ErrorNumber(err) != 1966 {
		s.t.Errorf("to count: got %v, want error 1966", err)
	}
	top, index := s.look()
	_, err := s.r.Skip(s.t.Context(), top, index[2], nil)
	position, perr := replica.Text(s.t.Context(), "SELECT @@GLOBAL.gtid_slave_pos")
	if perr != nil || !errors.Is(err, repoint.ErrRefused) || !strings.Contains(err.Error(), "1966") {
		s.t.Fatalf("several threads: got %v, %v, want that skip refuses", err, perr)
	}
	remedy := replica.Server.GoOn(s.channel(2).Status, mysql.ReplicaSettings{ApplyMode: "IDEMPOTENT", Threads: 4, Position: position}) // it does not propose to overwrite then
	s.t.Log(remedy.Statements)
	s.do(2, strings.Split(remedy.Statements, "; ")...)
	for range 2 {
		s.awaits(2, "that it stops again", stops)
		top, index := s.look()
		k, err := s.r.Skip(s.t.Context(), top, index[2], nil)
		if err == nil {
			err = k.Do(s.t.Context())
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	s.level("d.later")
}

// purged: a source that no longer has what the replica needs.
func (s *servers) purged() {
	s.stop(2, mysql.Receiver)
	s.do(0, "INSERT INTO d.later VALUES (20)")
	s.awaits(1, "the row", func() bool {
		n, _ := s.conns[1].Text(s.t.Context(), "SELECT COUNT(*) FROM d.later WHERE id = 20")
		return n == "1"
	})
	s.do(1, "FLUSH BINARY LOGS")
	logs, err := mysql.Logs(s.t.Context(), s.conns[1])
	if err != nil {
		s.t.Fatal(err)
	}
	s.awaits(1, "that its old logs can go", func() bool {
		_ = s.conns[1].Exec(s.t.Context(), "PURGE BINARY LOGS TO '"+logs[len(logs)-1].Name+"'")
		left, err := mysql.Logs(s.t.Context(), s.conns[1])
		return err == nil && len(left) == 1
	})
	s.refused(2, 1, "purged")
	s.start(2, mysql.Receiver)
	s.level("d.later")
}

// errant: a replica with transactions of its own; on MySQL until the primary has them, as empty ones.
func (s *servers) errant() {
	s.do(2, "INSERT INTO d.later VALUES (100)")
	s.refused(2, 1, "errant")
	top, index := s.look()
	if m, err := s.r.Detach(s.t.Context(), top, index[2], nil); err != nil || !strings.Contains(strings.Join(m.Notes, "; "), "would refuse to attach it again") {
		s.t.Errorf("detach of one with errant transactions: got %+v, %v; want a note that it could not be attached again", m, err)
	}
	if s.conns[0].Server.GTIDsByDomain() {
		return
	}
	uuid, err := s.conns[2].Text(s.t.Context(), "SELECT @@server_uuid")
	if err != nil {
		s.t.Fatal(err)
	}
	s.do(0, "SET GTID_NEXT = '"+uuid+":1'", "BEGIN", "COMMIT", "SET GTID_NEXT = 'AUTOMATIC'")
	s.move(2, 1)
}

// byPosition lets a node find its place by file and position, and no longer by GTID.
func (s *servers) byPosition(node int) {
	s.t.Helper()
	c := s.conns[node].Server
	s.do(node, c.StopReplica(""))
	ch := s.channel(node)
	change := c.Point("", mysql.Pointing{Log: ch.Status.Log, Pos: ch.Status.Pos})
	switch { // MariaDB does so by itself
	case strings.Contains(change, "SOURCE_LOG_FILE"):
		change += ", SOURCE_AUTO_POSITION = 0"
	case !c.GTIDsByDomain():
		change += ", MASTER_AUTO_POSITION = 0"
	}
	s.do(node, change, c.StartReplica(""))
	s.awaits(node, "that it replicates", func() bool { ch := s.channel(node); return ch.IORunning && ch.SQLRunning && !ch.GTID })
}

// TestPositions: without GTIDs a replica goes below its sibling, and up again, by positions that are matched; nothing is lost, and nothing twice. What cannot be proven
// is refused.
func TestPositions(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			s := up(t, 3, spec)
			s.do(0, "CREATE DATABASE d", "CREATE TABLE d.ledger (id INT PRIMARY KEY, v VARCHAR(200)) ENGINE=InnoDB")
			for i := 1; i < 4; i++ {
				s.byPosition(i)
			}
			l := s.write(0, "d.ledger")
			m := s.move(2, 1)
			t.Log(strings.Join(m.Plan.Words(), "\n"), m.Notes)
			s.refused(3, 2, "position")
			m = s.move(2, 0)
			t.Log(strings.Join(m.Plan.Words(), "\n"), m.Notes)
			s.detached()
			if s.channel(1).Status.IORunning != "Yes" || !s.channel(1).SQLRunning || s.channel(2).GTID {
				t.Errorf("got %+v, want that all run as they did", s.channel(1))
			}
			s.end(l)
			s.kill(3, 1, "stands where") // node1 stands still by it, too
			for _, node := range []int{1, 3} {
				if back, err := s.r.Back(t.Context(), s.target(node), false); err != nil || len(back) != 1 || !s.channel(node).SQLRunning || s.channel(node).Status.IORunning == "No" {
					t.Errorf("node%d: got %v, %v, %+v; want that it replicates again", node, back, err, s.channel(node).Status)
				}
			}
			s.nothingLeft()
			s.noWayBack()
			s.lostAnchor()
		})
	}
}

// noWayBack: somebody lets the replica apply from its new source before the move does, so that its old position is lost. It cannot go back, and is not started where it
// points, as if it could.
func (s *servers) noWayBack() {
	m, err := s.prepare(2, 1)
	if err != nil {
		s.t.Fatal(err)
	}
	broken := errors.New("broken off")
	at := len(m.Plan) - 3
	receive := m.Plan[at].Do
	m.Plan[at].Do = func(ctx context.Context) error {
		if err := receive(ctx); err != nil {
			return err
		}
		was := s.channel(2).Status.Pos
		s.do(0, "INSERT INTO d.ledger VALUES (1000000, 'x')")
		s.start(2, mysql.Applier)
		s.awaits(2, "that it applies", func() bool { return s.channel(2).Status.Pos > was })
		s.stop(2, mysql.Applier)
		return broken
	}
	err = m.Do(s.t.Context())
	ch := s.channel(2)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "position in the log") || !strings.Contains(err.Error(), "risso replica back") || ch.SQLRunning || ch.Status.Source != s.address(1) {
		s.t.Errorf("it cannot go back: got %v, %+v; want that this is said, and that it does not apply", err, ch.Status)
	}
	left, _ := filepath.Glob(filepath.Join(s.r.Dir, "*.json"))
	if len(left) != 2 {
		s.t.Errorf("got the journals %v, want both", left)
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil {
			s.t.Fatal(err)
		}
	}
	s.start(2, mysql.Applier)
	s.level("d.ledger")
	s.move(2, 0)
}

// lostAnchor: the server that stood still cannot be started again, which is said; the replica goes back.
func (s *servers) lostAnchor() {
	m, err := s.prepare(2, 1)
	if err != nil {
		s.t.Fatal(err)
	}
	for i, step := range m.Plan {
		if strings.HasPrefix(step.What, "start") {
			m.Plan[i].Do = func(ctx context.Context) error {
				c := s.conns[1].Server
				s.do(1, c.StopReplica(""), strings.Replace(c.StopReplica(""), "STOP", "RESET", 1)+" ALL")
				return step.Do(ctx)
			}
		}
	}
	err = m.Do(s.t.Context())
	ch := s.channel(2)
	if err == nil || !strings.Contains(err.Error(), "risso replica back") || strings.Contains(err.Error(), "as it was before") || ch.Status.Source != s.address(0) || !ch.SQLRunning || ch.Status.IORunning == "No" {
		s.t.Errorf("an anchor that cannot be started: got %v, %+v; want that it is said, and that the replica replicates as before", err, ch.Status)
	}
}

// TestSeveralSources: of a replica with two sources one channel is named and goes elsewhere; the other one goes on as it did.
func TestSeveralSources(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			s := up(t, 3, spec)
			east := s.conns[3].Server
			s.do(0, "CREATE DATABASE d", "CREATE TABLE d.ledger (id INT PRIMARY KEY, v VARCHAR(200)) ENGINE=InnoDB")
			s.level("d.ledger")
			s.do(3, east.StopReplica(""), strings.Replace(east.StopReplica(""), "STOP", "RESET", 1)+" ALL")
			s.writable(3)
			channel, words := "east", "SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %d, SOURCE_USER = 'risso', SOURCE_PASSWORD = '%s', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1 FOR CHANNEL 'east'"
			head := "CHANGE REPLICATION SOURCE TO "
			if east.GTIDsByDomain() {
				s.do(3, "SET GLOBAL gtid_domain_id = 7", "SET SESSION gtid_domain_id = 7")
				head, words = "CHANGE MASTER 'east' TO ", "MASTER_HOST = '127.0.0.1', MASTER_PORT = %d, MASTER_USER = 'risso', MASTER_PASSWORD = '%s', MASTER_USE_GTID = slave_pos"
			}
			password, err := s.box.Password()
			if err != nil {
				t.Fatal(err)
			}
			s.do(2, head+fmt.Sprintf(words, s.box.Nodes[3].Port, password), east.StartReplica(channel))
			s.do(3, "CREATE DATABASE e", "CREATE TABLE e.ledger (id INT PRIMARY KEY, v VARCHAR(200)) ENGINE=InnoDB", "CREATE TABLE e.t (id INT PRIMARY KEY)")
			has := func(query string) bool {
				_, err := s.conns[2].Text(t.Context(), query)
				return err == nil
			}
			s.awaits(2, "the table of its other source", func() bool { return has("SELECT id FROM e.t") })
			top, index := s.look()
			q := repoint.Question{Topology: top, Replica: index[2], Below: index[1]}
			if _, err := s.r.Prepare(t.Context(), q); !errors.Is(err, repoint.ErrRefused) || !strings.Contains(err.Error(), "several channels") {
				t.Errorf("no channel is named: got %v, want that it is refused", err)
			}
			first := ""
			q.Channel = &first
			m, err := s.r.Prepare(t.Context(), q)
			l := s.write(3, "e.ledger") // what comes from there meanwhile is not waited for
			if err == nil {
				err = m.Do(t.Context())
			}
			if l.stop(); err != nil {
				t.Fatal(err)
			}
			if l.wait.Wait(); l.err != nil || l.acked == 0 {
				t.Errorf("the other source was written to %d times: %v", l.acked, l.err)
			}
			s.do(0, "CREATE TABLE d.later (id INT PRIMARY KEY)")
			s.do(3, "CREATE TABLE e.later (id INT PRIMARY KEY)")
			s.awaits(2, "what both write", func() bool { return has("SELECT id FROM d.later") && has("SELECT id FROM e.later") })
			list, err := read.ReplicaChannels(t.Context(), s.conns[2])
			if err != nil || len(list) != 2 {
				t.Fatalf("channels: %v, %v", list, err)
			}
			for _, ch := range list {
				want := s.address(1)
				if ch.Name == channel {
					want = s.address(3)
				}
				if ch.Status.Source != want || !ch.IORunning || !ch.SQLRunning {
					t.Errorf("channel %q: got %+v, want that it replicates from %s", ch.Name, ch.Status, want)
				}
			}
			s.nothingLeft()
		})
	}
}

// TestCutOff: Risso is killed in the midst of a move. What it left is known, nothing else is done to that replica, and it is given back; then the move succeeds.
func TestCutOff(t *testing.T) {
	if os.Getenv("RISSO_TEST_REPLICA_DSN") != "" {
		cutOff(t)
		return
	}
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			s := up(t, 2, spec)
			s.pace = 20 * time.Millisecond // its replicas are to be level soon, several times
			s.do(0, "CREATE DATABASE d", "CREATE TABLE d.ledger (id INT PRIMARY KEY, v VARCHAR(200)) ENGINE=InnoDB")
			l := s.write(0, "d.ledger")
			for _, step := range []string{"CHANGE", "SQL_THREAD"} { // with nothing changed but stopped; and pointed elsewhere
				s.kill(2, 1, step)
				if _, err := s.prepare(2, 1); !errors.Is(err, repoint.ErrBusy) || !strings.Contains(err.Error(), "risso replica back") {
					t.Errorf("killed before %s, then again: got %v, want ErrBusy and the command", step, err)
				}
				if got := s.channel(2); got.SQLRunning {
					t.Errorf("killed before %s: %+v, want that it stands still", step, got.Status)
				}
				would, err := s.r.Back(t.Context(), s.target(2), true)
				if err != nil || len(would) == 0 || s.channel(2).SQLRunning {
					t.Errorf("what would be given back: %v, %v", would, err)
				}
				back, err := s.r.Back(t.Context(), s.target(2), false)
				if got := s.channel(2); err != nil || len(back) != len(would) || got.Status.Source != s.address(0) || !got.SQLRunning || got.Status.IORunning == "No" {
					t.Fatalf("given back: %v, %v, %+v; want that it replicates from node0", back, err, got.Status)
				}
				t.Log(would)
				s.nothingLeft()
			}
			s.move(2, 1)
			s.end(l)
			s.refusedKey()
		})
	}
}

// refusedKey: the new source refuses the account when it connects: the replica goes back by itself.
func (s *servers) refusedKey() {
	s.t.Helper()
	s.r.Wait = 5 * time.Second
	top, index := s.look()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	address := closed.Addr().String()
	closed.Close()
	m, err := s.r.Prepare(s.t.Context(), repoint.Question{Topology: top, Replica: index[2], Below: index[0], As: address})
	if err != nil {
		s.t.Fatal(err)
	}
	err = m.Do(s.t.Context())
	got := s.channel(2)
	s.t.Log(err)
	if !errors.Is(err, repoint.ErrSurprise) || !strings.Contains(err.Error(), "is as it was before") || got.Status.Source != s.address(1) || !got.SQLRunning {
		s.t.Errorf("nothing listens there: got %v, %+v; want that it is as before", err, got.Status)
	}
	s.nothingLeft()
}

// kill begins a move in another process, and kills that before a step.
func (s *servers) kill(node, below int, step string) {
	s.t.Helper()
	password, err := s.box.Password()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestCutOff$")
	cmd.Env = append(os.Environ(), "RISSO_TEST_REPLICA_DSN=risso:"+password+"@tcp("+s.address(0)+")/", "RISSO_TEST_REPLICA_DIR="+s.r.Dir, "RISSO_TEST_REPLICA_STEP="+step,
		"RISSO_TEST_REPLICA_NODE="+s.address(node), "RISSO_TEST_REPLICA_BELOW="+s.address(below))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "stands before it" {
		s.t.Log(lines.Text())
	}
	if err := cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	_ = cmd.Wait()
}

// cutOff is the process that is killed.
func cutOff(t *testing.T) {
	target, err := mysql.ParseTarget(os.Getenv("RISSO_TEST_REPLICA_DSN"))
	if err != nil {
		t.Fatal(err)
	}
	node, below := os.Getenv("RISSO_TEST_REPLICA_NODE"), os.Getenv("RISSO_TEST_REPLICA_BELOW")
	top := look.Search([]mysql.Target{target}).Discover(t.Context(), []topology.Start{{Address: target.Address()}, {Address: node}, {Address: below}})
	r := &repoint.Repointer{Dir: os.Getenv("RISSO_TEST_REPLICA_DIR"), Wait: time.Minute, Target: target.WithAddress, Say: func(what string) {
		if strings.Contains(what, os.Getenv("RISSO_TEST_REPLICA_STEP")) {
			fmt.Println("stands before it")
			<-t.Context().Done()
		}
	}}
	m, err := r.Prepare(t.Context(), repoint.Question{Topology: top, Replica: top.Find(node), Below: top.Find(below)})
	if err == nil {
		err = m.Do(t.Context())
	}
	t.Fatalf("it went on: %v", err)
}
