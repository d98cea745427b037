package chaos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/chaos"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/sandbox"
)

// HealAnswer is what a run that was killed had left.
type HealAnswer struct {
	Faults      []chaos.Entry `json:"faults"`      // that were ended now
	Controllers int           `json:"controllers"` // that were ended
	Sandboxes   []string      `json:"sandboxes"`   // that were healed, or removed
	Removed     bool          `json:"removed"`     // they were removed
}

// heal is risso chaos heal.
type heal struct {
	screen.Streams
	output       string
	down, dryRun bool
}

func newHeal(s screen.Streams) *cobra.Command {
	h := &heal{Streams: s}
	cmd := &cobra.Command{
		Use:   "heal DIR",
		Short: "End the faults that a run left which was killed",
		Long: `Reads the journal in the folder of a run that was killed, and ends what it had caused: packets pass again, processes go on, disks have room, servers are
started, closed to clients; for a group of yours, the commands that end the faults are run. Its controllers are ended. It may be run twice.`,
		Example: `  risso chaos heal risso-chaos-20261128T200000Z
  risso chaos heal --down risso-chaos-20261128T200000Z`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return h.run(cmd.Context(), args[0]) },
	}
	fl := cmd.Flags()
	fl.BoolVar(&h.down, "down", false, "remove the run's sandbox, with its data")
	fl.BoolVar(&h.dryRun, "dry-run", false, "show what was left, and change nothing")
	flags.OutputVar(fl, &h.output, "", "text", "json")
	return cmd
}

func (h *heal) run(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	left, err := chaos.ReadLeft(dir)
	if err != nil {
		return fault.New(fault.Usage, "give the folder of a run", err)
	}
	a := HealAnswer{Faults: left.Faults, Controllers: len(left.PIDs), Sandboxes: []string{}, Removed: h.down && !h.dryRun}
	if a.Faults == nil {
		a.Faults = []chaos.Entry{}
	}
	var errs []error
	if !h.dryRun {
		errs = append(errs, left.End())
	}
	if left.Sandbox == "" && !h.dryRun {
		for _, e := range left.Faults {
			errs = append(errs, h.end(ctx, dir, e))
		}
	}
	if left.Sandbox != "" {
		list, err := sandbox.List(left.Sandbox)
		errs = append(errs, err)
		for _, s := range list {
			a.Sandboxes = append(a.Sandboxes, s.Name)
			switch {
			case h.dryRun:
			case h.down:
				errs = append(errs, s.Down(ctx))
			default:
				errs = append(errs, chaos.HealAll(ctx, s))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return h.tell(a)
}

// end ends a fault of a user's group, and notes it.
func (h *heal) end(ctx context.Context, dir string, e chaos.Entry) error {
	if err := chaos.Hook(ctx, e.Command); err != nil {
		return err
	}
	j, err := chaos.NewJournal(dir)
	if err != nil {
		return err
	}
	defer j.Close()
	e.Event, e.Time = "heal", time.Now().UTC()
	return j.Note(e)
}

func (h *heal) tell(a HealAnswer) error {
	if h.output == "json" {
		return render.JSON(h.Out, a)
	}
	for _, e := range a.Faults {
		fmt.Fprintf(h.Out, "fault %d, %s of %s %s\n", e.Fault, e.Kind, oneline.Of(e.Target), oneline.Of(e.Command))
	}
	what := "healed"
	switch {
	case h.dryRun:
		what = "left"
	case a.Removed:
		what = "removed"
	}
	for _, s := range a.Sandboxes {
		fmt.Fprintf(h.Out, "sandbox %s: %s\n", s, what)
	}
	_, err := fmt.Fprintf(h.Out, "%s and %s\n", digits.Counted(int64(len(a.Faults)), "open fault"), digits.Counted(int64(a.Controllers), "controller"))
	return err
}
