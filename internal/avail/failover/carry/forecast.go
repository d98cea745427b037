package carry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Forecast is what a failover would do now.
type Forecast struct {
	Group   *group.Group
	Old     string
	Alive   bool    // the primary answers
	Because string  // why it does not
	Rival   string  // a member that takes writes as the primary does, and is not it
	Closed  *Closed // why the primary answers and takes no writes; nil: it takes them
	Lives   string  // why it lives though it does not answer; "": nothing says so
	Known   failover.Known
	Choice  failover.Choice
	Plan    change.Plan
	Notes   []string
	// Beside is what is wrong if the only controller runs on this machine: so does the primary, and other members do not; nil: that is not so.
	Beside *fleet.Trouble
	// Commits is what is wrong with how commits of the primary wait for replicas.
	Commits []Lack

	to      string   // who was named
	cutOff  error    // a change was cut off, and comes first
	asked   []string // members that answer
	feed    []string // the statements by which a delayed member applies what the winner gets from it
	hurries []string // the statements by which one that was named stays behind on purpose no more
	events  []string // the statements by which the winner runs the events of the old primary
}

// knownAge is how old may be what is written down of a primary, if it is to prove that commits waited for replicas when it died.
const knownAge = 5 * time.Minute

// Forecast says what a failover would do now. Nothing is changed.
func (c *Carrier) Forecast(ctx context.Context, a Asked) (*Forecast, error) {
	g, err := c.Room.Group(ctx, a.Group)
	if err != nil {
		return nil, err
	}
	targets, access, err := c.targets(ctx, g)
	if err != nil {
		return nil, err
	}
	t, err := lookAt(ctx, g, targets, c.Limits.Look)
	if err != nil {
		return nil, err
	}
	if a.Known, err = c.knownOf(ctx, g, a.Known); err != nil {
		return nil, err
	}
	f := forecast(g, t, a, rooms(ctx, g, t, targets, access), c.full(ctx, g, t, targets))
	f.delayed(t, a.To, c.Limits.Drain)
	f.feeds(t, c.Limits.Drain)
	f.cutOff, f.Closed, f.to = c.CutOff(ctx, g), c.closed(ctx, g, t, targets), a.To
	if f.outlived() {
		f.Because = cmp.Or(f.Because, f.Closed.Why)
	}
	if f.Old != "" && !f.Alive && !a.AcceptLoss {
		f.Lives = c.lives(ctx, g, t, f.Old, targets, access)
	}
	if a.Drains {
		from := f.Old
		if !f.Alive {
			from = ""
		}
		c.drains(ctx, &f.Choice, t, targets, from)
		f.Notes = append(append(f.Notes, drainNotes(&f.Choice, c.Limits.Drain)...), handoverNotes(&f.Choice, t, f.Old)...)
	}
	c.forecastEvents(ctx, f, t, targets)
	f.steps(t)
	return f, ctx.Err() // what was cut off says nothing of the members
}

// knownOf is what is known of the primary of a group: by whoever asks, or, where that is nothing, as it is written down.
func (c *Carrier) knownOf(ctx context.Context, g *group.Group, known failover.Known) (failover.Known, error) {
	i := g.Primary()
	if known.Executed != "" && known.Server.Number > 0 || i < 0 {
		return known, nil
	}
	k, err := c.Room.Known(ctx, g.Name)
	if err != nil || k.Name != g.Members[i].Name {
		return known, err
	}
	if known.Executed != "" { // it was only seen
		known.Server = k.Server
		return known, nil
	}
	if time.Since(k.At).Abs() > knownAge { // also by a clock that is ahead
		k.Told, k.SemiSync, k.Lossless = false, false, false
	}
	k.Had = failover.Remember(k.Had, known.Had)
	return k, nil
}

// Known is what was written down of the primary of a group; a zero one if nothing was.
func (c *Carrier) Known(ctx context.Context, g *group.Group) (failover.Known, error) {
	return c.knownOf(ctx, g, failover.Known{})
}

// forecastEvents adds what would become of events. Those of a primary that lives are asked for; of another one it is known what was last seen.
func (c *Carrier) forecastEvents(ctx context.Context, f *Forecast, t *topology.Topology, targets map[string]mysql.Target) {
	i := t.Find(f.Choice.Winner)
	if i < 0 || f.Choice.Winner == "" {
		return
	}
	list, err := c.eventsOf(ctx, f.Choice.Winner, targets[f.Choice.Winner])
	if err != nil {
		f.Notes = append(f.Notes, "events would stay as they are: "+f.Choice.Winner+": "+err.Error())
		return
	}
	was := f.Group.Events
	if o := t.Find(f.Old); f.Alive && o >= 0 {
		if now, err := c.primaryEvents(ctx, &t.Nodes[o], targets[f.Old]); err == nil {
			was = now
		}
	}
	var notes []string
	f.events, notes = takeOver(was, list, t.Nodes[i].Settings[scheduler])
	f.Notes = append(f.Notes, notes...)
}

// full says that nobody can write on the primary of a group, as its disk is full; "": it is not known to be.
func (c *Carrier) full(ctx context.Context, g *group.Group, t *topology.Topology, targets map[string]mysql.Target) string {
	i := g.Primary()
	if i < 0 {
		return ""
	}
	name := g.Members[i].Name
	if o := t.Find(name); o < 0 || !t.Nodes[o].Seen {
		return ""
	}
	n, err := connect(ctx, name, targets[name], c.Limits.Look)
	if err != nil {
		return ""
	}
	defer n.close()
	if waiting, err := mysql.CommitsWaitForRoom(ctx, n.c); err == nil && waiting > 0 {
		return failover.FullWords(waiting)
	}
	return ""
}

func forecast(g *group.Group, t *topology.Topology, a Asked, room map[string]failover.Room, full string) *Forecast {
	f := &Forecast{Group: g, Known: a.Known}
	if i := g.Primary(); i >= 0 {
		f.Old = g.Members[i].Name
	}
	for i := range t.Nodes {
		if n := &t.Nodes[i]; n.Seen && n.Name != f.Old {
			f.asked = append(f.asked, n.Name)
		}
	}
	if i := t.Find(f.Old); i >= 0 {
		n := &t.Nodes[i]
		if f.Alive, f.Because = n.Seen && full == "", full; n.Seen {
			f.Rival, _ = rival(g, t, n)
			f.Known = KnownOf(g, t, f.Old)
			f.Commits, f.Beside = lacks(g, t), together(g, t)
		} else if n.Unseen != nil {
			f.Because = n.Unseen.Words()
		}
	}
	f.Known.Name, f.Known.Full = cmp.Or(f.Known.Name, f.Old), full != ""
	f.Choice = failover.Choose(failover.Question{Group: g, Topology: t, Old: f.Old, Known: f.Known, To: a.To, Lossless: g.Policy.Lossless && !a.AcceptLoss, Room: room})
	return f
}

// Refused is an error if nobody can follow.
func (f *Forecast) Refused() error {
	switch {
	case f.cutOff != nil:
		return f.cutOff
	case f.Lives != "":
		return refused("failover of "+f.Group.Name, []failover.Refusal{failover.NewRefusal("lives",
			"mend that; --accept-loss fails over all the same: "+f.Old+" may go on to take writes, which are lost then", "%s, the primary: %s", f.Old, f.Lives)})
	case f.Closed != nil && !f.outlived():
		return fault.New(fault.Failed, f.Closed.Remedy, fmt.Errorf("failover of %s: %w: %s, the primary, answers, and takes no writes: %s", f.Group.Name, ErrRefused, f.Old, f.Closed.Why))
	case len(f.Choice.Refused) > 0:
		return refused("failover of "+f.Group.Name, f.Choice.Refused)
	case f.Alive && !f.outlived():
		return fault.New(fault.Failed, "risso switchover --group "+f.Group.Name, fmt.Errorf("failover of %s: %w: the primary %s answers", f.Group.Name, ErrRefused, f.Old))
	}
	return nil
}

// outlived reports whether a member is named to follow a primary that takes no writes, as it lost what members have.
func (f *Forecast) outlived() bool { return f.to != "" && f.Closed != nil && f.Closed.ahead != "" }

// Ready reports whether the group has a primary that answers, and somebody who could follow it now.
func (f *Forecast) Ready() bool { return f.cutOff == nil && f.without() == "" && f.Choice.Ready() }

// without says that nobody takes writes, as the group has no primary, or as that is dead; "": it has one that answers.
func (f *Forecast) without() string {
	switch {
	case f.Old == "":
		return f.Group.Name + " has no primary"
	case f.Alive:
		return ""
	case f.Known.Full:
		return fmt.Sprintf("%s: %s, the primary, takes no writes: %s", f.Group.Name, f.Old, f.Because)
	case f.Because == "":
		return fmt.Sprintf("%s: %s, the primary, does not answer", f.Group.Name, f.Old)
	}
	return fmt.Sprintf("%s: %s, the primary, does not answer: %s", f.Group.Name, f.Old, f.Because)
}

// deserted is what is wrong with a group in which nobody takes writes; nil: somebody does.
func (f *Forecast) deserted() error {
	what := f.without()
	switch {
	case what == "":
		return nil
	case f.Lives != "":
		return fault.New(fault.Failed, "mend that; risso failover --group "+f.Group.Name+" --accept-loss fails it over all the same", fmt.Errorf("%s: %s, the primary: %s", f.Group.Name, f.Old, f.Lives))
	case f.Choice.Winner == "":
		words, remedy := reasons(f.Choice.Refused)
		return fault.New(fault.Failed, remedy, fmt.Errorf("%s, and nobody could be promoted: %s", what, words))
	case f.Old == "":
		return fault.New(fault.Failed, "risso group promote "+f.Group.Name, fmt.Errorf("%s: %s would be promoted", what, f.Choice.Winner))
	}
	return fault.New(fault.Failed, "risso failover --group "+f.Group.Name, fmt.Errorf("%s; %s would follow it", what, f.Choice.Winner))
}

// Unwell is what is wrong with the group, the worst first, with what mends it; nil: nothing.
func (f *Forecast) Unwell() error {
	deserted := f.deserted()
	switch {
	case f.cutOff != nil:
		return f.cutOff
	case deserted != nil:
		return deserted
	case f.Rival != "":
		return fault.New(fault.Failed, f.RivalRemedy(), fmt.Errorf("%s takes writes in %s, and is not the primary by what Risso knows", f.Rival, f.Group.Name))
	case f.Closed != nil:
		return fault.New(fault.Failed, f.Closed.Remedy, fmt.Errorf("%s: %s", f.Closed.What, f.Closed.Why))
	case f.Choice.Winner == "":
		return f.Refused()
	case f.Choice.Deaf != nil:
		return fault.New(fault.Failed, f.Choice.Deaf.Remedy, fmt.Errorf("%s is not ready: %s", f.Group.Name, f.Choice.Deaf.Why))
	case f.Choice.Few != nil:
		return fault.New(fault.Failed, f.Choice.Few.Remedy, fmt.Errorf("%s is not ready: %s", f.Group.Name, f.Choice.Few.Why))
	case len(f.Commits) > 0:
		worst := f.Commits[0]
		return fault.New(fault.Failed, worst.Remedy, fmt.Errorf("%s: %s: %s", f.Group.Name, worst.What, worst.Why))
	}
	return nil
}

// RivalRemedy is what there is to do about a rival.
func (f *Forecast) RivalRemedy() string {
	if f.Closed != nil && f.Closed.rival == f.Rival {
		return f.Closed.Remedy
	}
	return "let one of the two take no writes; " + f.Rival + " is taken for the primary if that is " + f.Old + ", and all others replicate from " + f.Rival
}

// Supplanted reports whether a member is named that takes writes instead of the primary.
func (f *Forecast) Supplanted(to string) bool {
	i := f.Group.Find(to)
	return to != "" && i >= 0 && f.Closed != nil && f.Closed.rival == f.Group.Members[i].Name
}

// CutOff says that a change is under way, or was cut off; "": there is none.
func (f *Forecast) CutOff() string {
	if f.cutOff == nil {
		return ""
	}
	return f.cutOff.Error()
}

// Words is the forecast in lines.
func (f *Forecast) Words() (lines []string) {
	if f.cutOff != nil {
		lines = append(lines, f.Group.Name+": "+f.cutOff.Error())
	}
	may := "may follow"
	switch who := cmp.Or(f.Choice.Winner, "nobody"); {
	case f.Old == "":
		may = "may be promoted"
		lines = append(lines, f.without()+": "+who+" would be promoted")
	case !f.Alive:
		lines = append(lines, f.without())
		fallthrough
	default:
		lines = append(lines, fmt.Sprintf("%s: %s would follow %s", f.Group.Name, who, f.Old))
	}
	if f.Closed != nil {
		lines = append(lines, "  "+f.Old+", the primary, takes no writes: "+f.Closed.Why)
	}
	if f.Lives != "" {
		lines = append(lines, "  "+f.Old+": "+f.Lives)
	}
	if f.Choice.Deaf != nil {
		lines = append(lines, "  "+f.Choice.Deaf.Why)
	}
	if f.Choice.Few != nil {
		lines = append(lines, "  "+f.Choice.Few.Why)
	}
	for _, c := range f.Choice.Candidates {
		var words []string
		for _, r := range c.Refused {
			words = append(words, r.Why)
		}
		if len(words) == 0 {
			words = append(words, may, c.ToApply())
		} else if c.Drain != nil && c.Waiting > 0 {
			words = append(words, c.ToApply())
		}
		lines = append(lines, "  "+c.Name+": "+strings.Join(append(words, c.Notes...), "; "))
	}
	if f.Choice.Count > 0 {
		lines = append(lines, "  lost would be "+digits.Counted(int(f.Choice.Count), "transaction")+": "+f.Choice.Lost)
	}
	if f.Choice.Winner != "" && f.Old != "" {
		lines = append(lines, "  "+f.Known.AtRisk(f.asked))
	}
	for _, l := range f.Commits {
		lines = append(lines, "  "+l.Words())
	}
	for _, n := range f.Notes {
		lines = append(lines, "  "+n)
	}
	return lines
}

// steps are the plan in words.
func (f *Forecast) steps(t *topology.Topology) {
	step := func(where, why string, what ...string) {
		for _, w := range what {
			f.Plan = append(f.Plan, change.Step{What: w, Where: "on " + where, Why: why})
		}
	}
	i := t.Find(f.Choice.Winner)
	if i < 0 || f.Choice.Winner == "" {
		return
	}
	if f.Old != "" {
		step(f.Old, "if it answers within "+digits.Span(fenceTime), "let it take no writes")
	}
	step(f.Choice.Winner, "it applies what it received without its delay", f.hurries...)
	for _, last := range []bool{false, true} {
		why := "all at once"
		if last {
			why = "now that it is known that somebody can follow; it does not apply, and if both threads stood, starting one would throw away what it received"
		}
		for j := range t.Nodes {
			n := &t.Nodes[j]
			if s := mysql.Of(n.Server); n.Seen && n.Name != f.Old && len(n.Channels) > 0 && last == (len(n.Channels) == 1 && onlyReceives(s, n.Channels[0].Channel)) {
				step(n.Name, why, s.StopThread(n.Channels[0].Name, mysql.Receiver))
			}
		}
	}
	s := mysql.Of(t.Nodes[i].Server)
	step(f.Choice.Winner, "until it has applied all that it received", "wait")
	if f.Choice.From != "" {
		step(f.Choice.From, "it applies what it received without its delay, which it has back at the end", f.feed...)
		step(f.Choice.Winner, "until it has all that this one has", "replicate from "+f.Choice.From)
	}
	step(f.Choice.Winner, "", s.StopAll()...)
	waiting, words := planWaits(f.Group, t, f.Known, f.Choice.Winner, append(failover.Outs(f.Choice.Out), f.Old)...)
	if words != "" {
		f.Notes = append(f.Notes, words)
	}
	step(f.Choice.Winner, "before it takes writes", waiting...)
	step(f.Choice.Winner, "writes go on from here", s.Open()...)
	f.Plan = append(f.Plan, change.Step{What: "tell clients", Where: "that " + f.Choice.Winner + " is the primary"})
	m := f.Group.Members[f.Group.Find(f.Choice.Winner)]
	for _, c := range f.Choice.Candidates {
		if c.Name != f.Choice.Winner && !slices.Contains(failover.Outs(f.Choice.Out), c.Name) {
			step(c.Name, "", "replicate from "+m.Address)
		}
	}
	stepsOut(step, f.Choice.Out)
	step(f.Choice.Winner, "events run there from here", f.events...)
	f.Plan = append(f.Plan, verifying(f.Group, f.Choice.Winner)...)
}
