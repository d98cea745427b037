package backup

import (
	"cmp"
	"fmt"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
)

func newBackupAccept(s screen.Streams) *cobra.Command {
	var f flags.Source
	var output string
	cmd := &cobra.Command{
		Use:   "accept --from PLACE [BACKUP]",
		Short: "Accept a backup that holds much less than those before it",
		Long: `A backup without tables, or with less than half of the tables or a tenth of the rows of the last full
one before it (physical: a tenth of its bytes), may come from an account that sees little, or from a
server that has lost its data. Such a backup proves nothing and replaces none: drill and check backup
report it, and prune keeps the last full one. If tables were dropped on purpose, accept the newest
backup, or the one given; from then on it counts, and later ones are compared with it.
To accept it in advance, use risso backup --accept-smaller.`,
		Example: `  risso backup accept --from /backups/db1
  risso backup accept --from /backups/db1 20261121T183700Z-1a2b3c`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := ""
			if len(args) == 1 && args[0] != "newest" {
				id = args[0]
			}
			r, closePlace, err := f.Open(cmd.Context())
			if err != nil {
				return err
			}
			defer closePlace()
			host, _ := os.Hostname() // for the eye only
			name := ""
			if u, err := user.Current(); err == nil {
				name = u.Username
			}
			if id, err = r.Accept(cmd.Context(), id, cmp.Or(name, "somebody")+"@"+host); err != nil {
				return places.Failure(cmd.Context(), f.From, err)
			}
			if output == "json" {
				return render.JSON(s.Out, AcceptedAnswer{id})
			}
			fmt.Fprintf(s.Out, "Backup %s counts from now on, however little it contains\n", id)
			return nil
		},
	}
	f.Bind(cmd)
	flags.OutputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}
