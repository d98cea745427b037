package failover

import (
	"context"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/store/agree"
)

// Standing is how all groups stand.
type Standing struct {
	Now       time.Time       `json:"now"`
	Automatic bool            `json:"automatic"` // risso serve fails over the groups whose policy says so
	Leads     bool            `json:"leads"`     // this process acts
	Groups    []GroupStanding `json:"groups"`
}

// GroupStanding is how a group stands.
type GroupStanding struct {
	Group group.Group `json:"group"`
	// Seen is what this process sees of it; null: it does not watch it.
	Seen *Seen `json:"seen"`
	// View is where its clients are told to go by this process; null: they are told nothing.
	View *group.View `json:"view"`
	// Change is the newest change of its primary, without its steps; null: there was none.
	Change *failover.Journal `json:"change"`
}

// Forecast is what a failover would do now.
type Forecast struct {
	Group   string            `json:"group"`
	Asked   time.Time         `json:"asked"`
	Primary string            `json:"primary"`
	Alive   bool              `json:"alive"`             // the primary answers
	Because string            `json:"because,omitempty"` // why it does not
	Ready   bool              `json:"ready"`             // it does, and somebody could follow it now, and receives what it writes; of a group that is failed over by itself, would do so
	Choice  failover.Choice   `json:"choice"`
	Known   failover.Known    `json:"known"` // what the primary tells of itself
	Plan    []string          `json:"plan"`
	Agents  []carry.AgentSaid `json:"agents"` // what the agents beside the members tell
}

// Standing is how all groups stand, as far as it is known without asking a server.
func (h *Hand) Standing(ctx context.Context) (Standing, error) {
	out := Standing{Now: time.Now().UTC(), Leads: true, Groups: []GroupStanding{}}
	if h.Desk != nil {
		out.Automatic, out.Leads = h.Desk.Auto, h.Desk.Lead.Leader()
	}
	r := h.room("")
	list, err := r.Groups(ctx)
	if err != nil {
		return out, err
	}
	journals, err := r.Journals(ctx, "")
	if err != nil {
		return out, err
	}
	for _, g := range list {
		s := GroupStanding{Group: g}
		for _, j := range slices.Backward(journals) {
			if j.Group == g.Name {
				short := j.Journal
				short.Steps, short.Before = []failover.Entry{}, nil
				s.Change = &short
				break
			}
		}
		if h.Desk != nil {
			if seen, ok := h.Desk.Seen(ctx, g.Name); ok {
				s.Seen = &seen
			}
			if v, ok := h.Desk.Board.View(g.Name); ok {
				s.View = &v
			}
		}
		out.Groups = append(out.Groups, s)
	}
	return out, nil
}

// Controllers is how the processes that share the state are; without members, this one is alone.
func (h *Hand) Controllers(ctx context.Context) agree.Overview {
	if h.Others == nil {
		return agree.Overview{Members: []agree.Status{}}
	}
	return h.Others(ctx)
}

// Journals are the last changes of the primary of a group, the newest first.
func (h *Hand) Journals(ctx context.Context, name string, limit int) ([]failover.Journal, error) {
	r := h.room("")
	if _, err := r.Group(ctx, name); err != nil {
		return nil, err
	}
	list, err := r.Journals(ctx, name)
	out := []failover.Journal{}
	for _, j := range slices.Backward(list) {
		if len(out) == limit {
			break
		}
		if out = append(out, j.Journal); j.Steps == nil { // it has just begun
			out[len(out)-1].Steps = []failover.Entry{}
		}
	}
	return out, err
}

// Forecast asks all members of a group who would follow the primary now, and what stands against each. Nothing is changed.
func (h *Hand) Forecast(ctx context.Context, name string) (Forecast, error) {
	out := Forecast{Group: name, Asked: time.Now().UTC(), Agents: []carry.AgentSaid{}}
	a := carry.Asked{Group: name, Drains: true}
	f, err := h.carrier(a).Forecast(ctx, a)
	if err != nil {
		return out, err
	}
	access, err := h.room("").Access(ctx, name)
	if err != nil {
		return out, err
	}
	out.Primary, out.Alive, out.Because, out.Choice, out.Known = f.Old, f.Alive, f.Because, f.Choice, f.Known
	out.Ready, out.Plan = f.Ready(), append([]string{}, f.Plan.Words()...)
	out.Agents = append(out.Agents, carry.AskAgents(ctx, f.Group, access)...)
	return out, nil
}
