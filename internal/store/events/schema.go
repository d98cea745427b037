package events

import (
	"context"
	"fmt"
	"strings"
)

// maxSchemas is how many schemas a question may name.
const maxSchemas = 100

// inSchemas is the condition that rows ran in one of the schemas, with its arguments; empty for all.
func inSchemas(schemas []string) (string, []any) {
	if len(schemas) == 0 {
		return "", nil
	}
	args := make([]any, len(schemas))
	for i, s := range schemas {
		args[i] = s
	}
	return " WHERE db IN (" + strings.Trim(strings.Repeat("?,", len(schemas)), ",") + ")", args
}

// Schemas returns what ran in each default schema.
func (a asker) Schemas(ctx context.Context, r Range, instances []string) ([]Part, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	ctx, leave, err := a.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var list []Part
	err = a.b.query(ctx, fmt.Sprintf("SELECT db, toInt64(sum(calls)), toFloat64(sum(seconds)) AS cost FROM %s GROUP BY db ORDER BY cost DESC, db LIMIT %d",
		a.source(a.pieces(r, sums), filter{instances: instances}), maxParts), nil, func(scan func(...any) error) error {
		var p Part
		if err := scan(&p.Value, &p.Calls, &p.Seconds); err != nil {
			return err
		}
		list = append(list, p)
		return nil
	})
	return list, wrap("sum up by schema", err)
}

// countFlips tells for each class of a list how often its plan flipped in the range.
func (a asker) countFlips(ctx context.Context, q TopQuestion, out *TopAnswer, keys []int64) error {
	flips, err := a.flips(ctx, q.Range, filter{instances: q.Instances, classes: keys})
	if err != nil {
		return err
	}
	for i, k := range keys {
		out.Classes[i].Flips = len(flips[k])
	}
	return nil
}
