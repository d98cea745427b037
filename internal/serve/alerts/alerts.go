// Package alerts keeps what rings, and brings it to those who are to hear of it. What follows from a look at the findings is written
// before anybody is told; what is written is told, whatever dies in between.
package alerts

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/agree"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/alert"
)

// Receiver brings a message to one place. An error says whether to try again: see Options.Permanent.
type Receiver interface {
	Send(ctx context.Context, m *alert.Message) error
}

// Renewing is a Receiver that forgets, and is told every now and then what still fires.
type Renewing interface {
	Renew() time.Duration
}

// Options are what a Desk works with.
type Options struct {
	Facts     *state.Store
	Policy    alert.Policy
	Receivers map[string]Receiver       // by the names in Policy.Receivers
	Permanent func(error) bool          // says that trying a message again would not help
	Partly    func(error) bool          // says that a message was delivered, but not to all
	Wait      func(error) time.Duration // how long a receiver asked to wait; 0: it did not
	Instances func() []fleet.Instance
	Because   func() func(state.FindingRecord) (alert.Cause, bool) // as things are: what explains a finding
	Chart     func(*alert.Alert) *alert.Chart
	Last      func(*alert.Alert) time.Time // see alert.Input
	Event     func(fleet.Event)
	Did       func(state.Action) // takes what somebody did; it is written down when this returns
	Lead      agree.Leadership   // nil: this is the only controller
	Now       func() time.Time   // nil: time.Now
	Logger    *slog.Logger
}

// Desk takes findings and rings.
type Desk struct {
	Options
	look    chan struct{} // something was found
	another chan struct{} // the receivers are others

	mu      sync.Mutex               // guards what follows, Policy and Receivers
	deliver map[string]chan struct{} // by receiver: there is a message
	page    []Threshold              // that were set while Risso ran
	state   alert.State
	next    time.Time // when a finding that waits rings; zero: none does
	written []byte
	failing map[string]string // by receiver: why the last try failed
}

// New makes a desk, which remembers what was kept.
func New(ctx context.Context, o Options) (*Desk, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Lead == nil {
		o.Lead = agree.Alone{}
	}
	d := &Desk{Options: o, look: make(chan struct{}, 1), another: make(chan struct{}, 1), deliver: map[string]chan struct{}{}, failing: map[string]string{}}
	for _, name := range o.Policy.Receivers {
		d.deliver[name] = make(chan struct{}, 1)
	}
	if err := d.readThresholds(ctx); err != nil {
		return nil, err
	}
	text, err := o.Facts.AlertingState(ctx)
	if err != nil {
		return nil, err
	}
	if text != nil {
		if err = json.Unmarshal(text, &d.state); err == nil {
			d.written = text
			return d, nil
		}
		d.state = alert.State{}
		o.Event(fleet.Event{Time: time.Now(), Kind: fleet.EventStore, Severity: fleet.SeverityWarning, Subject: "alerts",
			Text: "what Risso remembered of alerts cannot be read; what holds now rings again"})
	}
	d.state.Cursor, err = o.Facts.NewestClosed(ctx) // what was over before there were alerts does not ring
	return d, err
}

// Poke lets the desk look at once.
func (d *Desk) Poke() { poke(d.look) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run looks and delivers until ctx ends.
func (d *Desk) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		const most = time.Second // between two looks
		wake := time.NewTimer(most)
		defer wake.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-wake.C:
			case <-d.look:
			}
			if _, alone := d.Lead.(agree.Alone); !alone { // they may have been set at another controller
				if err := d.readThresholds(ctx); err != nil && ctx.Err() == nil {
					d.Logger.Warn("thresholds could not be read", "err", err)
				}
			}
			if err := d.Look(ctx, d.Now()); err != nil && ctx.Err() == nil {
				d.Logger.Warn("alerts could not be looked at", "err", err)
			}
			wait := most
			if due := d.due(); !due.IsZero() {
				wait = min(max(due.Sub(d.Now()), time.Millisecond), most)
			}
			wake.Reset(wait)
		}
	})
	g.Go(func() error { d.couriers(ctx); return nil })
	return g.Wait()
}

// couriers keeps one courier for each receiver at work until ctx ends.
func (d *Desk) couriers(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	working := map[string]context.CancelFunc{}
	for {
		d.mu.Lock()
		names := slices.Clone(d.Policy.Receivers)
		for _, name := range names {
			if d.deliver[name] == nil {
				d.deliver[name] = make(chan struct{}, 1)
			}
		}
		d.mu.Unlock()
		for name, stop := range working {
			if !slices.Contains(names, name) {
				stop()
				delete(working, name)
			}
		}
		for _, name := range names {
			if working[name] == nil {
				cctx, stop := context.WithCancel(ctx)
				defer stop()
				working[name] = stop
				all.Go(func() { d.courier(cctx, name) })
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-d.another:
		}
	}
}

// Replace lets other receivers and another policy be in force from now on. Messages that wait for a receiver which is no longer there stay
// where they are, and are sent when one of its name is there again.
func (d *Desk) Replace(p alert.Policy, receivers map[string]Receiver) {
	d.mu.Lock()
	d.Policy, d.Receivers = p, receivers
	for name := range d.failing {
		if receivers[name] == nil {
			delete(d.failing, name)
		}
	}
	d.mu.Unlock()
	poke(d.another)
	d.Poke()
}

// policy is what is in force: that of the config file, and the thresholds that were set meanwhile. The caller holds mu.
func (d *Desk) policy() *alert.Policy {
	p := d.Policy
	p.Thresholds = slices.Clone(p.Thresholds)
	for _, t := range d.page {
		p.Thresholds = append(p.Thresholds, t.Threshold)
	}
	return &p
}

// due is when the next finding rings if it goes on; zero: none does.
func (d *Desk) due() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.next
}

// ackSpan is how old acknowledgements may be that are looked at.
const ackSpan = 30 * 24 * time.Hour

// Look looks once at what is wrong, keeps what follows, and lets it be delivered.
func (d *Desk) Look(ctx context.Context, now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next = time.Time{}
	in := alert.Input{Chart: d.Chart, Last: d.Last, Instances: map[string]alert.Seat{}}
	var err error
	if in.Records, _, err = d.Facts.FindingsAfter(ctx, d.state.Cursor); err != nil {
		return err
	}
	if len(in.Records) == 0 && d.state.Idle() {
		return nil
	}
	in.Because = d.Because() // now: what explains a finding is known before that is written down
	if in.Silences, err = d.Silences(ctx, now); err != nil {
		return err
	}
	acks, err := d.Facts.Acks(ctx, now.Add(-ackSpan))
	if err != nil {
		return err
	}
	for _, a := range acks {
		in.Acks = append(in.Acks, alert.Ack(a))
	}
	for _, i := range d.Instances() {
		in.Instances[i.ID] = alert.Seat{Name: i.Name, Group: i.Group}
	}
	decision := d.policy().Look(now, d.state, in)
	d.next = decision.Next
	return d.keep(ctx, decision)
}

// keep writes what follows from a look. What cannot be written did not happen, and follows again from the next look.
func (d *Desk) keep(ctx context.Context, decision alert.Decision) error {
	text, err := json.Marshal(decision.State)
	if err != nil {
		return fmt.Errorf("write down alerts: %w", err)
	}
	if bytes.Equal(text, d.written) && len(decision.Changed)+len(decision.Out) == 0 {
		return nil
	}
	a := state.Alerting{State: text}
	for _, c := range decision.Changed {
		if c.Phase == alert.Pending {
			continue
		}
		row := state.AlertRow{Key: c.Key, Rang: c.Rang, Instance: c.Instance, Finding: c.Finding, Severity: c.Severity, Ended: c.Ended}
		if row.Alert, err = json.Marshal(c); err != nil {
			return fmt.Errorf("write down alert %s: %w", c.Key, err)
		}
		a.Alerts = append(a.Alerts, row)
	}
	for _, o := range decision.Out {
		body, err := json.Marshal(o.Message)
		if err != nil {
			return fmt.Errorf("write down message %s: %w", o.Message.ID, err)
		}
		a.Messages = append(a.Messages, state.MessageRow{ID: o.Message.ID, Receiver: o.Receiver, Made: o.Message.Made, Body: body})
	}
	if err := d.Facts.KeepAlerting(ctx, a); err != nil {
		return err
	}
	d.state, d.written = decision.State, text
	for _, m := range a.Messages {
		poke(d.deliver[m.Receiver])
	}
	return nil
}

// Standing lists what is pending and what fires, as it was at the last look.
func (d *Desk) Standing() []alert.Standing {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]alert.Standing, 0, len(d.state.Standing))
	for _, a := range d.state.Standing {
		out = append(out, a.Clone())
	}
	return out
}

// Silences are those that are not over at a moment.
func (d *Desk) Silences(ctx context.Context, now time.Time) ([]alert.Silence, error) {
	rows, err := d.Facts.Silences(ctx, now)
	if err != nil {
		return nil, err
	}
	out := make([]alert.Silence, 0, len(rows))
	for _, r := range rows {
		var s alert.Silence
		if err := json.Unmarshal(r.Body, &s); err != nil {
			return nil, fmt.Errorf("silence %d: %w", r.ID, err)
		}
		s.ID, s.Begin, s.End, s.Ended = r.ID, r.Begin, r.End, r.Ended
		out = append(out, s)
	}
	return out, nil
}

// Silence holds back what fits from now on, and returns the silence with its number.
func (d *Desk) Silence(ctx context.Context, s alert.Silence) (alert.Silence, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return s, fmt.Errorf("write down a silence: %w", err)
	}
	s.ID, err = d.Facts.AddSilence(ctx, state.SilenceRow{Begin: s.Begin, End: s.End, Body: body})
	d.Poke()
	return s, err
}

// EndSilence ends a silence; state.ErrNotFound: there is none of that number that is not over.
func (d *Desk) EndSilence(ctx context.Context, id int64) error {
	err := d.Facts.EndSilence(ctx, id, time.Now())
	d.Poke()
	return err
}

// Acknowledge notes that somebody knows of an alert that fires; state.ErrNotFound: none of that key does.
func (d *Desk) Acknowledge(ctx context.Context, key, by string) error {
	d.mu.Lock()
	a := d.state.Standing[key]
	d.mu.Unlock()
	if a == nil || a.Phase != alert.Firing {
		return fmt.Errorf("alert %s: %w", key, state.ErrNotFound)
	}
	err := d.Facts.AddAck(ctx, state.AckRow{Key: key, At: time.Now(), By: by})
	d.Poke()
	return err
}

// mostReplayed is how many findings a replay takes.
const mostReplayed = 10000

// Replay says how findings that were kept, and fit a threshold, would have rung with it.
func (d *Desk) Replay(ctx context.Context, t alert.Threshold, from, to time.Time) (alert.Replayed, error) {
	records, err := d.Facts.Findings(ctx, state.FindingQuery{From: from, To: to, Limit: mostReplayed})
	if err != nil {
		return alert.Replayed{}, err
	}
	if len(records) == mostReplayed {
		return alert.Replayed{}, fmt.Errorf("there were %d findings or more in that time: %w", mostReplayed, ErrTooMany)
	}
	seats := map[string]alert.Seat{}
	for _, i := range d.Instances() {
		seats[i.ID] = alert.Seat{Name: i.Name, Group: i.Group}
	}
	fit := records[:0]
	for _, r := range records {
		a := alert.Alert{Server: cmp.Or(seats[r.Instance].Name, r.Instance), Group: seats[r.Instance].Group, Finding: r.First.ID, Subject: r.First.Subject, Severity: fleet.SeverityCritical}
		if t.Fits(&a) {
			fit = append(fit, r)
		}
	}
	d.mu.Lock()
	p := d.policy()
	d.mu.Unlock()
	if t.For != nil || t.Above != nil {
		p.Thresholds = append(slices.Clone(p.Thresholds), t)
	}
	return p.Replay(fit, seats, from, to), nil
}

// ErrTooMany says that a shorter time must be asked for.
var ErrTooMany = errors.New("ask for a shorter time")
