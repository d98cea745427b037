package dump

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// gather returns what takes a table's rows, and what notes the places in its JSON documents whose types have to be asked for.
func (w *worker) gather(t *table) (wire.RowSink, func()) {
	if !w.job.snap.Server.TypesJSON() {
		return w.sink, func() {}
	}
	p := chunk.NewPlaces(t.Table, w.sink)
	if p == nil {
		return w.sink, func() {}
	}
	return p, func() {
		list, whole := p.List()
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.places == nil {
			t.places = map[chunk.Place]bool{}
		}
		for _, place := range list {
			t.places[place] = true
		}
		t.unseen = t.unseen || !whole
	}
}

// typesBytes is how much of what types takes goes into one chunk.
const typesBytes = 4 << 20

// types asks for the types in a table's JSON documents that their text does not show, and keeps them.
func (w *worker) types(ctx context.Context, t *table) error {
	t.typed = nil
	places := slices.SortedFunc(maps.Keys(t.places), func(a, b chunk.Place) int { return strings.Compare(a.Column+"\x00"+a.Path, b.Column+"\x00"+b.Path) })
	if t.unseen {
		w.job.note(fmt.Sprintf("JSON documents of %s have so many paths that not all were examined: a DECIMAL, a DATE or bytes at others are restored as what their text shows.", t.info.TableName))
	}
	if len(places) == 0 {
		return nil
	}
	typed, counts, err := chunk.TypedPlaces(ctx, w.st, t.Table, places, "backup")
	if err != nil && mysql.ErrorNumber(err) != 0 && !w.mayLose(err) {
		w.job.note(fmt.Sprintf("Types in the JSON documents of %s could not be determined (%v): a DECIMAL, a DATE or bytes are restored as what their text shows.", t.info.TableName, err))
		return nil
	}
	if err != nil || len(typed) == 0 {
		return err
	}
	if !t.key.Whole() || t.key.Cuts == 0 {
		n := int64(0)
		for _, c := range counts {
			n += c
		}
		w.job.note(fmt.Sprintf("JSON documents of %s hold %s of a type that is not visible in their text (DECIMAL, DATE, bytes), and the table has no key to find their rows by: they are restored as what their text shows.", t.info.TableName, digits.Counted(n, "value")))
		return nil
	}
	return w.keepTypes(ctx, t, typed)
}

// keepTypes puts them into the repository.
func (w *worker) keepTypes(ctx context.Context, t *table, places []chunk.Place) error {
	var buf []byte
	var rows chunk.Rows
	found := map[string]int64{}
	flush := func() error {
		if len(buf) == 0 {
			return nil
		}
		kept, err := w.sink.keeper.Keep(ctx, t.Schema, t.Name, buf)
		if err != nil {
			return err
		}
		t.typed = append(t.typed, repo.Chunk{Rows: rows.Count, Bytes: rows.Bytes, Sum: rows.Sum.String(), Hash: kept.Hash, Stored: kept.Stored})
		buf, rows = buf[:0], chunk.Rows{}
		return nil
	}
	err := chunk.ReadTyped(ctx, w.st, t.Table, t.key, places, "backup", func(v chunk.Typed) (err error) {
		found[v.Type]++
		begin := len(buf)
		if buf, err = v.AppendRow(buf); err != nil {
			return err
		}
		if err := rows.Piece(buf[begin:], true); err != nil || len(buf) < typesBytes {
			return err
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return err
	}
	w.job.mu.Lock()
	defer w.job.mu.Unlock()
	if w.job.types == nil {
		w.job.types = map[string]int64{}
	}
	for name, n := range found {
		w.job.types[name] += n
	}
	return nil
}

// noteTypes says how many there are.
func (j *job) noteTypes() {
	if len(j.types) == 0 {
		return
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(j.types)) {
		words = append(words, fmt.Sprintf("%s %d", name, j.types[name]))
	}
	j.notes = append(j.notes, "JSON documents hold values whose types are not visible in their text ("+strings.Join(words, ", ")+"): the types are in the backup, too.")
}
