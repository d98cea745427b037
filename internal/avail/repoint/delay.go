package repoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/mysql"
)

// Delay is how long a replica is to stay behind on purpose, as a plan.
type Delay struct {
	Replica topology.Node
	Channel topology.Channel
	Plan    change.Plan
	Notes   []string
	Undo    string
	Journal string // file that says what was done, and stays

	r       *Repointer
	seconds int
	refetch bool // it throws away what it received, and its source has it
	node    *server
}

// Delay plans that a replica stays behind its source by so many seconds; 0: not on purpose.
func (r *Repointer) Delay(ctx context.Context, t *topology.Topology, node int, channel *string, seconds int) (*Delay, error) {
	j := &judge{Question: Question{Topology: t, Replica: node, Channel: channel}, replica: &t.Nodes[node]}
	j.v.From, j.v.Anchor = -1, -1
	d := &Delay{r: r, Replica: t.Nodes[node], seconds: seconds}
	if !d.Replica.Seen {
		j.v.refuse("not_seen", "", "%s was not seen", d.Replica.Name)
	} else if err := r.Left(ctx, r.Target(d.Replica.Addresses[0])); err != nil {
		return nil, err
	} else if j.pick() {
		d.judge(ctx, j)
	}
	if len(j.v.Refused) > 0 {
		return nil, Refused("delay "+d.Replica.Name, j.v.Refused)
	}
	d.Channel, d.Notes = j.v.Channel, j.v.Notes
	before := "0"
	if d.Channel.Delay > 0 {
		before = fmt.Sprintf("%ds", d.Channel.Delay)
	}
	d.Undo = "risso replica delay " + d.Replica.Name + " " + before + r.Flags
	d.plan()
	return d, nil
}

// judge looks at whether anything is lost by it: a server that throws its relay logs away must be able to fetch them again.
func (d *Delay) judge(ctx context.Context, j *judge) {
	ch, name := j.v.Channel, d.Replica.Name
	if ch.Delay == d.seconds {
		j.v.refuse("there", "", "%s stays %s behind already", name, seconds(d.seconds))
		return
	}
	if !mysql.Of(d.Replica.Server).DelaysWhileReceiving() { // it stops receiving for that moment
		j.semiSync()
	}
	// Where both threads stand at the CHANGE, any server throws away what was not applied. Source: MySQL manual, "CHANGE REPLICATION SOURCE TO".
	if mysql.Of(d.Replica.Server).DelaysWhileReceiving() && ch.IORunning != "No" || !j.unapplied() {
		return
	}
	if j.v.From < 0 || !j.Topology.Nodes[j.v.From].Seen {
		j.v.refuse("not_applied", "", "%s would throw away what it has received and not applied, and its source %s was not seen, so that it could not be fetched again", name, ch.Source)
		return
	}
	j.below = &j.Topology.Nodes[j.v.From]
	source, err := d.r.connect(ctx, j.below)
	if err != nil {
		j.v.refuse("not_applied", "", "%s would throw away what it has received and not applied; whether its source still has that is not known: %v", name, err)
		return
	}
	defer source.c.Close()
	if !ch.GTID {
		logs, err := mysql.Logs(ctx, source.c)
		if err != nil || len(logs) == 0 || mysql.CompareLogs(ch.Log, logs[0].Name) < 0 {
			j.v.refuse("purged", "", "%s would throw away what it has received and not applied, and %s no longer has %s", name, j.below.Name, ch.Log)
		}
	} else {
		if j.Gone, err = mysql.GoneGTIDs(ctx, source.c); err != nil {
			j.GoneWhy = err.Error()
		}
		j.v.Channel.Received = "" // that is what is thrown away
		j.purged()
		j.v.Channel.Received = ch.Received
	}
	d.refetch = true
	j.v.note("%s throws away what it has received and not applied, and fetches it again from %s, which has it", name, j.below.Name)
}

func (d *Delay) plan() {
	s, ch, on := mysql.Of(d.Replica.Server), d.Channel, "on "+d.Replica.Name
	w := words{s, ch.Name, len(d.Replica.Channels) > 1, ch.Beat}
	stop, start := w.stop(mysql.Applier), w.start(mysql.Applier)
	receives := ch.IORunning != "No"
	if !s.DelaysWhileReceiving() {
		stop, start = w.stopBoth(), w.startBoth()
		if !receives || !ch.Applying() { // only what ran
			start = w.start(mysql.Receiver)
			if !receives {
				start = w.start(mysql.Applier)
			}
		}
	}
	statements := []string{stop, w.point(mysql.Pointing{Delay: &d.seconds})}
	if ch.Applying() || !s.DelaysWhileReceiving() && receives {
		statements = append(statements, start)
	}
	for _, statement := range statements {
		d.Plan = append(d.Plan, change.Step{What: statement, Where: on, Do: func(ctx context.Context) error { return d.node.do(ctx, statement) }})
	}
}

// Do carries it out. When it fails, what ran before runs again, and how long it stays behind is said.
func (d *Delay) Do(ctx context.Context) (err error) {
	if d.node, err = d.r.connect(ctx, &d.Replica); err != nil {
		return err
	}
	defer func() { d.node.c.Close() }()
	if err := d.unchanged(ctx); err != nil {
		return err
	}
	begin := map[string]any{"replica": d.Replica.Name, "channel": d.Channel.Name, "delay": d.Channel.Delay, "to": d.seconds, "plan": d.Plan.Words(), "undo": d.Undo}
	return d.r.recorded(&d.Journal, begin, func() map[string]any { return map[string]any{"undo": d.Undo} }, func() error { return d.run(ctx) })
}

// unchanged makes sure that the replica is as it was when the plan was made: by that was judged whether anything is lost.
func (d *Delay) unchanged(ctx context.Context) error {
	now, err := d.node.channel(ctx, d.Channel.Name)
	if err != nil {
		return err
	}
	was := d.Channel
	if now.Status.Source != was.Source || (now.Status.IORunning == "No") != (was.IORunning == "No") || now.SQLRunning != was.Applying() || now.Delay != was.Delay {
		return fmt.Errorf("%w: %s does not replicate as it did when this was planned: nothing was done", ErrSurprise, d.node.name)
	}
	return nil
}

func (d *Delay) run(ctx context.Context) error {
	loan, err := d.r.stopped(func() bool { return false }).Borrow(d.r.Dir, d.r.target(&d.Replica), d.node.c.Server, 0, Stopped{Server: d.Replica.Name, Channel: d.Channel.Name,
		Receives: d.Channel.IORunning != "No", Applies: d.Channel.Applying(), Refetch: d.refetch, Delay: &Delays{d.Channel.Delay, d.seconds}})
	if err != nil {
		return err
	}
	_, err = change.Execute(ctx, d.Plan, change.Log{})
	c, back := loan.Return(ctx, d.node.c)
	if c != nil {
		d.node.c = c
	}
	if back != nil {
		back = fmt.Errorf("what was stopped could not be started: %w; the journal is in %s; %s tries it again", back, d.r.Dir, d.r.backCommand())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	ch, cerr := d.node.channel(ctx, d.Channel.Name)
	switch {
	case cerr != nil:
		cerr = fmt.Errorf("how long it stays behind now is not known: %w", cerr)
	case err != nil:
		cerr = fmt.Errorf("%s stays %s behind now", d.node.name, seconds(ch.Delay))
	case ch.Delay != d.seconds:
		cerr = fmt.Errorf("%w: %s says that it stays %s behind", ErrSurprise, d.node.name, seconds(ch.Delay))
	}
	return errors.Join(err, back, cerr)
}
