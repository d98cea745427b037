package errant

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Doing is what carrying out a plan needs.
type Doing struct {
	Replica, Source mysql.Target              // with the patience that statements may need
	Note            func(line any) error      // diary: a line is on disk before its step
	Before          func(i int, s Step) error // called before each step; nil: nothing
	Patience        time.Duration             // how long replication may take to run again
	Keeper          Keeper
}

// ErrSurprise is what every error wraps that ends a repair because something is not as planned.
var ErrSurprise = errors.New("not as planned")

// carrier carries out a plan.
type carrier struct {
	*Plan
	Doing
	replica, source *mysql.Conn
	session         Session  // on the replica
	fresh           []string // of ForgetTransactions, as things are after replication was stopped
	resets          int      // of these, how many were begun
	committing      bool     // an empty transaction was about to be committed: whether it was is not known

	standing  *change.Loan[Standing]
	resetting *change.Loan[Resetting]
	unsettled error // why the binary log could not be put in order
}

// Carry carries the plan out, which was made just now, and stops at the first surprise: then everything is put in order again, or the error says what does.
// done is how many steps were done.
func (p *Plan) Carry(ctx context.Context, d Doing) (done int, err error) {
	c := carrier{Plan: p, Doing: d}
	defer c.close()
	if err := c.open(ctx); err != nil {
		return 0, err
	}
	var steps change.Plan
	for i := range p.Steps {
		s := p.Steps[i]
		steps = append(steps, change.Step{What: strings.Join(s.Statement, "; "), Where: "on " + s.Server, Why: s.Because, Do: func(ctx context.Context) error { return c.do(ctx, s) }})
	}
	done, err = change.Execute(ctx, steps, change.Log{Before: func(i int, s change.Step) error {
		err := d.Note(map[string]any{"time": time.Now().UTC(), "server": p.Steps[i].Server, "statements": c.statements(p.Steps[i]), "back": p.Steps[i].Back})
		if err == nil && d.Before != nil {
			err = d.Before(i, p.Steps[i])
		}
		return err
	}})
	if err == nil {
		err = errors.Join(c.check(ctx), c.settle(ctx))
	} else {
		err = c.ended(ctx, done, err)
	}
	told := map[string]any{"time": time.Now().UTC(), "done": done}
	if err != nil {
		told["failed"] = err.Error()
	}
	return done, errors.Join(err, d.Note(told))
}

func (c *carrier) close() {
	for _, conn := range []*mysql.Conn{c.replica, c.source} {
		if conn != nil {
			conn.Close()
		}
	}
	c.replica, c.source = nil, nil
}

// open connects, makes sure that the servers are those of the plan, and still what they were, and begins the journals.
func (c *carrier) open(ctx context.Context) (err error) {
	if c.replica, err = mysql.Connect(ctx, c.Doing.Replica, nil); err != nil {
		return err
	}
	if c.source, err = mysql.Connect(ctx, c.Doing.Source, nil); err != nil {
		return err
	}
	for pin, conn := range map[Pin]*mysql.Conn{c.Plan.Replica: c.replica, c.Plan.Source: c.source} {
		if identity(conn.Server) != pin.Identity {
			return fmt.Errorf("%w: another server answers as %s now; nothing was changed", ErrSurprise, pin.Name)
		}
	}
	if err := c.Keeper.Left(ctx, c.Doing.Replica); err != nil {
		return err
	}
	if c.Method != MethodForget {
		s, err := Read(ctx, c.Plan.Source.Name, c.source)
		if err == nil && (len(s.Channels) > 0 || s.ReadOnly) { // since the plan was shown
			err = fmt.Errorf("%w: %s is no primary any more: it replicates from another server, or is read only; nothing was changed", ErrSurprise, s.Name)
		}
		return err
	}
	rights, err := c.replica.Rights(ctx)
	if err != nil {
		return err
	}
	for _, any := range c.replica.Server.ForgetPrivileges(c.rest) {
		if !rights.Have("", "", any...) {
			return fmt.Errorf("the account on %s lacks %s; nothing was changed", c.Plan.Replica.Name, strings.Join(any, " or "))
		}
	}
	started, err := read.Started(ctx, c.replica)
	if err != nil {
		return err
	}
	c.session = Session{c.replica.Server.ConnectionID, started}
	c.standing, err = c.Keeper.standing(func() error { return c.unsettled }).Borrow(c.Keeper.Dir, c.Doing.Replica, c.replica.Server, started, Standing{c.Plan.Replica.Name, c.threads, c.session})
	return err
}

// statements are those of a step, with the positions as they are now.
func (c *carrier) statements(s Step) []string {
	if s.kind == stepReset && c.resets < len(c.fresh) {
		return []string{c.fresh[c.resets]}
	}
	return s.Statement
}

// do does one step.
func (c *carrier) do(ctx context.Context, s Step) error {
	switch s.kind {
	case stepAgain:
		return c.again(ctx)
	case stepEmpty:
		return c.commitEmpty(ctx, s)
	}
	conn := c.source
	if s.replica {
		conn = c.replica
	}
	statements := c.statements(s)
	if s.kind == stepReset {
		c.resets++
	}
	for _, text := range statements {
		if err := conn.Exec(ctx, text); err != nil {
			return fmt.Errorf("%s: %s: %w", s.Server, text, err)
		}
	}
	return nil
}

// commitEmpty commits an empty transaction, after the server has said that this session holds its GTID: then nobody else is given it. Without that, one that was
// committed meanwhile would be passed over without an error, and another transaction would stand under the number.
func (c *carrier) commitEmpty(ctx context.Context, s Step) error {
	c.committing = false
	run := func(ctx context.Context, text string) error {
		if err := c.source.Exec(ctx, text); err != nil {
			return fmt.Errorf("%s: %s: %w", s.Server, text, err)
		}
		return nil
	}
	waits, cancel := context.WithTimeoutCause(ctx, lockPatience, fmt.Errorf("%w: another session of %s holds %s", ErrSurprise, s.Server, s.gtid))
	defer cancel()
	begin, commit := s.Statement[:2], s.Statement[2:] // as EmptyTransaction has them
	for _, text := range begin {
		if err := run(waits, text); err != nil {
			return errors.Join(context.Cause(waits), err)
		}
	}
	owned, err := c.source.Text(ctx, c.source.Server.OwnedQuery())
	if err != nil {
		return err
	}
	if !strings.EqualFold(strings.TrimSpace(owned), s.gtid.String()) {
		for _, text := range []string{"ROLLBACK", c.source.Server.EndOfEmpty()} {
			if err := run(ctx, text); err != nil {
				return err
			}
		}
		return fmt.Errorf("%w: %s has %s by now", ErrSurprise, s.Server, s.gtid)
	}
	c.committing = true
	for _, text := range commit {
		if err := run(ctx, text); err != nil {
			return err
		}
	}
	c.committing = false
	return nil
}

// again reads both servers after replication was stopped, and puts on disk what the next steps are to leave.
func (c *carrier) again(ctx context.Context) error {
	r, err := Read(ctx, c.Plan.Replica.Name, c.replica)
	if err != nil {
		return err
	}
	s, err := Read(ctx, c.Plan.Source.Name, c.source)
	if err == nil && c.direct {
		if err = s.AskGone(ctx, c.source); err == nil {
			if _, err = unapplied(&r, &s); err != nil {
				err = fmt.Errorf("%w: %w", ErrSurprise, err)
			}
		}
	}
	if err != nil {
		return err
	}
	e, err := mysql.ErrantTransactions(r.Executed, s.Executed)
	if err != nil {
		return err
	}
	rest, err := e.Rest(r.Executed, r.Position)
	switch {
	case err != nil:
		return err
	case !e.Equal(c.errant):
		return fmt.Errorf("%w: %s has %s beyond its source now, not %s", ErrSurprise, r.Name, e, c.Errant)
	case r.Replicas != 0:
		return fmt.Errorf("%w: somebody reads the binary log of %s now", ErrSurprise, r.Name)
	}
	log, err := read.SourceNow(ctx, c.replica)
	if err != nil {
		return fmt.Errorf("%s: ask where its binary log ends: %w", r.Name, err)
	}
	c.fresh = c.replica.Server.ForgetTransactions(rest, r.Position)
	c.resetting, err = c.Keeper.resetting().Borrow(c.Keeper.Dir, c.Doing.Replica, c.replica.Server, c.session.Started, Resetting{r.Name, r.Executed, rest, r.Position, fmt.Sprintf("%s:%d", log.Log, log.Pos), c.session})
	return err
}

// settle puts everything in order that was begun, whatever became of the steps, and ends the journals.
func (c *carrier) settle(ctx context.Context) error {
	c.close() // a session that ends gives back its lock
	settled := func(conn *mysql.Conn, err error) error {
		if conn != nil {
			conn.Close()
		}
		return err
	}
	if c.resetting != nil {
		c.unsettled = settled(c.resetting.Return(ctx, nil))
	}
	if c.standing == nil {
		return nil
	}
	err := settled(c.standing.Return(ctx, nil))
	if c.unsettled != nil {
		err = c.unsettled
	}
	if err != nil {
		return fmt.Errorf("%w; %s stands, and is not in order: %s tries it again", err, c.Plan.Replica.Name, c.Keeper.Command)
	}
	return nil
}

// ended says how things are after an error in the midst.
func (c *carrier) ended(ctx context.Context, done int, err error) error {
	if c.Method == MethodEmpty {
		switch {
		case c.committing:
			return fmt.Errorf("%w; %d of %d transactions are done, and whether this one is done is not known: they change nothing and need no way back; plan again, which leaves out what is done", err, done, len(c.Steps))
		case done == 0:
			return fmt.Errorf("%w; nothing was changed", err)
		}
		return fmt.Errorf("%w; %d of %d transactions are done: they change nothing and need no way back; plan again, which leaves out what is done", err, done, len(c.Steps))
	}
	if serr := c.settle(ctx); serr != nil {
		return errors.Join(err, serr)
	}
	if c.resets == 0 {
		return fmt.Errorf("%w; %s is as it was before", err, c.Plan.Replica.Name)
	}
	return fmt.Errorf("%w; the binary log of %s was about to begin anew, or had: what was begun is finished, and it replicates as before; risso gtid errant says whether anything is left", err, c.Plan.Replica.Name)
}

// check makes sure that what was errant is not any more, and that the replica replicates.
func (c *carrier) check(ctx context.Context) error {
	end := time.Now().Add(c.Patience)
	for {
		r, err := Read(ctx, c.Plan.Replica.Name, c.replica)
		if err != nil {
			return err
		}
		s, err := Read(ctx, c.Plan.Source.Name, c.source)
		if err != nil {
			return err
		}
		e, err := mysql.ErrantTransactions(r.Executed, s.Executed)
		if err != nil {
			return err
		}
		if err := c.gone(r.Name, e); err != nil || c.Method != MethodForget { // nothing of replication was touched
			return err
		}
		trouble := ""
		for i, ch := range r.Channels {
			if i < len(c.threads) && !c.threads[i].works(ch) {
				trouble = "replication does not run again: " + ch.LastError
			}
		}
		if trouble == "" {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w: all steps are done, and nothing is errant any more, but on %s %s", ErrSurprise, r.Name, strings.TrimSuffix(trouble, ": "))
		}
		if err := delay.For(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// gone makes sure that nothing of what was errant still is.
func (c *carrier) gone(name string, e mysql.Errant) error {
	if left := c.errant.Set.Intersect(e.Set); !left.Empty() {
		return fmt.Errorf("%w: all steps are done, and %s is still only on %s", ErrSurprise, left, name)
	}
	for o := range c.errant.State {
		if n, still := e.State[o]; still {
			return fmt.Errorf("%w: all steps are done, and %s has still %d-%d-%d beyond its source", ErrSurprise, name, o.Domain, o.Server, n)
		}
	}
	return nil
}
