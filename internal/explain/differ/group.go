package differ

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/pattern"
)

// Drift is how each server of a group differs from what most of them have.
type Drift struct {
	Servers []*Report `json:"servers"` // A is the majority
	// Split are the things of which no value is that of more than half of the servers: there the first server's counts as usual.
	Split []string `json:"split,omitempty"`
}

// Group compares each of three or more servers with their majority.
func Group(list []*Description, schemas bool) *Drift {
	out := &Drift{}
	m := &Description{Name: "what most of them have", Server: list[0].Server}
	v := &vote{list: list, out: out}
	m.Server = v.server()
	m.Build = electMap(v, "", AreaServer, func(d *Description) map[string]string { return d.Build }, func(_ string, s string) string { return s })
	m.Variables = electMap(v, "", AreaVariables, func(d *Description) map[string]string { return d.Variables }, func(name, s string) string { return normal(name, s) })
	m.Plugins = electMap(v, "plug-in ", AreaPlugins, func(d *Description) map[string]string { return d.Plugins }, func(_, s string) string { return s })
	m.Engines = electMap(v, "engine ", AreaEngines, func(d *Description) map[string]string { return d.Engines }, func(_, s string) string { return s })
	m.Collations = electMap(v, "character set ", AreaCharsets, func(d *Description) map[string]string { return d.Collations }, func(_, s string) string { return s })
	m.Zones = electMap(v, "", AreaZones, func(d *Description) map[string]string { return map[string]string{"time zones": d.Zones} }, func(_, s string) string { return s })["time zones"]
	m.Accounts = electMap(v, "account ", AreaAccounts, func(d *Description) map[string]Account { return d.Accounts }, func(_ string, a Account) string { return text(a) + a.Secret })
	m.Schemas = v.schemas()
	m.Changed = electMap(v, "", AreaVariables, func(d *Description) map[string]string { return d.Changed }, func(_, s string) string { return "" })
	slices.Sort(out.Split)
	for _, d := range list {
		out.Servers = append(out.Servers, Compare(m, d, schemas))
	}
	return out
}

// vote finds what most servers have.
type vote struct {
	list []*Description
	out  *Drift
}

// server is what most of them are.
func (v *vote) server() fleet.Server {
	count := map[string]int{}
	best := v.list[0].Server
	for _, d := range v.list {
		if count[d.Server.String()]++; count[d.Server.String()] > count[best.String()] {
			best = d.Server
		}
	}
	return best
}

// text is a value in a form that compares.
func text(value any) string {
	b, _ := json.Marshal(value) // of structs of text
	return string(b)
}

// normal is a variable's value in a form in which values that mean the same are the same, as far as a text alone shows it.
func normal(name, value string) string {
	if named(name) {
		return ""
	}
	if sets[canonical(name)] {
		return text(words(value))
	}
	if t, ok := truths[strings.ToLower(value)]; ok {
		return t
	}
	if r, ok := amount(value); ok {
		return r.RatString()
	}
	return value
}

// electMap elects each entry of a map among the servers on which the area was read; one that most of them lack is left out.
func electMap[V any](v *vote, what, area string, of func(*Description) map[string]V, key func(name string, value V) string) map[string]V {
	names, read := map[string]bool{}, 0
	for _, d := range v.list {
		if of(d) != nil && d.missing(area) == nil {
			read++
			maps.Copy(names, union(of(d), nil))
		}
	}
	out := map[string]V{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		count, first := map[string]int{}, map[string]V{}
		var order []string
		for _, d := range v.list {
			if of(d) == nil || d.missing(area) != nil {
				continue
			}
			k, value := "(none)", of(d)[name]
			if _, ok := of(d)[name]; ok {
				k = "=" + key(name, value)
			}
			if count[k]++; count[k] == 1 {
				order = append(order, k)
				first[k] = value
			}
		}
		best := order[0]
		for _, k := range order {
			if count[k] > count[best] {
				best = k
			}
		}
		if 2*count[best] <= read && what+name != "" && !named(name) {
			v.out.Split = append(v.out.Split, what+name)
		}
		if best != "(none)" {
			out[name] = first[best]
		}
	}
	return out
}

// schemas elects the schemas' parts one by one.
func (v *vote) schemas() map[string]Schema {
	all := electMap(v, "schema ", AreaSchemas, func(d *Description) map[string]Schema { return d.Schemas }, func(string, Schema) string { return "" })
	for name, s := range all {
		part := &vote{out: v.out}
		for _, d := range v.list {
			if _, ok := d.Schemas[name]; ok {
				part.list = append(part.list, d)
			}
		}
		s.Faults = nil
		s.Create = electMap(part, "schema ", AreaSchemas, func(d *Description) map[string]string { return map[string]string{name: d.Schemas[name].Create} }, func(_, c string) string { return c })[name]
		s.Tables = electMap(part, "table "+name+".", AreaSchemas, func(d *Description) map[string]string { return d.Schemas[name].Tables }, func(_, c string) string { return withoutCounter(c) })
		s.Objects = electMap(part, name+": ", AreaSchemas, func(d *Description) map[string]Object { return d.Schemas[name].Objects }, func(_ string, o Object) string { return text(o) })
		all[name] = s
	}
	return all
}

// counter is the next AUTO_INCREMENT in a CREATE TABLE, which is data.
var counter = pattern.Lazy(` AUTO_INCREMENT=[0-9]+`)

func withoutCounter(create string) string { return counter().ReplaceAllString(create, "") }
