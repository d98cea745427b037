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

// vary returns stmt with some of its literals and comments replaced.
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
	rounds := 300
	if testing.Short() {
		t.Log("short: a tenth of the rounds")
		rounds = 30
	}
	for range rounds {
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

// TestClassifierKnows: statements that differ in literals, lists, rows and comments only are found in the tree, without a fingerprint; others
// are not.
func TestClassifierKnows(t *testing.T) {
	for _, c := range []struct {
		stmt        string
		known, news []string
	}{
		{"select a from t where b = 1", []string{"select a from t where b = 2.5e3", "select a from t where b = 'it''s'", "select a from t where b = -7", "select a from t where b = + 7", "select a from t where b = null", "select a from t where b = true", "select a from t where b = x'0f'", "select a from t where b = _utf8'x'", "select a from t where b = .5", "select a from t where b = 0x1f"},
			[]string{"select a from t where b = c", "select a from t where b = 2fa", "select a from t where b =", "select a from t where b = -c", "select a from t where b = ?", "select a from t where b = ...", "select a from t where b = 1 and c", "select a from t where c = 1", "select A from t where b = 1", "select a from t where b = -- c\n1", "select a from t where b = ."}},
		{"select a from t where b=-1 and c>'x';", []string{"select a from t where b=2 and c>3;", "select a from t where b=+2 and c>-3;"}, []string{"select a from t where b=2 and c>3"}},
		{"select a from t where b in (1, 2) and c", []string{"select a from t where b in (3) and c", "select a from t where b in(3,'x',(4)) and c"}, []string{"select a from t where b in (d) and c", "select a from t where b in 3 and c", "select a from t where b inx (3) and c"}},
		{"insert into t values (1, 2)", []string{"insert into t values (3)", "insert into t values (1),(2), ('x')", "insert into t values(1),(now())"}, []string{"insert into t values (now())", "insert into t values row(1)", "insert into t values", "insert into t valuesx (1)"}},
		{"insert into t values (1, 2) as n on duplicate key update a=1", []string{"insert into t values (3),(4) as n on duplicate key update a=5"}, nil},
		{"insert into t values (a, 2),(b)", []string{"insert into t values (a, 3)", "insert into t values (a, 3),(x),(y)"}, []string{"insert into t values (b, 2)"}},
		{"values row(1)", []string{"values row(1,2), row(3)"}, []string{"values (1)", "values row(a)"}},
		{"select a = values(1), b", []string{"select a = values(2), (3), b"}, []string{"select a = values(b), b"}},
		{"select a from t limit 5", []string{"select a from t limit 6", "select a from t limit 6, 7", "select a from t limit 6 offset 7"}, []string{"select a from t limit a", "select a from t limitx"}},
		{"select a /* x */ from t where b = 1", []string{"select a /* yy */ from t where b = 2"}, []string{"select a /*! x */ from t where b = 1", "select a /*a.b:1/2*/ from t where b = 1", "select a /*repeat union*/ from t where b = 1", "select a from t where b = 1"}},
		{"select a+1, b-1, c*1, e%1, f<1, g>1, (1)", []string{"select a+2, b-2, c*2, e%2, f<2, g>2, (2)", "select a+'x', b-'x', c*'x', e%'x', f<'x', g>'x', ('x')"}, []string{"select a+b, b-1, c*1, e%1, f<1, g>1, (1)"}},
		{"select 1+a, 1-a, 1*a, 1/a, 1%a, 1=a, 1<a, 1>a, 1\t, 1\n, 1 \r;", []string{"select 2+a, 2-a, 2*a, 2/a, 2%a, 2=a, 2<a, 2>a, 2\t, 2\n, 2 \r;"}, nil},
		{"select\n1,\t2,\r3, a\n=4", []string{"select\n5,\t'x',\r7, a\n=.5"}, nil},
		{"select a=null, b=true, c=n'x', d=_utf8'x', e=.5", []string{"select a=1, b=2, c=3, d=4, e=5", "select a=false, b=null, c=x'0f', d=b'1', e=0x1"}, []string{"select a=nulls, b=true, c=n'x', d=_utf8'x', e=.5"}},
		{"select a in (1)x", []string{"select a in (2, 3)x"}, []string{"select a inx"}},
		{"select a from t where b like 'x%' escape '|' and c between 1 and 2", []string{"select a from t where b like 5 escape 6 and c between 'x' and -1"}, nil},
	} {
		var cl Classifier
		n := cl.Classify([]byte(c.stmt))
		before := cl.size
		if got := cl.root.find([]byte(c.stmt)); got != n || before == 0 {
			t.Errorf("%s: got %d in a tree of %d bytes, want %d", c.stmt, got, before, n)
		}
		for _, s := range c.known {
			if got := cl.root.find([]byte(s)); got != n || cl.Classify([]byte(s)) != n || cl.size != before {
				t.Errorf("%s: got %d, want %d as of %s", s, got, n, c.stmt)
			}
		}
		for _, s := range c.news {
			if got := cl.root.find([]byte(s)); got != -1 {
				t.Errorf("%s: got %d, want that it is not known by %s", s, got, c.stmt)
			}
		}
	}
}

// TestClassifyPieces: short statements of pieces that change what is next to them are called what they are called without the tree.
func TestClassifyPieces(t *testing.T) {
	pieces := []string{"a", "-", "+", " ", " ", "1", "2", "'x'", "e", "1e", ".", ".5", "(", ")", ",", " in (", " limit ", " is ", " not ", " null", "_utf8", "_x ", "-- ", "\n", "/* c */", " values (", "=", "?", "n'x'", "0x", "*/", "/*!", "1)", "row(", " asc", "order by "}
	r := rand.New(rand.NewPCG(5, 6))
	var c Classifier
	var f Fingerprinter
	for range 40000 {
		s := ""
		for range 1 + r.IntN(7) {
			s += pieces[r.IntN(len(pieces))]
		}
		same(t, &c, &f, []byte(s))
	}
}

// TestClassifierForgets: what is not kept in the tree, and how much is.
func TestClassifierForgets(t *testing.T) {
	for _, stmt := range []string{"select ...", "select - - 5", "select a from t where b is not true and c not in (1) and not 5", "select a from t where b!5", "select 5!b", "select 5`a`", "1", "call p(1)", "use a", "administrator command: Quit", "/* x */ /*a.b:1/2*/ select 1", "select 1 /*a.b:1/2*/", "select /*repeat union*/ 1", "", " ", "limit 5, 6!"} {
		var cl Classifier
		n := cl.Classify([]byte(stmt))
		if again := cl.Classify([]byte(stmt)); n != 0 || again != 0 || cl.Len() != 1 || cl.size != 0 || cl.Fingerprint(0) != Fingerprint(stmt) {
			t.Errorf("%s: got %d, then %d, of %d, %q", stmt, n, again, cl.Len(), cl.Fingerprint(0))
		}
	}
	for _, c := range []struct {
		n    int
		kept bool
	}{{maxTemplate - 9, true}, {maxTemplate - 8, false}, {1, true}} { // the literals count nothing
		var cl Classifier
		s := "select " + strings.Repeat("x", c.n) + ", " + "'" + strings.Repeat("y", maxTemplate) + "'"
		if cl.Classify([]byte(s)); (cl.size > 0) != c.kept {
			t.Errorf("%d bytes of text: got %d bytes in the tree, want that it is kept: %v", c.n, cl.size, c.kept)
		}
	}
	cl := Classifier{MergeNumbered: true}
	if a, b := cl.Classify([]byte("select a from t1 where b=1")), cl.Classify([]byte("select a from t2 where b=1")); a != b || cl.Fingerprint(a) != "select a from t? where b=?" {
		t.Errorf("got %d and %d, %s; want a %d, cl.Fingerprint(a) \"select a from t? where b=?\"", a, b, cl.Fingerprint(a), b)
	}
	var tree Classifier
	for i, s := range []string{"a", "b", "a b", "a c", "ab", "a"} { // texts that begin alike
		if got := tree.Classify([]byte("select " + s)); got != i%5 {
			t.Errorf("%s: got %d, want %d", s, got, i%5)
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
	if got := c.Fingerprint(c.Classify(nil)); got != "" {
		t.Errorf("got %q for nothing, want \"\"", got)
	}
	if c.Len() != 60001 {
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
