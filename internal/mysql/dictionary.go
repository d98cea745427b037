package mysql

import "fmt"

// This file says how servers are asked for tables and foreign keys of all schemas without opening each.

// ForeignKeysStatement lists the columns of all foreign keys that the account may see, in their order: schema, table, name, column, then schema,
// table and column that it refers to.
func (s Server) ForeignKeysStatement() string {
	return "SELECT /* risso: foreign keys */ TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME" +
		" FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL ORDER BY TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION"
}

// InnoDBForeignKeys asks InnoDB for all foreign keys of the server, where looking for them in information_schema opens every table; both are "" if
// that is cheap. keys tells for each its ID, schema and table, then schema and table that it refers to, and columns the ID, a column and the one
// that it refers to, in their order. InnoDB keeps names of tables as their files are called. It needs PROCESS, and sees tables that the account may
// not see.
func (s Server) InnoDBForeignKeys() (keys, columns string) {
	if s.Dictionary() {
		return "", ""
	}
	return "SELECT /* risso: foreign keys */ ID, " + s.decoded("FOR_NAME") + ", " + s.decoded("REF_NAME") + " FROM information_schema.INNODB_SYS_FOREIGN WHERE FOR_NAME NOT LIKE '%/#sql%'",
		"SELECT /* risso: columns of foreign keys */ ID, FOR_COL_NAME, REF_COL_NAME FROM information_schema.INNODB_SYS_FOREIGN_COLS ORDER BY ID, POS"
}

// decoded are schema and table of a column that has them as their files are called; as they are, if the server does not read those.
func (s Server) decoded(column string) string {
	part := "SUBSTRING_INDEX(%s, '/', %d)"
	if s.ReadsFileNames() {
		part = "CONVERT(CONVERT(CAST(SUBSTRING_INDEX(%s, '/', %d) AS BINARY) USING filename) USING utf8mb4)"
	}
	return fmt.Sprintf(part+", "+part, column, 1, column, -1)
}

// ReadsFileNames reports whether statements can read the names that files of tables have: MariaDB. Else InnoDBForeignKeys and InnoDBTables tell a
// name that has other signs than letters and digits as that of the file, with an @.
func (s Server) ReadsFileNames() bool { return s.MariaDB() }

// TablesUnopened lists the tables of a schema by what their definition tells, name, kind and engine, where all else of them makes the server open
// each (MariaDB documentation, "Optimizing for Information Schema Tables": OPEN_FRM_ONLY); "" if that is cheap, or if the other two are not to be had. sizes then are the rows and pages, of the clustered index and
// of all others, that InnoDB's statistics have of tables; it needs SELECT on them, and a table that has none, such as each that has partitions, is
// not in it. odd are schema and name of the tables of all schemas whose row format is not Dynamic; it needs PROCESS.
func (s Server) TablesUnopened(schema string) (list, sizes, odd string) {
	if s.Dictionary() || !s.ReadsFileNames() {
		return "", "", ""
	}
	return "SELECT /* risso: tables, without opening them */ TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = " + Literal(schema),
		"SELECT /* risso: sizes of tables, without opening them */ table_name, n_rows, clustered_index_size, sum_of_other_index_sizes FROM mysql.innodb_table_stats WHERE database_name = " + Literal(schema),
		"SELECT /* risso: row formats */ " + s.decoded("NAME") + " FROM information_schema.INNODB_SYS_TABLES WHERE NAME LIKE '%/%' AND ROW_FORMAT <> 'Dynamic'"
}

// InnoDBTables asks InnoDB for schema and name of its tables, where information_schema opens a file to tell whether a name is that of a table; ""
// if that is cheap. It needs PROCESS.
func (s Server) InnoDBTables() string {
	if s.Dictionary() {
		return ""
	}
	return "SELECT /* risso: tables of InnoDB */ " + s.decoded("NAME") + " FROM information_schema.INNODB_SYS_TABLES WHERE NAME LIKE '%/%'"
}

// Dictionary reports whether information_schema is views of a dictionary that is kept in tables, MySQL since 8.0: reading it opens no table, it
// tells all of an index, and several schemas are asked for as cheaply as one (MySQL manual, "Data Dictionary Usage Differences").
func (s Server) Dictionary() bool { return s.atLeast(80000) }
