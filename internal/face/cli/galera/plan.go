package galera

import (
	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/galera"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
)

// newPlan is risso galera plan.
func newPlan(s screen.Streams) *cobra.Command {
	var l galera.Layout
	var output string
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "What a Galera cluster that is planned would survive",
		Long: `Works out what a Galera cluster survives: how many nodes may crash at once and one after the
other, which data centres may be lost, what happens when the network between them breaks, and what an
orderly shutdown does. No server is asked.

The rule: those that still see each other go on if they have more than half of the votes of the last
membership. A node has pc.weight votes, 1 by default. One that is shut down in order says good-bye,
and its votes no longer count; one that crashes is counted on until the others have given it up (5 seconds, by default).
Arbitrators (garbd) vote, and have no data; here each has one vote, and with --dcs a place of its own.`,
		Example: `  risso galera plan --nodes 5 --dcs 2,2,1
  risso galera plan --nodes 4 --arbitrators 1
  risso galera plan --dcs 2,2 --weights 2,2,1,1 -o json`,
		Args: flags.AtMost(0),
		RunE: func(*cobra.Command, []string) error {
			if l.Nodes == 0 && len(l.Centres) == 0 {
				return fault.Usagef("--nodes or --dcs says how many nodes there are")
			}
			voters, err := l.Voters()
			if err != nil {
				return fault.New(fault.Usage, "see --help", err)
			}
			p := galera.Make(voters)
			if output == "json" {
				return render.JSON(s.Out, p)
			}
			return planText(s.Out, &p)
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&l.Nodes, "nodes", 0, "how many nodes, arbitrators not among them (default: those of --dcs)")
	fl.IntSliceVar(&l.Centres, "dcs", nil, "how many of them are in each data centre: 2,2,1")
	fl.IntSliceVar(&l.Weights, "weights", nil, "pc.weight of each node, in the order of the data centres: 2,2,1,1,1")
	fl.IntVar(&l.Arbitrators, "arbitrators", 0, "how many arbitrators (garbd) there are in addition")
	flags.OutputVar(fl, &output, "", "text", "json")
	return cmd
}
