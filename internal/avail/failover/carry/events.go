package carry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// seenAge is how old may be what is written down of a primary while it lives.
const seenAge = time.Minute

// scheduler is the variable that lets a server run events.
const scheduler = "event_scheduler"

// readEvents asks a server for its events; an account that may not see all of them gets an error.
func readEvents(ctx context.Context, c *mysql.Conn) ([]mysql.Event, error) {
	rights, err := c.Rights(ctx)
	if err != nil {
		return nil, err
	}
	if !rights.Have("", "", "EVENT") {
		return nil, fmt.Errorf("its account does not see the events: %s", c.Server.Grant("EVENT"))
	}
	return mysql.Events(ctx, c)
}

// eventsOf asks a member for its events, by a connection of its own.
func (c *Carrier) eventsOf(ctx context.Context, name string, t mysql.Target) ([]mysql.Event, error) {
	ctx, stop := context.WithTimeout(ctx, c.Limits.Look)
	defer stop()
	n, err := connect(ctx, name, t, c.Limits.Look)
	if err != nil {
		return nil, err
	}
	defer n.close()
	return readEvents(ctx, n.c)
}

// primaryEvents are what a primary runs.
func (c *Carrier) primaryEvents(ctx context.Context, n *topology.Node, t mysql.Target) (*group.Events, error) {
	list, err := c.eventsOf(ctx, n.Name, t)
	if err != nil {
		return nil, err
	}
	out := &group.Events{At: time.Now().UTC(), Scheduler: n.Settings[scheduler], Enabled: []string{}}
	for _, e := range list {
		if e.Enabled() {
			out.Enabled = append(out.Enabled, e.Quoted())
		}
	}
	return out, nil
}

// Silent writes down since when the primary of a group does not answer, and what is known of it, for a person who fails it over: how long nobody took writes, and what is
// lost, is told by that.
func (c *Carrier) Silent(ctx context.Context, name string, known failover.Known, since time.Time) error {
	kept, err := c.Room.Known(ctx, name)
	if err != nil || kept.Name == known.Name && kept.Silent.Equal(since) {
		return err
	}
	members := failover.Remember(kept.Had, known.Had)
	if kept.Name != known.Name || known.Executed != "" && known.At.After(kept.At) {
		kept = known
	}
	kept.Silent, kept.Had = since.UTC(), members
	return c.Room.SetKnown(ctx, name, kept)
}

// keepSeen writes down where the primary stands and which events it runs, for the time when it cannot be asked any more; not again so soon, unless now.
func (c *Carrier) keepSeen(ctx context.Context, g *group.Group, t *topology.Topology, now bool) error {
	i := g.Primary()
	if i < 0 {
		return nil
	}
	name := g.Members[i].Name
	n := t.Find(name)
	if n < 0 || !t.Nodes[n].Seen || !t.Nodes[n].Writes.Open() {
		return nil
	}
	known, err := c.Room.Known(ctx, g.Name)
	if err != nil || !now && known.Name == name && known.Silent.IsZero() && time.Since(known.At).Abs() < seenAge {
		return err
	}
	fresh := KnownOf(g, t, name).After(known)
	fresh.Had = failover.Remember(known.Had, fresh.Had)
	if err := c.Room.SetKnown(ctx, g.Name, fresh); err != nil {
		return err
	}
	targets, _, err := c.targets(ctx, g)
	if err != nil {
		return err
	}
	runs, err := c.primaryEvents(ctx, &t.Nodes[n], targets[name])
	if err != nil {
		return nil // what is known of them stays
	}
	_, err = c.Room.Change(ctx, g.Name, func(g *group.Group) error {
		if i := g.Primary(); i >= 0 && g.Members[i].Name == name {
			g.Events = runs
		}
		return nil
	})
	return err
}

// takeOver are the statements by which a new primary runs the events of the old one, and what is to be said of it. here is the scheduler of the new one.
func takeOver(was *group.Events, list []mysql.Event, here string) (statements, notes []string) {
	held := slices.DeleteFunc(slices.Clone(list), func(e mysql.Event) bool { return !mysql.DisabledOnReplica(e.Status) })
	if was == nil {
		if len(held) > 0 {
			notes = append(notes, fmt.Sprintf("%s: disabled as on a replica, and it is not known which of them the old primary ran: %s", digits.Counted(len(held), "event"), names(held)))
		}
		return nil, notes
	}
	for _, e := range held {
		if slices.Contains(was.Enabled, e.Quoted()) {
			statements = append(statements, e.Enable()...)
		}
	}
	if strings.EqualFold(was.Scheduler, here) || was.Scheduler == "" || len(was.Enabled) == 0 {
		return statements, notes
	}
	if here == noScheduler || was.Scheduler == noScheduler {
		return statements, append(notes, fmt.Sprintf("%s is %s, and was %s on the old primary: only a restart changes that", scheduler, here, was.Scheduler))
	}
	return append([]string{mysql.SetScheduler(was.Scheduler)}, statements...), notes
}

// noScheduler is the value of event_scheduler that only a restart changes.
const noScheduler = "DISABLED"

func names(list []mysql.Event) string {
	var out []string
	for _, e := range list {
		out = append(out, e.Quoted())
	}
	return strings.Join(out, ", ")
}

// planEvents adds to a plan of a switchover what becomes of events.
func (c *Carrier) planEvents(ctx context.Context, p *Planned, targets map[string]mysql.Target) {
	old, winner := &p.topology.Nodes[p.topology.Find(p.Old)], &p.topology.Nodes[p.topology.Find(p.Choice.Winner)]
	var err error
	if p.Events, err = c.primaryEvents(ctx, old, targets[p.Old]); err != nil {
		p.Notes = append(p.Notes, "events stay as they are: "+p.Old+": "+err.Error())
		return
	}
	for i := range p.topology.Nodes {
		n := &p.topology.Nodes[i]
		if !n.Seen || n.Name == p.Old || len(p.Events.Enabled) == 0 {
			continue
		}
		list, err := c.eventsOf(ctx, n.Name, targets[n.Name])
		if err != nil {
			p.Notes = append(p.Notes, "the events of "+n.Name+" are not known: "+err.Error())
			continue
		}
		twice := slices.DeleteFunc(slices.Clone(list), func(e mysql.Event) bool { return !e.Enabled() || !slices.Contains(p.Events.Enabled, e.Quoted()) })
		if len(twice) > 0 {
			p.Notes = append(p.Notes, fmt.Sprintf("%s runs events, too, that the primary runs: %s", n.Name, names(twice)))
		}
		if n == winner {
			var notes []string
			p.events, notes = takeOver(p.Events, list, n.Settings[scheduler])
			p.Notes = append(p.Notes, notes...)
		}
	}
}

// runEvents lets the new primary run the events that the old one ran. Replicas get that, and the old primary when it replicates: they stay disabled there.
func (r *run) runEvents(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, r.Limits.Point)
	defer stop()
	if err := r.tryEvents(ctx); err != nil {
		r.caution("events of %s may not run: %v", r.j.New, err)
	}
}

func (r *run) tryEvents(ctx context.Context) error {
	n, err := connect(ctx, r.j.New, r.targets[r.j.New], r.Limits.Point)
	if err != nil {
		return err
	}
	defer n.close()
	list, err := readEvents(ctx, n.c)
	if err != nil {
		return err
	}
	here, err := n.c.Text(ctx, "SELECT /* risso: does it run events? */ @@GLOBAL."+scheduler)
	if err != nil {
		return err
	}
	statements, notes := takeOver(r.j.Events, list, here)
	for _, note := range notes {
		r.caution("%s", note)
	}
	for _, s := range statements {
		if strings.HasPrefix(s, "SET GLOBAL") {
			r.lasts(ctx, n, scheduler, r.j.Events.Scheduler)
		}
		if err := r.do(ctx, n, s); err != nil {
			return err
		}
	}
	return nil
}

// lasts says of a setting that is given a value whether that is lost when the server is started again.
func (r *run) lasts(ctx context.Context, n *node, name, value string) {
	now, err := n.c.Text(ctx, "SELECT /* risso: as it is now */ @@GLOBAL."+name)
	if err != nil {
		return
	}
	switch start, err := mysql.StartOf(ctx, n.c, name, now); {
	case err != nil || !start.Known:
		r.caution("%s: %s = %s holds until it is started again; what its option file says is not known", n.name, name, value)
	case !strings.EqualFold(start.Value, value):
		r.caution("%s: %s = %s holds until it is started again: then it is %s (%s)", n.name, name, value, start.Value, start.From)
	}
}

// caution notes something that is not as it was, for the receipt.
func (r *run) caution(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.words("", "%s", text)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.j.Notes, text) {
		r.j.Notes = append(r.j.Notes, text)
	}
}

// cautions notes what is to be said of the one that was chosen.
func (r *run) cautions(c failover.Choice) {
	for _, note := range c.Cautions() {
		r.caution("%s", note)
	}
}

// schedulerOff refuses a member that could not run the events of the old primary.
func schedulerOff(p *Planned) (list []failover.Refusal) {
	i := p.topology.Find(p.Choice.Winner)
	if p.Events == nil || p.Events.Scheduler != "ON" || len(p.Events.Enabled) == 0 || p.topology.Nodes[i].Settings[scheduler] != noScheduler {
		return nil
	}
	return append(list, failover.NewRefusal("events", "name it with --to "+p.Choice.Winner, "%s was started with %s = %s: %s of %s would not run", p.Choice.Winner, scheduler, noScheduler,
		digits.Counted(len(p.Events.Enabled), "event"), p.Old))
}
