package scenario_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/state"
)

// ack is a write that was acknowledged: by whom, and when.
type ack struct {
	at      time.Time
	address string
}

// followers are applications that write to whom the controllers name.
type followers struct {
	q    *squad
	mu   sync.Mutex
	ask  []string // controllers
	acks []ack
}

// follow writes until the test ends.
func (f *followers) follow() {
	t := f.q.T
	client := &http.Client{Timeout: time.Second}
	pools := map[string]*sql.DB{}
	for _, n := range f.q.box.Nodes {
		pools[fmt.Sprintf("127.0.0.1:%d", n.Port)] = f.q.app(n)
	}
	done := make(chan struct{})
	stop := sync.OnceFunc(func() { close(done) })
	var all sync.WaitGroup
	t.Cleanup(func() { stop(); all.Wait() })
	for i := range 2 {
		all.Go(func() {
			for n := i; ; n++ {
				select {
				case <-done:
					return
				case <-time.After(10 * time.Millisecond):
				}
				f.mu.Lock()
				base := f.ask[n%len(f.ask)]
				f.mu.Unlock()
				resp, err := client.Get(base + "/primary?group=g")
				if err != nil {
					continue
				}
				var p struct{ Address string }
				err = json.NewDecoder(resp.Body).Decode(&p)
				resp.Body.Close()
				if err != nil || pools[p.Address] == nil || f.q.write(pools[p.Address], time.Second) != nil {
					continue
				}
				f.mu.Lock()
				f.acks = append(f.acks, ack{time.Now(), p.Address})
				f.mu.Unlock()
			}
		})
	}
}

// first is the first write after a moment that another server acknowledged.
func (f *followers) first(after time.Time, but string) (ack, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.acks, func(a ack) bool { return a.at.After(after) && a.address != but })
	if i < 0 {
		return ack{}, false
	}
	return f.acks[i], true
}

// since are the servers that acknowledged something after a moment.
func (f *followers) since(after time.Time) (list []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.acks {
		if a.at.After(after) && !slices.Contains(list, a.address) {
			list = append(list, a.address)
		}
	}
	return list
}

// stageOf is how far the change of a group's primary has come, as a controller has it; "": there is none.
func stageOf(t *testing.T, data string) failover.Stage {
	t.Helper()
	st, err := state.Open(t.Context(), filepath.Join(data, "state.db"))
	if err != nil {
		return ""
	}
	defer st.Close()
	j, err := (&keep.Room{Docs: st}).Unfinished(t.Context(), "g")
	if err != nil || j == nil {
		return ""
	}
	return j.Stage
}

// tellJournals logs what was done in each change of the primary, if a test failed.
func tellJournals(t *testing.T, data string) {
	t.Helper()
	if !t.Failed() {
		return
	}
	ctx := context.WithoutCancel(t.Context())
	st, err := state.Open(ctx, filepath.Join(data, "state.db"))
	if err != nil {
		t.Log(err)
		return
	}
	defer st.Close()
	list, err := (&keep.Room{Docs: st}).Journals(ctx, "g")
	if err != nil {
		t.Log(err)
	}
	for _, j := range list {
		t.Logf("epoch %d: %s of %s to %s, %s at %s by %s %s; known: %+v", j.Epoch, j.Kind, j.Old, j.New, j.Stage, j.Ended.Format("15:04:05.000"), j.EndedBy, j.Problem, j.Known)
		for _, s := range j.Steps {
			t.Logf("  %s %s: %s (%s) %s", s.At.Format("15:04:05.000"), s.Where, s.What, s.Took, s.Failed)
		}
	}
}

// returned waits until an old primary replicates again. One that kept a write that nobody was promised, as it died before a replica had it, is rebuilt.
func (q *squad) returned(old *sandbox.Node, dir string) {
	q.Helper()
	var m squadMember
	await(q.T, old.Name+" is back, or kept out", func() bool {
		list, p := q.members()
		m = list[slices.IndexFunc(list, func(m squadMember) bool { return m.Name == old.Name })]
		return p != nil && p != old && (m.Status == "SECONDARY" || m.Errant != "")
	})
	if m.Errant != "" {
		q.Logf("%s is rebuilt: only it has %s", old.Name, m.Errant)
		if old.Program.Family == sandbox.FamilyMariaDB { // what of it was acknowledged is in its log
			var last []string
			for _, row := range execSQL(q.T, old, "SHOW BINLOG EVENTS")[0].Rows {
				if *row[2] == "Gtid" || *row[2] == "Annotate_rows" {
					last = append(last, *row[5])
				}
			}
			q.Logf("the end of its log: %q", last[max(0, len(last)-20):])
		}
		_, p := q.members()
		if err := old.Reseed(q.Context(), p); err != nil {
			q.Fatal(err)
		}
		for _, status := range []string{"SPARE", "SECONDARY"} {
			mustCommand(q.T, "group", "set-status", "g", old.Name, status, "--data", q.data)
		}
		mustCommand(q.T, "group", "prepare", "g", "--yes", "--state", filepath.Join(dir, "prepare"), "--data", q.data)
	}
	q.whole()
}

// receivers stops or starts receiving on nodes.
func (q *squad) receivers(what string, nodes []*sandbox.Node) {
	q.Helper()
	for _, n := range nodes {
		word := "REPLICA"
		if n.Program.Family == sandbox.FamilyMariaDB {
			word = "SLAVE"
		}
		execSQL(q.T, n, what+" "+word+" IO_THREAD")
	}
}

// lost is how long after the death of a primary the leader that is to be killed amid the failover has lost the lead, if it lives and the failover is over.
const lost = 20 * time.Second

// TestControllersFailover: the leader of three controllers is killed amid a failover, at each of its stages. The next one brings it to its end at once, whatever the lease of the
// first one says (orchestrator 1296: the leader is on the host of the primary that died); nothing that was acknowledged is lost, and nobody writes to two servers.
func TestControllersFailover(t *testing.T) {
	eachKind(t, []string{"mariadb", "mysql-9.7"}, func(t *testing.T, kind string) {
		q := newSquad(t, sandbox.Options{Servers: []string{kind}, SemiSync: true}, "--semi-sync", "--pause", "1s")
		dir := tempDir(t)
		armed, config, hook := filepath.Join(dir, "armed"), filepath.Join(dir, "risso.yaml"), filepath.Join(dir, "hook")
		for file, text := range map[string]string{
			hook:   "#!/bin/sh\n[ \"$(cat " + armed + " 2>/dev/null)\" = \"$RISSO_EVENT\" ] || exit 0\nrm " + armed + "\nkill -9 $PPID\n",
			config: "publish:\n  hooks:\n    - name: killer\n      at: [before_failover, after_promotion, after_failover]\n      run: [" + hook + "]\n",
		} {
			if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		first := &controller{name: "c1", data: q.data, flags: []string{"--config", config, "--failover", "auto"}}
		mustCommand(t, "controller", "init", "--name", "c1", "--address", sandboxtest.FreeAddress(t), "--data", first.data)
		first.start(t)
		first.awaitAll(t, 1)
		all := []*controller{first, joined(t, first, "c2"), joined(t, first, "c3")}
		first.awaitAll(t, 3)
		f := &followers{q: q}
		ask := func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.ask = nil
			for _, c := range all {
				f.ask = append(f.ask, c.base)
			}
		}
		ask()
		t.Cleanup(func() { tellJournals(t, first.data) })
		f.follow()
		for _, when := range []string{"before_failover", "stopping", "promoting", "after_promotion"} {
			q.whole()
			_, old := q.members()
			address := fmt.Sprintf("127.0.0.1:%d", old.Port)
			i := slices.IndexFunc(all, func(c *controller) bool { return c.name == all[0].awaitAll(t, 3) })
			leader, other := all[i], all[(i+1)%3]
			q.data = other.data
			if strings.Contains(when, "_") {
				if err := os.WriteFile(armed, []byte(when), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			if when == "before_failover" { // it has a write that nobody else has, and that was promised to nobody
				q.receivers("STOP", q.others(old))
				await(t, "a commit that waits for a replica", func() bool {
					return value(t, old, "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for semi-sync ACK%'") != "0"
				})
			}
			if err := old.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s killed by %s", old.Name, time.Now().Format("15:04:05.000"))
			if when == "before_failover" {
				q.receivers("START", q.others(old))
			}
			at := ""
			if strings.Contains(when, "_") {
				await(t, "the leader is killed "+when, func() bool {
					select {
					case <-leader.done:
						return true
					case <-time.After(time.Millisecond):
					}
					if time.Since(began) < lost {
						return false
					}
					if _, over := f.first(began, address); !over || stageOf(t, leader.data) != "" {
						return false
					}
					t.Logf("%s: another controller led amid the failover, on a busy machine, and brought it to its end; the hook was ended with that", when)
					_ = os.Remove(armed) // it may have done so
					leader.kill(t)
					return true
				})
			} else {
				order := []failover.Stage{failover.Begun, failover.Stopping, failover.Draining, failover.Promoting, failover.Published, failover.Pointing}
				for end := time.Now().Add(patience); slices.Index(order, failover.Stage(at)) < slices.Index(order, failover.Stage(when)); at = string(stageOf(t, leader.data)) {
					if time.Now().After(end) {
						t.Fatalf("the failover does not come to %s", when)
					}
				}
				leader.kill(t)
			}
			killed := time.Now()
			if at = string(stageOf(t, leader.data)); at == "" {
				at = "its end"
			}
			var a ack
			await(t, "a write to another server", func() (ok bool) { a, ok = f.first(began, address); return ok })
			t.Logf("%s, leader killed %s (at %s), %.2f s after the primary: first acknowledged write %.2f s after the death of the primary, %.2f s after that of the leader", kind, when, at,
				killed.Sub(began).Seconds(), a.at.Sub(began).Seconds(), a.at.Sub(killed).Seconds())
			if err := old.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			leader.start(t)
			ask()
			q.returned(old, dir)
			if list := f.since(a.at); slices.Contains(list, address) {
				t.Errorf("%s: the old primary acknowledged a write after the new one had: %v", when, list)
			}
			if said := mustCommand(t, "receipt", "--group", "g", "--data", q.data); !strings.Contains(said, "failover of g from "+old.Name) {
				t.Errorf("%s: the receipt: %s", when, said)
			}
		}
	})
}
