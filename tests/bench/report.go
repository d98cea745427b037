package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what a run found out.
type report struct {
	Bench    string     `json:"bench"`
	Quick    bool       `json:"quick"`
	Started  time.Time  `json:"started"`
	Machine  string     `json:"machine"`
	Sections []*section `json:"sections"`
	Goals    []goal     `json:"goals"`
}

// section is a part of it: tables for people, figures for programs.
type section struct {
	Name    string             `json:"name"`
	Title   string             `json:"title"`
	Seconds float64            `json:"seconds"`       // it took
	Load    []float64          `json:"load_averages"` // of the machine at its begin and end: what else ran makes caches cold
	Figures map[string]float64 `json:"figures"`
	Tables  []*table           `json:"tables"`
	Notes   []string           `json:"notes,omitempty"`

	report *report
}

type table struct {
	Title string     `json:"title"`
	Head  []string   `json:"head"`
	Rows  [][]string `json:"rows"`
}

// goal is a promise and what was measured.
type goal struct {
	Section string  `json:"section"`
	What    string  `json:"what"`
	Want    string  `json:"want"`
	Limit   float64 `json:"limit"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Met     bool    `json:"met"`
}

func newReport(name string, quick bool) *report {
	return &report{Bench: name, Quick: quick, Started: time.Now().UTC().Truncate(time.Second), Machine: machine()}
}

// machine is the processor, how many of it there are, and the memory.
func machine() string {
	model, memory := runtime.GOARCH, ""
	for path, key := range map[string]string{"/proc/cpuinfo": "model name", "/proc/meminfo": "MemTotal"} {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		for sc := bufio.NewScanner(f); sc.Scan(); {
			k, v, ok := strings.Cut(sc.Text(), ":")
			if !ok || strings.TrimSpace(k) != key {
				continue
			}
			if key == "MemTotal" {
				memory = strings.TrimSpace(v)
			} else {
				model = strings.TrimSpace(v)
			}
			break
		}
		f.Close()
	}
	return fmt.Sprintf("%d × %s, %s of memory, %s", runtime.NumCPU(), model, memory, runtime.GOOS)
}

// loadAverage is that of the last minute.
func loadAverage() float64 {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	v, err := strconv.ParseFloat(strings.Fields(string(b) + " 0")[0], 64)
	if err != nil {
		return 0
	}
	return v
}

func (r *report) section(name, title string) *section {
	s := &section{Name: name, Title: title, Figures: map[string]float64{}, report: r}
	r.Sections = append(r.Sections, s)
	return s
}

func (s *section) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

func (s *section) table(title string, head ...string) *table {
	t := &table{Title: title, Head: head}
	s.Tables = append(s.Tables, t)
	return t
}

func (t *table) row(cells ...string) { t.Rows = append(t.Rows, cells) }

// below promises a value under a limit.
func (s *section) below(what string, value, limit float64, unit string) {
	s.goal(goal{What: what, Want: "< " + figure(limit) + unit, Limit: limit, Value: value, Unit: unit, Met: value < limit})
}

// atLeast promises a value at or over a limit.
func (s *section) atLeast(what string, value, limit float64, unit string) {
	s.goal(goal{What: what, Want: "≥ " + figure(limit) + unit, Limit: limit, Value: value, Unit: unit, Met: value >= limit})
}

func (s *section) goal(g goal) {
	g.Section = s.Name
	s.report.Goals = append(s.report.Goals, g)
}

// figure writes a number with three figures that matter.
func figure(v float64) string {
	switch a := max(v, -v); {
	case a >= 1e15 || a != a:
		return fmt.Sprint(v)
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
	case a >= 1:
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
	default:
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", v), "0"), ".")
	}
}

func (s *section) text(w io.Writer) {
	fmt.Fprintf(w, "\n== %s: %s (%.0f s; load averages %v)\n", s.Name, s.Title, s.Seconds, s.Load)
	for _, t := range s.Tables {
		t.text(w)
	}
	for _, n := range s.Notes {
		fmt.Fprintln(w, "  "+n)
	}
}

func (t *table) text(w io.Writer) {
	if t.Title != "" {
		fmt.Fprintln(w, "\n  "+t.Title)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "  "+strings.Join(t.Head, "\t"))
	for _, r := range t.Rows {
		fmt.Fprintln(tw, "  "+strings.Join(r, "\t"))
	}
	tw.Flush()
}

func (r *report) text(w io.Writer) {
	t := table{Head: []string{"section", "goal", "want", "measured", ""}}
	for _, g := range r.Goals {
		word := "met"
		if !g.Met {
			word = "NOT MET"
		}
		t.row(g.Section, g.What, g.Want, figure(g.Value)+g.Unit, word)
	}
	fmt.Fprintf(w, "\n== goals (%s)\n", r.Machine)
	t.text(w)
	if r.Quick {
		fmt.Fprintln(w, "  --quick: too short to judge by.")
	}
}

func (r *report) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// median is the middle of the values, or the mean of the two in the middle.
func median(v []float64) float64 { return quantile(v, 0.5) }

// quantile is linear between the two values next to it.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Clone(v)
	slices.Sort(v)
	at := q * float64(len(v)-1)
	i := int(at)
	if i+1 >= len(v) {
		return v[len(v)-1]
	}
	return v[i] + (v[i+1]-v[i])*(at-float64(i))
}
