package advice

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/state"
)

// TestUnusedInGroup: an index that only a report on a replica uses is not unused; of a replica that cannot be reached nothing is known, which is
// said instead of a statement that would hide the index.
func TestUnusedInGroup(t *testing.T) {
	for _, kind := range []string{"mysql-9.7", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			pair := sandboxtest.Pair(t, kind, "performance_schema=ON")
			targets := map[string]mysql.Target{"primary": sandboxtest.Target(t, pair.Nodes[0]), "replica": sandboxtest.Target(t, pair.Nodes[1])}
			do(t, targets["primary"], "CREATE DATABASE adv", "CREATE TABLE adv.t (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b INT, KEY ka (a), KEY kb (b)) ENGINE=InnoDB", "INSERT INTO adv.t (a, b) VALUES (1, 1), (2, 2)", "ANALYZE TABLE adv.t")
			p, q := sandboxtest.Connect(t, pair.Nodes[0]), sandboxtest.Connect(t, pair.Nodes[1])
			await.Until(t, func() bool {
				n, err := q.Text(t.Context(), "SELECT COUNT(*) FROM adv.t")
				return err == nil && n == "2"
			}, "the rows are on the replica")
			if err := q.Query(t.Context(), "SELECT a FROM adv.t WHERE a = 1", mysql.IgnoreRow); err != nil { // the report
				t.Fatal(err)
			}
			dir := t.TempDir()
			uses := filepath.Join(dir, "uses")
			for _, target := range targets {
				if err := gather.KeepUse(t.Context(), target, nil, uses); err != nil {
					t.Fatal(err)
				}
			}
			for _, c := range []*mysql.Conn{p, q} {
				older(t, uses, c.Server.Place(), time.Now().AddDate(0, 0, -40), time.Now())
			}
			r := open(t, dir, targets, settings)
			r.Uses = uses
			r.board.seats = map[string]fleet.Seat{"primary": p.Server.Seat, "replica": q.Server.Seat}
			r.board.follows = map[string][]string{"replica": {"primary"}}
			unused := func() string { // of the primary
				t.Helper()
				r.look()
				rows, err := r.facts.Advice(t.Context(), state.AdviceQuery{Instances: []string{"primary"}, Open: true})
				if err != nil {
					t.Fatal(err)
				}
				var list []string
				for _, row := range rows {
					var f advise.Finding
					if err := json.Unmarshal(row.Body, &f); err != nil {
						t.Fatal(err)
					}
					if f.ID == "index.unused" && strings.HasPrefix(f.Object, "adv.t.") {
						list = append(list, f.Object+" "+f.Statement+" "+f.Doubt)
					}
				}
				return strings.Join(list, "\n")
			}
			if got := unused(); !strings.HasPrefix(got, "adv.t.kb ALTER TABLE") || strings.Contains(got, "adv.t.ka") {
				t.Errorf("got %q, want kb alone: the replica uses ka", got)
			}
			older(t, uses, q.Server.Place(), time.Now().AddDate(0, 0, -2), time.Now())
			if got := unused(); !strings.Contains(got, "adv.t.kb ALTER TABLE") || !strings.Contains(got, "on replica it is known only since") {
				t.Errorf("got %q, want that the replica counts for two days only", got)
			}
			older(t, uses, q.Server.Place(), time.Now().AddDate(0, 0, -40), time.Now().Add(-12*time.Hour)) // nobody read its counters since
			if got := unused(); !strings.Contains(got, "adv.t.kb") || strings.Contains(got, "ALTER TABLE") || !strings.Contains(got, "on replica is not known") || strings.Contains(got, "adv.t.ka") {
				t.Errorf("got %q, want that nothing is known of the replica", got)
			}
			older(t, uses, q.Server.Place(), time.Now().AddDate(0, 0, -40), time.Now())
			r.board.seats["replica"] = fleet.Seat{} // it never answered
			if got := unused(); strings.Contains(got, "ALTER TABLE") || !strings.Contains(got, "on replica is not known") {
				t.Errorf("got %q, want that nothing is known of a server that may be a replica", got)
			}
		})
	}
}

// older lets what is kept of the use of a server's indexes begin and end at other times.
func older(t *testing.T, dir, seat string, since, last time.Time) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "use-*.json"))
	if err != nil || len(files) != 2 {
		t.Fatalf("got %q, %v; want two files", files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var kept map[string]any
		if err := json.Unmarshal(b, &kept); err != nil {
			t.Fatal(err)
		}
		if kept["seat"] != seat {
			continue
		}
		kept["since"], kept["last"] = since.UTC(), last.UTC()
		for _, tables := range kept["uses"].(map[string]any) {
			for _, table := range tables.(map[string]any) {
				for _, index := range table.(map[string]any)["indexes"].(map[string]any) {
					delete(index.(map[string]any), "first")
				}
			}
		}
		if b, err = json.Marshal(kept); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
