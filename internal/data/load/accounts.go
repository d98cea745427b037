package load

import (
	"context"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sqltext"
)

// account is a CREATE USER, or CREATE ROLE, of either flavour taken apart.
type account struct {
	name   string // as the statement has it
	ways   []way  // to log in; none: without a password
	tls    string // after REQUIRE
	limits string // after WITH
	expire string // after PASSWORD EXPIRE; "now" if nothing follows
	locked bool
	lost   []string // what only its flavour has, and is not the default
}

// way is a way to log in.
type way struct{ plugin, secret string } // the secret as a literal

// splitSQL returns the words of a statement; a quoted string, with what is attached to it, is one.
func splitSQL(s string) (list []string) {
	end := -1
	for _, t := range sqltext.Tokens(s) {
		if t.Begin == end {
			list[len(list)-1] += s[t.Begin:t.End]
		} else {
			list = append(list, s[t.Begin:t.End])
		}
		end = t.End
	}
	return list
}

// clauses are the words that begin a part of CREATE USER.
var clauses = []string{"IDENTIFIED", "REQUIRE", "WITH", "PASSWORD", "ACCOUNT", "FAILED_LOGIN_ATTEMPTS", "PASSWORD_LOCK_TIME", "ATTRIBUTE", "COMMENT", "AND"}

// parseAccount takes apart what SHOW CREATE USER says. Sources: MySQL manual and MariaDB documentation, "CREATE USER".
func parseAccount(create string) (account, bool) {
	words := splitSQL(create)
	if len(words) < 3 || words[0] != "CREATE" || words[1] != "USER" {
		return account{}, false
	}
	words = words[2:]
	if len(words) > 3 && words[0] == "IF" {
		words = words[3:]
	}
	a := account{name: words[0]}
	for i := 1; i < len(words); {
		end := i + 1
		for end < len(words) && (!slices.Contains(clauses, words[end]) || words[i] == "IDENTIFIED" && (words[end] == "WITH" || words[end] == "PASSWORD") || words[i] == "PASSWORD" && words[end] == "REQUIRE") {
			end++
		}
		a.clause(words[i], words[i+1:end])
		i = end
	}
	return a, true
}

// clause takes a part in.
func (a *account) clause(word string, rest []string) {
	text := strings.Join(rest, " ")
	first := ""
	if len(rest) > 0 {
		first = rest[0]
	}
	switch word {
	case "IDENTIFIED":
		a.identified(rest)
	case "REQUIRE":
		if text != "NONE" {
			a.tls = text
		}
	case "WITH":
		a.limits = text
	case "ACCOUNT":
		a.locked = first == "LOCK"
	case "PASSWORD":
		switch {
		case first == "EXPIRE" && len(rest) == 1:
			a.expire = "now"
		case first == "EXPIRE" && text != "EXPIRE DEFAULT":
			a.expire = strings.TrimPrefix(text, "EXPIRE ")
		case first != "EXPIRE" && !strings.HasSuffix(text, "DEFAULT"):
			a.lost = append(a.lost, "PASSWORD "+text)
		}
	case "FAILED_LOGIN_ATTEMPTS", "PASSWORD_LOCK_TIME", "ATTRIBUTE", "COMMENT":
		a.lost = append(a.lost, word)
	case "AND": // of REQUIRE
		a.tls += " AND " + text
	}
}

func (a *account) identified(rest []string) {
	if len(rest) >= 3 && rest[0] == "BY" && rest[1] == "PASSWORD" {
		a.ways = append(a.ways, way{"mysql_native_password", rest[2]})
		return
	}
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case "WITH", "VIA", "OR":
			if i+1 < len(rest) {
				a.ways = append(a.ways, way{plugin: strings.Trim(rest[i+1], "'`")})
				i++
			}
		case "AS", "USING":
			if i+1 < len(rest) && len(a.ways) > 0 {
				a.ways[len(a.ways)-1].secret = rest[i+1]
				i++
			}
		}
	}
}

// loginTwins are ways to log in that have another name in the other flavour.
var loginTwins = map[string]string{"auth_socket": "unix_socket", "unix_socket": "auth_socket"}

// rehearseAccounts translates accounts for the target, and finds out which cannot be restored.
func (r *run) rehearseAccounts(ctx context.Context, s *session) error {
	there := map[string]bool{}
	rows, err := s.QueryMaps(ctx, "SELECT /* risso: which accounts are there? */ User AS u, Host AS h FROM mysql.user")
	if err != nil && mysql.ClassOf(err) != mysql.ClassPrivilege {
		return err
	}
	for _, m := range rows {
		there[m["u"]+"@"+m["h"]] = true
	}
	granted := map[string]bool{} // accounts that others have as roles
	if err := r.each([]repo.ObjectKind{repo.Account}, func(o *repo.Object) error {
		for _, g := range o.After {
			if read, err := asDefault.ReadGrant(g); err == nil && read.Verb == "GRANT" && read.On == 0 {
				for _, role := range read.Privileges {
					granted[role.Name] = true
				}
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return r.each([]repo.ObjectKind{repo.Account}, func(o *repo.Object) error {
		if o.Name == r.server.Account || there[o.Name] && !r.o.Overwrite && !r.resumed {
			return nil // it stays as it is
		}
		r.rehearseAccount(*o, granted)
		return nil
	})
}

// rehearseAccount puts an account into the target's words.
func (r *run) rehearseAccount(o repo.Object, granted map[string]bool) {
	key, where := objectKey(&o), string(o.Kind)+" "+o.Name
	if a, ok := parseAccount(o.Create); ok && (!r.source().SameKind(r.server.Server) || r.header.Server.Number > r.server.Number) {
		backticked := mysql.Quote(strings.TrimSuffix(o.Name, "@%"))
		role := r.source().RolesAreAccounts() && !r.server.RolesAreAccounts() && a.locked && strings.HasSuffix(o.Name, "@%") && granted[backticked+"@`%`"]
		create, why := r.writeAccount(a, where, role)
		if why != "" {
			r.find(where, why, "")
			r.leftOut[key] = true
			return
		}
		if o.Create = create; role {
			o.Name, o.Create = strings.TrimSuffix(o.Name, "@%"), "CREATE ROLE "+backticked
		}
	} else if p := loginOf(o.Create); p != "" && !r.known.logins[p] {
		r.find(where, "the way to log in "+p+" is not here", "")
		r.leftOut[key] = true
		return
	}
	var after, lost []string
	for _, g := range o.After {
		g, without := r.writeGrant(g, granted)
		lost = append(lost, without...)
		if g != "" {
			after = append(after, g)
		}
	}
	o.After = after
	if len(lost) > 0 {
		slices.Sort(lost)
		r.find(where, "privileges that are not here: "+strings.Join(slices.Compact(lost), ", "), "the other ones")
	}
	r.accounts[key] = &o
}

// writeAccount returns the CREATE USER for the target, or why there is none.
func (r *run) writeAccount(a account, where string, role bool) (create, why string) {
	var b strings.Builder
	b.WriteString("CREATE USER " + a.name)
	var fits []way
	for _, w := range a.ways {
		if to := loginTwins[w.plugin]; !r.known.logins[w.plugin] && r.known.logins[to] {
			w.plugin = to
		}
		if r.known.logins[w.plugin] && w.secret != "'invalid'" {
			fits = append(fits, w)
		}
	}
	open := len(a.ways) == 0 || len(a.ways) == 1 && (a.ways[0].secret == "" || a.ways[0].secret == "''") && hasPassword[a.ways[0].plugin]
	switch {
	case role || open: // without a password the server's own way does
	case len(fits) == 0:
		return "", "the way to log in " + a.ways[0].plugin + " is not available here, and passwords cannot be extracted from it"
	default:
		if len(a.ways) > 1 && (len(fits) < len(a.ways) || !r.server.SeveralLogins()) {
			r.find(where, "several ways to log in are not here", fits[0].plugin)
		}
		word := r.server.IdentifiedBy(fits[0].plugin)
		if fits[0].secret == "" {
			word = word[:strings.LastIndexByte(word[:len(word)-1], ' ')]
		}
		b.WriteString(word + fits[0].secret)
	}
	if a.tls != "" {
		b.WriteString(" REQUIRE " + a.tls)
	}
	if a.limits != "" {
		var keep []string // MariaDB has MAX_STATEMENT_TIME
		list := strings.Fields(a.limits)
		for i := 0; i+1 < len(list); i += 2 {
			if strings.HasSuffix(list[i], "_PER_HOUR") || list[i] == "MAX_USER_CONNECTIONS" {
				keep = append(keep, list[i], list[i+1])
			} else {
				a.lost = append(a.lost, list[i])
			}
		}
		if len(keep) > 0 {
			b.WriteString(" WITH " + strings.Join(keep, " "))
		}
	}
	switch a.expire {
	case "":
	case "now":
		b.WriteString(" PASSWORD EXPIRE")
	default:
		b.WriteString(" PASSWORD EXPIRE " + a.expire)
	}
	if a.locked {
		b.WriteString(" ACCOUNT LOCK")
	}
	if len(a.lost) > 0 {
		r.find(where, strings.Join(a.lost, ", ")+" is not here", "the account without it")
	}
	return b.String(), ""
}

// publicRole is what everybody has in MariaDB since 10.11: it is granted to, and neither made nor dropped.
const publicRole = "PUBLIC"

// isPublic reports whether an account is publicRole.
func isPublic(o *repo.Object) bool {
	return o.Name == publicRole && strings.HasPrefix(o.Create, "CREATE ROLE")
}

// strangeAccount says why this server cannot have an account as it was, or "".
func (r *run) strangeAccount(o *repo.Object) string {
	switch p := loginOf(o.Create); {
	case !r.foreignServer() && p != "" && !r.known.logins[p]:
		return "the way to log in " + p + " is not here"
	case isPublic(o) && !r.server.GrantsToPublic():
		return "privileges of everybody are granted to each account here"
	case !r.known.partialRevokes && slices.ContainsFunc(o.After, func(g string) bool { return strings.HasPrefix(g, "REVOKE ") }):
		return "it has privileges but for some schemas, and could do more here, where partial_revokes is OFF"
	}
	return ""
}

// withoutLogin takes out of a GRANT how the account logs in, which MariaDB repeats there: a password that is set again is no longer
// expired.
func withoutLogin(g string) string {
	begin, _ := asDefault.Find(g, "IDENTIFIED")
	if begin < 0 || !strings.HasPrefix(g, "GRANT ") {
		return g
	}
	end := len(g)
	for _, word := range []string{"REQUIRE", "WITH"} {
		if at, _ := asDefault.Find(g[begin:], word); at >= 0 {
			end = min(end, begin+at)
		}
	}
	return strings.TrimRight(g[:begin]+g[end:], " ")
}

// hasPassword are ways to log in for which no secret means no password.
var hasPassword = map[string]bool{"mysql_native_password": true, "caching_sha2_password": true, "sha256_password": true}

// privilegeTwins are privileges that have another name elsewhere. Sources: MariaDB documentation, "GRANT", global privileges;
// MySQL manual, "Privileges Provided by MySQL".
var privilegeTwins = map[string][]string{
	"BINLOG MONITOR": {"REPLICATION CLIENT"}, "REPLICATION CLIENT": {"BINLOG MONITOR"}, "SLAVE MONITOR": {"REPLICATION CLIENT"}, "REPLICA MONITOR": {"REPLICATION CLIENT"},
	"BINLOG ADMIN": {"BINLOG_ADMIN"}, "BINLOG_ADMIN": {"BINLOG ADMIN"}, "BINLOG REPLAY": {"REPLICATION_APPLIER"}, "REPLICATION_APPLIER": {"BINLOG REPLAY"},
	"CONNECTION ADMIN": {"CONNECTION_ADMIN"}, "CONNECTION_ADMIN": {"CONNECTION ADMIN"},
	"REPLICATION SLAVE ADMIN": {"REPLICATION_SLAVE_ADMIN"}, "REPLICATION_SLAVE_ADMIN": {"REPLICATION SLAVE ADMIN"},
	"SET USER": {"SET_ANY_DEFINER", "SET_USER_ID"}, "SET_USER_ID": {"SET_ANY_DEFINER", "SET USER"}, "SET_ANY_DEFINER": {"SET_USER_ID", "SET USER"},
	"SHOW CREATE ROUTINE": {"SHOW_ROUTINE"}, "SHOW_ROUTINE": {"SHOW CREATE ROUTINE"},
	"CREATE ROLE": {"CREATE USER"}, "DROP ROLE": {"CREATE USER"}, "READ_ONLY ADMIN": {"READ ONLY ADMIN"}, "READ ONLY ADMIN": {"READ_ONLY ADMIN"},
}

// roleName is a role's name as MySQL writes it, the host of which MariaDB does not have.
var roleName = pattern.Lazy("(`(?:[^`]|``)*`)@`%`")

// writeGrant puts a GRANT into the target's words; "" when nothing of it is left. lost are privileges that the target does not
// have.
func (r *run) writeGrant(g string, granted map[string]bool) (out string, lost []string) {
	if into := r.server.RolesAreAccounts(); into != r.source().RolesAreAccounts() {
		g = acrossFlavours(g, into, granted)
	}
	read, err := asDefault.ReadGrant(g)
	if err != nil || read.Verb != "GRANT" || read.On == 0 || strings.HasPrefix(g, "GRANT PROXY ") {
		return g, nil
	}
	var keep []string
	for _, p := range read.Privileges {
		name, columns, _ := strings.Cut(p.Name, " (")
		if columns != "" {
			columns = " (" + columns
		}
		switch to := r.privilege(strings.ToUpper(name)); {
		case to == "":
			lost = append(lost, name)
		case !slices.Contains(keep, to+columns):
			keep = append(keep, to+columns)
		}
	}
	if len(keep) == 0 {
		return "", lost
	}
	return "GRANT " + strings.Join(keep, ", ") + " " + g[read.On:], lost
}

// privilege is the target's name of a privilege, or "".
func (r *run) privilege(name string) string {
	known := r.known.privileges
	if len(known) == 0 || known[name] || name == "ALL PRIVILEGES" {
		return name
	}
	for _, to := range privilegeTwins[name] {
		if known[to] {
			return to
		}
	}
	return ""
}

// acrossFlavours translates a GRANT, or SET DEFAULT ROLE, into the other flavour's form.
func acrossFlavours(g string, rolesAreAccounts bool, granted map[string]bool) string {
	if !rolesAreAccounts {
		g = roleName().ReplaceAllStringFunc(g, func(name string) string {
			if granted[name] {
				return strings.TrimSuffix(name, "@`%`")
			}
			return name
		})
		if strings.HasPrefix(g, "SET DEFAULT ROLE ") {
			return replaceWord(g, "TO", "FOR")
		}
		return g
	}
	if strings.HasPrefix(g, "SET DEFAULT ROLE ") {
		return replaceWord(g, "FOR", "TO")
	}
	// MariaDB repeats in the first GRANT what is in CREATE USER.
	if !asDefault.Has(g, "ON") {
		return g
	}
	option := asDefault.Has(g, "GRANT", "OPTION")
	for _, word := range []string{"IDENTIFIED", "REQUIRE", "WITH"} {
		if i, _ := asDefault.Find(g, word); i >= 0 {
			g = strings.TrimRight(g[:i], " ")
		}
	}
	if option {
		g += " WITH GRANT OPTION"
	}
	return g
}

// replaceWord replaces a word.
func replaceWord(s, word, other string) string {
	begin, end := asDefault.Find(s, word)
	if begin < 0 {
		return s
	}
	return s[:begin] + other + s[end:]
}
