package failover

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
)

// CodesAnswer is why something is not done, or a member not promoted.
type CodesAnswer struct {
	Codes []failover.Code `json:"codes"`
}

// newCodes is risso failover codes.
func newCodes(s screen.Streams) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:     "codes",
		Short:   "List why a switchover or failover is refused, or a member not promoted",
		Long:    "Lists the reasons for which a switchover or failover is refused, a member not promoted or a group not made, what they mean, and what to do.",
		Example: "  risso failover codes\n  risso failover codes --output json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if output == "json" {
				return render.JSON(s.Out, CodesAnswer{failover.Codes()})
			}
			for _, c := range failover.Codes() {
				if _, err := fmt.Fprintf(s.Out, "%s (%s): %s\n  next: %s\n", c.ID, c.Of, c.Means, c.Next); err != nil {
					return err
				}
			}
			return nil
		},
	}
	flags.OutputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}
