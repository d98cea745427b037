package define

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sqltext"
)

// systemAccounts are made by the servers themselves.
var systemAccounts = []string{"mysql.sys", "mysql.session", "mysql.infoschema", "mariadb.sys"}

// Accounts returns users and roles with their grants. ignored are the accounts that are in mysql.user but that the server does
// not know, and so cannot show: with skip_name_resolve those whose host is a name.
func Accounts(ctx context.Context, s *mysql.Stream, server mysql.Server) (out []Definition, ignored []string, err error) {
	role := "'N'"
	if server.MariaDB() {
		role = "is_role"
	}
	rows, err := s.QueryMaps(ctx, "SELECT /* risso: accounts */ User AS u, Host AS h, "+role+" AS r, x509_subject AS s, x509_issuer AS i, ssl_cipher AS c FROM mysql.user ORDER BY "+role+" = 'Y' DESC, User, Host")
	if err != nil {
		return nil, nil, fmt.Errorf("list the accounts: %w", err)
	}
	for _, r := range rows {
		if slices.Contains(systemAccounts, r["u"]) || r["u"] == "PUBLIC" && r["r"] == "Y" && !server.GrantsToPublic() {
			continue
		}
		d, err := account(ctx, s, r["u"], r["h"], r["r"] == "Y")
		if mysql.ErrorNumber(err) == errno.NoSuchAccount {
			ignored = append(ignored, d.Name)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if !server.MariaDB() {
			d.Create = quoteRequired(d.Create, r["s"], r["i"], r["c"])
			for i, g := range d.After {
				d.After[i] = QuoteGrant(g, r["u"], r["h"])
				if server.Number < 80000 && strings.Contains(g, " (") {
					if d.After[i], err = quoteColumns(ctx, s, d.After[i], r["u"], r["h"]); err != nil {
						return nil, nil, fmt.Errorf("read the privileges of %s on columns: %w", d.Name, err)
					}
				}
			}
		}
		out = append(out, d)
	}
	return out, ignored, nil
}

func account(ctx context.Context, s *mysql.Stream, user, host string, role bool) (Definition, error) {
	d := Definition{Kind: KindAccount, Name: user + "@" + host}
	name := mysql.Literal(user) + "@" + mysql.Literal(host)
	if role {
		d.Name, name = user, mysql.Literal(user)
		d.Create = "CREATE ROLE " + name
	} else {
		err := s.Query(ctx, "SHOW /* risso: backup */ CREATE USER "+name, func(row [][]byte) error { d.Create = string(row[0]); return nil })
		if err != nil {
			return d, fmt.Errorf("read the definition of account %s: %w", name, err)
		}
	}
	// A default role may be made after the account.
	create, defaults := cutDefaultRole(d.Create)
	d.Create = create
	err := s.Query(ctx, "SHOW /* risso: backup */ GRANTS FOR "+name, func(row [][]byte) error {
		if g := string(row[0]); !strings.HasPrefix(g, "SET DEFAULT ROLE") {
			d.After = append(d.After, g)
		} else if defaults == "" {
			defaults = g
		}
		return nil
	})
	if err != nil {
		return d, fmt.Errorf("read the grants of %s: %w", name, err)
	}
	switch {
	case strings.HasPrefix(defaults, "SET"):
		d.After = append(d.After, defaults)
	case defaults != "":
		d.After = append(d.After, "SET DEFAULT ROLE "+defaults+" TO "+name)
	}
	return d, nil
}

// cutDefaultRole takes DEFAULT ROLE `r`@`%`,… out of MySQL's CREATE USER.
func cutDefaultRole(create string) (rest, roles string) {
	c, err := sqltext.Dialect{}.ReadCreate(create)
	if err != nil || c.Roles.End == 0 {
		return create, ""
	}
	return strings.TrimRight(create[:c.Roles.Begin], " ") + create[c.Roles.End:], c.Roles.Name
}

// QuoteGrant returns a line of SHOW GRANTS of MySQL as a statement: 5.7, and 8.0 if one account is a proxy for another, write names
// of accounts between quotes as they are, with the quotes and backslashes in them. A line that is not for this account stays as it is.
func QuoteGrant(line, user, host string) string {
	account := mysql.Literal(user) + "@" + mysql.Literal(host)
	for _, end := range []string{"", mysql.WithGrantOption} {
		before, ok := strings.CutSuffix(line, " TO '"+user+"'@'"+host+"'"+end)
		if !ok {
			continue
		}
		if proxied, ok := strings.CutPrefix(before, "GRANT PROXY ON '"); ok && strings.Count(proxied, "'@'") == 1 { // else it is anyone's guess where the name ends
			user, host, _ := strings.Cut(strings.TrimSuffix(proxied, "'"), "'@'")
			before = "GRANT PROXY ON " + mysql.Literal(user) + "@" + mysql.Literal(host)
		}
		return before + " TO " + account + end
	}
	return line
}

// quoteRequired returns MySQL's CREATE USER with the certificate that it asks for as a statement has it: MySQL up to 9.7 writes it
// between quotes unescaped.
func quoteRequired(create, subject, issuer, cipher string) string {
	shown, quoted := " REQUIRE", " REQUIRE"
	for _, p := range [][2]string{{"SUBJECT", subject}, {"ISSUER", issuer}, {"CIPHER", cipher}} {
		if p[1] != "" {
			shown += " " + p[0] + " '" + p[1] + "'"
			quoted += " " + p[0] + " " + mysql.Literal(p[1])
		}
	}
	if strings.Count(create, shown) != 1 {
		return create
	}
	return strings.Replace(create, shown, quoted, 1)
}

// quoteColumns returns a line of SHOW GRANTS of MySQL 5.7 that is about columns with their names quoted, from where the server keeps them.
func quoteColumns(ctx context.Context, s *mysql.Stream, line, user, host string) (string, error) {
	of := " WHERE User = " + mysql.Literal(user) + " AND Host = " + mysql.Literal(host)
	rows, err := s.QueryMaps(ctx, "SELECT /* risso: accounts */ p.Db AS d, p.Table_name AS t, c.Column_name AS c, UPPER(p.Table_priv) AS p, UPPER(c.Column_priv) AS cp FROM (SELECT * FROM mysql.tables_priv"+of+") p"+
		" JOIN (SELECT * FROM mysql.columns_priv"+of+") c ON c.Db = p.Db AND c.Table_name = p.Table_name ORDER BY c.Column_name")
	if err != nil {
		return line, err
	}
	on, privileges, columns := "", []string(nil), map[string][]string{}
	for _, r := range rows {
		table := " ON " + mysql.Quote(r["d"]) + "." + mysql.Quote(r["t"]) + " TO " + mysql.Literal(user) + "@" + mysql.Literal(host)
		if !strings.HasSuffix(strings.TrimSuffix(line, mysql.WithGrantOption), table) {
			continue
		}
		on, privileges = line[strings.LastIndex(line, table):], strings.Split(r["p"], ",")
		for p := range strings.SplitSeq(r["cp"], ",") {
			columns[p] = append(columns[p], mysql.Quote(r["c"]))
		}
	}
	if on == "" {
		return line, nil
	}
	privileges = slices.DeleteFunc(privileges, func(p string) bool { return p == "" || p == "GRANT" }) // that is the option
	for _, p := range []string{"SELECT", "INSERT", "UPDATE", "REFERENCES"} {
		if len(columns[p]) > 0 {
			privileges = append(privileges, p+" ("+strings.Join(columns[p], ", ")+")")
		}
	}
	return "GRANT " + strings.Join(privileges, ", ") + on, nil
}

// OwnAccount returns the account of the session, which every account may see.
func OwnAccount(ctx context.Context, s *mysql.Stream, server mysql.Server) (Definition, error) {
	at := strings.LastIndex(server.Account, "@")
	if at < 0 {
		return Definition{}, fmt.Errorf("the session has no account: %q", server.Account)
	}
	user, host := server.Account[:at], server.Account[at+1:]
	d, err := account(ctx, s, user, host, false)
	if err == nil && !server.MariaDB() {
		for i, g := range d.After {
			d.After[i] = QuoteGrant(g, user, host)
		}
	}
	return d, err
}
