package fence

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// plenty is a limit for a machine that is starved.
const plenty = time.Minute

func run(t *testing.T, c *mysql.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// client connects with an account other than root.
func client(t *testing.T, n *sandbox.Node, user string) *mysql.Conn {
	t.Helper()
	at, err := mysql.ParseTarget(user + ":Secret-1@tcp(" + net.JoinHostPort("127.0.0.1", strconv.Itoa(n.Port)) + ")/")
	if err != nil {
		t.Fatal(err)
	}
	c, err := mysql.Connect(t.Context(), at.WithPatience(plenty), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// accounts makes one that may write, and one that may do everything.
func accounts(t *testing.T, root *mysql.Conn) {
	t.Helper()
	native := ""
	if root.Server.KeepsSettings() && root.Server.Number < 80400 { // no TLS, and no public key, in this test
		native = " WITH mysql_native_password"
	}
	if root.Server.Number >= 80400 && root.Server.KeepsSettings() {
		run(t, root, "CREATE USER app@'%' IDENTIFIED BY 'Secret-1'", "CREATE USER boss@'%' IDENTIFIED BY 'Secret-1'")
	} else {
		run(t, root, "CREATE USER app@'%' IDENTIFIED"+native+" BY 'Secret-1'", "CREATE USER boss@'%' IDENTIFIED"+native+" BY 'Secret-1'")
	}
	run(t, root, "GRANT ALL ON test.* TO app@'%'", "GRANT ALL ON *.* TO boss@'%'", "CREATE TABLE test.t (id INT PRIMARY KEY)")
}

// rows are those of test.t.
func rows(t *testing.T, c *mysql.Conn) string {
	t.Helper()
	text, err := c.Text(t.Context(), "SELECT COALESCE(GROUP_CONCAT(id ORDER BY id), '') FROM test.t")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// begin runs a statement; what it returns tells how that ended.
func begin(t *testing.T, c *mysql.Conn, statement string) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- c.Exec(context.WithoutCancel(t.Context()), statement) }()
	return done
}

// in waits until a session of an account is in a state.
func in(t *testing.T, root *mysql.Conn, user, state string) {
	t.Helper()
	await.Until(t, func() bool {
		list, err := read.Clients(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			if c.User == user && strings.Contains(c.State, state) {
				return true
			}
		}
		return false
	}, "%s in state %s", user, state)
}

func fence(t *testing.T, at mysql.Target, o Options) *Result {
	t.Helper()
	o.Limit = plenty
	r, err := Fence(t.Context(), at, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Release)
	return r
}

// TestFence: nobody writes any more, what had begun is not committed, and it is opened in a higher epoch only.
func TestFence(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec)
			at, root := sandboxtest.Target(t, n), sandboxtest.Connect(t, n)
			accounts(t, root)
			app, boss, slow := client(t, n, "app"), client(t, n, "boss"), client(t, n, "app")
			run(t, app, "BEGIN", "INSERT INTO test.t VALUES (1)")
			run(t, boss, "BEGIN", "INSERT INTO test.t VALUES (2)")
			sleeping := begin(t, slow, "INSERT INTO test.t SELECT 3 + SLEEP(600)")
			in(t, root, "app", "sleep")
			var noted State
			var closed atomic.Bool
			r := fence(t, at, Options{Epoch: 5, Keep: []int64{root.Server.ConnectionID}, Boot: true, Hold: true, Closed: func() { closed.Store(true) }, Note: func(_ mysql.Server, s State) error { noted = s; return nil }})
			t.Log(r.Words())
			if !closed.Load() || !r.Proven || r.Ended != 3 || !noted.Open() || noted.ReadOnly != r.State.ReadOnly || r.Holds() == root.Server.CanBeClosedToAll() {
				t.Errorf("got %+v, noted %+v", r, noted)
			}
			for name, c := range map[string]*mysql.Conn{"app": app, "boss": boss} {
				if err := c.Exec(t.Context(), "COMMIT"); err == nil {
					t.Errorf("%s committed", name)
				}
			}
			if err := <-sleeping; err == nil {
				t.Error("a statement that had begun was carried out")
			}
			again := client(t, n, "boss")
			run(t, again, again.Server.BoundLocks(time.Second))
			if err := again.Exec(t.Context(), "INSERT INTO test.t VALUES (9)"); mysql.ErrorNumber(err) != errno.OptionPrevents && mysql.ErrorNumber(err) != errno.LockWaitTimeout {
				t.Errorf("an administrator wrote: %v", err)
			}
			if got := rows(t, root); got != "" && got != "4" { // what was killed in SLEEP goes on with 1, before the server is read-only, and nobody is told
				t.Errorf("rows %s, want none", got)
			}
			kept(t, root, true)
			if again, err := Fence(t.Context(), at, Options{Epoch: 5, OnlyOpen: true, Limit: plenty}); err != nil || !again.Skipped || again.Ended > 0 {
				t.Errorf("what is closed was closed again: %+v, %v", again, err)
			}
			if !root.Server.CanBeClosedToAll() {
				holds(t, r, again)
			}
			if err := Undo(t.Context(), at, r.State, 5, plenty); !errors.Is(err, ErrEpoch) {
				t.Errorf("in the same epoch: %v", err)
			}
			if err := Undo(t.Context(), at, r.State, 6, plenty); err != nil {
				t.Fatal(err)
			}
			run(t, client(t, n, "app"), "INSERT INTO test.t VALUES (7)")
			kept(t, root, false)
		})
	}
}

// holds makes sure that an administrator writes when the lock is released, and not before, and that this is said.
func holds(t *testing.T, r *Result, boss *mysql.Conn) {
	t.Helper()
	if !r.Holding(t.Context()) || r.Writers == nil {
		t.Errorf("it holds no lock, or does not know who could write: %+v", r)
	}
	r.Release()
	await.Until(t, func() bool { return boss.Exec(t.Context(), "INSERT INTO test.t VALUES (5)") == nil }, "the lock to be gone")
	run(t, boss, "DELETE FROM test.t")
}

// kept makes sure that a server that writes down what it is to be after a restart has done so, or not.
func kept(t *testing.T, c *mysql.Conn, want bool) {
	t.Helper()
	for _, set := range c.Server.StartSettings() {
		value, is, err := mysql.KeptSetting(t.Context(), c, set[0])
		if err != nil || is != (want && c.Server.KeepsSettings()) || is && value != set[1] {
			t.Errorf("%s: kept %t %q, %v", set[0], is, value, err)
		}
	}
}

// TestWriters: what read_only does not hold for is named, and nothing is called proven then.
func TestWriters(t *testing.T) {
	n := sandboxtest.Lend(t, "mariadb")
	root := sandboxtest.Connect(t, n)
	accounts(t, root)
	run(t, root, "CREATE ROLE opener", "GRANT READ ONLY ADMIN ON *.* TO opener", "CREATE ROLE above", "GRANT opener TO above", "GRANT above TO app@'%'")
	r := fence(t, sandboxtest.Target(t, n), Options{Epoch: 1, Keep: []int64{root.Server.ConnectionID}})
	if r.Proven || !strings.Contains(r.By, "app@%, boss@%") {
		t.Errorf("got %s", r.Words())
	}
	run(t, root, "REVOKE above FROM app@'%'", "DROP ROLE above, opener", "REVOKE ALL ON *.* FROM boss@'%'", "DROP USER risso@'%'")
	r = fence(t, sandboxtest.Target(t, n), Options{Epoch: 1, Keep: []int64{root.Server.ConnectionID}})
	if !r.Proven {
		t.Errorf("got %s", r.Words())
	}
}

// TestAwaitsReplica: a primary whose commits wait for a replica that is gone becomes read-only, and nobody is told that what waited is committed.
func TestAwaitsReplica(t *testing.T) {
	for _, c := range []struct {
		spec string
		hold bool
	}{{"mariadb", true}, {"mysql-9.7", true}, {"mysql-9.7", false}} {
		t.Run(fmt.Sprintf("%s, hold %t", c.spec, c.hold), func(t *testing.T) {
			n := sandboxtest.Up(t, c.spec)
			at, root := sandboxtest.Target(t, n), sandboxtest.Connect(t, n)
			accounts(t, root)
			sources, _ := root.Server.SemiSyncSides()
			side := sources[0]
			if side.Plugin != "" {
				run(t, root, mysql.InstallPlugin(side.Plugin, side.Library))
			}
			run(t, root, "SET GLOBAL "+side.Prefix+"_timeout = 600000", "SET GLOBAL "+side.Prefix+"_enabled = ON")
			first := begin(t, client(t, n, "app"), "INSERT INTO test.t VALUES (1)")
			in(t, root, "app", "semi-sync ACK")
			second := begin(t, client(t, n, "boss"), "INSERT INTO test.t VALUES (2)")
			in(t, root, "boss", "") // it waits behind the first, or for a replica as well
			r := fence(t, at, Options{Epoch: 3, Keep: []int64{root.Server.ConnectionID}, Hold: c.hold})
			t.Log(r.Words())
			if !r.Proven || r.Waited == 0 {
				t.Errorf("got %+v", r)
			}
			for _, done := range []<-chan error{first, second} {
				if err := <-done; err == nil {
					t.Error("a client was told that its transaction is committed, which no replica has")
				}
			}
			if got := rows(t, root); !strings.HasPrefix(got, "1") { // the tail: see DESIGN.md
				t.Errorf("rows %q: what waited is said to be committed here", got)
			}
			released := slices.ContainsFunc(r.Steps, func(s Step) bool { return strings.Contains(s.What, "_enabled = OFF") })
			if released != (side.Plugin != "") {
				t.Errorf("semi-sync was switched off: %t", released)
			}
			r.Release()
			if err := Undo(t.Context(), at, r.State, 4, plenty); err != nil {
				t.Fatal(err)
			}
			now, err := read.SemiSyncNow(t.Context(), root)
			if err != nil || !now.Source.Enabled || now.Source.Timeout != 600000 {
				t.Errorf("semi-sync is not as it was: %+v, %v", now.Source, err)
			}
		})
	}
}

// stuck lets a commit wait for a replica that there is not, and read-only for a table that is locked. It returns the name of the switch of semi-sync.
func stuck(t *testing.T, n *sandbox.Node, root *mysql.Conn) (enabled string, done <-chan error) {
	t.Helper()
	accounts(t, root)
	sources, _ := root.Server.SemiSyncSides()
	side := sources[0]
	run(t, root, "CREATE TABLE test.u (id INT)", mysql.InstallPlugin(side.Plugin, side.Library), "SET GLOBAL "+side.Prefix+"_timeout = 600000", "SET GLOBAL "+side.Prefix+"_enabled = ON")
	done = begin(t, client(t, n, "app"), "INSERT INTO test.t VALUES (1)")
	in(t, root, "app", "semi-sync ACK")
	run(t, root, "LOCK TABLES test.u WRITE")
	return side.Prefix + "_enabled", done
}

// TestReleased: where commits were let go on, and the server does not become read-only in spite of that, nobody is told that a commit is done which no replica has: commits
// wait again before anybody can go on. Without the time for that they are not let go on.
func TestReleased(t *testing.T) {
	for _, hold := range []bool{false, true} {
		n := sandboxtest.Up(t, "mysql-9.7")
		at, root := sandboxtest.Target(t, n), sandboxtest.Connect(t, n)
		enabled, done := stuck(t, n, root)
		var who []mysql.Target
		for _, user := range []string{"app", "boss"} {
			to, err := mysql.ParseTarget(user + ":Secret-1@tcp(" + net.JoinHostPort("127.0.0.1", strconv.Itoa(n.Port)) + ")/")
			if err != nil {
				t.Fatal(err)
			}
			who = append(who, to)
		}
		ctx, stop := context.WithCancel(t.Context())
		told, writing := make(chan int, 1), sync.WaitGroup{}
		writing.Go(func() { // an application that comes again and again
			acks := 0
			for i := 100; ctx.Err() == nil; i++ {
				c, err := mysql.Connect(ctx, who[i%len(who)].WithPatience(plenty), nil)
				if err != nil {
					continue // it is turned away
				}
				if c.Exec(ctx, "INSERT INTO test.t VALUES ("+strconv.Itoa(i)+")") == nil {
					acks++
				}
				_ = c.Close()
			}
			told <- acks
		})
		look := func(limit time.Duration) *Result {
			t.Helper()
			r, err := Fence(t.Context(), at, Options{Epoch: 3, Keep: []int64{root.Server.ConnectionID}, Hold: hold, Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r.Words())
			v, err := read.Variables(t.Context(), root, []string{enabled, "offline_mode"})
			if err != nil || r.Proven || r.Pending || v[enabled] != "ON" || v["offline_mode"] != "OFF" {
				t.Errorf("hold %t, within %s: %+v, %v, %v", hold, limit, r, v, err)
			}
			return r
		}
		off := func(s Step) bool { return strings.Contains(s.What, "_enabled = OFF") }
		if r := look(releaseTakes); slices.ContainsFunc(r.Steps, off) {
			t.Errorf("semi-sync was switched off without the time for it: %+v", r.Steps)
		}
		if r := look(4 * time.Second); !slices.ContainsFunc(r.Steps, off) {
			t.Errorf("semi-sync was not switched off: %+v", r.Steps)
		}
		run(t, root, "UNLOCK TABLES")
		await.Until(t, func() bool { // whoever came last waits for a replica, or behind who does
			list, err := read.Clients(t.Context(), root)
			return err == nil && slices.ContainsFunc(list, func(c read.Client) bool {
				return (mysql.AwaitsReplica(c.State) || strings.Contains(c.State, "handler commit")) && !c.Killed()
			})
		}, "a commit that waits for a replica")
		stop()
		writing.Wait()
		if acks := <-told; acks > 0 {
			t.Errorf("hold %t: clients were told %d times that their transaction is committed, which no replica has", hold, acks)
		}
		if err := <-done; err == nil {
			t.Error("a client was told that its transaction is committed, which no replica has")
		}
	}
}

// TestUnrestored: one that hangs just after commits were let go on stays closed to clients, and the result says so.
func TestUnrestored(t *testing.T) {
	n := sandboxtest.Up(t, "mysql-9.7")
	at, root := sandboxtest.Target(t, n), sandboxtest.Connect(t, n)
	enabled, done := stuck(t, n, root)
	look := sandboxtest.Connect(t, n)
	var goOn func()
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			v, err := read.Variables(t.Context(), look, []string{enabled})
			if err != nil || v[enabled] == "OFF" {
				goOn = sandboxtest.Pause(t, n)
				return
			}
		}
	})
	r, err := Fence(t.Context(), at, Options{Epoch: 3, Keep: []int64{root.Server.ConnectionID, look.Server.ConnectionID}, Limit: 3 * time.Second})
	looking.Wait()
	goOn()
	if err != nil || r.Proven || !r.Pending || !strings.Contains(r.By, "could not be switched on again") || !strings.Contains(r.By, "offline_mode turns clients away") {
		t.Fatalf("got %+v, %v", r, err)
	}
	if err := <-done; err == nil {
		t.Error("a client was told that its transaction is committed, which no replica has")
	}
	to, err := mysql.ParseTarget("app:Secret-1@tcp(" + net.JoinHostPort("127.0.0.1", strconv.Itoa(n.Port)) + ")/")
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if c, err := mysql.Connect(t.Context(), to.WithPatience(plenty), nil); err == nil {
			_ = c.Close()
			t.Fatal("a client is not turned away")
		}
		time.Sleep(100 * time.Millisecond)
	}
	run(t, root, "UNLOCK TABLES")
	if err := Undo(t.Context(), at, r.State, 4, plenty); err != nil {
		t.Fatal(err)
	}
	client(t, n, "app")
	if now, err := read.SemiSyncNow(t.Context(), root); err != nil || !now.Source.Enabled {
		t.Errorf("semi-sync is not as it was: %+v, %v", now.Source, err)
	}
}

// TestHangs: a server that hangs is given up in time.
func TestHangs(t *testing.T) {
	n := sandboxtest.Lend(t, "mariadb")
	goOn := sandboxtest.Pause(t, n)
	defer goOn()
	if _, err := Fence(t.Context(), sandboxtest.Target(t, n), Options{Limit: 200 * time.Millisecond}); err == nil {
		t.Error("a server that hangs was fenced")
	}
}

// TestUnderLoad: hundreds of sessions write while the server is fenced. What was acknowledged is there, and nothing is acknowledged afterwards; two that fence it at once do not end each other.
func TestUnderLoad(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Up(t, spec, "max_connections=500")
			at, root := sandboxtest.Target(t, n), sandboxtest.Connect(t, n)
			accounts(t, root)
			const writers, idle = 16, 2*perKiller + 10
			for range idle {
				client(t, n, "app")
			}
			var all sync.WaitGroup
			var count atomic.Int64
			acked := make([][]int, writers)
			for w := range writers {
				c := client(t, n, "app")
				all.Go(func() {
					for i := w; ; i += writers {
						if c.Exec(context.WithoutCancel(t.Context()), "INSERT INTO test.t VALUES ("+strconv.Itoa(i)+")") != nil {
							return
						}
						acked[w] = append(acked[w], i)
						count.Add(1)
					}
				})
			}
			await.Until(t, func() bool { return count.Load() > 100 }, "some writes")
			type fenced struct {
				r   *Result
				err error
			}
			other := make(chan fenced, 1)
			go func() {
				r, err := Fence(context.WithoutCancel(t.Context()), at, Options{Epoch: 2, Limit: plenty, Keep: []int64{root.Server.ConnectionID}})
				other <- fenced{r, err}
			}()
			r, err := Fence(t.Context(), at, Options{Epoch: 2, Limit: plenty, Keep: []int64{root.Server.ConnectionID}, Hold: true})
			before := count.Load()
			with := <-other
			if err := errors.Join(err, with.err); err != nil {
				_ = n.Kill(syscall.SIGKILL) // the writers end
				all.Wait()
				t.Fatal(err)
			}
			defer r.Release()
			o := with.r
			all.Wait()
			t.Log(r.Words())
			if !r.Proven || o == nil || r.Ended+o.Ended < writers+idle {
				t.Errorf("got %+v and %+v", r, o)
			}
			if after := count.Load(); after != before {
				t.Errorf("%d writes were acknowledged afterwards", after-before)
			}
			have := map[string]bool{}
			if err := root.Query(t.Context(), "SELECT id FROM test.t", func(row []sqldriver.Value) error { have[mysql.Text(row[0])] = true; return nil }); err != nil {
				t.Fatal(err)
			}
			for _, list := range acked {
				for _, i := range list {
					if !have[strconv.Itoa(i)] {
						t.Fatalf("%d was acknowledged, and is not there", i)
					}
				}
			}
		})
	}
}

// TestPrivileges: what risso grants prints for an agent is enough to fence a server and to open it again, and to end the sessions of administrators.
func TestPrivileges(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec)
			root := sandboxtest.Connect(t, n)
			accounts(t, root)
			run(t, root, "CREATE USER keeper@localhost IDENTIFIED BY 'Secret-1'")
			run(t, root, root.Server.Grants("keeper@localhost", "", mysql.JobAgent)...)
			at, err := mysql.ParseTarget("keeper:Secret-1@unix(" + n.Socket + ")/")
			if err != nil {
				t.Fatal(err)
			}
			client(t, n, "app")
			boss := client(t, n, "boss")
			r := fence(t, at, Options{Epoch: 1, Hold: true, Boot: true, Keep: []int64{root.Server.ConnectionID}})
			for _, s := range r.Steps {
				if !s.Done {
					t.Errorf("%s: %s", s.What, s.Error)
				}
			}
			if !r.Proven || r.Ended != 2 || r.Unknown != "" || boss.Exec(t.Context(), "SELECT 1") == nil {
				t.Errorf("got %s, %+v", r.Words(), r)
			}
			r.Release()
			if err := Undo(t.Context(), at, r.State, 2, plenty); err != nil {
				t.Error(err)
			}
			if b, err := mysql.Connect(t.Context(), at, nil); err != nil {
				t.Error(err)
			} else if _, err = Boots(t.Context(), b); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPendingProvesNothing: while the statement that makes a server read-only waits, super_read_only reads ON already, and everybody may write all the same.
func TestPendingProvesNothing(t *testing.T) {
	for _, spec := range []string{"mysql-9.7", "mysql-8.0"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec)
			root, other := sandboxtest.Connect(t, n), sandboxtest.Connect(t, n)
			run(t, root, "CREATE TABLE test.u (id INT)", "LOCK TABLES test.u WRITE")
			closed := make(chan error, 1)
			go func() { closed <- other.Exec(t.Context(), root.Server.CloseWrites()[0]) }()
			values := func() map[string]string {
				v, err := read.Variables(t.Context(), root, asked)
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			await.Until(t, func() bool { return values()["super_read_only"] == "ON" }, "super_read_only to read ON while it waits")
			v := values()
			run(t, root, "INSERT INTO test.u VALUES (1)")
			if root.Server.Closed(v["read_only"]) || root.Server.ClosedToAll(v["read_only"], v["super_read_only"]) {
				t.Errorf("read_only %s, super_read_only %s, and a write succeeds: it was taken for closed", v["read_only"], v["super_read_only"])
			}
			run(t, root, "UNLOCK TABLES")
			if err := <-closed; err != nil {
				t.Fatal(err)
			}
			if v := values(); !root.Server.ClosedToAll(v["read_only"], v["super_read_only"]) {
				t.Errorf("it is read-only: %v", v)
			}
		})
	}
}
