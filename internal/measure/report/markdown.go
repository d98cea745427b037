package report

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/environ"
)

// Markdown writes a report for a ticket or a wiki.
func Markdown(w io.Writer, runs []Run) error {
	m := &markdown{bufio.NewWriter(w)}
	list := groups(runs)
	m.line("# %s", cell(title(runs)))
	m.line("")
	if len(runs) == 1 {
		m.line("%s", cell(runs[0].sentence()))
		m.line("")
	}
	m.comparisons(compareGroups(list))
	m.runs(runs)
	m.trust(runs)
	m.sweep(sweep(list))
	m.trouble(runs)
	m.environment(runs)
	return m.Flush()
}

type markdown struct{ *bufio.Writer }

func (m *markdown) line(format string, args ...any) { fmt.Fprintf(m, format+"\n", args...) }

// table writes a table; a head that begins with ">" aligns its column to the right.
func (m *markdown) table(heads []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	var h, rule []string
	for _, head := range heads {
		if rest, ok := strings.CutPrefix(head, ">"); ok {
			h, rule = append(h, cell(rest)), append(rule, "--:")
		} else {
			h, rule = append(h, cell(head)), append(rule, ":--")
		}
	}
	m.line("| %s |", strings.Join(h, " | "))
	m.line("|%s|", strings.Join(rule, "|"))
	for _, r := range rows {
		cells := make([]string, len(r))
		for i, c := range r {
			cells[i] = cell(c)
		}
		m.line("| %s |", strings.Join(cells, " | "))
	}
	m.line("")
}

// cell keeps a text from being taken for markup.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ", "<", "&lt;", "*", `\*`, "_", `\_`, "`", "'").Replace(s)
}

func (m *markdown) comparisons(list []Comparison) {
	if len(list) == 0 {
		return
	}
	m.line("## Comparison\n")
	for _, c := range list {
		m.line("%s\n", cell(c.Words))
	}
	var rows [][]string
	for _, c := range list {
		rows = append(rows, []string{c.Of, fmt.Sprint(c.RunsB), c.MedianB, c.With, fmt.Sprint(c.RunsA), c.MedianA, c.Measure, digits.Ratio(c.Ratio), c.interval(), digits.Chance(c.P), c.Test})
	}
	m.table([]string{"", ">runs", ">median", "against", ">runs", ">median", "of", ">ratio", ">interval", ">p", "test"}, rows)
	for _, c := range list {
		for _, n := range c.Notes {
			m.line("- %s and %s: %s", cell(c.Of), cell(c.With), cell(n))
		}
		if len(c.Notes) > 0 {
			m.line("")
		}
		var diff [][]string
		for _, d := range c.Differ {
			diff = append(diff, []string{d.What, orNone(d.A), orNone(d.B)})
		}
		if len(diff) > 0 {
			m.line("What differs between %s and %s:\n", cell(c.With), cell(c.Of))
			m.table([]string{"", c.With, c.Of}, diff)
		}
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func (m *markdown) runs(runs []Run) {
	m.line("## Runs\n")
	var rows [][]string
	for _, r := range runs {
		l := r.Latency
		rows = append(rows, []string{r.Name, r.Workload, fmt.Sprint(r.Threads), digits.Seconds(r.Seconds), digits.Count(r.TransactionsPerSecond), digits.Count(r.QueriesPerSecond),
			digits.Seconds(l.Avg), digits.Seconds(l.At(50)), digits.Seconds(l.At(95)), digits.Seconds(l.At(99)), digits.Seconds(l.At(99.9)), digits.Seconds(l.Max), digits.Thousands(r.failures())})
	}
	m.table([]string{"", "workload", ">threads", ">time", ">transactions/s", ">queries/s", ">average", ">p50", ">p95", ">p99", ">p99.9", ">slowest", ">errors"}, rows)
}

// trust says for each run whether it had the machine to itself.
func (m *markdown) trust(runs []Run) {
	var rows [][]string
	for _, r := range runs {
		if r.Use != nil {
			rows = append(rows, []string{r.Name, r.Use.Line()})
		}
	}
	m.table([]string{"run", "the machine"}, rows)
}

func (m *markdown) sweep(s *Sweep) {
	if s == nil {
		return
	}
	m.line("## Scalability\n\n%s\n", cell(s.words()))
	var rows [][]string
	for _, p := range s.Points {
		fit, in := s.Fit.Predict(p.N)
		rows = append(rows, []string{digits.Count(p.N), digits.Count(p.X), digits.Count(fit), digits.Count(in.Low) + " to " + digits.Count(in.High)})
	}
	m.table([]string{">threads", ">measured", ">law", ">95 % interval"}, rows)
}

// words says what the law means.
func (s *Sweep) words() string {
	f := s.Fit
	out := fmt.Sprintf("Universal Scalability Law: one thread does %s/s, contention σ %s, coherency κ %s, R² %s.", digits.Count(f.Lambda), digits.Three(f.Sigma), digits.Three(f.Kappa), digits.Ratio(f.RSquared))
	switch p := f.Peak(); {
	case math.IsInf(p, 0) || p > 1e6:
		out += " No peak: throughput only levels off."
	case p <= 1:
		out += fmt.Sprintf(" Highest at 1 thread, with %s/s: each further one reduces it.", digits.Count(f.At(1)))
	default:
		out += fmt.Sprintf(" Highest at %s, with %s/s.", digits.Counted(int(math.Round(p)), "thread"), digits.Count(f.At(p)))
	}
	return out
}

func (m *markdown) trouble(runs []Run) {
	var errs, outs [][]string
	for _, r := range runs {
		for _, e := range r.Errors {
			errs = append(errs, []string{r.Name, e.Label, digits.Thousands(e.Count), e.Message})
		}
		for _, o := range r.Outages {
			outs = append(outs, []string{r.Name, digits.Seconds(o.From), digits.Seconds(float64(o.Milliseconds) / 1000), outageKind(o.Errors)})
		}
	}
	if len(errs) > 0 {
		m.line("## Errors\n")
		m.table([]string{"run", "error", ">count", "the first one"}, errs)
	}
	if len(outs) > 0 {
		m.line("## Outages and stalls\n")
		m.table([]string{"run", ">from", ">for", ""}, outs)
	}
}

func outageKind(errors bool) string {
	if errors {
		return "outage: transactions failed"
	}
	return "stall: nothing failed, nothing succeeded"
}

func (m *markdown) environment(runs []Run) {
	names, facts := environmentTable(runs)
	if len(names) == 0 {
		return
	}
	m.line("## Environment\n")
	var rows [][]string
	for _, f := range facts {
		rows = append(rows, append([]string{f.Name}, f.Values...))
	}
	m.table(append([]string{""}, names...), rows)
	for _, r := range oneOfEach(runs) {
		var rows [][]string
		for _, v := range r.Environment.Server.Changed {
			rows = append(rows, []string{v.Name, v.Value, v.Source})
		}
		if len(rows) == 0 || r.Environment.Server.AllVariables {
			continue
		}
		m.line("Changed variables of %s:\n", cell(r.Name))
		m.table([]string{"variable", "value", "from"}, rows)
	}
}

// factRow is a fact of several environments.
type factRow struct {
	Group, Name string
	Values      []string
	Differs     bool
}

// oneOfEach returns the first run of each group that has an environment, each environment once.
func oneOfEach(runs []Run) []Run {
	var out []Run
	for _, g := range groups(runs) {
		first := Run{g.Name, g.Runs[0].Result}
		if first.Environment == nil {
			continue
		}
		known := false
		for _, o := range out {
			if len(environ.Differences(o.Environment, first.Environment)) == 0 {
				known = true
			}
		}
		if !known {
			out = append(out, first)
		}
	}
	return out
}

// environmentTable puts environments side by side: a column for each that differs from those before it.
func environmentTable(runs []Run) (names []string, rows []factRow) {
	at := map[[2]string]int{}
	list := oneOfEach(runs)
	for i, r := range list {
		names = append(names, r.Name)
		for _, f := range r.Environment.Facts() {
			k := [2]string{f.Group, f.Name}
			if _, ok := at[k]; !ok {
				at[k] = len(rows)
				rows = append(rows, factRow{Group: f.Group, Name: f.Name, Values: make([]string, len(list))})
			}
			rows[at[k]].Values[i] = f.Value
		}
	}
	for i := range rows {
		for _, v := range rows[i].Values {
			rows[i].Differs = rows[i].Differs || v != rows[i].Values[0]
		}
	}
	return names, rows
}

// title says what was measured.
func title(runs []Run) string {
	workloads, servers := []string{}, []string{}
	add := func(list []string, s string) []string {
		for _, v := range list {
			if v == s {
				return list
			}
		}
		return append(list, s)
	}
	for _, r := range runs {
		workloads = add(workloads, r.Workload)
		name := r.ServerVersion
		if e := r.Environment; e != nil {
			version, _, _ := strings.Cut(e.Server.Version, " ") // 15.18 (Debian …), 10.11.19-MariaDB-…
			version, _, _ = strings.Cut(version, "-")
			name = strings.TrimSpace(e.Server.Flavour + " " + version)
		}
		if name == "" {
			name = r.Server
		}
		servers = add(servers, name)
	}
	join := func(list []string) string {
		if len(list) > 3 {
			return fmt.Sprintf("%s and %d more", strings.Join(list[:2], ", "), len(list)-2)
		}
		return strings.Join(list, ", ")
	}
	return join(workloads) + " on " + join(servers)
}
