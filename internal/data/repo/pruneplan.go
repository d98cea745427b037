package repo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// seen is what a prune is planned by: all that is read of a place before anything is removed.
type seen struct {
	entries  []Entry
	headless []string         // backups without a manifest
	proven   map[string]proof // by ID
	takers   map[string]taker // of those that are whole
	parts    map[string]bool  // backups that cannot be read and have parts, as physical ones do
	now      time.Time        // by the clock of the place
}

// look reads all but headless and now.
func (r *Repo) look(ctx context.Context, trusted []PublicKey) (s seen, err error) {
	if s.entries, err = r.Catalogue(ctx); err != nil {
		return s, err
	}
	if s.proven, err = r.proven(ctx, trusted); err != nil {
		return s, err
	}
	if s.takers, err = r.takers(ctx, s.entries); err != nil {
		return s, err
	}
	s.parts = map[string]bool{}
	for _, e := range s.entries {
		if !e.Whole || e.Err == nil {
			continue
		}
		if err := r.store.List(ctx, partPrefix(e.ID), func(string, int64) error { s.parts[e.ID] = true; return nil }); err != nil {
			return s, err
		}
	}
	return s, nil
}

// plan says what a prune does, apart from objects: which those are is known when what backups need was read.
func (s seen) plan(o PruneOptions) (p Pruned, err error) {
	p = Pruned{Removed: []string{}, Dead: []string{}, Headless: []string{}, Running: []string{}}
	for _, e := range s.entries {
		switch {
		case e.Whole:
		case e.Lives(s.now):
			p.Running = append(p.Running, e.ID)
		default:
			p.Dead = append(p.Dead, e.ID)
		}
	}
	// The missing manifest may be on its way here. So the backup stays, and what it needs, unless it is removed by name.
	for _, id := range s.headless {
		if !slices.Contains(o.Remove, id) {
			p.Headless = append(p.Headless, id)
			continue
		}
		p.Removed = append(p.Removed, id)
		o.Remove = slices.DeleteFunc(slices.Clone(o.Remove), func(other string) bool { return other == id })
	}
	if p.Decisions, err = s.decide(o); err != nil {
		return p, err
	}
	for _, d := range p.Decisions {
		if !d.Keep {
			p.Removed = append(p.Removed, d.ID)
		}
	}
	return p, nil
}

// decide judges the whole backups.
func (s seen) decide(o PruneOptions) ([]Decision, error) {
	list := s.candidates(o)
	zone := o.Zone
	if zone == nil {
		zone = time.UTC
	}
	policy := o.Retention
	if len(o.Remove) > 0 {
		for i, c := range list {
			if !slices.Contains(o.Remove, c.ID) && c.Keep == "" {
				list[i].Keep = "not selected"
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
	decisions := policy.Decide(list, zone, s.now)
	for i, d := range decisions {
		if !d.Keep && slices.Contains(o.Remove, d.ID) {
			decisions[i].Reasons = []string{"it was named"}
		}
	}
	return decisions, nil
}

// candidates are the whole backups, with what decides about them besides rules.
func (s seen) candidates(o PruneOptions) (list []Candidate) {
	parents := map[string]string{}
	undecided := ""  // a physical backup that has begun and does not say yet what it builds on
	parentless := "" // a physical backup that cannot say what it builds on
	for _, e := range s.entries {
		if !e.Whole {
			switch h := e.Header; {
			case e.Err == nil && h.Parent != "":
				parents[h.Parent] = e.ID + ", which is running, builds on it"
			case h.Kind == Physical && h.Server.Identity == "" && e.Lives(s.now):
				undecided = e.ID
			}
			continue
		}
		h, by, proven := e.Header, s.takers[e.ID], s.proven[e.ID]
		c := Candidate{ID: e.ID, Time: h.Began, Server: h.Server.Identity, Proven: proven >= claimed, Unread: proven == unread, Vouched: proven == vouched, Group: h.group(), Signer: by.key, Trusted: slices.Contains(o.Trusted, by.key)}
		if h.Kind == Physical {
			c.physical = true
			c.Parent = h.Parent // chunks of a logical backup need no other backup
		}
		if err := cmp.Or(e.Err, by.err); err != nil {
			c.Keep = "it cannot be read: " + err.Error()
			c.Group, c.Proven, c.Unread = "damaged "+e.ID, false, false
		}
		if s.parts[e.ID] {
			parentless = e.ID
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
	markHollow(list, s.entries)
	return list
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
	key PublicKey // "": none
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

// proof says who vouches that a backup was restored.
type proof int

const (
	unproven proof = iota
	unread         // what a drill found is unsigned, and damaged, or no identity opens it
	claimed        // signed by a key that is not trusted, or unsigned
	vouched        // by one's whose key is trusted
)

// proven returns the backups that a drill restored, or may have restored. Damaged proofs cannot be read, nor can those of an encrypted
// repository without an identity: then signatures show which were good, and nothing is known about an unsigned one.
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
