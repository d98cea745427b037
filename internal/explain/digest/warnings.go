package digest

import "bytes"

// isWarning recognizes the lines that MariaDB writes with log_slow_verbosity=warnings: "# Warnings", and then one for each, such as
// "# Warning 1062 Duplicate entry" or "# Note 1050 Table exists".
func isWarning(b []byte, i int) bool {
	line := b[i:lineEnd(b, i)]
	word, rest, _ := bytes.Cut(bytes.TrimPrefix(bytes.TrimRight(line, "\r\n"), []byte("# ")), []byte(" "))
	switch string(word) {
	case "Warnings":
		return len(rest) == 0
	case "Warning", "Note", "Error":
		return len(rest) > 0 && rest[0]-'0' <= 9
	}
	return false
}
