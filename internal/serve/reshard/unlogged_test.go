package reshard_test

import (
	"errors"
	"testing"

	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/serve/reshard"
)

// TestNotLoggedAsRows holds that changes of a large table which no log has as rows are noticed, though they are made after it was compared.
func TestNotLoggedAsRows(t *testing.T) {
	for _, spec := range []string{"mariadb-10.11", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			sandboxtest.Need(t, spec)
			s := newStory(t, spec, shard.Map{Name: "shop", Kind: shard.Range, Keys: shard.Integer, Epoch: 1, Tables: []shard.Table{{Schema: "shop", Name: "orders", Column: "customer"}},
				Shards: []shard.Shard{{Name: "all", Group: "west"}}})
			move := func(asked shard.Asked, statements ...string) error {
				t.Helper()
				m := *s.mover
				m.Before = func(stage shard.Stage) error {
					for i := 0; stage == shard.Switching && i < len(statements); i += 2 { // it was compared
						s.exec(statements[i], statements[i+1])
					}
					return nil
				}
				p, err := m.Plan(t.Context(), "shop", asked, false)
				if err != nil {
					t.Fatal(err)
				}
				_, err = m.Run(t.Context(), p)
				return err
			}
			// What changes no row is in no one's way.
			if err := move(shard.Asked{Shard: "all", New: "high", At: "160", To: "east"}, "west", "CREATE TABLE shop.more (id INT PRIMARY KEY)", "west", "ANALYZE TABLE shop.orders"); err != nil {
				t.Fatal(err)
			}
			s.audit(byCustomer)
			mid := shard.Asked{Shard: "all", New: "mid", At: "100", To: "east"}
			for _, harm := range [][]string{
				{"west", "SET SESSION binlog_format = 'STATEMENT'", "west", "UPDATE shop.orders SET n = 8 WHERE id = 150003", "west", "SET SESSION binlog_format = 'ROW'"},
				{"east", "SET SESSION binlog_format = 'STATEMENT'", "east", "UPDATE shop.orders SET n = 9 WHERE id = 150003", "east", "SET SESSION binlog_format = 'ROW'"},
				{"west", "SET SESSION sql_log_bin = 0", "west", "DELETE FROM shop.orders WHERE id = 150004", "west", "SET SESSION sql_log_bin = 1"},
				{"west", "TRUNCATE TABLE shop.orders"},
			} {
				if err := move(mid, harm...); !errors.Is(err, reshard.ErrDiffers) {
					t.Errorf("%s: %v", harm, err)
				}
				if _, err := s.mover.Undo(t.Context(), "shop"); err != nil && !errors.Is(err, reshard.ErrNothing) {
					t.Fatal(err)
				}
			}
		})
	}
}
