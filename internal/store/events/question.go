package events

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// Range is a span of time in unix seconds: from From, up to but without To. A minute counts when it begins in it.
type Range struct{ From, To int64 }

func (r Range) check() error {
	if r.From < 0 || r.From >= r.To || r.To > 1<<33 {
		return badQuestion("from must be before to, both in unix seconds")
	}
	return nil
}

func badQuestion(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBadQuestion, fmt.Sprintf(format, args...))
}

// Latency is quantiles in seconds, of the calls whose latency was counted by buckets.
type Latency struct {
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Calls int64   `json:"calls"` // how many calls the quantiles are of
}

// ClassLoad is one class in a list.
type ClassLoad struct {
	ID          string
	Fingerprint string
	Verb        string
	Tables      string
	FirstSeen   int64 // earliest on any instance asked for
	LastSeen    int64
	Instances   int64 // how many of those asked for ran it in the range
	fleet.Cost
	Latency *Latency  // nil: not known
	Spark   []float64 // load (seconds of statements per second) over the range
	Wait    *Part     // what it was found doing longest; nil: it was not found running
	Flips   int       // how often its plan flipped in the range
}

// orders are the words that a list may be ordered by, and the sum that each means.
var orders = map[string]string{
	"load":                   "sum(seconds)",
	"calls":                  "sum(calls)",
	"avg":                    "sum(seconds) / sum(calls)",
	"max":                    "max(max_seconds)",
	"lock":                   "sum(lock_seconds)",
	"rows_examined":          "sum(rows_examined)",
	"rows_sent":              "sum(rows_sent)",
	"rows_affected":          "sum(rows_affected)",
	"rows_examined_per_sent": "sum(rows_examined) / greatest(sum(rows_sent) + sum(rows_affected), 1)", // what changes rows sends none
	"errors":                 "sum(errors)",
	"warnings":               "sum(warnings)",
	"tmp_disk_tables":        "sum(tmp_disk_tables)",
	"no_index":               "sum(no_index)",
	"sort_rows":              "sum(sort_rows)",
}

// Orders lists the words for TopQuestion.Order.
func Orders() []string {
	list := make([]string, 0, len(orders)+len(quantileOrders))
	for o := range orders {
		list = append(list, o)
	}
	for o := range quantileOrders {
		list = append(list, o)
	}
	sort.Strings(list)
	return list
}

// TopQuestion asks for the classes that cost most.
type TopQuestion struct {
	Range
	Instances []string // empty: all
	Order     string   // one of Orders; "" is load. By a quantile, classes whose latency is not known come last, by their load
	Limit     int      // at most MaxLimit
	Search    string   // part of a fingerprint, of a table's name, or of a name of the class: its ID, pt-query-digest's ID or a server's DIGEST; in any case of letters
	Schemas   []string // count only what ran in one of these default schemas, "" is none; empty: all. Quantiles stay those of all schemas
	Sparks    int      // points of each spark; 0 for none, at most 200
}

// TopAnswer answers it.
type TopAnswer struct {
	Classes []ClassLoad
	Total   fleet.Cost // of all classes in the range, also those not listed and not found by Search or Schemas
	Count   int64      // classes that ran in the range
	First   int64      // the earliest minute of the instances that is kept; 0 when there is none
	Step    int64      // seconds per point of a spark
	Begin   int64      // the time of the first point
}

// ClassQuestion asks for the history of a class.
type ClassQuestion struct {
	Range
	ID        string   // or pt-query-digest's ID, with or without 0x, or a server's DIGEST
	Instances []string // empty: all
	Points    int      // about as many as that
}

// Point is a class in one bucket of time.
type Point struct {
	Time int64
	fleet.Cost
	Latency *Latency
}

// Part is what a class cost under one value of something.
type Part struct {
	Value   string  `json:"value"`
	Calls   int64   `json:"calls"`
	Seconds float64 `json:"seconds"`
}

// ClassAnswer answers a ClassQuestion.
type ClassAnswer struct {
	Class                        // of the instance that saw it last; FirstSeen and LastSeen over all asked for
	Digests              []Class // by instance: only Instance, Digest, FirstSeen and LastSeen are set
	Step                 int64
	Points               []Point
	Total                fleet.Cost
	Latency              *Latency
	ByInstance, BySchema []Part
	ByUser               []Part // who ran it, as far as ByUserFrom shows
	ByUserFrom           string // statements: all of them, by the source; activity: as sampled; samples: of the kept samples; empty: nothing
	Waits                []Part // what it was found doing; Calls are how often it was found, Seconds that times the seconds between two readings
	ByHost               []Part // where it was run from, as sampled
	BlockedBy            []Blocker
	Activity             Part // all of that, without a Value
	Samples              []Sample
	Plans                []Plan
	Flips                []Flip
}

// CompareQuestion asks what changed from range A to range B.
type CompareQuestion struct {
	A, B      Range
	Instances []string
	Limit     int
	Schemas   []string // as in TopQuestion
}

// Change is a class in both ranges.
type Change struct {
	ID, Fingerprint, Verb string
	FirstSeen             int64
	A, B                  fleet.Cost
	// Delta is the change of the load, in seconds of statements per second: Slower is the part that each call's latency
	// makes at B's rate, Oftener the part that the rate makes at A's latency.
	Delta, Slower, Oftener float64
	Share                  float64 // Delta as a share of the sum of all changes' sizes
	Kind                   string  // new, gone, slower, faster, oftener, rarer, same
	Flips                  []Flip
}

// CompareAnswer answers a CompareQuestion.
type CompareAnswer struct {
	Changes      []Change // largest change first
	A, B         fleet.Cost
	Count        int     // classes that were compared
	LoadA, LoadB float64 // seconds of statements per second
	Cut          bool    // there were more classes than are compared; the cheapest were left out
}

// sameWithin is the factor within which a class counts as unchanged.
const sameWithin = 1.1

// change reports what became of a class; the ranges' lengths are in seconds.
func change(c *Change, lengthA, lengthB float64) {
	rateA, rateB := float64(c.A.Calls)/lengthA, float64(c.B.Calls)/lengthB
	loadA, loadB := c.A.Seconds/lengthA, c.B.Seconds/lengthB
	c.Delta = loadB - loadA
	switch {
	case c.A.Calls == 0:
		c.Kind, c.Oftener = "new", c.Delta
		return
	case c.B.Calls == 0:
		c.Kind, c.Oftener = "gone", c.Delta
		return
	}
	avgA, avgB := c.A.Seconds/float64(c.A.Calls), c.B.Seconds/float64(c.B.Calls)
	c.Slower, c.Oftener = (avgB-avgA)*rateB, (rateB-rateA)*avgA
	within := func(a, b float64) bool { return a <= b*sameWithin && b <= a*sameWithin }
	slower := math.Abs(c.Slower) >= math.Abs(c.Oftener)
	switch {
	case within(avgA, avgB) && within(rateA, rateB):
		c.Kind = "same"
	case slower && c.Slower > 0:
		c.Kind = "slower"
	case slower:
		c.Kind = "faster"
	case c.Oftener > 0:
		c.Kind = "oftener"
	default:
		c.Kind = "rarer"
	}
}

// Quantiles reads p50, p95 and p99 from buckets in ascending order; nil when they hold nothing.
func Quantiles(list []Bucket) *Latency {
	l := new(Latency)
	for _, b := range list {
		l.Calls += b.Calls
	}
	if l.Calls == 0 {
		return nil
	}
	for _, q := range []struct {
		q    float64
		into *float64
	}{{0.5, &l.P50}, {0.95, &l.P95}, {0.99, &l.P99}} {
		need, sum := q.q*float64(l.Calls), 0.0
		for _, b := range list {
			if sum += float64(b.Calls); sum >= need {
				*q.into = UpperBound(b.Number)
				break
			}
		}
	}
	return l
}

// UpperBound is the latency, in seconds, that the calls in a bucket did not reach.
func UpperBound(number int16) float64 { return 10e-6 * math.Pow(10, float64(number)/50) }

// searchText makes a search fit to be looked for: lower case, blanks as fingerprints have them.
func searchText(s string) string {
	s = strings.ToLower(strings.Join(strings.Fields(s), " "))
	if len(s) > 200 {
		s = s[:200]
	}
	return s
}
