package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/mysql"
)

// sourceFlags say what is watched: servers, this host, or both.
type sourceFlags struct {
	dsns         []string
	configFile   string
	defaultsFile string
	hostOnly     bool
	noHost       bool
}

// bindSources adds the flags to a command.
func bindSources(f *sourceFlags, cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.dsns, "dsn", nil, "server to watch: user:password@tcp(host:3306)/ or user@unix(/socket)/, with name= in front to name it; may be repeated")
	fl.StringVar(&f.configFile, "config", "", "config file (YAML)")
	fl.StringVar(&f.defaultsFile, "defaults-file", "", "option file of the mysql clients (default ~/.my.cnf)")
	fl.BoolVar(&f.hostOnly, "host-only", false, "watch only this host")
	fl.BoolVar(&f.noHost, "no-host", false, "do not watch this host")
	cmd.MarkFlagsMutuallyExclusive("host-only", "no-host")
	cmd.MarkFlagsMutuallyExclusive("host-only", "dsn")
}

var errNoServer = errors.New("no server to watch")

// sources gives the config file and the servers to watch.
func (f sourceFlags) sources() (config, []watched, error) {
	c, err := readConfig(f.configFile)
	if err != nil || f.hostOnly {
		return c, nil, err
	}
	servers, err := resolve(f.dsns, f.defaultsFile, c)
	if err == nil && len(servers) == 0 {
		err = &exitError{code: exitUsage, err: errNoServer,
			hint: "give --dsn 'user:password@tcp(host:3306)/', or --host-only, or try it on: risso sandbox up"}
	}
	return c, servers, err
}

// serverFlags name the one server that a command asks.
type serverFlags struct{ dsn, configFile, defaultsFile string }

// bind adds the flags to a command; use says what the server is for.
func (f *serverFlags) bind(cmd *cobra.Command, use string) {
	fl := cmd.Flags()
	fl.StringVar(&f.dsn, "dsn", "", use+": user:password@tcp(host:3306)/database, user@unix(/socket)/database, or the name of a server in --config")
	fl.StringVar(&f.configFile, "config", "", "config file (YAML) that names servers")
	fl.StringVar(&f.defaultsFile, "defaults-file", "", "option file of the mysql clients (default ~/.my.cnf)")
}

// target finds the server.
func (f serverFlags) target() (mysql.Target, error) {
	c, err := readConfig(f.configFile)
	if err != nil {
		return mysql.Target{}, err
	}
	var dsns []string
	if named := c.named(f.dsn); len(named) > 0 {
		c.Servers = named
	} else if f.dsn != "" {
		c.Servers, dsns = nil, []string{f.dsn}
	}
	list, err := resolve(dsns, f.defaultsFile, c)
	switch {
	case err != nil:
		return mysql.Target{}, err
	case len(list) == 0:
		return mysql.Target{}, &exitError{code: exitUsage, err: errors.New("no server to ask"), hint: "give --dsn 'user:password@tcp(host:3306)/'"}
	case len(list) > 1:
		return mysql.Target{}, usageError("%d servers: name one with --dsn", len(list))
	}
	return list[0].target, nil
}
