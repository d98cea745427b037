package repoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// Copy is what a replica is filled with: the data of its source, or of another replica, at one moment.
type Copy struct {
	ID     string    `json:"id"`
	Words  string    `json:"words"` // "backup X of db1"
	Time   time.Time `json:"time"`
	GTIDs  string    `json:"gtids,omitempty"` // that it has
	State  string    `json:"state,omitempty"` // of a MariaDB: the last transaction of each server
	Log    string    `json:"log,omitempty"`   // its place in the binary log of the server that it is of
	Pos    int64     `json:"pos,omitempty"`
	Tables int64     `json:"tables"`
	Rows   int64     `json:"rows"`
	Bytes  int64     `json:"bytes"`
	// Settings are those of the replica's channel, where the copy replaces them, too.
	Settings *mysql.ChannelSettings `json:"settings,omitempty"`
	// Installed says that the donor got a plug-in for it, which is to go again.
	Installed bool `json:"installed,omitempty"`
}

// Filler brings a replica the data of another server. It is outside of this room, as it knows about backups.
type Filler interface {
	// Fetch gets a copy and leaves the replica alone; what an earlier run fetched and did not finish is gone afterwards.
	Fetch(ctx context.Context) (Copy, error)
	// Fetches is that in words.
	Fetches() change.Step
	// Checks make sure, before anything of the replica is gone, that it can be filled.
	Checks(copied func() *Copy) change.Plan
	// Fills replaces all that the replica has by a copy, with its GTIDs. Each step may be done again after it was cut off. What only then becomes known of the
	// copy is written into it.
	Fills(copied func() *Copy) change.Plan
	// Remove removes what Fetch left here.
	Remove() error
}

// Rebuilding is what the journal of a rebuild says. It is on disk before each step.
type Rebuilding struct {
	Server   string `json:"server"`
	Channel  string `json:"channel"`
	From     string `json:"from"`   // whose data it gets, as it was asked for
	Source   string `json:"source"` // that it replicated from, and will again, as the replica reaches it
	GTID     bool   `json:"gtid"`
	Log      string `json:"log,omitempty"` // without GTIDs: up to where it had applied what Source wrote
	Pos      int64  `json:"pos,omitempty"`
	Receives bool   `json:"receives"` // before
	Applies  bool   `json:"applies"`
	ReadOnly bool   `json:"read_only"`
	Super    bool   `json:"super_read_only"`
	At       int    `json:"at"`      // the step that was begun
	Step     string `json:"step"`    // what it is, by which another version of Risso knows whether it counts in the same way
	Marked   bool   `json:"marked"`  // it points nowhere, and is read-only
	Cleared  bool   `json:"cleared"` // what it had may be gone: there is no way back
	Copy     *Copy  `json:"copy,omitempty"`
}

// Rebuild is what will be done to one replica.
type Rebuild struct {
	RebuildVerdict
	Replica topology.Node
	Source  topology.Node
	Plan    change.Plan
	Goes    string // what it goes on with; "": it begins anew
	Journal string // file that says what was done, and stays

	r      *Repointer
	f      Filler
	state  Rebuilding
	first  int // the step from which on there is no way back
	filled int // the step after the last that fills
	move   *Move
	loan   *change.Loan[Rebuilding]
	gone   bool               // an earlier run has cleared it
	took   map[string]float64 // seconds of what takes time
}

// rebuilding is the journal of a replica that is rebuilt.
func (r *Repointer) rebuilding() change.Kind[Rebuilding] {
	return change.Kind[Rebuilding]{
		Name: "replica-rebuild", Command: "risso replica rebuild again", Busy: ErrBusy, Within: r.Wait + stopTime, Stays: true, Final: final,
		Back: func(ctx context.Context, c *mysql.Conn, old Rebuilding) error {
			return r.unmark(ctx, &server{name: old.Server, c: c}, old)
		},
	}
}

// LeftRebuild is what a rebuild left that was cut off; nil: nothing. It wraps ErrBusy if one is at work.
func (r *Repointer) LeftRebuild(ctx context.Context, n *topology.Node) (*Rebuilding, error) {
	if !n.Seen {
		return nil, nil
	}
	if err := r.unmoved(ctx, r.Target(n.Addresses[0])); err != nil {
		return nil, err
	}
	left, err := r.rebuilding().Restore(ctx, r.Target(n.Addresses[0]), r.Dir, true)
	switch {
	case err != nil:
		return nil, err
	case left != nil:
		return &left.Old, nil
	case len(n.Channels) == 1: // it was begun from elsewhere
		ch := n.Channels[0]
		if was, is := Rebuilt(ch.Source); is {
			return &Rebuilding{Server: n.Name, Channel: ch.Name, Source: was, GTID: ch.GTID, Receives: true, Applies: true, ReadOnly: true, Marked: true, Cleared: true}, nil
		}
	}
	return nil, nil
}

// Ask asks what the topology does not tell.
func (q *RebuildQuestion) Ask(ctx context.Context, r *Repointer) error {
	j := &judge{Question: q.Question, replica: &q.Topology.Nodes[q.Replica]}
	if !j.source(q.Left) {
		return nil
	}
	node, err := r.connect(ctx, j.replica)
	if err != nil {
		return err
	}
	defer node.c.Close()
	rights, err := node.c.Rights(ctx)
	if err != nil {
		return err
	}
	q.Lacks = strings.Join(node.c.Server.Missing(rights, "", mysql.JobRestore), "; ")
	m := &Move{r: r, Replica: *j.replica, Below: *j.below}
	return r.ask(ctx, &q.Question, m)
}

// PrepareRebuild judges and makes the plan. Nothing is changed. It wraps ErrRefused if it cannot be done.
func (r *Repointer) PrepareRebuild(q RebuildQuestion, from string, f Filler) (*Rebuild, error) {
	b := &Rebuild{r: r, f: f, Replica: q.Topology.Nodes[q.Replica], took: map[string]float64{}}
	if b.RebuildVerdict = JudgeRebuild(q); len(b.Refused) > 0 {
		return nil, Refused("rebuild "+b.Replica.Name, b.Refused)
	}
	b.Source = q.Topology.Nodes[b.From]
	ch := b.Channel
	b.state = Rebuilding{Server: b.Replica.Name, Channel: ch.Name, Source: ch.Source, GTID: ch.GTID, Receives: ch.IORunning != "No", Applies: ch.Applying(),
		ReadOnly: b.Replica.Writes.ReadOnly, Super: b.Replica.Writes.Super}
	if left := q.Left; left != nil {
		b.state = *left
		if left.Copy != nil && left.From == from {
			b.Goes = left.Copy.Words
		} else {
			b.state.At, b.state.Copy = 0, nil
		}
	}
	b.state.From = from
	b.move = &Move{r: r, Verdict: b.Verdict, Replica: b.Replica, Below: b.Source}
	b.plan()
	if at := b.state.At; at > 0 && (at >= len(b.Plan) || b.Plan[at].What != b.state.Step) {
		b.state.At, b.state.Copy, b.Goes = 0, nil, ""
	}
	return b, nil
}

// plan makes the steps. How many there are depends on nothing but how the replica is filled: the journal counts them.
func (b *Rebuild) plan() {
	ch, on := b.Channel, "on "+b.Replica.Name
	w := words{mysql.Of(b.Replica.Server), ch.Name, false, ch.Beat}
	step := func(what, where, why string, do func(context.Context) error) {
		b.Plan = append(b.Plan, change.Step{What: what, Where: where, Why: why, Do: do})
	}
	fetch := b.f.Fetches()
	fetch.Do = b.timed("fetch", b.fetch)
	b.Plan = append(b.Plan, fetch)
	step(w.stopBoth(), on, "", func(ctx context.Context) error { return b.move.node.do(ctx, w.stopBoth()) })
	host, port := split(ch.Source)
	nowhere := mysql.Pointing{Host: RebuildHost(host), Port: port}
	step("SET GLOBAL read_only = ON", on, "until it is rebuilt, also if that is cut off", b.close)
	step(w.point(nowhere), on, "a name that leads nowhere, so that it does not start after a restart; account, TLS and all else stay", func(ctx context.Context) error { return b.mark(ctx, w, nowhere) })
	b.Plan = append(b.Plan, b.f.Checks(func() *Copy { return b.state.Copy })...)
	b.first = len(b.Plan)
	for _, s := range b.f.Fills(func() *Copy { return b.state.Copy }) {
		s.Do = b.timed("fill", s.Do)
		b.Plan = append(b.Plan, s)
	}
	b.filled = len(b.Plan)
	why := "it finds its position by GTID"
	if !ch.GTID {
		why = "from the place of the copy in its log"
	}
	step("point", b.Replica.Name+" at "+ch.Source+" again", why, func(ctx context.Context) error {
		p := mysql.Pointing{Host: host, Port: port}
		if !ch.GTID {
			p.Log, p.Pos = b.state.Copy.Log, b.state.Copy.Pos
		}
		if err := b.move.node.do(ctx, w.stopBoth()); err != nil { // an earlier run may have started it
			return err
		}
		now, err := b.move.node.channel(ctx, ch.Name) // as it is set since, by a copy that brought the channel of another server, too
		if err != nil {
			return err
		}
		return b.move.node.do(ctx, b.move.node.wordsOf(now).point(p))
	})
	step(w.start(mysql.Receiver), on, "and wait until it receives from "+b.Source.Name, func(ctx context.Context) error { return b.move.receive(ctx) })
	step(w.start(mysql.Applier), on, "", func(ctx context.Context) error { return b.move.apply(ctx) })
	step("check", "that "+b.Replica.Name+" comes as far as "+b.Source.Name+" is, and has nothing of its own", "", func(ctx context.Context) error { return b.move.check(ctx) })
	step("put back", "read_only "+on, "as it was", func(ctx context.Context) error { return b.r.writes(ctx, b.move.node, b.state) })
}

// timed notes how long a step takes.
func (b *Rebuild) timed(name string, do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		began := time.Now()
		defer func() { b.took[name] += time.Since(began).Seconds() }()
		return do(ctx)
	}
}

func (b *Rebuild) fetch(ctx context.Context) error {
	c, err := b.f.Fetch(ctx)
	if err == nil {
		b.state.Copy = &c
	}
	return err
}

// close keeps everybody from writing but those who may all the same, whom the load is one of.
func (b *Rebuild) close(ctx context.Context) error {
	if v := b.move.node.c.Server.ReadOnlyVariable(); v != "read_only" {
		if err := b.move.node.do(ctx, "SET GLOBAL "+v+" = OFF"); err != nil {
			return err
		}
	}
	return b.move.node.do(ctx, "SET GLOBAL read_only = ON")
}

// mark lets the channel lead nowhere. What it had is on disk before.
func (b *Rebuild) mark(ctx context.Context, w words, nowhere mysql.Pointing) error {
	ch, err := b.move.node.channel(ctx, b.Channel.Name)
	if err != nil {
		return err
	}
	if _, is := Rebuilt(ch.Status.Source); is {
		return nil
	}
	b.state.Log, b.state.Pos = ch.Status.Log, ch.Status.Pos
	if err := b.loan.Note(b.state); err != nil {
		return err
	}
	if !ch.GTID { // without GTIDs a server takes a channel that leads elsewhere to begin at the beginning
		nowhere.Log, nowhere.Pos = ch.Status.Log, ch.Status.Pos
	}
	return b.move.node.do(ctx, w.point(nowhere))
}

// writes puts back who may write.
func (r *Repointer) writes(ctx context.Context, s *server, old Rebuilding) error {
	value := map[bool]string{true: "ON", false: "OFF"}
	if err := s.do(ctx, "SET GLOBAL read_only = "+value[old.ReadOnly]); err != nil {
		return err
	}
	if v := s.c.Server.ReadOnlyVariable(); v != "read_only" && old.Super {
		return s.do(ctx, "SET GLOBAL "+v+" = ON")
	}
	return nil
}

// unmark puts a replica back whose data are still there.
func (r *Repointer) unmark(ctx context.Context, s *server, old Rebuilding) error {
	ch, err := s.channel(ctx, old.Channel)
	if err != nil {
		return err
	}
	w := s.wordsOf(ch)
	if _, is := Rebuilt(ch.Status.Source); is {
		if err := s.do(ctx, w.stopBoth()); err != nil {
			return err
		}
		host, port := split(old.Source)
		p := mysql.Pointing{Host: host, Port: port}
		if !old.GTID {
			p.Log, p.Pos = old.Log, old.Pos
		}
		if err := s.do(ctx, w.point(p)); err != nil {
			return err
		}
	}
	if old.Receives {
		if err := s.do(ctx, w.start(mysql.Receiver)); err != nil {
			return err
		}
	}
	if old.Applies {
		if err := s.do(ctx, w.start(mysql.Applier)); err != nil {
			return err
		}
	}
	return r.writes(ctx, s, old)
}

// Do carries it out. What goes wrong before the data of the replica are dropped is taken back; after that the replica stays marked, and another run goes on.
func (b *Rebuild) Do(ctx context.Context) error {
	begin := map[string]any{"rebuild": b.Replica.Name, "channel": b.Channel.Name, "source": b.Channel.Source, "from": b.state.From, "goes_on": b.Goes, "plan": b.Plan.Words(), "loses": b.Loses}
	end := func() map[string]any {
		return map[string]any{"rebuild": b.Replica.Name, "copy": b.state.Copy, "seconds": b.took, "went_on": b.Goes != ""}
	}
	return b.r.recorded(&b.Journal, begin, end, func() error { return b.run(ctx) })
}

func (b *Rebuild) run(ctx context.Context) (err error) {
	if b.move.node, err = b.r.connect(ctx, &b.Replica); err != nil {
		return err
	}
	defer func() { b.move.node.c.Close() }()
	if b.move.to, err = b.r.connect(ctx, &b.Source); err != nil {
		return err
	}
	defer func() { b.move.to.c.Close() }()
	if err := b.borrow(ctx); err != nil {
		return err
	}
	b.gone = b.state.Cleared
	if b.state.Cleared && b.state.At > 0 { // it may have been restarted, and be as its option file says, with threads that look for a source
		stop := words{mysql.Of(b.Replica.Server), b.Channel.Name, false, 0}.stopBoth()
		if err := errors.Join(b.close(ctx), b.move.node.do(ctx, stop)); err != nil {
			return b.end(ctx, err)
		}
	}
	_, err = change.Execute(ctx, b.Plan, change.Log{
		Did: b.did(),
		Before: func(i int, s change.Step) error {
			if b.r.Say != nil {
				b.r.Say(s.What + " " + s.Where)
			}
			b.state.At, b.state.Step, b.state.Marked = i, s.What, b.state.Marked || i > 0
			if err := b.loan.Note(b.state); err != nil || i == 0 {
				return err
			}
			if err := b.awake(ctx); err != nil || b.state.Cleared || i < b.first { // a fetch or a load takes long: a server ends sessions that say nothing
				return err
			}
			b.state.Cleared = true
			return b.loan.Note(b.state)
		},
	})
	return b.end(ctx, err)
}

// did says of the steps, in their order, which an earlier run had done.
func (b *Rebuild) did() func(change.Step) bool {
	at, i := b.state.At, -1
	return func(change.Step) bool {
		i++
		return i < at
	}
}

// borrow takes the journal, that of an earlier run if there is one.
func (b *Rebuild) borrow(ctx context.Context) (err error) {
	target, k := b.r.Target(b.Replica.Addresses[0]), b.r.rebuilding()
	if b.loan, err = k.Take(b.r.Dir, target, b.move.node.c.Server); err != nil {
		return err
	}
	if b.loan != nil {
		return b.loan.Note(b.state)
	}
	ch, err := b.move.node.channel(ctx, b.Channel.Name)
	if err != nil {
		return err
	}
	if was, is := Rebuilt(ch.Status.Source); ch.Status.Source != b.Channel.Source && (!is || was != b.Channel.Source) {
		if a, detached := Attached(ch.Status.Source); !detached || a != b.Channel.Source {
			return fmt.Errorf("%w: %s replicates from %s now, not from %s: make the plan again", ErrSurprise, b.Replica.Name, ch.Status.Source, b.Channel.Source)
		}
	}
	b.loan, err = k.Borrow(b.r.Dir, target, b.move.node.c.Server, 0, b.state)
	return err
}

// awake makes sure of both connections, and makes them anew if they are gone.
func (b *Rebuild) awake(ctx context.Context) error {
	for s, n := range map[*server]*topology.Node{b.move.node: &b.Replica, b.move.to: &b.Source} {
		if s.c.Exec(ctx, "DO /* risso: still here */ 0") == nil {
			continue
		}
		s.c.Close()
		err := b.r.await(ctx, func() (bool, error) {
			fresh, err := b.r.connect(ctx, n)
			if err == nil {
				s.c = fresh.c
				return true, nil
			}
			if mysql.ErrorNumber(err) != 0 { // it answers
				return false, err
			}
			return false, delay.For(ctx, time.Second)
		}, func() string { return n.Name + " does not answer" })
		if err != nil {
			return err
		}
	}
	return nil
}

// end ends the journal, or leaves it for another run.
func (b *Rebuild) end(ctx context.Context, err error) error {
	name := b.Replica.Name
	if err == nil {
		return errors.Join(b.f.Remove(), b.loan.Done())
	}
	if errors.Is(err, ErrIntact) {
		b.state.Cleared = b.gone
	}
	if b.state.Cleared {
		b.loan.Leave()
		return fmt.Errorf("%w; %s is not usable: it is read-only and %s; the same command goes on", err, name, b.stands())
	}
	if !b.state.Marked {
		return fmt.Errorf("%w; %s was not touched", errors.Join(err, b.f.Remove(), b.loan.Done()), name)
	}
	c, back := b.loan.Return(ctx, b.move.node.c)
	if c != nil {
		b.move.node.c = c
	}
	if back != nil {
		return fmt.Errorf("%w; %s could not be put back as it was: %w; its data are all there; the same command goes on, and the journal is in %s", err, name, back, b.r.Dir)
	}
	return fmt.Errorf("%w; %s has all of its data, and replicates from %s as before", errors.Join(err, b.f.Remove()), name, b.Channel.Source)
}

// stands says how a replica is left.
func (b *Rebuild) stands() string {
	if b.state.At > b.filled {
		return "has a whole copy, but did not come as far as its source"
	}
	return "points nowhere, and may have a part of its data only"
}

// A rebuild of fewer bytes than telling says nothing of how long another one takes; fixed are seconds that each takes at least.
const (
	telling = 1 << 20
	fixed   = 5
)

// RebuildLasts is about how long a rebuild of so many bytes takes, by the last one that was done from here without a break; "": there was none.
func (r *Repointer) RebuildLasts(bytes int64) (lasts string) {
	list, _ := filepath.Glob(filepath.Join(r.Dir, "replica-*.jsonl")) // the pattern is good
	for _, path := range list {                                       // by their names in the order of time
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		var end struct {
			Rebuild string             `json:"rebuild"`
			Done    bool               `json:"done"`
			WentOn  bool               `json:"went_on"`
			Copy    *Copy              `json:"copy"`
			Seconds map[string]float64 `json:"seconds"`
		}
		if json.Unmarshal([]byte(lines[len(lines)-1]), &end) != nil || end.Rebuild == "" || !end.Done || end.WentOn || end.Copy == nil || end.Copy.Bytes < telling {
			continue
		}
		if rate := float64(end.Copy.Bytes) / (end.Seconds["fetch"] + end.Seconds["fill"]); rate > 0 {
			lasts = digits.Age(fixed + float64(bytes)/rate)
		}
	}
	return lasts
}
