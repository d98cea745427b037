package mysql

import "testing"

// TestRights reads lines as MySQL 5.7 to 9.7 and MariaDB write them.
func TestRights(t *testing.T) {
	for _, c := range []struct {
		lines         []string
		schema, table string
		any           string
		want          bool
	}{
		{[]string{"GRANT SELECT, PROCESS ON *.* TO `r`@`%`"}, "", "", "SELECT", true},
		{[]string{"GRANT SELECT, PROCESS ON *.* TO 'r'@'%' IDENTIFIED BY PASSWORD '*A'"}, "shop", "", "SELECT", true},
		{[]string{"GRANT ALL PRIVILEGES ON *.* TO `r`@`%` WITH GRANT OPTION"}, "", "", "SELECT", true},
		{[]string{"GRANT USAGE ON *.* TO `r`@`%`", "GRANT SELECT ON `performance_schema`.* TO `r`@`%`"}, "", "", "SELECT", false},
		{[]string{"GRANT SELECT ON `sh\\_p`.* TO `r`@`%`"}, "sh_p", "t", "SELECT", true},
		{[]string{"GRANT SELECT ON `sh\\_p`.* TO `r`@`%`"}, "shop", "t", "SELECT", false},
		{[]string{"GRANT SELECT ON `sh_p`.* TO `r`@`%`"}, "shop", "", "SELECT", true},
		{[]string{"GRANT SELECT ON `s%`.* TO `r`@`%`"}, "shop", "", "SELECT", true},
		{[]string{"GRANT SELECT ON `shop`.`t` TO `r`@`%`"}, "shop", "t", "SELECT", true},
		{[]string{"GRANT SELECT ON `shop`.`t` TO `r`@`%`"}, "shop", "", "SELECT", false},
		{[]string{"GRANT SELECT (`a`, `b ON c`), INSERT ON `shop`.`t` TO `r`@`%`"}, "shop", "t", "SELECT", false},
		{[]string{"GRANT SELECT (`a`, `b ON c`), INSERT ON `shop`.`t` TO `r`@`%`"}, "shop", "t", "INSERT", true},
		{[]string{"GRANT SELECT ON *.* TO `r`@`%`", "REVOKE SELECT ON `shop`.* FROM `r`@`%`"}, "", "", "SELECT", false},
		{[]string{"GRANT SELECT ON *.* TO `r`@`%`", "REVOKE SELECT ON `shop`.* FROM `r`@`%`"}, "other", "", "SELECT", true},
		{[]string{"GRANT SELECT ON *.* TO `r`@`%`", "REVOKE SELECT ON `shop`.* FROM `r`@`%`"}, "shop", "t", "SELECT", false},
		{[]string{"GRANT SELECT ON *.* TO `r`@`%`", "REVOKE SELECT ON `mysql`.* FROM `r`@`%`"}, "", "", "SELECT", true},
		{[]string{"GRANT `select`@`%` TO `r`@`%`", "GRANT PROXY ON ''@'%' TO 'r'@'%'", "GRANT EXECUTE ON PROCEDURE `shop`.`p` TO `r`@`%`"}, "shop", "", "EXECUTE", false},
		{[]string{"GRANT SELECT ON `a``.``b`.* TO `r`@`%`"}, "a`.`b", "", "SELECT", true},
		{[]string{`GRANT SELECT ON "shop".* TO "r"@"%"`}, "shop", "", "SELECT", true}, // sql_mode=ANSI_QUOTES
		{[]string{"GRANT BINLOG_ADMIN,SHOW_ROUTINE ON *.* TO `r`@`%`"}, "", "", "SHOW_ROUTINE", true},
		{[]string{"GRANT ALL PRIVILEGES ON *.* TO `r`@`%` IDENTIFIED BY PASSWORD '*A' WITH GRANT OPTION MAX_QUERIES_PER_HOUR 9"}, "", "", "GRANT OPTION", true},
		{[]string{"GRANT ALL PRIVILEGES ON *.* TO `r`@`%` WITH MAX_QUERIES_PER_HOUR 9"}, "", "", "GRANT OPTION", false},
		{[]string{"GRANT SELECT ON `k_se`.* TO `r`@`%`"}, "käse", "", "SELECT", true},
		{[]string{"GRANT SELECT ON *.* TO 'o'dd@na`me\"'@'localhost'"}, "", "", "SELECT", true}, // MySQL 5.7
		{[]string{"GRANT ALL PRIVILEGES ON *.* TO 'o'job8'@'localhost' WITH GRANT OPTION"}, "", "", "GRANT OPTION", true},
		{[]string{"GRANT SELECT ON `shop`.* TO 'o'job8'@'localhost'"}, "other", "", "SELECT", false},
		{[]string{"GRANT ALL PRIVILEGES ON *.* TO `r`@`%`"}, "shop", "t", "GRANT OPTION", false},
		{[]string{"GRANT ALL PRIVILEGES ON `shop`.* TO `r`@`%` WITH GRANT OPTION"}, "shop", "t", "GRANT OPTION", true},
		{[]string{"GRANT USAGE ON *.* TO `r`@`%` WITH GRANT OPTION"}, "", "", "SELECT", false},
		{[]string{"GRANT SLAVE MONITOR ON *.* TO `r`@`%`"}, "", "", "REPLICA MONITOR", true}, // MariaDB 10.5 writes both
		{[]string{"GRANT REPLICATION REPLICA ON *.* TO `r`@`%`"}, "", "", "REPLICATION SLAVE", true},
		{[]string{"GRANT SELECT ON `sh_p`.`t` TO `r`@`%`"}, "shop", "t", "SELECT", false}, // of a table the schema is no pattern
		{[]string{"GRANT SELECT ON `sh_p`.`t` TO `r`@`%`"}, "sh_p", "t", "SELECT", true},
		{[]string{"GRANT SELECT ON `shop`.* TO `r`@`%`"}, "", "", "SELECT", false},
		{[]string{"GRANT SELECT ON `%`.* TO `r`@`%`"}, "shop", "", "SELECT", true},
		{[]string{"GRANT SELECT ON `shop`.* TO `r`@`%`", "REVOKE SELECT ON `shop`.* FROM `r`@`%`"}, "shop", "", "SELECT", true}, // revoked of what stands for all schemas
		{[]string{"GRANT SELECT ON *.* TO `r`@`%`", "REVOKE SELECT ON `sh_p`.* FROM `r`@`%`"}, "shop", "", "SELECT", true},
		{[]string{"GRANT SELECT, INSERT ON *.* TO `r`@`%`", "REVOKE INSERT ON `shop`.* FROM `r`@`%`"}, "shop", "t", "SELECT", true},
		{[]string{"GRANT SELECT ON *.* TO 'o'job8'@'localhost'"}, "", "", "GRANT OPTION", false},
		{[]string{"SET DEFAULT ROLE `dba` FOR `r`@`%`"}, "", "", "SELECT", false},
		{[]string{"", "GRANT", "GRANT SELECT ON", "GRANT  ON `"}, "", "", "SELECT", false},
	} {
		var r Rights
		for _, l := range c.lines {
			r.add(l)
		}
		if got := r.Have(c.schema, c.table, c.any); got != c.want {
			t.Errorf("%q: got %s on %q.%q: %t, want %t", c.lines, c.any, c.schema, c.table, got, c.want)
		}
	}
}
