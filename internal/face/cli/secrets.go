package cli

import (
	"strings"
	"unsafe"
)

// WipePasswords blanks the passwords that stand in args, in place, so that the process list does not show
// them. The strings of os.Args lie in the memory that the kernel shows as /proc/PID/cmdline, so whoever
// keeps a value must have cloned it before. It gives copies of all args, for the parser.
func WipePasswords(args []string) []string {
	safe := make([]string, len(args))
	for i, a := range args {
		safe[i] = strings.Clone(a)
		start, end, ok := passwordSpan(a)
		if !ok {
			continue
		}
		b := unsafe.Slice(unsafe.StringData(a), len(a))
		for j := start; j < end; j++ {
			b[j] = '*'
		}
	}
	return safe
}

// passwordSpan finds the password in an argument that looks like a DSN: between the first colon behind the
// user and the last @ before the address.
func passwordSpan(arg string) (start, end int, ok bool) {
	from := 0
	if strings.HasPrefix(arg, "--") {
		eq := strings.IndexByte(arg, '=')
		if eq < 0 {
			return 0, 0, false
		}
		from = eq + 1
	}
	for _, scheme := range []string{"clickhouse://", "http://", "https://"} { // of --events-url
		if strings.HasPrefix(arg[from:], scheme) {
			from += len(scheme)
		}
	}
	rest := arg[from:]
	slash := strings.LastIndexByte(rest, '/')
	if slash < 0 { // no DSN, but somebody may have meant it as one
		slash = len(rest)
	}
	at := strings.LastIndexByte(rest[:slash], '@')
	if open := strings.LastIndexByte(rest[:slash], '('); open >= 0 {
		at = strings.LastIndexByte(rest[:open], '@')
	}
	if at < 0 {
		return 0, 0, false
	}
	colon := strings.IndexByte(rest[:at], ':')
	if colon < 0 {
		return 0, 0, false
	}
	return from + colon + 1, from + at, colon+1 < at
}
