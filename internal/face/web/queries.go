package web

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"github.com/rissodb/risso/internal/explain/history"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sqltext"
	"github.com/rissodb/risso/internal/store/events"
)

// Statements is what the web face needs to answer questions about statements.
type Statements struct {
	Store   events.Store            // nil: there is none
	Missing fleet.Trouble           // why there is none, and how to fix it
	Sources func() []history.Status // how collecting goes, by instance
}

// queriesGone answers every question while there is no store; false when there is one.
func (s *server) queriesGone() (any, bool) {
	if s.Statements.Store != nil {
		return nil, false
	}
	why := s.Statements.Missing.Why
	if why == "" {
		why = "this Risso keeps no statements"
	}
	return map[string]any{"available": false, "why": why, "remedy": s.Statements.Missing.Remedy}, true
}

// questionError makes an error of the store one that a client understands.
func questionError(err error) error {
	switch {
	case errors.Is(err, events.ErrBadQuestion):
		return badRequest(err.Error(), "")
	case errors.Is(err, events.ErrMemory):
		return fmt.Errorf("%w: ask for a shorter range, or later: %w", errMemory, err)
	}
	return err
}

// sources is how collecting goes on the instances that are asked for.
func (s *server) sources(instances []string) []history.Status {
	out := []history.Status{}
	if s.Statements.Sources == nil {
		return out
	}
	for _, st := range s.Statements.Sources() {
		if wanted(instances, st.Instance) {
			out = append(out, st)
		}
	}
	return out
}

func wanted(instances []string, id string) bool {
	for _, i := range instances {
		if i == id {
			return true
		}
	}
	return len(instances) == 0
}

// statementRange is a range of whole minutes; without from and to the last hour.
func statementRange(q url.Values, from, to string) (events.Range, error) {
	v := url.Values{}
	if f := q.Get(from); f != "" {
		v.Set("from", f)
	}
	if t := q.Get(to); t != "" {
		v.Set("to", t)
	}
	f, t, err := timeRange(v)
	return events.Range{From: f, To: t}, err
}

// instancesOf reads instance, which may be repeated; none means all.
func instancesOf(q url.Values) ([]string, error) {
	list := []string{}
	for _, i := range q["instance"] {
		if i != "" {
			list = append(list, i)
		}
	}
	if len(list) > 1000 {
		return nil, badRequest("too many instances in one request", "ask for at most 1000, or leave instance out for all")
	}
	return list, nil
}

// count reads a number between 1 and most.
func count(q url.Values, name string, fallback, most int64) (int, error) {
	n, err := param(q, name, fallback)
	if err != nil {
		return 0, err
	}
	if n < 1 || n > most {
		return 0, badRequest(name+" must be 1 to "+strconv.FormatInt(most, 10), "")
	}
	return int(n), nil
}

// costJSON is a cost with the figures that people compare.
type costJSON struct {
	fleet.Cost
	CallsPerSecond      num `json:"calls_per_second"`
	Load                num `json:"load"`
	Avg                 num `json:"avg"`
	ExaminedPerSent     num `json:"rows_examined_per_sent"`
	RowsSentPerCall     num `json:"rows_sent_per_call"`
	RowsExaminedPerCall num `json:"rows_examined_per_call"`
}

func ratio(a, b float64) num {
	if b == 0 {
		return num(math.NaN())
	}
	return num(a / b)
}

func costOf(c fleet.Cost, seconds float64) costJSON {
	calls := float64(c.Calls)
	return costJSON{Cost: c, CallsPerSecond: ratio(calls, seconds), Load: ratio(c.Seconds, seconds), Avg: ratio(c.Seconds, calls),
		ExaminedPerSent: ratio(float64(c.RowsExamined), float64(c.RowsSent)), RowsSentPerCall: ratio(float64(c.RowsSent), calls), RowsExaminedPerCall: ratio(float64(c.RowsExamined), calls)}
}

// queryRow is one class in the list.
type queryRow struct {
	ID          string `json:"id"`
	Fingerprint string `json:"fingerprint"`
	Verb        string `json:"verb"`
	Tables      string `json:"tables"`
	costJSON
	Share     num             `json:"share"`
	Latency   *events.Latency `json:"latency"`
	Instances int64           `json:"instances"`
	FirstSeen int64           `json:"first_seen"`
	LastSeen  int64           `json:"last_seen"`
	New       bool            `json:"new"`
	Spark     nums            `json:"spark"`
	Flips     int             `json:"flips"`
	Wait      *events.Part    `json:"wait"`
}

// queries is GET /api/queries: what cost most in a range.
func (s *server) queries(r *http.Request) (any, error) {
	if gone, ok := s.queriesGone(); ok {
		return gone, nil
	}
	q := r.URL.Query()
	ask := events.TopQuestion{Order: q.Get("order"), Search: q.Get("search"), Schemas: q["schema"]}
	var err error
	if ask.Range, err = statementRange(q, "from", "to"); err != nil {
		return nil, err
	}
	if ask.Instances, err = instancesOf(q); err != nil {
		return nil, err
	}
	if ask.Limit, err = count(q, "limit", 20, events.MaxLimit); err != nil {
		return nil, err
	}
	if ask.Sparks, err = count(q, "points", 40, 200); err != nil {
		return nil, err
	}
	a, err := s.Statements.Store.Top(r.Context(), ask)
	if err != nil {
		return nil, questionError(err)
	}
	covered, err := s.covered(r.Context(), ask.Range, ask.Instances, ask.Sparks)
	if err != nil {
		return nil, err
	}
	span := float64(ask.To - ask.From)
	rows := make([]queryRow, len(a.Classes))
	for i, c := range a.Classes {
		rows[i] = queryRow{ID: c.ID, Fingerprint: c.Fingerprint, Verb: c.Verb, Tables: c.Tables, costJSON: costOf(c.Cost, span), Share: ratio(c.Seconds, a.Total.Seconds), Latency: c.Latency,
			Instances: c.Instances, FirstSeen: c.FirstSeen, LastSeen: c.LastSeen, Spark: nums(c.Spark), Flips: c.Flips, Wait: c.Wait,
			// New is what was not there before, as far as is known: not what ran when Risso began to look.
			New: c.FirstSeen >= ask.From && c.FirstSeen >= a.First+newAfter}
	}
	return map[string]any{"available": true, "from": ask.From, "to": ask.To, "order": first(ask.Order, "load"), "classes": rows, "count": a.Count, "total": costOf(a.Total, span),
		"first": a.First, "spark": map[string]int64{"from": a.Begin, "step": a.Step}, "covered": covered, "sources": s.sources(ask.Instances), "orders": events.Orders()}, nil
}

// newAfter is how many seconds after the first minute that is kept a class may count as new: daily jobs should have run once.
const newAfter = 86400

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// query is GET /api/query: one class.
func (s *server) query(r *http.Request) (any, error) {
	if gone, ok := s.queriesGone(); ok {
		return gone, nil
	}
	q := r.URL.Query()
	ask := events.ClassQuestion{ID: q.Get("id")}
	var err error
	if ask.Range, err = statementRange(q, "from", "to"); err != nil {
		return nil, err
	}
	if ask.Instances, err = instancesOf(q); err != nil {
		return nil, err
	}
	if ask.Points, err = count(q, "points", 300, events.MaxPoints); err != nil {
		return nil, err
	}
	a, err := s.Statements.Store.Class(r.Context(), ask)
	if err != nil {
		return nil, questionError(err)
	}
	if a.ID == "" {
		return nil, failed(http.StatusNotFound, "no class "+strconv.Quote(ask.ID)+" is known", "GET /api/queries lists classes")
	}
	if a.PtID == "" && len(a.Samples) > 0 { // pt-query-digest names a class by its statements, not by its fingerprint
		a.PtID = sqltext.PtID(a.Samples[0].Text)
	}
	covered, err := s.covered(r.Context(), ask.Range, ask.Instances, ask.Points)
	if err != nil {
		return nil, err
	}
	span := float64(ask.To - ask.From)
	digests := make([]map[string]any, len(a.Digests))
	for i, d := range a.Digests {
		digests[i] = map[string]any{"instance": d.Instance, "digest": d.Digest, "first_seen": d.FirstSeen, "last_seen": d.LastSeen}
	}
	return map[string]any{"available": true, "from": ask.From, "to": ask.To, "step": a.Step,
		"id": a.ID, "pt_id": a.PtID, "fingerprint": a.Fingerprint, "verb": a.Verb, "tables": a.Tables, "first_seen": a.FirstSeen, "last_seen": a.LastSeen,
		"digests": digests, "total": costOf(a.Total, span), "latency": a.Latency, "series": seriesOf(a, ask.Range),
		"by_instance": list(a.ByInstance), "by_schema": list(a.BySchema), "by_user": list(a.ByUser), "by_user_from": a.ByUserFrom, "by_host": list(a.ByHost),
		"waits": list(a.Waits), "blocked_by": list(a.BlockedBy), "activity": activityOf(a), "plan_note": planNote(a, s.sources(ask.Instances)),
		"samples": list(a.Samples), "plans": drawn(a.Plans, a.Samples), "flips": list(a.Flips), "covered": covered, "sources": s.sources(ask.Instances)}, nil
}

// list makes nil an empty list of JSON.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// seriesOf returns the history as columns, a value for each step; nothing ran where calls are 0.
func seriesOf(a *events.ClassAnswer, r events.Range) map[string]any {
	begin := r.From - r.From%a.Step
	n := int((r.To-begin-1)/a.Step) + 1
	at := make([]events.Point, n)
	for _, p := range a.Points {
		if i := (p.Time - begin) / a.Step; i >= 0 && i < int64(n) {
			at[i] = p
		}
	}
	out := map[string]any{}
	times := make([]int64, n)
	for i := range times {
		times[i] = begin + int64(i)*a.Step
	}
	out["time"] = times
	for name, f := range map[string]func(c costJSON, l *events.Latency) float64{
		"calls_per_second":       func(c costJSON, _ *events.Latency) float64 { return float64(c.CallsPerSecond) },
		"load":                   func(c costJSON, _ *events.Latency) float64 { return float64(c.Load) },
		"avg":                    func(c costJSON, _ *events.Latency) float64 { return float64(c.Avg) },
		"max":                    func(c costJSON, _ *events.Latency) float64 { return known(c.MaxSeconds) },
		"lock":                   func(c costJSON, _ *events.Latency) float64 { return c.LockSeconds / float64(a.Step) },
		"rows_sent":              func(c costJSON, _ *events.Latency) float64 { return float64(c.RowsSent) / float64(a.Step) },
		"rows_examined":          func(c costJSON, _ *events.Latency) float64 { return float64(c.RowsExamined) / float64(a.Step) },
		"rows_affected":          func(c costJSON, _ *events.Latency) float64 { return float64(c.RowsAffected) / float64(a.Step) },
		"rows_examined_per_sent": func(c costJSON, _ *events.Latency) float64 { return float64(c.ExaminedPerSent) },
		"errors":                 func(c costJSON, _ *events.Latency) float64 { return float64(c.Errors) },
		"tmp_disk_tables":        func(c costJSON, _ *events.Latency) float64 { return float64(c.TmpDiskTables) },
		"p50": func(_ costJSON, l *events.Latency) float64 {
			return quantileOf(l, func(l *events.Latency) float64 { return l.P50 })
		},
		"p95": func(_ costJSON, l *events.Latency) float64 {
			return quantileOf(l, func(l *events.Latency) float64 { return l.P95 })
		},
		"p99": func(_ costJSON, l *events.Latency) float64 {
			return quantileOf(l, func(l *events.Latency) float64 { return l.P99 })
		},
	} {
		values := make(nums, n)
		for i, p := range at {
			values[i] = f(costOf(p.Cost, float64(a.Step)), p.Latency)
		}
		out[name] = values
	}
	return out
}

// known is a figure of which 0 says that it is not known.
func known(v float64) float64 {
	if v == 0 {
		return math.NaN()
	}
	return v
}

func quantileOf(l *events.Latency, f func(*events.Latency) float64) float64 {
	if l == nil {
		return math.NaN()
	}
	return f(l)
}

// changeRow is one class in a comparison.
type changeRow struct {
	ID          string        `json:"id"`
	Fingerprint string        `json:"fingerprint"`
	Verb        string        `json:"verb"`
	Kind        string        `json:"kind"`
	FirstSeen   int64         `json:"first_seen"`
	A           costJSON      `json:"a"`
	B           costJSON      `json:"b"`
	Delta       num           `json:"delta"`
	Slower      num           `json:"slower"`
	Oftener     num           `json:"oftener"`
	Share       num           `json:"share"`
	AvgFactor   num           `json:"avg_factor"`
	RateFactor  num           `json:"rate_factor"`
	Flips       []events.Flip `json:"flips"`
}

// compare is GET /api/queries/compare: what changed from the range from–to to the range from2–to2.
func (s *server) compare(r *http.Request) (any, error) {
	if gone, ok := s.queriesGone(); ok {
		return gone, nil
	}
	q := r.URL.Query()
	for _, name := range []string{"from", "to", "from2", "to2"} {
		if q.Get(name) == "" {
			return nil, badRequest("from, to, from2 and to2 are needed", "the first range is before, the second after; in unix seconds")
		}
	}
	ask := events.CompareQuestion{Schemas: q["schema"]}
	var err error
	if ask.A, err = statementRange(q, "from", "to"); err != nil {
		return nil, err
	}
	if ask.B, err = statementRange(q, "from2", "to2"); err != nil {
		return nil, err
	}
	if ask.Instances, err = instancesOf(q); err != nil {
		return nil, err
	}
	if ask.Limit, err = count(q, "limit", 30, events.MaxLimit); err != nil {
		return nil, err
	}
	a, err := s.Statements.Store.Compare(r.Context(), ask)
	if err != nil {
		return nil, questionError(err)
	}
	spanA, spanB := float64(ask.A.To-ask.A.From), float64(ask.B.To-ask.B.From)
	rows := make([]changeRow, len(a.Changes))
	for i, c := range a.Changes {
		ca, cb := costOf(c.A, spanA), costOf(c.B, spanB)
		rows[i] = changeRow{ID: c.ID, Fingerprint: c.Fingerprint, Verb: c.Verb, Kind: c.Kind, FirstSeen: c.FirstSeen, A: ca, B: cb, Delta: num(c.Delta), Slower: num(c.Slower), Oftener: num(c.Oftener),
			Share: num(c.Share), AvgFactor: ratio(float64(cb.Avg), float64(ca.Avg)), RateFactor: ratio(float64(cb.CallsPerSecond), float64(ca.CallsPerSecond)), Flips: list(c.Flips)}
	}
	return map[string]any{"available": true, "a": costOf(a.A, spanA), "b": costOf(a.B, spanB), "changes": rows, "count": a.Count, "cut": a.Cut,
		"from": ask.A.From, "to": ask.A.To, "from2": ask.B.From, "to2": ask.B.To, "sources": s.sources(ask.Instances)}, nil
}
