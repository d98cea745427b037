package flags

import (
	"context"
	"crypto/ed25519"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/store/blob"
)

// Source name the repository that a command reads.
type Source struct {
	From     string
	Identity string
	Policy   repo.Policy // whose backups may be read; nil: all
	Signer   ed25519.PrivateKey
}

// Bind adds the flags to a command.
func (f *Source) Bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.From, "from", "", "place of the backups: "+blob.Forms)
	cmd.Flags().StringVar(&f.Identity, "identity", "", "file with the age identity that opens an encrypted repository")
}

// Open opens the repository; the caller closes it.
func (f Source) Open(ctx context.Context) (*repo.Repo, func(), error) {
	if f.From == "" {
		return nil, nil, fault.Usagef("give the place of the backups: --from PLACE, one of %s", blob.Forms)
	}
	keys, err := places.Keys(nil, f.Identity)
	if err != nil {
		return nil, nil, err
	}
	keys.Policy, keys.Signer = f.Policy, f.Signer
	return places.Open(ctx, f.From, keys)
}

// Encrypt say whom a repository is encrypted to.
type Encrypt struct {
	To       []string
	Identity string
}

// Bind adds the flags to a command.
func (f *Encrypt) Bind(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.To, "encrypt-to", nil, "encrypt to this age recipient (age1…), or to the recipients in a file; may be repeated; set by the first backup, checked by later ones")
	cmd.Flags().StringVar(&f.Identity, "identity", "", "file with the age identity: needed once on a host that writes to an encrypted repository it did not create")
}

// Keys reads the flags.
func (f Encrypt) Keys() (repo.Keys, error) { return places.Keys(f.To, f.Identity) }
