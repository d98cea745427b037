package serve

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/watch/alert"
)

// drawn is what a chart in a message shows.
type drawn struct {
	title, unit string
	keys        []string // of which the first that there is counts; with sum all are added. * matches any text, SUBJECT is the finding's
	sum, worst  bool     // worst: the largest value of each step, not the mean
}

// drawnOf is the chart of a finding. What has none has its server's questions.
func drawnOf(finding string) drawn {
	const status, metrics = "mysql_global_status_", "mysql_info_schema_innodb_metrics_*_"
	behind := drawn{title: "seconds behind the source", unit: "s", keys: []string{"mysql_slave_status_seconds_behind_master*"}, worst: true}
	running := drawn{title: "threads running", keys: []string{status + "threads_running"}, worst: true}
	stalled := func(what string) drawn {
		return drawn{title: "share of the time in which all tasks wait for " + what, keys: []string{"node_pressure_" + what + "_stalled_seconds_total"}}
	}
	switch finding {
	case "conn.saturation":
		return drawn{title: "open connections", keys: []string{status + "threads_connected"}, worst: true}
	case "threads.pileup", "server.stall", "commit.wait", "commit.semisync", "mdl.blocker", "lock.global", "lock.user":
		return running
	case "lock.blocker":
		return drawn{title: "transactions that wait for a row", keys: []string{status + "innodb_row_lock_current_waits", "risso_threads_waiting{class=\"row_lock\"}"}, worst: true}
	case "deadlock.rate":
		return drawn{title: "deadlocks", unit: "/s", keys: []string{status + "innodb_deadlocks", metrics + "lock_deadlocks*"}}
	case "redo.pressure":
		return drawn{title: "checkpoint age", unit: "B", keys: []string{status + "innodb_checkpoint_age", metrics + "log_lsn_checkpoint_age*", metrics + "lsn_checkpoint_age*"}, worst: true}
	case "undo.history":
		return drawn{title: "history list", keys: []string{status + "innodb_history_list_length", metrics + "trx_rseg_history_len*"}, worst: true}
	case "bp.starved":
		return drawn{title: "pages read from disk", unit: "/s", keys: []string{status + "innodb_buffer_pool_reads"}}
	case "repl.stopped", "repl.lag":
		return behind
	case "mem.overcommit":
		return drawn{title: "memory of the server", unit: "B", keys: []string{"risso_process_resident_memory_bytes"}, worst: true}
	case "host.throttled":
		return drawn{title: "processors that the server keeps busy", keys: []string{"risso_process_cpu_seconds_total{*"}, sum: true}
	case "host.cpu", "host.steal":
		return drawn{title: "processors that work", keys: []string{`risso_host_cpu_seconds_total{mode="user"}`, `risso_host_cpu_seconds_total{mode="nice"}`, `risso_host_cpu_seconds_total{mode="system"}`,
			`risso_host_cpu_seconds_total{mode="softirq"}`, `risso_host_cpu_seconds_total{mode="irq"}`}, sum: true}
	case "host.pressure_io", "host.io_slow":
		return stalled("io")
	case "host.pressure_memory":
		return stalled("memory")
	case "host.oom":
		return drawn{title: "memory that is available", unit: "B", keys: []string{"node_memory_MemAvailable_bytes"}}
	case "host.swap":
		return drawn{title: "pages to and from swap", unit: "/s", keys: []string{"node_vmstat_pswpin", "node_vmstat_pswpout"}, sum: true}
	case "disk.full":
		return drawn{title: "free space", unit: "B", keys: []string{"node_filesystem_avail_bytes{*mountpoint=\"SUBJECT\"*"}}
	}
	if strings.HasPrefix(finding, "protect.") || strings.HasPrefix(finding, fleet.AdvicePrefix) { // no series shows it
		return drawn{}
	}
	return drawn{title: "questions", unit: "/s", keys: []string{status + "questions", status + "queries"}}
}

const (
	chartBefore = 15 * time.Minute // before what is wrong began
	chartMost   = time.Hour        // what is shown at most, up to now
	chartSteps  = 120
)

// chart draws what an alert is about; nil: there are no numbers of it.
func chart(ctx context.Context, numbers *series.Store, a *alert.Alert, now time.Time) *alert.Chart {
	d := drawnOf(a.Finding)
	from := a.Began.Add(-chartBefore)
	if least := now.Add(-chartMost); from.Before(least) {
		from = least
	}
	length := now.Sub(from)
	if len(d.keys) == 0 || length < chartSteps*time.Second {
		return nil
	}
	step := int64(length.Seconds()) / chartSteps
	keys := d.find(numbers.Descs(a.Instance, from.Unix(), now.Unix()), a.Subject)
	if len(keys) == 0 {
		return nil
	}
	bands, err := numbers.Bands(ctx, a.Instance, keys, from.Unix(), now.Unix(), step)
	if err != nil || len(bands) == 0 {
		return nil // a message is more urgent than its picture
	}
	c := &alert.Chart{Title: d.title, Unit: d.unit, From: from.UTC().Truncate(time.Second), Step: float64(step)}
	if a.Began.After(from) {
		c.Mark = a.Began
	}
	known := false
	for i := range bands[0].N {
		sum := 0.0
		for _, b := range bands {
			if d.worst {
				sum += b.Max[i]
			} else {
				sum += b.Avg[i]
			}
		}
		var v *float64
		if !math.IsNaN(sum) {
			v, known = &sum, true
		}
		c.Values = append(c.Values, v)
	}
	if !known {
		return nil
	}
	return c
}

// find is which series are shown.
func (d drawn) find(list []series.Desc, subject string) (keys []string) {
	for _, want := range d.keys {
		want = strings.Replace(want, "SUBJECT", subject, 1)
		for _, s := range list {
			if key := s.Key(); pattern.Stars(want, key) && !slices.Contains(keys, key) {
				keys = append(keys, key)
				if !d.sum {
					return keys
				}
			}
		}
	}
	return keys
}
