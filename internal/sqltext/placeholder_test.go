package sqltext

import "testing"

func TestHasPlaceholders(t *testing.T) {
	for stmt, want := range map[string]bool{
		"select * from t where a = ?": true, "select '?', \"?\", `?` from t": false, "select 1 /* ? */": false, "select 1 -- ?\n": false, "select 1 -- x\n, ?": true,
		"select 1 # ?": false, "select a->'$.x?' from t": false, "": false, "select 1 - ?": true, "select 2/?": true, "select 'it''s ?' , ?": true, "select 'open ?": false,
	} {
		if got := HasPlaceholders([]byte(stmt)); got != want {
			t.Errorf("%s: got %v, want %v", stmt, got, want)
		}
	}
}
