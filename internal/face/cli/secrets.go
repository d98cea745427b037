package cli

import (
	"strings"
	"unsafe"

	"github.com/rissodb/risso/internal/pattern"
)

// WipePasswords blanks the passwords in args, in place, so that the process list does not show
// them. The strings of os.Args are in the memory that the kernel shows as /proc/PID/cmdline, so code that
// keeps a value must have cloned it before. It returns copies of all args, for the parser.
func WipePasswords(args []string) []string {
	safe := make([]string, len(args))
	for i, a := range args {
		safe[i] = strings.Clone(a)
		for _, s := range secretSpans(a) {
			b := unsafe.Slice(unsafe.StringData(a), len(a))
			for j := s[0]; j < s[1]; j++ {
				b[j] = '*'
			}
		}
	}
	return safe
}

// passwordValue finds a password by its name: an option, as sysbench has it, or a parameter of an address.
var passwordValue = pattern.Lazy(`(?i)^--[a-z_-]*password=(.+)|[?&](?:ssl)?password=([^&]+)`)

// secretSpans finds all passwords in an argument. None of them begins it.
func secretSpans(arg string) (spans [][2]int) {
	if start, end, ok := passwordSpan(arg); ok {
		spans = append(spans, [2]int{start, end})
	}
	for _, m := range passwordValue().FindAllStringSubmatchIndex(arg, -1) {
		for g := 2; g < len(m); g += 2 {
			if m[g] >= 0 {
				spans = append(spans, [2]int{m[g], m[g+1]})
			}
		}
	}
	return spans
}

// passwordSpan finds the password in an argument that looks like a DSN: between the first colon after the
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
