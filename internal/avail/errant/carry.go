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
)

// Doing is what carrying out a plan needs.
type Doing struct {
	Replica, Source func(context.Context) (*mysql.Conn, error) // connect
	Note            func(line any) error                       // journal: a line is on disk before its step
	Before          func(i int, s Step) error                  // called before each step; nil: nothing
	Patience        time.Duration                              // how long replication may take to run again
}

// ErrSurprise is what every error wraps that ends a repair because something is not as planned.
var ErrSurprise = errors.New("not as planned")

// carrier carries out a plan.
type carrier struct {
	*Plan
	patience        time.Duration
	replica, source *mysql.Conn
	fresh           []string // of ForgetTransactions, as things are after replication was stopped
	resets          int
}

// Carry carries the plan out, which was made just now, and stops at the first surprise: the error says how to go back, or on. done is how many steps were done.
func (p *Plan) Carry(ctx context.Context, d Doing) (done int, err error) {
	c := carrier{Plan: p, patience: d.Patience}
	if c.replica, err = d.Replica(ctx); err != nil {
		return 0, err
	}
	defer c.replica.Close()
	if c.source, err = d.Source(ctx); err != nil {
		return 0, err
	}
	defer c.source.Close()
	for pin, conn := range map[Pin]*mysql.Conn{p.Replica: c.replica, p.Source: c.source} {
		if conn.Server.ID != pin.Identity {
			return 0, fmt.Errorf("%w: another server answers as %s now; nothing was changed", ErrSurprise, pin.Name)
		}
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
		err = c.check(ctx)
	} else {
		err = c.ended(done, err)
	}
	told := map[string]any{"time": time.Now().UTC(), "done": done}
	if err != nil {
		told["failed"] = err.Error()
	}
	return done, errors.Join(err, d.Note(told))
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
	if s.kind == stepAgain {
		return c.again(ctx)
	}
	conn := c.source
	if s.replica {
		conn = c.replica
	}
	if s.kind == stepEmpty {
		has, err := conn.Text(ctx, "SELECT /* risso: has it come meanwhile? */ GTID_SUBSET("+mysql.Literal(s.gtid.String())+", @@GLOBAL.gtid_executed)")
		if err == nil && has == "1" {
			err = fmt.Errorf("%w: %s has %s by now", ErrSurprise, s.Server, s.gtid)
		}
		if err != nil {
			return err
		}
	}
	for _, text := range c.statements(s) {
		if err := conn.Exec(ctx, text); err != nil {
			return fmt.Errorf("%s: %s: %w", s.Server, text, err)
		}
	}
	if s.kind == stepReset {
		c.resets++
	}
	return nil
}

// again reads both servers after replication was stopped.
func (c *carrier) again(ctx context.Context) error {
	r, err := Read(ctx, c.Replica.Name, c.replica)
	if err != nil {
		return err
	}
	s, err := Read(ctx, c.Source.Name, c.source)
	if err != nil {
		return err
	}
	e, err := mysql.ErrantTransactions(r.Executed, s.Executed)
	state, serr := mysql.ParseBinlogState(r.Executed)
	switch {
	case err != nil || serr != nil:
		return errors.Join(err, serr)
	case !e.Equal(c.errant):
		return fmt.Errorf("%w: %s has %s beyond its source now, not %s", ErrSurprise, r.Name, e, c.Errant)
	case r.Replicas != 0:
		return fmt.Errorf("%w: somebody reads the binary log of %s now", ErrSurprise, r.Name)
	}
	c.fresh = c.replica.Server.ForgetTransactions(e.Without(state), r.Position)
	return nil
}

// ended says how things are after an error in the midst.
func (c *carrier) ended(done int, err error) error {
	if done == 0 && c.Steps[0].kind != stepPlain {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	how := ""
	switch {
	case c.Method == MethodEmpty:
		how = fmt.Sprintf("%d of %d transactions are done, the one that failed perhaps: they change nothing and need no way back; plan again, which leaves out what is done", done, len(c.Steps))
	case c.resets == 0 && c.Steps[done].kind != stepReset:
		how = fmt.Sprintf("nothing but replication was changed. To go back, on %s: %s", c.Replica.Name, c.startAgain())
	default:
		how = fmt.Sprintf("the binary log of %s is gone, or may be, and there is no way back to it. To go on, on %s: %s; then risso gtid errant", c.Replica.Name, c.Replica.Name, strings.Join(append(append([]string(nil), c.fresh[c.resets:]...), c.startAgain()), "; "))
	}
	return fmt.Errorf("%w; %s", err, how)
}

// startAgain lets the replica replicate as before.
func (c *carrier) startAgain() string {
	var list []string
	for _, s := range c.Steps {
		if s.kind == stepPlain && s.Back != "" {
			list = append(list, s.Back)
		}
	}
	return strings.Join(list, "; ")
}

// check makes sure that what was errant is not any more, and that the replica replicates.
func (c *carrier) check(ctx context.Context) error {
	end := time.Now().Add(c.patience)
	for {
		r, err := Read(ctx, c.Replica.Name, c.replica)
		if err != nil {
			return err
		}
		s, err := Read(ctx, c.Source.Name, c.source)
		if err != nil {
			return err
		}
		e, err := mysql.ErrantTransactions(r.Executed, s.Executed)
		if err != nil {
			return err
		}
		for _, g := range c.errant.Numbers(mostEmpty) {
			if e.Contains(g) {
				return fmt.Errorf("%w: all steps are done, and %s is still only on %s", ErrSurprise, g, r.Name)
			}
		}
		for o := range c.errant.State {
			if n, still := e.State[o]; still {
				return fmt.Errorf("%w: all steps are done, and %s has still %d-%d-%d beyond its source", ErrSurprise, r.Name, o.Domain, o.Server, n)
			}
		}
		if c.Method != MethodForget { // nothing of replication was touched
			return nil
		}
		trouble := ""
		for _, ch := range r.Channels {
			if !ch.IORunning || !ch.SQLRunning {
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
