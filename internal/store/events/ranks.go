package events

import (
	"context"
	"fmt"
	"strings"
)

// quantileOrders are the orders by a quantile of latency.
var quantileOrders = map[string]float64{"p50": 0.5, "p95": 0.95, "p99": 0.99}

// aboveAll is more seconds than all statements of all time take.
const aboveAll = 1e15

// ranks are the classes whose quantile is largest, over all classes whose latency is known in the range, the largest first.
func (a asker) ranks(ctx context.Context, q TopQuestion, level float64) ([]int64, error) {
	f := filter{instances: q.Instances}
	list := a.pieces(q.Range, sums)
	parts := make([]string, len(list))
	for i, p := range list {
		parts[i] = a.b.latency("risso_"+p.table, f.where(p.Range), "0")
	}
	where, args := a.searched(q.Search)
	if len(q.Schemas) > 0 {
		in, names := inSchemas(q.Schemas)
		join := " WHERE "
		if where != "" {
			join = " AND "
		}
		where += join + "class IN (SELECT class FROM " + a.source(list, f) + in + ")"
		args = append(args, names...)
	}
	counted := "SELECT class, bucket, sum(counted) AS counted FROM (" + strings.Join(parts, " UNION ALL ") + ")" + where + " GROUP BY class, bucket"
	var keys []int64
	err := a.b.query(ctx, fmt.Sprintf("%s ORDER BY reached DESC, of DESC, class LIMIT %d", a.b.quantile(counted, level), q.Limit), args, func(scan func(...any) error) error {
		var k, reached, of int64
		if err := scan(&k, &reached, &of); err != nil {
			return err
		}
		keys = append(keys, k)
		return nil
	})
	return keys, wrap("find the classes that take longest", err)
}

// rankOrder is an order by which the classes of keys come before all others, and those by their load.
func rankOrder(keys []int64) string {
	if len(keys) == 0 {
		return "sum(seconds)"
	}
	return fmt.Sprintf("sum(seconds) + CASE WHEN class IN (%s) THEN %g ELSE 0 END", numbers(keys), aboveAll)
}

// rankWorths are the places of keys, as what they are worth in a list.
func rankWorths(keys []int64) map[int64]float64 {
	worth := make(map[int64]float64, len(keys))
	for i, k := range keys {
		worth[k] = aboveAll + float64(len(keys)-i)
	}
	return worth
}
