package watch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/face/cli/screen"
)

// momentsDouble stands for the ring of a risso serve: it keeps the seconds from oldest to newest, but for one minute and a half, as
// /api/moment answers them.
type momentsDouble struct{ oldest, newest int64 }

func (d momentsDouble) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api/fleet" {
		fmt.Fprint(w, `{"instances": [{"id": "web", "name": "web", "kind": "host"}, {"id": "db1", "name": "db1", "kind": "server"}]}`)
		return
	}
	at, err := strconv.ParseInt(r.URL.Query().Get("at"), 10, 64)
	if r.URL.Path != "/api/moment" || err != nil || r.URL.Query().Get("instance") != "db1" {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"error": "no %s"}`, r.URL)
		return
	}
	moment := "null"
	if at >= d.oldest && at <= d.newest {
		moment = fmt.Sprintf(`{"tick": %[1]d, "connected": 412, "sleeping": 398, "more": 3,
 "sessions": [{"id": 812, "user": "app", "host": "web3", "schema": "shop", "command": "Query", "state": "updating", "wait": "row_lock", "seconds": 4.2, "statement": "UPDATE orders /* second %[2]d */ SET paid = 1", "transaction": 41, "trx": "421", "rows_locked": 3, "rows_modified": 1, "blocker": 811},
  {"id": 811, "user": "app", "host": "web2", "command": "Sleep", "wait": "idle", "seconds": 41, "transaction": 41}],
 "transactions": [{"session": 811, "trx": "420", "seconds": 41, "state": "RUNNING", "rows_locked": 3, "rows_modified": 77}],
 "locks": [{"waiter": 812, "kind": "row_lock", "type": "RECORD", "schema": "shop", "name": "orders", "index": "PRIMARY", "data": "17", "mode": "X", "held": "X", "blocker": {"id": 811, "user": "app", "host": "web2", "command": "Sleep", "state": "", "seconds": 41, "statement": "UPDATE orders SET paid = 0", "transaction": 41}}],
 "blockers": [{"id": 811, "blocks": 1, "what": "connection 811", "ends": "KILL 811"}],
 "numbers": {"questions_per_second": 812.0, "threads_running": 14, "redo_bytes_per_second": 2097152},
 "deadlock": {"at": "2026-11-24T02:23:40Z", "tick": 1, "text": "…", "drawn": "(1) waits for (2)\n(2) waits for (1)", "svg": "", "transactions": []}}`, at, at-d.oldest)
	}
	fmt.Fprintf(w, `{"instance": "db1", "asked": %d, "oldest": %d, "newest": %d, "missing": [{"from": 5, "to": 6, "why": "not kept"}], "moment": %s}`, at, d.oldest, d.newest, moment)
}

// TestPast: the screens of a past second, step by step, never beyond what is kept, and nothing can be killed there.
func TestPast(t *testing.T) {
	now := time.Now().Unix()
	d := momentsDouble{oldest: now - 7200, newest: now - 100}
	site := httptest.NewServer(d)
	defer site.Close()
	at := time.Unix(d.oldest+10, 0)
	p := newPlayer(t, 100, 30)
	wait := p.top("--at", at.Format(time.DateTime), "--url", site.URL)
	p.sees("db1", at.Format(time.DateTime), "second 10 ", "sessions 412, idle 398", "questions/s 812", "3 more were not kept", "not kept: ")
	p.types("\x1b[C\x1b[C") // right, twice
	p.sees("second 12 ", at.Add(2*time.Second).Format(time.TimeOnly))
	p.types("\x1b[D")
	p.sees("second 11 ")
	p.types("]")
	p.sees("second 71 ")
	p.types("{") // an hour back: no further than the oldest
	p.sees("second 0 ", at.Add(-10*time.Second).Format(time.TimeOnly))
	p.types("2")
	p.sees("keeps 1 waiting", "app@web2", "waits for a row lock in the index PRIMARY of shop.orders")
	p.types("k")
	p.sees("This is the past")
	p.types("3")
	p.sees("77", "RUNNING")
	p.types("B")
	p.sees("redo bytes per second", "2 MiB", "The latest deadlock", "(2) waits for (1)")
	p.types("q")
	if err := wait(); err != nil {
		t.Error(err)
	}
}

// TestPastInPipe: without a terminal it is written once, as text or JSON; what is not kept is said, and so is what was asked wrongly.
func TestPastInPipe(t *testing.T) {
	now := time.Now().Unix()
	d := momentsDouble{oldest: now - 7200, newest: now - 100}
	site := httptest.NewServer(d)
	defer site.Close()
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := NewTop(screen.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
		cmd.SetArgs(append([]string{"--url", site.URL}, args...))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	if out, err := run("--at", "10m"); err != nil || !strings.Contains(out, "UPDATE orders") || !strings.Contains(out, "keeps 1 waiting") || strings.Contains(out, "\x1b") {
		t.Errorf("text: %v\n%s", err, out)
	}
	out, err := run("--at", "10m", "-o", "json", "--server", "db1")
	var a MomentAnswer
	if jerr := json.Unmarshal([]byte(out), &a); err != nil || jerr != nil || a.Moment == nil || len(a.Moment.Sessions) != 2 || a.Moment.Locks[0].Blocker.ID != 811 {
		t.Errorf("JSON: %v %v\n%s", err, jerr, out)
	}
	if out, err := run("--at", "40h"); err != nil || !strings.Contains(out, "Nothing is kept of this second") {
		t.Errorf("what is not kept: %v\n%s", err, out)
	}
	for _, args := range [][]string{{"--at", "soon"}, {"--at", "1h", "--server", "nosuch"}, {"--at", "1h", "--dsn", "root@tcp(127.0.0.1:1)/"}, {"--server", "db1"}} {
		if _, err := run(args...); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}
