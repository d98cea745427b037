// Package report writes results of benchmarks for people and for other programs: CSV, Markdown, and a self-contained
// page of HTML. Its charts are drawn here, as SVG.
package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/compare"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/measure/stats"
)

// Run is a result with the name that it goes by in a report.
type Run struct {
	Name string
	*bench.Result
}

// ReadFiles reads results from files; "-" is stdin. Runs are named after their files, and after their folders if files of
// several folders have the same name: before/run-1.json and after/run-1.json are two things.
func ReadFiles(paths []string, stdin io.Reader) ([]Run, error) {
	var out []Run
	for _, p := range paths {
		list, err := readFile(p, stdin)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(p), ".json")
		if p == "-" {
			name = "stdin"
		} else if slices.ContainsFunc(paths, func(q string) bool { return filepath.Base(q) == filepath.Base(p) && filepath.Dir(q) != filepath.Dir(p) }) {
			name = filepath.Base(filepath.Dir(p)) + "/" + name
		}
		for _, r := range list {
			if r.Name != "" && len(paths) == 1 {
				name = r.Name
			}
			out = append(out, Run{name, r.Result})
		}
	}
	return out, nil
}

func readFile(path string, stdin io.Reader) ([]bench.Named, error) {
	in := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	list, err := bench.Read(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// Group is several runs of the same thing.
type Group struct {
	Name string
	Runs []Run
}

// groups puts runs of the same thing together: those of files whose names differ only in a number at the end, with the
// same workload, threads and rate.
func groups(runs []Run) []Group {
	type key struct {
		name, workload string
		threads        int
		rate           float64
	}
	var order []key
	by := map[key][]Run{}
	plain := map[string]int{} // groups by name
	for _, r := range runs {
		k := key{stem(r.Name), r.Workload, r.Threads, r.Rate}
		if by[k] == nil {
			order = append(order, k)
			plain[k.name]++
		}
		by[k] = append(by[k], r)
	}
	threads := map[string]map[int]bool{}
	for _, k := range order {
		if threads[k.name] == nil {
			threads[k.name] = map[int]bool{}
		}
		threads[k.name][k.threads] = true
	}
	var out []Group
	for _, k := range order {
		g := Group{Name: k.name, Runs: by[k]}
		if len(g.Runs) == 1 && plain[k.name] > 1 && uniqueName(runs, g.Runs[0].Name) {
			g.Name = g.Runs[0].Name
		} else if plain[k.name] > 1 {
			g.Name = fmt.Sprintf("%s %s, %s", k.name, k.workload, digits.Counted(k.threads, "thread"))
			if k.rate > 0 {
				g.Name += fmt.Sprintf(", %s/s", digits.Count(k.rate))
			}
		} else if len(g.Runs) == 1 {
			g.Name = g.Runs[0].Name
		}
		out = append(out, g)
	}
	if sweep(out) != nil { // a sweep reads from few threads to many
		slices.SortStableFunc(out, func(a, b Group) int { return cmp.Compare(a.Runs[0].Threads, b.Runs[0].Threads) })
	}
	return out
}

func uniqueName(runs []Run, name string) bool {
	n := 0
	for _, r := range runs {
		if r.Name == name {
			n++
		}
	}
	return n == 1
}

// stem is a file's name without a number at its end: a-1 and a-2 are two runs of a.
func stem(name string) string {
	s := strings.TrimRight(name, "0123456789")
	if t := strings.TrimRight(s, "-_. "); t != "" && s != name {
		return t
	}
	return name
}

// Comparison compares the runs of a group with those of the first one.
type Comparison struct {
	Of, With  string
	RunsA     int
	RunsB     int
	Measure   string // what is compared: transactions per second, or a latency where the rate was given
	MedianA   string // in its unit
	MedianB   string
	Ratio     float64 // NaN: not compared
	Low, High float64 // NaN: too few runs for an interval
	Held      float64 // the confidence that the interval has
	P         float64
	Test      string // that P comes from
	Words     string
	Notes     []string // what the verdict rests on, and how little it proves
	Differ    []environ.Difference
}

// compareGroups compares each group with the first, as risso bench compare judges two sides.
func compareGroups(list []Group) []Comparison {
	if len(list) < 2 || sweep(list) != nil {
		return nil
	}
	var out []Comparison
	a := list[0]
	for _, b := range list[1:] {
		out = append(out, compareTwo(a, b))
	}
	return out
}

func compareTwo(a, b Group) Comparison {
	c := Comparison{Of: b.Name, With: a.Name, RunsA: len(a.Runs), RunsB: len(b.Runs), Ratio: math.NaN(), Low: math.NaN(), High: math.NaN(), P: math.NaN()}
	c.Differ = environ.Differences(a.Runs[0].Environment, b.Runs[0].Environment)
	x, y := a.side(), b.side()
	if err := compare.Comparable(x, y); err != nil {
		c.Measure, c.MedianA, c.MedianB = "transactions/s", digits.Count(stats.Median(throughputs(a))), digits.Count(stats.Median(throughputs(b)))
		c.Words = fmt.Sprintf("%s and %s are not compared: they did different work, so their transactions are not comparable.", c.Of, c.With)
		if errors.Is(err, compare.ErrTwice) {
			c.Words = fmt.Sprintf("%s and %s are not compared: the same run is given twice.", c.Of, c.With)
		}
		return c
	}
	r := compare.Judge(x, y, compare.Terms{Seed: 1})
	c.Notes = r.Notes
	if len(r.Verdicts) == 0 {
		c.Words = fmt.Sprintf("%s cannot be compared with %s: they have no figure in common.", c.Of, c.With)
		return c
	}
	v := r.Verdicts[0]
	c.Measure, c.Words = v.Measure, v.Sentence()
	if !strings.Contains(c.Words, b.Name) {
		c.Words = fmt.Sprintf("%s against %s: %s", b.Name, a.Name, c.Words)
	}
	inUnit := digits.Count
	if v.Unit == "seconds" {
		inUnit = digits.Seconds
	}
	if v.Comparison == nil { // one run of a side, or hardly any that did something
		t, l := throughputs(a), throughputs(b)
		if v.Unit == "seconds" {
			t, l = percentiles(a, 95), percentiles(b, 95)
		}
		c.MedianA, c.MedianB = inUnit(stats.Median(t)), inUnit(stats.Median(l))
		if ratio := stats.Median(l) / stats.Median(t); ratio > 0 && !math.IsInf(ratio, 0) && v.Outcome == compare.TooFew {
			c.Ratio = ratio
		}
		return c
	}
	c.MedianA, c.MedianB = inUnit(v.MedianA), inUnit(v.MedianB)
	c.Ratio, c.Low, c.High, c.Held, c.P, c.Test = v.Ratio, v.Low, v.High, v.Held, v.P, v.Test
	return c
}

// interval shows the bounds of the ratio.
func (c Comparison) interval() string {
	if math.IsNaN(c.Low) {
		return digits.Unknown
	}
	return fmt.Sprintf("%s to %s (%s)", digits.Ratio(c.Low), digits.Ratio(c.High), digits.Percent(c.Held))
}

// side is a group as one side of a comparison.
func (g Group) side() compare.Side {
	s := compare.Side{Name: g.Name, What: g.Name}
	for _, r := range g.Runs {
		s.Runs = append(s.Runs, r.Result)
	}
	return s
}

func percentiles(g Group, p float64) (out []float64) {
	for _, r := range g.Runs {
		out = append(out, r.Latency.At(p))
	}
	return out
}

func throughputs(g Group) []float64 {
	var out []float64
	for _, r := range g.Runs {
		out = append(out, r.TransactionsPerSecond)
	}
	return out
}

// Sweep is a law of scalability fitted to runs that differ in threads only.
type Sweep struct {
	Points []stats.Point
	Fit    *stats.Fit
}

// sweep fits the law where all groups are one workload at four numbers of threads or more; nil elsewhere.
func sweep(list []Group) *Sweep {
	var s Sweep
	threads := map[int]bool{}
	for _, g := range list {
		first := g.Runs[0]
		if first.Workload != list[0].Runs[0].Workload || first.Rate > 0 || first.ServerVersion != list[0].Runs[0].ServerVersion || first.Server != list[0].Runs[0].Server {
			return nil
		}
		threads[first.Threads] = true
		for _, r := range g.Runs {
			s.Points = append(s.Points, stats.Point{N: float64(r.Threads), X: r.TransactionsPerSecond})
		}
	}
	if len(threads) < 4 || len(threads) < len(list) {
		return nil
	}
	fit, err := stats.FitUSL(s.Points, 1)
	if err != nil {
		return nil
	}
	slices.SortFunc(s.Points, func(a, b stats.Point) int { return cmp.Compare(a.N, b.N) })
	s.Fit = fit
	return &s
}

// steadyLeast is from how many seconds on a run is judged steady or not.
const steadyLeast = 10

// sentence tells one run in a sentence.
func (r Run) sentence() string {
	s := fmt.Sprintf("%s with %s", r.Workload, digits.Counted(r.Threads, "session"))
	if r.Rate > 0 {
		s += fmt.Sprintf(" at %s transactions/s", digits.Count(r.Rate))
	}
	s += fmt.Sprintf(" for %s: %s transactions/s, %s queries/s", digits.Seconds(r.Seconds), digits.Count(r.TransactionsPerSecond), digits.Count(r.QueriesPerSecond))
	if len(r.Latency.Percentiles) > 0 && r.Latency.Max > 0 { // if nothing ended it is unknown how long it takes
		s += fmt.Sprintf("; half within %s, 99 of 100 within %s, the slowest %s", digits.Seconds(r.Latency.At(50)), digits.Seconds(r.Latency.At(99)), digits.Seconds(r.Latency.Max))
	}
	if r.Headline != nil {
		s += "; " + r.Headline.String()
	}
	s += "."
	if r.Interrupted {
		s += " The run was ended early."
	}
	if n := r.failures(); n > 0 {
		s += fmt.Sprintf(" %s.", capital(digits.Counted(int(n), "error")))
	}
	if n := len(r.Outages); n > 0 {
		s += fmt.Sprintf(" %s of %s in total without any success.", capital(digits.Counted(n, "span")), digits.Seconds(float64(r.outageMS())/1000))
	}
	if r.Unfinished > 0 {
		s += fmt.Sprintf(" %s abandoned: the server did not answer.", digits.Plural(r.Unfinished, "was", "were"))
	}
	if l := r.Ledger; l != nil {
		if l.Error != "" {
			s += " The ledger could not be read: " + l.Error + "."
		} else if l.Missing > 0 {
			s += fmt.Sprintf(" %s of %s acknowledged writes are LOST.", digits.Thousands(l.Missing), digits.Thousands(l.Acknowledged))
		} else {
			s += fmt.Sprintf(" None of %s acknowledged writes is missing.", digits.Thousands(l.Acknowledged))
		}
	}
	if r.Steady.Test != "" && len(r.Timeline) >= steadyLeast {
		if r.Steady.Reached {
			s += fmt.Sprintf(" It was steady from second %d on.", r.Steady.FromSecond)
		} else {
			s += " It did not become steady."
		}
	}
	if b := r.Backlog; b != nil && b.NeverStarted > 0 {
		s += fmt.Sprintf(" %s never began: the server, or this number of sessions, cannot sustain that rate.", digits.Counted(b.NeverStarted, "transaction"))
	}
	return s
}

func (r Run) failures() (n int64) {
	for _, e := range r.Errors {
		n += e.Count
	}
	return n
}

func (r Run) outageMS() (ms int64) {
	for _, o := range r.Outages {
		ms += o.Milliseconds
	}
	return ms
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
