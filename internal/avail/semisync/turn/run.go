package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Line is one of a journal.
type Line struct {
	Time  time.Time   `json:"time"`
	Step  string      `json:"step,omitempty"`
	State string      `json:"state"` // begun, done, failed or finished
	Undo  []Statement `json:"undo,omitempty"`
}

// targets are the primary, which was a replica perhaps, and the replicas.
func (g *Group) targets() []mysql.Target {
	list := []mysql.Target{g.o.Primary}
	for _, r := range g.replicas {
		list = append(list, r.target)
	}
	return list
}

// Left is what a killed process left, in words: super_read_only that is off.
func (g *Group) Left(ctx context.Context) (list []string) {
	for _, t := range g.targets() {
		if err := lent().Waits(ctx, t, g.o.State); err != nil {
			list = append(list, fmt.Sprintf("%s of %s is off: %v; the next risso semisync on or off puts it back", guarded, nameOf(t), err))
		}
	}
	return list
}

// putBack gives servers back their super_read_only, which a killed process may have left off.
func (g *Group) putBack(ctx context.Context) error {
	for _, t := range g.targets() {
		if _, err := lent().Restore(ctx, t, g.o.State, false); err != nil {
			return fmt.Errorf("put %s of %s back: %w", guarded, nameOf(t), err)
		}
	}
	return nil
}

// Run carries a plan out with a journal in the folder of the options, and says where that is. Undo says then how to go back.
func (t *Turn) Run(ctx context.Context) (journal string, err error) {
	if err := t.g.putBack(ctx); err != nil {
		return "", err
	}
	d, err := change.NewDiary(t.g.o.State, "semisync")
	if err != nil {
		return "", err
	}
	defer d.Close()
	note := func(step, state string) error { return d.Note(Line{time.Now().UTC(), step, state, t.undo}) }
	last := ""
	done, err := change.Execute(ctx, t.Plan, change.Log{
		Before: func(i int, s change.Step) error {
			if f := t.before[i]; f != nil {
				if err := f(ctx); err != nil {
					return err
				}
			}
			last = s.String()
			return note(last, "begun")
		},
		After: func(_ context.Context, s change.Step) error { return note(s.String(), "done") },
	})
	state := "finished"
	if err != nil {
		state, err = "failed", fmt.Errorf("%d of %d steps done: %w", done, len(t.Plan), err)
		if t.takesBack {
			err = t.takeBack(ctx, err)
		}
	}
	if e := note(last, state); e != nil && err == nil {
		err = e
	}
	return d.Path(), err
}

// takeBack takes back what was set on the primary, by a new connection: it would wait, without end, for replicas that may not be there. The time-out comes before what it
// depends on, as it was set after that.
func (t *Turn) takeBack(ctx context.Context, failed error) error {
	name := nameOf(t.g.o.Primary)
	var here, elsewhere []Statement
	for _, u := range t.undo {
		if u.Server == name {
			here = append(here, u)
		} else {
			elsewhere = append(elsewhere, u)
		}
	}
	if len(here) == 0 {
		return failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backTime)
	defer cancel()
	c, err := again(ctx, t.g.o.Primary, t.g.session)
	if err == nil {
		_ = t.g.primary.Close()
		t.g.primary = c
	}
	var words []string
	for _, u := range here {
		words = append(words, u.Statement)
		for one := range strings.SplitSeq(u.Statement, "; ") {
			if c != nil {
				err = errors.Join(err, c.Exec(ctx, one))
			}
		}
	}
	if err != nil {
		return fleet.WithRemedy(errors.Join(failed, fmt.Errorf("what was set on the primary could not be taken back, and writes may wait: %w", err)), strings.Join(words, "; ")+" on the primary")
	}
	t.undo = elsewhere
	return fmt.Errorf("%w; what was set on the primary was taken back", failed)
}

// backTime is how long it is tried.
const backTime = time.Minute

// again connects to a server once more, when what a session of ours does there is over: a statement goes on though its connection ended.
func again(ctx context.Context, target mysql.Target, session string) (*mysql.Conn, error) {
	for {
		c, err := mysql.Connect(ctx, target.WithPatience(patience), nil)
		if err == nil {
			err = ended(ctx, c, session)
			if err == nil {
				return c, nil
			}
			_ = c.Close()
		}
		if mysql.Answered(err) {
			return nil, err
		}
		if werr := delay.For(ctx, 300*time.Millisecond); werr != nil {
			return nil, err
		}
	}
}

// ended waits until a session runs no statement any more.
func ended(ctx context.Context, c *mysql.Conn, session string) error {
	for {
		rows, err := c.Maps(ctx, "SHOW /* risso: is it still at work? */ PROCESSLIST")
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(rows, func(row map[string]string) bool { return row["Id"] == session && row["Command"] != "Sleep" }) {
			return nil
		}
		if err := delay.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// sessionOf is the number of a connection on its server.
func sessionOf(ctx context.Context, c *mysql.Conn) (string, error) {
	return c.Text(ctx, "SELECT /* risso: which session is this? */ CONNECTION_ID()")
}

// Undo are the statements that undo what was done so far, in this order.
func (t *Turn) Undo() []Statement { return t.undo }
