// Package filter is a small, safe language that says which statements of a log count:
//
//	Query_time > 100ms and db == "shop" and not (Full_scan or Rows_examined > 1000 * Rows_sent)
//
// An expression is compiled once into closures; asking it about an event allocates nothing (except verb). It can read the
// event and nothing else, and takes time in proportion to the event's size (patterns are RE2).
//
// Names are the log's own (Query_time, Rows_examined, Full_scan, …) in any case, and query, db, user, host, ip,
// thread, time and verb. A name that no server logs is an error, because a typo would otherwise silently match nothing;
// @Name means an attribute that Risso does not know. Times are seconds, also those that a server logs in
// milliseconds. A comparison with an attribute that the event
// does not have is false, whatever the operator; "not" inverts that. has(Name) reports whether it is present.
//
//	expr    = and { "or" and }              "||" too
//	and     = not { "and" not }             "&&" too
//	not     = ("not" | "!") not | compare
//	compare = sum [ op sum | ["not"] "in" "(" sum {"," sum} ")" ]
//	op      = "==" "=" "!=" "<>" "<" "<=" ">" ">=" "=~" "!~"
//	sum     = product { ("+" | "-") product }
//	product = unary { ("*" | "/") unary }
//	unary   = "-" unary | number | text | name | "@" name | "has" "(" name ")" | "(" expr ")"
//	number  = digits with a unit: us ms s m h d; k M G T (powers of 1,000); KiB MiB GiB TiB
//	text    = "…" or '…' with \ before a quote or a backslash
package filter

import (
	"fmt"
	"sync/atomic"

	"github.com/rissodb/risso/internal/explain/digest"
)

// Filter is a compiled expression. It may be used by several goroutines.
type Filter struct {
	source string
	keep   boolFn
	attrs  []*attribute
}

// Error says what is wrong with an expression and where.
type Error struct {
	Column int    // in characters, from 1
	Reason string // for a person
	Source string // the expression
}

// Error is one line; Pointer shows the place.
func (e *Error) Error() string { return fmt.Sprintf("filter, column %d: %s", e.Column, e.Reason) }

// Pointer is the expression with a mark below the place.
func (e *Error) Pointer() string {
	return fmt.Sprintf("%s\n%*s", e.Source, e.Column, "^")
}

// MaxLength is how many bytes an expression may have, MaxDepth how deep parentheses and signs may nest.
const (
	MaxLength = 64 << 10
	MaxDepth  = 200
)

// Compile reads an expression. Errors are of type *Error.
func Compile(expr string) (*Filter, error) {
	if len(expr) > MaxLength {
		return nil, &Error{Column: 1, Reason: fmt.Sprintf("the expression has %d bytes, but %d are allowed", len(expr), MaxLength)}
	}
	p := &parser{src: expr, byName: map[string]*attribute{}}
	n, err := p.parse()
	if err != nil {
		return nil, err
	}
	f := &Filter{source: expr, keep: n.bool}
	for _, name := range p.order {
		f.attrs = append(f.attrs, p.byName[name])
	}
	return f, nil
}

// Keep reports whether an event counts.
func (f *Filter) Keep(e *digest.Event) bool { return f.keep(e) }

// String is the expression.
func (f *Filter) String() string { return f.source }

// Never lists the attributes of the log that the expression looked for, and that no event had so far: then the answer
// is not what the person meant. Names that every event has are not among them, nor what was not looked for because the rest of the
// expression had decided.
func (f *Filter) Never() []string {
	var out []string
	for _, a := range f.attrs {
		if a.asked.Load() && !a.seen.Load() {
			out = append(out, a.name)
		}
	}
	return out
}

// attribute is a name of the log, found in an event by a walk over its few attributes.
type attribute struct {
	name   string
	kind   kind
	factor float64     // makes seconds of what the log has
	asked  atomic.Bool // it was looked for
	seen   atomic.Bool // it was found
}

func (a *attribute) find(e *digest.Event) *digest.Attr {
	if !a.asked.Load() {
		a.asked.Store(true)
	}
	for i := range e.Attrs {
		if x := &e.Attrs[i]; len(x.Name) == len(a.name) && equalFold(x.Name, a.name) {
			if !a.seen.Load() {
				a.seen.Store(true)
			}
			return x
		}
	}
	return nil
}

// equalFold compares an event's name with one of the same length, in ASCII; a blank in the log's name ("Stored routine")
// is written as _.
func equalFold(a, b string) bool {
	if a == b {
		return true
	}
	for i := 0; i < len(a); i++ {
		x, y := a[i], b[i]
		if x == ' ' {
			x = '_'
		}
		if x|0x20 != y|0x20 || x != y && (x|0x20 < 'a' || x|0x20 > 'z') {
			return false
		}
	}
	return true
}
