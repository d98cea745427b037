package sqltext

import "bytes"

// Redact appends stmt to dst without its values: each literal becomes ?, comments are left out (what is in one is
// anyone's guess), and a statement that sets a password is cut after the word that announces it. All else stays as it
// was written, so that the statement can still be read, and explained where ? is allowed.
func Redact(dst, stmt []byte) []byte {
	lx := lexer{s: stmt}
	_, cut := passwordAt(stmt)
	last := 0 // what was copied up to
	for {
		t := lx.next()
		gap := stmt[last:min(t.start, len(stmt))]
		dst = appendGap(dst, gap)
		if t.kind == tkEnd {
			return dst
		}
		if cut >= 0 && t.start >= cut {
			return append(dst, "..."...)
		}
		switch t.kind {
		case tkString, tkNumber:
			dst = append(dst, '?')
		default:
			dst = append(dst, lx.text(t)...)
		}
		last = t.end
	}
}

// appendGap appends what is between two tokens without its comments: its blanks, and the marks of executable
// comments.
func appendGap(dst, gap []byte) []byte {
	for i := 0; i < len(gap); {
		c := gap[i]
		switch {
		case isSpace(c):
			dst = append(dst, c)
			i++
		case c == '*': // only the end of an executable comment is between tokens
			dst = append(dst, "*/"...)
			i += 2
		default:
			end, ok := commentEnd(gap, i)
			if ok {
				if len(dst) > 0 && !isSpace(dst[len(dst)-1]) {
					dst = append(dst, ' ')
				}
			} else {
				end = execEnd(gap, i)
				if end == 0 {
					end = i + 1
				}
				dst = append(dst, gap[i:end]...)
			}
			i = end
		}
	}
	return dst
}

// SetsPassword reports whether a statement sets or carries a password: CREATE or ALTER USER … IDENTIFIED,
// GRANT … IDENTIFIED, SET PASSWORD, PASSWORD(…), CHANGE MASTER and CHANGE REPLICATION SOURCE … PASSWORD,
// START REPLICA and START GROUP_REPLICATION … PASSWORD, CREATE SERVER … PASSWORD, IDENTIFIED … USING PASSWORD, the
// CONNECTION of a federated table, wsrep_sst_auth; and any statement on a column called password, whose value is a
// secret as well. It looks into executable comments and into strings, which may be statements to be prepared, and says
// yes in doubt.
func SetsPassword(stmt []byte) bool {
	found, _ := passwordAt(stmt)
	return found
}

// passwordAt reports whether stmt carries a password, and after which place Redact cuts it off; -1: nowhere, it hides
// literals only.
func passwordAt(stmt []byte) (found bool, cut int) {
	if !mayHold(stmt) {
		return false, -1
	}
	lx := lexer{s: stmt}
	query, first := false, true // a statement on tables is not cut: without its literals it has no secret
	for t := lx.next(); t.kind != tkEnd; t = lx.next() {
		switch t.kind {
		case tkString:
			found = found || mayHold(lx.text(t))
			continue
		case tkWord, tkTick:
		default:
			continue
		}
		w := string(bytes.ToLower(unquote(lx.text(t))))
		if first {
			first = false
			switch w {
			case "select", "insert", "replace", "update", "delete", "with", "table", "values", "explain", "call", "load":
				query = true
			}
		}
		if !announces[w] {
			continue
		}
		if found = true; !query {
			return true, t.end
		}
	}
	return found, -1
}

// announces holds the words after which a password comes.
var announces = setOf("identified", "password", "old_password", "passwd", "pwd", "master_password", "source_password", "connection",
	"authentication_string", "wsrep_sst_auth", "user_password", "password_hash")

// mayHold tells cheaply whether one of the words that announce a password can be in stmt.
func mayHold(stmt []byte) bool {
	for i := 0; i+3 <= len(stmt); i++ {
		rest := stmt[i:]
		switch stmt[i] | 0x20 {
		case 'p':
			if rest[1]|0x20 == 'w' && rest[2]|0x20 == 'd' || len(rest) >= 6 && equalFold(rest[:5], "passw") {
				return true
			}
		case 'i':
			if len(rest) >= 10 && equalFold(rest[:10], "identified") {
				return true
			}
		case 'c':
			if len(rest) >= 10 && equalFold(rest[:10], "connection") {
				return true
			}
		case 'a':
			if len(rest) >= 21 && equalFold(rest[:21], "authentication_string") {
				return true
			}
		case 'w':
			if len(rest) >= 14 && equalFold(rest[:14], "wsrep_sst_auth") {
				return true
			}
		}
	}
	return false
}
