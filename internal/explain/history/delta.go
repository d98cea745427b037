package history

import (
	"cmp"
	"slices"

	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/store/events"
)

// digestKey is a row of the server's table of digests.
type digestKey struct{ schema, id string }

// cost is what one digest cost between two readings.
type cost struct {
	digestKey
	read.Digest      // the difference; MaxSeconds is 0 when the slowest call of this time is not known
	fresh       bool // counting of this digest began since the reading before
}

// counters remembers the server's counters, and returns the differences from one reading to the next.
type counters struct {
	base map[digestKey]read.Digest
	lost int64 // how often a counter was reset: what it counted between the reading before and that is lost
}

// maxBase is how many digests are remembered. A server with more has its table emptied again and again; the rest starts over.
const maxBase = 100000

// begin forgets all: the next reading is compared with nothing.
func (c *counters) begin() { c.base = nil }

// begun reports whether there was a reading.
func (c *counters) begun() bool { return c.base != nil }

// first takes a row of the first reading, which covers all digests.
func (c *counters) first(d *read.Digest) {
	if c.base == nil {
		c.base = map[digestKey]read.Digest{}
	}
	c.base[digestKey{d.Schema, d.ID}] = *d
}

// next takes a row of a later reading and returns what was added to it since the one before.
//
// A row that was not there before, or that was reset (the server was restarted, the table was emptied: FIRST_SEEN, which knows
// whole seconds on MySQL 5.7 and MariaDB, differs, or a counter fell), counts whole, because all that it holds happened since.
func (c *counters) next(d *read.Digest) (cost, bool) {
	key := digestKey{d.Schema, d.ID}
	before, known := c.base[key]
	if len(c.base) >= maxBase && !known {
		clear(c.base)
	}
	c.base[key] = *d
	out := cost{digestKey: key, Digest: *d}
	switch {
	case !known:
		out.fresh = true
	case before.First != d.First || d.Anew(before.Cost):
		c.lost++
		out.fresh = true
	default:
		out.Cost = d.Since(before.Cost)
	}
	return out, out.Calls > 0
}

// rowOf is a cost as it is stored.
func rowOf(class string, c cost) events.Row {
	return events.Row{Class: class, Schema: c.schema, Cost: c.Cost}
}

// join adds up rows of one class, schema and user: several digests of a server may be one class of ours.
func join(rows []events.Row) []events.Row {
	slices.SortStableFunc(rows, func(a, b events.Row) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.User, b.User))
	})
	out := rows[:0]
	for _, r := range rows {
		if n := len(out); n > 0 && out[n-1].Class == r.Class && out[n-1].Schema == r.Schema && out[n-1].User == r.User {
			out[n-1].Add(r)
			continue
		}
		out = append(out, r)
	}
	return out
}

// latencies remembers the histograms of the heaviest digests and returns what was added.
type latencies struct {
	base map[digestKey]histogram
}

type histogram struct {
	first string // FIRST_SEEN of the digest
	at    int64  // unix seconds
	calls map[int]int64
}

// What latencies keeps: histograms of this many digests, and for this many seconds. A digest that was not among the heaviest for
// longer starts over: its calls of long ago are not those of this minute.
const (
	maxHistograms = 200
	histogramLife = 300
)

// next takes a histogram and returns the buckets that grew since the one before; none if there is nothing to compare it with.
func (l *latencies) next(c cost, at int64, now []read.LatencyBucket) []events.Bucket {
	if l.base == nil {
		l.base = map[digestKey]histogram{}
	}
	before, known := l.base[c.digestKey]
	h := histogram{first: c.First, at: at, calls: make(map[int]int64, len(now))}
	for _, b := range now {
		h.calls[b.Number] = b.Calls
	}
	l.base[c.digestKey] = h
	for k, old := range l.base {
		if at-old.at > histogramLife || len(l.base) > maxHistograms && old.at < at {
			delete(l.base, k)
		}
	}
	switch {
	case c.fresh:
		before = histogram{}
	case !known || before.first != c.First || at-before.at > histogramLife:
		return nil
	}
	var out []events.Bucket
	for _, b := range now {
		if n := b.Calls - before.calls[b.Number]; n > 0 && b.Number >= 0 && b.Number < events.Buckets {
			out = append(out, events.Bucket{Number: int16(b.Number), Calls: n})
		}
	}
	return out
}
