package topology

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/diagnose"
	"github.com/rissodb/risso/internal/avail/topology/picture"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/watch/rules"
)

// TestKinds: what is diagnosed is a finding that can be silenced, checked and routed, and what is left to rules is looked for by them.
func TestKinds(t *testing.T) {
	var ids []string
	for _, c := range diagnose.Codes() {
		id, _, _ := strings.Cut(c.ID, ":")
		k, known := rules.KindOf(id)
		if ids = append(ids, id); !known || k.Of == fleet.KindHost {
			t.Errorf("%s: got kind %+v, which no server has", id, k)
		}
	}
	for _, id := range ruled {
		if k, _ := rules.KindOf(id); k.ID != id || !slices.Contains(ids, id) {
			t.Errorf("%s is left to rules: got kind %+v", id, k)
		}
	}
}

// TestSteady: a diagnosis begins when it held in two looks and for some seconds, and ends when two looks had it not.
func TestSteady(t *testing.T) {
	at := time.Date(2026, 11, 28, 3, 12, 0, 0, time.UTC)
	frozen := diagnose.Diagnosis{Code: "repl.frozen", Nodes: []string{"db2", "db1"}, What: "db2 received nothing from db1"}
	s := steady{}
	for i, c := range []struct {
		after time.Duration
		found bool
		want  bool
	}{{0, true, false}, {time.Second, true, false}, {10 * time.Second, true, true}, {20 * time.Second, false, true}, {30 * time.Second, true, true}, {40 * time.Second, false, true},
		{50 * time.Second, false, false}, {60 * time.Second, true, false}, {70 * time.Second, false, false}, {80 * time.Second, true, false}, {90 * time.Second, true, true}} {
		var found []diagnose.Diagnosis
		if c.found {
			found = []diagnose.Diagnosis{frozen, frozen}
		}
		got := s.look(at.Add(c.after), found)
		if len(got) == 1 != c.want || len(got) > 1 {
			t.Fatalf("look %d: got %+v, want it to hold: %t", i, got, c.want)
		}
		if i == 4 && !got[0].Since.Equal(at) {
			t.Errorf("it holds since %s; want %s", got[0].Since, at)
		}
	}
	kept := &picture.Picture{Nodes: []picture.Node{{Name: "db2", Findings: picture.Diagnosed([]diagnose.Diagnosis{{Code: "repl.frozen", Nodes: []string{"db2"}, Since: at}})["db2"]}}}
	s = steady{}
	s.resume(kept)
	if got := s.look(at.Add(time.Minute), []diagnose.Diagnosis{frozen}); len(got) != 1 || !got[0].Since.Equal(at) {
		t.Errorf("after a restart: got %+v; want it at once, since %s", got, at)
	}
	s = steady{}
	s.resume(kept)
	for i, want := range []int{1, 0} { // one look may have missed it
		if got := s.look(at.Add(time.Duration(i)*time.Minute), nil); len(got) != want || want > 0 && !got[0].Since.Equal(at) {
			t.Errorf("what ended while nobody looked, look %d: got %+v", i, got)
		}
	}
	s = steady{}
	late := diagnose.Diagnosis{Code: "repl.errant_gtid", Nodes: []string{"db2"}}
	keys := map[string]bool{}
	for i, found := range [][]diagnose.Diagnosis{{frozen, late}, {frozen, late}, {late}, {frozen, late}} { // missed once, it is in another place, and nothing changed
		p := &picture.Picture{Nodes: []picture.Node{{Name: "db2", Findings: picture.Diagnosed(s.look(at.Add(time.Duration(i)*time.Minute), found))["db2"]}}}
		if i > 0 {
			keys[p.Key()] = true
		}
	}
	if len(keys) != 1 {
		t.Errorf("a look that misses one of two: got %d pictures, want that nothing changed", len(keys))
	}
}

// TestFindings: what is told of whom.
func TestFindings(t *testing.T) {
	seen := time.Date(2026, 11, 28, 3, 12, 0, 0, time.UTC)
	with := func(n picture.Node, ids ...string) picture.Node {
		for _, id := range ids {
			n.Findings = append(n.Findings, picture.Finding{Finding: fleet.Finding{ID: id}})
		}
		return n
	}
	effect := with(picture.Node{Name: "db3", Instance: "i3"}, "semisync.off")
	effect.Findings[0].Because = "primary.dead of db1"
	orphan := with(picture.Node{Name: "db6", Instance: "i6"}, "group.member_missing")
	orphan.Findings[0].Because = "server.no_access of db2" // which is not told
	p := &picture.Picture{
		Nodes: []picture.Node{
			with(picture.Node{Name: "db1", Instance: "i1"}, "primary.dead", "server.down"),
			with(picture.Node{Name: "db2", Answered: seen}, "repl.stopped", "server.no_access"),
			effect,
			with(picture.Node{Name: "db4"}, "server.down", "primary.unreachable"),
			with(picture.Node{Name: "db5", Answered: seen}, "server.down"),
			orphan,
		},
		Links: []picture.Link{{Source: 0, Replica: 1}, {Source: 3, Replica: 2}},
	}
	got := findings(p)
	var told []string
	for _, id := range []string{"i1", "i3", "i6"} {
		for _, f := range got[id] {
			told = append(told, id+" "+f.ID+" "+f.Subject)
		}
	}
	if want := []string{"i1 primary.dead ", "i1 repl.stopped db2", "i3 primary.unreachable db4", "i6 group.member_missing "}; !slices.Equal(told, want) {
		t.Errorf("got %q, want %q", told, want)
	}
}
