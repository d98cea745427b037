package environ

import (
	"context"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/host"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// MySQL is a MySQL, MariaDB or Percona Server.
func MySQL(t mysql.Target) Source { return mysqlSource{t} }

type mysqlSource struct{ at mysql.Target }

func (s mysqlSource) local() bool { return s.at.Local() }

func (s mysqlSource) ask(ctx context.Context, e *Environment) error {
	c, err := mysql.Connect(ctx, s.at, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	e.Connection = Connection{Kind: "TCP", Address: s.at.Address()}
	if s.at.Socket() != "" {
		e.Connection.Kind = "socket"
	}
	if e.Connection.TLS, err = c.Cipher(ctx); err != nil {
		e.unknown("encryption", err, "")
	}
	sv := c.Server
	e.Server = Server{Flavour: string(sv.Flavour), Version: sv.Version, Comment: sv.Comment, Name: sv.Hostname, Port: sv.Port, Socket: sv.Socket,
		DataDir: sv.DataDir, pidFile: sv.PidFile, Changed: []Variable{}}
	changed, all, err := read.ChangedVariables(ctx, c)
	if err != nil {
		e.unknown("changed variables", err, sv.GrantPerformanceSchema())
	}
	e.Server.AllVariables = all
	for _, v := range changed {
		e.Server.Changed = append(e.Server.Changed, Variable(v))
	}
	return nil
}

func (s mysqlSource) find(h *host.Host, sv Server) (int, *fleet.Trouble, error) {
	t := host.Target{Socket: s.at.Socket(), Port: s.at.Port(), DataDir: sv.DataDir}
	if t.Socket == "" && t.Port == 0 {
		t.Socket, t.Port = sv.Socket, sv.Port
	}
	return h.FindServer(t)
}
