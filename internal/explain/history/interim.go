package history

import (
	"errors"
	"strings"

	"github.com/rissodb/risso/internal/sqltext"
)

// appendDigestText stands in until sqltext has AppendDigestText.
func appendDigestText(f *sqltext.Fingerprinter, dst []byte, text string) []byte {
	text = strings.NewReplacer("`", "", " . ", ".", " , ", ", ", "( ", "(", " )", ")", " (", "(", "(...)", "(?)", "= ?", "= 1", " * ", " * ").Replace(text)
	return f.Append(dst, []byte(text))
}

// readsOnly stands in until sqltext has ReadsOnly.
func readsOnly(stmt []byte) error {
	up := strings.ToUpper(string(stmt))
	if sqltext.Verb(stmt) != "SELECT" || strings.Contains(up, "INTO") || strings.Contains(up, "FOR UPDATE") || strings.Contains(up, "LOCK IN") || strings.Contains(up, ";") {
		return errors.New("not a plain SELECT")
	}
	return nil
}
