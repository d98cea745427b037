package alerts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/alert"
)

// How messages are tried.
const (
	sendTime  = 30 * time.Second // a receiver has so long to take a message
	testTime  = 15 * time.Second // the same of a test: somebody waits for it
	firstWait = time.Second      // before the second try; each try doubles it
	mostWait  = 5 * time.Minute
	giveUp    = 24 * time.Hour  // older messages are dropped when they fail once more
	leftAfter = time.Minute     // after which a controller that does not lead leaves a message to the one that does
	idleLook  = 5 * time.Second // how often the store is looked at where nobody said that there is a message
)

// courier delivers the messages of one receiver, one after the other, until ctx ends.
func (d *Desk) courier(ctx context.Context, name string) {
	d.mu.Lock()
	there := d.deliver[name]
	d.mu.Unlock()
	var renewed time.Time
	for ctx.Err() == nil {
		wait := d.deliverNext(ctx, name)
		if wait <= 0 {
			continue
		}
		if r, ok := d.receiver(name).(Renewing); ok && d.Lead.Leader() && time.Since(renewed) >= r.Renew() {
			renewed = time.Now()
			d.renew(ctx, name, d.receiver(name))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-there:
		}
		timer.Stop()
	}
}

// renew tells a receiver what still fires of what it was told. It comes between two messages, so that the end of an alert is never before it.
func (d *Desk) renew(ctx context.Context, name string, r Receiver) {
	m := alert.Message{Made: time.Now(), Again: true}
	for _, a := range d.Standing() {
		if told, ok := a.Told[name]; ok && !told.Over && a.Phase == alert.Firing && a.Gone.IsZero() {
			m.Alerts = append(m.Alerts, a.Alert)
		}
	}
	if len(m.Alerts) == 0 {
		return
	}
	sctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	switch err := r.Send(sctx, &m); {
	case err == nil:
		d.works(name, time.Now())
	case ctx.Err() == nil:
		d.fails(name, time.Now(), err)
	}
}

// deliverNext tries the oldest message of a receiver, and says how long to wait until the next look. Messages stay in their order: the end
// of an alert never arrives before its begin.
func (d *Desk) deliverNext(ctx context.Context, name string) time.Duration {
	list, err := d.Facts.WaitingMessages(ctx, name, 1)
	if err != nil {
		if ctx.Err() == nil {
			d.Logger.Warn("messages could not be read", "receiver", name, "err", err)
		}
		return idleLook
	}
	if len(list) == 0 {
		return idleLook
	}
	m := list[0]
	if !d.Lead.Leader() {
		return d.leave(ctx, name, m)
	}
	if wait := time.Until(m.Next); wait > 0 {
		return min(wait, idleLook)
	}
	d.try(ctx, name, &m)
	if ctx.Err() != nil && m.Delivered.IsZero() { // Risso is being stopped: the message is tried again when it is back
		return 0
	}
	// What was sent must be noted, whatever ends meanwhile: else it is sent twice.
	noting, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTime)
	defer cancel()
	for try := 1; ; try++ {
		if err := d.Facts.MessageTried(noting, m); err == nil {
			return 0
		} else if noting.Err() != nil {
			d.Logger.Warn("it could not be noted that a message was sent", "receiver", name, "err", err)
			return idleLook
		}
		_ = delay.For(noting, min(time.Duration(try)*100*time.Millisecond, time.Second))
	}
}

// notLeading is between two looks whether this controller leads now.
const notLeading = 500 * time.Millisecond

// leave leaves a message to the controller that leads: it finds what this one does, and tells it. The newest are kept for a while, so that
// nothing is left untold when that controller ends and this one is the next.
func (d *Desk) leave(ctx context.Context, name string, m state.MessageRow) time.Duration {
	if time.Since(m.Made) < leftAfter {
		return notLeading
	}
	leads, _ := d.Lead.Leading()
	m.Dropped, m.Error = time.Now(), "left to the controller that leads: "+cmp.Or(leads, "unknown")
	if err := d.Facts.MessageTried(ctx, m); err != nil {
		if ctx.Err() == nil {
			d.Logger.Warn("a message could not be left to the controller that leads", "receiver", name, "err", err)
		}
		return idleLook
	}
	return 0
}

// try sends a message once, and notes in it how that went.
func (d *Desk) try(ctx context.Context, name string, m *state.MessageRow) {
	var message alert.Message
	err := json.Unmarshal(m.Body, &message)
	if err != nil {
		m.Dropped, m.Error = time.Now(), "it cannot be read: "+err.Error()
		return
	}
	sctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	r := d.receiver(name)
	if r == nil { // it was taken away a moment ago
		m.Next = time.Now().Add(mostWait)
		return
	}
	err = r.Send(sctx, &message)
	now := time.Now()
	if err == nil {
		m.Delivered, m.Error = now, ""
		d.works(name, now)
		return
	}
	if ctx.Err() != nil {
		return
	}
	m.Error = err.Error()
	if d.Partly != nil && d.Partly(err) {
		m.Delivered = now
		d.Event(fleet.Event{Time: now, Kind: fleet.EventAlert, Severity: fleet.SeverityCritical, Subject: name, Text: fmt.Sprintf("%s did not reach all: %s", name, err)})
		return
	}
	wait := min(firstWait<<min(m.Tries, 12), mostWait)
	if d.Wait != nil {
		wait = min(max(wait, d.Wait(err)), time.Hour)
	}
	m.Next = now.Add(wait)
	if d.Permanent != nil && d.Permanent(err) || now.Sub(m.Made) > giveUp {
		m.Dropped = now
		d.Event(fleet.Event{Time: now, Kind: fleet.EventAlert, Severity: fleet.SeverityCritical, Subject: name,
			Text: fmt.Sprintf("a message was not delivered to %s, and is given up: %s: %s", name, message.Title(120), err)})
		return
	}
	d.fails(name, now, err)
}

// receiver is the one of that name; nil: there is none.
func (d *Desk) receiver(name string) Receiver {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Receivers[name]
}

// fails tells once that a receiver does not take messages.
func (d *Desk) fails(name string, now time.Time, err error) {
	d.mu.Lock()
	known := d.failing[name]
	d.failing[name] = err.Error()
	d.mu.Unlock()
	if known == "" {
		d.Event(fleet.Event{Time: now, Kind: fleet.EventAlert, Severity: fleet.SeverityCritical, Subject: name,
			Text: fmt.Sprintf("%s takes no messages, Risso tries again for %s: %s", name, digits.Span(giveUp), err)})
	}
}

// works tells that a receiver takes messages again.
func (d *Desk) works(name string, now time.Time) {
	d.mu.Lock()
	known := d.failing[name]
	delete(d.failing, name)
	d.mu.Unlock()
	if known != "" {
		d.Event(fleet.Event{Time: now, Kind: fleet.EventAlert, Subject: name, Text: name + " takes messages again"})
	}
}

// Test sends one message that says that it is a test, past the messages that wait.
func (d *Desk) Test(ctx context.Context, name, by string) error {
	r := d.receiver(name)
	if r == nil {
		return fmt.Errorf("receiver %s: %w", name, state.ErrNotFound)
	}
	now := time.Now()
	d.mu.Lock()
	page := d.Policy.Page
	d.mu.Unlock()
	m := alert.Message{ID: fmt.Sprintf("test-%d.%s", now.UnixMicro(), name), Group: fmt.Sprintf("test-%d", now.UnixMicro()), Made: now, Test: true, Source: page,
		Alerts: []alert.Alert{{Key: "risso/test", Finding: "test", Instance: "risso", Server: "Risso", Severity: fleet.SeverityWarning, Phase: alert.Firing, Began: now, Rang: now,
			Trouble: fleet.Trouble{What: "this is a test: nothing is wrong"}}}}
	if by != "" {
		m.Alerts[0].What += "; " + by + " asked for it"
	}
	sctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write down the test: %w", err)
	}
	row := state.MessageRow{ID: m.ID, Receiver: name, Made: now, Body: body}
	if err := r.Send(sctx, &m); err != nil {
		if sctx.Err() != nil && ctx.Err() == nil {
			return fmt.Errorf("receiver %s: no answer within %s", name, digits.Span(testTime))
		}
		return fmt.Errorf("receiver %s: %w", name, err)
	}
	row.Delivered = time.Now()
	return d.Facts.AddMessage(ctx, row)
}

// Delivery is how things are with one receiver.
type Delivery struct {
	Name    string             `json:"name"`
	Waiting int                `json:"waiting"`           // messages that it has not got; at most 1,000 are counted
	Failing string             `json:"failing,omitempty"` // why it takes no messages at present
	Last    []state.MessageRow `json:"-"`                 // the newest messages
}

// Deliveries tells how things are with each receiver.
func (d *Desk) Deliveries(ctx context.Context, last int) ([]Delivery, error) {
	var out []Delivery
	d.mu.Lock()
	names := slices.Clone(d.Policy.Receivers)
	d.mu.Unlock()
	for _, name := range names {
		waiting, err := d.Facts.WaitingMessages(ctx, name, 1000)
		if err != nil {
			return nil, err
		}
		newest, err := d.Facts.LastMessages(ctx, name, last)
		if err != nil {
			return nil, err
		}
		d.mu.Lock()
		out = append(out, Delivery{Name: name, Waiting: len(waiting), Failing: d.failing[name], Last: newest})
		d.mu.Unlock()
	}
	return out, nil
}
