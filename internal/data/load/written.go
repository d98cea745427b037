package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// dialect is how the target reads an object's definition; nil is a table.
func (r *run) dialect(o *repo.Object) sqltext.Dialect {
	d := r.server.DialectOf("")
	if o == nil || o.Kind == repo.View || o.Kind == repo.Sequence || o.Kind == repo.Account {
		return d // the session's own sql_mode
	}
	d = d.WithMode(r.sqlMode(o.SQLMode))
	d.Oracle = r.sourceDialect(o).Oracle
	return d
}

// sourceDialect is how the server of the backup read it.
func (r *run) sourceDialect(o *repo.Object) sqltext.Dialect {
	return r.source().DialectOf(o.SQLMode)
}

// source is what the server of the backup was able to do.
func (r *run) source() mysql.Server { return mysql.Of(r.header.Server.Server) }

// renamed is the name under which a schema is restored, if that is another one.
func (r *run) renamed(schema string) (string, bool) {
	if to, ok := r.choice.rename[[2]string{schema, ""}]; ok {
		return to[0], true
	}
	if v := r.header.Server.Variables["lower_case_table_names"]; v == "" || v == "0" {
		return "", false
	}
	for from, to := range r.choice.rename {
		if from[1] == "" && strings.EqualFold(from[0], schema) {
			return to[0], true
		}
	}
	return "", false
}

// renames reports whether a schema is restored under another name.
func (r *run) renames() bool {
	for from := range r.choice.rename {
		if from[1] == "" {
			return true
		}
	}
	return false
}

// written is an object's definition as it runs in the target: under the name that it has there, with schemas under theirs,
// with the definer that was asked for; an event is switched off.
func (r *run) written(o *repo.Object) (string, error) {
	d := r.dialect(o)
	c, err := d.ReadCreate(o.Create)
	if err != nil {
		return "", err
	}
	schema, name := r.choice.objectTarget(o)
	edits := renameOwn(renameOwn(nil, c.Name, o.Schema, o.Name, schema, name), c.On, o.Schema, o.Table, schema, o.Table)
	if c.State.Name == "ENABLE" {
		edits = append(edits, sqltext.Edit{Begin: c.State.Begin, End: c.State.End, Text: r.heldState()})
	}
	if r.o.Definer != "" && o.Kind != repo.Sequence {
		edits = append(edits, c.Replace(r.o.definer()))
	}
	edits, _ = r.renameIn(d, o.Create, edits)
	return r.translate(sqltext.Apply(o.Create, edits), o.SQLMode)
}

// renameOwn adds to edits the one that changes the current name to its schema and name in the target, if they differ.
func renameOwn(edits []sqltext.Edit, n sqltext.Ident, oldSchema, oldName, schema, name string) []sqltext.Edit {
	if n.End == 0 || schema == oldSchema && name == oldName {
		return edits
	}
	return append(edits, sqltext.Edit{Begin: n.Begin, End: n.End, Text: mysql.Quote(schema) + "." + mysql.Quote(name)})
}

// renameIn adds to edits those that rename schemas.
func (r *run) renameIn(d sqltext.Dialect, text string, edits []sqltext.Edit) ([]sqltext.Edit, []sqltext.Left) {
	if !r.renames() {
		return edits, nil
	}
	names, left := d.Rename(text, r.renamed)
	own := edits
	for _, n := range names {
		if !slices.ContainsFunc(own, func(e sqltext.Edit) bool { return n.Begin >= e.Begin && n.End <= e.End }) {
			edits = append(edits, n)
		}
	}
	return edits, left
}

// definerOf is the DEFINER clause that an object gets, followed by a space.
func (r *run) definerOf(o *repo.Object, c *sqltext.Create) string {
	switch {
	case r.o.Definer != "" && r.o.definer() == "":
		return ""
	case r.o.Definer != "":
		return "DEFINER=" + r.o.definer() + " "
	case c.Definer.End == 0:
		return ""
	}
	return o.Create[c.Definer.Begin:c.Definer.End] + " "
}

// definer is the account of --definer as SQL; "" for the one that restores.
func (o Options) definer() string {
	if strings.EqualFold(o.Definer, CurrentUser) {
		return ""
	}
	if i := strings.LastIndexByte(o.Definer, '@'); i >= 0 {
		return mysql.Quote(o.Definer[:i]) + "@" + mysql.Quote(o.Definer[i+1:])
	}
	return mysql.Quote(o.Definer)
}

// CurrentUser as Options.Definer makes the account that restores the definer of all.
const CurrentUser = "CURRENT_USER"

// writtenTable is a table's definition in the target's words: schemas under the names that they have there, no folders outside of
// the server's own. Its own name stays unchanged.
func (r *run) writtenTable(t *repo.Table) (string, error) {
	d := r.dialect(nil)
	c, err := d.ReadCreate(t.Create)
	if err != nil {
		return "", err
	}
	edits, _ := r.renameIn(d, t.Create, append([]sqltext.Edit{{Begin: c.Name.Begin, End: c.Name.End, Text: mysql.Quote(t.Name)}}, c.Directories...))
	create, err := r.translate(sqltext.Apply(t.Create, edits), "")
	return r.nameCollations(create), err
}

// literalThere says that the backup's server took what a GRANT says of a schema for its name, and no pattern: it had partial_revokes
// (MySQL 8.0.16). For other servers, and in backups of versions that did not note it, this is not known, and patterns are what they are by
// default.
func (r *run) literalThere() bool { return r.header.Server.Variables[partialRevokes] == "ON" }

const partialRevokes = "partial_revokes"

// unsureGrants says, once, that a GRANT may mean something else than it did: it is unknown whether its name of a schema was a pattern.
func (r *run) unsureGrants(o *repo.Object) {
	h := r.header.Server
	if _, noted := h.Variables[partialRevokes]; noted || !r.source().RevokesPartially() {
		return
	}
	for _, g := range o.After {
		read, err := asDefault.ReadGrant(g)
		if err != nil || read.Verb != "GRANT" || read.Schema.End == 0 || !strings.ContainsAny(read.Schema.Name, "_%") {
			continue
		}
		const note = "the backup does not say whether its server had partial_revokes: schemas with _ or % in its GRANTs are taken as patterns, as servers do by default"
		if !slices.Contains(r.plan.Notes, note) {
			r.plan.Notes = append(r.plan.Notes, note)
		}
		return
	}
}

// writtenGrants are what a GRANT is in the target, with the names that schemas have there, so that it is for the same schemas. Its name
// of a schema is a pattern: if a schema that matches it is restored under another name, that one gets a separate GRANT, and the pattern
// stays only if it matches others, too. With partial_revokes a server (MySQL 8.0.16) takes patterns for names.
func (r *run) writtenGrants(g string) []string {
	d := r.dialect(nil)
	read, err := d.ReadGrant(g)
	literal := r.known.partialRevokes
	if err != nil || read.Verb != "GRANT" || read.Schema.End == 0 || !literal && !r.literalThere() && !r.renames() {
		edits, _ := r.renameIn(d, g, nil)
		return []string{sqltext.Apply(g, edits)}
	}
	on := func(name string) string {
		if !literal {
			name = sqltext.SchemaPattern(name)
		}
		return sqltext.Apply(g, []sqltext.Edit{{Begin: read.Schema.Begin, End: read.Schema.End, Text: mysql.Quote(name)}})
	}
	pattern := read.Schema.Name
	if r.literalThere() {
		if to, renamed := r.renamed(pattern); renamed {
			pattern = to
		}
		return []string{on(pattern)}
	}
	if name, one := sqltext.ExactSchema(pattern); one {
		to, renamed := r.renamed(name)
		switch {
		case renamed:
			return []string{on(to)}
		case literal:
			return []string{on(name)}
		}
		return []string{g}
	}
	var out []string
	stays := strings.Contains(strings.ReplaceAll(pattern, `\%`, ""), "%") // else it is most likely meant as a name
	for _, name := range r.all {
		if !sqltext.Like(pattern, name) {
			continue
		}
		to, renamed := r.renamed(name)
		switch {
		case renamed && (literal || !sqltext.Like(pattern, to) || !stays):
			out = append(out, on(to))
		case literal:
			out = append(out, on(name))
		case !renamed:
			stays = true
		}
	}
	// For a schema made later; but a restored one that now has another's name is not meant.
	taken := slices.ContainsFunc(r.all, func(name string) bool { to, renamed := r.renamed(name); return renamed && to == pattern })
	if len(out) == 0 && !(literal && taken) || !literal && stays {
		out = append(out, g)
	}
	return out
}

// stateOf is the statement that gives a sequence its state; it is written from scratch.
func stateOf(after, name string) (string, error) {
	t := sqltext.Tokens(after)
	var numbers []string
	for i := range t {
		switch {
		case i > 0 && t[i].Kind == sqltext.TokenNumber && t[i-1].Text == "-" && len(numbers) == 0:
			numbers = append(numbers, "-"+t[i].Text)
		case t[i].Kind == sqltext.TokenNumber && i > 0:
			numbers = append(numbers, t[i].Text)
		}
	}
	if len(t) < 3 || !strings.EqualFold(t[0].Text, "DO") || !strings.EqualFold(t[1].Text, "SETVAL") || len(numbers) != 3 || t[len(t)-1].Text != ")" {
		return "", fmt.Errorf("%w: the state of the sequence %s is %.60q", ErrForged, name, after)
	}
	return "DO SETVAL(" + name + ", " + strings.Join(numbers, ", ") + ")", nil
}

// unrenamed lists what of programs and grants may still name a schema that is restored under another name.
func (r *run) unrenamed() error {
	if !r.renames() {
		return nil
	}
	const most = 200 // so many are listed
	told := 0
	tell := func(what string, left []sqltext.Left) {
		for _, l := range left {
			if told++; told > most {
				continue
			}
			text := l.Text
			if len(text) > 80 {
				text = strings.ToValidUTF8(text[:80], "") + "…"
			}
			why := "a text may name the old schema and stays as it is: "
			switch l.Reason {
			case sqltext.LeftPrepared:
				why = "it runs dynamic SQL, in which names stay as they are: "
			case sqltext.LeftPattern:
				why = "a grant on all schemas with names like this stays as it is: "
			}
			note := what + ": " + why + text
			r.plan.Notes = append(r.plan.Notes, note)
			r.notef("%s", note)
		}
	}
	err := r.each(append(slices.Clone(programKinds), repo.Account), func(o *repo.Object) error {
		if r.leftOut[objectKey(o)] {
			return nil
		}
		texts := []string{o.Create}
		if o.Kind == repo.Account {
			texts = o.After
		}
		for _, text := range texts {
			_, left := r.renameIn(r.dialect(o), text, nil)
			switch {
			case o.Kind != repo.Account:
			case !slices.Contains(r.writtenGrants(text), text): // the pattern does not stay
				left = nil
			case r.literalThere(): // it is none
				left = slices.DeleteFunc(left, func(l sqltext.Left) bool { return l.Reason == sqltext.LeftPattern })
			}
			tell(string(o.Kind)+" "+objectName(o), left)
		}
		return nil
	})
	if told > most {
		note := digits.Plural(told-most, "more text", "more texts") + " may name a schema that is restored under another name"
		r.plan.Notes = append(r.plan.Notes, note)
		r.notef("%s", note)
	}
	return err
}

// planPrograms lists, for a dry run, all that runs besides schemas, tables and rows.
func (r *run) planPrograms() error {
	if !r.o.DryRun {
		return nil
	}
	settings := map[string]bool{}
	err := r.each(append([]repo.ObjectKind{repo.Sequence}, programKinds...), func(o *repo.Object) error {
		if r.leftOut[objectKey(o)] || o.Kind == repo.Trigger && r.staysAway(o) {
			return nil
		}
		c, err := r.dialect(o).ReadCreate(o.Create)
		if err != nil {
			return err
		}
		p := PlannedProgram{Kind: string(o.Kind), Table: o.Table, On: c.State.Name == "ENABLE" && !r.o.Hold && !r.o.Replica}
		p.Schema, p.Name = r.choice.objectTarget(o)
		switch {
		case r.o.Definer != "" && r.o.definer() != "":
			p.Definer = r.o.Definer
		case r.o.Definer == "" && c.Definer.End > 0:
			p.Definer = c.Definer.String()
		}
		r.plan.Programs = append(r.plan.Programs, p)
		sets, _ := r.circumstances(o)
		for _, s := range sets {
			settings[s] = true
		}
		if want := r.mapName(o.Database); want != "" {
			settings["ALTER DATABASE "+mysql.Quote(p.Schema)+" COLLATE = "+want+", and back"] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.plan.Settings = slices.Sorted(maps.Keys(settings))
	return r.eachAccount(func(o *repo.Object) error {
		a := PlannedAccount{Name: o.Name}
		for _, g := range o.After {
			for _, g := range r.writtenGrants(g) {
				a.Grants = append(a.Grants, withoutLogin(g))
			}
		}
		r.plan.Accounts = append(r.plan.Accounts, a)
		return nil
	})
}

// staysAway reports whether a trigger's table is not restored under its name.
func (r *run) staysAway(o *repo.Object) bool {
	_, renamed := r.choice.rename[[2]string{o.Schema, o.Table}]
	return renamed || r.leftOut[leftTable(o.Schema, o.Table)]
}
