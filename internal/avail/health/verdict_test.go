package health

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// TestJudge: what each question is answered, for each state of a server.
func TestJudge(t *testing.T) {
	now := time.Now()
	seen := func(h read.Health, channels ...read.ReplicaChannel) Seen {
		return Seen{Began: now, Health: h, Channels: Channels{Began: now, List: channels}}
	}
	node := func(change func(*read.GaleraHealth)) Seen {
		g := &read.GaleraHealth{State: 4, Primary: true, Ready: true, On: true, Desired: "DISABLED"}
		change(g)
		return seen(read.Health{Galera: g})
	}
	member := func(state string, primary bool, members, reachable int) Seen {
		return seen(read.Health{Group: &read.GroupHealth{State: state, Primary: primary, Members: members, Reachable: reachable}})
	}
	replica := func(io, sql bool, behind int) Seen {
		return seen(read.Health{ReadOnly: true}, read.ReplicaChannel{IORunning: io, SQLRunning: sql, Behind: behind})
	}
	denied := errors.Join(&mysql.Error{Target: "secret@db1", Class: mysql.ClassPrivilege, Err: errors.New("Access denied for user secret@db1")})
	unknown := seen(read.Health{})
	unknown.Channels = Channels{Began: now, Err: denied}
	blocked := seen(read.Health{})
	blocked.Channels.Began = now.Add(-time.Minute)
	noGroup := seen(read.Health{GroupErr: denied})
	offline := seen(read.Health{Offline: true})
	heard := func(ago time.Duration, every float64) Seen {
		s := seen(read.Health{ReadOnly: true}, read.ReplicaChannel{IORunning: true, SQLRunning: true, BeatEvery: every})
		s.Channels.Heard = map[string]time.Time{"": now.Add(-ago)}
		return s
	}
	readOnlyNode := node(func(*read.GaleraHealth) {})
	readOnlyNode.Health.ReadOnly = true
	for _, c := range []struct {
		ask   string
		of    Seen
		want  int
		words string
	}{
		{"/", node(func(*read.GaleraHealth) {}), 200, synced},
		{"/anything", node(func(*read.GaleraHealth) {}), 400, "no such question"},
		{"/galera", node(func(g *read.GaleraHealth) { g.Desired = "" }), 200, synced}, // MariaDB has no such variable
		{"/", node(func(g *read.GaleraHealth) { g.State = 1 }), 503, notSynced},
		{"/", node(func(g *read.GaleraHealth) { g.State = 2 }), 503, notSynced},
		{"/?available-when-donor=1", node(func(g *read.GaleraHealth) { g.State = 2 }), 200, synced},
		{"/?available-when-donor=1", node(func(g *read.GaleraHealth) { g.State = 3 }), 503, notSynced},
		{"/?available-when-donor=1", node(func(g *read.GaleraHealth) { g.State, g.Primary = 2, false }), 503, notSynced},
		{"/", node(func(g *read.GaleraHealth) { g.Primary = false }), 503, notSynced},
		{"/", node(func(g *read.GaleraHealth) { g.Ready = false }), 503, notSynced},
		{"/", node(func(g *read.GaleraHealth) { g.Desired = "MAINTENANCE" }), 503, notSynced},
		{"/", node(func(g *read.GaleraHealth) { g.On = false }), 503, "wsrep_on"},
		{"/", node(func(g *read.GaleraHealth) { g.Rejects = true }), 503, "wsrep_reject_queries"},
		{"/up", node(func(g *read.GaleraHealth) { g.Rejects = true }), 503, "wsrep_reject_queries"},
		{"/primary", node(func(g *read.GaleraHealth) { g.Rejects = true }), 503, "wsrep_reject_queries"},
		{"/", readOnlyNode, 200, synced},
		{"/?AVAILABLE_WHEN_READONLY=0", readOnlyNode, 503, readOnly},
		{"/?available-when-readonly=1", readOnlyNode, 200, synced},
		{"/primary", readOnlyNode, 503, "read-only"},
		{"/primary", node(func(*read.GaleraHealth) {}), 200, synced},
		{"/", seen(read.Health{}), 503, "no node of a Galera"},
		{"/up", seen(read.Health{}), 200, "answers"},
		{"/up", offline, 503, "offline"},
		{"/primary", offline, 503, "offline"},
		{"/up", unknown, 200, "answers"},
		{"/primary", seen(read.Health{}), 200, "is a primary"},
		{"/primary", seen(read.Health{ReadOnly: true}), 503, "read-only"},
		{"/primary", seen(read.Health{}, read.ReplicaChannel{IORunning: true, SQLRunning: true}), 503, "is a replica"}, // writable, by mistake or in a ring
		{"/primary", seen(read.Health{}, read.ReplicaChannel{}), 503, "replication is stopped: it is a primary after RESET REPLICA ALL"}, // promoted by hand
		{"/primary", seen(read.Health{}, read.ReplicaChannel{IORunning: true}), 503, "is a replica."},
		{"/up", node(func(*read.GaleraHealth) {}), 200, "answers"},
		{"/up", node(func(g *read.GaleraHealth) { g.Ready = false }), 503, "refuses statements"}, // without a majority, or joining
		{"/up", seen(read.Health{Galera: &read.GaleraHealth{On: true}}), 503, "refuses statements"},
		{"/primary", unknown, 503, "not known: the account may not"},
		{"/primary", blocked, 503, "last seen 60 s"},
		{"/replica", blocked, 503, "last seen 60 s"},
		{"/replica", unknown, 503, "not known: the account may not"},
		{"/replica", seen(read.Health{}), 503, "no replica"},
		{"/replica", replica(true, true, 900), 200, "replicates"},
		{"/replica?max-lag=5", replica(true, true, 5), 200, "replicates"},
		{"/replica?max-lag=5", replica(true, true, 6), 503, "6 s behind"},
		{"/replica?max_lag=2m", replica(true, true, 120), 200, "replicates"},
		{"/replica?max-lag=5", replica(true, true, -1), 503, "not known"},
		{"/replica?max-lag=5", heard(35*time.Second, 30), 200, "replicates"},
		{"/replica?max-lag=5", heard(36*time.Second, 30), 503, "nothing came from its source for 36 s"},
		{"/replica", heard(time.Hour, 30), 200, "replicates"},          // how late it is was not asked
		{"/replica?max-lag=5", heard(time.Hour, 0), 200, "replicates"}, // its source sends no heartbeats
		{"/replica", replica(false, true, -1), 503, "does not run"},
		{"/replica", replica(true, false, -1), 503, "does not run"},
		{"/group", seen(read.Health{}), 503, "no member"},
		{"/group", noGroup, 503, "not known"},
		{"/primary", noGroup, 503, "not known"},
		{"/replica", noGroup, 503, "not known"},
		{"/group", member("ONLINE", false, 3, 3), 200, "online"},
		{"/group", member("RECOVERING", false, 3, 3), 503, "not online"},
		{"/group", member("ONLINE", true, 3, 1), 503, "no majority"},
		{"/group", member("ONLINE", true, 4, 2), 503, "no majority"},
		{"/primary", member("ONLINE", true, 3, 2), 200, "primary of its group"},
		{"/primary", member("ONLINE", true, 3, 1), 503, "no majority"},
		{"/primary", member("ONLINE", false, 3, 3), 503, "secondary"},
		{"/replica", member("ONLINE", false, 3, 3), 200, "secondary"},
		{"/replica", member("ONLINE", true, 3, 3), 503, "primary of its group"},
		{"/replica?max-lag=5", member("ONLINE", false, 3, 3), 503, "not known in seconds"},
		{"/replica?max-lag=x", replica(true, true, 0), 400, "cannot be read"},
		{"/replica?max-lag=-1", replica(true, true, 0), 400, "cannot be read"},
		{"/up?max-lag=1", replica(true, true, 0), 400, "for /replica"},
		{"/replica?max_lag=5", replica(true, true, 6), 503, "6 s behind"}, // names as clustercheck's
		{"/replica?max-lag=0", replica(true, true, 900), 200, "replicates"},
		{"/replica?max-lag=0s", replica(true, true, 900), 200, "replicates"},
		{"/?maxlag=1", replica(true, true, 0), 400, `no option "maxlag"`},
		{"/replica?max_lags=1", replica(true, true, 0), 400, `no option "max_lags"`},
		{"/replica?max%20lag=1", replica(true, true, 0), 400, `no option "max lag"`},
		{"/?output=xml", replica(true, true, 0), 400, "cannot be read"},
		{"/?%zz", replica(true, true, 0), 400, "cannot be read"},
	} {
		q, err := Ask(c.ask, Question{})
		a := Answer{Status: http.StatusBadRequest}
		if err != nil {
			a.Reason = err.Error()
		} else {
			a = Judge(q, c.of, now, time.Second)
		}
		if a.Status != c.want || !strings.Contains(a.Reason, c.words) || a.Available != (c.want == 200) || strings.Contains(a.Reason, "secret") {
			t.Errorf("%s: got %d %q, want %d with %q", c.ask, a.Status, a.Reason, c.want, c.words)
		}
	}
}

// TestStale: what is older than it may be is never a reason to send clients, whatever was seen, and the age is that of the oldest that counts.
func TestStale(t *testing.T) {
	now := time.Now()
	good := Seen{Began: now, Channels: Channels{Began: now}}
	for _, c := range []struct {
		name     string
		after    time.Duration
		change   func(*Seen)
		question About
		want     int
		age      float64
		words    string
	}{
		{"just seen", 0, func(*Seen) {}, Up, 200, 0, "answers"},
		{"as old as it may be", DefaultMaxAge, func(*Seen) {}, Up, 200, 0.9, "answers"},
		{"older", DefaultMaxAge + 1, func(*Seen) {}, Up, 503, 0.9, "last seen 900 ms ago"},
		{"within a second of a hang", time.Second, func(*Seen) {}, Primary, 503, 1, "does not answer"},
		{"never seen", 0, func(s *Seen) { *s = Seen{} }, Up, 503, -1, "not looked at yet"},
		{"refused", 0, func(s *Seen) { s.Err = &mysql.Error{Class: mysql.ClassRefused, Err: errors.New("x")} }, Up, 503, 0, "refuses connections"},
		{"refused, and then nothing", 3 * time.Second, func(s *Seen) { s.Err = &mysql.Error{Class: mysql.ClassRefused, Err: errors.New("x")} }, Up, 503, 3, "refuses connections"},
		{"replication is older", 0, func(s *Seen) { s.Channels.Began = now.Add(-500 * time.Millisecond) }, Primary, 200, 0.5, "primary"},
		{"replication does not count", 0, func(s *Seen) { s.Channels.Began = now.Add(-time.Hour) }, Up, 200, 0, "answers"},
		{"the clock of the look is ahead", -time.Second, func(*Seen) {}, Up, 200, 0, "answers"},
	} {
		s := good
		c.change(&s)
		a := Judge(Question{About: c.question}, s, now.Add(c.after), DefaultMaxAge)
		if a.Status != c.want || a.Age < c.age-0.001 || a.Age > c.age+0.001 || !strings.Contains(a.Reason, c.words) {
			t.Errorf("%s: got %d, age %v, %q; want %d, %v, %q", c.name, a.Status, a.Age, a.Reason, c.want, c.age, c.words)
		}
	}
}

// TestHearing: when something of a source was last seen to have come.
func TestHearing(t *testing.T) {
	h, began := hearing{}, time.Now()
	base := read.ReplicaChannel{Name: "a", SourceLog: "binlog.1", SourcePos: 4, Received: "x:1", Beats: 1, IORunning: true}
	now := base
	for i, c := range []struct {
		name  string
		to    func(*read.ReplicaChannel)
		heard bool
	}{
		{"the first look", func(*read.ReplicaChannel) {}, true},
		{"nothing", func(*read.ReplicaChannel) {}, false},
		{"a heartbeat", func(c *read.ReplicaChannel) { c.Beats++ }, true},
		{"the applier goes on", func(c *read.ReplicaChannel) { c.Behind, c.RelayPos = 7, 99 }, false},
		{"an event", func(c *read.ReplicaChannel) { c.SourcePos++ }, true},
		{"the receiver stops", func(c *read.ReplicaChannel) { c.IORunning = false }, true},
		{"nothing again", func(*read.ReplicaChannel) {}, false},
		{"it is started", func(c *read.ReplicaChannel) { c.IORunning = true }, true},
	} {
		c.to(&now)
		at := began.Add(time.Duration(i) * time.Second)
		if got := h.look([]read.ReplicaChannel{now}, at)["a"]; got.Equal(at) != c.heard {
			t.Errorf("%s: heard at %s of %s; want now: %v", c.name, got.Sub(began), at.Sub(began), c.heard)
		}
	}
}
