package retire

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/explain/prepared"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sqltext"
)

// Server is a server with its name.
type Server struct {
	Name    string
	Target  mysql.Target
	Traffic *mysql.Traffic // of the observer's other sessions, so that what is sent is not taken for load; nil: nobody asks
}

// counted reads what classes of statements that name a table, or a view, have cost on a server.
func counted(ctx context.Context, c *mysql.Conn, touches func(Class) bool) (list []Class, r Reading, err error) {
	if r, err = reading(ctx, c); err != nil {
		return nil, r, err
	}
	at := map[string]int{}
	var ids []string
	err = read.Digests(ctx, c, "", func(d *read.Digest) error {
		r.note(d)
		if d.ID != "" && !mysql.SystemSchema(d.Schema) {
			x := Class{Schema: strings.Clone(d.Schema), Digest: strings.Clone(d.ID), First: strings.Clone(d.First), Cost: d.Cost}
			at[x.key()] = len(list)
			list = append(list, x)
			ids = append(ids, x.Digest)
		}
		return nil
	})
	if err != nil {
		return nil, r, fmt.Errorf("read classes of statements: %w", err)
	}
	if r.Began.IsZero() { // at least the questions of this session would be in it
		return nil, r, &notCounted{fleet.Trouble{Why: "the table of classes of statements is empty, though statements ran", Remedy: "let performance_schema_digests_size and max_digest_length be more than 0 in the option file and restart the server"}}
	}
	err = read.DigestTexts(ctx, c, ids, func(t read.DigestText) error {
		if i, ok := at[Class{Schema: t.Schema, Digest: t.ID}.key()]; ok && !strings.Contains(t.Sample, "/* risso") {
			list[i].Text = strings.Clone(prepared.CutExecute(t.Text))
		}
		return nil
	})
	if err != nil {
		return nil, r, fmt.Errorf("read texts of classes: %w", err)
	}
	kept := list[:0]
	for _, x := range list {
		if x.Text != "" && touches(x) {
			kept = append(kept, x)
		}
	}
	return kept, r, nil
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

// look is what a server says of a table at one moment.
type look struct {
	Baseline
	touches func(Class) bool
	names   []mysql.TableName // of the table, and of views that read it
	shown   bool              // the index may be used there
}

// baseline reads what classes that touch the table of a record have cost on a server until now.
func baseline(ctx context.Context, s Server, r *Record) (l look, err error) {
	c, err := mysql.Connect(ctx, s.Target, s.Traffic)
	if err != nil {
		return l, fmt.Errorf("%s: %w", s.Name, err)
	}
	defer c.Close()
	l.Baseline = Baseline{Server: s.Name, Seat: c.Server.Place()}
	v, err := views(ctx, c)
	if err == nil {
		l.names = v.reading(r.TableName())
		l.touches = touchesAny(l.names)
		l.shown, err = shown(ctx, c, r)
	}
	if err == nil {
		l.Classes, l.Seen, err = counted(ctx, c, l.touches)
	}
	if err != nil {
		return l, fmt.Errorf("%s: %w", s.Name, err)
	}
	return l, nil
}

// lockWait bounds how long a statement that changes the table's definition waits for others, who wait behind it meanwhile. Definitions are read
// without any sql_mode, and so are they given back; NO_ZERO_DATE would refuse each ALTER TABLE of a table with the default 0000-00-00.
const lockWait = "SET SESSION /* risso: bound waits */ lock_wait_timeout = 5, sql_mode = ''"

// run sends a statement that changes the definition of a table.
func run(ctx context.Context, s Server, statement string) error {
	c, err := mysql.Connect(ctx, s.Target, s.Traffic)
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
