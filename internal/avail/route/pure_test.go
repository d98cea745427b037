package route

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
)

func lag(d time.Duration) *time.Duration { return &d }

// TestChoose holds where new clients go.
func TestChoose(t *testing.T) {
	p := &group.Server{Name: "p", Address: "p:1"}
	a, b := group.Server{Name: "a", Address: "a:1", Weight: 1, Lag: lag(0)}, group.Server{Name: "b", Address: "b:1", Weight: 1, Lag: lag(0)}
	late := func(s group.Server, d time.Duration) group.Server { s.Lag = lag(d); return s }
	weighs := func(s group.Server, w float64) group.Server { s.Weight = w; return s }
	unknown := func(s group.Server) group.Server { s.Lag = nil; return s }
	view := func(p *group.Server, replicas ...group.Server) *group.View {
		return &group.View{Group: "g", Epoch: 1, Primary: p, Replicas: replicas, NoPrimary: map[bool]string{true: "it died"}[p == nil]}
	}
	reads := Rules{Role: Replica, MaxLag: 5 * time.Second, Fallback: ToPrimary}
	any, holds, refuses := Rules{Role: Replica, Fallback: ToPrimary}, Rules{Role: Replica, MaxLag: 5 * time.Second, Fallback: Hold}, Rules{Role: Replica, MaxLag: 5 * time.Second, Fallback: Refuse}
	writes := Rules{Role: Primary, Fallback: ToPrimary}
	open := func(list map[string]int) map[string]Load {
		m := map[string]Load{}
		for k, n := range list {
			m[k] = Load{Open: n, Down: n < 0}
		}
		return m
	}
	for _, c := range []struct {
		name  string
		rules Rules
		view  *group.View
		age   time.Duration
		load  map[string]int // -1: it is down
		want  string         // a server; "": it is held; "refused"
		words string
	}{
		{"no view", writes, nil, 0, nil, "", "no controller has told"},
		{"primary", writes, view(p, a), 0, nil, "p", ""},
		{"primary, old view", writes, view(p, a), time.Hour, nil, "p", ""},
		{"no primary", writes, view(nil, a), 0, nil, "", "it died"},
		{"primary down", writes, view(p, a), 0, map[string]int{"p:1": -1}, "", "does not answer"},
		{"fewest connections", reads, view(p, a, b), 0, map[string]int{"a:1": 3, "b:1": 2}, "b", ""},
		{"weights", reads, view(p, weighs(a, 4), b), 0, map[string]int{"a:1": 6, "b:1": 2}, "a", ""},
		{"weight 0", reads, view(p, weighs(a, 0), b), 0, map[string]int{"b:1": 99}, "b", ""},
		{"late counts less", reads, view(p, late(a, 3*time.Second), b), 0, map[string]int{"a:1": 1, "b:1": 6}, "b", ""},
		{"late still counts", reads, view(p, late(a, 3*time.Second), b), 0, map[string]int{"a:1": 1, "b:1": 9}, "a", ""},
		{"beyond", reads, view(p, late(a, 5001*time.Millisecond), b), 0, map[string]int{"b:1": 1000}, "b", ""},
		{"at the limit", holds, view(p, late(a, 5*time.Second)), 0, nil, "a", ""},
		{"told too long ago", holds, view(p, late(a, 3*time.Second)), 2100 * time.Millisecond, nil, "", "too late"},
		{"unknown lag", holds, view(p, unknown(a)), 0, nil, "", "not known"},
		{"unknown lag, any is right", any, view(p, unknown(a)), 0, nil, "a", ""},
		{"unknown lag, one is known", any, view(p, unknown(a), late(b, time.Minute)), 0, map[string]int{"b:1": 10}, "b", ""},
		{"down", reads, view(p, a, b), 0, map[string]int{"a:1": -1, "b:1": 50}, "b", ""},
		{"all down", reads, view(p, a, b), 0, map[string]int{"a:1": -1, "b:1": -1}, "p", ""},
		{"no replica", reads, view(p), 0, nil, "p", ""},
		{"no replica, no primary", reads, view(nil), 0, nil, "", "no replica for reads, and group g has no primary: it died"},
		{"no replica, refused", refuses, view(p), 0, nil, "refused", "no replica"},
		{"no primary, but replicas", reads, view(nil, a), 0, nil, "a", ""},
	} {
		load := open(c.load)
		got := c.rules.choose(c.view, c.age, func(address string) Load { return load[address] })
		name := ""
		if got.Server != nil {
			name = got.Server.Name
		} else if got.Refuse {
			name = "refused"
		}
		if name != c.want || !strings.Contains(got.Words, c.words) {
			t.Errorf("%s: got %q (%s), want %q (%s)", c.name, name, got.Words, c.want, c.words)
		}
		if got.Server != nil && !c.rules.keeps(c.view, got.Server.Address) {
			t.Errorf("%s: a client goes to %s, and would be cut there", c.name, name)
		}
	}
}

// TestKeeps holds whose clients are cut.
func TestKeeps(t *testing.T) {
	v := &group.View{Group: "g", Primary: &group.Server{Name: "p", Address: "p:1"}, Replicas: []group.Server{
		{Name: "a", Address: "a:1", Weight: 1, Lag: lag(time.Second)}, {Name: "late", Address: "late:1", Weight: 1, Lag: lag(time.Minute)},
		{Name: "drained", Address: "drained:1", Lag: lag(0)}, {Name: "unknown", Address: "unknown:1", Weight: 1}}}
	for _, c := range []struct {
		rules   Rules
		address string
		want    bool
	}{
		{Rules{Role: Primary}, "p:1", true},
		{Rules{Role: Primary}, "a:1", false},
		{Rules{Role: Replica, Fallback: ToPrimary}, "p:1", true},
		{Rules{Role: Replica, Fallback: Hold}, "p:1", false},
		{Rules{Role: Replica}, "late:1", true},
		{Rules{Role: Replica, MaxLag: 5 * time.Second}, "late:1", false},
		{Rules{Role: Replica, MaxLag: 5 * time.Second}, "a:1", true},
		{Rules{Role: Replica, MaxLag: 5 * time.Second}, "unknown:1", false},
		{Rules{Role: Replica, MaxLag: 5 * time.Second}, "drained:1", true},
		{Rules{Role: Replica}, "gone:1", false},
	} {
		if got := c.rules.keeps(v, c.address); got != c.want {
			t.Errorf("%+v keeps clients of %s: %v", c.rules, c.address, got)
		}
	}
	if (Rules{Role: Primary}).keeps(&group.View{}, "p:1") {
		t.Error("without a primary its clients stay")
	}
}

// TestNewest: an older epoch never replaces a newer one, and two controllers that see different things do not move clients to and fro.
func TestNewest(t *testing.T) {
	now := time.Now()
	view := func(epoch uint64, primary string) *group.View {
		return &group.View{Group: "g", Epoch: epoch, Primary: &group.Server{Name: primary, Address: primary}}
	}
	var n newest
	step := func(what string, from int, after time.Duration, t1 told, changed bool, primary string) {
		t.Helper()
		now = now.Add(after)
		got, _ := n.hear(from, t1, now)
		if got != changed || n.view == nil || n.view.Primary.Name != primary {
			t.Errorf("%s: changed %v, the view is %+v; want %v and %s", what, got, n.view, changed, primary)
		}
	}
	first := told{view: view(5, "a")}
	step("the first", 0, 0, first, true, "a")
	step("an older one", 1, time.Second/2, told{view: view(4, "b")}, false, "a")
	step("an older one of the same", 0, time.Second/2, told{view: view(4, "b")}, false, "a")
	step("the newer one again", 0, 0, first, false, "a")
	step("the same epoch of another", 1, time.Second, told{view: view(5, "b")}, false, "a")
	step("it is still so", 0, 2*time.Second, told{view: first.view, same: true}, false, "a")
	step("the same epoch of another, again", 1, 2*time.Second, told{view: view(5, "b")}, false, "a")
	step("the first one is silent", 1, 2*time.Second, told{view: view(5, "b"), same: true}, true, "b")
	step("an error", 1, time.Second, told{err: errors.New("x")}, false, "b")
	step("a newer one of the other", 0, 0, told{view: view(6, "c")}, true, "c")
	step("an older one, though all are silent", 1, time.Hour, told{view: view(5, "b")}, false, "c")
	if old := n.old(now); old != time.Hour {
		t.Errorf("the view is %s old, want 1h: nobody told it since", old)
	}
	// One of three that sees no primary moves nobody; two of three do.
	none := &group.View{Group: "g", Epoch: 7}
	seven := view(7, "d")
	step("a newer one", 0, 0, told{view: seven}, true, "d")
	step("a second says so", 1, 0, told{view: view(7, "d")}, false, "d")
	step("a third", 2, 0, told{view: view(7, "d")}, false, "d")
	step("the believed one sees no primary", 0, 0, told{view: none}, true, "d")
	if n.from == 0 {
		t.Error("it is still believed")
	}
	n.hear(1, told{view: &group.View{Group: "g", Epoch: 7}}, now)
	if n.view.Primary != nil {
		t.Error("two of three see no primary, and clients stay")
	}
	n, now = newest{view: view(6, "c"), from: 1}, now.Add(time.Hour)
	step("the same view, seen some time before it was told", 0, 0, told{view: view(6, "c"), age: 4 * time.Second}, true, "c")
	if old := n.old(now.Add(time.Second)); old != 5*time.Second {
		t.Errorf("the view is %s old, want 5s", old)
	}
}

// TestHeader: what is written as a PROXY header is read as it was, and no byte behind it.
func TestHeader(t *testing.T) {
	for _, h := range []Header{V1, V2} {
		for from, to := range map[string]string{"10.1.2.3:4711": "10.0.0.1:3306", "[2001:db8::1]:65535": "[::1]:1", "[::ffff:10.1.2.3]:5": "10.0.0.1:3306"} {
			want := netip.MustParseAddrPort(from)
			r := bytes.NewReader(append(h.write(want, netip.MustParseAddrPort(to)), "rest"...))
			got, err := readHeader(r)
			rest, _ := io.ReadAll(r)
			if err != nil || got.Port() != want.Port() || got.Addr().Unmap() != want.Addr().Unmap() || string(rest) != "rest" {
				t.Errorf("%s of %s: %v, %v, rest %q", h, from, got, err, rest)
			}
		}
	}
	if b := NoHeader.write(netip.AddrPort{}, netip.AddrPort{}); len(b) > 0 {
		t.Errorf("a header though none is wanted: %q", b)
	}
	for text, want := range map[string]string{
		"PROXY UNKNOWN\r\nrest":                 "invalid AddrPort",
		"PROXY UNKNOWN 1 2 3 4\r\n":             "invalid AddrPort",
		string(signature) + "\x20\x00\x00\x00":  "invalid AddrPort", // a check of the balancer
		string(signature) + "\x21\x31\x00\x01x": "invalid AddrPort", // a Unix socket
		string(signature) + "\x21\x11\x00\x0f\x01\x02\x03\x04\x05\x06\x07\x08\x00\x09\x00\x0a\x04\x00\x00": "1.2.3.4:9", // with an addition
		"PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\n":    "1.2.3.4:9",
		"PROXY TCP4 1.2.3.4 5.6.7.8 9 70000\r\n": "error",
		"PROXY TCP6 1.2.3.4 5.6.7.8 9 10\r\n":    "error",
		"PROXY TCP4 1.2.3.4 5.6.7.8 9\r\n":       "error",
		"PROXY " + strings.Repeat("x", 200):      "error",
		"GET / HTTP/1.1\r\n\r\n":                 "error",
		string(signature) + "\x21\x11\x00\x02xx": "error",
		string(signature) + "\x11\x11\x00\x00":   "error",
		string(signature) + "\x21\x11\xff\xff":   "error",
		"":                                       "error",
	} {
		got, err := readHeader(strings.NewReader(text))
		said := fmt.Sprint(got)
		if err != nil {
			said = "error"
		}
		if said != want {
			t.Errorf("%q: got %s (%v), want %s", text, said, err, want)
		}
	}
}

// FuzzHeader: whatever comes instead of a header is refused or read, and ends.
func FuzzHeader(f *testing.F) {
	f.Add([]byte("PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\n"))
	f.Add(append(bytes.Clone(signature), "\x21\x11\x00\x0c123456789012"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		if from, err := readHeader(r); err == nil && from.IsValid() && len(b)-r.Len() < 20 {
			t.Errorf("%q: an address out of %d bytes", b, len(b)-r.Len())
		}
	})
}

// TestView: what a controller answers is refused if clients could not go there.
func TestView(t *testing.T) {
	for text, want := range map[string]string{
		`{"group":"g","epoch":1,"primary":null}`:                           "",
		`{"group":"g","epoch":1,"primary":{"server":"a","address":"a:1"}}`: "",
		`{"group":"h","epoch":1}`:                                          `of group "h"`,
		`{"group":"g","primary":{"server":"a"}}`:                           "no address",
		`{"group":"g","replicas":[{"server":"a"}]}`:                        "no address",
		`<html>`: "cannot be read",
	} {
		_, err := readView([]byte(text), "g")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
