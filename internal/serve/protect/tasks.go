package protect

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/jobs"
	"github.com/rissodb/risso/internal/data/physical"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/snapshot"
	"github.com/rissodb/risso/internal/release"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/blob"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/throttle"
)

// task makes the task of a kind of job for a server; nil when this Risso has none.
func (p *Guard) task(s config.Watched, kind state.JobKind) jobs.Task {
	switch kind {
	case state.JobBackup:
		return p.backupTask(s)
	case state.JobCopy:
		return p.copyTask(s)
	case state.JobPrune:
		return p.pruneTask(s)
	case state.JobDrill:
		return p.drillTask(s)
	case state.JobVerify:
		return p.verifyTask(s)
	case state.JobMirror:
		return p.mirrorTask(s)
	case state.JobChecksum:
		return p.checksumTask(s)
	}
	return nil
}

// openPlace opens the repository of a server's place; create makes one if there is none.
func (p *Guard) openPlace(ctx context.Context, c *config.Protection, place string, create bool) (*repo.Repo, func(), error) {
	var keys repo.Keys
	var err error
	if create {
		if keys, err = places.Sign(keys); err != nil {
			return nil, nil, err
		}
	}
	return p.openPlaceFor(ctx, c, place, create, keys)
}

// openLooking opens the repository of a server's place to look at what is there: Strangers and Proofs tell what counts for nothing.
func (p *Guard) openLooking(ctx context.Context, c *config.Protection) (*repo.Repo, func(), error) {
	policy, err := places.Trust{Keys: c.Trust, AllowUnsigned: c.Unsigned}.Policy(c.Place, nil)
	if err != nil {
		return nil, nil, err
	}
	return p.openPlaceFor(ctx, c, c.Place, false, repo.Keys{Policy: policy})
}

// openTrusted opens the repository to read backups whole: those signed by a trusted key. What is trusted is logged, and what a
// drill finds is signed by this account.
func (p *Guard) openTrusted(ctx context.Context, c *config.Protection, report *jobs.Report) (*repo.Repo, func(), error) {
	policy, err := places.Trust{Keys: c.Trust, AllowUnsigned: c.Unsigned}.Policy(c.Place, func(text string) { report.Log("%s", text) })
	if err != nil {
		return nil, nil, err
	}
	keys, err := places.Sign(repo.Keys{Policy: policy})
	if err != nil {
		return nil, nil, err
	}
	return p.openPlaceFor(ctx, c, c.Place, false, keys)
}

// openPlaceFor opens a repository; keys say who signs, and whose backups are read.
func (p *Guard) openPlaceFor(ctx context.Context, c *config.Protection, place string, create bool, keys repo.Keys) (*repo.Repo, func(), error) {
	keys.Recipients, keys.CacheDir = c.Recipients, filepath.Join(p.dir(), "keys")
	if c.IdentityFile != "" {
		list, err := repo.ReadIdentities(c.IdentityFile)
		if err != nil {
			return nil, nil, err
		}
		keys.Identities = list
	}
	store, err := blob.Open(ctx, place, blob.Options{})
	if err != nil {
		return nil, nil, err
	}
	open := repo.OpenWith
	if create {
		open = repo.CreateWith
	}
	r, err := open(ctx, repo.On(store), keys)
	if err == nil && create {
		err = places.Own(r, place, keys)
	}
	if err != nil {
		store.Close()
		return nil, nil, fmt.Errorf("%s: %w", places.Words(place), err)
	}
	return r, func() { store.Close() }, nil
}

// dir is the folder of Risso's data.
func (p *Guard) dir() string { return filepath.Dir(p.facts.Path()) }

// backupTask takes a backup.
func (p *Guard) backupTask(s config.Watched) jobs.Task {
	return func(ctx context.Context, report *jobs.Report) (jobs.Result, error) {
		c := s.Protect
		report.Stage("open the place")
		r, closePlace, err := p.openPlace(ctx, c, c.Place, true)
		if err != nil {
			return jobs.Result{}, err
		}
		defer closePlace()
		if err := r.Idle(ctx, waitsForPrune(report)); err != nil {
			return jobs.Result{}, err
		}
		gate, err := throttle.New(ctx, c.Limits(), s.Target)
		if err != nil {
			return jobs.Result{}, err
		}
		defer gate.Close()
		if c.Kind == "physical" {
			return p.physicalBackup(ctx, report, s, r, gate)
		}
		result, err := dump.Run(ctx, r, dump.Options{Target: s.Target, Name: s.Instance.Name, Tool: "risso " + release.Version(), Threads: c.Sessions(), Gate: gate,
			Snapshot: snapshot.Options{Guard: snapshot.Guard{Said: func(e snapshot.GuardEvent) {
				report.Log("the lock: %s after %s, while %s waited for it", e.Action, e.Running, digits.Counted(e.Queued, "session"))
			}}},
			Waiting: waitsForPrune(report),
			Progress: func(p dump.Progress) {
				report.Stage(p.Phase)
				report.Set(p.Bytes, max(p.Estimated, p.Bytes), "bytes")
			}})
		var blind *define.BlindError
		if errors.As(err, &blind) {
			return jobs.Result{}, fmt.Errorf("%w; %s", err, blind.Remedy())
		}
		if err != nil {
			return jobs.Result{}, err
		}
		h := result.Header
		logHeader(report, h)
		return jobs.Result{Backup: h.ID, Detail: result, Text: fmt.Sprintf("%s, %s, %s in %s; %s stored", digits.Counted(h.Tables, "table"), digits.Roughly(h.Rows, "row"),
			digits.Bytes(h.Bytes), digits.Seconds(result.Seconds), digits.Bytes(h.Stored))}, nil
	}
}

// waitsForPrune notes that a job waits for a prune.
func waitsForPrune(report *jobs.Report) func(repo.Holder) {
	return func(h repo.Holder) {
		report.Stage("waiting for " + h.String())
		report.Log("waiting for %s", h)
	}
}

// logHeader writes what a person should know of a backup into the log of its run.
func logHeader(report *jobs.Report, h repo.Header) {
	report.Log("backup %s", h.ID)
	if h.LockSeconds > 0 {
		report.Log("commits were blocked for %s", digits.Seconds(h.LockSeconds))
	}
	if h.Parent != "" {
		report.Log("builds on %s", h.Parent)
	}
	for _, n := range h.Notes {
		report.Log("note: %s", n)
	}
}

// physicalBackup copies the server's files.
func (p *Guard) physicalBackup(ctx context.Context, report *jobs.Report, s config.Watched, r *repo.Repo, gate *throttle.Gate) (jobs.Result, error) {
	h, err := physical.Take(ctx, physical.Options{Target: s.Target, Repo: r, Name: s.Instance.Name, Threads: s.Protect.Sessions(), Gate: gate, Rate: s.Protect.RateLimit,
		Planned: func(p physical.Plan) error {
			for _, n := range p.Notes {
				report.Log("before it starts: %s", n)
			}
			return nil
		},
		JournalDir: filepath.Join(p.dir(), "physical"),
		Waiting:    waitsForPrune(report),
		Progress: func(p physical.Progress) {
			report.Stage(p.Stage)
			report.Set(p.Done, p.Total, "bytes")
		}})
	if err != nil {
		return jobs.Result{}, err
	}
	logHeader(report, h)
	return jobs.Result{Backup: h.ID, Detail: h, Text: fmt.Sprintf("%s of files in %s; %s stored", digits.Bytes(h.Bytes), digits.Span(h.Ended.Sub(h.Began)), digits.Bytes(h.Stored))}, nil
}
