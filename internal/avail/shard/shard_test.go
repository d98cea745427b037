package shard_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/fault"
)

var tables = []shard.Table{{Schema: "shop", Name: "orders", Column: "customer"}}

// byRange is a map with three shards.
func byRange(keys shard.Keys, bounds ...string) *shard.Map {
	m := &shard.Map{Name: "m", Kind: shard.Range, Keys: keys, Tables: tables, Epoch: 1, Shards: []shard.Shard{{Name: "s0", Group: "g0"}}}
	for i, b := range bounds {
		n := strconv.Itoa(i + 1)
		m.Shards = append(m.Shards, shard.Shard{Name: "s" + n, Group: "g" + n, From: b})
	}
	return m
}

// TestLookup holds which shard has a key.
func TestLookup(t *testing.T) {
	integers, texts := byRange(shard.Integer, "-5", "100"), byRange(shard.Text, "b", "ä")
	hash := &shard.Map{Name: "h", Kind: shard.Hash, Keys: shard.Integer, Tables: tables, Shards: []shard.Shard{{Name: "s0", Group: "a"}, {Name: "s1", Group: "b"}}}
	hash.Even()
	list := &shard.Map{Name: "l", Kind: shard.List, Keys: shard.Text, Tables: tables, Shards: []shard.Shard{{Name: "s0", Group: "a", Values: []string{"DE", "FR"}}, {Name: "s1", Group: "b", Values: []string{"US"}}}}
	for _, m := range []*shard.Map{integers, texts, hash, list} {
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		m     *shard.Map
		key   string
		shard string
		err   error
	}{
		{integers, "-9223372036854775808", "s0", nil}, {integers, "-6", "s0", nil}, {integers, "-5", "s1", nil}, {integers, "99", "s1", nil},
		{integers, "9", "s1", nil}, // as a number: not behind 100
		{integers, "100", "s2", nil}, {integers, "18446744073709551615", "s2", nil}, {integers, "0100", "s2", nil},
		{integers, "18446744073709551616", "", shard.ErrKey}, {integers, "+1", "", shard.ErrKey}, {integers, "1.5", "", shard.ErrKey}, {integers, "", "", shard.ErrKey},
		{texts, "", "s0", nil}, {texts, "a", "s0", nil}, {texts, "B", "s0", nil}, {texts, "b", "s1", nil}, {texts, "z", "s1", nil}, {texts, "ä", "s2", nil}, {texts, "日", "s2", nil},
		{hash, "42", "s1", nil}, {hash, "-7", "s0", nil}, {hash, "042", "s1", nil},
		{list, "FR", "s0", nil}, {list, "US", "s1", nil}, {list, "us", "", shard.ErrNoShard},
	} {
		s, err := c.m.Lookup(c.key)
		if s.Name != c.shard || !errors.Is(err, c.err) {
			t.Errorf("%s: %q: %s, %v, want %s, %v", c.m.Name, c.key, s.Name, err, c.shard, c.err)
		}
	}
}

// TestSlotOf holds the slots that docs/shard.md prints for clients to test with.
func TestSlotOf(t *testing.T) {
	page, err := os.ReadFile("../../../docs/shard.md")
	if err != nil {
		t.Fatal(err)
	}
	for key, slot := range map[string]int{"1": 3148, "42": 2589, "-7": 1862, "alice@example.com": 3094, "Köln": 764} {
		if got := shard.SlotOf(key); got != slot {
			t.Errorf("%s: %d, want %d", key, got, slot)
		}
		if row := "| `" + key + "` | " + strconv.Itoa(slot) + " |"; !strings.Contains(string(page), row) {
			t.Errorf("docs/shard.md does not have %s", row)
		}
	}
}

// TestCheck holds that a map in which a key has no shard, or two, is refused.
func TestCheck(t *testing.T) {
	for name, m := range map[string]*shard.Map{
		"bounds out of order":    byRange(shard.Integer, "100", "20"),
		"a bound twice":          byRange(shard.Integer, "100", "100"),
		"a bound with zeros":     byRange(shard.Integer, "0100"),
		"no number":              byRange(shard.Integer, "x"),
		"a bound for all":        byRange(shard.Text, ""),
		"a gap at the beginning": {Name: "m", Kind: shard.Range, Keys: shard.Integer, Tables: tables, Shards: []shard.Shard{{Name: "a", Group: "a", From: "5"}}},
		"a gap in slots":         {Name: "m", Kind: shard.Hash, Keys: shard.Integer, Tables: tables, Shards: []shard.Shard{{Name: "a", Group: "a", From: "1"}}},
		"a slot too high":        {Name: "m", Kind: shard.Hash, Keys: shard.Integer, Tables: tables, Shards: []shard.Shard{{Name: "a", Group: "a", From: "0"}, {Name: "b", Group: "b", From: "4096"}}},
		"a value twice":          {Name: "m", Kind: shard.List, Keys: shard.Text, Tables: tables, Shards: []shard.Shard{{Name: "a", Group: "a", Values: []string{"x"}}, {Name: "b", Group: "b", Values: []string{"x"}}}},
		"a name twice":           {Name: "m", Kind: shard.List, Keys: shard.Text, Tables: tables, Shards: []shard.Shard{{Name: "a", Group: "a", Values: []string{"x"}}, {Name: "a", Group: "b", Values: []string{"y"}}}},
		"an empty list":          {Name: "m", Kind: shard.List, Keys: shard.Text, Tables: tables, Shards: []shard.Shard{{Name: "a", Group: "a"}}},
		"no table":               {Name: "m", Kind: shard.Range, Keys: shard.Integer, Shards: []shard.Shard{{Name: "a", Group: "a"}}},
		"no shard":               {Name: "m", Kind: shard.Range, Keys: shard.Integer, Tables: tables},
		"no kind":                {Name: "m", Keys: shard.Integer, Tables: tables, Shards: []shard.Shard{{Name: "a", Group: "a"}}},
	} {
		if err := m.Check(); fault.Code(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPlan holds what a split and a move change.
func TestPlan(t *testing.T) {
	list := &shard.Map{Name: "l", Kind: shard.List, Keys: shard.Text, Tables: tables, Epoch: 7, Shards: []shard.Shard{{Name: "s0", Group: "g0", Values: []string{"DE", "FR"}}}}
	hash := &shard.Map{Name: "h", Kind: shard.Hash, Keys: shard.Text, Tables: tables, Epoch: 7, Shards: []shard.Shard{{Name: "s0", Group: "g0", From: "0"}}}
	for _, c := range []struct {
		name  string
		m     *shard.Map
		a     shard.Asked
		where string // "": it is refused
	}{
		{"the end of a range", byRange(shard.Integer, "100"), shard.Asked{Shard: "s1", New: "n", At: "200", To: "x"}, "(k >= 200)"},
		{"the middle of a range", byRange(shard.Integer, "100"), shard.Asked{Shard: "s0", New: "n", At: "50", To: "x"}, "(k >= 50 AND k < 100)"},
		{"a whole range", byRange(shard.Integer, "100"), shard.Asked{Shard: "s0", New: "s0", To: "x"}, "(k < 100)"},
		{"all there is", byRange(shard.Integer), shard.Asked{Shard: "s0", New: "s0", To: "x"}, "(TRUE)"},
		{"a range of texts", byRange(shard.Text, "ä"), shard.Asked{Shard: "s0", New: "n", At: "m'", To: "x"}, "(CAST(CONVERT(k USING utf8mb4) AS BINARY) >= 0x6d27 AND CAST(CONVERT(k USING utf8mb4) AS BINARY) < 0xc3a4)"},
		{"half of the slots", hash, shard.Asked{Shard: "s0", New: "n", To: "x"}, "(CONV(LEFT(MD5(CONVERT(k USING utf8mb4)), 3), 16, 10) + 0 >= 2048)"},
		{"values", list, shard.Asked{Shard: "s0", New: "n", Values: []string{"FR"}, To: "x"}, "(CAST(CONVERT(k USING utf8mb4) AS BINARY) IN (0x4652))"},
		{"all values", list, shard.Asked{Shard: "s0", New: "n", Values: []string{"FR", "DE"}, To: "x"}, ""},
		{"another's value", list, shard.Asked{Shard: "s0", New: "n", Values: []string{"US"}, To: "x"}, ""},
		{"a slot too high", hash, shard.Asked{Shard: "s0", New: "n", At: "4096", To: "x"}, ""},
		{"the first key", byRange(shard.Integer, "100"), shard.Asked{Shard: "s1", New: "n", At: "100", To: "x"}, ""},
		{"behind the last", byRange(shard.Integer, "100"), shard.Asked{Shard: "s0", New: "n", At: "100", To: "x"}, ""},
		{"no key", byRange(shard.Integer, "100"), shard.Asked{Shard: "s0", New: "n", To: "x"}, ""},
		{"the same group", byRange(shard.Integer, "100"), shard.Asked{Shard: "s0", New: "n", At: "50", To: "g0"}, ""},
		{"a name that there is", byRange(shard.Integer, "100"), shard.Asked{Shard: "s0", New: "s1", At: "50", To: "x"}, ""},
		{"no shard", byRange(shard.Integer, "100"), shard.Asked{Shard: "s9", New: "n", At: "50", To: "x"}, ""},
	} {
		was := c.m.Epoch
		p, _, after, err := c.m.Plan(c.a, time.Now())
		if (err == nil) != (c.where != "") || err == nil && (p.Where("k") != c.where || after.Epoch != was+1) {
			t.Errorf("%s: %s, %v, want %s", c.name, p.Where("k"), err, c.where)
		}
		if err == nil {
			if i := after.Find(c.a.New); i < 0 || after.Shards[i].Group != "x" || after.Part(i).Where("k") != c.where {
				t.Errorf("%s: %+v", c.name, after)
			}
		}
		if c.m.Epoch != was || c.m.Check() != nil {
			t.Errorf("%s changed the map", c.name)
		}
	}
}
