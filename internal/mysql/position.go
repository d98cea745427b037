package mysql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// logStatusStatement shows the place in the binary log.
func (s Server) logStatusStatement() string {
	if s.atLeast(80200) { // the old words were removed in 8.4
		return "SHOW /* risso: position of the snapshot */ BINARY LOG STATUS"
	}
	return "SHOW /* risso: position of the snapshot */ MASTER STATUS"
}

// readPosition asks for the place in the binary logs, and on a replica for those of its sources.
func (s *Snapshot) readPosition(ctx context.Context) error {
	s.Position = LogPlace{}
	rows, err := s.control.QueryMaps(ctx, s.Server.logStatusStatement())
	switch {
	case ClassOf(err) == ClassPrivilege:
		s.note("The account may not ask for the position in the binary logs: it lacks REPLICATION CLIENT (MariaDB: BINLOG MONITOR).")
	case err != nil:
		return fmt.Errorf("ask for the binary log position: %w", err)
	case len(rows) > 0:
		s.Position.File, s.Position.GTIDSet = rows[0]["File"], strings.ReplaceAll(rows[0]["Executed_Gtid_Set"], "\n", "")
		s.Position.Offset, _ = strconv.ParseInt(rows[0]["Position"], 10, 64)
	}
	variable := "@@GLOBAL.gtid_executed"
	if s.Server.MariaDB() {
		variable = "@@GLOBAL.gtid_binlog_pos"
	}
	if err := s.readMoment(ctx, variable); err != nil {
		return err
	}
	return s.readSources(ctx)
}

// note says something once.
func (s *Snapshot) note(text string) {
	if !slices.Contains(s.Notes, text) {
		s.Notes = append(s.Notes, text)
	}
}

// readMoment asks what time it is there, and for the GTIDs by a variable.
func (s *Snapshot) readMoment(ctx context.Context, variable string) error {
	err := s.control.Query(ctx, "SELECT /* risso: moment of the snapshot */ UTC_TIMESTAMP(6), "+variable, func(row [][]byte) (err error) {
		if variable != "NULL" {
			s.Position.GTIDSet = strings.ReplaceAll(string(row[1]), "\n", "")
		}
		s.At, err = time.Parse("2006-01-02 15:04:05.999999", string(row[0]))
		return err
	})
	if err != nil {
		return fmt.Errorf("ask for the time and the GTIDs: %w", err)
	}
	return nil
}

// readSources asks how far a replica had applied its sources.
func (s *Snapshot) readSources(ctx context.Context) error {
	s.Sources = nil
	rows, err := s.control.QueryMaps(ctx, s.Server.replicaStatusStatement())
	if ClassOf(err) == ClassPrivilege {
		return nil // said already, or no replica
	}
	if err != nil {
		return fmt.Errorf("ask for the sources' positions: %w", err)
	}
	lockFree := s.LockTime == 0 && s.Server.MariaDB()
	for _, row := range rows {
		old := make(map[string]string, len(row))
		for k, v := range row {
			old[oldReplicaWords.Replace(k)] = v
		}
		p := SourcePlace{Name: old["Channel_Name"] + old["Connection_name"], Host: old["Master_Host"]}
		p.Port, _ = strconv.Atoi(old["Master_Port"])
		p.File, p.GTIDSet = old["Relay_Master_Log_File"], old["Gtid_Slave_Pos"]
		p.Offset, _ = strconv.ParseInt(old["Exec_Master_Log_Pos"], 10, 64)
		if !s.Server.MariaDB() {
			p.GTIDSet = s.Position.GTIDSet
		}
		s.Sources = append(s.Sources, p)
	}
	if len(s.Sources) == 0 || !lockFree {
		return nil
	}
	return s.appliedGTIDs(ctx)
}

// appliedGTIDs reads a MariaDB replica's position from the snapshot itself, where the applier keeps it in a table, row by row
// (https://mariadb.com/kb/en/mysqlgtid_slave_pos-table/).
func (s *Snapshot) appliedGTIDs(ctx context.Context) error {
	last := map[string]string{}
	err := s.Sessions[0].Query(ctx, "SELECT /* risso: position of the snapshot */ domain_id, server_id, seq_no FROM mysql.gtid_slave_pos ORDER BY sub_id", func(row [][]byte) error {
		last[string(row[0])] = string(row[0]) + "-" + string(row[1]) + "-" + string(row[2])
		return nil
	})
	if err != nil {
		s.note("How far the replica had applied its sources may be off by the transactions of a moment: the account may not read mysql.gtid_slave_pos.")
		return nil
	}
	set := strings.Join(slices.Sorted(maps.Values(last)), ",")
	for i := range s.Sources {
		s.Sources[i].File, s.Sources[i].Offset, s.Sources[i].GTIDSet = "", 0, set
	}
	return nil
}

// readDDL counts the statements that changed schemas since the server began.
func readDDL(ctx context.Context, st *Stream) (map[string]int64, error) {
	out := map[string]int64{}
	err := st.Query(ctx, "SHOW /* risso: does anybody change schemas? */ GLOBAL STATUS LIKE 'Com\\_%'", func(row [][]byte) error {
		name := strings.ToLower(strings.TrimPrefix(string(row[0]), "Com_"))
		verb, object, _ := strings.Cut(name, "_")
		switch verb {
		case "alter", "create", "drop", "rename", "truncate":
		default:
			return nil
		}
		switch object {
		case "user", "role", "server", "temporary_table", "resource_group", "tablespace", "instance":
			return nil
		}
		n, err := strconv.ParseInt(string(row[1]), 10, 64)
		out[strings.ReplaceAll(name, "_", " ")] = n
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("count schema changes: %w", err)
	}
	return out, nil
}

// SchemaChanges are the kinds of statements that changed schemas since the moment of the snapshot, with how many of each:
// "alter table" 2. Where schema changes are kept waiting there are none.
func (s *Snapshot) SchemaChanges(ctx context.Context) (map[string]int64, error) {
	if s.DDLBlocked {
		return nil, nil
	}
	now, err := readDDL(ctx, s.control)
	if err != nil {
		return nil, err
	}
	for name, n := range now {
		if now[name] = n - s.ddl[name]; now[name] <= 0 {
			delete(now, name)
		}
	}
	return now, nil
}

// DefinitionChanged says that a table was altered, truncated or made anew since the snapshot, which cannot read it any more.
func DefinitionChanged(err error) bool {
	var refused *driver.MySQLError
	return errors.As(err, &refused) && refused.Number == errDefinitionChanged
}

// Gone says that a table is not there, or no longer.
func Gone(err error) bool {
	var refused *driver.MySQLError
	return errors.As(err, &refused) && (refused.Number == errNoSuchTable || refused.Number == errUnknownTable || refused.Number == errUnknownDatabase)
}

// ServerIdentity tells a server from others and survives its restart: server_uuid, or MariaDB's domain and server_id.
func (s *Snapshot) ServerIdentity(ctx context.Context) (id string, err error) {
	statement := "SELECT /* risso: who is it? */ @@server_uuid"
	if s.Server.MariaDB() {
		statement = "SELECT /* risso: who is it? */ CONCAT(@@gtid_domain_id, '-', @@server_id)"
	}
	err = s.control.Query(ctx, statement, func(row [][]byte) error { id = string(row[0]); return nil })
	return id, err
}

// restoreVariables matter for who restores: what a name, a length or a default means there.
const restoreVariables = `'lower_case_table_names', 'character_set_server', 'collation_server', 'sql_mode', 'time_zone', 'system_time_zone',
 'explicit_defaults_for_timestamp', 'innodb_page_size', 'innodb_default_row_format', 'innodb_strict_mode', 'default_storage_engine', 'event_scheduler',
 'max_allowed_packet', 'log_bin', 'binlog_format', 'gtid_mode', 'server_id', 'gtid_domain_id', 'default_table_encryption', 'default_authentication_plugin'`

// Variables are the server's variables that matter for who restores.
func (s *Snapshot) Variables(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	err := s.control.Query(ctx, "SHOW /* risso: what a restore has to know */ GLOBAL VARIABLES WHERE Variable_name IN ("+restoreVariables+")", func(row [][]byte) error {
		out[string(row[0])] = string(row[1])
		return nil
	})
	return out, err
}
