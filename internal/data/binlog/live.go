package binlog

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// Live returns what tables look like now, on a server. Its methods may be called from several goroutines.
type Live struct {
	mu      sync.Mutex
	conn    *mysql.Conn
	columns map[[2]string][]binlogevent.Column
}

// NewLive asks over a connection, which stays the caller's.
func NewLive(c *mysql.Conn) *Live {
	return &Live{conn: c, columns: map[[2]string][]binlogevent.Column{}}
}

// Columns is a Columns.
func (l *Live) Columns(ctx context.Context, schema, table string) ([]binlogevent.Column, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := [2]string{schema, table}
	if list, ok := l.columns[key]; ok {
		return list, list != nil
	}
	// MariaDB's collations of utf8mb4 are listed twice, once without a number.
	rows, err := l.conn.Maps(ctx, `SELECT /* risso: what are the columns? */ c.COLUMN_NAME AS n, c.DATA_TYPE AS d, c.COLUMN_TYPE AS t, c.COLUMN_KEY AS k, c.GENERATION_EXPRESSION AS g,
 (SELECT MIN(ID) FROM INFORMATION_SCHEMA.COLLATIONS x WHERE x.COLLATION_NAME = c.COLLATION_NAME) AS i
 FROM INFORMATION_SCHEMA.COLUMNS c WHERE c.TABLE_SCHEMA = `+mysql.Literal(schema)+` AND c.TABLE_NAME = `+mysql.Literal(table)+` ORDER BY c.ORDINAL_POSITION`)
	if err != nil {
		return nil, false // asked again the next time
	}
	var list []binlogevent.Column
	for _, r := range rows {
		id, _ := strconv.ParseUint(r["i"], 10, 32)
		c := binlogevent.Column{Name: r["n"], Key: r["k"] == "PRI", Known: true, Unsigned: strings.Contains(strings.ToLower(r["t"]), "unsigned"), Collation: uint32(id),
			Declared: strings.ToLower(r["d"]), Generated: r["g"] != ""}
		c.Binary = c.Collation == 0
		list = append(list, c)
	}
	l.columns[key] = list
	return list, list != nil
}

// Hazards says what a change of a table's rows would cause besides.
func (l *Live) Hazards(ctx context.Context, schema, table string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	at := mysql.Quote(schema) + "." + mysql.Quote(table)
	rows, err := l.conn.Maps(ctx, `SELECT /* risso: what else would happen? */ TRIGGER_NAME AS n FROM INFORMATION_SCHEMA.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = `+mysql.Literal(schema)+` AND EVENT_OBJECT_TABLE = `+mysql.Literal(table))
	if err == nil && len(rows) > 0 {
		out = append(out, fmt.Sprintf("%s has %s, the first %s: they fire, and what they changed at the time is in the transaction, too", at, digits.Counted(len(rows), "trigger"), rows[0]["n"]))
	}
	rows, err = l.conn.Maps(ctx, `SELECT /* risso: what else would happen? */ CONSTRAINT_SCHEMA AS s, TABLE_NAME AS n FROM INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS WHERE UNIQUE_CONSTRAINT_SCHEMA = `+mysql.Literal(schema)+
		` AND REFERENCED_TABLE_NAME = `+mysql.Literal(table)+` AND (DELETE_RULE IN ('CASCADE', 'SET NULL') OR UPDATE_RULE IN ('CASCADE', 'SET NULL'))`)
	if err == nil && len(rows) > 0 {
		out = append(out, fmt.Sprintf("%s.%s refers to %s and follows its changes (CASCADE, SET NULL): InnoDB did that without logging it, and it is not undone", mysql.Quote(rows[0]["s"]), mysql.Quote(rows[0]["n"]), at))
	}
	return out
}
