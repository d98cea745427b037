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

func TestStateAhead(t *testing.T) {
	for _, c := range []struct {
		source, position, logged string
		want                     uint64
	}{
		{"", "", "", 0}, {"0-1-10", "0-1-7", "", 3}, {"0-1-10", "0-1-7", "0-1-7,0-2-100000", 3}, {"0-1-10", "0-1-7", "0-2-9", 3},
		{"0-1-10", "0-1-10", "0-1-10,0-2-100000", 0}, {"0-1-10,1-1-4", "0-1-10", "", 4},
		{"0-1-51,0-2-52", "0-1-51", "0-1-51,0-2-52", 0},       // what it wrote itself came back
		{"0-1-51,0-2-52", "0-1-50", "0-1-50,0-2-52", 1},       // both gave numbers away
		{"0-1-40,0-2-50", "", "0-1-40,0-2-50", 0},             // a primary earlier
		{"0-1-40,0-2-50,0-3-60", "", "0-1-40,0-2-50", 10},     // and its new primary is farther
		{"0-1-40,0-3-60,5-3-2", "0-3-60", "0-1-40,0-3-60", 2}, // a domain that is new
	} {
		var states [2]BinlogState
		for i, text := range []string{c.source, c.logged} {
			s, err := ParseBinlogState(text)
			if err != nil {
				t.Fatal(err)
			}
			states[i] = s
		}
		position, err := ParseGTIDSet(c.position)
		if err != nil {
			t.Fatal(err)
		}
		if got := states[0].Ahead(position, states[1]); got != c.want {
			t.Errorf("%q ahead of a replica at %q with the log %q: got %d, want %d", c.source, c.position, c.logged, got, c.want)
		}
	}
}
