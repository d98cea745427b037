package digest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/sqltext"
)

// topValues is how many values of db, user and so on a class lists.
const topValues = 20

// order is a parsed OrderBy.
type order struct {
	attr   string // empty: calls
	figure func(*Metric) float64
}

var figures = map[string]func(*Metric) float64{
	"sum":    func(m *Metric) float64 { return m.Sum },
	"max":    func(m *Metric) float64 { return m.Max },
	"min":    func(m *Metric) float64 { return m.Min },
	"avg":    func(m *Metric) float64 { return m.Avg },
	"p95":    func(m *Metric) float64 { return m.P95 },
	"median": func(m *Metric) float64 { return m.Median },
	"stddev": func(m *Metric) float64 { return m.Stddev },
	"count":  func(m *Metric) float64 { return float64(m.Count) },
	"cnt":    func(m *Metric) float64 { return float64(m.Count) }, // pt-query-digest's word
}

func parseOrder(s string) (order, error) {
	if s == "calls" {
		return order{}, nil
	}
	attr, fig, _ := strings.Cut(s, ":")
	if fig == "" {
		fig = "sum"
	}
	f := figures[fig]
	if attr == "" || f == nil {
		return order{}, fmt.Errorf("%w: cannot order by %q; write calls, or ATTRIBUTE:sum, :max, :min, :avg, :p95, :median, :stddev or :count, such as Query_time:sum", ErrOption, s)
	}
	return order{attr: attr, figure: f}, nil
}

func (o order) of(c *Class) float64 {
	if o.figure == nil {
		return float64(c.Calls)
	}
	for i := range c.Metrics {
		if c.Metrics[i].Name == o.attr {
			return o.figure(&c.Metrics[i])
		}
	}
	return 0
}

// profile puts the workers' figures together. It uses them up.
func (r *run) profile() *Profile {
	w := r.workers[0]
	p := &Profile{Sources: r.infos, GroupBy: r.GroupBy, OrderBy: r.orderBy, Skipped: r.allSkipped(), QuantileError: quantileError}
	var lacking uint64
	for _, o := range r.workers {
		p.Folded += o.folded
		lacking += o.lacking
		if o != w {
			w.absorb(o)
		}
	}
	p.FoldedTime = float64(lacking) / micro
	all := w.joined(w.classes.all())
	p.Unique = len(all)
	total := &class{}
	same := &translation{same: true, to: w}
	for _, c := range all {
		total.mergeFrom(c, same, 0)
	}
	if w.other != nil {
		total.mergeFrom(w.other, same, 0)
	}
	sum := w.figures(total)
	p.Calls, p.From, p.To, p.Metrics, p.Flags, p.Histogram = sum.Calls, sum.First, sum.Last, sum.Metrics, sum.Flags, sum.Histogram
	if p.Sources == nil {
		p.Sources = []SourceInfo{}
	}
	r.list(p, w, all)
	return p
}

// list orders the classes, cuts the list and fills in each.
func (r *run) list(p *Profile, w *worker, all []*class) {
	type ranked struct {
		c   *class
		out Class
		by  float64
	}
	list := make([]ranked, len(all))
	whole := 0.0
	for i, c := range all {
		list[i] = ranked{c: c, out: w.figures(c)}
		list[i].by = r.order.of(&list[i].out)
	}
	slices.SortFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.by, a.by), cmp.Compare(b.c.calls, a.c.calls), cmp.Compare(a.c.id, b.c.id))
	})
	for _, x := range list { // in this order, so that the sum is the same each time
		whole += x.by
	}
	keep := len(list)
	if r.Limit > 0 {
		keep = min(keep, r.Limit)
	}
	for whole > 0 && keep > 0 && list[keep-1].by/whole < r.MinShare {
		keep--
	}
	p.Classes = make([]Class, 0, keep)
	for i := range list[:keep] {
		x := &list[i]
		if whole > 0 {
			x.out.Share = x.by / whole
		}
		r.describe(&x.out, x.c)
		p.Classes = append(p.Classes, x.out)
	}
	other := w.other
	same := &translation{same: true, to: w}
	share := 1.0
	for _, c := range p.Classes {
		share -= c.Share
	}
	for _, x := range list[keep:] {
		if other == nil {
			other = &class{}
		}
		other.mergeFrom(x.c, same, 0)
	}
	if other != nil {
		o := w.figures(other)
		o.Share = max(share, 0)
		p.Other = &o
	}
}

// absorb adds another worker's classes to those of w.
func (w *worker) absorb(o *worker) {
	t := translate(o, w)
	for _, c := range o.classes.all() {
		mine := w.classes.like(c)
		if mine == nil {
			mine = &class{hash: c.hash, key: c.key, keyLen: c.keyLen, id: c.id, plain: c.plain}
			w.classes.insert(mine)
		}
		mine.mergeFrom(c, t, max(w.Samples, 0))
	}
	if o.other != nil {
		if w.other == nil {
			w.other = &class{}
		}
		w.other.mergeFrom(o.other, t, 0)
	}
	o.classes.clear()
	o.forget()
	o.other = nil
}

// figures makes the public figures of a class: all that needs no statement.
func (w *worker) figures(c *class) Class {
	out := Class{ID: c.id, Group: string(c.key), Calls: int64(c.calls), First: unixTime(c.first), Last: unixTime(c.last), Metrics: []Metric{}}
	byDim := make(map[uint32][]bucket)
	c.counts.each(func(dim, id uint32, n uint64) { byDim[dim] = append(byDim[dim], bucket{id, n}) })
	metric := func(m *metric, dim uint32, name string) {
		if m.count() == 0 {
			return
		}
		b := byDim[dim]
		slices.SortFunc(b, func(a, b bucket) int { return cmp.Compare(a.i, b.i) })
		x := Metric{Name: name, Unit: unitOf(name)}
		m.fill(&x, b)
		out.Metrics = append(out.Metrics, x)
	}
	metric(&c.query, dimQueryTime, "Query_time")
	metric(&c.lock, dimLockTime, "Lock_time")
	metric(&c.size, dimQuerySize, "Query_size")
	fixed := len(out.Metrics)
	w.listValues(&out, "db", byDim[dimDB])
	w.listValues(&out, "user", byDim[dimUser])
	w.listValues(&out, "host", byDim[dimHost])
	fixedValues := len(out.Values)
	for _, s := range w.names.slots {
		switch s.kind {
		case AttrNumber:
			if s.at < len(c.metrics) {
				metric(&c.metrics[s.at], s.dim, s.name)
			}
		case AttrFlag:
			if s.at < len(c.flags) && c.flags[s.at][0]+c.flags[s.at][1] > 0 {
				out.Flags = append(out.Flags, Flag{Name: s.name, Yes: int64(c.flags[s.at][1]), No: int64(c.flags[s.at][0])})
			}
		case AttrText:
			w.listValues(&out, s.name, byDim[s.dim])
		}
	}
	slices.SortFunc(out.Metrics[fixed:], func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Flags, func(a, b Flag) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Values[fixedValues:], func(a, b Values) int { return strings.Compare(a.Name, b.Name) })
	for i, n := range c.hist {
		out.Histogram[i] = int64(n)
	}
	if mean := out.Metric("Query_time").Avg; mean > 0 {
		out.VarianceToMean = c.query.variance() / mean
	}
	if n := c.query.count(); n > 0 {
		out.Apdex = (float64(c.good) + float64(c.fair)/2) / float64(n)
	}
	return out
}

// listValues adds the values of one name to a class, most frequent first.
func (w *worker) listValues(out *Class, name string, counts []bucket) {
	if len(counts) == 0 {
		return
	}
	v := Values{Name: name}
	list := make([]ValueCount, 0, len(counts))
	for _, b := range counts {
		if b.i == 0 { // what came when the table was full
			v.Rest += int64(b.n)
			continue
		}
		list = append(list, ValueCount{Value: w.values.list[b.i], Calls: int64(b.n)})
	}
	slices.SortFunc(list, func(a, b ValueCount) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Value, b.Value))
	})
	v.Distinct = len(list)
	v.Top = list[:min(len(list), topValues)]
	for _, x := range list[len(v.Top):] {
		v.Rest += x.Calls
	}
	out.Values = append(out.Values, v)
}

// describe fills in what comes from the class's worst statement.
func (r *run) describe(out *Class, c *class) {
	if r.group == groupFingerprint {
		out.Fingerprint = string(c.key)
		if r.MergeTables && c.keyLen == len(c.key) {
			out.Fingerprint = string(sqltext.MergeTables(c.key))
		}
		out.Verb = sqltext.Verb(c.key)
	}
	for i := range c.samples {
		s := &c.samples[i]
		if i == 0 {
			head := s.query[:min(len(s.query), keepText)] // the beginning of a long statement is enough
			out.Tables = sqltext.Tables(head)
			if r.group == groupFingerprint {
				out.Verb = sqltext.Verb(head)
				out.PtID = s.ptID()
				if len(c.spellings) > 0 {
					out.PtID = c.spellings[0]
				}
				if len(c.spellings) > 1 {
					out.PtIDs = c.spellings
				}
			} else {
				out.Fingerprint = sqltext.Fingerprint(string(head))
				out.Verb = sqltext.Verb(head)
			}
		}
		q := s.query
		if r.Redact || sqltext.SetsPassword(q) {
			q = sqltext.Redact(nil, q)
		}
		out.Samples = append(out.Samples, Sample{
			Query: string(q), DB: string(s.db), User: string(s.user), Host: string(s.host), Time: unixTime(s.time),
			Seconds: float64(s.micros) / micro, Explain: explainText(s.explain), Cut: s.cut,
		})
	}
}

// explainText takes MariaDB's mark off each line.
func explainText(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(b), "\r\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(strings.TrimPrefix(l, "# explain: "), "\r")
	}
	return strings.Join(lines, "\n")
}

// unixTime turns microseconds into a time; 0 and what no calendar holds is none.
func unixTime(micros int64) time.Time {
	if micros == 0 || micros > math.MaxInt64/2 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
