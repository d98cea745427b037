package drill

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// mostCounted is of how many tables a proof keeps the numbers of rows. Of more it keeps their sum.
const mostCounted = 10_000

// count counts the rows of every table of a physical backup, whose manifest knows none, before anything is rolled forward.
// The files of a backup hold the same rows each time: an earlier drill has to have counted as many.
func (r *run) count(ctx context.Context) error {
	if r.header.Kind != repo.Physical || r.SkipCheck {
		return nil
	}
	list, err := r.tables(ctx, false)
	if err != nil {
		return err
	}
	got := Counted{Each: map[string]int64{}, Different: []string{}}
	var mu sync.Mutex
	err = r.eachTable(ctx, "count rows", list, func(ctx context.Context, c *mysql.Conn, t tableName) error {
		n, err := countTable(ctx, c, t)
		if err != nil && (ctx.Err() != nil || mysql.Lost(err)) {
			return fmt.Errorf("%s: %w", t, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil && t.away > 0 {
			r.unreadable(t)
			return nil
		}
		if err != nil {
			if len(got.Different) < mostProblems {
				got.Different = append(got.Different, fmt.Sprintf("%s: %v", t, err))
			}
			return nil
		}
		got.Tables, got.Rows, got.Each[t.String()] = got.Tables+1, got.Rows+n, n
		return nil
	})
	if err != nil {
		return fmt.Errorf("count the rows: %w", err)
	}
	if err := r.compareCounts(ctx, &got); err != nil {
		return err
	}
	if len(got.Each) > mostCounted {
		got.Each = nil
	}
	if n := len(got.Different); n > 0 {
		slices.Sort(got.Different)
		r.proof.fail("the rows cannot be counted, or their number has changed: %s", strings.Join(got.Different[:min(n, 5)], "; "))
	}
	r.proof.Counted = &got
	r.checked("count rows")
	return nil
}

func countTable(ctx context.Context, c *mysql.Conn, t tableName) (int64, error) {
	text, err := c.Text(ctx, "SELECT /* risso: drill */ COUNT(*) FROM "+t.String())
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// compareCounts compares with the newest earlier drill of this backup that counted.
func (r *run) compareCounts(ctx context.Context, got *Counted) error {
	list, err := Proofs(ctx, r.Repo, r.header.ID)
	if err != nil {
		return err
	}
	for _, p := range slices.Backward(list) {
		if p.Doubt != "" || p.Counted == nil || len(p.Counted.Different) > 0 {
			continue
		}
		got.Since = &p.Began
		got.Different = append(got.Different, differentCounts(*p.Counted, *got)...)
		return nil
	}
	return nil
}

// differentCounts says in which tables there are not as many rows as there were; pure.
func differentCounts(was, is Counted) (list []string) {
	if len(was.Each) == 0 || len(is.Each) == 0 {
		if was.Tables != is.Tables || was.Rows != is.Rows {
			list = append(list, fmt.Sprintf("%s with %s, there were %d with %d", digits.Counted(is.Tables, "table"), digits.Counted(is.Rows, "row"), was.Tables, was.Rows))
		}
		return list
	}
	for name, n := range was.Each {
		switch now, ok := is.Each[name]; {
		case !ok:
			list = append(list, fmt.Sprintf("%s is missing, it had %s", name, digits.Counted(n, "row")))
		case now != n:
			list = append(list, fmt.Sprintf("%s has %s, it had %d", name, digits.Counted(now, "row"), n))
		}
	}
	for name, n := range is.Each {
		if _, ok := was.Each[name]; !ok {
			list = append(list, fmt.Sprintf("%s with %s was not there", name, digits.Counted(n, "row")))
		}
	}
	slices.Sort(list)
	return list[:min(len(list), mostProblems)]
}
