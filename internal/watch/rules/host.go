package rules

import (
	"fmt"
	"math"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

// cpuUse is how the processors are used.
type cpuUse struct {
	count    float64 // processors
	headroom float64 // share of 1 that is left: idle and iowait
	steal    float64
}

const cpuMetric = "risso_host_cpu_seconds_total"

// processors sums the processor times up. iowait counts as head-room: it is idle
// time during which some thread waited for a disk, and work could run there.
func processors(s *Snapshot) (p cpuUse, ok bool) {
	sum, free := 0.0, 0.0
	for _, mode := range []string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"} {
		v, there := s.rate(cpuMetric + `{mode="` + mode + `"}`)
		if !there {
			if mode == "steal" {
				continue
			}
			return p, false
		}
		sum += v
		switch mode {
		case "idle", "iowait":
			free += v
		case "steal":
			p.steal = v
		}
	}
	if sum <= 0 {
		return p, false
	}
	p.headroom, p.steal = free/sum, p.steal/sum
	p.count = max(math.Round(sum), 1) // each processor has a second a second
	return p, true
}

func cpuSaturated(r *round) {
	p, ok := processors(r.Snapshot)
	if !ok {
		return
	}
	running, ok := r.value("node_procs_running")
	running = r.smooth("runnable", running) // it jumps from one moment to the next
	free := r.smooth("headroom", p.headroom)
	if free >= 0.05 {
		return
	}
	if ok && running < 1.5*p.count {
		return // used up, but nothing waits
	}
	c := candidate{id: "host.cpu", severity: fleet.SeverityWarning, chart: "cpu", remedy: "top -b -n 1 -o %CPU | head -20",
		head: fmt.Sprintf("%s used up: %s left", plural(p.count, "processor is", "processors are"), digits.Percent(math.Round(free*100)/100))}
	if ok {
		c.tail = fmt.Sprintf(", %s to run", plural(running, "thread wants", "threads want"))
		if running >= 8*p.count {
			c.severity = fleet.SeverityCritical
		}
		c.value = running
	}
	r.add(c)
}

func cpuStolen(r *round) {
	p, ok := processors(r.Snapshot)
	if !ok {
		return
	}
	steal := r.smooth("steal", p.steal)
	if steal < 0.1 {
		return
	}
	c := candidate{id: "host.steal", severity: fleet.SeverityWarning, value: percent(steal), chart: "cpu",
		head: fmt.Sprintf("the hypervisor withholds %s of the processor time from this host", digits.Percent(steal)), tail: ": it gives it to other machines"}
	if steal >= 0.4 {
		c.severity = fleet.SeverityCritical
	}
	r.add(c)
}

// ioPressure goes by PSI, for iowait is unreliable by the kernel's own documents:
// https://docs.kernel.org/accounting/psi.html
func ioPressure(r *round) {
	all, ok := r.rate("node_pressure_io_stalled_seconds_total")
	if !ok {
		return
	}
	all = r.smooth("io stalled", all)
	if all < 0.25 {
		return
	}
	some, _ := r.rate("node_pressure_io_waiting_seconds_total")
	c := candidate{id: "host.pressure_io", severity: fleet.SeverityWarning, value: percent(min(all, 1)), chart: "psi", remedy: "pidstat -d 1 5",
		head: fmt.Sprintf("all tasks wait for disks %s of the time", digits.Percent(min(all, 1))), tail: fmt.Sprintf(", some in %s", digits.Percent(min(max(some, all), 1)))}
	if all >= 0.7 {
		c.severity = fleet.SeverityCritical
	}
	r.add(c)
}

func memoryPressure(r *round) {
	all, ok := r.rate("node_pressure_memory_stalled_seconds_total")
	if !ok {
		return
	}
	all = r.smooth("memory stalled", all)
	if all < 0.05 {
		return
	}
	c := candidate{id: "host.pressure_memory", severity: fleet.SeverityWarning, value: percent(min(all, 1)), chart: "psi", remedy: "ps axo pid,rss,comm --sort=-rss | head",
		head: fmt.Sprintf("all tasks wait for memory %s of the time", digits.Percent(min(all, 1)))}
	if free, ok := r.value("node_memory_MemAvailable_bytes"); ok {
		c.tail = "; " + digits.Bytes(free) + " are available"
	}
	if all >= 0.2 {
		c.severity = fleet.SeverityCritical
	}
	r.add(c)
}

// swapping finds a host that moves memory to disk and back; a database's latency
// is gone then.
func swapping(r *round) {
	in, ok := r.rate("node_vmstat_pswpin")
	out, _ := r.rate("node_vmstat_pswpout")
	if !ok {
		return
	}
	in, out = r.smooth("swap in", in), r.smooth("swap out", out)
	const some, many = 50, 1000 // pages a second
	if in < some && out < some {
		return
	}
	c := candidate{id: "host.swap", severity: fleet.SeverityWarning, value: in + out, chart: "swap", remedy: "sysctl vm.swappiness=1",
		head: fmt.Sprintf("the host is swapping: %s pages per second in, %s out", digits.Number(in), digits.Number(out))}
	if in >= many {
		c.severity = fleet.SeverityCritical
	}
	r.add(c)
}

// oomKill reports a process that the kernel killed, for some minutes: it is soon
// over and must not be missed.
func oomKill(r *round) {
	rate, ok := r.rate("node_vmstat_oom_kill")
	if !ok {
		return
	}
	if rate > 0 {
		r.j.counts["oom at"] = float64(r.Now.Unix())
		r.j.counts["oom kills"] += math.Round(rate * r.dt.Seconds())
	}
	at := r.j.counts["oom at"]
	if at == 0 || float64(r.Now.Unix())-at > 5*60 {
		r.j.counts["oom kills"] = 0
		return
	}
	r.add(candidate{id: "host.oom", severity: fleet.SeverityCritical, value: max(r.j.counts["oom kills"], 1), chart: "memory_host", now: true, at: time.Unix(int64(at), 0),
		head: "the kernel is killing processes because memory ran out", remedy: "dmesg -T | grep -i -A3 'killed process'"})
}

// flush is how a disk flushes now.
type flush struct {
	name    string
	rate    float64
	latency float64 // seconds
}

const (
	flushCount = "node_disk_flush_requests_total"
	flushTime  = "node_disk_flush_requests_time_seconds_total"
)

// busiestFlush finds the disk of the host that flushes most: the one with the redo
// and binary log. Its latency is that of the last tick's flushes, smoothed.
func (r *round) busiestFlush() (flush, bool) {
	if r.flushTried {
		return r.flush, r.flushKnown
	}
	r.flushTried = true
	host := r.Snapshot
	if r.Instance.Kind != fleet.KindHost {
		host = r.Host
	}
	for _, key := range host.keys(flushCount) {
		n, ok := host.rate(key)
		t, ok2 := host.rate(flushTime + labels(key, flushCount))
		if ok && ok2 && n >= 1 && n > r.flush.rate {
			r.flush, r.flushKnown = flush{name: label(key, "device"), rate: n, latency: t / n}, true
		}
	}
	if r.flushKnown {
		r.flush.latency = r.smooth("flush of "+r.flush.name, r.flush.latency)
	}
	return r.flush, r.flushKnown
}

// diskWays are what a disk does, with the latency from which it counts as slow.
var diskWays = []struct {
	count, time, verb, chart string
	slow                     float64 // seconds
}{
	{flushCount, flushTime, "flushes", "flush_latency", 0.02},
	{"node_disk_writes_completed_total", "node_disk_write_time_seconds_total", "writes", "disk_write_latency", 0.1},
	{"node_disk_reads_completed_total", "node_disk_read_time_seconds_total", "reads", "disk_latency", 0.05},
}

// ioSlow finds disks that take much longer than they usually do.
func ioSlow(r *round) {
	for _, key := range r.keys("node_disk_reads_completed_total") {
		device := labels(key, "node_disk_reads_completed_total")
		for _, way := range diskWays {
			n, ok := r.rate(way.count + device)
			t, ok2 := r.rate(way.time + device)
			if !ok || !ok2 || n < 2 {
				continue
			}
			name := label(key, "device")
			subject := name + " " + way.verb
			now := r.smooth("slow "+subject, t/n)
			usual, known := r.usual(subject)
			slow := now >= way.slow && (!known || now >= 4*usual)
			r.see(subject, t/n, slow)
			if !slow {
				continue
			}
			c := candidate{id: "host.io_slow", subject: subject, severity: fleet.SeverityWarning, value: now * 1000, chart: way.chart, remedy: "iostat -x 1 5 " + name,
				head: fmt.Sprintf("disk %s %s in %s", name, way.verb, digits.Seconds(now))}
			if known {
				c.head += " instead of " + latencyBeside(usual, now)
			}
			if now >= 10*way.slow {
				c.severity = fleet.SeverityCritical
			}
			r.add(c)
		}
	}
}

const (
	sizeMetric     = "node_filesystem_size_bytes"
	availMetric    = "node_filesystem_avail_bytes"
	filesMetric    = "node_filesystem_files"
	freeMetric     = "node_filesystem_files_free"
	readonlyMetric = "node_filesystem_readonly"
)

// diskFull finds file systems without room: below a tenth, where that is not a lot
// nevertheless.
func diskFull(r *round) {
	for _, key := range r.keys(sizeMetric) {
		rest := labels(key, sizeMetric)
		size, ok := r.value(key)
		avail, ok2 := r.value(availMetric + rest)
		if !ok || !ok2 || size <= 0 {
			continue
		}
		if ro, ok := r.value(readonlyMetric + rest); ok && ro == 1 {
			continue // it cannot get fuller
		}
		point := label(key, "mountpoint")
		c := candidate{id: "disk.full", subject: point, severity: fleet.SeverityWarning, chart: "disk_space", remedy: "du -xh --max-depth=2 " + fleet.ShellWord(point) + " | sort -h | tail -20"}
		files, ok := r.value(filesMetric + rest)
		free, ok2 := r.value(freeMetric + rest)
		share := avail / size
		c.value = percent(1 - share)
		switch {
		case share < 0.03 && avail < 20<<30 || share < 0.05 && avail < 2<<30:
			c.severity = fleet.SeverityCritical
			fallthrough
		case share < 0.1 && avail < 50<<30:
			c.head = fmt.Sprintf("%s is nearly full: %s of %s left", point, digits.Bytes(avail), digits.Bytes(size))
		case ok && ok2 && files > 0 && free/files < 0.03:
			c.head = fmt.Sprintf("%s has almost no inodes left: %s of %s", point, digits.Number(free), digits.Number(files))
			c.remedy, c.value = "df -i "+fleet.ShellWord(point), percent(1-free/files)
		default:
			continue
		}
		r.add(c)
	}
}

// diskReadOnly finds file systems that were writable and are not any more: a
// kernel does that after an error of the disk.
func diskReadOnly(r *round) {
	for _, key := range r.keys(readonlyMetric) {
		v, ok := r.value(key)
		if !ok {
			continue
		}
		if v == 0 {
			r.j.flags[key] = true
			continue
		}
		if !r.j.flags[key] {
			continue
		}
		point := label(key, "mountpoint")
		r.add(candidate{id: "disk.readonly", subject: point, severity: fleet.SeverityCritical, chart: "disk_space",
			head: point + " has become read-only", tail: ": the kernel does that after a disk error", remedy: "dmesg -T | tail -50"})
	}
}
