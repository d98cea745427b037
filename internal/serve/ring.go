package serve

import (
	"context"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/alerts"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/alert"
	"github.com/rissodb/risso/internal/watch/alert/tell"
	"github.com/rissodb/risso/internal/watch/rules"
)

// chartPatience is how long a message waits for its chart.
const chartPatience = 2 * time.Second

// newDesk makes what rings.
func (w *watch) newDesk(ctx context.Context, c config.Alerts, facts *state.Store, numbers *series.Store) (*alerts.Desk, error) {
	receivers, err := openReceivers(c)
	if err != nil {
		return nil, err
	}
	desk, err := alerts.New(ctx, alerts.Options{Facts: facts, Policy: c.Policy, Receivers: receivers, Permanent: tell.IsPermanent, Partly: tell.IsPartly, Wait: tell.WaitOf,
		Instances: w.instances, Because: w.because, Last: w.lastHeld, Event: w.Event, Did: w.did(facts), Lead: w.lead, Logger: w.logger,
		Chart: func(a *alert.Alert) *alert.Chart {
			cctx, cancel := context.WithTimeout(ctx, chartPatience)
			defer cancel()
			return chart(cctx, numbers, a, time.Now())
		}})
	w.desk = desk
	return desk, err
}

// openReceivers makes the receivers of the config file, by name.
func openReceivers(c config.Alerts) (map[string]alerts.Receiver, error) {
	receivers := map[string]alerts.Receiver{}
	for _, r := range c.Receivers {
		open, err := tell.Open(r)
		if err != nil {
			return nil, fault.Usagef("receiver %s: %w", r.Name, err)
		}
		receivers[r.Name] = open
	}
	return receivers, nil
}

// instances lists what is watched, and Risso itself.
func (w *watch) instances() []fleet.Instance {
	rows := w.board.Fleet(time.Now())
	out := make([]fleet.Instance, len(rows))
	for i, r := range rows {
		out[i] = r.Instance
	}
	return append(out, fleet.Instance{ID: selfID, Name: "Risso"})
}

// because says from which finding of another instance a finding comes. Where nobody watches the one that several have in common, such as the
// machine on which they run, the first of them stands for all.
func (w *watch) because() func(state.FindingRecord) (alert.Cause, bool) {
	known := map[rules.Effect]alert.Cause{}
	causes, undecided := w.board.Causes(time.Now())
	for _, e := range undecided {
		known[e] = alert.Cause{Open: true}
	}
	for _, c := range causes {
		cause := alert.Cause{Instance: c.Instance, Finding: c.Finding, Subject: c.Subject}
		if c.Peers {
			cause.Common = c.What
		}
		rest := c.Affected
		if cause.Instance == "" || cause.Finding == "" {
			if len(rest) < 2 {
				continue
			}
			cause = alert.Cause{Instance: rest[0].Instance, Finding: rest[0].Finding, Subject: rest[0].Subject, Common: c.What}
			rest = rest[1:]
		}
		first, awaits := rules.Effect{Instance: cause.Instance, Finding: cause.Finding, Subject: cause.Subject}, []string{}
		for _, e := range rest {
			awaits = append(awaits, alert.Key(e.Instance, e.Finding, e.Subject))
			cause.Peer = cause.Common != "" && (c.Finding == "" || slices.Contains([]string{"server.down", "server.hung", "server.restarted"}, e.Finding))
			known[e] = cause
		}
		if _, ok := known[first]; !ok && cause.Common != "" { // it is to name them
			known[first] = alert.Cause{Awaits: awaits}
		}
	}
	return func(r state.FindingRecord) (alert.Cause, bool) {
		c, ok := known[rules.Effect{Instance: r.Instance, Finding: r.First.ID, Subject: r.First.Subject}]
		return c, ok
	}
}

// lastHeld is when a finding that the board still lists last held; zero: it holds, or the board does not list it.
func (w *watch) lastHeld(a *alert.Alert) time.Time {
	return w.board.LastHeld(a.Instance, a.Finding, a.Subject)
}

// letGo ends the findings of what is no longer watched: nobody would see their end.
func (w *watch) letGo() {
	for id, held := range w.held {
		if _, watched := w.keepers.Load(id); watched {
			continue
		}
		look := state.Look{Instance: id, At: time.Now(), Unseen: map[string]bool{}}
		for _, r := range held {
			look.Unseen[state.FindingKey(r.First)] = true
		}
		w.enqueue(func(ctx context.Context, s *state.Store) error { return w.keepFindings(ctx, s, look) })
		delete(w.held, id) // it may be watched again later
	}
}
