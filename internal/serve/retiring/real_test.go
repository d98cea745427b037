package retiring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/explain/history"
	"github.com/rissodb/risso/internal/explain/retire"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/events"
	"github.com/rissodb/risso/internal/store/state"
)

// dieAt is what tells a process that runs this test's binary where to kill itself.
const dieAt = "RISSO_TEST_RETIRING"

// order is what such a process looks at.
type order struct {
	DSN, Dir, Seat, At string
	Now                time.Time
}

func TestMain(m *testing.M) {
	if text := os.Getenv(dieAt); text != "" {
		os.Exit(obey(text))
	}
	os.Exit(sandboxtest.Main(m))
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// board is what is known of the servers of a test.
type board struct {
	mu      sync.Mutex
	noted   map[string][]fleet.Finding
	seats   map[string]fleet.Seat
	follows map[string][]string
}

func (b *board) Note(instance, _ string, findings []fleet.Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noted[instance] = findings
}
func (b *board) Seat(id string) fleet.Seat             { return b.seats[id] }
func (b *board) Follows(time.Time) map[string][]string { return b.follows }

// wrong is what is wrong with an instance.
func (b *board) wrong(instance string) string {
	var list []string
	for _, f := range b.noted[instance] {
		list = append(list, f.ID+" "+f.Subject+": "+f.What)
	}
	return strings.Join(list, "; ")
}

// obey looks once, and kills itself in the middle of it.
func obey(text string) int {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return 3
	}
	target, err := mysql.ParseTarget(o.DSN)
	if err != nil {
		return 3
	}
	facts, err := state.Open(context.Background(), filepath.Join(o.Dir, "state.db"))
	if err != nil {
		return 4
	}
	defer facts.Close()
	var seat fleet.Seat
	if err := json.Unmarshal([]byte(o.Seat), &seat); err != nil {
		return 3
	}
	r := room(o.Dir, facts, &board{noted: map[string][]fleet.Finding{}, seats: map[string]fleet.Seat{"primary": seat}}, map[string]mysql.Target{"primary": target}, nil, o.Now)
	r.at = func(point string) {
		if point == o.At {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	r.Look(context.Background())
	return 5
}

func room(dir string, facts *state.Store, b *board, targets map[string]mysql.Target, store events.Store, now time.Time) *Room {
	o := Options{Folder: retire.Open(filepath.Join(dir, "index")), Traffic: func(string) *mysql.Traffic { return nil }, Store: store, Facts: facts, Board: b, Logger: quiet, Now: func() time.Time { return now }}
	var list []config.Watched
	o.Servers = func() []config.Watched { return list }
	for _, id := range []string{"primary", "replica"} {
		if target, ok := targets[id]; ok {
			list = append(list, config.Watched{Instance: fleet.Instance{ID: id, Name: id, Kind: fleet.KindServer}, Target: target})
		}
	}
	return New(o)
}

var table = mysql.TableName{Schema: "d", Name: "t"}

// made makes a table with two indexes.
func made(t *testing.T, c *mysql.Conn) {
	t.Helper()
	for _, s := range []string{"DROP DATABASE IF EXISTS d", "CREATE DATABASE d", "USE d", "CREATE TABLE n (d INT PRIMARY KEY)", "INSERT INTO n VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)",
		"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b INT, pad CHAR(50), KEY ka (a), KEY kb (b)) ENGINE=InnoDB",
		"INSERT INTO t (a, b, pad) SELECT x.d*100+y.d*10+z.d, x.d, 'x' FROM n x, n y, n z, n w"} {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := c.Query(t.Context(), "ANALYZE TABLE d.t", mysql.IgnoreRow); err != nil {
		t.Fatal(err)
	}
}

// work looks up rows by ka.
func work(t *testing.T, c *mysql.Conn) {
	t.Helper()
	for i := range 25 {
		if err := c.Query(t.Context(), fmt.Sprintf("SELECT pad FROM d.t WHERE a = %d", i), mysql.IgnoreRow); err != nil {
			t.Fatal(err)
		}
	}
}

// stands is how an index stands: shown, hidden, or gone.
func stands(t *testing.T, c *mysql.Conn, index string) string {
	t.Helper()
	rows, err := c.Maps(t.Context(), "SHOW CREATE TABLE d.t")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(rows[0]["Create Table"]) {
		if strings.Contains(line, "`"+index+"`") {
			if strings.Contains(line, "INVISIBLE") || strings.Contains(line, "IGNORED") {
				return "hidden"
			}
			return "shown"
		}
	}
	return "gone"
}

// begun hides an index, as the command does: nobody names the replica.
func begun(t *testing.T, dir string, target mysql.Target, index string, at time.Time) *retire.Record {
	t.Helper()
	r := &retire.Retirer{Folder: retire.Open(filepath.Join(dir, "index")), Server: retire.Server{Name: "primary", Target: target}, Watch: 21 * 24 * time.Hour, Now: func() time.Time { return at }}
	rec, err := r.Prepare(t.Context(), table, index)
	if err == nil {
		err = r.Begin(t.Context(), rec)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// record is the newest of the journal.
func record(t *testing.T, dir string) *retire.Record {
	t.Helper()
	list, err := retire.Open(filepath.Join(dir, "index")).List()
	if err != nil || len(list) == 0 {
		t.Fatalf("got %d records, %v", len(list), err)
	}
	return list[0]
}

// told are the events, in order.
func told(t *testing.T, facts *state.Store) (list []string) {
	t.Helper()
	found, err := facts.Events(t.Context(), state.EventQuery{Kinds: []fleet.EventKind{fleet.EventFinding}})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		list = append(list, e.Severity.String()+" "+strings.TrimPrefix(e.Text, "index d.t."))
	}
	return list
}

var kinds = []string{"mysql-9.7", "mariadb"}

// TestGroup: what only a replica's report needs comes back, by what serve kept of it; a replica that is away, or does not replicate, keeps an
// index from being dropped; in the end it is.
func TestGroup(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			pair := sandboxtest.Pair(t, kind, "performance_schema=ON")
			primary, replica := pair.Nodes[0], pair.Nodes[1]
			p, q := sandboxtest.Connect(t, primary), sandboxtest.Connect(t, replica)
			made(t, p)
			reaches := func(index, want string) {
				t.Helper()
				await.Until(t, func() bool { return stands(t, q, index) == want }, "on the replica "+index+" is "+want)
			}
			await.Until(t, func() bool {
				n, err := q.Text(t.Context(), "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd' AND TABLE_NAME = 't'")
				return err == nil && n == "1"
			}, "the table is on the replica")
			await.Until(t, func() bool {
				n, err := q.Text(t.Context(), "SELECT COUNT(*) FROM d.t")
				return err == nil && n == "10000"
			}, "the rows are on the replica")
			dir := t.TempDir()
			facts, err := state.Open(t.Context(), filepath.Join(dir, "state.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer facts.Close()
			store, err := events.OpenEmbedded(t.Context(), filepath.Join(dir, "statements.duckdb"))
			if err != nil {
				t.Skip(err)
			}
			defer store.Close()
			targets := map[string]mysql.Target{"primary": sandboxtest.Target(t, primary), "replica": sandboxtest.Target(t, replica)}
			b := &board{noted: map[string][]fleet.Finding{}, seats: map[string]fleet.Seat{"primary": p.Server.Seat, "replica": q.Server.Seat}, follows: map[string][]string{"replica": {"primary"}}}
			begin := time.Now()
			collector := history.New(targets["replica"], fleet.Instance{ID: "replica"}, history.Options{Store: store, Event: func(fleet.Event) {}, Logger: quiet})
			collector.Read(t.Context(), begin.Add(-3*time.Hour))
			work(t, q) // the report
			collector.Read(t.Context(), begin.Add(-2*time.Hour))

			begun(t, dir, targets["primary"], "ka", begin)
			reaches("ka", "hidden")
			if err := q.Exec(t.Context(), "TRUNCATE performance_schema.events_statements_summary_by_digest"); err != nil { // only serve knows what it was
				t.Fatal(err)
			}
			work(t, q)
			work(t, q) // not as often as before: a class whose count is the same within a second was not emptied, as MariaDB tells it
			collector.Read(t.Context(), begin.Add(10*time.Minute))
			r := room(dir, facts, b, targets, store, begin.Add(2*time.Hour))
			r.Look(t.Context())
			if rec := record(t, dir); rec.Phase != retire.Back || len(rec.Worse) != 1 || rec.Worse[0].Server != "replica" || !strings.Contains(rec.Worse[0].What, " rows by a call, 10 before") {
				t.Fatalf("got %s, %+v, %+v; want that it is back because of the report", rec.Phase, rec.Worse, rec.Log)
			}
			if got := b.wrong("primary"); stands(t, p, "ka") != "shown" || !strings.Contains(got, "advice.index.back d.t.ka: index d.t.ka was taken back because class "+record(t, dir).Worse[0].Digest+" on replica examines") {
				t.Errorf("got %s; want that it says why it is back", got)
			}
			reaches("ka", "shown")
			before := told(t, facts)
			if !strings.HasPrefix(before[len(before)-1], "warning ka is being retired: ALTER TABLE") || !strings.Contains(before[len(before)-1], "; because class ") {
				t.Errorf("got %q; want that it was told", before)
			}
			r = room(dir, facts, b, targets, store, begin.Add(4*time.Hour)) // another process
			r.Look(t.Context())
			if after := told(t, facts); !slices.Equal(after, before) {
				t.Errorf("told twice: %q, %q", before, after)
			}

			verb := map[string]string{"mysql-9.7": "REPLICA", "mariadb": "SLAVE"}[kind]
			if err := q.Exec(t.Context(), "STOP "+verb+" SQL_THREAD"); err != nil {
				t.Fatal(err)
			}
			begun(t, dir, targets["primary"], "kb", begin.Add(time.Hour))
			due := begin.AddDate(0, 0, 22)
			step := func(what, want string, phase retire.Phase) {
				t.Helper()
				due = due.Add(2 * time.Hour)
				r = room(dir, facts, b, targets, store, due)
				r.Look(t.Context())
				rec := record(t, dir)
				if said := strings.Join(told(t, facts), "\n"); rec.Phase != phase || !strings.Contains(said, want) || phase == retire.Watching && stands(t, p, "kb") != "hidden" {
					t.Errorf("%s: got %s, %s; want %s, and %q told", what, rec.Phase, said, phase, want)
				}
			}
			seat := b.seats["replica"]
			b.seats["replica"] = fleet.Seat{} // it never answered since serve was started
			step("a server that may be a replica is away", "not dropped: replica could not be asked", retire.Watching)
			b.seats["replica"] = seat
			if got := b.wrong("primary"); !strings.Contains(got, "advice.index.waits d.t.kb") {
				t.Errorf("got %s; want that it says that it waits", got)
			}
			step("it does not replicate", "replica is watched from now on", retire.Watching)
			if err := q.Exec(t.Context(), "START "+verb+" SQL_THREAD"); err != nil {
				t.Fatal(err)
			}
			reaches("kb", "hidden")
			step("it replicates again", "the index is not hidden there", retire.Watching)
			again(t, replica, func() { step("it is down", "not dropped: replica: ", retire.Watching) })
			step("it was restarted", "the server was restarted", retire.Watching)
			step("all was seen", "DROP INDEX `kb`", retire.Dropped)
		})
	}
}

// again stops a server, does something, and starts it.
func again(t *testing.T, node *sandbox.Node, meanwhile func()) {
	t.Helper()
	if err := node.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	if err := node.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestKilled: serve is killed at any step; the next one loses nothing and says nothing twice.
func TestKilled(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind, "performance_schema=ON")
			c := sandboxtest.Connect(t, node)
			target := sandboxtest.Target(t, node)
			for _, x := range []struct {
				index, at string
				want      retire.Phase
				stands    string
				told      []string // what is told in the end, each once
			}{
				{"ka", "returning written", retire.Back, "shown", []string{"info ka is being retired: ALTER", "warning ka is being retired: ALTER"}},
				{"ka", "returning done", retire.Back, "shown", []string{"info ka is being retired: ALTER", "warning ka is being retired: ALTER"}},
				{"ka", "checked", retire.Back, "shown", []string{"info ka is being retired: ALTER", "warning ka is being retired: ALTER"}},
				{"ka", "told", retire.Back, "shown", []string{"info ka is being retired: ALTER", "warning ka is being retired: ALTER"}},
				{"kb", "dropping written", retire.Dropped, "gone", []string{"info kb is being retired: ALTER", "info kb is being retired: found not dropped", "info kb is being retired: ALTER"}},
				{"kb", "dropping done", retire.Dropped, "gone", []string{"info kb is being retired: ALTER", "info kb is being retired: ALTER"}},
			} {
				made(t, c)
				dir, at := t.TempDir(), time.Now()
				if x.index == "ka" {
					work(t, c)
				}
				begun(t, dir, target, x.index, at)
				if x.index == "ka" {
					work(t, c)
				} else {
					at = at.AddDate(0, 0, 22)
				}
				at = at.Add(2 * time.Hour)
				seat, _ := json.Marshal(c.Server.Seat)
				text, _ := json.Marshal(order{node.DSN, dir, string(seat), x.at, at})
				cmd := exec.CommandContext(t.Context(), os.Args[0])
				cmd.Env = append(os.Environ(), dieAt+"="+string(text))
				out, err := cmd.CombinedOutput()
				if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != -1 {
					t.Fatalf("%s at %s: it was not killed: %v: %s", x.index, x.at, err, out)
				}
				facts, err := state.Open(t.Context(), filepath.Join(dir, "state.db"))
				if err != nil {
					t.Fatal(err)
				}
				b := &board{noted: map[string][]fleet.Finding{}, seats: map[string]fleet.Seat{"primary": c.Server.Seat}}
				for range 2 { // two more processes
					at = at.Add(2 * time.Hour)
					room(dir, facts, b, map[string]mysql.Target{"primary": target}, nil, at).Look(t.Context())
				}
				got := told(t, facts)
				same := len(got) == len(x.told)
				for i := range x.told {
					same = same && strings.HasPrefix(got[i], x.told[i])
				}
				if rec := record(t, dir); rec.Phase != x.want || stands(t, c, x.index) != x.stands || !same {
					t.Errorf("%s at %s: got %s, %s, %q; want %s, %s, %q", x.index, x.at, rec.Phase, stands(t, c, x.index), got, x.want, x.stands, x.told)
				}
				facts.Close()
			}
		})
	}
}
