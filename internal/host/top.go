package host

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/oneline"
)

// Used is what one process takes of a host.
type Used struct {
	PID       int     `json:"pid"`
	Name      string  `json:"name"`                // of the program; its arguments are left out, for they may hold secrets
	CPU       float64 `json:"cpu"`                 // processors
	Resident  float64 `json:"resident_bytes"`      // memory that is in RAM
	Read      float64 `json:"read_rate,omitempty"` // bytes a second from disks; 0 also where Risso may not know
	Written   float64 `json:"write_rate,omitempty"`
	Suspended bool    `json:"suspended,omitempty"` // it waits for a disk, or the like, and cannot even be killed
}

// seen is a process at one of two looks.
type seen struct {
	stat          procStat
	name          string
	at            time.Time
	read, written float64
}

// Top lists the processes that take most: of processors, memory and disks the first few each, without one twice. It looks twice, pause apart, and
// may be called by any goroutine.
func (h *Host) Top(few int, pause time.Duration) []Used {
	before := h.processes()
	time.Sleep(pause)
	now := h.processes()
	page := float64(os.Getpagesize())
	all := make([]Used, 0, len(now))
	for pid, p := range now {
		u := Used{PID: pid, Name: p.name, Resident: float64(p.stat.rss) * page, Suspended: p.stat.state == 'D'}
		if was, ok := before[pid]; ok && was.stat.start == p.stat.start {
			seconds := p.at.Sub(was.at).Seconds()
			u.CPU = max(float64(p.stat.utime+p.stat.stime)-float64(was.stat.utime+was.stat.stime), 0) / userHZ / seconds
			u.Read, u.Written = max(p.read-was.read, 0)/seconds, max(p.written-was.written, 0)/seconds
		}
		all = append(all, u)
	}
	var out []Used
	for _, by := range []func(Used) float64{
		func(u Used) float64 { return u.CPU }, func(u Used) float64 { return u.Resident }, func(u Used) float64 { return u.Read + u.Written },
	} {
		slices.SortFunc(all, func(a, b Used) int { return cmp.Or(cmp.Compare(by(b), by(a)), cmp.Compare(a.PID, b.PID)) })
		for _, u := range all[:min(few, len(all))] {
			if by(u) > 0 && !slices.ContainsFunc(out, func(o Used) bool { return o.PID == u.PID }) {
				out = append(out, u)
			}
		}
	}
	return out
}

// processes reads all processes.
func (h *Host) processes() map[int]seen {
	out := map[int]seen{}
	for _, pid := range (&finder{h: h}).pids() {
		dir := fmt.Sprintf("/proc/%d", pid)
		text := h.text(dir + "/stat")
		st, ok := parseStat([]byte(text))
		if !ok {
			continue // it ended
		}
		s := seen{stat: st, at: time.Now()}
		if open := strings.IndexByte(text, '('); open >= 0 {
			s.name = oneline.Cut(oneline.Of(text[open+1:strings.LastIndexByte(text, ')')]), 40)
		}
		for line := range strings.Lines(h.text(dir + "/io")) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			n, _ := strconv.ParseFloat(value, 64)
			switch name {
			case "read_bytes":
				s.read = n
			case "write_bytes":
				s.written = n
			}
		}
		out[pid] = s
	}
	return out
}
