package look_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/diagnose"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/avail/topology/look"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// diagnosed is what is diagnosed from all nodes.
func (s *servers) diagnosed(change ...func(*topology.Search)) []diagnose.Diagnosis {
	var targets []mysql.Target
	var starts []topology.Start
	for n := range s.box.Nodes {
		t := s.target(n)
		targets, starts = append(targets, t), append(starts, topology.Start{Name: fmt.Sprintf("node%d", n), Address: t.Address()})
	}
	search := look.Search(targets)
	for _, f := range change {
		f(search)
	}
	return diagnose.Diagnose(search.Discover(s.t.Context(), starts))
}

// holds waits until a code holds of a node, and returns the diagnosis.
func (s *servers) holds(code string, node int, change ...func(*topology.Search)) diagnose.Diagnosis {
	s.t.Helper()
	return s.holdsOf(code, fmt.Sprintf("node%d", node), change...)
}

// holdsOf is holds of a server that has another name.
func (s *servers) holdsOf(code, name string, change ...func(*topology.Search)) (d diagnose.Diagnosis) {
	s.t.Helper()
	var found []diagnose.Diagnosis
	defer func() {
		if s.t.Failed() {
			s.t.Logf("found: %+v", found)
		}
	}()
	await.Until(s.t, func() bool {
		found = s.diagnosed(change...)
		i := slices.IndexFunc(found, func(d diagnose.Diagnosis) bool { return d.Code == code && d.Nodes[0] == name })
		if i >= 0 {
			d = found[i]
		}
		return i >= 0
	}, "%s of %s", code, name)
	return d
}

// over waits until a code no longer holds of a node.
func (s *servers) over(code string, node int) {
	s.t.Helper()
	var found []diagnose.Diagnosis
	defer func() {
		if s.t.Failed() {
			s.t.Logf("found: %+v", found)
		}
	}()
	await.Until(s.t, func() bool {
		found = s.diagnosed()
		return !slices.ContainsFunc(found, func(d diagnose.Diagnosis) bool { return d.Code == code && d.Nodes[0] == fmt.Sprintf("node%d", node) })
	}, "%s of node%d is over", code, node)
}

// remedied waits until a code holds, does what it says, and waits until it no longer does.
func (s *servers) remedied(code string, node int) {
	s.t.Helper()
	d := s.holds(code, node)
	if d.Statements == "" {
		s.t.Fatalf("%s has no statements: %+v", code, d)
	}
	s.run(d)
	s.over(code, node)
}

// run runs the statements of a diagnosis where it says.
func (s *servers) run(d diagnose.Diagnosis) {
	s.t.Helper()
	on := 0
	if _, err := fmt.Sscanf(d.On, "node%d", &on); err != nil {
		s.t.Fatalf("%s is to be mended on %q", d.Code, d.On)
	}
	for statement := range strings.SplitSeq(d.Statements, "; ") {
		if strings.HasPrefix(statement, "SELECT") {
			if _, err := s.conns[on].Maps(s.t.Context(), statement); err != nil {
				s.t.Fatalf("%s: %s: %v", d.Code, statement, err)
			}
			continue
		}
		s.do(on, statement)
	}
}

// change is CHANGE MASTER TO or CHANGE REPLICATION SOURCE TO with options in old words.
func (s *servers) change(node int, options string) {
	s.t.Helper()
	s.replica(node, "STOP", "")
	if s.conns[node].Server.KnowsSlaveWords() {
		s.do(node, "CHANGE MASTER TO "+options)
	} else {
		s.do(node, "CHANGE REPLICATION SOURCE TO "+strings.ReplaceAll(options, "MASTER", "SOURCE"))
	}
}

// settled waits until the replica has all that its source has.
func (s *servers) settled() {
	s.t.Helper()
	await.Until(s.t, func() bool {
		top := s.discover(0)
		return len(top.Links) == len(s.box.Nodes)-1 && !slices.ContainsFunc(top.Links, func(l topology.Link) bool {
			return l.Channel == nil || !l.Channel.Receiving() || !l.Channel.Applying() || l.Missing == nil || *l.Missing > 0
		})
	}, "the replicas have all")
}

// unlogged runs statements on a replica as if it had lost something.
func (s *servers) unlogged(node int, statements ...string) {
	s.t.Helper()
	if s.conns[node].Server.ReadOnlyVariable() == "super_read_only" {
		s.do(node, "SET GLOBAL super_read_only = OFF")
	}
	s.do(node, "SET sql_log_bin = 0")
	s.do(node, statements...)
	s.do(node, "SET sql_log_bin = 1")
}

// TestDiagnoses makes what can be made on real servers, and does what each diagnosis says: then it is over.
func TestDiagnoses(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			s := up(t, 2, spec)
			s.do(0, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, v INT) ENGINE=InnoDB", "INSERT INTO shop.orders VALUES (1, 1), (2, 2)")
			s.settled()
			s.writersDiagnosed()
			if spec == "mariadb" { // a MySQL ends, unless it is set otherwise
				s.closedLogDiagnosed()
			}
			if spec != "mysql-5.7" { // which takes no second channel with its default repositories
				s.leftOverDiagnosed()
			}
			s.settingsDiagnosed()
			s.stopsDiagnosed()
			s.sessionsDiagnosed()
			s.identitiesDiagnosed()
			if spec == "mariadb" {
				s.semiSyncDiagnosed()
			}
			s.filtersDiagnosed()
			s.ringDiagnosed()
			s.partingDiagnosed()
			s.lossDiagnosed()
		})
	}
}

func (s *servers) writersDiagnosed() {
	s.t.Helper()
	s.do(1, "SET GLOBAL read_only = OFF")
	s.remedied("repl.writable", 1)
	s.do(0, "SET GLOBAL read_only = ON")
	s.do(1, "SET GLOBAL read_only = OFF")
	s.holds("primary.read_only", 0)
	s.do(1, "SET GLOBAL read_only = ON")
	s.remedied("primary.none", 0)
}

// leftOverDiagnosed: a primary with a channel from a server that is gone is told so, and what removes the channel does, whatever its name is and however quotes are read.
func (s *servers) leftOverDiagnosed() {
	s.t.Helper()
	switch server := s.conns[0].Server; {
	case server.MariaDB():
		s.do(0, "CHANGE MASTER 'o''ld' TO MASTER_HOST = 'nosuch.invalid', MASTER_USER = 'x'")
	case server.KnowsSlaveWords():
		s.do(0, "CHANGE MASTER TO MASTER_HOST = 'nosuch.invalid', MASTER_USER = 'x' FOR CHANNEL 'o''ld'")
	default:
		s.do(0, "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'nosuch.invalid', SOURCE_USER = 'x' FOR CHANNEL 'o''ld'")
	}
	d := s.holds("repl.stopped:left_over", 0)
	for _, other := range s.diagnosed() {
		if other.Code == "repl.writable" || other.Code == "primary.unknown" || strings.HasPrefix(other.Statements, "START") {
			s.t.Errorf("beside a channel that is left over: %+v", other)
		}
	}
	_, remedy, is := strings.Cut(d.Next, "on node0: ")
	s.do(0, "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES'", s.conns[0].Server.StopReplica("o'ld"))
	if remedy, removes := strings.CutSuffix(remedy, " removes it"); is && removes {
		s.do(0, remedy)
	}
	s.do(0, "SET SESSION sql_mode = DEFAULT")
	s.over("repl.stopped:left_over", 0)
	s.settled()
}

func (s *servers) settingsDiagnosed() {
	s.t.Helper()
	server := s.conns[0].Server
	s.do(0, "SET GLOBAL sync_binlog = 0", "SET GLOBAL innodb_flush_log_at_trx_commit = 2", "SET GLOBAL binlog_format = STATEMENT")
	s.do(1, "SET GLOBAL "+server.ApplyModeVariable()+" = 'IDEMPOTENT'", "SET GLOBAL binlog_row_image = MINIMAL", "SET GLOBAL binlog_checksum = NONE")
	for _, c := range []struct {
		code string
		node int
	}{{"sync_binlog", 0}, {"innodb_flush_log_at_trx_commit", 0}, {"binlog_format", 0}, {"exec_mode", 1}, {"binlog_row_image", 1}, {"binlog_checksum", 1}} {
		s.remedied("repl.config:"+c.code, c.node)
	}
	if !server.MariaDB() {
		s.do(1, server.StopThread("", mysql.Receiver), strings.NewReplacer("86400", "10").Replace(server.Point("", mysql.Pointing{Lasting: true})), server.StartThread("", mysql.Receiver))
		s.remedied("repl.config:connect_tries", 1)
		s.do(0, "SET GLOBAL binlog_error_action = IGNORE_ERROR")
		s.remedied("repl.config:binlog_error_action", 0)
	}
	if server.GTIDsByDomain() {
		s.do(1, "SET GLOBAL gtid_strict_mode = OFF")
		s.remedied("repl.config:gtid_strict_mode", 1)
		s.change(1, "MASTER_USE_GTID = no")
	} else {
		s.change(1, "MASTER_AUTO_POSITION = 0")
		s.do(1, "SET GLOBAL offline_mode = ON")
		s.replica(1, "START", "")
		s.remedied("server.offline", 1)
	}
	if server.GTIDsByDomain() {
		s.replica(1, "START", "")
	}
	s.remedied("repl.position", 1)
	s.change(1, "MASTER_DELAY = 3600")
	s.replica(1, "START", "")
	s.holds("repl.delayed", 1)
	s.change(1, "MASTER_DELAY = 0")
	s.replica(1, "START", "")
	s.over("repl.delayed", 1)
}

func (s *servers) stopsDiagnosed() {
	s.t.Helper()
	s.replica(1, "STOP", "SQL_THREAD")
	s.remedied("repl.stopped:by_command", 1)
	s.replica(1, "STOP", "IO_THREAD")
	s.remedied("repl.stopped:by_command", 1)
	s.replica(1, "STOP", "")
	s.replica(2, "STOP", "")
	s.holds("primary.no_replica_runs", 0)
	s.remedied("repl.stopped:by_command", 1)
	s.remedied("repl.stopped:by_command", 2)
	s.over("primary.no_replica_runs", 0)

	s.unlogged(1, "INSERT INTO shop.orders (id, v) VALUES (10, 0)")
	s.do(0, "INSERT INTO shop.orders (id, v) VALUES (10, 10)")
	s.remedied("repl.stopped:duplicate_row", 1)
	s.unlogged(1, "DELETE FROM shop.orders WHERE id = 2")
	s.do(0, "UPDATE shop.orders SET v = 3 WHERE id = 2")
	s.remedied("repl.stopped:row_missing", 1)
	s.unlogged(1, "ALTER TABLE shop.orders ADD w INT")
	s.do(0, "ALTER TABLE shop.orders ADD w INT", "CREATE TABLE shop.extra (id INT PRIMARY KEY)")
	s.remedied("repl.stopped:object_exists", 1)
	s.settled()
	s.unlogged(1, "DROP TABLE shop.extra")
	s.do(0, "INSERT INTO shop.extra VALUES (1)")
	d := s.holds("repl.stopped:object_missing", 1)
	_, start, _ := strings.Cut(d.Next, "then start the replica: ")
	s.unlogged(1, "CREATE TABLE shop.extra (id INT PRIMARY KEY)")
	s.do(1, start)
	s.over("repl.stopped:object_missing", 1)

	s.relayLogDiagnosed()
	password, err := s.box.Password()
	if err != nil {
		s.t.Fatal(err)
	}
	s.change(1, "MASTER_PASSWORD = 'wrong'")
	s.replica(1, "START", "")
	s.holds("repl.stopped:login", 1)
	s.change(1, "MASTER_PASSWORD = "+mysql.Literal(password))
	s.replica(1, "START", "")
	s.over("repl.stopped:login", 1)
}

// relayLogDiagnosed damages what a replica received and has not applied.
func (s *servers) relayLogDiagnosed() {
	s.t.Helper()
	s.settled()
	s.replica(1, "STOP", "SQL_THREAD")
	s.do(0, "INSERT INTO shop.orders (id, v) VALUES (60, 60)")
	list, err := filepath.Glob(filepath.Join(s.box.Nodes[1].Datadir, "*relay*.0*"))
	if err != nil || len(list) == 0 {
		s.t.Fatalf("no relay logs: %v", err)
	}
	slices.Sort(list)
	last := list[len(list)-1]
	await.Until(s.t, func() bool {
		b, err := os.ReadFile(last)
		return err == nil && strings.Contains(string(b[len(b)-min(len(b), 250):]), "orders")
	}, "the row is in %s", last)
	f, err := os.OpenFile(last, os.O_RDWR, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	const damage = 40
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = f.WriteAt(slices.Repeat([]byte{0xff}, damage), size-damage)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.replica(1, "START", "SQL_THREAD")
	s.remedied("repl.stopped:relay_log", 1)
	s.settled()
}

func (s *servers) sessionsDiagnosed() {
	s.t.Helper()
	s.do(0, "FLUSH TABLES WITH READ LOCK")
	other := sandboxtest.Connect(s.t, s.box.Nodes[0])
	done := make(chan error, 1)
	go func() {
		done <- other.Exec(context.WithoutCancel(s.t.Context()), "INSERT INTO shop.orders (id, v) VALUES (20, 20)")
	}()
	s.holds("lock.global", 0)
	s.do(0, "UNLOCK TABLES")
	if err := <-done; err != nil {
		s.t.Fatal(err)
	}
	s.over("lock.global", 0)
	s.do(0, s.conns[0].Server.UnblockHosts()) // connections of this machine to itself are never blocked: only that it is understood
	s.do(2, "SET GLOBAL max_connections = 20")
	for range 16 {
		sandboxtest.Connect(s.t, s.box.Nodes[2])
	}
	s.remedied("conn.saturation", 2)
	goOn := sandboxtest.Pause(s.t, s.box.Nodes[2])
	if d := s.holds("server.hung", 2, func(search *topology.Search) { search.Patience = 2 * time.Second }); !strings.Contains(d.What, "within 2 s") || d.Severity != fleet.SeverityWarning {
		s.t.Errorf("one look at one that hangs: got %+v", d)
	}
	goOn()
	s.over("server.hung", 2)
	s.holds("primary.unreachable", 0, func(search *topology.Search) { // no way to it from here
		search.Reach = map[string]string{s.target(0).Address(): "127.0.0.1:1"}
	})
}

// identitiesDiagnosed gives a replica the server_id of its source.
func (s *servers) identitiesDiagnosed() {
	s.t.Helper()
	id, err := s.conns[0].Maps(s.t.Context(), "SELECT @@GLOBAL.server_id AS id")
	if err != nil {
		s.t.Fatal(err)
	}
	s.replica(1, "STOP", "")
	s.do(1, "SET GLOBAL server_id = "+id[0]["id"])
	s.replica(1, "START", "")
	s.holds("repl.config:server_id", 0)
	d := s.holds("repl.stopped:server_id", 1)
	if d.Because == nil || d.Because.Code != "repl.config:server_id" {
		s.t.Errorf("repl.stopped:server_id: got the cause %+v", d.Because)
	}
	s.run(d)
	s.over("repl.stopped:server_id", 1)
	s.over("repl.config:server_id", 0)
}

func (s *servers) semiSyncDiagnosed() {
	s.t.Helper()
	s.do(0, "SET GLOBAL rpl_semi_sync_master_timeout = 600000", "SET GLOBAL rpl_semi_sync_master_enabled = ON")
	s.holds("semisync.too_few", 0)
	s.remedied("semisync.not_acknowledging", 1)
	s.over("semisync.too_few", 0)
	s.replica(1, "STOP", "IO_THREAD")
	await.Until(s.t, func() bool {
		rows, err := s.conns[0].Maps(s.t.Context(), "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_master_clients'")
		return err == nil && len(rows) == 1 && rows[0]["Value"] == "0"
	}, "the replica is gone")
	other := sandboxtest.Connect(s.t, s.box.Nodes[0])
	done := make(chan error, 1)
	go func() {
		done <- other.Exec(context.WithoutCancel(s.t.Context()), "INSERT INTO shop.orders (id, v) VALUES (30, 30)")
	}()
	d := s.holds("commit.semisync", 0)
	if d.Because == nil || d.Because.Code != "semisync.not_acknowledging" && d.Because.Code != "repl.stopped:by_command" {
		s.t.Errorf("commit.semisync: got the cause %+v", d.Because)
	}
	s.remedied("repl.stopped:by_command", 1)
	if err := <-done; err != nil {
		s.t.Fatal(err)
	}
	s.over("commit.semisync", 0)
	s.do(0, "SET GLOBAL rpl_semi_sync_master_timeout = 100")
	s.replica(1, "STOP", "IO_THREAD")
	s.do(0, "INSERT INTO shop.orders (id, v) VALUES (31, 31)")
	s.holds("semisync.off", 0)
	s.remedied("repl.stopped:by_command", 1)
	s.do(0, "INSERT INTO shop.orders (id, v) VALUES (32, 32)")
	s.over("semisync.off", 0)
	s.do(0, "SET GLOBAL rpl_semi_sync_master_enabled = OFF")
}

func (s *servers) filtersDiagnosed() {
	s.t.Helper()
	set, unset := "CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = (nosuch)", "CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = ()"
	if s.conns[0].Server.GTIDsByDomain() {
		set, unset = "SET GLOBAL replicate_ignore_db = 'nosuch'", "SET GLOBAL replicate_ignore_db = ''"
	}
	s.replica(1, "STOP", "")
	s.do(1, set)
	s.replica(1, "START", "")
	s.holds("repl.filter:replica", 1)
	s.holds("repl.filter:differs", 0)
	s.replica(1, "STOP", "")
	s.do(1, unset)
	s.replica(1, "START", "")
	s.over("repl.filter:differs", 0)
}

// ringDiagnosed lets the primary follow its replica for a while.
func (s *servers) ringDiagnosed() {
	s.t.Helper()
	password, err := s.box.Password()
	if err != nil {
		s.t.Fatal(err)
	}
	options := fmt.Sprintf("MASTER_HOST = '127.0.0.1', MASTER_PORT = %d, MASTER_USER = 'risso', MASTER_PASSWORD = %s, ", s.box.Nodes[1].Port, mysql.Literal(password))
	if s.conns[0].Server.GTIDsByDomain() {
		options += "MASTER_USE_GTID = current_pos"
	} else {
		options += "MASTER_AUTO_POSITION = 1"
	}
	if s.conns[0].Server.FetchKey("") != "" {
		options += ", GET_MASTER_PUBLIC_KEY = 1"
	}
	if s.conns[0].Server.KnowsSlaveWords() {
		s.do(0, "CHANGE MASTER TO "+options)
	} else {
		s.do(0, "CHANGE REPLICATION SOURCE TO "+strings.ReplaceAll(options, "MASTER", "SOURCE"))
	}
	s.replica(0, "START", "")
	s.do(1, "SET GLOBAL read_only = OFF")
	s.holds("ring.two_writable", 0)
	d := s.holds("ring.auto_increment", 0)
	for part := range strings.SplitSeq(d.Next, "on node") { // "0: SET …; SET …; "
		node, statements, ok := strings.Cut(strings.TrimSuffix(strings.TrimSpace(part), ";"), ": ")
		if ok {
			d.On, d.Statements = "node"+node, statements
			s.run(d)
		}
	}
	s.over("ring.auto_increment", 0)
	s.replica(0, "STOP", "SQL_THREAD")
	d = s.holds("ring.broken", 0)
	if d.Because == nil || d.Because.Code != "repl.stopped:by_command" {
		s.t.Errorf("ring.broken: got the cause %+v", d.Because)
	}
	s.remedied("repl.stopped:by_command", 0)
	s.over("ring.broken", 0)
	s.replica(0, "STOP", "")
	if s.conns[0].Server.KnowsSlaveWords() {
		s.do(0, "RESET SLAVE ALL")
	} else {
		s.do(0, "RESET REPLICA ALL")
	}
	s.do(1, "SET GLOBAL read_only = ON")
	s.over("ring.two_writable", 0)
}

// partingDiagnosed stops a replica and writes to both.
func (s *servers) partingDiagnosed() {
	s.t.Helper()
	s.replica(1, "STOP", "")
	s.do(1, "SET GLOBAL read_only = OFF", "CREATE DATABASE here")
	s.do(0, "INSERT INTO shop.orders (id, v) VALUES (40, 40)")
	d := s.holds("repl.split_brain", 1)
	if len(d.Evidence) != 2 {
		s.t.Errorf("repl.split_brain: got %+v", d)
	}
	s.do(1, "SET GLOBAL "+s.conns[1].Server.ReadOnlyVariable()+" = ON")
	s.holds("repl.errant_gtid", 1)
	if s.conns[0].Server.GTIDsByDomain() { // only a copy helps; without a link, both have parted as well
		s.do(1, "RESET SLAVE ALL", "SET GLOBAL read_only = OFF")
		if d := s.holds("repl.split_brain", 0); d.Subject != "node1" || d.Severity != fleet.SeverityWarning {
			s.t.Errorf("repl.split_brain without a link: got %+v", d)
		}
		s.do(1, "SET GLOBAL read_only = ON")
		return
	}
	var e mysql.Errant
	await.Until(s.t, func() bool { // one look may not see it, as the machine is busy
		top := s.discover(0)
		i := top.Find(s.target(1).Address())
		if i < 0 {
			return false
		}
		var err error
		if e, err = mysql.AllErrant(top.Nodes[i].Errant); err != nil {
			s.t.Fatal(err)
		}
		return !e.Empty()
	}, "what only node1 has")
	source := s.conns[0].Server // as risso gtid repair does, where the rows are as on the source
	for _, g := range e.Numbers(10) {
		s.do(0, source.EmptyTransaction(g)...)
	}
	s.do(0, source.EndOfEmpty())
	s.over("repl.errant_gtid", 1)
	s.remedied("repl.stopped:by_command", 1)
}

// lossDiagnosed takes logs away that a replica needs, and then the primary.
func (s *servers) lossDiagnosed() {
	s.t.Helper()
	if !s.conns[0].Server.GTIDsByDomain() {
		s.replica(1, "STOP", "")
		s.do(0, "INSERT INTO shop.orders (id, v) VALUES (50, 50)", "FLUSH LOGS")
		file, _ := sandboxtest.LogPosition(s.t, s.conns[0])
		await.Until(s.t, func() bool { // a log that is still sent to somebody stays, with a warning
			s.do(0, "PURGE BINARY LOGS TO "+mysql.Literal(file))
			logs, err := s.conns[0].Maps(s.t.Context(), "SHOW BINARY LOGS")
			return err == nil && len(logs) > 0 && logs[0]["Log_name"] == file
		}, "the logs before %s to be purged", file)
		s.holds("repl.purged", 1)
		s.replica(1, "START", "")
		if d := s.holds("repl.stopped:purged", 1); d.Because == nil || d.Because.Code != "repl.purged" {
			s.t.Errorf("repl.stopped:purged: got the cause %+v", d.Because)
		}
		s.replica(1, "STOP", "")
	}
	if err := s.box.Nodes[1].Stop(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.holds("server.down", 1)
	if s.conns[0].Server.GTIDsByDomain() {
		s.replica(2, "STOP", "SQL_THREAD")
		s.do(0, "INSERT INTO shop.orders (id, v) VALUES (70, 70)")
	}
	if err := s.box.Nodes[0].Stop(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	d := s.holds("primary.dead_with_replicas", 0)
	if !slices.Contains(d.Nodes, "node1") || !slices.Contains(d.Nodes, "node2") {
		s.t.Errorf("primary.dead_with_replicas: got %v", d.Nodes)
	}
	if d := s.holds("repl.stopped:cannot_connect", 2); d.Because == nil || d.Because.Node != "node0" {
		s.t.Errorf("repl.stopped:cannot_connect: got the cause %+v", d.Because)
	}
	if s.conns[2].Server.GTIDsByDomain() {
		s.keptDiagnosed()
	}
	if err := s.box.Nodes[0].Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.over("primary.dead_with_replicas", 0)
	s.replica(2, "START", "") // as it says: a MySQL gives up after so many tries
	s.over("repl.stopped:cannot_connect", 2)
}

// keptDiagnosed stops a MariaDB whose source is dead, and which has received what it has not applied: what the diagnosis says lets it apply that, where a START would throw
// the last copy of it away.
func (s *servers) keptDiagnosed() {
	s.t.Helper()
	s.replica(2, "STOP", "")
	d := s.holds("repl.stopped:cannot_connect", 2) // that is what it says last
	if !strings.Contains(d.Statements, "RELAY_LOG_FILE") || !strings.Contains(d.Next, "throw away") {
		s.t.Fatalf("a replica that stands, and whose source is dead: got %+v", d)
	}
	s.run(d)
	await.Until(s.t, func() bool {
		rows, err := s.conns[2].Maps(s.t.Context(), "SELECT v FROM shop.orders WHERE id = 70")
		return err == nil && len(rows) == 1
	}, "the row that only node2 has received")
	_, after, _ := strings.Cut(d.Next, "afterwards ")
	for statement := range strings.SplitSeq(after, "; ") {
		s.do(2, statement)
	}
}

// closedLogDiagnosed: a primary that writes no binary log any more is told so, and nothing that its GTIDs would tell. What it says lets it take no writes; a restart ends it.
func (s *servers) closedLogDiagnosed() {
	s.t.Helper()
	mend := sandboxtest.CloseLog(s.t, s.box.Nodes[0])
	s.do(0, "INSERT INTO shop.orders VALUES (1000, 1)")
	d := s.holds("server.log_closed", 0)
	for _, other := range s.diagnosed() {
		if slices.Contains([]string{"repl.errant_gtid", "repl.split_brain", "primary.several"}, other.Code) {
			s.t.Errorf("beside a primary that logs nothing any more: %+v", other)
		}
	}
	if top := s.discover(0); slices.ContainsFunc(top.Links, func(l topology.Link) bool { return s.conns[0].Server.MariaDB() && l.Missing != nil }) {
		s.t.Error("it is said how much replicas lack of a primary that logs nothing any more")
	}
	s.run(d)
	if rows, err := s.conns[0].Maps(s.t.Context(), "SELECT @@GLOBAL.read_only AS r"); err != nil || rows[0]["r"] != "1" {
		s.t.Errorf("after %s: read_only is %v, %v", d.Statements, rows, err)
	}
	mend()
	n := s.box.Nodes[0]
	err := n.Stop(s.t.Context())
	if err == nil {
		err = n.Start(s.t.Context())
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.conns[0] = sandboxtest.Connect(s.t, n)
	s.over("server.log_closed", 0)
	s.unlogged(0, "DELETE FROM shop.orders WHERE id = 1000")
	s.do(0, "SET GLOBAL read_only = OFF")
	s.settled()
}
