package geo

import (
	"cmp"
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// SampleOptions bound ReadFacts.
type SampleOptions struct {
	Schema  string        // only of this schema; "": of all
	Rows    int           // of each column; 0: 1,000
	Time    time.Duration // for each column; 0: two seconds
	Columns int           // most columns of which rows are read; 0: 200
	List    time.Duration // for listing the columns, for which some servers open every table; 0: a minute

	// Tables are those of which columns are listed, for who knows where there are any: nothing is looked for elsewhere. Nil: all.
	Tables []mysql.TableName
}

// ReadFacts reads the geometry columns of a server, a sample of the rows of each, and the statements with spatial functions that
// performance_schema knows. What could not be read is in the second answer.
func ReadFacts(ctx context.Context, c *mysql.Conn, o SampleOptions) (f Facts, unknown []fleet.Trouble, err error) {
	o.Rows, o.Time, o.Columns = cmp.Or(o.Rows, 1000), cmp.Or(o.Time, 2*time.Second), cmp.Or(o.Columns, 200)
	o.List = cmp.Or(o.List, time.Minute)
	f.RestrictsSRID, f.OrdersAxes = c.Server.RestrictsSRID(), c.Server.OrdersAxes()
	where := ""
	if o.Schema != "" {
		where = " AND TABLE_SCHEMA = " + mysql.Literal(o.Schema)
	}
	wheres := []string{where}
	if o.Tables != nil {
		wheres = nil
		for _, t := range o.Tables { // by constants, with which no other table is opened
			wheres = append(wheres, where+" AND TABLE_SCHEMA = "+mysql.Literal(t.Schema)+" AND TABLE_NAME = "+mysql.Literal(t.Name))
		}
	}
	for _, where := range wheres {
		if err := f.list(ctx, c, c.Server.Bounded(o.List, c.Server.GeometryColumns()+where)); err != nil {
			return f, nil, fmt.Errorf("list the geometry columns: %w", err)
		}
	}
	if err := rows(ctx, c, &f); err != nil {
		return f, nil, err
	}
	note := func(what string, err error) { unknown = append(unknown, fleet.Trouble{What: what, Why: err.Error()}) }
	for i := range f.Columns {
		col := &f.Columns[i]
		if i >= o.Columns {
			note("the rows of "+strconv.Itoa(len(f.Columns)-i)+" more geometry columns", fmt.Errorf("only %d are looked at", o.Columns))
			break
		}
		if err := col.indexes(ctx, c); err != nil {
			note("the indexes of "+col.table(), err)
		}
		if err := col.define(ctx, c); err != nil {
			note("the definition of "+col.object(), err)
		}
		if err := col.sample(ctx, c, o); err != nil {
			note("the rows of "+col.object(), err)
		}
		if err := ctx.Err(); err != nil {
			return f, nil, err
		}
	}
	if len(f.Columns) == 0 {
		return f, unknown, nil
	}
	if f.Statements, err = readStatements(ctx, c); err != nil {
		note("some statements that search geometry", err)
	}
	return f, unknown, nil
}

// list adds the columns that a statement lists.
func (f *Facts) list(ctx context.Context, c *mysql.Conn, statement string) error {
	return c.Query(ctx, statement, func(row []sqldriver.Value) error {
		col := Column{Schema: mysql.Text(row[0]), Table: mysql.Text(row[1]), Name: mysql.Text(row[2]), Type: mysql.Text(row[3]), Nullable: mysql.Text(row[4]) == "YES"}
		if row[5] != nil {
			n, err := strconv.ParseUint(mysql.Text(row[5]), 10, 32)
			if err != nil {
				return fmt.Errorf("the SRID of %s: %w", col.object(), err)
			}
			srid := uint32(n)
			col.SRID = &srid
		}
		f.Columns = append(f.Columns, col)
		return nil
	})
}

// rows keeps the columns of base tables, the largest first, and says how many rows those have, as the server estimates.
func rows(ctx context.Context, c *mysql.Conn, f *Facts) error {
	for i := range f.Columns {
		col := &f.Columns[i]
		col.Rows = -1
		err := c.Query(ctx, "SELECT /* risso: rows of tables */ TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND TABLE_SCHEMA = "+mysql.Literal(col.Schema)+" AND TABLE_NAME = "+mysql.Literal(col.Table), func(row []sqldriver.Value) error {
			col.Rows = 0
			if n, err := strconv.ParseInt(mysql.Text(row[0]), 10, 64); err == nil { // else it is not known
				col.Rows = n
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("ask for the rows of %s: %w", col.table(), err)
		}
	}
	f.Columns = slices.DeleteFunc(f.Columns, func(c Column) bool { return c.Rows < 0 })
	slices.SortStableFunc(f.Columns, func(a, b Column) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), strings.Compare(a.object(), b.object()))
	})
	return nil
}

// define reads how the column is defined beyond its type, if it is to be altered.
func (c *Column) define(ctx context.Context, conn *mysql.Conn) error {
	if c.SRID != nil || !conn.Server.RestrictsSRID() {
		return nil
	}
	rows, err := conn.Maps(ctx, "SHOW /* risso: how a column is defined */ CREATE TABLE "+c.table())
	if err != nil || len(rows) == 0 {
		return err
	}
	t, err := define.ParseTable(c.Schema, rows[0]["Create Table"])
	if err != nil {
		return err
	}
	if rest, ok := strings.CutPrefix(t.ColumnText(c.Name, ""), mysql.Quote(c.Name)+" "); ok {
		c.Rest = rest
	}
	if column, ok := t.Column(c.Name); ok {
		c.Generated = column.Generated
	}
	return nil
}

// indexes are the spatial indexes on the column.
func (c *Column) indexes(ctx context.Context, conn *mysql.Conn) error {
	return conn.Query(ctx, "SELECT /* risso: spatial indexes */ INDEX_NAME FROM information_schema.STATISTICS WHERE INDEX_TYPE = 'SPATIAL' AND TABLE_SCHEMA = "+mysql.Literal(c.Schema)+" AND TABLE_NAME = "+mysql.Literal(c.Table)+" AND COLUMN_NAME = "+mysql.Literal(c.Name), func(row []sqldriver.Value) error {
		if name := mysql.Text(row[0]); !slices.Contains(c.Indexes, name) {
			c.Indexes = append(c.Indexes, name)
		}
		return nil
	})
}

// sample looks at some geometries, and asks whether as many are valid.
func (c *Column) sample(ctx context.Context, conn *mysql.Conn, o SampleOptions) error {
	from := " FROM " + c.table() + " WHERE " + mysql.Quote(c.Name) + " IS NOT NULL LIMIT " + strconv.Itoa(o.Rows)
	var broken error
	err := conn.Query(ctx, conn.Server.Bounded(o.Time, "SELECT /* risso: a sample of geometries */ "+mysql.Quote(c.Name)+from), func(row []sqldriver.Value) error {
		b, ok := row[0].([]byte)
		if !ok {
			return nil
		}
		g, err := Decode(b)
		if err != nil {
			broken = cmp.Or(broken, err)
			return nil
		}
		c.see(&g)
		return nil
	})
	if err != nil || broken != nil {
		return cmp.Or(err, broken)
	}
	if !conn.Server.ValidatesGeometry() || c.Sampled == 0 {
		return nil
	}
	err = conn.Query(ctx, conn.Server.Bounded(o.Time, "SELECT /* risso: are geometries valid? */ COUNT(*), COALESCE(SUM(ST_IsValid(g) = 0), 0) FROM (SELECT "+mysql.Quote(c.Name)+" AS g"+from+") AS sample"), func(row []sqldriver.Value) error {
		n, err := strconv.ParseInt(mysql.Text(row[0]), 10, 64)
		bad, also := strconv.ParseInt(mysql.Text(row[1]), 10, 64)
		c.Checked, c.Invalid = n, bad
		return cmp.Or(err, also)
	})
	if err != nil {
		return fmt.Errorf("ask whether they are valid: %w", err)
	}
	return nil
}

// mostStatements are read.
const mostStatements = 500

// readStatements are the classes of statements that performance_schema knows, as far as they have spatial functions.
func readStatements(ctx context.Context, c *mysql.Conn) (list []Statement, err error) {
	if !c.Server.PerformanceSchema {
		return nil, errors.New("performance_schema is off")
	}
	err = c.Query(ctx, "SELECT /* risso: statements with spatial functions */ SCHEMA_NAME, DIGEST_TEXT FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST_TEXT LIKE '%WHERE%' AND LOWER(DIGEST_TEXT) REGEXP 'st_|mbr|contains|within'  ORDER BY SUM_TIMER_WAIT DESC LIMIT "+strconv.Itoa(mostStatements), func(row []sqldriver.Value) error {
		list = append(list, Statement{SQL: mysql.Text(row[1]), Schema: mysql.Text(row[0])})
		return nil
	})
	if err != nil {
		return nil, err
	}
	full, err := c.Text(ctx, "SELECT /* risso: were statements left out? */ COUNT_STAR FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST IS NULL")
	if err == nil && full != "" && full != "0" {
		err = errors.New("performance_schema has no room for all classes of statements: " + full + " executions are in none of them (performance_schema_digests_size)")
	}
	return list, err
}
