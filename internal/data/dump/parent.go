package dump

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
)

// parent is the earlier backup whose cuts are taken over.
type parent struct {
	id     string
	bounds map[uint64][]chunk.Bound // of tables with more than one chunk, by tableHash
}

// tableHash stands for a table with its definition. The next AUTO_INCREMENT is no part of that, but a mere counter.
func tableHash(schema, name string, key []string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q.%q %q", schema, name, key)
	return h.Sum64()
}

// findParent reads the cuts of the newest whole backup of a server.
func findParent(ctx context.Context, r *repo.Repo, identity string) (parent, error) {
	p := parent{bounds: map[uint64][]chunk.Bound{}}
	list, err := r.Backups(ctx)
	if err != nil {
		return p, err
	}
	for _, h := range list { // the oldest first
		if h.Kind == repo.Logical && h.Server.Identity == identity {
			p.id = h.ID
		}
	}
	if p.id == "" {
		return p, nil
	}
	m, err := r.Manifest(ctx, p.id)
	if errors.Is(err, repo.ErrDamaged) || errors.Is(err, repo.ErrNoKey) {
		return parent{}, nil // verify says so; cuts are no more than convenient
	}
	if err != nil {
		return p, err
	}
	defer m.Close()
	err = m.Each(func(l repo.Line) error {
		if l.Table == nil || len(l.Table.Chunks) < 2 || len(l.Table.Key) == 0 {
			return nil
		}
		var bounds []chunk.Bound
		for _, c := range l.Table.Chunks[:len(l.Table.Chunks)-1] {
			if len(c.Upper) > 0 {
				bounds = append(bounds, c.Upper)
			}
		}
		p.bounds[tableHash(l.Table.Schema, l.Table.Name, l.Table.Key)] = bounds
		return nil
	})
	if errors.Is(err, repo.ErrDamaged) {
		return parent{}, nil // verify says so; cuts are no more than convenient
	}
	return p, err
}

// cutsOf gives the ranges of a table by the earlier backup, or nil.
func (p parent) cutsOf(t mysql.Table, k chunk.Key) []chunk.Range {
	bounds := p.bounds[tableHash(t.Schema, t.Name, keyNames(k))]
	if len(bounds) == 0 {
		return nil
	}
	out := make([]chunk.Range, 0, len(bounds)+1)
	var lower chunk.Bound
	for _, b := range bounds {
		if k.Check(b) != nil {
			return nil
		}
		out = append(out, chunk.Range{Lower: lower, Upper: b})
		lower = b
	}
	return append(out, chunk.Range{Lower: lower})
}

// keyNames are the columns by which a table is cut; nil where it is not.
func keyNames(k chunk.Key) []string {
	var out []string
	for _, c := range k.Order[:k.Cuts] {
		out = append(out, c.Name)
	}
	return out
}
