package web

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/serve/topology"
	"github.com/rissodb/risso/internal/store/state"
)

// Topology is what the web face asks of the room that looks at who replicates from whom.
type Topology interface {
	Current() topology.Answer
	At(ctx context.Context, at time.Time) (topology.Answer, error)
	Changes(ctx context.Context, from, to time.Time, limit int) (topology.Changes, error)
}

// topologyRoutes are the paths of the topology.
func (s *server) topologyRoutes(mux *routes) {
	if s.Topology == nil {
		return
	}
	mux.Handle("GET /api/topology", s.guard(state.RoleLook, s.json(s.gate.queries, s.topology)))
	mux.Handle("GET /api/topology/changes", s.guard(state.RoleLook, s.json(s.gate.queries, s.topologyChanges)))
}

// topology is GET /api/topology: who replicates from whom, now or at a time.
func (s *server) topology(r *http.Request) (any, error) {
	q := r.URL.Query()
	if q.Get("at") == "" {
		return s.Topology.Current(), nil
	}
	at, err := param(q, "at", 0)
	if err != nil {
		return nil, err
	}
	return s.Topology.At(r.Context(), time.Unix(at, 0))
}

// What is asked of changes, if nothing else is.
const (
	lastChanges = 86400 // seconds
	mostChanges = 1000
)

// topologyChanges is GET /api/topology/changes: what changed in a time, the newest first.
func (s *server) topologyChanges(r *http.Request) (any, error) {
	q := r.URL.Query()
	to, err := param(q, "to", time.Now().Unix())
	if err != nil {
		return nil, err
	}
	from, err := param(q, "from", to-lastChanges)
	if err != nil {
		return nil, err
	}
	if from > to {
		return nil, badRequest("from must be before to", "")
	}
	limit, err := param(q, "limit", 100)
	if err != nil {
		return nil, err
	}
	if limit < 1 || limit > mostChanges {
		return nil, badRequest("limit must be a number from 1 to "+strconv.Itoa(mostChanges), "")
	}
	return s.Topology.Changes(r.Context(), time.Unix(from, 0), time.Unix(to, 0), int(limit))
}
