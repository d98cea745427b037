package read

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sqltext"
)

// replicaReader reads the status of every replication channel.
type replicaReader struct {
	Channels []fleet.Channel
	begins   map[string]string // GTIDs by channel and place in a relay log
}

func (r *replicaReader) read(ctx context.Context, c *mysql.Conn, s *fleet.Sample) error {
	rows, err := c.Maps(ctx, c.Server.ReplicaStatusStatement())
	if err != nil {
		return err
	}
	return r.take(ctx, c, rows, s)
}

// take reads the channels out of a status, and asks which transactions could not be applied.
func (r *replicaReader) take(ctx context.Context, c *mysql.Conn, rows []map[string]string, s *fleet.Sample) error {
	r.Channels = r.Channels[:0]
	for _, row := range rows {
		r.channel(row, s)
	}
	return r.locate(ctx, c, rows)
}

// locate finds the transactions at which channels stopped.
func (r *replicaReader) locate(ctx context.Context, c *mysql.Conn, rows []map[string]string) error {
	if !slices.ContainsFunc(r.Channels, func(ch fleet.Channel) bool { return ch.SQLRunning != "Yes" && ch.SQL.Number != 0 }) {
		return nil
	}
	if c.Server.GTIDsByDomain() {
		return r.relayed(ctx, c, rows)
	}
	if c.Server.PerformanceSchema && c.Server.AtLeast(50700, fleet.Never) {
		return r.workers(ctx, c)
	}
	return nil
}

// relayed finds the GTID of the transaction at which each channel stopped: its event begins in the relay log where the applier is. The
// errors of a MariaDB do not have it. Source: MariaDB documentation, "SHOW RELAYLOG EVENTS".
func (r *replicaReader) relayed(ctx context.Context, c *mysql.Conn, rows []map[string]string) error {
	if r.begins == nil {
		r.begins = map[string]string{}
	}
	for i, row := range rows {
		ch := &r.Channels[i]
		if ch.SQLRunning == "Yes" || ch.SQL.Number == 0 {
			continue
		}
		file, pos := row["Relay_Log_File"], row["Relay_Log_Pos"]
		place := ch.Name + " " + file + ":" + pos
		gtid, known := r.begins[place]
		if _, err := strconv.ParseUint(pos, 10, 64); err != nil || file == "" {
			continue
		}
		if !known {
			name := ""
			if ch.Name != "" {
				name = " " + mysql.Literal(ch.Name)
			}
			events, err := c.Maps(ctx, fmt.Sprintf("SHOW /* risso: which transaction cannot be applied? */ RELAYLOG%s EVENTS IN %s FROM %s LIMIT 1", name, mysql.Literal(file), pos))
			switch mysql.ClassOf(err) {
			case "":
			case mysql.ClassPrivilege, mysql.ClassMissing, mysql.ClassOther: // it stays unknown
			default:
				return err
			}
			for _, e := range events {
				if m := domainGTID.FindStringSubmatch(e["Info"]); m != nil {
					gtid = m[1]
				}
			}
			clear(r.begins)
			r.begins[place] = gtid
		}
		ch.SQL.GTID = gtid
	}
	return nil
}

// workers replaces the coordinator's error, which says only that there was one, by that of the applier that failed first.
// Source: MySQL manual, "The replication_applier_status_by_worker Table". It is read as it is: MySQL 5.7 finds the wrong rows if it has to
// choose and sort those of several channels.
func (r *replicaReader) workers(ctx context.Context, c *mysql.Conn) error {
	applying := "LAST_SEEN_TRANSACTION" // where one thread applies, its error does not name the transaction
	if c.Server.AtLeast(80000, fleet.Never) {
		applying = "APPLYING_TRANSACTION"
	}
	rows, err := c.Maps(ctx, `SELECT /* risso: why does replication not apply? */ CHANNEL_NAME AS channel, LAST_ERROR_NUMBER AS number, LAST_ERROR_MESSAGE AS message, `+applying+` AS gtid, LAST_ERROR_TIMESTAMP AS at
FROM performance_schema.replication_applier_status_by_worker`)
	switch mysql.ClassOf(err) {
	case "":
	case mysql.ClassPrivilege, mysql.ClassMissing, mysql.ClassOther: // the coordinator's error has to do
		return nil
	default:
		return err
	}
	slices.SortStableFunc(rows, func(a, b map[string]string) int { return strings.Compare(b["at"], a["at"]) }) // the first comes last, and stays
	for _, row := range rows {
		number, _ := strconv.Atoi(row["number"])
		if number == 0 || number == errno.WorkerStoppedBehind {
			continue
		}
		for i := range r.Channels {
			if ch := &r.Channels[i]; ch.Name == row["channel"] && ch.SQLRunning != "Yes" {
				ch.SQL = Described(number, row["message"])
				if ch.SQL.GTID == "" && uuidGTID.MatchString(row["gtid"]) {
					ch.SQL.GTID = row["gtid"]
				}
			}
		}
	}
	return nil
}

func (r *replicaReader) channel(row map[string]string, s *fleet.Sample) {
	old := make(map[string]string, len(row))
	for k, v := range row {
		old[mysql.OldReplicaWords(k)] = v
	}
	ch := channelStatus(old)
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
}

// channelStatus reads a channel from a row of SHOW REPLICA STATUS, its columns named as old servers do.
func channelStatus(old map[string]string) fleet.Channel {
	ch := fleet.Channel{
		Name: old["Channel_Name"] + old["Connection_name"], Source: net.JoinHostPort(old["Master_Host"], old["Master_Port"]),
		SourceID:  old["Master_UUID"],
		IORunning: old["Slave_IO_Running"], SQLRunning: old["Slave_SQL_Running"],
	}
	ch.GTID = old["Auto_Position"] == "1" || old["Using_Gtid"] != "" && old["Using_Gtid"] != "No"
	ch.Log = old["Relay_Master_Log_File"]
	ch.Pos, _ = strconv.ParseInt(old["Exec_Master_Log_Pos"], 10, 64)
	if received, err := strconv.ParseInt(old["Read_Master_Log_Pos"], 10, 64); err == nil && ch.Log != "" && ch.Log == old["Master_Log_File"] {
		ch.Unapplied = max(received-ch.Pos, 0)
	} else {
		ch.Unapplied = -1
	}
	ch.SQL, ch.IO = errorIn(old, "Last_SQL_Err"), errorIn(old, "Last_IO_Err")
	return ch
}

// errorIn reads the columns of an error; those of a thread that runs again are empty.
func errorIn(row map[string]string, column string) fleet.ReplicaError {
	number, _ := strconv.Atoi(row[column+"no"])
	return Described(number, row[column+"or"])
}

// What servers of all versions write into errors of appliers. A GTID of MySQL may have a tag.
var (
	uuidGTID   = regexp.MustCompile(`^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?::[a-z_][a-z0-9_]*)?:[0-9]+$`)
	domainGTID = regexp.MustCompile(`GTID ([0-9]+-[0-9]+-[0-9]+)`)
	inGTID     = regexp.MustCompile(`transaction '([^']+)'`)
	inLog      = regexp.MustCompile(`(?:at (?:master|source) log|the event's (?:master|source) log) ([^ ,]+), end_log_pos ([0-9]+)`)
	onTable    = regexp.MustCompile(`event on table ([^;]+);`)
	noTable    = regexp.MustCompile(`[Tt]able '([^']+)' (?:doesn't exist|already exists)`)
	duplicate  = regexp.MustCompile(`Duplicate entry '.*' for key '([^']+)'`)
)

// Described reads out of an error's text which transaction, table and key it is about.
func Described(number int, text string) fleet.ReplicaError {
	e := fleet.ReplicaError{Number: number, Text: withoutValues(text)}
	if m := inGTID.FindStringSubmatch(text); m != nil && uuidGTID.MatchString(m[1]) {
		e.GTID = m[1]
	}
	if m := inLog.FindStringSubmatch(text); m != nil && m[1] != "FIRST" {
		e.Log = m[1]
		e.Pos, _ = strconv.ParseInt(m[2], 10, 64)
	}
	for _, p := range []*regexp.Regexp{onTable, noTable} {
		if m := p.FindStringSubmatch(text); m != nil && e.Table == "" {
			e.Table = m[1]
		}
	}
	if m := duplicate.FindStringSubmatch(text); m != nil {
		e.Key = m[1]
	}
	return e
}

// quotedStatement is what servers write before the statement that could not be applied.
const quotedStatement = ". Query: '"

// withoutValues is an error's text in which the statement has neither values nor a password: MariaDB quotes CREATE USER … IDENTIFIED BY in full.
func withoutValues(text string) string {
	before, statement, found := strings.Cut(text, quotedStatement)
	if !found {
		return text
	}
	statement, whole := strings.CutSuffix(statement, "'")
	text = before + quotedStatement + string(sqltext.Redact(nil, []byte(statement)))
	if whole { // not cut off by the server
		text += "'"
	}
	return text
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
