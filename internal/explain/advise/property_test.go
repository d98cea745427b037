package advise_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// TestNothingIsLost: over made-up tables: when all that is advised of indexes is done, and what is hidden is dropped, each foreign key, on
// either side, and AUTO_INCREMENT still have an index, each unique rule still holds, and all that hints name is there.
func TestNothingIsLost(t *testing.T) {
	taken := 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		inside, hinted, referred := madeUp(rng)
		d, err := define.ParseTable("d", "CREATE TABLE `t` (\n"+inside+"\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4")
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		tab := &advise.Table{Table: d, Use: &advise.Use{Reads: map[string]float64{}}}
		for _, k := range d.Keys {
			tab.Use.Reads[k.Name] = float64(rng.IntN(3) / 2)
		}
		s := counting([]string{"9.7.0", "10.11.4-MariaDB", "5.7.30"}[rng.IntN(3)], usageNow.AddDate(0, 0, -40))
		s.Hinted = map[string]string{hinted: "view d.v"}
		if len(referred) > 0 {
			s.References = map[mysql.TableName][]advise.Reference{{Schema: "d", Name: "t"}: {{ForeignKey: define.ForeignKey{Name: "f", Columns: referred, To: referred}}}}
		}
		gone := map[string]bool{}
		for _, f := range advise.OfTable(s, tab) {
			if strings.HasPrefix(f.ID, "index.") && f.Statement != "" && (strings.Contains(f.Statement, "DROP INDEX") || strings.Contains(f.Statement, "INVISIBLE") || strings.Contains(f.Statement, " IGNORED")) {
				gone[strings.TrimPrefix(f.Object, "d.t.")] = true
				taken++
			}
		}
		// What risso index retire lets go is held to the same, one by one.
		for _, k := range d.Keys {
			if r, there := advise.Retire(s, tab, k.Name); !there || r.Needed == "" {
				if lost := lacks(d, hinted, referred, map[string]bool{k.Name: true}, true); there && lost != "" {
					t.Errorf("seed %d: retiring %s: %s\n%s", seed, k.Name, lost, inside)
				}
			}
		}
		if lost := lacks(d, hinted, referred, gone, false); lost != "" {
			t.Errorf("seed %d: %s; gone: %v\n%s", seed, lost, gone, inside)
		}
	}
	if taken < 1000 {
		t.Errorf("only %d indexes were advised to go: the tables test nothing", taken)
	}
}

// madeUp is the inside of a table with random keys.
func madeUp(rng *rand.Rand) (inside, hinted string, referred []string) {
	names := []string{"a", "b", "c", "e"}
	lines := []string{"`id` int NOT NULL", "`a` int NOT NULL", "`b` int", "`c` int NOT NULL", "`e` int", "PRIMARY KEY (`id`)"}
	pick := func(n int) (out []string) {
		for _, i := range rng.Perm(len(names))[:n] {
			out = append(out, names[i])
		}
		return out
	}
	quoted := func(list []string) string { return "(`" + strings.Join(list, "`,`") + "`)" }
	for i := range 2 + rng.IntN(6) {
		word, tail := "KEY", ""
		if rng.IntN(4) == 0 {
			word = "UNIQUE KEY"
		}
		if rng.IntN(8) == 0 {
			tail = " /*!80000 INVISIBLE */"
		}
		lines = append(lines, fmt.Sprintf("%s `k%d` %s%s", word, i, quoted(pick(1+rng.IntN(3))), tail))
	}
	if rng.IntN(2) == 0 { // what InnoDB makes sure of: the key has an index
		columns := pick(1 + rng.IntN(2))
		lines = append(lines, "KEY `kf` "+quoted(columns), "CONSTRAINT `f` FOREIGN KEY "+quoted(columns)+" REFERENCES `p` "+quoted(columns))
	}
	if rng.IntN(3) == 0 {
		referred = pick(1)
		lines = append(lines, "KEY `kr` "+quoted(referred))
	}
	if rng.IntN(3) == 0 {
		lines[1] = "`a` int NOT NULL AUTO_INCREMENT"
		lines = append(lines, "KEY `ki` (`a`)")
	}
	if rng.IntN(2) == 0 {
		hinted = fmt.Sprintf("k%d", rng.IntN(3))
	}
	return strings.Join(lines, ",\n"), hinted, referred
}

// lacks says what a table lacks without some of its indexes, by rules of its own; "" if nothing.
func lacks(d define.Table, hinted string, referred []string, gone map[string]bool, visible bool) string {
	begins := func(columns []string) bool {
		return slices.ContainsFunc(d.Keys, func(k define.TableKey) bool {
			if gone[k.Name] || len(k.Parts) < len(columns) || visible && k.Hidden {
				return false
			}
			for i, c := range columns {
				if k.Parts[i].Column != c {
					return false
				}
			}
			return true
		})
	}
	had := func(columns []string) bool {
		g := gone
		gone = map[string]bool{}
		defer func() { gone = g }()
		return begins(columns)
	}
	for _, f := range d.ForeignKeys {
		if had(f.Columns) && !begins(f.Columns) {
			return "a foreign key has no index"
		}
	}
	if len(referred) > 0 && had(referred) && !begins(referred) {
		return "a foreign key that refers to it has no index"
	}
	for _, c := range d.Columns {
		if c.Auto && had([]string{c.Name}) && !begins([]string{c.Name}) {
			return "AUTO_INCREMENT has no index"
		}
	}
	if gone[hinted] {
		return "a hint names what is gone"
	}
	for _, k := range d.Keys {
		if !k.Unique || !gone[k.Name] {
			continue
		}
		// What stays must demand as much: one whose columns are all among those of k.
		if !slices.ContainsFunc(d.Keys, func(o define.TableKey) bool {
			return o.Unique && !gone[o.Name] && !slices.ContainsFunc(o.Parts, func(p define.KeyPart) bool {
				return !slices.ContainsFunc(k.Parts, func(q define.KeyPart) bool { return q.Column == p.Column })
			})
		}) {
			return "the unique rule of " + k.Name + " is gone"
		}
	}
	return ""
}
