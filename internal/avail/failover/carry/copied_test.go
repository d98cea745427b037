package carry

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
)

// TestCopied: an old primary comes back with the data of the one that followed it. That proves nothing of what it had.
func TestCopied(t *testing.T) {
	t.Parallel()
	u := newTrio(t, "mysql-9.7", group.Policy{Rejoin: true})
	_, old := u.primary()
	if !u.write(old, time.Minute) {
		t.Fatal("the primary takes no write")
	}
	u.complete()
	known := u.known()
	if err := old.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	j, err := u.carrier().Failover(t.Context(), Asked{Group: "g", By: "test", Known: known})
	if err != nil || j.Receipt.Verdict != failover.NothingToLose {
		t.Fatalf("a failover: %+v, %v", j, err)
	}
	_, now := u.primary()
	if err := old.Reseed(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	var r *failover.Receipt
	await.Until(t, func() bool {
		if _, _, err := u.carrier().Tend(t.Context(), "g", Tends); err != nil {
			t.Log(err)
		}
		list, err := u.room.Journals(t.Context(), "g")
		if err != nil {
			t.Fatal(err)
		}
		r = list[len(list)-1].Receipt
		return strings.Contains(r.Words, "came back")
	}, "the receipt to be completed")
	if r.Verdict != failover.NothingToLose || !strings.Contains(r.Words, "not proven") {
		t.Errorf("%s came back as a copy: %s, %q", old.Name, r.Verdict, r.Words)
	}
}
