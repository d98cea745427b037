package scenario_test

import (
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sqltext"
)

// classWaits is the answer of /api/query, as far as these tests need it.
type classWaits struct {
	Waits []struct {
		Value   string
		Seconds float64
	}
	ByUser     []struct{ Value string }             `json:"by_user"`
	ByHost     []struct{ Value string }             `json:"by_host"`
	ByUserFrom string                               `json:"by_user_from"`
	BlockedBy  []struct{ Fingerprint, Wait string } `json:"blocked_by"`
	Activity   struct {
		Calls int64
		Note  string
	}
}

// TestWaitsOverHTTP: two sessions, of which one holds a row lock for four seconds: the answer names the wait, who waited, and the
// statement of the one that blocked.
func TestWaitsOverHTTP(t *testing.T) {
	t.Parallel()
	eachKind(t, []string{"mysql-9.7", "mariadb"}, func(t *testing.T, kind string) {
		n := single(t, kind)
		execSQL(t, n, "CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, a INT); INSERT INTO shop.t VALUES (1, 1)")
		r := serve(t, dataDir(t), "--no-host", "--dsn", "db=root@unix("+n.Socket+")/")
		var q struct {
			Sources []struct {
				Activity struct {
					Working bool
					Step    float64
				}
			}
		}
		await(t, "sessions are looked at", func() bool {
			r.get(t, "/api/queries", nil, &q)
			return len(q.Sources) == 1 && q.Sources[0].Activity.Working
		})
		db, err := n.DB()
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		const waiting, holding = "UPDATE shop.t SET a = 2 WHERE id = 1", "UPDATE shop.t SET a = a + 1 WHERE id = 1"
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), holding); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		began := time.Now()
		go func() {
			_, err := db.ExecContext(t.Context(), waiting)
			done <- err
		}()
		time.Sleep(4 * time.Second)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		waited := time.Since(began).Seconds() // at the most
		r.get(t, "/api/queries", nil, &q)
		step := q.Sources[0].Activity.Step // on a busy machine Risso looks more rarely: each look represents so many seconds
		id := sqltext.ClassID(sqltext.AppendPlain(nil, []byte(sqltext.Fingerprint(waiting))))
		var a classWaits
		await(t, "the minute is stored, or the two over which it was waited", func() bool {
			now := time.Now().Unix()
			status, _, _ := r.request(t, "GET", "/api/query", url.Values{"id": {id}}, nil)
			if status != 200 { // the class is not known yet
				return false
			}
			a = classWaits{}
			r.get(t, "/api/query", url.Values{"id": {id}, "from": {strconv.FormatInt(now-600, 10)}, "to": {strconv.FormatInt(now+60, 10)}}, &a)
			return len(a.Waits) > 0 && a.Waits[0].Seconds >= 1.5 && a.Activity.Calls > 0
		})
		if w := a.Waits[0]; w.Value != "row_lock" || w.Seconds > waited+1+step || a.Activity.Note == "" {
			t.Errorf("got %.1f s at the most, looked at each %v s: %+v; want w.Value \"row_lock\", w.Seconds at most %v, Activity.Note not \"\"",
				waited, step, a, waited+1+step)
		}
		if len(a.ByUser) != 1 || a.ByUser[0].Value != "root" || a.ByUserFrom != "activity" || len(a.ByHost) != 1 || a.ByHost[0].Value != "localhost" {
			t.Errorf("by user %+v, by host %+v; want len(a.ByUser) 1, a.ByUser[0].Value \"root\", a.ByUserFrom \"activity\", len(a.ByHost) 1, a.ByHost[0].Value \"localhost\"",
				a.ByUser, a.ByHost)
		}
		blocker := "update shop.t set a = a + ? where id = ?"
		if kind == "mariadb" { // its performance_schema is off: it does not say what an idle session ran last
			blocker = ""
		}
		if len(a.BlockedBy) != 1 || a.BlockedBy[0].Wait != "row_lock" || a.BlockedBy[0].Fingerprint != blocker {
			t.Errorf("blocked by %+v; want len(a.BlockedBy) 1, a.BlockedBy[0].Wait \"row_lock\", a.BlockedBy[0].Fingerprint %v", a.BlockedBy, blocker)
		}
	})
}
