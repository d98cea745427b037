package scenario_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/store/blob/blobtest"
)

// protectedServer is the answer of the API about one server.
type protectedServer struct {
	Server struct {
		State, Words string
		Findings     []struct{ ID, What string }
		Running      []struct {
			Job, Stage string
			Done       int64
		}
	}
	Backups []struct{ ID string }
	Runs    []struct{ Kind, Outcome, Text string }
}

func (r *risso) protected(t *testing.T, id string) (p protectedServer) {
	t.Helper()
	r.get(t, "/api/protect/server", url.Values{"id": {id}}, &p)
	return p
}

// outcomes are those of the runs of a kind, the newest first.
func (p protectedServer) outcomes(kind string) string {
	var out []string
	for _, n := range p.Runs {
		if n.Kind == kind {
			out = append(out, n.Outcome)
		}
	}
	return strings.Join(out, " ")
}

func (r *risso) start(t *testing.T, job string) {
	t.Helper()
	if code, b, _ := r.request(t, http.MethodPost, "/api/protect/start?job="+url.QueryEscape(job), nil, nil); code != http.StatusOK {
		t.Fatalf("start %s: got %d %s, want http.StatusOK", job, code, b)
	}
}

// TestProtectPlugPulled: a backup that risso serve takes is killed, restarted by itself, and ended by Ctrl-C; there is never
// a backup that looks complete but is not. Then the place goes away.
func TestProtectPlugPulled(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	execSQL(t, n, `CREATE DATABASE shop; CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, v VARBINARY(600));
		INSERT INTO shop.orders (v) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT RANDOM_BYTES(600) FROM n, (SELECT 1 FROM n LIMIT 60) m;`)
	dir := tempDir(t)
	place := filepath.Join(dir, "backup")
	config := fmt.Sprintf("servers:\n  - name: shop\n    dsn: %q\n    protect:\n      place: %s\n      schedule: daily at 02:00\n      max_rate: 4MB\n", n.DSN, place)
	if err := os.WriteFile(filepath.Join(dir, "risso.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	data, flags := filepath.Join(dir, "data"), []string{"--no-host", "--config", filepath.Join(dir, "risso.yaml")}
	reading := func(r *risso) {
		t.Helper()
		await(t, "a backup that reads", func() bool {
			p := r.protected(t, "shop")
			return len(p.Server.Running) == 1 && p.Server.Running[0].Done > 0
		})
	}
	r := serve(t, data, flags...)
	if p := r.protected(t, "shop"); p.Server.State == "ok" || !strings.Contains(p.Server.Words, "never backed up") {
		t.Errorf("a server without a backup is %s: %s; want p.Server.State not \"ok\", \"never backed up\" in it", p.Server.State, p.Server.Words)
	}
	r.start(t, "shop/backup")
	reading(r)
	r.kill(t)

	r = serve(t, data, flags...)
	reading(r) // by itself
	if p := r.protected(t, "shop"); p.outcomes("backup") != "running interrupted" || len(p.Backups) != 0 {
		t.Errorf("after kill -9: got %s, %d backups; want p.outcomes(\"backup\") \"running interrupted\", no p.Backups",
			p.outcomes("backup"), len(p.Backups))
	}
	await(t, "the backup", func() bool { return len(r.protected(t, "shop").Backups) == 1 })
	r.start(t, "shop/backup")
	await(t, "the next run", func() bool { return strings.HasPrefix(r.protected(t, "shop").outcomes("backup"), "running") })
	r.stop(t, syscall.SIGINT)

	r = serve(t, data, flags...)
	p := r.protected(t, "shop")
	if o := p.outcomes("backup"); !strings.Contains(o, "interrupted ok interrupted") {
		t.Errorf("after Ctrl-C: got %s, want \"interrupted ok interrupted\" in it", o)
	}
	for _, n := range p.Runs {
		if n.Outcome == "interrupted" && n.Text != "Risso was stopped while it ran" && n.Text != "Risso ended while it ran" {
			t.Errorf("it says %q", n.Text)
		}
	}
	const known = 2 // the first one, and the one that was begun anew
	await(t, "the backup that was begun anew", func() bool {
		p := r.protected(t, "shop") // what is at the place is looked at after the run has ended
		return strings.HasPrefix(p.outcomes("backup"), "ok") && len(p.Backups) == known
	})

	if err := os.Rename(place, place+"-away"); err != nil {
		t.Fatal(err)
	}
	r.start(t, "shop/verify")
	await(t, "that the backups are gone", func() bool {
		p := r.protected(t, "shop")
		return p.Server.State == "critical" && strings.Contains(p.Server.Words, "the backups are gone")
	})
	if err := os.Rename(place+"-away", place); err != nil {
		t.Fatal(err)
	}
	r.start(t, "shop/verify")
	await(t, "the backups", func() bool {
		p := r.protected(t, "shop")
		return strings.HasPrefix(p.outcomes("verify"), "ok") && !strings.Contains(p.Server.Words, "gone") && len(p.Backups) == known
	})
}

// TestProtectConfigWrong: one line, and exit code 2.
func TestProtectConfigWrong(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	file := filepath.Join(dir, "risso.yaml")
	if err := os.WriteFile(file, []byte("servers:\n  - dsn: root@tcp(127.0.0.1:1)/\n    protect:\n      place: /backup\n      schedule: nightly\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := launch(t, nil, "serve", "--config", file, "--data", filepath.Join(dir, "data"))
	if code := r.code(t); code != 2 || strings.Count(r.err.String(), "\n") != 1 || !strings.Contains(r.err.String(), "protect: schedule: not a schedule") {
		t.Errorf("exit code %d: got %s; want code 2, strings.Count(r.err.String(), \"\\n\") 1, \"protect: schedule: not a schedule\" in it", code, r.err)
	}
}

// TestProtectConfigReread: a change of the config file is taken while Risso runs, a mistake in it is reported and changes nothing.
func TestProtectConfigReread(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	file := filepath.Join(dir, "risso.yaml")
	write := func(protect string) {
		t.Helper()
		text := "servers:\n  - name: shop\n    dsn: root@tcp(127.0.0.1:1)/\n  - name: crm\n    dsn: root@tcp(127.0.0.1:1)/\n"
		if err := os.WriteFile(file, []byte(strings.Replace(text, "  - name: crm", protect+"  - name: crm", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("    protect: {place: " + dir + "/one, schedule: daily at 02:00, mirror: true}\n")
	r := serve(t, filepath.Join(dir, "data"), "--no-host", "--config", file)
	jobs := func() string {
		var p struct {
			Server struct {
				State string
				Plan  *struct{ Place string }
				Jobs  []struct{ Kind, Schedule string }
			}
		}
		r.get(t, "/api/protect/server", url.Values{"id": {"shop"}}, &p)
		if p.Server.Plan == nil {
			return p.Server.State
		}
		out := filepath.Base(p.Server.Plan.Place) // the state changes by itself once the jobs find that nothing listens on this port
		for _, j := range p.Server.Jobs {
			out += " " + strings.TrimSpace(j.Kind+" "+j.Schedule)
		}
		return out
	}
	said := func(what string) {
		t.Helper()
		await(t, what, func() bool { return strings.Contains(r.err.String(), what) })
	}
	is := func(when, want string) { // the page is there a moment before the jobs
		t.Helper()
		got := ""
		defer func() {
			if t.Failed() {
				t.Logf("%s: got %s, want %s", when, got, want)
			}
		}()
		await(t, when, func() bool { got = jobs(); return got == want })
	}
	is("at first", "one backup daily at 02:00 mirror drill verify")
	write("    protect: {place: " + dir + "/two, schedule: daily at 03:00, mirror: true, retention: {keep_daily: 7}}\n")
	said("config file reread: shop has another place, schedule, retention\n")
	is("after the change", "two backup daily at 03:00 prune mirror drill verify")
	write("    protect: {place: " + dir + "/three, schedule: nightly}\n")
	said("the config file was not used, the previous settings stay in force: server 1 of the config file: protect: schedule: not a schedule")
	is("after a mistake", "two backup daily at 03:00 prune mirror drill verify")
	write("")
	if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	said("shop is no longer protected\n")
	is("without a protection", "critical")
	r.stop(t, syscall.SIGTERM)
}

// TestProtectMySQLOnS3: the jobs of risso serve on MySQL 9.7, with S3 as the place and SFTP as the second one: backup, copy,
// prune, mirror, drill with what was mirrored, verify; then the server is protected.
func TestProtectMySQLOnS3(t *testing.T) {
	s3, sftp := blobtest.S3(t), blobtest.SFTP(t)
	n := single(t, "mysql-9.7")
	execSQL(t, n, `CREATE DATABASE shop; CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(100)); INSERT INTO shop.orders (v) VALUES ('a'),('b'),('c');`)
	dir := tempDir(t)
	config := fmt.Sprintf(`servers:
  - name: shop
    dsn: %q
    protect:
      place: %q
      copy_to: %q
      schedule: daily at 02:00
      retention: {keep_daily: 7}
      mirror: true
`, n.DSN, s3.Place(t, "backups", "shop"), sftp.Place(sftp.Addr, "shop"))
	if err := os.WriteFile(filepath.Join(dir, "risso.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	env := environment(dir, "RISSO_SANDBOX_DIR="+filepath.Join(dir, "sb"), "AWS_ACCESS_KEY_ID="+os.Getenv("AWS_ACCESS_KEY_ID"), "AWS_SECRET_ACCESS_KEY="+os.Getenv("AWS_SECRET_ACCESS_KEY"),
		"XDG_CACHE_HOME="+cacheHome(t)) // where the servers of drills lie
	r := serveEnv(t, env, filepath.Join(dir, "data"), "--no-host", "--config", filepath.Join(dir, "risso.yaml"))
	ends := func(kind string) string {
		t.Helper()
		await(t, "the end of "+kind, func() bool {
			o := r.protected(t, "shop").outcomes(kind)
			return o != "" && o != "running"
		})
		for _, n := range r.protected(t, "shop").Runs {
			if n.Kind == kind {
				if n.Outcome != "ok" {
					t.Fatalf("%s: got %s: %s, want \"ok\"\n%s", kind, n.Outcome, n.Text, r.err)
				}
				return n.Text
			}
		}
		return ""
	}
	r.start(t, "shop/backup")
	t.Log(ends("backup"))
	if text := ends("copy"); !strings.HasPrefix(text, "1 backup copied") {
		t.Errorf("copy: got %s, want \"1 backup copied\" at its beginning", text)
	}
	t.Log(ends("prune"))
	execSQL(t, n, `INSERT INTO shop.orders (v) VALUES ('d'); DELETE FROM shop.orders WHERE v = 'a';`)
	// The drill rolls forward what is mirrored when it begins: until then it is made again.
	await(t, "a drill with both transactions", func() bool {
		drills := func() []string { return strings.Fields(r.protected(t, "shop").outcomes("drill")) }
		before := len(drills())
		r.start(t, "shop/drill")
		await(t, "the end of the drill", func() bool {
			o := drills()
			return len(o) > before && o[0] != "running"
		})
		return strings.Contains(ends("drill"), "rolled forward by 2 transactions")
	})
	t.Log(ends("drill"))
	r.start(t, "shop/verify")
	t.Log(ends("verify"))
	if p := r.protected(t, "shop"); p.Server.State != "ok" || len(p.Backups) != 1 {
		t.Errorf("%s: got %s, %d backups; want p.Server.State \"ok\", len(p.Backups) 1", p.Server.State, p.Server.Words, len(p.Backups))
	}
	r.stop(t, syscall.SIGTERM)
}

// cacheHome is the folder of caches of the person who runs the tests: servers lie there.
func cacheHome(t *testing.T) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestProtectRings: what Protect finds rings, with a remedy that can be run as it is.
func TestProtectRings(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	h := newHook(t, "s3cret")
	dir := tempDir(t)
	place, conf := filepath.Join(dir, "backup"), filepath.Join(dir, "risso.yaml")
	write(t, conf, fmt.Sprintf("alerts:\n  receivers:\n    - {name: hook, webhook: {url: %q, secret: s3cret}}\nservers:\n  - name: shop\n    dsn: %q\n    protect: {place: %s, schedule: daily at 02:00}\n", h.URL, n.DSN, place))
	env := environment(tempDir(t)) // one home: the key that signs is the one that is trusted
	serveEnv(t, env, filepath.Join(dir, "data"), "--no-host", "--config", conf)
	await(t, "the alert", func() bool { return slices.Contains(h.told(), "firing shop/protect.never") })
	if m := h.last("shop/protect.never"); !strings.Contains(m.What, "never backed up") || m.Remedy != "risso backup --dsn shop --config "+conf+" --to "+place || m.Began.IsZero() {
		t.Errorf("got %+v, want what is wrong since when, and the command that makes a backup", m)
	}
	if made := launch(t, env, strings.Fields(h.last("shop/protect.never").Remedy)[1:]...); made.code(t) != 0 {
		t.Fatalf("the remedy: got %s%s, want it to make a backup", made.out, made.err)
	}
}
