// Package report writes results of benchmarks for people and for other programs: CSV, Markdown, and a page of HTML that
// needs nothing but itself. Its charts are drawn here, as SVG.
package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/measure/stats"
)

// Run is a result with the name that it goes by in a report.
type Run struct {
	Name string
	*bench.Result
}

// ReadFiles reads results from files; "-" is stdin. Runs are named after their files, and after the folders of these where files of
// several folders are called alike: before/run-1.json and after/run-1.json are two things.
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

// groups puts runs of the same thing together: those of files that are called alike but for a number at the end, with the
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
			g.Name = fmt.Sprintf("%s %s, %s", k.name, k.workload, counted(k.threads, "thread"))
			if k.rate > 0 {
				g.Name += fmt.Sprintf(", %s/s", number(k.rate))
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

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%s %ss", digits.Thousands(int64(n)), what)
}

// Comparison says how the runs of a group stand to those of the first one.
type Comparison struct {
	Of, With  string
	RunsA     int
	RunsB     int
	MedianA   float64
	MedianB   float64
	Ratio     float64
	Low, High float64 // NaN: too few runs for an interval
	P         float64
	Words     string
	Differ    []environ.Difference
}

// confidence of all intervals.
const confidence = 0.95

// compare compares each group with the first, by transactions a second.
func compare(list []Group) []Comparison {
	if len(list) < 2 || sweep(list) != nil {
		return nil
	}
	var out []Comparison
	a := list[0]
	for _, b := range list[1:] {
		c := Comparison{Of: b.Name, With: a.Name, RunsA: len(a.Runs), RunsB: len(b.Runs), Low: math.NaN(), High: math.NaN(), P: math.NaN()}
		va, vb := throughputs(a), throughputs(b)
		c.MedianA, c.MedianB = stats.Median(va), stats.Median(vb)
		c.Ratio = c.MedianB / c.MedianA
		if t, err := stats.Compare(va, vb, confidence); err == nil {
			c.Ratio, c.Low, c.High, c.P = t.Ratio, t.Low, t.High, t.P
		}
		c.Words = c.words()
		c.Differ = environ.Differences(a.Runs[0].Environment, b.Runs[0].Environment)
		out = append(out, c)
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

func (c Comparison) words() string {
	switch {
	case math.IsNaN(c.Ratio) || math.IsInf(c.Ratio, 0) || c.Ratio <= 0:
		return fmt.Sprintf("%s cannot be compared with %s: one of them did nothing.", c.Of, c.With)
	case math.IsNaN(c.P):
		return fmt.Sprintf("%s did %s times the transactions of %s. One run each says nothing of chance: repeat both (risso bench compare).", c.Of, factor(c.Ratio), c.With)
	case c.Low <= 1 && c.High >= 1:
		return fmt.Sprintf("No difference between %s and %s can be told: %s times, %.0f %% interval %s to %s.", c.Of, c.With, factor(c.Ratio), confidence*100, factor(c.Low), factor(c.High))
	case c.Ratio > 1:
		return fmt.Sprintf("%s is %s times as fast as %s, %.0f %% interval %s to %s.", c.Of, factor(c.Ratio), c.With, confidence*100, factor(c.Low), factor(c.High))
	default:
		return fmt.Sprintf("%s is slower: %s times the transactions of %s, %.0f %% interval %s to %s.", c.Of, factor(c.Ratio), c.With, confidence*100, factor(c.Low), factor(c.High))
	}
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

// steadyLeast is from how many seconds on it is told whether a run was steady.
const steadyLeast = 10

// sentence tells one run in a sentence.
func (r Run) sentence() string {
	s := fmt.Sprintf("%s with %s", r.Workload, counted(r.Threads, "session"))
	if r.Rate > 0 {
		s += fmt.Sprintf(" at %s transactions/s", number(r.Rate))
	}
	s += fmt.Sprintf(" for %s: %s transactions/s, %s queries/s", duration(r.Seconds), number(r.TransactionsPerSecond), number(r.QueriesPerSecond))
	if len(r.Latency.Percentiles) > 0 {
		s += fmt.Sprintf("; half within %s, 99 of 100 within %s, the slowest %s", seconds(r.Latency.At(50)), seconds(r.Latency.At(99)), seconds(r.Latency.Max))
	}
	if r.Headline != nil {
		s += "; " + r.Headline.String()
	}
	s += "."
	if r.Interrupted {
		s += " The run was ended early."
	}
	if n := r.failures(); n > 0 {
		s += fmt.Sprintf(" %s.", capital(counted(int(n), "error")))
	}
	if n := len(r.Outages); n > 0 {
		s += fmt.Sprintf(" %s of %s ms in all without any success.", capital(counted(n, "span")), digits.Thousands(r.outageMS()))
	}
	if r.Unfinished > 0 {
		s += fmt.Sprintf(" %s were given up: the server did not answer.", digits.Thousands(r.Unfinished))
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
		s += fmt.Sprintf(" %s transactions never began: the server cannot do that rate.", digits.Thousands(b.NeverStarted))
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
