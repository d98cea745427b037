package explain

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/explain/digest/binlog"
	"github.com/rissodb/risso/internal/explain/digest/filter"
	"github.com/rissodb/risso/internal/explain/digest/parallel"
	"github.com/rissodb/risso/internal/explain/digest/report"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
)

type digestFlags struct {
	flags.Server
	groupBy, filter, since, until, limit, orderBy, format, output, zone string
	redact, follow, planParallel, own, mergeTables                      bool
	interval, window                                                    time.Duration
	samples, workers, sampleBytes                                       int
	wholeSamples                                                        bool // --sample-bytes was given
	server                                                              bool // a server is read, no log
}

// NewDigest is risso digest.
func NewDigest(s screen.Streams) *cobra.Command {
	var f digestFlags
	cmd := &cobra.Command{
		Use:   "digest FILE… | - | --dsn DSN",
		Short: "Find expensive statements: profile slow logs, general logs, binary logs, or a live server",
		Long: `Shows which statements cost the most: reads slow logs, general logs, binary logs and the output
of mysqlbinlog, or performance_schema of a live server, groups statements that differ only in
their values into classes, and ranks the classes by the time they took.

Logs may be compressed (gzip, zstd, bzip2, xz, lz4), in UTF-16, CSV of mysql.slow_log or
mysql.general_log, or wrapped in lines of Docker, Kubernetes, syslog or JSON. Parts of a log
that cannot be read are reported, and the exit code is then 1.

An expression for --filter compares attributes of the log by name:
  Query_time > 100ms and db == "shop" and not (Full_scan or user =~ "^batch")
  Rows_examined > 1000 * Rows_sent            verb in ("UPDATE", "DELETE")
See docs/digest.md.

` + fault.Help,
		Example: `  risso digest /var/lib/mysql/slow.log
  zcat slow.log.*.gz | risso digest --since 2h --output html - >slow.html
  risso digest --filter 'Query_time > 1s and db == "shop"' --order-by Query_time:max slow.log
  risso digest --group-by user slow.log
  risso digest --follow --interval 1m /var/lib/mysql/slow.log
  risso digest --plan-parallel slow.log
  risso digest mysql-bin.000017
  risso digest --dsn 'risso:secret@tcp(db1:3306)/' --for 10s`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.wholeSamples = cmd.Flags().Changed("sample-bytes")
			f.server = f.Dsn != "" || len(args) == 0 && slices.ContainsFunc([]string{"for", "config", "defaults-file"}, cmd.Flags().Changed)
			return runDigest(cmd.Context(), s, f, args)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.groupBy, "group-by", "fingerprint", "what makes a class: fingerprint, db, user, host, tables, or an attribute of the log")
	fl.BoolVar(&f.mergeTables, "merge-tables", false, "treat tables as one if their names differ only in numbers or hashes: orders_1, orders_2, orders_5d41402abc4b2a76…")
	fl.StringVar(&f.filter, "filter", "", "count only events that match this expression")
	fl.StringVar(&f.since, "since", "", "count only events at this time or later: a time (2026-03-01, '2026-03-01 10:00'), or how long ago (2h, 7d)")
	fl.StringVar(&f.until, "until", "", "count only events before this time")
	fl.StringVar(&f.limit, "limit", "", "classes to list: 20, 95%, 95%:20 (whichever comes first), all (default 95%:20; JSON and CSV: all)")
	fl.StringVar(&f.orderBy, "order-by", "", "what ranks the classes: calls, or ATTRIBUTE:sum|max|min|avg|p95|median|stddev|count (default Query_time:sum; binary logs: Log_bytes:sum)")
	fl.BoolVar(&f.redact, "redact", false, "hide literal values in samples; statements that set passwords are always cut")
	fl.BoolVar(&f.follow, "follow", false, "follow files as they grow and rotate: a report each interval, until Ctrl-C")
	flags.DurationVar(fl, &f.interval, "interval", 10*time.Second, "with --follow: how often")
	fl.StringVar(&f.format, "format", "auto", "what the files are: "+strings.Join(digest.Formats, ", "))
	fl.IntVar(&f.samples, "samples", 1, "slowest statements to keep per class; 0: none")
	fl.IntVar(&f.sampleBytes, "sample-bytes", defaultSampleBytes, "bytes of each sample to keep and show; 0: all (8 MiB at most)")
	fl.BoolVar(&f.own, "own", false, "also count Risso's own statements, which carry the comment /* risso: why */")
	fl.IntVar(&f.workers, "threads", 0, "processors to use (default: all)")
	flags.OutputVar(fl, &f.output, "", report.Forms...)
	fl.StringVar(&f.zone, "timezone", "UTC", "time zone of times shown, and of times written without one: UTC, Local, Europe/Berlin")
	fl.BoolVar(&f.planParallel, "plan-parallel", false, "show what replication appliers that work by schema could gain")
	f.Bind(cmd, "read performance_schema of this server")
	flags.DurationVar(fl, &f.window, "for", 10*time.Second, "how long to watch the server that --dsn, RISSO_DSN or an option file names; 0: since the server began to count")
	return cmd
}

// defaultSampleBytes is how much is kept of a sample; people are then shown its first 2,048 characters.
const defaultSampleBytes = 16 << 10

// quickLog is how many bytes of logs are read before garbage is collected as usual.
const quickLog = 64 << 20

// digestJob is a digest with its flags read.
type digestJob struct {
	digestFlags
	s       screen.Streams
	options digest.Options
	report  report.Options
	limit   report.Limit
	filter  *filter.Filter
	counter *parallel.Counter
}

func runDigest(ctx context.Context, s screen.Streams, f digestFlags, files []string) error {
	j, err := f.job(s, files)
	if err != nil {
		return err
	}
	if f.server {
		return j.live(ctx)
	}
	var once sync.Once
	progress := screen.NewProgress(s.Err)
	j.options.Progress = progress.Set
	switch {
	case f.sampleBytes == 0 || f.sampleBytes > 1<<20:
		debug.SetGCPercent(20) // long samples are copied now and then: that must not double the memory
	case !f.follow:
		debug.SetGCPercent(400) // a log that is read in a moment is not worth a collection
		j.options.Progress = func(done, total int64) {
			if done > quickLog {
				once.Do(func() { debug.SetGCPercent(100) })
			}
			progress.Set(done, total)
		}
	}
	if f.follow {
		j.options.Progress = nil
	}
	sources, err := j.sources(files)
	if err != nil {
		return err
	}
	var broken, lost error
	if f.follow {
		j.options.Each = func(p *digest.Profile) {
			broken = cmp.Or(broken, j.write(p))
			lost = cmp.Or(lost, lostIn(p))
		}
	}
	p, err := digest.Run(ctx, j.options, sources...)
	progress.End()
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, digest.ErrOption):
		return fault.New(fault.Usage, "", err)
	case err != nil:
		return readFailure(err)
	case broken != nil:
		return broken
	}
	none := p.NoLog(f.format)
	switch {
	case f.follow && p.Calls == 0: // nothing came since the last report
		return cmp.Or(lost, lostIn(p))
	case !f.follow && none != nil && p.Calls == 0:
		return none
	}
	for _, told := range []string{p.PassedOver(), p.Quiet()} {
		if told != "" && (f.output == "csv" || f.planParallel) { // the other forms have it
			fmt.Fprintln(s.Err, told)
		}
	}
	if err := j.write(p); err != nil {
		return err
	}
	if !f.follow && none != nil {
		return none
	}
	return cmp.Or(lost, lostIn(p))
}

// lostIn is an error if something in the logs is missing from the profile.
func lostIn(p *digest.Profile) error {
	lost := p.Lost()
	if lost == "" {
		return nil
	}
	return fault.New(fault.Failed, "the report above is of what could be read", fmt.Errorf("not all of the log was read: %s", lost))
}

// job reads the flags.
func (f digestFlags) job(s screen.Streams, files []string) (*digestJob, error) {
	if err := f.check(files); err != nil {
		return nil, err
	}
	zone, err := flags.Zone(f.zone)
	if err != nil {
		return nil, err
	}
	j := &digestJob{digestFlags: f, s: s, report: report.Options{Location: zone, Filter: f.filter, Redacted: f.redact, Whole: f.wholeSamples, Width: screen.Width(s.Out)}}
	now := time.Now()
	j.options = digest.Options{GroupBy: f.groupBy, OrderBy: f.orderBy, Samples: f.samples, Redact: f.redact, Workers: f.workers, Format: f.format,
		Location: zone, Follow: f.follow, Every: f.interval, Own: f.own, SampleBytes: f.sampleBytes, Streams: binlogStreams(zone), MergeTables: f.mergeTables}
	if f.sampleBytes == 0 {
		j.options.SampleBytes = -1 // all of it
	}
	j.options.Samples = max(f.samples, 1) // a class's tables come from its sample
	if j.options.Since, err = flags.Moment(f.since, now, zone); err != nil {
		return nil, fault.Usagef("--since %w", err)
	}
	if j.options.Until, err = flags.Moment(f.until, now, zone); err != nil {
		return nil, fault.Usagef("--until %w", err)
	}
	if j.limit, err = f.classLimit(); err != nil {
		return nil, fault.Usagef("--limit %w", err)
	}
	if f.filter != "" {
		if j.filter, err = filter.Compile(f.filter); err != nil {
			return nil, filterFailure(s.Err, err)
		}
		j.options.Filter = j.filter
	}
	if f.planParallel {
		j.counter = parallel.NewCounter(j.options.Filter)
		j.options.Filter = j.counter
	}
	return j, nil
}

// check finds flags that do not go together.
func (f digestFlags) check(files []string) error {
	switch {
	case !f.server && len(files) == 0:
		return fault.New(fault.Usage, "name files, - for standard input, or --dsn or --for for a live server", errors.New("no log to read"))
	case f.Dsn != "" && len(files) > 0:
		return fault.Usagef("--dsn reads a server and takes no files")
	case f.server && (f.follow || f.planParallel || f.filter != "" || f.since != "" || f.until != ""):
		return fault.Usagef("--follow, --plan-parallel, --filter, --since and --until need single events: performance_schema has only their sums")
	case f.mergeTables && (f.server || f.groupBy != "fingerprint"):
		return fault.Usagef("--merge-tables joins classes of statements of logs: not of a server, nor with --group-by")
	case f.follow && (f.output == "html" || f.output == "csv"):
		return fault.Usagef("--follow writes text, json or markdown")
	case f.follow && f.interval < time.Second:
		return fault.Usagef("--interval %s: at least 1s", f.interval)
	case f.planParallel && f.output != "text" && f.output != "json":
		return fault.Usagef("--plan-parallel writes text or json")
	case !slices.Contains(digest.Formats, f.format):
		return fault.Usagef("--format %q: %s", f.format, strings.Join(digest.Formats, ", "))
	case f.samples < 0 || f.samples > 100:
		return fault.Usagef("--samples %d: 0 to 100", f.samples)
	case f.sampleBytes < 0:
		return fault.Usagef("--sample-bytes %d: must be 0 (all) or more", f.sampleBytes)
	case f.workers < 0 || f.workers > 1024:
		return fault.Usagef("--threads %d: 0 to 1024", f.workers)
	case f.window < 0:
		return fault.Usagef("--for %s: must not be negative", f.window)
	case slices.Contains(files, "-") && len(files) > 1:
		return fault.Usagef("- is standard input and must be alone")
	}
	return nil
}

// classLimit is --limit, or what suits the form: people read the classes that matter, programs get all.
func (f digestFlags) classLimit() (report.Limit, error) {
	switch {
	case f.limit != "":
		return report.ParseLimit(f.limit)
	case f.output == "json" || f.output == "csv":
		return report.Limit{}, nil
	}
	return report.Limit{Classes: 20, Share: 0.95}, nil
}

// filterFailure shows an expression's error: on a terminal the expression with the place marked, too.
func filterFailure(w io.Writer, err error) error {
	var e *filter.Error
	if errors.As(err, &e) && screen.OnTerminal(w) && !strings.ContainsAny(e.Source, "\r\n\t") {
		fmt.Fprintln(w, e.Pointer())
	}
	return fault.New(fault.Usage, "", fmt.Errorf("--%w", err))
}

// readFailure makes one line of what went wrong with a file.
func readFailure(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		remedy := ""
		if errors.Is(err, fs.ErrPermission) {
			remedy = "the log belongs to the server's account: run as it, or as root"
		}
		return fault.New(fault.Failed, remedy, fmt.Errorf("%s: %w", p.Path, p.Err))
	}
	return err
}

// sources opens nothing but what has to be looked into.
func (j *digestJob) sources(files []string) ([]digest.Source, error) {
	var out []digest.Source
	for _, name := range files {
		if name == "-" {
			s, err := j.stdin()
			if err != nil {
				return nil, err
			}
			out = append(out, s)
			continue
		}
		s, err := digest.File(name)
		if err != nil {
			return nil, readFailure(err)
		}
		out = append(out, s)
	}
	return out, nil
}

func (j *digestJob) stdin() (digest.Source, error) {
	if screen.OnTerminal(j.s.In) {
		return digest.Source{}, fault.New(fault.Usage, "zcat slow.log.gz | risso digest -", errors.New("- reads a log from standard input, and that is the terminal"))
	}
	if j.follow {
		return digest.Source{}, fault.Usagef("--follow needs files: standard input ends when it ends")
	}
	return digest.Reader("standard input", j.s.In), nil
}

// binlogStreams read binary logs, and what mysqlbinlog prints of them.
func binlogStreams(zone *time.Location) map[string]func(io.Reader) (digest.Stream, error) {
	return map[string]func(io.Reader) (digest.Stream, error){
		digest.FormatBinlog:     func(in io.Reader) (digest.Stream, error) { return binlog.New(in) },
		digest.FormatBinlogText: func(in io.Reader) (digest.Stream, error) { return binlog.NewText(in, zone), nil },
	}
}

// write shows a profile in the form asked for.
func (j *digestJob) write(p *digest.Profile) error {
	o := j.report
	if j.filter != nil && p.Calls == 0 && j.counter == nil { // which keeps writes only, and says itself when there are none
		o.Notes = append(o.Notes, "The filter kept no event.")
	}
	if j.filter != nil {
		if never := j.filter.Never(); len(never) > 0 {
			o.Notes = append(o.Notes, "The filter looked for "+strings.Join(never, ", ")+" in vain: if an event does not have a name, its comparison is false.")
		}
	}
	if slices.ContainsFunc(p.Sources, func(s digest.SourceInfo) bool {
		return s.Format == digest.FormatGeneral || s.Format == digest.FormatGeneralTable
	}) {
		o.Notes = append(o.Notes, "A general log has no times: how long its statements took, and how long they waited for locks, is unknown.")
	}
	out := bufio.NewWriterSize(j.s.Out, 64<<10)
	var err error
	switch {
	case j.counter != nil && j.output == "json":
		err = report.ParallelJSON(out, j.counter.Plan())
	case j.counter != nil:
		err = report.ParallelText(out, j.counter.Plan(), o)
	default:
		if j.orderBy == "" && p.OrderBy == "Query_time:sum" && j.Dsn == "" {
			report.RankByCalls(p)
		}
		j.limit.Apply(p)
		if j.samples == 0 {
			for i := range p.Classes {
				p.Classes[i].Samples = nil
			}
		}
		err = report.Write(out, j.output, p, o)
		if j.follow && j.output != "json" {
			fmt.Fprintln(out)
		}
	}
	if err = errors.Join(err, out.Flush()); errors.Is(err, syscall.EPIPE) {
		return nil // the reader of the pipe had enough
	}
	return err
}
