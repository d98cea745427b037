package watch

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/watch/live"
)

// topScreen draws the board.
type topScreen struct {
	board *live.Board
	out   io.Writer
	count int
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
