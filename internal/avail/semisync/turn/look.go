// Package turn looks at how a primary and its replicas stand to semi-synchronous replication, switches it on and off by a plan that stops at the
// first surprise, and measures what commits cost.
package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/semisync"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Options name the servers.
type Options struct {
	Primary  mysql.Target
	Replicas []mysql.Target // none: those that the primary knows of, with its account
	State    string         // folder of journals
	Count    int            // replicas that have to acknowledge; 0: as it is
	// Moves says that each of them may be the primary one day, and starts as a replica: each gets both sides, but for the switch of the primary's, which is set until that
	// is started again only. With it the applier of a member that starts as a replica would wait for replicas that it does not have.
	Moves bool
	// Patience is how long a connection to a replica may take: it may be what is wrong. 0: three seconds.
	Patience time.Duration
}

// Group is a primary with its replicas, connected.
type Group struct {
	o        Options
	primary  *mysql.Conn
	session  string // of that
	made     bool   // the schema of a measurement, or it may be
	replicas []*replica
	settle   time.Duration
	Facts    semisync.Facts
	Gaps     []fleet.Trouble // replicas that could not be asked, and what else is not known
	unasked  []fleet.Trouble // the former
	own      read.SemiSyncReplica
	kept     map[*mysql.Conn]map[string]string // where Moves: settings of semi-sync that servers have written down for their next start
}

type replica struct {
	name    string
	target  mysql.Target
	c       *mysql.Conn
	session string // of that
	several bool   // channels
	source  read.SemiSyncSource
	moment  read.ReplicaMoment
}

// nameOf is what a server is called: where it is.
func nameOf(t mysql.Target) string { return cmp.Or(t.Socket(), t.Address()) }

// patience is how long a server is waited for.
const patience = 20 * time.Second

// replicaPatience is how long a connection to a replica may take, where nobody says otherwise.
const replicaPatience = 3 * time.Second

// Look connects to them and reads how they stand.
func Look(ctx context.Context, o Options) (*Group, error) {
	c, err := mysql.Connect(ctx, o.Primary.WithPatience(patience), nil)
	if err != nil {
		return nil, err
	}
	g := &Group{o: o, primary: c, settle: settle}
	if err := g.connect(ctx); err != nil {
		g.Close()
		return nil, err
	}
	if err := g.Read(ctx); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// Close ends the connections.
func (g *Group) Close() {
	_ = g.primary.Close()
	for _, r := range g.replicas {
		_ = r.c.Close()
	}
}

// Missing is an error about the replicas that were named and could not be asked; nil if there are none.
func (g *Group) Missing() error {
	if len(g.o.Replicas) == 0 || len(g.unasked) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", g.unasked[0].What, g.unasked[0].Why)
}

// connect finds the replicas.
func (g *Group) connect(ctx context.Context) error {
	id, err := read.ServerID(ctx, g.primary)
	if err == nil {
		g.session, err = sessionOf(ctx, g.primary)
	}
	if err != nil {
		return fmt.Errorf("ask the primary who it is: %w", err)
	}
	set, err := read.Variables(ctx, g.primary, []string{"server_uuid"})
	if err != nil {
		return fmt.Errorf("ask the primary who it is: %w", err)
	}
	is := func(m read.ReplicaMoment) bool { return follows(m, id, set["server_uuid"]) }
	targets := g.o.Replicas
	if len(targets) == 0 {
		addresses, err := read.ReplicaAddresses(ctx, g.primary)
		if err != nil {
			return fmt.Errorf("ask the primary for its replicas: %w", err)
		}
		for _, a := range addresses {
			targets = append(targets, g.o.Primary.WithAddress(a))
		}
	}
	for _, t := range targets {
		r, err := open(ctx, t, is, cmp.Or(g.o.Patience, replicaPatience))
		if err != nil {
			g.unasked = append(g.unasked, fleet.Trouble{What: "the replica " + nameOf(t), Why: err.Error(), Remedy: "name it with --replica"})
			continue
		}
		g.replicas = append(g.replicas, r)
	}
	return nil
}

var errNotReplica = errors.New("it does not replicate from this primary")

// follows reports whether a channel replicates from a server. A server_id alone may be that of a server elsewhere; MariaDB has nothing else.
func follows(m read.ReplicaMoment, id, uuid string) bool {
	return m.SourceServerID == id && (m.SourceID == "" || uuid == "" || strings.EqualFold(m.SourceID, uuid))
}

// open connects to a replica, and makes sure that it is one of the primary's.
func open(ctx context.Context, t mysql.Target, is func(read.ReplicaMoment) bool, limit time.Duration) (*replica, error) {
	short, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := mysql.Connect(short, t.WithPatience(patience), nil)
	if err != nil {
		return nil, err
	}
	r := &replica{name: nameOf(t), target: t, c: c}
	r.session, err = sessionOf(short, c)
	var list []read.ReplicaMoment
	if err == nil {
		list, err = read.ReplicaMoments(short, c)
	}
	if err == nil {
		r.several = len(list) > 1
		at := slices.IndexFunc(list, is)
		if at >= 0 {
			r.moment = list[at]
			return r, nil
		}
		err = errNotReplica
	}
	_ = c.Close()
	return nil, err
}

// logged reads what the primary has logged, by a connection of its own: where commits wait for replicas it may wait, too, and switching semi-sync off must not depend on it.
func (g *Group) logged(ctx context.Context) (mysql.GTIDSet, error) {
	ctx, cancel := context.WithTimeout(ctx, replicaPatience)
	defer cancel()
	c, err := mysql.Connect(ctx, g.o.Primary.WithPatience(replicaPatience), nil)
	if err != nil {
		return mysql.GTIDSet{}, err
	}
	defer c.Close()
	return mysql.LoggedGTIDs(ctx, c)
}

// waited is how long a statement runs at most that waits for an acknowledgement.
func (g *Group) waited(ctx context.Context) (longest time.Duration, err error) {
	rows, err := g.primary.Maps(ctx, "SHOW /* risso: how long do commits wait? */ PROCESSLIST")
	if err != nil {
		return 0, fmt.Errorf("ask the primary who waits: %w", err)
	}
	for _, row := range rows {
		if seconds, _ := strconv.Atoi(row["Time"]); mysql.AwaitsReplica(row["State"]) {
			longest = max(longest, time.Duration(seconds)*time.Second)
		}
	}
	return longest, nil
}

// readKept reads what servers keep for their next start.
func (g *Group) readKept(ctx context.Context) error {
	g.kept = map[*mysql.Conn]map[string]string{}
	conns := []*mysql.Conn{g.primary}
	for _, r := range g.replicas {
		conns = append(conns, r.c)
	}
	for _, c := range conns {
		if !g.o.Moves || !c.Server.KeepsSettings() {
			continue
		}
		rows, err := c.Maps(ctx, "SELECT /* risso: what is kept for the next start? */ VARIABLE_NAME AS n, VARIABLE_VALUE AS v FROM performance_schema.persisted_variables WHERE VARIABLE_NAME LIKE 'rpl_semi_sync%'")
		if err != nil {
			return fmt.Errorf("ask %s what it keeps: %w", c.Server.Hostname, err)
		}
		g.kept[c] = map[string]string{}
		for _, row := range rows {
			g.kept[c][row["n"]] = row["v"]
		}
	}
	return nil
}

// keeps reports whether a server has a setting after its next start, as far as it keeps settings itself.
func (g *Group) keeps(c *mysql.Conn, name, value string) bool {
	kept, asked := g.kept[c]
	return !asked || kept[name] == value
}

// Read reads again how they stand. The primary's transactions are read first: what its replicas have of them then, they have.
func (g *Group) Read(ctx context.Context) error {
	source, err := read.SemiSyncNow(ctx, g.primary)
	if err != nil {
		return fmt.Errorf("ask the primary for semi-sync: %w", err)
	}
	if err := g.readKept(ctx); err != nil {
		return err
	}
	g.own = source.Replica
	f := semisync.Facts{Server: g.primary.Server, Primary: nameOf(g.o.Primary), Source: source.Source, Unheard: -1, Measured: g.Facts.Measured}
	if f.Waited, err = g.waited(ctx); err != nil {
		return err
	}
	g.Gaps = slices.Clone(g.unasked)
	has, err := g.logged(ctx)
	if err != nil {
		g.Gaps = append(g.Gaps, fleet.Trouble{What: "how far the primary is", Why: err.Error()})
	}
	var heard mysql.GTIDSet
	for _, r := range g.replicas {
		list, err := read.ReplicaMoments(ctx, r.c)
		if err != nil {
			return fmt.Errorf("ask %s how far it is: %w", r.name, err)
		}
		if at := slices.IndexFunc(list, func(m read.ReplicaMoment) bool { return m.Name == r.moment.Name }); at >= 0 {
			r.moment = list[at]
		}
		side, err := read.SemiSyncNow(ctx, r.c)
		if err != nil {
			return fmt.Errorf("ask %s for semi-sync: %w", r.name, err)
		}
		r.source = side.Source
		one := semisync.Replica{Name: r.name, Side: side.Replica, Receives: r.moment.Receives(), Missing: -1}
		if !r.moment.Received.Empty() && !has.Empty() {
			one.Missing = int64(has.Ahead(r.moment.Received))
			heard = heard.Union(r.moment.Received)
		}
		f.Replicas = append(f.Replicas, one)
	}
	if !heard.Empty() && len(g.Gaps) == 0 {
		f.Unheard = int64(has.Ahead(heard))
	}
	if len(f.Replicas)+len(g.unasked) == 0 && f.Source.Clients == 0 {
		f.Alone = true
		list, err := read.ReplicaMoments(ctx, g.primary)
		if err != nil {
			g.Gaps = append(g.Gaps, fleet.Trouble{What: "whether it is a replica itself", Why: err.Error(), Remedy: fleet.RemedyOf(err)})
		}
		if len(list) > 0 {
			f.Follows = list[0].Channel.Source
		}
	}
	g.Facts = f
	return nil
}
