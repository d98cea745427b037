package sqltext

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestReadGrant(t *testing.T) {
	for in, want := range map[string]string{
		"GRANT SELECT (`a`,`to`), INSERT ON `s`.* TO `u`@`%` WITH GRANT OPTION":        "GRANT [SELECT (`a`,`to`) INSERT] on u@%",
		"GRANT `r`@`%`,`q`@`%` TO 'it''s'@localhost":                                   "GRANT [`r`@`%` `q`@`%`] it's@localhost",
		"GRANT PROXY ON ''@'%' TO 'root'@'localhost' WITH GRANT OPTION":                "GRANT [PROXY] on root@localhost",
		"GRANT USAGE ON *.* TO `u`@`h` IDENTIFIED BY PASSWORD '*A' REQUIRE SSL":        "GRANT [USAGE] on u@h",
		"REVOKE INSERT ON `s`.* FROM `u`@`h`":                                          "REVOKE [INSERT] on u@h",
		"SET DEFAULT ROLE `r` FOR `u`@`h`":                                             "SET [`r`] u@h",
		"GRANT `r` TO `q` WITH ADMIN OPTION":                                           "GRANT [`r`] q",
		"GRANT EXECUTE ON PROCEDURE `to`.`on` /* TO x */ TO `u`@`h` -- , `root`@`%`\n": "GRANT [EXECUTE] on u@h",
	} {
		g, err := Dialect{}.ReadGrant(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		s := g.Verb + " ["
		for i, p := range g.Privileges {
			if i > 0 {
				s += " "
			}
			s += p.Name
		}
		s += "] "
		if g.On > 0 {
			s += "on "
		}
		if s += fmt.Sprint(g.To); s != want {
			t.Errorf("%s\n is %s\nwant %s", in, s, want)
		}
	}
	for _, in := range []string{"", "SET GLOBAL a = 1", "SET PASSWORD FOR u = 'x'", "GRANT ALL ON *.* TO a, b", "GRANT ALL ON *.* TO a IDENTIFIED BY 'x', b IDENTIFIED BY 'y'",
		"GRANT ALL ON *.* TO a; DROP USER b", "GRANT ALL ON *.*", "CREATE USER a", "GRANT ALL ON *.* TO 'a", "SET DEFAULT ROLE r TO a, b"} {
		if _, err := (Dialect{}).ReadGrant(in); !errors.Is(err, ErrStatement) {
			t.Errorf("%s: got %v, want ErrStatement", in, err)
		}
	}
}

// TestLike: what a name may be in a GRANT on all of a schema; a pattern with many % cannot keep Risso busy.
func TestLike(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"shop", "shop", true}, {"shop", "shops", false}, {"shop", "sho", false}, {"", "", true}, {"", "s", false}, {"%", "", true}, {"%", "shop", true}, {"_", "", false},
		{"s%", "shop", true}, {"%p", "shop", true}, {"%h%", "shop", true}, {"%x%", "shop", false}, {"s%o_", "shop", true}, {"s%o_", "shoo", true}, {"s_op", "shop", true}, {"s_p", "shop", false},
		{`s\_op`, "s_op", true}, {`s\_op`, "shop", false}, {`s\%`, "s%", true}, {`s\%`, "shop", false}, {`s\\`, `s\`, true}, {`s\`, `s\`, true}, {"k_se", "käse", true}, {"%ab", "aab", true}, {"%_", "", false}, {"%__", "€", false}, {"%_", "€", true}, {"%€_", "€€", true},
		{strings.Repeat("%a", 1000) + "b", strings.Repeat("a", 5000), false}, {strings.Repeat("%", 1000), "shop", true},
	} {
		if got := Like(c.pattern, c.name); got != c.want {
			t.Errorf("got %.20q, %.20q: %t; want %t", c.pattern, c.name, got, c.want)
		}
	}
	for _, name := range []string{"", "a_b%c\\d", "%%", `\_`} {
		p := SchemaPattern(name)
		if one, ok := ExactSchema(p); !Like(p, name) || !ok || one != name || Like(p, name+"x") {
			t.Errorf("%q has the pattern %q, which is of %q; want Like(p, name) true, ok true, one %q, Like(p, name+\"x\") false", name, p, one, name)
		}
	}
}
