package scenario_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// olderFile holds what the program of commit 2b61116 wrote, killed while it watched, mirrored and kept statements: the home of
// its account, its data, a place with a backup and mirrored logs, results of benchmarks, and what it answered.
const olderFile = "testdata/written-by-2b61116.tar.gz"

// olderAnswers are the answers of the older program, by request.
type olderAnswers struct {
	Killed int64 // unix seconds
	Token  string
	Backup string
	Points map[string][]point // by selector
	From   map[string]int64
	Asked  map[string]map[string]any // by path, what of the answer does not change with time
}

// unchanging is what of each answer is compared; of lists only these fields, if some are named. Others change with time, or
// with what a newer program makes of the same facts.
var unchanging = map[string]map[string][]string{
	"/api/events":      {"events": nil},
	"/api/variables":   {"variables": nil},
	"/api/queries":     {"classes": {"id", "fingerprint", "calls", "seconds", "rows_examined"}},
	"/api/query":       {"id": nil, "fingerprint": nil, "total": nil, "digests": nil, "plans": {"instance", "id", "first", "text"}},
	"/api/benchmarks":  {"benchmarks": nil},
	"/api/benchmark":   {"id": nil, "result": nil},
	"/api/protect/run": {"run": nil, "log": nil},
}

// MarshalJSON writes a point as time and value.
func (p point) MarshalJSON() ([]byte, error) { return json.Marshal([2]float64{float64(p.t), p.v}) }

// UnmarshalJSON reads it.
func (p *point) UnmarshalJSON(b []byte) error {
	var v [2]float64
	err := json.Unmarshal(b, &v)
	p.t, p.v = int64(v[0]), v[1]
	return err
}

// steady asks one path and keeps what does not change with time.
func (r *risso) steady(t *testing.T, path string) map[string]any {
	t.Helper()
	var all map[string]any
	u, err := url.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	r.get(t, u.Path, u.Query(), &all)
	kept := map[string]any{}
	for k, fields := range unchanging[u.Path] {
		list, ok := all[k].([]any)
		if kept[k] = all[k]; !ok || fields == nil {
			continue
		}
		for i, row := range list {
			of, few := row.(map[string]any), map[string]any{}
			for _, f := range fields {
				if _, ok := of[f]; !ok {
					t.Fatalf("%s: %s has no %s: %v, want ok true", path, k, f, row)
				}
				few[f] = of[f]
			}
			list[i] = few
		}
	}
	return kept
}

// TestReadsOlder starts this program on what an older one left when it was killed: all of it is read, and goes on.
func TestReadsOlder(t *testing.T) {
	t.Parallel()
	sandboxtest.Need(t, "mariadb")
	dir := tempDir(t)
	unpack(t, olderFile, dir)
	var want olderAnswers
	b, err := os.ReadFile(filepath.Join(dir, "answers.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	place, data := filepath.Join(dir, "place"), filepath.Join(dir, "data")
	conf := filepath.Join(dir, "risso.yaml")
	write(t, conf, olderConfig("root@tcp(127.0.0.1:1)/", place, false))
	env := environment(filepath.Join(dir, "home"), "XDG_CONFIG_HOME="+filepath.Join(dir, "home", ".config"), "XDG_CACHE_HOME="+cacheHome(t))
	for round := range 2 {
		r := serveEnv(t, env, data, "--no-host", "--config", conf)
		if code, _, _ := r.request(t, http.MethodGet, "/api/fleet", nil, nil); code != http.StatusUnauthorized {
			t.Errorf("without the token: got %d, want http.StatusUnauthorized", code)
		}
		r.token = want.Token
		for selector, points := range want.Points {
			from := want.From[selector]
			got := r.raw(t, selector, from, points[len(points)-1].t)
			if !slices.Equal(got, points) {
				t.Errorf("round %d: %s: %d values, there were %d, or others", round, selector, len(got), len(points))
			}
		}
		for path, answer := range want.Asked {
			got := r.steady(t, path)
			if what := lacks(got, answer, path); what != "" {
				t.Errorf("round %d: got %s, want \"\"", round, what)
			}
		}
		for _, e := range r.events(t, "", "store") {
			if e.Time.Unix() > want.Killed && !strings.Contains(e.Text, "unfinished byte") {
				t.Errorf("round %d: %s", round, e.Text)
			}
		}
		await(t, "the catalogue of the place", func() bool {
			p := r.protected(t, "shop")
			return slices.ContainsFunc(p.Backups, func(b struct{ ID string }) bool { return b.ID == want.Backup })
		})
		r.stop(t, syscall.SIGTERM)
	}
	aside, err := filepath.Glob(filepath.Join(data, "*", "*amaged*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(aside, must(filepath.Glob(filepath.Join(data, "*", "*.damaged*")))...) {
		if !strings.HasSuffix(f, ".tail") {
			t.Errorf("set aside: got %s, want \".tail\" at its end", f)
		}
	}

	run := func(env []string, code int, says string, args ...string) string {
		t.Helper()
		r := launch(t, env, args...)
		got := r.code(t)
		if all := r.out.String() + r.err.String(); got != code || !strings.Contains(all, says) {
			t.Errorf("risso %s: exit code %d, not %d, or without %q: %s", strings.Join(args, " "), got, code, says, all)
		}
		return r.out.String()
	}
	run(env, 0, "ann", "token", "list", "--data", data)
	run(env, 0, "", "verify", "--from", place, "--allow-unsigned")
	run(env, 0, "", "binlog", "list", "--from", place)
	// What the older program did not sign is read when that is asked for.
	run(env, 1, "--allow-unsigned", "drill", "--from", place)
	run(env, 0, "PROVEN", "drill", "--from", place, "--allow-unsigned")
	run(env, 0, "", "bench", "report", filepath.Join(dir, "a.json"), "--output", "markdown")
	run(env, 0, "", "bench", "compare", filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json"))

	// Another account trusts the key that it sees first. Once it has signed something there itself, it wants a word.
	other := environment(filepath.Join(dir, "home"), "XDG_CONFIG_HOME="+filepath.Join(dir, "other"), "XDG_CACHE_HOME="+cacheHome(t))
	run(other, 0, "seen for the first time", "drill", "--from", place, "--backup", want.Backup, "--no-roll")
	if err := os.RemoveAll(filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	n := single(t, "mariadb")
	run(other, 0, "", "backup", "--dsn", n.DSN, "--to", place)
	run(other, 1, "--trust", "drill", "--from", place, "--backup", want.Backup, "--no-roll")
	key := strings.TrimSpace(run(env, 0, "ed25519:", "backup", "key"))
	run(other, 0, "PROVEN", "drill", "--from", place, "--backup", want.Backup, "--no-roll", "--trust", key)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// lacks says what of an older answer is missing in a newer one, or differs; a newer one may have more.
func lacks(got, want any, path string) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v", path, got)
		}
		for k, v := range w {
			if what := lacks(g[k], v, path+" "+k); what != "" {
				return what
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s: %d entries, there were %d", path, len(g), len(w))
		}
		for i, v := range w {
			if what := lacks(g[i], v, path+" "+strconv.Itoa(i)); what != "" {
				return what
			}
		}
		return ""
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("%s is %v, it was %v", path, got, want)
	}
	return ""
}

func olderConfig(dsn, place string, mirror bool) string {
	return fmt.Sprintf("servers:\n  - name: shop\n    dsn: %q\n    protect: {place: %s, mirror: %v}\n", dsn, place, mirror)
}

// unpack makes the files of an archive.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	in := tar.NewReader(z)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.Clean("/"+h.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(out, in)
		if err := errors.Join(err, out.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWriteOlder writes the file of TestReadsOlder: RISSO_OLDER_BIN names the older program, RISSO_OLDER_FILE the file, and
// RISSO_OLDER_DATA, which may be empty, a data folder with hours and days of an instance "archive" that it begins with.
func TestWriteOlder(t *testing.T) {
	older, file := os.Getenv("RISSO_OLDER_BIN"), os.Getenv("RISSO_OLDER_FILE")
	if older == "" || file == "" {
		t.Skip("RISSO_OLDER_BIN and RISSO_OLDER_FILE are for who makes the file anew")
	}
	n := single(t, "mariadb", "slow_query_log=ON", "long_query_time=0", "log_slow_verbosity=query_plan,explain")
	execSQL(t, n, "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, a INT); CREATE DATABASE sbtest")
	dir := tempDir(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.MkdirAll(at("home"), 0o700); err != nil {
		t.Fatal(err)
	}
	if from := os.Getenv("RISSO_OLDER_DATA"); from != "" {
		shell(t, "cp -a "+from+" "+at("data"))
	}
	write(t, at("risso.yaml"), olderConfig(n.DSN, at("place"), true))
	env := environment(at("home"), "XDG_CONFIG_HOME="+at("home/.config"), "XDG_CACHE_HOME="+cacheHome(t))
	run := func(args ...string) string {
		t.Helper()
		r := launchProgram(t, older, env, args...)
		if code := r.code(t); code != 0 {
			t.Fatalf("%v: exit code %d: %s, want 0", args, code, r.err)
		}
		return r.out.String()
	}
	a := olderAnswers{Points: map[string][]point{}, From: map[string]int64{}, Asked: map[string]map[string]any{}}
	a.Token = strings.TrimSpace(run("token", "create", "ann", "--role", "act", "--data", at("data")))
	r := serveProgram(t, older, env, at("data"), "--no-host", "--config", at("risso.yaml"))
	r.token = a.Token
	from := r.awaitTicks(t, "shop", 2)
	await(t, "statements are read", func() bool { s := r.queries(t, "").Sources; return len(s) == 1 && s[0].Working })
	for i := range 50 {
		execSQL(t, n, fmt.Sprintf("INSERT INTO shop.orders (a) VALUES (%d); SELECT id FROM shop.orders WHERE a = %d", i, i))
	}
	ends := func(kind string) {
		t.Helper()
		await(t, "the end of "+kind, func() bool { o := r.protected(t, "shop").outcomes(kind); return o != "" && o != "running" })
		if p := r.protected(t, "shop"); p.outcomes(kind) != "ok" {
			t.Fatalf("%s: got %+v, want \"ok\"", kind, p.Runs)
		}
	}
	r.start(t, "shop/backup")
	ends("backup")
	await(t, "the catalogue", func() bool { return len(r.protected(t, "shop").Backups) == 1 })
	a.Backup = r.protected(t, "shop").Backups[0].ID
	execSQL(t, n, "FLUSH BINARY LOGS; INSERT INTO shop.orders (a) VALUES (-1); FLUSH BINARY LOGS; INSERT INTO shop.orders (a) VALUES (-2)")
	execSQL(t, n, "SET GLOBAL max_connections = 77")
	run("bench", "prepare", "point_select", "--dsn", "root@unix("+n.Socket+")/sbtest", "--tables", "1", "--table-size", "100", "--yes")
	write(t, at("token"), a.Token)
	for _, name := range []string{"a.json", "b.json"} {
		out := run("bench", "run", "point_select", "--dsn", "root@unix("+n.Socket+")/sbtest", "--tables", "1", "--table-size", "100", "--rate", "50", "--yes", "--for", "4s", "--warmup", "0s",
			"--record-to", r.base, "--token-file", at("token"), "--output", "json")
		write(t, at(name), out)
	}
	r.start(t, "shop/drill")
	ends("drill")
	await(t, "the minute is stored", func() bool { return r.queries(t, "shop.orders").Count >= 2 })
	await(t, "a plan", func() bool {
		for _, c := range r.queries(t, "shop.orders").Classes {
			if plans, ok := r.steady(t, "/api/query?id="+c.ID)["plans"].([]any); ok && len(plans) > 0 {
				return true
			}
		}
		return false
	})
	await(t, "the mirrored logs", func() bool {
		list, err := filepath.Glob(at("place/binlog/*/*.json"))
		return err == nil && len(list) > 1
	})
	await(t, "the variable", func() bool { return len(r.events(t, "shop", "variable")) > 0 })

	now := time.Now()
	until := now.Unix()
	span := fmt.Sprintf("from=%d&to=%d", until/3600*3600-3600, until/3600*3600+3600)
	paths := []string{"/api/events?instance=shop&limit=5000&from=" + strconv.FormatInt(from-600, 10) + "&to=" + strconv.FormatInt(until-1, 10),
		"/api/variables?instance=shop&at=" + strconv.FormatInt(until, 10), "/api/queries?search=shop.orders&" + span, "/api/benchmarks", "/api/benchmark?id=1"}
	for _, c := range r.queries(t, "shop.orders").Classes {
		paths = append(paths, "/api/query?id="+c.ID+"&"+span)
	}
	for id := 1; id < 9; id++ { // jobs that have ended; the mirror runs
		path := "/api/protect/run?id=" + strconv.Itoa(id)
		if code, b, _ := r.request(t, http.MethodGet, path, nil, nil); code == http.StatusOK && strings.Contains(string(b), `"outcome":"ok"`) {
			paths = append(paths, path)
		}
	}
	for _, p := range paths {
		if a.Asked[p] = r.steady(t, p); len(a.Asked[p]) == 0 {
			t.Fatalf("%s gives nothing that is compared, want len(a.Asked[p]) not 0", p)
		}
	}
	for selector, begin := range map[string]int64{of(questions, "shop"): from, of("mysql_global_status_threads_running", "shop"): from, `risso_collect_seconds{group="status",instance="shop"}`: from,
		of(questions, "archive"): until - 3*86400} {
		p := r.raw(t, selector, begin, until)
		if len(p) == 0 {
			t.Fatalf("nothing of %s, want len(p) not 0", selector)
		}
		if len(p) > 400 {
			begin, p = p[0].t, p[:400]
		}
		a.Points[selector], a.From[selector] = p, begin
	}
	r.kill(t)
	a.Killed = until
	b, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	write(t, at("answers.json"), string(b))
	pack(t, file, dir, "answers.json", "data", "home", "place", "a.json", "b.json")
}

// pack makes an archive of files and folders.
func pack(t *testing.T, archive, dir string, names ...string) {
	t.Helper()
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	out := tar.NewWriter(z)
	for _, name := range names {
		err = errors.Join(err, filepath.WalkDir(filepath.Join(dir, name), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || strings.HasSuffix(path, "-shm") {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			if err := out.WriteHeader(&tar.Header{Name: rel, Mode: 0o600, Size: int64(len(b)), Format: tar.FormatUSTAR}); err != nil {
				return err
			}
			_, err = out.Write(b)
			return err
		}))
	}
	if err := errors.Join(err, out.Close(), z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if st, err := exec.Command("ls", "-l", archive).CombinedOutput(); err == nil {
		t.Log(string(st))
	}
}
