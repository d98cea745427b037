package digest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestTornEnd cuts a log at each of its bytes: either all that was read is whole, or the profile says that something is missing, and
// no class is made of what the server writes before a statement.
func TestTornEnd(t *testing.T) {
	event := func(n int) string {
		return fmt.Sprintf("# Time: 2026-11-23T10:00:0%[1]d.000000Z\n# User@Host: shop[shop] @ web1 [10.0.0.1]  Id:     7\n"+
			"# Query_time: 0.5  Lock_time: 0.0  Rows_sent: 1  Rows_examined: 100\nuse shop;\nSET timestamp=176389200%[1]d;\nSELECT a,\nb FROM t%[1]d WHERE c = 'x';\n", n)
	}
	first := event(1)
	log := first + event(2)
	for n := len(first); n <= len(log); n++ {
		text := log[:n]
		p := digest(t, Options{}, []byte(text))
		rest := text[len(first):]
		whole := rest == "" || strings.HasSuffix(strings.TrimRight(rest, "\n"), "'x';")
		if got := p.Lost() == ""; got != whole {
			t.Errorf("cut behind %q: got whole %v, want %v: %s, %d calls", tailOf(rest), got, whole, p.Lost(), p.Calls)
		}
		for _, c := range p.Classes {
			if f := c.Fingerprint; f == "" || strings.HasPrefix(f, "set") || strings.HasPrefix(f, "use") {
				t.Errorf("cut behind %q: a class %q; want f not \"\", strings.HasPrefix(f, \"set\") false, strings.HasPrefix(f, \"use\") false", tailOf(rest), f)
			}
		}
	}
}

func tailOf(s string) string { return s[max(0, len(s)-20):] }

// TestOrderWithoutFigure: the sum is what an attribute alone means, also where it is shown; one that no event has is wrong use.
func TestOrderWithoutFigure(t *testing.T) {
	log := []byte("# Time: 2026-11-23T10:00:01.000000Z\n# User@Host: shop[shop] @ web1 [10.0.0.1]  Id:     7\n# Query_time: 0.5  Lock_time: 0.0  Rows_sent: 1  Rows_examined: 100\nSET timestamp=1763892001;\nSELECT 1;\n")
	if p := digest(t, Options{OrderBy: "Rows_examined"}, log); p.OrderBy != "Rows_examined:sum" || p.Lost() != "" {
		t.Errorf("got %q, want Rows_examined:sum", p.OrderBy)
	}
	_, err := Run(t.Context(), Options{OrderBy: "Rows_examind:max"}, Reader("test", bytes.NewReader(log)))
	if want := `cannot order by "Rows_examind": no event has a number of that name; there are `; !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Rows_examined") {
		t.Errorf("got %v, want %s…Rows_examined…", err, want)
	}
}
