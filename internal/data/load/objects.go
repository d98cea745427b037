package load

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// kindWords are how DROP names what an object is.
var kindWords = map[repo.ObjectKind]string{
	repo.Sequence: "SEQUENCE", repo.View: "VIEW", repo.Function: "FUNCTION", repo.Procedure: "PROCEDURE", repo.Package: "PACKAGE",
	repo.PackageBody: "PACKAGE BODY", repo.Trigger: "TRIGGER", repo.Event: "EVENT",
}

// each hands the objects of a kind to f.
func (r *run) each(kinds []repo.ObjectKind, f func(*repo.Object) error) error {
	for _, k := range kinds {
		for _, at := range r.objects[k] {
			l, err := r.spool.get(at)
			if err != nil {
				return err
			}
			if err := f(l.Object); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeObjects makes all objects of some kinds, one after the other.
func (r *run) makeObjects(ctx context.Context, s **session, kinds ...repo.ObjectKind) error {
	if err := r.beginStage(ctx, s, kinds...); err != nil {
		return err
	}
	return r.each(kinds, func(o *repo.Object) error {
		if r.leftOut[objectKey(o)] {
			return nil
		}
		if o.Kind == repo.Trigger && r.staysAway(o) {
			if r.leftOut[leftTable(o.Schema, o.Table)] {
				r.leave(lost(o, "its table "+mysql.Quote(o.Table)+" stays away"))
			}
			return nil // for a renamed one the plan says so
		}
		err := r.makeAgain(ctx, s, o)
		if r.mayStayAway(err) {
			r.leftOut[objectKey(o)] = true
			r.leave(lost(o, r.objectError(o, err).Error()))
			return nil
		}
		if err != nil {
			return r.objectError(o, err)
		}
		if !r.leftOut[objectKey(o)] { // as an event may be whose time is over
			r.made.Add(1)
		}
		return nil
	})
}

// beginStage notes that from here on what has the names of some kinds is of this restore.
func (r *run) beginStage(ctx context.Context, s **session, kinds ...repo.ObjectKind) error {
	var marks []*table
	for _, k := range kinds {
		if len(r.objects[k]) > 0 {
			marks = append(marks, stageMark(k))
		}
	}
	if len(marks) == 0 {
		return nil
	}
	return r.again(ctx, s, func(s *session) error { return setState(ctx, s, claimed, marks...) })
}

// makeAgain makes an object, and again if the session broke: the server may have made it nevertheless.
func (r *run) makeAgain(ctx context.Context, s **session, o *repo.Object) error {
	clears := r.resumed || r.o.Overwrite
	return r.again(ctx, s, func(s *session) error {
		err := r.makeObject(ctx, s, o, clears)
		clears = true
		return err
	})
}

// mayStayAway reports whether an object that the server does not take is left out: a server of another kind was asked to take
// what it understands; and what was broken on its original server, and can be made nowhere, does not stop the rest.
func (r *run) mayStayAway(err error) bool {
	return mysql.ErrorNumber(err) == errno.UnknownColumn || err != nil && r.o.SkipIncompatible && r.foreignServer() && mysql.ErrorNumber(err) != 0 && !passes(err)
}

func (r *run) objectError(o *repo.Object, err error) error {
	switch mysql.ErrorNumber(err) {
	case errno.UnsafeFunction, errno.FunctionNeedsSuper:
		err = fmt.Errorf("%w; SET GLOBAL log_bin_trust_function_creators = 1 on the target permits it, or --no-binlog if the server allows it", err)
	case errno.SpecificAccessDenied, 4217:
		err = fmt.Errorf("%w; the account that restores may not create objects for another definer: grant it SUPER, or SET_USER_ID (MySQL 8.0), SET_ANY_DEFINER (8.2), SET USER (MariaDB)", err)
	}
	return fmt.Errorf("make %s %s: %w", o.Kind, objectName(o), err)
}

func objectName(o *repo.Object) string {
	if o.Kind == repo.Account {
		return o.Name
	}
	return mysql.Quote(o.Schema) + "." + mysql.Quote(o.Name)
}

func objectKey(o *repo.Object) string {
	return string(o.Kind) + "\x00" + o.Schema + "\x00" + o.Name
}

// makeObject makes an object as it was: with its sql_mode, character sets and definer. clears: what has its name is dropped.
func (r *run) makeObject(ctx context.Context, s *session, o *repo.Object, clears bool) error {
	schema, name := r.choice.objectTarget(o)
	create, err := r.written(o)
	if err != nil {
		return err
	}
	if err := s.use(ctx, schema); err != nil {
		return err
	}
	switch {
	case !clears || o.Kind == repo.View:
	case o.Kind == repo.Sequence:
		err = r.clear(ctx, s, o.Kind, schema, name)
	default:
		err = s.Exec(ctx, "DROP "+kindWords[o.Kind]+" IF EXISTS "+mysql.Quote(schema)+"."+mysql.Quote(name))
	}
	if err != nil {
		return err
	}
	err = r.create(ctx, s, o, schema, create)
	if clears && o.Kind == repo.View && mysql.ErrorNumber(err) == errno.TableExists { // only now: for a view that cannot be made nothing is dropped
		if err := r.clear(ctx, s, o.Kind, schema, name); err != nil {
			return err
		}
		err = r.create(ctx, s, o, schema, create)
	}
	if err != nil {
		return err
	}
	if o.Kind != repo.Sequence {
		return nil
	}
	for _, st := range o.After {
		if st, err = stateOf(st, mysql.Quote(schema)+"."+mysql.Quote(name)); err != nil {
			return err
		}
		if err := s.Exec(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

// create runs an object's definition as it was run when it was made.
func (r *run) create(ctx context.Context, s *session, o *repo.Object, schema, create string) error {
	return r.inContext(ctx, s, o, schema, func(text func(string) (string, error)) error {
		statement, err := text(create)
		if err != nil {
			return err
		}
		if o.Kind != repo.Event {
			return s.Exec(ctx, statement)
		}
		return r.makeEvent(ctx, s, o, statement)
	})
}

// inContext runs f with the session as it was when the object was made, and puts it back. text turns a statement into the
// bytes that the session's character set wants.
func (r *run) inContext(ctx context.Context, s *session, o *repo.Object, schema string, f func(text func(string) (string, error)) error) (err error) {
	sets, charset := r.circumstances(o)
	database, back, err := r.databaseCollation(ctx, s, o, schema)
	if err != nil {
		return err
	}
	if database != "" {
		if err := s.Exec(ctx, database); err != nil {
			return err
		}
	}
	defer func() {
		if s.Broken() != nil {
			return
		}
		if back != "" {
			berr := s.Exec(ctx, back)
			if berr == nil {
				r.lent = nil
			}
			if err == nil {
				err = berr
			}
		}
		for _, st := range r.setup[:2] {
			if berr := s.Exec(ctx, st); err == nil {
				err = berr
			}
		}
	}()
	text := func(st string) (string, error) { return r.inCharset(ctx, s, st, charset) }
	if len(sets) > 0 {
		// The text is made before the session speaks another character set.
		return f(func(st string) (string, error) {
			st, err := text(st)
			if err != nil {
				return "", err
			}
			return st, s.Exec(ctx, "SET SESSION /* risso: as it was made */ "+strings.Join(sets, ", "))
		})
	}
	return f(text)
}

// circumstances are what the session is set to while an object is made, and the character set among them.
func (r *run) circumstances(o *repo.Object) (sets []string, charset string) {
	if o.Kind != repo.View && o.Kind != repo.Sequence {
		sets = append(sets, "sql_mode = "+mysql.Literal(r.sqlMode(o.SQLMode)))
	}
	switch charset = r.mapName(o.Charset); charset {
	case "", "binary", "ucs2", "utf16", "utf16le", "utf32":
		charset = ""
	default:
		sets = append(sets, "character_set_client = "+charset)
	}
	if c := r.mapName(o.Collation); c != "" {
		sets = append(sets, "collation_connection = "+c)
	}
	if o.TimeZone != "" {
		sets = append(sets, "time_zone = "+mysql.Literal(o.TimeZone))
	}
	return sets, charset
}

// databaseCollation returns the statements that set the schema's collation to the one that it had when a routine was made, which its
// parameters have, and back; "" if it is the same. The journal records its own first: else a kill in between would leave the other.
func (r *run) databaseCollation(ctx context.Context, s *session, o *repo.Object, schema string) (there, back string, err error) {
	want := r.mapName(o.Database)
	if want == "" {
		return "", "", nil
	}
	var has string
	err = s.Query(ctx, "SELECT @@collation_database", func(row [][]byte) error {
		has = string(row[0])
		return nil
	})
	was, known := r.schemaWas[schema]
	if err != nil || has == want && (!known || was == want) {
		return "", "", err
	}
	if !known {
		was = has
		if err := keepTold(ctx, s, collationMark(schema), told{Schema: schema, Collation: was, Behind: r.result.Rolled != nil}); err != nil {
			return "", "", err
		}
		if r.schemaWas == nil {
			r.schemaWas = map[string]string{}
		}
		r.schemaWas[schema] = was
	}
	alter := "ALTER DATABASE " + mysql.Quote(schema) + " COLLATE = "
	if has != want {
		there = alter + want
	}
	if was != want {
		back = alter + was
		r.lent = &Lent{Schema: schema, Collation: was}
	}
	return there, back, nil
}

// inCharset returns a statement's bytes in a character set; the server converts it.
func (r *run) inCharset(ctx context.Context, s *session, st, charset string) (string, error) {
	if charset == "" || strings.HasPrefix(charset, "utf8") || isASCII(st) {
		return st, nil
	}
	out := st
	err := s.Query(ctx, "SELECT /* risso: a definition in its character set */ CONVERT(_utf8mb4 x'"+hex.EncodeToString([]byte(st))+"' USING "+charset+")", func(row [][]byte) error {
		out = string(row[0])
		return nil
	})
	return out, err
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// eachAccount calls f with the accounts that are restored, in the target's words.
func (r *run) eachAccount(f func(*repo.Object) error) error {
	return r.each([]repo.ObjectKind{repo.Account}, func(o *repo.Object) error {
		if r.leftOut[objectKey(o)] {
			return nil
		}
		if translated, ok := r.accounts[objectKey(o)]; ok {
			o = translated
		}
		return f(o)
	})
}

// makeAccounts makes the accounts that do not exist yet. Their grants follow at the end, when their objects exist.
func (r *run) makeAccounts(ctx context.Context, s **session) error {
	if err := r.again(ctx, s, func(s *session) error { return r.findAlike(ctx, s) }); err != nil {
		return err
	}
	return r.eachAccount(func(o *repo.Object) error {
		mark := &table{id: tableID("", "account "+o.Name)}
		err := r.again(ctx, s, func(s *session) error {
			st, err := r.readState(ctx, s, mark)
			if err != nil || st >= created {
				return err
			}
			if isPublic(o) {
				return r.makePublic(ctx, s, o, st, mark)
			}
			create := without(o.Create, "IF", "NOT", "EXISTS")
			if st == claimed {
				if err := s.Exec(ctx, "DROP "+accountKind(create)+" IF EXISTS "+mysql.QuoteAccount(o.Name)); err != nil {
					return err
				}
			}
			if st == absent {
				there, err := r.accountThere(ctx, s, o)
				if err != nil || there {
					return err
				}
			}
			if err := setState(ctx, s, claimed, mark); err != nil {
				return err
			}
			err = s.Exec(ctx, create)
			switch n := mysql.ErrorNumber(err); {
			case n == 0 && err != nil, passes(err):
				return err
			case err != nil: // an account that the server does not want keeps no data away
				r.leave(lost(o, withoutStatement(err).Error()))
				return nil
			}
			return setState(ctx, s, created, mark)
		})
		if err != nil {
			return r.objectError(o, err)
		}
		return nil
	})
}

// makePublic readies what everybody has: grants that are there stay as they are.
func (r *run) makePublic(ctx context.Context, s *session, o *repo.Object, st state, mark *table) error {
	if st == absent && !r.o.Overwrite {
		there := false
		err := s.Query(ctx, "SHOW /* risso: is there any? */ GRANTS FOR PUBLIC", func([][]byte) error { there = true; return nil })
		if err != nil {
			return err
		}
		if there {
			r.mu.Lock()
			r.kept = append(r.kept, o.Name)
			r.mu.Unlock()
			return nil
		}
	}
	return setState(ctx, s, created, mark)
}

func accountKind(create string) string {
	if strings.HasPrefix(create, "CREATE ROLE") {
		return "ROLE"
	}
	return "USER"
}

// findAlike finds the accounts of a replica that are as the backup has them: they stay, as the account that restores may not be able to give all that they have.
func (r *run) findAlike(ctx context.Context, s *session) error {
	if !r.o.Replica || !r.o.Overwrite {
		return nil
	}
	list, _, err := define.Accounts(ctx, s.Stream, r.server)
	if err != nil {
		return err
	}
	there := map[string]define.Definition{}
	for _, d := range list {
		there[d.Name] = d
	}
	r.stays = map[string]bool{}
	return r.each([]repo.ObjectKind{repo.Account}, func(o *repo.Object) error {
		d, ok := there[o.Name]
		r.stays[o.Name] = ok && d.Create == o.Create && slices.Equal(d.After, o.After)
		return nil
	})
}

// accountThere reports whether an account is there and stays as it is. With Overwrite it is dropped, unless it is the account that restores.
func (r *run) accountThere(ctx context.Context, s *session, o *repo.Object) (bool, error) {
	err := s.Exec(ctx, "SHOW /* risso: is it there? */ GRANTS FOR "+mysql.QuoteAccount(o.Name))
	switch n := mysql.ErrorNumber(err); {
	case n == 1141 || n == 1133 || n == 1269: // no such grant, user, or no such user
		return false, nil
	case n == 1959 || n == 1976: // MariaDB: no such role
		return false, nil
	case err != nil:
		return false, err
	}
	if !r.o.Overwrite || o.Name == r.server.Account || r.stays[o.Name] {
		r.mu.Lock()
		r.kept = append(r.kept, o.Name)
		r.mu.Unlock()
		return true, nil
	}
	return false, s.Exec(ctx, "DROP "+accountKind(o.Create)+" "+mysql.QuoteAccount(o.Name))
}

// grant grants the accounts that were made their privileges. Early it grants those on what exists already, because views need it: a
// server makes no view that its definer may not use, or one with a function that its definer may not use.
func (r *run) grant(ctx context.Context, s **session, early bool) error {
	return r.eachAccount(func(o *repo.Object) error {
		mark := &table{id: tableID("", "account "+o.Name)}
		err := r.again(ctx, s, func(s *session) error {
			st, err := r.readState(ctx, s, mark)
			if err != nil || st != created {
				return err
			}
			for _, of := range o.After {
				for _, g := range r.writtenGrants(of) {
					err := s.Exec(ctx, withoutLogin(g))
					switch n := mysql.ErrorNumber(err); {
					case n == 0 && err != nil, passes(err):
						return err
					case err != nil && !early:
						r.leave(Finding{Trouble: fleet.Trouble{What: "account " + o.Name + ": " + withoutSecret(g), Why: withoutStatement(err).Error()}})
					}
				}
			}
			if !early {
				r.made.Add(1)
			}
			return nil
		})
		if err != nil {
			return r.objectError(o, err)
		}
		return nil
	})
}

// withoutSecret cuts a GRANT off before what reveals a password.
func withoutSecret(g string) string {
	if i := strings.Index(g, " IDENTIFIED "); i >= 0 {
		return g[:i]
	}
	return g
}

// withoutStatement removes the quoted statement, which may contain a password's hash, from a syntax error, in any language
// the server speaks (lc_messages).
func withoutStatement(err error) error {
	if n := mysql.ErrorNumber(err); n == errno.ParseError || n == errno.SyntaxError {
		return fmt.Errorf("error %d: the server does not understand the statement", n)
	}
	return err
}
