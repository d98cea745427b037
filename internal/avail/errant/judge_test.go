package errant

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// uuids stand for S, the source, R, the replica, O, another replica, and X, a server that nobody knows.
var uuids = map[string]string{"S": "11111111-0000-0000-0000-000000000000", "R": "22222222-0000-0000-0000-000000000000", "O": "33333333-0000-0000-0000-000000000000", "X": "44444444-0000-0000-0000-000000000000"}

func long(text string) string {
	for k, v := range uuids {
		text = strings.ReplaceAll(text, k+":", v+":")
	}
	return text
}

func short(text string) string {
	for k, v := range uuids {
		text = strings.ReplaceAll(text, v, k)
	}
	return text
}

func set(t *testing.T, text string) mysql.GTIDSet {
	t.Helper()
	s, err := mysql.ParseGTIDSet(long(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mysqlReading is a MySQL with GTIDs on; what it executed is as text.
func mysqlReading(name, executed string) Reading {
	r := Reading{Name: name, Identity: uuids[name], UUID: uuids[name], Executed: long(executed), Strict: true, Logs: true, Server: mysql.Of(fleet.ServerOf("9.7.0", "MySQL"))}
	if name == "R" || name == "O" {
		r.Channels = []read.ReplicaChannel{{SourceUUID: uuids["S"], SourceID: "1"}}
	}
	return r
}

// mariaReading is a MariaDB; the source has server_id 1, the replica 2, another one 3.
func mariaReading(name, state string) Reading {
	id := map[string]uint32{"S": 1, "R": 2, "O": 3}[name]
	r := Reading{Name: name, Identity: fmt.Sprint("0-", id), ServerID: id, Executed: state, Strict: true, Logs: true, Server: mysql.Of(fleet.ServerOf("10.11.19-MariaDB", "MariaDB"))}
	if id > 1 {
		r.Channels = []read.ReplicaChannel{{SourceID: "1", SQLRunning: true, IORunning: true, Status: fleet.Channel{IORunning: "Yes", SQLRunning: "Yes"}}}
	}
	return r
}

// told is a verdict in short: kind, sureness and transactions of each part.
func told(v Verdict) string {
	if v.Unknown != "" {
		return "unknown: " + v.Unknown
	}
	var parts []string
	for _, p := range v.Parts {
		parts = append(parts, fmt.Sprintf("%s %s %s", p.Kind, p.Sure, short(p.GTIDs)))
	}
	return strings.Join(parts, "; ")
}

// TestJudge: what is errant, with the source up and down, on both flavours.
func TestJudge(t *testing.T) {
	same := mysqlReading("S", "S:1-9")
	same.Identity = uuids["R"]
	off := mysqlReading("R", "")
	off.Off = true
	owned := mysqlReading("S", "S:1-9")
	owned.Owned = set(t, "S:10")
	received := func(r Reading, text string) Reading { r.Received = set(t, text); return r }
	wasReplica := mariaReading("S", "0-1-20")
	wasReplica.Position = "0-9-15"
	up := func(r Reading) *Reading { return &r }
	inGroup := mysqlReading("S", "S:1-9,X:1-6")
	inGroup.Groups = []string{uuids["X"], "AUTOMATIC"}
	several := func(r Reading, received string) Reading {
		r.Channels = append(r.Channels, read.ReplicaChannel{Name: "o", SourceUUID: uuids["O"], SourceID: "3", Received: long(received)})
		return r
	}
	ring := func(r Reading) Reading {
		r.Channels = []read.ReplicaChannel{{SourceUUID: uuids["R"], SourceID: "2"}}
		return r
	}
	under := func(r Reading, above string) Reading {
		r.Channels = []read.ReplicaChannel{{SourceUUID: uuids[above], SourceID: map[string]string{"R": "2", "O": "3"}[above]}}
		return r
	}
	for _, c := range []struct {
		what   string
		q      Question
		want   string
		always string // a part of a note or a reason; "": none
	}{
		{"nothing", Question{Replica: mysqlReading("R", "S:1-8"), Source: up(mysqlReading("S", "S:1-9"))}, "", ""},
		{"its own", Question{Replica: mysqlReading("R", "S:1-8,R:1-2"), Source: up(mysqlReading("S", "S:1-9"))}, "errant certain R:1-2", "committed on R itself"},
		{"in the midst of a commit", Question{Replica: mysqlReading("R", "S:1-10"), Source: &owned}, "ahead certain S:10", "AFTER_SYNC"},
		{"lost by the source", Question{Replica: mysqlReading("R", "S:1-12"), Source: &owned}, "ahead certain S:10; errant certain S:11-12", "has lost them"},
		{"another's", Question{Replica: mysqlReading("R", "S:1-8,O:1,X:1"), Source: up(mysqlReading("S", "S:1-9")), Others: []Reading{mysqlReading("O", "S:1-8,O:1")}}, "errant certain O:1; errant certain X:1", "a server that was not asked"},
		{"tags", Question{Replica: mysqlReading("R", "S:1-8:t:1-2,R:t:1"), Source: up(mysqlReading("S", "S:1-9:t:1"))}, "errant certain R:t:1; errant certain S:t:2", ""},
		{"down, alone", Question{Replica: received(mysqlReading("R", "S:1-8,R:1,X:1"), "S:5-8"), Unasked: " (gone)"}, "errant likely R:1; unknown not known X:1", "(gone)"},
		{"down, beside one that is behind", Question{Replica: received(mysqlReading("R", "S:1-8,R:1"), "S:5-8"), Others: []Reading{mysqlReading("O", "S:1-6")}}, "ahead certain S:7-8; errant certain R:1", "farther than the others"},
		{"down, beside one that received it", Question{Replica: mysqlReading("R", "S:1-8"), Others: []Reading{received(mysqlReading("O", "S:1-6"), "S:7-8")}}, "", ""},
		{"down, from the source by its UUID only", Question{Replica: mysqlReading("R", "S:1-8"), Others: []Reading{mysqlReading("O", "S:1-6")}}, "ahead likely S:7-8", ""},
		{"down, nobody knows", Question{Replica: mysqlReading("R", "S:1-8,X:1"), Others: []Reading{mysqlReading("O", "S:1-8")}}, "unknown not known X:1", "does not know any more"},
		{"two sources, one asked", Question{Replica: several(mysqlReading("R", "S:1-9,O:1-3,X:1,R:1"), "O:2-3,X:1"), Source: up(mysqlReading("S", "S:1-9"))}, "unknown not known O:2-3,X:1; unknown not known O:1; errant certain R:1", "name all sources"},
		{"two sources, both asked", Question{Replica: several(mysqlReading("R", "S:1-9,O:1-3,R:1"), "O:2-3"), Source: up(mysqlReading("S", "S:1-9")), Also: []Reading{mysqlReading("O", "O:1-4")}}, "errant certain R:1", ""},
		{"a ring", Question{Replica: mysqlReading("R", "S:1-8,R:1-2"), Source: up(ring(mysqlReading("S", "S:1-9,R:1")))}, "ahead likely R:2", "not applied them yet"},
		{"MariaDB, two sources, one asked", Question{Replica: several(mariaReading("R", "0-1-8,1-3-9,0-2-11"), ""), Source: up(mariaReading("S", "0-1-9"))}, "unknown not known 1-3-9; errant certain 0-2-11", ""},
		{"off", Question{Replica: off, Source: &same}, "unknown: GTIDs are off", "risso checksum"},
		{"one server twice", Question{Replica: mysqlReading("R", "S:1"), Source: &same}, "unknown: R and S are one", ""},
		{"no transaction", Question{Replica: mysqlReading("R", "S:1"), Source: up(mysqlReading("S", ""))}, "unknown: S has no transaction", ""},
		{"mixed", Question{Replica: mysqlReading("R", "S:1"), Source: up(mariaReading("S", "0-1-1"))}, "unknown: one of both is a MariaDB", ""},
		{"not its replica", Question{Replica: mysqlReading("R", "S:1,O:1"), Source: up(mysqlReading("O", "O:1"))}, "errant certain S:1", "does not replicate from O"},
		{"MariaDB, nothing", Question{Replica: mariaReading("R", "0-1-8"), Source: up(mariaReading("S", "0-1-9"))}, "", ""},
		{"MariaDB, its own", Question{Replica: mariaReading("R", "0-1-8,0-2-11"), Source: up(mariaReading("S", "0-1-20"))}, "errant certain 0-2-11", "committed on R itself"},
		{"MariaDB, the same number", Question{Replica: mariaReading("R", "0-2-9"), Source: up(mariaReading("S", "0-1-9"))}, "errant certain 0-2-9", ""},
		{"MariaDB, lost by the source", Question{Replica: mariaReading("R", "0-1-12"), Source: up(mariaReading("S", "0-1-9"))}, "errant certain 0-1-12", "has lost them"},
		{"MariaDB, a source whose log begins late", Question{Replica: mariaReading("R", "0-1-12,0-9-15,0-2-16"), Source: &wasReplica}, "errant likely 0-9-15; errant certain 0-2-16", "gtid_slave_pos"},
		{"MariaDB, a domain that the source deleted", Question{Replica: mariaReading("R", "0-1-12,5-1-7,6-9-2,7-2-3"), Source: up(mariaReading("S", "0-1-12"))}, "errant likely 5-1-7,6-9-2; errant certain 7-2-3", "DELETE_DOMAIN_ID"},
		{"it was the primary, and others have what it wrote", Question{Replica: mysqlReading("R", "R:1-100,S:1-8"), Source: up(mysqlReading("S", "R:1-100,S:1-9"))}, "", ""},
		{"it was the primary, and wrote one more before it died", Question{Replica: mysqlReading("R", "R:1-101,S:1-8"), Source: up(mysqlReading("S", "R:1-100,S:1-9"))}, "errant certain R:101", ""},
		{"below a source that is a replica, and late", Question{Replica: mysqlReading("R", "X:1-90,S:1-8"), Source: up(mysqlReading("S", "X:1-99,S:1-8"))}, "", ""},
		{"an interval in the midst", Question{Replica: mysqlReading("R", "S:1-9,R:5"), Source: up(mysqlReading("S", "S:1-9,R:1-4:6-9"))}, "errant certain R:5", ""},
		{"the last number that there is", Question{Replica: mysqlReading("R", "S:1-9,R:9223372036854775806"), Source: up(mysqlReading("S", "S:1-9"))}, "errant certain R:9223372036854775806", ""},
		{"the number of a group that the source is in", Question{Replica: mysqlReading("R", "S:1-9,X:7"), Source: up(inGroup)}, "errant certain X:7", "has lost them"},
		{"MariaDB whose server_id was another one", Question{Replica: mariaReading("R", "0-1-8,0-77-5"), Source: up(mariaReading("S", "0-77-5,0-1-9"))}, "", ""},
		{"MariaDB, a domain of its own", Question{Replica: mariaReading("R", "0-1-8,2-2-5"), Source: up(mariaReading("S", "0-1-9"))}, "errant certain 2-2-5", "committed on R itself"},
		{"MariaDB, down", Question{Replica: mariaReading("R", "0-1-12,0-2-13,0-7-14"), Others: []Reading{mariaReading("O", "0-1-10")}}, "errant certain 0-2-13; ahead likely 0-1-12; unknown not known 0-7-14", ""},
		{"MariaDB, down, alone", Question{Replica: mariaReading("R", "0-1-12,0-2-13")}, "errant likely 0-2-13", "no other server was asked"},
		{"down, beside its own replica", Question{Replica: mysqlReading("R", "S:1-8,R:1"), Others: []Reading{under(mysqlReading("O", "S:1-8,R:1"), "R")}}, "errant likely R:1", "O replicates from R"},
		{"down, beside its replica's replica", Question{Replica: mysqlReading("R", "S:1-8,R:1"), Others: []Reading{under(mysqlReading("X", "S:1-8,R:1"), "O"), under(mysqlReading("O", "S:1-8,R:1"), "R")}}, "errant likely R:1", "X replicates from R"},
		{"down, beside its replica and one more", Question{Replica: mysqlReading("R", "S:1-8,R:1"), Others: []Reading{under(mysqlReading("X", "S:1-8,R:1"), "R"), mysqlReading("O", "S:1-8")}}, "errant certain R:1", ""},
		{"down, alone, without writes of its own", Question{Replica: mysqlReading("R", "S:1-8")}, "unknown: neither its source", ""},
		{"MariaDB, down, beside its own replica", Question{Replica: mariaReading("R", "0-1-12,0-2-13"), Others: []Reading{under(mariaReading("O", "0-1-12,0-2-13"), "R")}}, "errant likely 0-2-13", "O replicates from R"},
	} {
		v, err := Judge(c.q)
		got := told(v)
		if err != nil || got != c.want && !(v.Unknown != "" && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: got %q, %v, want %q", c.what, got, err, c.want)
		}
		all := v.Unknown + strings.Join(v.Notes, " ")
		for _, p := range v.Parts {
			all += p.Because
		}
		if !strings.Contains(all, c.always) {
			t.Errorf("%s: got %q, want %q in it", c.what, all, c.always)
		}
	}
}

// TestMakePlan: which way a repair takes, and when there is none.
func TestMakePlan(t *testing.T) {
	rows := Transaction{Changes: []Change{{Table: "a.t", Kind: "delete", Rows: 3}}}
	ddl := Transaction{Changes: []Change{{Table: "a.t", Kind: "alter"}}}
	grant := Transaction{Changes: []Change{{Kind: "other"}}, Statements: []string{"GRANT"}}
	analyze := Transaction{Changes: []Change{{Table: "a.t", Kind: "other"}}, Statements: []string{"ANALYZE TABLE a.t"}}
	revoke := Transaction{Changes: []Change{{Table: "a.u", Kind: "other"}}, Statements: []string{"REVOKE SELECT ON a.t FROM u"}}
	change := func(r Reading, f func(*Reading)) Reading { f(&r); return r }
	replica, source := mysqlReading("R", "S:1-8,R:1-2"), mysqlReading("S", "S:1-9")
	maria, from := change(mariaReading("R", "0-1-8,0-2-11"), func(r *Reading) { r.Position = "0-1-8" }), mariaReading("S", "0-1-9")
	late := change(maria, func(r *Reading) {
		r.Channels = slices.Clone(r.Channels)
		r.Channels[0].Received, r.Channels[0].Delay = "0-1-9", 3600
	})
	for _, c := range []struct {
		what            string
		replica, source Reading
		did             []Transaction
		unseen          string
		equal           bool
		method          Method // "": refused
		says            string // in its reason or error
		steps           int
	}{
		{"nothing", mysqlReading("R", "S:1"), source, nil, "", false, MethodNone, "", 0},
		{"empty ones", replica, source, nil, "", false, MethodEmpty, "as empty transactions", 2},
		{"rows", replica, source, []Transaction{rows, analyze}, "", false, MethodEmpty, "", 2},
		{"a definition", replica, source, []Transaction{rows, ddl}, "", false, MethodRebuild, "changed more than rows (alter a.t)", 0},
		{"a definition that was compared", replica, source, []Transaction{ddl}, "", true, MethodEmpty, "", 2},
		{"a privilege", replica, source, []Transaction{grant}, "", false, MethodRebuild, "(GRANT)", 0},
		{"a privilege that looks like a query", replica, source, []Transaction{revoke}, "", false, MethodRebuild, "(REVOKE SELECT ON a.t FROM u)", 0},
		{"a source that lost its own", mysqlReading("R", "S:1-12"), source, []Transaction{rows}, "", true, MethodRebuild, "committed " + long("S:10-12") + " itself and has lost them", 0},
		{"MariaDB whose source has purged what it received", late, change(from, func(r *Reading) { r.Gone = "0-1-9" }), []Transaction{rows}, "", false, "", "let it apply that first", 0},
		{"MariaDB whose source still has it", late, change(from, func(r *Reading) { r.Gone = "0-1-8" }), []Transaction{rows}, "", false, MethodForget, "forgets", 8},
		{"MariaDB that knows nothing of a domain", maria, change(from, func(r *Reading) { r.Gone = "0-1-8,5-1-1" }), []Transaction{rows}, "", false, "", "begin behind 5-1-1", 0},
		{"a group's number that the source lost", mysqlReading("R", "S:1-9,X:7"), change(source, func(r *Reading) { r.Groups = []string{uuids["X"]} }), []Transaction{rows}, "", true, MethodRebuild, "gives their numbers", 0},
		{"the end of an XA transaction", replica, source, []Transaction{{Changes: []Change{}, Statements: []string{"XA COMMIT X'78',X'',1"}}}, "", false, MethodRebuild, "had prepared (XA COMMIT X'78',X'',1)", 0},
		{"an XA transaction that was rolled back", replica, source, []Transaction{{Changes: []Change{}, Statements: []string{"XA ROLLBACK X'78',X'',1"}}}, "", false, MethodEmpty, "", 2},
		{"purged", replica, source, nil, "its binary logs are gone", false, MethodRebuild, "nobody can say", 0},
		{"a source that is a replica", replica, change(source, func(r *Reading) { r.Channels = replica.Channels }), nil, "", false, "", "name the primary", 0},
		{"a source that is read only", replica, change(source, func(r *Reading) { r.ReadOnly = true }), nil, "", false, "", "read only", 0},
		{"another source", replica, mysqlReading("O", "O:1"), nil, "", false, "", "does not replicate from", 0},
		{"too many", mysqlReading("R", "R:1-10001"), source, nil, "", false, MethodRebuild, "10001", 0},
		{"GTIDs off", change(replica, func(r *Reading) { r.Off = true }), source, nil, "", false, "", "GTIDs are off", 0},
		{"MariaDB", maria, from, []Transaction{rows}, "", false, MethodForget, "forgets", 8},
		{"several sources", change(replica, func(r *Reading) {
			r.Channels = append(r.Channels, read.ReplicaChannel{SourceUUID: uuids["O"], Received: long("O:1")})
		}), source, nil, "", false, "", "replicates from 2 servers", 0},
		{"MariaDB whose position is lost", change(mariaReading("R", "0-1-12"), func(r *Reading) { r.Position = "0-1-12" }), from, nil, "", false, MethodRebuild, "has lost them", 0},
		{"MariaDB with replicas", change(maria, func(r *Reading) { r.Replicas = 1 }), from, nil, "", false, MethodBelow, "1 session", 0},
		{"MariaDB whose replicas are not known", change(maria, func(r *Reading) { r.Replicas = -1 }), from, nil, "", false, "", "PROCESS", 0},
		{"MariaDB, not certain", maria, change(from, func(r *Reading) { r.Position = "0-9-90" }), nil, "", false, "", "not certain", 0},
	} {
		v, err := Judge(Question{Replica: c.replica, Source: &c.source})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range v.Errant() {
			p.Transactions, p.Unseen = c.did, c.unseen
		}
		p, err := MakePlan(&v, &c.replica, &c.source, Wanted{RowsEqual: c.equal, Replica: "R", Source: "S"}, time.Now())
		text := p.Because
		if err != nil {
			text = err.Error()
		}
		if (err != nil) != (c.method == "") || err == nil && (p.Method != c.method || len(p.Steps) != c.steps) || !strings.Contains(text, c.says) {
			t.Errorf("%s: got %s, %d steps, %q, want %s, %d steps, %q", c.what, p.Method, len(p.Steps), text, c.method, c.steps, c.says)
		}
		if err != nil && !errors.Is(err, ErrRefused) {
			t.Errorf("%s: got %v, want ErrRefused", c.what, err)
		}
		if differs := p.Same(&p); len(differs) > 0 {
			t.Errorf("%s: got %v beside itself", c.what, differs)
		}
	}
}

// TestStale: a plan is the same while only positions go on, and is not when anything else changes.
func TestStale(t *testing.T) {
	plan := func(replica, source Reading) *Plan {
		v, err := Judge(Question{Replica: replica, Source: &source})
		if err != nil {
			t.Fatal(err)
		}
		p, err := MakePlan(&v, &replica, &source, Wanted{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return &p
	}
	at := func(state, position string) Reading {
		r := mariaReading("R", state)
		r.Position = position
		return r
	}
	saved := plan(at("0-1-8,0-2-11", "0-1-8"), mariaReading("S", "0-1-9"))
	if d := saved.Same(plan(at("0-1-10,0-2-11", "0-1-10"), mariaReading("S", "0-1-19"))); len(d) > 0 {
		t.Errorf("positions have gone on: got %v", d)
	}
	other := mariaReading("S", "0-1-9")
	other.Identity = "0-77"
	for what, now := range map[string]*Plan{
		"what is errant": plan(at("0-1-8,0-2-12", "0-1-8"), mariaReading("S", "0-1-9")), "what that comes behind": plan(at("0-1-8,0-2-11", "0-1-8"), mariaReading("S", "0-1-9,0-2-10")),
		"the source": plan(at("0-1-8,0-2-11", "0-1-8"), other), "the way to mend it": plan(at("0-1-8", "0-1-8"), mariaReading("S", "0-1-9")),
	} {
		if d := strings.Join(saved.Same(now), "; "); !strings.Contains(d, what+" was ") {
			t.Errorf("%s: got %q", what, d)
		}
	}
	if _, err := ReadPlan([]byte(`{"version": 7}`)); err == nil {
		t.Error("a plan of another version: got no error")
	}
	if _, err := ReadPlan([]byte(`x`)); err == nil {
		t.Error("no plan: got no error")
	}
}

// TestLocate: where a transaction is, by what a server told and by what its logs gave.
func TestLocate(t *testing.T) {
	r := mysqlReading("R", "S:1-9")
	r.Purged, r.Received, r.Owned = set(t, "S:1-3"), set(t, "S:4-11"), set(t, "R:1")
	m := mariaReading("R", "0-1-20,0-2-9")
	m.Position = "0-1-20,1-1-5"
	waits := m
	waits.Channels = []read.ReplicaChannel{{SourceID: "1", Received: "0-1-24,1-1-5"}}
	parse := func(s string) mysql.GTID {
		g, err := mysql.ParseGTID(long(s))
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for _, c := range []struct {
		r    Reading
		gtid string
		seen Seen
		err  error
		want State
	}{
		{r, "S:5", Seen{Transactions: []Transaction{{GTID: parse("S:5")}}}, nil, InLog}, {r, "S:2", Seen{}, nil, Purged}, {r, "S:7", Seen{}, nil, Applied}, {r, "S:7", Seen{Incomplete: true}, nil, NotTold}, {r, "S:7", Seen{}, errors.New("x"), NotTold},
		{r, "S:11", Seen{}, nil, Received}, {r, "R:1", Seen{}, nil, Begun}, {r, "R:2", Seen{}, nil, Never}, {r, "0-1-1", Seen{}, nil, Never},
		{waits, "0-1-22", Seen{}, nil, Received}, {waits, "0-1-24", Seen{}, nil, Received}, {waits, "0-1-25", Seen{}, nil, Never}, {waits, "0-3-22", Seen{}, nil, NotTold}, {waits, "1-1-5", Seen{}, nil, Applied}, {waits, "0-1-7", Seen{}, nil, Purged},
		{m, "0-1-7", Seen{}, nil, Purged}, {m, "0-1-7", Seen{Incomplete: true}, nil, NotTold}, {m, "0-1-21", Seen{}, nil, Never}, {m, "1-1-4", Seen{}, nil, Applied}, {m, "0-3-8", Seen{}, nil, NotTold}, {m, "0-3-99", Seen{}, nil, Never}, {m, "0-2-9", Seen{Transactions: []Transaction{{GTID: parse("0-2-9")}}}, nil, InLog},
	} {
		got := Locate(&c.r, []mysql.GTID{parse(c.gtid)}, c.seen, c.err)
		if len(got) != 1 || got[0].State != c.want {
			t.Errorf("%s: got %+v, want %s", c.gtid, got, c.want)
		}
	}
}
