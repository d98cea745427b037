package ask

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sandbox/sample"
)

// clone is an empty copy of a table with what decides on its alteration.
type clone struct {
	b     *Box
	f     *alter.Facts
	st    alter.Statement
	notes []string
	empty time.Duration // that the change took on the empty clone
}

// locks are the words for LOCK=, the weakest first.
var locks = []string{"NONE", "SHARED", "EXCLUSIVE"}

// Ask lets an empty clone of the table be altered on the box, in each way that the server has, until it takes one.
func (b *Box) Ask(ctx context.Context, f *alter.Facts, st alter.Statement) (alter.Answer, time.Duration, error) {
	k := &clone{b: b, f: f, st: st}
	a := alter.Answer{Tried: true, On: b.On, Exact: b.Exact, Notes: b.notes(f)}
	if err := k.reset(ctx); err != nil {
		return a, 0, err
	}
	a.Notes = append(a.Notes, k.notes...)
	if done, err := k.try(ctx, &a); done || err != nil {
		return a, k.empty, err
	}
	return a, k.empty, k.plainly(ctx, &a)
}

// try tries the ways; done says that the server took one, or refuses the statement.
func (k *clone) try(ctx context.Context, a *alter.Answer) (done bool, err error) {
	ignored := false
	for _, way := range k.ways() {
		if ignored && way.Algorithm != "COPY" {
			continue
		}
		effect, after, err := k.alter(ctx, way.Algorithm, way.Lock)
		if err == nil && contradicts(way.Algorithm, effect) {
			way.Refused = "it took the word, and wrote the table anew"
			a.Attempts, ignored = append(a.Attempts, way), true
			if err := k.reset(ctx); err != nil {
				return false, err
			}
			continue
		}
		if err == nil {
			a.Attempts = append(a.Attempts, way)
			a.Algorithm, a.Lock, a.Effect, a.After = way.Algorithm, way.Lock, effect, after
			return true, nil
		}
		if way.Number = mysql.ErrorNumber(err); way.Number == 0 {
			return false, err
		}
		way.Refused = errno.WithoutValues(err.Error())
		if a.Attempts = append(a.Attempts, way); len(a.Attempts) == 1 && !aboutWay(way.Number) {
			if err := k.plainly(ctx, a); err != nil || a.Error != nil {
				return true, err
			}
			a.Unnamed, a.Effect = false, alter.Effect{}
			if err := k.reset(ctx); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// aboutWay reports whether an error is about ALGORITHM and LOCK, and not about the change itself.
func aboutWay(number int) bool {
	return slices.Contains([]int{errno.AlterWayRefused, errno.AlterWayRefusedWhy, errno.ParseError, errno.WrongUsage}, number)
}

// plainly lets the server do it as the statement says.
func (k *clone) plainly(ctx context.Context, a *alter.Answer) error {
	effect, after, err := k.alter(ctx, k.st.Algorithm, k.st.Lock)
	switch {
	case mysql.ErrorNumber(err) != 0:
		a.Error = err
		return nil
	case err != nil:
		return err
	}
	a.Unnamed, a.Effect, a.After = true, effect, after
	return nil
}

// contradicts reports whether the server did what it may not do by that algorithm: MariaDB takes the word INSTANT with ORDER BY, PARTITION BY and
// another ENGINE, and copies all the same (seen on 10.11).
func contradicts(algorithm string, e alter.Effect) bool {
	switch algorithm {
	case "INSTANT":
		return e.Rebuilt || len(e.Built) > 0
	case "NOCOPY":
		return e.Rebuilt
	}
	return false
}

// ways are what is to be tried, the cheapest first; what the statement demands limits it.
func (k *clone) ways() (list []alter.Attempt) {
	for _, algorithm := range k.b.c.Server.AlterAlgorithms() {
		if demanded(k.st.Algorithm) && algorithm != k.st.Algorithm {
			continue
		}
		if !k.b.c.Server.AlterTakesLock(algorithm) {
			list = append(list, alter.Attempt{Algorithm: algorithm})
			continue
		}
		for _, lock := range locks {
			if !demanded(k.st.Lock) || lock == k.st.Lock {
				list = append(list, alter.Attempt{Algorithm: algorithm, Lock: lock})
			}
		}
	}
	return list
}

func demanded(word string) bool { return word != "" && word != "DEFAULT" }

// reset makes the clone anew: the schemas, the table, its neighbours, its triggers.
func (k *clone) reset(ctx context.Context) error {
	k.notes = nil
	run := func(statement string) error { return k.b.c.Exec(ctx, statement) }
	free := "SET SESSION /* risso: a clone */ sql_mode = 'NO_AUTO_VALUE_ON_ZERO', foreign_key_checks = 0, unique_checks = 0, innodb_strict_mode = 0, sql_log_bin = 0"
	if err := run(free); err != nil {
		return fmt.Errorf("prepare a clone: %w", err)
	}
	_, known := k.f.Session["sql_require_primary_key"]
	if known {
		if err := run("SET SESSION /* risso: a clone */ sql_require_primary_key = 0, sql_generate_invisible_primary_key = 0"); err != nil && mysql.ClassOf(err) != mysql.ClassMissing {
			return fmt.Errorf("prepare a clone: %w", err)
		}
	}
	schemas := map[string]string{k.st.Table.Schema: k.f.Schema}
	for _, n := range k.f.Neighbours {
		if n.Create != "" {
			schemas[n.Name.Schema] = n.Schema
		}
	}
	if k.st.RenamedTo != nil && schemas[k.st.RenamedTo.Schema] == "" {
		schemas[k.st.RenamedTo.Schema] = "CREATE DATABASE " + mysql.Quote(k.st.RenamedTo.Schema)
	}
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		if err := run("DROP DATABASE IF EXISTS " + mysql.Quote(name)); err != nil {
			return fmt.Errorf("remove a clone: %w", err)
		}
		if err := run(schemas[name]); err != nil {
			return fmt.Errorf("make the schema of a clone: %w", err)
		}
	}
	return k.fill(ctx, run)
}

// fill makes the tables.
func (k *clone) fill(ctx context.Context, run func(string) error) error {
	format := strings.ToLower(k.f.RowFormat)
	if format == "compact" || format == "redundant" || format == "dynamic" {
		if err := run("SET GLOBAL /* risso: as the table has it */ innodb_default_row_format = " + format); err != nil && mysql.ClassOf(err) != mysql.ClassMissing {
			return fmt.Errorf("prepare a clone: %w", err)
		}
	}
	for _, n := range k.f.Neighbours {
		if n.Create == "" {
			continue
		}
		if err := k.create(run, n.Name.Schema, n.Create); err != nil {
			k.notes = append(k.notes, fmt.Sprintf("the clone is without %s: %v", n.Name, err))
		}
	}
	if err := k.create(run, k.st.Table.Schema, k.f.Table.Create); err != nil {
		return fmt.Errorf("make a clone of %s: %w", k.st.Table, err)
	}
	for _, t := range k.f.Triggers {
		err := run("USE " + mysql.Quote(t.Schema))
		if err == nil {
			if err = run("SET SESSION /* risso: a trigger's own */ sql_mode = " + mysql.Literal(t.SQLMode)); err == nil {
				err = run(t.Create)
			}
		}
		if err != nil {
			k.notes = append(k.notes, fmt.Sprintf("the clone is without the trigger %s: %v", mysql.Quote(t.Name), err))
		}
	}
	return k.asServer(ctx, run)
}

// create makes a table without the folders that it names for itself.
func (k *clone) create(run func(string) error, schema, create string) error {
	if err := run("USE " + mysql.Quote(schema)); err != nil {
		return err
	}
	return run(sample.Here(k.b.c.Server.DialectOf(""), create))
}

// asServer gives the session what sessions of the server have.
func (k *clone) asServer(ctx context.Context, run func(string) error) error {
	for _, name := range slices.Sorted(maps.Keys(k.f.Session)) {
		err := run("SET SESSION /* risso: as on the server */ " + name + " = " + value(k.f.Session[name]))
		if err != nil && mysql.ClassOf(err) != mysql.ClassMissing && mysql.ErrorNumber(err) == 0 {
			return err
		} else if err != nil && mysql.ClassOf(err) != mysql.ClassMissing {
			k.notes = append(k.notes, fmt.Sprintf("the sandbox does not take %s = %s: %v", name, k.f.Session[name], err))
		}
	}
	_, global := k.b.c.Server.AlterVariables()
	for _, name := range global {
		v, ok := k.f.Variables[name]
		if !ok {
			continue
		}
		if err := run("SET GLOBAL /* risso: as on the server */ " + name + " = " + value(v)); err != nil && mysql.ErrorNumber(err) == 0 {
			return err
		}
	}
	return run("USE " + mysql.Quote(k.st.Table.Schema))
}

// value is a variable's value as SET takes it.
func value(v string) string {
	if v != "" && strings.Trim(v, "0123456789") == "" {
		return v
	}
	return mysql.Literal(v)
}

// files are the tables and indexes that InnoDB has of the clone.
type files struct {
	tables  map[string]string // their IDs by name
	indexes map[string]string // their names by ID
}

func (k *clone) files(ctx context.Context) (f files, err error) {
	f = files{map[string]string{}, map[string]string{}}
	// The words of a full-text index are in tables of their own, FTS_…: they come with it.
	mine := func(name string) bool {
		schema, table, _ := strings.Cut(name, "/")
		return table != "" && schema != "mysql" && schema != "sys" && !strings.HasPrefix(strings.ToUpper(table), "FTS_")
	}
	err = k.b.c.Query(ctx, k.b.c.Server.InnoDBTableIDs(), func(row []sqldriver.Value) error {
		if name := mysql.Text(row[0]); mine(name) {
			f.tables[name] = mysql.Text(row[1])
		}
		return nil
	})
	if err != nil {
		return f, err
	}
	err = k.b.c.Query(ctx, k.b.c.Server.InnoDBIndexIDs(), func(row []sqldriver.Value) error {
		if mine(mysql.Text(row[0])) {
			f.indexes[mysql.Text(row[1])] = mysql.Text(row[2])
		}
		return nil
	})
	return f, err
}

// effect compares what was there with what is.
func (before files) effect(after files) (e alter.Effect) {
	ids := map[string]bool{}
	for _, id := range after.tables {
		ids[id] = true
	}
	old := map[string]bool{}
	gone, fresh := false, false
	for _, id := range before.tables {
		old[id] = true
		gone = gone || !ids[id]
	}
	for id := range ids {
		fresh = fresh || !old[id]
	}
	if e.Rebuilt = gone && fresh; e.Rebuilt {
		return e
	}
	for id, name := range after.indexes {
		if _, ok := before.indexes[id]; !ok && !fresh {
			e.Built = append(e.Built, name)
		}
	}
	slices.Sort(e.Built)
	return e
}

// definition is what a table became, in full and without ANSI_QUOTES, whatever the sql_mode of the server is: reset gives the session that back.
func (k *clone) definition(ctx context.Context, name mysql.TableName) (create string, err error) {
	if err := k.b.c.Exec(ctx, "SET SESSION /* risso: definitions in full */ sql_quote_show_create = 1, sql_mode = ''"); err != nil {
		return "", fmt.Errorf("prepare to read a definition: %w", err)
	}
	err = k.b.c.Query(ctx, "SHOW /* risso: what became of the clone */ CREATE TABLE "+name.String(), func(row []sqldriver.Value) error {
		create = mysql.Text(row[1])
		return nil
	})
	return create, err
}

// alter runs the statement on the clone, and says what it did.
func (k *clone) alter(ctx context.Context, algorithm, lock string) (e alter.Effect, after string, err error) {
	before, err := k.files(ctx)
	if err != nil {
		return e, "", err
	}
	began := time.Now()
	if err := k.b.c.Exec(ctx, k.st.With("tried on an empty clone", algorithm, lock)); err != nil {
		return e, "", err
	}
	k.empty = time.Since(began)
	now, err := k.files(ctx)
	if err != nil {
		return e, "", err
	}
	name := k.st.Table
	if k.st.RenamedTo != nil {
		name = *k.st.RenamedTo
	}
	after, err = k.definition(ctx, name)
	e = before.effect(now)
	if t, perr := define.ParseTable(name.Schema, after); perr == nil && !strings.EqualFold(t.Engine, k.f.Table.Engine) {
		e = alter.Effect{Rebuilt: true} // it is gone from InnoDB, or new there
	}
	return e, after, err
}
