package advise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// redundantIndexes finds indexes whose work another one of the table does. It drops one after the other in thought, so that what it advises
// can be done together: what makes an index redundant is never dropped itself.
//
//   - An entry of a secondary InnoDB index ends with the columns of the primary key that it does not have (MySQL manual, "Clustered and
//     Secondary Indexes"): with the primary key (id), (a) and (a, id) are the same.
//   - (a) is redundant beside (a, b). But (a) alone has the rows of one a in the primary key's order, (a, b) has not: a statement that looks
//     up a and sorts by id sorts then. That is a doubt, and said.
//   - A unique index whose columns include all of another unique one demands nothing more than that: it counts as one that is not unique.
//   - The primary key is never redundant, nor is a unique index that demands something, nor one without which a foreign key, on either side,
//     or AUTO_INCREMENT would have none (MySQL manual, "FOREIGN KEY Constraints": its columns are the first ones, in the same order).
//   - Full-text and spatial indexes and those over expressions are redundant only beside one with the same definition.
func redundantIndexes(s *Server, t *Table) (list []Finding) {
	k := keysOf(s, t)
	var dropped []int
	for _, i := range k.order() {
		if j, _ := k.instead(i); j >= 0 {
			k.gone[i] = true
			dropped = append(dropped, i)
		}
	}
	for _, i := range dropped { // beside those that stay: what seemed to do its work may itself have gone after it
		if j, how := k.instead(i); j >= 0 {
			list = append(list, k.finding(i, j, how))
		} else {
			k.gone[i] = false
		}
	}
	return list
}

// keys are the indexes of a table while some of them are dropped in thought.
type keys struct {
	s    *Server
	t    *Table
	gone []bool
}

func keysOf(s *Server, t *Table) *keys { return &keys{s, t, make([]bool, len(t.Keys))} }

// order are the indexes in the order in which to do without them: not hinted before hinted, those that demand nothing before unique ones,
// long before short, late before early.
func (k *keys) order() (out []int) {
	for i := range k.t.Keys {
		if k.t.Keys[i].Name != "PRIMARY" {
			out = append(out, i)
		}
	}
	rank := func(x bool) int {
		if x {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(out, func(a, b int) int {
		x, y := &k.t.Keys[a], &k.t.Keys[b]
		return cmp.Or(cmp.Compare(rank(k.s.hinted(x.Name) != ""), rank(k.s.hinted(y.Name) != "")), cmp.Compare(rank(x.Unique && !k.demandsNothing(a)), rank(y.Unique && !k.demandsNothing(b))),
			cmp.Compare(len(y.Parts), len(x.Parts)), cmp.Compare(b, a))
	})
	return out
}

// hinted says what has a hint that names an index, "" if nothing is known to have one.
func (s *Server) hinted(index string) string { return s.Hinted[strings.ToLower(index)] }

// cover is in which way one index does the work of another.
type cover int

const (
	coversNot    cover = iota
	coversAlike        // the same columns in the same order, as InnoDB stores them
	coversLookup       // all look-ups, but rows of one value come in another order
)

// instead returns the index that does the work of index i, the best one first, or -1.
func (k *keys) instead(i int) (best int, how cover) {
	best = -1
	a := &k.t.Keys[i]
	if a.Unique && !k.demandsNothing(i) || k.needed(i) {
		return -1, coversNot
	}
	for j := range k.t.Keys {
		b := &k.t.Keys[j]
		if j == i || k.gone[j] || b.Hidden && !a.Hidden {
			continue
		}
		if c := k.covers(b, a); c != coversNot && (best < 0 || c < how || c == how && len(b.Parts) < len(k.t.Keys[best].Parts)) {
			best, how = j, c
		}
	}
	return best, how
}

// covers says how b does the work of a.
func (k *keys) covers(b, a *define.TableKey) cover {
	if a.Special || b.Special || !treeEngines[strings.ToUpper(k.t.Engine)] {
		if a.Unique == b.Unique && definition(a) == definition(b) {
			return coversAlike
		}
		return coversNot
	}
	long, short := k.stored(b), k.stored(a)
	switch {
	case beginsWith(long, short) && beginsWith(short, long):
		return coversAlike
	case beginsWith(long, short) && exact(long, short):
		return coversAlike
	case beginsWith(long, a.Parts) || k.t.innodb() && beginsWith(long, withoutPrimary(k.t, a)):
		return coversLookup
	}
	return coversNot
}

// treeEngines keep an index as a tree in the order of its columns unless its definition says otherwise. MEMORY and NDB make hashes, and their
// definitions do not say so (MySQL manual, "The MEMORY Storage Engine").
var treeEngines = map[string]bool{"INNODB": true, "MYISAM": true, "ARIA": true, "ROCKSDB": true, "TOKUDB": true}

// definition is what stands behind the name.
func definition(k *define.TableKey) string {
	_, after, _ := strings.Cut(k.Text, mysql.Quote(k.Name))
	return strings.TrimSpace(k.Text[:strings.IndexByte(k.Text+" ", ' ')] + after)
}

// stored are the columns of an index as they are stored: with those of the primary key that it does not have.
func (k *keys) stored(key *define.TableKey) []define.KeyPart {
	p := k.t.clustered()
	if p == nil || key.Name == p.Name || !k.t.innodb() {
		return key.Parts
	}
	out := slices.Clone(key.Parts)
	for _, c := range p.Parts {
		if !slices.ContainsFunc(key.Parts, func(x define.KeyPart) bool { return strings.EqualFold(x.Column, c.Column) && x.Prefix == 0 }) {
			out = append(out, c)
		}
	}
	return out
}

// withoutPrimary are the columns of an index without those at its end that InnoDB would add.
func withoutPrimary(t *Table, key *define.TableKey) []define.KeyPart {
	p := t.clustered()
	if p == nil || key.Unique {
		return key.Parts
	}
	for n := min(len(p.Parts), len(key.Parts)-1); n > 0; n-- {
		if begin := key.Parts[len(key.Parts)-n:]; n == len(p.Parts) && sameParts(begin, p.Parts) {
			return key.Parts[:len(key.Parts)-n]
		}
	}
	return key.Parts
}

func sameParts(a, b []define.KeyPart) bool { return exact(a, b) && len(a) == len(b) }

// beginsWith reports whether look-ups by the columns of short work by long as well. Rows are read in either direction, so only how directions
// change matters; a whole column serves as its prefix.
func beginsWith(long, short []define.KeyPart) bool {
	if len(short) > len(long) || len(short) == 0 {
		return false
	}
	turned := short[0].Descending != long[0].Descending
	for i, x := range short {
		y := long[i]
		if x.Column == "" || !strings.EqualFold(x.Column, y.Column) || y.Prefix != 0 && (x.Prefix == 0 || x.Prefix > y.Prefix) || (x.Descending != y.Descending) != turned {
			return false
		}
	}
	return true
}

// exact reports whether long begins with the very parts of short, prefixes and all.
func exact(long, short []define.KeyPart) bool {
	if !beginsWith(long, short) {
		return false
	}
	for i, x := range short {
		if x.Prefix != long[i].Prefix {
			return false
		}
	}
	return true
}

// demandsNothing reports whether another unique index that stays demands all that this one does.
func (k *keys) demandsNothing(i int) bool {
	a := &k.t.Keys[i]
	for j := range k.t.Keys {
		b := &k.t.Keys[j]
		if j == i || k.gone[j] || !b.Unique {
			continue
		}
		if a.Special || b.Special {
			if definition(a) == definition(b) {
				return true
			}
			continue
		}
		// Each part of b is a part of a: rows that are alike in a are alike in b. A prefix in b demands more than the whole column.
		if !slices.ContainsFunc(b.Parts, func(y define.KeyPart) bool {
			return !slices.ContainsFunc(a.Parts, func(x define.KeyPart) bool {
				return strings.EqualFold(x.Column, y.Column) && (x.Prefix == 0 || y.Prefix != 0 && y.Prefix <= x.Prefix)
			})
		}) {
			return true
		}
	}
	return false
}

// needed reports whether a foreign key or AUTO_INCREMENT has no other index than this one.
func (k *keys) needed(i int) bool {
	serves := func(j int, columns []string) bool {
		key := &k.t.Keys[j]
		if key.Special || len(key.Parts) < len(columns) {
			return false
		}
		for n, c := range columns {
			if !strings.EqualFold(key.Parts[n].Column, c) || key.Parts[n].Prefix != 0 {
				return false
			}
		}
		return true
	}
	orphan := func(columns []string, unique bool) bool {
		if len(columns) == 0 || !serves(i, columns) {
			return false
		}
		for j := range k.t.Keys {
			if j != i && !k.gone[j] && serves(j, columns) && (!unique || k.t.Keys[j].Unique && len(k.t.Keys[j].Parts) == len(columns) || !k.t.Keys[i].Unique) {
				return false
			}
		}
		return true
	}
	for _, f := range k.t.ForeignKeys {
		if orphan(f.Columns, false) {
			return true
		}
	}
	for _, f := range k.s.referencesTo(k.t.name()) {
		if orphan(f.To, true) {
			return true
		}
	}
	for _, c := range k.t.Columns {
		if c.Auto && orphan([]string{c.Name}, false) {
			return true
		}
	}
	return false
}

// finding is what to say of index i, whose work j does.
func (k *keys) finding(i, j int, how cover) Finding {
	a, b := &k.t.Keys[i], &k.t.Keys[j]
	f := Finding{Object: k.t.object() + "." + a.Name, Severity: fleet.SeverityWarning,
		Why:      "each write of a row maintains it, it takes room on disk and in the buffer pool, and it gives statements nothing that the other index does not",
		Evidence: []string{a.Text, b.Text, digits.Roughly(int64(k.t.Rows), "row")},
		Effect:   dropsAtOnce,
		Cost:     Cost{Bytes: k.t.Bytes[a.Name]}}
	switch {
	case b.Name == "PRIMARY":
		f.What = fmt.Sprintf("index %s of %s repeats the primary key", a.Name, k.t.object())
		f.Sure, f.Doubt = Likely, "a statement that counts all rows may read this index because it is smaller than the table"
	case how == coversAlike && len(a.Parts) == len(b.Parts):
		f.What = fmt.Sprintf("index %s of %s is the same as %s", a.Name, k.t.object(), b.Name)
	case how == coversAlike && len(a.Parts) > len(b.Parts):
		f.What = fmt.Sprintf("index %s of %s is the same as %s: InnoDB adds the primary key to each index", a.Name, k.t.object(), b.Name)
	case how == coversAlike:
		f.What = fmt.Sprintf("index %s of %s is how %s begins", a.Name, k.t.object(), b.Name)
	default:
		f.What = fmt.Sprintf("index %s of %s is how %s begins", a.Name, k.t.object(), b.Name)
		if !beginsWith(b.Parts, a.Parts) {
			f.What = fmt.Sprintf("index %s of %s, without the primary key at its end, is how %s begins", a.Name, k.t.object(), b.Name)
		}
		f.Sure, f.Doubt = Likely, "a statement that looks up all columns of "+a.Name+" and sorts by the primary key, or looks for a part of that as well, reads just its rows in order by it, and sorts them, or reads more, with "+b.Name+"; entries of "+a.Name+" are shorter, which a scan of a whole index can notice"
	}
	if bytes := k.t.Bytes[a.Name]; bytes > 0 {
		f.Evidence = append(f.Evidence, digits.Bytes(bytes)+" on disk")
	}
	if k.t.Rows < 1000 {
		f.Severity = fleet.SeverityInfo
	}
	switch by := k.s.hinted(a.Name); {
	case by != "":
		f.Advice = "take the hint that names it out of " + by + " first: a statement that names an index that does not exist fails"
		return f
	case k.s.Blind != "":
		f.Sure, f.Doubt = Likely, strings.TrimPrefix(f.Doubt+"; the account does not see "+k.s.Blind, "; ")
	}
	f.Statement = k.t.alter() + "DROP INDEX " + mysql.Quote(a.Name)
	f.Undo = k.t.alter() + "ADD " + a.Text
	return f
}
