package blockers

import (
	"cmp"
	"slices"

	"github.com/rissodb/risso/internal/mysql/read"
)

// Root is a session that waits for nobody itself and keeps others waiting.
type Root struct {
	Wait    read.LockWait // the wait for it that says most: one for a lock that it holds rather than wants
	Waiters []int64       // the connections that wait for it, or for who waits for it, in ascending order
	Alike   int           // how many of these wait for a lock of the same kind as that of Wait
}

// Roots finds the sessions at the root of the waits, those with the most waiters first. A deadlock that the server does not see, such as
// one between a lock of InnoDB and one of the server, has no root: there its member with the lowest connection stands for it.
//
// Servers do not say who uses the tables that FLUSH TABLES waits for: if only one session can be meant, it is that one. Behind it wait all
// that came after the flush, as long as it runs, even when the flush is given up.
func Roots(list []read.LockWait) []Root {
	blockers := map[int64][]read.LockWait{} // by waiter
	waits := map[int64]read.LockWait{}      // by blocker
	for _, w := range list {
		blockers[w.Waiter] = append(blockers[w.Waiter], w)
		if old, ok := waits[w.Blocker.ID]; !ok || rank(w) < rank(old) {
			waits[w.Blocker.ID] = w
		}
	}
	waiters := map[int64][]int64{} // by root
	for waiter := range blockers {
		for _, root := range rootsOf(waiter, blockers) {
			waiters[root] = append(waiters[root], waiter)
		}
	}
	var out []Root
	for id, by := range waiters {
		slices.Sort(by)
		root := Root{Wait: waits[id], Waiters: by}
		for _, waiter := range by {
			if slices.ContainsFunc(blockers[waiter], func(w read.LockWait) bool { return w.Kind == root.Wait.Kind }) {
				root.Alike++
			}
		}
		out = append(out, root)
	}
	slices.SortFunc(out, func(a, b Root) int {
		return cmp.Or(cmp.Compare(rank(a.Wait), rank(b.Wait)), cmp.Compare(len(b.Waiters), len(a.Waiters)), cmp.Compare(a.Wait.Blocker.ID, b.Wait.Blocker.ID))
	})
	maybe := func(r Root) bool { return r.Wait.Maybe && r.Wait.Kind == read.LockFlush && r.Wait.Blocker.ID != 0 }
	if i := slices.IndexFunc(out, maybe); i >= 0 && !slices.ContainsFunc(out[i+1:], maybe) {
		out[i].Wait.Maybe = false
	}
	return out
}

// rank orders what the server says of a wait: that somebody holds the lock, that somebody is ahead, that somebody may hold it.
func rank(w read.LockWait) int {
	switch {
	case w.Maybe:
		return 2
	case w.Queued:
		return 1
	}
	return 0
}

// rootsOf follows the waits of one session to those that wait for nobody.
func rootsOf(waiter int64, blockers map[int64][]read.LockWait) (roots []int64) {
	seen := map[int64]bool{waiter: true}
	lowest := waiter
	for next := []int64{waiter}; len(next) > 0; {
		id := next[0]
		next = next[1:]
		lowest = min(lowest, id)
		for _, w := range blockers[id] {
			b := w.Blocker.ID
			if seen[b] {
				continue
			}
			seen[b] = true
			if len(blockers[b]) == 0 {
				roots = append(roots, b)
			} else {
				next = append(next, b)
			}
		}
	}
	if len(roots) == 0 && lowest != waiter {
		roots = append(roots, lowest)
	}
	return roots
}
