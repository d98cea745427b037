package reshard

import (
	"context"
	"fmt"

	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// Defined refuses a new map whose tables, or their columns of the key, a group does not have. A group whose primary does not answer may have them, and so may
// one whose account may not read them.
func (m *Mover) Defined(ctx context.Context, mp *shard.Map) error {
	asked := map[string]bool{}
	for _, s := range mp.Shards {
		if asked[s.Group] {
			continue
		}
		asked[s.Group] = true
		if err := m.definedIn(ctx, mp, s.Group); err != nil {
			return err
		}
	}
	return nil
}

func (m *Mover) definedIn(ctx context.Context, mp *shard.Map, name string) error {
	c, err := m.primary(ctx, name)
	if err != nil {
		return ctx.Err()
	}
	defer c.Close()
	for _, t := range mp.Tables {
		_, err := c.Maps(ctx, "SELECT /* risso: is the key of the map there? */ "+t.Quoted()+" FROM "+mysql.Quote(t.Schema)+"."+mysql.Quote(t.Name)+" LIMIT 0")
		what := "column " + t.Column + " in " + t.Schema + "." + t.Name
		switch mysql.ErrorNumber(err) {
		case errno.NoSuchTable, errno.UnknownDatabase:
			what = "table " + t.Schema + "." + t.Name
		case errno.UnknownColumn:
		default:
			continue
		}
		return fault.New(fault.Failed, "create it there, or name another one by --table SCHEMA.TABLE:COLUMN", fmt.Errorf("group %s has no %s", name, what))
	}
	return nil
}
