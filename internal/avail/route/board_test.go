package route

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// board is what risso serve answers with, and a test says where clients go.
type board struct {
	*httptest.Server
	posts  *publish.Board
	mu     sync.Mutex
	view   group.View
	asked  int
	broken bool // it answers with an error
	hasty  bool // it does not wait
	blind  bool // it sees nothing, and answers with what it saw last
}

func newBoard(t *testing.T) *board {
	t.Helper()
	b := &board{posts: publish.NewBoard()}
	desk := publish.NewDesk(b.posts, time.Hour)
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		b.mu.Lock()
		b.asked++
		broken, hasty := b.broken, b.hasty
		b.mu.Unlock()
		if hasty {
			v := q.URL.Query()
			v.Del("wait")
			q.URL.RawQuery = v.Encode()
		}
		if broken {
			http.Error(w, "broken", http.StatusInternalServerError)
			return
		}
		desk.ServeHTTP(w, q)
	}))
	ended := make(chan struct{})
	go func() { // a controller looks again and again
		defer close(ended)
		for t.Context().Err() == nil {
			time.Sleep(50 * time.Millisecond)
			b.mu.Lock()
			if b.view.Group != "" && !b.blind {
				b.view.Seen = time.Now()
				b.posts.Tell(b.view, nil)
			}
			b.mu.Unlock()
		}
	}()
	t.Cleanup(func() { <-ended; b.CloseClientConnections(); b.Close() })
	return b
}

// set says where clients go, though it is older than what was said.
func (b *board) set(v group.View) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v.Seen = time.Now()
	if v.Epoch < b.view.Epoch {
		b.posts.Forget(v.Group)
	}
	b.view = v
	b.posts.Tell(v, nil)
}

// routed is a router under test.
type routed struct {
	*Router
	t      *testing.T
	at     []string // the doors' addresses
	stop   context.CancelFunc
	ended  chan struct{}
	saying sync.Mutex // for words
	words  []string
}

func routing(t *testing.T, o Options, boards []*board, doors ...Door) *routed {
	t.Helper()
	r := &routed{t: t, ended: make(chan struct{})}
	o.Group = "g"
	for _, b := range boards {
		o.Controllers = append(o.Controllers, Controller{URL: b.URL})
	}
	for _, d := range doors {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		d.Listener = ln
		if d.Fallback == "" {
			d.Fallback = ToPrimary
		}
		o.Doors = append(o.Doors, d)
		r.at = append(r.at, ln.Addr().String())
	}
	if o.Hold == 0 {
		o.Hold = 3 * time.Minute
	}
	if o.MostHeld == 0 {
		o.MostHeld = DefaultMostHeld
	}
	if o.Connect == 0 {
		o.Connect = time.Minute
	}
	o.Say = func(text string) {
		r.saying.Lock()
		defer r.saying.Unlock()
		r.words = append(r.words, text)
	}
	var err error
	if r.Router, err = New(o); err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(t.Context())
	go func() {
		defer close(r.ended)
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		r.stop()
		<-r.ended
		if t.Failed() {
			t.Logf("the router said:\n%s", strings.Join(r.words, "\n"))
		}
	})
	return r
}

// said waits until the router has said something.
func (r *routed) said(words string) {
	r.t.Helper()
	await.Until(r.t, func() bool {
		r.saying.Lock()
		defer r.saying.Unlock()
		return strings.Contains(strings.Join(r.words, "\n"), words)
	}, "%q", words)
}

// until waits for a state.
func (r *routed) until(what string, is func(Status) bool) {
	r.t.Helper()
	await.Until(r.t, func() bool { return is(r.Status()) }, "%s", what)
}

// of is a server as a view names it.
func of(name string, n *sandbox.Node) group.Server {
	return group.Server{Name: name, Address: fmt.Sprintf("127.0.0.1:%d", n.Port), Weight: 1}
}

// behind is the same so late.
func behind(s group.Server, d time.Duration) group.Server {
	s.Lag = &d
	return s
}

func (b *board) primary(epoch uint64, s *group.Server, replicas ...group.Server) {
	b.set(group.View{Group: "g", Epoch: epoch, Primary: s, Replicas: replicas, NoPrimary: map[bool]string{true: "it is being failed over"}[s == nil]})
}

// account lets a client without a password in over TCP, and makes a table.
func account(t *testing.T, nodes ...*sandbox.Node) {
	t.Helper()
	for _, n := range nodes {
		if _, err := n.Query(t.Context(), "CREATE USER app@'%' IDENTIFIED BY ''; GRANT ALL ON *.* TO app@'%'; CREATE TABLE test.t (id INT PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
	}
}

// client is a session through a door, over one connection.
func client(t *testing.T, address, options string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", "app@tcp("+address+")/test?"+options)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// port is where a client of a door is brought.
func port(t *testing.T, address string) (n int) {
	t.Helper()
	db := client(t, address, "")
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), "SELECT @@port").Scan(&n); err != nil {
		t.Fatalf("%s: %v", address, err)
	}
	return n
}
