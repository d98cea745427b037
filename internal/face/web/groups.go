package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/failover"
	"github.com/rissodb/risso/internal/store/state"
)

// Groups is what the web face asks of the room that changes who is the primary.
type Groups interface {
	Groups(ctx context.Context) ([]group.Group, error)
	Switchover(ctx context.Context, a carry.Asked, dryRun bool) (failover.Changed, error)
	Failover(ctx context.Context, a carry.Asked, dryRun bool) (failover.Changed, error)
}

// groupRoutes are the paths of groups. Nobody without the role failover changes who is the primary.
func (s *server) groupRoutes(mux *routes) {
	if s.Groups == nil {
		return
	}
	mux.Handle("GET /api/groups", s.guard(state.RoleLook, s.json(s.gate.queries, s.groups)))
	for path, do := range map[string]func(context.Context, carry.Asked, bool) (failover.Changed, error){"switchover": s.Groups.Switchover, "failover": s.Groups.Failover} {
		mux.Handle("POST /api/groups/"+path, s.guardPart(state.RoleFailover, s.promote(path, do)))
	}
}

// groups is GET /api/groups.
func (s *server) groups(r *http.Request) (any, error) {
	list, err := s.Groups.Groups(r.Context())
	return map[string]any{"groups": append([]group.Group{}, list...)}, err
}

// promoteTime bounds a change of the primary; its own steps have limits of their own.
const promoteTime = 2 * time.Minute

// promote is POST /api/groups/switchover and /api/groups/failover. Once begun it does not end with the connection of whoever asked.
func (s *server) promote(what string, do func(context.Context, carry.Asked, bool) (failover.Changed, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, release, err := s.readBody(w, r, smallBody)
		if err != nil {
			writeError(w, err)
			return
		}
		defer release()
		var body struct {
			Group      string `json:"group"`
			To         string `json:"to"`
			AcceptLoss bool   `json:"accept_loss"`
			DryRun     bool   `json:"dry_run"`
		}
		if err := json.Unmarshal(b, &body); err != nil || body.Group == "" {
			writeError(w, badRequest("the body is no JSON that names a group", `send {"group": "shop", "to": "db2"}; without "to" it is the best`))
			return
		}
		if err := s.touchesGroup(r, body.Group); err != nil {
			writeError(w, err)
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), promoteTime)
		defer cancel()
		deadline(w, promoteTime+s.gate.limits.Write)
		out, err := do(ctx, carry.Asked{Group: body.Group, To: body.To, By: viewerOf(r).Who(), AcceptLoss: body.AcceptLoss}, body.DryRun)
		name := "the " + what + " of group " + body.Group
		if out.Old != "" {
			name += " from " + out.Old + " to " + out.New
		}
		switch {
		case err != nil && !body.DryRun:
			s.didNot(r, "", "group "+body.Group, name, err)
		case err == nil && !body.DryRun:
			s.did(r, "", "group "+body.Group, name+" was done")
		}
		switch {
		case errors.Is(err, keep.ErrNone):
			writeError(w, failed(http.StatusNotFound, "there is no group "+body.Group, "GET /api/groups lists them"))
		case err != nil:
			writeError(w, &apiError{fleet.WithRemedy(err, fleet.RemedyOf(err)), http.StatusConflict})
		default:
			writeStatus(w, http.StatusOK, out)
		}
	})
}
