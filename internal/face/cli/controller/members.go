package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/serve"
	"github.com/rissodb/risso/internal/store/agree"
	"github.com/rissodb/risso/internal/store/state"
)

type invite struct{ command }

func newInvite(s screen.Streams) *cobra.Command {
	c := &invite{}
	cmd := &cobra.Command{
		Use:   "invite FILE",
		Short: "Write the file with which another risso serve joins",
		Long: `The file has the key by which the controllers know each other: whoever has it can be one of them, and
read all that they share. Carry it to the other machine as you would a password, and delete it there
when all have joined. It may be used several times.

` + fault.Help,
		Example: "  risso controller invite risso.invitation",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	return c.bind(cmd, s)
}

func (c *invite) run(ctx context.Context, file string) error {
	var now agree.Overview
	if err := c.ask(ctx, "/status", nil, &now); err != nil {
		return err
	}
	f, _, err := agree.OpenFolder(c.data)
	if err != nil {
		return err
	}
	var peers []agree.Peer
	for _, m := range now.Members {
		peers = append(peers, agree.Peer{Name: m.Name, Address: m.Address})
	}
	i, err := f.Invitation(peers)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return fmt.Errorf("write the invitation: %w", err)
	}
	if err := c.did(ctx, f.Name, "the writing of an invitation, which has the controllers' key, to "+file, writeNew(file, append(text, '\n'))); err != nil {
		return err
	}
	return c.done(Answer{f.Cluster, f.Name, f.Address, file}, file+" is written; it has the controllers' key: keep it secret, and delete it when all have joined")
}

// writeNew writes a file that only its owner may read, and that is not there yet.
func writeNew(file string, text []byte) error {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = out.Write(text)
		err = errors.Join(err, out.Close())
	}
	if err != nil {
		return fmt.Errorf("write the invitation: %w", err)
	}
	return nil
}

type join struct {
	command
	who
	yes bool
}

func newJoin(s screen.Streams) *cobra.Command {
	c := &join{}
	cmd := &cobra.Command{
		Use:   "join FILE",
		Short: "Make the risso serve of this data folder one of several controllers",
		Long: `FILE is what "risso controller invite" wrote on a controller. risso serve must not run; started then, it
asks to be let in, and votes as soon as it has everything. What is shared replaces what is here: if there
are tokens, silences, groups and the like in this data folder, --yes is needed. What this Risso saw of
servers stays.

A controller whose disk was lost joins again under its name.

` + fault.Help,
		Example: "  risso controller join risso.invitation --name c2 --address 10.0.0.2:8307",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	c.command.bind(cmd, s)
	c.who.bind(cmd)
	cmd.Flags().BoolVar(&c.yes, "yes", false, "replace the tokens, silences, groups and the like that are here")
	return cmd
}

func (c *join) run(ctx context.Context, file string) error {
	settings, err := c.settings(0)
	if err != nil {
		return err
	}
	if err := c.alreadyOne(); err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fault.Usagef("the invitation: %w", err)
	}
	i, err := agree.ParseInvitation(text)
	if err != nil {
		return fault.Usagef("%s: %w", file, err)
	}
	return c.stopped(func() error {
		if err := c.mayReplace(ctx); err != nil {
			return err
		}
		f, err := agree.JoinFolder(c.data, settings, i)
		if err != nil {
			return errors.Join(err, os.RemoveAll(f.Path))
		}
		if err := c.did(ctx, settings.Name, "the making of controller "+settings.Name+", which joins others", nil); err != nil {
			return err
		}
		return c.done(Answer{f.Cluster, f.Name, f.Address, ""}, fmt.Sprintf("controller %s is made; start risso serve, and it asks to be let in", f.Name))
	})
}

// mayReplace refuses to replace what people made.
func (c *join) mayReplace(ctx context.Context) error {
	st, err := state.Open(ctx, c.stateFile())
	if err != nil {
		return serve.FolderFailure(c.data, err)
	}
	defer st.Close()
	rows, err := st.SharedRows(ctx)
	if err != nil || len(rows) == 0 || c.yes {
		return err
	}
	var list []string
	for _, table := range slices.Sorted(maps.Keys(rows)) {
		list = append(list, fmt.Sprintf("%s: %s", table, digits.Counted(rows[table], "row")))
	}
	return fault.New(fault.Failed, "keep it by risso state backup FILE, then give --yes", fmt.Errorf("what is shared would replace what is here: %s", strings.Join(list, ", ")))
}

type list struct{ command }

func newList(s screen.Streams) *cobra.Command {
	c := &list{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the controllers: who leads, who is behind, who does not answer",
		Long: `Asks the risso serve of this data folder, which asks the others.

` + fault.Help,
		Example: "  risso controller list",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	return c.bind(cmd, s)
}

// ListAnswer is the controllers.
type ListAnswer struct {
	Self    string         `json:"self"` // the controller of this data folder
	Members []agree.Status `json:"members"`
}

func (c *list) run(ctx context.Context) error {
	var now agree.Overview
	if err := c.ask(ctx, "/status", nil, &now); err != nil {
		return err
	}
	if c.output == "json" {
		return render.JSON(c.Out, ListAnswer(now))
	}
	return screen.Tabulate(c.Out, func(w io.Writer) {
		fmt.Fprintln(w, "NAME\tADDRESS\tSTATE\tCHANGE\tVERSION\tREMARKS")
		for _, m := range now.Members {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", m.Name, m.Address, m.State, m.Applied, m.Version, remarks(m, now.Self))
		}
	})
}

// remarks are what is special about a controller.
func remarks(m agree.Status, self string) string {
	var list []string
	if m.Name == self {
		list = append(list, "this one")
	}
	if m.Epoch > 0 {
		list = append(list, fmt.Sprintf("acts in epoch %d", m.Epoch))
	}
	if !m.Votes {
		list = append(list, "does not vote yet")
	}
	for _, s := range []string{m.Trouble, m.Error} {
		if s != "" {
			list = append(list, s)
		}
	}
	return strings.Join(list, "; ")
}

type remove struct{ command }

func newRemove(s screen.Streams) *cobra.Command {
	c := &remove{}
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Take a controller out, such as one that is lost",
		Long: `The others no longer count its vote, and refuse its certificate. More than half of the controllers,
this one included, must run. To bring a machine back, join it again.

` + fault.Help,
		Example: "  risso controller remove c3",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.about(cmd.Context(), "/remove", args[0], "the removal of controller "+args[0], "controller "+args[0]+" is taken out")
		},
	}
	return c.bind(cmd, s)
}

type lead struct{ command }

func newLead(s screen.Streams) *cobra.Command {
	c := &lead{}
	cmd := &cobra.Command{
		Use:   "lead NAME",
		Short: "Hand the lead to a controller, such as before the machine of the one that leads is stopped",
		Long: `What acts on the controller that leads ends first.

` + fault.Help,
		Example: "  risso controller lead c2",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.about(cmd.Context(), "/lead", args[0], "the handing of the lead to controller "+args[0], "controller "+args[0]+" leads")
		},
	}
	return c.bind(cmd, s)
}

// about has something done to a controller.
func (c *command) about(ctx context.Context, path, name, what, text string) error {
	err := c.ask(ctx, path, agree.Member{Name: name}, nil)
	if agree.Exists(c.data) { // else there is nothing to change
		err = c.did(ctx, name, what, err)
	}
	if err != nil {
		return err
	}
	f, _, err := agree.OpenFolder(c.data)
	if err != nil {
		return err
	}
	return c.done(Answer{f.Cluster, name, "", ""}, text)
}
