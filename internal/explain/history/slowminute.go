package history

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/sqltext"
	"github.com/rissodb/risso/internal/store/events"
)

// Bounds of what one minute of a slow log may take of memory.
const (
	maxSlowRows    = 5000     // of class, schema and user; all further go into one row
	maxSampleBytes = 8 << 20  // of samples and plans in hand
	maxPrints      = 20000    // fingerprints that are known by number; beyond, numbering starts over
	maxPrintBytes  = 16 << 20 // and their length
	maxExplain     = 64 << 10 // of one plan
)

// slowClass is a class of statements.
type slowClass struct {
	identity
	ptID   string
	stored int64 // when its last sighting was noted
}

// slowKey is what a row of a minute is of.
type slowKey struct {
	class        *slowClass
	schema, user string
}

// slowRow is what it cost.
type slowRow struct {
	cost        events.Row
	latency     map[int16]int64
	sample      slowSample
	explain     []byte // of the newest that has one
	explainedAt int64  // when that was, unix seconds
}

type slowSample struct {
	text       []byte
	cut        bool
	seconds    float64
	time       int64
	user, host string
}

// slowMinute adds events up.
type slowMinute struct {
	rows  map[slowKey]*slowRow
	bytes int // of samples and plans
	calls int64

	classify sqltext.Classifier
	classes  []*slowClass // by the classifier's numbers
	prints   int
	other    *slowClass
	found    []events.Class // to be noted in the store
	instance string
}

// add counts an event at a time in unix seconds, in the minute at.
func (m *slowMinute) add(ev *digest.Event, at, time int64) {
	if isOwnText(ev.Query) {
		return
	}
	c := m.classOf(ev.Query)
	if at-c.stored >= classEvery || at < c.stored {
		m.note(c, at)
	}
	m.calls++
	r := m.row(c, ev, at)
	costOf(&r.cost, ev)
	r.latency[bucketOf(ev.QueryTime)]++
	if s := &r.sample; len(ev.Query) > 0 && (s.text == nil || ev.QueryTime > s.seconds) && (len(s.text) >= len(ev.Query) || m.bytes < maxSampleBytes) {
		text := ev.Query[:min(len(ev.Query), maxSampleText+1)]
		m.bytes += len(text) - len(s.text)
		*s = slowSample{text: append(s.text[:0], text...), cut: len(ev.Query) > maxSampleText, seconds: ev.QueryTime, time: time, user: string(ev.User), host: string(ev.Host)}
	}
	if n := len(ev.Explain); n > 0 && n <= maxExplain && (len(r.explain) >= n || m.bytes < maxSampleBytes) {
		m.bytes += n - len(r.explain)
		r.explain, r.explainedAt = append(r.explain[:0], ev.Explain...), time
	}
}

// isOwnText recognizes Risso's own statements by their mark. They stay out of the slow log by themselves, unless a server counts
// otherwise than its manual says.
func isOwnText(q []byte) bool {
	q = q[:min(len(q), 300)]
	i := bytes.Index(q, []byte("/* risso"))
	return i >= 0 && i+8 < len(q) && (q[i+8] == ':' || q[i+8] == ' ')
}

// classOf is the class of a statement.
func (m *slowMinute) classOf(query []byte) *slowClass {
	n := m.classify.Classify(query)
	if n < len(m.classes) {
		return m.classes[n]
	}
	fp := m.classify.Fingerprint(n)
	if m.prints += len(fp); n >= maxPrints || m.prints > maxPrintBytes {
		m.classify, m.classes, m.prints = sqltext.Classifier{}, nil, 0
	}
	plain := sqltext.AppendPlain(nil, []byte(fp))
	c := &slowClass{identity: identity{id: sqltext.ClassID(plain), fingerprint: strings.ToValidUTF8(string(plain), "\uFFFD"), verb: sqltext.Verb(query), tables: strings.ToValidUTF8(tablesOf(query), "\uFFFD")}, ptID: sqltext.PtID(string(query))}
	if n == len(m.classes) {
		m.classes = append(m.classes, c)
	}
	return c
}

// note has the class noted in the store.
func (m *slowMinute) note(c *slowClass, at int64) {
	e := events.Class{Instance: m.instance, ID: c.id, FirstSeen: at, LastSeen: at}
	if c.stored == 0 {
		e.PtID, e.Fingerprint, e.Verb, e.Tables = c.ptID, c.fingerprint, c.verb, c.tables
	}
	c.stored = at
	m.found = append(m.found, e)
}

// row is the row of an event.
func (m *slowMinute) row(c *slowClass, ev *digest.Event, at int64) *slowRow {
	if r, ok := m.rows[slowKey{c, string(ev.DB), string(ev.User)}]; ok {
		return r
	}
	k := slowKey{c, strings.ToValidUTF8(string(ev.DB), "\uFFFD"), strings.ToValidUTF8(string(ev.User), "\uFFFD")}
	if len(m.rows) >= maxSlowRows {
		if m.other == nil {
			m.other = &slowClass{identity: identity{id: otherID, fingerprint: "(all other statements: more than fit into one minute)", verb: "OTHER"}}
			m.note(m.other, at)
		}
		k = slowKey{class: m.other}
	}
	r := m.rows[k]
	if r == nil {
		if m.rows == nil {
			m.rows = map[slowKey]*slowRow{}
		}
		r = &slowRow{latency: map[int16]int64{}}
		m.rows[k] = r
	}
	return r
}

// costOf adds what an event cost. Attributes have the names of MariaDB, Percona Server, and MySQL's log_slow_extra.
func costOf(r *events.Row, ev *digest.Event) {
	r.Calls++
	r.Seconds += ev.QueryTime
	r.LockSeconds += ev.LockTime
	r.MaxSeconds = max(r.MaxSeconds, ev.QueryTime)
	var tables, disk, tableFlag, diskFlag int64
	noIndex := int64(0)
	for i := range ev.Attrs {
		a := &ev.Attrs[i]
		n := int64(min(a.Num, math.MaxInt64/4))
		switch a.Name {
		case "Rows_sent":
			r.RowsSent += n
		case "Rows_examined":
			r.RowsExamined += n
		case "Rows_affected":
			r.RowsAffected += n
		case "Tmp_tables", "Created_tmp_tables":
			tables = n
		case "Tmp_disk_tables", "Created_tmp_disk_tables":
			disk = n
		case "Tmp_table":
			tableFlag = n
		case "Tmp_table_on_disk":
			diskFlag = n
		case "Full_scan", "Full_join":
			noIndex = max(noIndex, n)
		case "Sort_rows":
			r.SortRows += n
		case "Errno", "Last_errno":
			if a.Kind == digest.AttrText && string(a.Text) != "0" || n != 0 {
				r.Errors++
			}
		}
	}
	r.TmpTables += max(tables, tableFlag)
	r.TmpDiskTables += max(disk, diskFlag)
	r.NoIndex += noIndex
}

// bucketOf is the bucket of MySQL's histograms that a latency in seconds falls into.
func bucketOf(seconds float64) int16 {
	if seconds < 10e-6 {
		return 0
	}
	// Half a nanosecond more, so that what the log wrote as a bucket's bound does not fall below it by rounding.
	return int16(min(math.Floor(50*math.Log10((seconds+5e-10)/10e-6))+1, events.Buckets-1))
}

// take returns what was added up, the classes heaviest first, and starts over.
func (m *slowMinute) take() ([]events.Row, []slowTaken) {
	rows := m.rowsNow()
	var list []slowTaken
	for k, r := range m.rows {
		if k.class != m.other {
			list = append(list, slowTaken{sampleKey{k.class.id, k.schema}, r.cost.Seconds, r, k.class.fingerprint})
		}
	}
	m.rows, m.bytes, m.calls = nil, 0, 0
	return rows, heaviestOf(list)
}

// rowsNow is what was added up until now, as it is stored.
func (m *slowMinute) rowsNow() []events.Row {
	rows := make([]events.Row, 0, len(m.rows))
	for k, r := range m.rows {
		c := r.cost
		c.Class, c.Schema, c.User = k.class.id, k.schema, k.user
		for b, n := range r.latency {
			c.Latency = append(c.Latency, events.Bucket{Number: b, Calls: n})
		}
		slices.SortFunc(c.Latency, func(a, b events.Bucket) int { return cmp.Compare(a.Number, b.Number) })
		rows = append(rows, c)
	}
	return join(rows)
}

// slowTaken is what a class did in a schema in a minute, with its slowest statement and its newest plan.
type slowTaken struct {
	sampleKey
	seconds     float64
	row         *slowRow
	fingerprint string
}

// heaviestOf joins what several users did, and puts the heaviest first.
func heaviestOf(list []slowTaken) []slowTaken {
	at := map[sampleKey]int{}
	out := list[:0]
	for _, t := range list {
		i, ok := at[t.sampleKey]
		if !ok {
			at[t.sampleKey] = len(out)
			out = append(out, t)
			continue
		}
		o := &out[i]
		o.seconds += t.seconds
		if t.row.sample.seconds > o.row.sample.seconds {
			o.row.sample, t.row.sample = t.row.sample, o.row.sample
		}
		if t.row.explainedAt > o.row.explainedAt {
			o.row.explain, o.row.explainedAt = t.row.explain, t.row.explainedAt
		}
	}
	slices.SortFunc(out, func(a, b slowTaken) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.class, b.class), cmp.Compare(a.schema, b.schema))
	})
	return out
}
