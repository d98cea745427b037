package schemas

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/measure/workload/crew"
)

// undoLimit is how long what was begun may take to be taken away.
const undoLimit = 10 * time.Minute

// The steps that are timed.
const (
	makeTable  = "make a table"
	fillTable  = "fill a table"
	makeSchema = "make a schema"
	dropSchema = "drop a schema"
)

func schemaName(n int) string { return workload.TenantPrefix + strconv.Itoa(n) }

// timed runs f and notes how long it took.
func (w *schemas) timed(step string, f func() error) error {
	began := time.Now()
	err := f()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timings[step] = append(w.timings[step], time.Since(began).Seconds())
	return err
}

// Timings reports how long the steps of the last Prepare or Cleanup took.
func (w *schemas) Timings() []workload.Timing {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []workload.Timing
	for _, step := range []string{makeTable, fillTable, makeSchema, dropSchema} {
		v := slices.Sorted(slices.Values(w.timings[step]))
		if len(v) == 0 {
			continue
		}
		sum := 0.0
		for _, s := range v {
			sum += s
		}
		at := func(share float64) float64 { return v[int(math.Ceil(share*float64(len(v))))-1] }
		out = append(out, workload.Timing{Step: step, Count: len(v), Mean: sum / float64(len(v)), Median: at(0.5), P95: at(0.95), Max: v[len(v)-1]})
	}
	return out
}

// there lists the schemas of tenants on the server.
func there(s drive.Session) ([]string, error) {
	// Not by LIKE: whether \ may precede what is no wildcard depends on the sql_mode.
	sql := "SELECT /* risso: which tenants are here? */ schema_name FROM information_schema.schemata WHERE LEFT(schema_name, 13) = '" + workload.TenantPrefix + "'"
	if s.Dialect() == drive.Postgres {
		sql = "SELECT /* risso: which tenants are here? */ nspname::text FROM pg_namespace WHERE left(nspname::text, 13) = '" + workload.TenantPrefix + "'"
	}
	rows, err := workload.Ask(s, sql)
	if err != nil {
		return nil, fmt.Errorf("list the schemas: %w", err)
	}
	var names []string
	for _, r := range rows {
		names = append(names, string(r[0].Text))
	}
	return names, nil
}

// Prepare makes the schemas, each by one session. It refuses where one of them exists. After an error it removes what
// it made.
func (w *schemas) Prepare(ctx context.Context, o workload.PrepareOptions) error {
	c, err := crew.Hire(ctx, o.Target, o.Threads)
	if err != nil {
		return err
	}
	defer c.Close()
	have, err := there(c.Session())
	if err != nil {
		return err
	}
	for n := 1; n <= w.p.Schemas; n++ {
		if slices.Contains(have, schemaName(n)) {
			return fmt.Errorf("the schema %s already exists: nothing was created; risso bench cleanup schemas drops those that risso created", schemaName(n))
		}
	}
	w.timings = map[string][]float64{}
	var mu sync.Mutex
	var made []string
	var done atomic.Int64
	total := int64(w.p.Schemas * w.p.SchemaTables * w.p.SchemaRows)
	err = c.Work(ctx, w.p.Schemas, func(s drive.Session, job int) error {
		name := schemaName(job + 1)
		return w.timed(makeSchema, func() error {
			_, err := s.Exec(drive.Other, "CREATE SCHEMA "+name)
			var server *drive.ServerError
			if err == nil || !errors.As(err, &server) {
				mu.Lock()
				made = append(made, name) // also if it is unknown whether it was made
				mu.Unlock()
			}
			for t := 1; t <= w.p.SchemaTables && err == nil; t++ {
				if err = w.table(s, name+".t"+strconv.Itoa(t), uint64(job)); err == nil && o.Progress != nil {
					o.Progress(done.Add(int64(w.p.SchemaRows)), total)
				}
			}
			if err != nil {
				return fmt.Errorf("make the schema %s: %w", name, err)
			}
			return nil
		})
	})
	if err == nil || len(made) == 0 {
		return err
	}
	slices.Sort(made)
	undo := c.Undo(ctx, undoLimit, func(s drive.Session) error {
		for len(made) > 0 {
			if _, err := s.Exec(drive.Other, drop(s.Dialect(), made[0])); err != nil {
				return err
			}
			made = made[1:]
		}
		return nil
	})
	if undo != nil {
		return fmt.Errorf("%w; %s left behind, from %s on, because of %q: risso bench cleanup schemas drops what is left", err, digits.Plural(len(made), "schema is", "schemas are"), made[0], undo.Error())
	}
	return fmt.Errorf("%w; what was created has been removed", err)
}

func drop(d drive.Dialect, schema string) string {
	if d == drive.Postgres {
		return "DROP SCHEMA IF EXISTS " + schema + " CASCADE"
	}
	return "DROP SCHEMA IF EXISTS " + schema
}

// table makes and fills one table.
func (w *schemas) table(s drive.Session, name string, schema uint64) error {
	sql := "CREATE TABLE " + name + " (id INTEGER NOT NULL PRIMARY KEY, k INTEGER NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL"
	_, short, _ := strings.Cut(name, ".")
	if s.Dialect() == drive.Postgres {
		sql += ") " + w.p.TableOptions + "; COMMENT ON TABLE " + name + " IS '" + workload.Mark + "'; CREATE INDEX k_" + short + " ON " + name + " (k)"
	} else {
		engine := w.p.Engine
		if engine == "" {
			engine = "innodb"
		}
		sql += ", KEY k (k)) ENGINE=" + engine + " " + w.p.TableOptions + " COMMENT='" + workload.Mark + "'"
	}
	run := func(kind drive.Kind, sql string) func() error {
		return func() error {
			_, err := s.Exec(kind, sql)
			return err
		}
	}
	if err := w.timed(makeTable, run(drive.Other, sql)); err != nil {
		return fmt.Errorf("make the table %s: %w", name, err)
	}
	rng := rand.New(rand.NewPCG(w.p.Seed, schema))
	var b strings.Builder
	b.WriteString("INSERT INTO " + name + " (id, k, c, pad) VALUES ")
	for id := 1; id <= w.p.SchemaRows; id++ {
		if id > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "(%d, %d, '%0119d', '%059d')", id, 1+rng.IntN(w.p.SchemaRows), rng.Uint64(), rng.Uint64())
	}
	if err := w.timed(fillTable, run(drive.Write, b.String())); err != nil {
		return fmt.Errorf("fill the table %s: %w", name, err)
	}
	return nil
}

// Cleanup drops all schemas of tenants in which every table carries the mark. It keeps the others, and names the first.
func (w *schemas) Cleanup(ctx context.Context, o workload.PrepareOptions) error {
	c, err := crew.Hire(ctx, o.Target, o.Threads)
	if err != nil {
		return err
	}
	defer c.Close()
	names, err := there(c.Session())
	if err != nil {
		return err
	}
	w.timings = map[string][]float64{}
	var mu sync.Mutex
	var kept []string
	var dropped atomic.Int64
	err = c.Work(ctx, len(names), func(s drive.Session, job int) error {
		tables, strange, err := content(s, names[job])
		if err != nil {
			return err
		}
		if strange > 0 {
			mu.Lock()
			kept = append(kept, names[job])
			mu.Unlock()
			return nil
		}
		err = w.timed(dropSchema, func() error {
			_, err := s.Exec(drive.Other, drop(s.Dialect(), names[job]))
			return err
		})
		if err != nil {
			return fmt.Errorf("drop the schema %s: %w", names[job], err)
		}
		if n := dropped.Add(tables); o.Progress != nil {
			o.Progress(n, int64(len(names)*w.p.SchemaTables))
		}
		return nil
	})
	if err == nil && len(kept) > 0 {
		slices.Sort(kept)
		return fmt.Errorf("%s contains objects that risso did not create, and is kept (%s)", kept[0], digits.Counted(len(kept), "such schema"))
	}
	return err
}

// content counts the tables of a schema, and what in it does not carry the mark.
func content(s drive.Session, schema string) (tables, strange int64, err error) {
	sql := "SELECT /* risso: whose are the tables? */ table_comment, COUNT(*) FROM information_schema.tables WHERE table_schema = ? GROUP BY 1 UNION ALL SELECT 'a routine', COUNT(*) FROM information_schema.routines WHERE routine_schema = ?"
	if s.Dialect() == drive.Postgres {
		sql = `SELECT /* risso: whose are the tables? */ COALESCE(obj_description(c.oid, 'pg_class'), ''), COUNT(*) FROM pg_class c WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND c.relkind NOT IN ('i','I','t') GROUP BY 1
 UNION ALL SELECT 'a routine', COUNT(*) FROM information_schema.routines WHERE routine_schema = $2`
	}
	rows, err := workload.Ask(s, sql, drive.Text([]byte(schema)), drive.Text([]byte(schema)))
	if err != nil {
		return 0, 0, fmt.Errorf("look into the schema %s: %w", schema, err)
	}
	for _, r := range rows {
		if string(r[0].Text) == workload.Mark {
			tables += r[1].Int
		} else {
			strange += r[1].Int
		}
	}
	return tables, strange, nil
}
