package rules

import (
	"testing"

	"github.com/rissodb/risso/internal/mysql/read"
)

// TestProbably: who may hold a lock of the whole server is named once each with what speaks for it, and never as certain.
func TestProbably(t *testing.T) {
	t.Parallel()
	wait := func(waiter, id int64, sign string) read.LockWait {
		return read.LockWait{Waiter: waiter, Kind: read.LockGlobal, Maybe: true, Sign: sign, Blocker: read.Blocker{ID: id, User: "app", Host: "web"}}
	}
	const ran = "it ran FLUSH TABLES WITH READ LOCK at 06:38:16, and nothing since"
	for _, c := range []struct {
		list []read.LockWait
		want string
	}{
		{nil, ""},
		{[]read.LockWait{{Kind: read.LockGlobal, Maybe: true}}, ""},
		{[]read.LockWait{wait(1, 812, ran), wait(2, 812, ran)}, ", probably connection 812 (app@web), for " + ran},
		{[]read.LockWait{wait(1, 812, ran), wait(1, 9, "x"), wait(2, 812, ran), wait(2, 9, "x")}, ", perhaps connection 812 (app@web), for " + ran + "; or connection 9 (app@web), for x"},
		{[]read.LockWait{wait(1, 812, read.IdleBefore)}, ", perhaps connection 812 (app@web), for " + read.IdleBefore},
		{[]read.LockWait{wait(1, 812, read.IdleBefore), wait(1, 9, read.IdleBefore)}, ", perhaps connection 812 (app@web), for " + read.IdleBefore + "; or connection 9 (app@web), for " + read.IdleBefore},
	} {
		if got := probably(c.list); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
