// Package alike says in words how two definitions of one object differ, across versions and flavours that write the same things
// differently. Pure.
package alike

import (
	"maps"
	"slices"
	"strings"
)

// element is a part of a definition: a column, an index, an option.
type element struct {
	name string // "column `a`", "index `i`": the definition is reported by it
	text string // normalised
	// loose elements hold expressions, which flavours and versions write down differently: unequal ones say nothing across them.
	loose bool
}

// tokens cuts a definition as a server shows it into words, names, texts and signs. Executable comments are opened, spaces go, and
// words outside quotes are in small letters.
func tokens(s string) (out []string) {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			i++
		case strings.HasPrefix(s[i:], "/*!"):
			for i += 3; i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == 'M'); i++ {
			}
		case strings.HasPrefix(s[i:], "*/"):
			i += 2
		case c == '`' || c == '\'' || c == '"':
			end := i + 1
			for end < len(s) && (s[end] != c || end+1 < len(s) && s[end+1] == c) {
				if s[end] == c || s[end] == '\\' && c != '`' {
					end++
				}
				end++
			}
			end = min(end+1, len(s))
			out = append(out, s[i:end])
			i = end
		case wordByte(c):
			end := i
			for end < len(s) && wordByte(s[end]) {
				end++
			}
			out = append(out, strings.ToLower(s[i:end]))
			i = end
		default:
			out = append(out, s[i:i+1])
			i++
		}
	}
	return out
}

func wordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' || c == '.' || c == '@' || c >= 0x80
}

// integers are the types whose width says nothing: MySQL 8.0.19 took it away.
var integers = map[string]bool{"tinyint": true, "smallint": true, "mediumint": true, "int": true, "bigint": true, "year": true}

// alike makes alike what flavours and versions write differently and mean the same.
func alike(t []string) (out []string) {
	at := func(i int) string {
		if i < len(t) {
			return t[i]
		}
		return ""
	}
	for i := 0; i < len(t); i++ {
		w := t[i]
		switch {
		case integers[w] && at(i+1) == "(" && at(i+3) == ")":
			out = append(out, w)
			i += 3
		case w == "character" && at(i+1) == "set":
			i += 2 // compared as charsets
		case (w == "collate" || w == "charset") && at(i+1) != "=" && at(i+1) != "":
			i++
		case w == "default" && at(i+1) == "null":
			i++
		case w == "null" && (len(out) == 0 || out[len(out)-1] != "not"):
		case w == "default" && quotedNumber(at(i+1)):
			out = append(out, w, strings.Trim(at(i+1), "'"))
			i++
		case (w == "current_timestamp" || w == "now") && at(i+1) == "(" && at(i+2) == ")":
			out = append(out, "current_timestamp")
			i += 2
		case w == "using" && at(i+1) == "btree":
			i++
		case w == "ignored":
			out = append(out, "invisible")
		case w == "persistent":
			out = append(out, "stored")
		case w == "on" && (at(i+1) == "delete" || at(i+1) == "update") && at(i+2) == "restrict":
			i += 2
		case w == "on" && (at(i+1) == "delete" || at(i+1) == "update") && at(i+2) == "no" && at(i+3) == "action":
			i += 3
		case w == "check" && at(i+1) == "(" && at(i+2) == "json_valid": // what JSON is on MariaDB
			for depth := 0; i < len(t); i++ {
				if t[i] == "(" {
					depth++
				}
				if t[i] == ")" {
					if depth--; depth == 0 {
						break
					}
				}
			}
		case w == "json":
			out = append(out, "longtext")
		case w == "geomcollection":
			out = append(out, "geometrycollection")
		case strings.HasPrefix(w, "_") && strings.HasPrefix(at(i+1), "'"): // the character set of a text
		default:
			out = append(out, w)
		}
	}
	return singly(out)
}

// singly removes parentheses around parentheses: MySQL has more of them around expressions.
func singly(t []string) []string {
	for i := 0; i+1 < len(t); i++ {
		if t[i] != "(" || t[i+1] != "(" {
			continue
		}
		if outer, inner := closes(t[i:]), closes(t[i+1:]); outer > 0 && outer == inner+2 {
			t = slices.Concat(t[:i+1], t[i+2:i+outer-1], t[i+outer:])
			i--
		}
	}
	return t
}

// parting shows where two texts of tokens part.
func parting(a, b string) string {
	x, y := strings.Split(a, " "), strings.Split(b, " ")
	n := 0
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	const some = 8
	show := func(t []string) string {
		if n >= len(t) {
			return "its end"
		}
		return strings.Join(t[n:min(n+some, len(t))], " ")
	}
	return show(x) + " here, " + show(y) + " there"
}

// quotedNumber reports whether a text in quotes is a number: MySQL shows DEFAULT '0' where MariaDB shows DEFAULT 0.
func quotedNumber(s string) bool {
	body, ok := strings.CutPrefix(s, "'")
	body = strings.TrimSuffix(body, "'")
	return ok && body != "" && strings.Trim(body, "0123456789.-") == ""
}

// join makes one text of tokens again.
func join(t []string) string { return strings.Join(t, " ") }

// tableElements takes the statement apart that SHOW CREATE TABLE returns. exact: both servers are of one version, which writes
// the same things the same way.
func tableElements(create string, exact bool) (list []element, columns []string) {
	same := alike
	if exact {
		same = func(t []string) []string { return t }
	}
	lines := strings.Split(create, "\n")
	var checks []string
	end := len(lines)
	for i, l := range lines[min(1, len(lines)):] {
		if strings.HasPrefix(l, ")") {
			end = i + 1
			break
		}
		t := same(tokens(strings.TrimSuffix(strings.TrimSpace(l), ",")))
		var found []string
		if !exact {
			t, found = cutChecks(t)
			checks = append(checks, found...)
		}
		e := lineElement(t)
		if e.name == "" {
			continue
		}
		if name, ok := strings.CutPrefix(e.name, "column "); ok {
			columns = append(columns, name)
		}
		list = append(list, e)
	}
	if len(checks) > 0 {
		slices.Sort(checks)
		list = append(list, element{"CHECK constraints", strings.Join(checks, ", "), true})
	}
	if end < len(lines) {
		list = append(list, options(lines[end])...)
		if rest := tokens(strings.Join(lines[end+1:], "\n")); len(rest) > 0 {
			list = append(list, element{"partitions", strings.ReplaceAll(join(same(rest)), "`", ""), !exact})
		}
	}
	return list, columns
}

// lineElement is what one line of the statement defines.
func lineElement(t []string) element {
	name := func(i int) string {
		if i < len(t) {
			return t[i]
		}
		return ""
	}
	loose := slices.Contains(t, "as") && slices.Contains(t, "generated")
	for i, w := range t {
		loose = loose || w == "default" && name(i+1) == "(" || w == "(" && name(i+1) == "(" // an expression
	}
	switch {
	case len(t) == 0:
		return element{}
	case strings.HasPrefix(t[0], "`"):
		return element{"column " + t[0], join(t[1:]), loose}
	case t[0] == "primary":
		return element{"the primary key", join(t), loose}
	case t[0] == "constraint":
		return element{"constraint " + name(1), join(t[2:]), slices.Contains(t, "check")}
	case t[0] == "key":
		return element{"index " + name(1), join(t), loose}
	case name(1) == "key" || name(1) == "index": // UNIQUE, FULLTEXT, SPATIAL
		return element{"index " + name(2), join(t), loose}
	}
	return element{join(t), "", true} // PERIOD FOR SYSTEM_TIME, and what newer servers know
}

// cutChecks takes the conditions of CHECK out of a line, where flavours put them in different places.
func cutChecks(t []string) (rest, checks []string) {
	i := slices.Index(t, "check")
	if i < 0 || i+1 >= len(t) || t[i+1] != "(" {
		return t, nil
	}
	depth, end := 0, i+1
	for ; end < len(t); end++ {
		if t[end] == "(" {
			depth++
		}
		if t[end] == ")" {
			if depth--; depth == 0 {
				break
			}
		}
	}
	inner := t[i+2 : min(end, len(t))]
	for len(inner) > 1 && inner[0] == "(" && closes(inner) == len(inner)-1 { // MySQL has one pair more
		inner = inner[1 : len(inner)-1]
	}
	rest = slices.Concat(t[:i], t[min(end+1, len(t)):])
	if len(rest) > 0 && rest[0] == "constraint" {
		rest = nil
	}
	return rest, []string{join(inner)}
}

// closes is where the parenthesis closes that the tokens begin with.
func closes(t []string) int {
	depth := 0
	for i, w := range t {
		if w == "(" {
			depth++
		}
		if w == ")" {
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// options are those after the columns, except the next AUTO_INCREMENT, which is a counter, and the character set, which is
// compared as such.
func options(line string) (list []element) {
	t := tokens(strings.TrimPrefix(line, ")"))
	var name []string
	found := map[string]string{}
	for i := 0; i < len(t); i++ {
		if t[i] != "=" {
			name = append(name, t[i])
			continue
		}
		value := ""
		if i++; i < len(t) {
			value = t[i]
		}
		if value == "(" {
			end := min(i+max(0, closes(t[i:])), len(t)-1)
			value, i = join(t[i:end+1]), end
		}
		found[join(name)] = value
		name = nil
	}
	if len(name) > 0 {
		found[join(name)] = "" // WITH SYSTEM VERSIONING
	}
	for _, n := range slices.Sorted(maps.Keys(found)) {
		switch n {
		case "auto_increment", "charset", "default charset", "collate", "default collate":
		default:
			list = append(list, element{"option " + n, strings.ToLower(found[n]), false})
		}
	}
	return list
}

// programText makes comparable what defines a view, trigger, routine or event.
func programText(create string, exact bool) string {
	t := tokens(create)
	if len(t) > 0 && t[len(t)-1] == ";" { // of several statements in one packet MySQL keeps it
		t = t[:len(t)-1]
	}
	if exact {
		return join(t)
	}
	t = alike(t)
	for i, w := range t { // MySQL quotes names in what goes before the body
		if name := strings.Trim(w, "`"); name != w && strings.IndexFunc(name, func(r rune) bool { return r < 0x80 && !wordByte(byte(r)) }) < 0 {
			t[i] = strings.ToLower(name)
		}
	}
	return join(t)
}
