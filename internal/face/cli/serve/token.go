package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/serve"
	"github.com/rissodb/risso/internal/store/state"
)

// accessFlags are those of all commands about tokens and users.
type accessFlags struct{ data, output string }

// roleHelp says what the roles are, in the help of commands.
const roleHelp = `The roles, each of which includes those before it:
  look      read everything
  change    start and stop backups, drills and other jobs; acknowledge and silence alerts;
            keep and delete results (called act before)
  failover  switch over, fail over, change groups
  admin     see who has access and who did what, end sessions, revoke tokens
--only limits what may be changed to groups and servers: --only 'group=shop*' --only
server=db1. What concerns all servers is then refused. Looking is not limited.`

// NewToken manages access tokens.
func NewToken(s screen.Streams) *cobra.Command {
	var f accessFlags
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Manage tokens for access to the page and the API",
		Long: `Tokens give programs, and people who have no password, access to the page and the API.

A token or a user is required on any address other than loopback, and on loopback as soon
as there is one: behind a proxy on this machine every client comes from loopback. The page
has a form for it; programs send a token as "Authorization: Bearer TOKEN" or as the
password of HTTP basic authentication, with any user name. Only its hash is stored.

` + roleHelp + `

A token with --user belongs to that user: it never may more, and goes with the user.
Events and "risso audit actions" say who did what, by the token's name. Revoking the last
token does not open access: one remains required on loopback until "risso token off".`,
		Example: `  risso token create grafana
  risso token create ci --role change --expires 90d
  risso token create shop-failover --role failover --only 'group=shop*'
  risso token list
  risso token revoke grafana`,
	}
	f.bind(cmd)
	cmd.AddCommand(f.create(s),
		&cobra.Command{Use: "list", Short: "List tokens", Args: cobra.NoArgs, Example: "  risso token list",
			RunE: f.with(s, func(ctx context.Context, st *state.Store, _ []string) error { return listTokens(ctx, s, st, f.output) })},
		&cobra.Command{Use: "revoke NAME", Short: "Revoke a token", Args: cobra.ExactArgs(1), Example: "  risso token revoke grafana",
			RunE: f.with(s, func(ctx context.Context, st *state.Store, args []string) error {
				return revokeToken(ctx, s, st, args[0], f.output)
			})},
		&cobra.Command{Use: "off", Short: "Revoke all tokens, and stop requiring one on loopback if there are no users", Args: cobra.NoArgs, Example: "  risso token off",
			RunE: f.with(s, func(ctx context.Context, st *state.Store, _ []string) error { return tokensOff(ctx, s, st, f.output) })},
	)
	return cmd
}

// bind adds the flags to a command and all below it; bindTo adds them to a set of flags.
func (f *accessFlags) bind(cmd *cobra.Command) { f.bindTo(cmd.PersistentFlags()) }

func (f *accessFlags) bindTo(fl *pflag.FlagSet) {
	fl.StringVar(&f.data, "data", home.Data(), "data folder")
	flags.OutputVar(fl, &f.output, "", "text", "json")
}

// with opens the store of facts for a command.
func (f *accessFlags) with(s screen.Streams, do func(ctx context.Context, st *state.Store, args []string) error) func(*cobra.Command, []string) error {
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
		return do(state.WithActor(cmd.Context(), flags.Person(cmd.CommandPath())), st, args)
	}
}

// create is `risso token create`.
func (f *accessFlags) create(s screen.Streams) *cobra.Command {
	var role, expires, owner string
	var only []string
	cmd := &cobra.Command{Use: "create NAME", Short: "Create a token and print it, once", Args: cobra.ExactArgs(1),
		Example: "  risso token create grafana\n  risso token create ci --role change --expires 90d\n  risso token create shop-failover --role failover --only 'group=shop*'",
		RunE: f.with(s, func(ctx context.Context, st *state.Store, args []string) error {
			t := state.Token{Name: args[0], User: strings.ToLower(owner)}
			var err error
			if t.Role, t.Only, err = readRole("--role", role, only); err != nil {
				return err
			}
			if expires != "" {
				d, err := digits.ParseAge(expires)
				if err != nil {
					return fault.Usagef("--expires %q: write it as 90d or 1y", expires)
				}
				t.Expires = time.Now().Add(d)
			}
			t, secret, err := st.AddToken(ctx, t)
			if err != nil {
				return err
			}
			noted := noteAccess(ctx, st, "token", "the token "+t.Name+", which may "+may(t.Role, t.Only)+", was created")
			if f.output == "json" {
				return errors.Join(noted, render.JSON(s.Out, MadeToken{t.Name, t.ID, t.Role, append([]string{}, t.Only...), t.User, orNull(t.Expires), secret}))
			}
			_, err = fmt.Fprintln(s.Out, secret)
			return errors.Join(err, noted) // the secret is printed in any case: it is stored nowhere
		})}
	roleFlags(cmd, &role, &only)
	cmd.Flags().StringVar(&expires, "expires", "", "when the token ends, from now, such as 90d (default: never)")
	cmd.Flags().StringVar(&owner, "user", "", "the user whose token it is (default: a program's)")
	return cmd
}

// roleFlags adds --role and --only.
func roleFlags(cmd *cobra.Command, role *string, only *[]string) {
	cmd.Flags().StringVar(role, "role", string(state.RoleLook), "what is allowed: look, change, failover or admin")
	onlyFlag(cmd, only)
}

func onlyFlag(cmd *cobra.Command, only *[]string) {
	cmd.Flags().StringSliceVar(only, "only", nil, "allow changes only to these: group=PATTERN or server=PATTERN, with * (repeatable; default: to everything)")
}

// readRole reads a role and what it is limited to.
func readRole(flag, role string, only []string) (state.Role, state.Only, error) {
	r, err := state.ParseRole(role)
	if err != nil {
		return "", nil, fault.Usagef("%s %q: look, change, failover or admin", flag, role)
	}
	limits, err := state.ParseOnly(only)
	switch {
	case err != nil:
		return "", nil, fault.Usagef("--only %w", err)
	case len(limits) > 0 && r == state.RoleLook:
		return "", nil, fault.Usagef("--only limits what may be changed, and the role look changes nothing")
	case len(limits) > 0 && r == state.RoleAdmin:
		return "", nil, fault.Usagef("--only does not go with the role admin, which is about all users")
	}
	return r, limits, nil
}

// may says what a role allows.
func may(r state.Role, only state.Only) string {
	text := map[state.Role]string{state.RoleLook: "look", state.RoleChange: "change", state.RoleFailover: "fail over", state.RoleAdmin: "manage access"}[r]
	switch {
	case len(only) > 0 && r == state.RoleLook:
		text += ", with another role only " + only.String()
	case len(only) > 0:
		text += ", only " + only.String()
	}
	return text
}

// orNull is a time for JSON: null, where there is none.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func revokeToken(ctx context.Context, s screen.Streams, st *state.Store, name, output string) error {
	if err := st.RevokeToken(ctx, name); errors.Is(err, state.ErrNotFound) {
		return fmt.Errorf("there is no token %q", name)
	} else if err != nil {
		return err
	}
	return errors.Join(revoked(s, output, name), noteAccess(ctx, st, "token", "the token "+name+" was revoked"))
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
	asked, err := st.TokensAsked(ctx)
	if err != nil {
		return err
	}
	text := "all tokens were revoked; nobody is asked on loopback any more,"
	if asked {
		text = "all tokens were revoked; there are users, so everybody is still asked,"
		fmt.Fprintln(s.Err, "risso: there are users, so signing in remains required (risso user list)")
	}
	return errors.Join(revoked(s, output, names...), noteAccess(ctx, st, "token", text))
}

// revoked tells programs whose tokens do not count any more; people see it by the exit code.
func revoked(s screen.Streams, output string, names ...string) error {
	if output != "json" {
		return nil
	}
	return render.JSON(s.Out, RevokedAnswer{names})
}

// noteAccess records who changed access, by which command.
func noteAccess(ctx context.Context, st *state.Store, subject, text string) error {
	_, err := st.AddAction(ctx, state.ActionBy(state.ActorOf(ctx), state.ActionDone, fleet.Event{Subject: subject, Text: text}))
	return err
}

func listTokens(ctx context.Context, s screen.Streams, st *state.Store, output string) error {
	list, err := st.Tokens(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	if output == "json" {
		rows := make([]tokenAnswer, len(list))
		for i, t := range list {
			rows[i] = tokenAnswer{t.Name, t.ID, t.Role, append([]string{}, t.Only...), t.User, t.Created, orNull(t.Expires), t.Expired(now), orNull(t.LastUsed)}
		}
		return render.JSON(s.Out, TokensAnswer{rows})
	}
	const at = "2006-01-02 15:04"
	for _, t := range list {
		line := fmt.Sprintf("%-20s may %s, ", t.Name, may(t.Role, t.Only))
		if t.User != "" {
			line += "of " + t.User + ", "
		}
		line += "made " + t.Created.Local().Format(at) + ", "
		if t.LastUsed.IsZero() {
			line += "never used"
		} else {
			line += "last used " + t.LastUsed.Local().Format(at)
		}
		switch {
		case t.Expired(now):
			line += ", EXPIRED"
		case !t.Expires.IsZero():
			line += ", expires " + t.Expires.Local().Format(at)
		}
		fmt.Fprintln(s.Out, line)
	}
	return nil
}
