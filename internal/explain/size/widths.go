package size

import (
	"cmp"
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Width is a column whose type allows more than it holds in a sample of its rows.
type Width struct {
	Schema   string `json:"schema"`
	Table    string `json:"table"`
	Column   string `json:"column"`
	Type     string `json:"type"`        // as it is
	Holds    string `json:"holds"`       // what the sample holds
	Sampled  int64  `json:"sampled"`     // rows
	Narrower string `json:"would_do"`    // a type that holds it with room to double
	Bytes    int64  `json:"saved_bytes"` // in rows and indexes, about; 0: none on disk
	Saves    string `json:"saves"`       // that in words
}

// ColumnFacts are what is known of a column, and of a sample of its rows.
type ColumnFacts struct {
	Schema, Table, Column string
	Type                  string // int, without length and sign
	FullType              string // int(10) unsigned
	Length                int64  // characters, of text
	Auto                  bool
	Rows                  int64 // of the table, estimated; 0: not known
	Copies                int   // how often each row's value is kept: once in the row, and in each index that has it
	Sampled               int64
	All                   bool     // the sample has all rows
	Min, Max              *big.Int // of whole numbers
	Longest               int64    // characters, of text
	Average               float64  // bytes, of text
}

// wholeTypes are the types of whole numbers by their bytes, the narrowest first.
var wholeTypes = []struct {
	name  string
	bytes int
}{{"tinyint", 1}, {"smallint", 2}, {"mediumint", 3}, {"int", 4}, {"bigint", 8}}

// Narrower finds a narrower type for a column, if a sample of it leaves room: twice its largest number, or twice its longest text, must fit.
// What is saved on disk is the difference of the types' bytes by rows and indexes. VARCHAR saves nothing there: rows hold what
// they hold; memory for sorts and temporary tables is by the type, though. Source: MySQL manual, "Data Type Storage Requirements".
func Narrower(f ColumnFacts) (Width, bool) {
	w := Width{Schema: f.Schema, Table: f.Table, Column: f.Column, Type: f.FullType, Sampled: f.Sampled}
	var saves bool
	switch {
	case f.Sampled < leastSample:
		return w, false
	case f.Min != nil && f.Max != nil:
		saves = w.whole(f)
	case f.Type == "char" || f.Type == "varchar":
		saves = w.text(f)
	}
	if !saves {
		return w, false
	}
	in := fmt.Sprintf(" in a sample of %s", digits.Counted(f.Sampled, "row"))
	if f.All {
		in = fmt.Sprintf(" in all %s", digits.Counted(f.Sampled, "row"))
	}
	w.Holds += in
	return w, true
}

// leastSample is the least number of rows that say anything.
const leastSample = 100

func (w *Width) whole(f ColumnFacts) bool {
	now := slices.IndexFunc(wholeTypes, func(t struct {
		name  string
		bytes int
	}) bool {
		return t.name == f.Type
	})
	if now < 0 {
		return false
	}
	unsigned := strings.Contains(f.FullType, "unsigned")
	for i, t := range wholeTypes[:now] {
		if i == 2 && now == 3 {
			continue // MEDIUMINT in place of INT saves one byte
		}
		low, high := rangeOf(t.bytes, unsigned)
		double := func(n *big.Int) *big.Int { return new(big.Int).Lsh(n, 1) }
		if double(f.Max).Cmp(high) > 0 || double(f.Min).Cmp(low) < 0 {
			continue
		}
		w.Narrower = t.name
		if unsigned {
			w.Narrower += " unsigned"
		}
		w.Holds = f.Min.String() + " to " + f.Max.String()
		w.Bytes = f.Rows * int64(wholeTypes[now].bytes-t.bytes) * int64(max(f.Copies, 1))
		w.Saves = "about " + digits.Bytes(w.Bytes)
		if f.Copies > 1 {
			w.Saves += fmt.Sprintf(": it is kept %d times, in the row and in indexes", f.Copies)
		}
		if f.Auto {
			w.Saves += "; it counts up: look at how fast before you narrow it"
		}
		return true
	}
	return false
}

// rangeOf is what a type of so many bytes holds.
func rangeOf(bytes int, unsigned bool) (low, high *big.Int) {
	bits := uint(bytes * 8)
	one := big.NewInt(1)
	if unsigned {
		return new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(one, bits), one)
	}
	half := new(big.Int).Lsh(one, bits-1)
	return new(big.Int).Neg(half), new(big.Int).Sub(half, one)
}

func (w *Width) text(f ColumnFacts) bool {
	const wide, sparse = 32, 4
	if f.Length < wide || f.Longest*sparse > f.Length {
		return false
	}
	fits := int64(8)
	for fits < 2*f.Longest {
		fits *= 2
	}
	w.Narrower = fmt.Sprintf("varchar(%d)", fits)
	w.Holds = fmt.Sprintf("at most %s, %s on average", digits.Counted(f.Longest, "character"), digits.Bytes(math.Round(f.Average)))
	if f.Type == "char" {
		w.Bytes = int64(max(float64(f.Length)-f.Average-1, 0) * float64(f.Rows) * float64(max(f.Copies, 1)))
		w.Saves = "about " + digits.Bytes(w.Bytes)
		return true
	}
	w.Saves = "nothing on disk; memory of sorts and temporary tables"
	return true
}

// WidthOptions bound how Widths looks at rows.
type WidthOptions struct {
	Rows int           // of each table: half from the beginning of its primary key, half from the end; 0: 10,000
	Time time.Duration // for each table; 0: two seconds
}

// Widths looks at a sample of the rows of tables, and returns columns that are wider than what they hold, the largest saving first. What could
// not be looked at is in the second answer. Full-text, JSON, TEXT and BLOB are not read.
func Widths(ctx context.Context, c *mysql.Conn, tables []Table, o WidthOptions) (found []Width, unknown []fleet.Trouble, err error) {
	o.Rows, o.Time = cmp.Or(o.Rows, 10000), cmp.Or(o.Time, 2*time.Second)
	found = []Width{}
	for _, t := range tables {
		if mysql.SystemSchema(t.Schema) {
			continue
		}
		list, err := widthsOf(ctx, c, t, o)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			unknown = append(unknown, fleet.Trouble{What: "what the columns of " + mysql.TableName{Schema: t.Schema, Name: t.Name}.String() + " hold", Why: err.Error()})
		}
		found = append(found, list...)
	}
	slices.SortStableFunc(found, func(a, b Width) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return found, unknown, nil
}

func widthsOf(ctx context.Context, c *mysql.Conn, t Table, o WidthOptions) ([]Width, error) {
	columns, primary, err := columnsOf(ctx, c, t)
	if err != nil || len(columns) == 0 {
		return nil, err
	}
	var names, asks []string
	for i, f := range columns {
		name := "c" + strconv.Itoa(i)
		names = append(names, mysql.Quote(f.Column)+" AS "+name)
		if f.Length > 0 {
			asks = append(asks, "MAX(CHAR_LENGTH("+name+")), AVG(LENGTH("+name+"))")
		} else {
			asks = append(asks, "MIN("+name+"), MAX("+name+")")
		}
	}
	orders := []string{""}
	if len(primary) > 0 {
		orders = []string{" ORDER BY " + strings.Join(primary, ", "), " ORDER BY " + strings.Join(primary, " DESC, ") + " DESC"}
	}
	each := max(o.Rows/len(orders), 1)
	for _, order := range orders {
		statement := "SELECT /* risso: what do columns hold? */ COUNT(*), " + strings.Join(asks, ", ") + " FROM (SELECT " + strings.Join(names, ", ") + " FROM " + mysql.TableName{Schema: t.Schema, Name: t.Name}.String() + order + " LIMIT " + strconv.Itoa(each) + ") AS sample"
		var rows int64
		err := c.Query(ctx, c.Server.Bounded(o.Time, statement), func(row []sqldriver.Value) error {
			rows = number(mysql.Text(row[0]))
			for i := range columns {
				columns[i].see(rows, row[1+2*i], row[2+2*i])
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if rows < int64(each) { // these are all
			for i := range columns {
				columns[i].All = true
			}
			break
		}
	}
	var out []Width
	for _, f := range columns {
		if w, ok := Narrower(f); ok {
			out = append(out, w)
		}
	}
	return out, nil
}

// see adds what a part of the sample holds: a longest and an average, or a smallest and a largest number.
func (f *ColumnFacts) see(rows int64, a, b sqldriver.Value) {
	before := f.Sampled
	f.Sampled += rows
	if a == nil || b == nil {
		return // only NULL
	}
	if f.Length > 0 {
		f.Longest = max(f.Longest, number(mysql.Text(a)))
		average, err := strconv.ParseFloat(mysql.Text(b), 64)
		if err == nil && f.Sampled > 0 {
			f.Average = (f.Average*float64(before) + average*float64(rows)) / float64(f.Sampled)
		}
		return
	}
	low, ok := new(big.Int).SetString(mysql.Text(a), 10)
	high, also := new(big.Int).SetString(mysql.Text(b), 10)
	if !ok || !also {
		return
	}
	if f.Min == nil || low.Cmp(f.Min) < 0 {
		f.Min = low
	}
	if f.Max == nil || high.Cmp(f.Max) > 0 {
		f.Max = high
	}
}

// columnsOf are the columns that may be too wide, and the primary key.
func columnsOf(ctx context.Context, c *mysql.Conn, t Table) (list []ColumnFacts, primary []string, err error) {
	where := " WHERE TABLE_SCHEMA = " + mysql.Literal(t.Schema) + " AND TABLE_NAME = " + mysql.Literal(t.Name)
	indexed, indexes := map[string]int{}, map[string]bool{}
	err = c.Query(ctx, "SELECT /* risso: what do columns hold? */ INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS"+where+" ORDER BY INDEX_NAME, SEQ_IN_INDEX", func(row []sqldriver.Value) error {
		index, column := mysql.Text(row[0]), mysql.Text(row[1])
		if index == "PRIMARY" {
			primary = append(primary, mysql.Quote(column))
			return nil
		}
		indexes[index] = true
		if row[1] != nil {
			indexed[column]++
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read the indexes: %w", err)
	}
	rows := int64(0)
	if t.Rows != nil {
		rows = *t.Rows
	}
	err = c.Query(ctx, "SELECT /* risso: what do columns hold? */ COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_MAXIMUM_LENGTH, EXTRA FROM information_schema.COLUMNS"+where+" AND DATA_TYPE IN ('smallint', 'mediumint', 'int', 'bigint', 'char', 'varchar') ORDER BY ORDINAL_POSITION", func(row []sqldriver.Value) error {
		f := ColumnFacts{Schema: t.Schema, Table: t.Name, Column: mysql.Text(row[0]), Type: strings.ToLower(mysql.Text(row[1])), FullType: mysql.Text(row[2]), Length: number(mysql.Text(row[3])), Rows: rows}
		extra := strings.ToLower(mysql.Text(row[4]))
		if strings.Contains(extra, "generated") {
			return nil
		}
		f.Auto = strings.Contains(extra, "auto_increment")
		f.Copies = 1 + indexed[f.Column]
		if slices.Contains(primary, mysql.Quote(f.Column)) {
			f.Copies = 1 + len(indexes) // each secondary index has the primary key
		}
		list = append(list, f)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read the columns: %w", err)
	}
	return list, primary, nil
}
