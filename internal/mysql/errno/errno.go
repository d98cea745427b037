// Package errno names the numbers of servers' errors that Risso acts on. Sources: MySQL's "Server Error Message Reference", MariaDB's
// "MariaDB Error Code Reference".
package errno

import "github.com/rissodb/risso/internal/pattern"

// The numbers, by the symbols of those references.
const (
	CheckRead                = 1020  // ER_CHECKREAD: the row changed since it was read (MariaDB's snapshot isolation)
	KeyNotFound              = 1032  // ER_KEY_NOT_FOUND: a row which an event changes is not there
	ChannelRuns              = 3081  // of MySQL, ER_SLAVE_CHANNEL_MUST_STOP
	WorkerStoppedBehind      = 3030  // of MySQL: an applier stopped because one before it, in the order of commits, had failed
	TooManyConnections       = 1040  // ER_CON_COUNT_ERROR
	DatabaseDenied           = 1044  // ER_DBACCESS_DENIED_ERROR
	AccessDenied             = 1045  // ER_ACCESS_DENIED_ERROR
	NoDatabase               = 1046  // ER_NO_DB_ERROR
	DatabaseExists           = 1007  // ER_DB_CREATE_EXISTS
	NoDatabaseToDrop         = 1008  // ER_DB_DROP_EXISTS
	UnknownCommand           = 1047  // ER_UNKNOWN_COM_ERROR: Galera says it of a node outside the primary component
	UnknownDatabase          = 1049  // ER_BAD_DB_ERROR
	TableExists              = 1050  // ER_TABLE_EXISTS_ERROR
	NoTableToDrop            = 1051  // ER_BAD_TABLE_ERROR
	ServerShutdown           = 1053  // ER_SERVER_SHUTDOWN
	UnknownColumn            = 1054  // ER_BAD_FIELD_ERROR
	NameTooLong              = 1059  // ER_TOO_LONG_IDENT
	ColumnExists             = 1060  // ER_DUP_FIELDNAME
	KeyExists                = 1061  // ER_DUP_KEYNAME
	DuplicateEntry           = 1062  // ER_DUP_ENTRY
	ParseError               = 1064  // ER_PARSE_ERROR
	NoSuchThread             = 1094  // ER_NO_SUCH_THREAD
	WrongSchemaName          = 1102  // ER_WRONG_DB_NAME
	WrongTableName           = 1103  // ER_WRONG_TABLE_NAME
	UnknownTable             = 1109  // ER_UNKNOWN_TABLE
	NothingToDrop            = 1091  // ER_CANT_DROP_FIELD_OR_KEY
	TableFull                = 1114  // ER_RECORD_FILE_FULL
	DiskFull                 = 1021  // ER_DISK_FULL
	HostBlocked              = 1129  // ER_HOST_IS_BLOCKED
	HostNotPrivileged        = 1130  // ER_HOST_NOT_PRIVILEGED
	NoSuchAccount            = 1133  // ER_PASSWORD_NO_MATCH: the server has not loaded the account
	WrongValueCount          = 1136  // ER_WRONG_VALUE_COUNT_ON_ROW
	TableDenied              = 1142  // ER_TABLEACCESS_DENIED_ERROR
	ColumnDenied             = 1143  // ER_COLUMNACCESS_DENIED_ERROR
	NoSuchTable              = 1146  // ER_NO_SUCH_TABLE
	SyntaxError              = 1149  // ER_SYNTAX_ERROR
	CommitError              = 1180  // ER_ERROR_DURING_COMMIT
	NewAbortingConnection    = 1184  // ER_NEW_ABORTING_CONNECTION
	UnknownVariable          = 1193  // ER_UNKNOWN_SYSTEM_VARIABLE
	TooManyUserConnections   = 1203  // ER_TOO_MANY_USER_CONNECTIONS
	LockWaitTimeout          = 1205  // ER_LOCK_WAIT_TIMEOUT
	WrongArguments           = 1210  // ER_WRONG_ARGUMENTS
	WrongUsage               = 1221  // ER_WRONG_USAGE: words that do not go together
	Deadlock                 = 1213  // ER_LOCK_DEADLOCK
	CannotAddForeignKey      = 1215  // ER_CANNOT_ADD_FOREIGN
	UserLimitReached         = 1226  // ER_USER_LIMIT_REACHED
	SpecificAccessDenied     = 1227  // ER_SPECIFIC_ACCESS_DENIED_ERROR
	WrongValue               = 1231  // ER_WRONG_VALUE_FOR_VAR
	WrongType                = 1232  // ER_WRONG_TYPE_FOR_VAR
	BinlogUnreadable         = 1236  // ER_MASTER_FATAL_ERROR_READING_BINLOG
	ReadOnlyVariable         = 1238  // ER_INCORRECT_GLOBAL_LOCAL_VAR
	OptionPrevents           = 1290  // ER_OPTION_PREVENTS_STATEMENT
	NotPreparable            = 1295  // ER_UNSUPPORTED_PS
	InvalidCharacters        = 1300  // ER_INVALID_CHARACTER_STRING
	NoSuchProgram            = 1305  // ER_SP_DOES_NOT_EXIST
	QueryInterrupted         = 1317  // ER_QUERY_INTERRUPTED
	ViewNoExplain            = 1345  // ER_VIEW_NO_EXPLAIN
	ViewInvalid              = 1356  // ER_VIEW_INVALID
	NoDefault                = 1364  // ER_NO_DEFAULT_FOR_FIELD
	ProgramDenied            = 1370  // ER_PROCACCESS_DENIED_ERROR
	NoBinlog                 = 1381  // ER_NO_BINARY_LOGGING
	UnknownXID               = 1397  // ER_XAER_NOTA
	TableChanged             = 1412  // ER_TABLE_DEF_CHANGED
	UnsafeFunction           = 1418  // ER_BINLOG_UNSAFE_ROUTINE
	FunctionNeedsSuper       = 1419  // ER_BINLOG_CREATE_ROUTINE_NEED_SUPER
	NoSuchUser               = 1449  // ER_NO_SUCH_USER: the definer does not exist
	TooManyStatements        = 1461  // ER_MAX_PREPARED_STMT_COUNT_REACHED
	DuplicateEntryOf         = 1586  // ER_DUP_ENTRY_WITH_KEY_NAME
	ReadOnlyTransaction      = 1792  // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
	AccountFailed            = 1396  // ER_CANNOT_USER: CREATE, DROP or ALTER USER
	ReplicaFatal             = 1593  // ER_SLAVE_FATAL_ERROR
	RelayLogUnreadable       = 1594  // ER_SLAVE_RELAY_LOG_READ_FAILURE
	ReplicaRepository        = 1872  // ER_SLAVE_RLI_INIT_REPOSITORY
	GTIDOutOfOrder           = 1950  // ER_GTID_STRICT_OUT_OF_ORDER, MariaDB only
	CannotConnectSocket      = 2002  // CR_CONNECTION_ERROR: of the client library, which replicas are, as those that follow
	CannotConnect            = 2003  // CR_CONN_HOST_ERROR
	UnknownHost              = 2005  // CR_UNKNOWN_HOST
	ConnectionGone           = 2006  // CR_SERVER_GONE_ERROR
	ConnectionLost           = 2013  // CR_SERVER_LOST
	ConnectionLostWhile      = 2055  // CR_SERVER_LOST_EXTENDED
	NeedsSecureLogin         = 2061  // CR_AUTH_PLUGIN_ERR: of the client library, which replicas are
	SourceLogUnreadable      = 13114 // ER_SERVER_SOURCE_FATAL_ERROR_READING_BINLOG: 1236 as MySQL 8.0 and later say it
	ReplicaFatalServer       = 13117 // ER_RPL_REPLICA_FATAL_ERROR: 1593 likewise
	RelayLogUnreadableServer = 13121 // ER_RPL_REPLICA_RELAY_LOG_READ_FAILURE: 1594 likewise
	MustChangePassword       = 1820  // ER_MUST_CHANGE_PASSWORD
	ForeignKeyNoIndex        = 1822  // ER_FK_NO_INDEX_PARENT
	ReadOnlyServer           = 1836  // ER_READ_ONLY_MODE
	AlterWayRefused          = 1845  // ER_ALTER_OPERATION_NOT_SUPPORTED: not by that ALGORITHM or under that LOCK
	AlterWayRefusedWhy       = 1846  // ER_ALTER_OPERATION_NOT_SUPPORTED_REASON: likewise
	MustChangePasswordLogin  = 1862  // ER_MUST_CHANGE_PASSWORD_LOGIN
	PluginInUse              = 1883  // ER_PLUGIN_CANNOT_BE_UNINSTALLED
	ConnectionKilled         = 1927  // ER_CONNECTION_KILLED, MariaDB only
	NoPlanMariaDB            = 1933  // ER_TARGET_NOT_EXPLAINABLE, MariaDB only: SHOW EXPLAIN of a session that runs nothing with a plan
	StatementTimeoutMariaDB  = 1969  // ER_STATEMENT_TIMEOUT, MariaDB only: max_statement_time
	NoPlan                   = 3012  // ER_EXPLAIN_NOT_SUPPORTED: EXPLAIN FOR CONNECTION of such a session
	StatementTimeout         = 3024  // ER_QUERY_TIMEOUT: max_execution_time
	RolledBackByReplication  = 3101  // ER_TRANSACTION_ROLLBACK_DURING_COMMIT: Group Replication
	AccountLocked            = 3118  // ER_ACCOUNT_HAS_BEEN_LOCKED
	SecureTransportRequired  = 3159  // ER_SECURE_TRANSPORT_REQUIRED
	SessionKilled            = 3169  // ER_SESSION_WAS_KILLED
	AccountBlocked           = 3955  // ER_USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK
	AccountBlockedMariaDB    = 4150  // ER_USER_IS_BLOCKED, MariaDB only: max_password_errors
	AccountLockedMariaDB     = 4151  // ER_ACCOUNT_HAS_BEEN_LOCKED, MariaDB only
	RestartFailed            = 3707  // ER_RESTART_SERVER_FAILED: nobody would start it again
	ForeignKeyNoColumn       = 3734  // ER_FK_NO_COLUMN_PARENT
	NeedsPrimaryKey          = 3750  // ER_TABLE_WITHOUT_PK
	ForeignKeyMisfit         = 3780  // ER_FK_INCOMPATIBLE_COLUMNS
	CheckViolated            = 3819  // ER_CHECK_CONSTRAINT_VIOLATED
	ClientInactive           = 4031  // ER_CLIENT_INTERACTION_TIMEOUT
)

// quotedValue is a value that an error of a server quotes: Duplicate entry '17' for key, Incorrect integer value: 'x' for column.
var quotedValue = pattern.Lazy(`(?s)(entry |value: )'.*?' (for (?:key|column)|at row)`)

// WithoutValues is the text of an error, or one that holds it, without the values that servers quote in it.
func WithoutValues(text string) string { return quotedValue().ReplaceAllString(text, "$1? $2") }
