package flags

import (
	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/places"
)

// BindTrust adds the flags to a command.
func BindTrust(f *places.Trust, cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.Keys, "trust", nil, "trust backups and mirrored logs signed by this key (printed by risso backup key on the host that takes them), or by the keys in this file; may be repeated")
	cmd.Flags().BoolVar(&f.AllowUnsigned, "allow-unsigned", false, "also read backups and mirrored logs that are not signed (older versions did not sign), or are signed by a key that is not trusted")
}

// TrustHelp is what the help of these commands says about it.
const TrustHelp = `Backups are signed by the account that took them, mirrored logs by the account that mirrored them.
They are read only if the signing key is trusted: this account's own key, a key given by --trust,
or the first key seen for the repository, which is remembered in ~/.config/risso/known-keys.
--allow-unsigned also reads backups and logs that are not signed or not signed by a trusted key.`

// CountsHelp is what the help of commands says that only look at a place.
const CountsHelp = `A backup, a proof or a mirrored log counts only if the key that signed it is trusted: this account's
own key, a key given by --trust, or one remembered for the repository in ~/.config/risso/known-keys
by an earlier restore, drill or verify. As long as no key is given or remembered, everything counts,
whoever put it there: give --trust on a host that only checks.`
