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
