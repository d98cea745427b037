package load

// LentSettings are those of all servers that tests of this package borrow: one server is then good for each of them.
var LentSettings = []string{"local_infile=1", "log_bin_trust_function_creators=1", "event_scheduler=OFF", "innodb_flush_log_at_trx_commit=2", "sync_binlog=0", "performance_schema=OFF"}
