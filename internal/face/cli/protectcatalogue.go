package cli

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/rissodb/risso/internal/data/drill"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/data/verdict"
	"github.com/rissodb/risso/internal/face/web"
	"github.com/rissodb/risso/internal/store/state"
)

// catalogue notes what lies at a server's place: its backups, and what drills found of them. What was pruned is forgotten;
// when the place cannot be read, or holds no repository any more, what was known of it stays known.
func (p *protect) catalogue(ctx context.Context, s watched) error {
	place := s.protect.Place
	known, err := p.facts.Backups(ctx, s.instance.ID, 0)
	if err != nil {
		return err
	}
	r, closePlace, err := p.openPlace(ctx, s.protect, place, false)
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
	all := make([]string, 0, len(entries))
	mine := map[string]bool{}
	var damaged error
	var newest verdict.Hollow
	hollow := repo.Hollow(entries) // they protect nobody
	for _, e := range entries {
		if !e.Whole {
			continue
		}
		if hollow[e.ID] == "" {
			all = append(all, e.ID)
		}
		if e.Err != nil {
			damaged = errors.Join(damaged, e.Err)
			continue
		}
		if len(e.Header.Partial) > 0 || !p.isOf(e.Header, s) {
			continue // not the whole server, or another's
		}
		if newest = (verdict.Hollow{ID: e.ID, Why: hollow[e.ID]}); newest.Why != "" {
			continue
		}
		newest = verdict.Hollow{}
		mine[e.ID] = true
		if err := p.facts.AddBackup(ctx, catalogued(e.Header, place, s.instance.ID)); err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.hollow[s.instance.ID] = newest
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

// proofs notes what drills found that were made by hand, or elsewhere.
func (p *protect) proofs(ctx context.Context, r *repo.Repo, s watched, mine map[string]bool) error {
	if !r.Readable() {
		return nil
	}
	list, err := drill.Proofs(ctx, r, "")
	if err != nil {
		return err
	}
	for _, proof := range list {
		if !mine[proof.Backup] {
			continue
		}
		d, err := drilled(proof, s.protect.Place, s.instance.ID)
		if err != nil {
			return err
		}
		if _, err := p.facts.AddDrill(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// retention asks why each backup is kept.
func (p *protect) retention(ctx context.Context, r *repo.Repo, s watched) error {
	if !s.protect.Retention.any() {
		return nil
	}
	o, err := s.protect.pruneOptions(r, s.protect.Place)
	if err != nil {
		return err
	}
	list, err := r.Plan(ctx, o)
	if err != nil {
		return err
	}
	kept := map[web.BackupKey]web.Kept{}
	for _, d := range list {
		kept[web.BackupKey{Place: s.protect.Place, ID: d.ID}] = web.Kept{Keep: d.Keep, Reasons: d.Reasons}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept[s.instance.ID] = kept
	return nil
}

// isOf says whether a backup is of a server. Several servers may share a place, and somebody may have called one by its
// address.
func (p *protect) isOf(h repo.Header, s watched) bool {
	if h.Server.Name == s.instance.Name || h.Server.Name == s.instance.Address {
		return true
	}
	id := p.identity(s.instance.ID)
	if id == "" || id != h.Server.Identity {
		return false
	}
	// Two MariaDB may have the same number: then only the name tells them apart.
	return !slices.ContainsFunc(p.list(), func(o watched) bool {
		return o.instance.ID != s.instance.ID && (p.identity(o.instance.ID) == id || o.instance.Name == h.Server.Name)
	})
}

// identity is how backups call a server, as far as it was reached; see mysql.Snapshot.ServerIdentity.
func (p *protect) identity(instance string) string {
	f, ok := p.board.Facts(instance)
	if !ok {
		return ""
	}
	if id := f.Text("server_uuid"); id != "" {
		return id
	}
	if domain := f.Text("gtid_domain_id"); domain != "" {
		return domain + "-" + f.Text("server_id")
	}
	return ""
}

// catalogued is a backup as the store of facts keeps it.
func catalogued(h repo.Header, place, instance string) state.Backup {
	position := h.Position.GTIDSet
	if position == "" && h.Position.File != "" {
		position = h.Position.File + ":" + strconv.FormatInt(h.Position.Offset, 10)
	}
	return state.Backup{Place: place, ID: h.ID, Instance: instance, Kind: string(h.Kind), Parent: h.Parent, Began: h.Began, Ended: h.Ended, Bytes: h.Bytes, Stored: h.Stored,
		Tables: h.Tables, Rows: h.Rows, Position: position}
}
