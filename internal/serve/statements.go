package serve

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/explain/history"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/events"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/collect"
)

// keepMinutes is how long statements are kept by the minute; by the hour they are kept as long as numbers.
const keepMinutes = 35 * 24 * time.Hour

// statements follows what runs on all watched servers.
type statements struct {
	store   events.Store  // nil: there is none
	missing fleet.Trouble // why there is none, and its remedy

	mu   sync.Mutex
	list []history.Source
}

// openStatements opens the store. That there is none is no failure, unless the user asked for one.
func openStatements(ctx context.Context, set config.Settings) (*statements, error) {
	s := new(statements)
	if set.Statements.Mode == string(history.Off) && !set.AnyStatements() {
		s.missing = fleet.Trouble{Why: "statements are not recorded", Remedy: "start risso serve without --no-statements or --statements off"}
		return s, nil
	}
	if set.Statements.EventsURL != "" {
		u, err := url.Parse(set.Statements.EventsURL)
		if err != nil || u.Host == "" {
			return nil, fault.Usagef("--events-url: write it as clickhouse://user:password@host:9000/database")
		}
		store, err := events.OpenClickHouse(ctx, set.Statements.EventsURL)
		if err != nil {
			return nil, fault.New(fault.Failed, "is ClickHouse running and reachable? without --events-url statements are kept in the data folder", err)
		}
		s.store = store
		return s, nil
	}
	store, err := events.OpenEmbedded(ctx, filepath.Join(set.Data, "events", "statements.duckdb"))
	switch {
	case err == nil:
		s.store = store
	case errors.Is(err, events.ErrNotBuilt):
		s.missing = fleet.Trouble{Why: err.Error(), Remedy: "build it with cgo: CGO_ENABLED=1 go build ./cmd/risso; or keep statements in ClickHouse: --events-url"}
	case errors.Is(err, events.ErrInUse):
		return nil, fault.New(fault.InUse, "give each its own folder with --data", err)
	case errors.Is(err, events.ErrNewer):
		s.missing = fleet.Trouble{Why: err.Error(), Remedy: "run the newer Risso, or move the file away: then statements start over"}
	default:
		s.missing = fleet.Trouble{Why: err.Error(), Remedy: "check the disk and the permissions of the data folder, then restart Risso"}
	}
	return s, nil
}

// close closes the store.
func (s *statements) close() {
	if s.store != nil {
		s.store.Close() // nothing can be done about it any more: what was confirmed is in the log
	}
}

// follow begins to follow a server.
func (s *statements) follow(ctx context.Context, group *collect.Group, w *watch, srv config.Watched, traffic *mysql.Traffic, i int, set config.Settings) {
	group.Go(ctx, &useKeeper{srv.Target, traffic, filepath.Join(set.Data, indexUse), srv.Instance.Name, w.logger, time.Duration(i%50) * time.Second})
	mode := history.Mode(cmp.Or(srv.Statements, set.Statements.Mode))
	if s.store == nil || mode == history.Off {
		return
	}
	o := history.Options{Store: s.store, Event: w.Event, Logger: w.logger, Traffic: traffic, Phase: time.Second + time.Duration(i%50)*100*time.Millisecond, Redact: set.Statements.Redact}
	if !set.Statements.NoPlans {
		o.PlanID = planID
	}
	var c history.Source
	state := filepath.Join(set.Data, "events")
	switch mode {
	case history.PerformanceSchema:
		c = history.New(srv.Target, srv.Instance, o)
	case history.SlowLogFile:
		c = history.NewSlowLogOnly(history.New(srv.Target, srv.Instance, o), history.NewSlowLog(srv.Target, srv.Instance, o, state))
	default:
		c = history.NewEither(history.New(srv.Target, srv.Instance, o), history.NewSlowLog(srv.Target, srv.Instance, o, state))
	}
	s.mu.Lock()
	s.list = append(s.list, c)
	s.mu.Unlock()
	group.Go(ctx, c)
}

// leave forgets the sources of a server that is not watched any more.
func (s *statements) leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(c history.Source) bool { return c.Status().Instance == id })
}

// begin reports what there is to report about the store, and keeps it small while ctx lasts.
func (s *statements) begin(ctx context.Context, group *collect.Group, w *watch, set config.Settings, facts *state.Store) {
	if s.missing.Why != "" && set.Statements.Mode != string(history.Off) {
		w.Event(fleet.Event{Time: time.Now(), Kind: fleet.EventStore, Severity: fleet.SeverityWarning, Text: "statements are not kept: " + s.missing.Why})
	}
	if s.store == nil {
		return
	}
	if d := s.store.Damage(); d != nil {
		w.Event(fleet.Event{Time: time.Now(), Kind: fleet.EventStore, Severity: fleet.SeverityCritical, Text: "the file of statements was damaged and moved to " + d.MovedTo + ": " + d.Reason})
	}
	group.Go(ctx, pruner{s.store, w, set.Retention})
	group.Go(ctx, &flips{store: s.store, facts: facts, board: w.board, logger: w.logger, told: map[string]bool{}})
}

// pruner deletes old statements.
type pruner struct {
	store     events.Store
	w         *watch
	retention time.Duration
}

// Run deletes at the start and every hour.
func (p pruner) Run(ctx context.Context) {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		now := time.Now()
		minutes, everything := now.Add(-keepMinutes), time.Unix(0, 0)
		if p.retention > 0 {
			everything = now.Add(-p.retention)
			if everything.After(minutes) {
				minutes = everything
			}
		}
		if err := p.store.Prune(ctx, minutes, everything); err != nil && ctx.Err() == nil {
			p.w.logger.Warn("old statements could not be deleted", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sources says how collecting goes, by instance.
func (s *statements) sources() []history.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]history.Status, len(s.list))
	for i, c := range s.list {
		out[i] = c.Status()
	}
	return out
}
