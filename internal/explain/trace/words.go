package trace

// Statement is the text of a statement in one line, redacted on request.
func Statement(sql string, redact bool) string { return oneLine(sql) }
