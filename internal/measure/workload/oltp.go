package workload

import (
	"math/rand/v2"
	"strconv"

	"github.com/rissodb/risso/internal/measure/drive"
)

// OLTP are sysbench's oltp workloads: the same tables, statements and defaults, so that results compare.
// Source: oltp_common.lua of sysbench 1.0.20.
type OLTP struct {
	Kind      string
	Tables    int
	TableSize int
}

// Name is sysbench's, without "oltp_".
func (o *OLTP) Name() string { return o.Kind }

// Client prepares one statement for each table.
func (o *OLTP) Client(s drive.Session, _ int, rng *rand.Rand) (Client, error) {
	c := &pointSelect{session: s, rng: rng, size: o.TableSize}
	for t := 1; t <= o.Tables; t++ {
		st, err := s.Prepare(drive.Read, "SELECT c FROM sbtest"+strconv.Itoa(t)+" WHERE id=?")
		if err != nil {
			return nil, err
		}
		c.statements = append(c.statements, st)
	}
	return c, nil
}

type pointSelect struct {
	session    drive.Session
	rng        *rand.Rand
	size       int
	statements []*drive.Stmt
	args       [1]drive.Arg
}

func (c *pointSelect) Transaction() error {
	c.args[0] = drive.Int(1 + c.rng.Int64N(int64(c.size)))
	_, err := c.session.Do(c.statements[c.rng.IntN(len(c.statements))], c.args[:]...)
	return err
}
