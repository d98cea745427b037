package upgrade

import (
	"maps"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// accounts finds ways to log in that the new version does not have.
func (r *rules) accounts() {
	for _, name := range slices.Sorted(maps.Keys(r.d.Accounts)) {
		for _, plugin := range r.d.Accounts[name].Plugins {
			if p, ok := r.login(name, plugin); ok {
				r.add(p)
			} else if plugin == "sha256_password" && r.to.AtLeast(80016, fleet.Never) || plugin == "mysql_native_password" && r.to.AtLeast(80034, fleet.Never) {
				r.add(Problem{ID: "account.plugin_deprecated", Severity: Note, Object: mysql.QuoteAccount(name),
					Trouble: fleet.Trouble{What: "it logs in by " + plugin, Why: "the plug-in is deprecated and will be removed", Remedy: "ALTER USER " + mysql.QuoteAccount(name) + " IDENTIFIED WITH caching_sha2_password BY '…'"}})
			}
		}
		if r.crosses(80400, fleet.Never) && slices.ContainsFunc(r.d.Accounts[name].Grants, func(g string) bool { return strings.Contains(g, "SET_USER_ID") }) {
			r.add(Problem{ID: "account.privilege", Severity: Warning, Object: mysql.QuoteAccount(name),
				Trouble: fleet.Trouble{What: "it has the privilege SET_USER_ID", Why: "8.4 and later do not have it: GRANT statements with it are refused",
					Remedy: "on the new server grant SET_ANY_DEFINER, and ALLOW_NONEXISTENT_DEFINER if it makes objects of accounts that are not there"}})
		}
	}
}

// login: mysql_native_password is off since 8.4 and gone since 9.0; sha256_password is deprecated and still there. MariaDB has no
// caching_sha2_password before 12.1. Sources: MySQL manual, "Native Pluggable Authentication"; MariaDB documentation, "Authentication
// Plugins".
func (r *rules) login(name, plugin string) (Problem, bool) {
	gone := map[string][2]fleet.Version{"mysql_native_password": {80400, fleet.Never}, "mysql_old_password": {50700, fleet.Never}, "ed25519": {1, fleet.Never}, "unix_socket": {1, fleet.Never},
		"caching_sha2_password": {fleet.Never, 1}, "sha256_password": {fleet.Never, 1}, "auth_socket": {fleet.Never, 1}}
	at, ok := gone[plugin]
	if !ok || !r.to.AtLeast(at[0], at[1]) {
		return Problem{}, false
	}
	return LostLogin(name, plugin, r.d.Server), true
}

// LostLogin is the problem of an account of a server that the new one cannot let in.
func LostLogin(name, plugin string, from fleet.Server) Problem {
	account := mysql.QuoteAccount(name)
	p := Problem{ID: "account.plugin", Severity: Error, Object: account,
		Trouble: fleet.Trouble{What: "it logs in by " + plugin,
			Why:    "the new version does not load this plug-in: whoever uses the account is refused",
			Remedy: "give it a password for a plug-in that both versions have, first for clients that know it"}}
	switch {
	case !strings.HasPrefix(plugin, "mysql_"):
	case from.AtLeast(80004, fleet.Never):
		p.Remedy = "give it a new password before the upgrade: ALTER USER " + account + " IDENTIFIED WITH caching_sha2_password BY '…'"
	case from.AtLeast(50000, fleet.Never):
		p.Remedy = "on MySQL 8.0 give it a new password by caching_sha2_password: ALTER USER " + account + " IDENTIFIED WITH caching_sha2_password BY '…'; 5.7 does not have it, so go through 8.0"
	default:
		p.Remedy = "make it on the new server, with a new password: CREATE USER " + account + " IDENTIFIED WITH caching_sha2_password BY '…'"
	}
	return p
}

// gonePlugins are plug-ins that were removed. Source: MySQL manual, "What Is New in MySQL 8.4" and "Server and Status Variables and Options
// Added, Deprecated, or Removed in MySQL 8.4", Removed.
var gonePlugins = []struct {
	mysql          fleet.Version
	names, instead string
}{
	{80300, "daemon_memcached", "another cache"},
	{80400, "keyring_file", "component_keyring_file"},
	{80400, "keyring_encrypted_file", "component_keyring_encrypted_file"},
	{80400, "keyring_oci", "component_keyring_oci"},
	{80400, "authentication_fido", "authentication_webauthn"},
}

// plugins finds loaded ones that the new version does not have.
func (r *rules) plugins() {
	for _, g := range gonePlugins {
		if state := r.d.Plugins[g.names]; strings.HasPrefix(state, "ACTIVE") && r.crosses(g.mysql, fleet.Never) {
			r.add(Problem{ID: "plugin.removed", Severity: Error, Object: g.names,
				Trouble: fleet.Trouble{What: "it is loaded, and the new version does not have it", Why: "what depends on it fails; with early_plugin_load or plugin_load_add in the option file the server may not start", Remedy: "in its place: " + g.instead}})
		}
	}
}
