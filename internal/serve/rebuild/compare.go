package rebuild

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/data/checksum"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// sampled is how many tables are compared at most if not all are.
const sampled = 20

// Compare compares a replica that was rebuilt with its source: all tables, or a sample of them. The tables are those that are not equal.
func (j *Job) Compare(ctx context.Context, source, replica *topology.Node, sample bool, progress func(checksum.Progress)) (res checksum.Result, list []checksum.Table, err error) {
	o := checksum.Options{Primary: j.TargetOf(source), Others: []mysql.Target{j.TargetOf(replica)}, Replicas: true, Threads: j.Threads, Patience: j.Repointer.Wait, Progress: progress}
	if sample {
		if o.Tables, err = sampleOf(ctx, o.Primary); err != nil {
			return res, nil, err
		}
	}
	o.Each = func(t checksum.Table) {
		if t.Verdict() != checksum.Equal {
			list = append(list, t)
		}
	}
	res, err = checksum.Compare(ctx, o)
	return res, list, err
}

// Compared is what came of it, in words.
func Compared(source, replica string, res checksum.Result) string {
	n := res.Counts
	verdict := fmt.Sprintf("%s of %s compared with %s, %s: %d equal", digits.Counted(res.Tables, "table"), replica, source, digits.Roughly(res.Rows, "row"), n.Equal)
	for _, w := range []struct {
		n    int64
		what string
	}{{n.Differ, "differ"}, {n.Open, "could not be told"}, {n.Filtered, "left out by its filters"}, {n.Definitions, "definitions differ"}, {n.Undefined, "definitions could not be compared"}} {
		if w.n > 0 {
			verdict += fmt.Sprintf(", %d %s", w.n, w.what)
		}
	}
	return verdict
}

// sampleOf are some tables of a server, evenly chosen by their names.
func sampleOf(ctx context.Context, source mysql.Target) (names []string, err error) {
	conn, err := mysql.Connect(ctx, source, nil)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	const all = "SELECT /* risso: which tables are there? */ TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema') ORDER BY 1, 2"
	var list []string
	err = conn.Query(ctx, all, func(row []sqldriver.Value) error {
		list = append(list, mysql.Quote(mysql.Text(row[0]))+"."+mysql.Quote(mysql.Text(row[1])))
		return nil
	})
	every := max(1, (len(list)+sampled-1)/sampled)
	for i := 0; i < len(list); i += every {
		names = append(names, list[i])
	}
	return names, err
}
