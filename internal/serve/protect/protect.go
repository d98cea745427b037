// Package protect is the part of the daemon that protects servers: jobs, the catalogue of their backups, and verdicts.
package protect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/data/drill"
	"github.com/rissodb/risso/internal/data/jobs"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/data/verdict"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/agree"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/live"
)

// Guard is the part of risso serve that protects servers: jobs, the catalogue of what is at their places, and the
// verdicts on them.
type Guard struct {
	file    string // the config file
	facts   *state.Store
	event   func(fleet.Event)
	board   *live.Board
	logger  *slog.Logger
	runner  *jobs.Runner
	lead    agree.Leadership
	refresh chan string // asks for a look at the place of an instance; "" for all

	mu      sync.Mutex
	servers []config.Watched // those with a protection; replaced as a whole, never changed
	started time.Time
	since   map[string]time.Time         // when a server's protection began to be wanted
	outage  map[string]verdict.Outage    // with the place of a server
	newest  map[string]verdict.Uncounted // the newest backup of a server, when it does not count
	doubt   map[string]string            // why the newest proof of a server counts for nothing
	strange map[string]string            // which mirrored logs of a server count for nothing, and why
	halted  map[string]string            // what keeps the mirror of a server from following
	kept    map[string]map[BackupKey]Kept
}

// noter is by whom the board is told.
const noter = "protect"

// The times between two looks.
const (
	judgeEvery     = 10 * time.Second
	catalogueEvery = 10 * time.Minute
	catalogueLimit = 2 * time.Minute // of one read of one place
	toldAgainAfter = 24 * time.Hour  // what is in the list of events is not reported again at each start before
)

// Options are what a Guard works with.
type Options struct {
	Servers    []config.Watched
	ConfigFile string // in which they are configured; empty: there is none
	Facts      *state.Store
	Board      *live.Board
	Event      func(fleet.Event)
	Lead       agree.Leadership // jobs run where this process acts
	Logger     *slog.Logger
}

// New makes the part. Without any protection it does nothing but judge.
func New(o Options) (*Guard, error) {
	p := &Guard{started: time.Now(), file: o.ConfigFile, facts: o.Facts, event: o.Event, board: o.Board, lead: o.Lead, logger: o.Logger, refresh: make(chan string, 256), since: map[string]time.Time{}, outage: map[string]verdict.Outage{}, newest: map[string]verdict.Uncounted{}, doubt: map[string]string{}, strange: map[string]string{}, halted: map[string]string{}, kept: map[string]map[BackupKey]Kept{}}
	p.servers = protectedOf(o.Servers)
	var err error
	p.runner, err = jobs.New(jobs.Options{Facts: o.Facts, Jobs: p.jobs(p.servers), Event: o.Event, Done: p.done, Logger: o.Logger})
	if err != nil {
		return nil, fault.New(fault.Usage, "", err)
	}
	return p, nil
}

// protectedOf are the servers that have a protection.
func protectedOf(list []config.Watched) []config.Watched {
	return slices.DeleteFunc(slices.Clone(list), func(s config.Watched) bool { return s.Protect == nil })
}

// jobs makes all jobs of servers.
func (p *Guard) jobs(servers []config.Watched) (list []jobs.Job) {
	for _, s := range servers {
		for _, kind := range s.Protect.Kinds() {
			if j, ok := p.job(s, kind); ok {
				list = append(list, j)
			}
		}
	}
	return list
}

// Replace protects servers as they are configured now, when that can be; else all stays as it was.
func (p *Guard) Replace(ctx context.Context, list []config.Watched) error {
	servers := protectedOf(list)
	if err := p.runner.Replace(ctx, p.jobs(servers)); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range servers {
		id := s.Instance.ID
		i := slices.IndexFunc(p.servers, func(o config.Watched) bool { return o.Instance.ID == id })
		if i < 0 {
			p.since[id] = time.Now()
		}
		if i < 0 || p.servers[i].Protect.Place != s.Protect.Place {
			delete(p.outage, id)
		}
		delete(p.kept, id) // until the next look
	}
	p.servers = servers
	select {
	case p.refresh <- "":
	default: // there is a look at all every now and then
	}
	return nil
}

// list returns the protected servers.
func (p *Guard) list() []config.Watched {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.servers
}

// job makes the job of a kind for a server; false when this Risso has no such job.
func (p *Guard) job(s config.Watched, kind state.JobKind) (jobs.Job, bool) {
	task := p.task(s, kind)
	if task == nil {
		return jobs.Job{}, false
	}
	c := s.Protect
	name := func(k state.JobKind) string { return s.Instance.ID + "/" + string(k) }
	j := jobs.Job{Name: name(kind), Kind: kind, Instance: s.Instance.ID, Place: c.Place, Task: task}
	switch kind {
	case state.JobBackup:
		j.Schedule = c.Schedule
	case state.JobDrill:
		j.Schedule = c.Drill
	case state.JobVerify:
		j.Schedule = c.Verify
	case state.JobChecksum:
		j.Schedule, j.Place = c.Checksum, ""
	case state.JobCopy:
		j.After, j.Place = name(state.JobBackup), c.CopyTo
	case state.JobMirror:
		j.Made = fmt.Sprintf("%s %s %q %s", c.Place, c.KeepLogs, c.Recipients, c.IdentityFile)
	case state.JobPrune: // nothing goes before its copy is there
		j.After = name(state.JobBackup)
		if c.CopyTo != "" {
			j.After = name(state.JobCopy)
		}
	}
	return j, true
}

// Run runs jobs, looks at places and judges, until ctx ends and all jobs have ended.
func (p *Guard) Run(ctx context.Context) error {
	if err := p.readSince(ctx); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.runJobs(gctx) })
	g.Go(func() error { p.judgeAll(gctx); return nil })
	g.Go(func() error { p.catalogues(gctx); return nil })
	return g.Wait()
}

// readSince finds out since when each protection is wanted: since its backup job is known.
func (p *Guard) readSince(ctx context.Context) error {
	list, err := p.facts.Jobs(ctx)
	if err != nil {
		return fmt.Errorf("read the jobs: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.servers {
		p.since[s.Instance.ID] = time.Now()
	}
	for _, j := range list {
		if _, ok := p.since[j.Instance]; ok && j.Kind == state.JobBackup {
			p.since[j.Instance] = j.Created
		}
	}
	return nil
}

// done takes the end of a run: what is at the server's place may have changed. A look that is lost comes with the next of all.
func (p *Guard) done(r state.Run) {
	if r.Kind == state.JobMirror {
		return
	}
	select {
	case p.refresh <- r.Instance:
	default:
	}
}

// server returns the protected server of an instance.
func (p *Guard) server(instance string) (config.Watched, bool) {
	list := p.list()
	i := slices.IndexFunc(list, func(s config.Watched) bool { return s.Instance.ID == instance })
	if i < 0 {
		return config.Watched{}, false
	}
	return list[i], true
}

// Want says how an instance should be protected; nil: nothing is configured for it.
func (p *Guard) Want(instance string) *verdict.Want {
	s, ok := p.server(instance)
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w := s.Protect.Want(p.since[instance])
	w.Server, w.File, w.Started = s.Instance.Name, p.file, p.started
	w.Outage, w.Newest, w.Doubt, w.Strange, w.Halted = p.outage[instance], p.newest[instance], p.doubt[instance], p.strange[instance], p.halted[instance]
	return &w
}

// Plan says what is configured, in words for the page; "" when nothing is.
func (p *Guard) Plan(instance string) Plan {
	s, ok := p.server(instance)
	if !ok {
		return Plan{}
	}
	c := s.Protect
	return Plan{Place: c.Place, CopyTo: c.CopyTo, Kind: cmp.Or(c.Kind, "logical"), Retention: c.Retention.Words(), Encrypted: len(c.EncryptTo) > 0, Mirror: c.Mirror}
}

// Kept says about each backup of an instance, by place and ID, why retention keeps it; nil if nothing is configured.
func (p *Guard) Kept(_ context.Context, instance string) map[BackupKey]Kept {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept[instance]
}

// Running returns the jobs that run.
func (p *Guard) Running() []jobs.Progress { return p.runner.Running() }

// Start starts a job now; by names who asked for it.
func (p *Guard) Start(job, by string) error {
	if err := p.elsewhere(); err != nil {
		return err
	}
	return p.runner.Start(job, by)
}

// Stop stops a run; by names who asked for it.
func (p *Guard) Stop(run int64, by string) error {
	if err := p.elsewhere(); err != nil {
		return err
	}
	return p.runner.Stop(run, by)
}

// judgeAll judges every protected server every now and then; what is new becomes an event.
func (p *Guard) judgeAll(ctx context.Context) {
	before := map[string]verdict.Verdict{}
	tick := time.NewTicker(judgeEvery)
	defer tick.Stop()
	for {
		if err := p.judge(ctx, before, time.Now()); err != nil && ctx.Err() == nil {
			p.logger.Warn("protection could not be judged", "err", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (p *Guard) judge(ctx context.Context, before map[string]verdict.Verdict, now time.Time) error {
	servers := p.list()
	for id := range before {
		if !slices.ContainsFunc(servers, func(s config.Watched) bool { return s.Instance.ID == id }) { // not protected any more
			p.board.Note(id, noter, nil)
			delete(before, id)
		}
	}
	if len(servers) == 0 {
		return nil
	}
	list, err := p.facts.Protections(ctx)
	if err != nil {
		return err
	}
	mirrors, err := p.facts.Mirrors(ctx)
	if err != nil {
		return err
	}
	for _, s := range servers {
		id := s.Instance.ID
		f := verdict.Facts{Protection: state.Protection{Instance: id}}
		if i := slices.IndexFunc(list, func(p state.Protection) bool { return p.Instance == id }); i >= 0 {
			f.Protection = list[i]
		}
		for _, m := range mirrors {
			if m.Instance == id {
				f.Mirrors = append(f.Mirrors, m)
			}
		}
		v := verdict.Judge(f, p.Want(id), now)
		old, known := before[id]
		for _, e := range verdict.Changes(id, old, v, now) {
			if known || !p.toldLately(ctx, e) {
				p.event(e)
			}
		}
		before[id] = v
		p.board.Note(id, noter, v.Findings)
	}
	return nil
}

// toldLately reports whether an event is in the list already: Risso was restarted since.
func (p *Guard) toldLately(ctx context.Context, e fleet.Event) bool {
	list, err := p.facts.Events(ctx, state.EventQuery{Instances: []string{e.Instance}, Kinds: []fleet.EventKind{e.Kind}, From: e.Time.Add(-toldAgainAfter)})
	return err == nil && slices.ContainsFunc(list, func(o fleet.Event) bool { return o.Subject == e.Subject && o.Severity == e.Severity })
}

// note keeps what is wrong with the place of a server.
func (p *Guard) note(instance string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.outage[instance]
	switch {
	case err == nil:
		delete(p.outage, instance)
		return
	case t.Since.IsZero():
		t.Since = time.Now()
	}
	t.Words, t.Gone = fault.Line(err.Error(), ""), errors.Is(err, repo.ErrNoRepository)
	p.outage[instance] = t
}

// sweep throws away what killed drills left here: their servers run on, full of data.
func (p *Guard) sweep(ctx context.Context) {
	if err := drill.Sweep(ctx, ""); err != nil && ctx.Err() == nil {
		p.logger.Warn("what a killed drill left could not be removed", "err", err)
	}
}

// catalogues reads what is at the places: at the start and every now and then at all, because a backup may be made by hand
// and from elsewhere; after a job at its server's.
func (p *Guard) catalogues(ctx context.Context) {
	tick := time.NewTicker(catalogueEvery)
	defer tick.Stop()
	instance := "" // all
	for {
		if instance == "" {
			p.sweep(ctx)
		}
		for _, s := range p.list() {
			if instance != "" && s.Instance.ID != instance {
				continue
			}
			cctx, cancel := context.WithTimeout(ctx, catalogueLimit)
			err := p.catalogue(cctx, s)
			cancel()
			if ctx.Err() != nil {
				return
			}
			p.note(s.Instance.ID, err)
		}
		select {
		case <-tick.C:
			instance = ""
		case instance = <-p.refresh:
		case <-ctx.Done():
			return
		}
	}
}
