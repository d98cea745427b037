package differ

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/define/alike"
)

// Difference is one difference between two servers.
type Difference struct {
	Rank Rank   `json:"rank"`
	Area string `json:"area"`
	Name string `json:"name"` // sql_mode, shop.orders, 'app'@'%'
	// A and B are what the two have, where that is short; "" in one that has it not. Nothing secret is in them.
	A    string   `json:"a,omitempty"`
	B    string   `json:"b,omitempty"`
	What []string `json:"what,omitempty"` // how they differ, where A and B do not show it: here is A, there is B
	Why  string   `json:"why"`            // why it matters
}

// Report is how two servers differ.
type Report struct {
	A           string       `json:"a"`
	B           string       `json:"b"`
	Differences []Difference `json:"differences"` // the worst first
	// NotCompared is what of them could not be compared, and why. It may differ.
	NotCompared []NotCompared `json:"not_compared,omitempty"`
	Compared    []string      `json:"compared"` // the areas that were
	Counts      map[Rank]int  `json:"counts"`
}

// NotCompared is what could not be compared.
type NotCompared struct {
	Server string `json:"server,omitempty"` // on which it could not be read; "": it was read, but says nothing about the other
	Area   string `json:"area"`
	fleet.Trouble
}

// Worst is the number of differences of a rank or a worse one.
func (r *Report) Worst(rank Rank) (n int) {
	for _, k := range Ranks() {
		n += r.Counts[k]
		if k == rank {
			break
		}
	}
	return n
}

// comparison is one at work.
type comparison struct {
	a, b *Description
	out  *Report
	// exact: both write definitions down in one way.
	exact bool
}

// Compare says how two servers differ. schemas: their schemas, too.
func Compare(a, b *Description, schemas bool) *Report {
	c := &comparison{a: a, b: b, out: &Report{A: a.Name, B: b.Name, Counts: map[Rank]int{}}}
	c.exact = a.Server.Flavour == b.Server.Flavour && a.Server.Number == b.Server.Number
	for _, part := range []struct {
		area string
		do   func()
	}{{AreaServer, c.server}, {AreaVariables, c.variables}, {AreaPlugins, c.plugins}, {AreaEngines, c.engines}, {AreaCharsets, c.charsets},
		{AreaZones, c.zones}, {AreaAccounts, c.accounts}, {AreaSchemas, c.schemas}} {
		if part.area == AreaSchemas && !schemas {
			continue
		}
		if c.readable(part.area) {
			c.out.Compared = append(c.out.Compared, part.area)
			part.do()
		}
	}
	c.sort()
	return c.out
}

// readable notes what of an area was not read, and says whether there is something to compare.
func (c *comparison) readable(area string) bool {
	for _, d := range []*Description{c.a, c.b} {
		for _, u := range d.Unread {
			if u.Area == area {
				c.open(d.Name, area, u.Trouble)
			}
		}
	}
	return c.a.missing(area) == nil && c.b.missing(area) == nil
}

func (c *comparison) open(server, area string, t fleet.Trouble) {
	c.out.NotCompared = append(c.out.NotCompared, NotCompared{server, area, t})
}

func (c *comparison) add(d Difference) {
	c.out.Differences = append(c.out.Differences, d)
	c.out.Counts[d.Rank]++
}

// sort puts the worst first, and what belongs together next to each other.
func (c *comparison) sort() {
	ranks := Ranks()
	areas := []string{AreaServer, AreaSchemas, AreaAccounts, AreaVariables, AreaPlugins, AreaEngines, AreaCharsets, AreaZones}
	slices.SortStableFunc(c.out.Differences, func(x, y Difference) int {
		if n := slices.Index(ranks, x.Rank) - slices.Index(ranks, y.Rank); n != 0 {
			return n
		}
		if n := slices.Index(areas, x.Area) - slices.Index(areas, y.Area); n != 0 {
			return n
		}
		return strings.Compare(x.Name, y.Name)
	})
}

// server compares what they are.
func (c *comparison) server() {
	a, b := c.a.Server, c.b.Server
	switch {
	case !a.SameKind(b):
		c.add(Difference{RankData, AreaServer, "flavour", a.String(), b.String(), nil, "files of one cannot be read by the other, GTIDs are of two kinds, and their SQL parts more with each version"})
	case a.Flavour != b.Flavour:
		c.add(Difference{RankBehaviour, AreaServer, "flavour", a.String(), b.String(), nil, "one has features and variables that the other lacks"})
	case !a.Number.SameSeries(b.Number):
		c.add(Difference{RankData, AreaServer, "version", a.Version, b.Version, nil, "a newer replica can follow an older primary, not the other way round; files go only to the newer one"})
	case a.Number != b.Number:
		c.add(Difference{RankBehaviour, AreaServer, "version", a.Version, b.Version, nil, "mended faults, and new ones, are on one of them only; within a series files can need the newer one"})
	}
	for _, name := range slices.Sorted(maps.Keys(union(c.a.Build, c.b.Build))) {
		x, y := c.a.Build[name], c.b.Build[name]
		if x == y {
			continue
		}
		rank, why := RankNames, "the same server built otherwise"
		if name == "version_compile_machine" || name == "version_compile_os" {
			rank, why = RankBehaviour, "on another processor or system a physical copy may not start, and floating-point results can differ in the last digit"
		}
		c.add(Difference{rank, AreaServer, name, x, y, nil, why})
	}
}

func union[V any](a, b map[string]V) map[string]bool {
	out := make(map[string]bool, len(a)+len(b))
	for k := range a {
		out[k] = true
	}
	for k := range b {
		out[k] = true
	}
	return out
}

// byCanonical are a description's variables by their newest names, and how each is called there.
func byCanonical(d *Description) (values, names map[string]string) {
	values, names = map[string]string{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(d.Variables)) {
		n := canonical(name)
		if _, ok := d.Variables[n]; ok && n != name { // it has both
			continue
		}
		values[n], names[n] = d.Variables[name], name
	}
	return values, names
}

// variables compares the global variables.
func (c *comparison) variables() {
	x, namesA := byCanonical(c.a)
	y, namesB := byCanonical(c.b)
	var onlyA, onlyB []string
	for _, name := range slices.Sorted(maps.Keys(union(x, y))) {
		va, inA := x[name]
		vb, inB := y[name]
		switch {
		case inA && !inB:
			onlyA = append(onlyA, name)
		case inB && !inA:
			onlyB = append(onlyB, name)
		case va == hidden && vb == hidden:
			c.open("", AreaVariables, fleet.Trouble{What: name, Why: "it is a secret, and is not read"})
		case !sameValue(name, va, vb):
			c.variable(name, namesA[name], namesB[name], va, vb)
		}
	}
	c.onlyOn(onlyA, c.a, c.b, namesA, x, true)
	c.onlyOn(onlyB, c.b, c.a, namesB, y, false)
}

// hidden stands for a secret value: package mysql/read writes it.
const hidden = "(hidden)"

// variable adds the difference in a variable that both have.
func (c *comparison) variable(name, nameA, nameB, a, b string) {
	m := meaningOf(name)
	d := Difference{Rank: m.rank, Area: AreaVariables, Name: nameB, A: orEmpty(a), B: orEmpty(b), Why: m.why}
	if strings.HasPrefix(a, "/") && strings.HasPrefix(b, "/") {
		d.Rank, d.Why = RankNames, "two paths: any two servers differ in these"
	}
	if nameA != nameB {
		d.Name = nameA + " / " + nameB
	}
	if sets[name] {
		onlyA, onlyB := flags(a, b)
		d.A, d.B = strings.Join(onlyA, ","), strings.Join(onlyB, ",")
		if name == "optimizer_switch" && !c.exact { // switches that one does not know are its version's
			d.A, d.B = c.bothKnow(onlyA, onlyB, a, b)
			if d.A == "" && d.B == "" {
				d.A, d.B = strings.Join(onlyA, ","), strings.Join(onlyB, ",")
				d.Rank, d.Why = RankVersion, "each version knows other switches; those that both know are set alike"
			}
		}
		d.What = setWords(d.A, d.B)
	}
	if d.Rank != RankNames && d.Rank != RankVersion && !c.exact && c.unset(c.a, nameA) && c.unset(c.b, nameB) {
		d.Why = "neither was set, the versions have other defaults: " + d.Why
		d.Rank = RankVersion
	}
	c.add(d)
}

// bothKnow are the switches, name=on, that both know and that differ.
func (c *comparison) bothKnow(onlyA, onlyB []string, a, b string) (x, y string) {
	keep := func(list []string, other string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(list), func(w string) bool {
			name, _, _ := strings.Cut(w, "=")
			return !strings.Contains(","+other, ","+name+"=")
		}), ",")
	}
	return keep(onlyA, b), keep(onlyB, a)
}

func setWords(a, b string) (out []string) {
	if a != "" {
		out = append(out, "only here: "+a)
	}
	if b != "" {
		out = append(out, "only there: "+b)
	}
	return out
}

// unset reports whether a server says that a variable has its compiled-in value.
func (c *comparison) unset(d *Description, name string) bool {
	if d.Changed == nil { // of 5.7 the values of its defaults are known
		value, ok := oldDefaults[name]
		return ok && !d.Server.AtLeast(80000, 0) && d.Server.AtLeast(50700, 0) && sameValue(name, value, d.Variables[name])
	}
	_, set := d.Changed[name]
	return !set
}

func orEmpty(s string) string {
	if s == "" {
		return "(empty)"
	}
	return s
}

// onlyOn adds variables that one of them does not have: those that were set, and the rest as one difference.
func (c *comparison) onlyOn(list []string, has, lacks *Description, names, values map[string]string, here bool) {
	rest := []string{}
	for _, name := range list {
		_, set := has.Changed[names[name]]
		if !set || named(name) {
			rest = append(rest, names[name])
			continue
		}
		m := meaningOf(name)
		if m.rank == RankVersion || m.rank == RankNames {
			m.rank = RankBehaviour
		}
		d := Difference{Rank: m.rank, Area: AreaVariables, Name: names[name], A: orEmpty(values[name]), Why: "it is set on " + has.Name + ", and " + lacks.Name + " has no such variable: " + m.why}
		if !here {
			d.A, d.B = "", d.A
		}
		c.add(d)
	}
	if len(rest) == 0 {
		return
	}
	d := Difference{Rank: RankVersion, Area: AreaVariables, Name: fmt.Sprintf("%d variables only on %s", len(rest), has.Name),
		Why: "they belong to its version, or to a plug-in that is loaded there; they have their default values"}
	if has.Changed == nil {
		d.Why = "they belong to its version, or to a plug-in that is loaded there; this server does not tell which of them were set"
	}
	d.What = []string{strings.Join(rest, ", ")}
	c.add(d)
}

// plugins compares what is loaded. A plug-in that both builds have and one does not load counts more than one that a version brings.
func (c *comparison) plugins() {
	for _, name := range slices.Sorted(maps.Keys(union(c.a.Plugins, c.b.Plugins))) {
		x, inA := c.a.Plugins[name]
		y, inB := c.b.Plugins[name]
		kindA, stateA := cutState(x)
		kindB, stateB := cutState(y)
		if inA && inB && stateA == stateB {
			continue
		}
		d := Difference{Rank: RankBehaviour, Area: AreaPlugins, Name: name, A: x, B: y, Why: pluginWhy(kindA + kindB)}
		if !c.a.Server.SameKind(c.b.Server) || !c.exact && (!inA || !inB) {
			d.Rank = RankVersion
			d.Why = "one version brings it and the other may not: " + d.Why
		}
		if d.Rank == RankBehaviour && strings.Contains(kindA+kindB, "REPLICATION") || strings.Contains(name, "semisync") || strings.Contains(name, "semi_sync") {
			d.Rank = RankData
		}
		c.add(d)
	}
}

// cutState is the type of a plug-in, and whether it is active; its version goes with the server's.
func cutState(text string) (kind, state string) {
	state, rest, _ := strings.Cut(text, " ")
	return rest, state
}

func pluginWhy(kind string) string {
	switch {
	case strings.Contains(kind, "AUTHENTICATION"):
		return "accounts that log in by it can do so on one of them only"
	case strings.Contains(kind, "STORAGE ENGINE"):
		return "tables of this engine can be used on one of them only"
	case strings.Contains(kind, "AUDIT"):
		return "who did what is written down on one of them only"
	case strings.Contains(kind, "PASSWORD VALIDATION"):
		return "weak passwords are refused by one of them only"
	case strings.Contains(kind, "REPLICATION"):
		return "replication works otherwise"
	case strings.Contains(kind, "KEY") || strings.Contains(kind, "ENCRYPTION"):
		return "encrypted tables can be read on one of them only"
	}
	return "what it does is done on one of them only"
}

func (c *comparison) engines() {
	on := func(s string) bool { return s == "YES" || s == "DEFAULT" }
	for _, name := range slices.Sorted(maps.Keys(union(c.a.Engines, c.b.Engines))) {
		x, y := c.a.Engines[name], c.b.Engines[name]
		if on(x) == on(y) {
			continue // which one is the default is a variable
		}
		rank := RankBehaviour
		if !c.exact {
			rank = RankVersion
		}
		c.add(Difference{rank, AreaEngines, name, x, y, nil, "tables of this engine can be used on one of them only"})
	}
}

// charsets compares what a character set means without a collation.
func (c *comparison) charsets() {
	a, b := newNames(c.a.Collations), newNames(c.b.Collations)
	for _, name := range slices.Sorted(maps.Keys(union(a, b))) {
		x, y := a[name], b[name]
		if x == y {
			continue
		}
		d := Difference{RankBehaviour, AreaCharsets, name, x, y, nil, "a column of this character set without a collation compares and sorts text otherwise"}
		if x == "" || y == "" {
			d.Rank, d.Why = RankVersion, "one of them does not know the character set"
		}
		c.add(d)
	}
}

func newNames(list alike.Collations) map[string]string {
	out := map[string]string{}
	for k, v := range list {
		out[alike.CharsetName(k)] = alike.CharsetName(v)
	}
	return out
}

func (c *comparison) zones() {
	if c.a.Zones != c.b.Zones {
		c.add(Difference{RankBehaviour, AreaZones, "named time zones", c.a.Zones, c.b.Zones, nil, "where the tables are empty, CONVERT_TZ with a name is NULL and SET time_zone with a name fails"})
	}
}

// accounts compares users and roles.
func (c *comparison) accounts() {
	unknown := 0
	for _, name := range slices.Sorted(maps.Keys(union(c.a.Accounts, c.b.Accounts))) {
		x, inA := c.a.Accounts[name]
		y, inB := c.b.Accounts[name]
		if !inA || !inB {
			d := Difference{Rank: RankBehaviour, Area: AreaAccounts, Name: name, A: "exists", Why: "who logs in as this account can do so on one of them only: after a failover the application is refused"}
			if !inA {
				d.A, d.B = "", d.A
			}
			c.add(d)
			continue
		}
		if x.Secret == "" || y.Secret == "" {
			unknown++
		}
		var what []string
		if !slices.Equal(x.Plugins, y.Plugins) {
			what = append(what, "it logs in by "+orNone(x.Plugins)+" here and by "+orNone(y.Plugins)+" there")
		} else if x.Secret != "" && y.Secret != "" && x.Secret != y.Secret {
			what = append(what, "the hashes of its password differ (salted ones do for one password, too)")
		}
		if x.Options != y.Options && c.exact {
			what = append(what, "its options are "+orEmpty(x.Options)+" here and "+orEmpty(y.Options)+" there")
		}
		differs, open := alike.Objects(define.Definition{Kind: define.KindAccount, After: x.Grants}, define.Definition{Kind: define.KindAccount, After: y.Grants}, c.exact)
		if what = append(what, differs...); len(what) > 0 {
			c.add(Difference{Rank: RankBehaviour, Area: AreaAccounts, Name: name, What: what, Why: "after a failover, or on a server that was built from the other, it can do more or less, or cannot log in"})
		}
		if len(open) > 0 {
			c.open("", AreaAccounts, fleet.Trouble{What: name, Why: strings.Join(open, "; ")})
		}
	}
	if unknown > 0 {
		c.open("", AreaAccounts, fleet.Trouble{What: "passwords", Why: fmt.Sprintf("of %d accounts one side does not show a hash (a saved description holds none)", unknown)})
	}
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "no plug-in"
	}
	return strings.Join(list, " or ")
}
