package carry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// chore is something that a group needs.
type chore struct {
	member  string
	what    string // adopt, open, shut, quarantine, older, lost, rejoin, follow, login, receive, back, acknowledge, vouch, raise
	errant  mysql.Errant
	node    *topology.Node
	primary *topology.Node     // of returns
	all     *topology.Topology // where it was seen
}

// Tend looks after a group whose primary lives: the primary takes writes and nobody else; members that came back are compared with it, and replicate from it, or stay
// FAULTY with the transactions that only they have. A primary that somebody made read-only is left alone. It says what was done, and what was seen.
func (c *Carrier) Tend(ctx context.Context, name string, care Care) (did []string, seen *Forecast, err error) {
	g, err := c.Room.Group(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	targets, access, err := c.targets(ctx, g)
	if err != nil {
		return nil, nil, err
	}
	if g.Primary() < 0 {
		return nil, nil, nil
	}
	looks, stop := c.looks(ctx)
	defer stop()
	t, err := lookAt(looks, g, targets, c.Limits.Look)
	if err != nil {
		return nil, nil, err
	}
	known, err := c.knownOf(looks, g, failover.Known{}) // of one that does not answer, and who is asked what would be lost
	if err != nil {
		return nil, nil, err
	}
	seen = forecast(g, t, Asked{Group: name, Known: known}, rooms(looks, g, t, targets, access), "")
	seen.steps(t)
	seen.Closed = c.closed(looks, g, t, targets)
	if err := looks.Err(); err != nil { // what was cut off says nothing of the members
		return nil, nil, err
	}
	if err := c.keepSeen(ctx, g, t, false); err != nil {
		return nil, seen, err
	}
	if len(due(chores(g, t), care, seen.Closed)) == 0 {
		return nil, seen, nil
	}
	err = c.leased(ctx, name, func(ctx context.Context, g *group.Group) error {
		if g.Primary() < 0 { // it was demoted meanwhile
			return nil
		}
		r, err := c.run(ctx, g)
		if err != nil {
			return err
		}
		defer r.close()
		looks, stop := c.looks(ctx)
		defer stop()
		r.looks = looks
		t, err := lookAt(looks, g, r.targets, c.Limits.Look)
		if c.hurried() {
			return nil
		}
		if err != nil {
			return err
		}
		r.j = &keep.Journal{Journal: failover.Journal{Group: g.Name, Epoch: g.Epoch, New: g.Members[g.Primary()].Name}}
		var failed error
		closed := c.closed(looks, g, t, r.targets)
		for _, ch := range due(chores(g, t), care, closed) {
			if c.hurried() { // the primary is dead by now, and nothing waits for it
				break
			}
			if err := r.holds(ctx); err != nil {
				return errors.Join(failed, err)
			}
			text, err := r.chore(ctx, ch, closed)
			if err != nil && c.hurried() { // it was cut off
				break
			} else if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", ch.member, err))
			} else if text != "" {
				did = append(did, text)
			}
		}
		return failed
	})
	return did, seen, err
}

// looks is a context for what only looks: a primary that hangs lets a look last for seconds, and a failover need not wait for it.
func (c *Carrier) looks(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() { // ends with ctx
		select {
		case <-c.Hurry:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// hurried reports whether something else has to be done.
func (c *Carrier) hurried() bool {
	select {
	case <-c.Hurry:
		return true
	default:
		return false
	}
}

// chores are what a group needs, as its members stand. It changes nothing.
func chores(g *group.Group, t *topology.Topology) (list []chore) {
	i := g.Primary()
	p := t.Find(g.Members[i].Name)
	if p < 0 || !t.Nodes[p].Seen {
		return nil
	}
	primary, open := &t.Nodes[p], false
	switch name, agreed := rival(g, t, primary); {
	case agreed:
		return []chore{{member: name, what: "adopt", node: &t.Nodes[t.Find(name)]}}
	case name != "":
		return nil // whoever is shut may be the one that clients write to: a finding says so
	}
	for _, m := range g.Members {
		n := t.Find(m.Name)
		if n < 0 || !t.Nodes[n].Seen || n == p {
			continue
		}
		node := &t.Nodes[n]
		if node.Writes.Open() {
			open = true
			list = append(list, chore{member: m.Name, what: "shut", node: node})
			continue // what it has is looked at again when it takes no writes any more, and those that wait for a replica are committed
		}
		if m.Rebuild.Running(t.Time) || node.Untold() != nil {
			continue // what it has now is neither what it had nor what it will have; or it is not known whom it replicates from
		}
		list = append(list, returns(g, m, node, primary, t.Time)...)
	}
	list = append(list, commitChores(g, t, primary)...)
	if !primary.Writes.Open() && !open && len(primary.Channels) == 0 {
		list = append(list, chore{member: primary.Name, what: "open", node: primary, all: t})
	}
	return list
}

// rival is a member that takes writes and from which another one replicates, though it is not the primary by what Risso knows: somebody made it the primary without
// Risso, or what Risso knows is old. It is also one that replicates from nobody and takes writes while the primary takes none: somebody is about to make it the primary. One that is FAULTY is none while the primary takes writes. It is agreed when the primary takes no writes, nobody replicates from that one, and all who answer replicate from the rival.
func rival(g *group.Group, t *topology.Topology, primary *topology.Node) (name string, agreed bool) {
	for _, m := range g.Members {
		r := t.Find(m.Name)
		if r < 0 || !t.Nodes[r].Seen || !t.Nodes[r].Writes.Open() || m.Name == primary.Name {
			continue
		}
		if m.Status == group.Faulty && primary.Writes.Open() { // it was replaced, and comes back as it was, with a replica that was away meanwhile, too
			continue
		}
		node := &t.Nodes[r]
		follow, all := 0, len(node.Channels) == 0 && !primary.Writes.Open() && m.Status != group.Faulty
		for _, o := range g.Members {
			i := t.Find(o.Name)
			if i < 0 || !t.Nodes[i].Seen || o.Name == m.Name {
				continue
			}
			if followsNode(&t.Nodes[i], m.Address, node) {
				follow++
			} else if o.Status != group.Faulty {
				all = false
			}
		}
		if follow > 0 {
			return m.Name, all
		}
		if !primary.Writes.Open() && len(node.Channels) == 0 && m.Status != group.Faulty { // one that came up so by itself would replicate still
			return m.Name, false
		}
	}
	return "", false
}

// followsNode reports whether a server replicates from another one, and from it alone: by its address, or by which server it met there.
func followsNode(n *topology.Node, address string, source *topology.Node) bool {
	if len(n.Channels) != 1 {
		return false
	}
	ch := &n.Channels[0]
	return strings.EqualFold(ch.Source, address) || source.UUID != "" && strings.EqualFold(ch.SourceID, source.UUID) ||
		source.UUID == "" && source.ServerID != "" && ch.SourceServerID == source.ServerID
}

// returns is what a member needs that does not replicate from the primary as it should.
func returns(g *group.Group, m group.Member, n, primary *topology.Node, now time.Time) []chore {
	follows := followsNode(n, g.Members[g.Primary()].Address, primary)
	errant := extra(n, primary)
	if len(n.Channels) == 1 && m.Status != group.Faulty { // it may be ahead by what the primary has not told its client yet, also by way of another member
		errant = foreign(n, primary)
	}
	one := func(what string) []chore {
		return []chore{{member: m.Name, what: what, errant: errant, node: n, primary: primary}}
	}
	older := mysql.Of(n.Server).CannotFollow(mysql.Of(primary.Server))
	switch {
	case !errant.Empty() && m.Status == group.Faulty && m.Errant == errant.String() && !m.Unread.IsZero() && now.Sub(m.Unread) >= unreadAgain:
		return one("read")
	case !errant.Empty() && m.Status == group.Faulty && m.Errant == errant.String():
		return nil // it is told
	case !errant.Empty():
		return one("quarantine")
	case older != "" && m.Status == group.Faulty:
		return nil
	case older != "" && !follows:
		return one("older")
	case m.Replaced && n.Log.Closed && !m.Unlogged:
		return one("unlogged")
	case m.Status == group.Faulty && g.Policy.Rejoin && m.Errant == "" && !m.Unlogged && !m.ByHand:
		if lost := lostOwn(n, primary); !lost.Empty() {
			if m.Fault == lostWords(g.Name, m.Name, lost) {
				return nil // it is told
			}
			return []chore{{member: m.Name, what: "lost", errant: lost, node: n, primary: primary}}
		}
		return one("rejoin")
	case m.Status == group.Faulty:
		return nil
	case !follows && len(n.Channels) <= 1, follows && m.Pointing:
		return one("follow")
	case follows && mysql.LoginRefused(n.Channels[0].Channel, n.Channels[0].Tries) && now.Sub(m.Refused) >= refusedAgain:
		return one("login")
	case follows && mysql.GaveUp(n.Channels[0].Channel, n.Channels[0].Tries):
		return one("receive")
	case m.Status == group.Spare && m.Back && follows && n.Channels[0].Receiving() && n.Channels[0].Applying() && n.Channels[0].Behind != nil && *n.Channels[0].Behind <= 1:
		return one("back")
	}
	return nil
}

// foreign are those of them that do not come from the primary itself: that is ahead of its own replicas, and they of it, for moments only.
func foreign(n, primary *topology.Node) mysql.Errant {
	_, e := extra(n, primary).Split(wrote(primary))
	return e
}

// extra are the transactions that a member has and the primary, which was asked later, has not.
func extra(n, primary *topology.Node) mysql.Errant {
	e, err := mysql.ErrantTransactions(n.GTID.All(), primary.GTID.Newest())
	if err != nil {
		return mysql.Errant{}
	}
	return e.Forgotten(primary.GTID.Applied, n.ServerID)
}

// chore does one.
func (r *run) chore(ctx context.Context, ch chore, closed *Closed) (text string, err error) {
	set := func(f func(m *group.Member)) error {
		return r.change(ctx, func(g *group.Group) {
			if i := g.Find(ch.member); i >= 0 {
				f(&g.Members[i])
			}
		})
	}
	now := time.Now().UTC()
	switch ch.what {
	case "shut":
		res, err := fence.Fence(ctx, r.targets[ch.member], fence.Options{Epoch: r.g.Epoch, Limit: r.Limits.Stop, Note: func(_ mysql.Server, was fence.State) error { return r.keepFenced(ctx, ch.member, was) }})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s took writes, and is not the primary of %s: %s", ch.member, r.g.Name, res.Words()), nil
	case "adopt":
		old := r.g.Members[r.g.Primary()].Name
		if err := r.adopt(ctx, ch.member, nil, now); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s is the primary of %s, and not by Risso: it takes writes, and all members that answer, also %s, replicate from it", ch.member, r.g.Name, old), nil
	case "open":
		if err := r.reopen(ctx, ch.member, ch.all); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s, the primary of %s, %s", ch.member, r.g.Name, closed.did), r.unfenced(ctx, ch.member)
	case "acknowledge":
		return r.acknowledge(ctx, ch)
	case "vouch":
		return r.vouch(ch)
	case "raise":
		return r.raise(ctx, ch)
	case "quarantine":
		return r.quarantine(ctx, ch, now)
	case "read":
		if read, err := r.amend(ctx, ch); !read || err != nil {
			return "", err
		}
		return fmt.Sprintf("the binary logs of %s could be read now: %s shows what only it changed", ch.member, Shows(r.g, ch.member)), nil
	case "unlogged":
		err := set(func(m *group.Member) { m.Unlogged, m.Fault = true, cmp.Or(m.Fault, "it was replaced")+"; "+isUnlogged })
		return fmt.Sprintf("%s stays out of %s: %s", ch.member, r.g.Name, isUnlogged), errors.Join(err, r.receipts(ctx, ch.member, failover.Unlogged))
	case "older":
		why := "it cannot replicate from the primary: " + mysql.Of(ch.node.Server).CannotFollow(mysql.Of(ch.primary.Server))
		return fmt.Sprintf("%s stays out of %s: %s", ch.member, r.g.Name, why), r.keepOut(ctx, ch.member, why, now)
	case "lost":
		why := lostWords(r.g.Name, ch.member, ch.errant)
		return fmt.Sprintf("%s stays out of %s: %s", ch.member, r.g.Name, why), set(func(m *group.Member) { m.Fault = why })
	case "rejoin":
		return r.rejoin(ctx, ch, now)
	case "follow":
		if err := set(func(m *group.Member) { m.Pointing = true }); err != nil {
			return "", err
		}
		if text, err := r.pointed(ctx, ch.member); text != "" || err != nil {
			return text, err
		}
		return fmt.Sprintf("%s replicates from the primary of %s again", ch.member, r.g.Name), set(func(m *group.Member) { m.Pointing = false })
	case "login":
		return r.relogin(ctx, ch, now)
	case "receive":
		return r.goOnReceiving(ctx, ch)
	case "back":
		err := set(func(m *group.Member) {
			if m.Status == group.Spare && m.Back { // nobody said otherwise since it was looked at
				m.Status, m.Since, m.Back = group.Secondary, now, false
				text = fmt.Sprintf("%s has caught up, and is SECONDARY in %s again", ch.member, r.g.Name)
			}
		})
		return text, err
	}
	return "", nil
}

// quarantine keeps a member out that has transactions which the primary has not, and tells which in the receipt of the failover that replaced it.
func (r *run) quarantine(ctx context.Context, ch chore, now time.Time) (string, error) {
	replaced := r.replaced(ch.member)
	err := r.change(ctx, func(g *group.Group) {
		i := g.Find(ch.member)
		if i < 0 {
			return
		}
		m := &g.Members[i]
		if m.Status != group.Faulty {
			m.Status, m.Since = group.Faulty, now
		}
		m.Errant, m.Fault, m.Back, m.Unread = ch.errant.String(), "it has transactions that the primary has not", false, time.Time{}
		if m.ByHand {
			m.Fault = group.SaidSo + "; " + m.Fault
		}
	})
	text := fmt.Sprintf("%s stays out of %s: only it has %s; %s shows what they changed", ch.member, r.g.Name, ch.errant, Shows(r.g, ch.member))
	if !replaced { // no receipt is about it
		return text, err
	}
	_, aerr := r.amend(ctx, ch)
	return text, errors.Join(err, aerr)
}

// goOnReceiving starts the receiver of a member that gave up to connect, and lets it try for longer.
func (r *run) goOnReceiving(ctx context.Context, ch chore) (string, error) {
	n, err := r.node(ctx, ch.member)
	if err != nil {
		return "", err
	}
	name := ch.node.Channels[0].Name
	for _, statement := range []string{n.c.Server.Point(name, mysql.Pointing{Beat: heartbeat, Lasting: true}), n.c.Server.StartThread(name, mysql.Receiver)} {
		if err := r.do(ctx, n, statement); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s had given up to connect to the primary of %s, and receives from it again", ch.member, r.g.Name), r.receives(ctx, n)
}

// rejoin lets a FAULTY member that has nothing of its own replicate again, as SPARE, unless somebody said otherwise since it was looked at.
func (r *run) rejoin(ctx context.Context, ch chore, now time.Time) (string, error) {
	replaced := r.replaced(ch.member)
	if text, err := r.pointed(ctx, ch.member); text != "" || err != nil {
		return text, err
	}
	byHand := false
	err := r.change(ctx, func(g *group.Group) {
		i := g.Find(ch.member)
		if i < 0 {
			return
		}
		m := &g.Members[i]
		if byHand = m.ByHand; !byHand {
			m.Status, m.Since, m.Fault, m.Errant, m.Replaced, m.Back = group.Spare, now, "", "", false, true
		}
	})
	if replaced {
		err = errors.Join(err, r.receipts(ctx, ch.member, func(rec *failover.Receipt, k failover.Known) bool { return failover.Cleared(rec, k, ch.node) }))
	}
	if byHand {
		return "", err
	}
	return fmt.Sprintf("%s came back to %s, has nothing that the primary has not, and replicates again", ch.member, r.g.Name), err
}

// relogin points a member that the primary does not let in at it again, by the account of the group if that is let in. When that was tried is written down before: what does not
// help is not tried all the time.
func (r *run) relogin(ctx context.Context, ch chore, now time.Time) (string, error) {
	if err := r.change(ctx, func(g *group.Group) {
		if i := g.Find(ch.member); i >= 0 {
			g.Members[i].Refused = now
		}
	}); err != nil {
		return "", err
	}
	if !lets(ctx, r.g, r.j.New, r.targets, r.access.Replication, r.Limits.Look) {
		why := "and so is that of the group, as seen from here"
		return "", fleet.WithRemedy(fmt.Errorf("%w: the account by which it replicates is refused by %s, %s", ErrSurprise, r.j.New, why), setsAccess(r.g.Name))
	}
	if text, err := r.pointed(ctx, ch.member); text != "" || err != nil {
		return text, err
	}
	return fmt.Sprintf("%s could not log in at the primary of %s (%s): it got the account of the group, and replicates again", ch.member, r.g.Name, ch.node.Channels[0].IO.Words()), nil
}

// setsAccess is the command that tells the account by which members of a group replicate.
func setsAccess(group string) string {
	return "risso group set-access " + group + " --replication-user NAME --replication-password-file FILE"
}

// refusedAgain is after how long a member that the primary does not let in is pointed at it once more.
const refusedAgain = 30 * time.Second

// pointed points a member at the primary. text is that it stays out, as it has what the primary has not.
func (r *run) pointed(ctx context.Context, member string) (text string, err error) {
	err = r.point(ctx, member)
	e := (*keptError)(nil)
	if !errors.As(err, &e) {
		return "", err
	}
	now := time.Now().UTC()
	return fmt.Sprintf("%s stays out of %s: %v", member, r.g.Name, e), r.change(ctx, func(g *group.Group) { setAside(g, member, e, now) })
}

// change changes the group, as long as its lease is that of this run.
func (r *run) change(ctx context.Context, f func(g *group.Group)) error {
	g, err := r.Room.Change(ctx, r.g.Name, func(g *group.Group) error {
		if !r.mine(g) {
			return ErrLost
		}
		f(g)
		return nil
	})
	if err == nil {
		r.g = g
	}
	return err
}

// keepOut makes a member FAULTY.
func (r *run) keepOut(ctx context.Context, member, why string, now time.Time) error {
	return r.change(ctx, func(g *group.Group) { g.KeepOut(member, why, now) })
}

// replaced reports whether a member is out since a failover replaced it.
func (r *run) replaced(member string) bool {
	i := r.g.Find(member)
	return i >= 0 && r.g.Members[i].Replaced
}

// Shows is the command that shows what transactions changed which only a member has.
func Shows(g *group.Group, member string) string {
	if i := g.Find(member); i >= 0 && g.Members[i].Replaced {
		return "risso receipt --group " + g.Name
	}
	return "risso gtid errant, with --dsn of " + member + " and --source of the primary,"
}

// isUnlogged is why a member stays out of which the GTIDs do not tell what it has.
const isUnlogged = "it wrote no binary log any more: what it took since then only its tables have"

// receipts amends the receipt of the failover that replaced a member.
func (r *run) receipts(ctx context.Context, member string, amend func(*failover.Receipt, failover.Known) bool) error {
	list, err := r.Room.Journals(ctx, r.g.Name)
	if err != nil {
		return err
	}
	for _, j := range slices.Backward(list) {
		if j.Old == member && j.Kind == failover.Failover && j.Receipt != nil {
			return r.Room.Amend(ctx, j, func(rec *failover.Receipt) bool { return amend(rec, j.Known) })
		}
	}
	return nil
}

// amend writes into the receipt of the failover that replaced a member which transactions were lost with it, now that it says so, and what its binary logs tell of them. Where these
// tell nothing they are read again later.
func (r *run) amend(ctx context.Context, ch chore) (read bool, err error) {
	list, err := r.Room.Journals(ctx, r.g.Name)
	if err != nil {
		return false, err
	}
	for _, j := range slices.Backward(list) {
		if j.Old != ch.member || j.Kind != failover.Failover || j.Receipt == nil {
			continue
		}
		if failover.Amend(j.Receipt, ch.errant, returned(j, ch.node)) {
			if err := j.Save(ctx); err != nil { // which are lost is kept before anything is read, which may take long
				return false, err
			}
		}
		if c := j.Receipt.Contents; r.Contents != nil && (c == nil || c.Missed()) {
			cctx, stop := context.WithTimeout(ctx, contentsTime)
			defer stop()
			j.Receipt.Read(r.Contents(cctx, ch.member, r.targets[ch.member], ch.errant))
			err = j.Save(ctx)
		}
		read = j.Receipt.Contents != nil && !j.Receipt.Contents.Missed() // risso receipt may have read them
		unread := time.Time{}
		if r.Contents != nil && !read {
			unread = time.Now().UTC()
		}
		return read, errors.Join(err, r.change(ctx, func(g *group.Group) {
			if i := g.Find(ch.member); i >= 0 {
				g.Members[i].Unread = unread
			}
		}))
	}
	return false, nil
}

// contentsTime is how long binary logs may be read while a group is looked after.
const contentsTime = 30 * time.Second

// unreadAgain is after how long they are read again that could not be: a disk that was full has room then, or a server that was busy answers.
const unreadAgain = time.Minute
