package advice

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/live"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// board takes what a room notes.
type board struct {
	mu    sync.Mutex
	noted map[string][]fleet.Finding
	list  []fleet.Instance

	seats   map[string]fleet.Seat
	follows map[string][]string
}

func (b *board) Note(instance, _ string, findings []fleet.Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noted[instance] = findings
}

func (b *board) Instances() []fleet.Instance { return b.list }

// Seat and Follows are those of servers of which nothing is known but their names, if the test does not say more.
func (b *board) Seat(id string) fleet.Seat { return b.seats[id] }

func (b *board) Follows(time.Time) map[string][]string { return b.follows }
func (b *board) Detail(string) (live.Detail, bool)     { return live.Detail{}, false }

// rings are the findings of an instance that ring, in words.
func (b *board) rings(instance string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []string
	for _, f := range b.noted[instance] {
		if strings.HasPrefix(f.Subject, "adv.") || strings.HasPrefix(f.Subject, "left_") { // what was planted
			list = append(list, f.ID+" "+f.Subject)
		}
	}
	return strings.Join(list, ", ")
}

// room is a room that runs, over real servers.
type room struct {
	*Room
	t     *testing.T
	board *board
	facts *state.Store
	stop  func()
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// open makes a room over a data folder and lets it run.
func open(t *testing.T, dir string, targets map[string]mysql.Target, c config.Advice) *room {
	t.Helper()
	facts, err := state.Open(t.Context(), filepath.Join(dir, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	b := &board{noted: map[string][]fleet.Finding{}}
	o := Options{Config: c, Facts: facts, Board: b, Logger: quiet}
	var list []config.Watched
	o.Servers = func() []config.Watched { return list }
	for id, target := range targets {
		i := fleet.Instance{ID: id, Name: id, Kind: fleet.KindServer}
		list, b.list = append(list, config.Watched{Instance: i, Target: target}), append(b.list, i)
	}
	r := &room{Room: New(o), t: t, board: b, facts: facts}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		facts.Close()
	})
	t.Cleanup(r.stop)
	return r
}

// look lets all servers be looked at, and waits until it was done.
func (r *room) look() Answer {
	r.t.Helper()
	begun := time.Now()
	r.Look(nil)
	var a Answer
	await.Until(r.t, func() bool {
		var err error
		if a, err = r.List(r.t.Context(), Query{State: "all"}); err != nil {
			r.t.Fatal(err)
		}
		return !slices.ContainsFunc(a.Servers, func(s Server) bool { return s.Queued || s.Tried.Before(begun) }) && a.Looking == nil
	}, "all servers were looked at")
	return a
}

// words are findings with their state and servers.
func words(a Answer) string {
	var list []string
	for _, f := range a.Findings {
		list = append(list, fmt.Sprintf("%s %s %s %s", f.State, f.ID, f.Object, strings.Join(f.Servers, "+")))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

var settings = config.Advice{LeaveOut: []string{"left_*"}, Ring: fleet.SeverityCritical, MaxThreadsRunning: 30, Time: time.Minute}

// do runs statements on a server.
func do(t *testing.T, target mysql.Target, statements ...string) {
	t.Helper()
	c, err := mysql.Connect(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, s := range statements {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// mine leaves out what a look finds about the server as a whole: only the planted schemas are of interest.
func mine(a Answer) Answer {
	a.Findings = slices.DeleteFunc(a.Findings, func(f Kept) bool {
		return !strings.HasPrefix(f.Object, "adv.") && !strings.HasPrefix(f.Object, "left_") || f.ID != "schema.no_pk" && f.ID != "schema.autoinc"
	})
	return a
}

// TestRoom: findings begin, are told once for two servers, are decided about, end, and come back; what could not be looked at does not end.
func TestRoom(t *testing.T) {
	targets := map[string]mysql.Target{"a": sandboxtest.Target(t, sandboxtest.Lend(t, "mariadb")), "b": sandboxtest.Target(t, sandboxtest.Lend(t, "mysql-9.7"))}
	for _, target := range targets {
		do(t, target, "CREATE DATABASE adv", "CREATE TABLE adv.nopk (a INT) ENGINE=InnoDB", "CREATE TABLE adv.auto (id TINYINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB AUTO_INCREMENT=250",
			"INSERT INTO adv.auto VALUES (NULL)", "CREATE DATABASE left_out", "CREATE TABLE left_out.t (a INT) ENGINE=InnoDB")
	}
	dir := t.TempDir()
	r := open(t, dir, targets, settings)
	first := r.look()
	if got, want := words(mine(first)), "open schema.autoinc adv.auto.id a+b, open schema.no_pk adv.nopk a+b"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	const rings = "advice.schema.autoinc adv.auto.id"
	await.Until(t, func() bool { return r.board.rings("a") == rings && r.board.rings("b") == rings }, "what is critical rings on both")

	if _, _, err := r.Decide(t.Context(), About{ID: "schema.autoinc", Object: "adv.auto.id", Instances: []string{"b"}}, Decision{Kind: state.AdviceAccepted, At: time.Now(), Who: "ann", Reason: "it is \"thrown\" away"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Decide(t.Context(), About{ID: "schema.autoinc", Object: "adv.other"}, Decision{Kind: state.AdviceAccepted}); err != ErrNothing {
		t.Errorf("deciding about nothing: got %v, want ErrNothing", err)
	}
	await.Until(t, func() bool { return r.board.rings("a") == rings && r.board.rings("b") == "" }, "what was accepted does not ring")

	// A process that dies loses nothing of it.
	r.stop()
	r = open(t, dir, targets, settings)
	await.Until(t, func() bool { return r.board.rings("a") == rings }, "what rang rings after a restart, without a look")
	do(t, targets["a"], "ALTER TABLE adv.nopk ADD PRIMARY KEY (a)", "ALTER TABLE adv.auto MODIFY COLUMN id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT")
	second := mine(r.look())
	if got, want := words(second), "accepted schema.autoinc adv.auto.id b, gone schema.autoinc adv.auto.id a, gone schema.no_pk adv.nopk a, open schema.no_pk adv.nopk b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, f := range second.Findings {
		for _, was := range first.Findings {
			if f.State == "open" && f.ID == was.ID && f.Object == was.Object && !f.On[0].Since.Equal(was.On[len(was.On)-1].Since) {
				t.Errorf("%s is since %s after a second look, was since %s", f.ID, f.On[0].Since, was.On[len(was.On)-1].Since)
			}
		}
	}
	await.Until(t, func() bool { return r.board.rings("a") == "" }, "what is gone does not ring")
	if _, err := r.Undo(t.Context(), 0, About{ID: "schema.autoinc", Object: "adv.auto.id"}); err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool { return r.board.rings("b") == rings }, "what is no longer accepted rings again")
	events, err := r.facts.Events(t.Context(), state.EventQuery{Kinds: []fleet.EventKind{fleet.EventFinding}})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, e := range events {
		texts = append(texts, e.Instance+" "+e.Text)
	}
	all := strings.Join(texts, "\n")
	for _, want := range []string{"a advice: the first look found", "a advice: ended after", "table adv.nopk has no primary key"} {
		if !strings.Contains(all, want) {
			t.Errorf("no event says %q; got\n%s", want, all)
		}
	}
}

// TestUnreadable: what an account may no longer see, and a server that does not answer, ends no finding.
func TestUnreadable(t *testing.T) {
	node := sandboxtest.Lend(t, "mariadb")
	root := sandboxtest.Target(t, node)
	do(t, root, "CREATE DATABASE adv", "CREATE TABLE adv.nopk (a INT) ENGINE=InnoDB", "CREATE USER eye@'%' IDENTIFIED BY 'Eye-1-see'", "GRANT SELECT, PROCESS, SLAVE MONITOR ON *.* TO eye@'%'")
	eye, err := mysql.ParseTarget(fmt.Sprintf("eye:Eye-1-see@tcp(127.0.0.1:%d)/", node.Port))
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, t.TempDir(), map[string]mysql.Target{"a": eye}, settings)
	const want = "open schema.no_pk adv.nopk a"
	if a := r.look(); words(mine(a)) != want {
		t.Fatalf("got %s, %+v; want %s", words(mine(a)), a.Servers, want)
	}
	do(t, root, "ALTER TABLE adv.nopk ADD PRIMARY KEY (a)", "CREATE TABLE adv.blind (a INT) ENGINE=InnoDB", "REVOKE SELECT ON *.* FROM eye@'%'", "GRANT SELECT ON adv.blind TO eye@'%'")
	if a := r.look(); !strings.Contains(words(mine(a)), want) || !mine(a).Findings[slices.IndexFunc(mine(a).Findings, func(f Kept) bool { return f.Object == "adv.nopk" })].On[0].Unsure {
		t.Errorf("a table that the account may not see: got %s, %+v; want %s, unsure", words(mine(a)), a, want)
	}
	do(t, root, "GRANT SELECT ON *.* TO eye@'%'")
	if got, now := words(mine(r.look())), "gone schema.no_pk adv.nopk a, open schema.no_pk adv.blind a"; got != now {
		t.Errorf("all can be seen again: got %s, want %s", got, now)
	}
	do(t, root, "ALTER USER eye@'%' IDENTIFIED BY 'Another-1'")
	a := r.look()
	if got := words(mine(a)); got != "gone schema.no_pk adv.nopk a, open schema.no_pk adv.blind a" || !strings.Contains(a.Servers[0].Error, "denied") || a.Servers[0].Looked.IsZero() {
		t.Errorf("a server that lets nobody in: got %s, %+v; want %s, and why", got, a.Servers[0], want)
	}
}

// TestKilled: a process that looks at a server again and again, while what is wrong with it changes, is killed at random moments. What it said
// that it kept is there, and since when.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("RISSO_ADVICE_DIR"); dir != "" {
		target, err := mysql.ParseTarget(os.Getenv("RISSO_ADVICE_DSN"))
		if err != nil {
			t.Fatal(err)
		}
		r := open(t, dir, map[string]mysql.Target{"a": target}, settings)
		for i := 0; ; i++ {
			r.look()
			_, _, err := r.Decide(t.Context(), About{ID: "schema.no_pk", Object: "adv.nopk"}, Decision{Kind: state.AdviceAccepted, At: time.Now(), Reason: fmt.Sprint(i)})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println("kept", i)
		}
	}
	node := sandboxtest.Lend(t, "mariadb")
	target := sandboxtest.Target(t, node)
	do(t, target, "CREATE DATABASE adv", "CREATE TABLE adv.nopk (a INT) ENGINE=InnoDB")
	dir := t.TempDir()
	var since time.Time
	for life := range 4 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$", "-test.timeout=30s")
		cmd.Env = append(os.Environ(), "RISSO_ADVICE_DIR="+dir, "RISSO_ADVICE_DSN="+node.DSN)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		last := -1
		buf := make([]byte, 4096)
		for begun := time.Now(); last < 2+life && time.Since(begun) < 20*time.Second; {
			n, err := out.Read(buf)
			for _, line := range strings.Split(string(buf[:n]), "\n") {
				_, _ = fmt.Sscanf(line, "kept %d", &last)
			}
			if err != nil {
				break
			}
		}
		time.Sleep(time.Duration(life*3) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		if last < 0 {
			t.Fatal("the process kept nothing")
		}
		func() {
			r := open(t, dir, map[string]mysql.Target{"a": target}, settings)
			defer r.stop()
			a, err := r.List(t.Context(), Query{State: "all"})
			if err != nil {
				t.Fatal(err)
			}
			if got := words(mine(a)); got != "accepted schema.no_pk adv.nopk a" {
				t.Fatalf("life %d: got %s, want what was kept, accepted", life, got)
			}
			f := mine(a).Findings[0]
			var kept int
			if _, err := fmt.Sscan(f.Decision.Reason, &kept); err != nil || kept < last {
				t.Errorf("life %d: the decision is number %s, want %d or a later one", life, f.Decision.Reason, last)
			}
			if !since.IsZero() && !f.Since.Equal(since) {
				t.Errorf("life %d: it is since %s, was since %s", life, f.Since, since)
			}
			since = f.Since
		}()
	}
}
