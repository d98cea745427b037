// Package prove measures what a finding of risso advise promises: the tables that it is about are copied into a throw-away server of the
// same version and settings, from the newest backup or from the server itself, and the classes of statements that touch them run there with
// recorded parameters, before and after the finding's statement, in turns.
package prove

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/measure/compare"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sample"
	"github.com/rissodb/risso/internal/sqltext"
)

// Options say what is proven, and how.
type Options struct {
	Target  mysql.Target
	Finding advise.Finding // with a statement and an undo, about a table
	Slow    *digest.Profile
	Repo    *repo.Repo // the newest backup in it is taken; nil: the server's own rows
	Spec    string     // server to measure on, as sandbox.Find understands it; empty: of the same flavour and series
	Pairs   int        // of turns
	Most    float64    // rows of a table that is copied whole; of a larger one a sample is
	Dir     string     // of sandboxes; empty: the default

	Patience time.Duration // with a class in one turn; 0: two minutes

	Progress func(string)
}

// purpose is what sandboxes are claimed for.
const purpose = "prove"

// mostBytes are copied of a table at most.
const mostBytes = 1 << 30

// ErrNothing is the reason when there is nothing to measure.
var ErrNothing = errors.New("nothing to prove")

// startup are settings that a server takes when it starts, and later those that may be set at any time: what decides about plans, and how
// much memory one statement has.
var (
	startup = []string{"innodb_page_size", "lower_case_table_names", "character_set_server", "collation_server", "innodb_default_row_format"}
	later   = []string{"sql_mode", "optimizer_switch", "join_buffer_size", "sort_buffer_size", "read_rnd_buffer_size", "tmp_table_size", "max_heap_table_size", "eq_range_index_dive_limit", "range_optimizer_max_mem_size",
		"innodb_stats_persistent_sample_pages", "optimizer_search_depth", "optimizer_use_condition_selectivity", "use_stat_tables", "explicit_defaults_for_timestamp", "innodb_strict_mode", "group_concat_max_len", "time_zone"}
)

// prover is one proof.
type prover struct {
	Options
	proof   advise.Proof
	table   mysql.TableName
	classes []advise.Class
	tables  []mysql.TableName
}

// Run proves a finding.
func Run(ctx context.Context, o Options) (advise.Proof, error) {
	p := &prover{Options: o, proof: advise.Proof{Time: time.Now().UTC(), Statement: o.Finding.Statement, Classes: []advise.ProvenClass{}, Tables: []advise.CopiedTable{}, Worse: []string{}, Notes: []string{}}}
	if p.Progress == nil {
		p.Progress = func(string) {}
	}
	if o.Finding.Statement == "" || o.Finding.Undo == "" {
		return p.proof, fmt.Errorf("%w: %s of %s has no statement with an undo", ErrNothing, o.Finding.ID, o.Finding.Object)
	}
	tables := sqltext.Tables([]byte(o.Finding.Statement))
	if len(tables) != 1 || tables[0].Schema == "" {
		return p.proof, fmt.Errorf("%w: %s is not about one table", ErrNothing, o.Finding.Statement)
	}
	p.table = mysql.TableName(tables[0])
	if err := p.affected(ctx); err != nil {
		return p.proof, err
	}
	return p.proof, p.measure(ctx)
}

// affected finds the classes of statements that touch the table, with recorded statements, and all tables that they need.
func (p *prover) affected(ctx context.Context) error {
	p.Progress("what statements cost")
	l, missing, err := gather.Load(ctx, p.Target, p.Slow)
	if err != nil {
		return err
	}
	for _, m := range missing {
		p.proof.Notes = append(p.proof.Notes, m.What+": "+m.Why)
	}
	if l == nil {
		return fleet.WithRemedy(fmt.Errorf("%w: %s", ErrNothing, missing[0].Why), missing[0].Remedy)
	}
	p.tables = []mysql.TableName{p.table}
	for _, c := range l.Classes {
		if !slices.ContainsFunc(c.Tables, func(t mysql.TableName) bool { return strings.EqualFold(t.String(), p.table.String()) }) {
			continue
		}
		switch {
		case !slices.Contains([]string{"select", "with", "insert", "replace", "update", "delete"}, c.Verb):
		case c.Sample == "":
			p.proof.Notes = append(p.proof.Notes, "class "+c.ID+" was not measured: "+c.Problem)
		case c.Verb == "insert" || c.Verb == "replace": // measured by rows of the table itself
		case !slices.Contains([]string{"update", "delete"}, c.Verb) && sqltext.ReadsOnly([]byte(c.Sample)) != nil:
			p.proof.Notes = append(p.proof.Notes, "class "+c.ID+" was not measured: "+sqltext.ReadsOnly([]byte(c.Sample)).Error())
		default:
			p.classes = append(p.classes, c)
			for _, t := range c.Tables {
				if !slices.Contains(p.tables, t) && !mysql.SystemSchema(t.Schema) {
					p.tables = append(p.tables, t)
				}
			}
		}
	}
	if len(p.classes) == 0 {
		return fmt.Errorf("%w: no class of statements of %s is known with its parameters", ErrNothing, p.table)
	}
	return nil
}

// server finds what to measure on: what was named, or a server of the same series, of the same version before others.
func (p *prover) server(ctx context.Context, like fleet.Server) (sandbox.Server, error) {
	if p.Spec != "" {
		return sandbox.Find(ctx, p.Spec)
	}
	return sandbox.Nearest(ctx, like, func(s fleet.Server) bool { return s.Number.SameSeries(like.Number) })
}

// settings reads the server's settings that matter.
func (p *prover) settings(ctx context.Context, c *mysql.Conn) (map[string]string, error) {
	rows, err := c.Maps(ctx, "SHOW /* risso: settings */ GLOBAL VARIABLES")
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	out := map[string]string{}
	for _, r := range rows {
		out[r["Variable_name"]] = r["Value"]
	}
	return out, nil
}

// measure makes the throw-away server, and throws it away at the end.
func (p *prover) measure(ctx context.Context) (err error) {
	c, err := mysql.Connect(ctx, p.Target, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	settings, err := p.settings(ctx, c)
	if err != nil {
		return err
	}
	found, err := p.server(ctx, c.Server.Server)
	if err != nil {
		return fleet.WithRemedy(fmt.Errorf("a server to measure on: %w", err), "install one of the same version, or name another with --on; risso sandbox servers lists them")
	}
	if !found.Kind().SameKind(c.Server.Server) || !found.Kind().Number.SameSeries(c.Server.Number) {
		p.proof.Notes = append(p.proof.Notes, fmt.Sprintf("measured on %s %s, but the server is %s: its optimizer may decide otherwise", found.Family, found.Version, c.Server.Server))
	}
	o := sandbox.Options{Dir: p.Dir, Servers: []string{found.Binary}, Settings: []string{"local_infile=ON", "innodb_buffer_pool_size=256M", "performance_schema=OFF"}}
	for _, s := range startup {
		if v, ok := settings[s]; ok {
			o.Settings = append(o.Settings, s+"="+v)
		}
	}
	p.Progress("a throw-away server")
	box, err := sandbox.UpFor(ctx, purpose, o)
	if err != nil {
		return fmt.Errorf("a server to measure on: %w", err)
	}
	defer func() { err = errors.Join(err, box.End(ctx)) }()
	for _, name := range box.Swept {
		p.proof.Notes = append(p.proof.Notes, "sandbox "+name+" of a proof that was killed was thrown away")
	}
	p.proof.On = string(found.Family) + " " + found.Version
	err = p.inside(ctx, c, box.Primary(), settings)
	if ctx.Err() == nil {
		err = box.Why(err)
	}
	if errors.Is(err, sandbox.ErrFull) {
		err = fleet.WithRemedy(err, "--dir names a folder on another disk; --copy-rows takes fewer rows")
	}
	return err
}

// inside copies the tables into the throw-away server, and measures.
func (p *prover) inside(ctx context.Context, c *mysql.Conn, node *sandbox.Node, settings map[string]string) error {
	target, err := mysql.ParseTarget(node.DSN)
	if err != nil {
		return err
	}
	if err := p.fill(ctx, c, target); err != nil {
		return err
	}
	m := &meter{target: target, statement: p.Finding.Statement, undo: p.Finding.Undo, tables: p.tables, progress: p.Progress, patience: cmp.Or(p.Patience, 2*time.Minute)}
	m.open = func(ctx context.Context) (*mysql.Conn, error) { return p.session(ctx, target, settings) }
	if m.conn, err = m.open(ctx); err != nil {
		return err
	}
	defer func() { m.conn.Close() }()
	for _, class := range p.classes {
		m.jobs = append(m.jobs, &job{id: class.ID, fingerprint: class.Fingerprint, database: class.Database, samples: class.Samples})
	}
	t, err := tableOf(ctx, target, p.table)
	if err != nil {
		return err
	}
	m.jobs = append(m.jobs, m.inserts(t))
	if err := m.analyze(ctx); err != nil {
		return err
	}
	seed := rand.Uint64()
	order, err := compare.Order(compare.OrderABBA, p.Pairs, seed)
	if err != nil {
		return err
	}
	if err := m.turns(ctx, order); err != nil {
		return err
	}
	p.proof.Seconds = m.took.Seconds()
	return verdicts(&p.proof, m.jobs, seed)
}

// session opens a session on the throw-away server with the settings of the server.
func (p *prover) session(ctx context.Context, target mysql.Target, settings map[string]string) (*mysql.Conn, error) {
	conn, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return nil, err
	}
	for _, s := range later {
		v, ok := settings[s]
		if !ok {
			continue
		}
		if _, err := strconv.ParseFloat(v, 64); err != nil {
			v = mysql.Literal(v)
		}
		for _, scope := range []string{"GLOBAL", "SESSION"} {
			note := "the setting " + s + " is not as on the server: "
			if err := conn.Exec(ctx, "SET "+scope+" "+s+" = "+v); err != nil && scope == "GLOBAL" && mysql.ClassOf(err) != mysql.ClassMissing && !slices.Contains(p.proof.Notes, note+err.Error()) {
				p.proof.Notes = append(p.proof.Notes, note+err.Error())
			}
		}
	}
	return conn, ctx.Err()
}

func tableOf(ctx context.Context, target mysql.Target, name mysql.TableName) (*define.Table, error) {
	s, err := target.ConnectStream(ctx, mysql.StreamOptions{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	create, err := define.CreateTable(ctx, s, name)
	if err != nil {
		return nil, err
	}
	t, err := define.ParseTable(name.Schema, create)
	return &t, err
}

// fill copies the tables: from the newest backup, or from the server.
func (p *prover) fill(ctx context.Context, c *mysql.Conn, target mysql.Target) error {
	if p.Repo != nil {
		return p.restore(ctx, target)
	}
	p.proof.Data = "the server's own rows"
	from, err := p.Target.ConnectStream(ctx, mysql.StreamOptions{})
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := target.ConnectStream(ctx, mysql.StreamOptions{})
	if err != nil {
		return err
	}
	defer to.Close()
	box, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return err
	}
	defer box.Close()
	if err := errors.Join(from.ForRows(ctx, c.Server), to.ForRows(ctx, box.Server)); err != nil {
		return err
	}
	for _, name := range p.tables {
		if err := p.copy(ctx, from, to, box.Server, name); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	if slices.ContainsFunc(p.proof.Tables, func(t advise.CopiedTable) bool { return !t.All }) {
		p.proof.Data = "a sample of the server's own rows"
	}
	return nil
}

// copy copies a table, or a sample of it.
func (p *prover) copy(ctx context.Context, from, to *mysql.Stream, box mysql.Server, name mysql.TableName) error {
	p.Progress("copy of " + name.String())
	t, err := sample.Define(ctx, from, to, box.DialectOf(""), name)
	if err != nil {
		return err
	}
	rows, bytes, err := sample.Count(ctx, from, name)
	if err != nil {
		return err
	}
	part, err := sample.Copy(ctx, from, to, t, sample.Options{Rows: int64(p.Most), Bytes: mostBytes, Of: rows, OfBytes: bytes, Purpose: "a copy to prove advice on"})
	if err != nil {
		return err
	}
	if words := part.Words(name); words != "" {
		p.proof.Notes = append(p.proof.Notes, words)
	}
	p.proof.Tables = append(p.proof.Tables, advise.CopiedTable{Name: name.Schema + "." + name.Name, Rows: float64(part.Rows), Of: float64(rows), All: part.Kind == sample.Whole})
	return nil
}

// restore takes the tables out of the newest backup.
func (p *prover) restore(ctx context.Context, target mysql.Target) error {
	p.Progress("the newest backup")
	var names []string
	for _, t := range p.tables {
		names = append(names, t.String())
	}
	var plan load.Plan
	got, err := load.Restore(ctx, load.Options{Repo: p.Repo, Into: target, Tables: names, Threads: 2, SkipIncompatible: true, NoPrograms: true, Hold: true, Confirm: func(x load.Plan) error { plan = x; return nil }})
	if !load.CameToEnd(err) {
		return fmt.Errorf("restore the newest backup: %w", err)
	}
	p.proof.Data = "the newest backup, " + plan.Backup.ID
	for _, f := range plan.Findings {
		p.proof.Notes = append(p.proof.Notes, f.Words())
	}
	p.proof.Notes = append(p.proof.Notes, plan.Notes...)
	p.proof.Tables = append(p.proof.Tables, advise.CopiedTable{Name: strings.Join(names, ", "), Rows: float64(got.Rows), Of: float64(got.Rows), All: true})
	return nil
}
