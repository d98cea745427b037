// Package watch holds the command that watches in a terminal: top.
package watch

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/serve"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/watch/collect"
	"github.com/rissodb/risso/internal/watch/live"
)

type topFlags struct {
	config.Sources
	count  int
	output string
}

// NewTop is risso top.
func NewTop(s screen.Streams) *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch servers and this host live, in a terminal",
		Long: `Watches servers and this host live, in a terminal: the fleet, worst first, and one instance
in detail. Nothing is stored; risso serve does that. If no server can be reached at the start
(unknown host, nothing listening on the port, wrong password) it exits with 1 within seconds;
a server that does not answer, or goes away later, is shown as down and tried again.

Keys: up and down (or k and j) select an instance, q quits. In a pipe it prints a table
every second, or with --output json one object per line every second.

` + fault.Help,
		Example: `  risso top --dsn 'risso@unix(/run/mysqld/mysqld.sock)/'
  risso top --count 1 --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runTop(cmd.Context(), s, f) },
	}
	fl := cmd.Flags()
	fl.IntVarP(&f.count, "count", "n", 0, "stop after this many seconds (default: never)")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	flags.BindSources(&f.Sources, cmd)
	return cmd
}

func runTop(ctx context.Context, s screen.Streams, f topFlags) error {
	if f.count < 0 {
		return fault.Usagef("--count %d: must not be negative", f.count)
	}
	_, servers, err := f.Resolve()
	if err != nil {
		return err
	}
	if err := serve.FirstContact(ctx, s.Err, servers, serve.NotThere); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var group collect.Group
	defer group.Wait()
	defer cancel()
	board, err := serve.Glance(ctx, &group, servers, !f.NoHost)
	if err != nil {
		return err
	}
	t := &topScreen{board: board, out: s.Out, count: f.count}
	if f.output == "json" {
		return t.lines(ctx, t.json)
	}
	in, inTerm := s.In.(*os.File)
	out, outTerm := s.Out.(*os.File)
	if !inTerm || !outTerm || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return t.lines(ctx, t.text)
	}
	return t.interactive(ctx, in, out)
}

// topScreen draws the board.
type topScreen struct {
	board *live.Board
	out   io.Writer
	count int
	at    int // the chosen row
}

// lines prints once a second until ctx ends or count is reached.
func (t *topScreen) lines(ctx context.Context, print func(rows []live.Row) error) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	// Rates need two ticks: the first output waits for them.
	wait := 2
	for n := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if wait--; wait >= 0 {
				continue
			}
			if err := print(t.board.Fleet(now)); err != nil {
				return nil // the reader of the pipe went away
			}
			if n++; t.count > 0 && n >= t.count {
				return nil
			}
		}
	}
}

func (t *topScreen) json(rows []live.Row) error {
	return render.JSONLine(t.out, TopAnswer{time.Now().UTC().Truncate(time.Second), rows})
}

func (t *topScreen) text(rows []live.Row) error {
	_, err := fmt.Fprintln(t.out, strings.Join(fleetTable(rows, -1).Lines(0), "\n"))
	return err
}

func fleetTable(rows []live.Row, chosen int) render.Table {
	table := render.Table{Heads: []string{"", "NAME", "ROLE", "STATE", ">QUESTIONS/S", ">RUNNING", ">LAG", ">CPU", "WHAT GOES ON"}}
	for i, r := range rows {
		mark := " "
		if i == chosen {
			mark = "›"
		}
		role := string(r.Role)
		if r.Kind == fleet.KindHost {
			role = "host"
		}
		lag := ""
		if r.Lag != nil {
			lag = digits.Seconds(*r.Lag)
		}
		table.Rows = append(table.Rows, []string{mark, r.Name, role, string(r.State), figure(r.QPS, digits.Number), figure(r.ThreadsRunning, digits.Number), lag, figure(r.CPU, digits.Percent), r.Words})
	}
	return table
}

func figure(v *float64, f func(float64) string) string {
	if v == nil {
		return ""
	}
	return f(*v)
}

// detail is the lower half of the screen: one instance.
func (t *topScreen) detail(r live.Row, width int) []string {
	d, ok := t.board.Detail(r.ID)
	if !ok {
		return nil
	}
	head := fmt.Sprintf("%s  %s %s", r.Name, r.Flavour, r.Version)
	if d.Uptime != nil {
		head += "  up " + digits.Seconds(*d.Uptime)
	}
	out := []string{head}
	for _, f := range r.Findings {
		out = append(out, fmt.Sprintf("  %-8s %s", f.Severity, f.What))
		if f.Remedy != "" {
			out = append(out, "           → "+f.Remedy)
		}
	}
	what := "questions/s"
	if r.Kind == fleet.KindHost {
		what = "busy"
	}
	_, hi := span(r.Spark.Max)
	out = append(out, fmt.Sprintf("  %-14s %s  5 min, up to %s", what, render.Spark(r.Spark.Avg), digits.Number(hi)))
	out = append(out, t.pairs(r)...)
	for _, g := range d.Gaps {
		out = append(out, "  not collected: "+g.What+": "+g.Why)
	}
	if d.Cost.QueriesPerSecond > 0 {
		out = append(out, fmt.Sprintf("  watching costs this server %s queries, %s and %s a second", digits.Number(d.Cost.QueriesPerSecond), digits.Seconds(d.Cost.ServerMsPerSecond/1000), digits.Bytes(d.Cost.BytesPerSecond)))
	}
	for i := range out {
		out[i] = oneline.Cut(out[i], width)
	}
	return out
}

func span(v []float64) (lo, hi float64) {
	lo, hi = math.NaN(), math.NaN()
	for _, x := range v {
		if !math.IsNaN(x) {
			lo, hi = min(x, orElse(lo, x)), max(x, orElse(hi, x))
		}
	}
	return lo, hi
}

func orElse(v, fallback float64) float64 {
	if math.IsNaN(v) {
		return fallback
	}
	return v
}

// topFigures are what the detail shows, in pairs of label and metric.
var topFigures = []struct {
	label, key string
	rate       bool
	show       func(float64) string
}{
	{"selects/s", `mysql_global_status_commands_total{command="select"}`, true, digits.Number},
	{"inserts/s", `mysql_global_status_commands_total{command="insert"}`, true, digits.Number},
	{"updates/s", `mysql_global_status_commands_total{command="update"}`, true, digits.Number},
	{"deletes/s", `mysql_global_status_commands_total{command="delete"}`, true, digits.Number},
	{"rows read/s", `mysql_global_status_handlers_total{handler="read_rnd_next"}`, true, digits.Number},
	{"connections", "mysql_global_status_threads_connected", false, digits.Number},
	{"wait commit", `risso_threads_waiting{class="commit"}`, false, digits.Number},
	{"wait row lock", `risso_threads_waiting{class="row_lock"}`, false, digits.Number},
	{"wait metadata", `risso_threads_waiting{class="metadata_lock"}`, false, digits.Number},
	{"pool reads/s", "mysql_global_status_innodb_buffer_pool_reads", true, digits.Number},
	{"dirty pages", "mysql_global_status_buffer_pool_dirty_pages", false, digits.Number},
	{"redo/s", "mysql_global_status_innodb_os_log_written", true, digits.Bytes[float64]},
	{"tmp disk/s", "mysql_global_status_created_tmp_disk_tables", true, digits.Number},
	{"sent/s", "mysql_global_status_bytes_sent", true, digits.Bytes[float64]},
	{"received/s", "mysql_global_status_bytes_received", true, digits.Bytes[float64]},
	{"load", "node_load1", false, digits.Number},
	{"io waiting", "node_pressure_io_waiting_seconds_total", true, digits.Percent},
	{"cpu waiting", "node_pressure_cpu_waiting_seconds_total", true, digits.Percent},
	{"available", "node_memory_MemAvailable_bytes", false, digits.Bytes[float64]},
}

func (t *topScreen) pairs(r live.Row) []string {
	facts, ok := t.board.Facts(r.ID)
	if !ok {
		return nil
	}
	var cells []string
	for _, f := range topFigures {
		get := facts.Value
		if f.rate {
			get = facts.Rate
		}
		if v, ok := get(f.key); ok {
			cells = append(cells, fmt.Sprintf("%-14s %10s", f.label, f.show(v)))
		}
	}
	var out []string
	for i := 0; i < len(cells); i += 3 {
		out = append(out, "  "+strings.Join(cells[i:min(i+3, len(cells))], "    "))
	}
	return out
}

const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// interactive draws a full screen each second and follows keys, until q, Ctrl-C or the end of ctx. The terminal
// is left as it was found.
func (t *topScreen) interactive(ctx context.Context, in, out *os.File) error {
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("prepare the terminal: %w", err)
	}
	defer term.Restore(int(in.Fd()), old)
	fmt.Fprint(out, enterScreen)
	defer fmt.Fprint(out, leaveScreen)
	keys := make(chan string)
	// The reader ends with the process: a read of a terminal cannot be called off.
	go func() {
		buf := make([]byte, 16)
		for {
			n, err := in.Read(buf)
			if err != nil {
				return
			}
			select {
			case keys <- string(buf[:n]):
			case <-ctx.Done():
				return
			}
		}
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 0; t.count == 0 || n < t.count; {
		t.draw(out)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			n++
		case k := <-keys:
			switch k {
			case "q", "Q", "\x03", "\x1b":
				return nil
			case "j", "\x1b[B":
				t.at++
			case "k", "\x1b[A":
				t.at--
			}
		}
	}
	return nil
}

func (t *topScreen) draw(out *os.File) {
	width, height, err := term.GetSize(int(out.Fd()))
	if err != nil || width < 20 {
		width, height = 100, 30
	}
	now := time.Now()
	rows := t.board.Fleet(now)
	t.at = min(max(t.at, 0), max(len(rows)-1, 0))
	lines := []string{oneline.Cut("risso top  "+now.Format("15:04:05")+"  ↑↓ choose  q quit", width), ""}
	lines = append(lines, fleetTable(rows, t.at).Lines(width)...)
	if len(rows) > 0 {
		lines = append(append(lines, ""), t.detail(rows[t.at], width)...)
	}
	if len(lines) > height {
		lines = lines[:height]
	}
	fmt.Fprint(out, home+strings.Join(lines, clearLine+"\r\n")+clearLine+clearBelow)
}
