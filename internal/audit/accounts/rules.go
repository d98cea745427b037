package accounts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// rules are all that is held against an account, in the order of reports.
var rules = []rule{
	{"sec.no_password", "has a password", "whoever reaches the server is in", fleet.SeverityCritical, noPassword},
	{"sec.anonymous", "has a name", "any name is let in, and takes precedence over named accounts of wider hosts", fleet.SeverityCritical, anonymous},
	{"sec.weak_password", "has no password of the lists", "such a password is found within minutes by whoever tries", fleet.SeverityCritical, weakPassword},
	{"sec.shared_password", "has a password of its own", "who knows one of them knows all", fleet.SeverityWarning, sharedPassword},
	{"sec.super_remote", "has no rights of root from elsewhere", "who gets this password from anywhere has the whole server", fleet.SeverityCritical, rootRemote},
	{"sec.super", "has no rights that amount to root", "each such account is another way to all data", fleet.SeverityInfo, rootLike},
	{"sec.weak_auth", "uses a plug-in that lasts", "its hashes are weak or newer servers do not know it", fleet.SeverityWarning, weakAuth},
	{"sec.host", "names its hosts", "a stolen password works from anywhere", fleet.SeverityWarning, wideHost},
	{"sec.tls", "has to use TLS", "password and data can be read or changed on their way", fleet.SeverityWarning, noTLS},
	{"sec.public", "PUBLIC has no rights", "what PUBLIC may, every account may", fleet.SeverityWarning, publicRights},
	{"sec.rights_unused", "uses the rights that it has", "a right that nobody needs serves only whoever breaks in", fleet.SeverityInfo, unusedRights},
	{"sec.differs", "is the same on all servers", "after a failover the account may do more, less or nothing", fleet.SeverityWarning, differs},
	{"pci.password_age", "its password is young enough", "a password that got out stays of use", fleet.SeverityWarning, passwordAge},
	{"pci.expiry", "its password has a term", "nothing reminds anybody to change it", fleet.SeverityInfo, expiry},
	{"pci.lockout", "is locked after wrong passwords", "passwords can be tried without end", fleet.SeverityWarning, lockout},
	{"pci.inactive", "is in use", "an account that nobody uses is watched by nobody", fleet.SeverityWarning, inactive},
	{"pci.password_length", "new passwords are long enough", "short passwords are found by trying", fleet.SeverityInfo, passwordLength},
	{"pci.first_use", "a password set by others is changed at first use", "who set it knows it", fleet.SeverityInfo, firstUse},
}

// keeps says why an account may be neither locked nor renamed nor dropped; "" if nothing that is known speaks against it.
func (a *Account) keeps() string {
	switch {
	case a.Definer > 0:
		return fmt.Sprintf("%s as this account", digits.Plural(a.Definer, "view, routine, trigger or event runs", "views, routines, triggers and events run"))
	case a.Replicates != "":
		return a.Replicates
	case a.Seen != nil && a.Seen.Now > 0:
		return digits.Counted(a.Seen.Now, "session") + " of it at this moment"
	case a.Definer < 0:
		return "it is not known whether views or programs run as this account"
	}
	return ""
}

// lock proposes to lock the account, unless something needs it.
func (a *Account) lock(o outcome, otherwise string) outcome {
	if why := a.keeps(); why != "" || !a.On.CanLock || a.User == "root" {
		if why != "" {
			otherwise += "; it is not to be locked: " + why
		}
		return o.by(otherwise)
	}
	return o.mend("ALTER USER "+a.Name()+" ACCOUNT LOCK", "ALTER USER "+a.Name()+" ACCOUNT UNLOCK", "whoever uses it is refused (error 3118 on MySQL, 4151 on MariaDB); sessions that are open go on").by(otherwise)
}

// rotate is the command that gives an account a new password; COMMAND is the reader's, which keeps it.
func (a *Account) rotate() string {
	switch {
	case a.HasSecond:
		return a.rotation() + " --discard, once all clients have the newer of its two passwords; then the same with --store"
	case len(a.Passwords()) > 1:
		return "remove those of its several passwords that nobody uses: ALTER USER " + a.Name() + " …"
	case !a.On.Dual && !a.On.Several:
		return a.rotation() + " --at-once --store 'COMMAND'"
	}
	return a.rotation() + " --store 'COMMAND'"
}

// replace is the same with a plug-in that lasts. Dual passwords are of one plug-in.
func (a *Account) replace() string {
	plugin := " --plugin " + a.On.BestPlugin
	switch {
	case a.HasSecond || len(a.Passwords()) > 1:
		return a.rotate()
	case !a.On.Several:
		return a.rotation() + plugin + " --at-once --store 'COMMAND'"
	}
	return a.rotation() + plugin + " --store 'COMMAND'"
}

// rotation is how both begin.
func (a *Account) rotation() string {
	return "risso accounts rotate " + fleet.ShellWord(a.Object()) + " " + a.On.Flags
}

// out reports whether nobody can log in as it.
func (a *Account) out() bool { return a.RoleLike() || a.Known && a.Locked }

func noPassword(a *Account, _ Policy, _ time.Time) outcome {
	switch {
	case a.RoleLike():
		return none()
	case !a.Known:
		return unknown("how it logs in could not be read")
	case !a.open():
		return passed("")
	case a.Locked:
		return passed("it has no password, and is locked")
	}
	return a.lock(failed("has no password", "the server keeps no password of it"), a.rotate())
}

func anonymous(a *Account, _ Policy, _ time.Time) outcome {
	if a.User != "" || a.Role {
		return passed("")
	}
	if a.out() {
		return passed("it has no name, and is locked")
	}
	return a.lock(failed("has no name", "any name that has no account of its own is let in from "+orAny(a.Host)), "drop it once nobody misses it")
}

func weakPassword(a *Account, _ Policy, _ time.Time) outcome {
	switch a.Guess.State {
	case GuessFound:
		return failed("has a password that anybody would try", a.Guess.How+", found after "+digits.Plural(a.Guess.Tried, "try", "tries")).by(a.rotate())
	case GuessNot:
		return passed(fmt.Sprintf("%s tried", digits.Plural(a.Guess.Tried, "word", "words")))
	case GuessUnfinished:
		return unknown(fmt.Sprintf("the time was over after %s (--budget)", digits.Plural(a.Guess.Tried, "word", "words")))
	case GuessNone:
		return none()
	}
	return unknown("its form could not be read, or is not one that is known")
}

func sharedPassword(a *Account, _ Policy, _ time.Time) outcome {
	switch {
	case len(a.SharedWith) > 0:
		return failed("has the same password as "+digits.Counted(len(a.SharedWith), "other account"), some(a.SharedWith)).by(a.rotate())
	case !a.Known:
		return unknown("its password could not be read")
	case !a.password():
		return none()
	case slices.ContainsFunc(a.Methods, Method.salted) && a.Guess.State != GuessFound:
		return unknown("salted: only passwords that are found can be compared")
	}
	return passed("")
}

// some is a list in words, cut after a few.
func some(list []string) string {
	const most = 5
	if len(list) > most {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
	}
	return strings.Join(list, ", ")
}

// rootRights are privileges by which one can get all others, and how. Sources: MySQL manual, "Privileges Provided by MySQL"; MariaDB
// documentation, "GRANT".
var rootRights = []struct{ name, how string }{
	{"ALL PRIVILEGES", "everything"},
	{"SUPER", "sets variables, ends sessions, makes objects that run as others"},
	{"CREATE USER", "makes accounts and changes their passwords"},
	{"GRANT OPTION", "gives what it has to others"},
	{"FILE", "reads and writes files of the server"},
	{"SET_USER_ID", "makes objects that run as others"}, {"SET_ANY_DEFINER", "makes objects that run as others"}, {"SET USER", "makes objects that run as others"},
	{"ROLE_ADMIN", "grants any role"},
	{"SYSTEM_VARIABLES_ADMIN", "sets variables"}, {"PERSIST_RO_VARIABLES_ADMIN", "sets variables for the next start"},
	{"BINLOG_ADMIN", "removes and writes binary logs"}, {"BINLOG REPLAY", "applies binary logs"}, {"REPLICATION_APPLIER", "applies binary logs"},
	{"CLONE_ADMIN", "replaces all data"},
	{"SYSTEM_USER", "changes other system accounts"},
}

// roots are the privileges of root that an account has, each with its words.
func (a *Account) roots() (list []string) {
	r := a.Rights()
	for _, x := range rootRights {
		if holds(a.Grants, x.name) && r.Have("", "", x.name) {
			list = append(list, x.name)
		}
	}
	for _, p := range []string{"INSERT", "UPDATE", "DELETE"} {
		if r.Have("mysql", "", p) && !r.Have("", "", p) {
			list = append(list, p+" on mysql.*")
		}
	}
	if slices.ContainsFunc(a.Grants, func(g string) bool { return strings.HasPrefix(g, "GRANT PROXY ON ") }) {
		list = append(list, "PROXY")
	}
	return list
}

// holds reports whether a privilege is named in a grant: ALL PRIVILEGES has all, and is told once.
func holds(grants []string, name string) bool {
	return slices.ContainsFunc(grants, func(g string) bool {
		return strings.Contains(g, name) && (strings.Contains(g, " ON *.* "))
	})
}

func rootRemote(a *Account, _ Policy, _ time.Time) outcome {
	list := a.roots()
	switch {
	case a.RoleLike() || a.local() || a.out():
		return none()
	case len(list) == 0 || len(list) == 1 && list[0] == "PROXY":
		return passed("")
	}
	o := failed("may do what root may, and logs in from "+orAny(a.Host), some(list)+how(list))
	if !a.wildcard() {
		o = o.as(fleet.SeverityWarning)
	}
	return a.narrow(o)
}

func orAny(host string) string {
	if host == "%" || host == "" {
		return "anywhere"
	}
	return host
}

// how says what the first of these privileges allows.
func how(list []string) string {
	for _, x := range rootRights {
		if x.name == list[0] {
			return ": " + x.how
		}
	}
	return ""
}

func rootLike(a *Account, _ Policy, _ time.Time) outcome {
	list := a.roots()
	if len(list) == 0 {
		return passed("")
	}
	if a.RoleLike() {
		return none()
	}
	o := failed("has rights that amount to root", some(list)+how(list))
	if len(a.Roles) > 0 {
		o.words += "; by its roles, too: " + some(a.Roles)
	}
	return o.by("REVOKE what it does not need; sec.rights_unused names what was not used")
}

func weakAuth(a *Account, p Policy, _ time.Time) outcome {
	if a.RoleLike() {
		return none()
	}
	if !a.Known {
		return unknown("how it logs in could not be read")
	}
	for _, m := range a.Methods {
		if !slices.Contains(p.OldPlugins, m.Plugin) {
			continue
		}
		o := failed("logs in by "+m.Plugin, "removed or deprecated in newer servers")
		if a.On.BestPlugin == "" || slices.Contains(p.OldPlugins, a.On.BestPlugin) {
			return o.as(fleet.SeverityInfo).by("this server has no better plug-in loaded")
		}
		return o.by(a.replace())
	}
	return passed(a.plugins())
}

func (a *Account) plugins() string {
	var list []string
	for _, m := range a.Methods {
		list = append(list, m.Plugin)
	}
	return strings.Join(list, " or ")
}

// narrow proposes the one host from which the account was seen.
func (a *Account) narrow(o outcome) outcome {
	switch why := a.keeps(); {
	case a.Role:
		return o
	case a.Seen == nil || len(a.Seen.Hosts) == 0:
		return o.by("name the hosts: RENAME USER " + a.Name() + " TO …; from where it logs in is not known")
	case len(a.Seen.Hosts) > 1:
		return o.by("make one account for each host, or a pattern that covers them; it was seen from " + some(a.Seen.Hosts))
	case a.Definer != 0 || a.Replicates != "":
		return o.by("name the host from which it was seen, " + a.Seen.Hosts[0] + "; renaming it would break something: " + why)
	}
	to := Account{User: a.User, Host: a.Seen.Hosts[0]}
	o.since = a.On.UsageSince
	return o.mend("RENAME USER "+a.Name()+" TO "+to.Name(), "RENAME USER "+to.Name()+" TO "+a.Name(), "logins from other hosts than "+to.Host+", from which alone it was seen since "+a.On.UsageSince.Format(time.DateOnly))
}

func wideHost(a *Account, _ Policy, _ time.Time) outcome {
	if a.RoleLike() || a.out() {
		return none()
	}
	if !a.wildcard() {
		return passed(a.Host)
	}
	o := failed("may log in from "+orAny(a.Host), "its host is "+orEmpty(a.Host))
	if a.Host != "%" && a.Host != "" {
		return o.as(fleet.SeverityInfo).by("a pattern of hosts: is each of them to be let in?")
	}
	return a.narrow(o)
}

func orEmpty(s string) string {
	if s == "" {
		return "empty"
	}
	return s
}

func noTLS(a *Account, p Policy, _ time.Time) outcome {
	switch {
	case !p.RequireTLS || a.RoleLike() || a.local() || a.out():
		return none()
	case a.On.SecureTransport:
		return passed("require_secure_transport is ON")
	case !a.Known:
		return unknown("whether it has to use TLS could not be read")
	case a.TLS:
		return passed("REQUIRE")
	}
	return failed("may log in without TLS", "it has no REQUIRE, and require_secure_transport is OFF").
		mend("ALTER USER "+a.Name()+" REQUIRE SSL", "ALTER USER "+a.Name()+" REQUIRE NONE", "clients that do not use TLS are refused at their next login")
}

func publicRights(a *Account, _ Policy, _ time.Time) outcome {
	if !a.Role || a.User != "PUBLIC" {
		return none()
	}
	for _, g := range a.Grants {
		if read, err := (sqltext.Dialect{ANSIQuotes: true}).ReadGrant(g); err == nil && read.Verb == "GRANT" && !strings.HasPrefix(g, "GRANT USAGE ") {
			return failed("has rights, and so has every account", g).by("REVOKE … FROM PUBLIC what not everybody needs")
		}
	}
	return passed("")
}

// kinds are the statements that use a privilege, as performance_schema names them: statement/sql/….
var kinds = []struct {
	privilege string
	events    []string
}{
	{"INSERT", []string{"insert", "insert_select", "replace", "replace_select", "load"}},
	{"UPDATE", []string{"update", "update_multi"}},
	{"DELETE", []string{"delete", "delete_multi", "replace", "replace_select"}},
	{"CREATE", []string{"create_table", "create_db"}},
	{"DROP", []string{"drop_table", "drop_db", "drop_view", "truncate"}},
	{"ALTER", []string{"alter_table"}},
	{"CREATE USER", []string{"create_user", "drop_user", "alter_user", "rename_user", "create_role", "drop_role", "revoke_all"}},
	{"SHUTDOWN", []string{"shutdown"}},
}

func unusedRights(a *Account, _ Policy, _ time.Time) outcome {
	if a.RoleLike() || a.out() {
		return none()
	}
	var have, unused []string
	r := a.Rights()
	for _, k := range kinds {
		if !anywhere(r, a.Grants, k.privilege) {
			continue
		}
		have = append(have, k.privilege)
		used := a.Seen != nil && slices.ContainsFunc(k.events, func(e string) bool { return a.Seen.Counts[e] > 0 })
		if !used {
			unused = append(unused, k.privilege)
		}
	}
	switch {
	case len(have) == 0:
		return passed("it has none of those that can be counted")
	case a.Seen == nil || a.Seen.Counts == nil:
		return unknown("nothing counts statements by account: performance_schema is off, or may not be read")
	case len(unused) == 0:
		return passed("")
	}
	o := failed("never used "+some(unused), "no such statement of user "+a.User+" since "+a.On.UsageSince.Format(time.DateTime)+"; what programs and views do for others is not counted")
	o.since = a.On.UsageSince
	return o.by("REVOKE what it does not need, once what was counted covers a whole business cycle")
}

// anywhere reports whether a privilege is held on something.
func anywhere(r mysql.Rights, grants []string, privilege string) bool {
	if r.Have("", "", privilege) {
		return true
	}
	for _, g := range grants {
		read, err := sqltext.Dialect{ANSIQuotes: true}.ReadGrant(g)
		if err == nil && read.Verb == "GRANT" && slices.ContainsFunc(read.Privileges, func(i sqltext.Ident) bool {
			return strings.EqualFold(i.Name, privilege) || strings.EqualFold(i.Name, "ALL PRIVILEGES") && privilege != "CREATE USER" && privilege != "SHUTDOWN"
		}) {
			return true
		}
	}
	return false
}

func differs(a *Account, _ Policy, _ time.Time) outcome {
	if len(a.Differs) == 0 {
		return passed("")
	}
	return failed("is not the same on all servers", strings.Join(a.Differs, "; ")).by("make it the same: which of them is right, a person knows")
}

// term is after how many days the server has the password changed; 0: never.
func (a *Account) term() int {
	if a.Lifetime != nil {
		return *a.Lifetime
	}
	return a.On.DefaultLifetime
}

func passwordAge(a *Account, p Policy, now time.Time) outcome {
	switch {
	case p.PasswordDays == 0 || a.RoleLike() || a.out():
		return none()
	case !a.Known:
		return unknown("when its password was changed could not be read")
	case !a.password():
		return none()
	case a.Expired:
		return passed("it has to be changed at the next login")
	case a.Changed == nil:
		return unknown("the server does not say when its password was changed")
	}
	days := int(now.Sub(*a.Changed) / (24 * time.Hour))
	words := fmt.Sprintf("changed on %s, %s ago", a.Changed.Format(time.DateOnly), digits.Plural(days, "day", "days"))
	if days <= p.PasswordDays {
		return passed(words)
	}
	o := failed(fmt.Sprintf("has a password that is %s old", digits.Plural(days, "day", "days")), words+fmt.Sprintf("; the policy allows %d", p.PasswordDays))
	o.since = *a.Changed
	return o.by(a.rotate())
}

func expiry(a *Account, p Policy, _ time.Time) outcome {
	switch {
	case p.PasswordDays == 0 || a.RoleLike() || a.out() || a.Known && !a.password():
		return none()
	case !a.Known:
		return unknown("its term could not be read")
	}
	if t := a.term(); t > 0 && t <= p.PasswordDays {
		return passed(digits.Counted(t, "day"))
	} else if t > 0 {
		return a.expire(failed(fmt.Sprintf("has a password with a term of %d days", t), fmt.Sprintf("the policy allows %d", p.PasswordDays)), p)
	}
	return a.expire(failed("has a password without a term", "no term of its own, and default_password_lifetime is 0, or PASSWORD EXPIRE NEVER"), p)
}

// expire proposes a term.
func (a *Account) expire(o outcome, p Policy) outcome {
	if !a.On.CanExpire {
		return o.by("this server knows no terms")
	}
	undo := "ALTER USER " + a.Name() + " PASSWORD EXPIRE DEFAULT"
	if a.Lifetime != nil {
		undo = "ALTER USER " + a.Name() + " PASSWORD EXPIRE NEVER"
		if *a.Lifetime > 0 {
			undo = fmt.Sprintf("ALTER USER %s PASSWORD EXPIRE INTERVAL %d DAY", a.Name(), *a.Lifetime)
		}
	}
	return o.mend(fmt.Sprintf("ALTER USER %s PASSWORD EXPIRE INTERVAL %d DAY", a.Name(), p.PasswordDays), undo, "when the term ends, and at once if the password is older, the server lets it do nothing but change its password: rotate it before")
}

func lockout(a *Account, p Policy, _ time.Time) outcome {
	switch {
	case p.LockAfter == 0 || a.RoleLike() || a.out():
		return none()
	case a.On.MostErrors > 0 && a.On.MostErrors <= p.LockAfter:
		return passed(fmt.Sprintf("max_password_errors is %d", a.On.MostErrors))
	case !a.Known:
		return unknown("its limit could not be read")
	case !a.password() && !a.open():
		return none()
	case a.Attempts > 0 && a.Attempts <= p.LockAfter && a.LockDays != 0:
		return passed(fmt.Sprintf("after %d wrong passwords", a.Attempts))
	}
	o := failed("is not locked after wrong passwords", fmt.Sprintf("no limit, or one above %d", p.LockAfter))
	if !a.On.CanLimit {
		return o.by(fmt.Sprintf("SET GLOBAL max_password_errors = %d, where the server has it: it holds for all accounts but those with SUPER", p.LockAfter))
	}
	undo := fmt.Sprintf("ALTER USER %s FAILED_LOGIN_ATTEMPTS %d PASSWORD_LOCK_TIME %s", a.Name(), a.Attempts, lockTime(a.LockDays))
	return o.mend(fmt.Sprintf("ALTER USER %s FAILED_LOGIN_ATTEMPTS %d PASSWORD_LOCK_TIME 1", a.Name(), p.LockAfter), undo,
		"whoever knows its name and reaches the server can lock it for a day by wrong passwords; a client with an old password does so by itself")
}

func lockTime(days int) string {
	if days < 0 {
		return "UNBOUNDED"
	}
	return fmt.Sprint(days)
}

func inactive(a *Account, p Policy, now time.Time) outcome {
	switch {
	case p.InactiveDays == 0 || a.RoleLike() || a.out():
		return none()
	case a.Seen == nil || a.On.UsageSince.IsZero():
		return unknown("nothing counts logins by account: performance_schema and userstat are off, or may not be read")
	case a.Seen.Logins > 0 || a.Seen.Now > 0:
		return passed(fmt.Sprintf("%s since %s (%s)", digits.Counted(a.Seen.Logins, "login"), a.On.UsageSince.Format(time.DateTime), a.On.UsageFrom))
	}
	days := int(now.Sub(a.On.UsageSince) / (24 * time.Hour))
	words := fmt.Sprintf("no login since %s, %s ago (%s)", a.On.UsageSince.Format(time.DateTime), digits.Plural(days, "day", "days"), a.On.UsageFrom)
	if days < p.InactiveDays {
		return unknown(words + "; before that it is not known")
	}
	o := failed(fmt.Sprintf("was not used for %d days", days), words)
	o.since = a.On.UsageSince
	return a.lock(o, "lock it, and drop it once nobody misses it")
}

func passwordLength(a *Account, p Policy, _ time.Time) outcome {
	switch {
	case p.PasswordLength == 0 || a.RoleLike() || a.out() || a.Known && !a.password():
		return none()
	case a.On.MinLength == nil:
		return unknown("how long passwords have to be could not be read")
	case *a.On.MinLength >= p.PasswordLength:
		return passed(fmt.Sprintf("at least %d", *a.On.MinLength))
	}
	o := failed(fmt.Sprintf("may get a password of %s", digits.Counted(*a.On.MinLength, "character")), fmt.Sprintf("the policy asks for %d", p.PasswordLength))
	if a.On.MinLengthSet == "" {
		return o.by("no component or plug-in that looks at new passwords is loaded (validate_password, simple_password_check)")
	}
	return o.mend(fmt.Sprintf("%s%d", a.On.MinLengthSet, p.PasswordLength), fmt.Sprintf("%s%d", a.On.MinLengthSet, *a.On.MinLength), "scripts that set shorter passwords are refused; passwords that are there stay")
}

func firstUse(a *Account, p Policy, _ time.Time) outcome {
	switch {
	case !p.FirstUse || a.RoleLike() || a.out() || a.Known && !a.password():
		return none()
	case a.Known && a.Expired:
		return passed("it has to be changed at the next login")
	}
	return unknown("servers do not keep who set a password")
}
