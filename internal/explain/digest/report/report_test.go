package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

var update = flag.Bool("update", false, "write the golden files anew")

// profile digests the test's log, which holds hostile text of all kinds.
func profile(t *testing.T, o digest.Options) *digest.Profile {
	t.Helper()
	src, err := digest.File(filepath.Join("testdata", "slow.log"))
	if err != nil {
		t.Fatal(err)
	}
	src.Name = "slow.log"
	o.Workers = 1
	p, err := digest.Run(t.Context(), o, src)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func written(t *testing.T, form string, p *digest.Profile, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, form, p, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		a, b := strings.Split(string(want), "\n"), strings.Split(got, "\n")
		for i := range max(len(a), len(b)) {
			if i >= len(a) || i >= len(b) || a[i] != b[i] {
				t.Fatalf("%s, line %d differs (go test -update writes it anew)\n want %q\n  got %q", name, i+1, at(a, i), at(b, i))
			}
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}

func TestForms(t *testing.T) {
	for _, form := range Forms {
		t.Run(form, func(t *testing.T) {
			p := profile(t, digest.Options{})
			golden(t, "report."+form, written(t, form, p, Options{Filter: `verb != "SET"`, Notes: []string{"A note."}}))
		})
	}
	t.Run("narrow, by user, limited", func(t *testing.T) {
		p := profile(t, digest.Options{GroupBy: "user", OrderBy: "Rows_examined:sum", Samples: -1})
		Limit{Classes: 2}.Apply(p)
		golden(t, "user.text", written(t, "text", p, Options{Width: 72}))
	})
	t.Run("redacted", func(t *testing.T) {
		p := profile(t, digest.Options{Redact: true, Samples: 2})
		got := written(t, "text", p, Options{Redacted: true})
		golden(t, "redacted.text", got)
	})
	if err := Write(&bytes.Buffer{}, "pdf", profile(t, digest.Options{}), Options{}); err == nil {
		t.Error("an unknown form is written")
	}
}

// No form lets text of a log act: no escape sequences, no markup, no formula, no password.
func TestHostileText(t *testing.T) {
	for _, form := range Forms {
		got := written(t, form, profile(t, digest.Options{}), Options{})
		if strings.Contains(got, "geheim") {
			t.Errorf("%s: the password shows, want no \"geheim\" in it", form)
		}
		if form == "csv" || form == "json" {
			continue // data for programs: as it was
		}
		for i, r := range got {
			if r == utf8.RuneError || r < ' ' && r != '\n' && r != '\t' || r == '\u202e' {
				t.Errorf("%s: byte %d is %q", form, i, r)
			}
		}
		if form == "html" && (strings.Contains(got, "<script") || strings.Contains(got, "<b>t") || strings.Contains(got, "http:") || strings.Contains(got, "src=")) {
			t.Error("html: markup of the log")
		}
	}
	rows, err := csv.NewReader(strings.NewReader(written(t, "csv", profile(t, digest.Options{}), Options{}))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		for _, c := range r {
			if strings.HasPrefix(c, "=") {
				t.Errorf("csv: the cell %q is a formula", c)
			}
		}
	}
}

// What scripts rely on.
func TestJSONForm(t *testing.T) {
	p := profile(t, digest.Options{})
	p.Classes[0].Metrics[0].P95 = math.NaN()
	var got struct {
		Classes []struct {
			ID, Fingerprint, Sample                   string
			Calls                                     int64
			Total, Min, Max, Avg, Median, Stddev, P95 *float64
			Share                                     float64
			Databases                                 []string
		}
	}
	if err := json.Unmarshal([]byte(written(t, "json", p, Options{})), &got); err != nil {
		t.Fatal(err)
	}
	calls, share := int64(0), 0.0
	for i, c := range got.Classes {
		calls += c.Calls
		share += c.Share
		if len(c.ID) != 32 || c.Fingerprint == "" || c.Sample == "" || c.Total == nil || c.Min == nil || c.Max == nil || c.Avg == nil || c.Median == nil || c.Stddev == nil || (c.P95 == nil) != (i == 0) {
			t.Errorf("%+v", c)
		}
	}
	if calls != p.Calls || math.Abs(share-1) > 1e-9 || len(got.Classes) != p.Unique {
		t.Errorf("got %d of %d calls, share %v; want calls %d, math.Abs(share - 1) at most 1e-9, len(got.Classes) %v",
			calls, p.Calls, share, p.Calls, p.Unique)
	}
	if d := got.Classes[1].Databases; len(d) != 1 || d[0] != "shop" {
		t.Errorf("databases %v; want len(d) 1, d[0] \"shop\"", d)
	}
}

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		limit   string
		classes int
	}{{"all", 7}, {"3", 3}, {"100", 7}, {"40%", 1}, {"65%", 2}, {"100%", 7}, {"65%:1", 1}, {"40%:5", 1}} {
		l, err := ParseLimit(c.limit)
		if err != nil {
			t.Fatal(err)
		}
		p := profile(t, digest.Options{})
		whole := p.Metric(queryTime).Sum
		l.Apply(p)
		sum, calls := 0.0, int64(0)
		for _, x := range p.Classes {
			sum, calls = sum+x.Metric(queryTime).Sum, calls+x.Calls
		}
		if p.Other != nil {
			sum, calls = sum+p.Other.Metric(queryTime).Sum, calls+p.Other.Calls
		}
		if len(p.Classes) != c.classes || math.Abs(sum-whole) > 1e-6 || calls != p.Calls {
			t.Errorf("%s: got %d classes, %v of %v s, %d of %d calls; want len(p.Classes) %d, math.Abs(sum - whole) at most 1e-6, calls %d",
				c.limit, len(p.Classes), sum, whole, calls, p.Calls, c.classes, p.Calls)
		}
	}
	for _, bad := range []string{"", "0", "-1", "x", "0%", "101%", "NaN%", "5:5", "50%:", "50%:0", "50%:x"} {
		if _, err := ParseLimit(bad); err == nil {
			t.Errorf("%q is a limit", bad)
		}
	}
}

func TestExplainable(t *testing.T) {
	old, older := mysql.Of(fleet.ServerOf("5.5.62", "")), mysql.Of(fleet.ServerOf("5.5.68-MariaDB", ""))
	for _, c := range []struct {
		verb, query, db string
		server          mysql.Server
		want            string
	}{
		{"SELECT", "SELECT 1", "shop", mysql.Server{}, "USE `shop`; EXPLAIN SELECT 1\\G"},
		{"UPDATE", "UPDATE t SET a = 1 WHERE b = 2 LIMIT 3", "", mysql.Server{}, "EXPLAIN UPDATE t SET a = 1 WHERE b = 2 LIMIT 3\\G"},
		{"UPDATE", "UPDATE LOW_PRIORITY t, (SELECT 1 SET) x SET a = (SELECT 2 FROM y WHERE 1) WHERE b = 'WHERE'", "", old, "EXPLAIN SELECT * FROM t, (SELECT 1 SET) x WHERE b = 'WHERE'\\G"},
		{"UPDATE", "UPDATE `where` SET a = 1", "", older, "EXPLAIN SELECT * FROM `where`\\G"},
		{"DELETE", "DELETE QUICK FROM t WHERE a = 1 /* LIMIT */", "", old, "EXPLAIN SELECT * FROM t WHERE a = 1 /* LIMIT */\\G"},
		{"DELETE", "DELETE t FROM t JOIN u", "", old, ""},
		{"INSERT", "INSERT INTO t (a) SELECT a FROM u WHERE b = 1 ON DUPLICATE KEY UPDATE a = 2", "", old, "EXPLAIN SELECT a FROM u WHERE b = 1\\G"},
		{"INSERT", "INSERT INTO t SELECT a FROM u", "", mysql.Server{}, "EXPLAIN INSERT INTO t SELECT a FROM u\\G"},
		{"INSERT", "INSERT INTO t VALUES (1)", "", mysql.Server{}, ""},
		{"INSERT", "INSERT INTO t SET a = (SELECT 1)", "", mysql.Server{}, ""},
		{"UPDATE", "UPDATE t SET a = 1; DELETE FROM t", "", mysql.Server{}, ""},
		{"SELECT", "SELECT ';', `;` /* ; */ FROM t;", "", mysql.Server{}, "EXPLAIN SELECT ';', `;` /* ; */ FROM t;\\G"},
		{"SELECT", "SELECT 1 /*!50000 ; DELETE FROM t */", "", mysql.Server{}, ""},
		{"CALL", "CALL p()", "", mysql.Server{}, ""},
		{"SELECT", "SELECT '\x1b[0m'", "", mysql.Server{}, ""},
	} {
		got, _ := explainable(digest.Sample{Query: c.query, DB: c.db}, c.verb, c.server, false)
		if got != c.want {
			t.Errorf("%s\n want %s\n  got %s", c.query, c.want, got)
		}
	}
	for header, want := range map[string]bool{
		"/usr/sbin/mysqld, Version: 5.5.62-log (MySQL Community Server (GPL)). started with:": false,
		"mysqld, Version: 5.7.22 (MySQL). started with:":                                      true,
		"mariadbd, Version: 10.11.19-MariaDB-log (Debian 12). started with:":                  true,
		"mysqld, Version: 5.5.68-MariaDB (MariaDB Server). started with:":                     false,
		"": true,
	} {
		if got := serverOf(&digest.Profile{Sources: []digest.SourceInfo{{Server: header}}}).ExplainsWrites(); got != want {
			t.Errorf("%q: got %v, want %v", header, got, want)
		}
	}
}

func TestFigures(t *testing.T) {
	for _, c := range []struct {
		v          float64
		unit, want string
	}{
		{0, "s", "0 s"}, {0.0123456, "s", "12.3 ms"}, {250, "ms", "250 ms"}, {1536, "bytes", "1.5 KiB"}, {0.25, "", "0.25"}, {1234567, "", "1,234,567"}, {math.NaN(), "s", "–"}, {math.Inf(1), "", "–"},
	} {
		if got := figure(c.v, c.unit); got != c.want {
			t.Errorf("%v %s: %s, want %s", c.v, c.unit, got, c.want)
		}
	}
}

// The text keeps to its width except for statements to be copied.
func TestWidth(t *testing.T) {
	for _, width := range []int{80, 100, 160} {
		p := profile(t, digest.Options{Samples: -1})
		for _, l := range strings.Split(written(t, "text", p, Options{Width: width}), "\n") {
			if n := utf8.RuneCountInString(l); n > width && !strings.HasPrefix(strings.TrimSpace(l), "SHOW ") {
				t.Errorf("width %d: %d characters: %s", width, n, l)
			}
		}
	}
	for n := range 12 {
		for _, l := range wrap("aa bbb c dddddddddddddddd ee 12 % ffff", n+3, 4) {
			if utf8.RuneCountInString(l) > n+3 {
				t.Errorf("got %v, %v; want at most %v", fmt.Sprint(n+3), l, n+3)
			}
		}
	}
}

func TestEmpty(t *testing.T) {
	for _, form := range Forms {
		if got := written(t, form, &digest.Profile{}, Options{}); !strings.Contains(got, "0") && form != "csv" {
			t.Errorf("%s: %q", form, got)
		}
	}
}

func TestRankByCalls(t *testing.T) {
	p := profile(t, digest.Options{})
	RankByCalls(p)
	if p.OrderBy == "calls" {
		t.Error("times are there")
	}
	q := &digest.Profile{Calls: 10, Classes: []digest.Class{{Group: "a", Calls: 3}, {Group: "b", Calls: 6}}, Other: &digest.Class{Calls: 1}}
	RankByCalls(q)
	if q.Classes[0].Group != "b" || q.Classes[0].Share != 0.6 || q.Other.Share != 0.1 {
		t.Errorf("got %+v; want Classes[0].Group \"b\", Classes[0].Share 0.6, Other.Share 0.1", q)
	}
}
