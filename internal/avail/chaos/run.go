package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/chaos/ledger"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
)

// Cluster is what faults are caused in.
type Cluster interface {
	// Members are the names of the servers.
	Members() []string
	// Find asks where the primary is, as clients do.
	Find(ctx context.Context) (ledger.Server, error)
	// Open makes a pool for an address, and Direct one for a member from its own side of the network; as the clients' account, which is no administrator's.
	Open(address string) (*sql.DB, error)
	Direct(member string) (*sql.DB, error)
	// Target says to whom a fault happens, given who the primary is.
	Target(f Fault, primary string) (string, error)
	// Break causes a fault, and Heal ends it. Heal may be called twice, and for a fault that was not quite caused. It says why the server could not be started any more with the
	// data that it had, so that it got those of the primary; "": it could.
	Break(ctx context.Context, f Fault, target string) error
	Heal(ctx context.Context, f Fault, target string) (damage string, err error)
}

// Operator is a Cluster with somebody who rebuilds members that the group keeps out, because they have transactions that nobody was promised and that the primary has not.
type Operator interface {
	// Tend rebuilds such members, and says which.
	Tend(ctx context.Context) (rebuilt []string, err error)
}

// Run is a run of planned faults.
type Run struct {
	Cluster Cluster
	Faults  []Fault
	Book    *ledger.Book
	// Writers is how many writers follow the primary, and Pause how long each waits between two writes.
	Writers int
	Pause   time.Duration
	// Limit is how long a fault lasts at most while nobody can write; Settle is how long all members may take to be well again after it, and how long a member may be
	// rebuilt, which does not count as a part of that.
	Limit, Settle time.Duration
	// Journal is called before a fault is caused and after it was ended, and has it on disk when it returns.
	Journal func(event string, f Fault, target string) error
	// Failover says that somebody promises to fail the group over: then clients have to be able to write before a fault is ended that they cannot go on with.
	Failover bool
	// GoOn lets a run go on after a loss, to count how often that happens.
	GoOn bool
	// Say tells people what happens; nil: nobody.
	Say func(string)

	checker *ledger.Checker
	pools   map[string]*sql.DB
}

// Event is a fault that happened, and what came of it.
type Event struct {
	Fault  Fault         `json:"fault"`
	Target string        `json:"target"`    // to whom it happened
	At     time.Time     `json:"at"`        // when
	From   time.Duration `json:"from_ns"`   // by the ledger's clock: before it was caused
	Broken time.Duration `json:"broken_ns"` // when it was caused
	Healed time.Duration `json:"healed_ns"` // when it was ended
	Until  time.Duration `json:"until_ns"`  // when all was well again
	// Before and After are the primary before the fault, and when all was well again.
	Before string        `json:"before"`
	After  string        `json:"after"`
	Outage ledger.Outage `json:"outage"`
	Found  ledger.Found  `json:"found"` // on the primary, when all was well again
	Error  string        `json:"error,omitempty"`
	// Rebuilt are members that the group kept out afterwards, for transactions that only they had and nobody was promised, and that were rebuilt; and one that was damaged.
	Rebuilt []string `json:"rebuilt,omitempty"`
	// Damage says why the server to which it happened could not be started any more with the data that it had.
	Damage string `json:"damage,omitempty"`
	// Stuck says that nobody could write until the fault was ended, though a failover was promised.
	Stuck bool `json:"stuck,omitempty"`
	// Unwell says why the group was not well again in time.
	Unwell string `json:"unwell,omitempty"`
}

// errViolation ends a run.
var errViolation = errors.New("a promise was broken")

// note is what a run writes into the ledger besides the writes.
type note struct {
	Event *Event         `json:"event,omitempty"`
	Final []ledger.Found `json:"final,omitempty"` // on each member, at the end
	Plan  *planned       `json:"plan,omitempty"`
	End   string         `json:"end,omitempty"` // why it ended
}

// planned is what a run intends.
type planned struct {
	Seed   uint64  `json:"seed"`
	Faults []Fault `json:"faults"`
	About  []Fact  `json:"about,omitempty"`
}

// Fact is something about the group that a reader of the certificate needs to know.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Do causes the faults, one after the other, until one breaks a promise. What it finds goes into the ledger; Judge reads it there.
func (r *Run) Do(ctx context.Context, seed uint64, names map[uint64]string, facts []Fact) error {
	if r.Say == nil {
		r.Say = func(string) {}
	}
	r.checker, r.pools = ledger.NewChecker(r.Book), map[string]*sql.DB{}
	defer func() {
		for _, db := range r.pools {
			db.Close()
		}
	}()
	if err := r.Book.Note(note{Plan: &planned{Seed: seed, Faults: r.Faults, About: facts}}); err != nil {
		return err
	}
	writing, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	go func() { // ends with writing
		defer close(done)
		r.Book.Write(writing, ledger.Config{Find: r.Cluster.Find, Open: r.Cluster.Open, OpenDirect: r.Cluster.Direct, Names: names,
			Followers: r.Writers, Pause: r.Pause, Direct: r.Cluster.Members()})
	}()
	err := r.faults(ctx)
	stop()
	<-done
	if errors.Is(err, errViolation) || err == nil {
		err = errors.Join(err, r.final(ctx))
	}
	end := "all planned faults were caused"
	if err != nil {
		end = err.Error()
	}
	return errors.Join(err, r.Book.Note(note{End: end}))
}

func (r *Run) faults(ctx context.Context) error {
	if why := r.settle(ctx, 0, nil); why != "" {
		return fmt.Errorf("the group is not well before the first fault: %s", why)
	}
	for _, f := range r.Faults {
		if err := delay.For(ctx, f.Before); err != nil {
			return err
		}
		e, err := r.one(ctx, f)
		if err != nil {
			return err
		}
		if err := r.Book.Note(note{Event: e}); err != nil {
			return err
		}
		r.Say(e.line())
		if why := e.violation(); why != "" && (!r.GoOn || e.Unwell != "") {
			return fmt.Errorf("%w by fault %d (%s): %s", errViolation, f.Number, f.Kind, why)
		}
		if d := r.Book.Copy().Judge().Doubles; len(d) > 0 && !r.GoOn {
			return fmt.Errorf("%w: %s", errViolation, d[0])
		}
	}
	return nil
}

// one causes a fault, waits until clients can write again, ends it, and waits until all is well.
func (r *Run) one(ctx context.Context, f Fault) (*Event, error) {
	s, err := r.Cluster.Find(ctx)
	if err != nil {
		return nil, fmt.Errorf("before fault %d: %w", f.Number, err)
	}
	e := &Event{Fault: f, Before: s.Name, At: time.Now().UTC(), From: r.Book.Now()}
	if e.Target, err = r.Cluster.Target(f, s.Name); err != nil {
		return nil, err
	}
	if err := r.Journal("break", f, e.Target); err != nil {
		return nil, err
	}
	r.Say(fmt.Sprintf("%s [%s]", f, e.Target))
	err = r.Cluster.Break(ctx, f, e.Target)
	e.Broken = r.Book.Now()
	wrote := err == nil && r.hold(ctx, f, e.Broken)
	// It ends even though ctx may be over.
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	damage, herr := r.Cluster.Heal(clean, f, e.Target)
	if e.Damage = damage; damage != "" {
		e.Rebuilt = append(e.Rebuilt, e.Target)
	}
	e.Healed = r.Book.Now()
	if herr == nil {
		herr = r.Journal("heal", f, e.Target)
	}
	if err := errors.Join(err, herr); err != nil {
		return nil, fmt.Errorf("fault %d (%s) on %s: %w", f.Number, f.Kind, e.Target, err)
	}
	e.Stuck = r.Failover && !f.Kind.Harmless() && !wrote
	e.Unwell = r.settle(ctx, e.Healed, &e.Rebuilt)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	e.Until = r.Book.Now()
	e.Outage = r.Book.Copy().Outage(e.From, e.Until)
	return e, r.look(ctx, e)
}

// hold waits until a fault lasted as long as planned, and clients can write, but not longer than the limit. It reports whether they could write at last.
func (r *Run) hold(ctx context.Context, f Fault, broken time.Duration) bool {
	const again = 500 * time.Millisecond // they write again if they do for so long
	for ctx.Err() == nil {
		now := r.Book.Now()
		_, last := r.Book.Count()
		writes := last > broken && now-last < again
		if now-broken >= f.Least && (writes || f.Kind == Stall || now-broken >= r.Limit) { // a stall is over by itself
			return writes
		}
		_ = delay.For(ctx, 20*time.Millisecond)
	}
	return false
}

// settle waits until clients write, and all other members follow and are read-only. It returns what is still missing when it has no patience any more.
func (r *Run) settle(ctx context.Context, since time.Duration, rebuilt *[]string) string {
	began := time.Now()
	o, tended := r.Cluster.(Operator)
	var mark ledger.Ack // members have to reach what was new when all began to be well: those that are a little behind all the time are well
	for {
		why := r.unwell(ctx, since, &mark)
		if why == "" || ctx.Err() != nil || time.Since(began) > r.Settle {
			return why
		}
		if tended && rebuilt != nil {
			busy := time.Now()
			list, err := r.rebuild(ctx, o)
			*rebuilt = append(*rebuilt, list...)
			if err != nil {
				return "a member cannot be rebuilt: " + err.Error()
			}
			if len(list) > 0 {
				began = began.Add(time.Since(busy))
			}
		}
		_ = delay.For(ctx, 200*time.Millisecond)
	}
}

// rebuild lets members be rebuilt, as long as the run may take for that.
func (r *Run) rebuild(ctx context.Context, o Operator) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.Settle, fmt.Errorf("it takes longer than %s", r.Settle))
	defer cancel()
	list, err := o.Tend(ctx)
	if err != nil && ctx.Err() != nil { // not how what it had begun was ended
		err = context.Cause(ctx)
	}
	return list, err
}

// unwell says what is missing now; "" if nothing is.
func (r *Run) unwell(ctx context.Context, since time.Duration, mark *ledger.Ack) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s, err := r.Cluster.Find(ctx)
	if err != nil {
		return "there is no primary: " + err.Error()
	}
	if mark.Server != s.Name {
		a, ok := r.Book.Mark(s.Name)
		if !ok || a.Acked <= since {
			return "clients do not write to " + s.Name
		}
		*mark = a
	}
	var missing []string
	for _, m := range r.Cluster.Members() {
		if m == s.Name {
			continue
		}
		db, err := r.pool(m)
		if err != nil {
			return err.Error()
		}
		var readOnly bool
		if err := db.QueryRowContext(ctx, "SELECT /* risso chaos: is this replica closed to clients? */ @@GLOBAL.read_only").Scan(&readOnly); err != nil {
			missing = append(missing, m+" does not answer: "+err.Error())
			continue
		}
		has, err := r.reaches(ctx, db, *mark)
		switch {
		case err != nil:
			missing = append(missing, m+" does not answer: "+err.Error())
		case !has:
			missing = append(missing, m+" does not follow")
		case !readOnly:
			missing = append(missing, m+" is not read-only")
		}
	}
	return strings.Join(missing, "; ")
}

// reaches reports whether a replica has a row, now or a moment later: the row is a new one.
func (r *Run) reaches(ctx context.Context, db *sql.DB, a ledger.Ack) (bool, error) {
	const moment = time.Second
	for began := time.Now(); ; {
		has, err := r.Book.Has(ctx, db, a)
		if has || err != nil || time.Since(began) > moment {
			return has, err
		}
		if err := delay.For(ctx, 20*time.Millisecond); err != nil {
			return false, err
		}
	}
}

// pool is a member's, for questions.
func (r *Run) pool(member string) (*sql.DB, error) {
	if db, ok := r.pools[member]; ok {
		return db, nil
	}
	db, err := r.Cluster.Direct(member)
	if err != nil {
		return nil, err
	}
	r.pools[member] = db
	return db, nil
}

// look looks on the primary for what was acknowledged.
func (r *Run) look(ctx context.Context, e *Event) error {
	s, err := r.Cluster.Find(ctx)
	if err != nil {
		e.Error = "there is no primary to look for the acknowledged writes on: " + err.Error()
		return nil
	}
	e.After = s.Name
	db, err := r.pool(s.Name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.Settle)
	defer cancel()
	if e.Found, err = r.checker.Check(ctx, db, s.Name, e.Until, false); err != nil {
		e.Error = err.Error()
	}
	return nil
}

// final looks on all members for all that was acknowledged, when nobody writes any more.
func (r *Run) final(ctx context.Context) error {
	var list []ledger.Found
	var errs []error
	ctx, cancel := context.WithTimeout(ctx, r.Settle)
	defer cancel()
	s, err := r.Cluster.Find(ctx)
	if err != nil {
		return fmt.Errorf("there is no primary at the end: %w", err)
	}
	// Writes that were under way when the writers ended may still be committed: all members are to be asked about the same rows.
	if err := delay.For(ctx, time.Second); err != nil {
		return err
	}
	now := r.Book.Now()
	for _, m := range append([]string{s.Name}, r.Cluster.Members()...) {
		if m == s.Name && len(list) > 0 {
			continue
		}
		db, err := r.pool(m)
		if err == nil && m != s.Name {
			r.level(ctx, db)
		}
		var f ledger.Found
		if err == nil {
			f, err = r.checker.Check(ctx, db, m, now, true)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, f)
	}
	return errors.Join(append(errs, r.Book.Note(note{Final: list}))...)
}

// level waits until a replica has the newest row; one that stays behind shows in what it lacks.
func (r *Run) level(ctx context.Context, db *sql.DB) {
	book := r.Book.Copy()
	if len(book.Acks) == 0 {
		return
	}
	newest := book.Acks[len(book.Acks)-1]
	for began := time.Now(); time.Since(began) < r.Settle/2 && ctx.Err() == nil; {
		if has, err := r.Book.Has(ctx, db, newest); err == nil && has {
			return
		}
		_ = delay.For(ctx, 100*time.Millisecond)
	}
}

// line is an event as a line on a terminal.
func (e *Event) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "   outage %s", digits.Span(e.Outage.For))
	if e.After != e.Before {
		fmt.Fprintf(&b, ", primary now %s", e.After)
	}
	if len(e.Rebuilt) > 0 {
		fmt.Fprintf(&b, ", rebuilt %s", strings.Join(e.Rebuilt, ", "))
	}
	if e.Damage != "" {
		fmt.Fprintf(&b, " (%s)", e.Damage)
	}
	fmt.Fprintf(&b, ", lost %d of %s", len(e.Found.Lost), digits.Counted(int64(e.Found.Acknowledged), "acknowledged write"))
	if why := e.violation(); why != "" {
		b.WriteString(": " + why)
	}
	return b.String()
}

// violation says which promise was broken; "" if none was.
func (e *Event) violation() string {
	switch {
	case len(e.Found.Lost) > 0:
		return fmt.Sprintf("%s lost: %s, and so on", digits.Counted(int64(len(e.Found.Lost)), "acknowledged write"), e.Found.Lost[0].Row())
	case e.Stuck:
		return fmt.Sprintf("nobody could write until the fault was ended, after %s: the group was not failed over", digits.Span(e.Healed-e.Broken))
	case e.Unwell != "":
		return "the group was not well again: " + e.Unwell
	case e.Error != "":
		return e.Error
	}
	return ""
}
