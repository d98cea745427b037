package repoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Skip is one transaction that a replica is to pass over, as a plan.
type Skip struct {
	Replica  topology.Node
	Channel  topology.Channel
	Error    fleet.ReplicaError // at which it stands
	What     string             // the transaction: its GTID, or its place in the source's log
	Would    []string           // what it would have changed, as the relay log says
	WouldWhy string             // why that is not known
	Plan     change.Plan
	Notes    []string
	After    string // how the channel went on
	Journal  string

	r    *Repointer
	node *server
}

// Skip plans that a replica passes over the one transaction at which it stopped.
func (r *Repointer) Skip(ctx context.Context, t *topology.Topology, node int, channel *string) (*Skip, error) {
	j := &judge{Question: Question{Topology: t, Replica: node, Channel: channel}, replica: &t.Nodes[node]}
	s := &Skip{r: r, Replica: t.Nodes[node]}
	if !s.Replica.Seen {
		j.v.refuse("not_seen", "", "%s was not seen", s.Replica.Name)
	} else if j.pick() {
		s.Channel, s.Error = j.v.Channel, j.v.Channel.SQL
		if s.Error.Text == "" {
			j.v.refuse("not_stopped", "", "%s stands at no transaction: it has not stopped applying with an error", s.Replica.Name)
		} else if s.Error.Number == errno.WorkerStoppedBehind {
			j.v.refuse("unnamed", "", "%s names only a transaction that waited for another one, which failed: %s", s.Replica.Name, s.Error.Text)
		} else if err := s.prepare(ctx, j); err != nil {
			return nil, err
		}
	}
	if len(j.v.Refused) > 0 {
		return nil, Refused("skip", j.v.Refused)
	}
	s.Notes = append(s.Notes, "the rows may differ from the source's afterwards: risso checksum --dsn SOURCE --replica "+s.Replica.Name+" finds them, and --mend repairs them")
	return s, nil
}

func (s *Skip) prepare(ctx context.Context, j *judge) error {
	node, err := s.r.connect(ctx, &s.Replica)
	if err != nil {
		return err
	}
	defer node.c.Close()
	v, err := read.Variables(ctx, node.c, []string{"gtid_mode", "slave_parallel_threads", "gtid_slave_pos"})
	if err != nil {
		return err
	}
	ch, err := node.channel(ctx, s.Channel.Name)
	if err != nil {
		return err
	}
	if err := node.purges(ctx, ch); err != nil {
		j.v.refuse("purges", node.words(ch.Name).start(mysql.Receiver)+" on "+s.Replica.Name+" lets it fetch that again first", "%s stands and does not receive: a START throws away what it has received, with the transaction that is to be passed over", s.Replica.Name)
		return nil
	}
	named := ""
	if named, s.Would, err = would(ctx, node, ch, s.Error.GTID); err != nil {
		s.WouldWhy = err.Error()
	}
	server, channel := node.c.Server, s.Channel.Channel
	if g, err := mysql.ParseGTID(named); err == nil && channel.SQL.GTID == "" {
		have, err := mysql.AppliedGTIDs(ctx, node.c)
		if err != nil {
			return err
		}
		if !have.Contains(g) { // an applier that works alone does not name it, but stands in front of it
			channel.SQL.GTID = named
		}
	}
	threads, _ := strconv.Atoi(v["slave_parallel_threads"])
	set := mysql.ReplicaSettings{GTIDMode: v["gtid_mode"], Threads: threads, Position: v["gtid_slave_pos"]}
	if server.CannotCount(channel, set) {
		j.v.refuse("several_domains", server.ApplyAlone(channel.Name)+" lets it stop there again, where it counts; slave_parallel_threads was "+v["slave_parallel_threads"],
			"%s applies several domains with several threads: it does not count then what it passes over (error 1966), nor say at which transaction it stands", s.Replica.Name)
		return nil
	}
	steps := server.SkipSteps(channel, set)
	if steps == nil {
		j.v.refuse("unnamed", "look for it in the source's log at "+fmt.Sprintf("%s:%d", s.Channel.Log, s.Channel.Pos), "%s does not say at which transaction it stands, and only by its GTID it can be passed over", s.Replica.Name)
		return nil
	}
	s.What = fmt.Sprintf("the transaction at %s:%d of the log of %s", s.Channel.Log, s.Channel.Pos, s.Channel.Source)
	if g := channel.SQL.GTID; g != "" {
		s.What = g + ", " + s.What
	}
	for i, statement := range steps {
		if i == len(steps)-1 { // the last one starts the channel; a receiver that somebody stopped stays so
			statement = node.words(channel.Name).start(mysql.Applier)
		}
		s.Plan = append(s.Plan, change.Step{What: statement, Where: "on " + s.Replica.Name, Do: func(ctx context.Context) error { return s.node.do(ctx, statement) }})
	}
	return nil
}

// Do passes over it. It makes sure that the replica stands where it stood when the plan was made, and says how it went on.
func (s *Skip) Do(ctx context.Context) (err error) {
	if s.node, err = s.r.connect(ctx, &s.Replica); err != nil {
		return err
	}
	defer s.node.c.Close()
	ch, err := s.node.channel(ctx, s.Channel.Name)
	if err != nil {
		return err
	}
	if e := ch.Status.SQL; e.Number != s.Error.Number || e.GTID != s.Error.GTID || ch.SQLRunning || ch.Status.Log != s.Channel.Log || ch.Status.Pos != s.Channel.Pos {
		return fmt.Errorf("%w: %s stands elsewhere now%s: nothing was done", ErrSurprise, s.node.name, because(e))
	}
	begin := map[string]any{"replica": s.Replica.Name, "channel": ch.Name, "skips": s.What, "would": s.Would, "plan": s.Plan.Words()}
	return s.r.recorded(&s.Journal, begin, func() map[string]any { return map[string]any{"after": s.After} }, func() error {
		_, err := change.Execute(ctx, s.Plan, change.Log{})
		if err != nil {
			return errors.Join(err, s.uncount(ctx))
		}
		return s.goesOn(ctx, ch)
	})
}

// uncount takes back that the next start is to pass over a transaction: a later one would pass over another. A running channel refuses that: it has done so.
func (s *Skip) uncount(ctx context.Context) error {
	at := slices.IndexFunc(s.Plan, func(p change.Step) bool { return strings.Contains(p.What, counts) })
	if at < 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	node, err := s.r.connect(ctx, &s.Replica) // the other connection may have ended in the midst of a statement
	if err != nil {
		return fleet.WithRemedy(fmt.Errorf("whether the next START passes over a transaction is not known: %w", err), strings.Replace(s.Plan[at].What, counts, uncounts, 1))
	}
	defer node.c.Close()
	for _, step := range s.Plan[:at] {
		if err := node.do(ctx, step.What); err != nil {
			return err
		}
	}
	if err := node.do(ctx, strings.Replace(s.Plan[at].What, counts, uncounts, 1)); err != nil && mysql.ErrorNumber(err) == 0 {
		return err
	}
	return nil
}

// What sets the counter of transactions to pass over, and what sets it back.
const counts, uncounts = "skip_counter = 1", "skip_counter = 0"

// goesOn waits until the channel has left the place, or stopped again.
func (s *Skip) goesOn(ctx context.Context, was read.ReplicaChannel) error {
	return s.r.await(ctx, func() (bool, error) {
		ch, err := s.node.channel(ctx, was.Name)
		if err != nil {
			return false, err
		}
		moved := ch.Status.Log != was.Status.Log || ch.Status.Pos != was.Status.Pos
		switch e := ch.Status.SQL; {
		case e.Text != "" && e.GTID == was.Status.SQL.GTID && !moved:
			return false, fmt.Errorf("%w: %s stands at the same place again: %s", ErrSurprise, s.node.name, e.Text)
		case e.Text != "":
			s.After = "it stopped again, at another transaction: " + e.Text
			return true, nil
		case ch.SQLRunning && moved:
			s.After = "it applies"
			return true, nil
		}
		return false, nil
	}, func() string { return s.node.name + " does not go on" })
}
