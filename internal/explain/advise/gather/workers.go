package gather

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/mysql"
)

// Sessions read schemas side by side where there are many: a server opens tables with one processor for each. Two are what a small machine can
// give beside its own work.
const (
	sessions    = 2
	fewTables   = 2000 // up to here, one is enough
	schemasEach = 8    // that a session takes at a time
	fewSchemas  = 20   // are few
)

// shared is what several sessions use.
type shared struct {
	mu     sync.Mutex
	tables int
	left   int // tables that were not opened
}

// chosen reports whether a table is to be looked at.
func (g *gatherer) chosen(schema, table string) bool {
	g.shared.mu.Lock()
	defer g.shared.mu.Unlock()
	return g.o.Choice.Table(schema, table)
}

// looked counts tables, and tells who wants to know.
func (g *gatherer) looked(n int) {
	g.tables += n
	g.shared.mu.Lock()
	defer g.shared.mu.Unlock()
	g.shared.tables += n
	if g.o.Progress != nil && n > 0 {
		g.o.Progress(g.shared.tables)
	}
}

// schemas looks at all of these: on one session, and on several where there are very many tables.
func (g *gatherer) schemas(ctx context.Context, list []string) error {
	for len(list) > 0 && g.shared.tables < fewTables {
		if err := g.several(ctx, list[:1]); err != nil {
			return err
		}
		list = list[1:]
	}
	if len(list) == 0 {
		return nil
	}
	work := make(chan []string)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(work)
		for len(list) > 0 {
			n := min(schemasEach, len(list))
			select {
			case work <- list[:n]:
				list = list[n:]
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	others := make([]*gatherer, 0, sessions)
	for range sessions {
		w, err := g.another(ctx)
		if err != nil {
			if len(others) > 0 { // the account may have no more connections
				break
			}
			w = g
		}
		others = append(others, w)
		group.Go(func() error {
			if w != g {
				defer w.stream.Close()
			}
			for part := range work {
				if err := w.several(ctx, part); err != nil {
					return err
				}
			}
			return nil
		})
		if w == g {
			break
		}
	}
	err := group.Wait()
	for _, w := range others {
		if w != g {
			g.join(w)
		}
	}
	return err
}

func (g *gatherer) several(ctx context.Context, list []string) error {
	for _, schema := range list {
		if err := g.schema(ctx, schema); err != nil {
			return fmt.Errorf("schema %s: %w", mysql.Quote(schema), err)
		}
	}
	return nil
}

// another is a gatherer with a session of its own; what it finds is its own until join.
func (g *gatherer) another(ctx context.Context) (*gatherer, error) {
	stream, err := g.target.ConnectStream(ctx, mysql.StreamOptions{})
	if err != nil {
		return nil, err
	}
	stream.Unobserved(ctx, g.server.Server)
	if err := stream.ForRows(ctx, g.server.Server); err != nil {
		stream.Close()
		return nil, fmt.Errorf("prepare a session: %w", err)
	}
	w := *g
	w.noted = map[string]bool{}
	s := *g.server
	s.Views, s.Programs, s.Missing, s.Tables, s.Whole = nil, nil, nil, advise.Totals{}, true
	w.stream, w.server, w.found, w.tables, w.statements, w.wanted = stream, &s, advise.Found{}, 0, 0, maps.Clone(g.wanted)
	w.indexes, w.spatial = advise.Seen{}, map[mysql.TableName]bool{}
	return &w, nil
}

// join takes what another found.
func (g *gatherer) join(w *gatherer) {
	g.found.Join(&w.found)
	g.tables, g.statements = g.tables+w.tables, g.statements+w.statements
	for name := range w.indexes.Used {
		if g.indexes.Used == nil {
			g.indexes.Used = map[string]bool{}
		}
		g.indexes.Used[name] = true
	}
	maps.Copy(g.spatial, w.spatial)
	s := g.server
	s.Views = append(s.Views, w.server.Views...)
	s.Whole = s.Whole && w.server.Whole
	s.Tables.Data, s.Tables.Index = s.Tables.Data+w.server.Tables.Data, s.Tables.Index+w.server.Tables.Index
	for name, n := range w.server.Tables.Engines {
		if s.Tables.Engines == nil {
			s.Tables.Engines = map[string]int{}
		}
		s.Tables.Engines[name] += n
	}
	for _, t := range w.server.Missing {
		g.unread(t.What, t.Why, t.Remedy)
	}
	for name, seen := range w.wanted {
		g.wanted[name] = g.wanted[name] || seen
	}
}
