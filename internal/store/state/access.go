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

	"golang.org/x/crypto/argon2"
)

// Token is an access token as it is listed; the secret is told once, when it is made.
type Token struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Created  time.Time `json:"created"`
	LastUsed time.Time `json:"last_used"` // within a minute; zero: never
}

// tokenPrefix lets people and scanners of leaked secrets know what they look at.
const tokenPrefix = "risso_"

// CreateToken makes a token and returns its secret, which is stored nowhere: only
// its SHA-256 is. That is enough for 256 random bits, which cannot be guessed.
func (s *Store) CreateToken(ctx context.Context, name string) (Token, string, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return Token{}, "", errors.New("create token: give it a name, such as who or what will use it")
	}
	id, secret := make([]byte, 4), make([]byte, 32)
	rand.Read(id) // crypto/rand never fails: it ends the program instead
	rand.Read(secret)
	t := Token{ID: hex.EncodeToString(id), Name: name, Created: time.Now().UTC().Truncate(time.Microsecond)}
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
		_, err := tx.ExecContext(ctx, `INSERT INTO tokens (id, name, hash, created, last_used) VALUES (?,?,?,?,0)`, t.ID, name, hash[:], stamp(t.Created))
		return err
	})
	if err != nil {
		return Token{}, "", err
	}
	return t, text, nil
}

// VerifyToken tells whose token a secret is; ErrNotFound when it is nobody's. The
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
		if err := r.Scan(&t.ID, &t.Name, &stored, &created, &used); err != nil {
			return err
		}
		t.Created, t.LastUsed = fromStamp(created), fromStamp(used)
		return nil
	}, `SELECT id, name, hash, created, last_used FROM tokens WHERE id=?`, id)
	if err != nil {
		return Token{}, err
	}
	if subtle.ConstantTimeCompare(hash[:], stored) != 1 || t.ID == "" {
		return Token{}, fmt.Errorf("token: %w", ErrNotFound)
	}
	if now := time.Now(); now.Sub(t.LastUsed) > time.Minute {
		// Who may look must not depend on room on the disk: a failure costs only the note.
		_ = s.change(ctx, "note use of token", func(ctx context.Context, tx *sql.Tx) error {
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
		if err := r.Scan(&t.ID, &t.Name, &created, &used); err != nil {
			return err
		}
		t.Created, t.LastUsed = fromStamp(created), fromStamp(used)
		out = append(out, t)
		return nil
	}, `SELECT id, name, created, last_used FROM tokens ORDER BY name`)
	return out, err
}

// RevokeToken makes a token worthless at once. It is known by its id or name.
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

// AnyAccess tells whether there is any token or user. A server that listens beyond
// loopback must not start without one.
func (s *Store) AnyAccess(ctx context.Context) (bool, error) {
	n := 0
	err := s.each(ctx, "look for access", func(r *sql.Rows) error { return r.Scan(&n) },
		`SELECT (SELECT count(*) FROM tokens) + (SELECT count(*) FROM users)`)
	return n > 0, err
}

// The cost of a password: Argon2id with 19 MiB and 2 passes, the OWASP password
// storage cheat sheet's smallest advice. The parameters stand in each hash, so that
// a later change leaves old ones good.
const (
	argonMemory  = 19 << 10 // KiB
	argonTime    = 2
	argonThreads = 1
	argonKey     = 32
	saltBytes    = 16
	minPassword  = 8
	maxPassword  = 1024 // bytes; nobody types more, and hashing has its price
)

// User is a person who may look, as listed.
type User struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
}

// SetPassword makes a user, or gives one a new password.
func (s *Store) SetPassword(ctx context.Context, name, password string) error {
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		return errors.New("set password: give the user a name")
	case len(password) < minPassword:
		return fmt.Errorf("set password: it needs at least %d characters", minPassword)
	case len(password) > maxPassword:
		return fmt.Errorf("set password: it has more than %d bytes", maxPassword)
	}
	salt := make([]byte, saltBytes)
	rand.Read(salt)
	key, err := s.hash(ctx, password, salt, argonTime, argonMemory, argonThreads)
	if err != nil {
		return fmt.Errorf("set password: %w", err)
	}
	b64 := base64.RawStdEncoding.EncodeToString
	text := fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads, b64(salt), b64(key))
	return s.change(ctx, "set password", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO users (name, hash, created) VALUES (?1,?2,?3) ON CONFLICT (name) DO UPDATE SET hash=?2`,
			name, text, stamp(time.Now()))
		return err
	})
}

// hash computes Argon2id, one at a time: a crowd that tries passwords must not
// take the memory of the machine.
func (s *Store) hash(ctx context.Context, password string, salt []byte, time, memory uint32, threads uint8) ([]byte, error) {
	select {
	case s.hashing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.hashing }()
	return argon2.IDKey([]byte(password), salt, time, memory, threads, argonKey), nil
}

// VerifyPassword returns nil for the right password and ErrNotFound for a wrong
// one or an unknown user; both take as long.
func (s *Store) VerifyPassword(ctx context.Context, name, password string) error {
	ctx, cancel := limit(ctx)
	defer cancel()
	if len(password) > maxPassword {
		return fmt.Errorf("user or password: %w", ErrNotFound)
	}
	text := ""
	err := s.each(ctx, "verify password", func(r *sql.Rows) error { return r.Scan(&text) }, `SELECT hash FROM users WHERE name=?`, strings.TrimSpace(name))
	if err != nil {
		return err
	}
	salt, want := make([]byte, saltBytes), make([]byte, argonKey)
	memory, passes, threads := uint32(argonMemory), uint32(argonTime), uint8(argonThreads)
	known := text != ""
	if known {
		if salt, want, memory, passes, threads, err = parseHash(text); err != nil {
			return fmt.Errorf("verify password of %s: %w", name, err)
		}
	}
	got, err := s.hash(ctx, password, salt, passes, memory, threads)
	if err != nil {
		return fmt.Errorf("verify password: %w", err)
	}
	if subtle.ConstantTimeCompare(got, want) != 1 || !known {
		return fmt.Errorf("user or password: %w", ErrNotFound)
	}
	return nil
}

// parseHash reads what SetPassword wrote.
func parseHash(text string) (salt, key []byte, memory, passes uint32, threads uint8, err error) {
	bad := errors.New("the stored hash is not understood; set the password again")
	p := strings.Split(text, "$")
	if len(p) != 6 || p[1] != "argon2id" || p[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return nil, nil, 0, 0, 0, bad
	}
	if n, e := fmt.Sscanf(p[3], "m=%d,t=%d,p=%d", &memory, &passes, &threads); n != 3 || e != nil || memory > 1<<20 || passes < 1 || passes > 64 || threads < 1 {
		return nil, nil, 0, 0, 0, bad
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(p[4])
	key, err2 := base64.RawStdEncoding.DecodeString(p[5])
	if err1 != nil || err2 != nil || len(key) != argonKey {
		return nil, nil, 0, 0, 0, bad
	}
	return salt, key, memory, passes, threads, nil
}

// Users lists the users by name.
func (s *Store) Users(ctx context.Context) ([]User, error) {
	var out []User
	err := s.each(ctx, "list users", func(r *sql.Rows) error {
		var u User
		var created int64
		if err := r.Scan(&u.Name, &created); err != nil {
			return err
		}
		u.Created = fromStamp(created)
		out = append(out, u)
		return nil
	}, `SELECT name, created FROM users ORDER BY name`)
	return out, err
}

// RemoveUser takes a user's access away.
func (s *Store) RemoveUser(ctx context.Context, name string) error {
	return s.remove(ctx, "remove user "+name, `DELETE FROM users WHERE name=?`, name)
}
