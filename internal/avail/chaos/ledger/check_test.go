package ledger

import "testing"

// TestWhich: two servers with the same rows are told from two with as many others.
func TestWhich(t *testing.T) {
	found := func(rows ...[2]int64) (f Found) {
		for _, r := range rows {
			f.more(int(r[0]), r[1])
		}
		return f
	}
	a, same, other := found([2]int64{1, 5}, [2]int64{2, 7}), found([2]int64{2, 7}, [2]int64{1, 5}), found([2]int64{1, 7}, [2]int64{2, 5})
	if a.Unacknowledged != 2 || a.Which != same.Which || a.Which == other.Which {
		t.Errorf("got %+v, %+v, %+v", a, same, other)
	}
}
