package ledger

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/digits"
)

// Double is a write that a server took when it was not the primary any more, or never had been: at that time there were two writers.
type Double struct {
	Ack       Ack           `json:"ack"`
	Successor string        `json:"successor"` // the primary at that time
	First     time.Duration `json:"first"`     // when that one acknowledged its first write; 0: the writer never was a primary at all
}

// String says it in a sentence.
func (d Double) String() string {
	if d.First == 0 {
		return fmt.Sprintf("%s took a write (%s), and %s was the primary", d.Ack.Server, d.Ack.Row(), d.Successor)
	}
	return fmt.Sprintf("%s took a write (%s) that was sent %s after %s had acknowledged one as the next primary", d.Ack.Server, d.Ack.Row(), digits.Span(d.Ack.Began-d.First), d.Successor)
}

// Writers is what the book says of who took writes.
type Writers struct {
	Doubles []Double `json:"doubles,omitempty"`
	// Late are acknowledgements that came after the first of the next primary, of writes that had been sent before it: the old primary answered late. They count as
	// what they are worth: their rows are looked for like all others.
	Late int `json:"late,omitempty"`
}

// Judge looks for two writers at a time. The primaries follow each other in the order in which clients were told of them. A write belongs to a reign of its server:
// to the last one that it can belong to. It is a second writer's if it was sent after a later primary had acknowledged one.
func (b *Book) Judge() Writers {
	var w Writers
	last := b.lastOfReigns()
	of := make([]int, len(b.Acks))
	first := make([]time.Duration, len(b.Reigns)+1) // when each reign, or a later one, acknowledged its first write
	for k := range first {
		first[k] = math.MaxInt64
	}
	for i, a := range b.Acks {
		of[i] = b.reignOf(a, last)
		if k := of[i]; k >= 0 {
			first[k] = min(first[k], a.Acked)
		}
	}
	by := make([]int, len(first)) // the reign whose first write that was
	for k := len(b.Reigns) - 1; k >= 0; k-- {
		by[k] = k
		if first[k+1] < first[k] {
			first[k], by[k] = first[k+1], by[k+1]
		}
	}
	for i, a := range b.Acks {
		k := of[i]
		switch {
		case k < 0:
			w.Doubles = append(w.Doubles, Double{Ack: a, Successor: b.primaryAt(a.Began)})
		case a.Began > first[k+1]:
			w.Doubles = append(w.Doubles, Double{Ack: a, Successor: b.Reigns[by[k+1]].Server, First: first[k+1]})
		case a.Acked > first[k+1]:
			w.Late++
		}
	}
	slices.SortStableFunc(w.Doubles, func(a, b Double) int { return cmp.Compare(a.Ack.Began, b.Ack.Began) })
	return w
}

// lastOfReigns says of each reign until when other primaries acknowledged writes between the reign of the same server before it and the moment at which clients were told
// of it: no write that was sent before that belongs to it.
func (b *Book) lastOfReigns() []time.Duration {
	last := make([]time.Duration, len(b.Reigns))
	for k, r := range b.Reigns {
		between, since := map[string]bool{}, time.Duration(math.MaxInt64)
		for m := k - 1; m >= 0 && b.Reigns[m].Server != r.Server; m-- {
			between[b.Reigns[m].Server] = true
			since = b.Reigns[m].Seen
		}
		for _, a := range b.Acks {
			if between[a.Server] && a.Acked >= since && a.Acked <= r.Seen {
				last[k] = max(last[k], a.Acked)
			}
		}
	}
	return last
}

// reignOf is the reign that a write belongs to; -1: its server has none.
func (b *Book) reignOf(a Ack, last []time.Duration) int {
	earliest := -1
	for k := len(b.Reigns) - 1; k >= 0; k-- {
		if b.Reigns[k].Server != a.Server {
			continue
		}
		if earliest = k; a.Began >= last[k] {
			return k
		}
	}
	return earliest
}

// primaryAt is the primary that clients were told of at a time.
func (b *Book) primaryAt(t time.Duration) string {
	name := ""
	for _, r := range b.Reigns {
		if r.Seen <= t {
			name = r.Server
		}
	}
	return name
}

// Outage is how long clients that follow could not write because of something that happened at a time, and what came then.
type Outage struct {
	For    time.Duration `json:"for_ns"`           // from that moment, or from the last acknowledgement if that came later, to the next one
	Ended  bool          `json:"ended"`            // false: there was no further acknowledgement until the end
	Server string        `json:"server,omitempty"` // who acknowledged the next one
}

// Outage finds the longest time without an acknowledgement between two moments.
func (b *Book) Outage(from, until time.Duration) Outage {
	type moment struct {
		at     time.Duration
		server string
	}
	var list []moment
	for _, a := range b.Acks {
		if !a.Direct && a.Acked >= from && a.Acked <= until {
			list = append(list, moment{a.Acked, a.Server})
		}
	}
	slices.SortFunc(list, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	worst, at := Outage{}, from
	for _, m := range list {
		if m.at-at > worst.For {
			worst = Outage{For: m.at - at, Ended: true, Server: m.server}
		}
		at = m.at
	}
	if until-at > worst.For {
		worst = Outage{For: until - at}
	}
	return worst
}
