package alike

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/mysql/define"
)

// KindSchema is the kind of a definition that is of a schema itself: its default character set and collation.
const KindSchema define.ObjectKind = "schema"

// Tables says how two CREATE TABLE statements, as servers show them, differ, and what of them cannot be compared. exact: both servers are of
// one version; else character sets and collations are left to the caller, because each version has its own defaults for them.
func Tables(here, there string, exact bool) (differs, open []string) {
	list, columns := tableElements(here, exact)
	rest, columnsThere := tableElements(there, exact)
	byName := map[string]element{}
	for _, e := range rest {
		byName[e.name] = e
	}
	for _, e := range list {
		o, ok := byName[e.name]
		delete(byName, e.name)
		switch {
		case !ok:
			differs = append(differs, "there is no "+e.name+" there")
		case e.text == o.text:
		case !exact && e.loose && o.loose:
			open = append(open, e.name+" has an expression, which other versions format differently")
		case e.name == "option connection" || strings.Contains(strings.ToLower(e.text+o.text), "password"): // of FEDERATED, SPIDER, CONNECT
			differs = append(differs, e.name+" is not the same; it may hold a password and is not shown")
		default:
			differs = append(differs, fmt.Sprintf("%s is %s here and %s there", e.name, e.text, o.text))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		differs = append(differs, name+" is only there")
	}
	shared := func(list, other []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(c string) bool { return !slices.Contains(other, c) })
	}
	if a, b := shared(columns, columnsThere), shared(columnsThere, columns); !slices.Equal(a, b) {
		differs = append(differs, "the columns are in another order: "+strings.Join(a, ", ")+" here, "+strings.Join(b, ", ")+" there")
	}
	return differs, open
}

// Objects says how two definitions of one object other than a table differ, and what cannot be compared. exact: both servers are of one
// version. Nothing secret is in the result.
func Objects(d, o define.Definition, exact bool) (differs, open []string) {
	here, there := programText(d.Create, exact), programText(o.Create, exact)
	if d.Kind == define.KindEvent && (replicated(here) || replicated(there)) {
		here, there = withoutStatus(here), withoutStatus(there)
	}
	switch {
	case here == there:
	case d.Kind == KindSchema && !exact: // each version has its own defaults
	case d.Kind == define.KindView && !exact:
		open = append(open, "other versions format its statement differently")
	case d.Kind == define.KindAccount && !exact:
		open = append(open, "other versions format passwords, limits and options differently")
	case d.Kind == define.KindAccount:
		differs = append(differs, "its password, limits or options differ")
	default:
		differs = append(differs, "its statement differs from here on: "+parting(here, there))
	}
	if d.Kind == define.KindAccount {
		return appendGrants(differs, open, d, o, exact)
	}
	if d.Table != o.Table {
		differs = append(differs, fmt.Sprintf("it is of table %s here and of %s there", d.Table, o.Table))
	}
	if !exact {
		return differs, open
	}
	for _, c := range []struct{ what, here, there string }{{"sql_mode", d.SQLMode, o.SQLMode}, {"character_set_client", d.Charset, o.Charset}, {"collation_connection", d.Collation, o.Collation},
		{"the collation of its schema", d.Database, o.Database}, {"time zone", d.TimeZone, o.TimeZone}} {
		if c.here != c.there {
			differs = append(differs, fmt.Sprintf("%s is %q here and %q there", c.what, c.here, c.there))
		}
	}
	return differs, open
}

// eventStates are how an event's statement says whether it runs: on a replica it says that it does not, whatever it does on the primary.
var eventStates = []string{" disable on slave", " disable on replica", " disable", " enable"}

func replicated(event string) bool {
	return strings.Contains(event, eventStates[0]) || strings.Contains(event, eventStates[1])
}

func withoutStatus(event string) string {
	head, body, _ := strings.Cut(event, " do ")
	for _, s := range eventStates {
		head = strings.Replace(head, s, "", 1)
	}
	return head + " do " + body
}

// appendGrants compares the grants of an account.
func appendGrants(differs, open []string, d, o define.Definition, exact bool) (_, _ []string) {
	set := func(list []string) map[string]bool {
		m := map[string]bool{}
		for _, g := range list {
			g, rest, _ := strings.Cut(g, " IDENTIFIED ") // MariaDB shows the hash of the password there
			if strings.Contains(rest, " WITH GRANT OPTION") {
				g += " WITH GRANT OPTION"
			}
			m[join(tokens(g))] = true
		}
		return m
	}
	a, b := set(d.After), set(o.After)
	if maps.Equal(a, b) {
		return differs, open
	}
	if !exact {
		return differs, append(open, "other versions have other privileges, and its grants are not the same")
	}
	for _, g := range slices.Sorted(maps.Keys(a)) {
		if !b[g] {
			differs = append(differs, "only here: "+g)
		}
	}
	for _, g := range slices.Sorted(maps.Keys(b)) {
		if !a[g] {
			differs = append(differs, "only there: "+g)
		}
	}
	return differs, open
}
