package chaos

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/chaos"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
)

// VerifyAnswer is what became of a certificate.
type VerifyAnswer struct {
	Valid       bool               `json:"valid"`         // it says what its ledger says, and was signed
	Why         string             `json:"why,omitempty"` // it is not
	Own         bool               `json:"own"`           // signed by this account
	Certificate *chaos.Certificate `json:"certificate,omitempty"`
}

// newVerify is risso chaos verify.
func newVerify(s screen.Streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Compute a certificate again from its ledger",
		Long: `Reads a certificate, its page or certificate.json, and the ledger in the same folder; checks the ledger's sum and
the signature, and computes everything that the certificate says again. Whether the signer is to be trusted, you have
to know: risso backup key prints the key of an account. A certificate that is not what its ledger says ends with 1;
one that says that a promise was broken is a valid one.

` + fault.Help,
		Example: `  risso chaos verify certificate.html`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			cert, err := chaos.Verify(args[0])
			a := VerifyAnswer{Valid: err == nil, Certificate: cert}
			if err != nil {
				a.Why = err.Error()
			}
			if keys, kerr := places.Sign(repo.Keys{}); kerr == nil && cert != nil {
				a.Own = cert.Signer == string(repo.PublicOf(keys.Signer))
			}
			if output == "json" {
				if werr := render.JSON(s.Out, a); werr != nil || err == nil {
					return werr
				}
				return &fault.Told{Code: fault.Failed}
			}
			if err != nil {
				return err
			}
			if err := describe(s.Out, cert); err != nil {
				return err
			}
			whose := ""
			if a.Own {
				whose = ", the key of this account"
			}
			_, err = fmt.Fprintf(s.Out, "the ledger says the same; signed by %s%s\n", cert.Signer, whose)
			return err
		},
	}
	flags.OutputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}
