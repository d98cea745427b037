package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	journal "github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/failover"
	"github.com/rissodb/risso/internal/store/agree"
	"github.com/rissodb/risso/internal/store/state"
)

// Groups is what the web face asks of the room that changes who is the primary.
type Groups interface {
	Groups(ctx context.Context) ([]group.Group, error)
	Standing(ctx context.Context) (failover.Standing, error)
	Controllers(ctx context.Context) agree.Overview
	Journals(ctx context.Context, name string, limit int) ([]journal.Journal, error)
	Forecast(ctx context.Context, name string) (failover.Forecast, error)
	Switchover(ctx context.Context, a carry.Asked, dryRun bool) (failover.Changed, error)
	Failover(ctx context.Context, a carry.Asked, dryRun bool) (failover.Changed, error)
	Set(ctx context.Context, s failover.Setting, dryRun bool) (failover.Changed, error)
}

// groupRoutes are the paths of groups. Nobody without the role failover changes who is the primary, nor anything else of a group.
func (s *server) groupRoutes(mux *routes) {
	if s.Groups == nil {
		return
	}
	mux.Handle("GET /api/controllers", s.guard(state.RoleLook, s.json(s.gate.queries, func(r *http.Request) (any, error) { return s.Groups.Controllers(r.Context()), nil })))
	look := func(l *lane, path string, h func(r *http.Request) (any, error)) {
		mux.Handle("GET /api/groups"+path, s.guard(state.RoleLook, s.json(l, h)))
	}
	look(s.gate.queries, "", s.groups)
	look(s.gate.quick, "/standing", func(r *http.Request) (any, error) { return s.Groups.Standing(r.Context()) })
	look(s.gate.queries, "/journals", s.groupJournals)
	look(s.gate.queries, "/forecast", s.groupForecast)
	for path, do := range map[string]orderly{"switchover": promotes(s.Groups.Switchover), "failover": promotes(s.Groups.Failover), "member": s.setMember, "policy": s.setPolicy} {
		mux.Handle("POST /api/groups/"+path, s.guardPart(state.RoleFailover, s.changeGroup(path, do)))
	}
}

// groups is GET /api/groups.
func (s *server) groups(r *http.Request) (any, error) {
	list, err := s.Groups.Groups(r.Context())
	return map[string]any{"groups": append([]group.Group{}, list...)}, err
}

// mostJournals bounds how many changes are told at once.
const mostJournals = 200

// groupJournals is GET /api/groups/journals: the last changes of the primary of a group, with their steps and receipts.
func (s *server) groupJournals(r *http.Request) (any, error) {
	q := r.URL.Query()
	limit, err := param(q, "limit", 20)
	if err != nil {
		return nil, err
	}
	if limit < 1 || limit > mostJournals {
		return nil, badRequest("limit must be a number from 1 to "+strconv.Itoa(mostJournals), "")
	}
	list, err := s.Groups.Journals(r.Context(), q.Get("group"), int(limit))
	return map[string]any{"journals": list}, noGroup(q.Get("group"), err)
}

// groupForecast is GET /api/groups/forecast: who would follow the primary of a group now.
func (s *server) groupForecast(r *http.Request) (any, error) {
	name := r.URL.Query().Get("group")
	f, err := s.Groups.Forecast(r.Context(), name)
	return f, noGroup(name, err)
}

// noGroup says that there is no group of a name.
func noGroup(name string, err error) error {
	if errors.Is(err, keep.ErrNone) {
		return failed(http.StatusNotFound, "there is no group "+name, "GET /api/groups lists them")
	}
	return err
}

// order is what somebody asks for, in the body of a request.
type order struct {
	Group      string        `json:"group"`
	DryRun     bool          `json:"dry_run"`
	To         string        `json:"to"`          // of a switchover or failover
	AcceptLoss bool          `json:"accept_loss"` // of a failover
	Member     string        `json:"member"`
	Status     *group.Status `json:"status"`
	Weight     *float64      `json:"weight"`
	Rule       *group.Rule   `json:"rule"`
	Center     *string       `json:"center"`
	Automatic  *bool         `json:"automatic"`
	Active     *bool         `json:"active"`
}

// meaningless are the fields of an order that are set, and mean nothing for what is asked: who sent them asked for something else.
func (o order) meaningless(what string) (list []string) {
	change := []string{"switchover", "failover"}
	for _, f := range []struct {
		name string
		set  bool
		of   []string
	}{
		{"to", o.To != "", change}, {"accept_loss", o.AcceptLoss, change[1:]},
		{"member", o.Member != "", []string{"member"}}, {"status", o.Status != nil, []string{"member"}}, {"weight", o.Weight != nil, []string{"member"}},
		{"rule", o.Rule != nil, []string{"member"}}, {"center", o.Center != nil, []string{"member"}},
		{"automatic", o.Automatic != nil, []string{"policy"}}, {"active", o.Active != nil, []string{"policy"}},
	} {
		if f.set && !slices.Contains(f.of, what) {
			list = append(list, f.name)
		}
	}
	return list
}

// orderly carries an order out.
type orderly func(ctx context.Context, o order, by string) (failover.Changed, error)

// promotes are switchover and failover.
func promotes(do func(context.Context, carry.Asked, bool) (failover.Changed, error)) orderly {
	return func(ctx context.Context, o order, by string) (failover.Changed, error) {
		return do(ctx, carry.Asked{Group: o.Group, To: o.To, By: by, AcceptLoss: o.AcceptLoss}, o.DryRun)
	}
}

// setMember gives a member another status, weight, rule or data center.
func (s *server) setMember(ctx context.Context, o order, by string) (failover.Changed, error) {
	switch {
	case o.Member == "" || o.Status == nil && o.Weight == nil && o.Rule == nil && o.Center == nil:
		return failover.Changed{}, badRequest("the body does not say what of which member", `send {"group": "shop", "member": "db2", "status": "SPARE"}, or "weight": 0.5, "rule": "never", "center": "east"`)
	case o.Status != nil && !slices.Contains(group.Statuses(), *o.Status):
		return failover.Changed{}, badRequest(strconv.Quote(string(*o.Status))+" is no status", "SECONDARY, SPARE or FAULTY")
	}
	return s.Groups.Set(ctx, failover.Setting{Group: o.Group, Member: o.Member, Status: o.Status, Weight: o.Weight, Rule: o.Rule, Center: o.Center, By: by}, o.DryRun)
}

// setPolicy says whether a group is watched, and failed over automatically.
func (s *server) setPolicy(ctx context.Context, o order, by string) (failover.Changed, error) {
	if o.Automatic == nil && o.Active == nil {
		return failover.Changed{}, badRequest("the body does not say what of the policy", `send {"group": "shop", "automatic": false}, or "active"`)
	}
	return s.Groups.Set(ctx, failover.Setting{Group: o.Group, Automatic: o.Automatic, Active: o.Active, By: by}, o.DryRun)
}

// promoteTime bounds a change of the primary; its own steps have limits of their own.
const promoteTime = 2 * time.Minute

// changeGroup is POST /api/groups/switchover and its neighbours. Once begun it does not end with the connection of whoever asked.
func (s *server) changeGroup(what string, do orderly) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, release, err := s.readBody(w, r, smallBody)
		if err != nil {
			writeError(w, err)
			return
		}
		defer release()
		var o order
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields() // a mistyped dry_run must not promote anybody
		if err := d.Decode(&o); err != nil && strings.Contains(err.Error(), "unknown field") {
			writeError(w, badRequest("the body: "+strings.TrimPrefix(err.Error(), "json: "), "docs/access.md lists the fields; dry_run only shows what would be done"))
			return
		} else if err != nil || o.Group == "" || d.More() {
			writeError(w, badRequest("the body is no JSON that names a group", `send {"group": "shop", "to": "db2"}; without "to" it is the best`))
			return
		}
		if err := s.touchesGroup(r, o.Group); err != nil {
			writeError(w, err)
			return
		}
		if list := o.meaningless(what); len(list) > 0 {
			writeError(w, badRequest("the body: "+strings.Join(list, ", ")+": it means nothing here", "docs/access.md lists the fields of each path"))
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), promoteTime)
		defer cancel()
		deadline(w, promoteTime+s.gate.limits.Write)
		out, err := do(ctx, o, viewerOf(r).Who())
		if name := named(what, o, out); err != nil && !o.DryRun {
			s.didNot(r, "", "group "+o.Group, name, err)
		} else if err == nil && !o.DryRun {
			s.did(r, "", "group "+o.Group, name+" was done")
		}
		if err = noGroup(o.Group, err); err == nil {
			writeStatus(w, http.StatusOK, out)
			return
		}
		if _, ok := errors.AsType[*apiError](err); !ok {
			err = &apiError{fleet.WithRemedy(err, fleet.RemedyOf(err)), http.StatusConflict}
		}
		writeError(w, err)
	})
}

// named is what was done, as it is written down.
func named(what string, o order, out failover.Changed) string {
	switch {
	case what == "member" || what == "policy":
		name := "the change of group " + o.Group
		if o.Member != "" {
			name = "the change of " + o.Member + " in group " + o.Group
		}
		if len(out.Plan) > 0 {
			name += " (" + strings.Join(out.Plan, "; ") + ")"
		}
		return name
	case out.Old != "":
		return "the " + what + " of group " + o.Group + " from " + out.Old + " to " + out.New
	}
	return "the " + what + " of group " + o.Group
}
