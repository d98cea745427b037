package dump

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// tables reads several tables that the server believes to be empty. If there are 10,000 schemas of 65 such tables, all the
// time goes into asking: so their definitions are asked for together, and which of them have rows after all. Those, and what the
// server refuses, are read one by one, which shows what the server means.
func (w *worker) tables(ctx context.Context, infos []define.TableInfo) error {
	names := make([]mysql.TableName, len(infos))
	for i, info := range infos {
		names[i] = info.TableName
	}
	creates, err := define.CreateTables(ctx, w.st, names)
	if err != nil {
		return w.single(infos, err)
	}
	list := make([]*table, len(infos))
	for i, info := range infos {
		if list[i], err = w.defined(info, creates[i]); err != nil {
			return err
		}
	}
	full, err := w.full(ctx, list)
	if err != nil {
		return w.single(infos, err)
	}
	var back []define.TableInfo
	for i, t := range list {
		if full[i] {
			back = append(back, infos[i])
		} else if err := w.finish(t); err != nil {
			return err
		}
	}
	w.job.queue.back(back)
	return nil
}

// single puts tables back that the server refused, to be read one by one, or that a session has lost.
func (w *worker) single(infos []define.TableInfo, err error) error {
	if w.st.Broken() != nil && !w.mayLose(err) {
		return w.refused(infos[0], err)
	}
	w.job.queue.back(infos)
	if w.st.Broken() != nil {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return nil
}

// full says which tables have rows.
func (w *worker) full(ctx context.Context, list []*table) ([]bool, error) {
	full := make([]bool, len(list))
	var ask []chunk.Source
	var places []int
	for i, t := range list {
		if !w.definitionOnly(t) {
			ask, places = append(ask, chunk.Source{Table: t.Table, Key: t.key}), append(places, i)
		}
	}
	if len(ask) == 0 {
		return full, nil
	}
	return full, w.st.Query(ctx, chunk.NotEmpty(ask, "backup"), func(row [][]byte) error {
		i, err := strconv.Atoi(string(row[0]))
		if err != nil || i < 0 || i >= len(places) {
			return errors.Join(errShape, err)
		}
		full[places[i]] = true
		return nil
	})
}

// errShape says that an answer does not fit what was asked.
var errShape = errors.New("unexpected answer of the server")
