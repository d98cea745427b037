package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
)

// run is one restore.
type run struct {
	o        Options
	choice   choice
	threads  int
	server   mysql.Server
	header   repo.Header
	spool    *spool
	buffers  sync.Pool  // *bytes.Buffer, for chunks
	dropping sync.Mutex // one drops a table at a time

	setup         []string // statements that a session begins with; the first two are what others come back to
	names         string   // the one of them that sets the character set
	localFiles    bool
	folds         bool // names that differ in nothing but case are one to the target
	bulk          bool // a prepared INSERT with many rows is logged as rows, if at all
	serialAuto    bool // LOAD DATA locks a table with AUTO_INCREMENT until it ends (innodb_autoinc_lock_mode below 2): INSERT does not
	maxPacket     int
	transactional map[string]bool // by engine, in small letters
	known         vocabulary
	mapped        map[string]string // words of definitions that are replaced

	fitted   map[string]definition   // by leftTable: definitions of which something is left out
	checks   map[string]bool         // tableKey of names of checks that tables have
	modes    map[string]bool         // SQL modes of programs: whether the target has them
	stays    map[string]bool         // names of accounts that are as the backup has them
	accounts map[string]*repo.Object // by objectKey: accounts in the words of a target of another kind

	all       []string // names of all schemas of the backup
	wanted    []string // of those, the ones of which something is restored
	schemas   []ref
	tables    []ref
	objects   map[repo.ObjectKind][]ref
	keysLater map[string]bool      // tableKey of tables whose keys are made after their rows
	pointers  map[string][]pointer // foreign keys, by tableKey of what they point at, until they are looked at
	unsure    map[string]bool      // tableKey of tables whose foreign keys the server may refuse
	leftOut   map[string]bool      // objectKey of what cannot be restored
	plan      Plan
	resumed   bool
	earlier   earlier   // what its journal says
	changed   bool      // something was
	alone     bool      // the target holds nothing of users
	refers    []referer // foreign keys between what is restored and what is not

	began   time.Time
	bytes   atomic.Int64
	done    atomic.Int64 // tables
	made    atomic.Int64 // objects
	retried atomic.Int64

	mu      sync.Mutex
	phases  Phases
	foreign []foreignJob
	notes   []string
	kept    []string // accounts that were there

	schemaWas map[string]string // the collations of schemas that get others for a while
	lent      *Lent             // the one that has another right now

	inWay   map[string]bool // quoted names of tables, views and sequences that were there before, until they go
	dropped []string        // those that were dropped, with their kinds

	forged     []string // what must not run; the first of them
	forgeries  int
	unused     int64     // programs that --no-programs leaves out
	later      []Finding // what was restored in a different form, found while rows go in
	missing    []Finding // what is not there at the end; the first of them
	missingAll int64
	differing  int // tables; result has the first of them
	result     Result
	stage      string
}

// Restore puts a backup, or a part of it, into a server. If it fails, or is killed, the same call goes on where it was.
func Restore(ctx context.Context, o Options) (Result, error) {
	r := &run{o: o, threads: o.Threads, began: time.Now(), keysLater: map[string]bool{}, pointers: map[string][]pointer{}, unsure: map[string]bool{}, leftOut: map[string]bool{},
		objects: map[repo.ObjectKind][]ref{}, mapped: map[string]string{}, modes: map[string]bool{}, checks: map[string]bool{}, fitted: map[string]definition{}, accounts: map[string]*repo.Object{}}
	if r.threads <= 0 {
		r.threads = 4
	}
	if r.o.BatchBytes <= 0 {
		r.o.BatchBytes = batchBytes
	}
	if r.o.BulkBytes <= 0 {
		r.o.BulkBytes = bulkBytes
	}
	var err error
	if r.choice, err = newChoice(o.Schemas, o.Tables, o.Rename); err != nil {
		return Result{}, err
	}
	if r.spool, err = newSpool(); err != nil {
		return Result{}, err
	}
	defer r.spool.close()
	err = r.restore(ctx)
	res := r.result
	res.Backup, res.Resumed, res.Notes, res.Kept, res.SessionSeconds = r.header, r.resumed, r.notes, r.kept, r.phases
	res.Objects, res.Schemas = r.made.Load(), int64(len(r.schemas))
	res.Seconds, res.Changed = time.Since(r.began).Seconds(), r.resumed || r.changed
	r.tellMissing(&res)
	if err != nil {
		err = r.tellDropped(err)
	}
	switch {
	case err != nil || r.o.DryRun:
	case len(res.Different) > 0:
		err = fmt.Errorf("%w: %d of %s", ErrDifferent, r.differing, digits.Counted(res.Tables, "table"))
	case res.LeftOutAll > 0:
		err = fmt.Errorf("%w: %s", ErrLeftOut, someNames(res.LeftOut, res.LeftOutAll))
	case len(res.Broken) > 0:
		err = fmt.Errorf("%w: %s", ErrBroken, res.Broken[0].What)
		if n := len(res.Broken) - 1; n > 0 {
			err = fmt.Errorf("%w and %d more", err, n)
		}
	case len(res.Orphans) > 0:
		err = fmt.Errorf("%w: %s", ErrOrphans, res.Orphans[0].Words())
		if n := len(res.Orphans) - 1; n > 0 {
			err = fmt.Errorf("%w, and %s more", err, digits.Counted(int64(n), "foreign key"))
		}
	}
	return res, err
}

// tellMissing says in the result what is not there, and what is there in another form.
func (r *run) tellMissing(res *Result) {
	for _, f := range r.plan.Findings {
		if f.Mapped != "" {
			res.Otherwise = append(res.Otherwise, f)
		}
	}
	res.Otherwise = append(res.Otherwise, r.later...)
	res.LeftOut, res.LeftOutAll = r.missing, r.missingAll
}

// someNames names the first of what is missing.
func someNames(list []Finding, all int64) string {
	const most = 5
	var names []string
	for _, f := range list[:min(most, len(list))] {
		names = append(names, f.What)
	}
	text := strings.Join(names, ", ")
	if n := all - int64(len(names)); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text + " left out"
}

// leave notes what is not there at the end.
func (r *run) leave(f Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.missing, func(m Finding) bool { return m.What == f.What }) {
		return
	}
	r.missingAll++
	if len(r.missing) < maxFindings {
		r.missing = append(r.missing, f)
	}
}

// lost is an object that is not restored.
func lost(o *repo.Object, reason string) Finding {
	f := Finding{Trouble: fleet.Trouble{What: string(o.Kind) + " " + objectName(o), Why: reason}, Create: o.Create}
	if o.Kind == repo.Account {
		f.Create = "" // it has a password's hash
	}
	return f
}

func (r *run) restore(ctx context.Context) error {
	c, err := mysql.Connect(ctx, r.o.Into, nil)
	if err != nil {
		return err
	}
	r.server = c.Server
	if err := c.Close(); err != nil {
		return err
	}
	control, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if control != nil {
			control.Close()
		}
	}()
	if err := r.learn(ctx, control); err != nil {
		return err
	}
	if err := r.read(ctx); err != nil {
		return err
	}
	if err := r.meanDefaults(ctx, control); err != nil {
		return err
	}
	if !r.o.DryRun {
		if err := r.lock(ctx, control); err != nil {
			return err
		}
		if err := r.endEarlier(ctx, control); err != nil {
			return err
		}
	} else if err := r.unlocked(ctx, control); err != nil {
		return err
	}
	if err := r.check(ctx, control); err != nil {
		return err
	}
	if err := r.present(ctx); err != nil {
		return err
	}
	logs := r.checkLogs(ctx)
	if logs != nil && (!r.o.DryRun || !errors.Is(logs, ErrLogs) || ctx.Err() != nil) {
		return logs
	}
	r.plan.Steps = r.stages(nil, nil)
	if r.o.Confirm != nil {
		if err := r.o.Confirm(r.plan); err != nil {
			return err
		}
	}
	if r.o.DryRun {
		return logs
	}
	return r.change(ctx, &control)
}

// checkLogs finds out whether the binary logs reach far enough.
func (r *run) checkLogs(ctx context.Context) error {
	if r.o.Until.IsZero() {
		return nil
	}
	if r.o.Roller == nil {
		return errors.New("there is no server to roll forward")
	}
	if err := r.rollsAll(); err != nil {
		return err
	}
	if err := r.past(ctx); err != nil {
		r.plan.Roll = &RollPlan{Problem: err.Error()}
		return fmt.Errorf("%w: %w", ErrLogs, err)
	}
	plan, err := r.o.Roller.Check(ctx, r.rollOf())
	if lost := r.header.Server.Unlogged(r.wanted); len(lost) > 0 {
		note := "nothing of " + strings.Join(lost, ", ") + " is rolled forward: the server's binary logs leave out changes there (binlog_do_db, binlog_ignore_db), so it stays as in the backup"
		plan.Notes = append(plan.Notes, note)
		r.notef("%s", note)
	}
	r.plan.Roll = &plan
	if err != nil {
		plan.Problem = err.Error()
		return fmt.Errorf("%w: %w", ErrLogs, err)
	}
	return nil
}

// past refuses a time before the backup's own moment: it holds what was committed since, and nothing takes that back. It names the backup
// that does.
func (r *run) past(ctx context.Context) error {
	until, at := r.o.Until.Time, r.header.Moment()
	if until.IsZero() || !until.Before(at) {
		return nil
	}
	all, err := r.o.Repo.Backups(ctx)
	if err != nil {
		return err
	}
	var best repo.Header
	for _, h := range all {
		if h.Kind == repo.Logical && h.Server.Identity == r.header.Server.Identity && !h.Moment().After(until) && (best.ID == "" || h.Moment().After(best.Moment())) {
			best = h
		}
	}
	other := "there is no earlier backup of that server here"
	if best.ID != "" {
		other = "of the earlier ones, --backup " + best.ID + " is the last"
	}
	const form = "2006-01-02 15:04:05.999Z"
	return fmt.Errorf("%w: %s is from %s, by the clock of its server, and contains what was committed between %s and then; %s", ErrPast, r.header.ID, at.UTC().Format(form), until.UTC().Format(form), other)
}

// stages are all that changes the target, in this order. control is the session that keeps the lock, s the one that they work on, which breaks
// and
// is replaced; both are nil if the stages are only listed.
func (r *run) stages(control, s **session) (p change.Plan) {
	add := func(what, why string, do func(context.Context) error) {
		p = append(p, change.Step{What: what, Why: why, Do: do})
	}
	on := func(do func(context.Context, **session) error) func(context.Context) error {
		return func(ctx context.Context) error { return do(ctx, s) }
	}
	some := func(what string, do func(context.Context) error, kinds ...repo.ObjectKind) {
		n := 0
		for _, k := range kinds {
			n += len(r.objects[k])
		}
		if n > 0 {
			add(what, digits.Thousands(n), do)
		}
	}
	objects := func(what string, kinds ...repo.ObjectKind) {
		some(what, func(ctx context.Context) error { return r.makeObjects(ctx, s, kinds...) }, kinds...)
	}
	if !r.resumed {
		add("schema "+repo.JournalSchema, "the journal, by which a restore that is cut off goes on", func(ctx context.Context) error { return r.startJournal(ctx, control) })
	}
	add("schemas", digits.Thousands(r.plan.Schemas), on(r.makeSchemas))
	some("accounts", on(r.makeAccounts), repo.Account)
	objects("sequences", repo.Sequence)
	add("rows", fmt.Sprintf("%s with %s (%s)", digits.Counted(r.plan.Tables, "table"), digits.Counted(r.plan.Rows, "row"), digits.Bytes(r.plan.Bytes)), r.makeRows)
	add("foreign keys", "", r.makeForeignKeys)
	objects("routines", repo.Function, repo.Package, repo.Procedure, repo.PackageBody)
	some("views", on(r.makeViews), repo.View)
	objects("triggers", repo.Trigger)
	objects("events", repo.Event)
	if roll := r.plan.Roll; roll != nil {
		add(stageRoll, digits.Counted(roll.Transactions, "transaction"), on(r.roll))
	}
	if !r.o.Hold && !r.o.Replica {
		some("events", on(r.switchOn), repo.Event)
	}
	add("grants", "", func(ctx context.Context) error { return r.grant(ctx, s, false) })
	some("looking at views", on(r.checkViews), repo.View) // which may need grants
	add("looking for orphans", "", r.countOrphans)
	add("looking at tables in memory", "", on(r.checkMemory))
	if r.o.SetGTID {
		add("position", "", on(r.setPosition)) // nothing that is logged may follow
	}
	add("journal", "it is removed", func(ctx context.Context) error {
		return r.again(ctx, s, func(s *session) error { return r.endJournal(ctx, s) })
	})
	return p
}

// startJournal makes the journal, by the session that keeps other restores away.
func (r *run) startJournal(ctx context.Context, control **session) error {
	return r.again(ctx, control, func(s *session) error {
		if err := r.lock(ctx, s); err != nil { // a new session has none
			return err
		}
		return r.beginJournal(ctx, s)
	})
}

// stageRoll is the stage that goes on after the snapshot.
const stageRoll = "binary logs"

// makeRows makes the tables with their rows.
func (r *run) makeRows(ctx context.Context) error {
	if err := r.loadTables(ctx); err != nil {
		return err
	}
	orphans, err := r.tellOrphans()
	for _, o := range orphans {
		r.notef("%s", o)
	}
	if err == nil {
		r.result.RowSeconds = time.Since(r.began).Seconds()
	}
	return err
}

// change goes through all stages, or through those that an earlier run has not reached. The control session keeps the lock and does
// nothing else: when it breaks, the work goes on.
func (r *run) change(ctx context.Context, control **session) (err error) {
	var s *session
	defer func() {
		switch lerr := r.endLoan(ctx, s); {
		case err == nil:
			err = lerr
		case lerr != nil:
			err = fmt.Errorf("%w; %w", err, lerr)
		}
		if s != nil {
			s.Close()
		}
	}()
	rolls := false // an earlier run had reached the binary logs
	if r.resumed {
		if rolls, err = r.takeUpAll(ctx, &s); err != nil {
			return err
		}
	}
	alone := false // the control session is gone
	_, err = change.Execute(ctx, r.stages(control, &s), change.Log{
		Did: func(st change.Step) bool {
			rolls = rolls && st.What != stageRoll
			return rolls
		},
		Before: func(_ int, st change.Step) error {
			r.mu.Lock()
			r.stage = st.What
			r.mu.Unlock()
			r.progress()
			return nil
		},
		After: func(ctx context.Context, _ change.Step) error {
			if err := (*control).ping(ctx); err != nil && !alone {
				r.notef("the session that locked out other restores was lost: %v", err)
				alone = true
			}
			return nil
		},
	})
	return err
}

// ping keeps a session from being ended for its silence.
func (s *session) ping(ctx context.Context) error { return s.Exec(ctx, "DO /* risso: still here */ 0") }

// learn finds out what the target can.
func (r *run) learn(ctx context.Context, s *session) error {
	if err := r.findSetup(ctx, s); err != nil {
		return err
	}
	err := s.Query(ctx, "SELECT /* risso: how does it take rows? */ @@local_infile, @@max_allowed_packet, @@innodb_autoinc_lock_mode, @@log_bin AND @@sql_log_bin AND @@binlog_format <> 'ROW', @@lower_case_table_names", func(row [][]byte) (err error) {
		r.localFiles, r.serialAuto = string(row[0]) == "1", string(row[2]) < "2"
		r.bulk = string(row[3]) == "0" && s.HasBulk()
		r.folds = string(row[4]) != "0"
		r.maxPacket, err = strconv.Atoi(string(row[1]))
		return err
	})
	if err != nil {
		return err
	}
	if !r.localFiles && !r.bulk {
		r.plan.Notes = append(r.plan.Notes, "local_infile is OFF on the target: rows are loaded by INSERT, which takes longer; SET GLOBAL local_infile = ON is faster")
	}
	return r.readVocabulary(ctx, s)
}

// read reads the manifest to its end and keeps what is wanted.
func (r *run) read(ctx context.Context) error {
	if !r.o.Repo.Readable() { // the host that took a backup still knows its manifest, but reads no rows
		return repo.ErrNoKey
	}
	id, err := r.newest(ctx)
	if err != nil {
		return err
	}
	m, err := r.o.Repo.Manifest(ctx, id)
	if err != nil {
		return err
	}
	defer m.Close()
	r.header = m.Header
	if m.Header.Kind != repo.Logical {
		return fmt.Errorf("%w: %s is %s", ErrKind, m.Header.ID, m.Header.Kind)
	}
	r.plan.Backup, r.plan.Target = m.Header, r.o.Into.String()
	needed := map[string]bool{}
	var schemas []repo.Line
	err = m.Each(func(l repo.Line) error {
		if l.Schema != nil {
			schemas = append(schemas, l)
			r.all = append(r.all, l.Schema.Name)
			r.choice.meet(l.Schema.Name, "", r.choice.schema(l.Schema.Name))
			return nil
		}
		return r.keep(l, needed)
	})
	if err != nil {
		return err
	}
	for _, l := range schemas {
		if !r.choice.schema(l.Schema.Name) && !needed[l.Schema.Name] {
			continue
		}
		r.wanted = append(r.wanted, l.Schema.Name)
		if why := r.forgedSchema(l.Schema); why != "" {
			r.refuse("schema "+mysql.Quote(l.Schema.Name), why)
			continue
		}
		if _, err := r.schemaWords(l.Schema); err != nil {
			return err
		}
		at, err := r.spool.add(l)
		if err != nil {
			return err
		}
		r.schemas = append(r.schemas, at)
		r.plan.Schemas++
	}
	if err := r.refusal(); err != nil {
		return err
	}
	if err := r.met(); err != nil {
		return err
	}
	if r.unused > 0 {
		r.plan.Notes = append(r.plan.Notes, digits.Plural(r.unused, "program is", "programs are")+" left out because of --no-programs")
	}
	r.plan.Findings = r.findings()
	return nil
}

// newest returns the backup that is meant: if none was named the newest logical one.
func (r *run) newest(ctx context.Context) (string, error) {
	if r.o.Backup != "" {
		return r.o.Backup, nil
	}
	list, err := r.o.Repo.Backups(ctx)
	if err != nil {
		return "", err
	}
	if h, ok := repo.Newest(list, time.Now(), func(h repo.Header) bool { return h.Kind == repo.Logical }); ok {
		note, err := r.o.Repo.AheadNote(ctx, h.ID, time.Now())
		if err != nil {
			return "", err
		}
		if note != "" {
			r.plan.Notes = append(r.plan.Notes, note)
		}
		return h.ID, nil
	}
	if len(list) > 0 {
		return "", fmt.Errorf("%w, and there is no other: %s is %s", ErrKind, list[len(list)-1].ID, list[len(list)-1].Kind)
	}
	return "", nil // Manifest says that there is none
}

// met refuses to go on if the backup does not have all that was named: otherwise a typo would overwrite what was not meant.
func (r *run) met() error {
	missing, idle := r.choice.unmet()
	if len(missing) > 0 {
		return fmt.Errorf("%w: it has no %w", ErrNothing, &pattern.UnmetError{Names: missing, Near: r.choice.meant()})
	}
	if !r.choice.all() && len(r.schemas) == 0 && r.plan.Tables+r.plan.Objects == 0 {
		return fmt.Errorf("%w: %s", ErrNothing, strings.Join(append(r.o.Schemas, r.o.Tables...), ", "))
	}
	for _, text := range idle {
		r.plan.Notes = append(r.plan.Notes, text+" matches nothing that is restored")
	}
	return nil
}

// keep keeps a line if it is wanted.
func (r *run) keep(l repo.Line, needed map[string]bool) error {
	switch {
	case l.Table != nil:
		t := l.Table
		wants := r.choice.table(t.Schema, t.Name)
		r.choice.meet(t.Schema, t.Name, wants)
		if !wants {
			return nil
		}
		needed[t.Schema] = true
		if why := r.forgedTable(t); why != "" {
			r.refuse("table "+mysql.Quote(t.Schema)+"."+mysql.Quote(t.Name), why)
			return nil
		}
		if err := r.inspectTable(t); err != nil {
			return err
		}
		if r.leftOut[leftTable(t.Schema, t.Name)] {
			return nil
		}
		at, err := r.spool.add(l)
		if err != nil {
			return err
		}
		at.bytes = t.Bytes
		if t.Bytes == 0 && t.Rows > 0 {
			at.bytes = 1
		}
		if t.Elsewhere {
			at.bytes = -1 // after the tables that it is about
		}
		r.tables = append(r.tables, at)
		r.plan.Tables++
		r.plan.Rows += t.Rows
		r.plan.Bytes += t.Bytes
	case l.Object != nil:
		o := l.Object
		wants := r.choice.object(o)
		if o.Kind == repo.View || o.Kind == repo.Sequence {
			r.choice.meet(o.Schema, o.Name, wants)
		}
		if !wants {
			return nil
		}
		if r.o.NoPrograms && isProgram(o.Kind) {
			r.unused++
			return nil
		}
		if o.Kind != repo.Account {
			needed[o.Schema] = true
		}
		if o.Kind == repo.Account {
			if why := r.quoteAccount(o); why != "" {
				r.note(lost(o, why))
				return nil
			}
			o.After = ownGrants(o)
		}
		if why := forgedObject(o, r.dialect(o)); why != "" {
			if r.foreignServer() && o.Kind != repo.Account && forgedObject(o, r.sourceDialect(o)) == "" {
				r.note(lost(o, "the server understands its definition differently: "+why))
				return nil
			}
			r.refuse(string(o.Kind)+" "+objectName(o), why)
			return nil
		}
		r.inspectObject(o)
		at, err := r.spool.add(l)
		if err != nil {
			return err
		}
		r.objects[o.Kind] = append(r.objects[o.Kind], at)
		r.plan.Objects++
	}
	return nil
}

// makeSchemas makes the schemas that are not there.
func (r *run) makeSchemas(ctx context.Context, s **session) error {
	for _, at := range r.schemas {
		l, err := r.spool.get(at)
		if err != nil {
			return err
		}
		name := r.choice.targetSchema(l.Schema.Name)
		words, err := r.schemaWords(l.Schema)
		if err != nil {
			return err
		}
		statement := "CREATE DATABASE IF NOT EXISTS " + mysql.Quote(name) + words
		if err := r.again(ctx, s, func(s *session) error { return s.Exec(ctx, statement) }); err != nil {
			return fmt.Errorf("make schema %s: %w", mysql.Quote(name), err)
		}
	}
	// Tables that are restored into a schema that is not in the backup.
	for from, to := range r.choice.rename {
		if from[1] == "" || !r.choice.used[from] {
			continue
		}
		statement := "CREATE DATABASE IF NOT EXISTS " + mysql.Quote(to[0])
		if err := r.again(ctx, s, func(s *session) error { return s.Exec(ctx, statement) }); err != nil {
			return fmt.Errorf("make schema %s: %w", mysql.Quote(to[0]), err)
		}
	}
	return nil
}

// roll goes on after the snapshot.
func (r *run) roll(ctx context.Context, s **session) error {
	if r.o.Until.IsZero() {
		return nil
	}
	if len(r.result.Different) > 0 {
		var names []string
		for _, t := range r.result.Different[:min(5, len(r.result.Different))] {
			names = append(names, mysql.Quote(t.Schema)+"."+mysql.Quote(t.Table))
		}
		return fmt.Errorf("%s from the backup, and so nothing is rolled forward: %s", digits.Plural(r.differing, "table differs", "tables differ"), strings.Join(names, ", "))
	}
	if err := r.rollsAll(); err != nil {
		return err
	}
	// From here on all that comes before is done, and binary logs change what it left.
	st, err := r.beginRolling(ctx, s)
	if err != nil {
		return err
	}
	if st == rollReady {
		if err := r.o.Roller.Forget(ctx, r.rollOf()); err != nil {
			return err
		}
		if err := r.again(ctx, s, func(s *session) error { return setState(ctx, s, rollBegun, rolling) }); err != nil {
			return err
		}
	}
	if st != rollDone {
		done, err := r.o.Roller.Roll(ctx, r.rollOf())
		if err != nil {
			return fmt.Errorf("roll forward: %w", err)
		}
		done.Resumed = st != rollReady
		if err := r.endRolling(ctx, s, done); err != nil {
			return err
		}
	}
	r.schemaWas = nil // they may have others by now
	return r.o.Roller.Forget(ctx, r.rollOf())
}

// rollsAll says why the binary logs cannot be applied to all: they change a table that is not there.
func (r *run) rollsAll() error {
	if !r.choice.all() {
		return nil
	}
	i := slices.IndexFunc(r.missing, func(f Finding) bool { return strings.HasPrefix(f.What, "table ") })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("%s is left out (%s), but the binary logs may change it: with --schema '*' all other tables are rolled forward", r.missing[i].What, r.missing[i].Why)
}

func (r *run) rollOf() Roll {
	roll := Roll{Backup: r.header, Into: r.o.Into, Until: r.o.Until}
	if !r.choice.all() {
		roll.Wants = func(schema, table string) bool {
			return r.choice.table(schema, table) && !r.leftOut[leftTable(schema, table)]
		}
	}
	if len(r.choice.rename) > 0 {
		roll.Names = r.choice.target
	}
	return roll
}

// spent adds the time since began to a phase.
func (r *run) spent(phase *float64, began time.Time) {
	r.mu.Lock()
	*phase += time.Since(began).Seconds()
	r.mu.Unlock()
	r.progress()
}

func (r *run) progress() {
	if r.o.Progress == nil {
		return
	}
	r.mu.Lock()
	stage := r.stage
	r.mu.Unlock()
	r.o.Progress(Progress{Stage: stage, Bytes: r.bytes.Load(), Total: 2 * r.plan.Bytes, Tables: r.done.Load(), Of: r.plan.Tables})
}

func (r *run) notef(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	const most = 1000
	note := fmt.Sprintf(format, args...)
	if slices.Contains(r.notes, note) {
		return
	}
	switch n := len(r.notes); {
	case n < most:
		r.notes = append(r.notes, note)
	case n == most:
		r.notes = append(r.notes, "there are more: these are the first notes")
	}
}

// report takes the result of a table.
func (r *run) report(t TableResult) {
	r.mu.Lock()
	r.result.Tables++
	r.result.Rows += t.Rows
	r.result.Bytes += t.Bytes
	const most = 1000
	if !t.Equal {
		r.differing++
		if len(r.result.Different) < most {
			r.result.Different = append(r.result.Different, t)
		}
	}
	r.mu.Unlock()
	r.done.Add(1)
	if r.o.Table != nil {
		r.o.Table(t)
	}
	r.progress()
}
