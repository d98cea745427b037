package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
)

// consulStandIn is a stand-in for Consul, which cannot be had here: the three endpoints that are used, as Consul's API documentation describes them.
type consulStandIn struct {
	t *testing.T

	mu       sync.Mutex
	index    uint64
	node     string
	keys     map[string]kept
	services map[string]service
	between  func() // runs once before a transaction
}

func (c *consulStandIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Header.Get("X-Consul-Token") != "t0ken" {
		http.Error(w, "Permission denied", http.StatusForbidden)
		return
	}
	asked := r.Method + " " + r.URL.Path
	switch {
	case strings.HasPrefix(asked, "GET /v1/kv/"):
		k, ok := c.keys[strings.TrimPrefix(r.URL.Path, "/v1/kv/")]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode([]kept{k})
	case asked == "PUT /v1/txn":
		var list []operation
		if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if f := c.between; f != nil {
			c.between = nil
			f()
		}
		keys, services, nodes := maps.Clone(c.keys), maps.Clone(c.services), c.node
		for _, o := range list {
			ok := true
			switch {
			case o.KV != nil:
				ok = o.KV.Verb == "set" || o.KV.Verb == "cas" && o.KV.Index == c.keys[o.KV.Key].ModifyIndex
				c.index++
				keys[o.KV.Key] = kept{c.index, o.KV.Flags, o.KV.Value}
			case o.Node != nil:
				ok, nodes = o.Node.Verb == "set" && o.Node.Node.Address != "", o.Node.Node.Node
			case o.Service.Verb == "set":
				ok = o.Service.Node == nodes && o.Service.Service.Service != ""
				services[o.Service.Service.ID] = o.Service.Service
			case o.Service.Verb == "delete":
				_, ok = services[o.Service.Service.ID]
				delete(services, o.Service.Service.ID)
			}
			if !ok {
				w.WriteHeader(http.StatusConflict)
				_, _ = fmt.Fprintf(w, `{"Results":null,"Errors":[{"OpIndex":0,"What":"%v"}]}`, o)
				return
			}
		}
		c.keys, c.services, c.node = keys, services, nodes
		_, _ = fmt.Fprint(w, `{"Results":[],"Errors":null}`)
	case asked == "GET /v1/catalog/node/risso-shop":
		if c.node == "" {
			_, _ = fmt.Fprint(w, "null")
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"Node": map[string]string{"Node": c.node}, "Services": c.services})
	default:
		http.NotFound(w, r)
	}
}

// TestConsul: views come to Consul's keys and services, and an older one replaces no newer one, not even in between.
func TestConsul(t *testing.T) {
	standIn := &consulStandIn{t: t, keys: map[string]kept{}, services: map[string]service{}}
	server := httptest.NewServer(standIn)
	defer server.Close()
	c := &Consul{URL: server.URL + "/", Token: "t0ken", Service: "mysql-"}
	now := time.Now()
	shows := func(primary, want string) {
		t.Helper()
		var list []string
		for id, s := range standIn.services {
			list = append(list, fmt.Sprint(id, " ", s.Service, " ", s.Tags, " ", s.Address, " ", s.Port, " ", s.Meta["risso_epoch"]))
		}
		slices.Sort(list)
		if got := strings.Join(list, "; "); got != want {
			t.Errorf("services: %s, want %s", got, want)
		}
		if got := string(standIn.keys["risso/shop/primary"].Value); got != primary {
			t.Errorf("primary: %q, want %q", got, primary)
		}
	}
	if err := c.Tell(t.Context(), shop(7, "db1", now)); err != nil {
		t.Fatal(err)
	}
	shows("10.0.0.1:3306", "db1 mysql-shop [primary] 10.0.0.1 3306 7; db2 mysql-shop [replica] 10.0.0.2 3306 7; db3 mysql-shop [replica] 10.0.0.3 3306 7")
	var v group.View
	if k := standIn.keys["risso/shop/view"]; k.Flags != 7 || json.Unmarshal(k.Value, &v) != nil || v.Primary.Name != "db1" {
		t.Errorf("%+v", k)
	}
	next := shop(8, "db2", now.Add(time.Second))
	next.Replicas = []group.Server{{Name: "db1", Address: "10.0.0.1:3306", Weight: 1}}
	if err := c.Tell(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	const now8 = "db1 mysql-shop [replica] 10.0.0.1 3306 8; db2 mysql-shop [primary] 10.0.0.2 3306 8"
	shows("10.0.0.2:3306", now8)
	if err := c.Tell(t.Context(), shop(7, "db1", now.Add(time.Hour))); !errors.Is(err, ErrNewer) {
		t.Errorf("an older view: %v", err)
	}
	less := next
	less.Seen, less.Replicas = now.Add(-time.Hour), nil // of another controller, whose clock is behind
	if err := c.Tell(t.Context(), less); err != nil {
		t.Errorf("the next view of the same epoch: %v", err)
	}
	shows("10.0.0.2:3306", "db2 mysql-shop [primary] 10.0.0.2 3306 8")
	if err := c.Tell(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	standIn.between = func() { standIn.index++; standIn.keys["risso/shop/view"] = kept{standIn.index, 12, nil} } // somebody was faster
	if err := c.Tell(t.Context(), shop(9, "db3", now)); !errors.Is(err, ErrNewer) {
		t.Errorf("an older view at the same time: %v", err)
	}
	shows("10.0.0.2:3306", now8)
	none := shop(13, "", now)
	none.Replicas = nil
	if err := c.Tell(t.Context(), none); err != nil {
		t.Fatal(err)
	}
	shows("", "")
	standIn.between = func() { standIn.index++; standIn.keys["risso/shop/view"] = kept{standIn.index, 13, nil} } // again, and then it holds
	if err := c.Tell(t.Context(), shop(14, "db1", now)); err != nil || len(standIn.services) != 3 {
		t.Errorf("after a conflict: %v, %+v", err, standIn.services)
	}
	c.Token = "other"
	if err := c.Tell(t.Context(), shop(15, "db1", now)); err == nil || !strings.Contains(err.Error(), "403: Permission denied") || strings.Contains(err.Error(), "other") {
		t.Errorf("%v", err)
	}
	server.Close()
	if err := c.Tell(t.Context(), shop(15, "db1", now)); err == nil || errors.As(err, new(*url.Error)) {
		t.Errorf("%v", err)
	}
}
