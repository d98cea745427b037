package mysql

import "testing"

func TestAhead(t *testing.T) {
	const u, v = "8e349184-0000-0000-0000-000000000000", "8e3648e4-0000-0000-0000-000000000000"
	for _, c := range []struct {
		s, o string
		want uint64
	}{
		{"", "", 0}, {u + ":1-30," + v + ":1-7", u + ":1-29," + v + ":1-9", 1}, {u + ":1-5:tag:1-3", u + ":1-4", 4},
		{"0-1-20,1-7-3", "0-2-12", 11}, {"0-1-20", "0-1-25", 0},
	} {
		s, err := ParseGTIDSet(c.s)
		if err != nil {
			t.Fatal(err)
		}
		o, err := ParseGTIDSet(c.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Ahead(o); got != c.want {
			t.Errorf("%q ahead of %q: got %d, want %d", c.s, c.o, got, c.want)
		}
	}
}
