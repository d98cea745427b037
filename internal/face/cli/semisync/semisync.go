// Package semisync is the command semisync and all below it: whether commits wait for a replica, what that costs, and switching it on and off.
package semisync

import (
	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/semisync"
	"github.com/rissodb/risso/internal/avail/semisync/turn"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/home"
)

// StatusAnswer says how semi-synchronous replication stands.
type StatusAnswer struct {
	semisync.Report
	Plan []string        `json:"plan,omitempty"` // of a measurement
	Gaps []fleet.Trouble `json:"gaps,omitempty"` // replicas that could not be asked
	Left []string        `json:"left,omitempty"` // what a risso semisync that was killed left on servers
}

// TurnAnswer is what switching it on or off did, or would do.
type TurnAnswer struct {
	Primary string           `json:"primary"`
	Plan    []string         `json:"plan"` // the steps in words
	Notes   []string         `json:"notes,omitempty"`
	Lines   []turn.Lines     `json:"option_file,omitempty"` // what has to stand in option files, so that a restart keeps it
	Done    bool             `json:"done"`
	Journal string           `json:"journal,omitempty"` // the file that says what was done
	Undo    []turn.Statement `json:"undo,omitempty"`    // how to go back, in this order
	After   *semisync.Report `json:"after,omitempty"`   // how it stands then
	Gaps    []fleet.Trouble  `json:"gaps,omitempty"`
}

// group are the flags that name a primary and its replicas.
type group struct {
	screen.Streams
	flags.Server
	replicas      []string
	state, output string
}

func (g *group) bind(cmd *cobra.Command) {
	g.Server.Bind(cmd, "the primary")
	fl := cmd.Flags()
	fl.StringArrayVar(&g.replicas, "replica", nil, "a replica, written as --dsn; may be repeated (default: all that are found)")
	flags.OutputVar(fl, &g.output, "", "text", "json")
}

// options finds the servers.
func (g *group) options() (o turn.Options, err error) {
	if o.Primary, err = g.Target(); err != nil {
		return o, err
	}
	if o.Replicas, err = g.Others(g.replicas); err != nil {
		return o, err
	}
	if o.State = g.state; o.State == "" {
		o.State = home.State("semisync")
	}
	return o, nil
}

// New is risso semisync.
func New(s screen.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "semisync",
		Short: "Semi-synchronous replication: is it in force, what does it cost; switch it on and off",
		Long: `With semi-synchronous replication a commit returns to its client when a replica has the
transaction: what was acknowledged is not lost with the primary. That is so only with AFTER_SYNC, a
time-out that never comes, and as long as it does not fall back to waiting for nobody: see docs/semisync.md.`,
		Example: `  risso semisync status --dsn 'risso:secret@tcp(db1:3306)/'
  risso semisync on --dsn 'risso:secret@tcp(db1:3306)/' --dry-run
  risso semisync off --dsn 'risso:secret@tcp(db1:3306)/' --yes`,
	}
	cmd.AddCommand(newStatus(s), newOn(s), newOff(s))
	return cmd
}
