package scenario_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// secret is the password that must appear nowhere.
const secret = "Pa55-wurd.geheim"

// secretServer is a server with an account whose password is secret.
func secretServer(t *testing.T, kind string, settings ...string) *sandbox.Node {
	t.Helper()
	n := single(t, kind, settings...)
	execSQL(t, n, fmt.Sprintf("CREATE USER s@'localhost' IDENTIFIED BY '%[1]s'; GRANT ALL ON *.* TO s@'localhost'; CREATE USER s@'127.0.0.1' IDENTIFIED BY '%[1]s'; GRANT ALL ON *.* TO s@'127.0.0.1'", secret))
	return n
}

// titles looks at the command line of a process that the process list shows, until it ends or the function is called.
// A password may be seen only before the program's first instruction has wiped it.
func titles(t *testing.T, r *risso) (end func()) {
	t.Helper()
	quit, done := make(chan struct{}), make(chan struct{})
	path := fmt.Sprintf("/proc/%d/cmdline", r.cmd.Process.Pid)
	go func() {
		defer close(done)
		wiped := false
		for {
			b, err := os.ReadFile(path)
			if err != nil || len(b) == 0 {
				return // it ended
			}
			shown := strings.Contains(string(b), secret)
			if wiped && shown {
				t.Errorf("the process list shows the password after it was wiped: %q", b)
				return
			}
			wiped = wiped || !shown && strings.Contains(string(b), "serve")
			select {
			case <-quit:
				if _, err := os.Stat(path); err == nil && !wiped {
					t.Errorf("the process list shows the password: %q", b)
				}
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() { close(quit); <-done }
}

// TestTLSRemedies: the remedies for a certificate that this machine does not trust, and for an account that may connect by TLS only, work.
func TestTLSRemedies(t *testing.T) {
	t.Parallel()
	settings, _ := sandboxtest.TLS(t)
	n := single(t, "mariadb", settings...)
	execSQL(t, n, "CREATE USER s@'127.0.0.1' IDENTIFIED BY '"+secret+"' REQUIRE SSL; GRANT ALL ON *.* TO s@'127.0.0.1'")
	dsn := "s:" + secret + "@tcp(" + address(n) + ")/"
	ca := strings.TrimPrefix(settings[2], "ssl_ca=")
	for _, c := range []struct {
		name, dsn, says string
		env             []string
		code            int
	}{
		{"without TLS", dsn, "an account that requires TLS (REQUIRE SSL) needs tls=true in the DSN", nil, 1},
		{"a certificate of nobody", dsn + "?tls=true", "SSL_CERT_FILE or by ssl-ca in the option file, or accept any certificate with tls=skip-verify", nil, 1},
		{"its CA is named", dsn + "?tls=true", "", []string{"SSL_CERT_FILE=" + ca}, 0},
		{"any certificate", dsn + "?tls=skip-verify", "", nil, 0},
	} {
		r := launch(t, environment(tempDir(t), c.env...), "grants", "--dsn", c.dsn)
		if code := r.code(t); code != c.code || !strings.Contains(r.err.String(), c.says) {
			t.Errorf("%s: got exit code %d and %q, want %d and %q", c.name, code, r.err, c.code, c.says)
		}
	}
}

// TestExitCodes: each wrong use ends with its code and one clear line, which never holds the password.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	n := secretServer(t, "mariadb")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := tempDir(t)
	unknownKey, badYAML := filepath.Join(dir, "key.yaml"), filepath.Join(dir, "bad.yaml")
	write(t, unknownKey, "servers:\n- dsn: s:"+secret+"@tcp(127.0.0.1:1)/\n  pasword: "+secret+"\n")
	write(t, badYAML, "servers: [\n"+secret+"\n")
	used := dataDir(t)
	first := serve(t, used, "--host-only")
	tcp, good := address(n), fmt.Sprintf("s:%s@unix(%s)/", secret, n.Socket)
	for _, c := range []struct {
		name string
		code int
		says string // in the line
		args []string
	}{
		{"second on the same data", 3, "another risso serve uses", []string{"serve", "--listen", "127.0.0.1:0", "--data", used, "--dsn", good}},
		{"port in use", 3, "in use", []string{"serve", "--listen", taken.Addr().String(), "--dsn", good}},
		{"wrong password", 1, "check user and password", []string{"serve", "--listen", "127.0.0.1:0", "--dsn", "s:" + secret + "x@tcp(" + tcp + ")/"}},
		{"wrong password with -v", 1, "check user and password", []string{"serve", "-v", "--listen", "127.0.0.1:0", "--dsn", "s:" + secret + "x@tcp(" + tcp + ")/"}},
		{"no database of that name", 1, "", []string{"serve", "--listen", "127.0.0.1:0", "--dsn", good + "nosuchdb"}},
		{"no TLS on the server", 1, "tls=", []string{"serve", "--listen", "127.0.0.1:0", "--dsn", "s:" + secret + "@tcp(" + tcp + ")/?tls=true"}},
		{"DSN without a form", 2, "user:password@tcp(", []string{"serve", "--dsn", "s:" + secret + "@" + tcp}},
		{"DSN without a bracket", 2, "user:password@tcp(", []string{"serve", "--dsn", "s:" + secret + "@tcp(" + tcp + "/"}},
		{"DSN with an unknown network", 2, "DSN", []string{"serve", "--dsn", "s:" + secret + "@pigeon(" + tcp + ")/"}},
		{"DSN with an unknown TLS setting", 2, "DSN", []string{"serve", "--dsn", "s:" + secret + "@tcp(" + tcp + ")/?tls=" + secret}},
		{"empty DSN", 2, "DSN", []string{"serve", "--dsn", ""}},
		{"a source of statements that there is not", 2, "slow-log", []string{"serve", "--dsn", good, "--statements", "nonsense"}},
		{"two wishes for statements", 2, "contradict", []string{"serve", "--dsn", good, "--statements", "slow-log", "--no-statements"}},
		{"the same server twice", 2, "", []string{"serve", "--dsn", good, "--dsn", good}},
		{"unknown flag", 2, "unknown flag", []string{"serve", "--dns", good}},
		{"unknown command", 2, "did you mean serve", []string{"server"}},
		{"an argument too many", 2, "", []string{"serve", "db1"}},
		{"no server", 2, "no server to watch", []string{"serve"}},
		{"top without a server", 2, "no server to watch", []string{"top"}},
		{"retention", 2, "--retention", []string{"serve", "--retention", "forever", "--dsn", good}},
		{"negative retention", 2, "--retention", []string{"serve", "--retention=-3d", "--dsn", good}},
		{"no such config", 2, "config file", []string{"serve", "--config", filepath.Join(dir, "none.yaml")}},
		{"config that is a folder", 2, "config file", []string{"serve", "--config", dir}},
		{"unknown key in config", 2, "pasword", []string{"serve", "--config", unknownKey}},
		{"config that is no YAML", 2, "config file", []string{"serve", "--config", badYAML}},
		{"address without a port", 2, "--listen", []string{"serve", "--listen", "127.0.0.1", "--dsn", good}},
		{"open to the network without a token", 2, "risso token create", []string{"serve", "--listen", "0.0.0.0:0", "--dsn", good}},
		{"top with an unknown output", 2, "--output", []string{"top", "--output", "xml", "--dsn", good}},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := tempDir(t)
			r := launch(t, environment(home, "XDG_STATE_HOME="+home), c.args...)
			end := titles(t, r)
			code := r.code(t)
			end()
			said := r.err.String()
			if code != c.code {
				t.Errorf("exit code %d, not %d: %s", code, c.code, said)
			}
			oneLine(t, said)
			if !strings.Contains(said, c.says) {
				t.Errorf("it does not say %q: %s", c.says, said)
			}
			if strings.Contains(said+r.out.String(), secret) {
				t.Errorf("it shows the password: %s%s", said, r.out)
			}
			if r.out.String() != "" {
				t.Errorf("on standard output stands %q, want \"\"", r.out)
			}
		})
	}
	first.stop(t, syscall.SIGTERM)
}

// oneLine fails if a program said more or less than one line.
func oneLine(t *testing.T, said string) {
	t.Helper()
	var lines []string
	for l := range strings.Lines(said) {
		if !strings.HasPrefix(l, "time=") { // -v
			lines = append(lines, l)
		}
	}
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "risso: ") {
		t.Errorf("it said %d lines, not one: %s; want len(lines) 1, \"risso: \" at the beginning of lines[0]", len(lines), said)
	}
}

// TestTLS: how a server that requires TLS, or has a self-signed certificate, treats a DSN.
func TestTLS(t *testing.T) {
	t.Parallel()
	n := single(t, "mysql-9.7", "require_secure_transport=ON")
	execSQL(t, n, fmt.Sprintf("CREATE USER s@'%%' IDENTIFIED BY '%s'; GRANT ALL ON *.* TO s@'%%'", secret))
	for tls, works := range map[string]bool{"false": false, "true": false, "skip-verify": true} {
		t.Run(tls, func(t *testing.T) {
			dsn := fmt.Sprintf("db=s:%s@tcp(%s)/?tls=%s", secret, address(n), tls)
			if works {
				r := serve(t, dataDir(t), "--no-host", "--dsn", dsn)
				r.awaitTicks(t, "db", 2)
				r.stop(t, syscall.SIGTERM)
				return
			}
			r := launch(t, nil, "serve", "--no-host", "--listen", "127.0.0.1:0", "--data", dataDir(t), "--dsn", dsn)
			if code := r.code(t); code != 1 {
				t.Errorf("exit code %d, not 1", code)
			}
			if said := r.err.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "tls=") || strings.Contains(said, secret) {
				t.Errorf("it said %q: one line with a hint at tls= was wanted", said)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPasswordStaysHidden: no log, title or answer holds the password of a server that is watched, even when it fails.
func TestPasswordStaysHidden(t *testing.T) {
	t.Parallel()
	n := secretServer(t, "mariadb")
	data := dataDir(t)
	r := launch(t, nil, "serve", "-v", "--listen", "127.0.0.1:0", "--data", data, "--no-host", "--dsn", fmt.Sprintf("db=s:%s@tcp(%s)/", secret, address(n)))
	end := titles(t, r)
	await(t, "ready", func() bool {
		if m := readyForm.FindStringSubmatch(r.err.String()); m != nil {
			r.base = m[1]
		}
		return r.base != ""
	})
	r.awaitTicks(t, "db", 2)
	if err := n.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, "it is down", func() bool { return r.instance(t, "db").State == "down" })
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.awaitTicks(t, "db", 1)
	execSQL(t, n, "SET PASSWORD FOR s@'127.0.0.1' = PASSWORD('other'); FLUSH PRIVILEGES")
	r.awaitTicks(t, "db", 1)
	execSQL(t, n, "KILL USER s@'127.0.0.1'")
	await(t, "it cannot log in", func() bool { return strings.Contains(r.instance(t, "db").Words, "Access denied") })
	for _, path := range []string{"/api/fleet", "/api/instance?id=db", "/api/metrics?instance=db", "/api/variables?instance=db", "/api/events?instance=db", "/api/events", "/api/self", "/api/v1/metadata",
		"/api/v1/label/__name__/values", "/api/v1/series?match[]=mysql_up", "/"} {
		if _, b, _ := r.request(t, http.MethodGet, path, nil, nil); strings.Contains(string(b), secret) {
			t.Errorf("%s shows the password", path)
		}
	}
	end()
	r.stop(t, syscall.SIGINT)
	if strings.Contains(r.err.String()+r.out.String(), secret) {
		t.Errorf("the log shows the password: %s", r.err)
	}
	out, err := exec.Command("grep", "-rlF", secret, data).CombinedOutput()
	if err == nil {
		t.Errorf("the password lies in the data folder: %s", out)
	}
}

// TestAccess: beyond loopback a token is asked for, in each form that it may take.
func TestAccess(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	env := environment(tempDir(t))
	create := exec.Command(binary, "token", "create", "grafana", "--data", data)
	create.Env = env
	out, err := create.Output()
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(out))
	r := launch(t, env, "serve", "--host-only", "--listen", "0.0.0.0:0", "--data", data)
	await(t, "ready", func() bool {
		if m := readyForm.FindStringSubmatch(r.err.String()); m != nil {
			_, port, err := net.SplitHostPort(strings.TrimPrefix(m[1], "http://"))
			r.base = "http://127.0.0.1:" + port
			return err == nil
		}
		return false
	})
	ask := func(what string, want int, path string, change func(*http.Request)) {
		t.Helper()
		if status, b, _ := r.request(t, http.MethodGet, path, nil, change); status != want {
			t.Errorf("%s: status %d, not %d: %s", what, status, want, b)
		}
	}
	for _, path := range []string{"/api/fleet", "/api/v1/query?query=1", "/api/v1/labels", "/api/self", "/api/nothing"} {
		ask("without a token "+path, 401, path, nil)
	}
	ask("the page itself asks for the token", 200, "/", nil)
	ask("wrong token", 401, "/api/fleet", func(q *http.Request) { q.Header.Set("Authorization", "Bearer "+token+"x") })
	ask("bearer", 200, "/api/fleet", func(q *http.Request) { q.Header.Set("Authorization", "Bearer "+token) })
	ask("basic", 200, "/api/v1/query?query=1", func(q *http.Request) { q.SetBasicAuth("anyone", token) })
	ask("another Host with a token", 200, "/api/fleet", func(q *http.Request) { q.Host = "risso.example"; q.Header.Set("Authorization", "Bearer "+token) })

	login := func(token string) *http.Response {
		t.Helper()
		resp, err := http.Post(r.base+"/api/login", "application/json", strings.NewReader(`{"token":`+strconv.Quote(token)+`}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	if resp := login("wrong"); resp.StatusCode != 401 || len(resp.Cookies()) != 0 {
		t.Errorf("login with a wrong token: got %d %v; want resp.StatusCode 401, no resp.Cookies()", resp.StatusCode, resp.Cookies())
	}
	resp := login(token)
	if resp.StatusCode != 200 || len(resp.Cookies()) != 1 || !resp.Cookies()[0].HttpOnly || resp.Cookies()[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("login: got %d %v; want resp.StatusCode 200, len(resp.Cookies()) 1, resp.Cookies()[0].HttpOnly true, resp.Cookies()[0].SameSite http.SameSiteStrictMode",
			resp.StatusCode, resp.Cookies())
	}
	ask("cookie", 200, "/api/fleet", func(q *http.Request) { q.AddCookie(resp.Cookies()[0]) })

	revoke := exec.Command(binary, "token", "revoke", "grafana", "--data", data)
	revoke.Env = env
	if out, err := revoke.CombinedOutput(); err != nil {
		t.Fatalf("revoke: %v: %s", err, out)
	}
	await(t, "a revoked token is refused", func() bool {
		status, _, _ := r.request(t, http.MethodGet, "/api/fleet", nil, func(q *http.Request) { q.Header.Set("Authorization", "Bearer "+token) })
		return status == 401
	})
	r.stop(t, syscall.SIGTERM)
}

// TestForeignPages: an open Risso on loopback does not answer under another name.
func TestForeignPages(t *testing.T) {
	t.Parallel()
	r := serve(t, dataDir(t), "--host-only")
	ask := func(what string, want int, path string, change func(*http.Request)) http.Header {
		t.Helper()
		status, b, h := r.request(t, http.MethodGet, path, nil, change)
		if status != want {
			t.Errorf("%s: status %d, not %d: %s", what, status, want, b)
		}
		return h
	}
	ask("loopback", 200, "/api/fleet", nil)
	ask("wrong Host", 403, "/api/fleet", func(q *http.Request) { q.Host = "evil.example" })
	ask("wrong Host, Prometheus API", 403, "/api/v1/query?query=1", func(q *http.Request) { q.Host = "evil.example:8306" })
	ask("foreign Origin", 403, "/api/fleet", func(q *http.Request) { q.Header.Set("Origin", "https://evil.example") })
	ask("Origin null", 403, "/api/fleet", func(q *http.Request) { q.Header.Set("Origin", "null") })
	ask("own Origin", 200, "/api/fleet", func(q *http.Request) { q.Header.Set("Origin", r.base) })
	if h := ask("page", 200, "/", nil); !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'self'") {
		t.Error("the page has no Content-Security-Policy")
	}
}

// TestSources: a server may come from each of the documented places.
func TestSources(t *testing.T) {
	t.Parallel()
	n := secretServer(t, "mariadb")
	dir := tempDir(t)
	write(t, filepath.Join(dir, "pw"), secret+"\n")
	conf := filepath.Join(dir, "risso.yaml")
	write(t, conf, fmt.Sprintf(`data: %s/from-config
servers:
- name: From File
  dsn: s@unix(%[2]s)/
  password_file: %[1]s/pw
- name: from-env
  dsn: s@tcp(%[3]s)/
  password_env: THE_SECRET
`, dir, n.Socket, address(n)))
	cnf := func(text string) string {
		home := tempDir(t)
		write(t, filepath.Join(home, ".my.cnf"), text)
		return home
	}
	account := fmt.Sprintf("[client]\nuser=s\npassword='%s'\n", secret)
	for _, c := range []struct {
		name string
		env  []string
		args []string
		ids  string
	}{
		{"config", environment(tempDir(t), "THE_SECRET="+secret), []string{"--config", conf, "--listen", "127.0.0.1:0"}, "from-env from-file"},
		{"environment", environment(tempDir(t), fmt.Sprintf("RISSO_DSN=a=s:%s@unix(%s)/ b=s:%[1]s@tcp(%[3]s)/", secret, n.Socket, address(n))), nil, "a b"},
		{"option file", environment(cnf(account + "socket=" + n.Socket + "\n")), nil, fleet.Slug(n.Socket)},
		{"option file for the account only", environment(cnf(account)), []string{"--dsn", "x=" + n.Socket}, "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"serve", "--no-host", "--listen", "127.0.0.1:0"}, c.args...)
			if c.name != "config" {
				args = append(args, "--data", dataDir(t))
			}
			r := launch(t, c.env, args...)
			await(t, "ready", func() bool {
				m := readyForm.FindStringSubmatch(r.err.String())
				if m != nil {
					r.base = m[1]
				}
				return m != nil
			})
			for _, id := range strings.Fields(c.ids) {
				r.awaitTicks(t, id, 1)
			}
			var f struct{ Instances []struct{ ID string } }
			r.get(t, "/api/fleet", nil, &f)
			if len(f.Instances) != len(strings.Fields(c.ids)) {
				t.Errorf("watched are %v, not %s", f.Instances, c.ids)
			}
			r.stop(t, syscall.SIGTERM)
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "from-config", "series")); err != nil {
		t.Errorf("the data folder of the config file was not used: %v", err)
	}
}

// TestTop: in a pipe it prints text or a JSON object a line, and ends after so many.
func TestTop(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	js := launch(t, nil, "top", "--count", "2", "--output", "json", "--dsn", "db="+n.DSN)
	if code := js.code(t); code != 0 {
		t.Fatalf("exit code %d: got %s, want 0", code, js.err)
	}
	d := json.NewDecoder(strings.NewReader(js.out.String()))
	for range 2 {
		var o struct {
			Time      time.Time
			Instances []struct {
				ID    string
				State string
				QPS   *float64
				CPU   *float64
			}
		}
		if err := d.Decode(&o); err != nil {
			t.Fatalf("%v in %s", err, js.out)
		}
		found := false
		for _, i := range o.Instances {
			if i.ID == "db" {
				found = true
				if i.QPS == nil || *i.QPS <= 0 || i.State == "down" {
					t.Errorf("a server that answers is %q with %v questions a second; want i.QPS not nil, *i.QPS more than 0, i.State not \"down\"", i.State, i.QPS)
				}
			}
		}
		if !found || len(o.Instances) != 2 || time.Since(o.Time).Abs() > time.Minute {
			t.Errorf("the server and this host are wanted: %s", js.out)
		}
	}
	if d.More() {
		t.Error("it printed more than two objects")
	}
	text := launch(t, nil, "top", "--count", "1", "--no-host", "--dsn", "db="+n.DSN)
	if code := text.code(t); code != 0 {
		t.Fatalf("exit code %d: got %s, want 0", code, text.err)
	}
	if out := text.out.String(); !strings.Contains(out, "QUESTIONS/S") || !strings.Contains(out, "db") || strings.Contains(out, "\x1b") {
		t.Errorf("in a pipe it prints %q; want \"QUESTIONS/S\" in it, \"db\" in it, no \"\\x1b\" in it", out)
	}
	long := launch(t, nil, "top", "--output", "json", "--no-host", "--dsn", "db="+n.DSN)
	await(t, "a line", func() bool { return strings.Contains(long.out.String(), "\n") })
	long.stop(t, syscall.SIGINT)
}

// TestOrderlyEnd: Ctrl-C and SIGTERM end serve within three seconds with all that was seen stored.
func TestOrderlyEnd(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			data := dataDir(t)
			hole := blackHole(t)
			r := serve(t, data, "--no-host", "--dsn", "db="+n.DSN, "--dsn", "hole=root@tcp("+hole+")/")
			begin := r.awaitTicks(t, "db", 1)
			end := r.awaitTicks(t, "db", 2)
			want := r.raw(t, of(questions, "db"), begin, end)
			r.stop(t, sig)
			r = serve(t, data, "--no-host", "--dsn", "db="+n.DSN)
			got := r.raw(t, of(questions, "db"), begin, end)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("after the end there are %v; there were %v; want %v", got, want, fmt.Sprint(want))
			}
			await(t, "Risso's own start and end: began, stopped, began", func() bool { return len(r.events(t, "", "observer")) >= 3 })
		})
	}
}
