package sqltext

import "strings"

// NamesIn returns a statement's first word and all the names in it, in lower case. Texts in double quotes, which may be names,
// may add too many.
func NamesIn(statement string) (first string, names map[string]bool) {
	names = map[string]bool{}
	for _, t := range Tokens(statement) {
		word := t.Text
		switch {
		case t.Kind == TokenString && strings.HasPrefix(word, `"`):
			word = strings.ReplaceAll(strings.Trim(word, `"`), `""`, `"`)
		case !t.Name():
			continue
		}
		word = strings.ToLower(word)
		if first == "" {
			first = word
		}
		names[word] = true
	}
	return first, names
}
