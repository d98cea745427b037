package script

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

const shop = `
values:
  id: {range: [1, 3000], distribution: zipfian}
  n: {sequence: 1}
  order: {sequence: 1, per: run}
  city: {choice: {Paris: 3, "St. John's": 1, 'back\slash': 1}}
  name: {string: [5, 12]}
  code: {digits: 8}
  day: {date: [2024-01-01, 2024-12-31]}
  at: {time: [2024-01-01 00:00:00, 2024-01-01 23:59:59]}
  amount: {decimal: [0.01, 99.99]}
  key: uuid
setup:
  - CREATE TABLE account (id INTEGER PRIMARY KEY, owner VARCHAR(20) NOT NULL, city VARCHAR(20), born DATE, balance DECIMAL(12,2) NOT NULL)
  - sql: INSERT INTO account VALUES (:n, :name, :city, :day, :amount)
    repeat: 3000
  - CREATE TABLE booking (id BIGINT PRIMARY KEY, account INTEGER, session INTEGER, code CHAR(8), uuid CHAR(36) NOT NULL UNIQUE, born DATE, at TIMESTAMP NULL, amount DECIMAL(12,2))
teardown:
  - DROP TABLE booking
  - DROP TABLE account
transactions:
  - name: look
    weight: 3
    statements:
      - SELECT owner FROM account WHERE id = :id
  - name: book
    statements:
      - sql: SELECT id, born FROM account WHERE id = :id
        save: [account, born]
      - sql: |
          -- :nothing in a comment, ':nothing' in a string
          INSERT INTO booking
          VALUES (:order, :account, :session, :code, :key, :born, :at, :amount)
      - UPDATE account SET balance = balance - :amount, city = :city WHERE id = :account
  - name: range
    weight: 0.5
    think: [1ms, 2ms]
    statements:
      - sql: SELECT count(*) FROM account WHERE city = :city AND id > :id
        prepared: false
        repeat: 3
`

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

func target(t *testing.T, kind string) drive.Target {
	t.Helper()
	if kind == "postgres" {
		to, err := drive.ForPostgres(sandboxtest.LendPostgres(t).URL(""))
		if err != nil {
			t.Fatal(err)
		}
		return to
	}
	node := sandboxtest.Lend(t, kind)
	if _, err := node.Query(t.Context(), "CREATE DATABASE bench"); err != nil {
		t.Fatal(err)
	}
	to, err := mysql.ParseTarget(node.DSN + "bench")
	if err != nil {
		t.Fatal(err)
	}
	return drive.ForMySQL(to)
}

// made writes a file and reads it as a workload.
func made(t *testing.T, text string, d drive.Dialect, unprepared bool) *script {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mix.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := New("script", workload.Params{File: path, Dialect: d, Unprepared: unprepared})
	if err != nil {
		t.Fatal(err)
	}
	return w.(*script)
}

// number asks a server for one number.
func number(t *testing.T, s drive.Session, sql string) int64 {
	t.Helper()
	st, err := s.Prepare(drive.Read, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	st.Keep = true
	r, err := s.Do(st)
	if err != nil || r.Rows != 1 {
		t.Fatalf("%s: got %d rows, %v; want 1", sql, r.Rows, err)
	}
	return r.Values[0].Int
}

// TestServers runs a script prepared and as text, and counts on the server what it did.
func TestServers(t *testing.T) {
	for _, kind := range []string{"mariadb", "mysql-9.7", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			to := target(t, kind)
			s, err := to.Open(t.Context(), new(drive.Stop))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var sums [2]int64
			for i, unprepared := range []bool{false, true} {
				w := made(t, shop, to.Dialect(), unprepared)
				var calls atomic.Int64
				o := workload.PrepareOptions{Target: to, Threads: 2, Progress: func(n, total int64) {
					if calls.Add(1); n < 1 || n > total || total != 3002 {
						t.Errorf("got %d of %d; want n from 1 to %v, total 3002", n, total, total)
					}
				}}
				if err := w.Prepare(t.Context(), o); !errors.Is(err, workload.ErrUsage) || !strings.Contains(err.Error(), "--yes") {
					t.Errorf("prepare without --yes: got %v; want workload.ErrUsage, \"--yes\" in the error", err)
				}
				o.Yes = true
				if err := w.Prepare(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				sums[i] = number(t, s, "SELECT CAST(sum(100 * balance) AS DECIMAL(20,0)) - 0 AS x FROM account WHERE id BETWEEN 1 AND 3000") + number(t, s, "SELECT count(*) FROM account WHERE city = 'St. John''s'")
				if n := number(t, s, "SELECT count(*) FROM account WHERE born BETWEEN '2024-01-01' AND '2024-12-31' AND balance BETWEEN 0.01 AND 99.99"); n != 3000 {
					t.Errorf("got %d rows, want 3000", n)
				}
				run(t, w, to, s)
				if calls.Load() != 5 {
					t.Errorf("progress was told %d times, want 5", calls.Load())
				}
				var done atomic.Int64
				o.Progress = func(n, _ int64) { done.Store(n) }
				if err := w.Cleanup(t.Context(), o); err != nil || done.Load() != 2 {
					t.Fatalf("got %d statements, %v; want 2", done.Load(), err)
				}
			}
			if sums[0] != sums[1] {
				t.Errorf("setup made other rows as text: %v, want sums[0] sums[1]", sums)
			}
		})
	}
}

func run(t *testing.T, w *script, to drive.Target, s drive.Session) {
	t.Helper()
	r, err := bench.Run(t.Context(), bench.Options{Target: to, Workload: w, Threads: 3, Time: 700 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range r.Errors {
		if e.Label != "1213" && e.Label != "40P01" { // two sessions book the same accounts in another order
			t.Errorf("%+v", e)
		}
	}
	book := r.Kinds[1].Transactions
	if len(r.Kinds) != 3 || book == 0 || r.Kinds[2].Transactions == 0 || r.Kinds[0].Transactions < book {
		t.Errorf("got %+v; want len(r.Kinds) 3, book not 0, r.Kinds[2].Transactions not 0, r.Kinds[0].Transactions at least %v", r.Kinds, book)
	}
	// Transactions that ended after the measured time are on the server, too.
	n := number(t, s, "SELECT count(*) FROM booking")
	if n < book || n > book+5 {
		t.Errorf("got %d bookings on the server, %d measured; want from %v to %v", n, book, book, book+5)
	}
	if m := number(t, s, "SELECT count(*) FROM booking b JOIN account a ON a.id = b.account AND a.born = b.born WHERE length(b.uuid) = 36 AND length(b.code) = 8 AND b.session BETWEEN 0 AND 2"); m != n {
		t.Errorf("%d of %d bookings are as they should be", m, n)
	}
}

// TestReadOnly runs what only reads in sessions that cannot write, whatever the functions that it calls do.
func TestReadOnly(t *testing.T) {
	to := target(t, "mariadb")
	s, err := to.Open(t.Context(), new(drive.Stop))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, sql := range []string{"CREATE TABLE t (a INT)", "CREATE FUNCTION f() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO t VALUES (1); RETURN 1; END"} {
		if _, err := s.Exec(drive.Other, sql); err != nil {
			t.Fatal(err)
		}
	}
	w := made(t, "transactions: [{statements: [SELECT f()]}]", drive.MySQL, false)
	if w.Writes() {
		t.Fatal("the text shows no write")
	}
	_, err = bench.Run(t.Context(), bench.Options{Target: to, Workload: w, Threads: 1, Time: 10 * time.Second})
	if err == nil || !strings.Contains(err.Error(), "mix.yaml:1: the statement's text shows no write") {
		t.Errorf("got %v; want an error, \"mix.yaml:1: the statement's text shows no write\" in the error", err)
	}
	if n := number(t, s, "SELECT count(*) FROM t"); n != 0 {
		t.Errorf("%d rows were written, want 0", n)
	}
	if !made(t, "transactions: [{statements: [DELETE FROM t]}]", drive.MySQL, false).Writes() ||
		!made(t, "transactions: [{statements: [SELECT pg_terminate_backend(1)]}]", drive.Postgres, false).Writes() {
		t.Error("a script that writes says that it does not")
	}
}

// TestSenseless ends the run with the place of a statement that can never succeed.
func TestSenseless(t *testing.T) {
	to := target(t, "mariadb")
	w := made(t, "transactions:\n  - statements:\n    - SELECT 1\n    - SELECT a FROM nowhere\n", drive.MySQL, false)
	_, err := bench.Run(t.Context(), bench.Options{Target: to, Workload: w, Threads: 1, Time: time.Second})
	if err == nil || !strings.Contains(err.Error(), "mix.yaml:4: ") || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("got %v; want an error, \"mix.yaml:4: \" in the error, \"nowhere\" in the error", err)
	}
}

// TestWrong reports each mistake in one line, with the line of the file.
func TestWrong(t *testing.T) {
	ok := "transactions: [{statements: [SELECT 1]}]\n"
	for _, c := range []struct{ text, want string }{
		{"", "mix.yaml:1: the file is empty"},
		{"transactions:\n  - statements: [SELECT 1]\n---\ntransactions:\n  - statements: [SELECT 2]\n", "mix.yaml:3: a second document begins here, which would not be read: remove the line ---, or what follows it"},
		{"a: [", "mix.yaml:1: "},
		{"values: {}\n", "mix.yaml:1: no transactions"},
		{ok + "foo: 1\n", `mix.yaml:2: the file has no "foo"`},
		{ok + "prepared: maybe\n", "mix.yaml:2: prepared: true or false"},
		{ok + "prepared: true\nprepared: true\n", "mix.yaml:3: "},
		{ok + "values:\n  a: {range: [1]}\n", "mix.yaml:3: a: range: [from, to]"},
		{ok + "values:\n  a: {range: [5, 1]}\n", "mix.yaml:3: a: range: a whole number"},
		{ok + "values:\n  a: {range: [1, x]}\n", "mix.yaml:3: a: range: a whole number"},
		{ok + "values:\n  a:\n    range: [1, 5]\n    distribution: zipf\n", "mix.yaml:5: a: range: "},
		{ok + "values:\n  a:\n    range: [1, 5]\n    zipfian-exp: x\n", "mix.yaml:5: zipfian-exp: a number"},
		{ok + "values:\n  a: {range: [1, 5], digits: 3}\n", "mix.yaml:3: value a is a range and a digits"},
		{ok + "values:\n  a: {digits: 5, per: run}\n", "mix.yaml:3: value a: a digits has no per"},
		{ok + "values:\n  a: 5\n", "mix.yaml:3: value a: a mapping with one of range,"},
		{ok + "values:\n  a-b: uuid\n", `mix.yaml:3: values: "a-b" is not a name`},
		{ok + "values:\n  session: uuid\n", "mix.yaml:3: values: session already exists"},
		{ok + "values:\n  a: {string: -1}\n", "mix.yaml:3: a: string: a whole number from 0"},
		{ok + "values:\n  a: {choice: {x: -1}}\n", "mix.yaml:3: a: choice: a weight"},
		{ok + "values:\n  a: {choice: []}\n", "mix.yaml:3: a: choice: a list"},
		{ok + "values:\n  a: {date: [2024-01-01, 2023-01-01]}\n", "mix.yaml:3: a: date: the first is later"},
		{ok + "values:\n  a: {date: [2024-01-01, 2024-02-30]}\n", "mix.yaml:3: a: date: \"2024-02-30\" is not written as 2006-01-02"},
		{ok + "values:\n  a: {decimal: [1.5, x]}\n", "mix.yaml:3: a: decimal:"},
		{ok + "values:\n  a: {sequence: 1, per: day}\n", "mix.yaml:3: per \"day\": session or run"},
		{ok + "setup: DROP\n", "mix.yaml:2: setup: a list"},
		{ok + "setup:\n  - {sql: SELECT 1, repeat: 0}\n", "mix.yaml:3: repeat: a whole number from 1"},
		{ok + "setup:\n  - {sql: SELECT 1, save: x}\n", "mix.yaml:3: a statement has no \"save\""},
		{"transactions: []\n", "mix.yaml:1: transactions: at least one"},
		{"transactions:\n  - name: x\n", "mix.yaml:2: the transaction \"x\" has no statements"},
		{"transactions:\n  - {statements: [SELECT 1], weight: -1}\n", "mix.yaml:2: weight: a number from 0"},
		{"transactions:\n  - {statements: [SELECT 1], weight: 0}\n", "mix.yaml:2: transactions: all weights are 0"},
		{"transactions:\n  - {statements: [SELECT 1], think: 5}\n", "mix.yaml:2: think \"5\": a time"},
		{"transactions:\n  - {statements: [SELECT 1], think: [2ms, 1ms]}\n", "mix.yaml:2: think: the shortest is longer"},
		{"transactions:\n  - {name: x, statements: [SELECT 1]}\n  - {name: x, statements: [SELECT 1]}\n", "mix.yaml:3: a second transaction"},
		{"transactions:\n  - statements:\n    - 'SELECT :x'\n", "mix.yaml:3: no value :x; use one of session"},
		{"transactions:\n  - statements:\n    - |\n      SELECT 1,\n        :x\n", "mix.yaml:5: no value :x"},
		{"transactions:\n  - statements:\n    - SELECT ?\n", "mix.yaml:3: a ? has no value"},
		{"transactions:\n  - statements:\n    - SELECT 1; SELECT 2\n", "mix.yaml:3: another statement follows"},
		{"transactions:\n  - statements:\n    - {sql: SELECT 1, save: 1x}\n", "mix.yaml:3: save: \"1x\" is not a name"},
		{"transactions:\n  - statements:\n    - {sql: SELECT 1, save: session}\n", "mix.yaml:3: save: session is already drawn"},
		{"transactions:\n  - statements:\n    - {sql: 'SELECT :x', save: x}\n", "mix.yaml:3: no value :x"},
		{"transactions:\n  - statements:\n    - {save: x}\n", "mix.yaml:3: a statement has no sql"},
	} {
		_, err := parse("mix.yaml", []byte(c.text), drive.MySQL, true)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || !errors.Is(err, workload.ErrUsage) {
			t.Errorf("%q: got %v; expected %q; want an error, %q at the beginning of the error, no \"\\n\" in the error, workload.ErrUsage",
				c.text, err, c.want, c.want)
		}
	}
	if _, err := New("script", workload.Params{}); !errors.Is(err, workload.ErrUsage) {
		t.Errorf("got %v, want workload.ErrUsage", err)
	}
	if _, err := New("script", workload.Params{File: "/nowhere.yaml"}); !errors.Is(err, workload.ErrUsage) {
		t.Errorf("got %v, want workload.ErrUsage", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(shop)
	f.Add("values: &a {x: *a}\ntransactions: [{statements: [SELECT 1]}]")
	f.Add("transactions: [{statements: [{sql: {}, save: {a: b}}], think: [a, {}]}]")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parse("f", []byte(text), drive.MySQL, true)
		if err == nil {
			newScript(got)
		} else if !errors.Is(err, workload.ErrUsage) {
			t.Errorf("got %v, want workload.ErrUsage", err)
		}
	})
}

// TestSplit finds placeholders where SQL has them, and nowhere else.
func TestSplit(t *testing.T) {
	for _, c := range []struct {
		sql  string
		d    drive.Dialect
		want string
	}{
		{"SELECT :a, ':a', \":a\", `:a`, :b_2", drive.MySQL, "SELECT ?, ':a', \":a\", `:a`, ?"},
		{`SELECT 'it''s :a', 'x\':a', :a`, drive.MySQL, `SELECT 'it''s :a', 'x\':a', ?`},
		{`SELECT 'x\', :a`, drive.Postgres, `SELECT 'x\', $1`},
		{"SELECT /* :a */ :a -- :a\n, :a # :a", drive.MySQL, "SELECT /* :a */ ? -- :a\n, ? # :a"},
		{"SELECT :a::int, x[1:2], $$ :a $$, $t$ :a $t$, :a", drive.Postgres, "SELECT $1::int, x[1:2], $$ :a $$, $t$ :a $t$, $2"},
		{`SELECT E'it\'s :a', /* /* */ :a */ :a`, drive.Postgres, `SELECT E'it\'s :a', /* /* */ :a */ $1`},
		{"SELECT :a --\x7f it's\n, :a; -- it's", drive.MySQL, "SELECT ? --\x7f it's\n, ?"},
		{"SELECT @x := 1, '12:30' ;", drive.MySQL, "SELECT @x := 1, '12:30'"},
	} {
		p, err := split(c.sql, c.d)
		if err != nil || p.parameters(c.d) != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.sql, p.parameters(c.d), err, c.want)
		}
	}
}

// TestValues draws what was asked for.
func TestValues(t *testing.T) {
	f, err := parse("f", []byte(shop), drive.MySQL, true)
	if err != nil {
		t.Fatal(err)
	}
	g := &source{rng: rand.New(rand.NewPCG(1, 2)), session: 4, row: -1, counters: make([]int64, f.sequences)}
	forms := map[string]string{
		"session": `4`, "id": `[1-9]\d{0,3}`, "n": `[1-9]\d*`, "order": `[1-9]\d*`, "city": `'Paris'|'St. John''s'|_utf8mb4 x'6261636b5c736c617368'`,
		"name": `'[a-z]{5,12}'`, "code": `'\d{8}'`, "day": `'2024-\d\d-\d\d'`, "at": `'2024-01-01 \d\d:\d\d:\d\d'`, "amount": `\d\d?\.\d\d`,
		"key": `'[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'`,
	}
	for i, name := range f.names {
		form := regexp.MustCompile("^(" + forms[name] + ")$")
		seen := map[string]int{}
		for range 2000 {
			seen[string(f.values[i].draw(g).appendLiteral(nil, drive.MySQL))]++
		}
		for v := range seen {
			if !form.MatchString(v) {
				t.Errorf("%s: got %s, want form.MatchString(v) true", name, v)
			}
		}
		if n := seen["'Paris'"]; name == "city" && (n < 1100 || n > 1300) {
			t.Errorf("Paris came %d times of 2000, its weight is 3 of 5", n)
		}
		if name == "day" && len(seen) < 350 || name == "n" && len(seen) != 2000 {
			t.Errorf("%s: %d values", name, len(seen))
		}
	}
	if v := string((&decimals{lo: -205, hi: -205, digits: 2}).draw(g).text); v != "-2.05" {
		t.Errorf("got %v, want \"-2.05\"", v)
	}
	if v := string(value{text: []byte(`a\b`), kind: isText}.appendLiteral(nil, drive.Postgres)); v != `convert_from('\x615c62', 'UTF8')` {
		t.Errorf("got %v, want \"convert_from('\\\\x615c62', 'UTF8')\"", v)
	}
}
