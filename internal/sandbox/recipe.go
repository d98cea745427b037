package sandbox

import (
	"fmt"
	"slices"

	"github.com/rissodb/risso/internal/fleet"
)

// This file is the one place of the sandbox where server families differ: how
// a data directory is made, what is in the configuration, and the
// statements that set up an account and replication. What differs in a running
// server that Risso watches lives in internal/mysql; a sandbox starts servers
// before there is anything to ask.

// recipe is how the servers of one family, from one version on, are made. In
// statements, {user}, {password}, {native} (its hash of mysql_native_password),
// {host} and {port} are replaced by what is only known later.
type recipe struct {
	families []Family
	from     fleet.Version // the first version that it fits

	// bootstrap is the command that fills dir with system tables and a root
	// without password. It may need extraSQL in the file extra.
	bootstrap func(r recipe, s Server, dir, extra string) ([]string, error)
	extraSQL  string

	redo     []string // the [mysqld] section that keeps the redo log small: each node gets a copy of it
	settings []string // the rest of it, for every node, after common
	readOnly []string // the same, of replicas only

	// semiSync are settings of every node by which it may be either side of semi-synchronous replication without a time-out, and semiSource are the statements
	// that make the primary wait for acknowledgements.
	semiSync   []string
	semiSource []string

	// slowClock says that a server with a clock of its own is too slow to be of use: it asks for the time too often.
	slowClock bool

	// takeOver lets root in without a password on data that came from elsewhere, and quiet keeps that data from acting by
	// itself: the settings of a server that is started on it.
	takeOver []string
	quiet    []string

	account  []string // makes the account of the sandbox and the schema test
	follow   []string // makes a server replicate from {port}
	position string   // queries what the primary has written
	reached  string   // waits at most a second for the position in ?; 0 says it is applied
	status   string   // the statement with columns Last_IO_Error and Last_SQL_Error
}

// common is in the [mysqld] section of every node. Binary logs and GTIDs are on
// so that any node can be promoted.
var common = []string{
	"skip-name-resolve",
	"log_bin=binlog",
	"relay_log=relay",
	"sync_binlog=1",
	"innodb_buffer_pool_size=64M",
	"innodb_buffer_pool_dump_at_shutdown=OFF",
	"max_connections=300",
	"character-set-server=utf8mb4",
}

const (
	grantAll   = "GRANT ALL PRIVILEGES ON *.* TO {user}@'%' WITH GRANT OPTION"
	createTest = "CREATE DATABASE IF NOT EXISTS test"
)

// recipes lists them, a later version of a family before an earlier one. A dead
// source is noticed after 10 seconds of silence, not after the default of 60.
func recipes() []recipe { return append([]recipe{mariadbRecipe()}, mysqlRecipes()...) }

// mysqlRecipes are those of MySQL and Percona Server, a later version before an earlier one.
func mysqlRecipes() []recipe {
	gtid := []string{"gtid_mode=ON", "enforce_gtid_consistency=ON"}
	mysql80 := recipe{
		families:  []Family{FamilyMySQL, FamilyPercona},
		from:      80011,
		bootstrap: mysqlBootstrap,
		redo:      []string{"innodb_log_file_size=32M"},
		// mysqlx would listen on one more port; log_slave_updates is the default.
		settings: append(gtid, "mysqlx=OFF", "slave_net_timeout=10"),
		readOnly: []string{"read_only=ON", "super_read_only=ON"},
		semiSync: []string{"plugin-load-add=semisync_master.so", "plugin-load-add=semisync_slave.so", "loose_rpl_semi_sync_slave_enabled=ON",
			"loose_rpl_semi_sync_master_wait_point=AFTER_SYNC", "loose_rpl_semi_sync_master_timeout=4294967295"},
		semiSource: []string{"SET GLOBAL rpl_semi_sync_master_enabled=ON"},
		// AS '' and not BY '': no password policy of the data looks at it.
		takeOver: []string{
			"CREATE USER IF NOT EXISTS 'root'@'localhost'",
			"ALTER USER 'root'@'localhost' IDENTIFIED WITH caching_sha2_password AS '' REQUIRE NONE ACCOUNT UNLOCK",
			"GRANT ALL PRIVILEGES ON *.* TO 'root'@'localhost' WITH GRANT OPTION",
		},
		quiet: []string{"skip_slave_start=ON", "event_scheduler=OFF", "persisted_globals_load=OFF", "loose_group_replication_start_on_boot=OFF"},
		// The server writes the hash, not the password, to its binary log.
		account: []string{"CREATE USER {user}@'%' IDENTIFIED WITH caching_sha2_password BY '{password}'", grantAll, createTest},
		follow: []string{
			"CHANGE MASTER TO MASTER_HOST='{host}', MASTER_PORT={port}, MASTER_USER='{user}', MASTER_PASSWORD='{password}', MASTER_AUTO_POSITION=1, MASTER_CONNECT_RETRY=1, GET_MASTER_PUBLIC_KEY=1",
			"START SLAVE",
		},
		position: "SELECT @@GLOBAL.gtid_executed",
		reached:  "SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 1)",
		status:   "SHOW SLAVE STATUS",
	}

	// 8.0.23 brought the words source and replica; 8.4 knows no others.
	mysql8023 := mysql80
	mysql8023.from = 80023
	mysql8023.follow = []string{ // 86400 tries is the default of 8.0; a 9.7 would give up after ten
		"CHANGE REPLICATION SOURCE TO SOURCE_HOST='{host}', SOURCE_PORT={port}, SOURCE_USER='{user}', SOURCE_PASSWORD='{password}', SOURCE_AUTO_POSITION=1, SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=86400, GET_SOURCE_PUBLIC_KEY=1",
		"START REPLICA",
	}
	mysql8023.status = "SHOW REPLICA STATUS"

	// 8.0.30 brought another redo log; 8.0.26 the other name of the time-out.
	mysql8030 := mysql8023
	mysql8030.from = 80030
	mysql8030.redo = []string{"innodb_redo_log_capacity=64M"}
	mysql8030.settings = append(gtid, "mysqlx=OFF", "replica_net_timeout=10")
	mysql8030.semiSync = []string{"plugin-load-add=semisync_source.so", "plugin-load-add=semisync_replica.so", "loose_rpl_semi_sync_replica_enabled=ON",
		"loose_rpl_semi_sync_source_wait_point=AFTER_SYNC", "loose_rpl_semi_sync_source_timeout=4294967295"}
	mysql8030.slowClock = true
	mysql8030.semiSource = []string{"SET GLOBAL rpl_semi_sync_source_enabled=ON"}
	mysql8030.quiet = append([]string{"skip_replica_start=ON"}, mysql80.quiet[1:]...) // the new word came with 8.0.26

	mysql57 := mysql80
	mysql57.from = 50706
	// Positions in tables survive a crash; later versions have no other way.
	mysql57.settings = append(gtid, "binlog_format=ROW", "log_slave_updates=ON", "slave_net_timeout=10",
		"master_info_repository=TABLE", "relay_log_info_repository=TABLE", "explicit_defaults_for_timestamp=ON")
	mysql57.takeOver = []string{
		"CREATE USER IF NOT EXISTS 'root'@'localhost'",
		"ALTER USER 'root'@'localhost' IDENTIFIED WITH mysql_native_password AS '' REQUIRE NONE ACCOUNT UNLOCK",
		"GRANT ALL PRIVILEGES ON *.* TO 'root'@'localhost' WITH GRANT OPTION",
	}
	mysql57.quiet = []string{"skip_slave_start=ON", "event_scheduler=OFF"}
	mysql57.account = []string{"CREATE USER {user}@'%' IDENTIFIED WITH mysql_native_password AS '{native}'", grantAll, createTest}
	mysql57.follow = []string{
		"CHANGE MASTER TO MASTER_HOST='{host}', MASTER_PORT={port}, MASTER_USER='{user}', MASTER_PASSWORD='{password}', MASTER_AUTO_POSITION=1, MASTER_CONNECT_RETRY=1",
		"START SLAVE",
	}
	return []recipe{mysql8030, mysql8023, mysql80, mysql57}
}

func mariadbRecipe() recipe {
	return recipe{
		families:  []Family{FamilyMariaDB},
		from:      100500,
		bootstrap: mariadbBootstrap,
		// The installer makes root without a password for TCP as well.
		extraSQL: "DELETE FROM mysql.global_priv WHERE NOT (User='root' AND Host='localhost' OR User='mariadb.sys');\n" +
			"DELETE FROM mysql.proxies_priv WHERE Host<>'localhost';\n",
		redo:       []string{"innodb_log_file_size=32M"},
		settings:   []string{"binlog_format=ROW", "log_slave_updates=ON", "gtid_strict_mode=ON", "slave_net_timeout=10"},
		readOnly:   []string{"read_only=ON"},
		semiSync:   []string{"rpl_semi_sync_slave_enabled=ON", "rpl_semi_sync_master_wait_point=AFTER_SYNC", "rpl_semi_sync_master_timeout=4294967295"},
		semiSource: []string{"SET GLOBAL rpl_semi_sync_master_enabled=ON"},
		takeOver: []string{
			"CREATE OR REPLACE USER 'root'@'localhost' IDENTIFIED BY PASSWORD ''",
			"GRANT ALL PRIVILEGES ON *.* TO 'root'@'localhost' WITH GRANT OPTION",
		},
		quiet: []string{"skip_slave_start=ON", "event_scheduler=OFF", "loose_wsrep_on=OFF", "strict_password_validation=OFF"},
		// The hash, because this server writes the statement to its binary log as it is.
		account: []string{"CREATE USER {user}@'%' IDENTIFIED BY PASSWORD '{native}'", grantAll, createTest},
		follow: []string{
			"CHANGE MASTER TO MASTER_HOST='{host}', MASTER_PORT={port}, MASTER_USER='{user}', MASTER_PASSWORD='{password}', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1",
			"START SLAVE",
		},
		position: "SELECT @@GLOBAL.gtid_binlog_pos",
		reached:  "SELECT MASTER_GTID_WAIT(?, 1)",
		status:   "SHOW SLAVE STATUS",
	}
}

// recipeFor is the recipe of a server.
func recipeFor(s Server) (recipe, error) {
	for _, r := range recipes() {
		if slices.Contains(r.families, s.Family) && s.number() >= r.from {
			return r, nil
		}
	}
	return recipe{}, fmt.Errorf("%s %s is too old for a sandbox: MariaDB 10.5 and MySQL 5.7.6 are the oldest that work", s.Family, s.Version)
}

func mysqlBootstrap(r recipe, s Server, dir, _ string) ([]string, error) {
	args := []string{s.Binary, "--no-defaults", "--initialize-insecure", "--basedir=" + s.Basedir, "--datadir=" + dir, "--secure-file-priv=NULL", simulatedAIO}
	return append(args, dashed(r.redo)...), nil
}

func mariadbBootstrap(r recipe, s Server, dir, extra string) ([]string, error) {
	tool, ok := s.tool("mariadb-install-db", "mysql_install_db")
	if !ok {
		return nil, fmt.Errorf("mariadb-install-db is missing next to %s (Debian: package mariadb-server)", s.Binary)
	}
	args := []string{tool, "--no-defaults", "--basedir=" + s.Basedir, "--datadir=" + dir,
		"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve", "--extra-file=" + extra}
	return append(args, dashed(r.redo)...), nil
}

// dashed turns lines of a configuration file into arguments.
func dashed(settings []string) []string {
	args := make([]string, len(settings))
	for i, s := range settings {
		args[i] = "--" + s
	}
	return args
}
