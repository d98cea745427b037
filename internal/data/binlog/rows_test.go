package binlog

import (
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestOtherRows: if a server's rows are not those of the position, the error of every server names the remedy.
func TestOtherRows(t *testing.T) {
	t.Parallel()
	for _, spec := range flavours {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := sandboxtest.Lend(t, spec, fast...)
			db := openDB(t, node)
			run(t, db, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)", "INSERT INTO d.t VALUES (1, 1)")
			for _, c := range []struct{ do, meanwhile string }{
				{"UPDATE d.t SET v = 2 WHERE id = 1", "DELETE FROM d.t WHERE id = 1"},
				{"INSERT INTO d.t VALUES (1032, 1)", "DO 1"},
			} {
				_, file, pos := position(t, node)
				run(t, db, c.do)
				own := conn(t, db)
				run(t, own, "SET sql_log_bin = 0", c.meanwhile, "DROP DATABASE IF EXISTS risso_roll_forward", "SET sql_log_bin = 1")
				own.Close()
				res, err := Roll(t.Context(), RollOptions{Files: logged(t, node), From: repo.Position{File: file, Offset: pos}, Into: targetOf(t, node)})
				if err == nil || !strings.Contains(err.Error(), "the server's rows are not those of the position") {
					t.Errorf("%s: got %+v, %v; want an error, \"the server's rows are not those of the position\" in the error", c.do, res, err)
				}
			}
		})
	}
}

// TestCommentedStatements: a statement that a comment of its application begins belongs to its transaction like any other: when the next
// one fails, it is not there.
func TestCommentedStatements(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := sandboxtest.Up(t, spec, append(fast, "binlog_format=STATEMENT")...)
			db := openDB(t, node)
			run(t, db, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "CREATE TABLE d.u (id INT PRIMARY KEY)")
			_, file, pos := position(t, node)
			c := conn(t, db)
			run(t, c, "BEGIN", "/* app */ INSERT INTO d.t VALUES (1)", "/* app */ INSERT INTO d.u VALUES (1)", "COMMIT", "SET sql_log_bin = 0", "DELETE FROM d.t", "DROP TABLE d.u")
			c.Close()
			res, err := Roll(t.Context(), RollOptions{Files: logged(t, node), From: repo.Position{File: file, Offset: pos}, Into: targetOf(t, node)})
			if err == nil || value(t, db, "SELECT COUNT(*) FROM d.t") != "0" {
				t.Errorf("half of a transaction was applied: %+v, %v; want an error, value(t, db, \"SELECT COUNT(*) FROM d.t\") \"0\"", res, err)
			}
		})
	}
}
