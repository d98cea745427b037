// Package advice looks at the watched servers every now and then and keeps what is wrong with them before it hurts: since when, and what
// people decided about it. What is critical and undecided is among what is wrong with a server, and rings.
package advice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/throttle"
	"github.com/rissodb/risso/internal/watch/live"
)

// Board knows what is watched, and takes what is wrong with an instance now, until the same ones note something else.
type Board interface {
	Note(instance, by string, findings []fleet.Finding)
	Instances() []fleet.Instance
	Seat(id string) fleet.Seat                  // where it said last that it has its seat
	Follows(now time.Time) map[string][]string  // from which watched instances each one replicates
	Detail(instance string) (live.Detail, bool) // what is known of one now
}

// Options are what a Room needs.
type Options struct {
	Servers func() []config.Watched // those that are watched now
	Config  config.Advice
	Facts   *state.Store
	Board   Board
	Logger  *slog.Logger
	Traffic func(instance string) *mysql.Traffic // of all sessions to a server, so that looks are not taken for load; nil: nobody asks
	Uses    string                               // the folder in which it is kept how often indexes are used; empty: there is none
}

const (
	noter      = "advice" // by whom the board is told
	tick       = 20 * time.Second
	busyWait   = 30 * time.Minute // for a server that is busy, before it is tried again later
	keepEnded  = 90 * 24 * time.Hour
	mostNoted  = 20 // findings of a server among what is wrong now
	maxLag     = 5 * time.Minute
	factsLimit = time.Minute // of writing what a look found
)

// Room looks at servers, one at a time. Its methods may be called from any goroutine.
type Room struct {
	Options
	started time.Time
	wake    chan struct{}

	mu     sync.Mutex
	asked  []string // instances to look at now, in this order
	busy   string   // the instance that is being looked at
	since  time.Time
	tables int    // looked at so far
	held   string // why the look pauses

	looks map[string]state.AdviceLook // Run's
}

// New makes a room.
func New(o Options) *Room {
	return &Room{Options: o, started: time.Now(), wake: make(chan struct{}, 1), looks: map[string]state.AdviceLook{}}
}

// Run looks at servers until ctx ends.
func (r *Room) Run(ctx context.Context) error {
	list, err := r.Facts.AdviceLooks(ctx)
	if ctx.Err() != nil { // stopped before it began
		return nil
	}
	if err != nil {
		return fmt.Errorf("read when servers were looked at: %w", err)
	}
	for _, l := range list {
		r.looks[l.Instance] = l
	}
	t := time.NewTicker(tick)
	defer t.Stop()
	pruned := time.Time{}
	for ctx.Err() == nil {
		r.noteAll(ctx)
		if time.Since(pruned) > 24*time.Hour {
			pruned = time.Now()
			if err := r.Facts.PruneAdvice(ctx, pruned.Add(-keepEnded)); err != nil && ctx.Err() == nil {
				r.Logger.Warn("advice that ended long ago could not be removed", "err", err)
			}
		}
		if w, ok := r.next(time.Now()); ok {
			r.look(ctx, w)
			continue
		}
		select {
		case <-t.C:
		case <-r.wake:
		case <-ctx.Done():
		}
	}
	return nil
}

// next is the server to look at now: who was asked for, or else who is due.
func (r *Room) next(now time.Time) (config.Watched, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.asked) > 0 {
		id := r.asked[0]
		r.asked = r.asked[1:]
		if w, ok := r.server(id); ok {
			r.busy, r.since, r.tables, r.held = id, now, 0, ""
			return w, true
		}
	}
	if r.Config.Every <= 0 {
		return config.Watched{}, false
	}
	for _, w := range r.Servers() {
		l := r.looks[w.Instance.ID]
		if !due(w.Instance.ID, l.Looked.In(now.Location()), l.Tried, r.started, r.Config.Every, r.Config.At).After(now) {
			r.busy, r.since, r.tables, r.held = w.Instance.ID, now, 0, ""
			return w, true
		}
	}
	return config.Watched{}, false
}

func (r *Room) server(id string) (config.Watched, bool) {
	return config.WatchedAs(r.Servers(), id)
}

// Look lets instances be looked at as soon as possible; none: all. It returns which; unknown ones are left out.
func (r *Room) Look(instances []string) (queued []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.Servers() {
		id := w.Instance.ID
		if len(instances) > 0 && !slices.Contains(instances, id) {
			continue
		}
		queued = append(queued, id)
		if !slices.Contains(r.asked, id) {
			r.asked = append(r.asked, id)
		}
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return queued
}

// look looks at one server and keeps what follows.
func (r *Room) look(ctx context.Context, w config.Watched) {
	id := w.Instance.ID
	answer, unsure, err := r.ask(ctx, w)
	r.mu.Lock()
	r.busy = ""
	r.mu.Unlock()
	if ctx.Err() != nil { // stopped in the middle: nothing is known
		return
	}
	kctx, cancel := context.WithTimeout(ctx, factsLimit)
	defer cancel()
	if err == nil {
		answer.Findings = r.everywhere(w, answer.Findings)
		err = r.keep(kctx, w, answer, unsure)
	} else {
		err = r.failed(kctx, id, err)
	}
	if err != nil && ctx.Err() == nil {
		r.Logger.Warn("what a look for advice found could not be kept", "server", w.Instance.Name, "err", err)
		l := r.looks[id]
		l.Instance, l.Tried = id, time.Now() // not again at once
		r.looks[id] = l
	}
}

// ask reads a server, when it can take it. unsure are checks that could not be done.
func (r *Room) ask(ctx context.Context, w config.Watched) (answer gather.Answer, unsure []string, err error) {
	choice, err := pattern.NewChoice(nil, nil)
	if err != nil {
		return answer, nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.Config.Time+busyWait, fmt.Errorf("no answer within %s", digits.Span(r.Config.Time)))
	defer cancel()
	gate, err := throttle.New(ctx, throttle.Limits{MaxLag: maxLag, MaxThreadsRunning: r.Config.MaxThreadsRunning, Own: 1}, w.Target)
	if err != nil {
		return answer, nil, err
	}
	defer gate.Close()
	wait, stop := context.WithTimeoutCause(ctx, busyWait, errors.New("the server is too busy to be looked at"))
	err = gate.Pass(wait, 0)
	stop()
	if err != nil {
		_, why := gate.Held()
		return answer, nil, fmt.Errorf("%w: %s", err, why)
	}
	work, end := context.WithTimeoutCause(ctx, r.Config.Time, fmt.Errorf("the look took longer than %s (advice: time)", digits.Span(r.Config.Time)))
	defer end()
	answer, err = gather.Look(work, w.Target, gather.Options{Choice: choice, LeaveOut: r.Config.LeaveOut, Traffic: r.traffic(w), Kept: r.Uses, Progress: func(tables int) {
		r.mu.Lock()
		r.tables = tables
		r.mu.Unlock()
		_ = gate.Pass(work, 0) // what ends work ends the look as well
	}})
	if err == nil {
		var list []advise.Finding
		var missing []fleet.Trouble
		list, missing, err = Accounts(work, w.Target, w.Instance.Name)
		answer.Findings, answer.Missing = append(answer.Findings, list...), append(answer.Missing, missing...)
	}
	if err == nil {
		var list []advise.Finding
		list, unsure, err = r.beside(work, w)
		answer.Findings = advise.Beside(answer.Findings, list)
		advise.Rank(answer.Findings)
	}
	if cause := context.Cause(work); err != nil && cause != nil {
		err = cause
	}
	return answer, unsure, err
}

// traffic is what all sessions to a server share.
func (r *Room) traffic(w config.Watched) *mysql.Traffic {
	if r.Traffic == nil {
		return nil
	}
	return r.Traffic(w.Instance.ID)
}

// keep writes what a look found.
func (r *Room) keep(ctx context.Context, w config.Watched, a gather.Answer, unsure []string) error {
	id, now := w.Instance.ID, time.Now()
	kept, err := r.Facts.Advice(ctx, state.AdviceQuery{Instances: []string{id}})
	if err != nil {
		return err
	}
	put, more, events, err := follows(kept, seen{instance: id, at: now, first: r.looks[id].Looked.IsZero(), found: r.within(a.Findings), missing: a.Missing, unsure: unsure})
	if err != nil {
		return err
	}
	body, err := json.Marshal(Look{Version: a.Server.Version, Tables: a.Tables, Seconds: a.Took.Seconds(), Missing: append([]fleet.Trouble{}, a.Missing...), More: more})
	if err != nil {
		return err
	}
	l := state.AdviceLook{Instance: id, Looked: now, Tried: now, Body: body}
	if err := r.Facts.KeepAdvice(ctx, l, put, events); err != nil {
		return err
	}
	r.looks[id] = l
	return nil
}

// within leaves out what is about schemas that are left out.
func (r *Room) within(list []advise.Finding) []advise.Finding {
	return slices.DeleteFunc(list, func(f advise.Finding) bool {
		return slices.ContainsFunc(r.Config.LeaveOut, func(p string) bool { return pattern.Stars(p+".*", f.Object) })
	})
}

// failed writes that a look failed; what was found before stays.
func (r *Room) failed(ctx context.Context, id string, why error) error {
	l := r.looks[id]
	var was Look
	if len(l.Body) > 0 {
		if err := json.Unmarshal(l.Body, &was); err != nil {
			was = Look{}
		}
	}
	was.Error = fault.Line(why.Error(), fleet.RemedyOf(why))
	body, err := json.Marshal(was)
	if err != nil {
		return err
	}
	l.Instance, l.Tried, l.Body = id, time.Now(), body
	if err := r.Facts.KeepAdvice(ctx, l, nil, nil); err != nil {
		return err
	}
	r.looks[id] = l
	return nil
}

// noteAll tells the board what of advice is wrong now, as far as it rings and nobody decided about it.
func (r *Room) noteAll(ctx context.Context) {
	if r.Config.Ring == 0 {
		return
	}
	rows, err := r.Facts.Advice(ctx, state.AdviceQuery{Open: true, Severity: r.Config.Ring})
	var decisions []state.AdviceDecision
	if err == nil {
		decisions, err = r.Facts.AdviceDecisions(ctx)
	}
	if err != nil { // what was noted stays
		if ctx.Err() == nil {
			r.Logger.Warn("what advice found could not be read", "err", err)
		}
		return
	}
	by := map[string][]fleet.Finding{}
	now := time.Now()
	slices.SortStableFunc(rows, func(a, b state.AdviceRow) int {
		if a.Severity != b.Severity {
			return int(b.Severity) - int(a.Severity)
		}
		return a.First.Compare(b.First)
	})
	for _, row := range rows {
		w, ok := r.server(row.Instance)
		if !ok || len(by[row.Instance]) == mostNoted || decided(decisions, w.Instance, row.ID, row.Object, row.Severity, now) != nil {
			continue
		}
		by[row.Instance] = append(by[row.Instance], noted(row))
	}
	for _, w := range r.Servers() {
		r.Board.Note(w.Instance.ID, noter, by[w.Instance.ID])
	}
}

// noted is what was found as it is among what is wrong with a server.
func noted(row state.AdviceRow) fleet.Finding {
	var f advise.Finding
	if err := json.Unmarshal(row.Body, &f); err != nil {
		f.What = row.ID + " " + row.Object
	}
	remedy := f.Statement
	if remedy == "" {
		remedy = f.Advice
	}
	return fleet.Finding{ID: fleet.AdvicePrefix + row.ID, Subject: row.Object, Severity: row.Severity, Since: earlier(row.Since, row.First), Trouble: fleet.Trouble{What: f.What, Why: f.Why, Remedy: remedy}}
}
