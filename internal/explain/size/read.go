package size

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

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Options say what Read reads.
type Options struct {
	Schema    string        // only this one; "": all
	Top       int           // tables that are listed; 0: 20
	Local     bool          // the server's files are on this machine
	Elsewhere string        // or else why not
	Limit     time.Duration // for looking for tables of other engines than InnoDB, each of which has to be opened; 0: 40 s
	Progress  func(stage string, done int)
}

// Defaults of Options, and how many names go into one statement.
const (
	defaultTop   = 20
	defaultLimit = 40 * time.Second
	namesAtOnce  = 100
)

// ErrNoSchema is what Read returns for a schema that is not there, or not for the account.
var ErrNoSchema = errors.New("there is no such schema, or the account may not see it")

// reader reads one report.
type reader struct {
	c     *mysql.Conn
	o     Options
	r     *Report
	tally Tally
	vars  map[string]string
	page  int64 // bytes of a page of InnoDB

	raw       bool            // names of tables are those of files
	estimated int             // tables that were not open
	sheets    map[string]bool // tables of CSV whose files were not seen
	altering  map[string]bool // tables of ALTER TABLE that the server lists, as files are called
}

// Read asks a server for its sizes. It changes the session: statistics are fresh ones from then on. Memory does not grow with the number of
// tables, apart from those with several files. What could not be read is in Unknown; an error means that there is no report.
func Read(ctx context.Context, c *mysql.Conn, o Options) (*Report, error) {
	o.Top, o.Limit = cmp.Or(o.Top, defaultTop), cmp.Or(o.Limit, defaultLimit)
	if o.Progress == nil {
		o.Progress = func(string, int) {}
	}
	began := time.Now()
	traffic := c.Traffic()
	statements, received := traffic.Queries.Load(), traffic.Received.Load()
	r := &reader{c: c, o: o, tally: Tally{Only: o.Schema, Top: o.Top},
		r: &Report{Server: c.Server.Server.String(), At: began.UTC().Truncate(time.Second), Schema: o.Schema, Source: SourceFiles}}
	if err := r.read(ctx); err != nil {
		return nil, err
	}
	r.r.Cost = Cost{Seconds: time.Since(began).Seconds(), Statements: traffic.Queries.Load() - statements, Received: traffic.Received.Load() - received, Tables: r.r.Rest.Tables + len(r.r.Tables)}
	r.r.Words = Words(r.r)
	return r.r, nil
}

func (r *reader) read(ctx context.Context) error {
	if set := r.c.Server.FreshStatistics(); set != "" {
		if err := r.c.Exec(ctx, set); err != nil && mysql.ClassOf(err) != mysql.ClassMissing {
			return fmt.Errorf("ask for fresh sizes: %w", err)
		}
	}
	if err := r.variables(ctx); err != nil {
		return err
	}
	err := r.tablespaces(ctx)
	switch class := mysql.ClassOf(err); {
	case err == nil:
		if err := r.unsized(ctx); err != nil {
			return err
		}
		if err := r.otherEngines(ctx); err != nil {
			return err
		}
		if err := r.fullText(ctx); err != nil {
			return err
		}
	case class == mysql.ClassPrivilege || class == mysql.ClassMissing:
		r.noFiles(class, err)
		if err := r.estimates(ctx); err != nil {
			return err
		}
	default:
		return fmt.Errorf("list the tablespaces: %w", err)
	}
	var shared []mysql.Tablespace
	r.r.Schemas, r.r.Tables, r.r.Rest, shared = r.tally.Result()
	if n := len(r.sheets); n > 0 {
		r.unknown("sizes of "+digits.Counted(n, "table")+" of the engine CSV", "the server says 0, and their files are not on this machine, or may not be seen", "")
	}
	if r.estimated > 0 {
		r.unknown("true sizes of "+digits.Counted(r.estimated, "table"), "the server had not opened them since it started; its estimates are shown", "ask again: it has opened them now")
	}
	if err := r.readNames(ctx); err != nil {
		return err
	}
	if r.o.Schema != "" && len(r.r.Schemas) == 0 {
		if there, err := r.c.Text(ctx, "SELECT /* risso: is it there? */ 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = "+mysql.Literal(r.o.Schema)); err != nil || there == "" {
			return cmp.Or(err, fmt.Errorf("schema %s: %w", mysql.Quote(r.o.Schema), ErrNoSchema))
		}
	}
	if err := r.details(ctx); err != nil {
		return err
	}
	r.indexes(ctx)
	if r.o.Schema == "" {
		r.spaces(ctx, shared)
	}
	for _, s := range r.r.Schemas {
		r.r.Total.add(s.Sum)
	}
	for _, s := range r.r.Spaces {
		r.r.Total.add(s.Sum)
	}
	return ctx.Err()
}

// unknown notes what could not be read.
func (r *reader) unknown(what, why, remedy string) {
	r.r.Unknown = append(r.r.Unknown, fleet.Trouble{What: what, Why: why, Remedy: remedy})
}

// failed notes an error of a part of the report.
func (r *reader) failed(what string, err error, privilege string) {
	remedy := ""
	if mysql.ClassOf(err) == mysql.ClassPrivilege && privilege != "" {
		remedy = r.c.Server.Grant(privilege)
	}
	r.unknown(what, err.Error(), remedy)
}

func (r *reader) variables(ctx context.Context) error {
	names := []string{"datadir", "tmpdir", "innodb_tmpdir", "innodb_page_size", "innodb_doublewrite", "innodb_doublewrite_dir", "innodb_log_file_size", "innodb_log_files_in_group", "log_bin",
		"general_log_file", "slow_query_log_file", "log_error", "innodb_data_home_dir", "innodb_data_file_path", "innodb_temp_data_file_path"}
	r.vars = map[string]string{}
	err := r.c.Query(ctx, "SHOW /* risso: sizes */ GLOBAL VARIABLES WHERE Variable_name IN ('"+strings.Join(names, "', '")+"')", func(row []sqldriver.Value) error {
		r.vars[mysql.Text(row[0])] = mysql.Text(row[1])
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	r.page = number(r.vars["innodb_page_size"])
	if r.page == 0 {
		r.page = 16 << 10
	}
	return nil
}

// number reads a whole number; what is none is 0.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (r *reader) tablespaces(ctx context.Context) error {
	var row [][]byte
	n, inFiles := 0, false
	if r.c.Server.ListsOpened() {
		inFiles = r.o.Local && r.fromFiles(ctx)
		r.tally.Remember = !inFiles
	}
	return r.c.Query(ctx, r.c.Server.Tablespaces(), func(values []sqldriver.Value) error {
		row = bytesOf(row[:0], values)
		t := r.c.Server.ReadTablespace(row)
		if t.Schema == "" || !inFiles {
			r.tally.Add(t)
		}
		r.altered(t.Name)
		if n++; n%1000 == 0 {
			r.o.Progress("files", n)
		}
		return nil
	})
}

// bytesOf are values as the server wrote them.
func bytesOf(to [][]byte, values []sqldriver.Value) [][]byte {
	for _, v := range values {
		if b, ok := v.([]byte); ok || v == nil {
			to = append(to, b)
		} else {
			to = append(to, []byte(mysql.Text(v)))
		}
	}
	return to
}

func (r *reader) noFiles(class mysql.Class, err error) {
	r.r.Source = SourceEstimates
	r.tally, r.raw = Tally{Only: r.o.Schema, Top: r.o.Top}, false // what files were counted is counted again
	if class == mysql.ClassMissing {
		r.unknown("true sizes of files", "this server does not tell them: "+err.Error(), "")
		return
	}
	r.unknown("true sizes of files, and tables that the account may not see", "the account lacks PROCESS", r.c.Server.Grant("PROCESS"))
}

// schemaNames are the schemas to look at.
func (r *reader) schemaNames(ctx context.Context) (list []string, err error) {
	if r.o.Schema != "" {
		return []string{r.o.Schema}, nil
	}
	err = r.c.Query(ctx, "SELECT /* risso: schemas */ SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN ('information_schema', 'performance_schema')", func(row []sqldriver.Value) error {
		list = append(list, mysql.Text(row[0]))
		return nil
	})
	return list, err
}

// ofRows are the kinds of tables that take space: MariaDB calls those with history and sequences by names of their own.
const ofRows = "('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE')"

// inMemory are engines whose rows are on no disk, or not on this server's. Others of that kind: mysql.Elsewhere.
var inMemory = map[string]bool{"memory": true, "heap": true, "blackhole": true, "performance_schema": true, "sequence": true, "null": true}

// otherEngines counts the tables that are not InnoDB's. That of each table has to be looked up, which on servers without a data dictionary
// means to open its definition; the time for that is bounded.
func (r *reader) otherEngines(ctx context.Context) error {
	schemas, err := r.schemaNames(ctx)
	if err != nil {
		return fmt.Errorf("list the schemas: %w", err)
	}
	until := time.Now().Add(r.o.Limit)
	seen := 0
	for i, schema := range schemas {
		left := time.Until(until)
		if left < time.Second {
			r.unknown("tables of other engines than InnoDB in "+digits.Counted(len(schemas)-i, "schema"), "looking for them took longer than "+digits.Span(r.o.Limit), "")
			return nil
		}
		var names, closed []string
		err := r.c.Query(ctx, r.c.Server.Bounded(left, "SELECT /* risso: engines of tables */ TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+mysql.Literal(schema)+" AND TABLE_TYPE IN "+ofRows), func(row []sqldriver.Value) error {
			if seen++; seen%1000 == 0 {
				r.o.Progress("engines", seen)
			}
			e := strings.ToLower(mysql.Text(row[1]))
			if e == "innodb" && r.tally.Remember && !r.tally.Seen(schema, mysql.Text(row[0])) {
				closed = append(closed, mysql.Text(row[0]))
			}
			if e != "innodb" && e != "" && !inMemory[e] && !mysql.Elsewhere(e) {
				names = append(names, mysql.Text(row[0]))
			}
			return nil
		})
		switch {
		case mysql.OutOfTime(err):
			r.unknown("tables of other engines than InnoDB in "+mysql.Quote(schema), "looking for them took longer than "+digits.Span(r.o.Limit), "")
			continue
		case err != nil:
			return fmt.Errorf("look for tables of other engines in %s: %w", mysql.Quote(schema), err)
		}
		for chunk := range slices.Chunk(names, namesAtOnce) {
			if err := r.named(ctx, schema, chunk, func(t Table) { r.tally.AddTable(t) }); err != nil {
				return err
			}
		}
		if err := r.closed(ctx, schema, closed, until); err != nil {
			return err
		}
	}
	return nil
}

// closed counts tables of InnoDB that the server has not opened since it started, by its estimates: to ask for those makes it open
// them, a few at a time, until the time is over.
func (r *reader) closed(ctx context.Context, schema string, names []string, until time.Time) error {
	const few = 10
	for chunk := range slices.Chunk(names, few) {
		if time.Now().After(until) {
			break
		}
		err := r.named(ctx, schema, chunk, func(t Table) {
			if t.Free != nil {
				t.File += *t.Free
				t.Allocated += *t.Free
			}
			r.tally.AddTable(t)
		})
		if err != nil {
			return err
		}
		names = names[len(chunk):]
		r.estimated += len(chunk)
	}
	if len(names) > 0 {
		r.unknown("sizes of "+digits.Counted(len(names), "table")+" of "+mysql.Quote(schema), "the server has not opened them since it started, and to open them took longer than "+digits.Span(r.o.Limit), "run risso size on the server's machine, where it looks at the files")
	}
	return nil
}

// named reads what information_schema says of tables of a schema.
func (r *reader) named(ctx context.Context, schema string, names []string, f func(Table)) error {
	return r.listed(ctx, "TABLE_SCHEMA = "+mysql.Literal(schema)+" AND TABLE_NAME IN ("+mysql.Literals(names)+")", f)
}

func (r *reader) listed(ctx context.Context, where string, f func(Table)) error {
	err := r.c.Query(ctx, "SELECT /* risso: sizes of tables */ TABLE_SCHEMA, TABLE_NAME, ENGINE, ROW_FORMAT, TABLE_ROWS, DATA_LENGTH, INDEX_LENGTH, DATA_FREE, CREATE_OPTIONS FROM information_schema.TABLES WHERE TABLE_TYPE IN "+ofRows+" AND "+where,
		func(row []sqldriver.Value) error {
			t := Table{Schema: mysql.Text(row[0]), Name: mysql.Text(row[1]), Engine: mysql.Text(row[2]), RowFormat: mysql.Text(row[3]), Options: mysql.Text(row[8]),
				Rows: known(row[4]), Data: known(row[5]), IndexBytes: known(row[6]), Free: known(row[7])}
			for _, part := range []*int64{t.Data, t.IndexBytes} {
				if part != nil {
					t.File += *part
				}
			}
			t.Allocated = t.File
			if strings.EqualFold(t.Engine, "CSV") {
				r.csv(&t)
			}
			f(t)
			return nil
		})
	if err != nil {
		return fmt.Errorf("read the sizes of tables: %w", err)
	}
	return nil
}

// known is a number that a server may not know.
func known(v sqldriver.Value) *int64 {
	if v == nil {
		return nil
	}
	n := number(mysql.Text(v))
	return &n
}

// estimates counts what information_schema shows to an account without PROCESS.
func (r *reader) estimates(ctx context.Context) error {
	schemas, err := r.schemaNames(ctx)
	if err != nil {
		return fmt.Errorf("list the schemas: %w", err)
	}
	n := 0
	for _, schema := range schemas {
		err := r.listed(ctx, "TABLE_SCHEMA = "+mysql.Literal(schema), func(t Table) {
			if e := strings.ToLower(t.Engine); e != "" && !inMemory[e] && !mysql.Elsewhere(e) {
				if t.Free != nil {
					t.File += *t.Free
					t.Allocated += *t.Free
				}
				r.tally.AddTable(t)
			}
			if n++; n%100 == 0 {
				r.o.Progress("tables", n)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unsized counts tables of which the server did not say how large their files are, by its estimates.
func (r *reader) unsized(ctx context.Context) error {
	bySchema := map[string][]string{}
	for _, n := range r.tally.unsized {
		bySchema[n.Schema] = append(bySchema[n.Schema], n.Name)
	}
	seen, one := map[mysql.TableName]bool{}, ""
	for schema, names := range bySchema {
		for chunk := range slices.Chunk(names, namesAtOnce) {
			err := r.named(ctx, schema, chunk, func(t Table) {
				if n := (mysql.TableName{Schema: t.Schema, Name: t.Name}); !seen[n] {
					seen[n], one = true, n.String()
					r.tally.AddTable(t)
				}
			})
			if err != nil {
				return err
			}
		}
	}
	if n := len(seen); n > 0 {
		r.unknown("true sizes of "+digits.Counted(n, "table"), "the server does not say how large their files are (one of them is "+one+"); its estimates are shown", "")
	}
	return nil
}

// mostForFullText is the most tablespaces with which it is looked up which table a full-text index is of: servers load all of them for that,
// 2.5 to 10 seconds for 10,000 (seen with MySQL 9.7 and MariaDB 10.11).
const mostForFullText = 2000

// fullText finds the tables that auxiliary tables of full-text indexes belong to.
func (r *reader) fullText(ctx context.Context) error {
	if n := len(r.tally.FullText()); n > 0 && r.tally.files > mostForFullText {
		r.unknown("to which tables "+digits.Counted(n, "set")+" of full-text indexes belong", "to ask for that makes the server open all tables; their sizes are in those of their schemas", "")
		return nil
	}
	for chunk := range slices.Chunk(r.tally.FullText(), namesAtOnce) {
		err := r.c.Query(ctx, r.c.Server.FullTextParts(chunk), func(row []sqldriver.Value) error {
			r.tally.Resolve(r.c.Server.ReadTableName(bytesOf(nil, row)))
			return nil
		})
		if err != nil {
			r.failed("whose full-text indexes some files are", err, "")
		}
	}
	return nil
}

// Find reads one table as Read does, without its indexes.
func Find(ctx context.Context, c *mysql.Conn, name mysql.TableName) (*Table, error) {
	r := &reader{c: c, r: &Report{}, o: Options{Schema: name.Schema}}
	var found *Table
	if err := r.named(ctx, name.Schema, []string{name.Name}, func(t Table) { found = &t }); err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fmt.Errorf("there is no table %s, or the account may not see it", name)
	}
	sum := Sum{}
	err := c.Query(ctx, c.Server.Tablespaces(), func(row []sqldriver.Value) error {
		if t := c.Server.ReadTablespace(bytesOf(nil, row)); isOf(t, found.Schema, found.Name) {
			sum.add(Sum{t.File, t.Allocated})
		}
		return nil
	})
	if err != nil && mysql.ClassOf(err) != mysql.ClassPrivilege && mysql.ClassOf(err) != mysql.ClassMissing {
		return nil, fmt.Errorf("list the tablespaces: %w", err)
	}
	if sum.File > 0 {
		found.Sum = sum
	}
	return found, nil
}

// isOf reports whether a tablespace is of a table, in whose own name the sign of partitions may be.
func isOf(t mysql.Tablespace, schema, table string) bool {
	_, whole, _ := strings.Cut(t.Name, "/")
	return t.Schema == schema && (t.Table == table || whole == table)
}

// bySchema are the listed tables of each schema.
func (r *reader) bySchema() map[string][]*Table {
	out := map[string][]*Table{}
	for i := range r.r.Tables {
		t := &r.r.Tables[i]
		out[t.Schema] = append(out[t.Schema], t)
	}
	return out
}

// details adds what information_schema says of the listed tables.
func (r *reader) details(ctx context.Context) error {
	for schema, list := range r.bySchema() {
		for chunk := range slices.Chunk(list, namesAtOnce) {
			byName := map[string]*Table{}
			var names []string
			for _, t := range chunk {
				byName[t.Name] = t
				names = append(names, t.Name)
			}
			err := r.named(ctx, schema, names, func(found Table) {
				t := byName[found.Name]
				if t == nil { // the server's names are the same in capital letters
					return
				}
				t.Engine, t.Options, t.Rows, t.Free, t.Data, t.IndexBytes = found.Engine, found.Options, found.Rows, found.Free, found.Data, found.IndexBytes
				t.RowFormat = cmp.Or(found.RowFormat, t.RowFormat)
				t.average()
				delete(byName, found.Name)
			})
			if err != nil {
				return err
			}
			for _, t := range byName {
				if t.PartitionCount == 1 && r.ownSign(ctx, t) {
					continue
				}
				why := "information_schema does not show it to the account, or the server is altering it"
				if strings.HasPrefix(t.Name, altering) {
					why = "it is of an ALTER TABLE that runs, or of one that was cut off"
				}
				r.unknown("rows and free space of "+mysql.TableName{Schema: t.Schema, Name: t.Name}.String(), why, "")
			}
		}
	}
	return nil
}

// ownSign reports whether the sign of partitions is in the very name of a table, and gives it that name and what is known of it.
func (r *reader) ownSign(ctx context.Context, t *Table) (found bool) {
	for _, sign := range []string{"#P#", "#p#"} {
		err := r.named(ctx, t.Schema, []string{t.Name + sign + t.Partitions[0].Name}, func(n Table) {
			found = true
			n.Sum = t.Sum
			n.average()
			*t = n
		})
		if found || err != nil {
			break
		}
	}
	return found
}

// indexes adds the sizes of the indexes of the listed tables, as they were when the server counted their pages last.
func (r *reader) indexes(ctx context.Context) {
	for schema, list := range r.bySchema() {
		byName := map[string]*Table{}
		var names, parts []string
		for _, t := range list {
			if !strings.EqualFold(t.Engine, "InnoDB") {
				continue
			}
			byName[t.Name] = t
			if t.PartitionCount == 0 {
				names = append(names, t.Name)
				continue
			}
			for _, sign := range []string{"#P#", "#p#"} {
				parts = append(parts, "LEFT(table_name, "+strconv.Itoa(len([]rune(t.Name))+3)+") = "+mysql.Literal(t.Name+sign))
			}
		}
		if len(names) > 0 {
			parts = append(parts, "table_name IN ("+mysql.Literals(names)+")")
		}
		if len(parts) == 0 {
			continue
		}
		err := r.c.Query(ctx, "SELECT /* risso: sizes of indexes */ table_name, index_name, stat_value, last_update FROM mysql.innodb_index_stats WHERE stat_name = 'size' AND database_name = "+mysql.Literal(schema)+" AND ("+strings.Join(parts, " OR ")+")", func(row []sqldriver.Value) error {
			name := mysql.Text(row[0])
			t := byName[name]
			if t == nil {
				if i := strings.Index(strings.ToLower(name), "#p#"); i > 0 {
					t = byName[name[:i]]
				}
			}
			if t != nil {
				asOf, _ := time.Parse(time.DateTime, mysql.Text(row[3]))
				t.addIndex(Index{mysql.Text(row[1]), number(mysql.Text(row[2])) * t.pageSize(r.page), asOf})
			}
			return nil
		})
		if err != nil {
			r.failed("sizes of indexes", err, "")
			if mysql.ClassOf(err) == mysql.ClassPrivilege {
				r.r.Unknown[len(r.r.Unknown)-1].Remedy = "GRANT SELECT ON mysql.innodb_index_stats TO " + r.c.Server.QuotedAccount()
			}
			return
		}
	}
	for i := range r.r.Tables {
		slices.SortStableFunc(r.r.Tables[i].Indexes, func(a, b Index) int { return cmp.Compare(b.Bytes, a.Bytes) })
	}
}

// average works out what a row takes.
func (t *Table) average() {
	if t.Rows != nil && *t.Rows > 0 {
		n := t.Allocated / *t.Rows
		t.Average = &n
	}
}

// addIndex adds an index, or its part in a partition.
func (t *Table) addIndex(n Index) {
	for i := range t.Indexes {
		if x := &t.Indexes[i]; x.Name == n.Name {
			x.Bytes += n.Bytes
			if n.AsOf.Before(x.AsOf) {
				x.AsOf = n.AsOf
			}
			return
		}
	}
	t.Indexes = append(t.Indexes, n)
}

// pageSize is that of the server, or what KEY_BLOCK_SIZE says.
func (t *Table) pageSize(server int64) int64 {
	_, after, ok := strings.Cut(strings.ToLower(strings.ReplaceAll(t.Options, "`", "")), "key_block_size=")
	if !ok || !strings.EqualFold(t.RowFormat, "Compressed") {
		return server
	}
	after, _, _ = strings.Cut(after, " ")
	return cmp.Or(number(strings.Trim(after, "'\""))<<10, server)
}
