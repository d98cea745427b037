package binlog

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestUndo changes tables of all types at random, undoes each transaction and compares.
func TestUndo(t *testing.T) {
	for _, spec := range flavours {
		t.Run(spec, func(t *testing.T) {
			settings := []string{"sync_binlog=0", "innodb_flush_log_at_trx_commit=2", "max_binlog_size=64K"}
			if spec == "mysql-9.7" {
				settings = append(settings, "binlog_row_value_options=PARTIAL_JSON", "binlog_transaction_compression=ON")
			}
			if strings.HasPrefix(spec, "mariadb") {
				settings = append(settings, "log_bin_compress=ON", "log_bin_compress_min_len=10")
			}
			n := sandboxtest.Up(t, spec, settings...)
			db := openDB(t, n)
			c := conn(t, db)
			w := newWorkload(t, c, spec, 11)
			for range 40 {
				w.change(t, c)
			}
			undone := 0
			for range 20 {
				undone += undoOne(t, n, db, c, w)
			}
			t.Logf("%d statements", undone)
			if undone < 50 {
				t.Errorf("only %d statements were undone, want at least 50", undone)
			}
			t.Run("minimal image", func(t *testing.T) { minimalImage(t, n, db) })
			t.Run("search", func(t *testing.T) { searchFinds(t, n, db, spec) })
		})
	}
}

// undoOne runs a random transaction, undoes it, and does it again, so that the tables go on changing.
func undoOne(t *testing.T, n *sandbox.Node, db *sql.DB, c *sql.Conn, w *workload) int {
	t.Helper()
	before := w.sums(t, db)
	from, file, pos := position(t, n)
	run(t, c, "BEGIN")
	for range 1 + w.r.IntN(5) {
		w.change(t, c)
	}
	if w.pointers || w.r.IntN(2) == 0 { // a part of a JSON document
		for _, tb := range w.tables {
			for j, col := range tb.columns {
				if col.def == "JSON" && len(mysqlColumns[0].values) == len(col.values) {
					run(t, c, "UPDATE "+tb.name+" SET `c "+itoa(j)+"` = JSON_SET(`c "+itoa(j)+"`, '$.a', 17.5) WHERE id % 3 = 0")
				}
			}
		}
	}
	run(t, c, "COMMIT")
	to, _, _ := position(t, n)
	changed := to.Subtract(from)
	if changed.Empty() {
		return 0 // no row was changed
	}
	res, text := undo(t, n, UndoOptions{GTID: only(t, changed)})
	if pos = behindCheckpoints(t, n, file, pos); res.Place.File != file || res.Place.Pos != pos {
		t.Errorf("it says that the transaction begins at %s, not %s:%d", res.Place, file, pos)
	}
	u := conn(t, db)
	runUndo(t, u, text)
	u.Close()
	if got := w.sums(t, db); !slices.Equal(got, before) {
		for i := range got {
			if got[i] != before[i] {
				t.Errorf("undone: got %s, before: %s; want before[i]", got[i], before[i])
			}
		}
		t.Fatalf("%.4000s", text)
	}
	return int(res.Statements)
}

func itoa(n int) string { return strconv.Itoa(n) }

func stripComments(s string) string {
	var lines []string
	for l := range strings.SplitSeq(s, "\n") {
		if !strings.HasPrefix(l, "-- ") {
			lines = append(lines, l)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func undo(t *testing.T, n *sandbox.Node, o UndoOptions) (UndoResult, string) {
	t.Helper()
	res, text, err := tryUndo(t, n, o)
	if err != nil {
		t.Fatal(err)
	}
	return res, text
}

func tryUndo(t *testing.T, n *sandbox.Node, o UndoOptions) (UndoResult, string, error) {
	t.Helper()
	c, err := mysql.Connect(t.Context(), targetOf(t, n), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	live := NewLive(c)
	o.Columns, o.Hazards = live.Columns, live.Hazards
	files := logged(t, n)
	o.Files = files[max(0, len(files)-2):]
	var b strings.Builder
	res, err := Undo(context.Background(), o, &b)
	return res, b.String(), err
}

// minimalImage is what a log with less than whole rows allows, and what not.
func minimalImage(t *testing.T, n *sandbox.Node, db *sql.DB) {
	c := conn(t, db)
	run(t, c, "CREATE TABLE test.m (id INT PRIMARY KEY, v INT, b BLOB)", "SET SESSION binlog_row_image = MINIMAL")
	for _, k := range []struct {
		statement string
		works     bool
		says      string
	}{{"INSERT INTO test.m VALUES (1, 2, 'x'), (2, 3, 'y')", true, ""}, {"UPDATE test.m SET v = 9", false, "v of rows of an UPDATE"}, {"DELETE FROM test.m WHERE id = 2", false, "v, b of rows of a DELETE"},
		{"SET SESSION binlog_row_image = NOBLOB", true, ""}, {"UPDATE test.m SET v = 10", true, ""}, {"UPDATE test.m SET b = 'z'", false, "b of rows of an UPDATE"}, {"DELETE FROM test.m", false, "b of rows of a DELETE"},
		{"SET SESSION binlog_row_image = FULL", true, ""}, {"TRUNCATE TABLE test.m", false, "logged as a statement"}} {
		from, _, _ := position(t, n)
		run(t, c, k.statement)
		to, _, _ := position(t, n)
		if to.Equal(from) {
			continue // a setting
		}
		_, text, err := tryUndo(t, n, UndoOptions{GTID: only(t, to.Subtract(from))})
		if k.works != (err == nil) || !k.works && (!errors.Is(err, ErrNoUndo) || !strings.Contains(text, "NOT COMPLETE") || !strings.Contains(err.Error(), k.says) || strings.Contains(text, "START")) {
			t.Errorf("%s: %v\n%s", k.statement, err, text)
		}
	}
	alteredSince(t, n, c)
}

// alteredSince: where the log does not name columns and the table has others now, nothing is guessed.
func alteredSince(t *testing.T, n *sandbox.Node, c *sql.Conn) {
	run(t, c, "CREATE TABLE test.al (id INT PRIMARY KEY, v INT)", "INSERT INTO test.al VALUES (1, 2)")
	from, _, _ := position(t, n)
	run(t, c, "DELETE FROM test.al")
	to, _, _ := position(t, n)
	gone := only(t, to.Subtract(from))
	res, text := undo(t, n, UndoOptions{GTID: gone})
	if !strings.Contains(text, "(`id`, `v`) VALUES (1, 2)") || !strings.Contains(strings.Join(res.Notes, " "), "altered since") {
		t.Errorf("got %v; want \"(`id`, `v`) VALUES (1, 2)\" in it, \"altered since\" in strings.Join(res.Notes, \" \")\n%s", res.Notes, text)
	}
	for _, alter := range []string{"ALTER TABLE test.al MODIFY v VARCHAR(10)", "ALTER TABLE test.al DROP COLUMN v"} {
		run(t, c, alter)
		if _, text, err := tryUndo(t, n, UndoOptions{GTID: gone}); !errors.Is(err, ErrNoUndo) || !strings.Contains(err.Error(), "altered since") {
			t.Errorf("%s: got %v; want ErrNoUndo, \"altered since\" in the error\n%s", alter, err, text)
		}
	}
}

// searchFinds describes damage and expects the transaction that did it.
func searchFinds(t *testing.T, n *sandbox.Node, db *sql.DB, spec string) {
	c := conn(t, db)
	run(t, c, "SET SESSION binlog_row_image = FULL", "CREATE TABLE test.f (id INT PRIMARY KEY, v VARCHAR(20))", "CREATE TABLE test.g LIKE test.f")
	if !strings.HasPrefix(spec, "mariadb") { // there it is on by default
		run(t, c, "SET SESSION binlog_rows_query_log_events = ON")
	}
	for i := range 50 {
		run(t, c, "INSERT INTO test.f VALUES ("+itoa(i)+", 'v')", "INSERT INTO test.g VALUES ("+itoa(i)+", 'w')")
	}
	run(t, c, "DELETE FROM test.f WHERE id < 10", "UPDATE test.f SET v = 'lost'")
	from, _, _ := position(t, n)
	run(t, c, "DELETE FROM test.f /* where is my WHERE? */")
	to, _, _ := position(t, n)
	bad := only(t, to.Subtract(from))
	run(t, c, "TRUNCATE TABLE test.g", "DROP TABLE test.g")
	table := func(name string) TableFilter { return func(s, tb string) bool { return s == "test" && tb == name } }
	res, err := Search(t.Context(), logged(t, n), Damage{Tables: table("f"), Kinds: []string{"delete"}, Rows: 20, Images: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Found) != 1 || res.Found[0].GTID != bad {
		t.Fatalf("found %+v, not %s; want len(res.Found) 1, res.Found[0].GTID %v", res.Found, bad, bad)
	}
	f := res.Found[0]
	if f.Rows != 40 || f.Whole != "DELETE without WHERE" || len(f.Statements) != 1 || !strings.Contains(f.Statements[0].Text, "where is my WHERE") {
		t.Errorf("got %+v; want Rows 40, Whole \"DELETE without WHERE\", len(Statements) 1, \"where is my WHERE\" in Statements[0].Text", f)
	}
	if b := f.Changes[0].Before; len(b) != 2 || len(b[0]) != 2 || b[0][0] != "10" || spec != "mysql-5.7" && !strings.HasPrefix(spec, "mariadb") && b[0][1] != "'lost'" {
		t.Errorf("rows before: %v", b)
	}
	res, err = Search(t.Context(), logged(t, n), Damage{Tables: table("g"), Kinds: []string{"drop", "truncate"}})
	if err != nil || len(res.Found) != 2 || res.Found[0].Changes[0].Kind != "drop" && res.Found[1].Changes[0].Kind != "drop" {
		t.Errorf("%+v, %v", res.Found, err)
	}
	for _, f := range res.Found {
		if f.Thread == 0 || f.Changes[0].Table != "test.g" {
			t.Errorf("got %+v; want Thread not 0, Changes[0].Table \"test.g\"", f)
		}
	}
}
