package events

import (
	"context"
	"fmt"
)

// Plan returns one plan of a class, as it was seen last.
func (a asker) Plan(ctx context.Context, class, id, instance string) (*Plan, error) {
	k, err := key(class)
	if err != nil {
		return nil, err
	}
	ctx, leave, err := a.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	where := ""
	if instance != "" {
		where = instanceWhere([]string{instance})
	}
	var found *Plan
	err = a.b.query(ctx, fmt.Sprintf(`SELECT instance, db, plan, toInt64(min(first_seen)), toInt64(max(last_seen)) AS last, max(origin), argMax(text, last_seen) FROM risso_plans
 WHERE class = %d AND plan = ?%s GROUP BY instance, db, plan ORDER BY last DESC, instance, db LIMIT 1`, k, where), []any{id}, func(scan func(...any) error) error {
		found = &Plan{Class: class}
		return scan(&found.Instance, &found.Schema, &found.ID, &found.FirstSeen, &found.LastSeen, &found.Origin, &found.Text)
	})
	if err != nil {
		return nil, fmt.Errorf("read a plan: %w", err)
	}
	return found, nil
}
