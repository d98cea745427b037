package mysql

import (
	"math/rand/v2"
	"strings"
	"testing"
)

const (
	uuidA = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	uuidB = "4e11fa47-71ca-11e1-9e33-c80aa9429562"
)

func set(t *testing.T, s string) GTIDSet {
	t.Helper()
	v, err := ParseGTIDSet(strings.NewReplacer("A", uuidA, "B", uuidB).Replace(s))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestGTIDSetAlgebra(t *testing.T) {
	for _, c := range []struct{ a, b, union, minus string }{
		{"A:1-5", "A:3-8", "A:1-8", "A:1-2"},
		{"A:1-5:7", "A:6", "A:1-7", "A:1-5:7"},
		{"A:1-10", "A:3:5-6:10", "A:1-10", "A:1-2:4:7-9"},
		{"A:1-3,B:9", "B:1-20", "A:1-3,B:1-20", "A:1-3"},
		{"", "A:1", "A:1", ""},
		{"A:1", "", "A:1", "A:1"},
		{"A:1-3:tag:1-2", "A:tag:2-4", "A:1-3:tag:1-4", "A:1-3:tag:1"},
		{"A:tag:1,\nA:8:other:1-4", "A:tag:1", "A:8:other:1-4:tag:1", "A:8:other:1-4"},
		{"A:5:1:3:2-3:9-11", "A:4", "A:1-5:9-11", "A:1-3:5:9-11"},
		{"0-1-100,1-1-5", "0-2-90,2-1-1", "0-1-100,1-1-5,2-1-1", "0-1-100,1-1-5"},
		{"0-1-100", "0-2-100", "0-2-100", ""},
	} {
		a, b := set(t, c.a), set(t, c.b)
		if got := a.Union(b); got.String() != set(t, c.union).String() {
			t.Errorf("%s + %s = %s, not %s", c.a, c.b, got, c.union)
		}
		if got := a.Subtract(b); got.String() != set(t, c.minus).String() {
			t.Errorf("%s - %s = %s, not %s", c.a, c.b, got, c.minus)
		}
	}
	tagged := set(t, "A:1-3:tag:1-2:5,B:1")
	want := uuidA + ":1-3:tag:1-2:5," + uuidB + ":1"
	if tagged.String() != want {
		t.Errorf("%s, not %s", tagged, want)
	}
	for g, in := range map[string]bool{uuidA + ":2": true, uuidA + ":4": false, uuidA + ":tag:5": true, uuidA + ":tag:3": false, "0-1-2": false} {
		v, err := ParseGTID(g)
		if err != nil {
			t.Fatal(err)
		}
		if tagged.Contains(v) != in {
			t.Errorf("%s in %s: %v, want Contains(v) %v", g, tagged, !in, in)
		}
	}
}

func TestGTIDForms(t *testing.T) {
	for _, bad := range []string{"x", uuidA, uuidA + ":0", uuidA + ":5-3", uuidA + ":tag", uuidA + ":tag:other:1", uuidA + ":1:", "1-2", "0-99999999999-1", uuidA + ":1,0-1-1",
		uuidA + ":-3", uuidA + ":99999999999999999999", uuidA + ":1tag:4"} {
		if s, err := ParseGTIDSet(bad); err == nil {
			t.Errorf("%q was taken for %s", bad, s)
		}
	}
	for _, bad := range []string{"", uuidA + ":1-2", uuidA + ":tag:other:1", "7", uuidA + ":x"} {
		if g, err := ParseGTID(bad); err == nil {
			t.Errorf("%q was taken for %s", bad, g)
		}
	}
	for _, good := range []string{uuidA + ":7", uuidA + ":tag_1:7", "4294967295-1-18446744073709551615"} {
		g, err := ParseGTID(strings.ToUpper(good))
		if err != nil || g.String() != good {
			t.Errorf("%q became %q, %v", good, g, err)
		}
	}
}

// TestGTIDSetIsASet compares sets with plain maps of numbers.
func TestGTIDSetIsASet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func() (GTIDSet, map[uint64]bool) {
		var s GTIDSet
		m := map[uint64]bool{}
		for range r.IntN(12) {
			from := 1 + r.Uint64N(40)
			to := from + r.Uint64N(6)
			s.AddRange(uuidA, from, to)
			for n := from; n <= to; n++ {
				m[n] = true
			}
		}
		return s, m
	}
	for range 3000 {
		a, am := draw()
		b, bm := draw()
		union, minus := a.Union(b), a.Subtract(b)
		back, err := ParseGTIDSet(a.String())
		if err != nil || !back.Equal(a) {
			t.Fatalf("%s read back: %s, %v; want Equal(a) true", a, back, err)
		}
		if int(a.Count()) != len(am) {
			t.Fatalf("%s has %d numbers, not %d", a, a.Count(), len(am))
		}
		subset := true
		for n := uint64(1); n < 50; n++ {
			g := GTID{Source: uuidA, Number: n}
			if a.Contains(g) != am[n] || union.Contains(g) != (am[n] || bm[n]) || minus.Contains(g) != (am[n] && !bm[n]) {
				t.Fatalf("got %d of %s and %s; want Contains(g) am[n], union.Contains(g) am[n] || bm[n], minus.Contains(g) am[n] && !bm[n]", n, a, b)
			}
			subset = subset && (!bm[n] || am[n])
		}
		if a.ContainsSet(b) != subset {
			t.Fatalf("%s in %s: %v, want %v", b, a, !subset, subset)
		}
	}
}
