package digest

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// whoEntry remembers a User@Host line up to the last "]": what begins with the same bytes says the same.
type whoEntry struct {
	hash           uint64
	text           string
	user, host, ip []byte
	userID, hostID uint32 // their numbers in worker.values; 0: not looked up yet
}

const (
	whoBits = 7
	whoSets = 1 << whoBits
	maxWho  = 256 // bytes of a line
)

// whoSet holds lines whose hashes begin alike.
type whoSet struct {
	entries [4]whoEntry
	missed  uint32
}

// whoHash is the hash of what is at b[i:] up to the second "]", which is the end of what is remembered of a line
// unless the user's name has brackets; 0: there is none, or none that is sure to be in b. It examines eight bytes at a time.
func whoHash(b []byte, i int) (h uint64) {
	const shut = ']' * 0x0101010101010101
	last := min(len(b)-8, i+maxWho)
	for seen := 0; i <= last; i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		y := x ^ shut
		at := ^((y&^highBits + ^uint64(highBits)) | y) & highBits // the highest bit of each byte that is a "]"
		if n := bits.OnesCount64(at); seen+n < 2 {
			seen += n
		} else {
			if seen == 0 {
				at &= at - 1
			}
			x &= at ^ (at - 1)
			seen = 2
		}
		h = (h ^ x) * 0x9E3779B97F4A7C15
		h ^= h >> 32
		if seen == 2 {
			return h * 0xC2B2AE3D27D4EB4F
		}
	}
	return 0
}

const highBits = 0x8080808080808080

// who returns what is remembered of the line that begins at b[i:], or nil.
func (p *slowParser) who(b []byte, i int) *whoEntry {
	h := whoHash(b, i)
	set := &p.whos[h>>(64-whoBits)]
	for k := range set.entries {
		e := &set.entries[k]
		if n := len(e.text); e.hash == h && n > 0 && n < len(b)-i && string(b[i:i+n]) == e.text {
			return e
		}
	}
	return nil
}

// remember keeps the line that ends, up to its address, at b[i:end].
func (p *slowParser) remember(b []byte, i, end int, ev *raw) {
	h := whoHash(b, i)
	if h == 0 || end-i > maxWho {
		return
	}
	set := &p.whos[h>>(64-whoBits)]
	// More lines than there is space for must not keep evicting each other.
	n, size := set.missed, uint32(len(set.entries))
	if set.missed++; n >= size && n%16 != 0 {
		return
	}
	set.entries[(n/16+n)%size] = whoEntry{hash: h, text: string(b[i:end]), user: bytes.Clone(ev.user), host: bytes.Clone(ev.host), ip: bytes.Clone(ev.ip)}
}
