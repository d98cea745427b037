package differ

import "strings"

// Rank is how bad a difference is. The order is that of a report.
type Rank string

// The ranks, the worst first.
const (
	RankData        Rank = "data"        // data can be lost, or replication breaks
	RankBehaviour   Rank = "behaviour"   // statements give other results, or fail
	RankPerformance Rank = "performance" // the same results, at another speed
	RankVersion     Rank = "version"     // neither was set: each version has its own default
	RankNames       Rank = "names"       // paths, ports, names: any two servers differ in these
)

// Ranks are all of them, the worst first.
func Ranks() []Rank { return []Rank{RankData, RankBehaviour, RankPerformance, RankVersion, RankNames} }

// meaning is what a difference in a variable leads to.
type meaning struct {
	rank Rank
	why  string
}

// meanings are by the newest name. Sources: MySQL manual, "Server System Variables", "InnoDB Startup Options and System Variables",
// "Replication and Binary Logging Options and Variables"; MariaDB documentation, "Server System Variables".
var meanings = map[string]meaning{
	// What loses data, or breaks replication.
	"innodb_flush_log_at_trx_commit":        {RankData, "unless it is 1, a crash loses committed transactions of up to about a second"},
	"sync_binlog":                           {RankData, "unless it is 1, a crash can lose transactions from the binary log that replicas never get"},
	"log_bin":                               {RankData, "without a binary log there are no replicas of it, and no restore to a moment"},
	"binlog_format":                         {RankData, "STATEMENT can make replicas differ silently; MIXED and ROW differ in what restores and readers of the log can do"},
	"binlog_row_image":                      {RankData, "with other than FULL a change cannot be taken back from the log, and readers of the log lack columns"},
	"log_replica_updates":                   {RankData, "without it a replica's log lacks what it applied: it cannot be promoted, nor have replicas"},
	"gtid_mode":                             {RankData, "servers with and without GTIDs cannot follow each other by position in every combination, and failover by GTID needs ON"},
	"enforce_gtid_consistency":              {RankData, "what one refuses would break replication by GTID on the other"},
	"gtid_strict_mode":                      {RankData, "without it transactions out of order enter the log, and a failover breaks later"},
	"server_id_bits":                        {RankData, "servers read each other's server_id otherwise: changes go round in circles or are left out"},
	"binlog_checksum":                       {RankData, "old replicas and readers of the log stop at a form of checksum that they do not know"},
	"binlog_expire_logs_seconds":            {RankData, "how long logs are kept bounds the moments that can be restored, and how long a replica may be away"},
	"expire_logs_days":                      {RankData, "how long logs are kept bounds the moments that can be restored, and how long a replica may be away"},
	"replica_exec_mode":                     {RankData, "IDEMPOTENT hides rows that differ: replicas drift apart silently"},
	"replica_skip_errors":                   {RankData, "errors that are passed over make replicas drift apart silently"},
	"relay_log_recovery":                    {RankData, "without it a replica that crashes may apply transactions twice, or none"},
	"relay_log_info_repository":             {RankData, "with FILE a crash of a replica loses its place"},
	"master_info_repository":                {RankData, "with FILE a crash of a replica loses its place"},
	"innodb_doublewrite":                    {RankData, "without it a crash in the middle of a write leaves torn pages"},
	"innodb_checksum_algorithm":             {RankData, "it decides which damaged pages are noticed, and with strict forms which files can be opened"},
	"innodb_force_recovery":                 {RankData, "above 0 the server repairs nothing and drops protection; above 3 it can damage data for good"},
	"innodb_support_xa":                     {RankData, "without it the binary log and InnoDB can disagree after a crash"},
	"read_only":                             {RankData, "usual between a primary and its replica; a replica that takes writes drifts apart"},
	"super_read_only":                       {RankData, "usual between a primary and its replica; a replica on which administrators can write drifts apart"},
	"replica_parallel_workers":              {RankPerformance, "how many threads apply: it decides how far behind a replica falls"},
	"replica_preserve_commit_order":         {RankData, "without it a replica shows, and after a crash keeps, transactions in another order than the primary"},
	"event_scheduler":                       {RankBehaviour, "where it is off, events do not run: clean-ups and roll-ups do not happen"},
	"rpl_semi_sync_source_enabled":          {RankData, "without it a lost primary takes transactions with it that no replica has"},
	"rpl_semi_sync_master_enabled":          {RankData, "without it a lost primary takes transactions with it that no replica has"},
	"rpl_semi_sync_source_timeout":          {RankData, "after this time commits no longer wait for a replica"},
	"rpl_semi_sync_master_timeout":          {RankData, "after this time commits no longer wait for a replica"},
	"lower_case_table_names":                {RankData, "a statement or a dump of one names tables that the other does not find, or finds as others; it breaks replication"},
	"auto_increment_increment":              {RankData, "servers that are both written to make the same keys"},
	"auto_increment_offset":                 {RankData, "servers that are both written to make the same keys"},
	"innodb_autoinc_lock_mode":              {RankData, "2 with binlog_format STATEMENT gives replicas other keys"},
	"default_storage_engine":                {RankData, "new tables may have no transactions and no crash recovery on one of them"},
	"enforce_storage_engine":                {RankBehaviour, "one refuses or rewrites CREATE TABLE with another engine"},
	"disabled_storage_engines":              {RankBehaviour, "one refuses CREATE TABLE with these engines: replication of such a statement stops"},
	"innodb_page_size":                      {RankData, "their files do not fit each other: a physical copy cannot be started, and long rows and indexes of one are refused by the other"},
	"max_allowed_packet":                    {RankData, "a row or statement that one takes breaks the other, and replication with it"},
	"replica_max_allowed_packet":            {RankData, "an event larger than this stops replication"},
	"require_secure_transport":              {RankBehaviour, "clients without TLS are refused by one of them"},
	"default_table_encryption":              {RankBehaviour, "new schemas are encrypted on one of them only"},
	"innodb_encrypt_tables":                 {RankBehaviour, "new tables are encrypted on one of them only"},
	"encrypt_binlog":                        {RankBehaviour, "the log of one can be read by everybody who gets its files"},
	"binlog_encryption":                     {RankBehaviour, "the log of one can be read by everybody who gets its files"},
	"binlog_transaction_compression":        {RankData, "older replicas and readers of the log cannot read compressed transactions"},
	"log_bin_compress":                      {RankData, "older replicas and readers of the log cannot read compressed events"},
	"binlog_row_value_options":              {RankData, "partial JSON in the log is not understood by older replicas and readers of the log"},
	"log_bin_trust_function_creators":       {RankBehaviour, "without it accounts without SUPER cannot create functions: deployments fail on one of them"},
	"wsrep_on":                              {RankData, "one of them is not in the cluster: its changes stay with it"},
	"wsrep_sync_wait":                       {RankBehaviour, "without it a read can miss what was just written on another node"},
	"wsrep_cluster_name":                    {RankData, "they are not in one cluster"},
	"group_replication_consistency":         {RankBehaviour, "how old what is read may be differs"},
	"group_replication_single_primary_mode": {RankData, "whether several members take writes differs: the members do not form one group"},
	"innodb_fast_shutdown":                  {RankBehaviour, "2 makes the next start a crash recovery; an upgrade needs 0 or 1"},
	"local_infile":                          {RankBehaviour, "LOAD DATA LOCAL works on one of them only; where it is on, a client can be made to send files"},
	"secure_auth":                           {RankBehaviour, "accounts with hashes from before 4.1 can log in to one of them"},

	// What changes results.
	"back_log":                             {RankPerformance, "how many clients may wait to be let in at once"},
	"collation_connection":                 {RankBehaviour, "text in statements of clients that name no collation compares otherwise"},
	"collation_database":                   {RankBehaviour, "new tables of the default schema sort and compare text otherwise"},
	"max_error_count":                      {RankPerformance, "how many warnings of a statement are kept"},
	"log_error_verbosity":                  {RankPerformance, "how much is written to the error log"},
	"innodb_open_files":                    {RankPerformance, "how many files of tables stay open"},
	"max_length_for_sort_data":             {RankPerformance, "how sorts are done"},
	"innodb_undo_log_truncate":             {RankPerformance, "whether undo files get smaller again"},
	"gtid_executed_compression_period":     {RankPerformance, "how often the table of GTIDs is compressed"},
	"innodb_numa_interleave":               {RankPerformance, "how memory is spread over the nodes of the machine"},
	"thread_stack":                         {RankBehaviour, "deeply nested statements and routines fail on the one with less"},
	"table_open_cache":                     {RankPerformance, "tables are closed and opened again"},
	"sql_mode":                             {RankBehaviour, "the same statement is refused by one and changes the data on the other: values cut off, zero dates, groups without an order"},
	"old_mode":                             {RankBehaviour, "one of them keeps old ways of reading and comparing"},
	"transaction_isolation":                {RankBehaviour, "what a transaction sees of others, and what it locks, differs"},
	"autocommit":                           {RankBehaviour, "statements of clients that do not commit are lost on one of them"},
	"innodb_rollback_on_timeout":           {RankBehaviour, "a lock wait that times out undoes the whole transaction on one, the last statement on the other"},
	"innodb_strict_mode":                   {RankBehaviour, "CREATE TABLE with options that do not fit is refused by one and altered silently by the other"},
	"explicit_defaults_for_timestamp":      {RankBehaviour, "a TIMESTAMP column without a default gets another one: the same CREATE TABLE makes other tables"},
	"character_set_server":                 {RankBehaviour, "new schemas get another character set: text that one keeps is refused or spoilt by the other"},
	"character_set_database":               {RankBehaviour, "LOAD DATA and new schemas read text otherwise"},
	"collation_server":                     {RankBehaviour, "new schemas sort and compare text otherwise; joins of old and new tables fail with a mix of collations"},
	"default_collation_for_utf8mb4":        {RankBehaviour, "new utf8mb4 columns sort and compare otherwise"},
	"character_set_collations":             {RankBehaviour, "a character set without a collation means another one"},
	"skip_character_set_client_handshake":  {RankBehaviour, "clients' character sets are ignored by one of them: text is spoilt"},
	"character_set_client_handshake":       {RankBehaviour, "clients' character sets are ignored by one of them: text is spoilt"},
	"init_connect":                         {RankBehaviour, "sessions begin with other settings"},
	"init_replica":                         {RankBehaviour, "the applier begins with other settings"},
	"time_zone":                            {RankBehaviour, "NOW() and TIMESTAMP columns show other times"},
	"system_time_zone":                     {RankBehaviour, "where time_zone is SYSTEM, NOW() and TIMESTAMP columns show other times"},
	"group_concat_max_len":                 {RankBehaviour, "GROUP_CONCAT cuts off at another length, with no more than a warning"},
	"lc_time_names":                        {RankBehaviour, "names of months and days are in another language"},
	"div_precision_increment":              {RankBehaviour, "divisions have other digits"},
	"ft_min_word_len":                      {RankBehaviour, "full-text searches find other words, once the indexes are rebuilt"},
	"innodb_ft_min_token_size":             {RankBehaviour, "full-text searches find other words, once the indexes are rebuilt"},
	"innodb_ft_enable_stopword":            {RankBehaviour, "full-text searches find other words, once the indexes are rebuilt"},
	"max_execution_time":                   {RankBehaviour, "long SELECTs are ended by one of them"},
	"max_statement_time":                   {RankBehaviour, "long statements are ended by one of them"},
	"innodb_lock_wait_timeout":             {RankBehaviour, "how long a statement waits for a lock before it fails"},
	"innodb_snapshot_isolation":            {RankBehaviour, "where it is on, a transaction at REPEATABLE READ ends with error 1020 when it writes a row that changed after its snapshot"},
	"lock_wait_timeout":                    {RankBehaviour, "how long DDL waits, and holds up everybody behind it"},
	"wait_timeout":                         {RankBehaviour, "idle connections of pools are cut by one earlier than by the other"},
	"interactive_timeout":                  {RankBehaviour, "idle sessions of people are cut by one earlier than by the other"},
	"max_connections":                      {RankBehaviour, "one refuses clients that the other takes"},
	"max_user_connections":                 {RankBehaviour, "one refuses clients that the other takes"},
	"max_connect_errors":                   {RankBehaviour, "hosts are blocked after another number of failures"},
	"max_prepared_stmt_count":              {RankBehaviour, "one refuses prepared statements that the other takes"},
	"sql_safe_updates":                     {RankBehaviour, "UPDATE and DELETE without a key are refused by one of them"},
	"sql_require_primary_key":              {RankBehaviour, "tables without a primary key are refused by one of them; replication of such a CREATE stops"},
	"sql_generate_invisible_primary_key":   {RankBehaviour, "tables get a key on one that they lack on the other"},
	"foreign_key_checks":                   {RankData, "rows that refer to nothing are taken by one of them"},
	"unique_checks":                        {RankData, "duplicates may be taken by one of them"},
	"check_constraint_checks":              {RankData, "rows against a CHECK are taken by one of them"},
	"default_authentication_plugin":        {RankBehaviour, "new accounts log in by another method, which older clients do not know"},
	"authentication_policy":                {RankBehaviour, "new accounts log in by another method, which older clients do not know"},
	"default_password_lifetime":            {RankBehaviour, "passwords expire on one of them"},
	"partial_revokes":                      {RankBehaviour, "grants with names of schemas mean another thing"},
	"skip_name_resolve":                    {RankBehaviour, "accounts with host names cannot log in where it is on"},
	"tls_version":                          {RankBehaviour, "clients with old TLS are refused by one of them"},
	"secure_file_priv":                     {RankBehaviour, "files can be read and written from and to other folders"},
	"restrict_fk_on_non_standard_key":      {RankBehaviour, "foreign keys to a key that is not unique are refused by one of them"},
	"innodb_default_row_format":            {RankBehaviour, "new tables have another row format: long rows and index prefixes fit one of them only"},
	"innodb_file_per_table":                {RankBehaviour, "new tables lie in the shared file, which never gets smaller"},
	"innodb_large_prefix":                  {RankBehaviour, "indexes longer than 767 bytes are refused by one of them"},
	"innodb_file_format":                   {RankBehaviour, "compressed and dynamic rows are refused by one of them"},
	"query_cache_type":                     {RankPerformance, "the query cache serialises sessions where it is on"},
	"thread_handling":                      {RankPerformance, "sessions share threads on one of them: long statements delay others"},
	"general_log":                          {RankPerformance, "the general log writes down every statement, with what it costs in disk and time"},
	"performance_schema":                   {RankBehaviour, "where it is off, nobody sees what the server does: no classes of statements, no waits"},
	"innodb_flush_method":                  {RankPerformance, "data goes through the page cache of one of them: twice the memory, another latency"},
	"innodb_buffer_pool_size":              {RankPerformance, "another share of the data is read from disk"},
	"innodb_redo_log_capacity":             {RankPerformance, "a small redo log makes writes wait for pages to be flushed; a large one makes recovery longer"},
	"innodb_log_file_size":                 {RankPerformance, "a small redo log makes writes wait for pages to be flushed; a large one makes recovery longer"},
	"innodb_io_capacity":                   {RankPerformance, "how fast dirty pages are flushed"},
	"optimizer_switch":                     {RankPerformance, "the same statement can get another plan"},
	"optimizer_search_depth":               {RankPerformance, "the same statement can get another plan"},
	"optimizer_use_condition_selectivity":  {RankPerformance, "the same statement can get another plan"},
	"use_stat_tables":                      {RankPerformance, "the same statement can get another plan"},
	"eq_range_index_dive_limit":            {RankPerformance, "the same statement with a long IN list can get another plan"},
	"innodb_stats_persistent":              {RankPerformance, "statistics, and plans with them, change at each start where it is off"},
	"innodb_stats_auto_recalc":             {RankPerformance, "statistics get old where it is off"},
	"innodb_stats_persistent_sample_pages": {RankPerformance, "estimates, and plans with them, differ"},
	"internal_tmp_mem_storage_engine":      {RankPerformance, "temporary tables are held by another engine, with another limit"},
	"tmp_table_size":                       {RankPerformance, "temporary tables go to disk at another size"},
	"max_heap_table_size":                  {RankBehaviour, "MEMORY tables are full at another size: inserts fail on one, and replication with them"},
	"slow_query_log":                       {RankPerformance, "slow statements are written down on one of them only"},
	"long_query_time":                      {RankPerformance, "other statements count as slow: their logs do not compare"},
}

// performanceWords mark variables whose difference is one of speed or memory, where meanings does not know them.
var performanceWords = []string{"buffer", "cache", "_size", "thread", "concurrency", "flush", "io_", "_pages", "_depth", "purge", "_sample", "adaptive", "prefetch", "read_ahead", "performance_schema_", "digest", "log_slow", "long_query", "min_examined", "histogram", "stats_", "optimizer_", "_batch", "spin"}

// meaningOf is what a difference in a variable leads to.
func meaningOf(name string) meaning {
	if m, ok := meanings[canonical(name)]; ok {
		return m
	}
	if named(name) {
		return meaning{RankNames, "a path, a port or a name: any two servers differ in these"}
	}
	for _, w := range performanceWords {
		if strings.Contains(name, w) {
			return meaning{RankPerformance, "it changes speed or memory, not results"}
		}
	}
	return meaning{RankBehaviour, "Risso knows no more of it than that it differs: its page in the manual says what it does"}
}
