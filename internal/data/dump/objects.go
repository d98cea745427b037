package dump

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// definitions reads all that is no table: one session does it while the others read rows.
func (w *worker) definitions(ctx context.Context) error {
	l := w.job.list
	// A program's text is in the character set of the session that made it; a manifest is UTF-8.
	if err := w.st.Exec(ctx, "SET /* risso: definitions as UTF-8 */ character_set_results = utf8mb4"); err != nil {
		return err
	}
	holds, err := define.Holds(ctx, w.st)
	if err != nil {
		return err
	}
	for _, schema := range l.schemas {
		create, err := define.CreateSchema(ctx, w.st, schema)
		if err != nil {
			return err
		}
		if err := w.job.draft.Add(repo.Line{Schema: &repo.Schema{Name: schema, Create: create}}); err != nil {
			return err
		}
		for _, kind := range holds[schema] {
			if err := w.programs(ctx, schema, kind); err != nil {
				return err
			}
		}
	}
	for _, name := range l.seqs {
		d, err := define.Sequence(ctx, w.st, name)
		if err := w.add(err, d); err != nil {
			return err
		}
	}
	var broken []mysql.TableName
	for _, name := range l.views {
		d, err := define.View(ctx, w.st, name)
		if err != nil && mysql.Gone(err) {
			return fmt.Errorf("view %s: %w", name, ErrChanged)
		}
		if err := w.add(err, d); err != nil {
			return err
		}
		if d.Broken {
			broken = append(broken, name)
		}
	}
	if len(broken) > 0 {
		w.job.note("Views that do not work on the server, because what they select from does not exist, or their definers may not read it: " + firstOf(broken, mysql.TableName.String) + ". Their definitions are in the backup; a restore creates those that work there.")
	}
	return w.accounts(ctx)
}

// programs reads the programs of one kind in a schema. Triggers belong to their tables, all else to whole schemas.
func (w *worker) programs(ctx context.Context, schema string, kind define.ObjectKind) error {
	if kind != define.KindTrigger && !w.job.list.whole[schema] {
		return nil
	}
	triggers := func(ctx context.Context, st *mysql.Stream, schema string) ([]define.Definition, error) {
		return define.TriggersOf(ctx, st, schema, func(table string) bool {
			return w.job.Select.table(schema, table) && !w.job.list.hides(schema, table, "TRIGGER")
		})
	}
	read := map[define.ObjectKind]func(context.Context, *mysql.Stream, string) ([]define.Definition, error){
		define.KindTrigger: triggers, define.KindProcedure: define.Routines, define.KindEvent: define.Events,
	}[kind]
	list, err := read(ctx, w.st, schema)
	if errors.Is(err, define.ErrHidden) && w.job.Partial {
		w.job.note("No routines of " + mysql.Quote(schema) + " are in the backup: " + err.Error())
		w.job.blind()
		return nil
	}
	if err != nil {
		return err
	}
	for _, d := range list {
		if err := w.add(nil, d); err != nil {
			return err
		}
	}
	return nil
}

// accounts reads users and roles. If the account may not see them, that is reported and no failure: managed servers are like that.
func (w *worker) accounts(ctx context.Context) error {
	if w.job.NoAccounts || !w.job.Select.All() {
		return nil
	}
	list, ignored, err := define.Accounts(ctx, w.st, w.job.snap.Server)
	switch mysql.ClassOf(err) {
	case mysql.ClassPrivilege, mysql.ClassLogin:
		w.job.note("Users and grants are not in the backup: the account may not read them (GRANT SELECT ON mysql.*).")
		return nil
	}
	if err != nil {
		return err
	}
	if len(ignored) > 0 {
		w.job.note("Accounts that the server itself ignores (skip_name_resolve) are not in the backup: " + strings.Join(ignored, ", "))
	}
	for _, d := range list {
		if err := w.add(nil, d); err != nil {
			return err
		}
	}
	return nil
}

// readable says of a definition that holds what no manifest can: bytes that are no UTF-8.
func (j *job) readable(what, create string) {
	if !utf8.ValidString(create) {
		j.note("The definition of " + what + " has bytes that are not UTF-8: they are restored as other characters.")
	}
}

// add writes an object's line.
func (w *worker) add(err error, d define.Definition) error {
	if err != nil {
		return err
	}
	if d.Create == "" {
		return fmt.Errorf("the account may not see the definition of %s %s", d.Kind, mysql.Quote(d.Name))
	}
	w.job.readable(string(d.Kind)+" "+mysql.Quote(d.Schema)+"."+mysql.Quote(d.Name), d.Create)
	w.job.mu.Lock()
	w.job.head.Objects++
	w.job.mu.Unlock()
	return w.job.draft.Add(repo.Line{Object: &repo.Object{Kind: repo.ObjectKind(d.Kind), Schema: d.Schema, Name: d.Name, Table: d.Table, Create: d.Create, After: d.After, Columns: d.Columns, Broken: d.Broken,
		SQLMode: d.SQLMode, Charset: d.Charset, Collation: d.Collation, Database: d.Database, TimeZone: d.TimeZone, Definer: d.Definer}})
}
