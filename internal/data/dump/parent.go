package dump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql/define"
)

// parent is the earlier backup whose cuts are taken over.
type parent struct {
	id     string
	series string                   // of the server as it is now
	bounds map[uint64][]chunk.Bound // of tables with more than one chunk, by tableHash
}

// tableHash identifies a table as far as its cuts go: its key's columns, and their order. ok is false if the table has no such columns.
func tableHash(t define.Table, key []string, series string) (hash uint64, ok bool) {
	order := chunk.Order(t, key, series)
	h := fnv.New64a()
	fmt.Fprintf(h, "%q.%q %s", t.Schema, t.Name, order)
	return h.Sum64(), order != ""
}

// seriesOf is what servers with the same defaults have in common.
func seriesOf(s repo.Server) string { return fmt.Sprint(s.Flavour, " ", s.Number/100) }

// findParent reads the cuts of a backup of a server.
func findParent(ctx context.Context, r *repo.Repo, server repo.Server) (parent, error) {
	p := parent{series: seriesOf(server), bounds: map[uint64][]chunk.Bound{}}
	var err error
	if p.id, err = parentID(ctx, r, server.Identity); err != nil || p.id == "" {
		return p, err
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
		t, err := define.ParseTable(l.Table.Schema, l.Table.Create)
		if err == nil && l.Table.History {
			t, _ = t.WithHistory()
		}
		hash, ok := tableHash(t, l.Table.Key, seriesOf(m.Header.Server))
		if err != nil || !ok {
			return nil // its rows are cut from scratch
		}
		var bounds []chunk.Bound
		for _, c := range l.Table.Chunks[:len(l.Table.Chunks)-1] {
			if len(c.Upper) > 0 {
				bounds = append(bounds, c.Upper)
			}
		}
		p.bounds[hash] = bounds
		return nil
	})
	if errors.Is(err, repo.ErrDamaged) {
		return parent{}, nil // verify says so; cuts are no more than convenient
	}
	return p, err
}

// parentID is the backup whose cuts are taken over: the newest that this account took itself, because anyone who may put backups into the place
// could put one there whose cuts overlap; if it took none, the newest of all; "" if there is none.
func parentID(ctx context.Context, r *repo.Repo, identity string) (id string, err error) {
	list, err := r.Backups(ctx)
	if err != nil {
		return "", err
	}
	for _, h := range slices.Backward(list) {
		if h.Kind != repo.Logical || h.Server.Identity != identity {
			continue
		}
		_, err := r.Mine(ctx, h.ID)
		switch {
		case err == nil:
			return h.ID, nil
		case repo.Unfit(err):
			id = cmp.Or(id, h.ID)
		default:
			return "", err
		}
	}
	return id, nil
}

// cutsOf returns the ranges of a table in the earlier backup, or nil.
func (p parent) cutsOf(t define.Table, k chunk.Key) []chunk.Range {
	hash, _ := tableHash(t, k.Columns(), p.series)
	bounds := p.bounds[hash]
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
