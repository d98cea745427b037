package cli

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/explain/history"
	"github.com/rissodb/risso/internal/face/web"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/store/events"
	"github.com/rissodb/risso/internal/watch/collect"
)

// statementFlags say how risso serve follows statements.
type statementFlags struct {
	eventsURL    string
	mode         string
	noStatements bool
	noPlans      bool
	redact       bool
}

// bindStatements adds the flags to a command.
func bindStatements(f *statementFlags, cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.eventsURL, "events-url", "", "keep statements in ClickHouse: clickhouse://user:password@host:9000/database (default: DuckDB in the data folder)")
	fl.StringVar(&f.mode, "statements", "", "where statements are read: auto, performance_schema, slow-log or off (default auto: performance_schema, and where that is off the slow log of a server on this machine)")
	fl.BoolVar(&f.noStatements, "no-statements", false, "do not follow statements; the same as --statements off")
	fl.BoolVar(&f.noPlans, "no-plans", false, "take no plans of the heaviest statements")
	fl.BoolVar(&f.redact, "redact", false, "hide literal values in samples and plans before they are stored")
}

// keepMinutes is how long statements are kept by the minute; by the hour they are kept as long as numbers.
const keepMinutes = 35 * 24 * time.Hour

// statements follows what runs on all watched servers.
type statements struct {
	store       events.Store // nil: there is none
	why, remedy string
	list        []history.Source
}

// openStatements opens the store. That there is none is no failure, unless the user asked for one.
func openStatements(ctx context.Context, set settings) (*statements, error) {
	s := new(statements)
	if set.statements.mode == string(history.Off) && !set.anyStatements() {
		s.why, s.remedy = "statements are not followed", "start risso serve without --no-statements or --statements off"
		return s, nil
	}
	if set.statements.eventsURL != "" {
		u, err := url.Parse(set.statements.eventsURL)
		if err != nil || u.Host == "" {
			return nil, usageError("--events-url: write it as clickhouse://user:password@host:9000/database")
		}
		store, err := events.OpenClickHouse(ctx, set.statements.eventsURL)
		if err != nil {
			return nil, failure(exitFailed, "is ClickHouse running and reachable? without --events-url statements are kept in the data folder", err)
		}
		s.store = store
		return s, nil
	}
	store, err := events.OpenEmbedded(ctx, filepath.Join(set.data, "events", "statements.duckdb"))
	switch {
	case err == nil:
		s.store = store
	case errors.Is(err, events.ErrNotBuilt):
		s.why, s.remedy = err.Error(), "build it with cgo: CGO_ENABLED=1 go build ./cmd/risso; or keep statements in ClickHouse: --events-url"
	case errors.Is(err, events.ErrInUse):
		return nil, failure(exitInUse, "give each its own folder with --data", err)
	case errors.Is(err, events.ErrNewer):
		s.why, s.remedy = err.Error(), "run the newer Risso, or move the file away: statements begin anew then"
	default:
		s.why, s.remedy = err.Error(), "look at the disk and the rights of the data folder, then start Risso again"
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
func (s *statements) follow(ctx context.Context, group *collect.Group, w *watch, srv watched, traffic *mysql.Traffic, i int, set settings) {
	mode := history.Mode(cmp.Or(srv.statements, set.statements.mode))
	if s.store == nil || mode == history.Off {
		return
	}
	o := history.Options{Store: s.store, Event: w.Event, Logger: w.logger, Traffic: traffic, Phase: time.Second + time.Duration(i%50)*100*time.Millisecond, Redact: set.statements.redact}
	if !set.statements.noPlans {
		o.PlanID = planID
	}
	var c history.Source
	state := filepath.Join(set.data, "events")
	switch mode {
	case history.PerformanceSchema:
		c = history.New(srv.target, srv.instance, o)
	case history.SlowLogFile:
		c = history.NewSlowLogOnly(history.New(srv.target, srv.instance, o), history.NewSlowLog(srv.target, srv.instance, o, state))
	default:
		c = history.NewEither(history.New(srv.target, srv.instance, o), history.NewSlowLog(srv.target, srv.instance, o, state))
	}
	s.list = append(s.list, c)
	group.Go(ctx, c)
}

// anyStatements says whether the statements of some server are asked for by the config file.
func (s settings) anyStatements() bool {
	for _, srv := range s.servers {
		if srv.statements != "" && srv.statements != string(history.Off) {
			return true
		}
	}
	return false
}

// statementMode is where statements are read: by flag or else by the config file.
func statementMode(f statementFlags, config string) (string, error) {
	if f.noStatements {
		if f.mode != "" && f.mode != string(history.Off) {
			return "", usageError("--no-statements and --statements %s contradict each other", f.mode)
		}
		return string(history.Off), nil
	}
	mode := cmp.Or(f.mode, config, string(history.Auto))
	return mode, checkMode(mode)
}

// checkMode refuses what is no mode.
func checkMode(mode string) error {
	if mode == "" || slices.Contains(history.Modes(), history.Mode(mode)) {
		return nil
	}
	return usageError("statements %q: it is auto, performance_schema, slow-log or off", mode)
}

// begin tells what is to be told about the store, and keeps it small while ctx lasts.
func (s *statements) begin(ctx context.Context, group *collect.Group, w *watch, set settings) {
	if s.why != "" && set.statements.mode != string(history.Off) {
		w.Event(fleet.Event{Time: time.Now(), Kind: fleet.EventStore, Severity: fleet.SeverityWarning, Text: "statements are not kept: " + s.why})
	}
	if s.store == nil {
		return
	}
	if d := s.store.Damage(); d != nil {
		w.Event(fleet.Event{Time: time.Now(), Kind: fleet.EventStore, Severity: fleet.SeverityCritical, Text: "the file of statements was damaged and moved to " + d.MovedTo + ": " + d.Reason})
	}
	group.Go(ctx, pruner{s.store, w, set.retention})
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

// web is what the API needs.
func (s *statements) web() web.Statements {
	return web.Statements{Store: s.store, Why: s.why, Remedy: s.remedy, Sources: func() []history.Status {
		out := make([]history.Status, len(s.list))
		for i, c := range s.list {
			out[i] = c.Status()
		}
		return out
	}}
}

// eventsURL is the flag, or else what the environment says, where a password is better kept.
func eventsURL(flag, config string) string {
	return cmp.Or(flag, os.Getenv("RISSO_EVENTS_URL"), config)
}
