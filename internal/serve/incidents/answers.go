package incidents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/rissodb/risso/internal/store/ring"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/incident"
)

// read reads the moments of a server from one second to another.
func (d *Desk) read(s *stream, from, to int64) (out []*incident.Moment, err error) {
	err = s.ring.Blocks(from, to, func(list []ring.Record) error {
		moments, err := incident.Read(list)
		for _, m := range moments {
			if m.Tick >= from && m.Tick <= to {
				out = append(out, m)
			}
		}
		return err
	})
	return out, err
}

// around is how many seconds before and after a moment its answer tells of what is missing, and how old a moment may be.
const around = 60

// MomentAnswer is what a server did at a moment.
type MomentAnswer struct {
	Instance string           `json:"instance"`
	Asked    int64            `json:"asked"`
	Oldest   int64            `json:"oldest"` // unix seconds that are kept; 0: none
	Newest   int64            `json:"newest"`
	Missing  []incident.Gap   `json:"missing"` // in the minute before and after
	Moment   *incident.Moment `json:"moment"`  // the newest one that is not after it; null: none in the minute before
}

// Moment says what a server did at a moment, with the latest deadlock before it. state.ErrNotFound: it is not watched.
func (d *Desk) Moment(instance string, at int64, redact bool) (a MomentAnswer, err error) {
	s := d.stream(instance)
	if s == nil {
		return a, state.ErrNotFound
	}
	a = MomentAnswer{Instance: instance, Asked: at}
	a.Oldest, a.Newest, _ = s.ring.Span()
	list, err := d.read(s, at-around, at+around)
	if err != nil {
		return a, err
	}
	a.Missing = incident.Gaps(list, max(at-around, a.Oldest), min(at+around, a.Newest))
	for _, m := range list {
		if m.Tick <= at {
			a.Moment = m
		}
	}
	if a.Moment != nil && a.Moment.Deadlock == nil {
		if a.Moment.Deadlock, err = d.latestDeadlock(s, a.Moment.Tick); err != nil {
			return a, err
		}
	}
	if a.Moment != nil && redact {
		a.Moment.Redact()
	}
	return a, nil
}

// deadlockWithin is how far back the latest deadlock is looked for.
const deadlockWithin = 3600

func (d *Desk) latestDeadlock(s *stream, before int64) (*incident.Deadlock, error) {
	var found *incident.Deadlock
	list, err := d.read(s, before-deadlockWithin, before)
	for _, m := range list {
		if m.Deadlock != nil {
			found = m.Deadlock
		}
	}
	return found, err
}

// MomentsAnswer is a few numbers of each second that is kept, as lists of the same length.
type MomentsAnswer struct {
	Instance     string         `json:"instance"`
	From         int64          `json:"from"`
	To           int64          `json:"to"`
	Oldest       int64          `json:"oldest"`
	Newest       int64          `json:"newest"`
	Tick         []int64        `json:"tick"`
	Running      []int          `json:"running"`
	Waiting      []int          `json:"waiting"` // of those that run, in a wait for a lock
	Blocked      []int          `json:"blocked"` // sessions of which it is known whom they wait for
	Questions    []*float64     `json:"questions"`
	Transactions []int          `json:"transactions"`
	Deadlock     []int          `json:"deadlock"` // 1: one was seen in this second
	Down         []int          `json:"down"`     // 1: the server was
	Missing      []incident.Gap `json:"missing"`
}

// MostMoments is how many seconds Moments tells of at once.
const MostMoments = 7200

// Moments says which seconds are kept, with a few numbers of each.
func (d *Desk) Moments(instance string, from, to int64) (a MomentsAnswer, err error) {
	s := d.stream(instance)
	if s == nil {
		return a, state.ErrNotFound
	}
	a = MomentsAnswer{Instance: instance, From: from, To: to, Tick: []int64{}, Running: []int{}, Waiting: []int{}, Blocked: []int{}, Questions: []*float64{}, Transactions: []int{}, Deadlock: []int{}, Down: []int{}}
	a.Oldest, a.Newest, _ = s.ring.Span()
	one := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	list, err := d.read(s, from, to)
	for _, m := range list {
		a.Tick = append(a.Tick, m.Tick)
		a.Running = append(a.Running, m.Running())
		a.Waiting = append(a.Waiting, m.InLocks())
		a.Blocked = append(a.Blocked, m.Blocked())
		var q *float64
		if v, ok := m.Numbers["questions_per_second"]; ok {
			q = &v
		}
		a.Questions = append(a.Questions, q)
		a.Transactions = append(a.Transactions, len(m.Transactions))
		a.Deadlock = append(a.Deadlock, one(m.Deadlock != nil))
		a.Down = append(a.Down, one(m.Down != ""))
	}
	a.Missing = incident.Gaps(list, max(from, a.Oldest), min(to, a.Newest))
	return a, err
}

// List lists incidents, the newest first.
func (d *Desk) List(ctx context.Context, q state.IncidentQuery) ([]incident.Incident, error) {
	rows, err := d.opts.Facts.Incidents(ctx, q)
	out := make([]incident.Incident, 0, len(rows))
	for _, r := range rows {
		var i incident.Incident
		if err := json.Unmarshal(r.Body, &i); err != nil {
			return nil, fmt.Errorf("incident %s: %w", r.ID, err)
		}
		out = append(out, i)
	}
	return out, err
}

// Show tells an incident. state.ErrNotFound: there is none of that ID.
func (d *Desk) Show(ctx context.Context, id string, redact bool) (*incident.Told, error) {
	rows, err := d.opts.Facts.Incidents(ctx, state.IncidentQuery{ID: id})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, state.ErrNotFound
	}
	f, err := d.load(rows[0].ID)
	if err != nil {
		return nil, err
	}
	return incident.Tell(f, redact)
}

// load reads the file of an incident.
func (d *Desk) load(id string) (*incident.File, error) {
	f, err := os.Open(d.path(id))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the file of incident %s is gone", id)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return incident.Unpack(f)
}
