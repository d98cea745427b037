package state

import (
	"context"
	"database/sql"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// InstanceRecord is an instance and when Risso saw it.
type InstanceRecord struct {
	fleet.Instance
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
}

// SaveInstance stores what is known of an instance that was seen at a time. The
// first sight stays, the last one only moves on.
func (s *Store) SaveInstance(ctx context.Context, i fleet.Instance, seen time.Time) error {
	return s.change(ctx, "save instance "+i.ID, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO instances (id, name, kind, address, flavour, version, role, host_id, first_seen, last_seen)
			VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?9)
			ON CONFLICT (id) DO UPDATE SET name=?2, kind=?3, address=?4, flavour=?5, version=?6, role=?7, host_id=?8,
			first_seen=min(first_seen, ?9), last_seen=max(last_seen, ?9)`,
			i.ID, i.Name, string(i.Kind), i.Address, string(i.Flavour), i.Version, string(i.Role), i.HostID, stamp(seen))
		return err
	})
}

// Instances lists all instances ever seen, by id.
func (s *Store) Instances(ctx context.Context) ([]InstanceRecord, error) {
	var out []InstanceRecord
	err := s.each(ctx, "list instances", func(r *sql.Rows) error {
		var i InstanceRecord
		var kind, flavour, role string
		var first, last int64
		if err := r.Scan(&i.ID, &i.Name, &kind, &i.Address, &flavour, &i.Version, &role, &i.HostID, &first, &last); err != nil {
			return err
		}
		i.Kind, i.Flavour, i.Role = fleet.Kind(kind), fleet.Flavour(flavour), fleet.Role(role)
		i.FirstSeen, i.LastSeen = fromStamp(first), fromStamp(last)
		out = append(out, i)
		return nil
	}, `SELECT id, name, kind, address, flavour, version, role, host_id, first_seen, last_seen FROM instances ORDER BY id`)
	return out, err
}
