package picture_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/avail/topology/picture"
	"github.com/rissodb/risso/internal/fleet"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func node(name string, writable bool) topology.Node {
	return topology.Node{Name: name, Addresses: []string{name + ":3306"}, Seen: true, Asked: true, Facts: topology.Facts{UUID: "uuid-" + name, ServerID: name,
		Server: fleet.Server{Flavour: "MySQL", Version: "8.4.0"}, Writes: topology.Writes{ReadOnly: !writable}}}
}

func link(replica, source int, io, sql string, behind int) topology.Link {
	return topology.Link{Replica: replica, Source: source, Channel: &topology.Channel{Channel: fleet.Channel{IORunning: io, SQLRunning: sql}, Behind: &behind}}
}

// chain is db1 → db2 → db3 → db4.
func chain(at time.Time) *topology.Topology {
	t := &topology.Topology{Time: at}
	for i := range 4 {
		t.Nodes = append(t.Nodes, node(fmt.Sprintf("db%d", i+1), i == 0))
		if i > 0 {
			t.Links = append(t.Links, link(i, i-1, "Yes", "Yes", 0))
		}
	}
	return t
}

func watched(t *topology.Topology) (list []picture.Watched) {
	for _, n := range t.Nodes {
		list = append(list, picture.Watched{ID: n.Name, Name: n.Name, Address: n.Addresses[0]})
	}
	return list
}

// lost makes a node one that does not answer.
func lost(t *topology.Topology, i int, kind string) {
	t.Nodes[i] = topology.Node{Name: t.Nodes[i].Name, Addresses: t.Nodes[i].Addresses, Asked: true, Unseen: &topology.Failure{Kind: kind, Text: kind}}
	t.Links = slices.DeleteFunc(t.Links, func(l topology.Link) bool { return l.Replica == i })
}

func TestStates(t *testing.T) {
	calm := picture.Of(chain(noon), watched(chain(noon)), nil, nil)
	if calm.State != picture.OK || calm.Words != "4 servers; replication runs everywhere, no replica is behind." {
		t.Errorf("calm: %s %q", calm.State, calm.Words)
	}
	for name, c := range map[string]struct {
		before *picture.Picture
		after  time.Duration
		change func(*topology.Topology)
		state  [4]string
		words  string // how the sentence begins
		kind   string // of the link to db3
	}{
		"broken": {calm, 0, func(t *topology.Topology) {
			t.Links[1].Channel.SQLRunning, t.Links[1].Channel.SQL = "No", fleet.ReplicaError{Number: 1062, Text: "Duplicate entry"}
		}, [4]string{"ok", "ok", "critical", "ok"}, "db3: does not apply (1062: Duplicate entry), since ", picture.Broken},
		"stopped": {calm, 0, func(t *topology.Topology) {
			t.Links[1].Channel.SQLRunning, t.Links[1].Channel.IORunning = "No", "No"
		}, [4]string{"ok", "ok", "warning", "ok"}, "db3: stopped, since ", picture.Stopped},
		"late":   {calm, 0, func(t *topology.Topology) { *t.Links[1].Channel.Behind = 61 }, [4]string{"ok", "ok", "warning", "ok"}, "db3: 61 s behind, since ", picture.Late},
		"a bit":  {calm, 0, func(t *topology.Topology) { *t.Links[1].Channel.Behind = 40 }, [4]string{"ok", "ok", "ok", "ok"}, "4 servers; replication runs everywhere, no replica is more than 40 s behind.", picture.Runs},
		"wanted": {calm, 0, func(t *topology.Topology) { t.Links[1].Channel.Delay, *t.Links[1].Channel.Behind = 3600, 3600 }, [4]string{"ok", "ok", "ok", "ok"}, "4 servers; replication runs", picture.Runs},
		"down": {calm, 10 * time.Second, func(t *topology.Topology) { lost(t, 2, "refused") },
			[4]string{"ok", "ok", "critical", "ok"}, "db3: nothing listens there, since ", picture.Remembered},
		"a slow answer": {calm, 10 * time.Second, func(t *topology.Topology) { lost(t, 2, "timeout") }, [4]string{"ok", "ok", "warning", "ok"}, "db3: no answer for 10 s.", picture.Remembered},
		"hung":          {calm, 40 * time.Second, func(t *topology.Topology) { lost(t, 2, "timeout") }, [4]string{"ok", "ok", "critical", "ok"}, "db3: no answer for 40 s.", picture.Remembered},
		"never seen":    {nil, 0, func(t *topology.Topology) { lost(t, 2, "refused") }, [4]string{"ok", "ok", "critical", "ok"}, "db3: not seen: nothing listens there, since ", ""},
		"its account":   {calm, 0, func(t *topology.Topology) { lost(t, 2, "login") }, [4]string{"ok", "ok", "warning", "ok"}, "db3: it refuses the account, since ", picture.Remembered},
	} {
		t.Run(name, func(t *testing.T) {
			found := chain(noon.Add(c.after))
			c.change(found)
			p := picture.Of(found, watched(chain(noon)), c.before, nil)
			for i, want := range c.state {
				if p.Nodes[i].State != want {
					t.Errorf("%s is %s, want %s", p.Nodes[i].Name, p.Nodes[i].State, want)
				}
			}
			if !strings.HasPrefix(p.Words, c.words) {
				t.Errorf("says %q, want %q", p.Words, c.words)
			}
			kind := ""
			for _, l := range p.Links {
				if l.Replica == 2 {
					kind = l.Kind
				}
			}
			if kind != c.kind {
				t.Errorf("the link to db3 is %q, want %q", kind, c.kind)
			}
		})
	}
}

// TestTwoAddresses looks at a server that is watched by a socket, and that others know by another address: it stays one, also when it does not answer.
func TestTwoAddresses(t *testing.T) {
	found := chain(noon)
	found.Nodes[0].Addresses = []string{"/run/db1.sock", "db1:3306"}
	list := watched(found)
	before := picture.Of(found, list, nil, nil)
	dead := chain(noon.Add(10 * time.Second))
	lost(dead, 0, "refused")
	dead.Nodes[0].Addresses = []string{"/run/db1.sock"}
	dead.Nodes = append(dead.Nodes, topology.Node{Name: "db1:3306", Addresses: []string{"db1:3306"}, ToldBy: []string{"db2"}, Unseen: &topology.Failure{Kind: "refused"}})
	dead.Links[0].Source, dead.Links[0].Channel.IORunning = 4, "Connecting"
	p := picture.Of(dead, list, before, nil)
	if len(p.Nodes) != 4 || p.Nodes[0].State != picture.Critical || len(p.Links) != 3 || p.Links[0].Source != 0 || p.Links[0].Kind != picture.Connecting {
		t.Errorf("%d nodes, db1 is %s, links %+v", len(p.Nodes), p.Nodes[0].State, p.Links)
	}
	if !strings.HasPrefix(p.Words, "db1: nothing listens there, since ") || !strings.HasSuffix(p.Words, " 1 other of 4 needs attention, too.") {
		t.Errorf("says %q", p.Words)
	}
}

// TestUnwatched looks at a server that only others tell of: it is drawn for an hour after nobody does any more.
func TestUnwatched(t *testing.T) {
	found := chain(noon)
	list := watched(found)[:3]
	p := picture.Of(found, list, nil, nil)
	for _, c := range []struct {
		after time.Duration
		nodes int
	}{{time.Minute, 4}, {59 * time.Minute, 4}, {61 * time.Minute, 3}} {
		less := chain(noon.Add(c.after))
		less.Nodes, less.Links = less.Nodes[:3], less.Links[:2]
		if p = picture.Of(less, list, p, nil); len(p.Nodes) != c.nodes {
			t.Errorf("after %s there are %d nodes, want %d", c.after, len(p.Nodes), c.nodes)
		}
	}
}

// TestKey looks at what counts as a change.
func TestKey(t *testing.T) {
	list := watched(chain(noon))
	first := picture.Of(chain(noon), list, nil, nil)
	for name, c := range map[string]struct {
		change func(*topology.Topology)
		says   []string // what changed; nil: nothing
	}{
		"transactions": {func(t *topology.Topology) { t.Nodes[1].GTID.Executed, *t.Links[1].Channel.Behind = "x:1-9", 12 }, nil},
		"retries": {func(t *topology.Topology) {
			t.Links[0].Channel.IO = fleet.ReplicaError{Text: "retries: 7"}
		}, nil},
		"writable":   {func(t *topology.Topology) { t.Nodes[1].Writes.ReadOnly = false }, []string{"db2 is writable"}},
		"re-pointed": {func(t *topology.Topology) { t.Links[2].Source = 0 }, []string{"db4 follows db1: 0 s behind", "db4 no longer follows db3"}},
		"down":       {func(t *topology.Topology) { lost(t, 3, "refused") }, []string{"db4: nothing listens there, since " + noon.Add(time.Second).Local().Format("15:04:05")}},
		"stopped": {func(t *topology.Topology) {
			t.Links[2].Channel.IORunning, t.Links[2].Channel.SQLRunning = "No", "No"
		}, []string{"db4 ← db3: stopped"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := chain(noon.Add(time.Second))
			c.change(found)
			p := picture.Of(found, list, first, nil)
			if changed := p.Key() != first.Key(); changed != (c.says != nil) {
				t.Errorf("changed: %t", changed)
			}
			if says := picture.Diff(first, p); c.says != nil && !slices.Equal(says, c.says) {
				t.Errorf("says %q, want %q", says, c.says)
			}
			if k := p.Kept(); k.Key() != p.Key() {
				t.Error("what is kept has another key")
			}
		})
	}
	late := chain(noon)
	*late.Links[1].Channel.Behind = 70
	was := picture.Of(late, list, first, nil)
	*late.Links[1].Channel.Behind = 40
	if p := picture.Of(late, list, was, nil); p.Links[1].Kind != picture.Late {
		t.Errorf("40 s behind after 70: %s, want late still", p.Links[1].Kind)
	}
}

// TestPlaces looks at drawings: nothing lies on anything else, nothing outside, each link has a line, and what is drawn is well-formed.
func TestPlaces(t *testing.T) {
	ring := chain(noon)
	ring.Links = append(ring.Links, link(0, 3, "Yes", "Yes", 0))
	two := chain(noon)
	two.Links[1].Source, two.Links = 0, append(two.Links, link(3, 1, "Yes", "Yes", 0))
	cluster := chain(noon)
	for i := range 3 {
		cluster.Nodes[i].Group = &topology.Group{Kind: "galera", Name: "c", State: "Synced", Primary: true, Size: 3}
	}
	cluster.Links = cluster.Links[2:]
	fleet300 := &topology.Topology{Time: noon, Nodes: []topology.Node{node("db000", true)}}
	for i := 1; i < 300; i++ {
		fleet300.Nodes = append(fleet300.Nodes, node(fmt.Sprintf("db%03d", i), false))
		fleet300.Links = append(fleet300.Links, link(i, []int{0, i / 30 * 30}[min(i%30, 1)], "Yes", "Yes", 0))
	}
	for name, c := range map[string]struct {
		t           *topology.Topology
		back, boxes int
	}{"chain": {chain(noon), 0, 0}, "ring": {ring, 1, 0}, "several sources": {two, 1, 0}, "cluster": {cluster, 0, 1}, "300": {fleet300, 0, 0}, "none": {&topology.Topology{}, 0, 0}} {
		t.Run(name, func(t *testing.T) {
			p := picture.Of(c.t, watched(c.t), nil, nil)
			back := 0
			for _, l := range p.Links {
				if l.Path == "" {
					t.Errorf("no line from %s to %s", p.Nodes[l.Source].Name, p.Nodes[l.Replica].Name)
				}
				if l.Back {
					back++
				} else if p.Nodes[l.Source].Y >= p.Nodes[l.Replica].Y {
					t.Errorf("%s is not above %s", p.Nodes[l.Source].Name, p.Nodes[l.Replica].Name)
				}
			}
			if back != c.back || len(p.Boxes) != c.boxes {
				t.Errorf("%d lines lead back, %d boxes; want %d and %d", back, len(p.Boxes), c.back, c.boxes)
			}
			for i, a := range p.Nodes {
				if a.X < 0 || a.Y < 0 || a.X+a.W > p.Width || a.Y+a.H > p.Height {
					t.Errorf("%s lies outside: %+v of %.0f × %.0f", a.Name, a, p.Width, p.Height)
				}
				for _, b := range p.Nodes[i+1:] {
					if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
						t.Errorf("%s lies on %s", a.Name, b.Name)
					}
				}
			}
			if p.Width > 1300 || p.Height > 2400 {
				t.Errorf("it is %.0f × %.0f", p.Width, p.Height)
			}
			d := xml.NewDecoder(strings.NewReader(p.SVG()))
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("the SVG: %v", err)
				}
			}
		})
	}
}

// TestHostile looks at names that would be markup.
func TestHostile(t *testing.T) {
	found := chain(noon)
	found.Nodes[0].Name = `<script>alert(1)</script>`
	if svg := picture.Of(found, nil, nil, nil).SVG(); strings.Contains(svg, "<script") {
		t.Error(svg)
	}
}

// TestFixture makes what ui/e2e shows of 300 servers that are made up, and sees that the file there is the same.
func TestFixture(t *testing.T) {
	found := &topology.Topology{Time: noon}
	var list []picture.Watched
	for i := range 300 {
		name := fmt.Sprintf("db%03d", i)
		found.Nodes = append(found.Nodes, node(name, i == 0))
		list = append(list, picture.Watched{ID: name, Name: name, Address: name + ":3306"})
		if i > 0 {
			found.Links = append(found.Links, link(i, []int{0, i / 30 * 30}[min(i%30, 1)], "Yes", "Yes", 0))
		}
	}
	before := picture.Of(found, list, nil, nil)
	found.Time = noon.Add(10 * time.Second)
	for _, i := range []int{17, 93, 150} {
		found.Links[i-1].Channel.SQLRunning, found.Links[i-1].Channel.SQL = "No", fleet.ReplicaError{Number: 1062, Text: "Duplicate entry '7' for key 'PRIMARY'"}
	}
	for _, i := range []int{44, 201} {
		*found.Links[i-1].Channel.Behind = 125
	}
	lost(found, 222, "refused")
	p := picture.Of(found, list, before, nil)
	text, err := json.Marshal(map[string]any{"at": found.Time, "known": true, "from": found.Time, "until": found.Time, "every": 10, "topology": p})
	if err != nil {
		t.Fatal(err)
	}
	const file = "../../../../ui/e2e/fixtures/topology300.json"
	if os.Getenv("RISSO_WRITE") != "" {
		if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	is, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(is)) != string(text) {
		t.Errorf("%s is not what is made: run this test with RISSO_WRITE=1", file)
	}
}

func TestMain(m *testing.M) {
	time.Local = time.UTC // for the times in words
	os.Exit(m.Run())
}
