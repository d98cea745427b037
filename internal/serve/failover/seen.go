package failover

import (
	"context"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/fleet"
)

// Seen is what the desk of this process sees of a group now.
type Seen struct {
	State   failover.State `json:"state,omitempty"` // of the primary, as it is believed; "": nobody looked yet
	Since   *time.Time     `json:"since"`           // of the first look that did not succeed; null: it succeeds
	Words   string         `json:"words,omitempty"`
	Busy    bool           `json:"busy"` // this process changes the group, or looks after it
	Members []SeenMember   `json:"members"`
	// Findings are what is wrong with the group as a whole: those of members that are FAULTY, which their status says, are not among them.
	Findings []fleet.Finding `json:"findings"`
}

// SeenMember is what the last look at a member told.
type SeenMember struct {
	Name     string    `json:"name"`
	At       time.Time `json:"at"` // when it was asked
	Answers  bool      `json:"answers"`
	Trouble  string    `json:"trouble,omitempty"` // why it does not answer, or what its replication stopped with
	Open     bool      `json:"open"`              // it takes writes
	Source   string    `json:"source,omitempty"`  // that it replicates from, host:port
	Channels int       `json:"channels"`          // it replicates by so many
	Receives bool      `json:"receives"`
	Applies  bool      `json:"applies"`
	Behind   *int      `json:"behind_seconds"` // null: it does not replicate, or does not say

	kind string // why it does not answer, as topology.Failure has it
}

// Seen is what is seen of a group; false: it is not watched here.
func (d *Desk) Seen(ctx context.Context, name string) (Seen, bool) {
	d.mu.Lock()
	w := d.run[name]
	d.mu.Unlock()
	if w == nil {
		return Seen{}, false
	}
	reply := make(chan Seen, 1)
	select {
	case w.asked <- reply:
		return <-reply, true
	case <-w.ended:
	case <-ctx.Done():
	}
	return Seen{}, false
}

// seen is what is seen of the group, for somebody who asks.
func (w *watcher) seen() Seen {
	s := Seen{State: w.belief.State, Words: w.belief.Words, Busy: w.busy, Members: []SeenMember{}, Findings: []fleet.Finding{}}
	for _, f := range findings(w.g, w.belief, w.state, w.care()) {
		if f.ID != "failover.member" {
			s.Findings = append(s.Findings, f)
		}
	}
	if !w.belief.Since.IsZero() {
		at := w.belief.Since.UTC()
		s.Since = &at
	}
	for _, m := range w.g.Members {
		if last, ok := w.last[m.Name]; ok {
			s.Members = append(s.Members, last.told(m))
		}
	}
	return s
}

// told is a look, as it is told.
func (s seen) told(m group.Member) SeenMember {
	out := SeenMember{Name: m.Name, At: s.at.UTC(), Answers: s.kind == "", Trouble: s.text, Open: s.open, Channels: len(s.channels), kind: s.kind}
	if len(s.channels) != 1 || !out.Answers {
		return out
	}
	c := s.channels[0]
	out.Source, out.Receives, out.Applies, out.Trouble = c.Status.Source, c.IORunning, c.SQLRunning, c.Status.Error().Text
	if c.Behind >= 0 {
		out.Behind = &c.Behind
	}
	return out
}
