package repoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/follow"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Move is what will be done to one replica.
type Move struct {
	Verdict
	Replica topology.Node
	Below   topology.Node // its new source; of a replica that is detached, the zero node
	Plan    change.Plan
	Undo    string // how to go back when it is done
	Journal string // file that says what was done, and stays

	r          *Repointer
	detach     bool
	attaches   bool // it was detached
	anchor     *topology.Node
	others     []topology.Node // the sources of its other channels
	node, to   *server
	stand      *server // the anchor
	standsAt   read.ReplicaChannel
	stopped    *change.Loan[Stopped]
	standStop  *change.Loan[Stopped]
	pointed    *change.Loan[Pointed]
	kept       bool // it applies from its new source: it is not pointed back any more
	detached   bool // it is: its threads stay as they are, too
	log        string
	pos        int64
	standFirst bool // the anchor is the new source, not the old one
}

// Prepare asks what is to be known, judges, and makes the plan. Nothing is changed. It wraps ErrRefused if it cannot be done.
func (r *Repointer) Prepare(ctx context.Context, q Question) (*Move, error) {
	m := &Move{r: r, Replica: q.Topology.Nodes[q.Replica], Below: q.Topology.Nodes[q.Below]}
	if m.Replica.Seen && m.Below.Seen {
		if err := r.Left(ctx, r.Target(m.Replica.Addresses[0])); err != nil {
			return nil, err
		}
		if err := r.ask(ctx, &q, m); err != nil {
			return nil, err
		}
	}
	q.Wait = r.Wait
	m.Verdict = Judge(q)
	if len(m.Refused) > 0 {
		return nil, Refused(m.Replica.Name+" below "+m.Below.Name, m.Refused)
	}
	if m.Anchor >= 0 {
		m.anchor, m.standFirst = &q.Topology.Nodes[m.Anchor], m.Anchor == q.Below
	}
	for _, i := range m.Others {
		m.others = append(m.others, q.Topology.Nodes[i])
	}
	from := m.Channel.Source
	if m.From >= 0 {
		from = q.Topology.Nodes[m.From].Name
	}
	m.Undo = "risso replica move " + m.Replica.Name + " --below " + from + r.Flags
	if _, m.attaches = Attached(m.Channel.Source); m.attaches {
		m.Undo = "risso replica detach " + m.Replica.Name + r.Flags
	}
	m.log, m.pos = m.Channel.Log, m.Channel.Pos // unless they are matched
	m.plan()
	return m, nil
}

// ask asks both servers what the topology does not tell.
func (r *Repointer) ask(ctx context.Context, q *Question, m *Move) error {
	node, err := r.connect(ctx, &m.Replica)
	if err != nil {
		return err
	}
	defer node.c.Close()
	list, err := read.ReplicaChannels(ctx, node.c)
	if err != nil {
		return err
	}
	for _, ch := range list {
		if q.Channel == nil && len(m.Replica.Channels) == 1 && ch.Name == m.Replica.Channels[0].Name || q.Channel != nil && ch.Name == *q.Channel {
			q.User = ch.User
		}
	}
	to, err := r.connect(ctx, &m.Below)
	if err != nil {
		return err
	}
	defer to.c.Close()
	if m.Below.Log.On {
		if q.Gone, err = mysql.GoneGTIDs(ctx, to.c); err != nil {
			q.GoneWhy = err.Error()
		}
	}
	rows, err := to.c.Maps(ctx, to.c.Server.ReplicationAccounts(q.User))
	if err != nil {
		q.AccountWhy = err.Error()
	}
	for _, row := range rows {
		q.Accounts = append(q.Accounts, Account{Host: row["Host"], Privilege: row["Repl_slave_priv"] == "Y"})
	}
	return nil
}

// Detach plans that a replica does not replicate until it is attached again. All that it needs for that stays.
func (r *Repointer) Detach(ctx context.Context, t *topology.Topology, node int, channel *string) (*Move, error) {
	m := &Move{r: r, Replica: t.Nodes[node], detach: true}
	if m.Replica.Seen {
		if err := r.Left(ctx, r.Target(m.Replica.Addresses[0])); err != nil {
			return nil, err
		}
	}
	j := &judge{Question: Question{Topology: t, Replica: node, Below: node, Channel: channel, Wait: r.Wait}, replica: &m.Replica, below: &topology.Node{}}
	j.v.From, j.v.Anchor = -1, -1
	switch {
	case !m.Replica.Seen:
		j.v.refuse("not_seen", "", "%s was not seen", m.Replica.Name)
	case j.pick():
		j.running()
		j.semiSync()
		if _, is := Attached(j.v.Channel.Source); is {
			j.v.refuse("there", "risso replica attach "+m.Replica.Name, "%s is detached already", m.Replica.Name)
		}
	}
	j.attachable()
	host, port := split(j.v.Channel.Source)
	if host == "" && len(j.v.Refused) == 0 {
		j.v.refuse("no_address", "", "the address of its source, %q, cannot be read", j.v.Channel.Source)
	}
	if len(host)+len(follow.DetachedSuffix) > longestHost {
		j.v.refuse("no_address", mysql.Of(m.Replica.Server).StopReplica(j.v.Channel.Name)+" lets it stand still until it, or the server, is started",
			"the name of its source, %s, is too long for %s behind it", host, follow.DetachedSuffix)
	}
	if m.Verdict = j.v; len(m.Refused) > 0 {
		return nil, Refused("detach "+m.Replica.Name, m.Refused)
	}
	m.Address = net.JoinHostPort(host+follow.DetachedSuffix, strconv.Itoa(port))
	m.Undo = "risso replica attach " + m.Replica.Name + r.Flags
	m.plan()
	return m, nil
}

// plan makes the steps.
func (m *Move) plan() {
	ch, name := m.Channel, m.Replica.Name
	w := words{mysql.Of(m.Replica.Server), ch.Name, len(m.Replica.Channels) > 1, ch.Beat}
	step := func(what, where, why string, do func(context.Context) error) {
		m.Plan = append(m.Plan, change.Step{What: what, Where: where, Why: why, Do: do})
	}
	on := "on " + name
	if m.anchor != nil {
		m.planAnchor(step)
	}
	if ch.IORunning != "No" {
		step(w.stop(mysql.Receiver), on, "", func(ctx context.Context) error { return m.node.do(ctx, w.stop(mysql.Receiver)) })
	}
	step("wait", "until "+name+" has applied what it received", "", func(ctx context.Context) error {
		err := m.r.drained(ctx, m.node, ch.Name)
		if err == nil && ch.IORunning != "No" {
			err = m.r.settle(ctx, m.node, ch.Name)
		}
		return err
	})
	switch {
	case m.detach, m.attaches && !ch.GTID:
	case m.anchor != nil:
		step("wait", "until "+name+" stands where "+m.anchor.Name+" does", "", m.match)
	default:
		step("wait", "until "+m.Below.Name+" has what "+name+" has", "", m.reaches)
	}
	step(w.stopBoth(), on, "", func(ctx context.Context) error { return m.node.do(ctx, w.stopBoth()) })
	host, port := split(m.Address)
	why := "it finds its position by GTID; account and TLS stay"
	if !ch.GTID {
		why = "from the position that was matched; account and TLS stay"
	}
	if m.detach {
		why = "a name that leads nowhere; account and TLS stay"
	}
	step(w.point(mysql.Pointing{Host: host, Port: port}), on, why, m.point)
	if m.detach {
		return
	}
	if m.anchor != nil {
		step("start", "replication of "+m.anchor.Name+" again", "", m.startAnchor)
	}
	step(w.start(mysql.Receiver), on, "and wait until it receives from "+m.Below.Name+"; else it goes back", m.receive)
	step(w.start(mysql.Applier), on, "", m.apply)
	step("check", "that "+name+" replicates, and has nothing of its own", "", m.check)
}

// Do carries it out. What goes wrong before the replica applies from its new source is taken back.
func (m *Move) Do(ctx context.Context) error {
	begin := map[string]any{"replica": m.Replica.Name, "channel": m.Channel.Name, "from": m.Channel.Source, "to": m.Address, "log": m.Channel.Log, "pos": m.Channel.Pos, "gtid": m.Channel.GTID,
		"plan": m.Plan.Words(), "undo": m.Undo}
	return m.r.recorded(&m.Journal, begin, func() map[string]any { return map[string]any{"undo": m.Undo} }, func() error { return m.run(ctx) })
}

func (m *Move) run(ctx context.Context) (err error) {
	if m.node, err = m.r.connect(ctx, &m.Replica); err != nil {
		return err
	}
	defer func() { m.node.c.Close() }()
	if !m.detach {
		if m.to, err = m.r.connect(ctx, &m.Below); err != nil {
			return err
		}
		defer m.to.c.Close()
	}
	if m.anchor != nil {
		if m.stand, err = m.r.connect(ctx, m.anchor); err != nil {
			return err
		}
		defer m.stand.c.Close()
	}
	if err := m.unchanged(ctx); err != nil {
		return err
	}
	if m.stopped, err = m.borrow(m.node, &m.Replica, m.Channel.Channel.Name, m.Channel.IORunning != "No", m.Channel.Applying(), func() bool { return m.detached }); err != nil {
		return err
	}
	_, err = change.Execute(ctx, m.Plan, change.Log{Before: func(_ int, s change.Step) error {
		if m.r.Say != nil {
			m.r.Say(s.What + " " + s.Where)
		}
		return nil
	}})
	return m.end(ctx, err)
}

// unchanged makes sure that the replica is as it was when the plan was made.
func (m *Move) unchanged(ctx context.Context) error {
	ch, err := m.node.channel(ctx, m.Channel.Name)
	if err == nil && ch.Status.Source != m.Channel.Source {
		err = fmt.Errorf("%w: %s replicates from %s now, not from %s: make the plan again", ErrSurprise, m.node.name, ch.Status.Source, m.Channel.Source)
	}
	return err
}

// borrow notes that threads will stand still.
func (m *Move) borrow(s *server, n *topology.Node, channel string, receives, applies bool, kept func() bool) (*change.Loan[Stopped], error) {
	return m.r.stopped(kept).Borrow(m.r.Dir, m.r.target(n), s.c.Server, 0, Stopped{Server: n.Name, Channel: channel, Receives: receives, Applies: applies})
}

// end ends the journals. If it failed before the replica applies from its new source, all is given back.
func (m *Move) end(ctx context.Context, err error) error {
	failed := err != nil
	var back error
	give := func(c *mysql.Conn, e error, s *server) {
		if c != nil {
			s.c = c
		}
		back = errors.Join(back, e)
	}
	if m.standStop != nil {
		c, e := m.standStop.Return(ctx, m.stand.c)
		give(c, e, m.stand)
	}
	pointed := error(nil)
	if m.pointed != nil {
		var c *mysql.Conn
		c, pointed = m.pointed.Return(ctx, m.node.c)
		give(c, pointed, m.node)
	}
	if pointed != nil { // started now it would apply from where it points
		m.stopped.Leave()
	} else {
		c, e := m.stopped.Return(ctx, m.node.c)
		give(c, e, m.node)
	}
	switch {
	case back != nil:
		if err == nil {
			err = fmt.Errorf("%w: what was stopped could not be started", ErrSurprise)
		}
		return fmt.Errorf("%w; it could not be put back as it was: %w; the journals are in %s; %s tries it again", err, back, m.r.Dir, m.r.backCommand())
	case failed && !m.kept && !m.detached:
		return fmt.Errorf("%w; %s", err, m.standing(ctx))
	case failed:
		return fmt.Errorf("%w; %s points at %s now; to go back: %s", err, m.Replica.Name, m.Address, m.Undo)
	}
	return nil
}

// standing says how the replica stands when it was given back.
func (m *Move) standing(ctx context.Context) string {
	name := m.Replica.Name
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	ch, err := m.node.channel(ctx, m.Channel.Name)
	switch {
	case err != nil:
		return fmt.Sprintf("%s was put back as it was before, and cannot be asked now: %v", name, err)
	case ch.Status.Source != m.Channel.Source:
		return fmt.Sprintf("%s points at %s", name, ch.Status.Source)
	case m.Channel.Applying() && !ch.SQLRunning:
		return fmt.Sprintf("%s points at %s as before, and does not apply%s", name, m.Channel.Source, because(ch.Status.SQL))
	case m.Channel.IORunning != "No" && ch.Status.IORunning == "No":
		return fmt.Sprintf("%s points at %s as before, and does not receive%s", name, m.Channel.Source, because(ch.Status.IO))
	}
	return fmt.Sprintf("%s is as it was before, and replicates from %s", name, m.Channel.Source)
}

// reaches waits until the new source has what the replica has, but for what that has from other sources.
func (m *Move) reaches(ctx context.Context) error {
	have, err := mysql.AppliedGTIDs(ctx, m.node.c)
	if err != nil {
		return err
	}
	others, err := m.otherSets(ctx) // after it: they go on writing
	if err != nil {
		return err
	}
	return m.r.await(ctx, func() (bool, error) {
		theirs, err := mysql.LoggedGTIDs(ctx, m.to.c)
		if err != nil {
			return false, err
		}
		need, err := have.Without(others, theirs)
		return err == nil && theirs.ContainsSet(need), err
	}, func() string { return m.to.name + " has not come as far as " + m.node.name })
}

// otherSets are what the sources of the replica's other channels have.
func (m *Move) otherSets(ctx context.Context) ([]string, error) {
	var sets []string
	for i := range m.others {
		s, err := m.r.connect(ctx, &m.others[i])
		if err != nil {
			return nil, err
		}
		set, err := mysql.LoggedGTIDs(ctx, s.c)
		s.c.Close()
		if err != nil {
			return nil, err
		}
		sets = append(sets, set.String())
	}
	return sets, nil
}

// point points the channel elsewhere.
func (m *Move) point(ctx context.Context) error {
	ch, err := m.node.channel(ctx, m.Channel.Name)
	if err != nil {
		return err
	}
	if applied, err := m.node.applied(ctx, ch); err != nil || !applied || ch.SQLRunning || ch.Status.IORunning != "No" {
		return errors.Join(err, fmt.Errorf("%w: %s does not stand still with all applied", ErrSurprise, m.node.name))
	}
	host, port := split(m.Address)
	if host == "" {
		return fmt.Errorf("%w: %q is no address", ErrSurprise, m.Address)
	}
	still := m.stopped.Old()
	still.Refetch = true // of its source; what comes from the new one may be thrown away
	if err := m.stopped.Note(still); err != nil {
		return err
	}
	old := Pointed{Server: m.Replica.Name, Channel: ch.Name, From: ch.Status.Source, To: m.Address, GTID: ch.GTID}
	if !ch.GTID {
		old.Log, old.Pos, old.ToLog, old.ToPos = ch.Status.Log, ch.Status.Pos, m.log, m.pos
		if m.detach {
			old.ToLog, old.ToPos = old.Log, old.Pos
		}
	}
	m.pointed, err = m.r.pointed(func() bool { return m.kept }).Borrow(m.r.Dir, m.r.target(&m.Replica), m.node.c.Server, 0, old)
	if err != nil {
		return err
	}
	err = m.node.do(ctx, m.node.wordsOf(ch).point(mysql.Pointing{Host: host, Port: port, Log: old.ToLog, Pos: old.ToPos}))
	if err == nil && m.detach {
		m.kept, m.detached = true, true
	}
	return err
}

// receive starts receiving alone: nothing is applied until it is connected, so that one can go back.
func (m *Move) receive(ctx context.Context) error {
	name := m.Channel.Name
	if err := m.node.do(ctx, m.node.words(name).start(mysql.Receiver)); err != nil {
		return err
	}
	seen := 0 // a source that does not have what it is asked for says so a moment after it was asked
	return m.r.await(ctx, func() (bool, error) {
		ch, err := m.node.channel(ctx, name)
		switch {
		case err != nil:
		case ch.Status.IO.Text != "":
			err = fmt.Errorf("%w: %s cannot receive from %s: %s", ErrSurprise, m.node.name, m.Below.Name, ch.Status.IO.Text)
		case ch.IORunning && (strings.Contains(ch.IOState, "send event") || strings.Contains(ch.IOState, "Queueing")):
			seen++
		default:
			seen = 0
		}
		return seen > 2, err
	}, func() string { return m.node.name + " does not receive from " + m.Below.Name })
}

// apply starts applying. From then on there is no way back but another move; when it is interrupted it may have begun.
func (m *Move) apply(ctx context.Context) error {
	if ch, err := m.node.channel(ctx, m.Channel.Name); err != nil || !ch.IORunning {
		return errors.Join(err, fmt.Errorf("%w: %s does not receive%s", ErrSurprise, m.node.name, because(ch.Status.IO)))
	}
	m.kept = true
	err := m.node.do(ctx, m.node.words(m.Channel.Name).start(mysql.Applier))
	if mysql.Answered(err) {
		m.kept = false
	}
	return err
}

// check waits until the replica has what its new source had when it began, and looks for transactions of its own.
func (m *Move) check(ctx context.Context) error {
	end, err := mysql.LoggedGTIDs(ctx, m.to.c)
	if err != nil {
		return err
	}
	var log read.ReplicaChannel // where its log ends
	if log.Status.Log, log.Status.Pos, err = m.to.logEnd(ctx); err != nil {
		return err
	}
	runs := func() (read.ReplicaChannel, error) {
		ch, err := m.node.channel(ctx, m.Channel.Name)
		switch {
		case err != nil:
		case ch.Status.SQL.Text != "":
			err = fmt.Errorf("%w: %s stopped applying: %s", ErrSurprise, m.node.name, ch.Status.SQL.Text)
		case ch.Status.IO.Text != "":
			err = fmt.Errorf("%w: %s stopped receiving: %s", ErrSurprise, m.node.name, ch.Status.IO.Text)
		case ch.Status.Source != m.Address:
			err = fmt.Errorf("%w: %s replicates from %s", ErrSurprise, m.node.name, ch.Status.Source)
		}
		return ch, err
	}
	err = m.r.await(ctx, func() (bool, error) {
		ch, err := runs()
		if err != nil || !ch.IORunning || !ch.SQLRunning {
			return false, err
		}
		if ch.Delay > 0 {
			return true, nil
		}
		if !ch.GTID {
			return comparePlaces(ch, log) >= 0, nil
		}
		have, err := mysql.AppliedGTIDs(ctx, m.node.c)
		return err == nil && have.ContainsSet(end), err
	}, func() string { return m.node.name + " has not come as far as " + m.to.name + " was" })
	if err != nil || !m.Channel.GTID {
		return err
	}
	return m.own(ctx)
}

// ownWait is how long a source may take to count a transaction that its replica has: MySQL sends it before it has committed it itself.
const ownWait = 5 * time.Second

// own looks for transactions that only the replica has.
func (m *Move) own(ctx context.Context) error {
	list := []*server{m.to}
	for i := range m.others {
		s, err := m.r.connect(ctx, &m.others[i])
		if err != nil {
			return err
		}
		defer s.c.Close()
		list = append(list, s)
	}
	mine, err := executed(ctx, m.node)
	if err != nil {
		return err
	}
	for began := time.Now(); ; {
		var theirs []string
		for _, s := range list {
			set, err := executed(ctx, s)
			if err != nil {
				return err
			}
			theirs = append(theirs, set)
		}
		extra, err := mysql.ErrantTransactions(mine, theirs...)
		switch {
		case err != nil || extra.Empty():
			return err
		case time.Since(began) > ownWait:
			return fmt.Errorf("%w: %s has transactions that %s has not: %s", ErrSurprise, m.node.name, m.to.name, short(extra.String()))
		}
		if err := delay.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// executed are the transactions that a server has had.
func executed(ctx context.Context, s *server) (string, error) {
	name := s.c.Server.ExecutedTransactions()
	v, err := read.Variables(ctx, s.c, []string{name})
	return strings.ReplaceAll(v[name], "\n", ""), err
}
