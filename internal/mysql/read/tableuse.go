package read

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// TableUse is how often a table was used, as performance_schema counts since it started: differences of two readings tell rates.
type TableUse struct {
	Uses  float64 // by statements: each locks the table once for itself
	Reads float64 // of rows
	Edits float64 // of rows: inserted, updated, deleted
}

// TableUseOf reads it; gap is why it is not known. Source: MySQL manual, "Table I/O and Lock Wait Summary Tables".
func TableUseOf(ctx context.Context, c *mysql.Conn, name mysql.TableName) (u TableUse, gap *fleet.Trouble, err error) {
	const what = "how often the table is used"
	if !c.Server.PerformanceSchema {
		return u, &fleet.Trouble{What: what, Why: "performance_schema is off"}, nil
	}
	where := " WHERE OBJECT_TYPE = 'TABLE' AND OBJECT_SCHEMA = " + mysql.Literal(name.Schema) + " AND OBJECT_NAME = " + mysql.Literal(name.Name)
	one := func(columns, table string, to ...*float64) error {
		gaps, err := allowed(ctx, c, what, c.Server.GrantPerformanceSchema(), "SELECT /* risso: how often is the table used */ "+columns+" FROM performance_schema."+table+where, func(row []sqldriver.Value) error {
			for i := range to {
				*to[i], _ = number(row[i])
			}
			return nil
		})
		if len(gaps) > 0 {
			gap = &gaps[0]
		}
		return err
	}
	if err := one("COUNT_READ_EXTERNAL + COUNT_WRITE_EXTERNAL", "table_lock_waits_summary_by_table", &u.Uses); err != nil {
		return u, nil, err
	}
	return u, gap, one("COUNT_FETCH, COUNT_INSERT + COUNT_UPDATE + COUNT_DELETE", "table_io_waits_summary_by_table", &u.Reads, &u.Edits)
}

// TableHolder is a session that has a metadata lock of a table, or may have.
type TableHolder struct {
	Blocker
	Mode  string // of the lock, in the server's words
	Maybe bool   // the server does not say; the session has an open transaction
	All   bool   // it is a lock of the whole server: a backup, FLUSH TABLES WITH READ LOCK
}

// TableHolders are the sessions that an ALTER TABLE of a table would wait for if it began now, as far as the server tells: those that hold its
// metadata lock, and those that keep all definitions from being changed. Where the server does not tell locks they are those with an open
// transaction, and gaps says so.
func TableHolders(ctx context.Context, c *mysql.Conn, name mysql.TableName) (list []TableHolder, gaps []fleet.Trouble, err error) {
	open, refused, err := transactionsNow(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	gaps = refused
	add := func(row []sqldriver.Value) error {
		h := TableHolder{Mode: strings.TrimPrefix(mysql.Text(row[1]), "MDL_"), All: mysql.Text(row[2]) != "TABLE"}
		h.ID = whole(row[0])
		for i := range list {
			if list[i].ID == h.ID {
				return nil
			}
		}
		list = append(list, h)
		return nil
	}
	known := true
	switch {
	case hasMetadataLocks(c.Server) && c.Server.RecordsMetadataLocks():
		gap, err := allowed(ctx, c, "who holds a metadata lock of the table", c.Server.GrantPerformanceSchema(), fmt.Sprintf(`SELECT /* risso: who holds the table's metadata lock */ COALESCE(t.PROCESSLIST_ID, 0), l.LOCK_TYPE, l.OBJECT_TYPE
 FROM performance_schema.metadata_locks l LEFT JOIN performance_schema.threads t ON t.THREAD_ID = l.OWNER_THREAD_ID
 WHERE l.LOCK_STATUS = 'GRANTED' AND NOT t.PROCESSLIST_ID <=> CONNECTION_ID() AND (l.OBJECT_TYPE = 'TABLE' AND l.OBJECT_SCHEMA = %s AND l.OBJECT_NAME = %s
  OR l.OBJECT_TYPE IN ('GLOBAL', 'BACKUP LOCK') AND l.LOCK_TYPE = 'SHARED') LIMIT %d`, mysql.Literal(name.Schema), mysql.Literal(name.Name), maxLockPairs), add)
		if err != nil {
			return nil, nil, err
		}
		known = len(gap) == 0
		gaps = append(gaps, gap...)
	case c.Server.MetadataLockPlugin() != "":
		gap, err := allowed(ctx, c, "who holds a metadata lock of the table", "", fmt.Sprintf(`SELECT /* risso: who holds the table's metadata lock */ THREAD_ID, LOCK_MODE, IF(LOCK_TYPE = 'Table metadata lock', 'TABLE', LOCK_TYPE)
 FROM information_schema.METADATA_LOCK_INFO WHERE THREAD_ID <> CONNECTION_ID() AND (LOCK_TYPE = 'Table metadata lock' AND TABLE_SCHEMA = %s AND TABLE_NAME = %s
  OR LOCK_TYPE IN ('Global read lock', 'Backup lock') AND LOCK_MODE NOT IN ('MDL_BACKUP_DML', 'MDL_BACKUP_TRANS_DML', 'MDL_BACKUP_SYS_DML', 'MDL_BACKUP_START', 'MDL_INTENTION_EXCLUSIVE', 'MDL_BACKUP_DDL', 'MDL_BACKUP_ALTER_COPY', 'MDL_BACKUP_COMMIT'))`,
			mysql.Literal(name.Schema), mysql.Literal(name.Name)), add)
		if err != nil {
			return nil, nil, err
		}
		known = len(gap) == 0
	default:
		known = false
	}
	if !known {
		for _, t := range open {
			if t.Session > 0 && t.Session != c.Server.ConnectionID {
				list = append(list, TableHolder{Blocker: Blocker{ID: t.Session, Open: t.Seconds}, Maybe: true})
			}
		}
		gaps = append(gaps, unnamedTable(c))
	}
	return list, gaps, describeHolders(ctx, c, list, open)
}

// unnamedTable says why the holders of a table's metadata lock are not known.
func unnamedTable(c *mysql.Conn) fleet.Trouble {
	g := unnamed(c, stuck{kind: LockMetadata})
	g.What, g.Why = "who holds a metadata lock of the table", "the server does not record metadata locks"
	return g
}

func describeHolders(ctx context.Context, c *mysql.Conn, list []TableHolder, open []Transaction) error {
	waits := make([]LockWait, len(list))
	for i, h := range list {
		waits[i].Blocker = h.Blocker
	}
	look := sessionLook{c: c}
	if _, err := look.describeBlockers(ctx, waits, open); err != nil {
		return err
	}
	for i := range list {
		list[i].Blocker = waits[i].Blocker
	}
	return nil
}
