package sqltext

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/lack"
)

var update = flag.Bool("update", false, "write the table of differences into docs/fingerprints.md")

// ptProgram is a pt-query-digest on this machine.
type ptProgram struct {
	path string
	old  bool // it reads strings as all up to 3.5.1 did
}

// eachPt runs a test with the installed pt-query-digest, and with the newest where script/bench has fetched it.
func eachPt(t *testing.T, f func(t *testing.T, pt ptProgram)) {
	var paths []string
	if path, err := exec.LookPath("pt-query-digest"); err == nil {
		paths = append(paths, path)
	}
	if cache, err := os.UserCacheDir(); err == nil {
		if path := filepath.Join(cache, "risso", "peers", "bin", "pt-query-digest"); exec.Command(path, "--version").Run() == nil && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		lack.Of(t, "pt-query-digest is not installed: run script/setup")
	}
	for _, path := range paths {
		out, err := exec.Command(path, "--version").Output()
		var major, minor, patch int
		if _, scan := fmt.Sscanf(string(out), "pt-query-digest %d.%d.%d", &major, &minor, &patch); err != nil || scan != nil {
			t.Fatalf("%s --version: %q, %v, %v; want nil", path, out, err, scan)
		}
		t.Run(fmt.Sprintf("%d.%d.%d", major, minor, patch), func(t *testing.T) {
			t.Parallel()
			f(t, ptProgram{path, major*10000+minor*100+patch < 30502})
		})
	}
}

// says is what this version makes of a statement, by what 3.7.1 makes of it.
func (pt ptProgram) says(stmt, newest string) string {
	if old, ok := older[stmt]; ok && pt.old {
		return old
	}
	return newest
}

// fingerprints runs the real pt-query-digest over a slow log with the statements and returns its fingerprint and ID for
// each. Statements are distinguished by their query times.
func (pt ptProgram) fingerprints(t *testing.T, stmts []string) (fps, ids []string) {
	t.Helper()
	fps, ids = make([]string, len(stmts)), make([]string, len(stmts))
	// The filter prints what the program itself calls the class, before statements of one class are combined.
	code := `do { my $fp = QueryRewriter->new()->fingerprint($event->{arg}); ` +
		`print "\x01", $event->{Query_time} + 0, "\x02", $fp, "\x02", Transformers::make_checksum($fp), "\x03"; 0 }`
	var log bytes.Buffer
	for i, s := range stmts {
		fmt.Fprintf(&log, "# Time: 2024-05-05T10:00:00.000000Z\n# User@Host: a[a] @ h [127.0.0.1]  Id: 1\n"+
			"# Query_time: %d  Lock_time: 0 Rows_sent: 0  Rows_examined: 0\n", i+1)
		if strings.HasPrefix(s, "administrator command: ") {
			s = "# " + s
		}
		fmt.Fprintf(&log, "SET timestamp=1714903200;\n%s;\n", s)
	}
	cmd := exec.Command(pt.path, "--no-report", "--filter", code)
	cmd.Stdin = &log
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("pt-query-digest: %v: %s", err, stderr.String())
	}
	for _, part := range strings.Split(string(out), "\x01")[1:] {
		part, _, _ = strings.Cut(part, "\x03")
		f := strings.Split(part, "\x02")
		var n int
		if _, err := fmt.Sscan(f[0], &n); err != nil || n < 1 || n > len(stmts) || len(f) != 3 {
			t.Fatalf("pt-query-digest printed %q; want n from 1 to %v, len(f) 3", part, len(stmts))
		}
		fps[n-1], ids[n-1] = f[1], f[2]
	}
	for i := range stmts {
		if ids[i] == "" {
			t.Errorf("pt-query-digest says nothing of %q: %s, want ids[i] not \"\"", stmts[i], stderr.String())
		}
	}
	return fps, ids
}

// agreed are statements of which pt-query-digest makes the right fingerprint: Risso makes the same.
var agreed = []string{
	"SELECT c FROM sbtest WHERE id=5",
	"select a, b from t where c = 'x' and d = \"y\" and e = 1.5",
	"SELECT * FROM t\nWHERE\ta  = 1",
	"insert into t (a,b) values (1,'x'),(2,'y')",
	"INSERT IGNORE INTO t VALUES (1, NOW(), 'x'), (2, NOW(), 'y')",
	"replace into t values (1, 2)",
	"select * from t where a in (1,2,3) and b not in ('x', 'y')",
	"select * from t where a IN(1)",
	"select a from t limit 5, 10",
	"select a from t LIMIT 5 OFFSET 10",
	"select a from t order by a asc, b desc limit 1",
	"select a from t union select a from t union select a from t",
	"select a from t where b=1 union all select a from t where b=2",
	"select /* comment */ a from t",
	"select a from t -- comment\nwhere b=1",
	"select a # comment\nfrom t",
	"select /*!40001 SQL_NO_CACHE */ a from t",
	"select /*+ MAX_EXECUTION_TIME(1000) */ a from t",
	"SELECT /*!40001 SQL_NO_CACHE */ * FROM `film`",
	"call sp(1, 'x')",
	"CALL db.sp('a')",
	"administrator command: Quit",
	"administrator command: Prepare",
	"select true, false, null from t",
	"update t set a=null, b='x' where c=-1",
	"delete from t where a < 5 and b >= .5",
	"select a from t where b = x'0f' and c = b'01' and d = 0xff",
	"select * from `Db`.`Tab` where `Col` = 'x'",
	"select a from t where b between 1 and 10",
	"commit",
	"begin",
	"set autocommit=0",
	"set names 'utf'",
	"insert into t set a=1, b='x'",
	"select @a := 'x', @@session.sql_mode",
	"load data infile '/tmp/x' into table t fields terminated by ','",
	"select /*percona.checksum:1/9*/ 1",
	"select a from t where b like '%x%' escape '|'",
	"select count(*) from (select a from t where b=1 group by a having count(*) > 5) x",
	"with c as (select a from t where b=1) select * from c",
	"select a from t where b = ? and c in (?, ?)",
	"show tables like 'x%'",
	"select case when a=1 then 'x' else 'y' end from t",
	"insert into t (a) values (1) on duplicate key update a=values(a)",
	"select row_number() over (partition by a order by b) from t",
	"explain select a from t where b=1",
	"select '-- x' from t where a = '/* y */'",
	"select \"it's\" from t where a = 'x'",
	"select a from t where b in (1, -- one\n 2)",
	"select a from t where b in (1, +2, -3)",
	"select 'x' 'y'",
	"select * from t where d >= date '2020-01-01' for update",
}

func TestAgreesWithPt(t *testing.T) {
	eachPt(t, func(t *testing.T, pt ptProgram) {
		fps, ids := pt.fingerprints(t, agreed)
		for i, s := range agreed {
			got := Fingerprint(s)
			if got != fps[i] {
				t.Errorf("got %s, want fps[i]\nrisso %s\n   pt %s", s, got, fps[i])
			}
			if id := ClassID([]byte(got)); id != ids[i] {
				t.Errorf("%s: risso %s, pt %s; want ids[i]", s, id, ids[i])
			}
		}
	})
}

// differences are statements of which pt-query-digest makes a fingerprint that is wrong, with what it makes, what
// Risso makes, and why. docs/fingerprints.md shows them as a table.
var differences = []struct{ stmt, pt, risso, why string }{
	{"select a from t where b = 0xFF", "select a from t where b = ?ff",
		"select a from t where b = ?", "an upper-case hex number is one literal"},
	{"select a from db2.t_2009", "select a from d?t_?",
		"select a from db2.t_2009", "digits in a name are part of the name"},
	{"select c1, c2 from sbtest1", "select c?, c? from sbtest?",
		"select c1, c2 from sbtest1", "and are so in columns: c1 is not c2"},
	{"select a from tab1", "select a from ta?",
		"select a from tab1", "and no letter of a name is lost"},
	{"select a from 2fa_codes", "select a from ?_codes",
		"select a from 2fa_codes", "a name may begin with digits"},
	{"select a from t where b = 'it''s'", "select a from t where b = ?'s'",
		"select a from t where b = ?", "a doubled quote is part of the string"},
	{"select a from t where b = ''''", "select a from t where b = ?'",
		"select a from t where b = ?", "a string of one quote"},
	{"insert into t values ('a''b', 'c')", "insert into t values (?'?c')",
		"insert into t values(?+)", "the same in a row"},
	{"'x'", "'x'",
		"?", "a string at the very beginning"},
	{"select a from t where (b, c) in ((1,2),(3,4))", "select a from t where (b, c) in ((?,?),(?,?))",
		"select a from t where (b, c) in(?+)", "a list of tuples is one form"},
	{"select a from t where b is null and c is not null", "select a from t where b is ? and c is not ?",
		"select a from t where b is null and c is not null", "IS NULL is an operator; it has no value to hide"},
	{"create table t (a int not null)", "create table t (a int not ?)",
		"create table t (a int not null)", "nor has NOT NULL"},
	{"insert into t values (1,2),(3,4) on duplicate key update b=5", "insert into t values(?+)",
		"insert into t values(?+) on duplicate key update b=?", "what follows the rows is kept"},
	{"insert into t values (1),(2) as new on duplicate key update b=new.b", "insert into t values(?+)",
		"insert into t values(?+) as new on duplicate key update b=new.b", "the same, with a row alias"},
	{"update t set k=k+1 where id=2", "update t set k=k? where id=?",
		"update t set k=k+? where id=?", "+ is an operator: adding is not subtracting"},
	{"update t set k=k-1 where id=2", "update t set k=k? where id=?",
		"update t set k=k-? where id=?", "the same for -"},
	{"select a-b from t", "select a? from t",
		"select a-b from t", "a column after - is no number"},
	{"select a - 1 from t", "select a ? ? from t",
		"select a - ? from t", "one operator, one literal"},
	{"select a from t where b = - 1", "select a from t where b = ? ?",
		"select a from t where b = ?", "a sign with a blank after it"},
	{"select j->'$.a', j->>'$.b' from t", "select j?>?, j?>>? from t",
		"select j->?, j->>? from t", "the JSON arrows are operators"},
	{"select 1e+5, 1E5 from t", "select ?, ?e? from t",
		"select ?, ? from t", "an upper-case exponent"},
	{"select _utf8mb4'x', N'y', _latin1 'z' from t", "select _utf?m??, n?, _latin? ? from t",
		"select ?, ?, ? from t", "a string's character set is part of the literal"},
	{"select X'0F', B'01' from t", "select x?, b? from t",
		"select ?, ? from t", "upper-case introducers"},
	{"select @v1, @v2", "select @v?, @v?",
		"select @v1, @v2", "digits in the names of variables"},
	{"select utf8.a from t utf8 where utf8.b='x'", "select utf? from t utf? where utf?=?",
		"select utf8.a from t utf8 where utf8.b=?", "digits in aliases"},
	{"select /*M! sql_no_cache */ a from t", "select a from t",
		"select /*m! sql_no_cache */ a from t", "MariaDB's executable comment is code"},
	{"select a/**/from/* x */t", "select at",
		"select a from t", "a comment separates words"},
	{"select a from t where b=2--1", "select a from t where b=?",
		"select a from t where b=?-?", "-- opens a comment only before a blank"},
	{"select a -- it's a comment\nfrom t where b='x'", "select a ? it?x'",
		"select a from t where b=?", "a comment may hold quotes"},
	{"select a from t -- end", "select a from t ",
		"select a from t", "no blank is left at the end"},
	{"/* a */ call p (1)", "call p (?)",
		"call p", "CALL with a comment or blank around its name"},
	{"call p(f(1), 2)", "call p(f",
		"call p", "only the name of the procedure counts"},
	{"select a from t order by b, ascii(a)", "select a from t order by b,ii(a)",
		"select a from t order by b, ascii(a)", "ASC is a word, not the beginning of one"},
	{"select a from (select a from t limit 5) x limit 5, 5", "select a from (select a from t limit ?) x limit ?, ?",
		"select a from (select a from t limit ?) x limit ?", "every LIMIT counts, not only the first"},
	{"select a from t limit 5 , 10", "select a from t limit ? , ?",
		"select a from t limit ?", "with blanks, too"},
	{"select a from t union select a from tx", "select a from t /*repeat union*/x",
		"select a from t union select a from tx", "an arm of a UNION is compared as a whole"},
	{"(select a from t) union (select a from t)", "(select a from t) union (select a from t)",
		"(select a from t) /*repeat union*/", "arms in parentheses repeat, too"},
	{"values row(1,2), row(3,4)", "values row(?,?), row(?,?)",
		"values row(?+)", "rows of MySQL's VALUES"},
	{"insert into t values (1,'a),(b'),(2,'c')", "insert into t values (?,'a)",
		"insert into t values(?+)", "a string may hold what looks like a row"},
	{"select `null`, `true`, `a1` from t", "select `?`, `?`, `a?` from t",
		"select `null`, `true`, `a1` from t", "what stands between backticks is a name"},
	{"select t.null from t", "select t.? from t",
		"select t.null from t", "so is what follows a point"},
	{"insert into t (a) values ('unterminated", "insert into t (a) values ('unterminated",
		"insert into t (a) values(?+)", "a statement that was cut ends in a string"},
	{"select a from t where b in (1, 2, 3", "select a from t where b in (?, ?, ?",
		"select a from t where b in(?+)", "or in a list"},
}

// parted are pairs of statements that pt-query-digest puts in two classes, although they are one to the server, with their
// plain form, which names the one class that Risso has. docs/fingerprints.md shows them in the same table.
var parted = []struct{ one, other, plain, why string }{
	{"select a from t where b=1", "select a from t where b = 1", "select a from t where b = ?", "blanks do not make another statement"},
	{"select `a` from `t`", "select a from t", "select a from t", "nor do backticks around plain names"},
	{"select a from t where b <> 1", "select a from t where b != 1", "select a from t where b != ?", "nor does another word for one operator"},
	{"select concat(1, 2)", "select concat(1, 2, 3)", "select concat(?+)", "nor the number of literals in a row"},
}

// older are statements of which versions up to 3.5.1, such as Debian 12's 3.2.1, make another fingerprint: they read
// quotes and backslashes in another way.
var older = map[string]string{
	"select a from t where b = 'it''s'":                "select a from t where b = ??",
	"select a from t where b = ''''":                   "select a from t where b = ??",
	"insert into t values ('a''b', 'c')":               "insert into t values(?+)",
	"'x'":                                              "?",
	"select a from t where b = 'C:\\\\' and c = 'x'":   "select a from t where b = ?x'",
	"select a from t where b = 'C:\\\\x\\\\'":          "select a from t where b = 'c:\\\\x\\",
	"select a from t where b = 'x''y' and c = 'a''b'":  "select a from t where b = ?? and c = ??",
	"select a from t where b = '''x''' and c = 'C:\\'": "select a from t where b = ??? and c = 'c:",
}

// newest is what 3.7.1 makes of those.
var newest = map[string]string{
	"select a from t where b = 'it''s'":                "select a from t where b = ?'s'",
	"select a from t where b = ''''":                   "select a from t where b = ?'",
	"insert into t values ('a''b', 'c')":               "insert into t values (?'?c')",
	"'x'":                                              "'x'",
	"select a from t where b = 'C:\\\\' and c = 'x'":   "select a from t where b = ? and c = ?",
	"select a from t where b = 'C:\\\\x\\\\'":          "select a from t where b = ?",
	"select a from t where b = 'x''y' and c = 'a''b'":  "select a from t where b = ?'y?a?b'",
	"select a from t where b = '''x''' and c = 'C:\\'": "select a from t where b = ?? and c = 'c:",
}

// TestPtVersions: where the versions differ, a class is called as the newest calls it.
func TestPtVersions(t *testing.T) {
	var stmts []string
	for s := range older {
		stmts = append(stmts, s)
		if got := string(ptFingerprint([]byte(s))); got != newest[s] {
			t.Errorf("%s\n got %s\nwant %s", s, got, newest[s])
		}
	}
	eachPt(t, func(t *testing.T, pt ptProgram) {
		fps, ids := pt.fingerprints(t, stmts)
		for i, s := range stmts {
			if want := pt.says(s, newest[s]); fps[i] != want || ids[i] != ClassID([]byte(want)) {
				t.Errorf("%s; want fps[i] %s, ids[i] ClassID([]byte(want))\npt-query-digest says %s\n             the table %s", s, want, fps[i], want)
			}
		}
	})
}

func TestPtParts(t *testing.T) {
	var stmts []string
	for _, d := range parted {
		stmts = append(stmts, d.one, d.other)
	}
	eachPt(t, func(t *testing.T, pt ptProgram) {
		fps, ids := pt.fingerprints(t, stmts)
		for i, d := range parted {
			if ids[2*i] == ids[2*i+1] {
				t.Errorf("pt-query-digest has one class %q for %q and %q, want ids[2*i] not ids[2*i+1]", fps[2*i], d.one, d.other)
			}
			for j, s := range []string{d.one, d.other} {
				if got := string(AppendPlain(nil, []byte(Fingerprint(s)))); got != d.plain {
					t.Errorf("%s: the plain form is %q, want %q", s, got, d.plain)
				}
				if PtID(s) != ids[2*i+j] {
					t.Errorf("%s: %s, pt-query-digest says %s; want ids[2*i+j]", s, PtID(s), ids[2*i+j])
				}
			}
		}
	})
}

func TestDiffersFromPt(t *testing.T) {
	stmts := make([]string, len(differences))
	for i, d := range differences {
		stmts[i] = d.stmt
		if got := Fingerprint(d.stmt); got != d.risso {
			t.Errorf("%s\n got %s\nwant %s", d.stmt, got, d.risso)
		}
		if d.pt == d.risso {
			t.Errorf("%s: no difference, want d.pt not %v", d.stmt, d.risso)
		}
	}
	eachPt(t, func(t *testing.T, pt ptProgram) {
		fps, ids := pt.fingerprints(t, stmts)
		for i, d := range differences {
			if want := pt.says(d.stmt, d.pt); fps[i] != want || ids[i] != ClassID([]byte(want)) {
				t.Errorf("%s; want fps[i] %s, ids[i] ClassID([]byte(want))\npt-query-digest says %s\n             the table %s", d.stmt, want, fps[i], want)
			}
		}
	})
}

// ptPieces are what statements are made of in TestPtRules.
var ptPieces = []string{"a", " from t", " where ", "b = ", " in (1,2,3)", "insert into t values ", "(1,2),", "(2,3)", "NULL", " null", "true", "`c1`", "`2a`", " -- c\n", "/* c */",
	"/*! 4 */", "/*+ h */", " # x\n", " limit 5", " limit 5,6", " limit 5 offset 6", " union ", " union all ", "select ", "0xFF", "1e5", "-1", " - 1", "+", " order by a asc, b", "call p(", ")",
	"é", "\xff", "5d41402abc4b2a76b9719d911017c592", " values (1),(2)", "\n", "\t", " ", ", ", "@v1", " is not null", ";", "\r\n"}

// ptStrings are those that not all versions read in one way.
var ptStrings = []string{"'x'", "''", "'it''s'", "'\\''", "'\\\\'", "\"q\"", "\"\"", "\"it\\\"s\"", " in ('a', 'b''c')", "x'0f'", "b'1'", "_utf8mb4'x'", "N'y'", "'", "\"", "\\"}

// TestPtRules holds that ptFingerprint and PtID are what the real program says, faults and all.
func TestPtRules(t *testing.T) {
	eachPt(t, func(t *testing.T, pt ptProgram) {
		stmts := append([]string{
			"select a, b from t union all select a, b from t union select a from t union select a from t union select a from t",
			"select a from t where x in (select b from u union select b from u limit 5) limit 7, 8",
			"select a from t order by a asc, b asc limit 5",
			"insert into t select a, 'x' from u where b = 5",
			"INSERT INTO t (a, b) VALUES (f(1), 'x'),\n(2, 'y')",
			"select '\xff\xfe', \"a\\\"b\", 'a\\'b' from t",
			"Select 1.5e10, -0x0f, +.5, a.1b from T  where x   in(1 , 2),(3)",
			"select a from t where b='x' -- y\n and c=1 # z\n",
			"select /*a*/ 1 /*!50000 2 */ /* b */",
			"replace into t values (1),(2),(3)",
			"insert into t value (1), (2)",
			"update a1b2c3 set xb1=1.e5, false_x=false where nullx is not null",
		}, agreed...)
		for _, d := range differences {
			if _, differ := older[d.stmt]; !pt.old || !differ {
				stmts = append(stmts, d.stmt)
			}
		}
		for _, s := range benchStatements {
			stmts = append(stmts, string(s))
		}
		for s := range ptEdges {
			if (!pt.old || !strings.ContainsAny(s, `'"`)) && !strings.HasPrefix(s, "use ") { // in a slow log, what names the schema of the next statement
				stmts = append(stmts, s)
			}
		}
		pieces := ptPieces
		if !pt.old {
			pieces = append(slices.Clone(pieces), ptStrings...)
		}
		random := rand.New(rand.NewPCG(3, 4))
		for range 1000 {
			s := "select "
			for range 1 + random.IntN(8) {
				s += pieces[random.IntN(len(pieces))]
			}
			stmts = append(stmts, s)
		}
		fps, ids := pt.fingerprints(t, stmts)
		for i, s := range stmts {
			if got := string(ptFingerprint([]byte(s))); got != fps[i] {
				t.Errorf("%q\n got %q\nwant %q", s, got, fps[i])
			}
			if got := PtID(s); got != ids[i] {
				t.Errorf("%q: got %s, want %s", s, got, ids[i])
			}
		}
	})
}

// TestTableOfDifferences holds the table in docs/fingerprints.md; -update writes it.
func TestTableOfDifferences(t *testing.T) {
	const file, begin, end = "../../docs/fingerprints.md", "<!-- differences -->\n", "<!-- end of differences -->\n"
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(doc), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", file)
	}
	cell := func(s string) string {
		s = strings.ReplaceAll(strings.ReplaceAll(s, "\n", "⏎"), "|", "\\|")
		if strings.Contains(s, "`") {
			return "`` " + s + " ``"
		}
		return "`" + s + "`"
	}
	var b strings.Builder
	b.WriteString("| statement | pt-query-digest 3.7.1 | Risso | because |\n|---|---|---|---|\n")
	for _, d := range differences {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", cell(d.stmt), cell(d.pt), cell(d.risso), d.why)
	}
	for _, d := range parted {
		fmt.Fprintf(&b, "| %s and %s | %s and %s: two classes | one class: %s | %s |\n", cell(d.one), cell(d.other), cell(string(ptFingerprint([]byte(d.one)))), cell(string(ptFingerprint([]byte(d.other)))), cell(d.plain), d.why)
	}
	b.WriteString("\nVersions up to 3.5.1 read strings with doubled quotes or backslashes in another way, and have other IDs for such statements:\n\n| statement | 3.2.1 | 3.7.1 |\n|---|---|---|\n")
	for _, s := range slices.Sorted(maps.Keys(older)) {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(s), cell(older[s]), cell(newest[s]))
	}
	if *update {
		if err := os.WriteFile(file, []byte(head+begin+b.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if old != b.String() {
		t.Errorf("the table in %s is not that of the test; run go test -update; want old %v", file, b.String())
	}
}
