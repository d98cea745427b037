package matrix

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/measure/workload"
)

// Servers start throw-away servers.
type Servers interface {
	// Check says whether there is such a server, and whether it would take the options. Errors of wrong use wrap workload.ErrUsage.
	Check(ctx context.Context, spec string, options []string) error
	// Up starts one under a name. When it fails it has left nothing.
	Up(ctx context.Context, name, spec string, options []string) (Server, error)
	// Remove removes what a killed process left under a name; if there is nothing that is no error.
	Remove(ctx context.Context, name string) error
}

// Server is one that Up started.
type Server interface {
	Version() string
	// Target is the server, with a default database or ("") without.
	Target(database string) (drive.Target, error)
	// Load has the server run a file of SQL.
	Load(ctx context.Context, path string) error
	// Environment is what a run is about to run under; nil if that is unknown.
	Environment(ctx context.Context) *environ.Environment
	Stop(ctx context.Context) error  // data stays
	Start(ctx context.Context) error // after Stop
	Down(ctx context.Context) error  // for good, data too
}

// ErrBusy is a folder of results that another process works in.
var ErrBusy = errors.New("another risso works in this folder of results")

// Options are how a matrix is run.
type Options struct {
	Dir     string // of results
	Servers Servers
	Prepare int // threads that fill tables
	// Progress is called with each step in words: done of total runs; may be nil.
	Progress func(done, total int, what string)
}

// id names a cell's folder: the parts for people, and a hash of all that its runs depend on.
func (f *File) id(c Cell) string {
	all := []any{c.Server, c.Options.Lines, f.Common, c.Engine, c.TableSize, c.Workload, c.Threads, f.Tables, f.Distribution, f.Warehouses, f.Scale, f.Rate, f.Time, f.Warmup}
	if _, file := split(c.Workload); file != "" {
		all = append(all, f.sums[file], f.Writes)
	}
	if f.Load != "" {
		all = append(all, f.sums[f.Load])
	}
	b, err := json.Marshal(all)
	if err != nil {
		return "" // strings and numbers: cannot be
	}
	h := sha256.Sum256(b)
	var parts []string
	for _, axis := range axes() {
		if v := slug(c.Value(axis)); v != "" {
			parts = append(parts, v)
		}
	}
	return strings.Join(parts, "_") + "_" + hex.EncodeToString(h[:4])
}

// matrix is one at work.
type matrix struct {
	*File
	Options
	cells []Cell
	sites map[string]*live
	clock int // of uses, to stop the server that was not used for longest
	made  int // runs
	total int
}

// live is a site with its server.
type live struct {
	site
	name     string
	server   Server
	up       bool
	used     int
	prepared map[string]bool // by workload
}

// Plan is what is still to be done.
type Plan struct {
	Name    string        `json:"name"`
	Dir     string        `json:"dir"`
	Cells   []Planned     `json:"cells"`
	Servers []string      `json:"servers"` // servers that are started
	Runs    int           `json:"runs"`    // runs that are missing
	Time    time.Duration `json:"-"`
	Seconds float64       `json:"estimated_seconds"`
}

// Planned is a cell with the runs made so far.
type Planned struct {
	Cell
	Done int `json:"done"`
	Want int `json:"want"`
}

// What an estimate assumes besides the runs themselves.
const (
	startTime   = 4 * time.Second
	rowsASecond = 40000
	overhead    = 300 * time.Millisecond
)

// PlanFile says what has to be done, given the results that are there.
func PlanFile(f *File, dir string) (*Plan, error) {
	p := &Plan{Name: f.Name, Dir: dir}
	prepared := map[string]bool{}
	for _, c := range f.Cells() {
		runs, err := readRuns(dir, c, f.Runs)
		if err != nil {
			return nil, err
		}
		have := count(runs)
		p.Cells = append(p.Cells, Planned{c, have, f.Runs})
		p.Runs += f.Runs - have
		if have == f.Runs {
			continue
		}
		if s := c.site(); !slices.Contains(p.Servers, s.String()) {
			p.Servers = append(p.Servers, s.String())
			p.Time += startTime
		}
		if k := c.site().key() + c.Workload; !prepared[k] {
			prepared[k] = true
			p.Time += time.Duration(f.Tables*c.TableSize) * time.Second / rowsASecond
		}
	}
	p.Time += time.Duration(p.Runs) * (time.Duration(f.Time+f.Warmup+f.Settle) + overhead)
	p.Seconds = p.Time.Seconds()
	return p, nil
}

func count(runs []*bench.Result) (n int) {
	for _, r := range runs {
		if r != nil {
			n++
		}
	}
	return n
}

func runPath(dir string, c Cell, i int) string {
	return filepath.Join(dir, c.ID, fmt.Sprintf("run-%02d.json", i+1))
}

// readRuns returns the runs of a cell that exist; nil for those that are not.
func readRuns(dir string, c Cell, want int) ([]*bench.Result, error) {
	out := make([]*bench.Result, want)
	for i := range out {
		in, err := os.Open(runPath(dir, c, i))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read results: %w", err)
		}
		runs, err := bench.Read(in)
		in.Close()
		if err != nil || len(runs) != 1 {
			return nil, fmt.Errorf("%s is not a result of one run: look at it, and remove it", runPath(dir, c, i))
		}
		out[i] = runs[0].Result
	}
	return out, nil
}

// writeFile puts a file in place whole.
func writeFile(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", b, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Run makes all runs that are missing and returns the report. When ctx ends it takes the servers down and reports what is there; so it
// does when a run fails, with the error.
func Run(ctx context.Context, f *File, o Options) (*Report, error) {
	unlock, err := lock(o.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	m := &matrix{File: f, Options: o, cells: f.Cells(), sites: map[string]*live{}}
	if m.Prepare < 1 {
		m.Prepare = 4
	}
	if m.Progress == nil {
		m.Progress = func(int, int, string) {}
	}
	if err := m.removeLeft(ctx); err != nil {
		return nil, err
	}
	p, err := PlanFile(f, o.Dir)
	if err != nil {
		return nil, err
	}
	m.total = p.Runs
	err = m.work(ctx)
	// Whatever happened: nothing is left running.
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	err = errors.Join(err, m.down(clean))
	r, rerr := ReportOf(f, o.Dir)
	if rerr != nil {
		return nil, errors.Join(err, rerr)
	}
	r.Interrupted = ctx.Err() != nil
	return r, err
}

// work makes the missing runs, round by round.
func (m *matrix) work(ctx context.Context) error {
	for _, c := range m.cells {
		if err := m.Options.Servers.Check(ctx, c.Server, m.lines(c.Server, c.Options)); err != nil {
			return err
		}
	}
	for round := range m.File.Runs {
		// The sites in another order each round, and the cells of each: neighbours must not always be the same.
		rng := rand.New(rand.NewPCG(m.Seed, uint64(round)))
		cells := slices.Clone(m.cells)
		rng.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
		place := map[string]int{}
		for i, c := range cells {
			if k := c.site().key(); place[k] == 0 {
				place[k] = i + 1
			}
		}
		if m.siteCount() > m.Running {
			// Starting and stopping for every run would take longest: each server makes its runs of the round in one go.
			slices.SortStableFunc(cells, func(a, b Cell) int { return place[a.site().key()] - place[b.site().key()] })
		}
		for _, c := range cells {
			if _, err := os.Stat(runPath(m.Dir, c, round)); err == nil {
				continue
			}
			if ctx.Err() != nil {
				return nil
			}
			if err := m.once(ctx, c, round); ctx.Err() != nil {
				return nil // what came of a run that was cut off does not count
			} else if err != nil {
				return fmt.Errorf("%s, %s, %s: %w", c.site(), c.Workload, digits.Counted(c.Threads, "thread"), err)
			}
		}
	}
	return nil
}

func (m *matrix) siteCount() int {
	keys := map[string]bool{}
	for _, c := range m.cells {
		keys[c.site().key()] = true
	}
	return len(keys)
}

func (m *matrix) say(format string, args ...any) {
	m.Progress(m.made, m.total, fmt.Sprintf(format, args...))
}

// once makes one run of a cell.
func (m *matrix) once(ctx context.Context, c Cell, round int) error {
	l, err := m.ready(ctx, c)
	if err != nil {
		return err
	}
	w, target, err := m.open(l, c)
	if err != nil {
		return err
	}
	m.say("round %d, %s, %s, %s", round+1, c.site(), c.Workload, digits.Counted(c.Threads, "thread"))
	if delay.For(ctx, time.Duration(m.Settle)) != nil {
		return ctx.Err()
	}
	environment := l.server.Environment(ctx)
	r, err := bench.Run(ctx, bench.Options{
		Target: target, Workload: w, Threads: c.Threads, Time: time.Duration(m.Time), Warmup: time.Duration(m.Warmup), Rate: m.Rate, Seed: m.Seed + uint64(round), Watch: environ.WatchOf(environment),
	})
	if err != nil {
		return err
	}
	if r.Interrupted {
		return context.Canceled
	}
	if r.ServerVersion == "" {
		r.ServerVersion = l.server.Version()
	}
	r.Parameters, r.Environment = m.parameters(c), environment
	if d, ok := w.(workload.Describer); ok {
		maps.Copy(r.Parameters, d.Describe())
	}
	m.made++
	return writeFile(runPath(m.Dir, c, round), r)
}

// open returns a cell's workload, and where its tables are. What makes none uses those that were loaded, and names their schemas
// itself.
func (m *matrix) open(l *live, c Cell) (workload.Workload, drive.Target, error) {
	w, err := m.workload(c.Workload, m.params(c.Workload, dialectOf(c.Server), c.TableSize, c.Engine, c.Threads))
	if err != nil {
		return nil, nil, err
	}
	name := ""
	if prepares(w) {
		name = database(c.Workload)
	}
	target, err := l.server.Target(name)
	return w, target, err
}

// prepares reports whether a workload makes tables; a script may have no setup.
func prepares(w workload.Workload) bool {
	if x, ok := w.(interface{ HasSetup() bool }); ok {
		return x.HasSetup()
	}
	_, ok := w.(workload.Preparer)
	return ok
}

// ready makes sure that the cell's server runs and has the tables.
func (m *matrix) ready(ctx context.Context, c Cell) (*live, error) {
	k := c.site().key()
	l := m.sites[k]
	if l == nil {
		l = &live{site: c.site(), prepared: map[string]bool{}}
		dir, err := filepath.Abs(m.Dir)
		if err != nil {
			return nil, err
		}
		h := sha256.Sum256([]byte(dir + "\x00" + k))
		l.name = "bench-" + hex.EncodeToString(h[:6])
		m.sites[k] = l
	}
	m.clock++
	l.used = m.clock
	if !l.up {
		if err := m.makeRoom(ctx); err != nil {
			return nil, err
		}
		m.say("start %s", l.site)
		if err := m.start(ctx, l); err != nil {
			return nil, err
		}
	}
	if l.prepared[c.Workload] {
		return l, nil
	}
	m.say("make tables of %s on %s", c.Workload, l.site)
	if err := m.prepare(ctx, l, c); err != nil {
		return nil, fmt.Errorf("create the tables: %w", err)
	}
	l.prepared[c.Workload] = true
	return l, nil
}

func (m *matrix) start(ctx context.Context, l *live) (err error) {
	if l.server == nil {
		// Its name is on disk before it runs: the next run after a kill finds it.
		if err := m.note(l.name); err != nil {
			return err
		}
		if l.server, err = m.Options.Servers.Up(ctx, l.name, l.site.server, m.lines(l.site.server, l.options)); err == nil && m.Load != "" {
			m.say("load %s into %s", m.Load, l.site)
			err = l.server.Load(ctx, m.path(m.Load))
		}
	} else {
		err = l.server.Start(ctx)
	}
	l.up = err == nil
	return err
}

// makeRoom stops the server that was not used for longest when there are as many as may run.
func (m *matrix) makeRoom(ctx context.Context) error {
	var running []*live
	for _, l := range m.sites {
		if l.up {
			running = append(running, l)
		}
	}
	if len(running) < m.Running {
		return nil
	}
	oldest := slices.MinFunc(running, func(a, b *live) int { return a.used - b.used })
	m.say("stop %s", oldest.site)
	oldest.up = false
	return oldest.server.Stop(ctx)
}

// prepare makes the database and the tables of a workload.
func (m *matrix) prepare(ctx context.Context, l *live, c Cell) error {
	w, target, err := m.open(l, c)
	if err != nil {
		return err
	}
	p, ok := w.(workload.Preparer)
	if !ok || !prepares(w) {
		return nil
	}
	if err := createDatabase(ctx, l.server, database(c.Workload)); err != nil {
		return err
	}
	return p.Prepare(ctx, workload.PrepareOptions{Target: target, Threads: m.Prepare, Yes: true})
}

func createDatabase(ctx context.Context, server Server, name string) error {
	root, err := server.Target("")
	if err != nil {
		return err
	}
	s, err := root.Open(ctx, new(drive.Stop))
	if err != nil {
		return err
	}
	defer s.Close()
	sql := "CREATE DATABASE IF NOT EXISTS "
	if s.Dialect() == drive.Postgres {
		rows, err := workload.Ask(s, "SELECT 1 FROM pg_database WHERE datname = $1", drive.Text([]byte(name)))
		if err != nil || len(rows) > 0 {
			return err
		}
		sql = "CREATE DATABASE "
	}
	_, err = s.Exec(drive.Other, sql+name)
	return err
}

// leftFile lists the servers that are up, so that a killed matrix can be cleaned up.
func (m *matrix) leftFile() string { return filepath.Join(m.Dir, "servers.json") }

func (m *matrix) left() ([]string, error) {
	b, err := os.ReadFile(m.leftFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	if err == nil {
		err = json.Unmarshal(b, &names)
	}
	if err != nil {
		return nil, fmt.Errorf("read which servers were left: %s: %w", m.leftFile(), err)
	}
	return names, nil
}

func (m *matrix) note(name string) error {
	names, err := m.left()
	if err != nil {
		return err
	}
	if slices.Contains(names, name) {
		return nil
	}
	return writeFile(m.leftFile(), append(names, name))
}

func (m *matrix) removeLeft(ctx context.Context) error {
	names, err := m.left()
	if err != nil {
		return err
	}
	for _, name := range names {
		m.Progress(0, 0, "remove "+name+", which a killed matrix left")
		if err := m.Options.Servers.Remove(ctx, name); err != nil {
			return fmt.Errorf("remove the server %s that a killed matrix left: %w", name, err)
		}
	}
	if err := os.Remove(m.leftFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// down takes all servers down.
func (m *matrix) down(ctx context.Context) error {
	var errs []error
	for _, l := range m.sites {
		if l.server != nil {
			m.say("remove %s", l.site)
			errs = append(errs, l.server.Down(ctx))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove servers: %w", err)
	}
	if err := os.Remove(m.leftFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lock keeps a second matrix out of the folder; it dies with the process.
func lock(dir string) (func(), error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create the folder of results: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("folder of results: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: %s", ErrBusy, dir)
	}
	return func() { f.Close() }, nil
}
