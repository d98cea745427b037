// Package flags holds the flags that commands share, and what they name: servers, repositories, moments, limits.
package flags

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
)

// durationValue is a flag for a length of time, in the one form that digits reads: 90s, 26h, 7d.
type durationValue time.Duration

// DurationVar binds a flag for a length of time.
func DurationVar(fl *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	fl.Var((*durationValue)(p), name, usage)
}

// String is the length as it is written; 0 is nothing, so that help shows no default if there is none.
func (d *durationValue) String() string {
	if *d == 0 {
		return ""
	}
	return digits.Duration(time.Duration(*d))
}

// Set reads it.
func (d *durationValue) Set(s string) error {
	v, err := digits.ParseDuration(s)
	if err == nil {
		*d = durationValue(v)
	}
	return err
}

// Type is what help calls it.
func (*durationValue) Type() string { return "duration" }

// Output is the flag --output: one of the forms that a command can write.
type Output struct {
	form  *string
	Forms []string
}

// OutputVar binds --output and -o; the first form is the default. detail, if there is any, says more of them than their names.
func OutputVar(fl *pflag.FlagSet, p *string, detail string, forms ...string) {
	*p = forms[0]
	last := len(forms) - 1
	fl.VarP(&Output{p, forms}, "output", "o", cmp.Or(detail, strings.Join(forms[:last], ", ")+" or "+forms[last]))
}

// String is the form that is chosen.
func (o *Output) String() string {
	if o.form == nil { // pflag asks a zero value
		return ""
	}
	return *o.form
}

// Set chooses one.
func (o *Output) Set(s string) error {
	if !slices.Contains(o.Forms, s) {
		return fmt.Errorf("there are %s", strings.Join(o.Forms, ", "))
	}
	*o.form = s
	return nil
}

// Type is what help calls it.
func (*Output) Type() string { return "form" }

// AtMost refuses more arguments with an error of exit code 2.
func AtMost(n int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > n {
			return fault.New(fault.Usage, "see --help", fmt.Errorf("unexpected argument %q", args[n]))
		}
		return nil
	}
}
