package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/store/blob"
)

func newBinlog(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "binlog",
		Short: "Binary logs: mirror them, find the bad statement, undo it, roll forward",
		Long: `Binary logs of MySQL and MariaDB: mirrored as they are written, searched for a mistake,
turned into the statements that undo it, or applied to a server up to just before it.

` + exitCodesHelp,
		Example: `  risso binlog follow --dsn 'risso@tcp(db1)/' --to /backups/db1
  risso binlog search --from /backups/db1 --table shop.orders --kind delete --rows-over 1000
  risso binlog undo --dsn 'risso@tcp(db1)/' --gtid 0-1-4711
  risso binlog apply --from /backups/db1 --after 0-1-4000 --before 0-1-4711 --into 'root@tcp(spare)/'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBinlogFollow(s), newBinlogList(s), newBinlogSearch(s), newBinlogUndo(s), newBinlogApply(s), newBinlogPurge(s))
	return cmd
}

// logFlags say which binary logs are read: files, a mirror, or a live server's.
type logFlags struct {
	serverFlags
	from, dir, series, identity string
	trust                       logTrust // whose mirrored logs are read; without a policy: all
}

func (f *logFlags) bind(cmd *cobra.Command) {
	f.serverFlags.bind(cmd, "the server whose logs are read")
	fl := cmd.Flags()
	fl.StringVar(&f.from, "from", "", "a place with mirrored logs: "+blob.Forms)
	fl.StringVar(&f.dir, "dir", "", "where the mirror writes the log that is not finished (default: the place if it is a folder)")
	fl.StringVar(&f.identity, "identity", "", "with --from: file with the age identity that opens an encrypted repository")
	fl.StringVar(&f.series, "series", "", "with --from: which series of logs, as risso binlog list calls it, or how that begins")
}

// logSource is where logs are read from. place and series are of mirrored logs.
type logSource struct {
	files  []binlog.File
	place  mirror.Place
	series mirror.Series
	live   bool // the logs are those of the server
	close  func()
}

// files gives the logs. close ends what is open.
func (f logFlags) files(ctx context.Context, args []string) (list []binlog.File, closeIt func(), err error) {
	src, err := f.source(ctx, args)
	return src.files, src.close, err
}

// source finds the logs.
func (f logFlags) source(ctx context.Context, args []string) (src logSource, err error) {
	src.close = func() {}
	given := 0
	for _, set := range []bool{len(args) > 0, f.from != "", f.dsn != "" && len(args) == 0 && f.from == ""} {
		if set {
			given++
		}
	}
	switch {
	case given == 0:
		return src, &exitError{code: exitUsage, err: errors.New("no binary logs to read"), hint: "name files, --from a place with mirrored logs, or --dsn of a live server"}
	case given > 1:
		return src, usageError("files and --from contradict each other")
	case len(args) > 0:
		src.files, err = binlog.FromPaths(args)
		return src, err
	case f.from != "":
		place, closePlace, err := openPlace(ctx, f.from, f.identity)
		if err != nil {
			return src, err
		}
		series, err := f.pick(ctx, place)
		if err != nil {
			closePlace()
			return src, err
		}
		return logSource{files: series.Files(f.trust.of(place), f.localDir()), place: place, series: series, close: closePlace}, nil
	}
	t, err := f.target()
	if err != nil {
		return src, err
	}
	src.live = true
	src.files, err = binlog.FromServer(ctx, t)
	return src, withHint(err)
}

// pick finds the series that is meant.
func (f logFlags) pick(ctx context.Context, place mirror.Place) (mirror.Series, error) {
	list, err := mirror.List(ctx, place, f.localDir())
	if err != nil {
		return mirror.Series{}, err
	}
	var fit []mirror.Series
	var keys []string
	for _, s := range list {
		keys = append(keys, s.Key)
		if s.Key == f.series {
			return s, nil
		}
		if strings.HasPrefix(s.Key, f.series) {
			fit = append(fit, s)
		}
	}
	switch {
	case len(list) == 0:
		return mirror.Series{}, fmt.Errorf("no mirrored logs in %s", placeWords(f.from))
	case len(fit) == 1:
		return fit[0], nil
	}
	return mirror.Series{}, &exitError{code: exitUsage, err: fmt.Errorf("%d series of logs fit: %s", len(fit), strings.Join(keys, ", ")), hint: "say which one with --series"}
}

// localDir is where the log is that is not finished.
func (f logFlags) localDir() string { return mirrorDir(f.dir, f.from) }

// mirrorDir is the folder of logs that are being written: what was said, or the place itself, or one of Risso's own.
func mirrorDir(dir, place string) string {
	if dir != "" {
		return dir
	}
	if rest, ok := strings.CutPrefix(place, "file://"); ok {
		place = rest
	}
	if !strings.Contains(place, "://") {
		return place
	}
	home := os.Getenv("XDG_STATE_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			user = "."
		}
		home = filepath.Join(user, ".local", "state")
	}
	clean := strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", r) {
			return r
		}
		return '_'
	}, placeWords(place))
	return filepath.Join(home, "risso", "mirror", clean)
}

// openPlace opens a place for mirrored logs, and the repository that lies there, if one does.
func openPlace(ctx context.Context, place, identity string) (mirror.Place, func(), error) {
	var p mirror.Place
	if err := blob.Check(place); err != nil {
		return p, nil, err
	}
	keys, err := repoKeys(nil, identity)
	if err != nil {
		return p, nil, err
	}
	store, err := blob.Open(ctx, place, blob.Options{})
	if err != nil {
		return p, nil, err
	}
	p.Store, p.Name = repo.On(store), placeID(place)
	if p.Repo, err = repo.OpenWith(ctx, p.Store, keys); err != nil && !errors.Is(err, repo.ErrNoRepository) {
		store.Close()
		return p, nil, repoFailure(ctx, place, err)
	}
	return p, func() { store.Close() }, nil
}

// withHint gives an error of a server with what mends it.
func withHint(err error) error {
	var e *mysql.Error
	switch {
	case err == nil:
		return nil
	case mysql.ClassOf(err) == mysql.ClassPrivilege:
		return failure(exitFailed, "the account needs REPLICATION SLAVE and REPLICATION CLIENT (MariaDB: BINLOG MONITOR)", err)
	case errors.As(err, &e):
		return failure(exitFailed, e.Hint, err)
	case errors.Is(err, binlog.ErrNoUndo):
		return failure(exitFailed, "bring the table back as it was before: risso restore --from PLACE --table SCHEMA.TABLE --before GTID", err)
	case errors.Is(err, binlogevent.ErrNotBinlog):
		return failure(exitFailed, "name the files as in SHOW BINARY LOGS, without the .index file and the .idx files of MariaDB", err)
	case mistrusted(err) != "":
		return failure(exitFailed, mistrusted(err), err)
	}
	return err
}

// ended makes an interrupted command say so.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &exitError{code: exitInterrupted, err: errors.New("interrupted")}
	}
	return withHint(err)
}

// tableFlags say which tables are meant.
type tableFlags struct {
	schemas, tables []string
	choice          *pattern.Choice // of filter
}

func (f *tableFlags) bind(cmd *cobra.Command, what string) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.schemas, "schema", nil, what+" of this schema; patterns with * allowed; may be repeated")
	fl.StringArrayVar(&f.tables, "table", nil, what+" of this table, schema.table; patterns with * allowed, a name with dots in backticks; may be repeated")
}

// filter gives nil where nothing was said.
func (f *tableFlags) filter() (binlog.TableFilter, error) {
	if len(f.schemas)+len(f.tables) == 0 {
		return nil, nil
	}
	var err error
	if f.choice, err = pattern.NewChoice(f.schemas, f.tables); err != nil {
		return nil, usageError("--table: %w", err)
	}
	return f.choice.Table, nil
}

// schema says whether a schema may have tables that are meant.
func (f *tableFlags) schema(name string) bool { return f.choice.May(name, false) }

// unmet is an error that says which names nothing has been called that was read; in are the events in which there is none.
func (f *tableFlags) unmet(in string) error {
	var unmet *pattern.UnmetError
	if f.choice == nil || !errors.As(f.choice.Unmet(), &unmet) {
		return nil
	}
	return failure(exitFailed, unmet.Hint(), fmt.Errorf("%s changes %s", in, strings.Join(unmet.Names, ", nor ")))
}

// misnamed says whether one of these names is no pattern.
func (f *tableFlags) misnamed() bool {
	var unmet *pattern.UnmetError
	return f.choice != nil && errors.As(f.choice.Unmet(), &unmet) && unmet.Exact() != nil
}

// parsePlace reads FILE:POSITION.
func parsePlace(s string) (file string, pos int64, err error) {
	i := strings.LastIndexByte(s, ':')
	if i > 0 {
		if pos, err = strconv.ParseInt(s[i+1:], 10, 64); err == nil && pos >= 4 {
			return s[:i], pos, nil
		}
	}
	return "", 0, fmt.Errorf("%q: write it as FILE:POSITION, such as binlog.000017:4711", s)
}

// rollProgress shows how far the reading of logs is.
func rollProgress(p *progress) func(binlog.Progress) {
	return func(b binlog.Progress) { p.set(b.Bytes, b.Total) }
}

func newBinlogList(s Streams) *cobra.Command {
	var f logFlags
	var output string
	var verify bool
	cmd := &cobra.Command{
		Use:   "list [FILE…] [--from PLACE | --dsn DSN]",
		Short: "List binary logs: times, GTIDs, sizes, gaps",
		Long: `Lists binary logs with their first and last times, GTIDs and sizes, and the gaps between
them. Files and logs of a live server are read for that; of mirrored logs the index tells,
and --verify reads them and compares.

` + exitCodesHelp,
		Example: `  risso binlog list --from /backups/db1
  risso binlog list --from /backups/db1 --verify
  risso binlog list /var/lib/mysql/binlog.0000*`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runBinlogList(cmd.Context(), s, f, output, verify, args)
		},
	}
	f.bind(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&verify, "verify", false, "read every mirrored log and compare it with its index")
	outputVar(fl, &output, "", "text", "json")
	return cmd
}

// listedLogs is a series as it is shown.
type listedLogs struct {
	Series string       `json:"series,omitempty"`
	Logs   []mirror.Log `json:"logs"`
	Gaps   []mirror.Gap `json:"gaps"`
	Lost   []string     `json:"lost,omitempty"` // logs that lie there without their index, which are not read
	lacks  string       // the same in words
}

func runBinlogList(ctx context.Context, s Streams, f logFlags, output string, verify bool, args []string) error {
	if verify && f.from == "" {
		return usageError("--verify is for mirrored logs: say --from PLACE")
	}
	var out []listedLogs
	var failed error
	cut := false // a log that others follow
	p := newProgress(s.Err)
	defer p.end()
	if f.from != "" && len(args) == 0 {
		place, closeIt, err := openPlace(ctx, f.from, f.identity)
		if err != nil {
			return err
		}
		defer closeIt()
		list, err := mirror.List(ctx, place, f.localDir())
		if err != nil {
			return ended(ctx, err)
		}
		for _, series := range list {
			if !strings.HasPrefix(series.Key, f.series) {
				continue
			}
			if verify {
				if err := verifySeries(ctx, place, series, p); err != nil {
					return ended(ctx, err)
				}
			}
			out = append(out, listedLogs{series.Key, series.Logs, series.Gaps(), series.Lost, series.Lacks()})
		}
		if len(out) == 0 {
			return fmt.Errorf("no mirrored logs in %s", placeWords(f.from))
		}
	} else {
		files, closeIt, err := f.files(ctx, args)
		if err != nil {
			return err
		}
		defer closeIt()
		var l listedLogs
		for i, file := range files {
			x, err := scanFile(ctx, file)
			if err != nil && !errors.Is(err, binlogevent.ErrTorn) {
				return ended(ctx, err)
			}
			if err != nil {
				fmt.Fprintf(s.Err, "risso: %v\n", err)
				cut = cut || i+1 < len(files)
			}
			l.Logs = append(l.Logs, mirror.Log{Index: x})
		}
		l.Gaps = mirror.Series{Logs: l.Logs}.Gaps()
		out = append(out, l)
	}
	p.end()
	if cut {
		failed = errors.New("a log ends in its middle, and another one follows")
	}
	if output == "json" {
		return errors.Join(render.JSON(s.Out, out), failed)
	}
	for _, l := range out {
		listText(s, l, verify)
	}
	return failed
}

func scanFile(ctx context.Context, file binlog.File) (binlog.Index, error) {
	in, err := file.Open(ctx)
	if err != nil {
		return binlog.Index{}, err
	}
	defer in.Close()
	return binlog.Scan(ctx, file.Name, in)
}

func verifySeries(ctx context.Context, place mirror.Place, series mirror.Series, p *progress) error {
	var total, done int64
	for _, l := range series.Logs {
		total += l.Size
	}
	for _, l := range series.Logs {
		if l.Finished {
			if err := mirror.Verify(ctx, place, series.Key, l); err != nil {
				return fmt.Errorf("%s is damaged: %w", l.Name, err)
			}
		}
		done += l.Size
		p.set(done, total)
	}
	return nil
}

func listText(s Streams, l listedLogs, verified bool) {
	if l.Series != "" {
		fmt.Fprintf(s.Out, "%s\n", l.Series)
	}
	t := render.Table{Heads: []string{"log", ">size", ">stored", "first", "last", ">transactions", "GTIDs until its end"}}
	for _, x := range l.Logs {
		stored := "being written"
		if x.Stored > 0 {
			stored = render.Bytes(float64(x.Stored))
		} else if x.Finished || l.Series == "" {
			stored = "-"
		}
		if x.Locked {
			stored += ", encrypted"
		}
		t.Rows = append(t.Rows, []string{x.Name, render.Bytes(float64(x.Size)), stored, clock(x.First), clock(x.Last), strconv.FormatInt(x.Transactions, 10), x.After.String()})
	}
	for _, line := range t.Lines(widthOf(s.Out)) {
		fmt.Fprintln(s.Out, line)
	}
	for _, g := range l.Gaps {
		fmt.Fprintf(s.Out, "GAP: transactions are missing %s\n", g)
	}
	if l.lacks != "" {
		fmt.Fprintln(s.Out, "LOST:", l.lacks)
	}
	if verified {
		fmt.Fprintln(s.Out, "every finished log reads as its index says")
	}
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

func newBinlogPurge(s Streams) *cobra.Command {
	var f logFlags
	var keep, output string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "purge --from PLACE --keep DURATION",
		Short: "Remove mirrored logs that are older than is wanted",
		Long: `Removes finished logs from a mirror, the oldest first and without leaving a hole, when their
last event is older than --keep. The newest log of a series always stays. No backup from
before a removed log can be rolled forward any more: keep logs as long as backups.

` + exitCodesHelp,
		Example: `  risso binlog purge --from /backups/db1 --keep 14d --dry-run`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.from == "" || keep == "" {
				return usageError("say --from PLACE and --keep, such as 14d")
			}
			age, err := digits.ParseAge(keep)
			if err != nil {
				return usageError("--keep: %w", err)
			}
			return runBinlogPurge(cmd.Context(), s, f, age, dryRun, output)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.from, "from", "", "a place with mirrored logs: "+blob.Forms)
	fl.StringVar(&f.dir, "dir", "", "where the mirror writes the log that is not finished (default: the place if it is a folder)")
	fl.StringVar(&keep, "keep", "", "how old a log's last event may be: 14d, 36h")
	fl.BoolVar(&dryRun, "dry-run", false, "show what would go, and why")
	outputVar(fl, &output, "", "text", "json")
	return cmd
}

func runBinlogPurge(ctx context.Context, s Streams, f logFlags, keep time.Duration, dryRun bool, output string) error {
	place, closeIt, err := openPlace(ctx, f.from, f.identity)
	if err != nil {
		return err
	}
	defer closeIt()
	list, err := mirror.List(ctx, place, f.localDir())
	if err != nil {
		return ended(ctx, err)
	}
	gone := mirror.Expired(list, keep, time.Now())
	if !dryRun {
		for _, d := range gone {
			if err := mirror.Remove(ctx, place, f.localDir(), d); err != nil {
				return ended(ctx, err)
			}
		}
	}
	if output == "json" {
		return render.JSON(s.Out, purgedAnswer{dryRun, gone})
	}
	verb := map[bool]string{true: "would remove", false: "removed"}[dryRun]
	for _, d := range gone {
		fmt.Fprintf(s.Out, "%s %s/%s (%s): %s\n", verb, d.Key, d.Name, render.Bytes(float64(d.Stored)), d.Reason)
	}
	if len(gone) == 0 {
		fmt.Fprintln(s.Out, "no log is old enough to go")
	}
	return nil
}
