// Package environ records the conditions under which a benchmark was run: the machine, the limits of its control group,
// the disk under the server's data, the server and its changed settings, and the connection to it. Two results can be compared
// only if it is known what differs between them: Diff says so in words.
//
// It changes nothing and records no secrets. What cannot be found out is listed in Unknown with the reason.
package environ

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/host"
)

// Environment is what a benchmark ran under.
type Environment struct {
	Taken      time.Time   `json:"taken"` // before the run
	Client     Client      `json:"client"`
	ServerHost *ServerHost `json:"server_host,omitempty"` // only if the server runs on this machine
	Server     Server      `json:"server"`
	Connection Connection  `json:"connection"`
	Remote     bool        `json:"remote,omitempty"`  // the server runs on another machine
	Unknown    Unknown     `json:"unknown,omitempty"` // what could not be found out
}

// Unknown is what could not be found out.
type Unknown []fleet.Trouble

// UnmarshalJSON reads results of earlier versions, too, in which why was called reason.
func (u *Unknown) UnmarshalJSON(b []byte) error {
	var list []struct {
		fleet.Trouble
		Reason string `json:"reason"`
	}
	err := json.Unmarshal(b, &list)
	*u = nil
	for _, x := range list {
		x.Why = cmp.Or(x.Why, x.Reason)
		*u = append(*u, x.Trouble)
	}
	return err
}

// Client is the machine that the load came from, and how much of it the client may use.
type Client struct {
	host.Setup
	Limits host.Limits `json:"limits"`
}

// ServerHost is what is known of the server's process if it runs on the client's machine.
type ServerHost struct {
	PID       int           `json:"pid"`
	Limits    host.Limits   `json:"limits"`
	Container string        `json:"container,omitempty"`
	Data      *host.Storage `json:"data,omitempty"` // under its data directory
}

// Server is the server that was measured.
type Server struct {
	Flavour string `json:"flavour"`
	Version string `json:"version"`
	Comment string `json:"comment,omitempty"` // the server's version_comment
	// Name, Port, Socket and DataDir are what the server reports about itself.
	Name    string `json:"name,omitempty"`
	Port    int    `json:"port,omitempty"`
	Socket  string `json:"socket,omitempty"`
	DataDir string `json:"data_dir,omitempty"`
	// Changed are the variables that differ from their compiled-in defaults. AllVariables: the server does not say which
	// those are, so Changed holds all variables.
	Changed      []Variable `json:"changed"`
	AllVariables bool       `json:"all_variables,omitempty"`

	pidFile string
}

// Variable is a setting of a server.
type Variable struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source,omitempty"` // where the value comes from, in the server's words
}

// Connection is the way from the client to the server.
type Connection struct {
	Kind    string `json:"kind"` // socket, TCP
	Address string `json:"address"`
	TLS     string `json:"tls,omitempty"` // the cipher; empty: not encrypted
	// Network is how client and server are connected, as far as it can be detected: "loopback", "same network namespace", …
	Network string `json:"network,omitempty"`
}

// Source is a server that can be asked what it is.
type Source interface {
	// ask fills in server and connection; what it may not know it adds to unknown.
	ask(ctx context.Context, e *Environment) error
	// local reports whether the server runs on this machine, as far as its address shows.
	local() bool
	// find finds the server's process on this host.
	find(h *host.Host, s Server) (pid int, gap *fleet.Trouble, err error)
}

// patience bounds the questions to the server.
const patience = 10 * time.Second

// Take writes down the environment as it is now. It fails only when the server cannot be asked.
func Take(ctx context.Context, from Source) (*Environment, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e := &Environment{Taken: time.Now(), Server: Server{Changed: []Variable{}}}
	if err := from.ask(ctx, e); err != nil {
		return nil, fmt.Errorf("ask for the environment: %w", err)
	}
	h, err := host.New(host.Options{})
	if err != nil {
		e.unknown("this machine", err, "mount /proc")
		return e, nil
	}
	defer h.Close()
	e.Client = Client{Setup: h.Setup(), Limits: h.Limits(0)}
	if from.local() {
		e.lookAtServer(h, from)
	} else {
		e.Remote = true
		e.Unknown = append(e.Unknown, fleet.Trouble{What: "the server's machine", Why: "it is another machine", Remedy: "run risso on the server's machine to record it as well"})
	}
	e.Connection.Network = network(h, e)
	return e, nil
}

// lookAtServer looks at a server's process on this machine.
func (e *Environment) lookAtServer(h *host.Host, from Source) {
	pid, gap, err := from.find(h, e.Server)
	if gap != nil {
		e.Unknown = append(e.Unknown, *gap)
	}
	if err != nil {
		if gap == nil {
			e.unknown("the server's process", err, "run risso on the server's machine, as root or as the server's user")
		}
		return
	}
	s := &ServerHost{PID: pid, Limits: h.Limits(pid), Container: h.ContainerOf(pid)}
	e.ServerHost = s
	if e.Server.DataDir == "" {
		e.Unknown = append(e.Unknown, fleet.Trouble{What: "the disk under the data", Why: "the server does not show its data directory to this account", Remedy: "GRANT pg_read_all_settings"})
		return
	}
	data, err := h.Storage(pid, e.Server.DataDir)
	if err != nil {
		e.unknown("the disk under the data", err, "run risso as root or as the server's user")
		return
	}
	s.Data = &data
}

func (e *Environment) unknown(what string, err error, remedy string) {
	e.Unknown = append(e.Unknown, fleet.Trouble{What: what, Why: err.Error(), Remedy: remedy})
}
