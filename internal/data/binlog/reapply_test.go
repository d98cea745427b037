package binlog

import (
	"bytes"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestReapply takes transactions back and applies them once more, by the server and by the statements for people: the tables are as they were after them.
// Then rows, tables and logs are such that it must not.
func TestReapply(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			settings := []string{"sync_binlog=0", "innodb_flush_log_at_trx_commit=2", "max_binlog_size=64K"}
			if spec == "mysql-9.7" {
				settings = append(settings, "binlog_row_value_options=PARTIAL_JSON", "binlog_transaction_compression=ON")
			}
			n := sandboxtest.Up(t, spec, settings...)
			db := openDB(t, n)
			c := conn(t, db)
			again := &reapplying{t: t, n: n, db: db, c: c, target: sandboxtest.Target(t, n)}
			w := newWorkload(t, c, spec, 5)
			for range 20 {
				w.change(t, c)
			}
			for i := range 8 {
				again.round(w, i%2 == 1)
			}
			again.conflicts()
			again.definitions()
			again.unseen()
		})
	}
}

// reapplying is a server whose transactions are taken back and applied once more.
type reapplying struct {
	t      *testing.T
	n      *sandbox.Node
	db     *sql.DB
	c      *sql.Conn
	target mysql.Target
}

// tx runs statements, as one transaction or by themselves, and is the GTID of that.
func (r *reapplying) tx(statements ...string) mysql.GTID {
	r.t.Helper()
	from, _, _ := position(r.t, r.n)
	if len(statements) > 1 {
		statements = slices.Concat([]string{"BEGIN"}, statements, []string{"COMMIT"})
	}
	for _, q := range statements {
		run(r.t, r.c, q)
	}
	to, _, _ := position(r.t, r.n)
	return only(r.t, to.Subtract(from))
}

func (r *reapplying) options(list ...mysql.GTID) ReapplyOptions {
	return ReapplyOptions{Pick: Pick{Files: logged(r.t, r.n), Wanted: func(g mysql.GTID) bool { return slices.Contains(list, g) }}, Into: r.target, Who: "o'neill"}
}

func (r *reapplying) plan(o ReapplyOptions) *ReapplyPlan {
	r.t.Helper()
	p, err := PlanReapply(r.t.Context(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// apply applies them, and fails if something is in the way.
func (r *reapplying) apply(o ReapplyOptions) {
	r.t.Helper()
	p := r.plan(o)
	done := 0
	if err := p.Execute(r.t.Context(), func(mysql.GTID) { done++ }); err != nil {
		r.t.Fatalf("%v: %+v", err, p.Transactions)
	}
	if done != len(p.Transactions) {
		r.t.Fatalf("%d of %d applied", done, len(p.Transactions))
	}
	if err := r.plan(o).Execute(r.t.Context(), func(mysql.GTID) {}); !errors.Is(err, ErrReapplied) || !strings.Contains(err.Error(), "o'neill") {
		r.t.Fatalf("a second time: %v", err)
	}
}

// refused says why they are not applied, and makes sure that nothing was.
func (r *reapplying) refused(o ReapplyOptions, want ReapplyState, words string) {
	r.t.Helper()
	from, _, _ := position(r.t, r.n)
	p := r.plan(o)
	if err := p.Execute(r.t.Context(), func(mysql.GTID) {}); !errors.Is(err, ErrReapplyConflict) {
		r.t.Errorf("%v, want a conflict: %+v", err, p.Transactions)
	}
	if to, _, _ := position(r.t, r.n); !to.Subtract(from).Empty() {
		r.t.Errorf("something was done: %s", to.Subtract(from))
	}
	last := p.Transactions[len(p.Transactions)-1]
	if last.State != want || len(last.Conflicts) == 0 || !strings.Contains(last.Conflicts[0].Because, words) {
		r.t.Errorf("%+v, want %s and %q", last, want, words)
	}
}

// value is the only value of a query.
func (r *reapplying) value(query string) (v string) {
	r.t.Helper()
	if err := r.db.QueryRow(query).Scan(&v); err != nil {
		r.t.Fatalf("%s: %v", query, err)
	}
	return v
}

// round changes tables of all types, takes that back, and does it again.
func (r *reapplying) round(w *workload, byPeople bool) {
	r.t.Helper()
	from, _, _ := position(r.t, r.n)
	run(r.t, r.c, "BEGIN")
	for range 6 {
		w.change(r.t, r.c)
	}
	run(r.t, r.c, "COMMIT")
	to, _, _ := position(r.t, r.n)
	changed := to.Subtract(from)
	if changed.Empty() {
		return
	}
	id := only(r.t, changed)
	after := w.sums(r.t, r.db)
	_, text := undo(r.t, r.n, UndoOptions{GTID: id})
	u := conn(r.t, r.db)
	defer u.Close()
	runUndo(r.t, u, text)
	o := r.options(id)
	if !byPeople {
		r.apply(o)
	} else {
		var out bytes.Buffer
		lc, err := mysql.Connect(r.t.Context(), r.target, nil)
		if err != nil {
			r.t.Fatal(err)
		}
		defer lc.Close()
		if _, err := AgainScript(r.t.Context(), AgainOptions{Pick: o.Pick, Columns: NewLive(lc).Columns}, &out); err != nil {
			r.t.Fatal(err)
		}
		text = out.String()
		runUndo(r.t, u, text)
	}
	if got := w.sums(r.t, r.db); !slices.Equal(got, after) {
		r.t.Fatalf("again (by people: %v): got %s, want %s\n%.4000s", byPeople, got, after, text)
	}
}

// conflicts: rows that are not as they were.
func (r *reapplying) conflicts() {
	run(r.t, r.c, "CREATE TABLE test.k (id INT PRIMARY KEY, v VARCHAR(20), w INT, u INT UNIQUE)", "INSERT INTO test.k VALUES (1, 'it''s', 1, 1), (2, NULL, 2, 2), (3, 'c', 3, 3)")
	insert := r.tx("INSERT INTO test.k VALUES (10, 'x', 0, 10)")
	update := r.tx("UPDATE test.k SET v = 'new' WHERE id = 1")
	remove := r.tx("DELETE FROM test.k WHERE id = 2")
	chain := r.tx("INSERT INTO test.k VALUES (20, 'a', 0, 20)", "UPDATE test.k SET v = 'b', id = 21 WHERE id = 20", "DELETE FROM test.k WHERE id = 21", "INSERT INTO test.k VALUES (20, 'c', 0, 20)")
	twice := r.tx("INSERT INTO test.k (id, w) VALUES (30, 1), (30, 1) ON DUPLICATE KEY UPDATE w = w + 1")
	all := []mysql.GTID{insert, update, remove, chain, twice}
	back := func() {
		run(r.t, r.c, "REPLACE INTO test.k VALUES (1, 'it''s', 1, 1), (2, NULL, 2, 2), (3, 'c', 3, 3)", "DELETE FROM test.k WHERE id > 3")
	}
	r.refused(r.options(insert), ReapplyConflict, "a row with this key is there now")
	r.refused(r.options(update), ReapplyConflict, "`v` is 'new', in the log 'it\\'s'")
	r.refused(r.options(remove), ReapplyConflict, "the row is not there any more")
	back()
	run(r.t, r.c, "UPDATE test.k SET w = 7 WHERE id = 1") // another column of the row: the whole row would be overwritten
	r.refused(r.options(insert, update), ReapplyConflict, "`w` is 7, in the log 1")
	back()
	run(r.t, r.c, "UPDATE test.k SET u = 10 WHERE id = 3") // a unique key, which only the server sees
	p := r.plan(r.options(remove, insert))
	if err := p.Execute(r.t.Context(), func(mysql.GTID) {}); !errors.Is(err, ErrReapplyConflict) {
		r.t.Errorf("a unique key: %v", err)
	}
	if got := r.value("SELECT COUNT(*) FROM test.k WHERE id = 10"); got != "0" {
		r.t.Error("half of it was applied")
	}
	run(r.t, r.c, "DELETE FROM risso_receipt.applied")
	back()
	r.apply(r.options(all...))
	if got := r.value("SELECT GROUP_CONCAT(id, ':', COALESCE(v, 'NULL'), ':', COALESCE(w, 'NULL') ORDER BY id) FROM test.k"); got != "1:new:1,3:c:3,10:x:0,20:c:0,30:NULL:2" {
		r.t.Errorf("all applied: %s", got)
	}
}

// definitions: tables that were made, dropped and altered since.
func (r *reapplying) definitions() {
	create := r.tx("CREATE TABLE test.made (id INT PRIMARY KEY, b BLOB, g INT AS (id * 2) STORED, d DATETIME)")
	fill := r.tx("INSERT INTO test.made (id, b, d) VALUES (1, X'00ff27', NULL), (2, '', '2020-01-01 00:00:00')")
	r.refused(r.options(create, fill), ReapplyConflict, "a row with this key is there now")
	run(r.t, r.c, "ALTER TABLE test.made DROP COLUMN d")
	r.refused(r.options(fill), ReapplyConflict, "the columns that `test`.`made` has now are not those that it had when this was logged")
	run(r.t, r.c, "DROP TABLE test.made")
	r.refused(r.options(fill), ReapplyConflict, "there is no table `test`.`made` now")
	r.apply(r.options(create, fill))
	if got := r.value("SELECT GROUP_CONCAT(id, HEX(b), g, COALESCE(d, 'NULL') ORDER BY id) FROM test.made"); got != "100FF272NULL,242020-01-01 00:00:00" {
		r.t.Errorf("applied: %s", got)
	}
}

// unseen: logs that do not say what was there before.
func (r *reapplying) unseen() {
	run(r.t, r.c, "CREATE TABLE test.few (id INT PRIMARY KEY, v INT, x INT)", "INSERT INTO test.few VALUES (1, 1, 1), (2, 2, 2)", "SET SESSION binlog_row_image = MINIMAL")
	minimal := r.tx("UPDATE test.few SET v = 10 WHERE id = 1")
	run(r.t, r.c, "SET SESSION binlog_row_image = FULL", "SET SESSION binlog_format = STATEMENT")
	text := r.tx("UPDATE test.few SET x = x + 1 WHERE id = 2")
	run(r.t, r.c, "SET SESSION binlog_format = ROW", "UPDATE test.few SET v = 1 WHERE id = 1")
	r.refused(r.options(minimal), ReapplyUnchecked, "the log does not say what `v` was before")
	r.refused(r.options(text), ReapplyUnchecked, "it was logged as a statement")
	o := r.options(minimal, text)
	o.Unchecked = true
	r.apply(o)
	if got := r.value("SELECT GROUP_CONCAT(id, ':', v, ':', x ORDER BY id) FROM test.few"); got != "1:10:1,2:2:4" {
		r.t.Errorf("applied: %s", got)
	}
}
