package load

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sqltext"
)

// vocabulary is what the target knows about words in definitions.
type vocabulary struct {
	collations, charsets, engines, logins, privileges map[string]bool
	parsers                                           map[string]bool // of full-text keys, in small letters
	tablespaces                                       map[string]bool // general ones; MySQL
	partialRevokes                                    bool            // MySQL 8.0.16: privileges except for some schemas
	keyring                                           bool            // MySQL: it can encrypt
}

// readVocabulary asks the target.
func (r *run) readVocabulary(ctx context.Context, s *session) error {
	k := vocabulary{collations: map[string]bool{}, charsets: map[string]bool{}, engines: map[string]bool{}, logins: map[string]bool{}, privileges: map[string]bool{}, parsers: map[string]bool{}}
	r.transactional = map[string]bool{}
	questions := []struct {
		query string
		row   func(map[string]string)
	}{
		// MariaDB 10.10 has collations that go with several character sets: their full names are in a separate column.
		{"SELECT /* risso: which collations? */ * FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY", func(m map[string]string) {
			k.collations[m["COLLATION_NAME"]], k.collations[m["FULL_COLLATION_NAME"]], k.charsets[m["CHARACTER_SET_NAME"]] = true, true, true
		}},
		{"SELECT /* risso: which engines? */ ENGINE, SUPPORT, TRANSACTIONS FROM information_schema.ENGINES", func(m map[string]string) {
			name := strings.ToLower(m["ENGINE"])
			k.engines[name] = m["SUPPORT"] == "YES" || m["SUPPORT"] == "DEFAULT"
			r.transactional[name] = m["TRANSACTIONS"] == "YES"
		}},
		{"SELECT /* risso: which ways to log in? */ PLUGIN_NAME FROM information_schema.PLUGINS WHERE PLUGIN_TYPE = 'AUTHENTICATION' AND PLUGIN_STATUS = 'ACTIVE'", func(m map[string]string) {
			k.logins[m["PLUGIN_NAME"]] = true
		}},
		{"SELECT /* risso: which parsers of full text? */ PLUGIN_NAME FROM information_schema.PLUGINS WHERE PLUGIN_TYPE = 'FTPARSER' AND PLUGIN_STATUS = 'ACTIVE'", func(m map[string]string) {
			k.parsers[strings.ToLower(m["PLUGIN_NAME"])] = true
		}},
		{"SHOW /* risso: which privileges? */ PRIVILEGES", func(m map[string]string) { k.privileges[strings.ToUpper(m["Privilege"])] = true }},
	}
	for _, q := range questions {
		rows, err := s.QueryMaps(ctx, q.query)
		if err != nil {
			return err
		}
		for _, m := range rows {
			q.row(m)
		}
	}
	if err := r.readMySQL(ctx, s, &k); err != nil {
		return err
	}
	// Sequences and views name themselves as engines and are none.
	k.engines["merge"] = k.engines["mrg_myisam"]
	r.known = k
	return nil
}

// readMySQL asks for what only some versions of MySQL have, or show.
func (r *run) readMySQL(ctx context.Context, s *session, k *vocabulary) error {
	k.tablespaces = map[string]bool{}
	if !r.server.HasTablespaces() {
		return nil
	}
	for query, row := range map[string]func([][]byte) error{
		"SELECT /* risso: privileges but for some schemas? */ @@partial_revokes":                                                                                           func(row [][]byte) error { k.partialRevokes = string(row[0]) == "1"; return nil },
		"SELECT /* risso: can it encrypt? */ 1 FROM information_schema.PLUGINS WHERE PLUGIN_NAME LIKE 'keyring%' AND PLUGIN_STATUS = 'ACTIVE' AND PLUGIN_TYPE = 'KEYRING'": func([][]byte) error { k.keyring = true; return nil },
		"SELECT /* risso: can it encrypt? */ 1 FROM performance_schema.keyring_component_status WHERE STATUS_KEY = 'Component_status' AND STATUS_VALUE = 'Active'":         func([][]byte) error { k.keyring = true; return nil },
		"SELECT /* risso: which tablespaces? */ DISTINCT TABLESPACE_NAME FROM information_schema.FILES WHERE FILE_TYPE = 'TABLESPACE'": func(row [][]byte) error {
			k.tablespaces[string(row[0])] = true
			return nil
		},
	} {
		if err := s.Query(ctx, query, row); err != nil && mysql.ClassOf(err) != mysql.ClassMissing && mysql.ClassOf(err) != mysql.ClassPrivilege {
			return err
		}
	}
	return nil
}

// tablespace is the general tablespace that contains a table, with the words that say so; "" if it has its own. Source: MySQL manual,
// "General Tablespaces".
func (d definition) tablespace() (name, clause string) {
	at, end := asDefault.Find(d.tail, "TABLESPACE")
	if at < 0 {
		return "", ""
	}
	rest := sqltext.Tokens(d.tail[end:])
	if len(rest) == 0 || rest[0].Kind != sqltext.TokenName || strings.HasPrefix(rest[0].Text, "innodb_") {
		return "", ""
	}
	var mark sqltext.Token // that opens the executable comment around it
	for _, t := range asDefault.All(d.tail) {
		if t.Kind == sqltext.TokenMark && t.End <= at {
			mark = t
		} else if t.Kind == sqltext.TokenMark && mark.End > 0 {
			return rest[0].Text, " " + d.tail[mark.Begin:t.End]
		}
	}
	return "", ""
}

// withoutTablespace gives a table in a tablespace that does not exist here its own.
func (r *run) withoutTablespace(d definition) definition {
	if name, clause := d.tablespace(); name != "" && !r.known.tablespaces[name] {
		d.tail = strings.Replace(d.tail, clause, "", 1)
	}
	return d
}

// foreignServer reports whether the backup is of another flavour or series than the target, or of a newer release of its series: then its
// words must be examined.
func (r *run) foreignServer() bool {
	h := r.header.Server
	return !h.SameKind(r.server.Server) || !h.Number.SameSeries(r.server.Number) || h.Number > r.server.Number
}

// mapName is the word for a character set or collation in the target.
func (r *run) mapName(name string) string {
	if to, ok := r.mapped[strings.ToLower(name)]; ok {
		return to
	}
	return name
}

// learnName finds the equivalent of a character set, or a collation, that a definition names. It returns false if there is none.
func (r *run) learnName(name string, collation bool, where string) bool {
	words := r.known.charsets
	if collation {
		words = r.known.collations
	}
	name = strings.ToLower(name)
	if name == "" || words[name] || name == "binary" || name == "utf8mb3" || name == "utf8" { // every server knows these two as words
		return true
	}
	if to, ok := r.mapped[name]; ok {
		return to != name
	}
	to, safe := otherName(name, words)
	if to == "" {
		r.mapped[name] = name
		return false
	}
	r.mapped[name] = to
	if !safe {
		r.find(where, "collation "+name+" is not known here; "+to+" sorts and compares a little differently", to)
	}
	return true
}

// words walks over a definition, written under a sql_mode, and hands each word outside of quotes and comments to f, with the two words before
// it, the nearer one last; f returns its replacement.
func words(s, mode string, f func(before [2]string, word string) string) string {
	var b strings.Builder
	var before [2]string
	at := 0
	for _, t := range (sqltext.Dialect{}).WithMode(mode).Tokens(s) {
		switch {
		case t.Kind == sqltext.TokenWord:
			b.WriteString(s[at:t.Begin] + f(before, t.Text))
			before, at = [2]string{before[1], t.Text}, t.End
		case t.Text != "=":
			before = [2]string{}
		}
	}
	return b.String() + s[at:]
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// namesCharset says what the word after others names. SET alone assigns to a variable.
func namesCharset(before [2]string) (charset, collation bool) {
	switch strings.ToUpper(before[1]) {
	case "CHARSET":
		return true, false
	case "SET":
		return strings.EqualFold(before[0], "CHARACTER") || strings.EqualFold(before[0], "CHAR"), false
	case "COLLATE":
		return false, true
	}
	return false, false
}

// translate puts a definition, written under a sql_mode, into the target's words.
func (r *run) translate(create, mode string) (string, error) {
	if !r.foreignServer() {
		return create, nil
	}
	return words(create, mode, func(before [2]string, word string) string {
		if charset, collation := namesCharset(before); charset || collation {
			return r.mapName(word)
		}
		if before[1] == "ENGINE" {
			if to, ok := r.mapped["ENGINE "+word]; ok {
				return to
			}
		}
		return word
	}), nil
}

// otherDefault are character sets whose default collation is another on newer servers: utf8mb4's since MySQL 8.0, all of them
// since MariaDB 11.5 (character_set_collations).
var otherDefault = map[string]bool{"utf8mb4": true, "utf8": true, "utf8mb3": true, "ucs2": true, "utf16": true, "utf32": true}

// nameCollations writes down the collation that a definition of a table or schema means if it names a character set alone. Servers
// leave it out if it is the set's default, which is another one elsewhere: keys would sort, and distinguish values, in another way.
func (r *run) nameCollations(create string) string {
	if !r.foreignServer() {
		return create
	}
	var b strings.Builder
	var before [2]string
	at, depth := 0, 0
	tokens := asDefault.Tokens(create)
	for i, t := range tokens {
		switch {
		case t.Kind == sqltext.TokenSign && t.Text == "(":
			depth++
		case t.Kind == sqltext.TokenSign && t.Text == ")":
			depth--
		}
		if t.Kind != sqltext.TokenWord {
			if t.Text != "=" {
				before = [2]string{}
			}
			continue
		}
		charset, _ := namesCharset(before)
		before = [2]string{before[1], t.Text}
		// Deeper down is what a generated column or a CHECK computes: there can be no collation.
		if to := r.defaultCollation(strings.ToLower(t.Text)); charset && depth < 2 && to != "" && (i+1 == len(tokens) || !strings.EqualFold(tokens[i+1].Text, "COLLATE")) {
			b.WriteString(create[at:t.End] + " COLLATE " + to)
			at = t.End
		}
	}
	return b.String() + create[at:]
}

// defaultCollation is the target's name of what the source means by a character set without a collation; "" where nothing has to be said.
func (r *run) defaultCollation(charset string) string {
	if !otherDefault[charset] || charset == "utf8mb4" && r.source().NewUTF8MB4() {
		return ""
	}
	other := map[string]string{"utf8": "utf8mb3", "utf8mb3": "utf8"}[charset]
	return oneOf(r.known.collations, charset+"_general_ci", other+"_general_ci")
}

// withoutAria removes what only tables of the engine Aria have, if another one replaces it.
func (r *run) withoutAria(d definition) definition {
	if _, mapped := r.mapped["ENGINE Aria"]; mapped {
		d.tail = ariaOptions().ReplaceAllString(d.tail, "")
	}
	return d
}

var ariaOptions = pattern.Lazy(` (PAGE_CHECKSUM|TRANSACTIONAL)=[01]`)

// find notes what cannot be restored as it is.
func (r *run) find(what, reason, mapped string) {
	r.note(Finding{Trouble: fleet.Trouble{What: what, Why: reason}, Mapped: mapped})
}

// note takes a finding into the plan.
func (r *run) note(f Finding) {
	if slices.Contains(r.plan.Findings, f) {
		return
	}
	if f.Mapped == "" {
		r.leave(f)
	}
	n := 0 // of its kind: however much has a substitute, what has none is reported, and refused
	for _, o := range r.plan.Findings {
		if (o.Mapped == "") == (f.Mapped == "") {
			n++
		}
	}
	switch {
	case n < maxFindings:
		r.plan.Findings = append(r.plan.Findings, f)
	case n == maxFindings && f.Mapped != "":
		r.plan.Findings = append(r.plan.Findings, moreFindings)
	}
}

// maxFindings is how many things are reported one by one that cannot be restored, and as many that are restored in another form.
const maxFindings = 1000

// moreFindings follows them.
var moreFindings = Finding{Trouble: fleet.Trouble{What: "others", Why: "more cannot be restored as they are: these are the first"}, Mapped: "another form"}

// findings puts what has no substitute first.
func (r *run) findings() []Finding {
	list := slices.Clone(r.plan.Findings)
	slices.SortStableFunc(list, func(a, b Finding) int {
		switch {
		case (a.Mapped == "") == (b.Mapped == ""):
			return 0
		case a.Mapped == "":
			return -1
		}
		return 1
	})
	return list
}

// inspectTable looks at the words of a table's definition.
func (r *run) inspectTable(t *repo.Table) error {
	name := mysql.Quote(t.Schema) + "." + mysql.Quote(t.Name)
	def, err := parseTable(t.Create)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", name, repo.ErrDamaged, err)
	}
	if t.Bytes >= laterBytes && strings.EqualFold(def.engine(), "InnoDB") {
		if _, keys := def.secondaryKeys(); len(keys) > 0 {
			r.keysLater[tableKey(t.Schema, t.Name)] = true
		}
	}
	r.tellNames(t, def)
	if err := r.notePointers(t, def); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	engine := def.engine()
	if !r.known.engines[strings.ToLower(engine)] {
		if r.transactional["innodb"] && strings.EqualFold(engine, "Aria") {
			r.mapped["ENGINE "+engine] = "InnoDB"
			r.find("table "+name, "engine "+engine+" is not here", "InnoDB")
		} else {
			r.find("table "+name, "engine "+engine+" is not here", "")
			r.leftOut[leftTable(t.Schema, t.Name)] = true
		}
	}
	if r.foreignServer() {
		if unknown := r.inspectWords("table "+name, t.Create, ""); unknown != "" {
			r.find("table "+name, "character set or collation "+unknown+" is not known here; a backup taken after ALTER TABLE … "+knownCharset+" has one that is", "")
			r.leftOut[leftTable(t.Schema, t.Name)] = true
		}
	}
	if why := r.strangeHistory(t); why != "" {
		r.find("table "+name, why, "current rows only")
	}
	if space, _ := def.tablespace(); space != "" && !r.known.tablespaces[space] {
		r.find("table "+name, "tablespace "+space+" is not here", "a tablespace of its own")
	}
	if n := largestRow(t); !r.localFiles && n > int64(r.maxPacket) {
		r.find("table "+name, fmt.Sprintf("a row has %d bytes or more, and max_allowed_packet is %d: raise that, or set local_infile=ON", n, r.maxPacket), "")
		r.leftOut[leftTable(t.Schema, t.Name)] = true
	}
	return nil
}

// knownCharset gives a table a character set that every server has.
const knownCharset = "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"

// strangeHistory says why rows of the past cannot be restored, or "".
func (r *run) strangeHistory(t *repo.Table) string {
	const longer = 110500 // from 11.5 on the last moment that a TIMESTAMP knows, which marks rows of now, is in 2106 instead of 2038
	switch {
	case !t.History || !r.server.HasHistory():
		return "" // an unversioned table refuses the definition
	case !r.server.KeepsHistory():
		return "it has historical rows, which MariaDB can restore since 10.11; a backup taken with --no-history has none"
	case (r.header.Server.Number >= longer) != (r.server.Number >= longer):
		return "it has historical rows, and MariaDB 11.5 and later mark current ones differently; a backup taken with --no-history has none"
	}
	return ""
}

// largestRow is a size that some row of a table reaches; most tables have larger ones.
func largestRow(t *repo.Table) (n int64) {
	for _, c := range t.Chunks {
		if c.Rows > 0 {
			n = max(n, c.Bytes/c.Rows)
		}
	}
	return n
}

// leftTable is the key of a table in leftOut.
func leftTable(schema, name string) string { return "table\x00" + schema + "\x00" + name }

// inspectWords looks for character sets and collations, and returns the first without an equivalent.
func (r *run) inspectWords(where, create, mode string) (unknown string) {
	words(create, mode, func(before [2]string, word string) string {
		charset, collation := namesCharset(before)
		if strings.EqualFold(word, "DEFAULT") {
			return word
		}
		if (charset || collation) && !r.learnName(word, collation, where) && unknown == "" {
			unknown = word
		}
		return word
	})
	return unknown
}

// schemaWords are what follows the name in a CREATE DATABASE, in the target's words.
func (r *run) schemaWords(m *repo.Schema) (string, error) {
	where := "schema " + mysql.Quote(m.Name)
	c, err := asDefault.ReadCreate(m.Create)
	if err != nil {
		return "", fmt.Errorf("the definition of %s: %w: %w", where, repo.ErrDamaged, err)
	}
	rest := m.Create[c.Name.End:]
	if !r.foreignServer() {
		return rest, nil
	}
	if begin, end := asDefault.Find(rest, "COMMENT"); begin >= 0 && !r.server.CommentsSchemas() {
		r.find(where, "schemas have no COMMENT here", "the same without it")
		if t := sqltext.Tokens(rest[end:]); len(t) > 0 {
			rest = strings.TrimRight(rest[:begin], " ") + rest[end+t[0].End:]
		}
	}
	if unknown := r.inspectWords(where, rest, ""); unknown != "" {
		r.find(where, "character set or collation "+unknown+" is not known here", "the server's default")
		return "", nil
	}
	words, err := r.translate(rest, "")
	return r.nameCollations(words), err
}

// inspectObject checks whether the target can have an object.
func (r *run) inspectObject(o *repo.Object) {
	where := string(o.Kind) + " " + objectName(o)
	leave := func(reason string) {
		r.note(lost(o, reason))
		r.leftOut[objectKey(o)] = true
	}
	switch o.Kind {
	case repo.Sequence, repo.Package, repo.PackageBody:
		if !r.server.HasSequences() {
			leave("only MariaDB has these")
		}
	case repo.Account:
		if why := r.strangeAccount(o); why != "" {
			leave(why)
		} else {
			r.unsureGrants(o)
		}
	case repo.Trigger:
		if _, ok := r.choice.rename[[2]string{o.Schema, o.Table}]; ok {
			r.plan.Notes = append(r.plan.Notes, where+" is left out: its table is restored under another name")
		}
	}
	if r.foreignServer() {
		unknown := ""
		if o.Kind != repo.Account {
			unknown = r.inspectWords(where, o.Create, o.SQLMode)
		}
		for _, c := range []string{o.Collation, o.Database} {
			if !r.learnName(c, true, where) {
				unknown = c
			}
		}
		if unknown != "" {
			leave("character set or collation " + unknown + " is not known here")
		}
	}
}

// loginOf is the authentication plug-in that a CREATE USER names, or "".
func loginOf(create string) (plugin string) {
	for _, word := range []string{"WITH", "VIA"} {
		if _, end := asDefault.Find(create, "IDENTIFIED", word); end >= 0 {
			if t := sqltext.Tokens(create[end:]); len(t) > 0 {
				return asDefault.Value(t[0])
			}
		}
	}
	return ""
}
