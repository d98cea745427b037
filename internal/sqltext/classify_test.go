package sqltext

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// otherLiterals replace literals; some are none, and must be seen as such.
var otherLiterals = []string{"5", "-5", "'x'", "null", "_utf8'x'", "x'0f'", ".5", "1e5", "?", "''", "- 7", "true", "@a", "0x1g", "+.5e3", "--5", "-- 5\n", "n'x'",
	"...", "5.", "(1,2)", "/*c*/5", "/*a.b:1/1*/", "\"y\"", "b'1'", "a", "5 ", " 6", "7,8", "5 offset 6", "not", "is null", "1e5e5", "2fa", "- - 5", "'it''s'", "'\\''", "(1),(2)", "*/", "/*!5", "'", "`", ")", "#\n", "_latin1", "limit 5"}

// vary gives stmt with some of its literals and comments replaced.
func vary(stmt []byte, r *rand.Rand) []byte {
	lx := lexer{s: stmt}
	var out []byte
	last := 0
	for t := lx.next(); t.kind != tkEnd; t = lx.next() {
		if t.kind != tkString && t.kind != tkNumber && !lx.is(t, "null") && !lx.is(t, "true") || r.IntN(3) == 0 {
			continue
		}
		out = append(out, stmt[last:t.start]...)
		out = append(out, otherLiterals[r.IntN(len(otherLiterals))]...)
		last = t.end
	}
	return append(out, stmt[last:]...)
}

// same holds that a Classifier calls a statement what a Fingerprinter does.
func same(t *testing.T, c *Classifier, f *Fingerprinter, stmt []byte) {
	t.Helper()
	want := string(f.Append(nil, stmt))
	if got := c.Fingerprint(c.Classify(stmt)); got != want {
		t.Fatalf("%q\nis classified as %q\n     and is really %q", stmt, got, want)
	}
}

func TestClassify(t *testing.T) {
	all := append([]string{}, agreed...)
	for _, d := range differences {
		all = append(all, d.stmt)
	}
	for _, s := range benchStatements {
		all = append(all, string(s))
	}
	var c Classifier
	var f Fingerprinter
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		for _, s := range all {
			same(t, &c, &f, []byte(s))
			same(t, &c, &f, vary([]byte(s), r))
		}
	}
	for n := range c.Len() {
		if m := c.number[c.Fingerprint(n)]; m != n {
			t.Errorf("fingerprint %q has the numbers %d and %d", c.Fingerprint(n), n, m)
		}
	}
}

// TestClassifierIsBounded feeds texts that have nothing in common.
func TestClassifierIsBounded(t *testing.T) {
	var c Classifier
	peak := 0
	for n := range 60000 {
		c.Classify([]byte(fmt.Sprintf("select %s%d from t", strings.Repeat("column_", 50), n)))
		peak = max(peak, c.size)
	}
	if peak > maxTree+1<<20 || c.size >= peak {
		t.Errorf("the tree grew to %d bytes; want peak at most %d, c.size less than %v", peak, maxTree+1<<20, peak)
	}
	if c.Len() != 60000 {
		t.Errorf("got %d classes, want 60000", c.Len())
	}
}

func FuzzClassify(f *testing.F) {
	for _, s := range agreed {
		f.Add([]byte(s), uint64(1))
	}
	for _, d := range differences {
		f.Add([]byte(d.stmt), uint64(2))
	}
	for _, s := range benchStatements {
		f.Add(s, uint64(3))
	}
	f.Fuzz(func(t *testing.T, s []byte, seed uint64) {
		var c Classifier
		var fp Fingerprinter
		r := rand.New(rand.NewPCG(seed, 0))
		for range 6 {
			same(t, &c, &fp, s)
			v := vary(s, r)
			same(t, &c, &fp, v)
			same(t, &c, &fp, vary(v, r))
		}
	})
}
