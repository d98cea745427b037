package state

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// TestRoles: roles are a ladder; a token does what it was made for and no more.
func TestRoles(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	for i, role := range Roles() {
		_, secret, err := s.CreateToken(ctx, string(role), role)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := s.VerifyToken(ctx, secret)
		if err != nil || tok.Role != role {
			t.Fatalf("got %+v, %v; want Role %v", tok, err, role)
		}
		for k, needed := range Roles() {
			if got := tok.Role.Allows(needed); got != (k <= i) {
				t.Errorf("%s allows %s: got %v, want %v", role, needed, got, k <= i)
			}
			if got := tok.Actor().Lacks(needed) == nil; got != (k <= i) {
				t.Errorf("%s lacks nothing for %s: got %v, want %v", role, needed, got, k <= i)
			}
		}
	}
	for _, role := range []Role{"root", "act", "LOOK", ""} {
		if _, _, err := s.CreateToken(ctx, "x", role); err == nil {
			t.Errorf("the role %q was taken, which there is not", role)
		}
	}
	if Role("").Allows(RoleLook) || Role("").Allows("") || RoleAdmin.Allows("") || Role("root").Allows(RoleLook) {
		t.Error("what is no role allows something, or is allowed")
	}
	if r, err := ParseRole("act"); err != nil || r != RoleChange {
		t.Errorf("the old word: got %v, %v; want RoleChange", r, err)
	}
}

// TestOnly: what access is limited to, and what is not read allows nothing.
func TestOnly(t *testing.T) {
	for _, c := range []struct {
		only       string
		kind, name string
		want       bool
	}{
		{"", OfServer, "db1", true}, {"group=shop*", OfGroup, "shop-eu", true}, {"group=shop*", OfGroup, "crm", false}, {"group=shop*", OfServer, "shop1", false},
		{"group=shop server=db1", OfServer, "db1", true}, {"group=shop server=db1", OfServer, "db10", false}, {"server=*", OfServer, "x", true}, {"server=*", OfGroup, "x", false},
	} {
		o, err := ParseOnly(strings.Fields(c.only))
		if err != nil || o.Allows(c.kind, c.name) != c.want {
			t.Errorf("%q on %s %s: got %v, %v; want %v", c.only, c.kind, c.name, o.Allows(c.kind, c.name), err, c.want)
		}
	}
	for _, wrong := range []string{"shop", "group=", "host=x", "=x", "GROUP=x"} {
		if _, err := ParseOnly([]string{wrong}); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
	a := Actor{Name: "ann", Role: RoleAdmin, Limits: []Only{{"group=shop*"}, {"server=db*", "group=shop-eu"}}}
	for _, c := range []struct {
		things []Thing
		want   bool
	}{{nil, false}, {[]Thing{{OfGroup, "shop-eu"}}, true}, {[]Thing{{OfGroup, "shop-us"}}, false}, {[]Thing{{OfServer, "db1"}}, false}, {[]Thing{{OfServer, "db1"}, {OfGroup, "shop-us"}}, true}} {
		if err := a.Bars(c.things...); (err == nil) != c.want {
			t.Errorf("two limits on %v: got %v, want allowed %v", c.things, err, c.want)
		}
	}
}

// TestTokensStayAskedFor: from the first token on, one is asked for; to revoke the last one opens nothing.
func TestTokensStayAskedFor(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	asked := func() bool {
		t.Helper()
		a, err := s.TokensAsked(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if asked() {
		t.Error("asked for before there was one")
	}
	if _, _, err := s.CreateToken(ctx, "a", RoleLook); err != nil || !asked() {
		t.Errorf("not asked for though there is one (%v)", err)
	}
	if err := s.RevokeToken(ctx, "a"); err != nil || !asked() {
		t.Errorf("not asked for any more after the last was revoked (%v)", err)
	}
	if err := s.ForgetTokens(ctx); err != nil || asked() {
		t.Errorf("asked for after all were forgotten (%v)", err)
	}
}

// TestUpgradeToRoles: tokens from before there were roles go on working, and may do what they could.
func TestUpgradeToRoles(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	_, secret, err := s.CreateToken(ctx, "old", RoleLook)
	if err != nil {
		t.Fatal(err)
	}
	path := s.Path()
	downgrade(t, s, 4)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := openStore(t, path)
	if tok, err := again.VerifyToken(ctx, secret); err != nil || tok.Role != RoleChange {
		t.Errorf("got %+v, %v; want Role RoleChange", tok, err)
	}
	if asked, err := again.TokensAsked(ctx); err != nil || !asked {
		t.Errorf("asked: got %v, %v; want asked true", asked, err)
	}
	if _, err := again.VerifyToken(ctx, secret+"x"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a wrong one: got %v, want ErrNotFound", err)
	}
}

// TestDamageKeepsTheDoorShut: it is unknown how many tokens were in a damaged file.
func TestDamageKeepsTheDoorShut(t *testing.T) {
	s := newStore(t)
	path := s.Path()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	again := openAnyway(t, path)
	if again.Damage() == nil {
		t.Fatal("the damage was not seen")
	}
	if asked, err := again.TokensAsked(t.Context()); err != nil || !asked {
		t.Errorf("asked: got %v, %v; want asked true", asked, err)
	}
}

// TestUpgradeFromAct: a token that might act before there were users may change now, and one that might look may look.
func TestUpgradeFromAct(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	secrets := map[Role]string{}
	for _, role := range []Role{RoleLook, RoleChange} {
		_, secret, err := s.CreateToken(ctx, "old "+string(role), role)
		if err != nil {
			t.Fatal(err)
		}
		secrets[role] = secret
	}
	path := s.Path()
	downgrade(t, s, 15)
	if _, err := s.write.ExecContext(ctx, `UPDATE tokens SET role='act' WHERE role='change'`); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := openStore(t, path)
	for role, secret := range secrets {
		if tok, err := again.VerifyToken(ctx, secret); err != nil || tok.Role != role || tok.Actor().Limited() || tok.Expired(time.Now()) {
			t.Errorf("got %+v, %v; want Role %v, without limit and end", tok, err, role)
		}
	}
	if _, err := again.write.ExecContext(ctx, `UPDATE tokens SET role='act'`); err != nil { // whoever writes the old word
		t.Fatal(err)
	}
	if tok, err := again.VerifyToken(ctx, secrets[RoleChange]); err != nil || tok.Role != RoleChange {
		t.Errorf("the old word in the file: got %+v, %v; want Role RoleChange", tok, err)
	}
}
