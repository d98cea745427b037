package lag

import (
	"math"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Drain is how long a replica takes to apply what it has to apply, if nothing more comes meanwhile.
type Drain struct {
	Transactions *int64   `json:"transactions"`      // that it has to apply; null: not known
	Seconds      *float64 `json:"seconds"`           // how many seconds that takes, at the rate that was seen; null: not known, or it never ends
	AtMost       bool     `json:"at_most,omitempty"` // it takes no longer than that: as it was seen, it had too little to apply to be at its full speed, or stayed behind on purpose
	Stands       bool     `json:"stands,omitempty"`  // its applier does not run: as it is, it never ends
	Words        string   `json:"words"`             // how long it takes
}

// Drained has nothing to apply.
func Drained() Drain {
	none, at := int64(0), 0.0
	return Drain{Transactions: &none, Seconds: &at, Words: "nothing to apply"}
}

// DrainUnknown is that of a replica of which it is not known, and why. transactions are -1 if they are not known either.
func DrainUnknown(transactions int64, why string) Drain {
	d := Drain{Words: "it is not known how long: " + why}
	if transactions >= 0 {
		d.Transactions = &transactions
	}
	return d
}

// Stands is that of a replica whose applier does not run.
func Stands(transactions int64) Drain {
	return Drain{Transactions: &transactions, Stands: true, Words: "never, as it is: its applier does not run"}
}

// DrainAt is how long so many transactions take a replica that finished some within a while, in seconds.
func DrainAt(transactions, finished int64, span float64) Drain {
	switch {
	case transactions <= 0:
		return Drained()
	case finished <= 0 || span <= 0:
		return DrainUnknown(transactions, "it finished nothing within "+digits.Seconds(span))
	}
	return Drain{Transactions: &transactions}.takes(float64(transactions) * span / float64(finished))
}

// takes sets how long it takes.
func (d Drain) takes(seconds float64) Drain {
	d.Seconds = &seconds
	d.Words = "about " + d.long()
	if d.AtMost {
		d.Words = "at most " + d.long()
	}
	return d
}

// long is how long it takes, in words: nobody cares for a part of a second.
func (d Drain) long() string { return digits.Age(max(1, math.Ceil(*d.Seconds))) }

// Then is how long d and what comes after it take.
func (d Drain) Then(seconds float64) Drain {
	if d.Seconds == nil {
		return d
	}
	return d.takes(*d.Seconds + seconds)
}

// Drain is how long the channel takes to apply what it has received, and so many transactions more that it has not. One that stays behind on purpose is meant to apply them without its
// delay, if its server can do that without throwing away what it received.
func (f *Facts) Drain(more int64) Drain {
	m := f.After
	if m.Received.Empty() && m.Applied.Empty() {
		return DrainUnknown(-1, "the server does not tell by GTIDs what it has received")
	}
	left := int64(m.Received.Ahead(m.Applied)) + max(0, more)
	switch {
	case left == 0:
		return Drained()
	case !m.Applies():
		return Stands(left)
	}
	finished := int64(m.Applied.Ahead(f.Before.Applied))
	d := DrainAt(left, finished, f.Span)
	late := m.Delay > 0 && (m.DelayLeft > 0 || f.doing(read.ApplierDelayed) > 0)
	without := "without its delay of " + digits.Seconds(float64(m.Delay))
	switch {
	case late && !f.Server.DelaysWhileReceiving():
		seconds := float64(m.Delay)
		if d.Seconds != nil {
			seconds = max(seconds, *d.Seconds)
		}
		d.AtMost = true
		d = d.takes(seconds)
		d.Words += ", as it applies what it received no sooner than after its delay"
	case late && d.Seconds == nil:
		d = DrainUnknown(left, "how fast it is "+without+" was not seen")
	case d.Seconds == nil:
		d.Words += f.why()
	default:
		seconds := *d.Seconds
		if more <= 0 {
			seconds = max(seconds, f.bytesLeft())
		}
		d.AtMost = late || int64(f.Before.Received.Ahead(f.Before.Applied)) < finished
		if d = d.takes(seconds); late {
			d.Words += " " + without
		}
	}
	return d
}

// bytesLeft is how long the rest takes by its bytes, as transactions may differ in size; 0: that is not known.
func (f *Facts) bytesLeft() float64 {
	b, a := f.Before, f.After
	if a.Unapplied <= 0 || a.Log == "" || a.Log != b.Log || a.Pos <= b.Pos {
		return 0
	}
	return float64(a.Unapplied) * f.Span / float64(a.Pos-b.Pos)
}

// why is what keeps the applier, if that was seen.
func (f *Facts) why() string {
	for _, c := range Judge("", *f).Causes {
		if c.Certain && !strings.HasPrefix(c.Code, "receiver.") {
			return ": " + c.Words
		}
	}
	return ""
}
