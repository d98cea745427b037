package topology

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// world is servers that are made up, by their addresses: what cannot be had by the hundred, or does not stand still. Real ones are in package look.
type world map[string]Facts

var errRefused, errSlow = errors.New("refused"), errors.New("slow")

func (w world) search() *Search {
	return &Search{
		Look: func(ctx context.Context, address string) (Facts, error) {
			f, is := w[address]
			switch {
			case !is:
				return Facts{}, errRefused
			case f.DataDir == "/hangs":
				<-ctx.Done()
				return Facts{}, errSlow
			}
			return f, nil
		},
		Again: func(_ context.Context, address string) (string, error) { return w[address].GTID.Executed, nil },
		Failed: func(err error) Failure {
			if errors.Is(err, errSlow) {
				return Failure{Kind: "timeout", Text: "slow"}
			}
			return Failure{Kind: "refused", Text: "refused"}
		},
		Patience: 50 * time.Millisecond,
	}
}

func (w world) find(addresses ...string) *Topology {
	var starts []Start
	for _, a := range addresses {
		starts = append(starts, Start{Address: a})
	}
	return w.search().Discover(context.Background(), starts)
}

// made is a server with a number, as its UUID and server_id, with the numbers of its sources, whose addresses are db<number>:3306.
func made(number int, sources ...int) Facts {
	f := Facts{Server: fleet.ServerOf("9.7.0", ""), UUID: fmt.Sprint("u", number), ServerID: fmt.Sprint(number), Hostname: fmt.Sprint("db", number), Port: 3306, DataDir: "/d"}
	for _, s := range sources {
		zero := 0
		f.Channels = append(f.Channels, Channel{Channel: fleet.Channel{Source: fmt.Sprintf("db%d:3306", s), SourceID: fmt.Sprint("u", s), IORunning: "Yes", SQLRunning: "Yes"},
			SourceServerID: fmt.Sprint(s), Behind: &zero})
	}
	return f
}

// with changes a made server.
func (f Facts) with(change func(*Facts)) Facts { change(&f); return f }

// lists adds a replica that the server lists.
func lists(number int, host string) func(*Facts) {
	return func(f *Facts) {
		f.Listed = append(f.Listed, Listed{ServerID: fmt.Sprint(number), UUID: fmt.Sprint("u", number), Host: host, Port: 3306})
	}
}

// TestDiscover: whatever servers tell of each other, and whoever answers, what is found is drawn, and what is not is drawn as not seen.
func TestDiscover(t *testing.T) {
	for _, c := range []struct {
		name  string
		world world
		from  []string
		want  string // the tree; then the surprises
	}{
		{"up from the last of a chain", world{"db1:3306": made(1), "db2:3306": made(2, 1), "db3:3306": made(3, 2)}, []string{"db3:3306"},
			`
db1  primary, writable
└─ db2  writable, 0 s behind
   └─ db3  writable, 0 s behind`},
		{"down by what sources list", world{"db1:3306": made(1).with(lists(2, "db2")), "db2:3306": made(2, 1).with(lists(3, "db3")), "db3:3306": made(3, 2)}, []string{"db1:3306"}, `
db1  primary, writable
└─ db2  writable, 0 s behind
   └─ db3  writable, 0 s behind`},
		{"by connections, where no report_host is set", world{"db1:3306": made(1).with(lists(2, "")).with(func(f *Facts) { f.Readers = []string{"10.0.0.9", "db2"} }), "db2:3306": made(2, 1)},
			[]string{"db1:3306"}, `
db1  primary, writable
└─ db2  writable, 0 s behind`},
		{"a ring", world{"db1:3306": made(1, 3), "db2:3306": made(2, 1), "db3:3306": made(3, 2)}, []string{"db2:3306"}, `
db1  writable, in a ring of 3
└─ db2  writable, in a ring of 3, 0 s behind
   └─ db3  writable, in a ring of 3, 0 s behind
      └─ db1  0 s behind, drawn above`},
		{"two sources", world{"db1:3306": made(1), "db2:3306": made(2), "db3:3306": made(3, 1, 2)}, []string{"db3:3306"}, `
db1  primary, writable
└─ db3  writable, 0 s behind, also from db2
db2  primary, writable
└─ db3  0 s behind, drawn above`},
		{"detached by Risso", world{"db1:3306": made(1), "db2:3306": made(2, 1).with(func(f *Facts) {
			f.Channels[0].Source, f.Channels[0].SourceID, f.Channels[0].IORunning, f.Channels[0].SQLRunning = "db1.detached.invalid:3306", "", "No", "No"
		})}, []string{"db2:3306"}, `
db1.detached.invalid  not seen: a name that leads nowhere, by which Risso keeps a replica from its source
└─ db2  writable, detached by risso from db1`},
		{"a primary whose channel was left over", world{"db2:3306": made(2, 9).with(func(f *Facts) { f.Channels[0].IORunning, f.Channels[0].SQLRunning = "No", "No" }), "db3:3306": made(3, 2)}, []string{"db3:3306"}, `
db9  not seen: nothing listens there
└─ db2  likely the primary, writable, stopped
   └─ db3  writable, 0 s behind`},
		{"a wrong report_host", world{"db1:3306": made(1).with(lists(2, "192.0.2.55")).with(func(f *Facts) { f.Readers = []string{"10.0.0.9", "10.0.0.8"} }), "10.0.0.9:3306": made(2, 1), "10.0.0.8:3306": made(7)},
			[]string{"db1:3306"}, `
db1  primary, writable
└─ 10.0.0.9  writable, 0 s behind`},
		{"a wrong report_host and report_port", world{"db1:3306": made(1).with(lists(2, "192.0.2.55")).with(func(f *Facts) { f.Listed[0].Port = 1; f.Readers = []string{"10.0.0.9"} }), "10.0.0.9:3306": made(2, 1)},
			[]string{"db1:3306"}, `
db1  primary, writable
└─ 10.0.0.9  writable, 0 s behind`},
		{"a wrong report_host of a MariaDB", world{"db1:3306": made(1).with(noUUID).with(lists(2, "192.0.2.55")).with(func(f *Facts) { f.Listed[0].UUID = ""; f.Readers = []string{"10.0.0.9"} }), "10.0.0.9:3306": made(2, 1).with(noUUID)},
			[]string{"db1:3306"}, `
db1  MariaDB 10.11.9, primary, writable
└─ 10.0.0.9  MariaDB 10.11.9, writable, 0 s behind`},
		{"a wrong report_host, and somebody else where it connects from", world{"db1:3306": made(1).with(lists(2, "192.0.2.55")).with(func(f *Facts) { f.Readers = []string{"10.0.0.8"} }), "10.0.0.8:3306": made(7)},
			[]string{"db1:3306"}, `
db1  primary, writable
└─ 192.0.2.55  not seen: nothing listens there; its source lists it, perhaps still`},
		{"itself", world{"db1:3306": made(1, 1)}, []string{"db1:3306"}, `
db1  writable
└─ db1  0 s behind, drawn above`},
		{"one that hangs in the midst", world{"db1:3306": made(1), "db2:3306": made(2, 1).with(func(f *Facts) { f.DataDir = "/hangs" }), "db3:3306": made(3, 2)}, []string{"db3:3306", "db1:3306"}, `
db1  writable
db2  not seen: no answer in time
└─ db3  writable, 0 s behind`},
		{"a replica of one that is gone", world{"db3:3306": made(3, 2)}, []string{"db3:3306"}, `
db2  not seen: nothing listens there
└─ db3  writable, 0 s behind`},
		{"nobody answers", world{}, []string{"db1:3306"}, `
db1  not seen: nothing listens there`},
		{"a lie about report_host", world{"db1:3306": made(1).with(lists(2, "db3")), "db3:3306": made(3, 1)}, []string{"db1:3306"}, `
db1  primary, writable
├─ db3  writable, 0 s behind
└─ server_id 2 behind db3  not seen: another server answers at db3; its source lists it, perhaps still
! db1:3306 tells of a replica with server_uuid u2 at db3:3306, where one with server_uuid u3 answers`},
		{"a listed one that follows nobody", world{"db1:3306": made(1).with(lists(2, "db2")), "db2:3306": made(2)}, []string{"db1:3306"}, `
db1  writable
db2  writable
! db1:3306 lists db2:3306 as its replica, which says that it does not replicate from there`},
		{"a copied data directory", world{"db1:3306": made(1), "db2:3306": made(2, 1), "db9:3306": made(2, 1).with(func(f *Facts) { f.Hostname = "db9" })}, []string{"db2:3306", "db9:3306"}, `
db1  primary, writable
├─ db2  writable, 0 s behind
└─ db9  writable, 0 s behind`},
		{"a copy beside a source that may be dead", world{"db9:3306": made(1).with(func(f *Facts) { f.Hostname = "db9" }), "db2:3306": made(2, 1).with(func(f *Facts) { f.Channels[0].IORunning = "Connecting" })}, []string{"db9:3306", "db2:3306"}, `
db9  primary, writable
└─ db2  writable, connecting
! db2:3306 does not receive from its source at db1:3306, where nobody answers; one with the same server_uuid answers at db9:3306`},
		{"the source itself, under another address", world{"db9:3306": made(1).with(func(f *Facts) { f.Hostname = "db9" }), "db2:3306": made(2, 1)}, []string{"db9:3306", "db2:3306"}, `
db9  primary, writable
└─ db2  writable, 0 s behind`},
		{"another MariaDB with the same server_id and port", world{"db7:3306": made(5).with(noUUID), "db2:3306": made(2, 1).with(noUUID).with(func(f *Facts) { f.Channels[0].SourceServerID = "5" })}, []string{"db2:3306", "db7:3306"}, `
db1  not seen: nothing listens there
└─ db2  MariaDB 10.11.9, writable, 0 s behind
db7  MariaDB 10.11.9, writable`},
		{"one server with two addresses", world{"db1:3306": made(1), "vip:3306": made(1), "db2:3306": made(2, 1)}, []string{"db2:3306", "vip:3306"}, `
vip  primary, writable
└─ db2  writable, 0 s behind`},
		{"an address that leads to another server by now", world{"db1:3306": made(7), "db2:3306": made(2, 1)}, []string{"db2:3306"}, `
db1  writable
server_id 1 behind db1  not seen: another server answers at db1
└─ db2  writable, 0 s behind
! db2:3306 tells of the source with server_uuid u1 at db1:3306, where one with server_uuid u7 answers`},
		{"IPv6, and its own machine", world{"[fd00::1]:3306": made(1), "[fd00::1]:3307": made(2, 1).with(func(f *Facts) {
			f.Port, f.Hostname, f.Channels[0].Source = 3307, "db1", "[::1]:3306"
		})}, []string{"[fd00::1]:3307"}, `
[fd00::1]  primary, writable
└─ [fd00::1]:3307  writable, 0 s behind`},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := c.world.find(c.from...)
			got := strings.NewReplacer("MySQL 9.7.0, ", "", ":3306", "").Replace(top.Tree(0))
			for _, s := range top.Surprises {
				got += "! " + s.Text + "\n"
			}
			got = blanks.ReplaceAllString(strings.TrimSuffix(got, "\n"), "$1  ")
			if got != strings.TrimPrefix(c.want, "\n") {
				t.Errorf("got\n%s\nwant%s", got, c.want)
			}
		})
	}
}

// noUUID makes a MariaDB of a made server.
func noUUID(f *Facts) {
	f.Server, f.UUID = fleet.ServerOf("10.11.9-MariaDB", ""), ""
	for i := range f.Channels {
		f.Channels[i].SourceID = ""
	}
}

// TestAlone: only the given servers are asked; what links them is drawn, and others of which they tell as not asked.
func TestAlone(t *testing.T) {
	w := world{"db1:3306": made(1).with(lists(2, "db2")), "db2:3306": made(2, 1), "db3:3306": made(3, 2)}
	s := w.search()
	s.Alone = true
	top := s.Discover(t.Context(), []Start{{Address: "db1:3306"}, {Address: "db2:3306"}})
	if len(top.Nodes) != 2 || len(top.Links) != 1 || top.Links[0].Channel == nil {
		t.Errorf("a primary and its replica: got\n%s", top.Tree(0))
	}
	top = s.Discover(t.Context(), []Start{{Address: "db3:3306"}})
	if i := top.Find("db2:3306"); len(top.Nodes) != 2 || i < 0 || top.Nodes[i].Seen || top.Nodes[i].Unseen.Kind != "not_asked" {
		t.Errorf("a replica without its source: got\n%s", top.Tree(0))
	}
}

// TestDOT: names of servers move no terminal's cursor, and end no string.
func TestDOT(t *testing.T) {
	odd := "a\x1b[2J\r\u202e\"]; x [label=\"\\"
	top := &Topology{Nodes: []Node{{Name: odd}, {Name: "b", Facts: Facts{Group: &Group{Name: odd, Title: odd}}}}, Links: []Link{{Replica: 1, Source: 0, Channel: &Channel{Channel: fleet.Channel{Name: odd}}}}}
	if got := top.DOT(); strings.ContainsAny(got, "\x1b\r\u202e") || strings.Count(got, `\"]; x [label=\"\\`) != 4 {
		t.Errorf("got\n%q", got)
	}
}

// TestCopyFirst: a copy of the primary's data directory that answers first does not keep the primary from being asked.
func TestCopyFirst(t *testing.T) {
	w := world{"db1:3306": made(1), "db9:3306": made(1).with(func(f *Facts) { f.Hostname = "db9" }), "db2:3306": made(2, 1)}
	s := w.search()
	s.Parallel = 1
	top := s.Discover(t.Context(), []Start{{Address: "db9:3306"}, {Address: "db2:3306"}})
	if len(top.Nodes) != 3 || len(top.Links) != 1 || top.Nodes[top.Links[0].Source].Name != "db1:3306" {
		t.Errorf("got\n%s", top.Tree(0))
	}
}

// TestFrozen: a channel that stays where it is while its source has more is frozen; one to which something comes is only late.
func TestFrozen(t *testing.T) {
	at := func(pos int64) []Channel {
		ch := made(2, 1).Channels[0]
		ch.SourceLog, ch.SourcePos = "binlog.000007", pos
		return []Channel{ch}
	}
	for name, c := range map[string]struct {
		then   []int64 // where it is when it is asked again
		frozen bool
	}{"stays": {[]int64{100, 100}, true}, "comes": {[]int64{200, 300}, false}, "stays, and then comes": {[]int64{100, 300}, false}, "comes, and then stays": {[]int64{300, 300}, true}, "comes at once": {[]int64{1000}, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world{"db1:3306": made(1).with(func(f *Facts) { f.Log.File, f.Log.Pos = "binlog.000007", 1000 }), "db2:3306": made(2).with(func(f *Facts) { f.Channels = at(100) })}
			s := w.search()
			s.Received = func(context.Context, string) ([]Channel, error) {
				pos := c.then[0]
				c.then = c.then[1:]
				return at(pos), nil
			}
			if got := s.Discover(t.Context(), []Start{{Address: "db2:3306"}}).Links[0].Frozen; (got >= thaw) != c.frozen || got != 0 && !c.frozen {
				t.Errorf("got %s, want frozen %v", got, c.frozen)
			}
		})
	}
}

var blanks = regexp.MustCompile(`([\w\]])  +`)

// TestErrant: what a replica has and none of its sources is errant; in a ring its servers' own transactions are on their way.
func TestErrant(t *testing.T) {
	const a, b, c = "aaaaaaaa-0000-0000-0000-000000000001", "bbbbbbbb-0000-0000-0000-000000000002", "cccccccc-0000-0000-0000-000000000003"
	mysqls := func(uuid, executed string) func(*Facts) {
		return func(f *Facts) {
			f.UUID, f.GTID.Executed, f.GTID.Mode = uuid, executed, "ON"
			for i := range f.Channels {
				f.Channels[i].SourceID = ""
			}
		}
	}
	marias := func(state string) func(*Facts) {
		return func(f *Facts) {
			f.Server, f.UUID = fleet.ServerOf("10.11.9-MariaDB", ""), ""
			f.GTID = GTIDs{ByDomain: true, State: state, Executed: state, Logged: state, Applied: state}
			for i := range f.Channels {
				f.Channels[i].SourceID = ""
			}
		}
	}
	for _, c := range []struct {
		name     string
		world    world
		errant   string
		compared bool
		missing  string // of db2's first link
	}{
		{"none", world{"db1:3306": made(1).with(mysqls(a, a+":1-9")), "db2:3306": made(2, 1).with(mysqls(b, a+":1-7"))}, "", true, "2"},
		{"one", world{"db1:3306": made(1).with(mysqls(a, a+":1-9")), "db2:3306": made(2, 1).with(mysqls(b, a+":1-9,"+b+":1-2"))}, b + ":1-2", true, "0"},
		{"its source has nothing", world{"db1:3306": made(1).with(mysqls(a, "")), "db2:3306": made(2, 1).with(mysqls(b, b+":1-2"))}, b + ":1-2", true, "0"},
		{"two sources", world{"db1:3306": made(1).with(mysqls(a, a+":1-9")), "db3:3306": made(3).with(mysqls(c, c+":1-5")), "db2:3306": made(2, 1, 3).with(mysqls(b, a+":1-9,"+c+":1-6"))}, c + ":6", true, "0"},
		{"two sources, one not seen", world{"db1:3306": made(1).with(mysqls(a, a+":1-9")), "db2:3306": made(2, 1, 3).with(mysqls(b, a+":1-9,"+c+":1-6"))}, "", false, "0"},
		{"a ring", world{"db1:3306": made(1, 2).with(mysqls(a, a+":1-9,"+b+":1-4")), "db2:3306": made(2, 1).with(mysqls(b, a+":1-9,"+b+":1-5,"+c+":1"))}, c + ":1", true, "0"},
		{"MariaDB, none", world{"db1:3306": made(1).with(marias("0-1-9")), "db2:3306": made(2, 1).with(marias("0-1-7"))}, "", true, "2"},
		{"MariaDB, one", world{"db1:3306": made(1).with(marias("0-1-9")), "db2:3306": made(2, 1).with(marias("0-1-9,0-2-10"))}, "0-2-10", true, "0"},
		{"MariaDB, two sources", world{"db1:3306": made(1).with(marias("0-1-9")), "db3:3306": made(3).with(marias("5-3-5")), "db2:3306": made(2, 1, 3).with(marias("0-1-9,5-3-5"))}, "", true, "0"},
		{"MariaDB, a ring", world{"db1:3306": made(1, 2).with(marias("0-1-9")), "db2:3306": made(2, 1).with(marias("0-1-9,0-2-10,0-7-4"))}, "0-7-4", true, "0"},
		{"beside each other", world{"db1:3306": made(1).with(mysqls(a, a+":1-9")), "db2:3306": made(2, 1).with(marias("0-1-9"))}, "", false, "?"},
	} {
		top := c.world.find("db1:3306", "db2:3306")
		i := top.Find("db2:3306")
		n, missing := top.Nodes[i], "?"
		if m := top.Sources(i)[0].Missing; m != nil {
			missing = fmt.Sprint(*m)
		}
		if n.Errant != c.errant || n.Compared != c.compared || missing != c.missing {
			t.Errorf("%s: got errant %q, compared %v, missing %s; want %q, %v, %s\n%s", c.name, n.Errant, n.Compared, missing, c.errant, c.compared, c.missing, top.Tree(0))
		}
	}
}

// TestUncounted: what a source has sent, and counts some time later, is not errant on its replica.
func TestUncounted(t *testing.T) {
	const a = "aaaaaaaa-0000-0000-0000-000000000001"
	for later, want := range map[int]string{0: "", 2: "", 3: "", 1000: a + ":10"} {
		w := world{"db1:3306": made(1), "db2:3306": made(2, 1)}
		for address, executed := range map[string]string{"db1:3306": a + ":1-9", "db2:3306": a + ":1-10"} {
			f := w[address]
			f.GTID.Executed, f.GTID.Mode = executed, "ON"
			w[address] = f
		}
		s, asked := w.search(), 0
		s.Again = func(context.Context, string) (string, error) {
			if asked++; asked > later {
				return a + ":1-10", nil
			}
			return a + ":1-9", nil
		}
		top := s.Discover(t.Context(), []Start{{Address: "db1:3306"}, {Address: "db2:3306"}})
		if got := top.Nodes[top.Find("db2:3306")].Errant; got != want {
			t.Errorf("counted after %d answers: got errant %q, want %q", later, got, want)
		}
	}
}

// TestManyAddresses: a search that is told of ever more addresses ends.
func TestManyAddresses(t *testing.T) {
	w := world{}
	for i := range 50 {
		w[fmt.Sprintf("db%d:3306", i)] = made(i, i+1)
	}
	s := w.search()
	s.Most = 20
	if got := s.Discover(t.Context(), []Start{{Address: "db0:3306"}}); len(got.Nodes) != 21 || got.Left != 1 || got.Nodes[got.Find("db20:3306")].Seen {
		t.Errorf("got %d nodes, %d left; want 21 and 1, the last of them not seen", len(got.Nodes), got.Left)
	}
}

// TestReach: addresses that are not those by which servers are reached from here are asked by others, and called by their own.
func TestReach(t *testing.T) {
	w := world{"nat:13306": made(1).with(lists(2, "db2")), "10.0.0.2:3306": made(2, 1)}
	s := w.search()
	s.Reach = map[string]string{"db1:3306": "nat:13306", "db2": "10.0.0.2"}
	got := s.Discover(t.Context(), []Start{{Address: "db1:3306"}})
	if len(got.Nodes) != 2 || got.Nodes[0].Name != "db1:3306" || got.Nodes[1].Name != "db2:3306" || !got.Nodes[0].Seen || !got.Nodes[1].Seen || len(got.Links) != 1 {
		t.Errorf("got\n%s", got.Tree(0))
	}
}
