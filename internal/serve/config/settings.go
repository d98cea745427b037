package config

import (
	"cmp"
	"errors"
	"net"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/store/series/mapped"
)

// DefaultListen is the default address of the page.
const DefaultListen = "127.0.0.1:8306"

// Flags are what was given on the command line of risso serve.
type Flags struct {
	Sources
	Statements
	Listen    string
	Data      string
	Retention string
	Failover  string
	NoMembers bool
	Verbose   bool
}

// Settings are the flags and the config file, checked and joined.
type Settings struct {
	Listen     string
	Data       string
	Retention  time.Duration
	Servers    []Watched
	Host       bool
	Open       bool // loopback only
	Hosts      []string
	Limits     Limits
	Statements Statements
	Alerts     Alerts
	Advice     Advice
	Topology   Topology
	Publish    Publish      // who is told where the clients of groups go
	Failover   bool         // groups are failed over automatically
	NoMembers  bool         // members of groups are not read each second
	NoHealth   bool         // load balancers are not answered
	Labels     mapped.Rules // of series in PromQL
}

// Settings joins the flags with the config file and checks them. Where they name no server the error wraps ErrNoServer, and all else is read.
func (f Flags) Settings() (Settings, error) {
	c, servers, none := f.Resolve()
	if none != nil && !errors.Is(none, ErrNoServer) {
		return Settings{}, none
	}
	var err error
	s := Settings{Listen: f.Listen, Data: cmp.Or(f.Data, c.Data, home.Data()), Servers: servers, Host: !f.NoHost, Hosts: c.Hosts, Statements: f.Statements}
	s.Statements.EventsURL = eventsURL(f.EventsURL, c.EventsURL)
	s.Statements.Redact = f.Redact || c.Redact
	if s.Statements.Mode, err = statementMode(f.Statements, c.Statements); err != nil {
		return Settings{}, err
	}
	if f.Mode != "" || f.NoStatements { // flags win over the config file
		for i := range s.Servers {
			s.Servers[i].Statements = ""
		}
	}
	if c.Listen != "" && f.Listen == DefaultListen {
		s.Listen = c.Listen
	}
	if s.Retention, err = digits.ParseAge(cmp.Or(f.Retention, c.Retention)); err != nil {
		return Settings{}, fault.Usagef("--retention: %w", err)
	}
	host, err := CheckListen(s.Listen)
	if err != nil {
		return Settings{}, err
	}
	if s.Limits, err = c.Limits.check(); err != nil {
		return Settings{}, fault.Usagef("limits of the config file: %w", err)
	}
	if s.Alerts, err = c.CheckAlerts(); err != nil {
		return Settings{}, err
	}
	if s.Advice, err = c.Advice.check(); err != nil {
		return Settings{}, fault.Usagef("advice of the config file: %w", err)
	}
	if s.Topology, err = c.Topology.check(); err != nil {
		return Settings{}, fault.Usagef("topology of the config file: %w", err)
	}
	switch mode := cmp.Or(f.Failover, c.Failover); mode {
	case "", "off", "false":
	case "auto":
		s.Failover = true
	default:
		return Settings{}, fault.Usagef("--failover %q: auto or off", mode)
	}
	switch c.Members {
	case "", "on", "true":
		s.NoMembers = f.NoMembers
	case "off", "false":
		s.NoMembers = true
	default:
		return Settings{}, fault.Usagef("members of the config file: %q: on or off", c.Members)
	}
	if s.NoMembers && !s.Host {
		return Settings{}, fault.Usagef("members off needs the host to be watched: what is wrong with groups is told there; leave out --no-host")
	}
	if s.Publish, err = c.Publish.check(); err != nil {
		return Settings{}, fault.Usagef("publish of the config file: %w", err)
	}
	switch c.Health {
	case "", "on", "true":
	case "off", "false":
		s.NoHealth = true
	default:
		return Settings{}, fault.Usagef("health of the config file: %q: on or off", c.Health)
	}
	if s.Labels, err = c.Prometheus.check(servers); err != nil {
		return Settings{}, fault.Usagef("prometheus of the config file: %w", err)
	}
	ip := net.ParseIP(host)
	s.Open = host == "localhost" || (ip != nil && ip.IsLoopback())
	return s, none // last, so that a file which leaves the servers to --dsn is read to its end
}

// CheckListen returns the host of an address to listen at; one that is none is wrong use. Without a port the system would choose one.
func CheckListen(addr string) (host string, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		return "", fault.Usagef("--listen %q: write it as host:port", addr)
	}
	return host, nil
}
