// Package accounts judges the accounts of a server: empty and weak passwords, too many privileges, rules of a policy such as PCI-DSS. It is
// pure but for the time that trying passwords takes; Read asks the server. Hashes stay within it.
package accounts

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// Server is what was read of a server's accounts.
type Server struct {
	mysql.Server
	Now       time.Time
	Uptime    time.Duration
	Variables map[string]string
	Accounts  []Account
	Missing   []fleet.Trouble // what could not be read, so that nothing was looked for in it
}

// Account is one account.
type Account struct {
	define.Login
	Grants []string // as SHOW GRANTS has them; nil: they could not be read
	Seen   Seen     // whether it was used since the server was started
}

// Seen is whether an account was used.
type Seen int

// Whether an account was used since the server was started. Servers count by user, without the host that the account is for.
const (
	SeenUnknown Seen = iota
	SeenUsed
	SeenUnused
)

// Judgement is what is wrong with accounts.
type Judgement struct {
	Findings []fleet.Advice
	Missing  []fleet.Trouble
	Tried    int // accounts whose passwords were tried
}

// Judge looks at all accounts. Trying passwords ends with ctx; what was not tried then is said.
func Judge(ctx context.Context, s *Server, p Policy) Judgement {
	j := judge{s: s, p: p, out: Judgement{Missing: slices.Clone(s.Missing)}}
	for i := range s.Accounts {
		a := &s.Accounts[i]
		if a.Role {
			continue
		}
		j.anonymous(a)
		j.empty(a)
		j.oldPlugin(a)
		j.powerful(a)
		j.age(a)
		j.lockout(a)
		j.unused(a)
	}
	j.shared()
	j.weak(ctx)
	j.whole()
	rank(j.out.Findings)
	return j.out
}

// judge is one judgement while it is made.
type judge struct {
	s   *Server
	p   Policy
	out Judgement
}

// rank puts the worst first.
func rank(list []fleet.Advice) {
	slices.SortStableFunc(list, func(a, b fleet.Advice) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), strings.Compare(a.ID, b.ID), strings.Compare(a.Object, b.Object))
	})
}

// add notes a finding about an account.
func (j *judge) add(a *Account, f fleet.Advice) {
	f.Object = a.Name()
	f.Evidence = append(f.Evidence, "logs in by "+a.plugins())
	if a.Locked {
		f.Evidence = append(f.Evidence, "locked")
	}
	f.Sure = cmp.Or(f.Sure, fleet.Certain)
	j.out.Findings = append(j.out.Findings, f)
}

// plugins are the ways to log in, in words.
func (a *Account) plugins() string {
	var list []string
	for _, w := range a.Ways {
		list = append(list, w.Plugin)
	}
	return strings.Join(list, " or ")
}

// local reports whether the account is only for connections from the server's own machine.
func (a *Account) local() bool {
	ip := net.ParseIP(a.Host)
	return a.Host == "localhost" || ip != nil && ip.IsLoopback()
}

// lock is the statement that keeps anybody from logging in, with what takes it back; "" if the server has none. Whoever can make accounts,
// or asks here, is not locked: nobody else may be left to take it back.
func (j *judge) lock(a *Account) (statement, undo, effect string) {
	if !j.s.LocksAccounts() || a.Name() == j.s.Account || a.Grants == nil || mysql.RightsOf(a.Grants).Have("", "", "CREATE USER", "SUPER") {
		return "", "", ""
	}
	return "ALTER USER " + a.Quoted() + " ACCOUNT LOCK", "ALTER USER " + a.Quoted() + " ACCOUNT UNLOCK",
		"at once: nobody logs in by it from then on; sessions that are open, and programs and views that it has defined, go on"
}

// secret are ways to log in that ask for what the server keeps a hash of.
var secret = map[string]bool{"mysql_native_password": true, "mysql_old_password": true, "caching_sha2_password": true, "sha256_password": true, "ed25519": true, "parsec": true}

// anonymous finds accounts without a name.
func (j *judge) anonymous(a *Account) {
	if a.User != "" || a.Locked {
		return
	}
	f := fleet.Advice{ID: "sec.anonymous", Severity: fleet.SeverityWarning, What: "anybody may log in from " + a.Host + " under any name",
		Why: "an account without a name takes every name that no other account has, and also keeps named accounts for any host from logging in from there"}
	f.Statement, f.Undo, f.Effect = j.lock(a)
	f.Advice = "DROP USER " + a.Quoted() + " is what most want; it cannot be undone"
	j.add(a, f)
}

// empty finds accounts that need no password.
func (j *judge) empty(a *Account) {
	if a.Locked || !slices.ContainsFunc(a.Ways, func(w define.Way) bool { return secret[w.Plugin] && w.Hash == "" }) {
		return
	}
	f := fleet.Advice{ID: "sec.no_password", Severity: fleet.SeverityCritical, What: a.Name() + " has no password",
		Why: "whoever reaches the server logs in by it", Cost: fleet.AdviceCost{Risk: "anybody reads and changes what the account may"},
		Advice: "if somebody uses it, ALTER USER " + a.Quoted() + " IDENTIFIED BY a password, and give it to them, instead"}
	if a.local() {
		f.Severity, f.Why = fleet.SeverityWarning, "whoever has a login on the server's machine logs in by it"
	}
	f.Statement, f.Undo, f.Effect = j.lock(a)
	j.add(a, f)
}

// oldPlugin finds ways to log in that are given up.
func (j *judge) oldPlugin(a *Account) {
	for _, w := range a.Ways {
		why, severity := j.s.OldLogin(w.Plugin)
		if why == "" || a.Locked {
			continue
		}
		level := fleet.SeverityInfo
		if severity {
			level = fleet.SeverityWarning
		}
		j.add(a, fleet.Advice{ID: "sec.weak_auth", Severity: level, What: a.Name() + " logs in by " + w.Plugin, Why: why,
			Advice: "ALTER USER " + a.Quoted() + " " + j.s.NewLogin() + " with its password, after all its clients can; the hash cannot be converted"})
	}
}

// powers are privileges on all schemas that amount to all of them, or to the files of the server. Sources: MySQL manual, "Privileges Provided
// by MySQL"; MariaDB documentation, "GRANT".
var powers = []string{"SUPER", "FILE", "CREATE USER", "GRANT OPTION", "SYSTEM_USER", "ROLE_ADMIN", "SET_USER_ID", "SET_ANY_DEFINER", "SET USER", "SYSTEM_VARIABLES_ADMIN",
	"PERSIST_RO_VARIABLES_ADMIN", "SHUTDOWN"}

// powerful finds accounts that may do everything and log in from elsewhere.
func (j *judge) powerful(a *Account) {
	if a.local() || a.Locked || a.Grants == nil {
		return
	}
	r := mysql.RightsOf(a.Grants)
	var has []string
	for _, p := range powers {
		if r.Have("", "", p) {
			has = append(has, p)
		}
	}
	if len(has) == 0 && r.Have("mysql", "user", "INSERT", "UPDATE") {
		has = append(has, "changes of mysql.user")
	}
	if len(has) == 0 {
		return
	}
	if len(has) > 6 {
		has = append(has[:6], fmt.Sprintf("%d more", len(has)-6))
	}
	f := fleet.Advice{ID: "sec.super_remote", Severity: fleet.SeverityWarning, What: a.Name() + " may do what root may, and logs in over the network from " + hostWords(a.Host),
		Why: "its password, or a hole in a program that has it, is the whole server", Evidence: []string{"has " + strings.Join(has, ", ")},
		Advice: "RENAME USER " + a.Quoted() + " TO the host that it comes from, or REVOKE what it does not need"}
	if !strings.ContainsAny(a.Host, "%_") {
		f.Severity = fleet.SeverityInfo
	}
	j.add(a, f)
}

func hostWords(host string) string {
	if host == "%" || host == "" {
		return "anywhere"
	}
	return host
}

// age finds passwords that are older than the policy allows.
func (j *judge) age(a *Account) {
	if a.Changed.IsZero() || a.Locked || j.p.MaxAge == 0 || !slices.ContainsFunc(a.Ways, func(w define.Way) bool { return secret[w.Plugin] && w.Hash != "" }) {
		return
	}
	old := j.s.Now.Sub(a.Changed)
	if old <= time.Duration(j.p.MaxAge)*24*time.Hour {
		return
	}
	j.add(a, fleet.Advice{ID: "pci.password_age", Severity: fleet.SeverityWarning, Since: a.Changed.Add(time.Duration(j.p.MaxAge) * 24 * time.Hour),
		What: fmt.Sprintf("the password of %s was set %s days ago", a.Name(), digits.Thousands(int(old.Hours()/24))), Why: j.p.why("passwords change every " + strconv.Itoa(j.p.MaxAge) + " days"),
		Evidence: []string{"set " + a.Changed.Format(time.DateOnly)},
		Advice:   "ALTER USER " + a.Quoted() + " IDENTIFIED BY a new password" + j.s.KeepsPassword() + ", and give it to its clients"})
}

// lockout finds accounts that can be tried without limit, where a limit is the account's own.
func (j *judge) lockout(a *Account) {
	if a.Attempts < 0 || a.Attempts > 0 && a.Attempts <= j.p.Attempts || j.p.Attempts == 0 || a.Locked || a.local() {
		return
	}
	f := fleet.Advice{ID: "pci.lockout", Severity: fleet.SeverityInfo, What: "passwords of " + a.Name() + " can be tried without end",
		Why:       j.p.why(fmt.Sprintf("at most %d wrong passwords in a row", j.p.Attempts)),
		Statement: fmt.Sprintf("ALTER USER %s FAILED_LOGIN_ATTEMPTS %d PASSWORD_LOCK_TIME 1", a.Quoted(), j.p.Attempts),
		Undo:      fmt.Sprintf("ALTER USER %s FAILED_LOGIN_ATTEMPTS %d PASSWORD_LOCK_TIME 0", a.Quoted(), a.Attempts),
		Effect:    "at once: after so many wrong passwords in a row the account is locked for a day, or until ALTER USER … ACCOUNT UNLOCK; whoever knows its name can lock it"}
	if a.Attempts > 0 {
		f.What = fmt.Sprintf("%s is locked only after %d wrong passwords", a.Name(), a.Attempts)
		f.Undo = ""
	}
	j.add(a, f)
}

// unused finds accounts that nobody used for so long as the policy says.
func (j *judge) unused(a *Account) {
	if a.Seen != SeenUnused || a.Locked || j.p.Unused == 0 || j.s.Uptime < time.Duration(j.p.Unused)*24*time.Hour {
		return
	}
	since := j.s.Now.Add(-j.s.Uptime)
	f := fleet.Advice{ID: "sec.unused", Severity: fleet.SeverityInfo, Since: since, What: "nobody used " + a.Name() + " since the server was started",
		Why: j.p.why(fmt.Sprintf("accounts that nobody used for %d days are removed", j.p.Unused)), Evidence: []string{"started " + since.Format(time.DateOnly)}}
	f.Statement, f.Undo, f.Effect = j.lock(a)
	j.add(a, f)
}

// shared finds accounts with one password, where the server keeps it without a salt.
func (j *judge) shared() {
	by := map[define.Way][]*Account{}
	for i := range j.s.Accounts {
		a := &j.s.Accounts[i]
		for _, w := range a.Ways {
			if (w.Plugin == "mysql_native_password" || w.Plugin == "ed25519") && w.Hash != "" && !a.Locked {
				by[w] = append(by[w], a)
			}
		}
	}
	for _, list := range by {
		users := map[string]bool{}
		for _, a := range list {
			users[a.User] = true
		}
		if len(users) < 2 {
			continue // one user from several hosts
		}
		for _, a := range list {
			var others []string
			for _, b := range list {
				if b.User != a.User {
					others = append(others, b.Name())
				}
			}
			if len(others) > 5 {
				others = append(others[:5], fmt.Sprintf("%d more", len(others)-5))
			}
			j.add(a, fleet.Advice{ID: "sec.shared_password", Severity: fleet.SeverityWarning, What: a.Name() + " has the same password as " + strings.Join(others, ", "),
				Why: "whoever learns one learns all of them, and none can be changed alone", Advice: "give each its own password"})
		}
	}
}

// weak tries passwords, unsalted hashes first: they cost nothing.
func (j *judge) weak(ctx context.Context) {
	g := newGuesser(j.p.Passwords)
	var unknown, left []string
	order := slices.Clone(j.s.Accounts)
	slices.SortStableFunc(order, func(a, b Account) int { return cmp.Compare(salted(a), salted(b)) })
	for i := range order {
		a := &order[i]
		if a.Role || a.Locked {
			continue
		}
		tried := false
		for _, w := range a.Ways {
			if !secret[w.Plugin] || w.Hash == "" {
				continue
			}
			words, known, done := g.weak(ctx, a.User, w)
			switch {
			case !known:
				unknown = append(unknown, a.Name()+" ("+w.Plugin+")")
			case !done:
				left = append(left, a.Name())
			default:
				tried = true
			}
			if words != "" {
				j.add(a, fleet.Advice{ID: "sec.weak_password", Severity: fleet.SeverityCritical, What: "the password of " + a.Name() + " " + words,
					Why: "it is guessed in moments", Advice: "ALTER USER " + a.Quoted() + " IDENTIFIED BY a long random password" + j.s.KeepsPassword() + ", and give it to its clients"})
			}
		}
		if tried {
			j.out.Tried++
		}
	}
	if len(unknown) > 0 {
		j.out.Missing = append(j.out.Missing, fleet.Trouble{What: "weak passwords of " + strings.Join(some(unknown), ", "), Why: "passwords cannot be tried against what this plug-in keeps"})
	}
	if len(left) > 0 {
		j.out.Missing = append(j.out.Missing, fleet.Trouble{What: "weak passwords of " + strings.Join(some(left), ", "), Why: "the time for trying passwords was over", Remedy: "give it more: --budget"})
	}
}

func salted(a Account) int {
	n := 0
	for _, w := range a.Ways {
		if w.Plugin == "caching_sha2_password" || w.Plugin == "sha256_password" {
			n = 1
		}
	}
	return n
}

// some are the first of a list, and how many more there are.
func some(list []string) []string {
	const most = 10
	if len(list) <= most {
		return list
	}
	return append(slices.Clone(list[:most]), fmt.Sprintf("%d more", len(list)-most))
}

// whole looks at settings that are for all accounts.
func (j *judge) whole() {
	on := func(name string) bool { v := j.s.Variables[name]; return strings.EqualFold(v, "ON") || v == "1" }
	remote := slices.ContainsFunc(j.s.Accounts, func(a Account) bool { return !a.Role && !a.Locked && !a.local() && !a.TLS })
	if _, has := j.s.Variables["require_secure_transport"]; has && !on("require_secure_transport") && remote {
		f := fleet.Advice{ID: "sec.tls", Object: "require_secure_transport", Severity: fleet.SeverityInfo, Sure: fleet.Certain, What: "clients may connect without encryption", Evidence: []string{"require_secure_transport is OFF"},
			Why: "passwords of some plug-ins, and all rows, can be read on the way", Statement: "SET GLOBAL require_secure_transport = ON", Undo: "SET GLOBAL require_secure_transport = OFF",
			Effect: "at once, until the server is started again: new connections without TLS are refused, except over the socket"}
		j.out.Findings = append(j.out.Findings, f)
	}
	if v, err := strconv.Atoi(j.s.Variables["max_password_errors"]); err == nil && j.p.Attempts > 0 && v > j.p.Attempts {
		j.out.Findings = append(j.out.Findings, fleet.Advice{ID: "pci.lockout", Object: "max_password_errors", Severity: fleet.SeverityInfo, Sure: fleet.Certain,
			What: "an account is locked only after " + digits.Thousands(v) + " wrong passwords", Evidence: []string{"max_password_errors is " + strconv.Itoa(v)}, Why: j.p.why(fmt.Sprintf("at most %d wrong passwords in a row", j.p.Attempts)),
			Statement: fmt.Sprintf("SET GLOBAL max_password_errors = %d", j.p.Attempts), Undo: fmt.Sprintf("SET GLOBAL max_password_errors = %d", v),
			Effect: "at once, until the server is started again: after so many wrong passwords an account waits for FLUSH PRIVILEGES; accounts with SUPER never do"})
	}
}

// String is yes, no or unknown.
func (s Seen) String() string {
	switch s {
	case SeenUsed:
		return "yes"
	case SeenUnused:
		return "no"
	}
	return "unknown"
}
