package trace

import (
	"cmp"
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/mysql"
)

// Polling adapts: twice as often when a ring is a quarter full of new rows, slower when little happens. It never takes more
// than half of the time, so that it costs the server at most half a core.
const (
	firstInterval = 20 * time.Millisecond
	slowest       = 250 * time.Millisecond
	maxEvents     = 200_000 // then the trace ends: they are held in memory, some 300 MB with all that is made of them
)

// poller reads the events of one connection.
type poller struct {
	o       Options
	conn    *mysql.Conn
	who     Connection
	sources []*source
	events  map[uint64][]Event // by number
	count   int
	base    uint64           // events up to this number were over before the trace began
	over    map[uint64]bool  // and these, known from the rings only
	known   uint64           // up to this one they had begun
	sure    map[string]Total // the counters before a poll that read everything: what they count, the trace has
	clock   clock
	polls   int
	pulsed  string
	open    map[uint64]Kind // events that have not ended
	reads   int             // polls that read the tables of events
	seen    map[uint64]int  // the last of them in which an event was found running, by its number
	steady  time.Time       // the last poll that found everything as the last read had it
	alive   bool            // the connection was there at the last poll
	work    work
	locks   lockWatch
	began   time.Time
}

// work is when the connection was found busy while the server has no event of what it does.
type work struct {
	before    bool      // it was busy as the trace began, with no event of a statement
	firstIdle time.Time // the first poll that found it idle; zero: none
	lastIdle  time.Time // and the last
	busy      bool      // the last poll found it busy
}

func (p *poller) run(ctx context.Context) (*Trace, error) {
	t := &Trace{Server: string(p.conn.Server.Flavour) + " " + p.conn.Server.Version, Connection: p.who, Began: time.Now(), Ended: "time"}
	if err := p.prepare(ctx, t); err != nil {
		return nil, err
	}
	before, err := totals(ctx, p.conn, p.who.Thread)
	if err != nil {
		return nil, err
	}
	nested := p.nestedLost(ctx)
	if err := p.baseline(ctx); err != nil {
		return nil, err
	}
	from, err := totals(ctx, p.conn, p.who.Thread)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	t.Began, p.began = began, began
	after := before
	pollErr := p.loop(ctx, began, t, &after)
	ended := time.Now()
	t.Seconds = ended.Sub(began).Seconds()

	// The context may be over: what was seen is still worth its last questions.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queryTimeout)
	defer cancel()
	if pollErr == nil {
		if now, err := totals(ctx, p.conn, p.who.Thread); err == nil && len(now) > 0 {
			after = now
		}
		if k, err := find(ctx, p.conn, p.who.ID); err == nil {
			t.After = &k
		}
		p.bodies(ctx, t)
		t.Nested = p.nestedLost(ctx) - nested
	}
	p.alive = p.alive && pollErr == nil
	p.finish(t, ended, before, after)
	t.countedOnly = p.countedOnly(from)
	return t, pollErr
}

// prepare finds out what is recorded, and says what is not.
func (p *poller) prepare(ctx context.Context, t *Trace) error {
	st, err := ReadState(ctx, p.conn)
	if err != nil {
		return err
	}
	t.SQLTextLength = st.sqlTextLength
	for _, s := range allSources() {
		if s.size != "" {
			s.ring = st.sizes[s.size]
		}
		if !st.consumers["global_instrumentation"] || !st.consumers["thread_instrumentation"] || !st.consumers[s.need] {
			continue
		}
		p.sources = append(p.sources, s)
		if s.long() {
			t.Rings = append(t.Rings, Ring{s.table, s.ring})
		}
	}
	who, err := find(ctx, p.conn, p.who.ID) // Enable may have switched it on
	if err != nil {
		return err
	}
	p.who.Instrumented, p.who.History = who.Instrumented, who.History
	t.Connection = p.who
	t.NotRecorded = st.off(who)
	t.partly = !st.allStatements(who)
	if len(p.sources) == 0 || !who.Instrumented {
		return fmt.Errorf("%w of this connection: %s", ErrOff, joinWords(t.NotRecorded))
	}
	return nil
}

// baseline finds where the trace begins.
func (p *poller) baseline(ctx context.Context) error {
	var all []Event
	for _, s := range p.sources {
		if err := s.read(ctx, p.conn, p.who.Thread, func(e Event) bool { p.time(e); p.before(s, e); all = append(all, e); return true }); err != nil {
			return fmt.Errorf("read %s: %w", s.table, err)
		}
	}
	statement := false
	for _, e := range all {
		if !e.Ended() {
			p.add(e)
			statement = statement || e.Kind == KindStatement
		}
	}
	who, err := find(ctx, p.conn, p.who.ID)
	if err != nil {
		return err
	}
	p.work.before = !statement && who.Command != "Sleep"
	return nil
}

// before learns of an event that was there before the trace. The rows of a ring, which all connections write, may be half another's,
// with numbers far ahead of this connection's (the servers read them without a lock, pfs_events_statements.cc): they say nothing of
// where the trace begins.
func (p *poller) before(s *source, e Event) {
	if !s.long() {
		p.base = max(p.base, e.End)
		p.known = max(p.known, e.ID, e.End)
	}
	if e.Ended() {
		p.over[e.ID] = true
	}
}

// time learns of the server's clock by an event.
func (p *poller) time(e Event) {
	if !e.otherClock() {
		p.clock.saw(max(e.Start, e.Stop), time.Now())
	}
}

// add keeps an event and says whether it is new.
func (p *poller) add(e Event) bool {
	if e.Ended() && (e.End <= p.base || p.over[e.ID]) {
		return false
	}
	p.time(e)
	if e.Ended() {
		delete(p.open, e.ID)
		delete(p.seen, e.ID)
	} else {
		p.open[e.ID] = e.Kind
		p.seen[e.ID] = p.reads
	}
	list := p.events[e.ID]
	for i := range list {
		if list[i].Kind != e.Kind {
			continue
		}
		if list[i].Ended() {
			return false
		}
		list[i] = e
		return e.Ended()
	}
	p.count++
	p.events[e.ID] = append(list, e)
	return true
}

func (p *poller) loop(ctx context.Context, began time.Time, t *Trace, after *map[string]Total) error {
	interval := firstInterval
	counted := began
	for {
		wait := min(interval, p.o.For-time.Since(began))
		select {
		case <-ctx.Done():
			t.Ended = "interrupted"
			wait = 0
		case <-time.After(max(wait, 0)):
		}
		last := t.Ended == "interrupted" || time.Since(began) >= p.o.For
		if last {
			if m, err := totals(context.WithoutCancel(ctx), p.conn, p.who.Thread); err == nil && len(m) > 0 {
				p.sure = m
			}
		}
		start := time.Now()
		alive, err := p.poll(context.WithoutCancel(ctx), last)
		if err != nil {
			if err = p.reconnect(ctx, err); err != nil {
				return err
			}
			continue
		}
		took := time.Since(start)
		p.o.Progress(time.Since(began), p.count)
		switch {
		case !alive:
			t.Ended = "connection"
			return nil
		case last:
			return nil
		case p.count >= maxEvents:
			t.Ended = "full"
			return nil
		}
		if now := time.Now(); now.Sub(counted) > time.Second { // what is known when the connection ends
			counted = now
			if m, err := totals(context.WithoutCancel(ctx), p.conn, p.who.Thread); err == nil && len(m) > 0 {
				*after, p.sure = m, m
			}
		}
		interval = p.next(interval, took)
	}
}

// reconnect opens another connection when the one that polls was lost; the events of the meantime are still in the rings.
func (p *poller) reconnect(ctx context.Context, cause error) error {
	if k := mysql.ClassOf(cause); k == mysql.ClassPrivilege || k == mysql.ClassMissing || k == mysql.ClassLogin {
		return cause
	}
	p.o.Say("the connection to the server was lost: " + cause.Error())
	p.conn.Close()
	for try := range 20 {
		if ctx.Err() != nil && try > 3 {
			return cause
		}
		time.Sleep(250 * time.Millisecond)
		cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queryTimeout)
		c, err := mysql.Connect(cctx, p.o.Target, p.conn.Traffic())
		cancel()
		if err == nil {
			p.conn = c
			p.o.Say("connected again")
			return nil
		}
	}
	return cause
}

// next is how long to wait until the next poll.
func (p *poller) next(interval, took time.Duration) time.Duration {
	full := 0.0
	for _, s := range p.sources {
		if s.ring > 0 && (s.long() || !p.hasLong(s.kind)) {
			full = max(full, float64(s.fresh)/float64(s.ring))
		}
	}
	switch {
	case full > 0.25:
		interval /= 2
	case full < 0.05:
		interval = interval * 3 / 2
	}
	return min(max(interval, took, time.Millisecond), slowest)
}

func (p *poller) hasLong(k Kind) bool {
	return slices.ContainsFunc(p.sources, func(s *source) bool { return s.kind == k && s.long() })
}

// poll reads what is new; the last one whether anything is or not. It says whether the connection still lives.
func (p *poller) poll(ctx context.Context, last bool) (alive bool, err error) {
	p.polls++
	idle := false
	now := time.Now()
	err = ask(ctx, p.conn, fmt.Sprintf("SELECT /* risso: does the connection live? */ PROCESSLIST_COMMAND FROM performance_schema.threads WHERE THREAD_ID = %d AND PROCESSLIST_ID = %d", p.who.Thread, p.who.ID), func(row []sqldriver.Value) error {
		alive, idle = true, mysql.Text(row[0]) == "Sleep"
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("look for the connection: %w", err)
	}
	pulse, err := p.pulse(ctx)
	if err != nil {
		return alive, err
	}
	p.alive = alive
	p.work.saw(idle, alive, now)
	still := pulse == p.pulsed
	if alive && still && !idle { // in a statement in which nothing begins or ends
		if err := p.locks.look(ctx, p.conn, p.who.ID, p.began, p.open); err != nil {
			return alive, err
		}
	}
	if alive && pulse != "" && still && !last { // the rings are long: an idle connection is not worth reading them
		for _, s := range p.sources {
			s.fresh = 0
		}
		p.steady = now
		return alive, nil
	}
	p.reads++
	for _, s := range p.sources {
		if err := s.read(ctx, p.conn, p.who.Thread, p.add); err != nil {
			return alive, fmt.Errorf("read %s: %w", s.table, err)
		}
	}
	p.trustRings()
	p.pulsed = pulse
	return alive, nil
}

// trustRings reads rows again that the tables of the connection alone have not reached: a row that is half another's must not hide
// those that follow.
func (p *poller) trustRings() {
	top := uint64(0)
	for _, s := range p.sources {
		if !s.long() {
			top = max(top, s.since)
		}
	}
	for _, s := range p.sources {
		if s.long() {
			s.since = min(s.since, top)
		}
	}
}

// saw notes whether a poll found the connection idle.
func (w *work) saw(idle, alive bool, now time.Time) {
	w.busy = alive && !idle
	if idle {
		w.lastIdle = now
		if w.firstIdle.IsZero() {
			w.firstIdle = now
		}
	}
}

// pulse is what the tables of current events say about the connection: the same as before when nothing began or ended.
func (p *poller) pulse(ctx context.Context) (string, error) {
	var parts, seen []string
	for _, s := range p.sources {
		if s.current() {
			parts = append(parts, fmt.Sprintf("SELECT CONCAT_WS('/', COUNT(*), MAX(EVENT_ID), SUM(END_EVENT_ID)) FROM performance_schema.%s WHERE THREAD_ID = %d", s.table, p.who.Thread))
		}
	}
	if len(parts) == 0 {
		return "", nil
	}
	parts[0] = strings.Replace(parts[0], "SELECT ", "SELECT /* risso: did the connection do anything? */ ", 1)
	err := ask(ctx, p.conn, strings.Join(parts, " UNION ALL "), func(row []sqldriver.Value) error {
		seen = append(seen, mysql.Text(row[0]))
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("look at the current events: %w", err)
	}
	return strings.Join(seen, " "), nil
}

// nestedLost is how many statements of all connections were nested too deep to be recorded, since the server started.
func (p *poller) nestedLost(ctx context.Context) (n uint64) {
	// Without it the trace is still right.
	_ = ask(ctx, p.conn, "SHOW /* risso: nested statements lost */ GLOBAL STATUS LIKE 'Performance_schema_nested_statement_lost'", func(row []sqldriver.Value) error {
		n = unsigned(row[1])
		return nil
	})
	return n
}

func (p *poller) finish(t *Trace, ended time.Time, before, after map[string]Total) {
	t.Zero, t.Now, t.known = p.clock.at(p.began), p.clock.at(ended), p.known
	t.busyBefore, t.busyAfter = p.unseen(ended)
	p.running(t.Now)
	t.LockWaits, t.locked, t.lockGaps = p.locks.waits, p.locks.shares(), p.locks.gaps
	for _, list := range p.events {
		t.Events = append(t.Events, list...)
	}
	slices.SortFunc(t.Events, func(a, b Event) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind)) })
	for i := range t.Events {
		e := &t.Events[i]
		e.Cut = cutText(e.SQL, t.SQLTextLength)
	}
	for name, a := range after {
		b := before[name]
		if a.Count > b.Count {
			t.Totals = append(t.Totals, Total{Name: name, Count: a.Count - b.Count, Seconds: max(0, a.Seconds-b.Seconds)})
		}
	}
	slices.SortFunc(t.Totals, func(a, b Total) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	t.Cost = p.cost()
}

// countedOnly is how many statements the server's counters have more, between two moments of the trace, than its tables of events
// show; 0 if they show none anyway. The counters are kept apart from the tables, so they reveal what these silently lost.
func (p *poller) countedOnly(from map[string]Total) uint64 {
	if !slices.ContainsFunc(p.sources, func(s *source) bool { return s.kind == KindStatement }) {
		return 0
	}
	counted, told := uint64(0), uint64(0)
	for name, m := range p.sure {
		if n := from[name].Count; strings.HasPrefix(name, "statement/") && m.Count > n {
			counted += m.Count - n
		}
	}
	for _, list := range p.events {
		if slices.ContainsFunc(list, func(e Event) bool { return e.Kind == KindStatement && e.Ended() }) {
			told++
		}
	}
	return counted - min(counted, told)
}

// running sets the time so far of what had not ended: until the end of the trace, now, when it was found running then, and else until
// it was found running last.
func (p *poller) running(now uint64) {
	for id, list := range p.events {
		if n, ok := p.seen[id]; !ok || n != p.reads {
			continue
		}
		for i := range list {
			e := &list[i]
			if e.Ended() || !e.Timed() {
				continue
			}
			e.Running = p.alive
			switch {
			case e.otherClock():
			case p.alive:
				e.Stop = max(e.Start, now)
			default:
				e.Stop = max(e.Start, e.Stop, p.clock.at(p.steady))
			}
		}
	}
}

// unseen is until when the connection was busy with what it had begun before the trace, and since when with what it still does at
// the end, if the server has no event of it; 0: neither.
func (p *poller) unseen(ended time.Time) (until, since uint64) {
	w := p.work
	if w.before {
		if w.firstIdle.IsZero() {
			w.firstIdle = ended
		}
		until = p.clock.at(w.firstIdle)
	}
	if w.busy {
		if w.lastIdle.IsZero() {
			w.lastIdle = p.began
		}
		since = p.clock.at(w.lastIdle)
	}
	return until, since
}

// cost is what the trace has cost so far.
func (p *poller) cost() Cost {
	tr := p.conn.Traffic()
	return Cost{Queries: tr.Queries.Load(), Seconds: float64(tr.Nanoseconds.Load()) / 1e9, Bytes: tr.Sent.Load() + tr.Received.Load(), Polls: p.polls}
}

// cutText reports whether the server cut a text: then it ends in three dots and is about as long as it may be, or longer, because it is
// returned in UTF-8 and counted in the character set of the client (table_events_statements.cc of both servers).
func cutText(sql string, limit int) bool {
	return limit > 0 && len(sql) >= limit-12 && strings.HasSuffix(sql, "...")
}

// bodies reads the source text of the stored programs that ran, if the account may see it.
func (p *poller) bodies(ctx context.Context, t *Trace) {
	t.Bodies = map[string]string{}
	for _, list := range p.events {
		for _, e := range list {
			if e.Program == nil {
				continue
			}
			key := e.Program.String()
			if _, done := t.Bodies[key]; done || len(t.Bodies) >= 100 {
				continue
			}
			t.Bodies[key] = ""
			q := fmt.Sprintf("SELECT /* risso: the text of a stored program */ ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_TYPE = %s AND ROUTINE_SCHEMA = %s AND ROUTINE_NAME = %s",
				quote(e.Program.Type), quote(e.Program.Schema), quote(e.Program.Name))
			if e.Program.Type == "TRIGGER" {
				q = fmt.Sprintf("SELECT /* risso: the text of a trigger */ ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = %s AND TRIGGER_NAME = %s", quote(e.Program.Schema), quote(e.Program.Name))
			}
			// Without it the map has no line numbers; the trace is right.
			_ = ask(ctx, p.conn, q, func(row []sqldriver.Value) error {
				t.Bodies[key] = mysql.Text(row[0])
				return nil
			})
		}
	}
}
