package keep

import (
	"errors"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/avail/group"
)

// TestElsewhere: a server is in one group only, whatever it is called.
func TestElsewhere(t *testing.T) {
	ctx := t.Context()
	r := testRoom(t)
	of := func(name, address string) *group.Group {
		return &group.Group{Name: name, Members: []group.Member{{Name: "m", Address: address}}}
	}
	for name, address := range map[string]string{"a": "127.0.0.1:3306", "b": "nowhere.invalid:3306", "c": "localhost:3310"} {
		if err := r.Add(ctx, of(name, address), Access{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, address, says string }{
		{"x", "127.0.0.1:3306", "is a member of the group a: "},
		{"x", "localhost:3306", "is a member of the group a as 127.0.0.1:3306"},
		{"x", "LOCALHOST:3310", "is a member of the group c: "},
		{"x", "127.0.0.1:3310", "is a member of the group c as localhost:3310"},
		{"x", "localhost:3307", ""},
		{"x", "Nowhere.invalid:3306", "is a member of the group b: "},
		{"x", "elsewhere.invalid:3306", ""},
		{"a", "localhost:3306", ""},
	} {
		err := r.Elsewhere(ctx, of(c.name, c.address))
		if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, ErrElsewhere) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s in %s: %v, want %q", c.address, c.name, err, c.says)
		}
	}
}
