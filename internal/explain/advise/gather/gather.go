// Package gather reads what package advise looks at: of a server as a whole, and of its tables, one schema after the other, so that nobody
// needs room for 650,000 of them. It reads; it changes nothing.
package gather

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/pattern"
)

// Options are what to read.
type Options struct {
	Choice   *pattern.Choice      // which tables; the zero value is all
	Progress func(tables int)     // called with how many were looked at; nil: nobody wants to know
	Recovery time.Duration        // for how long a restore must be able to roll forward; 0: as advise says
	TestKeys time.Duration        // how long the server may test, for each table without a primary key, whether rows differ in some columns; 0: not at all
	Wanted   func(id string) bool // which findings are wanted; nil: all
	Unused   time.Duration        // for how long the server must have counted before it is said which indexes nothing used; 0: a day
	Slow     *digest.Profile      // of the slow log, where performance_schema does not count statements; nil: there is none
	Traffic  *mysql.Traffic       // of all sessions of the observer, which remembers what they send so that it is not taken for load; nil: nobody asks
	NoLoad   bool                 // leave out what classes of statements cost, and their plans
	Kept     string               // folder in which KeepUse keeps how often indexes are used; empty: there is none
	Several  bool                 // it is one of several servers that are asked together: Answer.Seen is wanted
	LeaveOut []string             // schemas, or patterns of them, whose tables are not looked at
	Closed   int                  // from how many tables on tables may stay unopened; 0: as the room thinks best
}

// Answer is what was found, and what it took.
type Answer struct {
	Findings []advise.Finding
	More     []advise.More   // findings that there was no room for
	Missing  []fleet.Trouble // what could not be read, so that nothing was looked for in it
	Tables   int             // that were looked at
	Took     time.Duration
	Cost     Cost
	Server   mysql.Server
	ServerID string // server_id
	Seen     advise.Seen
}

// Cost is what looking cost the server.
type Cost struct {
	Statements int
	CPU        time.Duration // of the server's process, all that it did meanwhile; valid if Known
	Known      bool
}

// batch is how many definitions are asked for at once.
const batch = 200

// Look reads a server and says what is wrong with it, the worst first.
func Look(ctx context.Context, target mysql.Target, o Options) (Answer, error) {
	begun := time.Now()
	g, end, err := begin(ctx, target, o)
	if err != nil {
		return Answer{}, err
	}
	defer end()
	g.machine = g.lookAtMachine(ctx)
	defer g.machine.close()
	if err := g.look(ctx); err != nil {
		return Answer{}, err
	}
	a := Answer{Missing: g.server.Missing, Tables: g.tables, Server: g.conn.Server, ServerID: g.server.Variables["server_id"]}
	a.Findings, a.More = g.found.Ranked()
	a.Cost.Statements = g.statements
	a.Cost.CPU, a.Cost.Known = g.machine.spent()
	a.Took = time.Since(begun)
	a.Seen = g.indexes
	a.Seen.Counts, a.Seen.Since = g.server.Counting.By != "", g.server.Counting.Since
	return a, nil
}

// begin connects; end ends that.
func begin(ctx context.Context, target mysql.Target, o Options) (g *gatherer, end func(), err error) {
	c, err := mysql.Connect(ctx, target, o.Traffic)
	if err != nil {
		return nil, nil, err
	}
	if o.Choice == nil {
		o.Choice = &pattern.Choice{}
	}
	stream, err := target.ConnectStream(ctx, mysql.StreamOptions{})
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	end = func() { stream.Close(); c.Close() }
	g = &gatherer{conn: c, target: target, stream: stream, server: &advise.Server{Server: c.Server, Now: time.Now(), Recovery: o.Recovery, TimeZones: -1}, o: o, shared: &shared{}, noted: map[string]bool{}, spatial: map[mysql.TableName]bool{}}
	c.Unobserved(ctx)
	g.stream.Unobserved(ctx, c.Server)
	if err := g.stream.ForRows(ctx, c.Server); err != nil {
		end()
		return nil, nil, err
	}
	return g, end, nil
}

// gatherer reads one server.
type gatherer struct {
	conn       *mysql.Conn
	target     mysql.Target
	stream     *mysql.Stream
	server     *advise.Server
	o          Options
	found      advise.Found
	tables     int
	statements int
	noted      map[string]bool // classes of statements that Options.Traffic knows
	machine    machine
	shared     *shared

	holds    map[string][]define.ObjectKind          // what schemas have besides tables; nil: unknown
	wanted   map[mysql.TableName]bool                // tables to which foreign keys refer: whether they were seen
	seen     map[string]bool                         // schemas
	children map[mysql.TableName][]define.ForeignKey // by the tables that have them
	spatial  map[mysql.TableName]bool                // tables, or views, that have columns of geometry

	indexes advise.Seen // that are used
	every   *everyUse   // nil: it is read schema by schema
	closed  *closed     // nil: all tables are opened
	kept    *Kept       // how often indexes were used until its last reading; nil: nobody kept it
}

// add keeps findings that are wanted.
func (g *gatherer) add(list []advise.Finding) {
	for _, f := range g.onlyWanted(list) {
		g.found.Add(f)
	}
}

// onlyWanted leaves findings that are wanted.
func (g *gatherer) onlyWanted(list []advise.Finding) []advise.Finding {
	return slices.DeleteFunc(list, func(f advise.Finding) bool { return g.o.Wanted != nil && !g.o.Wanted(f.ID) })
}

// query asks the server, and counts.
func (g *gatherer) query(ctx context.Context, statement string, f func(row [][]byte) error) error {
	g.statements++
	if class, _, _ := strings.Cut(statement, "'"); g.o.Traffic != nil && !g.noted[class] { // they differ in names of schemas only
		g.noted[class] = true
		g.o.Traffic.Note(statement)
	}
	return g.stream.Query(ctx, statement, f)
}

func (g *gatherer) look(ctx context.Context) error {
	if err := g.whole(ctx); err != nil {
		return err
	}
	schemas, err := define.Schemas(ctx, g.stream)
	if err != nil {
		return err
	}
	g.server.Whole, g.seen = true, map[string]bool{}
	for _, schema := range schemas {
		g.seen[schema] = true
	}
	if err := g.programs(ctx); err != nil {
		return err
	}
	if err := g.views(ctx); err != nil {
		return err
	}
	var chosen []string
	for _, schema := range schemas {
		if g.o.Choice.May(schema, false) && !slices.ContainsFunc(g.o.LeaveOut, func(p string) bool { return pattern.Stars(p, schema) }) {
			chosen = append(chosen, schema)
		} else {
			g.server.Whole = false
		}
	}
	if len(chosen) >= fewSchemas && g.usesMatter() {
		if err := g.readEveryUse(ctx); err != nil {
			return err
		}
	}
	if err := g.leaveClosed(ctx); err != nil {
		return err
	}
	if err := g.schemas(ctx, chosen); err != nil {
		return err
	}
	g.sayClosed()
	if err := g.settle(ctx); err != nil {
		return err
	}
	if g.server.Whole && g.server.Blind == "" {
		g.add(advise.OfReferences(g.server, func(t mysql.TableName) bool { return g.wanted[t] || mysql.SystemSchema(t.Schema) }))
	}
	if err := g.geometry(ctx); err != nil {
		return err
	}
	g.add(advise.OfServer(g.server))
	return g.load(ctx)
}

// missing notes what could not be read. An error that is about more than a privilege, or about a session that is lost, is returned.
func (g *gatherer) missing(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case g.stream.Broken() != nil:
		return fmt.Errorf("read %s: %w", what, err)
	}
	switch mysql.ClassOf(err) {
	case mysql.ClassPrivilege, mysql.ClassMissing:
		g.unread(what, err.Error(), fleet.RemedyOf(err))
		return nil
	}
	return fmt.Errorf("read %s: %w", what, err)
}

// unread notes once what could not be read.
func (g *gatherer) unread(what, why, remedy string) {
	if !slices.ContainsFunc(g.server.Missing, func(t fleet.Trouble) bool { return t.What == what }) {
		g.server.Missing = append(g.server.Missing, fleet.Trouble{What: what, Why: why, Remedy: remedy})
	}
}

// fold is how the server compares names of tables.
func (g *gatherer) fold(t mysql.TableName) mysql.TableName {
	if g.server.Variables["lower_case_table_names"] != "0" {
		return mysql.TableName{Schema: strings.ToLower(t.Schema), Name: strings.ToLower(t.Name)}
	}
	return t
}
