package scenario_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// TestGroupSettings: who follows goes by the rules and data centers that somebody gave (orchestrator 1430), the policy can be changed, and
// accounts, too, while risso serve watches.
func TestGroupSettings(t *testing.T) {
	q := newSquad(t, sandbox.Options{Servers: []string{"mariadb"}})
	first, one, two := q.box.Nodes[0], q.box.Nodes[1], q.box.Nodes[2]
	set := func(args ...string) {
		t.Helper()
		mustCommand(t, append([]string{"group", args[0], "g", "--data", q.data}, args[1:]...)...)
	}
	follows := func(what string, n *sandbox.Node) {
		t.Helper()
		if winner, refused := q.dryRun(); winner != n.Name {
			t.Errorf("%s: %q follows, want %s; refused %v", what, winner, n.Name, refused)
		}
	}
	q.mustWrite(1)
	q.complete(one, two)
	follows("all alike", one)
	set("set-rule", two.Name, "prefer")
	follows("one is preferred", two)
	set("set-rule", two.Name, "never")
	follows("that one never", one)
	if winner, refused := q.dryRun("--to", two.Name); winner != "" || !slices.Contains(refused[two.Name], "never") {
		t.Errorf("never, by name: %q follows, refused %v", winner, refused)
	}
	set("set-rule", two.Name, "neutral")
	set("set-center", two.Name, "east")
	follows("a data center that nobody wants", one)
	set("set-policy", "--center", "east")
	follows("the data center that comes first", two)
	set("set-policy", "--center", "")
	set("set-center", first.Name, "east")
	follows("the data center of the old primary", two)
	for want, args := range map[string][]string{
		"no such server":          {"set-rule", "g", "nobody", "never"},
		"is no rule":              {"set-rule", "g", two.Name, "sometimes"},
		"what of the policy":      {"set-policy", "g"},
		"agents take orders only": {"set-policy", "g", "--agent-port", "9000"},
		"there is no such group":  {"set-policy", "h", "--lossless"},
		"is at 127.0.0.1":         {"set-access", "g", "--dsn", one.Name + "=" + q.dsn(two)},
		"Access denied":           {"set-access", "g", "--dsn", strings.Replace(one.Name+"="+q.dsn(one), "@tcp", "x@tcp", 1)},
	} {
		if code, said := command(t, append([]string{"group"}, append(args, "--data", q.data)...)...); code == 0 || !strings.Contains(said, want) {
			t.Errorf("%v: exit code %d, want %q: %s", args, code, want, said)
		}
	}

	// By file and position: it is not known what it received.
	execSQL(t, one, "STOP SLAVE; CHANGE MASTER TO MASTER_USE_GTID = no; START SLAVE")
	await(t, "one that replicates by position is not promoted", func() bool {
		winner, refused := q.dryRun()
		return winner == two.Name && slices.Contains(refused[one.Name], "position")
	})
	code, refusal := command(t, "group", "create", "h", "--data", q.data, "--dsn", "a="+q.dsn(first), "--dsn", "b="+q.dsn(one))
	_, remedy, _ := strings.Cut(refusal, "STOP SLAVE")
	remedy, _, _ = strings.Cut(remedy, " on it")
	if code == 0 || !strings.Contains(refusal, "replicates by file and position") {
		t.Errorf("a group with a replica by position: exit code %d: %s", code, refusal)
	}
	execSQL(t, one, "STOP SLAVE"+remedy)
	await(t, "it may be promoted again", func() bool { _, refused := q.dryRun(); return len(refused[one.Name]) == 0 })

	// An account of its own, whose password is changed.
	execSQL(t, first, "CREATE USER care@'%' IDENTIFIED BY 'one'; GRANT ALL ON *.* TO care@'%' WITH GRANT OPTION")
	secret := filepath.Join(tempDir(t), "password")
	access := func(password string) {
		t.Helper()
		if err := os.WriteFile(secret, []byte(password), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"set-access"}
		if password == "one" { // afterwards it is changed with those of the members, as it is the same
			args = append(args, "--replication-user", "care", "--replication-password-file", secret)
		}
		for _, n := range q.box.Nodes {
			args = append(args, "--dsn", fmt.Sprintf("%s=care:%s@tcp(127.0.0.1:%d)/", n.Name, password, n.Port))
		}
		set(args...)
	}
	await(t, "all have the account", func() bool {
		for _, n := range q.box.Nodes {
			if value(t, n, "SELECT COUNT(*) FROM mysql.user WHERE User = 'care'") != "1" {
				return false
			}
		}
		return true
	})
	access("one")
	s := serve(t, q.data, "--failover", "auto", "--host-only", "--no-statements")
	type seen struct {
		State   string
		Members []struct{ Answers bool }
	}
	standing := func() (out seen) {
		t.Helper()
		var a struct{ Groups []struct{ Seen *seen } }
		s.get(t, "/api/groups/standing", nil, &a)
		for _, g := range a.Groups {
			if g.Seen != nil {
				out = *g.Seen
			}
		}
		return out
	}
	answers := func() (yes, no int) {
		t.Helper()
		for _, m := range standing().Members {
			if m.Answers {
				yes++
			} else {
				no++
			}
		}
		return yes, no
	}
	await(t, "all members answer", func() bool { yes, _ := answers(); return yes == 3 })
	execSQL(t, first, "ALTER USER care@'%' IDENTIFIED BY 'two'")
	for _, n := range q.box.Nodes {
		execSQL(t, n, "KILL USER care@'%'")
	}
	await(t, "no member lets Risso in", func() bool { _, no := answers(); return no == 3 })
	access("two")
	await(t, "all members answer again", func() bool { yes, _ := answers(); return yes == 3 })
	q.whole()

	q.leftAlone(s, first, func() bool { return standing().State == "dead" })

	// By hand only, and by itself again.
	set("set-policy", "--manual", "--pause", "1s")
	q.closed(s, first)
	if err := first.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "the primary is dead", func() bool { return standing().State == "dead" })
	time.Sleep(2 * time.Second) // in which it would have been failed over
	if _, p := q.members(); p != first {
		t.Fatalf("a group that is failed over by hand: %s is the primary", p.Name)
	}
	// A person does it: the receipt counts from when serve saw it die.
	said := mustCommand(t, "failover", "--group", "g", "--data", q.data, "--yes")
	m := regexp.MustCompile(`nobody took writes for ([0-9.]+) s\b`).FindStringSubmatch(said)
	if m == nil {
		t.Fatalf("the failover by hand does not say for how long nobody took writes: %s", said)
	}
	if seconds, err := strconv.ParseFloat(m[1], 64); err != nil || seconds < 2 {
		t.Errorf("the failover by hand says nothing of the 2 seconds before it: %s", said)
	}
	set("set-policy", "--manual=false")
	if err := first.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	q.whole()
	if err := two.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "it is failed over", func() bool { _, p := q.members(); return p != two && q.open(p) })
	q.left(s, two)
}

// left takes a dead member out of the group, and removes the group when another one is dead, too: nothing is told of what nobody watches any more. A new group is watched.
func (q *squad) left(s *risso, dead *sandbox.Node) {
	q.Helper()
	open := func(nodes ...*sandbox.Node) (ids []string) {
		for _, n := range nodes {
			for _, f := range s.findings(q.T, n.Name) {
				if f.Ended.IsZero() {
					ids = append(ids, n.Name+" "+f.First.ID)
				}
			}
		}
		return ids
	}
	told := func(n *sandbox.Node) bool {
		out, said, _ := runRisso(q.T, nil, "check", "--all", "--url", s.base)
		return strings.Contains(out+said, n.Name)
	}
	await(q.T, "the dead member rings", func() bool { return slices.Contains(open(dead), dead.Name+" server.down") && told(dead) })
	await(q.T, "it is taken out of the group once the failover has ended", func() bool {
		code, said := command(q.T, "group", "remove", "g", dead.Name, "--data", q.data)
		if code != 0 && !strings.Contains(said, "is under way") {
			q.Fatalf("risso group remove: exit code %d: %s", code, said)
		}
		return code == 0
	})
	await(q.T, "it rings no more", func() bool { return len(open(dead)) == 0 && !told(dead) })

	var a struct {
		Incidents []struct {
			Open bool
			Cut  string
		}
	}
	await(q.T, "an incident of it is over", func() bool {
		s.get(q.T, "/api/incidents", url.Values{"instance": {dead.Name}}, &a)
		return len(a.Incidents) > 0 && !a.Incidents[0].Open
	})
	if a.Incidents[0].Cut != "the server was not watched any more" {
		q.Errorf("the incident of a server that left: %+v", a.Incidents[0])
	}

	_, p := q.members()
	last := q.others(p)[0]
	if last == dead {
		last = q.others(p)[1]
	}
	if err := last.Kill(syscall.SIGKILL); err != nil {
		q.Fatal(err)
	}
	await(q.T, "nobody could follow", func() bool {
		return slices.Contains(open(p), p.Name+" failover.unready") && slices.Contains(open(last), last.Name+" server.down")
	})
	mustCommand(q.T, "group", "remove", "g", "--data", q.data)
	await(q.T, "nothing rings", func() bool { return len(open(p, last)) == 0 && !told(p) && !told(last) })

	for _, n := range []*sandbox.Node{dead, last} {
		<-n.Ended()
		if err := n.Start(q.Context()); err != nil {
			q.Fatal(err)
		}
	}
	await(q.T, "it replicates again", func() bool {
		code, _ := command(q.T, "group", "create", "h", "--data", q.data, "--dsn", p.Name+"="+q.dsn(p), "--dsn", last.Name+"="+q.dsn(last))
		return code == 0
	})
	if err := last.Kill(syscall.SIGKILL); err != nil {
		q.Fatal(err)
	}
	await(q.T, "a member of another group rings", func() bool { return slices.Contains(open(last), last.Name+" server.down") && told(last) })
}

// leftAlone deactivates the group: whatever becomes of its primary, clients are told to go there, and nothing is changed.
func (q *squad) leftAlone(s *risso, primary *sandbox.Node, dead func() bool) {
	q.Helper()
	mustCommand(q.T, "group", "deactivate", "g", "--data", q.data)
	told := func() (server string, unattended bool) {
		q.Helper()
		var a struct {
			Primary    *struct{ Server string }
			Unattended bool
		}
		s.get(q.T, "/api/view", url.Values{"group": {"g"}}, &a)
		if a.Primary == nil {
			return "", a.Unattended
		}
		return a.Primary.Server, a.Unattended
	}
	await(q.T, "a view that says that nobody looks after the group", func() bool { _, alone := told(); return alone })
	other := q.others(primary)[0]
	execSQL(q.T, other, "SET GLOBAL read_only = OFF")
	if err := primary.Kill(syscall.SIGKILL); err != nil {
		q.Fatal(err)
	}
	await(q.T, "the primary is dead", dead)
	for range 10 { // it would have been failed over
		if server, alone := told(); server != primary.Name || !alone {
			q.Fatalf("nobody looks after the group: %q is told, unattended %t", server, alone)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if _, p := q.members(); p != primary || !q.open(other) || q.heard(s, "is dead") > 0 {
		q.Errorf("nobody was to look after the group: %s is its primary, another member takes writes: %t", p.Name, q.open(other))
	}
	execSQL(q.T, other, "SET GLOBAL read_only = ON")
	if err := primary.Start(q.Context()); err != nil {
		q.Fatal(err)
	}
	mustCommand(q.T, "group", "activate", "g", "--data", q.data)
	await(q.T, "a view of a group that is looked after", func() bool { server, alone := told(); return server == primary.Name && !alone })
	q.whole()
}

// closed makes the primary of a group that is failed over by hand read-only: by a restart, after which it is opened, and as somebody does, which is told and left alone.
func (q *squad) closed(s *risso, primary *sandbox.Node) {
	q.Helper()
	if err := primary.Kill(syscall.SIGKILL); err != nil {
		q.Fatal(err)
	}
	<-primary.Ended()
	if err := primary.Start(q.Context(), "--read-only=ON"); err != nil {
		q.Fatal(err)
	}
	await(q.T, "it is opened", func() bool {
		return q.heard(s, "came up read-only, and takes writes again") == 1 && q.open(primary)
	})
	q.whole()
	execSQL(q.T, primary, "SET GLOBAL read_only = ON")
	found := func() (n int) {
		q.Helper()
		for _, f := range s.findings(q.T, primary.Name) {
			if f.First.ID == "failover.closed" && f.Ended.IsZero() {
				n++
				if f.First.Remedy != "risso group promote g "+primary.Name || !strings.Contains(f.First.Why, "somebody made it read-only since it was started") {
					q.Errorf("the finding: %+v", f.First)
				}
			}
		}
		return n
	}
	await(q.T, "it is told that somebody closed it", func() bool { return found() == 1 })
	if q.open(primary) {
		q.Error("what somebody closed was opened")
	}
	mustCommand(q.T, "group", "promote", "g", primary.Name, "--yes", "--data", q.data)
	await(q.T, "nothing is told any more", func() bool { return found() == 0 })
	q.whole()
}

// TestRestoredGroups: Risso's state is restored from a backup that is older than the last change of the primary: the present primary stays it, and what clients hear of it is
// newer than all that they heard before.
func TestRestoredGroups(t *testing.T) {
	q := newSquad(t, sandbox.Options{Servers: []string{"mariadb"}})
	first, one, two := q.box.Nodes[0], q.box.Nodes[1], q.box.Nodes[2]
	s := serve(t, q.data, "--failover", "auto", "--host-only", "--no-statements")
	q.whole()
	backup := filepath.Join(tempDir(t), "state")
	mustCommand(t, "state", "backup", backup, "--data", q.data)
	for _, to := range []*sandbox.Node{one, first, two} {
		mustCommand(t, "switchover", "--group", "g", "--data", q.data, "--to", to.Name, "--yes")
	}
	q.whole()
	before := q.epoch()
	s.stop(t, syscall.SIGTERM)
	mustCommand(t, "state", "restore", backup, "--data", q.data)
	if _, p := q.members(); p != first || q.epoch() >= before {
		t.Fatalf("the state is not the older one: %s is the primary of epoch %d, and there was %d", p.Name, q.epoch(), before)
	}
	serve(t, q.data, "--failover", "auto", "--host-only", "--no-statements")
	await(t, "the present primary is it", func() bool { _, p := q.members(); return p == two })
	if now := q.epoch(); now <= before {
		t.Errorf("it is the primary of epoch %d; clients that heard of %d do not believe that", now, before)
	}
	q.whole()
	mustCommand(t, "switchover", "--group", "g", "--data", q.data, "--to", first.Name, "--yes")
	q.whole()
}

// epoch is that of the group's primary.
func (q *squad) epoch() (epoch uint64) {
	q.Helper()
	var a struct{ Groups []struct{ Epoch uint64 } }
	said := mustCommand(q.T, "group", "show", "g", "--data", q.data, "-o", "json")
	if err := json.Unmarshal([]byte(said), &a); err != nil || len(a.Groups) != 1 {
		q.Fatalf("risso group show: %v: %s", err, said)
	}
	return a.Groups[0].Epoch
}
