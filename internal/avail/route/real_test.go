package route

import (
	"bytes"
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestFollow: clients write through the router while the primary changes, with a time in which there is none. What was acknowledged after the change is on
// the new one only, connections to the old one are cut, those that come meanwhile wait and succeed, and nothing goes back with an older view.
func TestFollow(t *testing.T) {
	t.Parallel()
	old, fresh := sandboxtest.Lend(t, "mariadb"), sandboxtest.Lend(t, "mysql-9.7")
	account(t, old, fresh)
	a, b := of("a", old), of("b", fresh)
	first, second := newBoard(t), newBoard(t)
	first.primary(1, &a)
	r := routing(t, Options{}, []*board{first, second}, Door{Rules: Rules{Role: Primary}})
	r.said("no group of that name") // the second

	const writers = 8
	var next, written, cut atomic.Int64
	var phase atomic.Int64 // the epoch that the router follows
	var mu sync.Mutex
	acknowledged := map[int64]int64{} // id: the phase in which it was begun
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range writers {
		db := client(t, r.at[0], "timeout=4m&readTimeout=4m")
		all.Go(func() {
			for ctx.Err() == nil {
				id, at := next.Add(1), phase.Load()
				if _, err := db.ExecContext(ctx, "INSERT INTO t VALUES (?)", id); err != nil {
					if n := (*driver.MySQLError)(nil); errors.As(err, &n) && ctx.Err() == nil {
						t.Errorf("write %d: %v", id, err)
						return
					}
					cut.Add(1)
					continue
				}
				written.Add(1)
				mu.Lock()
				acknowledged[id] = at
				mu.Unlock()
				time.Sleep(time.Millisecond)
			}
		})
	}
	more := func() {
		t.Helper()
		from := written.Load()
		await.Until(t, func() bool { return written.Load() > from+50 }, "50 more writes")
	}
	more()
	first.primary(2, nil)
	r.until("all cut and held", func(s Status) bool { return s.Epoch == 2 && s.Held == writers && s.Servers[0].Open == 0 })
	root := sandboxtest.Connect(t, old)
	await.Until(t, func() bool { // what was under way when it was cut
		list, err := root.Maps(t.Context(), "SELECT COUNT(*) AS sessions FROM information_schema.processlist WHERE user = 'app'")
		return err == nil && list[0]["sessions"] == "0"
	}, "the end of the sessions on the old primary")
	inOld := rows(t, old.DSN)
	second.primary(3, &b) // another controller knows first
	r.until("the new primary", func(s Status) bool { return s.Epoch == 3 && s.Held == 0 })
	phase.Store(3)
	more()
	first.primary(2, &a)
	r.said("tells epoch 2, which is older than 3")
	more()
	stop()
	all.Wait()
	if now := rows(t, old.DSN); len(now) != len(inOld) {
		t.Errorf("the old primary got %d rows after it was deposed", len(now)-len(inOld))
	}
	inNew := rows(t, fresh.DSN)
	lost := 0
	for id, at := range acknowledged {
		if at == 3 && !inNew[id] || !inNew[id] && !inOld[id] {
			lost++
		}
	}
	if lost > 0 || cut.Load() == 0 {
		t.Errorf("%d acknowledged writes are not where they belong; %d were cut", lost, cut.Load())
	}
	s := r.Status()
	if d := s.Doors[0]; d.Refused > 0 || d.Waited < writers {
		t.Errorf("%+v: want all held, none refused", d)
	}
}

func rows(t *testing.T, dsn string) map[int64]bool {
	t.Helper()
	db, err := sql.Open("mysql", dsn+"test")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	list, err := db.QueryContext(t.Context(), "SELECT id FROM t")
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	have := map[int64]bool{}
	for list.Next() {
		var id int64
		if err := list.Scan(&id); err != nil {
			t.Fatal(err)
		}
		have[id] = true
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	return have
}

// TestServers: on real servers of both flavours TLS passes through, a server's own refusal reaches the client, a session that is killed ends, and a large
// answer comes whole; MariaDB sees the client's address by both forms of the PROXY protocol, from a balancer in front as well.
func TestServers(t *testing.T) {
	t.Parallel()
	settings, anyTLS := sandboxtest.TLS(t)
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Lend(t, spec, append([]string{"max_allowed_packet=64M"}, settings...)...)
			account(t, n)
			b := newBoard(t)
			p := of("p", n)
			b.primary(1, &p)
			doors := []Door{{Rules: Rules{Role: Primary}}}
			if spec == "mariadb" {
				if _, err := n.Query(t.Context(), "SET GLOBAL proxy_protocol_networks = '127.0.0.1'"); err != nil {
					t.Fatal(err)
				}
				doors = append(doors, Door{Rules: Rules{Role: Primary}, Header: V1}, Door{Rules: Rules{Role: Primary}, Header: V2})
			}
			r := routing(t, Options{}, []*board{b}, doors...)
			db := client(t, r.at[0], "tls="+anyTLS+"&maxAllowedPacket=67108864")
			var name, cipher string
			if err := db.QueryRowContext(t.Context(), "SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher); err != nil || cipher == "" {
				t.Errorf("the cipher is %q: %v", cipher, err)
			}
			var big []byte
			if err := db.QueryRowContext(t.Context(), "SELECT REPEAT('x', 40000000)").Scan(&big); err != nil || len(big) != 40000000 {
				t.Errorf("%d bytes of 40,000,000 came: %v", len(big), err)
			}
			plain := client(t, r.at[0], "")
			var id int64
			if err := plain.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
				t.Fatal(err)
			}
			if _, err := n.Query(t.Context(), fmt.Sprintf("KILL %d", id)); err != nil {
				t.Fatal(err)
			}
			r.until("the end of the killed session", func(s Status) bool { return s.Servers[0].Open == 1 })
			if _, err := client(t, r.at[0], "").Conn(t.Context()); err != nil {
				t.Errorf("after a KILL: %v", err)
			}
			if spec == "mariadb" {
				seenAddress(t, n.DSN, r, b)
			}
			refusesTooMany(t, n.DSN, r)
		})
	}
}

// refusesTooMany: a server that has no room says so itself.
func refusesTooMany(t *testing.T, dsn string, r *routed) {
	root, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := root.ExecContext(t.Context(), "SET GLOBAL max_connections = 10"); err != nil {
		t.Fatal(err)
	}
	var refusal error
	for range 12 {
		db := client(t, r.at[0], "")
		if refusal = db.PingContext(t.Context()); refusal != nil {
			break
		}
	}
	if n := (*driver.MySQLError)(nil); !errors.As(refusal, &n) || n.Number != 1040 {
		t.Errorf("a full server: %v, want its error 1040", refusal)
	}
}

// seenAddress: whose connection a server sees.
func seenAddress(t *testing.T, dsn string, r *routed, b *board) {
	t.Helper()
	for i, h := range []Header{V1, V2} {
		d := driver.NewConfig()
		d.User, d.Net, d.Addr = "app", "tcp", r.at[i+1]
		// The client is another address of loopback, which the server would not see without the header.
		d.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 7)}}).DialContext(ctx, network, addr)
		}
		c, err := driver.NewConnector(d)
		if err != nil {
			t.Fatal(err)
		}
		seen(t, sql.OpenDB(c), string(h), "127.0.0.7:")
	}
	balanced := routing(t, Options{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.8/32")}}, []*board{b}, Door{Rules: Rules{Role: Primary}, Header: V2})
	for _, h := range []Header{V1, V2} {
		d := driver.NewConfig()
		d.User, d.Net, d.Addr = "app", "tcp", balanced.at[0]
		d.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 8)}}).DialContext(ctx, network, addr)
			if err == nil {
				_, err = conn.Write(h.write(netip.MustParseAddrPort("203.0.113.9:4711"), netip.MustParseAddrPort("127.0.0.1:3306")))
			}
			return conn, err
		}
		c, err := driver.NewConnector(d)
		if err != nil {
			t.Fatal(err)
		}
		seen(t, sql.OpenDB(c), "a balancer's "+string(h), "203.0.113.9:4711")
	}
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 8)}}).DialContext(t.Context(), "tcp", balanced.at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("this is no header at all\r\n"))
	if text, _ := io.ReadAll(conn); !bytes.Contains(text, []byte("PROXY header")) {
		t.Errorf("without a header a balancer is told %q", text)
	}
}

func seen(t *testing.T, db *sql.DB, what, want string) {
	t.Helper()
	defer db.Close()
	var host string
	if err := db.QueryRowContext(t.Context(), "SELECT host FROM information_schema.processlist WHERE id = CONNECTION_ID()").Scan(&host); err != nil || !strings.HasPrefix(host, want) {
		t.Errorf("%s: the server sees %q (%v), want %s", what, host, err, want)
	}
}

// TestReplicas: reads are spread, leave a replica that is too late, and come back; without one they go where fallback says; a frozen server, and one that
// is not there, are passed over and found again.
func TestReplicas(t *testing.T) {
	t.Parallel()
	x, y := sandboxtest.Lend(t, "mariadb"), sandboxtest.Lend(t, "mysql-9.7")
	account(t, x, y)
	p, q := of("p", x), of("q", y)
	dead := group.Server{Name: "dead", Address: "127.0.0.1:1", Weight: 1}
	b := newBoard(t)
	b.primary(1, &p, behind(p, 0), behind(q, 0), behind(dead, 0))
	reads := Rules{Role: Replica, MaxLag: 5 * time.Second}
	refuses := reads
	refuses.Fallback = Refuse
	r := routing(t, Options{Connect: 3 * time.Second}, []*board{b}, Door{Rules: reads}, Door{Rules: refuses}, Door{Rules: Rules{Role: Primary}})
	for range 8 { // each keeps its connection
		if err := client(t, r.at[0], "").PingContext(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	count := func(s Status, address string) int {
		for _, v := range s.Servers {
			if v.Address == address {
				return v.Open
			}
		}
		return 0
	}
	if s := r.Status(); count(s, p.Address) != 4 || count(s, q.Address) != 4 {
		t.Errorf("of 8 clients %d and %d are on two replicas, want 4 and 4", count(s, p.Address), count(s, q.Address))
	}
	b.primary(1, &p, behind(q, 6*time.Second))
	r.until("the late one's clients are cut", func(s Status) bool { return count(s, q.Address) == 0 && count(s, p.Address) == 4 })
	if got := port(t, r.at[0]); got != x.Port {
		t.Errorf("a read goes to port %d, want the primary's, %d", got, x.Port)
	}
	n := (*driver.MySQLError)(nil)
	if err := client(t, r.at[1], "").PingContext(t.Context()); !errors.As(err, &n) || n.Number != errNoPlace || !strings.Contains(n.Message, "too late for max-lag 5s") {
		t.Errorf("without a replica: %v, want error 1053 that says why", err)
	}
	b.primary(1, &p, behind(q, time.Second))
	r.until("the replica is back", func(s Status) bool {
		return s.Servers[len(s.Servers)-1].Lag != nil && *s.Servers[len(s.Servers)-1].Lag == 1
	})
	if got := port(t, r.at[1]); got != y.Port {
		t.Errorf("a read goes to port %d, want the replica's, %d", got, y.Port)
	}
	goOn := sandboxtest.Pause(t, y)
	if err := client(t, r.at[1], "").PingContext(t.Context()); !errors.As(err, &n) || !strings.Contains(n.Message, "q does not answer") {
		t.Errorf("a frozen replica: %v, want an error that names it", err)
	}
	if got := port(t, r.at[0]); got != x.Port {
		t.Errorf("a read goes to port %d while the replica is frozen, want %d", got, x.Port)
	}
	goOn()
	r.said("q (" + q.Address + ") answers again")
	if got := port(t, r.at[1]); got != y.Port {
		t.Errorf("a read goes to port %d, want %d, which answers again", got, y.Port)
	}
	goOn = sandboxtest.Pause(t, x) // the view says that it is the primary: clients wait for it
	done := make(chan error)
	db := client(t, r.at[2], "timeout=4m&readTimeout=4m")
	go func() { done <- db.PingContext(t.Context()) }()
	r.until("the primary is down, and a client held", func(s Status) bool {
		return s.Doors[2].Held == 1 && slices.ContainsFunc(s.Servers, func(v ServerStatus) bool { return v.Server == "p" && v.Down })
	})
	goOn()
	if err := <-done; err != nil {
		t.Errorf("a client that waited for the primary to answer: %v", err)
	}
}

// TestStalls: a server that takes nothing while it waits for a lock, for 50 s by default, is not cut.
func TestStalls(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fd, err := detach(c)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if ms, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); err != nil || ms < 60_000 {
		t.Errorf("it is cut after %d ms: %v", ms, err)
	}
}

// TestSeenAnew: clients that are held, as it was told too long ago how late a replica is, are brought there as soon as a controller has seen the same anew.
func TestSeenAnew(t *testing.T) {
	t.Parallel()
	n := sandboxtest.Lend(t, "mariadb")
	account(t, n)
	b := newBoard(t)
	sees := func(is bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.blind = !is
	}
	b.primary(1, nil, behind(of("a", n), 0))
	r := routing(t, Options{}, []*board{b}, Door{Rules: Rules{Role: Replica, MaxLag: 2 * time.Second, Fallback: Hold}})
	r.until("a view", func(s Status) bool { return s.Epoch == 1 })
	sees(false)
	r.until("an old view", func(Status) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.newest.old(time.Now()) > 3*time.Second
	})
	done := make(chan error)
	db := client(t, r.at[0], "timeout=4m&readTimeout=4m")
	began := time.Now()
	go func() { done <- db.PingContext(t.Context()) }()
	r.until("a held client", func(s Status) bool { return s.Doors[0].Held == 1 })
	sees(true)
	if err := <-done; err != nil || time.Since(began) > time.Minute {
		t.Errorf("after %s: %v; want the replica as soon as it is known how late it is", time.Since(began), err)
	}
}

// TestHeld: thousands wait while there is no primary, no more than may, those that leave are noticed, one that talks first is no client, and all that
// stayed are brought to the server when there is one; those that waited in vain are told why.
func TestHeld(t *testing.T) {
	t.Parallel()
	n := sandboxtest.Lend(t, "mariadb", "max_connections=3000", "back_log=50")
	account(t, n)
	b := newBoard(t)
	b.primary(1, nil)
	r := routing(t, Options{MostHeld: 2000}, []*board{b}, Door{Rules: Rules{Role: Primary}})
	conns := make([]net.Conn, 2000)
	for i := range conns {
		var err error
		if conns[i], err = net.Dial("tcp", r.at[0]); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
	}
	r.until("2000 are held", func(s Status) bool { return s.Held == 2000 })
	var no *driver.MySQLError
	if err := client(t, r.at[0], "").PingContext(t.Context()); !errors.As(err, &no) || no.Number != errTooMany || !strings.Contains(no.Message, "2,000 clients wait") {
		t.Errorf("one too many: %v, want error 1040", err)
	}
	for _, c := range conns[:100] {
		_ = c.Close()
	}
	for _, c := range conns[100:200] {
		_, _ = c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	}
	r.until("200 are gone", func(s Status) bool { return s.Held == 1800 && s.Doors[0].Gone == 200 })
	p := of("p", n)
	b.primary(2, &p)
	for i, c := range conns[200:] {
		var head [5]byte
		if _, err := io.ReadFull(c, head[:]); err != nil || head[4] != 10 {
			t.Fatalf("held client %d got %x, %v, want a greeting", i, head, err)
		}
	}
	r.until("nobody waits", func(s Status) bool { return s.Held == 0 && s.Doors[0].Open == 1800 })
	b.primary(3, nil)
	r.until("all are cut", func(s Status) bool { return s.Open == 0 && s.Servers[0].Cut == 1800 })
	brief := routing(t, Options{Hold: 200 * time.Millisecond}, []*board{b}, Door{Rules: Rules{Role: Primary}})
	brief.until("the view", func(s Status) bool { return s.Epoch == 3 })
	if err := client(t, brief.at[0], "").PingContext(t.Context()); !errors.As(err, &no) || no.Number != errNoPlace || no.Message != "risso: group g has no primary: it is being failed over; waited 200ms" {
		t.Errorf("one that waited in vain: %v", err)
	}
}

// TestAbuse: garbage, views that flap, and clients that come and go meanwhile leave nothing behind, and the router works as before.
func TestAbuse(t *testing.T) {
	t.Parallel()
	n := sandboxtest.Lend(t, "mariadb", "max_connect_errors=1000000")
	account(t, n)
	p := of("p", n)
	b := newBoard(t)
	b.hasty = true
	b.primary(1, &p)
	r := routing(t, Options{Drain: time.Minute}, []*board{b}, Door{Rules: Rules{Role: Primary}})
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				c, err := net.Dial("tcp", r.at[0])
				if err != nil {
					t.Error(err)
					return
				}
				_ = c.SetDeadline(time.Now().Add(20 * time.Millisecond))
				switch i % 4 {
				case 0:
					_, _ = c.Write(bytes.Repeat([]byte{0xff, 0, 'x'}, 50000))
				case 1:
					_ = tls.Client(c, &tls.Config{InsecureSkipVerify: true}).Handshake()
				case 2:
					_, _ = io.Copy(io.Discard, c)
				}
				if i%2 == 0 {
					_ = c.(*net.TCPConn).SetLinger(0)
				}
				_ = c.Close()
			}
		})
	}
	for epoch := uint64(2); epoch < 120; epoch++ {
		if epoch%2 == 0 {
			b.primary(epoch, nil)
		} else {
			b.primary(epoch, &p)
		}
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	all.Wait()
	b.primary(200, &p)
	r.until("all gone", func(s Status) bool { return s.Open == 0 && s.Held == 0 && s.Epoch == 200 })
	if got := port(t, r.at[0]); got != n.Port {
		t.Errorf("port %d, want %d", got, n.Port)
	}
	r.until("the client's end", func(s Status) bool { return s.Open == 0 })
	b.mu.Lock()
	b.broken, b.asked = true, 0
	b.mu.Unlock()
	r.said("no controller answers: what was last told, epoch 200, stays in force")
	last := client(t, r.at[0], "")
	if err := last.PingContext(t.Context()); err != nil {
		t.Errorf("without a controller: %v", err)
	}
	r.stop() // it drains: what is there goes on
	r.until("it ends", func(s Status) bool { return s.Ending })
	if _, err := last.ExecContext(t.Context(), "DO 1"); err != nil {
		t.Errorf("while it drains: %v", err)
	}
	if c, err := net.Dial("tcp", r.at[0]); err == nil {
		t.Error("it takes clients while it drains")
		_ = c.Close()
	}
	_ = last.Close()
	<-r.ended
}

// TestRefusalIsRead: MariaDB's own client reads why it is refused; it does not read numbers that are those of clients.
func TestRefusalIsRead(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("mariadb")
	if err != nil {
		lack.Of(t, "MariaDB's client is not installed")
	}
	b := newBoard(t)
	b.primary(1, nil)
	r := routing(t, Options{Hold: time.Millisecond}, []*board{b}, Door{Rules: Rules{Role: Primary}})
	r.until("the view", func(s Status) bool { return s.Epoch == 1 })
	host, port, _ := net.SplitHostPort(r.at[0])
	out, err := exec.CommandContext(t.Context(), program, "--no-defaults", "-uapp", "-h"+host, "-P"+port, "-e", "SELECT 1").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "1053") || !strings.Contains(string(out), "risso: group g has no primary: it is being failed over; waited 1ms") {
		t.Errorf("the client says %q (%v)", out, err)
	}
	b.set(group.View{Group: "g", Epoch: 1, NoPrimary: "it has been silent for 2 s"})
	r.until("the other words", func(s Status) bool { return s.NoPrimary == "it has been silent for 2 s" })
	r.saying.Lock()
	if n := strings.Count(strings.Join(r.words, "\n"), "no primary"); n != 1 {
		t.Errorf("it says %d times that there is no primary, want once: %q", n, r.words)
	}
	r.saying.Unlock()
	ends := routing(t, Options{}, []*board{b}, Door{Rules: Rules{Role: Primary}})
	told := make(chan error)
	db := client(t, ends.at[0], "timeout=4m&readTimeout=4m")
	go func() { told <- db.PingContext(t.Context()) }()
	ends.until("one is held", func(s Status) bool { return s.Held == 1 })
	ends.stop()
	if err, n := <-told, (*driver.MySQLError)(nil); !errors.As(err, &n) || n.Number != errNoPlace || n.Message != "risso: the router ends" {
		t.Errorf("one that is held when the router ends: %v", err)
	}
}
