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
)

// Role is what a token lets its bearer do.
type Role string

// The roles. RoleAct includes RoleLook.
const (
	RoleLook Role = "look" // read everything
	RoleAct  Role = "act"  // start and stop jobs, keep and delete results
)

// Allows reports whether this role includes another.
func (r Role) Allows(needed Role) bool { return r == RoleAct || r == needed && r == RoleLook }

// Token is an access token as it is listed; the secret is shown once, when it is made.
type Token struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Role     Role      `json:"role"`
	Created  time.Time `json:"created"`
	LastUsed time.Time `json:"last_used"` // within a minute; zero: never
}

// tokenPrefix lets people and scanners of leaked secrets know what they look at.
const tokenPrefix = "risso_"

// CreateToken makes a token and returns its secret, which is stored nowhere: only
// its SHA-256 is. That is enough for 256 random bits, which cannot be guessed.
func (s *Store) CreateToken(ctx context.Context, name string, role Role) (Token, string, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return Token{}, "", errors.New("create token: give it a name, such as that of its user")
	}
	if role != RoleLook && role != RoleAct {
		return Token{}, "", fmt.Errorf("create token: there is no role %q, only look and act", role)
	}
	id, secret := make([]byte, 4), make([]byte, 32)
	rand.Read(id) // crypto/rand never fails: it ends the program instead
	rand.Read(secret)
	t := Token{ID: hex.EncodeToString(id), Name: name, Role: role, Created: time.Now().UTC().Truncate(time.Microsecond)}
	text := tokenPrefix + t.ID + "_" + base64.RawURLEncoding.EncodeToString(secret)
	hash := sha256.Sum256([]byte(text))
	err := s.change(ctx, "create token", func(ctx context.Context, tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM tokens WHERE name=?`, name).Scan(&n); err != nil {
			return err
		}
		if n > 0 {
			return fmt.Errorf("token %q: %w", name, ErrExists)
		}
		if _, err := tx.ExecContext(ctx, `UPDATE access SET asked=1`); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO tokens (id, name, role, hash, created, last_used) VALUES (?,?,?,?,?,0)`, t.ID, name, string(role), hash[:], stamp(t.Created))
		return err
	})
	if err != nil {
		return Token{}, "", err
	}
	return t, text, nil
}

// VerifyToken returns whose token a secret is; ErrNotFound if it is no token. The
// id in it is public and finds the row; the hashes are compared in constant time.
func (s *Store) VerifyToken(ctx context.Context, secret string) (Token, error) {
	hash := sha256.Sum256([]byte(secret))
	var t Token
	stored := make([]byte, len(hash))
	rest, ok := strings.CutPrefix(secret, tokenPrefix)
	id, _, ok2 := strings.Cut(rest, "_")
	if !ok || !ok2 {
		return Token{}, fmt.Errorf("token: %w", ErrNotFound)
	}
	err := s.each(ctx, "verify token", func(r *sql.Rows) error {
		var created, used int64
		if err := r.Scan(&t.ID, &t.Name, &t.Role, &stored, &created, &used); err != nil {
			return err
		}
		t.Created, t.LastUsed = fromStamp(created), fromStamp(used)
		return nil
	}, `SELECT id, name, role, hash, created, last_used FROM tokens WHERE id=?`, id)
	if err != nil {
		return Token{}, err
	}
	if subtle.ConstantTimeCompare(hash[:], stored) != 1 || t.ID == "" {
		return Token{}, fmt.Errorf("token: %w", ErrNotFound)
	}
	if now := time.Now(); now.Sub(t.LastUsed) > time.Minute {
		// Who may look must not depend on room on the disk: a failure costs only the note.
		_ = s.note(ctx, "note use of token", func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE tokens SET last_used=? WHERE id=?`, stamp(now), t.ID)
			return err
		})
	}
	return t, nil
}

// Tokens lists the tokens by name.
func (s *Store) Tokens(ctx context.Context) ([]Token, error) {
	var out []Token
	err := s.each(ctx, "list tokens", func(r *sql.Rows) error {
		var t Token
		var created, used int64
		if err := r.Scan(&t.ID, &t.Name, &t.Role, &created, &used); err != nil {
			return err
		}
		t.Created, t.LastUsed = fromStamp(created), fromStamp(used)
		out = append(out, t)
		return nil
	}, `SELECT id, name, role, created, last_used FROM tokens ORDER BY name`)
	return out, err
}

// RevokeToken makes a token worthless immediately. It is known by its id or name.
func (s *Store) RevokeToken(ctx context.Context, idOrName string) error {
	return s.remove(ctx, "revoke token "+idOrName, `DELETE FROM tokens WHERE id=?1 OR name=?1`, idOrName)
}

func (s *Store) remove(ctx context.Context, what, query string, args ...any) error {
	return s.change(ctx, what, func(ctx context.Context, tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, query, args...)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return ErrNotFound
	})
}

// AnyAccess reports whether there is any token. A server that listens beyond
// loopback must not start without one.
func (s *Store) AnyAccess(ctx context.Context) (bool, error) {
	n := 0
	err := s.each(ctx, "look for access", func(r *sql.Rows) error { return r.Scan(&n) }, `SELECT count(*) FROM tokens`)
	return n > 0, err
}

// TokensAsked reports whether a token is asked for on loopback, too: since the first one
// was made, or a damaged file with an unknown number of them was set aside. To revoke the
// last token opens no door.
func (s *Store) TokensAsked(ctx context.Context) (bool, error) {
	asked := false
	err := s.each(ctx, "find out whether tokens are required", func(r *sql.Rows) error { return r.Scan(&asked) }, `SELECT asked FROM access`)
	return asked, err
}

// ForgetTokens takes all tokens away and asks for none on loopback any more.
func (s *Store) ForgetTokens(ctx context.Context) error {
	return s.change(ctx, "forget tokens", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM tokens; UPDATE access SET asked=0`)
		return err
	})
}

// askAlways asks for tokens from now on.
func (s *Store) askAlways(ctx context.Context) error {
	return s.change(ctx, "require tokens", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE access SET asked=1`)
		return err
	})
}
