package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/store/events"
)

// Bounds of reading a slow log.
const (
	slowPause    = time.Second            // between two looks at a log that has nothing new
	slowTurn     = 200 * time.Millisecond // reading at a stretch
	slowShare    = 3                      // rest this many times as long as was read: a quarter of a core at most
	slowAsk      = time.Minute            // between two questions to the server
	slowLate     = 3                      // seconds after its end until a minute is closed: statements that just ended are still written
	slowAhead    = 5                      // seconds that a time may be ahead of ours
	slowOldest   = 24 * 3600              // seconds: what ran earlier while Risso was down is skipped
	slowJump     = 120                    // seconds that our clock may jump back before minutes start over
	slowPlans    = 50                     // plans of explain lines that are looked at in a minute
	planRecent   = 300                    // seconds: plans are asked for what ran this recently
	maxSlowPlans = 20000                  // plans that are remembered
)

// SlowLog follows one server by its slow log, which it reads as a file of this machine.
//
// Each event counts once: where reading goes on is written down together with what was read and not stored yet, so
// that a Risso that is stopped or killed goes on where it was. A minute is that in which a statement ended; what the log has
// late, or with a time that cannot be, belongs to the minute that is open.
type SlowLog struct {
	c      *Collector // the connection, the status, samples and plans
	wanted func() need
	state  stateFile

	log        read.SlowLog // how the server writes it
	asked      time.Time
	allowed    bool // the log is this server's, and readable
	file       *logFile
	queue      []logPlace // what is to be read after file
	resumed    bool       // what was written down was looked at
	ours       bool       // something is written down
	missing    string     // the log that was not there when it was first looked for
	gone       bool       // the log's name is no file
	grown      [2]int64   // the file's size and Slow_queries at the question before
	idleFile   bool       // the server counts slow statements, the file does not grow
	lost       string     // what could not be read, and why
	lostUntil  time.Time
	lostRemedy string // what would have kept it
	old        int64  // events that were skipped because they are too old
	worked     time.Duration

	slowOpen
	now     int64 // unix seconds
	minute  slowMinute
	waiting []slowPending
	planIDs map[sampleKey]seenPlan
}

// slowOpen is the position of the minutes.
type slowOpen struct {
	At    int64        `json:"at"`              // the minute that is open; 0: none
	Least int64        `json:"least"`           // no event belongs to a minute before this one
	Clock int64        `json:"clock"`           // time of the newest event, unix seconds
	Rows  []events.Row `json:"rows,omitempty"`  // of the open minute, from before Risso was stopped
	Later []events.Row `json:"later,omitempty"` // for the next minute: theirs was stored before, when the clock was ahead
}

// slowPending is a minute that is not stored yet.
type slowPending struct {
	events.Minute
	tried bool // it may be stored already
	taken []slowTaken
}

type seenPlan struct {
	id     string
	stored int64
}

// NewSlowLog makes a source of a server's slow log. stateDir is where it is written down how far was read; empty: nowhere, and
// each start begins at the log's end.
func NewSlowLog(target mysql.Target, instance fleet.Instance, o Options, stateDir string) *SlowLog {
	s := &SlowLog{c: New(target, instance, o), wanted: func() need { return needThere }, state: stateFileOf(stateDir, instance.ID), planIDs: map[sampleKey]seenPlan{}}
	s.minute.instance = instance.ID
	s.c.status.Source = "slow log"
	s.c.status.Why = "the log was not read yet"
	return s
}

// Status is how it goes.
func (s *SlowLog) Status() Status { return s.c.Status() }

// Run follows the log until ctx ends.
func (s *SlowLog) Run(ctx context.Context) {
	defer s.c.disconnect()
	s.c.Traffic.Turn(ctx)
	for ctx.Err() == nil {
		if s.c.Traffic.Rest(ctx, s.step(ctx, time.Now())) { // the log is read without it
			s.c.disconnect()
			_ = delay.For(ctx, slowPause)
		}
	}
	s.leave()
}

// leave writes down the position and closes the log.
func (s *SlowLog) leave() {
	if s.file == nil {
		return
	}
	s.save()
	s.file.close() // was only read
	s.file, s.queue, s.allowed, s.resumed, s.asked = nil, nil, false, false, time.Time{}
	s.minute.take()
}

// step does what is due now, and says how long to rest.
func (s *SlowLog) step(ctx context.Context, now time.Time) time.Duration {
	s.now = now.Unix()
	switch s.wanted() {
	case needUnknown:
		if s.file == nil {
			return slowPause
		}
	case needGone:
		s.drop()
		return slowPause
	}
	if now.Sub(s.asked) >= slowAsk || now.Before(s.asked) {
		s.asked = now
		s.ask(ctx)
	}
	if !s.allowed || s.file == nil || ctx.Err() != nil {
		return slowPause
	}
	began := time.Now()
	idle := s.read(ctx, began)
	s.tick(idle)
	s.flush(ctx)
	took := time.Since(began)
	s.worked += took
	if idle {
		return slowPause
	}
	return min(slowShare*took, 5*time.Second)
}

// drop stops reading: another source counts.
func (s *SlowLog) drop() {
	if s.file != nil {
		s.file.close() // was only read
		s.file, s.queue = nil, nil
	}
	if s.ours || !s.resumed {
		s.state.remove(s.c.Logger)
	}
	s.minute.take()
	s.ours, s.resumed, s.allowed, s.slowOpen, s.waiting, s.asked = false, true, false, slowOpen{}, nil, time.Time{}
	s.c.disconnect()
}

// ask asks the server how it writes its log, and makes sure that the file is its own.
func (s *SlowLog) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := s.askServer(ctx); err != nil {
		if ctx.Err() == nil || s.c.conn != nil {
			s.c.failed(err)
		}
		return
	}
	s.c.setStatus(func(st *Status) {
		st.Working, st.Trouble, st.Notes = true, fleet.Trouble{}, s.notes()
		st.Seconds, st.Digests = s.worked.Seconds(), len(s.minute.classes)
		if st.Since == 0 {
			st.Since = s.now
		}
		st.Last = max(st.Last, s.At)
	})
	s.worked = 0
}

func (s *SlowLog) askServer(ctx context.Context) error {
	fresh := s.c.conn == nil
	if fresh {
		if err := s.c.connect(ctx); err != nil {
			return err
		}
	}
	log, err := read.SlowLogOf(ctx, s.c.conn)
	if err != nil {
		return err
	}
	before := s.log
	s.log = log
	if fresh || log.File != before.File || !s.allowed {
		here, why, err := s.c.conn.SameMachine(ctx, s.c.target)
		if err != nil {
			return err
		}
		if !here {
			s.allowed = false
			return &unavailable{fleet.Trouble{Why: "the slow log can be read only on the server's own machine: " + why, Remedy: "run Risso on the server's machine as well; give it the server's socket"}}
		}
	}
	off := writes(log)
	if err := s.find(log.File); err != nil {
		if off != nil {
			return off
		}
		return err
	}
	s.allowed = true
	if off != nil {
		return off // what is in the file is still read, and what comes once the log is on
	}
	size := s.file.Offset + s.file.behind()
	s.idleFile = before.File == log.File && log.Written-s.grown[1] > 10 && size == s.grown[0] && s.log.RateLimit <= 1
	s.grown = [2]int64{size, log.Written}
	return nil
}

// find makes sure that a file is the server's log, and opens it.
func (s *SlowLog) find(path string) error {
	if s.file == nil || path != s.file.Path {
		err := isLogOf(path, s.c.conn.Server.Socket)
		switch {
		case errors.Is(err, os.ErrNotExist):
			if s.file == nil {
				s.missing = path
			}
			return &unavailable{fleet.Trouble{Why: "the slow log " + path + " is not there", Remedy: "FLUSH SLOW LOGS creates it again"}}
		case err != nil:
			return &unavailable{fleet.Trouble{Why: "the slow log cannot be read: " + err.Error(), Remedy: "allow the account that runs Risso to read " + path + " and its folder"}}
		}
	}
	return s.open(path)
}

// writes says what keeps the server from writing the log to a file.
func writes(log read.SlowLog) error {
	switch {
	case !log.On && !log.ToFile:
		return &unavailable{fleet.Trouble{Why: "the slow log is off", Remedy: "SET GLOBAL log_output='FILE'; SET GLOBAL long_query_time=0.1; SET GLOBAL slow_query_log=ON"}}
	case !log.On:
		return &unavailable{fleet.Trouble{Why: "the slow log is off", Remedy: "SET GLOBAL long_query_time=0.1; SET GLOBAL slow_query_log=ON"}}
	case !log.ToFile:
		return &unavailable{fleet.Trouble{Why: "the slow log is not written to a file: log_output has no FILE", Remedy: "SET GLOBAL log_output='FILE'"}}
	}
	return nil
}

// open opens the log: at the last position if that is known, else at its end.
func (s *SlowLog) open(path string) error {
	switch {
	case s.file != nil && s.file.Path == path:
		return nil
	case s.file != nil: // the server writes to another file now; the old one is read to its end
		for _, p := range s.queue {
			if p.Path == path {
				return nil
			}
		}
		s.file.final = true
		s.queue = append(s.queue, logPlace{Path: path, After: (s.now - int64(slowAsk.Seconds()) - 5) * 1e6})
		return nil
	}
	if !s.resumed {
		s.resumed = true
		if err := s.resume(path); err == nil || !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	begin := openEnd
	if s.missing == path { // all of it was written since
		begin = func(path string) (*logFile, error) { return openPlace(logPlace{Path: path}) }
	}
	f, err := begin(path)
	if err != nil {
		return err
	}
	s.file, s.missing = f, ""
	s.save()
	return nil
}

// resume goes on where another process stopped.
func (s *SlowLog) resume(path string) error {
	saved, err := s.state.read()
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			s.lose(fmt.Sprintf("it is not known how far the slow log was read: %v; what was logged while Risso was not running is not read", err))
			s.lostRemedy = "risso digest reads the whole log"
			if err := s.state.setAside(); err != nil {
				return err
			}
		}
		return os.ErrNotExist
	}
	s.slowOpen, s.ours = saved.Open, true
	for _, m := range saved.Waiting {
		s.waiting = append(s.waiting, slowPending{Minute: m, tried: true})
	}
	list, lost := saved.Place.follow()
	if lost {
		s.lose(saved.Place.Path + " was rotated while Risso was not running, and the old file is not in its folder")
	}
	for _, q := range saved.Queue {
		if q.Path != saved.Place.Path { // else it was found again
			list = append(list, q)
		}
	}
	if saved.Place.Path != path && len(saved.Queue) == 0 {
		list = append(list, logPlace{Path: path, After: saved.Open.Clock * 1e6})
	}
	if len(list) == 0 {
		return os.ErrNotExist
	}
	s.queue = list
	return s.nextFile()
}

// lose notes that something could not be read.
func (s *SlowLog) lose(what string) {
	s.lost, s.lostUntil, s.lostRemedy = what, time.Unix(s.now+3600, 0), "keep at least the newest rotated log uncompressed in the log's folder (delaycompress in logrotate)"
	s.c.Logger.Warn("a part of the slow log is lost", "instance", s.c.instance.ID, "why", what)
}

// nextFile opens the next file of the queue.
func (s *SlowLog) nextFile() error {
	for len(s.queue) > 0 {
		if p := &s.queue[0]; s.file != nil && p.Offset == 0 { // a server that goes on writing after its log was cut repeats nothing
			p.Context = s.file.Context
		}
		f, err := openPlace(s.queue[0])
		if errors.Is(err, os.ErrNotExist) && len(s.queue) == 1 {
			return err
		}
		last := len(s.queue) == 1
		s.queue = s.queue[1:]
		if err != nil {
			s.lose(err.Error())
			continue
		}
		if s.file != nil {
			s.file.close() // was only read
		}
		f.final = !last
		s.file = f
		return nil
	}
	return os.ErrNotExist
}

// read reads until there is nothing more for now, or for a while; false says that there is more.
func (s *SlowLog) read(ctx context.Context, began time.Time) (idle bool) {
	for ctx.Err() == nil && time.Since(began) < slowTurn {
		if len(s.waiting) >= maxPending { // the store cannot be written; the log keeps what is in it
			return true
		}
		idle, err := s.file.next(s.event)
		switch {
		case errors.Is(err, io.EOF):
			if !s.turned() {
				return true
			}
		case err != nil:
			s.lose(err.Error())
			s.file.close() // was only read
			s.file, s.allowed, s.asked = nil, false, time.Time{}
			return true
		case idle:
			if !s.look() {
				return true
			}
		}
		if len(s.waiting) > 0 {
			return false // store it first
		}
	}
	return false
}

// turned goes on with the next file after one was read to its end.
func (s *SlowLog) turned() (more bool) {
	if len(s.queue) == 0 {
		s.queue = []logPlace{{Path: s.file.Path}}
	}
	if err := s.nextFile(); err != nil {
		return false
	}
	s.save()
	return true
}

// look sees whether the file was rotated or cut when its end is reached, and says whether there is more to read.
func (s *SlowLog) look() (more bool) {
	t, err := s.file.look()
	if err != nil {
		s.lose(err.Error())
		return false
	}
	s.gone = t == turnGone
	switch t {
	case turnRotated:
		return true // its last bytes, then the end
	case turnCut:
		list, _ := s.file.logPlace.follow() // without a copy, what was written since the last look is lost
		s.queue = append(list, s.queue...)
		return s.turned()
	}
	return false
}

// event takes an event of the log.
func (s *SlowLog) event(ev *digest.Event) {
	if ev.Time < s.file.After {
		return
	}
	t := ev.Time / 1e6
	if t <= 0 || t > s.now+slowAhead { // unknown, or from a session that set its own
		t = min(max(s.Clock, s.Least), s.now)
	}
	at := t / 60 * 60
	if oldest := s.now - slowOldest; at < oldest && s.Least < oldest {
		s.old++
		return
	}
	if at < s.Least {
		at = s.Least
	}
	if s.At != 0 && at > s.At {
		s.closeMinute()
	}
	if s.At == 0 {
		s.At, s.Least = at, at
	}
	s.Clock = max(s.Clock, min(t, s.now))
	s.minute.add(ev, s.At, t)
}

// closeMinute puts the open minute among those that wait to be stored.
func (s *SlowLog) closeMinute() {
	rows, taken := s.minute.take()
	if rows = join(append(append(rows, s.Rows...), s.Later...)); len(rows) > 0 {
		s.waiting = append(s.waiting, slowPending{Minute: events.Minute{Instance: s.c.instance.ID, Time: s.At, Rows: rows}, taken: taken})
	}
	s.At, s.Least, s.Rows, s.Later = 0, s.At+60, nil, nil
}

// tick closes the open minute when it is over and the log is read to its end.
func (s *SlowLog) tick(idle bool) {
	if s.Least > s.now+slowJump { // the clock was ahead, or jumped back
		if s.At != 0 {
			s.closeMinute()
		}
		s.Least, s.Clock = s.now/60*60, s.now
	}
	if s.At == 0 && len(s.Later) > 0 {
		s.At = max(s.Least, s.now/60*60)
		s.Least = s.At
	}
	if idle && s.At != 0 && s.now >= s.At+60+slowLate {
		s.closeMinute()
	}
}

// flush stores what waits.
func (s *SlowLog) flush(ctx context.Context) {
	if len(s.waiting) == 0 {
		return
	}
	s.save()
	if err := s.store(ctx); err != nil && ctx.Err() == nil {
		s.c.Logger.Warn("statements are waiting to be stored", "instance", s.c.instance.ID, "err", err)
	}
	s.save()
}

func (s *SlowLog) store(ctx context.Context) error {
	if err := s.c.Store.AddClasses(ctx, s.minute.found...); err != nil {
		return err
	}
	s.minute.found = nil
	for len(s.waiting) > 0 {
		m := &s.waiting[0]
		n, err := s.c.Store.AddMinutes(ctx, m.Minute)
		if err != nil {
			m.tried = true
			return err
		}
		if n == 0 && !m.tried { // that minute was there before: the clock went back, or another source counted in it
			s.Later = append(s.Later, m.Rows...)
		}
		taken, at := m.taken, m.Time
		s.waiting = s.waiting[1:]
		s.c.setStatus(func(st *Status) { st.Last = at + 60 })
		if err := s.closer(ctx, at, taken); err != nil {
			s.c.Logger.Debug("samples and plans were not stored", "instance", s.c.instance.ID, "err", err)
		}
	}
	return nil
}

// save writes down the position.
func (s *SlowLog) save() {
	if s.file == nil {
		return
	}
	st := slowState{Place: s.file.logPlace, Queue: s.queue, Open: s.slowOpen}
	st.Open.Rows = join(append(s.minute.rowsNow(), s.Rows...))
	for _, m := range s.waiting {
		st.Waiting = append(st.Waiting, m.Minute)
	}
	if err := s.state.write(st); err != nil {
		s.c.Logger.Warn("how far the slow log was read cannot be recorded", "instance", s.c.instance.ID, "err", err)
	}
	s.ours = true
}

// closer stores samples and plans of the heaviest classes of a minute.
func (s *SlowLog) closer(ctx context.Context, at int64, list []slowTaken) error {
	for k, t := range s.c.sampled {
		if at-t >= sampleEvery {
			delete(s.c.sampled, k)
		}
	}
	var samples []events.Sample
	best := map[sampleKey]read.StatementSample{}
	for _, t := range list[:min(len(list), heaviest)] {
		p := t.row.sample
		if _, fresh := s.c.sampled[t.sampleKey]; fresh || p.text == nil {
			continue
		}
		s.c.sampled[t.sampleKey] = at
		text := string(p.text)
		samples = append(samples, events.Sample{Instance: s.c.instance.ID, Class: t.class, Time: p.time, Text: s.c.shown(text), Seconds: p.seconds, Schema: t.schema, User: p.user, Host: p.host})
		if len(t.row.explain) == 0 {
			best[t.sampleKey] = read.StatementSample{Schema: t.schema, Text: text, Cut: p.cut, Time: p.time, Seconds: p.seconds}
		}
	}
	if err := s.c.Store.AddSamples(ctx, samples...); err != nil {
		return err
	}
	if err := s.logPlans(ctx, list); err != nil {
		return err
	}
	if s.log.Explains || s.c.conn == nil || at < s.now-planRecent {
		return nil
	}
	return s.c.takePlans(ctx, at, best)
}

// logPlans notes the plans in the log: a class's plan is stored when it changes, and now and then.
func (s *SlowLog) logPlans(ctx context.Context, list []slowTaken) error {
	if s.c.PlanID == nil {
		return nil
	}
	looked := 0
	for _, t := range list {
		if len(t.row.explain) == 0 {
			continue
		}
		if looked++; looked > slowPlans {
			break
		}
		text := explainTable(t.row.explain)
		id, err := s.c.PlanID(text)
		if err != nil {
			s.c.planNote(err)
			continue
		}
		if old := s.planIDs[t.sampleKey]; old.id == id && t.row.explainedAt-old.stored < sampleEvery {
			continue
		}
		flip, err := s.c.Store.AddPlan(ctx, events.Plan{Instance: s.c.instance.ID, Class: t.class, Schema: t.schema, ID: id, LastSeen: t.row.explainedAt, Origin: "slow log", Text: text})
		if err != nil {
			return err
		}
		if len(s.planIDs) >= maxSlowPlans {
			clear(s.planIDs)
		}
		s.planIDs[t.sampleKey] = seenPlan{id, t.row.explainedAt}
		if flip != nil {
			s.c.flipped(t.row.explainedAt, t.class, *flip, t.fingerprint)
		}
	}
	return nil
}

// notes says what the log does not have.
func (s *SlowLog) notes() []fleet.Trouble {
	list := []fleet.Trouble{}
	if s.log.Seconds > 0 {
		list = append(list, gap("statements below long_query_time", fmt.Sprintf("the slow log has only statements that took longer than long_query_time = %g", s.log.Seconds),
			fmt.Sprintf("SET GLOBAL long_query_time=%g shows more, for connections made after it; 0 shows all, and the log grows with each", min(s.log.Seconds/10, 0.1))))
	}
	if s.log.MinRows > 0 {
		list = append(list, gap("statements that read few rows", "the slow log has only statements that read at least "+digits.Counted(s.log.MinRows, "row")+" (min_examined_row_limit)", "SET GLOBAL min_examined_row_limit=0"))
	}
	if s.log.RateLimit > 1 {
		of := "statements"
		if s.log.RateBySession {
			of = "sessions"
		}
		list = append(list, gap("statements left out by log_slow_rate_limit", fmt.Sprintf("the slow log has those of one in %d %s; figures are for what it has, and are not multiplied", s.log.RateLimit, of), "SET GLOBAL log_slow_rate_limit=1"))
	}
	if s.gone {
		list = append(list, gap("new entries of the slow log", s.log.File+" was moved away or deleted; the server still writes to the old file", "FLUSH SLOW LOGS"))
	}
	if s.idleFile {
		list = append(list, gap("entries of the slow log", "the server counts slow statements, but "+s.log.File+" does not grow", "check whether the disk is full, and whether the server writes to that file"))
	}
	if n := s.file.behind(); n > 16<<20 {
		list = append(list, gap("the newest statements", fmt.Sprintf("reading is %s behind the log's end", digits.Bytes(n)), "it catches up; a higher long_query_time makes the log smaller"))
	}
	if s.old > 0 {
		list = append(list, gap("old statements", digits.Plural(s.old, "statement from more than a day before Risso was started was", "statements from more than a day before Risso was started were")+" skipped", "risso digest reads the whole log"))
	}
	if s.lost != "" && time.Unix(s.now, 0).Before(s.lostUntil) {
		list = append(list, gap("a part of the log", s.lost, s.lostRemedy))
	}
	if lost := s.file.scan.Lost(); lost != "" {
		list = append(list, gap("events of the log", lost, "risso digest shows more of the log"))
	}
	return list
}

func gap(what, reason, remedy string) fleet.Trouble {
	return fleet.Trouble{What: what, Why: reason, Remedy: remedy}
}
