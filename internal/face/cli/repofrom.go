package cli

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/store/blob"
)

// fromFlags name the repository that a command reads.
type fromFlags struct {
	from     string
	identity string
	policy   repo.Policy // whose backups may be read; nil: all
	signer   ed25519.PrivateKey
}

func (f *fromFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.from, "from", "", "place of the backups: "+blob.Forms)
	cmd.Flags().StringVar(&f.identity, "identity", "", "file with the age identity that opens an encrypted repository")
}

// open opens the repository; the caller closes it.
func (f fromFlags) open(ctx context.Context) (*repo.Repo, func(), error) {
	if f.from == "" {
		return nil, nil, usageError("say where the backups are: --from PLACE, one of %s", blob.Forms)
	}
	keys, err := repoKeys(nil, f.identity)
	if err != nil {
		return nil, nil, err
	}
	keys.Policy, keys.Signer = f.policy, f.signer
	store, err := blob.Open(ctx, f.from, blob.Options{})
	if err != nil {
		return nil, nil, err
	}
	r, err := repo.OpenWith(ctx, repo.On(store), keys)
	if err != nil {
		store.Close()
		if errors.Is(err, repo.ErrNoKey) {
			return nil, nil, failure(exitFailed, "nothing was changed", fmt.Errorf("%s: %w", placeWords(f.from), err))
		}
		return nil, nil, repoFailure(ctx, f.from, err)
	}
	return r, func() { store.Close() }, nil
}

// encryptFlags say whom a repository is encrypted to.
type encryptFlags struct {
	encryptTo []string
	identity  string
}

func (f *encryptFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.encryptTo, "encrypt-to", nil, "encrypt to this age recipient (age1…), or to those in a file; may be repeated; said with the first backup, and checked from then on")
	cmd.Flags().StringVar(&f.identity, "identity", "", "file with the age identity: needed once on a host that writes into an encrypted repository that it did not make")
}

// keys reads the flags.
func (f encryptFlags) keys() (repo.Keys, error) { return repoKeys(f.encryptTo, f.identity) }

// repoKeys reads recipients, each itself or a file of them, and the file of an identity; both may be empty.
func repoKeys(recipients []string, identity string) (k repo.Keys, err error) {
	if k.Recipients, err = repo.ReadRecipients(recipients...); err != nil {
		return k, usageError("--encrypt-to: %w", err)
	}
	if identity != "" {
		if k.Identities, err = repo.ReadIdentities(identity); err != nil {
			return k, usageError("--identity: %w", err)
		}
	}
	k.CacheDir = filepath.Join(defaultDataDir(), "keys")
	return k, nil
}

// makeRepo opens the repository in a place, and makes one where there is none. What is taken into it is signed.
func makeRepo(ctx context.Context, place string, k repo.Keys) (*repo.Repo, func(), error) {
	k, err := signs(k)
	if err != nil {
		return nil, nil, err
	}
	store, err := blob.Open(ctx, place, blob.Options{})
	if err != nil {
		return nil, nil, err
	}
	r, err := repo.CreateWith(ctx, repo.On(store), k)
	if err == nil {
		err = owns(r, place, k)
	}
	if err != nil {
		store.Close()
		return nil, nil, repoFailure(ctx, place, err)
	}
	return r, func() { store.Close() }, nil
}

// repoFailure is an error of a repository with what mends it.
func repoFailure(ctx context.Context, place string, err error) error {
	hint := ""
	switch {
	case ctx.Err() != nil:
		return failure(exitInterrupted, "", errors.New("interrupted"))
	case errors.Is(err, repo.ErrNoRepository):
		hint = "risso backup --to makes one"
	case mistrusted(err) != "":
		hint = mistrusted(err)
	case errors.Is(err, repo.ErrDamaged):
		hint = "risso verify tells what else is damaged; a copy at another place may have it whole"
	case errors.Is(err, repo.ErrFull):
		hint = "prune needs room for a file of no length; free some there by hand: what lies under damaged/ no backup needs"
	case errors.Is(err, repo.ErrPruning):
		hint = "if it was killed just now on another machine, its lease ends within " + render.Seconds(repo.LeaseLife.Seconds())
	case errors.Is(err, repo.ErrNoBackup):
		hint = "risso backup list shows those that are there"
	}
	return failure(exitFailed, hint, fmt.Errorf("%s: %w", placeWords(place), err))
}

// byteProgress shows bytes that are done, of how many.
func byteProgress(p *progress) func(done, total int64) {
	return func(done, total int64) { p.set(done, total) }
}

// shortTime is a time for a table, in the reader's zone.
func shortTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}
