package digest

import (
	"bytes"
	"encoding/binary"
)

// whoEntry remembers a User@Host line up to the last "]": what begins with the same bytes says the same.
type whoEntry struct {
	text           string
	user, host, ip []byte
	userID, hostID uint32 // their numbers in worker.values; 0: not looked up yet
}

const (
	whoBits = 7
	whoSets = 1 << whoBits
	whoHash = 24  // bytes of a line that say in which set it is
	maxWho  = 256 // bytes of a line
)

// whoSet holds lines that begin alike.
type whoSet struct {
	entries [4]whoEntry
	missed  uint32
}

// whoSet is where a line that begins at b[i:] is remembered, or nil if it is too short.
func (p *slowParser) whoSet(b []byte, i int) *whoSet {
	if len(b)-i < whoHash {
		return nil
	}
	s := (*[whoHash]byte)(b[i:])
	h := (binary.LittleEndian.Uint64(s[:])*0x9E3779B97F4A7C15 ^ binary.LittleEndian.Uint64(s[8:])) * 0xC2B2AE3D27D4EB4F
	h = (h>>29 ^ h ^ binary.LittleEndian.Uint64(s[16:])) * 0x165667B19E3779F9
	return &p.whos[h>>(64-whoBits)]
}

// who gives what is remembered of the line that begins at b[i:], or nil.
func (p *slowParser) who(b []byte, i int) *whoEntry {
	set := p.whoSet(b, i)
	if set == nil {
		return nil
	}
	for k := range set.entries {
		e := &set.entries[k]
		if n := len(e.text); n > 0 && n < len(b)-i && string(b[i:i+n]) == e.text {
			return e
		}
	}
	return nil
}

// remember keeps the line that ends, up to its address, at b[i:end].
func (p *slowParser) remember(b []byte, i, end int, ev *raw) {
	set := p.whoSet(b, i)
	if set == nil || end-i > maxWho {
		return
	}
	// More lines than there is room for shall not push each other out all the time.
	n, size := set.missed, uint32(len(set.entries))
	if set.missed++; n >= size && n%16 != 0 {
		return
	}
	set.entries[(n/16+n)%size] = whoEntry{text: string(b[i:end]), user: bytes.Clone(ev.user), host: bytes.Clone(ev.host), ip: bytes.Clone(ev.ip)}
}
