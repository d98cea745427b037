package gather

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// closedFrom is from how many tables on those in which nothing is suspected are not opened, on a server that opens a table to tell its size. To open
// one costs MariaDB 10.11 some 220 µs of a processor, and to read all else of it 90 (measured with 650,000 tables).
const closedFrom = 100_000

// closed is what is known of tables that are not opened.
type closed struct {
	odd  map[mysql.TableName]bool // by their row format
	page float64                  // bytes
}

// leaveClosed finds out whether tables are left unopened; g.closed is nil if all are opened, as those are that somebody chose.
func (g *gatherer) leaveClosed(ctx context.Context) error {
	from := g.o.Closed
	if from == 0 {
		from = closedFrom
	}
	_, sizes, odd := g.server.TablesUnopened("")
	if sizes == "" || !g.o.Choice.All() || g.server.Variables["lower_case_table_names"] == "2" {
		return nil
	}
	page, err := strconv.ParseFloat(g.server.Variables["innodb_page_size"], 64)
	if err != nil {
		return nil
	}
	c, many := &closed{odd: map[mysql.TableName]bool{}, page: page}, false
	err = g.query(ctx, "SELECT /* risso: are there very many tables? */ COUNT(*) FROM mysql.innodb_table_stats", func(row [][]byte) error {
		n, err := strconv.Atoi(string(row[0]))
		many = n >= from
		return err
	})
	if err == nil && many {
		err = g.query(ctx, odd, func(row [][]byte) error {
			if len(c.odd) <= from { // else there is not much to spare
				c.odd[mysql.TableName{Schema: string(row[0]), Name: string(row[1])}] = true
			}
			return nil
		})
	}
	switch {
	case err != nil && (g.stream.Broken() != nil || ctx.Err() != nil):
		return fmt.Errorf("ask InnoDB for its tables: %w", err)
	case err == nil && many && len(c.odd) <= from:
		g.closed = c
	}
	return nil // an account that may not ask has its tables opened
}

// unopened lists the tables of a schema without opening them. Those that are to be opened whatever else is known of them have no size.
func (g *gatherer) unopened(ctx context.Context, schema string) (out tables, err error) {
	list, sizes, _ := g.server.TablesUnopened(schema)
	var closer []string
	at := map[string]int{}
	err = g.query(ctx, list, func(row [][]byte) error {
		name, kind, engine := mysql.TableName{Schema: schema, Name: string(row[0])}, string(row[1]), string(row[2])
		if kind != "BASE TABLE" || engine != "InnoDB" || g.closed.odd[name] {
			closer = append(closer, name.Name)
			return nil
		}
		g.listed(&out, size{table: name, engine: engine}, kind, "")
		if n := len(out.list); n > 0 && out.list[n-1].table == name {
			at[name.Name] = n - 1
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	err = g.query(ctx, sizes, func(row [][]byte) error {
		i, ok := at[string(row[0])]
		if !ok {
			return nil
		}
		x := &out.list[i]
		x.rows, x.data, x.index, x.format, x.closed = number(row[1]), number(row[2])*g.closed.page, number(row[3])*g.closed.page, "Dynamic", true
		return nil
	})
	if err != nil || len(closer) == 0 {
		return out, err
	}
	return out, g.reopen(ctx, schema, closer, &out)
}

// reopen lists some tables of a schema by opening them.
func (g *gatherer) reopen(ctx context.Context, schema string, names []string, out *tables) error {
	for part := range slices.Chunk(names, batch) {
		more, err := g.sizes(ctx, schema, part)
		if err != nil {
			return err
		}
		out.list, out.merges = append(out.list, more.list...), append(out.merges, more.merges...)
	}
	return nil
}

// open learns all of those tables in which something may be wrong, and of those whose AUTO_INCREMENT values are few.
func (g *gatherer) open(ctx context.Context, all *tables, of known) error {
	var names []string
	left := 0
	all.list = slices.DeleteFunc(all.list, func(x size) bool {
		if !x.closed && x.format != "" { // it was opened
			return false
		}
		most := 0.
		if o := of.outline(x.table.Name); o != nil {
			most = o.most
		}
		if doubt, _ := g.doubts(&x, of); x.closed && !doubt && (most == 0 || most >= math.MaxInt64) {
			left++
			return false
		}
		names = append(names, x.table.Name)
		return true
	})
	g.shared.leave(left)
	return g.reopen(ctx, of.schema, names, all)
}

// leave counts tables that were not opened.
func (s *shared) leave(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left += n
}

// sayClosed says what is not known of tables that were not opened.
func (g *gatherer) sayClosed() {
	if n := g.shared.left; n > 0 {
		g.unread(digits.Counted(n, "table")+" that were not opened", "the server has very many, and opens a table to tell more than its definition and statistics do: whether each can be opened is not known, "+
			"nor the next AUTO_INCREMENT values of those whose column is BIGINT", "risso advise --schema NAME opens those of a schema")
	}
}
