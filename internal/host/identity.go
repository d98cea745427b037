package host

import (
	"os"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// Identity says which host this is.
type Identity struct {
	Hostname  string // as the kernel has it
	MachineID string // /etc/machine-id; stays over a reboot; empty if there is none
	BootID    string // new at every boot
	Kernel    string // release: 6.1.0-18-amd64
	OS        string // PRETTY_NAME of /etc/os-release
	CPUs      int    // processors that are online
	CPUModel  string
	Memory    int64 // bytes
}

// ID is the host's instance ID: the slug of its name.
func (i Identity) ID() string { return fleet.Slug(i.Hostname) }

// Identity reads who the host is. What cannot be read is left empty.
func (h *Host) Identity() Identity {
	id := Identity{
		Hostname:  h.text("/proc/sys/kernel/hostname"),
		MachineID: h.text("/etc/machine-id"),
		BootID:    h.text("/proc/sys/kernel/random/boot_id"),
		Kernel:    h.text("/proc/sys/kernel/osrelease"),
	}
	if id.Hostname == "" {
		id.Hostname = h.text("/etc/hostname")
	}
	for line := range strings.SplitSeq(h.text("/etc/os-release"), "\n") {
		if v, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			id.OS = strings.Trim(v, `"'`)
		}
	}
	for line := range strings.SplitSeq(h.text("/proc/stat"), "\n") {
		if rest, ok := strings.CutPrefix(line, "cpu"); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			id.CPUs++
		}
	}
	for line := range strings.SplitSeq(h.text("/proc/cpuinfo"), "\n") {
		if name, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			id.CPUModel = strings.TrimSpace(v)
			break
		}
	}
	in := cursor{b: []byte(h.text("/proc/meminfo"))}
	for l, ok := in.line(); ok; l, ok = in.line() {
		if string(l.field()) == "MemTotal:" {
			kb, _ := l.uint()
			id.Memory = int64(kb) * 1024
		}
	}
	return id
}

// text reads a small file; it is empty if it cannot be read.
func (h *Host) text(path string) string {
	b, err := os.ReadFile(h.path(path))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
