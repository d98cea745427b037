package plan

import (
	"errors"
	"fmt"
	"strings"
)

// ErrStatement is what the errors about the form of a statement wrap.
var ErrStatement = errors.New("not a statement to explain")

// check says whether a statement may go to a server behind EXPLAIN, or behind EXPLAIN ANALYZE, and gives it without
// the semicolon at its end.
func check(sql string, analyze bool) (string, error) {
	sql = strings.TrimRight(strings.TrimSpace(sql), "; \t\r\n")
	if sql == "" {
		return "", fmt.Errorf("%w: it is empty", ErrStatement)
	}
	tokens := lex(sql)
	first := ""
	for _, t := range tokens {
		if t.kind == tokenPunct && t.text == "(" {
			continue
		}
		first = strings.ToUpper(t.text)
		break
	}
	for _, t := range tokens {
		switch {
		case t.kind == tokenPunct && t.text == ";":
			return "", fmt.Errorf("%w: there is more than one", ErrStatement)
		case t.kind == tokenPunct && t.text == "?":
			return "", fmt.Errorf("%w: it has a placeholder (?), whose value decides the plan: write a typical value in its place, or let --sample put 1 there", ErrStatement)
		}
	}
	switch first {
	case "SELECT", "WITH", "TABLE", "VALUES":
	case "INSERT", "REPLACE", "UPDATE", "DELETE":
		if analyze {
			return "", fmt.Errorf("%w: --analyze runs the statement, and %s writes; leave --analyze out", ErrStatement, first)
		}
	case "EXPLAIN", "DESCRIBE", "DESC", "ANALYZE":
		return "", fmt.Errorf("%w: give the statement itself, without %s", ErrStatement, first)
	default:
		return "", fmt.Errorf("%w: servers explain SELECT, INSERT, REPLACE, UPDATE and DELETE, this begins with %.20q", ErrStatement, first)
	}
	if analyze {
		if err := readsOnly(sql, tokens); err != nil {
			return "", err
		}
	}
	return sql, nil
}

// writes are words that do not belong in a statement that only reads.
var writes = map[string]bool{"INTO": true, "INSERT": true, "UPDATE": true, "DELETE": true, "REPLACE": true, "SHARE": true, "LOCK": true,
	"GET_LOCK": true, "RELEASE_LOCK": true, "RELEASE_ALL_LOCKS": true, "NEXTVAL": true, "SETVAL": true, "LASTVAL": true, "NEXT": true, "PROCEDURE": true}

// readsOnly says why a statement may do more than read.
func readsOnly(sql string, tokens []token) error {
	if strings.Contains(sql, "/*!") || strings.Contains(sql, "/*M!") {
		return fmt.Errorf("%w: --analyze does not run executable comments (/*! … */)", ErrStatement)
	}
	for _, t := range tokens {
		if t.kind == tokenWord && writes[strings.ToUpper(t.text)] || t.text == ":=" {
			return fmt.Errorf("%w: --analyze runs only what reads, and this has %s", ErrStatement, strings.ToUpper(t.text))
		}
	}
	return nil
}

// Sampled is the statement with the literal 1 in the place of each placeholder.
func Sampled(sql string) string {
	var b strings.Builder
	at := 0
	for _, t := range lex(sql) {
		if t.kind == tokenPunct && t.text == "?" {
			b.WriteString(sql[at:t.begin] + "1")
			at = t.begin + 1
		}
	}
	return b.String() + sql[at:]
}
