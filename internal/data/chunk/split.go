package chunk

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// Querier runs a statement of few rows. A mysql.Stream is one.
type Querier interface {
	Query(ctx context.Context, statement string, f func(row [][]byte) error) error
}

// Split finds bounds that cut a table into about n parts, without reading it: evenly between the least and the greatest
// value of the key's first column. It finds none if that is no integer, time or bytes, or if most parts would have no row;
// then Next finds them by walking, which reads the whole table once more. The distances are powers of two, so that the bounds
// stay the same when the table grows.
func Split(ctx context.Context, q Querier, t define.Table, k Key, parts int, purpose string) ([]Bound, error) {
	if k.Cuts == 0 || parts < 2 {
		return nil, nil
	}
	first := k.Order[0]
	measure := scaleOf(first.Type)
	if measure == nil {
		return nil, nil
	}
	var least, greatest []byte
	name := mysql.Quote(first.Name)
	err := q.Query(ctx, fmt.Sprintf("SELECT /* risso: %s */ MIN(%s), MAX(%s)%s", purpose, name, name, source(t, k)), func(row [][]byte) error {
		least, greatest = bytes.Clone(row[0]), bytes.Clone(row[1])
		return nil
	})
	if err != nil || least == nil {
		return nil, err
	}
	s := measure(least, greatest)
	low, ok := s.number(least)
	high, ok2 := s.number(greatest)
	if !ok || !ok2 {
		return nil, nil
	}
	var out []Bound
	for _, n := range even(low, high, parts) {
		out = append(out, Bound{literalOf(first)(s.text(n))})
	}
	if isInteger(first.Type) || len(out) == 0 { // these mostly count
		return out, nil
	}
	full, err := withRows(ctx, q, t, k, out, purpose)
	if err != nil || 2*full <= len(out) {
		return nil, err
	}
	return out, nil
}

// even returns the multiples of a power of two that cut the range between two numbers into n parts, or up to twice as many.
func even(low, high *big.Int, parts int) (out []*big.Int) {
	width := new(big.Int).Sub(high, low)
	if width.Cmp(big.NewInt(int64(parts))) < 0 {
		return nil
	}
	step := big.NewInt(1)
	for goal := width.Div(width, big.NewInt(int64(parts))); new(big.Int).Lsh(step, 1).Cmp(goal) <= 0; {
		step.Lsh(step, 1)
	}
	at := new(big.Int).Div(low, step)
	for at.Mul(at, step); ; {
		at.Add(at, step)
		if at.Cmp(high) >= 0 {
			return out
		}
		if at.Cmp(low) > 0 {
			out = append(out, new(big.Int).Set(at))
		}
	}
}

// withRows says how many of the parts between bounds, before the first and after the last have rows.
func withRows(ctx context.Context, q Querier, t define.Table, k Key, bounds []Bound, purpose string) (n int, err error) {
	for i := range len(bounds) + 1 {
		var r Range
		if i > 0 {
			r.Lower = bounds[i-1]
		}
		if i < len(bounds) {
			r.Upper = bounds[i]
		}
		err := q.Query(ctx, fmt.Sprintf("SELECT /* risso: %s */ 1%s WHERE %s LIMIT 1", purpose, source(t, k), k.Where(r)), func([][]byte) error {
			n++
			return nil
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func isInteger(kind string) bool {
	switch kind {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return true
	}
	return false
}

// scale takes values of a column for numbers that have the same order, and writes a number as a value.
type scale struct {
	number func(v []byte) (*big.Int, bool)
	text   func(n *big.Int) []byte
}

// scaleOf returns what makes the scale between two values of a type; nil if there is none. The order of text is a matter of its
// collation: where AA is a letter after Z, that of hexadecimal digits, too.
func scaleOf(kind string) func(least, greatest []byte) scale {
	switch {
	case isInteger(kind):
		return func(_, _ []byte) scale {
			return scale{func(v []byte) (*big.Int, bool) { return new(big.Int).SetString(string(v), 10) }, func(n *big.Int) []byte { return n.Append(nil, 10) }}
		}
	case kind == "date":
		return func(_, _ []byte) scale { return timeScale("2006-01-02", 24*60*60) }
	case kind == "datetime", kind == "timestamp":
		return func(_, _ []byte) scale { return timeScale("2006-01-02 15:04:05", 1) }
	case kind == "binary", kind == "varbinary":
		return byteScale
	}
	return nil
}

// timeScale counts in units of so many seconds. A day 0 of a month has no number.
func timeScale(layout string, unit int64) scale {
	return scale{
		func(v []byte) (*big.Int, bool) {
			at, err := time.Parse(layout, string(v[:min(len(v), len(layout))])) // without parts of a second
			return big.NewInt(at.Unix() / unit), err == nil
		},
		func(n *big.Int) []byte { return time.Unix(n.Int64()*unit, 0).UTC().AppendFormat(nil, layout) },
	}
}

// byteScale takes the bytes up to the eighth in which values may differ for digits.
func byteScale(least, greatest []byte) scale {
	width := 0
	for width < min(len(least), len(greatest)) && least[width] == greatest[width] {
		width++
	}
	width = min(width+8, max(len(least), len(greatest)))
	return scale{
		func(v []byte) (*big.Int, bool) {
			digits := make([]byte, width)
			copy(digits, v)
			return new(big.Int).SetBytes(digits), true
		},
		func(n *big.Int) []byte { return n.FillBytes(make([]byte, width)) },
	}
}
