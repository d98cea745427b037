package repo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/change"
)

// PruneOptions say what is removed.
type PruneOptions struct {
	Retention Retention      // empty: all backups stay, and only what none of them needs is removed
	Zone      *time.Location // whose days count; nil: UTC
	// Trusted are the keys whose backups may replace all others; those of another key replace only each other, and those that nobody
	// signed only each other, whichever keys are trusted.
	Trusted []PublicKey
	// Remove names backups that go, instead of those that Retention leaves out. The newest that was proven and what others
	// build on stay nevertheless.
	Remove []string
	DryRun bool // say what would happen
	// Progress is called now and then with how many objects are removed.
	Progress func(removed int64)
}

// Pruned is what a prune did, or would do.
type Pruned struct {
	Decisions []Decision `json:"decisions"` // oldest backup first
	Removed   []string   `json:"removed"`   // backups
	Dead      []string   `json:"dead"`      // backups killed before they were complete
	Headless  []string   `json:"headless"`  // backups without a manifest (see Repo.Headless): what is left of them is kept
	Running   []string   `json:"running"`   // running backups: while there are any, objects are not removed
	Objects   int64      `json:"objects"`   // removed because no backup needs them
	Bytes     int64      `json:"bytes"`
	Leftovers int64      `json:"leftovers"` // interrupted uploads that were removed

	Steps change.Plan `json:"steps,omitempty"` // in a dry run: what would be done, in this order
}

// leftoverAge is the age from which an upload without a name is taken for that of a killed process.
const leftoverAge = 24 * time.Hour

// lostAge is how long the mark that a backup is lost stays: a process that took it, and stalled, has to find it.
const lostAge = 30 * 24 * time.Hour

// ErrPruning says that another prune is at work.
var ErrPruning = errors.New("another prune is running in this place")

// Plan says what a retention would keep, and why. It changes nothing.
func (r *Repo) Plan(ctx context.Context, o PruneOptions) ([]Decision, error) {
	seen, err := r.look(ctx, o.Trusted)
	if err != nil {
		return nil, err
	}
	seen.now = time.Now()
	return seen.decide(o)
}

// Prune removes backups by rule, then all objects that no whole backup needs. It may be killed at any moment, and run during
// backups: objects are only removed while none runs, and one that begins in the meantime waits.
func (r *Repo) Prune(ctx context.Context, o PruneOptions) (*Pruned, error) {
	p := &pruner{r: r, o: o}
	if o.DryRun {
		err := p.plan(ctx)
		p.res.Steps = p.steps()
		if err == nil && len(p.res.Running) == 0 {
			err = p.count(ctx)
		}
		return &p.res, err
	}
	p.key = pruneLockPrefix + NewID(time.Now())
	note, err := json.Marshal(pruneNote{ownProcess()})
	if err != nil {
		return nil, err
	}
	if p.lease, err = r.hold(ctx, p.key, note); err != nil {
		return nil, fmt.Errorf("prune: %w", err)
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = r.release(clean, p.key) // one that stays grows old
	}()
	if p.now, err = r.modified(ctx, p.key); err != nil {
		return nil, fmt.Errorf("prune: %w", err)
	}
	if err := p.alone(ctx); err != nil {
		return nil, err
	}
	if err := p.plan(ctx); err != nil {
		return nil, err
	}
	_, err = change.Execute(ctx, p.steps(), change.Log{Before: func(int, change.Step) error { return p.mine() }})
	return &p.res, err
}

type pruner struct {
	r     *Repo
	o     PruneOptions
	key   string
	lease *lease    // nil in a dry run
	now   time.Time // by the clock of the place, a moment ago; in a dry run, which puts nothing, by that of this host
	res   Pruned    // what is planned, and what was found to remove
}

// alone fails while another prune lives. If two begin at the same time, both may give way; none works at the same time as another.
func (p *pruner) alone(ctx context.Context) error {
	return p.r.prunes(ctx, p.now, func(key string, h Holder, dead bool) error {
		switch {
		case key == p.key:
			return nil
		case dead:
			return p.r.store.Delete(ctx, key)
		}
		return fmt.Errorf("%w: %s", ErrPruning, h)
	})
}

// plan looks at the place and says what will be removed.
func (p *pruner) plan(ctx context.Context) error {
	seen, err := p.r.look(ctx, p.o.Trusted)
	if err != nil {
		return err
	}
	headless, err := p.r.Headless(ctx)
	if err != nil {
		return err
	}
	for _, e := range headless {
		seen.headless = append(seen.headless, e.ID)
	}
	if p.lease == nil {
		p.now = time.Now()
	}
	seen.now = p.now
	p.res, err = seen.plan(p.o)
	return err
}

// steps are what is planned, one after the other. Objects are found when their turn comes: what backups need is read after the mark that those
// which were killed are lost, see Finish.
func (p *pruner) steps() (plan change.Plan) {
	for _, id := range p.res.Dead {
		plan = append(plan, change.Step{What: "give up backup", Where: id, Why: "it was killed before it was complete", Do: func(ctx context.Context) error { return p.giveUp(ctx, id) }})
	}
	why := map[string]string{}
	for _, d := range p.res.Decisions {
		why[d.ID] = strings.Join(d.Reasons, "; ")
	}
	for _, id := range p.res.Removed {
		plan = append(plan, change.Step{What: "remove backup", Where: id, Why: cmp.Or(why[id], "it has no manifest, and was selected"), Do: func(ctx context.Context) error { return p.backup(ctx, id) }})
	}
	if len(p.res.Running) > 0 {
		return plan
	}
	return append(plan,
		change.Step{What: "remove objects", Why: "no backup needs them", Do: p.sweep},
		change.Step{What: "remove notes", Why: "their backups no longer exist", Do: p.remains},
		change.Step{What: "remove interrupted uploads", Do: func(ctx context.Context) error { return p.leftovers(ctx, false) }})
}

// giveUp says that a backup that was killed is lost, and removes its note. The mark comes first, before manifests are read: see Finish.
func (p *pruner) giveUp(ctx context.Context, id string) error {
	if err := p.r.putWord(ctx, lostKey(id), []byte("{}\n")); err != nil {
		return err
	}
	return p.r.store.Delete(ctx, unfinishedKey(id))
}

// mine fails when the lease was not renewed for long: a backup may have begun.
func (p *pruner) mine() error {
	if p.lease.age() > LeaseLife/2 {
		return errors.New("prune was stalled for too long, and stops; run it again")
	}
	return nil
}

// backup removes one: its manifest first, so that it is never half there.
func (p *pruner) backup(ctx context.Context, id string) error {
	// The mark that it is lost, so that what a killed prune leaves is not taken for a backup that has lost its manifest.
	err := p.r.putWord(ctx, lostKey(id), []byte("{}\n"))
	keys := []string{manifestKey(id), objectsKey(id), headKey(id), acceptedKey(id), signatureKey(id), unfinishedKey(id)}
	if err == nil {
		err = p.r.store.List(ctx, proofPrefix+id+"/", func(key string, _ int64) error {
			keys = append(keys, key)
			return nil
		})
	}
	for _, key := range append(keys, lostKey(id)) {
		if err == nil {
			err = p.r.store.Delete(ctx, key)
		}
	}
	if err != nil {
		return fmt.Errorf("remove backup %s: %w", id, err)
	}
	return nil
}

// needed returns the objects that whole backups need, and those that have lost their manifest. When what a backup needs cannot be read, known is
// false, and none may be removed.
func (p *pruner) needed(ctx context.Context) (needed keySet, known bool, err error) {
	entries, err := p.r.Catalogue(ctx) // again: one may have become complete
	if err != nil {
		return nil, false, err
	}
	needed = keySet{}
	add := func(key string, size int64) error { needed.add(key, size); return nil }
	for _, e := range entries {
		if !e.Whole || slices.Contains(p.res.Removed, e.ID) {
			continue
		}
		if err := p.r.Needs(ctx, e.ID, add); err != nil {
			return nil, false, err
		}
	}
	for _, id := range p.res.Headless {
		err := p.r.Needs(ctx, id, add)
		if errors.Is(err, ErrNoBackup) || told(err) { // it is unknown what it needs
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
	return needed, true, nil
}

// objects counts those that no backup needs, and hands each over.
func (p *pruner) objects(ctx context.Context, needed keySet, each func(key string) error) error {
	for _, prefix := range []string{dataPrefix, physicalPrefix} {
		err := p.r.store.List(ctx, prefix, func(key string, size int64) error {
			if _, ok := needed.size(key); ok {
				return nil
			}
			if err := each(key); err != nil {
				return err
			}
			p.res.Objects++
			p.res.Bytes += size
			if p.o.Progress != nil {
				p.o.Progress(p.res.Objects)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// count finds out what there is to remove besides backups.
func (p *pruner) count(ctx context.Context) error {
	needed, known, err := p.needed(ctx)
	if err == nil && known {
		err = p.objects(ctx, needed, func(string) error { return nil })
	}
	if err != nil {
		return fmt.Errorf("remove what no backup needs: %w", err)
	}
	return p.leftovers(ctx, true)
}

// sweep removes the objects that no backup needs.
func (p *pruner) sweep(ctx context.Context) error {
	needed, known, err := p.needed(ctx)
	if err == nil && known {
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(8)
		err = p.objects(gctx, needed, func(key string) error {
			if err := p.mine(); err != nil {
				return err
			}
			g.Go(func() error { return p.r.store.Delete(gctx, key) })
			return nil
		})
		err = errors.Join(g.Wait(), err)
	}
	if err != nil {
		return fmt.Errorf("remove what no backup needs: %w", err)
	}
	return nil
}

// remains removes what is left of backups whose manifests are gone, and old marks that a backup is lost. A note of a backup stays: one that has
// begun in the meantime waits for this prune to end.
func (p *pruner) remains(ctx context.Context) error {
	stays := map[string]bool{}
	for _, id := range p.res.Headless {
		stays[id] = true
	}
	idOf := func(key string) string {
		id, _, _ := strings.Cut(strings.TrimPrefix(key, backupPrefix), "/")
		return id
	}
	var keys []string
	err := p.r.store.List(ctx, backupPrefix, func(key string, _ int64) error {
		keys = append(keys, key)
		if id := idOf(key); key == manifestKey(id) {
			stays[id] = true
		}
		return nil
	})
	for _, key := range keys {
		if err != nil {
			break
		}
		id := idOf(key)
		switch lost := key == lostKey(id); {
		case key == unfinishedKey(id), stays[id] && !lost:
			continue
		case lost:
			var put time.Time
			if put, err = p.r.modified(ctx, key); err != nil || p.now.Sub(put) < lostAge {
				continue
			}
		}
		err = p.r.store.Delete(ctx, key)
	}
	if err != nil {
		return fmt.Errorf("remove what is left of backups that are gone: %w", err)
	}
	return nil
}

// cleaner is a store that knows what interrupted uploads left.
type cleaner interface {
	Clean(ctx context.Context, before time.Time, dry bool) (int64, error)
}

// leftovers removes what interrupted uploads left; dry: it only counts.
func (p *pruner) leftovers(ctx context.Context, dry bool) (err error) {
	if c, ok := p.r.store.(cleaner); ok {
		p.res.Leftovers, err = c.Clean(ctx, p.now.Add(-leftoverAge), dry)
	}
	return err
}
