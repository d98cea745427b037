package define

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// BlindError says that an account may not see all that is wanted. Servers do not answer with an error then: they show less.
type BlindError struct {
	Account string   // quoted, as GRANT takes it
	What    []string // that may be missing, in words
	Counted string   // what the server counts compared with what the account sees; "" if nothing differs
	Grants  []string // the statements that fix it
	Part    bool     // some of it is visible and readable: a part can be taken as it is
}

func (e *BlindError) Error() string {
	s := fmt.Sprintf("%s may not see everything needed: %s", e.Account, strings.Join(e.What, "; "))
	if e.Counted != "" {
		s += "; " + e.Counted
	}
	return s
}

// Remedy is how to fix it.
func (e *BlindError) Remedy() string {
	return "run " + strings.Join(e.Grants, "; ")
}

// need is a privilege without which something is missing silently.
type need struct {
	any  []string // one of them is enough
	what string   // is missing
	// programs: not relevant if only tables are wanted; whole: nor if only parts of schemas are wanted.
	programs, whole bool
}

var needs = []need{
	{[]string{"SELECT"}, "tables and views without SELECT", false, false},
	{[]string{"TRIGGER"}, "triggers without TRIGGER", true, false},
	{[]string{"EVENT"}, "events without EVENT", true, true},
}

// routines may be seen with any of these.
var routines = []string{"EXECUTE", "ALTER ROUTINE", "CREATE ROUTINE", "SHOW_ROUTINE", "SHOW CREATE ROUTINE"}

// Scope is what somebody wants to see.
type Scope struct {
	Open    bool // all that there is, so that the account has to see what it does not know of
	Schemas []string
	Tables  []mysql.TableName
	Views   []mysql.TableName // whose definitions are wanted
	// Programs says of which schemas triggers, events and routines are wanted, too; nil: of none.
	Programs func(schema string) bool
	Seen     []TableInfo // tables that were seen: if all is wanted they are compared with the server's own count; nil: they are not
}

// Blind says what of a scope the session's account may not see; nil when it sees all of it.
func Blind(ctx context.Context, s *mysql.Stream, server mysql.Server, o Scope) (*BlindError, error) {
	rights, err := s.Rights(ctx)
	if err != nil {
		return nil, err
	}
	b := blind(rights, server, o)
	if b == nil || o.Seen == nil || !o.Open {
		return b, nil
	}
	tables, schemas, known, err := s.InnoDBTables(ctx, server)
	if err != nil || !known {
		return b, err
	}
	seen, in := 0, map[string]bool{}
	for _, t := range o.Seen {
		if t.Engine == "InnoDB" {
			seen++
			in[t.Schema] = true
		}
	}
	if tables > seen {
		b.Counted = fmt.Sprintf("the server has %s in %s, the account sees %d in %d", digits.Counted(tables, "InnoDB table"), digits.Counted(schemas, "schema"), seen, len(in))
	}
	return b, nil
}

// tableGrants are the statements that let the account have all of one table, or view, and nothing else.
func tableGrants(r mysql.Rights, server mysql.Server, t mysql.TableName, o Scope) []string {
	privileges, account := "SELECT", server.QuotedAccount()
	i := slices.IndexFunc(o.Seen, func(s TableInfo) bool { return s.TableName == t })
	switch {
	case o.Programs == nil:
	case slices.Contains(o.Views, t):
		privileges += ", SHOW VIEW"
	case i >= 0:
		privileges += ", TRIGGER"
	default: // what it is, the account may not see
		privileges += ", SHOW VIEW, TRIGGER"
	}
	list := []string{"GRANT " + privileges + " ON " + t.String() + " TO " + account}
	if o.Programs != nil && i >= 0 && !mysql.Transactional(o.Seen[i].Engine) && !mysql.Elsewhere(o.Seen[i].Engine) && !r.Have(t.Schema, "", "LOCK TABLES") {
		list = append(list, "GRANT LOCK TABLES ON "+mysql.QuoteGrantSchema(t.Schema)+".* TO "+account)
	}
	return list
}

func blind(r mysql.Rights, server mysql.Server, o Scope) *BlindError {
	b := &BlindError{Account: server.QuotedAccount()}
	add := func(what string, grants ...string) {
		if !slices.Contains(b.What, what) {
			b.What = append(b.What, what)
		}
		for _, g := range grants {
			if !slices.Contains(b.Grants, g) {
				b.Grants = append(b.Grants, g)
			}
		}
	}
	programs := func(schema string) bool { return o.Programs != nil && o.Programs(schema) }
	grants := func(schema string, open bool) []string {
		switch {
		case open && o.Programs != nil:
			return []string{server.BackupGrants()}
		case open:
			return []string{"GRANT SELECT ON *.* TO " + server.QuotedAccount()}
		case o.Programs != nil:
			return server.SchemaGrants(schema)
		}
		return []string{"GRANT SELECT ON " + mysql.QuoteGrantSchema(schema) + ".* TO " + server.QuotedAccount()}
	}
	if o.Open && !r.Have("", "", "SELECT", "SHOW DATABASES") {
		add("whole schemas without SELECT or SHOW DATABASES on *.*", grants("", true)...)
	}
	for _, n := range needs {
		if n.programs && o.Programs == nil || o.Open && r.Have("", "", n.any...) {
			continue
		}
		for _, s := range o.Schemas {
			if (!n.whole || programs(s)) && !r.Have(s, "", n.any...) {
				add(n.what+" on "+mysql.Quote(s), grants(s, o.Open)...)
			}
		}
		for _, t := range o.Tables {
			if !n.whole && !r.Have(t.Schema, t.Name, n.any...) {
				add(n.what+" on "+t.String(), tableGrants(r, server, t, o)...)
			}
		}
	}
	for _, v := range o.Views {
		if !r.Have(v.Schema, v.Name, "SHOW VIEW") {
			list := grants(v.Schema, o.Open)
			if !o.Open && !slices.Contains(o.Schemas, v.Schema) {
				list = tableGrants(r, server, v, o)
			}
			add("definitions of views without SHOW VIEW on "+mysql.Quote(v.Schema), list...)
		}
	}
	for _, s := range o.Schemas {
		if programs(s) && !r.Have("", "", "SELECT", "SHOW_ROUTINE", "SHOW CREATE ROUTINE") && !r.Have("mysql", "proc", "SELECT") && !r.Have(s, "", routines...) {
			add("routines without EXECUTE on "+mysql.Quote(s), grants(s, o.Open)...)
		}
	}
	if len(b.What) == 0 {
		return nil
	}
	const named = 5
	if more := len(b.What) - named; more > 0 {
		b.What = append(b.What[:named], fmt.Sprintf("and %d more", more))
	}
	return b
}
