package failover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/avail/errant"
	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/serve/lost"
)

// ReceiptsAnswer is what changes of the primary cost, the last first, and what was in the transactions that were lost.
type ReceiptsAnswer struct {
	Receipts   []failover.Receipt `json:"receipts"`
	Statements []LostStatements   `json:"statements"` // of the lost transactions that a log still has
	Notes      []string           `json:"notes,omitempty"`
}

// LostStatements are those that do a lost transaction once more: one for each row, or as they were logged.
type LostStatements struct {
	Epoch uint64   `json:"epoch"` // of the receipt
	GTID  string   `json:"gtid"`
	Texts []string `json:"texts"`
	More  int64    `json:"more"` // rows that are not shown
}

// receipt is risso receipt.
type receipt struct {
	command
	logs         flags.Logs
	last         int
	rows         int
	noLogs       bool
	script       string
	binlog       []string
	transactions int
}

// NewReceipt is risso receipt.
func NewReceipt(s screen.Streams) *cobra.Command {
	c := &receipt{last: 10, rows: 5, transactions: 20}
	cmd := &cobra.Command{
		Use:   "receipt",
		Short: "Show what the last switchovers and failovers cost: which transactions were lost, what was in them, and why none can be",
		Long: `After each change of the primary there is a receipt: that no acknowledged transaction is lost, and
because of what; or which are, by GTID. If the old primary answers again, it is asked, and the receipt is
completed. What the lost transactions changed is read from its binary logs; if it does not answer, from a
mirror of them (--from), or from files of its data folder (--binlog). Nothing is changed on servers.

The receipt keeps tables, times and numbers of rows, and statements without their values. The values are
shown by this command only, from the logs.

` + fault.Help,
		Example: `  risso receipt --group shop
  risso receipt --group shop --output json
  risso receipt --group shop --from /backups/db1 --sql lost.sql
  risso receipt --group shop --binlog '/var/lib/mysql/binlog.0*'
  risso receipt apply --group shop --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			files, err := binlogs(c.binlog)
			if err != nil {
				return err
			}
			return c.With(cmd.Context(), func(r *keep.Room) error { return c.show(cmd.Context(), r, files) })
		},
	}
	c.Streams = s
	c.Groups.Bind(cmd, true)
	c.logs.BindMirror(cmd)
	fl := cmd.Flags()
	bindBinlogs(fl, &c.binlog)
	fl.IntVar(&c.last, "last", c.last, "how many")
	fl.IntVar(&c.rows, "images", c.rows, "rows to show of each lost transaction; -1: all")
	fl.IntVar(&c.transactions, "transactions", c.transactions, "lost transactions of which rows are shown; 0: all")
	fl.BoolVar(&c.noLogs, "no-logs", false, "ask no server and read no binary logs: show what is kept")
	fl.StringVar(&c.script, "sql", "", "write the statements of all lost transactions into this file")
	flags.OutputVar(fl, &c.output, "", "text", "json")
	cmd.AddCommand(newApply(s))
	return cmd
}

// bindBinlogs adds the flag for files.
func bindBinlogs(fl *pflag.FlagSet, list *[]string) {
	fl.StringArrayVar(list, "binlog", nil, "a binary log from the old primary's data folder, or a pattern with * for several; may be repeated")
}

// binlogs are the files that are meant: what is no binary log beside them, such as an index, is left out where a pattern finds it.
func binlogs(patterns []string) (files []string, err error) {
	for _, p := range patterns {
		list, err := filepath.Glob(p)
		if err != nil {
			return nil, fault.Usagef("--binlog %q: %w", p, err)
		}
		if strings.Contains(p, "*") {
			list = slices.DeleteFunc(list, func(name string) bool { return strings.HasSuffix(name, ".index") || strings.HasSuffix(name, ".idx") })
		}
		if len(list) == 0 {
			return nil, fault.Usagef("--binlog %q: there is no such file", p)
		}
		files = append(files, list...)
	}
	return files, nil
}

// show completes the receipts, and shows them.
func (c *receipt) show(ctx context.Context, r *keep.Room, args []string) error {
	a := ReceiptsAnswer{Receipts: []failover.Receipt{}, Statements: []LostStatements{}}
	list, err := c.completed(ctx, r, &a)
	if err != nil {
		return err
	}
	read := map[string]bool{} // of each group and old primary the last one
	for _, j := range slices.Backward(list) {
		if j.Receipt == nil || len(a.Receipts) == c.last {
			continue
		}
		if of := j.Group + "\x00" + j.Old; !c.noLogs && j.Kind == failover.Failover && !read[of] {
			if read[of], err = c.learn(ctx, r, j, args, &a); err != nil {
				return err
			}
		}
		a.Receipts = append(a.Receipts, *j.Receipt)
	}
	if c.script != "" && len(read) == 0 {
		a.Notes = append(a.Notes, "no transaction is known to be lost: --sql writes nothing")
	}
	if c.output == "json" {
		return render.JSON(c.Out, a)
	}
	c.text(c.Out, a)
	return nil
}

// learn reads what is known of a failover from logs, and reports whether something was lost. Of a group that was removed nobody can be asked: only logs that were
// named are read.
func (c *receipt) learn(ctx context.Context, r *keep.Room, j *keep.Journal, args []string, a *ReceiptsAnswer) (bool, error) {
	_, err := r.Group(ctx, j.Group)
	removed := errors.Is(err, keep.ErrNone)
	switch {
	case err != nil && !removed:
		return false, err
	case !removed:
		if err := byLogs(ctx, r, c.logs, j, args); err != nil {
			return false, err
		}
	case j.Receipt.Lost != "" && len(args) == 0 && c.logs.From == "":
		a.Notes = append(a.Notes, fmt.Sprintf("the group %s was removed, and how %s is reached is not known any more: what the lost transactions changed is read from a mirror of its binary logs by --from, or from files by --binlog", j.Group, oneline.Of(j.Old)))
		return true, nil
	}
	if j.Receipt.Lost == "" {
		return false, nil
	}
	return true, c.read(ctx, r, j, args, a)
}

// completed are the journals, after those who know more were asked.
func (c *receipt) completed(ctx context.Context, r *keep.Room, a *ReceiptsAnswer) ([]*keep.Journal, error) {
	if !c.noLogs {
		groups, err := r.Groups(ctx)
		if err != nil {
			return nil, err
		}
		cr := &carry.Carrier{Room: r, Limits: carry.DefaultLimits()}
		for _, g := range groups {
			if c.Group != "" && g.Name != c.Group {
				continue
			}
			if err := cr.Complete(ctx, g.Name); err != nil {
				a.Notes = append(a.Notes, g.Name+": the receipts could not be completed: "+err.Error())
			}
		}
	}
	return journals(ctx, r, c.Group)
}

// journals are those of a group, "" of all. One that was removed is known by what it left; a group that left nothing has to be there.
func journals(ctx context.Context, r *keep.Room, name string) ([]*keep.Journal, error) {
	list, err := r.Journals(ctx, name)
	if err == nil && name != "" && len(list) == 0 {
		_, err = r.Group(ctx, name)
	}
	return list, err
}

// source finds the logs that have the lost transactions of a receipt. The caller closes it.
func source(ctx context.Context, r *keep.Room, f flags.Logs, j *keep.Journal, which mysql.Errant, args []string) (lost.Logs, func(), error) {
	none := func() {}
	switch {
	case len(args) > 0:
		src, err := f.Source(ctx, args)
		return lost.Of("files", src.Files), none, err
	case f.From != "" && f.Series != "":
		src, err := f.Source(ctx, nil)
		return lost.Of("mirrored series "+src.Series.Key, src.Files), src.Close, err
	case f.From != "":
		return mirrored(ctx, f, j, which)
	}
	access, err := r.Access(ctx, j.Group)
	if err != nil {
		return lost.Logs{}, none, err
	}
	t, err := access.Target(j.Old)
	if err != nil {
		return lost.Logs{}, none, fault.New(fault.Failed, "name a mirror of its binary logs by --from, or files by --binlog", fmt.Errorf("how %s is reached is not known any more: %w", j.Old, err))
	}
	return lost.OfServer(j.Old, t), none, nil
}

// byLogs completes a receipt by copies of the old primary's binary logs, if some were named.
func byLogs(ctx context.Context, r *keep.Room, f flags.Logs, j *keep.Journal, args []string) error {
	if len(args) == 0 && f.From == "" {
		return nil
	}
	which, err := j.Receipt.Which()
	if err != nil {
		return err
	}
	logs, end, err := source(ctx, r, f, j, which, args)
	if err != nil {
		return flags.LogFailure(err)
	}
	defer end()
	t, name, err := primaryOf(ctx, r, j.Group)
	if err != nil {
		return err
	}
	conn, err := mysql.Connect(ctx, t, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	now, err := errant.Read(ctx, name, conn)
	if err != nil {
		return err
	}
	e, err := lost.Beyond(ctx, logs, now.Executed)
	if err != nil || e.Empty() {
		return flags.LogFailure(err)
	}
	return r.Amend(ctx, j, func(rec *failover.Receipt) bool { return failover.AmendByLogs(rec, e) })
}

// text shows receipts to people.
func (c *receipt) text(out io.Writer, a ReceiptsAnswer) {
	for _, rec := range a.Receipts {
		way := "to " + oneline.Of(rec.New)
		if rec.Old != "" { // a group without a primary had none
			way = "from " + oneline.Of(rec.Old) + " " + way
		}
		fmt.Fprintf(out, "%s  %s of %s %s, epoch %d\n  %s\n", rec.Time.Local().Format(time.DateTime), rec.Kind, rec.Group, way, rec.Epoch, oneline.Of(rec.Words))
		for _, line := range rec.More() {
			fmt.Fprintln(out, " ", oneline.Of(line))
		}
		if words := rec.OutageWords(); words != "" {
			fmt.Fprintln(out, " ", words)
		}
		if rec.Lost == "" {
			continue
		}
		label := "lost:"
		if rec.Verdict == failover.NothingLost {
			label = "not there, and never acknowledged:"
		}
		fmt.Fprintln(out, " ", label, oneline.Of(rec.Lost))
		c.contents(out, rec, a.Statements)
	}
	if len(a.Receipts) == 0 {
		fmt.Fprintln(out, "there is none")
	}
	for _, n := range a.Notes {
		fmt.Fprintln(out, "note:", oneline.Of(n))
	}
}

// contents shows what was in lost transactions.
func (c *receipt) contents(out io.Writer, rec failover.Receipt, list []LostStatements) {
	k := rec.Contents
	if k == nil {
		return
	}
	by := map[string]LostStatements{}
	for _, l := range list {
		if l.Epoch == rec.Epoch {
			by[l.GTID] = l
		}
	}
	applied := map[string]failover.Applied{}
	for _, p := range rec.Applied {
		applied[p.GTID] = p
	}
	left := 0
	for _, t := range k.Transactions {
		id := t.GTID.String()
		fmt.Fprintln(out, "  "+head(t))
		p, done := applied[id]
		if done {
			fmt.Fprintf(out, "    applied to %s at %s by %s\n", oneline.Of(p.To), screen.Clock(p.At), oneline.Of(p.By))
		} else {
			left++
		}
		shown := by[id]
		for _, text := range shown.Texts {
			fmt.Fprintln(out, "   ", oneline.Cut(oneline.Of(text), 500))
		}
		if len(shown.Texts) == 0 {
			for _, text := range t.Statements {
				fmt.Fprintln(out, "   ", text)
			}
		}
		if shown.More > 0 {
			fmt.Fprintf(out, "    and %s (--images -1 shows all, --sql FILE writes them)\n", digits.Counted(shown.More, "more row"))
		}
	}
	if k.More > 0 {
		fmt.Fprintf(out, "  and %s (--sql FILE writes all)\n", digits.Counted(k.More, "more transaction"))
	}
	if k.Unseen != "" {
		fmt.Fprintln(out, "  not seen:", oneline.Of(k.Unseen))
	}
	if left > 0 && !k.Until.IsZero() {
		fmt.Fprintf(out, "  %s keeps its binary logs of then until about %s, unless they are purged earlier\n", oneline.Of(rec.Old), screen.Clock(k.Until))
	}
	if left > 0 {
		fmt.Fprintf(out, "  next: risso receipt apply --group %s --dry-run\n", rec.Group)
	}
}

// head is a lost transaction in a line.
func head(t errant.Transaction) string {
	text := fmt.Sprintf("%s  %s  %s:%d", t.GTID, t.Time.UTC().Format("2006-01-02 15:04:05Z"), oneline.Of(t.File), t.Position)
	if t.Connection != 0 {
		text += fmt.Sprintf("  connection %d", t.Connection)
	}
	var parts []string
	for _, ch := range t.Changes {
		part := strings.TrimSpace(ch.Kind + " " + strings.TrimSpace(ch.Other+" "+ch.Table))
		if ch.Rows > 0 {
			part += ": " + digits.Counted(ch.Rows, "row")
		}
		parts = append(parts, oneline.Of(part))
	}
	if len(parts) == 0 {
		parts = []string{"it is empty"}
	}
	return text + "  " + strings.Join(parts, ", ")
}

// read reads what was lost from logs: it keeps in the receipt what is kept, and puts the rest into the answer.
func (c *receipt) read(ctx context.Context, r *keep.Room, j *keep.Journal, args []string, a *ReceiptsAnswer) error {
	which, err := j.Receipt.Which()
	if err != nil {
		return err
	}
	logs, end, err := source(ctx, r, c.logs, j, which, args)
	if err != nil {
		return flags.LogFailure(err)
	}
	defer end()
	contents := lost.Contents(ctx, which, logs)
	if len(contents.Transactions) == 0 && !contents.Unwritten && (len(args) > 0 || c.logs.From != "" || j.Receipt.Contents != nil) {
		a.Notes = append(a.Notes, fmt.Sprintf("%s have none of %s%s", logs.Words, which, reason(contents.Unseen)))
	}
	if len(contents.Transactions) == 0 && !contents.Unwritten {
		a.Notes = append(a.Notes, unreadable(j.Receipt, contents))
	}
	if ctx.Err() != nil {
		return fault.New(fault.Interrupted, "", errors.New("interrupted"))
	}
	err = r.Amend(ctx, j, func(rec *failover.Receipt) bool {
		if len(contents.Transactions) == 0 && rec.Contents != nil && len(rec.Contents.Transactions) > 0 {
			return false
		}
		rec.Read(contents)
		return true
	})
	if err != nil || len(contents.Transactions) == 0 {
		return err
	}
	columns, closeIt, note := primaryColumns(ctx, r, j.Group)
	defer closeIt()
	if note != "" {
		a.Notes = append(a.Notes, note)
	}
	if err := c.statements(ctx, j, which, logs, columns, contents, a); ctx.Err() != nil {
		return fault.New(fault.Interrupted, "", errors.New("interrupted"))
	} else if err != nil {
		a.Notes = append(a.Notes, fmt.Sprintf("the values of what %s changed could not be read: %v", which, err))
	}
	if c.script == "" {
		return nil
	}
	return c.write(ctx, which, logs, columns, a)
}

func reason(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// unreadable says what one can still do for lost transactions of which nothing was read.
func unreadable(rec *failover.Receipt, k *failover.Contents) string {
	text := fmt.Sprintf("what %s changed is not known: no log that was read has them", oneline.Of(rec.Lost))
	if k.Unseen != "" {
		text += " (" + k.Unseen + ")"
	}
	return text + fmt.Sprintf("; they are in the binary logs of %s until it purges them, or its data folder is removed or rebuilt: start it again, or name a mirror of its logs by --from, or the files by --binlog", oneline.Of(rec.Old))
}

// primaryColumns tells what tables are like on the primary of a group; nil where that does not answer.
func primaryColumns(ctx context.Context, r *keep.Room, name string) (binlog.Columns, func(), string) {
	t, _, err := primaryOf(ctx, r, name)
	var conn *mysql.Conn
	if err == nil {
		conn, err = mysql.Connect(ctx, t, nil)
	}
	if err != nil {
		return nil, func() {}, "the primary was not asked what its tables are like: " + err.Error()
	}
	return binlog.NewLive(conn).Columns, func() { conn.Close() }, ""
}

// primaryOf is how the primary of a group is reached, and its name.
func primaryOf(ctx context.Context, r *keep.Room, name string) (mysql.Target, string, error) {
	g, err := r.Group(ctx, name)
	if err != nil {
		return mysql.Target{}, "", err
	}
	i := g.Primary()
	if i < 0 {
		return mysql.Target{}, "", fault.New(fault.Failed, "risso failover --group "+name, fmt.Errorf("%s has no primary", name))
	}
	access, err := r.Access(ctx, name)
	if err != nil {
		return mysql.Target{}, "", err
	}
	t, err := access.Target(g.Members[i].Name)
	return t, g.Members[i].Name, err
}

// statements puts the first rows of the first transactions into the answer.
func (c *receipt) statements(ctx context.Context, j *keep.Journal, which mysql.Errant, logs lost.Logs, columns binlog.Columns, k *failover.Contents, a *ReceiptsAnswer) error {
	if c.rows == 0 {
		return nil
	}
	at, rows := map[string]int{}, map[string]int64{}
	for i, t := range k.Transactions {
		if c.transactions > 0 && i == c.transactions {
			break
		}
		id := t.GTID.String()
		at[id] = len(a.Statements)
		a.Statements = append(a.Statements, LostStatements{Epoch: j.Epoch, GTID: id, Texts: []string{}})
		for _, ch := range t.Changes {
			rows[id] += ch.Rows
		}
	}
	pick, err := logs.Pick(ctx, which.Set, func(g mysql.GTID) bool { _, ok := at[g.String()]; return ok })
	if err != nil {
		return flags.LogFailure(err)
	}
	res, err := binlog.Again(ctx, binlog.AgainOptions{Pick: pick, Columns: columns, Most: max(0, c.rows)}, func(g mysql.GTID, text string) error {
		if s := &a.Statements[at[g.String()]]; text != "" {
			s.Texts = append(s.Texts, text)
		}
		return nil
	})
	a.Notes = append(a.Notes, res.Notes...)
	for id, i := range at {
		if n := rows[id] - int64(c.rows); c.rows > 0 && n > 0 {
			a.Statements[i].More = n
		}
	}
	return flags.LogFailure(err)
}

// write writes the statements of all into a file that only its owner reads.
func (c *receipt) write(ctx context.Context, which mysql.Errant, logs lost.Logs, columns binlog.Columns, a *ReceiptsAnswer) error {
	pick, err := logs.Pick(ctx, which.Set, which.Contains)
	if err != nil {
		return flags.LogFailure(err)
	}
	f, err := os.OpenFile(c.script, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return fault.New(fault.Failed, "name a file that is not there yet", err)
	}
	res, err := binlog.AgainScript(ctx, binlog.AgainOptions{Pick: pick, Columns: columns}, f)
	if err = errors.Join(err, f.Close()); err == nil {
		a.Notes = append(a.Notes, fmt.Sprintf("%s of %s are in %s", digits.Counted(res.Rows, "row"), digits.Counted(res.Transactions, "transaction"), c.script))
	}
	return flags.LogFailure(err)
}
