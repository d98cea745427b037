//go:build cgo

package history

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/events"
)

// slowScene is a server that counts no statements and writes all into its slow log.
type slowScene struct {
	*scene
	dir   string
	log   *SlowLog
	ahead time.Duration // our clock goes faster than the server's
	app   *sql.DB
}

func newSlowScene(t *testing.T, kind string) *slowScene {
	t.Helper()
	sandboxtest.Need(t, kind)
	settings := []string{"performance_schema=OFF", "slow_query_log=ON", "slow_query_log_file=slow.log", "long_query_time=0"}
	if strings.HasPrefix(kind, "mariadb") {
		settings = append(settings, "log_slow_verbosity=query_plan,explain")
	}
	s := &slowScene{scene: newScene(t, kind, func(o *Options) { o.PlanID = planID }, settings...), dir: t.TempDir()}
	s.run(1, "CREATE DATABASE shop", "CREATE DATABASE crm", "CREATE USER app@localhost IDENTIFIED BY 'a-p_1'", "GRANT ALL ON *.* TO app@localhost", "CREATE TABLE shop.t (id INT PRIMARY KEY, a VARCHAR(20))", "CREATE TABLE crm.t (id INT PRIMARY KEY, a VARCHAR(20))", "USE shop")
	var err error
	if s.app, err = sql.Open("mysql", "app:a-p_1@unix("+s.node.Socket+")/crm"); err != nil {
		t.Fatal(err)
	}
	s.app.SetMaxOpenConns(1)
	t.Cleanup(func() { s.app.Close() })
	s.sessions = append(s.sessions, s.app)
	s.begin()
	return s
}

// begin starts to follow, as a new process would.
func (s *slowScene) begin() {
	s.t.Helper()
	s.log = NewSlowLog(s.c.target, s.c.instance, s.c.Options, s.dir)
	log := s.log
	s.t.Cleanup(func() {
		log.c.disconnect()
		if log.file != nil {
			log.file.close()
		}
	})
	s.step()
	if st := s.log.Status(); !st.Working {
		s.t.Fatalf("the slow log is not read: %+v", st)
	}
}

func (s *slowScene) step() {
	s.counted()
	s.log.step(s.t.Context(), time.Now().Add(s.ahead))
}

// end reads what is there and lets the minute pass.
func (s *slowScene) end() {
	s.t.Helper()
	for range 3 { // a file that was rotated is looked at twice, then comes the next
		s.step()
	}
	s.ahead += 65 * time.Second
	s.step()
	s.log.flush(s.t.Context())
}

func (s *slowScene) as(db *sql.DB, times int, statement string) {
	s.t.Helper()
	for i := range times {
		if _, err := db.ExecContext(s.t.Context(), strings.ReplaceAll(statement, "#", fmt.Sprint(i))); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
}

func (s *slowScene) class(statement string) *events.ClassAnswer {
	s.t.Helper()
	a, err := s.store.Class(s.t.Context(), events.ClassQuestion{Range: events.Range{From: 0, To: 1<<33 - 1}, ID: classOf(statement), Points: 10})
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *slowScene) calls(statement string, want int64) {
	s.t.Helper()
	if got := s.class(statement).Total.Calls; got != want {
		s.t.Errorf("%s: %d calls are stored, %d were run", statement, got, want)
	}
}

const selectAll = "SELECT a FROM t WHERE a = 'secret #'"

// TestSlowLog counts each statement of a server's slow log once, by user and schema: over rotations, a cut log, a log that is
// switched off and on, a restarted server, and a Risso that is stopped or killed.
func TestSlowLog(t *testing.T) {
	for _, kind := range []string{"mariadb", "mariadb-11.8", "mysql-5.7", "mysql-9.7"} {
		t.Run(kind, func(t *testing.T) {
			s := newSlowScene(t, kind)
			path := filepath.Join(s.node.Datadir, "slow.log")
			want := int64(0)
			root := func(n int) { s.run(n, selectAll); want += int64(n) }
			root(20)
			s.as(s.app, 7, selectAll)
			want += 7
			s.run(1, "ALTER USER app@localhost IDENTIFIED BY 'a-p_1'")
			s.end()
			s.calls(selectAll, want)
			a := s.class(selectAll)
			users, schemas := partsOf(a.ByUser), partsOf(a.BySchema)
			if users["root"] != 20 || users["app"] != 7 || schemas["shop"] != 20 || schemas["crm"] != 7 {
				t.Errorf("users %v, schemas %v; want users[\"root\"] 20, users[\"app\"] 7, schemas[\"shop\"] 20, schemas[\"crm\"] 7", users, schemas)
			}
			if a.Latency == nil || a.Latency.Calls != 27 || a.Latency.P95 <= 0 || a.Latency.P95 > a.Total.MaxSeconds*1.05 || a.Total.Seconds <= 0 {
				t.Errorf("latency %+v, cost %+v; want a.Latency not nil, Calls 27, P95 more than 0, P95 at most %v, Seconds more than 0",
					a.Latency, a.Total, a.Total.MaxSeconds*1.05)
			}
			if len(a.Samples) == 0 || !strings.Contains(a.Samples[0].Text, "secret") || a.Samples[0].User == "" || a.PtID == "" || a.Tables != "t" || a.Verb != "SELECT" {
				t.Errorf("class %+v, samples %+v; want len(a.Samples) not 0, \"secret\" in a.Samples[0].Text, a.Samples[0].User not \"\", a.PtID not \"\", a.Tables \"t\", a.Verb \"SELECT\"",
					a.Class, a.Samples)
			}
			for id := range s.top() {
				b, err := s.store.Class(t.Context(), events.ClassQuestion{Range: events.Range{From: 0, To: 1<<33 - 1}, ID: id, Points: 10})
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range b.Samples {
					if strings.Contains(p.Text, "a-p_1") || strings.Contains(p.Text, "risso") {
						t.Errorf("a password or Risso's own statement is stored: %s; want no \"a-p_1\" in it, no \"risso\" in it", p.Text)
					}
				}
			}
			if len(a.Plans) == 0 || (a.Plans[0].Origin == "slow log") != strings.HasPrefix(kind, "mariadb") {
				t.Errorf("plans %+v, status %+v", a.Plans, s.log.Status())
			}

			s.rotations(path, root)
			s.calls(selectAll, want)

			s.run(1, "SET GLOBAL slow_query_log=OFF")
			s.log.asked = time.Time{}
			s.step()
			if st := s.log.Status(); st.Working || !strings.Contains(st.Why, "off") || !strings.Contains(st.Remedy, "slow_query_log=ON") {
				t.Errorf("switched off: got %+v; want Working false, \"off\" in Why, \"slow_query_log=ON\" in Remedy", st)
			}
			s.run(3, selectAll) // not in the log
			s.run(1, "SET GLOBAL slow_query_log=ON", "SET GLOBAL long_query_time=0.25")
			root(4) // this connection keeps its own long_query_time
			s.end()
			if st := s.log.Status(); !st.Working || len(st.Notes) != 1 || !strings.Contains(st.Notes[0].Why, "0.25") {
				t.Errorf("status %+v; want Working true, len(Notes) 1, \"0.25\" in Notes[0].Why", st)
			}
			s.calls(selectAll, want)
			s.run(1, "SET GLOBAL long_query_time=0")

			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			must(t, s.node.Stop(ctx))
			s.end()
			if err := s.node.Start(ctx); err != nil {
				t.Fatal(err)
			}
			s.run(1, "USE shop")
			root(6)
			s.end()
			s.calls(selectAll, want)
			if n := s.class(selectAll).BySchema; partsOf(n)["shop"] != want-7 || s.log.lost != "" {
				t.Errorf("schemas %v, lost %q; want partsOf(n)[\"shop\"] %v, s.log.lost \"\"", n, s.log.lost, want-7)
			}
		})
	}
}

// rotations runs statements while the log is renamed and cut, and Risso stopped and killed.
func (s *slowScene) rotations(path string, root func(int)) {
	s.t.Helper()
	root(5)
	must(s.t, os.Rename(path, path+".1"))
	root(5) // into the old file
	s.step()
	s.run(1, "FLUSH SLOW LOGS")
	root(5)
	s.end()

	root(5)
	s.step()
	root(5)
	s.run(1, "DO 0") // a statement is logged after its answer, but before the session's next
	copyTruncate(s.t, path, path+".2")
	root(5)
	s.end()

	root(5) // seen, in a minute that is open
	s.step()
	s.log.leave()
	root(5) // no reading
	s.begin()
	root(5)
	s.step()
	s.begin() // killed: nothing was written down at the end
	root(5)
	must(s.t, os.Rename(path, path+".3"))
	s.run(1, "FLUSH SLOW LOGS")
	root(5)
	s.begin() // killed, and the log was rotated
	s.end()
}

func partsOf(list []events.Part) map[string]int64 {
	out := map[string]int64{}
	for _, p := range list {
		out[p.Value] += p.Calls
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func copyTruncate(t *testing.T, path, to string) {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(to, b, 0o600))
	must(t, os.Truncate(path, 0))
}

// TestSlowLogFlip sees in MariaDB's explain lines that a class has another plan after CREATE INDEX.
func TestSlowLogFlip(t *testing.T) {
	s := newSlowScene(t, "mariadb")
	s.run(1, "CREATE TABLE big (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b CHAR(100))", "INSERT INTO big (a, b) VALUES (1, 'x'), (2, 'x')")
	for range 10 {
		s.run(1, "INSERT INTO big (a, b) SELECT id, 'y' FROM big")
	}
	const q = "SELECT b FROM big WHERE a = 1#"
	s.run(20, q)
	s.end()
	s.run(20, q)
	s.end()
	if a := s.class(q); len(a.Plans) != 1 || len(a.Flips) != 0 {
		t.Fatalf("plans %+v, flips %+v; want len(a.Plans) 1, no a.Flips", a.Plans, a.Flips)
	}
	s.run(1, "CREATE INDEX ia ON big (a)", "ANALYZE TABLE big")
	time.Sleep(time.Second) // a flip is later than the plan before, by a second
	s.run(20, q)
	s.end()
	a := s.class(q)
	if len(a.Plans) != 2 || len(a.Flips) != 1 || a.Plans[0].Origin != "slow log" || !strings.Contains(a.Plans[0].Text, "ia") || !strings.Contains(a.Plans[0].Text, "r_rows") || strings.Contains(a.Plans[0].Text, "# explain") {
		t.Fatalf("plans %+v, flips %+v; want len(a.Plans) 2, len(a.Flips) 1, a.Plans[0].Origin \"slow log\", \"ia\" in a.Plans[0].Text, \"r_rows\" in a.Plans[0].Text, no \"# explain\" in a.Plans[0].Text",
			a.Plans, a.Flips)
	}
	n := 0
	for _, e := range s.events {
		if e.Kind == fleet.EventPlan && e.Subject == classOf(q) {
			n++
		}
	}
	if n != 1 || s.c.status.PlanNote != "" {
		t.Errorf("got %d events of flips: %+v; want n 1, s.c.status.PlanNote \"\"", n, s.events)
	}
}

// TestSlowLogChoice takes performance_schema if it counts and the slow log if it does not, and says what keeps both.
func TestSlowLogChoice(t *testing.T) {
	s := newSlowScene(t, "mariadb")
	s.log.leave()
	e := NewEither(s.c, s.log)
	if st := e.Status(); st.Working {
		t.Errorf("before anything was asked: %+v", st)
	}
	s.c.Read(t.Context(), time.Now())
	s.run(3, point)
	s.end()
	if st := e.Status(); !st.Working || st.Source != "slow log" || len(st.Notes) != 1 || !strings.Contains(st.Notes[0].Remedy, "performance_schema=ON") {
		t.Errorf("status %+v; want Working true, Source \"slow log\", len(Notes) 1, \"performance_schema=ON\" in Notes[0].Remedy", st)
	}
	s.calls(point, 3)
	s.run(1, "SET GLOBAL slow_query_log=OFF")
	s.log.asked = time.Time{}
	s.end()
	if st := e.Status(); st.Working || st.Source != "none" || !strings.Contains(st.Remedy, "SET GLOBAL slow_query_log=ON") || !strings.Contains(st.Remedy, "performance_schema=ON") {
		t.Errorf("status %+v; want Working false, Source \"none\", \"SET GLOBAL slow_query_log=ON\" in Remedy, \"performance_schema=ON\" in Remedy", st)
	}
	s.run(1, "SET GLOBAL slow_query_log=ON")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(t, s.node.Stop(ctx))
	must(t, s.node.Start(ctx, "--performance-schema=ON", "--performance-schema-consumer-statements-digest=ON"))
	s.c.Read(t.Context(), time.Now())
	s.end()
	if st := e.Status(); !st.Working || st.Source != "performance_schema" || s.log.file != nil {
		t.Errorf("performance_schema is on: %+v; want Working true, Source \"performance_schema\", s.log.file nil", st)
	}
	if list, err := filepath.Glob(filepath.Join(s.dir, "*")); err != nil || len(list) != 0 {
		t.Errorf("what was read of the log is still written down: %v %v; want none", list, err)
	}

	// A server on this machine's loopback is known, one behind a tunnel is not, though its address is.
	cfg, err := s.node.TCPConfig()
	must(t, err)
	for _, tunnel := range []bool{false, true} {
		addr := cfg.Addr
		if tunnel {
			addr = proxy(t, cfg.Addr)
		}
		target, err := mysql.ParseTarget(cfg.User + ":" + cfg.Passwd + "@tcp(" + addr + ")/")
		must(t, err)
		conn, err := mysql.Connect(t.Context(), target, nil)
		must(t, err)
		if same, why, err := conn.SameMachine(t.Context(), target); err != nil || same == tunnel || tunnel && !strings.Contains(why, "tunnel") {
			t.Errorf("tunnel %v: the same machine %v: %s %v", tunnel, same, why, err)
		}
		must(t, conn.Close())
	}

	// A log that is another server's is not read.
	other := filepath.Join(t.TempDir(), "slow.log")
	must(t, os.WriteFile(other, []byte("mariadbd, Version: 10. started with:\nTcp port: 3306  Unix socket: /elsewhere.sock\nTime\t\t    Id Command\tArgument\n"), 0o600))
	if err := isLogOf(other, s.node.Socket); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("another server's log: got %v; want an error, \"another server\" in the error", err)
	}
}

// proxy passes connections on to an address until the test ends.
func proxy(t *testing.T, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			go func() { io.Copy(out, in); out.Close() }()
			go func() { io.Copy(in, out); in.Close() }()
		}
	}()
	return l.Addr().String()
}

// fileScene is a slow log that a test writes, and a store; time passes as the test says.
type fileScene struct {
	t     *testing.T
	path  string
	store events.Store
	s     *SlowLog
	now   time.Time
}

func newFileScene(t *testing.T) *fileScene {
	t.Helper()
	dir := t.TempDir()
	store, err := events.OpenEmbedded(t.Context(), filepath.Join(dir, "events", "statements.duckdb"))
	must(t, err)
	t.Cleanup(func() { store.Close() })
	f := &fileScene{t: t, path: filepath.Join(dir, "slow.log"), store: store, now: time.Unix(1_790_000_040, 0)}
	f.write("")
	f.begin()
	return f
}

// begin makes a source whose server said already where its log is.
func (f *fileScene) begin() {
	f.t.Helper()
	if f.s != nil && f.s.file != nil {
		f.s.file.close()
	}
	f.s = NewSlowLog(mysql.Target{}, fleet.Instance{ID: "db"}, Options{Store: f.store, Event: func(fleet.Event) {}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}, filepath.Dir(f.path))
	f.s.now = f.now.Unix()
	must(f.t, f.s.open(f.path))
	f.s.allowed, f.s.asked = true, f.now
	f.t.Cleanup(func() {
		if f.s.file != nil {
			f.s.file.close()
		}
	})
}

func (f *fileScene) write(text string) {
	f.t.Helper()
	w, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(f.t, err)
	_, err = w.WriteString(text)
	must(f.t, err)
	must(f.t, w.Close())
}

func slowEvent(at time.Time, user string) string {
	return fmt.Sprintf("# Time: %s\n# User@Host: %s[%s] @ localhost []  Id: 7\n# Query_time: 0.500000  Lock_time: 0.000000 Rows_sent: 2  Rows_examined: 30\nSET timestamp=%d;\nSELECT 1;\n",
		at.UTC().Format("2006-01-02T15:04:05.000000Z"), user, user, at.Unix())
}

// pass lets time pass and reads.
func (f *fileScene) pass(d time.Duration) {
	f.t.Helper()
	f.now = f.now.Add(d)
	f.s.asked = f.now
	f.s.step(f.t.Context(), f.now)
}

// minutes are the calls by minute, from the scene's beginning.
func (f *fileScene) minutes() (out map[int64]int64, total int64) {
	f.t.Helper()
	a, err := f.store.Class(f.t.Context(), events.ClassQuestion{Range: events.Range{From: f.now.Unix()/3600*3600 - 7200, To: f.now.Unix()/3600*3600 + 10800}, ID: classOf("SELECT 1"), Points: events.MaxPoints})
	must(f.t, err)
	out = map[int64]int64{}
	for _, p := range a.Points {
		if p.Calls > 0 {
			out[(p.Time-1_790_000_040)/60] = p.Calls
		}
		total += p.Calls
	}
	return out, total
}

// TestSlowLogMinutes puts each event into the minute in which it ended, also when Risso was down, and loses none when the
// clock jumps.
func TestSlowLogMinutes(t *testing.T) {
	f := newFileScene(t)
	begin := f.now
	event := func(after time.Duration, n int) {
		f.write(strings.Repeat(slowEvent(begin.Add(after), "a"), n))
	}
	event(time.Second, 3)
	f.pass(2 * time.Second)
	event(59*time.Second, 1)
	event(61*time.Second, 2)
	f.pass(60 * time.Second)
	f.s.leave()
	event(3*time.Minute, 4) // Risso is down for ten minutes
	event(5*time.Minute, 5)
	f.now = begin.Add(10 * time.Minute)
	f.begin()
	f.pass(time.Second)
	event(11*time.Minute, 1)
	event(40*24*time.Hour, 1)  // a session that set its time
	event(-40*24*time.Hour, 1) // and another one
	f.pass(time.Minute)
	f.pass(2 * time.Minute)
	if got, total := f.minutes(); total != 18 || got[0] != 4 || got[1] != 2 || got[3] != 4 || got[5] != 5 || got[11] != 3 {
		t.Errorf("calls by minute %v, %d in all; want total 18, got[0] 4, got[1] 2, got[3] 4, got[5] 5, got[11] 3", got, total)
	}
	event(15*time.Minute, 7)
	f.pass(3 * time.Minute)
	f.now = begin.Add(5 * time.Minute) // these minutes are stored already
	event(5*time.Minute, 3)
	f.pass(0)
	for range 20 {
		f.pass(time.Minute)
	}
	if got, total := f.minutes(); total != 28 {
		t.Errorf("after the clock jumped back: calls by minute %v, %d in all; want 28", got, total)
	}
	// Two days of sleep: what is older than a day is skipped, and that is reported.
	f.s.leave()
	event(time.Hour, 2)
	event(47*time.Hour, 2)
	f.now = begin.Add(48 * time.Hour)
	f.begin()
	f.pass(time.Second)
	f.pass(time.Minute)
	if _, total := f.minutes(); total != 2 || f.s.old != 2 || !strings.Contains(fmt.Sprint(f.s.notes()), "more than a day") {
		t.Errorf("%d calls of the last hours, %d are too old, notes %v; want total 2, f.s.old 2, \"more than a day\" in it", total, f.s.old, f.s.notes())
	}
}

// TestSlowLogRotatedMeanwhile reads the rest of the old log and those that came and went while Risso was down, in their order, and
// no copies and no other files of the folder. What is compressed is lost, which is reported.
func TestSlowLogRotatedMeanwhile(t *testing.T) {
	f := newFileScene(t)
	begin := f.now
	event := func(after time.Duration, n int) {
		f.write(strings.Repeat(slowEvent(begin.Add(after), "a"), n))
	}
	rotate := func() {
		must(t, os.Rename(f.path+".1", f.path+".2"))
		must(t, os.Rename(f.path, f.path+".1"))
		time.Sleep(20 * time.Millisecond) // times of files show the order
		f.write("mysqld, Version: 5.7.44-log (MySQL). started with:\n" + fmt.Sprintf("# Time: %s\n# User@Host: b[b] @ h []\n# Query_time: 1 Lock_time: 0\nSELECT %d, 2;\n", f.now.UTC().Format(time.RFC3339Nano), f.now.Nanosecond()))
	}
	must(t, os.WriteFile(f.path+".1", []byte(slowEvent(begin.Add(-time.Hour), "old")), 0o600))
	must(t, os.WriteFile(f.path+".txt", []byte("no log\n"), 0o600))
	event(time.Second, 3)
	f.pass(2 * time.Second)
	f.s.leave()
	event(3*time.Second, 1)
	f.now = begin.Add(time.Minute)
	rotate()
	event(61*time.Second, 4)
	f.now = begin.Add(2 * time.Minute)
	rotate()
	event(121*time.Second, 5)
	b, err := os.ReadFile(f.path)
	must(t, err)
	must(t, os.WriteFile(f.path+".copy", b, 0o600))
	f.now = begin.Add(150 * time.Second)
	f.begin()
	for range 5 {
		f.pass(time.Second)
	}
	event(2*time.Minute+50*time.Second, 6) // the last file is the one that grows
	f.pass(time.Minute)
	f.pass(2 * time.Minute)
	if got, total := f.minutes(); total != 19 || got[0] != 4 || got[1] != 4 || got[2] != 11 || f.s.lost != "" {
		t.Errorf("calls by minute %v, %d in all, lost: got %q; want total 19, got[0] 4, got[1] 4, got[2] 11, f.s.lost \"\"", got, total, f.s.lost)
	}
	f.s.leave()
	must(t, os.Remove(f.path))
	event(f.now.Sub(begin), 2)
	f.begin()
	f.pass(time.Second)
	f.pass(2 * time.Minute)
	if _, total := f.minutes(); total != 21 || !strings.Contains(f.s.lost, "rotated") || !strings.Contains(fmt.Sprint(f.s.notes()), "delaycompress") {
		t.Errorf("got %d in all, lost: %q; want total 21, \"rotated\" in it, \"delaycompress\" in fmt.Sprint(f.s.notes())", total, f.s.lost)
	}
}

// TestSlowLogStateOfAnother begins at the end of the log where another Risso, or damage, wrote what cannot be read; that is reported, and
// the file is kept.
func TestSlowLogStateOfAnother(t *testing.T) {
	for _, content := range []string{`{"version": 99}`, `{"version": 1, "pla`} {
		f := newFileScene(t)
		f.write(slowEvent(f.now, "a"))
		f.pass(time.Second)
		f.s.leave()
		path := string(stateFileOf(filepath.Dir(f.path), "db"))
		must(t, os.WriteFile(path, []byte(content), 0o600))
		f.write(slowEvent(f.now, "a"))
		f.begin()
		f.write(slowEvent(f.now, "a"))
		f.pass(time.Second)
		if !strings.Contains(f.s.lost, "not known how far") || !strings.Contains(fmt.Sprint(f.s.notes()), "risso digest") {
			t.Errorf("it says %q, %v; want \"not known how far\" in it, \"risso digest\" in it", f.s.lost, f.s.notes())
		}
		kept, err := filepath.Glob(path + ".*")
		must(t, err)
		if len(kept) != 1 {
			t.Fatalf("kept: got %v, want length 1", kept)
		}
		if b, err := os.ReadFile(kept[0]); err != nil || string(b) != content {
			t.Errorf("%s holds %q, %v; want %v", kept[0], b, err, content)
		}
	}
}

// TestSlowLogStoreAway keeps events in the log while the store cannot be written, and counts what it could not confirm once.
func TestSlowLogStoreAway(t *testing.T) {
	f := newFileScene(t)
	begin := f.now
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 5 {
		f.write(strings.Repeat(slowEvent(begin.Add(time.Duration(i)*time.Minute), "a"), 10))
		f.now = begin.Add(time.Duration(i)*time.Minute + 30*time.Second)
		f.s.now = f.now.Unix()
		f.s.file.next(f.s.event)
		f.s.flush(ctx) // fails
	}
	if len(f.s.waiting) != 4 {
		t.Fatalf("got %d minutes wait, want 4", len(f.s.waiting))
	}
	// Killed after the store took two of them and before that was written down.
	_, err := f.store.AddMinutes(t.Context(), f.s.waiting[0].Minute, f.s.waiting[1].Minute)
	must(t, err)
	f.begin()
	f.pass(time.Second)
	f.pass(2 * time.Minute)
	if got, total := f.minutes(); total != 50 || got[0] != 10 || got[1] != 10 || got[4] != 10 {
		t.Errorf("calls by minute %v, %d in all; want total 50, got[0] 10, got[1] 10, got[4] 10", got, total)
	}
}

// TestSlowLogBurst reads a burst in bounded turns and memory, with all classes and users that there is room for.
func TestSlowLogBurst(t *testing.T) {
	f := newFileScene(t)
	n, classes := 60_000, 20_000
	if testing.Short() {
		t.Log("short: a quarter of the events")
		n, classes = 15_000, 5000
	}
	var b strings.Builder
	for i := range n {
		e := slowEvent(f.now, fmt.Sprint("u", i%7))
		if i%3 == 0 {
			e = strings.Replace(e, "SELECT 1", fmt.Sprintf("SELECT c%d FROM t%d", i%classes, i%classes), 1)
		}
		b.WriteString(e)
	}
	f.write(b.String())
	turns, worked := 0, time.Duration(0)
	for f.s.file.behind() > 0 {
		turn := time.Now()
		rest := f.s.step(t.Context(), f.now)
		took := time.Since(turn)
		worked += took
		turns++
		if f.s.file.behind() > 0 && rest < min(2*took, 5*time.Second) { // a turn is long on a busy machine
			t.Fatalf("it rests %s after %s", rest, took)
		}
	}
	t.Logf("%d events, %d bytes, in %s of work and %d turns", n, b.Len(), worked, turns)
	if turns < 2 || len(f.s.minute.rows) > maxSlowRows+1 {
		t.Errorf("got %d turns, %d rows; want turns at least 2, len(f.s.minute.rows) at most %d", turns, len(f.s.minute.rows), maxSlowRows+1)
	}
	f.pass(65 * time.Second)
	a, err := f.store.Top(t.Context(), events.TopQuestion{Range: events.Range{From: 0, To: f.now.Unix() + 60}, Limit: 10})
	must(t, err)
	if a.Total.Calls != int64(n) {
		t.Errorf("%d calls are stored, %d were written; want %d", a.Total.Calls, n, int64(n))
	}
}

// TestBucketOf is MySQL's rule for the buckets of its histograms.
func TestBucketOf(t *testing.T) {
	for seconds, want := range map[float64]int16{0: 0, 0.000009: 0, 0.00001: 1, 0.0001: 51, 0.001: 101, 0.0103: 151, 1: 251, 1e6: events.Buckets - 1, 1e12: events.Buckets - 1} {
		if got := bucketOf(seconds); got != want {
			t.Errorf("%g s is in bucket %d, not %d", seconds, got, want)
		}
	}
}
