// Package live makes a digest.Profile of a running server: performance_schema's table of digests is read twice, and the
// difference is what happened in between; or once, for everything since the server began to count.
//
// The table has sums per schema and class, so there are no users and no standard deviations, and percentiles only if the
// server keeps histograms (MySQL 8), see latency.go; unknown values are NaN. Risso's own statements are left out.
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

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/explain/prepared"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sqltext"
)

// Options say what of a server makes the profile.
type Options struct {
	For     time.Duration // how long to watch; 0: since the server began to count
	GroupBy string        // fingerprint (default), db or tables
	OrderBy string        // as digest.Options.OrderBy, except min, p95, median and stddev
	Samples int           // of each class; 0: none
	// SampleBytes is how many bytes of a sample are kept; 0 or less: all that the server keeps.
	SampleBytes int
	Redact      bool
	Own         bool // Risso's own statements count, too
	NoLatency   bool // leave out percentiles and histograms
	// Reconnect opens another connection when the server dropped the one it had while it was watched; nil: that is an error.
	Reconnect func(context.Context) (*mysql.Conn, error)
}

// ErrOption is what errors about Options wrap.
var ErrOption = errors.New("wrong option")

// detailed is how many classes have samples and percentiles read: each costs the server some milliseconds.
const detailed = 200

type key struct{ schema, id string }

// Reader reads one server.
type Reader struct {
	conn    *mysql.Conn
	traffic *mysql.Traffic
	o       Options
	figure  func(*digest.Class) float64
	base    map[key]read.Digest
	buckets map[key]map[int]int64 // of the first reading
	anew    map[key]bool          // of base: what was reset in the meantime
	notes   []string
	lost    int64
	wait    func(context.Context) error // until the window is over

	prepared prepared.Counters
	executed []prepared.Executions // executions of prepared statements that are in no digest
}

// New checks the options. traffic is what conn counts into: it knows Risso's own statements.
func New(conn *mysql.Conn, traffic *mysql.Traffic, o Options) (*Reader, error) {
	r := &Reader{conn: conn, traffic: traffic, o: o}
	r.wait = func(ctx context.Context) error {
		timer := time.NewTimer(o.For)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		}
	}
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
		return nil, fmt.Errorf("%w: cannot order a server's digests by %q; calls, Query_time:sum, :max and :avg, Rows_examined:sum and similar are possible", ErrOption, r.o.OrderBy)
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

// Read watches for the given time and returns the profile. That a server counts nothing is an error with a remedy.
func (r *Reader) Read(ctx context.Context) (*digest.Profile, error) {
	off, err := read.CountsStatements(ctx, r.conn)
	if err != nil {
		return nil, err
	}
	if off != nil {
		return nil, fleet.WithRemedy(errors.New(off.Why), off.Remedy)
	}
	began := time.Now()
	clock, err := read.ServerNow(ctx, r.conn) // makes times come in UTC, too
	if err != nil {
		return nil, err
	}
	if err := r.prepared.Connected(ctx, r.conn); err != nil {
		return nil, err
	}
	lost := int64(0)
	if r.prepared.All(); r.o.For > 0 {
		if lost, err = r.begin(ctx, clock); err != nil {
			return nil, err
		}
		began = time.Now()
		if err = r.wait(ctx); err != nil {
			return nil, err
		}
	}
	rows, first, err := r.changed(ctx)
	if err != nil && mysql.Lost(err) && r.o.Reconnect != nil && r.o.For > 0 {
		if err = r.reconnect(ctx); err == nil {
			defer r.conn.Close() // the caller closes the one it made
			rows, first, err = r.changed(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	end := time.Now()
	now, size, err := read.DigestsLost(ctx, r.conn)
	if err != nil {
		return nil, err
	}
	if r.lost = now - lost; r.lost < 0 { // the server was restarted
		r.lost = now
	}
	p, err := r.profile(ctx, rows)
	if err != nil {
		return nil, err
	}
	if p.From, p.To = began.UTC(), end.UTC(); r.o.For == 0 {
		p.From = first
	}
	if r.lost > 0 {
		r.notes = append(r.notes, fmt.Sprintf("%s did not fit into the server's table of %s. A larger performance_schema_digests_size (in the option file) keeps them apart.", digits.Counted(r.lost, "statement"), digits.Counted(size, "digest")))
	}
	r.notePrepared()
	if p.Calls == 0 {
		r.notes = append(r.notes, "No statements of others were counted: the server was idle, its table of digests was emptied, or setup_actors and setup_instruments exclude what ran.")
	}
	if n := len(r.anew); n > 0 {
		r.notes = append(r.notes, fmt.Sprintf("%d of %s of the server's table of digests were removed or reset in the meantime: the server was restarted, or the table emptied. What they had counted until then is not known.", n, digits.Counted(len(r.base), "row")))
	}
	return p, nil
}

// begin takes the first of two readings.
func (r *Reader) begin(ctx context.Context, clock string) (lost int64, err error) {
	r.base = map[key]read.Digest{}
	if lost, _, err = read.DigestsLost(ctx, r.conn); err != nil {
		return 0, err
	}
	if err := read.Digests(ctx, r.conn, "", func(d *read.Digest) error { r.base[key{d.Schema, d.ID}] = *d; return nil }); err != nil {
		return 0, err
	}
	if err := r.firstBuckets(ctx, clock); err != nil {
		return 0, err
	}
	r.prepared.Forget()
	_, err = r.executions(ctx)
	return lost, err
}

// reconnect waits for a server that dropped the connection.
func (r *Reader) reconnect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reconnectFor)
	defer cancel()
	for {
		conn, err := r.o.Reconnect(ctx)
		if err == nil {
			r.conn = conn
			if _, err = read.ServerNow(ctx, conn); err != nil {
				return err
			}
			return r.prepared.Connected(ctx, conn)
		}
		if delay.For(ctx, reconnectFor/50) != nil {
			return err
		}
	}
}

// reconnectFor is how long a server that dropped the connection may take to answer again.
const reconnectFor = 25 * time.Second

// changed reads the digests that were called in the meantime, with what was added to each; first is when counting began.
func (r *Reader) changed(ctx context.Context) (rows []read.Digest, first time.Time, err error) {
	r.anew = map[key]bool{}
	for k := range r.base {
		r.anew[k] = true
	}
	err = read.Digests(ctx, r.conn, "", func(d *read.Digest) error {
		if t, err := time.ParseInLocation(clockForm, d.First, time.UTC); err == nil && (first.IsZero() || t.Before(first)) {
			first = t
		}
		if before, ok := r.base[key{d.Schema, d.ID}]; ok && before.First == d.First && !d.Anew(before.Cost) {
			if d.Cost = d.Since(before.Cost); d.MaxSeconds == 0 {
				d.MaxSeconds = math.NaN()
			}
			delete(r.anew, key{d.Schema, d.ID})
		}
		if d.Calls > 0 {
			rows = append(rows, *d)
		}
		return nil
	})
	if err != nil {
		return nil, first, err
	}
	r.executed, err = r.executions(ctx)
	return rows, first, err
}

type named struct {
	name string
	of   func(*fleet.Cost) int64
}

// names are the sums of a digest by the slow log's names.
var names = []named{
	{"Rows_sent", func(c *fleet.Cost) int64 { return c.RowsSent }}, {"Rows_examined", func(c *fleet.Cost) int64 { return c.RowsExamined }},
	{"Rows_affected", func(c *fleet.Cost) int64 { return c.RowsAffected }}, {"Tmp_tables", func(c *fleet.Cost) int64 { return c.TmpTables }},
	{"Tmp_disk_tables", func(c *fleet.Cost) int64 { return c.TmpDiskTables }}, {"Sort_rows", func(c *fleet.Cost) int64 { return c.SortRows }},
	{"No_index_used", func(c *fleet.Cost) int64 { return c.NoIndex }}, {"Errors", func(c *fleet.Cost) int64 { return c.Errors }}, {"Warnings", func(c *fleet.Cost) int64 { return c.Warnings }},
}

// group is a class with the rows of the server's table that it is made of.
type group struct {
	digest.Class
	rows []key
	dbs  map[string]int64
	pts  []string // pt-query-digest's IDs of Samples; empty if one is not whole

	prepared []read.StatementSample // as they were prepared, where executions count that are in no digest
}

// What found no room in the server's table is one class. Its ID is the same in the history that serve keeps.
const (
	otherID = "00000000000000000000000000000000"
	otherFP = "(no room in the server's table of digests)"
)

// profile puts rows into classes.
func (r *Reader) profile(ctx context.Context, rows []read.Digest) (*digest.Profile, error) {
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
		if _, err := read.Latency(ctx, r.conn, rows[0].Schema, rows[0].ID); err != nil {
			return nil, err
		}
	}
	own := r.own(rows, texts, samples)
	p := &digest.Profile{GroupBy: r.o.GroupBy, OrderBy: r.o.OrderBy, Skipped: map[string]int64{}}
	groups := map[string]*group{}
	all := &group{}
	for i := range rows {
		d := &rows[i]
		k := key{d.Schema, d.ID}
		name := plain(d.ID, texts[k])
		if own[name] {
			p.Skipped[digest.SkippedOwn] += d.Calls
			continue
		}
		p.Calls += d.Calls
		g := r.groupOf(groups, d, name, texts[k])
		g.add(d)
		all.add(d)
	}
	r.addPrepared(p, groups, all, own)
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
				g.offer(s, r.o)
			}
		}
		for _, s := range g.prepared {
			g.offer(s, r.o)
		}
		g.names(r.o.GroupBy)
	}
	if err := r.latencies(ctx, p, list); err != nil {
		return nil, err
	}
	for _, g := range list {
		p.Classes = append(p.Classes, g.Class)
	}
	version := fmt.Sprintf("%s %s", r.conn.Server.Flavour, r.conn.Server.Version)
	p.Sources = []digest.SourceInfo{{Name: "performance_schema", Format: "digests", Server: version, Events: p.Calls}}
	return p, nil
}

func (r *Reader) texts(ctx context.Context, rows []read.Digest) (map[key]string, error) {
	var ids []string
	for _, d := range rows {
		if d.ID != "" {
			ids = append(ids, d.ID)
		}
	}
	slices.Sort(ids)
	out := map[key]string{}
	err := read.DigestTexts(ctx, r.conn, slices.Compact(ids), func(t read.DigestText) error {
		out[key{t.Schema, t.ID}] = prepared.CutExecute(t.Text)
		return nil
	})
	return out, err
}

// plain is the name of a row before it becomes an ID.
func plain(id, text string) string {
	if id == "" {
		return otherFP
	}
	return string(sqltext.AppendDigestText(nil, []byte(text)))
}

// own are the classes of the statements that Risso sent: those of this program, and those that other Rissos marked, as
// far as there are samples.
func (r *Reader) own(rows []read.Digest, texts map[key]string, samples map[key][]read.StatementSample) map[string]bool {
	out := map[string]bool{}
	if r.o.Own {
		return out
	}
	var f sqltext.Fingerprinter
	for _, s := range r.traffic.Texts() {
		out[string(sqltext.AppendPlain(nil, f.Append(nil, []byte(s))))] = true
	}
	for _, d := range rows {
		k := key{d.Schema, d.ID}
		others := func(s read.StatementSample) bool { return !digest.IsOwn([]byte(s.Text)) }
		if list := samples[k]; len(list) > 0 && !slices.ContainsFunc(list, others) {
			out[plain(d.ID, texts[k])] = true
		}
	}
	return out
}

func (r *Reader) groupOf(groups map[string]*group, d *read.Digest, fingerprint, text string) *group {
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
		if fingerprint == otherFP && r.o.GroupBy == "fingerprint" {
			g.ID = otherID
		}
		groups[name] = g
	}
	if d.ID != "" && r.o.GroupBy == "fingerprint" && !slices.Contains(g.Digests, d.ID) {
		g.Digests = append(g.Digests, d.ID)
	}
	return g
}

// add adds a row of the server's table.
func (g *group) add(d *read.Digest) {
	g.Calls += d.Calls
	if g.rows = append(g.rows, key{d.Schema, d.ID}); g.dbs != nil {
		g.dbs[d.Schema] += d.Calls
	}
	g.metric("Query_time", "s", d.Calls, d.Seconds, d.MaxSeconds)
	g.metric("Lock_time", "s", d.Calls, d.LockSeconds, math.NaN())
	for _, n := range names {
		g.metric(n.name, "", d.Calls, float64(n.of(&d.Cost)), math.NaN())
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

// samples reads statements of the heaviest rows, which come first.
func (r *Reader) samples(ctx context.Context, rows []read.Digest) (map[key][]read.StatementSample, error) {
	out := map[key][]read.StatementSample{}
	if r.o.Samples <= 0 {
		return out, nil
	}
	var ids []string
	for _, d := range rows[:min(len(rows), 2*detailed)] {
		if d.ID != "" {
			ids = append(ids, d.ID)
		}
	}
	err := read.Samples(ctx, r.conn, ids, func(s read.StatementSample) error {
		k := key{s.Schema, s.Digest}
		out[k] = append(out[k], s)
		return nil
	})
	if err != nil && !mysql.Lost(err) {
		r.notes = append(r.notes, "There are no samples: "+err.Error())
		err = nil
	}
	return out, err
}

// offer keeps the slowest samples.
func (g *group) offer(s read.StatementSample, o Options) {
	x, pt := digest.Sample{Query: s.Text, DB: s.Schema, User: s.User, Host: s.Host, Seconds: s.Seconds}, ""
	if s.Cut {
		x.Cut = -1
	} else {
		pt = sqltext.PtID(s.Text)
	}
	if o.Redact || sqltext.SetsPassword([]byte(s.Text)) {
		x.Query = string(sqltext.Redact(nil, []byte(s.Text)))
	}
	if n := o.SampleBytes; n > 0 && len(x.Query) > n {
		if x.Cut == 0 {
			x.Cut = len(x.Query) - n
		}
		x.Query = x.Query[:n]
	}
	if s.Time > 0 {
		x.Time = time.Unix(s.Time, 0).UTC()
	}
	for _, have := range g.Samples {
		if have.Query == x.Query && have.DB == x.DB {
			return
		}
	}
	at := len(g.Samples)
	for at > 0 && g.Samples[at-1].Seconds < x.Seconds {
		at--
	}
	g.Samples, g.pts = slices.Insert(g.Samples, at, x), slices.Insert(g.pts, at, pt)
	if most := min(len(g.Samples), o.Samples); most < len(g.Samples) {
		g.Samples, g.pts = g.Samples[:most], g.pts[:most]
	}
}

// names fills in what pt-query-digest calls the class, by its samples.
func (g *group) names(groupBy string) {
	if groupBy != "fingerprint" {
		return
	}
	var ids []string
	for _, id := range g.pts {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		g.PtID = ids[0]
	}
	if len(ids) > 1 {
		g.PtIDs = ids
	}
}
