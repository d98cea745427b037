package retiring

import (
	"context"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/explain/retire"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/store/events"
)

// kept is what the store of statements tells.
type kept struct {
	store    events.Store
	instance func(place string) string
}

// mostNames bounds how many views of a table are asked for.
const mostNames = 20

// during are the whole minutes of a time; false if there are none.
func during(from, to time.Time) (events.Range, bool) {
	r := events.Range{From: (from.Unix() + 59) / 60 * 60, To: to.Unix() / 60 * 60}
	return r, r.From < r.To
}

// Classes are what classes that name one of these tables cost on a server in a time. The store knows by a class' text what it names: one that
// names a table without its schema is told apart by the default schema that it ran in.
func (k kept) Classes(ctx context.Context, seat string, from, to time.Time, names []mysql.TableName) (list []retire.Class, err error) {
	id := k.instance(seat)
	r, ok := during(from, to)
	if id == "" || !ok {
		return nil, nil
	}
	seen := map[[2]string]bool{}
	add := func(schema, name string, schemas []string) error {
		a, err := k.store.Top(ctx, events.TopQuestion{Range: r, Instances: []string{id}, Limit: events.MaxLimit, Search: name, Schemas: schemas})
		if err != nil {
			return fmt.Errorf("read what classes cost: %w", err)
		}
		for _, c := range a.Classes {
			if key := [2]string{schema, c.ID}; !seen[key] {
				seen[key] = true
				list = append(list, retire.Class{Schema: schema, Digest: c.ID, Text: c.Fingerprint, Cost: c.Cost})
			}
		}
		return nil
	}
	for _, name := range names[:min(len(names), mostNames)] {
		if err := add("", name.Name, nil); err != nil {
			return nil, err
		}
		if err := add(name.Schema, name.Name, []string{name.Schema}); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Digest is what a class cost on a server in a time, by the server's name for it.
func (k kept) Digest(ctx context.Context, seat string, from, to time.Time, digest string) (cost fleet.Cost, err error) {
	id := k.instance(seat)
	r, ok := during(from, to)
	if id == "" || !ok {
		return cost, nil
	}
	a, err := k.store.Class(ctx, events.ClassQuestion{Range: r, ID: digest, Instances: []string{id}, Points: 1})
	if err != nil {
		return cost, fmt.Errorf("read what a class cost: %w", err)
	}
	if a != nil {
		cost = a.Total
	}
	return cost, nil
}

// Knew reports whether a server's statements were kept in a time.
func (k kept) Knew(ctx context.Context, seat string, from, to time.Time) (bool, error) {
	id := k.instance(seat)
	r, ok := during(from, to)
	if id == "" || !ok {
		return false, nil
	}
	list, err := k.store.Covered(ctx, r, []string{id}, 100)
	if err != nil {
		return false, fmt.Errorf("read when statements were kept: %w", err)
	}
	return len(list) > 0, nil
}
