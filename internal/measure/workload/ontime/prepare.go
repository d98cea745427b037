package ontime

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// batch is how many rows one INSERT has: some 130 KB.
const batch = 1000

// Prepare makes and fills the table. When it cannot finish it drops what it made.
func (o *ontime) Prepare(ctx context.Context, po workload.PrepareOptions) (err error) {
	var stop drive.Stop
	defer context.AfterFunc(ctx, stop.Set)()
	s, err := po.Target.Open(ctx, &stop)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, exists, err := comment(s); err != nil {
		return err
	} else if exists {
		return fmt.Errorf("the table %s already exists: cleanup drops it if prepare made it", table)
	}
	for _, sql := range o.create(s.Dialect()) {
		_, err := s.Exec(drive.Other, sql)
		var server *drive.ServerError
		switch {
		case errors.As(err, &server) && server.Code == 1046:
			return workload.ErrNoDatabase
		case err != nil:
			return fmt.Errorf("make the table %s: %w", table, err)
		}
	}
	if err := o.load(ctx, po, &stop); err != nil {
		_, again := o.drop(context.WithoutCancel(ctx), po.Target)
		return errors.Join(err, again)
	}
	s.SetPatience(patience)
	analyze := "ANALYZE TABLE " + table
	if s.Dialect() == drive.Postgres {
		analyze = "VACUUM ANALYZE " + table
	}
	if _, err := s.Exec(drive.Other, analyze); err != nil {
		return fmt.Errorf("%s: %w", analyze, err)
	}
	return nil
}

// create returns the statements that make the table with its mark.
func (o *ontime) create(d drive.Dialect) []string {
	var b strings.Builder
	b.WriteString("CREATE TABLE " + table + " (")
	for i, c := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(c.name + " " + c.kind)
	}
	if !o.p.NoPrimaryKey {
		b.WriteString(", PRIMARY KEY (id)")
	}
	b.WriteString(")")
	if d == drive.Postgres {
		return []string{strings.TrimSpace(b.String() + " " + o.p.TableOptions), "COMMENT ON TABLE " + table + " IS '" + workload.Mark + "'"}
	}
	if o.p.Engine != "" {
		b.WriteString(" ENGINE=" + o.p.Engine)
	}
	b.WriteString(" COMMENT='" + workload.Mark + "'")
	return []string{strings.TrimSpace(b.String() + " " + o.p.TableOptions)}
}

// load fills the table by several sessions; each takes the next chunk.
func (o *ontime) load(ctx context.Context, po workload.PrepareOptions, stop *drive.Stop) error {
	g := newGenerator(o.rows, o.p.Seed)
	threads := max(po.Threads, 1)
	// Sessions block their threads without telling the runtime.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads + 2))
	var next, done atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range threads {
		group.Go(func() error {
			s, err := po.Target.Open(ctx, stop)
			if err != nil {
				return err
			}
			defer s.Close()
			var buf []byte
			for n := next.Add(1) - 1; n < g.chunks(); n = next.Add(1) - 1 {
				if err := ctx.Err(); err != nil {
					return err
				}
				rows, err := loadChunk(s, g, n, &buf)
				if err != nil {
					return fmt.Errorf("load the table %s: %w", table, err)
				}
				if now := done.Add(rows); po.Progress != nil {
					po.Progress(now, o.rows)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// loadChunk writes one chunk in one transaction.
func loadChunk(s drive.Session, g *generator, n int64, buf *[]byte) (rows int64, err error) {
	if _, err := s.Exec(drive.Other, "START TRANSACTION"); err != nil {
		return 0, err
	}
	const head = "INSERT INTO " + table + " VALUES "
	b := append((*buf)[:0], head...)
	flush := func() {
		if len(b) == len(head) || err != nil {
			return
		}
		_, err = s.Exec(drive.Write, string(b[:len(b)-1]))
		b = b[:len(head)]
	}
	g.each(n, func(x *flight) {
		b = append(x.appendRow(b), ',')
		if rows++; rows%batch == 0 {
			flush()
		}
	})
	flush()
	*buf = b
	if err != nil {
		return 0, err
	}
	_, err = s.Exec(drive.Other, "COMMIT")
	return rows, err
}

// Cleanup drops the table where prepare made it.
func (o *ontime) Cleanup(ctx context.Context, po workload.PrepareOptions) error {
	dropped, err := o.drop(ctx, po.Target)
	if dropped && po.Progress != nil {
		po.Progress(1, 1)
	}
	return err
}

func (o *ontime) drop(ctx context.Context, t drive.Target) (dropped bool, err error) {
	var stop drive.Stop
	defer context.AfterFunc(ctx, stop.Set)()
	s, err := t.Open(ctx, &stop)
	if err != nil {
		return false, err
	}
	defer s.Close()
	s.SetPatience(patience)
	switch mark, exists, err := comment(s); {
	case err != nil:
		return false, err
	case !exists:
		return false, nil
	case mark != workload.Mark:
		return false, fmt.Errorf("the table %s was not made by risso bench prepare (its comment is not %q): it is left alone", table, workload.Mark)
	}
	if _, err := s.Exec(drive.Other, "DROP TABLE "+table); err != nil {
		return false, fmt.Errorf("drop the table %s: %w", table, err)
	}
	return true, nil
}

// comment reads the comment of the table and says whether the table exists.
func comment(s drive.Session) (text string, exists bool, err error) {
	sql := "SELECT table_comment FROM information_schema.tables WHERE table_schema = database() AND table_name = '" + table + "'"
	if s.Dialect() == drive.Postgres {
		sql = "SELECT coalesce(obj_description(to_regclass('" + table + "'), 'pg_class'), '') WHERE to_regclass('" + table + "') IS NOT NULL"
	}
	r, err := drive.Ask(s, sql)
	if err != nil || r.Rows == 0 {
		return "", false, err
	}
	return string(r.Values[0].Text), true, nil
}
