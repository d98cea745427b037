package read

import "testing"

// TestErrorWithoutValues: an error of replication keeps no value and no password of the statement that servers quote in it.
func TestErrorWithoutValues(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`Error 'Operation CREATE USER failed for 'x2'@'%'' on query. Default database: ''. Query: 'CREATE USER 'x y''z'@'%' IDENTIFIED BY 's3cret-4711''`,
			`Error 'Operation CREATE USER failed for 'x2'@'%'' on query. Default database: ''. Query: 'CREATE USER ?@? IDENTIFIED ...'`},
		{`Error 'Table 't.a' doesn't exist' on query. Default database: 't'. Query: 'INSERT INTO a VALUES (1, 's3cret-4711')'`,
			`Error 'Table 't.a' doesn't exist' on query. Default database: 't'. Query: 'INSERT INTO a VALUES (?, ?)'`},
		{`Error on query. Default database: ''. Query: 'SET PASSWORD FOR 'a'@'%'='s3cret-47`, `Error on query. Default database: ''. Query: 'SET PASSWORD ...`},
		{"Could not execute Write_rows_v1 event on table t.a", "Could not execute Write_rows_v1 event on table t.a"},
	} {
		if got := Described(1396, c.text).Text; got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// TestLogWithoutStatement: a line of an error log that quotes a statement does so no longer; the rest of it stays.
func TestLogWithoutStatement(t *testing.T) {
	for line, want := range map[string]string{
		"Query (0x7f31b4014b30): UPDATE t SET a = 's3cret'":                                                                            "Query (0x7f31b4014b30): …",
		"2026-11-27 [ERROR] Slave SQL: Error 'x' on query. Default database: 't'. Query: 'INSERT INTO t VALUES (1)', Error_code: 1146": "2026-11-27 [ERROR] Slave SQL: Error 'x' on query. Default database: 't'. Query: …",
		"2026-11-27 [Note] mariadbd: Normal shutdown":                                                                                  "2026-11-27 [Note] mariadbd: Normal shutdown",
	} {
		if got := LogWithoutStatement(line); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
