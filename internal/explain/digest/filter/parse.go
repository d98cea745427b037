package filter

import (
	"bytes"
	"regexp"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/explain/digest"
)

type (
	boolFn func(*digest.Event) bool
	numFn  func(*digest.Event) (v float64, ok bool)
	textFn func(*digest.Event) (v []byte, ok bool)
)

// node is a compiled part. Which functions it has depends on its kind; kindAny has all but flag.
type node struct {
	kind    kind
	bool    boolFn
	num     numFn
	text    textFn
	flag    func(*digest.Event) (yes, ok bool)
	verb    func(*digest.Event) string
	attr    *attribute
	literal *token // set when the node is a constant
	yes     *bool  // set when the constant is yes or no
	at      int
}

type parser struct {
	src    string
	pos    int
	tok    token
	depth  int
	byName map[string]*attribute
	order  []string
}

func (p *parser) parse() (node, error) {
	if err := p.next(); err != nil {
		return node{}, err
	}
	if p.tok.kind == tokEnd {
		return node{}, p.fail(0, "the expression is empty")
	}
	n, err := p.or()
	if err != nil {
		return node{}, err
	}
	if p.tok.kind != tokEnd {
		return node{}, p.fail(p.tok.at, "%s does not belong here: and, or, or a comparison was expected", p.tok.shown())
	}
	return p.condition(n)
}

// is reports whether the current token is one of these operators or words.
func (p *parser) is(words ...string) bool {
	if p.tok.kind != tokOp && p.tok.kind != tokName {
		return false
	}
	for _, w := range words {
		if strings.EqualFold(p.tok.text, w) {
			return true
		}
	}
	return false
}

// condition makes a yes or no of a node: an attribute alone is true when it is Yes, not 0, not empty.
func (p *parser) condition(n node) (node, error) {
	switch {
	case n.literal != nil || n.yes != nil:
		return node{}, p.fail(n.at, "a comparison was expected, not a value alone")
	case n.kind == kindBool || n.kind == kindAny:
		return n, nil
	case n.kind == kindTime:
		return node{}, p.fail(n.at, "compare the time with something: time >= \"2026-03-01 10:00\"")
	case n.num != nil:
		num := n.num
		return node{kind: kindBool, at: n.at, bool: func(e *digest.Event) bool { v, ok := num(e); return ok && v != 0 }}, nil
	case n.verb != nil:
		verb := n.verb
		return node{kind: kindBool, at: n.at, bool: func(e *digest.Event) bool { return verb(e) != "" }}, nil
	default:
		text := n.text
		return node{kind: kindBool, at: n.at, bool: func(e *digest.Event) bool { v, ok := text(e); return ok && len(v) > 0 }}, nil
	}
}

func (p *parser) or() (node, error) {
	return p.chain(p.and, []string{"or", "||"}, func(a, b boolFn) boolFn { return func(e *digest.Event) bool { return a(e) || b(e) } })
}

func (p *parser) and() (node, error) {
	return p.chain(p.not, []string{"and", "&&"}, func(a, b boolFn) boolFn { return func(e *digest.Event) bool { return a(e) && b(e) } })
}

func (p *parser) chain(part func() (node, error), words []string, join func(a, b boolFn) boolFn) (node, error) {
	left, err := part()
	for err == nil && p.is(words...) {
		if left, err = p.condition(left); err != nil {
			break
		}
		if err = p.next(); err != nil {
			break
		}
		var right node
		if right, err = part(); err != nil {
			break
		}
		if right, err = p.condition(right); err != nil {
			break
		}
		left = node{kind: kindBool, at: left.at, bool: join(left.bool, right.bool)}
	}
	return left, err
}

func (p *parser) not() (node, error) {
	if !p.is("not", "!") {
		return p.compare()
	}
	at := p.tok.at
	leave, err := p.enter()
	if err != nil {
		return node{}, err
	}
	defer leave()
	if err := p.next(); err != nil {
		return node{}, err
	}
	n, err := p.not()
	if err != nil {
		return node{}, err
	}
	if n, err = p.condition(n); err != nil {
		return node{}, err
	}
	inner := n.bool
	return node{kind: kindBool, at: at, bool: func(e *digest.Event) bool { return !inner(e) }}, nil
}

// enter goes one level deeper and returns what leaves it.
func (p *parser) enter() (leave func(), err error) {
	if p.depth >= MaxDepth {
		return nil, p.fail(p.tok.at, "nested deeper than %d", MaxDepth)
	}
	p.depth++
	return func() { p.depth-- }, nil
}

func (p *parser) compare() (node, error) {
	left, err := p.sum()
	if err != nil {
		return node{}, err
	}
	at := p.tok.at
	switch {
	case p.tok.kind == tokOp && p.is("==", "=", "!=", "<>", "<", "<=", ">", ">=", "=~", "!~"):
		op := map[string]string{"=": "==", "<>": "!="}[p.tok.text]
		if op == "" {
			op = p.tok.text
		}
		if err := p.next(); err != nil {
			return node{}, err
		}
		right, err := p.sum()
		if err != nil {
			return node{}, err
		}
		return p.comparison(at, op, left, right)
	case p.is("in"):
		return p.in(left, false)
	case p.is("not"):
		if err := p.next(); err != nil {
			return node{}, err
		}
		if !p.is("in") {
			return node{}, p.fail(p.tok.at, "in was expected after not, not %s", p.tok.shown())
		}
		return p.in(left, true)
	}
	return left, nil
}

// in compiles a list. An attribute that is not there is in no list, and not outside of one either.
func (p *parser) in(left node, negate bool) (node, error) {
	at := p.tok.at
	if err := p.next(); err != nil {
		return node{}, err
	}
	if !p.is("(") {
		return node{}, p.fail(p.tok.at, "a list was expected after in: in (\"a\", \"b\")")
	}
	op, all := "==", false
	if negate {
		op, all = "!=", true
	}
	var each []boolFn
	for {
		if err := p.next(); err != nil {
			return node{}, err
		}
		right, err := p.sum()
		if err != nil {
			return node{}, err
		}
		one, err := p.comparison(at, op, left, right)
		if err != nil {
			return node{}, err
		}
		each = append(each, one.bool)
		if p.is(")") {
			break
		}
		if !p.is(",") {
			return node{}, p.fail(p.tok.at, "a comma or ) was expected in the list, not %s", p.tok.shown())
		}
	}
	return node{kind: kindBool, at: left.at, bool: func(e *digest.Event) bool {
		for _, f := range each {
			if f(e) != all {
				return !all
			}
		}
		return all
	}}, p.next()
}

func (p *parser) sum() (node, error) {
	return p.arithmetic(p.product, map[string]func(a, b float64) float64{
		"+": func(a, b float64) float64 { return a + b }, "-": func(a, b float64) float64 { return a - b }})
}

func (p *parser) product() (node, error) {
	return p.arithmetic(p.unary, map[string]func(a, b float64) float64{
		"*": func(a, b float64) float64 { return a * b }, "/": func(a, b float64) float64 { return a / b }})
}

// arithmetic compiles a chain of operators of one rank. Division by 0 follows IEEE 754: 5/0 is greater than any number, 0/0 compares false.
func (p *parser) arithmetic(part func() (node, error), ops map[string]func(a, b float64) float64) (node, error) {
	left, err := part()
	for err == nil && p.tok.kind == tokOp && ops[p.tok.text] != nil {
		f, word := ops[p.tok.text], p.tok
		if err = p.next(); err != nil {
			break
		}
		var right node
		if right, err = part(); err != nil {
			break
		}
		for _, n := range []node{left, right} {
			if n.num == nil || n.kind == kindTime {
				return node{}, p.fail(n.at, "%s needs numbers, this is %s", word.text, n.kind)
			}
		}
		a, b := left.num, right.num
		k := kindNumber
		if left.kind == kindSeconds || right.kind == kindSeconds {
			k = kindSeconds
		}
		if word.text == "/" && left.kind == right.kind {
			k = kindNumber
		}
		left = node{kind: k, at: left.at, num: func(e *digest.Event) (float64, bool) {
			x, ok := a(e)
			if !ok {
				return 0, false
			}
			y, ok := b(e)
			return f(x, y), ok
		}}
	}
	return left, err
}

func (p *parser) unary() (node, error) {
	t := p.tok
	switch {
	case t.kind == tokOp && t.text == "-":
		leave, err := p.enter()
		if err != nil {
			return node{}, err
		}
		defer leave()
		if err := p.next(); err != nil {
			return node{}, err
		}
		n, err := p.unary()
		if err != nil {
			return node{}, err
		}
		if n.num == nil || n.kind == kindTime {
			return node{}, p.fail(n.at, "- needs a number, this is %s", n.kind)
		}
		v, k := n.num, n.kind
		if k == kindAny {
			k = kindNumber
		}
		return node{kind: k, at: t.at, num: func(e *digest.Event) (float64, bool) { x, ok := v(e); return -x, ok }}, nil
	case t.kind == tokOp && t.text == "(":
		return p.group()
	case t.kind == tokNumber:
		k := kindNumber
		if t.seconds {
			k = kindSeconds
		}
		return node{kind: k, at: t.at, literal: &t, num: func(*digest.Event) (float64, bool) { return t.num, true }}, p.next()
	case t.kind == tokText:
		b := []byte(t.text)
		return node{kind: kindText, at: t.at, literal: &t, text: func(*digest.Event) ([]byte, bool) { return b, true }}, p.next()
	case t.kind == tokAt:
		n := p.attribute(t.text, kindAny)
		n.at = t.at
		return n, p.next()
	case t.kind == tokName:
		return p.name(t)
	}
	return node{}, p.fail(t.at, "an attribute, a number or a text was expected, not %s", t.shown())
}

func (p *parser) group() (node, error) {
	open := p.tok.at
	leave, err := p.enter()
	if err != nil {
		return node{}, err
	}
	defer leave()
	if err := p.next(); err != nil {
		return node{}, err
	}
	n, err := p.or()
	if err != nil {
		return node{}, err
	}
	if !p.is(")") {
		if p.tok.kind == tokEnd {
			return node{}, p.fail(open, "this ( is never closed")
		}
		return node{}, p.fail(p.tok.at, ") was expected, not %s", p.tok.shown())
	}
	return n, p.next()
}

func (p *parser) name(t token) (node, error) {
	lower := strings.ToLower(t.text)
	switch lower {
	case "yes", "true", "no", "false":
		yes := lower == "yes" || lower == "true"
		return node{kind: kindBool, at: t.at, yes: &yes, bool: func(*digest.Event) bool { return yes }}, p.next()
	case "and", "or", "in", "not":
		return node{}, p.fail(t.at, "an attribute, a number or a text was expected, not %s", t.shown())
	case "has":
		return p.has(t)
	}
	n, ok := p.resolve(t.text)
	if !ok {
		hint := "write @" + t.text + " if the log has it anyway"
		if near := nearest(t.text); near != "" {
			hint = "did you mean " + near + "? Else " + hint
		} else {
			hint += `, or "` + t.text + `" if it is text`
		}
		return node{}, p.fail(t.at, "no server logs an attribute %s; %s", t.text, hint)
	}
	n.at = t.at
	return n, p.next()
}

// has asks whether an event has an attribute.
func (p *parser) has(t token) (node, error) {
	if err := p.next(); err != nil {
		return node{}, err
	}
	if !p.is("(") {
		return node{}, p.fail(p.tok.at, "( was expected after has")
	}
	if err := p.next(); err != nil {
		return node{}, err
	}
	inner, err := p.unary()
	if err != nil {
		return node{}, err
	}
	if inner.attr == nil {
		return node{}, p.fail(inner.at, "has needs an attribute of the log; this one is in every event, or is not an attribute")
	}
	if !p.is(")") {
		return node{}, p.fail(p.tok.at, ") was expected, not %s", p.tok.shown())
	}
	a := inner.attr
	return node{kind: kindBool, at: t.at, bool: func(e *digest.Event) bool { return a.find(e) != nil }}, p.next()
}

// comparison compiles left op right.
func (p *parser) comparison(at int, op string, left, right node) (node, error) {
	if op == "=~" || op == "!~" {
		return p.match(op == "!~", left, right)
	}
	out := node{kind: kindBool, at: left.at}
	var err error
	switch {
	case left.yes != nil || right.yes != nil || left.kind == kindBool || right.kind == kindBool:
		out.bool, err = p.compareFlag(at, op, left, right)
	case left.kind == kindTime || right.kind == kindTime:
		out.bool, err = p.compareTime(op, left, right)
	case left.verb != nil || right.verb != nil || left.kind == kindText || right.kind == kindText:
		out.bool, err = p.compareText(at, op, left, right)
	default:
		out.bool, err = p.compareNumber(op, left, right)
	}
	return out, err
}

func (p *parser) compareNumber(op string, left, right node) (boolFn, error) {
	for _, pair := range [2][2]node{{left, right}, {right, left}} {
		if l := pair[1].literal; l != nil && l.seconds && pair[0].kind == kindNumber {
			return nil, p.fail(pair[1].at, "%q is a time, but the other side is a number", l.text)
		} else if l != nil && l.sized && pair[0].kind == kindSeconds {
			return nil, p.fail(pair[1].at, "%q is a count or a size, but the other side is a number of seconds (minutes are m, not M)", l.text)
		}
	}
	return numbers(op, left.num, right.num), nil
}

func numbers(op string, a, b numFn) boolFn {
	test := map[string]func(x, y float64) bool{
		"==": func(x, y float64) bool { return x == y }, "!=": func(x, y float64) bool { return x != y },
		"<": func(x, y float64) bool { return x < y }, "<=": func(x, y float64) bool { return x <= y },
		">": func(x, y float64) bool { return x > y }, ">=": func(x, y float64) bool { return x >= y },
	}[op]
	return func(e *digest.Event) bool {
		x, ok := a(e)
		if !ok {
			return false
		}
		y, ok := b(e)
		return ok && test(x, y)
	}
}

func (p *parser) compareFlag(at int, op string, left, right node) (boolFn, error) {
	if right.yes == nil {
		left, right = right, left
	}
	if right.yes == nil || left.yes != nil || left.kind != kindAny && left.flag == nil {
		return nil, p.fail(at, "a flag is compared with yes or no: Full_scan == yes; or used alone: not Full_scan")
	}
	if op != "==" && op != "!=" {
		return nil, p.fail(at, "%s does not work with yes and no; use == or !=", op)
	}
	want, attr := *right.yes == (op == "=="), left.attr
	return func(e *digest.Event) bool { yes, ok := attr.flag(e); return ok && yes == want }, nil
}

func (p *parser) compareText(at int, op string, left, right node) (boolFn, error) {
	if op != "==" && op != "!=" {
		return nil, p.fail(at, "%s compares numbers; for text use ==, !=, =~, !~ and in", op)
	}
	for _, pair := range [2][2]node{{left, right}, {right, left}} {
		if n := pair[0]; n.text == nil && n.verb == nil {
			return nil, p.fail(n.at, "%s cannot be compared with %s", n.kind, pair[1].kind)
		}
	}
	if left.verb == nil {
		left, right = right, left
	}
	equal := op == "=="
	if left.verb != nil {
		if right.literal == nil {
			return nil, p.fail(right.at, "compare verb with a text: verb == \"UPDATE\"")
		}
		verb, want := left.verb, right.literal.text
		return func(e *digest.Event) bool { return strings.EqualFold(verb(e), want) == equal }, nil
	}
	a, b := left.text, right.text
	return func(e *digest.Event) bool {
		x, ok := a(e)
		if !ok {
			return false
		}
		y, ok := b(e)
		return ok && bytes.Equal(x, y) == equal
	}, nil
}

// match compiles a pattern.
func (p *parser) match(negate bool, left, right node) (node, error) {
	if right.literal == nil || right.kind != kindText {
		return node{}, p.fail(right.at, "a pattern in quotes was expected")
	}
	if left.text == nil && left.verb == nil || left.literal != nil {
		return node{}, p.fail(left.at, "a pattern matches text, but this is %s", left.kind)
	}
	re, err := regexp.Compile(right.literal.text)
	if err != nil {
		return node{}, p.fail(right.at, "not a pattern: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	out := node{kind: kindBool, at: left.at}
	if verb := left.verb; verb != nil {
		out.bool = func(e *digest.Event) bool { return re.MatchString(verb(e)) != negate }
		return out, nil
	}
	text := left.text
	out.bool = func(e *digest.Event) bool { v, ok := text(e); return ok && re.Match(v) != negate }
	return out, nil
}

// timeForms are how a time may be written; without a zone it is UTC, as Risso prints it.
var timeForms = []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999", "2006-01-02T15:04:05.999999", "2006-01-02 15:04", "2006-01-02"}

func (p *parser) compareTime(op string, left, right node) (boolFn, error) {
	fns := [2]numFn{}
	for i, n := range [2]node{left, right} {
		switch {
		case n.kind == kindTime:
			fns[i] = n.num
		case n.literal != nil && n.kind == kindText:
			micros, ok := parseTime(n.literal.text)
			if !ok {
				return nil, p.fail(n.at, "%q is no time: \"2026-03-01 10:00:00\" is one", n.literal.text)
			}
			fns[i] = func(*digest.Event) (float64, bool) { return micros, true }
		default:
			return nil, p.fail(n.at, "a time is compared with a time in quotes: time >= \"2026-03-01 10:00\"")
		}
	}
	return numbers(op, fns[0], fns[1]), nil
}

func parseTime(s string) (micros float64, ok bool) {
	for _, form := range timeForms {
		if t, err := time.ParseInLocation(form, s, time.UTC); err == nil {
			return float64(t.UnixMicro()), true
		}
	}
	return 0, false
}
