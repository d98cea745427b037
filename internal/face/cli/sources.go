package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// sourceFlags say what is watched: servers, this host, or both.
type sourceFlags struct {
	dsns         []string
	configFile   string
	defaultsFile string
	hostOnly     bool
	noHost       bool
}

// bind adds the flags to a command.
func (f *sourceFlags) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.dsns, "dsn", nil, "server to watch: user:password@tcp(host:3306)/ or user@unix(/socket)/, with name= in front to name it; may be repeated")
	fl.StringVar(&f.configFile, "config", "", "config file (YAML)")
	fl.StringVar(&f.defaultsFile, "defaults-file", "", "option file of the mysql clients (default ~/.my.cnf)")
	fl.BoolVar(&f.hostOnly, "host-only", false, "watch only this host")
	fl.BoolVar(&f.noHost, "no-host", false, "do not watch this host")
	cmd.MarkFlagsMutuallyExclusive("host-only", "no-host")
	cmd.MarkFlagsMutuallyExclusive("host-only", "dsn")
}

// sources gives the config file and the servers to watch.
func (f sourceFlags) sources() (config, []watched, error) {
	c, err := readConfig(f.configFile)
	if err != nil || f.hostOnly {
		return c, nil, err
	}
	servers, err := resolve(f.dsns, f.defaultsFile, c)
	if err == nil && len(servers) == 0 {
		err = &exitError{code: exitUsage, err: errors.New("no server to watch"),
			hint: "give --dsn 'user:password@tcp(host:3306)/', or --host-only, or try it on: risso sandbox up"}
	}
	return c, servers, err
}
