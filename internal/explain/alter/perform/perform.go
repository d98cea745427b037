// Package perform carries out a planned ALTER TABLE: with the way written out, with bounded waits for locks, tried again where it would become a
// queue for everybody, and with a journal that says after a kill what it was about.
package perform

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/blockers"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Errors that say what became of it.
var (
	ErrChanged = errors.New("the table has changed since the plan was made")
	ErrBusy    = errors.New("another risso alter run is at work on this server")
	ErrWaits   = errors.New("it did not get its lock")
	errRuns    = errors.New("the ALTER TABLE still runs in the server")
)

// Options say what is done, and how patiently.
type Options struct {
	Target    mysql.Target
	Statement string // with ALGORITHM and LOCK
	Table     mysql.TableName
	RenamedTo *mysql.TableName
	Before    string // the table's definition as the plan has it
	After     string // as it is to be; "" not known
	Instant   bool   // nothing is lost if it is ended at its end
	NotLogged bool   // on this server only: sql_log_bin = 0

	LockWait time.Duration // for its lock at the beginning; then it is taken out of the queue
	EndWait  time.Duration // for its lock at the end, when all its work is at stake
	Retries  int           // how many times it is tried again when it did not get its lock
	Pause    time.Duration // before each

	Dir      string // of the journals
	Say      func(string)
	Progress func(Progress)
}

// Progress is how far it is.
type Progress struct {
	Elapsed time.Duration
	Done    float64 // of Total, as the server counts; 0 of 0: it does not tell
	Total   float64
	Stage   string
}

// Result is what was done.
type Result struct {
	Already bool          `json:"already"` // the table was as it is to be
	Seconds float64       `json:"seconds"`
	Waited  float64       `json:"waited"` // seconds for locks
	Tries   int           `json:"tries"`
	Journal string        `json:"journal,omitempty"` // file that says what was done, and stays
	Notes   []string      `json:"notes"`
	Took    time.Duration `json:"-"`
}

// Left is what a journal says of an ALTER TABLE that was begun.
type Left struct {
	Table      Name   `json:"table"`                // what is altered
	RenamedTo  *Name  `json:"renamed_to,omitempty"` // what it is called then
	Statement  string `json:"statement"`            // as it was sent
	Connection int64  `json:"connection"`           // that does it
	Before     string `json:"before"`               // the table's definition
	After      string `json:"after"`                // as it is to be; empty: not known
	NotLogged  bool   `json:"not_logged,omitempty"` // it is not in the binary log: on this server only
}

// Name is a table's.
type Name struct {
	Schema string `json:"schema"` // of the table
	Name   string `json:"name"`   // of the table in it
}

func (n Name) String() string { return mysql.TableName(n).String() }

// within is how long to try to find out what became of it.
const within = 20 * time.Second

// kind is the journal of an ALTER TABLE: there is nothing to give back, but it is not to be forgotten while it may run.
func kind() change.Kind[Left] {
	return change.Kind[Left]{
		Name: "alter", Command: "risso alter status", Busy: ErrBusy, Within: within,
		Back: func(ctx context.Context, c *mysql.Conn, l Left) error {
			runs, err := running(ctx, c, l)
			if err == nil && runs {
				err = fmt.Errorf("%w, in connection %d", errRuns, l.Connection)
			}
			return err
		},
		Final: func(err error) bool { return errors.Is(err, errRuns) || mysql.ErrorNumber(err) != 0 },
	}
}

// running reports whether the server still runs it.
func running(ctx context.Context, c *mysql.Conn, l Left) (bool, error) {
	s, err := read.SessionStateOf(ctx, c, l.Connection)
	return err == nil && s.There && strings.Contains(s.Statement, "risso: "+alter.Mark), err
}

// run is one ALTER TABLE.
type run struct {
	Options
	c, watch *mysql.Conn
	r        Result
}

// forever is longer than any ALTER TABLE.
const forever = 365 * 24 * time.Hour

// Run carries it out. When ctx ends the ALTER TABLE is ended, and the server takes back what it did.
func Run(ctx context.Context, o Options) (Result, error) {
	r := &run{Options: o}
	if r.Say == nil {
		r.Say = func(string) {}
	}
	if r.Progress == nil {
		r.Progress = func(Progress) {}
	}
	var err error
	if r.c, err = mysql.Connect(ctx, o.Target.WithPatience(forever), nil); err != nil {
		return r.r, err
	}
	defer r.c.Close()
	if r.watch, err = mysql.Connect(ctx, o.Target, nil); err != nil {
		return r.r, err
	}
	defer func() { r.watch.Close() }()
	now, err := definition(ctx, r.watch, o.Table)
	switch {
	case o.After != "" && err == nil && alter.SameTable(now, o.After), o.RenamedTo != nil && mysql.Gone(err) && r.renamed(ctx):
		r.r.Already = true
		return r.r, nil
	case err != nil:
		return r.r, err
	case !alter.SameTable(now, o.Before):
		return r.r, fault.New(fault.Failed, "make the plan again", fmt.Errorf("%w: %s", ErrChanged, o.Table))
	}
	return r.r, r.journaled(ctx)
}

// renamed reports whether the table has its new name, and is as it is to be.
func (r *run) renamed(ctx context.Context) bool {
	now, err := definition(ctx, r.watch, *r.RenamedTo)
	return err == nil && alter.SameTable(now, r.After)
}

func definition(ctx context.Context, c *mysql.Conn, name mysql.TableName) (create string, err error) {
	for _, set := range []string{"SET SESSION /* risso: definitions in full */ sql_quote_show_create = 1, sql_mode = ''", "SET SESSION /* risso: definitions in full */ show_gipk_in_create_table_and_information_schema = 1"} {
		if err := c.Exec(ctx, set); err != nil && mysql.ClassOf(err) != mysql.ClassMissing {
			return "", err
		}
	}
	err = c.Query(ctx, "SHOW /* risso: how is the table now */ CREATE TABLE "+name.String(), func(row []sqldriver.Value) error {
		create = mysql.Text(row[1])
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read the definition of %s: %w", name, err)
	}
	return create, nil
}

// journaled carries it out with a journal around it.
func (r *run) journaled(ctx context.Context) error {
	started, err := read.Started(ctx, r.watch)
	if err != nil {
		return fmt.Errorf("ask since when the server runs: %w", err)
	}
	left := Left{Name(r.Table), (*Name)(r.RenamedTo), r.Statement, r.c.Server.ConnectionID, r.Before, r.After, r.NotLogged}
	loan, err := kind().Borrow(r.Dir, r.Target, r.c.Server, started, left)
	if err != nil {
		return fault.New(fault.Failed, "risso alter status says what became of it", err)
	}
	diary, err := change.NewDiary(r.Dir, "altered")
	if err == nil {
		defer diary.Close()
		r.r.Journal = diary.Path()
		err = diary.Note(map[string]any{"time": time.Now().UTC(), "server": r.Target.Address(), "begins": left})
	}
	if err == nil {
		err = r.tries(ctx)
		done := map[string]any{"time": time.Now().UTC(), "seconds": r.r.Took.Seconds(), "tries": r.r.Tries}
		if err != nil {
			done["failed"] = errno.WithoutValues(err.Error())
		} else {
			done["done"] = true
		}
		err = errors.Join(err, diary.Note(done))
	}
	back, rerr := loan.Return(ctx, r.watch)
	if back != nil {
		r.watch = back
	}
	return errors.Join(err, rerr)
}

// tries tries it until it gets its lock.
func (r *run) tries(ctx context.Context) error {
	sets := []string{"USE " + mysql.Quote(r.Table.Schema), r.c.Server.BoundLocks(max(r.LockWait, r.EndWait) + time.Second)}
	if r.Instant {
		sets[1] = r.c.Server.BoundLocks(r.LockWait + time.Second)
	}
	if r.NotLogged {
		sets = append(sets, r.c.Server.NotLogged())
	}
	for _, set := range sets {
		if err := r.c.Exec(ctx, set); err != nil {
			return fmt.Errorf("prepare the session: %w", err)
		}
	}
	for {
		r.r.Tries++
		began := time.Now()
		err := r.once(ctx)
		r.r.Took = time.Since(began)
		r.r.Seconds = r.r.Took.Seconds()
		switch n := mysql.ErrorNumber(err); {
		case err == nil:
			return r.after(ctx)
		case ctx.Err() != nil:
			return fmt.Errorf("%w: the ALTER TABLE was ended, and the table is as before", context.Cause(ctx))
		case n != errno.LockWaitTimeout && n != errno.QueryInterrupted && n != errno.Deadlock:
			return fmt.Errorf("the server did not do it: %w", err)
		case r.r.Tries > r.Retries:
			return fault.New(fault.Failed, "risso alter plan says who holds locks; or raise --lock-wait or --retries", fmt.Errorf("%w, tried %d times", ErrWaits, r.r.Tries))
		}
		r.Say(fmt.Sprintf("it did not get its lock; again in %s (%d of %d)", r.Pause, r.r.Tries, r.Retries))
		if err := delay.For(ctx, r.Pause); err != nil {
			return fmt.Errorf("%w: the table is as before", context.Cause(ctx))
		}
	}
}

// once sends the statement, and watches it.
func (r *run) once(ctx context.Context) error {
	done := make(chan error, 1)
	go func() {
		done <- r.c.InTheirMode(context.WithoutCancel(ctx), func() error { return r.c.Exec(context.WithoutCancel(ctx), r.Statement) })
	}()
	w := watcher{run: r, began: time.Now()}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			r.r.Waited += w.waited.Seconds()
			return err
		case <-ctx.Done():
			r.end(context.WithoutCancel(ctx))
			return <-done
		case <-tick.C:
			w.look(ctx)
		}
	}
}

// end takes the statement out of the server. The session stays.
func (r *run) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, mysql.KillTime)
	defer cancel()
	kill := "KILL QUERY /* risso: its own ALTER TABLE */ " + strconv.FormatInt(r.c.Server.ConnectionID, 10)
	if r.watch.Exec(ctx, kill) == nil {
		return
	}
	if c, err := mysql.Connect(ctx, r.Target, nil); err == nil { // the watching session may be gone
		_ = c.Exec(ctx, kill)
		c.Close()
	}
}

// watcher looks at a statement that runs.
type watcher struct {
	*run
	began, last time.Time
	worked      time.Duration // that it did something
	waiting     time.Duration // without a break
	waited      time.Duration
	told, ended bool
	shown       time.Time
}

// workedAtAll is how long it must have done something for a wait to be the one at its end: before the first it only opens the table.
const workedAtAll = 300 * time.Millisecond

func (w *watcher) look(ctx context.Context) {
	s, err := read.SessionStateOf(ctx, w.watch, w.c.Server.ConnectionID)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		w.reconnect(ctx)
		return
	}
	now := time.Now()
	step := now.Sub(w.began)
	if !w.last.IsZero() {
		step = now.Sub(w.last)
	}
	w.last = now
	if s.Statement == "" {
		return
	}
	if !s.Waits {
		w.worked += step
		w.waiting, w.told = 0, false
		w.progress(ctx, now)
		return
	}
	w.waiting += step
	w.waited += step
	if !w.told && w.waiting > 500*time.Millisecond {
		w.told = true
		w.Say(w.waitsFor(ctx))
	}
	limit := w.LockWait
	if w.worked > workedAtAll && !w.Instant {
		limit = w.EndWait
	}
	if w.waiting >= limit && !w.ended {
		w.ended = true
		w.Say("it has waited for " + limit.String() + ", and others wait behind it: it is taken out of the queue")
		w.end(ctx)
	}
}

// reconnect gets another session to watch with.
func (w *watcher) reconnect(ctx context.Context) {
	c, err := mysql.Connect(ctx, w.Target, nil)
	if err != nil {
		return
	}
	w.watch.Close()
	w.watch = c
}

// waitsFor names those in the way.
func (w *watcher) waitsFor(ctx context.Context) string {
	list, _, err := read.LockWaits(ctx, w.watch, w.c.Server.ConnectionID)
	if err != nil || len(list) == 0 {
		return "it waits for a metadata lock; the server does not say who holds it"
	}
	l := list[0]
	return "it waits for " + blockers.Lock(&l) + blockers.InTheWay(&l)
}

// progress tells how far it is, once in a while.
func (w *watcher) progress(ctx context.Context, now time.Time) {
	if now.Sub(w.shown) < time.Second {
		return
	}
	w.shown = now
	p := Progress{Elapsed: now.Sub(w.began)}
	if q := w.watch.Server.AlterProgress(w.c.Server.ConnectionID); q != "" {
		_ = w.watch.QuietQuery(ctx, q, func(row []sqldriver.Value) error { // where it is refused only the time is shown
			p.Done, _ = strconv.ParseFloat(mysql.Text(row[0]), 64)
			p.Total, _ = strconv.ParseFloat(mysql.Text(row[1]), 64)
			p.Stage = mysql.Text(row[2])
			return nil
		})
	}
	w.Progress(p)
}

// after looks at what became of it.
func (r *run) after(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	err := r.c.Query(ctx, "SHOW /* risso: what does the server say to it */ WARNINGS LIMIT 5", func(row []sqldriver.Value) error {
		r.r.Notes = append(r.r.Notes, "the server says: "+errno.WithoutValues(mysql.Text(row[2])))
		return nil
	})
	name := r.Table
	if r.RenamedTo != nil {
		name = *r.RenamedTo
	}
	now, derr := definition(ctx, r.watch, name)
	if derr == nil && r.After != "" && !alter.SameTable(now, r.After) {
		r.r.Notes = append(r.r.Notes, "the table is not as the clone became: look at SHOW CREATE TABLE")
	}
	return errors.Join(err, derr)
}
