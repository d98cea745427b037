package describe

import (
	"context"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sqltext"
)

// accounts reads users and roles; what it may not see is noted.
func accounts(ctx context.Context, s *mysql.Stream, server mysql.Server, d *differ.Description) error {
	list, ignored, err := define.Accounts(ctx, s, server)
	if err != nil {
		if err := unread(d, differ.AreaAccounts, err); err != nil {
			return err
		}
		u := &d.Unread[len(d.Unread)-1]
		if u.Remedy == "" {
			u.Remedy = "GRANT SELECT ON mysql.* TO " + server.QuotedAccount()
		}
		return nil
	}
	d.Accounts = map[string]differ.Account{}
	for _, a := range list {
		d.Accounts[a.Name] = accountOf(a)
	}
	if len(ignored) > 0 {
		d.Unread = append(d.Unread, differ.Unread{Area: differ.AreaAccounts, Part: true, Trouble: fleet.Trouble{What: strings.Join(ignored, ", "), Why: "with skip_name_resolve the server does not know accounts whose host is a name, and does not show them"}})
	}
	return nil
}

// noSecret stands for no password, so that it differs from one that is not known.
const noSecret = "none"

// accountOf takes an account apart, so that its secret is by itself.
func accountOf(d define.Definition) differ.Account {
	a := differ.Account{}
	a.Plugins, a.Options, a.Secret = cutSecret(d.Create)
	for _, g := range d.After {
		head, rest, with := strings.Cut(g, " IDENTIFIED ") // MariaDB shows the hash there
		if with && strings.HasSuffix(rest, mysql.WithGrantOption) {
			head += mysql.WithGrantOption
		}
		a.Grants = append(a.Grants, head)
	}
	return a
}

// cutSecret reads how an account logs in and what else is said of it out of SHOW CREATE USER. MySQL always has a REQUIRE after the hash,
// which older versions write between quotes as the bytes that it is; MariaDB's hash is text, and what follows it may be missing.
func cutSecret(create string) (plugins []string, options, secret string) {
	if strings.HasPrefix(create, "CREATE ROLE") {
		return nil, "", noSecret
	}
	_, after, ok := strings.Cut(create, " IDENTIFIED ")
	if !ok { // MariaDB leaves out an empty password
		if at := strings.Index(create, " REQUIRE "); at >= 0 {
			options = create[at+1:]
		}
		return []string{"mysql_native_password"}, options, noSecret
	}
	if at := strings.LastIndex(after, " REQUIRE "); at >= 0 {
		after, options = after[:at], after[at+1:]
	} else if end := secretEnd(after); end < len(after) {
		after, options = after[:end], strings.TrimSpace(after[end:])
	}
	return pluginsIn(after), options, after
}

// secretEnd is where the ways to log in end that MariaDB shows.
func secretEnd(text string) int {
	code := sqltext.Tokens(text)
	for i, t := range code {
		switch word := strings.ToUpper(t.Text); {
		case t.Kind != sqltext.TokenWord:
		case word == "PASSWORD" && i == 1: // BY PASSWORD
		case word == "PASSWORD" || word == "WITH" && i > 0 || word == "ACCOUNT" || word == "DEFAULT":
			return t.Begin
		}
	}
	return len(text)
}

// pluginsIn are the names after WITH, VIA, OR and AND.
func pluginsIn(text string) (list []string) {
	if strings.HasPrefix(text, "BY PASSWORD") {
		return []string{"mysql_native_password"}
	}
	code := sqltext.Tokens(text)
	for i := 0; i+1 < len(code); i++ {
		word := strings.ToUpper(code[i].Text)
		if code[i].Kind != sqltext.TokenWord || !slices.Contains([]string{"WITH", "VIA", "OR"}, word) {
			continue
		}
		if name := strings.Trim(code[i+1].Text, "'\"`"); name != "" {
			list = append(list, name)
		}
	}
	return list
}
