package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

//go:embed page.html
var pageSource string

// page is what the template shows.
type page struct {
	Title       string
	Sentences   []string
	Comparisons []comparisonRow
	Differ      []differTable
	Sweep       *sweepPart
	Charts      []template.HTML
	Runs        []runRow
	Trust       [][2]string // of each run: whether it had the machine to itself
	Statements  []statementRow
	Kinds       []kindRow
	Errors      []errorRow
	Outages     []outageRow
	Names       []string // of the environments
	Facts       []factRow
	Variables   []variableTable
	Unknown     []fleet.Trouble
	Began       string
	Version     string
}

type comparisonRow struct {
	Of, With, RunsA, RunsB, Measure, MedianA, MedianB, Ratio, Interval, P, Test string
	Bar                                                                         template.HTML
	Notes                                                                       []string
}

type differTable struct {
	A, B string
	Rows [][3]string
}

type sweepPart struct {
	Words string
	Chart template.HTML
	Rows  [][4]string
}

type runRow struct {
	Colour                                                                               string
	Name, Workload, Threads, Rate, Time, TPS, QPS, Avg, P50, P95, P99, P999, Max, Errors string
}

type kindRow struct{ Run, Name, Count, PerMinute, P50, P95, P99, Max string }

type statementRow struct{ Run, Count, Avg, P95, Max, SQL string }

type errorRow struct{ Run, Label, Count, Message string }

type outageRow struct{ Run, From, For, Kind string }

type variableTable struct {
	Name string
	All  bool
	Rows [][3]string
}

// HTML writes a page that needs nothing but itself; version names the program that made it.
func HTML(w io.Writer, runs []Run, version string) error {
	t, err := template.New("page").Parse(pageSource)
	if err != nil {
		return fmt.Errorf("read the page: %w", err)
	}
	return t.Execute(w, newPage(runs, version))
}

func newPage(runs []Run, version string) page {
	list := groups(runs)
	p := page{Title: title(runs), Version: version}
	if len(runs) > 0 {
		p.Began = runs[0].Began.UTC().Format("2 January 2006 15:04:05 MST")
	}
	p.compare(list)
	p.sweep(list)
	if len(runs) == 1 {
		p.Sentences = append(p.Sentences, runs[0].sentence())
	}
	p.charts(list)
	p.runs(list)
	p.trouble(runs)
	p.environments(runs)
	return p
}

func (p *page) compare(list []Group) {
	all := compareGroups(list)
	bars := intervalBars(all)
	for i, c := range all {
		p.Sentences = append(p.Sentences, c.Words)
		p.Comparisons = append(p.Comparisons, comparisonRow{Of: c.Of, With: c.With, RunsA: fmt.Sprint(c.RunsA), RunsB: fmt.Sprint(c.RunsB), Measure: c.Measure, MedianA: c.MedianA, MedianB: c.MedianB,
			Ratio: digits.Ratio(c.Ratio), Interval: c.interval(), P: digits.Chance(c.P), Test: c.Test, Bar: bars[i], Notes: c.Notes})
		if len(c.Differ) > 0 {
			d := differTable{A: c.With, B: c.Of}
			for _, x := range c.Differ {
				d.Rows = append(d.Rows, [3]string{x.What, orNone(x.A), orNone(x.B)})
			}
			p.Differ = append(p.Differ, d)
		}
	}
}

func (p *page) sweep(list []Group) {
	s := sweep(list)
	if s == nil {
		return
	}
	part := &sweepPart{Words: s.words(), Chart: sweepChart(s).render()}
	for _, x := range s.Points {
		fit, in := s.Fit.Predict(x.N)
		part.Rows = append(part.Rows, [4]string{digits.Count(x.N), digits.Count(x.X), digits.Count(fit), digits.Count(in.Low) + " to " + digits.Count(in.High)})
	}
	p.Sweep = part
}

func (p *page) charts(list []Group) {
	total := 0
	for _, g := range list {
		total += len(g.Runs)
	}
	timed := false
	for _, g := range list {
		for _, r := range g.Runs {
			timed = timed || len(r.Timeline) > 0
		}
	}
	if timed {
		p.Charts = append(p.Charts, throughputChart(list).render())
	}
	panels := 0
	for _, g := range list {
		for i, r := range g.Runs {
			if panels >= mostPanels || len(r.Timeline) == 0 || (total > mostPanels && i > 0) {
				continue
			}
			panels++
			name := "Latency over time"
			if total > 1 {
				name += ": " + g.Name
				if len(g.Runs) > 1 {
					name += fmt.Sprintf(", run %d", i+1)
				}
			}
			p.Charts = append(p.Charts, latencyChart(r, name).render())
		}
	}
	if d := distributionChart(list); d != nil {
		p.Charts = append(p.Charts, d.render())
	}
	if total == 1 && list[0].Runs[0].Rate > 0 {
		if b := backlogChart(list[0].Runs[0]); b != nil {
			p.Charts = append(p.Charts, b.render())
		}
	}
}

func (p *page) runs(list []Group) {
	colour := colours(list)
	for _, g := range list {
		for _, r := range g.Runs {
			l := r.Latency
			row := runRow{Name: r.Name, Workload: r.Workload, Threads: digits.Thousands(int64(r.Threads)), Time: digits.Seconds(r.Seconds), TPS: digits.Count(r.TransactionsPerSecond), QPS: digits.Count(r.QueriesPerSecond),
				Avg: digits.Seconds(l.Avg), P50: digits.Seconds(l.At(50)), P95: digits.Seconds(l.At(95)), P99: digits.Seconds(l.At(99)), P999: digits.Seconds(l.At(99.9)), Max: digits.Seconds(l.Max), Errors: digits.Thousands(r.failures())}
			if r.Rate > 0 {
				row.Rate = digits.Count(r.Rate) + "/s"
			}
			if len(list) > 1 {
				row.Colour = colourClass(colour[r.Result])
			}
			p.Runs = append(p.Runs, row)
			if r.Use != nil {
				p.Trust = append(p.Trust, [2]string{r.Name, r.Use.Line()})
			}
			for _, s := range r.Statements {
				p.Statements = append(p.Statements, statementRow{r.Name, digits.Thousands(s.Count), digits.Seconds(s.Latency.Avg), digits.Seconds(s.Latency.At(95)), digits.Seconds(s.Latency.Max), s.SQL})
			}
			for _, k := range r.Kinds {
				p.Kinds = append(p.Kinds, kindRow{r.Name, k.Name, digits.Thousands(k.Transactions), digits.Count(k.PerMinute), digits.Seconds(k.Latency.At(50)), digits.Seconds(k.Latency.At(95)), digits.Seconds(k.Latency.At(99)), digits.Seconds(k.Latency.Max)})
			}
		}
	}
}

func (p *page) trouble(runs []Run) {
	for _, r := range runs {
		for _, e := range r.Errors {
			p.Errors = append(p.Errors, errorRow{r.Name, e.Label, digits.Thousands(e.Count), e.Message})
		}
		for _, o := range r.Outages {
			at := r.Began.Add(time.Duration(o.From * float64(time.Second))).UTC().Format("15:04:05.000 MST")
			p.Outages = append(p.Outages, outageRow{r.Name, fmt.Sprintf("%s (%s)", digits.Seconds(o.From), at), digits.Seconds(float64(o.Milliseconds) / 1000), outageKind(o.Errors)})
		}
	}
}

func (p *page) environments(runs []Run) {
	p.Names, p.Facts = environmentTable(runs)
	for i := len(p.Facts) - 1; i > 0; i-- { // a group's name precedes its first fact only
		if p.Facts[i].Group == p.Facts[i-1].Group {
			p.Facts[i].Group = ""
		}
	}
	for _, r := range oneOfEach(runs) {
		v := variableTable{Name: r.Name, All: r.Environment.Server.AllVariables}
		for _, x := range r.Environment.Server.Changed {
			v.Rows = append(v.Rows, [3]string{x.Name, x.Value, x.Source})
		}
		if len(v.Rows) > 0 {
			p.Variables = append(p.Variables, v)
		}
		p.Unknown = append(p.Unknown, r.Environment.Unknown...)
	}
}
