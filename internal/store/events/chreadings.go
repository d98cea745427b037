package events

import "context"

// chReadings is the table of the minutes that were read.
const chReadings = `CREATE TABLE IF NOT EXISTS risso_readings (instance String, time Int64) ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMM(toDateTime(time)) ORDER BY (instance, time)`

// noteReadings notes which minutes were read; one that is noted twice is one.
func (s *server) noteReadings(ctx context.Context, minutes []Minute) error {
	list, _, _ := readingsOf(minutes)
	if len(list) == 0 {
		return nil
	}
	return s.insert(ctx, "risso_readings (instance, time)", func(add func(...any) error) error {
		for _, r := range list {
			if err := add(r.instance, r.time); err != nil {
				return err
			}
		}
		return nil
	})
}

// prepareReadings fills the table where minutes were stored before it was there: those that hold rows were read.
func (s *server) prepareReadings(ctx context.Context) error {
	var some int64
	err := s.query(ctx, "SELECT toInt64(count()) FROM (SELECT 1 FROM risso_readings LIMIT 1)", nil, func(scan func(...any) error) error { return scan(&some) })
	if err == nil && some == 0 {
		_, err = s.db.ExecContext(ctx, "INSERT INTO risso_readings (instance, time) "+readingsOfRows)
	}
	return err
}
