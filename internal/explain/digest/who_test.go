package digest

import (
	"fmt"
	"testing"
)

// TestWho holds what is remembered of lines that differ in their last bytes only, or have odd names, against the lines.
func TestWho(t *testing.T) {
	var lines []string
	for i := range 40 {
		lines = append(lines, fmt.Sprintf("application[application] @ front-end-of-shop [10.20.30.%d]", i))
	}
	lines = append(lines, "a]b[c] @ host [1.2.3.4]", "a]b[d] @ host [1.2.3.4]", "[SQL_SLAVE] @ db []", "r[r] @ localhost []", "x[]")
	var p slowParser
	var ev raw
	for _, line := range lines {
		b := []byte(line + "  Id: 7\n# Query_time: 1\n")
		p.remember(b, 0, len(line), &ev)
	}
	for _, line := range lines {
		b := []byte(line + "  Id: 8\n# Query_time: 2\n")
		e := p.who(b, 0)
		if line == "x[]" { // has no second ]: nothing shows where it ends
			if e != nil {
				t.Errorf("%q is remembered as %q, want e nil", line, e.text)
			}
			continue
		}
		if e == nil || e.text != line {
			t.Errorf("%q is remembered as %+v; want e not nil, text %v", line, e, line)
		}
		if p.who(b[:len(line)], 0) != nil {
			t.Errorf("%q is found where nothing follows it, want p.who(b[:len(line)], 0) nil", line)
		}
		if n := len(line) - 2; p.who(append([]byte(line[:n]), "x] Id: 1 and more"...), 0) != nil {
			t.Errorf("%q is found where another line stands, want p.who(append([]byte(line[:n]), \"x] Id: 1 and more\"...), 0) nil", line)
		}
	}
}
