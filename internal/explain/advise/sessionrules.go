package advise

import (
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

// sessionRules are about what sessions inherit.
func sessionRules() []settings {
	return []settings{
		{Check{"sql.mode", "modes in which wrong values get into tables", "MySQL Shell: obsolete SQL modes"}, []rule{
			{names: []string{"sql_mode"}, bad: func(v string) bool { return lacks("STRICT_TRANS_TABLES")(v) && lacks("STRICT_ALL_TABLES")(v) }, sessions: true, severity: fleet.SeverityWarning,
				what: "it is not strict", why: "values that do not fit are cut or changed, with a warning that nobody reads", risk: "wrong values",
				advice: "try STRICT_TRANS_TABLES in single sessions first: statements that were wrong then fail", doubt: "clients may set a mode of their own"},
			{names: []string{"sql_mode"}, bad: has("NO_AUTO_VALUE_ON_ZERO"), sessions: true, severity: fleet.SeverityInfo,
				what: "0 is no order for the next AUTO_INCREMENT value", why: "it is for loading dumps: programs that insert 0 get the row 0, once", doubt: "it may be meant so"},
			{names: []string{"sql_mode"}, bad: func(v string) bool {
				return slicesHas(v, "NO_AUTO_CREATE_USER", "DB2", "MAXDB", "MSSQL", "MYSQL323", "MYSQL40", "ORACLE", "POSTGRESQL", "NO_FIELD_OPTIONS", "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS")
			}, if_: func(s *Server) bool { return s.Server.AtLeast(50700, fleet.Never) }, sessions: true, severity: fleet.SeverityInfo,
				what: "it has modes that MySQL 8.0 does not know", why: "stored programs that were made with them stop an upgrade"},
			{names: []string{"innodb_strict_mode"}, bad: is("OFF"), want: "ON", sessions: true, severity: fleet.SeverityWarning,
				what: "InnoDB takes options of tables that it cannot have", why: "a table is then made otherwise than it says, with a warning that nobody reads", doubt: "old dumps may need it so"},
		}},
		{Check{"sql.session", "settings that change what the same statement means", "pt-variable-advisor: tx_isolation, init_connect, low_priority_updates, sql_notes"}, []rule{
			{names: []string{"autocommit"}, bad: is("OFF"), want: "ON", sessions: true, severity: fleet.SeverityWarning,
				what: "each statement begins a transaction that somebody has to commit", why: "one that is forgotten keeps locks and old rows, and a session that ends takes its writes back", risk: "writes are lost"},
			{names: []string{"foreign_key_checks"}, bad: is("OFF"), want: "ON", sessions: true, severity: fleet.SeverityWarning,
				what: "foreign keys are not checked", why: "rows without their parents get in, and nothing looks for them later", risk: "orphaned rows"},
			{names: []string{"unique_checks"}, bad: is("OFF"), want: "ON", sessions: true, severity: fleet.SeverityWarning,
				what: "InnoDB may skip looking for duplicates", why: "a unique index may get the same value twice", risk: "duplicate values"},
			{names: []string{"check_constraint_checks"}, bad: is("OFF"), want: "ON", sessions: true, severity: fleet.SeverityWarning,
				what: "CHECK constraints are not checked", why: "rows that break them get in, and nothing looks for them later", risk: "wrong values"},
			{names: []string{"transaction_isolation", "tx_isolation"}, bad: is("READ-UNCOMMITTED"), want: "REPEATABLE-READ", sessions: true, severity: fleet.SeverityWarning,
				what: "sessions read what others have not committed", why: "they see rows that are taken back, and sums that never were", risk: "wrong answers"},
			{names: []string{"transaction_isolation", "tx_isolation"}, bad: is("SERIALIZABLE"), sessions: true, severity: fleet.SeverityInfo,
				what: "each SELECT in a transaction locks the rows that it reads", why: "sessions wait for each other, and deadlocks are frequent", doubt: "it may be needed"},
			{names: []string{"explicit_defaults_for_timestamp"}, bad: is("OFF"), want: "ON", sessions: true, severity: fleet.SeverityInfo,
				what: "a TIMESTAMP column gets a default and changes with each UPDATE unless its definition says otherwise", why: "columns change that nobody meant to", doubt: "definitions that rely on it then mean something else"},
			{names: []string{"sql_auto_is_null"}, bad: is("ON"), want: "OFF", sessions: true, severity: fleet.SeverityInfo,
				what: "WHERE id IS NULL finds the row that was inserted last", why: "it is for ODBC programs of the past, and surprises all others"},
			{names: []string{"completion_type"}, bad: isNot("NO_CHAIN", "0"), want: "NO_CHAIN", sessions: true, severity: fleet.SeverityWarning,
				what: "COMMIT begins another transaction, or ends the session", why: "transactions stay open without anybody having begun them"},
			{names: []string{"low_priority_updates"}, bad: is("ON"), want: "OFF", sessions: true, severity: fleet.SeverityInfo,
				what: "writes to MyISAM tables wait for all reads", why: "they can wait for ever", doubt: "InnoDB tables do not care"},
			{names: []string{"sql_notes"}, bad: is("OFF"), want: "ON", sessions: true, severity: fleet.SeverityInfo,
				what: "notes are not told", why: "programs do not learn of them, such as of an index that is there twice"},
			{names: []string{"sql_select_limit"}, bad: below(1e18), severity: fleet.SeverityWarning, sessions: true, want: "18446744073709551615",
				what: "answers are cut after so many rows", why: "no error tells programs that they did not get all", risk: "wrong answers"},
			{names: []string{"init_connect"}, bad: filled, severity: fleet.SeverityInfo, what: "each session of an account without SUPER begins with it",
				why: "what it sets is not what programs were tested with, and an error in it keeps everybody out", doubt: "it may be meant so"},
			{names: []string{"init_replica", "init_slave"}, bad: filled, if_: replica, severity: fleet.SeverityInfo, what: "the replica runs it before it applies",
				why: "what it sets is not so on the source", doubt: "it may be meant so"},
			{names: []string{"init_file"}, bad: filled, severity: fleet.SeverityInfo, what: "the server runs the statements in this file with each start",
				why: "whoever can write the file can do anything on the server", doubt: "it may be meant so"},
			{names: []string{"default_storage_engine", "storage_engine"}, bad: isNot("InnoDB", ""), want: "InnoDB", sessions: true, severity: fleet.SeverityWarning,
				what: "new tables are not of InnoDB unless they say so", why: "most other engines have no transactions and do not survive crashes", risk: "tables without transactions"},
			{names: []string{"default_tmp_storage_engine"}, bad: isNot("InnoDB", "", "MEMORY"), want: "InnoDB", sessions: true, severity: fleet.SeverityInfo,
				what: "temporary tables are not of InnoDB unless they say so", why: "what is rolled back stays in them"},
			{names: []string{"optimizer_prune_level"}, bad: is("0"), want: "1", sessions: true, severity: fleet.SeverityWarning,
				what: "the optimizer tries all orders of tables", why: "planning a join of many tables takes longer than the join"},
			{names: []string{"big_tables"}, bad: is("ON"), want: "OFF", sessions: true, severity: fleet.SeverityWarning,
				what: "temporary tables of statements are made on disk", why: "sorts and groups that would fit into memory are slow"},
		}},
		{Check{"charset.server", "a default character set that cannot keep all text", "MySQL Shell: utf8mb3"}, []rule{
			{names: []string{"character_set_server"}, bad: func(v string) bool { return strings.HasPrefix(v, "latin") || is("ascii", "swe7", "hp8", "dec8")(v) }, want: "utf8mb4", sessions: true, severity: fleet.SeverityInfo,
				what: "new schemas keep text of some languages only", why: "other characters become question marks, or statements fail", doubt: "it is for schemas that are yet to be made, unless they say otherwise",
				effect: "at once, for schemas that are made from then on"},
			{names: []string{"character_set_server"}, bad: is("utf8", "utf8mb3"), want: "utf8mb4", sessions: true, severity: fleet.SeverityInfo,
				what: "new schemas cannot keep characters of four bytes, such as emoji", why: "statements with them fail, or text is cut there", doubt: "it is for schemas that are yet to be made, unless they say otherwise",
				effect: "at once, for schemas that are made from then on"},
		}},
		{Check{"names.case", "names of tables that a file system reads otherwise than the server", ""}, []rule{
			{names: []string{"lower_case_file_system"}, bad: is("ON"), if_: func(s *Server) bool { return s.text("lower_case_table_names") == "0" }, severity: fleet.SeverityCritical,
				what: "the file system does not tell capital letters from small ones, and lower_case_table_names is 0", why: "a table named in other letters damages its indexes", risk: "data are damaged",
				advice: "dump all data, and load them into a server with lower_case_table_names = 1"},
			{names: []string{"lower_case_table_names"}, bad: is("2"), severity: fleet.SeverityWarning, what: "names are kept as they are written and compared in small letters",
				why: "replicas with another setting do not find tables", advice: "1 is the same everywhere"},
		}},
	}
}

// slicesHas reports whether a list of words has one of some words.
func slicesHas(list string, words ...string) bool {
	for _, x := range strings.Split(list, ",") {
		if is(words...)(x) {
			return true
		}
	}
	return false
}

// securityRules are about who gets in, and what can be read on the way.
func securityRules() []settings {
	return []settings{
		{Check{"sec.local_infile", "files of clients that a server can ask for", ""}, []rule{
			{names: []string{"local_infile"}, bad: is("ON"), want: "OFF", severity: fleet.SeverityWarning,
				what: "LOAD DATA LOCAL is allowed", why: "whoever can change a statement reads files of the machine that the program runs on, and a server in the wrong hands asks clients for their files", risk: "files are read",
				doubt: "programs that load files this way then fail", effect: "at once; LOAD DATA LOCAL fails"},
		}},
		{Check{"sec.tls", "connections that can be read on the way", ""}, []rule{
			{names: []string{"require_secure_transport"}, bad: is("OFF"), if_: func(s *Server) bool { return listens(s) && !noTLS(s) }, want: "ON", severity: fleet.SeverityInfo,
				what: "clients may connect without TLS", why: "passwords of some kinds, statements and rows can be read on the way", risk: "data are read on the way",
				effect: "at once, for new connections: those over TCP without TLS are refused", doubt: "a network that nobody else reads needs none"},
			{names: []string{"tls_version"}, bad: func(v string) bool { return v != "" && slicesHas(v, "TLSv1", "TLSv1.0", "TLSv1.1") }, want: "TLSv1.2,TLSv1.3", start: true, severity: fleet.SeverityWarning,
				what: "old protocols are allowed", why: "TLS 1.0 and 1.1 have been withdrawn (RFC 8996)", risk: "data are read on the way"},
			{names: []string{"have_ssl"}, bad: is("DISABLED", "NO"), if_: listens, severity: fleet.SeverityWarning,
				what: "the server has no certificate", why: "passwords of some kinds, statements and rows can be read on the way", risk: "data are read on the way",
				advice: "give it one by ssl_cert and ssl_key in the option file, and restart it"},
		}},
		{Check{"sec.files", "files that the server reads and writes for clients", ""}, []rule{
			{names: []string{"secure_file_priv"}, bad: is(""), want: "NULL", start: true, severity: fleet.SeverityInfo,
				what: "accounts with FILE read and write all files that the server can", why: "a way from SQL to the machine", risk: "files are read and written",
				advice: "name a folder for them instead where files are loaded"},
			{names: []string{"have_symlink"}, bad: is("YES"), if_: hasMyISAM, start: true, severity: fleet.SeverityInfo,
				what: "MyISAM tables may be links to files elsewhere", why: "whoever can make tables can name files of others", risk: "files are read and written",
				advice: "set skip-symbolic-links below [mysqld] in the option file, and restart the server", doubt: "tables that are links then cannot be opened"},
			{names: []string{"allow_suspicious_udfs"}, bad: is("ON"), want: "OFF", start: true, severity: fleet.SeverityWarning,
				what: "any function of any library can be called", why: "a way from SQL to the machine"},
		}},
		{Check{"sec.old_passwords", "passwords of forms that have been broken", "pt-variable-advisor: old_passwords"}, []rule{
			{names: []string{"old_passwords"}, bad: is("ON", "1"), want: "0", sessions: true, severity: fleet.SeverityWarning, what: "new passwords are kept as MySQL 4.0 did", why: "they can be found within seconds", risk: "passwords are found"},
			{names: []string{"secure_auth"}, bad: is("OFF"), want: "ON", severity: fleet.SeverityWarning, what: "logins as of MySQL 4.0 are allowed", why: "their passwords can be found within seconds", risk: "passwords are found"},
			{names: []string{"default_authentication_plugin"}, bad: is("mysql_native_password", "mysql_old_password"), if_: func(s *Server) bool { return s.Server.AtLeast(80000, fleet.Never) }, start: true, want: "caching_sha2_password", severity: fleet.SeverityInfo,
				what: "new accounts have passwords in a form that MySQL 9 does not know", why: "it is SHA-1 without salt, and an upgrade to 9 locks these accounts out", doubt: "old clients know no other"},
		}},
		{Check{"sec.no_privileges", "a server without privileges", ""}, []rule{
			{names: []string{"skip_grant_tables"}, bad: is("ON"), start: true, want: "OFF", severity: fleet.SeverityCritical, what: "whoever connects may do everything", why: "it is for an administrator who forgot the password, for a minute", risk: "anybody does anything"},
		}},
	}
}

// noTLS reports whether the server has no certificate.
func noTLS(s *Server) bool { return is("DISABLED", "NO")(s.text("have_ssl")) }

// listens reports whether the server can be reached from other machines.
func listens(s *Server) bool {
	if s.on("skip_networking") {
		return false
	}
	for _, a := range strings.Split(s.first("bind_address"), ",") {
		switch strings.TrimSpace(a) {
		case "127.0.0.1", "::1", "localhost":
		default:
			return true
		}
	}
	return false
}

// certificate looks at when the server's TLS certificate ends.
func certificate(s *Server) []Finding {
	left := s.Certificate.Sub(s.Now)
	if s.Certificate.IsZero() || left > 21*24*3600e9 {
		return nil
	}
	f := Finding{Object: "certificate", Severity: fleet.SeverityWarning, What: "the server's TLS certificate ends in " + digits.Age(left.Seconds()), Why: "clients that verify it then cannot connect",
		Evidence: []string{"it ends on " + s.Certificate.UTC().Format("2006-01-02 15:04 MST")}, Cost: Cost{Risk: "clients cannot connect"},
		Advice: "put a new certificate into the files of ssl_cert and ssl_key first", Statement: s.ReloadCertificate(), Effect: "at once, for new connections"}
	switch {
	case left <= 0:
		f.Severity, f.What = fleet.SeverityCritical, "the server's TLS certificate ended "+digits.Age(-left.Seconds())+" ago"
		f.Why = "clients that verify it cannot connect"
	case left < 3*24*3600e9:
		f.Severity = fleet.SeverityCritical
	}
	return []Finding{f}
}

// logRules are about what nobody will be able to look up.
func logRules() []settings {
	return []settings{
		{Check{"log.general", "a log of all statements", ""}, []rule{
			{names: []string{"general_log"}, bad: is("ON"), want: "OFF", severity: fleet.SeverityWarning, what: "each statement is written to the general log", why: "it costs each statement time under one lock, fills the disk, and has values that should not be in files", risk: "the disk fills up", doubt: "it may be on for an investigation"},
		}},
		{Check{"log.slow", "a slow log that tells nothing, or costs too much", "pt-variable-advisor: log_output"}, []rule{
			{names: []string{"slow_query_log", "log_slow_query"}, bad: is("OFF"), if_: func(s *Server) bool { return !s.on("performance_schema") }, want: "ON", severity: fleet.SeverityInfo, what: "slow statements are not logged, and performance_schema is off", why: "which statements cost the time is not known afterwards"},
			{names: []string{"long_query_time"}, bad: above(5), if_: func(s *Server) bool { return s.on("slow_query_log") }, want: "1", sessions: true, severity: fleet.SeverityInfo, what: "only statements that take longer than so many seconds are logged", why: "most of what a server does is in statements that are shorter"},
			{names: []string{"log_output"}, bad: has("TABLE"), if_: func(s *Server) bool { return s.on("slow_query_log") || s.on("general_log") }, want: "FILE", severity: fleet.SeverityWarning, what: "logs are written to tables", why: "each entry waits for a lock of the table, and reading them reads all of it"},
			{names: []string{"log_queries_not_using_indexes"}, bad: is("ON"), if_: func(s *Server) bool {
				return s.on("slow_query_log") && s.text("log_throttle_queries_not_using_indexes") == "0"
			}, want: "OFF", severity: fleet.SeverityInfo, what: "each statement without an index is logged, however short", why: "small tables need none: the log is full of them", doubt: "it may be on for an investigation"},
		}},
		{Check{"log.errors", "an error log without what matters", "pt-variable-advisor: log_warnings"}, []rule{
			{names: []string{"log_error_verbosity"}, bad: is("1"), want: "2", severity: fleet.SeverityInfo, what: "warnings are not in the error log", why: "why connections were aborted, or statements are unsafe for replicas, is not known afterwards"},
			{names: []string{"log_warnings"}, bad: below(2), if_: func(s *Server) bool { return s.text("log_error_verbosity") == "" }, want: "2", severity: fleet.SeverityInfo, what: "warnings are not in the error log, or only some", why: "why connections were aborted, or statements are unsafe for replicas, is not known afterwards"},
		}},
		{Check{"observe.off", "a server that does not say what it does", ""}, []rule{
			{names: []string{"performance_schema"}, bad: is("OFF"), want: "ON", start: true, severity: fleet.SeverityInfo, what: "the server does not count statements and waits", why: "which statements cost the time, who holds which lock and which indexes nobody uses is not known", doubt: "it takes memory, and some per cent of throughput"},
		}},
	}
}
