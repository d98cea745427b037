package digest

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/sqltext"
)

// event writes an event of a slow log.
func event(b *bytes.Buffer, seconds float64, user, db, query string) {
	fmt.Fprintf(b, "# Time: 2026-01-01T10:00:00.000000Z\n# User@Host: %s[%s] @ h []\n# Query_time: %.6f  Lock_time: 0.000100 Rows_sent: 2  Rows_examined: 30\nuse %s;\nSET timestamp=1767261600;\n%s;\n", user, user, seconds, db, query)
}

// Statements that differ only in what a server's own digest does not keep are one class, with all its figures, whichever
// of the workers read them; pt-query-digest's classes can be found from it.
func TestOneName(t *testing.T) {
	spelled := []string{"SELECT c FROM t WHERE a = %d", "SELECT c FROM t WHERE a=%d", "SELECT `c` FROM `t` WHERE a = %d", "SELECT c FROM t WHERE a <> %d", "SELECT c FROM t WHERE a != %d"}
	var b bytes.Buffer
	const n = 2000
	for i := range n {
		event(&b, 0.001*float64(1+i%5+i/5%7), fmt.Sprintf("u%d", i%2), fmt.Sprintf("db%d", i%5), fmt.Sprintf(spelled[i%5], i))
	}
	var first string
	for _, workers := range []int{1, 3} {
		p := digest(t, Options{Workers: workers, blockSize: 4096, Samples: 3}, b.Bytes())
		if p.Unique != 2 || len(p.Classes) != 2 || p.Calls != n {
			t.Fatalf("got %d classes of %d calls; want p.Unique 2, len(p.Classes) 2, p.Calls %d", p.Unique, p.Calls, n)
		}
		if got := asJSON(t, p); first == "" {
			first = got
		} else if got != first {
			t.Errorf("%d workers find something else:\n%s\n%s", workers, got, first)
		}
		for want, calls := range map[string]int64{"select c from t where a = ?": 3 * n / 5, "select c from t where a != ?": 2 * n / 5} {
			i := slices.IndexFunc(p.Classes, func(c Class) bool { return c.ID == sqltext.ClassID([]byte(want)) })
			if i < 0 {
				t.Fatalf("no class is called as %q, want i at least 0", want)
			}
			c := &p.Classes[i]
			checkJoined(t, c, calls)
			for _, s := range spelled {
				s = fmt.Sprintf(s, 1)
				if same := sqltext.Fingerprint(s) != "" && plainID([]byte(sqltext.Fingerprint(s))) == c.ID; same != slices.Contains(c.PtIDs, sqltext.PtID(s)) {
					t.Errorf("%s: %s among %q is %t, want same slices.Contains(c.PtIDs, sqltext.PtID(s))", s, sqltext.PtID(s), c.PtIDs, !same)
				}
			}
			if plainID([]byte(c.Fingerprint)) != c.ID || c.PtID != c.PtIDs[0] || c.PtID != sqltext.PtID(strings.ReplaceAll(c.Fingerprint, "?", "1")) {
				t.Errorf("%q is %s, %s of %q; want plainID([]byte(c.Fingerprint)) %v, c.PtID c.PtIDs[0], c.PtID sqltext.PtID(strings.ReplaceAll(c.Fingerprint, \"?\", \"1\"))",
					c.Fingerprint, c.ID, c.PtID, c.PtIDs, c.ID)
			}
		}
	}
}

// checkJoined holds the figures of a class that was joined against the same statements spelled in one way.
func checkJoined(t *testing.T, c *Class, calls int64) {
	t.Helper()
	kinds := map[string][]int{"select c from t where a = ?": {0, 1, 2}, "select c from t where a != ?": {3, 4}}[string(sqltext.AppendPlain(nil, []byte(c.Fingerprint)))]
	var b bytes.Buffer
	for i := range 2000 {
		if slices.Contains(kinds, i%5) {
			event(&b, 0.001*float64(1+i%5+i/5%7), fmt.Sprintf("u%d", i%2), fmt.Sprintf("db%d", i%5), "SELECT c FROM t WHERE a = 1")
		}
	}
	want := digest(t, Options{}, b.Bytes()).Classes[0]
	if c.Calls != calls || want.Calls != calls || c.Histogram != want.Histogram || fmt.Sprint(c.Values) != fmt.Sprint(want.Values) || !c.First.Equal(want.First) || c.Apdex != want.Apdex || math.Abs(c.VarianceToMean-want.VarianceToMean) > 1e-12 {
		t.Errorf("joined %+v, of one spelling %+v; want Calls %v, Calls %v, Histogram %v, fmt.Sprint(c.Values) %v, First.Equal(want.First) true, Apdex %v, math.Abs(c.VarianceToMean - want.VarianceToMean) at most 1e-12",
			c, want, calls, calls, want.Histogram, fmt.Sprint(want.Values), want.Apdex)
	}
	for _, m := range c.Metrics {
		if w := want.Metric(m.Name); m.Name != "Query_size" && m != w {
			t.Errorf("joined %+v, of one spelling %+v", m, w)
		}
	}
	if len(c.Samples) != 3 || c.Samples[0].Seconds != c.Metric("Query_time").Max || c.Samples[2].Seconds > c.Samples[1].Seconds {
		t.Errorf("samples %+v; want len(c.Samples) 3, c.Samples[0].Seconds c.Metric(\"Query_time\").Max, c.Samples[2].Seconds at most c.Samples[1].Seconds",
			c.Samples)
	}
}

// What is over the bytes that are kept of a fingerprint still distinguishes classes, and names them.
func TestNameOfLongFingerprint(t *testing.T) {
	var b bytes.Buffer
	column := func(n int) string {
		return "SELECT " + strings.Repeat("a_column_with_a_name, ", 1500) + fmt.Sprintf("c%d FROM t", n)
	}
	for i := range 3 {
		event(&b, 1, "u", "db", column(i/2))
	}
	p := digest(t, Options{}, b.Bytes())
	if len(p.Classes) != 2 || p.Classes[0].Calls != 2 {
		t.Fatalf("got %d classes; want len(p.Classes) 2, p.Classes[0].Calls 2", len(p.Classes))
	}
	if want := plainID([]byte(sqltext.Fingerprint(column(0)))); p.Classes[0].ID != want || len(p.Classes[0].Fingerprint) != keepText {
		t.Errorf("%s, want %s; %d bytes", p.Classes[0].ID, want, len(p.Classes[0].Fingerprint))
	}
}

// The real pt-query-digest parts what has one name here; the sums are the same.
func TestJoinedLikePt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spelled.log")
	var b bytes.Buffer
	for i := range 300 {
		event(&b, 0.001*float64(1+i%17), "u", "db", fmt.Sprintf([]string{"SELECT c FROM t WHERE a=%d", "SELECT c FROM t WHERE a = %d", "SELECT c  FROM t WHERE a= %d", "UPDATE t SET k=k+%d"}[i%4], i))
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p := digest(t, Options{}, b.Bytes())
	if len(p.Classes) != 2 {
		t.Errorf("got %d classes, want 2", len(p.Classes))
	}
	compareWithPt(t, path, p)
	if pt := ptDigest(t, path); len(pt) != 4 {
		t.Errorf("pt-query-digest has %d classes, expected it to part all spellings; want 4", len(pt))
	}
}

// Risso's own statements are left out and counted, unless they are asked for.
func TestOwn(t *testing.T) {
	for q, want := range map[string]bool{
		"SELECT /* risso: the server's clock */ NOW(6)": true, "SHOW /* risso */ GLOBAL STATUS": true,
		"SET SESSION /* risso: times in UTC */ time_zone = '+00:00'": true, "/* risso: x */ SELECT 1": true,
		"SELECT /* rissolino */ 1": false, "SELECT '/* risso: */'": false, "SELECT a/b /* risso: x */": false, "SELECT 1": false,
		"SELECT /* risso": false, "SELECT": false, "": false, "/": false,
	} {
		if IsOwn([]byte(q)) != want {
			t.Errorf("%q: got %t, want IsOwn([]byte(q)) %v", q, !want, want)
		}
	}
	var b bytes.Buffer
	event(&b, 1, "u", "db", "SELECT 1")
	event(&b, 1, "u", "db", "SELECT /* risso: why */ 2")
	for own, calls := range map[bool]int64{false: 1, true: 2} {
		p := digest(t, Options{Own: own}, b.Bytes())
		if p.Calls != calls || p.Skipped[SkippedOwn] != 2-calls || p.Sources[0].Events != 2 {
			t.Errorf("own %t: got %d calls, %v left out of %d; want p.Calls %d, p.Skipped[SkippedOwn] %v, p.Sources[0].Events 2",
				own, p.Calls, p.Skipped, p.Sources[0].Events, calls, 2-calls)
		}
	}
}
