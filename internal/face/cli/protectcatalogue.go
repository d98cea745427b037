package cli

import (
	"context"
	"errors"
	"strconv"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/store/blob"
	"github.com/rissodb/risso/internal/store/state"
)

// catalogue notes what lies at a server's place: its backups, and what drills found of them. What was pruned is forgotten.
func (p *protect) catalogue(ctx context.Context, s watched) error {
	store, err := blob.Open(ctx, s.protect.Place, blob.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	r, err := repo.Open(ctx, repo.On(store))
	if errors.Is(err, repo.ErrNoRepository) {
		return p.facts.KeepBackups(ctx, s.protect.Place, nil)
	}
	if err != nil {
		return err
	}
	headers, err := r.Backups(ctx)
	if err != nil {
		return err
	}
	var all []string
	for _, h := range headers {
		all = append(all, h.ID)
		if len(h.Partial) > 0 || !p.isOf(h, s) {
			continue // not the whole server, or another's
		}
		if err := p.facts.AddBackup(ctx, catalogued(h, s.protect.Place, s.instance.ID)); err != nil {
			return err
		}
	}
	return p.facts.KeepBackups(ctx, s.protect.Place, all)
}

// isOf says whether a backup is of a server. Several servers may share a place.
func (p *protect) isOf(h repo.Header, s watched) bool {
	shared := 0
	for _, o := range p.servers {
		if o.protect.Place == s.protect.Place {
			shared++
		}
	}
	return shared == 1 || h.Server.Name == s.instance.Name || h.Server.Name == s.instance.Address
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
