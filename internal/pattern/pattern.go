// Package pattern has name patterns with *, and regular expressions that are compiled when first used. There are a
// hundred of those in Risso, of which a command uses few; compiling all would take longer than most commands do.
package pattern

import (
	"regexp"
	"strings"
	"sync"
)

// Lazy returns a function that returns the expression, which must be valid: a test over the source compiles all of them.
func Lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// Stars reports whether a name fits a pattern in which * matches any text.
func Stars(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, head)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	last := len(parts) - 1
	for _, p := range parts[:last] {
		i := strings.Index(name, p)
		if i < 0 {
			return false
		}
		name = name[i+len(p):]
	}
	return strings.HasSuffix(name, parts[last])
}
