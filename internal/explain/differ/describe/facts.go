package describe

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/explain/differ/upgrade"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// perTable bounds the search for zero dates in one table.
const perTable = 2 * time.Second

// Facts asks a server what an upgrade needs to know besides its description. What it may not read, or takes too long, is noted.
func Facts(ctx context.Context, target mysql.Target, d *differ.Description) (f upgrade.Facts, err error) {
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return f, err
	}
	defer c.Close()
	note := func(what string, err error) error {
		if err != nil && mysql.ErrorNumber(err) == 0 && ctx.Err() != nil {
			return err
		}
		if err != nil {
			f.NotAsked = append(f.NotAsked, fleet.Trouble{What: what, Why: err.Error(), Remedy: fleet.RemedyOf(err)})
		}
		return nil
	}
	err = each(ctx, c, "SELECT /* risso: tables of yours among the server's */ TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'mysql' AND TABLE_TYPE = 'BASE TABLE'", func(cell func(int) string) {
		f.Own = append(f.Own, cell(0))
	})
	if err := note("tables in the schema mysql", err); err != nil {
		return f, err
	}
	f.Own = ownTables(f.Own, c.Server)
	if c.Server.OldTemporals() {
		if err := note("times in an old form", oldTemporals(ctx, c, &f)); err != nil {
			return f, err
		}
		if err := note("routines and events of schemas that do not exist", stray(ctx, c, &f)); err != nil {
			return f, err
		}
		if err := note("orphaned tables", orphans(ctx, c, &f)); err != nil {
			return f, err
		}
	}
	for name, s := range d.Schemas {
		for table, create := range s.Tables {
			t, err := define.ParseTable(name, create)
			if err != nil {
				continue
			}
			if err := note("dates of zeros in "+mysql.TableName{Schema: name, Name: table}.String(), zeroDates(ctx, c, t, &f)); err != nil {
				return f, err
			}
		}
	}
	return f, nil
}

// ownTables are the tables in the schema mysql that this version does not have itself.
func ownTables(list []string, s mysql.Server) (own []string) {
	for _, t := range list {
		if !s.SystemTable(t) {
			own = append(own, t)
		}
	}
	return own
}

// oldTemporals: with show_old_temporals the type of a column of the old form has a comment. Source: MySQL 5.7 manual, show_old_temporals.
func oldTemporals(ctx context.Context, c *mysql.Conn, f *upgrade.Facts) error {
	if err := c.Exec(ctx, "SET SESSION /* risso: times in an old form */ show_old_temporals = ON"); err != nil {
		return err
	}
	return each(ctx, c, "SELECT /* risso: times in an old form */ TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE COLUMN_TYPE LIKE '%5.5 binary format%' AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')", func(cell func(int) string) {
		f.Temporal = append(f.Temporal, mysql.TableName{Schema: cell(0), Name: cell(1)}.String()+"."+mysql.Quote(cell(2)))
	})
}

// orphans are tables that InnoDB's own list has and the server's has not.
func orphans(ctx context.Context, c *mysql.Conn, f *upgrade.Facts) error {
	return each(ctx, c, `SELECT /* risso: orphaned tables */ i.NAME FROM information_schema.INNODB_SYS_TABLES i LEFT JOIN (SELECT CONCAT(TABLE_SCHEMA, '/', TABLE_NAME) AS n FROM information_schema.TABLES WHERE ENGINE = 'InnoDB') t ON t.n = i.NAME
  WHERE t.n IS NULL AND i.NAME LIKE '%/%' AND i.NAME NOT LIKE 'mysql/%' AND i.NAME NOT LIKE '%#%' AND i.NAME NOT LIKE '%@%' AND i.NAME NOT LIKE '%/FTS\_%'`, func(cell func(int) string) {
		f.Orphans = append(f.Orphans, cell(0))
	})
}

// stray are programs whose schema is gone, by the tables that 5.7 keeps them in.
func stray(ctx context.Context, c *mysql.Conn, f *upgrade.Facts) error {
	return each(ctx, c, `SELECT /* risso: programs of schemas that do not exist */ LOWER(type), db, name FROM mysql.proc WHERE db NOT IN (SELECT SCHEMA_NAME FROM information_schema.SCHEMATA)
  UNION ALL SELECT 'event', db, name FROM mysql.event WHERE db NOT IN (SELECT SCHEMA_NAME FROM information_schema.SCHEMATA)`, func(cell func(int) string) {
		f.Stray = append(f.Stray, cell(0)+" "+mysql.TableName{Schema: cell(1), Name: cell(2)}.String())
	})
}

// zeroDates looks for one row with a date of zeros, for a bounded time.
func zeroDates(ctx context.Context, c *mysql.Conn, t define.Table, f *upgrade.Facts) error {
	for _, col := range t.Columns {
		if col.Type != "date" && col.Type != "datetime" && col.Type != "timestamp" || col.Generated {
			continue
		}
		name, column := mysql.TableName{Schema: t.Schema, Name: t.Name}, mysql.Quote(col.Name)
		where := fmt.Sprintf("%s = 0 OR MONTH(%s) = 0 OR DAY(%s) = 0", column, column, column)
		err := each(ctx, c, c.Server.Bounded(perTable, "SELECT /* risso: a date of zeros? */ 1 FROM "+name.String()+" WHERE "+where+" LIMIT 1"), func(func(int) string) {
			f.ZeroDates = append(f.ZeroDates, name.String()+"."+column)
		})
		if err != nil {
			return fmt.Errorf("column %s: %w", strings.Trim(column, "`"), err)
		}
	}
	return nil
}
