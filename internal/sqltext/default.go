package sqltext

import "strings"

// ForDefault is a statement of this dialect as a server of the same flavour reads it at its default sql_mode: names in double quotes
// are put in backticks, and a literal backslash is doubled. What a mode changes besides quotes (|| with PIPES_AS_CONCAT) stays.
func (d Dialect) ForDefault(text string) string {
	if d.Postgres || !d.ANSIQuotes && !d.NoBackslash {
		return text
	}
	var b strings.Builder
	for _, t := range d.All(text) {
		piece := text[t.Begin:t.End]
		switch {
		case t.Kind == TokenName && d.ANSIQuotes && strings.HasPrefix(piece, `"`):
			piece = "`" + strings.ReplaceAll(t.Text, "`", "``") + "`"
		case t.Kind == TokenString && d.NoBackslash:
			piece = strings.ReplaceAll(piece, `\`, `\\`)
		}
		b.WriteString(piece)
	}
	return b.String()
}
