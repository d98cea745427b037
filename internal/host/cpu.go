package host

// userHZ is the tick of the times in /proc/stat and /proc/PID/stat: the kernel's
// USER_HZ, 100 on every architecture that Go and a database server run on.
const userHZ = 100

// cpuModes are the first eight columns of a cpu line. Guest time is left out: the
// kernel counts it within user and nice already.
var cpuModes = [...]string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}

// maxCPUs bounds the numbers of processors that are believed.
const maxCPUs = 8192

// cpuTimes is one line of processor times.
type cpuTimes struct {
	first int // position of the first mode
	last  [len(cpuModes)]uint64
}

// cpuState is what is remembered of /proc/stat and /proc/loadavg.
type cpuState struct {
	h     *Host
	all   cpuTimes
	cpus  []*cpuTimes // by number; nil for one never seen
	plain map[string]int
	load  int
}

func (h *Host) addCPU() {
	c := &cpuState{h: h, plain: map[string]int{}}
	c.all.first = h.defineAll(cpuTemplates("risso_host_cpu_seconds_total",
		"Processor time by mode, summed over all processors. idle and iowait together are the unused part."), "/proc/stat")
	for key, m := range map[string]Metric{
		"ctxt":          {Name: "node_context_switches_total", Counter: true, Unit: "1", Help: "Context switches."},
		"intr":          {Name: "node_intr_total", Counter: true, Unit: "1", Help: "Interrupts served."},
		"processes":     {Name: "node_forks_total", Counter: true, Unit: "1", Help: "Processes and threads started."},
		"btime":         {Name: "node_boot_time_seconds", Unit: "seconds", Help: "When the host was booted, Unix time."},
		"procs_running": {Name: "node_procs_running", Unit: "1", Help: "Threads that run or wait for a processor."},
		"procs_blocked": {Name: "node_procs_blocked", Unit: "1", Help: "Threads waiting for input or output."},
	} {
		m.Source = "/proc/stat"
		c.plain[key] = h.define(m)
	}
	h.add("/proc/stat", "processor times", "mount /proc", c.parseStat)

	c.load = h.defineAll([]template{
		{name: "node_load1", unit: "1", help: "Load average over 1 minute: threads that run, wait for a processor or for disks."},
		{name: "node_load5", unit: "1", help: "Load average over 5 minutes."},
		{name: "node_load15", unit: "1", help: "Load average over 15 minutes."},
	}, "/proc/loadavg")
	h.add("/proc/loadavg", "load averages", "mount /proc", c.parseLoad)
}

func cpuTemplates(name, help string) []template {
	ts := make([]template, len(cpuModes))
	for i, m := range cpuModes {
		ts[i] = template{name: name, unit: "seconds", help: help, kind: Counter, label: "mode", value: m}
	}
	return ts
}

func (c *cpuState) parseStat(b []byte) {
	in := cursor{b: b}
	for {
		l, ok := in.line()
		if !ok {
			return
		}
		key := l.field()
		if !hasPrefix(key, "cpu") {
			if at, ok := c.plain[string(key)]; ok {
				if v, ok := l.uint(); ok {
					c.h.values[at] = float64(v)
				}
			}
			continue
		}
		if len(key) == len("cpu") {
			c.all.parse(&l, c.h.values)
			continue
		}
		if n, ok := parseUint(key[len("cpu"):]); ok && n < maxCPUs {
			c.cpu(int(n)).parse(&l, c.h.values)
		}
	}
}

// cpu returns the processor with a number; the first time it defines its metrics.
func (c *cpuState) cpu(n int) *cpuTimes {
	for len(c.cpus) <= n {
		c.cpus = append(c.cpus, nil)
	}
	if c.cpus[n] == nil {
		first := c.h.defineAll(cpuTemplates("node_cpu_seconds_total", "Time of one processor by mode."),
			"/proc/stat", Label{Name: "cpu", Value: utoa(n)})
		c.cpus[n] = &cpuTimes{first: first}
	}
	return c.cpus[n]
}

// parse reads the times. The kernel computes idle and iowait from two clocks, and
// they sometimes step back by a tick; a small step back is held at the old value
// (as node_exporter does), a large one is a processor that was switched off and on.
func (t *cpuTimes) parse(l *cursor, values []float64) {
	const smallStep = 3 * userHZ
	for i := range cpuModes {
		v, ok := l.uint()
		if !ok {
			return
		}
		if v < t.last[i] && t.last[i]-v < smallStep {
			v = t.last[i]
		}
		t.last[i] = v
		values[t.first+i] = float64(v) / userHZ
	}
}

func (c *cpuState) parseLoad(b []byte) {
	l := cursor{b: b}
	for i := range 3 {
		if v, ok := parseDecimal(l.field()); ok {
			c.h.values[c.load+i] = v
		}
	}
}
