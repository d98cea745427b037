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
)

// PruneOptions say what is removed.
type PruneOptions struct {
	Retention Retention      // empty: all backups stay, and only what none of them needs goes
	Zone      *time.Location // whose days count; nil: UTC
	// Trusted are the keys whose backups may replace all others; those of another key replace only their like, and those that nobody
	// signed only each other, whoever is trusted.
	Trusted []PublicKey
	// Remove names backups that go, instead of those that Retention leaves out. The newest that was proven and what others
	// build on stay all the same.
	Remove []string
	DryRun bool // say what would happen
	// Progress is told now and then how many objects are removed.
	Progress func(removed int64)
}

// Pruned is what a prune did, or would do.
type Pruned struct {
	Decisions []Decision `json:"decisions"` // the oldest backup first
	Removed   []string   `json:"removed"`   // backups
	Dead      []string   `json:"dead"`      // backups that were killed before they were whole
	Headless  []string   `json:"headless"`  // backups without a manifest (see Repo.Headless): what is left of them stays
	Running   []string   `json:"running"`   // backups that run: then objects are removed another time
	Objects   int64      `json:"objects"`   // removed, because no backup needs them
	Bytes     int64      `json:"bytes"`
	Leftovers int64      `json:"leftovers"` // interrupted uploads that were removed
}

// leftoverAge is the age from which an upload without a name is taken for that of a killed process.
const leftoverAge = 24 * time.Hour

// ErrPruning says that another prune is at work.
var ErrPruning = errors.New("another prune is at work in this place")

// Plan says what a retention would keep, and why. It changes nothing.
func (r *Repo) Plan(ctx context.Context, o PruneOptions) ([]Decision, error) {
	entries, err := r.Catalogue(ctx)
	if err != nil {
		return nil, err
	}
	return r.decide(ctx, entries, o, time.Now())
}

func (r *Repo) decide(ctx context.Context, entries []Entry, o PruneOptions, now time.Time) ([]Decision, error) {
	list, err := r.candidates(ctx, entries, o, now)
	if err != nil {
		return nil, err
	}
	zone := o.Zone
	if zone == nil {
		zone = time.UTC
	}
	policy := o.Retention
	if len(o.Remove) > 0 {
		for i, c := range list {
			if !slices.Contains(o.Remove, c.ID) && c.Keep == "" {
				list[i].Keep = "not asked for"
			}
		}
		for _, id := range o.Remove {
			if !slices.ContainsFunc(list, func(c Candidate) bool { return c.ID == id }) {
				return nil, fmt.Errorf("%w: %s", ErrNoBackup, id)
			}
		}
		policy = Retention{}
	} else if policy.Empty() {
		for i := range list {
			list[i].Keep = cmp.Or(list[i].Keep, "no rule was given")
		}
	}
	return policy.Decide(list, zone, now), nil
}

// candidates are the whole backups, with what decides about them beside rules.
func (r *Repo) candidates(ctx context.Context, entries []Entry, o PruneOptions, now time.Time) (list []Candidate, err error) {
	proven, err := r.proven(ctx, o.Trusted)
	if err != nil {
		return nil, err
	}
	takers, err := r.takers(ctx, entries)
	if err != nil {
		return nil, err
	}
	parents := map[string]string{}
	undecided := ""  // a physical backup that has begun and does not say yet what it builds on
	parentless := "" // a physical backup that cannot say what it builds on
	for _, e := range entries {
		if !e.Whole {
			switch h := e.Header; {
			case e.Err == nil && h.Parent != "":
				parents[h.Parent] = e.ID + ", which is being taken, builds on it"
			case h.Kind == Physical && h.Server.Identity == "" && e.Lives(now):
				undecided = e.ID
			}
			continue
		}
		h, s := e.Header, takers[e.ID]
		c := Candidate{ID: e.ID, Time: h.Began, Server: h.Server.Identity, Proven: proven[e.ID] >= claimed, Unread: proven[e.ID] == unread, Vouched: proven[e.ID] == vouched, Group: h.group(), Signer: s.key, Trusted: slices.Contains(o.Trusted, s.key)}
		if h.Kind == Physical {
			c.physical = true
			c.Parent = h.Parent // chunks of a logical backup need no other backup
		}
		if err := cmp.Or(e.Err, s.err); err != nil {
			c.Keep = "it cannot be read: " + err.Error()
			c.Group, c.Proven, c.Unread = "damaged "+e.ID, false, false
		}
		if e.Err != nil {
			if err := r.store.List(ctx, partPrefix(e.ID), func(string, int64) error { parentless = e.ID; return nil }); err != nil {
				return nil, err
			}
		}
		list = append(list, c)
	}
	for i := range list {
		why := parents[list[i].ID]
		if undecided != "" && list[i].physical {
			why = cmp.Or(why, undecided+", which has just begun, may build on it")
		}
		if parentless != "" && list[i].physical {
			why = cmp.Or(why, parentless+", which cannot be read, may build on it")
		}
		list[i].Keep = cmp.Or(list[i].Keep, why)
	}
	markHollow(list, entries)
	return list, nil
}

// markHollow notes which backups hold so little that they replace none, each compared with those that may replace it.
func markHollow(list []Candidate, entries []Entry) {
	byID := map[string]Candidate{}
	for _, c := range list {
		byID[c.ID] = c
	}
	hollow := map[signedBy]map[string]string{}
	for i, c := range list {
		if hollow[c.signedBy()] == nil {
			hollow[c.signedBy()] = Hollow(slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return !byID[e.ID].replaces(c) }))
		}
		list[i].Hollow = hollow[c.signedBy()][c.ID]
		list[i].Proven, list[i].Unread = c.Proven && list[i].Hollow == "", c.Unread && list[i].Hollow == ""
	}
}

// taker is who signed a backup.
type taker struct {
	key PublicKey // "": nobody
	err error     // it is not what was signed, or its signature is damaged
}

// takers reads who signed each whole backup.
func (r *Repo) takers(ctx context.Context, entries []Entry) (map[string]taker, error) {
	list := make([]taker, len(entries))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, e := range entries {
		if !e.Whole {
			continue
		}
		g.Go(func() error {
			s, err := r.signature(ctx, e.ID)
			switch {
			case told(err):
				list[i].err = err
			case err != nil:
				return fmt.Errorf("backup %s: %w", e.ID, err)
			case s != nil:
				list[i].key = s.Key
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out := make(map[string]taker, len(entries))
	for i, e := range entries {
		out[e.ID] = list[i]
	}
	return out, nil
}

// proof says by whose word a backup was restored.
type proof int

const (
	unproven proof = iota
	unread         // nobody signed what a drill found, and it is damaged, or no identity opens it
	claimed        // by somebody's who is not trusted, or nobody signed it
	vouched        // by one's whose key is trusted
)

// proven gives the backups that a drill restored, or may have restored. Proofs that are damaged cannot be read, nor can those of an encrypted
// repository without an identity: then signatures tell which were good, and of one that nobody signed nothing is known.
func (r *Repo) proven(ctx context.Context, trusted []PublicKey) (map[string]proof, error) {
	set := map[string]proof{}
	err := r.Proofs(ctx, "", func(p Proof) error {
		by := claimed
		switch {
		case errors.Is(p.Doubt, ErrForged):
			return nil
		case slices.Contains(trusted, p.Signer):
			by = vouched
		}
		switch {
		case p.JSON == nil && p.Signer == "":
			set[p.Backup] = max(set[p.Backup], unread)
		case p.Passed():
			set[p.Backup] = max(set[p.Backup], by)
		}
		return nil
	})
	return set, err
}

// Prune removes backups by rule, then all objects that no whole backup needs. It may be killed at any moment, and run beside
// backups: objects are only removed while none runs, and one that begins meanwhile waits.
func (r *Repo) Prune(ctx context.Context, o PruneOptions) (*Pruned, error) {
	p := &pruner{r: r, o: o, res: Pruned{Decisions: []Decision{}, Removed: []string{}, Dead: []string{}, Headless: []string{}, Running: []string{}}}
	if o.DryRun {
		return &p.res, p.run(ctx)
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
	return &p.res, p.run(ctx)
}

type pruner struct {
	r     *Repo
	o     PruneOptions
	key   string
	lease *lease    // nil in a dry run
	now   time.Time // by the clock of the place, a moment ago
	res   Pruned
}

// alone fails while another prune lives. Of two that begin at once, both may give way; none works beside another.
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

func (p *pruner) run(ctx context.Context) error {
	entries, err := p.r.Catalogue(ctx)
	if err != nil {
		return err
	}
	if p.lease == nil {
		p.now = time.Now() // a dry run puts nothing, so it has no other clock
	}
	if err := p.unfinished(ctx, entries); err != nil {
		return err
	}
	if err := p.headless(ctx); err != nil {
		return err
	}
	if p.res.Decisions, err = p.r.decide(ctx, entries, p.o, p.now); err != nil {
		return err
	}
	for _, d := range p.res.Decisions {
		if d.Keep {
			continue
		}
		if err := p.backup(ctx, d.ID); err != nil {
			return fmt.Errorf("remove backup %s: %w", d.ID, err)
		}
		p.res.Removed = append(p.res.Removed, d.ID)
	}
	if len(p.res.Running) > 0 {
		return nil
	}
	if err := p.sweep(ctx); err != nil {
		return fmt.Errorf("remove what no backup needs: %w", err)
	}
	return p.leftovers(ctx)
}

// unfinished tells backups that run from those that were killed, and takes the latter's notes away.
func (p *pruner) unfinished(ctx context.Context, entries []Entry) error {
	for _, e := range entries {
		switch {
		case e.Whole:
		case e.Lives(p.now):
			p.res.Running = append(p.res.Running, e.ID)
		default:
			p.res.Dead = append(p.res.Dead, e.ID)
			if p.lease == nil {
				continue
			}
			// First the word that it is lost, before manifests are read: see Finish.
			if err := p.r.putWord(ctx, lostKey(e.ID), []byte("{}\n")); err != nil {
				return err
			}
			if err := p.r.store.Delete(ctx, unfinishedKey(e.ID)); err != nil {
				return err
			}
		}
	}
	return nil
}

// headless finds backups without a manifest: one may be on its way here. So they stay, and what they need, unless they are removed by name.
func (p *pruner) headless(ctx context.Context) error {
	list, err := p.r.Headless(ctx)
	if err != nil {
		return err
	}
	named := slices.Clone(p.o.Remove)
	for _, e := range list {
		if !slices.Contains(named, e.ID) {
			p.res.Headless = append(p.res.Headless, e.ID)
			continue
		}
		p.o.Remove = slices.DeleteFunc(slices.Clone(p.o.Remove), func(id string) bool { return id == e.ID })
		if err := p.backup(ctx, e.ID); err != nil {
			return fmt.Errorf("remove what is left of backup %s: %w", e.ID, err)
		}
		p.res.Removed = append(p.res.Removed, e.ID)
	}
	return nil
}

// mine fails when the lease was not renewed for long: a backup may have begun.
func (p *pruner) mine() error {
	if p.lease != nil && p.lease.age() > LeaseLife/2 {
		return errors.New("prune stood still for too long, and stops; run it again")
	}
	return nil
}

// backup removes one: its manifest first, so that it is never half there.
func (p *pruner) backup(ctx context.Context, id string) error {
	if p.lease == nil {
		return nil
	}
	if err := p.mine(); err != nil {
		return err
	}
	// The word that it is lost, so that what a killed prune leaves is not taken for a backup that has lost its manifest.
	if err := p.r.putWord(ctx, lostKey(id), []byte("{}\n")); err != nil {
		return err
	}
	keys := []string{manifestKey(id), objectsKey(id), headKey(id), acceptedKey(id), signatureKey(id)}
	err := p.r.store.List(ctx, proofPrefix+id+"/", func(key string, _ int64) error {
		keys = append(keys, key)
		return nil
	})
	for _, key := range append(keys, lostKey(id)) {
		if err == nil {
			err = p.r.store.Delete(ctx, key)
		}
	}
	return err
}

// sweep removes the objects that no whole backup needs, nor one that has lost its manifest. When what a backup needs cannot be read, it removes
// none.
func (p *pruner) sweep(ctx context.Context) error {
	entries, err := p.r.Catalogue(ctx) // anew: one may have become whole
	if err != nil {
		return err
	}
	needed := keySet{}
	for _, e := range entries {
		if !e.Whole || slices.Contains(p.res.Removed, e.ID) {
			continue
		}
		if err := p.r.Needs(ctx, e.ID, func(key string, size int64) error { needed.add(key, size); return nil }); err != nil {
			return err
		}
	}
	for _, id := range p.res.Headless {
		err := p.r.Needs(ctx, id, func(key string, size int64) error { needed.add(key, size); return nil })
		if errors.Is(err, ErrNoBackup) || told(err) { // nobody knows what it needs
			return nil
		}
		if err != nil {
			return err
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for _, prefix := range []string{dataPrefix, physicalPrefix} {
		err = p.r.store.List(gctx, prefix, func(key string, size int64) error {
			if _, ok := needed.size(key); ok {
				return nil
			}
			if err := p.mine(); err != nil {
				return err
			}
			p.res.Objects++
			p.res.Bytes += size
			if p.o.Progress != nil {
				p.o.Progress(p.res.Objects)
			}
			if p.lease != nil {
				g.Go(func() error { return p.r.store.Delete(gctx, key) })
			}
			return nil
		})
		if err != nil {
			break
		}
	}
	if err := errors.Join(g.Wait(), err); err != nil {
		return err
	}
	return p.remains(ctx, entries)
}

// remains removes what is left beside manifests that are gone, and old words that a backup is lost.
func (p *pruner) remains(ctx context.Context, entries []Entry) error {
	if p.lease == nil {
		return nil
	}
	whole := map[string]bool{}
	for _, e := range entries {
		whole[e.ID] = e.Whole
	}
	for _, id := range p.res.Headless {
		whole[id] = true
	}
	var keys []string
	err := p.r.store.List(ctx, backupPrefix, func(key string, _ int64) error {
		if id, _, _ := strings.Cut(strings.TrimPrefix(key, backupPrefix), "/"); !whole[id] || key == lostKey(id) {
			keys = append(keys, key)
		}
		return nil
	})
	for _, key := range keys {
		if err != nil {
			return err
		}
		if strings.HasSuffix(key, "/lost") {
			var put time.Time
			if put, err = p.r.modified(ctx, key); err != nil || p.now.Sub(put) < 30*24*time.Hour {
				continue
			}
		}
		err = p.r.store.Delete(ctx, key)
	}
	return err
}

// cleaner is a store that knows what interrupted uploads left.
type cleaner interface {
	Clean(ctx context.Context, before time.Time, dry bool) (int64, error)
}

func (p *pruner) leftovers(ctx context.Context) (err error) {
	if c, ok := p.r.store.(cleaner); ok {
		p.res.Leftovers, err = c.Clean(ctx, p.now.Add(-leftoverAge), p.lease == nil)
	}
	return err
}
