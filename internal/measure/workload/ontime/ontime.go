// Package ontime measures two analytical questions on flights: data like the U.S. statistics on delays, generated at any
// scale, and the queries used in published comparisons of column stores and row stores.
package ontime

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// The questions. They are not to be changed: their times are compared with published ones.
const (
	question1 = "select yeard, count(*) from ontime group by yeard order by yeard"
	question2 = "select min(yeard), max(yeard), Carrier, count(*) as cnt, sum(if(ArrDelayMinutes>30, 1, 0)) as flights_delayed, " +
		"round(sum(if(ArrDelayMinutes>30, 1, 0))/count(*),2) as rate FROM ontime WHERE DayOfWeek not in (6,7) and " +
		"OriginState not in ('AK','HI','PR','VI') and DestState not in ('AK','HI','PR','VI') and flightdate < '2010-01-01' " +
		"GROUP by carrier HAVING cnt > 100000 and max(yeard) > 1990 ORDER by rate DESC, cnt desc LIMIT 1000"
)

// forPostgres is what PostgreSQL needs to answer the same: it has no if(), divides whole numbers to whole numbers, and
// knows no alias in HAVING.
var forPostgres = strings.NewReplacer(
	"sum(if(ArrDelayMinutes>30, 1, 0))/count(*)", "sum(case when ArrDelayMinutes>30 then 1 else 0 end)::numeric/count(*)",
	"if(ArrDelayMinutes>30, 1, 0)", "case when ArrDelayMinutes>30 then 1 else 0 end",
	"HAVING cnt >", "HAVING count(*) >",
)

const (
	table    = "ontime"
	maxScale = 10000
	patience = 6 * time.Hour // for one answer: at large scales a question takes minutes
)

type ontime struct {
	p    workload.Params
	rows int64
}

// New makes the workload.
func New(_ string, p workload.Params) (workload.Workload, error) {
	rows := math.Round(p.Scale * million)
	if !(rows >= 1 && p.Scale <= maxScale) {
		return nil, fmt.Errorf("%w: --scale %v: from 0.000001 (one row) to %d (ten thousand million rows)", workload.ErrUsage, p.Scale, maxScale)
	}
	return &ontime{p, int64(rows)}, nil
}

func (o *ontime) Name() string        { return "ontime" }
func (o *ontime) KindNames() []string { return []string{"q1", "q2"} }
func (o *ontime) Writes() bool        { return false }

// questions are both as the dialect writes them.
func questions(d drive.Dialect) [2]string {
	if d == drive.Postgres {
		return [2]string{question1, forPostgres.Replace(question2)}
	}
	return [2]string{question1, question2}
}

// Client asks the questions in turn.
func (o *ontime) Client(s drive.Session, _ int, _ *rand.Rand) (workload.Client, error) {
	s.SetPatience(patience)
	c := &client{session: s, sql: questions(s.Dialect())}
	if o.p.Unprepared {
		return c, nil
	}
	for i, sql := range c.sql {
		st, err := s.Prepare(drive.Read, sql)
		if err != nil {
			return nil, err
		}
		c.statements[i] = st
	}
	return c, nil
}

type client struct {
	session    drive.Session
	sql        [2]string
	statements [2]*drive.Stmt // nil: as text
	next, last int
}

func (c *client) Kind() int { return c.last }

func (c *client) Transaction() (err error) {
	c.last, c.next = c.next, 1-c.next
	if st := c.statements[c.last]; st != nil {
		_, err = c.session.Do(st)
	} else {
		_, err = c.session.Exec(drive.Read, c.sql[c.last])
	}
	return err
}
