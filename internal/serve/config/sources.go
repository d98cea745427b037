package config

import (
	"errors"

	"github.com/rissodb/risso/internal/fault"
)

// Sources say what is watched: servers, this host, or both.
type Sources struct {
	DSNs         []string
	ConfigFile   string
	DefaultsFile string
	HostOnly     bool
	NoHost       bool
}

// ErrNoServer is when neither flags nor files name a server to watch.
var ErrNoServer = errors.New("no server to watch")

// Resolve returns the config file and the servers to watch.
func (f Sources) Resolve() (File, []Watched, error) {
	c, err := Read(f.ConfigFile)
	if err != nil || f.HostOnly {
		return c, nil, err
	}
	servers, err := Resolve(f.DSNs, f.DefaultsFile, c)
	if err == nil && len(servers) == 0 {
		err = fault.New(fault.Usage, "give --dsn 'user:password@tcp(host:3306)/', or --host-only, or try it with risso sandbox up", ErrNoServer)
	}
	return c, servers, err
}
