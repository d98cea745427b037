package replica

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/repoint"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/oneline"
	worker "github.com/rissodb/risso/internal/serve/rebuild"
	"github.com/rissodb/risso/internal/store/blob"
)

// rebuild is risso replica rebuild.
type rebuild struct {
	command
	flags.Throttle
	job     worker.Job
	compare string
	anew    bool
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
	fl.StringVar(&c.job.From, "from", "", "the server whose data it gets, or clone, clone=SERVER or backup; default: a fit replica of the same source, or the source")
	fl.StringVar(&c.job.Repository.Place, "repository", "", "with --from backup: the place of the backups: "+blob.Forms)
	fl.StringVar(&c.job.Repository.Backup, "backup", "", "with --from backup: ID of the backup (default: the newest that a drill has proven)")
	fl.StringVar(&c.job.Repository.Identity, "identity", "", "file with the age identity that opens an encrypted repository")
	flags.BindTrust(&c.job.Repository.Trust, cmd)
	fl.IntVar(&c.job.Threads, "threads", min(runtime.NumCPU(), 8), "sessions that read, and load")
	fl.BoolVar(&c.anew, "anew", false, "do not go on with what an earlier run has copied and loaded: copy again")
	fl.StringVar(&c.compare, "compare", "all", "what is compared with the source at the end: all, sample (up to 20 tables) or none")
	c.Throttle.Bind(cmd)
	return cmd
}

func (c *rebuild) run(ctx context.Context, name string) error {
	switch {
	case !slices.Contains([]string{"all", "sample", "none"}, c.compare):
		return fault.Usagef("--compare %q: all, sample or none", c.compare)
	case c.job.Threads < 1 || c.job.Threads > 64:
		return fault.Usagef("--threads %d: 1 to 64", c.job.Threads)
	}
	if _, err := c.Limits(c.job.Threads); err != nil {
		return err
	}
	if err := c.ask(ctx, name); err != nil {
		return err
	}
	way, done, err := c.job.Choose(ctx)
	if err != nil {
		return err
	}
	defer done()
	b, err := c.r.PrepareRebuild(c.job.Question, c.job.From, way)
	if err != nil {
		return err
	}
	if b.Goes == "" && c.job.Donor != nil {
		if err := c.job.Room(ctx); err != nil {
			return err
		}
	}
	c.tell(ctx, b)
	if c.dryRun {
		return c.command.answer(c.answer, nil)
	}
	if err := c.agreed(b.Replica.Name); err != nil {
		return err
	}
	line := screen.NewProgress(c.Err)
	defer line.End()
	if c.job.Donor != nil {
		gate, err := c.Gate(ctx, c.job.Threads+1, c.job.DonorTarget())
		if err != nil {
			return err
		}
		defer gate.Close()
		c.job.Watch(line, gate)
	} else {
		c.job.Watch(line, nil)
	}
	err = b.Do(ctx)
	line.End()
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
	j := &c.job
	j.Repointer, j.Say = c.r, screen.Says(c.Err)
	j.Find = func(name string) (int, error) { return node(j.Question.Topology, name) }
	j.Question = repoint.RebuildQuestion{Question: repoint.Question{Topology: t, Replica: i, Wait: c.wait}, Donor: -1, Left: left}
	return j.Question.Ask(ctx, c.r)
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
