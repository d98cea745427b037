package advise

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// clock is how the bounds of partitions tell times.
type clock struct {
	at  func(bound string) (time.Time, bool)
	say func(time.Time) string
}

// clockOf is the clock of a partitioning expression; false if it tells no time.
func clockOf(method, expression string) (clock, bool) {
	number := func(f func(n int64) time.Time, back func(time.Time) int64) clock {
		return clock{func(bound string) (time.Time, bool) {
			n, err := strconv.ParseInt(bound, 10, 64)
			return f(n), err == nil
		}, func(t time.Time) string { return strconv.FormatInt(back(t), 10) }}
	}
	year0 := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	e := strings.ToLower(strings.ReplaceAll(expression, " ", ""))
	switch {
	case method == "RANGE COLUMNS" && !strings.Contains(expression, ","):
		return clock{func(bound string) (time.Time, bool) {
			text := strings.Trim(bound, "'")
			for _, layout := range []string{"2006-01-02", "2006-01-02 15:04:05"} {
				if t, err := time.Parse(layout, text); err == nil && text != bound {
					return t, true
				}
			}
			return time.Time{}, false
		}, func(t time.Time) string {
			if t.Hour() == 0 && t.Minute() == 0 && t.Second() == 0 {
				return "'" + t.Format("2006-01-02") + "'"
			}
			return "'" + t.Format("2006-01-02 15:04:05") + "'"
		}}, true
	case method != "RANGE":
	case strings.HasPrefix(e, "to_days("): // day 1 is 0000-01-02
		return number(func(n int64) time.Time { return year0.AddDate(0, 0, int(n)) }, func(t time.Time) int64 { return int64(t.Sub(time.Unix(0, 0)).Hours()/24) + 719528 }), true
	case strings.HasPrefix(e, "to_seconds("):
		return number(func(n int64) time.Time { return time.Unix(n-62167219200, 0).UTC() }, func(t time.Time) int64 { return t.Unix() + 62167219200 }), true
	case strings.HasPrefix(e, "unix_timestamp("):
		return number(func(n int64) time.Time { return time.Unix(n, 0).UTC() }, func(t time.Time) int64 { return t.Unix() }), true
	case strings.HasPrefix(e, "year("):
		return number(func(n int64) time.Time { return time.Date(int(n), 1, 1, 0, 0, 0, 0, time.UTC) }, func(t time.Time) int64 { return int64(t.Year()) }), true
	}
	return clock{}, false
}

// soonPartitions is how early it is said that partitions run out, unless one of them is wider.
const soonPartitions = 30 * 24 * time.Hour

// runningOut finds tables partitioned by range whose last partition ends near now, or near the next AUTO_INCREMENT value, so that INSERTs are going
// to fail (error 1526).
func runningOut(s *Server, t *Table) []Finding {
	n := len(t.Partitions)
	if n == 0 || !strings.HasPrefix(t.Partitions[0].Method, "RANGE") {
		return nil
	}
	last := t.Partitions[n-1]
	if strings.EqualFold(last.Bound, "MAXVALUE") {
		return grownLast(t, last)
	}
	c, isTime := clockOf(last.Method, last.Expression)
	if !isTime {
		return numbersRunOut(t, last)
	}
	end, ok := c.at(last.Bound)
	if !ok {
		return nil
	}
	warn := soonPartitions
	var before time.Time
	if n > 1 {
		if before, ok = c.at(t.Partitions[n-2].Bound); ok {
			warn = max(warn, end.Sub(before))
		}
	}
	left := end.Sub(s.Now)
	if left > warn {
		return nil
	}
	f := Finding{Object: t.object(), Severity: fleet.SeverityWarning, What: fmt.Sprintf("partitions of %s end in %s", t.object(), digits.Age(left.Seconds())), Why: "INSERTs of later rows then fail",
		Evidence: []string{fmt.Sprintf("the last partition, %s, ends at %s", last.Name, last.Bound), digits.Counted(n, "partition")}, Cost: Cost{Risk: "INSERTs fail"}, Since: t.Created}
	if left <= 0 {
		f.Severity, f.What, f.Why = fleet.SeverityCritical, fmt.Sprintf("partitions of %s ended %s ago", t.object(), digits.Age(-left.Seconds())), "INSERTs of rows of today fail"
	}
	if n < 2 || before.IsZero() {
		f.Advice = "add partitions, and let an event do it from then on"
		return []Finding{f}
	}
	f.Statement, f.Undo = addPartitions(t, c, before, end, s.Now)
	f.Effect = "in place, within moments; statements of the table wait only behind it while it waits for transactions that use the table"
	f.Advice = "let an event do it from then on"
	f.Doubt = "the undo removes rows that got into the new partitions"
	return []Finding{f}
}

// addPartitions is the statement that adds partitions until three more are there than are needed now, each as wide as the last one, or a month
// where that was one.
func addPartitions(t *Table, c clock, before, end, now time.Time) (statement, undo string) {
	width := end.Sub(before)
	step := func(x time.Time) time.Time { return x.Add(width) }
	if months := (end.Year()-before.Year())*12 + int(end.Month()) - int(before.Month()); months > 0 && end.Day() == before.Day() {
		step = func(x time.Time) time.Time { return x.AddDate(0, months, 0) }
	}
	taken := map[string]bool{}
	for _, p := range t.Partitions {
		taken[strings.ToLower(p.Name)] = true
	}
	var add, names []string
	begin := end
	for extra := 3; extra > 0 && len(add) < 100; {
		next := step(begin)
		if !next.After(begin) {
			break
		}
		name := "p" + begin.Format("20060102")
		if width < 24*time.Hour {
			name = "p" + begin.Format("20060102150405")
		}
		for i := 2; taken[name]; i++ {
			name = fmt.Sprintf("p%s_%d", begin.Format("20060102"), i)
		}
		taken[name] = true
		add = append(add, "PARTITION "+mysql.Quote(name)+" VALUES LESS THAN ("+c.say(next)+")")
		names = append(names, mysql.Quote(name))
		if next.After(now) {
			extra--
		}
		begin = next
	}
	return t.alter() + "ADD PARTITION (" + strings.Join(add, ", ") + ")", t.alter() + "DROP PARTITION " + strings.Join(names, ", ")
}

// grownLast finds tables whose rows all get into the last partition, the one without an end.
func grownLast(t *Table, last Partition) []Finding {
	if len(t.Partitions) < 3 || last.Rows < 100000 || last.Rows < 0.5*t.Rows {
		return nil
	}
	return []Finding{{Object: t.object(), Severity: fleet.SeverityInfo, What: fmt.Sprintf("most rows of %s are in its last partition, the one without an end", t.object()), Why: "nobody added partitions before it: what is old can no longer be dropped by partitions, and splitting it copies it", Sure: Likely, Doubt: "rows are estimates",
		Evidence: []string{fmt.Sprintf("about %s of %s rows in %s", digits.Count(last.Rows), digits.Count(t.Rows), last.Name)}, Advice: "ALTER TABLE … REORGANIZE PARTITION " + last.Name + " INTO …, and let an event do it from then on"}}
}

// plainColumn is a partitioning expression that is a column.
var plainColumn = regexp.MustCompile("^`?([^`()]+)`?$")

// numbersRunOut compares the last bound with the next AUTO_INCREMENT value.
func numbersRunOut(t *Table, last Partition) []Finding {
	m := plainColumn.FindStringSubmatch(strings.TrimSpace(last.Expression))
	bound, err := strconv.ParseFloat(last.Bound, 64)
	if m == nil || err != nil || !strings.EqualFold(autoColumn(t), m[1]) || t.Next < 0.9*bound {
		return nil
	}
	f := Finding{Object: t.object(), Severity: fleet.SeverityWarning, What: fmt.Sprintf("partitions of %s are nearly used up", t.object()), Why: "INSERTs of later rows then fail", Cost: Cost{Risk: "INSERTs fail"}, Since: t.Created,
		Evidence: []string{fmt.Sprintf("the last partition, %s, ends at %s", last.Name, last.Bound), "next AUTO_INCREMENT value " + digits.Count(t.Next)}, Advice: "let an event do it from then on"}
	if t.Next >= bound {
		f.Severity, f.What, f.Why = fleet.SeverityCritical, fmt.Sprintf("partitions of %s are used up", t.object()), "INSERTs fail"
	}
	before := 0.0
	if n := len(t.Partitions); n > 1 {
		before, _ = strconv.ParseFloat(t.Partitions[n-2].Bound, 64)
	}
	var add, names []string
	taken := map[string]bool{}
	for _, p := range t.Partitions {
		taken[strings.ToLower(p.Name)] = true
	}
	for i, extra := 1, 3; extra > 0 && i <= 100; i++ {
		end := bound + float64(i)*(bound-before)
		name := "p" + integer(end)
		if taken[name] {
			name += "_2"
		}
		add = append(add, "PARTITION "+mysql.Quote(name)+" VALUES LESS THAN ("+integer(end)+")")
		names = append(names, mysql.Quote(name))
		if end > t.Next {
			extra--
		}
	}
	f.Statement, f.Undo = t.alter()+"ADD PARTITION ("+strings.Join(add, ", ")+")", t.alter()+"DROP PARTITION "+strings.Join(names, ", ")
	f.Effect, f.Doubt = "in place, within moments; statements of the table wait only behind it while it waits for transactions that use the table", "the undo removes rows that got into the new partitions"
	return []Finding{f}
}
