package alter

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sqltext"
)

// Tool is another program that can make the change while the table is in use, by copying it itself.
type Tool struct {
	Name    string   `json:"name"`
	Command string   `json:"command,omitempty"` // for a shell; "" it cannot
	Cannot  []string `json:"cannot,omitempty"`  // why not
	Notes   []string `json:"notes,omitempty"`
}

// tools are those that may help where a copy, or a rebuild, would keep others waiting or replicas behind.
func tools(f *Facts, st Statement, p *Plan) []Tool {
	if p.Kind != KindCopy && !p.Rebuilds {
		return nil
	}
	return []Tool{ghost(f, st), ptOSC(f, st)}
}

// plainName are the signs of names that need no quotes anywhere.
const plainName = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// ghost is gh-ost. Sources: its doc/requirements-and-limitations.md and doc/command-line-flags.md (v1.1.6).
func ghost(f *Facts, st Statement) Tool {
	t := Tool{Name: "gh-ost"}
	no := func(format string, args ...any) { t.Cannot = append(t.Cannot, fmt.Sprintf(format, args...)) }
	if why := f.Server.NoGhost(); why != "" {
		no("%s", why)
	}
	if strings.Trim(st.Table.Schema+st.Table.Name, plainName) != "" {
		no("the name of the schema or table has other signs than letters, digits and _, which it does not get through (seen with a blank)")
	}
	for _, n := range f.Neighbours {
		if n.Parent || n.Child {
			no("it does not take tables with foreign keys (here with %s)", n.Name)
			break
		}
	}
	if len(f.Triggers) > 0 {
		no("it does not take tables with triggers")
	}
	if !copyKey(f, st) {
		no("the table has no primary key, nor a unique key of columns that are NOT NULL")
	}
	if f.Replicas.Cluster {
		no("it does not work with Galera or Group Replication in several-primary mode")
	}
	if v := f.Variables["log_bin"]; v == "OFF" || v == "0" {
		no("the server writes no binary log")
	}
	if v := f.Variables["binlog_format"]; v != "" && !strings.EqualFold(v, "ROW") {
		no("it needs binlog_format=ROW, and it is %s", v)
	}
	if v := f.Variables["binlog_row_image"]; v != "" && !strings.EqualFold(v, "FULL") {
		no("it needs binlog_row_image=FULL, and it is %s", v)
	}
	bothCannot(f, st, no)
	if len(t.Cannot) > 0 {
		return t
	}
	words := []string{"gh-ost", "--conf=" + f.Login.File, "--host=" + fleet.ShellWord(f.Login.Host), "--port=" + strconv.Itoa(f.Login.Port), "--database=" + fleet.ShellWord(st.Table.Schema), "--table=" + fleet.ShellWord(st.Table.Name),
		"--alter=" + fleet.ShellWord(plainBody(f, st)), "--allow-on-master", "--assume-rbr", "--max-lag-millis=1500", "--cut-over-lock-timeout-seconds=3", "--execute"}
	if len(st.Renamed) > 0 {
		words = append(words, "--approve-renamed-columns")
	}
	t.Command = strings.Join(words, " ")
	t.Notes = append(t.Notes, "the account needs "+grantsOfTool(f, st, "SELECT, INSERT, UPDATE, DELETE, ALTER, CREATE, DROP, INDEX, LOCK TABLES", "REPLICATION SLAVE, REPLICATION CLIENT, PROCESS"), loginNote(f),
		"it reads the binary log of that server as a replica does; leave out --execute to rehearse")
	return t
}

// ptOSC is pt-online-schema-change. Source: its manual page (percona-toolkit 3.2.1).
func ptOSC(f *Facts, st Statement) Tool {
	t := Tool{Name: "pt-online-schema-change"}
	no := func(format string, args ...any) { t.Cannot = append(t.Cannot, fmt.Sprintf(format, args...)) }
	if why := f.Server.NoPtOSC(); why != "" {
		no("%s", why)
	}
	if strings.ContainsAny(st.Table.Schema+st.Table.Name, "'\"\\`,%") {
		no("the name of the schema or table has a quote or another sign with which it does not find the table (seen with ')")
	}
	if !copyKey(f, st) {
		no("the table has no primary key, nor a unique key of columns that are NOT NULL")
	}
	if len(f.Triggers) > 0 && f.Server.OneTriggerOfAKind() {
		no("the table has triggers, and the server takes only one of a kind on a table")
	}
	bothCannot(f, st, no)
	if len(t.Cannot) > 0 {
		return t
	}
	dsn := []string{"D=" + st.Table.Schema, "t=" + st.Table.Name, "h=" + f.Login.Host, "P=" + strconv.Itoa(f.Login.Port)}
	if f.Login.Socket != "" {
		dsn = append(dsn[:2], "S="+f.Login.Socket)
	}
	words := []string{"pt-online-schema-change", "--alter=" + fleet.ShellWord(plainBody(f, st)), "--set-vars=lock_wait_timeout=3", "--max-lag=2", "--execute"}
	if slices.ContainsFunc(f.Neighbours, func(n Neighbour) bool { return n.Child }) {
		words = append(words, "--alter-foreign-keys-method=auto")
	}
	if len(f.Triggers) > 0 {
		words = append(words, "--preserve-triggers")
	}
	if !f.Server.KnowsSlaveWords() || len(f.Replicas.Addresses) == 0 {
		words = append(words, "--recursion-method=none")
		if len(f.Replicas.Addresses) > 0 {
			t.Notes = append(t.Notes, "it cannot look at this server's replicas: their lag is not watched")
		}
	}
	if len(st.Renamed) > 0 {
		words = append(words, "--no-check-alter")
		t.Notes = append(t.Notes, "it drops the values of columns that CHANGE renames unless it recognizes each of them: try --dry-run, and read what it says about renamed columns")
	}
	words = append(words, fleet.ShellWord(strings.Join(dsn, ","))+",F="+f.Login.File)
	t.Command = strings.Join(words, " ")
	t.Notes = append(t.Notes, "the account needs "+grantsOfTool(f, st, "SELECT, INSERT, UPDATE, DELETE, ALTER, CREATE, DROP, INDEX, TRIGGER, REFERENCES", "PROCESS, REPLICATION SLAVE, SUPER")+" (SUPER for its triggers while the binary log is on, unless log_bin_trust_function_creators is)", loginNote(f),
		"its triggers make each write to the table a bit slower; replace --execute by --dry-run to rehearse")
	return t
}

// bothCannot is what neither tool does.
func bothCannot(f *Facts, st Statement, no func(string, ...any)) {
	switch c, _ := f.Server.Dialect().ReadChange(st.With(Mark, "", "")); {
	case st.RenamedTo != nil:
		no("the statement renames the table")
	case c.Moves:
		no("the statement moves, empties or divides the table's partitions or files, which is not done by copying rows")
	case st.Ignore:
		no("ALTER IGNORE cannot be given to it")
	case !mysql.Transactional(f.Table.Engine):
		no("the table's engine is %s: a copy of it made in pieces would not be consistent", f.Table.Engine)
	case f.Table.Versioned:
		no("the table keeps rows of the past (WITH SYSTEM VERSIONING), which a copy of its rows would lose")
	}
}

// copyKey reports whether a key leads through the table in pieces, before and after.
func copyKey(f *Facts, _ Statement) bool {
	return slices.ContainsFunc(f.Table.Keys, func(k define.TableKey) bool {
		return k.Unique && !k.Special && !slices.ContainsFunc(k.Parts, func(p define.KeyPart) bool {
			c, ok := f.Table.Column(p.Column)
			return !ok || c.Nullable || p.Prefix > 0
		})
	})
}

// plainBody is the change in one line, as a session without a special sql_mode reads it.
func plainBody(f *Facts, st Statement) string {
	body := f.Server.Dialect().ForDefault(st.Body)
	var b strings.Builder
	for _, t := range (sqltext.Dialect{}).All(body) {
		if t.Kind == sqltext.TokenBlank {
			b.WriteByte(' ')
			continue
		}
		b.WriteString(body[t.Begin:t.End])
	}
	return b.String()
}

func grantsOfTool(f *Facts, st Statement, schema, global string) string {
	return "GRANT " + schema + " ON " + mysql.QuoteGrantSchema(st.Table.Schema) + ".* and GRANT " + global + " ON *.*"
}

func loginNote(f *Facts) string {
	return "user and password are read from [client] in " + f.Login.File + ", so that no list of processes shows them"
}

// ReplicasFirst says whether replicas may be altered before their primary, each on its own.
type ReplicasFirst struct {
	Can  bool   `json:"can"` // replicas may be altered before their primary
	Text string `json:"text"`
}

// replicasFirst decides whether row events pass between a table before the change and one after it, in both directions. Source: MySQL manual,
// "Replication with Differing Table Definitions on Source and Replica": the columns that both have come first and in the same order, each extra one
// has a default, and rows are logged as rows.
func replicasFirst(f *Facts, st Statement, p *Plan, after string) (r ReplicasFirst) {
	no := func(format string, args ...any) ReplicasFirst {
		return ReplicasFirst{Text: "replicas cannot be altered first: " + fmt.Sprintf(format, args...)}
	}
	now, err := define.ParseTable(st.Table.Schema, after)
	c, _ := f.Server.Dialect().ReadChange(st.With(Mark, "", ""))
	switch {
	case after == "" || err != nil:
		return no("what the table will be is not known")
	case f.Replicas.Cluster:
		return no("the server is a member of a cluster")
	case !strings.EqualFold(f.Variables["binlog_format"], "ROW"):
		return no("binlog_format is %s, and statements might not mean the same on both", f.Variables["binlog_format"])
	case c.Moves || st.RenamedTo != nil || len(st.Others) > 0 || len(ruleTests(f, st, after, func(s string) string { return s })) > 0:
		return no("the statement does more than columns and keys")
	case len(now.Columns) < len(f.Table.Columns):
		return no("columns are dropped")
	}
	for i, old := range f.Table.Columns {
		n := now.Columns[i]
		if !strings.EqualFold(old.Name, n.Name) || old.FullType != n.FullType || old.Charset != n.Charset || old.Nullable != n.Nullable || old.Generated != n.Generated {
			return no("column %s becomes another, or gets another place", old.Name)
		}
	}
	for _, n := range now.Columns[len(f.Table.Columns):] {
		if !n.Nullable && !n.Generated && !n.Default {
			return no("the new column %s has no default", n.Name)
		}
	}
	for _, k := range now.Keys {
		if _, ok := uniqueTest(&f.Table, st, k, func(s string) string { return s }); ok {
			return no("the key %s is unique: rows that the primary takes until then could stop replication", k.Name)
		}
	}
	if !p.Rebuilds && len(p.Builds) == 0 {
		return ReplicasFirst{Can: true, Text: "to alter them first brings nothing"}
	}
	return ReplicasFirst{Can: true, Text: "risso alter run --replicas-first alters each before the primary, and none falls behind for others"}
}
