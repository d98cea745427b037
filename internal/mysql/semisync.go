package mysql

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// SemiSyncSide are the names of one side of semi-synchronous replication on a server.
type SemiSyncSide struct {
	Plugin, Library string // to be installed; "" where it is built in
	Prefix          string // begins its variables, and its status in upper case
	None, Count     string // ends of the variables: whether to wait without any replica, and for how many; "" if there is no count
}

// SemiSyncSides are the names that the two sides can have on a server, those to be preferred first. MySQL 8.0.26 renamed the plug-ins, and has both;
// one of them is installed. MariaDB has built both sides in since 10.3. Sources: MySQL manual, "Semisynchronous Replication"; MariaDB documentation,
// "Semisynchronous Replication".
func (s Server) SemiSyncSides() (source, replica []SemiSyncSide) {
	source = []SemiSyncSide{{"rpl_semi_sync_master", "semisync_master.so", "rpl_semi_sync_master", "wait_no_slave", "wait_for_slave_count"}}
	replica = []SemiSyncSide{{"rpl_semi_sync_slave", "semisync_slave.so", "rpl_semi_sync_slave", "", ""}}
	switch {
	case s.MariaDB():
		source[0].Count = ""
		if s.AtLeast(fleet.Never, 100300) {
			source[0].Plugin, source[0].Library, replica[0].Plugin, replica[0].Library = "", "", "", ""
		}
	case s.atLeast(80026):
		source = append([]SemiSyncSide{{"rpl_semi_sync_source", "semisync_source.so", "rpl_semi_sync_source", "wait_no_replica", "wait_for_replica_count"}}, source...)
		replica = append([]SemiSyncSide{{"rpl_semi_sync_replica", "semisync_replica.so", "rpl_semi_sync_replica", "", ""}}, replica...)
	}
	return source, replica
}

// InstallPlugin loads a plug-in, for good.
func InstallPlugin(plugin, library string) string {
	return "INSTALL PLUGIN " + plugin + " SONAME " + Literal(library)
}

// Vouch tells a server, whose commits wait for acknowledgements, that a replica has all of its binary log up to a place: it takes that for granted of a replica that
// begins there, as this does for a moment. Where its commits do not wait, nothing happens. The account needs REPLICATION SLAVE. Sources:
// Repl_semi_sync_master::dump_start in sql/semisync_master.cc of MariaDB, repl_semi_binlog_dump_start in plugin/semisync/semisync_source_plugin.cc of MySQL.
func (t Target) Vouch(ctx context.Context, file string, pos int64) error {
	d, err := t.Dump(ctx, DumpOptions{File: file, Pos: pos, SemiSync: true})
	if err != nil {
		return err
	}
	defer d.Close()
	// Its first event comes after that; a MariaDB that has sent all may keep it until the connection ends.
	if _, _, err := d.Next(vouchTime); err != nil && !errors.Is(err, wire.ErrEndOfLogs) && !errors.Is(err, os.ErrDeadlineExceeded) {
		return classify(t, err)
	}
	return nil
}

// vouchTime is how long the first event of a server is waited for.
const vouchTime = 500 * time.Millisecond
