package incidents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/collect"
	"github.com/rissodb/risso/internal/watch/incident"
	"github.com/rissodb/risso/internal/watch/live"
	"github.com/rissodb/risso/internal/watch/rules"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// nowhere takes what collectors write.
type nowhere struct{}

func (nowhere) Append(int64, []fleet.Metric, []float64, bool) error { return nil }
func (nowhere) Event(fleet.Event)                                   {}
func (nowhere) Variables(string, time.Time, map[string]string)      {}
func noHost(string) map[string]float64                              { return nil }

// desk is a desk with its facts in a folder.
func desk(t *testing.T, dir string) *Desk {
	t.Helper()
	facts, err := state.Open(t.Context(), filepath.Join(dir, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { facts.Close() })
	d, err := New(t.Context(), Options{Dir: dir, Facts: facts, Event: func(e fleet.Event) { t.Log(e.Text) }, Host: noHost, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// watch lets a desk watch a server until the test ends.
func watch(t *testing.T, dir string, node *sandbox.Node) *Desk {
	t.Helper()
	d := desk(t, dir)
	board := live.New(func() live.Self { return live.Self{} })
	i := fleet.Instance{ID: "db", Name: "db", Kind: fleet.KindServer}
	wish := new(collect.Wish)
	if err := d.Add(i, wish); err != nil {
		t.Fatal(err)
	}
	board.OnVerdict(func(v collect.View, r rules.Verdict) { d.Observe(v, r) })
	board.Add(i)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		collect.NewServer(sandboxtest.Target(t, node), i, collect.Options{Sink: nowhere{}, Recorder: nowhere{}, Observer: board, Logger: slog.New(slog.DiscardHandler), Wish: wish}).Run(ctx)
	})
	wg.Go(func() {
		if err := d.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return d
}

// TestRealServers: a deadlock is drawn; a pile-up of row locks becomes an incident that names the session in the way, although Risso is
// killed meanwhile; any second can be asked for.
func TestRealServers(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			node := sandboxtest.Lend(t, spec)
			d := watch(t, dir, node)
			run(t, sandboxtest.Connect(t, node), "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, n INT)", "INSERT INTO shop.orders VALUES (1, 0), (2, 0)")
			deadlock(t, d, node)
			lockPileUp(t, d, node, dir, spec)
		})
	}
}

func run(t *testing.T, c *mysql.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// now is the newest moment that is kept.
func now(t *testing.T, d *Desk) *incident.Moment {
	t.Helper()
	a, err := d.Moment("db", time.Now().Unix(), false)
	if err != nil {
		t.Fatal(err)
	}
	return a.Moment
}

func deadlock(t *testing.T, d *Desk, node *sandbox.Node) {
	t.Helper()
	await.Until(t, func() bool { return now(t, d) != nil }, "the first moment")
	a, b := sandboxtest.Connect(t, node), sandboxtest.Connect(t, node)
	run(t, a, "BEGIN", "UPDATE shop.orders SET n = n + 1 WHERE id = 1")
	run(t, b, "BEGIN", "UPDATE shop.orders SET n = n + 1 WHERE id = 2")
	ended := make(chan error, 2)
	go func() { ended <- a.Exec(t.Context(), "UPDATE shop.orders SET n = n + 1 WHERE id = 2") }()
	go func() { ended <- b.Exec(t.Context(), "UPDATE shop.orders SET n = n + 1 WHERE id = 1") }()
	if one, other := <-ended, <-ended; (one == nil) == (other == nil) {
		t.Fatalf("%v, %v: want one of them to be rolled back", one, other)
	}
	run(t, a, "ROLLBACK")
	run(t, b, "ROLLBACK")
	await.Until(t, func() bool { m := now(t, d); return m != nil && m.Deadlock != nil }, "the deadlock in a moment")
	found := now(t, d).Deadlock
	if len(found.Transactions) != 2 || !strings.Contains(found.Drawn, "<< rolled back") || !strings.Contains(found.Drawn, "PRIMARY of shop.orders") {
		t.Errorf("drawn as %s\nof %s", found.Drawn, found.Text)
	}
}

// lockPileUp lets twelve sessions wait for one that is idle in a transaction.
func lockPileUp(t *testing.T, d *Desk, node *sandbox.Node, dir, spec string) {
	t.Helper()
	blocker := sandboxtest.Connect(t, node)
	id := connection(t, blocker)
	run(t, blocker, "BEGIN", "UPDATE shop.orders SET n = 7 WHERE id = 1")
	const waiters = 12
	ended := make(chan error, waiters)
	for range waiters {
		c := sandboxtest.Connect(t, node)
		go func() { ended <- c.Exec(t.Context(), "UPDATE shop.orders SET n = n + 1 WHERE id = 1") }()
	}
	var open incident.Incident
	await.Until(t, func() bool {
		list, err := d.List(t.Context(), state.IncidentQuery{Instance: "db"})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range list {
			open = i
		}
		return len(list) > 0
	}, "the incident")
	began := now(t, d)
	killed(t, dir, open.ID, id)
	run(t, blocker, "COMMIT")
	for range waiters {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if !open.Open || open.Severity != fleet.SeverityCritical || !strings.Contains(open.Title, fmt.Sprintf("connection %d", id)) {
		t.Errorf("got %+v, want one that goes on and names connection %d", open, id)
	}
	if at := slices.IndexFunc(began.Sessions, func(s incident.Session) bool { return s.ID == id }); at < 0 || began.Sessions[at].Wait != incident.Idle || (spec != "mariadb" && !strings.Contains(began.Sessions[at].Statement, "n = 7")) {
		t.Errorf("sessions %+v, want connection %d idle in its transaction", began.Sessions, id)
	}
	if len(began.Blockers) != 1 || began.Blockers[0].ID != id || began.Blockers[0].Blocks != waiters || began.Blockers[0].Ends != fmt.Sprintf("KILL %d", id) {
		t.Errorf("blockers %+v, want connection %d with %d others, ended by KILL", began.Blockers, id, waiters)
	}
}

func connection(t *testing.T, c *mysql.Conn) (id int64) {
	t.Helper()
	rows, err := c.Maps(t.Context(), "SELECT CONNECTION_ID() AS id")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(rows[0]["id"], &id); err != nil {
		t.Fatal(err)
	}
	return id
}

// killed reads what is on disk, as the next Risso does if this one is killed now.
func killed(t *testing.T, dir, id string, blocker int64) {
	t.Helper()
	other := t.TempDir()
	if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	d := desk(t, other)
	told, err := d.Show(t.Context(), id, false)
	if err != nil {
		t.Fatal(err)
	}
	if told.Incident.Open || told.Incident.Cut != "Risso ended during it" || !strings.Contains(told.Story.End, "its end was not seen") {
		t.Errorf("got %+v, %q: want it to be cut", told.Incident, told.Story.End)
	}
	if !slices.ContainsFunc(told.Story.Steps, func(s incident.Step) bool {
		return s.Kind == "blocker" && strings.Contains(s.Text, fmt.Sprintf("connection %d ", blocker)) && strings.Contains(s.Text, "keeps")
	}) {
		t.Errorf("the steps %+v do not name connection %d", told.Story.Steps, blocker)
	}
	var page strings.Builder
	redacted, err := d.Show(t.Context(), id, true)
	if err = errors.Join(err, redacted.HTML(&page)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"n = 7", "http://", "https://", "src=", "<script"} {
		if strings.Contains(strings.ReplaceAll(page.String(), "http://www.w3.org/2000/svg", ""), bad) {
			t.Errorf("the page has %q in it", bad)
		}
	}
	if !strings.Contains(page.String(), fmt.Sprintf("connection %d", blocker)) {
		t.Error("the page does not name the session")
	}
}

// TestUnwatched: of what is not watched there are no moments, and there is no incident of an unknown ID.
func TestUnwatched(t *testing.T) {
	t.Parallel()
	d := desk(t, t.TempDir())
	if _, err := d.Moment("nobody", 1, false); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("moment: %v, want ErrNotFound", err)
	}
	if _, err := d.Show(t.Context(), "nothing", false); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("incident: %v, want ErrNotFound", err)
	}
}

// TestKilledWhileWriting: an incident whose file was written and that no list has is listed by the next Risso, with the end that was seen;
// so is one that is listed and had just ended; a file that is not whole is taken away.
func TestKilledWhileWriting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := desk(t, dir)
	began := time.Unix(1795478400, 0)
	for id, ended := range map[string]time.Time{"db-1": {}, "db-2": began.Add(20 * time.Second), "db-3": began.Add(20 * time.Second)} {
		f := incident.File{Incident: incident.Incident{ID: id, Instance: "db", Server: "db", Why: incident.WhyStall, Began: began, Ended: ended, Open: true}}
		var w incident.Writer
		for s := range int64(30) {
			f.Add(&w, &incident.Moment{Tick: began.Unix() + s})
		}
		if id == "db-3" { // it is listed
			if err := d.write(t.Context(), &f); err != nil {
				t.Fatal(err)
			}
			continue
		}
		body, err := f.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if err := replaceFile(d.path(id), body); err != nil {
			t.Fatal(err)
		}
	}
	half := filepath.Join(d.folder(), ".new-7")
	if err := os.WriteFile(half, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := desk(t, dir).List(t.Context(), state.IncidentQuery{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, i := range list {
		got[i.ID] = fmt.Sprint(i.Open, " ", i.Ended.Sub(began), " ", i.Cut)
	}
	if want := map[string]string{"db-1": "false 29s Risso ended during it", "db-2": "false 20s " + incident.CutAfter, "db-3": "false 20s " + incident.CutAfter}; !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if events, err := d.opts.Facts.Events(t.Context(), state.EventQuery{Kinds: []fleet.EventKind{fleet.EventIncident}}); err != nil || len(events) != 3 {
		t.Errorf("got %+v, %v; want one event for each", events, err)
	}
	if told, err := d.Show(t.Context(), "db-2", false); err != nil || !strings.Contains(told.Story.End, "it ended at ") {
		t.Errorf("got %v %v, want the end that was seen", told, err)
	}
	if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is not whole: got %v, want it to be gone", err)
	}
}

// TestThrift: where literals would take more than 50 MB a day, only those of statements are kept that ran for a second, or wait for others;
// after an hour as many as before are kept again.
func TestThrift(t *testing.T) {
	t.Parallel()
	d := desk(t, t.TempDir())
	i := fleet.Instance{ID: "db", Name: "db", Kind: fleet.KindServer}
	if err := d.Add(i, new(collect.Wish)); err != nil {
		t.Fatal(err)
	}
	tick := int64(1795480000)
	literals := func(m *incident.Moment, id int64) bool {
		for _, s := range m.Sessions {
			if s.ID == id {
				return strings.Contains(s.Statement, "secret")
			}
		}
		t.Fatalf("session %d is not in the moment", id)
		return false
	}
	second := func(sessions int) *incident.Moment {
		tick++
		v := collect.View{Instance: i, Tick: tick, Up: true, Sample: new(fleet.Sample)}
		for id := range sessions {
			v.Sessions = append(v.Sessions, read.Session{ID: int64(id) + 10, Text: fmt.Sprintf("SELECT 1 FROM orders WHERE token = 'secret %x %x'", rand.Uint64(), rand.Uint64()), Seconds: 0.5, Wait: "running"})
		}
		v.Sessions = append(v.Sessions, read.Session{ID: 1, Text: "SELECT 'secret'", Seconds: 1.2, Wait: "running"}, read.Session{ID: 2, Text: "UPDATE orders SET token = 'secret'", Seconds: 0.3, Wait: "row_lock", BlockerID: 1},
			read.Session{ID: 3, Text: "SELECT 'secret'", Seconds: 1, Wait: "running"}, read.Session{ID: 4, Text: "SELECT 'secret'", Seconds: 2, Wait: "running"})
		m := d.Observe(v, rules.Verdict{})
		d.take(t.Context(), <-d.queue)
		return m
	}
	for range 301 { // not enough to judge by
		if m := second(60); !literals(m, 10) {
			t.Fatalf("no literals are left in the first minutes, %d s after the first", tick-1795480000)
		}
	}
	for range 120 {
		second(60)
	}
	if m := second(60); literals(m, 10) || !literals(m, 1) || !literals(m, 2) || literals(m, 3) || !literals(m, 4) {
		t.Errorf("literals are kept of what ran for 0.5 s: %v, for 1.2 s: %v, of what waits: %v; want false, true, true; for 1 and 2 s by whole seconds: %v, %v; want false, true", literals(m, 10), literals(m, 1), literals(m, 2), literals(m, 3), literals(m, 4))
	}
	for range 3600 {
		second(1)
	}
	if m := second(1); !literals(m, 10) {
		t.Error("an hour later no literals are kept, though there is room")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestLostFile: an incident that was open when Risso ended, and whose file is damaged, does not go on for ever.
func TestLostFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := desk(t, dir)
	i := incident.Incident{ID: "db-1", Instance: "db", Server: "db", Why: incident.WhyStall, Began: time.Unix(1795478400, 0), Open: true}
	row, err := rowOf(i)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.opts.Facts.SaveIncident(t.Context(), row, fleet.Event{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.path(i.ID), []byte("no incident"), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := desk(t, dir).List(t.Context(), state.IncidentQuery{})
	if err != nil || len(list) != 1 || list[0].Open || list[0].Cut == "" || list[0].Ended.IsZero() {
		t.Errorf("got %+v, %v; want one that is over, and why its end was not seen", list, err)
	}
}
