package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/series/gaps"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/live"
)

const (
	maxSteps     = 11_000   // of one PromQL query, as Prometheus itself allows
	subqueryStep = 1000     // milliseconds between two steps of a subquery that does not say
	promVersion  = "3.15.0" // whose engine this is: module v0.315.0
)

// promAPI is Prometheus' HTTP API, version 1, as far as Grafana and scripts need it to read
// (https://prometheus.io/docs/prometheus/latest/querying/api/).
type promAPI struct {
	engine *promql.Engine
	parser parser.Parser
	store  PromStore
	live   *live.Board
	limits config.Limits
}

// PromStore is what PromQL queries.
type PromStore interface {
	Queryable() storage.Queryable
	QueryableFor(parser.Expr) storage.Queryable
}

func newPromAPI(store PromStore, board *live.Board, l config.Limits) *promAPI {
	p := parser.NewParser(parser.Options{})
	return &promAPI{store: store, live: board, limits: l, parser: p,
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: l.Samples, Timeout: l.Time, EnableAtModifier: true, EnableNegativeOffset: true, Parser: p,
			NoStepSubqueryIntervalFn: func(int64) int64 { return subqueryStep }})}
}

// promRoutes adds Prometheus' API.
func (s *server) promRoutes(mux *routes) {
	p := s.prom
	for path, h := range map[string]func(*http.Request) (any, error){
		"/api/v1/query": p.query, "/api/v1/query_range": p.queryRange, "/api/v1/series": p.series,
		"/api/v1/labels": p.labels, "/api/v1/label/{name}/values": p.labelValues, "/api/v1/metadata": p.metadata,
		"/api/v1/status/buildinfo": p.buildinfo, "/api/v1/query_exemplars": p.none, "/api/v1/rules": s.promRules,
		"/api/v1/alerts": s.promAlerts,
	} {
		handler := s.guard(state.RoleLook, s.question(s.gate.promql, writePromError, promAnswer(h)))
		mux.Handle("GET "+path, handler)
		mux.Handle("POST "+path, handler)
	}
	federate := s.guard(state.RoleLook, s.question(s.gate.promql, writePromError, p.federate))
	mux.Handle("GET /federate", federate)
	mux.Handle("POST /federate", federate)
	mux.Handle("POST "+remoteReadPath, s.guard(state.RoleLook, http.HandlerFunc(s.remoteRead)))
}

// promError is an error in Prometheus' form.
type promError struct {
	status int
	kind   string // bad_data, execution, timeout, canceled, not_found
	err    error
}

func (e *promError) Error() string { return e.err.Error() }

func badData(format string, args ...any) error {
	return &promError{status: http.StatusBadRequest, kind: "bad_data", err: fmt.Errorf(format, args...)}
}

// promAnswer writes an answer in Prometheus' form.
func promAnswer(h func(*http.Request) (any, error)) func(*http.Request, *answer) error {
	return func(r *http.Request, a *answer) error {
		data, err := h(r)
		if err != nil {
			return err
		}
		if res, ok := data.(*promResult); ok {
			defer res.query.Close()
			return writeResult(a, res.value)
		}
		return json.NewEncoder(a).Encode(map[string]any{"status": "success", "data": data})
	}
}

func writePromError(w http.ResponseWriter, err error) {
	pe, ok := errors.AsType[*promError](err)
	if !ok {
		pe = &promError{status: http.StatusUnprocessableEntity, kind: "execution", err: err}
		_, late := errors.AsType[promql.ErrQueryTimeout](err)
		_, gone := errors.AsType[promql.ErrQueryCanceled](err)
		status, kind, refused := refusal(err)
		bad, ours := errors.AsType[*apiError](err)
		switch {
		case refused:
			pe.status, pe.kind = status, kind
		case late:
			pe.status, pe.kind = http.StatusServiceUnavailable, "timeout"
		case gone:
			pe.status, pe.kind = 499, "canceled"
		case ours:
			pe.status, pe.kind = bad.Status, "bad_data"
		}
	}
	writeStatus(w, pe.status, map[string]string{"status": "error", "errorType": pe.kind, "error": pe.Error()})
}

// promTime reads a time as Prometheus does: unix seconds with a fraction, or RFC 3339.
func promTime(f url.Values, name string, fallback time.Time) (time.Time, error) {
	s := f.Get(name)
	if s == "" {
		return fallback, nil
	}
	if v, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(v) < 1e12 {
		sec, frac := math.Modf(v)
		return time.Unix(int64(sec), int64(math.Round(frac*1000))*int64(time.Millisecond)).UTC(), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	return time.Time{}, badData("cannot parse %q to a valid timestamp in parameter %q", s, name)
}

func promDuration(s string) (time.Duration, error) {
	if v, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(v) < 1e9 {
		return time.Duration(v * float64(time.Second)), nil
	}
	if d, err := model.ParseDuration(s); err == nil {
		return time.Duration(d), nil
	}
	return 0, badData("cannot parse %q to a valid duration", s)
}

// queryContext bounds a query by the client's timeout parameter, and by ours.
func (p *promAPI) queryContext(r *http.Request) (context.Context, context.CancelFunc, error) {
	limit := p.limits.Time
	if s := r.Form.Get("timeout"); s != "" {
		d, err := promDuration(s)
		if err != nil {
			return nil, nil, err
		}
		limit = min(limit, d)
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	return ctx, cancel, nil
}

func lookback(r *http.Request) (promql.QueryOpts, error) {
	var d time.Duration
	if s := r.Form.Get("lookback_delta"); s != "" {
		var err error
		if d, err = promDuration(s); err != nil {
			return nil, err
		}
	}
	return promql.NewPrometheusQueryOpts(false, d, nil), nil
}

func (p *promAPI) query(r *http.Request) (any, error) {
	ts, err := promTime(r.Form, "time", time.Now())
	if err != nil {
		return nil, err
	}
	return p.exec(r, course{}, func(ctx context.Context, db storage.Queryable, opts promql.QueryOpts, expr string) (promql.Query, error) {
		return p.engine.NewInstantQuery(ctx, db, opts, expr, ts)
	})
}

func (p *promAPI) queryRange(r *http.Request) (any, error) {
	start, err := promTime(r.Form, "start", time.Time{})
	if err != nil {
		return nil, err
	}
	end, err := promTime(r.Form, "end", time.Time{})
	if err != nil {
		return nil, err
	}
	step, err := promDuration(r.Form.Get("step"))
	if err != nil {
		return nil, err
	}
	switch {
	case start.IsZero() || end.IsZero():
		return nil, badData("start and end are needed")
	case end.Before(start):
		return nil, badData("end timestamp must not be before start time")
	case step <= 0:
		return nil, badData("zero or negative query resolution step widths are not accepted. Try a positive integer")
	case step < time.Millisecond: // the engine divides by whole milliseconds
		return nil, badData("a step has a millisecond at least")
	case (end.UnixMilli()-start.UnixMilli())/step.Milliseconds() > maxSteps: // time.Duration ends at 292 years
		return nil, badData("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)")
	}
	return p.exec(r, course{float64(end.UnixMilli() - start.UnixMilli()), float64(step.Milliseconds())}, func(ctx context.Context, db storage.Queryable, opts promql.QueryOpts, expr string) (promql.Query, error) {
		return p.engine.NewRangeQuery(ctx, db, opts, expr, start, end, step)
	})
}

// newQuery makes the engine's query of an expression.
type newQuery func(ctx context.Context, db storage.Queryable, opts promql.QueryOpts, expr string) (promql.Query, error)

// promResult is a query that ran. Its memory goes back to the engine when it is closed.
type promResult struct {
	query promql.Query
	value parser.Value
}

// exec runs a request's query.
func (p *promAPI) exec(r *http.Request, c course, prepare newQuery) (any, error) {
	opts, err := lookback(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel, err := p.queryContext(r)
	if err != nil {
		return nil, err
	}
	defer cancel()
	text := r.Form.Get("query")
	if err := checkExpression(text); err != nil {
		return nil, err
	}
	expr, err := p.parser.ParseExpr(text)
	if err != nil {
		// The parser names a flag of Prometheus' own program.
		return nil, badData("%s", strings.ReplaceAll(err.Error(), "must be enabled with --enable-feature=promql-experimental-functions", "is not served by Risso"))
	}
	if err := checkLabels(expr); err != nil {
		return nil, err
	}
	if err := (workload{float64(p.limits.Samples)}).check(expr, c, false); err != nil {
		return nil, err
	}
	q, err := prepare(ctx, gaps.Mark(boundQueryable{p.store.QueryableFor(expr), newBounds(p.limits)}), opts, text)
	if err != nil {
		return nil, badData("%w", err)
	}
	res := q.Exec(ctx)
	if res.Err != nil {
		q.Close()
		return nil, res.Err
	}
	return &promResult{q, res.Value}, nil
}

// matchers reads match[] parameters.
func (p *promAPI) matchers(r *http.Request, needed bool) ([][]*labels.Matcher, error) {
	var out [][]*labels.Matcher
	for _, s := range r.Form["match[]"] {
		if err := checkExpression(s); err != nil {
			return nil, err
		}
		if len(out) == mostMatches {
			return nil, badData("more than %d match[] parameters", mostMatches)
		}
		m, err := p.parser.ParseMetricSelector(s)
		if err != nil {
			return nil, badData("match[]: %w", err)
		}
		out = append(out, m)
	}
	if needed && len(out) == 0 {
		return nil, badData("no match[] parameter provided")
	}
	return out, nil
}

// querier reads within start and end of the request, which it has in milliseconds too.
func (p *promAPI) querier(r *http.Request) (q storage.Querier, from, to int64, err error) {
	end, err := promTime(r.Form, "end", time.Now())
	if err != nil {
		return nil, 0, 0, err
	}
	start, err := promTime(r.Form, "start", end.Add(-24*time.Hour))
	if err != nil {
		return nil, 0, 0, err
	}
	q, err = boundQueryable{p.store.Queryable(), newBounds(p.limits)}.Querier(start.UnixMilli(), end.UnixMilli())
	return q, start.UnixMilli(), end.UnixMilli(), err
}

func (p *promAPI) series(r *http.Request) (any, error) {
	sets, err := p.matchers(r, true)
	if err != nil {
		return nil, err
	}
	q, from, to, err := p.querier(r)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	out := []labels.Labels{}
	seen := map[uint64]bool{}
	for _, m := range sets {
		set := q.Select(r.Context(), true, &storage.SelectHints{Func: "series", Start: from, End: to}, m...)
		for set.Next() {
			l := set.At().Labels()
			if !seen[l.Hash()] {
				seen[l.Hash()] = true
				out = append(out, l)
			}
			if len(out)%1024 == 0 && r.Context().Err() != nil {
				return nil, r.Context().Err()
			}
		}
		if err := set.Err(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (p *promAPI) labels(r *http.Request) (any, error) {
	return p.labelQuery(r, func(q storage.Querier, m []*labels.Matcher) ([]string, error) {
		names, _, err := q.LabelNames(r.Context(), nil, m...)
		return names, err
	})
}

func (p *promAPI) labelValues(r *http.Request) (any, error) {
	name := r.PathValue("name")
	if !model.UTF8Validation.IsValidLabelName(name) {
		return nil, badData("invalid label name: %q", name)
	}
	return p.labelQuery(r, func(q storage.Querier, m []*labels.Matcher) ([]string, error) {
		values, _, err := q.LabelValues(r.Context(), name, nil, m...)
		return values, err
	})
}

func (p *promAPI) labelQuery(r *http.Request, ask func(storage.Querier, []*labels.Matcher) ([]string, error)) (any, error) {
	sets, err := p.matchers(r, false)
	if err != nil {
		return nil, err
	}
	q, _, _, err := p.querier(r)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	if len(sets) == 0 {
		sets = [][]*labels.Matcher{nil}
	}
	union := map[string]bool{}
	for _, m := range sets {
		list, err := ask(q, m)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			union[s] = true
		}
	}
	out := make([]string, 0, len(union))
	for s := range union {
		out = append(out, s)
	}
	sort.Strings(out)
	return out, nil
}

type promMeta struct {
	Type string `json:"type"`
	Help string `json:"help"`
	Unit string `json:"unit"`
}

func (p *promAPI) metadata(r *http.Request) (any, error) {
	limit := math.MaxInt
	if s := r.Form.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, badData("limit must be a number")
		}
		if n > 0 {
			limit = n
		}
	}
	only := r.Form.Get("metric")
	out := map[string][]promMeta{}
	for _, m := range p.live.AllMetrics() {
		if _, ok := out[m.Name]; ok || (only != "" && m.Name != only) || len(out) >= limit {
			continue
		}
		out[m.Name] = []promMeta{{Type: typeWord(m.Counter), Help: m.Help, Unit: m.Unit}}
	}
	return out, nil
}

func (p *promAPI) buildinfo(*http.Request) (any, error) {
	// Grafana asks which Prometheus it talks to, to know what the query language can do.
	return map[string]string{"version": promVersion, "application": "Risso"}, nil
}

func (p *promAPI) none(*http.Request) (any, error) { return []string{}, nil }
