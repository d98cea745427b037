package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/face/render"
)

// trustFlags say whose backups a command that reads them whole may read.
type trustFlags struct {
	keys          []string
	allowUnsigned bool
}

// bindTrust adds the flags to a command.
func bindTrust(f *trustFlags, cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.keys, "trust", nil, "trust backups and mirrored logs that are signed by this key, as risso backup key prints it on the host that takes them, or by the keys in this file; may be repeated")
	cmd.Flags().BoolVar(&f.allowUnsigned, "allow-unsigned", false, "read also backups and mirrored logs that are not signed, as older versions took them, or are signed by a key that is not trusted")
}

// trustHelp is what the help of these commands says of it.
const trustHelp = `A backup is signed by the account that took it, a mirrored log by the one that mirrored it, and each is
read only when that key is trusted: this account's own, one that --trust names, or the first that was seen of the repository, which is written down in
` + `~/.config/risso/known-keys. --allow-unsigned reads others, and those of versions that did not sign.`

// countsHelp is what the help of commands says that only look at a place.
const countsHelp = `A backup, a proof and a mirrored log count when the key is trusted that signed them: this account's own, one that --trust names, or
one that is written down for the repository in ~/.config/risso/known-keys, as the first restore, drill or verify does. While none is named or written
down all of them count, whoever put them there: name one with --trust on a host that does nothing but look.`

// policy is what the flags say, for a repository in a place. said is told what is trusted.
func (f trustFlags) policy(place string, said func(string)) (*repo.Trust, error) {
	t := &repo.Trust{Dir: keyDir(), Place: placeWords(place), Unsigned: f.allowUnsigned, Said: said}
	var err error
	if t.Keys, err = repo.ReadPublicKeys(f.keys...); err != nil {
		return nil, usageError("--trust: %w", err)
	}
	return t, nil
}

// known are the keys whose backups replace others when a repository is pruned.
func (f trustFlags) known(r *repo.Repo, place string) ([]repo.PublicKey, error) {
	t, err := f.policy(place, nil)
	if err != nil {
		return nil, err
	}
	return t.Known(r.ID)
}

// says tells a person something beside what a command prints.
func says(w io.Writer) func(string) {
	return func(text string) { fmt.Fprintln(w, "risso:", text) }
}

// keyDir is the folder of the account's signing key and its known keys.
func keyDir() string {
	dir, err := os.UserConfigDir()
	if err != nil { // a service without a home
		return filepath.Join(defaultDataDir(), "keys")
	}
	return filepath.Join(dir, "risso")
}

// logPolicy is what the flags say of the logs that are mirrored in a place.
func (f trustFlags) logPolicy(place string, said func(string)) (logTrust, error) {
	p, err := f.policy(place, said)
	return logTrust{p, said}, err
}

// logTrust says which mirrored logs are read, and who is told what of them is not.
type logTrust struct {
	policy repo.Policy
	said   func(string)
}

// of makes a place that reads only such logs.
func (t logTrust) of(p mirror.Place) mirror.Place {
	p.Policy, p.Said = t.policy, t.said
	return p
}

// placeID is the name by which a place without a repository is trusted.
func placeID(place string) string {
	sum := sha256.Sum256([]byte("mirror " + placeWords(place)))
	return hex.EncodeToString(sum[:16])
}

// signsLogs lets the logs that are mirrored into a place be signed by this account, which trusts itself from then on.
func signsLogs(p *mirror.Place, place string) error {
	k, err := signs(repo.Keys{})
	if err != nil {
		return err
	}
	id := placeID(place)
	if p.Repo != nil {
		id = p.Repo.ID
	}
	p.Signer = k.Signer
	return (&repo.Trust{Dir: keyDir(), Place: placeWords(place)}).Own(id, repo.PublicOf(k.Signer))
}

// signs makes keys that sign, by this account's key.
func signs(k repo.Keys) (_ repo.Keys, err error) {
	k.Signer, err = repo.SigningKey(keyDir(), true)
	return k, err
}

// owns notes that this account signs backups of a repository.
func owns(r *repo.Repo, place string, k repo.Keys) error {
	return (&repo.Trust{Dir: keyDir(), Place: placeWords(place)}).Own(r.ID, repo.PublicOf(k.Signer))
}

func newBackupKey(s Streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "key",
		Short: "The key by which this account's backups are told from others",
		Long: `Prints the public half of the key by which this account signs the backups that it takes, for --trust on
the hosts that restore them. It is made the first time, in ` + "~/.config/risso/signing-key" + `, for the account's
eyes only.`,
		Example: `  risso backup key
  risso restore --from s3://backups/db1 --trust ed25519:… --sandbox`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			k, err := signs(repo.Keys{})
			if err != nil {
				return err
			}
			if output == "json" {
				return render.JSON(s.Out, keyAnswer{fmt.Sprint(repo.PublicOf(k.Signer))})
			}
			_, err = fmt.Fprintln(s.Out, repo.PublicOf(k.Signer))
			return err
		},
	}
	outputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}

const forgedHint = "somebody has changed it, or put another in its place: see who may write there, and take the backup from a second place"

// trustHint is what makes a backup readable whose taker is not trusted.
const trustHint = "--trust KEY trusts the key that risso backup key prints on the host that takes the backups and mirrors the logs; --allow-unsigned reads it all the same, as those of older versions, when you know who may write to the place"

// mistrusted is what mends it when a backup is not read for who signed it; "" for other errors.
func mistrusted(err error) string {
	switch {
	case errors.Is(err, repo.ErrForged):
		return forgedHint
	case errors.Is(err, repo.ErrUnsigned), errors.Is(err, repo.ErrForeign):
		return trustHint
	}
	return ""
}
