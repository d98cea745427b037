package lag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/blockers"
	"github.com/rissodb/risso/internal/channels"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/follow"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/oneline"
)

// slack is how many seconds behind are still as late as meant: delays are counted in whole seconds on two clocks.
const slack = 2

// Judge says why a channel is late.
func Judge(replica string, f Facts) Report {
	r := Report{Replica: replica, Channel: f.After.Name, Source: f.After.Channel.Source, Delay: f.After.Delay, Causes: []Cause{}, Gaps: f.Gaps}
	if f.After.Said >= 0 {
		r.Said = &f.After.Said
	}
	f.measure(&r)
	r.State = f.state(&r)
	f.forecast(&r)
	f.causes(&r)
	return r
}

// measure says how late it is, in seconds, transactions and bytes.
func (f *Facts) measure(r *Report) {
	seconds := func(v float64, by string) {
		v = max(0, v)
		r.Seconds, r.SecondsBy = &v, by
	}
	missing := int64(f.After.Received.Ahead(f.After.Applied))
	bytes := f.After.Unapplied
	if f.Source != nil {
		if !f.After.Applied.Empty() {
			missing = f.Source.Missing
		} else {
			missing = -1
		}
		bytes = f.Source.Unapplied
	} else {
		r.OnlyReceived = true
		if f.After.Received.Empty() {
			missing = -1
		}
	}
	if missing >= 0 {
		r.Transactions = &missing
	}
	if bytes >= 0 {
		r.Bytes = &bytes
	}
	oldest := -1.0
	if len(f.Looks) > 0 {
		for _, a := range f.Looks[len(f.Looks)-1].Appliers {
			oldest = max(oldest, a.Age)
		}
	}
	switch {
	case f.Source != nil && f.Source.Level:
		seconds(0, "it has all that the source has")
	case f.Source != nil && f.Source.FirstAge >= 0:
		seconds(f.Source.FirstAge, "the age of the first transaction in the source's log that is not applied")
	case oldest >= 0 && f.After.Applies():
		seconds(oldest, "when the transaction that it applies was committed first, by two clocks")
	case f.After.Said >= 0 && f.Source == nil:
		seconds(float64(f.After.Said), "what the server says: Seconds_Behind_Source, which does not see what was not received")
	case f.After.Said > 0:
		seconds(float64(f.After.Said), "what the server says: Seconds_Behind_Source")
	}
}

func (f *Facts) state(r *Report) State {
	m := f.After
	outstanding := r.Transactions != nil && *r.Transactions > 0 || r.Bytes != nil && *r.Bytes > 0
	late := r.Seconds == nil || *r.Seconds > float64(m.Delay)+slack
	switch {
	case !m.Applies() || !m.Receives():
		return Stopped
	case f.Source != nil && f.Source.Level:
		return Level
	case m.Delay > 0 && r.Seconds != nil && !late && !f.silent():
		return Delayed
	case f.Source != nil || outstanding || m.Said > 0:
		return Behind
	case r.Transactions != nil || r.Bytes != nil || m.Said == 0:
		return Applied
	}
	return Unknown
}

// forecast says when it will be level.
func (f *Facts) forecast(r *Report) {
	switch r.State {
	case Level:
		r.Forecast = "it is level"
		return
	case Applied:
		r.Forecast = "it has applied all that it received; what its source has done since is not seen"
		return
	case Delayed:
		r.Forecast = "it is as late as it is configured to be"
		return
	case Stopped:
		r.Forecast = "not before both threads run"
		if f.After.Applies() && r.Transactions != nil && *r.Transactions == 0 && r.OnlyReceived {
			r.Forecast = "not before it receives again"
		}
		return
	}
	defer func() {
		if f.Source == nil {
			r.Forecast += "; that is about what it received: its source was not asked"
		}
	}()
	before, after, written, known := f.backlog()
	left, known1 := f.restOfTransaction()
	switch {
	case known1 && r.Transactions != nil && *r.Transactions == 1:
		r.Course = channels.Course{Way: channels.CatchesUp, Level: left}
		r.Forecast = fmt.Sprintf("in about %s, when the transaction that it is in ends", digits.Age(left))
	case known1:
		r.Course = channels.Course{Way: channels.StandsFast}
		r.Forecast = fmt.Sprintf("the transaction that it is in ends in about %s; how fast it works off what comes then is unknown", digits.Age(left))
	case !known || f.Span <= 0:
		r.Forecast = "unknown: the servers do not tell how much it has to apply"
	case f.silent():
		r.Course = channels.Course{Way: channels.StandsFast}
		r.Forecast = "not while nothing comes from the source"
	case before+written-after <= 0:
		r.Course = channels.Course{Way: channels.StandsFast}
		r.Forecast = fmt.Sprintf("unknown: it finished nothing within the %s of this look", digits.Seconds(f.Span))
	default:
		r.Course = channels.CourseOf(after, (after-before)/f.Span, (before+written-after)/f.Span)
		if r.Course.Way == channels.CatchesUp && after == 0 {
			r.Forecast = "it is level with what was seen"
			return
		}
		r.Forecast = r.Course.String()
	}
}

// restOfTransaction is how many seconds the transaction that the applier is in still takes, by the rows that it has and those that are done.
func (f *Facts) restOfTransaction() (seconds float64, known bool) {
	if f.Source == nil || f.Source.FirstRows <= 0 || !f.Stuck.Same || f.Span <= 0 {
		return 0, false
	}
	first, last := f.progress()
	if first == nil || last.Rows <= first.Rows || last.Rows > f.Source.FirstRows {
		return 0, false
	}
	return float64(f.Source.FirstRows-last.Rows) / (float64(last.Rows-first.Rows) / f.Span), true
}

// backlog is what was not applied at the two moments, and what was added to it in between: in bytes where they are known, else in transactions.
func (f *Facts) backlog() (before, after, written float64, known bool) {
	if s := f.Source; s != nil && s.Unapplied >= 0 && s.UnappliedBefore >= 0 && s.Written >= 0 {
		return float64(s.UnappliedBefore), float64(s.Unapplied), float64(s.Written), true
	}
	if !f.After.Received.Empty() {
		count := func(m read.ReplicaMoment) float64 { return float64(m.Received.Ahead(m.Applied)) }
		return count(f.Before), count(f.After), float64(f.After.Received.Ahead(f.Before.Received)), true
	}
	if f.Before.Unapplied >= 0 && f.After.Unapplied >= 0 && f.Before.ReadLog == f.After.ReadLog {
		return float64(f.Before.Unapplied), float64(f.After.Unapplied), float64(f.After.ReadPos - f.Before.ReadPos), true
	}
	return 0, 0, 0, false
}

// causes finds them: those that stop it, then those that keep it.
func (f *Facts) causes(r *Report) {
	add := func(c Cause) { r.Causes = append(r.Causes, c) }
	f.threads(add)
	if state := f.noRoom(); state != "" {
		add(Cause{Code: "server.no_room", Words: "it waits for room on a disk", Certain: true, weight: stops + 3, Evidence: []string{"a thread's state: " + oneline.Of(state)},
			NotSeen: "which disk", Next: "make room: remove what is not needed, never binary or relay logs by hand; it goes on by itself"})
	}
	if r.State == Level || r.State == Applied {
		f.silentHeartbeat(add)
		return
	}
	f.receiving(r, add)
	f.delayed(r, add)
	if f.After.Applies() && r.State != Delayed {
		f.applying(add)
	}
	slices.SortStableFunc(r.Causes, func(a, b Cause) int { return cmp.Compare(b.weight, a.weight) })
	if len(r.Causes) > 0 || r.State != Behind {
		return
	}
	if r.Course.Way == channels.CatchesUp {
		add(Cause{Code: "catching_up", Words: "nothing keeps it now: it works off what it missed", Evidence: []string{r.Forecast}})
		return
	}
	add(Cause{Code: "unexplained", Words: "it is behind, and nothing that was seen explains it", Evidence: f.told(),
		NotSeen: "what it waited for between the looks", Next: "look again for longer: --for 30s"})
}

// The weights of causes: what stops all comes before what slows it down.
const (
	stops = 100.0
	holds = 10.0
)

// threads finds those that do not run.
func (f *Facts) threads(add func(Cause)) {
	m := f.After
	if c, is := f.keptFrom(); is {
		add(c)
		return
	}
	drops := channels.StartDrops(f.Server, m.Channel)
	remedy := func() (string, string) {
		statement, advice := channels.GoOn(f.Server, m.Channel, f.setting)
		return statement, advice + drops
	}
	start := next(f.Server.StartReplica(m.Name), drops)
	if !m.Applies() {
		if m.SQL.Text != "" {
			statement, advice := remedy()
			add(Cause{Code: "applier.error", Words: "it stopped applying" + channels.Failure(m.SQL), Certain: true, Next: next(statement, advice), weight: stops + 2})
		} else {
			add(Cause{Code: "applier.stopped", Words: "the thread that applies does not run, without an error: it was stopped by a command, or not started after a restart", Certain: true, Next: start, weight: stops + 2})
		}
	}
	connecting := strings.EqualFold(m.IORunning, "Connecting")
	switch {
	case m.Receives():
	case connecting:
		words := "it cannot connect to " + m.Channel.Source
		if m.IO.Text != "" {
			words += channels.Failure(m.IO)
		}
		c := Cause{Code: "receiver.connecting", Words: words, Certain: true, weight: stops + 1, Next: "see whether the source runs and can be reached from the replica's machine; it tries again by itself"}
		if statement, advice := remedy(); m.SQL.Text == "" && statement+advice != "" {
			c.Next = next(statement, advice)
		}
		add(c)
	case m.IO.Text != "":
		c := Cause{Code: "receiver.error", Words: "it stopped receiving" + channels.Failure(m.IO), Certain: true, weight: stops + 1}
		if m.SQL.Text == "" {
			c.Next = next(remedy())
		}
		add(c)
	default:
		add(Cause{Code: "receiver.stopped", Words: "the thread that receives does not run, without an error: it was stopped by a command, or not started after a restart", Certain: true, Next: start, weight: stops + 1})
	}
}

// keptFrom is that Risso keeps the channel from its source, so that to start it would help nothing.
func (f *Facts) keptFrom() (Cause, bool) {
	source := f.After.Channel.Source
	is, next, kept := channels.Kept(source)
	if !kept {
		return Cause{}, false
	}
	code := "detached"
	if _, rebuilding := follow.Unmarked(source, follow.RebuildingSuffix); rebuilding {
		code = "rebuilding"
	}
	return Cause{Code: code, Words: "it is " + is, Evidence: []string{"its source is set to " + source}, Certain: true, Next: next, weight: stops + 2}, true
}

func next(statement, advice string) string {
	advice = strings.TrimPrefix(advice, "; ")
	if statement == "" {
		return advice
	}
	if advice == "" {
		return statement
	}
	return statement + " (" + advice + ")"
}

// silentHeartbeat finds a source from which nothing comes any more though it should say that it lives.
func (f *Facts) silentHeartbeat(add func(Cause)) {
	m := f.After
	if f.Source != nil || !m.Receives() || m.HeartbeatEvery <= 0 || m.Heartbeat < 2*m.HeartbeatEvery+slack {
		return
	}
	if m.ReadPos != f.Before.ReadPos || m.ReadLog != f.Before.ReadLog {
		return
	}
	add(Cause{Code: "receiver.silent", Words: "the source has said nothing for a while, though it should say that it lives", weight: stops,
		Evidence: []string{fmt.Sprintf("the last heartbeat came %s ago, one is due every %s", digits.Age(m.Heartbeat), digits.Seconds(m.HeartbeatEvery))},
		NotSeen:  "whether the source has anything to send: " + f.NotAsked, Next: "name the source with --source, or see whether it runs"})
}

// silent reports whether nothing comes of what the source has, and the replica would take it.
func (f *Facts) silent() bool {
	return f.Source != nil && f.Source.Silent && f.doing(read.ApplierRelayFull) == 0 && f.doing(read.ApplierQueues) <= 0.5 && f.noRoom() == ""
}

// noRoom is the state of a thread that waits for room on a disk, in the server's words; "": none does.
func (f *Facts) noRoom() string {
	states := []string{f.After.IOState, f.After.SQLState}
	for _, l := range f.Looks {
		for _, a := range l.Appliers {
			states = append(states, a.State)
		}
	}
	for _, state := range states {
		if mysql.WaitsForRoom(state) {
			return state
		}
	}
	return ""
}

// receiving finds what keeps the source's log from coming.
func (f *Facts) receiving(r *Report, add func(Cause)) {
	s := f.Source
	if s == nil {
		f.silentHeartbeat(add)
	}
	if full := f.doing(read.ApplierRelayFull); full > 0 {
		add(Cause{Code: "relay.full", Words: "it receives nothing more: the relay logs have reached relay_log_space_limit", Certain: true, weight: full,
			Evidence: []string{fmt.Sprintf("relay logs of %s, the limit is %s", digits.Bytes(f.After.RelaySpace), limit(f.setting("relay_log_space_limit")))},
			Next:     "this only bounds what is received; what keeps the applier is what makes it late"})
		return
	}
	if s == nil || !f.After.Receives() || s.Unreceived <= 0 || s.UnreceivedBefore <= 0 {
		return
	}
	came := s.UnreceivedBefore + s.Written - s.Unreceived
	evidence := []string{fmt.Sprintf("%s of the source's log were not received yet", digits.Bytes(s.Unreceived)),
		fmt.Sprintf("within %s the source wrote %s, and %s came", digits.Seconds(f.Span), digits.Bytes(max(0, s.Written)), digits.Bytes(max(0, came)))}
	if queues := f.doing(read.ApplierQueues); queues > 0.5 { // before silent: what it writes for long moves nothing
		add(Cause{Code: "relay.disk", Words: "the thread that receives is kept by writing the relay log", weight: holds * queues,
			Evidence: append(evidence, f.set("sync_relay_log")...), NotSeen: "how long each write takes", Next: "see the disk of the relay logs; sync_relay_log = 1 makes it wait for each event"})
		return
	}
	if f.silent() {
		c := Cause{Code: "receiver.silent", Words: "the connection to the source stands, and nothing came over it: the network, or the source's thread that sends",
			Evidence: evidence, NotSeen: "whether one large event is on its way: a part of it does not count as received", weight: stops,
			Next: f.Server.RestartReceiver(r.Channel) + " (connects anew, and begins a large event anew; after replica_net_timeout, or slave_net_timeout, without a byte it does so by itself)"}
		if f.After.Said >= 0 {
			c.Evidence = append(c.Evidence, fmt.Sprintf("the server itself says %s behind, because it sees only what it received", digits.Plural(f.After.Said, "second", "seconds")))
		}
		add(c)
		return
	}
	if share := float64(s.Unreceived) / max(1, float64(s.Unapplied)); share > 0.1 {
		add(Cause{Code: "network", Words: "the source's log comes too slowly: the network between them, or the source's disk", Certain: share > 0.5, Evidence: evidence, weight: holds * share,
			NotSeen: "which of the two it is", Next: f.Server.CompressChannel(r.Channel) + " (a channel that compresses needs less of the network; see the network between the two)"})
	}
}

func limit(text string) string {
	n, err := digits.ParseBytes(text)
	if err != nil {
		return "unknown"
	}
	return digits.Bytes(n)
}

// set says how settings are.
func (f *Facts) set(names ...string) (list []string) {
	for _, n := range names {
		if v := f.setting(n); v != "" {
			list = append(list, n+" = "+oneline.Of(v))
		}
	}
	return list
}

// delayed tells of a configured delay.
func (f *Facts) delayed(r *Report, add func(Cause)) {
	m := f.After
	if m.Delay <= 0 {
		return
	}
	c := Cause{Code: "delayed", Words: fmt.Sprintf("it is configured to stay %s behind", digits.Seconds(float64(m.Delay))), Certain: true, weight: holds / 2}
	if r.State == Delayed || f.doing(read.ApplierDelayed) > 0 {
		c.weight = stops / 2
	}
	if m.DelayLeft >= 0 {
		c.Evidence = append(c.Evidence, fmt.Sprintf("the next transaction is due in %s", digits.Seconds(float64(m.DelayLeft))))
	}
	if r.Seconds != nil && *r.Seconds > float64(m.Delay)+slack {
		c.Evidence = append(c.Evidence, fmt.Sprintf("it is %s later than that", digits.Age(*r.Seconds-float64(m.Delay))))
	}
	c.Next = f.Server.SetReplicaDelay(m.Name, 0)
	if m.IORunning != "Yes" { // with both threads stopped a server throws away what it has received, and here the source may be gone
		c.Next = "nothing is received now, and to change the delay by hand may throw away what was received and not applied: risso replica delay looks for that first"
	}
	add(c)
}

// told is what the looks saw of the appliers, each state once.
func (f *Facts) told() (list []string) {
	for _, l := range f.Looks {
		for _, a := range l.appliers() {
			if text := "an applier: " + oneline.Of(a.State); a.State != "" && !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	return list[:min(len(list), 5)]
}

// locked is the wait that an applier is in: the root of it.
func (f *Facts) locked() (root blockers.Root, share float64) {
	share = f.share(func(l Look) bool {
		if len(l.Locks) == 0 {
			return slices.ContainsFunc(l.appliers(), func(a read.Applier) bool { return a.Doing == read.ApplierLocked })
		}
		for _, candidate := range blockers.Roots(l.Locks) {
			if slices.ContainsFunc(l.appliers(), func(a read.Applier) bool { return slices.Contains(candidate.Waiters, a.Session) }) {
				root = candidate
				return true
			}
		}
		return false
	})
	return root, share
}
