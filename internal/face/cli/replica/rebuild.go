package replica

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/avail/repoint"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/store/blob"
)

// rebuild is risso replica rebuild.
type rebuild struct {
	command
	flags.Throttle
	repository
	from, compare string
	threads       int
	anew          bool

	clones  bool // by CLONE
	q       repoint.RebuildQuestion
	donor   *topology.Node
	planned dump.Plan // what the donor has
	answer  RebuildAnswer
}

func newRebuild(s screen.Streams) *cobra.Command {
	c := &rebuild{}
	cmd := &cobra.Command{
		Use:   "rebuild REPLICA [--from SERVER | --from clone | --from backup --repository PLACE]",
		Short: "Give a broken or errant replica all of its data anew",
		Long: `Replaces all that a replica has by a copy of another server: its source, or a replica of that one
(--from; by default one that is level and has nothing of its own). Rows and definitions are read and
loaded over the network: on neither machine is anything needed but a login. What only the replica has
is lost; the plan names it.

--from clone lets MySQL (8.0.17 and later) replace the replica's files itself (CLONE), by default from
the source or the same replica as without it; clone=NAME names another. The replica restarts: if
nothing starts it again, that is done by hand meanwhile.

--from backup takes the newest logical backup of the source, or of a replica of it, that a drill has
proven. Its source's binary logs lead on from it; where they no longer do, it is rolled forward by
those that are mirrored in the same repository.

Until the copy is whole on this machine, the replica is left alone. Then it is made read-only and
pointed at a name that leads nowhere, loses its data, is loaded, gets the GTIDs of the copy, and
follows its source again, by the same account and settings. At the end rows and definitions are
compared with the source's (--compare), and it is looked at for transactions of its own.

If it is cut off before data are dropped, all is as before; after that the replica stays read-only
and does not replicate, and the same command goes on. The account needs what risso backup needs on
the server that is copied, and all privileges on the replica. See docs/replica-rebuild.md.

` + fault.Help,
		Example: `  risso replica rebuild db3:3306 --dsn 'risso@tcp(db1:3306)/' --dry-run
  risso replica rebuild db3:3306 --dsn 'risso@tcp(db1:3306)/' --yes
  risso replica rebuild db3:3306 --from db2:3306 --dsn 'risso@tcp(db1:3306)/' --max-rate 50MB
  risso replica rebuild db3:3306 --from clone --dsn 'risso@tcp(db1:3306)/' --wait 10m
  risso replica rebuild db3:3306 --from backup --repository /backups/db1 --dsn 'risso@tcp(db1:3306)/'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	c.bind(cmd, s)
	fl := cmd.Flags()
	fl.StringVar(&c.from, "from", "", "the server whose data it gets, or clone, clone=SERVER or backup; default: a fit replica of the same source, or the source")
	fl.StringVar(&c.place, "repository", "", "with --from backup: the place of the backups: "+blob.Forms)
	fl.StringVar(&c.backup, "backup", "", "with --from backup: ID of the backup (default: the newest that a drill has proven)")
	fl.StringVar(&c.identity, "identity", "", "file with the age identity that opens an encrypted repository")
	flags.BindTrust(&c.Trust, cmd)
	fl.IntVar(&c.threads, "threads", min(runtime.NumCPU(), 8), "sessions that read, and load")
	fl.BoolVar(&c.anew, "anew", false, "do not go on with what an earlier run has copied and loaded: copy again")
	fl.StringVar(&c.compare, "compare", "all", "what is compared with the source at the end: all, sample (up to 20 tables) or none")
	c.Throttle.Bind(cmd)
	return cmd
}

func (c *rebuild) run(ctx context.Context, name string) error {
	switch {
	case !slices.Contains([]string{"all", "sample", "none"}, c.compare):
		return fault.Usagef("--compare %q: all, sample or none", c.compare)
	case c.threads < 1 || c.threads > 64:
		return fault.Usagef("--threads %d: 1 to 64", c.threads)
	}
	if _, err := c.Limits(c.threads); err != nil {
		return err
	}
	if err := c.ask(ctx, name); err != nil {
		return err
	}
	f, way, done, err := c.choose(ctx)
	if err != nil {
		return err
	}
	defer done()
	b, err := c.r.PrepareRebuild(c.q, c.from, way)
	if err != nil {
		return err
	}
	c.clones = strings.HasPrefix(c.from, fromClone+"=")
	if b.Goes == "" && c.donor != nil {
		if err := c.room(ctx, f); err != nil {
			return err
		}
	}
	c.tell(ctx, b, f)
	if c.dryRun {
		return c.command.answer(c.answer, nil)
	}
	if err := c.agreed(b.Replica.Name); err != nil {
		return err
	}
	f.line = screen.NewProgress(c.Err)
	defer f.line.End()
	if c.donor != nil {
		gate, err := c.Gate(ctx, c.threads+1, f.donor)
		if err != nil {
			return err
		}
		defer gate.Close()
		f.gate = gate
	}
	err = b.Do(ctx)
	f.line.End()
	c.answer.Done, c.answer.Journal = err == nil, b.Journal
	if err != nil {
		c.answer.Error = err.Error()
		return c.command.answer(c.answer, err)
	}
	fmt.Fprintf(c.told().Out, "%s is rebuilt: it replicates from %s, and has nothing of its own\njournal: %s\n", oneline.Of(b.Replica.Name), oneline.Of(b.Source.Name), b.Journal)
	err = c.verify(ctx, b) // it adds to the answer
	return c.command.answer(c.answer, err)
}

// ask finds the servers, what an earlier run left, and what the topology does not tell.
func (c *rebuild) ask(ctx context.Context, name string) error {
	t, i, err := c.found(ctx, name)
	if err != nil {
		return err
	}
	left, err := c.r.LeftRebuild(ctx, &t.Nodes[i])
	if err != nil {
		return err
	}
	source := ""
	if left != nil {
		source = left.Source
	} else if len(t.Nodes[i].Channels) == 1 {
		source, _ = repoint.Attached(t.Nodes[i].Channels[0].Source)
	}
	if source != "" && t.At(i, source) < 0 { // a replica that points nowhere does not lead there
		c.starts = append(c.starts, topology.Start{Address: source})
		if t, err = c.look(ctx); err != nil {
			return err
		}
		if i, err = node(t, name); err != nil {
			return err
		}
	}
	if left != nil && c.anew {
		left.Copy = nil
	}
	c.q = repoint.RebuildQuestion{Question: repoint.Question{Topology: t, Replica: i, Wait: c.wait}, Donor: -1, Left: left}
	return c.q.Ask(ctx, c.r)
}

// choose finds where the data come from, and how they come.
func (c *rebuild) choose(ctx context.Context) (*copier, repoint.Filler, func(), error) {
	t, nothing := c.q.Topology, func() {}
	why := "it was asked for"
	if left := c.q.Left; c.from == "" && left != nil && (t.Find(left.From) >= 0 || left.From == fromBackup || strings.HasPrefix(left.From, fromClone+"=")) {
		c.from, why = left.From, "the earlier run took it"
	}
	named, clones := strings.CutPrefix(c.from, fromClone)
	if clones = clones && (named == "" || strings.HasPrefix(named, "=")); clones {
		c.from = strings.TrimPrefix(named, "=")
	}
	v := repoint.JudgeRebuild(c.q)
	f := &copier{name: t.Nodes[c.q.Replica].Name, node: c.targetOf(&t.Nodes[c.q.Replica]), threads: c.threads, logs: t.Nodes[c.q.Replica].Log.On, say: c.r.Say}
	f.dir = folder(c.state, f.name)
	switch {
	case v.From < 0:
		return nil, nil, nil, repoint.Refused("rebuild "+f.name, v.Refused)
	case c.from == fromBackup:
		f.source = c.targetOf(&t.Nodes[v.From])
		r, done, err := c.restorer(ctx, f, v)
		if err == nil && v.Channel.GTID {
			if err = beyondSource(ctx, f.source, *c.q.Copy); err != nil {
				done()
			}
		}
		return f, r, done, err
	case c.repository.place != "" || c.backup != "":
		return nil, nil, nil, fault.Usagef("--repository and --backup are for --from backup")
	case c.from == "":
		c.q.Donor, why = repoint.ChooseDonor(c.q)
	default:
		var err error
		if c.q.Donor, err = node(t, c.from); err != nil {
			return nil, nil, nil, err
		}
	}
	c.donor = &t.Nodes[c.q.Donor]
	c.from, c.answer.Because = c.donor.Name, why
	f.from, f.donor, f.source = c.from, c.targetOf(c.donor), c.targetOf(&t.Nodes[v.From])
	if clones {
		c.from = fromClone + "=" + c.from
		if refused := repoint.JudgeRebuild(c.q).Refused; len(refused) > 0 {
			return nil, nil, nil, repoint.Refused("rebuild "+f.name, refused)
		}
		k, err := c.cloner(ctx, f, v)
		return f, k, nothing, err
	}
	if left := c.q.Left; left != nil && left.Copy != nil && left.From == c.from {
		c.takeUp(ctx, f, left)
	}
	return f, f, nothing, nil
}

// takeUp takes the copy of an earlier run, unless it is gone, or the source's logs do not lead on from it any more.
func (c *rebuild) takeUp(ctx context.Context, f *copier, left *repoint.Rebuilding) {
	anew := func(why string) {
		c.r.Say("the copy of the earlier run is not used: " + why)
		left.Copy, c.q.Copy = nil, nil
	}
	_, done, err := f.open(ctx)
	if err != nil {
		anew(err.Error())
		return
	}
	done()
	c.q.Copy = left.Copy
	for _, r := range repoint.JudgeRebuild(c.q).Refused {
		if r.Code == "purged" {
			anew(r.Why)
		}
	}
}

// targetOf is how a node is asked, if it was seen.
func (c *rebuild) targetOf(n *topology.Node) mysql.Target {
	if len(n.Addresses) == 0 {
		return mysql.Target{}
	}
	return c.r.Target(n.Addresses[0])
}

// room looks at what there is to copy, and refuses a folder that cannot hold it.
func (c *rebuild) room(ctx context.Context, f *copier) error {
	var err error
	if c.planned, err = dump.MakePlan(ctx, dump.Options{Target: f.donor, Name: f.from, Threads: c.threads}); err != nil {
		return fmt.Errorf("%s: %w", f.from, err)
	}
	if c.clones {
		return nil
	}
	var st unix.Statfs_t
	at := c.state
	for err = unix.Statfs(at, &st); errors.Is(err, os.ErrNotExist) && filepath.Dir(at) != at; err = unix.Statfs(at, &st) {
		at = filepath.Dir(at) // it is made when it is needed
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", at, err)
	}
	if free := int64(st.Bavail) * st.Bsize; free < c.planned.Bytes {
		return fault.New(fault.Failed, "give another folder with --state", fmt.Errorf("%s has room for %s, and a copy of %s may need %s", c.state, digits.Bytes(free), f.from, digits.Bytes(c.planned.Bytes)))
	}
	return nil
}

// agreed asks for the name of the server that is about to lose its data.
func (c *rebuild) agreed(name string) error {
	if c.yes {
		return nil
	}
	if !screen.OnTerminal(c.Err) {
		return screen.Agreed(c.Streams, false) // it says how
	}
	fmt.Fprintf(c.Err, "%s loses all that it has. Type its name to go on: ", oneline.Of(name))
	line, _ := bufio.NewReader(c.In).ReadString('\n') // the end of the input is a no
	if strings.TrimSpace(line) != name {
		return fault.New(fault.Failed, "", errors.New("nothing was done"))
	}
	return nil
}
