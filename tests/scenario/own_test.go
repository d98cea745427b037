package scenario_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The observer does not observe itself: a server is watched, asked for plans and digested by Risso's account while it
// logs everything, and no statement of that account is in a digest of any log, unless they are asked for.
func TestOwnStatements(t *testing.T) {
	t.Parallel()
	eachKind(t, kinds, func(t *testing.T, kind string) {
		n := single(t, kind, append(logsSlow(kind), "general_log=1", "general_log_file=general.log", "performance_schema=ON", "binlog_format=STATEMENT",
			"performance_schema_consumer_events_statements_current=ON", "performance_schema_consumer_events_statements_history=ON")...)
		execSQL(t, n, digestSchema+"; CREATE USER 'watcher'@'localhost' IDENTIFIED BY 'x'; GRANT ALL ON *.* TO 'watcher'@'localhost'")
		dsn := "watcher:x@unix(" + n.Socket + ")/"
		r := serve(t, dataDir(t), "--no-host", "--dsn", "db="+dsn)
		await(t, "statements are read", func() bool { s := r.queries(t, "").Sources; return len(s) == 1 && s[0].Working })
		digestWork(t, n)
		await(t, "the minute is stored", func() bool { return len(r.queries(t, "orders").Classes) > 0 })
		ask := [][]string{
			{"top", "--count", "2", "--no-host", "--output", "json", "--dsn", "db=" + dsn}, {"digest", "--dsn", dsn, "--for", "1s"},
			{"explain", "--dsn", dsn, "SELECT * FROM shop.orders WHERE customer = 1"},
		}
		if kind == "mysql-9.7" || strings.HasPrefix(kind, "mariadb") {
			ask = append(ask, []string{"explain", "--dsn", dsn, "--analyze", "--database", "shop", "SELECT * FROM orders WHERE customer = 1"})
		}
		for _, args := range ask {
			if _, said, code := runRisso(t, nil, args...); code != 0 {
				t.Errorf("%s: exit %d, %s; want 0", args[0], code, said)
			}
		}
		r.stop(t, syscall.SIGTERM) // the logs must not grow any more
		// What Risso sends belongs in no binary log, so a statement with its mark replaces one.
		execSQL(t, n, "INSERT /* risso: a test */ INTO shop.orders (note) VALUES ('own'); FLUSH BINARY LOGS")
		logs, err := filepath.Glob(filepath.Join(n.Datadir, "binlog.[0-9]*[0-9]"))
		if err != nil || len(logs) == 0 {
			t.Fatalf("binary logs %q, %v; want not 0", logs, err)
		}
		checkOwnLogs(t, kind, n.Datadir, logs)
	})
}

func checkOwnLogs(t *testing.T, kind, dir string, binlogs []string) {
	t.Helper()
	const own = "Risso's own statements (--own counts them)"
	of := func(account string, more ...string) digestReport {
		args := append([]string{"--filter", "user == \"" + account + "\""}, more...)
		return digestJSON(t, args...)
	}
	general := filepath.Join(dir, "general.log")
	left := of("watcher", general)
	for _, c := range left.Classes {
		t.Errorf("%s, general log: a statement of Risso's account is counted: %s", kind, c.Sample)
	}
	if left.Skipped[own] < 20 { // one of them is root's, in its name
		t.Errorf("got %s, general log: left out %v; want left.Skipped[own] at least 20", kind, left.Skipped)
	}
	if with := of("watcher", "--own", general); with.Calls != left.Skipped[own]-1 || with.Skipped[own] != 0 {
		t.Errorf("%s, general log: --own counts %d, %d were left out; want with.Calls left.Skipped[own] - 1, with.Skipped[own] 0",
			kind, with.Calls, left.Skipped[own])
	}
	if c := digestJSON(t, general).class(t, "select note from orders"); c.Calls != 7 {
		t.Errorf("got %s, general log: %d of 7 statements of others; want 7", kind, c.Calls)
	}
	slow := filepath.Join(dir, "slow.log")
	for _, c := range of("watcher", slow).Classes {
		t.Errorf("%s, slow log: a statement of Risso's account is counted: %s", kind, c.Sample)
	}
	out, _, _ := runRisso(t, nil, "digest", general)
	if !strings.Contains(out, " × "+own) {
		t.Errorf("%s: the report does not say what it left out, want %q in it:\n%.600s", kind, " × "+own, out)
	}
	for flag, want := range map[string]int64{"--own=false": 1, "--own": 2} {
		r := digestJSON(t, append([]string{flag}, binlogs...)...)
		inserts := int64(0)
		for _, c := range r.Classes {
			if c.Verb == "INSERT" && strings.Contains(c.Fingerprint, "orders") {
				inserts += c.Calls
			}
		}
		if inserts != want || r.Skipped[own] != 2-want {
			t.Errorf("got %s, binary log: %s counts %d inserts, left out %v; want inserts %d, r.Skipped[own] %v",
				kind, flag, inserts, r.Skipped, want, 2-want)
		}
	}
}

// One statement has one name in every source, and the names that other tools have lead to it.
func TestOneNameEverywhere(t *testing.T) {
	t.Parallel()
	eachKind(t, []string{"mysql-9.7", "mysql-5.7", "mariadb"}, func(t *testing.T, kind string) {
		n := single(t, kind, append(logsSlow(kind), "general_log=1", "general_log_file=general.log", "performance_schema=ON", "binlog_format=STATEMENT",
			"performance_schema_consumer_events_statements_current=ON", "performance_schema_consumer_events_statements_history=ON")...)
		execSQL(t, n, digestSchema)
		dsn := "root@unix(" + n.Socket + ")/"
		r := serve(t, dataDir(t), "--no-host", "--dsn", "db="+dsn)
		await(t, "statements are read", func() bool { s := r.queries(t, "").Sources; return len(s) == 1 && s[0].Working })
		digestWork(t, n)
		// MySQL 5.7 and MariaDB know statements only of connections that are there.
		db, err := n.DB()
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		for _, q := range []string{"USE shop", "UPDATE orders SET note = CONCAT(note, 'z') WHERE customer = 1"} {
			if _, err := db.ExecContext(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		type class struct {
			ID      string
			PtID    string `json:"pt_id"`
			Digests []string
			Verb    string
		}
		find := func(verb string, args ...string) (found class) {
			t.Helper()
			out, said, code := runRisso(t, nil, append([]string{"digest", "--output", "json", "--filter=", "--own=false"}, args...)...)
			var doc struct{ Classes []class }
			if err := json.Unmarshal([]byte(out), &doc); err != nil || code != 0 {
				t.Fatalf("got %v, exit %d: %s; want 0", err, code, said)
			}
			for _, c := range doc.Classes {
				if c.Verb == verb {
					found = c
				}
			}
			return found
		}
		execSQL(t, n, "FLUSH BINARY LOGS")
		logs, err := filepath.Glob(filepath.Join(n.Datadir, "binlog.[0-9]*[0-9]"))
		if err != nil {
			t.Fatal(err)
		}
		slow, general, binary := find("UPDATE", filepath.Join(n.Datadir, "slow.log")), find("UPDATE", filepath.Join(n.Datadir, "general.log")), find("UPDATE", logs...)
		live := find("UPDATE", "--dsn", dsn, "--for", "0")
		if slow.ID == "" || general.ID != slow.ID || binary.ID != slow.ID || live.ID != slow.ID || slow.PtID == "" || general.PtID != slow.PtID || live.PtID != slow.PtID || len(live.Digests) != 1 {
			t.Fatalf("slow %+v, general %+v, binary %+v, live %+v; want slow.ID not \"\", general.ID %v, binary.ID %v, live.ID %v, slow.PtID not \"\", general.PtID %v, live.PtID %v, len(Digests) 1",
				slow, general, binary, live, slow.ID, slow.ID, slow.ID, slow.PtID, slow.PtID)
		}
		ask := func(name string) (q struct {
			ID   string
			PtID string `json:"pt_id"`
		}) {
			r.get(t, "/api/query", map[string][]string{"id": {name}, "from": {fmt.Sprint(time.Now().Unix() - 3600)}, "to": {fmt.Sprint(time.Now().Unix() + 60)}}, &q)
			return q
		}
		await(t, "the minute is stored, and a sample, which tells pt-query-digest's name", func() bool {
			return len(r.queries(t, slow.ID).Classes) == 1 && ask(slow.ID).PtID != ""
		})
		for _, name := range []string{slow.ID, strings.ToLower(slow.ID), slow.PtID, "0x" + slow.PtID, live.Digests[0], strings.ToUpper(live.Digests[0])} {
			if list := r.queries(t, name).Classes; len(list) != 1 || list[0].ID != slow.ID {
				t.Errorf("searching for %s finds %+v; want len(list) 1, list[0].ID %v", name, list, slow.ID)
			}
			q := ask(name)
			if q.ID != slow.ID || q.PtID != slow.PtID {
				t.Errorf("asking for %s gives %+v, want %s and %s", name, q, slow.ID, slow.PtID)
			}
		}
	})
}
