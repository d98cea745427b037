// Package home knows Risso's own folders on this machine, such as those for data and keys, and who owns them.
package home

import (
	"os"
	"path/filepath"
)

// Data is where Risso keeps its data by default: $XDG_STATE_HOME/risso/data or ~/.local/state/risso/data.
func Data() string {
	if d := os.Getenv("XDG_STATE_HOME"); d != "" {
		return filepath.Join(d, "risso", "data")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "risso-data"
	}
	return filepath.Join(home, ".local", "state", "risso", "data")
}

// State is the folder, next to the data, of what a job must remember, such as the journal of what must be put back on servers.
func State(job string) string { return filepath.Join(filepath.Dir(Data()), job) }

// SyncDir makes the names in a folder durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Keys is the folder of the account's signing key and its known keys.
func Keys() string {
	dir, err := os.UserConfigDir()
	if err != nil { // a service without a home
		return filepath.Join(Data(), "keys")
	}
	return filepath.Join(dir, "risso")
}
