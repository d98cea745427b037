package advise

import (
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// Server is what was read of a server as a whole.
type Server struct {
	mysql.Server
	Now       time.Time
	Variables map[string]string  // global variables; nil: they could not be read
	Status    map[string]float64 // global status by its names in small letters, of what is a number; nil: it could not be read

	// References are the foreign keys that refer to a table. On a server that ignores letters' case in names they are in small letters.
	References map[mysql.TableName][]Reference
	Hinted     map[string]string // where a hint names an index: its name in small letters to what has the hint
	Blind      string            // what of foreign keys and hints the account may not see, so that an index may be needed; "" if it sees all

	Missing []fleet.Trouble // what could not be read, so that nothing was looked for in it
}

// Reference is a foreign key of another table, or of the same, as the table sees it to which it refers.
type Reference struct {
	define.ForeignKey
	Table mysql.TableName // that has it
}

// Table is what was read of a table. Sizes are bytes, and estimates of the server.
type Table struct {
	define.Table
	Rows  float64
	Data  float64            // of the clustered index, or of the rows
	Free  float64            // inside
	Next  float64            // the next AUTO_INCREMENT value; 0: it has none
	Bytes map[string]float64 // of each index, by its name, where the server tells it
}

// name is the table's name.
func (t *Table) name() mysql.TableName { return mysql.TableName{Schema: t.Schema, Name: t.Name} }

// object is how findings name the table.
func (t *Table) object() string { return t.Schema + "." + t.Name }

// primary returns the primary key, or nil.
func (t *Table) primary() *define.TableKey {
	i := slices.IndexFunc(t.Keys, func(k define.TableKey) bool { return k.Name == "PRIMARY" })
	if i < 0 {
		return nil
	}
	return &t.Keys[i]
}

// clustered is the index that InnoDB keeps the rows in: the primary key, or the first unique index over whole columns that are never NULL
// (MySQL manual, "Clustered and Secondary Indexes"); nil if there is neither.
func (t *Table) clustered() *define.TableKey {
	if p := t.primary(); p != nil {
		return p
	}
	if i := implicitKey(t); i >= 0 {
		return &t.Keys[i]
	}
	return nil
}

// innodb reports whether it is a table of InnoDB.
func (t *Table) innodb() bool { return strings.EqualFold(t.Engine, "InnoDB") }

// alter begins a statement that changes the table.
func (t *Table) alter() string { return "ALTER TABLE " + t.name().String() + " " }

// referencesTo are the foreign keys that refer to a table.
func (s *Server) referencesTo(t mysql.TableName) []Reference {
	if list := s.References[t]; list != nil {
		return list
	}
	return s.References[mysql.TableName{Schema: strings.ToLower(t.Schema), Name: strings.ToLower(t.Name)}]
}
