package checksum

import (
	"context"
	"errors"

	"github.com/zeebo/xxh3"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// How often a chunk without a key is read before it is said to differ: its rows by their hashes; or, where they are too many to
// be held in memory together, those of some shelves, or its sums alone, which must be the same on the primary before and after.
const (
	looseRounds = 8
	totalRounds = 3
)

var errMany = errors.New("too many rows to be held in memory")

// loose looks closer at a chunk whose rows have no key that names them: both sides' rows are counted by their hashes, and what
// one side has more of in every round differs.
func (v *visit) loose(ctx context.Context, s span) error {
	var steady map[xxh3.Uint128]int64
	var only map[uint16]bool
	rounds := looseRounds
	for round := 0; round < rounds; round++ {
		if round > 0 && steady != nil && len(steady) == 0 && round < rounds-1 {
			continue // all has settled; the last round sees whether more came up
		}
		if round > 0 {
			if behind, err := v.behind(ctx); err != nil || behind {
				return err
			}
		}
		more, err := v.surplus(ctx, s.Range, only)
		if errors.Is(err, errMany) && only == nil {
			if only, err = v.shelves(ctx, s.Range); err == nil && len(only) == 0 {
				return nil // it has settled
			}
			if rounds = totalRounds; err == nil {
				more, err = v.surplus(ctx, s.Range, only)
			}
		}
		if errors.Is(err, errMany) {
			return v.looseTotals(ctx, s)
		}
		if err != nil {
			return err
		}
		if steady == nil {
			steady = more
			continue
		}
		for h, n := range steady {
			if more[h] != n {
				delete(steady, h)
				v.on.Settled++
			}
		}
		if len(steady) == 0 && len(more) > 0 && round == rounds-1 { // they came up only now
			v.on.Changing += int64(len(more))
			v.on.Verdict = worse(v.on.Verdict, Changing)
		}
	}
	if len(steady) == 0 {
		return nil
	}
	return v.looseRows(ctx, s.Range, steady)
}

// shelves sums the rows of a range by the first bits of their hashes, and says where the sums differ: only rows there can be what
// one side has more of.
func (v *visit) shelves(ctx context.Context, r chunk.Range) (map[uint16]bool, error) {
	none := make([]bool, len(v.plan.here.Columns))
	read := func(l *link, t define.Table, k chunk.Key) (sums []chunk.Sum, err error) {
		err = l.rows(ctx, func(st *mysql.Stream) error {
			sums = make([]chunk.Sum, 1<<16)
			return st.Select(ctx, chunk.Select(t, k, r, purpose), newCells(len(none), none, func(h xxh3.Uint128, _ []cell) error {
				sums[h.Hi>>48].Add(chunk.Sum(h))
				return nil
			}))
		})
		return sums, err
	}
	here, err := read(v.near, v.plan.here, v.key)
	if err != nil {
		return nil, err
	}
	there, err := read(v.far, v.peer.table, v.peer.key)
	if err != nil {
		return nil, err
	}
	differ := map[uint16]bool{}
	for i := range here {
		if here[i] != there[i] {
			differ[uint16(i)] = true
		}
	}
	return differ, nil
}

// surplus counts the rows of a range by their hashes: how many more the primary has, negative for the other. only leaves out all
// but those on some shelves; nil: none is left out.
func (v *visit) surplus(ctx context.Context, r chunk.Range, only map[uint16]bool) (map[xxh3.Uint128]int64, error) {
	var counts map[xxh3.Uint128]int64
	none := make([]bool, len(v.plan.here.Columns))
	read := func(l *link, t define.Table, k chunk.Key, step int64) error {
		var own map[xxh3.Uint128]int64
		err := l.rows(ctx, func(st *mysql.Stream) error {
			own = map[xxh3.Uint128]int64{}
			return st.Select(ctx, chunk.Select(t, k, r, purpose), newCells(len(none), none, func(h xxh3.Uint128, _ []cell) error {
				if only != nil && !only[uint16(h.Hi>>48)] {
					return nil
				}
				if own[h]++; len(own) > v.mostLoose {
					return errMany
				}
				return nil
			}))
		})
		if counts == nil {
			counts = own
			return err
		}
		for h, n := range own {
			if counts[h] += step * n; counts[h] == 0 {
				delete(counts, h)
			}
		}
		return err
	}
	if err := read(v.near, v.plan.here, v.key, 1); err != nil {
		return nil, err
	}
	return counts, read(v.far, v.peer.table, v.peer.key, -1)
}

// looseTotals finds out by sums alone whether a chunk differs: steady on both sides, and unequal.
func (v *visit) looseTotals(ctx context.Context, s span) error {
	sum := func(l *link, t define.Table, k chunk.Key) (o span, err error) {
		err = l.rows(ctx, func(st *mysql.Stream) error {
			o = span{Range: s.Range, method: MethodRows}
			return o.total(ctx, st, v.plan, t, k, "")
		})
		return o, err
	}
	before, err := sum(v.near, v.plan.here, v.key)
	if err != nil {
		return err
	}
	for range totalRounds {
		if behind, err := v.behind(ctx); err != nil || behind {
			return err
		}
		there, err := sum(v.far, v.peer.table, v.peer.key)
		if err != nil {
			return err
		}
		after, err := sum(v.near, v.plan.here, v.key)
		if err != nil {
			return err
		}
		if there.sum == before.sum || there.sum == after.sum {
			return nil
		}
		if before.sum != after.sum {
			v.on.Changing++
			v.on.Verdict = worse(v.on.Verdict, Changing)
			return nil
		}
	}
	v.on.Verdict = worse(v.on.Verdict, Differs)
	v.on.AtLeast = true
	v.on.Notes = append(v.on.Notes, "it has no key and more differing rows than fit in memory: which ones differ is not shown")
	return nil
}

// looseRows shows rows by their hashes.
func (v *visit) looseRows(ctx context.Context, r chunk.Range, steady map[xxh3.Uint128]int64) error {
	columns := v.plan.here.Columns
	for _, n := range steady {
		if n > 0 {
			v.on.Missing += n
		} else {
			v.on.Extra -= n
		}
	}
	v.on.Verdict = worse(v.on.Verdict, Differs)
	read := func(l *link, t define.Table, k chunk.Key, kind Kind, sign int64) error {
		var rows []Row
		err := l.rows(ctx, func(st *mysql.Stream) error {
			rows = nil
			done := map[xxh3.Uint128]bool{}
			return st.Select(ctx, chunk.Select(t, k, r, purpose), newCells(len(columns), nil, func(h xxh3.Uint128, row []cell) error {
				n := steady[h] * sign
				if n <= 0 || done[h] || len(v.on.Rows)+len(rows) >= v.MaxRows {
					return nil
				}
				done[h] = true
				d := Row{Kind: kind, Times: n}
				for i, c := range columns {
					value := Column{Name: c.Name}
					if kind == Missing {
						value.Primary = show(c, row[i])
					} else {
						value.Other = show(c, row[i])
					}
					d.Columns = append(d.Columns, value)
				}
				rows = append(rows, d)
				return nil
			}))
		})
		v.on.Rows = append(v.on.Rows, rows...)
		return err
	}
	if err := read(v.near, v.plan.here, v.key, Missing, 1); err != nil {
		return err
	}
	return read(v.far, v.peer.table, v.peer.key, Extra, -1)
}
