package chunk

import (
	"testing"

	"github.com/rissodb/risso/internal/mysql/define"
)

// TestOrder: what changes the order of a key makes another one, what does not does not; what the server decides depends on the server.
func TestOrder(t *testing.T) {
	order := func(create, series string) string {
		t.Helper()
		table, err := define.ParseTable("d", create)
		if err != nil {
			t.Fatal(err)
		}
		return Order(table, []string{"k"}, series)
	}
	const bin = "CREATE TABLE `t` (\n  `k` varchar(20) COLLATE utf8mb4_bin NOT NULL,\n  PRIMARY KEY (`k`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
	const number = "CREATE TABLE `t` (\n  `k` int(11) NOT NULL,\n  PRIMARY KEY (`k`)\n) ENGINE=InnoDB"
	const open = "CREATE TABLE `t` (\n  `k` varchar(20) NOT NULL,\n  PRIMARY KEY (`k`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
	for _, c := range []struct {
		what, a, b string
		same       bool
	}{
		{"itself", order(bin, "1"), order(bin, "1"), true},
		{"a collation that is named, elsewhere", order(bin, "1"), order(bin, "2"), true},
		{"the table's collation", order(bin, "1"), order("CREATE TABLE `t` (\n  `k` varchar(40) NOT NULL,\n  PRIMARY KEY (`k`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin", "1"), true},
		{"another collation", order(bin, "1"), order("CREATE TABLE `t` (\n  `k` varchar(20) NOT NULL,\n  PRIMARY KEY (`k`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci", "1"), false},
		{"a default collation, elsewhere", order(open, "1"), order(open, "2"), false},
		{"a larger number", order(number, "1"), order("CREATE TABLE `t` (\n  `k` bigint(20) NOT NULL,\n  PRIMARY KEY (`k`)\n) ENGINE=InnoDB", "2"), true},
		{"text that was a number", order(number, "1"), order(open, "1"), false},
	} {
		if (c.a == c.b) != c.same || c.a == "" || c.b == "" {
			t.Errorf("%s: %q and %q", c.what, c.a, c.b)
		}
	}
	if got := order("CREATE TABLE `t` (\n  `other` int(11) NOT NULL\n) ENGINE=InnoDB", "1"); got != "" {
		t.Errorf("of a column that is not there: %q, want \"\"", got)
	}
}
