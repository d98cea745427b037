package reshard_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestWhere holds that servers have the rows of a key in the shard that a client computes: texts whatever the collation and character set of their column,
// numbers of each sign.
func TestWhere(t *testing.T) {
	texts := []string{"", " ", "a", "A", "a ", "ä", "Ä", "b", "o'clock", `back\slash`, "Köln", "koln", "ÿ", "zz", "alice@example.com"}
	numbers := []string{"-9223372036854775808", "-7", "-1", "0", "1", "9", "10", "42", "100", "9223372036854775807"}
	for _, spec := range []string{"mariadb-10.11", "mysql-9.7", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			sandboxtest.Need(t, spec)
			c := sandboxtest.Connect(t, sandboxtest.Lend(t, spec))
			for _, q := range []string{"CREATE DATABASE keyed", "SET NAMES utf8mb4",
				"CREATE TABLE keyed.k (id INT PRIMARY KEY, mb4 VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci, latin VARCHAR(40) CHARACTER SET latin1, n BIGINT)"} {
				if err := c.Exec(t.Context(), q); err != nil {
					t.Fatal(err)
				}
			}
			for i := range max(len(texts), len(numbers)) {
				text, number := mysql.Literal(texts[i%len(texts)]), numbers[i%len(numbers)]
				if err := c.Exec(t.Context(), fmt.Sprintf("INSERT INTO keyed.k VALUES (%d, %s, %s, %s)", i, text, text, number)); err != nil {
					t.Fatal(err)
				}
			}
			table := []shard.Table{{Schema: "keyed", Name: "k", Column: "x"}}
			two := func(kind shard.Kind, keys shard.Keys, first, second string) shard.Map {
				m := shard.Map{Name: "m", Kind: kind, Keys: keys, Tables: table, Shards: []shard.Shard{{Name: "a", Group: "a", From: first}, {Name: "b", Group: "b", From: second}}}
				if kind == shard.List {
					m.Shards = []shard.Shard{{Name: "a", Group: "a", Values: strings.Split(first, ",")}, {Name: "b", Group: "b", Values: strings.Split(second, ",")}}
				}
				if err := m.Check(); err != nil {
					t.Fatal(err)
				}
				return m
			}
			checked := 0
			for _, m := range []shard.Map{
				two(shard.Range, shard.Text, "", "a"), two(shard.Range, shard.Text, "", "b"), two(shard.Range, shard.Text, "", "o'"), two(shard.Range, shard.Text, "", "ä"), two(shard.Hash, shard.Text, "0", "2048"),
				two(shard.List, shard.Text, "a,Köln", "A,,o'clock"), two(shard.Range, shard.Integer, "", "-1"), two(shard.Range, shard.Integer, "", "10"), two(shard.Hash, shard.Integer, "0", "2048"), two(shard.List, shard.Integer, "-7,9", "10"),
			} {
				columns, keys := []string{"mb4", "latin"}, texts
				if m.Keys == shard.Integer {
					columns, keys = []string{"n"}, numbers
				}
				for _, column := range columns {
					query := "SELECT id, " + m.Part(0).Where(column) + " AS a, " + m.Part(1).Where(column) + " AS b FROM keyed.k"
					rows, err := c.Maps(t.Context(), query)
					if err != nil {
						t.Fatal(query, err)
					}
					for _, r := range rows {
						id, _ := strconv.Atoi(r["id"])
						key := keys[id%len(keys)]
						s, _ := m.Lookup(key)
						if want := map[string]string{"a": "1 0", "b": "0 1", "": "0 0"}[s.Name]; r["a"]+" "+r["b"] != want {
							t.Errorf("%s of %s in %s: %q is in shard %q, and on the server %s %s: %+v", m.Kind, m.Keys, column, key, s.Name, r["a"], r["b"], m.Shards)
						}
						checked++
					}
				}
			}
			if checked < 200 {
				t.Errorf("%d keys were looked up", checked)
			}
		})
	}
}
