package repo

import "github.com/zeebo/xxh3"

// keySet is a set of keys of which only hashes are kept: 16 bytes each instead of 100, so that a million fits. Two keys with
// one hash (once in 10⁷ repositories of a million objects) are taken for one: prune then keeps what it might remove.
type keySet map[uint64]int64 // the size of the object

func (s keySet) add(key string, size int64) (isNew bool) {
	h := xxh3.HashString(key)
	_, there := s[h]
	if !there {
		s[h] = size
	}
	return !there
}

func (s keySet) size(key string) (int64, bool) {
	n, ok := s[xxh3.HashString(key)]
	return n, ok
}

// remove takes a key away.
func (s keySet) remove(key string) { delete(s, xxh3.HashString(key)) }
