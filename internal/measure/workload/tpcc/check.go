package tpcc

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// check is one condition that must hold at all times: a statement that returns a row for each place where it does not.
type check struct {
	clause  string // of the specification
	words   string
	columns []string
	sql     string
}

// sample is how many rows of a check are fetched at most; more are not needed to know that something is wrong.
const sample = 1000

// checks are the consistency conditions of clause 3.3.2. Each statement begins with the table that has to be complete,
// so that rows that are missing are found as well as rows that are wrong.
func checks() []check { return slices.Concat(orderChecks(), moneyChecks()) }

// orderChecks are the conditions 1 to 7: they compare tables row by row and by number.
func orderChecks() []check {
	return []check{
		{"3.3.2.1", "w_ytd is the sum of d_ytd", []string{"warehouse", "w_ytd", "sum of d_ytd"}, `
SELECT w_id, w_ytd, SUM(d_ytd)
FROM warehouse LEFT JOIN district ON d_w_id = w_id
GROUP BY w_id, w_ytd
HAVING SUM(d_ytd) IS NULL OR w_ytd <> SUM(d_ytd)`},

		// A district without new orders is consistent.
		{"3.3.2.2", "d_next_o_id - 1 is the highest o_id and the highest no_o_id", []string{"warehouse", "district", "d_next_o_id", "highest o_id", "highest no_o_id"}, `
SELECT d_w_id, d_id, d_next_o_id, o, n
FROM district
LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS o FROM orders GROUP BY o_w_id, o_d_id) AS ordered ON o_w_id = d_w_id AND o_d_id = d_id
LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS n FROM new_orders GROUP BY no_w_id, no_d_id) AS fresh ON no_w_id = d_w_id AND no_d_id = d_id
WHERE o IS NULL OR o <> d_next_o_id - 1 OR n <> d_next_o_id - 1`},

		{"3.3.2.3", "the numbers of new orders have no gaps", []string{"warehouse", "district", "lowest", "highest", "rows"}, `
SELECT no_w_id, no_d_id, MIN(no_o_id), MAX(no_o_id), COUNT(*)
FROM new_orders
GROUP BY no_w_id, no_d_id
HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)`},

		{"3.3.2.4", "the sum of o_ol_cnt is the number of order lines", []string{"warehouse", "district", "sum of o_ol_cnt", "order lines"}, `
SELECT d_w_id, d_id, counted, found
FROM district
LEFT JOIN (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS counted FROM orders GROUP BY o_w_id, o_d_id) AS ordered ON o_w_id = d_w_id AND o_d_id = d_id
LEFT JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS found FROM order_line GROUP BY ol_w_id, ol_d_id) AS lined ON ol_w_id = d_w_id AND ol_d_id = d_id
WHERE counted IS NULL OR found IS NULL OR counted <> found`},

		// Both ways: an order without a carrier is a new one, and a new one is an order without a carrier.
		{"3.3.2.5", "an order has no carrier exactly when it is a new order", []string{"warehouse", "district", "order", "o_carrier_id", "no_o_id"}, `
SELECT o_w_id, o_d_id, o_id, o_carrier_id, no_o_id
FROM orders LEFT JOIN new_orders ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)
UNION ALL
SELECT no_w_id, no_d_id, o_id, o_carrier_id, no_o_id
FROM new_orders LEFT JOIN orders ON o_w_id = no_w_id AND o_d_id = no_d_id AND o_id = no_o_id
WHERE o_id IS NULL`},

		{"3.3.2.6", "o_ol_cnt is the number of the order's lines", []string{"warehouse", "district", "order", "o_ol_cnt", "order lines"}, `
SELECT o_w_id, o_d_id, o_id, o_ol_cnt, COUNT(ol_number)
FROM orders LEFT JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
GROUP BY o_w_id, o_d_id, o_id, o_ol_cnt
HAVING COUNT(ol_number) <> o_ol_cnt`},

		// A line without its order is found here, too.
		{"3.3.2.7", "an order line is delivered exactly when its order has a carrier", []string{"warehouse", "district", "order", "line", "ol_delivery_d", "o_carrier_id"}, `
SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_delivery_d, o_carrier_id
FROM order_line LEFT JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
WHERE o_id IS NULL OR (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)`},
	}
}

// moneyChecks are the conditions 8 to 12: they compare sums with what was paid and delivered.
func moneyChecks() []check {
	return []check{
		{"3.3.2.8", "w_ytd is the sum of h_amount", []string{"warehouse", "w_ytd", "sum of h_amount"}, `
SELECT w_id, w_ytd, paid
FROM warehouse
LEFT JOIN (SELECT h_w_id, SUM(h_amount) AS paid FROM history GROUP BY h_w_id) AS payments ON h_w_id = w_id
WHERE paid IS NULL OR w_ytd <> paid`},

		{"3.3.2.9", "d_ytd is the sum of h_amount", []string{"warehouse", "district", "d_ytd", "sum of h_amount"}, `
SELECT d_w_id, d_id, d_ytd, paid
FROM district
LEFT JOIN (SELECT h_w_id, h_d_id, SUM(h_amount) AS paid FROM history GROUP BY h_w_id, h_d_id) AS payments ON h_w_id = d_w_id AND h_d_id = d_id
WHERE paid IS NULL OR d_ytd <> paid`},

		{"3.3.2.10", "c_balance is what was delivered minus what was paid", []string{"warehouse", "district", "customer", "c_balance", "delivered", "paid"}, `
SELECT c_w_id, c_d_id, c_id, c_balance, delivered, paid
FROM customer
LEFT JOIN (
	SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered
	FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
	WHERE ol_delivery_d IS NOT NULL
	GROUP BY o_w_id, o_d_id, o_c_id
) AS deliveries ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
LEFT JOIN (
	SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS paid FROM history GROUP BY h_c_w_id, h_c_d_id, h_c_id
) AS payments ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
WHERE c_balance <> COALESCE(delivered, 0) - COALESCE(paid, 0)`},

		// The specification's words, orders - new orders = 2100, hold before the first delivery only. Each delivery takes one
		// new order away and counts it at its customer, so the sum of c_delivery_cnt makes the condition hold at all times.
		{"3.3.2.11", "orders minus new orders are 2100 plus the deliveries since the load", []string{"warehouse", "district", "orders", "new orders", "sum of c_delivery_cnt"}, `
SELECT d_w_id, d_id, ordered.n, COALESCE(fresh.n, 0), delivered.n
FROM district
LEFT JOIN (SELECT o_w_id, o_d_id, COUNT(*) AS n FROM orders GROUP BY o_w_id, o_d_id) AS ordered ON o_w_id = d_w_id AND o_d_id = d_id
LEFT JOIN (SELECT no_w_id, no_d_id, COUNT(*) AS n FROM new_orders GROUP BY no_w_id, no_d_id) AS fresh ON no_w_id = d_w_id AND no_d_id = d_id
LEFT JOIN (SELECT c_w_id, c_d_id, SUM(c_delivery_cnt) AS n FROM customer GROUP BY c_w_id, c_d_id) AS delivered ON c_w_id = d_w_id AND c_d_id = d_id
WHERE ordered.n IS NULL OR delivered.n IS NULL OR ordered.n - COALESCE(fresh.n, 0) <> 2100 + delivered.n`},

		{"3.3.2.12", "c_balance and c_ytd_payment are what was delivered", []string{"warehouse", "district", "customer", "c_balance", "c_ytd_payment", "delivered"}, `
SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, delivered
FROM customer
LEFT JOIN (
	SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered
	FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
	WHERE ol_delivery_d IS NOT NULL
	GROUP BY o_w_id, o_d_id, o_c_id
) AS deliveries ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
WHERE c_balance + c_ytd_payment <> COALESCE(delivered, 0)`},
	}
}

// Check verifies that the conditions hold. All statements see the same moment, so it may run during a benchmark.
func (w *tpcc) Check(ctx context.Context, t drive.Target) ([]workload.Finding, error) {
	var out []workload.Finding
	err := alone(ctx, t, func(s drive.Session) error {
		if err := loaded(s); err != nil {
			return err
		}
		if err := snapshot(s); err != nil {
			return fmt.Errorf("begin a snapshot: %w", err)
		}
		for _, c := range checks() {
			f, err := c.run(s)
			if err != nil {
				return fmt.Errorf("check %s: %w", c.clause, err)
			}
			out = append(out, f)
		}
		_, err := s.Exec(drive.Other, "COMMIT")
		return err
	})
	return out, err
}

// loaded says what is wrong when there is nothing to check.
func loaded(s drive.Session) error {
	st, err := readState(s)
	if err != nil {
		return err
	}
	if all := len(st.marked) + len(st.foreign); all < len(tables()) {
		return fmt.Errorf("tpcc: %d of %d tables exist: run risso bench prepare tpcc", all, len(tables()))
	}
	n, err := warehouses(s)
	if err == nil && n == 0 {
		err = fmt.Errorf("tpcc: no warehouse is loaded: run risso bench prepare tpcc")
	}
	return err
}

// snapshot begins a transaction whose statements all see the same moment.
func snapshot(s drive.Session) error {
	begin := []string{"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION WITH CONSISTENT SNAPSHOT"}
	if s.Dialect() == drive.Postgres {
		begin = []string{"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}
	}
	for _, sql := range begin {
		if _, err := s.Exec(drive.Other, sql); err != nil {
			return err
		}
	}
	return nil
}

// run runs one check.
func (c check) run(s drive.Session) (workload.Finding, error) {
	f := workload.Finding{Name: c.clause + " " + c.words, OK: true}
	r, err := drive.Ask(s, fmt.Sprintf("%s\nLIMIT %d", strings.TrimSpace(c.sql), sample))
	if err != nil || r.Rows == 0 {
		return f, err
	}
	f.OK = false
	var first []string
	for i, name := range c.columns {
		first = append(first, name+" "+word(r.Values[i]))
	}
	f.Detail = strings.Join(first, ", ")
	switch more := r.Rows - 1; {
	case r.Rows == sample:
		f.Detail += fmt.Sprintf("; and %d more at least", more)
	case more > 0:
		f.Detail += fmt.Sprintf("; and %d more", more)
	}
	return f, nil
}

// word writes a value of a check.
func word(v drive.Value) string {
	switch {
	case v.Null:
		return "none"
	case v.Text != nil:
		return string(v.Text)
	}
	return fmt.Sprint(v.Int)
}
