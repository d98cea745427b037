// Package web is the HTTP face: the page, the API that the page reads, and Prometheus' own API over the store.
//
// On loopback it asks for nothing but a Host header that names this machine, so that no foreign page can
// reach it through a trick with names. On any other address each request needs a token.
package web

import (
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/live"
)

// Facts is what the web face asks of the store of facts.
type Facts interface {
	Events(ctx context.Context, q state.EventQuery) ([]fleet.Event, error)
	Variables(ctx context.Context, instance string, at time.Time) ([]state.Variable, error)
	VerifyToken(ctx context.Context, secret string) (state.Token, error)
	AddBenchmark(ctx context.Context, b state.Benchmark, result []byte) (id int64, fresh bool, err error)
	Benchmarks(ctx context.Context, instance string, limit int) ([]state.Benchmark, error)
	Benchmark(ctx context.Context, id int64) (state.Benchmark, []byte, error)
	RemoveBenchmark(ctx context.Context, id int64) error
	ProtectFacts
}

// Options are what the web face needs.
type Options struct {
	Numbers    *series.Store
	Facts      Facts
	Live       *live.Board
	Statements Statements
	Protect    Protect // nil: nothing protects servers
	Page       fs.FS   // the built page
	Version    string
	Open       bool     // no token is asked for: Risso listens on loopback only
	Hosts      []string // further names under which an open Risso may be reached
	Logger     *slog.Logger
}

type server struct {
	Options
	prom *promAPI
}

// requestTimeout bounds every answer but the page's files.
const requestTimeout = 60 * time.Second

// New makes the handler of all that Risso serves over HTTP.
func New(o Options) http.Handler {
	s := &server{Options: o, prom: newPromAPI(o.Numbers, o.Live)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) })
	api := func(pattern string, h func(r *http.Request) (any, error)) {
		mux.Handle(pattern, s.guard(jsonHandler(h)))
	}
	api("GET /api/fleet", s.fleet)
	api("GET /api/instance", s.instance)
	api("GET /api/metrics", s.metrics)
	api("GET /api/chart", s.chart)
	api("GET /api/events", s.events)
	api("GET /api/variables", s.variables)
	api("GET /api/self", s.self)
	api("GET /api/queries", s.queries)
	api("GET /api/queries/compare", s.compare)
	api("GET /api/queries/schemas", s.schemas)
	api("GET /api/query", s.query)
	api("GET /api/benchmarks", s.benchmarks)
	api("POST /api/benchmarks", s.addBenchmark)
	api("GET /api/benchmark", s.benchmark)
	api("DELETE /api/benchmark", s.removeBenchmark)
	api("GET /api/protect", s.protected)
	api("GET /api/protect/server", s.protectedServer)
	api("GET /api/protect/run", s.protectRunDetail)
	api("POST /api/protect/start", s.startJob)
	api("POST /api/protect/stop", s.stopRun)
	mux.Handle("GET /api/plan", s.guard(http.HandlerFunc(s.planImage)))
	mux.HandleFunc("POST /api/login", s.login)
	s.prom.register(mux, s.guard)
	mux.Handle("/api/", s.guard(jsonHandler(func(r *http.Request) (any, error) {
		return nil, &apiError{Status: http.StatusNotFound, Message: "there is no " + r.URL.Path}
	})))
	mux.Handle("/", s.page())
	return s.hostCheck(compress(mux))
}

// apiError is an error that a client sees, with the status it goes with.
type apiError struct {
	Status  int    `json:"-"`
	Message string `json:"error"`
	Hint    string `json:"hint,omitempty"`
}

func (e *apiError) Error() string { return e.Message }

func badRequest(message, hint string) error {
	return &apiError{Status: http.StatusBadRequest, Message: message, Hint: hint}
}

func jsonHandler(h func(r *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		out, err := h(r.WithContext(ctx))
		if err != nil {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, out)
	})
}

func writeError(w http.ResponseWriter, err error) {
	e, ok := err.(*apiError)
	if !ok {
		e = &apiError{Status: http.StatusInternalServerError, Message: err.Error()}
	}
	writeJSON(w, e.Status, e)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) // a client that went away is not our concern
}

// page serves the built page; every path that is no file is the page itself, which reads its state from the URL.
func (s *server) page() http.Handler {
	files := http.FileServerFS(s.Page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
		if info, err := fs.Stat(s.Page, name); err != nil || info.IsDir() {
			name = "index.html"
			if strings.Contains(path.Base(r.URL.Path), ".") && !strings.HasPrefix(r.URL.Path, "/server/") {
				http.NotFound(w, r)
				return
			}
		}
		h.Set("Cache-Control", "no-cache")
		if name == "index.html" {
			http.ServeFileFS(w, r, s.Page, name)
			return
		}
		files.ServeHTTP(w, r)
	})
}
