package report

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/explain/digest"
)

// CSV writes a row a class, without the rest, in the order of the profile. Times are seconds, what is unknown is empty.
// A cell that a spreadsheet would take for a formula has an apostrophe in front.
func CSV(w io.Writer, p *digest.Profile, _ Options) error {
	c := csv.NewWriter(w)
	if err := c.Write([]string{"rank", "id", "group", "verb", "calls", "share", "total", "min", "max", "avg", "p95", "median", "stddev", "variance_to_mean",
		"lock_time", "rows_sent", "rows_examined", "rows_affected", "first", "last", "databases", "users", "hosts", "fingerprint", "sample", "pt_id"}); err != nil {
		return err
	}
	for i := range p.Classes {
		x := &p.Classes[i]
		t := responseTime(x)
		row := []string{strconv.Itoa(i + 1), x.ID, cell(x.Group), cell(x.Verb), strconv.FormatInt(x.Calls, 10), number(x.Share), number(t.Sum), number(t.Min), number(t.Max), number(t.Avg),
			number(t.P95), number(t.Median), number(t.Stddev), number(x.VarianceToMean), sum(x, "Lock_time"), sum(x, "Rows_sent"), sum(x, "Rows_examined"), sum(x, "Rows_affected"),
			instant(x.First), instant(x.Last), cell(joined(x, "db")), cell(joined(x, "user")), cell(joined(x, "host")), cell(x.Fingerprint), "", ptColumn(x)}
		if len(x.Samples) > 0 {
			row[len(row)-2] = cell(x.Samples[0].Query)
		}
		if err := c.Write(row); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// number is a figure for a program.
func number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 9, 64)
}

func sum(c *digest.Class, name string) string {
	m := c.Metric(name)
	if m.Count == 0 {
		return ""
	}
	return number(m.Sum)
}

func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.999999Z")
}

func joined(c *digest.Class, name string) string { return strings.Join(names(c, name), " ") }

// cell is text from a log, which a spreadsheet must not run.
func cell(s string) string {
	if s != "" && strings.IndexByte("=+-@\t\r", s[0]) >= 0 {
		return "'" + s
	}
	return s
}

// ptColumn are pt-query-digest's IDs of a class, parted by blanks.
func ptColumn(c *digest.Class) string {
	if len(c.PtIDs) > 0 {
		return strings.Join(c.PtIDs, " ")
	}
	return c.PtID
}
