package state

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/pattern"
)

// User is somebody who signs in by a password.
type User struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	Only    Only      `json:"only"` // what he may change; none: everything
	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"` // the password
	Seen    time.Time `json:"seen"`    // when he last signed in; zero: never

	Tokens   int `json:"tokens"`
	Sessions int `json:"sessions"` // that have not ended

	password string
}

// Actor is a user who signed in.
func (u User) Actor() Actor {
	return Actor{Name: u.Name, User: u.Name, Role: u.Role, Limits: limitsOf(u.Only), Via: "password"}
}

var userForm = pattern.Lazy(`^[a-z0-9][a-z0-9._@+-]{0,63}$`)

// UserName is a user's name as it is kept: Ann and ann are one.
func UserName(text string) (string, error) {
	name := strings.ToLower(strings.TrimSpace(text))
	if !userForm().MatchString(name) {
		return "", fault.Usagef("%q: a user's name has letters, digits and . _ @ + -, and begins with a letter or digit, up to 64", text)
	}
	return name, nil
}

// AddUser makes a user. From the first on, everybody is asked who he is.
func (s *Store) AddUser(ctx context.Context, u User, password string) (User, error) {
	name, err := UserName(u.Name)
	if err != nil {
		return User{}, err
	}
	if u.Role.rank() == 0 {
		return User{}, fmt.Errorf("add user: there is no role %q: look, change, failover or admin", u.Role)
	}
	if err := CheckPassword(name, password); err != nil {
		return User{}, err
	}
	only, err := u.Only.stored()
	if err != nil {
		return User{}, err
	}
	now := s.now().UTC().Truncate(time.Microsecond)
	u = User{Name: name, Role: u.Role, Only: u.Only, Created: now, Changed: now}
	kept := hashPassword(password)
	err = s.change(ctx, "add user "+name, func(ctx context.Context, tx *sql.Tx) error {
		if n, err := count(ctx, tx, `SELECT count(*) FROM users WHERE name=?`, name); err != nil || n > 0 {
			return orTaken(err, "user", name)
		}
		// Events would not tell the two apart.
		if n, err := count(ctx, tx, `SELECT count(*) FROM tokens WHERE name=? AND user=''`, name); err != nil || n > 0 {
			return fleet.WithRemedy(orTaken(err, "a token of a program", name), "choose another name, or revoke that token and make the user one: risso token create NAME --user "+name)
		}
		if _, err := tx.ExecContext(ctx, `UPDATE access SET asked=1`); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO users (name, role, only, password, created, changed, seen) VALUES (?,?,?,?,?,?,0)`, name, string(u.Role), only, kept, stamp(now), stamp(now))
		return err
	})
	if err != nil {
		return User{}, err
	}
	return u, nil
}

const userColumns = `SELECT name, role, only, password, created, changed, seen`

// Users lists the users by name.
func (s *Store) Users(ctx context.Context) ([]User, error) {
	now := s.now()
	return s.users(ctx, userColumns+`, (SELECT count(*) FROM tokens WHERE user = users.name AND ended = 0 AND (expires = 0 OR expires > ?1)),
		(SELECT count(*) FROM sessions WHERE user = users.name AND expires > ?1 AND seen > ?2) FROM users ORDER BY name`, stamp(now), stamp(now.Add(-sessionIdle)))
}

func (s *Store) users(ctx context.Context, query string, args ...any) (list []User, err error) {
	err = s.each(ctx, "read users", func(r *sql.Rows) error {
		var u User
		var created, changed, seen int64
		if err := r.Scan(&u.Name, &u.Role, &u.Only, &u.password, &created, &changed, &seen, &u.Tokens, &u.Sessions); err != nil {
			return err
		}
		u.Created, u.Changed, u.Seen = fromStamp(created), fromStamp(changed), fromStamp(seen)
		list = append(list, u)
		return nil
	}, query, args...)
	return list, err
}

// user reads one, without counting what he has; there is none if its Name is empty.
func (s *Store) user(ctx context.Context, name string) (User, error) {
	list, err := s.users(ctx, userColumns+`, 0, 0 FROM users WHERE name = ?`, name)
	if err != nil || len(list) == 0 {
		return User{}, err
	}
	return list[0], nil
}

// SetRole gives a user another role, and other limits. It holds from his next request on.
func (s *Store) SetRole(ctx context.Context, name string, role Role, limits Only) error {
	if role.rank() == 0 {
		return fmt.Errorf("there is no role %q: look, change, failover or admin", role)
	}
	only, err := limits.stored()
	if err != nil {
		return err
	}
	return s.change(ctx, "give user "+name+" the role "+string(role), func(ctx context.Context, tx *sql.Tx) error {
		if role != RoleAdmin {
			if err := leavesAdmin(ctx, tx, name); err != nil {
				return err
			}
		}
		return deleted(tx.ExecContext(ctx, `UPDATE users SET role=?, only=? WHERE name=?`, string(role), only, name))
	})
}

// RemoveUser takes a user away, with his tokens and sessions.
func (s *Store) RemoveUser(ctx context.Context, name string) error {
	return s.change(ctx, "remove user "+name, func(ctx context.Context, tx *sql.Tx) error {
		if err := leavesAdmin(ctx, tx, name); err != nil {
			return err
		}
		for _, query := range []string{`DELETE FROM sessions WHERE user=?`, `DELETE FROM tokens WHERE user=?`, `DELETE FROM devices WHERE user=?`} {
			if _, err := tx.ExecContext(ctx, query, name); err != nil {
				return err
			}
		}
		return deleted(tx.ExecContext(ctx, `DELETE FROM users WHERE name=?`, name))
	})
}

// leavesAdmin is ErrLastAdmin, if a user is an admin and, of others, none is.
func leavesAdmin(ctx context.Context, tx *sql.Tx, name string) error {
	var is, others, admins int
	err := tx.QueryRowContext(ctx, `SELECT coalesce(sum(name = ?1 AND role = ?2), 0), coalesce(sum(name != ?1), 0), coalesce(sum(name != ?1 AND role = ?2), 0) FROM users`,
		name, string(RoleAdmin)).Scan(&is, &others, &admins)
	if err == nil && is > 0 && others > 0 && admins == 0 {
		err = fleet.WithRemedy(fmt.Errorf("%s is %w", name, ErrLastAdmin), "give another one the role first: risso user role NAME admin")
	}
	return err
}

// SetPassword gives a user another password. All his sessions end, but for one, which may be none.
func (s *Store) SetPassword(ctx context.Context, name, password, except string) error {
	if err := CheckPassword(name, password); err != nil {
		return err
	}
	kept, now := hashPassword(password), s.now()
	return s.change(ctx, "change the password of "+name, func(ctx context.Context, tx *sql.Tx) error {
		if err := deleted(tx.ExecContext(ctx, `UPDATE users SET password=?, changed=? WHERE name=?`, kept, stamp(now), name)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE user=? AND token='' AND key!=?`, name, except)
		return err
	})
}
