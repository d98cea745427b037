package cli

import (
	"github.com/spf13/pflag"
)

// replayFlags say what of a recording is run again, and how.
type replayFlags struct {
	mode   string
	speed  float64
	writes bool
}

// bindOwn adds the flags of ontime, script and replay.
func (f *workloadFlags) bindOwn(fl *pflag.FlagSet) {
	fl.Float64Var(&f.Scale, "scale", 1, "ontime: millions of rows, also parts of one")
	fl.StringVar(&f.File, "file", "", "script: the file of YAML; replay: a slow log, or what risso digest --output json wrote")
}

// openOwn makes what these workloads need beside their parameters.
func (f *workloadFlags) openOwn(name string) error {
	return nil
}
