package protect

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/data/drill"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/data/verdict"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/state"
)

// catalogue notes what is at a server's place: its backups, and what drills found of them. What was pruned is forgotten;
// when the place cannot be read, or holds no repository any more, what was known of it stays known.
func (p *Guard) catalogue(ctx context.Context, s config.Watched) error {
	place := s.Protect.Place
	known, err := p.facts.Backups(ctx, s.Instance.ID, 0)
	if err != nil {
		return err
	}
	r, closePlace, err := p.openLooking(ctx, s.Protect)
	if errors.Is(err, repo.ErrNoRepository) && !slices.ContainsFunc(known, func(b state.Backup) bool { return b.Place == place }) {
		return nil // the first backup makes it
	}
	if err != nil {
		return err
	}
	defer closePlace()
	entries, err := r.Catalogue(ctx)
	if err != nil {
		return err
	}
	strangers, err := r.Strangers(ctx, entries)
	if err != nil {
		return err
	}
	all := make([]string, 0, len(entries))
	headless, err := r.Headless(ctx)
	if err != nil {
		return err
	}
	var damaged error
	hollow := Hollow(entries, strangers)
	for _, e := range entries {
		switch {
		case !e.Whole:
		case e.Err != nil && strangers[e.ID] == "":
			all, damaged = append(all, e.ID), errors.Join(damaged, e.Err)
		case hollow[e.ID] == "" && strangers[e.ID] == "": // others protect nothing
			all = append(all, e.ID)
		}
	}
	mine := map[string]bool{}
	list, newest := Counted(entries, headless, strangers, func(h repo.Header) bool { return p.isOf(h, s) })
	for _, e := range list {
		mine[e.ID] = true
		if err := p.facts.AddBackup(ctx, Catalogued(e.Header, place, s.Instance.ID)); err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.newest[s.Instance.ID] = newest
	p.mu.Unlock()
	if err := p.facts.KeepBackups(ctx, place, all); err != nil {
		return err
	}
	if err := p.proofs(ctx, r, s, mine); err != nil {
		return err
	}
	if err := p.retention(ctx, r, s); err != nil {
		return err
	}
	return damaged
}

// Hollow says which backups are hollow, and why. Those of strangers make no other hollow.
func Hollow(entries []repo.Entry, strangers map[string]string) map[string]string {
	return repo.Hollow(slices.DeleteFunc(slices.Clone(entries), func(e repo.Entry) bool { return strangers[e.ID] != "" }))
}

// Counted are the backups of a server that count, the oldest first, and the newest one where that does not; headless are those without a manifest,
// strangers those not signed by a trusted key. One so damaged that its server is unknown may belong to any.
func Counted(entries, headless []repo.Entry, strangers map[string]string, mine func(repo.Header) bool) (list []repo.Entry, newest verdict.Uncounted) {
	hollow := Hollow(entries, strangers)
	var part verdict.Uncounted
	for _, e := range slices.SortedFunc(slices.Values(slices.Concat(entries, headless)), repo.Entry.Before) {
		switch h := e.Header; {
		case !e.Whole && !e.Headless || h.ID != "" && !mine(h):
		case e.Err != nil && strangers[e.ID] == "":
			newest = verdict.Uncounted{ID: e.ID, Why: strings.TrimPrefix(e.Err.Error(), "backup "+e.ID+": "), Kind: verdict.Broken}
		case e.Err != nil:
		case strangers[e.ID] != "":
			newest = verdict.Uncounted{ID: e.ID, Why: strangers[e.ID], Kind: verdict.Strange}
		case len(h.Partial) > 0:
			part = verdict.Uncounted{ID: e.ID, Why: "holds only " + strings.Join(h.Partial, ", "), Kind: verdict.Part}
		case hollow[e.ID] != "":
			newest = verdict.Uncounted{ID: e.ID, Why: hollow[e.ID], Kind: verdict.Hollow}
		default:
			list, newest = append(list, e), verdict.Uncounted{}
		}
	}
	if len(list) == 0 && newest.ID == "" {
		newest = part
	}
	return list, newest
}

// proofs notes what drills found that were made by hand, or elsewhere. Without an identity signatures tell of an encrypted place which were good;
// what this Risso's own drills found is known, and stays as it is.
func (p *Guard) proofs(ctx context.Context, r *repo.Repo, s config.Watched, mine map[string]bool) error {
	list, err := drill.Proofs(ctx, r, "")
	if err != nil {
		return err
	}
	drills, doubt, err := Drills(list, s.Protect.Place, s.Instance.ID, mine)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.doubt[s.Instance.ID] = doubt
	p.mu.Unlock()
	for _, d := range drills {
		if _, err := p.facts.AddDrill(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// Drills are the drills of some backups, the oldest first, as proofs tell of them, and why the newest proof counts for nothing; "": it counts.
func Drills(list []drill.Proof, place, instance string, of map[string]bool) (drills []state.Drill, doubt string, err error) {
	for _, proof := range list {
		if !of[proof.Backup] {
			continue
		}
		if doubt = proof.Doubt; doubt != "" {
			continue
		}
		d, err := proof.Fact(place, instance)
		if err != nil {
			return nil, "", err
		}
		drills = append(drills, d)
	}
	return drills, doubt, nil
}

// retention asks why each backup is kept.
func (p *Guard) retention(ctx context.Context, r *repo.Repo, s config.Watched) error {
	if !s.Protect.Retention.Any() {
		return nil
	}
	o, err := pruneOptions(s.Protect, r, s.Protect.Place)
	if err != nil {
		return err
	}
	list, err := r.Plan(ctx, o)
	if err != nil {
		return err
	}
	kept := map[BackupKey]Kept{}
	for _, d := range list {
		kept[BackupKey{Place: s.Protect.Place, ID: d.ID}] = Kept{Keep: d.Keep, Reasons: d.Reasons}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept[s.Instance.ID] = kept
	return nil
}

// isOf reports whether a backup is of a server. Several servers may share a place, and somebody may have called one by its
// address.
func (p *Guard) isOf(h repo.Header, s config.Watched) bool {
	if h.Server.Name == s.Instance.Name || h.Server.Name == s.Instance.Address {
		return true
	}
	id := p.identity(s.Instance.ID)
	if id == "" || id != h.Server.Identity {
		return false
	}
	// Two MariaDB may have the same number: then only the name distinguishes them.
	return !slices.ContainsFunc(p.list(), func(o config.Watched) bool {
		return o.Instance.ID != s.Instance.ID && (p.identity(o.Instance.ID) == id || o.Instance.Name == h.Server.Name)
	})
}

// identity is how backups call a server, as far as it was reached; see fleet.Seat.
func (p *Guard) identity(instance string) string {
	f, ok := p.board.Facts(instance)
	if !ok {
		return ""
	}
	return fleet.SeatOf(f.Text).ID
}

// Catalogued is a backup as the store of facts keeps it.
func Catalogued(h repo.Header, place, instance string) state.Backup {
	position := h.Position.GTIDSet
	if position == "" && h.Position.File != "" {
		position = h.Position.File + ":" + strconv.FormatInt(h.Position.Offset, 10)
	}
	return state.Backup{Place: place, ID: h.ID, Instance: instance, Kind: string(h.Kind), Parent: h.Parent, Began: h.Began, Ended: h.Ended, Bytes: h.Bytes, Stored: h.Stored,
		Tables: h.Tables, Rows: h.Rows, Position: position}
}
