package rules

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
)

// plural writes a number with the word that fits: "1 thread waits", "41 threads wait".
func plural(v float64, one, many string) string {
	return digits.Plural(int64(math.Round(v)), one, many)
}

// clock writes a time of day in the zone of now, with the date when it is another day.
func clock(t, now time.Time) string {
	t = t.In(now.Location())
	if t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		return t.Format("2006-01-02 15:04")
	}
	return t.Format("15:04:05")
}

// label reads a label's value out of a key such as node_disk_io_now{device="sda"}.
func label(key, name string) string {
	_, labels, _ := fleet.ParseKey(key) // what is no key has none
	for _, l := range labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// labels is the part of a key from the brace on.
func labels(key, name string) string { return key[min(len(name), len(key)):] }

// cut shortens an error of a server to what fits into a sentence.
func cut(s string, limit int) string {
	s = strings.TrimRight(oneline.Of(s), ".")
	if r := []rune(s); len(r) > limit {
		return strings.TrimRight(string(r[:limit-1]), " ,;:") + "…"
	}
	return s
}

// healthy is the quiet line of an instance that nothing is wrong with.
func (r *round) healthy() string {
	var parts []string
	if r.Instance.Kind == fleet.KindHost {
		parts = healthyHost(r.Snapshot)
	} else {
		parts = healthyServer(r.Snapshot)
	}
	if d, ok := r.busiestFlush(); ok {
		parts = append(parts, "disk flushes in "+digits.Seconds(d.latency))
	}
	if n := len(r.Gaps); n > 0 {
		parts = append(parts, plural(float64(n), "thing cannot be read", "things cannot be read"))
	}
	if r.Instance.Role == fleet.RoleUnread {
		return strings.Join(append([]string{"role unknown: replication cannot be read"}, parts...), ", ")
	}
	if len(parts) == 0 {
		return "healthy"
	}
	return "healthy: " + strings.Join(parts, ", ")
}

func healthyServer(s *Snapshot) (parts []string) {
	if v, ok := s.rate("mysql_global_status_questions"); ok {
		parts = append(parts, digits.Number(v)+" questions/s")
	}
	if v, ok := s.value("mysql_global_status_threads_running"); ok {
		parts = append(parts, plural(v, "thread running", "threads running"))
	}
	if v, key, ok := worstLag(s); ok {
		source := label(key, "master_host")
		if source == "" {
			source = "its source"
		}
		parts = append(parts, digits.Age(v)+" behind "+source)
	}
	return parts
}

func healthyHost(s *Snapshot) (parts []string) {
	if p, ok := processors(s); ok {
		parts = append(parts, fmt.Sprintf("%s of %s busy", digits.Percent(1-p.headroom), plural(p.count, "processor", "processors")))
	}
	if v, ok := s.value("node_memory_MemAvailable_bytes"); ok {
		parts = append(parts, digits.Bytes(v)+" memory available")
	}
	return parts
}
