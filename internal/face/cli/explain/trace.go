package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/trace"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/mysql"
)

type traceFlags struct {
	flags.Server
	length                time.Duration
	output                string
	enable, synch, dryRun bool
	restore, all, redact  bool
	user                  string
	latest                bool
	stateDir              string
	width                 int
}

// NewTrace is risso trace.
func NewTrace(s screen.Streams) *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Use:   "trace [CONNECTION]",
		Short: "Show what one connection did: statements, stages, waits, stored programs",
		Long: `Shows what one connection did for some seconds: its statements, their stages and waits,
and the instructions of stored functions, procedures and triggers, as a timeline and as a
map of where the time went. It reads performance_schema.

CONNECTION is the ID shown by SHOW PROCESSLIST and CONNECTION_ID(). Without it the
connections are listed, busy ones first.

Servers record little by default. risso trace says what is off; with --enable it is
switched on for the duration of the trace, and every old value is put back, even if the
trace is interrupted. --enable --dry-run prints the statements and exits. --restore puts
back what a killed trace left switched on.

` + fault.Help,
		Example: `  risso trace --dsn 'risso@unix(/run/mysqld/mysqld.sock)/'               list the connections
  risso trace 4711 --enable --for 10s                                    timeline and map of connection 4711
  risso trace 4711 --enable --output svg >timeline.svg                   the timeline as a drawing
  risso trace 4711 --enable --output map >map.svg                        the execution map as a drawing
  risso trace --restore                                                  after kill -9 of a trace`,
		Args: flags.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runTrace(cmd.Context(), s, f, args) },
	}
	fl := cmd.Flags()
	f.Bind(cmd, "the server")
	flags.DurationVar(fl, &f.length, "for", 10*time.Second, "how long to trace")
	flags.OutputVar(fl, &f.output, "text, json, svg (the time line), map (the execution map as SVG) or dot (the map for Graphviz)", "text", "json", "svg", "map", "dot")
	fl.BoolVar(&f.enable, "enable", false, "switch on the instruments needed, and put them back at the end")
	fl.BoolVar(&f.synch, "synch", false, "with --enable: also mutexes and other latches; slows down every connection of the server")
	fl.BoolVar(&f.dryRun, "dry-run", false, "with --enable or --restore: print the statements and end")
	fl.BoolVar(&f.restore, "restore", false, "put back settings that a killed trace left on the server")
	fl.BoolVar(&f.all, "all", false, "show every event in the text, not only the most expensive")
	fl.BoolVar(&f.redact, "redact", false, "hide the literals of statements")
	fl.StringVar(&f.user, "user", "", "list only connections of this user")
	fl.BoolVar(&f.latest, "latest", false, "trace the connection that was busy most recently (of --user, if given)")
	fl.StringVar(&f.stateDir, "state", "", "folder of the journal of changed settings (default "+home.State("trace")+")")
	fl.IntVar(&f.width, "width", 0, "characters per line of text (default 120)")
	return cmd
}

// check finds wrong use before any server is asked.
func (f *traceFlags) check(args []string) error {
	if f.stateDir == "" {
		f.stateDir = home.State("trace")
	}
	switch {
	case f.length <= 0 || f.length > time.Hour:
		return fault.Usagef("--for %s: more than 0 and at most an hour", f.length)
	case f.synch && !f.enable:
		return fault.Usagef("--synch without --enable")
	case f.dryRun && !f.enable && !f.restore:
		return fault.Usagef("--dry-run without --enable or --restore")
	case f.restore && (f.enable || len(args) > 0):
		return fault.Usagef("--restore takes neither a connection nor --enable")
	case f.latest && len(args) > 0:
		return fault.Usagef("a connection and --latest: give one of them")
	case f.width < 0 || f.width > 0 && f.width < 60:
		return fault.Usagef("--width %d: at least 60", f.width)
	}
	return nil
}

func runTrace(ctx context.Context, s screen.Streams, f traceFlags, args []string) error {
	if err := f.check(args); err != nil {
		return err
	}
	target, err := f.Target()
	if err != nil {
		return err
	}
	if f.restore {
		return traceRestore(ctx, s, f, target)
	}
	var id int64
	switch {
	case len(args) == 1:
		if id, err = strconv.ParseInt(args[0], 10, 64); err != nil || id <= 0 {
			return fault.Usagef("connection %q: a number, as SHOW PROCESSLIST gives it", args[0])
		}
	case f.latest:
		list, err := trace.Candidates(ctx, target, f.user)
		if err != nil {
			return traceError(err)
		}
		if len(list) == 0 {
			return fault.New(fault.Failed, "", errors.New("there is no connection to trace"))
		}
		id = list[0].ID
	case f.enable || f.output != "text" && f.output != "json":
		return fault.New(fault.Usage, "risso trace NUMBER; without --enable and --output it lists them", errors.New("which connection?"))
	default:
		return traceCandidates(ctx, s, f, target)
	}
	if err := traceLeft(ctx, s, f, target); err != nil {
		return err
	}
	wanted := trace.Wanted{Synch: f.synch}
	if f.dryRun {
		list, err := trace.DryRun(ctx, target, id, wanted)
		if err != nil {
			return traceError(err)
		}
		if f.output == "json" {
			return render.JSON(s.Out, StatementsAnswer{list})
		}
		return screen.Statements(s.Out, list)
	}
	o := trace.Options{Target: target, Connection: id, For: f.length, StateDir: f.stateDir}
	if f.enable {
		o.Enable = &wanted
	}
	progress := screen.OnTerminal(s.Err)
	if progress {
		o.Say = func(line string) { fmt.Fprintf(s.Err, "\r\x1b[K· %s\n", line) }
		o.Progress = func(at time.Duration, events int) {
			fmt.Fprintf(s.Err, "\r\x1b[K%s of %s: %s", digits.Span(at), digits.Span(f.length), digits.Roughly(events, "event"))
		}
	}
	t, err := trace.Run(ctx, o)
	if progress {
		fmt.Fprint(s.Err, "\r\x1b[K")
	}
	if t != nil && (err == nil || len(t.Events) > 0) {
		if werr := writeTrace(s.Out, f, t); werr != nil && err == nil {
			err = werr
		}
	}
	return traceError(err)
}

func writeTrace(w io.Writer, f traceFlags, t *trace.Trace) error {
	r := trace.NewReport(t, f.redact)
	switch f.output {
	case "json":
		return render.JSON(w, r)
	case "svg":
		return r.WriteTimelineSVG(w)
	case "map":
		return r.WriteMapSVG(w)
	case "dot":
		return r.WriteDOT(w)
	}
	return r.WriteText(w, trace.TextOptions{All: f.all, Width: f.width})
}

// traceError adds a remedy to an error.
func traceError(err error) error {
	switch {
	case errors.Is(err, trace.ErrNoConnection):
		return fault.New(fault.Failed, "risso trace without a number lists the connections", err)
	case errors.Is(err, trace.ErrOff):
		return fault.New(fault.Failed, "--enable switches it on for the time of the trace and puts it back; --enable --dry-run shows the statements", err)
	case errors.Is(err, trace.ErrBusy):
		return fault.New(fault.Failed, "wait until it has ended; what a killed one left is put back by risso trace --restore", err)
	}
	return err
}

// traceCandidates lists the connections.
func traceCandidates(ctx context.Context, s screen.Streams, f traceFlags, target mysql.Target) error {
	list, err := trace.Candidates(ctx, target, f.user)
	if err != nil {
		return traceError(err)
	}
	if f.output == "json" {
		if list == nil {
			list = []trace.Connection{}
		}
		return render.JSON(s.Out, ConnectionsAnswer{list})
	}
	table := render.Table{Heads: []string{">CONNECTION", "USER", "HOST", "DB", "COMMAND", ">SINCE", "STATE", "STATEMENT"}}
	for _, c := range list {
		table.Rows = append(table.Rows, []string{strconv.FormatInt(c.ID, 10), c.User, c.Host, c.DB, c.Command, digits.Seconds(c.Seconds), c.State, trace.Statement(c.Info, f.redact)})
	}
	width := f.width
	if width == 0 {
		width = 120
	}
	_, err = fmt.Fprintln(s.Out, strings.Join(table.Lines(width), "\n"))
	return err
}

// traceLeft looks for what a killed trace left on this server; with --enable it is put back first.
func traceLeft(ctx context.Context, s screen.Streams, f traceFlags, target mysql.Target) error {
	left, err := trace.Restore(ctx, target, f.stateDir, !f.enable || f.dryRun)
	switch {
	case errors.Is(err, trace.ErrBusy) && !f.enable:
		return nil // another trace is at work: this one changes nothing
	case err != nil:
		return traceError(err)
	case left == nil || left.Restarted:
		return nil
	case f.enable && !f.dryRun:
		fmt.Fprintf(s.Err, "risso: a trace killed at %s had left instruments switched on; put back: %s\n", left.Since.Local().Format(time.DateTime), left.Old.Words())
	default:
		fmt.Fprintf(s.Err, "risso: a trace that was killed at %s has left instruments switched on (risso trace --restore puts them back)\n", left.Since.Local().Format(time.DateTime))
	}
	return nil
}

func traceRestore(ctx context.Context, s screen.Streams, f traceFlags, target mysql.Target) error {
	left, err := trace.Restore(ctx, target, f.stateDir, f.dryRun)
	if err != nil {
		return traceError(err)
	}
	words := func(l *trace.Left) string { return " " + l.Old.Words() }
	return screen.PutBack[trace.Old]{What: "trace", Dir: f.stateDir, DryRun: f.dryRun, Left: left, Words: words}.Write(s.Out, f.output)
}
