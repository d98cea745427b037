package load

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/sqltext"
)

// programKinds are what is rehearsed by rehearsePrograms.
var programKinds = []repo.ObjectKind{repo.Function, repo.Package, repo.Procedure, repo.PackageBody, repo.View, repo.Trigger, repo.Event}

// Numbers of errors that say nothing about whether a server of this kind can have an object.
var elsewhere = map[int]bool{
	1295: true,                                                                                     // this statement cannot be prepared: said when it was understood (seen on MySQL 5.7.22, 8.0.15, 9.7; MariaDB 10.6.2 prepares all)
	1146: true, 1049: true, 1046: true, 1054: true, 1305: true, 1356: true, 1347: true, 4091: true, // what it needs does not exist yet
	1050: true, 1304: true, 1359: true, 1537: true, // what has its name is dropped first
	1465: true, 1044: true, 1142: true, 1227: true, 1370: true, 1419: true, 1418: true, 4217: true, // it is prepared in a schema of the server's own
}

// rehearsePrograms finds out which views, routines, triggers and events the target does not understand. Each is prepared and
// never executed: the server reads a CREATE to its end before it says what else is in the way, so nothing is changed and
// nothing has to exist. Built-in functions are looked up by name, because bodies of routines are not resolved
// before they run.
func (r *run) rehearsePrograms(ctx context.Context, s *session) error {
	if err := s.use(ctx, "mysql"); err != nil {
		return err
	}
	known := map[string]bool{} // functions that are restored
	err := r.each([]repo.ObjectKind{repo.Function}, func(o *repo.Object) error {
		known[strings.ToLower(o.Name)] = true
		return nil
	})
	if err != nil {
		return err
	}
	kinds := programKinds
	if r.server.HasSequences() { // only MariaDB has them, and newer versions have some of other types
		kinds = append([]repo.ObjectKind{repo.Sequence}, kinds...)
	}
	err = r.each(kinds, func(o *repo.Object) error {
		key := objectKey(o)
		if r.leftOut[key] {
			return nil
		}
		where := string(o.Kind) + " " + objectName(o)
		leave := func(reason string) {
			r.note(lost(o, reason))
			r.leftOut[key] = true
		}
		if o.Kind == repo.Trigger && r.leftOut[leftTable(o.Schema, o.Table)] {
			leave("its table " + mysql.Quote(o.Table) + " stays away")
			return nil
		}
		modes, err := r.learnModes(ctx, s, o, where)
		if err != nil {
			return err
		}
		if modes != "" {
			leave("sql_mode " + modes + " is not available here, and parses the text differently")
			return nil
		}
		if zone, err := s.knowsZone(ctx, o.TimeZone); err != nil || !zone {
			leave("time zone " + o.TimeZone + " is not known here: mysql_tzinfo_to_sql loads them")
			return err
		}
		for _, name := range calls(o.Create) {
			has, asked := known[name]
			if !asked {
				if has, err = s.knowsFunction(ctx, name); err != nil {
					return err
				}
				known[name] = has
			}
			if !has {
				leave("the function " + strings.ToUpper(name) + " is not here")
				return nil
			}
		}
		err = r.prepare(ctx, s, o)
		if n := mysql.ErrorNumber(err); n == 0 || elsewhere[n] {
			if err != nil && n == 0 {
				return err
			}
			return nil
		}
		leave("the server rejects its definition: " + oneline.Of(err.Error()))
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.leaveOrphans(); err != nil {
		return err
	}
	return s.Exec(ctx, r.setup[0])
}

// leaveOrphans leaves out the views whose tables or views are left out.
func (r *run) leaveOrphans() error {
	left := map[[2]string]bool{}
	for key := range r.leftOut {
		if parts := strings.Split(key, "\x00"); len(parts) == 3 && slices.Contains([]string{"table", string(repo.View), string(repo.Function)}, parts[0]) {
			left[[2]string{parts[1], parts[2]}] = true
		}
	}
	needs := map[string][][2]string{} // by objectKey
	for more := len(left) > 0; more; {
		more = false
		err := r.each([]repo.ObjectKind{repo.View}, func(o *repo.Object) error {
			key := objectKey(o)
			if r.leftOut[key] {
				return nil
			}
			if _, read := needs[key]; !read {
				needs[key] = namedBy(o)
			}
			for _, name := range needs[key] {
				if left[name] {
					r.note(lost(o, mysql.Quote(name[0])+"."+mysql.Quote(name[1])+" stays away"))
					r.leftOut[key], left[[2]string{o.Schema, o.Name}], more = true, true, true
					break
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// namedBy are the tables, views and functions that a view names, each with its schema.
func namedBy(o *repo.Object) (names [][2]string) {
	t := sqltext.Tokens(o.Create)
	for i := range t {
		switch {
		case !t[i].Name():
		case i > 1 && t[i-1].Text == ".":
			names = append(names, [2]string{t[i-2].Text, t[i].Text})
		case (i == 0 || t[i-1].Text != ".") && i+1 < len(t) && t[i+1].Text == "(":
			names = append(names, [2]string{o.Schema, t[i].Text})
		}
	}
	for _, table := range sqltext.Tables([]byte(o.Create)) {
		if table.Schema == "" {
			names = append(names, [2]string{o.Schema, table.Name})
		}
	}
	return names
}

// prepare has the server read an object's definition.
func (r *run) prepare(ctx context.Context, s *session, o *repo.Object) error {
	create, err := r.written(o)
	if err != nil {
		return err
	}
	mode := ""
	if o.Kind != repo.View {
		mode = r.sqlMode(o.SQLMode)
	}
	return s.understands(ctx, create, "SET SESSION sql_mode = "+mysql.Literal(mode))
}

// understands has the server read a statement, after others that set the session for it.
func (s *session) understands(ctx context.Context, statement string, sets ...string) error {
	// As hexadecimal digits the text means the same under any sql_mode.
	text := "SET /* risso: does it understand this? */ @risso = CONVERT(x'" + hex.EncodeToString([]byte(statement)) + "' USING utf8mb4)"
	for _, st := range slices.Concat([]string{text}, sets, []string{"PREPARE risso FROM @risso"}) { // in place of the one before
		if err := s.Exec(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

// learnModes finds out which of an object's SQL modes the target does not have. Those that only changed what GRANT and SHOW
// CREATE do, or that name a group whose members are named as well, are left out; lost is one that means more.
func (r *run) learnModes(ctx context.Context, s *session, o *repo.Object, where string) (lost string, err error) {
	for _, mode := range strings.Split(o.SQLMode, ",") {
		if mode == "" || o.Kind == repo.View {
			continue
		}
		has, asked := r.modes[mode]
		if !asked {
			err := s.Exec(ctx, "SET SESSION /* risso: is there such a mode? */ sql_mode = "+mysql.Literal(mode))
			if err != nil && mysql.ErrorNumber(err) == 0 {
				return "", err
			}
			has = err == nil
			r.modes[mode] = has
		}
		switch {
		case has || idleModes[mode]:
		case mode == "ORACLE":
			return mode, nil
		default:
			r.find(where, "sql_mode "+mode+" is not here", "its other modes")
		}
	}
	return "", nil
}

// idleModes are SQL modes without which a program does the same. Sources: MySQL 5.7 manual, "Server SQL Modes" (what 8.0 took
// away); MariaDB documentation, "SQL_MODE".
var idleModes = map[string]bool{"NO_AUTO_CREATE_USER": true, "NO_FIELD_OPTIONS": true, "NO_KEY_OPTIONS": true, "NO_TABLE_OPTIONS": true,
	"MSSQL": true, "DB2": true, "POSTGRESQL": true, "MAXDB": true, "MYSQL323": true, "MYSQL40": true}

// sqlMode is an object's sql_mode as the target has it.
func (r *run) sqlMode(mode string) string {
	if mode == "" || len(r.modes) == 0 {
		return mode
	}
	return strings.Join(slices.DeleteFunc(strings.Split(mode, ","), func(m string) bool {
		has, asked := r.modes[m]
		return asked && !has
	}), ",")
}

// knowsZone reports whether the server knows a time zone by its name.
func (s *session) knowsZone(ctx context.Context, zone string) (knows bool, err error) {
	if zone == "" || zone == "SYSTEM" {
		return true, nil
	}
	err = s.Query(ctx, "SELECT /* risso: is there such a time zone? */ CONVERT_TZ('2000-01-01 00:00:00', '+00:00', "+mysql.Literal(zone)+") IS NOT NULL", func(row [][]byte) error {
		knows = string(row[0]) == "1"
		return nil
	})
	return knows, err
}

// knowsFunction reports whether the server has a built-in function. It is prepared without arguments and never called.
func (s *session) knowsFunction(ctx context.Context, name string) (bool, error) {
	err := s.Exec(ctx, "PREPARE /* risso: is there such a function? */ risso FROM 'DO "+name+"()'")
	switch n := mysql.ErrorNumber(err); {
	case err == nil:
		return true, s.Exec(ctx, "DEALLOCATE PREPARE risso")
	case n == 0:
		return false, fmt.Errorf("look for the function %s: %w", name, err)
	default:
		return n != 1305, nil // FUNCTION does not exist
	}
}

// onlySome are functions that some servers have and others do not; the target itself is asked for each that is called. Sources:
// MariaDB documentation, "Function Differences Between MariaDB 10.11 and MySQL 8.0"; MySQL manual, "What Is New in MySQL 8.0",
// features removed, and "Built-In Function and Operator Reference", introduced and removed.
var onlySome = func() map[string]bool {
	out := map[string]bool{}
	for _, name := range strings.Fields(`
any_value asymmetric_decrypt asymmetric_encrypt bin_to_uuid uuid_to_bin is_uuid can_access_column can_access_database can_access_table
current_role distance format_bytes format_pico_time from_vector to_vector string_to_vector vector_dim vector_to_string get_lock grouping gtid_subset gtid_subtract icu_version
json_arrayagg json_objectagg json_array_intersect json_compact json_detailed json_equals json_exists json_key_value json_loose json_merge_patch
json_merge_preserve json_normalize json_object_filter_keys json_object_to_array json_overlaps json_pretty json_query json_schema_valid
json_schema_validation_report json_storage_free json_storage_size json_unquote json_value
mbrcoveredby ps_current_thread_id ps_thread_id random_bytes regexp_instr regexp_like regexp_replace regexp_substr roles_graphml
st_buffer_strategy st_collect st_distance_sphere st_frechetdistance st_geohash st_hausdorffdistance st_isvalid st_latfromgeohash st_latitude
st_lineinterpolatepoint st_lineinterpolatepoints st_longfromgeohash st_longitude st_makeenvelope st_pointatdistance st_pointfromgeohash
st_simplify st_srid st_swapxy st_symdifference st_transform st_validate st_asgeojson st_geomfromgeojson
statement_digest statement_digest_text validate_password_strength wait_for_executed_gtid_set wait_until_sql_thread_after_gtids
master_gtid_wait master_pos_wait source_pos_wait binlog_gtid_pos decode_histogram
add_months chr column_add column_check column_create column_delete column_exists column_get column_json column_list crc32c kdf lastval lengthb
median natural_sort_key nextval percentile_cont percentile_disc setval sformat sys_guid to_char to_number vec_distance vec_distance_cosine
vec_distance_euclidean vec_fromtext vec_totext encode_oracle decode_oracle lpad_oracle rpad_oracle replace_oracle substr_oracle trim_oracle
xmlsequence old_password password encrypt des_decrypt des_encrypt decode encode
area asbinary astext aswkb aswkt buffer centroid contains convexhull crosses dimension disjoint endpoint envelope equals exteriorring
geomcollfromtext geomcollfromwkb geometrycollectionfromtext geometryfromtext geometryfromwkb geometryn geometrytype geomfromtext geomfromwkb
glength interiorringn intersects isclosed isempty issimple linefromtext linefromwkb linestringfromtext mbrequal mlinefromtext mpointfromtext
mpolyfromtext numgeometries numinteriorrings numpoints overlaps pointfromtext pointfromwkb pointn polyfromtext polyfromwkb polygonfromtext
srid startpoint touches within`) {
		out[name] = true
	}
	return out
}()

// calls are the functions of onlySome that a definition calls, in lower case. What is in backticks, or after a dot, is
// a user's own; what follows INTO and the like is no function.
func calls(create string) (names []string) {
	t := sqltext.Tokens(create)
	for i := range len(t) - 1 {
		name := strings.ToLower(t[i].Text)
		if t[i].Kind != sqltext.TokenWord || t[i+1].Text != "(" || t[i+1].Kind != sqltext.TokenSign || !onlySome[name] || slices.Contains(names, name) {
			continue
		}
		if i == 0 || t[i-1].Text != "." && t[i-1].Text != "@" && !(t[i-1].Kind == sqltext.TokenWord && namesTable[strings.ToUpper(t[i-1].Text)]) {
			names = append(names, name)
		}
	}
	return names
}

// namesTable are words after which a name and a parenthesis are no call.
var namesTable = map[string]bool{"INTO": true, "TABLE": true, "EXISTS": true, "REFERENCES": true, "KEY": true, "INDEX": true, "CONSTRAINT": true, "VIEW": true,
	"PROCEDURE": true, "FUNCTION": true, "CALL": true, "AS": true, "WITH": true, "RECURSIVE": true, "REPLACE": true}
