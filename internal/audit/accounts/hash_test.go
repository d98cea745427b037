package accounts

import (
	"fmt"
	"strings"
	"testing"
)

// TestForms: stored forms as servers and published vectors have them.
func TestForms(t *testing.T) {
	// Source: openssl passwd -5 -salt saltstring.
	if got := sha256Crypt("Hello world!", "saltstring", 5000); got != "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5" {
		t.Errorf("SHA-crypt: got %s, want 5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5", got)
	}
	for _, plugin := range []string{pluginNative, pluginSHA256, pluginCaching, pluginEd25519} {
		secret, err := NewSecret(plugin, "pässword")
		if err != nil {
			t.Fatal(err)
		}
		match, _ := Method{plugin, secret}.matcher()
		if match == nil || !match("pässword") || match("passwort") {
			t.Errorf("%s: want match(pässword) true, match(passwort) false", plugin)
		}
		if shown := fmt.Sprintf("%v %+v %#v %s", Method{plugin, secret}, Method{plugin, secret}, Method{plugin, secret}, secret); strings.Contains(shown, string(secret)) {
			t.Errorf("%s is shown: %s", plugin, shown)
		}
	}
	for _, m := range []Method{{pluginNative, "*12"}, {pluginCaching, "$A$005$"}, {pluginParsec, "P0:x:y"}, {"authentication_ldap", "x"}, {pluginSHA256, "x"}} {
		if match, _ := m.matcher(); match != nil {
			t.Errorf("%s takes a form that is none", m.Plugin)
		}
	}
	// Source: MariaDB release notes of 11.6 (padded), and a MariaDB 12.2.2 as others recorded it (not padded).
	for hash, password := range map[string]string{"P0:lhXyNv1cIxpB8EnTxR7ON7S7:1l3rWRW1/jw45yrvYXB8eh02wzk7lcJcz4CMcWw2b+8=": "MyPassword123!", "P0:Csl7Kdcsc5bB8Brr/cwj80zK:WxU1o4rcpIWdmRLCelCwxUz0qzI0gS6b9ZkB4JOcBhw": "parsecpass"} {
		if match, _ := (Method{pluginParsec, Secret(hash)}).matcher(); match == nil || !match(password) || match("x") {
			t.Errorf("parsec of %s: want match", password)
		}
	}
	if _, err := NewSecret("unix_socket", "x"); err == nil {
		t.Error("unix_socket stores no password: want an error")
	}
	// Source: MySQL manual, OLD_PASSWORD('mypass').
	if got := oldHash("mypass"); got != "6f8c114b58f2ce9e" {
		t.Errorf("old form: got %s, want 6f8c114b58f2ce9e", got)
	}
}

// TestHarmless: no cell is a formula.
func TestHarmless(t *testing.T) {
	for _, c := range [][2]string{{"=1+1", "'=1+1"}, {"+x", "'+x"}, {"-x", "'-x"}, {"@x", "'@x"}, {"\tx", "'\tx"}, {"x=1", "x=1"}, {"", ""}, {"＝1", "'＝1"}} {
		if got := harmless(c[0]); got != c[1] {
			t.Errorf("%q: got %q, want %q", c[0], got, c[1])
		}
	}
}

// TestPolicy: the built-in policy can be read, and what it does not know is refused.
func TestPolicy(t *testing.T) {
	if p, err := Default(); err != nil || p.PasswordDays != 90 || p.LockAfter != 10 || p.PasswordLength != 12 || p.InactiveDays != 90 {
		t.Errorf("got %+v, %v; want 90 days, 10 attempts, 12 characters, 90 days", p, err)
	}
	for _, text := range []string{"", "name: x\npasword_days: 1", "name: x\npassword_days: -1", "name: x\nexempt: [{account: a@b, rules: [sec.nothing], reason: x}]", "name: x\nexempt: [{account: a@b, rules: [sec.host]}]"} {
		if _, err := ReadPolicy([]byte(text)); err == nil {
			t.Errorf("%q: got no error, want one", text)
		}
	}
}

// TestExpand: what roles of roles and PUBLIC may do is what the account may do; a circle ends.
func TestExpand(t *testing.T) {
	on := &Server{}
	u := &Account{On: on, User: "u", Host: "%", Grants: []string{"GRANT USAGE ON *.* TO `u`@`%`", "GRANT `a``b`@`%` TO `u`@`%`"}}
	r1 := &Account{On: on, User: "a`b", Host: "%", Grants: []string{"GRANT `r2`@`%` TO `a``b`@`%`"}}
	r2 := &Account{On: on, User: "r2", Host: "%", Grants: []string{"GRANT FILE ON *.* TO `r2`@`%`", "GRANT `a``b`@`%` TO `r2`@`%`"}}
	public := &Account{On: on, User: "PUBLIC", Role: true, Grants: []string{"GRANT SELECT ON `s`.* TO `PUBLIC`"}}
	Expand([]*Account{u, r1, r2, public})
	if got := fmt.Sprint(u.Roles, u.roots(), u.Rights().Have("s", "", "SELECT")); got != "[a`b@% r2@%] [FILE] true" {
		t.Errorf("got %s, want [a`b@%% r2@%%] [FILE] true", got)
	}
}

// TestVariants: what people make of the user's name, in any case; the likeliest first.
func TestVariants(t *testing.T) {
	place := map[string]int{}
	for i, c := range variants("Mary") {
		if _, twice := place[c.word]; twice {
			t.Errorf("%s is tried twice", c.word)
		}
		place[c.word] = i + 1
	}
	for _, w := range []string{"Mary", "mary", "MARY", "mary123", "MARY123", "Mary2026", "yraM", "MaryMary"} {
		if place[w] == 0 {
			t.Errorf("%s is not tried", w)
		}
	}
	if place["Mary123"] > place["MARY123"] {
		t.Error("the name as it is comes after the name in capitals")
	}
}
