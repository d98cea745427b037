package cli

import "runtime/debug"

// release is the version of this source tree; a build from a checkout adds its commit.
const release = "0.1.0-dev"

// Version is the release and, where the build knows it, the commit.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 8 {
			return release + "+" + s.Value[:8]
		}
	}
	return release
}
