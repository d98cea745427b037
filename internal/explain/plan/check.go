package plan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/sqltext"
)

// ErrStatement is what the errors about the form of a statement wrap.
var ErrStatement = errors.New("not a statement to explain")

// check reports whether a statement may go to a server after EXPLAIN, or after EXPLAIN ANALYZE, and returns it without
// the semicolon at its end.
func check(sql string, analyze bool) (string, error) {
	sql = strings.TrimRight(strings.TrimSpace(sql), "; \t\r\n")
	if sql == "" {
		return "", fmt.Errorf("%w: it is empty", ErrStatement)
	}
	verb := sqltext.Verb([]byte(sql))
	for _, t := range lex(sql) {
		switch {
		case t.Kind == sqltext.TokenSign && t.Text == ";":
			return "", fmt.Errorf("%w: there is more than one", ErrStatement)
		case t.Kind == sqltext.TokenSign && t.Text == "?":
			return "", fmt.Errorf("%w: it has a placeholder (?), whose value decides the plan: write a typical value instead, or use --sample for 1", ErrStatement)
		}
	}
	switch verb {
	case "SELECT", "TABLE", "VALUES":
	case "INSERT", "REPLACE", "UPDATE", "DELETE":
		if analyze {
			return "", fmt.Errorf("%w: --analyze runs the statement, and %s writes; leave --analyze out", ErrStatement, verb)
		}
	case "EXPLAIN", "DESCRIBE", "DESC", "ANALYZE":
		return "", fmt.Errorf("%w: give the statement itself, without %s", ErrStatement, verb)
	default:
		return "", fmt.Errorf("%w: servers explain SELECT, INSERT, REPLACE, UPDATE and DELETE, but this begins with %.20q", ErrStatement, verb)
	}
	if analyze {
		if err := sqltext.ReadsOnly([]byte(sql)); err != nil {
			return "", fmt.Errorf("%w: --analyze runs only statements that read: %w", ErrStatement, err)
		}
	}
	return sql, nil
}

// Sampled is the statement with the literal 1 in place of each placeholder.
func Sampled(sql string) string {
	var b strings.Builder
	at := 0
	for _, t := range lex(sql) {
		if t.Kind == sqltext.TokenSign && t.Text == "?" {
			b.WriteString(sql[at:t.Begin] + "1")
			at = t.Begin + 1
		}
	}
	return b.String() + sql[at:]
}
