package trial

import (
	"context"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/explain/differ/upgrade"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// words asks the new server whether it really reserves the names that rules say it does, and whether functions are gone.
func (t *trial) words(ctx context.Context, l *loader) error {
	if err := l.run(ctx, "SET SESSION sql_mode = ''"); err != nil {
		return err
	}
	reserved, gone := map[string]string{}, map[string]string{}
	for _, p := range t.out.Problems {
		switch p.ID {
		case "name.reserved":
			reserved[reservedWord(p)] = ""
		case "function.removed":
			gone[goneFunction(p)] = ""
		}
	}
	for word := range reserved {
		err := l.run(ctx, "SELECT /* risso: is it reserved? */ 1 AS "+word)
		if err != nil && mysql.ErrorNumber(err) != errno.ParseError {
			return err
		}
		if err != nil {
			reserved[word] = said(err)
		}
	}
	for name := range gone {
		// Without arguments one that exists is refused for its arguments, one that does not for its name.
		err := l.run(ctx, "DO /* risso: is there such a function? */ "+name+"()")
		if err != nil && mysql.ErrorNumber(err) == 0 {
			return err
		}
		if n := mysql.ErrorNumber(err); n == errno.NoSuchProgram || n == errno.NoDatabase || n == errno.ParseError {
			gone[name] = said(err)
		}
	}
	t.out.Problems = slices.DeleteFunc(t.out.Problems, func(p upgrade.Problem) bool {
		return p.ID == "name.reserved" && reserved[reservedWord(p)] == "" || p.ID == "function.removed" && gone[goneFunction(p)] == ""
	})
	for i := range t.out.Problems {
		p := &t.out.Problems[i]
		if said := reserved[reservedWord(*p)]; p.ID == "name.reserved" && said != "" {
			p.Tried, p.Said = true, said
		}
		if said := gone[goneFunction(*p)]; p.ID == "function.removed" && p.Said == "" && said != "" {
			p.Tried, p.Said = true, said
		}
	}
	return nil
}

// reservedWord is the word of a name.reserved: the last name of its object.
func reservedWord(p upgrade.Problem) string {
	at := strings.LastIndex(strings.TrimSuffix(p.Object, "`"), "`")
	return strings.ToLower(strings.Trim(p.Object[at+1:], "`"))
}

// goneFunction is the function of a function.removed.
func goneFunction(p upgrade.Problem) string {
	_, name, _ := strings.Cut(p.What, " calls ")
	return strings.TrimSuffix(name, "()")
}
