package state

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/rissodb/risso/internal/fleet"
)

// Token is an access token as it is listed; the secret is shown once, when it is made.
type Token struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Role     Role      `json:"role"`
	Only     Only      `json:"only"` // what it may change; none: everything
	User     string    `json:"user"` // whose it is: it never may more than he; empty: a program's
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires"`   // zero: never
	LastUsed time.Time `json:"last_used"` // within a minute; zero: never

	ended     bool // it was seen to have expired
	ownerRole Role
	ownerOnly Only
}

// Expired reports whether a token has come to its end. One that was seen to have stays so, whatever the clock says later.
func (t Token) Expired(now time.Time) bool {
	return t.ended || !t.Expires.IsZero() && !now.Before(t.Expires)
}

// Actor is who acts with a token: its user, within what both may.
func (t Token) Actor() Actor {
	if t.User == "" {
		return Actor{Name: t.Name, Role: t.Role, Limits: limitsOf(t.Only), Via: "token"}
	}
	return Actor{Name: t.User, User: t.User, Role: lower(t.Role, t.ownerRole), Limits: limitsOf(t.Only, t.ownerOnly), Via: "token " + t.Name}
}

// tokenPrefix lets people and scanners of leaked secrets know what they look at.
const tokenPrefix = "risso_"

// CreateToken makes a token of a program that never expires.
func (s *Store) CreateToken(ctx context.Context, name string, role Role) (Token, string, error) {
	return s.AddToken(ctx, Token{Name: name, Role: role})
}

// AddToken makes a token and returns its secret, which is stored nowhere: only its SHA-256 is. That is enough for 256 random bits, which cannot be guessed.
func (s *Store) AddToken(ctx context.Context, t Token) (Token, string, error) {
	t.Name = strings.TrimSpace(t.Name)
	t.Created, t.LastUsed = s.now().UTC().Truncate(time.Microsecond), time.Time{}
	t.Expires = t.Expires.UTC().Truncate(time.Microsecond)
	switch {
	case t.Name == "":
		return Token{}, "", errors.New("create token: give it a name, such as that of its user")
	case strings.ContainsFunc(t.Name, unicode.IsControl):
		return Token{}, "", errors.New("create token: its name has characters that no line has")
	case t.Role.rank() == 0:
		return Token{}, "", fmt.Errorf("create token: there is no role %q: look, change, failover or admin", t.Role)
	case !t.Expires.IsZero() && !t.Expires.After(t.Created):
		return Token{}, "", errors.New("create token: it would have expired already")
	}
	only, err := t.Only.stored()
	if err != nil {
		return Token{}, "", err
	}
	id, secret := make([]byte, 4), make([]byte, 32)
	rand.Read(id) // crypto/rand never fails: it ends the program instead
	rand.Read(secret)
	t.ID = hex.EncodeToString(id)
	text := tokenPrefix + t.ID + "_" + base64.RawURLEncoding.EncodeToString(secret)
	hash := sha256.Sum256([]byte(text))
	err = s.change(ctx, "create token", func(ctx context.Context, tx *sql.Tx) error {
		if n, err := count(ctx, tx, `SELECT count(*) FROM tokens WHERE name=?`, t.Name); err != nil || n > 0 {
			return orTaken(err, "token", t.Name)
		}
		users, err := count(ctx, tx, `SELECT count(*) FROM users WHERE name=?`, map[bool]string{true: t.Name, false: t.User}[t.User == ""])
		switch {
		case err != nil:
			return err
		case t.User == "" && users > 0: // events would not tell the two apart
			return fleet.WithRemedy(fmt.Errorf("there is a user %s: %w", t.Name, ErrExists), "for a token of that user give it another name and --user "+t.Name)
		case t.User != "" && users == 0:
			return fmt.Errorf("user %s: %w", t.User, ErrNotFound)
		}
		if _, err := tx.ExecContext(ctx, `UPDATE access SET asked=1`); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO tokens (id, name, role, only, user, hash, created, expires, last_used) VALUES (?,?,?,?,?,?,?,?,0)`,
			t.ID, t.Name, string(t.Role), only, t.User, hash[:], stamp(t.Created), stamp(t.Expires))
		return err
	})
	if err != nil {
		return Token{}, "", err
	}
	return t, text, nil
}

// count reads one number.
func count(ctx context.Context, tx *sql.Tx, query string, args ...any) (n int, err error) {
	err = tx.QueryRowContext(ctx, query, args...).Scan(&n)
	return n, err
}

// orTaken is what went wrong, or else that a name is taken.
func orTaken(err error, what, name string) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%s %q: %w", what, name, ErrExists)
}

const tokenColumns = `SELECT t.id, t.name, t.role, t.only, t.user, t.hash, t.created, t.expires, t.ended, t.last_used, coalesce(u.role, ''), coalesce(u.only, '')
	FROM tokens t LEFT JOIN users u ON u.name = t.user `

// scanToken reads a row of tokenColumns, and the hash.
func scanToken(r *sql.Rows, hash *[]byte) (t Token, err error) {
	var created, expires, ended, used int64
	err = r.Scan(&t.ID, &t.Name, &t.Role, &t.Only, &t.User, hash, &created, &expires, &ended, &used, &t.ownerRole, &t.ownerOnly)
	t.Created, t.Expires, t.LastUsed, t.ended = fromStamp(created), fromStamp(expires), fromStamp(used), ended != 0
	return t, err
}

// VerifyToken returns whose token a secret is; ErrNotFound if it is no token, or one that has expired. The id in it is public and finds the row; the hashes
// are compared in constant time.
func (s *Store) VerifyToken(ctx context.Context, secret string) (Token, error) {
	hash := sha256.Sum256([]byte(secret))
	rest, ok := strings.CutPrefix(secret, tokenPrefix)
	id, _, ok2 := strings.Cut(rest, "_")
	if !ok || !ok2 {
		return Token{}, fmt.Errorf("token: %w", ErrNotFound)
	}
	t, stored, err := s.token(ctx, id)
	if err != nil {
		return Token{}, err
	}
	if subtle.ConstantTimeCompare(hash[:], stored) != 1 || t.ID == "" {
		return Token{}, fmt.Errorf("token: %w", ErrNotFound)
	}
	return t, s.inUse(ctx, t)
}

// token reads one by its id; there is none if its ID is empty.
func (s *Store) token(ctx context.Context, id string) (t Token, hash []byte, err error) {
	err = s.each(ctx, "verify token", func(r *sql.Rows) (err error) {
		t, err = scanToken(r, &hash)
		return err
	}, tokenColumns+`WHERE t.id=?`, id)
	return t, hash, err
}

// inUse notes the use of a token; ErrNotFound if it has expired.
func (s *Store) inUse(ctx context.Context, t Token) error {
	now := s.now()
	if t.Expired(now) {
		if !t.ended {
			s.noteRow(ctx, "end token", `UPDATE tokens SET ended=? WHERE id=?`, stamp(now), t.ID)
		}
		return fmt.Errorf("the token %s has expired: %w", t.Name, ErrNotFound)
	}
	if now.Sub(t.LastUsed) > time.Minute {
		s.noteRow(ctx, "note use of token", `UPDATE tokens SET last_used=? WHERE id=?`, stamp(now), t.ID)
	}
	return nil
}

// noteRow writes what is good to know. Who may look must not depend on room on the disk: a failure costs only the note.
func (s *Store) noteRow(ctx context.Context, what, query string, args ...any) {
	_ = s.note(ctx, what, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	})
}

// Tokens lists the tokens by name.
func (s *Store) Tokens(ctx context.Context) ([]Token, error) {
	var out []Token
	err := s.each(ctx, "list tokens", func(r *sql.Rows) error {
		t, err := scanToken(r, new([]byte))
		out = append(out, t)
		return err
	}, tokenColumns+`ORDER BY t.name`)
	return out, err
}

// RevokeToken makes a token, and whatever was signed in with it, worthless immediately. It is known by its id or name.
func (s *Store) RevokeToken(ctx context.Context, idOrName string) error {
	return s.change(ctx, "revoke token "+idOrName, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE token IN (SELECT id FROM tokens WHERE id=?1 OR name=?1)`, idOrName); err != nil {
			return err
		}
		return deleted(tx.ExecContext(ctx, `DELETE FROM tokens WHERE id=?1 OR name=?1`, idOrName))
	})
}

// deleted is ErrNotFound, if nothing was.
func deleted(r sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return ErrNotFound
}

func (s *Store) remove(ctx context.Context, what, query string, args ...any) error {
	return s.change(ctx, what, func(ctx context.Context, tx *sql.Tx) error {
		return deleted(tx.ExecContext(ctx, query, args...))
	})
}

// AnyAccess reports whether there is any user or token. A server that listens beyond
// loopback must not start without one.
func (s *Store) AnyAccess(ctx context.Context) (bool, error) {
	n := 0
	err := s.each(ctx, "look for access", func(r *sql.Rows) error { return r.Scan(&n) }, `SELECT (SELECT count(*) FROM tokens) + (SELECT count(*) FROM users)`)
	return n > 0, err
}

// TokensAsked reports whether a user or token is asked for on loopback, too: since the first one
// was made, or a damaged file with an unknown number of them was set aside. To revoke the
// last one opens no door.
func (s *Store) TokensAsked(ctx context.Context) (bool, error) {
	asked := false
	err := s.each(ctx, "find out whether tokens are required", func(r *sql.Rows) error { return r.Scan(&asked) }, `SELECT asked FROM access`)
	return asked, err
}

// ForgetTokens takes all tokens away, and asks for none on loopback any more unless there are users.
func (s *Store) ForgetTokens(ctx context.Context) error {
	return s.change(ctx, "forget tokens", func(ctx context.Context, tx *sql.Tx) error {
		for _, query := range []string{`DELETE FROM sessions WHERE token != ''`, `DELETE FROM tokens`, `UPDATE access SET asked = (SELECT count(*) > 0 FROM users)`} {
			if _, err := tx.ExecContext(ctx, query); err != nil {
				return err
			}
		}
		return nil
	})
}

// askAlways asks for tokens from now on.
func (s *Store) askAlways(ctx context.Context) error {
	return s.change(ctx, "require tokens", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE access SET asked=1`)
		return err
	})
}
