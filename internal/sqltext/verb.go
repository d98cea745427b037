package sqltext

import "bytes"

// Verb returns the first word of a statement in upper case: SELECT, INSERT, CREATE and so on. Comments and opening
// parentheses are skipped, and so is WITH with its tables: the verb is that of the statement after it. What the
// server logs as "administrator command" is ADMIN; a statement without a word has none.
func Verb(stmt []byte) string {
	if bytes.HasPrefix(stmt, []byte("administrator command: ")) {
		return "ADMIN"
	}
	lx := lexer{s: stmt}
	t := lx.next()
	for lx.sign(t, '(') || lx.sign(t, ';') {
		t = lx.next()
	}
	if lx.is(t, "with") {
		depth := 0
	find:
		for t = lx.next(); t.kind != tkEnd; t = lx.next() {
			switch {
			case lx.sign(t, '('):
				depth++
			case lx.sign(t, ')'):
				depth--
			case depth == 0 && t.kind == tkWord:
				switch string(bytes.ToLower(lx.text(t))) {
				case "select", "insert", "update", "delete", "replace", "table", "values":
					break find
				}
			}
		}
	}
	if t.kind != tkWord {
		return ""
	}
	return string(bytes.ToUpper(lx.text(t)))
}
