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
