package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
)

// NewUser manages users.
func NewUser(s screen.Streams) *cobra.Command {
	var f accessFlags
	cmd := &cobra.Command{
		Use:   "user",
		Short: "Manage users, who sign in to the page with a password",
		Long: `Users sign in to the page with a name and a password. From the first user on, everybody is
asked who he is, on loopback, too. Whoever can write the data folder makes users: there is
no first password.

` + roleHelp + `

A password has 12 to 128 characters, of any kind, and is not one that everybody guesses.
It is asked for in the terminal, or read from --password-file or standard input; it is
never an argument. The page changes it, too. Sessions end after 12 hours without use, after
30 days, when the password is changed, and by "risso user logout".`,
		Example: `  risso user add ann --role admin
  risso user add bob --role failover --only 'group=shop*'
  risso user list
  risso user role bob look
  risso user password ann
  risso user logout ann
  risso user remove bob`,
	}
	f.bind(cmd)
	cmd.AddCommand(f.addUser(s), f.userRole(s), f.userPassword(s),
		&cobra.Command{Use: "list", Short: "List users", Args: cobra.NoArgs, Example: "  risso user list",
			RunE: f.with(s, func(ctx context.Context, st *state.Store, _ []string) error { return listUsers(ctx, s, st, f.output) })},
		&cobra.Command{Use: "remove NAME", Short: "Remove a user, with all tokens and sessions", Args: cobra.ExactArgs(1), Example: "  risso user remove bob",
			RunE: f.on(s, func(ctx context.Context, st *state.Store, name string, _ []string) (string, error) {
				return "the user " + name + " was removed", st.RemoveUser(ctx, name)
			})},
		&cobra.Command{Use: "logout NAME", Short: "End all sessions of a user", Args: cobra.ExactArgs(1), Example: "  risso user logout ann",
			RunE: f.on(s, func(ctx context.Context, st *state.Store, name string, _ []string) (string, error) {
				if list, err := st.Users(ctx); err != nil {
					return "", err
				} else if !hasUser(list, name) {
					return "", state.ErrNotFound
				}
				n, err := st.SignOutEverywhere(ctx, name, "")
				return fmt.Sprintf("all sessions of %s (%d) were ended", name, n), err
			})},
	)
	return cmd
}

func hasUser(list []state.User, name string) bool {
	for _, u := range list {
		if u.Name == name {
			return true
		}
	}
	return false
}

// on runs a command about the user that its first argument names, and says what was done.
func (f *accessFlags) on(s screen.Streams, do func(ctx context.Context, st *state.Store, name string, args []string) (said string, err error)) func(*cobra.Command, []string) error {
	return f.with(s, func(ctx context.Context, st *state.Store, args []string) error {
		name, err := state.UserName(args[0])
		if err != nil {
			return err
		}
		said, err := do(ctx, st, name, args[1:])
		if err != nil && fault.Code(err) != fault.Usage {
			a := state.ActorOf(ctx)
			// Why it failed is what the command says, whether or not it can be written down.
			_, _ = st.AddAction(ctx, state.ActionBy(a, state.ActionFailed, fleet.Event{Subject: "user", Text: a.Call + " " + name + " failed: " + err.Error() + "; asked for"}))
		}
		if errors.Is(err, state.ErrNotFound) {
			return fault.New(fault.Failed, "risso user list says who there is", fmt.Errorf("there is no user %q", name))
		}
		if err != nil {
			return err
		}
		noted := noteAccess(ctx, st, "user", said)
		if f.output == "json" {
			return errors.Join(noted, render.JSON(s.Out, ChangedUser{name, strings.TrimSuffix(said, ",")}))
		}
		_, err = fmt.Fprintln(s.Out, strings.TrimSuffix(said, ","))
		return errors.Join(err, noted)
	})
}

// addUser is `risso user add`.
func (f *accessFlags) addUser(s screen.Streams) *cobra.Command {
	var role, file string
	var only []string
	cmd := &cobra.Command{Use: "add NAME", Short: "Add a user", Args: cobra.ExactArgs(1),
		Example: "  risso user add ann --role admin\n  risso user add bob --role failover --only 'group=shop*' --password-file bob.txt",
		RunE: f.on(s, func(ctx context.Context, st *state.Store, name string, _ []string) (string, error) {
			u := state.User{Name: name}
			var err error
			if u.Role, u.Only, err = readRole("--role", role, only); err != nil {
				return "", err
			}
			password, err := newPassword(s, name, file)
			if err != nil {
				return "", err
			}
			u, err = st.AddUser(ctx, u, password)
			return "the user " + name + ", who may " + may(u.Role, u.Only) + ", was added", err
		})}
	roleFlags(cmd, &role, &only)
	passwordFlag(cmd, &file)
	return cmd
}

// userRole is `risso user role`.
func (f *accessFlags) userRole(s screen.Streams) *cobra.Command {
	var only []string
	all := false
	cmd := &cobra.Command{Use: "role NAME ROLE", Short: "Give a user another role, or other limits",
		Long: "The limits stay, unless --only gives others, --all takes them away, or the role is admin.", Args: cobra.ExactArgs(2),
		Example: "  risso user role bob look\n  risso user role bob failover --only 'group=shop*'\n  risso user role bob failover --all",
		RunE: f.on(s, func(ctx context.Context, st *state.Store, name string, args []string) (string, error) {
			if all && len(only) > 0 {
				return "", fault.Usagef("--all takes limits away, and --only sets them")
			}
			role, limits, err := readRole("role", args[0], only)
			if err != nil {
				return "", err
			}
			// The limits stay, also of who may only look for a while. An admin has none.
			if len(only) == 0 && !all && role != state.RoleAdmin {
				list, err := st.Users(ctx)
				if err != nil {
					return "", err
				}
				for _, u := range list {
					if u.Name == name {
						limits = u.Only
					}
				}
			}
			text := "the user " + name + " was given the role " + string(role)
			switch {
			case len(limits) > 0 && role == state.RoleLook:
				text += "; of another role the limits stay: only for " + limits.String() + ","
			case len(limits) > 0:
				text += ", only for " + limits.String() + ","
			}
			return text, st.SetRole(ctx, name, role, limits)
		})}
	onlyFlag(cmd, &only)
	cmd.Flags().BoolVar(&all, "all", false, "take limits away: the user may change everything that the role allows")
	return cmd
}

// userPassword is `risso user password`.
func (f *accessFlags) userPassword(s screen.Streams) *cobra.Command {
	var file string
	cmd := &cobra.Command{Use: "password NAME", Short: "Give a user another password, and end all sessions", Args: cobra.ExactArgs(1),
		Example: "  risso user password ann\n  risso user password ann --password-file ann.txt",
		RunE: f.on(s, func(ctx context.Context, st *state.Store, name string, _ []string) (string, error) {
			password, err := newPassword(s, name, file)
			if err != nil {
				return "", err
			}
			return "the password of " + name + " was changed and all sessions were ended", st.SetPassword(ctx, name, password, "")
		})}
	passwordFlag(cmd, &file)
	return cmd
}

func passwordFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "password-file", "", "file with the password in its first line (default: asked for in the terminal, or read from standard input)")
}

// mostRead bounds what is read in search of a password.
const mostRead = 4096

// newPassword reads a new password: from a file, from the terminal twice, or else the first line of standard input.
func newPassword(s screen.Streams, user, file string) (password string, err error) {
	if file != "" {
		in, err := os.Open(file)
		if err != nil {
			return "", fault.Usagef("--password-file: %w", err)
		}
		defer in.Close()
		password, err = firstLine(in)
		if err != nil {
			return "", fault.Usagef("--password-file: %w", err)
		}
		return password, state.CheckPassword(user, password)
	}
	if in, ok := s.In.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		return askPassword(s, in, user)
	}
	if s.In == nil {
		return "", fault.Usagef("no password: give --password-file")
	}
	if password, err = firstLine(s.In); err != nil {
		return "", fault.New(fault.Usage, "give --password-file, or write it to standard input", fmt.Errorf("read the password: %w", err))
	}
	return password, state.CheckPassword(user, password)
}

// firstLine is a line without its end. Nothing else of it is taken away: blanks are part of a password.
func firstLine(in io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(in, mostRead)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"); line == "" {
		return "", errors.New("the first line is empty")
	}
	return line, nil
}

// askPassword asks twice, without showing what is typed.
func askPassword(s screen.Streams, in *os.File, user string) (string, error) {
	ask := func(what string) (string, error) {
		fmt.Fprintf(s.Err, "%s of %s: ", what, user)
		b, err := term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(s.Err)
		return string(b), err
	}
	password, err := ask("New password")
	if err == nil {
		err = state.CheckPassword(user, password)
	}
	if err != nil {
		return "", err
	}
	again, err := ask("Again, the password")
	if err == nil && again != password {
		err = errors.New("the two passwords differ; nothing was changed")
	}
	return password, err
}

func listUsers(ctx context.Context, s screen.Streams, st *state.Store, output string) error {
	list, err := st.Users(ctx)
	if err != nil {
		return err
	}
	if output == "json" {
		rows := make([]userAnswer, len(list))
		for i, u := range list {
			rows[i] = userAnswer{u.Name, u.Role, append([]string{}, u.Only...), u.Created, u.Changed, orNull(u.Seen), u.Tokens, u.Sessions}
		}
		return render.JSON(s.Out, UsersAnswer{rows})
	}
	for _, u := range list {
		seen := "never signed in"
		if !u.Seen.IsZero() {
			seen = "last signed in " + u.Seen.Local().Format("2006-01-02 15:04")
		}
		fmt.Fprintf(s.Out, "%-20s may %s, %s, %s, %s\n", u.Name, may(u.Role, u.Only), seen, digits.Counted(u.Sessions, "session"), digits.Counted(u.Tokens, "token"))
	}
	return nil
}
