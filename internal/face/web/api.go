package web

import (
	"errors"
	"math"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/state"
)

const maxPoints = 4000 // of one chart line: more than any screen has

// num is a float that JSON can carry: NaN and infinities are null.
type num float64

// MarshalJSON writes null for what is no number.
func (n num) MarshalJSON() ([]byte, error) { return appendNum(nil, float64(n)), nil }

func appendNum(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', 7, 64)
}

// nums is a list of them.
type nums []float64

// MarshalJSON writes the list without reflection: charts are nothing but numbers.
func (n nums) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, len(n)*8+2)
	b = append(b, '[')
	for i, v := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendNum(b, v)
	}
	return append(b, ']'), nil
}

func param(q url.Values, name string, fallback int64) (int64, error) {
	s := q.Get(name)
	if s == "" {
		return fallback, nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.Abs(v) > 1e12 {
		return 0, badRequest(name+" must be a number", "times are unix seconds")
	}
	return int64(v), nil
}

// timeRange reads from and to; without them it is the last hour.
func timeRange(q url.Values) (from, to int64, err error) {
	if to, err = param(q, "to", time.Now().Unix()); err != nil {
		return
	}
	if from, err = param(q, "from", to-3600); err != nil {
		return
	}
	if from >= to {
		return 0, 0, badRequest("from must be before to", "")
	}
	return from, to, nil
}

func (s *server) instance(r *http.Request) (any, error) {
	id := r.URL.Query().Get("id")
	d, ok := s.Live.Detail(id)
	if !ok {
		return nil, failed(http.StatusNotFound, "no instance "+strconv.Quote(id), "GET /api/fleet lists them")
	}
	return d, nil
}

func (s *server) fleet(*http.Request) (any, error) {
	now := time.Now()
	rows := s.Live.Fleet(now)
	return map[string]any{"now": float64(now.UnixMilli()) / 1000, "version": s.Version, "instances": rows}, nil
}

// metricRow is one metric in the list that the page searches.
type metricRow struct {
	Key      string            `json:"key"`
	Name     string            `json:"name"`
	Labels   map[string]string `json:"labels"`
	Type     string            `json:"type"`
	Unit     string            `json:"unit"`
	Help     string            `json:"help"`
	Source   string            `json:"source"`
	Last     num               `json:"last"`
	Constant bool              `json:"constant"`
}

func (s *server) metrics(r *http.Request) (any, error) {
	id := r.URL.Query().Get("instance")
	live, ok := s.Live.Metrics(id)
	rows := make([]metricRow, 0, len(live))
	seen := make(map[string]bool, len(live))
	for _, m := range live {
		seen[m.Key()] = true
		rows = append(rows, metricRow{Key: m.Key(), Name: m.Name, Labels: labelMap(m.Labels), Type: typeWord(m.Counter), Unit: m.Unit, Help: m.Help, Source: m.Source, Last: num(m.Last), Constant: m.Constant})
	}
	now := time.Now().Unix()
	for _, d := range s.Numbers.Descs(id, now-86400, now) {
		if seen[d.Key()] {
			continue
		}
		labels := make(map[string]string, len(d.Labels))
		for _, l := range d.Labels {
			labels[l.Name] = l.Value
		}
		rows = append(rows, metricRow{Key: d.Key(), Name: d.Name, Labels: labels, Type: typeWord(d.Type == series.Counter), Last: num(math.NaN())})
	}
	if !ok && len(rows) == 0 {
		return nil, failed(http.StatusNotFound, "no instance "+strconv.Quote(id), "")
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i].Key < rows[j].Key })
	return map[string]any{"metrics": rows}, nil
}

func labelMap(labels []fleet.Label) map[string]string {
	m := make(map[string]string, len(labels))
	for _, l := range labels {
		m[l.Name] = l.Value
	}
	return m
}

func typeWord(counter bool) string {
	if counter {
		return "counter"
	}
	return "gauge"
}

// chartSteps are the bucket widths that charts use, in seconds.
var chartSteps = []int64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 7 * 86400}

// hoursFrom is the span from which a bucket is an hour at least: the store keeps the extremes of hours, and need not read every second.
const hoursFrom = 15 * 86400

func stepFor(span, points int64) int64 {
	for _, s := range chartSteps {
		if span > hoursFrom && s < 3600 {
			continue
		}
		if span <= s*points {
			return s
		}
	}
	return chartSteps[len(chartSteps)-1]
}

type chartLine struct {
	Key  string `json:"key"`
	Type string `json:"type"`
	Unit string `json:"unit"`
	N    []int  `json:"n,omitempty"`
	Avg  nums   `json:"avg"`
	Min  nums   `json:"min,omitempty"`
	Max  nums   `json:"max,omitempty"`
	P5   nums   `json:"p5,omitempty"`
	P50  nums   `json:"p50,omitempty"`
	P95  nums   `json:"p95,omitempty"`
}

func (s *server) chart(r *http.Request) (any, error) {
	q := r.URL.Query()
	id, keys := q.Get("instance"), q["key"]
	if id == "" || len(keys) == 0 {
		return nil, badRequest("instance and at least one key are needed", "/api/chart?instance=ID&key=mysql_global_status_questions")
	}
	if len(keys) > 500 {
		return nil, badRequest("too many keys in one request", "ask for at most 500")
	}
	from, to, err := timeRange(q)
	if err != nil {
		return nil, err
	}
	points, err := param(q, "points", 600)
	if err != nil {
		return nil, err
	}
	points = min(max(points, 2), maxPoints)
	step, err := param(q, "step", stepFor(to-from, points))
	if err != nil {
		return nil, err
	}
	if step < 1 || (to-from)/step > maxPoints {
		return nil, badRequest("step must leave at most "+strconv.Itoa(maxPoints)+" points", "")
	}
	if most := int64(s.Limits.Samples / 6); int64(len(keys))*((to-from)/step) > most { // a point has six values
		return nil, failed(http.StatusUnprocessableEntity, "the chart has more than "+strconv.FormatInt(most, 10)+" points in all", "ask for fewer series, or larger steps")
	}
	from -= from % step
	bands, err := s.Numbers.Bands(r.Context(), id, keys, from, to, step)
	if errors.Is(err, series.ErrRange) {
		return nil, badRequest(err.Error(), "")
	} else if err != nil {
		return nil, err
	}
	lines := make([]chartLine, len(bands))
	for i, b := range bands {
		lines[i] = line(b, s.Live.Unit(id, keys[i]))
	}
	return map[string]any{"from": from, "to": to, "step": step, "series": lines}, nil
}

func (s *server) events(r *http.Request) (any, error) {
	q := r.URL.Query()
	from, to, err := timeRange(q)
	if err != nil {
		return nil, err
	}
	limit, err := param(q, "limit", 500)
	if err != nil {
		return nil, err
	}
	query := state.EventQuery{From: time.Unix(from, 0), To: time.Unix(to+1, 0), Limit: int(min(max(limit, 1), 5000))}
	if id := q.Get("instance"); id != "" { // with what happened to Risso itself
		query.Instances = []string{id, ""}
	}
	for _, k := range q["kind"] {
		query.Kinds = append(query.Kinds, fleet.EventKind(k))
	}
	if err := query.Severity.UnmarshalText([]byte(q.Get("severity"))); err != nil {
		return nil, err
	}
	list, err := s.Facts.Events(r.Context(), query)
	if err != nil {
		return nil, err
	}
	if list == nil {
		list = []fleet.Event{}
	}
	return map[string]any{"events": list}, nil
}

// findings are the kept findings that held at some moment of a range, the newest first.
func (s *server) findings(r *http.Request) (any, error) {
	q := r.URL.Query()
	from, to, err := timeRange(q)
	if err != nil {
		return nil, err
	}
	limit, err := param(q, "limit", 500)
	if err != nil {
		return nil, err
	}
	query := state.FindingQuery{From: time.Unix(from, 0), To: time.Unix(to+1, 0), Open: q.Get("open") == "true", Limit: int(min(max(limit, 1), 5000))}
	if id := q.Get("instance"); id != "" {
		query.Instances = []string{id}
	}
	list, err := s.Facts.Findings(r.Context(), query)
	if err != nil {
		return nil, err
	}
	if list == nil {
		list = []state.FindingRecord{}
	}
	return map[string]any{"findings": list}, nil
}

type variableRow struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Changed *int64 `json:"changed"` // unix seconds; null when it never changed while watched
}

func (s *server) variables(r *http.Request) (any, error) {
	q := r.URL.Query()
	at, err := param(q, "at", time.Now().Unix())
	if err != nil {
		return nil, err
	}
	list, err := s.Facts.Variables(r.Context(), q.Get("instance"), time.Unix(at, 0))
	if err != nil {
		return nil, err
	}
	rows := make([]variableRow, len(list))
	for i, v := range list {
		rows[i] = variableRow{Name: v.Name, Value: v.Value}
		if !v.Changed.IsZero() {
			t := v.Changed.Unix()
			rows[i].Changed = &t
		}
	}
	return map[string]any{"variables": rows}, nil
}
