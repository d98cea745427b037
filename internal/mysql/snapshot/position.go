package snapshot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/mysql"
)

// readPosition asks for the place in the binary logs, and on a replica for those of its sources.
func (s *Snapshot) readPosition(ctx context.Context) error {
	s.Position = LogPlace{}
	rows, err := s.control.QueryMaps(ctx, s.Server.LogStatusStatement())
	switch {
	case mysql.ClassOf(err) == mysql.ClassPrivilege:
		s.note("The account may not read the position in the binary logs: it needs REPLICATION CLIENT (MariaDB: BINLOG MONITOR).")
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
	if err := s.readState(ctx); err != nil {
		return err
	}
	return s.readSources(ctx)
}

// readState asks a MariaDB for the last transaction of each server, as its position names only the last of each domain.
func (s *Snapshot) readState(ctx context.Context) error {
	if !s.Server.MariaDB() || s.Position.GTIDSet == "" {
		return nil
	}
	position, err := mysql.ParseBinlogState(s.Position.GTIDSet)
	if err != nil {
		return fmt.Errorf("read the GTIDs of the snapshot: %w", err)
	}
	text := ""
	err = s.control.Query(ctx, "SELECT /* risso: the last transaction of each server */ @@GLOBAL.gtid_binlog_state", func(row [][]byte) error {
		text = string(row[0])
		return nil
	})
	if err != nil {
		return fmt.Errorf("ask for the last transaction of each server: %w", err)
	}
	state, err := mysql.ParseBinlogState(text)
	if err != nil {
		return fmt.Errorf("read gtid_binlog_state: %w", err)
	}
	s.Position.State = state.UpTo(position).String()
	return nil
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
	rows, err := s.control.QueryMaps(ctx, s.Server.ReplicaStatusStatement())
	if mysql.ClassOf(err) == mysql.ClassPrivilege {
		return nil // said already, or no replica
	}
	if err != nil {
		return fmt.Errorf("ask for the sources' positions: %w", err)
	}
	position := "" // Gtid_Slave_Pos of a row is gtid_current_pos, which own writes push on
	if len(rows) > 0 && s.Server.MariaDB() {
		rows, err := s.control.QueryMaps(ctx, "SELECT /* risso: up to where is it applied? */ @@GLOBAL.gtid_slave_pos AS position")
		if err != nil {
			return fmt.Errorf("ask up to where it has applied its sources: %w", err)
		}
		for _, row := range rows {
			position = row["position"]
		}
	}
	for _, row := range rows {
		old := make(map[string]string, len(row))
		for k, v := range row {
			old[mysql.OldReplicaWords(k)] = v
		}
		p := SourcePlace{Name: old["Channel_Name"] + old["Connection_name"], Host: old["Master_Host"]}
		p.Port, _ = strconv.Atoi(old["Master_Port"])
		p.File, p.GTIDSet = old["Relay_Master_Log_File"], position
		p.Offset, _ = strconv.ParseInt(old["Exec_Master_Log_Pos"], 10, 64)
		if !s.Server.MariaDB() {
			p.GTIDSet = s.Position.GTIDSet
		}
		s.Sources = append(s.Sources, p)
	}
	return nil
}

// applied reads from the snapshot itself how far the sources had been applied: appliers write that into tables, in the
// transactions that they apply. What the server shows of it elsewhere is a moment behind, with several appliers more.
func (s *Snapshot) applied(ctx context.Context) error {
	if len(s.Sources) == 0 {
		return nil
	}
	if s.Method == ByBinlog && s.Server.MariaDB() {
		for i := range s.Sources { // without a lock they are of another moment
			s.Sources[i].File, s.Sources[i].Offset = "", 0
		}
	}
	what, err := "mysql.gtid_slave_pos", error(nil)
	if s.Server.MariaDB() {
		err = s.appliedGTIDs(ctx)
	} else {
		what = "mysql.slave_relay_log_info and mysql.slave_worker_info"
		err = s.appliedPlaces(ctx)
	}
	switch mysql.ClassOf(err) {
	case mysql.ClassPrivilege, mysql.ClassMissing, mysql.ClassLogin:
		s.note("The replica's position in its sources may be off by a few transactions: the account may not read " + what + ".")
		return nil
	}
	return err
}

// appliedGTIDs reads the position of a MariaDB replica (https://mariadb.com/kb/en/mysqlgtid_slave_pos-table/).
func (s *Snapshot) appliedGTIDs(ctx context.Context) error {
	last := map[string]string{}
	err := s.Sessions[0].Query(ctx, "SELECT /* risso: position of the snapshot */ domain_id, server_id, seq_no FROM mysql.gtid_slave_pos ORDER BY sub_id", func(row [][]byte) error {
		last[string(row[0])] = string(row[0]) + "-" + string(row[1]) + "-" + string(row[2])
		return nil
	})
	if err != nil {
		return err
	}
	set := strings.Join(slices.Sorted(maps.Values(last)), ",")
	for i := range s.Sources {
		s.Sources[i].GTIDSet = set
	}
	return nil
}

// outOfOrder reports whether several appliers commit as they please: a transaction may then be there, and one before it not yet.
// Source: MySQL manual, "replica_preserve_commit_order"; 5.7.5 was the first that had it.
func (s *Snapshot) outOfOrder(ctx context.Context) (bool, error) {
	workers, ordered := 0, false
	err := s.control.Query(ctx, `SHOW /* risso: in which order do appliers commit? */ GLOBAL VARIABLES WHERE Variable_name IN
		('slave_parallel_workers', 'replica_parallel_workers', 'slave_preserve_commit_order', 'replica_preserve_commit_order')`, func(row [][]byte) error {
		if strings.HasSuffix(string(row[0]), "_workers") {
			workers, _ = strconv.Atoi(string(row[1]))
		} else {
			ordered = string(row[1]) == "ON"
		}
		return nil
	})
	return workers > 1 && !ordered, err
}

// appliedPlaces reads the positions of a MySQL replica. One applier writes slave_relay_log_info, several write a row each of
// slave_worker_info, and the former now and then. The last of them is the place where appliers commit in the source's order
// (replica_preserve_commit_order, the default since 8.0.27). Source: MySQL manual, "Replication Metadata Repositories".
func (s *Snapshot) appliedPlaces(ctx context.Context) error {
	if mixed, err := s.outOfOrder(ctx); err != nil {
		return err
	} else if mixed {
		for i := range s.Sources {
			s.Sources[i].File, s.Sources[i].Offset = "", 0
		}
		s.note("The replica's progress is not a position in its sources' binary logs: its appliers commit in a different order than the source (replica_preserve_commit_order, or slave_…, is OFF). GTIDs show the progress, if there are any.")
		return nil
	}
	last := map[string]LogPlace{}
	for _, from := range []string{"slave_relay_log_info", "slave_worker_info"} {
		err := s.Sessions[0].Query(ctx, "SELECT /* risso: position of the snapshot */ Channel_name, Master_log_name, Master_log_pos FROM mysql."+from, func(row [][]byte) error {
			p := LogPlace{File: string(row[1])}
			p.Offset, _ = strconv.ParseInt(string(row[2]), 10, 64)
			if name := string(row[0]); compareLogPlaces(p, last[name]) > 0 {
				last[name] = p
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i, p := range s.Sources {
		// What the server shows moves on at events that change no table, too. Workers' rows of a source that was given up
		// stay, and are of other files.
		if at, ok := last[p.Name]; ok && (s.Method == ByBinlog || compareLogPlaces(at, p.LogPlace) > 0) {
			s.Sources[i].File, s.Sources[i].Offset = at.File, at.Offset
		}
	}
	return nil
}

// ownLogOnly reports whether a server may apply sources' transactions without writing them into its own binary log, as MariaDB
// does by default: the place in that log then does not distinguish snapshots.
func (s *Snapshot) ownLogOnly(ctx context.Context) (bool, error) {
	var logs bool
	err := s.control.Query(ctx, "SELECT /* risso: does its binary log tell all? */ @@GLOBAL.log_slave_updates", func(row [][]byte) error { logs = string(row[0]) == "1"; return nil })
	if mysql.ClassOf(err) == mysql.ClassMissing { // MySQL 9: log_replica_updates
		err = s.control.Query(ctx, "SELECT /* risso: does its binary log tell all? */ @@GLOBAL.log_replica_updates", func(row [][]byte) error { logs = string(row[0]) == "1"; return nil })
	}
	if err != nil || logs {
		return false, err
	}
	sources, err := s.control.QueryMaps(ctx, s.Server.ReplicaStatusStatement())
	if mysql.ClassOf(err) != mysql.ClassPrivilege {
		return len(sources) > 0, err
	}
	rows := 0
	err = s.control.Query(ctx, "SELECT /* risso: is it a replica? */ 1 FROM mysql.gtid_slave_pos LIMIT 1", func([][]byte) error { rows++; return nil })
	return rows > 0 || err != nil, nil
}

// readDDL counts the statements that changed schemas since the server began.
func readDDL(ctx context.Context, st *mysql.Stream) (map[string]int64, error) {
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

// restoreVariables matter for a restore: what a name, a length or a default means there.
const restoreVariables = `'lower_case_table_names', 'character_set_server', 'collation_server', 'sql_mode', 'time_zone', 'system_time_zone',
 'explicit_defaults_for_timestamp', 'innodb_page_size', 'innodb_default_row_format', 'innodb_strict_mode', 'default_storage_engine', 'event_scheduler',
 'max_allowed_packet', 'log_bin', 'binlog_format', 'gtid_mode', 'server_id', 'gtid_domain_id', 'default_table_encryption', 'default_authentication_plugin',
 'partial_revokes'`

// Variables are the server's variables that matter for a restore.
func (s *Snapshot) Variables(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	err := s.control.Query(ctx, "SHOW /* risso: what a restore has to know */ GLOBAL VARIABLES WHERE Variable_name IN ("+restoreVariables+")", func(row [][]byte) error {
		out[string(row[0])] = string(row[1])
		return nil
	})
	return out, err
}

// LogFilter asks what the server leaves out of its binary logs; nothing for an account that may not ask, whose position is not known either.
func (s *Snapshot) LogFilter(ctx context.Context) (mysql.LogFilter, error) {
	rows, err := s.control.QueryMaps(ctx, s.Server.LogStatusStatement())
	switch {
	case mysql.ClassOf(err) == mysql.ClassPrivilege:
		s.note("The account may not read what the binary logs leave out: it needs REPLICATION CLIENT (MariaDB: BINLOG MONITOR).")
		return mysql.LogFilter{}, nil
	case err != nil:
		return mysql.LogFilter{}, fmt.Errorf("ask what the binary logs leave out: %w", err)
	case len(rows) == 0:
		return mysql.LogFilter{}, nil
	}
	return mysql.LogFilterOf(rows[0]), nil
}
