package scenario_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/sandbox"
)

// picture is what a server's own client tells of a schema, a text for each thing: "rows of film", "column film.title". Nothing of it
// goes through Risso.
type picture map[string]string

// client runs statements by the command-line client, in batches as mysql prints them: tabs between values, a line for a row.
func client(t *testing.T, n *sandbox.Node, schema, statements string, args ...string) string {
	t.Helper()
	out, err := tryClient(t, n, schema, statements, args...)
	if err != nil {
		t.Fatalf("client of %s: %v", n.Server, err)
	}
	return out
}

func tryClient(t *testing.T, n *sandbox.Node, schema, statements string, args ...string) (string, error) {
	t.Helper()
	cmd, err := n.Client(t.Context(), append([]string{"--batch", "--skip-column-names", "--default-character-set=utf8mb4"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	if schema != "" {
		cmd.Args = append(cmd.Args, schema)
	}
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(statements), &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, said.String())
	}
	return out.String(), nil
}

// askAll runs questions in one session of the client, and returns what each answers: an error's number if it is refused.
func askAll(t *testing.T, n *sandbox.Node, schema string, questions []string) []string {
	t.Helper()
	if len(questions) == 0 {
		return nil
	}
	// Views were made under many modes: what they answer must not depend on this session's.
	all := "SET time_zone = '+00:00', sql_mode = '', group_concat_max_len = 1000000;\n"
	for i, q := range questions {
		all += fmt.Sprintf("SELECT '-- question %d';\n%s;\n", i, q)
	}
	out, err := tryClient(t, n, schema, all, "--force")
	answers := make([]string, len(questions))
	parts := strings.Split(out, "-- question ")
	if len(parts) != len(questions)+1 {
		t.Fatalf("client of %s: got %d answers to %d questions: %v, want len(parts) %v",
			n.Server, len(parts)-1, len(questions), err, len(questions)+1)
	}
	for i, p := range parts[1:] {
		_, answers[i], _ = strings.Cut(p, "\n")
	}
	if err != nil {
		for _, m := range clientError.FindAllStringSubmatch(err.Error(), -1) {
			line, _ := strconv.Atoi(m[2]) // the form has digits only
			for i := range questions {
				if line -= strings.Count(questions[i], "\n") + 2; line <= 1 {
					answers[i] += "error " + m[1]
					break
				}
			}
		}
	}
	return answers
}

var clientError = regexp.MustCompile(`ERROR (\d+) \(\w+\) at line (\d+)`)

// takePicture asks for all of a schema. What is the same under another name on another flavour gets one name.
func takePicture(t *testing.T, n *sandbox.Node, schema string) picture {
	t.Helper()
	p := picture{}
	var questions []string
	for _, q := range pictureQueries {
		questions = append(questions, strings.ReplaceAll(q.ask, "SCHEMA()", quoted(schema)))
	}
	for i, answer := range askAll(t, n, "information_schema", questions) {
		q := pictureQueries[i]
		for row := range strings.Lines(answer) {
			f := fields(row)
			key, value := q.what+" "+strings.Join(f[:q.key], "."), f[q.key:]
			for i := range value {
				value[i] = normal(value[i])
			}
			if q.tidy != nil {
				value = q.tidy(value)
			}
			p[key] = strings.TrimPrefix(p[key]+"; "+strings.Join(value, ", "), "; ")
		}
	}
	var names []string
	questions = nil
	for table, columns := range p.tables(t, n, schema) {
		names, questions = append(names, "rows of "+table), append(questions, rowsOf(table, columns))
	}
	for _, view := range p.objects("view") {
		names, questions = append(names, "rows of view "+view), append(questions, "SELECT * FROM "+backticked(view))
	}
	for i, answer := range askAll(t, n, schema, questions) {
		p[names[i]] = sumOfLines(answer)
	}
	return p
}

// pictureQuery reads a kind of thing: the first key columns name it.
type pictureQuery struct {
	what, ask string
	key       int
	tidy      func([]string) []string
}

var pictureQueries = []pictureQuery{
	{"schema", "SELECT 'all', DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM SCHEMATA WHERE SCHEMA_NAME = SCHEMA()", 1, nil},
	{"table", "SELECT TABLE_NAME, ENGINE, TABLE_COLLATION, IFNULL(AUTO_INCREMENT, 1), TABLE_COMMENT FROM TABLES WHERE TABLE_SCHEMA = SCHEMA() AND TABLE_TYPE LIKE '%BASE TABLE%' OR TABLE_SCHEMA = SCHEMA() AND TABLE_TYPE LIKE 'SYSTEM VERSIONED'", 1, nil},
	{"column", "SELECT c.TABLE_NAME, COLUMN_NAME, ORDINAL_POSITION, COLUMN_DEFAULT, IS_NULLABLE, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, EXTRA, COLUMN_COMMENT FROM COLUMNS c JOIN TABLES t ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME WHERE c.TABLE_SCHEMA = SCHEMA() AND TABLE_TYPE <> 'VIEW' AND TABLE_TYPE <> 'SEQUENCE'", 2, tidyColumn},
	{"index", "SELECT TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, IF(INDEX_TYPE = 'SPATIAL', NULL, SUB_PART), NON_UNIQUE, INDEX_TYPE, IF(INDEX_TYPE = 'SPATIAL', 'A', COLLATION), INDEX_COMMENT FROM STATISTICS WHERE TABLE_SCHEMA = SCHEMA() ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX", 2, nil},
	{"key", "SELECT TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION, COLUMN_NAME, REFERENCED_TABLE_SCHEMA = SCHEMA(), REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME FROM KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = SCHEMA() ORDER BY TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION", 2, nil},
	{"rule", "SELECT TABLE_NAME, CONSTRAINT_NAME, REPLACE(UPDATE_RULE, 'NO ACTION', 'RESTRICT'), REPLACE(DELETE_RULE, 'NO ACTION', 'RESTRICT') FROM REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = SCHEMA()", 2, nil},
	{"partition", "SELECT TABLE_NAME, PARTITION_NAME, SUBPARTITION_NAME, PARTITION_ORDINAL_POSITION, PARTITION_METHOD, REPLACE(LOWER(PARTITION_EXPRESSION), '`', ''), REPLACE(PARTITION_DESCRIPTION, '`', '') FROM PARTITIONS WHERE TABLE_SCHEMA = SCHEMA() AND PARTITION_NAME IS NOT NULL ORDER BY 1, 4, 3", 3, nil},
	{"view", "SELECT TABLE_NAME, CHECK_OPTION, DEFINER, SECURITY_TYPE FROM VIEWS WHERE TABLE_SCHEMA = SCHEMA()", 1, nil},
	{"view column", "SELECT c.TABLE_NAME, COLUMN_NAME, ORDINAL_POSITION FROM COLUMNS c JOIN TABLES t ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME WHERE c.TABLE_SCHEMA = SCHEMA() AND TABLE_TYPE = 'VIEW'", 2, nil},
	{"trigger", "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE, ACTION_TIMING, EVENT_MANIPULATION, ACTION_ORDER, ACTION_STATEMENT, SQL_MODE, DEFINER FROM TRIGGERS WHERE TRIGGER_SCHEMA = SCHEMA()", 1, nil},
	{"routine", "SELECT ROUTINE_TYPE, ROUTINE_NAME, ROUTINE_DEFINITION, IS_DETERMINISTIC, SQL_DATA_ACCESS, SECURITY_TYPE, SQL_MODE, DEFINER, ROUTINE_COMMENT FROM ROUTINES WHERE ROUTINE_SCHEMA = SCHEMA() AND ROUTINE_TYPE IN ('PROCEDURE', 'FUNCTION')", 2, nil},
	{"parameter", "SELECT SPECIFIC_NAME, ORDINAL_POSITION, PARAMETER_MODE, PARAMETER_NAME, DTD_IDENTIFIER FROM PARAMETERS WHERE SPECIFIC_SCHEMA = SCHEMA()", 2, nil},
	{"event", "SELECT EVENT_NAME, EVENT_DEFINITION, EVENT_TYPE, EXECUTE_AT, INTERVAL_VALUE, INTERVAL_FIELD, STARTS, ENDS, STATUS, ON_COMPLETION, SQL_MODE, DEFINER, EVENT_COMMENT, TIME_ZONE FROM EVENTS WHERE EVENT_SCHEMA = SCHEMA()", 1, nil},
}

var (
	intWidth  = regexp.MustCompile(`\b((?:tiny|small|medium|big)?int|year)\(\d+\)`)
	utf8Three = regexp.MustCompile(`\butf8(_|\b)`)
	oldModes  = regexp.MustCompile(`(?i),?\b(NO_AUTO_CREATE_USER|NO_FIELD_OPTIONS|NO_KEY_OPTIONS|NO_TABLE_OPTIONS)\b`)
)

// normal converts a value to one form on all servers.
func normal(s string) string {
	s = intWidth.ReplaceAllString(s, "$1")
	s = utf8Three.ReplaceAllString(s, "utf8mb3$1")
	s = strings.ReplaceAll(s, "geomcollection", "geometrycollection")
	return strings.TrimPrefix(oldModes.ReplaceAllString(s, ""), ",")
}

// tidyColumn converts defaults and extras to one form: MariaDB quotes, and writes calls with parentheses.
func tidyColumn(f []string) []string {
	d := strings.TrimSuffix(strings.ReplaceAll(strings.ToLower(f[1]), "current_timestamp()", "current_timestamp"), "()")
	if len(d) > 1 && strings.HasPrefix(d, "'") && strings.HasSuffix(d, "'") {
		d = strings.ReplaceAll(d[1:len(d)-1], "''", "'")
	}
	f[1] = d
	f[6] = strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(f[6]), "default_generated", ""), "current_timestamp()", "current_timestamp"))
	return f
}

var unescape = strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n", `\0`, "\x00")

// fields are the values of a line of the client's.
func fields(line string) []string {
	f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
	for i := range f {
		f[i] = unescape.Replace(f[i])
	}
	return f
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func backticked(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }

// objects are the names of the things of a kind.
func (p picture) objects(what string) (names []string) {
	for k := range p {
		if name, ok := strings.CutPrefix(k, what+" "); ok && !strings.HasPrefix(k, "view column ") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// tables are the columns of each table with their types.
func (p picture) tables(t *testing.T, n *sandbox.Node, schema string) map[string][][2]string {
	t.Helper()
	all := map[string][][2]string{}
	checks := map[string]bool{} // of MariaDB, for which JSON is text with a check
	if n.Program.Family == sandbox.FamilyMariaDB {
		for row := range strings.Lines(client(t, n, "information_schema", "SELECT TABLE_NAME, CHECK_CLAUSE FROM CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = "+quoted(schema))) {
			f := fields(row)
			checks[f[0]+"\t"+f[1]] = true
		}
	}
	for row := range strings.Lines(client(t, n, "information_schema", "SELECT c.TABLE_NAME, COLUMN_NAME, DATA_TYPE FROM COLUMNS c JOIN TABLES t ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME WHERE c.TABLE_SCHEMA = "+quoted(schema)+
		" AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY c.TABLE_NAME, ORDINAL_POSITION")) {
		f := fields(row)
		if checks[f[0]+"\tjson_valid("+backticked(f[1])+")"] {
			f[2] = "json"
		}
		if key := "column " + f[0] + "." + f[1]; f[2] == "json" {
			v := strings.Split(p[key], ", ")
			p[key] = "json: " + v[0] + v[2] // the rest of it is MariaDB's own
		}
		all[f[0]] = append(all[f[0]], [2]string{f[1], f[2]})
	}
	return all
}

// rowsOf asks for all that a table holds, in a form that is the same on all servers.
func rowsOf(table string, columns [][2]string) string {
	var list []string
	for _, c := range columns {
		name := backticked(c[0])
		switch c[1] {
		case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob",
			"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection":
			name = "HEX(" + name + ")"
		case "enum", "set":
			name = "HEX(" + name + "), " + name + " + 0"
		case "bit":
			name += " + 0"
		case "json":
			name = "CONCAT('json ', " + name + ")"
		}
		list = append(list, name)
	}
	return "SELECT " + strings.Join(list, ", ") + " FROM " + backticked(table)
}

// sameJSON converts a document to one form: servers keep other blanks and another order of names.
func sameJSON(v string) string {
	var doc any
	d := json.NewDecoder(strings.NewReader(strings.ReplaceAll(v, `\\`, `\`)))
	d.UseNumber()
	if d.Decode(&doc) != nil || d.More() {
		return v
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return v
	}
	return string(b)
}

// sumOfLines is the number of rows and a sum of what they hold, in any order.
func sumOfLines(answer string) string {
	lines := slices.Collect(strings.Lines(answer))
	for i, row := range lines {
		if strings.Contains(row, "json ") {
			f := strings.Split(row, "\t")
			for k, v := range f {
				if doc, ok := strings.CutPrefix(v, "json "); ok {
					f[k] = sameJSON(strings.TrimSuffix(doc, "\n"))
				}
			}
			lines[i] = strings.Join(f, "\t") + "\n"
		}
	}
	slices.Sort(lines)
	return fmt.Sprintf("%d lines, %x", len(lines), sha256.Sum256([]byte(strings.Join(lines, ""))))
}

// definitions are SHOW CREATE of all that a schema holds, as printed: for servers of one kind.
func definitions(t *testing.T, n *sandbox.Node, schema string, p picture) picture {
	t.Helper()
	d := picture{}
	var names, questions []string
	for _, kind := range []string{"table", "view", "trigger", "event"} {
		for _, name := range p.objects(kind) {
			names, questions = append(names, kind+" "+name), append(questions, "SHOW CREATE "+kind+" "+backticked(name))
		}
	}
	for _, name := range p.objects("routine") {
		kind, routine, _ := strings.Cut(name, ".")
		names, questions = append(names, kind+" "+routine), append(questions, "SHOW CREATE "+kind+" "+backticked(routine))
	}
	for i, answer := range askAll(t, n, schema, questions) {
		f := fields(answer)
		if strings.HasPrefix(names[i], "trigger") { // the last tells when it was made
			f = f[:len(f)-1]
		}
		d["definition of "+names[i]] = strings.Join(f, "\t")
	}
	return d
}

// differences lists what is not the same in two pictures.
func (p picture) differences(got picture) (list []string) {
	all := maps.Clone(p)
	maps.Copy(all, got)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if a, b := p[k], got[k]; a != b {
			list = append(list, fmt.Sprintf("%s:\n  was %s\n  is  %s", k, cmp.Or(a, "not there"), cmp.Or(b, "not there")))
		}
	}
	return list
}
