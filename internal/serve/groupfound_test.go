package serve

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/watch/collect"
	"github.com/rissodb/risso/internal/watch/rules"
)

// TestGroupFound: what is wrong with a group is told somewhere, by whatever address Risso reaches its primary, and whether it is watched or not; and in one place only.
func TestGroupFound(t *testing.T) {
	target := func(dsn string) mysql.Target {
		parsed, err := mysql.ParseTarget(dsn)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	w := newWatch(slog.New(slog.NewTextHandler(io.Discard, nil)))
	host := "machine"
	w.hostID.Store(&host)
	for _, s := range []config.Watched{
		{Instance: fleet.Instance{ID: "a", Name: "a", Group: "g"}, Target: target("u@tcp(10.0.0.1:3306)/"), Joined: true},
		{Instance: fleet.Instance{ID: "b", Name: "b", Group: "g"}, Target: target("u@tcp(10.0.0.2:3306)/"), Joined: true},
		{Instance: fleet.Instance{ID: "s", Name: "s", Group: "h"}, Target: target("u@unix(/run/mysqld.sock)/"), Joined: true},
	} {
		w.board.Add(s.Instance)
		w.watchAlso([]config.Watched{s})
	}
	w.board.Add(fleet.Instance{ID: host, Name: host, Kind: fleet.KindHost})
	tick := time.Now().Unix()
	holders := func(id string) (list []string) {
		for _, i := range w.board.Instances() {
			var found []fleet.Finding
			w.board.OnVerdict(func(_ collect.View, v rules.Verdict) { found = v.Findings })
			for range 2 { // what is gone counts as over when it stays away
				tick += 600
				w.board.Observe(collect.View{Instance: i, Tick: tick, Up: true, Sample: &fleet.Sample{}})
			}
			for _, f := range found {
				if f.ID == id {
					list = append(list, i.ID)
				}
			}
		}
		return list
	}
	for _, c := range []struct{ what, address, group, at string }{
		{"the primary", "10.0.0.1:3306", "g", "a"},
		{"the next primary", "10.0.0.2:3306", "g", "b"},
		{"one that is reached by a socket", "127.0.0.1:3306", "h", "s"},
		{"one that nobody watches", "10.9.9.9:3306", "k", host},
		{"a group that is gone", "", "k", ""},
	} {
		id := "failover." + c.group
		var list []fleet.Finding
		if c.address != "" {
			list = []fleet.Finding{{ID: id, Subject: c.group, Severity: fleet.SeverityCritical, Trouble: fleet.Trouble{What: "x"}}}
		}
		w.groupFound(c.address, c.group, list)
		if got := holders(id); len(got) != min(1, len(c.at)) || c.at != "" && got[0] != c.at {
			t.Errorf("%s: told of %v, want %q", c.what, got, c.at)
		}
	}
}
