package advise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

func tableName(p Program) mysql.TableName { return mysql.TableName{Schema: p.Schema, Name: p.Name} }

// brokenViews are views that cannot be read.
func brokenViews(s *Server) (list []Finding) {
	for _, v := range s.Views {
		list = append(list, Finding{Object: v.Schema + "." + v.Name, Severity: fleet.SeverityWarning, What: "view " + v.Schema + "." + v.Name + " cannot be read", Why: "statements that use it fail, and so do programs that look at all tables, backups among them",
			Evidence: []string{v.Fault}, Advice: "make what it selects from, or give its definer the rights to it; or drop it", Cost: Cost{Risk: "statements fail"}})
	}
	return list
}

// programs that one finding names.
const exampleObjects = 5

// missingDefiners are accounts that do not exist, and with whose rights something runs.
func missingDefiners(s *Server) (list []Finding) {
	if s.Accounts == nil {
		return nil
	}
	of := map[string][]Program{}
	for _, p := range s.Programs {
		if p.Definer != "" && !s.Accounts[p.Definer] && !s.Accounts[strings.ToLower(p.Definer)] && !strings.HasPrefix(p.Definer, "mysql.") {
			of[p.Definer] = append(of[p.Definer], p)
		}
	}
	for definer, programs := range of {
		f := Finding{Object: definer, Severity: fleet.SeverityInfo, Why: "what runs with its rights fails, with error 1449", Cost: Cost{Risk: "statements fail"},
			Advice: "make the account, locked and with the rights that they need, or make them anew with another definer: CREATE USER " + mysql.QuoteAccount(definer) + " ACCOUNT LOCK"}
		for _, p := range programs {
			if !p.Invoker {
				f.Severity = fleet.SeverityWarning
			}
			if len(f.Evidence) < exampleObjects {
				f.Evidence = append(f.Evidence, p.Kind+" "+p.Schema+"."+p.Name)
			}
		}
		if more := len(programs) - exampleObjects; more > 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("and %d more", more))
		}
		f.What = fmt.Sprintf("account %s does not exist, and %s with its rights", definer, digits.Plural(len(programs), "object runs", "objects run"))
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b Finding) int { return strings.Compare(a.Object, b.Object) })
	return list
}

// orphans are stored programs of schemas that do not exist.
func orphans(s *Server) (list []Finding) {
	for _, p := range s.Programs {
		if p.Orphan {
			list = append(list, Finding{Object: p.Schema + "." + p.Name, Severity: fleet.SeverityInfo, What: p.Kind + " " + p.Schema + "." + p.Name + " is of a schema that does not exist", Why: "it comes back when somebody makes a schema of that name, and an upgrade may stop at it",
				Evidence: []string{"definer " + p.Definer}, Advice: "make the schema, look at what it does, and drop it"})
		}
	}
	return list
}
