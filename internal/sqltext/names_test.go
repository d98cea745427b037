package sqltext

import "testing"

// TestNamesIn: who waits for a table is known by the first word and the names of its statement, whatever comments precede it.
func TestNamesIn(t *testing.T) {
	for statement, want := range map[string]string{
		"-- it's\nALTER TABLE `a``b`.c ADD d INT":       "alter",
		"# select\n/* select */ RENAME TABLE `a``b`.c":  "rename",
		"/*!50000 DROP */ TABLE \"a`b\" . c COMMENT 'x": "drop",
	} {
		first, names := NamesIn(statement)
		if first != want || !names["a`b"] || !names["c"] || names["it"] || names["select"] || names["x"] {
			t.Errorf("%q begins with %q and has %v", statement, first, names)
		}
	}
}
