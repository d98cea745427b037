package ontime

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// The lower bound of question 2, which hides all carriers of small tables; the check asks without it.
const bound, noBound = " > 100000", " > 0"

// Check compares the answers of the server with those known from making the rows: question 1 by the number of rows alone,
// question 2 by making all rows once more.
func (o *ontime) Check(ctx context.Context, t drive.Target) ([]workload.Finding, error) {
	var stop drive.Stop
	defer context.AfterFunc(ctx, stop.Set)()
	s, err := t.Open(ctx, &stop)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	s.SetPatience(patience)
	sql := questions(s.Dialect())
	g := newGenerator(o.rows, o.p.Seed)
	one, err := ask(s, sql[0])
	if err != nil {
		return nil, err
	}
	two, err := ask(s, strings.Replace(sql[1], bound, noBound, 1))
	if err != nil {
		return nil, err
	}
	expected, err := g.answer2(ctx)
	if err != nil {
		return nil, err
	}
	// Carriers with the same rate and number come in any order.
	slices.Sort(expected)
	slices.Sort(two)
	return []workload.Finding{
		compare("flights per year (q1)", g.answer1(), one, fmt.Sprintf("--scale %v makes %s", o.p.Scale, digits.Counted(o.rows, "row"))),
		compare("delays per carrier (q2 without its lower bound)", expected, two, fmt.Sprintf("with --scale %v and --seed %d", o.p.Scale, o.p.Seed)),
	}, nil
}

// compare reports the first row that differs.
func compare(name string, want, got []string, made string) workload.Finding {
	f := workload.Finding{Name: name, OK: slices.Equal(want, got), Detail: digits.Counted(len(got), "row") + " of the answer, as made"}
	if f.OK {
		return f
	}
	at := func(list []string, i int) string {
		if i < len(list) {
			return "(" + list[i] + ")"
		}
		return "no row"
	}
	for i := range max(len(want), len(got)) {
		if w, g := at(want, i), at(got, i); w != g {
			f.Detail = fmt.Sprintf("the answer has %s should be %s: %s", g, w, made)
			break
		}
	}
	return f
}

// ask returns the rows of an answer, a text each.
func ask(s drive.Session, sql string) ([]string, error) {
	r, err := drive.Ask(s, sql)
	if err != nil {
		return nil, err
	}
	var out []string
	for row := range slices.Chunk(r.Values, max(r.Columns, 1)) {
		var parts []string
		for _, v := range row {
			if v.Text != nil {
				parts = append(parts, string(v.Text))
			} else {
				parts = append(parts, strconv.FormatInt(v.Int, 10))
			}
		}
		out = append(out, strings.Join(parts, ", "))
	}
	return out, nil
}

// answer1 is what question 1 has to give.
func (g *generator) answer1() []string {
	var out []string
	counts := g.perYear()
	for _, y := range years {
		if n := counts[y.number]; n > 0 {
			out = append(out, fmt.Sprintf("%d, %d", y.number, n))
		}
	}
	return out
}

// answer2 is what question 2 has to give without its lower bound.
func (g *generator) answer2(ctx context.Context) ([]string, error) {
	type sum struct{ first, last, count, delayed int64 }
	sums := make([]sum, len(carriers))
	left := func(state string) bool { return slices.Contains([]string{"AK", "HI", "PR", "VI"}, state) }
	for n := range g.chunks() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g.each(n, func(x *flight) {
			if x.dayOfWeek() > 5 || x.date.Year() >= 2010 || left(airports[x.origin].state) || left(airports[x.dest].state) {
				return
			}
			c, y := &sums[x.carrier], int64(x.date.Year())
			if c.count == 0 {
				c.first = y
			}
			c.last = y
			c.count++
			if x.reachedEnd && x.arrivalDelay > 30 {
				c.delayed++
			}
		})
	}
	// round(…, 2), half away from zero, in whole numbers
	rate := func(c sum) int64 { return (200*c.delayed + c.count) / (2 * c.count) }
	var order []int
	for i, c := range sums {
		if c.count > 0 && c.last > 1990 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		if d := rate(sums[b]) - rate(sums[a]); d != 0 {
			return int(d)
		}
		return int(sums[b].count - sums[a].count)
	})
	var out []string
	for _, i := range order {
		c := sums[i]
		out = append(out, fmt.Sprintf("%d, %d, %s, %d, %d, %d.%02d", c.first, c.last, carriers[i].code, c.count, c.delayed, rate(c)/100, rate(c)%100))
	}
	return out, nil
}
