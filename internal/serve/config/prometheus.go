package config

import (
	"fmt"

	"github.com/rissodb/risso/internal/store/series/mapped"
)

// promConfig is the block prometheus. docs/prometheus.md lists the labels that are there without it.
type promConfig struct {
	Labels  map[string]string `yaml:"labels,omitempty"`        // of all series
	Servers map[string]string `yaml:"server_labels,omitempty"` // of those of servers
	Hosts   map[string]string `yaml:"host_labels,omitempty"`   // and of this host
}

// check reads the block, and the labels of single servers.
func (c promConfig) check(servers []Watched) (mapped.Rules, error) {
	r := mapped.Rules{All: c.Labels, Servers: c.Servers, Hosts: c.Hosts, One: map[string]map[string]string{}}
	for _, b := range []struct {
		name string
		list map[string]string
	}{{"labels", c.Labels}, {"server_labels", c.Servers}, {"host_labels", c.Hosts}} {
		if err := mapped.Check(b.list); err != nil {
			return r, fmt.Errorf("%s: %w", b.name, err)
		}
	}
	for _, s := range servers {
		r.One[s.Instance.ID] = s.Labels
	}
	return r, nil
}
