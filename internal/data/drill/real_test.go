package drill

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/data/physical"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/blob"
)

func openRepo(t *testing.T, dir string) *repo.Repo {
	t.Helper()
	store, err := blob.Open(t.Context(), dir, blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	r, err := repo.CreateWith(t.Context(), repo.On(store), repo.Keys{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// take takes a physical backup of a server with a few tables, an event that is due each second, and accounts.
func take(t *testing.T, n *sandbox.Node, r *repo.Repo) repo.Header {
	t.Helper()
	if _, err := n.Query(t.Context(), `SET GLOBAL event_scheduler=ON; CREATE DATABASE shop; USE shop; CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, t VARCHAR(200), KEY(t)); CREATE TABLE ticks (at TIMESTAMP(6));
		INSERT INTO a (t) VALUES ('x'),('y'),('z'); INSERT INTO a (t) SELECT CONCAT(t, id) FROM a; INSERT INTO a (t) SELECT CONCAT(t, id) FROM a; INSERT INTO a (t) SELECT CONCAT(t, id) FROM a;
		CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO INSERT INTO shop.ticks VALUES (NOW(6)); CREATE USER root@'10.%' IDENTIFIED BY 'Secret-123!'; ALTER USER root@localhost IDENTIFIED BY ''`); err != nil {
		t.Fatal(err)
	}
	target, err := mysql.ParseTarget(n.DSN)
	if err != nil {
		t.Fatal(err)
	}
	h, err := physical.Take(t.Context(), physical.Options{Target: target, Repo: r, Name: "db1", Install: true, WorkDir: t.TempDir(), JournalDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// shortDir is a folder for sandboxes, which is empty except for locks at the end.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if list, err := sandbox.List(dir); err != nil || len(list) > 0 {
			t.Errorf("left: got %v, %v; want none", list, err)
			for _, s := range list {
				s.Down(context.Background())
			}
		}
		os.RemoveAll(dir)
	})
	return dir
}

func TestDrill(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Up(t, spec)
			place := t.TempDir()
			r := openRepo(t, place)
			h := take(t, n, r)
			dir := shortDir(t)
			o := Options{Repo: r, Dir: dir, Checks: []Check{{"SELECT COUNT(*) FROM shop.a", "24"}, {"SELECT @@event_scheduler", "OFF"}}}
			if spec != "mariadb" {
				o.Server = spec // this machine may have several
			}
			p, err := Run(t.Context(), o)
			if err != nil || !p.Passed || p.Backup != h.ID || p.Recovery <= 0 || p.Check.Tables < 2 || len(p.Queries) != 2 || p.Bytes == 0 {
				t.Fatalf("got %+v, %v; want Passed true, Backup %v, Recovery more than 0, Check.Tables at least 2, len(Queries) 2, Bytes not 0", p, err, h.ID)
			}
			if c := p.Counted; c == nil || c.Tables != 2 || c.Rows < 24 || c.Each["`shop`.`a`"] != 24 || c.Since != nil {
				t.Errorf("counted: got %+v; want c not nil, Tables 2, Rows at least 24, Each[\"`shop`.`a`\"] 24, Since nil", c)
			}
			t.Log(p.Summary(), p.Stages)
			lie(t, r, p)
			o.Checks = []Check{{"SELECT COUNT(*) FROM shop.a", "25"}, {"SELECT nonsense", ""}}
			if p, err = Run(t.Context(), o); err != nil || p.Passed || len(p.Failures) != 3 || !strings.Contains(p.Failures[0], "`shop`.`a` has 24 rows, it had 25") || !strings.Contains(p.Failures[1], "gave 24") {
				t.Fatalf("got %+v, %v; want Passed false, len(Failures) 3, \"`shop`.`a` has 24 rows, it had 25\" in Failures[0], \"gave 24\" in Failures[1]",
					p, err)
			}
			list, err := Proofs(t.Context(), r, "")
			if err != nil || len(list) != 3 || !list[0].Passed || list[2].Passed {
				t.Fatalf("got %+v, %v; want len(list) 3, list[0].Passed true, list[2].Passed false", list, err)
			}
			if spec == "mariadb" {
				testInterrupted(t, o)
				testDamaged(t, o, place)
			}
		})
	}
}

// TestServerEnds ends the throw-away server in the middle, in several ways: the drill says so immediately, and does not try to reach it for
// minutes. Only if it ended by itself may the backup be the cause.
func TestServerEnds(t *testing.T) {
	dir := shortDir(t)
	for sig, outside := range map[syscall.Signal]bool{syscall.SIGKILL: true, syscall.SIGTERM: true, syscall.SIGSEGV: false} {
		s, err := sandbox.Up(t.Context(), sandbox.Options{Name: "drill-ends", Dir: dir, Servers: []string{"mariadb"}, StartTimeout: 3 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Down(context.WithoutCancel(t.Context()))
		r := &run{}
		end := func() {
			if err := r.node.Kill(sig); err != nil {
				t.Error(err)
			}
		}
		for how, do := range map[string]func(context.Context) error{
			"waits":           func(ctx context.Context) error { end(); <-ctx.Done(); return ctx.Err() },
			"finds a problem": func(ctx context.Context) error { end(); <-ctx.Done(); return nil },
			"loses its connection": func(ctx context.Context) error {
				target, err := mysql.ParseTarget(r.node.DSN)
				if err != nil {
					return err
				}
				c, err := mysql.Connect(ctx, target, nil)
				if err != nil {
					return err
				}
				defer c.Close()
				end()
				_, err = c.Text(context.WithoutCancel(ctx), "SELECT SLEEP(300)")
				return err
			},
		} {
			*r = run{node: s.Primary()}
			if err := r.node.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if how == "finds a problem" {
				r.proof.fail("rows are missing")
			}
			err = r.whileAlive(t.Context(), do)
			if errors.Is(err, sandbox.ErrKilled) != outside || errors.Is(err, errServerEnded) == outside || (usage(err) != nil) != outside {
				t.Errorf("%s, who %s: %v", sig, how, err)
			}
			<-r.node.Ended()
		}
		if err := s.Down(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r := &run{Options: Options{Dir: filepath.Join(dir, "not", "there")}, header: repo.Header{Kind: repo.Logical, Bytes: 1 << 60}}
	if err := r.room(); !errors.Is(err, physical.ErrNoRoom) || usage(err) == nil {
		t.Errorf("got %v; want physical.ErrNoRoom, usage(err) not nil", err)
	}
	if r.header.Kind = repo.Physical; r.room() != nil {
		t.Error("a physical backup's room is looked at twice")
	}
}

// lie records a drill that counted one row more.
func lie(t *testing.T, r *repo.Repo, p Proof) {
	t.Helper()
	more := *p.Counted
	more.Each = maps.Clone(more.Each)
	more.Each["`shop`.`a`"]++
	p.Counted, p.Began = &more, p.Began.Add(time.Millisecond)
	b, err := json.Marshal(p)
	if err == nil {
		err = r.AddProof(t.Context(), repo.Proof{Backup: p.Backup, Time: p.Began, JSON: b})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// testInterrupted ends a drill in the middle: nothing is left, nothing is recorded.
func testInterrupted(t *testing.T, o Options) {
	for _, stage := range []string{"fetching", "preparing", "check tables"} {
		ctx, cancel := context.WithCancel(t.Context())
		o.Progress = func(p Progress) {
			if p.Stage == stage {
				cancel()
			}
		}
		if p, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %+v, %v; want context.Canceled", stage, p, err)
		}
		if list, err := sandbox.List(o.Dir); err != nil || len(list) > 0 {
			t.Errorf("%s leaves %v, %v; want none", stage, list, err)
		}
		cancel()
	}
	if list, err := Proofs(t.Context(), o.Repo, ""); err != nil || len(list) != 3 {
		t.Errorf("got %d proofs, %v; want 3", len(list), err)
	}
}

// testDamaged flips a bit in a part: the drill says so.
func testDamaged(t *testing.T, o Options, place string) {
	parts, err := filepath.Glob(filepath.Join(place, "physical", "*", "*"))
	if err != nil || len(parts) == 0 {
		t.Fatalf("got %v, %v; want not 0", parts, err)
	}
	b, err := os.ReadFile(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/3] ^= 4
	if err := os.Chmod(parts[0], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(parts[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	o.Progress = nil
	p, err := Run(t.Context(), o)
	if err != nil || p.Passed || len(p.Failures) != 1 || !strings.Contains(p.Failures[0], "damaged") {
		t.Errorf("got %+v, %v; want Passed false, len(Failures) 1, \"damaged\" in Failures[0]", p, err)
	}
}

// TestKilled kills a drill with SIGKILL; the next one throws away what it left.
func TestKilled(t *testing.T) {
	if place := os.Getenv("RISSO_TEST_DRILL_PLACE"); place != "" {
		o := Options{Repo: openRepo(t, place), Dir: os.Getenv("RISSO_TEST_DRILL_DIR"), Checks: []Check{{"SELECT SLEEP(60)", "0"}}}
		_, err := Run(t.Context(), o)
		t.Fatalf("it went on: got %v, want place \"\"", err)
	}
	n := sandboxtest.Up(t, "mariadb")
	place, dir := t.TempDir(), shortDir(t)
	r := openRepo(t, place)
	take(t, n, r)
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "RISSO_TEST_DRILL_PLACE="+place, "RISSO_TEST_DRILL_DIR="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool {
		list, err := sandbox.List(dir)
		return err == nil && len(list) == 1 && list[0].State == sandbox.StateRunning
	}, "the server of the drill")
	if err := Sweep(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if list, err := sandbox.List(dir); err != nil || len(list) != 1 {
		t.Fatalf("the sandbox of a living drill is gone: %v, %v; want length 1", list, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if list, err := sandbox.List(dir); err != nil || len(list) != 1 || list[0].State != sandbox.StateRunning {
		t.Fatalf("got %v, %v; want len(list) 1, list[0].State sandbox.StateRunning", list, err)
	}
	if p, err := Run(t.Context(), Options{Repo: r, Dir: dir, SkipCheck: true}); err != nil || !p.Passed {
		t.Fatalf("got %+v, %v; want Passed true", p, err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "."+purpose)); err != nil || len(left) > 0 {
		t.Errorf("got %v, %v; want none", left, err)
	}
}
