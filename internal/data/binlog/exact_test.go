package binlog

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestUndoLiterals: a statement that undo prints finds its row with any numbers in it, in a key and without one, and what it brings
// back is what was; what it cannot bring back is named.
func TestUndoLiterals(t *testing.T) {
	t.Parallel()
	for _, spec := range flavours {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := sandboxtest.Lend(t, spec, fast...)
			db := openDB(t, node)
			c := conn(t, db)
			var members []string
			for i := range 64 {
				members = append(members, "'m"+itoa(i)+"'")
			}
			columns := "b64 BIT(64), b1 BIT(1), u BIGINT UNSIGNED, d DECIMAL(20,0) UNSIGNED, s SET(" + strings.Join(members, ",") + "), e ENUM('','a'), v INT"
			const high, top = "18446744073709551615", "9223372036854775808"
			run(t, c, "CREATE DATABASE d", "SET SESSION sql_mode = ''", "CREATE TABLE d.bare ("+columns+")", "CREATE TABLE d.keyed ("+columns+", PRIMARY KEY (b64, u, s, e))", "CREATE TABLE d.bits ("+columns+", PRIMARY KEY (b64))")
			for _, table := range []string{"bare", "keyed", "bits"} {
				run(t, c, "INSERT INTO d."+table+" VALUES ("+high+", 1, "+high+", "+high+", "+high+", 1, 1), ("+top+", 0, "+top+", "+top+", "+top+", 0, 1), (0, 0, 0, 0, 0, 2, 1), (7, 1, 7, 7, 7, 2, 1)")
			}
			all := func() (text string) {
				for _, table := range []string{"bare", "keyed", "bits"} {
					text += value(t, db, "SELECT GROUP_CONCAT(HEX(b64), ' ', HEX(b1), ' ', u, ' ', d, ' ', CAST(s AS UNSIGNED), ' ', e + 0, ' ', v ORDER BY b64 SEPARATOR '; ') FROM d."+table) + "\n"
				}
				return text
			}
			before := all()
			for _, change := range []string{"UPDATE d.bare SET v = v + 1", "UPDATE d.keyed SET v = v + 1", "UPDATE d.bits SET v = v + 1, u = u DIV 2", "DELETE FROM d.bare", "DELETE FROM d.keyed", "INSERT INTO d.bare VALUES (" + top + ", 1, " + high + ", 0, " + high + ", 2, 9)", "UPDATE d.bare SET b64 = b64 DIV 3"} {
				from, _, _ := position(t, node)
				run(t, c, change)
				to, _, _ := position(t, node)
				res, text := undo(t, node, UndoOptions{GTID: only(t, to.Subtract(from))})
				runUndo(t, c, text)
				if got := all(); got != before {
					t.Errorf("%s, undone:\n%s\nbefore:\n%s\n%s", change, got, before, text)
				}
				if strings.Contains(strings.Join(res.Notes, " ")+text, "NOT EXACT") {
					t.Errorf("%s: got %v, want no \"NOT EXACT\" in it", change, res.Notes)
				}
			}
			if strings.HasPrefix(spec, "mysql") {
				undoBytesInJSON(t, c, func(change string) (UndoResult, string) {
					from, _, _ := position(t, node)
					run(t, c, change)
					to, _, _ := position(t, node)
					return undo(t, node, UndoOptions{GTID: only(t, to.Subtract(from))})
				}, func(query string) string { return value(t, db, query) })
			}
		})
	}
}

// undoBytesInJSON: bytes within a document come back as they were; where their type does not, a note says so.
func undoBytesInJSON(t *testing.T, c *sql.Conn, undone func(string) (UndoResult, string), value func(string) string) {
	run(t, c, "CREATE TABLE d.b (id INT PRIMARY KEY, b BIT(16), x BLOB, j JSON)", "INSERT INTO d.b VALUES (1, 255, X'00FF', JSON_OBJECT('b', X'00FF')), (2, 0, X'', '{}')",
		"INSERT INTO d.b SELECT id + 10, b, x, JSON_ARRAY(b, X'', X'0000') FROM d.b", "INSERT INTO d.b SELECT id + 20, b, x, JSON_ARRAY(x) FROM d.b WHERE id < 10")
	for _, id := range []int{1, 2, 11, 12, 21} {
		row := " FROM d.b WHERE id = " + itoa(id)
		read := "SELECT CONCAT(CAST(j AS CHAR), ' ', COALESCE(JSON_TYPE(JSON_EXTRACT(j, '$[0]')), ''), COALESCE(JSON_TYPE(JSON_EXTRACT(j, '$.b')), ''))" + row
		was := value(read)
		res, text := undone("DELETE" + row)
		runUndo(t, c, text)
		said := strings.Contains(strings.Join(res.Notes, " "), "NOT EXACT") && strings.Contains(text, "-- note: `d`.`b`: NOT EXACT")
		if got := value(read); (got != was) != said {
			t.Errorf("row %d was %s and is %s; said: %t\n%s", id, was, got, said, text)
		}
		bytes := func(s string) string { // without the number of the type
			_, s, _ = strings.Cut(s, "base64:type")
			_, s, _ = strings.Cut(s, ":")
			s, _, _ = strings.Cut(s, `"`)
			return s
		}
		if got := value(read); bytes(got) != bytes(was) {
			t.Errorf("row %d: the bytes were %s and are %s, want bytes(was)", id, was, got)
		}
	}
}

// runUndo runs what Undo wrote; each statement has to find its row.
func runUndo(t *testing.T, c *sql.Conn, text string) {
	t.Helper()
	for _, s := range strings.Split(text, ";\n") {
		if s = stripComments(s); s == "" {
			continue
		}
		r, err := c.ExecContext(t.Context(), s)
		if err != nil {
			t.Fatalf("%.2000s: %v", s, err)
		}
		if n, _ := r.RowsAffected(); n != 1 && (strings.HasPrefix(s, "UPDATE") || strings.HasPrefix(s, "DELETE")) {
			t.Errorf("%d rows were affected by %.3000s", n, s)
		}
	}
}
