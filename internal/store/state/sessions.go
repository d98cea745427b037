package state

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// How long a session lasts.
const (
	sessionIdle = 12 * time.Hour      // without a request
	sessionLife = 30 * 24 * time.Hour // in any case
	// clockSlack is how far a clock may go back before what was begun later is no longer believed.
	clockSlack = 5 * time.Minute
	// mostSessions of one user or token: the one that was quiet longest ends.
	mostSessions = 50
)

// decoy is a hash that no password has: a user that there is not costs as much time as a wrong password.
func decoy() string {
	salt, sum, c, b := make([]byte, saltBytes), make([]byte, hashBytes), costNow(), base64.RawStdEncoding
	rand.Read(salt)
	rand.Read(sum)
	return fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=%d$%s$%s", c.memory, c.passes, c.threads, b.EncodeToString(salt), b.EncodeToString(sum))
}

// CheckSignIn finds the user that a name and a password belong to; ErrPassword says that they do not, whichever is wrong, after the same time.
func (s *Store) CheckSignIn(ctx context.Context, name, password string) (User, error) {
	var u User
	var err error
	if name, err = UserName(name); err == nil {
		if u, err = s.user(ctx, name); err != nil {
			return User{}, err
		}
	}
	kept := u.password
	if u.Name == "" {
		kept = decoy()
	}
	ok, current := s.match(kept, password)
	if !ok || u.Name == "" {
		return User{}, ErrPassword
	}
	if !current {
		again := hashPassword(password)
		s.noteRow(ctx, "keep the password at today's cost", `UPDATE users SET password=? WHERE name=? AND password=?`, again, u.Name, kept)
		if now, err := s.user(ctx, u.Name); err == nil && now.password == again {
			u.password = again
		}
	}
	return u, nil
}

// SignIn begins a session of a user and a password, and returns its secret, which the browser keeps: the store has its SHA-256. device is what the browser is
// known by from then on; it may be empty.
func (s *Store) SignIn(ctx context.Context, name, password, address, device string) (Actor, string, error) {
	u, err := s.CheckSignIn(ctx, name, password)
	if err != nil {
		return Actor{}, "", err
	}
	key, secret, err := s.begin(ctx, u.Name, "", address, s.now().Add(sessionLife), func(ctx context.Context, tx *sql.Tx, now time.Time) error {
		// The password may have been changed, or the user removed, while it was compared.
		n, err := count(ctx, tx, `SELECT count(*) FROM users WHERE name=? AND password=?`, u.Name, u.password)
		if err == nil && n == 0 {
			err = ErrPassword
		}
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE users SET seen=? WHERE name=?`, stamp(now), u.Name); err != nil {
			return err
		}
		if device == "" {
			return nil
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO devices (user, device, last) VALUES (?,?,?) ON CONFLICT (user, device) DO UPDATE SET last=excluded.last`, u.Name, sessionKey(device), stamp(now))
		return err
	})
	if err != nil {
		return Actor{}, "", err
	}
	a := u.Actor()
	a.Address, a.Session = address, key
	return a, secret, nil
}

// SignInByToken begins a session of a token: the browser then need not keep the token itself.
func (s *Store) SignInByToken(ctx context.Context, token, address string) (Actor, string, error) {
	t, err := s.VerifyToken(ctx, token)
	if err != nil {
		return Actor{}, "", err
	}
	until := s.now().Add(sessionLife)
	if !t.Expires.IsZero() && t.Expires.Before(until) {
		until = t.Expires
	}
	key, secret, err := s.begin(ctx, t.User, t.ID, address, until, func(ctx context.Context, tx *sql.Tx, _ time.Time) error {
		n, err := count(ctx, tx, `SELECT count(*) FROM tokens WHERE id=?`, t.ID)
		if err == nil && n == 0 {
			err = ErrNotFound // revoked in the meantime
		}
		return err
	})
	if err != nil {
		return Actor{}, "", err
	}
	a := t.Actor()
	a.Address, a.Session = address, key
	return a, secret, nil
}

// begin stores a session. Those that have ended go, and of too many the quietest.
func (s *Store) begin(ctx context.Context, user, token, address string, until time.Time, first func(context.Context, *sql.Tx, time.Time) error) (key, secret string, err error) {
	b := make([]byte, 32)
	rand.Read(b)
	secret, now := base64.RawURLEncoding.EncodeToString(b), s.now()
	key = sessionKey(secret)
	err = s.change(ctx, "sign in", func(ctx context.Context, tx *sql.Tx) error {
		if err := first(ctx, tx, now); err != nil {
			return err
		}
		for _, x := range []struct {
			query string
			args  []any
		}{
			{`DELETE FROM sessions WHERE expires <= ? OR seen <= ?`, []any{stamp(now), stamp(now.Add(-sessionIdle))}},
			{`DELETE FROM devices WHERE last <= ?`, []any{stamp(now.AddDate(-1, 0, 0))}},
			{`DELETE FROM sessions WHERE key IN (SELECT key FROM sessions WHERE user=? AND token=? ORDER BY seen DESC, key LIMIT -1 OFFSET ?)`, []any{user, token, mostSessions - 1}},
			{`INSERT INTO sessions (key, user, token, created, seen, expires, address) VALUES (?,?,?,?,?,?,?)`, []any{key, user, token, stamp(now), stamp(now), stamp(until), address}},
		} {
			if _, err := tx.ExecContext(ctx, x.query, x.args...); err != nil {
				return err
			}
		}
		return nil
	})
	return key, secret, err
}

func sessionKey(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// VerifySession returns who signed in, with what he may do now; ErrNotFound if the session has ended, or there was none. The row is found by a hash, which
// tells nothing about the secret, however long it takes.
func (s *Store) VerifySession(ctx context.Context, secret string) (Actor, error) {
	var key, name, token, address string
	var created, seen, expires int64
	err := s.each(ctx, "verify session", func(r *sql.Rows) error {
		return r.Scan(&key, &name, &token, &created, &seen, &expires, &address)
	}, `SELECT key, user, token, created, seen, expires, address FROM sessions WHERE key=?`, sessionKey(secret))
	if err != nil {
		return Actor{}, err
	}
	if key == "" {
		return Actor{}, fmt.Errorf("session: %w", ErrNotFound)
	}
	now := s.now()
	if !now.Before(fromStamp(expires)) || now.Sub(fromStamp(seen)) >= sessionIdle || fromStamp(created).Sub(now) > clockSlack {
		s.noteRow(ctx, "end session", `DELETE FROM sessions WHERE key=?`, key) // a clock that goes back does not revive it
		return Actor{}, fmt.Errorf("session: %w", ErrNotFound)
	}
	a, err := s.whose(ctx, name, token)
	if err != nil {
		return Actor{}, err
	}
	if d := now.Sub(fromStamp(seen)); d > time.Minute || d < -clockSlack {
		s.noteRow(ctx, "note use of session", `UPDATE sessions SET seen=? WHERE key=?`, stamp(now), key)
	}
	a.Session = key
	return a, nil
}

// whose is who signed in, as he is now.
func (s *Store) whose(ctx context.Context, name, token string) (Actor, error) {
	if token != "" {
		t, _, err := s.token(ctx, token)
		switch {
		case err != nil:
			return Actor{}, err
		case t.ID == "":
			return Actor{}, fmt.Errorf("session: %w", ErrNotFound)
		}
		return t.Actor(), s.inUse(ctx, t)
	}
	u, err := s.user(ctx, name)
	if err == nil && u.Name == "" {
		err = fmt.Errorf("session: %w", ErrNotFound)
	}
	return u.Actor(), err
}

// SignOut ends a session; one that has ended is no error.
func (s *Store) SignOut(ctx context.Context, key string) error {
	err := s.remove(ctx, "sign out", `DELETE FROM sessions WHERE key=?`, key)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// SignOutEverywhere ends all sessions of whoever has one, those of his tokens too, and tells how many there were.
func (s *Store) SignOutEverywhere(ctx context.Context, user, key string) (n int64, err error) {
	err = s.change(ctx, "sign out everywhere", func(ctx context.Context, tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE key=?1 OR ?2 != '' AND user=?2 OR token != '' AND token=(SELECT token FROM sessions WHERE key=?1)`, key, user)
		if err != nil {
			return err
		}
		n, err = r.RowsAffected()
		return err
	})
	return n, err
}

// KnownDevice reports whether a user signed in with a browser in the last year: guesses of others do not keep him out there.
func (s *Store) KnownDevice(ctx context.Context, name, device string) (bool, error) {
	name, err := UserName(name)
	if err != nil {
		return false, nil
	}
	n := 0
	err = s.each(ctx, "look for a browser that is known", func(r *sql.Rows) error { return r.Scan(&n) }, `SELECT count(*) FROM devices WHERE user=? AND device=?`, name, sessionKey(device))
	return n > 0, err
}
