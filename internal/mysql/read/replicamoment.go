package read

import (
	"cmp"
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// ReplicaMoment is what a replica tells of one channel at one moment. What it does not tell is -1, or empty.
type ReplicaMoment struct {
	fleet.Channel // Log and Pos: up to where it has applied the source's log

	SourceServerID    string // server_id of the source; "0" if it was never reached
	IOState, SQLState string // what its threads do, in the server's words
	Said              int    // Seconds_Behind_Source
	Delay, DelayLeft  int    // seconds that it is to stay behind, and how long the next transaction still waits for that
	ReadLog           string // the source's log up to which it has received
	ReadPos           int64
	RelayLog          string // where in its own relay log it applies
	RelayPos          int64
	RelaySpace        int64
	Received, Applied mysql.GTIDSet     // empty without GTIDs; of MariaDB Gtid_IO_Pos and gtid_slave_pos, which the replica's own writes leave alone
	Logged            mysql.BinlogState // MariaDB: whose transactions its own binary log has had
	Heartbeat         float64           // seconds since the source last said that it lives, as SignOfLife has it
	HeartbeatEvery    float64
}

// Receives reports whether the thread that receives is connected.
func (m ReplicaMoment) Receives() bool { return strings.EqualFold(m.IORunning, "Yes") }

// Applies reports whether the thread that applies runs.
func (m ReplicaMoment) Applies() bool { return strings.EqualFold(m.SQLRunning, "Yes") }

// ReplicaMoments reads all channels of a replica; a server that does not replicate has none.
func ReplicaMoments(ctx context.Context, c *mysql.Conn) ([]ReplicaMoment, error) {
	rows, err := c.Maps(ctx, c.Server.ReplicaStatusStatement())
	if err != nil {
		return nil, lacking(c, err, c.Server.ReplicaPrivilege())
	}
	var r replicaReader
	if err := r.take(ctx, c, rows, new(fleet.Sample)); err != nil {
		return nil, err
	}
	beats, err := SignsOfLife(ctx, c)
	if err != nil {
		return nil, err
	}
	var position, logged string
	if len(rows) > 0 && c.Server.GTIDsByDomain() {
		err := c.Query(ctx, "SELECT /* risso: up to where is it applied? */ @@GLOBAL.gtid_slave_pos, @@GLOBAL.gtid_binlog_state", func(row []sqldriver.Value) error {
			position, logged = mysql.Text(row[0]), mysql.Text(row[1])
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("ask up to where it is applied: %w", err)
		}
	}
	list := make([]ReplicaMoment, len(rows))
	for i, row := range rows {
		if list[i], err = momentOf(c.Server, row, r.Channels[i], position, logged); err != nil {
			return nil, err
		}
		if b, ok := beats[list[i].Name]; ok {
			list[i].Heartbeat, list[i].HeartbeatEvery = b.Age, b.Every
		}
	}
	return list, nil
}

// momentOf reads a row. position and logged are gtid_slave_pos and gtid_binlog_state of a MariaDB: what it shows in the row as Gtid_Slave_Pos is its
// gtid_current_pos, which own writes push on. Source: sql/slave.cc, show_all_master_info.
func momentOf(s mysql.Server, row map[string]string, ch fleet.Channel, position, logged string) (ReplicaMoment, error) {
	old := make(map[string]string, len(row))
	for k, v := range row {
		old[mysql.OldReplicaWords(k)] = v
	}
	count := func(name string) int64 {
		n, err := strconv.ParseInt(old[name], 10, 64)
		if err != nil {
			return -1
		}
		return n
	}
	m := ReplicaMoment{
		Channel: ch, SourceServerID: old["Master_Server_Id"], IOState: old["Slave_IO_State"], SQLState: cmp.Or(old["Slave_SQL_Running_State"], old["Slave_SQL_State"]),
		Said: int(count("Seconds_Behind_Master")), Delay: int(max(0, count("SQL_Delay"))), DelayLeft: int(count("SQL_Remaining_Delay")),
		ReadLog: old["Master_Log_File"], ReadPos: count("Read_Master_Log_Pos"), RelayLog: old["Relay_Log_File"], RelayPos: count("Relay_Log_Pos"),
		RelaySpace: count("Relay_Log_Space"), Heartbeat: -1, HeartbeatEvery: -1,
	}
	received, applied := old["Retrieved_Gtid_Set"], old["Executed_Gtid_Set"]
	if s.GTIDsByDomain() {
		received, applied = old["Gtid_IO_Pos"], position
	}
	var err, err2, err3 error
	m.Received, err = mysql.ParseGTIDSet(received)
	m.Applied, err2 = mysql.ParseGTIDSet(applied)
	m.Logged, err3 = mysql.ParseBinlogState(logged)
	if err := errors.Join(err, err2, err3); err != nil {
		return m, fmt.Errorf("read how far the replica is: %w", err)
	}
	if !s.GTIDsByDomain() {
		m.Received = m.Received.Union(m.Applied)
	}
	return m, nil
}

// SignOfLife is when a channel last heard from its source.
type SignOfLife struct {
	Age   float64 // seconds since the last heartbeat, the last transaction that came whole, or the start of the thread that receives; of MySQL 5.7 without transactions
	Every float64 // seconds after which a source that has nothing to send sends a heartbeat
}

// SignsOfLife are, by channel, when it last heard from its source. Channels that do not run, or are in the midst of receiving a transaction, have
// none, nor have those of a server that does not tell: a MariaDB, or one without performance_schema. A source sends a heartbeat only when it has sent nothing
// else for as long.
func SignsOfLife(ctx context.Context, c *mysql.Conn) (map[string]SignOfLife, error) {
	if !c.Server.PerformanceSchema || !c.Server.AtLeast(50700, fleet.Never) {
		return nil, nil
	}
	last, midst := "s.LAST_HEARTBEAT_TIMESTAMP", "0"
	if c.Server.AtLeast(80000, fleet.Never) {
		last, midst = "GREATEST(s.LAST_HEARTBEAT_TIMESTAMP, s.LAST_QUEUED_TRANSACTION_END_QUEUE_TIMESTAMP)", "s.QUEUEING_TRANSACTION <> ''"
	}
	found := map[string]SignOfLife{}
	_, err := allowed(ctx, c, "heartbeats of the source", "", `SELECT /* risso: when did the source last say that it lives? */ s.CHANNEL_NAME, c.HEARTBEAT_INTERVAL,
  LEAST(IFNULL(TIMESTAMPDIFF(MICROSECOND, `+last+`, NOW(6)) / 1e6, 1e9), t.PROCESSLIST_TIME), `+midst+`
FROM performance_schema.replication_connection_status AS s JOIN performance_schema.replication_connection_configuration AS c ON c.CHANNEL_NAME = s.CHANNEL_NAME
  LEFT JOIN performance_schema.threads AS t ON t.THREAD_ID = s.THREAD_ID`, func(row []sqldriver.Value) error {
		every, _ := number(row[1])
		if age, known := number(row[2]); known && mysql.Text(row[3]) == "0" { // it is NULL if the thread does not run
			found[mysql.Text(row[0])] = SignOfLife{Age: max(0, age), Every: every}
		}
		return nil
	})
	return found, err
}

// SourceMoment is how far a source is at one moment.
type SourceMoment struct {
	Executed mysql.GTIDSet
	Logged   mysql.BinlogState // MariaDB: the same by who wrote it
	Log      string
	Pos      int64
}

// SourceNow reads how far the server's own binary log is. Of a MariaDB, Executed is what that log holds, as replicas get it.
func SourceNow(ctx context.Context, c *mysql.Conn) (m SourceMoment, err error) {
	var rows []map[string]string
	err = c.UnlessLogHeld(ctx, func() (err error) { rows, err = c.Maps(ctx, c.Server.LogStatusStatement()); return err })
	if err != nil {
		return m, lacking(c, err, c.Server.LogsPrivilege())
	}
	if len(rows) == 0 {
		return m, errors.New("it writes no binary log")
	}
	m.Log = rows[0]["File"]
	m.Pos, _ = strconv.ParseInt(rows[0]["Position"], 10, 64)
	if m.Executed, err = mysql.LoggedGTIDs(ctx, c); err != nil || !c.Server.GTIDsByDomain() {
		return m, err
	}
	state, err := c.Text(ctx, "SELECT /* risso: whose transactions are they? */ @@GLOBAL.gtid_binlog_state")
	if err != nil {
		return m, err
	}
	m.Logged, err = mysql.ParseBinlogState(state)
	return m, err
}

// Missing is how many transactions of its source a replica has not applied. Of a MariaDB it is what the numbers of each domain say. What the replica wrote
// itself and its source has from it, as in a ring, is not in its position, but in its log.
func (m SourceMoment) Missing(r ReplicaMoment) int64 {
	if len(m.Logged) == 0 {
		return int64(m.Executed.Ahead(r.Applied))
	}
	return int64(m.Logged.Ahead(r.Applied, r.Logged))
}

// RelayedTables are the tables that the transaction at a place in a relay log touches first, as schema.table, and its statement, if that is in the
// log. Only its first events are looked at.
func RelayedTables(ctx context.Context, c *mysql.Conn, m ReplicaMoment) (tables []string, statement string, err error) {
	if m.RelayLog == "" || m.RelayPos <= 0 {
		return nil, "", nil
	}
	of, suffix := "", ""
	switch {
	case m.Name == "":
	case c.Server.GTIDsByDomain():
		of = " " + mysql.Literal(m.Name)
	default:
		suffix = " FOR CHANNEL " + mysql.Literal(m.Name)
	}
	const events = 8 // GTID, BEGIN, the statement, and tables
	rows, err := c.Maps(ctx, fmt.Sprintf("SHOW /* risso: what is it applying? */ RELAYLOG%s EVENTS IN %s FROM %d LIMIT %d%s", of, mysql.Literal(m.RelayLog), m.RelayPos, events, suffix))
	switch mysql.ClassOf(err) {
	case "":
	case mysql.ClassPrivilege, mysql.ClassMissing, mysql.ClassOther: // it stays unknown: the log may be gone meanwhile
		return nil, "", nil
	default:
		return nil, "", err
	}
	for i, row := range rows {
		kind, info := row["Event_type"], row["Info"]
		begins := strings.Contains(strings.ToLower(kind), "gtid")
		switch {
		case begins && i > 0: // the next transaction
			return tables, statement, nil
		case kind == "Table_map":
			_, table, _ := strings.Cut(info, "(")
			if table = strings.TrimSuffix(table, ")"); table != "" && !slices.Contains(tables, table) {
				tables = append(tables, table)
			}
		case kind == "Annotate_rows" || kind == "Rows_query" || kind == "Query" && info != "BEGIN":
			statement = cmp.Or(statement, strings.TrimPrefix(info, "# "))
		}
	}
	return tables, statement, nil
}

// TableKeys says of a table by which keys the rows of row events are found.
type TableKeys struct {
	Known, Primary, Unique, Any bool // Unique: all columns of it NOT NULL
}

// KeysOf reads the keys of a table. Known is false if the account does not see it.
func KeysOf(ctx context.Context, c *mysql.Conn, schema, table string) (k TableKeys, err error) {
	at := "TABLE_SCHEMA = " + mysql.Literal(schema) + " AND TABLE_NAME = " + mysql.Literal(table)
	err = c.Query(ctx, "SELECT /* risso: is the table to be seen? */ 1 FROM information_schema.TABLES WHERE "+at, func([]sqldriver.Value) error {
		k.Known = true
		return nil
	})
	if err != nil {
		return k, err
	}
	nullable, unique := map[string]bool{}, map[string]bool{}
	err = c.Query(ctx, "SELECT /* risso: by which key are rows found? */ INDEX_NAME, NON_UNIQUE, NULLABLE FROM information_schema.STATISTICS WHERE "+at, func(row []sqldriver.Value) error {
		name := mysql.Text(row[0])
		k.Any = true
		k.Primary = k.Primary || name == "PRIMARY"
		unique[name] = mysql.Text(row[1]) == "0"
		nullable[name] = nullable[name] || mysql.Text(row[2]) == "YES"
		return nil
	})
	for name, is := range unique {
		k.Unique = k.Unique || is && !nullable[name]
	}
	return k, err
}
