package binlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// ReapplySchema is where a server keeps which transactions of another one were applied to it by Reapply. It stays, is replicated and backed up: so none is
// applied twice, not even after the next failover.
const ReapplySchema = "risso_receipt"

// mostReapplied are applied by one plan.
const mostReapplied = 100_000

// ReapplyOptions say which transactions are applied to which server, which has had others since.
type ReapplyOptions struct {
	Pick
	Into      mysql.Target
	Who       string        // asks for it
	Unchecked bool          // also what cannot be compared with what is there now
	Pending   PendingPolicy // what to do about a statement of which it is unknown whether it ran
}

// ReapplyState is what becomes, or became, of a transaction.
type ReapplyState string

// The states.
const (
	ReapplyFree      ReapplyState = "free"      // nothing is against it
	ReapplyThere     ReapplyState = "there"     // it was applied before
	ReapplyPending   ReapplyState = "pending"   // it was begun, and it is not known whether it was done
	ReapplyUnchecked ReapplyState = "unchecked" // something in it cannot be compared with what is there now
	ReapplyConflict  ReapplyState = "conflict"  // it does not fit what is there now
	ReapplyDone      ReapplyState = "applied"
)

// Reapplied is a transaction of a plan.
type Reapplied struct {
	GTID      mysql.GTID   `json:"gtid"`
	State     ReapplyState `json:"state"` // free, there, pending, unchecked, conflict, applied
	Rows      int64        `json:"rows"`
	Conflicts []Conflict   `json:"conflicts,omitempty"`
	More      int          `json:"more_conflicts,omitempty"`
	By        string       `json:"by,omitempty"` // who applied it before
	At        string       `json:"at,omitempty"`
}

// settle says what becomes of it by what was found.
func (r *Reapplied) settle() {
	if r.State != "" {
		return
	}
	r.State = ReapplyFree
	for _, c := range r.Conflicts {
		if !c.Unchecked {
			r.State = ReapplyConflict
			return
		}
		r.State = ReapplyUnchecked
	}
}

// ReapplyPlan is what Execute would do.
type ReapplyPlan struct {
	Transactions []Reapplied `json:"transactions"` // in the order of the logs
	Notes        []string    `json:"notes,omitempty"`
	o            ReapplyOptions
}

// Errors of Reapply.
var (
	ErrReapplyConflict = errors.New("rows are not as they were")
	ErrReapplied       = errors.New("it was applied before")
)

// PlanReapply compares what transactions changed with what is on the server now, and changes nothing.
func PlanReapply(ctx context.Context, o ReapplyOptions) (*ReapplyPlan, error) {
	p := &ReapplyPlan{o: o, Transactions: []Reapplied{}}
	c, err := mysql.Connect(ctx, o.Into, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	s, err := connectReplayer(ctx, o.Into)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.Exec(ctx, guardSession); err != nil {
		return nil, err
	}
	had, err := reapplied(ctx, c)
	if err != nil {
		return nil, err
	}
	g := newGuard(c, s.s.Query)
	missed, err := o.walk(ctx, func(x picked) error { return p.take(ctx, c.Server, g, had, x) })
	if err != nil {
		return nil, err
	}
	for _, m := range missed {
		p.Notes = append(p.Notes, "not all of the logs could be read: "+m)
	}
	p.Notes = append(p.Notes, g.tables.notes...)
	return p, nil
}

// newGuard asks over a connection what tables are like, and by ask about rows.
func newGuard(c *mysql.Conn, ask func(context.Context, string, func([][]byte) error) error) *guard {
	g := &guard{ask: ask, tables: newRowTables(NewLive(c).Columns), touched: map[[16]byte]bool{}, made: map[string]bool{}}
	g.relearn = func() Columns { return NewLive(c).Columns }
	g.exists = func(ctx context.Context, schema, table string) (bool, error) {
		_, ok := NewLive(c).Columns(ctx, schema, table)
		return ok, nil
	}
	return g
}

// reapplied are the transactions that were applied to a server before.
func reapplied(ctx context.Context, c *mysql.Conn) (map[string]Reapplied, error) {
	rows, err := c.Maps(ctx, "SELECT /* risso: what was applied before? */ gtid, state, who, DATE_FORMAT(at, '%Y-%m-%dT%H:%i:%sZ') AS at FROM "+ReapplySchema+".applied")
	if mysql.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask which transactions were applied before: %w", err)
	}
	out := map[string]Reapplied{}
	for _, r := range rows {
		x := Reapplied{State: ReapplyThere, By: r["who"], At: r["at"]}
		if r["state"] != "done" {
			x.State = ReapplyPending
		}
		out[r["gtid"]] = x
	}
	return out, nil
}

// take looks at an event.
func (p *ReapplyPlan) take(ctx context.Context, s mysql.Server, g *guard, had map[string]Reapplied, x picked) error {
	if x.Type == binlogevent.TypeFormatDescription {
		if wrote := x.format.Server(); !s.SameKind(wrote) {
			return fmt.Errorf("%w: the logs are of %s, the server is %s", ErrTarget, wrote.Version, s.Version)
		}
		g.tables.begin(x.format)
		return nil
	}
	id := x.at.GTID.ID
	if x.began || len(p.Transactions) == 0 {
		if len(p.Transactions) == mostReapplied {
			return fmt.Errorf("more than %d transactions: name fewer", mostReapplied)
		}
		r := Reapplied{GTID: id}
		if was, ok := had[id.String()]; ok {
			r.State, r.By, r.At = was.State, was.By, was.At
		}
		p.Transactions = append(p.Transactions, r)
	}
	t := &p.Transactions[len(p.Transactions)-1]
	if x.cut {
		t.State, t.Conflicts = ReapplyConflict, append(t.Conflicts, Conflict{Because: x.file + " ends in its middle: only its beginning is there"})
		return nil
	}
	if t.State == "" {
		if x.began && x.at.GTID.Prepares != nil || x.Type == binlogevent.TypeXAPrepare {
			g.conflict(Conflict{Unchecked: false, Because: "it is a part of an XA transaction: risso binlog apply takes those"})
		}
		if err := g.event(ctx, t, x); err != nil {
			return err
		}
		list, more := g.take()
		for _, c := range list {
			if len(t.Conflicts) < mostConflicts {
				t.Conflicts = append(t.Conflicts, c)
			} else {
				t.More++
			}
		}
		t.More += more
	}
	if x.ended {
		t.settle()
	}
	return nil
}

// event compares what an event changes.
func (g *guard) event(ctx context.Context, t *Reapplied, x picked) error {
	switch {
	case x.Type == binlogevent.TypeTableMap:
		return g.tables.add(ctx, x.Event)
	case x.Type.IsRows():
		if table, err := g.tables.of(x.Event); err == nil && table != nil && table.Err == nil {
			if n, err := binlogevent.CountRows(x.format, x.Event, &table.Table, 1<<31); err == nil {
				t.Rows += n
			}
		}
		return g.rows(ctx, x.Event)
	case x.Type == binlogevent.TypeQuery || x.Type == binlogevent.TypeQueryZip:
		q, err := binlogevent.ParseQuery(x.Event)
		if err != nil || binlogevent.FrameOf(q.Text) != binlogevent.FrameNone {
			return err
		}
		return g.statement(ctx, q)
	case x.Type == binlogevent.TypeBeginLoadQuery || x.Type == binlogevent.TypeExecuteLoadQuery || x.Type == binlogevent.TypeIncident:
		g.conflict(Conflict{Because: "it has a LOAD DATA that was logged as a statement, or an incident: nobody can apply those"})
	}
	return nil
}

// Obstacle is why the plan is not carried out; nil: nothing is against it.
func (p *ReapplyPlan) Obstacle() error {
	var free, there, against []string
	var pending string
	for _, t := range p.Transactions {
		switch t.State {
		case ReapplyThere:
			there = append(there, fmt.Sprintf("%s by %s at %s", t.GTID, t.By, t.At))
		case ReapplyPending:
			if p.o.Pending == PendingRefuse {
				pending = t.GTID.String()
			}
		case ReapplyConflict:
			against = append(against, t.GTID.String())
		case ReapplyUnchecked:
			if !p.o.Unchecked {
				against = append(against, t.GTID.String())
				continue
			}
			free = append(free, t.GTID.String())
		default:
			free = append(free, t.GTID.String())
		}
	}
	switch {
	case len(p.Transactions) == 0:
		return fmt.Errorf("%w", ErrNoTransaction)
	case pending != "":
		return fmt.Errorf("%w: %s", ErrPending, pending)
	case len(there) > 0:
		return fmt.Errorf("%w: %s", ErrReapplied, strings.Join(firstFew(there), "; "))
	case len(against) > 0:
		text := fmt.Sprintf("%s cannot be applied: %s", digits.Counted(len(against), "transaction"), strings.Join(firstFew(against), ", "))
		if len(free) > 0 {
			text += "; nothing is against " + strings.Join(firstFew(free), ", ")
		}
		return fmt.Errorf("%w: %s", ErrReapplyConflict, text)
	}
	return nil
}

func firstFew(list []string) []string {
	const most = 5
	if len(list) > most {
		return append(slices.Clone(list[:most]), fmt.Sprintf("%d more", len(list)-most))
	}
	return list
}

// Steps are what Execute does.
func (p *ReapplyPlan) Steps() change.Plan {
	steps := change.Plan{{What: "make table", Where: ReapplySchema + ".applied", Why: "if it is not there; it keeps which transactions were applied, so that none is applied twice"}}
	for _, t := range p.Transactions {
		why := digits.Counted(t.Rows, "row")
		switch {
		case t.State == ReapplyThere:
			continue
		case t.State == ReapplyPending && p.o.Pending == PendingDone:
			steps = append(steps, change.Step{What: "note", Where: t.GTID.String(), Why: "it was done"})
			continue
		case t.State == ReapplyUnchecked:
			why += ", something of it not compared with what is there"
		}
		steps = append(steps, change.Step{What: "apply", Where: t.GTID.String(), Why: why})
	}
	return steps
}

// reapplyMark notes in the transaction itself that it was applied.
type reapplyMark struct {
	who     string
	running bool // of the transaction in hand it is noted that it began
}

func (m *reapplyMark) has(string, int64) bool { return false }

func (m *reapplyMark) save(_ Place, g mysql.GTID) string {
	if m.running {
		m.running = false
		return "UPDATE " + ReapplySchema + ".applied SET state = 'done' WHERE gtid = '" + g.String() + "'"
	}
	return m.insert(g, "done")
}

func (m *reapplyMark) insert(g mysql.GTID, state string) string {
	at := time.Now().UTC().Format(time.DateTime) // the server's clock is that of the transaction meanwhile
	return fmt.Sprintf("INSERT INTO %s.applied (gtid, state, who, at) VALUES ('%s', '%s', X'%x', '%s')", ReapplySchema, g, state, m.who, at)
}

func (m *reapplyMark) pending(p Place, _ []byte) string {
	if m.running {
		return "DO 0"
	}
	m.running = true
	return m.insert(p.GTID, "running")
}

func (m *reapplyMark) drop(context.Context, *replayer) error { return nil }

// Execute applies the transactions of the plan one by one, each in a transaction of its own with a new GTID, and compares its rows once more, under locks. It ends
// at the first that does not fit; those before it stay applied. done is called after each.
func (p *ReapplyPlan) Execute(ctx context.Context, done func(mysql.GTID)) error {
	if err := p.Obstacle(); err != nil {
		return err
	}
	c, err := mysql.Connect(ctx, p.o.Into, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	a := &applier{o: RollOptions{Into: p.o.Into}, plan: &Plan{}}
	if err := a.connect(ctx); err != nil {
		if a.s != nil {
			a.s.Close()
		}
		return err
	}
	defer func() { a.s.Close() }()
	mark := &reapplyMark{who: p.o.Who}
	if err := p.begin(ctx, c, a, mark); err != nil {
		return err
	}
	a.j = mark
	g := newGuard(c, func(ctx context.Context, statement string, row func([][]byte) error) error {
		if err := a.s.Exec(ctx, guardSession); err != nil {
			return err
		}
		return a.s.s.Query(ctx, statement, row)
	})
	g.lock = " FOR UPDATE"
	r := &reapplier{p: p, a: a, g: g, c: c, left: map[mysql.GTID]*Reapplied{}}
	for i := range p.Transactions {
		if t := &p.Transactions[i]; t.State != ReapplyDone {
			r.left[t.GTID] = t
		}
	}
	pick := p.o.Pick
	pick.Wanted = func(id mysql.GTID) bool { return r.left[id] != nil }
	_, err = pick.walk(ctx, func(x picked) error {
		err := r.take(ctx, x)
		if err == nil && x.ended {
			done(x.at.GTID.ID)
		}
		return err
	})
	return err
}

// begin makes the table of what was applied, and settles what a process that was killed left open. It holds the lock of all who apply logs.
func (p *ReapplyPlan) begin(ctx context.Context, c *mysql.Conn, a *applier, mark *reapplyMark) error {
	err := a.s.Exec(ctx, "CREATE DATABASE IF NOT EXISTS "+ReapplySchema+`;
CREATE TABLE IF NOT EXISTS `+ReapplySchema+`.applied (gtid VARCHAR(190) CHARACTER SET ascii PRIMARY KEY, state VARCHAR(10) CHARACTER SET ascii NOT NULL,
 who VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL, at DATETIME NOT NULL) ENGINE=InnoDB COMMENT 'transactions of a lost primary that risso receipt apply applied: so none is applied twice'`)
	if err != nil {
		return fmt.Errorf("make the table of what was applied: %w", err)
	}
	had, err := reapplied(ctx, c)
	if err != nil {
		return err
	}
	for i := range p.Transactions {
		t := &p.Transactions[i]
		was, ok := had[t.GTID.String()]
		switch {
		case !ok:
		case was.State == ReapplyThere:
			return fmt.Errorf("%w: %s by %s at %s", ErrReapplied, t.GTID, was.By, was.At)
		case p.o.Pending == PendingDone:
			err = a.s.Exec(ctx, "UPDATE "+ReapplySchema+".applied SET state = 'done' WHERE gtid = '"+t.GTID.String()+"'")
			t.State = ReapplyDone
		case p.o.Pending == PendingAgain:
			err = a.s.Exec(ctx, "DELETE FROM "+ReapplySchema+".applied WHERE gtid = '"+t.GTID.String()+"'")
		default:
			return fmt.Errorf("%w: %s", ErrPending, t.GTID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reapplier carries a plan out.
type reapplier struct {
	p    *ReapplyPlan
	a    *applier
	g    *guard
	c    *mysql.Conn
	left map[mysql.GTID]*Reapplied
	file string
}

func (r *reapplier) take(ctx context.Context, x picked) error {
	a := r.a
	if x.Type == binlogevent.TypeFormatDescription || x.file != r.file {
		r.file, a.file, a.b = x.file, x.file, binlogevent.Boundaries{}
	}
	a.format, a.plan.source = x.format, mysql.Of(x.format.Server())
	if x.Type == binlogevent.TypeFormatDescription {
		r.g.tables.begin(x.format)
		return a.event(ctx, x.Event)
	}
	t := r.left[x.at.GTID.ID]
	err := r.event(ctx, t, x)
	if err == nil && x.ended {
		if err = a.flush(ctx); err == nil {
			t.State = ReapplyDone
			r.g.forget()
			return nil
		}
	}
	if err == nil {
		return nil
	}
	a.sql.Reset()
	a.open, a.rows = false, batch{}
	rctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer stop()
	if rerr := a.s.Exec(rctx, "ROLLBACK"); rerr != nil && ctx.Err() == nil {
		err = errors.Join(err, fmt.Errorf("take it back: %w", rerr))
	}
	if n := mysql.ErrorNumber(err); n == errno.KeyNotFound || n == errno.DuplicateEntry {
		t.State, err = ReapplyConflict, fmt.Errorf("%w: %w", ErrReapplyConflict, err)
	}
	return err
}

// event compares what an event changes, now that all before it is done, and lets the server apply it.
func (r *reapplier) event(ctx context.Context, t *Reapplied, x picked) error {
	if x.Type.IsRows() && len(r.a.rows.events) == 0 || !x.Type.IsRows() && x.Type != binlogevent.TypeTableMap {
		clear(r.g.touched) // all before it is on the server
	}
	if x.Type.IsRows() {
		if err := r.a.begun(ctx); err != nil { // what is asked is asked within the transaction
			return err
		}
		if err := r.a.flush(ctx); err != nil {
			return err
		}
	}
	if err := r.g.event(ctx, &Reapplied{}, x); err != nil {
		return err
	}
	list, _ := r.g.take()
	for _, c := range list {
		if c.Unchecked && r.p.o.Unchecked {
			continue
		}
		t.State, t.Conflicts = ReapplyConflict, list
		return fmt.Errorf("%w: %s %s: %s", ErrReapplyConflict, c.Table, c.Row, c.Because)
	}
	return r.a.event(ctx, x.Event)
}

// forget lets tables be looked at again, after a transaction that may have made or altered one.
func (g *guard) forget() {
	g.touched, g.made = map[[16]byte]bool{}, map[string]bool{}
	g.tables.forget(g.relearn())
}
