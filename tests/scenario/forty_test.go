package scenario_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/pattern"
)

// wrong is one of the forty checks: how it is made true on a real server, and how it ends.
type wrong struct {
	id     string
	object string // of the finding; a pattern, "" for any
	says   string // that the finding has among its words and evidence; "" for nothing
	stage  string // of a ward, in which it is true
	at     string // the server that has it, "" for the first of the stage
	// make makes it true. Nil: the server is so from its start.
	make func(t *testing.T, w *ward)
	// mend ends it by what the finding says, and how is what that was. Nil: nothing that can be run ends it.
	mend  func(t *testing.T, w *ward, f fleet.Advice)
	how   string
	not   map[string]string // by flavour, or of all: why it cannot be made true there
	stays map[string]string // by flavour: why it is found even after what it says was done
}

// answered is what risso advise answers.
type answered struct {
	Findings []fleet.Advice
	Servers  []struct {
		Name, Error string
		Unknown     []fleet.Trouble
	}
}

// find is the finding of a check on a server; false if there is none.
func (a answered) find(c *wrong, server string) (fleet.Advice, bool) {
	i := slices.IndexFunc(a.Findings, func(f fleet.Advice) bool {
		return f.ID == c.id && (c.object == "" || pattern.Stars(c.object, f.Object)) && (len(f.Servers) == 0 || slices.Contains(f.Servers, server)) &&
			strings.Contains(f.What+" "+strings.Join(f.Evidence, " "), c.says)
	})
	if i < 0 {
		return fleet.Advice{}, false
	}
	return a.Findings[i], true
}

// advise runs risso advise.
func advise(t *testing.T, args ...string) (a answered) {
	t.Helper()
	out, said, code := runRisso(t, nil, append([]string{"advise", "--output", "json"}, args...)...)
	if code != 0 {
		t.Fatalf("risso advise %q: code %d, %s", args, code, said)
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatal(err)
	}
	for _, s := range a.Servers {
		if s.Error != "" {
			t.Errorf("%s: %s", s.Name, s.Error)
		}
	}
	return a
}

// forty are the checks of the field, in the order of docs/advise.md.
func forty() []wrong {
	return slices.Concat(fortyOfReplicas(), fortyOfSettings(), fortyOfSchemas(), fortyOfStatements(), fortyOfAccounts(), fortyOfSessions(), fortyOfMachine())
}

// fortyIDs are all of them.
var fortyIDs = strings.Fields(`repl.stopped repl.errant_gtid repl.writable backup.stale disk.forecast durability.weak schema.autoinc conn.saturation schema.no_pk trx.long
	undo.history redo.pressure lock.blocker mdl.blocker query.full_scan query.examined_per_sent query.regressed index.missing index.redundant index.unused
	query.tmp_disk bp.starved mem.overcommit host.io_slow deadlock.rate repl.lag repl.config galera.flow_control binlog.retention sec.no_password
	sec.weak_auth sec.super_remote sec.tls pci.password_age pci.lockout sec.local_infile query.implicit_cast fk.unindexed config.drift ver.eol`)

// TestFortyAreListed: each of the forty is tried by a test or said why not, and risso advise --checks knows it.
func TestFortyAreListed(t *testing.T) {
	t.Parallel()
	var known struct{ Checks []struct{ ID string } }
	out, _, _ := runRisso(t, nil, "advise", "--checks", "--output", "json")
	if err := json.Unmarshal([]byte(out), &known); err != nil {
		t.Fatal(err)
	}
	if len(fortyIDs) != 40 {
		t.Fatalf("got %d checks, want 40", len(fortyIDs))
	}
	for _, id := range fortyIDs {
		if !slices.ContainsFunc(known.Checks, func(c struct{ ID string }) bool { return c.ID == id }) {
			t.Errorf("risso advise --checks has no %s", id)
		}
		if !slices.ContainsFunc(forty(), func(c wrong) bool { return c.id == id }) {
			t.Errorf("no test makes %s true", id)
		}
	}
}

// outcome is what became of a check on a flavour.
type outcome struct{ found, mended, stays, not string }

// words are for the table.
func (o outcome) words() string {
	switch {
	case o.not != "":
		return "not made true: " + o.not
	case o.found == "":
		return "NOT FOUND"
	case o.stays != "":
		return "found; stays: " + o.stays
	case o.mended == "":
		return "found"
	}
	return "found; gone after " + o.mended
}

// TestForty makes each of the forty checks true on real servers, few of them for all, and runs the built program: it finds each with its object, did not before, and
// does not any more after what it says was done.
func TestForty(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mariadb", "mysql-9.7"} {
		for _, place := range []string{"primary", "special", "pile"} {
			t.Run(kind+"/"+place, func(t *testing.T) {
				t.Parallel()
				w := newWard(t, kind, place)
				table := map[string]outcome{}
				before := w.advise(t)
				for _, stage := range w.stages {
					before = w.run(t, stage, before, table)
				}
				var list []string
				mended := 0
				for _, c := range forty() {
					if !w.has(&c) {
						continue
					}
					o := table[key(&c)]
					if o.mended != "" {
						mended++
					}
					list = append(list, fmt.Sprintf("%-24s %-28s %s", c.id, c.object, o.words()))
				}
				t.Logf("%s, %s (%s; remedies that ended their finding: %d):\n%s", kind, place, digits.Counted(len(list), "check"), mended, strings.Join(list, "\n"))
			})
		}
	}
}

func key(c *wrong) string { return c.id + " " + c.object + " " + c.says }

// of is what is said of the ward's flavour, or of all.
func (w *ward) of(said map[string]string) string { return cmp.Or(said[w.flavour], said[""]) }

// has reports whether one of the ward's stages makes a check true.
func (w *ward) has(c *wrong) bool { return slices.Contains(w.stages, c.stage) }

// run makes all checks of a stage true that can be, at the same time, has them found, and mends them. before is what was found before it, after what after it.
func (w *ward) run(t *testing.T, stage string, before answered, table map[string]outcome) (after answered) {
	t.Helper()
	var list []wrong
	for _, c := range forty() {
		switch {
		case c.stage != stage:
		case w.of(c.not) != "":
			table[key(&c)] = outcome{not: w.of(c.not)}
		default:
			list = append(list, c)
		}
	}
	for i := range list {
		c := &list[i]
		if f, found := before.find(c, w.server(c)); found && c.make != nil {
			t.Errorf("%s %s is found before it is true: %s", c.id, c.object, f.What)
		}
		if c.make != nil {
			c.make(t, w)
		}
	}
	var during answered
	found := map[string]fleet.Advice{}
	for tries := 12; tries > 0 && len(found) < len(list); tries-- { // a load that is under way may get no processor for a moment
		during = w.advise(t)
		for i := range list {
			if f, ok := during.find(&list[i], w.server(&list[i])); ok {
				found[key(&list[i])] = f
				table[key(&list[i])] = outcome{found: f.What}
			}
		}
	}
	for i := range list {
		if c := &list[i]; found[key(c)].ID == "" {
			t.Errorf("%s %s %q is true, and is not found", c.id, c.object, c.says)
		}
	}
	if t.Failed() {
		for _, f := range during.Findings {
			t.Logf("found: %s %s: %s", f.ID, f.Object, f.What)
		}
		for _, s := range during.Servers {
			t.Logf("%s, not known: %+v", s.Name, s.Unknown)
		}
	}
	w.rest(t)
	for i := range list {
		c := &list[i]
		if f, ok := found[key(c)]; ok && c.mend != nil {
			c.mend(t, w, f)
		}
	}
	after = w.advise(t)
	for i := range list {
		c := &list[i]
		if _, was := found[key(c)]; !was || c.mend == nil {
			continue
		}
		f, still := after.find(c, w.server(c))
		if w.of(c.stays) != "" {
			table[key(c)] = outcome{found: found[key(c)].What, stays: w.of(c.stays)}
			continue
		}
		if still {
			t.Errorf("%s %s is still found after %s (%s): %s", c.id, c.object, c.how, found[key(c)].Statement, f.What)
			continue
		}
		table[key(c)] = outcome{found: found[key(c)].What, mended: c.how}
	}
	return after
}
