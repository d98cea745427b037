package trace

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// ErrNotRestored is a server on which Risso could not put back what it had switched on.
var ErrNotRestored = errors.New("what was switched on for the trace could not be put back")

// ErrBusy is a server on which another trace has switched instruments on.
var ErrBusy = errors.New("another risso trace has switched instruments on, on this server")

// Wanted says what to switch on.
type Wanted struct {
	Synch bool // also mutexes and other latches (wait/synch/%): every connection pays
}

// Old is what was there before Risso changed it: only what differs.
type Old struct {
	Consumers   map[string]string `json:"consumers"` // name → YES or NO
	Instruments []Instrument      `json:"instruments"`
	Threads     []threadState     `json:"threads"`
}

// Plan says what Enable will run, and remembers what it will change. It is a pure function of the server's state.
func Plan(st *State, who Connection, w Wanted) (statements []string, old Old) {
	old.Consumers = map[string]string{}
	run := func(format string, a ...any) {
		statements = append(statements, "UPDATE /* risso: trace */ performance_schema."+fmt.Sprintf(format, a...))
	}
	// Risso's own connection ends with the trace: nothing to put back.
	run("threads SET INSTRUMENTED = 'NO', HISTORY = 'NO' WHERE PROCESSLIST_ID = CONNECTION_ID()")
	last, others := uint64(0), false
	for _, t := range st.threads {
		last = max(last, t.ID)
		switch {
		case t.ID == who.Thread && (t.Instrumented != "YES" || t.History != "YES"):
			old.Threads = append(old.Threads, t)
			run("threads SET INSTRUMENTED = 'YES', HISTORY = 'YES' WHERE THREAD_ID = %d", t.ID)
		case t.ID != who.Thread && t.History == "YES":
			old.Threads = append(old.Threads, t)
			others = true
		}
	}
	if others { // the rings are for all: what others do must not push out what this one did
		run("threads SET HISTORY = 'NO' WHERE HISTORY = 'YES' AND THREAD_ID <= %d AND THREAD_ID <> %d AND NOT PROCESSLIST_ID <=> CONNECTION_ID()", last, who.Thread)
	}
	for _, g := range groups {
		if g.synch && !w.Synch {
			continue
		}
		n := len(old.Instruments)
		for _, i := range st.instruments {
			if matches(g.pattern, i.Name) && (i.Enabled != "YES" || i.Timed == "NO") {
				old.Instruments = append(old.Instruments, i)
			}
		}
		if len(old.Instruments) > n {
			run("setup_instruments SET ENABLED = 'YES', TIMED = 'YES' WHERE NAME LIKE '%s'", g.pattern)
		}
	}
	var names []string
	for _, name := range neededConsumers {
		if on, ok := st.consumers[name]; ok && !on {
			old.Consumers[name] = "NO"
			names = append(names, quote(name))
		}
	}
	if len(names) > 0 {
		run("setup_consumers SET ENABLED = 'YES' WHERE NAME IN (%s)", strings.Join(names, ", "))
	}
	return statements, old
}

var neededConsumers = []string{
	"global_instrumentation", "thread_instrumentation",
	"events_statements_current", "events_statements_history_long", "events_stages_current", "events_stages_history_long",
	"events_transactions_current", "events_transactions_history_long", "events_waits_current", "events_waits_history_long",
}

// restore returns the statements that put everything back: first what all connections pay for.
func (o Old) restore() (statements []string) {
	run := func(format string, a ...any) {
		statements = append(statements, "UPDATE /* risso: trace, put back */ performance_schema."+fmt.Sprintf(format, a...))
	}
	by := map[string][]string{}
	for name, v := range o.Consumers {
		by[v] = append(by[v], quote(name))
	}
	each(by, func(v string, names []string) {
		run("setup_consumers SET ENABLED = '%s' WHERE NAME IN (%s)", yesNo(v), strings.Join(names, ", "))
	})
	by = map[string][]string{}
	for _, i := range o.Instruments {
		by[i.Enabled+","+i.Timed] = append(by[i.Enabled+","+i.Timed], quote(i.Name))
	}
	each(by, func(v string, names []string) {
		enabled, timed, _ := strings.Cut(v, ",")
		set := "ENABLED = '" + yesNo(enabled) + "'"
		if timed != "" {
			set += ", TIMED = '" + yesNo(timed) + "'"
		}
		run("setup_instruments SET %s WHERE NAME IN (%s)", set, strings.Join(names, ", "))
	})
	by = map[string][]string{}
	for _, t := range o.Threads {
		by[t.Instrumented+","+t.History] = append(by[t.Instrumented+","+t.History], fmt.Sprint(t.ID))
	}
	each(by, func(v string, ids []string) {
		instrumented, history, _ := strings.Cut(v, ",")
		run("threads SET INSTRUMENTED = '%s', HISTORY = '%s' WHERE THREAD_ID IN (%s)", yesNo(instrumented), yesNo(history), strings.Join(ids, ", "))
	})
	return statements
}

// yesNo lets nothing else into a statement: the values come from a file.
func yesNo(s string) string {
	if s == "YES" {
		return "YES"
	}
	return "NO"
}

func each(m map[string][]string, f func(key string, names []string)) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		slices.Sort(m[k])
		f(k, m[k])
	}
}

// differs says what is not as it was; threads that have ended do not count.
func (o Old) differs(now *State) (diff []string) {
	for name, v := range o.Consumers {
		if now.consumers[name] != (v == "YES") {
			diff = append(diff, "consumer "+name)
		}
	}
	is := map[string]Instrument{}
	for _, i := range now.instruments {
		is[i.Name] = i
	}
	for _, i := range o.Instruments {
		if is[i.Name] != i {
			diff = append(diff, "instrument "+i.Name)
		}
	}
	threads := map[uint64]threadState{}
	for _, t := range now.threads {
		threads[t.ID] = t
	}
	for _, t := range o.Threads {
		if n, ok := threads[t.ID]; ok && n != t {
			diff = append(diff, fmt.Sprintf("thread %d", t.ID))
		}
	}
	slices.Sort(diff)
	return diff
}

// Setup is a server whose instruments Risso has switched on.
type Setup struct {
	Statements []string // that were run
	old        Old
	loan       *change.Loan[Old]
}

// borrowed is what a trace changes on a server for its time.
func borrowed() change.Kind[Old] {
	return change.Kind[Old]{
		Name: "trace", Command: "risso trace --restore", Busy: ErrBusy, Kept: ErrNotRestored, Within: putBackWithin,
		Back: putBack, Statements: Old.restore,
		// An answer of the server is final; a lost connection is not.
		Final: func(err error) bool {
			k := mysql.ClassOf(err)
			return k == mysql.ClassPrivilege || k == mysql.ClassMissing
		},
		// The server may not have noticed yet that the killed one is gone.
		Lock: func(ctx context.Context, c *mysql.Conn) error { return takeLock(ctx, c, 5) },
	}
}

// Left says what a killed trace left switched on, on a server.
type Left = change.Left[Old]

// Restore puts back what a killed trace left switched on; with dryRun it only says what it would run. It returns nil if there
// is nothing to put back.
func Restore(ctx context.Context, target mysql.Target, stateDir string, dryRun bool) (*Left, error) {
	return borrowed().Restore(ctx, target, stateDir, dryRun)
}

// lockName is the server's user lock that a trace holds while instruments are switched on for it.
const lockName = "risso.trace"

func takeLock(ctx context.Context, c *mysql.Conn, seconds int) error {
	got := ""
	err := ask(ctx, c, fmt.Sprintf("SELECT /* risso: one trace at a time */ GET_LOCK('%s', %d)", lockName, seconds), func(row []sqldriver.Value) error {
		got = mysql.Text(row[0])
		return nil
	})
	if err == nil && got != "1" {
		err = ErrBusy
	}
	return err
}

// DryRun returns the statements that Enable would run.
func DryRun(ctx context.Context, target mysql.Target, id int64, w Wanted) ([]string, error) {
	c, err := connect(ctx, target)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	who, err := find(ctx, c, id)
	if err != nil {
		return nil, err
	}
	st, err := ReadState(ctx, c)
	if err != nil {
		return nil, err
	}
	statements, _ := Plan(st, who, w)
	return statements, nil
}

// Enable switches on what a trace of one connection needs; say is called with each statement before it runs. What was there before
// is on disk before the first change. When it fails it has put back what it had changed.
func Enable(ctx context.Context, c *mysql.Conn, target mysql.Target, who Connection, w Wanted, stateDir string, say func(string)) (*Setup, error) {
	if err := takeLock(ctx, c, 2); err != nil { // the server may need a moment to see that another connection ended
		return nil, fmt.Errorf("make sure that no other trace changes the instruments: %w", err)
	}
	started, err := read.Started(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("ask since when the server runs: %w", err)
	}
	st, err := ReadState(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &Setup{}
	s.Statements, s.old = Plan(st, who, w)
	if s.loan, err = borrowed().Borrow(stateDir, target, c.Server, started, s.old); err != nil {
		return nil, err
	}
	var plan change.Plan
	for _, sql := range s.Statements {
		plan = append(plan, change.Step{What: sql, Do: func(ctx context.Context) error {
			if err := ask(ctx, c, sql, nothing); err != nil {
				return needs(c, "switch instruments on", err)
			}
			return nil
		}})
	}
	err = s.loan.Execute(ctx, c, plan, change.Log{Before: func(_ int, st change.Step) error {
		say(st.What)
		return nil
	}})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func nothing([]sqldriver.Value) error { return nil }

// putBackWithin is how long PutBack tries to reach a server that went away.
const putBackWithin = 20 * time.Second

// PutBack restores every old value, regardless of ctx and of the connection, and makes sure of it by reading. It returns the
// connection that works. When it fails the journal stays, for risso trace --restore.
func (s *Setup) PutBack(ctx context.Context, c *mysql.Conn) (*mysql.Conn, error) {
	return s.loan.Return(ctx, c)
}

func putBack(ctx context.Context, c *mysql.Conn, old Old) error {
	var failed error
	for _, sql := range old.restore() {
		if err := ask(ctx, c, sql, nothing); err != nil && failed == nil {
			failed = needs(c, "put back", err)
		}
	}
	now, err := ReadState(ctx, c)
	if err != nil {
		return err
	}
	// What could not be written may never have been changed.
	if diff := old.differs(now); len(diff) > 0 {
		if failed != nil {
			return failed
		}
		return fmt.Errorf("still not as before: %s", strings.Join(diff[:min(len(diff), 10)], ", "))
	}
	return nil
}

// Summary says what was put back.
func (s *Setup) Summary() string { return "put back: " + s.old.Words() }

// Words says how much of it is put back.
func (o Old) Words() string {
	return fmt.Sprintf("%s, %s, %s are as before", digits.Counted(len(o.Consumers), "consumer"), digits.Counted(len(o.Instruments), "instrument"), digits.Counted(len(o.Threads), "connection"))
}
