package repoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

// TestJudgeRebuild: what is refused, and why; c is rebuilt from its source a, or from b beside it.
func TestJudgeRebuild(t *testing.T) {
	const a, b, c = 0, 1, 2
	for _, x := range []struct {
		name  string
		donor int
		with  func(q *RebuildQuestion)
		want  string // codes, with blanks between
	}{
		{"from the source", a, func(*RebuildQuestion) {}, ""},
		{"from a sibling", b, func(*RebuildQuestion) {}, ""},
		{"broken", a, func(q *RebuildQuestion) {
			q.Topology.Nodes[c].Channels[0].SQL.Text, q.Topology.Nodes[c].Channels[0].SQLRunning = "duplicate", "No"
		}, ""},
		{"errant itself", a, func(q *RebuildQuestion) { q.Topology.Nodes[c].GTID.Executed += "," + uuid2 + ":1" }, ""},
		{"it may not be asked", a, func(q *RebuildQuestion) {
			q.Topology.Nodes[c].Channels, q.Topology.Nodes[c].Unknown = nil, []fleet.Trouble{{What: "its channels", Why: "denied"}}
		}, "not_told"},
		{"a primary", a, func(q *RebuildQuestion) { q.Replica, q.Donor = a, b }, "no_channel"},
		{"its source is not seen", b, func(q *RebuildQuestion) { q.Topology.Nodes[a].Seen = false }, "source_not_seen"},
		{"its log is closed", a, func(q *RebuildQuestion) { q.Topology.Nodes[c].Log.On, q.Topology.Nodes[c].Log.Closed = false, true }, "log_closed"},
		{"it has replicas", a, func(q *RebuildQuestion) { q.Topology.Links[0].Source = c }, "has_replicas"},
		{"from itself", c, func(*RebuildQuestion) {}, "not_seen"},
		{"from an errant one", b, func(q *RebuildQuestion) { q.Topology.Nodes[b].GTID.Executed += "," + uuid1 + ":1" }, "donor_errant"},
		{"from a broken one", b, func(q *RebuildQuestion) { q.Topology.Nodes[b].Channels[0].SQL.Text = "duplicate" }, "donor_broken"},
		{"from one that leaves something out", b, func(q *RebuildQuestion) { q.Topology.Nodes[b].Channels[0].Filter = "replicate_do_db=x" }, "donor_filter"},
		{"from one that is rebuilt", b, func(q *RebuildQuestion) { q.Topology.Nodes[b].Channels[0].Source = "a.rebuilding.invalid:3306" }, "donor_rebuilding"},
		{"from one of another family", b, func(q *RebuildQuestion) { q.Topology.Links = q.Topology.Links[1:] }, "stranger"},
		{"from a newer one", b, func(q *RebuildQuestion) { q.Topology.Nodes[b].Number, q.Topology.Nodes[b].Version = 90700, "9.7.0" }, "version"},
		{"from one of the other flavour", b, func(q *RebuildQuestion) { q.Topology.Nodes[b].Flavour = fleet.FlavourMariaDB }, "version"},
		{"the source's logs begin later", b, func(q *RebuildQuestion) { q.Gone = uuid0 + ":1-105" }, "purged"},
		{"what the source's logs lack the copy has", b, func(q *RebuildQuestion) { q.Gone = uuid0 + ":1-50" }, ""},
		{"without GTIDs, from a sibling", b, func(q *RebuildQuestion) { q.Topology.Nodes[c].Channels[0].GTID = false }, "donor_position"},
		{"without GTIDs, from the source", a, func(q *RebuildQuestion) { q.Topology.Nodes[c].Channels[0].GTID = false }, ""},
		{"its commits would wait", a, func(q *RebuildQuestion) {
			q.Topology.Nodes[a].SemiSync.SourceActive, q.Topology.Nodes[a].SemiSync.Replicas, q.Topology.Nodes[a].SemiSync.WaitFor = true, 1, 1
			q.Topology.Nodes[c].SemiSync.ReplicaActive = true
		}, "semi_sync"},
		{"no account", a, func(q *RebuildQuestion) { q.Accounts = nil }, "account"},
		{"an account that may not", a, func(q *RebuildQuestion) { q.Lacks = "GRANT ALL" }, "privileges"},
		{"an old copy", a, func(q *RebuildQuestion) { q.Gone, q.Copy = uuid0+":1-105", &Copy{GTIDs: uuid0 + ":1-90"} }, "purged"},
		{"goes on", a, func(q *RebuildQuestion) {
			q.Topology.Nodes[c].Channels[0].Source = "a.rebuilding.invalid:3306"
			q.Topology.Links = q.Topology.Links[:1]
			q.Left = &Rebuilding{Source: "a:3306", GTID: true, Cleared: true}
		}, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			q := RebuildQuestion{Question: three(), Donor: x.donor}
			q.Replica = c
			x.with(&q)
			var codes []string
			v := JudgeRebuild(q)
			for _, r := range v.Refused {
				codes = append(codes, r.Code)
			}
			if got := strings.Join(codes, " "); got != x.want {
				t.Errorf("got %q, %+v; want %q", got, v.Refused, x.want)
			}
		})
	}
}

// TestChooseDonor: a sibling that will do goes before the source.
func TestChooseDonor(t *testing.T) {
	q := RebuildQuestion{Question: three(), Donor: -1}
	if donor, why := ChooseDonor(q); donor != 1 || !strings.Contains(why, "the source is spared") {
		t.Errorf("got %d, %s; want the sibling", donor, why)
	}
	q.Topology.Nodes[1].GTID.Executed += "," + uuid1 + ":1"
	if donor, why := ChooseDonor(q); donor != 0 || !strings.Contains(why, "b has transactions of its own") {
		t.Errorf("got %d, %s; want the source, as the sibling is errant", donor, why)
	}
}

// TestRebuildLasts: by the last rebuild that was done from beginning to end and had enough to do.
func TestRebuildLasts(t *testing.T) {
	r := &Repointer{Dir: t.TempDir()}
	for name, last := range map[string]string{
		"replica-1.jsonl": `{"rebuild":"db3","done":true,"copy":{"bytes":100000000},"seconds":{"fetch":1,"fill":9}}`, // 10 MB/s
		"replica-2.jsonl": `{"rebuild":"db3","done":true,"copy":{"bytes":1000},"seconds":{"fetch":1,"fill":1}}`,
		"replica-3.jsonl": `{"rebuild":"db3","done":true,"went_on":true,"copy":{"bytes":100000000},"seconds":{"fill":1}}`,
		"replica-4.jsonl": `{"done":true}`,
		"replica-5.jsonl": `{"rebuild":"db3","done":false,"copy":{"bytes":100000000},"seconds":{"fetch":1}}`,
	} {
		if err := os.WriteFile(filepath.Join(r.Dir, name), []byte("{}\n"+last+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.RebuildLasts(6_000_000_000); got != "10 min" {
		t.Errorf("got %q, want 10 min", got)
	}
	r.Dir = t.TempDir()
	if got := r.RebuildLasts(1); got != "" {
		t.Errorf("got %q of none", got)
	}
}

// TestRebuildHost: the mark of a replica that is rebuilt names its source, if a server takes so long a name.
func TestRebuildHost(t *testing.T) {
	if was, ok := Rebuilt(RebuildHost("db1") + ":3306"); !ok || was != "db1:3306" {
		t.Errorf("got %s, %t", was, ok)
	}
	if host := RebuildHost(strings.Repeat("x", 50)); len(host) > 60 {
		t.Errorf("got %s, which is too long", host)
	}
	if _, ok := Rebuilt("db1.detached.invalid:3306"); ok {
		t.Error("a detached one is taken for one that is rebuilt")
	}
}
