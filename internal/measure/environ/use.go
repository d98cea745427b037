package environ

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/host"
)

// Use is who used the load driver's machine in the measured time of a run, sampled every second. A figure that is nil could
// not be found out; Unknown says why. Processors are counted in whole ones: 0.5 is half the time of one of them.
type Use struct {
	CPUs int `json:"cpus"` // of the machine, online
	// Client and Server are what this process and the server's used; Server only if it runs here and its process is known.
	Client float64  `json:"client"`
	Server *float64 `json:"server,omitempty"`
	// Foreign is what all other processes used; ForeignMost is that of the worst second, ForeignMostAt.
	Foreign       *float64 `json:"foreign,omitempty"`
	ForeignMost   float64  `json:"foreign_most,omitempty"`
	ForeignMostAt int      `json:"foreign_most_at,omitempty"` // seconds since the measured time began
	// Crowd is how many threads of other processes ran or waited for a processor, on average: 6 with 6 busy loops, however much they got.
	Crowd *float64 `json:"crowd,omitempty"`
	// Steal is processor time that the hypervisor gave to other machines.
	Steal *float64 `json:"steal,omitempty"`
	// Pressure is the share of the time in which some thread waited for a processor, PressureIO for a disk, PressureMemory for memory.
	Pressure       *float64 `json:"pressure,omitempty"`
	PressureIO     *float64 `json:"pressure_io,omitempty"`
	PressureMemory *float64 `json:"pressure_memory,omitempty"`
	// ClientWait is the share of time that the client's runnable threads waited for a processor instead of running.
	ClientWait *float64 `json:"client_wait,omitempty"`
	// Held is in which share of its periods the client's control group, or one above it, was stopped for it had used up its quota of
	// processor time, or the server's; 0: never, or there is no quota.
	ClientHeld *float64 `json:"client_held,omitempty"`
	ServerHeld *float64 `json:"server_held,omitempty"`
	// Slept is how many seconds the machine was suspended.
	Slept float64 `json:"slept,omitempty"`
	// ClockSet is by how many seconds the clock was set. The figures do not depend on it, but the times of day do.
	ClockSet float64 `json:"clock_set,omitempty"`
	// MHz is the mean frequency, LowestMHz that of the slowest second.
	MHz       *float64 `json:"mhz,omitempty"`
	LowestMHz float64  `json:"lowest_mhz,omitempty"`
	Unknown   Unknown  `json:"unknown,omitempty"` // what could not be found out
	// Elsewhere says that the server runs on another machine, which is not observed.
	Elsewhere bool `json:"elsewhere,omitempty"`
	// Seconds are the individual samples.
	Seconds []UseSecond `json:"seconds,omitempty"`
}

// UseSecond is one sample: what was used since the previous one, in processors; -1: not known.
type UseSecond struct {
	At      float64 `json:"at"` // seconds since the measured time began
	Client  float64 `json:"client"`
	Server  float64 `json:"server"`
	Foreign float64 `json:"foreign"`
	Steal   float64 `json:"steal"`
	MHz     float64 `json:"mhz,omitempty"`
}

// disturbed is from which share of the machine on others are worth a warning.
const disturbed = 0.05

// Left is how much of the machine a thread can count on next to the threads of others, as a share; false if that is not
// known. What others got depends on the run itself, which takes what it can; how many they were does not.
func (u *Use) Left() (float64, bool) {
	if u == nil || u.Foreign == nil || u.CPUs == 0 {
		return 0, false
	}
	all, theirs, stolen := float64(u.CPUs), *u.Foreign, 0.0
	if u.Steal != nil {
		stolen = min(*u.Steal, all)
	}
	if u.Crowd != nil {
		return max(all-stolen, 0.001) / (all + max(*u.Crowd, theirs)), true
	}
	return max(all-stolen-theirs, 0.001) / all, true
}

// Disturbances say in words what took from the run; none: nothing that is seen.
func (u *Use) Disturbances() (out []string) {
	if u == nil {
		return nil
	}
	all := float64(u.CPUs)
	if u.Foreign != nil && (*u.Foreign >= disturbed*all || u.ForeignMost >= 4*disturbed*all) {
		out = append(out, "other programs")
	}
	if u.Steal != nil && *u.Steal >= disturbed*all/2 {
		out = append(out, "other virtual machines")
	}
	for _, h := range []struct {
		who  string
		held *float64
	}{{"client", u.ClientHeld}, {"server", u.ServerHeld}} {
		if h.held != nil && *h.held >= 0.01 {
			out = append(out, fmt.Sprintf("the quota of the %s's control group (stopped in %s of its periods)", h.who, digits.Percent(*h.held)))
		}
	}
	if u.Slept > 0 {
		out = append(out, fmt.Sprintf("a sleep of the machine (%s)", digits.Seconds(u.Slept)))
	}
	if u.MHz != nil && u.LowestMHz < 0.9**u.MHz {
		out = append(out, "a frequency that fell to "+digits.Count(u.LowestMHz)+" MHz")
	}
	if u.PressureMemory != nil && *u.PressureMemory >= disturbed {
		out = append(out, fmt.Sprintf("lack of memory (%s of the time)", digits.Percent(*u.PressureMemory)))
	}
	return out
}

// Line tells in one line whether the machine was the run's own, with the figures.
func (u *Use) Line() string {
	if u == nil {
		return "not known: the machine was not watched"
	}
	verdict := "only the run itself, as far as could be observed"
	switch list := u.Disturbances(); {
	case len(list) > 0:
		verdict = "DISTURBED by " + strings.Join(list, ", ")
	case u.Foreign == nil:
		verdict = "not known whether other programs interfered"
	}
	return verdict + ": " + u.figures()
}

// figures are those of Line.
func (u *Use) figures() string {
	form := func(v *float64, as func(float64) string) string {
		if v == nil {
			return "not known"
		}
		return as(*v)
	}
	server := form(u.Server, digits.Three)
	if u.Elsewhere {
		server = "on another machine"
	}
	others := form(u.Foreign, digits.Three)
	if u.Foreign != nil && u.ForeignMost > max(1.5**u.Foreign, 0.05) {
		others += fmt.Sprintf(" (%s in second %d)", digits.Three(u.ForeignMost), u.ForeignMostAt)
	}
	parts := []string{fmt.Sprintf("client %s, server %s, others %s, stolen %s of %s", digits.Three(u.Client), server, others, form(u.Steal, digits.Three), digits.Counted(u.CPUs, "processor"))}
	if u.Crowd != nil {
		parts = append(parts, digits.Count(*u.Crowd)+" threads of others")
	}
	parts = append(parts, "client waited for a processor "+form(u.ClientWait, digits.Percent), "pressure "+form(u.Pressure, digits.Percent))
	stopped := "stopped by quotas: client " + form(u.ClientHeld, digits.Percent)
	if !u.Elsewhere {
		stopped += ", server " + form(u.ServerHeld, digits.Percent)
	}
	parts = append(parts, stopped)
	if u.ClockSet != 0 {
		parts = append(parts, "the clock was set "+digits.Shift(u.ClockSet))
	}
	if u.MHz != nil {
		parts = append(parts, digits.Count(*u.MHz)+" MHz")
	} else {
		parts = append(parts, "frequency unknown")
	}
	return strings.Join(parts, "; ")
}

// Watch says of which process the server is, for Watcher.
type Watch struct {
	Root      string // as host.Options have it
	ServerPID int    // 0: not known
	Elsewhere bool   // the server runs on another machine
}

// WatchOf is what an environment knows of the server; nil knows nothing.
func WatchOf(e *Environment) Watch {
	switch {
	case e == nil:
		return Watch{}
	case e.ServerHost != nil:
		return Watch{ServerPID: e.ServerHost.PID}
	}
	return Watch{Elsewhere: e.Remote}
}

// Watcher watches this machine while a run goes on. It is for one goroutine; each look costs some tenths of a millisecond.
type Watcher struct {
	watch   Watch
	host    *host.Host
	at      map[string]int  // positions of the metrics that are read
	quotas  [2]*host.Quotas // of the client and of the server
	family  *host.Family    // the server with the processes of its sessions
	queue   *host.RunQueue
	crowd   *host.Crowd
	first   look
	last    look
	before  look                 // the one before last
	cpu     func() time.Duration // of the client so far
	seconds []UseSecond
	gaps    map[string]fleet.Trouble
}

// look is one look at all counters.
type look struct {
	when            time.Time
	busy, steal     float64 // seconds of processor time
	client, server  float64
	cpu, io, memory float64 // seconds of pressure
	ran, waited     float64
	mhz             float64
	stopped         [2][]host.Stopped // of the client's control groups and of the server's
	boot, wall      time.Duration     // since the machine began, sleep included; since 1970
}

// NewWatcher opens what there is to see; cpu returns the client's processor time. It never fails: what cannot be seen is listed in
// the Use.
func NewWatcher(w Watch, cpu func() time.Duration) *Watcher {
	out := &Watcher{watch: w, cpu: cpu, at: map[string]int{}, gaps: map[string]fleet.Trouble{}}
	h, err := host.New(host.Options{Root: w.Root, Processors: true})
	if err != nil {
		out.gap("this machine", err, "mount /proc")
		return out
	}
	out.host, out.queue = h, h.RunQueue(0)
	if out.quotas[0], err = h.Quotas(0); err != nil {
		out.gap("whether a quota stopped the client", err, "mount /sys/fs/cgroup")
	}
	out.crowd = h.Crowd(os.Getpid(), w.ServerPID)
	switch {
	case w.Elsewhere:
	case w.ServerPID == 0:
		out.gap("the server's processor time", errors.New("its process is not known"), "run risso as root or as the server's user")
	default:
		p, err := h.Process(w.ServerPID)
		if err != nil {
			out.gap("the server's processor time", err, "run risso as root or as the server's user")
			break
		}
		_ = p.Close() // files that were read
		out.family = h.Family(w.ServerPID)
		if out.quotas[1], err = h.Quotas(w.ServerPID); err != nil {
			out.gap("whether a quota stopped the server", err, "mount /sys/fs/cgroup")
		}
	}
	return out
}

func (w *Watcher) gap(what string, err error, remedy string) {
	w.gaps[what] = fleet.Trouble{What: what, Why: err.Error(), Remedy: remedy}
}

// Close closes the files.
func (w *Watcher) Close() {
	if w.host != nil {
		_ = w.host.Close() // files that were read
	}
	if w.family != nil {
		w.family.Close()
	}
}

// Begin restarts the measured time.
func (w *Watcher) Begin() {
	if w.crowd != nil {
		if err := w.crowd.Begin(); err != nil {
			w.gap("how many threads of others wanted a processor", err, "")
			w.crowd = nil
		}
	}
	w.first = w.look()
	w.last, w.seconds = w.first, nil
}

// Look adds a second.
func (w *Watcher) Look() {
	if w.host == nil || w.first.when.IsZero() {
		return
	}
	now := w.look()
	if n := len(w.seconds); n > 0 && now.when.Sub(w.last.when) < shortestLook {
		w.seconds, w.last = w.seconds[:n-1], w.before
	}
	w.seconds = append(w.seconds, w.second(w.last, now))
	w.before, w.last = w.last, now
}

// clientWaited names a figure that may be missing.
const clientWaited = "how long the client waited for a processor"

// shortestLook is how long an interval must be to count by itself: the kernel counts in hundredths of a second.
const shortestLook = 300 * time.Millisecond

// second is what was used between two looks.
func (w *Watcher) second(a, b look) UseSecond {
	d := b.when.Sub(a.when).Seconds()
	s := UseSecond{At: round(b.when.Sub(w.first.when).Seconds()), Client: per(b.client-a.client, d), Server: per(b.server-a.server, d),
		Steal: per(b.steal-a.steal, d), Foreign: -1, MHz: round(b.mhz)}
	if s.Server >= 0 || w.watch.Elsewhere {
		s.Foreign = per(max(0, b.busy-a.busy-(b.client-a.client)-max(0, nothing(b.server-a.server))), d)
	}
	return s
}

// per is a rate; -1 where the figure is not known.
func per(v, seconds float64) float64 {
	if math.IsNaN(v) || v < 0 || seconds <= 0 {
		return -1
	}
	return round(v / seconds)
}

func nothing(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

func round(v float64) float64 { return math.Round(v*1e4) / 1e4 }

// look reads all counters; NaN is what could not be read.
func (w *Watcher) look() look {
	l := look{when: time.Now(), client: w.cpu().Seconds(), server: math.NaN(), ran: math.NaN(), wall: time.Duration(time.Now().UnixNano()), boot: sinceBoot()}
	if w.host == nil {
		return l
	}
	values := w.host.Read()
	metrics := w.host.Metrics()
	of := func(key string) float64 {
		at, ok := w.at[key]
		if !ok || at >= len(metrics) {
			at = slices.IndexFunc(metrics, func(m host.Metric) bool { return m.Key() == key })
			w.at[key] = at
		}
		if at < 0 {
			return math.NaN()
		}
		return values[at]
	}
	mode := func(name string) float64 { return of(`risso_host_cpu_seconds_total{mode="` + name + `"}`) }
	l.busy = mode("user") + mode("nice") + mode("system") + mode("irq") + mode("softirq")
	l.steal = mode("steal")
	l.cpu, l.io, l.memory = of("node_pressure_cpu_waiting_seconds_total"), of("node_pressure_io_waiting_seconds_total"), of("node_pressure_memory_waiting_seconds_total")
	l.mhz = w.host.MHz()
	if ran, waited, err := w.queue.Read(); err == nil {
		l.ran, l.waited = ran.Seconds(), waited.Seconds()
	} else {
		w.gap(clientWaited, err, "")
	}
	for i, q := range w.quotas {
		if q != nil {
			l.stopped[i] = q.Read()
		}
	}
	if w.family != nil {
		used, err := w.family.Used()
		if l.server = used.Seconds(); err != nil {
			l.server = math.NaN()
			w.gap("the server's processor time", err, "")
		}
	}
	return l
}

// held is in which share of the periods between two looks one of the control groups was stopped, of that one in which it was most
// often; nil if that is not known.
func held(before, after []host.Stopped) *float64 {
	if len(before) == 0 || len(before) != len(after) {
		return nil
	}
	most := 0.0
	for i := range after {
		if periods := after[i].Periods - before[i].Periods; periods > 0 {
			most = max(most, float64(after[i].Stopped-before[i].Stopped)/float64(periods))
		}
	}
	most = round(most)
	return &most
}

// sinceBoot counts while the machine sleeps, as the clock of Go's times does not.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// The shortest sleep, and the smallest change of a clock, that is reported: below, it may be a clock that is being adjusted.
const (
	leastSleep = 100 * time.Millisecond
	leastSet   = 500 * time.Millisecond
)

// clocks tells sleeps and clocks that were set.
func (u *Use) clocks(a, b look) {
	awake := b.when.Sub(a.when)
	slept := b.boot - a.boot - awake
	if a.boot == 0 || b.boot == 0 || slept < leastSleep {
		slept = 0
	}
	u.Slept = round(slept.Seconds())
	if set := b.wall - a.wall - awake - slept; set.Abs() >= leastSet {
		u.ClockSet = round(set.Seconds())
	}
}

// Use ends with a last look and puts the figures together; nil where no measured time began.
func (w *Watcher) Use() *Use {
	if w.host == nil || w.first.when.IsZero() {
		if w.first.when.IsZero() {
			return nil
		}
		return &Use{Elsewhere: w.watch.Elsewhere, Unknown: w.unknown()}
	}
	w.Look()
	a, b := w.first, w.last
	d := b.when.Sub(a.when).Seconds()
	u := &Use{CPUs: w.host.Setup().CPUs, Elsewhere: w.watch.Elsewhere, Seconds: w.seconds, Client: max(0, per(b.client-a.client, d))}
	known := func(v float64) *float64 {
		if v = per(v, d); v < 0 {
			return nil
		}
		return &v
	}
	u.Server = known(b.server - a.server)
	if u.Server != nil || u.Elsewhere {
		u.Foreign = known(max(0, b.busy-a.busy-(b.client-a.client)-nothing(b.server-a.server)))
		for _, s := range w.seconds {
			if s.Foreign > u.ForeignMost {
				u.ForeignMost, u.ForeignMostAt = s.Foreign, int(math.Ceil(s.At))
			}
		}
	}
	if w.crowd != nil && u.Foreign != nil {
		if waited, err := w.crowd.Waited(); err == nil && d > 0 {
			all := round(*u.Foreign + waited.Seconds()/d)
			u.Crowd = &all
		}
	}
	if math.IsNaN(b.busy - a.busy) {
		u.Foreign = nil
		w.gap("what other programs took", errors.New("/proc/stat does not show it"), "mount /proc")
	}
	u.Steal, u.Pressure, u.PressureIO, u.PressureMemory = known(b.steal-a.steal), known(b.cpu-a.cpu), known(b.io-a.io), known(b.memory-a.memory)
	u.ClientHeld, u.ServerHeld = held(a.stopped[0], b.stopped[0]), held(a.stopped[1], b.stopped[1])
	u.clocks(a, b)
	if u.Steal != nil && b.steal == 0 && w.host.Setup().Virtual != "" {
		u.Steal = nil // it would be above nothing by now
		w.gap("what the hypervisor gave to other machines", errors.New("it has reported none since this machine was booted"), "")
	}
	if ready := b.ran - a.ran + b.waited - a.waited; ready > 0 && b.ran > a.ran {
		share := round((b.waited - a.waited) / ready)
		u.ClientWait = &share
	} else if _, known := w.gaps[clientWaited]; !known {
		w.gap(clientWaited, errors.New("this kernel keeps no scheduling statistics (/proc/self/schedstat)"), "boot it with schedstats=enable")
	}
	w.frequency(u)
	u.Unknown = w.unknown()
	return u
}

func (w *Watcher) frequency(u *Use) {
	sum, n := 0.0, 0.0
	for _, s := range w.seconds {
		if s.MHz > 0 {
			sum, n = sum+s.MHz, n+1
			if u.LowestMHz == 0 || s.MHz < u.LowestMHz {
				u.LowestMHz = s.MHz
			}
		}
	}
	if n > 0 {
		mean := round(sum / n)
		u.MHz = &mean
	}
}

func (w *Watcher) unknown() []fleet.Trouble {
	var out []fleet.Trouble
	for _, g := range w.gaps {
		out = append(out, g)
	}
	if w.host != nil {
		out = append(out, w.host.Gaps()...)
	}
	slices.SortFunc(out, func(a, b fleet.Trouble) int { return strings.Compare(a.What, b.What) })
	return out
}
