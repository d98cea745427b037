package load

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sqltext"
)

// laterBytes is the size from which on a table's keys are made after its rows.
const laterBytes = 4 << 20

// Small tables are made together, as many as fewAtOnce in one task: the journal is written once for all of them, and a server
// that waits for its disk at each commit waits less often.
const (
	smallBytes = 64 << 10
	fewAtOnce  = 64
)

// loadTables makes all tables, loads their rows and compares them.
func (r *run) loadTables(ctx context.Context) error {
	slices.SortStableFunc(r.tables, func(a, b ref) int { return cmp.Compare(b.bytes, a.bytes) })
	next := 0
	p := &pool{}
	p.source = func() (task, error) {
		if next == len(r.tables) {
			return nil, nil
		}
		n := 1
		if at := r.tables[next]; at.bytes <= 0 {
			n = min(fewAtOnce, len(r.tables)-next)
		} else if at.bytes <= smallBytes {
			n = max(1, min(fewAtOnce, (len(r.tables)-next)/(2*r.threads)))
		}
		list := r.tables[next : next+n]
		next += n
		return func(ctx context.Context, s **session) error { return r.smallTables(ctx, s, p, list) }, nil
	}
	return r.runTasks(ctx, r.threads, p)
}

// smallTables makes tables; the rows of one that has one chunk are loaded immediately, else its chunks become tasks.
func (r *run) smallTables(ctx context.Context, s **session, p *pool, refs []ref) error {
	var list []*table
	for _, at := range refs {
		l, err := r.spool.get(at)
		if err != nil {
			return err
		}
		t, err := r.newTable(ctx, l.Table)
		if err != nil {
			return err
		}
		list = append(list, t)
	}
	states := make([]state, len(list))
	err := r.again(ctx, s, func(s *session) error { return r.makeTables(ctx, s, list, states) })
	if err != nil {
		return err
	}
	var same []*table
	for i, t := range list {
		if t.away {
			r.bytes.Add(2 * t.Bytes)
			r.done.Add(1)
			continue
		}
		t.together = len(list) > 1 && len(t.Chunks) <= 1
		if err := r.fill(ctx, s, p, t, states[i]); err != nil {
			return err
		}
		if t.same {
			same = append(same, t)
		}
	}
	if len(same) == 0 {
		return nil
	}
	return r.again(ctx, s, func(s *session) error { return setState(ctx, s, equal, same...) })
}

// newTable prepares a table.
func (r *run) newTable(ctx context.Context, m *repo.Table) (*table, error) {
	t := &table{Table: *m}
	t.schema, t.name = r.choice.target(m.Schema, m.Name)
	t.id = tableID(t.schema, t.name)
	var err error
	if t.shape, err = define.ParseTable(m.Schema, m.Create); err != nil {
		return nil, err
	}
	if m.History {
		t.shape, _ = t.shape.WithHistory()
	}
	t.shape.Schema, t.shape.Name = t.schema, t.name
	t.key, _ = chunk.KeyOf(t.shape)
	if err := r.forgetPast(ctx, t); err != nil {
		return nil, err
	}
	if t.def, err = r.definitionOf(m); err != nil {
		return nil, fmt.Errorf("%s.%s: %w", m.Schema, m.Name, err)
	}
	if fitted, ok := r.fitted[leftTable(m.Schema, m.Name)]; ok {
		t.def = fitted.inherit()
	} else {
		t.def = r.withoutTablespace(r.withoutAria(t.def)).inherit()
	}
	engine := t.def.engine()
	if strings.EqualFold(engine, "ARCHIVE") {
		t.def = t.def.uncounted()
	}
	t.transacts = r.transactional[strings.ToLower(engine)]
	t.computed, t.checked = t.def.computes(), r.hasChecks(t.def)
	big := strings.EqualFold(engine, "InnoDB") && m.Bytes >= laterBytes
	if later, err := r.foreignLater(m); err != nil {
		return nil, err
	} else if later {
		t.def, t.foreign = t.def.foreignKeys()
	}
	if big {
		t.def, t.later = t.def.secondaryKeys()
	}
	t.statements()
	// Bulk takes no lock for AUTO_INCREMENT; a row that is too large for it does.
	bulk := r.bulk && !slices.ContainsFunc(t.Chunks, func(c repo.Chunk) bool { return c.Big })
	if r.serialAuto && !bulk && slices.ContainsFunc(t.shape.Columns, func(c define.TableColumn) bool { return c.Auto }) {
		if r.threads > 2 && t.Bytes*int64(r.threads) > 2*r.plan.Bytes {
			t.inserts.Store(true)
		} else {
			t.lane = new(lane)
		}
	}
	t.left.Store(int64(len(t.Chunks)))
	t.toSum = len(t.Chunks)
	return t, nil
}

// uncounted is a definition without the next AUTO_INCREMENT: ARCHIVE takes no row whose number is not above the last one.
func (d definition) uncounted() definition {
	begin, end := asDefault.Find(d.tail, "AUTO_INCREMENT", "=")
	if t := sqltext.Tokens(d.tail[max(end, 0):]); begin >= 0 && len(t) > 0 {
		d.tail = strings.TrimRight(d.tail[:begin], " ") + d.tail[end+t[0].End:]
	}
	return d
}

// foreignLater reports whether a table's foreign keys have to wait: they need keys of their own or of another table, which are
// made after its rows, or the server may refuse one of them.
func (r *run) foreignLater(t *repo.Table) (bool, error) {
	def, err := parseTable(t.Create)
	if err != nil {
		return false, err
	}
	_, keys := def.foreignKeys()
	if len(keys) == 0 {
		return false, nil
	}
	if own := tableKey(t.Schema, t.Name); r.keysLater[own] || r.unsure[own] {
		return true, nil
	}
	for _, k := range keys {
		if schema, name := references(k, t.Schema); r.keysLater[tableKey(schema, name)] {
			return true, nil
		}
	}
	return false, nil
}

// tableKey names a table for a set; names that differ in their letters' case only are taken for one.
func tableKey(schema, name string) string { return strings.ToLower(schema + "\x00" + name) }

// makeTables makes those tables that are not there, and finds out how far the others are.
func (r *run) makeTables(ctx context.Context, s *session, list []*table, states []state) error {
	began := time.Now()
	defer func() { r.spent(&r.phases.Create, began) }()
	var fresh []*table
	for i, t := range list {
		if states[i] != absent {
			continue
		}
		if r.resumed || t.resumed {
			st, err := r.readState(ctx, s, t)
			if err != nil {
				return err
			}
			states[i] = st
			if t.resumed = true; st >= created && st < loaded && !t.transacts {
				states[i] = claimed // rows of a statement that was cut off are in
			}
			if err := r.takeUp(ctx, s, t, &states[i]); err != nil {
				return err
			}
		}
		if states[i] <= claimed {
			fresh = append(fresh, t)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := setState(ctx, s, claimed, fresh...); err != nil {
		return err
	}
	for _, t := range fresh {
		if t.resumed || r.o.Overwrite {
			if err := r.clear(ctx, s, kindTable, t.schema, t.name); err != nil {
				return err
			}
			if err := forget(ctx, s, t); err != nil {
				return err
			}
		}
		t.resumed = true // should the session break now
		if err := s.use(ctx, t.schema); err != nil {
			return err
		}
		made, err := r.makeTable(ctx, s, t)
		if err != nil {
			return fmt.Errorf("make %s: %w%s", t.quoted(), err, referredHint(err))
		}
		t.away = !made
	}
	fresh = slices.DeleteFunc(fresh, func(t *table) bool { return t.away })
	if len(fresh) == 0 {
		return nil
	}
	if err := setState(ctx, s, created, fresh...); err != nil {
		return err
	}
	for i, t := range list {
		if states[i] <= claimed && !t.away {
			states[i], t.resumed = created, false
		}
	}
	return nil
}

// referredHint says what to do if MySQL refuses a table that does not match a foreign key of another one: a column or key that it refers to
// is not there, or of another type. Source: MySQL manual, "Server Error Message Reference", ER_CANNOT_ADD_FOREIGN (5.7), ER_FK_NO_COLUMN_PARENT,
// ER_FK_INCOMPATIBLE_COLUMNS, ER_FK_NO_INDEX_PARENT and its successor of 9.
func referredHint(err error) string {
	switch mysql.ErrorNumber(err) {
	case errno.CannotAddForeignKey, errno.ForeignKeyNoColumn, errno.ForeignKeyMisfit, errno.ForeignKeyNoIndex, 6125:
		return "; the foreign key of a table that is not restored does not fit the table of the backup: drop that key, then run the same again"
	}
	return ""
}

// fill gets the rows of a table under way.
func (r *run) fill(ctx context.Context, s **session, p *pool, t *table, st state) error {
	if len(t.foreign) > 0 { // also of one that an earlier run compared: it may have been cut off before their turn came
		r.mu.Lock()
		r.foreign = append(r.foreign, foreignJob{schema: t.schema, name: t.name, keys: t.foreign})
		r.mu.Unlock()
	}
	if st == equal {
		r.bytes.Add(2 * t.Bytes)
		r.report(t.result(chunk.Rows{}, true))
		return nil
	}
	if st >= loaded {
		r.bytes.Add(t.Bytes)
		return r.finish(ctx, s, p, t, st)
	}
	if t.Elsewhere || len(t.Columns) == 0 { // whose rows it shows is not the backup's business
		if !t.Elsewhere {
			note := told{Note: fmt.Sprintf("table %s: all its columns are computed, and how many rows it had is not in the backup", t.quoted())}
			if err := r.again(ctx, s, func(s *session) error { return r.tell(ctx, s, t, note) }); err != nil {
				return err
			}
		}
		t.same = t.together
		r.report(t.result(chunk.Rows{}, true))
		if t.same {
			return nil
		}
		return r.again(ctx, s, func(s *session) error { return setState(ctx, s, equal, t) })
	}
	if len(t.Chunks) == 0 {
		return r.finish(ctx, s, p, t, loaded)
	}
	if !t.transacts {
		if err := r.loadPlain(ctx, s, t); err != nil {
			return err
		}
		return r.finish(ctx, s, p, t, loaded)
	}
	if len(t.Chunks) == 1 {
		return r.chunkTask(ctx, s, p, t, 0)
	}
	tasks := make([]task, len(t.Chunks))
	for i := range t.Chunks {
		tasks[i] = func(ctx context.Context, s **session) error { return r.chunkTask(ctx, s, p, t, i) }
	}
	p.push(t.lane, tasks...)
	return nil
}

// loadPlain loads a table without transactions. After an error it is unknown which rows are in, and a crash of the server may
// have lost those that were: so it starts over.
func (r *run) loadPlain(ctx context.Context, s **session, t *table) error {
	began, first := time.Now(), true
	defer func() { r.spent(&r.phases.Load, began) }()
	return r.again(ctx, s, func(fresh *session) error {
		if !first {
			t.resumed = true
			far := []state{absent}
			if err := r.makeTables(ctx, fresh, []*table{t}, far); err != nil || far[0] >= loaded {
				return err
			}
		}
		first = false
		for i := range t.Chunks {
			if err := r.loadChunk(ctx, s, t, i); err != nil {
				return err
			}
		}
		// Closed on disk, it outlives a crash of the server.
		if err := fresh.Exec(ctx, "FLUSH NO_WRITE_TO_BINLOG TABLES "+mark+" "+t.quoted()); err != nil && mysql.ClassOf(err) != mysql.ClassPrivilege {
			return err
		}
		return setState(ctx, fresh, loaded, t)
	})
}

// chunkTask loads a chunk; with the last one the table is finished.
func (r *run) chunkTask(ctx context.Context, s **session, p *pool, t *table, number int) error {
	began := time.Now()
	if err := r.loadChunk(ctx, s, t, number); err != nil {
		return err
	}
	r.spent(&r.phases.Load, began)
	if t.left.Add(-1) > 0 {
		return nil
	}
	if len(t.Chunks) > 1 || len(t.later) > 0 {
		if err := r.again(ctx, s, func(s *session) error { return setState(ctx, s, loaded, t) }); err != nil {
			return err
		}
	}
	return r.finish(ctx, s, p, t, loaded)
}

// finish makes a table's keys and has it compared.
func (r *run) finish(ctx context.Context, s **session, p *pool, t *table, st state) error {
	if err := r.types(ctx, s, t); err != nil {
		return err
	}
	if err := r.again(ctx, s, func(s *session) error { return r.tighten(ctx, s, t) }); err != nil {
		return fmt.Errorf("enforce the checks of %s: %w", t.quoted(), err)
	}
	if st < indexed && len(t.later) > 0 {
		began := time.Now()
		err := r.again(ctx, s, func(s *session) error { return r.makeKeys(ctx, s, t) })
		if err != nil {
			return fmt.Errorf("make the keys of %s: %w", t.quoted(), r.explainMeeting(t, err))
		}
		r.spent(&r.phases.Index, began)
	}
	t.forgetKey()
	if len(t.Chunks) <= 1 || t.key.Cuts == 0 || t.past != nil {
		return r.compareTask(ctx, s, t, chunk.Range{}, -1)
	}
	tasks := make([]task, len(t.Chunks))
	for i, c := range t.Chunks {
		tasks[i] = func(ctx context.Context, s **session) error {
			return r.compareTask(ctx, s, t, chunk.Range{Lower: c.Lower, Upper: c.Upper}, i)
		}
	}
	p.push(nil, tasks...)
	return nil
}

// forgetKey has a table read as one without a key if its key is left out.
func (t *table) forgetKey() {
	if !slices.ContainsFunc(slices.Concat(t.def.items, t.later), func(item string) bool {
		return strings.HasPrefix(item, "PRIMARY KEY ") && t.key.Name == "PRIMARY" || keyName(item) == t.key.Name
	}) {
		t.key = chunk.Key{}
	}
}

// makeKeys makes the keys that were left out, all that are not there in one statement, so that the rows are read once.
func (r *run) makeKeys(ctx context.Context, s *session, t *table) error {
	there, err := r.defined(ctx, s, t.schema, t.name)
	if err != nil {
		return err
	}
	var adds []string
	for _, k := range t.later {
		if !slices.ContainsFunc(there.items, func(item string) bool { return keyName(item) == keyName(k) }) {
			adds = append(adds, "ADD "+k)
		}
	}
	if len(adds) > 0 {
		if err := s.Exec(ctx, "ALTER TABLE "+mark+" "+t.quoted()+" "+strings.Join(adds, ", ")); err != nil {
			return err
		}
	}
	return setState(ctx, s, indexed, t)
}

// defined reads a table's definition from the target.
func (r *run) defined(ctx context.Context, s *session, schema, name string) (definition, error) {
	var create string
	err := s.Query(ctx, "SHOW CREATE TABLE "+mysql.Quote(schema)+"."+mysql.Quote(name), func(row [][]byte) error {
		create = string(row[1])
		return nil
	})
	if err != nil {
		return definition{}, err
	}
	return parseTable(create)
}

// keyName is the name of a key; "" for what is no key.
func keyName(item string) string {
	item, _ = strings.CutPrefix(item, "UNIQUE ")
	rest, ok := strings.CutPrefix(item, "KEY ")
	if !ok {
		return ""
	}
	name, _, _ := unquoted(rest)
	return name
}

// compareTask reads rows back and adds them up; number -1 is the whole table. The last one of a table says whether it is the same.
func (r *run) compareTask(ctx context.Context, s **session, t *table, within chunk.Range, number int) error {
	began := time.Now()
	for _, b := range []chunk.Bound{within.Lower, within.Upper} {
		if err := t.key.Check(b); err != nil {
			return fmt.Errorf("%s: %w", t.quoted(), err)
		}
	}
	var rows chunk.Rows
	err := r.again(ctx, s, func(s *session) error {
		rows = chunk.Rows{}
		return chunk.Read(ctx, s.Stream, t.shape, t.key, within, "restore: are all rows there?", &rows)
	})
	if err != nil {
		return fmt.Errorf("compare %s: %w", t.quoted(), err)
	}
	r.spent(&r.phases.Compare, began)
	t.mu.Lock()
	t.sum.Sum.Add(rows.Sum)
	t.sum.Count += rows.Count
	t.sum.Bytes += rows.Bytes
	if number >= 0 {
		r.bytes.Add(t.Chunks[number].Bytes)
		if c := t.Chunks[number]; t.note == "" && (rows.Sum.String() != c.Sum || rows.Count != c.Rows) {
			t.note = fmt.Sprintf("chunk %d, after (%s): %s for %d", number+1, strings.Join(c.Lower, ", "), digits.Counted(rows.Count, "row"), c.Rows)
		}
		t.toSum--
	} else {
		r.bytes.Add(t.Bytes)
		t.toSum = 0
	}
	last, sum := t.toSum == 0, t.sum
	t.mu.Unlock()
	if !last {
		return nil
	}
	res := t.result(sum, false)
	if t.together {
		t.same = res.Equal
	} else if res.Equal {
		if err := r.again(ctx, s, func(s *session) error { return setState(ctx, s, equal, t) }); err != nil {
			return err
		}
	}
	r.report(res)
	return nil
}

// result compares what was read back with the manifest. known says that an earlier run did, and found it equal.
func (t *table) result(got chunk.Rows, known bool) TableResult {
	res := TableResult{Schema: t.schema, Table: t.name, Rows: got.Count, Bytes: got.Bytes, Sum: got.Sum.String()}
	want := t.Sum
	if want == "" {
		want = chunk.Sum{}.String()
	}
	if known {
		res.Rows, res.Bytes, res.Sum = t.Rows, t.Bytes, want
	}
	res.Equal = res.Rows == t.Rows && res.Sum == want && !t.untyped
	if !res.Equal {
		res.Wants = strconv.FormatInt(t.Rows, 10) + " rows, sum " + want
		if t.note != "" {
			res.Wants += "; the first chunk that differs: " + t.note
		}
		if t.said != "" {
			res.Wants += "; " + t.said
		}
	}
	return res
}

// foreignJob is foreign keys that wait for all tables.
type foreignJob struct {
	schema, name string
	keys         []string
}

// makeForeignKeys makes the foreign keys that had to wait. Rows are not looked through: foreign_key_checks is off.
func (r *run) makeForeignKeys(ctx context.Context) error {
	next := 0
	p := &pool{}
	p.source = func() (task, error) {
		if next == len(r.foreign) {
			return nil, nil
		}
		job := r.foreign[next]
		next++
		return func(ctx context.Context, s **session) error {
			err := r.again(ctx, s, func(s *session) error { return r.addForeignKeys(ctx, s, job) })
			if err != nil {
				return fmt.Errorf("make the foreign keys of %s.%s: %w", mysql.Quote(job.schema), mysql.Quote(job.name), err)
			}
			return nil
		}, nil
	}
	return r.runTasks(ctx, min(r.threads, max(1, len(r.foreign))), p)
}

func (r *run) addForeignKeys(ctx context.Context, s *session, job foreignJob) error {
	there, err := r.defined(ctx, s, job.schema, job.name)
	if err != nil {
		return err
	}
	_, has := there.foreignKeys()
	var adds []string
	for _, k := range job.keys {
		name, bare := constraintName(k)
		if !slices.ContainsFunc(has, func(h string) bool {
			own, b := constraintName(h)
			return h == k || b == bare && (name == "" || own == name)
		}) {
			adds = append(adds, "ADD "+k)
		}
	}
	if len(adds) == 0 {
		return nil
	}
	if err := s.use(ctx, job.schema); err != nil {
		return err
	}
	err = s.Exec(ctx, "ALTER TABLE "+mark+" "+mysql.Quote(job.name)+" "+strings.Join(adds, ", "))
	if !notThisKey[mysql.ErrorNumber(err)] {
		return err
	}
	for _, add := range adds {
		if err := r.addOne(ctx, s, job, strings.TrimPrefix(add, "ADD ")); err != nil {
			return err
		}
	}
	return nil
}

// engine is the storage engine that a definition names.
func (d definition) engine() string {
	_, end := asDefault.Find(d.tail, "ENGINE", "=")
	if end < 0 {
		return ""
	}
	if t := sqltext.Tokens(d.tail[end:]); len(t) > 0 {
		return t[0].Text
	}
	return ""
}

// checkMemory checks the tables of the engine MEMORY again, which a server empties when it starts: it may have been started since their rows
// were compared. After binary logs it is unknown how many they have.
func (r *run) checkMemory(ctx context.Context, s **session) error {
	for _, at := range r.tables {
		l, err := r.spool.get(at)
		if err != nil {
			return err
		}
		m := l.Table
		def, err := parseTable(m.Create)
		if err != nil {
			return err
		}
		if m.Rows == 0 || !strings.EqualFold(def.engine(), "MEMORY") || r.result.Rolled != nil || r.leftOut[leftTable(m.Schema, m.Name)] {
			continue
		}
		t := &table{Table: *m}
		t.schema, t.name = r.choice.target(m.Schema, m.Name)
		there := false
		if err := r.again(ctx, s, func(s *session) (err error) {
			there, err = r.stillThere(ctx, s, t, loaded)
			return err
		}); err != nil {
			return fmt.Errorf("look at %s: %w", t.quoted(), err)
		}
		if there || slices.ContainsFunc(r.result.Different, func(d TableResult) bool { return d.Schema == t.schema && d.Table == t.name }) {
			continue
		}
		r.differing++
		r.result.Different = append(r.result.Different, TableResult{Schema: t.schema, Table: t.name, Sum: chunk.Sum{}.String(),
			Wants: digits.Counted(m.Rows, "row") + ", sum " + m.Sum + "; MEMORY tables are emptied by a restart, and the server was restarted since they were compared"})
	}
	return nil
}
