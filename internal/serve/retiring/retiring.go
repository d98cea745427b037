// Package retiring carries on, while risso serve runs, what risso index retire began: each hour an index that is hidden is judged by what its
// table's statements cost on all servers of the group, taken back at once when a class got slower, and dropped when its time is over.
//
// Where each index stands is in the journal of package retire, which commands use as well: who changes something has its lock. What is told of
// it follows from the journal alone, so that a process that is killed at any moment loses nothing and says nothing twice.
package retiring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/explain/retire"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/events"
	"github.com/rissodb/risso/internal/store/state"
)

// Board is what is known of the watched servers.
type Board interface {
	Note(instance, by string, findings []fleet.Finding)
	Seat(id string) fleet.Seat
	Follows(now time.Time) map[string][]string
}

// Facts keeps events.
type Facts interface {
	AddEvents(ctx context.Context, events ...fleet.Event) ([]fleet.Event, error)
	Events(ctx context.Context, q state.EventQuery) ([]fleet.Event, error)
}

// Options are what a Room needs.
type Options struct {
	Folder  retire.Folder
	Servers func() []config.Watched              // those that are watched now
	Traffic func(instance string) *mysql.Traffic // of all sessions to a server
	Store   events.Store                         // of statements; nil: there is none
	Facts   Facts
	Board   Board
	Logger  *slog.Logger
	Now     func() time.Time

	at func(point string) // for tests: called between what is done and what is written down of it
}

const (
	noter    = "retiring" // by whom the board is told
	begin    = 20 * time.Second
	tick     = time.Minute // in which the journal is looked at
	every    = time.Hour   // in which an index is judged
	patience = 5 * time.Minute
	toldFor  = 7 * 24 * time.Hour // that an index was taken back is among what is wrong

	// What is found: an index that was taken back, and one whose time is over and that is not dropped.
	backID  = fleet.AdvicePrefix + "index.back"
	waitsID = fleet.AdvicePrefix + "index.waits"
	stepID  = fleet.AdvicePrefix + "index.retire" // the subject of events
)

// Room carries on what is being retired. One goroutine owns it.
type Room struct {
	Options
	tried map[string]time.Time // by seat and object
}

// New makes a room.
func New(o Options) *Room { return &Room{Options: o, tried: map[string]time.Time{}} }

// Run looks at the journal each minute until ctx ends.
func (r *Room) Run(ctx context.Context) error {
	for wait := begin; delay.For(ctx, wait) == nil; wait = tick {
		r.Look(ctx)
	}
	return nil
}

// Look judges the indexes whose hour has come, and tells what was done, by whomever.
func (r *Room) Look(ctx context.Context) {
	list, err := r.Folder.List()
	if err != nil {
		r.Logger.Warn("the journal of indexes that are being retired could not be read", "err", err)
	}
	found := map[string][]fleet.Finding{}
	for _, rec := range list {
		servers := r.Servers()
		i := slices.IndexFunc(servers, func(w config.Watched) bool { return r.Board.Seat(w.Instance.ID).Place() == rec.Seat })
		if i < 0 { // the server is not watched, or did not answer yet
			continue
		}
		w := servers[i]
		if r.due(rec) {
			r.check(ctx, w, rec)
		}
		if err := r.tell(ctx, w, rec); err != nil && ctx.Err() == nil {
			r.Logger.Warn("what was done to an index could not be told", "index", rec.Object(), "err", err)
		}
		if f, ok := finding(rec, r.Now()); ok {
			found[w.Instance.ID] = append(found[w.Instance.ID], f)
		}
		if ctx.Err() != nil {
			return
		}
	}
	for _, w := range r.Servers() {
		r.Board.Note(w.Instance.ID, noter, found[w.Instance.ID])
	}
}

// due reports whether it is time to judge an index: each hour, and at once what a process that was killed left.
func (r *Room) due(rec *retire.Record) bool {
	if rec.Ended() {
		return false
	}
	last, tried := r.tried[rec.Seat+" "+rec.Object()]
	if !tried {
		last = rec.Checked
	}
	return !tried && rec.Phase != retire.Watching || r.Now().Sub(last) >= every
}

// check judges an index and does what follows. rec is as the journal has it then.
func (r *Room) check(ctx context.Context, w config.Watched, rec *retire.Record) {
	r.tried[rec.Seat+" "+rec.Object()] = r.Now()
	one, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %s", patience))
	defer cancel()
	c, err := r.retirer(w, rec).Check(one, rec, false)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, retire.ErrBusy): // a command works on it: in a minute
		delete(r.tried, rec.Seat+" "+rec.Object())
	case err != nil:
		r.Logger.Warn("an index that is being retired could not be judged", "index", rec.Object(), "server", w.Instance.Name, "err", err)
	default:
		r.Logger.Info("an index that is being retired was judged", "index", rec.Object(), "server", w.Instance.Name, "did", c.Did)
	}
	r.point("checked")
}

func (r *Room) point(name string) {
	if r.at != nil {
		r.at(name)
	}
}

// retirer is what judges an index of a server: on all servers that replicate from it, and on those on which it was watched before.
func (r *Room) retirer(w config.Watched, rec *retire.Record) *retire.Retirer {
	t := &retire.Retirer{Folder: r.Folder, Server: r.server(w), Now: r.Now, At: r.at}
	if r.Store != nil {
		t.Kept = kept{r.Store, r.instance}
	}
	follows := r.Board.Follows(r.Now())
	for _, o := range r.Servers() {
		place := r.Board.Seat(o.Instance.ID).Place()
		switch {
		case o.Instance.ID == w.Instance.ID || place == rec.Seat:
		case r.Board.Seat(o.Instance.ID) == fleet.Seat{}:
			if o.Instance.Group == w.Instance.Group { // it may be a replica
				t.Absent = append(t.Absent, o.Instance.Name)
			}
		case within(follows, o.Instance.ID, w.Instance.ID) || slices.ContainsFunc(rec.Baselines, func(b retire.Baseline) bool { return b.Seat == place }):
			t.Replicas = append(t.Replicas, r.server(o))
		}
	}
	return t
}

func (r *Room) server(w config.Watched) retire.Server {
	return retire.Server{Name: w.Instance.Name, Target: w.Target, Traffic: r.Traffic(w.Instance.ID)}
}

// instance is the ID of the server that has a seat; "" if none that is watched has.
func (r *Room) instance(place string) string {
	for _, w := range r.Servers() {
		if r.Board.Seat(w.Instance.ID).Place() == place {
			return w.Instance.ID
		}
	}
	return ""
}

// within reports whether a server replicates from another, directly or not.
func within(follows map[string][]string, id, from string) bool {
	seen, list := map[string]bool{id: true}, []string{id}
	for len(list) > 0 {
		for _, source := range follows[list[0]] {
			if source == from {
				return true
			}
			if !seen[source] {
				seen[source] = true
				list = append(list, source)
			}
		}
		list = list[1:]
	}
	return false
}

// tell makes events of what the journal says and was not told. What was told and not noted as told, because somebody killed the process in
// between, is found among the events.
func (r *Room) tell(ctx context.Context, w config.Watched, rec *retire.Record) error {
	if rec.Told >= len(rec.Log) {
		return nil
	}
	for _, entry := range rec.Log[rec.Told:] {
		e := fleet.Event{Time: entry.Time, Instance: w.Instance.ID, Kind: fleet.EventFinding, Severity: severity(entry.What), Subject: stepID, Text: "index " + rec.Object() + " is being retired: " + entry.What}
		before, err := r.Facts.Events(ctx, state.EventQuery{Instances: []string{e.Instance}, Kinds: []fleet.EventKind{e.Kind}, From: e.Time.Add(-time.Second), To: e.Time.Add(time.Second)})
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		if slices.ContainsFunc(before, func(b fleet.Event) bool { return b.Subject == e.Subject && b.Text == e.Text }) {
			continue
		}
		if _, err := r.Facts.AddEvents(ctx, e); err != nil {
			return fmt.Errorf("write an event: %w", err)
		}
		r.point("told")
	}
	rec.Told = len(rec.Log)
	return r.Folder.MarkTold(ctx, rec, rec.Told)
}

// severity is how bad an entry of the journal is.
func severity(what string) fleet.Severity {
	if strings.Contains(what, "; because ") || strings.HasPrefix(what, "not dropped") || strings.HasPrefix(what, "refused") {
		return fleet.SeverityWarning
	}
	return fleet.SeverityInfo
}

// finding is what is wrong with an index that is, or was, being retired.
func finding(rec *retire.Record, now time.Time) (fleet.Finding, bool) {
	n := len(rec.Log)
	switch {
	case n == 0:
	case rec.Phase == retire.Back && len(rec.Worse) > 0 && now.Sub(rec.Log[n-1].Time) < toldFor:
		g := rec.Worse[0]
		return fleet.Finding{ID: backID, Subject: rec.Object(), Severity: fleet.SeverityWarning, Since: rec.Log[n-1].Time, Trouble: fleet.Trouble{
			What: fmt.Sprintf("index %s was taken back because class %s on %s %s", rec.Object(), g.Digest, g.Server, g.What), Why: "the class needs it: " + g.Text, Remedy: "keep the index; the page Queries shows the class"}}, true
	case rec.Phase == retire.Watching && !now.Before(rec.Due) && strings.HasPrefix(rec.Log[n-1].What, "not dropped"):
		return fleet.Finding{ID: waitsID, Subject: rec.Object(), Severity: fleet.SeverityWarning, Since: rec.Log[n-1].Time, Trouble: fleet.Trouble{
			What: "index " + rec.Object() + " is hidden, its time is over, and it is " + rec.Log[n-1].What, Why: "each write of a row maintains it still", Remedy: "risso index drop '" + rec.Object() + "' or risso index back '" + rec.Object() + "'"}}, true
	}
	return fleet.Finding{}, false
}
