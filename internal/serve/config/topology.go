package config

import (
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/digits"
)

// Topology says how often the replication topology is looked at.
type Topology struct {
	Every time.Duration     // 0: never
	Reach map[string]string // other addresses for those that servers tell of: a host, or host:port
}

// topologyConfig is the block; docs/topology.md explains it.
type topologyConfig struct {
	Every string            `yaml:"every,omitempty"` // such as 10s; off
	Reach map[string]string `yaml:"reach,omitempty"`
}

// check reads the block. Errors name the field.
func (c topologyConfig) check() (Topology, error) {
	t := Topology{Every: 10 * time.Second, Reach: c.Reach}
	switch c.Every {
	case "":
	case "off", "false":
		t.Every = 0
	default:
		d, err := digits.ParseDuration(c.Every)
		if err != nil || d < time.Second || d > time.Hour {
			return t, fmt.Errorf("every: %q: write it as 10s, from 1s to 1h, or off", c.Every)
		}
		t.Every = d
	}
	for from, to := range c.Reach {
		if from == "" || to == "" {
			return t, fmt.Errorf("reach: %q: %q: write it as db1:3306: 127.0.0.1:3307, or db1: 10.0.0.1", from, to)
		}
	}
	return t, nil
}
