package gather

import (
	"context"
	"time"

	"github.com/rissodb/risso/internal/host"
)

// machine is the machine that the server runs on, if that is this one.
type machine struct {
	host    *host.Host
	process *host.Process
	cpu     time.Duration // that the server had used when it was looked at first
}

// lookAtMachine finds the server's machine and process, if they are here, and how much memory it may use.
func (g *gatherer) lookAtMachine(ctx context.Context) (m machine) {
	const what = "the memory of the server's machine"
	if here, why, err := g.conn.SameMachine(ctx, g.target); err != nil || !here {
		if err != nil {
			why = err.Error()
		}
		g.unread(what, why, "")
		return m
	}
	h, err := host.New(host.Options{})
	if err != nil {
		g.unread(what, err.Error(), "")
		return m
	}
	m.host = h
	h.Read()
	h.Each(func(x *host.Metric, v float64) {
		if x.Name == "node_memory_MemTotal_bytes" {
			g.server.Memory = v
		}
	})
	pid, _, err := h.FindServer(host.Target{Socket: g.conn.Server.Socket, Port: g.target.Port(), PIDFile: g.conn.Server.PidFile})
	if err != nil {
		return m
	}
	if m.process, err = h.Process(pid); err != nil {
		m.process = nil
		return m
	}
	m.cpu, _ = m.used()
	m.process.Each(func(x *host.Metric, v float64) {
		if x.Name == "risso_cgroup_memory_max_bytes" && v > 0 && (v < g.server.Memory || g.server.Memory == 0) {
			g.server.Memory = v
		}
	})
	return m
}

// used is how much time of processors the server's process has used.
func (m *machine) used() (cpu time.Duration, known bool) {
	if m.process == nil {
		return 0, false
	}
	if _, err := m.process.Read(); err != nil {
		return 0, false
	}
	m.process.Each(func(x *host.Metric, v float64) {
		if x.Name == "risso_process_cpu_seconds_total" {
			cpu += time.Duration(v * float64(time.Second))
			known = true
		}
	})
	return cpu, known
}

// spent is how much it has used since it was looked at first.
func (m *machine) spent() (time.Duration, bool) {
	now, known := m.used()
	return now - m.cpu, known
}

func (m *machine) close() {
	if m.process != nil {
		_ = m.process.Close()
	}
	if m.host != nil {
		_ = m.host.Close()
	}
}
