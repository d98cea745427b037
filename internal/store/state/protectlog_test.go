package state

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestRunNotes keeps the progress and the log of runs apart, the newest lines of each, and forgets those of runs that are gone.
func TestRunNotes(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	at := time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)
	var ids []int64
	for range 2 {
		id, err := s.BeginRun(ctx, Run{Kind: JobBackup, Began: at})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	var lines []RunLine
	for n := range mostLines + 10 {
		lines = append(lines, RunLine{Time: at, Text: fmt.Sprint("line ", n)})
	}
	if err := s.NoteRun(ctx, RunProgress{Run: ids[0], Time: at, Stage: "read tables", Done: 1, Total: 3, Unit: "tables"}, lines...); err != nil {
		t.Fatal(err)
	}
	if err := s.NoteRun(ctx, RunProgress{Run: ids[0], Time: at, Stage: "read tables", Done: 2, Total: 3, Unit: "tables"}); err != nil {
		t.Fatal(err)
	}
	if err := s.NoteRun(ctx, RunProgress{Run: ids[1], Time: at}, RunLine{Time: at, Text: "other"}); err != nil {
		t.Fatal(err)
	}
	p, got, err := s.RunNotes(ctx, ids[0])
	if err != nil || p.Done != 2 || p.Stage != "read tables" || !p.Time.Equal(at) || len(got) != mostLines || got[0].Text != "line 10" {
		t.Errorf("got %+v, %d lines from %v, %v; want p.Done 2, p.Stage \"read tables\", p.Time.Equal(at) true, len(got) %d, got[0].Text \"line 10\"",
			p, len(got), got[:1], err, mostLines)
	}
	if _, got, err = s.RunNotes(ctx, ids[1]); err != nil || len(got) != 1 {
		t.Errorf("got %v %v; want length 1", got, err)
	}
	if p, got, err = s.RunNotes(ctx, 99); err != nil || got == nil || len(got) != 0 || p.Stage != "" {
		t.Errorf("%+v %v %v", p, got, err)
	}
	if r, err := s.Run(ctx, ids[0]); err != nil || r.Outcome != OutcomeRunning || !r.Began.Equal(at) {
		t.Errorf("got %+v %v; want Outcome OutcomeRunning, Began.Equal(at) true", r, err)
	}
	if _, err := s.Run(ctx, 99); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	// A run that is forgotten takes its notes with it.
	if _, err := s.write.ExecContext(ctx, "UPDATE sqlite_sequence SET seq = ? WHERE name = 'protect_runs'", mostRuns+int(ids[0])-1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.BeginRun(ctx, Run{Kind: JobBackup}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(ctx, ids[0]); !errors.Is(err, ErrNotFound) {
		t.Error("the oldest run is still there")
	}
	if p, got, err = s.RunNotes(ctx, ids[0]); err != nil || len(got) != 0 || p.Stage != "" {
		t.Errorf("got %+v, %d lines, %v; want no got, Stage \"\"", p, len(got), err)
	}
	if _, got, err = s.RunNotes(ctx, ids[1]); err != nil || len(got) != 1 {
		t.Errorf("got %v %v; want length 1", got, err)
	}
}
