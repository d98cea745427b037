package mysql

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// failingWriter takes some bytes.
type failingWriter struct{ left int }

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errors.New("full")
	}
	return len(b), nil
}

// TestGTIDSetLarge: sets so large that processors share the work are read and written as small ones are.
func TestGTIDSetLarge(t *testing.T) {
	const count = 150_000
	var ordered, reversed, odd, want strings.Builder
	for _, b := range []*strings.Builder{&ordered, &reversed, &odd, &want} {
		b.WriteString(uuidA)
	}
	for i := range count {
		fmt.Fprintf(&ordered, ":%d-%d:%d", i*10+1, i*10+3, i*10+4) // two that touch
		fmt.Fprintf(&reversed, ":%d-%d", (count-1-i)*10+1, (count-1-i)*10+4)
		fmt.Fprintf(&odd, ":%d -%d", i*10+1, i*10+4) // only some servers take this
		fmt.Fprintf(&want, ":%d-%d", i*10+1, i*10+4)
	}
	for what, text := range map[string]string{"in order": ordered.String(), "from the end": reversed.String(), "with blanks": odd.String(), "twice": ordered.String() + "," + reversed.String(), "with a tag": ordered.String() + ":t:1"} {
		s, err := ParseGTIDSet(text)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		wanted := want.String()
		if what == "with a tag" {
			wanted += ":t:1"
		}
		if got := s.String(); got != wanted || s.Count() < 4*count {
			t.Errorf("%s: got %d bytes, %d transactions, want %d bytes", what, len(got), s.Count(), len(wanted))
		}
		rest := s.Subtract(set(t, "A:2")).String()
		if !strings.HasPrefix(rest, uuidA+":1:3-4:11-14:") {
			t.Errorf("%s: without one: got %.80s", what, rest)
		}
		for _, room := range []int{0, 100_000} {
			if err := s.Write(&failingWriter{room}); err == nil {
				t.Errorf("%s: written where there is room for %d bytes: got no error", what, room)
			}
		}
	}
	for _, bad := range []string{ordered.String() + ":x-", ordered.String() + ":7-3", ordered.String() + ":", strings.Replace(ordered.String(), ":1-3:", ":0-3:", 1)} {
		if _, err := ParseGTIDSet(bad); !errors.Is(err, ErrGTID) {
			t.Errorf("%s…: got %v, want ErrGTID", bad[len(bad)-20:], err)
		}
	}
}

// TestGTIDSubtractLarge: what processors share is right where their parts meet, for sets that overlap in all ways.
func TestGTIDSubtractLarge(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 2026))
	large := func(step uint64) (s GTIDSet) {
		at := uint64(1)
		for range 120_000 {
			at += 1 + random.Uint64N(step)
			to := at + random.Uint64N(step)
			s.AddRange(uuidA, at, to)
			at = to + 1
		}
		return s
	}
	for _, steps := range [][2]uint64{{3, 3}, {2, 40}, {40, 2}} {
		a, b := large(steps[0]), large(steps[1])
		middle := a.sources[uuidA][len(a.sources[uuidA])/2]
		for range 2 {
			rest, common := a.Subtract(b), a.Intersect(b)
			if rest.Count()+common.Count() != a.Count() || !rest.Intersect(b).Empty() || !rest.Union(common).Equal(a) {
				t.Errorf("steps %v: %d transactions without %d: got %d and %d in common of %d", steps, a.Count(), b.Count(), rest.Count(), common.Count(), a.Count())
			}
			b.AddRange(uuidA, middle.from-min(1000, middle.from-1), middle.to+1000) // over the place where the parts meet
		}
	}
}
