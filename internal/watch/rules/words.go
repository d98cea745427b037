package rules

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

// number writes a figure as people do: 0.4, 7, 850, 1.2 k, 34 M.
func number(v float64) string {
	a := math.Abs(v)
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		if a >= u.size*0.9995 {
			return short(v/u.size) + u.name
		}
	}
	return short(v)
}

// short writes two figures at least, and no decimals from 10 on.
func short(v float64) string {
	if a := math.Abs(v); a >= 9.95 || a == math.Trunc(a) {
		return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// plural writes a number with the word that fits: "1 thread waits", "41 threads wait".
func plural(v float64, one, many string) string {
	return digits.Plural(int64(math.Round(v)), one, many)
}

// latency writes seconds as a time that something takes: 0.05 ms, 38 ms, 1.2 s.
func latency(seconds float64) string {
	switch ms := seconds * 1e3; {
	case ms < 0.095:
		return strconv.FormatFloat(ms, 'f', 2, 64) + " ms"
	case ms < 999.5:
		return short(ms) + " ms"
	default:
		return short(seconds) + " s"
	}
}

// period writes a span of time: 40 s, 3 min, 2 h, 5 days.
func period(seconds float64) string {
	switch {
	case seconds < 99.5:
		return short(math.Round(seconds)) + " s"
	case seconds < 90*60:
		return short(math.Round(seconds/60)) + " min"
	case seconds < 48*3600:
		return short(seconds/3600) + " h"
	default:
		return short(math.Round(seconds/86400)) + " days"
	}
}

// bytes writes a size: 512 B, 1.5 MB, 23 GB. The steps are 1,024, as in the servers' own settings.
func bytes(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1 << 40, " TB"}, {1 << 30, " GB"}, {1 << 20, " MB"}, {1 << 10, " KB"}} {
		if math.Abs(v) >= u.size*0.9995 {
			return short(v/u.size) + u.name
		}
	}
	return short(v) + " B"
}

// percent writes a share of 1. Below one percent a decimal tells it from nothing.
func percent(share float64) string {
	p := share * 100
	if p > 0 && p < 0.95 {
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(math.Round(p), 'f', 0, 64) + " %"
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
	i := strings.Index(key, name+`="`)
	if i < 0 || i > 0 && key[i-1] != '{' && key[i-1] != ',' {
		return ""
	}
	rest := key[i+len(name)+1:]
	v, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return ""
	}
	if v, err = strconv.Unquote(v); err != nil {
		return ""
	}
	return v
}

// labels is the part of a key from the brace on.
func labels(key, name string) string { return key[min(len(name), len(key)):] }

// cut shortens an error of a server to what fits into a sentence.
func cut(s string, limit int) string {
	s = strings.TrimRight(strings.Join(strings.Fields(s), " "), ".")
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
		parts = append(parts, "disk flushes in "+latency(d.latency))
	}
	if n := len(r.Gaps); n > 0 {
		parts = append(parts, plural(float64(n), "thing cannot be read", "things cannot be read"))
	}
	if len(parts) == 0 {
		return "healthy"
	}
	return "healthy: " + strings.Join(parts, ", ")
}

func healthyServer(s *Snapshot) (parts []string) {
	if v, ok := s.rate("mysql_global_status_questions"); ok {
		parts = append(parts, number(v)+" questions/s")
	}
	if v, ok := s.value("mysql_global_status_threads_running"); ok {
		parts = append(parts, plural(v, "thread running", "threads running"))
	}
	if v, key, ok := worstLag(s); ok {
		source := label(key, "master_host")
		if source == "" {
			source = "its source"
		}
		parts = append(parts, period(v)+" behind "+source)
	}
	return parts
}

func healthyHost(s *Snapshot) (parts []string) {
	if p, ok := processors(s); ok {
		parts = append(parts, fmt.Sprintf("%s of %s busy", percent(1-p.headroom), plural(p.count, "processor", "processors")))
	}
	if v, ok := s.value("node_memory_MemAvailable_bytes"); ok {
		parts = append(parts, bytes(v)+" memory available")
	}
	return parts
}
