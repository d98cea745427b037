// Package restore is the command risso restore.
package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/store/blob"
)

// Flags are those of risso restore.
type Flags struct {
	From, identity, backup             string
	into, sandbox, server              string
	configFile, defaultsFile, output   string
	tables, schemas, rename            []string
	threads                            int
	overwrite, skip, noBinlog, setGTID bool
	noPrograms                         bool
	definer                            string
	dryRun, forget                     bool
	filesFlags
	places.Trust
	until flags.Until
	Logs  flags.Logs // in addition to the backup
}

// restoredName is the default name of a sandbox.
const restoredName = "restored"

// New is risso restore.
func New(s screen.Streams) *cobra.Command {
	var f Flags
	cmd := &cobra.Command{
		Use:   "restore --from PLACE (--into DSN | --sandbox [NAME] | --datadir DIR)",
		Short: "Restore a backup, or part of it, and verify the result",
		Long: `Restores a logical backup: all of it, one schema, or one table; with --datadir a physical one.
Nothing is changed until it is certain that no table is in the way and that the server supports
what the backup contains. Existing objects are kept, unless --overwrite is given. At the end every
table's rows are read back, and their number and checksum compared with the backup's: the exit code
is 0 only if all are equal, nothing was left out, views that worked when the backup was taken work,
and no table that was not restored refers to rows that are now gone.

A restore that was interrupted or killed continues when the same command is run again; no row is
loaded twice. Until then its journal stays on the server, in the schema risso_restore; --forget
removes it, and gives schemas back the default collation that the restore had changed for a while.
A place is ` + blob.Forms + `.
See docs/restore.md.

` + restoreFilesHelp + `

` + flags.TrustHelp + `

` + fault.Help,
		Example: `  risso restore --from /backups/db1 --sandbox look
  risso restore --from /backups/db1 --into 'root@unix(/run/mysqld/mysqld.sock)/' --dry-run
  risso restore --from /backups/db1 --table shop.orders --rename shop.orders=shop.orders_before --before 0-1-4711 --into 'root@tcp(db1)/'
  risso restore --from /backups/db1 --datadir /var/lib/mysql
  risso restore --from /backups/db1 --schema shop --to-time '2026-11-21 18:00:00' --into 'root@tcp(db2)/' --overwrite
  risso restore --forget --into 'root@tcp(db2)/'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && f.sandbox == restoredName {
				return nil
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 { // --sandbox NAME: the name may be left out, so it is taken for an argument
				f.sandbox = args[0]
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			if f.forget {
				return runForget(ctx, s, f, cmd.Flags())
			}
			return runRestore(ctx, s, f)
		},
	}
	f.bind(cmd)
	return cmd
}

// bind adds the flags to the command.
func (f *Flags) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.From, "from", "", "where the backup is: "+blob.Forms)
	flags.BindTrust(&f.Trust, cmd)
	fl.StringVar(&f.identity, "identity", "", "file with the age identity that opens an encrypted repository")
	fl.StringVar(&f.backup, "backup", "", "ID of the backup (default: the newest)")
	fl.StringVar(&f.into, "into", "", "the server to restore to: user:password@tcp(host:3306)/, user@unix(/socket)/, or the name of a server in --config")
	fl.StringVar(&f.sandbox, "sandbox", "", "start a throw-away server called `NAME` and restore to it")
	fl.Lookup("sandbox").NoOptDefVal = restoredName
	fl.StringVarP(&f.server, "servers", "s", "", "with --sandbox: which server, as for risso sandbox up (default: like the backup's)")
	fl.StringArrayVar(&f.schemas, "schema", nil, "only this schema; patterns with * allowed; may be repeated")
	fl.StringArrayVar(&f.tables, "table", nil, "only this table, schema.table; patterns with * allowed; may be repeated")
	fl.StringArrayVar(&f.rename, "rename", nil, "old=new: restore a schema (or schema.table=schema.table) under another name; may be repeated")
	f.until.Bind(cmd, "roll forward from the binary logs, and ")
	f.Logs.BindBeside(cmd)
	fl.IntVar(&f.threads, "threads", min(runtime.NumCPU(), 8), "sessions that load")
	fl.BoolVar(&f.overwrite, "overwrite", false, "drop objects that are in the way; existing accounts get the backup's password and privileges")
	fl.BoolVar(&f.skip, "skip-incompatible", false, "leave out what the server does not support, and name it; the exit code is then 1")
	fl.BoolVar(&f.noPrograms, "no-programs", false, "leave out procedures, functions, packages, triggers and events")
	fl.StringVar(&f.definer, "definer", "", "`ACCOUNT` that becomes the definer of all views and programs: user@host, or CURRENT_USER for the account that restores (default: as in the backup)")
	fl.BoolVar(&f.noBinlog, "no-binlog", false, "keep the restore out of the server's binary log, and so from its replicas")
	fl.BoolVar(&f.setGTID, "set-gtid", false, "afterwards mark all transactions of the backup as applied, so that the server can become a replica; this empties its binary logs")
	fl.BoolVar(&f.dryRun, "dry-run", false, "show what would be done, and do nothing")
	fl.BoolVar(&f.forget, "forget", false, "restore nothing: remove the journal of an interrupted restore from --into; restored tables stay as they are")
	fl.StringVar(&f.configFile, "config", "", "config file (YAML) that names servers")
	fl.StringVar(&f.defaultsFile, "defaults-file", "", "option file of the mysql clients (default ~/.my.cnf)")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	f.filesFlags.bind(fl)
	cmd.MarkFlagsMutuallyExclusive("into", "sandbox", "datadir")
}

// check finds wrong use before anything is opened.
func (f Flags) check() (binlog.Stop, error) {
	var none binlog.Stop
	switch {
	case f.From == "":
		return none, fault.New(fault.Usage, "give --from "+blob.Forms, errors.New("no place to restore from"))
	case f.into == "" && f.sandbox == "" && f.datadir == "":
		return none, fault.New(fault.Usage, "give --into 'user:password@tcp(host:3306)/', or --sandbox NAME; for a physical backup --datadir DIR, or --sandbox NAME", errors.New("no server to restore into"))
	case f.threads < 1 || f.threads > 64:
		return none, fault.Usagef("--threads %d: 1 to 64", f.threads)
	case f.server != "" && f.sandbox == "":
		return none, fault.Usagef("--servers is for --sandbox")
	case f.definer != "" && !strings.EqualFold(f.definer, load.CurrentUser) && strings.IndexByte(f.definer, '@') < 1:
		return none, fault.Usagef("--definer %q: write user@host, or %s", f.definer, load.CurrentUser)
	case f.dryRun && f.sandbox != "":
		return none, fault.Usagef("--dry-run and --sandbox: a new server has nothing to check")
	}
	for _, t := range f.tables {
		if _, err := pattern.ParseTable(t); err != nil {
			return none, fault.Usagef("--table %q: write schema.table, and a name with dots in backticks", t)
		}
	}
	if err := load.CheckChoice(f.schemas, f.tables, f.rename); err != nil {
		return none, fault.Usagef("--rename %w", err)
	}
	until, err := f.until.Stop()
	if err != nil {
		return none, err
	}
	if !until.IsZero() && len(f.rename) > 0 && len(f.tables)+len(f.schemas) == 0 {
		return none, fault.Usagef("--rename with --to-time, --to-gtid or --before needs --table or --schema: statements on everything know the old names")
	}
	return until, blob.Check(f.From)
}

func runRestore(ctx context.Context, s screen.Streams, f Flags) error {
	until, err := f.check()
	if err != nil {
		return err
	}
	o := load.Options{Backup: f.backup, Schemas: f.schemas, Tables: f.tables, Rename: f.rename, Threads: f.threads, Overwrite: f.overwrite,
		SkipIncompatible: f.skip, NoBinlog: f.noBinlog, SetGTID: f.setGTID, NoPrograms: f.noPrograms, Definer: f.definer, DryRun: f.dryRun, Until: until}
	if f.into != "" {
		if o.Into, err = (flags.Server{Dsn: f.into, ConfigFile: f.configFile, DefaultsFile: f.defaultsFile}).Target(); err != nil {
			return err
		}
	}
	policy, err := f.Policy(f.From, screen.Says(s.Err))
	if err != nil {
		return err
	}
	r, closePlace, err := flags.Source{From: f.From, Identity: f.identity, Policy: policy}.Open(ctx)
	if err != nil {
		return err
	}
	defer closePlace()
	o.Repo = r
	roller := Roller{F: f}
	if roller.trust, err = f.LogPolicy(roller.place(), screen.Says(s.Err)); err != nil {
		return err
	}
	o.Roller = roller
	debug.SetGCPercent(20) // the buffers for chunks are large and live long: they must not double the memory
	if done, err := f.restorePhysical(ctx, s, r, until); done || err != nil {
		return err
	}
	var box *sandbox.Sandbox
	if f.sandbox != "" {
		if box, err = f.startSandbox(ctx, s, r); err != nil {
			return err
		}
		if o.Into, err = mysql.ParseTarget(box.Primary().DSN); err != nil {
			return err
		}
	}
	res, tables, plan, err := restoreNow(ctx, s, o)
	planned := f.dryRun && (err == nil || errors.Is(err, load.ErrLogs))
	if f.output == "json" && (load.CameToEnd(err) || planned || errors.Is(err, load.ErrIncompatible)) {
		out := Answer{Plan: plan, DryRun: f.dryRun, Tables: tables}
		if !f.dryRun && !errors.Is(err, load.ErrIncompatible) {
			out.Result = &res
		}
		if box != nil {
			out.Sandbox = box.Primary().DSN
		}
		if jerr := render.JSON(s.Out, out); jerr != nil {
			return jerr
		}
	} else if planned {
		restorePlanText(s.Out, plan, len(f.tables)+len(f.schemas) > 0)
	} else if load.CameToEnd(err) {
		restoreText(s.Out, res)
		if box != nil {
			fmt.Fprintf(s.Out, "It runs as %s; away with it: risso sandbox down %s\n", box.Primary().DSN, box.Name)
		}
	}
	if err != nil {
		return Failure(ctx, err, res.Changed, box)
	}
	return nil
}

// Answer is the result of a restore.
type Answer struct {
	Plan    load.Plan          `json:"plan"`
	DryRun  bool               `json:"dry_run"`
	Result  *load.Result       `json:"result,omitempty"`
	Tables  []load.TableResult `json:"tables,omitempty"`
	Sandbox string             `json:"sandbox,omitempty"`
}

// restoreNow runs the restore and shows how far it is. What the server does not know is reported before the first change.
func restoreNow(ctx context.Context, s screen.Streams, o load.Options) (load.Result, []load.TableResult, load.Plan, error) {
	p := screen.NewProgress(s.Err)
	defer p.End()
	var mu sync.Mutex
	var tables []load.TableResult
	var plan load.Plan
	o.Confirm = func(pl load.Plan) error {
		plan = pl
		for _, fi := range pl.Findings {
			fmt.Fprintln(s.Err, "risso:", fi.Words())
		}
		for _, n := range pl.Notes {
			fmt.Fprintln(s.Err, "risso:", n)
		}
		if pl.Resumes {
			fmt.Fprintln(s.Err, "risso: a restore of this backup was interrupted: continuing where it was")
		}
		return nil
	}
	o.Table = func(t load.TableResult) {
		mu.Lock()
		defer mu.Unlock()
		const most = 100_000
		if len(tables) < most {
			tables = append(tables, t)
		}
	}
	o.Progress = func(pr load.Progress) {
		p.Show(func(elapsed float64) string { return restoreProgress(pr, elapsed) })
	}
	res, err := load.Restore(ctx, o)
	var inc *load.Incompatible
	if errors.As(err, &inc) {
		plan.Findings = inc.Findings
		for _, fi := range inc.Findings {
			fmt.Fprintln(s.Err, "risso:", fi.Words())
		}
	}
	return res, tables, plan, err
}

func restoreProgress(p load.Progress, elapsed float64) string {
	text := fmt.Sprintf("%s: %d of %s, %s/s", p.Stage, p.Tables, digits.Counted(p.Of, "table"), digits.Bytes(float64(p.Bytes)/2/elapsed))
	if p.Total > 0 && p.Bytes > 0 {
		left := float64(p.Total-p.Bytes) / (float64(p.Bytes) / elapsed)
		text = fmt.Sprintf("%s, %s, %s left", digits.Percent(min(1, float64(p.Bytes)/float64(p.Total))), text, digits.Age(max(0, left)))
	}
	return text
}

// startSandbox starts a server like the one that the backup is of.
func (f Flags) startSandbox(ctx context.Context, s screen.Streams, r *repo.Repo) (*sandbox.Sandbox, error) {
	m, err := r.Manifest(ctx, f.backup)
	if err != nil {
		return nil, Failure(ctx, err, false, nil)
	}
	h := m.Header
	if err := m.Close(); err != nil {
		return nil, err
	}
	spec := f.server
	if spec == "" {
		spec = sandbox.Like(ctx, h.Server.Flavour, h.Server.Number)
	}
	o := sandbox.Options{Name: f.sandbox, Servers: []string{spec}, Settings: sandboxSettings(h)}
	if screen.OnTerminal(s.Err) {
		o.Progress = func(step string) { fmt.Fprintln(s.Err, "·", step) }
	}
	return sandbox.Up(ctx, o)
}

// sandboxSettings are those under which the backup's names and rows find their place.
func sandboxSettings(h repo.Header) []string {
	out := []string{"local_infile=1", "event_scheduler=OFF"}
	if v, ok := h.Server.Variables["lower_case_table_names"]; ok && v != "2" {
		out = append(out, "lower_case_table_names="+v)
	}
	return out
}

// restoreRemedies are hints for errors of a restore.
var restoreRemedies = []struct {
	is     error
	remedy string
}{
	{load.ErrForged, "somebody wrote to the repository, or it is damaged: use another backup or its copy; nothing of this one was run"},
	{load.ErrKind, "give --datadir DIR, an empty folder, or --backup with the ID of a logical one"},
	{load.ErrExists, "--overwrite drops what is in the way, --rename uses another name"},
	{load.ErrOneName, "--rename gives a schema or table another name, --no-programs leaves triggers away"},
	{load.ErrIncompatible, "--skip-incompatible leaves that away"},
	{load.ErrUnfinished, "--overwrite starts over, --forget removes its journal"},
	{binlog.ErrRenamed, "--sandbox NAME instead of --into restores it under its own name, on a throw-away server"},
	{load.ErrPast, "--backup names an older one, as risso backup list shows them; if the server's clock was wrong, --to-gtid and --before do not need it"},
	{binlog.ErrPast, "--backup names an older one, as risso backup list shows them"},
	{load.ErrLogs, "--logs, --logs-dsn and --series name others"},
	{load.ErrBusy, "wait for it, or end it"},
	{load.ErrReadOnly, "if the server is no replica: SET GLOBAL read_only = OFF; else restore into its primary, or by an account that may write there all the same (SUPER; MariaDB: READ ONLY ADMIN, MySQL: CONNECTION_ADMIN)"},
	{load.ErrLeftOut, "create what is named by hand; a server like the backup's accepts all of it: --sandbox NAME"},
	{load.ErrBroken, "what they need has to be made by hand: a table, a column, their definer or its grants; --definer names another one"},
	{load.ErrOrphans, "correct or delete those rows, or restore their tables from the same backup, too"},
	{load.ErrMeet, "on the backup's server, or one of its kind (--sandbox NAME), change one of the two values or make the key not unique, take a new backup and restore that; in the meantime --forget and --schema or --table restore the rest"},
	{load.ErrNotKept, "a server like the backup's accepts them: --sandbox NAME"},
	{load.ErrDifferent, "somebody wrote there in the meantime, or the server stores rows differently"},
}

// Failure is an error and how to fix it. changed says whether the restore had begun to change the server.
func Failure(ctx context.Context, err error, changed bool, box *sandbox.Sandbox) error {
	code, remedy := fault.Failed, fleet.RemedyOf(err)
	// Whom to trust is the first thing to say.
	mistrusted := errors.Is(err, repo.ErrForged) || repo.Untrusted(err)
	for _, h := range restoreRemedies {
		if !mistrusted && errors.Is(err, h.is) {
			remedy = h.remedy
			break
		}
	}
	if errors.Is(err, load.ErrNothing) {
		code = fault.Usage
	}
	var unmet *pattern.UnmetError
	if errors.As(err, &unmet) {
		remedy = unmet.Remedy()
	}
	if ctx.Err() != nil {
		code, remedy = fault.Interrupted, ""
		if lent, ok := errors.AsType[*load.LentError](err); ok {
			err, remedy = fmt.Errorf("interrupted; %w", lent), lent.Remedy()
		} else {
			err = errors.New("interrupted")
		}
	}
	switch {
	case !changed:
		remedy = screen.Joined("nothing was changed", remedy)
	case !load.CameToEnd(err):
		remedy = screen.Joined(remedy, "run the same command again: it continues where it stopped; --forget removes its journal instead")
	}
	if box != nil {
		remedy = screen.Joined(remedy, "the sandbox is left as it is: risso sandbox down "+box.Name)
	}
	return fault.New(code, remedy, err)
}

// restoreText is the result in words.
func restoreText(out io.Writer, r load.Result) {
	for _, n := range r.Notes {
		fmt.Fprintln(out, "Note:", n)
	}
	for _, a := range r.Kept {
		fmt.Fprintf(out, "Note: account %s already exists: it is left unchanged\n", a)
	}
	for _, f := range r.Otherwise {
		fmt.Fprintln(out, "Otherwise:", f.Words())
	}
	for _, f := range r.LeftOut {
		fmt.Fprintln(out, "Left out:", f.Words())
	}
	for _, f := range r.Broken {
		fmt.Fprintf(out, "Broken: %s was restored but does not work: %s\n  %s\n", f.What, f.Why, f.Create)
	}
	for _, o := range r.Orphans {
		fmt.Fprintf(out, "Orphans: %s\n  %s\n", o.Words(), o.Query)
	}
	for _, t := range r.Different {
		fmt.Fprintf(out, "Different: %s.%s has %s, sum %s; the backup has %s\n", mysql.Quote(t.Schema), mysql.Quote(t.Table), digits.Counted(t.Rows, "row"), t.Sum, t.Wants)
	}
	fmt.Fprintf(out, "Backup %s of %s: %s, %s, %s, and %s restored in %s (%s/s)", r.Backup.ID, r.Backup.Server.Name, digits.Counted(r.Tables, "table"), digits.Counted(r.Rows, "row"),
		digits.Bytes(r.Bytes), digits.Counted(r.Objects, "object"), digits.Seconds(r.Seconds), digits.Bytes(float64(r.Bytes)/max(r.RowSeconds, 0.001)))
	if len(r.Different) == 0 {
		fmt.Fprintln(out, "; rows read back: all as in the backup")
	} else {
		fmt.Fprintf(out, "; %s\n", digits.Plural(len(r.Different), "table differs", "tables differ"))
	}
	if r.Rolled != nil {
		fmt.Fprintf(out, "Rolled forward by %s", digits.Counted(r.Rolled.Transactions, "transaction"))
		if r.Rolled.Resumed {
			fmt.Fprint(out, ", besides those that were applied before it was cut off")
		}
		if r.Rolled.Last != "" {
			fmt.Fprintf(out, ", the last %s", r.Rolled.Last)
		}
		if !r.Rolled.LastTime.IsZero() {
			fmt.Fprintf(out, " of %s", screen.Clock(r.Rolled.LastTime))
		}
		fmt.Fprintf(out, "; ended %s\n", r.Rolled.Stopped)
	}
	if r.LeftOutAll > 0 {
		fmt.Fprintf(out, "NOT all of the backup was restored: %s left out, see above\n", digits.Plural(r.LeftOutAll, "thing was", "things were"))
	}
}

// restorePlanText is the plan in words. some: not everything is restored.
func restorePlanText(out io.Writer, p load.Plan, some bool) {
	fmt.Fprintf(out, "Backup %s of %s (%s %s), as it was at %s\n", p.Backup.ID, p.Backup.Server.Name, p.Backup.Server.Flavour, p.Backup.Server.Version, p.Backup.Snapshot.Format(time.RFC3339))
	fmt.Fprintf(out, "into %s: %s, %s with %s (%s), %s\n", p.Target, digits.Counted(p.Schemas, "schema"), digits.Counted(p.Tables, "table"), digits.Counted(p.Rows, "row"), digits.Bytes(p.Bytes), digits.Counted(p.Objects, "other object"))
	for _, d := range p.Drops {
		fmt.Fprintln(out, "drops", d)
	}
	if n := p.DropsAll - int64(len(p.Drops)); n > 0 {
		fmt.Fprintln(out, "and drops", n, "more")
	}
	if p.Resumes {
		fmt.Fprintln(out, "continues an interrupted restore")
	}
	runsText(out, p)
	if p.Roll != nil {
		rollPlanText(out, *p.Roll, some)
	}
	fmt.Fprintln(out, "in this order:")
	screen.Steps(out, p.Steps)
	fmt.Fprintln(out, "Nothing was changed.")
}

// runsText lists all that a restore would run besides tables and rows.
func runsText(out io.Writer, p load.Plan) {
	for _, o := range p.Programs {
		text := "makes " + o.Kind + " " + mysql.Quote(o.Schema) + "." + mysql.Quote(o.Name)
		if o.Table != "" {
			text += " on " + mysql.Quote(o.Table)
		}
		if o.Definer != "" {
			text += ", definer " + o.Definer
		}
		if o.On {
			text += ", and switches it on at the end"
		}
		fmt.Fprintln(out, text)
	}
	for _, a := range p.Accounts {
		fmt.Fprintln(out, "makes account", a.Name, "unless it is there; then:")
		for _, g := range a.Grants {
			fmt.Fprintln(out, " ", g)
		}
	}
	for _, s := range p.Settings {
		fmt.Fprintln(out, "sets for a while:", s)
	}
}
