package retire

import (
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestUnseen: of which time between two readings it is not known what ran.
func TestUnseen(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	was := Reading{Time: at, Began: at.Add(-time.Hour), Start: at.Add(-time.Hour), Lost: 5, Apart: 5}
	now := Reading{Time: at.Add(time.Hour), Began: was.Began, Start: was.Start.Add(time.Second), Lost: 5, Apart: 7}
	with := func(r Reading, f func(*Reading)) Reading { f(&r); return r }
	for _, x := range []struct {
		name      string
		last, now Reading
		want      time.Duration
		why       string
	}{
		{"all was seen", was, now, 0, ""},
		{"restarted", was, with(now, func(r *Reading) {
			r.Start, r.Began, r.Lost, r.Apart = at.Add(10*time.Minute), at.Add(11*time.Minute), 0, 0
		}), 11 * time.Minute, "restarted"},
		{"emptied", was, with(now, func(r *Reading) { r.Began, r.Lost = at.Add(50*time.Minute), 0 }), 50 * time.Minute, "emptied"},
		{"emptied, and full again", was, with(now, func(r *Reading) { r.Began, r.Lost = at.Add(50*time.Minute), 1 }), time.Hour, "full"},
		{"full", was, with(now, func(r *Reading) { r.Lost = 6 }), time.Hour, "full"},
		{"prepared statements", was, with(now, func(r *Reading) { r.Apart = 100 }), time.Hour, "95 executions of prepared"},
		{"not counted", with(was, func(r *Reading) { r.Blind = "it was off" }), now, time.Hour, "it was off"},
		{"not counted from now on", was, with(now, func(r *Reading) { r.Blind = "it is off" }), time.Hour, "it is off"},
	} {
		if got, why := x.last.unseen(x.now); got != x.want || !strings.Contains(why, x.why) {
			t.Errorf("%s: got %s, %q; want %s, %q", x.name, got, why, x.want, x.why)
		}
	}
}

// TestNotSeen: an index whose time is over is not dropped as long as it is not known what ran: after the table of classes was emptied, was full,
// was switched off, after a restart. Then it is.
func TestNotSeen(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Up(t, kind, "performance_schema=ON")
			c := sandboxtest.Connect(t, node)
			made(t, c)
			now := time.Now()
			r := &Retirer{Folder: Open(t.TempDir()), Server: Server{Name: "s", Target: sandboxtest.Target(t, node)}, Watch: time.Hour, Now: func() time.Time { return now }}
			rec, err := r.Prepare(t.Context(), table, "kb")
			if err == nil {
				err = r.Begin(t.Context(), rec)
			}
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(2 * time.Hour)
			exec := func(s string) func() {
				return func() {
					if err := sandboxtest.Connect(t, node).Exec(t.Context(), s); err != nil {
						t.Fatalf("%s: %v", s, err)
					}
				}
			}
			off, on := exec("UPDATE performance_schema.setup_consumers SET ENABLED = 'NO' WHERE NAME = 'statements_digest'"), exec("UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = 'statements_digest'")
			for _, x := range []struct {
				name, want string // part of what was done, or of the error
				do         func()
			}{
				{"emptied", "was emptied", func() {
					anotherSecond()
					exec("TRUNCATE performance_schema.events_statements_summary_by_digest")()
				}},
				{"switched off", "statements_digest of performance_schema is off", off},
				{"switched on again", "statements_digest of performance_schema is off", on},
				{"without performance_schema", "performance_schema is off", func() { again(t, node, "--performance_schema=OFF") }},
				{"without a table", "table of classes of statements is empty", func() { again(t, node, "--performance_schema_digests_size=0") }},
				{"with one that is full", "table of classes of statements is empty", func() { again(t, node, "--performance_schema_digests_size=3") }},
				{"full still", "is full", exec("SELECT 'a statement that found no room'")},
				{"restarted", "not all that ran was seen", func() { again(t, node) }},
			} {
				x.do()
				due := rec.Due
				got, err := r.Check(t.Context(), rec, false)
				said := got.Did
				if err != nil {
					said += " " + err.Error()
				}
				if rec.Phase != Watching || !strings.Contains(said, x.want) || err == nil && !rec.Due.After(due) {
					t.Errorf("%s: got %s, due %s later, %q, %v; want that it is watched longer, and %q", x.name, rec.Phase, rec.Due.Sub(due), got.Did, err, x.want)
				}
				if !strings.Contains(create(t, sandboxtest.Connect(t, node)), "`kb`") {
					t.Fatalf("%s: it was dropped", x.name)
				}
			}
			now = now.Add(2 * time.Hour)
			if got, err := r.Check(t.Context(), rec, true); err != nil || rec.Phase != Watching || got.Did != "would be dropped" {
				t.Errorf("when all was seen, dry run: got %+v, %v, %s", got, err, rec.Phase)
			}
			if got, err := r.Check(t.Context(), rec, false); err != nil || rec.Phase != Dropped {
				t.Errorf("when all was seen: got %+v, %v, %s; want that it is dropped", got, err, rec.Phase)
			}
		})
	}
}

// anotherSecond waits until a table of classes that begins anew can be told from the one before: MariaDB says in whole seconds when a class was
// seen first.
func anotherSecond() { time.Sleep(1100 * time.Millisecond) }

// again restarts a server.
func again(t *testing.T, node *sandbox.Node, args ...string) {
	t.Helper()
	anotherSecond()
	if err := node.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := node.Start(t.Context(), args...); err != nil {
		t.Fatal(err)
	}
}
