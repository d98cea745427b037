// Package script runs a workload that the user wrote: a file of YAML with transactions, their weights, and what is drawn
// for the placeholders of their statements. docs/bench-own.md describes the format.
package script

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

type script struct {
	*file
	ends []float64 // shares of the transactions, by weight

	mu       sync.Mutex
	counters map[int][]int64 // of each session's sequences, which go on after a reconnect
}

// New reads Params.File. Errors name the line.
func New(_ string, p workload.Params) (workload.Workload, error) {
	if p.File == "" {
		return nil, fmt.Errorf("%w: script: name the file with --file", workload.ErrUsage)
	}
	f, err := read(p.File, p.Dialect, !p.Unprepared)
	if err != nil {
		return nil, err
	}
	return newScript(f), nil
}

func newScript(f *file) *script {
	w := &script{file: f, counters: map[int][]int64{}}
	var sum float64
	for _, t := range f.transactions {
		sum += t.weight
		w.ends = append(w.ends, sum)
	}
	for i := range w.ends {
		w.ends[i] /= sum
	}
	return w
}

func (w *script) Name() string { return "script" }

// HasSetup reports whether there is anything to prepare.
func (w *script) HasSetup() bool { return len(w.setup) > 0 }

// Counts says that setup and teardown are counted by statements.
func (w *script) Counts(cleanup bool) string {
	if cleanup && len(w.teardown) == 0 {
		return ""
	}
	return "statements run"
}

// KindNames are the names of the transactions.
func (w *script) KindNames() []string {
	var out []string
	for _, t := range w.transactions {
		out = append(out, t.name)
	}
	return out
}

// Writes reports whether any statement of a transaction may do more than read.
func (w *script) Writes() bool {
	for _, t := range w.transactions {
		for _, st := range t.statements {
			if st.reads != nil {
				return true
			}
		}
	}
	return false
}

// readOnly makes a session refuse to write: the text of a statement alone does not show what the functions do that it
// calls.
func readOnly(s drive.Session) error {
	sql := "SET SESSION TRANSACTION READ ONLY"
	if s.Dialect() == drive.Postgres {
		sql = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"
	}
	_, err := s.Exec(drive.Other, sql)
	return err
}

// Client prepares all statements.
func (w *script) Client(s drive.Session, id int, rng *rand.Rand) (workload.Client, error) {
	c := &client{script: w, session: s, next: -1}
	c.source = source{rng: rng, session: id, row: -1, counters: w.countersOf(id)}
	c.drawn = make([]bool, len(w.values))
	c.values = make([]value, len(w.values)+w.mostSaves())
	if !w.Writes() {
		if err := readOnly(s); err != nil {
			return nil, err
		}
	}
	for _, t := range w.transactions {
		var list []*drive.Stmt
		for _, st := range t.statements {
			p, err := w.prepare(s, st)
			if err != nil {
				return nil, err
			}
			list = append(list, p)
		}
		c.statements = append(c.statements, list)
	}
	return c, nil
}

func (w *script) mostSaves() (n int) {
	for _, t := range w.transactions {
		n = max(n, t.saves)
	}
	return n
}

// countersOf returns the counters of a session, the same to each of its clients.
func (w *script) countersOf(id int) []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.counters[id] == nil {
		w.counters[id] = make([]int64, w.sequences)
	}
	return w.counters[id]
}

// prepare has the server prepare a statement; nil for those that travel as text. A statement whose result is kept is
// always prepared: only then does the driver read values.
func (w *script) prepare(s drive.Session, st statement) (*drive.Stmt, error) {
	if !st.prepared && len(st.saves) == 0 {
		return nil, nil
	}
	p, err := s.Prepare(st.kind, st.parameters(s.Dialect()))
	if err != nil {
		if told := w.told(st, err); told != err {
			return nil, told
		}
		return nil, w.at(st, err)
	}
	p.Keep = len(st.saves) > 0
	return p, nil
}

// at adds the place in the file to an error.
func (w *script) at(st statement, err error) error {
	return fmt.Errorf("%s:%d: %w", w.path, st.line, err)
}

type client struct {
	*script
	session    drive.Session
	source     source
	statements [][]*drive.Stmt
	values     []value // by number: drawn, then saved
	drawn      []bool  // which values are drawn in this transaction
	args       []drive.Arg
	literals   []value
	text       []byte
	next, last int // transactions; next is -1 until it is chosen
}

func (c *client) Kind() int { return c.last }

// Next chooses the next transaction and thinks before it.
func (c *client) Next(last time.Duration) (due time.Duration, ok bool) {
	c.next = pick(c.ends, c.source.rng.Float64())
	t := &c.transactions[c.next]
	pause := t.think[0]
	if more := t.think[1] - t.think[0]; more > 0 {
		pause += time.Duration(c.source.rng.Int64N(int64(more) + 1))
	}
	return last + pause, true
}

func (c *client) Transaction() error {
	if c.next < 0 {
		c.next = pick(c.ends, c.source.rng.Float64())
	}
	c.last, c.next = c.next, -1
	clear(c.drawn)
	for i := len(c.script.values); i < len(c.values); i++ {
		c.values[i] = value{kind: isNull}
	}
	t := &c.transactions[c.last]
	if t.begin {
		if _, err := c.session.Exec(drive.Other, "START TRANSACTION"); err != nil {
			return err
		}
	}
	for i := range t.statements {
		if err := c.run(&t.statements[i], c.statements[c.last][i]); err != nil {
			return c.undo(t, err)
		}
	}
	if t.begin {
		_, err := c.session.Exec(drive.Other, "COMMIT")
		return err
	}
	return nil
}

// undo rolls back after the server refused a statement.
func (c *client) undo(t *transaction, err error) error {
	var server *drive.ServerError
	if t.begin && errors.As(err, &server) && !server.Gone() {
		if _, again := c.session.Exec(drive.Other, "ROLLBACK"); again != nil {
			return again
		}
	}
	return err
}

// run runs one statement as often as it must be repeated.
func (c *client) run(st *statement, p *drive.Stmt) error {
	for n := range st.repeat {
		if n > 0 {
			for _, v := range st.values {
				if v < len(c.drawn) {
					c.drawn[v] = false
				}
			}
		}
		r, err := c.do(st, p)
		if err != nil {
			return c.told(*st, err)
		}
		for _, s := range st.saves {
			c.values[len(c.script.values)+s.number] = saved(r, s.column)
		}
	}
	return nil
}

// told adds the place in the file to errors that will not go away.
func (w *script) told(st statement, err error) error {
	var server *drive.ServerError
	switch {
	case !errors.As(err, &server):
		return err
	case server.Senseless():
		return w.at(st, err)
	case server.Code == 1792 || server.State == "25006":
		if !w.Writes() { // it is our own doing, and not that of a server that became a replica
			return w.at(st, fmt.Errorf("the statement's text shows no write, but it does write, which is not allowed: %s", server.Message))
		}
	}
	return err
}

// saved copies a value of the first row; NULL if there is none.
func saved(r drive.Result, column int) value {
	if r.Rows == 0 || column >= r.Columns || r.Values[column].Null {
		return value{kind: isNull}
	}
	v := r.Values[column]
	if v.Text == nil {
		return value{num: v.Int}
	}
	return value{text: v.Text, kind: isText}
}

func (c *client) do(st *statement, p *drive.Stmt) (drive.Result, error) {
	if p == nil {
		c.literals = c.literals[:0]
		for _, v := range st.values {
			c.literals = append(c.literals, c.value(v))
		}
		c.text = st.appendText(c.text[:0], c.literals, c.session.Dialect())
		return c.session.Exec(st.kind, string(c.text))
	}
	c.args = c.args[:0]
	for _, v := range st.values {
		c.args = append(c.args, c.value(v).arg())
	}
	return c.session.Do(p, c.args...)
}

// value returns the value of this transaction, and draws it if it was not drawn yet.
func (c *client) value(n int) value {
	if n < len(c.drawn) && !c.drawn[n] {
		c.values[n] = c.script.values[n].draw(&c.source)
		c.drawn[n] = true
	}
	return c.values[n]
}
