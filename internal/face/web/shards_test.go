package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/avail/shard/keep"
)

// sharding is maps of shards.
type sharding []shard.Map

func (m sharding) Maps(context.Context) ([]shard.Map, error) { return m, nil }

func (m sharding) Map(_ context.Context, name string) (*shard.Map, error) {
	for i := range m {
		if m[i].Name == name {
			return &m[i], nil
		}
	}
	return nil, fmt.Errorf("%s: %w", name, keep.ErrNone)
}

// TestShards: clients look up where the rows of a key are, without a token, and are told no primary of a view that is old.
func TestShards(t *testing.T) {
	b := publish.NewBoard()
	now := time.Now()
	b.Tell(group.View{Group: "west", Epoch: 3, Primary: &group.Server{Name: "db1", Address: "10.0.0.1:3306"}, Since: now, Seen: now}, nil)
	b.Tell(group.View{Group: "east", Epoch: 1, Primary: &group.Server{Name: "db9", Address: "10.0.0.9:3306"}, Since: now.Add(-time.Hour), Seen: now.Add(-2 * time.Hour)}, nil)
	s := newSiteOf(t, false, func(o *Options) {
		o.Views, o.Clients = b, publish.NewDesk(b, time.Hour)
		o.Shards = sharding{{Name: "old", Kind: shard.Range, Keys: shard.Integer, Epoch: 9, Restored: now, Shards: []shard.Shard{{Name: "all", Group: "west"}}}, {Name: "cut", Kind: shard.Range, Keys: shard.Integer, Epoch: 2, Shards: []shard.Shard{{Name: "all", Group: "east"}}}, {Name: "orders", Kind: shard.Range, Keys: shard.Integer, Epoch: 7, Shards: []shard.Shard{{Name: "low", Group: "west"}, {Name: "high", Group: "east", From: "100"}}}}
	})
	for _, c := range []struct {
		path string
		code int
		says string
	}{
		{"/shards?map=orders&key=5", 200, `{"map":"orders","epoch":7,"key":"5","shard":"low","group":"west","server":"db1","address":"10.0.0.1:3306"}`},
		{"/shards?map=orders&key=-5", 200, `"shard":"low"`},
		{"/shards?key=-5", 400, "which map of shards is not said"},
		{"/shards?map=orders&key=100", 503, "group east of shard high has no primary now"},
		{"/shards?map=orders&key=x", 400, "not a key of this map"},
		{"/shards?map=other&key=1", 404, "no map of shards of that name"},
		{"/shards?map=orders", 200, `"primaries":{"west":{"server":"db1","address":"10.0.0.1:3306"}}`},
		{"/shards?map=cut", 503, `"error":"where the clients of east go was last known 2 h ago, which is too long","group":"east","epoch":1,"age_s":72`},
		{"/shards?map=old", 503, "it is that of a restored backup, and nobody has confirmed that its rows are where it says"},
		{"/shards?map=old&key=1", 503, "risso shard confirm old"},
		{"/shards?map=orders&keys=5", 400, "?keys means nothing here: map and key do"},
	} {
		resp, err := http.Get(s.URL + c.path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.code || !strings.Contains(string(body), c.says) {
			t.Errorf("%s: %d %s, want %d with %s", c.path, resp.StatusCode, body, c.code, c.says)
		}
		if h := resp.Header; c.path == "/shards?map=cut" && (h.Get("Retry-After") != "1" || !strings.HasPrefix(h.Get("Age"), "72") || h.Get("Risso-Age") == "" || h.Get("Cache-Control") != "no-store") {
			t.Errorf("%s: got the headers %v, want those of /primary", c.path, h)
		}
	}
}
