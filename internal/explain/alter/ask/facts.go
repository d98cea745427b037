// Package ask learns what a plan for an ALTER TABLE is made of: what a server says of the table, what an empty clone of it answers on a sandbox
// of the same kind, and how long the change takes there on a part of the real rows. The server itself is only read.
package ask

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/host"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/read"
)

// ErrNoTable is wrapped when there is nothing to alter.
var ErrNoTable = errors.New("there is no such table")

// Watch is how long Facts watches what goes on with the table; 0: it does not.
const Watch = time.Second

// reader learns the facts.
type reader struct {
	c *mysql.Conn
	s *mysql.Stream
	f alter.Facts
}

// Parse takes an ALTER TABLE apart as the server of a connection reads it; a table without a schema is in the target's.
func Parse(c *mysql.Conn, target mysql.Target, text string) (alter.Statement, error) {
	st, err := alter.Parse(c.Server.Dialect(), text)
	if err != nil {
		return st, fault.New(fault.Usage, `give one statement: risso alter plan "ALTER TABLE shop.orders ADD note TEXT"`, err)
	}
	if st = st.In(target.Database()); st.Table.Schema == "" {
		return st, fault.New(fault.Usage, "write schema.table in the statement, or name the schema at the end of --dsn", fmt.Errorf("which schema is %s in?", mysql.Quote(st.Table.Name)))
	}
	return st, nil
}

// Facts reads what the server says of a statement's table and of itself.
func Facts(ctx context.Context, target mysql.Target, c *mysql.Conn, st alter.Statement, watch time.Duration) (alter.Facts, error) {
	s, err := target.ConnectStream(ctx, mysql.StreamOptions{Patience: time.Minute})
	if err != nil {
		return alter.Facts{}, err
	}
	defer s.Close()
	if err := s.ForRows(ctx, c.Server); err != nil {
		return alter.Facts{}, err
	}
	r := &reader{c: c, s: s, f: alter.Facts{Server: c.Server, Versions: -1}}
	if err := r.table(ctx, st.Table); err != nil {
		return r.f, err
	}
	for _, step := range []func(context.Context, alter.Statement) error{r.variables, r.sizes, r.neighbours, r.triggers, r.views, r.replicas, r.place, r.holders} {
		if err := step(ctx, st); err != nil {
			return r.f, err
		}
	}
	return r.f, r.traffic(ctx, st.Table, watch)
}

func (r *reader) gap(what string, err error) error {
	switch mysql.ClassOf(err) {
	case "":
		return nil
	case mysql.ClassPrivilege, mysql.ClassMissing, mysql.ClassLogin:
		r.f.Gaps = append(r.f.Gaps, fleet.Trouble{What: what, Why: err.Error(), Remedy: fleet.RemedyOf(err)})
		return nil
	}
	return err
}

// table reads the definition.
func (r *reader) table(ctx context.Context, name mysql.TableName) error {
	info, comment, err := define.FindTable(ctx, r.s, name)
	switch {
	case err != nil:
		return err
	case info == nil:
		return fault.New(fault.Failed, "check the name, and whether the account may see it: "+r.c.Server.Grant("SELECT"), fmt.Errorf("%w: %s", ErrNoTable, name))
	case info.View || info.Sequence:
		return fault.New(fault.Failed, "", fmt.Errorf("%w: %s is a view or a sequence", ErrNoTable, name))
	case info.Engine == "":
		return fmt.Errorf("the server cannot open %s: %s", name, comment)
	}
	create, err := define.CreateTable(ctx, r.s, name)
	if err != nil {
		return err
	}
	if r.f.Table, err = define.ParseTable(name.Schema, create); err != nil {
		return err
	}
	r.f.Rows, r.f.Data = info.Rows, info.Bytes
	r.f.Schema, err = define.CreateSchema(ctx, r.s, name.Schema)
	return err
}

// variables reads what decides.
func (r *reader) variables(ctx context.Context, _ alter.Statement) error {
	session, global := r.c.Server.AlterVariables()
	redo, _ := r.c.Server.RedoVariable()
	global = append(global, r.c.Server.AlterStartVariables()...)
	global = append(global, redo, "innodb_buffer_pool_size", "innodb_lru_scan_depth", "innodb_page_size", "innodb_tmpdir", "tmpdir", "datadir", "innodb_data_home_dir", "lower_case_table_names", "log_bin", "binlog_format", "binlog_row_image",
		"gtid_mode", "wsrep_on", "group_replication_group_name", "read_only", "super_read_only", "sql_log_bin", "binlog_alter_two_phase", "lock_wait_timeout", "character_set_server", "collation_server", "log_slave_updates", "log_replica_updates")
	var err error
	if r.f.Variables, err = read.Variables(ctx, r.c, global); err != nil {
		return fmt.Errorf("read the variables: %w", err)
	}
	r.f.Session = map[string]string{}
	quoted := make([]string, len(session))
	for i, v := range session {
		quoted[i] = mysql.Literal(v)
	}
	err = r.c.Query(ctx, "SHOW /* risso: what decides on an ALTER TABLE */ SESSION VARIABLES WHERE Variable_name IN ("+strings.Join(quoted, ", ")+")", func(row []sqldriver.Value) error {
		r.f.Session[strings.ToLower(mysql.Text(row[0]))] = mysql.Text(row[1])
		return nil
	})
	r.f.Session["sql_mode"] = r.c.Server.SQLMode
	return err
}

// sizes reads how large the table is.
func (r *reader) sizes(ctx context.Context, st alter.Statement) error {
	err := r.s.Query(ctx, "SELECT /* risso: how large is the table */ DATA_LENGTH, INDEX_LENGTH, ROW_FORMAT, TABLE_ROWS, DATA_FREE FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+mysql.Literal(st.Table.Schema)+" AND TABLE_NAME = "+mysql.Literal(st.Table.Name), func(row [][]byte) error {
		r.f.Data, _ = strconv.ParseInt(string(row[0]), 10, 64)
		r.f.Index, _ = strconv.ParseInt(string(row[1]), 10, 64)
		r.f.RowFormat = string(row[2])
		r.f.Rows, _ = strconv.ParseInt(string(row[3]), 10, 64)
		r.f.Unused, _ = strconv.ParseInt(string(row[4]), 10, 64)
		return nil
	})
	if err != nil {
		return fmt.Errorf("ask for the size of %s: %w", st.Table, err)
	}
	name, ok := mysql.InnoDBName(st.Table)
	if !ok || !strings.EqualFold(r.f.Table.Engine, "InnoDB") {
		return nil
	}
	err = r.c.Query(ctx, r.c.Server.InnoDBFiles(name), func(row []sqldriver.Value) error {
		r.f.File, _ = strconv.ParseInt(mysql.Text(row[0]), 10, 64)
		return nil
	})
	if err = r.gap("the size of the table's files", err); err != nil {
		return err
	}
	q := r.c.Server.RowVersions(name)
	if q == "" {
		return nil
	}
	return r.gap("how many instant changes the table has had", r.c.Query(ctx, q, func(row []sqldriver.Value) error {
		if row[0] != nil {
			r.f.Versions, _ = strconv.Atoi(mysql.Text(row[0]))
		}
		return nil
	}))
}

// neighbours reads the tables at the other ends of foreign keys, and those that the statement names.
func (r *reader) neighbours(ctx context.Context, st alter.Statement) error {
	add := func(name mysql.TableName, mark func(*alter.Neighbour)) {
		if name == st.Table {
			return
		}
		i := slices.IndexFunc(r.f.Neighbours, func(n alter.Neighbour) bool { return n.Name == name })
		if i < 0 {
			i = len(r.f.Neighbours)
			r.f.Neighbours = append(r.f.Neighbours, alter.Neighbour{Name: name})
		}
		mark(&r.f.Neighbours[i])
	}
	at, table := mysql.Literal(st.Table.Schema), mysql.Literal(st.Table.Name)
	for _, side := range []struct {
		what, where string
		mark        func(*alter.Neighbour)
	}{
		{"REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME", "REFERENCED_TABLE_NAME IS NOT NULL AND TABLE_SCHEMA = " + at + " AND TABLE_NAME = " + table, func(n *alter.Neighbour) { n.Parent = true }},
		{"TABLE_SCHEMA, TABLE_NAME", "REFERENCED_TABLE_SCHEMA = " + at + " AND REFERENCED_TABLE_NAME = " + table, func(n *alter.Neighbour) { n.Child = true }},
	} {
		err := r.s.Query(ctx, "SELECT /* risso: foreign keys */ DISTINCT "+side.what+" FROM information_schema.KEY_COLUMN_USAGE WHERE "+side.where, func(row [][]byte) error {
			add(mysql.TableName{Schema: string(row[0]), Name: string(row[1])}, side.mark)
			return nil
		})
		if err != nil {
			return fmt.Errorf("ask for the foreign keys of %s: %w", st.Table, err)
		}
	}
	named := st.Others
	if st.RenamedTo != nil { // if there is such a table, the server refuses the name
		named = append(slices.Clone(named), *st.RenamedTo)
	}
	for _, n := range named {
		add(n, func(n *alter.Neighbour) { n.Named = true })
	}
	for i := range r.f.Neighbours {
		n := &r.f.Neighbours[i]
		var err error
		n.Create, err = define.CreateTable(ctx, r.s, n.Name)
		if mysql.Gone(err) { // a foreign key to a table that is not there, or a name that is wrong: the server will say so
			continue
		}
		if err = r.gap("the definition of "+n.Name.String(), err); err != nil {
			return err
		}
		if n.Schema, err = define.CreateSchema(ctx, r.s, n.Name.Schema); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) triggers(ctx context.Context, st alter.Statement) error {
	list, err := define.TriggersOf(ctx, r.s, st.Table.Schema, func(t string) bool { return t == st.Table.Name })
	r.f.Triggers = list
	return r.gap("the table's triggers", err)
}

// views reads those that select from a table of which something may lose its name. A text that the account may not see is empty.
func (r *reader) views(ctx context.Context, st alter.Statement) error {
	if !st.TakesNames() {
		return nil
	}
	err := r.s.Query(ctx, "SELECT /* risso: which views select from the table? */ TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE INSTR(VIEW_DEFINITION, "+mysql.Literal(st.Table.String())+") > 0 ORDER BY TABLE_SCHEMA, TABLE_NAME", func(row [][]byte) error {
		r.f.Views = append(r.f.Views, alter.View{Name: mysql.TableName{Schema: string(row[0]), Name: string(row[1])}, Text: string(row[2])})
		return nil
	})
	return r.gap("views that select from the table", err)
}

func (r *reader) replicas(ctx context.Context, _ alter.Statement) error {
	v := r.f.Variables
	on := func(name string) bool { return v[name] == "ON" || v[name] == "1" }
	r.f.Replicas.Cluster = on("wsrep_on") || v["group_replication_group_name"] != ""
	if name := r.c.Server.AltersReplicasFirst(); name != "" {
		r.f.Replicas.TwoPhase = on(name)
	}
	list, err := read.ReplicaAddresses(ctx, r.c)
	r.f.Replicas.Addresses, r.f.Replicas.Known = list, err == nil
	if err = r.gap("which replicas there are", err); err != nil {
		return err
	}
	is, err := read.IsReplica(ctx, r.c)
	r.f.Replicas.Replica = is
	return r.gap("whether the server is a replica", err)
}

// place looks at the disks, if they are here.
func (r *reader) place(_ context.Context, _ alter.Statement) error {
	p := &r.f.Place
	p.DataFree, p.TmpFree = -1, -1
	p.DataDir = r.f.Variables["datadir"]
	p.TmpDir = r.f.Variables["innodb_tmpdir"]
	if p.TmpDir == "" {
		p.TmpDir = r.f.Variables["tmpdir"]
	}
	unknown := func(why string) {
		r.f.Gaps = append(r.f.Gaps, fleet.Trouble{What: "free space on the server's disks", Why: why, Remedy: "look there: df " + p.DataDir + " " + p.TmpDir})
	}
	h, err := host.New(host.Options{})
	if err != nil {
		unknown(err.Error())
		return nil
	}
	defer h.Close()
	s := r.c.Server
	pid, _, err := h.FindServer(host.Target{Socket: s.Socket, PIDFile: s.PidFile, DataDir: s.DataDir})
	if err != nil || h.Identity().Hostname != s.Hostname {
		unknown("the server runs on another machine")
		return nil
	}
	p.Here = true
	data, err := h.Storage(pid, p.DataDir)
	if err == nil && data.SizeBytes > 0 {
		p.DataFree = data.FreeBytes
	}
	tmp, terr := h.Storage(pid, p.TmpDir)
	if terr == nil && tmp.SizeBytes > 0 {
		p.TmpFree = tmp.FreeBytes
	}
	p.SameDisk = data.Mount == tmp.Mount
	if err != nil || terr != nil || p.DataFree < 0 || p.TmpFree < 0 {
		unknown(fmt.Sprint(errors.Join(err, terr)))
	}
	return nil
}

func (r *reader) holders(ctx context.Context, st alter.Statement) error {
	list, gaps, err := read.TableHolders(ctx, r.c, st.Table)
	r.f.Gaps = append(r.f.Gaps, gaps...)
	if err = r.gap("who holds a metadata lock of the table", err); err != nil {
		return err
	}
	for _, h := range list {
		if h.ID == int64(r.s.ID()) {
			continue
		}
		r.f.InTheWay = append(r.f.InTheWay, alter.Holder{Session: h.Blocker, Mode: h.Mode, Maybe: h.Maybe, Backup: h.All})
	}
	return nil
}

// traffic watches for a moment what goes on with the table.
func (r *reader) traffic(ctx context.Context, name mysql.TableName, watch time.Duration) error {
	if watch <= 0 {
		return nil
	}
	first, gap, err := read.TableUseOf(ctx, r.c, name)
	if err != nil {
		return err
	}
	began := time.Now()
	if gap == nil {
		if err := delay.For(ctx, watch); err != nil {
			return err
		}
		var second read.TableUse
		if second, gap, err = read.TableUseOf(ctx, r.c, name); err != nil {
			return err
		}
		t := time.Since(began).Seconds()
		r.f.Traffic = alter.Traffic{Known: gap == nil, Seconds: t, Uses: max(0, second.Uses-first.Uses) / t, RowReads: max(0, second.Reads-first.Reads) / t, RowEdits: max(0, second.Edits-first.Edits) / t}
	}
	if gap != nil {
		r.f.Gaps = append(r.f.Gaps, *gap)
	}
	return nil
}
