package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/semisync"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Turn is a plan that switches it on or off.
type Turn struct {
	Plan change.Plan
	// Lines are, by server, what has to stand in its option file, because it does not keep settings itself.
	Lines []Lines
	Notes []string

	g         *Group
	undo      []Statement                         // of what was done, the last first
	before    map[int]func(context.Context) error // notes in undo how to go back from a step, before that is done: it may be done though it is interrupted
	takesBack bool                                // what was set on the primary is taken back when it fails
}

// Lines are lines for the option file of a server.
type Lines struct {
	Server string   `json:"server"`
	Lines  []string `json:"lines"` // each a setting
}

// Statement is one for a server.
type Statement struct {
	Server    string `json:"server"`
	Statement string `json:"statement"`
}

// settle is how long replicas have to connect again, and the primary to be in force.
const settle = 30 * time.Second

// On plans to switch it on: what is needed on the primary first, so that replicas find it; then the replicas; and the primary's waiting at the end,
// when enough of them can acknowledge.
func (g *Group) On() (*Turn, error) {
	s := g.Facts.Source
	count := max(1, s.Count)
	if g.o.Count > 0 {
		count = int64(g.o.Count)
	}
	if err := g.Missing(); err != nil {
		return nil, err
	}
	switch {
	case s.Names.Count == "" && count > 1:
		return nil, fmt.Errorf("%d acknowledgements: this server waits for one replica, never for more", count)
	case int64(len(g.replicas)) < count:
		return nil, fleet.WithRemedy(fmt.Errorf("%d replicas can be asked, %d have to acknowledge: writes would block", len(g.replicas), count), "name replicas with --replica")
	}
	t := &Turn{g: g, takesBack: true}
	primary := t.of(nameOf(g.o.Primary), g.primary)
	if !s.Loaded {
		primary.install(s.Names, false, g)
	}
	for i, r := range g.replicas {
		side := g.Facts.Replicas[i].Side
		if !r.moment.Receives() {
			return nil, fleet.WithRemedy(fmt.Errorf("%s is not connected to the primary: it could not acknowledge", r.name), "risso lag says why")
		}
		if r.purges() {
			return nil, fleet.WithRemedy(fmt.Errorf("%s does not apply: a new connection throws away what it has received", r.name), "risso lag says why")
		}
		one := t.of(r.name, r.c)
		if !side.Loaded {
			one.install(side.Names, true, g)
		}
		if name := side.Names.Prefix + "_enabled"; !side.Enabled || !g.keeps(r.c, name, "ON") {
			one.set(name, "ON", onOff(side.Enabled))
		}
		if !side.InForce || !s.Loaded {
			one.restart(r, "it acknowledges only on a connection that was made after that")
		}
		one.lines(side.Names.Prefix+"_enabled", "ON")
	}
	t.step(change.Step{What: "make sure that " + strconv.FormatInt(count, 10) + " of them can acknowledge", Where: "on " + primary.name, Why: "else writes would block", Do: func(ctx context.Context) error {
		return g.await(ctx, func(s read.SemiSyncSource) bool { return s.Clients >= count }, func(s read.SemiSyncSource) error {
			return fmt.Errorf("only %d replicas can acknowledge, %d are needed: the primary is as it was", s.Clients, count)
		})
	}})
	primary.waits(s, count)
	switch {
	case g.o.Moves && !s.Enabled:
		primary.now(s.Names.Prefix+"_enabled", "ON", "OFF")
	case !s.Enabled:
		primary.set(s.Names.Prefix+"_enabled", "ON", "OFF")
	}
	if !g.o.Moves {
		primary.lines(s.Names.Prefix+"_enabled", "ON")
	}
	if s.Enabled && (s.Waiting > 0 || len(t.Plan) > 1 || g.o.Moves) { // what a replica received in between it will not acknowledge
		t.step(change.Step{What: "tell the primary what its replicas have received already", Where: "on " + primary.name, Why: "what they received while they did not acknowledge they do not acknowledge later, and commits would wait for that", Do: func(ctx context.Context) error {
			_, err := Vouch(ctx, g.o.Primary, g.primary, g.places, g.settle)
			return err
		}})
	}
	t.step(change.Step{What: "make sure that it is in force", Where: "on " + primary.name, Why: "else the primary is put back as it was, so that nothing blocks", Do: func(ctx context.Context) error {
		return g.await(ctx, func(s read.SemiSyncSource) bool { return s.InForce && s.Clients >= count }, func(s read.SemiSyncSource) error {
			return fmt.Errorf("it is not in force: %d replicas can acknowledge, %d are needed", s.Clients, count)
		})
	}})
	g.bothSides(t, primary, count)
	if s.Names.Count != "" && count == 1 && len(g.replicas) > 1 {
		t.Notes = append(t.Notes, "one acknowledgement is enough for a commit: a failover has to find the replica that gave it; risso semisync on --acks 2 keeps each commit on two")
	}
	if len(g.replicas) == int(count) {
		t.Notes = append(t.Notes, "no replica is spare: while one of them is away, writes wait until it is back")
	}
	return t, nil
}

// waits plans how commits on a server wait, but not whether they do.
func (s *server) waits(is read.SemiSyncSource, count int64) {
	wanted := [][3]string{{"wait_point", "AFTER_SYNC", is.WaitPoint}, {is.Names.None, "ON", onOff(is.WaitNone)}, {"timeout", strconv.Itoa(semisync.Forever), strconv.FormatInt(is.Timeout, 10)}}
	if is.Names.Count != "" {
		wanted = append(wanted, [3]string{is.Names.Count, strconv.FormatInt(count, 10), strconv.FormatInt(is.Count, 10)})
	}
	defaults := map[string]string{"wait_point": "AFTER_SYNC", "timeout": "10000", is.Names.None: "ON", is.Names.Count: "1"} // of a plug-in that is just installed
	for _, w := range wanted {
		if !is.Loaded {
			w[2] = defaults[w[0]]
		}
		if w[2] != w[1] || !s.t.g.keeps(s.c, is.Names.Prefix+"_"+w[0], w[1]) {
			s.set(is.Names.Prefix+"_"+w[0], w[1], w[2])
		}
		s.lines(is.Names.Prefix+"_"+w[0], w[1])
	}
}

// bothSides plans what each of them needs to be on the other side one day, where it may.
func (g *Group) bothSides(t *Turn, primary *server, count int64) {
	if !g.o.Moves {
		return
	}
	if !g.own.Loaded {
		primary.install(g.own.Names, true, g)
	}
	if name := g.own.Names.Prefix + "_enabled"; !g.own.Enabled || !g.keeps(g.primary, name, "ON") {
		primary.set(name, "ON", onOff(g.own.Enabled))
	}
	primary.forget(g.Facts.Source.Names.Prefix + "_enabled")
	primary.lines(g.own.Names.Prefix+"_enabled", "ON")
	for _, r := range g.replicas {
		one := t.of(r.name, r.c)
		if !r.source.Loaded {
			one.install(r.source.Names, true, g)
		}
		one.waits(r.source, count)
		one.forget(r.source.Names.Prefix + "_enabled")
	}
	t.Notes = append(t.Notes, g.Facts.Source.Names.Prefix+"_enabled is neither kept nor for an option file: with it a member that starts as a replica would not apply, as its commits wait for replicas that it does not have; "+
		"risso serve --failover auto sets it on the primary before that takes writes again")
}

// purges reports whether the replica throws its relay logs away when it stops and starts receiving: a MariaDB does that with GTIDs, when nothing applies.
func (r *replica) purges() bool {
	return r.c.Server.GTIDsByDomain() && r.moment.GTID && !r.moment.Applies()
}

func onOff(is bool) string {
	if is {
		return "ON"
	}
	return "OFF"
}

// Off plans to switch it off: the primary first, whose waiting commits go on at once.
func (g *Group) Off() (*Turn, error) {
	t := &Turn{g: g}
	s := g.Facts.Source
	primary := t.of(nameOf(g.o.Primary), g.primary)
	if s.Enabled {
		primary.set(s.Names.Prefix+"_enabled", "OFF", "ON")
	}
	if s.Loaded {
		primary.lines(s.Names.Prefix+"_enabled", "OFF")
	}
	for i, r := range g.replicas {
		side := g.Facts.Replicas[i].Side
		one := t.of(r.name, r.c)
		if side.Enabled {
			one.set(side.Names.Prefix+"_enabled", "OFF", "ON")
			switch {
			case r.purges():
				t.Notes = append(t.Notes, r.name+" goes on acknowledging until it connects anew: it does not apply, and would throw away what it has received")
			case r.moment.Receives():
				one.restart(r, "until then it goes on acknowledging")
			}
		}
		if side.Loaded {
			one.lines(side.Names.Prefix+"_enabled", "OFF")
		}
	}
	return t, nil
}

// notes lets a function run before the step that is planned next.
func (t *Turn) notes(f func(context.Context) error) {
	if t.before == nil {
		t.before = map[int]func(context.Context) error{}
	}
	t.before[len(t.Plan)] = f
}

func (t *Turn) step(s change.Step) { t.Plan = append(t.Plan, s) }

// server plans what is done on one server.
type server struct {
	t    *Turn
	name string
	c    *mysql.Conn
}

func (t *Turn) of(name string, c *mysql.Conn) *server { return &server{t, name, c} }

// set plans a setting, and how it was.
func (s *server) set(name, value, was string) {
	statement := s.c.Server.SetLasting(name, value)
	s.t.notes(func(ctx context.Context) error {
		if was == "" {
			return nil
		}
		back := s.c.Server.SetLasting(name, was) // if what is kept is not shown
		if kept, is, err := mysql.KeptSetting(ctx, s.c, name); err == nil {
			back = s.c.Server.TakeBack(name, was, kept, is)
		} else if !mysql.Answered(err) {
			return fmt.Errorf("ask %s what it keeps: %w", s.name, err)
		}
		s.t.undo = slices.Insert(s.t.undo, 0, Statement{s.name, back})
		return nil
	})
	s.run(statement)
}

// now plans a setting that a server is not to keep.
func (s *server) now(name, value, was string) {
	statement := "SET GLOBAL " + name + " = " + value
	s.t.notes(func(context.Context) error {
		s.t.undo = slices.Insert(s.t.undo, 0, Statement{s.name, "SET GLOBAL " + name + " = " + was})
		return nil
	})
	s.run(statement)
}

// run plans a statement.
func (s *server) run(statement string) {
	s.t.step(change.Step{What: statement, Where: "on " + s.name, Do: func(ctx context.Context) error {
		if err := s.c.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s on %s: %w", statement, s.name, err)
		}
		return nil
	}})
}

// forget plans that a server does not keep a setting for its next start any more.
func (s *server) forget(name string) {
	was := s.t.g.kept[s.c][name]
	if was == "" || was == "OFF" {
		return
	}
	s.t.notes(func(context.Context) error {
		s.t.undo = slices.Insert(s.t.undo, 0, Statement{s.name, s.c.Server.SetForStart(name, was)})
		return nil
	})
	s.run(s.c.Server.ForgetForStart(name))
}

// lines notes what has to stand in the option file of a server that does not keep settings.
func (s *server) lines(name, value string) {
	if s.c.Server.KeepsSettings() {
		return
	}
	line := name + " = " + value
	for i := range s.t.Lines {
		if s.t.Lines[i].Server == s.name {
			s.t.Lines[i].Lines = append(s.t.Lines[i].Lines, line)
			return
		}
	}
	s.t.Lines = append(s.t.Lines, Lines{s.name, []string{line}})
}

// restart plans a new connection of a replica to the primary.
func (s *server) restart(r *replica, why string) {
	stop, start, _ := strings.Cut(s.c.Server.RestartReceiver(r.moment.Name), "; ")
	if r.several && r.moment.Name == "" { // its other channels are left alone
		stop, start = s.c.Server.DefaultChannel(stop), s.c.Server.DefaultChannel(start)
	}
	statements := stop + "; " + start
	s.t.notes(func(context.Context) error {
		at := 0 // it belongs behind what it makes hold
		for at < len(s.t.undo) && s.t.undo[at].Server == s.name {
			at++
		}
		s.t.undo = slices.Insert(s.t.undo, at, Statement{s.name, statements})
		return nil
	})
	s.t.step(change.Step{What: statements, Where: "on " + s.name, Why: why, Do: func(ctx context.Context) error {
		err := s.c.Exec(ctx, stop)
		if mysql.Answered(err) {
			return fmt.Errorf("%s on %s: %w", stop, s.name, err)
		}
		if serr := s.start(ctx, r, start, err != nil); serr != nil { // whatever happens: it would not replicate
			err = errors.Join(err, fleet.WithRemedy(fmt.Errorf("%s on %s: %w", start, s.name, serr), start+" on "+s.name+", which does not receive"))
		}
		return err
	}})
}

// start lets a replica receive again, regardless of ctx; cut says that its connection ended, in which a STOP may still run.
func (s *server) start(ctx context.Context, r *replica, statement string, cut bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if !cut {
		if err := s.c.Exec(ctx, statement); err == nil || mysql.Answered(err) {
			return err
		}
	}
	c, err := again(ctx, r.target, r.session)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Exec(ctx, statement)
}

// install plans a plug-in. It stays when the rest is undone: switched off it does nothing. A server with super_read_only refuses that, though nothing is replicated: for that moment it is lifted, and put back
// whatever happens.
func (s *server) install(names mysql.SemiSyncSide, onReplica bool, g *Group) {
	statement := mysql.InstallPlugin(names.Plugin, names.Library)
	why := ""
	if onReplica {
		why = "super_read_only is off for that moment, where it is on"
	}
	s.t.step(change.Step{What: statement, Where: "on " + s.name, Why: why, Do: func(ctx context.Context) error {
		err := g.lifted(ctx, s, func() error { return s.c.Exec(ctx, statement) })
		if mysql.ClassOf(err) == mysql.ClassPrivilege {
			return fleet.WithRemedy(fmt.Errorf("%s on %s: %w", statement, s.name, err), "GRANT INSERT ON mysql.plugin TO "+s.c.Server.QuotedAccount())
		}
		if err != nil {
			return fleet.WithRemedy(fmt.Errorf("%s on %s: %w", statement, s.name, err), "the file has to be in the server's plugin_dir: it comes with the server's packages")
		}
		return nil
	}})
}

// guarded is the variable that keeps even administrators from writing.
const guarded = "super_read_only"

// lent is super_read_only, which is lifted for a moment.
func lent() change.Kind[string] {
	return change.Kind[string]{Name: "semisync-guard", Busy: errors.New("another risso semisync changes this server"), Within: time.Minute,
		Back: func(ctx context.Context, c *mysql.Conn, old string) error {
			return c.Exec(ctx, "SET GLOBAL /* risso: semisync on */ "+guarded+" = ON")
		},
		Final: mysql.Answered}
}

// lifted runs f while a server takes changes of administrators.
func (g *Group) lifted(ctx context.Context, s *server, f func() error) error {
	set, err := read.Variables(ctx, s.c, []string{guarded})
	if err != nil || set[guarded] != "ON" {
		return errors.Join(err, f())
	}
	started, err := read.Started(ctx, s.c)
	if err != nil {
		return err
	}
	target := g.o.Primary
	for _, r := range g.replicas {
		if r.c == s.c {
			target = r.target
		}
	}
	loan, err := lent().Borrow(g.o.State, target, s.c.Server, started, "ON")
	if err != nil {
		return err
	}
	err = s.c.Exec(ctx, "SET GLOBAL /* risso: semisync on */ "+guarded+" = OFF")
	if err == nil {
		err = f()
	}
	back, rerr := loan.Return(ctx, s.c)
	if back != nil && back != s.c {
		_ = back.Close()
	}
	return errors.Join(err, rerr)
}

// await waits until the primary is so.
func (g *Group) await(ctx context.Context, is func(read.SemiSyncSource) bool, not func(read.SemiSyncSource) error) error {
	for end := time.Now().Add(g.settle); ; {
		s, err := read.SemiSyncNow(ctx, g.primary)
		switch {
		case err != nil:
			return fmt.Errorf("ask the primary for semi-sync: %w", err)
		case is(s.Source):
			return nil
		case time.Now().After(end):
			return not(s.Source)
		}
		if err := delay.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}
