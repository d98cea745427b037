package binlog

import (
	"fmt"

	"github.com/rissodb/risso/internal/mysql"
)

// order watches whether the numbers of MariaDB's domains show what a position has. If several servers write in one domain, as they may with
// gtid_strict_mode=OFF, they do not rise: a number below the position's may come after it, and one above before it.
type order struct {
	last map[uint32]mysql.GTID // the position, by domain
	past map[uint32]bool       // whether it was passed
}

func newOrder(from mysql.GTIDSet) order {
	o := order{last: map[uint32]mysql.GTID{}, past: map[uint32]bool{}}
	for _, g := range from.Domains() {
		o.last[g.Domain] = g
	}
	return o
}

// next takes the next transaction; has: by its number the position has it.
func (o order) next(file string, g mysql.GTID, has bool) error {
	if !g.ByDomain() {
		return nil
	}
	if has && o.past[g.Domain] {
		return fmt.Errorf("%w: the numbers of domain %d do not rise (in %s %s comes after something missing from the position %s, or after itself): several servers wrote in that domain, with gtid_strict_mode=OFF, and GTIDs do not say where to begin; "+
			"risso binlog apply --start FILE:POSITION does", ErrContents, g.Domain, file, g, o.last[g.Domain])
	}
	if !has || g == o.last[g.Domain] {
		o.past[g.Domain] = true
	}
	return nil
}
