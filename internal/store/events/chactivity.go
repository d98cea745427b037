package events

import (
	"context"
	"fmt"
)

// chActivity is the table of what sessions were found doing.
const chActivity = `CREATE TABLE IF NOT EXISTS risso_activity (instance String, time Int64, class Int64, wait String, db String, account String, host String, blocker Int64, calls Int64, seconds Float64)
 ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMM(toDateTime(time)) ORDER BY (class, instance, time, wait, db, account, host, blocker)`

// AddActivity stores what sessions were found doing. A minute that is stored again while its block is on the way counts once,
// because the key of the table is the whole row.
func (s *server) AddActivity(ctx context.Context, minutes ...ActivityMinute) (stored int, err error) {
	list, err := checkActivity(minutes)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh, err := freshActivity(list, func(r Range, found func(string, int64)) error {
		return s.query(ctx, "SELECT DISTINCT instance, time FROM risso_activity WHERE "+filter{}.where(r), nil, func(scan func(...any) error) error {
			var instance string
			var time int64
			if err := scan(&instance, &time); err != nil {
				return err
			}
			found(instance, time)
			return nil
		})
	})
	for i := 0; err == nil && i < len(fresh); i++ { // a block each: whole or not at all
		err = s.insert(ctx, "risso_activity ("+activityColumns+")", func(add func(...any) error) error {
			return eachActivity(fresh[i:i+1], add)
		})
		if err == nil {
			stored++
		}
	}
	if err != nil {
		return stored, fmt.Errorf("store what sessions do: %w", err)
	}
	return stored, nil
}
