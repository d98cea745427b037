package retire

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sqltext"
)

// Server is a server with its name.
type Server struct {
	Name   string
	Target mysql.Target
}

// counted reads what classes of statements that name a table, or a view, have cost on a server.
func counted(ctx context.Context, c *mysql.Conn, touches func(Class) bool) (list []Class, err error) {
	off, err := read.CountsStatements(ctx, c)
	if err != nil {
		return nil, err
	}
	if off != nil {
		return nil, fleet.WithRemedy(fmt.Errorf("statements are not counted, so nobody would notice that they got slower: %s", off.Why), off.Remedy)
	}
	at := map[string]int{}
	var ids []string
	err = read.Digests(ctx, c, "", func(d *read.Digest) error {
		if d.ID != "" && !mysql.SystemSchema(d.Schema) {
			x := Class{Schema: strings.Clone(d.Schema), Digest: strings.Clone(d.ID), First: strings.Clone(d.First), Cost: d.Cost}
			at[x.key()] = len(list)
			list = append(list, x)
			ids = append(ids, x.Digest)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read classes of statements: %w", err)
	}
	err = read.DigestTexts(ctx, c, ids, func(t read.DigestText) error {
		if i, ok := at[Class{Schema: t.Schema, Digest: t.ID}.key()]; ok && !strings.Contains(t.Sample, "/* risso") {
			list[i].Text = strings.Clone(t.Text)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read texts of classes: %w", err)
	}
	kept := list[:0]
	for _, x := range list {
		if x.Text != "" && touches(x) {
			kept = append(kept, x)
		}
	}
	return kept, nil
}

// views reads which tables and views each view reads.
func views(ctx context.Context, c *mysql.Conn) (Views, error) {
	v := Views{}
	err := c.Query(ctx, "SELECT /* risso: what views read */ TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA NOT IN ('sys', 'mysql', 'information_schema', 'performance_schema')", func(row []sqldriver.Value) error {
		name := mysql.TableName{Schema: mysql.Text(row[0]), Name: mysql.Text(row[1])}
		for _, t := range sqltext.Tables([]byte(mysql.Text(row[2]))) {
			if t.Schema == "" {
				t.Schema = name.Schema
			}
			v[name] = append(v[name], mysql.TableName(t))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read views: %w", err)
	}
	return v, nil
}

// baseline reads what classes that touch a table have cost on a server until now.
func baseline(ctx context.Context, s Server, table mysql.TableName) (b Baseline, touches func(Class) bool, err error) {
	c, err := mysql.Connect(ctx, s.Target, nil)
	if err != nil {
		return b, nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	defer c.Close()
	v, err := views(ctx, c)
	if err == nil {
		touches = Touches(table, v)
		b = Baseline{Server: s.Name, Seat: c.Server.Place()}
		b.Classes, err = counted(ctx, c, touches)
	}
	if err != nil {
		return b, nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return b, touches, nil
}

// lockWait bounds how long a statement that changes the table's definition waits for others, who wait behind it meanwhile. Definitions are read
// without any sql_mode, and so are they given back; NO_ZERO_DATE would refuse each ALTER TABLE of a table with the default 0000-00-00.
const lockWait = "SET SESSION /* risso: bound waits */ lock_wait_timeout = 5, sql_mode = ''"

// run sends a statement that changes the definition of a table.
func run(ctx context.Context, s Server, statement string) error {
	c, err := mysql.Connect(ctx, s.Target, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	defer c.Close()
	if err := c.Exec(ctx, lockWait); err != nil {
		return fmt.Errorf("%s: bound waits: %w", s.Name, err)
	}
	if err := c.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %s: %w", s.Name, statement, err)
	}
	return nil
}
