package web

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/store/state"
)

// accessRoutes are the paths of those who see to it who may do what. Users and tokens are made on the machine, by commands.
func (s *server) accessRoutes(mux *routes) {
	mux.Handle("GET /api/access", s.guard(state.RoleAdmin, s.json(s.gate.queries, s.access)))
	mux.Handle("GET /api/actions", s.guard(state.RoleAdmin, s.json(s.gate.queries, s.actions)))
	mux.Handle("DELETE /api/sessions", s.guard(state.RoleAdmin, s.json(s.gate.quick, s.endSessions)))
	mux.Handle("DELETE /api/tokens", s.guard(state.RoleAdmin, s.json(s.gate.quick, s.revokeToken)))
}

// access is GET /api/access: who may do what.
func (s *server) access(r *http.Request) (any, error) {
	users, err := s.Facts.Users(r.Context())
	if err != nil {
		return nil, err
	}
	tokens, err := s.Facts.Tokens(r.Context())
	if err != nil {
		return nil, err
	}
	return map[string]any{"users": append([]state.User{}, users...), "tokens": append([]state.Token{}, tokens...)}, nil
}

// actions is GET /api/actions: who did what, or tried to.
func (s *server) actions(r *http.Request) (any, error) {
	v := r.URL.Query()
	q := state.ActionQuery{Who: v.Get("who"), Outcome: state.ActionOutcome(v.Get("outcome")), Limit: 500}
	for name, into := range map[string]*time.Time{"from": &q.From, "to": &q.To} {
		if text := v.Get(name); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 0 || n > 1<<40 {
				return nil, badRequest(name+" must be in seconds since 1970", "")
			}
			*into = time.Unix(n, 0)
		}
	}
	if text := v.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 5000 {
			return nil, badRequest("limit must be a number from 1 to 5000", "")
		}
		q.Limit = n
	}
	list, err := s.Facts.Actions(r.Context(), q)
	return map[string]any{"actions": append([]state.Action{}, list...)}, err
}

// endSessions is DELETE /api/sessions?user=ann.
func (s *server) endSessions(r *http.Request) (any, error) {
	name, err := state.UserName(r.URL.Query().Get("user"))
	if err != nil {
		return nil, badRequest(err.Error(), "GET /api/access lists them")
	}
	n, err := s.Facts.SignOutEverywhere(r.Context(), name, "")
	if err != nil {
		return nil, err
	}
	s.did(r, "", "session", fmt.Sprintf("all sessions of %s (%d) were ended", name, n))
	return map[string]any{"ended": n}, nil
}

// revokeToken is DELETE /api/tokens?name=ci.
func (s *server) revokeToken(r *http.Request) (any, error) {
	name := r.URL.Query().Get("name")
	switch err := s.Facts.RevokeToken(r.Context(), name); {
	case errors.Is(err, state.ErrNotFound):
		return nil, failed(http.StatusNotFound, "there is no token "+strconv.Quote(name), "GET /api/access lists them")
	case err != nil:
		return nil, err
	}
	s.did(r, "", "token", "the token "+name+" was revoked")
	return map[string]any{"revoked": name}, nil
}
