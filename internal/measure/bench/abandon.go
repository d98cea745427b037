package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// abandonPatience is how long a server is asked to end what it still does for a run that is over.
const abandonPatience = 3 * time.Second

// abandon has the servers end what they still do for transactions that were given up: they notice that no client waits for the answer only
// when they send it, and a heavy statement would go on for hours. A server that does not answer is left alone.
func (r *run) abandon(ctx context.Context, workers []*worker) {
	given := map[int][]int64{}
	for _, w := range workers {
		if w.unfinished != unknown && w.number != 0 {
			given[w.at] = append(given[w.at], w.number)
		}
	}
	for at, numbers := range given {
		_ = r.kill(ctx, r.targets[at], numbers) // what is said about the run stays the same
	}
}

// kill ends those sessions that still run a statement. An address may lead to another server by now, so they have to be of this account, too.
func (r *run) kill(ctx context.Context, t drive.Target, numbers []int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonPatience)
	defer cancel()
	var stop drive.Stop
	defer context.AfterFunc(ctx, stop.Set)()
	s, err := t.Open(ctx, &stop)
	if err != nil {
		return err
	}
	defer s.Close()
	list := make([]string, len(numbers))
	for i, n := range numbers {
		list[i] = strconv.FormatInt(n, 10)
	}
	sql := "SELECT /* risso: what still runs? */ ID FROM information_schema.PROCESSLIST WHERE ID IN (%s) AND COMMAND <> 'Sleep' AND USER = SUBSTRING_INDEX(USER(), '@', 1)"
	if s.Dialect() == drive.Postgres {
		sql = "SELECT /* risso: what still runs? */ pid FROM pg_stat_activity WHERE pid IN (%s) AND state = 'active' AND usename = session_user"
	}
	rows, err := workload.Ask(s, fmt.Sprintf(sql, strings.Join(list, ", ")))
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := drive.Kill(s, row[0].Int); err != nil {
			return err
		}
	}
	return nil
}
