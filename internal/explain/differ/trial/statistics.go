package trial

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/mysql"
)

// statistics is what the old server's optimiser estimates from.
type statistics struct {
	kept       map[string][]keptRow // by the table of the schema mysql
	histograms []histogram
}

// keptRow is a row about a table, or about a partition of one; values are SQL.
type keptRow struct {
	schema, name string
	values       []string
}

type histogram struct {
	table        mysql.TableName
	column, data string
}

// readStatistics reads them from the old server. What the account may not read is told.
func (t *trial) readStatistics(ctx context.Context, c *mysql.Conn) (*statistics, error) {
	t.Progress("read the statistics of tables")
	s := &statistics{kept: map[string][]keptRow{}}
	for _, k := range c.Server.KeptStatistics() {
		if err := t.unread(c, "mysql."+k.Table, s.read(ctx, c, k, t.d.Schemas)); err != nil {
			return nil, err
		}
	}
	if !c.Server.HasHistograms() {
		return s, nil
	}
	err := c.Query(ctx, "SELECT /* risso: histograms */ SCHEMA_NAME, TABLE_NAME, COLUMN_NAME, HISTOGRAM FROM information_schema.COLUMN_STATISTICS", func(row []sqldriver.Value) error {
		if _, ours := t.d.Schemas[mysql.Text(row[0])]; ours {
			s.histograms = append(s.histograms, histogram{mysql.TableName{Schema: mysql.Text(row[0]), Name: mysql.Text(row[1])}, mysql.Text(row[2]), mysql.Text(row[3])})
		}
		return nil
	})
	return s, t.unread(c, "information_schema.COLUMN_STATISTICS", err)
}

// unread notes statistics that the server refuses to tell.
func (t *trial) unread(c *mysql.Conn, what string, err error) error {
	if err == nil || mysql.ErrorNumber(err) == 0 {
		return err
	}
	t.open("statistics in "+what, said(err), "GRANT SELECT ON "+what+" TO "+c.Server.QuotedAccount())
	return nil
}

func (s *statistics) read(ctx context.Context, c *mysql.Conn, k mysql.KeptStatistics, schemas map[string]differ.Schema) error {
	columns := slices.Clone(k.Columns)
	for i, name := range columns {
		if slices.Contains(k.Binary, name) {
			columns[i] = "HEX(" + name + ")"
		}
	}
	query := fmt.Sprintf("SELECT /* risso: what the optimiser estimates from */ %s, %s, %s FROM mysql.%s", k.Schema, k.Name, strings.Join(columns, ", "), k.Table)
	return c.Query(ctx, query, func(row []sqldriver.Value) error {
		r := keptRow{schema: mysql.Text(row[0]), name: mysql.Text(row[1])}
		if _, ours := schemas[r.schema]; !ours {
			return nil
		}
		for i, v := range row[2:] {
			switch {
			case v == nil:
				r.values = append(r.values, "NULL")
			case slices.Contains(k.Binary, k.Columns[i]):
				r.values = append(r.values, "UNHEX("+mysql.Literal(mysql.Text(v))+")")
			default:
				r.values = append(r.values, mysql.Literal(mysql.Text(v)))
			}
		}
		s.kept[k.Table] = append(s.kept[k.Table], r)
		return nil
	})
}

// give gives them to a throw-away server, whose tables then count as large as the old server's, and returns a session that plans with them
// and how many tables and partitions have some.
func (s *statistics) give(ctx context.Context, b *box) (c *mysql.Conn, n int, err error) {
	at, err := target(b.Primary())
	if err != nil {
		return nil, 0, err
	}
	if c, err = mysql.Connect(ctx, at, nil); err != nil {
		return nil, 0, err
	}
	reread := c.Server.RereadStatistics()
	if n, err = s.write(ctx, c); err == nil && reread != "" {
		err = c.Exec(ctx, reread)
	} else if err == nil {
		_ = c.Close()
		if err = b.restart(ctx); err != nil {
			return nil, 0, err
		}
		if c, err = mysql.Connect(ctx, at, nil); err != nil {
			return nil, 0, err
		}
	}
	if err == nil {
		err = c.Exec(ctx, c.Server.EstimateEqual())
	}
	if err != nil {
		_ = c.Close()
		return nil, 0, err
	}
	return c, n, nil
}

// write puts them into the server's tables.
func (s *statistics) write(ctx context.Context, c *mysql.Conn) (int, error) {
	if err := c.Exec(ctx, "SET SESSION /* risso: as other servers write it */ sql_mode = ''"); err != nil {
		return 0, err
	}
	known := map[string]bool{}
	for _, k := range c.Server.KeptStatistics() {
		rows := s.kept[k.Table]
		if len(rows) == 0 {
			continue
		}
		own := map[string]keptRow{}
		if k.Own {
			err := c.Query(ctx, fmt.Sprintf("SELECT /* risso: tables with statistics */ DISTINCT %s, %s FROM mysql.%s", k.Schema, k.Name, k.Table), func(row []sqldriver.Value) error {
				r := keptRow{schema: mysql.Text(row[0]), name: mysql.Text(row[1])}
				own[r.key()] = r
				return nil
			})
			if err != nil {
				return 0, err
			}
		}
		for _, r := range rows {
			if mine, there := own[r.key()]; there {
				r.schema, r.name = mine.schema, mine.name // versions write the names of partitions otherwise
			} else if k.Own {
				continue // the server did not take the table
			}
			known[r.key()] = true
			err := c.Exec(ctx, fmt.Sprintf("REPLACE /* risso: statistics of the old server */ INTO mysql.%s (%s, %s, %s) VALUES (%s, %s, %s)", k.Table, k.Schema, k.Name, strings.Join(k.Columns, ", "),
				mysql.Literal(r.schema), mysql.Literal(r.name), strings.Join(r.values, ", ")))
			if err != nil {
				return 0, fmt.Errorf("write the statistics of %s: %w", mysql.TableName{Schema: r.schema, Name: r.name}, err)
			}
		}
	}
	return len(known), s.writeHistograms(ctx, c)
}

func (r keptRow) key() string { return strings.ToLower(r.schema + "/" + r.name) }

// writeHistograms: a version that cannot take them plans without; that its plans are then others is noticed when they are compared.
func (s *statistics) writeHistograms(ctx context.Context, c *mysql.Conn) error {
	if !c.Server.TakesHistograms() {
		return nil
	}
	for _, h := range s.histograms {
		// A refusal is in the answer, and no error: it is as if the version took none.
		err := c.Exec(ctx, "ANALYZE /* risso: histogram of the old server */ TABLE "+h.table.String()+" UPDATE HISTOGRAM ON "+mysql.Quote(h.column)+" USING DATA "+mysql.Literal(c.Server.HistogramData(h.data)))
		if err != nil && mysql.ErrorNumber(err) == 0 {
			return err
		}
	}
	return nil
}
