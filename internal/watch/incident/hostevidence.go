package incident

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/host"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/watch/collect"
)

// HostSeen is a host in the second of a finding.
type HostSeen struct {
	Load       float64     `json:"load"`            // runnable threads, and those that wait for disks; mean of a minute
	Processors float64     `json:"processors"`      // that there are
	Idle       float64     `json:"idle"`            // share of them without work, 0 to 1
	Memory     float64     `json:"memory_bytes"`    // in all
	Available  float64     `json:"available_bytes"` // for programs, without swapping
	Swapped    float64     `json:"swapped_bytes"`   // in use
	StalledIO  float64     `json:"stalled_io"`      // share of the second in which all tasks waited for disks, 0 to 1
	StalledRAM float64     `json:"stalled_memory"`  // for memory
	Disk       string      `json:"disk,omitempty"`  // the busiest
	Busy       float64     `json:"busy,omitempty"`  // share of the second in which that had something to do, 0 to 1
	MountPoint string      `json:"mount,omitempty"` // of the file system that the finding is about
	Size       float64     `json:"size_bytes,omitempty"`
	Free       float64     `json:"free_bytes,omitempty"` // there, for users
	Processes  []host.Used `json:"processes,omitempty"`  // that took most of processors, memory and disks
}

// HostEvidence is the evidence of a finding of a host, as JSON; nil: there is none. processes are those that take most.
func HostEvidence(v collect.View, processes []host.Used, f fleet.Finding) json.RawMessage {
	if v.Sample == nil || v.Unseen {
		return nil
	}
	value := func(key string) float64 { n, _ := v.Sample.Value(key); return n }
	rate := func(key string) float64 { n, _ := v.Rate(key); return n }
	h := HostSeen{Load: value("node_load1"), Memory: value("node_memory_MemTotal_bytes"), Available: value("node_memory_MemAvailable_bytes"),
		Swapped:   max(value("node_memory_SwapTotal_bytes")-value("node_memory_SwapFree_bytes"), 0),
		StalledIO: share(rate("node_pressure_io_stalled_seconds_total")), StalledRAM: share(rate("node_pressure_memory_stalled_seconds_total")), Processes: processes}
	idle := 0.0
	for _, mode := range []string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"} {
		n := rate(`risso_host_cpu_seconds_total{mode="` + mode + `"}`)
		if h.Processors += n; mode == "idle" || mode == "iowait" {
			idle += n
		}
	}
	if h.Processors > 0 {
		h.Idle, h.Processors = share(idle/h.Processors), max(math.Round(h.Processors), 1)
	}
	for _, m := range v.Sample.Metrics {
		switch m.Name {
		case "node_disk_io_time_seconds_total":
			if busy := share(rate(m.Key())); busy > h.Busy {
				h.Disk, h.Busy = labelOf(m, "device"), busy
			}
		case "node_filesystem_size_bytes":
			if point := labelOf(m, "mountpoint"); f.Subject != "" && point == f.Subject && strings.HasPrefix(f.ID, "disk.") {
				h.MountPoint, h.Size = point, value(m.Key())
				h.Free = value("node_filesystem_avail_bytes" + strings.TrimPrefix(m.Key(), m.Name))
			}
		}
	}
	text, err := json.Marshal(Evidence{Tick: v.Tick, Host: &h})
	if err != nil || len(text) > evidenceBytes {
		return nil
	}
	return text
}

func share(v float64) float64 { return min(max(v, 0), 1) }

func labelOf(m fleet.Metric, name string) string {
	for _, l := range m.Labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// lines says it in a few lines.
func (h *HostSeen) lines(tick int64) []string {
	first := fmt.Sprintf("at %s: load %s on %s, %s idle; %s of %s memory available", time.Unix(tick, 0).Local().Format("15:04:05"), digits.Number(h.Load),
		digits.Counted(int(h.Processors), "processor"), digits.Percent(h.Idle), digits.Bytes(h.Available), digits.Bytes(h.Memory))
	if h.Swapped > 0 {
		first += ", " + digits.Bytes(h.Swapped) + " swapped"
	}
	out := []string{first}
	if h.MountPoint != "" {
		out = append(out, fmt.Sprintf("%s: %s of %s free", oneline.Of(h.MountPoint), digits.Bytes(h.Free), digits.Bytes(h.Size)))
	}
	if h.Disk != "" {
		out = append(out, fmt.Sprintf("disk %s busy %s of the time", oneline.Of(h.Disk), digits.Percent(h.Busy)))
	}
	if h.StalledIO+h.StalledRAM >= 0.01 {
		out = append(out, fmt.Sprintf("all tasks waited for disks %s of the time, for memory %s", digits.Percent(h.StalledIO), digits.Percent(h.StalledRAM)))
	}
	for _, p := range h.Processes {
		line := fmt.Sprintf("%s (process %d): %s processors, %s memory", oneline.Of(p.Name), p.PID, digits.Number(math.Round(p.CPU*100)/100), digits.Bytes(p.Resident))
		if p.Read+p.Written > 0 {
			line += fmt.Sprintf(", reads %s/s, writes %s/s", digits.Bytes(p.Read), digits.Bytes(p.Written))
		}
		if p.Suspended {
			line += ", waits for a disk"
		}
		out = append(out, line)
	}
	return out
}
