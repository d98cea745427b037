package config

import (
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

// Advice says how often servers are looked at for what is wrong before it hurts.
type Advice struct {
	Every             time.Duration  // 0: only when somebody asks for it
	At                time.Duration  // of the day, where that is a day or more
	LeaveOut          []string       // schemas, or patterns of them
	Ring              fleet.Severity // at least so bad is among what is wrong now, and may ring; 0: nothing is
	MaxThreadsRunning int            // of a server, above which a look waits
	Time              time.Duration  // that one look may take
}

// adviceConfig is the block; docs/advise.md explains it.
type adviceConfig struct {
	Every             string   `yaml:"every,omitempty"` // such as 24h; off
	At                string   `yaml:"at,omitempty"`    // such as 04:00
	LeaveOut          []string `yaml:"leave_out,omitempty"`
	Ring              string   `yaml:"ring,omitempty"` // critical, warning, off
	MaxThreadsRunning int      `yaml:"max_threads_running,omitempty"`
	Time              string   `yaml:"time,omitempty"` // such as 10m
}

// check reads the block. Errors name the field.
func (c adviceConfig) check() (Advice, error) {
	a := Advice{Every: 24 * time.Hour, At: 3 * time.Hour, LeaveOut: c.LeaveOut, Ring: fleet.SeverityCritical, MaxThreadsRunning: 30, Time: 10 * time.Minute}
	switch c.Every {
	case "":
	case "off", "false":
		a.Every = 0
	default:
		d, err := digits.ParseDuration(c.Every)
		if err != nil || d < time.Minute {
			return a, fmt.Errorf("every: %q: write it as 24h or 7d, at least 1m, or off", c.Every)
		}
		a.Every = d
	}
	if c.At != "" {
		d, err := parseClock(c.At)
		if err != nil || d >= 24*time.Hour {
			return a, fmt.Errorf("at: %q: write it as 04:00", c.At)
		}
		a.At = d
	}
	switch c.Ring {
	case "", "critical":
	case "warning":
		a.Ring = fleet.SeverityWarning
	case "off", "false":
		a.Ring = 0
	default:
		return a, fmt.Errorf("ring: %q: critical, warning or off", c.Ring)
	}
	if c.MaxThreadsRunning < 0 {
		return a, fmt.Errorf("max_threads_running: must not be negative")
	}
	if c.MaxThreadsRunning > 0 {
		a.MaxThreadsRunning = c.MaxThreadsRunning
	}
	if c.Time != "" {
		d, err := digits.ParseDuration(c.Time)
		if err != nil || d <= 0 {
			return a, fmt.Errorf("time: %q: write it as 10m", c.Time)
		}
		a.Time = d
	}
	for _, p := range c.LeaveOut {
		if p == "" {
			return a, fmt.Errorf("leave_out: an empty name")
		}
	}
	return a, nil
}
