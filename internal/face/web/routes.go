package web

import (
	"net/http"

	"github.com/rissodb/risso/internal/store/state"
)

// routes is what is answered, by path, and which role each path needs.
type routes struct {
	*http.ServeMux
	needed map[string]state.Role // by pattern; empty: everybody
	part   map[string]bool       // it is about some servers or groups
}

func newRoutes() *routes {
	return &routes{http.NewServeMux(), map[string]state.Role{}, map[string]bool{}}
}

// Handle answers a pattern. What does not come from guard is for everybody.
func (m *routes) Handle(pattern string, h http.Handler) {
	g, ok := h.(*route)
	if !ok {
		g = &route{Handler: h}
	}
	m.needed[pattern], m.part[pattern] = g.needed, g.part
	m.ServeMux.Handle(pattern, g.Handler)
}

// HandleFunc answers a pattern for everybody.
func (m *routes) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	m.Handle(pattern, http.HandlerFunc(h))
}
