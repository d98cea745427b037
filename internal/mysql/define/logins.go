package define

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// LoginMethod is one way for an account to log in.
type LoginMethod struct {
	Plugin string
	Hash   string // what the server stores of the password: never to be shown
}

// Login is how an account logs in.
type Login struct {
	User, Host      string
	Role            bool // MariaDB's; those of MySQL are accounts
	System          bool // made by the server itself
	Methods         []LoginMethod
	Second          string // MySQL: the hash of the password that is kept beside a new one; never to be shown
	Locked, Expired bool
	Changed         time.Time // the password; zero: not known
	Lifetime        *int      // days; 0: for ever; nil: as default_password_lifetime has it
	TLS             bool      // the account has to use it
	Attempts        int       // wrong passwords until it is locked; 0: no limit
	LockDays        int       // for how long; -1: until somebody unlocks it
}

// Logins reads how all accounts log in. It needs SELECT on the tables of accounts. Sources: MySQL manual, "Grant Tables"; MariaDB
// documentation, "mysql.global_priv Table".
func Logins(ctx context.Context, s *mysql.Stream, server mysql.Server) ([]Login, error) {
	statement, read := "SELECT /* risso: accounts */ * FROM mysql.user", loginOf
	switch {
	case server.AtLeast(fleet.Never, 100400):
		statement, read = "SELECT /* risso: accounts */ User, Host, Priv FROM mysql.global_priv", loginOfJSON
	case server.AtLeast(50706, fleet.Never):
		statement = "SELECT /* risso: accounts */ *, UNIX_TIMESTAMP(password_last_changed) AS risso_changed FROM mysql.user"
	}
	rows, err := s.QueryMaps(ctx, statement)
	if err != nil {
		return nil, fmt.Errorf("read how accounts log in: %w", err)
	}
	var list []Login
	for _, r := range rows {
		l, err := read(r)
		if err != nil {
			return nil, fmt.Errorf("read how %s logs in: %w", mysql.QuoteAccount(r["User"]+"@"+r["Host"]), err)
		}
		l.System = slices.Contains(systemAccounts, l.User)
		list = append(list, l)
	}
	return list, nil
}

func loginOf(r map[string]string) (Login, error) {
	l := Login{User: r["User"], Host: r["Host"], Role: r["is_role"] == "Y", Locked: r["account_locked"] == "Y", Expired: r["password_expired"] == "Y", TLS: r["ssl_type"] != ""}
	hash := r["authentication_string"]
	if hash == "" {
		hash = r["Password"]
	}
	l.Methods = []LoginMethod{{r["plugin"], hash}}
	if n, err := strconv.ParseFloat(r["risso_changed"], 64); err == nil && n > 0 {
		l.Changed = time.Unix(int64(n), 0).UTC()
	}
	if n, err := strconv.Atoi(r["password_lifetime"]); err == nil {
		l.Lifetime = &n
	}
	if r["User_attributes"] == "" {
		return l, nil
	}
	var a struct {
		Second  string `json:"additional_password"`
		Locking struct {
			Attempts int `json:"failed_login_attempts"`
			Days     int `json:"password_lock_time_days"`
		} `json:"Password_locking"`
	}
	if err := json.Unmarshal([]byte(r["User_attributes"]), &a); err != nil {
		return l, fmt.Errorf("its attributes are no JSON that is known: %w", err)
	}
	l.Second, l.Attempts, l.LockDays = a.Second, a.Locking.Attempts, a.Locking.Days
	return l, nil
}

func loginOfJSON(r map[string]string) (Login, error) {
	l := Login{User: r["User"], Host: r["Host"]}
	type method struct {
		Plugin string `json:"plugin"`
		Hash   string `json:"authentication_string"`
	}
	var p struct {
		method
		Or       []method `json:"auth_or"`
		Role     bool     `json:"is_role"`
		Locked   bool     `json:"account_locked"`
		Changed  *int64   `json:"password_last_changed"`
		Lifetime *int     `json:"password_lifetime"`
		TLS      int      `json:"ssl_type"`
	}
	if err := json.Unmarshal([]byte(r["Priv"]), &p); err != nil {
		return l, fmt.Errorf("its row is no JSON that is known: %w", err)
	}
	l.Role, l.Locked, l.TLS = p.Role, p.Locked, p.TLS > 0
	if p.Changed != nil && *p.Changed == 0 {
		l.Expired = true
	} else if p.Changed != nil {
		l.Changed = time.Unix(*p.Changed, 0).UTC()
	}
	if p.Lifetime != nil && *p.Lifetime >= 0 {
		l.Lifetime = p.Lifetime
	}
	if len(p.Or) == 0 {
		l.Methods = []LoginMethod{{p.Plugin, p.Hash}}
	}
	for _, m := range p.Or { // an empty one stands for that outside of the list
		if m == (method{}) {
			m = p.method
		}
		l.Methods = append(l.Methods, LoginMethod(m))
	}
	return l, nil
}
