package binlog

import (
	"errors"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestTargetFilters: a server with filters takes all that is rolled forward. What its own logs leave out is reported; if they must record
// what it has, it is refused in advance.
func TestTargetFilters(t *testing.T) {
	for _, c := range []struct{ spec, log string }{{"mariadb", "binlog-ignore-db=hidden"}, {"mysql-9.7", "binlog-do-db=shop"}, {"mysql-5.7", "binlog-ignore-db=hidden"}} {
		t.Run(c.spec, func(t *testing.T) {
			t.Parallel()
			sandboxtest.Need(t, c.spec)
			src := sandboxtest.Lend(t, c.spec, fast...)
			dst := sandboxtest.Up(t, c.spec, append([]string{c.log, "replicate-ignore-db=hidden", "replicate-wild-ignore-table=shop.%"}, fast...)...)
			sdb, ddb := openDB(t, src), openDB(t, dst)
			made := []string{"CREATE DATABASE shop", "CREATE DATABASE hidden", "CREATE TABLE shop.a (id INT)", "CREATE TABLE hidden.b (id INT)"}
			run(t, sdb, made...)
			run(t, ddb, made...)
			from, file, pos := position(t, src)
			s := conn(t, sdb)
			run(t, s, "INSERT INTO shop.a VALUES (1)", "USE hidden", "INSERT INTO hidden.b VALUES (1), (2)", "SET SESSION binlog_format = STATEMENT", "INSERT INTO hidden.b VALUES (3)", "INSERT INTO shop.a VALUES (2)")
			s.Close()
			o := RollOptions{Files: logged(t, src), From: repo.Position{GTIDSet: from.String(), File: file, Offset: pos}, Into: targetOf(t, dst)}
			sum := func() string {
				return value(t, ddb, "SELECT CONCAT((SELECT COUNT(*) FROM shop.a), ' ', (SELECT COUNT(*) FROM hidden.b))")
			}
			keep := o
			keep.Keep, keep.From = true, repo.Position{GTIDSet: from.String()}
			if c.spec == "mariadb" {
				seed(t, ddb, c.spec, from)
				if res, err := Roll(t.Context(), keep); !errors.Is(err, ErrTarget) || !strings.Contains(err.Error(), "in hidden (binlog_ignore_db)") || sum() != "0 0" {
					t.Fatalf("with GTIDs kept: got %+v, %v, %s; want ErrTarget, \"in hidden (binlog_ignore_db)\" in the error, sum() \"0 0\"", res, err, sum())
				}
			}
			if res, err := planned(t, o); err != nil || !strings.Contains(strings.Join(res.Notes, "\n"), "its replicas do not get it") || sum() != "0 0" {
				t.Errorf("planned: got %+v, %v; want \"its replicas do not get it\" in strings.Join(res.Notes, \"\\n\"), sum() \"0 0\"", res, err)
			}
			res, err := Roll(t.Context(), o)
			if err != nil || sum() != "2 3" || res.Transactions != 4 {
				t.Fatalf("got %+v, %v, %s; want sum() \"2 3\", Transactions 4", res, err, sum())
			}
			if n := strings.Join(res.Notes, "\n"); !strings.Contains(n, "of the target: its binary logs") || !strings.Contains(n, "its replicas do not get it") {
				t.Errorf("notes: got %q; want \"of the target: its binary logs\" in n, \"its replicas do not get it\" in n", res.Notes)
			}
			if c.spec == "mariadb" {
				return
			}
			// The GTIDs of MySQL record what it has whatever its logs leave out: nothing is applied twice.
			run(t, ddb, "TRUNCATE shop.a", "TRUNCATE hidden.b")
			seed(t, ddb, c.spec, from)
			for range 2 {
				if res, err := Roll(t.Context(), keep); err != nil || sum() != "2 3" {
					t.Fatalf("with GTIDs kept: got %+v, %v, %s; want \"2 3\"", res, err, sum())
				}
			}
		})
	}
}
