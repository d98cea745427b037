package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Quotas reports how often the control groups that a process is in were stopped for having used up their quota of processor time: the
// group's own and those above it, as far as they are seen from here.
type Quotas struct{ files []string }

// Stopped is what one control group tells since it was made.
type Stopped struct {
	Group   string        // its folder
	Periods int64         // in which the quota was counted; 0: there is none
	Stopped int64         // of these, how often the group was stopped before the end
	Time    time.Duration // for which it was stopped, summed over the processors
}

// Quotas looks at the control groups of a process; pid 0 is this one. It returns an error if it cannot be known whether there is a
// quota: no /proc, or no control groups mounted.
func (h *Host) Quotas(pid int) (*Quotas, error) {
	who := "self"
	if pid > 0 {
		who = strconv.Itoa(pid)
	}
	text, err := os.ReadFile(h.path("/proc/" + who + "/cgroup"))
	if err != nil {
		return nil, fmt.Errorf("read a control group: %w", err)
	}
	mounts, q, seen := cgroupMounts(h.root), &Quotas{}, false
	for line := range strings.SplitSeq(string(text), "\n") {
		p := strings.SplitN(line, ":", 3) // hierarchy:controllers:path; version 2 is 0::path
		if len(p) != 3 || p[1] != "" && !slices.Contains(strings.Split(p[1], ","), "cpu") {
			continue
		}
		controller := ""
		if p[1] != "" {
			controller = "cpu"
		}
		dir, top := groupFolder(h.root, mounts, controller, p[2])
		if dir == "" {
			continue
		}
		upward(dir, top, func(dir string) {
			if f := filepath.Join(dir, "cpu.stat"); exists(f) {
				seen, q.files = true, append(q.files, f)
			}
		})
	}
	if !seen {
		return nil, errors.New("no control group that accounts processor time is visible from here")
	}
	return q, nil
}

// Read reads all groups, the process' own first. A group that is gone is left out.
func (q *Quotas) Read() (out []Stopped) {
	for _, f := range q.files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		s := Stopped{Group: filepath.Dir(f)}
		for line := range strings.SplitSeq(string(b), "\n") {
			name, text, _ := strings.Cut(line, " ")
			v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			if err != nil || v < 0 {
				continue
			}
			switch name {
			case "nr_periods":
				s.Periods = v
			case "nr_throttled":
				s.Stopped = v
			case "throttled_usec": // version 2
				s.Time = time.Duration(v) * time.Microsecond
			case "throttled_time": // version 1
				s.Time = time.Duration(v)
			}
		}
		out = append(out, s)
	}
	return out
}
