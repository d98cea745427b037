package define

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sqltext"
)

// Secret is what a server keeps of a password. It is not shown: neither by fmt nor in JSON.
type Secret string

// String hides it.
func (Secret) String() string { return "***" }

// GoString hides it from %#v.
func (Secret) GoString() string { return "***" }

// MarshalText hides it.
func (Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

// Login is an account, and how one logs in to it.
type Login struct {
	User, Host string
	Role       bool
	Ways       []Way // of which one is enough; on MySQL one
	Locked     bool
	Expired    bool      // the password has to be changed before anything else
	Changed    time.Time // when the password was set last; zero: the server does not say
	Lifetime   int       // days after which it expires; 0: never; -1: as default_password_lifetime says
	TLS        bool      // it demands an encrypted connection
	Attempts   int       // wrong passwords in a row that lock it; 0: any number; -1: the server cannot limit them by account
	Second     bool      // it has a second password (RETAIN CURRENT PASSWORD)
}

// Way is one way to log in.
type Way struct {
	Plugin string
	Hash   Secret
}

// Name is user@host.
func (l Login) Name() string {
	if l.Role && l.Host == "" {
		return l.User
	}
	return l.User + "@" + l.Host
}

// Quoted is the account as statements have it.
func (l Login) Quoted() string { return mysql.Literal(l.User) + "@" + mysql.Literal(l.Host) }

// Logins reads all accounts but those of the server itself. It needs SELECT on mysql.*.
func Logins(ctx context.Context, s *mysql.Stream, server mysql.Server) ([]Login, error) {
	read := loginsOfUser
	if server.MariaDB() {
		read = loginsOfPriv
	}
	list, err := read(ctx, s, server)
	if server.MariaDB() && mysql.ErrorNumber(err) == errno.NoSuchTable { // before 10.4
		list, err = loginsOfUser(ctx, s, server)
	}
	if err != nil {
		return nil, fmt.Errorf("list the accounts: %w", err)
	}
	return slices.DeleteFunc(list, func(l Login) bool {
		return slices.Contains(systemAccounts, l.User) || l.Role && l.User == "PUBLIC"
	}), nil
}

// loginsOfUser reads mysql.user, whose columns differ between versions (MySQL manual, "Grant Tables").
func loginsOfUser(ctx context.Context, s *mysql.Stream, server mysql.Server) ([]Login, error) {
	rows, err := s.QueryMaps(ctx, "SELECT /* risso: accounts */ * FROM mysql.user ORDER BY User, Host")
	if err != nil {
		return nil, err
	}
	var list []Login
	for _, r := range rows {
		l := Login{User: r["User"], Host: r["Host"], Role: r["is_role"] == "Y", Locked: r["account_locked"] == "Y", Expired: r["password_expired"] == "Y", Lifetime: -1, Attempts: -1, TLS: r["ssl_type"] != ""}
		l.Ways = []Way{{cmp.Or(r["plugin"], "mysql_native_password"), Secret(cmp.Or(r["authentication_string"], r["Password"]))}}
		l.Changed, _ = time.Parse(time.DateTime, r["password_last_changed"])
		if n, err := strconv.Atoi(r["password_lifetime"]); err == nil {
			l.Lifetime = n
		}
		var a struct {
			Locking struct {
				Attempts int `json:"failed_login_attempts"`
			} `json:"Password_locking"`
			Second string `json:"additional_password"`
		}
		if text := r["User_attributes"]; text != "" {
			if err := json.Unmarshal([]byte(text), &a); err != nil {
				return nil, fmt.Errorf("the attributes of %s: %w", mysql.QuoteAccount(r["User"]+"@"+r["Host"]), err)
			}
		}
		if l.Second = a.Second != ""; server.LimitsAttempts() {
			l.Attempts = a.Locking.Attempts
		}
		list = append(list, l)
	}
	return list, nil
}

// loginsOfPriv reads MariaDB's mysql.global_priv (MariaDB documentation, "mysql.global_priv Table").
func loginsOfPriv(ctx context.Context, s *mysql.Stream, _ mysql.Server) ([]Login, error) {
	rows, err := s.QueryMaps(ctx, "SELECT /* risso: accounts */ User, Host, Priv FROM mysql.global_priv ORDER BY User, Host")
	if err != nil {
		return nil, err
	}
	type way struct {
		Plugin string `json:"plugin"`
		Hash   string `json:"authentication_string"`
	}
	var list []Login
	for _, r := range rows {
		var p struct {
			way
			Or       []way  `json:"auth_or"`
			Role     bool   `json:"is_role"`
			Locked   bool   `json:"account_locked"`
			Changed  *int64 `json:"password_last_changed"`
			Lifetime *int   `json:"password_lifetime"`
			TLS      int    `json:"ssl_type"`
		}
		if err := json.Unmarshal([]byte(r["Priv"]), &p); err != nil {
			return nil, fmt.Errorf("what mysql.global_priv has of %s: %w", mysql.QuoteAccount(r["User"]+"@"+r["Host"]), err)
		}
		l := Login{User: r["User"], Host: r["Host"], Role: p.Role, Locked: p.Locked, Lifetime: -1, Attempts: -1, TLS: p.TLS > 0}
		for _, w := range p.Or {
			if w.Plugin != "" {
				l.Ways = append(l.Ways, Way{w.Plugin, Secret(w.Hash)})
				continue
			}
			l.Ways = append(l.Ways, Way{cmp.Or(p.Plugin, "mysql_native_password"), Secret(p.Hash)}) // an empty object stands for the first way
		}
		if p.Or == nil && !p.Role {
			l.Ways = []Way{{cmp.Or(p.Plugin, "mysql_native_password"), Secret(p.Hash)}}
		}
		if p.Changed != nil {
			if l.Expired = *p.Changed == 0; !l.Expired {
				l.Changed = time.Unix(*p.Changed, 0).UTC()
			}
		}
		if p.Lifetime != nil {
			l.Lifetime = *p.Lifetime
		}
		list = append(list, l)
	}
	return list, nil
}

// GrantsOf are the lines of SHOW GRANTS for an account, without what MariaDB says in them of passwords.
func GrantsOf(ctx context.Context, s *mysql.Stream, l Login) (lines []string, err error) {
	name := l.Quoted()
	if l.Role && l.Host == "" {
		name = mysql.Literal(l.User)
	}
	err = s.Query(ctx, "SHOW /* risso: accounts */ GRANTS FOR "+name, func(row [][]byte) error {
		lines = append(lines, withoutPassword(string(row[0])))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the grants of %s: %w", name, err)
	}
	return lines, nil
}

// withoutPassword is a line of SHOW GRANTS up to IDENTIFIED, and its end if that gives a privilege.
func withoutPassword(line string) string {
	for _, t := range (sqltext.Dialect{ANSIQuotes: true}).Tokens(line) {
		if t.Kind == sqltext.TokenWord && strings.EqualFold(t.Text, "IDENTIFIED") {
			end := ""
			if strings.HasSuffix(line, mysql.WithGrantOption) {
				end = mysql.WithGrantOption
			}
			return strings.TrimSpace(line[:t.Begin]) + end
		}
	}
	return line
}
