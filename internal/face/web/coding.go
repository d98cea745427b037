package web

import (
	"net/http"
	"strconv"
	"strings"
)

// takesGzip reports whether a client takes an answer that gzip has packed (RFC 9110, 12.5.3): it names gzip or all codings, with a
// weight above 0. What it says about gzip counts more than what it says about all. A weight that is no number is one of 0.
func takesGzip(r *http.Request) bool {
	named, all := -1.0, 0.0 // negative: not named
	for item := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, params, _ := strings.Cut(item, ";")
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			named = max(named, weight(params))
		case "*":
			all = weight(params)
		}
	}
	if named >= 0 {
		return named > 0
	}
	return all > 0
}

// weight reads the q among the parameters of a coding; without one it is 1.
func weight(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(param, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		if q, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && q > 0 && q <= 1 {
			return q
		}
		return 0
	}
	return 1
}
