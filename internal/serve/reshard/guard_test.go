package reshard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestGuardsOfMadeKeys holds that the old group refuses rows that move, and takes others, also where the server makes the key: by AUTO_INCREMENT, or by a
// generated column.
func TestGuardsOfMadeKeys(t *testing.T) {
	for _, spec := range []string{"mariadb-10.11", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			sandboxtest.Need(t, spec)
			s := newStory(t, spec, shard.Map{Name: "shop", Kind: shard.Range, Keys: shard.Integer, Epoch: 1, Tables: []shard.Table{{Schema: "shop", Name: "orders", Column: "customer"}},
				Shards: []shard.Shard{{Name: "all", Group: "west"}}})
			s.guardsOf("made", "id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT NOT NULL", "id")
			if spec == "mysql-9.7" { // no generated column of a MariaDB is NOT NULL
				s.guardsOf("stored", "id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT NOT NULL, k INT AS (v * 1) STORED NOT NULL", "k")
				s.guardsOf("virtual", "id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT NOT NULL, k INT AS (v * 1) VIRTUAL NOT NULL", "k")
			}
		})
	}
}

// guardsOf moves the keys from 3 on of a table to group east, and then those below 3, and writes to the old group while it refuses them.
func (s *story) guardsOf(name, columns, key string) {
	s.t.Helper()
	ctx := s.t.Context()
	table := "shop." + name
	for _, g := range []string{"west", "east"} {
		s.exec(g, "CREATE TABLE "+table+" ("+columns+")")
	}
	s.exec("west", "INSERT INTO "+table+" (v) VALUES (1), (2), (3), (4)")
	if err := s.mover.Maps.Add(ctx, &shard.Map{Name: name, Kind: shard.Range, Keys: shard.Integer, Epoch: 1, Tables: []shard.Table{{Schema: "shop", Name: name, Column: key}},
		Shards: []shard.Shard{{Name: "low", Group: "west"}, {Name: "high", Group: "west", From: "3"}}}); err != nil {
		s.t.Fatal(err)
	}
	moved := func(part string, writes map[string]bool) {
		s.t.Helper()
		m := *s.mover
		m.Before = func(stage shard.Stage) error {
			for q, taken := range writes {
				if stage != shard.Cleaning {
					break
				}
				q = fmt.Sprintf(q, table)
				if err := s.conns["west"].Exec(ctx, q); taken != (err == nil) || err != nil && !strings.Contains(err.Error(), "look up map "+name+" again") {
					s.t.Errorf("%s moves: %s: %v, want it to be taken: %t", part, q, err, taken)
				}
			}
			return nil
		}
		p, err := m.Plan(ctx, name, shard.Asked{Shard: part, New: part, To: "east"}, false)
		if err == nil {
			_, err = m.Run(ctx, p)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	moved("high", map[string]bool{"INSERT INTO %s (v) VALUES (8)": false, "INSERT IGNORE INTO %s (v) VALUES (9), (10)": false, "REPLACE INTO %s (v) VALUES (12)": false,
		"UPDATE %s SET v = v + 4 WHERE v IN (3, 4)": false, "DELETE FROM %s WHERE v = 3": false})
	for g, want := range map[string]string{"west": "1,2", "east": "3,4"} {
		if got, err := s.conns[g].Text(ctx, "SELECT GROUP_CONCAT(v ORDER BY v) FROM "+table); got != want {
			s.t.Errorf("%s: group %s has %s, want %s, %v", table, g, got, want, err)
		}
	}
	moved("low", map[string]bool{"INSERT INTO %s (v) VALUES (20)": true, "UPDATE %s SET v = v + 1 WHERE v = 2": false})
	if got, err := s.conns["west"].Text(ctx, "SELECT GROUP_CONCAT(v) FROM "+table); got != "20" {
		s.t.Errorf("%s: the old group has %s, want 20, %v", table, got, err)
	}
}
