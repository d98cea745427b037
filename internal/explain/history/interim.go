package history

import (
	"errors"
	"strings"

	"github.com/rissodb/risso/internal/sqltext"
)

// readsOnly stands in until sqltext has ReadsOnly.
func readsOnly(stmt []byte) error {
	up := strings.ToUpper(string(stmt))
	if sqltext.Verb(stmt) != "SELECT" || strings.Contains(up, "INTO") || strings.Contains(up, "FOR UPDATE") || strings.Contains(up, "LOCK IN") || strings.Contains(up, ";") {
		return errors.New("not a plain SELECT")
	}
	return nil
}
