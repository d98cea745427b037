package web

import (
	"net/http"

	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/store/state"
)

// viewRoutes are the paths that say where the clients of groups go. They ask for no token: whoever is to reach a database has to learn its address. They
// answer to the names that all other paths answer to.
func (s *server) viewRoutes(mux *routes) {
	if s.Clients != nil {
		for _, path := range publish.Paths() {
			mux.Handle(path, s.Clients)
		}
	}
	if s.Shards != nil && s.Views != nil && s.Clients != nil {
		mux.Handle("GET /shards", http.HandlerFunc(s.answerShards))
	}
	if s.Views != nil {
		mux.Handle("GET /api/clients", s.guard(state.RoleLook, s.json(s.gate.quick, s.clients)))
	}
}

// clients is GET /api/clients?group=NAME.
func (s *server) clients(r *http.Request) (any, error) {
	name := r.URL.Query().Get("group")
	if all := s.Views.Groups(); name == "" && len(all) == 1 {
		name = all[0]
	}
	if name == "" {
		return nil, badRequest("which group is not said", "add ?group=NAME")
	}
	v, ok := s.Views.View(name)
	if !ok && !s.Views.Sure() {
		return nil, failed(http.StatusServiceUnavailable, "it is not known yet which groups there are: risso serve starts", "ask again")
	}
	if !ok {
		return nil, failed(http.StatusNotFound, "there is no group of that name", "risso group lists them")
	}
	return publish.Known{View: v, Members: s.Views.Members(name)}, nil
}
