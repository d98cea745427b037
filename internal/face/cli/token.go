package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/store/state"
)

// newToken manages who may look when Risso listens beyond loopback.
func newToken(s Streams) *cobra.Command {
	var data, output string
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Tokens that let people and programs look at the page and the API",
		Long: `Tokens that let people and programs look at the page and the API.

A token is asked for on any other address than loopback. The page has a form for it;
programs send it as "Authorization: Bearer TOKEN" or as the password of HTTP basic
authentication, with any user name. Only its hash is stored.`,
		Example: `  risso token create grafana
  risso token list
  risso token revoke grafana`,
	}
	cmd.PersistentFlags().StringVar(&data, "data", defaultDataDir(), "folder of the data")
	outputVar(cmd.PersistentFlags(), &output, "", "text", "json")
	with := func(f func(ctx context.Context, st *state.Store, args []string) error) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(data, 0o700); err != nil {
				return fmt.Errorf("data folder: %w", err)
			}
			st, err := state.Open(cmd.Context(), filepath.Join(data, "state.db"))
			if err != nil {
				return err
			}
			defer st.Close()
			return f(cmd.Context(), st, args)
		}
	}
	cmd.AddCommand(
		&cobra.Command{Use: "create NAME", Short: "Make a token and print it, this once", Args: cobra.ExactArgs(1), Example: "  risso token create grafana",
			RunE: with(func(ctx context.Context, st *state.Store, args []string) error {
				t, secret, err := st.CreateToken(ctx, args[0])
				if err != nil {
					return err
				}
				if output == "json" {
					return json.NewEncoder(s.Out).Encode(map[string]string{"name": t.Name, "id": t.ID, "token": secret})
				}
				_, err = fmt.Fprintln(s.Out, secret)
				return err
			})},
		&cobra.Command{Use: "list", Short: "Who has a token", Args: cobra.NoArgs, Example: "  risso token list",
			RunE: with(func(ctx context.Context, st *state.Store, _ []string) error {
				return listTokens(ctx, s, st, output)
			})},
		&cobra.Command{Use: "revoke NAME", Short: "Take a token away", Args: cobra.ExactArgs(1), Example: "  risso token revoke grafana",
			RunE: with(func(ctx context.Context, st *state.Store, args []string) error {
				if err := st.RevokeToken(ctx, args[0]); errors.Is(err, state.ErrNotFound) {
					return fmt.Errorf("there is no token %q", args[0])
				} else if err != nil {
					return err
				}
				return nil
			})},
	)
	return cmd
}

func listTokens(ctx context.Context, s Streams, st *state.Store, output string) error {
	list, err := st.Tokens(ctx)
	if err != nil {
		return err
	}
	if output == "json" {
		type row struct {
			Name     string     `json:"name"`
			ID       string     `json:"id"`
			Created  time.Time  `json:"created"`
			LastUsed *time.Time `json:"last_used"`
		}
		rows := make([]row, len(list))
		for i, t := range list {
			rows[i] = row{Name: t.Name, ID: t.ID, Created: t.Created}
			if !t.LastUsed.IsZero() {
				rows[i].LastUsed = &list[i].LastUsed
			}
		}
		return json.NewEncoder(s.Out).Encode(map[string]any{"tokens": rows})
	}
	for _, t := range list {
		used := "never used"
		if !t.LastUsed.IsZero() {
			used = "last used " + t.LastUsed.Local().Format("2006-01-02 15:04")
		}
		fmt.Fprintf(s.Out, "%-20s made %s, %s\n", t.Name, t.Created.Local().Format("2006-01-02 15:04"), used)
	}
	return nil
}

// requireToken refuses to show numbers to a network without asking who is there.
func requireToken(ctx context.Context, set settings, facts *state.Store) error {
	if set.open {
		return nil
	}
	any, err := facts.AnyAccess(ctx)
	if err != nil {
		return err
	}
	if !any {
		return &exitError{code: exitUsage, err: fmt.Errorf("%s can be reached from other machines, and nobody has a token", set.listen),
			hint: "make one first: risso token create NAME --data " + set.data}
	}
	return nil
}
