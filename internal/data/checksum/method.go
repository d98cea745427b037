package checksum

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/mysql"
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

func (w *worker) choice(p *plan) *choice {
	c := &choice{fixed: w.Method}
	switch w.Method {
	case MethodAuto:
		c.fixed = ""
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

// refuse gives a method up that a server does not know.
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
	if c.factor[1] > c.factor[0] {
		c.fixed = MethodServer
	}
}

// hashWords are what the servers make of a row's word r and combine by exclusive or. The same is asked of all of them.
type hashWords string

// The hashes, best first. DESIGN.md says what they cost and what escapes them.
const (
	hashSHA2    hashWords = "HEX(BIT_XOR(UNHEX(SHA2(r, 256))))"                                      // MySQL 8.0: it combines binary strings
	hashTwoCRC  hashWords = "HEX(BIT_XOR(CRC32(r) << 32 | CRC32C(r)))"                               // MariaDB 10.8: two polynomials
	hashReverse hashWords = "HEX(BIT_XOR(CRC32(r) << 32 | CRC32(REVERSE(CONVERT(r USING binary)))))" // any server
)

// hashOneCRC is for MethodQuick.
const hashOneCRC hashWords = "HEX(BIT_XOR(CRC32(r)))"

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

// separator stands between the values of a word: text does not have it, and no accident moves it from one column to the next.
const separator = "_binary 0x1e011f"

// ask lets the server add up a range: the number of rows, and their words' hashes combined.
func (s *span) ask(ctx context.Context, st *mysql.Stream, t mysql.Table, k chunk.Key, hash hashWords) error {
	parts := []string{separator}
	for _, c := range t.Columns {
		parts = append(parts, rowPart(c))
	}
	word := "CONCAT_WS(" + strings.Join(parts, ", ") + ")"
	statement := chunk.Select(t, k, s.Range, purpose)
	i := strings.Index(statement, " FROM "+mysql.Quote(t.Schema)+"."+mysql.Quote(t.Name))
	from := strings.TrimSuffix(statement[i:], " ORDER BY "+k.OrderBy())
	statement = "SELECT /* risso: checksum */ COUNT(*), COALESCE(" + strings.ReplaceAll(string(hash), "(r", "("+word) + ", '')" + from
	return st.Query(ctx, statement, func(row [][]byte) error {
		s.mixed = string(row[1])
		_, err := fmt.Sscan(string(row[0]), &s.rows)
		return err
	})
}

// rowPart is what a column adds to a row's word.
func rowPart(c mysql.TableColumn) string {
	value := mysql.Quote(c.Name)
	if c.Type == "float" && !strings.Contains(c.FullType, "(") {
		value += " * 1e0"
	}
	if c.Nullable {
		return "COALESCE(" + value + ", _binary 0x1e001f)"
	}
	return value
}

// fits says whether a row's word is surely smaller than a server's max_allowed_packet, above which CONCAT_WS gives NULL, which
// is left out of the sum.
func fits(columns []mysql.TableColumn) bool {
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
