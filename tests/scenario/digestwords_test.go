package scenario_test

import (
	"bytes"
	"compress/gzip"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDigestSentences: what the digest of a log says besides its figures is true, and is left out if it is not.
func TestDigestSentences(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	event := func(db, query, figures string) string {
		return "# Time: 2026-03-01T10:00:00.000000Z\n# User@Host: a[a] @ h []  Id: 7\n# Schema: " + db + "  QC_hit: No\n# Query_time: 0.250000  Lock_time: 0.000100 " + figures + "\nSET timestamp=1772359200;\n" + query + ";\n"
	}
	const rows = "Rows_sent: 1  Rows_examined: 10"
	slow := filepath.Join(dir, "slow.log")
	write(t, slow, event("a", "SELECT 1", rows)+event("a", "INSERT INTO t VALUES (1)", rows)+event("b", "INSERT INTO t VALUES (1)", rows)+event("b", "CALL p()", rows))
	calls := filepath.Join(dir, "calls.log")
	write(t, calls, event("a", "CALL p()", rows))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(event("a", "SELECT 1", rows))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	gz, wide := filepath.Join(dir, "slow.log.gz"), filepath.Join(dir, "wide.log")
	write(t, gz, packed.String())
	write(t, wide, "\xff\xfe"+strings.Join(strings.Split(event("a", "SELECT 1", rows), ""), "\x00")+"\x00")
	for _, c := range []struct {
		args      []string
		code      int
		says, not string // regular expressions over the report and standard error in one line
	}{
		{[]string{slow}, 0, `Percentiles and medians are accurate to within 0\.\d+ %\.`, `The filter|Not all|Passed over`},
		{[]string{"--filter", "Query_time > 9", slow}, 0, `The filter kept no event\.`, `in vain`},
		{[]string{"--filter", "Query_time > 9 and Rows_sent > 5", slow}, 0, `The filter kept no event\.`, `in vain`},
		{[]string{"--filter", "Rows_affected > 5", slow}, 0, `The filter kept no event\..*The filter looked for Rows_affected in vain: if an event does not have a name, its comparison is false\.`, `Rows_sent in vain`},
		{[]string{"--filter", "not has(Rows_affected)", slow}, 0, `4 calls.*looked for Rows_affected in vain`, `kept no event`},
		{[]string{"--since", "2030-01-01", slow}, 0, `0 calls`, `kept no event`},
		{[]string{"--plan-parallel", slow}, 0, `2 appliers by schema replay this at most 2\.00 times as fast as one: the statements of a are 50 % of the write time and wait for each other\. All 2 schemas are worked on at once for at most 100 % of that time\..*Not counted: 1 call of CALL`, `not tell in`},
		{[]string{"--plan-parallel", "--filter", "Rows_affected > 5", slow}, 0, `looked for Rows_affected in vain.*There is nothing to plan`, `kept no event`},
		{[]string{"--plan-parallel", "--filter", `db == "a"`, slow}, 0, `All writes that were counted are in a: appliers by schema gain nothing\.`, `Not counted`},
		{[]string{"--plan-parallel", calls}, 0, `There is nothing to plan.*Not counted: 1 call of CALL`, `All writes`},
		{[]string{"--follow", gz}, 1, `a log compressed by gzip does not grow; read it without --follow`, `calls`},
		{[]string{"--follow", wide}, 1, `a log in UTF-16 can be read to its end, but not followed`, `calls`},
		{[]string{wide}, 0, `1 call in 1 class`, `Not all`},
		{[]string{gz}, 0, `1 call in 1 class`, `Not all`},
	} {
		out, said, code := runRisso(t, nil, append([]string{"digest"}, c.args...)...)
		all := strings.Join(strings.Fields(out+" "+said), " ")
		if code != c.code || !regexp.MustCompile(c.says).MatchString(all) || regexp.MustCompile(c.not).MatchString(all) {
			t.Errorf("%v: exit %d, want %q and not %q:\n%s", c.args, code, c.says, c.not, all)
		}
	}
}
