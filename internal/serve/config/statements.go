package config

import (
	"cmp"
	"os"
	"slices"

	"github.com/rissodb/risso/internal/explain/history"
	"github.com/rissodb/risso/internal/fault"
)

// Statements say how risso serve follows statements.
type Statements struct {
	EventsURL    string
	Mode         string
	NoStatements bool
	NoPlans      bool
	Redact       bool
}

// AnyStatements reports whether the statements of some server are asked for by the config file.
func (s Settings) AnyStatements() bool {
	for _, srv := range s.Servers {
		if srv.Statements != "" && srv.Statements != string(history.Off) {
			return true
		}
	}
	return false
}

// statementMode is where statements are read: by flag or else by the config file.
func statementMode(f Statements, config string) (string, error) {
	if f.NoStatements {
		if f.Mode != "" && f.Mode != string(history.Off) {
			return "", fault.Usagef("--no-statements and --statements %s contradict each other", f.Mode)
		}
		return string(history.Off), nil
	}
	mode := cmp.Or(f.Mode, config, string(history.Auto))
	return mode, checkMode(mode)
}

// checkMode refuses what is no mode.
func checkMode(mode string) error {
	if mode == "" || slices.Contains(history.Modes(), history.Mode(mode)) {
		return nil
	}
	return fault.Usagef("statements %q: must be auto, performance_schema, slow-log or off", mode)
}

// eventsURL is the flag, or else what the environment says, where a password is better kept.
func eventsURL(flag, config string) string {
	return cmp.Or(flag, os.Getenv("RISSO_EVENTS_URL"), config)
}
