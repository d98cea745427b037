package trial_test

import (
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/differ/trial"
	"github.com/rissodb/risso/internal/explain/differ/upgrade"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// later are what MySQL 8.0.15 takes and 9.7 does not, or takes otherwise.
func later() []trap {
	return []trap{
		{make: []string{"CREATE TABLE lending.shelf_of (id INT PRIMARY KEY, `qualify` INT, `library` INT, `external` INT)"}, id: "name.reserved", object: "`lending`.`shelf_of`.`library`", sure: true},
		{make: []string{"CREATE TABLE lending.three_bytes (id INT PRIMARY KEY, t VARCHAR(20)) CHARACTER SET utf8"}, id: "column.utf8mb3", object: "`lending`.`three_bytes`"},
		{make: []string{"CREATE TABLE lending.measured (id INT PRIMARY KEY, f FLOAT(7,3))"}, id: "column.float_digits", object: "`lending`.`measured`.`f`"},
		{make: []string{"CREATE TABLE lending.float_id (id DOUBLE NOT NULL AUTO_INCREMENT PRIMARY KEY)"}, id: "column.float_auto", object: "`lending`.`float_id`.`id`", sure: true},
		{make: []string{"CREATE TABLE lending.filled (id INT PRIMARY KEY, n INT(5) ZEROFILL)"}, id: "column.zerofill", object: "`lending`.`filled`.`n`"},
		{make: []string{"CREATE TABLE lending.place (id INT PRIMARY KEY, at_ POINT NOT NULL, SPATIAL KEY at_ (at_))"}, id: "column.srid", object: "`lending`.`place`.`at_`"},
		{make: []string{"CREATE TABLE lending.parent (id INT PRIMARY KEY, code INT, KEY code (code))", "CREATE TABLE lending.child (id INT PRIMARY KEY, code INT, CONSTRAINT loose FOREIGN KEY (code) REFERENCES lending.parent (code))"}, id: "foreign_key.not_unique", object: "`lending`.`child`", sure: true},
		{make: []string{"CREATE TABLE lending.by_prefix (a VARCHAR(40) NOT NULL, b INT NOT NULL, PRIMARY KEY (a(10), b)) PARTITION BY KEY () PARTITIONS 2"}, id: "partition.prefix", object: "`lending`.`by_prefix`", sure: true},
		{make: []string{"CREATE PROCEDURE lending.where_are_we() SHOW SLAVE STATUS"}, id: "syntax.replication", object: "procedure `lending`.`where_are_we`", sure: true},
		{make: []string{"CREATE PROCEDURE lending.follow() CHANGE MASTER TO MASTER_HOST = 'h'"}, id: "syntax.replication", object: "procedure `lending`.`follow`", sure: true},
		{make: []string{"CREATE EVENT lending.halt ON SCHEDULE EVERY 1 DAY DISABLE DO STOP SLAVE"}, id: "syntax.replication", object: "event `lending`.`halt`", sure: true},
		{make: []string{"CREATE FUNCTION lending.waited() RETURNS INT NOT DETERMINISTIC NO SQL RETURN WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS('')"}, id: "function.removed", object: "function `lending`.`waited`", sure: true},
		{make: []string{"CREATE VIEW lending.no_one AS SELECT 1 AS n", "CREATE DEFINER = gone@nowhere VIEW lending.of_nobody AS SELECT name FROM lending.title"}},
		{make: []string{"CREATE USER clerk@localhost IDENTIFIED WITH mysql_native_password BY 'x9-Clerk'"}, id: "account.plugin", object: "'clerk'@'localhost'", sure: true},
		{make: []string{"CREATE USER owner@localhost IDENTIFIED BY 'x9-Owner'", "GRANT SET_USER_ID ON *.* TO owner@localhost"}, id: "account.privilege", object: "'owner'@'localhost'"},
	}
}

// TestUpgradeLater: 8.0 to 9.7 with traps, settings that are gone, and plans: those that the trial knows are what the versions do with the rows.
func TestUpgradeLater(t *testing.T) {
	sandboxtest.Need(t, "mysql-9.7")
	gone := []string{"default_authentication_plugin=mysql_native_password", "expire_logs_days=7", "binlog_transaction_dependency_tracking=WRITESET", "slave_rows_search_algorithms=TABLE_SCAN,INDEX_SCAN",
		"log_bin_use_v1_row_events=ON", "avoid_temporal_upgrade=ON", "slave_parallel_type=LOGICAL_CLOCK"}
	deprecated := "binlog_format=STATEMENT"
	n := sandboxtest.Up(t, "mysql-8.0", append(gone, deprecated)...)
	run(t, n, append([]string{"SET sql_mode = 'STRICT_TRANS_TABLES'"}, append(sound, filled()...)...)...)
	for _, tr := range later() {
		run(t, n, tr.make...)
	}
	a := upgraded(t, n, "mysql-9.7", trial.Options{Statements: asked(), Live: live(t, n)})
	accused := ofSchemas(a)
	for _, tr := range later() {
		for _, name := range tr.objects() {
			accused = without(accused, name)
		}
		if tr.id == "" {
			continue
		}
		switch p := has(a, tr.id, tr.object); {
		case p == nil:
			t.Errorf("%s of %s is not found", tr.id, tr.object)
		case tr.sure && (!p.Tried || tr.id != "account.plugin" && p.Said == ""):
			t.Errorf("%s of %s: got tried %t, said %q; want true and the server's words", tr.id, tr.object, p.Tried, p.Said)
		}
	}
	if accused != "" {
		t.Errorf("what is sound is accused:\n%s", accused)
	}
	for _, setting := range gone {
		name, _, _ := strings.Cut(setting, "=")
		if p := has(a, "variable.removed", name); p == nil || !p.Tried || !strings.Contains(p.Said, name) {
			t.Errorf("removed variable %s: got %+v, want it with the server's words; not tried: %v", name, p, a.NotTried)
		}
	}
	if p := has(a, "variable.deprecated", "binlog_format"); p == nil || !strings.Contains(p.Said, "binlog_format") {
		t.Errorf("%s: got %+v, want that the new server calls it deprecated", deprecated, p)
	}
	real := sandboxtest.Lend(t, "mysql-9.7")
	run(t, real, append([]string{"SET sql_mode = 'STRICT_TRANS_TABLES'"}, append(sound, filled()...)...)...)
	sameAsReal(t, n, real, a)
}

// TestUpgradeMariaDB: 10.11 to 11.8, with plans.
func TestUpgradeMariaDB(t *testing.T) {
	sandboxtest.Need(t, "mariadb-10.11")
	sandboxtest.Need(t, "mariadb-11.8")
	n := sandboxtest.Up(t, "mariadb-10.11", "innodb_change_buffering=all", "innodb_defragment=ON", "date_format=%Y-%m-%d")
	run(t, n, append([]string{"SET sql_mode = 'STRICT_TRANS_TABLES'"}, append(sound, filled()...)...)...)
	run(t, n, "CREATE TABLE lending.past (id INT PRIMARY KEY, `vector` INT) WITH SYSTEM VERSIONING", "CREATE TABLE lending.plain (id INT PRIMARY KEY, row_start INT COMMENT 'without system versioning')", "CREATE USER clerk@localhost IDENTIFIED VIA mysql_native_password USING PASSWORD('x9-Clerk')")
	a := upgraded(t, n, "mariadb-11.8", trial.Options{Statements: asked(), Live: live(t, n)})
	for _, name := range []string{"innodb_change_buffering", "innodb_defragment"} {
		if p := has(a, "variable.removed", name); p == nil || !p.Tried || p.Severity != upgrade.Note {
			t.Errorf("removed variable %s, which the server ignores: got %+v, want a note that it was tried", name, p)
		}
	}
	if has(a, "table.versioned", "`lending`.`past`") == nil {
		t.Errorf("a table with rows of the past: got %s, want that it is written anew", ofSchemas(a))
	}
	if p := has(a, "name.reserved", "`lending`.`past`.`vector`"); p == nil || !p.Tried || p.Said == "" {
		t.Errorf("a column called vector: got %+v, want it with the server's words", p)
	}
	if accused := without(ofSchemas(a), "`lending`.`past`"); accused != "" {
		t.Errorf("what is sound is accused:\n%s", accused)
	}
	real := sandboxtest.Lend(t, "mariadb-11.8")
	run(t, real, append([]string{"SET sql_mode = 'STRICT_TRANS_TABLES'"}, append(sound, filled()...)...)...)
	sameAsReal(t, n, real, a)
}
