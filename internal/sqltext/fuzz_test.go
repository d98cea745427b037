package sqltext

import (
	"bytes"
	"testing"
)

func seeds(f *testing.F) {
	for _, s := range agreed {
		f.Add([]byte(s))
	}
	for _, d := range differences {
		f.Add([]byte(d.stmt))
	}
	for _, s := range benchStatements {
		f.Add(s)
	}
	for _, s := range []string{"/*!40000 a */*/", "?+?+", "in(?+)+1", "select ...", "_utf8 x'0f'", "a.5.5", "values row(", "1e5e5", "'\\", "x'", "in(1)in(1)", "union/*", "- - -1", "@`"} {
		f.Add([]byte(s))
	}
}

// FuzzFingerprint holds what is true of every fingerprint.
func FuzzFingerprint(f *testing.F) {
	seeds(f)
	var keep, merge Fingerprinter
	merge.MergeNumbered = true
	f.Fuzz(func(t *testing.T, s []byte) {
		in := bytes.Clone(s)
		fp := keep.Append(nil, s)
		if !bytes.Equal(in, s) {
			t.Fatalf("the statement was changed: got %v, want %v", in, s)
		}
		if len(fp) > 2*len(s)+room {
			t.Errorf("%q: got %d bytes from %d, want at most %d", s, len(fp), len(s), 2*len(s)+room)
		}
		pre := append(make([]byte, 0, 4+len(s)%64), "pre:"...)
		if got := keep.Append(pre, s); string(got) != "pre:"+string(fp) {
			t.Errorf("%q: got %q after other text, else %q; want %v", s, got, fp, "pre:"+string(fp))
		}
		// Minus signs side by side, which no statement has, may become a comment when what followed them is gone.
		if again := keep.Append(nil, fp); !bytes.Equal(again, fp) && !bytes.Contains(fp, []byte("--")) && !settles(&keep, again) {
			t.Errorf("%q\n    gives %q\nwhich gives %q", s, fp, again)
		}
		merge.Append(nil, s)
		AppendPlain(nil, fp)
		AppendDigestText(nil, s)
		Verb(s)
		if len(s) < 1<<12 {
			ptFingerprint(s)
		}
	})
}

// settles reports whether the fingerprint of a fingerprint stays as it is. What the first one made of broken text (a quote that is
// not closed, half an operator) may be read differently the second time; then it must stay.
func settles(f *Fingerprinter, fp []byte) bool {
	for range 4 {
		again := f.Append(nil, fp)
		if bytes.Equal(again, fp) {
			return true
		}
		fp = again
	}
	return false
}

// FuzzLexer holds that the tokens of a text are the text, in every dialect.
func FuzzLexer(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, s []byte) {
		for i := range 64 {
			d := Dialect{MariaDB: i&1 > 0, Postgres: i&2 > 0, ANSIQuotes: i&4 > 0, NoBackslash: i&8 > 0, Version: []int{0, 50722, 90704, 101106}[i>>4]}
			at := 0
			for _, x := range d.All(string(s)) {
				if x.Begin != at || x.End <= at {
					t.Fatalf("%+v: %q: a token from %d to %d, %d is next", d, s, x.Begin, x.End, at)
				}
				at = x.End
			}
			if at != len(s) {
				t.Fatalf("got %+v: %q: the tokens end at %d, want %d", d, s, at, len(s))
			}
		}
	})
}

func FuzzTables(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, s []byte) {
		seen := map[Table]bool{}
		for _, x := range Tables(s) {
			if seen[x] {
				t.Errorf("%q: %v twice", s, x)
			}
			seen[x] = true
		}
		ReadsOnly(s)
	})
}

// FuzzRedact holds that no literal is left.
func FuzzRedact(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, s []byte) {
		out := Redact(nil, s)
		lx := lexer{s: out}
		for x := lx.next(); x.kind != tkEnd; x = lx.next() {
			if x.kind == tkString || x.kind == tkNumber {
				t.Errorf("got %q; want x.kind not %v, x.kind not %v\nleaves %q in\n%q", s, tkString, tkNumber, lx.text(x), out)
			}
		}
		SetsPassword(s)
	})
}

// TestFingerprintOfFingerprint holds that a fingerprint is its own fingerprint.
func TestFingerprintOfFingerprint(t *testing.T) {
	all := append([]string{}, agreed...)
	for _, d := range differences {
		all = append(all, d.stmt)
	}
	for _, s := range benchStatements {
		all = append(all, string(s))
	}
	for _, s := range all {
		fp := Fingerprint(s)
		if again := Fingerprint(fp); again != fp {
			t.Errorf("%s\n    gives %s\nwhich gives %s", s, fp, again)
		}
		plain := AppendPlain(nil, []byte(fp))
		if again := AppendDigestText(nil, plain); !bytes.Equal(again, plain) {
			t.Errorf("%s\nhas the plain form %s\n       which gives %s", s, plain, again)
		}
	}
}

// FuzzRename holds that readers of definitions take any text, that a renamed text is the text except for the names, and that
// nothing is left to rename in it.
func FuzzRename(f *testing.F) {
	seeds(f)
	for _, s := range []string{"CREATE PROCEDURE p() BEGIN IF a THEN UPDATE shop.t SET shop.t.a = 1; END IF; END", "CREATE VIEW v AS SELECT shop.a FROM shop.t shop", "GRANT ALL ON `sh\\_op`.* TO u@h",
		"CREATE TABLE t (a int REFERENCES shop.t) DATA DIRECTORY 'x'", "CREATE TRIGGER g BEFORE INSERT ON shop.t FOR EACH ROW SET @a = 'shop'", "CREATE EVENT e ON SCHEDULE EVERY 1 DAY ENABLE DO CALL shop . p()",
		"CREATE USER a@b DEFAULT ROLE c, d REQUIRE NONE", "CREATE PACKAGE BODY shop AS PROCEDURE p AS x INT; BEGIN NULL; END; END"} {
		f.Add([]byte(s))
	}
	to := func(name string) (string, bool) { return "renamed", name == "shop" || name == "t" }
	f.Fuzz(func(t *testing.T, s []byte) {
		for _, d := range []Dialect{{}, {MariaDB: true, Version: 101106, Oracle: true}, {Version: 90704, ANSIQuotes: true, NoBackslash: true}} {
			text := string(s)
			edits, _ := d.Rename(text, to)
			at := 0
			for _, e := range edits {
				if e.Begin < at || e.End <= e.Begin || e.End > len(text) {
					t.Fatalf("%q: the edit %+v; want Begin at least %v, End more than %v, End at most %v", text, e, at, e.Begin, len(text))
				}
				at = e.End
			}
			again := Apply(text, edits)
			if more, _ := d.Rename(again, to); len(more) > 0 {
				t.Errorf("%+v: %q, want none\nbecame %q\nand has %+v to rename", d, text, again, more)
			}
			c, err := d.ReadCreate(text)
			if err == nil {
				if _, err := d.ReadCreate(again); err != nil {
					t.Errorf("%+v: %q is %s and became %q: %v", d, text, c.Kind, again, err)
				}
				Apply(text, c.Directories)
				Apply(text, []Edit{c.Replace("x")})
			}
			d.ReadGrant(text)
			if c, ok := d.ReadChange(text); ok {
				for _, n := range append(append(c.Names, c.To...), c.On) {
					if n.Begin < 0 || n.End < n.Begin || n.End > len(text) {
						t.Fatalf("%q: the name %+v; want Begin at least 0, End from %v to %v", text, n, n.Begin, len(text))
					}
				}
			}
			d.Find(text, "TO")
		}
	})
}
