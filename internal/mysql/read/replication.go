package read

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// replicaReader reads the status of every replication channel.
type replicaReader struct {
	Channels []fleet.Channel
}

func (r *replicaReader) read(ctx context.Context, c *mysql.Conn, s *fleet.Sample) error {
	rows, err := c.Maps(ctx, c.Server.ReplicaStatusStatement())
	if err != nil {
		return err
	}
	r.Channels = r.Channels[:0]
	stopped := false
	for _, row := range rows {
		ch := r.channel(row, s)
		stopped = stopped || ch.SQLRunning != "Yes" && ch.LastErrno != 0
	}
	if stopped && c.Server.PerformanceSchema && c.Server.AtLeast(50700, fleet.Never) {
		return r.workers(ctx, c)
	}
	return nil
}

// workers replaces the coordinator's error, which says only that there was one, by that of the applier that failed first.
// Source: MySQL manual, "The replication_applier_status_by_worker Table".
func (r *replicaReader) workers(ctx context.Context, c *mysql.Conn) error {
	rows, err := c.Maps(ctx, `SELECT /* risso: why does replication not apply? */ CHANNEL_NAME AS channel, LAST_ERROR_NUMBER AS number, LAST_ERROR_MESSAGE AS message
FROM performance_schema.replication_applier_status_by_worker WHERE LAST_ERROR_NUMBER <> 0 ORDER BY LAST_ERROR_TIMESTAMP DESC`)
	switch mysql.ClassOf(err) {
	case "":
	case mysql.ClassPrivilege, mysql.ClassMissing, mysql.ClassOther: // the coordinator's error has to do
		return nil
	default:
		return err
	}
	for _, row := range rows {
		for i := range r.Channels {
			if ch := &r.Channels[i]; ch.Name == row["channel"] && ch.SQLRunning != "Yes" {
				ch.LastError = row["message"]
				ch.LastErrno, _ = strconv.Atoi(row["number"])
			}
		}
	}
	return nil
}

func (r *replicaReader) channel(row map[string]string, s *fleet.Sample) fleet.Channel {
	old := make(map[string]string, len(row))
	for k, v := range row {
		old[mysql.OldReplicaWords(k)] = v
	}
	ch := fleet.Channel{
		Name: old["Channel_Name"] + old["Connection_name"], Source: net.JoinHostPort(old["Master_Host"], old["Master_Port"]),
		IORunning: old["Slave_IO_Running"], SQLRunning: old["Slave_SQL_Running"],
	}
	for _, k := range []string{"Last_SQL_Err", "Last_IO_Err", "Last_Err"} {
		if ch.LastError == "" {
			ch.LastError = old[k+"or"]
			ch.LastErrno, _ = strconv.Atoi(old[k+"no"])
		}
	}
	r.Channels = append(r.Channels, ch)
	labels := []fleet.Label{
		{Name: "channel_name", Value: old["Channel_Name"]}, {Name: "connection_name", Value: old["Connection_name"]},
		{Name: "master_host", Value: old["Master_Host"]}, {Name: "master_uuid", Value: old["Master_UUID"]},
	}
	for column, value := range old {
		v, ok := number(sqldriver.Value([]byte(value)))
		if !ok || strings.HasPrefix(column, "Replicate_") || strings.Contains(column, "SSL") {
			continue
		}
		s.Values[s.Position(replicaMetric(column, labels))] = v
	}
	return ch
}

func replicaMetric(column string, labels []fleet.Label) fleet.Metric {
	m := fleet.Metric{Name: "mysql_slave_status_" + strings.ToLower(column), Labels: labels, Source: "SHOW REPLICA STATUS", Help: column}
	switch column {
	case "Relay_Log_Space", "Read_Master_Log_Pos", "Exec_Master_Log_Pos", "Relay_Log_Pos":
		m.Unit = "bytes"
	case "Seconds_Behind_Master", "SQL_Delay", "Connect_Retry", "Slave_heartbeat_period":
		m.Unit = "seconds"
	case "Retried_transactions", "Slave_received_heartbeats", "Slave_DDL_Groups", "Slave_Non_Transactional_Groups", "Slave_Transactional_Groups":
		m.Counter = true
	}
	return m
}

// Lag is how far a replica is behind its source, beyond the delay that it is configured to keep: the longest of its channels, or
// negative if one of them is not running. known is false if the server does not replicate.
func Lag(ctx context.Context, c *mysql.Conn) (lag time.Duration, known bool, err error) {
	rows, err := c.Maps(ctx, c.Server.ReplicaStatusStatement())
	if err != nil {
		return 0, false, fmt.Errorf("ask how far the replica is: %w", err)
	}
	for _, row := range rows {
		text, there := row["Seconds_Behind_Master"]
		if !there {
			text, there = row["Seconds_Behind_Source"]
		}
		if !there {
			return -1, true, nil // NULL: one of its threads is not running
		}
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, false, fmt.Errorf("%q is no lag", text)
		}
		delay, _ := strconv.ParseInt(row["SQL_Delay"], 10, 64)
		lag = max(lag, time.Duration(seconds-delay)*time.Second)
	}
	return lag, len(rows) > 0, nil
}

// IsReplica reports whether the server is configured to replicate from another.
func IsReplica(ctx context.Context, c *mysql.Conn) (bool, error) {
	rows, err := c.Maps(ctx, c.Server.ReplicaStatusStatement())
	return len(rows) > 0, err
}
