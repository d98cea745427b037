package turn

import (
	"context"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/change"
)

// Line is one of a journal.
type Line struct {
	Time  time.Time   `json:"time"`
	Step  string      `json:"step,omitempty"`
	State string      `json:"state"` // begun, done, failed or finished
	Undo  []Statement `json:"undo,omitempty"`
}

// Run carries a plan out with a journal in the folder of the options, and says where that is. Undo says then how to go back.
func (t *Turn) Run(ctx context.Context) (journal string, err error) {
	d, err := change.NewDiary(t.g.o.State, "semisync")
	if err != nil {
		return "", err
	}
	defer d.Close()
	note := func(step, state string) error { return d.Note(Line{time.Now().UTC(), step, state, t.undo}) }
	last := ""
	done, err := change.Execute(ctx, t.Plan, change.Log{
		Before: func(_ int, s change.Step) error { last = s.String(); return note(last, "begun") },
		After:  func(_ context.Context, s change.Step) error { return note(s.String(), "done") },
	})
	state := "finished"
	if err != nil {
		state, err = "failed", fmt.Errorf("%d of %d steps done: %w", done, len(t.Plan), err)
	}
	if e := note(last, state); e != nil && err == nil {
		err = e
	}
	return d.Path(), err
}

// Undo are the statements that undo what was done so far, in this order.
func (t *Turn) Undo() []Statement { return t.undo }
