package digest

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/rissodb/risso/internal/sqltext"
)

// plainID is the name of a statement: the class ID of the plain form of its fingerprint. A server's own digest of
// the statement leads to the same (sqltext.AppendDigestText), so a class has the same name whatever it was read from.
func plainID(fingerprint []byte) string {
	return sqltext.ClassID(sqltext.AppendPlain(nil, fingerprint))
}

// name is the class's ID in the profile.
func (c *class) name(p *plan) string {
	switch {
	case p.group != groupFingerprint:
		return c.id
	case p.MergeTables && c.keyLen == len(c.key): // of the others the whole is not there
		return plainID(sqltext.MergeTables(c.key))
	case c.plain == "":
		c.plain = plainID(c.key)
	}
	return c.plain
}

// joined makes one class of those whose fingerprints have one plain form (a=1 and a = 1): the heaviest takes the figures
// of the others. From here on a class's id is its name.
func (w *worker) joined(all []*class) []*class {
	if w.group != groupFingerprint {
		return all
	}
	byName := make(map[string][]*class, len(all))
	for _, c := range all {
		n := c.name(w.plan)
		byName[n] = append(byName[n], c)
	}
	out := make([]*class, 0, len(byName))
	same := &translation{same: true, to: w}
	for name, list := range byName {
		if len(list) > 1 {
			slices.SortFunc(list, func(a, b *class) int {
				return cmp.Or(cmp.Compare(b.query.sum.hi, a.query.sum.hi), cmp.Compare(b.query.sum.lo, a.query.sum.lo), cmp.Compare(b.calls, a.calls), cmp.Compare(a.id, b.id))
			})
			list[0].spellings = ptIDs(list)
		}
		c := list[0]
		for _, o := range list[1:] {
			c.mergeFrom(o, same, max(w.Samples, 0))
		}
		c.id = name
		out = append(out, c)
	}
	return out
}

// ptIDs are pt-query-digest's IDs of the classes, each once; a class without a sample has none.
func ptIDs(list []*class) []string {
	var ids []string
	for _, c := range list {
		if len(c.samples) == 0 {
			continue
		}
		if id := c.samples[0].ptID(); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// ownMark begins the comment in each statement that Risso sends, after its first words.
var ownMark = []byte("/* risso")

// IsOwn recognizes a statement that Risso sent: it has "/* risso: why */" after its first words.
func IsOwn(query []byte) bool {
	i := bytes.IndexByte(query[:min(len(query), 32)], '/')
	if i < 0 || !bytes.HasPrefix(query[i:], ownMark) || len(query) == i+len(ownMark) {
		return false
	}
	for _, c := range query[:i] {
		if c != ' ' && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	next := query[i+len(ownMark)]
	return next == ':' || next == ' '
}
