package matrix

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/measure/report/pagetest"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/postgres"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestParse(t *testing.T) {
	f, err := Parse([]byte(Example), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cells := f.Cells()
	if len(cells) != 8 || cells[0].Options.Name != "doublewrite on" || cells[4].Options.Lines[0] != "innodb_doublewrite=OFF" || cells[1].Threads != 8 {
		t.Errorf("got %d cells: %+v; want len(cells) 8, cells[0].Options.Name \"doublewrite on\", cells[4].Options.Lines[0] \"innodb_doublewrite=OFF\", cells[1].Threads 8",
			len(cells), cells)
	}
	ids := map[string]bool{}
	for _, c := range cells {
		ids[c.ID] = true
		if strings.ContainsAny(c.ID, "/ \\.") {
			t.Errorf("a folder called %q, want strings.ContainsAny(c.ID, \"/ \\\\.\") false", c.ID)
		}
	}
	if len(ids) != 8 {
		t.Errorf("got %d folders for 8 cells, want 8", len(ids))
	}
	// What a run depends on is in its folder's name; more runs or more cells are not.
	longer, err := Parse([]byte(strings.ReplaceAll(Example, "time: 10s", "time: 20s")), t.TempDir())
	if err != nil || longer.Cells()[0].ID == cells[0].ID {
		t.Errorf("runs of another length share a folder: got %v; want longer.Cells()[0].ID not cells[0].ID", err)
	}
	more, err := Parse([]byte(strings.ReplaceAll(strings.ReplaceAll(Example, "runs: 5", "runs: 9"), "threads: [1, 8]", "threads: [1, 8, 64]")), t.TempDir())
	if err != nil || more.Cells()[0].ID != cells[0].ID {
		t.Errorf("more runs would make those that are there again: %v; want more.Cells()[0].ID cells[0].ID", err)
	}
	one, err := Parse([]byte("workloads: point_select"), t.TempDir())
	if err != nil || len(one.Cells()) != 1 {
		t.Errorf("got %+v, %v; want length 1", one, err)
	}
	for text, want := range map[string]string{
		"":                                                          "empty",
		"servers: [mariadb]":                                        "workloads",
		"workloads: [nonsense]":                                     "nonsense",
		"workloads: point_select\nthread: 4":                        "thread",
		"workloads: point_select\nthreads: 0":                       "threads",
		"workloads: point_select\nthreads: x":                       "line 2",
		"workloads: point_select\ntime: 5":                          `"5" is no duration`,
		"workloads: point_select\nruns: 0":                          "runs",
		"workloads: point_select\nruns: 1000000000":                 "from 1 to 10000",
		"workloads: point_select\n---\nworkloads: insert":           "a second document",
		"workloads: point_select\nrate: .nan":                       "a rate of NaN",
		"workloads: point_select\nrate: 1e12":                       "a rate of 1e+12",
		"workloads: point_select\ntime: 200y":                       "at most 365d",
		"workloads: point_select\nthreads: [1, 1]":                  "twice",
		"workloads: point_select\noptions: [a, b]":                  "options",
		"workloads: point_select\noptions: {a: [x=1], a: [x=2]}":    "a",
		"workloads: point_select\ndistribution: round":              "round",
		"workloads: [point_select\n":                                "line",
		"workloads: point_select\nservers: []":                      "empty",
		"workloads: point_select\ntime: 0s":                         "time",
		"workloads: point_select\nrunning: 0":                       "running",
		"workloads: point_select\ntable_size: [100, many]\nruns: 3": "line",
		"workloads: point_select\nwarmup: -1s":                      `line 2: "-1s" is no duration`,
		"workloads: point_select\nrate: -1":                         "rate",
		"workloads: point_select\nservers: mariadb\nservers: mysql": "servers",
		"- workloads": "line 1",
		"workloads: point_select\ntables: [1, 2]\nname: two of them": "line",
		"workloads: script":                                                        "script:FILE",
		"workloads: point_select:x.yaml":                                           "has no file",
		"workloads: script:nowhere.yaml":                                           "no such file",
		"workloads: replay:nowhere.log":                                            "no such file",
		"workloads: point_select\nload: nowhere.sql":                               "no such file",
		"workloads: point_select\nload: .":                                         "not a file that can be read twice",
		"workloads: point_select\nload: /dev/null":                                 "not a file that can be read twice",
		"workloads: point_select\nservers: postgres\nengines: [innodb]":            "PostgreSQL has none",
		"workloads: point_select\nservers: postgres\ncommon: [shared_buffers=1GB]": "with the prefix postgres.",
		"workloads: point_select\ncommon: [postgres.shared_buffers=1GB]":           "not among the servers",
	} {
		_, err := Parse([]byte(text), t.TempDir())
		if !errors.Is(err, workload.ErrUsage) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v; it should tell of %q; want workload.ErrUsage, %q in the error, no \"\\n\" in the error", text, err, want, want)
		}
	}
}

// boxes are sandboxes in a separate folder, and what was asked of them.
type boxes struct {
	dir     string
	up      []string
	running int
	most    int // that ran at the same time
	started int
	onUp    func()
}

func (b *boxes) Check(ctx context.Context, spec string, _ []string) error {
	if Postgres(spec) {
		_, err := postgres.Find(spec)
		return err
	}
	_, err := sandboxtest.Find(ctx, spec)
	return err
}

func (b *boxes) Up(ctx context.Context, name, spec string, options []string) (Server, error) {
	if Postgres(spec) {
		s, err := postgres.Up(ctx, postgres.Options{Spec: spec, Settings: append([]string{"fsync=off"}, options...)})
		if err != nil {
			return nil, err
		}
		b.up = append(b.up, name+" "+strings.Join(options, " "))
		return pgBox{s}, nil
	}
	s, err := sandbox.Up(ctx, sandbox.Options{Dir: b.dir, Name: name, Servers: []string{spec}, Settings: options, Find: sandboxtest.Find})
	if err != nil {
		return nil, err
	}
	b.up = append(b.up, name+" "+strings.Join(options, " "))
	b.count(1)
	if b.onUp != nil {
		b.onUp()
	}
	return box{s, b}, nil
}

func (b *boxes) count(by int) { b.running += by; b.most = max(b.most, b.running) }

func (b *boxes) Remove(ctx context.Context, name string) error {
	s, err := sandbox.Open(b.dir, name)
	if fault.Code(err) == fault.Usage {
		return nil
	}
	if err != nil {
		return err
	}
	return s.Down(ctx)
}

type box struct {
	*sandbox.Sandbox
	of *boxes
}

func (b box) Version() string { return b.Primary().Version }

func (b box) Target(database string) (drive.Target, error) {
	t, err := mysql.ParseTarget(b.Primary().DSN)
	return drive.ForMySQL(t.WithDatabase(database)), err
}

func (b box) Load(ctx context.Context, path string) error {
	text, err := os.ReadFile(path)
	if err == nil {
		_, err = b.Primary().Query(ctx, string(text))
	}
	return err
}

func (b box) Environment(context.Context) *environ.Environment { return nil }

func (b box) Stop(ctx context.Context) error {
	b.of.count(-1)
	return b.Primary().Stop(ctx)
}

func (b box) Down(ctx context.Context) error {
	if b.Primary().State == sandbox.StateRunning {
		b.of.count(-1)
	}
	return b.Sandbox.Down(ctx)
}

func (b box) Start(ctx context.Context) error {
	b.of.count(1)
	b.of.started++
	return b.Primary().Start(ctx)
}

// pgBox is a PostgreSQL.
type pgBox struct{ *postgres.Server }

func (b pgBox) Version() string { return b.Server.Version }
func (b pgBox) Target(database string) (drive.Target, error) {
	return drive.ForPostgres(b.URL(database))
}
func (b pgBox) Load(context.Context, string) error               { return errors.New("not loaded here") }
func (b pgBox) Environment(context.Context) *environ.Environment { return nil }

const small = `name: small
options:
  safe: [innodb_flush_log_at_trx_commit=1]
  fast: [innodb_flush_log_at_trx_commit=0, sync_binlog=0]
common: [innodb_buffer_pool_size=32M]
workloads: [point_select, update_index]
table_size: 500
threads: [1, 2]
time: 300ms
warmup: 50ms
settle: 10ms
runs: 2
`

func mustParse(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse([]byte(text), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// nothingLeft says that no sandbox is there and no list of them.
func nothingLeft(t *testing.T, b *boxes, dir string) {
	t.Helper()
	list, err := sandbox.List(b.dir)
	if err != nil || len(list) > 0 {
		t.Errorf("%d sandboxes are left, %v; want none", len(list), err)
	}
	if _, err := os.Stat(filepath.Join(dir, "servers.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the list of servers is left: %v, want os.ErrNotExist", err)
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*", "run-*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestMatrixOnRealServers is cut off in the middle, goes on, and answers.
func TestMatrixOnRealServers(t *testing.T) {
	sandboxtest.Need(t, "mariadb")
	dir, b := t.TempDir(), &boxes{dir: t.TempDir()}
	f := mustParse(t, small)
	p, err := PlanFile(f, dir)
	if err != nil || p.Runs != 16 || len(p.Servers) != 2 || p.Time < 5*time.Second {
		t.Fatalf("plan: got %+v, %v; want Runs 16, len(Servers) 2, Time at least 5 * time.Second", p, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := Run(ctx, f, Options{Dir: dir, Servers: b, Progress: func(done, _ int, what string) {
		if done == 5 && strings.HasPrefix(what, "round") {
			cancel()
		}
	}})
	if err != nil || !r.Interrupted || r.Missing != 11 || len(files(t, dir)) != 5 {
		t.Fatalf("cut off: got %+v, %v; %d files; want Interrupted true, Missing 11, len(files(t, dir)) 5", r, err, len(files(t, dir)))
	}
	nothingLeft(t, b, dir)
	before := map[string]time.Time{}
	for _, path := range files(t, dir) {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		before[path] = st.ModTime()
	}
	if r, err = Run(t.Context(), f, Options{Dir: dir, Servers: b}); err != nil || r.Missing != 0 || r.Interrupted || len(files(t, dir)) != 16 {
		t.Fatalf("gone on: got %+v, %v; want Missing 0, Interrupted false, len(files(t, dir)) 16", r, err)
	}
	for path, at := range before {
		if st, err := os.Stat(path); err != nil || !st.ModTime().Equal(at) {
			t.Errorf("%s was made again", path)
		}
	}
	nothingLeft(t, b, dir)
	if b.most != 2 || !strings.Contains(strings.Join(b.up, "\n"), "innodb_buffer_pool_size=32M innodb_flush_log_at_trx_commit=0") {
		t.Errorf("got %d at the same time: %q; want b.most 2, \"innodb_buffer_pool_size=32M innodb_flush_log_at_trx_commit=0\" in strings.Join(b.up, \"\\n\")",
			b.most, b.up)
	}
	up := len(b.up)
	if _, err := Run(t.Context(), f, Options{Dir: dir, Servers: b}); err != nil || len(b.up) != up {
		t.Errorf("a matrix that is complete started servers: %q, %v; want len(b.up) %v", b.up[up:], err, up)
	}
	var axes []string
	for _, q := range r.Questions {
		axes = append(axes, q.Axis)
		if len(q.Rows) != 4 || len(q.Rows[0].Figures) != 2 || len(q.Rows[0].Verdicts) != 1 || len(q.Rows[0].Latency) != 1 {
			t.Errorf("%s: got %+v; want len(q.Rows) 4, len(q.Rows[0].Figures) 2, len(q.Rows[0].Verdicts) 1, len(q.Rows[0].Latency) 1", q.Axis, q.Rows)
		}
		for _, row := range q.Rows {
			for _, fig := range row.Figures {
				if len(fig.Runs) != 2 || !(fig.Low > 0 && fig.Low <= fig.Median && fig.Median <= fig.High) || fig.P95 <= 0 || fig.Errors > 0 {
					t.Errorf("%s, %s: %+v", row.Label, fig.Value, fig)
				}
			}
		}
	}
	if !slices.Equal(axes, []string{AxisOptions, AxisWorkload, AxisThreads}) || !strings.Contains(strings.Join(r.Notes, "\n"), "too few") {
		t.Errorf("questions %v, notes %q; want axes []string{AxisOptions, AxisWorkload, AxisThreads}, \"too few\" in strings.Join(r.Notes, \"\\n\")",
			axes, r.Notes)
	}
	forms(t, r)
	var page strings.Builder
	if err := r.HTML(&page); err != nil {
		t.Fatal(err)
	}
	pagetest.Fits(t, map[string]string{"matrix": page.String()})
}

// forms checks that every form can be written.
func forms(t *testing.T, r *Report) {
	t.Helper()
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
	var text, markdown, page bytes.Buffer
	if err := errors.Join(r.Text(&text), r.Markdown(&markdown), r.HTML(&page)); err != nil {
		t.Fatal(err)
	}
	for _, q := range r.Questions {
		if !strings.Contains(text.String(), q.Title) || !strings.Contains(markdown.String(), "## "+q.Title) {
			t.Errorf("%q is missing; want %q in text.String(), %q in markdown.String()", q.Title, q.Title, "## "+q.Title)
		}
		d := xml.NewDecoder(strings.NewReader(q.SVG()))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in\n%s", err, q.SVG())
			}
		}
	}
	if n := strings.Count(page.String(), "<svg"); n != len(r.Questions) {
		t.Errorf("%d charts for %d questions", n, len(r.Questions))
	}
}

// TestOneServerAtATime stops and starts servers, whose tables must outlive it.
func TestOneServerAtATime(t *testing.T) {
	sandboxtest.Need(t, "mariadb")
	dir, b := t.TempDir(), &boxes{dir: t.TempDir()}
	text := strings.ReplaceAll(small, "threads: [1, 2]", "threads: 1\nrunning: 1")
	r, err := Run(t.Context(), mustParse(t, text), Options{Dir: dir, Servers: b})
	if err != nil || r.Missing != 0 {
		t.Fatalf("got %+v, %v; want Missing 0", r, err)
	}
	if b.most != 1 || len(b.up) != 2 || b.started < 1 {
		t.Errorf("%d at the same time, %d made, %d started again; want b.most 1, len(b.up) 2, b.started at least 1", b.most, len(b.up), b.started)
	}
	nothingLeft(t, b, dir)
}

func TestMatrixFails(t *testing.T) {
	sandboxtest.Need(t, "mariadb")
	dir, b := t.TempDir(), &boxes{dir: t.TempDir()}
	// The second set does not let the server start.
	bad := mustParse(t, strings.ReplaceAll(small, "fast: [", "fast: [no_such_option=1, "))
	r, err := Run(t.Context(), bad, Options{Dir: dir, Servers: b})
	if err == nil || r == nil || r.Missing == 0 {
		t.Errorf("got %+v, %v; want an error, r not nil, Missing not 0", r, err)
	}
	nothingLeft(t, b, dir)
	// Ctrl-C while a server comes up.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.onUp = cancel
	if r, err := Run(ctx, mustParse(t, small), Options{Dir: t.TempDir(), Servers: b}); err != nil || !r.Interrupted {
		t.Errorf("got %+v, %v; want Interrupted true", r, err)
	}
	nothingLeft(t, b, dir)
	if _, err := Run(t.Context(), mustParse(t, "workloads: point_select\nservers: no-such-server"), Options{Dir: t.TempDir(), Servers: b}); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("no such server: got %v; want an error, no \"\\n\" in the error", err)
	}
	// Two in one folder.
	unlock, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), mustParse(t, small), Options{Dir: dir, Servers: b}); !errors.Is(err, ErrBusy) {
		t.Errorf("two in one folder: got %v, want ErrBusy", err)
	}
	unlock()
	// A killed one left a server.
	b.onUp = nil
	if _, err := b.Up(t.Context(), "bench-left", "mariadb", nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "servers.json"), []byte(`["bench-left","bench-gone"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	one := mustParse(t, "workloads: point_select\ntable_size: 100\ntime: 100ms\nwarmup: 0s\nsettle: 0s\nruns: 1")
	if _, err := Run(t.Context(), one, Options{Dir: dir, Servers: b}); err != nil {
		t.Error(err)
	}
	nothingLeft(t, b, dir)
	// A result that is none.
	if err := os.WriteFile(runPath(dir, one.Cells()[0], 0), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := PlanFile(one, dir); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a broken result: got %v; want an error, \"remove it\" in the error", err)
	}
}
