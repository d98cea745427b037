package read

import (
	"context"
	sqldriver "database/sql/driver"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
)

// SemiSync is how a server stands to semi-synchronous replication.
type SemiSync struct {
	Source  SemiSyncSource
	Replica SemiSyncReplica
}

// SemiSyncSource is the side that waits for acknowledgements.
type SemiSyncSource struct {
	Names     mysql.SemiSyncSide `json:"-"`
	Loaded    bool               `json:"loaded"`               // built in, or its plug-in is
	Enabled   bool               `json:"enabled"`              // switched on
	Timeout   int64              `json:"timeout_ms"`           // after which it goes on without
	WaitNone  bool               `json:"wait_none"`            // it waits though fewer replicas are connected than have to acknowledge
	WaitPoint string             `json:"wait_point,omitempty"` // AFTER_SYNC or AFTER_COMMIT
	Count     int64              `json:"count"`                // replicas that have to acknowledge

	InForce   bool    `json:"in_force"`          // commits wait now
	Clients   int64   `json:"clients"`           // replicas that can acknowledge
	Waiting   int64   `json:"waiting"`           // sessions that wait now
	Yes       int64   `json:"acknowledged"`      // commits that a replica acknowledged
	No        int64   `json:"not_acknowledged"`  // commits that went on without
	FellBack  int64   `json:"fell_back"`         // how often it went on without
	TxWaits   int64   `json:"waits"`             // commits that waited
	TxMicros  float64 `json:"wait_microseconds"` // all together
	NetMicros float64 `json:"net_microseconds"`  // until an acknowledgement came, all together
	NetWaits  int64   `json:"net_waits"`         // acknowledgements that were waited for
}

// SemiSyncReplica is the side that acknowledges.
type SemiSyncReplica struct {
	Names   mysql.SemiSyncSide `json:"-"`
	Loaded  bool               `json:"loaded"`   // built in, or its plug-in is
	Enabled bool               `json:"enabled"`  // switched on
	InForce bool               `json:"in_force"` // its connection to the source acknowledges
}

// SemiSyncNow reads it.
func SemiSyncNow(ctx context.Context, c *mysql.Conn) (s SemiSync, err error) {
	values := map[string]string{}
	for _, what := range []string{"VARIABLES", "STATUS"} {
		err := c.Query(ctx, "SHOW /* risso: semi-sync? */ GLOBAL "+what+" LIKE 'rpl_semi_sync%'", func(row []sqldriver.Value) error {
			values[what+" "+strings.ToLower(mysql.Text(row[0]))] = mysql.Text(row[1])
			return nil
		})
		if err != nil {
			return s, err
		}
	}
	sources, replicas := c.Server.SemiSyncSides()
	loaded := func(list []mysql.SemiSyncSide) (mysql.SemiSyncSide, bool) {
		for _, side := range list {
			if _, ok := values["VARIABLES "+side.Prefix+"_enabled"]; ok {
				return side, true
			}
		}
		return list[0], false
	}
	s.Source.Names, s.Source.Loaded = loaded(sources)
	s.Replica.Names, s.Replica.Loaded = loaded(replicas)
	number := func(kind string, names mysql.SemiSyncSide, end string) int64 {
		n, _ := numberOf([]byte(values[kind+" "+names.Prefix+"_"+end]))
		return int64(n)
	}
	on := func(kind string, names mysql.SemiSyncSide, end string) bool {
		return strings.EqualFold(values[kind+" "+names.Prefix+"_"+end], "ON")
	}
	n := s.Source.Names
	s.Source.Enabled, s.Source.Timeout, s.Source.WaitNone = on("VARIABLES", n, "enabled"), number("VARIABLES", n, "timeout"), on("VARIABLES", n, n.None)
	s.Source.WaitPoint, s.Source.Count = values["VARIABLES "+n.Prefix+"_wait_point"], 1
	if n.Count != "" && s.Source.Loaded {
		s.Source.Count = number("VARIABLES", n, n.Count)
	}
	s.Source.InForce, s.Source.Clients, s.Source.Waiting = on("STATUS", n, "status") && s.Source.Enabled, number("STATUS", n, "clients"), number("STATUS", n, "wait_sessions")
	s.Source.Yes, s.Source.No, s.Source.FellBack = number("STATUS", n, "yes_tx"), number("STATUS", n, "no_tx"), number("STATUS", n, "no_times")
	s.Source.TxWaits, s.Source.TxMicros = number("STATUS", n, "tx_waits"), float64(number("STATUS", n, "tx_wait_time"))
	s.Source.NetWaits, s.Source.NetMicros = number("STATUS", n, "net_waits"), float64(number("STATUS", n, "net_wait_time"))
	m := s.Replica.Names
	s.Replica.Enabled, s.Replica.InForce = on("VARIABLES", m, "enabled"), on("STATUS", m, "status")
	return s, nil
}
