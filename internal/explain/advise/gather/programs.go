package gather

import (
	"context"
	"strings"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// programs reads stored programs: who they run as, and which indexes they name in hints.
func (g *gatherer) programs(ctx context.Context) error {
	hinted := func(column string) string { // MySQL 8.0 and newer tell capital letters in these columns apart
		return "CASE WHEN LOWER(" + column + ") REGEXP " + mysql.Literal(advise.HintsPattern) + " THEN " + column + " ELSE '' END"
	}
	add := func(kind string) func(row [][]byte) error {
		return func(row [][]byte) error {
			p := advise.Program{Kind: kind, Schema: string(row[0]), Name: string(row[1]), Definer: string(row[2]), Invoker: string(row[3]) == "INVOKER"}
			if kind == "routine" {
				p.Kind = strings.ToLower(string(row[5]))
			}
			if kind == "event" && string(row[5]) != "ENABLED" {
				p.Disabled = string(row[5])
			}
			p.Orphan = !g.seen[p.Schema] && !mysql.SystemSchema(p.Schema)
			if mysql.SystemSchema(p.Schema) {
				return nil
			}
			g.server.Programs = append(g.server.Programs, p)
			if len(row[4]) > 0 {
				g.hints(string(row[4]), p.Kind+" "+p.Schema+"."+p.Name)
			}
			return nil
		}
	}
	err := g.query(ctx, "SELECT /* risso: stored programs */ ROUTINE_SCHEMA, ROUTINE_NAME, DEFINER, SECURITY_TYPE, "+hinted("ROUTINE_DEFINITION")+", ROUTINE_TYPE FROM information_schema.ROUTINES", add("routine"))
	if err := g.missing("stored programs", err); err != nil {
		return err
	}
	err = g.query(ctx, "SELECT /* risso: events */ EVENT_SCHEMA, EVENT_NAME, DEFINER, 'DEFINER', "+hinted("EVENT_DEFINITION")+", STATUS FROM information_schema.EVENTS", add("event"))
	if err := g.missing("events", err); err != nil {
		return err
	}
	g.statements += 3
	g.holds, err = define.Holds(ctx, g.stream)
	if err := g.missing("triggers", err); err != nil {
		return err
	}
	for schema, kinds := range g.holds {
		for _, kind := range kinds {
			if kind != define.KindTrigger || mysql.SystemSchema(schema) {
				continue
			}
			err := g.query(ctx, "SELECT /* risso: triggers */ TRIGGER_SCHEMA, TRIGGER_NAME, DEFINER, 'DEFINER', "+hinted("ACTION_STATEMENT")+" FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = "+mysql.Literal(schema), add("trigger"))
			if err := g.missing("triggers", err); err != nil {
				return err
			}
		}
	}
	return nil
}

// views reads who views run as, and which indexes they name in hints. It comes before all tables: a hint names an index of any schema.
func (g *gatherer) views(ctx context.Context) error {
	g.statements += 2
	schemas, err := define.ViewSchemas(ctx, g.stream, g.server.Server)
	if err := g.missing("views", err); err != nil {
		return err
	}
	for _, schema := range schemas {
		if mysql.SystemSchema(schema) {
			continue
		}
		err := g.query(ctx, "SELECT /* risso: views */ TABLE_NAME, DEFINER, SECURITY_TYPE, VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = "+mysql.Literal(schema), func(row [][]byte) error {
			p := advise.Program{Kind: "view", Schema: schema, Name: string(row[0]), Definer: string(row[1]), Invoker: string(row[2]) == "INVOKER"}
			g.server.Programs = append(g.server.Programs, p)
			g.hints(string(row[3]), "view "+schema+"."+p.Name)
			return nil
		})
		if err := g.missing("views", err); err != nil {
			return err
		}
	}
	return nil
}

// broken notes views that cannot be read: their comment says why.
func (g *gatherer) broken(schema, name, comment string) {
	if comment != "" && !strings.EqualFold(comment, "VIEW") {
		g.server.Views = append(g.server.Views, advise.View{TableName: mysql.TableName{Schema: schema, Name: name}, Fault: comment})
	}
}
