package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/fault"
)

// strict makes every wrong use below cmd an error with exit code 2 that names what was probably meant and where help is. Cobra
// has no types for most of its errors, so they are caught where they arise.
func strict(cmd *cobra.Command) {
	if !cmd.HasParent() {
		cmd.SetFlagErrorFunc(flagError)
	}
	args := cmd.Args
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	runs := cmd.Runnable()
	cmd.Args = func(cmd *cobra.Command, given []string) error {
		var err error
		if args != nil {
			err = args(cmd, given)
		}
		if cmd.HasSubCommands() && len(given) > 0 && (args == nil || err != nil && fault.Code(err) == fault.Failed) {
			return unknownCommand(cmd, given[0])
		}
		if err == nil && runs {
			err = errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups())
		}
		if err == nil || fault.Code(err) != fault.Failed {
			return err
		}
		return wrongUse(cmd, "", err)
	}
	for _, c := range cmd.Commands() {
		strict(c)
	}
}

// wrongUse is an error of exit code 2 that leads to the help of the command it happened in.
func wrongUse(cmd *cobra.Command, guess string, err error) error {
	remedy := cmd.CommandPath() + " --help"
	if guess != "" {
		remedy = guess + "; see " + remedy
	}
	return fault.New(fault.Usage, remedy, err)
}

// flagError reports which flag was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return wrongUse(cmd, "", err)
	}
	name, flags := unknown.GetSpecifiedName(), &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	if near := flags.SuggestionsFor(name); len(near) > 0 {
		return wrongUse(cmd, "did you mean --"+strings.Join(near, " or --")+"?", err)
	}
	if others := withFlag(cmd.Root(), name); len(others) > 0 && len(others) <= 3 {
		return wrongUse(cmd, "--"+name+" belongs to "+strings.Join(others, " and "), err)
	}
	return wrongUse(cmd, "", err)
}

// withFlag names the commands that have a flag of that name.
func withFlag(cmd *cobra.Command, name string) (paths []string) {
	if cmd.Flags().Lookup(name) != nil {
		paths = append(paths, cmd.CommandPath())
	}
	for _, c := range cmd.Commands() {
		paths = append(paths, withFlag(c, name)...)
	}
	return paths
}

func unknownCommand(group *cobra.Command, word string) error {
	guess := ""
	if group.SuggestionsMinimumDistance <= 0 {
		group.SuggestionsMinimumDistance = 2
	}
	if near := group.SuggestionsFor(word); len(near) > 0 {
		guess = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return wrongUse(group, guess, fmt.Errorf("%s has no command %q", group.CommandPath(), word))
}

// newHelp is risso help, which fails if there is nothing of that name.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND…]",
		Short: "Help about any command",
		Long:  "Shows help about any command, the same as --help.",
		Example: `  risso help backup prune
  risso help exit-codes`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			of, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, c := range of.Commands() {
				if c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			if err != nil {
				return wrongUse(cmd, "", err)
			}
			if len(rest) > 0 {
				return unknownCommand(of, rest[0])
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}
