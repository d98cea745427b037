package tpcc

import (
	"fmt"

	"github.com/rissodb/risso/internal/measure/drive"
)

// statements are those of one session, prepared: thirty, so that 512 sessions stay below a server's usual limit of 16,382.
type statements struct {
	// New order, clause 2.4.
	buyerAndTax, takeNumber, nextNumber, addOrder, addNew, item, takeStock, setStock, addLine *drive.Stmt
	// Payment, clause 2.5.
	payWarehouse, warehouse, payDistrict, district, byName, takeCustomer, pay, payBad, addHistory *drive.Stmt
	// Order status, clause 2.6.
	customer, lastOrder, linesOf *drive.Stmt
	// Delivery, clause 2.7.
	oldestNew, dropNew, buyerOf, setCarrier, setDelivered, sumOf, credit *drive.Stmt
	// Stock level, clause 2.8.
	numberNow, low *drive.Stmt
}

// prepare has the server prepare all of them.
func (c *client) prepare() error {
	c.deck = newDeck()
	s := &c.statements
	const read, write = drive.Read, drive.Write
	for _, x := range []struct {
		st   **drive.Stmt
		kind drive.Kind
		sql  string
	}{
		{&s.buyerAndTax, read, "SELECT c_discount, c_last, c_credit, w_tax FROM customer JOIN warehouse ON w_id = c_w_id WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"},
		{&s.takeNumber, read, "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE"},
		{&s.nextNumber, write, "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?"},
		{&s.addOrder, write, "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES (?, ?, ?, ?, ?, ?, ?)"},
		{&s.addNew, write, "INSERT INTO new_orders (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)"},
		{&s.item, read, "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?"},
		{&s.takeStock, read, "SELECT s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE"},
		{&s.setStock, write, "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?"},
		{&s.addLine, write, "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"},

		{&s.payWarehouse, write, "UPDATE warehouse SET w_ytd = w_ytd + CAST(? AS DECIMAL(12,2)) WHERE w_id = ?"},
		{&s.warehouse, read, "SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = ?"},
		{&s.payDistrict, write, "UPDATE district SET d_ytd = d_ytd + CAST(? AS DECIMAL(12,2)) WHERE d_w_id = ? AND d_id = ?"},
		{&s.district, read, "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district WHERE d_w_id = ? AND d_id = ?"},
		{&s.byName, read, "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first"},
		{&s.takeCustomer, read, "SELECT c_credit, c_data, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit_lim, c_discount, c_balance, c_since FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE"},
		{&s.pay, write, "UPDATE customer SET c_balance = c_balance - CAST(? AS DECIMAL(12,2)), c_ytd_payment = c_ytd_payment + CAST(? AS DECIMAL(12,2)), c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"},
		{&s.payBad, write, "UPDATE customer SET c_balance = c_balance - CAST(? AS DECIMAL(12,2)), c_ytd_payment = c_ytd_payment + CAST(? AS DECIMAL(12,2)), c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"},
		{&s.addHistory, write, "INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"},

		{&s.customer, read, "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"},
		{&s.lastOrder, read, "SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1"},
		{&s.linesOf, read, "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"},

		{&s.oldestNew, read, "SELECT no_o_id FROM new_orders WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 FOR UPDATE"},
		{&s.dropNew, write, "DELETE FROM new_orders WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?"},
		{&s.buyerOf, read, "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?"},
		{&s.setCarrier, write, "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?"},
		{&s.setDelivered, write, "UPDATE order_line SET ol_delivery_d = ? WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"},
		{&s.sumOf, read, "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"},
		{&s.credit, write, "UPDATE customer SET c_balance = c_balance + CAST(? AS DECIMAL(12,2)), c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"},

		{&s.numberNow, read, "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?"},
		{&s.low, read, "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ? AND s_quantity < ?"},
	} {
		st, err := c.session.Prepare(x.kind, placeholders(c.session.Dialect(), x.sql))
		if err != nil {
			return fmt.Errorf("prepare %s: %w", x.sql, err)
		}
		st.Keep = x.kind == read
		*x.st = st
	}
	return nil
}
