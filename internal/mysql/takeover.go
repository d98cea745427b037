package mysql

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// This file has the statements that make a replica the primary, and a primary a replica.

// Following is a channel as it is made anew, by GTID.
type Following struct {
	Host, User, Password string
	Port                 int
	TLS                  fleet.ChannelTLS
	Heartbeat            time.Duration // how often the source says that it lives; 0: as the server has it
}

// Follow is the statement that lets a server replicate from another by its only channel. It has the password in it: it belongs into no message. Sources: MySQL
// manual, "CHANGE REPLICATION SOURCE TO Statement"; MariaDB documentation, "CHANGE MASTER TO".
func (s Server) Follow(f Following) string {
	begin, _, word := s.changeSource("")
	list := []string{word + "_HOST = " + Literal(f.Host), word + "_PORT = " + strconv.Itoa(f.Port), word + "_USER = " + Literal(f.User), word + "_PASSWORD = " + Literal(f.Password)}
	list = append(list, s.lasting(word)...)
	if f.Heartbeat > 0 {
		list = append(list, fmt.Sprintf("%s_HEARTBEAT_PERIOD = %.3f", word, f.Heartbeat.Seconds()))
	}
	switch {
	case s.MariaDB():
		list = append(list, "MASTER_USE_GTID = slave_pos")
	default:
		list = append(list, word+"_AUTO_POSITION = 1")
	}
	switch {
	case f.TLS.On:
		list = append(list, secured(word, f.TLS)...)
	case s.MariaDB() && s.Number >= 110400: // it would ask for a certificate that it can verify
		list = append(list, "MASTER_SSL = 0")
	case s.atLeast(80004): // its accounts want the password over TLS, or by the source's key
		list = append(list, "GET_"+word+"_PUBLIC_KEY = 1")
	}
	return begin + strings.Join(list, ", ")
}

// secured are the options by which a channel is encrypted. Whether the name in the certificate is compared is always said: servers have different defaults.
func secured(word string, t fleet.ChannelTLS) []string {
	verify := 0
	if t.Verify {
		verify = 1
	}
	list := []string{word + "_SSL = 1", fmt.Sprintf("%s_SSL_VERIFY_SERVER_CERT = %d", word, verify)}
	for _, o := range []struct{ name, value string }{{"CA", t.CA}, {"CAPATH", t.CAPath}, {"CERT", t.Cert}, {"KEY", t.Key}, {"CIPHER", t.Cipher}, {"CRL", t.CRL}, {"CRLPATH", t.CRLPath}} {
		if o.value != "" {
			list = append(list, word+"_SSL_"+o.name+" = "+Literal(o.value))
		}
	}
	return list
}

// Demote is the statement that lets a primary count what it wrote as replicated, so that it asks its source for what comes after that; "" where it does so by
// itself. Source: MariaDB documentation, "gtid_slave_pos".
func (s Server) Demote() string {
	if s.MariaDB() {
		return "SET GLOBAL /* risso: what it wrote it need not get */ gtid_slave_pos = @@GLOBAL.gtid_current_pos"
	}
	return ""
}

// StopAll are the statements that stop and remove all channels.
func (s Server) StopAll() []string {
	if s.MariaDB() {
		return []string{"STOP ALL SLAVES", s.ForgetChannels()}
	}
	return []string{s.StopReplica(""), s.ForgetChannels()}
}

// Open are the statements that let clients write.
func (s Server) Open() []string {
	const all = "read_only"
	list := []string{"SET GLOBAL /* risso: it is the primary */ " + all + " = OFF"}
	if v := s.ReadOnlyVariable(); v != all {
		list = append([]string{"SET GLOBAL /* risso: it is the primary */ " + v + " = OFF"}, list...)
	}
	return list
}

// Shut is the statement that lets no client write: of a server without super_read_only none but those with special privileges.
func (s Server) Shut() string {
	return "SET GLOBAL /* risso: it is not the primary */ " + s.ReadOnlyVariable() + " = ON"
}

// WaitApplied waits until a server has applied all of a set; false: it did not within d. Sources: MySQL manual, "WAIT_FOR_EXECUTED_GTID_SET"; MariaDB
// documentation, "MASTER_GTID_WAIT".
func WaitApplied(ctx context.Context, c *Conn, set GTIDSet, d time.Duration) (bool, error) {
	if set.Empty() {
		return true, nil
	}
	function, wanted := "WAIT_FOR_EXECUTED_GTID_SET", set.String()
	if c.Server.MariaDB() {
		var err error
		function = "MASTER_GTID_WAIT"
		if wanted, err = unwritten(ctx, c, set); err != nil || wanted == "" {
			return err == nil, err
		}
	}
	text, err := c.Text(ctx, fmt.Sprintf("SELECT /* risso: is it applied? */ %s(%s, %.3f)", function, Literal(wanted), d.Seconds()))
	return text == "0", err
}

// unwritten is what a MariaDB did not write itself of a set. MASTER_GTID_WAIT looks at gtid_slave_pos alone: for what the server wrote as the primary that it was, and it asks its source to go
// on behind, it would wait for good (MariaDB documentation, "MASTER_GTID_WAIT", "gtid_slave_pos").
func unwritten(ctx context.Context, c *Conn, set GTIDSet) (string, error) {
	rows, err := c.Maps(ctx, "SELECT /* risso: what has it written itself? */ @@GLOBAL.gtid_binlog_state AS state, @@GLOBAL.server_id AS id")
	if err != nil || len(rows) == 0 {
		return "", err
	}
	logged, err := ParseBinlogState(rows[0]["state"])
	var list []string
	for _, g := range set.Domains() {
		if fmt.Sprint(g.Server) != rows[0]["id"] || !logged.Contains(g) {
			list = append(list, g.String())
		}
	}
	return strings.Join(list, ","), err
}

// StandingQuery asks in one row whether a server takes writes (closed), who it is (uuid), and which transactions it has had (executed, as ExecutedTransactions).
func (s Server) StandingQuery() string {
	if s.MariaDB() {
		return "SELECT /* risso: where does it stand? */ IF(@@GLOBAL.read_only IN ('0', 'OFF'), 0, 1) AS closed, @@GLOBAL.server_id AS uuid, @@GLOBAL.gtid_binlog_state AS executed"
	}
	return "SELECT /* risso: where does it stand? */ @@GLOBAL.read_only AS closed, @@GLOBAL.server_uuid AS uuid, @@GLOBAL.gtid_executed AS executed"
}

// AroundPointing are the statements before and after one that changes how a channel receives. MariaDB needs all of the channel to stand, and fetches again what it
// had not applied; MySQL needs only the thread that receives.
func (s Server) AroundPointing(channel string) (stop, start string) {
	if s.MariaDB() {
		return s.StopReplica(channel), s.StartReplica(channel)
	}
	return s.StopThread(channel, Receiver), s.StartThread(channel, Receiver)
}

// Farewell is the variable that says for how many seconds at most a semi-synchronous receiver that is being stopped tries to end its session on its source; "" where none does. A
// source that hangs lets it wait all that time, but 2 s at most: STOP SLAVE interrupts it then (seen on MariaDB 10.11). Source: MariaDB documentation,
// "Semisynchronous Replication", "rpl_semi_sync_slave_kill_conn_timeout".
func (s Server) Farewell() string {
	if s.MariaDB() {
		return "rpl_semi_sync_slave_kill_conn_timeout"
	}
	return ""
}

// SetFarewell is the statement that gives it a value. 1 is the least: with 0 nothing bounds it, and STOP SLAVE may wait until the source answers (seen on MariaDB 10.11).
func (s Server) SetFarewell(seconds string) string {
	return "SET GLOBAL /* risso: stop without waiting for a source that is silent */ " + s.Farewell() + " = " + SettingText(seconds)
}

// Silence is the variable that says after how many seconds without a word from its source a receiver connects anew. One that is connecting to a source which hangs is stopped only
// after 2 s, one that reads at once: the first signal of STOP REPLICA is lost on the former, and KILL does not reach it either (seen on MySQL 9.7). The value is that of the
// receiver's start. Source: MySQL manual, "replica_net_timeout".
func (s Server) Silence() string {
	if s.atLeast(80026) {
		return "replica_net_timeout"
	}
	return "slave_net_timeout"
}

// RowSchema is the schema in which Risso writes who the primary is.
const RowSchema = "risso"

// RowTableQuery asks whether the table of RowTable is there: 1, or 0.
const RowTableQuery = "SELECT /* risso: is there a table for who is the primary? */ COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = '" + RowSchema + "' AND TABLE_NAME = 'primaries'"

// RowTable are the statements that make a table with a row for each group: who is its primary, as of which epoch.
func RowTable() []string {
	return []string{"CREATE DATABASE IF NOT EXISTS " + RowSchema + " /* risso: who is the primary? */",
		"CREATE TABLE IF NOT EXISTS " + RowSchema + ".primaries /* risso: who is the primary? */ (group_name VARCHAR(64) NOT NULL PRIMARY KEY, epoch BIGINT UNSIGNED NOT NULL, server VARCHAR(255) NOT NULL, since DATETIME NOT NULL) ENGINE = InnoDB"}
}

// PrimaryRow writes who is the primary of a group.
func PrimaryRow(group string, epoch uint64, server string) string {
	return fmt.Sprintf("INSERT INTO %s.primaries /* risso: it is the primary */ (group_name, epoch, server, since) VALUES (%s, %d, %s, UTC_TIMESTAMP()) ON DUPLICATE KEY UPDATE epoch = %[3]d, server = %[4]s, since = UTC_TIMESTAMP()",
		RowSchema, Literal(group), epoch, Literal(server))
}

// PrimaryRowQuery asks for the epoch that PrimaryRow wrote.
func PrimaryRowQuery(group string) string {
	return "SELECT /* risso: did it arrive? */ epoch FROM " + RowSchema + ".primaries WHERE group_name = " + Literal(group)
}

// takeoverPrivileges are what replacing a primary needs beyond fencing: to stop, point and start replicas, as which account they log in, and to let events of others run.
// Sources: MySQL manual, "Privileges Provided by MySQL"; MariaDB's GRANT, "Global Privileges".
func (s Server) takeoverPrivileges() []string {
	list := []string{"REPLICATION SLAVE", "RELOAD", "EVENT"}
	switch {
	case s.MariaDB() && s.Number >= 100502:
		return append(list, "REPLICATION SLAVE ADMIN", "SET USER", "BINLOG ADMIN")
	case s.MariaDB():
		return append(list, "SUPER")
	case s.atLeast(80200):
		return append(list, "REPLICATION_SLAVE_ADMIN", "SYSTEM_VARIABLES_ADMIN", "SET_ANY_DEFINER")
	case s.atLeast(80018):
		return append(list, "REPLICATION_SLAVE_ADMIN", "SYSTEM_VARIABLES_ADMIN", "SET_USER_ID")
	}
	return append(list, "SUPER")
}

// AboutTheWay reports whether an error of a replica's receiver is about the way to its source, or about a source that is being shut: such a one comes when the source dies. Others, as of
// its account or of logs that are gone, stood before, and say nothing of that.
func AboutTheWay(number int) bool {
	switch number {
	case 0, errno.CannotConnectSocket, errno.CannotConnect, errno.UnknownHost, errno.ConnectionGone, errno.ConnectionLost, errno.ConnectionLostWhile, errno.ServerShutdown:
		return true
	}
	return false
}
