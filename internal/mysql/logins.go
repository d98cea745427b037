package mysql

import (
	"slices"

	"github.com/rissodb/risso/internal/fleet"
)

// ExpiresPasswords reports whether an account can have a term for its password. Sources: MySQL manual, "Password Management"; MariaDB
// documentation, "User Password Expiry".
func (s Server) ExpiresPasswords() bool { return s.AtLeast(50706, 100403) }

// LocksAccounts reports whether an account can be locked.
func (s Server) LocksAccounts() bool { return s.AtLeast(50706, 100402) }

// LimitsLogins reports whether an account can have its own limit of wrong passwords: FAILED_LOGIN_ATTEMPTS. MariaDB has one for all.
func (s Server) LimitsLogins() bool { return s.atLeast(80019) }

// DualPasswords reports whether an account can have an old password beside the new one: RETAIN CURRENT PASSWORD.
func (s Server) DualPasswords() bool { return s.atLeast(80014) }

// CountsLogins reports whether userstat can count logins by user.
func (s Server) CountsLogins() bool { return s.MariaDB() }

// BestLogin is the plug-in for new passwords, of those that the server has loaded; "" if it has only old ones.
func (s Server) BestLogin(loaded []string) string {
	for _, p := range []string{"caching_sha2_password", "ed25519"} {
		if slices.Contains(loaded, p) && (p != "caching_sha2_password" || s.AtLeast(80004, fleet.Never)) {
			return p
		}
	}
	return ""
}

// SetSecrets is the statement that makes an account log in with stored forms of passwords. With more than one any of them does, where
// SeveralLogins says so; the first is tried first.
func (s Server) SetSecrets(account string, logins ...[2]string) string {
	text := "ALTER USER /* risso: accounts rotate */ " + account
	if !s.MariaDB() {
		return text + " IDENTIFIED WITH " + Literal(logins[0][0]) + " AS " + Literal(logins[0][1])
	}
	for i, l := range logins {
		word := " OR "
		if i == 0 {
			word = " IDENTIFIED VIA "
		}
		text += word + l[0]
		if l[1] != "" {
			text += " USING " + Literal(l[1])
		}
	}
	return text
}
