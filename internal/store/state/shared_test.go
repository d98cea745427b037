package state

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// lockstep agrees on changes by making each in all files at once.
type lockstep struct {
	mu     sync.Mutex
	number uint64
	files  []*Store
	before func(c Change) error // may say that a proposal is lost; nil: none is
	after  func(c Change) error // may say that it is not known whether it was made
}

func (l *lockstep) Propose(ctx context.Context, c Change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, err := json.Marshal(c) // as it travels
	if err == nil {
		c = Change{}
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return err
	}
	if l.before != nil {
		if err := l.before(c); err != nil {
			return err
		}
	}
	l.number++
	for _, s := range l.files {
		err = s.ApplyChange(ctx, l.number, c)
	}
	if err == nil && l.after != nil {
		err = l.after(c)
	}
	return err
}

func (l *lockstep) Level(context.Context) error { return nil }

// shareStores makes files that share a state.
func shareStores(t *testing.T, n int) ([]*Store, *lockstep) {
	t.Helper()
	l := &lockstep{}
	for i := range n {
		path := filepath.Join(t.TempDir(), "state.db")
		s, err := Open(t.Context(), path)
		if err == nil {
			err = errors.Join(s.BeginSharing(t.Context(), Identity{Cluster: "c", Node: fmt.Sprint("c", i+1)}), s.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		s = openStore(t, path)
		s.Share(l)
		l.files = append(l.files, s)
	}
	return l.files, l
}

// dump is all rows of the shared tables as text.
func dump(t *testing.T, s *Store) string {
	t.Helper()
	var out strings.Builder
	for _, table := range append(copied(), "sqlite_sequence") {
		rows, err := s.read.Query("SELECT * FROM " + table + " ORDER BY 1, 2")
		if err != nil {
			rows, err = s.read.Query("SELECT * FROM " + table + " ORDER BY 1")
		}
		if err != nil {
			t.Fatal(err)
		}
		columns, _ := rows.Columns()
		for rows.Next() {
			row, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range row {
				into[i] = &row[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			if name := fmt.Sprint(row[0]); table == "sqlite_sequence" && families[name] == "" {
				continue
			}
			fmt.Fprintf(&out, "%s %#v\n", table, row)
		}
		rows.Close()
	}
	return out.String()
}

// TestEveryTableChooses: a new table says whether controllers share it.
func TestEveryTableChooses(t *testing.T) {
	s := newStore(t)
	var tables, triggers []string
	err := s.each(t.Context(), "list tables", func(r *sql.Rows) error {
		var kind, name string
		err := r.Scan(&kind, &name)
		if kind == "trigger" {
			triggers = append(triggers, name)
		} else if !strings.HasPrefix(name, "sqlite_") {
			tables = append(tables, name)
		}
		return err
	}, `SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'trigger')`)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if _, ok := families[table]; !ok {
			t.Errorf("table %s: say in families whether controllers share it, and in DESIGN.md why", table)
		}
	}
	for table := range families {
		if !slices.Contains(tables, table) {
			t.Errorf("families has %s, which is no table", table)
		}
	}
	if len(triggers) > 0 {
		t.Errorf("triggers %v would run once where a change is tried and again wherever it is applied", triggers)
	}
}

// everything changes every shared table by the methods that do, in all their ways.
func everything(ctx context.Context, s *Store, n int) error {
	var errs []error
	do := func(err error) { errs = append(errs, err) }
	at := time.Unix(int64(1700000000+n), 0)
	name := fmt.Sprint("n", n)
	t, _, err := s.CreateToken(ctx, name, RoleChange)
	do(err)
	if n == 0 { // to hash a password takes its time
		_, err := s.AddUser(ctx, User{Name: "ann", Role: RoleAdmin}, "a long password of ann's")
		do(err)
		_, _, err = s.SignIn(ctx, "ann", "a long password of ann's", "127.0.0.1", "browser")
		do(err)
	}
	if n%3 == 0 {
		do(s.RevokeToken(ctx, t.ID))
	}
	_, err = s.AddUser(ctx, User{Name: "ann-" + name, Role: RoleChange}, "correct horse battery "+name)
	do(err)
	_, _, err = s.SignIn(ctx, "ann-"+name, "correct horse battery "+name, "127.0.0.1", "browser "+name)
	do(err)
	if n%3 == 0 {
		if n > 0 {
			do(s.RemoveUser(ctx, "ann-"+name))
		}
	}
	d, err := s.PutDocument(ctx, Document{Kind: "group", Key: name, Body: json.RawMessage(`{"a":"é\u0000"}`), By: "ann"})
	do(err)
	d.Body = json.RawMessage(`{}`)
	d, err = s.PutDocument(ctx, d)
	do(err)
	if n%3 == 1 {
		do(s.DropDocument(ctx, "group", name, d.Version))
	}
	id, err := s.AddSilence(ctx, SilenceRow{Begin: at, End: at.Add(time.Hour), Body: json.RawMessage(`{"why":"` + name + `"}`)})
	do(err)
	if n%2 == 0 {
		do(s.EndSilence(ctx, id, at))
	}
	do(s.AddAck(ctx, AckRow{Key: "k", At: at, By: name}))
	_, err = s.SetThreshold(ctx, ThresholdRow{About: fmt.Sprint("about", n%2), At: at, Who: name, Body: json.RawMessage(`{}`)})
	do(err)
	do(s.DecideAdvice(ctx, AdviceDecision{Kind: AdviceAccepted, Server: "db1", Finding: "x", Object: fmt.Sprint(n % 2), At: at}))
	do(s.SaveInstance(ctx, fleet.Instance{ID: fmt.Sprint("db", n%2), Name: "db", Kind: fleet.KindServer}, at))
	j, err := s.SaveJob(ctx, Job{Name: name, Kind: JobBackup, Instance: "db1"})
	do(err)
	do(s.SetNextDue(ctx, j.ID, at))
	run, err := s.BeginRun(ctx, Run{Job: j.ID, Kind: JobBackup, Began: at})
	do(err)
	do(s.NoteRun(ctx, RunProgress{Run: run, Stage: "read", Done: 1}, RunLine{at, "a"}, RunLine{at, "b"}))
	if n%2 == 0 {
		do(s.EndRun(ctx, Run{ID: run, Outcome: OutcomeOK}))
	}
	_, err = s.InterruptRuns(ctx)
	do(err)
	do(s.AddBackup(ctx, Backup{Place: "p", ID: fmt.Sprint(n % 4), Instance: "db1", Began: at, Bytes: 1 << 40}))
	do(s.KeepBackups(ctx, "p", []string{"0", "2", "3"}))
	_, err = s.AddDrill(ctx, Drill{Place: "p", Backup: "1", Began: at, Recovery: 1.25, Passed: true})
	do(err)
	do(s.SaveMirror(ctx, Mirror{Place: "p", Instance: "db1", First: at, Last: at}))
	_, _, err = s.AddBenchmark(ctx, Benchmark{Began: at, Ended: at, Throughput: 1 / 3.0, Workload: name}, []byte(`{"n":"`+name+`"}`))
	do(err)
	if n%4 == 0 {
		do(s.RemoveJob(ctx, j.ID))
	}
	return errors.Join(errs...)
}

// TestSharedAlike: whichever file a change is tried in, all are alike then, a copy of them, too; and what is local stays where it was written.
func TestSharedAlike(t *testing.T) {
	files, l := shareStores(t, 2)
	ctx := t.Context()
	again := false
	l.before = func(Change) error { // so that each is tried twice
		if again = !again; again {
			return ErrStale
		}
		return nil
	}
	for n := range 12 {
		if err := everything(ctx, files[n%2], n); err != nil {
			t.Fatalf("round %d: %v", n, err)
		}
	}
	if a, b := dump(t, files[0]), dump(t, files[1]); a != b || len(a) < 1000 {
		t.Fatalf("the files differ:\n%s\nand\n%s", a, b)
	}
	for table, family := range families {
		var rows int
		if err := files[1].read.QueryRow("SELECT count(*) FROM " + table).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		if family != "" && rows == 0 {
			t.Errorf("table %s has no rows: everything must change it", table)
		}
	}
	if _, err := files[0].AddEvents(ctx, fleet.Event{Text: "here"}); err != nil {
		t.Fatal(err)
	}
	if list, err := files[1].Events(ctx, EventQuery{}); err != nil || len(list) > 0 {
		t.Errorf("events of another controller: got %v, %v; want none", list, err)
	}
	third, _ := shareStores(t, 1)
	c, err := files[0].SharedCopy(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	before := dump(t, files[0])
	if err := everything(ctx, files[0], 100); err != nil { // the copy is of the moment at which it began
		t.Fatal(err)
	}
	if err := c.Write(ctx, &text); err != nil {
		t.Fatal(err)
	}
	c.Release()
	if err := third[0].RestoreShared(ctx, bytes.NewReader(text.Bytes()[:text.Len()/2])); err == nil {
		t.Error("half a copy was restored")
	}
	if err := third[0].RestoreShared(ctx, &text); err != nil {
		t.Fatal(err)
	}
	if got := dump(t, third[0]); got != before {
		t.Errorf("restored:\n%s\nwant\n%s", got, before)
	}
	i, shared, err := third[0].Identity(ctx)
	if err != nil || !shared || i.Applied == 0 || i.Applied > l.number {
		t.Errorf("restored: got %+v, %v, %v; want applied up to %d", i, shared, err, l.number)
	}
}

// TestSharedOnce: a change is made once, whatever its proposal met.
func TestSharedOnce(t *testing.T) {
	files, l := shareStores(t, 2)
	ctx := t.Context()
	broken := errors.New("the connection broke")
	tries := 0
	l.before = func(Change) error {
		if tries++; tries%3 == 1 {
			return broken // it did not arrive
		}
		return nil
	}
	l.after = func(Change) error {
		if tries%3 == 2 {
			return broken // the answer did not
		}
		return nil
	}
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			if _, err := files[n%2].AddSilence(ctx, SilenceRow{End: time.Now().Add(time.Hour), Body: json.RawMessage(fmt.Sprint(n))}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	list, err := files[1].Silences(ctx, time.Now())
	seen := map[string]bool{}
	for _, s := range list {
		seen[string(s.Body)] = true
	}
	if err != nil || len(list) != 20 || len(seen) != 20 {
		t.Errorf("got %d silences, %d different, %v; want 20", len(list), len(seen), err)
	}
	if tries < 40 {
		t.Errorf("got %d proposals, want at least 40: some were lost", tries)
	}
}

// TestSharedApply: what is not to be made leaves no trace, what was made is not made again.
func TestSharedApply(t *testing.T) {
	files, _ := shareStores(t, 1)
	s, ctx := files[0], t.Context()
	row := func(key, version int64) RowChange {
		return RowChange{Table: "documents", Do: rowInsert, Row: []Value{{"k"}, {fmt.Sprint(key)}, {version}, {int64(0)}, {"me"}, {[]byte("{}")}}}
	}
	columns := map[string][]string{"documents": s.shared.shapes["documents"].columns}
	change := func(id string, base uint64, rows ...RowChange) Change {
		return Change{ID: id, Schema: len(migrations), Bases: map[string]uint64{"documents": base}, Columns: columns, Rows: rows}
	}
	for _, step := range []struct {
		number uint64
		change Change
		want   error
		keys   int
	}{
		{5, change("a", 0, row(1, 1)), nil, 1},
		{5, change("a", 0, row(1, 1)), nil, 1},                         // after a restart
		{6, change("b", 0, row(2, 1)), ErrStale, 1},                    // something came first
		{7, change("c", 5, row(2, 1), row(1, 1)), ErrRejected, 1},      // there is 1 already
		{8, change("d", 5, row(3, 1), row(4, 1)), nil, 3},              // what was refused counts as nothing
		{9, Change{ID: "e", Schema: len(migrations) + 1}, ErrNewer, 3}, // of another version
		{9, change("f", 8, RowChange{Table: "events", Do: rowDelete, Key: []Value{{int64(1)}}}), ErrRejected, 3},
		{9, change("g", 8, RowChange{Table: "documents", Do: rowDelete, Key: []Value{{"k"}, {"9"}}}), ErrRejected, 3},
		{9, change("h", 8, RowChange{Table: "documents", Do: rowDelete, Key: []Value{{"k"}, {"3"}}}), nil, 2},
	} {
		err := s.ApplyChange(ctx, step.number, step.change)
		list, readErr := s.Documents(ctx, "k")
		if !errors.Is(err, step.want) || (step.want == nil) != (err == nil) || readErr != nil || len(list) != step.keys {
			t.Errorf("%s: got %v, %d documents, %v; want %v, %d", step.change.ID, err, len(list), readErr, step.want, step.keys)
		}
	}
}

// TestSharedMixed: what would be half shared is refused, and a command without risso serve says what is missing.
func TestSharedMixed(t *testing.T) {
	files, _ := shareStores(t, 1)
	s, ctx := files[0], t.Context()
	err := s.change(ctx, "both", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := addEvent(ctx, tx, fleet.Event{Text: "e"}); err != nil {
			return err
		}
		return put(ctx, tx, &Document{Kind: "k", Key: "1", Body: []byte("{}")})
	})
	if err == nil || !strings.Contains(err.Error(), "one transaction cannot change both") {
		t.Errorf("got %v, want a refusal", err)
	}
	again := openStore(t, s.path)
	if _, err := again.PutDocument(ctx, Document{Kind: "k", Key: "1", Body: []byte("{}")}); !errors.Is(err, ErrShut) {
		t.Errorf("without risso serve: got %v, want ErrShut", err)
	}
	if list, err := again.Documents(ctx, "k"); err != nil || len(list) > 0 {
		t.Errorf("got %v, %v; want no document", list, err)
	}
	if _, err := again.AddEvents(ctx, fleet.Event{Text: "e"}); err != nil {
		t.Errorf("local tables need no risso serve: %v", err)
	}
}
