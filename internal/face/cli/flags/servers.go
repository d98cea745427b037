package flags

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/serve/config"
)

// Servers name one or several servers that a command asks, one after the other.
type Servers struct {
	DSNs                     []string
	ConfigFile, DefaultsFile string
	All                      bool
}

// Bind adds the flags to a command.
func (f *Servers) Bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.DSNs, "dsn", nil, "server to look at: user:password@tcp(host:3306)/ or user@unix(/socket)/, with name= in front to name it, or the name of one in --config; may be repeated")
	fl.StringVar(&f.ConfigFile, "config", "", "config file (YAML) that names servers")
	fl.StringVar(&f.DefaultsFile, "defaults-file", "", "option file of the mysql clients (default ~/.my.cnf)")
	fl.BoolVar(&f.All, "all", false, "all servers of the config file")
	cmd.MarkFlagsMutuallyExclusive("all", "dsn")
}

// Watched are the servers.
func (f *Servers) Watched() ([]config.Watched, error) {
	c, err := config.Read(f.ConfigFile)
	if err != nil {
		return nil, err
	}
	var list []config.Watched
	for _, dsn := range f.DSNs {
		of, dsns := c, []string{dsn}
		if named := c.Named(dsn); len(named) > 0 {
			of.Servers, dsns = named, nil
		}
		some, err := config.Resolve(dsns, f.DefaultsFile, of)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	if len(f.DSNs) == 0 {
		if list, err = config.Resolve(nil, f.DefaultsFile, c); err != nil {
			return nil, err
		}
	}
	switch {
	case len(list) == 0:
		return nil, fault.New(fault.Usage, "give --dsn 'user:password@tcp(host:3306)/'", errors.New("no server to look at"))
	case len(list) > 1 && !f.All && len(f.DSNs) == 0:
		return nil, fault.Usagef("%d servers: name some with --dsn, or take --all", len(list))
	}
	return list, nil
}
