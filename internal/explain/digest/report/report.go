// Package report writes a digest.Profile for people (text, Markdown, an HTML page that opens by itself) and for
// programs (JSON, CSV). All of them render the same result; none computes anything itself.
//
// Statements come from anyone who can reach the server: text shows control characters as escapes, HTML escapes
// everything and loads nothing.
package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/oneline"
)

// Options say how a profile is shown.
type Options struct {
	Width    int            // columns of the text, at least 80; 0: 100
	Location *time.Location // of the times shown; nil: UTC
	Filter   string         // the expression that chose the events, for the header
	Notes    []string       // what else a reader has to know, a sentence each
	Redacted bool           // the samples' literals are gone: no sample can be explained
	Whole    bool           // show all that is kept of a sample, not only its first 2,048 characters
	Source   string         // what was read, in place of the sources' names: a server
}

// Forms are the names of the forms, as --output takes them.
var Forms = []string{"text", "json", "csv", "markdown", "html"}

// Write writes a profile in the form of that name.
func Write(w io.Writer, form string, p *digest.Profile, o Options) error {
	switch form {
	case "text":
		return Text(w, p, o)
	case "json":
		return JSON(w, p, o)
	case "csv":
		return CSV(w, p, o)
	case "markdown":
		return Markdown(w, p, o)
	case "html":
		return HTML(w, p, o)
	}
	return fmt.Errorf("there is no report format %q: use %s", form, strings.Join(Forms, ", "))
}

func (o Options) width() int {
	if o.Width <= 0 {
		return 100
	}
	return max(o.Width, 80)
}

// stamp is a time as the report shows it.
func (o Options) stamp(t time.Time) string {
	if t.IsZero() {
		return digits.Unknown
	}
	return t.In(o.location()).Format("2006-01-02 15:04:05")
}

func (o Options) location() *time.Location {
	if o.Location == nil {
		return time.UTC
	}
	return o.Location
}

// The metric that makes the response time.
const queryTime = "Query_time"

// view is a profile in words and figures: what text, Markdown and HTML share.
type view struct {
	Title    string
	Sources  []string
	Range    string // when, how long
	Summary  string // calls, classes, rate
	Filter   string
	Notes    []string
	Overall  grid
	Zero     []string // metrics that are 0 everywhere
	Lost     string   // what should be in the profile and is not
	Skipped  []string
	Error    string
	Timed    bool // there are response times
	Grouped  string
	Ordered  string // head of an extra column, when another figure orders the classes
	Profile  []rank
	Classes  []class
	Produced string
}

// grid is a table of figures.
type grid []figures

// Heads are the columns in which something is known.
func (g grid) Heads() []string { heads, _ := columnsOf(g); return heads }

// Rows are its lines.
func (g grid) Rows() [][]string { _, rows := columnsOf(g); return rows }

// figures is a line of a table of figures.
type figures struct{ Name, Pct, Total, Min, Max, Avg, P95, Stddev, Median string }

// rank is a line of the profile.
type rank struct {
	Rank, ID, Time, Share, Calls, Each, VM, Figure, Statement string
	Part                                                      float64 // 0 to 1, for the bar
}

// class is a class's section.
type class struct {
	Rank, ID                     string
	PtID, Digest                 string // what pt-query-digest calls it, and the server
	Statement, Fingerprint, When string
	Share                        string
	Part                         float64
	Once                         bool // one call: the total says enough
	Figures                      grid
	Values                       []pair
	Histogram                    []bucket
	Tables                       []string // SHOW commands
	Samples                      []sample
	Explain                      string // statements that show the worst sample's plan
	NoExplain                    string // or why there are none
}

type pair struct{ Name, Text string }

type bucket struct {
	Label string
	Calls int64
	Part  float64
}

type sample struct {
	Head, Query, Plan string
	Cut               string
	Timed             bool // it has a response time
}

func build(p *digest.Profile, o Options) view {
	v := view{Filter: o.Filter, Timed: p.Metric(queryTime).Max > 0, Grouped: p.GroupBy}
	v.Notes = append(v.Notes, o.Notes...)
	for _, told := range []string{p.PassedOver(), p.Quiet()} {
		if told != "" {
			v.Notes = append(v.Notes, line(told))
		}
	}
	v.sources(p, o)
	length := p.To.Sub(p.From).Seconds()
	switch {
	case p.Calls == 0:
	case p.From.IsZero():
		v.Range = "the source has no times"
	default:
		v.Range = fmt.Sprintf("%s to %s %s, %s", o.stamp(p.From), o.stamp(p.To), zone(o, p.From), digits.Span(p.To.Sub(p.From).Round(time.Second)))
	}
	v.Summary = digits.Plural(p.Calls, "call", "calls") + " in " + classes(p)
	if length > 0 {
		v.Summary += fmt.Sprintf(", %s calls/s", digits.Count(float64(p.Calls)/length))
		if v.Timed {
			v.Summary += ", concurrency " + digits.Count(p.Metric(queryTime).Sum/length)
		}
	}
	v.Overall, v.Zero = table(p.Metrics, nil)
	v.Skipped = skipped(p)
	if lost := p.Lost(); lost != "" {
		v.Lost = "Parts of the log are not in this report: " + line(lost) + "."
	}
	if v.Timed {
		v.Error = fmt.Sprintf("Percentiles and medians are accurate to within %s.", digits.Percent(p.QuantileError))
		if p.QuantileError <= 0 {
			v.Error = ""
		}
	}
	if p.Folded > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("There were too many classes to keep: %s lost figures to \"other\"; up to %s may be missing in a class.", digits.Thousands(p.Folded), digits.Seconds(p.FoldedTime)))
	}
	v.Ordered = orderHead(p, v.Timed)
	for i := range p.Classes {
		c := &p.Classes[i]
		v.Profile = append(v.Profile, rankOf(i+1, c, p))
		v.Classes = append(v.Classes, section(i+1, c, p, o))
	}
	if p.Other != nil {
		r := rankOf(0, p.Other, p)
		n := p.Unique - len(p.Classes)
		r.Rank, r.ID, r.VM = "", "", ""
		one, many := "other class", "other classes"
		if grouped(p) {
			one, many = "other group", "other groups"
		}
		r.Statement = digits.Plural(int64(n), one, many)
		v.Profile = append(v.Profile, r)
	}
	return v
}

func (v *view) sources(p *digest.Profile, o Options) {
	v.Title = "Digest of " + titleOf(p, o)
	const most = 10
	logs := slices.DeleteFunc(slices.Clone(p.Sources), func(s digest.SourceInfo) bool { return s.PassedOver != "" })
	for i, s := range logs {
		if i == most {
			v.Sources = append(v.Sources, fmt.Sprintf("and %d more", len(logs)-most))
			return
		}
		t := plain(s.Name) + ": " + s.Format
		if s.Bytes > 0 {
			t += ", " + digits.Bytes(s.Bytes)
		}
		t += ", " + digits.Plural(s.Events, "event", "events")
		if s.Server != "" {
			t += ", server " + serverName(s.Server)
		}
		v.Sources = append(v.Sources, t)
	}
}

// serverName is the version in a log's first line, "/usr/sbin/mysqld, Version: 8.4.3 (MySQL Community Server - GPL).
// started with:"; other text stays.
func serverName(s string) string {
	if _, after, ok := strings.Cut(s, "Version: "); ok {
		s, _, _ = strings.Cut(after, ". started with")
	}
	return line(s)
}

func titleOf(p *digest.Profile, o Options) string {
	switch {
	case o.Source != "":
		return line(o.Source)
	case len(p.Sources) == 1:
		return line(p.Sources[0].Name)
	default:
		return fmt.Sprintf("%d sources", len(p.Sources))
	}
}

func zone(o Options, t time.Time) string {
	name, _ := t.In(o.location()).Zone()
	return name
}

// grouped reports whether a class is something else than a statement.
func grouped(p *digest.Profile) bool { return p.GroupBy != "" && p.GroupBy != "fingerprint" }

func classes(p *digest.Profile) string {
	if !grouped(p) {
		return digits.Plural(int64(p.Unique), "class", "classes")
	}
	return digits.Plural(int64(p.Unique), "group", "groups") + " by " + p.GroupBy
}

// skipped is what was not understood, most frequent first.
func skipped(p *digest.Profile) []string {
	var why []string
	for w := range p.Skipped {
		why = append(why, w)
	}
	sort.Slice(why, func(i, j int) bool {
		a, b := p.Skipped[why[i]], p.Skipped[why[j]]
		return a > b || a == b && why[i] < why[j]
	})
	for i, w := range why {
		why[i] = digits.Thousands(p.Skipped[w]) + " × " + line(w)
	}
	return why
}

// table makes lines of metrics; whole is nil, or the same metrics of all classes for the percentage. Metrics that are
// 0 in every event are only named.
func table(list, whole []digest.Metric) (lines grid, zero []string) {
	for _, m := range list {
		name := label(m.Name)
		if m.Count == 0 {
			continue
		}
		if m.Max == 0 && m.Min == 0 {
			zero = append(zero, name)
			continue
		}
		f := figures{Name: name, Total: figure(m.Sum, m.Unit), Min: figure(m.Min, m.Unit), Max: figure(m.Max, m.Unit), Avg: figure(m.Avg, m.Unit),
			P95: figure(m.P95, m.Unit), Stddev: figure(m.Stddev, m.Unit), Median: figure(m.Median, m.Unit)}
		for _, all := range whole {
			if all.Name == m.Name && all.Sum > 0 {
				f.Pct = digits.Percent(m.Sum / all.Sum)
			}
		}
		lines = append(lines, f)
	}
	return lines, zero
}

// columnsOf makes rows of figures and leaves out the columns in which no line has one.
func columnsOf(lines []figures) (heads []string, rows [][]string) {
	all := []string{"", "pct", "total", "min", "max", "avg", "95 %", "stddev", "median"}
	cells := make([][]string, len(lines))
	for i, f := range lines {
		cells[i] = []string{f.Name, f.Pct, f.Total, f.Min, f.Max, f.Avg, f.P95, f.Stddev, f.Median}
	}
	rows = make([][]string, len(lines))
	for c, head := range all {
		used := c == 0
		for _, r := range cells {
			used = used || r[c] != "" && r[c] != digits.Unknown
		}
		if !used {
			continue
		}
		heads = append(heads, head)
		for i, r := range cells {
			rows[i] = append(rows[i], r[c])
		}
	}
	return heads, rows
}

// label is an attribute's name as people write it.
func label(name string) string { return line(strings.ReplaceAll(name, "_", " ")) }

// orderHead names the figure that orders the classes when the profile has no column for it.
func orderHead(p *digest.Profile, timed bool) string {
	switch p.OrderBy {
	case "", queryTime + ":sum", "calls":
		return ""
	}
	if !timed && strings.HasPrefix(p.OrderBy, queryTime) {
		return ""
	}
	return p.OrderBy
}

// ordered is the class's figure that orders the classes.
func ordered(c *digest.Class, orderBy string) string {
	name, what, _ := strings.Cut(orderBy, ":")
	m := c.Metric(name)
	value, ok := map[string]float64{"sum": m.Sum, "max": m.Max, "min": m.Min, "avg": m.Avg, "p95": m.P95, "median": m.Median, "stddev": m.Stddev}[what]
	if !ok {
		return digits.Count(float64(m.Count))
	}
	return figure(value, m.Unit)
}

func rankOf(n int, c *digest.Class, p *digest.Profile) rank {
	t := c.Metric(queryTime)
	r := rank{Rank: fmt.Sprint(n), ID: c.ID, Share: digits.Percent(c.Share), Part: c.Share, Calls: digits.Thousands(c.Calls), Statement: statement(c, p.GroupBy)}
	if p.Metric(queryTime).Max > 0 {
		r.Time, r.Each = figure(t.Sum, t.Unit), figure(t.Avg, t.Unit)
		if !math.IsNaN(c.VarianceToMean) {
			r.VM = digits.Count(c.VarianceToMean)
		}
	}
	if head := orderHead(p, true); head != "" {
		r.Figure = ordered(c, p.OrderBy)
	}
	return r
}

// statement is a class in a few words: the verb and the tables, or what else it was grouped by.
func statement(c *digest.Class, groupBy string) string {
	if groupBy != "" && groupBy != "fingerprint" {
		if c.Group == "" {
			return "(none)"
		}
		return line(c.Group)
	}
	var names []string
	for _, t := range c.Tables {
		n := t.Name
		if t.Schema != "" {
			n = t.Schema + "." + n
		}
		names = append(names, n)
	}
	if len(names) == 0 || c.Verb == "" {
		return line(c.Fingerprint)
	}
	const most = 6
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("and %d more", len(names)-most))
	}
	return line(verbOf(c) + " " + strings.Join(names, ", "))
}

// verbOf is the verb, with what it makes or changes: CREATE TABLE.
func verbOf(c *digest.Class) string {
	words := strings.Fields(c.Fingerprint[:min(len(c.Fingerprint), 100)])
	if len(words) > 1 && strings.EqualFold(words[0], c.Verb) && slices.Contains([]string{"table", "index", "view", "trigger"}, words[1]) {
		return c.Verb + " " + strings.ToUpper(words[1])
	}
	return c.Verb
}

func section(n int, c *digest.Class, p *digest.Profile, o Options) class {
	s := class{Rank: fmt.Sprint(n), ID: c.ID, Statement: statement(c, p.GroupBy), Fingerprint: line(c.Fingerprint), Share: digits.Percent(c.Share), Part: c.Share}
	if grouped(p) {
		s.Fingerprint = "" // one of many
	}
	s.PtID, s.Digest = ptNames(c), some(c.Digests)
	s.When = when(c, o)
	s.Figures, _ = table(c.Metrics, p.Metrics)
	calls := figures{Name: "Calls", Total: digits.Thousands(c.Calls)}
	if p.Calls > 0 {
		calls.Pct = digits.Percent(float64(c.Calls) / float64(p.Calls))
	}
	s.Figures = append(grid{calls}, s.Figures...)
	s.Values = values(c)
	if c.Calls > 1 {
		if c.Metric(queryTime).Max > 0 {
			s.Histogram = histogram(c.Histogram)
		}
	} else { // for one call the total says it all
		for i, f := range s.Figures {
			s.Figures[i] = figures{Name: f.Name, Pct: f.Pct, Total: f.Total}
		}
	}
	s.Tables = showCommands(c)
	for _, x := range c.Samples {
		s.Samples = append(s.Samples, sampleOf(x, o))
	}
	if len(c.Samples) > 0 {
		s.Explain, s.NoExplain = explainable(c.Samples[0], c.Verb, serverOf(p), o.Redacted)
	}
	return s
}

// ptNames are pt-query-digest's IDs of a class, as it prints them.
func ptNames(c *digest.Class) string {
	list := c.PtIDs
	if len(list) == 0 && c.PtID != "" {
		list = []string{c.PtID}
	}
	names := make([]string, len(list))
	for i, id := range list {
		names[i] = "0x" + id
	}
	return some(names)
}

// some are the first names of a list.
func some(list []string) string {
	const most = 3
	if len(list) > most {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
	}
	return strings.Join(list, ", ")
}

// when says in which time a class was seen and how dense.
func when(c *digest.Class, o Options) string {
	if c.First.IsZero() {
		return ""
	}
	t := o.stamp(c.First)
	d := c.Last.Sub(c.First)
	if d <= 0 {
		return "at " + t
	}
	t += " to " + o.stamp(c.Last)
	if c.Calls > 1 {
		t += fmt.Sprintf(", %s calls/s", digits.Count(float64(c.Calls)/d.Seconds()))
		if m := c.Metric(queryTime); m.Max > 0 {
			t += ", concurrency " + digits.Count(m.Sum/d.Seconds())
		}
	}
	return t
}

// values are who ran it, and flags.
func values(c *digest.Class) []pair {
	var out []pair
	const most = 5
	for _, v := range c.Values {
		if len(v.Top) == 0 || v.Distinct == 1 && (v.Top[0].Value == "" || v.Top[0].Value == "0") {
			continue
		}
		var parts []string
		rest := v.Rest
		for i, t := range v.Top {
			if i >= most {
				rest += t.Calls
				continue
			}
			name := line(t.Value)
			if name == "" {
				name = "(none)"
			}
			name = oneline.Cut(name, 60)
			if v.Distinct > 1 {
				name += " " + digits.Thousands(t.Calls)
			}
			parts = append(parts, name)
		}
		text := strings.Join(parts, ", ")
		if v.Distinct > most {
			text += fmt.Sprintf(", %s more with %s", digits.Count(float64(v.Distinct-most)), digits.Thousands(rest))
		}
		out = append(out, pair{valueLabel(v.Name, v.Distinct), text})
	}
	var flags []string
	for _, f := range c.Flags {
		if n := f.Yes + f.No; f.Yes == n && n > 0 {
			flags = append(flags, label(f.Name))
		} else if f.Yes > 0 {
			flags = append(flags, label(f.Name)+" in "+digits.Percent(float64(f.Yes)/float64(n)))
		}
	}
	if len(flags) > 0 {
		out = append(out, pair{"Flags", strings.Join(flags, ", ")})
	}
	return out
}

func valueLabel(name string, n int) string {
	one, many := label(name), label(name)
	switch name {
	case "db":
		one, many = "Database", "Databases"
	case "user":
		one, many = "User", "Users"
	case "host":
		one, many = "Host", "Hosts"
	}
	if n == 1 {
		return one
	}
	return many
}

var bounds = [8]string{"< 10 µs", "< 100 µs", "< 1 ms", "< 10 ms", "< 100 ms", "< 1 s", "< 10 s", "≥ 10 s"}

// histogram is the counts from the first to the last bucket that holds any.
func histogram(h [8]int64) []bucket {
	first, last, top := -1, -1, int64(0)
	for i, n := range h {
		if n > 0 {
			if first < 0 {
				first = i
			}
			last, top = i, max(top, n)
		}
	}
	if first < 0 {
		return nil
	}
	var out []bucket
	for i := first; i <= last; i++ {
		out = append(out, bucket{Label: bounds[i], Calls: h[i], Part: float64(h[i]) / float64(top)})
	}
	return out
}

// maxSample is how many characters of a sample people are shown.
const maxSample = 2048

func sampleOf(x digest.Sample, o Options) sample {
	s := sample{Query: strings.TrimSpace(plain(x.Query)), Plan: aligned(plain(x.Explain))}
	var head []string
	if s.Timed = x.Seconds > 0; s.Timed {
		head = append(head, digits.Seconds(x.Seconds))
	}
	if !x.Time.IsZero() {
		head = append(head, "at "+o.stamp(x.Time))
	}
	if x.User != "" || x.Host != "" {
		head = append(head, "by "+line(x.User)+"@"+line(x.Host))
	}
	if x.DB != "" {
		head = append(head, "in "+line(x.DB))
	}
	s.Head = strings.Join(head, " ")
	left := max(x.Cut, 0)
	if short := oneline.Cut(s.Query, maxSample); short != s.Query && !o.Whole {
		left += len(s.Query) - len(short) + len("…")
		s.Query = short
	}
	if left > 0 {
		s.Cut = digits.Plural(int64(left), "byte", "bytes") + " more"
	}
	if x.Cut < 0 {
		s.Cut = "and more, which the server did not keep"
	}
	return s
}

// aligned lays out MariaDB's explain lines, whose cells are parted by tabs.
func aligned(s string) string {
	lines := strings.Split(strings.Trim(s, "\n"), "\n")
	if len(lines) < 2 || !strings.Contains(lines[0], "\t") {
		return strings.TrimSpace(s)
	}
	c := columns{heads: strings.Split(strings.TrimSpace(lines[0]), "\t"), gap: 2}
	for _, l := range lines[1:] {
		cells := strings.Split(strings.TrimSpace(l), "\t")
		for len(cells) < len(c.heads) {
			cells = append(cells, "")
		}
		c.rows = append(c.rows, cells[:len(c.heads)])
	}
	return strings.Join(c.lines(), "\n")
}
