package sqltext

import "testing"

func TestOpenAt(t *testing.T) {
	for s, want := range map[string]int{
		"": -1, "SELECT 'a'": -1, "SELECT 'a": 7, "SELECT 'a\\'": 7, "SELECT 'a'''": -1, `SELECT "it's"`: -1, `SELECT "it's`: 7, "SELECT `a": 7, "SELECT `a\\`": -1,
		"-- it's\nSELECT 1": -1, "# it's": -1, "SELECT /* it's */ 1": -1, "SELECT /* it's": 7, "SELECT 1 /*/": 9, "SELECT /*! 'a' */ 1": -1, "a - 'b": 4, "a / 'b": 4,
	} {
		if got := OpenAt([]byte(s)); got != want {
			t.Errorf("%q: %d, not %d", s, got, want)
		}
	}
}

func TestCloseAt(t *testing.T) {
	for s, want := range map[string]int{"": -1, "a": -1, "a'": 2, "a''b'c": 5, `a\'b'c`: 5, `a"`: -1, `a\`: -1} {
		if got := CloseAt([]byte(s), '\''); got != want {
			t.Errorf("%q: %d, not %d", s, got, want)
		}
	}
	for s, want := range map[string]int{"": -1, "*/": 2, "a */ b": 4, "a * /": -1} {
		if got := CloseAt([]byte(s), '/'); got != want {
			t.Errorf("comment %q: %d, not %d", s, got, want)
		}
	}
}
