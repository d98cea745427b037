// Package backup holds the commands that keep backups: backup and its subcommands, verify, drill.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/snapshot"
	"github.com/rissodb/risso/internal/release"
	"github.com/rissodb/risso/internal/sqltext"
	"github.com/rissodb/risso/internal/store/blob"
)

type backupFlags struct {
	flags.Server
	flags.Throttle
	physicalFlags
	flags.Encrypt
	to, output, method       string
	schemas, tables, exclude []string
	replicas                 []string
	threads                  int
	lockWait, longQuery      time.Duration
	killLong, dryRun         bool
	noUsers, noRows          bool
	noHistory, partial       bool
	smaller                  bool
	compress                 string
}

// New is risso backup, with what is below it.
func New(s screen.Streams) *cobra.Command {
	var f backupFlags
	cmd := &cobra.Command{
		Use:   "backup --dsn DSN --to PLACE",
		Short: "Take a backup: consistent, parallel, unchanged data stored only once",
		Long: `Takes a logical backup: rows and definitions as they were at one moment, with the matching position
in the binary logs. A place is ` + blob.Forms + `.
S3 keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from ~/.aws/credentials.

A consistent view is taken without a lock if the server allows it (MariaDB with binary logs),
otherwise under a lock held for a few statements. If a lock is not granted in time, or other
sessions queue behind it, the request is withdrawn and repeated later. See docs/backup.md.

` + physicalHelp + `

` + fault.Help,
		Example: `  risso backup --dsn 'risso:secret@tcp(db1:3306)/' --to /backups/db1
  risso backup --dsn 'root@unix(/run/mysqld/mysqld.sock)/' --to 's3://backups/db1?region=eu-central-1'
  risso backup --dsn 'risso@tcp(db1)/' --to /backups/db1 --schema 'shop*' --exclude shop.sessions --dry-run
  risso backup --dsn 'risso@tcp(db1)/' --to /backups/db1 --max-lag 10s --replica 'risso@tcp(db2)/' --max-rate 50MB`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.physicalFlags.check(cmd); err != nil {
				return err
			}
			return runBackup(cmd.Context(), s, f)
		},
	}
	fl := cmd.Flags()
	f.Server.Bind(cmd, "the server to back up")
	fl.StringVar(&f.to, "to", "", "where to: "+blob.Forms)
	fl.StringArrayVar(&f.schemas, "schema", nil, "only this schema; patterns with * allowed; may be repeated")
	fl.StringArrayVar(&f.tables, "table", nil, "only this table, schema.table; patterns with * allowed; may be repeated")
	fl.StringArrayVar(&f.exclude, "exclude", nil, "not this schema, or schema.table; patterns with * allowed; may be repeated")
	fl.IntVar(&f.threads, "threads", min(runtime.NumCPU(), 8), "sessions that read")
	fl.BoolVar(&f.partial, "partial", false, "back up what the account may read if it may not see everything; the backup is marked as partial")
	fl.BoolVar(&f.smaller, "accept-smaller", false, "accept that this backup holds much less than the one before it, or no table at all")
	fl.BoolVar(&f.noUsers, "no-users", false, "leave out users, roles and grants")
	fl.BoolVar(&f.noRows, "no-rows", false, "definitions only")
	fl.BoolVar(&f.noHistory, "no-history", false, "leave out the history of tables WITH SYSTEM VERSIONING (MariaDB)")
	fl.StringVar(&f.compress, "compress", "fast", "fast (zstd), or none if the place is faster than the processor")
	flags.DurationVar(fl, &f.lockWait, "lock-wait", 5*time.Second, "how long to wait for a lock before the request is withdrawn, to be repeated later")
	fl.StringVar(&f.method, "snapshot", "auto", "how a consistent view is taken: auto, binlog (no lock), stage (BACKUP STAGE), global-lock (FLUSH TABLES WITH READ LOCK), table-locks (LOCK TABLES), comparison")
	fl.BoolVar(&f.killLong, "kill-long-queries", false, "kill statements that a lock would have to wait for")
	flags.DurationVar(fl, &f.longQuery, "long-query", time.Second, "a statement that runs longer than this counts as long")
	fl.StringArrayVar(&f.replicas, "replica", nil, "with --max-lag: a replica to watch, written as --dsn; may be repeated")
	fl.BoolVar(&f.dryRun, "dry-run", false, "show what would be read and how, without reading any row")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	f.Throttle.Bind(cmd)
	f.physicalFlags.bind(cmd)
	f.Encrypt.Bind(cmd)
	cmd.AddCommand(newBackupList(s), newBackupShow(s), newBackupPrune(s), newBackupCopy(s), newBackupAccept(s), newKey(s))
	return cmd
}

// methodNames are the values of --snapshot.
var methodNames = map[string]snapshot.Method{"auto": "", "binlog": snapshot.ByBinlog, "stage": snapshot.ByStage, "global-lock": snapshot.ByGlobalLock, "table-locks": snapshot.ByTableLocks, "comparison": snapshot.ByComparison}

// options reads the flags.
func (f backupFlags) options() (o dump.Options, err error) {
	method, known := methodNames[f.method]
	o = dump.Options{Select: dump.Selection{Schemas: f.schemas, Tables: f.tables, Exclude: f.exclude}, Threads: f.threads, NoAccounts: f.noUsers, NoRows: f.noRows, NoHistory: f.noHistory, Partial: f.partial, Smaller: f.smaller, NoCompression: f.compress == "none", Tool: "risso " + release.Version(),
		Snapshot: snapshot.Options{LockWait: f.lockWait, Method: method, Guard: snapshot.Guard{KillLong: f.killLong, LongQuery: f.longQuery}}}
	switch {
	case !known:
		return o, fault.Usagef("--snapshot %q: auto, binlog, stage, global-lock, table-locks or comparison", f.method)
	case f.compress != "fast" && f.compress != "none":
		return o, fault.Usagef("--compress %q: fast or none", f.compress)
	case f.threads < 1 || f.threads > 64:
		return o, fault.Usagef("--threads %d: 1 to 64", f.threads)
	case f.lockWait < 10*time.Millisecond || f.lockWait > time.Hour:
		return o, fault.Usagef("--lock-wait %s: 10ms to 1h", f.lockWait)
	case f.longQuery <= 0:
		return o, fault.Usagef("--long-query %s: more than 0", f.longQuery)
	case len(f.replicas) > 0 && f.MaxLag <= 0:
		return o, fault.Usagef("--replica is for --max-lag: say how far behind it may be")
	case f.to == "" && !f.dryRun:
		return o, fault.New(fault.Usage, "give --to "+blob.Forms, errors.New("no place for the backup"))
	}
	if _, err := f.Limits(1); err != nil {
		return o, err
	}
	if err := o.Select.Check(); err != nil {
		return o, fault.Usagef("%w", err)
	}
	if f.to != "" {
		if err := blob.Check(f.to); err != nil {
			return o, err
		}
	}
	if o.Target, err = f.Target(); err != nil {
		return o, err
	}
	if o.Name = f.Dsn; strings.ContainsAny(f.Dsn, "@/(:") || f.Dsn == "" {
		o.Name = o.Target.Address()
	}
	return o, nil
}

func runBackup(ctx context.Context, s screen.Streams, f backupFlags) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	replicas, err := f.Others(f.replicas)
	if err != nil {
		return err
	}
	keys, err := f.Keys()
	if err != nil {
		return err
	}
	debug.SetGCPercent(50) // the buffers for chunks are large and live long: they must not double the memory
	progress := screen.NewProgress(s.Err)
	defer progress.End()
	var events []snapshot.GuardEvent
	o.Snapshot.Guard.Said = func(e snapshot.GuardEvent) {
		e.Text = strings.TrimSpace(string(sqltext.Redact(nil, []byte(e.Text))))
		events = append(events, e)
		progress.Clear()
		fmt.Fprintln(s.Err, "risso:", guardWords(e))
	}
	if f.physicalFlags.on {
		return f.runPhysical(ctx, s, o, replicas, keys)
	}
	if f.dryRun {
		plan, err := dump.MakePlan(ctx, o)
		if err != nil {
			return backupFailure(ctx, err)
		}
		if f.output == "json" {
			return render.JSON(s.Out, plan)
		}
		planText(s.Out, plan, f.to)
		return nil
	}
	r, closePlace, err := places.Make(ctx, f.to, keys)
	if err != nil {
		return err
	}
	defer closePlace()
	o.Waiting = waitsFor(progress, s.Err)
	if err := r.Idle(ctx, o.Waiting); err != nil {
		return backupFailure(ctx, err)
	}
	gate, err := f.Gate(ctx, f.threads+1, o.Target, replicas...)
	if err != nil {
		return err
	}
	defer gate.Close()
	o.Gate = gate
	o.Progress = func(p dump.Progress) {
		progress.Show(func(elapsed float64) string { return backupProgress(p, elapsed) })
	}
	result, err := dump.Run(ctx, r, o)
	progress.End()
	if err != nil {
		return backupFailure(ctx, err)
	}
	if result.Hollow != "" {
		fmt.Fprintln(s.Err, "risso: "+fault.Line("it proves nothing, and replaces no other backup: "+result.Hollow, "if it is right: risso backup accept --from "+places.Words(f.to)+" "+result.Header.ID))
	}
	held, _ := gate.Held()
	if f.output == "json" {
		return render.JSON(s.Out, Answer{result, places.Words(f.to), held.Seconds(), events})
	}
	backupText(s.Out, result, places.Words(f.to), held)
	return nil
}

// waitsFor says that a backup waits for a prune, also where no progress is shown.
func waitsFor(p *screen.Progress, w io.Writer) func(repo.Holder) {
	return func(h repo.Holder) {
		p.Clear()
		fmt.Fprintf(w, "risso: waiting for %s, which removes what no backup needs any more\n", h)
	}
}

// backupFailure is an error and how to fix it.
func backupFailure(ctx context.Context, err error) error {
	var blind *define.BlindError
	var closed *dump.ClosedError
	switch {
	case ctx.Err() != nil:
		return fault.New(fault.Interrupted, "this run produced no backup; what was stored is reused by the next one", errors.New("interrupted"))
	case errors.As(err, &blind):
		remedy := blind.Remedy()
		if blind.Part {
			remedy += "; or say --partial to back up what the account may read, marked as a part"
		}
		return fault.New(fault.Failed, remedy, err)
	case errors.As(err, &closed):
		var names []string
		for _, t := range closed.Tables[:min(len(closed.Tables), 20)] {
			names = append(names, "--exclude '"+strings.ReplaceAll(t.String(), "'", `'\''`)+"'")
		}
		return fault.New(fault.Failed, "CHECK TABLE says more; repair them, drop them, or leave them out: "+strings.Join(names, " "), err)
	case errors.Is(err, dump.ErrNothing):
		return fault.New(fault.Usage, "", err)
	case errors.Is(err, snapshot.ErrStalls):
		return fault.New(fault.Failed, "repeat the backup: nothing is stored twice; with a longer --lock-wait it lets others wait longer", err)
	case errors.Is(err, dump.ErrChanged):
		return fault.New(fault.Failed, "repeat the backup: nothing is stored twice; with PROCESS, on MySQL 8 and later BACKUP_ADMIN, it can block schema changes", err)
	case errors.Is(err, snapshot.ErrLocks):
		return fault.New(fault.Failed, "raise --lock-wait, use --kill-long-queries, or take the backup from a replica", err)
	case fleet.RemedyOf(err) != "":
		return err
	}
	return fault.New(fault.Failed, "this run produced no backup; what was stored is reused by the next one", err)
}
