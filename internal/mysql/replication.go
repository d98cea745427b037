package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"net"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// replicaReader reads the status of every replication channel.
type replicaReader struct {
	Channels []fleet.Channel
}

// replicaWords turns the words of MySQL 8.0.22 and later into those before.
var replicaWords = strings.NewReplacer("Replica_", "Slave_", "Source_", "Master_", "_Source", "_Master", "Replica", "Slave")

// OldReplicaWords is the name of a column of SHOW REPLICA STATUS as servers before MySQL 8.0.22 have it, and MariaDB.
func OldReplicaWords(column string) string { return replicaWords.Replace(column) }

func (r *replicaReader) read(ctx context.Context, c *Conn, s *fleet.Sample) error {
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
	if stopped && c.Server.PerformanceSchema && c.Server.atLeast(50700) {
		return r.workers(ctx, c)
	}
	return nil
}

// workers puts the error of the applier that failed first in the place of the coordinator's, which says only that there was one.
// Source: MySQL manual, "The replication_applier_status_by_worker Table".
func (r *replicaReader) workers(ctx context.Context, c *Conn) error {
	rows, err := c.Maps(ctx, `SELECT /* risso: why does replication not apply? */ CHANNEL_NAME AS channel, LAST_ERROR_NUMBER AS number, LAST_ERROR_MESSAGE AS message
FROM performance_schema.replication_applier_status_by_worker WHERE LAST_ERROR_NUMBER <> 0 ORDER BY LAST_ERROR_TIMESTAMP DESC`)
	switch ClassOf(err) {
	case "":
	case ClassPrivilege, ClassMissing, ClassOther: // the coordinator's words have to do
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
		old[OldReplicaWords(k)] = v
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
