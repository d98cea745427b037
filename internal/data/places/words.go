package places

import (
	"path/filepath"
	"strings"
)

// Words is a place as people call it: without what follows a ?, and a folder in full.
func Words(place string) string {
	place, _, _ = strings.Cut(place, "?")
	if !strings.Contains(place, "://") {
		if abs, err := filepath.Abs(place); err == nil {
			return abs
		}
	}
	return place
}
