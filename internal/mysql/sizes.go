package mysql

import (
	"errors"
	"strconv"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/mysql/errno"
)

// Tablespace is a file, or several, of InnoDB as the server tells of it.
type Tablespace struct {
	ID        uint32
	Schema    string // "": of no single table: the system's, undo, temporary, general
	Table     string // what the name says: the table, or an auxiliary one of a full-text index
	Partition string // with its subpartition, as the file has it: p0, p0#SP#s1; "": none
	Name      string // as the server has it
	RowFormat string
	File      int64 // bytes from beginning to end; 0: the server does not know
	Allocated int64 // bytes that the file system has given for it: less than File if there are holes
}

// tablespaceColumns are read by ReadTablespace.
const tablespaceColumns = "SPACE, NAME, ROW_FORMAT, FILE_SIZE, ALLOCATED_SIZE"

// Tablespaces is the statement that lists the tablespaces of InnoDB; it needs PROCESS. Its rows are read by ReadTablespace. The file sizes
// are those of the files as they are now: the server asks the file system. Sources: MySQL manual, "The INFORMATION_SCHEMA
// INNODB_TABLESPACES Table"; MariaDB documentation, "Information Schema INNODB_SYS_TABLESPACES Table".
func (s Server) Tablespaces() string {
	switch {
	case s.MariaDB(): // it alone lets a statement read names of files, which is what these are
		const rest = "SUBSTRING_INDEX(SUBSTRING_INDEX(SUBSTRING_INDEX(NAME, '/', -1), '#P#', 1), '#p#', 1)"
		return "SELECT /* risso: sizes of files */ " + tablespaceColumns + ", CONVERT(CAST(SUBSTRING_INDEX(NAME, '/', 1) AS BINARY) USING filename), CONVERT(CAST(" + rest + " AS BINARY) USING filename) FROM information_schema.INNODB_SYS_TABLESPACES"
	case s.atLeast(80000):
		return "SELECT /* risso: sizes of files */ " + tablespaceColumns + " FROM information_schema.INNODB_TABLESPACES"
	}
	return "SELECT /* risso: sizes of files */ " + tablespaceColumns + " FROM information_schema.INNODB_SYS_TABLESPACES"
}

// ListsOpened reports whether Tablespaces leaves out tables that the server has not opened since it started: MariaDB (seen with 10.11.19,
// and nowhere in its documentation).
func (s Server) ListsOpened() bool { return s.MariaDB() }

// FileNames is the statement that reads names of files as the names that they stand for, in one row; for servers that ListsOpened.
func (s Server) FileNames(names []string) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = "CONVERT(CAST(" + Literal(n) + " AS BINARY) USING filename)"
	}
	return "SELECT /* risso: names of files */ " + strings.Join(list, ", ")
}

// ReadTablespace reads a row of Tablespaces. MySQL before 8.0 gives names as files have them; of those, letters with accents and the like
// stay as they are in the file's name.
func (s Server) ReadTablespace(row [][]byte) Tablespace {
	id, _ := strconv.ParseUint(string(row[0]), 10, 32)
	file, _ := strconv.ParseInt(string(row[3]), 10, 64)
	allocated, _ := strconv.ParseInt(string(row[4]), 10, 64)
	t := Tablespace{ID: uint32(id), Name: string(row[1]), RowFormat: string(row[2]), File: file, Allocated: allocated}
	if t.Allocated == 0 {
		t.Allocated = t.File
	}
	schema, table, ok := strings.Cut(t.Name, "/")
	if !ok {
		return t
	}
	t.Schema, t.Table = schema, table
	if i := strings.Index(strings.ToLower(table), "#p#"); i > 0 {
		t.Table, t.Partition = table[:i], table[i+3:]
	}
	switch {
	case len(row) > 6:
		t.Schema, t.Table = string(row[5]), string(row[6])
	case !s.atLeast(80000):
		t.Schema, t.Table = fromFileName(t.Schema), fromFileName(t.Table)
	}
	return t
}

// fromFileName reads what a file's name has in place of a sign: @ and four digits. Source: MySQL manual, "Mapping of Identifiers to File
// Names".
func fromFileName(name string) string {
	var b strings.Builder
	for len(name) > 0 {
		if name[0] == '@' && len(name) >= 5 {
			if n, err := strconv.ParseUint(name[1:5], 16, 32); err == nil {
				b.WriteRune(rune(n))
				name = name[5:]
				continue
			}
		}
		b.WriteByte(name[0])
		name = name[1:]
	}
	return b.String()
}

// SharedFiles is the statement that lists files of InnoDB that are of no single table: name of the tablespace, kind of file, bytes, bytes
// that are free in it (whole extents); "" if the server tells no more of them than Tablespaces does. It needs PROCESS. The sizes
// are in whole extents. Source: MySQL manual, "The INFORMATION_SCHEMA FILES Table".
func (s Server) SharedFiles() string {
	if !s.atLeast(50708) {
		return ""
	}
	return "SELECT /* risso: sizes of files */ TABLESPACE_NAME, FILE_TYPE, TOTAL_EXTENTS * EXTENT_SIZE, DATA_FREE FROM information_schema.FILES WHERE ENGINE = 'InnoDB' AND TABLESPACE_NAME NOT LIKE '%/%' AND TABLESPACE_NAME NOT LIKE 'innodb\\_file\\_per\\_table%'"
}

// SessionTemporary is the statement for how many files with temporary tables of sessions there are and how large they are; "" if there are
// none: MySQL since 8.0.13.
func (s Server) SessionTemporary() string {
	if !s.atLeast(80013) {
		return ""
	}
	return "SELECT /* risso: sizes of files */ COUNT(*), SUM(SIZE) FROM information_schema.INNODB_SESSION_TEMP_TABLESPACES"
}

// DoublewriteFiles reports whether the doublewrite buffer has files of its own, whose size the server does not tell: MySQL since 8.0.20.
// Before, and on MariaDB, it is 2 MiB of the system tablespace.
func (s Server) DoublewriteFiles() bool { return s.atLeast(80020) }

// FullTextParts is the statement for the tables that some auxiliary tables of full-text indexes belong to, by the ID that their name has:
// ID and name as Tablespaces has it, which ReadTableName reads.
func (s Server) FullTextParts(ids []uint64) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = strconv.FormatUint(id, 10)
	}
	from, more := "INNODB_SYS_TABLES", ""
	switch {
	case s.MariaDB():
		more = ", CONVERT(CAST(SUBSTRING_INDEX(NAME, '/', 1) AS BINARY) USING filename), CONVERT(CAST(SUBSTRING_INDEX(NAME, '/', -1) AS BINARY) USING filename)"
	case s.atLeast(80000):
		from = "INNODB_TABLES"
	}
	return "SELECT /* risso: whose full-text indexes? */ TABLE_ID, NAME" + more + " FROM information_schema." + from + " WHERE TABLE_ID IN (" + strings.Join(list, ", ") + ")"
}

// ReadTableName reads a row of FullTextParts.
func (s Server) ReadTableName(row [][]byte) (id uint64, name TableName) {
	id, _ = strconv.ParseUint(string(row[0]), 10, 64)
	schema, table, _ := strings.Cut(string(row[1]), "/")
	switch {
	case len(row) > 3:
		schema, table = string(row[2]), string(row[3])
	case !s.atLeast(80000):
		schema, table = fromFileName(schema), fromFileName(table)
	}
	return id, TableName{schema, table}
}

// PageCompression are the words of an ALTER TABLE that let InnoDB compress pages and give back what that saves to the file system, which
// must be able to make holes in files; "" if the server cannot: MySQL since 5.7.8, MariaDB since 10.1.
func (s Server) PageCompression() string {
	switch {
	case s.MariaDB() && s.Number >= 100100:
		return "PAGE_COMPRESSED = 1"
	case s.atLeast(50708):
		return "COMPRESSION = 'zlib'"
	}
	return ""
}

// SparsePages reports whether files of tables with compressed pages grow by holes. MySQL gives them blocks for what is yet to be filled, as it
// does for all others (seen with 9.7.4, and with MariaDB 10.11.19).
func (s Server) SparsePages() bool { return s.MariaDB() }

// OutOfTime reports whether a server ended a statement at the limit of Bounded or BoundStatements.
func OutOfTime(err error) bool {
	var e *driver.MySQLError
	return errors.As(err, &e) && (e.Number == errno.StatementTimeout || e.Number == errno.StatementTimeoutMariaDB)
}
