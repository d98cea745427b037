package home

import (
	"strings"
	"testing"
)

// TestPerson: who gives a command is named with the account he came from and the host, in one line.
func TestPerson(t *testing.T) {
	for _, c := range []struct{ account, was, host, want string }{
		{"root", "", "db1", "root on db1"}, {"root", "ann", "db1", "ann as root on db1"}, {"ann", "ann", "db1", "ann on db1"}, {"root", "a b\n", "h\x1b[m", "a_b_ as root on h_[m"},
	} {
		if got := personName(c.account, c.was, c.host); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if p := Person(); !strings.Contains(p, " on ") {
		t.Errorf("got %q, want somebody on a host", p)
	}
}
