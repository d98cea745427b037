package sqltext

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// ErrWrites is what ReadsOnly's answers wrap.
var ErrWrites = errors.New("the statement does more than read")

// ReadsOnly returns why a statement may do more than read tables, or nil if it only reads. It is called before Risso
// runs a statement of somebody else, and so it knows only what it can be sure of:
//
//   - one statement, a semicolon at its end at most; SELECT, TABLE, VALUES, or WITH before a SELECT, in parentheses or not;
//   - no INTO (OUTFILE, DUMPFILE, variables), no FOR UPDATE, FOR SHARE or LOCK IN SHARE MODE, no := ;
//   - no executable comment, since which server runs it is not known, and no string or comment without its end;
//   - no function that changes, waits or reveals a file: GET_LOCK and its kin, SLEEP, BENCHMARK, LOAD_FILE, NEXTVAL,
//     LASTVAL, SETVAL, LAST_INSERT_ID with a value, MASTER_POS_WAIT and its kin, and the functions that control
//     group replication or the audit log; no NEXT VALUE FOR of a sequence;
//   - no function with the name of a schema before it, which is a stored one and may do anything.
//
// A stored or loadable function without a schema cannot be distinguished from one of the server's by the text alone. Callers run
// the statement in a transaction that is READ ONLY; ReadsOnly does not replace that.
func ReadsOnly(stmt []byte) error {
	if err := complete(stmt); err != nil {
		return err
	}
	switch v := Verb(stmt); v {
	case "SELECT", "TABLE", "VALUES":
	case "":
		return fmt.Errorf("%w: it has no verb", ErrWrites)
	default:
		return fmt.Errorf("%w: it is a %s", ErrWrites, v)
	}
	lx := lexer{s: stmt}
	var before, last token
	for t := lx.next(); t.kind != tkEnd; before, last, t = last, t, lx.next() {
		if lx.sign(last, ';') {
			return fmt.Errorf("%w: another statement follows", ErrWrites)
		}
		if lx.sign(last, ':') && lx.sign(t, '=') {
			return fmt.Errorf("%w: it sets a variable", ErrWrites)
		}
		if lx.sign(t, '(') && last.kind == tkString && stmt[last.end-1] == '"' {
			return fmt.Errorf("%w: with sql_mode ANSI_QUOTES it calls the function %s", ErrWrites, lx.text(last))
		}
		if lx.sign(t, '(') && (last.kind == tkWord || last.kind == tkTick) {
			if err := lx.function(before, last); err != nil {
				return err
			}
		}
		if t.kind != tkWord || (lx.sign(last, '.') || lx.sign(last, '@')) && !lx.is(t, "nextval") {
			continue
		}
		switch w := string(bytes.ToLower(lx.text(t))); w {
		case "into":
			return fmt.Errorf("%w: INTO writes a file or sets variables", ErrWrites)
		case "procedure":
			return fmt.Errorf("%w: PROCEDURE runs code", ErrWrites)
		case "update", "share":
			if lx.is(last, "for") || lx.is(last, "in") {
				return fmt.Errorf("%w: it locks the rows it reads", ErrWrites)
			}
		case "value":
			if lx.is(last, "next") || lx.is(last, "previous") {
				return fmt.Errorf("%w: it takes a value of a sequence", ErrWrites)
			}
		case "nextval":
			return fmt.Errorf("%w: it takes a value of a sequence", ErrWrites)
		}
	}
	return nil
}

// complete reports what a text alone leaves open.
func complete(stmt []byte) error {
	for i := 0; i < len(stmt); {
		switch c := stmt[i]; classOf[c] {
		case clQuote, clTick:
			end := stringEnd(stmt, i)
			if end-i < 2 || stmt[end-1] != c || !closed(stmt[i:end]) {
				return fmt.Errorf("%w: a quote is not closed", ErrWrites)
			}
			if bytes.IndexByte(stmt[i:end], '\\') >= 0 && c != '`' {
				// With NO_BACKSLASH_ESCAPES the string would end elsewhere.
				if bytes.Contains(stmt[i:end], []byte{'\\', c}) {
					return fmt.Errorf("%w: where a string ends depends on sql_mode (write '' for a quote in a string)", ErrWrites)
				}
			}
			i = end
		case clSlash, clHash, clSign:
			end, ok := commentEnd(stmt, i)
			if !ok {
				if c == '/' && i+1 < len(stmt) && stmt[i+1] == '*' {
					return fmt.Errorf("%w: it holds an executable comment", ErrWrites)
				}
				end = i + 1
			} else if c == '/' && (end < i+4 || stmt[end-1] != '/' || stmt[end-2] != '*') {
				return fmt.Errorf("%w: a comment is not closed", ErrWrites)
			}
			i = end
		default:
			if c == 0 {
				return fmt.Errorf("%w: it holds a NUL byte", ErrWrites)
			}
			i++
		}
	}
	return nil
}

// closed reports whether the quoted text ends in its closing quote and not in an escaped one.
func closed(q []byte) bool {
	c, i := q[0], 1
	for i < len(q) {
		switch {
		case q[i] == '\\' && c != '`':
			i += 2
		case q[i] != c:
			i++
		case i+1 < len(q):
			if q[i+1] != c {
				return false
			}
			i += 2
		default:
			return true
		}
	}
	return false
}

// function reports why the function, whose name t is, is not one that only reads.
func (lx *lexer) function(before, t token) error {
	name := string(bytes.ToLower(unquote(lx.text(t))))
	if lx.sign(before, '.') {
		return fmt.Errorf("%w: %s is a stored function", ErrWrites, name)
	}
	if writers[name] || Steers(name) || strings.HasPrefix(name, "wait_") {
		return fmt.Errorf("%w: %s() does", ErrWrites, name)
	}
	return nil
}

// Steers reports whether a function of the server, or of its known plugins, changes the server itself or runs programs
// on its host. Not even a read-only transaction holds one back, and servers may call one while they plan a statement.
func Steers(function string) bool {
	name := strings.ToLower(function)
	for _, p := range []string{"group_replication_", "audit_log_", "asynchronous_connection_failover_", "mysql_firewall_", "keyring_", "version_tokens_", "service_"} {
		if len(name) > len(p) && strings.HasPrefix(name, p) {
			return true
		}
	}
	return steering[name]
}

// steering are further functions that change the server.
var steering = setOf("sys_exec", "sys_eval", "sys_set", "set_masking_dictionary", "gen_dictionary_load", "gen_dictionary_drop",
	"mysql_query_attribute_string_set", "flush_rewrite_rules", "load_rewrite_rules", "rotate_system_key")

// writers are the server's functions that do more than read.
var writers = setOf("get_lock", "release_lock", "release_all_locks", "sleep", "benchmark", "load_file", "nextval", "lastval", "setval",
	"last_insert_id", "master_pos_wait", "source_pos_wait", "master_gtid_wait", "wait_for_executed_gtid_set", "wait_until_sql_thread_after_gtids",
	"lib_mysqludf_sys_info")
