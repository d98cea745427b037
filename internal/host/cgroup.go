package host

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// cgroup reads the control group of a process: what a container or a systemd unit
// may use, and uses. Version 2 is read if it has the controller, else version 1.
type cgroup struct {
	r      *reader // of the process: its values and buffer
	root   string
	member procFile // /proc/PID/cgroup
	text   []byte   // its content when the groups were set up
	reads  int
	files  []*group
	at     map[string]int // positions by key: a move to another group keeps them
}

// memberEvery is at how many reads a process is asked whether it has moved.
const memberEvery = 60

func newCgroup(r *reader, root string, pid int) *cgroup {
	return &cgroup{r: r, root: root, at: map[string]int{},
		member: newProcFile(filepath.Join(root, "proc", strconv.Itoa(pid), "cgroup"))}
}

func (c *cgroup) read() {
	if c.reads%memberEvery == 0 {
		b, err := c.member.read(&c.r.buf)
		if err == nil && (c.reads == 0 || !bytes.Equal(b, c.text)) {
			c.text = append(c.text[:0], b...)
			c.locate()
		}
	}
	c.reads++
	for _, g := range c.files {
		c.r.readGroup(g)
	}
}

func (c *cgroup) close() {
	c.member.close()
	for _, g := range c.files {
		g.file.close()
	}
}

// cgroupMount is where a hierarchy is mounted.
type cgroupMount struct {
	point, root string
	version     int
	controllers []string // of version 1
}

// locate finds the group's folders and opens the files that are there.
func (c *cgroup) locate() {
	for _, g := range c.files {
		g.file.close()
	}
	c.files = nil
	mounts := cgroupMounts(c.root)
	v2 := ""
	for line := range strings.SplitSeq(string(c.text), "\n") {
		// hierarchy:controllers:path; version 2 is 0::path
		p := strings.SplitN(line, ":", 3)
		if len(p) != 3 {
			continue
		}
		if p[0] == "0" && p[1] == "" {
			v2 = folder(c.root, mounts, "", p[2])
			continue
		}
		for controller := range strings.SplitSeq(p[1], ",") {
			if dir := folder(c.root, mounts, controller, p[2]); dir != "" {
				c.addV1(controller, dir)
			}
		}
	}
	if v2 != "" {
		c.addV2(v2)
	}
}

func cgroupMounts(root string) []cgroupMount {
	text, err := os.ReadFile(filepath.Join(root, "/proc/self/mountinfo"))
	if err != nil {
		return nil
	}
	var out []cgroupMount
	for line := range strings.SplitSeq(string(text), "\n") {
		before, after, ok := strings.Cut(line, " - ")
		b, a := strings.Fields(before), strings.Fields(after)
		if !ok || len(b) < 5 || len(a) < 3 {
			continue
		}
		m := cgroupMount{root: unescapeMount(b[3]), point: unescapeMount(b[4])}
		switch a[0] {
		case "cgroup2":
			m.version = 2
		case "cgroup":
			m.version, m.controllers = 1, strings.Split(a[2], ",")
		default:
			continue
		}
		out = append(out, m)
	}
	return out
}

// folder finds the folder of a group, or "" if it is the root of the hierarchy,
// which limits nothing and counts what the host counts. Inside a container the
// mount shows only the container's part, and its root is the container's group.
func folder(root string, mounts []cgroupMount, controller, path string) string {
	for _, m := range mounts {
		if (controller == "") != (m.version == 2) || (controller != "" && !slices.Contains(m.controllers, controller)) {
			continue
		}
		rest := path
		if m.root != "/" {
			cut, ok := strings.CutPrefix(path, m.root)
			if !ok {
				cut = "/" // seen from within: the mount is the group
			}
			rest = cut
		}
		dir := filepath.Join(root, m.point, rest)
		if rest != "/" || m.root != "/" || exists(filepath.Join(dir, "cgroup.type")) {
			return dir
		}
		return "" // version 2 has cgroup.type in every group but the root
	}
	return ""
}

// position defines a metric once.
func (c *cgroup) position(m Metric) int {
	key := m.Key()
	at, ok := c.at[key]
	if !ok {
		at = c.r.define(m)
		c.at[key] = at
	}
	return at
}

func (c *cgroup) slot(scale float64, kind Kind, name, unit, source, help string, labels ...Label) slot {
	return slot{c.position(Metric{Name: "risso_cgroup_" + name, Labels: labels, Counter: kind == Counter, Unit: unit, Help: help, Source: source}), scale}
}

// add opens a file of the group if it exists.
func (c *cgroup) add(dir, name string, parse func([]byte)) *group {
	path := filepath.Join(dir, name)
	if !exists(path) {
		return nil
	}
	g := &group{file: newProcFile(path), parse: parse, optional: true}
	c.files = append(c.files, g)
	return g
}

const (
	helpUsage     = "Processor time of the control group."
	helpThrottled = "Time in which the group had used up its processor quota and was throttled."
	helpPeriods   = "Periods in which the group's processor quota was enforced."
	helpThrPer    = "Periods in which the group was throttled."
	helpLimit     = "Processors that the group may use."
	helpCurrent   = "Memory charged to the group, including page cache."
	helpMax       = "Memory that the group may use before the kernel kills its processes."
	helpAnon      = "Memory other than page cache: the buffer pool and the sessions."
	helpFile      = "Page cache of the group."
	helpInactive  = "Page cache that can be dropped at once."
	helpMajor     = "Page faults that had to read from disk."
	helpEvents    = "How often the group reached a memory limit, by what happened."
	helpIO        = "Input and output of the group, by disk."
)

func (c *cgroup) addV2(dir string) {
	s := &c.r.set
	if exists(filepath.Join(dir, "cpu.stat")) {
		c.add(dir, "cpu.stat", (&keyed{s: s, at: map[string]slot{
			"usage_usec":     c.slot(1e-6, Counter, "cpu_usage_seconds_total", "seconds", "cpu.stat", helpUsage),
			"throttled_usec": c.slot(1e-6, Counter, "cpu_throttled_seconds_total", "seconds", "cpu.stat", helpThrottled),
			"nr_periods":     c.slot(1, Counter, "cpu_periods_total", "1", "cpu.stat", helpPeriods),
			"nr_throttled":   c.slot(1, Counter, "cpu_throttled_periods_total", "1", "cpu.stat", helpThrPer),
		}}).parse)
	}
	if exists(filepath.Join(dir, "cpu.max")) {
		c.add(dir, "cpu.max", cpuMax(s, c.slot(1, Gauge, "cpu_limit_cores", "cores", "cpu.max", helpLimit).at))
	}
	for _, f := range []struct{ file, name, help string }{
		{"memory.current", "memory_current_bytes", helpCurrent},
		{"memory.max", "memory_max_bytes", helpMax},
		{"memory.swap.current", "memory_swap_bytes", "Memory of the group that was moved to swap."},
	} {
		if exists(filepath.Join(dir, f.file)) {
			c.add(dir, f.file, single(s, c.slot(1, Gauge, f.name, "bytes", f.file, f.help)))
		}
	}
	c.addMemoryStat(dir, "")
	if exists(filepath.Join(dir, "memory.events")) {
		k := &keyed{s: s, at: map[string]slot{}}
		for _, e := range []string{"high", "max", "oom", "oom_kill"} {
			k.at[e] = c.slot(1, Counter, "memory_events_total", "1", "memory.events", helpEvents, Label{Name: "event", Value: e})
		}
		c.add(dir, "memory.events", k.parse)
	}
	const what = "input and output of the control group"
	if g := c.add(dir, "io.stat", c.ioV2); g == nil && exists(filepath.Join(dir, "memory.current")) {
		c.r.gaps.set(fleet.Trouble{What: what, Why: "the io controller is not enabled for " + dir,
			Remedy: "systemctl set-property <unit>.service IOAccounting=yes"})
	} else {
		c.r.gaps.drop(what)
	}
	for _, r := range []string{"cpu", "io", "memory"} {
		if !exists(filepath.Join(dir, r+".pressure")) {
			continue
		}
		p := &pressure{s: s,
			some: c.slot(1, Counter, "pressure_"+r+"_waiting_seconds_total", "seconds", r+".pressure", "Time in which a task of the group waited for "+pressureWords[r]+".").at,
			full: c.slot(1, Counter, "pressure_"+r+"_stalled_seconds_total", "seconds", r+".pressure", "Time in which no task of the group could run for lack of "+pressureWords[r]+".").at}
		c.add(dir, r+".pressure", p.parse)
	}
}

// addMemoryStat reads memory.stat rarely: the kernel sums it over all processors
// and dead child groups, which can take milliseconds.
func (c *cgroup) addMemoryStat(dir, prefix string) {
	if !exists(filepath.Join(dir, "memory.stat")) {
		return
	}
	anon, file := "anon", "file"
	if prefix != "" {
		anon, file = "rss", "cache"
	}
	at := map[string]slot{
		prefix + anon:            c.slot(1, Gauge, "memory_anon_bytes", "bytes", "memory.stat", helpAnon),
		prefix + file:            c.slot(1, Gauge, "memory_file_bytes", "bytes", "memory.stat", helpFile),
		prefix + "inactive_file": c.slot(1, Gauge, "memory_inactive_file_bytes", "bytes", "memory.stat", helpInactive),
		prefix + "pgmajfault":    c.slot(1, Counter, "memory_major_faults_total", "1", "memory.stat", helpMajor),
	}
	var positions []int
	for _, s := range at {
		positions = append(positions, s.at)
	}
	c.add(dir, "memory.stat", (&keyed{s: &c.r.set, at: at}).parse).hold(10, positions...)
}

func (c *cgroup) addV1(controller, dir string) {
	s := &c.r.set
	switch controller {
	case "cpuacct":
		if exists(filepath.Join(dir, "cpuacct.usage")) {
			c.add(dir, "cpuacct.usage", single(s, c.slot(1e-9, Counter, "cpu_usage_seconds_total", "seconds", "cpuacct.usage", helpUsage)))
		}
	case "cpu":
		if exists(filepath.Join(dir, "cpu.stat")) {
			c.add(dir, "cpu.stat", (&keyed{s: s, at: map[string]slot{
				"throttled_time": c.slot(1e-9, Counter, "cpu_throttled_seconds_total", "seconds", "cpu.stat", helpThrottled),
				"nr_periods":     c.slot(1, Counter, "cpu_periods_total", "1", "cpu.stat", helpPeriods),
				"nr_throttled":   c.slot(1, Counter, "cpu_throttled_periods_total", "1", "cpu.stat", helpThrPer),
			}}).parse)
		}
	case "memory":
		for _, f := range []struct{ file, name, help string }{
			{"memory.usage_in_bytes", "memory_current_bytes", helpCurrent},
			{"memory.limit_in_bytes", "memory_max_bytes", helpMax},
		} {
			if exists(filepath.Join(dir, f.file)) {
				c.add(dir, f.file, single(s, c.slot(1, Gauge, f.name, "bytes", f.file, f.help)))
			}
		}
		c.addMemoryStat(dir, "total_")
		if exists(filepath.Join(dir, "memory.oom_control")) {
			c.add(dir, "memory.oom_control", (&keyed{s: s, at: map[string]slot{
				"oom_kill": c.slot(1, Counter, "memory_events_total", "1", "memory.oom_control", helpEvents, Label{Name: "event", Value: "oom_kill"})}}).parse)
		}
	case "blkio":
		for _, f := range []string{"blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"} {
			if c.add(dir, f, c.ioV1) != nil {
				break
			}
		}
	}
}

// single parses a file of one number. The word max, and version 1's number that
// means the same, mean no value.
func single(s *set, to slot) func([]byte) {
	const unlimited = 1 << 60
	return func(b []byte) {
		l := cursor{b: bytes.TrimRight(b, "\n")}
		if v, ok := l.uint(); ok && (v < unlimited || to.scale != 1) {
			s.values[to.at] = float64(v) * to.scale
		}
	}
}

// cpuMax parses "quota period" in microseconds; the quota may be max.
func cpuMax(s *set, at int) func([]byte) {
	return func(b []byte) {
		l := cursor{b: bytes.TrimRight(b, "\n")}
		quota, ok := l.uint()
		period, ok2 := l.uint()
		if ok && ok2 && period > 0 {
			s.values[at] = float64(quota) / float64(period)
		}
	}
}

// ioV2 parses io.stat: "8:0 rbytes=1 wbytes=2 rios=3 wios=4 …".
func (c *cgroup) ioV2(b []byte) {
	in := cursor{b: b}
	for {
		l, ok := in.line()
		if !ok {
			return
		}
		device := l.field()
		for f := l.field(); len(f) > 0; f = l.field() {
			eq := bytes.IndexByte(f, '=')
			if eq < 0 {
				continue
			}
			if v, ok := parseUint(f[eq+1:]); ok {
				c.setIO(device, f[:eq], v)
			}
		}
	}
}

// ioV1 parses blkio.throttle.io_service_bytes: "8:0 Read 1".
func (c *cgroup) ioV1(b []byte) {
	in := cursor{b: b}
	for {
		l, ok := in.line()
		if !ok {
			return
		}
		device, what := l.field(), l.field()
		v, ok := l.uint()
		switch {
		case !ok:
		case string(what) == "Read":
			c.setIO(device, []byte("rbytes"), v)
		case string(what) == "Write":
			c.setIO(device, []byte("wbytes"), v)
		}
	}
}

func (c *cgroup) setIO(device, what []byte, v uint64) {
	var name, unit string
	switch string(what) {
	case "rbytes":
		name, unit = "io_read_bytes_total", "bytes"
	case "wbytes":
		name, unit = "io_written_bytes_total", "bytes"
	case "rios":
		name, unit = "io_reads_total", "1"
	case "wios":
		name, unit = "io_writes_total", "1"
	default:
		return
	}
	// The keys are built on the stack: no allocation for a device that is known.
	var key [80]byte
	k := append(append(append(key[:0], device...), ' '), what...)
	at, ok := c.at[string(k)]
	if !ok {
		if len(c.at) >= maxDevices {
			return
		}
		at = c.slot(1, Counter, name, unit, "io.stat", helpIO, Label{Name: "device", Value: c.deviceName(string(device))}).at
		c.at[string(k)] = at
	}
	c.r.values[at] = float64(v)
}

// deviceName turns 8:0 into sda; if that cannot be done, the numbers stay.
func (c *cgroup) deviceName(numbers string) string {
	if target, err := os.Readlink(filepath.Join(c.root, "/sys/dev/block", numbers)); err == nil {
		return strings.ReplaceAll(filepath.Base(target), "!", "/")
	}
	return numbers
}
