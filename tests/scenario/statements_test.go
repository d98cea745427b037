package scenario_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/lack"
)

// queries is the answer of /api/queries, as far as these tests need it.
type queries struct {
	Available   bool
	Why, Remedy string
	Count       int
	Total       struct{ Calls int64 }
	Classes     []struct {
		ID, Fingerprint string
		Calls           int64
		New             bool
	}
	Sources []struct {
		Instance, Source, Why, Remedy string
		Working                       bool
		Last                          int64
		Activity                      struct {
			Why, Remedy string
			Working     bool
		}
	}
}

func (r *risso) queries(t *testing.T, search string) (q queries) {
	t.Helper()
	now := time.Now().Unix()
	r.get(t, "/api/queries", url.Values{"search": {search}, "from": {strconv.FormatInt(now-3600, 10)}, "to": {strconv.FormatInt(now+60, 10)}}, &q)
	return q
}

// TestStatementsSurviveKill: statements of each minute are there while Risso runs, and after it was killed.
func TestStatementsSurviveKill(t *testing.T) {
	t.Parallel()
	eachKind(t, []string{"mysql-9.7", "mariadb"}, func(t *testing.T, kind string) {
		n := single(t, kind, "performance_schema=ON")
		execSQL(t, n, "CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY)")
		data := dataDir(t)
		r := serve(t, data, "--no-host", "--dsn", "db=root@unix("+n.Socket+")/")
		await(t, "statements are read", func() bool { s := r.queries(t, "").Sources; return len(s) == 1 && s[0].Working })

		db, err := n.DB()
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		var ran atomic.Int64
		run := func(times int) {
			for range times {
				if _, err := db.ExecContext(t.Context(), "INSERT IGNORE INTO shop.t VALUES ("+strconv.FormatInt(ran.Add(1)%7, 10)+")"); err != nil {
					t.Fatal(err)
				}
			}
		}
		calls := func() int64 {
			for _, c := range r.queries(t, "shop.t").Classes {
				if strings.HasPrefix(c.Fingerprint, "insert ignore") {
					return c.Calls
				}
			}
			return 0
		}
		run(50)
		await(t, "the minute is stored", func() bool { return calls() == 50 })
		for _, c := range r.queries(t, "").Classes {
			if strings.Contains(c.Fingerprint, "performance_schema") || strings.Contains(c.Fingerprint, "global status") {
				t.Errorf("the observer observes itself: got %s; want no \"performance_schema\" in it, no \"global status\" in it", c.Fingerprint)
			}
		}
		r.kill(t)
		run(20) // no reading
		r = serve(t, data, "--no-host", "--dsn", "db=root@unix("+n.Socket+")/")
		if got := calls(); got != 50 {
			t.Errorf("after the kill %d calls are stored, not 50", got)
		}
		await(t, "statements are read", func() bool { s := r.queries(t, "").Sources; return len(s) == 1 && s[0].Working })
		run(30)
		await(t, "the next minute is stored", func() bool { return calls() == 80 })
		if list, err := filepath.Glob(filepath.Join(data, "events", "*.damaged*")); err != nil || len(list) > 0 {
			t.Errorf("set aside: got %v %v; want none", list, err)
		}
	})
}

// TestStatementsWhyNot says why there are no statements, and how to fix it.
func TestStatementsWhyNot(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	dsn := "db=root@unix(" + n.Socket + ")/"
	r := serve(t, dataDir(t), "--no-host", "--no-statements", "--dsn", dsn)
	if q := r.queries(t, ""); q.Available || q.Why == "" || !strings.Contains(q.Remedy, "--no-statements") {
		t.Errorf("switched off: got %+v; want Available false, Why not \"\", \"--no-statements\" in Remedy", q)
	}
	r = serve(t, dataDir(t), "--no-host", "--dsn", dsn)
	await(t, "it says that performance_schema is off", func() bool {
		q := r.queries(t, "")
		return q.Available && len(q.Sources) == 1 && !q.Sources[0].Working && strings.Contains(q.Sources[0].Remedy, "performance_schema=ON")
	})
	for _, q := range []url.Values{{"limit": {"0"}}, {"order": {"nonsense"}}, {"from": {"5"}, "to": {"4"}}, {"points": {"1000000"}}} {
		if status, body, _ := r.request(t, "GET", "/api/queries", q, nil); status != 400 || !strings.Contains(string(body), `"error"`) {
			t.Errorf("%s: got %d %s; want status 400, \"\\\"error\\\"\" in it", q, status, body)
		}
	}
	if status, body, _ := r.request(t, "GET", "/api/query", url.Values{"id": {"00112233445566778899AABBCCDDEEFF"}}, nil); status != 404 {
		t.Errorf("an unknown class: got %d %s, want 404", status, body)
	}

	// A file that is no store is set aside, with an event.
	data := dataDir(t)
	if err := os.MkdirAll(filepath.Join(data, "events"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "events", "statements.duckdb"), []byte(strings.Repeat("no database\n", 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	r = serve(t, data, "--no-host", "--dsn", dsn)
	e := r.awaitEvent(t, "", "store", nil)
	if !strings.Contains(e.Text, "statements was damaged and moved") || !r.queries(t, "").Available {
		t.Errorf("damage: got %+v; want \"statements was damaged and moved\" in Text, r.queries(t, \"\").Available true", e)
	}
}

// TestStatementsWithoutCgo: the program that was built without cgo watches as always and says what is missing.
func TestStatementsWithoutCgo(t *testing.T) {
	t.Parallel()
	pure := os.Getenv("RISSO_PURE_BIN")
	if pure == "" {
		lack.Of(t, "RISSO_PURE_BIN names no program built without cgo: run script/test")
	}
	n := single(t, "mariadb")
	r := serveProgram(t, pure, nil, dataDir(t), "--no-host", "--dsn", "db=root@unix("+n.Socket+")/")
	if q := r.queries(t, ""); q.Available || !strings.Contains(q.Why, "DuckDB") || !strings.Contains(q.Remedy, "CGO_ENABLED=1") {
		t.Errorf("got %+v; want Available false, \"DuckDB\" in Why, \"CGO_ENABLED=1\" in Remedy", q)
	}
	r.awaitTicks(t, "db", 2)
}

// TestStatementsFromSlowLog: where performance_schema is off, the slow log tells what ran, each call once, also after Risso was
// killed; by whom, and with MariaDB's explain lines by which plan.
func TestStatementsFromSlowLog(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb", "slow_query_log=ON", "long_query_time=0", "log_slow_verbosity=query_plan,explain")
	execSQL(t, n, "CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, a INT); INSERT INTO shop.t VALUES (1, 1), (2, 2), (3, 3)")
	data, dsn := dataDir(t), "db=root@unix("+n.Socket+")/"
	r := serve(t, data, "--no-host", "--dsn", dsn)
	working := func() bool {
		s := r.queries(t, "").Sources
		return len(s) == 1 && s[0].Working && s[0].Source == "slow log"
	}
	await(t, "the slow log is read", working)
	db, err := n.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run := func(times int) {
		for i := range times {
			if _, err := db.ExecContext(t.Context(), "SELECT id FROM shop.t WHERE a = "+strconv.Itoa(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	id := ""
	calls := func() int64 {
		for _, c := range r.queries(t, "shop.t").Classes {
			if strings.HasPrefix(c.Fingerprint, "select id from shop.t") {
				id = c.ID
				return c.Calls
			}
		}
		return 0
	}
	run(40)
	time.Sleep(3 * time.Second) // they are read, their minute is open
	r.kill(t)
	run(25) // no reading, but the log
	r = serve(t, data, "--no-host", "--dsn", dsn)
	await(t, "the minutes are stored", func() bool { return calls() == 65 })
	var q struct {
		ByUser []struct {
			Value string
			Calls int64
		} `json:"by_user"`
		Plans []struct{ Origin, Tree string }
	}
	r.get(t, "/api/query", url.Values{"id": {id}}, &q)
	if len(q.ByUser) != 1 || q.ByUser[0].Value != "root" || q.ByUser[0].Calls != 65 {
		t.Errorf("by user %+v; want len(q.ByUser) 1, q.ByUser[0].Value \"root\", q.ByUser[0].Calls 65", q.ByUser)
	}
	if len(q.Plans) != 1 || q.Plans[0].Origin != "slow log" || !strings.Contains(q.Plans[0].Tree, "t") {
		t.Errorf("plans %+v; want len(q.Plans) 1, q.Plans[0].Origin \"slow log\", \"t\" in q.Plans[0].Tree", q.Plans)
	}
	for _, c := range r.queries(t, "").Classes {
		if strings.Contains(c.Fingerprint, "risso") || strings.Contains(c.Fingerprint, "global status") {
			t.Errorf("the observer observes itself: got %s; want no \"risso\" in it, no \"global status\" in it", c.Fingerprint)
		}
	}
}
