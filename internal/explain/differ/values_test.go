package differ

import (
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

// TestSameValue: what means the same is the same, and nothing else.
func TestSameValue(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		want       bool
	}{
		{"x", "ON", "1", true}, {"x", "OFF", "ON", false}, {"x", "16M", "16777216", true}, {"long_query_time", "10.000000", "10", true}, {"x", "10", "11", false},
		{"sql_mode", "A,B", "B,A", true}, {"sql_mode", "A,B", "A", false}, {"character_set_server", "utf8", "utf8mb3", true}, {"collation_server", "utf8_bin", "utf8mb4_bin", false},
		{"tmpdir", "/tmp", "/tmp/", true}, {"init_connect", "SET a", "SET b", false}, {"x", "0", "OFF", true}, {"x", "", "0", false},
	} {
		if got := sameValue(c.name, c.a, c.b); got != c.want {
			t.Errorf("%s %q and %q: got same %t, want %t", c.name, c.a, c.b, got, c.want)
		}
	}
}

func described(name string, set map[string]string) *Description {
	d := &Description{Name: name, Server: fleet.ServerOf("10.11.6-MariaDB", ""), Variables: map[string]string{"sync_binlog": "1", "port": "1", "slave_parallel_threads": "0"}, Changed: map[string]string{},
		Plugins: map[string]string{}, Engines: map[string]string{}, Collations: map[string]string{}, Accounts: map[string]Account{}, Zones: "empty"}
	for k, v := range set {
		d.Variables[k], d.Changed[k] = v, "CONFIG"
	}
	return d
}

// TestGroup: who drifted from the majority is told, and the others are not.
func TestGroup(t *testing.T) {
	g := Group([]*Description{described("a", nil), described("b", map[string]string{"sync_binlog": "0"}), described("c", map[string]string{"port": "3"})}, false)
	for i, want := range []int{0, 1, 0} {
		if got := g.Servers[i].Worst(RankVersion); got != want {
			t.Errorf("%s: got %d differences %+v, want %d", g.Servers[i].B, got, g.Servers[i].Differences, want)
		}
	}
	if len(g.Split) != 0 {
		t.Errorf("got split %v, want none", g.Split)
	}
	g = Group([]*Description{described("a", map[string]string{"sync_binlog": "2"}), described("b", map[string]string{"sync_binlog": "0"}), described("c", nil)}, false)
	if !slices.Equal(g.Split, []string{"sync_binlog"}) {
		t.Errorf("got split %v, want sync_binlog", g.Split)
	}
}

// TestUnreadIsNeverSame: what one side did not read is not compared, and told.
func TestUnreadIsNeverSame(t *testing.T) {
	a, b := described("a", nil), described("b", nil)
	b.Accounts = nil
	b.Unread = []Unread{{Area: AreaAccounts, Trouble: fleet.Trouble{Why: "refused"}}}
	r := Compare(a, b, false)
	if slices.Contains(r.Compared, AreaAccounts) || len(r.NotCompared) != 1 || r.NotCompared[0].Server != "b" {
		t.Errorf("got compared %v, not compared %+v; want the accounts of b among these", r.Compared, r.NotCompared)
	}
}

// TestListsInOrder: partitions by list say the same in any order; what else differs stays.
func TestListsInOrder(t *testing.T) {
	table := func(end string, parts ...string) string {
		return "CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB\n" + strings.TrimSuffix(end, "*/") + "PARTITION BY LIST (`a`)\n(" + strings.Join(parts, ",\n ") + ")" + map[bool]string{true: " */"}[strings.HasSuffix(end, "*/")]
	}
	for _, end := range []string{"", "/*!50100 */"} {
		here := table(end, "PARTITION x VALUES IN (1,2) ENGINE = InnoDB", "PARTITION y VALUES IN (3,'(a),b') COMMENT = 'VALUES IN (' ENGINE = InnoDB")
		for there, same := range map[string]bool{
			table(end, "PARTITION y VALUES IN ('(a),b',3) COMMENT = 'VALUES IN (' ENGINE = InnoDB", "PARTITION x VALUES IN (2,1) ENGINE = InnoDB"): true,
			table(end, "PARTITION y VALUES IN (3,1) ENGINE = InnoDB", "PARTITION x VALUES IN (2,'(a),b') ENGINE = InnoDB"):                         false,
			table(end, "PARTITION x VALUES IN (1,2) ENGINE = InnoDB"):                                                                              false,
		} {
			if got := listsInOrder(here) == listsInOrder(there); got != same {
				t.Errorf("%s\n%s\nsame: got %v, want %v", listsInOrder(here), listsInOrder(there), got, same)
			}
		}
	}
	multi := "PARTITION x VALUES IN ((1,2),(0,5)) ENGINE = InnoDB"
	if got, want := valuesInOrder(multi), "PARTITION x VALUES IN ((0,5),(1,2)) ENGINE = InnoDB"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, other := range []string{"CREATE TABLE `t` (\n  `a` int\n)", "CREATE VIEW v AS SELECT 'PARTITION BY LIST'", ""} {
		if got := listsInOrder(other); got != other {
			t.Errorf("got %s, want %s", got, other)
		}
	}
}
