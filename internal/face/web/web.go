// Package web is the HTTP face: the page, the API that the page reads, and Prometheus' own API over the store.
//
// As long as there is no user and no token, loopback requires only a Host header that names this machine, which prevents DNS
// rebinding. Once there is one, and on any other address always, every request needs a token or a session, and each path the role that routes says. Limits bound the cost of
// queries.
package web

import (
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/live"
	"github.com/rissodb/risso/internal/watch/own"
)

// Facts is what the web face asks of the store of facts.
type Facts interface {
	Events(ctx context.Context, q state.EventQuery) ([]fleet.Event, error)
	AddMark(ctx context.Context, m state.Mark) (events []fleet.Event, fresh bool, err error)
	Findings(ctx context.Context, q state.FindingQuery) ([]state.FindingRecord, error)
	Variables(ctx context.Context, instance string, at time.Time) ([]state.Variable, error)
	AccessFacts
	AddBenchmark(ctx context.Context, b state.Benchmark, result []byte) (id int64, fresh bool, err error)
	Benchmarks(ctx context.Context, instance string, limit int) ([]state.Benchmark, error)
	Benchmark(ctx context.Context, id int64) (state.Benchmark, []byte, error)
	RemoveBenchmark(ctx context.Context, id int64) error
	Alerts(ctx context.Context, from, to time.Time, limit int) ([]state.AlertRow, error)
	ProtectFacts
}

// Options are what the web face needs.
type Options struct {
	Numbers    *series.Store
	PromQL     PromStore // the same numbers as PromQL sees them
	Facts      Facts
	Live       *live.Board
	Statements Statements
	Protect    Protect // nil: nothing protects servers
	Alerts     Alerts
	Incidents  Incidents
	Sizes      Sizes          // nil: no server can be asked
	Advice     Advice         // nil: nothing looks for it
	Topology   Topology       // nil: nobody looks at it
	Groups     Groups         // nil: nobody changes who is the primary
	Rules      func() own.Now // the user's own rules
	Health     http.Handler   // answers load balancers below /health/; nil: nobody does
	Clients    *publish.Desk  // answers where the clients of groups go; nil: nobody does
	Views      publish.Views  // the same for commands, with all members; nil: there are no groups
	Shards     Shards         // which group has which keys; nil: nobody knows
	Page       fs.FS          // the built page
	Version    string
	Open       bool               // Risso listens on loopback only: no token is asked for until there is one
	Hosts      []string           // further names under which Risso may be reached
	Limits     config.Limits      // of what questions may cost
	Did        func(state.Action) // takes who did what; it is written down when this returns; may be nil
	Logger     *slog.Logger
}

type server struct {
	Options
	prom  *promAPI
	gate  *gate
	asked askedFor

	guesses  *guesses
	refusals *refusals
}

// New makes the handler of all that Risso serves over HTTP.
func New(o Options) http.Handler {
	s := newServer(o)
	return s.bounded(s.healthOr(s.hostCheck(s.routes())))
}

func newServer(o Options) *server {
	o.Limits = withDefaults(o.Limits)
	s := &server{Options: o, gate: newGate(o.Limits), guesses: &guesses{now: time.Now, kept: map[string]*tries{}}, refusals: &refusals{now: time.Now, left: map[string]int{}}}
	s.prom = newPromAPI(o.PromQL, o.Live, o.Limits)
	return s
}

// routes are all paths, each with the role that it needs.
func (s *server) routes() *routes {
	mux := newRoutes()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) })
	look := func(l *lane, pattern string, h func(r *http.Request) (any, error)) {
		mux.Handle(pattern, s.guard(state.RoleLook, s.json(l, h)))
	}
	change := func(pattern string, h func(r *http.Request) (any, error)) {
		mux.Handle(pattern, s.guard(state.RoleChange, s.json(s.gate.quick, h)))
	}
	part := func(pattern string, h func(r *http.Request) (any, error)) {
		mux.Handle(pattern, s.guardPart(state.RoleChange, s.json(s.gate.quick, h)))
	}
	look(s.gate.quick, "GET /api/fleet", s.fleet)
	look(s.gate.quick, "GET /api/instance", s.instance)
	look(s.gate.quick, "GET /api/self", s.self)
	look(s.gate.charts, "GET /api/metrics", s.metrics)
	look(s.gate.charts, "GET /api/chart", s.chart)
	look(s.gate.queries, "GET /api/events", s.events)
	look(s.gate.queries, "GET /api/events/after", s.changedAfter)
	look(s.gate.queries, "GET /api/findings", s.findings)
	look(s.gate.queries, "GET /api/alerts", s.alertsNow)
	look(s.gate.queries, "GET /api/alerts/history", s.alertHistory)
	look(s.gate.queries, "GET /api/alerts/replay", s.replay)
	look(s.gate.queries, "GET /api/moment", s.moment)
	look(s.gate.queries, "GET /api/moments", s.moments)
	look(s.gate.queries, "GET /api/incidents", s.incidents)
	look(s.gate.queries, "GET /api/incident", s.incident)
	mux.Handle("GET /api/incident.html", s.guard(state.RoleLook, s.question(s.gate.queries, writeError, s.incidentPage)))
	look(s.gate.queries, "GET /api/variables", s.variables)
	look(s.gate.queries, "GET /api/size", s.sizes)
	look(s.gate.queries, "GET /api/size/growth", s.growth)
	look(s.gate.queries, "GET /api/queries", s.queries)
	look(s.gate.queries, "GET /api/queries/compare", s.compare)
	look(s.gate.queries, "GET /api/queries/schemas", s.schemas)
	look(s.gate.queries, "GET /api/query", s.query)
	look(s.gate.queries, "GET /api/benchmarks", s.benchmarks)
	look(s.gate.queries, "GET /api/benchmark", s.benchmark)
	look(s.gate.queries, "GET /api/protect", s.protected)
	look(s.gate.queries, "GET /api/protect/server", s.protectedServer)
	look(s.gate.queries, "GET /api/protect/run", s.protectRunDetail)
	mux.Handle("GET /api/plan", s.guard(state.RoleLook, s.question(s.gate.queries, writeError, s.planImage)))
	mux.Handle("POST /api/benchmarks", s.guard(state.RoleChange, s.posted(s.gate.queries, maxBenchmarkBody, s.keepBenchmark)))
	change("DELETE /api/benchmark", s.removeBenchmark)
	mux.Handle("POST /api/events", s.guardPart(state.RoleChange, s.posted(s.gate.quick, smallBody, s.keepMark)))
	part("POST /api/alerts/ack", s.acknowledge)
	mux.Handle("POST /api/silences", s.guard(state.RoleChange, s.posted(s.gate.quick, smallBody, s.silence)))
	change("DELETE /api/silences", s.endSilence)
	look(s.gate.queries, "GET /api/rules", s.ownRules)
	look(s.gate.quick, "GET /api/thresholds", s.thresholds)
	mux.Handle("PUT /api/thresholds", s.guard(state.RoleChange, s.posted(s.gate.quick, smallBody, s.setThreshold)))
	change("DELETE /api/thresholds", s.deleteThreshold)
	change("POST /api/receivers/test", s.testReceiver)
	part("POST /api/protect/start", s.startJob)
	part("POST /api/protect/stop", s.stopRun)
	s.signInRoutes(mux)
	s.adviceRoutes(mux)
	s.topologyRoutes(mux)
	s.viewRoutes(mux)
	s.groupRoutes(mux)
	s.promRoutes(mux)
	look(s.gate.quick, "/api/", func(r *http.Request) (any, error) { return nil, notThere(r) })
	for _, path := range programPaths {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { writeError(w, notThere(r)) })
	}
	mux.Handle("/", s.page())
	return mux
}

// healthPath is where load balancers ask about servers, /health/NAME. They have no token, and often no Host header; the answer says no more than
// whether a server may have clients. So it is with the checks of groups, /primary/NAME and the like.
const healthPath = "/health/"

func (s *server) healthOr(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.Health != nil && strings.HasPrefix(r.URL.Path, healthPath):
			s.Health.ServeHTTP(w, r)
		case s.Clients != nil && publish.IsCheck(r.URL.Path):
			s.Clients.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// programPaths are asked by programs, at Risso or at others that speak Prometheus' protocols: what is not there is said in their form,
// without the page.
var programPaths = []string{"/api", "/federate", "/federate/", "/metrics", "/metrics/", "/probe", "/read", "/write", "/v1/", "/-/", "/prometheus/", "/select/", "/debug/",
	"/healthz/", "/loki/", "/graph", "/classic/"}

func notThere(r *http.Request) error {
	return failed(http.StatusNotFound, "there is no "+r.Method+" "+r.URL.Path, "")
}

// json answers a question of Risso's own API.
func (s *server) json(l *lane, h func(r *http.Request) (any, error)) http.Handler {
	return s.question(l, writeError, func(r *http.Request, a *answer) error {
		out, err := h(r)
		if err != nil {
			return err
		}
		return json.NewEncoder(a).Encode(out)
	})
}
