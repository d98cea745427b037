// Package sample puts a table's rows, or a part of them, from a server into a throw-away one, and says what kind of part it is. See DESIGN.md.
package sample

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sqltext"
)

// Kind is what sort of part of a table's rows a sample is.
type Kind string

// The kinds.
const (
	Whole  Kind = "whole"  // all rows
	Spread Kind = "spread" // runs of neighbours from all over the range of the primary key: shares of values are kept
	First  Kind = "first"  // the first rows in the order of the primary key, or of the table's file
)

// Options say how much is taken.
type Options struct {
	Rows    int64  // about, at most
	Bytes   int64  // of the values, at most; 0: any
	Of      int64  // rows of the table, as the server estimates them
	OfBytes int64  // bytes of its rows, as the server estimates them; 0: not known
	Purpose string // what the statements carry in their comment
}

// Sample is what was taken.
type Sample struct {
	Kind   Kind
	Rows   int64 // that the throw-away server has
	Read   int64 // that were read for it
	Places []Place
	Key    string // quoted, of a Spread: the primary key, if that is one column; its values in Places are exact then

	stale bool // the server estimates fewer rows than were read
}

// Place is a run of rows.
type Place struct {
	Rows, Bytes int64
	Low, High   string // first and last value of the primary key's first column; "" if it is no whole number
}

// Words say what kind of part it is, of a table that is not copied whole; "" of one that is.
func (s Sample) Words(name mysql.TableName) string {
	lost := ""
	if s.Rows != s.Read {
		lost = fmt.Sprintf("; of %s that were read the throw-away server took %s", digits.Counted(s.Read, "row"), digits.Thousands(s.Rows))
	}
	switch {
	case s.Kind == Spread:
		return fmt.Sprintf("of %s a sample was copied, %s from %s of its primary key's range: the share of rows that have a value is about that of all rows, but of a value with few rows fewer may be there, or none, and a join with another sample finds fewer rows",
			name, digits.Counted(s.Rows, "row"), digits.Counted(int64(len(s.Places)), "place")) + lost
	case s.Kind == First && s.stale:
		return fmt.Sprintf("of %s only the first %s were copied: it has more than its statistics say (ANALYZE TABLE counts anew), and values may be spread otherwise in the rest", name, digits.Counted(s.Rows, "row")) + lost
	case s.Kind == First:
		return fmt.Sprintf("of %s only the first %s in the order of its primary key were copied: that key does not begin with a whole number whose range could be sampled, so values may be spread otherwise in the rest", name, digits.Counted(s.Rows, "row")) + lost
	case lost != "":
		return "of " + name.String() + strings.TrimPrefix(lost, "; of")
	}
	return ""
}

// Define makes a table in the throw-away server as it is on the server, with its schema, and returns its definition. Folders that the definition
// names belong to the server and are left out.
func Define(ctx context.Context, from, to *mysql.Stream, d sqltext.Dialect, name mysql.TableName) (define.Table, error) {
	schema, err := define.CreateSchema(ctx, from, name.Schema)
	if err != nil {
		return define.Table{}, err
	}
	create, err := define.CreateTable(ctx, from, name)
	if err != nil {
		return define.Table{}, err
	}
	t, err := define.ParseTable(name.Schema, create)
	if err != nil {
		return t, err
	}
	schema = strings.Replace(schema, "CREATE DATABASE ", "CREATE DATABASE IF NOT EXISTS ", 1)
	for _, statement := range []string{"SET SESSION /* risso: a copy */ foreign_key_checks = 0, innodb_strict_mode = 0", schema, "USE " + mysql.Quote(name.Schema), Here(d, create)} {
		if err := to.Exec(ctx, statement); err != nil {
			return t, fmt.Errorf("make %s in the throw-away server: %w", name, err)
		}
	}
	return t, nil
}

// Here is a CREATE TABLE without the folders of another machine.
func Here(d sqltext.Dialect, create string) string {
	if c, err := d.ReadCreate(create); err == nil {
		return sqltext.Apply(create, c.Directories)
	}
	return create
}

// Copy puts rows of a table into the throw-away server, where the table is empty. Both sessions are ForRows.
func Copy(ctx context.Context, from, to *mysql.Stream, t define.Table, o Options) (Sample, error) {
	c := &copier{from: from, to: to, t: t, o: o, name: mysql.TableName{Schema: t.Schema, Name: t.Name}}
	err := to.Exec(ctx, "SET SESSION /* risso: a copy */ sql_mode = 'NO_AUTO_VALUE_ON_ZERO', foreign_key_checks = 0, unique_checks = 1, sql_log_bin = 0")
	if err != nil {
		return c.s, fmt.Errorf("prepare the throw-away server: %w", err)
	}
	if err := c.take(ctx); err != nil {
		return c.s, err
	}
	for _, p := range c.s.Places {
		c.s.Read += p.Rows
	}
	err = to.Query(ctx, "SELECT /* risso: "+o.Purpose+" */ COUNT(*) FROM "+c.name.String(), func(row [][]byte) (err error) {
		c.s.Rows, err = strconv.ParseInt(string(row[0]), 10, 64)
		return err
	})
	if err != nil {
		return c.s, fmt.Errorf("count the rows of the copy: %w", err)
	}
	return c.s, nil
}

// copier copies rows of one table.
type copier struct {
	from, to *mysql.Stream
	t        define.Table
	name     mysql.TableName
	o        Options
	s        Sample
}

// take takes all rows, or a part.
func (c *copier) take(ctx context.Context) error {
	share := 1.0
	if c.o.Of > c.o.Rows {
		share = float64(c.o.Rows) / float64(c.o.Of)
	}
	if c.o.Bytes > 0 && c.o.OfBytes > c.o.Bytes {
		share = min(share, float64(c.o.Bytes)/float64(c.o.OfBytes))
	}
	order := c.order()
	if share >= 1 { // the estimate may be too low by half; if it is wrong altogether, not everything is copied
		limit := 2*c.o.Rows + 1000
		p, cut, err := c.rows(ctx, " LIMIT "+strconv.FormatInt(limit, 10), -1, c.o.Bytes)
		c.s.Kind, c.s.Places = Whole, []Place{p}
		if cut || p.Rows >= limit {
			c.s.Kind, c.s.stale = First, true
		}
		return err
	}
	rows := max(1, int64(math.Round(share*float64(c.o.Of))))
	key, at := c.wholeKey()
	if key == "" {
		p, _, err := c.rows(ctx, order+" LIMIT "+strconv.FormatInt(rows, 10), -1, c.o.Bytes)
		c.s.Kind, c.s.Places = First, []Place{p}
		return err
	}
	c.s.Kind = Spread
	if order == " ORDER BY "+key {
		c.s.Key = key
	}
	list, err := c.strata(ctx, key)
	if err != nil {
		return err
	}
	total := 0.0
	for _, r := range list {
		total += r.rows
	}
	for _, r := range list {
		part := r.rows / total
		p, _, err := c.rows(ctx, r.where(key)+order+" LIMIT "+strconv.FormatInt(int64(math.Ceil(float64(rows)*part)), 10), at, int64(float64(c.o.Bytes)*part))
		if err != nil {
			return err
		}
		if p.Rows > 0 {
			c.s.Places = append(c.s.Places, p)
		}
	}
	return nil
}

// wholeKey is the first column of the primary key if it is a whole number, and its place among the columns that are read; else "".
func (c *copier) wholeKey() (name string, at int) {
	for _, k := range c.t.Keys {
		if k.Name != "PRIMARY" || len(k.Parts) == 0 {
			continue
		}
		for _, col := range c.t.Columns {
			if col.Generated {
				continue
			}
			if strings.EqualFold(col.Name, k.Parts[0].Column) {
				if strings.HasSuffix(col.Type, "int") {
					return mysql.Quote(col.Name), at
				}
				return "", -1
			}
			at++
		}
	}
	return "", -1
}

// order is the order of the primary key; "" without one.
func (c *copier) order() string {
	for _, k := range c.t.Keys {
		if k.Name != "PRIMARY" {
			continue
		}
		var list []string
		for _, p := range k.Parts {
			word := mysql.Quote(p.Column)
			if p.Descending {
				word += " DESC"
			}
			list = append(list, word)
		}
		return " ORDER BY " + strings.Join(list, ", ")
	}
	return ""
}
