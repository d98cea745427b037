package host

import (
	"errors"
	"sort"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/fleet"
)

// reader reads a number of files into one set of values; a Host is one, and a Process.
type reader struct {
	set
	buf    []byte
	groups []*group
	gaps   gapList
}

// group is one file and what is made of it.
type group struct {
	file     procFile
	parse    func([]byte)
	what     string // for the gap: "disk statistics"
	remedy   string
	optional bool // its absence is nothing to speak of
	wait     int  // reads to let pass before the next try

	// every is set where the kernel works hard for a file: it is read at every so
	// many reads, and between them its last values are kept.
	every int
	at    []int // positions of those values
	held  []float64
}

// retryReads is how many reads a missing file is left alone before it is tried again.
const retryReads = 30

// add makes a group known.
func (r *reader) add(path, what, remedy string, parse func([]byte)) *group {
	g := &group{file: newProcFile(path), parse: parse, what: what, remedy: remedy}
	r.groups = append(r.groups, g)
	return g
}

// hold makes a group be read rarely; at are the positions that it fills.
func (g *group) hold(every int, at ...int) {
	g.every, g.at, g.held = every, at, make([]float64, len(at))
}

// Metrics describes the values of the last Read, position by position. The slice
// only grows; positions never change.
func (r *reader) Metrics() []Metric { return r.metrics }

// Each calls f for every value that is present in the last Read.
func (r *reader) Each(f func(m *Metric, value float64)) {
	for i, v := range r.values {
		if v == v { // not NaN
			f(&r.metrics[i], v)
		}
	}
}

// Gaps lists what could not be read, and how to fix it. Any goroutine may call it.
func (r *reader) Gaps() []fleet.Trouble { return r.gaps.list() }

func (r *reader) readGroups() {
	for _, g := range r.groups {
		r.readGroup(g)
	}
}

func (r *reader) readGroup(g *group) {
	if g.wait > 0 {
		g.wait--
		if g.file.fd >= 0 {
			for i, at := range g.at {
				r.values[at] = g.held[i]
			}
		}
		return
	}
	b, err := g.file.read(&r.buf)
	if err != nil {
		g.wait = retryReads
		if !g.optional {
			r.gaps.set(fleet.Trouble{What: g.what, Why: reason(g.file.path, err), Remedy: g.remedy})
		}
		return
	}
	if !g.optional {
		r.gaps.drop(g.what)
	}
	g.parse(b)
	if g.every > 0 {
		g.wait = g.every - 1
		for i, at := range g.at {
			g.held[i] = r.values[at]
		}
	}
}

func (r *reader) closeGroups() {
	for _, g := range r.groups {
		g.file.close()
	}
}

// reason puts an error into words.
func reason(path string, err error) string {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return "there is no " + path
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return "no permission to read " + path
	case errors.Is(err, unix.EOPNOTSUPP):
		return "the kernel has switched " + path + " off"
	default:
		return path + ": " + err.Error()
	}
}

// gapList is a small set of gaps, one per What.
type gapList struct {
	mu   sync.Mutex
	gaps map[string]fleet.Trouble
}

func (l *gapList) set(g fleet.Trouble) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gaps == nil {
		l.gaps = map[string]fleet.Trouble{}
	}
	l.gaps[g.What] = g
}

func (l *gapList) drop(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.gaps) > 0 {
		delete(l.gaps, what)
	}
}

func (l *gapList) list() []fleet.Trouble {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]fleet.Trouble, 0, len(l.gaps))
	for _, g := range l.gaps {
		out = append(out, g)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].What < out[j].What })
	return out
}
