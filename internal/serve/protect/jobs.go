package protect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/drill"
	"github.com/rissodb/risso/internal/data/jobs"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/blob"
	"github.com/rissodb/risso/internal/store/state"
)

// copyTask copies what the second place does not have yet.
func (p *Guard) copyTask(s config.Watched) jobs.Task {
	return func(ctx context.Context, report *jobs.Report) (jobs.Result, error) {
		c := s.Protect
		report.Stage("open the places")
		r, closePlace, err := p.openTrusted(ctx, c, report)
		if err != nil {
			return jobs.Result{}, err
		}
		defer closePlace()
		to, err := blob.Open(ctx, c.CopyTo, blob.Options{})
		if err != nil {
			return jobs.Result{}, err
		}
		defer to.Close()
		report.Stage("copy")
		got, err := r.CopyTo(ctx, repo.On(to), repo.CopyOptions{Waiting: waitsForPrune(report), Progress: func(done, total int64) { report.Set(done, total, "bytes") }})
		if err != nil {
			return jobs.Result{}, err
		}
		text := fmt.Sprintf("%s copied, %s in %s; %s there", digits.Counted(len(got.Backups), "backup"), digits.Bytes(got.Bytes), digits.Counted(got.Objects, "object"), digits.Plural(len(got.There), "was", "were"))
		if got.Whole() {
			return jobs.Result{Detail: got, Text: text}, nil
		}
		for _, r := range got.Refused {
			report.Log("refused: %s", r)
		}
		for _, d := range got.Different {
			report.Log("different: %s", d)
		}
		return jobs.Result{Detail: got, Text: text + "; " + got.Problems()}, jobs.ErrFound
	}
}

// pruneOptions are the rules by which backups of a place go.
func pruneOptions(c *config.Protection, r *repo.Repo, place string) (o repo.PruneOptions, err error) {
	o = repo.PruneOptions{Retention: c.Retention.Policy(), Zone: time.Local}
	o.Trusted, err = places.Trust{Keys: c.Trust}.Known(r, place)
	return o, err
}

// pruneTask removes what retention does not keep, at both places.
func (p *Guard) pruneTask(s config.Watched) jobs.Task {
	return func(ctx context.Context, report *jobs.Report) (jobs.Result, error) {
		c := s.Protect
		var text []string
		var detail []*repo.Pruned
		for _, place := range []string{c.Place, c.CopyTo} {
			if place == "" {
				continue
			}
			report.Stage("prune " + places.Words(place))
			r, closePlace, err := p.openPlace(ctx, c, place, false)
			if err != nil {
				return jobs.Result{}, err
			}
			o, err := pruneOptions(c, r, place)
			if err != nil {
				closePlace()
				return jobs.Result{}, err
			}
			o.Progress = func(n int64) { report.Set(n, 0, "objects") }
			got, err := r.Prune(ctx, o)
			closePlace()
			if err != nil {
				return jobs.Result{}, fmt.Errorf("%s: %w", places.Words(place), err)
			}
			for _, d := range got.Decisions {
				verb := "goes"
				if d.Keep {
					verb = "stays"
				}
				report.Log("%s %s: %s", d.ID, verb, strings.Join(d.Reasons, ", "))
			}
			detail = append(detail, got)
			text = append(text, fmt.Sprintf("%s removed, %s freed", digits.Counted(len(got.Removed), "backup"), digits.Bytes(got.Bytes)))
		}
		return jobs.Result{Text: strings.Join(text, "; at the second place "), Detail: detail}, nil
	}
}

// verifyTask reads all that is at the place.
func (p *Guard) verifyTask(s config.Watched) jobs.Task {
	return func(ctx context.Context, report *jobs.Report) (jobs.Result, error) {
		c := s.Protect
		report.Stage("open the place")
		r, closePlace, err := p.openTrusted(ctx, c, report)
		if err != nil {
			return jobs.Result{}, err
		}
		defer closePlace()
		report.Stage("read and compare")
		got, err := r.Verify(ctx, repo.VerifyOptions{Progress: func(done, total int64) { report.Set(done, total, "bytes") }})
		if err != nil {
			return jobs.Result{}, err
		}
		for _, problem := range got.Problems {
			report.Log("%s: %s: %s", problem.Kind, problem.Key, problem.What)
		}
		if !got.Whole() {
			first := got.Problems[0]
			return jobs.Result{Detail: got, Text: fmt.Sprintf("%s cannot be restored whole: %s: %s", digits.Counted(len(got.Broken), "backup"), first.Key, first.What)}, jobs.ErrFound
		}
		text := fmt.Sprintf("%s of %s: all unchanged, %s", digits.Counted(got.Objects, "object"), digits.Counted(len(got.Backups), "backup"), digits.Bytes(got.Bytes))
		if got.SealsOnly {
			text += "; without identity_file only seals were checked"
		}
		return jobs.Result{Detail: got, Text: text}, nil
	}
}

// drillTask proves the newest backup of the server.
func (p *Guard) drillTask(s config.Watched) jobs.Task {
	return func(ctx context.Context, report *jobs.Report) (jobs.Result, error) {
		c := s.Protect
		report.Stage("look for the newest backup")
		switch err := p.catalogue(ctx, s); {
		case errors.Is(err, repo.ErrDamaged): // another backup is: the verdict tells it
			report.Log("%v", err)
		case err != nil:
			return jobs.Result{}, err
		}
		known, err := p.facts.Backups(ctx, s.Instance.ID, 0)
		if err != nil {
			return jobs.Result{}, err
		}
		backup := ""
		for _, b := range known { // the newest first; one that is dated ahead counts only when there is no other
			if ahead := fleet.Ahead(b.Began, time.Now()); b.Place == c.Place && (backup == "" || !ahead) {
				backup = b.ID
				if !ahead {
					break
				}
			}
		}
		if backup == "" {
			return jobs.Result{}, errors.New("there is no backup to prove yet")
		}
		report.Stage("open the place")
		r, closePlace, err := p.openTrusted(ctx, c, report)
		if err != nil {
			return jobs.Result{}, err
		}
		defer closePlace()
		trust, err := places.Trust{Keys: c.Trust, AllowUnsigned: c.Unsigned}.LogPolicy(c.Place, func(text string) { report.Log("%s", text) })
		if err != nil {
			return jobs.Result{}, err
		}
		proof, err := drill.Run(ctx, drill.Options{Repo: r, Backup: backup, Logs: &drill.Logs{Place: c.Place, Identity: c.IdentityFile, Trust: trust}, Threads: c.Sessions(),
			Progress: func(p drill.Progress) { report.Stage(p.Stage); report.Set(p.Done, p.Total, p.Unit) }})
		if err != nil {
			if !proof.Ended.IsZero() { // it was made, and could not be stored
				report.Log("%s", proof.Summary())
			}
			return jobs.Result{}, err
		}
		d, err := proof.Fact(c.Place, s.Instance.ID)
		if err == nil {
			_, err = p.facts.AddDrill(ctx, d)
		}
		if err != nil {
			report.Log("the proof is stored at the place, but could not be recorded here: %v", err)
		}
		for _, n := range append(proof.Failures, proof.Notes...) {
			report.Log("%s", n)
		}
		if !proof.Passed {
			err = jobs.ErrFound
		} else {
			err = nil
		}
		return jobs.Result{Backup: backup, Text: proof.Summary()}, err
	}
}

// mirrorNoteEvery is how often it is noted how far a mirror reaches.
const mirrorNoteEvery = 5 * time.Second

// mirrorTask mirrors the server's binary logs for as long as Risso runs.
func (p *Guard) mirrorTask(s config.Watched) jobs.Task {
	return func(ctx context.Context, report *jobs.Report) (jobs.Result, error) {
		c := s.Protect
		store, err := blob.Open(ctx, c.Place, blob.Options{})
		if err != nil {
			return jobs.Result{}, err
		}
		defer store.Close()
		dir := places.MirrorDir("", c.Place) // where drills and commands look for the log that is being written
		place := mirror.Place{Store: repo.On(store), Name: places.ID(c.Place)}
		r, closePlace, err := p.openPlace(ctx, c, c.Place, len(c.Recipients) > 0)
		if err == nil {
			defer closePlace()
			place.Repo = r
		} else if !errors.Is(err, repo.ErrNoRepository) {
			return jobs.Result{}, err
		}
		if err := places.SignLogs(&place, c.Place); err != nil {
			return jobs.Result{}, err
		}
		reach := &reach{p: p, s: s, place: place, dir: dir}
		report.Stage("mirror binary logs")
		err = mirror.Follow(ctx, mirror.Options{Target: s.Target, Patient: true, Place: place, Dir: dir, Keep: c.KeepLogs,
			Note: func(n mirror.Note) {
				report.Log("%s", n.Text)
				if n.Warning {
					p.halts(s.Instance.ID, n.Text)
				}
				reach.again()
			},
			Status: func(st mirror.Status) {
				report.Set(st.Received, 0, "bytes")
				if st.Idle {
					p.halts(s.Instance.ID, "")
				}
				if err := reach.note(ctx, st, time.Now()); err != nil && ctx.Err() == nil {
					p.logger.Warn("how far a mirror reaches could not be recorded", "server", s.Instance.Name, "err", err)
				}
			}})
		if err != nil && ctx.Err() == nil {
			p.halts(s.Instance.ID, fault.Line(err.Error(), ""))
		}
		return jobs.Result{}, err
	}
}

// halts notes what keeps the mirror of a server from following; "": nothing does.
func (p *Guard) halts(instance, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halted[instance] = why
}

// reach notes how far a mirror reaches.
type reach struct {
	p     *Guard
	s     config.Watched
	place mirror.Place
	dir   string

	mu    sync.Mutex
	key   string
	first time.Time // of the unbroken run of logs that ends now
	gap   string
	read  bool // the logs were listed
	noted time.Time
}

// again lets the logs be listed once more: one was finished or removed.
func (r *reach) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = false
}

func (r *reach) note(ctx context.Context, st mirror.Status, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.noted) < mirrorNoteEvery {
		return nil
	}
	r.noted = now
	if !r.read || r.key != st.Key {
		if err := r.list(ctx, st.Key); err != nil {
			return err
		}
	}
	if r.first.IsZero() {
		return nil
	}
	last := now
	if !st.Idle {
		last = now.Add(-st.Lag)
	}
	return r.p.facts.SaveMirror(ctx, state.Mirror{Place: r.s.Protect.Place, Instance: r.s.Instance.ID, First: r.first, Last: last, Checked: now, Gap: r.gap})
}

// list finds the beginning of the unbroken run of logs.
func (r *reach) list(ctx context.Context, key string) error {
	all, err := mirror.List(ctx, r.place, r.dir)
	if err != nil {
		return err
	}
	place := r.place
	if place.Policy, err = (places.Trust{Keys: r.s.Protect.Trust, AllowUnsigned: r.s.Protect.Unsigned}).Policy(r.s.Protect.Place, nil); err != nil {
		return err
	}
	r.key, r.read, r.first, r.gap = key, true, time.Time{}, ""
	strange := ""
	for _, s := range all {
		if s.Key != key {
			continue
		}
		if s, strange, err = s.Counted(ctx, place, r.dir); err != nil {
			return err
		}
		if len(s.Logs) > 0 {
			r.first, r.gap = places.Unbroken(s)
		}
	}
	r.read = !r.first.IsZero() // else one is begun, and looked at again
	r.p.mu.Lock()
	r.p.strange[r.s.Instance.ID] = strange
	r.p.mu.Unlock()
	return nil
}
