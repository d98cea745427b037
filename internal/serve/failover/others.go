package failover

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/store/agree"
)

// Peers are the other controllers.
type Peers interface {
	// Answer lets f answer what they ask.
	Answer(f func(ctx context.Context, question json.RawMessage) (any, error))
	// Ask asks them all.
	Ask(ctx context.Context, question any) ([]agree.Said, error)
}

// question is what a controller that leads asks the others when a primary does not answer it.
type question struct {
	Group   string `json:"group"`
	Primary string `json:"primary"`
}

// sighting is the answer: the last look at that primary.
type sighting struct {
	Looked bool          `json:"looked"` // the group is watched here, and that server is a member of it
	Ago    time.Duration `json:"ago_ns"` // since the look began: clocks are not compared
	Lives  bool          `json:"lives"`  // it answered, also with an error
	Words  string        `json:"words,omitempty"`
}

// sights answers another controller.
func (d *Desk) sights(ctx context.Context, text json.RawMessage) (any, error) {
	var q question
	if err := json.Unmarshal(text, &q); err != nil {
		return nil, err
	}
	seen, ok := d.Seen(ctx, q.Group)
	if !ok {
		return sighting{}, nil
	}
	for _, m := range seen.Members {
		if m.Name == q.Primary {
			return sighting{Looked: true, Ago: time.Since(m.At), Lives: m.Answers || failover.Lives(m.kind), Words: m.Trouble}, nil
		}
	}
	return sighting{}, nil
}

// How often others are asked what they see of a primary that does not answer, and how long for.
const (
	everyInquiry    = 200 * time.Millisecond
	inquiryPatience = 500 * time.Millisecond
)

// said is what others than replicas said of a server.
type said struct {
	of   string
	list []failover.Testimony
}

// heardOf takes what others said of the primary, or of the one before.
func (w *watcher) heardOf(s said) {
	if w.inquiring = false; s.of != w.primary {
		return
	}
	for _, t := range s.list {
		w.watch_.Told(t)
	}
}

// inquire begins to ask others than replicas what they see of the primary: the other controllers, and the agent beside it. What they say comes by w.said.
func (w *watcher) inquire(ctx context.Context, now time.Time) {
	agents := w.g.Policy.AgentPort > 0
	if w.inquiring || w.primary == "" || now.Sub(w.inquired) < everyInquiry || w.d.Peers == nil && !agents || !w.d.Lead.Leader() {
		return
	}
	w.inquiring, w.inquired = true, now
	g, name := w.g, w.primary
	go func() {
		ctx, stop := context.WithTimeout(ctx, inquiryPatience)
		defer stop()
		w.said <- said{name, w.d.inquiry(ctx, g, name)}
	}()
}

// inquiry asks others than replicas what they see of a primary.
func (d *Desk) inquiry(ctx context.Context, g *group.Group, name string) (list []failover.Testimony) {
	var all sync.WaitGroup
	var beside failover.Testimony
	var there bool
	if g.Policy.AgentPort > 0 {
		all.Go(func() {
			if access, err := d.Room.Access(ctx, g.Name); err == nil {
				beside, there = carry.Beside(ctx, g, access, name)
			}
		})
	}
	if d.Peers != nil {
		asked := time.Now()
		answers, _ := d.Peers.Ask(ctx, question{g.Name, name}) // who does not answer says nothing
		for _, s := range answers {
			var x sighting
			if s.Err == nil && json.Unmarshal(s.Body, &x) == nil && x.Looked {
				list = append(list, failover.Testimony{Who: "controller " + s.Name, At: asked.Add(-max(0, x.Ago)), Lives: x.Lives, Words: x.Words})
			}
		}
	}
	if all.Wait(); there {
		list = append(list, beside)
	}
	return list
}
