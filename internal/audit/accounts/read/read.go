// Package read reads the accounts of a server for package accounts: how they log in, what they may do, who used them, and what needs them.
// What it may not read, it says.
package read

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/audit/accounts"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sqltext"
)

// patience is how long the server may take for one question.
const patience = 30 * time.Second

// reader reads one server.
type reader struct {
	target mysql.Target
	c      *mysql.Conn
	s      *mysql.Stream
	on     *accounts.Server
	all    []*accounts.Account
	now    time.Time // by the server's clock
}

// Accounts reads all accounts of a server that may be seen, those of the server itself among them. Name is what the server is called.
func Accounts(ctx context.Context, t mysql.Target, name string) (*accounts.Server, []*accounts.Account, error) {
	c, err := mysql.Connect(ctx, t.WithPatience(patience), nil)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	s, err := t.ConnectStream(ctx, mysql.StreamOptions{Patience: patience})
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	c.Unobserved(ctx) // SHOW GRANTS is a class of statements of its own for each account
	s.Unobserved(ctx, c.Server)
	if err := s.ForRows(ctx, c.Server); err != nil {
		return nil, nil, err
	}
	sv := c.Server
	r := &reader{target: t, c: c, s: s, on: &accounts.Server{Name: name, Flags: accounts.AskedBy(t), Version: sv.String(), CanExpire: sv.ExpiresPasswords(), CanLimit: sv.LimitsLogins(), CanLock: sv.LocksAccounts(),
		Dual: sv.DualPasswords(), Several: sv.SeveralLogins(), Via: sv.SeveralLogins()}}
	for _, step := range []func(context.Context) error{r.accounts, r.variables, r.plugins, r.definers, r.replication, r.usage} {
		if err := step(ctx); err != nil {
			return nil, nil, err
		}
	}
	return r.on, r.all, nil
}

// unread notes what an account may not read, or the server has not; any other error stays one.
func (r *reader) unread(err error, what, remedy string) error {
	switch mysql.ClassOf(err) {
	case mysql.ClassPrivilege, mysql.ClassMissing:
		r.on.Unread = append(r.on.Unread, fleet.Trouble{What: what, Why: err.Error(), Remedy: remedy})
		return nil
	}
	return err
}

// grant is the statement that gives the session's account a privilege on something.
func (r *reader) grant(privilege, on string) string {
	return "GRANT " + privilege + " ON " + on + " TO " + r.c.Server.QuotedAccount()
}

func (r *reader) accounts(ctx context.Context) error {
	logins, err := define.Logins(ctx, r.s, r.c.Server)
	if err != nil {
		if err := r.unread(err, "other accounts, and how accounts log in", r.grant("SELECT", "mysql.*")); err != nil {
			return err
		}
		d, err := define.OwnAccount(ctx, r.s, r.c.Server)
		if err != nil {
			return fmt.Errorf("read the session's own account: %w", err)
		}
		i := strings.LastIndex(r.c.Server.Account, "@")
		a := &accounts.Account{On: r.on, User: r.c.Server.Account[:i], Host: r.c.Server.Account[i+1:], Grants: grantsOf(d), Definer: -1}
		r.all = []*accounts.Account{a}
		accounts.Expand(r.all)
		return nil
	}
	definitions, ignored, err := define.Accounts(ctx, r.s, r.c.Server)
	if err != nil {
		if err := r.unread(err, "what accounts may do", r.grant("SELECT", "mysql.*")); err != nil {
			return err
		}
	}
	if len(ignored) > 0 {
		r.on.Unread = append(r.on.Unread, fleet.Trouble{What: fmt.Sprintf("what these may do: %s", strings.Join(ignored, ", ")), Why: "the server does not know them: it runs with skip_name_resolve, and their hosts are names"})
	}
	settings, err := read.Variables(ctx, r.c, []string{"mandatory_roles"}) // SHOW GRANTS leaves these out
	if err != nil {
		return err
	}
	r.on.Mandatory = settings["mandatory_roles"]
	grants := map[string][]string{}
	for _, d := range definitions {
		grants[d.Name] = grantsOf(d)
	}
	for _, l := range logins {
		a := &accounts.Account{On: r.on, User: l.User, Host: l.Host, Role: l.Role, System: l.System, Known: true, Second: accounts.Secret(l.Second), HasSecond: l.Second != "",
			Locked: l.Locked, Expired: l.Expired, Lifetime: l.Lifetime, TLS: l.TLS, Attempts: l.Attempts, LockDays: l.LockDays}
		for _, m := range l.Methods {
			a.Methods = append(a.Methods, accounts.Method{Plugin: m.Plugin, Secret: accounts.Secret(m.Hash)})
		}
		if !l.Changed.IsZero() {
			a.Changed = &l.Changed
		}
		name := a.Object()
		if a.Role {
			name = a.User
		}
		a.Grants = grants[name]
		r.all = append(r.all, a)
	}
	slices.SortStableFunc(r.all, func(a, b *accounts.Account) int {
		return cmp.Or(strings.Compare(a.User, b.User), strings.Compare(a.Host, b.Host))
	})
	accounts.Expand(r.all)
	return nil
}

// grantsOf are the grants without what MariaDB and MySQL 5.6 add to them: hashes.
func grantsOf(d define.Definition) (list []string) {
	for _, line := range d.After {
		g, err := sqltext.Dialect{ANSIQuotes: true}.ReadGrant(line)
		switch {
		case err == nil && g.Verb == "SET":
			continue
		case err == nil && g.To.End > 0 && g.To.End <= len(line):
			option := ""
			if g.Grantable {
				option = mysql.WithGrantOption
			}
			line = line[:g.To.End] + option
		default:
			line, _, _ = strings.Cut(line, " IDENTIFIED ")
		}
		list = append(list, line)
	}
	return list
}

func (r *reader) variables(ctx context.Context) error {
	rows, err := r.c.Maps(ctx, "SHOW /* risso: accounts */ GLOBAL VARIABLES WHERE Variable_name IN ('require_secure_transport', 'default_password_lifetime', 'max_password_errors', 'validate_password.length', 'validate_password_length', 'simple_password_check_minimal_length')")
	if err != nil {
		return fmt.Errorf("read the settings for passwords: %w", err)
	}
	zero := 0
	r.on.MinLength = &zero
	for _, row := range rows {
		name, value := row["Variable_name"], row["Value"]
		n, _ := strconv.Atoi(value)
		switch name {
		case "require_secure_transport":
			r.on.SecureTransport = value == "ON" || value == "1"
		case "default_password_lifetime":
			r.on.DefaultLifetime = n
		case "max_password_errors":
			if n < 1<<32-1 {
				r.on.MostErrors = n
			}
		default:
			r.on.MinLength, r.on.MinLengthSet = &n, "SET GLOBAL "+name+" = "
		}
	}
	row, err := r.c.Maps(ctx, "SELECT /* risso: accounts */ UNIX_TIMESTAMP() AS t")
	if err != nil || len(row) == 0 {
		return fmt.Errorf("ask for the server's time: %w", err)
	}
	n, err := strconv.ParseInt(row[0]["t"], 10, 64)
	r.now = time.Unix(n, 0).UTC()
	return err
}

func (r *reader) plugins(ctx context.Context) error {
	rows, err := r.c.Maps(ctx, "SELECT /* risso: accounts */ PLUGIN_NAME AS p FROM information_schema.PLUGINS WHERE PLUGIN_TYPE = 'AUTHENTICATION' AND PLUGIN_STATUS = 'ACTIVE'")
	if err != nil {
		return fmt.Errorf("list the plug-ins for logins: %w", err)
	}
	var loaded []string
	for _, row := range rows {
		loaded = append(loaded, row["p"])
	}
	r.on.BestPlugin = r.c.Server.BestLogin(loaded)
	return nil
}

// definers counts what runs as each account.
func (r *reader) definers(ctx context.Context) error {
	rights, err := r.s.Rights(ctx)
	if err != nil {
		return err
	}
	complete := rights.Have("", "", "SELECT") && rights.Have("", "", "TRIGGER") && rights.Have("", "", "EVENT")
	if !complete {
		r.on.Unread = append(r.on.Unread, fleet.Trouble{What: "all views, routines, triggers and events, which run as an account", Why: "the account does not see them all", Remedy: r.grant("SELECT, TRIGGER, EVENT", "*.*")})
	}
	counts, err := r.countDefiners(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		complete = false
		r.on.Unread = append(r.on.Unread, fleet.Trouble{What: "which views, routines, triggers and events run as which account", Why: err.Error()})
	}
	for _, a := range r.all {
		a.Definer = counts[a.Object()]
		if !complete && a.Definer == 0 {
			a.Definer = -1
		}
	}
	return nil
}

// countDefiners asks on a session of its own: it may take so long that the session is given up.
func (r *reader) countDefiners(ctx context.Context) (map[string]int, error) {
	s, err := r.target.ConnectStream(ctx, mysql.StreamOptions{Patience: patience})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	s.Unobserved(ctx, r.c.Server)
	if err := s.ForRows(ctx, r.c.Server); err != nil {
		return nil, err
	}
	return define.Definers(ctx, s, r.c.Server)
}

// replication finds accounts that replicas log in as.
func (r *reader) replication(ctx context.Context) error {
	by := map[string]string{}
	rows, err := r.c.Maps(ctx, r.c.Server.ReplicaStatusStatement())
	if err != nil {
		if err := r.unread(err, "as whom this server replicates", r.c.Server.Grant(r.c.Server.ReplicaPrivilege())); err != nil {
			return err
		}
	}
	for _, row := range rows {
		if u := cmp.Or(row["Source_User"], row["Master_User"]); u != "" {
			by[u] = "replication of this server logs in as this user at its primary"
		}
	}
	rows, err = r.c.Maps(ctx, "SELECT /* risso: accounts */ USER AS u, COMMAND AS c FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'")
	if err := r.unread(err, "which replicas are connected", r.grant("PROCESS", "*.*")); err != nil {
		return err
	}
	for _, row := range rows {
		by[row["u"]] = "a replica is connected as this user"
	}
	for _, a := range r.all {
		a.Replicates = by[a.User]
		if a.Replicates == "" && slices.ContainsFunc(a.Grants, func(g string) bool {
			return strings.Contains(g, "REPLICATION SLAVE") && strings.Contains(g, " ON *.* ") && !strings.Contains(g, "SUPER")
		}) {
			a.Replicates = "it has REPLICATION SLAVE: replicas may log in as it"
		}
	}
	return nil
}

// usage finds who logged in, and what they ran.
func (r *reader) usage(ctx context.Context) error {
	if !r.c.Server.PerformanceSchema {
		if r.c.Server.CountsLogins() {
			return r.userstat(ctx)
		}
		r.on.Unread = append(r.on.Unread, fleet.Trouble{What: "which accounts are in use", Why: "performance_schema is off", Remedy: "performance_schema = ON in the option file, and a restart"})
		return nil
	}
	remedy := r.c.Server.GrantPerformanceSchema()
	rows, err := r.c.Maps(ctx, "SELECT /* risso: accounts */ USER AS u, HOST AS h, TOTAL_CONNECTIONS AS n, CURRENT_CONNECTIONS AS now FROM performance_schema.accounts WHERE USER IS NOT NULL")
	if err != nil {
		return r.unread(err, "which accounts are in use", remedy)
	}
	status, err := r.c.Maps(ctx, "SHOW /* risso: accounts */ GLOBAL STATUS WHERE Variable_name IN ('Uptime', 'Performance_schema_accounts_lost')")
	if err != nil {
		return fmt.Errorf("ask since when the server runs: %w", err)
	}
	for _, row := range status {
		n, _ := strconv.ParseInt(row["Value"], 10, 64)
		switch {
		case row["Variable_name"] == "Uptime":
			r.on.UsageSince = r.now.Add(-time.Duration(n) * time.Second)
		case n > 0:
			r.on.UsageSince = time.Time{}
			r.on.Unread = append(r.on.Unread, fleet.Trouble{What: "which accounts are in use", Why: "performance_schema had no room for all", Remedy: "raise performance_schema_accounts_size"})
			return nil
		}
	}
	r.on.UsageFrom = "performance_schema, since the server's start at the earliest"
	counts, err := r.counts(ctx, remedy)
	if err != nil {
		return err
	}
	for _, a := range r.all {
		a.Seen = &accounts.Seen{}
		if counts != nil {
			a.Seen.Counts = map[string]int64{}
			for k, n := range counts[a.User] {
				a.Seen.Counts[k] = n
			}
		}
	}
	for _, row := range rows {
		a := r.who(row["u"], row["h"])
		if a == nil {
			continue
		}
		n, _ := strconv.ParseInt(row["n"], 10, 64)
		now, _ := strconv.ParseInt(row["now"], 10, 64)
		if a.Object() == r.c.Server.Account { // these two sessions
			now = max(0, now-2)
		}
		a.Seen.Logins += n
		a.Seen.Now += now
		a.Seen.Hosts = append(a.Seen.Hosts, row["h"])
	}
	return nil
}

// counts are how many statements of each kind each user ran; nil if that is not counted.
func (r *reader) counts(ctx context.Context, remedy string) (map[string]map[string]int64, error) {
	rows, err := r.c.Maps(ctx, "SELECT /* risso: accounts */ USER AS u, EVENT_NAME AS e, COUNT_STAR AS n FROM performance_schema.events_statements_summary_by_user_by_event_name WHERE COUNT_STAR > 0 AND EVENT_NAME LIKE 'statement/sql/%'")
	if err != nil {
		return nil, r.unread(err, "which rights are in use", remedy)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	counts := map[string]map[string]int64{}
	for _, row := range rows {
		if counts[row["u"]] == nil {
			counts[row["u"]] = map[string]int64{}
		}
		n, _ := strconv.ParseInt(row["n"], 10, 64)
		counts[row["u"]][strings.TrimPrefix(row["e"], "statement/sql/")] += n
	}
	return counts, nil
}

// who is the account as which a user from a host is let in: the one with the most specific host. Source: MySQL manual, "Access Control, Stage 1".
func (r *reader) who(user, host string) *accounts.Account {
	var best *accounts.Account
	rank := func(a *accounts.Account) int {
		switch {
		case !strings.ContainsAny(a.Host, "%_"):
			return 1 << 20
		case strings.HasPrefix(a.Host, "%"):
			return len(a.Host) - 1<<10
		}
		return strings.IndexAny(a.Host, "%_")
	}
	for _, a := range r.all {
		if !a.Role && a.User == user && a.Takes(host) && (best == nil || rank(a) > rank(best)) {
			best = a
		}
	}
	return best
}

// userstat knows who logged in since it was switched on, and not when that was: who is not in it may have logged in before.
func (r *reader) userstat(ctx context.Context) error {
	rows, err := r.c.Maps(ctx, "SELECT /* risso: accounts */ USER AS u, TOTAL_CONNECTIONS AS n, CONCURRENT_CONNECTIONS AS now FROM information_schema.USER_STATISTICS")
	if err != nil {
		return r.unread(err, "which accounts are in use", r.grant("PROCESS", "*.*"))
	}
	if len(rows) == 0 {
		r.on.Unread = append(r.on.Unread, fleet.Trouble{What: "which accounts are in use", Why: "performance_schema is off, and userstat is off or has counted nothing", Remedy: "SET GLOBAL userstat = ON"})
		return nil
	}
	status, err := r.c.Text(ctx, "SELECT /* risso: accounts */ VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Uptime'")
	if err != nil {
		return fmt.Errorf("ask since when the server runs: %w", err)
	}
	n, _ := strconv.ParseInt(status, 10, 64)
	r.on.UsageSince, r.on.UsageFrom = r.now.Add(-time.Duration(n)*time.Second), "userstat, which counts by user and not by host, since it was switched on"
	users := map[string]int{}
	for _, a := range r.all {
		users[a.User]++
	}
	for _, row := range rows {
		for _, a := range r.all {
			if a.User == row["u"] && users[a.User] == 1 {
				logins, _ := strconv.ParseInt(row["n"], 10, 64)
				a.Seen = &accounts.Seen{Logins: logins}
			}
		}
	}
	return nil
}
