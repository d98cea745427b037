package backup

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
)

func newKey(s screen.Streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Print the key that identifies this account's backups",
		Long: `Prints the public half of the key with which this account signs its backups, for --trust on the hosts
that restore them. The key pair is created on first use, in ` + "~/.config/risso/signing-key" + `, readable
by this account only.`,
		Example: `  risso backup key
  risso restore --from s3://backups/db1 --trust ed25519:… --sandbox`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			k, err := places.Sign(repo.Keys{})
			if err != nil {
				return err
			}
			if output == "json" {
				return render.JSON(s.Out, KeyAnswer{fmt.Sprint(repo.PublicOf(k.Signer))})
			}
			_, err = fmt.Fprintln(s.Out, repo.PublicOf(k.Signer))
			return err
		},
	}
	flags.OutputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}
