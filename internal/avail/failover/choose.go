package failover

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/lag"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Refusal is why something is not done, or somebody not promoted.
type Refusal struct {
	Code string `json:"code"` // as docs/failover.md has them
	fleet.Trouble
}

// Question is who is to follow a primary.
type Question struct {
	Group     *group.Group
	Topology  *topology.Topology // of the members that could be asked; nodes are called as the members
	Old       string             // the primary that is replaced; "": there is none
	Alive     bool               // it answers, and hands over: then Topology has it
	Known     Known              // what was last known of it
	To        string             // by name; "": the best
	Lossless  bool               // a known loss refuses it
	Without   []string           // who was tried and did not do
	Receiving []string           // who may still receive, though all were to stop
	Delayed   bool               // also one that stays behind on purpose
	Room      map[string]Room    // by member, as far as it is known
}

// Candidate is a member that may follow.
type Candidate struct {
	Name     string    `json:"name"`
	Received string    `json:"received"` // GTIDs: all that it has, applied or not
	Waiting  uint64    `json:"waiting"`  // of these so many are not applied
	Lacks    uint64    `json:"lacks"`    // so many another one has received and it has not
	Refused  []Refusal `json:"refused"`  // why it is not promoted
	Notes    []string  `json:"notes,omitempty"`
	// Drain is how long it takes to apply what it received; absent: that was not looked at.
	Drain    *lag.Drain `json:"drain,omitempty"`
	full     bool       // its disk has hardly any room
	out      []Out      // who cannot replicate from it
	node     int
	asked    time.Time
	member   *group.Member
	received mysql.GTIDSet
	executed mysql.GTIDSet
}

// Choice is who follows.
type Choice struct {
	Winner string `json:"winner"` // "": nobody
	// From is the member from which the winner first gets what it lacks; "": it lacks nothing.
	From       string      `json:"from,omitempty"`
	Candidates []Candidate `json:"candidates"` // the winner first
	Refused    []Refusal   `json:"refused"`
	Lost       string      `json:"lost,omitempty"` // GTIDs that the old primary had and no candidate received
	Count      uint64      `json:"lost_count"`
	// Out are members that cannot replicate from the winner, which was named all the same: they stay out.
	Out   []Out    `json:"out,omitempty"`
	Notes []string `json:"notes,omitempty"`
	// Drain is how long a failover waits until the winner has applied what it received, and what it gets from another member; absent: that was not looked at.
	Drain *lag.Drain `json:"drain,omitempty"`
	// Handover is how long a switchover waits until the winner has applied all that the primary has; absent: that was not looked at, or the primary does not answer.
	Handover *lag.Drain `json:"handover,omitempty"`
	// Deaf is why nobody would have what the primary writes now, as no member receives from it; nil: somebody does.
	Deaf *Refusal `json:"deaf,omitempty"`
	// Few is, of a group that is failed over by itself, why nobody would be promoted by itself if the primary died now, as too few members could say that it did; nil: enough could.
	Few *Refusal `json:"few,omitempty"`
}

// Ready reports whether somebody could follow the primary, and has what it wrote last, and, where that is wanted, would by itself.
func (c *Choice) Ready() bool { return c.Winner != "" && c.Deaf == nil && c.Few == nil }

// Refusal is the reason of a code why nobody is promoted; nil: that is none of them.
func (c *Choice) Refusal(code string) *Refusal {
	if i := slices.IndexFunc(c.Refused, func(r Refusal) bool { return r.Code == code }); i >= 0 {
		return &c.Refused[i]
	}
	return nil
}

// refuse adds a reason to a list.
func refuse(list *[]Refusal, code, remedy, format string, args ...any) {
	*list = append(*list, Refusal{code, fleet.Trouble{What: code, Why: fmt.Sprintf(format, args...), Remedy: remedy}})
}

// chooser answers one question.
type chooser struct {
	Question
	old   *topology.Node // nil: it was not seen
	apart bool           // two members each have something that the other lacks
	c     Choice
}

// Choose says who follows a primary. It is pure. Where the answer has refusals there is no winner.
func Choose(q Question) Choice {
	ch := &chooser{Question: q}
	if i := q.Topology.Find(q.Old); i >= 0 && q.Topology.Nodes[i].Seen {
		ch.old = &q.Topology.Nodes[i]
	}
	for i := range q.Group.Members {
		if m := &q.Group.Members[i]; m.Name != q.Old {
			ch.c.Candidates = append(ch.c.Candidates, ch.candidate(m))
		}
	}
	ch.versions()
	ch.order()
	ch.diverged()
	ch.rivals()
	ch.pick()
	ch.losses()
	ch.receiving()
	ch.agreeing()
	if len(ch.c.Refused) > 0 {
		ch.c.Winner, ch.c.From = "", ""
	}
	return ch.c
}

// candidate looks at a member by itself.
func (ch *chooser) candidate(m *group.Member) Candidate {
	c := Candidate{Name: m.Name, node: ch.Topology.Find(m.Name), member: m}
	no := func(code, remedy, format string, args ...any) { refuse(&c.Refused, code, remedy, format, args...) }
	switch {
	case m.Status == group.Faulty:
		no("faulty", "risso group set-status "+ch.Group.Name+" "+m.Name+" SPARE", "it is FAULTY%s", because(m.Fault))
	case m.Status == group.Spare && ch.To != m.Name:
		no("spare", "name it with --to "+m.Name, "it is SPARE: it is promoted only by name")
	}
	if m.Rule == group.Never {
		no("never", "", "its rule is never")
	}
	if slices.Contains(ch.Without, m.Name) {
		no("tried", "", "it was tried, and did not do")
	}
	switch {
	case c.node < 0:
		no("not_seen", "", "it was not asked")
		return c
	case !ch.Topology.Nodes[c.node].Seen:
		why := "in time"
		if f := ch.Topology.Nodes[c.node].Unseen; f != nil {
			why = f.Words()
		}
		no("not_seen", "", "it does not answer: %s", why)
		return c
	}
	n := &ch.Topology.Nodes[c.node]
	c.asked = n.Facts.Asked
	ch.sets(&c, n)
	ch.settings(&c, n, no)
	ch.alike(&c, n, no)
	ch.room(&c, no)
	ch.channel(&c, n, no)
	if slices.Contains(ch.Receiving, m.Name) {
		no("receives", "", "it was not stopped from receiving: what it has is not final")
	}
	return c
}

// sets reads what a member has.
func (ch *chooser) sets(c *Candidate, n *topology.Node) {
	var err error
	if c.executed, err = mysql.ParseGTIDSet(n.GTID.Executed); err != nil {
		refuse(&c.Refused, "gtid", "", "its GTIDs cannot be read: %v", err)
		return
	}
	c.received = c.executed
	for _, l := range n.Channels {
		if r, err := mysql.ParseGTIDSet(l.Received); err == nil {
			c.received = c.received.Union(r)
		}
	}
	c.Received, c.Waiting = c.received.String(), c.received.Ahead(c.executed)
	own := ch.To == c.Name && len(n.Channels) == 0 && (ch.Old == "" || ch.supplants(n)) // it was the primary, and is to be it again, or it is it by now: the others get what only it has
	if errant := ch.errant(n); errant != "" && !own {
		refuse(&c.Refused, "errant", "risso gtid errant says what they changed", "it has transactions that no other member has (errant): %s", short(errant))
	}
}

// errant are the transactions that only one replica has, and that did not come from the old primary: those that are ahead of what was last seen of it came from
// there.
func (ch *chooser) errant(n *topology.Node) string {
	others, reached := []string{ch.Known.Executed}, []string{}
	for i := range ch.Topology.Nodes {
		o := &ch.Topology.Nodes[i]
		if o.Name == n.Name || !o.Seen {
			continue
		}
		others, reached = append(others, o.GTID.All()), append(reached, o.GTID.Applied)
		for _, c := range o.Channels { // what it received, it will have
			others = append(others, c.Received)
		}
	}
	e, err := mysql.ErrantTransactions(n.GTID.All(), others...)
	if err != nil || e.Empty() {
		return ""
	}
	_, mine := e.Forgotten(strings.Join(reached, ","), n.ServerID).Split(ch.fromOld)
	if mine.Empty() {
		return ""
	}
	return mine.String()
}

// fromOld reports whether a transaction comes from the old primary: by what was known of it, or, where nothing was, as after a restart of whoever watched, by whom the members
// met at its address.
func (ch *chooser) fromOld(uuid string, server uint32) bool {
	if ch.Known.From(uuid, server) {
		return true
	}
	old := ch.Group.Find(ch.Old)
	if old < 0 {
		return false
	}
	for i := range ch.Topology.Nodes {
		for _, c := range ch.Topology.Nodes[i].Channels {
			if strings.EqualFold(c.Source, ch.Group.Members[old].Address) && (uuid != "" && strings.EqualFold(uuid, c.SourceID) || uuid == "" && fmt.Sprint(server) == c.SourceServerID) {
				return true
			}
		}
	}
	return false
}

// settings looks at how a member is set.
func (ch *chooser) settings(c *Candidate, n *topology.Node, no func(code, remedy, format string, args ...any)) {
	s := mysql.Of(n.Server)
	switch {
	case n.Log.Closed:
		no("no_binlog", "mend what its error log names, and start it again", "it writes no binary log any more, since it could not: nobody could replicate from it")
	case !n.Log.On:
		no("no_binlog", "log_bin in its option file, and a restart", "it writes no binary log: nobody could replicate from it")
	case !n.Log.Updates && len(ch.Group.Members) > 2:
		no("no_log_updates", "log_replica_updates in its option file, and a restart", "it does not log what it replicates (log_replica_updates is off): the others could not get from it what they lack")
	}
	if n.Log.Filter != "" {
		no("log_filter", "", "its binary log leaves something out: %s", n.Log.Filter)
	}
	if !s.FollowsByGTID(n.GTID.Mode) {
		no("no_gtid", "gtid_mode = ON", "it does not use GTIDs")
	}
	if n.Writes.InnoDB {
		no("innodb_read_only", "", "its InnoDB was started read-only")
	}
	if n.Writes.Offline && len(c.member.Fenced) == 0 { // else it gets back what it had
		no("offline", "SET GLOBAL offline_mode = OFF on "+c.Name, "offline_mode is ON there: clients would be sent away")
	}
	if n.Group != nil {
		no("cluster", "risso galera", "it belongs to a cluster that chooses by itself (%s)", n.Group.Kind)
	}
	if n.Connections.Most > 0 && n.Connections.Now >= n.Connections.Most {
		c.Notes = append(c.Notes, "all of its connections are taken")
	}
	if n.Log.Format != "" && !strings.EqualFold(n.Log.Format, "ROW") {
		c.Notes = append(c.Notes, "it logs by "+strings.ToLower(n.Log.Format))
	}
}

// channel looks at how a member replicates.
func (ch *chooser) channel(c *Candidate, n *topology.Node, no func(code, remedy, format string, args ...any)) {
	if u := n.Untold(); u != nil {
		no("not_told", u.Remedy, "whom it replicates from is not known: %s", u.Why)
		return
	}
	switch len(n.Channels) {
	case 0:
		if ch.Old != "" && (ch.To != c.Name || !ch.supplants(n)) { // where there is no primary it may be the one that was demoted
			no("no_replica", "", "it does not replicate")
		}
		return
	case 1:
	default:
		no("channels", "", "it replicates from %d servers: as the primary it would not", len(n.Channels))
		return
	}
	l := &n.Channels[0]
	if l.Filter != "" {
		no("filter", "", "it leaves something out of what it replicates: %s", l.Filter)
	}
	if n.GTID.ByDomain && !l.GTID { // MySQL knows what it received all the same
		no("position", mysql.Of(n.Server).FollowGTID(l.Name)+" on it", "it replicates by file and position: what it received is not known")
	}
	if l.Delay > 0 && !ch.Delayed && ch.To != c.Name {
		no("delayed", "name it with --to "+c.Name, "it stays %s behind on purpose", digits.Span(secondsOf(l.Delay)))
	}
	switch s := mysql.Of(n.Server); {
	case n.StartDrops(l): // and nobody may have it any more
		no("applier", s.ApplyReceived(l.Name, l.RelayLog, l.RelayPos)+" on it", "it does not apply%s, and both of its threads stand: START would throw away what it received", because(l.SQL.Words()))
	case l.SQL.Text != "":
		no("applier", "", "it stopped applying: %s", l.SQL.Words())
	case !l.Applying():
		no("applier", s.StartThread(l.Name, mysql.Applier)+" on it", "it does not apply")
	}
	if n.Applier.SkipErr != "" {
		c.Notes = append(c.Notes, "it passes over errors: "+n.Applier.SkipErr)
	}
	if !ch.follows(n, l) {
		no("other_source", "risso replica move "+c.Name, "it replicates from %s, not from %s", l.Source, cmp.Or(ch.Old, "the primary"))
	}
}

// rival reports whether a member takes writes and replicates from nobody: somebody made it the primary without Risso, or what Risso knows is old.
func (ch *chooser) rival(n *topology.Node) bool {
	return !ch.Alive && ch.Old != "" && n.Seen && n.Writes.Open() && len(n.Channels) == 0 && n.Untold() == nil
}

// supplants reports whether a rival may be promoted, if it is named: nobody takes writes but it.
func (ch *chooser) supplants(n *topology.Node) bool {
	return ch.rival(n) && (ch.old == nil || ch.Known.Full)
}

// rivals refuses to promote somebody beside a member that takes writes: there would be two. One that is FAULTY came back as it was, and nobody is sent there.
func (ch *chooser) rivals() {
	for i := range ch.c.Candidates {
		c := &ch.c.Candidates[i]
		if c.Name == ch.To || c.node < 0 || c.member.Status == group.Faulty {
			continue
		}
		n := &ch.Topology.Nodes[c.node]
		if !ch.rival(n) {
			continue
		}
		remedy := "let it take no writes: " + strings.Join(mysql.Of(n.Server).CloseWrites(), "; ") + " on " + c.Name
		if ch.To == "" && ch.supplants(n) && c.member.Rule != group.Never {
			remedy = "risso failover --group " + ch.Group.Name + " --to " + fleet.ShellWord(c.Name) + ", if clients are to write there; else " + remedy
		}
		refuse(&ch.c.Refused, "rival", remedy, "%s takes writes and replicates from nobody: somebody made it the primary, or is about to, and another one beside it would make two", c.Name)
	}
}

// follows reports whether a channel leads to the old primary, or to another member.
func (ch *chooser) follows(n *topology.Node, l *topology.Channel) bool {
	if ch.Old == "" || l.Source == "" {
		return true
	}
	if l.SourceID != "" && strings.EqualFold(l.SourceID, ch.Known.UUID) || l.SourceServerID != "" && l.SourceServerID == ch.Known.ServerID {
		return true
	}
	return slices.ContainsFunc(ch.Group.Members, func(m group.Member) bool {
		return m.Name != n.Name && strings.EqualFold(m.Address, l.Source)
	})
}

// rank orders rules.
func rank(r group.Rule) int { return slices.Index(group.Rules(), r) }

// order sorts: those that may first, then by rule, data center, what they received and applied, version, name.
func (ch *chooser) order() {
	center := func(c *Candidate) int {
		want := ch.Group.Policy.Center
		if i := ch.Group.Find(ch.Old); want == "" && i >= 0 {
			want = ch.Group.Members[i].Center
		}
		if want != "" && c.member.Center != want {
			return 1
		}
		return 0
	}
	full := func(c *Candidate) int {
		if c.full {
			return 1
		}
		return 0
	}
	version := func(c *Candidate) int64 {
		if c.node < 0 {
			return 0
		}
		return int64(ch.Topology.Nodes[c.node].Number)
	}
	slices.SortStableFunc(ch.c.Candidates, func(a, b Candidate) int {
		return cmp.Or(
			cmp.Compare(min(1, len(a.Refused)), min(1, len(b.Refused))),
			cmp.Compare(full(&a), full(&b)),
			cmp.Compare(rank(a.member.Rule), rank(b.member.Rule)),
			cmp.Compare(center(&a), center(&b)),
			cmp.Compare(b.received.Ahead(a.received), a.received.Ahead(b.received)),
			cmp.Compare(a.Waiting, b.Waiting),
			cmp.Compare(version(&a), version(&b)),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

// leader is the index of a candidate that received all that another one received, or -1. What has transactions of its own counts only as far as it shares them.
func (ch *chooser) leader() int {
	best := -1
	for i := range ch.c.Candidates {
		c := &ch.c.Candidates[i]
		if !ch.feeds(c) {
			continue
		}
		if best < 0 || c.received.Ahead(ch.c.Candidates[best].received) > ch.c.Candidates[best].received.Ahead(c.received) {
			best = i
		}
	}
	return best
}

// feeds reports whether others may get from a member what they lack: it is well but for what keeps it from being promoted.
func (ch *chooser) feeds(c *Candidate) bool {
	return c.node >= 0 && ch.Topology.Nodes[c.node].Seen && !slices.ContainsFunc(c.Refused, func(r Refusal) bool {
		return slices.Contains([]string{"faulty", "errant", "no_binlog", "no_log_updates", "log_filter", "filter", "no_gtid", "gtid", "position", "applier", "other_source", "no_replica", "not_told", "channels", "tried", "receives"}, r.Code)
	})
}

// diverged refuses where two members each have something that the other lacks: nobody can tell which is right, but a person, who names one.
func (ch *chooser) diverged() {
	for i := range ch.c.Candidates {
		for j := i + 1; j < len(ch.c.Candidates); j++ {
			a, b := &ch.c.Candidates[i], &ch.c.Candidates[j]
			if !ch.feeds(a) || !ch.feeds(b) {
				continue
			}
			ab, ba := a.received.Subtract(b.received), b.received.Subtract(a.received)
			if ab.Empty() || ba.Empty() {
				continue
			}
			ch.apart = true
			if ch.To == "" || ch.Alive {
				refuse(&ch.c.Refused, "split_brain", "see what they changed with risso gtid errant, and name one: risso failover --to NODE --accept-loss",
					"%s has %s and %s has %s: each has transactions that the other lacks, and nobody can tell which are right", a.Name, short(ab.String()), b.Name, short(ba.String()))
			}
		}
	}
}

// pick takes the first that may, or the one that was named.
func (ch *chooser) pick() {
	l := ch.leader()
	for i := range ch.c.Candidates {
		c := &ch.c.Candidates[i]
		if l >= 0 {
			c.Lacks = ch.c.Candidates[l].received.Ahead(c.received)
		}
		if ch.To != "" && c.Name != ch.To || len(c.Refused) > 0 || ch.c.Winner != "" {
			continue
		}
		ch.c.Winner, ch.c.Out = c.Name, c.out
		if c.Lacks > 0 && !ch.apart {
			ch.c.From = ch.c.Candidates[l].Name
		}
	}
	switch i := slices.IndexFunc(ch.c.Candidates, func(c Candidate) bool { return c.Name == ch.To }); {
	case ch.To != "" && ch.To == ch.Old:
		refuse(&ch.c.Refused, "primary", "", "%s is the primary already", ch.To)
	case ch.To != "" && i < 0:
		refuse(&ch.c.Refused, "no_member", "", "%s is no member of %s", ch.To, ch.Group.Name)
	case ch.To != "" && ch.c.Winner == "":
		for _, r := range ch.c.Candidates[i].Refused {
			r.Why = ch.To + ": " + r.Why
			ch.c.Refused = append(ch.c.Refused, r)
		}
	case ch.c.Winner == "":
		var words []string
		remedy := ""
		for _, c := range ch.c.Candidates {
			if len(c.Refused) == 0 {
				continue
			}
			r := c.Refused[0]
			if words = append(words, c.Name+": "+r.Why); remedy == "" && slices.Contains([]string{"version", "applier", "position", "offline"}, r.Code) {
				remedy = r.Remedy
			}
		}
		refuse(&ch.c.Refused, "nobody", remedy, "nobody can follow%s", because(strings.Join(words, "; ")))
	}
}

// losses compares what the old primary had, as it was last seen, and what the members received from it, with what the one that follows will have.
func (ch *chooser) losses() {
	l := ch.leader()
	if ch.Alive || l < 0 || ch.apart && ch.To == "" {
		return
	}
	// Two that are apart have each only their own; else the one that follows gets all that the leader has.
	has := []*Candidate{&ch.c.Candidates[l]}
	if i := slices.IndexFunc(ch.c.Candidates, func(c Candidate) bool { return c.Name == ch.c.Winner }); i >= 0 {
		has = append(has, &ch.c.Candidates[i])
		if ch.apart {
			has = has[1:]
		}
	}
	var have mysql.GTIDSet
	var sets, reached []string
	for _, c := range has {
		n := &ch.Topology.Nodes[c.node]
		have = have.Union(c.received)
		sets, reached = append(sets, c.Received, n.GTID.State, n.GTID.Executed), append(reached, n.GTID.Applied)
	}
	had := []string{ch.Known.Owed()}
	for i := range ch.c.Candidates {
		c := &ch.c.Candidates[i]
		apart := slices.ContainsFunc(c.Refused, func(r Refusal) bool {
			return slices.Contains([]string{"faulty", "errant", "gtid", "other_source", "channels"}, r.Code)
		})
		seen := c.node >= 0 && ch.Topology.Nodes[c.node].Seen
		if !apart || seen && ch.receivedFromOld(c) { // what it had when it was last seen: one that was started since may have thrown that away
			had = append(had, ch.Known.lacking(ch.Known.Had[c.Name].Received, sets).String())
		}
		switch more := c.received.Subtract(have).String(); {
		case !seen:
		case !apart:
			had = append(had, more)
		case ch.receivedFromOld(c): // what it has beyond the others need not come from the old primary
			e, _ := mysql.ErrantTransactions(more, sets...) // of sets that cannot be read it is known that they cannot
			mine, _ := e.Split(ch.fromOld)
			had = append(had, mine.String())
		}
	}
	lost, err := beyond(strings.Join(had, ","), sets)
	if lost = lost.Forgotten(strings.Join(reached, ","), ch.Known.ServerID); err != nil || lost.Empty() {
		return
	}
	ch.c.Lost, ch.c.Count = lost.String(), max(1, lost.Count())
	if ch.Lossless {
		refuse(&ch.c.Refused, "loss", "wait for "+ch.Old+", or risso failover --accept-loss", "%s that %s had would be lost: %s", digits.Counted(int(ch.c.Count), "transaction"), cmp.Or(ch.Old, "the old primary"), short(ch.c.Lost))
	}
}

// receivedFromOld reports whether a member replicated from the old primary, whatever keeps it from being promoted: it may have acknowledged what no other one has.
func (ch *chooser) receivedFromOld(c *Candidate) bool {
	channels := ch.Topology.Nodes[c.node].Channels
	return slices.ContainsFunc(channels, func(l topology.Channel) bool { return ch.fromPrimary(&l) })
}

// NewRefusal is a reason why something is not done.
func NewRefusal(code, remedy, format string, args ...any) Refusal {
	var list []Refusal
	refuse(&list, code, remedy, format, args...)
	return list[0]
}

// Cautions are what is to be said of the one that was chosen.
func (c *Choice) Cautions() (list []string) {
	for _, cand := range c.Candidates {
		if cand.Name == c.Winner {
			for _, note := range cand.Notes {
				list = append(list, cand.Name+": "+note)
			}
		}
	}
	return list
}
