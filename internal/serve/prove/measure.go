package prove

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/measure/compare"
	"github.com/rissodb/risso/internal/measure/stats"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sqltext"
)

// A turn runs each class again until so much time has gone, or so many times; its first run of them counts only for the rows.
const (
	turnTime  = 60 * time.Millisecond
	turnRuns  = 50
	insertMax = 5000 // rows that the measured INSERT puts into a copy of the table
)

// job is something that is measured before and after: a class, or the INSERT of rows.
type job struct {
	id, fingerprint, database string
	samples                   []string
	run                       func(ctx context.Context) (seconds float64, err error) // what is measured instead of the samples; nil: those are
	before, after             []float64                                              // seconds of a call, turn by turn
	rows                      [2]float64
	plans                     [2]string // of a SELECT; "" not known
	failed                    error
}

// meter measures on the throw-away server.
type meter struct {
	open            func(context.Context) (*mysql.Conn, error)
	target          mysql.Target
	conn            *mysql.Conn
	patience        time.Duration // with a class in one turn
	statement, undo string
	tables          []mysql.TableName
	applied         bool
	took            time.Duration // of the statement, the first time
	jobs            []*job
	progress        func(string)
}

// turns runs all jobs in turns, before and after the statement.
func (m *meter) turns(ctx context.Context, order []bool) error {
	for i, after := range order {
		m.progress(fmt.Sprintf("turn %d of %d", i+1, len(order)))
		if err := m.set(ctx, after); err != nil {
			return err
		}
		for _, j := range m.jobs {
			if j.failed != nil {
				continue
			}
			seconds, rows, err := m.measure(ctx, j)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				j.failed = err
				if err := m.again(ctx, err); err != nil {
					return err
				}
			case after:
				j.after, j.rows[1] = append(j.after, seconds), rows
			default:
				j.before, j.rows[0] = append(j.before, seconds), rows
			}
		}
	}
	return nil
}

// again opens a new session where the old one is of no more use, and ends that, which would keep its locks.
func (m *meter) again(ctx context.Context, failed error) error {
	if mysql.ErrorNumber(failed) != 0 {
		return nil
	}
	old := m.conn.Server.ConnectionID
	m.conn.Close()
	c, err := m.open(ctx)
	if err != nil {
		return fmt.Errorf("the throw-away server: %w", errors.Join(failed, err))
	}
	m.conn = c
	return mysql.Kill(ctx, m.target, old)
}

// plan is how the server runs the statements of a SELECT's class: what it reads in which way and order, without estimates.
func (m *meter) plan(ctx context.Context, j *job) (string, error) {
	var b strings.Builder
	for _, s := range j.samples {
		if class := sqltext.ReadsOnly([]byte(s)); class != nil {
			return "", nil
		}
		rows, err := m.conn.Maps(ctx, "EXPLAIN FORMAT=TRADITIONAL "+s)
		if err != nil {
			return "", nil // a statement that cannot be explained is measured all the same
		}
		for _, r := range rows {
			for _, column := range []string{"id", "select_type", "table", "type", "key", "key_len", "ref", "Extra"} {
				b.WriteString(r[column] + "\t")
			}
			b.WriteString("\n")
		}
	}
	return b.String(), ctx.Err()
}

// set applies the statement, or takes it back, and lets the optimizer look at the tables anew.
func (m *meter) set(ctx context.Context, after bool) error {
	if m.applied == after {
		return nil
	}
	statement := m.undo
	if after {
		statement = m.statement
	}
	begun := time.Now()
	if err := m.conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	if m.applied = after; after && m.took == 0 {
		m.took = time.Since(begun)
	}
	return m.analyze(ctx)
}

func (m *meter) analyze(ctx context.Context) error {
	for _, t := range m.tables {
		if err := m.conn.Query(ctx, "ANALYZE TABLE "+t.String(), mysql.IgnoreRow); err != nil {
			return fmt.Errorf("analyze %s: %w", t, err)
		}
	}
	return nil
}

// measure runs a job until there is enough to measure, and returns seconds and rows read of one call.
func (m *meter) measure(ctx context.Context, j *job) (seconds, rows float64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.patience, fmt.Errorf("it took longer than %s", digits.Span(m.patience)))
	defer cancel()
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
	}()
	if j.database != "" {
		if err := m.conn.Exec(ctx, "USE "+mysql.Quote(j.database)); err != nil {
			return 0, 0, err
		}
	}
	if j.run != nil {
		seconds, err = j.run(ctx)
		return seconds, 0, err
	}
	once := func() error {
		for _, s := range j.samples {
			if err := m.statementOf(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
	per := float64(max(1, len(j.samples)))
	if at := index(m.applied); j.plans[at] == "" {
		if j.plans[at], err = m.plan(ctx, j); err != nil {
			return 0, 0, err
		}
	}
	was, err := m.handler(ctx)
	if err == nil {
		err = once()
	}
	if err != nil {
		return 0, 0, err
	}
	is, err := m.handler(ctx)
	if err != nil {
		return 0, 0, err
	}
	begun, n := time.Now(), 0
	for n == 0 || n < turnRuns && time.Since(begun) < turnTime {
		if err := once(); err != nil {
			return 0, 0, err
		}
		n++
	}
	return time.Since(begun).Seconds() / float64(n) / per, (is - was) / per, nil
}

// statementOf runs a recorded statement; what it changes is rolled back.
func (m *meter) statementOf(ctx context.Context, sql string) error {
	if err := m.conn.Exec(ctx, "START TRANSACTION"); err != nil {
		return err
	}
	err := m.conn.QuietQuery(ctx, sql, mysql.IgnoreRow)
	if back := m.conn.Exec(ctx, "ROLLBACK"); err == nil {
		err = back
	}
	return err
}

// handler is how many rows this session has read, by any way.
func (m *meter) handler(ctx context.Context) (total float64, err error) {
	err = m.conn.Query(ctx, "SHOW SESSION STATUS LIKE 'Handler\\_read%'", func(row []sqldriver.Value) error {
		v, err := strconv.ParseFloat(mysql.Text(row[1]), 64)
		total += v
		return err
	})
	return total, err
}

// inserts is the job that puts rows of a table into a copy of it, with all its indexes.
func (m *meter) inserts(t *define.Table) *job {
	name := mysql.TableName{Schema: t.Schema, Name: t.Name}
	twin := mysql.TableName{Schema: t.Schema, Name: "risso_prove"}
	var columns []string
	for _, c := range t.Columns {
		if !c.Generated {
			columns = append(columns, mysql.Quote(c.Name))
		}
	}
	list := strings.Join(columns, ", ")
	return &job{id: "insert", fingerprint: "INSERT INTO " + name.String() + " of up to " + strconv.Itoa(insertMax) + " of its rows, into an empty copy", run: func(ctx context.Context) (seconds float64, err error) {
		for i, s := range []string{"DROP TABLE IF EXISTS " + twin.String(), "CREATE TABLE " + twin.String() + " LIKE " + name.String(),
			"INSERT INTO " + twin.String() + " (" + list + ") SELECT " + list + " FROM " + name.String() + " LIMIT " + strconv.Itoa(insertMax), "DROP TABLE " + twin.String()} {
			begun := time.Now()
			if err := m.conn.Exec(ctx, s); err != nil {
				return 0, err
			}
			if i == 2 {
				seconds = time.Since(begun).Seconds()
			}
		}
		return seconds, nil
	}}
}

func index(after bool) int {
	if after {
		return 1
	}
	return 0
}

// errUnmeasured is the reason when no class could be measured.
var errUnmeasured = fmt.Errorf("%w: no class of statements could be measured", ErrNothing)

// verdicts judges all jobs, and says as a whole what came of the statement.
func verdicts(p *advise.Proof, jobs []*job, seed uint64) error {
	better, fewer := false, false
	var failed []error
	for _, j := range jobs {
		if j.failed != nil {
			p.Notes = append(p.Notes, fmt.Sprintf("class %s was not measured: %v", j.id, j.failed))
			failed = append(failed, j.failed)
			continue
		}
		v := compare.Times("time of a call", j.before, j.after, seed)
		c := advise.ProvenClass{ID: j.id, Fingerprint: j.fingerprint, Samples: len(j.samples), RowsBefore: j.rows[0], RowsAfter: j.rows[1], Before: stats.Median(j.before), After: stats.Median(j.after), Outcome: v.Outcome, Verdict: v.Words}
		reads := fmt.Sprintf("reads %s rows by a call, %s before", digits.Count(c.RowsAfter), digits.Count(c.RowsBefore))
		switch {
		case j.id == "insert":
			if v.Outcome == compare.Slower {
				p.Worse = append(p.Worse, "INSERT: "+v.Words)
			}
			better = better || v.Outcome == compare.Faster
		case j.plans[0] != "" && j.plans[0] == j.plans[1]: // of many classes some seem to differ by chance
			c.Outcome, c.Verdict = compare.Unclear, "it runs by the same plan before and after"
		case v.Outcome == compare.Slower:
			p.Worse = append(p.Worse, "class "+j.id+": "+v.Words)
		case manyMore(j.rows[0], j.rows[1]):
			p.Worse = append(p.Worse, "class "+j.id+": "+reads)
		case v.Outcome == compare.Faster:
			better = true
		default:
			fewer = fewer || manyMore(j.rows[1], j.rows[0])
		}
		p.Classes = append(p.Classes, c)
	}
	if !slices.ContainsFunc(jobs, func(j *job) bool { return j.failed == nil && j.id != "insert" }) {
		return fmt.Errorf("%w: %w", errUnmeasured, failed[0])
	}
	onlyInsert := !slices.ContainsFunc(p.Worse, func(s string) bool { return !strings.HasPrefix(s, "INSERT: ") })
	switch {
	case better && len(p.Worse) == 0:
		p.Outcome, p.Words = "better", "what was measured got faster, and nothing slower"
	case better && onlyInsert:
		p.Outcome, p.Words = "better", "statements got faster; writes pay for it"
	case better:
		p.Outcome, p.Words = "mixed", "some statements got faster, others worse"
	case fewer && onlyInsert:
		p.Outcome, p.Words = "better", "statements read fewer rows; of their time no difference can be shown"
		if len(p.Worse) > 0 {
			p.Words += "; writes pay for it"
		}
	case fewer:
		p.Outcome, p.Words = "mixed", "some statements read fewer rows, others got worse"
	case len(p.Worse) > 0:
		p.Outcome, p.Words = "worse", "nothing got faster, and something slower"
	default:
		p.Outcome, p.Words = "no difference", "no difference can be shown"
	}
	return nil
}

// manyMore reports whether a call reads so many more rows than before that it is no chance.
func manyMore(before, after float64) bool { return after > 1.5*before+100 }
