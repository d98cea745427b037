package tpcc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// servers are those that the tests run on.
var servers = []string{"mariadb", "mysql-9.7", "postgres"}

// start returns an empty database on a server that is the test's alone.
func start(t *testing.T, spec string) drive.Target {
	t.Helper()
	target, _ := startWithAddress(t, spec)
	return target
}

func startWithAddress(t *testing.T, spec string) (target drive.Target, dsn string) {
	t.Helper()
	if spec == "postgres" {
		return startPostgres(t)
	}
	node := sandboxtest.Lend(t, spec, "innodb_flush_log_at_trx_commit=0", "skip-log-bin", "innodb_doublewrite=OFF", "innodb_buffer_pool_size=256M")
	if _, err := node.Query(t.Context(), "CREATE DATABASE tpcc"); err != nil {
		t.Fatal(err)
	}
	cfg := node.Config()
	cfg.DBName = "tpcc"
	at, err := mysql.ParseTarget(cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	return drive.ForMySQL(at), cfg.FormatDSN()
}

func startPostgres(t *testing.T) (target drive.Target, dsn string) {
	t.Helper()
	dsn = sandboxtest.LendPostgres(t).URL("")
	target, err := drive.ForPostgres(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return target, dsn
}

// made is the workload with these parameters.
func made(t *testing.T, p workload.Params) *tpcc {
	t.Helper()
	w, err := New("tpcc", p)
	if err != nil {
		t.Fatal(err)
	}
	return w.(*tpcc)
}

// on runs f on a separate session.
func on(t *testing.T, target drive.Target, f func(s drive.Session)) {
	t.Helper()
	var stop drive.Stop
	s, err := target.Open(t.Context(), &stop)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.SetPatience(time.Minute)
	f(s)
}

// number is the single number that a statement returns.
func number(t *testing.T, target drive.Target, sql string) (n int64) {
	t.Helper()
	on(t, target, func(s drive.Session) {
		rows, err := workload.Ask(s, sql)
		if err != nil || len(rows) != 1 {
			t.Fatalf("%s: got %v, %v; want length 1", sql, rows, err)
		}
		if n = rows[0][0].Int; rows[0][0].Text != nil {
			n = decimal(rows[0][0].Text, 0)
		}
	})
	return n
}

// consistent fails the test when a check finds something.
func consistent(t *testing.T, w *tpcc, target drive.Target) {
	t.Helper()
	found, err := w.Check(t.Context(), target)
	if err != nil || len(found) != 12 {
		t.Fatalf("got %d checks, %v; want 12", len(found), err)
	}
	for _, f := range found {
		if !f.OK {
			t.Errorf("%s: got %s, want f.OK true", f.Name, f.Detail)
		}
	}
}

func TestReal(t *testing.T) {
	for _, spec := range servers {
		t.Run(spec, func(t *testing.T) {
			target := start(t, spec)
			w := made(t, workload.Params{Seed: 7})
			if _, err := w.Check(t.Context(), target); err == nil || !strings.Contains(err.Error(), "0 of 9 tables exist") {
				t.Errorf("a check without tables: got %v; want an error, \"0 of 9 tables exist\" in the error", err)
			}
			_, err := bench.Run(t.Context(), bench.Options{Target: target, Workload: w, Threads: 1, Time: time.Second})
			if err == nil || !strings.Contains(err.Error(), "run risso bench prepare tpcc") {
				t.Errorf("a run without tables: got %v; want an error, \"run risso bench prepare tpcc\" in the error", err)
			}
			load(t, w, target)
			population(t, target)
			consistent(t, w, target)
			damage(t, w, target)
			retry(t, target)
			consistent(t, w, target)
			run(t, w, target)
			consistent(t, w, target)
			cleanup(t, w, target)
		})
	}
}

// load prepares, and has it refused a second time.
func load(t *testing.T, w *tpcc, target drive.Target) {
	t.Helper()
	var most atomic.Int64
	o := workload.PrepareOptions{Target: target, Threads: 2, Progress: func(done, total int64) {
		for old := most.Load(); done > old && !most.CompareAndSwap(old, done); old = most.Load() {
		}
		if done > total {
			t.Errorf("progress %d of %d", done, total)
		}
	}}
	began := time.Now()
	if err := w.Prepare(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Logf("loaded in %v", time.Since(began))
	rows := int64(0)
	for _, x := range tables() {
		rows += number(t, target, "SELECT COUNT(*) FROM "+x.name)
	}
	if most.Load() != rows {
		t.Errorf("progress ended at %d of %d rows", most.Load(), rows)
	}
	if err := w.Prepare(t.Context(), o); err == nil || !strings.Contains(err.Error(), "(warehouses: 1); risso bench cleanup tpcc") {
		t.Errorf("a second prepare: got %v; want an error, \"(warehouses: 1); risso bench cleanup tpcc\" in the error", err)
	}
}

// population compares what was loaded with clauses 1.2.1 and 4.3.3.1.
func population(t *testing.T, target drive.Target) {
	t.Helper()
	for sql, want := range map[string]int64{
		"SELECT COUNT(*) FROM warehouse WHERE w_ytd = 300000":                                                  1,
		"SELECT COUNT(*) FROM district WHERE d_ytd = 30000 AND d_next_o_id = 3001 AND d_tax BETWEEN 0 AND 0.2": 10,
		"SELECT COUNT(*) FROM item":                                      100000,
		"SELECT COUNT(*) FROM stock WHERE s_quantity BETWEEN 10 AND 100": 100000,
		"SELECT COUNT(*) FROM customer WHERE c_balance = -10 AND c_ytd_payment = 10 AND c_payment_cnt = 1 AND c_delivery_cnt = 0": 30000,
		"SELECT COUNT(*) FROM customer WHERE c_middle = 'OE' AND c_credit_lim = 50000 AND c_discount BETWEEN 0 AND 0.5":           30000,
		"SELECT COUNT(*) FROM customer WHERE LENGTH(c_data) BETWEEN 300 AND 500 AND c_zip LIKE '%11111'":                          30000,
		"SELECT COUNT(DISTINCT c_last) FROM customer WHERE c_id <= 1000":                                                          1000,
		"SELECT COUNT(*) FROM customer WHERE c_last = 'BARBARBAR' AND c_id <= 1000":                                               10,
		"SELECT COUNT(*) FROM history WHERE h_amount = 10":                                                                        30000,
		"SELECT COUNT(*) FROM orders WHERE o_id <= 2100 AND o_carrier_id BETWEEN 1 AND 10":                                        21000,
		"SELECT COUNT(*) FROM orders WHERE o_id > 2100 AND o_carrier_id IS NULL":                                                  9000,
		"SELECT COUNT(*) FROM (SELECT DISTINCT o_d_id, o_c_id FROM orders) AS buyers":                                             30000, // a permutation
		"SELECT COUNT(*) FROM orders WHERE o_ol_cnt NOT BETWEEN 5 AND 15":                                                         0,
		"SELECT COUNT(*) FROM new_orders WHERE no_o_id BETWEEN 2101 AND 3000":                                                     9000,
		"SELECT COUNT(*) FROM order_line WHERE ol_o_id <= 2100 AND ol_amount <> 0":                                                0,
		"SELECT COUNT(*) FROM order_line WHERE ol_o_id > 2100 AND ol_amount NOT BETWEEN 0.01 AND 9999.99":                         0,
		"SELECT COUNT(*) FROM order_line WHERE ol_quantity <> 5 OR ol_supply_w_id <> ol_w_id":                                     0,
	} {
		if n := number(t, target, sql); n != want {
			t.Errorf("%s: %d, not %d", sql, n, want)
		}
	}
	// A tenth of n, within five standard deviations.
	for sql, n := range map[string]float64{
		"SELECT COUNT(*) FROM item WHERE i_data LIKE '%ORIGINAL%'":  100000,
		"SELECT COUNT(*) FROM stock WHERE s_data LIKE '%ORIGINAL%'": 100000,
		"SELECT COUNT(*) FROM customer WHERE c_credit = 'BC'":       30000,
	} {
		if got := float64(number(t, target, sql)); math.Abs(got-n/10) > 5*math.Sqrt(n*0.09) {
			t.Errorf("%s: got %.0f of %.0f, want math.Abs(got - n/10) at most 5 * math.Sqrt(n*0.09)", sql, got, n)
		}
	}
	// The lengths of orders are uniform from 5 to 15: mean 10, variance 10.
	if n := number(t, target, "SELECT COUNT(*) FROM order_line"); math.Abs(float64(n)-300000) > 5*math.Sqrt(30000*10) {
		t.Errorf("got %d order lines, want math.Abs(float64(n) - 300000) at most 5 * math.Sqrt(30000*10)", n)
	}
}

// damage breaks each condition by hand, in a way that as few others as possible notice, and repairs it again.
func damage(t *testing.T, w *tpcc, target drive.Target) {
	t.Helper()
	list := checks()
	for _, d := range []struct{ clause, harm, mend, says string }{
		{"3.3.2.1", "UPDATE warehouse SET w_ytd = w_ytd + 0.01", "UPDATE warehouse SET w_ytd = w_ytd - 0.01", "warehouse 1, w_ytd 300000.01, sum of d_ytd 300000.00"},
		{"3.3.2.2", "UPDATE district SET d_next_o_id = 3002 WHERE d_id = 3", "UPDATE district SET d_next_o_id = 3001 WHERE d_id = 3", "warehouse 1, district 3, d_next_o_id 3002, highest o_id 3000, highest no_o_id 3000"},
		{"3.3.2.2", "UPDATE district SET d_next_o_id = 3000", "UPDATE district SET d_next_o_id = 3001", "; and 9 more"},
		{"3.3.2.3", "DELETE FROM new_orders WHERE no_d_id = 4 AND no_o_id = 2500", "INSERT INTO new_orders VALUES (2500, 4, 1)", "warehouse 1, district 4, lowest 2101, highest 3000, rows 899"},
		{"3.3.2.4", "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 5 AND o_id = 7", "UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_d_id = 5 AND o_id = 7", "warehouse 1, district 5,"},
		{"3.3.2.5", "UPDATE orders SET o_carrier_id = NULL WHERE o_d_id = 6 AND o_id = 8", "UPDATE orders SET o_carrier_id = 1 WHERE o_d_id = 6 AND o_id = 8", "warehouse 1, district 6, order 8, o_carrier_id none, no_o_id none"},
		{"3.3.2.5", "UPDATE orders SET o_carrier_id = 1 WHERE o_d_id = 6 AND o_id = 2999", "UPDATE orders SET o_carrier_id = NULL WHERE o_d_id = 6 AND o_id = 2999", "order 2999, o_carrier_id 1, no_o_id 2999"},
		{"3.3.2.5", "INSERT INTO new_orders VALUES (3001, 1, 1)", "DELETE FROM new_orders WHERE no_o_id = 3001", "order none, o_carrier_id none, no_o_id 3001"},
		// The sum, and so condition 4, stays as it was.
		{"3.3.2.6", "UPDATE orders SET o_ol_cnt = o_ol_cnt + o_id * 2 - 3 WHERE o_d_id = 7 AND o_id IN (1, 2)", "UPDATE orders SET o_ol_cnt = o_ol_cnt - o_id * 2 + 3 WHERE o_d_id = 7 AND o_id IN (1, 2)", "; and 1 more"},
		{"3.3.2.7", "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 8 AND ol_o_id = 9 AND ol_number = 1", "UPDATE order_line SET ol_delivery_d = '2026-01-01 00:00:00' WHERE ol_d_id = 8 AND ol_o_id = 9 AND ol_number = 1", "order 9, line 1, ol_delivery_d none, o_carrier_id "},
		{"3.3.2.7", "UPDATE order_line SET ol_delivery_d = '2026-01-01 00:00:00' WHERE ol_d_id = 8 AND ol_o_id = 3000 AND ol_number = 2", "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 8 AND ol_o_id = 3000 AND ol_number = 2", "order 3000, line 2, ol_delivery_d 2026-01-01 00:00:00, o_carrier_id none"},
		{"3.3.2.7", "UPDATE orders SET o_d_id = 11 WHERE o_d_id = 8 AND o_id = 3000", "UPDATE orders SET o_d_id = 8 WHERE o_d_id = 11", "district 8, order 3000"},
		{"3.3.2.8", "UPDATE history SET h_amount = 11 WHERE h_d_id = 1 AND h_c_id = 5", "UPDATE history SET h_amount = 10 WHERE h_d_id = 1 AND h_c_id = 5", "warehouse 1, w_ytd 300000.00, sum of h_amount 300001.00"},
		// The warehouse's sum, and so condition 8, stays as it was.
		{"3.3.2.9", "UPDATE history SET h_d_id = 2 WHERE h_c_d_id = 1 AND h_c_id = 5", "UPDATE history SET h_d_id = 1 WHERE h_c_d_id = 1 AND h_c_id = 5", "; and 1 more"},
		// Condition 12 looks at the sum of both.
		{"3.3.2.10", "UPDATE customer SET c_balance = c_balance + 1, c_ytd_payment = c_ytd_payment - 1 WHERE c_d_id = 9 AND c_id = 77", "UPDATE customer SET c_balance = c_balance - 1, c_ytd_payment = c_ytd_payment + 1 WHERE c_d_id = 9 AND c_id = 77", "district 9, customer 77, c_balance -9.00, delivered "},
		{"3.3.2.11", "UPDATE customer SET c_delivery_cnt = 1 WHERE c_d_id = 10 AND c_id = 78", "UPDATE customer SET c_delivery_cnt = 0 WHERE c_d_id = 10 AND c_id = 78", "district 10, orders 3000, new orders 900, sum of c_delivery_cnt 1"},
		{"3.3.2.12", "UPDATE customer SET c_ytd_payment = c_ytd_payment + 1", "UPDATE customer SET c_ytd_payment = c_ytd_payment - 1", "; and 999 more at least"},
	} {
		i := slices.IndexFunc(list, func(c check) bool { return c.clause == d.clause })
		on(t, target, func(s drive.Session) {
			if _, err := s.Exec(drive.Write, d.harm); err != nil {
				t.Fatalf("%s: %v", d.harm, err)
			}
			f, err := list[i].run(s)
			if err != nil || f.OK || !strings.Contains(f.Detail, d.says) {
				t.Errorf("%s after %s: %+v, %v; want f.OK false, %q in f.Detail", d.clause, d.harm, f, err, d.says)
			}
			if _, err := s.Exec(drive.Write, d.mend); err != nil {
				t.Fatalf("%s: %v", d.mend, err)
			}
		})
	}
	on(t, target, func(s drive.Session) { // the whole, as users see it
		if _, err := s.Exec(drive.Write, "UPDATE warehouse SET w_ytd = w_ytd + 1"); err != nil {
			t.Fatal(err)
		}
		found, err := w.Check(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			clause, _, _ := strings.Cut(f.Name, " ")
			if wrong := clause == "3.3.2.1" || clause == "3.3.2.8"; f.OK == wrong {
				t.Errorf("after a damage to w_ytd: got %+v, want OK not %v", f, wrong)
			}
		}
		if _, err := s.Exec(drive.Write, "UPDATE warehouse SET w_ytd = w_ytd - 1"); err != nil {
			t.Fatal(err)
		}
	})
}

// retry makes a payment the victim of a deadlock, and expects it to succeed the second time.
func retry(t *testing.T, target drive.Target) {
	t.Helper()
	on(t, target, func(other drive.Session) {
		on(t, target, func(s drive.Session) {
			c := &client{session: s, rng: rand.New(rand.NewPCG(1, 2)), warehouses: 1}
			if err := c.prepare(); err != nil {
				t.Fatal(err)
			}
			c.deck.cards, c.deck.next = []int{kindPayment}, 1
			exec := func(sql string) {
				if _, err := other.Exec(drive.Other, sql); err != nil {
					t.Errorf("%s: %v", sql, err)
				}
			}
			paid := number(t, target, "SELECT COUNT(*) FROM history")
			for tries := 1; len(c.Retried()) == 0 && tries <= 5; tries++ {
				exec("BEGIN")
				exec("UPDATE district SET d_ytd = d_ytd + 1") // ten rows: InnoDB ends the smaller transaction
				done := make(chan error, 1)
				go func() { done <- c.Transaction() }() // takes the warehouse, waits for its district
				time.Sleep(300 * time.Millisecond)      // PostgreSQL ends the one that has waited for a second first: the other one, if this began late
				var server *drive.ServerError
				if _, err := other.Exec(drive.Other, "UPDATE warehouse SET w_ytd = w_ytd + 10"); err != nil && (!errors.As(err, &server) || !conflict(server)) {
					t.Errorf("the other transaction: %v", err)
				}
				exec("ROLLBACK")
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				paid++
				c.deck.next = 1
			}
			// Once, or more often: in PostgreSQL the second try may take the warehouse before who waits for it wakes up.
			if r := c.Retried(); len(r) == 0 || slices.ContainsFunc(r, func(err *drive.ServerError) bool { return !conflict(err) }) {
				t.Errorf("tried again after %v", r)
			}
			if n := number(t, target, "SELECT COUNT(*) FROM history"); n != paid {
				t.Errorf("got %d payments, want %d", n, paid)
			}
		})
	})
}

// run works on the tables for some seconds, and compares what the result says with what the tables say.
func run(t *testing.T, w *tpcc, target drive.Target) {
	t.Helper()
	count := func() [3]int64 {
		return [3]int64{number(t, target, "SELECT COUNT(*) FROM orders"), number(t, target, "SELECT COUNT(*) FROM history"),
			number(t, target, "SELECT SUM(c_delivery_cnt) FROM customer")}
	}
	before := count()
	const threads = 4
	r, err := bench.Run(t.Context(), bench.Options{Target: target, Workload: w, Threads: threads, Time: 5 * time.Second, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	after := count()
	t.Logf("%v; %.0f transactions/s, errors %+v", r.Headline, r.TransactionsPerSecond, r.Errors)
	by := map[string]bench.KindResult{}
	for i, k := range r.Kinds {
		by[k.Name] = k
		// Each session's deck is exact, up to the one that it did not end.
		if share := float64(r.Transactions) * float64(mix[i]) / 100; math.Abs(float64(k.Transactions)-share) > threads*float64(mix[i]) {
			t.Errorf("%d of %d are %s, not %.0f", k.Transactions, r.Transactions, k.Name, share)
		}
		if len(k.Minutes) != 1 || k.Minutes[0].Transactions != k.Transactions || k.PerMinute <= 0 {
			t.Errorf("minutes of %s: got %+v of %+v; want len(Minutes) 1, Minutes[0].Transactions %v, PerMinute more than 0",
				k.Name, k.Minutes, k, k.Transactions)
		}
	}
	if h := r.Headline; h == nil || h.Unit != "TpmC" || h.PerMinute != by["new_order"].PerMinute || h.PerMinute <= 0 {
		t.Errorf("headline %+v; want h not nil, Unit \"TpmC\", PerMinute by[\"new_order\"].PerMinute, PerMinute more than 0", h)
	}
	if n := after[1] - before[1]; n != by["payment"].Transactions {
		t.Errorf("%d payments are in the table, %d in the result; want by[\"payment\"].Transactions", n, by["payment"].Transactions)
	}
	if n := after[2] - before[2]; n != districts*by["delivery"].Transactions {
		t.Errorf("%d deliveries are in the table, 10 times %d in the result; want districts * by[\"delivery\"].Transactions",
			n, by["delivery"].Transactions)
	}
	// One in a hundred is rolled back, within five standard deviations.
	orders := float64(by["new_order"].Transactions)
	if back := orders - float64(after[0]-before[0]); back < 0 || math.Abs(back-orders/100) > 5*math.Sqrt(orders*0.0099)+1 {
		t.Errorf("%.0f of %.0f new orders were rolled back; want back at least 0, math.Abs(back - orders/100) at most 5*math.Sqrt(orders*0.0099) + 1",
			back, orders)
	}
	if n := number(t, target, "SELECT SUM(d_next_o_id) - 10 - 30000 FROM district"); n != after[0]-30000 {
		t.Errorf("the districts count %d new orders, the table has %d; want after[0] - 30000", n, after[0]-30000)
	}
	if n := number(t, target, "SELECT SUM(s_order_cnt) FROM stock"); n != number(t, target, "SELECT COUNT(*) FROM order_line WHERE ol_o_id > 3000") {
		t.Errorf("the stock was taken from %d times, want number(t, target, \"SELECT COUNT(*) FROM order_line WHERE ol_o_id > 3000\")", n)
	}
}

// cleanup takes everything away, but nothing of others.
func cleanup(t *testing.T, w *tpcc, target drive.Target) {
	t.Helper()
	o := workload.PrepareOptions{Target: target, Threads: 2}
	exec := func(sql string) {
		on(t, target, func(s drive.Session) {
			if _, err := s.Exec(drive.Other, sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		})
	}
	exec("DROP TABLE history")
	exec("CREATE TABLE history (id INT PRIMARY KEY)")
	if err := w.Cleanup(t.Context(), o); err == nil || !strings.Contains(err.Error(), "risso did not create history") {
		t.Errorf("a cleanup beside somebody's table: got %v; want an error, \"risso did not create history\" in the error", err)
	}
	if left := there(t, target); len(left) != 9 {
		t.Errorf("left are %v, want length 9", left)
	}
	exec("DROP TABLE history")
	exec("CREATE TABLE unrelated (id INT PRIMARY KEY)")
	if err := w.Cleanup(t.Context(), o); err != nil {
		t.Error(err)
	}
	if left := there(t, target); len(left) != 1 || left[0] != "unrelated" {
		t.Errorf("left are %v; want len(left) 1, left[0] \"unrelated\"", left)
	}
	exec("DROP TABLE unrelated")
	exec("CREATE TABLE stock (id INT PRIMARY KEY)")
	if err := w.Prepare(t.Context(), o); err == nil || !strings.Contains(err.Error(), "risso did not create: stock") {
		t.Errorf("a prepare beside somebody's table: got %v; want an error, \"risso did not create: stock\" in the error", err)
	}
	exec("DROP TABLE stock")
}

// there are the tables of the database.
func there(t *testing.T, target drive.Target) (names []string) {
	t.Helper()
	on(t, target, func(s drive.Session) {
		all, err := workload.Tables(s, "")
		if err != nil {
			t.Fatal(err)
		}
		names = slices.Sorted(maps.Keys(all))
	})
	return names
}

// loadInto is set for a process that only loads, to be killed.
const loadInto = "RISSO_TEST_TPCC_LOAD"

func TestMain(m *testing.M) {
	if dsn := os.Getenv(loadInto); dsn != "" {
		os.Exit(loadUntilKilled(dsn))
	}
	os.Exit(sandboxtest.Main(m))
}

// loadUntilKilled tells on standard output when a good part is written.
func loadUntilKilled(dsn string) int {
	target, err := drive.ForPostgres(dsn)
	if !strings.HasPrefix(dsn, "postgres:") {
		var at mysql.Target
		at, err = mysql.ParseTarget(dsn)
		target = drive.ForMySQL(at)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	var once sync.Once
	err = (&tpcc{p: workload.Params{Warehouses: 3}}).Prepare(context.Background(), workload.PrepareOptions{Target: target, Threads: 2, Progress: func(done, _ int64) {
		if done > 650_000 { // items, and the first warehouse
			once.Do(func() { fmt.Println("now") })
		}
	}})
	fmt.Println("ended:", err)
	return 1
}

func TestDeath(t *testing.T) {
	for _, spec := range servers {
		t.Run(spec, func(t *testing.T) {
			target, dsn := startWithAddress(t, spec)
			killed(t, dsn)
			w := made(t, workload.Params{})
			o := workload.PrepareOptions{Target: target, Threads: 2}
			err := w.Prepare(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), "did not finish (or is still running): 9 of 9 tables, no indexes (complete warehouses: 1)") {
				t.Errorf("a prepare after kill -9: got %v; want an error, \"did not finish (or is still running): 9 of 9 tables, no indexes (complete warehouses: 1)\" in the error",
					err)
			}
			if _, err := bench.Run(t.Context(), bench.Options{Target: target, Workload: w, Threads: 2, Time: time.Second}); err == nil || !strings.Contains(err.Error(), "the load was not finished") {
				t.Errorf("a run after kill -9: got %v; want an error, \"the load was not finished\" in the error", err)
			}
			if err := w.Cleanup(t.Context(), o); err != nil {
				t.Error(err)
			}
			if left := there(t, target); len(left) > 0 {
				t.Errorf("left are %v, want none", left)
			}
			interrupted(t, w, target)
			foreign(t, target)
		})
	}
}

// killed starts a load in another process and kills it in the midst.
func killed(t *testing.T, dsn string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), loadInto+"="+dsn)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if line != "now\n" {
		t.Fatalf("the load said %q, want \"now\\n\"", line)
	}
}

// interrupted ends a load as Ctrl-C does; nothing may be left.
func interrupted(t *testing.T, w *tpcc, target drive.Target) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := w.Prepare(ctx, workload.PrepareOptions{Target: target, Threads: 2, Progress: func(done, _ int64) {
		if done > 50_000 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted load: got %v, want context.Canceled", err)
	}
	if left := there(t, target); len(left) > 0 {
		t.Errorf("after an interrupted load there are %v, want none", left)
	}
}

// foreign loads with foreign keys and works on them.
func foreign(t *testing.T, target drive.Target) {
	t.Helper()
	w := made(t, workload.Params{ForeignKeys: true})
	o := workload.PrepareOptions{Target: target, Threads: 2}
	if err := w.Prepare(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	sql := "SELECT COUNT(*) FROM information_schema.table_constraints WHERE constraint_type = 'FOREIGN KEY' AND constraint_schema = "
	if target.Dialect() == drive.Postgres {
		sql += "current_schema()"
	} else {
		sql += "DATABASE()"
	}
	if n := number(t, target, sql); n != 10 {
		t.Errorf("got %d foreign keys, want 10", n)
	}
	r, err := bench.Run(t.Context(), bench.Options{Target: target, Workload: w, Threads: 4, Time: 2 * time.Second})
	if err != nil || r.Transactions == 0 {
		t.Fatalf("got %+v, %v; want Transactions not 0", r, err)
	}
	for _, e := range r.Errors {
		if e.Count != e.Retried {
			t.Errorf("error %+v, want Count %v", e, e.Retried)
		}
	}
	consistent(t, w, target)
	if err := w.Cleanup(t.Context(), o); err != nil {
		t.Error(err)
	}
	if left := there(t, target); len(left) > 0 {
		t.Errorf("left are %v, want none", left)
	}
}
