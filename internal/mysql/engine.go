package mysql

import "strings"

// Transactional reports whether a storage engine has snapshots. Of any other, rows are read as they are at that moment.
func Transactional(engine string) bool {
	switch strings.ToLower(engine) {
	case "innodb", "rocksdb", "tokudb", "ndbcluster", "ndb", "blackhole", "sequence", "percona_memory":
		return true
	}
	return false
}

// Elsewhere reports whether a table of a storage engine is a view of rows that live in other tables (MERGE), on another server or in
// files that are not the server's: a copy of them would be a second one. Sources: MySQL manual, "The MERGE Storage Engine" and "The
// FEDERATED Storage Engine"; MariaDB documentation, "mariadb-dump", --no-data-med.
func Elsewhere(engine string) bool {
	switch strings.ToLower(engine) {
	case "mrg_myisam", "merge", "federated", "connect", "spider", "sphinx", "oqgraph":
		return true
	}
	return false
}
