// Package aside moves damaged files aside, unchanged, under a name that says what happened and when.
package aside

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Damage reports a file that could not be used and was moved aside.
type Damage struct {
	MovedTo string // where it is now
	Reason  string
}

// Move renames a file to path.damaged-TIME and returns the new name. Files that belong to it, path with each suffix
// appended, are renamed too if they exist. A name that is taken gets a number.
func Move(path string, now time.Time, suffixes ...string) (string, error) {
	name := path + ".damaged-" + now.UTC().Format("20060102T150405Z")
	to := name
	for i := 1; ; i++ {
		if _, err := os.Lstat(to); errors.Is(err, os.ErrNotExist) {
			break
		}
		to = fmt.Sprintf("%s-%d", name, i)
	}
	if err := os.Rename(path, to); err != nil {
		return "", err
	}
	for _, suffix := range suffixes {
		if err := os.Rename(path+suffix, to+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return to, nil
}
