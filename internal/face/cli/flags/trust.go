package flags

import (
	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/places"
)

// BindTrust adds the flags to a command.
func BindTrust(f *places.Trust, cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.Keys, "trust", nil, "trust backups and mirrored logs that are signed by this key, as risso backup key prints it on the host that takes them, or by the keys in this file; may be repeated")
	cmd.Flags().BoolVar(&f.AllowUnsigned, "allow-unsigned", false, "read also backups and mirrored logs that are not signed, as older versions took them, or are signed by a key that is not trusted")
}

// TrustHelp is what the help of these commands says of it.
const TrustHelp = `A backup is signed by the account that took it, a mirrored log by the one that mirrored it, and each is
read only when that key is trusted: this account's own, one that --trust names, or the first that was seen of the repository, which is written down in
` + `~/.config/risso/known-keys. --allow-unsigned reads others, and those of versions that did not sign.`

// CountsHelp is what the help of commands says that only look at a place.
const CountsHelp = `A backup, a proof and a mirrored log count when the key is trusted that signed them: this account's own, one that --trust names, or
one that is written down for the repository in ~/.config/risso/known-keys, as the first restore, drill or verify does. While none is named or written
down all of them count, whoever put them there: name one with --trust on a host that does nothing but look.`
