package serve

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/store/state"
)

// NewAudit is the command audit and all below it.
func NewAudit(s screen.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "audit",
		Short:   "Who did what through Risso",
		Long:    `What was done through Risso, by whom, from where, with which role, and what was refused.`,
		Example: "  risso audit actions --since 7d\n  risso audit actions --refused",
	}
	cmd.AddCommand(newActions(s))
	return cmd
}

// actionsFlags are those of audit actions.
type actionsFlags struct {
	accessFlags
	flags.Running
	since, who string
	refused    bool
	limit      int
}

func newActions(s screen.Streams) *cobra.Command {
	var f actionsFlags
	cmd := &cobra.Command{
		Use:   "actions",
		Short: "List what people and programs did through Risso, or tried to",
		Long: `Actions are jobs started and stopped, alerts acknowledged, failovers, groups, maps of shards,
controllers, users and tokens changed, sign-ins: each with when, who, by which way (a
password, a token, a command), from which address, with which role, and how it went: done,
failed or refused. Of what is refused all the time only some are kept, with the number of
the others.

They are read from the data folder of this machine, or asked of a running risso serve by
--url and a token with the role admin.`,
		Example: "  risso audit actions --since 7d\n  risso audit actions --refused\n  risso audit actions --who ann --since 30d -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			age, err := digits.ParseAge(f.since)
			if err != nil || age <= 0 {
				return fault.Usagef("--since %q: write it as 12h or 7d: so long ago", f.since)
			}
			q := state.ActionQuery{From: time.Now().Add(-age), Who: f.who, Limit: f.limit}
			if f.refused {
				q.Outcome = state.ActionRefused
			}
			if f.To != "" {
				var a ActionsAnswer
				f.Role = string(state.RoleAdmin)
				if err := f.Do(cmd.Context(), http.MethodGet, "/api/actions?"+asQuery(q).Encode(), nil, "tell who did what", &a); err != nil {
					return err
				}
				return f.show(s, a)
			}
			return f.with(s, func(ctx context.Context, st *state.Store, _ []string) error {
				list, err := st.Actions(ctx, q)
				if err != nil {
					return err
				}
				return f.show(s, ActionsAnswer{slices.Concat([]state.Action{}, list)})
			})(cmd, args)
		},
	}
	fl := cmd.Flags()
	f.bindTo(fl)
	f.BindAddress(fl)
	fl.StringVar(&f.since, "since", "24h", "only since so long ago")
	fl.StringVar(&f.who, "who", "", "only by this user, token or account, as the list says it")
	fl.BoolVar(&f.refused, "refused", false, "only what was refused")
	fl.IntVar(&f.limit, "limit", 500, "the newest so many, up to 5000")
	return cmd
}

// asQuery is what /api/actions takes.
func asQuery(q state.ActionQuery) url.Values {
	v := url.Values{"from": {strconv.FormatInt(q.From.Unix(), 10)}, "limit": {strconv.Itoa(q.Limit)}}
	if q.Who != "" {
		v.Set("who", q.Who)
	}
	if q.Outcome != "" {
		v.Set("outcome", string(q.Outcome))
	}
	return v
}

func (f *actionsFlags) show(s screen.Streams, a ActionsAnswer) error {
	if f.output == "json" {
		return render.JSON(s.Out, a)
	}
	return screen.Tabulate(s.Out, func(w io.Writer) {
		for _, x := range a.Actions {
			where := x.Via
			if x.Address != "" {
				where = strings.TrimSpace(where + " from " + x.Address)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", x.Time.Local().Format(time.DateTime), x.Outcome, oneline.Of(cmp.Or(x.Who, "unknown")), oneline.Of(cmp.Or(where, "unknown")), cmp.Or(string(x.Role), "-"), oneline.Of(x.Text))
		}
	})
}
