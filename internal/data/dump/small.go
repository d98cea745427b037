package dump

import (
	"context"
	"errors"
	"strconv"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/mysql"
)

// tables begins several small tables. Where there are 10,000 schemas of 65 mostly empty tables, all the time goes into asking:
// so their definitions are asked for at once, and which of them have rows at all.
func (w *worker) tables(ctx context.Context, infos []mysql.TableInfo) error {
	names := make([]mysql.TableName, len(infos))
	for i, info := range infos {
		names[i] = info.TableName
		w.job.snap.Reading(info.TableName)
	}
	creates, err := w.st.CreateTables(ctx, names)
	if err != nil && w.st.Broken() != nil {
		return w.refused(infos[0], err)
	}
	if err != nil { // which of them it is, and what it means, shows when they are asked for one by one
		return w.oneByOne(infos, func(i int) error { return w.table(ctx, infos[i]) })
	}
	list := make([]*table, len(infos))
	for i, info := range infos {
		if list[i], err = w.defined(info, creates[i]); err != nil {
			return err
		}
	}
	empty, err := w.empty(ctx, list)
	if err != nil {
		return w.refused(infos[0], err)
	}
	return w.oneByOne(infos, func(i int) error {
		if empty[i] {
			return w.finish(list[i])
		}
		return w.rows(ctx, list[i])
	})
}

// oneByOne does something with each table. When the session is lost on the way, others get those that are left.
func (w *worker) oneByOne(infos []mysql.TableInfo, do func(i int) error) error {
	for i := range infos {
		err := do(i)
		if errors.Is(err, errLost) {
			w.job.queue.back(infos[i+1:])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// empty says which tables have no rows. It asks only for those of which the server believes so.
func (w *worker) empty(ctx context.Context, list []*table) ([]bool, error) {
	empty := make([]bool, len(list))
	var ask []chunk.Source
	var places []int
	for i, t := range list {
		if t.info.Rows == 0 && !w.job.NoRows && len(chunk.Columns(t.Table)) > 0 {
			ask, places = append(ask, chunk.Source{Table: t.Table, Key: t.key}), append(places, i)
		}
	}
	if len(ask) == 0 {
		return empty, nil
	}
	full := make([]bool, len(ask))
	err := w.st.Query(ctx, chunk.NotEmpty(ask, "backup"), func(row [][]byte) error {
		i, err := strconv.Atoi(string(row[0]))
		if err == nil && i >= 0 && i < len(full) {
			full[i] = true
			return nil
		}
		return errors.Join(errShape, err)
	})
	if err != nil {
		if w.st.Broken() != nil {
			return nil, err
		}
		return empty, nil // somebody alters one of them, or worse: it shows when it is read
	}
	for j, i := range places {
		empty[i] = !full[j]
	}
	return empty, nil
}

// errShape says that an answer is not one to what was asked.
var errShape = errors.New("the server answered something else")
