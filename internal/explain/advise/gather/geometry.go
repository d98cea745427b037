package gather

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/geo"
	"github.com/rissodb/risso/internal/mysql"
)

// mostSpatial is of how many tables with geometry the columns are looked at.
const mostSpatial = 200

// geometry looks at the tables that have columns of geometry, if there are any and anybody wants to know of them.
func (g *gatherer) geometry(ctx context.Context) error {
	if len(g.spatial) == 0 || g.o.Wanted != nil && !slices.ContainsFunc(advise.GeometryChecks(), func(c advise.Check) bool { return g.o.Wanted(c.ID) }) {
		return nil
	}
	names := slices.SortedFunc(maps.Keys(g.spatial), func(a, b mysql.TableName) int { return strings.Compare(a.String(), b.String()) })
	if len(names) > mostSpatial {
		g.unread("geometry of more tables", fmt.Sprintf("only %d of %d are looked at", mostSpatial, len(names)), "risso map --faults --schema NAME looks at all of a schema")
		names = names[:mostSpatial]
	}
	f, unknown, err := geo.ReadFacts(ctx, g.conn, geo.SampleOptions{Tables: names})
	g.statements += 4 * len(names)
	if err != nil {
		return g.missing("geometry", err)
	}
	for _, u := range unknown {
		g.unread(u.What, u.Why, u.Remedy)
	}
	g.add(advise.OfGeometry(f))
	return nil
}
