package collect

import (
	"context"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/host"
)

// Host watches the machine that Risso runs on.
type Host struct {
	opts     Options
	host     *host.Host
	instance fleet.Instance
	sample   fleet.Sample
	mapped   []int // position in the host's own list → position in the sample
	prev     []float64
	prevTick int64
	prevAt   time.Time
}

// NewHost makes the collector of a host, which the caller closes.
func NewHost(h *host.Host, instance fleet.Instance, o Options) *Host {
	return &Host{opts: o, host: h, instance: instance}
}

// Run reads the host every second until ctx ends.
func (h *Host) Run(ctx context.Context) { Every(ctx, h.opts.Phase, h.tick) }

func (h *Host) tick(due time.Time) time.Time {
	h.sample.Clear()
	var at time.Time
	for range 3 { // all values should be of one moment: what came between is read again
		at = time.Now()
		h.mapped = copyInto(&h.sample, h.mapped, h.host.Metrics, h.host.Read())
		if time.Since(at) < lateAfter {
			break
		}
	}
	// What was read late has its own time: the rate of a second that took five would be fivefold.
	due = due.Add(max(at.Sub(due).Round(interval), 0))
	t := due.Unix()
	late := at.Sub(due).Abs() > lateAfter || time.Since(at) > lateAfter
	if err := h.opts.Sink.Append(t, h.sample.Metrics, h.sample.Values, late); err != nil {
		h.opts.Logger.Debug("a reading was not stored", "instance", h.instance.ID, "err", err)
	}
	if h.opts.Observer != nil {
		h.opts.Observer.Observe(View{Instance: h.instance, Tick: t, PrevTick: h.prevTick, Seconds: between(h.prevTick, t, h.prevAt, at), Prev: h.prev, Up: true, Late: late,
			Sample: &h.sample, Gaps: h.host.Gaps()})
	}
	h.prev = append(h.prev[:0], h.sample.Values...)
	h.prevTick, h.prevAt = t, at
	return due
}

// copyInto puts values into a sample; mapped remembers which position of the one is which of the other.
func copyInto(s *fleet.Sample, mapped []int, metrics func() []fleet.Metric, values []float64) []int {
	if len(mapped) < len(values) {
		list := metrics()
		for i := len(mapped); i < len(values); i++ {
			mapped = append(mapped, s.Position(list[i]))
		}
	}
	for i, v := range values {
		s.Values[mapped[i]] = v
	}
	return mapped
}

// findEvery is how many ticks pass between two searches for a server's process.
const findEvery = 15

// Process reads the process of a server that runs on this machine. It finds it by socket or port, and again
// after a restart.
type Process struct {
	host   *host.Host
	target host.Target
	proc   *host.Process
	mapped []int
	wait   int
	gap    []fleet.Trouble
}

// NewProcess makes a reader for the server that listens on a unix socket or a TCP port of this machine.
func NewProcess(h *host.Host, socket string, port int) *Process {
	return &Process{host: h, target: host.Target{Socket: socket, Port: port}}
}

// Read adds the process' numbers to a sample; while there is none it adds nothing.
func (p *Process) Read(s *fleet.Sample) {
	if p.proc == nil && !p.find() {
		return
	}
	values, err := p.proc.Read()
	if err != nil { // it ended: look for its successor now
		p.proc.Close()
		p.proc, p.wait = nil, 0
		return
	}
	p.mapped = copyInto(s, p.mapped, p.proc.Metrics, values)
}

func (p *Process) find() bool {
	if p.wait > 0 {
		p.wait--
		return false
	}
	p.wait = findEvery
	pid, gap, err := p.host.FindServer(p.target)
	p.gap = nil
	if gap != nil {
		p.gap = []fleet.Trouble{*gap}
	}
	if err != nil {
		return false
	}
	proc, err := p.host.Process(pid)
	if err != nil {
		return false
	}
	p.proc, p.mapped = proc, nil
	return true
}

// Gaps is what could not be read of the process.
func (p *Process) Gaps() []fleet.Trouble {
	if p.proc != nil {
		return p.proc.Gaps()
	}
	return p.gap
}

// Close lets go of the process' files.
func (p *Process) Close() {
	if p.proc != nil {
		p.proc.Close()
	}
}
