package report

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/explain/digest"
)

// figureJSON is a number, or null if unknown.
type figureJSON float64

// MarshalJSON writes NaN and infinities as null.
func (f figureJSON) MarshalJSON() ([]byte, error) {
	v := float64(f)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(v)
}

type metricJSON struct {
	Name   string     `json:"name"`
	Unit   string     `json:"unit,omitempty"`
	Count  int64      `json:"count"`
	Sum    figureJSON `json:"sum"`
	Min    figureJSON `json:"min"`
	Max    figureJSON `json:"max"`
	Avg    figureJSON `json:"avg"`
	P95    figureJSON `json:"p95"`
	Median figureJSON `json:"median"`
	Stddev figureJSON `json:"stddev"`
}

type bucketJSON struct {
	Below *float64 `json:"below"` // seconds; null: no bound
	Calls int64    `json:"calls"`
}

// classJSON is a class. The fields calls to databases are stable for scripts; all times are in seconds.
type classJSON struct {
	Rank           int             `json:"rank,omitempty"`
	ID             string          `json:"id,omitempty"`
	PtID           string          `json:"pt_id,omitempty"`   // its ID in pt-query-digest
	PtIDs          []string        `json:"pt_ids,omitempty"`  // its IDs in pt-query-digest, if it is several classes there
	Digests        []string        `json:"digests,omitempty"` // the server's own DIGEST, with --dsn
	Group          string          `json:"group"`
	Fingerprint    string          `json:"fingerprint"`
	Verb           string          `json:"verb"`
	Statement      string          `json:"statement"`
	Calls          int64           `json:"calls"`
	Share          figureJSON      `json:"share"`
	Total          figureJSON      `json:"total"`
	Min            figureJSON      `json:"min"`
	Max            figureJSON      `json:"max"`
	Avg            figureJSON      `json:"avg"`
	P95            figureJSON      `json:"p95"`
	Median         figureJSON      `json:"median"`
	Stddev         figureJSON      `json:"stddev"`
	VarianceToMean figureJSON      `json:"variance_to_mean"`
	Apdex          figureJSON      `json:"apdex"`
	First          *time.Time      `json:"first"`
	Last           *time.Time      `json:"last"`
	Databases      []string        `json:"databases"`
	Users          []string        `json:"users"`
	Hosts          []string        `json:"hosts"`
	Values         []digest.Values `json:"values"`
	Flags          []digest.Flag   `json:"flags"`
	Metrics        []metricJSON    `json:"metrics"`
	Histogram      []bucketJSON    `json:"histogram"`
	Tables         []tableJSON     `json:"tables"`
	Show           []string        `json:"show"` // statements that show its tables
	Sample         string          `json:"sample"`
	Samples        []digest.Sample `json:"samples"`
	Explain        string          `json:"explain,omitempty"` // a statement that shows the sample's plan
}

type tableJSON struct {
	Schema string `json:"schema,omitempty"`
	Name   string `json:"name"`
}

// ProfileJSON is a profile as JSON. Unknown values are null; lists are never null.
type ProfileJSON struct {
	Sources       []digest.SourceInfo `json:"sources"`
	From          *time.Time          `json:"from"`
	To            *time.Time          `json:"to"`
	Seconds       float64             `json:"seconds"` // from the first to the last event
	Calls         int64               `json:"calls"`
	Unique        int                 `json:"unique"`
	GroupBy       string              `json:"group_by"`
	OrderBy       string              `json:"order_by"`
	Filter        string              `json:"filter,omitempty"`
	Metrics       []metricJSON        `json:"metrics"`
	Flags         []digest.Flag       `json:"flags"`
	Histogram     []bucketJSON        `json:"histogram"`
	QuantileError float64             `json:"quantile_error"` // relative error of p95 and median
	Skipped       map[string]int64    `json:"skipped"`
	Lost          *string             `json:"lost"` // what is missing from the profile, in words
	Folded        int64               `json:"folded"`
	FoldedTime    float64             `json:"folded_time"`
	Notes         []string            `json:"notes"`
	Classes       []classJSON         `json:"classes"`
	Other         *classJSON          `json:"other"`
}

// JSON writes a profile as one object.
func JSON(w io.Writer, p *digest.Profile, o Options) error {
	out := ProfileJSON{
		Sources: list(p.Sources), From: stampJSON(p.From), To: stampJSON(p.To), Seconds: p.To.Sub(p.From).Seconds(), Calls: p.Calls, Unique: p.Unique,
		GroupBy: p.GroupBy, OrderBy: p.OrderBy, Filter: o.Filter, Metrics: metricsJSON(p.Metrics), Flags: list(p.Flags), Histogram: histogramJSON(p.Histogram),
		QuantileError: p.QuantileError, Skipped: p.Skipped, Folded: p.Folded, FoldedTime: p.FoldedTime, Notes: list(o.Notes), Classes: []classJSON{},
	}
	if lost := p.Lost(); lost != "" {
		out.Lost = &lost
	}
	if out.Skipped == nil {
		out.Skipped = map[string]int64{}
	}
	for i := range p.Classes {
		c := toJSON(&p.Classes[i], p, o)
		c.Rank = i + 1
		out.Classes = append(out.Classes, c)
	}
	if p.Other != nil {
		c := toJSON(p.Other, p, o)
		out.Other = &c
	}
	long := newLongTexts()
	for i := range out.Classes {
		c := &out.Classes[i]
		c.Sample = long.hold(c.Sample)
		c.Samples = slices.Clone(c.Samples) // the profile's stay as they are
		for k := range c.Samples {
			c.Samples[k].Query = long.hold(c.Samples[k].Query)
		}
	}
	var doc bytes.Buffer
	e := json.NewEncoder(&doc)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(out); err != nil {
		return err
	}
	return long.write(w, doc.Bytes())
}

func toJSON(c *digest.Class, p *digest.Profile, o Options) classJSON {
	t := responseTime(c)
	out := classJSON{
		ID: c.ID, PtID: c.PtID, PtIDs: c.PtIDs, Digests: c.Digests, Group: c.Group, Fingerprint: c.Fingerprint, Verb: c.Verb, Statement: statement(c, p.GroupBy), Calls: c.Calls, Share: figureJSON(math.Round(c.Share*1e12) / 1e12),
		Total: figureJSON(t.Sum), Min: figureJSON(t.Min), Max: figureJSON(t.Max), Avg: figureJSON(t.Avg), P95: figureJSON(t.P95), Median: figureJSON(t.Median), Stddev: figureJSON(t.Stddev),
		VarianceToMean: figureJSON(c.VarianceToMean), Apdex: figureJSON(c.Apdex), First: stampJSON(c.First), Last: stampJSON(c.Last),
		Databases: names(c, "db"), Users: names(c, "user"), Hosts: names(c, "host"), Values: list(c.Values), Flags: list(c.Flags),
		Metrics: metricsJSON(c.Metrics), Histogram: histogramJSON(c.Histogram), Tables: []tableJSON{}, Show: list(showCommands(c)), Samples: list(c.Samples),
	}
	if t.Count == 0 {
		out.VarianceToMean, out.Apdex = figureJSON(math.NaN()), figureJSON(math.NaN())
	}
	for _, x := range c.Tables {
		out.Tables = append(out.Tables, tableJSON{x.Schema, x.Name})
	}
	if len(c.Samples) > 0 {
		out.Sample = c.Samples[0].Query
		out.Explain, _ = explainable(c.Samples[0], c.Verb, serverOf(p), o.Redacted)
	}
	return out
}

// responseTime is the class's Query_time; unknown figures if the source has none.
func responseTime(c *digest.Class) digest.Metric {
	t := c.Metric(queryTime)
	if t.Count == 0 {
		nan := math.NaN()
		return digest.Metric{Sum: nan, Min: nan, Max: nan, Avg: nan, P95: nan, Median: nan, Stddev: nan}
	}
	return t
}

func list[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

func stampJSON(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func metricsJSON(in []digest.Metric) []metricJSON {
	out := make([]metricJSON, 0, len(in))
	for _, m := range in {
		out = append(out, metricJSON{m.Name, m.Unit, m.Count, figureJSON(m.Sum), figureJSON(m.Min), figureJSON(m.Max), figureJSON(m.Avg), figureJSON(m.P95), figureJSON(m.Median), figureJSON(m.Stddev)})
	}
	return out
}

func histogramJSON(h [8]int64) []bucketJSON {
	out := make([]bucketJSON, len(h))
	below := [7]float64{1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10}
	for i, n := range h {
		out[i].Calls = n
		if i < len(below) {
			out[i].Below = &below[i]
		}
	}
	return out
}

// names are the values of db, user or host, most frequent first.
func names(c *digest.Class, name string) []string {
	out := []string{}
	for _, v := range c.Values {
		if v.Name != name {
			continue
		}
		for _, t := range v.Top {
			if t.Value != "" {
				out = append(out, t.Value)
			}
		}
	}
	return out
}
