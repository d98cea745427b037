package repo

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestNote reads the note of a backup that is not complete, while its process lives, and after it has ended.
func TestNote(t *testing.T) {
	r, err := CreateWith(t.Context(), folder(t.TempDir()), Keys{})
	if err != nil {
		t.Fatal(err)
	}
	h, _ := begun(t, r)
	entry := func() Entry {
		list, err := r.Catalogue(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("got %v, %v; want length 1", list, err)
		}
		return list[0]
	}
	if e := entry(); e.Killed(time.Now()) || e.process == nil {
		t.Errorf("a backup that runs: got %+v; want Killed(time.Now()) false, process not nil", e)
	}
	if e := entry(); !e.Killed(time.Now().Add(LeaseLife)) {
		t.Error("a note that is not renewed any more is of no killed backup")
	}
	r.Tell(h.ID, func() Header { h := h; h.Stored = 4711; return h })
	l := r.leases.held[unfinishedKey(h.ID)]
	told := l.content(nil)
	if err := r.store.Put(t.Context(), unfinishedKey(h.ID), bytes.NewReader(told)); err != nil {
		t.Fatal(err)
	}
	if e := entry(); e.Header.Stored != 4711 || e.Header.ID != h.ID || e.process == nil || e.Killed(time.Now()) {
		t.Errorf("got %+v; want Header.Stored 4711, Header.ID %v, process not nil, Killed(time.Now()) false", e, h.ID)
	}
	var note beginning
	if err := json.Unmarshal(told, &note); err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	note.Process.PID, note.Process.Started = child.Process.Pid, startOf(child.Process.Pid)
	put := func() {
		b, err := json.Marshal(note)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.store.Put(t.Context(), unfinishedKey(h.ID), bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
	}
	put()
	if entry().Killed(time.Now()) {
		t.Error("its process lives")
	}
	child.Process.Kill()
	child.Wait()
	if !entry().Killed(time.Now()) {
		t.Error("its process has ended")
	}
	note.Process.Boot = "another"
	put()
	if entry().Killed(time.Now()) {
		t.Error("nobody knows of another machine's processes")
	}
	note.Process.Boot, note.Process.PID = ownProcess().Boot, os.Getpid()
	put()
	if !entry().Killed(time.Now()) {
		t.Error("another process has its number now")
	}
	if err := r.Abandon(t.Context(), h.ID); err != nil {
		t.Error(err)
	}
}
