package upgrade

import (
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/fleet"
)

func find(from, to fleet.Server, create string) (ids []string) {
	d := &differ.Description{Server: from, Schemas: map[string]differ.Schema{"s": {Tables: map[string]string{"t": create}}}}
	for _, p := range Find(d, Facts{}, to) {
		ids = append(ids, p.ID)
	}
	return ids
}

// TestRulesByVersion: a rule speaks on the way through its version, and not after it; what only files of old servers have is known by rule.
func TestRulesByVersion(t *testing.T) {
	old, v80, v97 := fleet.ServerOf("5.7.22", ""), fleet.ServerOf("8.0.40", ""), fleet.ServerOf("9.7.0", "")
	long := strings.Repeat("x", 65)
	for _, c := range []struct {
		from, to fleet.Server
		create   string
		id       string
		want     bool
	}{
		{old, v80, "CREATE TABLE `t` (\n  `rank` int\n) ENGINE=InnoDB", "name.reserved", true},
		{v80, v97, "CREATE TABLE `t` (\n  `rank` int\n) ENGINE=InnoDB", "name.reserved", false},
		{v80, v97, "CREATE TABLE `t` (\n  `qualify` int\n) ENGINE=InnoDB", "name.reserved", true},
		{old, v80, "CREATE TABLE `t` (\n  `a` int,\n  CONSTRAINT `" + long + "` FOREIGN KEY (`a`) REFERENCES `p` (`a`)\n) ENGINE=InnoDB", "foreign_key.name", true},
		{old, v80, "CREATE TABLE `t` (\n  `a` int,\n  CONSTRAINT `" + long[1:] + "` FOREIGN KEY (`a`) REFERENCES `p` (`a`)\n) ENGINE=InnoDB", "foreign_key.name", false},
		{old, v80, "CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB\n/*!50100 PARTITION BY HASH (a)\n(PARTITION p0 TABLESPACE = shared ENGINE = InnoDB) */", "partition.tablespace", true},
		{old, v80, "CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB\n/*!50100 PARTITION BY HASH (a)\n(PARTITION p0 ENGINE = InnoDB) */", "partition.tablespace", false},
		{old, v80, "CREATE TABLE `t` (\n  `a` varchar(9) COLLATE utf8mb4_bin COMMENT 'GROUP BY x DESC, PASSWORD(1)'\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4", "function.removed", false},
	} {
		if got := slices.Contains(find(c.from, c.to, c.create), c.id); got != c.want {
			t.Errorf("%s to %s, %s: got %s %t, want %t", c.from, c.to, c.create, c.id, got, c.want)
		}
	}
	d := &differ.Description{Server: old, Schemas: map[string]differ.Schema{}}
	if list := Find(d, Facts{Temporal: []string{"`s`.`t`.`c`"}, Orphans: []string{"s/gone"}}, v80); len(list) != 2 || !slices.Equal(list[0].Statements, []string{"ALTER TABLE `s`.`t` FORCE"}) {
		t.Errorf("old times and orphans: got %+v, want both, the first with its rebuild", list)
	}
}

// TestAccountsAndPlugins: what of accounts, plug-ins and statements is gone or deprecated, by the version that it goes to.
func TestAccountsAndPlugins(t *testing.T) {
	from := fleet.ServerOf("8.0.34", "")
	d := &differ.Description{Server: from, Plugins: map[string]string{"keyring_file": "ACTIVE KEYRING", "authentication_fido": "DISABLED AUTHENTICATION"}, Accounts: map[string]differ.Account{
		"a@%": {Plugins: []string{"mysql_native_password"}}, "b@%": {Plugins: []string{"sha256_password"}, Grants: []string{"GRANT SET_USER_ID ON *.* TO `b`@`%`"}}, "c@%": {Plugins: []string{"caching_sha2_password"}}}}
	for to, want := range map[string]string{
		"8.0.40": "account.plugin_deprecated 'a'@'%', account.plugin_deprecated 'b'@'%'",
		"8.4.0":  "account.plugin 'a'@'%', plugin.removed keyring_file, account.privilege 'b'@'%', account.plugin_deprecated 'b'@'%'",
	} {
		var got []string
		for _, p := range Find(d, Facts{}, fleet.ServerOf(to, "")) {
			got = append(got, p.ID+" "+p.Object)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("to %s: got %s, want %s", to, strings.Join(got, ", "), want)
		}
	}
	for sql, want := range map[string]string{"SHOW SLAVE STATUS": "syntax.replication", "change /* x */ master TO MASTER_HOST = 'h'": "syntax.replication", "SHOW REPLICA STATUS": "", "SELECT master, slave FROM start": "", "RESET MASTER": "syntax.replication"} {
		got := ""
		for _, p := range Statement(d, fleet.ServerOf("8.4.0", ""), "class", sql) {
			got += p.ID
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", sql, got, want)
		}
	}
}
