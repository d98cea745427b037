package dump_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/snapshot"
	"github.com/rissodb/risso/internal/mysql/wire"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/blob"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// lend lends a server that earlier tests used, too.
func lend(t testing.TB, spec string) *sandbox.Node {
	t.Helper()
	return sandboxtest.Lend(t, spec, "max_allowed_packet=128M", "innodb_flush_log_at_trx_commit=2", "sync_binlog=0", "performance_schema=OFF")
}

func target(t testing.TB, dsn string) mysql.Target {
	t.Helper()
	target, err := mysql.ParseTarget(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func stream(t testing.TB, to mysql.Target) *mysql.Stream {
	t.Helper()
	s, err := to.ConnectStream(t.Context(), mysql.StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func exec(t testing.TB, s *mysql.Stream, statements ...string) {
	t.Helper()
	for _, q := range statements {
		if err := s.Exec(t.Context(), q); err != nil {
			t.Fatalf("%.200s: %v", q, err)
		}
	}
}

func place(t testing.TB) *repo.Repo {
	t.Helper()
	store, err := blob.Open(t.Context(), t.TempDir(), blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	r, err := repo.CreateWith(t.Context(), repo.On(store), repo.Keys{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// writers commit transactions over several tables without pause, until they are stopped.
func writers(t *testing.T, to mysql.Target, n int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	begin := int(time.Now().UnixMilli() % 1e9) // after those of earlier writers
	for w := range n {
		s := stream(t, to)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := begin; ctx.Err() == nil; i++ {
				del := "DO 0"
				if i-5 >= begin { // one that is not there would lock a gap
					del = fmt.Sprintf("DELETE FROM m.d WHERE w = %d AND i = %d", w, i-5)
				}
				for _, q := range []string{"BEGIN", fmt.Sprintf("INSERT INTO m.a (w, i) VALUES (%d, %d)", w, i), fmt.Sprintf("INSERT INTO m.b (w, i) VALUES (%d, %d)", w, i),
					fmt.Sprintf("UPDATE m.c SET n = n + 1 WHERE w = %d", w), del, fmt.Sprintf("INSERT INTO m.d VALUES (%d, %d)", w, i), "COMMIT"} {
					if err := s.Exec(context.WithoutCancel(ctx), q); err != nil {
						t.Errorf("%s: %v", q, err)
						return
					}
				}
			}
		}()
	}
	return func() { cancel(); wg.Wait() }
}

// TestMoment takes backups while transactions commit all the time: all tables must be of one moment, and a server that is
// loaded with the backup and replicates from its position must become what the source is.
func TestMoment(t *testing.T) {
	for flavour, methods := range map[string][]snapshot.Method{
		"mariadb":   {snapshot.ByBinlog, snapshot.ByStage, snapshot.ByTableLocks, snapshot.ByGlobalLock},
		"mysql-9.7": {snapshot.ByGlobalLock, snapshot.ByTableLocks},
		"mysql-8.0": {snapshot.ByGlobalLock, snapshot.ByTableLocks},
		"mysql-5.7": {snapshot.ByGlobalLock, snapshot.ByTableLocks},
	} {
		t.Run(flavour, func(t *testing.T) {
			settings := []string{"log_bin=binlog", "binlog_format=ROW", "local_infile=ON"}
			if flavour != "mariadb" {
				settings = append(settings, "gtid_mode=ON", "enforce_gtid_consistency=ON", "log_slave_updates=ON")
			}
			source, replica := sandboxtest.Up(t, flavour, settings...), sandboxtest.Up(t, flavour, settings...)
			to := target(t, source.DSN)
			s := stream(t, to)
			exec(t, s, "CREATE USER r@'127.0.0.1' IDENTIFIED BY 'r'", "GRANT REPLICATION SLAVE ON *.* TO r@'127.0.0.1'", "CREATE DATABASE m",
				"CREATE TABLE m.a (id INT AUTO_INCREMENT PRIMARY KEY, w INT, i INT)", "CREATE TABLE m.b (id INT AUTO_INCREMENT PRIMARY KEY, w INT, i INT)",
				"CREATE TABLE m.c (w INT PRIMARY KEY, n INT)", "CREATE TABLE m.d (w INT, i INT, PRIMARY KEY (w, i))", "INSERT INTO m.c VALUES (0, 0), (1, 0), (2, 0), (3, 0)")
			for i, method := range methods {
				byGTID := i%2 == 0
				t.Run(string(method), func(t *testing.T) { moment(t, source, replica, method, byGTID) })
			}
			if flavour != "mariadb" && flavour != "mysql-9.7" {
				return
			}
			t.Run("table locks of several sessions", func(t *testing.T) {
				exec(t, s, "SET GLOBAL table_open_cache = 16") // four tables are too many for one part of the cache
				moment(t, source, replica, snapshot.ByTableLocks, true)
			})
		})
	}
}

func moment(t *testing.T, source, replica *sandbox.Node, method snapshot.Method, byGTID bool) {
	to := target(t, source.DSN)
	stop := writers(t, to, 4)
	defer stop()
	grow(t, stream(t, to))
	r := place(t)
	result, err := dump.Run(t.Context(), r, dump.Options{Target: to, Name: "s", Threads: 4, Select: dump.Selection{Schemas: []string{"m"}}, Snapshot: snapshot.Options{Method: method, Tries: 20}})
	if err != nil {
		t.Fatal(err)
	}
	grow(t, stream(t, to))
	stop()
	lock := time.Duration(result.Header.LockSeconds * float64(time.Second))
	t.Logf("%s: tried %d times, commits were blocked for %s", result.Method, result.Tries, lock)
	if (lock > 0) != (method != snapshot.ByBinlog) {
		t.Errorf("the lock was held for %s", lock)
	}
	dst := stream(t, target(t, replica.DSN))
	counts := loadBackup(t, r, dst)
	if counts["a"] == 0 || counts["a"] != counts["b"] {
		t.Fatalf("the tables are not of one moment: %v; want counts[\"a\"] not 0, counts[\"a\"] counts[\"b\"]", counts)
	}
	var total int64
	one(t, dst, "SELECT SUM(n) FROM m.c", &total)
	if total != counts["a"] {
		t.Fatalf("table c counts %d transactions, table a has %d; want counts[\"a\"]", total, counts["a"])
	}
	replicate(t, source, replica, dst, result.Header.Position, byGTID)
	same(t, stream(t, to), dst)
}

// one reads the first row of an answer.
func one(t *testing.T, s *mysql.Stream, q string, to ...any) {
	t.Helper()
	err := s.Query(t.Context(), q, func(row [][]byte) error {
		for i, p := range to {
			if p == nil {
				continue
			}
			if _, err := fmt.Sscan(string(row[i]), p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
}

// loadBackup loads tables of numbers, by means of the test's own.
func loadBackup(t *testing.T, r *repo.Repo, dst *mysql.Stream) map[string]int64 {
	t.Helper()
	exec(t, dst, "SET GLOBAL local_infile = 1", "SET SESSION sql_log_bin = 0", "DROP DATABASE IF EXISTS m")
	m, err := r.Manifest(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	counts := map[string]int64{}
	err = m.Each(func(l repo.Line) error {
		if l.Schema != nil {
			exec(t, dst, l.Schema.Create, "USE m")
		}
		if l.Table == nil {
			return nil
		}
		exec(t, dst, l.Table.Create)
		var text bytes.Buffer
		for _, c := range l.Table.Chunks {
			rc, err := r.Chunk(t.Context(), l.Table.Schema, l.Table.Name, c.Hash)
			if err != nil {
				return err
			}
			raw, err := io.ReadAll(rc)
			if err != nil {
				return err
			}
			rc.Close()
			values, err := wire.SplitRow(nil, raw)
			if err != nil {
				return err
			}
			for i, v := range values {
				text.Write(v)
				if (i+1)%len(l.Table.Columns) == 0 {
					text.WriteByte('\n')
				} else {
					text.WriteByte('\t')
				}
			}
		}
		counts[l.Table.Name] = l.Table.Rows
		return dst.Load(t.Context(), "LOAD DATA LOCAL INFILE 'x' INTO TABLE m."+l.Table.Name, &text)
	})
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// replicate lets the replica apply what the source's binary logs have after the position, then stops it.
func replicate(t *testing.T, source, replica *sandbox.Node, dst *mysql.Stream, p repo.Position, byGTID bool) {
	t.Helper()
	defer func(words string) { exec(t, dst, "STOP "+words, "RESET "+words+" ALL") }(follow(t, source, replica, dst, p, byGTID))
}

// follow makes the replica one from the position on, and waits until it has what the source has. It returns the server's word for
// a replica.
func follow(t *testing.T, source, replica *sandbox.Node, dst *mysql.Stream, p repo.Position, byGTID bool) string {
	t.Helper()
	c, err := mysql.Connect(t.Context(), target(t, replica.DSN), nil)
	if err != nil {
		t.Fatal(err)
	}
	server := c.Server
	c.Close()
	maria, words := server.MariaDB(), []string{"MASTER", "SLAVE"}
	if !maria && server.Number >= 80400 {
		words = []string{"SOURCE", "REPLICA"}
	}
	change := fmt.Sprintf("%[1]s_HOST = '127.0.0.1', %[1]s_PORT = %[2]d, %[1]s_USER = 'r', %[1]s_PASSWORD = 'r', %[1]s_CONNECT_RETRY = 1", words[0], source.Port)
	if !maria && server.Number >= 80000 {
		change += ", GET_" + words[0] + "_PUBLIC_KEY = 1"
	}
	if !maria { // a transaction whose GTID it has had before, of another backup, would be silently skipped
		reset := "RESET MASTER"
		if server.Number >= 80400 {
			reset = "RESET BINARY LOGS AND GTIDS"
		}
		exec(t, dst, reset)
	}
	position := fmt.Sprintf(", %[1]s_LOG_FILE = '%[2]s', %[1]s_LOG_POS = %[3]d", words[0], p.File, p.Offset)
	switch {
	case byGTID && maria:
		exec(t, dst, "SET GLOBAL gtid_slave_pos = '"+p.GTIDSet+"'")
		position = ", MASTER_USE_GTID = slave_pos"
	case byGTID:
		exec(t, dst, "SET GLOBAL gtid_purged = '"+p.GTIDSet+"'")
		position = ", " + words[0] + "_AUTO_POSITION = 1"
	case maria:
		position += ", MASTER_USE_GTID = no"
	default:
		position += ", " + words[0] + "_AUTO_POSITION = 0"
	}
	verb := "CHANGE MASTER TO "
	if words[0] == "SOURCE" {
		verb = "CHANGE REPLICATION SOURCE TO "
	}
	exec(t, dst, verb+change+position, "START "+words[1])
	src := stream(t, target(t, source.DSN))
	status := "SHOW MASTER STATUS"
	if words[0] == "SOURCE" {
		status = "SHOW BINARY LOG STATUS"
	}
	end, err := src.QueryMaps(t.Context(), status)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	await.Until(t, func() bool {
		rows, err := dst.QueryMaps(t.Context(), "SHOW "+words[1]+" STATUS")
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range rows[0] {
			at[strings.NewReplacer("Source", "Master", "Replica", "Slave").Replace(k)] = v
		}
		if at["Last_SQL_Error"] != "" {
			t.Fatalf("from %s:%d %s: got %s, want \"\"", p.File, p.Offset, p.GTIDSet, at["Last_SQL_Error"])
		}
		return at["Relay_Master_Log_File"] == end[0]["File"] && at["Exec_Master_Log_Pos"] == end[0]["Position"]
	}, "the replica at %s:%s, not %v", end[0]["File"], end[0]["Position"], at)
	return words[1]
}
