package tpcc

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// table is one of the nine. Source: clause 1.3.
type table struct {
	name, columns, key string
}

// tables are in the order in which they can be dropped when foreign keys point from one to another.
func tables() []table {
	return []table{
		{"history", `h_c_id INT NOT NULL, h_c_d_id INT NOT NULL, h_c_w_id INT NOT NULL, h_d_id INT NOT NULL, h_w_id INT NOT NULL,
	h_date {time}, h_amount DECIMAL(6,2), h_data VARCHAR(24)`, ""},
		{"new_orders", `no_o_id INT NOT NULL, no_d_id INT NOT NULL, no_w_id INT NOT NULL`, "no_w_id, no_d_id, no_o_id"},
		{"order_line", `ol_o_id INT NOT NULL, ol_d_id INT NOT NULL, ol_w_id INT NOT NULL, ol_number INT NOT NULL, ol_i_id INT,
	ol_supply_w_id INT, ol_delivery_d {time}, ol_quantity INT, ol_amount DECIMAL(6,2), ol_dist_info CHAR(24)`,
			"ol_w_id, ol_d_id, ol_o_id, ol_number"},
		{"orders", `o_id INT NOT NULL, o_d_id INT NOT NULL, o_w_id INT NOT NULL, o_c_id INT, o_entry_d {time}, o_carrier_id INT,
	o_ol_cnt INT, o_all_local INT`, "o_w_id, o_d_id, o_id"},
		{"customer", `c_id INT NOT NULL, c_d_id INT NOT NULL, c_w_id INT NOT NULL, c_first VARCHAR(16), c_middle CHAR(2), c_last VARCHAR(16),
	c_street_1 VARCHAR(20), c_street_2 VARCHAR(20), c_city VARCHAR(20), c_state CHAR(2), c_zip CHAR(9), c_phone CHAR(16),
	c_since {time}, c_credit CHAR(2), c_credit_lim DECIMAL(12,2), c_discount DECIMAL(4,4), c_balance DECIMAL(12,2),
	c_ytd_payment DECIMAL(12,2), c_payment_cnt INT, c_delivery_cnt INT, c_data VARCHAR(500)`, "c_w_id, c_d_id, c_id"},
		{"stock", `s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity INT, s_dist_01 CHAR(24), s_dist_02 CHAR(24), s_dist_03 CHAR(24),
	s_dist_04 CHAR(24), s_dist_05 CHAR(24), s_dist_06 CHAR(24), s_dist_07 CHAR(24), s_dist_08 CHAR(24), s_dist_09 CHAR(24),
	s_dist_10 CHAR(24), s_ytd INT, s_order_cnt INT, s_remote_cnt INT, s_data VARCHAR(50)`, "s_w_id, s_i_id"},
		{"item", `i_id INT NOT NULL, i_im_id INT, i_name VARCHAR(24), i_price DECIMAL(5,2), i_data VARCHAR(50)`, "i_id"},
		{"district", `d_id INT NOT NULL, d_w_id INT NOT NULL, d_name VARCHAR(10), d_street_1 VARCHAR(20), d_street_2 VARCHAR(20),
	d_city VARCHAR(20), d_state CHAR(2), d_zip CHAR(9), d_tax DECIMAL(4,4), d_ytd DECIMAL(12,2), d_next_o_id INT`, "d_w_id, d_id"},
		{"warehouse", `w_id INT NOT NULL, w_name VARCHAR(10), w_street_1 VARCHAR(20), w_street_2 VARCHAR(20), w_city VARCHAR(20),
	w_state CHAR(2), w_zip CHAR(9), w_tax DECIMAL(4,4), w_ytd DECIMAL(12,2)`, "w_id"},
	}
}

// create is what makes the table and marks it, in one step, so that no table is ever without its mark. keyed asks for a
// primary key where the specification has none.
func (t table) create(d drive.Dialect, p workload.Params, keyed bool) string {
	columns := t.columns
	switch {
	case t.key != "":
		columns += ",\n\tPRIMARY KEY (" + t.key + ")"
	case keyed:
		columns += ",\n\th_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY"
	}
	create := "CREATE TABLE " + t.name + " (\n\t" + columns + "\n)"
	if d == drive.Postgres { // two statements in one message are one transaction
		return strings.ReplaceAll(create, "{time}", "TIMESTAMP") + " " + p.TableOptions + "; COMMENT ON TABLE " + t.name + " IS '" + workload.Mark + "'"
	}
	if p.Engine != "" {
		create += " ENGINE=" + p.Engine
	}
	return strings.ReplaceAll(create, "{time}", "DATETIME") + " COMMENT='" + workload.Mark + "' " + p.TableOptions
}

// index is a secondary index or a foreign key, made when the data is there.
type index struct{ table, definition string }

// indexes are those that the transactions use; with foreign keys also these, and the indexes that they need. Names and
// columns are tpcc-mysql's.
func indexes(foreign bool) (plain, keys []index) {
	plain = []index{
		{"customer", "idx_customer (c_w_id, c_d_id, c_last, c_first)"},
		{"orders", "idx_orders (o_w_id, o_d_id, o_c_id, o_id)"},
	}
	if !foreign {
		return plain, nil
	}
	plain = append(plain,
		index{"stock", "fkey_stock_2 (s_i_id)"}, index{"order_line", "fkey_order_line_2 (ol_supply_w_id, ol_i_id)"},
		index{"history", "fkey_history_1 (h_c_w_id, h_c_d_id, h_c_id)"}, index{"history", "fkey_history_2 (h_w_id, h_d_id)"})
	return plain, []index{
		{"district", "fkey_district_1 FOREIGN KEY (d_w_id) REFERENCES warehouse (w_id)"},
		{"customer", "fkey_customer_1 FOREIGN KEY (c_w_id, c_d_id) REFERENCES district (d_w_id, d_id)"},
		{"history", "fkey_history_1 FOREIGN KEY (h_c_w_id, h_c_d_id, h_c_id) REFERENCES customer (c_w_id, c_d_id, c_id)"},
		{"history", "fkey_history_2 FOREIGN KEY (h_w_id, h_d_id) REFERENCES district (d_w_id, d_id)"},
		{"new_orders", "fkey_new_orders_1 FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders (o_w_id, o_d_id, o_id)"},
		{"orders", "fkey_orders_1 FOREIGN KEY (o_w_id, o_d_id, o_c_id) REFERENCES customer (c_w_id, c_d_id, c_id)"},
		{"order_line", "fkey_order_line_1 FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) REFERENCES orders (o_w_id, o_d_id, o_id)"},
		{"order_line", "fkey_order_line_2 FOREIGN KEY (ol_supply_w_id, ol_i_id) REFERENCES stock (s_w_id, s_i_id)"},
		{"stock", "fkey_stock_1 FOREIGN KEY (s_w_id) REFERENCES warehouse (w_id)"},
		{"stock", "fkey_stock_2 FOREIGN KEY (s_i_id) REFERENCES item (i_id)"},
	}
}

// state is which of the tables are there.
type state struct {
	marked, foreign []string // names of tables: made by Prepare, and by somebody else
	indexed         bool     // customers can be found by their last names: the load was completed
}

// readState looks which of the nine tables exist in this database or schema, and what their comments say.
func readState(s drive.Session) (*state, error) {
	there, err := workload.Tables(s, "")
	if err != nil {
		return nil, err
	}
	st := &state{}
	for _, t := range tables() {
		if marked, ok := there[t.name]; marked {
			st.marked = append(st.marked, t.name)
		} else if ok {
			st.foreign = append(st.foreign, t.name)
		}
	}
	index := "SELECT /* risso: was the load finished? */ COUNT(*) FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = 'customer' AND column_name = 'c_last'"
	if s.Dialect() == drive.Postgres {
		index = "SELECT /* risso: was the load finished? */ COUNT(*) FROM pg_indexes WHERE schemaname = current_schema() AND tablename = 'customer' AND indexdef LIKE '%c_last%'"
	}
	n, err := workload.Ask(s, index)
	if err != nil {
		return nil, fmt.Errorf("look for indexes: %w", err)
	}
	st.indexed = n[0][0].Int > 0
	return st, nil
}

// refuse says why tables cannot be made here; nil when none of them exists.
func (st *state) refuse(s drive.Session) error {
	switch {
	case len(st.foreign) > 0:
		return fmt.Errorf("tpcc: there are tables that risso did not create: %s; use an empty database", strings.Join(st.foreign, ", "))
	case len(st.marked) == 0:
		return nil
	}
	n := 0
	if slices.Contains(st.marked, "warehouse") {
		var err error
		if n, err = warehouses(s); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("there are tables of an earlier prepare (warehouses: %d)", n)
	if !st.indexed {
		what = fmt.Sprintf("there are tables of a prepare that did not finish (or is still running): %d of 9 tables, no indexes (complete warehouses: %d)", len(st.marked), n)
	}
	return fmt.Errorf("tpcc: %s; risso bench cleanup tpcc removes them", what)
}

// Cleanup drops the tables that Prepare made. It drops none when one of the nine is somebody else's.
func (w *tpcc) Cleanup(ctx context.Context, o workload.PrepareOptions) error {
	return alone(ctx, o.Target, func(s drive.Session) error {
		st, err := readState(s)
		if err != nil {
			return err
		}
		if len(st.foreign) > 0 {
			return fmt.Errorf("tpcc: nothing was dropped: risso did not create %s", strings.Join(st.foreign, ", "))
		}
		return drop(s, st.marked, o.Progress)
	})
}

// drop removes these tables, those first that point to others.
func drop(s drive.Session, names []string, progress func(done, total int64)) error {
	done := int64(0)
	for _, t := range tables() {
		if !slices.Contains(names, t.name) {
			continue
		}
		if _, err := s.Exec(drive.Other, "DROP TABLE IF EXISTS "+t.name); err != nil {
			return fmt.Errorf("drop %s: %w", t.name, err)
		}
		if done++; progress != nil {
			progress(done, int64(len(names)))
		}
	}
	return nil
}
