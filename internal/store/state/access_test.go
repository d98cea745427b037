package state

import (
	"errors"
	"os"
	"testing"
)

// TestRoles: a token does what it was made for and no more.
func TestRoles(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	for _, role := range []Role{RoleLook, RoleAct} {
		_, secret, err := s.CreateToken(ctx, string(role), role)
		if err != nil {
			t.Fatal(err)
		}
		if tok, err := s.VerifyToken(ctx, secret); err != nil || tok.Role != role || !tok.Role.Allows(RoleLook) || tok.Role.Allows(RoleAct) != (role == RoleAct) {
			t.Errorf("got %+v, %v; want Role %v, Role.Allows(RoleLook) true, Role.Allows(RoleAct) %v", tok, err, role, role == RoleAct)
		}
	}
	if _, _, err := s.CreateToken(ctx, "x", "root"); err == nil {
		t.Error("a role that there is not was taken")
	}
	if Role("").Allows(RoleLook) || Role("").Allows("") {
		t.Error("no role allows something")
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
	if tok, err := again.VerifyToken(ctx, secret); err != nil || tok.Role != RoleAct {
		t.Errorf("got %+v, %v; want Role RoleAct", tok, err)
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
	again := openStore(t, path)
	if again.Damage() == nil {
		t.Fatal("the damage was not seen")
	}
	if asked, err := again.TokensAsked(t.Context()); err != nil || !asked {
		t.Errorf("asked: got %v, %v; want asked true", asked, err)
	}
}
