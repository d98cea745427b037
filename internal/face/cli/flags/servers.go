package flags

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/config"
)

// Servers name several servers that a command asks.
type Servers struct {
	Dsns                     []string
	All                      bool
	ConfigFile, DefaultsFile string
}

// Bind adds the flags to a command.
func (f *Servers) Bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.Dsns, "dsn", nil, "a server: user@tcp(host:3306)/ or user@unix(/socket)/, with name= in front to name it, or the name of one in --config; may be repeated")
	fl.BoolVar(&f.All, "all", false, "all servers of --config")
	fl.StringVar(&f.ConfigFile, "config", "", "config file (YAML) that names servers")
	fl.StringVar(&f.DefaultsFile, "defaults-file", "", "option file of the mysql clients (default ~/.my.cnf)")
	cmd.MarkFlagsMutuallyExclusive("dsn", "all")
}

// Watched finds the servers; there is at least one.
func (f Servers) Watched() ([]config.Watched, error) {
	c, err := config.Read(f.ConfigFile)
	if err != nil {
		return nil, err
	}
	if f.All && f.ConfigFile == "" {
		return nil, fault.Usagef("--all takes the servers of --config")
	}
	if len(f.Dsns) == 0 {
		list, err := config.Resolve(nil, f.DefaultsFile, c)
		switch {
		case err != nil:
			return nil, err
		case len(list) == 0:
			return nil, fault.New(fault.Usage, "give --dsn 'user:password@tcp(host:3306)/'", errors.New("no server to ask"))
		case len(list) > 1 && !f.All:
			return nil, fault.Usagef("%d servers: name some with --dsn, or all with --all", len(list))
		}
		return list, nil
	}
	var list []config.Watched
	for _, dsn := range f.Dsns {
		one, dsns := c, []string{dsn}
		if named := c.Named(dsn); len(named) > 0 {
			one.Servers, dsns = named, nil
		} else {
			one.Servers = nil
		}
		found, err := config.Resolve(dsns, f.DefaultsFile, one)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, errors.Join(config.Unique(list), config.OnePlace(list))
}

// Again are the flags that name one of these servers to another command: its name in the config file, with that file; "" if it has none there.
func (f Servers) Again(w config.Watched) string {
	c, err := config.Read(f.ConfigFile)
	if err != nil || len(c.Named(w.Instance.Name)) == 0 {
		return ""
	}
	return "--dsn " + fleet.ShellWord(w.Instance.Name) + " --config " + fleet.ShellWord(f.ConfigFile)
}
