package state

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/rissodb/risso/internal/fleet"
)

const good = "correct horse battery staple"

// addUser makes a user whose password is good.
func addUser(t *testing.T, s *Store, name string, role Role, only ...string) {
	t.Helper()
	if _, err := s.AddUser(t.Context(), User{Name: name, Role: role, Only: only}, good); err != nil {
		t.Fatal(err)
	}
}

// signIn begins a session of a user.
func signIn(t *testing.T, s *Store, name string) (secret string) {
	t.Helper()
	_, secret, err := s.SignIn(t.Context(), name, good, "10.0.0.1", "")
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// clockOf gives a store a clock that the test moves.
func clockOf(s *Store) *time.Time {
	now := time.Now()
	s.now = func() time.Time { return now }
	return &now
}

func TestUsers(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	addUser(t, s, " Ann ", RoleFailover, "group=shop*")
	if asked, err := s.TokensAsked(ctx); err != nil || !asked {
		t.Errorf("asked after the first user: got %v, %v; want true", asked, err)
	}
	if any, err := s.AnyAccess(ctx); err != nil || !any {
		t.Errorf("a user is no access: %v, %v", any, err)
	}
	secret := signIn(t, s, "ANN")
	a, err := s.VerifySession(ctx, secret)
	if err != nil || a.Name != "ann" || a.Role != RoleFailover || a.Bars(Thing{OfGroup, "crm"}) == nil || a.Bars(Thing{OfGroup, "shop1"}) != nil || a.Via != "password" {
		t.Errorf("got %+v, %v; want ann, who may fail over shop* alone", a, err)
	}
	list, err := s.Users(ctx)
	if err != nil || len(list) != 1 || list[0].Sessions != 1 || list[0].Seen.IsZero() {
		t.Errorf("got %+v, %v; want one with a session", list, err)
	}
	for _, wrong := range []string{"", " ", "a b", "root on db1", "-x", "a\nb", strings.Repeat("x", 65), "ann"} {
		if _, err := s.AddUser(ctx, User{Name: wrong, Role: RoleLook}, good); err == nil {
			t.Errorf("the name %q was taken", wrong)
		}
	}
	if err := s.SetRole(ctx, "ann", RoleLook, nil); err != nil {
		t.Fatal(err)
	}
	if a, err := s.VerifySession(ctx, secret); err != nil || a.Role != RoleLook || a.Limited() {
		t.Errorf("with another role: got %+v, %v; want look, without limits", a, err)
	}
	if err := s.SetRole(ctx, "bob", RoleLook, nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("the role of nobody: got %v, want ErrNotFound", err)
	}
	for _, f := range []string{s.Path(), s.Path() + "-wal"} {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(good)) || bytes.Contains(b, []byte(secret)) {
			t.Errorf("a password or the secret of a session stands in %s", f)
		}
	}
	if err := s.RemoveUser(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.VerifySession(ctx, secret); !errors.Is(err, ErrNotFound) {
		t.Errorf("the session of a user who was removed: got %v, want ErrNotFound", err)
	}
}

// TestUnknownUserCostsAsMuch: whether a user exists is not told by the answer, nor by the work behind it.
func TestUnknownUserCostsAsMuch(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	addUser(t, s, "ann", RoleLook)
	var done []string
	s.match = func(kept, password string) (bool, bool) {
		c, _, sum, err := readHash(kept)
		if err != nil || c != costNow() || len(sum) != hashBytes {
			t.Errorf("compared with %q at %+v: %v; want today's cost", kept, c, err)
		}
		done = append(done, password)
		return matches(kept, password)
	}
	var said []string
	for _, name := range []string{"ann", "bob", "no such name", ""} {
		_, _, err := s.SignIn(ctx, name, "wrong horse battery", "10.0.0.1", "")
		if !errors.Is(err, ErrPassword) {
			t.Errorf("%q: got %v, want ErrPassword", name, err)
			continue
		}
		said = append(said, err.Error())
	}
	if len(done) != 4 || len(said) != 4 || said[0] != said[1] || said[1] != said[2] {
		t.Errorf("compared %d times, said %q; want 4 times, the same", len(done), said)
	}
}

// TestSessionsEnd: by time, though the clock goes back, by what happens to their user or token, and by hand.
func TestSessionsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(s *Store, now *time.Time, secret string) error
		want bool
	}{
		"at once":                  {func(*Store, *time.Time, string) error { return nil }, true},
		"half a day of quiet":      {func(_ *Store, now *time.Time, _ string) error { *now = now.Add(12 * time.Hour); return nil }, false},
		"the clock goes back":      {func(_ *Store, now *time.Time, _ string) error { *now = now.Add(-time.Minute); return nil }, true},
		"the clock goes far back":  {func(_ *Store, now *time.Time, _ string) error { *now = now.Add(-24 * time.Hour); return nil }, false},
		"the password was changed": {func(s *Store, _ *time.Time, _ string) error { return s.SetPassword(t.Context(), "ann", good+"r", "") }, false},
		"the user was removed":     {func(s *Store, _ *time.Time, _ string) error { return s.RemoveUser(t.Context(), "ann") }, false},
		"signed out everywhere": {func(s *Store, _ *time.Time, _ string) error {
			_, err := s.SignOutEverywhere(t.Context(), "ann", "")
			return err
		}, false},
		"others signed out": {func(s *Store, _ *time.Time, _ string) error {
			_, err := s.SignOutEverywhere(t.Context(), "bob", "")
			return err
		}, true},
		"a month, always in use": {func(s *Store, now *time.Time, secret string) error {
			for range 60 {
				if _, err := s.VerifySession(t.Context(), secret); err != nil {
					return err
				}
				*now = now.Add(12*time.Hour - time.Second)
			}
			*now = now.Add(2 * time.Minute)
			return nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			now := clockOf(s)
			addUser(t, s, "ann", RoleLook)
			secret := signIn(t, s, "ann")
			was := *now
			if err := c.do(s, now, secret); err != nil {
				t.Fatal(err)
			}
			_, err := s.VerifySession(t.Context(), secret)
			if (err == nil) != c.want {
				t.Errorf("got %v, want valid %v", err, c.want)
			}
			*now = was.Add(time.Minute)
			if _, err := s.VerifySession(t.Context(), secret); (err == nil) != c.want {
				t.Errorf("when the clock is as before: got %v, want valid %v", err, c.want)
			}
		})
	}
}

// TestTokensEnd: a token that has expired stays so, and with it what was signed in with it; a user's token never may more than he.
func TestTokensEnd(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	now := clockOf(s)
	addUser(t, s, "ann", RoleChange, "server=db*")
	tok, secret, err := s.AddToken(ctx, Token{Name: "ci", Role: RoleAdmin, Only: Only{"server=db1"}, User: "ann", Expires: now.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	a, session, err := s.SignInByToken(ctx, secret, "10.0.0.1")
	if err != nil || a.Name != "ann" || a.Role != RoleChange || a.Via != "token ci" || a.Bars(Thing{OfServer, "db2"}) == nil || a.Bars(Thing{OfServer, "db1"}) != nil {
		t.Errorf("got %+v, %v; want ann, who may change db1", a, err)
	}
	for _, wrong := range []Token{{Name: "x", Role: RoleLook, User: "bob"}, {Name: "ann", Role: RoleLook}, {Name: "x", Role: RoleLook, Expires: now.Add(-time.Second)}, {Name: "a\nb", Role: RoleLook}} {
		if _, _, err := s.AddToken(ctx, wrong); err == nil {
			t.Errorf("%+v was made", wrong)
		}
	}
	if _, err := s.AddUser(ctx, User{Name: "ci", Role: RoleLook}, good); err != nil {
		t.Errorf("a user called as another user's token: %v", err)
	}
	valid := func(when string, want bool) {
		t.Helper()
		_, e1 := s.VerifyToken(ctx, secret)
		_, e2 := s.VerifySession(ctx, session)
		if (e1 == nil) != want || (e2 == nil) != want {
			t.Errorf("%s: token %v, session %v; want valid %v", when, e1, e2, want)
		}
	}
	valid("before its end", true)
	*now = now.Add(time.Hour)
	valid("at its end", false)
	*now = now.Add(-time.Hour)
	valid("when the clock goes back", false)
	if list, err := s.Tokens(ctx); err != nil || len(list) != 1 || list[0].ID != tok.ID || !list[0].Expired(*now) {
		t.Errorf("got %+v, %v; want it expired", list, err)
	}
	_, second, err := s.AddToken(ctx, Token{Name: "second", Role: RoleLook, User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	_, session, err = s.SignInByToken(ctx, second, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RevokeToken(ctx, "second"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.VerifySession(ctx, session); !errors.Is(err, ErrNotFound) {
		t.Errorf("the session of a revoked token: got %v, want ErrNotFound", err)
	}
}

// TestLastAdmin: others are not left without anybody who may manage them.
func TestLastAdmin(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	addUser(t, s, "ann", RoleAdmin)
	addUser(t, s, "bob", RoleLook)
	for what, err := range map[string]error{"removed": s.RemoveUser(ctx, "ann"), "lowered": s.SetRole(ctx, "ann", RoleFailover, nil)} {
		if !errors.Is(err, ErrLastAdmin) {
			t.Errorf("%s: got %v, want ErrLastAdmin", what, err)
		}
	}
	if err := s.SetRole(ctx, "bob", RoleAdmin, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveUser(ctx, "ann"); err != nil {
		t.Errorf("one of two: %v", err)
	}
	if err := s.RemoveUser(ctx, "bob"); err != nil {
		t.Errorf("the last user of all: %v", err)
	}
	if asked, err := s.TokensAsked(ctx); err != nil || !asked {
		t.Errorf("asked after the last was removed: got %v, %v; want true", asked, err)
	}
}

// TestPasswordRules: length counts, and what everybody takes is refused; nothing else is.
func TestPasswordRules(t *testing.T) {
	for password, want := range map[string]bool{
		good: true, "elevenchars": false, "twelve chars": true, "ééééééééé wörter": true, "🐬🐳🐋🦈🐟🐠🐡🦭🦐🦑🐙🦀": true, "aaaaaaaaaaaa": false, "abababababab": false, "123456789012": false, "password1234": false,
		"Password123!": false, "qwertyuiop12": false, "ann-ann-ann1234": false, "Administrator1": false, strings.Repeat("word ", 25) + "end": true, strings.Repeat("word ", 26): false, "a\x00bcdefghijklm": false,
		"\xff\xfe twelve chars": false, "83920175640183746501": true, "   spaces at both ends   ": true,
	} {
		if err := CheckPassword("ann", password); (err == nil) != want {
			t.Errorf("%q: got %v, want accepted %v", password, err, want)
		} else if err != nil && strings.Contains(err.Error(), password) {
			t.Errorf("the error says the password: %v", err)
		}
	}
	kept := hashPassword(good)
	for password, want := range map[string]bool{good: true, good + " ": false, strings.ToUpper(good): false, "": false} {
		if ok, current := matches(kept, password); ok != want || !current {
			t.Errorf("%q: got %v, %v; want %v, true", password, ok, current, want)
		}
	}
	for _, odd := range []string{"", "x", "$argon2id$v=19$m=0,t=0,p=0$$", "$argon2id$v=19$m=4294967295,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "$2y$10$abc"} {
		if ok, _ := matches(odd, ""); ok {
			t.Errorf("%q matches", odd)
		}
	}
}

// TestOldCostIsRaised: a password that was kept at less than today's cost is kept at today's after it was seen.
func TestOldCostIsRaised(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	addUser(t, s, "ann", RoleLook)
	const cheap = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHRzYWx0$"
	if _, err := s.write.ExecContext(ctx, `UPDATE users SET password=?`, cheap+cheapHash()); err != nil {
		t.Fatal(err)
	}
	signIn(t, s, "ann")
	u, err := s.user(ctx, "ann")
	if c, _, _, e := readHash(u.password); err != nil || e != nil || c != costNow() {
		t.Errorf("got %+v, %v, %v; want today's cost", c, err, e)
	}
	signIn(t, s, "ann")
}

// TestActions: who did what is kept with its event, refused or not, and goes with it.
func TestActions(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	ann := Actor{Name: "ann", Role: RoleLook, Via: "password", Address: "10.0.0.1", Call: "POST /api/x"}
	for _, o := range ActionOutcomes() {
		if _, err := s.AddAction(ctx, ActionBy(ann, o, fleet.Event{Instance: "db1", Subject: "x", Text: "x was started"})); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.AddEvents(ctx, fleet.Event{Kind: fleet.EventAction, New: "bob", Text: "before there were roles by bob"}, fleet.Event{Kind: fleet.EventNote, Text: "no action"},
		fleet.Event{Kind: fleet.EventAction, Subject: "token", New: "kim", Text: "the token kim was created by root, on this machine"}); err != nil {
		t.Fatal(err)
	}
	list, err := s.Actions(ctx, ActionQuery{})
	if err != nil || len(list) != 5 || list[0].Text != "x was started by ann" || list[0].Address != "10.0.0.1" || list[3].Who != "bob" || list[3].Outcome != ActionDone || list[4].Who != "" {
		t.Fatalf("got %+v, %v; want 5, one by bob, and the last by nobody that is known", list, err)
	}
	for _, c := range []struct {
		q    ActionQuery
		want int
	}{{ActionQuery{Outcome: ActionRefused}, 1}, {ActionQuery{Who: "ann"}, 3}, {ActionQuery{Who: "bob", Outcome: ActionDone}, 1}, {ActionQuery{From: time.Now().Add(time.Hour)}, 0}, {ActionQuery{To: time.Now().Add(time.Hour), Limit: 2}, 2}} {
		if list, err := s.Actions(ctx, c.q); err != nil || len(list) != c.want {
			t.Errorf("%+v: got %+v, %v; want %d", c.q, list, err, c.want)
		}
	}
	if _, err := s.PruneEvents(ctx, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	n := -1
	if err := s.read.QueryRowContext(ctx, `SELECT count(*) FROM actions`).Scan(&n); err != nil || n != 0 {
		t.Errorf("after their events were pruned: %d, %v; want 0", n, err)
	}
}

// cheapHash is of good, at the least cost.
func cheapHash() string {
	return base64.RawStdEncoding.EncodeToString(argon2.IDKey([]byte(good), []byte("saltsaltsalt"), 1, 8, 1, hashBytes))
}
