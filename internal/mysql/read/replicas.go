package read

import (
	"context"
	sqldriver "database/sql/driver"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// ReplicaChannel is one source that a server replicates from.
type ReplicaChannel struct {
	Name       string // "" for the only one
	SourceHost string
	SourcePort int
	SourceID   string // server_id of the source, "0" if the IO thread never reached it
	SourceUUID string // server_uuid of the source; "" if it never answered, and on MariaDB
	IORunning  bool
	SQLRunning bool
	LastError  string
	Behind     int    // Seconds_Behind_Source; -1: the server does not say
	Delay      int    // seconds that it is configured to stay behind
	GTID       bool   // it finds its position by GTID
	Received   string // transactions that came from the source: Retrieved_Gtid_Set of MySQL, of MariaDB the position Gtid_IO_Pos
	Filter     ReplicaFilter
	Status     fleet.Channel // the same channel as findings tell of it
	IOState    string        // what its threads do, in the server's words
	SQLState   string
	SourceLog  string // up to where it received the source's binary log
	SourcePos  int64
	RelayBytes int64 // of relay logs on its disk
	TLS        fleet.ChannelTLS
	User       string // as whom it logs in at the source
	RelayLog   string // from where in its relay logs it applies next
	RelayPos   int64
	Beats      int64         // heartbeats of the source that came; only of OuterChannels on MySQL
	BeatEvery  float64       // seconds after which the source sends one if it has sent nothing else; 0: never, or it is not known
	Retry      time.Duration // how often it tries to connect
	Tries      int           // after how many of these it gives up; 0: never, or it is not known
}

// ReplicaFilter is what a replica leaves out. Source: MySQL manual, "How Servers Evaluate Replication Filtering Rules".
type ReplicaFilter struct {
	DoDB, IgnoreDB, DoTable, IgnoreTable, WildDo, WildIgnore, Rewrite []string
}

// None reports whether everything passes the filter.
func (f ReplicaFilter) None() bool { return f.String() == "" }

// String names the settings that are set.
func (f ReplicaFilter) String() string {
	var set []string
	for _, l := range []struct {
		name string
		list []string
	}{{"replicate_do_db", f.DoDB}, {"replicate_ignore_db", f.IgnoreDB}, {"replicate_do_table", f.DoTable}, {"replicate_ignore_table", f.IgnoreTable},
		{"replicate_wild_do_table", f.WildDo}, {"replicate_wild_ignore_table", f.WildIgnore}, {"replicate_rewrite_db", f.Rewrite}} {
		if len(l.list) > 0 {
			set = append(set, l.name+"="+strings.Join(l.list, ","))
		}
	}
	return strings.Join(set, " ")
}

// Passes reports whether row events of a table pass the filter.
func (f ReplicaFilter) Passes(schema, table string) bool {
	full := schema + "." + table
	switch {
	case len(f.DoDB) > 0:
		if !slices.Contains(f.DoDB, schema) {
			return false
		}
	case slices.Contains(f.IgnoreDB, schema):
		return false
	}
	like := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return sqltext.Like(p, full) })
	}
	switch {
	case slices.Contains(f.DoTable, full):
		return true
	case slices.Contains(f.IgnoreTable, full):
		return false
	case like(f.WildDo):
		return true
	case like(f.WildIgnore):
		return false
	}
	return len(f.DoTable) == 0 && len(f.WildDo) == 0
}

// ReplicaChannels reads the sources that the server replicates from; a primary has none.
func ReplicaChannels(ctx context.Context, c *mysql.Conn) ([]ReplicaChannel, error) {
	rows, err := c.Maps(ctx, c.Server.ReplicaStatusStatement())
	if err != nil {
		return nil, lacking(c, err, c.Server.ReplicaPrivilege())
	}
	var out []ReplicaChannel
	var status replicaReader
	for _, row := range rows {
		old := make(map[string]string, len(row))
		for k, v := range row {
			if !strings.HasPrefix(k, "Replicate_") { // the filters' columns, which no version renamed
				k = mysql.OldReplicaWords(k)
			}
			old[k] = v
		}
		ch := channelOf(old)
		out, status.Channels = append(out, ch), append(status.Channels, ch.Status)
	}
	if err := status.locate(ctx, c, rows); err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Status = status.Channels[i]
	}
	return out, namedErrors(ctx, c, out)
}

// namedErrors replaces errors of coordinators by those of the appliers that failed: the coordinator may name one that only stopped because another one had failed.
func namedErrors(ctx context.Context, c *mysql.Conn, list []ReplicaChannel) error {
	r := &replicaReader{}
	failed := false
	for _, ch := range list {
		r.Channels = append(r.Channels, ch.Status)
		failed = failed || ch.Status.SQL.Text != ""
	}
	if !failed || !c.Server.HasUUID() {
		return nil
	}
	err := r.workers(ctx, c)
	for i := range list {
		list[i].Status.SQL = r.Channels[i].SQL
	}
	return err
}

func channelOf(old map[string]string) ReplicaChannel {
	list := func(name string) []string {
		if old[name] == "" {
			return nil
		}
		parts := strings.Split(old[name], ",")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		return parts
	}
	ch := ReplicaChannel{
		Name: old["Channel_Name"] + old["Connection_name"], SourceHost: old["Master_Host"], SourceID: old["Master_Server_Id"], SourceUUID: old["Master_UUID"],
		IORunning: old["Slave_IO_Running"] == "Yes", SQLRunning: old["Slave_SQL_Running"] == "Yes", Behind: -1,
		Received: strings.ReplaceAll(old["Retrieved_Gtid_Set"]+old["Gtid_IO_Pos"], "\n", ""),
		GTID:     old["Auto_Position"] == "1" || old["Using_Gtid"] != "" && old["Using_Gtid"] != "No",
		Filter: ReplicaFilter{DoDB: list("Replicate_Do_DB"), IgnoreDB: list("Replicate_Ignore_DB"), DoTable: list("Replicate_Do_Table"),
			IgnoreTable: list("Replicate_Ignore_Table"), WildDo: list("Replicate_Wild_Do_Table"), WildIgnore: list("Replicate_Wild_Ignore_Table"),
			Rewrite: list("Replicate_Rewrite_DB")},
	}
	ch.SourcePort, _ = strconv.Atoi(old["Master_Port"])
	ch.Delay, _ = strconv.Atoi(old["SQL_Delay"])
	if n, err := strconv.Atoi(old["Seconds_Behind_Master"]); err == nil {
		ch.Behind = n
	}
	ch.Status = channelStatus(old)
	ch.IOState, ch.SQLState = old["Slave_IO_State"], old["Slave_SQL_Running_State"]
	ch.SourceLog, ch.TLS = old["Master_Log_File"], tlsOf(old)
	ch.SourcePos, _ = strconv.ParseInt(old["Read_Master_Log_Pos"], 10, 64)
	ch.RelayBytes, _ = strconv.ParseInt(old["Relay_Log_Space"], 10, 64)
	ch.Beats, _ = strconv.ParseInt(old["Slave_received_heartbeats"], 10, 64)
	ch.BeatEvery, _ = strconv.ParseFloat(old["Slave_heartbeat_period"], 64)
	retry, _ := strconv.Atoi(old["Connect_Retry"])
	ch.Retry = time.Duration(retry) * time.Second
	ch.Tries, _ = strconv.Atoi(old["Master_Retry_Count"])
	ch.User, ch.RelayLog = old["Master_User"], old["Relay_Log_File"]
	ch.RelayPos, _ = strconv.ParseInt(old["Relay_Log_Pos"], 10, 64)
	for _, k := range []string{"Last_SQL_Error", "Last_IO_Error", "Last_Error"} {
		if ch.LastError == "" {
			ch.LastError = withoutValues(old[k])
		}
	}
	return ch
}

// tlsOf is how a channel is encrypted.
func tlsOf(old map[string]string) fleet.ChannelTLS {
	return fleet.ChannelTLS{On: old["Master_SSL_Allowed"] == "Yes", CA: old["Master_SSL_CA_File"], CAPath: old["Master_SSL_CA_Path"], Cert: old["Master_SSL_Cert"], Key: old["Master_SSL_Key"],
		Cipher: old["Master_SSL_Cipher"], CRL: old["Master_SSL_Crl"], CRLPath: old["Master_SSL_Crlpath"], Verify: old["Master_SSL_Verify_Server_Cert"] == "Yes"}
}

// lacking adds a GRANT of the privilege to an error about a missing one.
func lacking(c *mysql.Conn, err error, privilege string) error {
	if mysql.ClassOf(err) != mysql.ClassPrivilege {
		return err
	}
	return &mysql.Error{Target: c.Server.Account, Class: mysql.ClassPrivilege, Err: fleet.WithRemedy(err, c.Server.Grant(privilege))}
}

// ServerID is @@server_id, by which replication knows a server.
func ServerID(ctx context.Context, c *mysql.Conn) (id string, err error) {
	err = c.Query(ctx, "SELECT /* risso: which server is this? */ @@GLOBAL.server_id", func(row []sqldriver.Value) error {
		id = mysql.Text(row[0])
		return nil
	})
	return id, err
}

// ListedReplica is a replica as its source lists it: what it said of itself when it connected.
type ListedReplica struct {
	ServerID string
	UUID     string // server_uuid; "" where it has none
	Host     string // report_host; "": not set
	Port     int    // report_port
}

// ListedReplicas are the replicas that are connected now.
func ListedReplicas(ctx context.Context, c *mysql.Conn) ([]ListedReplica, error) {
	statement := "SHOW /* risso */ SLAVE HOSTS"
	if c.Server.AtLeast(80022, fleet.Never) {
		statement = "SHOW /* risso */ REPLICAS"
	}
	rows, err := c.Maps(ctx, statement)
	if err != nil {
		return nil, dumpError(c, err)
	}
	out := make([]ListedReplica, len(rows))
	for i, row := range rows {
		out[i] = ListedReplica{ServerID: row["Server_Id"] + row["Server_id"], UUID: row["Slave_UUID"] + row["Replica_UUID"], Host: row["Host"]}
		out[i].Port, _ = strconv.Atoi(row["Port"])
	}
	return out, nil
}

// LogReaders are the hosts whose connections read the server's binary log: replicas, and whoever else follows it.
func LogReaders(ctx context.Context, c *mysql.Conn) (hosts []string, err error) {
	list, err := c.Maps(ctx, "SHOW /* risso */ PROCESSLIST")
	if err != nil {
		return nil, err
	}
	for _, row := range list {
		if !strings.HasPrefix(row["Command"], "Binlog Dump") {
			continue
		}
		host, _, err := net.SplitHostPort(row["Host"])
		if err != nil {
			host = row["Host"]
		}
		if host != "" && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts, nil
}

// ReplicaAddresses are the addresses, as host:port, of the replicas that are connected now: those that they report
// (report_host, report_port), or else the hosts that read the binary log, with the primary's port.
func ReplicaAddresses(ctx context.Context, c *mysql.Conn) ([]string, error) {
	list, err := ListedReplicas(ctx, c)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range list {
		if r.Host != "" {
			out = append(out, net.JoinHostPort(r.Host, strconv.Itoa(r.Port)))
		}
	}
	if len(out) == len(list) && len(list) > 0 {
		return out, nil
	}
	hosts, err := LogReaders(ctx, c)
	for _, host := range hosts {
		if a := net.JoinHostPort(host, strconv.Itoa(c.Server.Port)); !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out, err
}

// dumpError adds the privilege that the list of replicas needs.
func dumpError(c *mysql.Conn, err error) error {
	if mysql.ClassOf(err) != mysql.ClassPrivilege {
		return err
	}
	return &mysql.Error{Target: c.Server.Account, Class: mysql.ClassPrivilege,
		Err: fleet.WithRemedy(err, "name the replicas with --replica, or "+c.Server.Grant(c.Server.ListReplicasPrivilege()))}
}
