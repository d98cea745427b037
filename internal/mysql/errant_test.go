package mysql

import (
	"strings"
	"testing"
)

// TestErrantTransactions: what a replica has had and its sources have not.
func TestErrantTransactions(t *testing.T) {
	names := strings.NewReplacer("A", uuidA, "B", uuidB)
	for _, c := range []struct{ replica, source, want, has, hasNot string }{
		{"A:1-9", "A:1-9", "", "", "A:1"}, {"A:1-9,B:1-2", "A:1-12", "B:1-2", "B:2", "A:9"}, {"A:1-9", "", "", "", "A:9"}, {"", "A:1", "", "", "A:1"}, {"A:1-9", "A:1-4|A:6-9", "A:5", "A:5", "A:6"},
		{"A:1-9", "0-1-5", "", "", "A:9"}, {"0-1-5", "A:1", "", "", "0-1-5"},
		{"0-1-10", "0-1-10", "", "", "0-1-10"}, {"0-1-9,0-2-8", "0-1-10,0-2-8", "", "", "0-2-8"}, {"0-1-9,0-2-11", "0-1-10", "0-2-11", "0-2-11", "0-1-9"}, {"0-1-11", "0-1-10", "0-1-11", "0-1-11", "0-1-10"},
		{"", "0-1-10", "", "", "0-1-10"}, {"7-1-1", "0-1-10", "7-1-1", "7-1-1", "0-1-1"}, {"0-1-9,0-2-9", "0-1-9|0-2-7", "0-2-9", "0-2-8", "0-2-7"}, {"0-1-9", "", "", "", "0-1-9"},
		{"0-2-10", "0-1-10", "0-2-10", "0-2-10", "0-1-10"}, // the same number under another server_id
	} {
		got, err := ErrantTransactions(names.Replace(c.replica), strings.Split(names.Replace(c.source), "|")...)
		if err != nil || got.String() != names.Replace(c.want) || got.Empty() != (c.want == "") {
			t.Errorf("%s beside %s: got %s, %v, want %s", c.replica, c.source, got, err, c.want)
		}
		for text, want := range map[string]bool{c.has: true, c.hasNot: false} {
			if g, _ := ParseGTID(names.Replace(text)); got.Contains(g) != want && text != "" {
				t.Errorf("%s beside %s: %s is in it: %v, want %v", c.replica, c.source, text, !want, want)
			}
		}
	}
	for _, bad := range [][2]string{{"x", "A:1"}, {"A:1", "x"}, {"0-1-1", "0-1"}} {
		if _, err := ErrantTransactions(names.Replace(bad[0]), names.Replace(bad[1])); err == nil {
			t.Errorf("%s beside %s: got no error", bad[0], bad[1])
		}
	}
}

// TestErrantParts: by origin, what is left without it, and when two are the same.
func TestErrantParts(t *testing.T) {
	names := strings.NewReplacer("A", uuidA, "B", uuidB)
	e, err := ErrantTransactions(names.Replace("A:1-9:tag:1,B:1"), names.Replace("A:1-7"))
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := e.Split(func(uuid string, _ uint32) bool { return uuid == uuidA })
	if ours.String() != names.Replace("A:8-9:tag:1") || theirs.String() != names.Replace("B:1") {
		t.Errorf("got %s and %s", ours, theirs)
	}
	if again, _ := ErrantTransactions(names.Replace("A:1-9:tag:1,B:1"), names.Replace("A:1-6")); e.Equal(again) || !e.Equal(e) {
		t.Error("what is errant has changed and is taken for the same")
	}
	m, err := ErrantTransactions("0-1-100,0-2-103,1-2-4", "0-1-104,0-2-99")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ has, errant, position, want string }{ // errant is beyond its source
		{"0-1-100,0-2-103,1-2-4", "0-1-104,0-2-99", "0-1-100", "0-2-99,0-1-100"},
		{"0-2-103,0-1-100", "0-1-104,0-2-99", "", "0-2-99,0-1-100"},              // what was logged last stays last
		{"0-9-70,0-1-40,0-2-99", "0-9-70,0-1-40", "0-1-40", "0-9-70,0-1-40"},     // it is left out: where it stands as a replica comes last
		{"0-9-70,0-1-40,0-2-99", "0-9-70,0-1-40", "3-1-5", "0-1-40,0-9-70"},      // nor does that tell: the greatest one
		{"0-9-70,0-1-40", "0-9-70,0-1-40", "0-9-70", "0-9-70,0-1-40"},            // nothing is errant: the server's own order
		{"5-1-2,0-3-4,0-2-6", "0-3-4,5-1-9,0-2-5", "0-3-4", "0-2-5,0-3-4,5-1-2"}, // its origin has others that are not errant
	} {
		e, err := ErrantTransactions(c.has, c.errant)
		if got, rerr := e.Rest(c.has, c.position); err != nil || rerr != nil || got != c.want {
			t.Errorf("%s beside %s at %q: got %s, %v, %v, want %s", c.has, c.errant, c.position, got, err, rerr, c.want)
		}
	}
	if got, err := e.Rest(names.Replace("A:1-9:tag:1,B:1"), ""); err != nil || got != names.Replace("A:1-7") {
		t.Errorf("got %s, %v", got, err)
	}
	later, _ := ErrantTransactions("0-1-100,0-2-103,1-2-4", "0-1-190,0-2-99")
	other, _ := ErrantTransactions("0-1-100,0-2-103,1-2-4", "0-1-190,0-2-100")
	if !m.Equal(later) || m.Equal(other) {
		t.Errorf("got the same %v and %v, want only the first", m.Equal(later), m.Equal(other))
	}
	if s, err := ParseOwned(names.Replace("A:5#12:6#13,\nB:tag:1#7")); err != nil || s.String() != names.Replace("A:5-6,B:tag:1") {
		t.Errorf("gtid_owned: got %s, %v", s, err)
	}
}

// TestForgotten: what a server may have had before its log began is not missing there; what is beyond that, what its log knows of, and what the other wrote itself, is.
func TestForgotten(t *testing.T) {
	for _, c := range []struct{ has, state, position, server, want string }{
		{"0-9-500,0-1-9000", "0-1-9000", "0-1-8000", "1", ""},                 // of a primary of long ago
		{"0-9-8500,0-1-9000", "0-1-9000", "0-1-8000", "1", "0-9-8500"},        // beyond where it stood as a replica
		{"0-9-500,0-1-9000", "0-9-400,0-1-9000", "0-1-8000", "1", "0-9-500"},  // its log knows of that server
		{"0-3-500,0-1-9000", "0-1-9000", "0-1-8000", "3", "0-3-500"},          // written on the other itself
		{"1-9-500,0-1-9000", "0-1-9000", "0-1-8000", "1", "1-9-500"},          // a domain that it knows nothing of
		{"0-9-500,0-1-9000", "0-1-9000", "", "1", "0-9-500"},                  // it never replicated
		{"0-9-500,1-9-7,0-1-9000", "0-1-9000", "0-1-8000,1-1-8", "1", ""},     // in several domains
		{"0-9-500,0-1-9001", "0-1-9000", "0-1-8000", "1", "0-1-9001"},         // one is missing beside
		{uuidA + ":1-9", uuidA + ":1-8", uuidA + ":1-8", uuidA, uuidA + ":9"}, // MySQL keeps each of them
		{uuidA + ":1-9", uuidA + ":1-8", "", "7", uuidA + ":9"},               // also without a position
		{"0-9-500,0-1-9000", "0-1-9000", "0-1-80,0-2-600,0-1-9000", "1", ""},  // a state does as well as a position
	} {
		e, err := ErrantTransactions(c.has, c.state)
		if got := e.Forgotten(c.position, c.server).String(); err != nil || got != c.want {
			t.Errorf("%s beside %s, which is at %s: got %q, %v, want %q", c.has, c.state, c.position, got, err, c.want)
		}
	}
}

// TestUpTo: of a state that was read a little later than a position.
func TestUpTo(t *testing.T) {
	for _, c := range []struct{ state, position, want string }{
		{"0-9-500,0-2-7000,0-1-9020", "0-1-9000", "0-9-500,0-2-7000,0-1-9000"},
		{"0-9-500,0-1-9000,0-2-9010", "0-1-9000", "0-9-500,0-1-9000"}, // another one has begun to write since
		{"0-9-500,1-1-4", "0-9-500", "0-9-500"},                       // in a domain that is newer
		{"", "0-1-7", "0-1-7"}, {"0-1-7", "", ""},
	} {
		state, err := ParseBinlogState(c.state)
		position, perr := ParseBinlogState(c.position)
		if got := state.UpTo(position).String(); err != nil || perr != nil || got != c.want {
			t.Errorf("%s at %s: got %s, %v, %v, want %s", c.state, c.position, got, err, perr, c.want)
		}
	}
}
