package failover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/serve/lost"
)

// ReappliedAnswer is what became of lost transactions, or would.
type ReappliedAnswer struct {
	Group  string              `json:"group"`
	Epoch  uint64              `json:"epoch"` // of the receipt
	From   string              `json:"from"`  // whose logs
	Into   string              `json:"into"`  // the primary
	DryRun bool                `json:"dry_run"`
	Plan   []string            `json:"plan"`
	Result *binlog.ReapplyPlan `json:"result,omitempty"`
	Error  string              `json:"error,omitempty"`
}

// apply is risso receipt apply.
type apply struct {
	command
	logs      flags.Logs
	trust     places.Trust
	gtid      string
	epoch     uint64
	unchecked bool
	pending   string
	binlog    []string
}

func newApply(s screen.Streams) *cobra.Command {
	c := &apply{}
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Apply lost transactions to the present primary",
		Long: `Applies transactions that a failover lost to the group's present primary, from the binary logs of the old
one, a mirror of them (--from), or files (--binlog). Each becomes a transaction of its own there, with a new GTID, in
the order of the logs; rows are applied as they were logged, so no trigger fires.

First every row is compared with what is there now: one that was changed or deleted must be as it was, and
one that was inserted must not be there. If anything is in the way, nothing is applied, and each conflict is
shown; --gtid chooses transactions that are free of it. While applying, rows are compared once more, under
locks. What cannot be compared is refused unless --unchecked accepts it: statements that were logged as text,
such as ALTER TABLE or those of binlog_format=STATEMENT, and rows whose log does not say what they were
before (binlog_row_image=MINIMAL).

The primary keeps in the table risso_receipt.applied what was applied: nothing is applied twice. The account
needs the privileges of risso binlog apply, and SELECT on the tables.

` + flags.TrustHelp + `

` + fault.Help,
		Example: `  risso receipt apply --group shop --dry-run
  risso receipt apply --group shop --gtid 0-1-4711 --yes
  risso receipt apply --group shop --from /backups/db1 --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			files, err := binlogs(c.binlog)
			if err != nil {
				return err
			}
			return c.With(cmd.Context(), func(r *keep.Room) error { return c.run(cmd.Context(), r, files) })
		},
	}
	c.Streams = s
	c.Groups.Bind(cmd, true)
	c.logs.BindMirror(cmd)
	flags.BindTrust(&c.trust, cmd)
	fl := cmd.Flags()
	bindBinlogs(fl, &c.binlog)
	fl.StringVar(&c.gtid, "gtid", "", "only these transactions, separated by commas (default: all that the receipt lists)")
	fl.Uint64Var(&c.epoch, "epoch", 0, "which receipt, by its epoch (default: the last one with a loss)")
	fl.BoolVar(&c.unchecked, "unchecked", false, "also apply what cannot be compared with what is there now")
	fl.StringVar(&c.pending, "pending", "", "after a kill in mid-statement, if it is unknown whether it was carried out: done (skip it) or again (run it)")
	fl.BoolVar(&c.dryRun, "dry-run", false, "show what would be done, and change nothing")
	fl.BoolVar(&c.yes, "yes", false, "do not ask")
	flags.OutputVar(fl, &c.output, "", "text", "json")
	return cmd
}

// journal finds the receipt that is meant.
func (c *apply) journal(ctx context.Context, r *keep.Room, args []string) (*keep.Journal, error) {
	g, err := r.Only(ctx, c.Group)
	if err != nil {
		return nil, err
	}
	if c.Group = g.Name; c.pending != "" && c.pending != string(binlog.PendingDone) && c.pending != string(binlog.PendingAgain) {
		return nil, fault.Usagef("--pending %q: done or again", c.pending)
	}
	cr := &carry.Carrier{Room: r, Limits: carry.DefaultLimits()}
	if err := cr.Complete(ctx, g.Name); err != nil {
		return nil, err
	}
	list, err := r.Journals(ctx, g.Name)
	if err != nil {
		return nil, err
	}
	for _, j := range slices.Backward(list) {
		if j.Receipt == nil || j.Kind != failover.Failover || c.epoch != 0 && j.Epoch != c.epoch {
			continue
		}
		if err := byLogs(ctx, r, c.logs, j, args); err != nil {
			return nil, err
		}
		if j.Receipt.Lost != "" {
			return j, nil
		}
	}
	return nil, fault.New(fault.Failed, "risso receipt --group "+g.Name, errors.New("no receipt lists lost transactions"))
}

// chosen narrows the transactions of a receipt to those of --gtid. It refuses what the receipt does not list: nobody would look for that in the logs.
func chosen(which mysql.Errant, list, group string) (func(mysql.GTID) bool, error) {
	if list == "" {
		return which.Contains, nil
	}
	var single []mysql.GTID
	var strange []string // not in the receipt
	set := mysql.GTIDSet{}
	if len(which.State) > 0 { // of MariaDB a set is what came up to a number
		for text := range strings.SplitSeq(list, ",") {
			g, err := mysql.ParseGTID(strings.TrimSpace(text))
			if err != nil {
				return nil, fault.Usagef("--gtid: %w", err)
			}
			if single = append(single, g); !which.Contains(g) {
				strange = append(strange, g.String())
			}
		}
	} else {
		var err error
		if set, err = mysql.ParseGTIDSet(list); err != nil {
			return nil, fault.Usagef("--gtid: %w", err)
		}
		if rest := set.Subtract(which.Set); !rest.Empty() {
			strange = append(strange, rest.String())
		}
	}
	if len(strange) > 0 {
		lists := which.String()
		if len(which.State) > 0 {
			lists = "what came up to " + lists
		}
		return nil, fault.New(fault.Failed, "risso receipt --group "+group, fmt.Errorf("the receipt does not list %s: it lists %s", strings.Join(strange, ","), lists))
	}
	return func(g mysql.GTID) bool {
		return which.Contains(g) && (slices.Contains(single, g) || len(single) == 0 && set.Contains(g))
	}, nil
}

func (c *apply) run(ctx context.Context, r *keep.Room, args []string) error {
	if c.logs.From != "" {
		trust, err := c.trust.LogPolicy(c.logs.From, screen.Says(c.Err))
		if err != nil {
			return err
		}
		c.logs.LogTrust = trust
	}
	j, err := c.journal(ctx, r, args)
	if err != nil {
		return c.reapplied(ReappliedAnswer{Group: c.Group, DryRun: c.dryRun, Plan: []string{}}, err)
	}
	which, err := j.Receipt.Which()
	if err != nil {
		return err
	}
	wanted, err := chosen(which, c.gtid, c.Group)
	if err != nil {
		return c.reapplied(ReappliedAnswer{Group: c.Group, Epoch: j.Epoch, DryRun: c.dryRun, Plan: []string{}}, err)
	}
	logs, end, err := source(ctx, r, c.logs, j, which, args)
	if err != nil {
		return flags.LogFailure(err)
	}
	defer end()
	pick, err := logs.Pick(ctx, which.Set, wanted)
	if err != nil {
		return fault.New(fault.Failed, "start "+j.Old+" again, or name a mirror of its binary logs by --from, or files by --binlog", err)
	}
	into, name, err := primaryOf(ctx, r, c.Group)
	if err != nil {
		return err
	}
	o := binlog.ReapplyOptions{Pick: pick, Into: into, Who: r.Who, Unchecked: c.unchecked, Pending: binlog.PendingPolicy(c.pending)}
	plan, err := binlog.PlanReapply(ctx, o)
	if err != nil {
		return err
	}
	ans := ReappliedAnswer{Group: c.Group, Epoch: j.Epoch, From: logs.Words, Into: name, DryRun: c.dryRun, Plan: plan.Steps().Words(), Result: plan}
	out := c.told().Out
	fmt.Fprintf(out, "%s: lost with %s, from %s, to %s\n", c.Group, oneline.Of(j.Old), oneline.Of(logs.Words), oneline.Of(name))
	reappliedText(out, plan)
	if err := c.obstacle(plan, which); err != nil {
		return c.reapplied(ans, err)
	}
	screen.Steps(out, plan.Steps())
	if c.dryRun {
		return c.reapplied(ans, nil)
	}
	if err := screen.Agreed(c.Streams, c.yes); err != nil {
		return err
	}
	return c.reapplied(ans, c.execute(ctx, r, j, plan, name))
}

// obstacle is the plan's, with what to do about it.
func (c *apply) obstacle(plan *binlog.ReapplyPlan, which mysql.Errant) error {
	err := plan.Obstacle()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, binlog.ErrPending):
		return fault.New(fault.Failed, "look at the primary, then call it again with --pending done or --pending again", err)
	case errors.Is(err, binlog.ErrReapplied):
		return fault.New(fault.Failed, "--gtid chooses others", err)
	case errors.Is(err, binlog.ErrNoTransaction):
		return fault.New(fault.Failed, "name a mirror of its binary logs by --from, or files by --binlog", fmt.Errorf("%w: %s", err, cmp.Or(c.gtid, which.String())))
	}
	unchecked := slices.ContainsFunc(plan.Transactions, func(t binlog.Reapplied) bool { return t.State == binlog.ReapplyUnchecked })
	conflict := slices.ContainsFunc(plan.Transactions, func(t binlog.Reapplied) bool { return t.State == binlog.ReapplyConflict })
	remedy := "mend what the conflicts say, or choose others with --gtid; risso receipt --sql FILE writes the statements for you to change and run"
	if unchecked && !conflict {
		remedy = "--unchecked applies it as it was logged, whatever is there now"
	}
	return fault.New(fault.Differs, remedy, err)
}

// execute applies, and writes down what was.
func (c *apply) execute(ctx context.Context, r *keep.Room, j *keep.Journal, plan *binlog.ReapplyPlan, into string) error {
	var did []mysql.GTID
	err := plan.Execute(ctx, func(g mysql.GTID) { did = append(did, g) })
	cr := &carry.Carrier{Room: r}
	var noted error
	for _, g := range did { // also of a command that was interrupted
		noted = errors.Join(noted, cr.Note(context.WithoutCancel(ctx), j, g, into, r.Who, c.unchecked))
	}
	fmt.Fprintf(c.told().Out, "applied %s to %s\n", digits.Counted(len(did), "transaction"), oneline.Of(into))
	if err != nil {
		err = fault.New(fault.Failed, "what was applied stays; risso receipt apply --dry-run shows what is left", err)
	}
	return c.Did(ctx, c.Group, fmt.Sprintf("the application of %s lost with %s to %s", digits.Counted(len(did), "transaction"), j.Old, into), errors.Join(err, noted))
}

// reapplied gives the answer.
func (c *apply) reapplied(a ReappliedAnswer, err error) error {
	if c.output != "json" {
		return err
	}
	if err != nil {
		a.Error = err.Error()
	}
	if werr := render.JSON(c.Out, a); err == nil {
		err = werr
	}
	return err
}

// reappliedText shows what is against transactions.
func reappliedText(out io.Writer, plan *binlog.ReapplyPlan) {
	const most = 50
	for i, t := range plan.Transactions {
		if i == most {
			fmt.Fprintf(out, "  and %s\n", digits.Counted(len(plan.Transactions)-most, "more transaction"))
			break
		}
		fmt.Fprintf(out, "  %s  %s", t.GTID, reapplyWords[t.State])
		if t.By != "" {
			fmt.Fprintf(out, " by %s at %s", oneline.Of(t.By), t.At)
		}
		fmt.Fprintln(out)
		for _, k := range t.Conflicts {
			where := ""
			if at := strings.Fields(k.Table + " " + oneline.Of(k.Row)); len(at) > 0 { // of a statement none is known
				where = strings.Join(at, " ") + ": "
			}
			fmt.Fprintf(out, "    %s%s\n", where, oneline.Of(k.Because))
		}
		if t.More > 0 {
			fmt.Fprintf(out, "    and %s\n", digits.Counted(t.More, "more conflict"))
		}
	}
	for _, n := range plan.Notes {
		fmt.Fprintln(out, "note:", oneline.Of(n))
	}
}

// reapplyWords say what the states mean.
var reapplyWords = map[binlog.ReapplyState]string{
	binlog.ReapplyFree:      "nothing is in its way",
	binlog.ReapplyThere:     "was applied before",
	binlog.ReapplyPending:   "was begun, and may have been done",
	binlog.ReapplyUnchecked: "cannot be compared with what is there now",
	binlog.ReapplyConflict:  "conflicts with what is there now",
	binlog.ReapplyDone:      "is applied",
}

// mirrored finds the series of mirrored logs that are the old primary's.
func mirrored(ctx context.Context, f flags.Logs, j *keep.Journal, which mysql.Errant) (lost.Logs, func(), error) {
	place, all, closeIt, err := f.Mirrored(ctx)
	if err != nil {
		return lost.Logs{}, func() {}, err
	}
	var files []binlog.File
	var keys []string
	for _, id := range identities(j, which) {
		for _, s := range mirror.Of(all, id) {
			files, keys = append(files, s.Files(f.LogTrust.Of(place), f.LocalDir())...), append(keys, s.Key)
		}
	}
	if len(files) == 0 {
		closeIt()
		return lost.Logs{}, func() {}, fault.New(fault.Failed, "risso binlog list --from PLACE shows whose logs are there; --series names one", fmt.Errorf("%s has no logs of %s", places.Words(f.From), j.Old))
	}
	return lost.Of("the mirrored logs "+strings.Join(keys, ", "), files), closeIt, nil
}

// identities are those under which the logs of an old primary may be mirrored.
func identities(j *keep.Journal, which mysql.Errant) (list []string) {
	if j.Known.UUID != "" && len(which.State) == 0 {
		return []string{j.Known.UUID}
	}
	for _, g := range which.State.List() {
		list = append(list, fmt.Sprintf("%d-%d", g.Domain, g.Server))
	}
	return append(list, which.Set.Servers()...)
}
