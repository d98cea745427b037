package host

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// links are the network interfaces as /sys describes them. The kernel may make a reader wait there, so another goroutine than that of
// Read looks at them.
type links struct {
	h *Host

	mu     sync.Mutex
	latest map[string]*link // by name; one that is gone stays, without values

	first map[string]int // of Read alone: positions
}

type link [len(linkMetrics)]float64

var linkMetrics = [...]template{
	{name: "node_network_up", unit: "1", help: "1 if the interface is up."},
	{name: "node_network_speed_bytes", unit: "bytes", help: "Speed of the interface in bytes a second."},
	{name: "node_network_mtu_bytes", unit: "bytes", help: "The largest packet."},
	{name: "node_network_carrier", unit: "1", help: "1 if the link carries."},
	{name: "node_network_carrier_changes_total", unit: "1", kind: Counter, help: "Changes of the carrier."},
}

// look reads each interface.
func (l *links) look() {
	dir := l.h.path("/sys/class/net")
	entries, err := os.ReadDir(dir)
	if err != nil {
		entries = nil // none is known now
	}
	now := map[string]link{}
	for _, e := range entries {
		if name := e.Name(); !skipInterface(name) && len(now) < maxDevices {
			now[name] = l.read(filepath.Join("/sys/class/net", name))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, was := range l.latest {
		if _, there := now[name]; !there {
			for i := range was {
				was[i] = math.NaN()
			}
		}
	}
	for name, v := range now {
		if l.latest[name] == nil && len(l.latest) < maxDevices {
			l.latest[name] = new(link)
		}
		if at := l.latest[name]; at != nil {
			*at = v
		}
	}
}

func (l *links) read(dir string) link {
	figure := func(file string) float64 {
		v, err := strconv.ParseFloat(l.h.text(filepath.Join(dir, file)), 64)
		if err != nil {
			return math.NaN() // the kernel does not know it of this interface
		}
		return v
	}
	up := 0.0
	if l.h.text(filepath.Join(dir, "operstate")) == "up" {
		up = 1
	}
	speed := math.NaN() // in megabits; -1 where it is not known
	if v := figure("speed"); v >= 0 {
		speed = v * 1000 * 1000 / 8
	}
	return link{up, speed, figure("mtu"), figure("carrier"), figure("carrier_changes")}
}

// put puts the newest values in their places.
func (l *links) put() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, v := range l.latest {
		first, known := l.first[name]
		if !known {
			first = l.h.defineAll(linkMetrics[:], "/sys/class/net", Label{Name: "device", Value: name})
			l.first[name] = first
		}
		copy(l.h.values[first:], v[:])
	}
}
