// Package alert decides what of what is wrong rings: which findings become alerts, when, whom they are told, and what is held back because
// somebody silenced it, knows of it, or because something else explains it. It does no input or output, and the time is passed in.
package alert

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
)

// Phase is how far an alert is.
type Phase string

// The phases.
const (
	Pending  Phase = "pending"  // it holds, but not for long enough to ring
	Firing   Phase = "firing"   // it rang, or would have if nothing had held it back
	Resolved Phase = "resolved" // it rang, and ended
)

// Alert is a finding that rings, as those are told who hear of it.
type Alert struct {
	Key      string         `json:"key"`               // the same for all messages about it, and no other alert has it
	Finding  string         `json:"finding"`           // the finding's ID, such as "repl.stopped", or the name of the user's own rule
	Subject  string         `json:"subject,omitempty"` // tells alerts of one finding and server apart: the channel, the disk
	Instance string         `json:"instance"`          // ID of the server or host
	Server   string         `json:"server"`            // its name
	Group    string         `json:"group,omitempty"`   // the group that it belongs to
	Severity fleet.Severity `json:"severity"`          // at its worst
	Phase    Phase          `json:"phase"`
	Began    time.Time      `json:"began"`            // when what is wrong began
	Rang     time.Time      `json:"rang,omitzero"`    // when it rang first
	Ended    time.Time      `json:"ended,omitzero"`   // when it ended; zero: it has not
	Unseen   bool           `json:"unseen,omitempty"` // it ended at some moment in which nobody looked
	fleet.Trouble
	Evidence []string `json:"evidence,omitempty"` // lines of what was seen at its worst
	Value    float64  `json:"value,omitempty"`    // of the finding, at its worst
	Times    int      `json:"times,omitempty"`    // how often it came and went, if more than once
	Flapping bool     `json:"flapping,omitempty"` // it comes and goes: several times within the last hour
	Affected []string `json:"affected,omitempty"` // names of other servers on which it explains what is wrong, and which do not ring for it
	Common   string   `json:"common,omitempty"`   // what those have in common with this one, if it does not explain but stand for them
	Link     string   `json:"link,omitempty"`     // the page at that moment
}

// Says is what is wrong, in a line: first what it has in common with others.
func (a *Alert) Says() string {
	if a.Common != "" {
		return a.Common + "; " + a.What
	}
	return a.What
}

// Message is what a receiver is told at once. It is kept on disk until it is delivered; when it has to be sent again, because nobody knows
// whether it arrived, it is the same in each byte.
type Message struct {
	ID     string    `json:"id"`    // of this message; receivers can tell by it that they had it
	Group  string    `json:"group"` // messages of one group are about the same trouble: one thread, one conversation
	Made   time.Time `json:"made"`
	Test   bool      `json:"test,omitempty"`   // it was asked for by "risso alert test"; nothing is wrong
	Again  bool      `json:"again,omitempty"`  // nothing is new: what fires still does
	Quiet  time.Time `json:"quiet,omitzero"`   // it tells what waited for quiet hours to end: the first of it rang then
	Alerts []Alert   `json:"alerts"`           // the worst that fires first, then what is resolved
	Held   int       `json:"held,omitempty"`   // how many alerts were left out, because there are more than a message takes
	Chart  *Chart    `json:"chart,omitempty"`  // of the first alert
	Source string    `json:"source,omitempty"` // URL of the page's list of alerts
}

// Chart is the numbers of a small chart, for channels that take pictures.
type Chart struct {
	Title  string     `json:"title"`
	Unit   string     `json:"unit,omitempty"`
	From   time.Time  `json:"from"`
	Step   float64    `json:"step"`          // seconds between two values
	Values []*float64 `json:"values"`        // nil: none is known
	Mark   time.Time  `json:"mark,omitzero"` // when it began
}

// Firing is how many alerts of a message fire.
func (m *Message) Firing() int {
	n := 0
	for _, a := range m.Alerts {
		if a.Phase == Firing {
			n++
		}
	}
	return n
}

// Severity is that of the worst alert that fires; of the worst that ended, where none fires.
func (m *Message) Severity() fleet.Severity {
	worst, firing := fleet.SeverityInfo, m.Firing() > 0
	for _, a := range m.Alerts {
		if (a.Phase == Firing) == firing {
			worst = max(worst, a.Severity)
		}
	}
	return worst
}

// What servers say can be of any size. A message has so much of it.
const (
	mostText  = 4000 // characters of one text
	mostLines = 100  // of evidence
)

// clip leaves out what is too long, and says so. What it was made of stays as it is.
func (a *Alert) clip() {
	for _, text := range []*string{&a.What, &a.Why, &a.Remedy, &a.Subject} {
		*text = clipped(*text)
	}
	left := len(a.Evidence) - mostLines
	if left > 0 {
		a.Evidence = a.Evidence[:mostLines]
	}
	a.Evidence = slices.Clone(a.Evidence)
	for i, line := range a.Evidence {
		a.Evidence[i] = clipped(line)
	}
	if left > 0 {
		a.Evidence = append(a.Evidence, digits.Counted(left, "more line")+" left out")
	}
}

func clipped(text string) string {
	if len(text) > mostText*utf8.UTFMax {
		text = text[:mostText*utf8.UTFMax] // the rest is not even counted
	}
	return oneline.Cut(text, mostText)
}

// Title is the message in one line of at most width characters: the subject of a mail, the text of a pager.
func (m *Message) Title(width int) string {
	if len(m.Alerts) == 0 {
		return "Risso: nothing"
	}
	a := m.Alerts[0]
	word := strings.ToUpper(a.Severity.String())
	switch {
	case m.Test:
		word = "TEST"
	case m.Firing() == 0:
		word = "RESOLVED"
	case m.Again:
		word = "STILL " + word
	}
	where := a.Server
	if !m.Quiet.IsZero() {
		where = "while it was quiet, " + where
	}
	title := oneline.Of(fmt.Sprintf("[%s] %s: %s", word, where, clipped(a.Says())))
	if n := len(m.Alerts) - 1 + m.Held; n > 0 {
		more := fmt.Sprintf(" (and %s)", digits.Counted(n, "more alert"))
		return oneline.Cut(title, max(width-len(more), 20)) + more
	}
	return oneline.Cut(title, width)
}
