package dump_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/snapshot"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestReplica takes backups of a replica while it applies what its source commits: from the position of the source that the
// backup has, a new server must become what the source is.
func TestReplica(t *testing.T) {
	for _, flavour := range []string{"mariadb", "mysql-9.7"} {
		t.Run(flavour, func(t *testing.T) {
			// MariaDB's replica does not write what it applies into its own binary log.
			settings := []string{"log_bin=binlog", "binlog_format=ROW", "local_infile=ON", "log_slave_updates=OFF"}
			if flavour != "mariadb" {
				settings = []string{"log_bin=binlog", "local_infile=ON", "gtid_mode=ON", "enforce_gtid_consistency=ON", "replica_parallel_workers=4"}
			}
			source, replica, fresh := sandboxtest.Up(t, flavour, settings...), sandboxtest.Up(t, flavour, settings...), sandboxtest.Up(t, flavour, settings...)
			s := stream(t, target(t, source.DSN))
			exec(t, s, "CREATE USER r@'127.0.0.1' IDENTIFIED BY 'r'", "GRANT REPLICATION SLAVE ON *.* TO r@'127.0.0.1'")
			begin := position(t, source)
			exec(t, s, "CREATE DATABASE m", "CREATE TABLE m.a (id INT AUTO_INCREMENT PRIMARY KEY, w INT, i INT)", "CREATE TABLE m.b (id INT AUTO_INCREMENT PRIMARY KEY, w INT, i INT)",
				"CREATE TABLE m.c (w INT PRIMARY KEY, n INT)", "CREATE TABLE m.d (w INT, i INT, PRIMARY KEY (w, i))", "INSERT INTO m.c VALUES (0, 0), (1, 0), (2, 0), (3, 0)")
			follow(t, source, replica, stream(t, target(t, replica.DSN)), begin, true)
			t.Run("by GTID", func(t *testing.T) { ofReplica(t, source, replica, fresh, "", true, true) })
			t.Run("that stands, by position", func(t *testing.T) { ofReplica(t, source, replica, fresh, "", false, false) })
			t.Run("by position", func(t *testing.T) { ofReplica(t, source, replica, fresh, snapshot.ByGlobalLock, false, true) })
		})
	}
}

// position is where a server's binary logs end.
func position(t *testing.T, node *sandbox.Node) repo.Position {
	t.Helper()
	snap, err := snapshot.Take(t.Context(), target(t, node.DSN), snapshot.Options{Method: snapshot.ByGlobalLock, List: func(context.Context, mysql.Server, []*mysql.Stream) (l snapshot.Lists, err error) { return l, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	return repo.Position{File: snap.Position.File, Offset: snap.Position.Offset, GTIDSet: snap.Position.GTIDSet}
}

// sqlThread is the statement that starts or stops applying.
func sqlThread(verb string, n *sandbox.Node) string {
	if strings.HasPrefix(n.Server, "mariadb") {
		return verb + " SLAVE SQL_THREAD"
	}
	return verb + " REPLICA SQL_THREAD"
}

// ofReplica takes a backup of a replica, which is running or stopped, and makes another server what the source is. Then the replica
// is stopped, and behind both.
func ofReplica(t *testing.T, source, replica, fresh *sandbox.Node, method snapshot.Method, byGTID, applies bool) {
	from := target(t, replica.DSN)
	src, rs := stream(t, target(t, source.DSN)), stream(t, from)
	stop := writers(t, target(t, source.DSN), 4)
	defer stop()
	var has int64
	if applies {
		exec(t, rs, sqlThread("START", replica))
		has = grow(t, rs)
	}
	r := place(t)
	result, err := dump.Run(t.Context(), r, dump.Options{Target: from, Name: "s", Threads: 4, Select: dump.Selection{Schemas: []string{"m"}}, Snapshot: snapshot.Options{Method: method, Tries: 20}})
	if err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool { return rs.Exec(t.Context(), sqlThread("STOP", replica)) == nil }, "the server to see that the backup's sessions left")
	grow(t, src)
	stop()
	t.Logf("%s: tried %d times, position %+v", result.Method, result.Tries, result.Header.Position)
	at := slices.IndexFunc(result.Header.Position.Sources, func(c repo.Channel) bool { return c.Host == "127.0.0.1" && c.Port == source.Port })
	if at < 0 {
		t.Fatalf("the source's position is not told: %+v, want at at least 0", result.Header.Position)
	}
	if result.Method == string(snapshot.ByBinlog) { // the replica's binary log says nothing of what it applies
		t.Errorf("the moment was had by %s, want not %s", result.Method, string(snapshot.ByBinlog))
	}
	c := result.Header.Position.Sources[at]
	dst := stream(t, target(t, fresh.DSN))
	counts := loadBackup(t, r, dst)
	var total int64
	one(t, dst, "SELECT SUM(n) FROM m.c", &total)
	if counts["a"] < has || counts["a"] != counts["b"] || total != counts["a"] {
		t.Fatalf("the tables are not of one moment: %v, %d; want counts[\"a\"] at least %v, counts[\"a\"] counts[\"b\"], total counts[\"a\"]",
			counts, total, has)
	}
	replicate(t, source, fresh, dst, repo.Position{File: c.File, Offset: c.Offset, GTIDSet: c.GTIDSet}, byGTID)
	same(t, src, dst)
}

// grow waits until the tables have some transactions more, and returns how many.
func grow(t *testing.T, s *mysql.Stream) (has int64) {
	t.Helper()
	var had int64
	one(t, s, "SELECT COUNT(*) FROM m.a", &had)
	await.Until(t, func() bool {
		one(t, s, "SELECT COUNT(*) FROM m.a", &has)
		return has >= had+20
	}, "transactions that are committed, or applied")
	return has
}

// TestReplicaOutOfOrder: if appliers commit in another order than the source did, no place in its logs is reported as if everything before it
// were there.
func TestReplicaOutOfOrder(t *testing.T) {
	for flavour, words := range map[string][]string{
		"mysql-9.7": {"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 1, SOURCE_LOG_FILE = 'binlog.000007', SOURCE_LOG_POS = 1234", "replica", "RESET REPLICA ALL"},
		"mysql-5.7": {"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1, MASTER_LOG_FILE = 'binlog.000007', MASTER_LOG_POS = 1234", "slave", "RESET SLAVE ALL"},
	} {
		t.Run(flavour, func(t *testing.T) {
			node := lend(t, flavour)
			s := stream(t, target(t, node.DSN))
			exec(t, s, words[0], "SET GLOBAL "+words[1]+"_parallel_workers = 4")
			if words[1] == "slave" {
				exec(t, s, "SET GLOBAL slave_parallel_type = LOGICAL_CLOCK")
			}
			defer exec(t, s, words[2])
			for ordered, want := range map[string]string{"ON": "binlog.000007:1234", "OFF": ":0"} {
				exec(t, s, "SET GLOBAL "+words[1]+"_preserve_commit_order = "+ordered)
				snap, err := snapshot.Take(t.Context(), target(t, node.DSN), snapshot.Options{List: func(context.Context, mysql.Server, []*mysql.Stream) (l snapshot.Lists, err error) { return l, nil }})
				if err != nil {
					t.Fatal(err)
				}
				if c := snap.Sources; len(c) != 1 || fmt.Sprintf("%s:%d", c[0].File, c[0].Offset) != want || strings.Contains(strings.Join(snap.Notes, " "), "preserve_commit_order") != (ordered == "OFF") {
					t.Errorf("ordered %s: %+v, %q", ordered, c, snap.Notes)
				}
				snap.Close()
			}
		})
	}
}

// same compares the tables of writers.
func same(t *testing.T, src, dst *mysql.Stream) {
	t.Helper()
	for _, table := range []string{"a", "b", "c", "d"} {
		var want, got int64
		one(t, src, "CHECKSUM TABLE m."+table, nil, &want)
		one(t, dst, "CHECKSUM TABLE m."+table, nil, &got)
		if want != got {
			t.Errorf("table %s is not what the source has", table)
		}
	}
}
