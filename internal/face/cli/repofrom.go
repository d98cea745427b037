package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/store/blob"
)

// fromFlags name the repository that a command reads.
type fromFlags struct {
	from     string
	identity string
}

func (f *fromFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.from, "from", "", "place of the backups: "+blob.Forms)
	cmd.Flags().StringVar(&f.identity, "identity", "", "file with the age identity that opens an encrypted repository")
}

// open opens the repository; the caller closes it.
func (f fromFlags) open(ctx context.Context) (*repo.Repo, func(), error) {
	if f.from == "" {
		return nil, nil, usageError("say where the backups are: --from DIR")
	}
	store, err := blob.Open(ctx, f.from, blob.Options{})
	if err != nil {
		var bad *blob.PlaceError
		if errors.As(err, &bad) {
			return nil, nil, usageError("%s", err)
		}
		return nil, nil, err
	}
	r, err := repo.Open(ctx, repo.On(store))
	if err != nil {
		store.Close()
		if errors.Is(err, repo.ErrNoRepository) {
			return nil, nil, failure(exitFailed, "risso backup --to makes one", err)
		}
		return nil, nil, err
	}
	return r, func() { store.Close() }, nil
}
