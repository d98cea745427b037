// Package pattern has regular expressions that are compiled when they are first used. There are a hundred of them in
// Risso, of which a command uses few; compiling all would take longer than most commands do.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy gives a function that gives the expression, which must be right: a test over the source compiles all of them.
func Lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
