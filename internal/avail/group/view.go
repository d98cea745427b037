package group

import (
	"encoding/json"
	"time"
)

// Server is a member as clients need to know it.
type Server struct {
	Name    string  `json:"server"`
	Address string  `json:"address"`      // host:port
	ID      string  `json:"id,omitempty"` // server_uuid, of MariaDB server_id; empty: it is not known
	Weight  float64 `json:"weight,omitempty"`
	// Lag is how far it is behind at most; nil: not known.
	Lag *time.Duration `json:"lag_ns,omitempty"`
}

// View is where the clients of a group go, at one moment.
type View struct {
	Group string `json:"group"`
	Epoch uint64 `json:"epoch"` // a higher one is newer, whoever tells it
	// Primary takes writes; nil: nobody does now, as during a failover.
	Primary   *Server   `json:"primary"`
	Replicas  []Server  `json:"replicas"`             // that answer reads, by name
	Since     time.Time `json:"since"`                // since when the primary is it
	Seen      time.Time `json:"seen"`                 // when it was last known to be so
	NoPrimary string    `json:"no_primary,omitempty"` // why there is no primary
	// Unattended says that nobody looks after the group, as somebody deactivated it: who the primary is was not found out since.
	Unattended bool `json:"unattended,omitempty"`
}

// MarshalJSON writes the times in UTC. Within a process they are as time.Now gave them: UTC would take their reading of the monotonic clock, by
// which the age of a view stays right when somebody sets the clock of the machine.
func (v View) MarshalJSON() ([]byte, error) {
	type plain View
	p := plain(v)
	p.Since, p.Seen = v.Since.UTC(), v.Seen.UTC()
	return json.Marshal(p)
}
