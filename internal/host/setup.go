package host

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Setup is how a host is set up, as far as that affects how fast it is. What cannot be read is left empty.
type Setup struct {
	Hostname     string   `json:"hostname"`
	OS           string   `json:"os,omitempty"`
	Kernel       string   `json:"kernel"`
	Architecture string   `json:"architecture,omitempty"` // as uname has it: x86_64
	CPUModel     string   `json:"cpu_model,omitempty"`
	CPUs         int      `json:"cpus"`                   // online
	NUMANodes    int      `json:"numa_nodes,omitempty"`   // 0: not known
	Governor     string   `json:"governor,omitempty"`     // frequency governor of processor 0; empty if the kernel does not control it, as in most virtual machines
	Virtual      string   `json:"virtual,omitempty"`      // the hypervisor, if it can be detected; empty: none found
	Container    string   `json:"container,omitempty"`    // docker, podman, lxc …; empty: none found
	MemoryBytes  int64    `json:"memory_bytes"`           // RAM
	SwapBytes    int64    `json:"swap_bytes"`             // 0: none
	Swappiness   string   `json:"swappiness,omitempty"`   // vm.swappiness
	HugePages    string   `json:"transparent_huge_pages"` // always, madvise, never
	Clocksource  string   `json:"clocksource,omitempty"`
	Load         Load     `json:"load"`
	Unmitigated  []string `json:"vulnerable_to,omitempty"` // processor vulnerabilities that the kernel does not mitigate, as with mitigations=off, which is faster
}

// Load is the number of threads running or waiting, averaged over these minutes.
type Load struct {
	One     float64 `json:"1_min"`
	Five    float64 `json:"5_min"`
	Fifteen float64 `json:"15_min"`
}

// Setup reads how the host is set up.
func (h *Host) Setup() Setup {
	id := h.Identity()
	s := Setup{
		Hostname: id.Hostname, OS: id.OS, Kernel: id.Kernel, CPUModel: id.CPUModel, CPUs: id.CPUs, MemoryBytes: id.Memory,
		Governor:    h.text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
		Clocksource: h.text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
		HugePages:   chosen(h.text("/sys/kernel/mm/transparent_hugepage/enabled")),
		Swappiness:  h.text("/proc/sys/vm/swappiness"),
		Virtual:     h.hypervisor(),
		Container:   h.container(),
	}
	if h.root == "/" {
		var u unix.Utsname
		if unix.Uname(&u) == nil {
			s.Architecture = unix.ByteSliceToString(u.Machine[:])
		}
	}
	if nodes, err := filepath.Glob(h.path("/sys/devices/system/node/node[0-9]*")); err == nil {
		s.NUMANodes = len(nodes)
	}
	for line := range strings.SplitSeq(h.text("/proc/meminfo"), "\n") {
		if v, ok := strings.CutPrefix(line, "SwapTotal:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(v, "kB")), 10, 64)
			s.SwapBytes = kb * 1024
		}
	}
	if p := strings.Fields(h.text("/proc/loadavg")); len(p) >= 3 {
		s.Load.One, _ = strconv.ParseFloat(p[0], 64)
		s.Load.Five, _ = strconv.ParseFloat(p[1], 64)
		s.Load.Fifteen, _ = strconv.ParseFloat(p[2], 64)
	}
	if faults, err := filepath.Glob(h.path("/sys/devices/system/cpu/vulnerabilities/*")); err == nil {
		for _, f := range faults {
			if b, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(b), "Vulnerable") {
				s.Unmitigated = append(s.Unmitigated, filepath.Base(f))
			}
		}
	}
	return s
}

// chosen picks the word in brackets of "always [madvise] never".
func chosen(list string) string {
	_, rest, ok := strings.Cut(list, "[")
	if !ok {
		return list
	}
	word, _, _ := strings.Cut(rest, "]")
	return word
}

// hypervisor names what the machine is a guest of. Sources: /sys/hypervisor, the DMI strings that the hypervisor sets,
// and the processor's own flag (CPUID leaf 1, ECX bit 31).
func (h *Host) hypervisor() string {
	if t := h.text("/sys/hypervisor/type"); t != "" {
		return t
	}
	vendor, product := h.text("/sys/class/dmi/id/sys_vendor"), h.text("/sys/class/dmi/id/product_name")
	for _, known := range [][2]string{{"QEMU", "KVM"}, {"KVM", "KVM"}, {"Amazon EC2", "Amazon EC2"}, {"Google", "Google Compute Engine"}, {"VMware", "VMware"},
		{"innotek", "VirtualBox"}, {"Microsoft", "Hyper-V"}, {"Xen", "Xen"}, {"DigitalOcean", "KVM"}, {"Hetzner", "KVM"}, {"OpenStack", "OpenStack"}, {"Alibaba", "KVM"}} {
		if strings.Contains(vendor, known[0]) || strings.Contains(product, known[0]) {
			if strings.Contains(product, "metal") {
				return ""
			}
			return known[1]
		}
	}
	for line := range strings.SplitSeq(h.text("/proc/cpuinfo"), "\n") {
		if name, flags, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "flags" {
			if strings.Contains(flags+" ", " hypervisor ") {
				return "an unnamed hypervisor"
			}
			break
		}
	}
	return ""
}

// container names what kind of container this process is in, by the marks that the runtimes leave.
func (h *Host) container() string {
	if exists(h.path("/.dockerenv")) {
		return "docker"
	}
	if exists(h.path("/run/.containerenv")) {
		return "podman"
	}
	if t := h.text("/run/systemd/container"); t != "" {
		return t
	}
	return containerOf(h.text("/proc/self/cgroup"))
}

// containerOf tells a container by its control group's name.
func containerOf(cgroup string) string {
	for _, mark := range [][2]string{{"kubepods", "kubernetes"}, {"docker", "docker"}, {"libpod", "podman"}, {"lxc", "lxc"}, {"containerd", "containerd"}, {"machine.slice", "systemd-nspawn"}} {
		if strings.Contains(cgroup, mark[0]) {
			return mark[1]
		}
	}
	return ""
}

// Limits are the limits set by a process's control group, the tightest ones on the way to the root.
type Limits struct {
	Version     int     `json:"version,omitempty"` // of cgroup; 0: not found
	Path        string  `json:"path,omitempty"`
	Slice       string  `json:"slice,omitempty"`        // the systemd slice: system.slice
	Unit        string  `json:"unit,omitempty"`         // the systemd unit: mariadb.service
	CPUs        float64 `json:"cpus,omitempty"`         // processors allowed by the quota; 0: no limit
	CPUWeight   string  `json:"cpu_weight,omitempty"`   // cpu.weight; with version 1, cpu.shares
	CPUSet      string  `json:"cpuset,omitempty"`       // processors it may run on: 0-3
	MemorySet   string  `json:"memory_nodes,omitempty"` // NUMA nodes whose memory it may use
	MemoryBytes int64   `json:"memory_bytes,omitempty"` // 0: no limit
	MemoryHigh  int64   `json:"memory_high_bytes,omitempty"`
	IOWeight    string  `json:"io_weight,omitempty"`
	IOMax       string  `json:"io_max,omitempty"`
	Affinity    string  `json:"affinity,omitempty"` // Cpus_allowed_list of the process itself
}

// unlimited1 is from where on version 1 means "no limit": the kernel shows the largest count of pages there is.
const unlimited1 = int64(1) << 62

// Limits reads what the control group of a process allows; pid 0 is this process.
func (h *Host) Limits(pid int) Limits {
	proc := "/proc/self"
	if pid > 0 {
		proc = "/proc/" + strconv.Itoa(pid)
	}
	var l Limits
	for line := range strings.SplitSeq(h.text(proc+"/status"), "\n") {
		if v, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			l.Affinity = strings.TrimSpace(v)
		}
	}
	mounts := cgroupMounts(h.root)
	for line := range strings.SplitSeq(h.text(proc+"/cgroup"), "\n") {
		p := strings.SplitN(line, ":", 3) // hierarchy:controllers:path; version 2 is 0::path
		if len(p) != 3 {
			continue
		}
		if p[0] == "0" && p[1] == "" {
			l.place(p[2])
			if dir, top := groupFolder(h.root, mounts, "", p[2]); dir != "" {
				l.Version = 2
				l.readV2(dir, top)
			}
			continue
		}
		for controller := range strings.SplitSeq(p[1], ",") {
			if l.Path == "" || controller == "cpu" || controller == "name=systemd" {
				l.place(p[2])
			}
			if dir, top := groupFolder(h.root, mounts, controller, p[2]); dir != "" {
				l.Version = max(l.Version, 1)
				l.readV1(controller, dir, top)
			}
		}
	}
	return l
}

// place notes where the group is, and what systemd calls it.
func (l *Limits) place(path string) {
	l.Path = path
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case strings.HasSuffix(part, ".slice"):
			l.Slice = part
		case strings.HasSuffix(part, ".service"), strings.HasSuffix(part, ".scope"):
			l.Unit = part
		}
	}
}

// groupFolder is the folder of a group and the top of its hierarchy as it is seen here.
func groupFolder(root string, mounts []cgroupMount, controller, path string) (dir, top string) {
	for _, m := range mounts {
		if (controller == "") != (m.version == 2) || (controller != "" && !contains(m.controllers, controller)) {
			continue
		}
		rest := path
		if m.root != "/" {
			cut, ok := strings.CutPrefix(path, m.root)
			if !ok {
				cut = "/"
			}
			rest = cut
		}
		top = filepath.Join(root, m.point)
		dir = filepath.Join(top, rest)
		if !exists(dir) {
			dir = top // seen from within a container: the mount is the group
		}
		return dir, top
	}
	return "", ""
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// upward calls f for a folder and those above it, up to the top.
func upward(dir, top string, f func(dir string)) {
	for {
		f(dir)
		if dir == top || len(dir) <= len(top) {
			return
		}
		dir = filepath.Dir(dir)
	}
}

func word(dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// readV2 reads the files of version 2. Source: Documentation/admin-guide/cgroup-v2.rst of Linux.
func (l *Limits) readV2(dir, top string) {
	upward(dir, top, func(d string) {
		if p := strings.Fields(word(d, "cpu.max")); len(p) == 2 {
			l.quota(p[0], p[1])
		}
		l.memory(word(d, "memory.max"))
		if v, err := strconv.ParseInt(word(d, "memory.high"), 10, 64); err == nil && (l.MemoryHigh == 0 || v < l.MemoryHigh) {
			l.MemoryHigh = v
		}
	})
	l.CPUWeight = word(dir, "cpu.weight")
	l.CPUSet, l.MemorySet = word(dir, "cpuset.cpus.effective"), word(dir, "cpuset.mems.effective")
	l.IOWeight = strings.TrimPrefix(word(dir, "io.weight"), "default ")
	l.IOMax = strings.ReplaceAll(word(dir, "io.max"), "\n", "; ")
}

// readV1 reads the files of one controller of version 1.
func (l *Limits) readV1(controller, dir, top string) {
	switch controller {
	case "cpu":
		l.CPUWeight = word(dir, "cpu.shares")
		upward(dir, top, func(d string) { l.quota(word(d, "cpu.cfs_quota_us"), word(d, "cpu.cfs_period_us")) })
	case "memory":
		upward(dir, top, func(d string) { l.memory(word(d, "memory.limit_in_bytes")) })
	case "cpuset":
		l.CPUSet, l.MemorySet = word(dir, "cpuset.cpus"), word(dir, "cpuset.mems")
	case "blkio":
		l.IOWeight = word(dir, "blkio.weight")
	}
}

func (l *Limits) quota(quota, period string) {
	q, err1 := strconv.ParseFloat(quota, 64) // "max", and -1 in version 1, are no limit
	p, err2 := strconv.ParseFloat(period, 64)
	if err1 == nil && err2 == nil && q > 0 && p > 0 && (l.CPUs == 0 || q/p < l.CPUs) {
		l.CPUs = q / p
	}
}

func (l *Limits) memory(text string) {
	if v, err := strconv.ParseInt(text, 10, 64); err == nil && v < unlimited1 && (l.MemoryBytes == 0 || v < l.MemoryBytes) {
		l.MemoryBytes = v
	}
}

// ContainerOf names the container that a process runs in, as far as its control group shows; empty: none seen.
func (h *Host) ContainerOf(pid int) string {
	return containerOf(h.text("/proc/" + strconv.Itoa(pid) + "/cgroup"))
}

// NetworkNamespace identifies the network namespace of a process (0: this one); empty if it may not be seen.
func (h *Host) NetworkNamespace(pid int) string {
	proc := "/proc/self"
	if pid > 0 {
		proc = "/proc/" + strconv.Itoa(pid)
	}
	ns, err := os.Readlink(h.path(proc + "/ns/net"))
	if err != nil {
		return ""
	}
	return ns
}

// InterfaceKind says what kind of network interface a name denotes. Source: Documentation/ABI/testing/sysfs-class-net of
// Linux: iflink differs from ifindex where an interface is an end of a pair or sits on another.
func (h *Host) InterfaceKind(name string) string {
	dir := h.path("/sys/class/net/" + name)
	switch {
	case exists(filepath.Join(dir, "bridge")):
		return "a bridge"
	case exists(filepath.Join(dir, "bonding")):
		return "a bond"
	case exists(filepath.Join(dir, "tun_flags")):
		return "a tunnel"
	case exists(filepath.Join(dir, "device")):
		return "a network card"
	case exists(h.path("/proc/net/vlan/" + name)):
		return "a VLAN"
	case word(dir, "iflink") != "" && word(dir, "iflink") != word(dir, "ifindex"):
		return "an end of a veth pair, as containers have"
	case word(dir, "type") == "772":
		return "loopback"
	}
	return "a virtual interface"
}

// Command is the name of a process' program; empty if there is no such process.
func (h *Host) Command(pid int) string {
	if pid <= 0 {
		return ""
	}
	return h.text("/proc/" + strconv.Itoa(pid) + "/comm")
}

// Parent is the process that started another; 0 if it is not known.
func (h *Host) Parent(pid int) int {
	if pid <= 0 {
		return 0
	}
	for line := range strings.SplitSeq(h.text("/proc/"+strconv.Itoa(pid)+"/status"), "\n") {
		if v, ok := strings.CutPrefix(line, "PPid:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(v))
			if err == nil {
				return n
			}
		}
	}
	return 0
}
