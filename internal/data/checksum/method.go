package checksum

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// choice says which method the next chunk of a table takes.
type choice struct {
	mu     sync.Mutex
	fixed  Method // "": still to be found
	tried  int
	factor [2]float64 // rows a second of the chunks by rows and by the server
}

// trials is how many chunks are read by each method before the faster is taken. The first of each does not count: it warms up.
const trials = 3

// gain is how much faster rows have to be than sums of the servers: they burden the network and this machine as well.
const gain = 1.2

func (w *worker) newChoice(p *plan) *choice {
	c := &choice{fixed: w.Method}
	switch w.Method {
	case MethodAuto:
		if c.fixed = ""; w.hash() == hashTwoCRC { // it costs a server no more than sending the row, and others nothing
			c.fixed = MethodServer
		}
	case MethodQuick:
		c.fixed = MethodServer // with another hash
	}
	if !p.uniq || p.text || !fits(p.here.Columns) { // rows that are there twice would cancel each other
		c.fixed = MethodRows
	}
	return c
}

func (c *choice) next() Method {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fixed != "" {
		return c.fixed
	}
	if c.tried%2 == 0 {
		return MethodRows
	}
	return MethodServer
}

// refuse drops a method that a server does not know.
func (c *choice) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fixed = MethodRows
}

// note learns from a chunk.
func (c *choice) note(s span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fixed != "" || s.took <= 0 {
		return
	}
	i := 0
	if s.method == MethodServer {
		i = 1
	}
	if c.tried >= 2 {
		c.factor[i] = max(c.factor[i], float64(s.rows)/s.took.Seconds())
	}
	if c.tried++; c.tried < 2*trials {
		return
	}
	c.fixed = MethodRows
	if c.factor[1]*gain > c.factor[0] {
		c.fixed = MethodServer
	}
}

// hashWords are what the servers make of a row's word, ROW, and combine by exclusive or. The same is asked of all of them.
//
// CRC is linear: CRC(a) ^ CRC(b) depends on a ^ b alone. Combined as they are, the CRCs of two rows that were changed in the same
// way, or that swapped their values, cancel each other, and the chunk looks the same, however many bits and polynomials there
// are. So no CRC is combined before a multiplication, which is not linear, has mixed it. A product of 32 bits by 32 bits always
// fits into the 64 of a BIGINT UNSIGNED.
type hashWords string

// The hashes, best first. DESIGN.md says what they cost and what escapes them.
const (
	hashSHA2    hashWords = "HEX(BIT_XOR(UNHEX(SHA2(ROW, 256))))"                                  // MySQL 8.0: it combines binary strings
	hashTwoCRC  hashWords = "HEX(BIT_XOR(CRC32(@risso_row := ROW) * CRC32C(@risso_row)))"          // MariaDB 10.8: two polynomials; the word is made once
	hashReverse hashWords = "HEX(BIT_XOR(CRC32(ROW) * CRC32(REVERSE(CONVERT(ROW USING binary)))))" // any server
)

// hashOneCRC is for MethodQuick. The factor is the prime next to 2^32 divided by the golden ratio: different CRCs stay different.
const hashOneCRC hashWords = "HEX(BIT_XOR(CRC32(ROW) * 2654435761))"

// hash chooses the best hash that all servers know.
func (r *run) hash() hashWords {
	maria, mysql8 := r.primary.server.KnowsCRC32C(), r.primary.server.CombinesBinary()
	for _, s := range r.others {
		maria, mysql8 = maria && s.server.KnowsCRC32C(), mysql8 && s.server.CombinesBinary()
	}
	switch {
	case r.Method == MethodQuick:
		return hashOneCRC
	case maria:
		return hashTwoCRC
	case mysql8:
		return hashSHA2
	}
	return hashReverse
}

// separator separates the values of a word: no text has it, and nothing moves it from one column to the next.
const separator = "_binary 0x1e011f"

// ask lets the server add up a range: the number of rows, and their words' hashes combined.
func (s *span) ask(ctx context.Context, st *mysql.Stream, p *plan, t define.Table, k chunk.Key, hash hashWords) error {
	parts := []string{separator}
	for _, i := range p.order {
		parts = append(parts, rowPart(t.Columns[i]))
	}
	word := "CONCAT_WS(" + strings.Join(parts, ", ") + ")"
	statement := chunk.Select(t, k, s.Range, purpose)
	i := strings.Index(statement, " FROM "+mysql.Quote(t.Schema)+"."+mysql.Quote(t.Name))
	from := strings.TrimSuffix(statement[i:], " ORDER BY "+k.OrderBy())
	statement = "SELECT /* risso: checksum */ COUNT(*), COALESCE(" + strings.ReplaceAll(string(hash), "ROW", word) + ", '')" + from
	return st.Query(ctx, statement, func(row [][]byte) error {
		s.mixed = string(row[1])
		_, err := fmt.Sscan(string(row[0]), &s.rows)
		return err
	})
}

// wordOrder is the order of columns in a row's word: the longest first, so that a server does not move what it has put together
// to a larger place with each value. MySQL 9.7 spends a tenth less on a row of two long and two short columns.
func wordOrder(columns []define.TableColumn) []int {
	order := make([]int, len(columns))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return longest(columns[b]) - longest(columns[a]) })
	return order
}

// longest is about how long a column's values may be.
func longest(c define.TableColumn) int {
	switch c.Type {
	case "char", "varchar", "binary", "varbinary":
		_, length, _ := strings.Cut(c.FullType, "(")
		n := 0
		fmt.Sscanf(length, "%d", &n) // 0 says nothing, and stays
		return n
	case "tinytext", "tinyblob":
		return 255
	case "text", "blob":
		return 1 << 16
	}
	return 20
}

// rowPart is what a column adds to a row's word.
func rowPart(c define.TableColumn) string {
	value := chunk.Expression(c)
	if c.Nullable {
		return "COALESCE(" + value + ", _binary 0x1e001f)"
	}
	return value
}

// fits reports whether a row's word is surely smaller than a server's max_allowed_packet, above which CONCAT_WS returns NULL, which
// is left out of the sum.
func fits(columns []define.TableColumn) bool {
	long := 0
	for _, c := range columns {
		switch c.Type {
		case "mediumtext", "longtext", "mediumblob", "longblob", "json", "geometry", "point", "linestring", "polygon", "multipoint",
			"multilinestring", "multipolygon", "geometrycollection", "geomcollection", "vector":
			return false
		case "text", "blob":
			long++
		}
	}
	return long <= 8 // of 64 kB
}
