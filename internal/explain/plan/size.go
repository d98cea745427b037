package plan

import (
	"math"
	"strings"
)

// indexBytes estimates the leaf pages of a secondary index of these columns.
func indexBytes(f *TableFacts, cols []string) float64 {
	entry := float64(recordHeader)
	nullable := 0
	all := append([]string(nil), cols...)
	for _, c := range f.primary() {
		have := false
		for _, k := range cols {
			have = have || strings.EqualFold(k, c)
		}
		if !have {
			all = append(all, c)
		}
	}
	if len(f.primary()) == 0 {
		entry += 6 // the hidden row id
	}
	variable := f.variableBytes()
	for _, name := range all {
		c := f.column(name)
		if c == nil {
			continue
		}
		if c.Nullable {
			nullable++
		}
		if mean, ok := f.Sample.bytes(c); ok {
			entry += mean
		} else {
			entry += c.bytes(variable)
		}
	}
	entry += math.Ceil(float64(nullable) / 8)
	perPage := math.Max(2, math.Floor((f.PageSize-pageFrame)*pageFill/entry))
	return math.Ceil(f.Rows/perPage) * f.PageSize
}

// variableBytes is what a column of variable length has on average: what the mean row has beyond its fixed columns,
// divided among them.
func (t *TableFacts) variableBytes() float64 {
	fixed, n := float64(pointerBytes), 0
	for i := range t.Columns {
		if c := &t.Columns[i]; c.variable() {
			n++
		} else {
			fixed += fixedBytes(c)
		}
	}
	if n == 0 {
		return 0
	}
	return math.Max(1, (t.AvgRowLength*pageFill-fixed)/float64(n))
}

func (c *ColumnFacts) variable() bool {
	switch c.Type {
	case "varchar", "varbinary", "text", "tinytext", "mediumtext", "longtext", "blob", "tinyblob", "mediumblob", "longblob", "json":
		return true
	}
	return false
}

// bytes of a value on average, with its length bytes.
func (c *ColumnFacts) bytes(variable float64) float64 {
	if !c.variable() {
		return fixedBytes(c)
	}
	length := 1.0
	if c.Octets > 255 {
		length = 2
	}
	return math.Min(variable, math.Max(1, c.Octets)) + length
}

// bytes of a column of variable length on average, with its length bytes, if a sample showed it.
func (s *Sample) bytes(c *ColumnFacts) (float64, bool) {
	if s == nil || !c.variable() {
		return 0, false
	}
	mean, ok := s.Bytes[strings.ToLower(c.Name)]
	length := 1.0
	if c.Octets > 255 && mean > 127 {
		length = 2
	}
	return mean + length, ok
}

// fixedBytes of a value (https://dev.mysql.com/doc/refman/9.4/en/storage-requirements.html).
func fixedBytes(c *ColumnFacts) float64 {
	fraction := math.Ceil(float64(c.Precision) / 2) // of a time
	switch c.Type {
	case "tinyint", "year", "bit":
		return 1
	case "smallint":
		return 2
	case "mediumint", "date":
		return 3
	case "int", "float":
		return 4
	case "bigint", "double":
		return 8
	case "time":
		return 3 + fraction
	case "timestamp":
		return 4 + fraction
	case "datetime":
		return 5 + fraction
	case "decimal":
		digits := func(n int) float64 {
			rest := []float64{0, 1, 1, 2, 2, 3, 3, 4, 4}
			if n < 0 {
				n = 0
			}
			return float64(n/9*4) + rest[n%9]
		}
		return digits(c.Precision-c.Scale) + digits(c.Scale)
	case "enum", "set":
		return 1
	case "uuid", "inet6":
		return 16
	case "inet4":
		return 4
	}
	return math.Max(1, c.Octets)
}

// keyBytes is the longest key that InnoDB takes with the table's page size
// (https://dev.mysql.com/doc/refman/9.4/en/innodb-limits.html: 3,072 bytes with pages of 16 KiB, less with smaller ones).
func (t *TableFacts) keyBytes() float64 {
	return math.Min(maxKeyBytes, t.PageSize*maxKeyBytes/16384)
}

// columnBytes is how much of one column a key may have.
func (t *TableFacts) columnBytes() float64 {
	if t.ColumnKey > 0 {
		return math.Min(t.ColumnKey, t.keyBytes())
	}
	return t.keyBytes()
}

// keyable reports whether a B-tree takes the column, if only with a prefix.
func (c *ColumnFacts) keyable() bool {
	switch c.Type {
	case "json", "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection", "vector":
		return false
	}
	return true
}

// long reports whether the column goes into a key with a prefix only, whatever its declared length.
func (c *ColumnFacts) long() bool {
	return strings.HasSuffix(c.Type, "blob") || strings.HasSuffix(c.Type, "text")
}

// keyBytes is what the column may take in a key.
func (c *ColumnFacts) keyBytes() float64 {
	if c.Octets > 0 {
		return c.Octets
	}
	return fixedBytes(c)
}

// charBytes is the most bytes of a character. TEXT does not show it: four, the most of all character sets.
func (c *ColumnFacts) charBytes() float64 {
	switch {
	case strings.HasSuffix(c.Type, "blob") || strings.HasSuffix(c.Type, "binary"):
		return 1
	case strings.HasSuffix(c.Type, "text") || c.Chars <= 0 || c.Octets <= 0:
		return 4
	}
	return math.Max(1, math.Ceil(c.Octets/c.Chars))
}

// Lengths of prefixes, in characters. A key of 191 characters of four bytes is the longest that 767 bytes hold.
const (
	textPrefix   = 64
	stringPrefix = 191
)

// prefix is how many characters of the column go into a key with a number of bytes left; 0: none.
func (c *ColumnFacts) prefix(left float64) int {
	n := float64(stringPrefix)
	if c.long() {
		n = textPrefix
	}
	if c.Chars > 0 {
		n = math.Min(n, c.Chars)
	}
	return int(math.Min(n, math.Floor(left/c.charBytes())))
}
