package oltp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/measure/workload/draw"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// action is one kind of statement.
type action uint8

const (
	pointSelect action = iota
	simpleRange
	sumRange
	orderRange
	distinctRange
	indexUpdate
	nonIndexUpdate
	deleteRow
	insertRow
	deleteInsert // deleteRow and insertRow of the same id
	newRow       // always as text, as sysbench sends it
	randomPoints
	randomRanges
)

// texts are the statements up to deleteInsert; %d is the table's number.
var texts = [...]struct {
	kind drive.Kind
	sql  string
}{
	pointSelect:    {drive.Read, "SELECT c FROM sbtest%d WHERE id=?"},
	simpleRange:    {drive.Read, "SELECT c FROM sbtest%d WHERE id BETWEEN ? AND ?"},
	sumRange:       {drive.Read, "SELECT SUM(k) FROM sbtest%d WHERE id BETWEEN ? AND ?"},
	orderRange:     {drive.Read, "SELECT c FROM sbtest%d WHERE id BETWEEN ? AND ? ORDER BY c"},
	distinctRange:  {drive.Read, "SELECT DISTINCT c FROM sbtest%d WHERE id BETWEEN ? AND ? ORDER BY c"},
	indexUpdate:    {drive.Write, "UPDATE sbtest%d SET k=k+1 WHERE id=?"},
	nonIndexUpdate: {drive.Write, "UPDATE sbtest%d SET c=? WHERE id=?"},
	deleteRow:      {drive.Write, "DELETE FROM sbtest%d WHERE id=?"},
	insertRow:      {drive.Write, "INSERT INTO sbtest%d (id, k, c, pad) VALUES (?, ?, ?, ?)"},
}

// step is a group of statements on one table, which is drawn once for the group.
type step struct {
	action action
	repeat int
}

// plan is what a transaction of a workload does.
type plan struct {
	transaction bool // BEGIN and COMMIT around it
	writes      bool
	steps       func(p workload.Params) []step // nil: bulk_insert
}

func reads(p workload.Params) []step {
	steps := []step{{pointSelect, p.PointSelects}}
	if p.NoRangeSelects {
		return steps
	}
	return append(steps, step{simpleRange, p.SimpleRanges}, step{sumRange, p.SumRanges}, step{orderRange, p.OrderRanges}, step{distinctRange, p.DistinctRanges})
}

func writes(p workload.Params) []step {
	return []step{{indexUpdate, p.IndexUpdates}, {nonIndexUpdate, p.NonIndexUpdates}, {deleteInsert, p.DeleteInserts}}
}

// plans are the workloads by name.
func plans() map[string]plan {
	repeat := func(a action, n func(workload.Params) int) func(workload.Params) []step {
		return func(p workload.Params) []step { return []step{{a, n(p)}} }
	}
	one := func(workload.Params) int { return 1 }
	return map[string]plan{
		"read_only":            {transaction: true, steps: reads},
		"read_write":           {transaction: true, writes: true, steps: func(p workload.Params) []step { return append(reads(p), writes(p)...) }},
		"write_only":           {transaction: true, writes: true, steps: writes},
		"point_select":         {steps: repeat(pointSelect, one)},
		"update_index":         {writes: true, steps: repeat(indexUpdate, func(p workload.Params) int { return p.IndexUpdates })},
		"update_non_index":     {writes: true, steps: repeat(nonIndexUpdate, func(p workload.Params) int { return p.NonIndexUpdates })},
		"insert":               {writes: true, steps: repeat(newRow, one)},
		"delete":               {writes: true, steps: repeat(deleteRow, one)},
		"select_random_points": {steps: repeat(randomPoints, one)},
		"select_random_ranges": {steps: repeat(randomRanges, one)},
		"bulk_insert":          {writes: true},
	}
}

// statement is one of a session: prepared, or the parts of its text between the parameters.
type statement struct {
	prepared *drive.Stmt
	kind     drive.Kind
	parts    []string
}

// client is one session. Its transactions allocate nothing.
type client struct {
	session    drive.Session
	rng        *rand.Rand
	ids        draw.Range // of rows
	segment    draw.Range // select_random_*: of values of k
	tables     int
	rangeSize  int64
	delta      int64
	unique     *sequence
	giveID     bool // new rows get their id from the client
	unprepared bool

	begin, commit *statement // nil: without a transaction
	steps         []step
	statements    [randomRanges + 1][]statement // by action and table
	args          []drive.Arg
	c             [cSize]byte
	pad           [padSize]byte
	text          []byte

	hits, misses  int64 // statements by id that found their row, and that did not
	found, missed *atomic.Int64
}

// prepare has the server prepare all statements that the plan needs.
func (c *client) prepare(p plan, params workload.Params) (err error) {
	c.steps = p.steps(params)
	if p.transaction && !params.SkipTransactions {
		// sysbench says BEGIN, which means the same, but opens a block under MariaDB's sql_mode ORACLE.
		if c.begin, err = c.control("START TRANSACTION"); err != nil {
			return err
		}
		if c.commit, err = c.control("COMMIT"); err != nil {
			return err
		}
	}
	c.args = make([]drive.Arg, max(4, params.RandomPoints, 2*params.RandomRanges))
	for _, s := range c.steps {
		if s.repeat == 0 {
			continue
		}
		switch s.action {
		case deleteInsert:
			if err = c.forEachTable(deleteRow); err == nil {
				err = c.forEachTable(insertRow)
			}
		case newRow:
		case randomPoints:
			c.args = c.args[:params.RandomPoints]
			err = c.only(randomPoints, "SELECT id, k, c, pad FROM sbtest1 WHERE k IN ("+strings.Repeat("?, ", params.RandomPoints-1)+"?)")
		case randomRanges:
			c.args = c.args[:2*params.RandomRanges]
			err = c.only(randomRanges, "SELECT count(k) FROM sbtest1 WHERE "+strings.Repeat("k BETWEEN ? AND ? OR ", params.RandomRanges-1)+"k BETWEEN ? AND ?")
		default:
			err = c.forEachTable(s.action)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *client) forEachTable(a action) error {
	for t := 1; t <= c.tables; t++ {
		st, err := c.statement(texts[a].kind, fmt.Sprintf(texts[a].sql, t))
		if err != nil {
			return err
		}
		c.statements[a] = append(c.statements[a], st)
	}
	return nil
}

func (c *client) only(a action, sql string) error {
	st, err := c.statement(drive.Read, sql)
	c.statements[a] = []statement{st}
	return err
}

func (c *client) statement(kind drive.Kind, sql string) (st statement, err error) {
	st.kind, st.parts = kind, strings.Split(sql, "?")
	if !c.unprepared {
		st.prepared, err = c.session.Prepare(kind, placeholders(c.session.Dialect(), st.parts))
	}
	return st, err
}

// placeholders joins the parts of a statement by the dialect's parameters.
func placeholders(d drive.Dialect, parts []string) string {
	if d != drive.Postgres {
		return strings.Join(parts, "?")
	}
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteString("$" + strconv.Itoa(i))
		}
		b.WriteString(p)
	}
	return b.String()
}

// control makes BEGIN or COMMIT. MySQL does not prepare a BEGIN: it goes as text then, as sysbench does it.
func (c *client) control(sql string) (*statement, error) {
	st, err := c.statement(drive.Other, sql)
	var server *drive.ServerError
	if errors.As(err, &server) && server.Code == errno.NotPreparable {
		return &statement{kind: drive.Other, parts: []string{sql}}, nil
	}
	return &st, err
}

// Transaction runs one event of sysbench.
func (c *client) Transaction() error {
	if c.begin == nil {
		return c.work()
	}
	err := c.run(c.begin, 0)
	if err == nil {
		if err = c.work(); err == nil {
			err = c.run(c.commit, 0)
		}
	}
	if err == nil {
		return nil
	}
	var server *drive.ServerError
	if errors.As(err, &server) && !server.Gone() {
		// The error counts, unless the session is lost on top of it.
		if _, rollback := c.session.Exec(drive.Other, "ROLLBACK"); rollback != nil && !errors.As(rollback, &server) {
			return rollback
		}
	}
	return err
}

func (c *client) work() error {
	for i := range c.steps {
		s := &c.steps[i]
		table := 0
		if c.tables > 1 {
			table = c.rng.IntN(c.tables)
		}
		for range s.repeat {
			if err := c.do(s.action, table); err != nil {
				return err
			}
		}
	}
	return nil
}

// do draws the values of one statement and runs it.
func (c *client) do(a action, table int) error {
	switch a {
	case pointSelect, indexUpdate, deleteRow:
		c.args[0] = drive.Int(c.ids.Draw(c.rng))
		r, err := c.result(&c.statements[a][table], 1)
		if err == nil {
			c.note(r.Rows + r.Affected)
		}
		return err
	case simpleRange, sumRange, orderRange, distinctRange:
		id := c.ids.Draw(c.rng)
		c.args[0], c.args[1] = drive.Int(id), drive.Int(id+c.rangeSize-1)
		return c.run(&c.statements[a][table], 2)
	case nonIndexUpdate:
		fillGroups(c.rng, c.c[:])
		c.args[0], c.args[1] = drive.Text(c.c[:]), drive.Int(c.ids.Draw(c.rng))
		return c.run(&c.statements[a][table], 2)
	case deleteInsert:
		id, k := c.ids.Draw(c.rng), c.ids.Draw(c.rng)
		c.args[0] = drive.Int(id)
		if err := c.run(&c.statements[deleteRow][table], 1); err != nil {
			return err
		}
		c.row(id, k)
		return c.run(&c.statements[insertRow][table], 4)
	case newRow:
		return c.newRow(table)
	case randomPoints:
		for i := range c.args {
			c.args[i] = drive.Int(c.segment.Draw(c.rng))
		}
		return c.run(&c.statements[a][0], len(c.args))
	case randomRanges:
		for i := 0; i < len(c.args); i += 2 {
			k := c.segment.Draw(c.rng)
			c.args[i], c.args[i+1] = drive.Int(k), drive.Int(k+c.delta)
		}
		return c.run(&c.statements[a][0], len(c.args))
	}
	return fmt.Errorf("no action %d", a)
}

// row puts the values of a row into the arguments.
func (c *client) row(id, k int64) {
	fillGroups(c.rng, c.c[:])
	fillGroups(c.rng, c.pad[:])
	c.args[0], c.args[1], c.args[2], c.args[3] = drive.Int(id), drive.Int(k), drive.Text(c.c[:]), drive.Text(c.pad[:])
}

// newRow inserts a row as text: id 0 lets MySQL generate the next one.
func (c *client) newRow(table int) error {
	c.row(0, c.ids.Draw(c.rng))
	b := strconv.AppendInt(append(c.text[:0], "INSERT INTO "+tablePrefix...), int64(table)+1, 10)
	values := c.args[:4]
	switch {
	case c.giveID:
		c.args[0] = drive.Int(c.unique.take())
		b = append(b, " (id, k, c, pad) VALUES ("...)
	case c.session.Dialect() == drive.Postgres:
		values = values[1:]
		b = append(b, " (k, c, pad) VALUES ("...)
	default:
		b = append(b, " (id, k, c, pad) VALUES ("...)
	}
	for i := range values {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendArg(b, &values[i])
	}
	c.text = append(b, ')')
	_, err := c.exec(drive.Write)
	return err
}

// appendArg writes a value as SQL. Texts are digits and dashes: there is nothing to escape.
func appendArg(b []byte, a *drive.Arg) []byte {
	if a.Text == nil {
		return strconv.AppendInt(b, a.Int, 10)
	}
	return append(append(append(b, '\''), a.Text...), '\'')
}

// run runs a statement with the first n arguments.
func (c *client) run(st *statement, n int) error {
	_, err := c.result(st, n)
	return err
}

// result is run with what came of it.
func (c *client) result(st *statement, n int) (drive.Result, error) {
	if st.prepared != nil {
		return c.session.Do(st.prepared, c.args[:n]...)
	}
	b := append(c.text[:0], st.parts[0]...)
	for i := range n {
		b = append(appendArg(b, &c.args[i]), st.parts[i+1]...)
	}
	c.text = b
	return c.exec(st.kind)
}

// exec sends the text. The session has sent all of it when Exec returns, so the string may share the buffer's memory.
func (c *client) exec(kind drive.Kind) (drive.Result, error) {
	return c.session.Exec(kind, unsafe.String(unsafe.SliceData(c.text), len(c.text)))
}
