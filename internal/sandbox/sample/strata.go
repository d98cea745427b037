package sample

import (
	"context"
	"fmt"
	"math/big"
	"strconv"

	"github.com/rissodb/risso/internal/mysql"
)

const (
	places = 32  // a part of the key's range with more than this share of the rows is cut in two
	asks   = 400 // estimates that a server is asked for at most
)

// stratum is a part of the key's range.
type stratum struct {
	low, high *big.Int // both belong to it
	rows      float64  // estimated
}

func (r stratum) where(key string) string {
	return " WHERE " + key + " BETWEEN " + r.low.String() + " AND " + r.high.String()
}

// strata cut the range of a key until no part has much more than its share of the rows, by the server's estimates from its index: gaps and
// strays in the range do not matter then. They are in the order of the key.
func (c *copier) strata(ctx context.Context, key string) ([]stratum, error) {
	var all stratum
	err := c.from.Query(ctx, "SELECT /* risso: "+c.o.Purpose+" */ MIN("+key+"), MAX("+key+") FROM "+c.name.String(), func(row [][]byte) error {
		if row[0] == nil {
			return nil
		}
		var ok, also bool
		all.low, ok = new(big.Int).SetString(string(row[0]), 10)
		all.high, also = new(big.Int).SetString(string(row[1]), 10)
		if !ok || !also {
			return fmt.Errorf("%s and %s are no whole numbers", row[0], row[1])
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for the ends of the key: %w", err)
	}
	if all.low == nil {
		return nil, nil
	}
	all.rows = 1
	return cut(all, func(r stratum) (float64, error) { return c.estimate(ctx, key, r) })
}

// cut cuts a range by estimates.
func cut(all stratum, estimate func(stratum) (float64, error)) ([]stratum, error) {
	list := []stratum{all}
	for asked := 0; asked < asks; asked += 2 {
		most, total := -1, 0.0
		for i, r := range list {
			total += r.rows
			if r.low.Cmp(r.high) < 0 && (most < 0 || r.rows > list[most].rows) {
				most = i
			}
		}
		if most < 0 || len(list) > 1 && list[most].rows*places <= total {
			break
		}
		r := list[most]
		middle := new(big.Int).Add(r.low, r.high)
		middle.Rsh(middle, 1) // rounds down, below 0 too
		a, b := stratum{low: r.low, high: middle}, stratum{low: new(big.Int).Add(middle, big.NewInt(1)), high: r.high}
		var err error
		if a.rows, err = estimate(a); err != nil {
			return nil, err
		}
		if b.rows, err = estimate(b); err != nil {
			return nil, err
		}
		list = append(list[:most], append([]stratum{a, b}, list[most+1:]...)...)
	}
	return list, nil
}

// estimate asks how many rows a part of the range has, without reading them. FORCE INDEX would keep MySQL 8 and later from looking into the index.
func (c *copier) estimate(ctx context.Context, key string, r stratum) (float64, error) {
	rows, err := c.from.QueryMaps(ctx, "EXPLAIN FORMAT=TRADITIONAL SELECT /* risso: "+c.o.Purpose+" */ "+key+" FROM "+c.name.String()+" USE INDEX (PRIMARY)"+r.where(key))
	if err != nil {
		return 0, fmt.Errorf("ask how many rows a part of the key's range has: %w", err)
	}
	if len(rows) == 0 {
		return 1, nil
	}
	n, err := strconv.ParseFloat(rows[0]["rows"], 64)
	if err != nil || n < 1 { // NULL: the optimizer knows that there is none
		return 1, nil
	}
	return n, nil
}

// Count is how many rows and bytes a server estimates a table to have.
func Count(ctx context.Context, from *mysql.Stream, name mysql.TableName) (rows, bytes int64, err error) {
	err = from.Query(ctx, "SELECT /* risso: how large is the table */ TABLE_ROWS, DATA_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+mysql.Literal(name.Schema)+" AND TABLE_NAME = "+mysql.Literal(name.Name), func(row [][]byte) error {
		rows, _ = strconv.ParseInt(string(row[0]), 10, 64) // NULL counts as none
		bytes, _ = strconv.ParseInt(string(row[1]), 10, 64)
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("ask for the size of %s: %w", name, err)
	}
	return rows, bytes, nil
}
