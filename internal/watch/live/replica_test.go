package live_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// words are what servers call the statements of replication.
type words struct {
	change  string // a second channel: port, user, password
	start   string // channel
	stop    string
	delayed string // channel, seconds
}

func wordsOf(spec string) words {
	switch {
	case strings.HasPrefix(spec, "mariadb"):
		return words{
			change: "CHANGE MASTER 'east' TO MASTER_HOST='127.0.0.1', MASTER_PORT=%d, MASTER_USER='%s', MASTER_PASSWORD='%s', MASTER_USE_GTID=no",
			start:  "START SLAVE '%s'", stop: "STOP SLAVE '%s'", delayed: "CHANGE MASTER '%s' TO MASTER_DELAY = %d"}
	case spec == "mysql-5.7":
		return words{
			change: "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=%d, MASTER_USER='%s', MASTER_PASSWORD='%s', MASTER_AUTO_POSITION=1 FOR CHANNEL 'east'",
			start:  "START SLAVE FOR CHANNEL '%s'", stop: "STOP SLAVE FOR CHANNEL '%s'", delayed: "CHANGE MASTER TO MASTER_DELAY = %[2]d FOR CHANNEL '%[1]s'"}
	}
	return words{
		change: "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=%d, SOURCE_USER='%s', SOURCE_PASSWORD='%s', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1 FOR CHANNEL 'east'",
		start:  "START REPLICA FOR CHANNEL '%s'", stop: "STOP REPLICA FOR CHANNEL '%s'", delayed: "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = %[2]d FOR CHANNEL '%[1]s'"}
}

// TestChannels: of a replica with two channels each is reported by its name: the one that is stopped and the other not, the error of the
// one that cannot apply, with a remedy that makes this one go on; what a channel waits for on purpose is no lag, what goes beyond is; and that
// read_only was switched off is known at once.
func TestChannels(t *testing.T) {
	for _, spec := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			s := sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{spec}, Topology: sandbox.TopologyReplication, Replicas: 2})
			replica, east := s.Nodes[1], s.Nodes[2]
			db, edb := open(t, replica), open(t, east)
			c, ec := conn(t, db), conn(t, edb)
			defer c.Close()
			defer ec.Close()
			password, err := s.Password()
			if err != nil {
				t.Fatal(err)
			}
			v := wordsOf(spec)
			maria := strings.HasPrefix(spec, "mariadb")
			if maria {
				run(t, edb, "SET GLOBAL read_only = OFF", "RESET MASTER")
				run(t, ec, "SET SESSION gtid_domain_id = 7")
			} else {
				run(t, edb, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
				run(t, db, "SET GLOBAL super_read_only = OFF")
			}
			run(t, db, fmt.Sprintf(v.change, east.Port, s.User, password), fmt.Sprintf(v.start, "east"))
			run(t, ec, "CREATE DATABASE east", "CREATE TABLE east.t (id INT PRIMARY KEY)")
			w := watch(t, rootDSN(replica))
			w.awaitTicks(t, 4)
			w.await(t, "the schema", func() bool {
				var n int
				return db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'east'").Scan(&n) == nil && n == 1
			})
			if list := w.finding("repl.stopped"); len(list) > 0 || w.told().Role != fleet.RoleReplica {
				t.Errorf("both run, and told is %+v, role %s; want no list, w.told().Role fleet.RoleReplica", list, w.told().Role)
			}
			// Stopped by hand.
			run(t, db, fmt.Sprintf(v.stop, "east"))
			f := w.awaitFinding(t, "repl.stopped", "channel east: replication from 127.0.0.1:"+fmt.Sprint(east.Port)+" is stopped", "by a command")
			if list := w.finding("repl.stopped"); len(list) != 1 || f.Severity != fleet.SeverityWarning {
				t.Errorf("one of two is stopped, and told is %+v; want len(list) 1, f.Severity fleet.SeverityWarning", list)
			}
			run(t, db, f.Remedy)
			w.awaitNone(t, "repl.stopped")
			// Stopped by an error.
			run(t, c, "SET SESSION sql_log_bin = 0", "INSERT INTO east.t VALUES (1)")
			run(t, ec, "INSERT INTO east.t VALUES (1)")
			f = w.awaitFinding(t, "repl.stopped", "channel east: ", "error 1062 ", "east.t")
			if list := w.finding("repl.stopped"); len(list) != 1 {
				t.Errorf("one of two failed, and told is %+v; want length 1", list)
			}
			asCopied(t, replica, f.Remedy)
			run(t, ec, "INSERT INTO east.t VALUES (2)")
			w.awaitNone(t, "repl.stopped")
			// A delay that is wanted, and one that is not.
			run(t, c, fmt.Sprintf(v.stop, "east"), fmt.Sprintf(v.delayed, "east", 3600), fmt.Sprintf(v.start, "east"))
			run(t, ec, "SET SESSION timestamp = UNIX_TIMESTAMP() - 900", "INSERT INTO east.t VALUES (3)")
			w.await(t, "the seconds that the server tells", func() bool { return w.behind() >= 900 })
			w.awaitTicks(t, 6)
			if d := w.told(); len(w.finding("repl.lag")) > 0 || d.Lag == nil || *d.Lag != 0 {
				t.Errorf("it waits as it should, and told is %+v, lag %v; want no w.finding(\"repl.lag\"), d.Lag not nil, *d.Lag 0", d.Findings, d.Lag)
			}
			run(t, c, fmt.Sprintf(v.stop, "east"), fmt.Sprintf(v.delayed, "east", 2), "LOCK TABLES east.t READ")
			run(t, db, fmt.Sprintf(v.start, "east"))
			w.awaitFinding(t, "repl.lag", "channel east: the replica is more than 30 s behind 127.0.0.1")
			run(t, c, "UNLOCK TABLES")
			w.awaitNone(t, "repl.lag")
			// read_only.
			off, on := []string{"SET GLOBAL read_only = OFF"}, "SET GLOBAL read_only = ON"
			if !maria {
				off = append([]string{"SET GLOBAL super_read_only = OFF"}, off...)
			}
			run(t, db, on)
			w.awaitNone(t, "repl.writable")
			run(t, db, off...)
			f = w.awaitFinding(t, "repl.writable")
			run(t, db, f.Remedy)
			w.awaitNone(t, "repl.writable")
		})
	}
}

// behind is the most seconds that the server reports for any channel.
func (w *watched) behind() (most float64) {
	list, _ := w.Metrics("s")
	for _, m := range list {
		if m.Name == "mysql_slave_status_seconds_behind_master" {
			most = max(most, m.Last)
		}
	}
	return most
}
