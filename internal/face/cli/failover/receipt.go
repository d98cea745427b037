package failover

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/oneline"
)

// ReceiptsAnswer is what changes of the primary cost, the last first.
type ReceiptsAnswer struct {
	Receipts []failover.Receipt `json:"receipts"`
}

// NewReceipt is risso receipt.
func NewReceipt(s screen.Streams) *cobra.Command {
	c := &command{}
	last := 10
	cmd := &cobra.Command{
		Use:   "receipt",
		Short: "Show what the last switchovers and failovers cost: which transactions were lost, and why none can be",
		Long: `After each change of the primary there is a receipt: that no acknowledged transaction is lost, and
because of what; or which are, by GTID.

` + fault.Help,
		Example: "  risso receipt --group shop\n  risso receipt --group shop --output json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.With(cmd.Context(), func(r *keep.Room) error {
				list, err := r.Journals(cmd.Context(), c.Group)
				if err != nil {
					return err
				}
				a := ReceiptsAnswer{Receipts: []failover.Receipt{}}
				for _, j := range slices.Backward(list) {
					if j.Receipt != nil && len(a.Receipts) < last {
						a.Receipts = append(a.Receipts, *j.Receipt)
					}
				}
				if c.output == "json" {
					return render.JSON(c.Out, a)
				}
				for _, rec := range a.Receipts {
					fmt.Fprintf(c.Out, "%s  %s of %s from %s to %s, epoch %d\n  %s\n", rec.Time.Local().Format(time.DateTime), rec.Kind, rec.Group, oneline.Of(rec.Old), oneline.Of(rec.New), rec.Epoch, oneline.Of(rec.Words))
					for _, line := range rec.More() {
						fmt.Fprintln(c.Out, " ", oneline.Of(line))
					}
					if rec.Outage > 0 {
						fmt.Fprintf(c.Out, "  nobody took writes for %s\n", digits.Span(rec.Outage))
					}
					if rec.Lost != "" {
						fmt.Fprintln(c.Out, "  lost:", oneline.Of(rec.Lost))
					}
				}
				if len(a.Receipts) == 0 {
					fmt.Fprintln(c.Out, "there is none")
				}
				return nil
			})
		},
	}
	c.Streams = s
	c.Groups.Bind(cmd, true)
	cmd.Flags().IntVar(&last, "last", last, "how many")
	flags.OutputVar(cmd.Flags(), &c.output, "", "text", "json")
	return cmd
}
