package reshard

import (
	"testing"

	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/avail/shard/keep"
)

// TestChanges holds which statements of a log may change rows that move without saying which.
func TestChanges(t *testing.T) {
	r := &run{j: &keep.Journal{Move: shard.Move{Tables: []shard.Progress{{Table: shard.Table{Schema: "shop", Name: "Orders", Column: "id"}}}}}}
	for text, want := range map[string]bool{
		"BEGIN": false, "COMMIT": false, "SAVEPOINT `a`": false, "ROLLBACK TO `a`": false, "XA START X'01',X'',1": false, "# Dummy event replacing event type 160": false,
		"UPDATE orders SET n = 1":                                    true,
		"INSERT INTO other VALUES (1)":                               true, // it may have a trigger
		"SET STATEMENT sort_buffer_size = 9 FOR DELETE FROM orders":  true,
		"TRUNCATE TABLE `shop`.`orders`":                             true,
		"TRUNCATE /*!40000 TABLE */ other":                           false,
		"ALTER TABLE parts EXCHANGE PARTITION p WITH TABLE `ORDERS`": true,
		"CREATE TABLE other (id INT)":                                false,
		"CREATE OR REPLACE TABLE orders (id INT)":                    true,
		"DROP TABLE IF EXISTS `shop`.`other`":                        false,
		"DROP DATABASE shop":                                         true,
		"DROP SCHEMA IF EXISTS shop":                                 true,
		"FLUSH TABLES":                                               false,
		"GRANT SELECT ON *.* TO a":                                   false,
	} {
		if got := r.changes([]byte(text)); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}
