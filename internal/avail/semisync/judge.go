// Package semisync says whether semi-synchronous replication is in force, what it is worth and costs, and what would be lost if the primary died
// now: what servers tell goes in, words come out. It does no input or output.
package semisync

import (
	"fmt"
	"math"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Forever is the time-out under which a primary waits rather than go on without an acknowledgement: the longest that MySQL takes, 49 days. Long is
// what counts as such.
const (
	Forever = 4294967295
	Long    = 3600 * 1000
)

// Missed is how long a commit waits, though enough replicas acknowledge, before it is taken for one that none of them acknowledges.
const Missed = 2 * time.Second

// Facts are what was learned. Numbers that are not known are -1.
type Facts struct {
	Server   mysql.Server
	Primary  string
	Source   read.SemiSyncSource
	Replicas []Replica
	Unheard  int64 // transactions of the primary that no replica has received
	Measured *Measured
	Waited   time.Duration // how long a statement runs at most that waits for an acknowledgement
	Alone    bool          // it lists no replica
	Follows  string        // the source that it replicates from itself, where it is alone; "": none, or not known
}

// Replica is one of the primary's.
type Replica struct {
	Name     string               `json:"name"`
	Side     read.SemiSyncReplica `json:"side"`
	Receives bool                 `json:"receives"` // it is connected to the primary
	Missing  int64                `json:"missing"`  // transactions of the primary that it has not received; -1: not known
}

// Measured is what commits cost, by commits that were made for it.
type Measured struct {
	Commits int64   `json:"commits"`      // how many were made
	Seconds float64 `json:"seconds"`      // each, on one session
	Waited  float64 `json:"wait_seconds"` // of that, the wait for an acknowledgement, by the server's own counters
	Acked   int64   `json:"acknowledged"` // commits that a replica acknowledged meanwhile
}

// State is how semi-synchronous replication stands.
type State string

// The states.
const (
	Off       State = "off"       // commits wait for nobody
	FellBack  State = "fell back" // it is on, but commits wait for nobody now
	Blocked   State = "blocked"   // commits wait, and nobody can acknowledge them
	InForce   State = "in force"
	NotProven State = "in force, not safe" // commits wait, but settings let them go on without
)

// Report is the verdict.
type Report struct {
	Primary  string              `json:"primary"`
	State    State               `json:"state"`
	Words    string              `json:"words"`
	Loss     string              `json:"loss"` // what is lost if the primary dies now
	Cost     string              `json:"cost"` // what commits wait
	Problems []Problem           `json:"problems,omitempty"`
	Source   read.SemiSyncSource `json:"source"`
	Replicas []Replica           `json:"replicas"`
	Measured *Measured           `json:"measured,omitempty"`
}

// Problem is one thing that keeps it from being worth what is expected of it.
type Problem struct {
	Code  string `json:"code"` // as in docs/semisync.md
	Words string `json:"words"`
	Next  string `json:"next,omitempty"` // a statement or command against it
}

// Judge says how it stands.
func Judge(f Facts) Report {
	r := Report{Primary: f.Primary, Source: f.Source, Replicas: f.Replicas, Measured: f.Measured}
	if r.Replicas == nil {
		r.Replicas = []Replica{}
	}
	if f.Alone && f.Follows != "" { // what is said of primaries does not hold for it
		r.State, r.Words = Off, "it is a replica of "+f.Follows+" without replicas of its own: nobody could acknowledge its commits"
		r.problem("is_replica", "it is not the primary: it replicates from "+f.Follows, "ask "+f.Follows+": risso semisync status says whether its commits wait for this replica")
		r.Loss, r.Cost = "what was committed on it alone, if anything: it lists no replica, and all else came from its source", f.cost()
		return r
	}
	f.state(&r)
	f.settings(&r)
	f.replicas(&r)
	r.Loss, r.Cost = f.loss(r.State), f.cost()
	return r
}

func (r *Report) problem(code, words, next string) {
	r.Problems = append(r.Problems, Problem{code, words, next})
}

func (f *Facts) state(r *Report) {
	s := f.Source
	count := max(1, s.Count)
	off := "SET GLOBAL " + s.Names.Prefix + "_enabled = OFF"
	switch {
	case !s.Loaded:
		r.State, r.Words = Off, "it is not loaded: commits wait for nobody"
		r.problem("not_loaded", "the primary's plug-in is not installed", "risso semisync on")
	case !s.Enabled:
		r.State, r.Words = Off, "it is switched off: commits wait for nobody"
		r.problem("disabled", s.Names.Prefix+"_enabled is OFF on the primary", "risso semisync on")
	case s.InForce && s.Clients < count:
		r.State = Blocked
		r.Words = fmt.Sprintf("%s that could acknowledge connected, %d needed: each commit waits", connected(s.Clients), count)
		if s.Waiting > 0 {
			r.Words = fmt.Sprintf("writes are blocked: %s for an acknowledgement that nobody can give; %s connected, %d needed", waits(s.Waiting), connected(s.Clients), count)
		}
		if f.couldAcknowledge() {
			r.problem("blocked", "replicas receive, and do not acknowledge", "risso semisync on (they acknowledge then, and the primary is told what they have; the waiting commits go on)")
		} else {
			r.problem("blocked", "bring a replica back: START REPLICA, or START SLAVE, there; or let the primary go on without, and risk what it then commits", off+" (the waiting commits go on at once; risso semisync on when replicas are back)")
		}
	case s.InForce && s.Waiting > 0 && f.Waited >= Missed:
		r.State = Blocked
		r.Words = fmt.Sprintf("writes are blocked: %s for an acknowledgement that does not come, one for %s; %s could give it", waits(s.Waiting), digits.Span(f.Waited), replicas(s.Clients))
		r.problem("received_before", "replicas have received what a commit waits for before they acknowledged, and do not acknowledge that later", "risso semisync on (the primary is told what they have; the waiting commits go on)")
	case s.InForce:
		r.State = InForce
		r.Words = fmt.Sprintf("commits wait until %s acknowledged them; %s can", replicas(count), replicas(s.Clients))
		if s.Waiting > 0 {
			r.Words += fmt.Sprintf("; %s now", waits(s.Waiting))
		}
	default:
		r.State = FellBack
		r.Words = fmt.Sprintf("it is on, but commits wait for nobody now: %s connected, %d needed", connected(s.Clients), count)
		r.problem("fell_back", fmt.Sprintf("it went on without an acknowledgement %s since it was started; the time-out is %s", digits.Plural(s.FellBack, "time", "times"), digits.Seconds(float64(s.Timeout)/1000)), "bring replicas back; risso semisync on sets a time-out that waits for them")
	}
}

// couldAcknowledge reports whether as many replicas receive as a commit waits for, and only do not acknowledge.
func (f *Facts) couldAcknowledge() bool {
	n := int64(0)
	for _, p := range f.Replicas {
		if p.Receives && p.Side.Loaded {
			n++
		}
	}
	return n >= max(1, f.Source.Count)
}

func replicas(n int64) string { return digits.Plural(n, "replica", "replicas") }

// connected says how many replicas there are.
func connected(n int64) string {
	if n == 0 {
		return "no replica"
	}
	return "only " + replicas(n)
}

func waits(n int64) string { return digits.Plural(n, "session waits", "sessions wait") }

// settings finds those under which something acknowledged can be lost.
func (f *Facts) settings(r *Report) {
	s := f.Source
	if !s.Loaded || !s.Enabled {
		return
	}
	set := func(end, value string) string { return f.Server.SetLasting(s.Names.Prefix+"_"+end, value) }
	if s.WaitPoint != "AFTER_SYNC" {
		r.problem("after_commit", "the wait comes after the commit ("+s.WaitPoint+"): others read rows that are lost with the primary", set("wait_point", "AFTER_SYNC"))
	}
	if s.Timeout < Long {
		r.problem("timeout", "after "+digits.Seconds(float64(s.Timeout)/1000)+" without an acknowledgement it goes on without", set("timeout", fmt.Sprint(Forever)))
	}
	if !s.WaitNone {
		r.problem("wait_none", s.Names.Prefix+"_"+s.Names.None+" is OFF: it goes on without as soon as too few replicas are connected", set(s.Names.None, "ON"))
	}
	if r.State == InForce && len(r.Problems) > 0 {
		r.State = NotProven
	}
	if s.Clients > max(1, s.Count) {
		r.problem("any_of_several", fmt.Sprintf("%s acknowledge, and %d is enough for a commit: a failover has to reach %d of them to be sure to find all that was acknowledged",
			replicas(s.Clients), max(1, s.Count), s.Clients-max(1, s.Count)+1), "")
	}
}

// replicas finds those that do not acknowledge though they should.
func (f *Facts) replicas(r *Report) {
	for _, p := range f.Replicas {
		switch {
		case !p.Side.Loaded || !p.Side.Enabled:
			if f.Source.Enabled {
				r.problem("replica_off", p.Name+" does not acknowledge: it is off there", "risso semisync on")
			}
		case !p.Receives:
			r.problem("replica_not_connected", p.Name+" is not connected to the primary", "risso lag says why")
		case !p.Side.InForce:
			r.problem("replica_not_in_force", p.Name+" connected before it was switched on there, or the primary was not ready: its connection does not acknowledge", "STOP REPLICA IO_THREAD; START REPLICA IO_THREAD there (MariaDB: SLAVE)")
		}
	}
}

// loss says what is lost if the primary dies now and one of the replicas takes over.
func (f *Facts) loss(s State) string {
	unheard := ""
	switch {
	case f.Unheard == 0:
		unheard = "; at this moment each transaction is on a replica"
	case f.Unheard > 0:
		unheard = fmt.Sprintf("; at this moment %s on no replica", digits.Plural(f.Unheard, "transaction is", "transactions are"))
	}
	switch s {
	case InForce:
		return "nothing that was acknowledged to a client, if the replica with the most is promoted; commits that still wait may be there or not"
	case Blocked:
		return "nothing that was acknowledged to a client: commits do not return" + unheard
	case NotProven:
		return "nothing as long as it stays in force; the settings below let it go on without" + unheard
	}
	if f.Alone {
		return "everything, but for backups: it lists no replica; one that is not connected now may have a part"
	}
	return "what was committed and not yet sent: the last moments before" + unheard
}

// cost says what commits wait: measured, or by the server's counters since its start.
func (f *Facts) cost() string {
	if m := f.Measured; m != nil && m.Commits > 0 && m.Seconds > 0 {
		if m.Acked == 0 {
			return fmt.Sprintf("measured: a commit takes %s, %s on one session; it waits for nobody", digits.Seconds(m.Seconds), digits.Rate(1/m.Seconds))
		}
		text := fmt.Sprintf("measured: a commit takes %s, of which it waits %s for the acknowledgement: %s on one session", digits.Seconds(m.Seconds), digits.Seconds(m.Waited), digits.Rate(1/m.Seconds))
		if rest := m.Seconds - m.Waited; rest > 0 {
			text += fmt.Sprintf(", %s without the wait", digits.Rate(1/rest))
		}
		return text
	}
	s := f.Source
	if s.TxWaits > 0 {
		mean := s.TxMicros / float64(s.TxWaits) / 1e6
		return fmt.Sprintf("by the server's counters a commit that waited did so for %s on average: at most %s on one session", digits.Seconds(mean), digits.Rate(1/math.Max(mean, 1e-9)))
	}
	return "unknown: no commit has waited since the server started; --measure-commits makes some"
}
