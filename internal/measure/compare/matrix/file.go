// Package matrix measures many combinations: servers, start-up options, storage engines, table sizes, threads, workloads. It
// starts the servers, creates the tables, alternates the runs, keeps each run in a file, and answers one question for each
// thing that varies. If interrupted, it continues where it stopped.
package matrix

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/pattern"
)

// File says what to measure.
type File struct {
	Name      string       `yaml:"name"`
	Servers   list[string] `yaml:"servers"` // as risso sandbox up --servers takes them, and postgres, postgres-15
	Options   sets         `yaml:"options"` // start-up options by name; the first is what others are compared with
	Common    list[string] `yaml:"common"`  // start-up options of all servers; those of PostgreSQL begin with postgres.
	Engines   list[string] `yaml:"engines"` // storage engines
	Load      string       `yaml:"load"`    // a file of SQL that each server runs before all else, such as a dump
	Tables    int          `yaml:"tables"`
	TableSize list[int]    `yaml:"table_size"`
	Threads   list[int]    `yaml:"threads"`
	Workloads list[string] `yaml:"workloads"`

	Distribution string  `yaml:"distribution"`
	Warehouses   int     `yaml:"warehouses"` // tpcc
	Scale        float64 `yaml:"scale"`      // ontime
	Rate         float64 `yaml:"rate"`       // transactions per second; 0: as many as the sessions can
	Writes       bool    `yaml:"writes"`     // replay: run statements that write, too

	Time    duration `yaml:"time"`
	Warmup  duration `yaml:"warmup"`
	Settle  duration `yaml:"settle"` // rest before each run, for what the run before left to be written
	Runs    int      `yaml:"runs"`
	Running int      `yaml:"running"` // servers that run at the same time; the others are stopped in the meantime
	Seed    uint64   `yaml:"seed"`

	dir        string                         // of the files that it names
	sums       map[string]string              // of the contents of these files, by name
	recordings map[string]*workload.Recording // by path
}

// list is one value or several.
type list[T any] []T

// UnmarshalYAML takes a single value for a list of one.
func (l *list[T]) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode {
		var one T
		if err := n.Decode(&one); err != nil {
			return err
		}
		*l = list[T]{one}
		return nil
	}
	var many []T
	if err := n.Decode(&many); err != nil {
		return err
	}
	*l = many
	return nil
}

// Set is a named set of start-up options.
type Set struct {
	Name  string   `json:"name"`
	Lines []string `json:"lines"` // key=value
}

// sets keep the order of the file.
type sets []Set

// UnmarshalYAML reads a mapping from names to options.
func (s *sets) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return errors.New("options: write a name and its options for each, such as off: [innodb_doublewrite=OFF]")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		var lines list[string]
		if n.Content[i+1].Tag != "!!null" {
			if err := n.Content[i+1].Decode(&lines); err != nil {
				return err
			}
		}
		name := n.Content[i].Value
		if slices.ContainsFunc(*s, func(o Set) bool { return o.Name == name }) {
			return fmt.Errorf("options: %q is there twice", name)
		}
		*s = append(*s, Set{name, lines})
	}
	return nil
}

// duration is written as 5s or 1m30s.
type duration time.Duration

// UnmarshalYAML reads a duration.
func (d *duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := digits.ParseDuration(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*d = duration(v)
	return nil
}

func standards() File {
	d := workload.Defaults()
	return File{
		Servers: list[string]{"mariadb"}, Tables: d.Tables, TableSize: list[int]{d.TableSize}, Threads: list[int]{1}, Distribution: d.Distribution,
		Warehouses: d.Warehouses, Scale: d.Scale, Time: duration(10 * time.Second), Warmup: duration(2 * time.Second), Settle: duration(time.Second), Runs: 5, Running: 4, Seed: 1,
	}
}

// Example is a file that works, for help.
const Example = `name: doublewrite
servers: [mariadb]                 # as risso sandbox up --servers: mariadb, mysql-9.7, a path
options:                           # start-up options; the first is what the others are compared with
  doublewrite on: [innodb_doublewrite=ON]
  doublewrite off: [innodb_doublewrite=OFF]
common: [innodb_buffer_pool_size=256M]
workloads: [update_index, insert]
tables: 4
table_size: [10000]
threads: [1, 8]
time: 10s
warmup: 2s
runs: 5
`

// Parse reads a file; files that it names lie in dir. Errors wrap workload.ErrUsage and are one line. Recordings that the file
// names are still to be read: see Recordings.
func Parse(b []byte, dir string) (*File, error) {
	f := standards()
	f.dir, f.sums, f.recordings = dir, map[string]string{}, map[string]*workload.Recording{}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	err := d.Decode(&f)
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: the file is empty", workload.ErrUsage)
	}
	if err == nil {
		if err = d.Decode(new(yaml.Node)); err == nil {
			return nil, fmt.Errorf("%w: a second document follows, which would not be read: remove the line ---, or what follows it", workload.ErrUsage)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		text := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " ")
		return nil, fmt.Errorf("%w: %s", workload.ErrUsage, strings.ReplaceAll(text, "not found in type matrix.File", "is unknown"))
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", workload.ErrUsage, err)
	}
	return &f, nil
}

// mostRuns is how many runs of each cell may be asked for.
const mostRuns = 10000

func (f *File) check() error {
	if len(f.Options) == 0 {
		f.Options = sets{{Name: "standard"}}
	}
	if len(f.Engines) == 0 {
		f.Engines = list[string]{""}
	}
	switch {
	case len(f.Workloads) == 0:
		return errors.New("workloads: name at least one, such as point_select")
	case len(f.Servers) == 0 || len(f.Threads) == 0 || len(f.TableSize) == 0:
		return errors.New("servers, threads and table_size must not be empty")
	case f.Runs < 1 || f.Runs > mostRuns:
		return fmt.Errorf("runs: %d: from 1 to %d", f.Runs, mostRuns)
	case f.Running < 1:
		return fmt.Errorf("running: %d", f.Running)
	case f.Time <= 0 || f.Warmup < 0 || f.Settle < 0:
		return errors.New("time must be above zero, warmup and settle not below")
	case f.Rate < 0:
		return fmt.Errorf("rate: %v", f.Rate)
	}
	if err := (bench.Options{Threads: 1, Time: time.Duration(f.Time), Warmup: time.Duration(f.Warmup), Rate: f.Rate}).Check(); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), workload.ErrUsage.Error()+": "))
	}
	for _, n := range f.Threads {
		if n < 1 || n > bench.MaxThreads {
			return fmt.Errorf("threads: %d: from 1 to %d", n, bench.MaxThreads)
		}
	}
	if err := f.checkLines(); err != nil {
		return err
	}
	if err := f.readFiles(); err != nil {
		return err
	}
	for _, name := range f.Workloads {
		if err := f.checkWorkload(name); err != nil {
			return err
		}
	}
	for _, doubled := range []struct {
		what string
		is   bool
	}{{"servers", doubles(f.Servers)}, {"engines", doubles(f.Engines)}, {"table_size", doubles(f.TableSize)}, {"threads", doubles(f.Threads)}, {"workloads", doubles(f.Workloads)}} {
		if doubled.is {
			return fmt.Errorf("%s: the same value twice", doubled.what)
		}
	}
	return nil
}

func doubles[T comparable](l []T) bool {
	seen := map[T]bool{}
	for _, v := range l {
		if seen[v] {
			return true
		}
		seen[v] = true
	}
	return false
}

// The axes along which cells may differ.
const (
	AxisServer   = "server"
	AxisOptions  = "options"
	AxisEngine   = "engine"
	AxisSize     = "table size"
	AxisWorkload = "workload"
	AxisThreads  = "threads"
)

func axes() []string {
	return []string{AxisServer, AxisOptions, AxisEngine, AxisSize, AxisWorkload, AxisThreads}
}

// Cell is one combination.
type Cell struct {
	Server    string `json:"server"`
	Options   Set    `json:"options"`
	Engine    string `json:"engine,omitempty"`
	TableSize int    `json:"table_size"`
	Workload  string `json:"workload"`
	Threads   int    `json:"threads"`
	ID        string `json:"id"` // its folder
}

// Value is what a cell has on an axis.
func (c Cell) Value(axis string) string {
	switch axis {
	case AxisServer:
		return c.Server
	case AxisOptions:
		return c.Options.Name
	case AxisEngine:
		return c.Engine
	case AxisSize:
		return strconv.Itoa(c.TableSize)
	case AxisWorkload:
		return c.Workload
	case AxisThreads:
		return strconv.Itoa(c.Threads)
	}
	return ""
}

// site is what cells share a server and its tables by.
type site struct {
	server  string
	options Set
	engine  string
	size    int
}

func (c Cell) site() site { return site{c.Server, c.Options, c.Engine, c.TableSize} }

func (s site) key() string {
	return fmt.Sprintf("%s\x00%q\x00%s\x00%d", s.server, s.options.Lines, s.engine, s.size)
}

func (s site) String() string {
	text := s.server + ", " + s.options.Name
	if s.engine != "" {
		text += ", " + s.engine
	}
	return text + ", " + digits.Counted(s.size, "row")
}

var unfit = pattern.Lazy(`[^a-z0-9]+`)

// slug makes a name fit for a file.
func slug(s string) string {
	s = strings.Trim(unfit().ReplaceAllString(strings.ToLower(s), "-"), "-")
	return s[:min(len(s), 24)]
}

// Cells returns all combinations, in the order of the file.
func (f *File) Cells() []Cell {
	var out []Cell
	for _, server := range f.Servers {
		for _, options := range f.Options {
			for _, engine := range f.Engines {
				for _, size := range f.TableSize {
					for _, w := range f.Workloads {
						for _, n := range f.Threads {
							c := Cell{Server: server, Options: options, Engine: engine, TableSize: size, Workload: w, Threads: n}
							c.ID = f.id(c)
							out = append(out, c)
						}
					}
				}
			}
		}
	}
	return out
}
