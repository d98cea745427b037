package web

import (
	"fmt"
	"testing"
	"time"
)

// TestGuesses: how many guesses a guesser has, and whom they keep out.
func TestGuesses(t *testing.T) {
	now := time.Unix(1795478400, 0)
	g := &guesses{now: func() time.Time { return now }, kept: map[string]*tries{}}
	hammer := func(x guess, span, step time.Duration) (tried int) {
		for end := now.Add(span); now.Before(end); now = now.Add(step) {
			if g.take(x) == 0 {
				tried++
			}
		}
		return tried
	}
	ann := guess{user: "ann", address: "192.0.2.1"}
	if n := hammer(ann, time.Hour, time.Second); n > 20 || n < freeTries {
		t.Errorf("%d guesses in an hour by one, want at most 20", n)
	}
	for _, x := range []guess{{user: "ann", address: "192.0.2.2"}, {user: "bob", address: "192.0.2.3"}, {user: "ann", address: "192.0.2.1", device: "hers"}} {
		if wait := g.take(x); wait != 0 {
			t.Errorf("%+v waits %s for another's guesses", x, wait)
		}
	}
	if wait := g.take(ann); wait == 0 || wait > longestWait {
		t.Errorf("the guesser waits %s; want up to %s", wait, longestWait)
	}
	now = now.Add(-24 * time.Hour)
	if wait := g.take(ann); wait > longestWait {
		t.Errorf("after the clock went back: %s; want at most %s", wait, longestWait)
	}
	now = now.Add(48 * time.Hour)
	if wait := g.take(ann); wait != 0 {
		t.Errorf("two days later: %s, want none", wait)
	}
	all := 0
	for i := range 1000 {
		all += hammer(guess{user: "ann", address: fmt.Sprintf("198.51.%d.%d", i/250, i%250)}, 2*time.Second, time.Second)
	}
	if all > hourlyOfUser {
		t.Errorf("%d guesses in half an hour from a thousand addresses, want at most %d", all, hourlyOfUser)
	}
	if wait := g.take(guess{user: "ann", device: "hers"}); wait != 0 {
		t.Errorf("she waits %s in her own browser", wait)
	}
	now = now.Add(2 * time.Hour)
	each := 0
	for i := range 50 {
		each += hammer(guess{user: fmt.Sprint("user", i), address: fmt.Sprintf("2001:db8::%x", i)}, time.Second, time.Second)
	}
	if each > freeOfAddress+6 {
		t.Errorf("%d guesses at fifty users from one network, want about %d", each, freeOfAddress)
	}
	for range freeTries {
		x := guess{user: "kim", address: "203.0.113.9"}
		for range 2 {
			if g.take(x) != 0 {
				t.Fatal("two tries are not free")
			}
		}
		g.right(x)
	}
	for i := range mostCounted + 100 {
		g.take(guess{user: "u", address: fmt.Sprint("a", i)})
	}
	if len(g.kept) > mostCounted+3 {
		t.Errorf("%d are counted at once, want at most %d", len(g.kept), mostCounted)
	}
}

// TestRefusals: what is refused all the time is written down once a minute, with how often.
func TestRefusals(t *testing.T) {
	now := time.Unix(1795478400, 0)
	f := &refusals{now: func() time.Time { return now }, left: map[string]int{}}
	told := func(key string, times int) (n int, more string) {
		for range times {
			if m, ok := f.take(key); ok {
				n++
				more += m
			}
		}
		return n, more
	}
	if n, more := told("a", 100); n != 1 || more != "" {
		t.Errorf("got %d, %q; want once, without more", n, more)
	}
	if n, _ := told("b", 2); n != 1 {
		t.Errorf("another one: got %d, want once", n)
	}
	now = now.Add(time.Minute)
	if n, more := told("a", 1); n != 1 || more != " (99 more were refused before, and not written down)" {
		t.Errorf("got %d, %q; want once, with 99 more", n, more)
	}
	n := 0
	for i := range 1000 {
		k, _ := told(fmt.Sprint("key ", i), 1)
		n += k
	}
	if n > mostRefusals {
		t.Errorf("%d of a thousand others in a minute, want at most %d", n, mostRefusals)
	}
	now = now.Add(time.Minute)
	if n, more := told("c", 1); n != 1 || more == "" {
		t.Errorf("got %d, %q; want it told how many others there were", n, more)
	}
}
