package load

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
)

// types sets the values in a table's JSON documents again whose types their text does not show, and checks that all are there.
// Done twice it does the same: what a restore that was cut off did is not noted.
func (r *run) types(ctx context.Context, s **session, t *table) error {
	if len(t.Typed) == 0 || !r.server.TypesJSON() {
		return nil
	}
	var want chunk.Sum
	var places []chunk.Place
	lost := map[string]int64{}
	known := map[chunk.Place]bool{}
	for _, c := range t.Typed {
		list, err := r.readTyped(ctx, t, c)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(v chunk.Typed) bool {
			gone := !r.canType(v)
			if gone {
				lost[kindOf(v)]++
			}
			return gone
		})
		for _, v := range list {
			row, err := v.AppendRow(nil)
			if err != nil {
				return err
			}
			want.Row(row)
			if !known[v.At] {
				known[v.At], places = true, append(places, v.At)
			}
		}
		if err := r.again(ctx, s, func(s *session) error { return s.setTypes(ctx, t, list) }); err != nil {
			return fmt.Errorf("set types in the JSON of %s: %w", t.quoted(), err)
		}
	}
	for kind, n := range lost {
		f := Finding{Trouble: fleet.Trouble{What: "table " + t.quoted(), Why: fmt.Sprintf("%s of type %s in JSON cannot be made here", digits.Counted(n, "value"), kind)}, Mapped: "what their text shows"}
		if err := r.again(ctx, s, func(s *session) error { return r.tell(ctx, s, t, told{Otherwise: &f}) }); err != nil {
			return err
		}
	}
	var got chunk.Sum
	err := r.again(ctx, s, func(s *session) error {
		got = chunk.Sum{}
		return chunk.ReadTyped(ctx, s.Stream, t.shape, t.key, places, "restore", func(v chunk.Typed) error {
			if !r.canType(v) {
				return nil
			}
			row, err := v.AppendRow(nil)
			got.Row(row)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("compare types in the JSON of %s: %w", t.quoted(), err)
	}
	if got != want {
		t.mu.Lock()
		t.note = "types in its JSON documents"
		t.untyped = true
		t.mu.Unlock()
	}
	return nil
}

// readTyped reads a chunk of them whole.
func (r *run) readTyped(ctx context.Context, t *table, c repo.Chunk) (list []chunk.Typed, err error) {
	b, err := r.readWhole(ctx, t, c)
	if err != nil {
		return nil, err
	}
	defer r.buffers.Put(b)
	const columns = 5
	f := feedBytes(b.Bytes(), columns)
	for {
		row := make([][]byte, 0, columns)
		for range columns {
			if _, err := f.length(); err != nil {
				if f.r == f.w && len(row) == 0 {
					return list, nil
				}
				return nil, torn(err)
			}
			if err := f.need(int(f.left)); err != nil && f.left > 0 {
				return nil, torn(err)
			}
			row = append(row, f.win[f.r:f.r+int(f.left)])
			f.took(int(f.left))
		}
		v, err := chunk.TypedOf(t.key, row)
		if err != nil {
			return nil, fmt.Errorf("%s: types in JSON: %w: %w", t.quoted(), err, repo.ErrDamaged)
		}
		if c, ok := t.shape.Column(v.At.Column); !ok || c.Type != "json" {
			return nil, fmt.Errorf("%s: types in JSON: no such column: %w", t.quoted(), repo.ErrDamaged)
		}
		list = append(list, v)
	}
}

// setTypes sets values of some rows in one transaction.
func (s *session) setTypes(ctx context.Context, t *table, list []chunk.Typed) error {
	for _, v := range list { // before the transaction: MySQL with GTIDs makes no temporary table within one
		if name, column := columnFor(v); column != "" {
			if err := s.Exec(ctx, "CREATE TEMPORARY TABLE IF NOT EXISTS "+mark+" mysql."+name+" (risso_value "+column+")"); err != nil {
				return err
			}
		}
	}
	if err := s.Exec(ctx, "START TRANSACTION"); err != nil {
		return err
	}
	keep := ""
	for _, item := range t.def.items { // what changes by itself with each UPDATE keeps what it has
		if name, rest, ok := unquoted(item); ok && asDefault.Has(rest, "ON", "UPDATE") {
			keep += ", risso." + mysql.Quote(name) + " = risso." + mysql.Quote(name)
		}
	}
	for i := 0; i < len(list); {
		n := 1
		if _, column := columnFor(list[i]); column == "" {
			for i+n < len(list) && list[i+n].At.Column == list[i].At.Column && slices.Equal(list[i+n].Key, list[i].Key) {
				if _, column := columnFor(list[i+n]); column != "" {
					break
				}
				n++
			}
		}
		if err := s.setSome(ctx, t, list[i:i+n], keep); err != nil {
			return err
		}
		i += n
	}
	return s.Exec(ctx, "COMMIT")
}

// setSome sets values of one document. Those that get their type from a temporary table are set one at a time.
func (s *session) setSome(ctx context.Context, t *table, list []chunk.Typed, keep string) error {
	first := list[0]
	column := "risso." + mysql.Quote(first.At.Column)
	update := func(from, keep string, args []string) error {
		return s.Exec(ctx, "UPDATE "+mark+" "+t.quoted()+" AS risso"+from+" SET "+column+" = JSON_REPLACE("+column+", "+strings.Join(args, ", ")+")"+keep+" WHERE "+t.key.Only(first.Key))
	}
	if name, column := columnFor(first); column != "" {
		for _, st := range []string{"DELETE FROM mysql." + name, "INSERT " + mark + " INTO mysql." + name + " VALUES (" + literalIn(first) + ")"} {
			if err := s.Exec(ctx, st); err != nil {
				return err
			}
		}
		return update(", mysql."+name+" AS risso_one", keep, []string{mysql.Literal(first.At.Path), "risso_one.risso_value"})
	}
	var args []string
	var other [3][]string
	for _, v := range list {
		path, value := mysql.Literal(v.At.Path), literalIn(v)
		args = append(args, path, value)
		if v.Type == "DECIMAL" || v.Type == "DOUBLE" {
			for i, to := range []string{value + " + 1", value + " - 1", "NULL"} {
				other[i] = append(other[i], path, to)
			}
		}
	}
	// A number that is equal counts as no change, whatever its type: so it becomes another one first, as far as constraints let it.
	for i := 0; len(other[0]) > 0 && i < len(other); i++ {
		err := update("", keep, other[i])
		if err == nil {
			break
		}
		if mysql.ErrorNumber(err) == 0 || i == len(other)-1 {
			return err
		}
	}
	return update("", keep, args)
}

// bytesForm is how MySQL writes bytes in JSON: with the number of the type that they had.
var bytesForm = pattern.Lazy(`^base64:type([0-9]+):([A-Za-z0-9+/=\s]*)$`)

// bytesOf takes that apart.
func bytesOf(v chunk.Typed) (kind int, b []byte, ok bool) {
	m := bytesForm().FindStringSubmatch(v.Text)
	if m == nil {
		return 0, nil, false
	}
	kind, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, nil, false
	}
	b, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(m[2]), ""))
	return kind, b, err == nil
}

// kindOf names a value's type as exactly as its text does.
func kindOf(v chunk.Typed) string {
	if kind, _, ok := bytesOf(v); ok {
		return v.Type + " " + strconv.Itoa(kind)
	}
	return v.Type
}

// Numbers of column types. Source: MySQL's enum_field_types.
const (
	typeYear       = 13
	typeVarchar    = 15
	typeBit        = 16
	typeTinyBlob   = 249
	typeMediumBlob = 250
	typeLongBlob   = 251
	typeBlob       = 252
	typeVarString  = 253
	typeString     = 254
)

// canType reports whether the target can make such a value, and shows it as the backup does.
func (r *run) canType(v chunk.Typed) bool {
	kind, _, isBytes := bytesOf(v)
	switch v.Type {
	case "DOUBLE":
		return r.server.OldJSONTypes() && numberForm().MatchString(v.Text) // later ones show it with a point
	case "DECIMAL":
		return numberForm().MatchString(v.Text)
	case "DATE", "TIME", "DATETIME", "TIMESTAMP":
		return true
	}
	if !isBytes {
		return false
	}
	switch kind {
	case typeVarchar, typeBit, typeTinyBlob, typeMediumBlob, typeLongBlob, typeBlob, typeString:
		return true
	case typeYear, typeVarString: // later ones have numbers and VARCHAR in their place
		return r.server.OldJSONTypes()
	}
	return false
}

var numberForm = pattern.Lazy(`^-?[0-9]+(\.[0-9]+)?$`)

// columnFor is the temporary table, with the type of its one column, from which a value gets its type; "" if a function sets it.
func columnFor(v chunk.Typed) (name, column string) {
	kind, b, isBytes := bytesOf(v)
	if !isBytes {
		switch {
		case v.Type == "TIMESTAMP":
			return "risso_timestamp", "TIMESTAMP(6) NULL"
		case v.Type == "DATE" && strings.Contains(v.Text, "-00"), v.Type == "DATETIME" && strings.Contains(v.Text, "-00"):
			return "risso_" + strings.ToLower(v.Type), map[string]string{"DATE": "DATE", "DATETIME": "DATETIME(6)"}[v.Type]
		}
		return "", ""
	}
	n := strconv.Itoa(len(b))
	name = "risso_" + strconv.Itoa(kind)
	switch kind {
	case typeVarchar:
		return name + "_" + n, "VARBINARY(" + n + ")"
	case typeString:
		return name + "_" + n, "BINARY(" + n + ")"
	case typeBit:
		return name + "_" + n, "BIT(" + strconv.Itoa(min(64, 8*len(b))) + ")"
	case typeYear:
		return name, "YEAR"
	case typeTinyBlob:
		return name, "TINYBLOB"
	case typeMediumBlob:
		return name, "MEDIUMBLOB"
	case typeLongBlob:
		return name, "LONGBLOB"
	case typeBlob:
		return name, "BLOB"
	}
	return "", ""
}

// literalIn is a value as SQL.
func literalIn(v chunk.Typed) string {
	if kind, b, ok := bytesOf(v); ok {
		switch text := "x'" + hex.EncodeToString(b) + "'"; kind {
		case typeYear:
			return mysql.Literal(string(b))
		case typeVarString:
			return "CAST(" + text + " AS BINARY)"
		default:
			return text
		}
	}
	switch v.Type {
	case "DECIMAL":
		if strings.Contains(v.Text, ".") {
			return v.Text
		}
		return "CAST(" + v.Text + " AS DECIMAL(65,0))"
	case "DOUBLE":
		return v.Text + "e0"
	}
	if _, column := columnFor(v); column != "" {
		return mysql.Literal(v.Text)
	}
	digits := "(6)"
	if v.Type == "DATE" {
		digits = ""
	}
	return "CAST(" + mysql.Literal(v.Text) + " AS " + v.Type + digits + ")"
}
