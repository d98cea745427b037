package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/measure/drive"
)

// lookPatience is how long a look into the catalogue may take: MariaDB opens every table for it.
const lookPatience = 5 * time.Minute

// TenantPrefix begins the names of the schemas that workload schemas makes. No others are named so.
const TenantPrefix = "risso_tenant_"

// ErrNoDatabase says that an address names no database.
var ErrNoDatabase = errors.New("the address names no database")

// Ask runs a query and gives its rows. It is for queries on the catalogue, not for measuring.
func Ask(s drive.Session, sql string, args ...drive.Arg) ([][]drive.Value, error) {
	r, err := drive.Ask(s, sql, args...)
	if err != nil {
		return nil, err
	}
	var rows [][]drive.Value
	for i := 0; r.Columns > 0 && i+r.Columns <= len(r.Values); i += r.Columns {
		rows = append(rows, append([]drive.Value{}, r.Values[i:i+r.Columns]...))
	}
	return rows, nil
}

// Tables returns the tables and views of the session's database whose names begin with prefix, and whether each of them was
// made by Prepare.
func Tables(s drive.Session, prefix string) (map[string]bool, error) {
	sql := "SELECT /* risso: whose are the tables? */ table_name, table_comment FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE ?"
	if s.Dialect() == drive.Postgres {
		sql = "SELECT /* risso: whose are the tables? */ relname::text, COALESCE(obj_description(oid, 'pg_class'), '') FROM pg_class WHERE relkind IN ('r','p','v','m','f') AND relnamespace = current_schema()::regnamespace AND relname LIKE $1"
	} else if rows, err := Ask(s, "SELECT /* risso: in which database? */ DATABASE()"); err != nil {
		return nil, err
	} else if len(rows) == 1 && rows[0][0].Null {
		return nil, ErrNoDatabase
	}
	rows, err := Ask(s, sql, drive.Text([]byte(strings.NewReplacer("_", `\_`, "%", `\%`).Replace(prefix)+"%")))
	if err != nil {
		return nil, fmt.Errorf("list the tables: %w", err)
	}
	tables := map[string]bool{}
	for _, r := range rows {
		tables[string(r[0].Text)] = string(r[1].Text) == Mark
	}
	return tables, nil
}

// The base tables without the mark, outside of what belongs to the server and to workload schemas.
const (
	othersMySQL = `SELECT /* risso: whose data are here? */ table_schema, table_name FROM information_schema.tables
 WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
 AND LEFT(table_schema, 13) <> 'risso_tenant_' AND table_comment <> '` + Mark + `' ORDER BY 1, 2`
	othersPostgres = `SELECT /* risso: whose data are here? */ n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r','p') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\_t%' AND n.nspname NOT LIKE 'risso\_tenant\_%'
 AND COALESCE(obj_description(c.oid, 'pg_class'), '') <> '` + Mark + `' ORDER BY 1, 2`
)

// Others finds the data on a server that is no benchmark's: it counts the base tables outside of the system's schemas that
// neither carry the mark nor look like sysbench's, and names the first. With PostgreSQL it sees one database.
func Others(ctx context.Context, t drive.Target) (n int, first string, err error) {
	var stop drive.Stop
	defer context.AfterFunc(ctx, stop.Set)()
	s, err := t.Open(ctx, &stop)
	if err != nil {
		return 0, "", err
	}
	defer s.Close()
	s.SetPatience(lookPatience)
	sql := othersMySQL
	if s.Dialect() == drive.Postgres {
		sql = othersPostgres
	}
	rows, err := Ask(s, sql)
	if err != nil {
		return 0, "", fmt.Errorf("look for other data: %w", err)
	}
	for _, r := range rows {
		schema, table := string(r[0].Text), string(r[1].Text)
		if sysbenchName(table) {
			ok, err := sysbenchShape(s, schema, table)
			if err != nil {
				return 0, "", fmt.Errorf("look for other data: %w", err)
			}
			if ok {
				continue
			}
		}
		if n++; n == 1 {
			first = schema + "." + table
		}
	}
	return n, first, nil
}

// sysbenchName reports whether a table is called sbtest and a number.
func sysbenchName(table string) bool {
	digits, ok := strings.CutPrefix(table, "sbtest")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// sysbenchShape reports whether a table has the columns of sysbench's: those of bulk_insert have no c and pad.
func sysbenchShape(s drive.Session, schema, table string) (bool, error) {
	sql := "SELECT /* risso: whose data are here? */ column_name FROM information_schema.columns WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position"
	if s.Dialect() == drive.Postgres {
		sql = "SELECT /* risso: whose data are here? */ column_name::text FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2 ORDER BY ordinal_position"
	}
	rows, err := Ask(s, sql, drive.Text([]byte(schema)), drive.Text([]byte(table)))
	if err != nil {
		return false, err
	}
	var columns []string
	for _, r := range rows {
		columns = append(columns, string(r[0].Text))
	}
	shape := strings.Join(columns, ",")
	return shape == "id,k,c,pad" || shape == "id,k", nil
}

// CheckEngine says whether this may be the name of a storage engine; it goes into a statement as it is.
func CheckEngine(name string) error {
	if strings.Trim(name, "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return fmt.Errorf("%w: --engine %q is not the name of a storage engine", ErrUsage, name)
	}
	return nil
}
