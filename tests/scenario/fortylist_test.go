package scenario_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// fortyOfReplicas are about a primary and its replica.
func fortyOfReplicas() []wrong {
	return []wrong{
		{id: "repl.stopped", stage: "pair", at: "r", make: func(t *testing.T, w *ward) {
			execSQL(t, w.nodes["p"], "CREATE DATABASE forty; CREATE TABLE forty.kept (id INT PRIMARY KEY, v INT); INSERT INTO forty.kept VALUES (1, 1), (2, 2)")
			await(t, "the rows are on the replica", func() bool {
				return value(t, w.nodes["r"], "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'forty'") == "1" && value(t, w.nodes["r"], "SELECT COUNT(*) FROM forty.kept") == "2"
			})
			open := "SET GLOBAL read_only = OFF"
			if w.flavour != "mariadb" {
				open = "SET GLOBAL super_read_only = OFF; " + open
			}
			execSQL(t, w.nodes["r"], open+"; SET SESSION sql_log_bin = 0; DELETE FROM forty.kept WHERE id = 1")
			execSQL(t, w.nodes["p"], "UPDATE forty.kept SET v = 7 WHERE id = 1")
		}, how: "its statements, one error after the other", mend: func(t *testing.T, w *ward, f fleet.Advice) {
			c := wrong{id: "repl.stopped"}
			for found := true; found; f, found = w.advise(t).find(&c, "r") {
				states("r")(t, w, f)
			}
		}},
		{id: "repl.errant_gtid", object: "gtid_*", stage: "pair", at: "r", make: func(t *testing.T, w *ward) {
			apart := "" // in a domain of its own, so that it does not stop what repl.stopped lets go on
			if w.flavour == "mariadb" {
				apart = "SET SESSION gtid_domain_id = 7; "
			}
			execSQL(t, w.nodes["r"], apart+"CREATE DATABASE errant")
		}, how: itsAdvice, mend: func(t *testing.T, w *ward, f fleet.Advice) {
			r := w.nodes["r"]
			if w.flavour == "mariadb" { // the replica is made anew, here by the words that do that to its log alone
				execSQL(t, r, "STOP SLAVE; SET @at = @@GLOBAL.gtid_slave_pos; RESET MASTER; DROP DATABASE IF EXISTS errant; RESET MASTER; SET GLOBAL gtid_slave_pos = @at; START SLAVE")
				return
			}
			execSQL(t, r, "SET SESSION sql_log_bin = 0; DROP DATABASE errant") // its definitions are its source's again
			out, said, code := runRisso(t, nil, "gtid", "repair", "--dsn", r.DSN, "--source", w.nodes["p"].DSN, "--rows-equal", "--yes", "--state", tempDir(t))
			if code != 0 || !strings.Contains(f.Advice, "risso gtid repair") {
				t.Errorf("%s: code %d, %s%s", f.Advice, code, out, said)
			}
		}},
		{id: "repl.writable", object: "*read_only", stage: "pair", at: "r", how: itsStatement, mend: states("r"), make: func(*testing.T, *ward) {}}, // repl.stopped opened it
		{id: "repl.config", object: "binlog_row_image", stage: "pair", make: sets("p", "SET GLOBAL binlog_row_image = 'MINIMAL'"), how: itsStatement, mend: states("p")},
		{id: "repl.lag", stage: "late", at: "r", make: func(t *testing.T, w *ward) {
			holder := w.session(t, "r")
			in(t, holder.Conn, "FLUSH TABLES forty.kept WITH READ LOCK")
			execSQL(t, w.nodes["p"], "SET TIMESTAMP = UNIX_TIMESTAMP() - 3600; UPDATE forty.kept SET v = v + 1 WHERE id = 2")
			w.during(t, func() { _, _ = holder.ExecContext(context.Background(), "UNLOCK TABLES") })
		}, how: "the session that kept the applier waiting ended", mend: func(t *testing.T, w *ward, _ fleet.Advice) {
			await(t, "the replica has it", func() bool { return value(t, w.nodes["r"], "SELECT v FROM forty.kept WHERE id = 2") == "3" })
		}},
	}
}

// fortyOfSettings are about settings.
func fortyOfSettings() []wrong {
	return []wrong{
		{id: "durability.weak", object: "sync_binlog", stage: "pair", make: sets("p", "SET GLOBAL sync_binlog = 0"), how: itsStatement, mend: states("p")},
		{id: "binlog.retention", object: "*expire_logs_*", stage: "pair", make: sets("p", "SET GLOBAL binlog_expire_logs_seconds = 3600"), how: itsStatement, mend: states("p")},
		{id: "sec.local_infile", object: "local_infile", stage: "pair", make: sets("p", "SET GLOBAL local_infile = ON"), how: itsStatement, mend: states("p")},
		{id: "config.drift", object: "innodb_old_blocks_time", says: "was set to 333", stage: "pair", at: "r", make: sets("r", "SET GLOBAL innodb_old_blocks_time = 333"), how: "its statement; of MariaDB, which keeps none, SET GLOBAL to what it was", mend: func(t *testing.T, w *ward, f fleet.Advice) {
			if w.flavour == "mariadb" {
				execSQL(t, w.nodes["r"], "SET GLOBAL innodb_old_blocks_time = 1000")
				return
			}
			states("r")(t, w, f)
		}},
		{id: "config.drift", object: "max_connections", says: "not the same on all servers of a group", stage: "pair", make: sets("p", "SET GLOBAL max_connections = 77"), how: "the same value on both", mend: func(t *testing.T, w *ward, _ fleet.Advice) {
			execSQL(t, w.nodes["p"], "SET GLOBAL max_connections = "+value(t, w.nodes["r"], "SELECT @@GLOBAL.max_connections"))
		}},
		{id: "conn.saturation", object: "max_connections", stage: "special", make: func(t *testing.T, w *ward) {
			execSQL(t, w.nodes["x"], "SET GLOBAL max_connections = 20")
			var list []session
			for range 18 {
				list = append(list, w.session(t, "x"))
			}
			for _, c := range list { // how many there were at a time stays known
				c.end()
			}
		}, how: itsStatement, mend: states("x")},
		{id: "bp.starved", object: "innodb_buffer_pool_size", stage: "special", make: func(t *testing.T, w *ward) {
			execSQL(t, w.nodes["x"], "CREATE DATABASE IF NOT EXISTS forty; CREATE TABLE forty.wide (id INT PRIMARY KEY AUTO_INCREMENT, c VARCHAR(400))")
			execSQL(t, w.nodes["x"], "INSERT INTO forty.wide (c) SELECT REPEAT('x', 400) FROM ("+numbers(5)+") a; ANALYZE TABLE forty.wide")
		}, how: itsStatement, mend: func(t *testing.T, w *ward, f fleet.Advice) {
			states("x")(t, w, f)
			await(t, "the buffer pool has its size", func() bool { return value(t, w.nodes["x"], "SELECT @@innodb_buffer_pool_size > 8388608") == "1" })
		}, stays: map[string]string{"mysql-9.7": "it counts what was read since the server was started, which the test's load did with the small pool"}},
		{id: "mem.overcommit", object: "memory", stage: "special", make: sets("x", "SET GLOBAL tmp_table_size = 64 << 30, max_heap_table_size = 64 << 30"), how: itsAdvice, mend: func(t *testing.T, w *ward, _ fleet.Advice) {
			execSQL(t, w.nodes["x"], "SET GLOBAL tmp_table_size = 16777216, max_heap_table_size = 16777216")
		}},
		{id: "ver.eol", object: "version", stage: "clock", make: func(t *testing.T, w *ward) {}, not: map[string]string{"mysql-9.7": "its series is maintained for years; TestFortyOld finds it on MySQL 5.7"}},
	}
}

// numbers is a query of 10 to the power of n rows with i from 0 on.
func numbers(n int) string {
	digits := "(SELECT 0 AS d" + strings.Repeat(" UNION ALL SELECT %d", 9) + ")"
	digits = fmt.Sprintf(digits, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	var sum, from []string
	for k, power := 0, 1; k < n; k, power = k+1, 10*power {
		sum, from = append(sum, fmt.Sprintf("%d * d%d.d", power, k)), append(from, fmt.Sprintf("%s d%d", digits, k))
	}
	return "SELECT " + strings.Join(sum, " + ") + " AS i FROM " + strings.Join(from, ", ")
}

// fortyOfSchemas are about tables and indexes.
func fortyOfSchemas() []wrong {
	return []wrong{
		{id: "schema.no_pk", object: "forty.nopk", stage: "pair", make: sets("p", "CREATE TABLE forty.nopk (a INT, b INT)"), how: itsStatement, mend: states("p")},
		{id: "schema.autoinc", object: "forty.small.id", stage: "pair", make: sets("p", "CREATE TABLE forty.small (id TINYINT AUTO_INCREMENT PRIMARY KEY, v INT); INSERT INTO forty.small VALUES (124, 1)"), how: itsStatement, mend: states("p")},
		{id: "index.redundant", object: "forty.twice.a", stage: "pair", make: sets("p", "CREATE TABLE forty.twice (id INT PRIMARY KEY, a INT, b INT, KEY a (a), KEY ab (a, b))"), how: itsStatement, mend: states("p")},
		{id: "index.unused", object: "forty.idle.v", stage: "pair", make: func(t *testing.T, w *ward) {
			execSQL(t, w.nodes["p"], "CREATE TABLE forty.idle (id INT PRIMARY KEY, v INT, KEY v (v)); INSERT INTO forty.idle VALUES (1, 1); SELECT * FROM forty.idle WHERE id = 1")
		}, how: itsStatement, mend: states("p")},
		{id: "fk.unindexed", object: "forty.child", stage: "pair", make: sets("p", "CREATE TABLE forty.parent (id INT PRIMARY KEY); CREATE TABLE forty.child (id INT PRIMARY KEY, parent INT, KEY parent (parent), CONSTRAINT c FOREIGN KEY (parent) REFERENCES forty.parent (id)); SET foreign_key_checks = 0; ALTER TABLE forty.child DROP INDEX parent"),
			how: itsStatement, mend: states("p"), not: map[string]string{"mysql-9.7": "MySQL makes the index with the key, and does not let it be dropped (error 1553), whatever foreign_key_checks is"}},
	}
}

// fortyOfStatements are about classes of statements: each on a table of its own.
func fortyOfStatements() []wrong {
	load := func(t *testing.T, w *ward) { // by a session that stays: of those that are gone MariaDB does not keep how their statements were run
		c := w.session(t, "p")
		in(t, c.Conn, "USE forty", "SET SESSION tmp_table_size = 1024, max_heap_table_size = 16384")
		for range 20 {
			in(t, c.Conn, "SELECT id FROM forty.scan WHERE v = 17", "SELECT COUNT(*) FROM (SELECT c FROM forty.disk GROUP BY c ORDER BY COUNT(*)) x", "SELECT id FROM forty.cast WHERE code = 12345")
		}
	}
	mended := func(t *testing.T, w *ward, _ fleet.Advice) { // by index.missing, which comes before
		execSQL(t, w.nodes["p"], "ANALYZE TABLE forty.scan; TRUNCATE performance_schema.events_statements_summary_by_digest; TRUNCATE performance_schema.events_statements_history")
		load(t, w)
	}
	const table = "forty.scan"
	return []wrong{
		{id: "index.missing", object: "forty.scan.*", stage: "pair", make: func(t *testing.T, w *ward) {
			execSQL(t, w.nodes["p"], `CREATE TABLE forty.scan (id INT PRIMARY KEY AUTO_INCREMENT, v INT, c CHAR(100)); INSERT INTO forty.scan (v, c) SELECT i, 'x' FROM (`+numbers(4)+`) a; INSERT INTO forty.scan (v, c) SELECT v + 10000, c FROM forty.scan;
				CREATE TABLE forty.disk (id INT PRIMARY KEY AUTO_INCREMENT, c TEXT); INSERT INTO forty.disk (c) SELECT CONCAT(v, REPEAT('y', 300)) FROM forty.scan LIMIT 5000;
				CREATE TABLE forty.cast (id INT PRIMARY KEY AUTO_INCREMENT, code VARCHAR(20), KEY code (code)); INSERT INTO forty.cast (code) SELECT id FROM forty.scan; ANALYZE TABLE forty.scan, forty.disk, forty.cast`)
			execSQL(t, w.nodes["p"], "TRUNCATE performance_schema.events_statements_summary_by_digest")
			load(t, w)
		}, how: itsStatement, mend: states("p")},
		{id: "query.full_scan", says: table, stage: "pair", make: func(*testing.T, *ward) {}, how: "the statement of index.missing", mend: mended},
		{id: "query.examined_per_sent", says: table, stage: "pair", make: func(*testing.T, *ward) {}, how: "the statement of index.missing", mend: func(*testing.T, *ward, fleet.Advice) {}},
		{id: "query.tmp_disk", says: "forty.disk", stage: "pair", make: func(*testing.T, *ward) {}},
		{id: "query.implicit_cast", says: "forty.cast", stage: "pair", make: func(*testing.T, *ward) {}},
		{id: "query.regressed", stage: "flip"}, // TestFlipRings makes it true: it takes minutes
	}
}

// fortyOfAccounts are about accounts.
func fortyOfAccounts() []wrong {
	native := func(maria, other string) func(*testing.T, *ward) {
		return func(t *testing.T, w *ward) {
			if w.flavour == "mariadb" {
				execSQL(t, w.nodes["p"], maria)
				return
			}
			execSQL(t, w.nodes["p"], other)
		}
	}
	return []wrong{
		{id: "sec.no_password", object: "open@%", stage: "pair", make: sets("p", "CREATE USER 'open'@'%'"), how: itsStatement, mend: states("p")},
		{id: "sec.weak_auth", object: "old@localhost", stage: "pair", make: native("CREATE USER 'old'@'localhost' IDENTIFIED BY 'Wrong-Horse-7'", "CREATE USER 'old'@'localhost' IDENTIFIED WITH sha256_password BY 'Wrong-Horse-7'"), how: "another plug-in", mend: func(t *testing.T, w *ward, _ fleet.Advice) {
			if w.flavour == "mariadb" {
				execSQL(t, w.nodes["r"], "INSTALL SONAME 'auth_ed25519'")
			}
			native("INSTALL SONAME 'auth_ed25519'; ALTER USER 'old'@'localhost' IDENTIFIED VIA ed25519 USING PASSWORD('Wrong-Horse-8')", "ALTER USER 'old'@'localhost' IDENTIFIED WITH caching_sha2_password BY 'Wrong-Horse-8'")(t, w)
		}},
		{id: "sec.super_remote", object: "boss@%", stage: "pair", make: sets("p", "CREATE USER 'boss'@'%' IDENTIFIED BY 'Wrong-Horse-7'; GRANT ALL ON *.* TO 'boss'@'%' WITH GRANT OPTION"), how: "RENAME USER to one host, as it advises", mend: func(t *testing.T, w *ward, _ fleet.Advice) {
			execSQL(t, w.nodes["p"], "RENAME USER 'boss'@'%' TO 'boss'@'localhost'")
		}},
		{id: "sec.tls", object: "app@%", stage: "pair", make: sets("p", "CREATE USER 'app'@'%' IDENTIFIED BY 'Wrong-Horse-7'"), how: itsStatement, mend: states("p")},
		{id: "pci.lockout", object: "app@%", stage: "pair", make: func(*testing.T, *ward) {}, how: "its statement; of MariaDB what it advises", mend: func(t *testing.T, w *ward, f fleet.Advice) {
			if w.flavour == "mariadb" {
				statement, _, _ := strings.Cut(f.Advice, ",")
				execSQL(t, w.nodes["p"], statement)
				return
			}
			states("p")(t, w, f)
		}},
		{id: "pci.password_age", object: "aged@localhost", stage: "pair", make: native("CREATE USER 'aged'@'localhost' IDENTIFIED BY 'Wrong-Horse-7'; UPDATE mysql.global_priv SET priv = JSON_SET(priv, '$.password_last_changed', UNIX_TIMESTAMP() - 200 * 86400) WHERE user = 'aged'; FLUSH PRIVILEGES",
			"CREATE USER 'aged'@'localhost' IDENTIFIED BY 'Wrong-Horse-7'; UPDATE mysql.user SET password_last_changed = NOW() - INTERVAL 200 DAY WHERE user = 'aged'; FLUSH PRIVILEGES"), how: "another password", mend: func(t *testing.T, w *ward, _ fleet.Advice) {
			execSQL(t, w.nodes["p"], "ALTER USER 'aged'@'localhost' IDENTIFIED BY 'Wrong-Horse-9'")
		}},
		{id: "sec.tls", object: "certificate", stage: "special", how: "another certificate, and its statement", mend: func(t *testing.T, w *ward, f fleet.Advice) {
			certify(t, w.disk.dir, 365*24*time.Hour)
			states("x")(t, w, f)
		}},
		{id: "backup.stale", stage: "kept"},
	}
}

// fortyOfSessions are about what sessions do at the moment.
func fortyOfSessions() []wrong {
	return []wrong{
		{id: "lock.blocker", stage: "pair", make: func(t *testing.T, w *ward) {
			execSQL(t, w.nodes["p"], "CREATE TABLE forty.held (id INT PRIMARY KEY, v INT); INSERT INTO forty.held VALUES (1, 1)")
			holder, waiter := w.session(t, "p"), w.session(t, "p")
			in(t, holder.Conn, "BEGIN", "UPDATE forty.held SET v = 2")
			go func() { _, _ = waiter.ExecContext(context.Background(), "UPDATE forty.held SET v = 3") }()
		}, how: itsStatement, mend: states("p")},
		{id: "mdl.blocker", stage: "pair", make: func(t *testing.T, w *ward) {
			execSQL(t, w.nodes["p"], "CREATE TABLE forty.read_by (id INT PRIMARY KEY)")
			holder, waiter := w.session(t, "p"), w.session(t, "p")
			in(t, holder.Conn, "BEGIN", "SELECT * FROM forty.read_by")
			go func() { _, _ = waiter.ExecContext(context.Background(), "ALTER TABLE forty.read_by ADD COLUMN v INT") }()
		}, how: itsStatement, mend: states("p")},
		{id: "deadlock.rate", stage: "special", make: deadlocks, how: "the end of the load", mend: func(*testing.T, *ward, fleet.Advice) {}},
		{id: "trx.long", stage: "clock", make: func(t *testing.T, w *ward) {
			c := w.session(t, "x")
			in(t, c.Conn, "BEGIN", "SELECT COUNT(*) FROM forty.wide", "INSERT INTO forty.wide (c) VALUES ('long')")
			write(t, w.shift, "+600d")
			await(t, "its clock is ahead", func() bool {
				return value(t, w.nodes["x"], "SELECT NOW() > '"+time.Now().AddDate(1, 0, 0).Format(time.DateOnly)+"'") == "1"
			})
		}, how: itsStatement, mend: states("x")},
		{id: "galera.flow_control", stage: "cluster"},
	}
}

// deadlocks lets sessions run into each other until the stage's findings were seen.
func deadlocks(t *testing.T, w *ward) {
	execSQL(t, w.nodes["x"], "CREATE DATABASE IF NOT EXISTS forty; CREATE TABLE forty.stock (id INT PRIMARY KEY, v INT); INSERT INTO forty.stock VALUES (0, 0), (1, 1)")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	for i := range 2 {
		c := w.session(t, "x")
		go func() {
			defer func() { done <- struct{}{} }()
			for ctx.Err() == nil {
				for _, s := range []string{"BEGIN", fmt.Sprintf("UPDATE forty.stock SET v = v + 1 WHERE id = %d", i), "DO SLEEP(0.05)", fmt.Sprintf("UPDATE forty.stock SET v = v + 1 WHERE id = %d", 1-i), "ROLLBACK"} {
					_, _ = c.ExecContext(ctx, s) // one of them is a victim
				}
			}
		}()
	}
	w.during(t, func() { stop(); <-done; <-done })
}

// fortyOfMachine are about what a server's machine, and InnoDB's files, have to bear.
func fortyOfMachine() []wrong {
	return []wrong{
		{id: "disk.forecast", stage: "special", make: func(t *testing.T, w *ward) {
			fillDisk(t, filepath.Join(w.disk.dir, "filler"))
		}, how: "room on the disk", mend: func(t *testing.T, w *ward, _ fleet.Advice) {
			if err := os.Remove(filepath.Join(w.disk.dir, "filler")); err != nil {
				t.Fatal(err)
			}
		}},
		{id: "host.io_slow", stage: "clock", make: func(t *testing.T, w *ward) { w.disk.slow(t, w) }, how: "the end of the load", mend: func(*testing.T, *ward, fleet.Advice) {}, not: map[string]string{"": canSlow()}},
		{id: "undo.history", stage: "pile", make: pile, how: "the end of the transaction that holds it", mend: func(t *testing.T, w *ward, _ fleet.Advice) {
			awaitWithin(t, 3*patience, "old rows are removed", func() bool { // purging has the lowest claim on a busy machine
				if w.flavour == "mariadb" {
					return value(t, w.nodes["x"], "SELECT VARIABLE_VALUE < 100000 FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'INNODB_HISTORY_LIST_LENGTH'") == "1"
				}
				return value(t, w.nodes["x"], "SELECT COUNT < 100000 FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'") == "1"
			})
		}},
		{id: "redo.pressure", stage: "pile", make: func(t *testing.T, w *ward) {
			execSQL(t, w.nodes["x"], "CREATE TABLE forty.notes (id INT PRIMARY KEY, note LONGBLOB)")
			c := w.session(t, "x")
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := 0; ctx.Err() == nil; i++ {
					_, _ = c.ExecContext(ctx, fmt.Sprintf("REPLACE INTO forty.notes VALUES (%d, REPEAT('%c', 100000))", i%200, 'a'+i%26))
				}
			}()
			w.during(t, func() { stop(); <-done })
		}, how: itsStatement, mend: states("x")},
	}
}

// pile lets old rows pile up behind a transaction that stays open until the stage's findings were seen.
func pile(t *testing.T, w *ward) {
	execSQL(t, w.nodes["x"], "CREATE DATABASE forty; CREATE TABLE forty.churned (id INT PRIMARY KEY, v INT); INSERT INTO forty.churned VALUES (1, 0), (2, 0), (3, 0), (4, 0)")
	holder := w.session(t, "x")
	in(t, holder.Conn, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
	w.during(t, holder.end)
	in(t, w.session(t, "x").Conn, "CREATE PROCEDURE forty.churn(k INT, n INT) BEGIN WHILE n > 0 DO UPDATE forty.churned SET v = v + 1 WHERE id = k; SET n = n - 1; END WHILE; END")
	done := make(chan error, 4)
	for k := range 4 {
		c := w.session(t, "x")
		go func() {
			_, err := c.ExecContext(t.Context(), fmt.Sprintf("CALL forty.churn(%d, 52000)", k+1))
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}
