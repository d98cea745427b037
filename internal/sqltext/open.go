package sqltext

// OpenAt is where the string, quoted identifier or comment begins in which a text ends, or -1.
func OpenAt(s []byte) int {
	for i := 0; i < len(s); {
		switch s[i] {
		case '\'', '"', '`':
			esc := byte('\\')
			if s[i] == '`' {
				esc = '`'
			}
			end, closed := quoteEnd(s, i, esc)
			if !closed {
				return i
			}
			i = end
		case '#', '-', '/':
			end, comment := commentEnd(s, i)
			if !comment {
				i++
				continue
			}
			if end == len(s) && s[i] == '/' && (end < i+4 || s[end-2] != '*' || s[end-1] != '/') {
				return i
			}
			i = end
		default:
			i++
		}
	}
	return -1
}

// CloseAt is the place after the end of what quote opened, a quote or the / of a comment, in a text that begins within it, or -1.
func CloseAt(s []byte, quote byte) int {
	if quote == '/' {
		if end := blockEnd(s, 0); end >= 2 && end <= len(s) && s[end-2] == '*' && s[end-1] == '/' {
			return end
		}
		return -1
	}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quote != '`', s[i] == quote && i+1 < len(s) && s[i+1] == quote:
			i++
		case s[i] == quote:
			return i + 1
		}
	}
	return -1
}
