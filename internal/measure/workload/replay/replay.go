// Package replay runs the statements of a recording again, such as those of a slow log: as a mix, in which each class has
// the share of the calls that it had, or along the recording's own timeline. The kinds of the result are the classes, so
// that each class can be compared with its recorded times.
package replay

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
)

const (
	mostKinds   = 30 // classes with separate figures; the others are one kind
	nameLength  = 72
	patience    = time.Hour // for one statement
	senseless   = 100       // errors without any success after which the recording does not fit the server
	mostThreads = 512       // for a time line, where the user names no number
)

// Modes are the ways in which a recording can be run.
var Modes = []string{"mix", "timeline"}

type replay struct {
	workload.Recording
	timeline, writes bool
	speed            float64
	kind             []int // of each class
	names            []string
	before           []*workload.Before
	ends             []float64 // mix: shares of the classes by calls, over those that have samples
	classes          []int     // mix: the classes of ends

	lines  [][]workload.RecordedStatement // timeline: what each session runs
	places []int                          // timeline: how far each session is
	shared bool                           // timeline: several recorded sessions are on one of ours
	base   time.Duration                  // when the time line began
	once   sync.Once

	times             serverTimes
	unprofiled        atomic.Bool  // a session's server does not say its times
	empty             atomic.Int64 // ns: what the server takes for an empty statement, by its own account
	trip              atomic.Int64 // ns: the way to the server and back
	succeeded, failed atomic.Int64
	behind            atomic.Int64 // ns: how late a session was at most
	ran               atomic.Int64 // statements that were begun
	left              map[string]int64
}

// New takes Params.Recording.
func New(_ string, p workload.Params) (workload.Workload, error) {
	switch {
	case p.Dialect == drive.Postgres:
		return nil, fmt.Errorf("%w: replay: recorded statements are for MySQL or MariaDB, and PostgreSQL does not understand them", workload.ErrUsage)
	case p.Recording == nil:
		return nil, fmt.Errorf("%w: replay: give a slow log, or the output of risso digest --output json, with --file", workload.ErrUsage)
	case !slices.Contains(Modes, p.ReplayMode):
		return nil, fmt.Errorf("%w: --mode %q: %s", workload.ErrUsage, p.ReplayMode, strings.Join(Modes, " or "))
	case !(p.ReplaySpeed > 0 && p.ReplaySpeed <= 1e6):
		return nil, fmt.Errorf("%w: --speed %v: above 0, at most 1000000", workload.ErrUsage, p.ReplaySpeed)
	}
	r := &replay{Recording: *p.Recording, timeline: p.ReplayMode == "timeline", writes: p.ReplayWrites, speed: p.ReplaySpeed, left: maps.Clone(p.Recording.LeftOut)}
	if r.left == nil {
		r.left = map[string]int64{}
	}
	switch {
	case r.timeline && len(r.Statements) == 0 && slices.ContainsFunc(r.Classes, func(c workload.RecordedClass) bool { return len(c.Samples) > 0 }):
		return nil, fmt.Errorf("%w: --mode timeline needs a log: a digest has no individual statements", workload.ErrUsage)
	case !r.weigh() && !r.timeline, r.timeline && len(r.Statements) == 0:
		return nil, fmt.Errorf("%w: nothing in the recording can be run: %s", workload.ErrUsage, cmp.Or(r.leftOut(), "it is empty"))
	}
	r.nameKinds()
	r.times.classes = make([]timesOf, len(r.Classes))
	if r.timeline {
		r.divide(p.Clients)
	}
	return r, nil
}

// weigh makes the shares of the classes that can be run.
func (r *replay) weigh() bool {
	var sum float64
	for i, c := range r.Classes {
		if len(c.Samples) > 0 && c.Calls > 0 {
			sum += float64(c.Calls)
			r.ends, r.classes = append(r.ends, sum), append(r.classes, i)
		}
	}
	for i := range r.ends {
		r.ends[i] /= sum
	}
	return sum > 0
}

// nameKinds makes each of the classes that took most time a kind.
func (r *replay) nameKinds() {
	var order []int
	used := make([]bool, len(r.Classes))
	for _, st := range r.Statements {
		used[st.Class] = true
	}
	for i, c := range r.Classes {
		if used[i] || len(c.Samples) > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := r.Classes[a], r.Classes[b]
		return cmp.Compare(y.Avg*float64(y.Calls), x.Avg*float64(x.Calls))
	})
	r.kind = make([]int, len(r.Classes))
	for n, i := range order {
		c := r.Classes[i]
		if n >= mostKinds {
			r.kind[i] = mostKinds
			continue
		}
		r.kind[i] = n
		name := []rune(c.Class[:min(len(c.Class), 8)] + " " + c.Fingerprint)
		if len(name) > nameLength {
			name = append(name[:nameLength-1], '…')
		}
		r.names = append(r.names, string(name))
		before := c.Before
		r.before = append(r.before, &before)
	}
	if n := len(order) - mostKinds; n > 0 {
		r.names = append(r.names, digits.Plural(n, "other class", "other classes"))
		r.before = append(r.before, nil)
	}
}

func (r *replay) Name() string        { return "replay" }
func (r *replay) KindNames() []string { return r.names }

// Recorded returns what the classes took when they were recorded.
func (r *replay) Recorded() []*workload.Before {
	for i, kind := range r.kind {
		if b := r.before[kind]; b != nil && b.Class == r.Classes[i].Class {
			b.RoundTrip = time.Duration(r.trip.Load()).Seconds()
			if b.Now = r.times.of(i); b.Now != nil {
				b.Now.Empty = time.Duration(r.empty.Load()).Seconds()
			}
		}
	}
	return r.before
}

// Writes reports whether any statement may write.
func (r *replay) Writes() bool { return r.writes }

// writesNothing is the server's answer to a statement that writes in a transaction that may not.
const writesNothing = 1792

// Tolerates goes on after statements that do not fit the server, as long as some do.
func (r *replay) Tolerates(e *drive.ServerError) bool {
	fits := e.Senseless() || e.Code == writesNothing && !r.writes
	return fits && (r.succeeded.Load() > 0 || r.failed.Load() < senseless)
}

// Notes tell what was left out, and whether the time line was kept.
func (r *replay) Notes() []string {
	var out []string
	if s := r.leftOut(); s != "" {
		out = append(out, "Not replayed: "+s+".")
	}
	if r.timeline {
		all := int64(0)
		for _, l := range r.lines {
			all += int64(len(l))
		}
		if left := all - r.ran.Load(); left > 0 {
			out = append(out, fmt.Sprintf("%s of %s in the recording not begun: time was up before.", digits.Thousands(left), digits.Plural(all, "statement", "statements")))
		}
		out = append(out, fmt.Sprintf("The timeline was followed with %s; statements began at most %s late.", digits.Counted(len(r.lines), "session"), digits.Span(time.Duration(r.behind.Load()))))
	}
	if r.unprofiled.Load() {
		out = append(out, "This server does not report its own times (SET SESSION profiling=1 was refused): those of the log are not compared.")
	}
	if r.shared {
		out = append(out, "There were fewer threads than concurrent sessions in the recording: some had to wait for others.")
	}
	return out
}

func (r *replay) leftOut() string {
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(r.left)) {
		parts = append(parts, digits.Plural(r.left[why], "of the calls", "calls")+" that "+why)
	}
	return strings.Join(parts, "; ")
}

// Plan: a time line wants a session for each that was there at a time, and takes as long as the recording.
func (r *replay) Plan(sessions int, d time.Duration) (int, time.Duration) {
	if !r.timeline {
		return max(sessions, 1), cmp.Or(d, 10*time.Second)
	}
	r.divide(sessions)
	if d == 0 {
		last := r.Statements[len(r.Statements)-1].Began
		d = r.at(last) + time.Minute // it ends when all have ended
	}
	return len(r.lines), d
}

// at is when a moment of the recording comes, since the time line began: at most 73 years later, because a Duration holds no more.
func (r *replay) at(began time.Duration) time.Duration {
	return time.Duration(min(float64(began)/r.speed, float64(math.MaxInt64/4)))
}

// divide assigns each recorded session to one of n of ours; 0: as many as were there at a time. A session of ours goes on
// with another recorded one when one has ended.
func (r *replay) divide(n int) {
	type span struct {
		session    int64
		first, end time.Duration
	}
	spans, at := []span{}, map[int64]int{}
	for _, st := range r.Statements {
		i, ok := at[st.Session]
		if !ok {
			i = len(spans)
			at[st.Session] = i
			spans = append(spans, span{session: st.Session, first: st.Began})
		}
		spans[i].end = st.Began
	}
	limit := n
	if n <= 0 {
		limit = mostThreads
	}
	var free []time.Duration // until when each of ours is busy
	owner := map[int64]int{}
	r.shared = false
	for _, s := range spans { // they are in the order of their beginning
		best := -1
		for i, until := range free {
			if best < 0 || until < free[best] {
				best = i
			}
		}
		switch {
		case best >= 0 && free[best] < s.first:
		case len(free) < limit:
			free = append(free, 0)
			best = len(free) - 1
		default:
			r.shared = true
		}
		owner[s.session] = best
		free[best] = max(free[best], s.end)
	}
	r.lines, r.places = make([][]workload.RecordedStatement, len(free)), make([]int, len(free))
	delete(r.left, LeftControl)
	for _, st := range r.Statements {
		if r.shared && kindOf(st.SQL) == drive.Other { // one transaction would end another one
			r.left[LeftControl]++
			continue
		}
		i := owner[st.Session]
		r.lines[i] = append(r.lines[i], st)
	}
	if left := r.Recording.LeftOut[LeftControl]; left > 0 {
		r.left[LeftControl] += left
	}
}

// Client takes the place of the session that was there before, where the connection was lost.
func (r *replay) Client(s drive.Session, id int, rng *rand.Rand) (workload.Client, error) {
	s.SetPatience(patience)
	if !r.writes {
		// What a statement calls may write although its text shows nothing of it.
		if _, err := s.Exec(drive.Other, "SET SESSION TRANSACTION READ ONLY"); err != nil {
			return nil, err
		}
	}
	if id == 0 && r.trip.Load() == 0 {
		if err := r.measureTrip(s); err != nil {
			return nil, err
		}
	}
	p, err := startProfile(s)
	if err != nil {
		return nil, err
	}
	switch {
	case p == nil:
		r.unprofiled.Store(true)
	case id == 0 && r.empty.Load() == 0:
		took, err := p.emptyTime(s)
		if err != nil {
			return nil, err
		}
		r.empty.Store(int64(took * 1e9))
	}
	return &client{replay: r, session: s, id: id, rng: rng, profile: p}, nil
}

// trips is how many empty statements the way to the server and back is measured with.
const trips = 51

func (r *replay) measureTrip(s drive.Session) error {
	took := make([]time.Duration, trips)
	for i := range took {
		began := time.Now()
		if _, err := s.Exec(drive.Other, "DO 0"); err != nil {
			return err
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	r.trip.Store(int64(took[trips/2]))
	return nil
}

type client struct {
	*replay
	session drive.Session
	id      int
	rng     *rand.Rand
	schema  string                      // the session's, where it was set
	next    *workload.RecordedStatement // nil: not chosen yet
	class   int                         // of next
	refused error                       // the schema of next cannot be used
	last    int                         // kind
	profile *profile                    // nil: the server does not say its times
}

func (c *client) Kind() int { return c.last }

// Next chooses a statement and goes to its schema, so that this is not in its latency.
func (c *client) Next(last time.Duration) (time.Duration, bool) {
	began := time.Now()
	if c.profile != nil && len(c.profile.pending) >= fetchAfter {
		if err := c.fetch(); err != nil {
			c.refused = err // the session is gone: its next statement will report it
		}
	}
	if !c.choose() {
		return 0, false
	}
	now := last + time.Since(began)
	if !c.timeline {
		return now, true
	}
	c.once.Do(func() { c.base = last })
	due := c.base + c.at(c.next.Began)
	for late := int64(now - due); ; {
		most := c.behind.Load()
		if late <= most || c.behind.CompareAndSwap(most, late) {
			break
		}
	}
	return max(due, now), true
}

// choose sets next; false when there is none.
func (c *client) choose() bool {
	if c.timeline {
		if c.id >= len(c.lines) || c.places[c.id] >= len(c.lines[c.id]) {
			return false
		}
		c.next = &c.lines[c.id][c.places[c.id]]
		c.places[c.id]++
		c.class = c.next.Class
	} else {
		i, _ := slices.BinarySearch(c.ends, c.rng.Float64())
		c.class = c.classes[min(i, len(c.classes)-1)]
		samples := c.Classes[c.class].Samples
		c.next = &samples[c.rng.IntN(len(samples))]
	}
	c.refused = nil
	if c.next.Schema != "" && c.next.Schema != c.schema {
		use := "USE " + mysql.Quote(c.next.Schema)
		_, c.refused = c.session.Exec(drive.Other, use)
		c.profile.note(use, unmeasured)
		c.schema = ""
		if c.refused == nil {
			c.schema = c.next.Schema
		}
	}
	return true
}

// Transaction runs one statement.
func (c *client) Transaction() error {
	if c.next == nil && !c.choose() {
		return nil
	}
	st := c.next
	c.next, c.last = nil, c.kind[c.class]
	c.ran.Add(1)
	err := c.refused
	if err == nil {
		_, err = c.session.Exec(kindOf(st.SQL), st.SQL)
		class := c.class
		if err != nil {
			class = unmeasured
		}
		c.profile.note(st.SQL, class)
	}
	if err != nil {
		c.failed.Add(1)
		return err
	}
	if c.succeeded.Load() == 0 {
		c.succeeded.Add(1)
	}
	return nil
}

// fetch asks the server for its times of the last statements.
func (c *client) fetch() error {
	before := *c.session.Counts()
	err := c.profile.fetch(c.session, func(class int, seconds float64) { c.times.add(class, seconds, c.rng) })
	*c.session.Counts() = before // it is no statement of the recording
	return err
}

// Finish fetches the last times.
func (c *client) Finish() error {
	if c.profile == nil || len(c.profile.pending) == 0 {
		return nil
	}
	return c.fetch()
}
