package checksum

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// Sizes of looking closer.
const (
	closeRows  = 20_000    // rows whose hashes and keys are in memory at a time
	mostKeys   = 100_000   // rows of a range that only the other side has, at most
	batchKeys  = 100       // rows that are looked at again at a time
	looseRows  = 1_000_000 // rows of a table without key whose hashes are in memory
	roundPause = 40 * time.Millisecond
)

// settle looks closer at a chunk whose sums differ: which rows, and do they still? final: what the replica is too late for is
// counted, not kept for later.
func (v *visit) settle(ctx context.Context, s span, final bool) error {
	reached, err := v.caughtUp(ctx, v.near, v.far)
	if err != nil {
		return err
	}
	if !reached {
		if !final {
			v.late = append(v.late, s)
			return nil
		}
		v.on.Behind++
		v.on.Verdict = worse(v.on.Verdict, Behind)
		return nil
	}
	if !v.uniq || v.key.Cuts == 0 || !v.key.Whole() {
		return v.loose(ctx, s)
	}
	return v.closer(ctx, s.Range)
}

// closer goes through a range in small parts, and looks at the rows of those whose sums differ.
func (v *visit) closer(ctx context.Context, r chunk.Range) error {
	var keys [][][]byte
	var tail []byte
	confirm := func(least int, more bool) (enough bool, err error) {
		for len(keys) >= least && len(keys) > 0 {
			n := min(len(keys), batchKeys)
			if err := v.confirm(ctx, keys[:n]); err != nil {
				return false, err
			}
			if keys = keys[n:]; v.enough() {
				v.on.AtLeast = v.on.AtLeast || more || len(keys) > 0
				return true, nil
			}
		}
		return false, nil
	}
	for {
		var s span
		err := v.near.rows(ctx, func(st *mysql.Stream) error {
			s = span{Range: r, method: MethodRows}
			if err := s.limited(ctx, st, v.plan, closeRows, &tail); err != nil {
				return err
			}
			if s.last {
				s.Upper = r.Upper
			}
			return nil
		})
		if err != nil {
			return err
		}
		same, err := v.check(ctx, &s)
		if err != nil {
			return err
		}
		if !same {
			part, err := v.keys(ctx, s.Range)
			if err != nil {
				return err
			}
			keys = append(keys, part...)
		}
		if enough, err := confirm(batchKeys, !s.last); err != nil || enough {
			return err
		}
		if s.last {
			_, err = confirm(0, false)
			return err
		}
		r.Lower = s.Upper
	}
}

// enough reports whether so many rows differ that more of them say nothing new. Looking at each again takes its time.
func (v *visit) enough() bool { return v.on.differing() >= max(int64(v.MaxRows), 1000) }

// entry is a row that one side has.
type entry struct {
	count int64
	key   [][]byte
}

// keys reads the rows of a range on both sides and returns the keys of those that only one side has.
func (v *visit) keys(ctx context.Context, r chunk.Range) (list [][][]byte, err error) {
	want, at := v.keyColumns()
	var here map[xxh3.Uint128]entry
	err = v.near.rows(ctx, func(st *mysql.Stream) error {
		here = map[xxh3.Uint128]entry{}
		sink := newCells(len(v.plan.here.Columns), want, func(h xxh3.Uint128, row []cell) error {
			here[h] = entry{here[h].count + 1, pick(row, at)}
			return nil
		})
		return st.Select(ctx, chunk.Select(v.plan.here, v.key, r, purpose), sink)
	})
	if err != nil {
		return nil, err
	}
	var there [][][]byte
	more := false
	err = v.far.rows(ctx, func(st *mysql.Stream) error {
		there, more = nil, false
		seen := map[xxh3.Uint128]int64{}
		sink := newCells(len(v.plan.here.Columns), want, func(h xxh3.Uint128, row []cell) error {
			if seen[h] < here[h].count {
				seen[h]++
			} else if len(there) < mostKeys {
				there = append(there, pick(row, at))
			} else {
				more = true
			}
			return nil
		})
		if err := st.Select(ctx, chunk.Select(v.peer.table, v.peer.key, r, purpose), sink); err != nil {
			return err
		}
		for h, n := range seen {
			if here[h].count <= n {
				delete(here, h)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	v.on.AtLeast = v.on.AtLeast || more
	known := map[string]bool{}
	add := func(key [][]byte) {
		if id := joined(key); !known[id] {
			known[id] = true
			list = append(list, key)
		}
	}
	for _, e := range here {
		add(e.key)
	}
	for _, k := range there {
		add(k)
	}
	return list, nil
}

// keyColumns says which columns are of the key, and at what position each of the key's columns is.
func (p *plan) keyColumns() (want []bool, at []int) {
	want, at = make([]bool, len(p.here.Columns)), make([]int, len(p.key.Order))
	for i, k := range p.key.Order {
		for j, c := range p.here.Columns {
			if c.Name == k.Name {
				want[j], at[i] = true, j
			}
		}
	}
	return want, at
}

func pick(row []cell, at []int) [][]byte {
	key := make([][]byte, len(at))
	for i, j := range at {
		if !row[j].null {
			key[i] = append([]byte{}, row[j].head...)
		}
	}
	return key
}

// joined is a key as a word.
func joined(key [][]byte) string {
	var b strings.Builder
	for _, v := range key {
		fmt.Fprintf(&b, "%d:", len(v))
		b.Write(v)
	}
	return b.String()
}

// found is a row that was looked at.
type found struct {
	hash xxh3.Uint128
	row  []cell
	key  [][]byte
}

// look reads rows by their keys.
func (p *plan) look(ctx context.Context, l *link, t define.Table, k chunk.Key, keys [][][]byte) (rows map[string]found, err error) {
	statement, err := p.byKeys(t, k, keys)
	if err != nil {
		return nil, err
	}
	_, at := p.keyColumns()
	err = l.rows(ctx, func(st *mysql.Stream) error {
		rows = make(map[string]found, len(keys))
		return st.Select(ctx, statement, newCells(len(p.here.Columns), nil, func(h xxh3.Uint128, row []cell) error {
			key := pick(row, at)
			rows[joined(key)] = found{h, row, key}
			return nil
		}))
	})
	return rows, err
}

// byKeys is the statement that reads rows by their keys.
func (p *plan) byKeys(t define.Table, k chunk.Key, keys [][][]byte) (string, error) {
	or := make([]string, len(keys))
	for i, key := range keys {
		where, err := p.whereKey(key)
		if err != nil {
			return "", err
		}
		or[i] = "(" + where + ")"
	}
	statement := chunk.Select(t, k, chunk.Range{}, purpose)
	// Select orders by the key if there is one: the condition belongs before that.
	order := " ORDER BY " + k.OrderBy()
	return strings.TrimSuffix(statement, order) + " WHERE " + strings.Join(or, " OR "), nil
}

// whereKey is the condition for the row with a key.
func (p *plan) whereKey(key [][]byte) (string, error) {
	literals, err := p.key.Literals(key)
	if err != nil {
		return "", err
	}
	and := make([]string, len(literals))
	for i, l := range literals {
		and[i] = mysql.Quote(p.key.Order[i].Name) + " = " + l
	}
	return strings.Join(and, " AND "), nil
}

// suspect is a row that differed, and what was seen of it.
type suspect struct {
	here, there found
	inHere      bool
	inThere     bool
	streak      int
}

// confirm looks at rows again and again until each is equal, or was unequal in several rounds without a change on any side.
// The replica is always read between two readings of the primary, after it has what the first of them saw: a row that the two
// readings agree on, and the replica not, was either changed twice in between, back to what it was, or differs.
func (v *visit) confirm(ctx context.Context, keys [][][]byte) error {
	open := map[string]*suspect{}
	before, err := v.look(ctx, v.near, v.plan.here, v.key, keys)
	if err != nil {
		return err
	}
	behind := false
	for round := 0; round < 3*v.Rounds && len(keys) > 0; round++ {
		reached, err := v.caughtUp(ctx, v.near, v.far)
		if err != nil {
			return err
		}
		if behind = !reached; behind {
			break
		}
		there, err := v.look(ctx, v.far, v.peer.table, v.peer.key, keys)
		if err != nil {
			return err
		}
		after, err := v.look(ctx, v.near, v.plan.here, v.key, keys)
		if err != nil {
			return err
		}
		keys = v.round(keys, open, before, there, after)
		before = after
		if err := delay.For(ctx, roundPause); err != nil {
			return err
		}
	}
	switch {
	case len(keys) == 0:
	case behind:
		v.on.Behind++
		v.on.Verdict = worse(v.on.Verdict, Behind)
	default:
		v.on.Changing += int64(len(keys))
		v.on.Verdict = worse(v.on.Verdict, Changing)
	}
	return nil
}

// round judges what one round saw and returns the keys that are still open.
func (v *visit) round(keys [][][]byte, open map[string]*suspect, before, there, after map[string]found) (left [][][]byte) {
	for _, key := range keys {
		id := joined(key)
		b, inBefore := before[id]
		a, inAfter := after[id]
		t, inThere := there[id]
		switch v.alike(a, inAfter, t, inThere, b, inBefore) {
		case asWritten:
			v.on.Settled++
			continue
		case inMeaning:
			v.on.Written++
			continue
		}
		s := open[id]
		if s == nil {
			s = &suspect{}
			open[id] = s
		}
		steady := inBefore == inAfter && a.hash == b.hash
		if steady && s.streak > 0 && s.inHere == inAfter && s.inThere == inThere && s.here.hash == a.hash && s.there.hash == t.hash {
			s.streak++
		} else if *s = (suspect{here: a, there: t, inHere: inAfter, inThere: inThere}); steady {
			s.streak = 1
		}
		if s.streak < v.Rounds {
			left = append(left, key)
			continue
		}
		v.report(key, s)
	}
	return left
}

type likeness int

const (
	unlike likeness = iota
	asWritten
	inMeaning
)

// alike compares the replica's row with the primary's before and after.
func (v *visit) alike(a found, inA bool, t found, inT bool, b found, inB bool) likeness {
	for _, p := range []struct {
		f  found
		in bool
	}{{a, inA}, {b, inB}} {
		switch {
		case p.in != inT:
		case !inT || p.f.hash == t.hash:
			return asWritten
		case len(v.differences(p.f.row, t.row)) == 0:
			return inMeaning
		}
	}
	return unlike
}

// differences are the columns in which two rows differ.
func (p *plan) differences(a, b []cell) (at []int) {
	for i := range a {
		if !same(p.here.Columns[i], a[i], b[i]) {
			at = append(at, i)
		}
	}
	return at
}

// report adds a row that differs for sure.
func (v *visit) report(key [][]byte, s *suspect) {
	v.on.Verdict = worse(v.on.Verdict, Differs)
	row := Row{key: key}
	columns := v.plan.here.Columns
	for i, c := range v.key.Order {
		val := ""
		if s := show(c, cell{size: int64(len(key[i])), head: key[i]}); s != nil {
			val = *s
		}
		row.Key = append(row.Key, Value{c.Name, val})
	}
	value := func(in bool, f found, i int) *string {
		if !in {
			return nil
		}
		return show(columns[i], f.row[i])
	}
	switch {
	case !s.inThere:
		row.Kind = Missing
		v.on.Missing++
	case !s.inHere:
		row.Kind = Extra
		v.on.Extra++
	default:
		row.Kind = Different
		v.on.Different++
	}
	if len(v.on.Rows) >= v.MaxRows {
		return
	}
	at := make([]int, 0, len(columns))
	if row.Kind == Different {
		at = v.differences(s.here.row, s.there.row)
	} else {
		for i := range columns {
			at = append(at, i)
		}
	}
	for _, i := range at {
		row.Columns = append(row.Columns, Column{columns[i].Name, value(s.inHere, s.here, i), value(s.inThere, s.there, i)})
	}
	v.on.Rows = append(v.on.Rows, row)
}

// behind waits until the replica has what the primary has, and notes if it never does.
func (v *visit) behind(ctx context.Context) (bool, error) {
	reached, err := v.caughtUp(ctx, v.near, v.far)
	if err == nil && !reached {
		v.on.Behind++
		v.on.Verdict = worse(v.on.Verdict, Behind)
	}
	return !reached, err
}
