package collect

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
)

const (
	answerTimeout  = 5 * time.Second // a server that has not answered everything by then counts as hung
	connectTimeout = 3 * time.Second
	secondLook     = 300 * time.Millisecond // after a reading that found a FLUSH, and nobody yet who waits for it
	acceptTimeout  = time.Second            // within which one that hangs accepts a connection: its kernel does
	oldTransaction = time.Minute            // from which age on they are told; the rules have their own limits above it
	maxBackoff     = 5                      // ticks between two attempts to connect, at the most
)

// Server watches one database server.
type Server struct {
	opts     Options
	target   mysql.Target
	instance fleet.Instance
	traffic  *mysql.Traffic
	reader   *read.Reader
	conn     *mysql.Conn
	upPos    int

	prev        []float64
	prevTick    int64
	prevAt      time.Time
	up          bool
	everUp      bool
	renewed     bool         // this tick used a new connection
	last        fleet.Server // which one answered
	other       bool         // another one answers now, under the same address
	downSince   time.Time
	failure     error
	attempts    int
	skip        int // ticks left before the next attempt to connect
	connections float64
	uptime      float64
	uptimeAt    time.Time // when it was answered
	uptimeAsked time.Time // and asked for
	hung        bool      // it accepts connections, and does not answer
	restarted   time.Time // when it was started last, if that was seen
	certificate certificate
	log         errorLog
}

// NewServer makes the collector of a server.
func NewServer(target mysql.Target, instance fleet.Instance, o Options) *Server {
	traffic := o.Traffic
	if traffic == nil {
		traffic = new(mysql.Traffic)
	}
	traffic.GoesFirst()
	s := &Server{opts: o, target: target, instance: instance, traffic: traffic, reader: read.NewReader(traffic), downSince: o.Down, hung: o.Hung}
	s.upPos = s.reader.Sample.Position(fleet.Metric{Name: "mysql_up", Help: "1 while the server answers", Source: "Risso"})
	return s
}

// Run reads the server every second until ctx ends.
func (s *Server) Run(ctx context.Context) {
	defer s.disconnect()
	if s.opts.Extra != nil {
		defer s.opts.Extra.Close()
	}
	Every(ctx, s.opts.Phase, func(due time.Time) time.Time { return s.tick(ctx, due) })
}

func (s *Server) tick(ctx context.Context, due time.Time) time.Time {
	sample := &s.reader.Sample
	begin := time.Now()
	err := s.read(ctx, due.Unix())
	if ctx.Err() != nil {
		return due
	}
	// What the server answered in a later second is that one's: it was away, or hung, or Risso was late.
	if over := s.reader.StatusAt.Sub(due); err == nil && over >= interval {
		due = due.Add(over.Truncate(interval))
	}
	t := due.Unix()
	unseen := err != nil && s.lateOurselves(begin, err)
	if err != nil {
		sample.Clear()
		s.disconnect()
	}
	switch {
	case unseen:
	case err != nil:
		sample.Values[s.upPos] = 0
		s.failed(t, err)
	default:
		s.answered(t)
		if s.other {
			forgetCounters(sample)
			s.other = false
		}
		sample.Values[s.upPos] = 1
		s.certificate.look(ctx, s, time.Now())
	}
	if !unseen {
		s.log.look(ctx, s, time.Now())
	}
	if s.opts.Extra != nil {
		s.opts.Extra.Read(sample)
	}
	late := time.Since(due) > lateAfter
	if err := s.opts.Sink.Append(t, sample.Metrics, sample.Values, late && err == nil); err != nil {
		s.opts.Logger.Debug("a reading was not stored", "instance", s.instance.ID, "err", err)
	}
	s.observe(t, late, unseen)
	if !unseen {
		s.prev = append(s.prev[:0], sample.Values...)
		s.prevTick, s.prevAt = t, time.Now()
		if err == nil {
			s.prevAt = s.reader.StatusAt
			s.lookAgain(ctx)
		}
	}
	return due
}

// lookAgain looks for those who wait for a lock of the whole server that lasts for less than a second. What a broken connection does to it,
// the next tick finds out, too.
func (s *Server) lookAgain(ctx context.Context) {
	if !s.reader.Flushed() || delay.For(ctx, secondLook) != nil {
		return
	}
	lctx, cancel := context.WithTimeout(ctx, interval)
	defer cancel()
	if err := s.reader.LookAgain(lctx, s.conn); err != nil {
		s.opts.Logger.Debug("who waits for a flush could not be read", "instance", s.instance.ID, "err", err)
	}
}

// forgetCounters leaves another server's settings, which are read now and not again for a minute. Its counters, and what else grows, have
// nothing to do with those before: a rate between them would be an invention.
func forgetCounters(sample *fleet.Sample) {
	for i, m := range sample.Metrics {
		if !read.IsSetting(m.Name) {
			sample.Values[i] = math.NaN()
		}
	}
}

// lateOurselves reports whether a failure is none of the server's: it hung up or seemed to hang while Risso itself stalled.
func (s *Server) lateOurselves(begin time.Time, err error) bool {
	class := mysql.ClassOf(err)
	ne, ok := errors.AsType[net.Error](err) // a name server may seem to hang, too
	return (class == mysql.ClassTimeout || class == mysql.ClassDropped || ok && ne.Timeout()) && s.up && s.opts.Pulse.Still(begin, time.Now()) >= lateShare
}

// read connects if need be and reads all that is due. A connection that served before and is found broken says
// nothing yet: somebody may have killed it, or a timeout in between. It is reopened, once, before the server counts as down.
func (s *Server) read(ctx context.Context, t int64) error {
	s.renewed = false
	lost := s.conn != nil
	if lost && s.reader.NeedsConnection(t) {
		s.disconnect()
	}
	if s.conn != nil {
		err := s.ask(ctx, t)
		if mysql.ClassOf(err) == mysql.ClassTimeout {
			s.hung = s.hung || mysql.Accepts(ctx, s.target, acceptTimeout)
		}
		if err == nil || mysql.ClassOf(err) != mysql.ClassDropped {
			return err
		}
		s.disconnect()
	}
	if s.skip > 0 {
		s.skip--
		return s.failure
	}
	if err := s.connect(ctx, lost); err != nil {
		// One that hangs goes on to be so: the queue of those that its kernel accepts for it fills up.
		s.hung = mysql.ClassOf(err) == mysql.ClassTimeout && (s.hung || mysql.Accepts(ctx, s.target, acceptTimeout))
		s.attempts++
		s.skip = min(max(s.attempts-10, 0), maxBackoff-1)
		return err
	}
	s.attempts = 0
	s.renewed = true
	return s.ask(ctx, t)
}

func (s *Server) ask(ctx context.Context, t int64) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if s.opts.Wish != nil && s.opts.Wish.Engine.Swap(false) {
		s.reader.WantEngine = true
	}
	return s.reader.Read(ctx, s.conn, t)
}

// connect connects. lost says that there was a connection until now: a busy server counts it for some time after it has ended.
func (s *Server) connect(ctx context.Context, lost bool) error {
	cctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := mysql.Connect(cctx, s.target, s.traffic)
	if mysql.ClassOf(err) == mysql.ClassFull && (s.traffic.MakeRoom(cctx) || lost) {
		conn, err = s.connectLater(cctx, err)
	}
	if err != nil {
		s.traffic.Settled("", mysql.ClassOf(err) == mysql.ClassFull)
		return err
	}
	s.traffic.Settled(conn.Server.QuotedAccount(), false)
	s.conn = conn
	s.reader.Connected()
	srv := conn.Server
	s.other = s.last != (fleet.Server{}) && s.last != srv.Server
	s.last = srv.Server
	if s.instance.Version != "" && s.everUp && (s.instance.Version != srv.Version || s.instance.Flavour != srv.Flavour) {
		s.event(time.Now(), fleet.EventVersion, fleet.SeverityInfo, "version", s.instance.Version, srv.Version,
			fmt.Sprintf("the server is now %s %s; it was %s %s", srv.Flavour, srv.Version, s.instance.Flavour, s.instance.Version))
	}
	s.instance.Version, s.instance.Flavour = srv.Version, srv.Flavour
	return nil
}

// connectLater connects while the server still takes leave of connections that were just lost, or given up for this one.
func (s *Server) connectLater(ctx context.Context, err error) (*mysql.Conn, error) {
	const pause = 20 * time.Millisecond
	for {
		if delay.For(ctx, pause) != nil {
			return nil, err
		}
		conn, again := mysql.Connect(ctx, s.target, s.traffic)
		if again == nil || mysql.ClassOf(again) != mysql.ClassFull && ctx.Err() == nil {
			return conn, again
		}
	}
}

func (s *Server) disconnect() {
	if s.conn != nil {
		s.conn.Close() // the connection is useless now, whatever Close returns
		s.conn = nil
	}
}

// failed notes that this tick brought nothing. The first failure after a success is an event.
func (s *Server) failed(t int64, err error) {
	s.failure = err
	if s.up || s.downSince.IsZero() {
		s.downSince = time.Unix(t, 0)
		s.event(s.downSince, fleet.EventDown, fleet.SeverityCritical, "", "", "", "the server "+explain(err).Why)
	}
	s.up = false
}

// explain returns the reason of a failure, and its remedy.
func explain(err error) fleet.Trouble {
	var e *mysql.Error
	if errors.As(err, &e) {
		return fleet.Trouble{Why: e.Reason(), Remedy: fleet.RemedyOf(e)}
	}
	switch mysql.ClassOf(err) {
	case mysql.ClassTimeout:
		why := "does not answer"
		if late, ok := errors.AsType[*mysql.LateError](err); ok {
			why = late.Error()
		}
		return fleet.Trouble{Why: why, Remedy: "it hangs, or a firewall drops packets"}
	case mysql.ClassDropped:
		return fleet.Trouble{Why: "dropped the connection"}
	}
	return fleet.Trouble{Why: err.Error()}
}

// answered notes success: what came back, restarted, was reset or changed becomes an event.
func (s *Server) answered(t int64) {
	now := time.Unix(t, 0)
	sample := &s.reader.Sample
	connections, _ := sample.Value("mysql_global_status_connections")
	uptime, _ := sample.Value("mysql_global_status_uptime")
	if s.everUp && s.renewed && s.startedAnew(connections, uptime) {
		began := now.Add(-time.Duration(uptime) * time.Second)
		s.restarted, s.log.due = began, time.Time{}
		s.event(began, fleet.EventRestart, fleet.SeverityWarning, "", "", "", "the server was restarted")
	}
	if s.everUp && !s.renewed && !s.uptimeAt.IsZero() {
		if jump := s.clockJump(uptime); math.Abs(jump) > 3 {
			s.event(now, fleet.EventClock, fleet.SeverityWarning, "clock", "", "", "the server's clock jumped "+digits.Shift(jump))
		}
		s.countersReset(now, uptime)
	}
	if !s.everUp && !s.downSince.IsZero() && !s.opts.Down.IsZero() {
		if began := now.Add(-time.Duration(uptime) * time.Second); began.After(s.opts.Down) { // while Risso did not look, maybe
			s.event(began, fleet.EventRestart, fleet.SeverityWarning, "", "", "", "the server was restarted")
			s.restarted, s.log.due = began, time.Time{}
		}
	}
	if !s.up && !s.downSince.IsZero() { // that was told, also where it has not answered since Risso was started
		s.event(now, fleet.EventUp, fleet.SeverityInfo, "", "", "", "the server answers again after "+digits.Span(now.Sub(s.downSince)))
	}
	s.up, s.everUp, s.hung = true, true, false
	s.downSince, s.failure = time.Time{}, nil
	s.connections, s.uptime, s.uptimeAt, s.uptimeAsked = connections, uptime, s.reader.StatusAt, s.reader.StatusAsked
	s.roleSeen(now)
	if s.reader.Fresh {
		s.opts.Recorder.Variables(s.instance.ID, now, s.reader.Variables)
	}
}

// passed returns the least and the most seconds between the moments in which the server looked at its clock, the last
// time and now: each time between question and answer, however long Risso took to ask and to read. A machine that slept
// knows it by its calendar only, so the most is by the clock that says more.
func (s *Server) passed() (least, most float64) {
	asked, told := s.reader.StatusAsked, s.reader.StatusAt
	least, most = asked.Sub(s.uptimeAt).Seconds(), told.Sub(s.uptimeAsked).Seconds()
	wall := told.Round(0).Sub(s.uptimeAsked.Round(0)).Seconds()
	return max(least, 0), max(most, wall)
}

// clockJump is by how many seconds the server's uptime grew more or less than it can have, at the least.
func (s *Server) clockJump(uptime float64) float64 {
	least, most := s.passed()
	switch grown := uptime - s.uptime; {
	case grown > most:
		return grown - most
	case grown < least:
		return grown - least
	}
	return 0
}

// startedAnew reports whether the server that answers again is another run of itself. The id of the newest connection
// never goes back while a server runs, whatever its clock does; a server that few connect to may have reached
// the old id again, but then it has not run for as long as the old one would have by now.
func (s *Server) startedAnew(connections, uptime float64) bool {
	if connections < s.connections {
		return true
	}
	least, most := s.passed()
	return !s.uptimeAt.IsZero() && uptime < s.uptime+least-3 && uptime < most+1
}

// countersReset finds FLUSH STATUS by how long after its start the server's counters began. That is no matter of
// its clock, which moves both times alike.
func (s *Server) countersReset(now time.Time, uptime float64) {
	i := s.reader.Sample.Find("mysql_global_status_uptime_since_flush_status")
	if i < 0 {
		return
	}
	// NaN, for a value that was not given, compares as false.
	if i < len(s.prev) && uptime-s.reader.Sample.Values[i] > s.uptime-s.prev[i] {
		s.event(now, fleet.EventReset, fleet.SeverityInfo, "counters", "", "", "the server's counters were reset (FLUSH STATUS)")
	}
}

func (s *Server) roleSeen(now time.Time) {
	role := s.reader.Role()
	old := s.instance.Role
	s.instance.Role = role
	if old == fleet.RoleUnread || role == fleet.RoleUnread { // what is known of it changed, not the role
		return
	}
	if old != fleet.RoleUnknown && old != role {
		s.event(now, fleet.EventRole, fleet.SeverityWarning, "role", string(old), string(role), fmt.Sprintf("the server is now %s; it was %s", role, old))
	}
}

func (s *Server) event(at time.Time, kind fleet.EventKind, sev fleet.Severity, subject, old, now, text string) {
	s.opts.Recorder.Event(fleet.Event{Time: at, Instance: s.instance.ID, Kind: kind, Severity: sev, Subject: subject, Old: old, New: now, Text: text})
}

func (s *Server) observe(t int64, late, unseen bool) {
	if s.opts.Observer == nil {
		return
	}
	v := View{Instance: s.instance, Tick: t, PrevTick: s.prevTick, Seconds: between(s.prevTick, t, s.prevAt, s.reader.StatusAt), Unseen: unseen, Prev: s.prev, Up: s.up, DownSince: s.downSince, Late: late, Sample: &s.reader.Sample, Fresh: s.reader.Fresh, Variables: s.reader.Variables, Texts: s.reader.Texts()}
	if s.conn != nil {
		v.Gaps = s.reader.Gaps(s.conn.Server)
	}
	if s.opts.Extra != nil {
		v.Gaps = append(v.Gaps, s.opts.Extra.Gaps()...)
	}
	if s.failure != nil {
		v.Down = explain(s.failure)
	}
	v.Channels = append(v.Channels, s.reader.Channels()...)
	v.Hung, v.Restarted, v.Log = s.hung, s.restarted, s.log.lines
	if s.up {
		v.Locks, v.Old, v.Open, v.Engine, v.Deadlock = s.reader.Locks, s.reader.Old(oldTransaction), s.reader.Transactions, s.reader.Engine, s.reader.Deadlocked
		v.Sessions, v.More = s.reader.Sessions()
	}
	if s.opts.Redact {
		v.redact()
	}
	s.opts.Observer.Observe(v)
}

// redact leaves out the values that findings would quote. What the reader keeps for its next reading stays as it is.
func (v *View) redact() {
	v.Locks = slices.Clone(v.Locks)
	for i := range v.Locks {
		v.Locks[i].HideKey()
	}
	v.Log = slices.Clone(v.Log)
	for i := range v.Log {
		v.Log[i] = read.LogWithoutStatement(errno.WithoutValues(v.Log[i]))
	}
	for i := range v.Channels { // a copy already
		c := &v.Channels[i]
		c.IO.Text, c.SQL.Text = errno.WithoutValues(c.IO.Text), errno.WithoutValues(c.SQL.Text)
	}
}
