package snapshot

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Before 8.0 MySQL's TRUNCATE TABLE keeps a table's CREATE_TIME, and an older snapshot then sees no row of it, without the error
// 1412 that other servers give (seen with 5.7.22). The table's number in InnoDB shows it: it changes.

// quietTruncate reports whether a server empties tables without a trace that every account sees.
func quietTruncate(s mysql.Server) bool { return !s.MariaDB() && !s.AtLeast(80000, fleet.Never) }

// newestTable is the highest number of a table in InnoDB; -1: the account may not see it, for which it takes PROCESS.
func newestTable(ctx context.Context, st *mysql.Stream) (n int64, err error) {
	err = st.Query(ctx, "SELECT /* risso: which table was made last? */ MAX(TABLE_ID) FROM information_schema.INNODB_SYS_TABLES", func(row [][]byte) error {
		n, err = strconv.ParseInt(string(row[0]), 10, 64)
		return err
	})
	if mysql.ClassOf(err) == mysql.ClassPrivilege {
		return -1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("ask for the newest table: %w", err)
	}
	return n, nil
}

// Emptied reports whether a table may have been emptied since the snapshot without a trace. nil: of none.
func (s *Snapshot) Emptied(ctx context.Context) (func(mysql.TableName) bool, error) {
	if !quietTruncate(s.Server) {
		return nil, nil
	}
	if s.newest < 0 {
		return func(mysql.TableName) bool { return true }, nil
	}
	made := map[string]bool{}
	err := s.control.Query(ctx, fmt.Sprintf("SELECT /* risso: which tables were emptied? */ NAME FROM information_schema.INNODB_SYS_TABLES WHERE TABLE_ID > %d", s.newest), func(row [][]byte) error {
		name, _, _ := strings.Cut(strings.ToLower(string(row[0])), "#p#") // of a partition
		made[plainFileName(name)] = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask which tables were emptied: %w", err)
	}
	return func(t mysql.TableName) bool {
		return made[plainFileName(strings.ToLower(t.Schema)+"/"+strings.ToLower(t.Name))]
	}, nil
}

// plainFileName returns the beginning of a name that is unchanged in the name of a file. Names that differ only after it are
// taken for the same. Source: MySQL manual, "Mapping of Identifiers to File Names".
func plainFileName(name string) string {
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c != '/' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return name[:i] + "@"
		}
	}
	return name
}
