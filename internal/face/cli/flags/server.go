package flags

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/config"
)

// BindSources adds the flags to a command.
func BindSources(f *config.Sources, cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.DSNs, "dsn", nil, "server to watch: user:password@tcp(host:3306)/ or user@unix(/socket)/, with name= in front to name it; may be repeated")
	fl.StringVar(&f.ConfigFile, "config", "", "config file (YAML)")
	fl.StringVar(&f.DefaultsFile, "defaults-file", "", "option file of the mysql clients (default ~/.my.cnf)")
	fl.BoolVar(&f.HostOnly, "host-only", false, "watch only this host")
	fl.BoolVar(&f.NoHost, "no-host", false, "do not watch this host")
	cmd.MarkFlagsMutuallyExclusive("host-only", "no-host")
	cmd.MarkFlagsMutuallyExclusive("host-only", "dsn")
}

// Server name the one server that a command asks.
type Server struct{ Dsn, ConfigFile, DefaultsFile string }

// Bind adds the flags to a command; use describes the server.
func (f *Server) Bind(cmd *cobra.Command, use string) {
	fl := cmd.Flags()
	fl.StringVar(&f.Dsn, "dsn", "", use+": user:password@tcp(host:3306)/database, user@unix(/socket)/database, or the name of a server in --config")
	fl.StringVar(&f.ConfigFile, "config", "", "config file (YAML) that names servers")
	fl.StringVar(&f.DefaultsFile, "defaults-file", "", "option file of the mysql clients (default ~/.my.cnf)")
}

// Target finds the server.
func (f Server) Target() (mysql.Target, error) {
	c, err := config.Read(f.ConfigFile)
	if err != nil {
		return mysql.Target{}, err
	}
	var dsns []string
	if named := c.Named(f.Dsn); len(named) > 0 {
		c.Servers = named
	} else if f.Dsn != "" {
		c.Servers, dsns = nil, []string{f.Dsn}
	}
	list, err := config.Resolve(dsns, f.DefaultsFile, c)
	switch {
	case err != nil:
		return mysql.Target{}, err
	case len(list) == 0:
		return mysql.Target{}, fault.New(fault.Usage, "give --dsn 'user:password@tcp(host:3306)/'", errors.New("no server to ask"))
	case len(list) > 1:
		return mysql.Target{}, fault.Usagef("%d servers: name one with --dsn", len(list))
	}
	return list[0].Target, nil
}

// Others are the servers of other DSNs, such as those of replicas, with what the configuration and the option file say of them.
func (f Server) Others(dsns []string) (list []mysql.Target, err error) {
	for _, f.Dsn = range dsns {
		t, err := f.Target()
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}
