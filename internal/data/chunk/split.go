package chunk

import (
	"context"
	"fmt"
	"math/big"

	"github.com/rissodb/risso/internal/mysql"
)

// Querier runs a statement of few rows. A mysql.Stream is one.
type Querier interface {
	Query(ctx context.Context, statement string, f func(row [][]byte) error) error
}

// Split finds bounds that cut a table into about so many parts, without reading it: evenly between the least and the greatest
// value of the key's first column. It gives none where that is no integer; then Next finds them by walking. The distances are
// powers of two, so that the bounds stay when the table grows.
func Split(ctx context.Context, q Querier, t mysql.Table, k Key, parts int, purpose string) ([]Bound, error) {
	if k.Cuts == 0 || parts < 2 || !isInteger(k.Order[0].Type) {
		return nil, nil
	}
	var low, high big.Int
	found := false
	name := mysql.Quote(k.Order[0].Name)
	err := q.Query(ctx, fmt.Sprintf("SELECT /* risso: %s */ MIN(%s), MAX(%s)%s", purpose, name, name, source(t, k)), func(row [][]byte) error {
		if row[0] == nil {
			return nil
		}
		_, a := low.SetString(string(row[0]), 10)
		_, b := high.SetString(string(row[1]), 10)
		found = a && b
		return nil
	})
	if err != nil || !found {
		return nil, err
	}
	width := new(big.Int).Sub(&high, &low)
	if width.Cmp(big.NewInt(int64(parts))) < 0 {
		return nil, nil
	}
	step := big.NewInt(1)
	for goal := width.Div(width, big.NewInt(int64(parts))); new(big.Int).Lsh(step, 1).Cmp(goal) <= 0; {
		step.Lsh(step, 1)
	}
	var out []Bound
	at := new(big.Int).Div(&low, step)
	for at.Mul(at, step); ; {
		at.Add(at, step)
		if at.Cmp(&high) >= 0 {
			return out, nil
		}
		if at.Cmp(&low) > 0 {
			out = append(out, Bound{at.String()})
		}
	}
}

func isInteger(kind string) bool {
	switch kind {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return true
	}
	return false
}
