// Package topology looks, while risso serve runs, at who replicates from whom: every few seconds, and at once when a watched server changes its state. It keeps
// what changed of structure and state, so that what the topology looked like at some time can be told later. When nobody looked, that is said.
package topology

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/diagnose"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/avail/topology/look"
	"github.com/rissodb/risso/internal/avail/topology/picture"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/state"
)

// Facts keeps what topologies looked like.
type Facts interface {
	AddTopology(ctx context.Context, before int64, seen time.Time, r state.TopologyRow, oldest time.Time) (int64, error)
	SawTopology(ctx context.Context, id int64, seen time.Time) error
	TopologyAt(ctx context.Context, at time.Time) (row, next *state.TopologyRow, err error)
	Topologies(ctx context.Context, from, to time.Time, limit int) ([]state.TopologyRow, error)
}

// Options are what a Room needs.
type Options struct {
	Servers   func() []config.Watched // those that are watched now
	Config    config.Topology
	Retention time.Duration // how long changes are kept, within the bounds of the store; 0: within these alone
	Facts     Facts
	Logger    *slog.Logger
	Now       func() time.Time
	Traffic   func(instance string) *mysql.Traffic // of all sessions to a watched server; nil: there are no others

	Found func(instance string, findings []fleet.Finding) // takes what is diagnosed of a watched server, after each look; nil: nobody does
}

const (
	patience = 3 * time.Second  // with each server
	pause    = time.Second      // between two looks, however often it is poked
	note     = 30 * time.Second // how often it is written down that nothing changed: so much a kill may lose
	mostGap  = time.Minute      // between two looks of one process: after more, nobody knows what was between them
)

// Room looks at the topology. One goroutine owns what it writes; others ask for what it saw.
type Room struct {
	Options
	run   time.Time
	poke  chan struct{}
	holds steady

	mu    sync.Mutex
	now   *picture.Picture // as it was seen last; nil: not yet
	row   int64            // what is kept of it; 0: nothing yet
	first time.Time        // since when it is seen so, whether that could be kept or not
	last  time.Time        // until when
	key   string           // of what is kept
	shape string           // of what is seen
	noted time.Time        // when it was written down last that nothing changed
	kept  *picture.Picture // what is kept
}

// New makes a room.
func New(o Options) *Room {
	return &Room{Options: o, run: o.Now(), poke: make(chan struct{}, 1), holds: steady{}}
}

// search looks from all servers that are watched now.
func (r *Room) search() (*topology.Search, []picture.Watched) {
	var targets []mysql.Target
	var list []picture.Watched
	for _, w := range r.Servers() {
		targets = append(targets, w.Target)
		list = append(list, picture.Watched{ID: w.Instance.ID, Name: w.Instance.Name, Address: w.Target.Address()})
	}
	s := look.Beside(targets, r.traffic)
	s.Patience, s.Reach = patience, r.Config.Reach
	return s, list
}

// traffic is what the sessions to a watched server share.
func (r *Room) traffic(t mysql.Target) *mysql.Traffic {
	for _, w := range r.Servers() {
		if r.Traffic != nil && w.Target.Address() == t.Address() {
			return r.Traffic(w.Instance.ID)
		}
	}
	return nil
}

// Poke lets the room look as soon as possible: something changed.
func (r *Room) Poke() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// Run looks until ctx ends.
func (r *Room) Run(ctx context.Context) error {
	if r.Config.Every == 0 {
		return nil
	}
	if err := r.resume(ctx); err != nil && ctx.Err() == nil {
		r.Logger.Warn("what the topology looked like before could not be read", "err", err)
	}
	for {
		began := r.Now()
		if len(r.Servers()) > 0 {
			r.Look(ctx)
		}
		if !r.wait(ctx, max(r.Config.Every-r.Now().Sub(began), pause)) {
			break
		}
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	r.note(end)
	return nil
}

// wait waits for the next look, but not longer than a pause if it is poked; false: ctx ended.
func (r *Room) wait(ctx context.Context, d time.Duration) bool {
	soon, next := time.After(pause), time.After(d)
	select {
	case <-ctx.Done():
		return false
	case <-soon:
	}
	select {
	case <-ctx.Done():
		return false
	case <-next:
	case <-r.poke:
	}
	return true
}

// resume remembers what was seen last before this process began.
func (r *Room) resume(ctx context.Context) error {
	row, _, err := r.Facts.TopologyAt(ctx, r.run)
	if err != nil || row == nil {
		return err
	}
	p := new(picture.Picture)
	if err := json.Unmarshal(row.Body, p); err != nil {
		return fmt.Errorf("read topology %d: %w", row.ID, err)
	}
	p.Resume(row.Last)
	p.Dress()
	r.kept = p
	r.holds.resume(p)
	return nil
}

// Look looks once, and keeps what changed.
func (r *Room) Look(ctx context.Context) {
	before := r.now
	if before == nil {
		before = r.kept
	}
	search, list := r.search()
	t := search.Discover(ctx, starts(list, before))
	if ctx.Err() != nil { // what did not answer then was not asked long enough
		return
	}
	p := picture.Of(t, list, before, picture.Diagnosed(r.holds.look(r.Now(), diagnose.Diagnose(t))))
	if r.Found != nil {
		told := findings(p)
		for _, w := range list {
			r.Found(w.ID, told[w.ID])
		}
	}
	key := p.Key()
	r.mu.Lock()
	if r.now == nil || key != r.shape || p.Time.Sub(r.now.Time) > r.mostGap() {
		r.first, r.shape = p.Time, key
	}
	r.now = p
	same := r.row != 0 && key == r.key && p.Time.Sub(r.last) <= r.mostGap()
	if same {
		r.last = p.Time
	}
	r.mu.Unlock()
	switch {
	case !same: // what was seen is kept, though Risso ends just now
		kctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		r.keep(kctx, p, key)
	case p.Time.Sub(r.noted) >= note:
		r.note(ctx)
	}
}

func (r *Room) mostGap() time.Duration { return max(mostGap, 3*r.Config.Every) }

// starts are the watched servers, and the others that were seen: who told of them may be gone.
func starts(list []picture.Watched, before *picture.Picture) (starts []topology.Start) {
	for _, w := range list {
		starts = append(starts, topology.Start{Name: w.Name, Address: w.Address})
	}
	if before == nil {
		return starts
	}
	for i := range before.Nodes {
		if n := &before.Nodes[i]; n.Instance == "" && !n.Answered.IsZero() {
			for _, a := range n.Addresses {
				if !strings.HasPrefix(a, "/") {
					starts = append(starts, topology.Start{Name: n.Name, Address: a})
					break
				}
			}
		}
	}
	return starts
}

// keep writes down how the topology looks from now on.
func (r *Room) keep(ctx context.Context, p *picture.Picture, key string) {
	kept := p.Kept()
	body, err := json.Marshal(kept)
	if err != nil {
		r.Logger.Warn("the topology could not be kept", "err", err)
		return
	}
	words := picture.Diff(r.kept, p)
	if len(words) == 0 {
		words = []string{"seen again, as it was: " + p.Words}
	}
	oldest := time.Time{}
	if r.Retention > 0 {
		oldest = p.Time.Add(-r.Retention)
	}
	id, err := r.Facts.AddTopology(ctx, r.row, r.last, state.TopologyRow{Run: r.run, First: p.Time, Last: p.Time, Words: words, Body: body}, oldest)
	if err != nil { // it is tried again at the next look; what was between is not known then
		if ctx.Err() == nil {
			r.Logger.Warn("the topology could not be kept", "err", err)
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.row, r.key, r.last, r.noted, r.kept = id, key, p.Time, p.Time, kept
}

// note writes down until when nothing changed.
func (r *Room) note(ctx context.Context) {
	if r.row == 0 {
		return
	}
	if err := r.Facts.SawTopology(ctx, r.row, r.last); err != nil {
		r.Logger.Warn("it could not be noted that the topology is as it was", "err", err)
		return
	}
	r.noted = r.last
}

// Answer is what the topology looks like, or looked like at a time.
type Answer struct {
	At     time.Time        `json:"at"`              // what was asked for
	Known  bool             `json:"known"`           // somebody looked then
	Why    string           `json:"why,omitempty"`   // why it is not known
	From   time.Time        `json:"from,omitzero"`   // since when it was seen so
	Until  time.Time        `json:"until,omitzero"`  // and until when: the last look that saw it so
	Before time.Time        `json:"before,omitzero"` // where it is not known: the last time before that is
	After  time.Time        `json:"after,omitzero"`  // and the first after
	Every  float64          `json:"every"`           // seconds between two looks; 0: nobody looks
	Shown  *picture.Picture `json:"topology"`        // null where it is not known
}

// Change is when the topology changed, or a time of which nothing is known.
type Change struct {
	Time  time.Time `json:"time"`          // when it was first seen so; of a gap its begin
	Until time.Time `json:"until"`         // when it was last seen so; of a gap its end
	Gap   bool      `json:"gap,omitempty"` // nobody looked
	Words []string  `json:"words"`         // what changed
}

// Changes are those of a time.
type Changes struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Changes []Change  `json:"changes"` // the newest first
	Left    bool      `json:"left"`    // there are more, that are older
}

// Current is what the topology looks like now.
func (r *Room) Current() Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := Answer{At: r.Now(), Every: r.Config.Every.Seconds()}
	switch {
	case len(r.Servers()) == 0:
		a.Why = "no server is watched"
	case r.Config.Every == 0:
		a.Why = "the topology is not looked at: the config file says topology: {every: off}"
	case r.now == nil:
		a.Why = "the first look goes on"
	case a.At.Sub(r.now.Time) > r.mostGap():
		a.Before, a.Why = r.now.Time, "nobody has looked since "+clock(r.now.Time)
	default:
		a.Known, a.From, a.Until, a.Shown = true, r.first, r.now.Time, r.now
	}
	return a
}

// At is what the topology looked like at a time.
func (r *Room) At(ctx context.Context, at time.Time) (Answer, error) {
	a := Answer{At: at, Every: r.Config.Every.Seconds()}
	if at.After(r.Now()) {
		a.Why = "that is yet to come"
		return a, nil
	}
	row, next, err := r.Facts.TopologyAt(ctx, at)
	if err != nil {
		return a, err
	}
	if next != nil {
		a.After = next.First
	}
	if row == nil {
		a.Why = "nobody looked yet"
		if next != nil {
			a.Why = "it was looked at from " + clock(next.First) + " on"
		}
		return a, nil
	}
	r.lasted(row)
	switch {
	case !at.After(row.Last):
	case next != nil && r.joined(row, next): // between two looks: it was seen so at the one before
	case next == nil && row.Run.Equal(r.stamp()) && at.Sub(row.Last) <= r.mostGap():
	default:
		a.Before, a.Why = row.Last, "risso serve did not look from "+clock(row.Last)
		if next != nil {
			a.Why += " to " + clock(next.First) + " (" + digits.Span(next.First.Sub(row.Last).Round(time.Second)) + ")"
		} else {
			a.Why += " on"
		}
		return a, nil
	}
	p := new(picture.Picture)
	if err := json.Unmarshal(row.Body, p); err != nil {
		return a, fmt.Errorf("read topology %d: %w", row.ID, err)
	}
	if p.Time = at; at.After(row.Last) {
		p.Time = row.Last
	}
	p.Dress()
	a.Known, a.From, a.Until, a.Shown, a.After = true, row.First, row.Last, p, time.Time{}
	return a, nil
}

// stamp is this process' run, as the store has it.
func (r *Room) stamp() time.Time { return time.UnixMicro(r.run.UnixMicro()) }

// lasted puts into a row until when it lasted, if that is what is seen now: less often it is written down.
func (r *Room) lasted(row *state.TopologyRow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if row.ID == r.row && r.last.After(row.Last) {
		row.Last = r.last
	}
}

// joined reports whether somebody looked all the time from one row to the next.
func (r *Room) joined(row, next *state.TopologyRow) bool {
	return row.Run.Equal(next.Run) && next.First.Sub(row.Last) <= r.mostGap()
}

func clock(t time.Time) string { return t.Local().Format(time.DateTime) }

// Changes are those of a time, the newest first, at most limit.
func (r *Room) Changes(ctx context.Context, from, to time.Time, limit int) (Changes, error) {
	out := Changes{From: from, To: to, Changes: []Change{}}
	rows, err := r.Facts.Topologies(ctx, from, to, limit+1)
	if err != nil {
		return out, err
	}
	for i := range rows {
		row := &rows[i]
		r.lasted(row)
		if i > 0 && !r.joined(row, &rows[i-1]) {
			next := &rows[i-1]
			out.Changes = append(out.Changes, Change{Time: row.Last, Until: next.First, Gap: true,
				Words: []string{"not known: risso serve did not look for " + digits.Span(next.First.Sub(row.Last).Round(time.Second))}})
		}
		if out.Left = i >= limit; out.Left {
			break
		}
		out.Changes = append(out.Changes, Change{Time: row.First, Until: row.Last, Words: row.Words})
	}
	return out, nil
}
