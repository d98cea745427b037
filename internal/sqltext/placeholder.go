package sqltext

// HasPlaceholders reports whether a statement has ? for values that are not in it, as the text of a prepared statement has. Those
// within strings, quoted names and comments are none.
func HasPlaceholders(stmt []byte) bool {
	for i := 0; i < len(stmt); {
		switch classOf[stmt[i]] {
		case clQuote, clTick:
			i = stringEnd(stmt, i)
			continue
		case clSlash, clHash, clSign:
			if end, ok := commentEnd(stmt, i); ok {
				i = end
				continue
			}
		}
		if stmt[i] == '?' {
			return true
		}
		i++
	}
	return false
}
