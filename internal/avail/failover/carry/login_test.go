package carry

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestNewPassword: members replicate on with the account that they had when its password was changed, or another one took its place, and log in at the next primary with the one that
// Risso was told. One that is refused gets it from who looks after the group.
func TestNewPassword(t *testing.T) {
	for _, spec := range []string{"mysql-9.7", "mariadb"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{Automatic: true, SemiSync: true, Rejoin: true})
			_, p := u.primary()
			u.sql(p, "CREATE USER repl@'%' IDENTIFIED BY 'first-0'", "GRANT REPLICATION SLAVE ON *.* TO repl@'%'")
			u.complete()
			for _, n := range u.box.Nodes[1:] {
				u.logsIn(n, "repl", "first-0")
				u.receives(n)
			}
			// The password is another one.
			u.sql(p, "ALTER USER repl@'%' IDENTIFIED BY 'second-1'")
			u.replicatesAs("repl", "second-1")
			if !u.write(p, time.Minute) {
				t.Fatal("the primary takes no write")
			}
			known := u.known()
			if err := p.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-p.Ended()
			j, err := u.carrier().Failover(t.Context(), Asked{Group: "g", By: "test", Known: known})
			if err != nil {
				t.Fatal(err)
			}
			_, now := u.primary()
			if !u.write(now, 5*time.Second) || len(j.Verified.Arrived) != 1 {
				t.Errorf("the new primary takes no writes, or nobody has them: %+v", j.Verified)
			}
			u.secret(j, "second-1")
			if err := p.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			u.tended()
			u.complete()
			// The account is another one.
			u.sql(now, "CREATE USER other@'%' IDENTIFIED BY 'third-2'", "GRANT REPLICATION SLAVE ON *.* TO other@'%'", "DROP USER repl@'%'")
			u.replicatesAs("other", "third-2")
			u.complete()
			j, err = u.carrier().Switchover(t.Context(), Asked{Group: "g", To: p.Name, By: "test"})
			if err != nil || len(j.Verified.Arrived) != 2 {
				t.Errorf("after the switchover: %v, %+v", err, j)
			}
			u.secret(j, "third-2")
			for _, n := range u.box.Nodes[1:] {
				if u.receives(n); u.channel(n).User != "other" {
					t.Errorf("%s replicates as %s", n.Name, u.channel(n).User)
				}
			}
			u.refused(u.box.Nodes[1])
		})
	}
}

// logsIn lets a member log in at its source by an account.
func (u *trio) logsIn(n *sandbox.Node, user, password string) {
	u.Helper()
	c := sandboxtest.Connect(u, n)
	defer c.Close()
	stop, start := c.Server.AroundPointing("")
	u.sql(n, stop, c.Server.Point("", mysql.Pointing{User: user, Password: password, Lasting: true}), start)
}

// replicatesAs lets Risso know by which account members replicate.
func (u *trio) replicatesAs(user, password string) {
	u.Helper()
	a, err := u.room.Access(u.Context(), "g")
	if err == nil {
		a.Replication = keep.Account{User: user, Password: password}
		err = u.room.SetAccess(u.Context(), "g", a)
	}
	if err != nil {
		u.Fatal(err)
	}
}

// secret checks that a password stands in no journal.
func (u *trio) secret(j any, password string) {
	u.Helper()
	if body, err := json.Marshal(j); err != nil || strings.Contains(string(body), password) {
		u.Errorf("the password stands in the journal: %v", err)
	}
}

// refused checks what becomes of a member that the primary does not let in: nothing while Risso has no account that it lets in, and not all the time; then it gets that.
func (u *trio) refused(n *sandbox.Node) {
	u.Helper()
	a, err := u.room.Access(u.Context(), "g")
	if err != nil {
		u.Fatal(err)
	}
	u.logsIn(n, a.Replication.User, "wrong")
	fails := func() bool { ch := u.channel(n); return mysql.LoginRefused(ch.Status, ch.Tries) }
	await.Until(u, fails, "%s to be refused", n.Name)
	u.replicatesAs(a.Replication.User, "wrong, too")
	if _, _, err := u.carrier().Tend(u.Context(), "g", Tends); err == nil || !strings.Contains(err.Error(), "and so is that of the group") {
		u.Errorf("without an account: %v", err)
	}
	u.replicatesAs(a.Replication.User, a.Replication.Password)
	if did, _, err := u.carrier().Tend(u.Context(), "g", Tends); err != nil || len(did) > 0 {
		u.Errorf("it was tried again at once: %q, %v", did, err)
	}
	if _, err := u.room.Change(u.Context(), "g", func(g *group.Group) error {
		m := &g.Members[g.Find(n.Name)]
		m.Refused = m.Refused.Add(-refusedAgain)
		return nil
	}); err != nil {
		u.Fatal(err)
	}
	did, _, err := u.carrier().Tend(u.Context(), "g", Tends)
	if err != nil || !slices.ContainsFunc(did, func(s string) bool { return strings.HasPrefix(s, n.Name+" could not log in at the primary of g") }) {
		u.Errorf("it did not get the account: %q, %v", did, err)
	}
	if fails() {
		u.Errorf("%s is refused: %+v", n.Name, u.channel(n).Status.IO)
	}
	u.secret(did, a.Replication.Password)
	u.complete()
}

// TestPrepareWhileDown: what is named for commits that hang works while a member is down: one that the primary refuses gets the account of the group. Where nobody is left, who has to be
// started is named.
func TestPrepareWhileDown(t *testing.T) {
	for _, spec := range []string{"mysql-9.7", "mariadb"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{SemiSync: true})
			g, p := u.primary()
			down, bad := u.box.Nodes[1], u.box.Nodes[2]
			u.sql(p, "CREATE USER repl@'%' IDENTIFIED BY 'first-0'", "GRANT REPLICATION SLAVE ON *.* TO repl@'%'")
			u.replicatesAs("repl", "first-0")
			u.logsIn(bad, "repl", "wrong")
			if err := down.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-down.Ended()
			await.Until(t, func() bool { ch := u.channel(bad); return mysql.LoginRefused(ch.Status, ch.Tries) }, "%s to be refused", bad.Name)
			hangs := func() string {
				top, err := u.carrier().Look(t.Context(), g)
				if err != nil {
					t.Fatal(err)
				}
				list := lacks(g, top)
				if len(list) == 0 {
					return ""
				}
				return list[0].Words()
			}
			await.Until(t, func() bool { return hangs() != "" }, "commits to hang")
			if words := hangs(); !strings.Contains(words, bad.Name+" is not let in by the primary (") || !strings.HasSuffix(words, "(risso group prepare g)") {
				t.Errorf("they hang: %s", words)
			}
			if _, seen, err := u.carrier().Tend(t.Context(), "g", Looks); err != nil || seen.Choice.Deaf == nil || seen.Choice.Deaf.Remedy != "risso group prepare g" {
				t.Errorf("nobody receives: %+v, %v", seen, err)
			}
			prepared, err := u.carrier().Prepare(t.Context(), "g", t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer prepared.Close()
			words := strings.Join(append(prepared.Plan.Words(), prepared.Notes...), "\n")
			if !strings.Contains(words, "_PASSWORD = '…'") || strings.Contains(words, "first-0") || !strings.Contains(words, down.Name+" does not answer") {
				t.Errorf("the plan:\n%s", words)
			}
			for _, step := range prepared.Plan {
				if err := step.Do(t.Context()); err != nil {
					t.Fatalf("%s: %v", step.What, err)
				}
			}
			if u.receives(bad); !u.write(p, 20*time.Second) {
				t.Errorf("commits hang still: %s", hangs())
			}
			if err := bad.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-bad.Ended()
			start := "start " + down.Name + ", " + bad.Name
			await.Until(t, func() bool { return strings.HasSuffix(hangs(), "("+start+")") }, "those that are down to be named")
			prepared, err = u.carrier().Prepare(t.Context(), "g", t.TempDir())
			if err == nil {
				defer prepared.Close()
				if notes := strings.Join(prepared.Notes, "\n"); !strings.Contains(notes, start) {
					t.Errorf("nobody is left: %s", notes)
				}
			} else if fleet.RemedyOf(err) != start {
				t.Errorf("nobody is left: %v (%s)", err, fleet.RemedyOf(err))
			}
		})
	}
}
