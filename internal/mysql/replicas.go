package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sqltext"
)

// ReplicaChannel is one source that a server replicates from.
type ReplicaChannel struct {
	Name       string // "" for the only one
	SourceHost string
	SourcePort int
	SourceID   string // server_id of the source, "0" where the IO thread never reached it
	IORunning  bool
	SQLRunning bool
	LastError  string
	Behind     int  // Seconds_Behind_Source; -1: the server does not tell
	Delay      int  // seconds that it is told to stay behind
	GTID       bool // it finds its place by GTID
	Filter     ReplicaFilter
}

// ReplicaFilter is what a replica leaves out. Source: MySQL manual, "How Servers Evaluate Replication Filtering Rules".
type ReplicaFilter struct {
	DoDB, IgnoreDB, DoTable, IgnoreTable, WildDo, WildIgnore, Rewrite []string
}

// None says whether the filter lets everything pass.
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

// Passes says whether row events of a table pass the filter.
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

// ReplicaChannels gives the sources that the server replicates from; none for a primary.
func (c *Conn) ReplicaChannels(ctx context.Context) ([]ReplicaChannel, error) {
	rows, err := c.Maps(ctx, c.Server.ReplicaStatusStatement())
	if err != nil {
		return nil, c.lacking(err, c.Server.replicaPrivilege())
	}
	var out []ReplicaChannel
	for _, row := range rows {
		old := make(map[string]string, len(row))
		for k, v := range row {
			if !strings.HasPrefix(k, "Replicate_") { // a word of filters, in all versions
				k = OldReplicaWords(k)
			}
			old[k] = v
		}
		out = append(out, channelOf(old))
	}
	return out, nil
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
		Name: old["Channel_Name"] + old["Connection_name"], SourceHost: old["Master_Host"], SourceID: old["Master_Server_Id"],
		IORunning: old["Slave_IO_Running"] == "Yes", SQLRunning: old["Slave_SQL_Running"] == "Yes", Behind: -1,
		GTID: old["Auto_Position"] == "1" || old["Using_Gtid"] != "" && old["Using_Gtid"] != "No",
		Filter: ReplicaFilter{DoDB: list("Replicate_Do_DB"), IgnoreDB: list("Replicate_Ignore_DB"), DoTable: list("Replicate_Do_Table"),
			IgnoreTable: list("Replicate_Ignore_Table"), WildDo: list("Replicate_Wild_Do_Table"), WildIgnore: list("Replicate_Wild_Ignore_Table"),
			Rewrite: list("Replicate_Rewrite_DB")},
	}
	ch.SourcePort, _ = strconv.Atoi(old["Master_Port"])
	ch.Delay, _ = strconv.Atoi(old["SQL_Delay"])
	if n, err := strconv.Atoi(old["Seconds_Behind_Master"]); err == nil {
		ch.Behind = n
	}
	for _, k := range []string{"Last_SQL_Error", "Last_IO_Error", "Last_Error"} {
		if ch.LastError == "" {
			ch.LastError = old[k]
		}
	}
	return ch
}

// lacking adds the privilege that is missing to an error that tells of a missing one.
func (c *Conn) lacking(err error, privilege string) error {
	if ClassOf(err) != ClassPrivilege {
		return err
	}
	return &Error{Target: c.Server.Account, Class: ClassPrivilege, Err: fleet.WithRemedy(err, "GRANT "+privilege+" ON *.* TO "+c.Server.QuotedAccount())}
}

// ServerID is @@server_id: what replication knows a server by.
func (c *Conn) ServerID(ctx context.Context) (id string, err error) {
	err = c.Query(ctx, "SELECT /* risso: which server is this? */ @@GLOBAL.server_id", func(row []sqldriver.Value) error {
		id = text(row[0])
		return nil
	})
	return id, err
}

// ReplicaAddresses are the addresses of the replicas that are connected now, as host:port: what they report of themselves
// (report_host, report_port), and where they are not reported the hosts that read the binary log, with the primary's port.
func (c *Conn) ReplicaAddresses(ctx context.Context) ([]string, error) {
	statement := "SHOW /* risso */ SLAVE HOSTS"
	if c.Server.atLeast(80022) {
		statement = "SHOW /* risso */ REPLICAS"
	}
	rows, err := c.Maps(ctx, statement)
	if err != nil {
		return nil, c.dumpError(err)
	}
	var out []string
	for _, row := range rows {
		if row["Host"] != "" {
			out = append(out, net.JoinHostPort(row["Host"], row["Port"]))
		}
	}
	if len(out) == len(rows) && len(rows) > 0 {
		return out, nil
	}
	list, err := c.Maps(ctx, "SHOW /* risso */ PROCESSLIST")
	if err != nil {
		return out, err
	}
	for _, row := range list {
		if !strings.HasPrefix(row["Command"], "Binlog Dump") {
			continue
		}
		host, _, err := net.SplitHostPort(row["Host"])
		if err != nil {
			host = row["Host"]
		}
		if a := net.JoinHostPort(host, strconv.Itoa(c.Server.Port)); host != "" && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out, nil
}

// dumpError names the privilege for the list of replicas.
func (c *Conn) dumpError(err error) error {
	if ClassOf(err) != ClassPrivilege {
		return err
	}
	return &Error{Target: c.Server.Account, Class: ClassPrivilege,
		Err: fleet.WithRemedy(err, "name the replicas with --replica, or GRANT "+c.Server.replicasPrivilege()+" ON *.* TO "+c.Server.QuotedAccount())}
}

// Mark is a place in what a server has written: whoever has reached it has all that was committed before.
type Mark struct {
	GTID   string // MySQL: gtid_executed; MariaDB: gtid_binlog_pos
	File   string // where there is no GTID: name and end of the binary log
	Offset int64
}

// ErrNoMark says that a server writes no binary log, so that nobody replicates from it.
var ErrNoMark = errors.New("the server writes no binary log")

// Mark reads how far the server has written.
func (c *Conn) Mark(ctx context.Context) (Mark, error) {
	var m Mark
	question := "SELECT /* risso: how far is it? */ @@GLOBAL.gtid_binlog_pos"
	if !c.Server.MariaDB() {
		question = "SELECT /* risso: how far is it? */ IF(@@GLOBAL.gtid_mode = 'ON', @@GLOBAL.gtid_executed, '')"
	}
	err := c.Query(ctx, question, func(row []sqldriver.Value) error {
		m.GTID = strings.ReplaceAll(text(row[0]), "\n", "")
		return nil
	})
	if err != nil || m.GTID != "" {
		return m, err
	}
	statement := "SHOW /* risso */ MASTER STATUS"
	if c.Server.atLeast(80200) {
		statement = "SHOW /* risso */ BINARY LOG STATUS"
	}
	rows, err := c.Maps(ctx, statement)
	switch {
	case err != nil:
		return m, c.lacking(err, c.Server.logsPrivilege())
	case len(rows) == 0:
		return m, ErrNoMark
	}
	m.File = rows[0]["File"]
	m.Offset, err = strconv.ParseInt(rows[0]["Position"], 10, 64)
	return m, err
}

// Reach waits until a replica has applied all up to a mark of its primary, and says whether it has.
func (c *Conn) Reach(ctx context.Context, m Mark, wait time.Duration) (bool, error) {
	const slice = time.Second // less than the time-out of a read
	end := time.Now().Add(wait)
	for {
		left := max(time.Until(end), 0)
		answer := ""
		err := c.QuietQuery(ctx, c.reachStatement(m, min(left, slice)), func(row []sqldriver.Value) error {
			answer = text(row[0])
			return nil
		})
		if err != nil {
			return false, err
		}
		if n, err := strconv.ParseInt(answer, 10, 64); err == nil && (n == 0 || n > 0 && m.GTID == "") {
			return true, nil
		}
		if time.Until(end) <= 0 {
			return false, nil
		}
		if answer == "" { // NULL comes at once: the thread that applies does not run
			if err := delay.For(ctx, min(left, 200*time.Millisecond)); err != nil {
				return false, err
			}
		}
	}
}

// reachStatement waits on the server. MySQL takes whole seconds before 8.0. Source: MySQL manual, "Functions Used with Global
// Transaction Identifiers"; MariaDB's MASTER_GTID_WAIT.
func (c *Conn) reachStatement(m Mark, wait time.Duration) string {
	quoted := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "") + "'" }
	seconds := fmt.Sprint(int(max(1, wait.Seconds())))
	if c.Server.MariaDB() || c.Server.atLeast(80000) {
		seconds = fmt.Sprintf("%.3f", max(0.001, wait.Seconds()))
	}
	switch {
	case m.GTID != "" && c.Server.MariaDB():
		return "SELECT /* risso: wait for the primary's place */ MASTER_GTID_WAIT(" + quoted(m.GTID) + ", " + seconds + ")"
	case m.GTID != "":
		return "SELECT /* risso: wait for the primary's place */ WAIT_FOR_EXECUTED_GTID_SET(" + quoted(m.GTID) + ", " + seconds + ")"
	case c.Server.atLeast(80026):
		return fmt.Sprintf("SELECT /* risso: wait for the primary's place */ SOURCE_POS_WAIT(%s, %d, %s)", quoted(m.File), m.Offset, seconds)
	}
	return fmt.Sprintf("SELECT /* risso: wait for the primary's place */ MASTER_POS_WAIT(%s, %d, %s)", quoted(m.File), m.Offset, seconds)
}

// OwnWrites gives the transactions that a replica has and its primary has not, in the flavour's words; "" for none. Where
// neither writes GTIDs nothing can be told: known is false.
func OwnWrites(ctx context.Context, replica, primary *Conn) (own string, known bool, err error) {
	if replica.Server.MariaDB() != primary.Server.MariaDB() {
		return "", false, nil
	}
	question := "SELECT /* risso: does the replica have writes of its own? */ @@GLOBAL.gtid_binlog_state"
	if !replica.Server.MariaDB() {
		question = "SELECT /* risso: does the replica have writes of its own? */ @@GLOBAL.gtid_executed"
	}
	ask := func(c *Conn, q string) (v string, err error) {
		err = c.QuietQuery(ctx, q, func(row []sqldriver.Value) error {
			v = strings.ReplaceAll(text(row[0]), "\n", "")
			return nil
		})
		return v, err
	}
	there, err := ask(replica, question) // the replica first: it lags
	if err != nil {
		return "", false, err
	}
	here, err := ask(primary, question)
	switch {
	case err != nil:
		return "", false, err
	case here == "":
		return "", false, nil
	case !replica.Server.MariaDB():
		own, err = ask(primary, "SELECT /* risso: does the replica have writes of its own? */ GTID_SUBTRACT('"+there+"', '"+here+"')")
		return own, true, err
	}
	return strings.Join(beyond(there, here), ","), true, nil
}

// beyond gives the points of a MariaDB binary log's state that another does not have: it has one for each domain and server.
func beyond(there, here string) (out []string) {
	known := map[string]uint64{}
	point := func(g string) (string, uint64) {
		i := strings.LastIndexByte(g, '-')
		n, _ := strconv.ParseUint(g[i+1:], 10, 64)
		return g[:max(i, 0)], n
	}
	for _, g := range strings.Split(here, ",") {
		k, n := point(strings.TrimSpace(g))
		known[k] = n
	}
	for _, g := range strings.Split(there, ",") {
		if g = strings.TrimSpace(g); g == "" {
			continue
		}
		if k, n := point(g); n > known[k] {
			out = append(out, g)
		}
	}
	return out
}

// WithAddress is the target with the same account at another address over TCP.
func (t Target) WithAddress(address string) Target {
	cfg := t.cfg.Clone()
	cfg.Net, cfg.Addr = "tcp", address
	return Target{cfg: cfg}
}

// BinlogFilters are the schemas that a server leaves out of its binary log, as its settings say it; "" for none.
func (c *Conn) BinlogFilters(ctx context.Context) (string, error) {
	statement := "SHOW /* risso */ MASTER STATUS"
	if c.Server.atLeast(80200) {
		statement = "SHOW /* risso */ BINARY LOG STATUS"
	}
	rows, err := c.Maps(ctx, statement)
	if err != nil {
		return "", c.lacking(err, c.Server.logsPrivilege())
	}
	var set []string
	for _, row := range rows {
		for column, name := range map[string]string{"Binlog_Do_DB": "binlog_do_db", "Binlog_Ignore_DB": "binlog_ignore_db"} {
			if row[column] != "" {
				set = append(set, name+"="+row[column])
			}
		}
	}
	return strings.Join(set, " "), nil
}

// ForStatements prepares a session whose changes replicate as statements, though they change nothing here: in row format a row
// that is the same afterwards leaves no event. It needs REPEATABLE READ: InnoDB refuses statements below it (error 1665).
func (s *Stream) ForStatements(ctx context.Context, server Server) error {
	if err := s.ForRows(ctx, server); err != nil {
		return err
	}
	err := s.Exec(ctx, "SET SESSION /* risso: replicate by statement */ binlog_format = 'STATEMENT'")
	if err != nil {
		if ClassOf(err) == ClassPrivilege {
			return &Error{Target: server.Account, Class: ClassPrivilege, Err: fleet.WithRemedy(err, "GRANT "+server.formatPrivilege()+" ON *.* TO "+server.QuotedAccount())}
		}
		return fmt.Errorf("replicate by statement: %w", err)
	}
	for _, q := range []string{
		"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
		"SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO', foreign_key_checks = 0, innodb_lock_wait_timeout = 5",
	} {
		if err := s.Exec(ctx, q); err != nil {
			return fmt.Errorf("prepare the session: %w", err)
		}
	}
	return nil
}

// KnowsCRC32C says whether the server has CRC32C() beside CRC32(): MariaDB since 10.8.
func (s Server) KnowsCRC32C() bool { return s.MariaDB() && s.Number >= 100800 }

// CombinesBinary says whether BIT_XOR() takes binary strings of any length: MySQL since 8.0. MariaDB's takes numbers only.
func (s Server) CombinesBinary() bool { return s.atLeast(80000) }
