package host

// addPressure adds PSI, the kernel's measure of time lost to waiting: "some" is
// time in which at least one task waited, "full" time in which all of them did.
func (h *Host) addPressure() {
	const remedy = "boot the kernel with psi=1 (Linux 4.20 or newer; grubby --update-kernel=ALL --args=psi=1 on RHEL, GRUB_CMDLINE_LINUX on Debian)"
	for _, r := range []string{"cpu", "io", "memory", "irq"} {
		p := &pressure{s: &h.set, some: -1, full: -1}
		source := "/proc/pressure/" + r
		if r != "irq" {
			p.some = h.define(Metric{Name: "node_pressure_" + r + "_waiting_seconds_total", Counter: true, Unit: "seconds", Source: source,
				Help: "Time in which at least one task waited for " + pressureWords[r] + "."})
		}
		if r != "cpu" {
			p.full = h.define(Metric{Name: "node_pressure_" + r + "_stalled_seconds_total", Counter: true, Unit: "seconds", Source: source,
				Help: "Time in which no task could run because all waited for " + pressureWords[r] + "."})
		}
		g := h.add(source, "pressure stall information ("+r+")", remedy, p.parse)
		g.optional = r == "irq" // only some kernels account interrupts
	}
}

var pressureWords = map[string]string{"cpu": "a processor", "io": "input and output", "memory": "memory", "irq": "interrupts"}

// pressure parses a PSI file of the host or a control group.
type pressure struct {
	s          *set
	some, full int // positions, or -1
}

func (p *pressure) parse(b []byte) {
	in := cursor{b: b}
	for {
		l, ok := in.line()
		if !ok {
			return
		}
		at := -1
		switch kind := l.field(); {
		case hasPrefix(kind, "some"):
			at = p.some
		case hasPrefix(kind, "full"):
			at = p.full
		}
		if at < 0 {
			continue
		}
		for f := l.field(); len(f) > 0; f = l.field() {
			if hasPrefix(f, "total=") {
				if v, ok := parseUint(f[len("total="):]); ok {
					p.s.values[at] = float64(v) / 1e6
				}
			}
		}
	}
}

func (h *Host) addMemory() {
	m := &memInfo{h: h, at: map[string]int{}}
	h.add("/proc/meminfo", "memory", "mount /proc", m.parse)

	v := &keyed{s: &h.set, at: map[string]slot{}}
	for key, t := range map[string]template{
		"pgfault":    {unit: "1", help: "Page faults, minor and major."},
		"pgmajfault": {unit: "1", help: "Page faults that had to read from disk."},
		"pgpgin":     {unit: "kibibytes", help: "Read from disks, in KiB."},
		"pgpgout":    {unit: "kibibytes", help: "Written to disks, in KiB."},
		"pswpin":     {unit: "pages", help: "Pages read back from swap."},
		"pswpout":    {unit: "pages", help: "Pages written to swap."},
		"oom_kill":   {unit: "1", help: "Processes killed by the kernel because memory ran out."},
	} {
		v.at[key] = slot{h.define(Metric{Name: "node_vmstat_" + key, Counter: true, Unit: t.unit, Help: t.help, Source: "/proc/vmstat"}), 1}
	}
	h.add("/proc/vmstat", "paging", "mount /proc", v.parse)
}

// memInfo parses /proc/meminfo; its lines differ between kernels, so each is
// defined when it is first seen.
type memInfo struct {
	h  *Host
	at map[string]int
}

// maxMeminfoLines bounds what a strange file can make Risso remember.
const maxMeminfoLines = 256

func (m *memInfo) parse(b []byte) {
	in := cursor{b: b}
	for {
		l, ok := in.line()
		if !ok {
			return
		}
		key := l.field()
		if len(key) < 2 || key[len(key)-1] != ':' {
			continue
		}
		v, ok := l.uint()
		if !ok {
			continue
		}
		kb := string(l.field()) == "kB" // a comparison only; the compiler makes no string
		at, known := m.at[string(key)]
		if !known {
			if len(m.at) >= maxMeminfoLines {
				continue
			}
			at = m.define(string(key[:len(key)-1]), kb)
			m.at[string(key)] = at
		}
		if kb {
			m.h.values[at] = float64(v) * 1024
		} else {
			m.h.values[at] = float64(v)
		}
	}
}

func (m *memInfo) define(field string, kb bool) int {
	// node_exporter writes Active(anon) as Active_anon.
	name := make([]byte, 0, len(field))
	for i := range len(field) {
		switch c := field[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
			name = append(name, c)
		case c == '(':
			name = append(name, '_')
		}
	}
	d := Metric{Name: "node_memory_" + string(name), Unit: "1", Help: "Memory: " + field + " of /proc/meminfo.", Source: "/proc/meminfo"}
	if kb {
		d.Name += "_bytes"
		d.Unit = "bytes"
	}
	return m.h.define(d)
}

// keyed parses files of "key value" lines, of which only some matter.
type keyed struct {
	s  *set
	at map[string]slot
}

// slot is where a value goes and what it is multiplied with.
type slot struct {
	at    int
	scale float64
}

func (k *keyed) parse(b []byte) {
	in := cursor{b: b}
	for {
		l, ok := in.line()
		if !ok {
			return
		}
		to, ok := k.at[string(l.field())]
		if !ok {
			continue
		}
		if v, ok := l.uint(); ok {
			k.s.values[to.at] = float64(v) * to.scale
		}
	}
}
