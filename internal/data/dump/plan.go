package dump

import (
	"context"
	"fmt"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/snapshot"
)

// Plan is what a backup would do. Sizes are the server's estimates.
type Plan struct {
	Flavour   string      `json:"flavour"`
	Version   string      `json:"version"`
	Schemas   int         `json:"schemas"`
	Tables    int         `json:"tables"`
	Rows      int64       `json:"rows"`
	Bytes     int64       `json:"bytes"`
	Views     int         `json:"views"`
	Sequences int         `json:"sequences"`
	Largest   []PlanTable `json:"largest"`
	More      int         `json:"more"`
	Methods   []string    `json:"methods"` // ways to take the consistent view, in the order they would be tried
	Notes     []string    `json:"notes,omitempty"`
}

// PlanTable is a table of a Plan.
type PlanTable struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Rows  int64  `json:"rows"`
	How   string `json:"how"` // how it is read, in words
}

// planned is how many tables a plan names.
const planned = 20

// MakePlan finds out what there is to read, and reads and locks nothing.
func MakePlan(ctx context.Context, o Options) (Plan, error) {
	c, err := mysql.Connect(ctx, o.Target, nil)
	if err != nil {
		return Plan{}, err
	}
	server := c.Server
	c.Close()
	st, err := o.Target.ConnectStream(ctx, mysql.StreamOptions{})
	if err != nil {
		return Plan{}, err
	}
	defer st.Close()
	if err := st.ForRows(ctx, server); err != nil {
		return Plan{}, err
	}
	l, err := list(ctx, []*mysql.Stream{st}, server, o)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Flavour: string(server.Flavour), Version: server.Version, Schemas: len(l.schemas), Tables: len(l.tables) + len(l.plain), Views: len(l.views), Sequences: len(l.seqs), Bytes: l.bytes, Notes: l.notes()}
	if l.blind != nil {
		p.Notes = append(p.Notes, "Partial: "+l.blind.Error())
	}
	for i, t := range append(l.tables[:len(l.tables):len(l.tables)], l.plain...) {
		p.Rows += t.Rows
		if i >= planned {
			continue
		}
		how, err := howRead(ctx, st, t)
		if err != nil {
			return p, err
		}
		p.Largest = append(p.Largest, PlanTable{Name: t.TableName.String(), Bytes: t.Bytes, Rows: t.Rows, How: how})
	}
	p.More = p.Tables - len(p.Largest)
	for _, m := range snapshot.Methods(server, len(l.plain) > 0, o.Snapshot.Method) {
		p.Methods = append(p.Methods, string(m))
	}
	return p, nil
}

func howRead(ctx context.Context, st *mysql.Stream, info define.TableInfo) (string, error) {
	if mysql.Elsewhere(info.Engine) {
		return "definition only: its rows are stored elsewhere (" + info.Engine + ")", nil
	}
	create, err := define.CreateTable(ctx, st, info.TableName)
	if err != nil {
		return "", err
	}
	t, err := define.ParseTable(info.Schema, create)
	if err != nil {
		return "", err
	}
	k, ok := chunk.KeyOf(t)
	switch {
	case !ok:
		return "in one piece: it has no primary key and no unique key without NULL", nil
	case k.Cuts == 0:
		return fmt.Sprintf("in one piece, ordered by %s, which cannot be split", k.Name), nil
	case !mysql.Transactional(info.Engine):
		return fmt.Sprintf("locked against writes (%s), split by %s", info.Engine, k.Name), nil
	}
	return "cut by " + k.Name, nil
}
