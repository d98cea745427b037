package sqltext

import "bytes"

// Redact appends stmt to dst without its values: each literal becomes ?, comments are left out (what stands in one is
// anyone's guess), and a statement that sets a password is cut after the word that announces it. All else stays as it
// was written, so that the statement can still be read, and explained where ? may stand.
func Redact(dst, stmt []byte) []byte {
	sc := scanner{s: stmt}
	cut := passwordAt(stmt)
	last := 0 // what was copied up to
	for {
		t := sc.next()
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
			dst = append(dst, sc.text(t)...)
		}
		last = t.end
	}
}

// appendGap appends what stands between two tokens without its comments: its blanks, and the marks of executable
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

// SetsPassword tells whether a statement sets or carries a password: CREATE or ALTER USER … IDENTIFIED,
// GRANT … IDENTIFIED, SET PASSWORD, PASSWORD(…), CHANGE MASTER and CHANGE REPLICATION SOURCE … PASSWORD,
// START REPLICA and START GROUP_REPLICATION … PASSWORD, CREATE SERVER … PASSWORD, USING PASSWORD, and the like.
// It looks into executable comments, and says yes in doubt.
func SetsPassword(stmt []byte) bool { return passwordAt(stmt) >= 0 }

// passwordAt gives the place after the word that announces a password, or -1.
func passwordAt(stmt []byte) int {
	if !mayHold(stmt) {
		return -1
	}
	sc := scanner{s: stmt}
	verb := ""
	for t := sc.next(); t.kind != tkEnd; t = sc.next() {
		if t.kind != tkWord {
			continue
		}
		w := string(bytes.ToLower(sc.text(t)))
		if verb == "" {
			verb = w
		}
		switch w {
		case "identified", "old_password":
			return t.end
		case "password", "master_password", "source_password":
			return t.end
		}
	}
	return -1
}

// mayHold tells cheaply whether the words of a password can be in stmt.
func mayHold(stmt []byte) bool {
	for i := 0; i+8 <= len(stmt); i++ {
		if c := stmt[i] | 0x20; c == 'p' && equalFold(stmt[i:i+8], "password") || c == 'i' && i+10 <= len(stmt) && equalFold(stmt[i:i+10], "identified") {
			return true
		}
	}
	return false
}
