// Package release says which version of Risso this is.
package release

import (
	"runtime"
	"runtime/debug"
)

// release is the version of this source tree; a build from a checkout adds its commit.
const release = "0.1.0-dev"

// Build is what risso version says about the program.
type Build struct {
	Version  string `json:"version"`            // the release, with the commit if the build knows it
	Commit   string `json:"commit,omitempty"`   // the full commit hash
	Modified bool   `json:"modified,omitempty"` // built from files that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`        // operating system and architecture
	Events   bool   `json:"embedded_events"` // statements can be stored in the data folder: a build with cgo
}

// This is how this program was built.
func This() Build {
	b := Build{Version: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "CGO_ENABLED":
			b.Events = s.Value == "1"
		}
	}
	if len(b.Commit) >= 8 {
		b.Version += "+" + b.Commit[:8]
	}
	return b
}

// Version is the release and, where the build knows it, the commit.
func Version() string { return This().Version }
