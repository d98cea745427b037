package load

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sqltext"
)

// isProgram reports whether objects of a kind contain code.
func isProgram(k repo.ObjectKind) bool {
	switch k {
	case repo.Function, repo.Procedure, repo.Package, repo.PackageBody, repo.Trigger, repo.Event:
		return true
	}
	return false
}

// forgedObject says why an object's definition is none that a backup has, or "". Only the CREATE of that kind and that name may
// run, in circumstances that are words, and grants for that account.
func forgedObject(o *repo.Object, d sqltext.Dialect) string {
	for _, w := range []string{o.Charset, o.Collation, o.Database} {
		if strings.ContainsFunc(w, func(c rune) bool { return c >= 0x80 || !isWordByte(byte(c)) }) {
			return fmt.Sprintf("%.60q is not a character set or collation", w)
		}
	}
	c, err := d.ReadCreate(o.Create)
	if err != nil {
		return err.Error()
	}
	kind := kindWords[o.Kind]
	if kind == "" && o.Kind == repo.Account {
		if kind = "USER"; c.Kind == "ROLE" {
			kind = c.Kind
		}
	}
	switch {
	case kind == "" || c.Kind != kind:
		return "its definition is a CREATE " + c.Kind + " of " + identName(c.Name)
	case o.Kind == repo.Account && c.Account.String() != o.Name:
		return "its definition makes " + c.Account.String()
	case o.Kind != repo.Account && !named(c.Name, o.Schema, o.Name):
		return "its definition makes " + identName(c.Name)
	case o.Kind == repo.Trigger && !named(c.On, o.Schema, o.Table):
		return "it is a trigger of " + identName(c.On)
	case o.Kind == repo.Event && c.State.Name == "":
		return "it does not say whether it is enabled"
	}
	return forgedAfter(o, d)
}

// ownGrants are an account's grants without those of the roles that it has, which MariaDB shows as well; these come with their
// roles.
func ownGrants(o *repo.Object) (own []string) {
	roles := map[string]bool{}
	for range o.After { // a role's roles may come before it
		for _, st := range o.After {
			g, err := (sqltext.Dialect{}).ReadGrant(st)
			if err != nil || g.On > 0 || g.Verb != "GRANT" || g.To.String() != o.Name && !roles[g.To.String()] {
				continue
			}
			for _, p := range g.Privileges {
				if t := sqltext.Tokens(p.Name); len(t) == 1 {
					roles[t[0].Text] = true
				}
			}
		}
	}
	for _, st := range o.After {
		if g, err := (sqltext.Dialect{}).ReadGrant(st); err != nil || g.To.String() == o.Name || !roles[g.To.String()] {
			own = append(own, st)
		}
	}
	return own
}

// quoteAccount corrects an account's grants if MySQL wrote its name, quotes and all, unescaped (see mysql.QuoteGrant), as
// older backups have it. why names what is ambiguous for the same reason: none of it is run. All else that cannot be read is
// left to forgedObject to refuse.
func (r *run) quoteAccount(o *repo.Object) (why string) {
	d := r.sourceDialect(o)
	if d.MariaDB {
		return ""
	}
	c, err := d.ReadCreate(o.Create)
	if err != nil {
		for _, word := range []string{"SUBJECT", "ISSUER", "CIPHER"} {
			before, _, ok := strings.Cut(o.Create, " REQUIRE "+word+" '")
			if c, err := d.ReadCreate(before); ok && err == nil && c.Kind == "USER" && c.Account.String() == o.Name {
				return "there is a quote in the certificate it requires that MySQL did not escape, so the end of the certificate is unclear; a backup taken now has it"
			}
		}
		return ""
	}
	readable := func(head, g, from string) bool { // with another beginning
		read, err := d.ReadGrant(head + g[max(strings.LastIndex(g, from), 0):])
		return err == nil && read.To.String() == o.Name
	}
	for i, g := range o.After {
		g = define.QuoteGrant(g, c.Account.User, c.Account.Host)
		o.After[i] = g
		if _, err := d.ReadGrant(g); err == nil {
			continue
		}
		switch {
		case strings.HasPrefix(g, "GRANT PROXY ON '") && readable("GRANT PROXY ON ''@''", g, " TO '"):
			return "there are quotes in the name of an account it may act for that MySQL did not escape, so the end of the name is unclear"
		case strings.Contains(g, " (") && readable("GRANT SELECT", g, " ON `"):
			return "there are quotes in the name of a column it may use that MySQL did not escape, so the end of the name is unclear; a backup taken now has it"
		}
	}
	return ""
}

// forgedAfter looks at the statements that follow an object's definition, as the target reads them.
func forgedAfter(o *repo.Object, d sqltext.Dialect) string {
	for _, st := range o.After {
		switch o.Kind {
		case repo.Sequence:
			if _, err := stateOf(st, mysql.Quote(o.Name)); err != nil {
				return err.Error()
			}
		case repo.Account:
			g, err := d.ReadGrant(st)
			if err != nil {
				return err.Error()
			}
			if g.To.String() != o.Name {
				return "a grant is for " + g.To.String()
			}
		default:
			return fmt.Sprintf("%.60q would run after it", st)
		}
	}
	return ""
}

// forgedTable says the same of a table, and names in the plan the folders that it had for itself.
func (r *run) forgedTable(t *repo.Table) string {
	c, err := r.dialect(nil).ReadCreate(t.Create)
	switch {
	case err != nil:
		return err.Error()
	case c.Kind != "TABLE" || c.Temporary:
		return "its definition is not a CREATE TABLE"
	case !named(c.Name, t.Schema, t.Name):
		return "its definition makes " + identName(c.Name)
	case mysql.SystemSchema(t.Schema):
		return ownedByServer
	}
	for _, d := range c.Directories {
		r.find("table "+mysql.Quote(t.Schema)+"."+mysql.Quote(t.Name), strings.TrimRight(t.Create[d.Begin:d.End], ", ")+" is outside of the server's own folder", "the server's own folder")
	}
	return ""
}

// ownedByServer is why nothing is restored into the schemas of the server itself: no backup has them.
const ownedByServer = "it belongs to the server itself"

// forgedSchema says the same of a schema.
func (r *run) forgedSchema(m *repo.Schema) string {
	c, err := r.dialect(nil).ReadCreate(m.Create)
	switch {
	case err != nil:
		return err.Error()
	case mysql.SystemSchema(m.Name):
		return ownedByServer
	case c.Kind != "DATABASE":
		return "its definition is a CREATE " + c.Kind
	case !strings.EqualFold(c.Name.Name, m.Name):
		return "its definition makes " + identName(c.Name)
	}
	return ""
}

// named reports whether a name is that of a schema's object.
func named(n sqltext.Ident, schema, name string) bool {
	return strings.EqualFold(n.Name, name) && (n.Schema == "" || strings.EqualFold(n.Schema, schema))
}

func identName(n sqltext.Ident) string {
	if n.Schema == "" {
		return mysql.Quote(n.Name)
	}
	return mysql.Quote(n.Schema) + "." + mysql.Quote(n.Name)
}

// refuse notes what must not run.
func (r *run) refuse(what, why string) {
	const most = 5 // so many are named
	if r.forgeries++; r.forgeries <= most {
		r.forged = append(r.forged, what+": "+why)
	}
}

// refusal is the error about what must not run, or nil.
func (r *run) refusal() error {
	if r.forgeries == 0 {
		return nil
	}
	more := ""
	if n := r.forgeries - len(r.forged); n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}
	return fmt.Errorf("%w: %s%s", ErrForged, strings.Join(r.forged, "; "), more)
}
