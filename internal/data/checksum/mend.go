package checksum

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
)

// MendOptions are what is repaired and how.
type MendOptions struct {
	Primary  mysql.Target
	Replicas []mysql.Target // that were compared
	Tables   []Table        // what Compare found, with the rows that it listed
	// Triggers and ForeignKeys allow tables that have triggers, or rows of others that follow theirs by foreign keys.
	Triggers, ForeignKeys bool
	Journal               string // folder for the journal of what is written and of what was there
}

// Plan is what Mend will do.
type Plan struct {
	Steps   []Step
	Refused []fleet.Trouble // tables and servers that are left as they are
	Notes   []string
}

// Step writes one row of the primary once more, as it is there, or deletes it if it is not there, so that this replicates.
type Step struct {
	Schema string   `json:"schema"`
	Table  string   `json:"table"`
	Key    []Value  `json:"key"`
	Kind   Kind     `json:"kind"`
	On     []string `json:"on"`    // the replicas on which the row differs
	Was    []Row    `json:"found"` // what was found there

	key  [][]byte
	plan *plan
}

// ErrNotAsPlanned says that mending was given up.
var ErrNotAsPlanned = errors.New("the repair was given up")

// PlanMend checks what can be repaired safely.
func PlanMend(ctx context.Context, o MendOptions) (p Plan, err error) {
	c, err := mysql.Connect(ctx, o.Primary, nil)
	if err != nil {
		return p, err
	}
	defer c.Close()
	id, err := read.ServerID(ctx, c)
	if err != nil {
		return p, err
	}
	if why, err := unfit(ctx, c); err != nil || why != "" {
		if why != "" {
			p.Refused = append(p.Refused, fleet.Trouble{What: o.Primary.String(), Why: why})
		}
		return p, err
	}
	bad := map[string]bool{}
	for _, t := range o.Replicas {
		r, err := fitness(ctx, c, id, t)
		if err != nil {
			return p, err
		}
		if r.Why != "" {
			bad[t.String()] = true
			p.Refused = append(p.Refused, r)
		}
	}
	primary, err := meet(ctx, o.Primary, false)
	if err != nil {
		return p, err
	}
	l := &link{side: primary, silence: defaultSilence, back: defaultReturn}
	defer l.close()
	for _, t := range o.Tables {
		if err := p.table(ctx, o, l, c, t, bad); err != nil {
			return p, err
		}
	}
	return p, nil
}

// unfit says why nothing can be repaired through a primary.
func unfit(ctx context.Context, c *mysql.Conn) (why string, err error) {
	v, err := c.Maps(ctx, "SHOW /* risso: can it be mended? */ GLOBAL VARIABLES WHERE Variable_name IN ('log_bin', 'wsrep_on', 'read_only')")
	if err != nil {
		return "", err
	}
	on := map[string]bool{}
	for _, row := range v {
		on[row["Variable_name"]] = row["Value"] == "ON"
	}
	switch {
	case !on["log_bin"]:
		return "it writes no binary log: nothing replicates", nil
	case on["wsrep_on"]:
		return "it is a member of a Galera cluster, which replicates only rows, not statements", nil
	case on["read_only"]:
		return "it is read-only: is it the primary?", nil
	}
	filter, err := c.LogFilter(ctx)
	if set := filter.Settings(); set != "" {
		return "it leaves schemas out of its binary log: " + set, nil
	}
	return "", err
}

// fitness says why a replica must not be repaired; Why is "" if it may.
func fitness(ctx context.Context, primary *mysql.Conn, id string, t mysql.Target) (r fleet.Trouble, err error) {
	r.What = t.String()
	c, err := mysql.Connect(ctx, t, nil)
	if err != nil {
		return r, err
	}
	defer c.Close()
	channels, err := read.ReplicaChannels(ctx, c)
	if err != nil {
		return r, err
	}
	direct := false
	for _, ch := range channels {
		if ch.SourceID != id {
			continue
		}
		direct = true
		switch {
		case !ch.SQLRunning || !ch.IORunning:
			r.Why, r.Remedy = "replication does not run", "start it first"
			return r, nil
		case len(ch.Filter.Rewrite) > 0:
			r.Why = "it renames schemas: " + ch.Filter.String()
			return r, nil
		}
	}
	if !direct {
		r.Why, r.Remedy = "it does not replicate from the primary itself", "repair the intermediate replica first"
		return r, nil
	}
	own, _, err := read.OwnWrites(ctx, c, primary)
	if err != nil {
		return r, err
	}
	if own != "" {
		r.Why, r.Remedy = "it has local writes: "+own, "find out who writes there; a person must decide which data is right"
		return r, nil
	}
	list, err := read.ReplicaAddresses(ctx, c)
	if mysql.ClassOf(err) == mysql.ClassPrivilege {
		err = nil
	}
	if err == nil && len(list) > 0 {
		r.Why = "it has replicas (" + strings.Join(list, ", ") + "): repairs reach them as row events, which stop if a row is not as it was"
		r.Remedy = "rebuild its replicas afterwards, or stop them in the meantime"
	}
	return r, err
}

// table plans one table.
func (p *Plan) table(ctx context.Context, o MendOptions, l *link, c *mysql.Conn, t Table, bad map[string]bool) error {
	what := t.Schema + "." + t.Name
	refuse := func(why, remedy string) {
		p.Refused = append(p.Refused, fleet.Trouble{What: what, Why: why, Remedy: remedy})
	}
	steps := map[string]*Step{}
	var order []string
	for _, on := range t.On {
		switch {
		case bad[on.Server] || on.Verdict != Differs && !on.Verdict.Bad():
			continue
		case on.Verdict != Differs:
			refuse(string(on.Verdict)+" on "+on.Server, "definitions are not repaired")
			continue
		}
		if len(t.Key) > 0 && (on.AtLeast || int64(len(on.Rows)) < on.differing()) {
			p.Notes = append(p.Notes, fmt.Sprintf("%s: only %d of its rows are repaired now: run it again for the others", what, len(on.Rows)))
		}
		for _, row := range on.Rows {
			if row.key == nil {
				continue
			}
			k := joined(row.key)
			if steps[k] == nil {
				steps[k] = &Step{Schema: t.Schema, Table: t.Name, Key: row.Key, Kind: row.Kind, key: row.key}
				order = append(order, k)
			}
			steps[k].On = append(steps[k].On, on.Server)
			steps[k].Was = append(steps[k].Was, row)
		}
	}
	if len(order) == 0 {
		if t.Verdict() == Differs && len(t.Key) == 0 {
			refuse(noExactKey+": a single row cannot be rewritten", "")
		}
		return nil
	}
	pl, why, remedy, err := mendable(ctx, o, l, c, t)
	if err != nil {
		return err
	}
	if why != "" {
		refuse(why, remedy)
		return nil
	}
	for _, k := range order {
		steps[k].plan = pl
		p.Steps = append(p.Steps, *steps[k])
	}
	return nil
}

// noExactKey is why rows of a table cannot be named one by one: chunk.KeyOf found no key, or one whose values have no exact literal.
const noExactKey = "no primary key, and no unique key without NULL, names its rows exactly: by whole columns in ascending order, of numbers other than FLOAT and DOUBLE, times, bytes, or text other than ENUM and SET"

// mendable says why a table must not be repaired.
func mendable(ctx context.Context, o MendOptions, l *link, c *mysql.Conn, t Table) (pl *plan, why, remedy string, err error) {
	def, err := l.define(ctx, t.Schema, t.Name)
	if err != nil {
		return nil, "", "", err
	}
	key, ok := chunk.KeyOf(def)
	switch {
	case !ok || !key.Whole():
		return nil, noExactKey, "", nil
	case !transactional(def.Engine):
		return nil, def.Engine + " has no transactions: a row could change while it is repaired", "", nil
	case def.Versioned:
		return nil, "it keeps old rows (SYSTEM VERSIONING): a repair would add to them", "", nil
	}
	for _, on := range t.On {
		if on.Verdict == Differs && len(on.Notes) > 0 {
			return nil, "its definition is not the same on " + on.Server + ": " + on.Notes[0], "make the definitions equal first", nil
		}
	}
	if !o.Triggers {
		rows, err := c.Maps(ctx, "SELECT /* risso: can it be mended? */ TRIGGER_NAME AS n FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = "+
			quoteText(t.Schema)+" AND EVENT_OBJECT_TABLE = "+quoteText(t.Name))
		if err != nil {
			return nil, "", "", err
		}
		if len(rows) > 0 {
			return nil, "trigger " + rows[0]["n"] + " would fire", "allow it with --with-triggers", nil
		}
	}
	if !o.ForeignKeys {
		rows, err := c.Maps(ctx, "SELECT /* risso: can it be mended? */ TABLE_NAME AS t, CONSTRAINT_NAME AS n FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE UNIQUE_CONSTRAINT_SCHEMA = "+
			quoteText(t.Schema)+" AND REFERENCED_TABLE_NAME = "+quoteText(t.Name)+" AND (DELETE_RULE IN ('CASCADE', 'SET NULL') OR UPDATE_RULE IN ('CASCADE', 'SET NULL'))")
		if err != nil {
			return nil, "", "", err
		}
		if len(rows) > 0 {
			return nil, fmt.Sprintf("rows of %s refer to its rows (foreign key %s)", rows[0]["t"], rows[0]["n"]),
				"allow it with --with-foreign-keys: foreign key checks are then off, and nothing cascades", nil
		}
	}
	return &plan{job: job{schema: t.Schema, name: t.Name}, here: def, key: key, uniq: true}, "", "", nil
}

// Mend does what a plan says, row by row, each in its own transaction, and calls each before every step. What was done
// is in the journal, whose path it returns.
func Mend(ctx context.Context, o MendOptions, p Plan, each func(done int)) (journal string, err error) {
	if len(p.Steps) == 0 {
		return "", nil
	}
	d, err := change.NewDiary(o.Journal, "mend")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	s, err := o.Primary.ConnectStream(ctx, mysql.StreamOptions{Patience: defaultSilence})
	if err != nil {
		return d.Path(), err
	}
	defer s.Close()
	c, err := mysql.Connect(ctx, o.Primary, nil)
	if err != nil {
		return d.Path(), err
	}
	server := c.Server
	c.Close()
	if err := s.ForStatements(ctx, server); err != nil {
		return d.Path(), err
	}
	steps := make(change.Plan, len(p.Steps))
	for i := range steps {
		st := &p.Steps[i]
		steps[i] = change.Step{What: "mend", Where: st.Schema + "." + st.Table, Do: func(ctx context.Context) error { return st.run(ctx, s, d) }}
	}
	done, err := change.Execute(ctx, steps, change.Log{Before: func(i int, _ change.Step) error {
		if each != nil {
			each(i)
		}
		return nil
	}})
	if err != nil {
		err = fmt.Errorf("%w after %d of %s: %w", ErrNotAsPlanned, done, digits.Counted(len(steps), "row"), err)
	}
	return d.Path(), err
}

// mendTries is how often a row is tried that others hold locked.
const mendTries = 3

// run repairs one row.
func (st *Step) run(ctx context.Context, s *mysql.Stream, d *change.Diary) error {
	var err error
	for range mendTries {
		if err = st.once(ctx, s, d); err == nil {
			return nil
		}
		if s.Broken() != nil {
			return err
		}
		if e := s.Exec(ctx, "ROLLBACK /* risso: mend */"); e != nil {
			return errors.Join(err, e)
		}
		if n := mysql.ErrorNumber(err); n != errno.Deadlock && n != errno.LockWaitTimeout {
			return err
		}
	}
	return err
}

// once locks the row, or the place where it is not, and writes what is there.
func (st *Step) once(ctx context.Context, s *mysql.Stream, d *change.Diary) error {
	where, err := st.plan.whereKey(st.key)
	if err != nil {
		return err
	}
	name := mysql.Quote(st.Schema) + "." + mysql.Quote(st.Table)
	// Filters look at the default schema of a statement.
	for _, q := range []string{"USE " + mysql.Quote(st.Schema), "START TRANSACTION /* risso: mend */"} {
		if err := s.Exec(ctx, q); err != nil {
			return err
		}
	}
	columns := chunk.Columns(st.plan.here)
	sel := strings.TrimSuffix(chunk.Select(st.plan.here, st.plan.key, chunk.Range{}, "mend"), " ORDER BY "+st.plan.key.OrderBy())
	statement := "DELETE /* risso: mend */ FROM " + name + " WHERE " + where
	found := 0
	err = s.Query(ctx, sel+" WHERE "+where+" FOR UPDATE", func(row [][]byte) error {
		found++
		names, values := make([]string, len(columns)), make([]string, len(columns))
		for i, c := range columns {
			names[i], values[i] = mysql.Quote(c.Name), valueLiteral(c, row[i])
		}
		statement = "REPLACE /* risso: mend */ INTO " + name + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(values, ", ") + ")"
		return nil
	})
	if err != nil {
		return err
	}
	if found > 1 {
		return fmt.Errorf("%d rows of %s have one key", found, name)
	}
	if err := st.note(d, found == 1); err != nil {
		return err
	}
	if err := s.Exec(ctx, statement); err != nil {
		return err
	}
	return s.Exec(ctx, "COMMIT /* risso: mend */")
}

// valueLiteral is a value as SQL takes it.
func valueLiteral(c define.TableColumn, v []byte) string {
	if v == nil {
		return "NULL"
	}
	hexed := func(prefix string) string {
		if len(v) == 0 {
			return prefix + "''"
		}
		return fmt.Sprintf("%s0x%x", prefix, v)
	}
	switch c.Type {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "year":
		return string(v)
	case "date", "datetime", "timestamp", "time", "uuid", "inet6", "inet4":
		return "'" + string(v) + "'"
	case "bit":
		return "CAST(" + hexed("") + " AS UNSIGNED)"
	case "json":
		return "CONVERT(" + hexed("_utf8mb4 ") + " USING utf8mb4)"
	}
	if c.Charset != "" {
		return hexed("_" + c.Charset + " ")
	}
	return hexed("_binary ")
}

// note writes down what is about to be done, and what was there.
func (st *Step) note(d *change.Diary, replaced bool) error {
	action := "delete"
	if replaced {
		action = "replace"
	}
	return d.Note(struct {
		Time   time.Time `json:"time"`
		Action string    `json:"action"`
		*Step
	}{time.Now().UTC(), action, st})
}
