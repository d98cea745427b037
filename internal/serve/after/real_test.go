//go:build cgo

package after

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/events"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// counter takes bursts of statements on a real server for minutes: what they cost is what the server counted.
type counter struct {
	t     *testing.T
	c     *mysql.Conn
	store events.Store
	known map[string]fleet.Cost
	first map[string]int64
}

const here = "db1"

// minute runs a burst and stores what the server counted of it as a minute.
func (k *counter) minute(at int64, statements func(i int) []string) {
	k.t.Helper()
	ctx := k.t.Context()
	for i := range 25 {
		for _, sql := range statements(i) {
			if err := k.c.Query(ctx, sql, mysql.IgnoreRow); err != nil {
				k.t.Fatal(err)
			}
		}
	}
	k.count(ctx, at)
}

// count stores what was counted since it was called last.
func (k *counter) count(ctx context.Context, at int64) {
	k.t.Helper()
	m := events.Minute{Instance: here, Time: at}
	now := map[string]fleet.Cost{}
	if err := read.Digests(ctx, k.c, "", func(d *read.Digest) error {
		if d.ID != "" {
			sum := now[d.ID]
			sum.Add(d.Cost)
			now[d.ID] = sum
		}
		return nil
	}); err != nil {
		k.t.Fatal(err)
	}
	var ids []string
	for id, cost := range now {
		if cost.Calls > k.known[id].Calls {
			ids = append(ids, id)
		}
	}
	if err := read.DigestTexts(ctx, k.c, ids, func(d read.DigestText) error {
		class := strings.ToUpper(d.ID[:32])
		if !strings.Contains(d.Text, "`shop`") || now[d.ID].Calls == k.known[d.ID].Calls {
			return nil
		}
		if k.first[class] == 0 {
			k.first[class] = at
		}
		m.Rows = append(m.Rows, events.Row{Class: class, Schema: "shop", Cost: now[d.ID].Since(k.known[d.ID])})
		return k.store.AddClasses(ctx, events.Class{Instance: here, ID: class, Fingerprint: d.Text, Verb: "SELECT", FirstSeen: k.first[class], LastSeen: at})
	}); err != nil {
		k.t.Fatal(err)
	}
	k.known = now
	if at == 0 {
		return
	}
	if _, err := k.store.AddMinutes(ctx, m); err != nil {
		k.t.Fatal(err)
	}
}

// begin makes a table with an index, and a store.
func begin(t *testing.T, spec string) *counter {
	t.Helper()
	n := sandboxtest.Lend(t, spec, "performance_schema=ON")
	store, err := events.OpenEmbedded(t.Context(), t.TempDir()+"/statements.duckdb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	k := &counter{t: t, c: sandboxtest.Connect(t, n), store: store, first: map[string]int64{}}
	rows := "INSERT INTO `shop`.t SELECT x.n + 10 * y.n + 100 * z.n + 1000 * w.n + 10000 * v.n, x.n + 10 * y.n + 100 * z.n FROM `shop`.d x, `shop`.d y, `shop`.d z, `shop`.d w, `shop`.d v WHERE v.n < 4"
	for _, sql := range []string{"CREATE DATABASE `shop`", "CREATE TABLE `shop`.d (n INT)", "INSERT INTO `shop`.d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)",
		"CREATE TABLE `shop`.t (id INT PRIMARY KEY, a INT, KEY a (a))", rows} {
		if err := k.c.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	k.count(t.Context(), 0)
	return k
}

func usual(i int) []string {
	return []string{fmt.Sprintf("SELECT COUNT(*) FROM `shop`.t WHERE a = %d", i*31), fmt.Sprintf("SELECT a FROM `shop`.t WHERE id = %d", i*71)}
}

// TestDeploy: after a deployment that drops an index and brings a slow class of statements, both are told, and the class that
// did not change is not.
func TestDeploy(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			k := begin(t, spec)
			now := time.Now().Unix() / 60 * 60
			at := now - 14*60 + 20
			before, after, complete := Windows(at, now, 10) // so many that a hiccup of the machine in one of them decides nothing
			if !complete {
				t.Fatalf("the window after %d is not over at %d", at, now)
			}
			for m := before.From; m < before.To; m += 60 {
				k.minute(m, usual)
			}
			if err := k.c.Exec(t.Context(), "ALTER TABLE `shop`.t DROP KEY a"); err != nil {
				t.Fatal(err)
			}
			k.known = nil // the ALTER is no part of a minute
			k.count(t.Context(), 0)
			for m := after.From; m < after.To; m += 60 {
				k.minute(m, func(i int) []string {
					if i%5 > 0 {
						return usual(i)
					}
					return append(usual(i), fmt.Sprintf("SELECT MAX(x.id + y.n) FROM `shop`.t x, `shop`.d y WHERE x.a + y.n > %d AND x.id < 10000", i))
				})
			}
			s, err := Read(t.Context(), k.store, here, at, before, after)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, c := range s.Classes {
				got[c.Change] += c.Fingerprint + "\n"
			}
			if !s.Enough || !strings.Contains(got["slower"], "`a` = ?") || !strings.Contains(got["new"], "MAX") {
				t.Errorf("got %q; want the class without its index slower, and the one with MAX new", s.Words)
			}
			if strings.Contains(got["slower"], "`id` = ?") && !strings.Contains(got["slower"], "`a` = ?") {
				t.Errorf("the class that did not change is slower: %q", s.Words)
			}
			t.Logf("%s: %q", spec, s.Words)
		})
	}
}

// TestNothingChanged: the same bursts before and after, taken in turns so that a moody machine is the same for both, are no change.
func TestNothingChanged(t *testing.T) {
	t.Parallel()
	k := begin(t, "mysql-9.7")
	now := time.Now().Unix() / 60 * 60
	at := now - 12*60 + 20
	before, after, _ := Windows(at, now, 8)
	for i := int64(0); i < 8; i++ {
		if i%2 == 0 {
			k.minute(before.From+i*60, usual)
			k.minute(after.From+i*60, usual)
		} else {
			k.minute(after.From+i*60, usual)
			k.minute(before.From+i*60, usual)
		}
	}
	s, err := Read(t.Context(), k.store, here, at, before, after)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Enough || s.Changed() || len(s.Words) != 1 || !strings.Contains(s.Words[0], "no change that stands out") {
		t.Errorf("got %q, want no change", s.Words)
	}
}
