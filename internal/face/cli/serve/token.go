package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/serve"
	"github.com/rissodb/risso/internal/store/state"
)

// tokenFlags are those of all commands about tokens.
type tokenFlags struct{ data, output string }

// NewToken manages access tokens.
func NewToken(s screen.Streams) *cobra.Command {
	var f tokenFlags
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Manage tokens for access to the page and the API",
		Long: `Tokens give people and programs access to the page and the API.

A token is required on any address other than loopback, and on loopback as soon as a
token exists: behind a proxy on this machine every client comes from loopback. The page
has a form for it; programs send it as "Authorization: Bearer TOKEN" or as the password
of HTTP basic authentication, with any user name. Only its hash is stored.

The role look allows everything that only reads; act also allows starting and stopping
backups, drills and other jobs, and keeping and deleting results of benchmarks. Events
record who did what, by the token's name. Revoking the last token does not open access:
a token remains required on loopback until "risso token off".`,
		Example: `  risso token create grafana
  risso token create ann --role act
  risso token list
  risso token revoke grafana`,
	}
	cmd.PersistentFlags().StringVar(&f.data, "data", home.Data(), "data folder")
	flags.OutputVar(cmd.PersistentFlags(), &f.output, "", "text", "json")
	cmd.AddCommand(f.create(s),
		&cobra.Command{Use: "list", Short: "List tokens", Args: cobra.NoArgs, Example: "  risso token list",
			RunE: f.with(s, func(ctx context.Context, st *state.Store, _ []string) error { return listTokens(ctx, s, st, f.output) })},
		&cobra.Command{Use: "revoke NAME", Short: "Revoke a token", Args: cobra.ExactArgs(1), Example: "  risso token revoke grafana",
			RunE: f.with(s, func(ctx context.Context, st *state.Store, args []string) error {
				return revokeToken(ctx, s, st, args[0], f.output)
			})},
		&cobra.Command{Use: "off", Short: "Revoke all tokens, and stop requiring one on loopback", Args: cobra.NoArgs, Example: "  risso token off",
			RunE: f.with(s, func(ctx context.Context, st *state.Store, _ []string) error { return tokensOff(ctx, s, st, f.output) })},
	)
	return cmd
}

// with opens the store of facts for a command.
func (f *tokenFlags) with(s screen.Streams, do func(ctx context.Context, st *state.Store, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := os.MkdirAll(f.data, 0o700); err != nil {
			return serve.FolderFailure(f.data, fmt.Errorf("data folder: %w", err))
		}
		home.WarnOfOwner(s.Err, f.data)
		st, err := state.Open(cmd.Context(), filepath.Join(f.data, "state.db"))
		if err != nil {
			return serve.FolderFailure(f.data, err)
		}
		defer st.Close()
		return do(cmd.Context(), st, args)
	}
}

// create is `risso token create`.
func (f *tokenFlags) create(s screen.Streams) *cobra.Command {
	var role string
	cmd := &cobra.Command{Use: "create NAME", Short: "Create a token and print it, once", Args: cobra.ExactArgs(1), Example: "  risso token create grafana\n  risso token create ann --role act",
		RunE: f.with(s, func(ctx context.Context, st *state.Store, args []string) error {
			if r := state.Role(role); r != state.RoleLook && r != state.RoleChange {
				return fault.Usagef("--role %q: look or act", role)
			}
			t, secret, err := st.CreateToken(ctx, args[0], state.Role(role))
			if err != nil {
				return err
			}
			noted := tokenEvent(ctx, st, t.Name, fmt.Sprintf("the token %s, which may %s, was created", t.Name, t.Role))
			if f.output == "json" {
				return errors.Join(noted, render.JSON(s.Out, MadeToken{t.Name, t.ID, t.Role, secret}))
			}
			_, err = fmt.Fprintln(s.Out, secret)
			return errors.Join(err, noted) // the secret is printed in any case: it is stored nowhere
		})}
	cmd.Flags().StringVar(&role, "role", string(state.RoleLook), "what the token allows: look, or act")
	return cmd
}

func revokeToken(ctx context.Context, s screen.Streams, st *state.Store, name, output string) error {
	if err := st.RevokeToken(ctx, name); errors.Is(err, state.ErrNotFound) {
		return fmt.Errorf("there is no token %q", name)
	} else if err != nil {
		return err
	}
	return errors.Join(revoked(s, output, name), tokenEvent(ctx, st, name, "the token "+name+" was revoked"))
}

// tokensOff revokes all.
func tokensOff(ctx context.Context, s screen.Streams, st *state.Store, output string) error {
	list, err := st.Tokens(ctx)
	if err == nil {
		err = st.ForgetTokens(ctx)
	}
	if err != nil {
		return err
	}
	names := []string{}
	for _, t := range list {
		names = append(names, t.Name)
	}
	return errors.Join(revoked(s, output, names...), tokenEvent(ctx, st, "", "all tokens were revoked; none is required on loopback any more"))
}

// revoked tells programs whose tokens do not count any more; people see it by the exit code.
func revoked(s screen.Streams, output string, names ...string) error {
	if output != "json" {
		return nil
	}
	return render.JSON(s.Out, RevokedAnswer{names})
}

// tokenEvent records which user of this machine changed access.
func tokenEvent(ctx context.Context, st *state.Store, name, text string) error {
	who := "user " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	_, err := st.AddEvents(ctx, fleet.Event{Time: time.Now(), Kind: fleet.EventAction, Subject: "token", New: name, Text: text + " by " + who + ", on this machine"})
	return err
}

func listTokens(ctx context.Context, s screen.Streams, st *state.Store, output string) error {
	list, err := st.Tokens(ctx)
	if err != nil {
		return err
	}
	if output == "json" {
		rows := make([]tokenAnswer, len(list))
		for i, t := range list {
			rows[i] = tokenAnswer{Name: t.Name, ID: t.ID, Role: t.Role, Created: t.Created}
			if !t.LastUsed.IsZero() {
				rows[i].LastUsed = &list[i].LastUsed
			}
		}
		return render.JSON(s.Out, TokensAnswer{rows})
	}
	for _, t := range list {
		used := "never used"
		if !t.LastUsed.IsZero() {
			used = "last used " + t.LastUsed.Local().Format("2006-01-02 15:04")
		}
		fmt.Fprintf(s.Out, "%-20s may %s, made %s, %s\n", t.Name, t.Role, t.Created.Local().Format("2006-01-02 15:04"), used)
	}
	return nil
}
