package web

import (
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// How often a password may be wrong.
const (
	freeTries      = 5   // by one browser, or for one user from one address: then each takes longer
	freeOfAddress  = 20  // from one address, whoever is named
	hourlyOfUser   = 100 // of one user by browsers that are not known, within an hour
	longestWait    = 15 * time.Minute
	forgottenAfter = time.Hour
	mostCounted    = 20_000 // of what is counted at once; the oldest is forgotten
)

// guesses counts failed sign-ins, and says who has to wait. Nobody can lock somebody else out for good: a browser that has signed in before is counted by
// itself, and what is known of others does not matter to it. It is kept in memory: a guesser cannot restart Risso, and cannot fill the disk.
type guesses struct {
	mu   sync.Mutex
	now  func() time.Time
	kept map[string]*tries
}

// tries are those by one key.
type tries struct {
	failed      int
	first, last time.Time
}

// guess is one attempt.
type guess struct {
	user, address string
	device        string // of a browser that has signed in before; empty: it has not
}

// keys are what a guess counts for, each with how many are free.
func (g guess) keys() map[string]int {
	if g.device != "" {
		return map[string]int{"device " + g.device + " " + g.user: freeTries}
	}
	net := network(g.address)
	return map[string]int{"pair " + net + " " + g.user: freeTries, "address " + net: freeOfAddress, "user " + g.user: hourlyOfUser}
}

// network is what one client can choose addresses from.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	p, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return address
	}
	return p.String()
}

// take counts a guess as failed before it is tried, so that many at once are no way around it; or says how long to wait.
func (g *guesses) take(x guess) (wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	keys := x.keys()
	for key, free := range keys {
		wait = max(wait, g.waits(key, free, now))
	}
	if wait > 0 {
		return wait
	}
	for key := range keys {
		t := g.kept[key]
		if t == nil {
			g.makeRoom(now)
			t = &tries{first: now}
			g.kept[key] = t
		}
		t.failed++
		t.last = now
	}
	return 0
}

// waits is how long a key has to wait. A clock that goes back makes nobody wait longer.
func (g *guesses) waits(key string, free int, now time.Time) time.Duration {
	t := g.kept[key]
	if t == nil {
		return 0
	}
	if free == hourlyOfUser {
		if d := now.Sub(t.first); d >= forgottenAfter || d < 0 {
			delete(g.kept, key)
		} else if t.failed >= free {
			return min(forgottenAfter-d, longestWait)
		}
		return 0
	}
	since := now.Sub(t.last)
	if since >= forgottenAfter {
		delete(g.kept, key)
		return 0
	}
	if t.failed < free {
		return 0
	}
	pause := min(time.Second<<min(t.failed-free, 20), longestWait)
	return min(max(pause-since, 0), pause)
}

// makeRoom forgets what is old, and the oldest if there is too much.
func (g *guesses) makeRoom(now time.Time) {
	if len(g.kept) < mostCounted {
		return
	}
	oldest, at := "", now
	for key, t := range g.kept {
		if now.Sub(t.last) >= forgottenAfter {
			delete(g.kept, key)
		} else if !t.last.After(at) {
			oldest, at = key, t.last
		}
	}
	if len(g.kept) >= mostCounted {
		delete(g.kept, oldest)
	}
}

// right takes a guess back that was no wrong one, and forgets the mistyped ones before it.
func (g *guesses) right(x guess) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, free := range x.keys() {
		t := g.kept[key]
		switch {
		case t == nil:
		case free == freeTries:
			delete(g.kept, key)
		case t.failed > 1:
			t.failed-- // others guess from there, or this user
		default:
			delete(g.kept, key)
		}
	}
}

// refusals limits how often is written down what was refused: a guesser cannot fill the disk, nor hide what else happens.
type refusals struct {
	mu    sync.Mutex
	now   func() time.Time
	since time.Time
	told  map[string]int // how often in this minute
	left  map[string]int // how many were not told, in the minutes before
}

// mostRefusals is how many are written down in a minute, each of another kind or by another one.
const mostRefusals = 30

// take reports whether one is to be told, and with what added.
func (f *refusals) take(key string) (more string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); now.Sub(f.since) >= time.Minute || now.Before(f.since) {
		for k, n := range f.told {
			if n > 1 && len(f.left) < mostCounted {
				f.left[k] += n - 1
			}
		}
		f.since, f.told = now, map[string]int{}
	}
	if len(f.told) >= mostRefusals && f.told[key] == 0 {
		key = "others" // their number is told when there is quiet
	}
	f.told[key]++
	if f.told[key] > 1 || key == "others" {
		return "", false
	}
	if n := f.left[key] + f.left["others"]; n > 0 {
		delete(f.left, key)
		delete(f.left, "others")
		return fmt.Sprintf(" (%d more were refused before, and not written down)", n), true
	}
	return "", true
}
