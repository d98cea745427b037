package load

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// tellDefiners says in the plan which programs run by the privileges of accounts that are not there: a server makes them, and refuses to run them
// (error 1449, ER_NO_SUCH_USER), and with a trigger each statement that would fire it. Views are opened at the end.
func (r *run) tellDefiners(ctx context.Context, s *session) error {
	of := map[string][]string{} // what is of a definer
	var order []string
	err := r.each([]repo.ObjectKind{repo.Function, repo.Procedure, repo.Package, repo.PackageBody, repo.Trigger, repo.Event}, func(o *repo.Object) error {
		if r.leftOut[objectKey(o)] || o.Kind == repo.Trigger && r.staysAway(o) {
			return nil
		}
		c, err := r.dialect(o).ReadCreate(o.Create)
		if err != nil {
			return err
		}
		definer := c.Definer.String()
		switch {
		case r.o.Definer != "" && r.o.definer() == "", c.Invoker, r.o.Definer == "" && (c.Definer.End == 0 || definer == "@"):
			return nil
		case r.o.Definer != "":
			definer = r.o.Definer
		}
		if of[definer] == nil {
			order = append(order, definer)
		}
		schema, name := r.choice.objectTarget(o)
		of[definer] = append(of[definer], string(o.Kind)+" "+mysql.Quote(schema)+"."+mysql.Quote(name))
		return nil
	})
	if err != nil {
		return err
	}
	there, err := r.accountsThen(ctx, s)
	unseen := mysql.ClassOf(err) == mysql.ClassPrivilege
	if err != nil && !unseen {
		return err
	}
	order = slices.DeleteFunc(order, func(definer string) bool { return there[accountKey(definer)] })
	for i, definer := range order {
		if i == maxNamed {
			r.tellBoth(digits.Plural(len(order)-i, "more definer of programs is", "more definers of programs are") + " not there, or not known to be")
			break
		}
		list := of[definer]
		text := strings.Join(list[:min(5, len(list))], ", ")
		if n := len(list) - 5; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		if unseen {
			r.tellBoth(fmt.Sprintf("it is unknown whether the definer %s exists, because this account may not read mysql.user; if not, these fail with error 1449: %s", definer, text))
			continue
		}
		r.tellBoth(fmt.Sprintf("the definer %s does not exist: until it is created (CREATE USER, and GRANT what it needs), these and statements that fire its triggers fail with error 1449: %s; --definer gives another one", definer, text))
	}
	return nil
}

// tellBoth puts a note into the plan and into the result.
func (r *run) tellBoth(note string) {
	r.plan.Notes = append(r.plan.Notes, note)
	r.notef("%s", note)
}

// accountsThen are the accounts that will be there at the end: those of the target, and those that are restored. If the account that restores may
// not read the first there are the others, with the error.
func (r *run) accountsThen(ctx context.Context, s *session) (map[string]bool, error) {
	there := map[string]bool{accountKey(r.server.Account): true}
	err := r.eachAccount(func(o *repo.Object) error {
		there[accountKey(o.Name)] = true
		return nil
	})
	if err != nil {
		return there, err
	}
	rows, err := s.QueryMaps(ctx, "SELECT /* risso: which accounts are there? */ User AS u, Host AS h FROM mysql.user")
	for _, m := range rows {
		there[accountKey(m["u"]+"@"+m["h"])] = true
		if m["h"] == "" { // a role of MariaDB
			there[m["u"]] = true
		}
	}
	return there, err
}

// accountKey names an account for a set: in hosts no case counts. Source: MySQL manual, "Specifying Account Names".
func accountKey(name string) string {
	i := strings.LastIndexByte(name, '@')
	if i < 0 {
		return name
	}
	return name[:i] + strings.ToLower(name[i:])
}
