package events

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// backend is what the two stores differ in. The statements are written once, in ClickHouse's words; the embedded
// store brings macros for those of them that DuckDB calls otherwise.
type backend interface {
	// query runs a statement with ? for arguments (int64, float64, string) and calls row for each row; scan takes
	// pointers to int64, float64 or string.
	query(ctx context.Context, statement string, args []any, row func(scan func(dest ...any) error) error) error
	// rolled are the times up to which whole hours and days are in their tables.
	rolled() (hours, days int64)
	// sumColumns are the columns of the tables of hours and days, by the names that minutes have.
	sumColumns() string
	// once makes a statement in which a sub-query is used several times, and returns what comes before it and what replaces it.
	once(subquery string) (prefix, name string)
	// latency is a statement that returns class, slot, bucket and counted, the calls in it.
	latency(table, where, slot string) string
	// quantile is a statement that returns class, the bucket that its quantile reached, and of how many calls it is, from
	// rows with class, bucket and counted.
	quantile(counted string, level float64) string
	// contains is a condition that column holds the text of one argument, in lower case.
	contains(column string) string
}

// asker answers questions by SQL.
type asker struct {
	b      backend
	gate   chan struct{} // how many queries may run at the same time
	pruned *atomic.Int64 // the time before which minutes were deleted; hours are kept longer
}

// questionTimeout bounds a question whose context has no shorter one; atOnce is how many run at the same time.
const (
	questionTimeout = 30 * time.Second
	atOnce          = 2
)

func newAsker(b backend) asker {
	return asker{b: b, gate: make(chan struct{}, atOnce), pruned: new(atomic.Int64)}
}

// enter waits for a place; leave returns it and ends the timeout.
func (a asker) enter(ctx context.Context) (context.Context, func(), error) {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	select {
	case a.gate <- struct{}{}:
		return ctx, func() { <-a.gate; cancel() }, nil
	case <-ctx.Done():
		cancel()
		return nil, nil, fmt.Errorf("too many queries at once: %w", ctx.Err())
	}
}

// costSums are the sums that a Cost is read from, in the order of its fields.
const costSums = `toInt64(sum(calls)), toFloat64(sum(seconds)), toFloat64(sum(lock_seconds)), toInt64(sum(rows_sent)), toInt64(sum(rows_examined)),
 toInt64(sum(rows_affected)), toInt64(sum(errors)), toInt64(sum(warnings)), toInt64(sum(tmp_tables)), toInt64(sum(tmp_disk_tables)), toInt64(sum(no_index)),
 toInt64(sum(sort_rows)), toFloat64(max(max_seconds))`

// costColumns are the same sums by the names of the columns, to be summed up once more.
const costColumns = `sum(calls) AS calls, sum(seconds) AS seconds, sum(lock_seconds) AS lock_seconds, sum(rows_sent) AS rows_sent, sum(rows_examined) AS rows_examined,
 sum(rows_affected) AS rows_affected, sum(errors) AS errors, sum(warnings) AS warnings, sum(tmp_tables) AS tmp_tables, sum(tmp_disk_tables) AS tmp_disk_tables, sum(no_index) AS no_index,
 sum(sort_rows) AS sort_rows, max(max_seconds) AS max_seconds`

func costFields(c *fleet.Cost) []any {
	return []any{&c.Calls, &c.Seconds, &c.LockSeconds, &c.RowsSent, &c.RowsExamined, &c.RowsAffected, &c.Errors, &c.Warnings,
		&c.TmpTables, &c.TmpDiskTables, &c.NoIndex, &c.SortRows, &c.MaxSeconds}
}

const minuteColumns = `instance, time, class, db, account, calls, seconds, lock_seconds, rows_sent, rows_examined, rows_affected, errors, warnings,
 tmp_tables, tmp_disk_tables, no_index, sort_rows, max_seconds`

// piece is a part of a range and the table that holds it.
type piece struct {
	table string
	Range
}

// sums is the step of questions that want one sum over the whole range.
const sums = day

// pieces cuts a range: whole days and hours that are rolled up come from separate tables, as far as step allows, and the
// rest from minutes. A range of few hours is read from minutes, as long as those are kept.
func (a asker) pieces(r Range, step int64) []piece {
	hours, days := a.b.rolled()
	begin, end := roundUp(r.From, hour), min(r.To/hour*hour, hours)
	least := int64(3 * hour)
	if r.From < a.pruned.Load() {
		least = hour
	}
	if step%hour != 0 || end-begin < least {
		return []piece{{"minutes", r}}
	}
	firstDay, lastDay := roundUp(begin, day), min(end/day*day, days)
	list := []piece{{"minutes", Range{r.From, begin}}, {"hours", Range{begin, end}}, {"minutes", Range{end, r.To}}}
	if step%day == 0 && firstDay < lastDay {
		list = []piece{{"minutes", Range{r.From, begin}}, {"hours", Range{begin, firstDay}}, {"days", Range{firstDay, lastDay}},
			{"hours", Range{lastDay, end}}, {"minutes", Range{end, r.To}}}
	}
	return slices.DeleteFunc(list, func(p piece) bool { return p.From >= p.To })
}

func roundUp(t, width int64) int64 { return (t + width - 1) / width * width }

// filter is what narrows the rows.
type filter struct {
	instances []string
	classes   []int64
}

func (f filter) where(r Range) string {
	w := fmt.Sprintf("time >= %d AND time < %d", r.From, r.To)
	if len(f.instances) > 0 {
		w += " AND instance IN (" + quoteList(f.instances) + ")"
	}
	if len(f.classes) > 0 {
		w += " AND class IN (" + numbers(f.classes) + ")"
	}
	return w
}

// source is a FROM clause that yields the rows of a range with the columns of minutes.
func (a asker) source(list []piece, f filter) string {
	parts := make([]string, len(list))
	for i, p := range list {
		columns := minuteColumns
		if p.table != "minutes" {
			columns = a.b.sumColumns()
		}
		parts[i] = "SELECT " + columns + " FROM risso_" + p.table + " WHERE " + f.where(p.Range)
	}
	return "(" + strings.Join(parts, " UNION ALL ") + ")"
}

func numbers(list []int64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
}

// quote writes an instance's ID as SQL. IDs have neither quotes nor backslashes, which the two stores read differently:
// they are left out of what pretends to be one, and then nothing is found.
func quote(s string) string {
	return "'" + strings.NewReplacer("'", "", `\`, "").Replace(s) + "'"
}

func quoteList(list []string) string {
	q := make([]string, len(list))
	for i, s := range list {
		q[i] = quote(s)
	}
	return strings.Join(q, ",")
}

// Top returns the classes that cost most in a range.
func (a asker) Top(ctx context.Context, q TopQuestion) (*TopAnswer, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	if q.Order == "" {
		q.Order = "load"
	}
	order, known := orders[q.Order]
	level, byLatency := quantileOrders[q.Order]
	if !known && !byLatency {
		return nil, badQuestion("order %q; use one of: %s", q.Order, strings.Join(Orders(), ", "))
	}
	if q.Limit < 1 || q.Limit > MaxLimit || q.Sparks < 0 || q.Sparks > 200 || len(q.Schemas) > maxSchemas {
		return nil, badQuestion("limit must be 1 to %d, sparks 0 to 200, schemas at most %d", MaxLimit, maxSchemas)
	}
	ctx, leave, err := a.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := new(TopAnswer)
	if out.First, err = a.first(ctx, q.Instances); err != nil || out.First == 0 {
		return out, err
	}
	var places map[int64]float64
	if byLatency {
		keys, err := a.ranks(ctx, q, level)
		if err != nil {
			return nil, err
		}
		order, places = rankOrder(keys), rankWorths(keys)
	}
	// By instance first: so the instances of a class need only be counted.
	prefix, rows := a.b.once("SELECT instance, class, " + costColumns + " FROM " + a.source(a.pieces(q.Range, sums), filter{instances: q.Instances}) + " GROUP BY instance, class")
	where, args := a.searched(q.Search)
	ranking := rows
	if len(q.Schemas) > 0 { // a second grouping, of those alone: the total stays that of all
		in, names := inSchemas(q.Schemas)
		ranking = "(SELECT instance, class, " + costColumns + " FROM " + a.source(a.pieces(q.Range, sums), filter{instances: q.Instances}) + in + " GROUP BY instance, class)"
		args = append(names, args...)
	}
	type ranked struct {
		key   int64
		worth float64
		load  ClassLoad
	}
	var list []ranked
	err = a.b.query(ctx, prefix+"SELECT toInt64(0), toInt64(0), toFloat64(0), toInt64(uniqExact(class)), "+costSums+" FROM "+rows+" UNION ALL SELECT * FROM (SELECT toInt64(1), class, toFloat64("+order+") AS worth, toInt64(count()), "+costSums+
		" FROM "+ranking+where+" GROUP BY class ORDER BY worth DESC, class LIMIT "+fmt.Sprint(q.Limit)+")", args, func(scan func(...any) error) error {
		var part int64
		var r ranked
		if err := scan(append([]any{&part, &r.key, &r.worth, &r.load.Instances}, costFields(&r.load.Cost)...)...); err != nil {
			return err
		}
		if part == 0 {
			out.Count, out.Total = r.load.Instances, r.load.Cost
		} else {
			list = append(list, r)
		}
		return nil
	})
	if err != nil || len(list) == 0 {
		return out, wrap("find the most expensive classes", err)
	}
	for i, r := range list {
		if place, ok := places[r.key]; ok {
			list[i].worth = place
		}
	}
	slices.SortFunc(list, func(a, b ranked) int { return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(a.key, b.key)) })
	keys := make([]int64, len(list))
	for i, r := range list {
		keys[i], out.Classes = r.key, append(out.Classes, r.load)
	}
	return out, a.dress(ctx, q, out, keys)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// searched narrows to the classes that a search finds.
func (a asker) searched(search string) (string, []any) {
	search = searchText(search)
	if search == "" {
		return "", nil
	}
	var cond []string
	var args []any
	for _, column := range []string{"fingerprint", "tables", "id"} {
		cond = append(cond, a.b.contains(column))
		args = append(args, search)
	}
	name := searchName(search)
	if name != "" {
		for _, column := range []string{"id", "pt_id"} {
			cond = append(cond, a.b.contains(column))
			args = append(args, name)
		}
	}
	where := " WHERE class IN (SELECT class FROM risso_classes WHERE " + strings.Join(cond, " OR ") + ")"
	if name != "" {
		where += " OR class IN (SELECT class FROM risso_seen WHERE " + a.b.contains("digest") + ")"
		args = append(args, name)
	}
	return where, args
}

// first is the earliest minute that is kept.
func (a asker) first(ctx context.Context, instances []string) (int64, error) {
	var first int64
	for _, table := range []string{"days", "hours", "minutes"} {
		err := a.b.query(ctx, "SELECT toInt64(count()), toInt64(min(time)) FROM risso_"+table+" WHERE "+filter{instances: instances}.where(Range{0, 1 << 40}), nil,
			func(scan func(...any) error) error {
				var n, t int64
				if err := scan(&n, &t); err != nil || n == 0 {
					return err
				}
				if first == 0 || t < first {
					first = t
				}
				return nil
			})
		if err != nil {
			return 0, fmt.Errorf("find the first minute: %w", err)
		}
		if table != "minutes" && first > 0 { // the day or hour began, the first minute may be later
			break
		}
	}
	return first, nil
}

// dress adds to the classes of a list their names, latencies and sparks.
func (a asker) dress(ctx context.Context, q TopQuestion, out *TopAnswer, keys []int64) error {
	names, err := a.names(ctx, keys, q.Instances)
	if err != nil {
		return err
	}
	at := make(map[int64]int, len(keys))
	for i, k := range keys {
		at[k] = i
		if n, ok := names[k]; ok {
			c := &out.Classes[i]
			c.ID, c.Fingerprint, c.Verb, c.Tables, c.FirstSeen, c.LastSeen = n.ID, n.Fingerprint, n.Verb, n.Tables, n.FirstSeen, n.LastSeen
		} else {
			out.Classes[i].ID = fmt.Sprintf("%016X", uint64(k)) + strings.Repeat("0", 16) // its name was lost in a crash
		}
	}
	f := filter{instances: q.Instances, classes: keys}
	buckets, err := a.buckets(ctx, a.pieces(q.Range, sums), f, "0")
	if err != nil {
		return err
	}
	for k, slots := range buckets {
		out.Classes[at[k]].Latency = Quantiles(slots[0])
	}
	if err := a.heaviestWaits(ctx, q, out, keys); err != nil {
		return err
	}
	if err := a.countFlips(ctx, q, out, keys); err != nil || q.Sparks == 0 {
		return err
	}
	out.Step = a.step(q.Range, q.Sparks)
	out.Begin = q.From - q.From%out.Step
	list := a.pieces(q.Range, out.Step)
	points := int((q.To-out.Begin-1)/out.Step) + 1
	for i := range out.Classes {
		out.Classes[i].Spark = make([]float64, points)
	}
	where, args := inSchemas(q.Schemas)
	err = a.b.query(ctx, fmt.Sprintf("SELECT class, intDiv(time - %d, %d) AS slot, toFloat64(sum(seconds)) FROM %s%s GROUP BY class, slot", out.Begin, out.Step, a.source(list, f), where), args,
		func(scan func(...any) error) error {
			var k, slot int64
			var s float64
			if err := scan(&k, &slot, &s); err != nil {
				return err
			}
			if slot >= 0 && slot < int64(points) {
				out.Classes[at[k]].Spark[slot] = s / float64(out.Step)
			}
			return nil
		})
	return wrap("draw the sparks", err)
}

// steps are the widths that points may have, in seconds.
var steps = []int64{60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 7 * 86400}

// minutesUpTo is the length of the longest range whose points may be finer than an hour: what is longer reads the table of hours.
const minutesUpTo = 3 * 86400

func (a asker) step(r Range, points int) int64 {
	for _, s := range steps {
		if s < hour && (r.To-r.From > minutesUpTo || r.From < a.pruned.Load()) {
			continue
		}
		if (r.To-r.From+s-1)/s <= int64(points) {
			return s
		}
	}
	return steps[len(steps)-1]
}

// buckets returns the latency buckets by class and slot.
func (a asker) buckets(ctx context.Context, list []piece, f filter, slot string) (map[int64]map[int64][]Bucket, error) {
	out := map[int64]map[int64][]Bucket{}
	for _, p := range list {
		err := a.b.query(ctx, a.b.latency("risso_"+p.table, f.where(p.Range), slot), nil, func(scan func(...any) error) error {
			var k, s, number, calls int64
			if err := scan(&k, &s, &number, &calls); err != nil {
				return err
			}
			if out[k] == nil {
				out[k] = map[int64][]Bucket{}
			}
			if number >= 0 && number <= math.MaxInt16 {
				out[k][s] = append(out[k][s], Bucket{int16(number), calls})
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read the latencies: %w", err)
		}
	}
	for _, slots := range out {
		for s, l := range slots {
			slots[s] = joinBuckets(l)
		}
	}
	return out, nil
}

// joinBuckets sorts buckets and adds up equal ones.
func joinBuckets(l []Bucket) []Bucket {
	sort.Slice(l, func(i, j int) bool { return l[i].Number < l[j].Number })
	out := l[:0]
	for _, b := range l {
		if n := len(out); n > 0 && out[n-1].Number == b.Number {
			out[n-1].Calls += b.Calls
			continue
		}
		out = append(out, b)
	}
	return out
}

// names reports what classes are.
func (a asker) names(ctx context.Context, keys []int64, instances []string) (map[int64]Class, error) {
	out := make(map[int64]Class, len(keys))
	err := a.b.query(ctx, "SELECT class, max(id), max(pt_id), max(fingerprint), max(verb), max(tables) FROM risso_classes WHERE class IN ("+numbers(keys)+") GROUP BY class", nil,
		func(scan func(...any) error) error {
			var c Class
			var k int64
			if err := scan(&k, &c.ID, &c.PtID, &c.Fingerprint, &c.Verb, &c.Tables); err != nil {
				return err
			}
			out[k] = c
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("name the classes: %w", err)
	}
	where := "class IN (" + numbers(keys) + ")"
	if len(instances) > 0 {
		where += " AND instance IN (" + quoteList(instances) + ")"
	}
	err = a.b.query(ctx, "SELECT class, toInt64(min(first_seen)), toInt64(max(last_seen)) FROM risso_seen WHERE "+where+" GROUP BY class", nil, func(scan func(...any) error) error {
		var k, first, last int64
		if err := scan(&k, &first, &last); err != nil {
			return err
		}
		c := out[k]
		c.FirstSeen, c.LastSeen = first, last
		out[k] = c
		return nil
	})
	return out, wrap("tell when the classes were seen", err)
}

// ask passes each row of a statement's answer to row.
func ask(ctx context.Context, db *sql.DB, statement string, args []any, row func(scan func(dest ...any) error) error) error {
	rows, err := db.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
