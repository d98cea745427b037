package load

import (
	"errors"
	"strings"
)

// CameToEnd reports whether a restore was completed, whatever it found.
func CameToEnd(err error) bool {
	return err == nil || errors.Is(err, ErrDifferent) || errors.Is(err, ErrLeftOut) || errors.Is(err, ErrBroken) || errors.Is(err, ErrOrphans)
}

// Words tell a person what becomes of it.
func (f Finding) Words() string {
	if f.Mapped != "" {
		return f.What + ": " + f.Why + ": " + f.Mapped + " instead"
	}
	text := f.What + " cannot be restored: " + f.Why
	if strings.HasPrefix(f.What, "view ") {
		text += "\n  " + f.Create
	}
	return text
}
