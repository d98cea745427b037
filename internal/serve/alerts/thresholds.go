package alerts

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/alert"
)

// Threshold is one that somebody set while Risso ran.
type Threshold struct {
	alert.Threshold
	ID int64
	By string
	At time.Time
}

// readThresholds reads those that were set.
func (d *Desk) readThresholds(ctx context.Context) error {
	rows, err := d.Facts.Thresholds(ctx)
	if err != nil {
		return err
	}
	list := make([]Threshold, 0, len(rows))
	for _, r := range rows {
		t := Threshold{ID: r.ID, By: r.Who, At: r.At}
		if err := json.Unmarshal(r.Body, &t.Threshold); err != nil {
			return fmt.Errorf("threshold %d: %w", r.ID, err)
		}
		list = append(list, t)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.page = list
	return nil
}

// Thresholds are those that everybody has, those of the config file, and those that were set while Risso ran. Of those that fit, the last counts.
func (d *Desk) Thresholds() (defaults, file []alert.Threshold, page []Threshold) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return alert.Defaults(), slices.Clone(d.Policy.Thresholds), slices.Clone(d.page)
}

// SetThreshold lets a threshold be in force from now on, instead of the one that fits the same. It is an event; by says who did it.
func (d *Desk) SetThreshold(ctx context.Context, t alert.Threshold, by string) (Threshold, error) {
	body, err := json.Marshal(t)
	if err != nil {
		return Threshold{}, fmt.Errorf("write down a threshold: %w", err)
	}
	about, err := json.Marshal(t.Match)
	if err != nil {
		return Threshold{}, fmt.Errorf("write down a threshold: %w", err)
	}
	d.mu.Lock()
	i := slices.IndexFunc(d.page, func(x Threshold) bool { return x.Match == t.Match })
	old := ""
	if i >= 0 {
		old = d.page[i].Words()
	}
	d.mu.Unlock()
	out := Threshold{Threshold: t, By: by, At: time.Now()}
	if out.ID, err = d.Facts.SetThreshold(ctx, state.ThresholdRow{About: string(about), At: out.At, Who: by, Body: body}); err != nil {
		return Threshold{}, err
	}
	if err := d.readThresholds(ctx); err != nil {
		return Threshold{}, err
	}
	d.thresholdChanged(ctx, t.Match, by, old, t.Words())
	return out, nil
}

// DeleteThreshold ends a threshold that was set while Risso ran; state.ErrNotFound: there is none of that number.
func (d *Desk) DeleteThreshold(ctx context.Context, id int64, by string) error {
	d.mu.Lock()
	i := slices.IndexFunc(d.page, func(x Threshold) bool { return x.ID == id })
	var old Threshold
	if i >= 0 {
		old = d.page[i]
	}
	d.mu.Unlock()
	if err := d.Facts.DeleteThreshold(ctx, id); err != nil {
		return err
	}
	if err := d.readThresholds(ctx); err != nil {
		return err
	}
	d.thresholdChanged(ctx, old.Match, by, old.Words(), "")
	return nil
}

// thresholdChanged tells that a threshold is another now; an empty text: there was or is none.
func (d *Desk) thresholdChanged(ctx context.Context, m alert.Match, by, old, is string) {
	text := fmt.Sprintf("%s set the threshold for %s: %s", by, m.Words(), is)
	switch {
	case is == "":
		text = fmt.Sprintf("%s deleted the threshold for %s: %s", by, m.Words(), old)
	case old != "":
		text += " (before: " + old + ")"
	}
	a := state.ActionBy(state.ActorOf(ctx), state.ActionDone, fleet.Event{Subject: "threshold: " + m.Words(), Old: old})
	a.New, a.Text, a.Who = by, text, by
	d.Did(a)
	d.Poke()
}

// WaitingFor says in words how many messages wait for a receiver; "": none.
func (d *Desk) WaitingFor(ctx context.Context, receiver string) string {
	list, err := d.Facts.WaitingMessages(ctx, receiver, 1000)
	if err != nil || len(list) == 0 {
		return ""
	}
	return digits.Counted(len(list), "message") + " that it has not taken stay until a receiver of that name is there again"
}
