package carry

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Care is how much is done for a group that is looked after.
type Care int

// The cares: Opens lets the primary take writes that came up read-only, which is no failover; Tends does all that a group needs.
const (
	Looks Care = iota
	Opens
	Tends
)

// Closed is why a primary that answers takes no writes.
type Closed struct {
	fleet.Trouble
	// Opens says that whoever looks after the group may open it: it came up so, or Risso closed it. What somebody closed is left alone.
	Opens bool
	did   string // what is said when it was opened
	rival string // the member that takes writes instead; "": there is none
	ahead string // the member that is to follow it, as it lost transactions that this one has; "": there is none
}

// closed says why the primary of a group takes no writes; nil: it takes them, or does not answer.
func (c *Carrier) closed(ctx context.Context, g *group.Group, t *topology.Topology, targets map[string]mysql.Target) *Closed {
	i := g.Primary()
	if i < 0 {
		return nil
	}
	m := g.Members[i]
	p := t.Find(m.Name)
	if p < 0 || !t.Nodes[p].Seen || t.Nodes[p].Writes.Open() {
		return nil
	}
	out := &Closed{Trouble: fleet.Trouble{What: m.Name + ", the primary of " + g.Name + ", takes no writes", Remedy: opens(g, m.Name)}}
	if name, _ := rival(g, t, &t.Nodes[p]); name != "" { // to open this one would make two
		out.rival, out.Why, out.Remedy = name, name+" takes writes instead of it", supplants(g, t, name)
		return out
	}
	switch w := t.Nodes[p].Writes; {
	case len(t.Nodes[p].Channels) > 0:
		out.Why, out.Remedy = "it replicates itself from "+t.Nodes[p].Channels[0].Source, unchained(g, &t.Nodes[p])
		return out
	case w.InnoDB:
		out.Why, out.Remedy = "its InnoDB was started read-only", "restart "+m.Name+" without innodb_read_only"
		return out
	case w.Offline:
		out.Why, out.Remedy = "offline_mode is ON there", "SET GLOBAL offline_mode = OFF on "+m.Name
		return out
	}
	if name, lost := c.behind(ctx, g, t, &t.Nodes[p], targets[m.Name]); name != "" {
		out.ahead, out.Why = name, fmt.Sprintf("it has lost transactions that %s got from it, as in a crash: %s; if it took writes, others would get their numbers", name, lost)
		out.Remedy = "risso failover --group " + g.Name + " --to " + fleet.ShellWord(name)
		return out
	}
	if len(m.Fenced) > 0 {
		out.Why, out.Opens, out.did = "Risso kept it from writes", true, "was kept from writes by Risso, and takes them again"
		return out
	}
	came, tells, err := c.cameUp(ctx, targets[m.Name])
	switch {
	case err != nil:
		out.Why = "why cannot be asked: " + err.Error()
	case came:
		out.Why, out.Opens, out.did = "it came up read-only, as the settings say that it was started with", true, "came up read-only, and takes writes again"
	case !tells:
		out.Why = "it does not tell whether it came up read-only, or somebody made it so"
	case g.Policy.Agents > 0 || g.Policy.AgentPort > 0:
		out.Why = "somebody, or the agent beside it, made it read-only since it was started"
	default:
		out.Why = "somebody made it read-only since it was started"
	}
	return out
}

// unchained is how a primary that replicates is the primary again.
func unchained(g *group.Group, n *topology.Node) string {
	return strings.Join(mysql.Of(n.Server).StopAll(), "; ") + " on " + n.Name + ", then " + opens(g, n.Name)
}

// opens is the command that lets the primary take writes.
func opens(g *group.Group, primary string) string {
	return "risso group promote " + g.Name + " " + fleet.ShellWord(primary)
}

// cameUp reports whether a server is read-only since it was started, and whether it tells. Of one that does not tell it is known where it was seen to take writes before it was started.
func (c *Carrier) cameUp(ctx context.Context, t mysql.Target) (came, tells bool, err error) {
	ctx, stop := context.WithTimeout(ctx, c.Limits.Look)
	defer stop()
	conn, err := mysql.Connect(ctx, t.WithPatience(c.Limits.Look), nil)
	if err != nil {
		return false, false, err
	}
	defer conn.Close()
	if conn.Server.TellsOrigin() {
		came, err = fence.CameUp(ctx, conn)
		return came, true, err
	}
	if c.Opened.IsZero() {
		return false, false, nil
	}
	up, err := mysql.UpFor(ctx, conn)
	return err == nil && time.Now().Add(time.Second-up).After(c.Opened), true, err // it counts whole seconds
}

// looked is a group, how its members are reached, and where they stand, unless a change of its primary waits.
func (c *Carrier) looked(ctx context.Context, name string) (*group.Group, map[string]mysql.Target, *topology.Topology, error) {
	g, err := c.Room.Group(ctx, name)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := c.CutOff(ctx, g); err != nil {
		return nil, nil, nil, err
	}
	targets, _, err := c.targets(ctx, g)
	if err != nil {
		return nil, nil, nil, err
	}
	t, err := lookAt(ctx, g, targets, c.Limits.Look)
	return g, targets, t, err
}

// PlanOpen judges whether the primary of a group can be opened, and says what is done for that. Nothing is changed.
func (c *Carrier) PlanOpen(ctx context.Context, name string) (change.Plan, error) {
	g, targets, t, err := c.looked(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := openable(g, t, c.closed(ctx, g, t, targets)); err != nil {
		return nil, err
	}
	m := g.Members[g.Primary()]
	var plan change.Plan
	step := func(why string, what ...string) {
		for _, w := range what {
			plan = append(plan, change.Step{What: w, Where: "on " + m.Name, Why: why})
		}
	}
	waiting, _ := planWaits(g, t, KnownOf(g, t, m.Name), m.Name)
	step("before it takes writes", waiting...)
	if len(m.Fenced) > 0 {
		step("", "set back what it had before it was kept from writes")
	}
	step("it takes writes again", mysql.Of(t.Nodes[t.Find(m.Name)].Server).Open()...)
	return plan, nil
}

// Open lets the primary of a group take writes again, whoever closed it, as long as nobody else takes them.
func (c *Carrier) Open(ctx context.Context, name string) (words string, err error) {
	err = c.leased(ctx, name, func(ctx context.Context, g *group.Group) error {
		if err := c.waits(ctx, name); err != nil {
			return err
		}
		r, err := c.run(ctx, g)
		if err != nil {
			return err
		}
		defer r.close()
		t, err := lookAt(ctx, g, r.targets, c.Limits.Look)
		if err != nil {
			return err
		}
		if err := openable(g, t, c.closed(ctx, g, t, r.targets)); err != nil {
			return err
		}
		primary := g.Members[g.Primary()].Name
		r.j = &keep.Journal{Journal: failover.Journal{Group: name, Epoch: g.Epoch, New: primary}}
		if err = r.reopen(ctx, primary, t); err == nil {
			err = r.unfenced(ctx, primary)
		}
		words = primary + ", the primary of " + name + ", takes writes again"
		return err
	})
	return words, err
}

// openable refuses to open a primary where that would make two, or would not do.
func openable(g *group.Group, t *topology.Topology, closed *Closed) error {
	no := func(remedy, format string, args ...any) error {
		return fault.New(fault.Failed, remedy, fmt.Errorf("open the primary of %s: %w: %w", g.Name, ErrRefused, fmt.Errorf(format, args...)))
	}
	i := g.Primary()
	if i < 0 {
		return no("risso group promote "+g.Name, "it has none")
	}
	p := t.Find(g.Members[i].Name)
	switch primary := g.Members[i].Name; {
	case p < 0 || !t.Nodes[p].Seen:
		return no("risso failover --group "+g.Name, "%s does not answer", primary)
	case closed != nil && closed.Remedy != opens(g, primary):
		return no(closed.Remedy, "%s", closed.Why)
	case len(t.Nodes[p].Channels) > 0:
		return no(unchained(g, &t.Nodes[p]), "%s replicates itself from %s", primary, t.Nodes[p].Channels[0].Source)
	case closed == nil:
		return no("", "%s takes writes", primary)
	}
	for _, m := range g.Members {
		if o := t.Find(m.Name); o >= 0 && o != p && t.Nodes[o].Seen && t.Nodes[o].Writes.Open() {
			return no("risso topology", "%s takes writes", m.Name)
		}
	}
	return nil
}

// alone refuses to let a member take writes where another one does that replicates from nobody, as it is now: somebody made that one the primary meanwhile, or it did not answer when it was
// looked at before. Who has time asks those that do not answer once more, for longer.
func (r *run) alone(ctx context.Context, member string, patient bool) error {
	without := []string{member}
	for patience := r.Limits.Look; ; patience = r.Limits.Stop {
		t, err := lookAt(ctx, r.g, r.targets, patience, without...)
		if err != nil {
			return err
		}
		silent := false
		for i := range t.Nodes {
			switch n := &t.Nodes[i]; {
			case n.Seen && n.Writes.Open() && len(n.Channels) == 0:
				return fault.New(fault.Failed, "let one of the two take no writes: the one to which no clients write", fmt.Errorf("open %s: %w: %s takes writes", member, ErrRefused, n.Name))
			case !n.Seen && n.Unseen != nil && n.Unseen.Kind != string(mysql.ClassRefused):
				silent = true
			default:
				without = append(without, n.Name)
			}
		}
		if !patient || !silent {
			return nil
		}
		patient = false
	}
}

// due are those of the chores that are done with a care.
func due(list []chore, care Care, closed *Closed) (out []chore) {
	for _, ch := range list {
		if ch.what == "open" && (closed == nil || !closed.Opens) || ch.what != "open" && care < Tends || care < Opens {
			continue
		}
		out = append(out, ch)
	}
	return out
}
