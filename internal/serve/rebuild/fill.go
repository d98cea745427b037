package rebuild

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/repoint"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/release"
	"github.com/rissodb/risso/internal/store/blob"
)

// copier fills a replica with rows and definitions that are read from another server, over a folder of this machine. Nothing is needed on either machine but a login.
type copier struct {
	name, from  string // the replica's, and the donor's
	node, donor mysql.Target
	source      mysql.Target // that the replica follows
	dir         string       // where the copy is meanwhile
	threads     int
	logs        bool // the replica writes a binary log
	gate        dump.Gate
	line        Line
	say         func(string)
}

// folder is where the copy of a replica is.
func folder(state, name string) string {
	clean := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:`, r) {
			return '_'
		}
		return r
	}, name)
	return filepath.Join(state, "rebuild-"+clean)
}

// Fetches is a step of a plan.
func (c *copier) Fetches() change.Step {
	return change.Step{What: "copy", Where: "all rows and definitions of " + c.from + " to " + c.dir, Why: "as they are at one moment; " + c.name + " is left alone until they are here"}
}

// Fetch takes a backup of the donor.
func (c *copier) Fetch(ctx context.Context) (repoint.Copy, error) {
	if err := c.Remove(); err != nil {
		return repoint.Copy{}, err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return repoint.Copy{}, err
	}
	store, err := blob.Open(ctx, c.dir, blob.Options{})
	if err != nil {
		return repoint.Copy{}, err
	}
	defer store.Close()
	r, err := repo.CreateWith(ctx, repo.On(store), repo.Keys{})
	if err != nil {
		return repoint.Copy{}, err
	}
	res, err := dump.Run(ctx, r, dump.Options{Target: c.donor, Name: c.from, Tool: "risso " + release.Version(), Threads: c.threads, Smaller: true, Gate: c.gate,
		Progress: func(p dump.Progress) { c.line.Stage("copying "+c.from, "bytes", p.Bytes, p.Estimated) }})
	c.line.Clear()
	if err != nil {
		return repoint.Copy{}, fmt.Errorf("copy %s: %w", c.from, err)
	}
	for _, note := range res.Header.Notes {
		c.say(note)
	}
	return copyOf(res.Header, "a copy of "+c.from), nil
}

// copyOf is a backup as what a replica is filled with.
func copyOf(h repo.Header, words string) repoint.Copy {
	return repoint.Copy{ID: h.ID, Words: words + " as it was at " + clock(h.Moment()), Time: h.Moment(), GTIDs: strings.ReplaceAll(h.Position.GTIDSet, "\n", ""), State: h.Position.State, Log: h.Position.File, Pos: h.Position.Offset,
		Tables: h.Tables, Rows: h.Rows, Bytes: h.Bytes}
}

// open opens the copy.
func (c *copier) open(ctx context.Context) (*repo.Repo, func(), error) {
	store, err := blob.Open(ctx, c.dir, blob.Options{})
	if err != nil {
		return nil, nil, err
	}
	r, err := repo.OpenWith(ctx, repo.On(store), repo.Keys{})
	if err != nil {
		store.Close()
		return nil, nil, fmt.Errorf("the copy in %s: %w", c.dir, err)
	}
	return r, func() { store.Close() }, nil
}

// Checks are steps of a plan.
func (c *copier) Checks(copied func() *repoint.Copy) change.Plan {
	return change.Plan{{What: "check", Where: "that " + c.name + " takes the copy", Why: "nothing is loaded yet", Do: func(ctx context.Context) error {
		r, done, err := c.open(ctx)
		if err != nil {
			return err
		}
		defer done()
		return c.check(ctx, r, *copied())
	}}}
}

// check plans the load, by which the server says what it would not take.
func (c *copier) check(ctx context.Context, r *repo.Repo, copied repoint.Copy) error {
	o := c.loading(r, copied)
	o.DryRun = true
	if _, err := load.Restore(ctx, o); err != nil {
		return fmt.Errorf("%s does not take %s: %w", c.name, copied.Words, err)
	}
	return c.unprepared(ctx)
}

// unprepared refuses where prepared XA transactions hold tables: to drop these would wait for them, and whoever prepared them may still want them.
func (c *copier) unprepared(ctx context.Context) error {
	conn, err := mysql.Connect(ctx, c.node, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	list, err := conn.Maps(ctx, "XA RECOVER /* risso: does a prepared transaction hold tables? */")
	if err != nil || len(list) == 0 { // one that may not ask does not wait for them for long
		return nil
	}
	return fault.New(fault.Failed, "end it there by XA COMMIT or XA ROLLBACK (XA RECOVER lists it), and rebuild it again",
		fmt.Errorf("%s holds tables by a prepared XA transaction: %s", c.name, oneline.Of(list[0]["data"])))
}

// dropWait is how long dropping a schema may wait for who uses it.
const dropWait = time.Minute

// loading are the options of the load.
func (c *copier) loading(r *repo.Repo, copied repoint.Copy) load.Options {
	return load.Options{Repo: r, Backup: copied.ID, Into: c.node, Threads: c.threads, Overwrite: true, NoBinlog: true, Replica: true,
		Progress: func(p load.Progress) { c.line.Stage(p.Stage, "bytes", p.Bytes, p.Total) }}
}

// Fills are steps of a plan.
func (c *copier) Fills(copied func() *repoint.Copy) change.Plan {
	return change.Plan{
		{What: "drop", Where: "all schemas of " + c.name, Why: "from here on there is no way back but another copy", Do: func(ctx context.Context) error {
			r, done, err := c.open(ctx)
			if err != nil {
				return err
			}
			defer done()
			return c.clear(ctx, r, copied().ID)
		}},
		{What: "load", Where: "the copy into " + c.name + ", not through its binary log", Why: "each table is read back and compared; then its GTIDs are those of the copy, and its binary log begins anew", Do: func(ctx context.Context) error {
			r, done, err := c.open(ctx)
			if err != nil {
				return err
			}
			defer done()
			if err := c.load(ctx, r, *copied(), true); err != nil {
				return err
			}
			return c.begin(ctx, *copied())
		}},
	}
}

// clear drops all schemas but those of the server and, once the load has begun, what it has loaded.
func (c *copier) clear(ctx context.Context, r *repo.Repo, id string) error {
	conn, err := mysql.Connect(ctx, c.node.WithPatience(0), nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, s := range []string{conn.Server.NotLogged(), "SET SESSION foreign_key_checks = 0", conn.Server.BoundLocks(dropWait)} {
		if err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s on %s: %w", s, c.name, err)
		}
	}
	rows, err := conn.Maps(ctx, "SELECT /* risso: what is there? */ SCHEMA_NAME AS s FROM information_schema.SCHEMATA")
	if err != nil {
		return err
	}
	for i, row := range rows {
		if mysql.SystemSchema(row["s"]) {
			continue
		}
		c.line.Stage("dropping schemas of "+c.name, "tables", int64(i), int64(len(rows)))
		if err := conn.Exec(ctx, "DROP DATABASE /* risso: replaced by a copy */ "+mysql.Quote(row["s"])); err != nil {
			return fmt.Errorf("drop schema %s of %s: %w", mysql.Quote(row["s"]), c.name, err)
		}
	}
	return c.dropLater(ctx, conn, r, id)
}

// dropLater drops accounts of the replica that its source has as well, and the copy has not: they were made after the copy, and come again through the binary log, which
// would stop at one that is there.
func (c *copier) dropLater(ctx context.Context, conn *mysql.Conn, r *repo.Repo, id string) error {
	m, err := r.Manifest(ctx, id)
	if err != nil {
		return err
	}
	defer m.Close()
	copied, any := map[string]bool{}, false
	err = m.Each(func(l repo.Line) error {
		if l.Object != nil && l.Object.Kind == repo.Account {
			copied[l.Object.Name], any = true, true
		}
		return nil
	})
	if err != nil || !any { // it was taken without accounts
		return err
	}
	source, err := mysql.Connect(ctx, c.source, nil)
	if err != nil {
		return err
	}
	defer source.Close()
	theirs, err := accounts(ctx, source)
	if err != nil {
		return err
	}
	mine, err := accounts(ctx, conn)
	if err != nil {
		return err
	}
	for _, a := range mine {
		if !slices.Contains(theirs, a) || copied[a] || a == conn.Server.Account || strings.HasPrefix(a, "mysql.") || strings.HasPrefix(a, "mariadb.") {
			continue
		}
		if err := conn.Exec(ctx, "DROP USER /* risso: its source made it after the copy, and makes it here again */ "+mysql.QuoteAccount(a)); err != nil {
			return fmt.Errorf("drop account %s of %s: %w", a, c.name, err)
		}
	}
	return nil
}

// accounts are those of a server, as a backup names them; roles of MariaDB, which have no host, are not among them.
func accounts(ctx context.Context, c *mysql.Conn) (list []string, err error) {
	rows, err := c.Maps(ctx, "SELECT /* risso: which accounts are there? */ User AS u, Host AS h FROM mysql.user WHERE Host <> ''")
	if err != nil {
		return nil, fmt.Errorf("list the accounts: %w", err)
	}
	for _, row := range rows {
		list = append(list, row["u"]+"@"+row["h"])
	}
	return list, nil
}

// load goes on where an earlier one was cut off. position: the server says afterwards that it has what the copy has.
func (c *copier) load(ctx context.Context, r *repo.Repo, copied repoint.Copy, position bool) (err error) {
	o := c.loading(r, copied)
	o.SetGTID = position && copied.GTIDs != ""
	res, err := load.Restore(ctx, o)
	c.line.Clear()
	for _, note := range res.Notes {
		c.say(note)
	}
	if load.CameToEnd(err) && err != nil && !errors.Is(err, load.ErrDifferent) { // all rows are there; the comparison names what is not
		c.say(err.Error())
		err = nil
	}
	if err != nil {
		return fmt.Errorf("load %s into %s: %w", copied.Words, c.name, err)
	}
	return nil
}

// begin lets the binary log of a MariaDB begin where the copy is: without that, nobody could tell what it has, nor follow it.
func (c *copier) begin(ctx context.Context, copied repoint.Copy) error {
	conn, err := mysql.Connect(ctx, c.node, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	if !c.logs || !conn.Server.GTIDsByDomain() || copied.GTIDs == "" {
		return nil
	}
	position, err := mysql.ParseBinlogState(copied.GTIDs)
	if err != nil {
		return err
	}
	state, err := mysql.ParseBinlogState(copied.State)
	if err != nil {
		return err
	}
	for _, s := range conn.Server.ForgetTransactions(state.Union(position).String(), copied.GTIDs) {
		if err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s on %s: %w", s, c.name, err)
		}
	}
	return nil
}

// Remove removes the copy.
func (c *copier) Remove() error {
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("remove the copy: %w", err)
	}
	return nil
}
