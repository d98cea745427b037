// Package oltp has sysbench's oltp workloads: the same tables, statements and defaults, so that results compare and tables
// made by either serve both. Source: oltp_common.lua of sysbench 1.0.20.
package oltp

import (
	"math/rand/v2"
	"strconv"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

type oltp struct {
	name string
	p    workload.Params
}

// New makes one of them by sysbench's name without "oltp_".
func New(name string, p workload.Params) (workload.Workload, error) { return &oltp{name, p}, nil }

func (o *oltp) Name() string { return o.name }

// Client prepares one statement for each table.
func (o *oltp) Client(s drive.Session, _ int, rng *rand.Rand) (workload.Client, error) {
	c := &pointSelect{session: s, rng: rng, size: o.p.TableSize}
	for t := 1; t <= o.p.Tables; t++ {
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
