package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/face/cli/doctor"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/serve/config"
)

type completer = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// complete adds shell completions to every command below cmd: forms of output, servers of the config file and of this
// machine, sandboxes, jobs.
func complete(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		var with completer
		switch v := f.Value.(type) {
		case *flags.Output:
			with = cobra.FixedCompletions(v.Forms, cobra.ShellCompDirectiveNoFileComp)
		default:
			switch f.Name {
			case "dsn", "replica", "against", "into", "dsn-a", "dsn-b", "server":
				with = configServers
			case "servers":
				with = installedServers
			case "for":
				if v.Type() == "stringSlice" {
					with = cobra.FixedCompletions(doctor.JobNames(), cobra.ShellCompDirectiveNoFileComp)
				}
			}
		}
		if with == nil || cmd.PersistentFlags().Lookup(f.Name) == nil && cmd.Flags().Lookup(f.Name) == nil {
			return
		}
		_ = cmd.RegisterFlagCompletionFunc(f.Name, with) // fails only if it is there already
	})
	if cmd.HasParent() && cmd.Parent().Name() == "sandbox" && slices.Contains([]string{"down", "exec", "load", "config"}, cmd.Name()) {
		cmd.ValidArgsFunction = sandboxNames
	}
	for _, c := range cmd.Commands() {
		complete(c)
	}
}

// configServers are the names of the servers in the file of --config.
func configServers(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	file, err := cmd.Flags().GetString("config")
	if err != nil || file == "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := config.Read(file)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, s := range c.Servers {
		if s.Name != "" {
			names = append(names, s.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// installedServers are the database servers of this machine.
func installedServers(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	found, _, err := sandbox.Servers(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	for _, s := range found {
		names = append(names, cobra.CompletionWithDesc(s.Name, s.Version))
	}
	return names, cobra.ShellCompDirectiveDefault // a path will do as well
}

// sandboxNames are the sandboxes, and after one of them its nodes.
func sandboxNames(_ *cobra.Command, args []string, begun string) (names []string, _ cobra.ShellCompDirective) {
	list, err := sandbox.List("")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, s := range list {
		switch {
		case len(args) == 0 && strings.HasPrefix(s.Name, begun):
			names = append(names, s.Name)
		case len(args) == 1 && s.Name == args[0]:
			for _, n := range s.Nodes {
				names = append(names, n.Name)
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
