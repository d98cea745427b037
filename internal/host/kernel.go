package host

import (
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// rarely is how many reads pass between two of files that change seldom, or noisily without telling more.
const rarely = 10

// addKernel adds what the kernel counts apart from processors, memory and disks, under node_exporter's names.
func (h *Host) addKernel() {
	gauge := func(name, source, help string) int {
		return h.define(Metric{Name: name, Unit: "1", Help: help, Source: source})
	}
	nr := "/proc/sys/fs/file-nr"
	files := []int{gauge("node_filefd_allocated", nr, "File descriptors in use."), -1, gauge("node_filefd_maximum", nr, "File descriptors that the host allows.")}
	open := h.add(nr, "file descriptors", "", h.figures(files...))
	open.optional = true
	open.hold(rarely, files[0], files[2])
	for name, path := range map[string]string{
		"node_nf_conntrack_entries":       "/proc/sys/net/netfilter/nf_conntrack_count",
		"node_nf_conntrack_entries_limit": "/proc/sys/net/netfilter/nf_conntrack_max",
		"node_entropy_available_bits":     "/proc/sys/kernel/random/entropy_avail",
		"node_entropy_pool_size_bits":     "/proc/sys/kernel/random/poolsize",
	} {
		at := gauge(name, path, "The figure in "+path+".")
		g := h.add(path, name, "", h.figures(at))
		g.optional = true // the firewall may be off
		g.hold(rarely, at)
	}
	h.add("/proc/net/sockstat", "sockets", "", (&sockStat{h: h, at: map[string]int{}}).parse).optional = true
	h.add("/proc/net/softnet_stat", "packets by processor", "", (&softNet{h: h}).parse).optional = true
	h.clock = newClock(h)
}

// figures reads a line of figures; -1 leaves one out.
func (h *Host) figures(at ...int) func([]byte) {
	return func(b []byte) {
		in := cursor{b: b}
		l, _ := in.line()
		for _, i := range at {
			if v, ok := l.uint(); ok && i >= 0 {
				h.values[i] = float64(v)
			}
		}
	}
}

// sockStat parses /proc/net/sockstat: "TCP: inuse 4 orphan 0 tw 1 alloc 6 mem 3".
type sockStat struct {
	h    *Host
	at   map[string]int
	name []byte // of a metric, behind its prefix
}

func (s *sockStat) parse(b []byte) {
	page := float64(os.Getpagesize())
	in := cursor{b: b}
	for {
		l, ok := in.line()
		if !ok {
			return
		}
		protocol := l.field()
		if len(protocol) < 2 {
			continue
		}
		protocol = protocol[:len(protocol)-1] // without the colon
		for key := l.field(); len(key) > 0; key = l.field() {
			v, ok := l.uint()
			if !ok {
				break
			}
			s.set(protocol, key, "", float64(v))
			if string(key) == "mem" {
				s.set(protocol, key, "_bytes", float64(v)*page)
			}
		}
	}
}

// set takes a figure; unit is empty or "_bytes".
func (s *sockStat) set(protocol, key []byte, unit string, v float64) {
	s.name = append(append(append(append(s.name[:0], protocol...), '_'), key...), unit...)
	at, known := s.at[string(s.name)]
	if !known {
		if len(s.at) >= maxMeminfoLines {
			return
		}
		m := Metric{Name: "node_sockstat_" + string(s.name), Help: "Sockets: " + string(key) + " of " + string(protocol) + ".", Source: "/proc/net/sockstat"}
		if unit != "" {
			m.Unit = "bytes"
		}
		at = s.h.define(m)
		s.at[string(s.name)] = at
	}
	s.h.values[at] = v
}

// softNet parses /proc/net/softnet_stat: a line of hexadecimal figures for each processor.
type softNet struct {
	h    *Host
	cpus []int // first position by line
}

var softColumns = []template{
	{name: "node_softnet_processed_total", unit: "1", kind: Counter, help: "Packets processed."},
	{name: "node_softnet_dropped_total", unit: "1", kind: Counter, help: "Packets dropped because the queue was full."},
	{name: "node_softnet_times_squeezed_total", unit: "1", kind: Counter, help: "Times that packets were left because the processor's share was used up."},
}

func (s *softNet) parse(b []byte) {
	in := cursor{b: b}
	for n := 0; n < maxCPUs; n++ {
		l, ok := in.line()
		if !ok {
			return
		}
		if n == len(s.cpus) {
			s.cpus = append(s.cpus, s.h.defineAll(softColumns, "/proc/net/softnet_stat", Label{Name: "cpu", Value: utoa(n)}))
		}
		for i := range softColumns {
			if v, ok := parseHex(l.field()); ok {
				s.h.values[s.cpus[n]+i] = float64(v)
			}
		}
	}
}

// parseHex reads a whole field of hexadecimal digits.
func parseHex(b []byte) (v uint64, ok bool) {
	for _, d := range b {
		switch {
		case d >= '0' && d <= '9':
			d -= '0'
		case d >= 'a' && d <= 'f':
			d -= 'a' - 10
		default:
			return 0, false
		}
		v = v<<4 | uint64(d)
	}
	return v, len(b) > 0 && len(b) <= 16
}

// clock is this host's clock, what the kernel knows of it, and the host's name. They are not in files of a tree, and are there for this
// host only.
type clock struct {
	h     *Host
	own   bool // the tree is this host's
	now   int
	uname int
	timex int // first position; -1 until it was told
	wait  int
	told  unix.Timex
	held  [len(timexMetrics)]float64
}

var timexMetrics = [...]template{
	{name: "node_timex_sync_status", unit: "1", help: "1 if the clock is synchronized."},
	{name: "node_timex_offset_seconds", unit: "seconds", help: "How far the clock is from its reference."},
	{name: "node_timex_frequency_adjustment_ratio", unit: "1", help: "How much faster than by itself the clock runs."},
	{name: "node_timex_maxerror_seconds", unit: "seconds", help: "The largest error that the clock may have."},
	{name: "node_timex_estimated_error_seconds", unit: "seconds", help: "The error that the clock is believed to have."},
	{name: "node_timex_status", unit: "1", help: "The status bits of the clock."},
	{name: "node_timex_loop_time_constant", unit: "1", help: "The time constant of the clock's loop."},
	{name: "node_timex_tick_seconds", unit: "seconds", help: "The time between two ticks."},
	{name: "node_timex_pps_frequency_hertz", unit: "1", help: "The frequency of the pulse per second."},
	{name: "node_timex_pps_jitter_seconds", unit: "seconds", help: "The jitter of the pulse per second."},
	{name: "node_timex_pps_shift_seconds", unit: "seconds", help: "The interval between pulses."},
	{name: "node_timex_pps_stability_hertz", unit: "1", help: "The stability of the pulse per second."},
	{name: "node_timex_pps_jitter_total", unit: "1", kind: Counter, help: "Pulses that came too early or late."},
	{name: "node_timex_pps_calibration_total", unit: "1", kind: Counter, help: "Calibrations by the pulse."},
	{name: "node_timex_pps_error_total", unit: "1", kind: Counter, help: "Calibrations that failed."},
	{name: "node_timex_pps_stability_exceeded_total", unit: "1", kind: Counter, help: "Calibrations that were not stable."},
	{name: "node_timex_tai_offset_seconds", unit: "seconds", help: "International Atomic Time less that of the clock."},
}

func newClock(h *Host) *clock {
	c := &clock{h: h, own: filepath.Clean(h.root) == "/", timex: -1, uname: -1}
	if !c.own {
		return c
	}
	c.now = h.define(Metric{Name: "node_time_seconds", Unit: "seconds", Help: "The host's clock, Unix time, in whole seconds.", Source: "clock"})
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		text := func(b []byte) string { return unix.ByteSliceToString(b) }
		c.uname = h.define(Metric{Name: "node_uname_info", Help: "1; the labels hold the kernel and the host's name.", Source: "uname", Labels: []Label{
			{Name: "domainname", Value: text(u.Domainname[:])}, {Name: "machine", Value: text(u.Machine[:])}, {Name: "nodename", Value: text(u.Nodename[:])},
			{Name: "release", Value: text(u.Release[:])}, {Name: "sysname", Value: text(u.Sysname[:])}, {Name: "version", Value: text(u.Version[:])}}})
	}
	return c
}

// read puts the values of now, or those that were read some reads ago, in their places.
func (c *clock) read() {
	if !c.own {
		return
	}
	c.h.values[c.now] = float64(time.Now().Unix())
	if c.uname >= 0 {
		c.h.values[c.uname] = 1
	}
	if c.wait--; c.wait < 0 {
		c.wait = rarely - 1
		c.askTimex()
	}
	if c.timex >= 0 {
		copy(c.h.values[c.timex:], c.held[:])
	}
}

// askTimex asks the kernel about its clock; a container may not.
func (c *clock) askTimex() {
	const (
		timeError = 5       // the clock is not synchronized
		staNano   = 0x2000  // offsets are nanoseconds, not microseconds
		micro     = 1e6     // parts of a second
		ppm       = 1 << 16 // parts of a part per million
	)
	t := &c.told
	*t = unix.Timex{}
	state, err := unix.Adjtimex(t)
	if err != nil {
		return
	}
	if c.timex < 0 {
		c.timex = c.h.defineAll(timexMetrics[:], "adjtimex")
	}
	unit := micro
	if t.Status&staNano != 0 {
		unit = 1e9
	}
	sync := 1.0
	if state == timeError {
		sync = 0
	}
	c.held = [len(timexMetrics)]float64{sync, float64(t.Offset) / unit, 1 + float64(t.Freq)/ppm/1e6, float64(t.Maxerror) / micro, float64(t.Esterror) / micro,
		float64(t.Status), float64(t.Constant), float64(t.Tick) / micro, float64(t.Ppsfreq) / ppm / 1e6, float64(t.Jitter) / unit, float64(t.Shift), float64(t.Stabil) / ppm / 1e6,
		float64(t.Jitcnt), float64(t.Calcnt), float64(t.Errcnt), float64(t.Stbcnt), float64(t.Tai)}
}
