// Package accounts says what is wrong with the accounts of servers: accounts as they were read, a policy and the time go in, what holds of
// each rule comes out, with the statement that mends it, its undo and what it could break. It asks no server; its room read does.
package accounts

import (
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// Server is what is known of the server that an account is on.
type Server struct {
	Name    string `json:"server"`  // what it is called
	Version string `json:"version"` // flavour and version
	Flags   string `json:"-"`       // that name it to a command, as a shell takes them
	// Unread is what could not be read, why, and how to let it be read.
	Unread []fleet.Trouble `json:"unread"`
	// UsageSince is since when it is known which accounts logged in; zero: it is not known.
	UsageSince time.Time `json:"usage_since"`
	// UsageFrom says from where that is known.
	UsageFrom string `json:"usage_from"`
	// SecureTransport: it refuses connections without TLS, except over its socket.
	SecureTransport bool `json:"require_secure_transport"`
	// DefaultLifetime is how many days a password is valid that has no term of its own; 0: for ever.
	DefaultLifetime int `json:"default_password_lifetime"`
	// MostErrors is after how many wrong passwords any account is blocked; 0: never.
	MostErrors int `json:"max_password_errors"`
	// MinLength is how long a new password has to be; 0: as long as anybody likes; nil: not known.
	MinLength *int `json:"min_length"`
	// MinLengthSet is the statement that sets it, but for the number; "" if no plug-in looks at passwords.
	MinLengthSet string `json:"-"`

	// Mandatory are roles that every account has, as mandatory_roles lists them.
	Mandatory string `json:"-"`

	CanExpire  bool   `json:"-"` // accounts can have a term for their password
	CanLimit   bool   `json:"-"` // accounts can have a limit of wrong passwords
	CanLock    bool   `json:"-"`
	Dual       bool   `json:"-"` // an account can have two passwords
	Several    bool   `json:"-"` // an account can have several ways to log in
	Via        bool   `json:"-"` // these are said by IDENTIFIED VIA
	BestPlugin string `json:"-"` // for new passwords; "" if none better than the old ones is there
}

// Seen is what is known of an account's logins since Server.UsageSince.
type Seen struct {
	Logins int64    `json:"logins"` // since usage_since
	Now    int64    `json:"now"`    // sessions at this moment
	Hosts  []string `json:"hosts"`  // from where
	// Counts are how many statements of each kind ran, such as drop_table, by this user's name; nil: not known.
	Counts map[string]int64 `json:"-"`
}

// Account is one account of one server, as it was read.
type Account struct {
	On        *Server    `json:"-"`
	User      string     `json:"user"`                  // name
	Host      string     `json:"host"`                  // from which it may log in: a pattern
	Role      bool       `json:"role"`                  // nobody logs in as it
	System    bool       `json:"system"`                // made by the server itself, and not judged
	Known     bool       `json:"known"`                 // how it logs in could be read
	Methods   []Method   `json:"methods"`               // ways to log in, one of which is enough
	Second    Secret     `json:"-"`                     // MySQL: the older of two passwords
	HasSecond bool       `json:"second_password"`       // an older password is valid, too
	Locked    bool       `json:"locked"`                // nobody can log in as it
	Expired   bool       `json:"expired"`               // its password has to be changed at the next login
	Changed   *time.Time `json:"password_changed"`      // when the password was set; null: not known
	Lifetime  *int       `json:"password_lifetime"`     // days; 0: for ever; nil: as the server's default
	TLS       bool       `json:"requires_tls"`          // REQUIRE SSL or more
	Attempts  int        `json:"failed_login_attempts"` // wrong passwords until it is locked; 0: no limit
	LockDays  int        `json:"lock_days"`             // -1: until it is unlocked
	// Grants are lines of SHOW GRANTS: its own, then those of its roles and of PUBLIC.
	Grants     []string `json:"grants"`
	Own        int      `json:"-"`           // how many of them are its own
	Roles      []string `json:"roles"`       // that it was granted, and theirs
	Definer    int      `json:"definer_of"`  // views, routines, triggers and events that run as this account; -1: not known
	Replicates string   `json:"replicates"`  // how it is known that replicas log in as this account, in words; "": it is not known to
	Seen       *Seen    `json:"seen"`        // nil: not known
	Guess      Guess    `json:"guess"`       // what the test of its password said
	SharedWith []string `json:"shared_with"` // accounts that have the same password
	Differs    []string `json:"differs"`     // how it differs from the same account of other servers
}

// Name is the account as statements have it.
func (a *Account) Name() string {
	if a.Role && a.Host == "" {
		return mysql.Literal(a.User)
	}
	return mysql.Literal(a.User) + "@" + mysql.Literal(a.Host)
}

// Object is the account as findings name it: user@host.
func (a *Account) Object() string { return a.User + "@" + a.Host }

// local reports whether nobody from another machine can log in as it.
func (a *Account) local() bool {
	return a.Host == "localhost" || a.Host == "::1" || strings.HasPrefix(a.Host, "127.") && !strings.ContainsAny(a.Host, "%_")
}

// wildcard reports whether hosts that nobody named can log in as it.
func (a *Account) wildcard() bool {
	return strings.ContainsAny(a.Host, "%_") || a.Host == "" && !a.Role
}

// password reports whether it logs in with a password that the server keeps.
func (a *Account) password() bool {
	return slices.ContainsFunc(a.Methods, func(m Method) bool { return m.Secret != "" && slices.Contains(passwordPlugins, m.Plugin) })
}

// open reports whether one can log in without a password.
func (a *Account) open() bool {
	return slices.ContainsFunc(a.Methods, func(m Method) bool { return m.Secret == "" && slices.Contains(passwordPlugins, m.Plugin) })
}

// RoleLike reports whether nobody logs in as it: roles, and on MySQL accounts that are made as such.
func (a *Account) RoleLike() bool { return a.Role || a.Locked && a.Expired && a.open() }

// Rights are what it may do with all its roles active.
func (a *Account) Rights() mysql.Rights { return mysql.RightsOf(a.Grants) }

// mandatory are the names of roles that every account has.
func (s *Server) mandatory() (list []string) {
	if s == nil {
		return nil
	}
	code := sqltext.Tokens(s.Mandatory)
	from := 0
	for _, t := range code {
		if s.Mandatory[t.Begin:t.End] == "," {
			list = append(list, strings.TrimSpace(s.Mandatory[from:t.Begin]))
			from = t.End
		}
	}
	return append(list, strings.TrimSpace(s.Mandatory[from:]))
}

// Expand appends to the grants of each account those of its roles, and their roles', of mandatory roles, and of PUBLIC.
func Expand(list []*Account) {
	byName := map[string]*Account{}
	own := map[*Account][]string{}
	for _, a := range list {
		own[a] = slices.Clone(a.Grants)
		a.Own = len(a.Grants)
		byName[a.Object()] = a
		if a.Role {
			byName[a.User], byName[a.User+"@"] = a, a
		}
	}
	for _, a := range list {
		seen := map[*Account]bool{a: true}
		var add func(names []string)
		add = func(names []string) {
			for _, quoted := range names {
				name := plainName(quoted)
				r := byName[name]
				if r == nil {
					r = byName[name+"@%"]
				}
				if r == nil || seen[r] {
					continue
				}
				seen[r] = true
				a.Roles = append(a.Roles, name)
				a.Grants = append(a.Grants, own[r]...)
				add(mysql.RightsOf(own[r]).Roles)
			}
		}
		add(mysql.RightsOf(own[a]).Roles)
		if !a.RoleLike() && !a.System {
			add(a.On.mandatory())
		}
		if p := byName["PUBLIC"]; p != nil && p.Role && !a.Role && p != a {
			a.Grants = append(a.Grants, own[p]...)
		}
	}
}

// plainName is a role as SHOW GRANTS writes it, `r`@`%`, without the quotes.
func plainName(quoted string) string {
	var out strings.Builder
	for quoted != "" {
		q := quoted[0]
		if q != '`' && q != '\'' && q != '"' {
			out.WriteByte(q)
			quoted = quoted[1:]
			continue
		}
		quoted = quoted[1:]
		for quoted != "" {
			i := strings.IndexByte(quoted, q)
			if i < 0 {
				out.WriteString(quoted)
				return out.String()
			}
			out.WriteString(quoted[:i])
			quoted = quoted[i+1:]
			if quoted == "" || quoted[0] != q {
				break
			}
			out.WriteByte(q)
			quoted = quoted[1:]
		}
	}
	return out.String()
}

// Takes reports whether a client on a host could be let in by the account's host; an address with a mask is taken for one that does.
func (a *Account) Takes(host string) bool {
	return strings.Contains(a.Host, "/") || a.Host == "" || a.Host == host || a.Host == "localhost" && host == "" || sqltext.Like(strings.ToLower(a.Host), strings.ToLower(host))
}

// AskedBy are the flags by which a command asks a server: an account and an address, without the password.
func AskedBy(t mysql.Target) string {
	network := "tcp"
	if t.Socket() != "" {
		network = "unix"
	}
	return "--dsn " + fleet.ShellWord(t.User()+"@"+network+"("+t.Address()+")/")
}
