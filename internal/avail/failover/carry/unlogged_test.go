package carry

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestLogClosed: a primary writes no binary log any more, as it could not, and tells clients of commits that no replica has, whatever they wait for. No switchover leaves that behind; a failover
// does not say that nothing is lost; and who took what is in no log does not come back by itself.
func TestLogClosed(t *testing.T) {
	t.Parallel()
	u := newTrio(t, "mariadb", group.Policy{Automatic: true, SemiSync: true, Rejoin: true})
	_, old := u.primary()
	if !u.write(old, time.Minute) {
		t.Fatal("the primary takes no write")
	}
	u.complete()
	before := u.known()
	if before.Executed == "" || !before.Unlogged.IsZero() {
		t.Fatalf("of a primary that logs what it takes is known %+v", before)
	}
	mend := sandboxtest.CloseLog(t, old)
	rows := len(u.rows)
	if !u.write(old, time.Minute) {
		t.Fatal("the primary takes no write that it does not log: there is nothing to tell of")
	}
	unlogged := u.rows[rows]
	u.rows = u.rows[:rows] // it was acknowledged, and no replica gets it

	if _, err := u.carrier().Plan(t.Context(), Asked{Group: "g"}); err == nil || !strings.Contains(err.Error(), "writes no binary log any more") {
		t.Errorf("a switchover: got %v, want that the primary writes no binary log any more", err)
	}
	known := u.known().After(before)
	if known.Unlogged.IsZero() || known.Executed != before.Executed {
		t.Fatalf("of a primary that logs nothing any more is known %+v", known)
	}
	f, err := u.carrier().Forecast(t.Context(), Asked{Group: "g", Known: known})
	if err != nil {
		t.Fatal(err)
	}
	if words := strings.Join(f.Words(), "\n"); !strings.Contains(words, "it is not known what would be lost: "+old.Name+" was seen at") {
		t.Errorf("what would happen: got %s, want that it is not known what would be lost", words)
	}
	if err := old.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	j, err := u.carrier().Failover(t.Context(), Asked{Group: "g", By: "test", Known: known})
	if err != nil || j.Receipt == nil || j.Receipt.Verdict != failover.PerhapsLost || !strings.Contains(j.Receipt.Words, "is on no other member") {
		t.Fatalf("a failover: got %+v, %v; want a receipt that does not say that nothing is lost", j.Receipt, err)
	}
	mend()
	if err := old.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, _, err := u.carrier().Tend(t.Context(), "g", Tends); err != nil {
			t.Fatal(err)
		}
	}
	g, now := u.primary()
	m := g.Members[g.Find(old.Name)]
	if m.Status != group.Faulty || !strings.Contains(m.Fault, isUnlogged) {
		t.Errorf("the old primary is %s: %s; want that it stays out, as only its tables have what it took", m.Status, m.Fault)
	}
	if had, has := u.sql(old, "SELECT COUNT(*) FROM test.ledger WHERE id = "+fmt.Sprint(unlogged)), u.sql(now, "SELECT COUNT(*) FROM test.ledger WHERE id = "+fmt.Sprint(unlogged)); had != "1" || has != "0" {
		t.Errorf("%s has %s of what it did not log, %s has %s; want 1 and 0", old.Name, had, now.Name, has)
	}
	list, err := u.room.Journals(t.Context(), "g")
	if err != nil {
		t.Fatal(err)
	}
	if r := list[len(list)-1].Receipt; r.Verdict != failover.PerhapsLost {
		t.Errorf("once the old primary is back the receipt says %s: %s", r.Verdict, r.Words)
	}
}
