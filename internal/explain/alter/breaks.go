package alter

import (
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sqltext"
)

// View is a view that selects from the table.
type View struct {
	Name mysql.TableName
	Text string // its SELECT, as the server shows it
}

// TakesNames reports whether the statement may take a name away that views and programs use.
func (s Statement) TakesNames() bool {
	return s.RenamedTo != nil || len(s.Renamed) > 0 || slices.ContainsFunc(sqltext.Words(sqltext.Tokens(s.Body)), func(w string) bool { return strings.EqualFold(w, "DROP") })
}

// breakWords says which triggers and views use what is not there afterwards: the server alters the table all the same.
func breakWords(f *Facts, st Statement, after string, add adder) {
	now, err := define.ParseTable(st.Table.Schema, after)
	if err != nil {
		return
	}
	var gone []string
	for _, c := range f.Table.Columns {
		if _, there := now.Column(c.Name); !there {
			gone = append(gone, c.Name)
		}
	}
	for _, t := range f.Triggers {
		if c := used(sqltext.Tokens(t.Create), gone, "NEW", "OLD"); c != "" {
			add("breaks", "the trigger %s uses the column %s, which is not there afterwards: the writes that fire it fail", mysql.Quote(t.Name), c)
		}
	}
	for _, v := range f.Views {
		t := sqltext.Tokens(v.Text)
		switch c := used(t, gone, aliases(t, st.Table)...); {
		case st.RenamedTo != nil:
			add("breaks", "the view %s selects from the table by the name that it has now: it cannot be read afterwards", v.Name)
		case c != "":
			add("breaks", "the view %s uses the column %s, which is not there afterwards: it cannot be read then", v.Name, c)
		}
	}
}

// aliases are what a view calls the table: its name, and what follows it.
func aliases(t []sqltext.Token, table mysql.TableName) []string {
	names := []string{table.Name}
	for i := 2; i+1 < len(t); i++ {
		if t[i].Text == table.Name && t[i-1].Text == "." && t[i-2].Text == table.Schema && t[i+1].Kind == sqltext.TokenName {
			names = append(names, t[i+1].Text)
		}
	}
	return names
}

// used is the first of some columns that a text names behind one of the prefixes; "" none.
func used(t []sqltext.Token, columns []string, prefixes ...string) string {
	for i := 2; i < len(t); i++ {
		fold := func(text string) func(string) bool {
			return func(s string) bool { return strings.EqualFold(s, text) }
		}
		if t[i-1].Text != "." || !t[i].Name() || !slices.ContainsFunc(prefixes, fold(t[i-2].Text)) {
			continue
		}
		if k := slices.IndexFunc(columns, fold(t[i].Text)); k >= 0 {
			return columns[k]
		}
	}
	return ""
}
