package checksum

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/sqltext"
)

// Words says what was found, in words.
func (on On) Words() []string {
	words := []string{string(on.Verdict)}
	add := func(n int64, text string) {
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, text))
		}
	}
	add(on.Different, "with other values")
	add(on.Missing, "missing there")
	add(on.Extra, "only there")
	if on.AtLeast {
		words = append(words, "at least")
	}
	add(on.Changing, "changed each time they were read")
	add(on.Behind, "chunks not comparable: the replica did not catch up in time")
	add(on.Written, "written differently, with the same meaning")
	return words
}

// Words say how the definition of an object differs.
func (d Definition) Words() string {
	what := ""
	switch d.Verdict {
	case MissingTable:
		what = "missing there"
	case ExtraTable:
		what = "only there"
	case Failed:
		what = "definition not compared: " + sqltext.Printable(strings.Join(d.What, "; "))
	default:
		what = "definition differs: " + sqltext.Printable(strings.Join(d.What, "; "))
	}
	return fmt.Sprintf("%s %s on %s: %s", d.Kind, sqltext.Printable(d.Name), d.Server, what)
}
