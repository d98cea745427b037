// Package live makes a digest.Profile of a running server: performance_schema's table of digests is read twice, and the
// difference is what happened meanwhile; or once, for all since the server began to count.
//
// The table has sums per schema and class. So there are no users, no standard deviations, and no percentiles but those
// of MySQL 8's histograms since the server began to count; what is not known is NaN. Risso's own statements are left out.
package live

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// Options say what of a server makes the profile.
type Options struct {
	For     time.Duration // how long to watch; 0: since the server began to count
	GroupBy string        // fingerprint (default), db or tables
	OrderBy string        // as digest.Options.OrderBy, but for min, p95, median and stddev
	Samples int           // of each class; 0: none
	Redact  bool
}

// Off says that the server does not count statements.
type Off struct{ Why, Remedy string }

// Error is why; Remedy is the statement or setting that mends it.
func (o *Off) Error() string { return o.Why }

// ErrOption is what errors about Options wrap.
var ErrOption = errors.New("wrong option")

// detailed is how many classes have samples and percentiles read: each costs the server some milliseconds.
const detailed = 200

// quantileError is the relative error of percentiles: half a bucket of MySQL's histogram, of which 50 make a power of ten.
var quantileError = math.Pow(10, 0.01) - 1

type key struct{ schema, id string }

// Reader reads one server.
type Reader struct {
	conn    *mysql.Conn
	traffic *mysql.Traffic
	o       Options
	figure  func(*digest.Class) float64
	base    map[key]mysql.Digest
	notes   []string
	lost    int64
}

// New checks the options. traffic is what conn counts into: it knows Risso's own statements.
func New(conn *mysql.Conn, traffic *mysql.Traffic, o Options) (*Reader, error) {
	r := &Reader{conn: conn, traffic: traffic, o: o}
	switch o.GroupBy {
	case "":
		r.o.GroupBy = "fingerprint"
	case "fingerprint", "db", "tables":
	default:
		return nil, fmt.Errorf("%w: a server's digests can be grouped by fingerprint, db or tables, not by %q", ErrOption, o.GroupBy)
	}
	if o.OrderBy == "" {
		r.o.OrderBy = "Query_time:sum"
	}
	name, what, _ := strings.Cut(r.o.OrderBy, ":")
	pick := map[string]func(digest.Metric) float64{"sum": func(m digest.Metric) float64 { return m.Sum }, "max": func(m digest.Metric) float64 { return m.Max }, "avg": func(m digest.Metric) float64 { return m.Avg }}[what]
	switch {
	case r.o.OrderBy == "calls":
		r.figure = func(c *digest.Class) float64 { return float64(c.Calls) }
	case pick != nil && (slices.ContainsFunc(names, func(n named) bool { return n.name == name }) || name == "Query_time" || name == "Lock_time"):
		r.figure = func(c *digest.Class) float64 { v := pick(c.Metric(name)); return orZero(v) }
	default:
		return nil, fmt.Errorf("%w: cannot order a server's digests by %q; calls, Query_time:sum, :max and :avg, and Rows_examined:sum and the like can be had", ErrOption, r.o.OrderBy)
	}
	return r, nil
}

func orZero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// Notes are what a reader of the profile has to know.
func (r *Reader) Notes() []string { return r.notes }

// Read watches as long as it was told and gives the profile. A server that counts nothing is an error of type *Off.
func (r *Reader) Read(ctx context.Context) (*digest.Profile, error) {
	yes, why, remedy, err := r.conn.CountsStatements(ctx)
	if err != nil {
		return nil, err
	}
	if !yes {
		return nil, &Off{why, remedy}
	}
	began := time.Now()
	if _, err := r.conn.ServerNow(ctx); err != nil { // times in UTC
		return nil, err
	}
	lost := int64(0)
	if r.o.For > 0 {
		r.base = map[key]mysql.Digest{}
		if lost, _, err = r.conn.DigestsLost(ctx); err != nil {
			return nil, err
		}
		if err := r.conn.Digests(ctx, "", func(d *mysql.Digest) error { r.base[key{d.Schema, d.ID}] = *d; return nil }); err != nil {
			return nil, err
		}
		began = time.Now()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(r.o.For):
		}
	}
	rows, first, err := r.changed(ctx)
	if err != nil {
		return nil, err
	}
	end := time.Now()
	now, size, err := r.conn.DigestsLost(ctx)
	if err != nil {
		return nil, err
	}
	r.lost = now - lost
	p, err := r.profile(ctx, rows)
	if err != nil {
		return nil, err
	}
	if p.From, p.To = began.UTC(), end.UTC(); r.o.For == 0 {
		p.From = first
	}
	if r.lost > 0 {
		r.notes = append(r.notes, fmt.Sprintf("%d statements found no room in the server's table of %d digests. A larger performance_schema_digests_size (in the option file) keeps them apart.", r.lost, size))
	}
	return p, nil
}

// changed reads the digests that were called meanwhile, with what was added to each; first is when counting began.
func (r *Reader) changed(ctx context.Context) (rows []mysql.Digest, first time.Time, err error) {
	err = r.conn.Digests(ctx, "", func(d *mysql.Digest) error {
		if t, err := time.ParseInLocation("2006-01-02 15:04:05.999999", d.First, time.UTC); err == nil && (first.IsZero() || t.Before(first)) {
			first = t
		}
		if before, ok := r.base[key{d.Schema, d.ID}]; ok && before.First == d.First && before.Calls <= d.Calls {
			subtract(d, before)
		}
		if d.Calls > 0 {
			rows = append(rows, *d)
		}
		return nil
	})
	return rows, first, err
}

// subtract leaves what was added. The slowest call is known only when it is slower than all before.
func subtract(d *mysql.Digest, b mysql.Digest) {
	d.Calls -= b.Calls
	d.Seconds = max(0, d.Seconds-b.Seconds)
	d.LockSeconds = max(0, d.LockSeconds-b.LockSeconds)
	d.Errors -= b.Errors
	d.Warnings -= b.Warnings
	d.RowsAffected -= b.RowsAffected
	d.RowsSent -= b.RowsSent
	d.RowsExamined -= b.RowsExamined
	d.TmpDiskTables -= b.TmpDiskTables
	d.TmpTables -= b.TmpTables
	d.SortRows -= b.SortRows
	d.NoIndex -= b.NoIndex
	if d.MaxSeconds <= b.MaxSeconds {
		d.MaxSeconds = math.NaN()
	}
}

type named struct {
	name string
	of   func(*mysql.Digest) int64
}

// names are the sums of a digest by the slow log's names.
var names = []named{
	{"Rows_sent", func(d *mysql.Digest) int64 { return d.RowsSent }}, {"Rows_examined", func(d *mysql.Digest) int64 { return d.RowsExamined }},
	{"Rows_affected", func(d *mysql.Digest) int64 { return d.RowsAffected }}, {"Tmp_tables", func(d *mysql.Digest) int64 { return d.TmpTables }},
	{"Tmp_disk_tables", func(d *mysql.Digest) int64 { return d.TmpDiskTables }}, {"Sort_rows", func(d *mysql.Digest) int64 { return d.SortRows }},
	{"No_index_used", func(d *mysql.Digest) int64 { return d.NoIndex }}, {"Errors", func(d *mysql.Digest) int64 { return d.Errors }}, {"Warnings", func(d *mysql.Digest) int64 { return d.Warnings }},
}

// group is a class with the rows of the server's table that it is made of.
type group struct {
	digest.Class
	rows []key
	dbs  map[string]int64
}

// profile puts rows into classes.
func (r *Reader) profile(ctx context.Context, rows []mysql.Digest) (*digest.Profile, error) {
	sort.Slice(rows, func(i, j int) bool { return rows[i].Seconds > rows[j].Seconds })
	texts, err := r.texts(ctx, rows)
	if err != nil {
		return nil, err
	}
	samples, err := r.samples(ctx, rows)
	if err != nil {
		return nil, err
	}
	if r.keepsLatency() && len(rows) > 0 { // so that this statement is known as Risso's own, too
		if _, err := r.conn.Latency(ctx, rows[0].Schema, rows[0].ID); err != nil {
			return nil, err
		}
	}
	own := r.own()
	p := &digest.Profile{GroupBy: r.o.GroupBy, OrderBy: r.o.OrderBy, Skipped: map[string]int64{}}
	groups := map[string]*group{}
	all := &group{}
	for i := range rows {
		d := &rows[i]
		name, text := "(no room in the server's table of digests)", texts[key{d.Schema, d.ID}]
		if d.ID != "" {
			name = string(sqltext.AppendDigestText(nil, []byte(text)))
		}
		if own[name] {
			p.Skipped["Risso's own statements"] += d.Calls
			continue
		}
		p.Calls += d.Calls
		g := r.groupOf(groups, d, name, text)
		g.add(d)
		all.add(d)
	}
	p.Metrics, p.Unique = all.finish().Metrics, len(groups)
	list := make([]*group, 0, len(groups))
	total := 0.0
	for _, g := range groups {
		g.finish()
		total += r.figure(&g.Class)
		list = append(list, g)
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := r.figure(&list[i].Class), r.figure(&list[j].Class)
		return a > b || a == b && list[i].ID < list[j].ID
	})
	for _, g := range list {
		if total > 0 {
			g.Share = r.figure(&g.Class) / total
		}
	}
	for _, g := range list[:min(len(list), detailed)] {
		for _, k := range g.rows {
			for _, s := range samples[k] {
				g.offer(s, r.o.Samples, r.o.Redact)
			}
		}
		if r.keepsLatency() {
			if err := r.latency(ctx, g); err != nil {
				return nil, err
			}
		}
	}
	for _, g := range list {
		p.Classes = append(p.Classes, g.Class)
	}
	if r.keepsLatency() {
		p.QuantileError = quantileError
	}
	version := fmt.Sprintf("%s %s", r.conn.Server.Flavour, r.conn.Server.Version)
	p.Sources = []digest.SourceInfo{{Name: "performance_schema", Format: "digests", Server: version, Events: p.Calls}}
	return p, nil
}

func (r *Reader) texts(ctx context.Context, rows []mysql.Digest) (map[key]string, error) {
	var ids []string
	for _, d := range rows {
		if d.ID != "" {
			ids = append(ids, d.ID)
		}
	}
	slices.Sort(ids)
	out := map[key]string{}
	err := r.conn.DigestTexts(ctx, slices.Compact(ids), func(schema, id, text string) error {
		out[key{schema, id}] = text
		return nil
	})
	return out, err
}

// own are the classes of the statements that Risso sent.
func (r *Reader) own() map[string]bool {
	out := map[string]bool{}
	var f sqltext.Fingerprinter
	for _, s := range r.traffic.Texts() {
		out[string(sqltext.AppendPlain(nil, f.Append(nil, []byte(s))))] = true
	}
	return out
}

func (r *Reader) groupOf(groups map[string]*group, d *mysql.Digest, fingerprint, text string) *group {
	tables := sqltext.Tables([]byte(text))
	name := fingerprint
	switch r.o.GroupBy {
	case "db":
		name = d.Schema
	case "tables":
		var names []string
		for _, t := range tables {
			n := t.Name
			if t.Schema != "" {
				n = t.Schema + "." + n
			}
			names = append(names, n)
		}
		name = strings.Join(names, ", ")
	}
	g := groups[name]
	if g == nil {
		g = &group{dbs: map[string]int64{}}
		g.Class = digest.Class{ID: sqltext.ClassID([]byte(name)), Group: name, Fingerprint: fingerprint, Verb: sqltext.Verb([]byte(text)), Tables: tables,
			VarianceToMean: math.NaN(), Apdex: math.NaN()}
		groups[name] = g
	}
	return g
}

// add adds a row of the server's table.
func (g *group) add(d *mysql.Digest) {
	g.Calls += d.Calls
	if g.rows = append(g.rows, key{d.Schema, d.ID}); g.dbs != nil {
		g.dbs[d.Schema] += d.Calls
	}
	g.metric("Query_time", "s", d.Calls, d.Seconds, d.MaxSeconds)
	g.metric("Lock_time", "s", d.Calls, d.LockSeconds, math.NaN())
	for _, n := range names {
		g.metric(n.name, "", d.Calls, float64(n.of(d)), math.NaN())
	}
}

func (g *group) metric(name, unit string, calls int64, sum, longest float64) {
	for i := range g.Metrics {
		if m := &g.Metrics[i]; m.Name == name {
			m.Count += calls
			m.Sum += sum
			if !(m.Max > longest) { // NaN: not known, and then no longer known
				m.Max = longest
			}
			return
		}
	}
	nan := math.NaN()
	g.Metrics = append(g.Metrics, digest.Metric{Name: name, Unit: unit, Count: calls, Sum: sum, Min: nan, Max: longest, P95: nan, Median: nan, Stddev: nan})
}

// finish works out averages and who ran it.
func (g *group) finish() *group {
	for i := range g.Metrics {
		m := &g.Metrics[i]
		if m.Avg = m.Sum / float64(m.Count); m.Sum == 0 {
			m.Min, m.Max, m.P95, m.Median, m.Stddev = 0, 0, 0, 0, 0
		} else if m.Count == 1 {
			m.Min, m.Max, m.P95, m.Median, m.Stddev = m.Sum, m.Sum, m.Sum, m.Sum, 0
		}
	}
	v := digest.Values{Name: "db", Distinct: len(g.dbs)}
	for db, n := range g.dbs {
		v.Top = append(v.Top, digest.ValueCount{Value: db, Calls: n})
	}
	sort.Slice(v.Top, func(i, j int) bool {
		a, b := v.Top[i], v.Top[j]
		return a.Calls > b.Calls || a.Calls == b.Calls && a.Value < b.Value
	})
	for len(v.Top) > 20 {
		v.Rest += v.Top[len(v.Top)-1].Calls
		v.Top = v.Top[:len(v.Top)-1]
	}
	if v.Distinct > 0 {
		g.Values = []digest.Values{v}
	}
	return g
}

// keepsLatency says whether percentiles can be had: for all since counting began, where the server keeps histograms.
func (r *Reader) keepsLatency() bool { return r.o.For == 0 && r.conn.Server.KeepsLatency() }

// samples reads statements of the heaviest rows, which come first.
func (r *Reader) samples(ctx context.Context, rows []mysql.Digest) (map[key][]mysql.StatementSample, error) {
	out := map[key][]mysql.StatementSample{}
	if r.o.Samples <= 0 {
		return out, nil
	}
	var ids []string
	for _, d := range rows[:min(len(rows), 2*detailed)] {
		if d.ID != "" {
			ids = append(ids, d.ID)
		}
	}
	err := r.conn.Samples(ctx, ids, func(s mysql.StatementSample) error {
		k := key{s.Schema, s.Digest}
		out[k] = append(out[k], s)
		return nil
	})
	if err != nil && mysql.ClassOf(err) != mysql.ClassDropped {
		r.notes = append(r.notes, "There are no samples: "+err.Error())
		err = nil
	}
	return out, err
}

// offer keeps the slowest samples.
func (g *group) offer(s mysql.StatementSample, most int, redact bool) {
	query := s.Text
	if redact || sqltext.SetsPassword([]byte(query)) {
		query = string(sqltext.Redact(nil, []byte(query)))
	}
	x := digest.Sample{Query: query, DB: s.Schema, User: s.User, Host: s.Host, Seconds: s.Seconds}
	if s.Time > 0 {
		x.Time = time.Unix(s.Time, 0).UTC()
	}
	if s.Cut {
		x.Cut = 1 // how much is not told
	}
	for _, have := range g.Samples {
		if have.Query == x.Query && have.DB == x.DB {
			return
		}
	}
	g.Samples = append(g.Samples, x)
	sort.SliceStable(g.Samples, func(i, j int) bool { return g.Samples[i].Seconds > g.Samples[j].Seconds })
	g.Samples = g.Samples[:min(len(g.Samples), most)]
}

// latency fills in percentiles and the histogram from MySQL's buckets, of which n ends at 10 µs · 10^(n/50).
func (r *Reader) latency(ctx context.Context, g *group) error {
	counts := map[int]int64{}
	total := int64(0)
	for _, k := range g.rows {
		list, err := r.conn.Latency(ctx, k.schema, k.id)
		if err != nil {
			return err
		}
		for _, b := range list {
			counts[b.Number] += b.Calls
			total += b.Calls
		}
	}
	if total == 0 {
		return nil
	}
	var numbers []int
	for n := range counts {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for i := range g.Metrics {
		if m := &g.Metrics[i]; m.Name == "Query_time" && m.Count > 1 {
			m.P95, m.Median = quantile(numbers, counts, total, 0.95), quantile(numbers, counts, total, 0.5)
		}
	}
	for _, n := range numbers {
		// The bucket's lower end decides: its upper end may be the bound itself.
		g.Histogram[min(max(0, (n+49)/50), 7)] += counts[n]
	}
	return nil
}

// quantile is the middle of the bucket that holds it.
func quantile(numbers []int, counts map[int]int64, total int64, q float64) float64 {
	sum := int64(0)
	for _, n := range numbers {
		if sum += counts[n]; float64(sum) >= q*float64(total) {
			return 1e-5 * math.Pow(10, (float64(n)-0.5)/50)
		}
	}
	return math.NaN()
}
