package digits

import "testing"

// TestCounted: one is one, and nothing is several.
func TestCounted(t *testing.T) {
	for want, got := range map[string]string{
		"1 row": Counted(1, "row"), "0 rows": Counted(int64(0), "row"), "2 rows": Counted(uint64(2), "row"), "1,200,000 rows": Counted(1_200_000, "row"),
		"1 table differs": Plural(1, "table differs", "tables differ"), "3 tables differ": Plural(3, "table differs", "tables differ"),
	} {
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
